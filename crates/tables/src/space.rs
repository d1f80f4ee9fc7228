//! Allocation of an image's granules: unused ones from the end, freed blocks by size.
//!
//! Flow: `Dag` allocates the granules of nodes here, and frees them when no reader can access them. Sizes are
//! in granules.

use crate::layout::NODE_GRANULES_MAX;

/// The free granules of an arena. Sizes are in granules.
pub(crate) struct Space {
    /// The first granule that was never allocated.
    fresh: u32,
    end: u32,
    /// Free blocks by size.
    free: [Vec<u32>; NODE_GRANULES_MAX + 1],
    /// Granules of live nodes.
    pub(crate) live: u64,
    /// The limit on `live` after a change.
    pub(crate) live_max: u64,
    /// Granules of retired nodes that readers may still access.
    pub(crate) waiting: u64,
}

impl Space {
    /// Creates an arena of `granules`. The first ones hold the node that networks without a table use.
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
