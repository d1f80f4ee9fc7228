//! Captures at a worker: which frames are wanted. Costs one comparison per frame while no capture runs.

use hue_demux::PortId;
use hue_tables::Vid;

use super::super::capture::{Captured, CapturedFrame, Direction, Tap};
use super::Worker;
use crate::frame::Fate;

/// The running captures, and the frames of the current batch that they want, as they arrived.
#[derive(Default)]
pub(super) struct Watch {
    taps: Vec<Tap>,
    before: Vec<(usize, Vec<u8>)>,
}

impl Watch {
    /// Whether any capture runs.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        !self.taps.is_empty()
    }

    pub fn add(&mut self, tap: Tap) {
        self.taps.push(tap);
    }

    /// Removes captures whose reader has ended.
    pub fn tidy(&mut self) {
        if self.is_on() {
            self.taps.retain(|tap| !tap.stopped());
        }
    }

    /// Passes a frame to the captures that want it; `whose` is the virtual port of the network that claims it, if
    /// any.
    #[inline(always)]
    pub fn see(
        &self,
        whose: Option<(Vid, u16)>,
        port: PortId,
        direction: Direction,
        fate: Captured,
        time_ns: u64,
        bytes: &[u8],
    ) {
        if self.is_on() {
            self.show(whose, port, direction, fate, time_ns, bytes);
        }
    }

    #[cold]
    fn show(
        &self,
        whose: Option<(Vid, u16)>,
        port: PortId,
        direction: Direction,
        fate: Captured,
        time_ns: u64,
        bytes: &[u8],
    ) {
        let (vid, vport) = (whose.map(|(vid, _)| vid), whose.map(|(_, vport)| vport));
        for tap in self.taps.iter().filter(|tap| tap.wants(vid, vport, port)) {
            let snap = bytes.len().min(tap.filter.snap as usize);
            let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let bytes = bytes.get(..snap).unwrap_or_default().to_vec();
            tap.push(CapturedFrame { time_ns, vid, vport, port, direction, fate, len, bytes });
        }
    }
}

impl Worker {
    /// Copies the wanted frames of the batch before the plane rewrites them.
    #[cold]
    pub(super) fn watch_before(&mut self) {
        let Self { watch, batch, pool, networks, .. } = self;
        watch.before.clear();
        for (index, (frame, claim)) in batch.frames.iter().zip(&batch.claims).enumerate() {
            let vid = networks.get(usize::from(claim.slot)).map(|network| network.vid);
            if watch.taps.iter().any(|tap| tap.wants(vid, Some(claim.vport), frame.port)) {
                let bytes = frame.bytes(pool.bytes()).unwrap_or_default();
                watch.before.push((index, bytes.to_vec()));
            }
        }
    }

    /// Passes those copies on, now that the frames' fates are known.
    #[cold]
    pub(super) fn watch_after(&mut self) {
        let Self { watch, batch, .. } = self;
        for (index, bytes) in std::mem::take(&mut watch.before) {
            let Some(frame) = batch.frames.get(index) else { continue };
            let Fate::Network { vid, vport, outcome, .. } = frame.fate else { continue };
            let fate = Captured::Outcome(outcome);
            watch.see(Some((vid, vport)), frame.port, Direction::In, fate, frame.time_ns, &bytes);
        }
    }
}
