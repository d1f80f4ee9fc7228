//! Exact match of (port, MAC): a hash table with buckets of one cache line, at most half full, built once.
//!
//! A key has the MAC in the low 48 bits, first byte lowest, and the port above it. If a bucket is full, keys
//! go to the next one, so a miss ends at the first bucket with an empty way. At half load, nearly every
//! lookup reads only one bucket.

use hue_tables::Vid;
use hue_wire::Mac;

use crate::types::{PortId, Target};

const WAYS: usize = 4;
/// Not a valid key: no (port, MAC) has bits above 55.
const EMPTY: u64 = u64::MAX;
const MAC_BITS: u64 = (1 << 48) - 1;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Bucket {
    keys: [u64; WAYS],
    targets: [Target; WAYS],
}

/// The target of an empty key; never returned.
const NO_TARGET: Target = match Vid::new(1) {
    Some(vid) => Target { vid, vport: 0 },
    None => unreachable!(),
};
const VACANT: Bucket = Bucket { keys: [EMPTY; WAYS], targets: [NO_TARGET; WAYS] };

/// The hash table.
#[derive(Clone, Debug)]
pub struct MacTable {
    /// The number of buckets is a power of two, at least 2.
    buckets: Box<[Bucket]>,
    shift: u32,
}

/// Key of a frame, from its first eight bytes.
#[inline(always)]
pub fn frame_key(port: PortId, head: [u8; 8]) -> u64 {
    u64::from_le_bytes(head) & MAC_BITS | u64::from(port.get()) << 48
}

/// Key of a row.
pub fn row_key(port: PortId, mac: Mac) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    frame_key(port, [a, b, c, d, e, f, 0, 0])
}

impl MacTable {
    /// Builds a table of distinct keys.
    pub fn new(rows: &[(u64, Target)]) -> Self {
        let buckets = (rows.len().div_ceil(WAYS / 2)).next_power_of_two().max(2);
        let mut table =
            Self { buckets: vec![VACANT; buckets].into_boxed_slice(), shift: 64 - buckets.trailing_zeros() };
        for (key, target) in rows {
            table.insert(*key, *target);
        }
        table
    }

    #[inline(always)]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Half of the ways stay empty, so the loop ends.
    fn insert(&mut self, key: u64, target: Target) {
        let mask = self.buckets.len() - 1;
        let mut index = self.home(key);
        loop {
            let bucket = &mut self.buckets[index & mask];
            if let Some(way) = bucket.keys.iter().position(|found| *found == EMPTY) {
                bucket.keys[way] = key;
                bucket.targets[way] = target;
                return;
            }
            index += 1;
        }
    }

    /// The target of a key. Compares all ways without a branch, because a branch on the matching way would be
    /// unpredictable.
    #[inline(always)]
    pub fn get(&self, key: u64) -> Option<Target> {
        let mut index = self.home(key);
        while let Some(bucket) = self.buckets.get(index) {
            let keys = &bucket.keys;
            let way = if keys[1] == key { 1 } else { 0 };
            let way = if keys[2] == key { 2 } else { way };
            let way = if keys[3] == key { 3 } else { way };
            if keys[way] == key {
                return Some(bucket.targets[way]);
            }
            if keys[WAYS - 1] == EMPTY {
                return None;
            }
            index = if index + 1 < self.buckets.len() { index + 1 } else { 0 };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(number: usize) -> Target {
        Target { vid: Vid::new(number as u16 % 4095 + 1).unwrap(), vport: (number / 4095) as u16 }
    }

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    #[test]
    fn the_fullest_table_finds_all_keys() {
        let rows: Vec<_> = (0..crate::ROWS_MAX).map(|n| ((n as u64) << 1, target(n))).collect();
        let table = MacTable::new(&rows);
        for (key, target) in &rows {
            assert_eq!(table.get(*key), Some(*target));
            assert_eq!(table.get(key | 1), None);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(keys in prop::collection::btree_set(0u64..1 << 12, 0..300), misses in prop::collection::vec(0u64..1 << 12, 50)) {
            let rows: Vec<_> = keys.iter().enumerate().map(|(n, key)| (key << 44, target(n))).collect();
            let table = MacTable::new(&rows);
            for (key, target) in &rows {
                prop_assert_eq!(table.get(*key), Some(*target));
            }
            for key in misses.iter().filter(|key| !keys.contains(key)) {
                prop_assert_eq!(table.get(key << 44), None);
            }
        }
    }
}
