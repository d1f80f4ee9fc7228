//! Monitors the kernels of many namespaces, in one thread.
//!
//! Flow: netlink socket in each namespace → **[`Monitor`]** → [`Batch`]es of events → the owner of the
//! `Rib`s. Invariants: the events of a namespace arrive in the kernel's order. If the consumer is slow, the
//! monitor stops reading. The kernel then buffers 64 MiB for each namespace, and if that overflows, the
//! monitor takes a new snapshot. It reads at most one batch from a namespace before it reads from the next.
//! Adding and removing networks never waits for the thread.
//!
//! The kernel sends no notifications for routes that it removes together with a link, an address or a
//! next-hop object. After such a change, the monitor takes a new snapshot: slightly later, and one for
//! several changes.
//!
//! The monitor also keeps neighbours alive. The plane forwards without the kernel, so the kernel considers
//! its neighbours unused. The monitor reports stale neighbours as used (`NTF_USE`), so that the kernel checks
//! whether they still answer.
//!
//! A monitored namespace cannot disappear, because a socket refers to it. Remove a network before deleting
//! its namespace.

mod feed;

use std::collections::HashMap;
use std::net::IpAddr;
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

/// Most events in a batch.
pub const BATCH_EVENTS_MAX: usize = 4096;

/// Pause between two reads if no more messages are available. Without it, single notifications, such as those
/// of a routing daemon, would cost several wake-ups each. The first one after a quiet period is read at once.
const PACE: Duration = Duration::from_millis(1);
/// Most ready sockets for each `epoll` call.
const READY_MAX: usize = 64;
/// Key of the wake-up event; sockets have the number of their session.
const WAKE: u64 = u64::MAX;

/// Why namespaces cannot be monitored (caused by the system).
#[derive(Debug, Error)]
pub enum MonitorError {
    /// A system call of the thread failed.
    #[error("cannot monitor network namespaces: {0}; check the limits on open files and threads")]
    System(#[from] std::io::Error),
    /// The socket in the namespace cannot be opened.
    #[error("cannot monitor the namespace of network {vid}: {error}")]
    Socket {
        /// The network.
        vid: Vid,
        /// The cause.
        error: HostError,
    },
    /// The thread has ended, because nobody receives its batches.
    #[error("the thread that monitors network namespaces has ended")]
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
    Probe(Vid, String, IpAddr),
}

/// Monitors namespaces until dropped.
pub struct Monitor {
    commands: Option<Sender<Command>>,
    wake: Arc<EventFd>,
    sessions: u64,
}

impl Monitor {
    /// Starts the thread, which calls `sink` with each batch. It reads nothing while `sink` runs, and ends if
    /// `sink` returns false.
    ///
    /// # Errors
    /// If the system has no free thread or file descriptor.
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

    /// Creates a monitor without a thread, which monitors nothing. The caller gets events from elsewhere.
    ///
    /// # Errors
    /// If the system has no free file descriptor.
    pub fn without_thread() -> Result<Self, MonitorError> {
        let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        Ok(Self { commands: None, wake, sessions: 0 })
    }

    /// Starts the thread with a channel for this many batches.
    ///
    /// # Errors
    /// If the system has no free thread or file descriptor.
    pub fn channel(batches: usize) -> Result<(Self, Receiver<Batch>), MonitorError> {
        let (sender, receiver) = mpsc::sync_channel(batches);
        let monitor = Self::start(move |batch| sender.send(batch).is_ok())?;
        Ok((monitor, receiver))
    }

    /// Monitors the namespace of a network, instead of its previous one. Begins with a snapshot.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the thread has ended.
    pub fn add(&mut self, vid: Vid, namespace: &Namespace) -> Result<Session, MonitorError> {
        let socket = feed::open(namespace).map_err(|error| MonitorError::Socket { vid, error })?;
        self.sessions += 1;
        let session = Session(self.sessions);
        self.send(Command::Add(vid, session, socket))?;
        Ok(session)
    }

    /// Stops monitoring a network. Batches already sent can still arrive.
    pub fn remove(&mut self, vid: Vid) {
        self.send(Command::Remove(vid)).ok();
    }

    /// Takes a new snapshot of a network soon.
    pub fn resync(&self, vid: Vid) {
        self.send(Command::Resync(vid)).ok();
    }

    /// Makes the kernel resolve a host's MAC address, as if it had a packet for it.
    pub fn probe(&self, vid: Vid, interface: &str, address: impl Into<IpAddr>) {
        self.send(Command::Probe(vid, interface.to_owned(), address.into())).ok();
    }

    fn send(&self, command: Command) -> Result<(), MonitorError> {
        let sent = self.commands.as_ref().is_some_and(|commands| commands.send(command).is_ok());
        // If the counter is full, the thread has been woken already.
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
        while self.run_once(&mut ready) {}
    }

    /// Runs one iteration. Returns false to end the thread.
    fn run_once(&mut self, ready: &mut [EpollEvent]) -> bool {
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
                if !self.run_commands() {
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
            self.deliver(session)
        })
    }

    fn run_commands(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Command::Add(vid, session, socket)) => {
                    self.forget(vid);
                    let event = EpollEvent::new(EpollFlags::EPOLLIN, session.0);
                    let mut feed = Feed::new(vid, session, socket);
                    if let Err(errno) = self.epoll.add(feed.socket.as_fd(), event) {
                        feed.close(format!("cannot wait for netlink notifications: {}", errno.desc()));
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
            // The socket of a closed feed has already been removed.
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
        self.deliver(session)
    }

    fn deliver(&mut self, session: u64) -> bool {
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
    // Round up: waking up slightly too early would cause an iteration without work.
    let left = due.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
    EpollTimeout::try_from(left.as_millis().min(60_000)).unwrap_or(EpollTimeout::ZERO)
}
