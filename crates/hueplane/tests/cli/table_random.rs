//! Compares `table lookup` with a search of all routes, for random tables of both address families that share
//! many prefixes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::Scratch;

/// A prefix: whether it is IPv4, its length, and its first address in 128 bits (IPv4 in the upper 32).
type Key = (bool, u8, u128);

fn text_of(address: u128, four: bool) -> String {
    if four {
        IpAddr::from(((address >> 96) as u32).to_be_bytes())
    } else {
        IpAddr::from(address.to_be_bytes())
    }
    .to_string()
}

fn cut(address: u128, len: u8) -> u128 {
    if len == 0 { 0 } else { address & (u128::MAX << (128 - len)) }
}

/// Addresses from a small set, so that prefixes nest and queries match.
fn address() -> impl Strategy<Value = u128> {
    (0u128..4, 0u128..4, 0u128..4, any::<u128>(), any::<bool>()).prop_map(|(a, b, c, low, wild)| {
        let high = (10 + a) << 120 | b << 113 | c << 100;
        if wild { high | (low >> 24) } else { high }
    })
}

fn prefix() -> impl Strategy<Value = Key> {
    (any::<bool>(), address(), 0u8..=128, 0u8..6).prop_map(|(four, address, len, shape)| {
        let max = if four { 32 } else { 128 };
        let len = if shape == 0 { len % 9 } else { len % (max + 1) };
        (four, len, cut(address, len))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lookups_equal_a_search_of_all_routes(
        common in proptest::collection::vec((prefix(), 0u8..5), 0..40),
        tables in proptest::collection::vec(proptest::collection::vec((prefix(), 0u8..5), 0..30), 1..5),
        encoding in prop_oneof![Just("dag64"), Just("dag36")],
        queries in proptest::collection::vec((0usize..4, any::<bool>(), address()), 1..200),
    ) {
        let dir = Scratch::new();
        let mut args: Vec<String> = ["table", "lookup", "--layout", "dag", "-o", "json", "--queries", "q.txt"].map(str::to_owned).to_vec();
        let mut maps: Vec<BTreeMap<Key, String>> = Vec::new();
        args.extend(["--encoding".to_owned(), encoding.to_owned()]);
        for (index, own) in tables.iter().enumerate() {
            let mut map = BTreeMap::new();
            let mut text = String::new();
            for ((four, len, address), hop) in common.iter().chain(own) {
                let hop = format!("hop{}", u32::from(*hop) + if index % 2 == 0 { 0 } else { 3 });
                text += &format!("{}/{len} {hop}\n", text_of(*address, *four));
                map.insert((*four, *len, *address), hop);
            }
            dir.write(&format!("{index}.txt"), text);
            args.extend(["--routes".to_owned(), format!("n{index}={index}.txt")]);
            maps.push(map);
        }
        let mut text = String::new();
        let mut want = Vec::new();
        for (network, four, address) in &queries {
            let network = network % maps.len();
            let shown = text_of(*address, *four);
            text += &format!("n{network} {shown}\n");
            let address = if *four { cut(*address, 32) } else { *address };
            let best = maps[network]
                .iter()
                .filter(|((family, len, prefix), _)| family == four && cut(address, *len) == *prefix)
                .max_by_key(|((_, len, _), _)| *len);
            let prefix = best.map(|((family, len, prefix), _)| format!("{}/{len}", text_of(*prefix, *family)));
            want.push(json!({"network": format!("n{network}"), "address": shown, "prefix": prefix,
                "next_hop": best.map(|(_, hop)| hop)}));
        }
        dir.write("q.txt", text);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        prop_assert_eq!(dir.hueplane_with(&args, "").ok().json(), Value::from(want));
    }
}
