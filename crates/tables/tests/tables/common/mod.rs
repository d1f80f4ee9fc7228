//! Shared by the table tests: real tables, and the comparison with the oracle.
#![allow(dead_code)] // each test file uses its part

use std::io::Read;
use std::str::FromStr;

use hue_tables::{Dag, Key, NextHop, Oracle, Prefix, Vid};

/// A small deterministic generator (xorshift64*): a printed seed replays a test.
pub struct Random(pub u64);

impl Random {
    /// Creates a generator with the seed from `HUEPLANE_SEED` or a fixed one, and prints the seed.
    pub fn seeded(test: &str) -> Self {
        let seed = std::env::var("HUEPLANE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0x5eed_0001);
        println!("{test}: HUEPLANE_SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }

    pub fn key<K: Key>(&mut self) -> K {
        K::from_bits(u128::from(self.next()) << 64 | u128::from(self.next()))
    }
}

/// Content of an .xz file of the data folder; `None` if it is missing.
pub fn bytes(name: &str) -> Option<Vec<u8>> {
    let file = std::fs::File::open(hue_testdata::path(name)?).unwrap();
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(file, true).read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

/// As [`bytes`], as text.
pub fn data(name: &str) -> Option<String> {
    bytes(name).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Prefixes of a table file (the first column).
pub fn prefixes<K: Key>(text: &str) -> Vec<Prefix<K>> {
    text.lines().map(|line| Prefix::from_str(line.split_whitespace().next().unwrap()).unwrap()).collect()
}

/// FNV-1a, 32 bits.
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

/// Next hop of a route in network `n`: fnv1a(first 20 bits of the prefix, n) mod 8.
pub fn hop<K: Key>(prefix: Prefix<K>, n: u32) -> NextHop {
    let first = (prefix.addr().to_bits() >> 108) as u32;
    let bytes = [first.to_be_bytes(), n.to_be_bytes()].concat();
    NextHop::new((fnv1a(&bytes) % 8) as u16).unwrap()
}

/// Compares lookups of `samples` keys (uniform, and close to `near`), single and batched, with the oracle.
/// Returns the first key that differs.
pub fn compare<K: Key>(
    dag: &Dag,
    vid: Vid,
    oracle: &Oracle<K>,
    near: &[Prefix<K>],
    samples: usize,
    random: &mut Random,
) -> Result<(), K> {
    let mut keys = Vec::with_capacity(samples);
    while keys.len() < samples {
        if near.is_empty() || random.below(3) == 0 {
            keys.push(random.key());
            continue;
        }
        let prefix = near[random.below(near.len())];
        let inside = random.key::<K>().to_bits()
            & !(u128::MAX.checked_shl(128 - u32::from(prefix.len())).unwrap_or(0));
        keys.extend([prefix.addr(), prefix.last(), K::from_bits(prefix.addr().to_bits() | inside)]);
        keys.extend(prefix.last().next());
    }
    let mut reader = dag.reader().unwrap();
    let guard = reader.pin();
    let mut words = vec![0; keys.len()];
    guard.lookup_batch(&vec![vid; keys.len()], &keys, &mut words);
    for (key, word) in keys.into_iter().zip(words) {
        let expected = oracle.lookup(key).map(|(_, hop)| hop);
        if guard.lookup(vid, key) != expected || NextHop::new(word) != expected {
            return Err(key);
        }
    }
    Ok(())
}
