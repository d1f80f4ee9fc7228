//! The tables that are measured: real ones read from the data folder, and the tables of many networks derived from them.
//!
//! Next hops of network n: `mix(fnv1a(n as 2 bytes, first 20 (IPv4) or 32 (IPv6) bits of the prefix as 16 bytes)) mod 8`,
//! so that no two networks agree on more than one in eight. `mix` is there because FNV's low three bits alone
//! depend only on the low three bits of each byte.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use hue_tables::{Key, NextHop, Prefix};

use crate::rng::{Rng, fnv1a, mix};

/// IPv4 table of 2026-05-11 (RIPE RIS).
pub const V4_2026: &str = "rib/ris-as3333-2026-05-11.v4.txt.xz";
/// IPv6 table of the same day.
pub const V6_2026: &str = "rib/ris-as3333-2026-05-11.v6.txt.xz";
/// Two peers' IPv4 tables of 2010, one of 2008 and one of 2002, with next hops of their own.
pub const OLD: [&str; 4] = [
    "rib/ris-rrc06-2010-07-01-as2497.v4.pfx-nhas.txt.xz",
    "rib/ris-rrc06-2010-07-01-as4777.v4.pfx-nhas.txt.xz",
    "rib/routeviews-2008-05-01.v4.pfx-origin.txt.xz",
    "rib/ris-2002-07-22-as1853.v4.pfx-nhas.txt.xz",
];
/// FIBs of 21 routers.
pub const FIBS: &str = "vrf/internet2-9x+stanford-12x-router-fibs.tar.xz";

/// Next hops a derived table uses.
pub const DERIVED_HOPS: u64 = 8;

/// One network's routes, sorted by (address, length), no prefix twice.
#[derive(Clone, Default)]
pub struct Table<K> {
    /// Destinations.
    pub prefixes: Vec<Prefix<K>>,
    /// Their next hops.
    pub hops: Vec<NextHop>,
}

impl<K: Key> Table<K> {
    /// Number of routes.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Prefix and next hop of each route in order.
    pub fn routes(&self) -> impl Iterator<Item = (Prefix<K>, NextHop)> + '_ {
        self.prefixes.iter().copied().zip(self.hops.iter().copied())
    }

    /// From routes in any order; of equal prefixes the last wins.
    pub fn from_routes(routes: impl IntoIterator<Item = (Prefix<K>, NextHop)>) -> Self {
        let last: HashMap<_, _> = routes.into_iter().collect();
        let mut routes: Vec<_> = last.into_iter().collect();
        routes.sort_unstable_by_key(|(prefix, _)| *prefix);
        let (prefixes, hops) = routes.into_iter().unzip();
        Self { prefixes, hops }
    }
}

/// The folder with the real data: `HUEPLANE_DATA`, else beside the project.
pub fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The package beside this one is a folder deeper.
    let beside = ["../../shared/data", "../../../shared/data"].map(|path| here.join(path));
    let found = beside.iter().find(|path| path.is_dir()).unwrap_or(&beside[0]);
    std::env::var_os("HUEPLANE_DATA").map_or_else(|| found.clone(), PathBuf::from)
}

/// Opens a data file; `None`, with a line on standard error, when it is absent.
pub fn open(name: &str) -> Option<Box<dyn Read>> {
    let Ok(file) = File::open(folder().join(name)) else {
        eprintln!("skipped: {name} missing");
        return None;
    };
    Some(Box::new(liblzma::read::XzDecoder::new_multi_decoder(BufReader::new(file))))
}

/// Prefixes and the token after each (empty when there is none) of lines `PREFIX [TOKEN…]`; other lines are passed over.
fn lines<K: Key>(text: impl Read) -> Vec<(Prefix<K>, String)> {
    let mut out = Vec::new();
    for line in BufReader::new(text).lines().map_while(Result::ok) {
        let mut words = line.split_whitespace();
        if let Some(prefix) = words.next().and_then(|word| word.parse().ok()) {
            out.push((prefix, words.collect::<Vec<_>>().join(" ")));
        }
    }
    out
}

/// A real table's prefixes, sorted, each once.
pub fn prefixes<K: Key>(name: &str) -> Option<Vec<Prefix<K>>> {
    let mut prefixes: Vec<_> = lines(open(name)?).into_iter().map(|(prefix, _)| prefix).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    Some(prefixes)
}

/// A real table with its real next hops, numbered in order of appearance.
pub fn real(name: &str) -> Option<Table<u32>> {
    Some(numbered(lines(open(name)?)))
}

fn numbered(routes: Vec<(Prefix<u32>, String)>) -> Table<u32> {
    let mut numbers = HashMap::new();
    Table::from_routes(routes.into_iter().filter_map(|(prefix, token)| {
        let next = u16::try_from(numbers.len()).ok()?;
        Some((prefix, NextHop::new(*numbers.entry(token).or_insert(next))?))
    }))
}

/// The 21 router FIBs, by file name.
pub fn fibs() -> Option<Vec<(String, Table<u32>)>> {
    let mut archive = tar::Archive::new(open(FIBS)?);
    let mut out = Vec::new();
    for entry in archive.entries().ok()? {
        let entry = entry.ok()?;
        let name = entry.path().ok()?.to_string_lossy().into_owned();
        out.push((name, numbered(lines(entry))));
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    Some(out)
}

/// Bits of a prefix that its derived next hop depends on.
fn hop_bits<K: Key>() -> u8 {
    if K::BITS == 32 { 20 } else { 32 }
}

/// The derived next hop of a prefix in network `net` (see the head of this file).
pub fn derived_hop<K: Key>(prefix: Prefix<K>, net: u16) -> NextHop {
    let head = prefix.addr().masked(hop_bits::<K>()).to_bits();
    let hash = mix(fnv1a(net.to_be_bytes().into_iter().chain(head.to_be_bytes())));
    NextHop::new((hash % DERIVED_HOPS) as u16).unwrap_or_else(|| unreachable!("below 8"))
}

/// How the tables of several networks relate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// All networks have the base's prefixes; next hops differ.
    Equal,
    /// Each network lacks 3 % of the base's prefixes and has 3 % of its own; next hops differ.
    Overlap,
}

impl Relation {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Overlap => "overlap",
        }
    }
}

/// The table of network `net` derived from `base` (sorted prefixes).
pub fn derive<K: Key>(base: &[Prefix<K>], relation: Relation, net: u16) -> Table<K> {
    let prefixes = match relation {
        Relation::Equal => base.to_vec(),
        Relation::Overlap => overlapping(base, net),
    };
    let hops = prefixes.iter().map(|prefix| derived_hop(*prefix, net)).collect();
    Table { prefixes, hops }
}

/// Drops each prefix with probability 3 %, then adds 3 % new ones: for a random base prefix, either its sibling
/// (last bit flipped) or a more-specific 1 to 4 bits longer, up to /24 (IPv4) or /48 (IPv6). Seed: the network's number.
fn overlapping<K: Key>(base: &[Prefix<K>], net: u16) -> Vec<Prefix<K>> {
    let longest = if K::BITS == 32 { 24 } else { 48 };
    let mut rng = Rng::new(0x0A11_0000 + u64::from(net));
    let known: HashSet<Prefix<K>> = base.iter().copied().collect();
    let mut own = HashSet::new();
    while own.len() < base.len() * 3 / 100 {
        let prefix = base[rng.below(base.len())];
        let bits = prefix.addr().to_bits();
        let new = if rng.one_in(2) && prefix.len() > 8 {
            Prefix::containing(K::from_bits(bits ^ (1 << (128 - u32::from(prefix.len())))), prefix.len())
        } else if prefix.len() < longest {
            let len = (prefix.len() + 1 + rng.below(4) as u8).min(longest);
            let host = (u128::from(rng.bits()) << 64 | u128::from(rng.bits())) & host_mask(prefix.len());
            Prefix::containing(K::from_bits(bits | host), len)
        } else {
            continue;
        };
        if !known.contains(&new) {
            own.insert(new);
        }
    }
    let mut out: Vec<_> = base.iter().copied().filter(|_| rng.below(100) >= 3).chain(own).collect();
    out.sort_unstable();
    out
}

/// The bits beyond `len` of a key in 128-bit form.
pub fn host_mask(len: u8) -> u128 {
    u128::MAX.checked_shr(u32::from(len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Vec<Prefix<u32>> {
        (0..10_000u32).map(|i| Prefix::containing(0x0100_0000 + (i << 9), 23)).collect()
    }

    #[test]
    fn overlapping_networks_lack_and_add_three_percent() {
        let (base, table) = (base(), derive(&base(), Relation::Overlap, 3));
        let known: HashSet<_> = base.iter().collect();
        let kept = table.prefixes.iter().filter(|prefix| known.contains(prefix)).count();
        assert!((9_600..9_800).contains(&kept), "{kept} kept");
        assert_eq!(table.len() - kept, 300);
        assert!(table.prefixes.is_sorted());
        assert_eq!(table.prefixes, derive(&base, Relation::Overlap, 3).prefixes);
    }

    #[test]
    fn networks_agree_on_one_next_hop_in_eight() {
        let (one, two) = (derive(&base(), Relation::Equal, 0), derive(&base(), Relation::Equal, 1));
        let equal = one.hops.iter().zip(&two.hops).filter(|(a, b)| a == b).count();
        assert!((1_000..1_500).contains(&equal), "{equal} of 10,000 equal");
    }

    #[test]
    fn of_equal_prefixes_the_last_line_wins() {
        let text = "10.0.0.0/8 a x\n# nothing\n10.0.0.0/8 b y\n9.0.0.0/8 a x\n";
        let table = numbered(lines(text.as_bytes()));
        assert_eq!(table.hops.iter().map(|hop| hop.get()).collect::<Vec<_>>(), [0, 1]);
    }
}
