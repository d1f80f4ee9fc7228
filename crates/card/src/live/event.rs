//! What a running card reports.

use std::time::Duration;

use hue_demux::PortId;
use hue_tables::Vid;
use serde::{Deserialize, Serialize};

use super::seats::SeatId;
use super::transfer::Report;

/// An event that a card reports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CardEvent {
    /// A port failed and was closed.
    Port {
        /// The port.
        id: PortId,
        /// The error.
        error: String,
    },
    /// The card no longer works; its thread has ended.
    Failed(String),
    /// The port cannot limit floods before its receive ring, and why.
    NotLimited(PortId, String),
    /// Networks cannot be loaded, and why.
    Refused(Vec<Vid>, String),
    /// A network has moved, or could not.
    Moved(Box<Moved>),
    /// The table of a network on the card could not follow, and why: the network runs in software.
    Fell(SeatId, String),
    /// The table of a network in software has no room.
    NotKept(SeatId),
    /// What a network in software had sent through the card has left it.
    Drained {
        /// The network.
        seat: SeatId,
        /// How long that took; `None` if it was given up.
        took: Option<Duration>,
        /// Frames of the network that the card had received when it began.
        received: Option<u64>,
    },
    /// A network that was on the card when another control took it over stays there.
    Stays(Vid),
    /// Frames bypass the card, or why not.
    Bypassed(Result<(), String>),
}

/// How a move began and ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Moved {
    /// The network's seat.
    pub seat: SeatId,
    /// Why the network's table is not on the card; or the result.
    pub outcome: Result<Report, String>,
    /// How long the table took to write, nanoseconds.
    pub prepared_ns: u64,
    /// Frames of the network that the card had received when the move began, if asked.
    pub received: Option<u64>,
}
