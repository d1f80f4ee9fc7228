//! The process of a card, as the daemon sees it: found or started, and ended.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::process::{self, Process};
use hue_host::{local, rights};

use super::lock::locked;
use super::process::ARGUMENT;
use super::protocol::{FromCard, GREETING, Start, Started, ToCard, read, write};

/// The socket of the process, in the daemon's state directory.
const SOCKET: &str = "card.sock";
/// How long the process may take to start the card.
const START_MAX: Duration = Duration::from_secs(60);
/// How long one that runs may take to answer the next daemon.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long it may take to end. The kernel takes some ten milliseconds for each port.
pub(super) const END_MAX: Duration = Duration::from_secs(5);
/// Pause between two looks whether it has ended.
pub(super) const END_PAUSE: Duration = Duration::from_millis(1);

/// Where a card's process is to be found, and which ports it has.
pub struct CardSite {
    /// The daemon's state directory.
    pub state_dir: PathBuf,
    /// The card's ports: number, id, interface.
    pub ports: Vec<(u8, PortId, String)>,
    /// Whether no other daemon is about to end.
    pub is_alone: bool,
}

/// A process.
pub(super) struct Body(Mutex<Kind>);

enum Kind {
    /// Started by this daemon.
    Child(Child),
    /// Started by an earlier one.
    Found(Process),
}

/// A process that has answered.
pub(super) struct Begun {
    pub socket: UnixStream,
    pub body: Body,
    pub started: Started,
    /// Whether it had run before.
    pub is_found: bool,
}

impl CardSite {
    fn socket(&self) -> PathBuf {
        // The process has another working directory.
        std::path::absolute(&self.state_dir).unwrap_or_else(|_| self.state_dir.clone()).join(SOCKET)
    }

    /// The process of an earlier daemon if it serves this one, or another.
    ///
    /// # Errors
    /// Why the card does not run, as a text.
    pub(super) fn begin(&self, fds: &[BorrowedFd<'_>], start: Start) -> Result<Begun, String> {
        let text = |error: io::Error| format!("the card's process cannot be started: {error}");
        match self.find(fds, &start) {
            Ok(Some(begun)) => return Ok(begun),
            Ok(None) => {}
            Err(why) => tracing::info!(why, "the card of the daemon before is not taken over"),
        }
        let (listener, file) = local::bind(&self.socket()).map_err(text)?;
        let (socket, child) = spawn(&self.socket()).map_err(text)?;
        let body = Body(Mutex::new(Kind::Child(child)));
        match first_answer(&socket, (&listener, &file), fds, start) {
            Ok(Ok(started)) => Ok(Begun { socket, body, started, is_found: false }),
            failed => {
                drop(socket);
                body.end(Instant::now());
                Err(match failed {
                    Ok(why) => why.err().unwrap_or_default(),
                    Err(error) => text(error),
                })
            }
        }
    }

    /// Asks the process of an earlier daemon; `None` if there is none.
    fn find(&self, fds: &[BorrowedFd<'_>], start: &Start) -> Result<Option<Begun>, String> {
        let text = |error: io::Error| error.to_string();
        let (socket, process) = match local::connect(&self.socket()) {
            Ok((socket, pid)) => (socket, Process::of(pid).map_err(text)?),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(text(error)),
        };
        let body = Body::found(process);
        match answer(&socket, fds, start) {
            Ok(Ok(started)) => Ok(Some(Begun { socket, body, started, is_found: true })),
            refused => {
                drop(socket);
                // It has the ports. While it serves another daemon, that one ends it.
                if self.is_alone {
                    body.end(Instant::now() + END_MAX);
                }
                Err(match refused {
                    Ok(why) => why.err().unwrap_or_default(),
                    Err(error) => format!("its process does not answer as expected: {error}"),
                })
            }
        }
    }

    /// Ends the process of an earlier daemon: this daemon has no card that could use it.
    pub fn end_left(&self) {
        let Ok((socket, pid)) = local::connect(&self.socket()) else { return };
        let process = Process::of(pid);
        // As a daemon of a version that it does not know.
        let mut unknown = GREETING;
        unknown[GREETING.len() - 1] = 0;
        let asked = io::Write::write_all(&mut &socket, &unknown);
        if let (Ok(process), Ok(()), true) = (process, asked, self.is_alone) {
            Body::found(process).end(Instant::now() + END_MAX);
        }
    }
}

impl Body {
    /// That of an earlier daemon.
    pub fn found(process: Process) -> Self {
        Self(Mutex::new(Kind::Found(process)))
    }

    /// Waits until the process has ended; ends it at the deadline. Returns how it ended.
    pub fn end(&self, deadline: Instant) -> String {
        let mut kind = locked(&self.0);
        match &mut *kind {
            Kind::Child(child) => {
                end_child(child, deadline).map_or_else(|error| error.to_string(), |status| status.to_string())
            }
            Kind::Found(process) => {
                while !process.has_ended() {
                    if Instant::now() >= deadline {
                        let _ = process.kill(); // it may just have ended
                    }
                    std::thread::sleep(END_PAUSE);
                }
                "an earlier daemon had started it".to_owned()
            }
        }
    }
}

fn end_child(child: &mut Child, deadline: Instant) -> io::Result<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            let _ = child.kill(); // it may just have ended
            return child.wait();
        }
        std::thread::sleep(END_PAUSE);
    }
}

/// Starts the process: the socket to it, and the process.
fn spawn(path: &Path) -> io::Result<(UnixStream, Child)> {
    let (socket, theirs) = UnixStream::pair()?;
    // The daemon ends it itself, and it reports to the daemon's log.
    let mut command = process::again("hueplane-card", ARGUMENT, path, OwnedFd::from(theirs));
    Ok((socket, command.spawn()?))
}

/// Starts the card in a new process, which gets the socket for later daemons as well.
fn first_answer(
    socket: &UnixStream,
    (listener, file): (&UnixListener, &File),
    fds: &[BorrowedFd<'_>],
    start: Start,
) -> io::Result<Result<Started, String>> {
    let all: Vec<BorrowedFd<'_>> =
        [listener.as_fd(), file.as_fd()].into_iter().chain(fds.iter().copied()).collect();
    rights::send(socket.as_fd(), &all)?;
    write(&mut &*socket, &ToCard::Start(start))?;
    first_message(socket, START_MAX)
}

/// Asks a process that runs.
fn answer(socket: &UnixStream, fds: &[BorrowedFd<'_>], start: &Start) -> io::Result<Result<Started, String>> {
    socket.set_write_timeout(Some(ANSWER_MAX))?;
    io::Write::write_all(&mut &*socket, &GREETING)?;
    rights::send(socket.as_fd(), fds)?;
    write(&mut &*socket, &ToCard::Start(start.clone()))?;
    socket.set_write_timeout(None)?;
    let answer = first_message(socket, ANSWER_MAX);
    if !matches!(answer, Ok(Ok(_))) {
        let _ = socket.shutdown(Shutdown::Both);
    }
    answer
}

fn first_message(socket: &UnixStream, patience: Duration) -> io::Result<Result<Started, String>> {
    socket.set_read_timeout(Some(patience))?;
    let first = read(&mut &*socket)?;
    socket.set_read_timeout(None)?;
    match first {
        Some(FromCard::Started(started)) => Ok(started),
        Some(_) => Err(io::Error::other("it answers something else")),
        None => Err(io::Error::other("it has ended at once; the log may say why")),
    }
}
