//! The 2026 IPv4 table and its day of updates.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::ops::Range;

use hue_tables::{Change, NextHop, Prefix4};

use crate::rib;
use crate::rng::mix;

/// One update a line: `A` or `W` and a prefix.
const DAY: &str = "updates/ris-as3333-2026-05-11.mutations.v4.txt.xz";
/// Updates that a busy BGP session delivers at once.
pub const BATCH: usize = 1000;

/// See the head of this file.
pub struct Day {
    base: Vec<Prefix4>,
    /// Announced, or withdrawn.
    updates: Vec<(bool, Prefix4)>,
}

/// Routes by prefix.
pub type Routes = HashMap<Prefix4, NextHop>;

impl Day {
    /// `None`, with a line on standard error, when a file is missing.
    pub fn read() -> Option<Self> {
        let base = rib::prefixes::<u32>(rib::V4_2026)?;
        let text = BufReader::new(rib::open(DAY)?);
        let update = |line: String| {
            let (verb, prefix) = line.split_once(' ')?;
            Some((verb == "A", prefix.trim().parse().ok()?))
        };
        let updates = text.lines().map_while(Result::ok).filter_map(update).collect();
        Some(Self { base, updates })
    }

    /// Updates.
    pub fn len(&self) -> usize {
        self.updates.len()
    }

    /// The table before the day.
    pub fn table(&self) -> Routes {
        self.base.iter().map(|prefix| (*prefix, rib::derived_hop(*prefix, 1))).collect()
    }

    /// The table after `count` updates.
    pub fn table_at(&self, fresh: bool, at: usize) -> Routes {
        self.walk(fresh, at, |_, _| {})
    }

    /// These updates as changes. With `fresh`, an announcement of an existing route has a different next hop.
    pub fn changes(&self, fresh: bool, updates: Range<usize>) -> Vec<Change<u32>> {
        let mut changes = Vec::with_capacity(updates.len());
        self.walk(fresh, updates.end, |at, change| {
            if at >= updates.start {
                changes.push(change);
            }
        });
        changes
    }

    fn walk(&self, fresh: bool, end: usize, mut each: impl FnMut(usize, Change<u32>)) -> Routes {
        let mut table = self.table();
        for (at, (announced, prefix)) in self.updates[..end].iter().enumerate() {
            let old = table.get(prefix).copied();
            let next = match old {
                _ if !announced => None,
                Some(old) if fresh => {
                    let step = 1 + mix(at as u64) % (rib::DERIVED_HOPS - 1);
                    NextHop::new(((u64::from(old.get()) + step) % rib::DERIVED_HOPS) as u16)
                }
                old => Some(old.unwrap_or_else(|| rib::derived_hop(*prefix, 1))),
            };
            match next {
                Some(hop) => table.insert(*prefix, hop),
                None => table.remove(prefix),
            };
            each(at, (*prefix, next));
        }
        table
    }

    /// First addresses of routes of a table that none of these updates withdraws.
    pub fn lasting(&self, updates: Range<usize>, table: &Routes) -> Vec<u32> {
        let withdrawn: HashSet<Prefix4> = self.updates[updates]
            .iter()
            .filter(|(announced, _)| !announced)
            .map(|(_, prefix)| *prefix)
            .collect();
        let mut keys: Vec<u32> =
            table.keys().filter(|prefix| !withdrawn.contains(prefix)).map(|prefix| prefix.addr()).collect();
        keys.sort_unstable();
        keys
    }
}
