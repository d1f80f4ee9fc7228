//! Lookup engines, which answer a stream of (network, key) lookups, and the streams.

use hue_tables::{Key, NextHop, Prefix, Vid};

use crate::rib::{Table, host_mask};
use crate::rng::Rng;

/// Keys past the end that a software-pipelined loop may prefetch for.
const TAIL: usize = 64;

/// Memory of an engine.
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    /// Bytes that lookups may read.
    pub lookup_bytes: u64,
    /// These, and the bytes for updates (rules, RIB, the updater's own structures).
    pub total_bytes: u64,
}

/// The source of destinations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destinations {
    /// A random route of the lookup's own network, a random address within it.
    Table,
    /// Any address (IPv6: any address of 2000::/3, the part in use).
    Uniform,
}

impl Destinations {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Uniform => "uniform",
        }
    }
}

/// A stream of lookups, in every form an engine may want it; `len` is a multiple of 64, `TAIL` more follow.
pub struct Queries<K> {
    /// Network of each lookup, from 0.
    pub nets: Vec<u16>,
    /// The same as ids, from 1.
    pub vids: Vec<Vid>,
    /// The key of each lookup.
    pub keys: Vec<K>,
    /// The keys as addresses in network order (IPv6 peers take these); empty for IPv4.
    pub bytes: Vec<[u8; 16]>,
}

impl<K: Key> Queries<K> {
    /// `n` lookups (rounded up to 64) over `tables`, a random network each.
    pub fn draw(tables: &[Table<K>], from: Destinations, n: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let total = n.next_multiple_of(64) + TAIL;
        let mut nets = Vec::with_capacity(total);
        let mut keys = Vec::with_capacity(total);
        for _ in 0..total {
            let net = rng.below(tables.len());
            let random = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
            let bits = match from {
                Destinations::Uniform if K::BITS == 32 => random,
                Destinations::Uniform => random >> 3 | 1 << 125,
                Destinations::Table => {
                    let prefix: Prefix<K> = tables[net].prefixes[rng.below(tables[net].len())];
                    prefix.addr().to_bits() | random & host_mask(prefix.len())
                }
            };
            nets.push(net as u16);
            keys.push(K::from_bits(bits));
        }
        Self::new(nets, keys)
    }

    fn new(nets: Vec<u16>, keys: Vec<K>) -> Self {
        let vids = nets.iter().map(|net| vid(*net)).collect();
        let bytes = match K::BITS {
            32 => Vec::new(),
            _ => keys.iter().map(|key| key.to_bits().to_be_bytes()).collect(),
        };
        Self { nets, vids, keys, bytes }
    }

    /// Lookups to make (the tail not counted).
    pub fn len(&self) -> usize {
        self.keys.len() - TAIL
    }
}

/// The id of network `net` (counted from 0).
pub fn vid(net: u16) -> Vid {
    Vid::new(net + 1).unwrap_or_else(|| unreachable!("at most 4094 networks are measured"))
}

/// Something that answers lookups.
pub trait LookupEngine<K> {
    /// Its name in results.
    fn name(&self) -> String;
    /// Its memory.
    fn memory(&self) -> Memory;
    /// All lookups, answers thrown into one cached buffer of a batch. Timed.
    fn run(&self, queries: &Queries<K>);
    /// The same code, answers kept: the next hop, or [`NextHop::NONE_WORD`]. Not timed.
    fn answers(&self, queries: &Queries<K>) -> Vec<u16>;
}

/// A number that two engines share exactly when their answers are equal (to 2^-64).
pub fn checksum(answers: &[u16]) -> u64 {
    crate::rng::fnv1a(answers.iter().flat_map(|answer| answer.to_be_bytes()))
}

/// Share of lookups that found a route.
pub fn hit_rate(answers: &[u16]) -> f64 {
    answers.iter().filter(|answer| **answer != NextHop::NONE_WORD).count() as f64
        / answers.len().max(1) as f64
}
