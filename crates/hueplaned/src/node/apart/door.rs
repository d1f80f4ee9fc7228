//! The socket of a card's process, by which the next daemon finds it.
//!
//! Flow: the next daemon connects, and shows what it shares and which card it wants → **here** → it is told whether it gets
//! this card → once the daemon before has ended, the process serves it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hue_card::{Description, Seats};
use hue_host::local;
use hue_substrate::handover::Peer;
use hue_substrate::wake::Wake;

use super::lock::locked;
use super::protocol::{self, FromCard, GREETING, Start, Started, write};
use super::reports::Out;

/// How long a daemon may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the socket's file is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// What a daemon shares with the process.
pub(super) struct Shared {
    pub seats: Arc<Seats>,
    pub wake: Arc<Wake>,
    pub peers: Vec<Peer>,
}

impl Shared {
    /// Opens what arrived.
    pub fn open(fds: impl IntoIterator<Item = OwnedFd>, workers: usize) -> io::Result<Self> {
        let mut fds = fds.into_iter();
        let mut next = || fds.next().ok_or_else(|| io::Error::other("a descriptor is missing"));
        let seats = Arc::new(Seats::open(next()?)?);
        let wake = Arc::new(Wake::open([next()?, next()?])?);
        let peers = (0..workers).map(|_| {
            let memory = next()?;
            let worker = Arc::new(Wake::open([next()?, next()?])?);
            Peer::open(memory, &worker)
        });
        let peers = peers.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { seats, wake, peers })
    }
}

/// The card that runs.
pub(super) struct Facts {
    pub description: Mutex<Description>,
    pub memory: (u32, u32),
    pub real_time: bool,
    pub why_fair: Option<String>,
    /// The time by its clock, nanoseconds, at the moment that follows.
    pub now_ns: u64,
    pub began: Instant,
    /// Its thread has ended.
    pub has_failed: Arc<AtomicBool>,
}

impl Facts {
    /// Why this is not the card that is wanted, if it is not.
    fn differs(&self, start: &Start) -> Option<String> {
        let image = &locked(&self.description).name;
        if self.has_failed.load(Ordering::SeqCst) {
            return Some("it has failed".to_owned());
        }
        if start.image != *image {
            return Some(format!("it runs image '{image}' and not '{}'", start.image));
        }
        if start.memory != self.memory {
            return Some("its packet memory has another size".to_owned());
        }
        (start.real_time != self.real_time).then(|| "its thread has another priority".to_owned())
    }

    /// The card, for a daemon.
    pub fn started(&self) -> Started {
        let age = self.began.elapsed();
        Started {
            description: locked(&self.description).clone(),
            why_fair: self.why_fair.clone(),
            now_ns: self.now_ns.saturating_add(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
            age,
        }
    }
}

/// A daemon that gets the card next.
pub(super) struct Caller {
    pub socket: UnixStream,
    pub from: BufReader<UnixStream>,
    pub start: Start,
    pub shared: Shared,
}

enum Arrival {
    /// It gets the card.
    Serve(Box<Caller>),
    /// It wants another card, or none, in the place of this one.
    Refused,
}

/// The socket.
pub(super) struct Door {
    arrivals: Receiver<Arrival>,
    facts: Arc<Facts>,
    path: PathBuf,
    file: File,
}

impl Door {
    /// Begins to listen on a socket, given with its file. `out` leads to the present daemon.
    pub fn open(
        (listener, file): (UnixListener, File),
        path: &Path,
        facts: Arc<Facts>,
        out: Out,
    ) -> io::Result<Self> {
        local::listen_here(&listener)?;
        let (sender, arrivals) = channel();
        let its = Arc::clone(&facts);
        std::thread::Builder::new().name("hue-door".to_owned()).spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if greet(socket, &its, &out, &sender).is_none() {
                    return;
                }
            }
        })?;
        Ok(Self { arrivals, facts, path: path.to_owned(), file })
    }

    /// The next daemon. If none is there, waits for it as long as the card works, if it is used.
    pub fn next(&self, is_used: impl FnOnce() -> bool) -> Option<Caller> {
        let has_failed = || self.facts.has_failed.load(Ordering::SeqCst);
        let mut arrival = self.arrivals.try_recv().ok();
        if arrival.is_none() && (has_failed() || !is_used()) {
            return None;
        }
        loop {
            match arrival {
                Some(Arrival::Serve(caller)) => return Some(*caller),
                Some(Arrival::Refused) => return None,
                None if has_failed() || !self.is_there() => return None,
                None => {}
            }
            arrival = match self.arrivals.recv_timeout(LOOK) {
                Ok(arrival) => Some(arrival),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return None,
            };
        }
    }

    /// Whether the path still leads here.
    fn is_there(&self) -> bool {
        local::is_at(&self.file, &self.path)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Answers one that has connected; `None` if the process ends.
fn greet(socket: UnixStream, facts: &Facts, out: &Out, arrivals: &Sender<Arrival>) -> Option<()> {
    let refused = || {
        out.send(FromCard::RefusesNext);
        arrivals.send(Arrival::Refused).ok()
    };
    match hear(&socket) {
        // Whoever it is, it is no daemon.
        Err(error) => {
            eprintln!("hueplane: the card's process: a connection is not understood: {error}");
            Some(())
        }
        Ok(None) => refused(),
        Ok(Some((from, start, shared))) => match facts.differs(&start) {
            Some(why) => {
                let _ = write(&mut &socket, &FromCard::Started(Err(why)));
                refused()
            }
            // One that has ended meanwhile is no loss.
            None => match write(&mut &socket, &FromCard::Started(Ok(facts.started()))) {
                Ok(()) => {
                    arrivals.send(Arrival::Serve(Box::new(Caller { socket, from, start, shared }))).ok()
                }
                Err(_) => Some(()),
            },
        },
    }
}

/// What a daemon wants; `None` if it is of another version.
fn hear(socket: &UnixStream) -> io::Result<Option<(BufReader<UnixStream>, Start, Shared)>> {
    local::own_peer(socket)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut greeting = [0; GREETING.len()];
    (&*socket).read_exact(&mut greeting)?;
    if greeting != GREETING {
        let (known, _) = GREETING.split_at(GREETING.len() - 1);
        return if greeting.starts_with(known) { Ok(None) } else { Err(io::Error::other("no greeting")) };
    }
    let (fds, from, start) = protocol::hear(socket)?;
    let shared = Shared::open(fds, start.workers)?;
    socket.set_read_timeout(None)?;
    socket.set_write_timeout(None)?;
    Ok(Some((from, start, shared)))
}
