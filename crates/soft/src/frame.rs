//! A frame as the engine sees it: its place in a buffer, its port and time of arrival, and then its fate.

use hue_demux::PortId;
use hue_planes::{Reason, Unclaimed, Verdict};
use hue_tables::Vid;

/// The fate of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Not processed yet.
    Pending,
    /// No network claims it.
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
        outcome: Reason,
        /// Port to send on, when forwarded to one port; else the port it came from. An outcome that floods sends it to
        /// all ports of the network but `vport`.
        egress: PortId,
    },
}

impl Fate {
    /// What to do with the frame; `None` for a flooded one, whose copies have their own verdicts, and for a pending one.
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
    /// When it arrived, nanoseconds from any origin; does not decrease within a batch.
    pub time_ns: u64,
    /// Offset of its destination MAC in the buffer, bytes.
    pub start: u32,
    /// Length from there to the last byte, without FCS, bytes. A frame that extends beyond the buffer is a `runt`; its
    /// bytes are not read.
    pub len: u32,
    /// Bytes of the buffer before it that are its own: a plane may make it longer by as many.
    pub room: u16,
    /// Port it arrived on.
    pub port: PortId,
    /// Its fate; set by the engine.
    pub fate: Fate,
}

impl Frame {
    /// A frame not processed yet, without room before it.
    #[must_use]
    pub const fn new(port: PortId, time_ns: u64, start: u32, len: u32) -> Self {
        Self { time_ns, start, len, room: 0, port, fate: Fate::Pending }
    }

    /// The same with room before it, of which it uses at most 64 KiB.
    #[inline(always)]
    #[must_use]
    pub const fn with_room(self, bytes: u32) -> Self {
        let room = if bytes < u16::MAX as u32 { bytes as u16 } else { u16::MAX };
        Self { room, ..self }
    }

    /// Makes it longer at its front, or shorter. Returns whether there is room; without, it stays as it is.
    pub(crate) fn grow(&mut self, bytes: i32) -> bool {
        let room = i32::from(self.room) - bytes;
        let (start, len) = (self.start.checked_add_signed(-bytes), self.len.checked_add_signed(bytes));
        let (Some(start), Some(len), 0..) = (start, len, room) else { return false };
        (self.start, self.len, self.room) = (start, len, u16::try_from(room).unwrap_or(u16::MAX));
        true
    }

    /// Its bytes in the buffer.
    #[inline(always)]
    #[must_use]
    pub fn bytes<'a>(&self, buffer: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.start as usize;
        buffer.get(start..start + self.len as usize)
    }

    /// Its bytes in the buffer, writable.
    #[inline(always)]
    #[must_use]
    pub fn bytes_mut<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let start = self.start as usize;
        buffer.get_mut(start..start + self.len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_grows_into_its_room_only() {
        let mut frame = Frame::new(PortId::new(0), 0, 100, 60).with_room(8);
        let before = frame;
        assert!(!frame.grow(12) && !frame.grow(9) && !frame.grow(-61));
        assert_eq!(frame, before);
        assert!(frame.grow(8));
        assert_eq!((frame.start, frame.len, frame.room), (92, 68, 0));
        assert!(frame.grow(-12));
        assert_eq!((frame.start, frame.len, frame.room), (104, 56, 12));
        assert!(!Frame::new(PortId::new(0), 0, 0, 60).grow(1));
    }
}
