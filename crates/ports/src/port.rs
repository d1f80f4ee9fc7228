//! The interface of all ports of the live system, and their counters.
//!
//! Flow: [`Port::receive`] → packets in the worker's pool → engine → [`Port::send`] … [`Port::flush`]. A port belongs
//! to one worker and never blocks. Invariants: the port returns every slot that it got by `send` or took from the
//! pool, at the latest in [`Port::close`]; only the constructor allocates.

use std::fmt;
use std::ops::Add;
use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

use crate::{Packet, Pool, PortError};

/// Driver of a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Driver {
    /// AF_XDP socket behind an XDP program.
    AfXdp {
        /// Whether the NIC writes directly into our memory.
        zero_copy: bool,
    },
    /// Packet socket.
    Packet,
    /// TAP device: a kernel is at the other end.
    Tap,
    /// A cable inside the process.
    Link,
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
            Self::Link => "link",
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
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct DriverCounters {
    /// Packets handed to the engine.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets taken from the engine and handed to the system.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived while the ring was full or no slot was free, or that were longer than a slot.
    pub ring_full: u64,
    /// Packets dropped before the ring because their class had used up its share: classes 1 to [`CLASS_MAX`].
    pub ring_quota: u64,
    /// The same for the other classes, and for group frames above their rates.
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
    /// Admitted and then lost, because the ring was full or no slot was free.
    pub ring_full: u64,
}

impl ClassLosses {
    /// Returns the losses since `seen`, and sets `seen` to these losses.
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

/// The class of frames whose network is only known after the ring.
pub const CLASS_OTHER: u16 = u16::MAX - 1;

/// Largest class of a network: classes 1 to 4,095 are network ids.
pub const CLASS_MAX: u16 = 4095;

/// A rule of design select that assigns frames to a class. The most specific rule wins: MAC, then inner destination,
/// then default; a frame without a rule belongs to no network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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

/// Releases ports at the same time, because each waits in the kernel.
pub fn release_all<'p>(ports: impl IntoIterator<Item = &'p mut Box<dyn Port>>) {
    std::thread::scope(|scope| {
        for port in ports {
            // Without a thread, `close` does it.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || port.release());
        }
    });
}

/// How a port that is not used any more gives back what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// At once.
    Quick,
    /// [`Port::close`] is quick, but the kernel waits when the port is dropped: until no processor uses it, and for whoever
    /// changes interfaces at that time.
    SlowDrop,
    /// The kernel waits in [`Port::release`], and writes into the pool's slots until it returns.
    SlowRelease,
}

/// A source and destination of frames.
pub trait Port: Send {
    /// Its driver.
    fn driver(&self) -> Driver;

    /// How it ends.
    fn ending(&self) -> Ending {
        Ending::Quick
    }

    /// Appends up to `limit` packets, received at `now_ns`, to `into`. Returns how many; 0 means that there are none
    /// at the moment.
    ///
    /// # Errors
    /// [`PortError::Gone`] if the interface was removed; packets appended before the error stay in `into`.
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
    /// The packet, if the transmit ring is full: the caller counts it and returns its slot.
    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet>;

    /// Hands queued packets to the system and takes back the slots of those that were sent.
    ///
    /// # Errors
    /// [`PortError::Gone`] if the interface was removed.
    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError>;

    /// Gives the interface back to the system. Only `close` may follow, which does the same if this was not called; this
    /// needs no pool, so several ports can be released at the same time. An AF_XDP port waits in the kernel for 16 ms.
    fn release(&mut self) {}

    /// Returns every slot that the port holds. Afterwards the port neither receives nor sends.
    fn close(&mut self, pool: &mut Pool);

    /// A descriptor that becomes readable when there is something to receive; `None` means that the port must be
    /// polled.
    fn readiness(&self) -> Option<BorrowedFd<'_>>;

    /// Queued packets that the system has not accepted yet. If there are any, flush again soon, even if nothing more
    /// is sent.
    fn pending(&self) -> usize {
        0
    }

    /// Reports that this many packets of a class have left the worker's queues, which frees their share of the
    /// receive ring.
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

    /// Packets of a class that were lost before they were received; always zero for a port that does not police.
    fn lost(&self, class: u16) -> ClassLosses {
        let _ = class;
        ClassLosses::default()
    }

    /// The counters. This asks the kernel, so do not call it for every batch.
    fn counters(&self) -> DriverCounters;

    /// Whether no more packets will come, as at the end of a capture.
    fn ended(&self) -> bool {
        false
    }

    /// The number under which another process has opened the port, if it is not this one's.
    fn opened_apart(&self) -> Option<u64> {
        None
    }
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn driver(&self) -> Driver {
        (**self).driver()
    }

    fn ending(&self) -> Ending {
        (**self).ending()
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

    fn release(&mut self) {
        (**self).release();
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

    fn opened_apart(&self) -> Option<u64> {
        (**self).opened_apart()
    }
}
