//! In-place changes of nodes.
//!
//! Flow: old and new top of a network → plan (which places the new nodes) → words. A node can be changed in
//! place if only its items change and only the network's own path leads to it. Each word then changes from
//! one correct item to another, and a lookup in flight, which reads one item of a node, finds either. New
//! nodes are written first; removed nodes wait for lookups in flight as usual.
//!
//! A node is not changed in place if lookups in flight may still reach it through a dropped reference: for
//! them it is another part of the table. It is also not changed in place if another node gets a reference to
//! it in the same change.

use super::{Dag36Levels, Patch, Write};
use crate::dag36::Dag36Error;
use crate::dag36::words::{Form, with_parity, words_of, write};
use crate::layout::{Ref, Runs, SLOTS};

/// A change as far as it is planned. Its new references have already been added.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    /// Nodes to change in place, children first.
    nodes: Vec<Node>,
    /// References to drop.
    dropped: Vec<(usize, Ref)>,
}

/// A step that can be undone.
enum Step {
    /// A reference was added at a level.
    Added(usize, Ref),
    /// A place in a memory was transferred from the first node to the second.
    Moved(usize, Ref, Ref),
}

/// A node to change in place.
struct Node {
    level: usize,
    of: Ref,
    /// Items that change: by slot in a wide node, by run in others.
    items: Vec<usize>,
}

/// The difference between two nodes of the same form.
#[derive(Default)]
struct Difference {
    /// As in [`Node`].
    items: Vec<usize>,
    /// Items that change from one node to another in the same slots.
    pairs: Vec<(Ref, Ref)>,
    /// Items added, and items removed.
    added: Vec<Ref>,
    removed: Vec<Ref>,
}

impl Dag36Levels {
    /// Changes the top node of a network and returns the new root item. On an error, nothing has changed.
    pub(super) fn change(&mut self, old: Ref, new: Ref, writes: &mut Vec<Write>) -> Result<u64, Dag36Error> {
        let before = writes.len();
        let mut plan = Plan::default();
        let mut result = self.plan(0, old, new, &mut plan, writes);
        if result.is_err() {
            self.undo(std::mem::take(&mut plan));
        }
        if std::mem::take(&mut self.conflict) {
            // Rare: write new nodes along the entire path instead.
            writes.truncate(before);
            self.defer_again();
            result = self.add_reference(0, new, writes);
            plan.dropped.push((0, old));
        }
        let item = result?;
        for node in &plan.nodes {
            self.rewrite(node, writes);
        }
        for (level, of) in plan.dropped {
            self.drop_reference(level, of, true);
        }
        Ok(item)
    }

    /// Plans how a reference to `old` becomes one to `new`. Returns its item.
    fn plan(
        &mut self,
        level: usize,
        old: Ref,
        new: Ref,
        plan: &mut Plan,
        writes: &mut Vec<Write>,
    ) -> Result<u64, Dag36Error> {
        let found = self.memory(level).zip(self.difference(level, old, new));
        let Some((memory, difference)) = found else {
            let item = self.add_reference(level, new, writes)?;
            plan.steps.push(Step::Added(level, new));
            plan.dropped.push((level, old));
            return Ok(item);
        };
        if let Some(mut place) = self.levels[memory].placed.remove(&old) {
            place.patched = true;
            self.levels[memory].placed.insert(new, place);
        }
        plan.steps.push(Step::Moved(memory, old, new));
        for (old, new) in difference.pairs {
            self.plan(level + 1, old, new, plan, writes)?;
        }
        for child in difference.added {
            self.add_reference(level + 1, child, writes)?;
            plan.steps.push(Step::Added(level + 1, child));
        }
        plan.dropped.extend(difference.removed.into_iter().map(|child| (level + 1, child)));
        plan.nodes.push(Node { level, of: new, items: difference.items });
        Ok(self.item(level, new))
    }

    fn undo(&mut self, plan: Plan) {
        for step in plan.steps.into_iter().rev() {
            match step {
                Step::Added(level, of) => self.drop_reference(level, of, false),
                Step::Moved(memory, old, new) => {
                    if let Some(mut place) = self.levels[memory].placed.remove(&new) {
                        place.patched = false;
                        self.levels[memory].placed.insert(old, place);
                    }
                }
            }
        }
    }

    /// How a node can be changed in place into another; `None` if it cannot.
    fn difference(&self, level: usize, old: Ref, new: Ref) -> Option<Difference> {
        if self.patch == Patch::Never || self.deferring || old.is_leaf() || new.is_leaf() {
            return None;
        }
        let placed = &self.levels[self.memory(level)?].placed;
        let place = placed.get(&old)?;
        let lingering = place.dropped_in == self.serial || self.in_flight.contains(&place.dropped_in);
        #[cfg(test)]
        let lingering = lingering && !self.forgets;
        if place.references != 1 || !place.written || place.patched || lingering || placed.contains_key(&new)
        {
            return None;
        }
        let (was, is) = (self.nodes.get(&old)?, self.nodes.get(&new)?);
        let form = Form::of(is, self.shape);
        if Form::of(was, self.shape) != form {
            return None;
        }
        let difference = if form == Form::Wide { by_slot(was, is) } else { by_run(was, is)? };
        let word = |item: &usize| if form == Form::Wide { *item } else { form.word_of_item(*item) };
        let mut words = difference.items.iter().map(word);
        let first = words.next();
        (self.patch == Patch::Each || words.all(|word| Some(word) == first)).then_some(difference)
    }

    /// Writes the words of a node whose items have changed.
    fn rewrite(&mut self, node: &Node, writes: &mut Vec<Write>) {
        let found = self.memory(node.level).zip(self.nodes.get(&node.of).cloned());
        let Some((memory, runs)) = found else { return };
        let form = Form::of(&runs, self.shape);
        let Some(place) = self.levels[memory].placed.get_mut(&node.of) else { return };
        place.patched = false;
        let at = place.at;
        let mut tell = |arena: &mut crate::dag36::Arena, offset: usize, word: u64| {
            let kept = arena.block_mut(at + offset as u32, 1);
            if kept[0] != word {
                kept[0] = word;
                writes.push(Write::Word { level: memory, index: at + offset as u32, word });
            }
        };
        if form == Form::Wide || form.has_whole_items() {
            let slots = (form == Form::Wide).then(|| runs.slots());
            for item in &node.items {
                let (offset, child) = match &slots {
                    Some(slots) => (*item, slots[*item]),
                    None => (form.word_of_item(*item), runs.items()[*item]),
                };
                let word = with_parity(self.item(node.level + 1, child));
                tell(&mut self.levels[memory].arena, offset, word);
            }
            return;
        }
        // Leaves only: no place needs to be looked up.
        let mut items = [0; SLOTS];
        for (item, child) in items.iter_mut().zip(runs.items()) {
            *item = u64::from(child.hop_word());
        }
        let mut words = [0; SLOTS];
        let count = words_of(&runs, self.shape);
        write(&runs, self.shape, &items[..runs.items().len()], &mut words[..count]);
        for (offset, word) in words[..count].iter().enumerate() {
            tell(&mut self.levels[memory].arena, offset, *word);
        }
    }
}

/// Compares two nodes with an item for each run; `None` unless the runs have the same slots.
fn by_run(was: &Runs, is: &Runs) -> Option<Difference> {
    if was.starts != is.starts {
        return None;
    }
    let mut difference = Difference::default();
    for (run, (old, new)) in was.items().iter().zip(is.items()).enumerate() {
        if old != new {
            difference.items.push(run);
            difference.pairs.push((*old, *new));
        }
    }
    Some(difference)
}

/// Compares two nodes with an item for each slot.
fn by_slot(was: &Runs, is: &Runs) -> Difference {
    let mut difference = Difference::default();
    // Most changes leave the runs unchanged.
    if was.starts == is.starts {
        for (run, (old, new)) in was.items().iter().zip(is.items()).enumerate() {
            if old != new {
                difference.items.extend(is.slots_of(run));
                difference.pairs.push((*old, *new));
            }
        }
        return difference;
    }
    let (old, new) = (was.slots(), is.slots());
    difference.items = (0..SLOTS).filter(|slot| old[*slot] != new[*slot]).collect();
    let ends = |runs: &Runs| -> Vec<(usize, usize, Ref)> {
        let starts: Vec<usize> = runs.iter().map(|(start, _)| usize::from(start)).collect();
        let ends = starts.iter().copied().skip(1).chain([SLOTS]);
        starts
            .iter()
            .copied()
            .zip(ends)
            .zip(runs.items())
            .map(|((start, end), of)| (start, end, *of))
            .collect()
    };
    let (was, is) = (ends(was), ends(is));
    let (mut was, mut is) = (was.into_iter().peekable(), is.into_iter().peekable());
    loop {
        match (was.peek().copied(), is.peek().copied()) {
            (Some(old), Some(new)) if old.0 == new.0 => {
                was.next();
                is.next();
                // Runs with other slots: a lookup for a slot that the old run had, but the new one lacks,
                // must not see the new node.
                if old.1 == new.1 {
                    if old.2 != new.2 {
                        difference.pairs.push((old.2, new.2));
                    }
                } else {
                    difference.removed.push(old.2);
                    difference.added.push(new.2);
                }
            }
            (Some(old), new) if new.is_none_or(|new| old.0 < new.0) => {
                was.next();
                difference.removed.push(old.2);
            }
            (_, Some(new)) => {
                is.next();
                difference.added.push(new.2);
            }
            _ => return difference,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

    use super::*;
    use crate::dag::Dag;
    use crate::dag36::words::{NODE_FLAG, step};
    use crate::dag36_levels::Retired;
    use crate::dag36_levels::tests::Refused;
    use crate::limits::Limits;
    use crate::oracle::Oracle;
    use crate::types::{Key, NextHop, Prefix, Vid};

    /// A lookup in flight: network, key, item, level, and the first version of the tables that it may answer
    /// from.
    struct Flight {
        number: u16,
        key: u32,
        item: u64,
        level: usize,
        since: usize,
    }

    /// A model of the card's words and roots, with lookups and writes in any order.
    struct World {
        words: Vec<Vec<u64>>,
        roots: HashMap<u16, u64>,
        flights: Vec<Flight>,
        /// The reference tables, version by version.
        versions: Vec<HashMap<u16, Oracle<u32>>>,
        keys: Vec<u32>,
        changing: bool,
        random: u64,
    }

    impl World {
        fn below(&mut self, end: usize) -> usize {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.random >> 33) as usize % end
        }

        fn answers(&self, version: usize, number: u16, key: u32) -> u16 {
            let oracle = self.versions[version].get(&number);
            NextHop::word(oracle.and_then(|oracle| oracle.lookup(key)).map(|(_, hop)| hop))
        }

        /// Starts some lookups, and continues some by one level.
        fn some(&mut self) {
            for _ in 0..self.below(4) {
                let number = 1 + self.below(3) as u16;
                let at = self.below(self.keys.len());
                let key = self.keys[at];
                let Some(item) = self.roots.get(&number).copied() else { continue };
                // During a change, any part of it may have been written.
                let since = self.versions.len() - if self.changing { 2 } else { 1 };
                self.flights.push(Flight { number, key, item, level: 0, since });
            }
            for _ in 0..self.below(6) {
                if !self.flights.is_empty() {
                    let at = self.below(self.flights.len());
                    self.go_on(at);
                }
            }
        }

        fn go_on(&mut self, at: usize) {
            let flight = &mut self.flights[at];
            if flight.item & NODE_FLAG != 0 && flight.level < 4 {
                let memory = flight.level.min(self.words.len() - 1);
                let byte = flight.key.byte_at(8 * flight.level as u8);
                flight.item = step(flight.item, byte, &self.words[memory], &mut 0);
                flight.level += 1;
                return;
            }
            let flight = self.flights.swap_remove(at);
            let right =
                (flight.since..self.versions.len()).map(|v| self.answers(v, flight.number, flight.key));
            let right: Vec<u16> = right.collect();
            assert!(
                right.contains(&(flight.item as u16)),
                "network {}, {:x}: {:x} is none of {right:x?}",
                flight.number,
                flight.key,
                flight.item
            );
        }

        fn take(&mut self, write: Write) {
            match write {
                Write::Word { level, index, word } => {
                    let memory = &mut self.words[level];
                    memory.resize(memory.len().max(index as usize + 1), 0);
                    memory[index as usize] = word;
                }
                Write::Root { table, item: Some(item) } => _ = self.roots.insert(table.vid().get(), item),
                Write::Root { table, item: None } => _ = self.roots.remove(&table.vid().get()),
            }
        }

        /// Lookups that start now answer from the latest tables.
        fn check_all_equal_the_latest(&mut self) {
            let latest = self.versions.len() - 1;
            for (number, root) in self.roots.clone() {
                for key in self.keys.clone() {
                    self.flights.push(Flight { number, key, item: root, level: 0, since: latest });
                    let at = self.flights.len() - 1;
                    while self.flights.len() > at {
                        self.go_on(at);
                    }
                }
            }
        }
    }

    /// Network, address, prefix length, next hop, and whether earlier lookups finish after the change.
    type Step = (u16, u32, u32, u8, Option<u16>, bool);

    fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
        // Few addresses, so that nodes are shared, split and merged; some nodes are wide at the first byte.
        let wide = (
            1_u16..4,
            0_u32..256,
            Just(0_u32),
            Just(10_u8),
            proptest::option::weighted(0.8, 0_u16..30),
            any::<bool>(),
        );
        let few = (
            1_u16..4,
            0_u32..4,
            0_u32..20,
            0_u8..=32,
            proptest::option::weighted(0.8, 0_u16..9),
            any::<bool>(),
        );
        let few =
            few.prop_map(|(number, high, low, len, hop, left)| (number, high << 6, low, len, hop, left));
        let step = prop_oneof![3 => few, 1 => wide];
        proptest::collection::vec(proptest::collection::vec(step, 1..4), 1..60)
    }

    fn change_while_lookups_go_on(
        steps: Vec<Vec<Step>>,
        (flat, words, patch, spread): (bool, u32, Patch, bool),
        (seed, forgets): (u64, bool),
    ) -> usize {
        let vid = |number: u16| Vid::new(number).unwrap();
        let mut dag = Dag::new(Limits { image_bytes_max: 1 << 22, networks_max: 4 }).unwrap();
        dag.enable_deltas();
        (1..4).for_each(|number| dag.add_network::<u32>(vid(number)).unwrap());
        let mut levels =
            if flat { Dag36Levels::flat(words, 4) } else { Dag36Levels::new(&[words, words, words, words]) };
        levels.set_patch(patch);
        levels.forgets = forgets;
        let mut world = World {
            words: vec![Vec::new(); if flat { 1 } else { 4 }],
            roots: HashMap::new(),
            flights: Vec::new(),
            versions: vec![HashMap::new()],
            keys: vec![0, u32::MAX],
            changing: false,
            random: seed,
        };
        let mut waiting: Vec<Retired> = Vec::new();
        let mut patched = 0;
        let mut writes = Vec::new();
        dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut writes).unwrap());
        writes.drain(..).for_each(|write| world.take(write));
        if spread {
            // A network with a wide first node.
            let routes: Vec<_> = (0..256_u32)
                .map(|high| {
                    (Prefix::containing(high << 24 | 0x10_0000, 12), NextHop::new((high % 30) as u16))
                })
                .collect();
            dag.apply(vid(1), &routes).unwrap();
            dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut writes).unwrap());
            writes.drain(..).for_each(|write| world.take(write));
            let oracle = world.versions[0].entry(1).or_default();
            for (prefix, hop) in routes {
                oracle.insert(prefix, hop.unwrap());
            }
            waiting.push(levels.take_retired());
        }
        for step in steps {
            let number = step[0].0;
            let changes: Vec<_> = step
                .iter()
                .map(|(_, high, low, len, hop, _)| {
                    let addr = high << 24 | low << 15 | low << 3 | low;
                    (Prefix::containing(addr, *len), hop.and_then(NextHop::new))
                })
                .collect();
            for (prefix, _) in &changes {
                world.keys.extend([prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]);
            }
            let mut after = world.versions.last().unwrap().clone();
            let oracle = after.entry(number).or_default();
            for (prefix, hop) in &changes {
                match hop {
                    Some(hop) => _ = oracle.insert(*prefix, *hop),
                    None => _ = oracle.remove(*prefix),
                }
            }
            let used: Vec<u64> = (0..4).map(|level| levels.words_used(level)).collect();
            let done: Result<(), Refused> = dag.apply_if(vid(number), &changes, |deltas| {
                deltas.iter().try_for_each(|delta| levels.apply(delta, &mut writes)).map_err(Refused::Level)
            });
            dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut Vec::new()).unwrap());
            if done.is_err() {
                assert!(writes.is_empty(), "a rejected change writes nothing");
                assert_eq!((0..4).map(|level| levels.words_used(level)).collect::<Vec<_>>(), used);
                world.check_all_equal_the_latest();
                continue;
            }
            world.versions.push(after);
            world.changing = true;
            let root = world.roots.get(&number).copied();
            let mut in_use = 0;
            for write in writes.drain(..) {
                world.some();
                if let Write::Root { item, .. } = write {
                    in_use += usize::from(item != root);
                    patched += usize::from(item == root);
                }
                world.take(write);
            }
            assert!(in_use <= 1);
            world.changing = false;
            world.check_all_equal_the_latest();
            waiting.push(levels.take_retired());
            if step[0].5 {
                while !world.flights.is_empty() {
                    world.go_on(0);
                }
                waiting.drain(..).for_each(|retired| levels.reclaim(retired));
            } else {
                world.some();
            }
        }
        patched
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Every lookup, whenever it started and however slow, answers from one table between its start and
        /// its end.
        #[test]
        fn lookups_in_flight_see_one_table(
            steps in steps(), flat: bool, small: bool, each in 0..3, spread: bool, seed: u64,
        ) {
            let patch = [Patch::Never, Patch::One, Patch::Each][each as usize];
            let words = if small { 700 } else { 20_000 };
            change_while_lookups_go_on(steps, (flat, words, patch, spread), (seed, false));
        }
    }

    /// Checks the checker: a lookup can arrive through a dropped reference.
    #[test]
    fn references_forgotten_too_early_are_detected() {
        let config = ProptestConfig {
            cases: 20_000,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let found = runner.run(&(steps(), any::<u64>()), |(steps, seed)| {
            change_while_lookups_go_on(steps, (true, 20_000, Patch::Each, false), (seed, true));
            Ok(())
        });
        assert!(found.is_err());
    }

    #[test]
    fn most_changes_keep_the_root() {
        let steps = (0..200_u32).map(|i| vec![(1, i % 250, 0, 12, Some((i % 7) as u16), true)]).collect();
        let patched = change_while_lookups_go_on(steps, (true, 20_000, Patch::One, true), (1, false));
        assert!(patched > 150, "{patched} of 200");
    }
}
