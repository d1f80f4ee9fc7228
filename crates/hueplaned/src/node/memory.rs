//! Size of the workers' packet memory: enough to fill all rings of the ports, in slots that hold their frames.
//!
//! Flow: desired ports, interfaces → [`Memory::for_ports`] → data plane. Invariants: never less than for a node
//! without ports; memory changes only while no port is open, since sockets register all of it. A port that comes
//! later and needs more gets shorter rings, or is refused, and reports that; after a restart of the daemon it gets
//! the memory that it needs.
//! Units: slots of one worker, bytes.

use hue_ports::{HEADROOM_BYTES, OpenOptions, SLOT_BYTES};
use hue_soft::LiveConfig;

/// Slots per receive queue of a port: full receive and fill rings, and as many frames again in queues and transmit
/// rings.
const SLOTS_PER_QUEUE: u32 = 4_096;
/// Fewest packet slots of a worker that a user can choose: the smallest rings of some ports.
pub const SLOTS_MIN: u32 = 1_024;
/// Maximum slots of a worker, 1 GiB of the large ones: the kernel pins all of them for each socket.
pub const SLOTS_MAX: u32 = 262_144;
/// Bytes around the IP packet in a frame: Ethernet header and one VLAN tag.
const LINK_BYTES: u32 = 18;
/// Packets in the smallest ring.
const RING_MIN: u32 = 64;

/// Packet memory of each worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Slots.
    pub slots: u32,
    /// Bytes of each: one of [`SLOT_BYTES`].
    pub slot_bytes: u32,
}

impl From<LiveConfig> for Memory {
    fn from(config: LiveConfig) -> Self {
        Self { slots: config.slots, slot_bytes: config.slot_bytes }
    }
}

/// Packet memory that a port needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortNeed {
    /// Its largest IP packet, from the document or the interface, bytes.
    pub mtu: u32,
    /// Its receive queues.
    pub queues: u32,
}

/// The largest IP packet that fits a slot of this size with its link header.
#[must_use]
pub fn mtu_max(slot_bytes: u32) -> u32 {
    slot_bytes - HEADROOM_BYTES - LINK_BYTES
}

impl Memory {
    /// Packet memory for ports that workers share evenly: at least `least`, at most `most` slots. An MTU that
    /// fits no slot is ignored: its port is refused in any case.
    #[must_use]
    pub fn for_ports(ports: &[PortNeed], workers: usize, least: Self, most: u32) -> Self {
        let queues = ports.iter().map(|port| port.queues.max(1)).fold(0, u32::saturating_add);
        let workers = u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
        let slots = queues.div_ceil(workers).saturating_mul(SLOTS_PER_QUEUE).min(most);
        let fits = |mtu: u32| SLOT_BYTES.into_iter().find(|bytes| mtu <= mtu_max(*bytes));
        let slot_bytes = ports.iter().filter_map(|port| fits(port.mtu)).max().unwrap_or(0);
        Self { slots: slots.max(least.slots), slot_bytes: slot_bytes.max(least.slot_bytes) }
    }

    /// Whether it is enough wherever `other` is enough.
    #[must_use]
    pub fn holds(self, other: Self) -> bool {
        self.slots >= other.slots && self.slot_bytes >= other.slot_bytes
    }

    /// Packets in each ring of a port with this many queues, while each worker has `ports` ports: half of the slots
    /// are left for packets in progress.
    #[must_use]
    pub fn ring(self, queues: u32, ports: usize) -> u32 {
        let rings = u32::try_from(ports).unwrap_or(u32::MAX).saturating_mul(queues.max(1));
        let mut ring = OpenOptions::default().ring;
        while ring > RING_MIN && ring.saturating_mul(rings) > self.slots / 2 {
            ring /= 2;
        }
        ring
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Memory = Memory { slots: 32_768, slot_bytes: 2_048 };

    fn ports(count: usize, mtu: u32, queues: u32) -> Vec<PortNeed> {
        vec![PortNeed { mtu, queues }; count]
    }

    #[test]
    fn slots_follow_the_ports_so_that_each_ring_can_be_full() {
        for (count, workers, slots) in [
            (0, 1, 32_768),
            (8, 1, 32_768),
            (9, 1, 36_864),
            (16, 1, 65_536),
            (16, 2, 32_768),
            (17, 2, 36_864),
        ] {
            let memory = Memory::for_ports(&ports(count, 1_500, 1), workers, LEAST, SLOTS_MAX);
            assert_eq!(memory, Memory { slots, slot_bytes: 2_048 }, "{count} ports, {workers} workers");
            assert_eq!(memory.ring(1, count.div_ceil(workers)), OpenOptions::default().ring);
        }
        let cards = Memory::for_ports(&ports(2, 1_500, 8), 1, LEAST, SLOTS_MAX);
        assert_eq!((cards.slots, cards.ring(8, 2)), (65_536, 2_048));
    }

    #[test]
    fn slots_have_a_limit_and_rings_become_shorter_behind_it() {
        let at = Memory::for_ports(&ports(64, 1_500, 1), 1, LEAST, SLOTS_MAX);
        let above = Memory::for_ports(&ports(65, 1_500, 1), 1, LEAST, SLOTS_MAX);
        assert_eq!((at.slots, above.slots), (SLOTS_MAX, SLOTS_MAX));
        assert_eq!((at.ring(1, 64), above.ring(1, 65)), (2_048, 1_024));
        assert_eq!(Memory::for_ports(&ports(256, 1_500, u32::MAX), 1, LEAST, SLOTS_MAX).slots, SLOTS_MAX);
        assert_eq!(at.ring(u32::MAX, 256), RING_MIN);
        let least = Memory { slots: 4_096, slot_bytes: 2_048 };
        let small = Memory::for_ports(&ports(8, 1_500, 1), 1, least, 4_096);
        assert_eq!((small.slots, small.ring(1, 8)), (4_096, 256), "a user wants a small pool");
    }

    #[test]
    fn slots_are_large_when_a_port_needs_it() {
        let bytes = |mtu| {
            Memory::for_ports(
                &[PortNeed { mtu: 1_500, queues: 1 }, PortNeed { mtu, queues: 1 }],
                1,
                LEAST,
                SLOTS_MAX,
            )
        };
        assert_eq!((mtu_max(2_048), mtu_max(4_096)), (1_774, 3_822));
        assert_eq!(
            [1_774, 1_775, 3_822, 3_823, 9_000].map(|mtu| bytes(mtu).slot_bytes),
            [2_048, 4_096, 4_096, 2_048, 2_048]
        );
    }

    #[test]
    fn memory_that_is_enough_is_known() {
        let large = Memory { slots: 65_536, slot_bytes: 4_096 };
        assert!(large.holds(LEAST) && large.holds(large));
        assert!(
            !LEAST.holds(Memory { slots: 32_769, ..LEAST })
                && !LEAST.holds(Memory { slot_bytes: 4_096, ..LEAST })
        );
    }
}
