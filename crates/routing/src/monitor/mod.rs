//! Listening to the kernels of many namespaces, in one thread.
//!
//! Flow: netlink socket in each namespace → **[`Monitor`]** → [`Batch`]es of events → whoever has the `Rib`s.
//! Invariants: the events of a namespace come in the kernel's order. What takes them may be slow: then nothing is read, the
//! kernel keeps 64 MiB a namespace, and if that overflows everything is listed anew. No namespace
//! is read for longer than one batch at a time. Adding and removing never waits for the thread.
//!
//! The kernel is silent about routes that go with a link, an address or a next-hop object; so after such a change routes are
//! listed anew, a moment later and once for many changes.
//!
//! It also keeps neighbours alive. The plane forwards past the kernel, which therefore takes its neighbours for unused; each
//! that has become stale is told to be in use (`NTF_USE`), so that the kernel asks it and finds out whether it still answers.
//!
//! A listening socket keeps its namespace alive: remove a network before deleting its namespace.

mod feed;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use hue_host::netlink::Socket;
use hue_host::{HostError, Namespace};
use hue_tables::Vid;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use thiserror::Error;

use crate::event::{Batch, Session};
use feed::Feed;

/// Events of a batch at most.
pub const BATCH_EVENTS_MAX: usize = 4096;

/// Between two reads when there is not more to read at once: notices that come one by one, as a routing daemon's do, would
/// cost several wake-ups each. The first one of a calm time does not wait.
const PACE: Duration = Duration::from_millis(1);
/// Ready sockets asked for at once.
const READY_MAX: usize = 64;
/// What the wake-up is called where sockets are called by the number of their session.
const WAKE: u64 = u64::MAX;

/// Why namespaces cannot be listened to; the system's doing.
#[derive(Debug, Error)]
pub enum MonitorError {
    /// A call of the thread's own failed.
    #[error("listen to network namespaces: {0}; are there too many open files or threads?")]
    System(#[from] std::io::Error),
    /// The namespace's socket cannot be opened.
    #[error("listen to the namespace of network {vid}: {error}")]
    Socket {
        /// The network.
        vid: Vid,
        /// What is wrong.
        error: HostError,
    },
    /// The thread has ended: nobody takes its batches.
    #[error("the thread that listens to network namespaces has ended")]
    Ended,
}

impl From<Errno> for MonitorError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

enum Command {
    Add(Vid, Session, Socket),
    Remove(Vid),
    Resync(Vid),
    Probe(Vid, String, Ipv4Addr),
}

/// Listens to namespaces; ends when dropped.
pub struct Monitor {
    commands: Option<Sender<Command>>,
    wake: Arc<EventFd>,
    sessions: u64,
}

impl Monitor {
    /// Starts the thread. `sink` is called there with each batch; while it does not return, nothing is read. The thread ends
    /// when it says false.
    ///
    /// # Errors
    /// When the system has no thread or file left.
    pub fn start(sink: impl FnMut(Batch) -> bool + Send + 'static) -> Result<Self, MonitorError> {
        let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&*wake, EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
        let (commands, inbox) = mpsc::channel();
        let thread = Thread {
            epoll,
            wake: Arc::clone(&wake),
            inbox,
            feeds: HashMap::new(),
            sessions: HashMap::new(),
            pace: None,
            sink,
        };
        std::thread::Builder::new().name("hue-monitor".to_owned()).spawn(move || thread.run())?;
        Ok(Self { commands: Some(commands), wake, sessions: 0 })
    }

    /// One that listens to nothing and has no thread: what networks' kernels say is told otherwise.
    ///
    /// # Errors
    /// When the system has no file left.
    pub fn deaf() -> Result<Self, MonitorError> {
        let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        Ok(Self { commands: None, wake, sessions: 0 })
    }

    /// Starts the thread with a channel that holds this many batches.
    ///
    /// # Errors
    /// When the system has no thread or file left.
    pub fn channel(batches: usize) -> Result<(Self, Receiver<Batch>), MonitorError> {
        let (sender, receiver) = mpsc::sync_channel(batches);
        let monitor = Self::start(move |batch| sender.send(batch).is_ok())?;
        Ok((monitor, receiver))
    }

    /// Listens to the namespace of a network, instead of the one before; begins with a snapshot of all there is.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or the thread has ended.
    pub fn add(&mut self, vid: Vid, namespace: &Namespace) -> Result<Session, MonitorError> {
        let socket = feed::open(namespace).map_err(|error| MonitorError::Socket { vid, error })?;
        self.sessions += 1;
        let session = Session(self.sessions);
        self.send(Command::Add(vid, session, socket))?;
        Ok(session)
    }

    /// Stops listening to a network. Batches that are under way may still come.
    pub fn remove(&mut self, vid: Vid) {
        self.send(Command::Remove(vid)).ok();
    }

    /// Lists everything of a network anew, soon.
    pub fn resync(&self, vid: Vid) {
        self.send(Command::Resync(vid)).ok();
    }

    /// Lets the kernel ask for a station's MAC address, as if it had a packet for it.
    pub fn probe(&self, vid: Vid, interface: &str, address: Ipv4Addr) {
        self.send(Command::Probe(vid, interface.to_owned(), address)).ok();
    }

    fn send(&self, command: Command) -> Result<(), MonitorError> {
        let sent = self.commands.as_ref().is_some_and(|commands| commands.send(command).is_ok());
        // Full is woken already.
        self.wake.write(1).ok();
        if sent { Ok(()) } else { Err(MonitorError::Ended) }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.commands = None;
        self.wake.write(1).ok();
    }
}

struct Thread<S> {
    epoll: Epoll,
    wake: Arc<EventFd>,
    inbox: Receiver<Command>,
    /// By session.
    feeds: HashMap<u64, Feed>,
    sessions: HashMap<Vid, u64>,
    /// When sockets may be read again.
    pace: Option<Instant>,
    sink: S,
}

impl<S: FnMut(Batch) -> bool> Thread<S> {
    fn run(mut self) {
        let mut ready = [EpollEvent::empty(); READY_MAX];
        while self.turn(&mut ready) {}
    }

    /// One round; false ends the thread.
    fn turn(&mut self, ready: &mut [EpollEvent]) -> bool {
        if let Some(pace) = self.pace.take() {
            std::thread::sleep(pace.saturating_duration_since(Instant::now()));
        }
        let due = self.feeds.values().filter_map(Feed::due).min();
        let count = match self.epoll.wait(ready, timeout(due)) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(_) => return false,
        };
        for event in ready.iter().take(count) {
            if event.data() == WAKE {
                self.wake.read().ok();
                if !self.obey() {
                    return false;
                }
            } else if !self.read(event.data()) {
                return false;
            }
        }
        let now = Instant::now();
        let due = self.feeds.iter().filter(|(_, feed)| feed.due().is_some_and(|due| due <= now));
        let due: Vec<u64> = due.map(|(session, _)| *session).collect();
        due.into_iter().all(|session| {
            if let Some(feed) = self.feeds.get_mut(&session) {
                feed.tick(now);
            }
            self.hand_on(session)
        })
    }

    fn obey(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Command::Add(vid, session, socket)) => {
                    self.forget(vid);
                    let event = EpollEvent::new(EpollFlags::EPOLLIN, session.0);
                    let mut feed = Feed::new(vid, session, socket);
                    if let Err(errno) = self.epoll.add(feed.socket.as_fd(), event) {
                        feed.close(format!("wait for netlink notices: {}", errno.desc()));
                    }
                    self.feeds.insert(session.0, feed);
                    self.sessions.insert(vid, session.0);
                }
                Ok(Command::Remove(vid)) => self.forget(vid),
                Ok(Command::Resync(vid)) => self.with(vid, |feed| feed.resync(Instant::now())),
                Ok(Command::Probe(vid, interface, address)) => {
                    self.with(vid, |feed| feed.probe(&interface, address));
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn with(&mut self, vid: Vid, work: impl FnOnce(&mut Feed)) {
        if let Some(feed) = self.sessions.get(&vid).and_then(|session| self.feeds.get_mut(session)) {
            work(feed);
        }
    }

    fn forget(&mut self, vid: Vid) {
        if let Some(feed) = self.sessions.remove(&vid).and_then(|session| self.feeds.remove(&session)) {
            // One that was closed is not in there any more.
            self.epoll.delete(feed.socket.as_fd()).ok();
        }
    }

    fn read(&mut self, session: u64) -> bool {
        let now = Instant::now();
        if let Some(feed) = self.feeds.get_mut(&session)
            && feed.read(now)
        {
            self.pace = Some(now + PACE);
        }
        self.hand_on(session)
    }

    fn hand_on(&mut self, session: u64) -> bool {
        let Some(feed) = self.feeds.get_mut(&session) else { return true };
        let (vid, number) = (feed.vid, feed.session);
        let events = feed.take();
        if feed.closed {
            self.forget(vid);
        }
        events.is_empty() || (self.sink)(Batch { vid, session: number, events })
    }
}

fn timeout(due: Option<Instant>) -> EpollTimeout {
    let Some(due) = due else { return EpollTimeout::NONE };
    // Rounded up: waking a moment too early would be a round for nothing.
    let left = due.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
    EpollTimeout::try_from(left.as_millis().min(60_000)).unwrap_or(EpollTimeout::ZERO)
}
