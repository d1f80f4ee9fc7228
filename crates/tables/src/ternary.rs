//! A table of ternary entries: of those whose pattern a key has, the first one in their order.
//!
//! Flow: program → [`TernaryTable::new`] → planes. A table never changes: a network that gets other entries gets another
//! table. Layout: the entries with the same mask are a group, a hash table with open addressing that is at most half full. Its
//! buckets are cache lines of two entries, which are compared without a branch: nine of ten exact entries of a full table take
//! one probe, and each further mask takes one more. Groups are in the order of their first entries, so a search ends as soon as
//! no later group can have an earlier entry. A probe compares the whole value: a collision costs time and never gives a wrong
//! entry. The hash has random keys: nobody can choose values that collide.
//!
//! Source: V. Srinivasan, S. Suri, G. Varghese, Packet Classification Using Tuple Space Search (SIGCOMM 1999).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;

use serde::{Deserialize, Serialize};

use crate::mem::lookup::prefetch;
use crate::types::NextHop;

/// What an entry says about the bits of a key: those of the mask have the value's values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Pattern {
    value: u128,
    mask: u128,
}

impl Pattern {
    /// The pattern that every key has.
    pub const ANY: Self = Self { value: 0, mask: 0 };

    /// A pattern. Bits of the value outside the mask do not matter.
    #[must_use]
    pub const fn new(value: u128, mask: u128) -> Self {
        Self { value: value & mask, mask }
    }

    /// The bits of the mask; 0 elsewhere.
    #[must_use]
    pub const fn value(&self) -> u128 {
        self.value
    }

    /// Which bits matter.
    #[must_use]
    pub const fn mask(&self) -> u128 {
        self.mask
    }

    /// Whether a key has it.
    #[must_use]
    pub const fn has(&self, key: u128) -> bool {
        key & self.mask == self.value
    }

    /// Whether every key that has `other` has this one too.
    #[must_use]
    pub const fn contains(&self, other: &Self) -> bool {
        self.mask & other.mask == self.mask && self.has(other.value)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:032x} with mask 0x{:032x}", self.value, self.mask)
    }
}

/// The entries that no key finds, each with an earlier entry that takes all of its keys.
#[must_use]
pub fn unreachable(patterns: &[Pattern]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut masks, mut places): (Vec<u128>, HashMap<Pattern, usize>) = (Vec::new(), HashMap::new());
    for (index, pattern) in patterns.iter().enumerate() {
        let wider = masks.iter().filter(|mask| *mask & pattern.mask == **mask);
        let first = wider.filter_map(|mask| places.get(&Pattern::new(pattern.value, *mask))).min();
        match first {
            Some(first) => found.push((index, *first)),
            None => {
                if !masks.contains(&pattern.mask) {
                    masks.push(pattern.mask);
                }
                places.insert(*pattern, index);
            }
        }
    }
    found
}

/// An entry that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TernaryFound {
    /// Its place in the order of the entries.
    pub order: usize,
    /// Its next hop.
    pub hop: NextHop,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct TernaryTable {
    groups: Box<[Group]>,
    keys: [u64; 3],
}

/// The entries with one mask.
#[derive(Clone, Debug)]
struct Group {
    mask: u128,
    /// The first of them.
    first: u32,
    /// A power of two, with at least twice as many places as entries.
    buckets: Box<[Bucket]>,
}

/// A cache line. Entries come first; the next bucket has those that found no place.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket([Slot; WAYS]);

/// Entries in a bucket.
const WAYS: usize = 2;
const _: () = assert!(size_of::<Bucket>() == 64);

#[derive(Clone, Copy, Debug)]
struct Slot {
    value: u128,
    /// [`EMPTY`] if there is no entry.
    order: u32,
    hop: u16,
}

/// No entry, in [`Slot::order`]; more than that of every entry.
const EMPTY: u32 = u32::MAX;
const NO_SLOT: Slot = Slot { value: 0, order: EMPTY, hop: NextHop::NONE_WORD };

impl TernaryTable {
    /// Most entries.
    pub const ENTRIES_MAX: usize = 16_384;
    /// Most different masks: a packet costs at most as many probes.
    pub const MASKS_MAX: usize = 16;

    /// A table with these entries. Entries beyond [`TernaryTable::ENTRIES_MAX`], and those with masks beyond
    /// [`TernaryTable::MASKS_MAX`], are left out.
    #[must_use]
    pub fn new(entries: &[(Pattern, NextHop)]) -> Self {
        let random = RandomState::new();
        let keys = [0_u8, 1, 2].map(|number| random.hash_one(number));
        let mut members: Vec<(u128, Vec<Slot>)> = Vec::new();
        for ((pattern, hop), order) in entries.iter().zip(0..).take(Self::ENTRIES_MAX) {
            let slot = Slot { value: pattern.value, order, hop: hop.get() };
            let group = members.iter().position(|(mask, _)| *mask == pattern.mask);
            match group {
                Some(group) => members[group].1.push(slot),
                None if members.len() < Self::MASKS_MAX => members.push((pattern.mask, vec![slot])),
                None => {}
            }
        }
        // Their first entries are in order, because they were found in order.
        let groups = members.iter().map(|(mask, slots)| Group::new(*mask, slots, &keys)).collect();
        Self { groups, keys }
    }

    /// The first entry whose pattern a key has.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: u128) -> Option<TernaryFound> {
        let found = self.slot(key);
        Some(TernaryFound { order: found.order as usize, hop: NextHop::new(found.hop)? })
    }

    /// Asks the cache for the slot that a search for this key looks at first. A search soon afterwards does not wait for memory.
    #[inline(always)]
    pub fn prefetch(&self, key: u128) {
        if let Some(group) = self.groups.first()
            && let Some(bucket) = group.buckets.get(group.home(key & group.mask, &self.keys))
        {
            prefetch(std::ptr::from_ref(bucket).cast());
        }
    }

    /// Its place and its pattern.
    #[must_use]
    pub fn entry(&self, key: u128) -> Option<(usize, Pattern)> {
        let found = self.slot(key);
        let group = self.groups.iter().find(|group| group.has(&found))?;
        Some((found.order as usize, Pattern::new(found.value, group.mask)))
    }

    /// The same as the word of its next hop; [`NextHop::NONE_WORD`] without one.
    #[inline]
    #[must_use]
    pub fn word(&self, key: u128) -> u16 {
        self.slot(key).hop
    }

    #[inline]
    fn slot(&self, key: u128) -> Slot {
        let mut best = NO_SLOT;
        for group in &self.groups {
            if best.order < group.first {
                break;
            }
            let found = group.find(key & group.mask, &self.keys);
            if found.order < best.order {
                best = found;
            }
        }
        best
    }

    /// How many different masks the entries have.
    #[must_use]
    pub fn masks(&self) -> usize {
        self.groups.len()
    }

    /// Memory of the buckets, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(|group| size_of_val(&*group.buckets)).sum()
    }
}

impl Group {
    fn new(mask: u128, entries: &[Slot], keys: &[u64; 3]) -> Self {
        let count = (2 * entries.len()).div_ceil(WAYS).next_power_of_two();
        let first = entries.first().map_or(EMPTY, |slot| slot.order);
        let mut group =
            Self { mask, first, buckets: vec![Bucket([NO_SLOT; WAYS]); count].into_boxed_slice() };
        for entry in entries {
            let mut at = group.home(entry.value, keys);
            // Half of the places are empty, so the search ends.
            while let Some(Bucket(slots)) = group.buckets.get_mut(at) {
                let is_its = |slot: &&mut Slot| slot.order == EMPTY || slot.value == entry.value;
                if let Some(slot) = slots.iter_mut().find(is_its) {
                    // The same pattern again: the first one counts.
                    if slot.order == EMPTY {
                        *slot = *entry;
                    }
                    break;
                }
                at = (at + 1) & (count - 1);
            }
        }
        group
    }

    /// Whether an entry is one of this group.
    fn has(&self, entry: &Slot) -> bool {
        let mut slots = self.buckets.iter().flat_map(|Bucket(slots)| slots);
        entry.order != EMPTY && slots.any(|slot| slot.order == entry.order)
    }

    #[inline(always)]
    fn home(&self, value: u128, [first, second, third]: &[u64; 3]) -> usize {
        let (low, high) = (value as u64, (value >> 64) as u64);
        let product = u128::from(low ^ first) * u128::from(high ^ second);
        let hash = ((product >> 64) as u64 ^ product as u64).wrapping_mul(third | 1) >> 32;
        hash as usize & (self.buckets.len() - 1)
    }

    /// The entry with a value. The search ends, since half of the places are empty.
    #[inline(always)]
    fn find(&self, value: u128, keys: &[u64; 3]) -> Slot {
        let mut at = self.home(value, keys);
        loop {
            let Some(Bucket([first, second])) = self.buckets.get(at) else { return NO_SLOT };
            // An empty place has the value 0. If that is the one, no entry has it: it would be here.
            let found = if first.value == value { first } else { second };
            if found.value == value || second.order == EMPTY {
                return if found.value == value { *found } else { NO_SLOT };
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hop(index: usize) -> NextHop {
        NextHop::new(index as u16).unwrap()
    }

    fn table(patterns: &[Pattern]) -> TernaryTable {
        let entries: Vec<_> = patterns.iter().copied().zip((0..).map(hop)).collect();
        TernaryTable::new(&entries)
    }

    /// The first pattern that a key has, one after the other.
    fn naive(patterns: &[Pattern], key: u128) -> Option<usize> {
        patterns.iter().position(|pattern| pattern.has(key))
    }

    /// Patterns that often contain each other, and keys near them.
    fn patterns() -> impl Strategy<Value = Vec<Pattern>> {
        let masks = [0, 1, u128::MAX, u128::MAX << 64, 0xff << 120, 0xf0f << 56, 3 << 126 | 3, 7];
        let value = prop_oneof![0_u128..8, (0_u128..4).prop_map(|bits| bits << 126), any::<u128>()];
        let one =
            (value, prop::sample::select(masks.to_vec())).prop_map(|(value, mask)| Pattern::new(value, mask));
        prop::collection::vec(one, 0..60)
    }

    proptest! {
        #[test]
        fn finds_what_a_search_one_by_one_finds(patterns in patterns(), keys in prop::collection::vec(any::<u128>(), 20)) {
            let table = table(&patterns);
            let near = patterns.iter().flat_map(|one| [one.value, one.value ^ 1, one.value | !one.mask]);
            for key in near.chain(keys).chain(0..8) {
                let found = table.lookup(key);
                let wanted = naive(&patterns, key);
                prop_assert_eq!(found, wanted.map(|order| TernaryFound { order, hop: hop(order) }));
                prop_assert_eq!(table.word(key), NextHop::word(wanted.map(hop)));
                prop_assert_eq!(table.entry(key), wanted.map(|order| (order, patterns[order])));
            }
        }

        #[test]
        fn an_entry_is_unreachable_if_an_earlier_one_contains_it(patterns in patterns()) {
            let contained = |(at, pattern): (usize, &Pattern)| {
                Some((at, patterns[..at].iter().position(|earlier| earlier.contains(pattern))?))
            };
            let wanted: Vec<_> = patterns.iter().enumerate().filter_map(contained).collect();
            prop_assert_eq!(unreachable(&patterns), wanted);
        }
    }

    #[test]
    fn a_full_table_finds_each_entry_and_nothing_else() {
        let patterns: Vec<_> = (0..TernaryTable::ENTRIES_MAX as u128)
            .map(|number| Pattern::new(number << 64 | number, u128::MAX))
            .collect();
        let table = table(&patterns);
        assert_eq!((table.masks(), table.bytes()), (1, 2 * TernaryTable::ENTRIES_MAX * 32));
        for (order, pattern) in patterns.iter().enumerate() {
            assert_eq!(table.lookup(pattern.value), Some(TernaryFound { order, hop: hop(order) }));
            assert_eq!(table.lookup(pattern.value | 1 << 127), None);
        }
        let more = TernaryTable::new(&vec![(Pattern::ANY, hop(0)); TernaryTable::ENTRIES_MAX + 1]);
        assert_eq!(more.lookup(9).map(|found| found.order), Some(0));
    }

    #[test]
    fn masks_beyond_the_limit_are_left_out() {
        let patterns: Vec<_> =
            (0..=TernaryTable::MASKS_MAX).map(|bit| Pattern::new(u128::MAX, 1 << bit)).collect();
        let table = table(&patterns);
        assert_eq!(table.masks(), TernaryTable::MASKS_MAX);
        assert_eq!(
            table.lookup(1 << (TernaryTable::MASKS_MAX - 1)).unwrap().order,
            TernaryTable::MASKS_MAX - 1
        );
        assert_eq!(table.lookup(1 << TernaryTable::MASKS_MAX), None);
        assert_eq!(TernaryTable::new(&[]).lookup(0), None, "no entries");
    }
}
