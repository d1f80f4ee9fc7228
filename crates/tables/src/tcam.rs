//! The papers' on-chip table: ternary rows in order of priority, a separate set of rows for each network.
//!
//! Flow: routes → **Tcam** → rows, longest prefixes first. The card's planes with layout `tcam` match all
//! rows in parallel; [`Tcam::lookup`] matches them one by one. Invariant: a network has no more rows than a
//! plane; a change that does not fit changes nothing.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::dag::Change;
use crate::types::{Key, NextHop, Prefix4, Vid};

/// Rows of a plane in the papers' images.
pub const PLANE_ROWS: usize = 32;
/// Width of a row in bits: value, mask, next-hop word.
pub const ROW_BITS: u64 = 32 + 32 + 16;

/// A ternary row: an address matches if it equals `value` in all bits that are set in `mask`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcamRow {
    /// The value to match.
    pub value: u32,
    /// The bits to compare.
    pub mask: u32,
    /// Next-hop word.
    pub word: u16,
}

/// Why a change was rejected. The table is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum TcamError {
    /// The plane has no free row.
    #[error("network {vid}: {needed} routes need {needed} rows, and a plane has {max}")]
    Rows {
        /// Network of the rejected change.
        vid: Vid,
        /// Routes of the network after the change.
        needed: usize,
        /// The limit.
        max: usize,
    },
    /// The network is not in the table (the caller's fault).
    #[error("network {0} has no table: add it first")]
    UnknownNetwork(Vid),
}

/// The table; see the module documentation.
#[derive(Clone, Debug)]
pub struct Tcam {
    rows_max: usize,
    networks: BTreeMap<Vid, Vec<(Prefix4, TcamRow)>>,
}

impl Tcam {
    /// Creates an empty table with `rows_max` rows for each plane.
    #[must_use]
    pub fn new(rows_max: usize) -> Self {
        Self { rows_max, networks: BTreeMap::new() }
    }

    /// Adds a network without routes. Has no effect if the network exists.
    pub fn add_network(&mut self, vid: Vid) {
        self.networks.entry(vid).or_default();
    }

    /// Removes a network. Has no effect if the network does not exist.
    pub fn remove_network(&mut self, vid: Vid) {
        self.networks.remove(&vid);
    }

    /// Applies changes to one network: all of them or none.
    ///
    /// # Errors
    /// `UnknownNetwork`, `Rows`.
    pub fn apply(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), TcamError> {
        let rows = self.networks.get_mut(&vid).ok_or(TcamError::UnknownNetwork(vid))?;
        let mut routes: BTreeMap<Prefix4, TcamRow> = rows.iter().copied().collect();
        for (prefix, hop) in changes {
            match hop {
                Some(hop) => {
                    let mask = 0.last(0).masked(prefix.len());
                    routes.insert(*prefix, TcamRow { value: prefix.addr(), mask, word: hop.get() })
                }
                None => routes.remove(prefix),
            };
        }
        if routes.len() > self.rows_max {
            return Err(TcamError::Rows { vid, needed: routes.len(), max: self.rows_max });
        }
        *rows = routes.into_iter().collect();
        rows.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(())
    }

    /// Rows of a network; the first match wins.
    pub fn rows(&self, vid: Vid) -> impl Iterator<Item = TcamRow> + '_ {
        self.networks.get(&vid).into_iter().flatten().map(|(_, row)| *row)
    }

    /// Rows of all networks.
    #[must_use]
    pub fn rows_total(&self) -> u64 {
        self.networks.values().map(|rows| rows.len() as u64).sum()
    }

    /// The word of the first matching row.
    #[must_use]
    pub fn lookup(&self, vid: Vid, address: u32) -> u16 {
        let found = self.rows(vid).find(|row| address & row.mask == row.value);
        found.map_or(NextHop::NONE_WORD, |row| row.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Oracle;

    #[test]
    fn rows_match_the_oracle_and_a_full_plane_rejects() {
        let vid = Vid::new(3).unwrap();
        let mut tcam = Tcam::new(4);
        assert_eq!(tcam.apply(vid, &[]), Err(TcamError::UnknownNetwork(vid)));
        tcam.add_network(vid);
        let mut oracle = Oracle::default();
        let routes = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32"];
        let changes: Vec<Change<u32>> = (1..)
            .zip(routes)
            .map(|(hop, prefix): (u16, &str)| (prefix.parse().unwrap(), NextHop::new(hop)))
            .collect();
        tcam.apply(vid, &changes).unwrap();
        for (prefix, hop) in &changes {
            oracle.insert(*prefix, hop.unwrap());
        }
        let check = |tcam: &Tcam, oracle: &Oracle<u32>| {
            for address in [0, 0x0a00_0000, 0x0a01_0000, 0x0a01_0203, 0x0a01_0204, 0xffff_ffff] {
                let right = NextHop::word(oracle.lookup(address).map(|(_, hop)| hop));
                assert_eq!(tcam.lookup(vid, address), right, "{address:#x}");
            }
        };
        check(&tcam, &oracle);
        let more = [
            ("11.0.0.0/8".parse().unwrap(), NextHop::new(9)),
            ("10.0.0.0/8".parse().unwrap(), NextHop::new(9)),
        ];
        let full = tcam.apply(vid, &more).unwrap_err();
        assert_eq!(full.to_string(), "network 3: 5 routes need 5 rows, and a plane has 4");
        check(&tcam, &oracle);
        tcam.apply(vid, &[("0.0.0.0/0".parse().unwrap(), None)]).unwrap();
        oracle.remove("0.0.0.0/0".parse().unwrap());
        check(&tcam, &oracle);
        assert_eq!(tcam.rows(vid).count(), 3);
        tcam.remove_network(vid);
        assert_eq!(tcam.lookup(vid, 0x0a01_0203), NextHop::NONE_WORD);
    }
}
