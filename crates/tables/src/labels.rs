//! Flat labels in a circular name space: the closest label before a key, among the entries of a network, or among pointers
//! that packets taught.
//!
//! Flow: program → [`LabelTable::new`] → planes; packets → [`Pointers::learn`] → planes. The closest label is the one from
//! which the clockwise way to the key, `(key - label) mod 2^128`, is the shortest. It is the largest label that is not above the
//! key or, if there is none, the largest label: both structures are sorted, and searched without allocation. A table has an
//! index by the first bits of labels, about one label for each of its places: labels are hashes (§2 of the source), so two reads
//! find most of them. Labels that somebody has chosen to lie together are searched by halves from there.
//! Labels are left-aligned: of shorter ones the low bits are 0 in all labels and keys, which changes no order of distances.
//!
//! Invariants: a [`LabelTable`] never changes; a network that gets other entries gets another table. [`Pointers`] have one owner,
//! never hold more than their limit, and none that has expired is found. Source: M. Caesar et al., ROFL: Routing on Flat Labels
//! (SIGCOMM 2006) §2 and §3.

use crate::mem::lookup::prefetch;
use crate::types::NextHop;

/// The clockwise way from a label to a key: 0 if they are equal.
#[inline(always)]
#[must_use]
pub const fn clockwise(label: u128, key: u128) -> u128 {
    key.wrapping_sub(label)
}

/// The place of the closest label of a sorted list, of which so many are not above the key.
#[inline(always)]
const fn closest(not_above: usize, len: usize) -> Option<usize> {
    // Behind the lowest label, the ring continues at the highest one.
    if not_above == 0 { len.checked_sub(1) } else { Some(not_above - 1) }
}

/// A network's entries: see the head of this file.
#[derive(Clone, Debug, Default)]
pub struct LabelTable {
    /// Ascending, then [`STEP`] of `u128::MAX`, which are no entries.
    labels: Box<[u128]>,
    hops: Box<[u16]>,
    /// The index: for each value of the first bits, how many labels have a lower one.
    starts: Box<[u16]>,
    /// How far the upper half of a label is shifted to the right to give its place in the index.
    shift: u32,
}

/// How many labels are compared at once, without a branch.
const STEP: usize = 4;

/// The place of a label in an index.
#[inline(always)]
const fn index_of(label: u128, shift: u32) -> usize {
    ((label >> 64) as u64 >> shift) as usize
}

impl LabelTable {
    /// Most entries.
    pub const ENTRIES_MAX: usize = 16_384;

    /// A table with these entries, in any order. Of entries with the same label the first one counts; entries beyond
    /// [`LabelTable::ENTRIES_MAX`] are left out.
    #[must_use]
    pub fn new(entries: &[(u128, NextHop)]) -> Self {
        let mut sorted: Vec<(u128, NextHop)> = entries.iter().copied().take(Self::ENTRIES_MAX).collect();
        sorted.sort_by_key(|(label, _)| *label);
        sorted.dedup_by_key(|(label, _)| *label);
        let (mut labels, hops): (Vec<_>, Vec<_>) =
            sorted.into_iter().map(|(label, hop)| (label, hop.get())).unzip();
        let bits = labels.len().next_power_of_two().ilog2().max(1);
        let shift = u64::BITS - bits;
        let lower = |place| labels.partition_point(|label| index_of(*label, shift) < place) as u16;
        let starts = (0..1 << bits).map(lower).collect();
        labels.extend([u128::MAX; STEP]);
        Self { labels: labels.into(), hops: hops.into(), starts, shift }
    }

    /// How many labels are not above a key, or fewer: none that differs from it in the first bits is missing.
    #[inline(always)]
    fn start(&self, key: u128) -> usize {
        // A table without labels, which `default` makes, has no index either.
        self.starts.get(index_of(key, self.shift)).copied().unwrap_or_default().into()
    }

    /// How many labels are not above a key.
    #[inline(always)]
    fn not_above(&self, key: u128) -> usize {
        let start = self.start(key);
        let Some(next) = self.labels.get(start..).and_then(|rest| rest.first_chunk::<STEP>()) else {
            return 0;
        };
        let count = next.iter().map(|label| usize::from(*label <= key)).sum::<usize>();
        if count == STEP {
            return self.not_above_from(start, key);
        }
        start + count
    }

    /// The same if more labels than a step have these first bits.
    #[inline(never)]
    fn not_above_from(&self, start: usize, key: u128) -> usize {
        let end =
            self.starts.get(index_of(key, self.shift) + 1).map_or(self.hops.len(), |end| usize::from(*end));
        let rest = self.labels.get(start..end).unwrap_or_default();
        start + rest.partition_point(|label| *label <= key)
    }

    /// Asks the cache for what a search for this key reads. A search soon afterwards does not wait for memory.
    #[inline(always)]
    pub fn prefetch(&self, key: u128) {
        let start = self.start(key);
        let (labels, hops) = (self.labels.as_ptr(), self.hops.as_ptr());
        // The closest label is the one before, or one of the next.
        prefetch(labels.wrapping_add(start).wrapping_sub(1).cast());
        prefetch(labels.wrapping_add(start + STEP - 1).cast());
        prefetch(hops.wrapping_add(start).cast());
    }

    /// The closest label, and the word of its next hop.
    #[inline]
    #[must_use]
    pub fn closest(&self, key: u128) -> Option<(u128, u16)> {
        let at = closest(self.not_above(key), self.hops.len())?;
        Some((*self.labels.get(at)?, *self.hops.get(at)?))
    }

    /// The entries, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (u128, NextHop)> + '_ {
        self.labels.iter().zip(&self.hops).filter_map(|(label, word)| Some((*label, NextHop::new(*word)?)))
    }

    /// Whether there is an entry with this label.
    #[inline]
    #[must_use]
    pub fn has(&self, label: u128) -> bool {
        self.closest(label).is_some_and(|(closest, _)| closest == label)
    }
}

/// Pointers that packets taught; each has a value, where the label is.
#[derive(Debug)]
pub struct Pointers<T> {
    /// Ascending.
    labels: Vec<u128>,
    rows: Vec<Row<T>>,
    max: usize,
    ageing_ns: u64,
    /// None expires before this time.
    next_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row<T> {
    value: T,
    /// It is not found from this time on.
    ends_ns: u64,
}

/// The copy has room for as many, so that it allocates nothing later either.
impl<T: Copy + PartialEq> Clone for Pointers<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.max, self.ageing_ns);
        copy.labels.extend_from_slice(&self.labels);
        copy.rows.extend_from_slice(&self.rows);
        copy.next_ns = self.next_ns;
        copy
    }
}

/// A pointer, for lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pointer<T> {
    /// The label.
    pub label: u128,
    /// Where it is.
    pub value: T,
    /// Time since it was last taught, nanoseconds.
    pub age_ns: u64,
}

impl<T: Copy + PartialEq> Pointers<T> {
    /// None yet, and room for `max`; each is kept for `ageing_ns` after it was last taught.
    #[must_use]
    pub fn new(max: usize, ageing_ns: u64) -> Self {
        Self {
            labels: Vec::with_capacity(max),
            rows: Vec::with_capacity(max),
            max,
            ageing_ns,
            next_ns: u64::MAX,
        }
    }

    /// The closest label, and its value.
    #[inline]
    #[must_use]
    pub fn closest(&self, key: u128, now_ns: u64) -> Option<(u128, &T)> {
        let not_above = self.labels.partition_point(|label| *label <= key);
        let mut at = closest(not_above, self.labels.len())?;
        // Expired ones are few: the next packet that is learnt from removes them all.
        for _ in 0..self.rows.len() {
            let row = self.rows.get(at)?;
            if now_ns < row.ends_ns {
                return Some((*self.labels.get(at)?, &row.value));
            }
            at = at.checked_sub(1).unwrap_or(self.rows.len() - 1);
        }
        None
    }

    /// Removes what has expired. Without anything to remove it is one comparison.
    #[inline]
    pub fn age(&mut self, now_ns: u64) {
        if now_ns >= self.next_ns {
            self.sweep(now_ns);
        }
    }

    #[cold]
    fn sweep(&mut self, now_ns: u64) {
        let mut kept = 0;
        for at in 0..self.rows.len() {
            if now_ns < self.rows[at].ends_ns {
                self.labels[kept] = self.labels[at];
                self.rows[kept] = self.rows[at];
                kept += 1;
            }
        }
        self.labels.truncate(kept);
        self.rows.truncate(kept);
        self.next_ns = self.rows.iter().map(|row| row.ends_ns).min().unwrap_or(u64::MAX);
    }

    /// Enters a pointer, or that it is still true. Returns false if there was no room for it.
    pub fn learn(&mut self, label: u128, value: T, now_ns: u64) -> bool {
        self.age(now_ns);
        let row = Row { value, ends_ns: now_ns.saturating_add(self.ageing_ns) };
        match self.labels.binary_search(&label) {
            Ok(at) => self.rows[at] = row,
            Err(_) if self.labels.len() >= self.max => return false,
            Err(at) => {
                self.labels.insert(at, label);
                self.rows.insert(at, row);
            }
        }
        self.next_ns = self.next_ns.min(row.ends_ns);
        true
    }

    /// Removes those whose value is not one of these.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let mut rows = self.rows.iter();
        self.labels.retain(|_| rows.next().is_some_and(|row| keep(&row.value)));
        self.rows.retain(|row| keep(&row.value));
    }

    /// Those that have not expired, ascending.
    pub fn list(&self, now_ns: u64) -> impl Iterator<Item = Pointer<T>> + '_ {
        let all = self.labels.iter().zip(&self.rows).filter(move |(_, row)| now_ns < row.ends_ns);
        all.map(move |(label, row)| {
            let taught_ns = row.ends_ns.saturating_sub(self.ageing_ns);
            Pointer { label: *label, value: row.value, age_ns: now_ns.saturating_sub(taught_ns) }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Labels that are often neighbours, at both ends of the space and in between.
    fn label() -> impl Strategy<Value = u128> {
        prop_oneof![0_u128..6, (0_u128..6).prop_map(|low| u128::MAX - low), any::<u128>(), Just(1 << 127)]
    }

    /// The shortest clockwise way, one label after the other.
    fn naive(labels: impl Iterator<Item = u128>, key: u128) -> Option<u128> {
        labels.min_by_key(|label| clockwise(*label, key))
    }

    proptest! {
        #[test]
        fn the_closest_entry_is_the_one_that_all_distances_say(
            labels in prop::collection::btree_set(label(), 0..40).prop_map(Vec::from_iter).prop_shuffle(),
            keys in prop::collection::vec(label(), 20),
        ) {
            let hop = |at: usize| NextHop::new(at as u16).unwrap();
            let entries: Vec<_> = labels.iter().copied().zip((0..).map(hop)).collect();
            let table = LabelTable::new(&entries);
            for key in keys.into_iter().chain(labels.iter().copied()) {
                let wanted = naive(labels.iter().copied(), key);
                let place = wanted.and_then(|one| labels.iter().position(|label| *label == one));
                prop_assert_eq!(table.closest(key), wanted.zip(place.map(|at| at as u16)));
                prop_assert_eq!(table.has(key), labels.contains(&key));
            }
        }

        #[test]
        fn pointers_are_those_of_a_list_that_is_searched_whole(
            max in 0_usize..6,
            steps in prop::collection::vec((label(), 0_u8..3, 0_u64..40, any::<bool>()), 0..60),
        ) {
            const AGEING_NS: u64 = 100;
            let mut pointers = Pointers::new(max, AGEING_NS);
            let mut known: Vec<(u128, u8, u64)> = Vec::new();
            let mut now_ns = 0;
            for (label, value, later_ns, learns) in steps {
                now_ns += later_ns;
                known.retain(|(_, _, taught_ns)| now_ns < taught_ns + AGEING_NS);
                let closest = naive(known.iter().map(|(label, ..)| *label), label);
                let found = pointers.closest(label, now_ns).map(|(label, value)| (label, *value));
                let row = known.iter().find(|(label, ..)| Some(*label) == closest);
                prop_assert_eq!(found, row.map(|(label, value, _)| (*label, *value)));
                if learns {
                    let before = known.iter().position(|(other, ..)| *other == label);
                    let fits = before.is_some() || known.len() < max;
                    if let Some(at) = before {
                        known.remove(at);
                    }
                    if fits {
                        known.push((label, value, now_ns));
                    }
                    prop_assert_eq!(pointers.learn(label, value, now_ns), fits);
                }
                known.sort_unstable();
                let list: Vec<_> = pointers.list(now_ns).map(|one| (one.label, one.value, now_ns - one.age_ns)).collect();
                prop_assert_eq!(&list, &known);
            }
            pointers.retain(|value| *value == 1);
            known.retain(|(_, value, _)| *value == 1);
            prop_assert_eq!(pointers.list(now_ns).count(), known.len());
        }
    }

    #[test]
    fn limits_hold() {
        let hop = NextHop::new(0).unwrap();
        let all: Vec<_> = (0..=LabelTable::ENTRIES_MAX as u128).map(|label| (label, hop)).collect();
        let last = LabelTable::ENTRIES_MAX as u128 - 1;
        let together = LabelTable::new(&all);
        assert_eq!(together.closest(u128::MAX), Some((last, 0)));
        for key in (0..=last).step_by(97) {
            assert_eq!(
                together.closest(key),
                Some((key, 0)),
                "labels that lie together are searched by halves"
            );
        }
        let mut full = Pointers::new(2, 10);
        assert_eq!([1, 2, 3, 2].map(|label| full.learn(label, (), 5)), [true, true, false, true]);
        assert!(full.closest(9, 15).is_none(), "they have expired");
        assert!(full.learn(3, (), 15), "and count no more");
    }
}
