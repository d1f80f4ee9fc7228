//! The papers' two banks beside the naive oracle: random changes of several networks that conflict, with room and without.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;

use hue_tables::dir::{Dir, DirError, DirLimits, DirUsage, SLOTS};
use hue_tables::{Change, NextHop, Oracle, Prefix4, Vid};
use proptest::prelude::*;

const NETWORKS: u16 = 4;

fn vid(id: u16) -> Vid {
    Vid::new(id).unwrap()
}

fn hop(index: u16) -> NextHop {
    NextHop::new(index).unwrap()
}

fn prefix(text: &str) -> Prefix4 {
    text.parse().unwrap()
}

/// A table and what it must answer.
struct Pair {
    dir: Dir,
    oracles: BTreeMap<Vid, Oracle<u32>>,
}

impl Pair {
    fn new(limits: DirLimits) -> Self {
        let mut dir = Dir::new(limits);
        let oracles = (1..=NETWORKS).map(|id| (vid(id), Oracle::default())).collect();
        (1..=NETWORKS).for_each(|id| dir.add_network(vid(id)).unwrap());
        Self { dir, oracles }
    }

    fn apply(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), DirError> {
        self.dir.apply(vid, changes)?;
        let oracle = self.oracles.get_mut(&vid).unwrap();
        for (prefix, hop) in changes {
            match hop {
                Some(hop) => oracle.insert(*prefix, *hop),
                None => oracle.remove(*prefix),
            };
        }
        Ok(())
    }

    /// Every network's answers at these addresses, and the rules that words and rows keep.
    fn check(&self, addresses: &[u32]) {
        for (vid, oracle) in &self.oracles {
            for address in addresses {
                let right = NextHop::word(oracle.lookup(*address).map(|(_, hop)| hop));
                let found = self.dir.lookup(*vid, *address);
                assert_eq!(found.word, right, "network {vid}, address {address:#x}");
                assert!(found.reads <= 2);
            }
        }
        let rows: Vec<(Vid, Prefix4, u32)> = self.dir.cam().collect();
        assert_eq!(rows.len(), self.dir.usage().cam_rows);
        for (at, (vid, prefix, index)) in rows.iter().enumerate() {
            let entry = self.dir.bank1()[*index as usize];
            assert_eq!((entry >> 31 & 1, entry >> 16 & 0xfff), (1, u64::from(vid.get())));
            for (other, beside, place) in &rows[at + 1..] {
                assert!(place != index && !(other == vid && prefix.contains(beside.addr())));
            }
        }
        let used = self.dir.bank1().iter().filter(|entry| **entry != 0).count();
        let usage = self.dir.usage();
        assert_eq!(used, usage.slots + usage.cam_rows);
        assert!(self.dir.bank1().iter().all(|entry| entry >> 36 == 0));
    }
}

/// Addresses where prefixes begin and end, and just outside.
fn edges(prefixes: impl Iterator<Item = Prefix4>) -> Vec<u32> {
    prefixes
        .flat_map(|prefix| {
            let (first, last) = (prefix.addr(), prefix.last());
            [first, last, first.wrapping_sub(1), last.wrapping_add(1), first ^ 0x1fff]
        })
        .collect()
}

/// Prefixes that meet: a few places, lengths on both sides of a slot's.
fn any_prefix() -> impl Strategy<Value = Prefix4> {
    (0u32..3, 0u32..6, 0u32..64, 9u8..=32).prop_map(|(net, slot, host, len)| {
        Prefix4::containing((10 + net) << 24 | slot << 13 | host << 7 | host, len)
    })
}

type Step = (u16, Vec<(Prefix4, Option<u16>)>);

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (any_prefix(), prop::option::weighted(0.65, 0u16..5));
    prop::collection::vec((1..=NETWORKS, prop::collection::vec(change, 1..5)), 1..40)
}

fn run(steps: &[Step], limits: DirLimits) -> usize {
    let mut pair = Pair::new(limits);
    let mut refused = 0;
    let all = edges(steps.iter().flat_map(|(_, changes)| changes).map(|(prefix, _)| *prefix));
    for (network, changes) in steps {
        let changes: Vec<Change<u32>> = changes.iter().map(|(prefix, to)| (*prefix, to.map(hop))).collect();
        let (banks, usage) = ([pair.dir.bank1().to_vec(), pair.dir.bank2().to_vec()], pair.dir.usage());
        if let Err(error) = pair.apply(vid(*network), &changes) {
            refused += 1;
            assert!(error.to_string().contains(&format!("network {network}:")), "{error}");
            assert!(
                banks[0] == pair.dir.bank1() && banks[1] == pair.dir.bank2() && usage == pair.dir.usage()
            );
        }
        pair.check(&all);
    }
    // All gone: nothing is left.
    for id in 1..=NETWORKS {
        pair.dir.remove_network(vid(id)).unwrap();
    }
    assert_eq!(pair.dir.usage(), DirUsage::default());
    assert!(pair.dir.bank1().iter().all(|entry| *entry == 0));
    refused
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_the_oracle_s(steps in any_steps()) {
        prop_assert_eq!(run(&steps, DirLimits { sets: 1000, cam_rows: 1000 }), 0);
    }

    #[test]
    fn what_does_not_fit_changes_nothing(steps in any_steps(), sets in 0u32..6, cam_rows in 0usize..4) {
        run(&steps, DirLimits { sets, cam_rows });
    }
}

#[test]
fn a_network_without_a_route_does_not_see_another_s() {
    let mut pair = Pair::new(DirLimits::default());
    pair.apply(vid(1), &[(prefix("10.0.0.0/8"), Some(hop(7)))]).unwrap();
    pair.apply(vid(2), &[(prefix("11.0.0.0/8"), Some(hop(8)))]).unwrap();
    pair.check(&edges([prefix("10.0.0.0/8"), prefix("11.0.0.0/8")].into_iter()));
    let usage = pair.dir.usage();
    assert_eq!((usage.slots, usage.sets, usage.cam_rows), (2 << 11, 0, 0));
    // A prefix where another has one takes one row and one entry, however many slots it is.
    pair.apply(vid(2), &[(prefix("10.0.0.0/9"), Some(hop(9)))]).unwrap();
    assert_eq!(pair.dir.usage().cam_rows, 1);
    // The first unused slot holds it, which is nobody's to read directly.
    let (of, block, index) = pair.dir.cam().next().unwrap();
    assert_eq!((of, block, index), (vid(2), prefix("10.0.0.0/9"), 0));
    pair.check(&[0, 1 << 24]);
    // The slot gets an owner: what is there moves on.
    pair.apply(vid(3), &[(prefix("0.0.0.0/16"), Some(hop(3)))]).unwrap();
    assert_eq!(pair.dir.cam().next().unwrap().2, 8);
    pair.check(&[0, 0x0a00_0001, 0x0a80_0000]);
    // The owner goes: its slots are those of who conflicted, and the row is free.
    pair.apply(vid(1), &[(prefix("10.0.0.0/8"), None)]).unwrap();
    assert_eq!(pair.dir.usage().cam_rows, 0);
    pair.check(&[0x0a00_0001, 0x0a80_0000]);
}

#[test]
fn limits_are_named_and_reached_exactly() {
    let mut dir = Dir::new(DirLimits { sets: 2, cam_rows: 1 });
    for id in [1, 2] {
        dir.add_network(vid(id)).unwrap();
    }
    assert_eq!(dir.add_network(vid(1)), Err(DirError::DuplicateNetwork(vid(1))));
    assert_eq!(dir.apply(vid(9), &[]), Err(DirError::UnknownNetwork(vid(9))));
    let set = |text: &str| [(prefix(text), Some(hop(1)))];
    dir.apply(vid(1), &set("10.0.0.0/24")).unwrap();
    dir.apply(vid(1), &set("10.0.1.0/24")).unwrap(); // the same slot
    dir.apply(vid(1), &set("10.1.0.0/24")).unwrap();
    let full = dir.apply(vid(2), &set("12.0.0.0/32")).unwrap_err();
    assert_eq!(full, DirError::Sets { vid: vid(2), needed: 3, max: 2 });
    assert_eq!(
        full.to_string(),
        "network 2: prefixes longer than 19 bits need 3 sets of bank 2, which has 2"
    );
    dir.apply(vid(2), &set("10.0.0.0/19")).unwrap();
    let full = dir.apply(vid(2), &set("10.1.0.0/19")).unwrap_err();
    assert_eq!(full, DirError::Cam { vid: vid(2), needed: 2, max: 1 });
    // A set that is free again can be had.
    dir.apply(vid(1), &[(prefix("10.1.0.0/24"), None)]).unwrap();
    dir.apply(vid(2), &set("12.0.0.0/32")).unwrap();
    assert_eq!(dir.lookup(vid(2), 0x0c00_0000).reads, 2);

    // All of bank 1 by one network leaves no entry for another that conflicts.
    let mut dir = Dir::new(DirLimits { sets: 1, cam_rows: 9 });
    (1..=2).for_each(|id| dir.add_network(vid(id)).unwrap());
    dir.apply(vid(1), &set("0.0.0.0/0")).unwrap();
    let full = dir.apply(vid(2), &set("10.0.0.0/8")).unwrap_err();
    assert_eq!(full, DirError::Bank { vid: vid(2), needed: SLOTS + 1 });
    assert_eq!(dir.lookup(vid(2), 0x0a00_0000).word, NextHop::NONE_WORD);
    assert_eq!(dir.lookup(vid(1), 0x0a00_0000).word, 1);
}
