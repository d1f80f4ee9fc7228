//! Tunnels: which networks have some or carry some, and what their ports lead to.
//!
//! Flow: documents → **here** → programs, the scheduler, routes of live networks. Source: ADR 0059.

use std::collections::HashMap;
use std::fmt;

use hue_demux::tunnel::IPIP_PEER;
use hue_intent::{Network, NetworkPort, Tunnel};
use hue_wire::Mac;

/// What a network has to do with tunnels. The card has none, so such a network runs in software.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TunnelUse {
    /// Some of its ports are ends of tunnels.
    Has,
    /// It carries tunnels of others, and may have some itself.
    Carries,
}

impl fmt::Display for TunnelUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Has => "it has tunnels: the card has none",
            Self::Carries => "it carries tunnels: the card has none",
        })
    }
}

/// The networks that have or carry tunnels, by name.
#[must_use]
pub fn tunnel_uses(networks: &[Network]) -> HashMap<&str, TunnelUse> {
    let mut uses = HashMap::new();
    for network in networks {
        for tunnel in network.spec.ports.iter().filter_map(NetworkPort::tunnel) {
            uses.entry(network.name()).or_insert(TunnelUse::Has);
            uses.insert(tunnel.over.as_str(), TunnelUse::Carries);
        }
    }
    uses
}

/// The router that all packets of a virtual port go to, if there is only one: at the other end of an IP tunnel.
#[must_use]
pub fn peer(port: &NetworkPort) -> Option<Mac> {
    port.tunnel().is_some_and(Tunnel::is_ip).then_some(IPIP_PEER)
}
