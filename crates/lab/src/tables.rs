//! Experiments on forwarding tables: the overlap of the prefixes of two tables, and the routes of one table
//! distributed to several networks (Unnikrishnan §7.5 and Table 3).
//!
//! Flow: prefixes of real tables → overlap and parts → memory of the layouts (`hue_tables`). Tables are
//! sorted and have no duplicates.

use hue_tables::dir::SLOT_BITS;
use hue_tables::{NextHop, Prefix4};

use crate::random::Random;

/// Counts of a table's prefixes by their overlap with another table. The default route overlaps with
/// everything, so it is omitted on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Overlap {
    /// All prefixes counted.
    pub prefixes: usize,
    /// Prefixes that the other table also has.
    pub same: usize,
    /// Prefixes covered by a shorter prefix of the other table.
    pub inside: usize,
    /// Prefixes that cover a longer prefix of the other table.
    pub covers: usize,
    /// Prefixes in any of these groups.
    pub any: usize,
    /// Prefixes that share an entry of layout `dir`'s first bank with a prefix of the other table.
    pub entry: usize,
}

/// Computes the overlap of one table's prefixes with another table.
#[must_use]
pub fn overlap(of: &[Prefix4], with: &[Prefix4]) -> Overlap {
    let with = with.get(with.partition_point(|prefix| prefix.len() == 0)..).unwrap_or_default();
    let entries = entries(with);
    let mut overlap = Overlap::default();
    // Prefixes of `with` that begin before the current prefix and contain or follow its start, longest last.
    let mut covering: Vec<Prefix4> = Vec::new();
    let mut rest = with.iter().peekable();
    for prefix in of.iter().filter(|prefix| prefix.len() > 0) {
        while let Some(next) = rest.next_if(|next| *next <= prefix) {
            covering.retain(|open| open.last() >= next.addr());
            covering.push(*next);
        }
        covering.retain(|open| open.last() >= prefix.addr());
        let same = covering.last() == Some(prefix);
        let inside = covering.len() > usize::from(same);
        let covers = rest.peek().is_some_and(|next| next.addr() <= prefix.last());
        overlap.prefixes += 1;
        overlap.same += usize::from(same);
        overlap.inside += usize::from(inside);
        overlap.covers += usize::from(covers);
        overlap.any += usize::from(same || inside || covers);
        let index = |address: u32| (address >> (32 - SLOT_BITS)) as usize;
        let count = |end: usize| entries.get(end).copied().unwrap_or(0);
        overlap.entry += usize::from(count(index(prefix.addr())) != count(index(prefix.last()) + 1));
    }
    overlap
}

/// For each entry index, the number of smaller entries that a prefix of the table uses.
fn entries(table: &[Prefix4]) -> Vec<u32> {
    let mut indexed = vec![false; 1 << SLOT_BITS];
    for prefix in table {
        let shift = 32 - SLOT_BITS;
        let range = (prefix.addr() >> shift) as usize..=(prefix.last() >> shift) as usize;
        indexed.get_mut(range).into_iter().flatten().for_each(|entry| *entry = true);
    }
    let mut before = 0;
    let counts = indexed.into_iter().map(|indexed| {
        before += u32::from(indexed);
        before
    });
    std::iter::once(0).chain(counts).collect()
}

/// Distributes `sample` random routes of a table evenly to `parts` networks. Each part is sorted. `None` if
/// the table has fewer routes.
#[must_use]
pub fn distribute(
    routes: &[(Prefix4, NextHop)],
    sample: usize,
    parts: usize,
    seed: u64,
) -> Option<Vec<Vec<(Prefix4, NextHop)>>> {
    if routes.len() < sample || parts == 0 {
        return None;
    }
    let mut random = Random::new(seed);
    let mut shuffled = routes.to_vec();
    for at in 0..sample {
        // Fisher-Yates shuffle. The index is below the length, which is at least `sample`.
        shuffled.swap(at, at + random.below((routes.len() - at) as u64) as usize);
    }
    shuffled.truncate(sample);
    let mut dealt = vec![Vec::with_capacity(sample.div_ceil(parts)); parts];
    for (at, route) in shuffled.into_iter().enumerate() {
        dealt.iter_mut().skip(at % parts).take(1).for_each(|part| part.push(route));
    }
    dealt.iter_mut().for_each(|part| part.sort_unstable());
    Some(dealt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixes() -> impl Strategy<Value = Vec<Prefix4>> {
        let prefix = (0_u32..8, 0_u32..8, 0_u8..=32)
            .prop_map(|(high, low, len)| Prefix4::containing(high << 29 | low << 9, len));
        proptest::collection::btree_set(prefix, 0..30).prop_map(|set| set.into_iter().collect())
    }

    /// Computed from the definitions, pair by pair.
    fn naive(of: &[Prefix4], with: &[Prefix4]) -> Overlap {
        let contains = |outer: &Prefix4, inner: &Prefix4| {
            outer.len() < inner.len() && Prefix4::containing(inner.addr(), outer.len()) == *outer
        };
        let mut overlap = Overlap::default();
        for prefix in of.iter().filter(|prefix| prefix.len() > 0) {
            let with = || with.iter().filter(|other| other.len() > 0);
            let same = with().any(|other| other == prefix);
            let inside = with().any(|other| contains(other, prefix));
            let covers = with().any(|other| contains(prefix, other));
            let entry = with().any(|other| {
                prefix.addr() >> 13 <= other.last() >> 13 && other.addr() >> 13 <= prefix.last() >> 13
            });
            overlap.prefixes += 1;
            overlap.same += usize::from(same);
            overlap.inside += usize::from(inside);
            overlap.covers += usize::from(covers);
            overlap.any += usize::from(same || inside || covers);
            overlap.entry += usize::from(entry);
        }
        overlap
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn overlap_matches_the_definitions(of in prefixes(), with in prefixes()) {
            prop_assert_eq!(overlap(&of, &with), naive(&of, &with));
        }
    }

    #[test]
    fn routes_are_dealt_once_and_by_seed() {
        let hop = NextHop::new(1).unwrap();
        let routes: Vec<_> = (0..1000_u32).map(|i| (Prefix4::containing(i << 12, 20), hop)).collect();
        let dealt = distribute(&routes, 1000, 3, 1).unwrap();
        assert_eq!(dealt.iter().map(Vec::len).collect::<Vec<_>>(), [334, 333, 333]);
        assert!(dealt.iter().all(|part| part.is_sorted()));
        let mut all = dealt.concat();
        all.sort_unstable();
        assert_eq!(all, routes);
        let (some, same, other) =
            (distribute(&routes, 100, 4, 1), distribute(&routes, 100, 4, 1), distribute(&routes, 100, 4, 2));
        assert!(some == same && some != other);
        assert_eq!(distribute(&routes, 1001, 4, 1), None);
    }
}
