//! What a running card reports.

use hue_demux::PortId;

/// An event that a card reports without being asked.
#[derive(Clone, PartialEq, Eq, Debug)]
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
}
