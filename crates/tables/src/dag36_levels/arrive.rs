//! Places the table of a network in steps, so that lookups need not wait for all of it.
//!
//! Flow: nodes of the store → **subtrees at a depth of two bytes, one after another** → the two levels above
//! them → root. The arrival holds a reference to each placed subtree until the root does. The store may
//! change in the meantime: subtrees that the new top node shares are not placed again, and references to
//! nodes that the store drops are dropped first.

use super::{Dag36Levels, Write};
use crate::dag::Delta;
use crate::dag36::Dag36Error;
use crate::layout::Ref;
use crate::types::TableId;

impl Dag36Levels {
    /// Places about `nodes` more nodes of a table that has no root here, below `top`. Appends the writes
    /// for the card. Returns whether the table is complete; it then has its root.
    ///
    /// # Errors
    /// As [`Dag36Levels::apply`]. After an error, nothing of the table is left here.
    pub fn place_step(
        &mut self,
        table: TableId,
        top: Ref,
        nodes: usize,
        writes: &mut Vec<Write>,
    ) -> Result<bool, Dag36Error> {
        let result = self.place_parts(table, top, nodes, writes);
        if !matches!(result, Ok(false)) {
            self.end_arrival(table);
        }
        result
    }

    fn place_parts(
        &mut self,
        table: TableId,
        top: Ref,
        nodes: usize,
        writes: &mut Vec<Write>,
    ) -> Result<bool, Dag36Error> {
        let end = self.placed().saturating_add(nodes);
        for part in self.children(top)? {
            if self.is_placed(table, 1, part) {
                continue;
            }
            for part in self.children(part)? {
                if self.placed() >= end {
                    return Ok(false);
                }
                self.place_node(table, 2, part, writes)?;
            }
            self.place_node(table, 1, part, writes)?;
        }
        self.apply(&Delta::Root(table, Some(top)), writes)?;
        Ok(true)
    }

    /// Drops the arrivals' references to nodes that the store is about to retire.
    pub fn before_retired(&mut self, deltas: &[Delta]) {
        if self.arrivals.is_empty() {
            return;
        }
        for delta in deltas {
            let Delta::Retire(node) = delta else { continue };
            for level in [1, 2] {
                let held = self.arrivals.values_mut().map(|held| usize::from(held.remove(&(level, *node))));
                let names: usize = held.sum();
                (0..names).for_each(|_| self.drop_reference(level, *node, true));
            }
        }
    }

    /// Ends the placement of a table, because it is complete or was cancelled.
    pub fn end_arrival(&mut self, table: TableId) {
        for (level, node) in self.arrivals.remove(&table).unwrap_or_default() {
            // Other nodes may have referred to it in the meantime, and lookups may have reached it.
            self.drop_reference(level, node, true);
        }
    }

    fn place_node(
        &mut self,
        table: TableId,
        level: usize,
        node: Ref,
        writes: &mut Vec<Write>,
    ) -> Result<(), Dag36Error> {
        if node.is_leaf() || self.is_placed(table, level, node) {
            return Ok(());
        }
        let before = writes.len();
        let added = self.add_reference(level, node, writes);
        if added.is_err() {
            writes.truncate(before);
            self.defer_again();
        }
        self.deferred_written.clear();
        added?;
        self.arrivals.entry(table).or_default().insert((level, node));
        Ok(())
    }

    fn is_placed(&self, table: TableId, level: usize, node: Ref) -> bool {
        self.arrivals.get(&table).is_some_and(|held| held.contains(&(level, node)))
    }

    fn placed(&self) -> usize {
        self.levels.iter().map(|level| level.placed.len()).sum()
    }

    /// The nodes that a node refers to.
    fn children(&self, node: Ref) -> Result<Vec<Ref>, Dag36Error> {
        if node.is_leaf() {
            return Ok(Vec::new());
        }
        Ok(self.nodes.get(&node).ok_or(Dag36Error::Unknown(node))?.items().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::Patch;
    use super::*;
    use crate::dag::Dag;
    use crate::dag36::words_of;
    use crate::limits::Limits;
    use crate::oracle::Oracle;
    use crate::types::{NextHop, Prefix, Vid};

    fn vid(number: u16) -> Vid {
        Vid::new(number).unwrap()
    }

    fn table(number: u16) -> TableId {
        TableId::of::<u32>(vid(number))
    }

    /// Memories that follow a store which has more networks than the memories.
    struct Follower {
        levels: Dag36Levels,
        tops: HashMap<TableId, Ref>,
    }

    impl Follower {
        /// Behaves as the card's driver: a network whose change is rejected is removed.
        fn follow(&mut self, deltas: &[Delta]) {
            let mut writes = Vec::new();
            self.levels.before_retired(deltas);
            for delta in deltas {
                if let Delta::Root(table, top) = delta {
                    match top {
                        Some(top) => self.tops.insert(*table, *top),
                        None => self.tops.remove(table),
                    };
                    if self.levels.root(*table).is_none() {
                        continue;
                    }
                    if self.levels.apply(delta, &mut writes).is_err() {
                        self.leave(*table);
                    }
                } else {
                    self.levels.apply(delta, &mut writes).unwrap();
                }
            }
            self.reclaim();
        }

        fn leave(&mut self, table: TableId) {
            self.levels.end_arrival(table);
            self.levels.apply(&Delta::Root(table, None), &mut Vec::new()).unwrap();
        }

        fn reclaim(&mut self) {
            let retired = self.levels.take_retired();
            self.levels.reclaim(retired);
        }
    }

    proptest! {
        /// Networks arrive in steps and leave while the store changes. The memories are so small that some do
        /// not fit.
        #[test]
        fn networks_arrive_and_leave_while_the_store_changes(
            (flat, words) in (any::<bool>(), 40_u32..400),
            changes in proptest::collection::vec(
                (1_u16..4, 0_u32..4, 0_u32..40, 0_u8..=32, proptest::option::weighted(0.75, 0_u16..300), 0_u8..8), 1..150)
        ) {
            let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
            (1..4).for_each(|number| dag.add_network::<u32>(vid(number)).unwrap());
            dag.enable_weighed_deltas(words_of);
            let levels = if flat { Dag36Levels::flat(words, 4) } else { Dag36Levels::new(&[words; 4]) };
            let mut here = Follower { levels, tops: HashMap::new() };
            let mut oracles: HashMap<u16, Oracle<u32>> = (1..4).map(|number| (number, Oracle::default())).collect();
            let mut placed = 0;
            for (number, high, low, len, hop, what) in changes {
                let addr = high << 30 | low << 15 | low << 3 | low;
                let prefix = Prefix::containing(addr, len);
                match hop.and_then(NextHop::new) {
                    Some(hop) => { dag.insert(vid(number), prefix, hop).unwrap(); oracles.get_mut(&number).unwrap().insert(prefix, hop); }
                    None => { dag.remove(vid(number), prefix).unwrap(); oracles.get_mut(&number).unwrap().remove(prefix); }
                }
                here.levels.set_patch(if what % 2 == 1 { Patch::Each } else { Patch::Never });
                here.follow(&dag.take_deltas());
                let other = table(1 + u16::from(what) % 3);
                match what {
                    0..6 if here.levels.root(other).is_none() => {
                        let top = here.tops[&other];
                        here.levels.set_deferring(what % 2 == 0);
                        let done = here.levels.place_step(other, top, 3, &mut Vec::new());
                        here.levels.set_deferring(false);
                        placed += usize::from(done == Ok(true));
                        prop_assert_eq!(here.levels.root(other).is_some(), done == Ok(true));
                    }
                    6 => here.leave(other),
                    _ => {}
                }
                here.reclaim();
                for (number, oracle) in &oracles {
                    if here.levels.root(table(*number)).is_none() {
                        continue;
                    }
                    for key in [addr, addr ^ 1, prefix.last(), prefix.last().wrapping_add(1), 0] {
                        let expected = NextHop::word(oracle.lookup(key).map(|(_, hop)| hop));
                        prop_assert_eq!(here.levels.lookup(vid(*number), key), expected);
                    }
                }
            }
            for number in 1..4 {
                dag.remove_network(vid(number)).unwrap();
            }
            here.follow(&dag.take_deltas());
            (1..4).for_each(|number| here.leave(table(number)));
            here.reclaim();
            for level in 0..4 {
                prop_assert_eq!(here.levels.words_used(level), 0, "words left at level {} ({} networks placed)", level, placed);
            }
            prop_assert!(here.levels.nodes.is_empty(), "every node of the store was removed here too");
        }
    }
}
