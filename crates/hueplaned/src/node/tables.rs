//! Routes: from the namespaces' kernels to the tables of the data plane.
//!
//! Flow: monitor → batches → one [`Rib`](hue_routing::Rib) per network → updates → **pieces** of at most
//! [`PIECE_ROUTES`] → data plane. Invariants: next hops of an update are set before its first route; an update is
//! completed before the next one is taken, because the next one may reuse rows; a network with many changes gets one
//! piece per turn, like every other.

use hue_planes::Adjacency;
use hue_tables::{Change, Vid};

/// Maximum routes set at once.
pub(super) const PIECE_ROUTES: usize = 4096;
/// Maximum next hops without a known MAC address probed at once.
pub(super) const PROBES_MAX: usize = 32;

/// An update in progress.
pub struct Piece {
    pub(super) hops: Vec<(u16, Adjacency)>,
    pub(super) routes: Vec<Change<u32>>,
    pub(super) done: usize,
}

/// Bytes that a network's lookups can reach.
pub(super) fn own_bytes(live: &hue_soft::Live, vid: Vid) -> u64 {
    live.account(vid).map_or(0, |account| account.bytes_own)
}
