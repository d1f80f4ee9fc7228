//! The `dag36` image as the card stores it: in block RAM with a memory for each level, or in one external
//! memory.
//!
//! Flow: `Dag` deltas → [`Dag36Levels::apply`] → [`Write`]s, in the order in which the card must execute them
//! → `rtl/tables/hue_dag36.sv`, or `hue_dag36_walk.sv` for a single memory. [`words`](crate::dag36::words)
//! describes items and nodes. The address in an item of level `l` is in the memory of level `l`. A node of
//! the store can be reached at several depths; it then has a copy in the memory of each level.
//!
//! The words of a network that does not yet run on the card can be *deferred*: its nodes are placed at once,
//! and their words are written later ([`Dag36Levels::take_deferred`]), or when a node that is in use refers
//! to them.
//!
//! The store can have networks that are not on the card. Deltas describe all its nodes, but only nodes below
//! a root take memory. The table of a network that moves to the card can be placed in steps
//! ([`Dag36Levels::place_step`]).
//!
//! Most changes affect one or two words of a node with a single reference. Such a node is changed in place
//! ([`Patch`], ADR-0017), and the nodes above it stay unchanged. Other changes write new nodes along the
//! entire path.
//!
//! Invariants: a node is placed in a memory as long as a root, or a node of the level above, refers to it
//! there. Its words are written before any reference to them, and reused only after [`Dag36Levels::reclaim`],
//! when every lookup that started earlier has finished. Written words refer only to written words. A change
//! that does not fit leaves everything unchanged.

mod arrive;
mod patch;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::dag::Delta;
use crate::dag36::words::{NODE_FLAG, Shape, node_item, step, words_of, write};
use crate::dag36::{Arena, Dag36Error};
use crate::layout::{Ref, Runs, SLOTS};
use crate::types::{Key, TableId, Vid};

/// A write that the card must execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    /// A 36-bit word of a memory.
    Word {
        /// The level; 0 for the first byte of the key, or for the single memory.
        level: usize,
        /// Address of the word.
        index: u32,
        /// The new value.
        word: u64,
    },
    /// The root item of a table. Lookups that start after this write use the new one.
    Root {
        /// The table.
        table: TableId,
        /// The item; `None` means that the network no longer has the table.
        item: Option<u64>,
    },
}

/// Words without references that lookups in flight may still read.
#[derive(Debug, Default)]
#[must_use = "words that are not reclaimed are lost to the card"]
pub struct Retired {
    words: Vec<(usize, u32, usize)>,
    /// Serial number of this batch.
    serial: u64,
    /// Whether nodes that are still referenced lost a reference through which lookups in flight may have
    /// reached them.
    references_dropped: bool,
}

impl Retired {
    /// Whether there are no such words and no dropped references.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.references_dropped
    }
}

/// How a change may overwrite words that lookups can reach.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Patch {
    /// No such word is overwritten: a lookup in flight continues with the table that it found.
    #[default]
    Never,
    /// At most one word, if the change needs no more. Each lookup sees either the old table or the new one;
    /// once one lookup has seen the new table, all later ones do.
    One,
    /// Any number of words, one after another. Each lookup sees either the old table or the new one.
    Each,
}

type ByRef<T> = HashMap<Ref, T, foldhash::fast::FixedState>;

/// A node in a memory.
struct Placed {
    at: u32,
    /// Number of roots and of items in the level above that refer to it.
    references: u32,
    /// Whether its words, and those of all nodes below it, have been written to the card.
    written: bool,
    /// Serial number of the batch in which it last lost a reference. Lookups in flight may have followed that
    /// reference.
    dropped_in: u64,
    /// Whether the change in progress overwrites words of it.
    patched: bool,
}

struct Level {
    arena: Arena,
    placed: ByRef<Placed>,
}

/// Images of all levels, which follow the deltas of a store.
pub struct Dag36Levels {
    /// One for each byte of the key, or a single one.
    levels: Vec<Level>,
    /// Length of the key in bytes.
    depth: usize,
    shape: Shape,
    /// Nodes of the store, as described by deltas.
    nodes: ByRef<Arc<Runs>>,
    roots: HashMap<TableId, Ref>,
    /// Nodes, with their level, that are placed for tables whose placement is in progress.
    arrivals: BTreeMap<TableId, BTreeSet<(usize, Ref)>>,
    retired: Vec<(usize, u32, usize)>,
    /// Deferred nodes with their memory, children first. Entries can be outdated: the node was written since
    /// or was removed, or the store reused its ref at another depth.
    deferred: VecDeque<(usize, Ref)>,
    deferring: bool,
    /// Deferred nodes that the change in progress has written.
    deferred_written: Vec<(usize, Ref)>,
    patch: Patch,
    /// Whether the change in progress needs a reference to a node whose words it overwrites.
    conflict: bool,
    /// Serial number of the next batch of retired words, and the batches that were taken but not reclaimed.
    serial: u64,
    in_flight: BTreeSet<u64>,
    references_dropped: bool,
    /// A planted bug: dropped references are forgotten immediately.
    #[cfg(test)]
    forgets: bool,
}

impl Dag36Levels {
    /// Creates empty memories with these sizes in words, one for each byte of the key.
    #[must_use]
    pub fn new(words_max: &[u32]) -> Self {
        Self::with(words_max, words_max.len(), Shape::Levels)
    }

    /// Creates one empty memory of `words_max` words, for keys of `depth` bytes.
    #[must_use]
    pub fn flat(words_max: u32, depth: usize) -> Self {
        Self::with(&[words_max], depth, Shape::Flat)
    }

    fn with(words_max: &[u32], depth: usize, shape: Shape) -> Self {
        let level = |words_max: &u32| Level { arena: Arena::new(*words_max), placed: ByRef::default() };
        Self {
            levels: words_max.iter().map(level).collect(),
            depth,
            shape,
            nodes: ByRef::default(),
            roots: HashMap::new(),
            arrivals: BTreeMap::new(),
            retired: Vec::new(),
            deferred: VecDeque::new(),
            deferring: false,
            deferred_written: Vec::new(),
            patch: Patch::Never,
            conflict: false,
            serial: 1,
            in_flight: BTreeSet::new(),
            references_dropped: false,
            #[cfg(test)]
            forgets: false,
        }
    }

    /// Sets how later changes may overwrite words in use.
    pub fn set_patch(&mut self, patch: Patch) {
        self.patch = patch;
    }

    /// Sets whether later changes defer their words. Use it for networks that no lookup asks for.
    pub fn set_deferring(&mut self, on: bool) {
        self.deferring = on;
    }

    /// Appends all missing words of a table. Lookups may use the table once they are written.
    pub fn flush_deferred(&mut self, table: TableId, writes: &mut Vec<Write>) {
        if let Some(top) = self.roots.get(&table).copied() {
            self.write_deferred(0, top, writes);
        }
        self.deferred_written.clear();
    }

    /// Appends deferred words, node by node, until there are about `words`. Returns whether more are left.
    pub fn take_deferred(&mut self, words: usize, writes: &mut Vec<Write>) -> bool {
        let end = writes.len() + words;
        while writes.len() < end
            && let Some((memory, node)) = self.deferred.pop_front()
        {
            self.write_deferred(memory, node, writes);
        }
        self.deferred_written.clear();
        !self.deferred.is_empty()
    }

    /// Whether there may be deferred words.
    #[must_use]
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Appends the missing words of a node, after those of its children.
    fn write_deferred(&mut self, memory: usize, of: Ref, writes: &mut Vec<Write>) {
        let place = self.levels[memory].placed.get_mut(&of).filter(|place| !place.written);
        let Some((place, runs)) = place.zip(self.nodes.get(&of)) else { return };
        place.written = true;
        let (at, runs) = (place.at, runs.clone());
        let below = (memory + 1).min(self.levels.len() - 1);
        runs.items().iter().for_each(|child| self.write_deferred(below, *child, writes));
        let words = words_of(&runs, self.shape);
        push_writes(memory, at, self.levels[memory].arena.block_mut(at, words), writes);
        self.deferred_written.push((memory, of));
    }

    /// Marks nodes as deferred again, after a change that wrote them has failed.
    fn defer_again(&mut self) {
        for (memory, of) in std::mem::take(&mut self.deferred_written) {
            if let Some(place) = self.levels[memory].placed.get_mut(&of) {
                place.written = false;
                self.deferred.push_back((memory, of));
            }
        }
    }

    /// The memory of a level; `None` below the last byte of the key.
    fn memory(&self, level: usize) -> Option<usize> {
        (level < self.depth).then(|| level.min(self.levels.len() - 1))
    }

    /// Applies one delta of the store. Appends the writes for the card, in order.
    ///
    /// # Errors
    /// `LevelFull` if a memory has no room, `Unknown` if deltas are out of order. Nothing is appended then,
    /// and the network keeps its table; the caller must undo the change in the store.
    pub fn apply(&mut self, delta: &Delta, writes: &mut Vec<Write>) -> Result<(), Dag36Error> {
        match delta {
            Delta::Node(node, runs) => {
                self.nodes.insert(*node, runs.clone());
            }
            Delta::Root(table, Some(top)) => {
                let before = writes.len();
                let old = self.roots.get(table).copied();
                let changed = match old {
                    Some(old) if old != *top => self.change(old, *top, writes),
                    Some(_) => Ok(self.item(0, *top)),
                    None => self.add_reference(0, *top, writes),
                };
                if changed.is_err() {
                    writes.truncate(before);
                    self.defer_again();
                }
                self.deferred_written.clear();
                let item = changed?;
                writes.push(Write::Root { table: *table, item: Some(item) });
                self.roots.insert(*table, *top);
            }
            Delta::Root(table, None) => {
                if let Some(old) = self.roots.remove(table) {
                    writes.push(Write::Root { table: *table, item: None });
                    self.drop_reference(0, old, true);
                }
            }
            Delta::Retire(node) => {
                self.nodes.remove(node).ok_or(Dag36Error::Unknown(*node))?;
            }
        }
        Ok(())
    }

    /// Returns the words retired since the last call. Pass them to [`Self::reclaim`] once every lookup that
    /// started before the last write has finished.
    pub fn take_retired(&mut self) -> Retired {
        let words = std::mem::take(&mut self.retired);
        let retired = Retired {
            words,
            serial: self.serial,
            references_dropped: std::mem::take(&mut self.references_dropped),
        };
        if !retired.is_empty() {
            self.in_flight.insert(self.serial);
            self.serial += 1;
        }
        retired
    }

    /// Whether there are retired words or dropped references.
    #[must_use]
    pub fn has_retired(&self) -> bool {
        self.references_dropped || !self.retired.is_empty()
    }

    /// Frees retired words. No lookup in flight may read them any more.
    pub fn reclaim(&mut self, retired: Retired) {
        self.in_flight.remove(&retired.serial);
        for (level, at, words) in retired.words {
            self.levels[level].arena.free(at, words);
        }
    }

    /// The content of a level's memory up to the last word ever written, 36 bits each; for repair and checks.
    #[must_use]
    pub fn words(&self, level: usize) -> &[u64] {
        self.levels.get(level).map_or(&[], |level| level.arena.words())
    }

    /// Words in use in a level, including retired words that are not reclaimed.
    #[must_use]
    pub fn words_used(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |level| level.arena.used())
    }

    /// The root item of a table.
    #[must_use]
    pub fn root(&self, table: TableId) -> Option<u64> {
        self.roots.get(&table).map(|top| self.item(0, *top))
    }

    /// Looks up a key as the card does and returns the next-hop word. This is the specification of the RTL.
    #[must_use]
    pub fn lookup<K: Key>(&self, vid: Vid, key: K) -> u16 {
        let Some(mut item) = self.root(TableId::of::<K>(vid)) else { return u16::MAX };
        let mut reads = 0;
        for (level, depth) in (0..self.depth).zip((0..K::BITS).step_by(8)) {
            if item & NODE_FLAG == 0 {
                break;
            }
            let memory = self.memory(level).map_or(&[][..], |memory| self.levels[memory].arena.words());
            item = step(item, key.byte_at(depth), memory, &mut reads);
        }
        item as u16
    }

    /// The item for a placed node or a leaf.
    fn item(&self, level: usize, of: Ref) -> u64 {
        if of.is_leaf() {
            return u64::from(of.hop_word());
        }
        let place = self.memory(level).and_then(|memory| self.levels[memory].placed.get(&of));
        let place = place.zip(self.nodes.get(&of));
        place.map_or(u64::from(u16::MAX), |(place, runs)| node_item(runs, self.shape, place.at))
    }

    /// Adds a reference to a node at a level. If the node is not there, it and its children are placed. On an
    /// error, nothing has changed.
    fn add_reference(&mut self, level: usize, of: Ref, writes: &mut Vec<Write>) -> Result<u64, Dag36Error> {
        if of.is_leaf() {
            return Ok(u64::from(of.hop_word()));
        }
        let Some(memory) = self.memory(level) else { return Err(Dag36Error::Unknown(of)) };
        if let Some(place) = self.levels[memory].placed.get_mut(&of) {
            if place.patched {
                self.conflict = true;
                return Err(Dag36Error::Unknown(of));
            }
            place.references += 1;
            if !self.deferring {
                self.write_deferred(memory, of, writes);
            }
            return Ok(self.item(level, of));
        }
        let runs = self.nodes.get(&of).ok_or(Dag36Error::Unknown(of))?.clone();
        let mut items = [0; SLOTS];
        for (index, child) in runs.items().iter().enumerate() {
            match self.add_reference(level + 1, *child, writes) {
                Ok(item) => items[index] = item,
                Err(error) => {
                    self.drop_item_references(level, &runs, index);
                    return Err(error);
                }
            }
        }
        let words = words_of(&runs, self.shape);
        let Level { arena, placed } = &mut self.levels[memory];
        let Some(at) = arena.allocate(words) else {
            let full = match self.shape {
                Shape::Levels => arena.full_level(level, words),
                Shape::Flat => arena.full(words),
            };
            self.drop_item_references(level, &runs, runs.items().len());
            return Err(full);
        };
        let block = arena.block_mut(at, words);
        write(&runs, self.shape, &items[..runs.items().len()], block);
        if self.deferring {
            self.deferred.push_back((memory, of));
        } else {
            push_writes(memory, at, block, writes);
        }
        let place = Placed { at, references: 1, written: !self.deferring, dropped_in: 0, patched: false };
        placed.insert(of, place);
        Ok(node_item(&runs, self.shape, at))
    }

    /// Drops the references of the first `count` items of a node whose placement failed; no lookup has seen
    /// them.
    fn drop_item_references(&mut self, level: usize, runs: &Runs, count: usize) {
        for child in &runs.items()[..count] {
            self.drop_reference(level + 1, *child, false);
        }
    }

    /// Drops a reference to a node at a level. A node without references is retired, or freed at once if no
    /// lookup can have `seen` it.
    fn drop_reference(&mut self, level: usize, of: Ref, seen: bool) {
        if of.is_leaf() {
            return;
        }
        let Some(at_memory) = self.memory(level) else { return };
        let memory = &mut self.levels[at_memory];
        let Some(place) = memory.placed.get_mut(&of) else { return };
        place.references -= 1;
        if place.references > 0 {
            if seen {
                place.dropped_in = self.serial;
                self.references_dropped = true;
            }
            return;
        }
        let at = place.at;
        memory.placed.remove(&of);
        let Some(runs) = self.nodes.get(&of).cloned() else { return };
        let words = words_of(&runs, self.shape);
        if seen {
            self.retired.push((at_memory, at, words));
        } else {
            memory.arena.free(at, words);
        }
        for child in runs.items() {
            self.drop_reference(level + 1, *child, seen);
        }
    }
}

/// Appends the words of a block.
fn push_writes(memory: usize, at: u32, block: &[u64], writes: &mut Vec<Write>) {
    let words = block.iter().zip(at..);
    writes.extend(words.map(|(word, index)| Write::Word { level: memory, index, word: *word }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::*;
    use crate::dag::Dag;
    use crate::dag36::{CARD_WORDS, WORD_BITS};
    use crate::limits::{Limits, TableError};
    use crate::oracle::Oracle;
    use crate::types::{NextHop, Prefix};

    /// A model of the card: its memories after the writes.
    #[derive(Default)]
    struct Card {
        words: [HashMap<u32, u64>; 4],
        roots: HashMap<TableId, u64>,
    }

    impl Card {
        fn take(&mut self, writes: &[Write]) {
            for write in writes {
                match *write {
                    Write::Word { level, index, word } => {
                        assert_eq!(word >> WORD_BITS, 0, "a word has 36 bits");
                        self.words[level].insert(index, word);
                    }
                    Write::Root { table, item: Some(item) } => _ = self.roots.insert(table, item),
                    Write::Root { table, item: None } => _ = self.roots.remove(&table),
                }
            }
        }
    }

    fn vid(number: u16) -> Vid {
        Vid::new(number).unwrap()
    }

    fn table(number: u16) -> TableId {
        TableId::of::<u32>(vid(number))
    }

    proptest! {
        #[test]
        fn follows_the_store(changes in proptest::collection::vec(
            (1_u16..4, 0_u32..4, 0_u32..40, 0_u8..=32, proptest::option::weighted(0.7, 0_u16..300)), 1..150)
        ) {
            let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
            dag.enable_deltas();
            (1..4).for_each(|number| dag.add_network::<u32>(vid(number)).unwrap());
            let mut levels = Dag36Levels::new(&[CARD_WORDS; 4]);
            let mut card = Card::default();
            let mut oracles: HashMap<u16, Oracle<u32>> = HashMap::new();
            let mut held = Retired::default();
            for (number, high, low, len, hop) in changes {
                let addr = high << 30 | low << 15 | low << 3 | low;
                let prefix = Prefix::containing(addr, len);
                let oracle = oracles.entry(number).or_default();
                match hop.and_then(NextHop::new) {
                    Some(hop) => { dag.insert(vid(number), prefix, hop).unwrap(); oracle.insert(prefix, hop); }
                    None => { dag.remove(vid(number), prefix).unwrap(); oracle.remove(prefix); }
                }
                let mut writes = Vec::new();
                for delta in dag.take_deltas() {
                    levels.apply(&delta, &mut writes).unwrap();
                }
                card.take(&writes);
                // Words retired one change ago are reclaimed now: earlier lookups have finished.
                let retired = levels.take_retired();
                levels.reclaim(std::mem::replace(&mut held, retired));
                for (number, oracle) in &oracles {
                    for key in [addr, addr ^ 1, prefix.last(), prefix.last().wrapping_add(1), 0] {
                        let expected = oracle.lookup(key).map(|(_, hop)| hop);
                        prop_assert_eq!(NextHop::new(levels.lookup(vid(*number), key)), expected);
                    }
                    prop_assert_eq!(card.roots.get(&table(*number)).copied(), levels.root(table(*number)));
                }
            }
            for (level, words) in card.words.iter().enumerate() {
                for (index, word) in words {
                    prop_assert_eq!(levels.words(level)[*index as usize], *word, "level {} word {}", level, index);
                }
            }
            (1..4).for_each(|number| dag.remove_network(vid(number)).unwrap());
            let mut writes = Vec::new();
            for delta in dag.take_deltas() {
                levels.apply(&delta, &mut writes).unwrap();
            }
            levels.reclaim(held);
            let last = levels.take_retired();
            levels.reclaim(last);
            for level in 0..4 {
                prop_assert_eq!(levels.words_used(level), 0, "words left at level {}", level);
            }
        }
    }

    proptest! {
        /// Some networks run on the card, others are deferred until they are used. The memories are so small
        /// that some changes are rejected. At every moment, all words that a lookup on the card can reach
        /// have been written.
        #[test]
        fn networks_on_the_card_find_all_their_words(flat: bool, changes in proptest::collection::vec(
            (1_u16..4, 0_u32..4, 0_u32..20, 0_u8..=32, proptest::option::weighted(0.8, 0_u16..40), 0_u8..10), 1..150)
        ) {
            check_words_of_running_networks(flat, &changes)?;
        }
    }

    /// The store reused the ref of a freed node, whose deferred words were not yet written, at a smaller
    /// depth.
    #[test]
    fn a_reused_ref_is_written_at_its_own_depth() {
        let changes = [
            (3, 1, 0, 25, Some(0), 1),
            (3, 1, 2, 17, Some(0), 4),
            (3, 1, 0, 0, Some(0), 4),
            (3, 0, 0, 25, Some(1), 4),
            (1, 0, 0, 0, None, 2),
            (3, 0, 2, 16, None, 0),
        ];
        check_words_of_running_networks(true, &changes).unwrap();
    }

    /// A network, the parts of a prefix, its next hop or `None`, and what else happens.
    type Change = (u16, u32, u32, u8, Option<u16>, u8);

    fn check_words_of_running_networks(flat: bool, changes: &[Change]) -> Result<(), TestCaseError> {
        let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
        dag.enable_deltas();
        (1..4).for_each(|number| dag.add_network::<u32>(vid(number)).unwrap());
        let mut levels = if flat { Dag36Levels::flat(90, 4) } else { Dag36Levels::new(&[40, 40, 30, 30]) };
        let mut card = Card::default();
        let mut writes = Vec::new();
        dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut writes).unwrap());
        let mut oracles: HashMap<u16, Oracle<u32>> = HashMap::new();
        let mut runs_there = [true, true, false, false];
        let mut keys = vec![0, u32::MAX];
        for (number, high, low, len, hop, what) in changes.iter().copied() {
            let addr = high << 30 | low << 15 | low << 3 | low;
            let prefix = Prefix::containing(addr, len);
            keys.extend([addr, prefix.last(), prefix.last().wrapping_add(1)]);
            match what {
                0 => {
                    levels.flush_deferred(table(number), &mut writes);
                    runs_there[usize::from(number)] = true;
                }
                1 => runs_there[usize::from(number)] = false,
                2 | 3 => _ = levels.take_deferred(4, &mut writes),
                _ => {}
            }
            levels.set_deferring(!runs_there[usize::from(number)]);
            let hop = hop.and_then(NextHop::new);
            let done = dag.apply_if(vid(number), &[(prefix, hop)], |deltas| {
                deltas.iter().try_for_each(|delta| levels.apply(delta, &mut writes)).map_err(Refused::Level)
            });
            dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut Vec::new()).unwrap());
            card.take(&std::mem::take(&mut writes));
            let retired = levels.take_retired();
            levels.reclaim(retired);
            let oracle = oracles.entry(number).or_default();
            match (done.is_ok(), hop) {
                (true, Some(hop)) => _ = oracle.insert(prefix, hop),
                (true, None) => _ = oracle.remove(prefix),
                (false, _) => {}
            }
            for (number, oracle) in &oracles {
                let memory = |level: usize| if flat { 0 } else { level };
                for key in &keys {
                    let expected = NextHop::word(oracle.lookup(*key).map(|(_, hop)| hop));
                    prop_assert_eq!(levels.lookup(vid(*number), *key), expected);
                    if !runs_there[usize::from(*number)] {
                        continue;
                    }
                    // Walks as the card does, over the words that were written to it.
                    let mut item = levels.root(table(*number)).unwrap();
                    for level in 0..4 {
                        if item & NODE_FLAG == 0 {
                            break;
                        }
                        let told = &card.words[memory(level)];
                        let last = told.keys().max().map_or(0, |last| *last as usize + 1);
                        let words: Vec<u64> = (0..last)
                            .map(|index| told.get(&(index as u32)).copied().unwrap_or(1 << 36))
                            .collect();
                        item = step(item, key.byte_at(8 * level as u8), &words, &mut 0);
                    }
                    prop_assert_eq!(item as u16, expected, "network {} at {:x}", number, key);
                }
            }
        }
        Ok(())
    }

    /// Errors of a store and of its follower.
    #[derive(Debug)]
    pub(super) enum Refused {
        Store,
        Level(Dag36Error),
    }

    impl From<TableError> for Refused {
        fn from(_: TableError) -> Self {
            Self::Store
        }
    }

    proptest! {
        /// Memories so small that many changes are rejected: store and follower are then unchanged, and
        /// continue.
        #[test]
        fn a_change_rejected_by_the_card_is_undone_in_the_store(changes in proptest::collection::vec(
            (1_u16..3, 0_u32..4, 0_u32..20, 0_u8..=32, proptest::option::weighted(0.8, 0_u16..30)), 1..120)
        ) {
            let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
            dag.enable_deltas();
            (1..3).for_each(|number| dag.add_network::<u32>(vid(number)).unwrap());
            let mut levels = Dag36Levels::new(&[40, 40, 30, 30]);
            let mut writes = Vec::new();
            dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut writes).unwrap());
            let mut reader = dag.reader().unwrap();
            let mut oracles: HashMap<u16, Oracle<u32>> = HashMap::new();
            let mut keys = vec![0, u32::MAX];
            for (number, high, low, len, hop) in changes {
                let addr = high << 30 | low << 15 | low << 3 | low;
                let prefix = Prefix::containing(addr, len);
                keys.extend([addr, prefix.last(), prefix.last().wrapping_add(1)]);
                let hop = hop.and_then(NextHop::new);
                let done = dag.apply_if(vid(number), &[(prefix, hop)], |deltas| {
                    let mut all = deltas.iter();
                    all.try_for_each(|delta| levels.apply(delta, &mut writes)).map_err(Refused::Level)
                });
                let mut late = Vec::new();
                dag.take_deltas().iter().for_each(|delta| levels.apply(delta, &mut late).unwrap());
                prop_assert!(late.is_empty(), "removal writes nothing");
                let retired = levels.take_retired();
                levels.reclaim(retired);
                let oracle = oracles.entry(number).or_default();
                match (&done, hop) {
                    (Ok(()), Some(hop)) => _ = oracle.insert(prefix, hop),
                    (Ok(()), None) => _ = oracle.remove(prefix),
                    (Err(Refused::Level(Dag36Error::LevelFull { .. })), _) => {}
                    (Err(refused), _) => panic!("{refused:?}"),
                }
                let guard = reader.pin();
                for (number, oracle) in &oracles {
                    prop_assert_eq!(dag.routes::<u32>(vid(*number)).count(), oracle.len());
                    for key in &keys {
                        let expected = oracle.lookup(*key).map(|(_, hop)| hop);
                        prop_assert_eq!(NextHop::new(levels.lookup(vid(*number), *key)), expected);
                        prop_assert_eq!(guard.lookup(vid(*number), *key), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn full_changes_nothing() {
        let mut dag = Dag::new(Limits::default()).unwrap();
        dag.enable_deltas();
        dag.add_network::<u32>(vid(1)).unwrap();
        let mut levels = Dag36Levels::new(&[600, 40, 20, 12]);
        let mut refused = 0;
        for number in 0..64_u32 {
            let prefix = Prefix::containing(number << 26 | number << 17 | number << 9, 30);
            let hop = NextHop::new(number as u16).unwrap();
            dag.insert(vid(1), prefix, hop).unwrap();
            let (root, used) = (levels.root(table(1)), [0, 1, 2, 3].map(|level| levels.words_used(level)));
            let mut writes = vec![Write::Root { table: table(9), item: None }];
            let failed = dag.take_deltas().iter().find_map(|delta| levels.apply(delta, &mut writes).err());
            if let Some(error) = failed {
                assert!(matches!(error, Dag36Error::LevelFull { .. }), "{error}");
                assert_eq!(levels.root(table(1)), root);
                assert_eq!([0, 1, 2, 3].map(|level| levels.words_used(level)), used);
                assert_eq!(writes.len(), 1, "nothing is written");
                refused += 1;
                break;
            }
            let retired = levels.take_retired();
            levels.reclaim(retired);
        }
        assert_eq!(refused, 1, "the memories are small");
        for level in 0..4 {
            assert!(levels.words(level).len() <= [600, 40, 20, 12][level]);
        }
    }
}
