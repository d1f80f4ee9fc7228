//! Sleeping and being woken: a thread of the data plane with nothing to do waits in the kernel for its descriptors.
//!
//! Flow: control, another worker or a device → descriptor → [`Poller::sleep`]. A thread first leaves work for a
//! worker and then calls [`Wake::notify`]; the worker first announces its sleep and then looks for work once more.
//! With a fence in between on both sides, at least one of them sees the other, and no wake-up is lost.
//!
//! There are two sorts of descriptors. Those that are polled occasionally (TAPs, the wake-up) stay registered.
//! Sockets, which are polled in every round anyway, are waited for only during a sleep. If a socket is registered,
//! the kernel calls its waiter under two locks for every packet received or sent.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use hue_demux::PortId;
use hue_ports::SharedMemory;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 64;
/// Most descriptors that are waited for only during a sleep: one per port.
const SLEEP_FDS_MAX: usize = PortId::COUNT;
/// The token of the wake-up itself.
const WAKE: u64 = u64::MAX;

/// Bytes of memory of a wake-up: whether the worker sleeps.
const MEMORY_BYTES: usize = 4;
const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Wakes one worker, also from another process.
#[derive(Debug)]
pub struct Wake {
    memory: Arc<SharedMemory>,
    fd: OwnedFd,
}

impl Wake {
    /// Creates one that has not been notified.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { memory: SharedMemory::new(MEMORY_BYTES)?, fd })
    }

    /// The descriptors with which another process makes the same.
    #[must_use]
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.memory.as_fd(), self.fd.as_fd()]
    }

    /// The wake-up with these descriptors, which another process has made.
    ///
    /// # Errors
    /// If they are not those of [`Wake::descriptors`].
    pub fn open([memory, fd]: [OwnedFd; 2]) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::open(memory, MEMORY_BYTES)?, fd })
    }

    fn asleep(&self) -> &AtomicU32 {
        let [asleep] = self.memory.words(0);
        asleep
    }

    /// Wakes the worker if it sleeps. Call it after giving work to the worker.
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        let asleep = self.asleep();
        if asleep.load(Ordering::Relaxed) == ASLEEP && asleep.swap(AWAKE, Ordering::Relaxed) == ASLEEP {
            // The write can only fail if the descriptor is already readable.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }
}

/// The descriptors one worker waits for, each with a token.
pub struct Poller {
    epoll: OwnedFd,
    /// The readable descriptors of the last poll or sleep, and how many of them are valid.
    tokens: [u64; EVENTS_MAX],
    count: usize,
}

impl Poller {
    /// Waits for `wake` only.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new(wake: &Wake) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &wake.fd, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self { epoll, tokens: [0; EVENTS_MAX], count: 0 })
    }

    /// Watches a descriptor until [`Poller::remove`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }

    /// Stops watching; does nothing if the descriptor was not watched.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Polls which registered descriptors are readable now. [`Poller::token`] returns them.
    pub fn look(&mut self) {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        // If interrupted, report no events.
        self.count = epoll::wait(&self.epoll, &mut events[..], Some(&timespec(Duration::ZERO))).unwrap_or(0);
        for (token, event) in self.tokens.iter_mut().zip(&events) {
            *token = event.data.u64();
        }
    }

    /// Sleeps until a registered descriptor or one of `others` is readable, [`Wake::notify`] is called, or `timeout`
    /// is over, unless `work` finds something to do. Returns whether it slept.
    pub fn sleep<'f>(
        &mut self,
        wake: &Wake,
        timeout: Duration,
        others: impl Iterator<Item = BorrowedFd<'f>>,
        work: impl FnOnce() -> bool,
    ) -> bool {
        self.count = 0;
        let asleep = wake.asleep();
        asleep.store(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if work() {
            asleep.store(AWAKE, Ordering::Relaxed);
            return false;
        }
        let mut fds: [PollFd<'_>; SLEEP_FDS_MAX + 1] =
            std::array::from_fn(|_| PollFd::new(&self.epoll, PollFlags::IN));
        let mut count = 1;
        for (fd, to) in others.zip(&mut fds[1..]) {
            *to = PollFd::from_borrowed_fd(fd, PollFlags::IN);
            count += 1;
        }
        // If interrupted, continue as usual.
        let _ = poll(&mut fds[..count], Some(&timespec(timeout)));
        let registered = !fds[0].revents().is_empty();
        asleep.store(AWAKE, Ordering::Relaxed);
        if registered {
            self.look();
        }
        if self.tokens.iter().take(self.count).any(|token| *token == WAKE) {
            wake.clear();
        }
        true
    }

    /// The `index`-th token of the readable descriptors of the last poll or sleep.
    #[must_use]
    pub fn token(&self, index: usize) -> Option<u64> {
        self.tokens.get(..self.count)?.get(index).copied()
    }
}

fn timespec(timeout: Duration) -> Timespec {
    Timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    }
}

/// Keeps the calling thread on one of the processors it may use.
///
/// # Errors
/// The kernel's error.
pub fn pin(index: usize) -> io::Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let Some(cpu) = cpus.get(index % cpus.len().max(1)) else { return Ok(()) };
    let mut one = rustix::thread::CpuSet::new();
    one.set(*cpu);
    Ok(rustix::thread::sched_setaffinity(None, &one)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: u64 = 5_000;
        let wake = Arc::new(Wake::new().unwrap());
        let mut poller = Poller::new(&wake).unwrap();
        let (work, mailbox) = std::sync::mpsc::channel::<u64>();
        let (back, answers) = std::sync::mpsc::channel::<u64>();
        let waker = wake.clone();
        let thread = std::thread::spawn(move || {
            for round in 0..ROUNDS {
                work.send(round).unwrap();
                waker.notify();
                assert_eq!(answers.recv().unwrap(), round);
            }
        });
        let mut next = None;
        let mut done = 0;
        while done < ROUNDS {
            if let Some(round) = next.take().or_else(|| mailbox.try_recv().ok()) {
                back.send(round).unwrap();
                done += 1;
                continue;
            }
            poller.sleep(&wake, Duration::from_secs(60), std::iter::empty(), || {
                next = mailbox.try_recv().ok();
                next.is_some()
            });
        }
        thread.join().unwrap();
    }

    #[test]
    fn tokens_tell_what_is_readable() {
        let wake = Wake::new().unwrap();
        let mut poller = Poller::new(&wake).unwrap();
        let device = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        poller.add(device.as_fd(), 7).unwrap();
        poller.look();
        assert_eq!(poller.token(0), None);
        rustix::io::write(&device, &1u64.to_ne_bytes()).unwrap();
        poller.look();
        assert_eq!((poller.token(0), poller.token(1)), (Some(7), None));
        poller.remove(device.as_fd());
        poller.look();
        assert_eq!(poller.token(0), None);
    }

    #[test]
    fn a_sleep_also_ends_by_a_descriptor_that_is_not_registered() {
        let wake = Wake::new().unwrap();
        let mut poller = Poller::new(&wake).unwrap();
        let device = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        rustix::io::write(&device, &1u64.to_ne_bytes()).unwrap();
        // Without it the test would not end.
        assert!(poller.sleep(&wake, Duration::from_secs(3_600), [device.as_fd()].into_iter(), || false));
        assert_eq!(poller.token(0), None, "it has no token");
        assert!(!poller.sleep(&wake, Duration::from_secs(3_600), std::iter::empty(), || true));
    }
}
