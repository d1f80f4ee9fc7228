//! A frame that left the card in a run of captures: where, and which one it was.

use hue_demux::PortId;
use hue_planes::Reason;
use hue_tables::Vid;

/// Where a frame left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// On a port.
    Port(PortId),
    /// To a network's own control plane.
    Control {
        /// The network.
        vid: Vid,
        /// Index of the virtual port it arrived on.
        vport: u16,
        /// Why; `None` when the network's plane is gated and its packets go to the control plane, and for packets for the router itself
        /// that went through the loop of tunnels.
        outcome: Option<Reason>,
    },
}

/// A frame that left the card, not sorted yet.
pub(crate) struct Left {
    pub tag: u32,
    pub way: Way,
    pub bytes: Vec<u8>,
    pub cycle: u64,
}
