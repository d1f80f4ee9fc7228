//! Limits of a store, errors of changes, and the memory of a network's table.

use thiserror::Error;

use crate::epoch::READERS_MAX;
use crate::types::Vid;

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
    /// The network already is in the store (the caller's fault).
    #[error("network {0} already has a table")]
    DuplicateNetwork(Vid),
    /// Too many readers are registered.
    #[error("{READERS_MAX} readers are already registered")]
    TooManyReaders,
    /// The system could not reserve address space for the image.
    #[error("no address space for an image of {bytes} bytes: {reason}")]
    NoMemory {
        /// Bytes requested.
        bytes: u64,
        /// Message of the system.
        reason: String,
    },
}

/// Memory of one network in a store, in bytes of the image or in the unit of
/// [`Dag::set_weight_fn`](crate::Dag::set_weight_fn).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
