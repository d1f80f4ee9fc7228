//! What a worker holds between two rounds. When the system is idle, everything except `slots` and `networks` must be
//! 0.

use super::Worker;

/// See the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Frames in queues of networks.
    pub frames: u64,
    /// Fences in these queues.
    pub fences: u64,
    /// Networks that are held.
    pub held: usize,
    /// Other threads with records handed over that were not taken yet.
    pub handed: usize,
    /// Packet slots, and how many are free. Slots that ports hold are not free.
    pub slots: (usize, usize),
    /// Networks of the worker.
    pub networks: usize,
}

impl Worker {
    /// Counts what the worker holds.
    pub fn inside(&mut self) -> Inside {
        Inside {
            frames: self.networks.iter().map(super::LiveNetwork::frames_waiting).sum(),
            fences: self.networks.iter().map(|network| u64::from(network.fences)).sum(),
            held: self.networks.iter().filter(|network| network.held).count(),
            handed: self.peers.iter().flatten().filter(|peer| !peer.into.is_empty()).count(),
            slots: (self.pool.slots() as usize, self.pool.free()),
            networks: self.networks.len(),
        }
    }
}
