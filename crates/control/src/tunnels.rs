//! Tunnels: which networks carry some, which cannot run on the card because of theirs, and what their ports lead to.
//!
//! Flow: documents → **here** → programs, the scheduler, routes of live networks. Source: ADR 0059.

use std::collections::HashSet;

use hue_demux::tunnel::IPIP_PEER;
use hue_intent::{LabelAction, LabelEntry, Network, NetworkPort, Tunnel};
use hue_planes::{Kind, Settings, rofl};
use hue_wire::Mac;

/// Why a network's document binds it to software, because of tunnels, cached pointers or labels, if it does; `carries`: it carries tunnels of others
/// ([`carriers`]).
///
/// The card copies a frame to its own ports only, so the copies of a switch for its tunnels would be missing. And what comes by a tunnel
/// enters its network in software, whose meter would not count what the card's counts, so together they would let twice the limit
/// pass (ADR 0067). Entries send frames as they are, and the card finds a tunnel by the MAC addresses that routes give (ADR 0076). Frames on
/// the card teach no pointers (ADR 0078), and stay as long as they are (ADR 0079).
#[must_use]
pub fn bound_to_software(network: &Network, carries: bool) -> Option<&'static str> {
    let has_tunnels = network.spec.ports.iter().any(|port| port.tunnel().is_some());
    if has_tunnels && Settings::of(network.spec.plane.kind).learning().is_some() {
        return Some("it is a switch with tunnels, into which the card cannot flood");
    }
    if has_tunnels && network.spec.plane.kind == Kind::Extract {
        return Some("its entries may send into tunnels, which those on the card cannot");
    }
    if network.spec.plane.kind == Kind::Mpls {
        if has_tunnels {
            return Some("its labels may be behind tunnels, into which those on the card cannot send");
        }
        let swaps = |entry: &LabelEntry| match &entry.action {
            LabelAction::Forward { labels, .. } => labels.len() == 1,
            LabelAction::Drop | LabelAction::Punt => true,
        };
        if !network.spec.labels.iter().all(swaps) {
            return Some("its entries push or pop labels, and those on the card only swap them");
        }
    }
    if network.spec.plane.kind == Kind::Rofl {
        if has_tunnels {
            return Some("its labels may be behind tunnels, into which those on the card cannot send");
        }
        let default = rofl::Settings::default().pointers_max();
        if network.spec.plane.pointers_max.unwrap_or(default) > 0 {
            return Some(
                "it caches pointers, which packets on the card cannot teach (pointers_max: 0 turns that off)",
            );
        }
    }
    let limited = network.spec.rate_limit.is_some() && (has_tunnels || carries);
    limited.then_some("its rate limit also counts what comes by tunnels, which the card does not see")
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
