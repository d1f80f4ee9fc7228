//! Tunnels: which networks carry some, which cannot run on the card because of theirs, and what their ports lead to.
//!
//! Flow: documents → **here** → programs, the scheduler, routes of live networks. Source: ADR 0059.

use std::collections::HashSet;

use hue_demux::tunnel::IPIP_PEER;
use hue_intent::{Network, NetworkPort, Tunnel};
use hue_planes::Settings;
use hue_wire::Mac;

/// Why a switch with tunnels cannot run on the card.
pub const FLOODS_INTO_TUNNELS: &str = "it is a switch with tunnels, into which the card cannot flood";

/// Whether a network is a switch with tunnels. The card copies a frame to its own ports only, so the copies for the tunnels would be
/// missing (ADR 0067).
#[must_use]
pub fn floods_into_tunnels(network: &Network) -> bool {
    let learns = Settings::of(network.spec.plane.kind).learning().is_some();
    learns && network.spec.ports.iter().any(|port| port.tunnel().is_some())
}

/// The names of the networks that carry tunnels of others.
#[must_use]
pub fn carriers(networks: &[Network]) -> HashSet<&str> {
    let ports = networks.iter().flat_map(|network| &network.spec.ports);
    ports.filter_map(NetworkPort::tunnel).map(|tunnel| tunnel.over.as_str()).collect()
}

/// The router that all packets of a virtual port go to, if there is only one: at the other end of an IP tunnel.
#[must_use]
pub fn peer(port: &NetworkPort) -> Option<Mac> {
    port.tunnel().is_some_and(Tunnel::is_ip).then_some(IPIP_PEER)
}
