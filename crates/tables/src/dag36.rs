//! The `dag36` table image: the trie in dense 36-bit words, for the card's SRAM banks and block RAMs.
//!
//! Flow: `Dag` deltas → `Dag36::apply` → words. The card (RTL) reads them, and `Dag36::lookup` is the
//! specification of how. [`words`] describes the format. Roots, one item for each network, are registers of
//! the card and not part of the image. Words of retired nodes are overwritten only after `reclaim`, which the
//! card's driver calls when no lookup in flight can read them.

pub mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use thiserror::Error;

use self::words::{ADDRESS, NODE_FLAG, Shape};
use crate::dag::{Dag, Delta};
use crate::layout::{Ref, Runs, SLOTS};
use crate::limits::{Account, TableError};
use crate::types::{Key, TableId, Vid};

/// Words of the card's two SRAM banks: 2^19 each.
pub const CARD_WORDS: u32 = 1 << 20;
/// Width of a word in bits.
pub const WORD_BITS: u32 = 36;
/// Words of a node in this encoding, in a single memory.
#[must_use]
pub fn words_of(runs: &Runs) -> u64 {
    words::words_of(runs, Shape::Flat) as u64
}

/// Words of a node with a memory for each level, where a lookup has two accesses to each memory.
#[must_use]
pub fn words_of_level(runs: &Runs) -> u64 {
    words::words_of(runs, Shape::Levels) as u64
}

/// Words of all live nodes of a store in this encoding.
#[must_use]
pub fn words_total(dag: &Dag) -> u64 {
    dag.nodes().map(|node| words_of(&dag.runs(node))).sum()
}

/// Memory of one network in this encoding, in words (the `bytes_` fields of the account hold words).
///
/// # Errors
/// `UnknownNetwork`.
pub fn account_words(dag: &Dag, vid: Vid) -> Result<Account, TableError> {
    dag.account_by(vid, |node| words_of(&dag.runs(node)))
}

/// Why a delta was rejected. The image is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Dag36Error {
    /// The node does not fit into the unused words.
    #[error(
        "card table full: {words_used} of words_max = {words_max} words are in use and a node needs {words} more"
    )]
    Full {
        /// Words that the node needs.
        words: u64,
        /// Words in use, including retired ones.
        words_used: u64,
        /// The limit.
        words_max: u32,
    },
    /// The memory of a level has no room for a node.
    #[error(
        "card table full: level {level} has {words_used} of words_max = {words_max} words in use and a node needs \
         {words} more"
    )]
    LevelFull {
        /// The level; 0 for the first byte of the key.
        level: usize,
        /// Words that the node needs.
        words: u64,
        /// Words in use in this memory, including retired ones.
        words_used: u64,
        /// The limit.
        words_max: u32,
    },
    /// A delta refers to a node that no earlier delta added (a bug of the sender).
    #[error("delta refers to node {0:?}, which is not in the image")]
    Unknown(Ref),
}

/// Usage of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Room {
    /// Size limit in words.
    pub words_max: u32,
    /// Words of live and retired nodes.
    pub words_used: u64,
    /// Words from the start of the memory to the last word ever written.
    pub words_high: u32,
    /// Number of free blocks below that word.
    pub blocks_free: usize,
    /// Words of the largest node that would fit.
    pub words_fit: u32,
}

/// The words of one memory, in blocks of any size. Adjacent free blocks are merged, to limit fragmentation.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Arena {
    words: Vec<u64>,
    words_max: u32,
    /// Free blocks: size by address, and (size, address).
    free: BTreeMap<u32, usize>,
    by_size: BTreeSet<(usize, u32)>,
    used: u64,
}

impl Arena {
    pub(crate) fn new(words_max: u32) -> Self {
        Self {
            words: Vec::new(),
            words_max: words_max.min(CARD_WORDS),
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
            used: 0,
        }
    }

    /// Allocates a block, the smallest that fits. Returns `None` if there is no room.
    pub(crate) fn allocate(&mut self, words: usize) -> Option<u32> {
        let at = match self.by_size.range((words, 0)..).next().copied() {
            Some((size, at)) => {
                self.remove_free(at, size);
                if size > words {
                    self.add_free(at + words as u32, size - words);
                }
                at
            }
            None => self.grow(words)?,
        };
        self.used += words as u64;
        Some(at)
    }

    /// Allocates a block at the end of the used range; a free block at the end becomes its start.
    fn grow(&mut self, words: usize) -> Option<u32> {
        let end = self.words.len();
        let last = self.free.last_key_value().map(|(at, size)| (*at, *size));
        let last = last.filter(|(at, size)| *at as usize + size == end);
        let at = last.map_or(end, |(at, _)| at as usize);
        if at + words > self.words_max as usize {
            return None;
        }
        if let Some((at, size)) = last {
            self.remove_free(at, size);
        }
        self.words.resize(at + words, 0);
        Some(at as u32)
    }

    pub(crate) fn free(&mut self, mut at: u32, mut words: usize) {
        self.used -= words as u64;
        let before = self.free.range(..at).next_back().map(|(at, size)| (*at, *size));
        if let Some((start, size)) = before.filter(|(start, size)| *start as usize + size == at as usize) {
            self.remove_free(start, size);
            (at, words) = (start, words + size);
        }
        let next = at + words as u32;
        if let Some(size) = self.free.get(&next).copied() {
            self.remove_free(next, size);
            words += size;
        }
        self.add_free(at, words);
    }

    fn remove_free(&mut self, at: u32, words: usize) {
        self.free.remove(&at);
        self.by_size.remove(&(words, at));
    }

    fn add_free(&mut self, at: u32, words: usize) {
        self.free.insert(at, words);
        self.by_size.insert((words, at));
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The error that a block does not fit.
    pub(crate) fn full(&self, words: usize) -> Dag36Error {
        Dag36Error::Full { words: words as u64, words_used: self.used, words_max: self.words_max }
    }

    /// The same error for the memory of a level.
    pub(crate) fn full_level(&self, level: usize, words: usize) -> Dag36Error {
        Dag36Error::LevelFull { level, words: words as u64, words_used: self.used, words_max: self.words_max }
    }

    /// Words in allocated blocks.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// The words of a block, mutable.
    pub(crate) fn block_mut(&mut self, at: u32, words: usize) -> &mut [u64] {
        &mut self.words[at as usize..at as usize + words]
    }

    pub(crate) fn room(&self) -> Room {
        let high = self.words.len() as u32;
        let last = self.free.last_key_value().filter(|(at, size)| **at as usize + **size == self.words.len());
        // The most that `grow` can allocate: a free block at the end of the used range and everything after
        // it.
        let end = self.words_max - last.map_or(high, |(at, _)| *at);
        let inside = self.by_size.last().map_or(0, |(size, _)| *size as u32);
        Room {
            words_max: self.words_max,
            words_used: self.used,
            words_high: high,
            blocks_free: self.free.len(),
            words_fit: end.max(inside),
        }
    }
}

/// A `dag36` image that follows the deltas of a store.
pub struct Dag36 {
    arena: Arena,
    roots: HashMap<TableId, u64>,
    /// Item and size of each node of the store.
    nodes: HashMap<Ref, (u64, usize)>,
    retired: Vec<(u32, usize)>,
}

impl Dag36 {
    /// Creates an empty image of at most `words_max` words, limited to the 20-bit address space.
    #[must_use]
    pub fn new(words_max: u32) -> Self {
        Self {
            arena: Arena::new(words_max),
            roots: HashMap::new(),
            nodes: HashMap::new(),
            retired: Vec::new(),
        }
    }

    /// Applies one delta of the store.
    ///
    /// # Errors
    /// `Full` if a node does not fit, `Unknown` if deltas are out of order.
    pub fn apply(&mut self, delta: &Delta) -> Result<(), Dag36Error> {
        match delta {
            Delta::Node(node, runs) => {
                let mut items = [0; SLOTS];
                for (item, to) in runs.items().iter().zip(&mut items) {
                    *to = self.item(*item)?;
                }
                let words = words_of(runs) as usize;
                let at = self.arena.allocate(words).ok_or_else(|| self.arena.full(words))?;
                words::write(
                    runs,
                    Shape::Flat,
                    &items[..runs.items().len()],
                    self.arena.block_mut(at, words),
                );
                self.nodes.insert(*node, (words::node_item(runs, Shape::Flat, at), words));
            }
            Delta::Root(table, Some(top)) => {
                let item = self.item(*top)?;
                self.roots.insert(*table, item);
            }
            Delta::Root(table, None) => {
                self.roots.remove(table);
            }
            Delta::Retire(node) => {
                let (item, words) = self.nodes.remove(node).ok_or(Dag36Error::Unknown(*node))?;
                self.retired.push(((item & ADDRESS) as u32, words));
            }
        }
        Ok(())
    }

    /// Frees the words of retired nodes. Call it when no lookup in flight can read them.
    pub fn reclaim(&mut self) {
        for (at, words) in self.retired.drain(..) {
            self.arena.free(at, words);
        }
    }

    /// The words written so far, 36 bits each.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.arena.words()
    }

    /// Words of live nodes, and of retired nodes that are not reclaimed.
    #[must_use]
    pub fn words_used(&self) -> u64 {
        self.arena.used()
    }

    /// The usage of the memory.
    #[must_use]
    pub fn room(&self) -> Room {
        self.arena.room()
    }

    /// The root item of a table, as in the card's register.
    #[must_use]
    pub fn root(&self, table: TableId) -> Option<u64> {
        self.roots.get(&table).copied()
    }

    /// Looks up a key as the card does. Returns the next-hop word and the number of words read. This is the
    /// specification of the RTL.
    #[must_use]
    pub fn lookup<K: Key>(&self, vid: Vid, key: K) -> (u16, u32) {
        let Some(mut item) = self.root(TableId::of::<K>(vid)) else { return (u16::MAX, 0) };
        let mut reads = 0;
        for depth in (0..K::BITS).step_by(8) {
            if item & NODE_FLAG == 0 {
                break;
            }
            item = words::step(item, key.byte_at(depth), self.arena.words(), &mut reads);
        }
        (item as u16, reads)
    }

    fn item(&self, of: Ref) -> Result<u64, Dag36Error> {
        if of.is_leaf() {
            return Ok(u64::from(of.hop_word()));
        }
        self.nodes.get(&of).map(|(item, _)| *item).ok_or(Dag36Error::Unknown(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::oracle::Oracle;
    use crate::types::{NextHop, Prefix};
    use proptest::prelude::*;

    proptest! {
        /// Blocks never overlap, and all free space is merged into one block at the end.
        #[test]
        fn free_space_is_not_fragmented(
            steps in proptest::collection::vec((1_usize..12, any::<proptest::sample::Index>()), 1..200)
        ) {
            const WORDS: u32 = 100;
            let mut arena = Arena::new(WORDS);
            let mut given: Vec<(u32, usize)> = Vec::new();
            for (words, which) in steps {
                match arena.allocate(words) {
                    Some(at) => {
                        let apart = |(other, size): &(u32, usize)| {
                            at as usize + words <= *other as usize || *other as usize + size <= at as usize
                        };
                        prop_assert!(at as usize + words <= WORDS as usize && given.iter().all(apart));
                        given.push((at, words));
                    }
                    None => {
                        let (at, words) = given.swap_remove(which.index(given.len()));
                        arena.free(at, words);
                    }
                }
                prop_assert_eq!(arena.used(), given.iter().map(|(_, words)| *words as u64).sum::<u64>());
                let room = arena.room();
                prop_assert!(room.words_high <= WORDS && u64::from(room.words_high) >= room.words_used);
                let fits = |words: u32| arena.clone().allocate(words as usize).is_some();
                prop_assert!((room.words_fit == 0 || fits(room.words_fit)) && !fits(room.words_fit + 1));
                let touching = arena.free.iter().zip(arena.free.keys().skip(1));
                prop_assert!(touching.clone().all(|((at, size), next)| *at as usize + size < *next as usize));
            }
            given.into_iter().for_each(|(at, words)| arena.free(at, words));
            prop_assert_eq!(arena.allocate(WORDS as usize), Some(0));
        }

        #[test]
        fn follows_the_store(changes in proptest::collection::vec(
            (0_u32..4, 0_u32..40, 0_u8..=32, proptest::option::weighted(0.7, 0_u16..300)), 1..200)
        ) {
            let vid = Vid::new(3).unwrap();
            let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, networks_max: 2 }).unwrap();
            dag.add_network::<u32>(vid).unwrap();
            dag.enable_deltas();
            let mut card = Dag36::new(CARD_WORDS);
            let mut oracle = Oracle::default();
            for (i, (high, low, len, hop)) in changes.into_iter().enumerate() {
                let addr = high << 30 | low << 15 | low << 3 | low;
                let prefix = Prefix::containing(addr, len);
                match hop.and_then(NextHop::new) {
                    Some(hop) => { dag.insert(vid, prefix, hop).unwrap(); oracle.insert(prefix, hop); }
                    None => { dag.remove(vid, prefix).unwrap(); oracle.remove(prefix); }
                }
                for delta in dag.take_deltas() {
                    card.apply(&delta).unwrap();
                }
                if i % 3 == 0 {
                    card.reclaim();
                }
                for key in [addr, addr ^ 1, prefix.last(), prefix.last().wrapping_add(1), 0] {
                    let expected = oracle.lookup(key).map(|(_, hop)| hop);
                    prop_assert_eq!(NextHop::new(card.lookup(vid, key).0), expected);
                }
            }
            card.reclaim();
            prop_assert_eq!(card.words_used(), words_total(&dag));
            prop_assert!(card.words().iter().all(|word| word >> WORD_BITS == 0));
        }
    }

    #[test]
    fn full_is_an_error() {
        let mut dag = Dag::new(Limits::default()).unwrap();
        let vid = Vid::new(1).unwrap();
        dag.add_network::<u32>(vid).unwrap();
        for i in 0..64_u16 {
            let prefix = Prefix::containing(u32::from(i) << 26, 26);
            dag.insert(vid, prefix, NextHop::new(i).unwrap()).unwrap();
        }
        dag.enable_deltas();
        let mut card = Dag36::new(40);
        let failed = dag.take_deltas().iter().find_map(|delta| card.apply(delta).err());
        assert!(matches!(failed, Some(Dag36Error::Full { words_max: 40, .. })), "{failed:?}");
        assert!(card.words_used() <= 40);
    }
}
