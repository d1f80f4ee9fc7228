//! Seats of networks on the card, and what a move was ordered with.

use std::time::Duration;

use hue_tables::Vid;

/// A network's seat on the card. It gets another one when it is loaded again and when its table is to be written anew
/// ([`super::LiveCard::take_seat`]). Commands about a seat that is no longer the network's do nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SeatId {
    /// The network.
    pub vid: Vid,
    /// Distinguishes it from the network's other seats.
    pub number: u64,
}

/// A move that has been ordered: what its report says besides its result.
pub(super) struct Ordered {
    pub seat: SeatId,
    /// Control's number for it.
    pub number: u64,
    /// How long the table took to write.
    pub prepared: Duration,
    /// Frames of the network that the card had received.
    pub received: Option<u64>,
}
