//! A port with a bad wire, which loses, duplicates, reorders, truncates and corrupts packets, as determined by a
//! seed.
//!
//! Flow: wraps any port, in both directions; each direction has its own faults and its own stream of random numbers.
//! Invariants: what happens to the nth packet of a direction depends on seed, faults and n alone, not on batches or
//! time, as long as slots are free; every fault is counted; a held packet (reordering) leaves after at most
//! [`DISTANCE_MAX`] others, or when the direction falls idle.

use std::os::fd::BorrowedFd;

use crate::{ClassLosses, ClassRule, Driver, DriverCounters, Ending, Packet, Pool, Port, PortError};

/// How far back a packet may fall, packets.
pub const DISTANCE_MAX: u32 = 8;
/// Maximum number of packets held in one direction. When it is reached, no more packets are reordered.
const HELD_MAX: usize = 16;
/// Held packets leave when nothing was received for this time, nanoseconds.
const IDLE_NS: u64 = 10_000_000;

/// Probabilities, each from 0 to 1 and for each packet by itself.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Faults {
    /// It is lost.
    pub loss: f64,
    /// It arrives twice.
    pub duplication: f64,
    /// It arrives after packets that were behind it.
    pub reordering: f64,
    /// Its end is missing; at least one byte is left.
    pub truncation: f64,
    /// One bit is inverted.
    pub corruption: f64,
}

/// Faults so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultCounts {
    /// Packets that came into this direction.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets held back.
    pub reordered: u64,
    /// Packets truncated.
    pub truncated: u64,
    /// Packets with an inverted bit.
    pub corrupted: u64,
}

/// SplitMix64 (Steele, Lea, Flood 2014): a seed gives the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns `true` with this probability; always takes one random number.
    fn happens(&mut self, probability: f64) -> bool {
        // The top 53 bits, as a number from 0 up to but not including 1.
        let drawn = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        drawn < probability
    }
}

/// Fate of a packet.
enum Fate {
    Passes(Packet),
    Held,
    Lost,
}

/// One direction.
struct Lane {
    faults: Faults,
    random: Random,
    counts: FaultCounts,
    /// Packets held, and how many others must pass each first.
    held: Vec<(Packet, u32)>,
}

impl Lane {
    fn new(faults: Faults, seed: u64) -> Self {
        let held = Vec::with_capacity(HELD_MAX);
        Self { faults, random: Random(seed), counts: FaultCounts::default(), held }
    }

    /// Determines the fate of a packet. Other packets that leave together with it are added to `extra`.
    fn pass(&mut self, pool: &mut Pool, mut packet: Packet, extra: &mut Vec<Packet>) -> Fate {
        self.counts.packets += 1;
        // All numbers are always drawn, so that the fate of one packet does not change that of the next.
        let faults = self.faults;
        let lost = self.random.happens(faults.loss);
        let doubled = self.random.happens(faults.duplication);
        let reordered = self.random.happens(faults.reordering);
        let cut = self.random.happens(faults.truncation);
        let corrupted = self.random.happens(faults.corruption);
        let (distance, length, bit) = (self.random.next(), self.random.next(), self.random.next());
        if lost {
            self.counts.lost += 1;
            pool.give(packet.slot);
            self.release(extra);
            return Fate::Lost;
        }
        if doubled && let Some(copy) = pool.duplicate(&packet) {
            extra.push(copy);
            self.counts.duplicated += 1;
        }
        if cut && packet.len > 1 {
            packet.len = 1 + (length % u64::from(packet.len - 1)) as u32;
            self.counts.truncated += 1;
        }
        if corrupted && packet.len > 0 {
            let at = bit % (u64::from(packet.len) * 8);
            if let Some(byte) = packet.bytes_mut(pool).get_mut(at as usize / 8) {
                *byte ^= 1 << (at % 8);
            }
            self.counts.corrupted += 1;
        }
        self.release(extra);
        if reordered && self.held.len() < HELD_MAX {
            self.counts.reordered += 1;
            self.held.push((packet, 1 + (distance % u64::from(DISTANCE_MAX)) as u32));
            return Fate::Held;
        }
        Fate::Passes(packet)
    }

    /// Counts that a packet passed the held ones, and releases those that have waited long enough.
    fn release(&mut self, extra: &mut Vec<Packet>) {
        for (_, left) in &mut self.held {
            *left -= 1;
        }
        while let Some(at) = self.held.iter().position(|(_, left)| *left == 0) {
            extra.push(self.held.remove(at).0);
        }
    }

    fn close(&mut self, pool: &mut Pool) {
        for (packet, _) in self.held.drain(..) {
            pool.give(packet.slot);
        }
    }
}

/// A port with faults.
pub struct Faulty<P> {
    port: P,
    incoming: Lane,
    outgoing: Lane,
    /// Packets received from the wrapped port and not passed on yet; always empty between calls.
    fresh: Vec<Packet>,
    extra: Vec<Packet>,
    /// When a packet was received last, nanoseconds.
    busy_ns: u64,
    /// Whether something was sent since the last flush.
    sending: bool,
    /// Duplicated or late packets for which the wrapped port had no room.
    refused: u64,
}

impl<P: Port> Faulty<P> {
    /// Wraps `port`.
    pub fn new(port: P, seed: u64, receive: Faults, send: Faults) -> Self {
        Self {
            port,
            incoming: Lane::new(receive, seed),
            outgoing: Lane::new(send, !seed),
            fresh: Vec::with_capacity(256),
            extra: Vec::with_capacity(256),
            busy_ns: 0,
            sending: false,
            refused: 0,
        }
    }

    /// Faults of received packets, and of sent packets.
    #[must_use]
    pub fn faults(&self) -> (FaultCounts, FaultCounts) {
        (self.incoming.counts, self.outgoing.counts)
    }

    /// The wrapped port.
    #[must_use]
    pub fn inner(&self) -> &P {
        &self.port
    }

    fn send_extra(&mut self, pool: &mut Pool) {
        for packet in self.extra.drain(..) {
            if let Err(packet) = self.port.send(pool, packet) {
                pool.give(packet.slot);
                self.refused += 1;
            }
        }
    }
}

impl<P: Port> Port for Faulty<P> {
    fn driver(&self) -> Driver {
        self.port.driver()
    }

    fn ending(&self) -> Ending {
        self.port.ending()
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        let before = into.len();
        // Each packet may bring a copy and held packets; packets that were already received are never dropped because
        // of the limit.
        let limit = limit.min(self.fresh.capacity());
        let outcome = self.port.receive(pool, now_ns, &mut self.fresh, limit);
        if !self.fresh.is_empty() {
            self.busy_ns = now_ns;
        }
        for packet in self.fresh.drain(..) {
            let class = packet.class;
            match self.incoming.pass(pool, packet, &mut self.extra) {
                Fate::Passes(packet) => into.push(packet),
                Fate::Held => {}
                // It has left the receive ring.
                Fate::Lost if class != 0 => self.port.consumed(class, 1),
                Fate::Lost => {}
            }
            into.append(&mut self.extra);
        }
        if into.len() == before && now_ns.saturating_sub(self.busy_ns) > IDLE_NS {
            into.extend(self.incoming.held.drain(..).map(|(packet, _)| packet));
        }
        outcome.map(|_| into.len() - before)
    }

    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        self.sending = true;
        let outcome = match self.outgoing.pass(pool, packet, &mut self.extra) {
            Fate::Passes(packet) => self.port.send(pool, packet),
            Fate::Held | Fate::Lost => Ok(()),
        };
        self.send_extra(pool);
        outcome
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        if !self.sending {
            self.extra.extend(self.outgoing.held.drain(..).map(|(packet, _)| packet));
            self.send_extra(pool);
        }
        self.sending = false;
        self.port.flush(pool)
    }

    fn close(&mut self, pool: &mut Pool) {
        self.incoming.close(pool);
        self.outgoing.close(pool);
        self.port.close(pool);
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.port.readiness()
    }

    fn pending(&self) -> usize {
        self.port.pending() + self.outgoing.held.len()
    }

    fn consumed(&mut self, class: u16, count: u32) {
        self.port.consumed(class, count);
    }

    fn set_classes(&mut self, rules: &[ClassRule], quotas: &[(u16, u32)]) -> Result<(), PortError> {
        self.port.set_classes(rules, quotas)
    }

    fn lost(&self, class: u16) -> ClassLosses {
        self.port.lost(class)
    }

    fn counters(&self) -> DriverCounters {
        let mut counters = self.port.counters();
        counters.send_failed += self.refused;
        counters
    }

    fn ended(&self) -> bool {
        self.port.ended() && self.incoming.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryHandle, MemoryPort};

    const BAD: Faults =
        Faults { loss: 0.1, duplication: 0.1, reordering: 0.1, truncation: 0.05, corruption: 0.05 };

    fn frame(number: u32) -> Vec<u8> {
        let mut frame = vec![7; 64];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        frame
    }

    /// Feeds 2,000 frames in portions, receives them in batches of `batch`, and returns the received frames.
    fn received(seed: u64, faults: Faults, batch: usize) -> (Vec<Vec<u8>>, FaultCounts) {
        let mut pool = Pool::new(256, 2048).unwrap();
        let (port, handle) = MemoryPort::pair("m", 2000).unwrap();
        let mut port = Faulty::new(port, seed, faults, Faults::default());
        for number in 0..2000 {
            assert!(handle.feed(&frame(number)));
        }
        let (mut now_ns, mut all, mut packets) = (0, Vec::new(), Vec::new());
        loop {
            now_ns += IDLE_NS / 4;
            let got = port.receive(&mut pool, now_ns, &mut packets, batch).unwrap();
            assert_eq!(got, packets.len());
            for packet in packets.drain(..) {
                all.push(packet.bytes(&pool).to_vec());
                pool.give(packet.slot);
            }
            if handle.waiting() == 0 && port.incoming.held.is_empty() && got == 0 {
                break;
            }
        }
        port.close(&mut pool);
        assert_eq!(pool.free(), 256);
        (all, port.faults().0)
    }

    #[test]
    fn a_good_wire_changes_nothing() {
        let (all, counts) = received(1, Faults::default(), 7);
        assert_eq!(all, (0..2000).map(frame).collect::<Vec<_>>());
        assert_eq!(counts, FaultCounts { packets: 2000, ..FaultCounts::default() });
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_however_packets_are_grouped() {
        for seed in [0, 1, 0xdead_beef] {
            let first = received(seed, BAD, 1);
            assert_eq!(first, received(seed, BAD, 64));
            assert_eq!(first, received(seed, BAD, 200));
        }
        assert_ne!(received(1, BAD, 64), received(2, BAD, 64));
    }

    #[test]
    fn faults_are_as_frequent_as_asked_and_counted() {
        let (all, counts) = received(42, BAD, 64);
        assert_eq!(counts.packets, 2000);
        assert_eq!(all.len() as u64, 2000 - counts.lost + counts.duplicated);
        let near = |found: u64, expected: u64| found > expected / 2 && found < expected * 2;
        assert!(near(counts.lost, 200) && near(counts.duplicated, 180) && near(counts.reordered, 180));
        assert!(near(counts.truncated, 90) && near(counts.corrupted, 90), "{counts:?}");
        let short = all.iter().filter(|frame| frame.len() < 64).count() as u64;
        assert_eq!(short, counts.truncated, "a copy is made before truncation");
    }

    #[test]
    fn each_fault_does_what_it_says() {
        let only = |faults| received(3, faults, 64);
        assert!(only(Faults { loss: 1.0, ..Faults::default() }).0.is_empty());
        let twice = only(Faults { duplication: 1.0, ..Faults::default() }).0;
        assert_eq!(twice, (0..4000).map(|i| frame(i / 2)).collect::<Vec<_>>());
        let turned = only(Faults { corruption: 1.0, ..Faults::default() }).0;
        for (number, got) in (0..).zip(&turned) {
            let bits: u32 = got.iter().zip(frame(number)).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(bits, 1);
        }
        let mixed = only(Faults { reordering: 0.3, ..Faults::default() }).0;
        let sorted: Vec<Vec<u8>> = (0..2000).map(frame).collect();
        assert_ne!(mixed, sorted);
        let mut again = mixed.clone();
        again.sort();
        assert_eq!(again, sorted, "reordering loses nothing");
        for (at, got) in mixed.iter().enumerate() {
            let number = u32::from_be_bytes([got[0], got[1], got[2], got[3]]) as usize;
            assert!(at.abs_diff(number) <= DISTANCE_MAX as usize + HELD_MAX, "{number} came at {at}");
        }
    }

    fn sent(seed: u64, every: usize) -> (Vec<Vec<u8>>, FaultCounts) {
        let mut pool = Pool::new(256, 2048).unwrap();
        let (port, handle): (MemoryPort, MemoryHandle) = MemoryPort::pair("m", 4000).unwrap();
        let mut port = Faulty::new(port, seed, Faults::default(), BAD);
        for number in 0..2000 {
            let packet = pool.copy_in(&frame(number), 0).unwrap();
            assert!(port.send(&mut pool, packet).is_ok());
            if (number as usize).is_multiple_of(every) {
                port.flush(&mut pool).unwrap();
            }
        }
        while port.pending() > 0 {
            port.flush(&mut pool).unwrap();
        }
        port.close(&mut pool);
        assert_eq!(pool.free(), 256);
        (handle.collect(), port.faults().1)
    }

    #[test]
    fn sending_is_as_bad_and_as_repeatable() {
        assert_eq!(sent(5, 1), sent(5, 50));
        let (all, counts) = sent(5, 50);
        assert_eq!(all.len() as u64, 2000 - counts.lost + counts.duplicated);
        assert!(counts.lost > 100 && counts.reordered > 90);
    }
}
