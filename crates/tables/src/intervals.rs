//! The intervals between flat labels as prefixes: a search for the closest label becomes a longest prefix match.
//!
//! Flow: entries → [`intervals`] → routes → a trie, for a card that has no search of its own. Keys between two labels belong to the
//! lower one. On the way from the root of a trie to a label, what lies to the left of the way belongs to the label before, and what lies
//! to the right to the label itself. So a label needs prefixes beside its own way only, at most one for each of its bits, and one for itself;
//! and a change of it changes prefixes beside its way and that of the label behind it. The keys before the lowest label belong to the
//! highest one, which the ring has before it.
//!
//! Invariant: the answer for a key is that of [`LabelTable::closest`](crate::LabelTable::closest). Source: ADR 0078.

use crate::types::{NextHop, Prefix, Prefix6};

/// Routes of entries of labels with so many bits, left-aligned, in any order; of entries with the same label the first one counts.
/// `behind` is what a label's next hop becomes for keys that are not the label. None of the routes repeats the next hop of the one around it.
#[must_use]
pub fn intervals(
    entries: &[(u128, NextHop)],
    bits: u8,
    behind: impl Fn(NextHop) -> NextHop,
) -> Vec<(Prefix6, NextHop)> {
    let mut labels = entries.to_vec();
    labels.sort_by_key(|(label, _)| *label);
    labels.dedup_by_key(|(label, _)| *label);
    let mut routes = Vec::new();
    if let Some((_, last)) = labels.last() {
        let top = Part { labels: &labels, address: 0, len: 0, before: behind(*last), around: None };
        divide(top, bits, &behind, &mut routes);
    }
    routes
}

/// The keys with a prefix.
struct Part<'a> {
    /// The labels among them.
    labels: &'a [(u128, NextHop)],
    address: u128,
    len: u8,
    /// The next hop of keys before the first of these labels.
    before: NextHop,
    /// That of the route around them.
    around: Option<NextHop>,
}

/// Appends the routes of a part. It goes as deep as a label has bits.
fn divide(
    part: Part<'_>,
    bits: u8,
    behind: &impl Fn(NextHop) -> NextHop,
    routes: &mut Vec<(Prefix6, NextHop)>,
) {
    let Part { labels, address, len, before, around } = part;
    let own = match labels.first() {
        Some((_, hop)) if len >= bits => *hop,
        _ => before,
    };
    if around != Some(own) {
        routes.push((Prefix::containing(address, len), own));
    }
    if labels.is_empty() || len >= bits {
        return;
    }
    let half = 1u128 << (127 - len);
    let (left, right) = labels.split_at(labels.partition_point(|(label, _)| label & half == 0));
    let behind_left = left.last().map_or(before, |(_, hop)| behind(*hop));
    let len = len + 1;
    divide(Part { labels: left, address, len, before, around: Some(own) }, bits, behind, routes);
    let address = address | half;
    divide(
        Part { labels: right, address, len, before: behind_left, around: Some(own) },
        bits,
        behind,
        routes,
    );
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{Dag, LabelTable, Limits, Vid, dag36};

    /// The next hop of keys behind the labels that this router holds.
    const HELD: u16 = 100;

    fn behind(hop: NextHop) -> NextHop {
        if hop.get().is_multiple_of(2) { NextHop::new(HELD).unwrap() } else { hop }
    }

    /// Labels that are often neighbours, at both ends of the space and in between, with so many bits.
    fn label(bits: u8) -> impl Strategy<Value = u128> {
        let any = prop_oneof![
            0_u128..6,
            (0_u128..6).prop_map(|low| u128::MAX - low),
            any::<u128>(),
            Just(1 << 127)
        ];
        any.prop_map(
            move |label| if label < 6 { label << (128 - bits) } else { label & u128::MAX << (128 - bits) },
        )
    }

    fn world() -> impl Strategy<Value = (u8, Vec<u128>, Vec<u128>)> {
        prop_oneof![Just(32_u8), Just(40), Just(128)].prop_flat_map(|bits| {
            let labels = prop::collection::btree_set(label(bits), 0..20).prop_map(Vec::from_iter);
            (Just(bits), labels.prop_shuffle(), prop::collection::vec(label(bits), 12))
        })
    }

    fn hops(labels: &[u128]) -> Vec<(u128, NextHop)> {
        let hop = |at: usize| NextHop::new(at as u16 % 5).unwrap();
        labels.iter().enumerate().map(|(at, label)| (*label, hop(at))).collect()
    }

    proptest! {
        #[test]
        fn the_longest_prefix_says_what_the_closest_label_does((bits, labels, keys) in world()) {
            let entries = hops(&labels);
            let routes = intervals(&entries, bits, behind);
            let table = LabelTable::new(&entries);
            let step = 1 << (128 - bits);
            let beside = labels.iter().flat_map(|label| [*label, label.wrapping_add(step), label.wrapping_sub(step)]);
            for key in keys.into_iter().chain(beside) {
                let longest = routes.iter().filter(|(prefix, _)| prefix.contains(key)).max_by_key(|(prefix, _)| prefix.len());
                let wanted = table.closest(key).map(|(label, word)| {
                    let hop = NextHop::new(word).unwrap();
                    if label == key { hop } else { behind(hop) }
                });
                prop_assert_eq!(longest.map(|(_, hop)| *hop), wanted, "key {:032x}", key);
            }
            let prefixes: HashMap<_, _> = routes.iter().copied().collect();
            prop_assert_eq!(prefixes.len(), routes.len(), "no prefix twice");
            prop_assert!(routes.len() <= 1 + labels.len() * (usize::from(bits) + 1));
        }

        #[test]
        fn a_label_changes_prefixes_beside_its_way_and_the_next_ones((bits, labels, _) in world()) {
            let Some((last, others)) = labels.split_last() else { return Ok(()) };
            let entries = hops(&labels);
            let of = |entries: &[(u128, NextHop)]| intervals(entries, bits, behind).into_iter().collect::<HashMap<_, _>>();
            let (with, without) = (of(&entries), of(&entries[..others.len()]));
            let differ = |one: &HashMap<Prefix6, NextHop>, other: &HashMap<Prefix6, NextHop>| {
                one.iter().filter(|(prefix, hop)| other.get(prefix) != Some(hop)).map(|(prefix, _)| *prefix).collect::<Vec<_>>()
            };
            let next = others.iter().copied().min_by_key(|label| label.wrapping_sub(*last)).unwrap_or(*last);
            for prefix in differ(&with, &without).into_iter().chain(differ(&without, &with)) {
                let parent = Prefix::containing(prefix.addr(), prefix.len().saturating_sub(1));
                prop_assert!(parent.contains(*last) || parent.contains(next), "{} of {:032x}", prefix, last);
            }
        }
    }

    /// The scheduler reckons with it.
    #[test]
    fn a_random_label_takes_at_most_three_words_of_the_card_for_each_of_its_bytes() {
        for (bits, count) in [(32_u8, 100_u64), (32, 4000), (64, 1000), (128, 1000)] {
            let word = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let label = |number: u64| {
                let all = u128::from(word(number)) << 64 | u128::from(word(word(number) >> 7));
                (all & u128::MAX << (128 - bits), NextHop::new(number as u16 % 5).unwrap())
            };
            let entries: Vec<_> = (1..=count).map(label).collect();
            let mut dag = Dag::new(Limits::default()).unwrap();
            dag.set_weight_fn(dag36::words_of);
            let vid = Vid::new(1).unwrap();
            dag.add_network::<u128>(vid).unwrap();
            let routes = intervals(&entries, bits, behind);
            dag.apply(vid, &routes.into_iter().map(|(prefix, hop)| (prefix, Some(hop))).collect::<Vec<_>>())
                .unwrap();
            let words = dag.account(vid).unwrap().bytes_own;
            println!("{count} labels of {bits} bits: {:.1} words each", words as f64 / count as f64);
            assert!(words <= 3 * count * u64::from(bits / 8), "{words} words");
        }
    }
}
