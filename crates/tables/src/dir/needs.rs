//! Computes the memory of tables in layout `dir` without limits, for tables that exceed its banks.
//!
//! Flow: routes of a network → [`DirShape`] → [`DirNeeds`], network by network → [`DirUsage`]. The result
//! equals that of a [`super::Dir`] with unlimited banks to which the networks are added in this order (a test
//! compares them). Words are not stored: a set of bank 2 would take 64 KiB, and a full Internet table has
//! 100,000 of them.

use std::fmt;

use super::{DirUsage, EMPTY, SET, SLOT_BITS, SLOTS, conflicts, slot_of};
use crate::types::{NextHop, Prefix4};

/// The routes of a network slot by slot, independent of other networks.
#[derive(PartialEq, Eq)]
pub struct DirShape {
    slots: Vec<u32>,
}

impl fmt::Debug for DirShape {
    /// Does not print half a million slots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirShape").field("alone", &self.alone()).finish()
    }
}

impl DirShape {
    /// Built from routes; of several with the same prefix, the last one counts.
    pub fn of(routes: impl IntoIterator<Item = (Prefix4, NextHop)>) -> Self {
        let mut routes: Vec<_> = routes.into_iter().collect();
        // Longer prefixes last, because they win. The sort is stable.
        routes.sort_by_key(|(prefix, _)| prefix.len());
        let mut slots = vec![EMPTY; SLOTS];
        for (prefix, hop) in routes {
            let code = if prefix.len() > SLOT_BITS { SET } else { u32::from(hop.get()) + 1 };
            let touched = slots.get_mut(slot_of(prefix.addr()) as usize..=slot_of(prefix.last()) as usize);
            touched.into_iter().flatten().for_each(|slot| *slot = code);
        }
        Self { slots }
    }

    /// The memory of the network on its own.
    #[must_use]
    pub fn alone(&self) -> DirUsage {
        DirNeeds::default().add(self)
    }

    /// Number of sets of bank 2. Networks never share sets.
    #[must_use]
    pub fn sets(&self) -> u32 {
        self.slots.iter().filter(|code| **code == SET).count() as u32
    }
}

/// The memory of several networks together.
#[derive(Clone)]
pub struct DirNeeds {
    /// Owner of each slot, counted from 1; 0 means none.
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
    /// The memory of all networks so far.
    #[must_use]
    pub const fn usage(&self) -> DirUsage {
        self.usage
    }

    /// Adds a network (at most 65,535) and returns the memory of all so far. Earlier networks keep their
    /// slots and rows.
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
        /// Prefixes of all lengths in a small part of the address space, so that prefixes of different
        /// networks conflict.
        #[test]
        fn needs_equal_an_unlimited_table(networks in proptest::collection::vec(
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
