//! What tables would take in layout `dir` if nothing were limited: for tables that its banks cannot hold.
//!
//! Flow: routes of a network → [`DirShape`] → [`DirNeeds`], network after network → [`DirUsage`]. The same as a [`super::Dir`] of
//! endless banks to which the networks are added in this order (a test compares them), without the words: a set of bank 2 takes
//! 64 KiB here, and a full Internet table has 100,000 of them.

use super::{DirUsage, EMPTY, SET, SLOT_BITS, SLOTS, conflicts, slot_of};
use crate::types::{NextHop, Prefix4};

/// What a network's routes come to slot by slot, apart from all others.
pub struct DirShape {
    slots: Vec<u32>,
}

impl DirShape {
    /// Of these routes; of equal prefixes the last counts.
    pub fn of(routes: impl IntoIterator<Item = (Prefix4, NextHop)>) -> Self {
        let mut routes: Vec<_> = routes.into_iter().collect();
        // Longer prefixes later, as they win; the sort is stable.
        routes.sort_by_key(|(prefix, _)| prefix.len());
        let mut slots = vec![EMPTY; SLOTS];
        for (prefix, hop) in routes {
            let code = if prefix.len() > SLOT_BITS { SET } else { u32::from(hop.get()) + 1 };
            let touched = slots.get_mut(slot_of(prefix.addr()) as usize..=slot_of(prefix.last()) as usize);
            touched.into_iter().flatten().for_each(|slot| *slot = code);
        }
        Self { slots }
    }

    /// What the network takes alone.
    #[must_use]
    pub fn alone(&self) -> DirUsage {
        DirNeeds::default().add(self)
    }

    /// Sets of bank 2, which networks never share.
    #[must_use]
    pub fn sets(&self) -> u32 {
        self.slots.iter().filter(|code| **code == SET).count() as u32
    }
}

/// What networks take together.
#[derive(Clone)]
pub struct DirNeeds {
    /// Which network each slot is of, counted from 1; 0: nobody's.
    owners: Vec<u16>,
    networks: u16,
    usage: DirUsage,
}

impl Default for DirNeeds {
    fn default() -> Self {
        Self { owners: vec![0; SLOTS], networks: 0, usage: DirUsage::default() }
    }
}

impl DirNeeds {
    /// Adds a network, 65,535 at most, and returns what all so far take. Earlier ones keep their slots and rows.
    pub fn add(&mut self, shape: &DirShape) -> DirUsage {
        self.networks += 1;
        for (owner, _) in
            self.owners.iter_mut().zip(&shape.slots).filter(|(owner, code)| **owner == 0 && **code != EMPTY)
        {
            *owner = self.networks;
            self.usage.slots += 1;
        }
        self.usage.sets += shape.sets();
        self.usage.cam_rows += conflicts(&shape.slots, self.networks, &self.owners).len();
        self.usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::Change;
    use crate::dir::{Dir, DirLimits};
    use crate::types::Vid;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Prefixes of all lengths in a corner of the address space, where those of different networks meet.
        #[test]
        fn needs_are_what_a_large_table_takes(networks in proptest::collection::vec(
            proptest::collection::vec((0_u32..4, 0_u32..64, 4_u8..=28, 0_u16..3), 1..40), 1..4)
        ) {
            let mut needs = DirNeeds::default();
            let mut dir = Dir::new(DirLimits { sets: 4096, cam_rows: 1 << 20 });
            for (number, routes) in (1..).zip(networks) {
                let vid = Vid::new(number).unwrap();
                let routes: Vec<(Prefix4, NextHop)> = routes
                    .into_iter()
                    .map(|(high, low, len, hop)| {
                        (Prefix4::containing(high << 30 | low << 10, len), NextHop::new(hop).unwrap())
                    })
                    .collect();
                let changes: Vec<Change<u32>> = routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
                dir.add_network(vid).unwrap();
                dir.apply(vid, &changes).unwrap();
                prop_assert_eq!(needs.add(&DirShape::of(routes)), dir.usage());
            }
        }
    }
}
