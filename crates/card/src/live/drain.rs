//! Detects when every frame that a network in software has already sent through the card has left the card.
//!
//! Flow: control, once the network sends by another path → **drain**: the rings from workers become empty, a fence
//! follows their last frame through the card, and the network's output queues become empty → control is notified. A
//! frame on the old path arrives later than one sent immediately on the new path by at most this time.

use super::seats::SeatId;

/// One drain in progress.
pub(super) struct Drain {
    pub(super) seat: SeatId,
    /// When control began to wait.
    pub(super) asked_ns: u64,
    /// Frames of the network that the card had received then.
    pub(super) received: Option<u64>,
    pub(super) began_ns: u64,
    /// When the fence was last sent.
    pub(super) fence_ns: Option<u64>,
    /// Unique name of this drain's fence.
    pub name: u64,
    /// The fence has come back.
    pub through: bool,
}
