//! Compares the store with the oracle: random changes of several networks, both address families, limits,
//! accounts.

use crate::common::{Random, compare};
use hue_tables::{
    Change, Dag, Delta, Key, Limits, NextHop, Oracle, Prefix, Prefix4, Prefix6, TableError, TableId, Vid,
};
use proptest::prelude::*;

fn vid(id: u16) -> Vid {
    Vid::new(id).unwrap()
}

/// Prefixes that collide, nest, or are at the ends of the address space; next hops of every encoding.
fn change<K: Key>() -> impl Strategy<Value = Change<K>> {
    let few = proptest::collection::vec(prop_oneof![Just(0_u8), Just(255), Just(10), any::<u8>()], 16);
    let addr =
        prop_oneof![3 => few.prop_map(|b| u128::from_be_bytes(b.try_into().unwrap())), 1 => any::<u128>()];
    let hop = prop_oneof![4 => 0_u16..4, 1 => 250_u16..260, 1 => Just(65_534)];
    (addr, 0..=K::BITS, proptest::option::weighted(0.7, hop)).prop_map(|(addr, len, hop)| {
        (Prefix::containing(K::from_bits(addr), len), hop.and_then(NextHop::new))
    })
}

fn agree<K: Key>(batches: Vec<(u16, Vec<Change<K>>)>) -> Result<(), TestCaseError> {
    let mut dag = Dag::new(Limits { image_bytes_max: 64 << 20, ..Limits::default() }).unwrap();
    let mut oracles = vec![Oracle::default(); 3];
    for n in 0..3 {
        dag.add_network::<K>(vid(n + 1)).unwrap();
    }
    let mut random = Random(7);
    for (n, changes) in batches {
        dag.apply(vid(n + 1), &changes).unwrap();
        let oracle = &mut oracles[usize::from(n)];
        for (prefix, hop) in &changes {
            match hop {
                Some(hop) => oracle.insert(*prefix, *hop),
                None => oracle.remove(*prefix),
            };
        }
        let near: Vec<_> = changes.iter().map(|change| change.0).collect();
        // Compare every network: a change of one must not affect another.
        for (n, oracle) in oracles.iter().enumerate() {
            let same = compare(&dag, vid(n as u16 + 1), oracle, &near, 60, &mut random);
            prop_assert!(same.is_ok(), "network {} differs at {:?}", n + 1, same.map_err(|k| k.to_ip()));
        }
    }
    for (n, oracle) in oracles.iter().enumerate() {
        let mut routes: Vec<_> = dag.routes(vid(n as u16 + 1)).collect();
        let mut expected: Vec<_> = oracle.iter().collect();
        routes.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(routes, expected);
        prop_assert_eq!(dag.account(vid(n as u16 + 1)).unwrap().routes, oracle.len());
    }
    // After all routes are removed, nothing is left: no node was leaked or freed twice.
    for n in 0..3 {
        dag.remove_network(vid(n + 1)).unwrap();
    }
    prop_assert_eq!((dag.bytes_live(), dag.node_count()), (0, 0));
    Ok(())
}

fn batches<K: Key>() -> impl Strategy<Value = Vec<(u16, Vec<Change<K>>)>> {
    proptest::collection::vec((0_u16..3, proptest::collection::vec(change::<K>(), 1..12)), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn ipv4_agrees_with_the_oracle(batches in batches::<u32>()) {
        agree(batches)?;
    }

    #[test]
    fn ipv6_agrees_with_the_oracle(batches in batches::<u128>()) {
        agree(batches)?;
    }

    /// A full table rejects a change with an error that names it, and is unchanged.
    #[test]
    fn a_rejected_change_has_no_effect(batches in batches::<u32>()) {
        let mut dag = Dag::new(Limits { image_bytes_max: 8 << 10, ..Limits::default() }).unwrap();
        dag.add_network::<u32>(vid(1)).unwrap();
        let mut oracle = Oracle::default();
        let mut random = Random(9);
        for (_, changes) in batches {
            let before = dag.bytes_live();
            match dag.apply(vid(1), &changes) {
                Ok(()) => changes.iter().for_each(|(prefix, hop)| {
                    match hop {
                        Some(hop) => oracle.insert(*prefix, *hop),
                        None => oracle.remove(*prefix),
                    };
                }),
                Err(error) => {
                    let named = matches!(error, TableError::Full { bytes_max: 8_192, .. });
                    prop_assert!(named, "{}", error);
                    prop_assert_eq!(dag.bytes_live(), before);
                }
            }
            let near: Vec<_> = changes.iter().map(|change| change.0).collect();
            prop_assert_eq!(compare(&dag, vid(1), &oracle, &near, 60, &mut random), Ok(()));
        }
        let mut routes: Vec<_> = dag.routes(vid(1)).collect();
        let mut expected: Vec<_> = oracle.iter().collect();
        routes.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(routes, expected);
    }
}

#[test]
fn a_full_table_accepts_routes_after_withdrawals() {
    let mut dag = Dag::new(Limits { image_bytes_max: 16 << 10, ..Limits::default() }).unwrap();
    dag.add_network::<u32>(vid(1)).unwrap();
    let routes: Vec<_> = (0..400_u32)
        .map(|i| (Prefix::containing(i << 20 | i << 8, 24), NextHop::new(i as u16).unwrap()))
        .collect();
    let full = routes.iter().position(|(p, hop)| dag.insert(vid(1), *p, *hop).is_err());
    let full = full.expect("a limit is reached");
    let (last, hop) = routes[full - 1];
    for (prefix, hop) in &routes[..10] {
        assert_eq!(dag.remove(vid(1), *prefix).unwrap(), Some(*hop));
    }
    // Many more changes than the arena can hold: retired words are reused.
    for _ in 0..1000 {
        assert_eq!(dag.remove(vid(1), last).unwrap(), Some(hop));
        assert_eq!(dag.insert(vid(1), last, hop).unwrap(), None);
    }
}

/// A refused change of one network frees many small nodes. Where they were, there is room for another network's large ones.
#[test]
fn a_refused_change_of_a_network_leaves_room_for_others() {
    let mut dag = Dag::new(Limits { image_bytes_max: 64 << 10, ..Limits::default() }).unwrap();
    (1..=2).for_each(|n| dag.add_network::<u128>(vid(n)).unwrap());
    let hosts = |count: u128| -> Vec<Change<u128>> {
        let address = |n: u128| 0x2001_0db8 << 96 | n.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 16;
        (0..count).map(|n| (Prefix::containing(address(n), 128), NextHop::new(1))).collect()
    };
    let own = hosts(40);
    dag.apply(vid(1), &own).unwrap();
    // A node with children in all of its slots, which takes the largest block, comes and goes.
    let wide: Vec<Change<u128>> = (0..256_u128)
        .map(|n| (Prefix::containing(n << 120 | n << 112, 12), NextHop::new(n as u16)))
        .collect();
    let withdrawn: Vec<_> = wide.iter().map(|(prefix, _)| (*prefix, None)).collect();
    for round in 0..4 {
        for changes in [&wide, &withdrawn] {
            dag.apply(vid(1), changes).unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        assert!(matches!(dag.apply(vid(2), &hosts(3_000)), Err(TableError::Full { .. })));
        assert_eq!(dag.routes::<u128>(vid(1)).count(), own.len());
    }
}

#[test]
fn equal_networks_are_stored_once() {
    let mut dag = Dag::new(Limits::default()).unwrap();
    let routes: Vec<Change<u32>> = (0..5_000_u32)
        .map(|i| {
            (
                Prefix::containing(i.wrapping_mul(0x9e37_79b9), 16 + (i % 17) as u8),
                NextHop::new((i % 9) as u16),
            )
        })
        .collect();
    for n in 1..=3 {
        dag.add_network::<u32>(vid(n)).unwrap();
        dag.apply(vid(n), &routes).unwrap();
    }
    let accounts: Vec<_> = (1..=3).map(|n| dag.account(vid(n)).unwrap()).collect();
    for account in &accounts {
        assert_eq!(account.bytes_own, dag.bytes_live(), "all networks reach the same nodes");
        assert_eq!((account.bytes_marginal, account.bytes_shared), (0, account.bytes_own));
    }
    // One different route: network 2 adds the path to it, and its removal frees exactly that path.
    dag.insert::<u32>(vid(2), "10.0.0.0/8".parse().unwrap(), NextHop::new(500).unwrap()).unwrap();
    let (live, marginal) = (dag.bytes_live(), dag.account(vid(2)).unwrap().bytes_marginal);
    assert!(marginal > 0);
    dag.remove_network(vid(2)).unwrap();
    assert_eq!(live - dag.bytes_live(), marginal);
}

#[test]
fn misuse_is_an_error() {
    let mut dag = Dag::new(Limits { networks_max: 1, ..Limits::default() }).unwrap();
    let prefix: Prefix4 = "10.0.0.0/8".parse().unwrap();
    assert_eq!(dag.remove(vid(1), prefix), Err(TableError::UnknownNetwork(vid(1))));
    dag.add_network::<u32>(vid(1)).unwrap();
    assert_eq!(dag.add_network::<u32>(vid(1)), Err(TableError::DuplicateNetwork(vid(1))));
    assert_eq!(
        dag.add_network::<u32>(vid(2)),
        Err(TableError::TooManyNetworks { vid: vid(2), networks_max: 1 })
    );
    let readers: Vec<_> = std::iter::from_fn(|| dag.reader().ok()).collect();
    assert_eq!(readers.len(), hue_tables::epoch::READERS_MAX);
    assert_eq!(dag.reader().err(), Some(TableError::TooManyReaders));
}

#[test]
fn networks_with_keys_of_different_widths_share_a_store() {
    let mut dag = Dag::new(Limits::default()).unwrap();
    let (narrow, wide) = (vid(1), vid(2));
    let hop = |index| NextHop::new(index).unwrap();
    let (four, six): (Prefix4, Prefix6) = ("32.1.13.0/24".parse().unwrap(), "2001:d00::/24".parse().unwrap());
    dag.add_network::<u32>(narrow).unwrap();
    dag.insert(narrow, four, hop(7)).unwrap();
    let alone = dag.bytes_live();
    dag.add_network::<u128>(wide).unwrap();
    let has = |vid| (dag.has_table::<u32>(vid), dag.has_table::<u128>(vid), dag.has_network(vid));
    assert_eq!(
        [narrow, wide, vid(3)].map(has),
        [(true, false, true), (false, true, true), (false, false, false)]
    );
    // The first 24 bits and the next hop are equal, so the second table costs nothing.
    dag.insert(wide, six, hop(7)).unwrap();
    assert_eq!(dag.bytes_live(), alone);
    let long: Prefix6 = "2001:d00::1/128".parse().unwrap();
    dag.insert(wide, long, hop(8)).unwrap();
    let mut reader = dag.reader().unwrap();
    {
        let guard = reader.pin();
        assert_eq!(guard.lookup(narrow, 0x2001_0d05_u32), Some(hop(7)));
        assert_eq!(guard.lookup(wide, long.addr()), Some(hop(8)));
        assert_eq!(guard.lookup(wide, long.addr() + 1), Some(hop(7)));
        assert_eq!(guard.lookup(wide, 0x2001_0d05_u128), None, "short keys are not long ones");
    }
    // A call with the wrong width changes nothing.
    let before = (dag.bytes_live(), dag.routes::<u128>(wide).count(), dag.routes::<u32>(narrow).count());
    let error = TableError::Width { vid: wide, bits: 128, given: 32 };
    assert_eq!(dag.insert(wide, four, hop(9)), Err(error.clone()));
    assert_eq!(dag.apply_fitting(wide, &[(four, Some(hop(9)))]).err(), Some(error));
    assert_eq!(dag.remove(narrow, six), Err(TableError::Width { vid: narrow, bits: 32, given: 128 }));
    assert_eq!((dag.routes::<u32>(wide).count(), dag.route(wide, four)), (0, None));
    assert_eq!(
        (dag.bytes_live(), dag.routes::<u128>(wide).count(), dag.routes::<u32>(narrow).count()),
        before
    );
    dag.remove_network(wide).unwrap();
    assert_eq!(dag.bytes_live(), alone);
}

#[test]
fn a_network_may_have_a_table_of_each_width() {
    let mut dag = Dag::new(Limits::default()).unwrap();
    dag.enable_deltas();
    let (dual, other) = (vid(1), vid(2));
    let hop = |index| NextHop::new(index).unwrap();
    let (four, six): (Prefix4, Prefix6) = ("0.0.0.0/0".parse().unwrap(), "2001:db8::/32".parse().unwrap());
    dag.add_dual_network(dual).unwrap();
    assert_eq!(dag.add_dual_network(dual), Err(TableError::DuplicateNetwork(dual)));
    assert!(dag.has_table::<u32>(dual) && dag.has_table::<u128>(dual));
    dag.add_network::<u128>(other).unwrap();
    let none = dag.account(dual).unwrap();
    dag.insert(dual, four, hop(1)).unwrap();
    dag.insert(dual, six, hop(2)).unwrap();
    let mut reader = dag.reader().unwrap();
    {
        let guard = reader.pin();
        assert_eq!(guard.lookup(dual, 0x2001_0db8_u32), Some(hop(1)));
        assert_eq!(guard.lookup(dual, six.addr()), Some(hop(2)));
        assert_eq!(guard.lookup(dual, 1_u128), None, "a default route is of its own family");
        assert_eq!(guard.lookup(other, six.addr()), None, "another network");
        let mut words = [0; 3];
        guard.lookup_batch(&[dual; 3], &[six.addr(), 1, six.addr()], &mut words);
        assert_eq!(words, [2, NextHop::NONE_WORD, 2]);
    }
    // One account and one quota for both.
    let both = dag.account(dual).unwrap();
    assert_eq!((none.routes, both.routes), (0, 2));
    dag.set_quota(dual, Some(both.bytes_own)).unwrap();
    let more: Prefix6 = "2001:db9:1::/48".parse().unwrap();
    assert!(matches!(dag.insert(dual, more, hop(3)), Err(TableError::Quota { .. })));
    dag.remove(dual, six).unwrap();
    assert_eq!((dag.routes::<u32>(dual).count(), dag.routes::<u128>(dual).count()), (1, 0));
    // Followers have a root of each table.
    let roots = |deltas: Vec<Delta>| -> Vec<(TableId, bool)> {
        let root = |one: &Delta| {
            if let Delta::Root(table, top) = one { Some((*table, top.is_some())) } else { None }
        };
        deltas.iter().filter_map(root).collect()
    };
    let [narrow, wide] = TableId::all(dual);
    let new = [(narrow, true), (wide, true), (TableId::of::<u128>(other), true)];
    assert_eq!(roots(dag.take_deltas())[..3], new);
    dag.enable_deltas();
    assert_eq!(roots(dag.take_deltas()), new);
    dag.insert(dual, four, hop(3)).unwrap();
    assert_eq!(roots(dag.take_deltas()), [(narrow, true)], "the other table stays");
    dag.remove_network(dual).unwrap();
    assert_eq!(roots(dag.take_deltas()), [(narrow, false), (wide, false)]);
    let guard = reader.pin();
    assert_eq!((guard.lookup(dual, 1_u32), guard.lookup(dual, six.addr())), (None, None));
}

#[test]
fn a_dual_network_needs_room_for_both_tables() {
    let mut dag = Dag::new(Limits { networks_max: 1, ..Limits::default() }).unwrap();
    dag.add_dual_network(vid(1)).unwrap();
    assert!(matches!(dag.add_dual_network(vid(2)), Err(TableError::TooManyNetworks { .. })));
    let mut none = Dag::new(Limits { image_bytes_max: 0, ..Limits::default() }).unwrap();
    assert!(matches!(none.add_dual_network(vid(1)), Err(TableError::Full { .. })));
    assert!(!none.has_network(vid(1)) && none.bytes_live() == 0);
}

#[test]
fn words_wait_for_pinned_readers() {
    let mut dag = Dag::new(Limits::default()).unwrap();
    dag.add_network::<u32>(vid(1)).unwrap();
    let mut reader = dag.reader().unwrap();
    let guard = reader.pin();
    for i in 0..50_u32 {
        dag.insert(vid(1), Prefix::containing(i << 24, 24), NextHop::new(i as u16).unwrap()).unwrap();
    }
    assert!(dag.bytes_used() > dag.bytes_live(), "retired words are not free yet");
    drop(guard);
    dag.insert::<u32>(vid(1), "99.0.0.0/8".parse().unwrap(), NextHop::new(1).unwrap()).unwrap();
    dag.remove::<u32>(vid(1), "98.0.0.0/8".parse().unwrap()).unwrap();
    assert_eq!(dag.bytes_used(), dag.bytes_live());
}

#[test]
fn a_network_without_a_table_finds_nothing() {
    let dag = Dag::new(Limits::default()).unwrap();
    let mut reader = dag.reader().unwrap();
    let guard = reader.pin();
    let mut out = [7; 3];
    guard.lookup_batch(&[vid(1), vid(4095), vid(9)], &[0, u32::MAX, 5], &mut out);
    assert_eq!(out, [NextHop::NONE_WORD; 3]);
}
