//! Allocation of an image's granules: fresh ones from the end, freed blocks by size.
//!
//! Flow: `Dag` asks for a node's granules here and gives them back when no reader can hold them. Sizes are granules.

use crate::layout::NODE_GRANULES_MAX;

/// Which granules of the arena are free. Sizes are counted in granules.
pub(crate) struct Space {
    /// First granule never given out.
    fresh: u32,
    end: u32,
    /// Free blocks by size.
    free: [Vec<u32>; NODE_GRANULES_MAX + 1],
    /// Granules of live nodes.
    pub(crate) live: u64,
    /// The limit on `live` after a change.
    pub(crate) live_max: u64,
    /// Granules of retired nodes that wait for readers.
    pub(crate) waiting: u64,
}

impl Space {
    /// An arena of `granules`, of which the first ones are the node that networks without a table look at.
    pub(crate) fn new(granules: u32, live_max: u64) -> Self {
        let fresh = NODE_GRANULES_MAX as u32;
        Self { fresh, end: granules, free: Default::default(), live: 0, live_max, waiting: 0 }
    }

    pub(crate) fn allocate(&mut self, granules: usize) -> Option<u32> {
        let index = if let Some(index) = self.free[granules].pop() {
            index
        } else if self.end - self.fresh >= granules as u32 {
            self.fresh += granules as u32;
            self.fresh - granules as u32
        } else {
            let larger = (granules + 1..=NODE_GRANULES_MAX).find(|size| !self.free[*size].is_empty())?;
            let index = self.free[larger].pop()?;
            self.free(index + granules as u32, larger - granules);
            index
        };
        self.live += granules as u64;
        Some(index)
    }

    pub(crate) fn free(&mut self, index: u32, granules: usize) {
        self.free[granules].push(index);
    }
}
