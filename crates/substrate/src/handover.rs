//! Passes frames from one thread of a data plane to another. Between any two threads there is a ring of bytes in each
//! direction, with one writer and one reader, in memory that two processes can share.
//!
//! Flow: a frame arrives at the home of its port and is decided at the home of its network; if it leaves by a port of
//! another home, it crosses again. Homes are the workers of the software substrate, and the thread of a card. Each
//! crossing copies the frame, so that no thread uses the packet memory of another.
//! An entry is a [`Record`] and the frame's bytes. No network may fill a ring: a network's bytes in it are at most
//! half of the free space (so a single network takes at most a third of the ring). Units: bytes.
//! A network may be removed while its frames are in a ring, and another may get its VID: see [`Home::generation`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hue_demux::PortId;
use hue_planes::Debts;
use hue_ports::{Packet, Pool, RingReader, RingWriter, SharedMemory, ring_bytes};
use hue_tables::{MacKey, Vid};
use serde::{Deserialize, Serialize};

use crate::follow::{Ending, Followed, FrameKey};
use crate::wake::Wake;

/// Bytes of each ring.
pub const RING_BYTES: usize = 1 << 20;
/// Bytes of a record in a ring, before its frame.
pub const RECORD_BYTES: usize = 20;
/// More records than a ring holds.
pub const RING_RECORDS_MAX: usize = RING_BYTES / RECORD_BYTES;
/// Bytes of the debts of one meter.
const DEBTS_BYTES: usize = 40;
/// Bytes of [`AllDebts`], which follow their record: which debts there are, and the debts.
const ALL_DEBTS_BYTES: usize = 1 + 2 * DEBTS_BYTES;
/// Bytes of a [`Sighting`] behind its record.
const SIGHTING_BYTES: usize = 16;
/// Networks that a ring counts for.
const NETWORKS: usize = Vid::MAX as usize + 1;
/// Bytes of memory for one direction: what its reader has taken of each network, then its ring.
const DIRECTION_BYTES: usize = NETWORKS * 4 + ring_bytes(RING_BYTES);
/// Where the first direction begins. Before it is what is [`Followed`].
const DIRECTIONS_AT: usize = 128;
/// Bytes of memory between two threads.
const PAIR_BYTES: usize = DIRECTIONS_AT + 2 * DIRECTION_BYTES;
/// Most sightings in one record.
pub const SIGHTINGS_MAX: usize = 64;

/// What the other worker must do with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// Decide it: it arrived on `port` for the network.
    Arrived,
    /// Send it on `port` for the network.
    Leaves,
    /// Send it on `port` for the network's control plane.
    FromControl,
    /// Not a frame: a mark. The network's home returns it after all frames of the network that were handed over
    /// before it. `time_ns` names the mark.
    Fence,
    /// Not a frame: a frame of the followed network has ended. `time_ns` is its key, `vport` the [`Ending`]'s code.
    Ended,
    /// Not a frame: the debts of the network's meters, which its home adopts. A record without debts asks for them;
    /// the home answers immediately, with the same `time_ns`.
    Debts,
    /// Not a frame: where MAC addresses are, as the sender has learnt ([`Sighting`]). The receiver learns it too. A record
    /// without sightings asks a network's home for all that it has learnt; it answers with such records, then with the
    /// debts of the network, all with the same `time_ns`. Until the next fence, it also tells what it learns meanwhile.
    Learnt,
}

impl Crossing {
    const ALL: [Self; 7] =
        [Self::Arrived, Self::Leaves, Self::FromControl, Self::Fence, Self::Ended, Self::Debts, Self::Learnt];
}

/// The debts of a network's meters, as far as it has them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AllDebts {
    /// Of its rate limit.
    pub rate: Option<Debts>,
    /// Of its storm limit.
    pub storm: Option<Debts>,
}

/// A MAC address that was seen at a virtual port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// The address.
    pub mac: MacKey,
    /// Index of the virtual port.
    pub vport: u16,
    /// When, nanoseconds.
    pub seen_ns: u64,
}

/// The thread that decides a network's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Home {
    /// The thread.
    pub worker: usize,
    /// Distinguishes the network from earlier ones with the same VID. A frame of a removed network may still be in a
    /// ring; it then belongs to no network. Increases by one with each loaded network; wraps.
    pub generation: u16,
}

/// The header before a frame's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What to do with it.
    pub crossing: Crossing,
    /// The physical port.
    pub port: PortId,
    /// Its network.
    pub vid: Vid,
    /// The network's generation; see [`Home::generation`].
    pub generation: u16,
    /// The network's virtual port on `port`.
    pub vport: u16,
    /// When it arrived, nanoseconds.
    pub time_ns: u64,
    /// Its length, bytes.
    pub len: u32,
}

impl Record {
    /// Reports how a frame of a network ended.
    #[must_use]
    pub const fn of_ending(vid: Vid, generation: u16, key: FrameKey, ending: Ending) -> Self {
        Self { vport: ending.code(), ..Self::mark(Crossing::Ended, vid, generation, key.frame) }
    }

    /// Debts of a network's meter, or a request for them; `name` identifies the answer.
    #[must_use]
    pub const fn of_debts(vid: Vid, generation: u16, name: u64) -> Self {
        Self::mark(Crossing::Debts, vid, generation, name)
    }

    /// Sightings of MAC addresses in a network, or a request for them; `name` identifies the answer.
    #[must_use]
    pub const fn of_learnt(vid: Vid, generation: u16, name: u64) -> Self {
        Self::mark(Crossing::Learnt, vid, generation, name)
    }

    /// A mark behind a network's frames.
    #[must_use]
    pub const fn of_fence(vid: Vid, generation: u16, name: u64) -> Self {
        Self::mark(Crossing::Fence, vid, generation, name)
    }

    /// A record that is not a frame.
    const fn mark(crossing: Crossing, vid: Vid, generation: u16, time_ns: u64) -> Self {
        Self { crossing, port: PortId::new(0), vid, generation, vport: 0, time_ns, len: 0 }
    }

    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.crossing as u8;
        bytes[1] = self.port.get();
        bytes[2..4].copy_from_slice(&self.vid.get().to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.vport.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.generation.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_ne_bytes());
        bytes[12..20].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }

    fn decode(bytes: [u8; RECORD_BYTES]) -> Option<Self> {
        let [crossing, port, v0, v1, p0, p1, g0, g1, l0, l1, l2, l3, time_ns @ ..] = bytes;
        Some(Self {
            crossing: *Crossing::ALL.get(usize::from(crossing))?,
            port: PortId::new(port),
            vid: Vid::new(u16::from_ne_bytes([v0, v1]))?,
            vport: u16::from_ne_bytes([p0, p1]),
            generation: u16::from_ne_bytes([g0, g1]),
            len: u32::from_ne_bytes([l0, l1, l2, l3]),
            time_ns: u64::from_ne_bytes(time_ns),
        })
    }
}

/// Bytes of each network that the reader has taken in total, by VID; wraps.
struct Taken {
    memory: Arc<SharedMemory>,
    at: usize,
}

impl Taken {
    fn of(&self, vid: Vid) -> &AtomicU32 {
        let [word] = self.memory.words(self.at + vid.index() * 4);
        word
    }
}

/// The writing end.
pub struct Outgoing {
    ring: RingWriter,
    given: Box<[u32]>,
    taken: Taken,
}

/// The reading end.
pub struct Incoming {
    ring: RingReader,
    taken: Taken,
    /// Debts of the latest such record; `None` if it was a request.
    debts: Option<AllDebts>,
    /// Sightings of the latest such record; none if it was a request.
    sightings: Vec<Sighting>,
}

/// Another thread of the data plane, as seen from this one.
pub struct Peer {
    /// Ring to it.
    pub out: Outgoing,
    /// Ring from it.
    pub into: Incoming,
    /// Wakes it.
    pub wake: Arc<Wake>,
    /// The network whose frames are followed. A guest sets it and a worker reads it.
    pub followed: Followed,
    memory: Arc<SharedMemory>,
}

impl Peer {
    /// The two ends of the connection between two threads, given their wake-ups: the first thread's view of the
    /// second, and the reverse.
    ///
    /// # Errors
    /// If the system has no memory or descriptor left.
    pub fn pair(first: &Arc<Wake>, second: &Arc<Wake>) -> io::Result<(Self, Self)> {
        let memory = SharedMemory::new(PAIR_BYTES)?;
        Ok((Self::end(&memory, [0, 1], second), Self::end(&memory, [1, 0], first)))
    }

    /// The descriptor of the memory with which another process makes this end ([`Peer::open`]), if this one is not used.
    #[must_use]
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// The second thread's end of a pair that another process has made.
    ///
    /// # Errors
    /// If it is not the memory of a pair.
    pub fn open(memory: OwnedFd, first: &Arc<Wake>) -> io::Result<Self> {
        Ok(Self::end(&SharedMemory::open(memory, PAIR_BYTES)?, [1, 0], first))
    }

    /// One end: it writes in the first of two directions, and reads in the second.
    fn end(memory: &Arc<SharedMemory>, [writes, reads]: [usize; 2], other: &Arc<Wake>) -> Self {
        let at = |direction: usize| DIRECTIONS_AT + direction * DIRECTION_BYTES;
        Self {
            out: Outgoing::new(memory, at(writes)),
            into: Incoming::new(memory, at(reads)),
            wake: Arc::clone(other),
            followed: Followed::new(memory, 0),
            memory: Arc::clone(memory),
        }
    }
}

impl Outgoing {
    fn new(memory: &Arc<SharedMemory>, at: usize) -> Self {
        Self {
            ring: RingWriter::new(Arc::clone(memory), at + NETWORKS * 4, RING_BYTES),
            given: vec![0; NETWORKS].into_boxed_slice(),
            taken: Taken { memory: Arc::clone(memory), at },
        }
    }

    /// Bytes that a network can hand over now, records included, before the ring refuses some. `None` if others fill most of the ring
    /// and the network has nothing in it: whoever waits for room must not wait for them.
    #[must_use]
    pub fn free(&self, vid: Vid) -> Option<usize> {
        let (room, held) = (self.ring.room(), self.held(vid)?);
        if held == 0 && room < RING_BYTES / 2 {
            return None;
        }
        // A push takes from the room, half of which is the network's: x bytes fit if held + x <= (room - x) / 2.
        Some((room / 2).saturating_sub(held) / 3 * 2)
    }

    /// Bytes of a network in the ring, records included.
    fn held(&self, vid: Vid) -> Option<usize> {
        let given = self.given.get(vid.index())?;
        Some(given.wrapping_sub(self.taken.of(vid).load(Ordering::Acquire)) as usize)
    }

    /// Hands over debts with their record ([`Record::of_debts`]); returns `false` if the network has no room left in
    /// the ring.
    #[must_use]
    pub fn push_debts(&mut self, record: &Record, debts: &AllDebts) -> bool {
        self.push(record, &encode_debts(debts))
    }

    /// Hands over sightings with their record ([`Record::of_learnt`]), at most [`SIGHTINGS_MAX`]; returns `false` if the
    /// network has no room left in the ring.
    #[must_use]
    pub fn push_sightings(&mut self, record: &Record, sightings: &[Sighting]) -> bool {
        let mut bytes = [0; SIGHTINGS_MAX * SIGHTING_BYTES];
        let places = bytes.chunks_exact_mut(SIGHTING_BYTES);
        for (place, Sighting { mac, vport, seen_ns }) in places.zip(sightings) {
            let (what, when) = place.split_at_mut(8);
            what.copy_from_slice(&(mac << 16 | u64::from(*vport)).to_ne_bytes());
            when.copy_from_slice(&seen_ns.to_ne_bytes());
        }
        let len = sightings.len() * SIGHTING_BYTES;
        bytes.get(..len).is_some_and(|bytes| self.push(record, bytes))
    }

    /// Copies a frame into the ring; returns `false` if the network has no room left in the ring.
    #[must_use]
    pub fn push(&mut self, record: &Record, bytes: &[u8]) -> bool {
        let cost = RECORD_BYTES + bytes.len();
        let room = self.ring.room();
        let Some(held) = self.held(record.vid) else { return false };
        if cost > room || held.saturating_add(cost) > (room / 2).max(cost) {
            return false;
        }
        let record = Record { len: bytes.len() as u32, ..*record };
        if !self.ring.write(&[&record.encode(), bytes]) {
            return false; // there was room
        }
        if let Some(given) = self.given.get_mut(record.vid.index()) {
            *given = given.wrapping_add(cost as u32);
        }
        true
    }
}

fn encode_debts(debts: &AllDebts) -> [u8; ALL_DEBTS_BYTES] {
    let mut bytes = [0; ALL_DEBTS_BYTES];
    bytes[0] = u8::from(debts.rate.is_some()) | u8::from(debts.storm.is_some()) << 1;
    for (place, debts) in bytes[1..].chunks_exact_mut(DEBTS_BYTES).zip([debts.rate, debts.storm]) {
        let debts = debts.unwrap_or_default();
        place[..16].copy_from_slice(&debts.packets.to_ne_bytes());
        place[16..32].copy_from_slice(&debts.bits.to_ne_bytes());
        place[32..].copy_from_slice(&debts.last_ns.to_ne_bytes());
    }
    bytes
}

fn decode_debts(bytes: &[u8; ALL_DEBTS_BYTES]) -> Option<AllDebts> {
    let (which, rest) = bytes.split_first()?;
    let one = |at: u8| {
        let (packets, rest) = rest.get(usize::from(at) * DEBTS_BYTES..)?.split_first_chunk()?;
        let (bits, rest) = rest.split_first_chunk()?;
        let last_ns = u64::from_ne_bytes(*rest.first_chunk()?);
        let debts =
            Debts { packets: u128::from_ne_bytes(*packets), bits: u128::from_ne_bytes(*bits), last_ns };
        (which >> at & 1 != 0).then_some(debts)
    };
    Some(AllDebts { rate: one(0), storm: one(1) })
}

fn decode_sighting(bytes: &[u8]) -> Option<Sighting> {
    let (what, when) = bytes.split_first_chunk()?;
    let what = u64::from_ne_bytes(*what);
    Some(Sighting { mac: what >> 16, vport: what as u16, seen_ns: u64::from_ne_bytes(*when.first_chunk()?) })
}

impl Incoming {
    fn new(memory: &Arc<SharedMemory>, at: usize) -> Self {
        Self {
            ring: RingReader::new(Arc::clone(memory), at + NETWORKS * 4, RING_BYTES),
            taken: Taken { memory: Arc::clone(memory), at },
            debts: None,
            sightings: Vec::with_capacity(SIGHTINGS_MAX),
        }
    }

    /// Whether the ring is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The debts of the record that [`Incoming::pop`] returned last, if it had any.
    pub fn take_debts(&mut self) -> Option<AllDebts> {
        self.debts.take()
    }

    /// The sightings of the record that [`Incoming::pop`] returned last; none if it was another record, or a request.
    pub fn sightings(&self) -> &[Sighting] {
        &self.sightings
    }

    /// Copies the next frame into a slot of `pool`. `Ok(None)` if the ring is empty.
    ///
    /// # Errors
    /// The record of a frame for which there is no free slot; the frame is lost. Or a record of debts or sightings: these
    /// need no slot and are not lost, see [`Incoming::take_debts`] and [`Incoming::sightings`].
    pub fn pop(&mut self, pool: &mut Pool) -> Result<Option<(Record, Packet)>, Record> {
        let mut bytes = [0; RECORD_BYTES];
        // What does not decode was never written.
        let record = self.ring.copy(0, &mut bytes).then(|| Record::decode(bytes)).flatten();
        let Some(record) = record else { return Ok(None) };
        let len = record.len as usize;
        self.sightings.clear();
        if matches!(record.crossing, Crossing::Debts | Crossing::Learnt) {
            let mut bytes = [0; SIGHTINGS_MAX * SIGHTING_BYTES];
            let bytes = bytes.get_mut(..len).unwrap_or_default();
            let whole = self.ring.copy(RECORD_BYTES, bytes);
            if record.crossing == Crossing::Debts {
                let bytes = <&[u8; ALL_DEBTS_BYTES]>::try_from(&*bytes).ok().filter(|_| whole);
                self.debts = bytes.and_then(decode_debts);
            } else if whole {
                self.sightings.extend(bytes.chunks_exact(SIGHTING_BYTES).filter_map(decode_sighting));
            }
            self.took(record.vid, len);
            return Err(record);
        }
        let packet = (record.len <= pool.frame_bytes_max()).then(|| pool.take()).flatten();
        let result = match packet {
            None => Err(record),
            Some(slot) => {
                let start = pool.start(&slot);
                let packet = Packet { slot, start, len: record.len, time_ns: record.time_ns, class: 0 };
                let _ = self.ring.copy(RECORD_BYTES, packet.bytes_mut(pool)); // they were written with the record
                Ok(Some((record, packet)))
            }
        };
        self.took(record.vid, len);
        result
    }

    /// Takes a record and its bytes out of the ring.
    fn took(&mut self, vid: Vid, len: usize) {
        let bytes = RECORD_BYTES + len;
        self.ring.consume(bytes);
        let taken = self.taken.of(vid);
        // There is only one writer.
        taken.store(taken.load(Ordering::Relaxed).wrapping_add(bytes as u32), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> (Outgoing, Incoming) {
        let wakes = [(); 2].map(|()| Arc::new(Wake::new().unwrap()));
        let (first, second) = Peer::pair(&wakes[0], &wakes[1]).unwrap();
        (first.out, second.into)
    }

    fn record(id: u16) -> Record {
        let (port, vid) = (PortId::new(3), Vid::new(id).unwrap());
        Record {
            crossing: Crossing::Leaves,
            port,
            vid,
            generation: 0x1234,
            vport: 7,
            time_ns: 1 << 60,
            len: 0,
        }
    }

    #[test]
    fn frames_cross_whole_and_in_order() {
        let (mut out, mut into) = ring();
        let mut pool = Pool::new(8, 2048).unwrap();
        assert!(into.is_empty() && into.pop(&mut pool).unwrap().is_none());
        // Far more than the ring holds, so that records lie across its end.
        for n in 0..5000u32 {
            let bytes = vec![n as u8; 60 + n as usize % 1400];
            assert!(out.push(&record(1 + n as u16 % 3), &bytes));
            let (found, packet) = into.pop(&mut pool).unwrap().unwrap();
            assert_eq!(found, Record { len: bytes.len() as u32, ..record(1 + n as u16 % 3) });
            assert_eq!(packet.bytes(&pool), bytes);
            pool.give(packet.slot);
        }
        assert!(into.is_empty());
        let fence = Record { crossing: Crossing::Fence, ..record(2) };
        assert!(out.push(&fence, &[]));
        let (found, packet) = into.pop(&mut pool).unwrap().unwrap();
        assert_eq!((found, packet.len), (fence, 0));
    }

    #[test]
    fn no_network_fills_the_ring() {
        let (mut out, mut into) = ring();
        let mut pool = Pool::new(8, 2048).unwrap();
        let fill =
            |out: &mut Outgoing, id| (0..1 << 20).take_while(|_| out.push(&record(id), &[0; 1000])).count();
        let first = fill(&mut out, 1);
        let second = fill(&mut out, 2);
        assert!(first > RING_BYTES / 4 / 1020 && first < RING_BYTES / 2 / 1020, "{first}");
        assert!(second > RING_BYTES / 8 / 1020, "{second}");
        for _ in 0..first {
            let (found, packet) = into.pop(&mut pool).unwrap().unwrap();
            assert_eq!(found.vid.get(), 1);
            pool.give(packet.slot);
        }
        assert!(fill(&mut out, 1) > 0, "taken bytes are free again");
    }

    /// What the ring says to be free it takes, also beside frames of others.
    #[test]
    fn free_bytes_are_taken() {
        for (held, others) in [(0, 0), (100, 0), (0, 300), (0, 600), (50, 300), (200, 100)] {
            let (mut out, _into) = ring();
            assert!((0..held).all(|_| out.push(&record(1), &[0; 1000])));
            let _ = (0..others).take_while(|_| out.push(&record(2), &[0; 1000])).count();
            let Some(free) = out.free(record(1).vid) else {
                assert!(held == 0 && others > 0, "{held} {others}");
                continue;
            };
            let mut given = 0;
            while given + RECORD_BYTES + 1514 <= free {
                assert!(out.push(&record(1), &[0; 1514]), "{given} of {free}, {held} {others}");
                given += RECORD_BYTES + 1514;
            }
            let more = (0..).take_while(|_| out.push(&record(1), &[0; 1514])).count();
            assert!(more * 1534 <= RING_BYTES / 32, "{free} is too little: {more} more");
        }
    }

    #[test]
    fn debts_cross_in_their_place_and_need_no_slot() {
        let (mut out, mut into) = ring();
        let mut pool = Pool::new(1, 2048).unwrap();
        let debts = Debts { packets: Debts::MAX, bits: 1 << 65, last_ns: 1 << 60 };
        let debts = AllDebts { rate: None, storm: Some(debts) };
        let name = Record::of_debts(Vid::new(2).unwrap(), 7, 1 << 50);
        assert!(out.push(&record(2), &[1; 100]));
        assert!(out.push_debts(&name, &debts) && out.push(&name, &[]) && out.push(&record(2), &[2; 100]));
        let (_, first) = into.pop(&mut pool).unwrap().unwrap();
        assert!(pool.free() == 0 && into.take_debts().is_none());
        assert_eq!(into.pop(&mut pool).unwrap_err(), Record { len: 81, ..name });
        assert_eq!((into.take_debts(), into.take_debts()), (Some(debts), None));
        assert_eq!(into.pop(&mut pool).unwrap_err(), name);
        assert_eq!(into.take_debts(), None, "a question");
        pool.give(first.slot);
        assert_eq!(into.pop(&mut pool).unwrap().unwrap().1.bytes(&pool), [2; 100]);
        assert!(into.is_empty());
    }

    #[test]
    fn sightings_cross_in_their_place_and_need_no_slot() {
        let (mut out, mut into) = ring();
        let mut pool = Pool::new(1, 2048).unwrap();
        let all: Vec<Sighting> = (0..SIGHTINGS_MAX as u64)
            .map(|n| Sighting { mac: 0xffff_ffff_ffff - n, vport: n as u16 * 1000, seen_ns: u64::MAX - n })
            .collect();
        let name = Record::of_learnt(Vid::new(2).unwrap(), 7, 1 << 50);
        assert!(out.push_sightings(&name, &all) && out.push_sightings(&name, &all[3..4]));
        assert!(out.push_sightings(&name, &[]) && out.push(&record(2), &[2; 100]));
        for sightings in [&all[..], &all[3..4], &[]] {
            let len = 16 * sightings.len() as u32;
            assert_eq!(into.pop(&mut pool).unwrap_err(), Record { len, ..name });
            assert_eq!(into.sightings(), sightings);
        }
        assert_eq!(into.pop(&mut pool).unwrap().unwrap().1.bytes(&pool), [2; 100]);
        assert!(into.is_empty());
        assert!(!out.push_sightings(&name, &[all[0]; SIGHTINGS_MAX + 1]));
    }

    #[test]
    fn a_frame_without_a_slot_is_told_and_gone() {
        let (mut out, mut into) = ring();
        let mut pool = Pool::new(1, 2048).unwrap();
        assert!(
            out.push(&record(1), &[1; 100])
                && out.push(&record(2), &[2; 3000])
                && out.push(&record(3), &[3; 60])
        );
        let slot = pool.take().unwrap();
        assert_eq!(into.pop(&mut pool).unwrap_err().vid.get(), 1);
        pool.give(slot);
        assert_eq!(into.pop(&mut pool).unwrap_err().vid.get(), 2, "longer than a slot");
        assert_eq!(into.pop(&mut pool).unwrap().unwrap().0.vid.get(), 3);
    }
}
