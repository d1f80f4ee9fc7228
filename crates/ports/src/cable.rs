//! A cable inside the process: two ports, and what one sends the other receives.
//!
//! Flow: network's worker → [`Port::send`] → ring → [`Port::receive`] → the other network's worker. Each direction has a
//! ring of bytes with one producer and one consumer (`rtrb`), so a worker never waits for another. Invariants: frames
//! keep their order; a frame without room in the ring is handed back to its sender, whatever the receiver does; an end
//! that opens again receives nothing from before.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::{Driver, DriverCounters, Packet, Pool, Port, PortError, sys};

/// Bytes of a ring: 340 frames of 1,514 bytes, or 56 of 9,216.
const RING_BYTES: usize = 512 << 10;
/// Bytes before each frame in the ring: its length.
const HEAD_BYTES: usize = 2;

/// One of the two plugs of a cable. It outlives the ports that are opened on it.
#[derive(Clone)]
pub struct CablePlug {
    shared: Arc<Shared>,
    side: usize,
}

/// An end of a cable, open.
pub struct CableEnd {
    plug: CablePlug,
    /// `None` once closed.
    rings: Option<Rings>,
    /// Whether the other side has not been told of frames in its ring.
    untold: bool,
    /// For a frame that continues at the beginning of the ring.
    scratch: Vec<u8>,
    counters: DriverCounters,
}

struct Shared {
    sides: [Side; 2],
}

struct Side {
    /// The rings while no port is open on this side. Opening and closing take the lock; frames do not.
    parked: Mutex<Option<Rings>>,
    open: AtomicBool,
    /// Readable when frames may have arrived.
    readable: OwnedFd,
    /// Whether `readable` is readable.
    signalled: AtomicBool,
}

struct Rings {
    sends: Producer<u8>,
    receives: Consumer<u8>,
}

impl CablePlug {
    /// The first plug of a new cable.
    ///
    /// # Errors
    /// `System` if the process has no descriptors left.
    pub fn new() -> Result<Self, PortError> {
        let descriptor =
            || sys::eventfd().map_err(|source| PortError::of("link", "make an event descriptor", source));
        let (to_second, from_first) = RingBuffer::new(RING_BYTES);
        let (to_first, from_second) = RingBuffer::new(RING_BYTES);
        let side = |sends, receives| {
            Ok::<_, PortError>(Side {
                parked: Mutex::new(Some(Rings { sends, receives })),
                open: AtomicBool::new(false),
                readable: descriptor()?,
                signalled: AtomicBool::new(false),
            })
        };
        let sides = [side(to_second, from_second)?, side(to_first, from_first)?];
        Ok(Self { shared: Arc::new(Shared { sides }), side: 0 })
    }

    /// The plug at the other end.
    #[must_use]
    pub fn other(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), side: 1 - self.side }
    }

    /// Opens a port on this plug. Frames that are still in its ring are lost.
    ///
    /// # Errors
    /// `Unfit` while another port is open on it.
    pub fn open(&self) -> Result<CableEnd, PortError> {
        let rings = self.here().parked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut rings) = rings else {
            return Err(PortError::Unfit {
                interface: "link".to_owned(),
                driver: "link",
                found: "this end is still in use".to_owned(),
            });
        };
        rings.drain();
        self.here().open.store(true, Ordering::Release);
        Ok(CableEnd {
            plug: self.clone(),
            rings: Some(rings),
            untold: false,
            scratch: vec![0; usize::from(u16::MAX)],
            counters: DriverCounters::default(),
        })
    }

    fn here(&self) -> &Side {
        &self.shared.sides[self.side]
    }

    fn there(&self) -> &Side {
        &self.shared.sides[1 - self.side]
    }
}

impl Side {
    /// Makes the side's descriptor readable, if it is not.
    fn signal(&self) {
        // Orders the frames in the ring before the flag; the receiver does the same the other way round.
        fence(Ordering::SeqCst);
        if !self.signalled.swap(true, Ordering::SeqCst) {
            sys::signal(self.readable.as_fd());
        }
    }

    /// Makes the side's descriptor unreadable. The caller must look into the ring once more.
    fn clear(&self) {
        if self.signalled.load(Ordering::Relaxed) {
            self.signalled.store(false, Ordering::SeqCst);
            sys::clear(self.readable.as_fd());
            fence(Ordering::SeqCst);
        }
    }
}

impl Rings {
    /// Discards what has arrived.
    fn drain(&mut self) {
        let waiting = self.receives.slots();
        if let Ok(chunk) = self.receives.read_chunk(waiting) {
            chunk.commit_all();
        }
    }

    /// Adds a frame; `false` if there is no room.
    fn push(&mut self, frame: &[u8]) -> bool {
        let Ok(length) = u16::try_from(frame.len()) else { return false };
        // The receiver takes the length only together with the frame.
        self.sends.slots() >= HEAD_BYTES + frame.len()
            && self.sends.push_entire_slice(&length.to_ne_bytes()).is_ok()
            && self.sends.push_entire_slice(frame).is_ok()
    }

    /// Passes the oldest frame to `take`, and removes it unless `take` returns `false`. Returns whether it was removed.
    fn pop(&mut self, scratch: &mut [u8], take: impl FnOnce(&[u8]) -> bool) -> bool {
        // Read, and not removed yet.
        let Ok(head) = self.receives.read_chunk(HEAD_BYTES) else { return false };
        let mut length = [0; HEAD_BYTES];
        let (first, second) = head.as_slices();
        length.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from);
        // The length stays in the ring until the frame is removed with it.
        let length = usize::from(u16::from_ne_bytes(length));
        let Ok(record) = self.receives.read_chunk(HEAD_BYTES + length) else { return false };
        let (first, second) = record.as_slices();
        let taken = match first.get(HEAD_BYTES..) {
            Some(frame) if second.is_empty() => take(frame),
            first => {
                // Only one frame of each turn of the ring.
                let first = first.unwrap_or_default();
                let (one, other) = scratch[..length].split_at_mut(first.len());
                one.copy_from_slice(first);
                other.copy_from_slice(&second[second.len() - other.len()..]);
                take(&scratch[..length])
            }
        };
        if taken {
            record.commit_all();
        }
        taken
    }
}

impl CableEnd {
    fn unplug(&mut self) {
        let Some(mut rings) = self.rings.take() else { return };
        let side = self.plug.here();
        side.open.store(false, Ordering::Release);
        rings.drain();
        *side.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(rings);
    }
}

impl Drop for CableEnd {
    fn drop(&mut self) {
        self.unplug();
    }
}

impl Port for CableEnd {
    fn driver(&self) -> Driver {
        Driver::Link
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        let Some(rings) = &mut self.rings else { return Ok(0) };
        if rings.receives.is_empty() {
            self.plug.here().clear();
        }
        let mut received = 0;
        while received < limit {
            let counters = &mut self.counters;
            let mut fits = false;
            let removed = rings.pop(&mut self.scratch, |frame| {
                if frame.len() > pool.frame_bytes_max() as usize {
                    counters.ring_full += 1;
                    return true;
                }
                let Some(packet) = pool.copy_in(frame, now_ns) else { return false };
                counters.received_packets += 1;
                counters.received_bytes += u64::from(packet.len);
                into.push(packet);
                fits = true;
                true
            });
            if !removed {
                break;
            }
            received += usize::from(fits);
        }
        Ok(received)
    }

    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        let Some(rings) = &mut self.rings else { return Err(packet) };
        let bytes = u64::from(packet.len);
        if !self.plug.there().open.load(Ordering::Acquire) {
            self.counters.send_failed += 1; // a cable with nothing at its other end
        } else if rings.push(packet.bytes(pool)) {
            self.untold = true;
        } else {
            return Err(packet);
        }
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += bytes;
        pool.give(packet.slot);
        Ok(())
    }

    fn flush(&mut self, _pool: &mut Pool) -> Result<(), PortError> {
        if std::mem::take(&mut self.untold) {
            self.plug.there().signal();
        }
        Ok(())
    }

    fn close(&mut self, _pool: &mut Pool) {
        self.unplug();
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.plug.here().readable.as_fd())
    }

    fn counters(&self) -> DriverCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn send(end: &mut CableEnd, pool: &mut Pool, bytes: &[u8]) -> bool {
        let packet = pool.copy_in(bytes, 0).unwrap();
        let sent = end.send(pool, packet).map_err(|packet| pool.give(packet.slot)).is_ok();
        end.flush(pool).unwrap();
        sent
    }

    fn receive(end: &mut CableEnd, pool: &mut Pool) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        end.receive(pool, 7, &mut packets, 64).unwrap();
        packets
            .into_iter()
            .map(|packet| {
                let bytes = packet.bytes(pool).to_vec();
                pool.give(packet.slot);
                bytes
            })
            .collect()
    }

    fn readable(end: &CableEnd) -> bool {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&end.readiness().unwrap());
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, a local.
        #[allow(unsafe_code)]
        let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
        ready == 1
    }

    #[test]
    fn what_one_end_sends_the_other_receives() {
        let mut pool = Pool::new(8, 2048).unwrap();
        let plug = CablePlug::new().unwrap();
        let (mut one, mut other) = (plug.open().unwrap(), plug.other().open().unwrap());
        assert!(plug.open().is_err(), "this side is in use");
        assert!(!readable(&one) && !readable(&other));
        assert!(send(&mut one, &mut pool, &[1; 60]) && send(&mut one, &mut pool, &[2; 1514]));
        assert!(send(&mut other, &mut pool, &[3; 64]));
        assert!(readable(&one) && readable(&other));
        assert_eq!(receive(&mut other, &mut pool), [vec![1; 60], vec![2; 1514]]);
        assert_eq!(receive(&mut one, &mut pool), [vec![3; 64]]);
        assert_eq!(receive(&mut one, &mut pool).len() + receive(&mut other, &mut pool).len(), 0);
        assert!(!readable(&one) && !readable(&other), "an empty end must let its worker sleep");
        assert_eq!((one.counters().sent_packets, other.counters().received_bytes), (2, 1574));
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn a_full_ring_hands_the_packet_back() {
        let mut pool = Pool::new(2, 2048).unwrap();
        let plug = CablePlug::new().unwrap();
        let (mut one, mut other) = (plug.open().unwrap(), plug.other().open().unwrap());
        let mut sent = 0;
        while send(&mut one, &mut pool, &[5; 1514]) {
            sent += 1;
        }
        assert_eq!(sent, RING_BYTES / (1514 + HEAD_BYTES));
        assert_eq!(receive(&mut other, &mut pool).len(), 2, "only as many as there are slots");
        assert!(send(&mut one, &mut pool, &[5; 1514]));
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn an_end_without_peer_loses_what_it_sends_and_an_end_opened_again_gets_nothing_old() {
        let mut pool = Pool::new(4, 2048).unwrap();
        let plug = CablePlug::new().unwrap();
        let mut one = plug.open().unwrap();
        assert!(send(&mut one, &mut pool, &[1; 60]));
        assert_eq!(one.counters().send_failed, 1);
        let mut other = plug.other().open().unwrap();
        assert!(send(&mut one, &mut pool, &[2; 60]));
        other.close(&mut pool);
        drop(other);
        let mut other = plug.other().open().unwrap();
        assert!(receive(&mut other, &mut pool).is_empty());
        assert!(send(&mut one, &mut pool, &[3; 60]));
        assert_eq!(receive(&mut other, &mut pool), [vec![3; 60]]);
    }

    #[test]
    fn frames_of_all_lengths_cross_threads_in_order() {
        const FRAMES: u32 = 20_000;
        let plug = CablePlug::new().unwrap();
        let (mut one, mut other) = (plug.open().unwrap(), plug.other().open().unwrap());
        let length = |number: u32| 14 + (number * 37 % 1500) as usize;
        let sender = thread::spawn(move || {
            let mut pool = Pool::new(4, 2048).unwrap();
            for number in 0..FRAMES {
                let mut frame = vec![number as u8; length(number)];
                frame[..4].copy_from_slice(&number.to_be_bytes());
                while !send(&mut one, &mut pool, &frame) {
                    thread::yield_now();
                }
            }
            one
        });
        let mut pool = Pool::new(64, 2048).unwrap();
        let mut next = 0u32;
        while next < FRAMES {
            let frames = receive(&mut other, &mut pool);
            if frames.is_empty() {
                // A lost wake-up would make this wait for ever.
                let fd = std::os::fd::AsRawFd::as_raw_fd(&other.readiness().unwrap());
                let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                // SAFETY: one entry, a local.
                #[allow(unsafe_code)]
                let ready = unsafe { libc::poll(&raw mut poll, 1, 10_000) };
                assert_eq!(ready, 1, "frame {next}: no wake-up");
            }
            for frame in frames {
                assert_eq!(frame[..4], next.to_be_bytes());
                assert!(frame.len() == length(next) && frame[4..].iter().all(|byte| *byte == next as u8));
                next += 1;
            }
        }
        drop(sender.join().unwrap());
    }
}
