//! What bounds a store, why a change is refused, and what a network's table weighs.

use thiserror::Error;

use crate::epoch::READERS_MAX;
use crate::types::Vid;

/// Bounds of a store, each an error with its name when reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of live nodes in the `dag64` image. A change copies its path before the old one goes, and readers may
    /// hold replaced nodes for a while, so address space is reserved for twice as much; memory is taken as it is used.
    pub image_bytes_max: u64,
    /// Networks in the store, at most 4,095.
    pub networks_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { image_bytes_max: 3 << 30, networks_max: Vid::MAX as usize }
    }
}

/// Why a change was refused. The store is as it was before.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// The image has no room for the nodes of this change; raise the limit or remove routes.
    #[error(
        "network {vid}: table full: {bytes_used} of image_bytes_max = {bytes_max} bytes are in use and the change \
         needs more; remove routes or raise the limit"
    )]
    Full {
        /// Network of the refused change.
        vid: Vid,
        /// Bytes of live and not yet reusable nodes.
        bytes_used: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The network would take more than its quota.
    #[error(
        "network {vid}: its table has {bytes_own} bytes, the change would make it {bytes_needed}, and its quota is \
         {bytes_quota}; withdraw routes or raise the quota"
    )]
    Quota {
        /// Network of the refused change.
        vid: Vid,
        /// What its lookups can reach.
        bytes_own: u64,
        /// What they could reach after the change.
        bytes_needed: u64,
        /// The quota.
        bytes_quota: u64,
    },
    /// Too many networks.
    #[error("network {vid}: networks_max = {networks_max} networks are in the table already")]
    TooManyNetworks {
        /// Network of the refused call.
        vid: Vid,
        /// The limit.
        networks_max: usize,
    },
    /// The network is not in the store (the caller's fault).
    #[error("network {0} has no table: add it first")]
    UnknownNetwork(Vid),
    /// The network is in the store already (the caller's fault).
    #[error("network {0} has a table already")]
    DuplicateNetwork(Vid),
    /// Too many readers are registered.
    #[error("{READERS_MAX} readers are registered already")]
    TooManyReaders,
    /// The system gave no address space for the image.
    #[error("no address space for an image of {bytes} bytes: {reason}")]
    NoMemory {
        /// Bytes asked for.
        bytes: u64,
        /// The system's words.
        reason: String,
    },
}

/// Memory of one network in a store, in bytes of the image, or in the unit of `Dag::weigh_by`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Routes of the network.
    pub routes: usize,
    /// Bytes that its lookups can reach: what its table would take alone.
    pub bytes_own: u64,
    /// The part of `bytes_own` that other networks reach too.
    pub bytes_shared: u64,
    /// Bytes that would be freed if the network were removed: what it adds to the others.
    pub bytes_marginal: u64,
    /// Limit on `bytes_own`, if there is one.
    pub bytes_quota: Option<u64>,
}
