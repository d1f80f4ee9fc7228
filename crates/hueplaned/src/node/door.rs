//! The socket in a network's namespace at which its routing daemon for flat labels tells what it has learnt.
//!
//! One thread for each network waits for the socket, for one routing daemon, and for what the node has to say. Invariants: only
//! root and the daemon's own user are heard; a second routing daemon is refused while the first is there; a routing daemon that
//! does not read is dropped after [`PATIENCE`].

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use hue_host::ControlNamespace;
use hue_host::local::is_trusted;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::labels::{FromDaemon, LINE_BYTES_MAX, Offer, address};

/// Longest time that a line may take to be sent.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a socket that cannot be made is tried again: a daemon that is being replaced may still have it.
const AGAIN: Duration = Duration::from_millis(500);
/// Shortest time between an answer and the next line.
const GAP: Duration = Duration::from_millis(20);
/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// What happens at a door.
#[derive(PartialEq, Eq, Debug)]
pub enum News {
    /// A routing daemon came.
    Came,
    /// It said this.
    Said(String),
    /// It is gone.
    Left,
}

/// See the head of this file. Dropping it closes the socket.
pub struct Door {
    /// Lines, and whether each is the answer to one of the client.
    lines: Sender<(String, bool)>,
    wake: UnixStream,
}

impl Door {
    /// Opens the socket in a network's namespace. What happens goes to `tell`.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn open(
        control: &Arc<ControlNamespace>,
        offer: &Offer,
        tell: impl Fn(News) + Send + 'static,
    ) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let (lines, inbox) = channel();
        let (control, network) = (Arc::clone(control), offer.network.clone());
        let mut keeper =
            Keeper { woken, inbox, listener: None, client: None, read: Vec::new(), listens_from: None };
        let work = move || {
            if let Err(error) = keeper.run(&control, &tell) {
                tracing::error!(network, %error, "the socket for labels is closed");
            }
        };
        std::thread::Builder::new().name("labels".to_owned()).spawn(work)?;
        Ok(Self { lines, wake })
    }

    /// Tells the routing daemon, if there is one.
    pub fn say(&self, line: &FromDaemon) {
        if let Ok(text) = serde_json::to_string(line) {
            // A thread that has ended has nobody to tell.
            let _ = self.lines.send((text, !matches!(line, FromDaemon::Network(_))));
            let _ = (&self.wake).write(&[1]);
        }
    }
}

/// The thread's state.
struct Keeper {
    /// Readable when there are lines to send; at its end the door is closed.
    woken: UnixStream,
    inbox: Receiver<(String, bool)>,
    listener: Option<UnixListener>,
    client: Option<UnixStream>,
    /// What the client sent of its next line.
    read: Vec<u8>,
    /// From when on the next line is taken; `None` while the last one waits for its answer.
    listens_from: Option<Instant>,
}

impl Keeper {
    fn run(&mut self, control: &ControlNamespace, tell: &impl Fn(News)) -> io::Result<()> {
        loop {
            if self.listener.is_none() {
                let made = control.namespace.run(|| UnixListener::bind_addr(&address()?));
                self.listener = made.map_err(io::Error::other)?.ok();
                self.listener.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
            }
            let again = self.listener.is_none().then_some(AGAIN);
            let now = Instant::now();
            let pause = self.client.as_ref().and(self.listens_from);
            let pause = pause.map(|from| from.saturating_duration_since(now));
            let due = [again, pause.filter(|pause| !pause.is_zero())].into_iter().flatten().min();
            // Rounded up: a wake-up slightly too early would be one without work.
            let due = due.map(|due| due + Duration::from_micros(999));
            let timeout = due.and_then(|due| PollTimeout::try_from(due).ok()).unwrap_or(PollTimeout::NONE);
            let client = self.client.as_ref().filter(|_| pause.is_some_and(|pause| pause.is_zero()));
            let rest = self.listener.iter().map(AsFd::as_fd).chain(client.map(AsFd::as_fd));
            let all = std::iter::once(self.woken.as_fd()).chain(rest);
            let mut waits: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            // An interrupted wait is a wait that ended.
            let _ = poll(&mut waits, timeout);
            loop {
                match self.woken.read(&mut [0; 256]) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            self.accept(tell);
            self.listen(tell);
            self.speak(tell);
        }
    }

    /// Takes a routing daemon that comes.
    fn accept(&mut self, tell: &impl Fn(News)) {
        while let Some((stream, _)) = self.listener.as_ref().and_then(|listener| listener.accept().ok()) {
            let error = match (is_trusted(&stream), &self.client) {
                (false, _) => "only root may tell a network's labels",
                (true, Some(_)) => "another routing daemon of this network is there",
                (true, None) => "",
            };
            let ready = stream.set_write_timeout(Some(PATIENCE)).and_then(|()| stream.set_nonblocking(true));
            if !error.is_empty() || ready.is_err() {
                let refused = FromDaemon::Refused { error: error.to_owned() };
                let _ = serde_json::to_string(&refused).map(|text| write_line(&stream, &text));
                continue;
            }
            // What was meant for the one before.
            while self.inbox.try_recv().is_ok() {}
            (self.client, self.read, self.listens_from) = (Some(stream), Vec::new(), Some(Instant::now()));
            tell(News::Came);
        }
    }

    /// Takes the next line, unless the last one waits for its answer: so a client cannot keep the node busy.
    fn listen(&mut self, tell: &impl Fn(News)) {
        let mut piece = vec![0; PIECE];
        while self.listens_from.is_some_and(|from| from <= Instant::now()) {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                self.listens_from = None;
                return tell(News::Said(String::from_utf8_lossy(&line).into_owned()));
            }
            let Some(mut client) = self.client.as_ref() else { return };
            match client.read(&mut piece) {
                Ok(count) if count > 0 && self.read.len() <= LINE_BYTES_MAX => {
                    self.read.extend_from_slice(piece.get(..count).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => return self.lose(tell),
            }
        }
    }

    fn speak(&mut self, tell: &impl Fn(News)) {
        while let Ok((text, is_answer)) = self.inbox.try_recv() {
            if is_answer {
                self.listens_from = Some(Instant::now() + GAP);
            }
            if self.client.as_ref().is_some_and(|client| write_line(client, &text).is_err()) {
                self.lose(tell);
            }
        }
    }

    fn lose(&mut self, tell: &impl Fn(News)) {
        if self.client.take().is_some() {
            tell(News::Left);
        }
    }
}

fn write_line(mut stream: &UnixStream, text: &str) -> io::Result<()> {
    // Reads do not wait, writes do, for a while.
    stream.set_nonblocking(false)?;
    let written = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n"));
    stream.set_nonblocking(true)?;
    written
}
