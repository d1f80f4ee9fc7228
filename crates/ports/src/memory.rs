//! A port in memory: another thread supplies the frames to receive, and takes the frames that are sent. For tests and
//! benches.
//!
//! Invariants: both queues have a fixed capacity and one lock, which is taken once per batch; nothing is allocated
//! after [`pair`] (reading what was sent allocates, on the handle's side). [`pair`]: MemoryPort::pair

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Driver, DriverCounters, Packet, Pool, Port, PortError, sys};

/// Longest frame, bytes.
const FRAME_BYTES_MAX: usize = 4096;

/// Frames in a ring of fixed capacity.
struct Frames {
    arena: Vec<u8>,
    lengths: Vec<u16>,
    head: usize,
    count: usize,
}

impl Frames {
    fn new(room: usize) -> Self {
        Self { arena: vec![0; room * FRAME_BYTES_MAX], lengths: vec![0; room], head: 0, count: 0 }
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        if self.count == self.lengths.len() || bytes.len() > FRAME_BYTES_MAX {
            return false;
        }
        let at = (self.head + self.count) % self.lengths.len();
        let start = at * FRAME_BYTES_MAX;
        self.arena[start..start + bytes.len()].copy_from_slice(bytes);
        self.lengths[at] = bytes.len() as u16;
        self.count += 1;
        true
    }

    fn front(&self) -> Option<&[u8]> {
        if self.count == 0 {
            return None;
        }
        let start = self.head * FRAME_BYTES_MAX;
        Some(&self.arena[start..start + usize::from(self.lengths[self.head])])
    }

    fn pop(&mut self) {
        self.head = (self.head + 1) % self.lengths.len();
        self.count -= 1;
    }
}

struct Queues {
    fed: Frames,
    sent: Frames,
    sent_total: u64,
    discard: bool,
    failure: Option<i32>,
    ended: bool,
    /// Whether the descriptor is readable.
    signalled: bool,
}

struct Shared {
    queues: Mutex<Queues>,
    sent: Condvar,
    readable: OwnedFd,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        // A panic elsewhere leaves whole frames in the queues, so they stay usable.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, queues: &mut Queues) {
        if !queues.signalled {
            queues.signalled = true;
            sys::signal(self.readable.as_fd());
        }
    }
}

/// The engine's end.
pub struct MemoryPort {
    name: String,
    shared: Arc<Shared>,
    outgoing: Vec<Packet>,
    counters: DriverCounters,
}

/// The other end, which supplies and collects frames. Any thread may hold a clone.
#[derive(Clone)]
pub struct MemoryHandle {
    shared: Arc<Shared>,
}

impl MemoryPort {
    /// Creates a port and its other end, with room for `room` frames (at least 1) in each direction.
    ///
    /// # Errors
    /// `System` if the process has no descriptors left.
    pub fn pair(name: &str, room: usize) -> Result<(Self, MemoryHandle), PortError> {
        let room = room.max(1);
        let readable =
            sys::eventfd().map_err(|source| PortError::of(name, "make an event descriptor", source))?;
        let queues = Queues {
            fed: Frames::new(room),
            sent: Frames::new(room),
            sent_total: 0,
            discard: false,
            failure: None,
            ended: false,
            signalled: false,
        };
        let shared = Arc::new(Shared { queues: Mutex::new(queues), sent: Condvar::new(), readable });
        let port = Self {
            name: name.to_owned(),
            shared: shared.clone(),
            outgoing: Vec::with_capacity(room),
            counters: DriverCounters::default(),
        };
        Ok((port, MemoryHandle { shared }))
    }

    fn check(&self, queues: &Queues) -> Result<(), PortError> {
        match queues.failure {
            None => Ok(()),
            Some(code) => {
                Err(PortError::of(&self.name, "use the interface", io::Error::from_raw_os_error(code)))
            }
        }
    }
}

impl Port for MemoryPort {
    fn driver(&self) -> Driver {
        Driver::Memory
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        let mut queues = self.shared.lock();
        self.check(&queues)?;
        let mut received = 0;
        while received < limit {
            let Some(frame) = queues.fed.front() else { break };
            if frame.len() > pool.frame_bytes_max() as usize {
                self.counters.ring_full += 1;
                queues.fed.pop();
                continue;
            }
            let Some(packet) = pool.copy_in(frame, now_ns) else { break };
            self.counters.received_bytes += u64::from(packet.len);
            into.push(packet);
            queues.fed.pop();
            received += 1;
        }
        self.counters.received_packets += received as u64;
        if queues.signalled && queues.fed.front().is_none() && !queues.ended {
            queues.signalled = false;
            sys::clear(self.shared.readable.as_fd());
        }
        Ok(received)
    }

    fn send(&mut self, _pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        if self.outgoing.len() == self.outgoing.capacity() {
            return Err(packet);
        }
        self.outgoing.push(packet);
        Ok(())
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let mut queues = self.shared.lock();
        self.check(&queues)?;
        let mut taken = 0;
        for packet in &self.outgoing {
            if !queues.discard && !queues.sent.push(packet.bytes(pool)) {
                break;
            }
            taken += 1;
            self.counters.sent_packets += 1;
            self.counters.sent_bytes += u64::from(packet.len);
        }
        queues.sent_total += taken as u64;
        for packet in self.outgoing.drain(..taken) {
            pool.give(packet.slot);
        }
        if taken > 0 {
            self.shared.sent.notify_all();
        }
        Ok(())
    }

    fn close(&mut self, pool: &mut Pool) {
        for packet in self.outgoing.drain(..) {
            pool.give(packet.slot);
        }
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.readable.as_fd())
    }

    fn pending(&self) -> usize {
        self.outgoing.len()
    }

    fn counters(&self) -> DriverCounters {
        self.counters
    }

    fn ended(&self) -> bool {
        let queues = self.shared.lock();
        queues.ended && queues.fed.front().is_none()
    }
}

impl MemoryHandle {
    /// Adds a frame for [`Port::receive`]; `false` if there is no room.
    #[must_use = "a frame without room is lost"]
    pub fn feed(&self, bytes: &[u8]) -> bool {
        let mut queues = self.shared.lock();
        let fed = queues.fed.push(bytes);
        self.shared.wake(&mut queues);
        fed
    }

    /// Frames added and not received yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().fed.count
    }

    /// The oldest frame sent and not taken yet.
    #[must_use]
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut queues = self.shared.lock();
        let frame = queues.sent.front().map(<[u8]>::to_vec);
        if frame.is_some() {
            queues.sent.pop();
        }
        frame
    }

    /// Every frame sent and not taken yet, in order.
    #[must_use]
    pub fn collect(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.take()).collect()
    }

    /// Frames sent since the beginning.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.lock().sent_total
    }

    /// Waits until `total` frames were sent since the beginning; `false` when `timeout` passes before.
    #[must_use]
    pub fn wait_sent(&self, total: u64, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut queues = self.shared.lock();
        while queues.sent_total < total {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.sent.wait_timeout(queues, left);
            queues = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Makes later sent frames be counted and discarded.
    pub fn discard_sent(&self) {
        self.shared.lock().discard = true;
    }

    /// Makes every later call on the port fail with this error number; `None` makes it work again.
    pub fn fail(&self, code: Option<i32>) {
        let mut queues = self.shared.lock();
        queues.failure = code;
        self.shared.wake(&mut queues);
    }

    /// Declares that no more frames will be added.
    pub fn end(&self) {
        let mut queues = self.shared.lock();
        queues.ended = true;
        self.shared.wake(&mut queues);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fed_is_received_and_what_is_sent_is_taken() {
        let mut pool = Pool::new(8, 2048).unwrap();
        let (mut port, handle) = MemoryPort::pair("m0", 4).unwrap();
        for i in 0..4 {
            assert!(handle.feed(&[i; 20]));
        }
        assert!(!handle.feed(&[9; 20]), "there is no room left");
        let mut packets = Vec::with_capacity(8);
        assert_eq!(port.receive(&mut pool, 5, &mut packets, 3).unwrap(), 3);
        assert_eq!(port.receive(&mut pool, 6, &mut packets, 3).unwrap(), 1);
        assert_eq!(port.receive(&mut pool, 7, &mut packets, 3).unwrap(), 0);
        assert_eq!((packets[3].time_ns, packets[3].bytes(&pool)), (6, &[3; 20][..]));
        for packet in packets.drain(..) {
            port.send(&mut pool, packet).unwrap();
        }
        port.flush(&mut pool).unwrap();
        assert!(handle.wait_sent(4, Duration::from_secs(10)));
        assert_eq!(handle.collect(), [[0; 20], [1; 20], [2; 20], [3; 20]]);
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn a_full_ring_hands_packets_back_and_close_gives_slots_back() {
        let mut pool = Pool::new(8, 2048).unwrap();
        let (mut port, handle) = MemoryPort::pair("m0", 2).unwrap();
        let mut refused = 0;
        for i in 0..6 {
            let packet = pool.copy_in(&[i; 20], 0).unwrap();
            if let Err(packet) = port.send(&mut pool, packet) {
                pool.give(packet.slot);
                refused += 1;
            }
            port.flush(&mut pool).unwrap();
        }
        assert_eq!((refused, handle.sent(), pool.free()), (2, 2, 6));
        port.close(&mut pool);
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn a_failure_is_told_and_passes() {
        let mut pool = Pool::new(2, 2048).unwrap();
        let (mut port, handle) = MemoryPort::pair("m0", 2).unwrap();
        handle.fail(Some(libc::ENODEV));
        let mut packets = Vec::with_capacity(2);
        assert!(port.receive(&mut pool, 0, &mut packets, 1).unwrap_err().is_gone());
        handle.fail(None);
        assert_eq!(port.receive(&mut pool, 0, &mut packets, 1).unwrap(), 0);
        handle.end();
        assert!(port.ended());
    }
}
