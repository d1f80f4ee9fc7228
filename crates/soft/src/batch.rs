//! A batch of frames with its own buffer, for callers that have frames one by one: captures, tests, tools.

use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_planes::{Loss, mpls};
use hue_substrate::SwitchCounts;
use hue_tables::Vid;

use crate::engine::Soft;
use crate::frame::{Fate, Frame};
use crate::network::Network;
use crate::switch::MacRow;

/// Room before each frame, bytes: the most by which a plane makes a frame longer.
const ROOM_BYTES: u32 = mpls::GROWTH_BYTES_MAX as u32;

/// Frames in the order they arrived. Keeps its memory when cleared.
#[derive(Clone, Default, Debug)]
pub struct Batch {
    buffer: Vec<u8>,
    frames: Vec<Frame>,
}

/// A frame, or a copy of it for one network or one port, and its fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Output<'a> {
    /// Which frame of the batch.
    pub frame: usize,
    /// Port it arrived on.
    pub port: PortId,
    /// When it arrived, nanoseconds.
    pub time_ns: u64,
    /// Its fate; never `Pending` or `Flooded`. The copies of a frame that a network sends to several ports differ in the
    /// egress port.
    pub fate: Fate,
    /// Its bytes: rewritten when forwarded, else unchanged.
    pub bytes: &'a [u8],
    /// What happened to it after its plane.
    pub after: After,
}

/// What happens to a packet after its plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// What the verdict says: it leaves by its port, goes to the control plane, or is dropped.
    Verdict,
    /// It went into a tunnel, or came out of one. The next output with it is that of the other network.
    Tunnel,
    /// A tunnel lost it.
    Lost(Loss),
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a frame. Times are nanoseconds from any origin and must not decrease.
    ///
    /// Returns `false`, and adds nothing, when the batch holds 4 GiB: process and clear it first.
    pub fn push(&mut self, port: PortId, time_ns: u64, bytes: &[u8]) -> bool {
        let start = self.buffer.len() + ROOM_BYTES as usize;
        let (Ok(start), Ok(len)) = (u32::try_from(start), u32::try_from(bytes.len())) else {
            return false;
        };
        self.buffer.resize(start as usize, 0);
        self.buffer.extend_from_slice(bytes);
        self.frames.push(Frame::new(port, time_ns, start, len).with_room(ROOM_BYTES));
        true
    }

    /// The buffer, and one frame of it, below [`Batch::len`].
    pub(crate) fn one(&mut self, index: usize) -> (&mut Vec<u8>, &mut Frame) {
        (&mut self.buffer, &mut self.frames[index])
    }

    /// Removes all frames, keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.frames.clear();
    }

    /// How many frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

impl Soft {
    /// Passes on a fate; one that sends a frame to several ports once for each of them.
    pub(crate) fn spread(&self, fate: Fate, mut each: impl FnMut(Fate)) {
        let Fate::Network { vid, vport, outcome, .. } = fate else { return each(fate) };
        if !outcome.is_flood() {
            return each(fate);
        }
        let ports = self.network(vid).map_or(&[][..], |network| &network.shape.ports);
        for (port, _) in ports.iter().zip(0u16..).filter(|(_, at)| *at != vport) {
            each(Fate::Network { vid, vport, outcome, egress: port.port });
        }
    }

    /// The table of MAC addresses of a network that learns, sorted by address; empty for other networks.
    #[must_use]
    pub fn macs(&self, vid: Vid, now_ns: u64) -> Vec<MacRow> {
        let switch = self.network(vid).and_then(|network| network.switch.as_deref());
        let mut rows = switch.map(|switch| switch.rows(now_ns)).unwrap_or_default();
        rows.sort_unstable();
        rows
    }

    /// What happened to MAC addresses since the network was loaded; zeros if its kind does not learn.
    #[must_use]
    pub fn switch_counts(&self, vid: Vid) -> Option<SwitchCounts> {
        self.network(vid).map(Network::switch_counts)
    }

    /// Processes a batch and passes every frame, or every network's copy of a flooded one, to `each`, in order.
    pub fn run(&mut self, batch: &mut Batch, each: impl FnMut(Output<'_>)) {
        self.run_timed(batch, each);
    }

    /// The same; returns the time that processing took, without that of `each`.
    pub fn run_timed(&mut self, batch: &mut Batch, mut each: impl FnMut(Output<'_>)) -> Duration {
        if self.has_tunnels() {
            return self.run_through_tunnels(batch, each);
        }
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < batch.frames.len() {
            let begun = Instant::now();
            let processed = self.process(&mut batch.buffer, &mut batch.frames[done..]).max(1);
            took += begun.elapsed();
            let mut copies = self.copies().peekable();
            for (index, frame) in batch.frames[done..].iter().take(processed).enumerate() {
                let own = frame.bytes(&batch.buffer).unwrap_or_default();
                let output = |fate, bytes| Output {
                    frame: done + index,
                    port: frame.port,
                    time_ns: frame.time_ns,
                    fate,
                    bytes,
                    after: After::Verdict,
                };
                if frame.fate != Fate::Flooded {
                    self.spread(frame.fate, |fate| each(output(fate, own)));
                }
                while let Some(copy) = copies.next_if(|copy| copy.frame == index) {
                    self.spread(copy.fate, |fate| each(output(fate, copy.bytes.unwrap_or(own))));
                }
            }
            done += processed;
        }
        took
    }
}
