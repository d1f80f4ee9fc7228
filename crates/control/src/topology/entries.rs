//! What networks without IP routers forward by, in the documents of a node: labels of kinds `rofl` and `mpls`, entries of kind `extract`.
//!
//! Packets for a host follow the shortest path to its node, and each router has an entry for each host; so paths have no circles.
//! Switches learn, and programs know by themselves: they need none.

use std::fmt::Write;

use hue_intent::topology::labels;
use hue_planes::Kind;
use hue_wire::Mac;

use super::render::{Source, quoted};
use super::{On, Router, is_static};

/// Where packets to a host leave a node.
struct Way<'r> {
    /// The virtual port.
    port: &'r str,
    /// Who gets them there: the next router, or the host.
    neighbour: Mac,
    /// Whether it is the host.
    is_host: bool,
}

/// Writes the entries of a network on a node.
pub(super) fn add(from: Source<'_>, router: &Router, out: &mut String) {
    let Source { maker, node, .. } = from;
    let network = &maker.spec.networks[router.network];
    let list = match network.kind {
        Kind::Rofl => "flat_labels",
        Kind::Mpls => "labels",
        Kind::Extract => "entries",
        _ => return,
    };
    if !is_static(network) {
        return;
    }
    let mut text = String::new();
    if network.kind == Kind::Rofl {
        routers_labels(from, router, &mut text);
    }
    for (number, (at, port)) in maker.host_ports[router.network].iter().enumerate() {
        let way = if *at == node {
            let neighbour = maker.host_mac(network, &network.hosts[number]);
            Some(Way { port: &maker.ports[node][*port].name, neighbour, is_host: true })
        } else {
            to_node(from, router, *at)
        };
        let (Some(way), Some(label)) = (way, maker.host_label(network, number)) else { continue };
        entry(network.kind, &label, &way, &mut text);
    }
    if !text.is_empty() {
        let _ = write!(out, "  {list}:\n{text}");
    }
}

/// The labels of all routers.
fn routers_labels(from: Source<'_>, router: &Router, out: &mut String) {
    let Source { maker, node, .. } = from;
    let network = &maker.spec.networks[router.network];
    for other in maker.spec.nodes_of(network) {
        let label = labels::router(maker.topology, network, maker.spec.nodes[other].name.as_str());
        if other == node {
            let _ = writeln!(out, "    - {{label: \"{label}\", own: true}}");
        } else if let Some(way) = to_node(from, router, other) {
            entry(network.kind, &label.to_string(), &way, out);
        }
    }
}

/// The way to another node: the first link of the shortest path.
fn to_node<'r>(from: Source<'_>, router: &'r Router, to: usize) -> Option<Way<'r>> {
    let hop = (*from.hops[router.network].first()?.get(from.node)?.get(to)?)?;
    let (port, end) = router.ports.iter().find_map(|port| match &port.on {
        On::Link { link, end, .. } if *link == hop.link => Some((port, *end)),
        _ => None,
    })?;
    let neighbour = from.peer(router.network, hop.link, end)?.mac;
    Some(Way { port: &port.name, neighbour, is_host: false })
}

/// One entry, as its kind writes it.
fn entry(kind: Kind, label: &str, way: &Way<'_>, out: &mut String) {
    let (port, neighbour) = (quoted(way.port), way.neighbour);
    let _ = match (kind, way.is_host) {
        (Kind::Mpls, true) => {
            writeln!(out, "    - {{label: {label}, pop: true, port: {port}, neighbour: \"{neighbour}\"}}")
        }
        (Kind::Mpls, false) => {
            writeln!(out, "    - {{label: {label}, swap: {label}, port: {port}, neighbour: \"{neighbour}\"}}")
        }
        // Bits of the frame say where it goes: it stays as it is.
        (Kind::Extract, _) => writeln!(out, "    - {{match: \"{label}\", port: {port}}}"),
        (_, is_host) => {
            let resident = if is_host { ", resident: true" } else { "" };
            writeln!(out, "    - {{label: \"{label}\", port: {port}, neighbour: \"{neighbour}\"{resident}}}")
        }
    };
}
