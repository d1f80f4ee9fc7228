//! What a worker has inside between two rounds: what must be nothing when all is quiet.

use super::Worker;

/// See the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Frames in queues of networks.
    pub frames: u64,
    /// Fences among them.
    pub fences: u64,
    /// Networks that are held.
    pub held: usize,
    /// Records that other threads handed over and that were not taken, by thread.
    pub handed: usize,
    /// Packet slots, and how many are free. Those that ports hold are not.
    pub slots: (usize, usize),
    /// Networks it has.
    pub networks: usize,
}

impl Worker {
    /// Looks.
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
