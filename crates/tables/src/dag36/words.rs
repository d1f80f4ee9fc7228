//! The words of `dag36`: how a node is encoded in 36-bit words, and how a lookup reads them. Pure functions.
//!
//! This is the only description of the words; `rtl/tables/hue_dag36_pkg.sv` reads them. They contain no
//! pointers: an *item* names a word by its 20-bit index, which covers the card's two banks of 2^19 words.
//!
//! ```text
//! any word           35 even parity over all 36 bits
//! item               34 = 0  leaf   15..0 next-hop word (65535 = no route)
//!                    34 = 1  node   33..30 form   19..0 address of its first word
//! items of a word    byte  four of 8 bits, a next hop below 255, or 255 = no route
//!                    half  two of 16 bits, next-hop words
//!                    whole one item
//!                    The first stands in the lowest bits.
//! form               33..32 header   31..30 items: 0 byte, 1 half, 2 whole; 3 with header 0: wide
//!
//! wide               words 0..256   one item a slot                                          1 read
//! header 0 list1     word  0        31..0 the slots where runs 1 to 4 begin, 8 bits each,
//!                                   ascending from the low end; 0 = no such run
//!                    words 1..      items of the runs                                        2 reads
//! header 1 list2     words 0..2     the same for runs 1 to 8;  words 2..  items              3 reads or 2
//! header 2 pivots    word  0        the slots where runs 4, 8, 12 and 16 begin, as in a list
//!                    words 1..      groups of four runs, each a word with the slots where the
//!                                   group's runs 1 to 3 begin (23..0), and then its items    3 reads
//! header 3 map       words 0..10    word w: 26..0 bit s set: slot 27 w + s begins a run;
//!                                   34..27 number of runs that begin before slot 27 w
//!                    words 10..     items                                                    2 reads
//! ```
//!
//! 27 slots, an 8-bit count and the parity bit fill a word exactly, so a map costs one read and needs no
//! second bitmap. Lists are used for nodes of up to 9 runs, which are more than half of the nodes of a full
//! table. Pivots are used for up to 20 runs, where the ten words of a map would be most of the node (ADR
//! 0016). Each word has its own parity bit, so that every reader detects a flipped bit. Root items are not
//! words of the image and have no parity.

use crate::layout::{Runs, SLOTS};

/// Words of a map, before the items.
pub const MAP_WORDS: usize = 10;
/// Slots of a map word.
pub const MAP_SLOTS: usize = 27;
/// Number of runs from which a node with children is written wide: 256 words instead of 10 + runs, one read
/// instead of two.
pub const WIDE_RUNS_MIN: usize = 192;
/// Most runs of a node with pivots: four pivots divide five groups.
const PIVOT_RUNS_MAX: usize = 20;
/// Runs in a group.
const GROUP: usize = 4;
/// The byte for "no route".
const NONE_BYTE: u64 = 0xff;

pub(crate) const NODE_FLAG: u64 = 1 << 34;
const PARITY: u64 = 1 << 35;
const FORM_SHIFT: u32 = 30;
/// The address bits of an item.
pub(crate) const ADDRESS: u64 = (1 << 20) - 1;

/// Encoding of the items of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Items {
    Byte,
    Half,
    Whole,
}

impl Items {
    /// Number of items in a word.
    fn per_word(self) -> usize {
        match self {
            Self::Byte => 4,
            Self::Half => 2,
            Self::Whole => 1,
        }
    }

    fn of(runs: &Runs) -> Self {
        let items = runs.items();
        if items.iter().any(|item| !item.is_leaf()) {
            Self::Whole
        } else if items
            .iter()
            .all(|item| u64::from(item.hop_word()) < NONE_BYTE || item.hop_word() == u16::MAX)
        {
            Self::Byte
        } else {
            Self::Half
        }
    }

    /// Stores an item in its word.
    fn put(self, words: &mut [u64], rank: usize, item: u64) {
        let (word, place) = (&mut words[rank / self.per_word()], rank % self.per_word());
        match self {
            // The low byte of 65535 is 255.
            Self::Byte => *word |= (item & 0xff) << (8 * place),
            Self::Half => *word |= item << (16 * place),
            Self::Whole => *word = item,
        }
    }

    /// Reads an item from its word.
    fn get(self, word: u64, rank: usize) -> u64 {
        let place = rank % self.per_word();
        match self {
            Self::Byte => match word >> (8 * place) & 0xff {
                NONE_BYTE => u64::from(u16::MAX),
                hop => hop,
            },
            Self::Half => word >> (16 * place) & 0xffff,
            Self::Whole => word & !PARITY,
        }
    }
}

/// Encoding of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// One item for each slot.
    Wide,
    /// Number of header words, and the items.
    List(usize, Items),
    /// One word for all groups, then one word for each group of runs.
    Pivots(Items),
    /// One bit for each slot.
    Map(Items),
}

impl Form {
    /// Chooses the form for a node.
    pub(crate) fn of(runs: &Runs, shape: Shape) -> Self {
        let items = Items::of(runs);
        match runs.items().len() {
            WIDE_RUNS_MIN.. if items == Items::Whole => Self::Wide,
            0..=5 => Self::List(1, items),
            6..=9 => Self::List(2, items),
            10..=PIVOT_RUNS_MAX if shape == Shape::Flat => Self::Pivots(items),
            _ => Self::Map(items),
        }
    }

    fn code(self) -> u64 {
        let (header, items) = match self {
            Self::Wide => return 3,
            Self::List(headers, items) => (headers as u64 - 1, items),
            Self::Pivots(items) => (2, items),
            Self::Map(items) => (3, items),
        };
        header << 2 | items as u64
    }

    fn from_code(code: u64) -> Self {
        let items = match code & 3 {
            0 => Items::Byte,
            1 => Items::Half,
            2 => Items::Whole,
            _ => return Self::Wide,
        };
        match code >> 2 & 3 {
            2 => Self::Pivots(items),
            3 => Self::Map(items),
            header => Self::List(header as usize + 1, items),
        }
    }

    /// Whether each run has an item that fills an entire word.
    pub(crate) fn has_whole_items(self) -> bool {
        matches!(self, Self::List(_, Items::Whole) | Self::Pivots(Items::Whole) | Self::Map(Items::Whole))
    }

    /// Offset of the word with the item of a run, from the first word of the node. Not for wide nodes, which
    /// have an item for each slot.
    pub(crate) fn word_of_item(self, rank: usize) -> usize {
        match self {
            Self::Wide => rank,
            Self::List(headers, items) => headers + rank / items.per_word(),
            Self::Map(items) => MAP_WORDS + rank / items.per_word(),
            Self::Pivots(items) => 2 + rank / GROUP * group_words(items) + rank % GROUP / items.per_word(),
        }
    }

    fn words(self, runs: usize) -> usize {
        match self {
            Self::Wide => SLOTS,
            Self::List(headers, items) => headers + runs.div_ceil(items.per_word()),
            Self::Map(items) => MAP_WORDS + runs.div_ceil(items.per_word()),
            Self::Pivots(items) => {
                let (groups, rest) = (runs / GROUP, runs % GROUP);
                let last = if rest == 0 { 0 } else { 1 + rest.div_ceil(items.per_word()) };
                1 + groups * group_words(items) + last
            }
        }
    }
}

/// Words of a complete group: its starts and its items.
fn group_words(items: Items) -> usize {
    1 + GROUP / items.per_word()
}

/// The kind of memory, which decides the forms that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A memory for each level, with at most two header reads and one item read for each lookup.
    Levels,
    /// A single memory, without a limit on reads.
    Flat,
}

/// Number of words of a node.
pub(crate) fn words_of(runs: &Runs, shape: Shape) -> usize {
    Form::of(runs, shape).words(runs.items().len())
}

/// The item that refers to a node with these runs at this address.
pub(crate) fn node_item(runs: &Runs, shape: Shape, at: u32) -> u64 {
    NODE_FLAG | Form::of(runs, shape).code() << FORM_SHIFT | u64::from(at)
}

/// Encodes a node with these runs and encoded items into its words.
pub(crate) fn write(runs: &Runs, shape: Shape, items: &[u64], words: &mut [u64]) {
    words.fill(0);
    fill(Form::of(runs, shape), runs, items, words);
    for word in words {
        *word = with_parity(*word);
    }
}

/// Adds the parity bit to a word of 35 bits.
pub(crate) fn with_parity(word: u64) -> u64 {
    word | u64::from(word.count_ones() % 2) << 35
}

fn fill(form: Form, runs: &Runs, items: &[u64], words: &mut [u64]) {
    let starts = runs.iter().map(|(start, _)| u64::from(start));
    let (headers, size) = match form {
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
        Form::Pivots(size) => {
            for (run, start) in starts.enumerate().skip(1) {
                let (group, place) = (run / GROUP, run % GROUP);
                match place {
                    0 => words[0] |= start << (8 * (group - 1)),
                    _ => words[1 + group * group_words(size)] |= start << (8 * (place - 1)),
                }
            }
            for (group, items) in items.chunks(GROUP).enumerate() {
                let words = &mut words[2 + group * group_words(size)..];
                items.iter().enumerate().for_each(|(rank, item)| size.put(words, rank, *item));
            }
            return;
        }
        Form::List(headers, size) => {
            for (run, start) in starts.enumerate().skip(1) {
                words[(run - 1) / 4] |= start << (8 * ((run - 1) % 4));
            }
            (headers, size)
        }
        Form::Map(size) => {
            for start in starts {
                words[start as usize / MAP_SLOTS] |= 1 << (start as usize % MAP_SLOTS);
            }
            let mut before = 0;
            for word in &mut words[..MAP_WORDS] {
                let begun = u64::from(word.count_ones());
                *word |= before << MAP_SLOTS;
                before += begun;
            }
            (MAP_WORDS, size)
        }
    };
    items.iter().enumerate().for_each(|(rank, item)| size.put(&mut words[headers..], rank, *item));
}

/// Follows a node's item to the content of a slot, in the memory that the item's address belongs to. Counts
/// the words read. Addresses beyond the memory give "no route".
pub(crate) fn step(item: u64, slot: u8, words: &[u64], reads: &mut u32) -> u64 {
    let at = (item & ADDRESS) as usize;
    let mut read = |at: usize| {
        *reads += 1;
        words.get(at).copied().unwrap_or(u64::from(u16::MAX))
    };
    let (rank, first, items) = match Form::from_code(item >> FORM_SHIFT & 15) {
        Form::Wide => (usize::from(slot), at, Items::Whole),
        Form::List(headers, items) => {
            let mut rank = 0;
            for header in 0..headers {
                let begun = starts_up_to(read(at + header), slot);
                rank += begun;
                if begun < 4 {
                    break;
                }
            }
            (rank, at + headers, items)
        }
        Form::Pivots(items) => {
            let group = at + 1 + starts_up_to(read(at), slot) * group_words(items);
            (starts_up_to(read(group), slot), group + 1, items)
        }
        Form::Map(items) => {
            let word = read(at + usize::from(slot) / MAP_SLOTS);
            let up_to = word << (63 - usize::from(slot) % MAP_SLOTS);
            let rank = (word >> MAP_SLOTS & 0xff) as usize + up_to.count_ones() as usize;
            // The first slot of a map begins a run, but a damaged word may say otherwise.
            (rank.saturating_sub(1), at + MAP_WORDS, items)
        }
    };
    items.get(read(first + rank / items.per_word()), rank)
}

/// How many of the four starts of a header word are at or before the slot.
fn starts_up_to(word: u64, slot: u8) -> usize {
    (0..4).map(|i| (word >> (8 * i)) as u8).filter(|start| *start != 0 && *start <= slot).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::{Kind, Ref};

    proptest! {
        /// Every form returns the content of every slot, with one to three reads, and each word has even
        /// parity.
        #[test]
        fn every_form_preserves_every_slot(
            starts in proptest::collection::btree_set(1_u8..=255, 0..256),
            palette in 0_usize..3,
            seed: u64,
        ) {
            let item = |run: usize| match palette {
                0 => Ref::leaf(if run % 5 == 3 { u16::MAX } else { ((seed as usize + run) % 255) as u16 }),
                1 => Ref::leaf((seed as usize + run * 257) as u16),
                _ if run % 3 == 1 => Ref::node(Kind::N8, run as u32),
                _ => Ref::leaf(run as u16),
            };
            let mut slots = [Ref::NONE; SLOTS];
            let mut run = 0;
            for (slot, to) in slots.iter_mut().enumerate() {
                run += usize::from(starts.contains(&(slot as u8)));
                *to = item(run);
            }
            let runs = Runs::of(&slots);
            let encode = |of: Ref| match of.is_leaf() {
                true => u64::from(of.hop_word()),
                false => NODE_FLAG | u64::from(of.index()),
            };
            let items: Vec<u64> = runs.items().iter().map(|item| encode(*item)).collect();
            for shape in [Shape::Levels, Shape::Flat] {
                let len = words_of(&runs, shape);
                let mut memory = vec![0; 7 + len];
                write(&runs, shape, &items, &mut memory[7..]);
                prop_assert!(memory.iter().all(|word| word.count_ones() % 2 == 0 && word >> 36 == 0));
                for (slot, of) in slots.iter().enumerate() {
                    let mut reads = 0;
                    let found = step(node_item(&runs, shape, 7), slot as u8, &memory, &mut reads);
                    prop_assert_eq!(found, encode(*of), "slot {}", slot);
                    prop_assert!((1..=3).contains(&reads));
                }
            }
        }
    }
}
