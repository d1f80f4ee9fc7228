//! Real tables: the 2026 Internet table with a day of updates, and the tables of 21 routers in one store.
//!
//! By default, a sample of the day is replayed; with `HUEPLANE_FULL=1` (`make test-full`) the entire day.

use std::collections::HashMap;
use std::io::Read;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Random, compare, data, hop, prefixes};
use hue_tables::dag36::{self, Dag36};
use hue_tables::{Change, Dag, Key, Limits, NextHop, Oracle, Prefix, Vid};

const SAMPLE: usize = 40_000;

fn replay<K: Key>(table: &str, mutations: &str) {
    let (Some(table), Some(mutations)) = (data(table), data(mutations)) else { return };
    let full = hue_testdata::full();
    let table = prefixes::<K>(&table);
    let (vid, other) = (Vid::new(1).unwrap(), Vid::new(2).unwrap());
    let mut dag = Dag::new(Limits::default()).unwrap();
    let mut oracle = Oracle::default();
    for network in [vid, other] {
        dag.add_network::<K>(network).unwrap();
        let changes: Vec<Change<K>> = table.iter().map(|p| (*p, Some(hop(*p, 1)))).collect();
        dag.apply(network, &changes).unwrap();
    }
    table.iter().for_each(|p| {
        oracle.insert(*p, hop(*p, 1));
    });
    let untouched = oracle.clone();
    dag.enable_deltas();
    let mut card = Dag36::new(dag36::CARD_WORDS);
    let mut random = Random::seeded("replay");
    let mutations: Vec<(bool, Prefix<K>)> = mutations
        .lines()
        .take(if full { usize::MAX } else { SAMPLE })
        .map(|line| (line.starts_with('A'), Prefix::from_str(&line[2..]).unwrap()))
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Meanwhile, a reader looks up a network that does not change, and must see no effect.
        let mut reader = dag.reader().unwrap();
        let (table, untouched, stop) = (&table, &untouched, &stop);
        let beside = scope.spawn(move || {
            let mut random = Random(3);
            let mut count = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let keys: Vec<K> = (0..256).map(|_| table[random.below(table.len())].addr()).collect();
                let mut out = [0; 256];
                reader.pin().lookup_batch(&[other; 256], &keys, &mut out);
                let at = random.below(256);
                assert_eq!(NextHop::new(out[at]), untouched.lookup(keys[at]).map(|(_, hop)| hop));
                count += 256;
            }
            count
        });
        let mut rest = &mutations[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at((1 + random.below(400)).min(rest.len()));
            rest = later;
            let changes: Vec<Change<K>> = now.iter().map(|(a, p)| (*p, a.then(|| hop(*p, 2)))).collect();
            dag.apply(vid, &changes).unwrap();
            for (prefix, hop) in &changes {
                match hop {
                    Some(hop) => oracle.insert(*prefix, *hop),
                    None => oracle.remove(*prefix),
                };
            }
            for delta in dag.take_deltas() {
                card.apply(&delta).unwrap();
            }
            card.reclaim();
            if random.below(20) == 0 {
                let near: Vec<_> = changes.iter().map(|change| change.0).collect();
                assert_eq!(compare(&dag, vid, &oracle, &near, 500, &mut random), Ok(()));
                for _ in 0..500 {
                    let key = near[random.below(near.len())].last();
                    let expected = NextHop::word(oracle.lookup(key).map(|(_, hop)| hop));
                    assert_eq!(card.lookup(vid, key).0, expected, "card image at {}", key.to_ip());
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("{} changes, {} concurrent lookups", mutations.len(), beside.join().unwrap());
    });
    assert_eq!(dag.account(vid).unwrap().routes, oracle.len());
    assert_eq!(compare(&dag, vid, &oracle, &table, 20_000, &mut random), Ok(()));
    // Checks the checker: it must detect one wrong next hop.
    let planted = table[random.below(table.len())];
    oracle.insert(Prefix::containing(planted.addr(), K::BITS), NextHop::new(999).unwrap());
    assert!(compare(&dag, vid, &oracle, &[planted], 500, &mut random).is_err(), "a planted error was missed");
}

#[test]
fn a_day_of_the_ipv4_internet() {
    replay::<u32>("rib/ris-as3333-2026-05-11.v4.txt.xz", "updates/ris-as3333-2026-05-11.mutations.v4.txt.xz");
}

#[test]
fn a_day_of_the_ipv6_internet() {
    replay::<u128>(
        "rib/ris-as3333-2026-05-11.v6.txt.xz",
        "updates/ris-as3333-2026-05-11.mutations.v6.txt.xz",
    );
}

/// Routes of a router's FIB: the prefix, and the second column as a number.
fn fib(text: &str) -> Vec<Change<u32>> {
    let mut numbers = HashMap::new();
    let lines = text.lines().map(|line| {
        let mut columns = line.split_whitespace();
        let prefix = columns.next().unwrap().parse().unwrap();
        let next = numbers.len() as u16;
        (prefix, NextHop::new(*numbers.entry(columns.next().unwrap_or("")).or_insert(next)))
    });
    lines.collect()
}

/// The contents of the card's two SRAM banks: 22 networks, real tables, 16-bit next hops.
#[test]
fn the_internet_and_21_routers_fit_the_card() {
    let (Some(table), Some(archive)) = (
        data("rib/ris-as3333-2026-05-11.v4.txt.xz"),
        crate::common::bytes("vrf/internet2-9x+stanford-12x-router-fibs.tar.xz"),
    ) else {
        return;
    };
    let mut networks =
        vec![prefixes::<u32>(&table).into_iter().map(|p| (p, Some(hop(p, 1)))).collect::<Vec<_>>()];
    for entry in tar::Archive::new(&archive[..]).entries().unwrap() {
        let mut text = String::new();
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            entry.read_to_string(&mut text).unwrap();
            networks.push(fib(&text));
        }
    }
    assert_eq!(networks.len(), 22);
    let mut dag = Dag::new(Limits::default()).unwrap();
    for (n, routes) in networks.iter().enumerate() {
        let vid = Vid::new(n as u16 + 1).unwrap();
        dag.add_network::<u32>(vid).unwrap();
        dag.apply(vid, routes).unwrap();
    }
    dag.enable_deltas();
    let mut card = Dag36::new(dag36::CARD_WORDS);
    for delta in dag.take_deltas() {
        card.apply(&delta).expect("it fits");
    }
    assert_eq!(card.words_used(), dag36::words_total(&dag));
    println!("22 networks: {} of {} words", card.words_used(), dag36::CARD_WORDS);
    let mut random = Random::seeded("the_internet_and_21_routers_fit_the_card");
    let (mut reads, mut most, samples) = (0, 0, 200_000);
    let mut reader = dag.reader().unwrap();
    let guard = reader.pin();
    for _ in 0..samples {
        let n = random.below(networks.len());
        let (prefix, _) = networks[n][random.below(networks[n].len())];
        let key = prefix.addr()
            | (random.next() as u32 & !u32::MAX.checked_shl(32 - u32::from(prefix.len())).unwrap_or(0));
        let vid = Vid::new(n as u16 + 1).unwrap();
        let (word, read) = card.lookup(vid, key);
        assert_eq!(NextHop::new(word), guard.lookup(vid, key), "network {vid} at {}", key.to_ip());
        (reads, most) = (reads + u64::from(read), most.max(read));
    }
    println!("words a lookup: {:.2} on average, {most} at most", reads as f64 / f64::from(samples));
    assert!(most <= 12, "four levels of at most three words");
}
