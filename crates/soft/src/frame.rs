//! A frame as the engine sees it: where it lies in a buffer, where and when it came, and then what became of it.

use hue_demux::PortId;
use hue_planes::{Unclaimed, Verdict, ipv4::Outcome};
use hue_tables::Vid;

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Not processed yet.
    Pending,
    /// No network's.
    Unclaimed(Unclaimed),
    /// A group frame of several networks; each got a copy with a fate of its own ([`Soft::copies`]).
    ///
    /// [`Soft::copies`]: crate::Soft::copies
    Flooded,
    /// A packet of a network.
    Network {
        /// The network.
        vid: Vid,
        /// Index of its virtual port that the packet arrived on.
        vport: u16,
        /// What the plane decided.
        outcome: Outcome,
        /// Port to send on, when forwarded; else the port it came from.
        egress: PortId,
    },
}

impl Fate {
    /// What is to be done with the frame; `None` for a flooded one, whose copies have verdicts, and a pending one.
    #[must_use]
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Pending | Self::Flooded => None,
            Self::Unclaimed(reason) => Some(reason.verdict()),
            Self::Network { outcome, .. } => Some(outcome.verdict()),
        }
    }
}

/// One frame of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// When it arrived, nanoseconds from any start; of one batch in rising order.
    pub time_ns: u64,
    /// Where in the buffer its destination MAC begins, bytes.
    pub start: u32,
    /// From there to the last byte, without FCS, bytes. What lies outside the buffer is not looked at: such a frame is
    /// a `runt`.
    pub len: u32,
    /// Port it arrived on.
    pub port: PortId,
    /// What became of it; the engine writes this.
    pub fate: Fate,
}

impl Frame {
    /// A frame not processed yet.
    #[must_use]
    pub const fn new(port: PortId, time_ns: u64, start: u32, len: u32) -> Self {
        Self { time_ns, start, len, port, fate: Fate::Pending }
    }

    /// Its bytes in the buffer.
    #[inline(always)]
    #[must_use]
    pub fn bytes<'a>(&self, buffer: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.start as usize;
        buffer.get(start..start + self.len as usize)
    }

    /// Its bytes in the buffer, to change.
    #[inline(always)]
    #[must_use]
    pub fn bytes_mut<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let start = self.start as usize;
        buffer.get_mut(start..start + self.len as usize)
    }
}
