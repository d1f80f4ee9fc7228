//! The `dag36` table image: the same trie in dense 36-bit words, for the card's SRAM banks and block RAMs.
//!
//! Flow: `Dag` deltas → `Dag36::apply` → words that the card reads (RTL) and `Dag36::lookup` reads here, as its
//! specification. This page is the one place that describes the words. Nothing in them is a pointer: an *item* names
//! a word by its index, 20 bits, which spans the card's two banks of 2^19 words.
//!
//! ```text
//! item, 36 bits    leaf  35 = 0   15..0  next-hop word (65535 = no route)
//!                  node  35 = 1   34..32 form   19..0  address of its first word
//! half item, 18 bits             15..0  next-hop word; two in a word, the first in the low half
//!
//! form 0 wide      words 0..256   one item a slot                                            1 read
//! form 1 list1     word  0        31..0 the slots where runs 1 to 4 begin, 8 bits each,
//!                                 ascending from the low end; 0 = no such run
//!                  words 1..      half items of the runs                                     2 reads
//! form 2 list2     words 0..2     the same for runs 1 to 8;  words 2..  half items           3 reads or 2
//! form 3 map       words 0..10    word w: 27..0 bit s set: slot 28 w + s begins a run;
//!                                 35..28 number of runs that begin before slot 28 w
//!                  words 10..     half items                                                 2 reads
//! form 4, 5, 6     list1, list2, map with items instead of half items: nodes with children   2, 3, 2 reads
//! ```
//!
//! 28 slots and an 8-bit count fill a word exactly, so a map costs one read and no second bitmap. Lists are for nodes
//! of up to 9 runs, more than half of a full table's (ADR-0002). Roots, an item a network, are registers of the card
//! and not part of the image. Words of retired nodes are written again only after `reclaim`, which the card's driver
//! calls when no lookup in flight can hold them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use thiserror::Error;

use crate::dag::{Dag, Delta};
use crate::layout::{Ref, Runs, SLOTS};
use crate::limits::{Account, TableError};
use crate::types::{Key, Vid};

/// Words of the card's two SRAM banks, 2^19 each.
pub const CARD_WORDS: u32 = 1 << 20;
/// Bits of a word.
pub const WORD_BITS: u32 = 36;
/// Words a map takes before its items.
pub const MAP_WORDS: usize = 10;
/// Slots a map word covers.
pub const MAP_SLOTS: usize = 28;
/// Runs from which a node with children is written wide: 256 words instead of 10 + runs, one read instead of two.
pub const WIDE_RUNS_MIN: usize = 192;

pub(crate) const NODE_FLAG: u64 = 1 << 35;
const FORM_SHIFT: u32 = 32;
const ADDRESS: u64 = (1 << 20) - 1;

/// How a node is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Wide,
    /// Header words; whether items are whole words.
    List(usize, bool),
    Map(bool),
}

impl Form {
    fn of(runs: &Runs) -> Self {
        let len = runs.items().len();
        let children = runs.items().iter().any(|item| !item.is_leaf());
        match len {
            WIDE_RUNS_MIN.. if children => Self::Wide,
            0..=5 => Self::List(1, children),
            6..=9 => Self::List(2, children),
            _ => Self::Map(children),
        }
    }

    fn code(self) -> u64 {
        match self {
            Self::Wide => 0,
            Self::List(headers, children) => headers as u64 + 3 * u64::from(children),
            Self::Map(children) => 3 + 3 * u64::from(children),
        }
    }

    fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Wide,
            3 | 6 => Self::Map(code == 6),
            _ => Self::List(if code > 3 { code as usize - 3 } else { code as usize }, code > 3),
        }
    }

    fn words(self, runs: usize) -> usize {
        let items = |children: bool| if children { runs } else { runs.div_ceil(2) };
        match self {
            Self::Wide => SLOTS,
            Self::List(headers, children) => headers + items(children),
            Self::Map(children) => MAP_WORDS + items(children),
        }
    }
}

/// Words that a node takes in this encoding.
#[must_use]
pub fn words_of(runs: &Runs) -> u64 {
    Form::of(runs).words(runs.items().len()) as u64
}

/// Words of all live nodes of a store in this encoding.
#[must_use]
pub fn words_total<K: Key>(dag: &Dag<K>) -> u64 {
    dag.nodes().map(|node| words_of(&dag.runs(node))).sum()
}

/// Memory of one network in this encoding, in words (the account's `bytes_` fields hold words).
///
/// # Errors
/// `UnknownNetwork`.
pub fn account_words<K: Key>(dag: &Dag<K>, vid: Vid) -> Result<Account, TableError> {
    dag.account_by(vid, |node| words_of(&dag.runs(node)))
}

/// Why a delta was refused; the image is as before.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Dag36Error {
    /// The node fits neither the fresh nor the free words.
    #[error(
        "card table full: {words_used} of words_max = {words_max} words are in use and a node needs {words} more"
    )]
    Full {
        /// Words the node needs.
        words: u64,
        /// Words in use, retired ones included.
        words_used: u64,
        /// The limit.
        words_max: u32,
    },
    /// A level's memory has no room for a node.
    #[error(
        "card table full: level {level} has {words_used} of words_max = {words_max} words in use and a node needs \
         {words} more"
    )]
    LevelFull {
        /// The level, 0 for the first byte of the key.
        level: usize,
        /// Words the node needs.
        words: u64,
        /// Words in use there, retired ones included.
        words_used: u64,
        /// The limit.
        words_max: u32,
    },
    /// A delta refers to a node that no delta brought (a bug of the sender).
    #[error("delta refers to node {0:?}, which is not in the image")]
    Unknown(Ref),
}

/// What room a memory of words has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Room {
    /// Words that it may hold.
    pub words_max: u32,
    /// Words of nodes, live and retired.
    pub words_used: u64,
    /// Words from its beginning to the end of the last one that was ever written.
    pub words_high: u32,
    /// Unused blocks below that.
    pub blocks_free: usize,
    /// Words of the largest node that would fit.
    pub words_fit: u32,
}

/// Words of one memory, in blocks of any size. Free blocks that touch are one, so that room does not crumble.
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

    /// A block of so many words, the smallest that fits; `None` when no room is left.
    pub(crate) fn allocate(&mut self, words: usize) -> Option<u32> {
        let at = match self.by_size.range((words, 0)..).next().copied() {
            Some((size, at)) => {
                self.take(at, size);
                if size > words {
                    self.give(at + words as u32, size - words);
                }
                at
            }
            None => self.grow(words)?,
        };
        self.used += words as u64;
        Some(at)
    }

    /// A block at the end of what was ever given out; a free one there becomes its beginning.
    fn grow(&mut self, words: usize) -> Option<u32> {
        let end = self.words.len();
        let last = self.free.last_key_value().map(|(at, size)| (*at, *size));
        let last = last.filter(|(at, size)| *at as usize + size == end);
        let at = last.map_or(end, |(at, _)| at as usize);
        if at + words > self.words_max as usize {
            return None;
        }
        if let Some((at, size)) = last {
            self.take(at, size);
        }
        self.words.resize(at + words, 0);
        Some(at as u32)
    }

    pub(crate) fn free(&mut self, mut at: u32, mut words: usize) {
        self.used -= words as u64;
        let before = self.free.range(..at).next_back().map(|(at, size)| (*at, *size));
        if let Some((start, size)) = before.filter(|(start, size)| *start as usize + size == at as usize) {
            self.take(start, size);
            (at, words) = (start, words + size);
        }
        let next = at + words as u32;
        if let Some(size) = self.free.get(&next).copied() {
            self.take(next, size);
            words += size;
        }
        self.give(at, words);
    }

    fn take(&mut self, at: u32, words: usize) {
        self.free.remove(&at);
        self.by_size.remove(&(words, at));
    }

    fn give(&mut self, at: u32, words: usize) {
        self.free.insert(at, words);
        self.by_size.insert((words, at));
    }

    pub(crate) fn block(&self, at: u32, words: usize) -> &[u64] {
        &self.words[at as usize..at as usize + words]
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn words_max(&self) -> u32 {
        self.words_max
    }

    /// Words in blocks that were given out.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn room(&self) -> Room {
        let high = self.words.len() as u32;
        let last = self.free.last_key_value().filter(|(at, size)| **at as usize + **size == self.words.len());
        // What `grow` could give: a free block at the end and all that follows it.
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

    /// Writes a node of these runs, whose items are already encoded, into a block of its size.
    pub(crate) fn write(&mut self, at: u32, runs: &Runs, items: &[u64]) {
        let form = Form::of(runs);
        let words = form.words(items.len());
        write(form, runs, items, &mut self.words[at as usize..at as usize + words]);
    }
}

/// The item that names the node of these runs at an address.
pub(crate) fn node_item(runs: &Runs, at: u32) -> u64 {
    NODE_FLAG | Form::of(runs).code() << FORM_SHIFT | u64::from(at)
}

/// A `dag36` image that follows a store's deltas.
pub struct Dag36 {
    arena: Arena,
    roots: HashMap<Vid, u64>,
    /// Item and size of each node of the store.
    nodes: HashMap<Ref, (u64, usize)>,
    retired: Vec<(u32, usize)>,
}

impl Dag36 {
    /// An empty image of at most `words_max` words, which is cut to the 20-bit address space.
    #[must_use]
    pub fn new(words_max: u32) -> Self {
        Self {
            arena: Arena::new(words_max),
            roots: HashMap::new(),
            nodes: HashMap::new(),
            retired: Vec::new(),
        }
    }

    /// Follows one change of the store.
    ///
    /// # Errors
    /// `Full` when a node does not fit, `Unknown` when the deltas are out of order.
    pub fn apply(&mut self, delta: &Delta) -> Result<(), Dag36Error> {
        match delta {
            Delta::Node(node, runs) => {
                let mut items = [0; SLOTS];
                for (item, to) in runs.items().iter().zip(&mut items) {
                    *to = self.item(*item)?;
                }
                let words = words_of(runs) as usize;
                let at = self.arena.allocate(words).ok_or_else(|| self.full(words))?;
                self.arena.write(at, runs, &items[..runs.items().len()]);
                self.nodes.insert(*node, (node_item(runs, at), words));
            }
            Delta::Root(vid, Some(top)) => {
                let item = self.item(*top)?;
                self.roots.insert(*vid, item);
            }
            Delta::Root(vid, None) => {
                self.roots.remove(vid);
            }
            Delta::Retire(node) => {
                let (item, words) = self.nodes.remove(node).ok_or(Dag36Error::Unknown(*node))?;
                self.retired.push(((item & ADDRESS) as u32, words));
            }
        }
        Ok(())
    }

    /// Makes the words of retired nodes free: no lookup in flight holds them any more.
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

    /// Words in live nodes and in retired ones that are not reclaimed.
    #[must_use]
    pub fn words_used(&self) -> u64 {
        self.arena.used()
    }

    /// What room is left, and in what pieces.
    #[must_use]
    pub fn room(&self) -> Room {
        self.arena.room()
    }

    /// The root item of a network, as the card's register holds it.
    #[must_use]
    pub fn root(&self, vid: Vid) -> Option<u64> {
        self.roots.get(&vid).copied()
    }

    /// What the card answers for a key: the next-hop word, and how many words it read. This is the specification of
    /// the RTL walk.
    #[must_use]
    pub fn lookup<K: Key>(&self, vid: Vid, key: K) -> (u16, u32) {
        let Some(mut item) = self.root(vid) else { return (u16::MAX, 0) };
        let mut reads = 0;
        for depth in (0..K::BITS).step_by(8) {
            if item & NODE_FLAG == 0 {
                break;
            }
            item = step(item, key.byte_at(depth), self.arena.words(), &mut reads);
        }
        (item as u16, reads)
    }

    fn full(&self, words: usize) -> Dag36Error {
        Dag36Error::Full {
            words: words as u64,
            words_used: self.arena.used(),
            words_max: self.arena.words_max(),
        }
    }

    fn item(&self, of: Ref) -> Result<u64, Dag36Error> {
        if of.is_leaf() {
            return Ok(u64::from(of.hop_word()));
        }
        self.nodes.get(&of).map(|(item, _)| *item).ok_or(Dag36Error::Unknown(of))
    }
}

/// From a node's item to what a slot of the node holds, in the memory that the item's address is of; counts the words
/// read. What lies beyond the memory is "no route".
pub(crate) fn step(item: u64, slot: u8, words: &[u64], reads: &mut u32) -> u64 {
    let at = (item & ADDRESS) as usize;
    let mut read = |at: usize| {
        *reads += 1;
        words.get(at).copied().unwrap_or(u64::from(u16::MAX))
    };
    let (rank, items, children) = match Form::from_code(item >> FORM_SHIFT & 7) {
        Form::Wide => (usize::from(slot), at, true),
        Form::List(headers, children) => {
            let mut rank = 0;
            for header in 0..headers {
                let begun = starts_up_to(read(at + header), slot);
                rank += begun;
                if begun < 4 {
                    break;
                }
            }
            (rank, at + headers, children)
        }
        Form::Map(children) => {
            let word = read(at + usize::from(slot) / MAP_SLOTS);
            let up_to = word << (63 - usize::from(slot) % MAP_SLOTS);
            (((word >> 28) as u32 + up_to.count_ones() - 1) as usize, at + MAP_WORDS, children)
        }
    };
    if children { read(items + rank) } else { read(items + rank / 2) >> (18 * (rank % 2)) & 0xffff }
}

/// How many of the four starts of a list's header word lie at or before the slot.
fn starts_up_to(word: u64, slot: u8) -> usize {
    (0..4).map(|i| (word >> (8 * i)) as u8).filter(|start| *start != 0 && *start <= slot).count()
}

fn write(form: Form, runs: &Runs, items: &[u64], words: &mut [u64]) {
    words.fill(0);
    let (headers, children) = match form {
        Form::Wide => {
            let mut ends = runs.iter().map(|(slot, _)| usize::from(slot)).skip(1).chain([SLOTS]);
            let mut at = 0;
            for item in items {
                let end = ends.next().unwrap_or(SLOTS);
                words[at..end].fill(*item);
                at = end;
            }
            return;
        }
        Form::List(headers, children) => {
            for (i, (start, _)) in runs.iter().skip(1).enumerate() {
                words[i / 4] |= u64::from(start) << (8 * (i % 4));
            }
            (headers, children)
        }
        Form::Map(children) => {
            for (start, _) in runs.iter() {
                words[usize::from(start) / MAP_SLOTS] |= 1 << (usize::from(start) % MAP_SLOTS);
            }
            let mut before = 0;
            for word in &mut words[..MAP_WORDS] {
                let begun = u64::from(word.count_ones());
                *word |= before << 28;
                before += begun;
            }
            (MAP_WORDS, children)
        }
    };
    for (i, item) in items.iter().enumerate() {
        if children {
            words[headers + i] = *item;
        } else {
            words[headers + i / 2] |= item << (18 * (i % 2));
        }
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
        /// Blocks never overlap, and what is free comes back in one piece.
        #[test]
        fn room_does_not_crumble(
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
            let mut dag = Dag::<u32>::new(Limits { image_bytes_max: 1 << 20, networks_max: 2 }).unwrap();
            dag.add_network(vid).unwrap();
            dag.record_deltas();
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
        let mut dag = Dag::<u32>::new(Limits::default()).unwrap();
        let vid = Vid::new(1).unwrap();
        dag.add_network(vid).unwrap();
        for i in 0..64_u16 {
            let prefix = Prefix::containing(u32::from(i) << 26, 26);
            dag.insert(vid, prefix, NextHop::new(i).unwrap()).unwrap();
        }
        dag.record_deltas();
        let mut card = Dag36::new(40);
        let failed = dag.take_deltas().iter().find_map(|delta| card.apply(delta).err());
        assert!(matches!(failed, Some(Dag36Error::Full { words_max: 40, .. })), "{failed:?}");
        assert!(card.words_used() <= 40);
    }
}
