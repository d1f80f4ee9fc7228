//! Allocation of an image's granules: unused ones from the end, freed blocks by size.
//!
//! Flow: `Dag` allocates the granules of nodes here, and frees them when no reader can access them. Sizes are
//! in granules. Freed blocks are not merged with their neighbours at once, because most are soon taken by nodes of the
//! same size. Where no block is large enough, [`Space::merge`] merges all of them.

use crate::layout::NODE_GRANULES_MAX;

/// Free blocks are merged when at least one granule in this many was freed since the last time: a caller whose changes
/// are refused again and again cannot make each of them pay for a pass over the arena.
const MERGE_SHARE: u32 = 256;

/// The free granules of an arena. Sizes are in granules.
pub(crate) struct Space {
    /// The first granule that was never allocated.
    fresh: u32,
    end: u32,
    /// Free blocks by size.
    free: [Vec<u32>; NODE_GRANULES_MAX + 1],
    /// Granules that were freed since free blocks were last merged.
    unmerged: u64,
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
        let free = Default::default();
        Self { fresh, end: granules, free, unmerged: 0, live: 0, live_max, waiting: 0 }
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
            self.free[larger - granules].push(index + granules as u32);
            index
        };
        self.live += granules as u64;
        Some(index)
    }

    pub(crate) fn free(&mut self, index: u32, granules: usize) {
        self.free[granules].push(index);
        self.unmerged += granules as u64;
    }

    /// Merges neighbouring free blocks, in time that grows with the arena. Does nothing unless enough was freed since
    /// the last time.
    pub(crate) fn merge(&mut self) {
        if self.unmerged < u64::from((self.end / MERGE_SHARE).max(1)) {
            return;
        }
        self.unmerged = 0;
        let mut is_free = vec![false; self.fresh as usize];
        for (size, blocks) in self.free.iter_mut().enumerate() {
            for first in blocks.drain(..).map(|first| first as usize) {
                is_free[first..first + size].fill(true);
            }
        }
        // What is free at the end was never allocated, as far as anybody can tell.
        while self.fresh > 0 && is_free[self.fresh as usize - 1] {
            self.fresh -= 1;
        }
        let mut at = 0;
        for run in is_free[..self.fresh as usize].chunk_by(|one, other| one == other) {
            let end = at + run.len();
            if run[0] {
                for first in (at..end).step_by(NODE_GRANULES_MAX) {
                    self.free[NODE_GRANULES_MAX.min(end - first)].push(first as u32);
                }
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRANULES: u32 = 400;

    /// The granules of the blocks, each at most once, and within the arena.
    fn taken(blocks: &[(u32, usize)]) -> Vec<u32> {
        let mut all: Vec<u32> =
            blocks.iter().flat_map(|(first, size)| *first..*first + *size as u32).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "a granule has two owners");
        assert!(all.iter().all(|one| (NODE_GRANULES_MAX as u32..GRANULES).contains(one)));
        all
    }

    #[test]
    fn many_small_blocks_have_room_for_large_ones_when_they_are_free() {
        let mut space = Space::new(GRANULES, u64::MAX);
        let mut all = Vec::new();
        while let Some(one) = space.allocate(1) {
            all.push(one);
        }
        // Every other one: no block can be larger.
        let (kept, freed): (Vec<u32>, Vec<u32>) = all.into_iter().partition(|one| one % 2 == 0);
        freed.iter().for_each(|one| space.free(*one, 1));
        space.merge();
        assert_eq!(space.allocate(2), None);
        // All but one.
        kept[1..].iter().for_each(|one| space.free(*one, 1));
        assert_eq!(space.allocate(NODE_GRANULES_MAX), None, "not merged yet");
        space.merge();
        let mut large = vec![(kept[0], 1)];
        while let Some(one) = space.allocate(NODE_GRANULES_MAX) {
            large.push((one, NODE_GRANULES_MAX));
        }
        assert_eq!(large.len(), 1 + (GRANULES as usize - NODE_GRANULES_MAX - 1) / NODE_GRANULES_MAX);
        taken(&large);
    }

    #[test]
    fn blocks_are_not_merged_again_for_little() {
        let mut space = Space::new(100 * MERGE_SHARE, u64::MAX);
        let blocks: Vec<u32> = (0..200).filter_map(|_| space.allocate(1)).collect();
        blocks[..150].iter().for_each(|one| space.free(*one, 1));
        space.merge();
        let singles = space.free[1].len();
        blocks[150..199].iter().for_each(|one| space.free(*one, 1));
        space.merge();
        assert_eq!(space.free[1].len(), singles + 49);
    }

    proptest! {
        #[test]
        fn no_granule_has_two_owners_and_none_is_lost(
            steps in proptest::collection::vec((0_u8..8, 1..=NODE_GRANULES_MAX, any::<usize>()), 1..400)
        ) {
            let mut space = Space::new(GRANULES, u64::MAX);
            let mut blocks: Vec<(u32, usize)> = Vec::new();
            for (what, size, which) in steps {
                match what {
                    0..4 => blocks.extend(space.allocate(size).map(|first| (first, size))),
                    4..7 if !blocks.is_empty() => {
                        let (first, size) = blocks.swap_remove(which % blocks.len());
                        space.free(first, size);
                    }
                    _ => space.merge(),
                }
                taken(&blocks);
            }
            // Everything else can be allocated, granule by granule.
            while let Some(first) = space.allocate(1) {
                blocks.push((first, 1));
            }
            prop_assert_eq!(taken(&blocks).len() as u32, GRANULES - NODE_GRANULES_MAX as u32);
        }
    }
}
