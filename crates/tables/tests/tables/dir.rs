//! Compares the papers' two banks with the oracle: random changes of several conflicting networks, with and
//! without enough room.

use std::collections::BTreeMap;

use hue_tables::dir::words::{DirEntry, DirRow, DirWrite};
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

/// A table and its oracles.
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

    /// Checks every network's answers at these addresses, and the invariants of words and rows.
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
            let entry = DirEntry::decode(self.dir.bank1()[*index as usize]);
            assert_eq!((entry.by_cam, entry.vid), (true, Some(*vid)));
            for (other, beside, place) in &rows[at + 1..] {
                assert!(place != index && !(other == vid && prefix.contains(beside.addr())));
            }
        }
        let used = self.dir.bank1().iter().filter(|entry| **entry != 0).count();
        let usage = self.dir.usage();
        assert_eq!(used, usage.slots + usage.cam_rows);
        assert!(self.dir.bank1().iter().all(|entry| entry >> 35 == 0));
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

/// Prefixes that conflict: few places, with lengths on both sides of a slot's.
fn any_prefix() -> impl Strategy<Value = Prefix4> {
    (0u32..3, 0u32..6, 0u32..64, 9u8..=32).prop_map(|(net, slot, host, len)| {
        Prefix4::containing((10 + net) << 24 | slot << 13 | host << 7 | host, len)
    })
}

/// A model of the card's memories, with lookups in flight while the table changes.
struct Card {
    bank1: Vec<u64>,
    bank2: Vec<u64>,
    rows: BTreeMap<u32, DirRow>,
    random: u64,
    /// Whether `Drain` steps wait. Without them, lookups in flight read reused words, which the checker must
    /// detect.
    drains: bool,
}

/// The stage of a lookup.
#[derive(Clone, Copy)]
enum At {
    Cam,
    Bank1 { index: u32, by_cam: bool },
    Bank2 { index: usize },
    Answered(u16),
}

impl Card {
    fn new(random: u64) -> Self {
        let bank2 = vec![0; 1 << 23];
        Self { bank1: vec![0; SLOTS], bank2, rows: BTreeMap::new(), random: random | 1, drains: true }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % end
    }

    fn write(&mut self, write: &DirWrite) {
        match *write {
            DirWrite::Bank1 { index, word } => self.bank1[index as usize] = word,
            DirWrite::Bank2 { index, word } => self.bank2[index as usize] = word,
            DirWrite::Row { row, to: Some(to) } => _ = self.rows.insert(row, to),
            DirWrite::Row { row, to: None } => _ = self.rows.remove(&row),
            DirWrite::Drain => {}
        }
    }

    /// Continues a lookup by one memory; if several rows match, picks a random one.
    fn go(&mut self, vid: Vid, address: u32, at: At) -> At {
        match at {
            At::Cam => {
                let rows = self.rows.values().filter(|row| row.vid == vid && row.prefix.contains(address));
                let found: Vec<u32> = rows.map(|row| row.index).collect();
                let index = if found.is_empty() { address >> 13 } else { found[self.below(found.len())] };
                At::Bank1 { index, by_cam: !found.is_empty() }
            }
            At::Bank1 { index, by_cam } => {
                let entry = DirEntry::decode(self.bank1[index as usize]);
                match (entry.vid == Some(vid) && entry.by_cam == by_cam, entry.set) {
                    (false, _) => At::Answered(NextHop::NONE_WORD),
                    (true, false) => At::Answered(entry.value),
                    (true, true) => {
                        At::Bank2 { index: usize::from(entry.value) << 13 | address as usize & 0x1fff }
                    }
                }
            }
            At::Bank2 { index } => {
                let entry = DirEntry::decode(self.bank2[index]);
                At::Answered(if entry.vid == Some(vid) { entry.value } else { NextHop::NONE_WORD })
            }
            At::Answered(_) => at,
        }
    }

    /// Executes the steps of a change, with lookups of all networks at random times. Returns the number of
    /// wrong answers.
    fn change(&mut self, writes: &[DirWrite], asked: &[(Vid, u32, [u16; 3])]) -> usize {
        let mut flights: Vec<(usize, At)> = Vec::new();
        let mut wrong = 0;
        for write in writes {
            // A set has many words, so few lookups for each are enough.
            for _ in 0..if matches!(write, DirWrite::Bank2 { .. }) { 1 } else { 6 } {
                flights.push((self.below(asked.len()), At::Cam));
            }
            let all = self.drains && *write == DirWrite::Drain;
            let mut left = Vec::new();
            for (of, mut at) in flights {
                let (vid, address, right) = asked[of];
                while all || self.below(2) == 0 {
                    at = self.go(vid, address, at);
                    if matches!(at, At::Answered(_)) {
                        break;
                    }
                }
                match at {
                    At::Answered(word) => wrong += usize::from(!right.contains(&word)),
                    _ => left.push((of, at)),
                }
            }
            flights = left;
            self.write(write);
        }
        for (of, mut at) in flights {
            let (vid, address, right) = asked[of];
            while !matches!(at, At::Answered(_)) {
                at = self.go(vid, address, at);
            }
            wrong += usize::from(!matches!(at, At::Answered(word) if right.contains(&word)));
        }
        wrong
    }
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
    // After all routes are removed, nothing is left.
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
    fn answers_equal_the_oracle(steps in any_steps()) {
        prop_assert_eq!(run(&steps, DirLimits { sets: 1000, cam_rows: 1000 }), 0);
    }

    #[test]
    fn changes_that_do_not_fit_have_no_effect(steps in any_steps(), sets in 0u32..6, cam_rows in 0usize..4) {
        run(&steps, DirLimits { sets, cam_rows });
    }
}

/// Runs lookups in flight while each of these changes is written. Returns the number of wrong answers.
fn run_in_flight(steps: &[Step], limits: DirLimits, card: &mut Card) -> usize {
    let mut pair = Pair::new(limits);
    pair.dir.record_writes();
    let all = edges(steps.iter().flat_map(|(_, changes)| changes).map(|(prefix, _)| *prefix));
    let all: Vec<(Vid, u32)> =
        (1..=NETWORKS).flat_map(|id| all.iter().map(move |at| (vid(id), *at))).collect();
    let answers =
        |dir: &Dir| -> Vec<u16> { all.iter().map(|(vid, at)| dir.lookup(*vid, *at).word).collect() };
    let mut before = answers(&pair.dir);
    let mut wrong = 0;
    for (network, changes) in steps {
        let interruptions = pair.dir.interruptions();
        let changes: Vec<Change<u32>> = changes.iter().map(|(prefix, to)| (*prefix, to.map(hop))).collect();
        let _ = pair.apply(vid(*network), &changes); // rejected changes have no steps
        let after = answers(&pair.dir);
        // If old and new do not fit side by side, a lookup may find no route.
        let third = |old| if pair.dir.interruptions() > interruptions { NextHop::NONE_WORD } else { old };
        let asked: Vec<(Vid, u32, [u16; 3])> = all
            .iter()
            .zip(before.iter().zip(&after))
            .map(|((vid, at), (old, new))| (*vid, *at, [*old, *new, third(*old)]))
            .collect();
        wrong += card.change(&pair.dir.take_writes(), &asked);
        let mut rows: Vec<_> = card.rows.values().map(|row| (row.vid, row.prefix, row.index)).collect();
        rows.sort();
        assert_eq!(rows, pair.dir.cam().collect::<Vec<_>>());
        assert!(card.rows.keys().all(|row| (*row as usize) < limits.cam_rows));
        assert!(card.bank1 == pair.dir.bank1() && card.bank2.starts_with(pair.dir.bank2()));
        before = after;
    }
    wrong
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn lookups_in_flight_see_old_or_new(steps in any_steps(), seed: u64) {
        let limits = DirLimits { sets: 1000, cam_rows: 1000 };
        prop_assert_eq!(run_in_flight(&steps, limits, &mut Card::new(seed)), 0);
    }

    #[test]
    fn without_room_lookups_may_see_no_route(steps in any_steps(), sets in 0u32..6, cam_rows in 0usize..4) {
        prop_assert_eq!(run_in_flight(&steps, DirLimits { sets, cam_rows }, &mut Card::new(1)), 0);
    }

    #[test]
    fn entries_survive_encoding(set: bool, by_cam: bool, id in 0u16..4096, value: u16) {
        let entry = DirEntry { set, by_cam, vid: Vid::new(id), value };
        prop_assert!(entry.encode() < 1 << 35);
        prop_assert_eq!(DirEntry::decode(entry.encode()), entry);
    }
}

#[test]
fn words_reused_too_early_are_detected() {
    // The owner of a slot withdraws its route: the CAM row of the other network is removed.
    let a = prefix("10.0.0.0/19");
    let step = |id: u16, to: Option<u16>| (id, vec![(a, to)]);
    let turn = [step(1, None), step(1, Some(1)), step(2, None), step(2, Some(2))];
    let both = [step(1, Some(1)), step(2, Some(2))];
    let steps: Vec<Step> = both.into_iter().chain((0..50).flat_map(|_| turn.clone())).collect();
    let limits = DirLimits::default();
    let mut card = Card::new(1);
    assert_eq!(run_in_flight(&steps, limits, &mut card), 0);
    let mut card = Card { drains: false, ..Card::new(1) };
    assert!(run_in_flight(&steps, limits, &mut card) > 0);
}

#[test]
fn a_network_without_a_route_does_not_see_another_networks() {
    let mut pair = Pair::new(DirLimits::default());
    pair.apply(vid(1), &[(prefix("10.0.0.0/8"), Some(hop(7)))]).unwrap();
    pair.apply(vid(2), &[(prefix("11.0.0.0/8"), Some(hop(8)))]).unwrap();
    pair.check(&edges([prefix("10.0.0.0/8"), prefix("11.0.0.0/8")].into_iter()));
    let usage = pair.dir.usage();
    assert_eq!((usage.slots, usage.sets, usage.cam_rows), (2 << 11, 0, 0));
    // A prefix that conflicts takes one row and one entry, however many slots it covers.
    pair.apply(vid(2), &[(prefix("10.0.0.0/9"), Some(hop(9)))]).unwrap();
    assert_eq!(pair.dir.usage().cam_rows, 1);
    // The entry is at the first unused slot; no network reads it by its own slot.
    let (of, block, index) = pair.dir.cam().next().unwrap();
    assert_eq!((of, block, index), (vid(2), prefix("10.0.0.0/9"), 0));
    pair.check(&[0, 1 << 24]);
    // The slot gets an owner: its indirect entry moves.
    pair.apply(vid(3), &[(prefix("0.0.0.0/16"), Some(hop(3)))]).unwrap();
    assert_eq!(pair.dir.cam().next().unwrap().2, 8);
    pair.check(&[0, 0x0a00_0001, 0x0a80_0000]);
    // The owner is removed: the conflicting network takes over its slots, and the row is free.
    pair.apply(vid(1), &[(prefix("10.0.0.0/8"), None)]).unwrap();
    assert_eq!(pair.dir.usage().cam_rows, 0);
    pair.check(&[0x0a00_0001, 0x0a80_0000]);
}

#[test]
fn limits_are_exact_and_named() {
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
    // A set that was freed can be used again.
    dir.apply(vid(1), &[(prefix("10.1.0.0/24"), None)]).unwrap();
    dir.apply(vid(2), &set("12.0.0.0/32")).unwrap();
    assert_eq!(dir.lookup(vid(2), 0x0c00_0000).reads, 2);

    // If one network uses all of bank 1, there is no entry for a conflicting route of another.
    let mut dir = Dir::new(DirLimits { sets: 1, cam_rows: 9 });
    (1..=2).for_each(|id| dir.add_network(vid(id)).unwrap());
    dir.apply(vid(1), &set("0.0.0.0/0")).unwrap();
    let full = dir.apply(vid(2), &set("10.0.0.0/8")).unwrap_err();
    assert_eq!(full, DirError::Bank { vid: vid(2), needed: SLOTS + 1 });
    assert_eq!(dir.lookup(vid(2), 0x0a00_0000).word, NextHop::NONE_WORD);
    assert_eq!(dir.lookup(vid(1), 0x0a00_0000).word, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A check of several changes says what applying them says, and changes nothing; also where a network is
    /// new.
    #[test]
    fn a_check_foretells(before in any_steps(), after in any_steps(), sets in 0u32..8, cam_rows in 0usize..6) {
        let mut dir = Dir::new(DirLimits { sets, cam_rows });
        let changes = |steps: &[Step]| -> Vec<(Vid, Vec<Change<u32>>)> {
            let of = |changes: &[(Prefix4, Option<u16>)]| changes.iter().map(|(at, to)| (*at, to.map(hop))).collect();
            steps.iter().map(|(network, changes)| (vid(*network), of(changes))).collect()
        };
        for (network, changes) in changes(&before) {
            if !dir.has(network) {
                dir.add_network(network).unwrap();
            }
            let _ = dir.apply(network, &changes);
        }
        // From the answers to those of a copy, which has seen no check.
        let mut other = dir.clone();
        let after = changes(after.get(..6).unwrap_or(&after));
        let foretold = dir.check(&after);
        let applied = after.iter().try_for_each(|(network, changes)| {
            if !other.has(*network) {
                other.add_network(*network).unwrap();
            }
            other.apply(*network, changes)
        });
        prop_assert_eq!(foretold, applied);
        let mut fresh = before.iter().map(|(network, _)| vid(*network)).collect::<Vec<_>>();
        fresh.dedup();
        prop_assert!((1..=NETWORKS).map(vid).all(|network| dir.has(network) == fresh.contains(&network)));
        if applied.is_ok() {
            for (network, changes) in &after {
                if !dir.has(*network) {
                    dir.add_network(*network).unwrap();
                }
                dir.apply(*network, changes).unwrap();
            }
            prop_assert!(dir.bank1() == other.bank1() && dir.bank2() == other.bank2());
        }
    }

    /// What a network's removal would free is what it frees.
    #[test]
    fn accounts_equal_a_removal(steps in any_steps()) {
        let mut pair = Pair::new(DirLimits { sets: 1000, cam_rows: 1000 });
        for (network, changes) in &steps {
            let changes: Vec<Change<u32>> = changes.iter().map(|(at, to)| (*at, to.map(hop))).collect();
            pair.apply(vid(*network), &changes).unwrap();
        }
        for id in 1..=NETWORKS {
            let mut without = pair.dir.clone();
            without.remove_network(vid(id)).unwrap();
            let freed = pair.dir.usage().words() - without.usage().words();
            prop_assert_eq!(pair.dir.words_of(vid(id)).1, freed);
            prop_assert_eq!(pair.dir.routes_of(vid(id)), pair.oracles[&vid(id)].iter().count());
        }
    }
}

/// A table that is far too large is refused before its sets are computed, which would take gigabytes.
#[test]
fn a_large_table_is_refused_early() {
    let mut dir = Dir::new(DirLimits::default());
    dir.add_network(vid(1)).unwrap();
    let all: Vec<Change<u32>> =
        (0..1 << 19).map(|slot: u32| (Prefix4::containing(slot << 13 | 1, 32), Some(hop(1)))).collect();
    let refused = dir.check(&[(vid(1), all.clone())]);
    assert_eq!(refused, Err(DirError::Sets { vid: vid(1), needed: 1 << 19, max: 64 }));
    assert_eq!(dir.apply(vid(1), &all), refused);
    assert_eq!((dir.usage(), dir.routes_of(vid(1))), (DirUsage::default(), 0));
}
