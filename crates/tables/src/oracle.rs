//! The reference model: longest-prefix match, implemented by its definition.
//!
//! One ordered map for each prefix length; a lookup tries lengths from long to short. Shares no code with the
//! trie.

use std::collections::BTreeMap;

use crate::types::{Key, NextHop, Prefix};

/// The routes of one network.
#[derive(Clone, Debug)]
pub struct Oracle<K: Key> {
    lengths: Vec<BTreeMap<K, NextHop>>,
}

impl<K: Key> Default for Oracle<K> {
    fn default() -> Self {
        Self { lengths: vec![BTreeMap::new(); usize::from(K::BITS) + 1] }
    }
}

impl<K: Key> Oracle<K> {
    /// Announces a route and returns the next hop it replaces.
    pub fn insert(&mut self, prefix: Prefix<K>, hop: NextHop) -> Option<NextHop> {
        self.lengths[usize::from(prefix.len())].insert(prefix.addr(), hop)
    }

    /// Withdraws a route and returns its next hop.
    pub fn remove(&mut self, prefix: Prefix<K>) -> Option<NextHop> {
        self.lengths[usize::from(prefix.len())].remove(&prefix.addr())
    }

    /// The longest prefix that contains the key, and its next hop.
    #[must_use]
    pub fn lookup(&self, key: K) -> Option<(Prefix<K>, NextHop)> {
        (0..=K::BITS).rev().find_map(|len| {
            let prefix = Prefix::containing(key, len);
            self.lengths[usize::from(len)].get(&prefix.addr()).map(|hop| (prefix, *hop))
        })
    }

    /// Number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.iter().map(BTreeMap::len).sum()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All routes, shorter prefixes first.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<K>, NextHop)> + '_ {
        let lengths = (0..=K::BITS).zip(&self.lengths);
        lengths
            .flat_map(|(len, map)| map.iter().map(move |(addr, hop)| (Prefix::containing(*addr, len), *hop)))
    }
}
