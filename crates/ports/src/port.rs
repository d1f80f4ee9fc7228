//! The interface of all ports of the live system, and their counters.
//!
//! Flow: [`Port::receive`] → packets in the worker's pool → engine → [`Port::send`] … [`Port::flush`]. A port belongs to
//! one worker and never blocks. Invariants: a slot that goes in by `send` or comes from the pool is given back to the
//! pool by the port, at the latest in [`Port::close`]; no call but the constructor allocates.

use std::fmt;
use std::ops::Add;
use std::os::fd::BorrowedFd;

use crate::{Packet, Pool, PortError};

/// Driver of a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Driver {
    /// AF_XDP socket behind an XDP program.
    AfXdp {
        /// The card writes into our memory itself.
        zero_copy: bool,
    },
    /// Packet socket.
    Packet,
    /// TAP device: a kernel is at the other end.
    Tap,
    /// Queues in memory.
    Memory,
    /// Capture files.
    Capture,
}

impl Driver {
    /// The name that configuration, API and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AfXdp { zero_copy: false } => "afxdp",
            Self::AfXdp { zero_copy: true } => "afxdp-zc",
            Self::Packet => "packet",
            Self::Tap => "tap",
            Self::Memory => "memory",
            Self::Capture => "capture",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counters of a port since it was opened. Packets and bytes of frames without their check sequence.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriverCounters {
    /// Packets handed to the engine.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets taken from the engine and handed to the system.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived and found the ring full, no slot free, or were longer than a slot.
    pub ring_full: u64,
    /// Packets dropped before the ring because their class had used up its share: classes 1 to [`CLASS_MAX`].
    pub ring_quota: u64,
    /// The same for the other classes, and group frames above their rates.
    pub shared_quota: u64,
    /// Packets dropped before the ring because they belong to no network here.
    pub no_network: u64,
    /// Frames dropped before the ring because they are too short for an Ethernet header.
    pub runt: u64,
    /// Packets that the system accepted but did not send.
    pub send_failed: u64,
}

impl DriverCounters {
    /// Counts packets that the system took.
    pub(crate) fn count_sent(&mut self, packets: &[Packet]) {
        self.sent_packets += packets.len() as u64;
        self.sent_bytes += packets.iter().map(|packet| u64::from(packet.len)).sum::<u64>();
    }
}

impl Add for DriverCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            received_packets: self.received_packets + other.received_packets,
            received_bytes: self.received_bytes + other.received_bytes,
            sent_packets: self.sent_packets + other.sent_packets,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            ring_full: self.ring_full + other.ring_full,
            ring_quota: self.ring_quota + other.ring_quota,
            shared_quota: self.shared_quota + other.shared_quota,
            no_network: self.no_network + other.no_network,
            runt: self.runt + other.runt,
            send_failed: self.send_failed + other.send_failed,
        }
    }
}

/// Packets of one class that a port lost before they were received.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ClassLosses {
    /// Dropped before the ring because the class had used up its share.
    pub ring_quota: u64,
    /// Admitted and lost: the ring had no room, or there was no slot.
    pub ring_full: u64,
}

impl ClassLosses {
    /// The losses since `seen`, which becomes these.
    pub fn since(self, seen: &mut Self) -> Self {
        let before = std::mem::replace(seen, self);
        Self {
            ring_quota: self.ring_quota.saturating_sub(before.ring_quota),
            ring_full: self.ring_full.saturating_sub(before.ring_full),
        }
    }
}

/// Class 0: not policed.
pub const CLASS_NONE: u16 = 0;

/// The class of frames to a group address (broadcast, multicast).
pub const CLASS_GROUP: u16 = u16::MAX;

/// The class of frames whose network is known only behind the ring.
pub const CLASS_OTHER: u16 = u16::MAX - 1;

/// Largest class of a network: classes 1 to 4,095 are network ids.
pub const CLASS_MAX: u16 = 4095;

/// A rule of design select that assigns frames to a class. The most specific rule wins: MAC, then inner destination,
/// then default; a frame without a rule belongs to no network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClassRule {
    /// Frames to this MAC.
    Mac {
        /// Destination MAC.
        mac: [u8; 6],
        /// Their class.
        class: u16,
    },
    /// Frames whose virtual destination address lies in a prefix: the IPv4 destination, or that of the packet inside
    /// an IPIP or VXLAN packet.
    Inner {
        /// The prefix, host byte order.
        addr: u32,
        /// Its length, bits.
        len: u8,
        /// Their class.
        class: u16,
    },
    /// Every other frame.
    Default {
        /// Their class.
        class: u16,
    },
}

/// A source and destination of frames.
pub trait Port: Send {
    /// Its driver.
    fn driver(&self) -> Driver;

    /// Appends up to `limit` packets, received at `now_ns`, to `into`, and returns how many; 0: nothing there now.
    ///
    /// # Errors
    /// [`PortError::Gone`] when the interface is; packets appended before it stay in `into`.
    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError>;

    /// Queues one packet to be sent.
    ///
    /// # Errors
    /// The packet, when the transmit ring is full: the caller counts it and gives its slot back.
    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet>;

    /// Hands queued packets to the system and takes back the slots of those that were sent.
    ///
    /// # Errors
    /// [`PortError::Gone`] when the interface is.
    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError>;

    /// Returns every slot that it holds. Afterwards the port neither receives nor sends.
    fn close(&mut self, pool: &mut Pool);

    /// A descriptor that becomes readable when there is something to receive; `None`: the port must be polled.
    fn readiness(&self) -> Option<BorrowedFd<'_>>;

    /// Queued packets that the system has not accepted yet. If there are any, flush again soon, even if nothing more
    /// is sent.
    fn pending(&self) -> usize {
        0
    }

    /// This many packets of a class have left the worker's queues: frees their share of the receive ring.
    fn consumed(&mut self, class: u16, count: u32) {
        let _ = (class, count);
    }

    /// Sets the rules, and how many packets of each class, as (class, packets), may be between the wire and the end
    /// of the worker's queues at a time. Replaces earlier settings; a class without a quota is not policed.
    ///
    /// # Errors
    /// `System` if the kernel refuses it, `Class` if a class is above [`CLASS_MAX`].
    fn set_classes(&mut self, rules: &[ClassRule], quotas: &[(u16, u32)]) -> Result<(), PortError> {
        let _ = (rules, quotas);
        Ok(())
    }

    /// Packets of a class that were lost before they were received; unknown for a port that does not police.
    fn lost(&self, class: u16) -> ClassLosses {
        let _ = class;
        ClassLosses::default()
    }

    /// The counters; asks the kernel, so do not call it for every batch.
    fn counters(&self) -> DriverCounters;

    /// Whether no more will come: the end of a capture.
    fn ended(&self) -> bool {
        false
    }
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn driver(&self) -> Driver {
        (**self).driver()
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        (**self).receive(pool, now_ns, into, limit)
    }

    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        (**self).send(pool, packet)
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        (**self).flush(pool)
    }

    fn close(&mut self, pool: &mut Pool) {
        (**self).close(pool);
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        (**self).readiness()
    }

    fn pending(&self) -> usize {
        (**self).pending()
    }

    fn consumed(&mut self, class: u16, count: u32) {
        (**self).consumed(class, count);
    }

    fn set_classes(&mut self, rules: &[ClassRule], quotas: &[(u16, u32)]) -> Result<(), PortError> {
        (**self).set_classes(rules, quotas)
    }

    fn lost(&self, class: u16) -> ClassLosses {
        (**self).lost(class)
    }

    fn counters(&self) -> DriverCounters {
        (**self).counters()
    }

    fn ended(&self) -> bool {
        (**self).ended()
    }
}
