//! Cuckoo hash with four banks: computes where keys are stored in the card's exact-match table
//! (`rtl/tables/hue_exact_table.sv`).
//!
//! Flow: keys → **cuckoo** → places and moves → the card's driver, which writes the rows. Each key has one
//! possible place in each bank, which depends only on the key. If all four places of a new key are occupied,
//! keys move along the shortest path to a free place. Moves are listed so that every key is written to its
//! new place before its old place is overwritten. Deterministic: the same calls give the same places.
//!
//! Source: Pagh, Rodler, "Cuckoo hashing", 2004; Fotakis et al., "Space efficient hash tables with worst case
//! constant access time", 2005 (more than two banks: four fill to 97 % on average). Hash functions:
//! `rtl/tables/hue_exact_pkg.sv`.

use std::collections::HashMap;

/// Number of banks.
pub const BANKS: u32 = 4;
/// Width of an index into a bank, in bits: minimum and maximum.
const INDEX_BITS: std::ops::RangeInclusive<u32> = 8..=12;
/// Most places that an insertion examines before it rejects the key.
pub const PROBES_MAX: usize = 1024;
/// Hash polynomials: for each index width, one for each bank.
const POLYNOMIALS: [[u32; BANKS as usize]; 5] = [
    [0x11d, 0x177, 0x1f3, 0x169],
    [0x211, 0x259, 0x331, 0x299],
    [0x409, 0x40f, 0x50d, 0x7f9],
    [0x805, 0x925, 0x88d, 0x82d],
    [0x1053, 0x145b, 0x104d, 0x146b],
];

/// A row to write: `key` is stored at `place`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// `bank * rows per bank + index`.
    pub place: u32,
    /// The key.
    pub key: u64,
}

/// The table: the place of every key.
#[derive(Clone, Debug, Default)]
pub struct Cuckoo {
    index_bits: u32,
    places: Vec<Option<u64>>,
    at: HashMap<u64, u32>,
}

impl Cuckoo {
    /// Creates an empty table with `rows` rows; a table with 0 rows stores no key. Returns `None` if no card
    /// has a table of this size.
    #[must_use]
    pub fn new(rows: u32) -> Option<Self> {
        let index_bits = (rows / BANKS).checked_ilog2().unwrap_or_default();
        is_size(rows).then(|| Self { index_bits, places: vec![None; rows as usize], at: HashMap::new() })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.places.len()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The place of a key.
    #[must_use]
    pub fn place(&self, key: u64) -> Option<u32> {
        self.at.get(&key).copied()
    }

    /// The key at a place.
    #[must_use]
    pub fn key(&self, place: u32) -> Option<u64> {
        self.places.get(place as usize).copied().flatten()
    }

    /// All keys, in arbitrary order.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.at.keys().copied()
    }

    /// Stores a key. Appends the rows to write to `moves`, in order. Returns `false`, without a change, if no
    /// free place was found.
    pub fn insert(&mut self, key: u64, moves: &mut Vec<Placed>) -> bool {
        if self.at.contains_key(&key) {
            return true;
        }
        // The examined places. Each has the index of the place whose key can move there; `None` for the new
        // key's own places.
        let mut probed: Vec<(u32, Option<usize>)> = Vec::new();
        for place in self.places_of(key) {
            probe(&mut probed, place, None);
        }
        let mut next = 0;
        while let Some(&(place, _)) = probed.get(next) {
            let Some(there) = self.key(place) else {
                self.shift(&probed, next, key, moves);
                return true;
            };
            if probed.len() < PROBES_MAX {
                for other in self.places_of(there) {
                    probe(&mut probed, other, Some(next));
                }
            }
            next += 1;
        }
        false
    }

    /// Moves keys along the path that ends in a free place, starting at its end, and stores `key` at its
    /// start.
    fn shift(&mut self, probed: &[(u32, Option<usize>)], end: usize, key: u64, moves: &mut Vec<Placed>) {
        let mut at = end;
        while let Some(&(place, from)) = probed.get(at) {
            let before = from.and_then(|from| probed.get(from)).and_then(|(place, _)| self.key(*place));
            let key = before.unwrap_or(key);
            self.put(place, key);
            moves.push(Placed { place, key });
            let Some(from) = from else { return };
            at = from;
        }
    }

    fn put(&mut self, place: u32, key: u64) {
        if let Some(slot) = self.places.get_mut(place as usize) {
            *slot = Some(key);
            self.at.insert(key, place);
        }
    }

    /// Removes a key and returns its place.
    pub fn remove(&mut self, key: u64) -> Option<u32> {
        let place = self.at.remove(&key)?;
        if let Some(slot) = self.places.get_mut(place as usize) {
            *slot = None;
        }
        Some(place)
    }

    /// The possible places of a key, one in each bank; none in a table with 0 rows.
    fn places_of(&self, key: u64) -> impl Iterator<Item = u32> + use<> {
        let bits = self.index_bits;
        (0..BANKS).filter_map(move |bank| Some(bank << bits | index_of(bits, bank, key)?))
    }
}

/// Whether a card can have a table with this number of rows.
#[must_use]
pub fn is_size(rows: u32) -> bool {
    rows == 0 || INDEX_BITS.into_iter().any(|bits| rows == BANKS << bits)
}

fn probe(probed: &mut Vec<(u32, Option<usize>)>, place: u32, from: Option<usize>) {
    if probed.iter().all(|(other, _)| *other != place) {
        probed.push((place, from));
    }
}

/// Index of a key in a bank with indices of this width: the remainder of the key, as a polynomial, divided by
/// the bank's polynomial. Returns `None` if no card has such a bank.
#[must_use]
pub fn index_of(index_bits: u32, bank: u32, key: u64) -> Option<u32> {
    let row = index_bits.checked_sub(*INDEX_BITS.start())?;
    let polynomial = *POLYNOMIALS.get(row as usize)?.get(bank as usize)?;
    let fold = |rest: u64, bit: u32| match rest >> bit & 1 {
        0 => rest,
        _ => rest ^ u64::from(polynomial) << (bit - index_bits),
    };
    Some((index_bits..u64::BITS).rev().fold(key, fold) as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    /// A model of the card: its rows, and how it looks up a key.
    struct Card {
        bits: u32,
        rows: HashMap<u32, (u64, u16)>,
    }

    impl Card {
        fn lookup(&self, key: u64) -> Option<u16> {
            let place = |bank| bank << self.bits | index_of(self.bits, bank, key).unwrap();
            let mut rows = (0..BANKS).filter_map(|bank| self.rows.get(&place(bank)));
            rows.find(|(held, _)| *held == key).map(|(_, says)| *says)
        }
    }

    fn key(port: u8, mac: u64) -> u64 {
        mac << 3 | u64::from(port)
    }

    #[test]
    fn keys_are_at_the_places_the_card_reads() {
        // The first values are those in rtl/tables/hue_exact_pkg.sv.
        let key_1 = key(5, 0x0200_0000_0194);
        assert_eq!(key_1, 0x1000_0000_0ca5);
        let all = |bits, key| [0, 1, 2, 3].map(|bank| index_of(bits, bank, key).unwrap());
        assert_eq!(all(9, key_1), [0x1b2, 0x1f7, 0x15c, 0x09b]);
        assert_eq!(all(8, key_1), [0xd7, 0xbf, 0x36, 0xfa]);
        assert_eq!(all(12, key_1), [0x1da, 0x41b, 0xcb0, 0xc6b]);
        let key_2 = key(2, 0x0200_c0a8_0a01);
        assert_eq!(all(9, key_2), [0x108, 0x1da, 0x14c, 0x0ad]);
        assert_eq!(all(10, key_2), [0x12a, 0x31c, 0x021, 0x26b]);
        assert_eq!(all(11, key_2), [0x093, 0x4b5, 0x7c3, 0x294]);
        assert!(index_of(7, 0, 0).is_none() && index_of(13, 0, 0).is_none() && index_of(9, 4, 0).is_none());
    }

    #[test]
    fn unsupported_table_sizes_are_rejected() {
        for rows in [1, 4, 512, 1000, 2047, 2049, 32768, u32::MAX] {
            assert!(Cuckoo::new(rows).is_none(), "{rows}");
        }
        for rows in [1024, 2048, 16384] {
            assert_eq!(Cuckoo::new(rows).unwrap().rows(), rows as usize);
        }
        let mut none = Cuckoo::new(0).unwrap();
        assert!(!none.insert(1, &mut Vec::new()) && none.is_empty());
    }

    /// Small keys differ in a few adjacent bits, as consecutive MAC addresses do.
    #[test]
    fn consecutive_keys_do_not_collide() {
        for bits in INDEX_BITS {
            for bank in 0..BANKS {
                for shift in [0, 3, 11, 30] {
                    let places: HashSet<_> =
                        (0..1u64 << bits).map(|n| index_of(bits, bank, n << shift)).collect();
                    assert_eq!(places.len(), 1 << bits, "{bits} bits, bank {bank}");
                }
            }
        }
    }

    #[test]
    fn a_full_table_rejects_a_key_unchanged() {
        let mut table = Cuckoo::new(1024).unwrap();
        let mut refused = 0;
        for n in 0..2000u64 {
            let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13;
            let (before, mut moves) = (table.clone(), Vec::new());
            if !table.insert(key, &mut moves) {
                assert!(moves.is_empty() && table.places == before.places && table.at == before.at);
                refused += 1;
            }
        }
        assert!(table.len() > 980 && refused == 2000 - table.len(), "{} keys", table.len());
        // Removing a key makes room.
        let gone = table.keys().min().unwrap();
        assert!(table.remove(gone).is_some() && table.insert(gone, &mut Vec::new()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any 1,024 addresses fit into 2,048 rows.
        #[test]
        fn a_half_full_table_accepts_every_address(
            macs in prop::collection::hash_set((0u8..4, 0u64..1 << 48), 1024),
        ) {
            let mut table = Cuckoo::new(2048).unwrap();
            for (port, mac) in macs {
                prop_assert!(table.insert(key(port, mac), &mut Vec::new()));
            }
        }

        /// After each single write, every stored key is found; at the end, each has its latest value.
        #[test]
        fn every_key_is_found_after_each_write(
            seed: u64, base in 0u64..1 << 40,
            changes in prop::collection::vec((0u64..1400, any::<bool>()), 0..3000),
        ) {
            let mut table = Cuckoo::new(1024).unwrap();
            let mut card = Card { bits: 8, rows: HashMap::new() };
            let mut told: HashMap<u64, u16> = HashMap::new();
            for (number, (n, comes)) in (0u16..).zip(changes) {
                // Half of the keys are consecutive, half are spread.
                let key = if n % 2 == 0 { base + n } else { (n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13 };
                if comes {
                    let mut moves = Vec::new();
                    if table.insert(key, &mut moves) {
                        told.entry(key).or_insert(number);
                    }
                    for Placed { place, key: moved } in moves {
                        card.rows.insert(place, (moved, told[&moved]));
                        for (other, says) in told.iter().filter(|(other, _)| **other != key) {
                            prop_assert!(number % 64 != 0 || card.lookup(*other) == Some(*says));
                        }
                    }
                } else {
                    told.remove(&key);
                    if let Some(place) = table.remove(key) {
                        card.rows.remove(&place);
                    }
                }
                prop_assert_eq!(card.lookup(key), told.get(&key).copied());
            }
            prop_assert_eq!(table.len(), told.len());
            for (key, says) in told {
                prop_assert_eq!(card.lookup(key), Some(says));
            }
        }
    }
}
