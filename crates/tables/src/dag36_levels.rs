//! `dag36` as the card holds it: in block RAM with a memory a level, or in one external memory.
//!
//! Flow: `Dag` deltas → [`Dag36Levels::apply`] → [`Write`]s, in the order in which the card must get them →
//! `rtl/tables/hue_dag36.sv`, or `hue_dag36_walk.sv` for one memory. Items and nodes are those of
//! [`words`](crate::dag36::words); the address in an item of level `l` names a word of the memory of level `l`. A node
//! that the store has once may be reached at several depths: it then stands in the memory of each, or in the one.
//!
//! What a network needs that does not run on the card yet can be *deferred*: its nodes get their places at once, and their
//! words are written when there is time ([`Dag36Levels::take_deferred`]), or when something that runs there names them.
//!
//! A store that software reads too has networks that are not here. Its nodes are all told, and only what a root names takes
//! room; the table of a network that comes gets its places step by step ([`Dag36Levels::bring`]).
//!
//! Most changes touch a word or two of a node that nothing else names. It is then changed where it stands ([`Patch`],
//! ADR-0017), and what is above it stays as it is; without that, a change is a new node along the whole path.
//!
//! Invariants: a node stands in a level's memory as long as a root, or a node of the level above, names it there. Its
//! words are written before whatever names them, and are given out again only by [`Dag36Levels::reclaim`], when every
//! lookup that entered before has left. What is written names nothing that is not. A change that does not fit leaves
//! everything as it was.

mod arrive;
mod patch;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::dag::Delta;
use crate::dag36::words::{NODE_FLAG, Shape, node_item, step, words_of, write};
use crate::dag36::{Arena, Dag36Error};
use crate::layout::{Ref, Runs, SLOTS};
use crate::types::{Key, Vid};

/// One word or root that the card is to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    /// A word of a level's memory, 36 bits.
    Word {
        /// The level, 0 for the first byte of the key, or for the one memory.
        level: usize,
        /// The word's address.
        index: u32,
        /// What to write.
        word: u64,
    },
    /// The root item of a network; a lookup that enters after this write sees the new table.
    Root {
        /// The network.
        vid: Vid,
        /// The item; `None`: the network has no table any more.
        item: Option<u64>,
    },
}

/// Words that nothing names any more but that lookups in flight may still read.
#[derive(Debug, Default)]
#[must_use = "words that are not reclaimed are lost to the card"]
pub struct Retired {
    words: Vec<(usize, u32, usize)>,
    /// Which of the changes so far.
    serial: u64,
    /// Nodes that are still named lost a name that lookups in flight may have found.
    lent: bool,
}

impl Retired {
    /// Whether there are none, and nothing else waits for lookups in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.lent
    }
}

/// Which words that lookups can reach a change may write.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Patch {
    /// None: lookups in flight keep to the table that they found.
    #[default]
    Never,
    /// One, if that is all that the change needs: each lookup meets the table of before or that of after, and once one met
    /// that of after, all do.
    One,
    /// As many as the change needs, one after the other: each lookup meets the table of before or that of after.
    Each,
}

type ByRef<T> = HashMap<Ref, T, foldhash::fast::FixedState>;

/// A node in a memory.
struct Placed {
    at: u32,
    /// How many roots, or items of the level above, name it.
    named: u32,
    /// The card has been told its words, and those of all that it names.
    written: bool,
    /// It lost a name in this change, by its serial number: lookups in flight may come by that name.
    lent: u64,
    /// The change under way writes some of its words.
    patched: bool,
}

struct Level {
    arena: Arena,
    placed: ByRef<Placed>,
}

/// Images of the levels, following a store's deltas.
pub struct Dag36Levels {
    /// One for each byte of the key, or one for all.
    levels: Vec<Level>,
    /// Bytes of the key.
    depth: usize,
    shape: Shape,
    /// Nodes of the store, as deltas brought them.
    nodes: ByRef<Arc<Runs>>,
    roots: HashMap<Vid, Ref>,
    /// What is named, and at which level, for networks whose tables are on their way.
    arrivals: BTreeMap<Vid, BTreeSet<(usize, Ref)>>,
    retired: Vec<(usize, u32, usize)>,
    /// Nodes that were not written when they got their places, children first, by memory; some are by now, or are gone,
    /// and the store may have given their names to others, at another depth.
    deferred: VecDeque<(usize, Ref)>,
    deferring: bool,
    /// Those of them that the change under way has had written.
    caught_up: Vec<(usize, Ref)>,
    patch: Patch,
    /// A node was to be named that the change under way writes words of.
    conflict: bool,
    /// Number of the next batch of retired words, and those that were taken but not reclaimed.
    serial: u64,
    in_flight: BTreeSet<u64>,
    lent: bool,
    /// A planted bug: lost names are forgotten at once.
    #[cfg(test)]
    forgets: bool,
}

impl Dag36Levels {
    /// Empty memories of so many words, one for each byte of the key.
    #[must_use]
    pub fn new(words_max: &[u32]) -> Self {
        Self::with(words_max, words_max.len(), Shape::Levels)
    }

    /// One empty memory of so many words for a key of `depth` bytes.
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
            caught_up: Vec::new(),
            patch: Patch::Never,
            conflict: false,
            serial: 1,
            in_flight: BTreeSet::new(),
            lent: false,
            #[cfg(test)]
            forgets: false,
        }
    }

    /// Which words in use changes from now on may write.
    pub fn patch(&mut self, patch: Patch) {
        self.patch = patch;
    }

    /// Whether words of changes from now on are deferred: those of networks that no lookup asks for.
    pub fn defer(&mut self, on: bool) {
        self.deferring = on;
    }

    /// Appends what a network's table still lacks on the card: lookups may then ask for it.
    pub fn settle(&mut self, vid: Vid, writes: &mut Vec<Write>) {
        if let Some(top) = self.roots.get(&vid).copied() {
            self.catch_up(0, top, writes);
        }
        self.caught_up.clear();
    }

    /// Appends deferred words, node by node, until there are about `words`; whether any are left.
    pub fn take_deferred(&mut self, words: usize, writes: &mut Vec<Write>) -> bool {
        let end = writes.len() + words;
        while writes.len() < end
            && let Some((memory, node)) = self.deferred.pop_front()
        {
            self.catch_up(memory, node, writes);
        }
        self.caught_up.clear();
        !self.deferred.is_empty()
    }

    /// Whether words may be deferred.
    #[must_use]
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Appends the words of a node that were not written, after those of what it names.
    fn catch_up(&mut self, memory: usize, of: Ref, writes: &mut Vec<Write>) {
        let place = self.levels[memory].placed.get_mut(&of).filter(|place| !place.written);
        let Some((place, runs)) = place.zip(self.nodes.get(&of)) else { return };
        place.written = true;
        let (at, runs) = (place.at, runs.clone());
        let below = (memory + 1).min(self.levels.len() - 1);
        runs.items().iter().for_each(|child| self.catch_up(below, *child, writes));
        let words = words_of(&runs, self.shape);
        tell(memory, at, self.levels[memory].arena.block_mut(at, words), writes);
        self.caught_up.push((memory, of));
    }

    /// The change that had deferred nodes written came to nothing, and so do the writes.
    fn fall_behind(&mut self) {
        for (memory, of) in std::mem::take(&mut self.caught_up) {
            if let Some(place) = self.levels[memory].placed.get_mut(&of) {
                place.written = false;
                self.deferred.push_back((memory, of));
            }
        }
    }

    /// The memory of a level; `None` below the key's last byte.
    fn memory(&self, level: usize) -> Option<usize> {
        (level < self.depth).then(|| level.min(self.levels.len() - 1))
    }

    /// Follows one change of the store; appends what the card must write, in this order.
    ///
    /// # Errors
    /// `LevelFull` when a level's memory has no room, `Unknown` when deltas are out of order. Then nothing is appended
    /// and the network has the table that it had; the caller takes the change back in the store.
    pub fn apply(&mut self, delta: &Delta, writes: &mut Vec<Write>) -> Result<(), Dag36Error> {
        match delta {
            Delta::Node(node, runs) => {
                self.nodes.insert(*node, runs.clone());
            }
            Delta::Root(vid, Some(top)) => {
                let before = writes.len();
                let old = self.roots.get(vid).copied();
                let named = match old {
                    Some(old) if old != *top => self.change(old, *top, writes),
                    Some(_) => Ok(self.item(0, *top)),
                    None => self.name(0, *top, writes),
                };
                if named.is_err() {
                    writes.truncate(before);
                    self.fall_behind();
                }
                self.caught_up.clear();
                let item = named?;
                writes.push(Write::Root { vid: *vid, item: Some(item) });
                self.roots.insert(*vid, *top);
            }
            Delta::Root(vid, None) => {
                if let Some(old) = self.roots.remove(vid) {
                    writes.push(Write::Root { vid: *vid, item: None });
                    self.unname(0, old, true);
                }
            }
            Delta::Retire(node) => {
                self.nodes.remove(node).ok_or(Dag36Error::Unknown(*node))?;
            }
        }
        Ok(())
    }

    /// The words that were freed since the last call. Give them back by [`Self::reclaim`] once every lookup that
    /// entered the card before the last write has left.
    pub fn take_retired(&mut self) -> Retired {
        let words = std::mem::take(&mut self.retired);
        let retired = Retired { words, serial: self.serial, lent: std::mem::take(&mut self.lent) };
        if !retired.is_empty() {
            self.in_flight.insert(self.serial);
            self.serial += 1;
        }
        retired
    }

    /// Whether there are such words, or names that were lost.
    #[must_use]
    pub fn has_retired(&self) -> bool {
        self.lent || !self.retired.is_empty()
    }

    /// Makes words free: no lookup in flight holds them any more.
    pub fn reclaim(&mut self, retired: Retired) {
        self.in_flight.remove(&retired.serial);
        for (level, at, words) in retired.words {
            self.levels[level].arena.free(at, words);
        }
    }

    /// What a level's memory holds as far as it was ever written, 36 bits a word: to repair or to check the card's.
    #[must_use]
    pub fn words(&self, level: usize) -> &[u64] {
        self.levels.get(level).map_or(&[], |level| level.arena.words())
    }

    /// Words in use in a level, retired ones that are not reclaimed included.
    #[must_use]
    pub fn words_used(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |level| level.arena.used())
    }

    /// The root item of a network.
    #[must_use]
    pub fn root(&self, vid: Vid) -> Option<u64> {
        self.roots.get(&vid).map(|top| self.item(0, *top))
    }

    /// What the card answers for a key: the next-hop word. This is the specification of the RTL walk.
    #[must_use]
    pub fn lookup<K: Key>(&self, vid: Vid, key: K) -> u16 {
        let Some(mut item) = self.root(vid) else { return u16::MAX };
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

    /// The item of something that is placed, or of a leaf.
    fn item(&self, level: usize, of: Ref) -> u64 {
        if of.is_leaf() {
            return u64::from(of.hop_word());
        }
        let place = self.memory(level).and_then(|memory| self.levels[memory].placed.get(&of));
        let place = place.zip(self.nodes.get(&of));
        place.map_or(u64::from(u16::MAX), |(place, runs)| node_item(runs, self.shape, place.at))
    }

    /// Something names a node at a level: places it there, and what it names below, if it is not there yet. On an
    /// error nothing has changed.
    fn name(&mut self, level: usize, of: Ref, writes: &mut Vec<Write>) -> Result<u64, Dag36Error> {
        if of.is_leaf() {
            return Ok(u64::from(of.hop_word()));
        }
        let Some(memory) = self.memory(level) else { return Err(Dag36Error::Unknown(of)) };
        if let Some(place) = self.levels[memory].placed.get_mut(&of) {
            if place.patched {
                self.conflict = true;
                return Err(Dag36Error::Unknown(of));
            }
            place.named += 1;
            if !self.deferring {
                self.catch_up(memory, of, writes);
            }
            return Ok(self.item(level, of));
        }
        let runs = self.nodes.get(&of).ok_or(Dag36Error::Unknown(of))?.clone();
        let mut items = [0; SLOTS];
        for (index, child) in runs.items().iter().enumerate() {
            match self.name(level + 1, *child, writes) {
                Ok(item) => items[index] = item,
                Err(error) => {
                    self.unname_items(level, &runs, index);
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
            self.unname_items(level, &runs, runs.items().len());
            return Err(full);
        };
        let block = arena.block_mut(at, words);
        write(&runs, self.shape, &items[..runs.items().len()], block);
        if self.deferring {
            self.deferred.push_back((memory, of));
        } else {
            tell(memory, at, block, writes);
        }
        let place = Placed { at, named: 1, written: !self.deferring, lent: 0, patched: false };
        placed.insert(of, place);
        Ok(node_item(&runs, self.shape, at))
    }

    /// Takes back that the first `count` items of a node being placed name what is below; no lookup has seen it.
    fn unname_items(&mut self, level: usize, runs: &Runs, count: usize) {
        for child in &runs.items()[..count] {
            self.unname(level + 1, *child, false);
        }
    }

    /// One thing less names a node at a level. Words that nothing names any more are retired, or free at once when no
    /// lookup can have `seen` them.
    fn unname(&mut self, level: usize, of: Ref, seen: bool) {
        if of.is_leaf() {
            return;
        }
        let Some(at_memory) = self.memory(level) else { return };
        let memory = &mut self.levels[at_memory];
        let Some(place) = memory.placed.get_mut(&of) else { return };
        place.named -= 1;
        if place.named > 0 {
            if seen {
                place.lent = self.serial;
                self.lent = true;
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
            self.unname(level + 1, *child, seen);
        }
    }
}

/// Appends the words of a block.
fn tell(memory: usize, at: u32, block: &[u64], writes: &mut Vec<Write>) {
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

    /// The card's memories as the writes leave them, word by word.
    #[derive(Default)]
    struct Card {
        words: [HashMap<u32, u64>; 4],
        roots: HashMap<Vid, u64>,
    }

    impl Card {
        fn take(&mut self, writes: &[Write]) {
            for write in writes {
                match *write {
                    Write::Word { level, index, word } => {
                        assert_eq!(word >> WORD_BITS, 0, "a word has 36 bits");
                        self.words[level].insert(index, word);
                    }
                    Write::Root { vid, item: Some(item) } => _ = self.roots.insert(vid, item),
                    Write::Root { vid, item: None } => _ = self.roots.remove(&vid),
                }
            }
        }
    }

    fn vid(number: u16) -> Vid {
        Vid::new(number).unwrap()
    }

    proptest! {
        #[test]
        fn follows_the_store(changes in proptest::collection::vec(
            (1_u16..4, 0_u32..4, 0_u32..40, 0_u8..=32, proptest::option::weighted(0.7, 0_u16..300)), 1..150)
        ) {
            let mut dag = Dag::<u32>::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
            dag.record_deltas();
            (1..4).for_each(|number| dag.add_network(vid(number)).unwrap());
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
                // What was retired a change ago is given back now: lookups of then have left.
                let retired = levels.take_retired();
                levels.reclaim(std::mem::replace(&mut held, retired));
                for (number, oracle) in &oracles {
                    for key in [addr, addr ^ 1, prefix.last(), prefix.last().wrapping_add(1), 0] {
                        let expected = oracle.lookup(key).map(|(_, hop)| hop);
                        prop_assert_eq!(NextHop::new(levels.lookup(vid(*number), key)), expected);
                    }
                    prop_assert_eq!(card.roots.get(&vid(*number)).copied(), levels.root(vid(*number)));
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
                prop_assert_eq!(levels.words_used(level), 0, "nothing is left at level {}", level);
            }
        }
    }

    proptest! {
        /// Some networks run on the card, others are deferred until they come; memories are so small that changes are
        /// refused. Whatever a lookup on the card can reach is there, word by word, at every moment.
        #[test]
        fn what_runs_there_finds_all_its_words(flat: bool, changes in proptest::collection::vec(
            (1_u16..4, 0_u32..4, 0_u32..20, 0_u8..=32, proptest::option::weighted(0.8, 0_u16..40), 0_u8..10), 1..150)
        ) {
            what_runs_there_is_told(flat, &changes)?;
        }
    }

    /// The store named a node as one that it had freed, which was still to be written, at a lesser depth.
    #[test]
    fn a_name_used_again_is_written_at_its_own_depth() {
        let changes = [
            (3, 1, 0, 25, Some(0), 1),
            (3, 1, 2, 17, Some(0), 4),
            (3, 1, 0, 0, Some(0), 4),
            (3, 0, 0, 25, Some(1), 4),
            (1, 0, 0, 0, None, 2),
            (3, 0, 2, 16, None, 0),
        ];
        what_runs_there_is_told(true, &changes).unwrap();
    }

    /// A network, the parts of a prefix, its next hop or none, and what else happens.
    type Change = (u16, u32, u32, u8, Option<u16>, u8);

    fn what_runs_there_is_told(flat: bool, changes: &[Change]) -> Result<(), TestCaseError> {
        let mut dag = Dag::<u32>::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
        dag.record_deltas();
        (1..4).for_each(|number| dag.add_network(vid(number)).unwrap());
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
                    levels.settle(vid(number), &mut writes);
                    runs_there[usize::from(number)] = true;
                }
                1 => runs_there[usize::from(number)] = false,
                2 | 3 => _ = levels.take_deferred(4, &mut writes),
                _ => {}
            }
            levels.defer(!runs_there[usize::from(number)]);
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
                    // As the card walks it, by the words that it was told.
                    let mut item = levels.root(vid(*number)).unwrap();
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
        /// Memories so small that many changes are refused: the store and they are then as they were, and go on.
        #[test]
        fn what_the_card_refuses_the_store_takes_back(changes in proptest::collection::vec(
            (1_u16..3, 0_u32..4, 0_u32..20, 0_u8..=32, proptest::option::weighted(0.8, 0_u16..30)), 1..120)
        ) {
            let mut dag = Dag::<u32>::new(Limits { image_bytes_max: 1 << 20, networks_max: 4 }).unwrap();
            dag.record_deltas();
            (1..3).for_each(|number| dag.add_network(vid(number)).unwrap());
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
                prop_assert!(late.is_empty(), "what goes writes nothing");
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
                    prop_assert_eq!(dag.routes(vid(*number)).count(), oracle.len());
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
        let mut dag = Dag::<u32>::new(Limits::default()).unwrap();
        dag.record_deltas();
        dag.add_network(vid(1)).unwrap();
        let mut levels = Dag36Levels::new(&[600, 40, 20, 12]);
        let mut refused = 0;
        for number in 0..64_u32 {
            let prefix = Prefix::containing(number << 26 | number << 17 | number << 9, 30);
            let hop = NextHop::new(number as u16).unwrap();
            dag.insert(vid(1), prefix, hop).unwrap();
            let (root, used) = (levels.root(vid(1)), [0, 1, 2, 3].map(|level| levels.words_used(level)));
            let mut writes = vec![Write::Root { vid: vid(9), item: None }];
            let failed = dag.take_deltas().iter().find_map(|delta| levels.apply(delta, &mut writes).err());
            if let Some(error) = failed {
                assert!(matches!(error, Dag36Error::LevelFull { .. }), "{error}");
                assert_eq!(levels.root(vid(1)), root);
                assert_eq!([0, 1, 2, 3].map(|level| levels.words_used(level)), used);
                assert_eq!(writes.len(), 1, "nothing is to be written");
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
