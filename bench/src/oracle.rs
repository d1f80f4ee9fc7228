//! The naive answer: of all lengths from the longest down, the first whose prefix of the key is in the sorted table.
//! Shares nothing with any engine and needs no memory of its own.

use hue_tables::{Key, NextHop, Prefix};

use crate::rib::Table;

/// The word a table image answers: next hop or [`NextHop::NONE_WORD`].
pub fn lookup<K: Key>(table: &Table<K>, key: K) -> u16 {
    let hit =
        (0..=K::BITS).rev().find_map(|len| table.prefixes.binary_search(&Prefix::containing(key, len)).ok());
    NextHop::word(hit.map(|at| table.hops[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_match_wins() {
        let hop = |n| NextHop::new(n).unwrap();
        let table = Table::<u32>::from_routes([
            ("10.0.0.0/8".parse().unwrap(), hop(1)),
            ("10.0.0.0/9".parse().unwrap(), hop(2)),
            ("10.1.0.0/16".parse().unwrap(), hop(3)),
        ]);
        let answers = [0x0a01_0000, 0x0a00_0001, 0x0a80_0000, 0x0b00_0000].map(|key| lookup(&table, key));
        assert_eq!(answers, [3, 2, 1, NextHop::NONE_WORD]);
    }
}
