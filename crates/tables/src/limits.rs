//! Limits of a store, errors of changes, and the memory of a network's table.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::epoch::READERS_MAX;
use crate::layout::{GRANULE_BYTES, NODE_GRANULES_MAX};
use crate::types::Vid;

/// Bytes of the `dag64` image that an IPv4 route takes at most. It has at most three nodes of its own (the fourth, the top
/// node, is the network's): 104 bytes each with rounding, and or 1/24 of a wide node's 1,024 bytes, plus two runs of 4
/// bytes in each node on its path.
const ROUTE4_BYTES_MAX: u64 = 512;
/// The same for an IPv6 route, which has at most 15 nodes of its own.
const ROUTE6_BYTES_MAX: u64 = 5 * ROUTE4_BYTES_MAX;
/// Bytes that a store has besides routes.
const STORE_BYTES: u64 = 1 << 20;

/// Limits of a store. Exceeding one is an error that names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of live nodes in the `dag64` image. A change copies its path before the old one is freed, and
    /// readers may access replaced nodes for a while, so twice as much address space is reserved. Memory is
    /// allocated on use.
    pub image_bytes_max: u64,
    /// Networks in the store, at most 4,095.
    pub networks_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { image_bytes_max: 3 << 30, networks_max: Vid::MAX as usize }
    }
}

impl Limits {
    /// Limits for a store that is filled once, with this many networks, IPv4 routes and IPv6 routes in all. They always fit,
    /// and no more address space is reserved than they can need.
    #[must_use]
    pub fn for_routes(networks: usize, ipv4: usize, ipv6: usize) -> Self {
        let top = (NODE_GRANULES_MAX * GRANULE_BYTES) as u64;
        let bytes = (ipv4 as u64)
            .saturating_mul(ROUTE4_BYTES_MAX)
            .saturating_add((ipv6 as u64).saturating_mul(ROUTE6_BYTES_MAX))
            .saturating_add((networks as u64).saturating_mul(top))
            .saturating_add(STORE_BYTES);
        let limits = Self::default();
        Self { image_bytes_max: bytes.min(limits.image_bytes_max), ..limits }
    }
}

/// Why a change was rejected. The store is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// The image has no room for the nodes of this change.
    #[error(
        "network {vid}: table full: {bytes_used} of image_bytes_max = {bytes_max} bytes are in use and the change \
         needs more; remove routes or raise the limit"
    )]
    Full {
        /// Network of the rejected change.
        vid: Vid,
        /// Bytes of nodes that are live or not yet reusable.
        bytes_used: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The network would exceed its quota.
    #[error(
        "network {vid}: its table has {bytes_own} bytes, the change would make it {bytes_needed}, and its quota is \
         {bytes_quota}; withdraw routes or raise the quota"
    )]
    Quota {
        /// Network of the rejected change.
        vid: Vid,
        /// Bytes that its lookups can reach now.
        bytes_own: u64,
        /// Bytes that its lookups could reach after the change.
        bytes_needed: u64,
        /// The quota.
        bytes_quota: u64,
    },
    /// Too many networks.
    #[error("network {vid}: networks_max = {networks_max} networks already have a table")]
    TooManyNetworks {
        /// Network of the rejected call.
        vid: Vid,
        /// The limit.
        networks_max: usize,
    },
    /// The network is not in the store (the caller's fault).
    #[error("network {0} has no table: add it first")]
    UnknownNetwork(Vid),
    /// The network's keys have another width (the caller's fault).
    #[error("network {vid} has keys of {bits} bits, not {given}")]
    Width {
        /// The network.
        vid: Vid,
        /// Bits of its keys.
        bits: u8,
        /// Bits of the keys of the call.
        given: u8,
    },
    /// The network already is in the store (the caller's fault).
    #[error("network {0} already has a table")]
    DuplicateNetwork(Vid),
    /// Too many readers are registered.
    #[error("{READERS_MAX} readers are already registered")]
    TooManyReaders,
    /// The system could not reserve address space for the image.
    #[error("no address space for an image of {bytes} bytes: {reason}; raise the limit on it (`ulimit -v`)")]
    NoMemory {
        /// Bytes requested.
        bytes: u64,
        /// Message of the system.
        reason: String,
    },
}

impl TableError {
    /// Whether a change needs more room than there is, or than the network's quota allows.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Quota { .. })
    }
}

/// Memory of one network in a store, in bytes of the image or in the unit of
/// [`Dag::set_weight_fn`](crate::Dag::set_weight_fn).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// Number of routes of the network.
    pub routes: usize,
    /// Bytes that its lookups can reach: the size of its table on its own.
    pub bytes_own: u64,
    /// The part of `bytes_own` that lookups of other networks can also reach.
    pub bytes_shared: u64,
    /// Bytes that would be freed if the network were removed: what it adds to the other networks' tables.
    pub bytes_marginal: u64,
    /// Limit on `bytes_own`; `None` means unlimited.
    pub bytes_quota: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Dag, Key, NextHop, Prefix};
    use proptest::prelude::*;

    /// Routes that share as few nodes as possible: long prefixes all over, each with its own next hop.
    fn costly<K: Key>(lengths: &[u8], key: impl Fn(u32) -> K) -> Vec<Change<K>> {
        let hop = |n: u32| NextHop::new((n % 60_000) as u16);
        let one = |(n, len): (u32, &u8)| (Prefix::containing(key(n), *len), hop(n));
        let mut routes: Vec<Change<K>> = (1..).zip(lengths).map(one).collect();
        routes.sort_by_key(|(prefix, _)| *prefix);
        routes.dedup_by_key(|(prefix, _)| *prefix);
        routes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn routes_always_fit_limits_made_for_them(
            lengths in proptest::collection::vec(prop_oneof![4 => 25_u8..=32, 1 => 1_u8..=32], 1..3_000),
            spread in prop_oneof![Just(0x9e37_79b1_u32), Just(1), Just(1 << 8), Just((1 << 24) + (1 << 16) + 257), any::<u32>()],
            networks in 1_u16..4,
        ) {
            let routes = costly(&lengths, |n| n.wrapping_mul(spread));
            // The constant part would hide that the part for routes is too small.
            let limits = Limits::for_routes(usize::from(networks), usize::from(networks) * routes.len(), 0);
            let limits = Limits { image_bytes_max: limits.image_bytes_max - STORE_BYTES, ..limits };
            let mut dag = Dag::new(limits).unwrap();
            for n in 1..=networks {
                let vid = Vid::new(n).unwrap();
                dag.add_network::<u32>(vid).unwrap();
                // Other next hops: no node is shared between networks.
                let moved = |hop: NextHop| NextHop::new(hop.get() + 1_000 * n).unwrap();
                let own: Vec<Change<u32>> = routes.iter().map(|(prefix, hop)| (*prefix, hop.map(moved))).collect();
                prop_assert_eq!(dag.apply(vid, &own), Ok(()));
            }
        }

        #[test]
        fn ipv6_routes_always_fit_limits_made_for_them(
            lengths in proptest::collection::vec(prop_oneof![4 => 113_u8..=128, 1 => 1_u8..=128], 1..1_000),
            spread in prop_oneof![Just(u128::MAX / 3 * 2 - 7), Just(1), Just(1 << 64), Just((1 << 120) + (1 << 40) + 257), any::<u128>()],
        ) {
            let routes = costly(&lengths, |n| u128::from(n).wrapping_mul(spread));
            let limits = Limits::for_routes(1, 0, routes.len());
            let limits = Limits { image_bytes_max: limits.image_bytes_max - STORE_BYTES, ..limits };
            let (mut dag, vid) = (Dag::new(limits).unwrap(), Vid::new(1).unwrap());
            dag.add_network::<u128>(vid).unwrap();
            prop_assert_eq!(dag.apply(vid, &routes), Ok(()));
        }
    }

    #[test]
    fn limits_for_routes_end_at_the_default() {
        assert_eq!(Limits::for_routes(usize::MAX, usize::MAX, 0), Limits::default());
        assert_eq!(Limits::for_routes(0, 0, 0).image_bytes_max, STORE_BYTES);
        assert!(Limits::for_routes(3, 1_000_000, 0).image_bytes_max < 1 << 30);
    }
}
