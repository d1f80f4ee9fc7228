//! Checks across documents: duplicates, links, ports, ids.
//!
//! Flow: drafts of all files → **these checks** → typed state. Each check examines only valid parts, and
//! reports nothing if an invalid part could be the cause, so that one mistake causes one error.

mod extract;
mod mpls;
mod rofl;
mod tunnels;

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;

use hue_planes::{Keys, Kind, splice};
use hue_tables::{AnyPrefix, PolicyError, RouteBy};

use crate::address::InterfaceAddress;
use crate::decode::Cursor;
use crate::document::{Items, NetworkDraft, NodeDraft, gateways, has_whole_ports};
use crate::error::{did_you_mean, one_of};
use crate::limits;
use crate::links::Links;
use crate::tunnel::{Mtus, Tunnel};
use crate::types::{Name, NetworkPort, NodePort, On, Plane, Select, Target};

/// The first place of each unique item.
struct Seen<'t, K>(HashMap<K, Cursor<'t>>);

impl<'t, K: Hash + Eq> Seen<'t, K> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    /// Stores `key`. Returns its first place if it was stored before.
    fn insert(&mut self, key: K, at: Cursor<'t>) -> Option<&Cursor<'t>> {
        match self.0.entry(key) {
            std::collections::hash_map::Entry::Occupied(first) => Some(first.into_mut()),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(at);
                None
            }
        }
    }
}

/// Reports a duplicate.
fn duplicate(at: &Cursor<'_>, first: &Cursor<'_>, found: String, expected: &str) {
    at.fault(
        format!("duplicate {found}"),
        expected,
        Some(format!("first used in {}", first.location_for(at))),
    );
}

/// Name of the loopback interface in every network namespace.
const LOOPBACK: &str = "lo";

/// Which rules apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rules {
    /// Those for new documents.
    All,
    /// Those for new documents of a desired state that has others too: what they refer to may be there.
    Some,
    /// Those for documents that an earlier version may have accepted.
    Accepted,
}

/// Runs all checks.
pub(crate) fn all(nodes: &[NodeDraft<'_>], networks: &[NetworkDraft<'_>], rules: Rules) {
    if let [first, others @ ..] = nodes {
        for other in others {
            let hint = Some(format!("first in {}", first.at.location_for(&other.at)));
            other.at.fault("a second Node", "at most one Node", hint);
        }
    }
    for draft in nodes {
        node(draft);
        card(draft);
        nics(draft, networks);
    }
    names_and_ids(networks);
    for network in networks {
        virtual_ports(network);
        select_of_kind(network);
        links(network);
        let known = Known::new(network);
        neighbours(network, known.as_ref());
        routes(network, known.as_ref());
        policies_fit(network, known.as_ref());
        burst_bits(network);
        static_macs(network, known.as_ref());
        extract::entries(network, known.as_ref());
        rofl::flat_labels(network, known.as_ref());
        mpls::entries(network, known.as_ref());
    }
    physical_ports(nodes, networks);
    shared_ports(networks);
    tunnels::all(networks, rules);
    if rules != Rules::Accepted {
        loopback(nodes, networks);
    }
}

fn node(node: &NodeDraft<'_>) {
    let mut seen = Seen::new();
    for (port, at) in all_ports(node) {
        if let Some(first) = seen.insert(port.name.clone(), at.clone()) {
            duplicate(&at, first, format!("port \"{}\"", port.name), "a unique name");
        }
        reserved(&port.name, &at);
    }
    let (ports, links) = (node.ports.list.len(), node.links.list.len());
    let room = limits::NODE_PORTS_MAX.saturating_sub(ports) / 2;
    if let Some(beyond) = node.links.list.get(room) {
        let found = format!("{ports} ports and {links} links, each with two ports");
        beyond.at.fault(found, format!("at most {} ports", limits::NODE_PORTS_MAX), None);
    }
    let mut interfaces: HashMap<&str, (&Name, Cursor<'_>)> = HashMap::new();
    for (port, at) in present(&node.ports) {
        let at = at.field_or_self("interface");
        let (name, first) = interfaces.entry(port.interface()).or_insert((&port.name, at.clone()));
        // If two ports have the same name, only the name is reported.
        if **name != port.name {
            duplicate(&at, first, format!("interface \"{}\"", port.interface()), "a unique interface");
        }
    }
}

/// The ports and NICs of a card are ports of the node, all different, and each NIC belongs to one port of the
/// card.
fn card(node: &NodeDraft<'_>) {
    let Some(card) = &node.card else { return };
    let ports: Vec<NodePort> = all_ports(node).into_iter().map(|(port, _)| port).collect();
    let mut seen = Seen::new();
    if let Some(one_more) = card.nics.list.get(card.ports.list.len()).filter(|_| card.ports.complete) {
        let count = card.nics.list.len();
        let expected = format!("at most {}: one for each port of the card", card.ports.list.len());
        one_more.at.fault(format!("{count} ports"), expected, None);
    }
    for (name, at) in present(&card.ports).chain(present(&card.nics)) {
        if let Some(first) = seen.insert(name.as_str(), at.clone()) {
            duplicate(at, first, format!("port \"{name}\""), "a unique port");
        }
        if knows_ports(node)
            && let Some(port) = known_port(&ports, name, at)
            && port.peer.is_some()
            && !card.is_twin()
        {
            let found = format!("port \"{name}\", an end of a link inside the node");
            let hint = "to join two ports of a card, connect them by a cable".to_owned();
            at.fault(found, "a port with an interface", Some(hint));
        }
    }
    for (name, at) in present(&card.nics) {
        if ports.iter().any(|port| port.name == *name && port.peer.is_some()) {
            let found = format!("port \"{name}\", an end of a link inside the node");
            at.fault(found, "a port with an interface", None);
        }
    }
}

/// The node's ports and the ends of its links, with the places of their names.
fn all_ports<'t>(node: &NodeDraft<'t>) -> Vec<(NodePort, Cursor<'t>)> {
    let own = present(&node.ports).map(|(port, at)| (port.clone(), at.field_or_self("name")));
    let ends = present(&node.links).flat_map(|(link, at)| {
        let ends = at.field_or_self("ends");
        link.ports().enumerate().map(move |(index, port)| (port, ends.entry_or_self(index)))
    });
    own.chain(ends).collect()
}

/// Whether all ports of the node were valid.
fn knows_ports(node: &NodeDraft<'_>) -> bool {
    node.ports.complete && node.links.complete
}

/// A NIC beside a port of the card has no networks of its own. Networks on the card's port use it with the
/// companion of their MAC address. If the MAC addresses of two networks were companions, one would get frames
/// of the other.
fn nics(node: &NodeDraft<'_>, networks: &[NetworkDraft<'_>]) {
    let Some(card) = &node.card else { return };
    let fronts: HashMap<&str, &str> = present(&card.nics)
        .zip(present(&card.ports))
        .map(|((nic, _), (front, _))| (nic.as_str(), front.as_str()))
        .collect();
    let mut seen = Seen::new();
    for (port, physical, at) in networks.iter().flat_map(|network| on_ports(network)) {
        let field = at.field_or_self("port");
        if let Some(front) = fronts.get(physical.as_str()) {
            let found = format!("port \"{physical}\", which is the NIC of \"{front}\"");
            field.fault(found, format!("\"{front}\": its networks use both"), None);
        }
        if !fronts.values().any(|front| *front == physical.as_str()) {
            continue;
        }
        let mac = at.field_or_self("mac");
        let found = format!("MAC {} on port \"{physical}\"", port.mac);
        if let Some(first) = seen.0.get(&(physical.as_str(), port.mac.companion().0)) {
            let hint = format!(
                "on the NIC, this address belongs to the port in {1}, whose own address is {0}",
                port.mac.companion(),
                first.location_for(&mac)
            );
            mac.fault(found, "an address that differs in more than bit 0x40 of the first byte", Some(hint));
        }
        seen.insert((physical.as_str(), port.mac.0), mac);
    }
}

/// The virtual ports on physical ports, with those and their places.
fn on_ports<'a, 't>(
    network: &'a NetworkDraft<'t>,
) -> impl Iterator<Item = (&'a NetworkPort, &'a Name, &'a Cursor<'t>)> {
    present(&network.ports).filter_map(|(port, at)| Some((port, port.physical()?, at)))
}

/// Finds a port of the node, or reports that it does not exist.
fn known_port(ports: &[NodePort], name: &Name, at: &Cursor<'_>) -> Option<NodePort> {
    let found = ports.iter().find(|port| port.name == *name).cloned();
    if found.is_none() {
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let hint = did_you_mean(name.as_str(), names.iter().copied());
        at.fault(format!("unknown port \"{name}\""), format!("a port of the node: {}", one_of(names)), hint);
    }
    found
}

/// The loopback is not a link: its frames have no neighbours. Documents with it were accepted once, and the port stayed
/// down.
fn loopback(nodes: &[NodeDraft<'_>], networks: &[NetworkDraft<'_>]) {
    let refuse = |name: &str, at: &Cursor<'_>| {
        if name == LOOPBACK {
            let hint = "the loopback has no Ethernet segment; use one end of a veth pair".to_owned();
            at.fault(format!("interface \"{name}\""), "an Ethernet interface", Some(hint));
        }
    };
    for (port, at) in nodes.iter().flat_map(|node| present(&node.ports)) {
        let field = if at.field("interface").is_some() { "interface" } else { "name" };
        refuse(port.interface(), &at.field_or_self(field));
    }
    // Without a Node document, ports are interfaces of the same name.
    if nodes.is_empty() {
        for (_, physical, at) in networks.iter().flat_map(|network| on_ports(network)) {
            refuse(physical.as_str(), &at.field_or_self("port"));
        }
    }
}

/// `hueplane run` writes a capture for each port into one folder, and also `punt.pcap`.
fn reserved(name: &Name, at: &Cursor<'_>) {
    if name.as_str() == "punt" {
        at.fault(
            "the name \"punt\"",
            "another name",
            Some("this name is reserved for punted packets".to_owned()),
        );
    }
}

/// The valid entries of a list, with their places.
fn present<'a, 't, T>(items: &'a Items<'t, T>) -> impl Iterator<Item = (&'a T, &'a Cursor<'t>)> {
    items.list.iter().filter_map(|item| item.value.as_ref().map(|value| (value, &item.at)))
}

fn names_and_ids(networks: &[NetworkDraft<'_>]) {
    let (mut names, mut ids) = (Seen::new(), Seen::new());
    for network in networks {
        if let Some(name) = &network.name {
            let at = network.at.field_or_self("metadata").field_or_self("name");
            if let Some(first) = names.insert(name.as_str(), at.clone()) {
                duplicate(&at, first, format!("network \"{name}\""), "a unique name");
            }
        }
        if let Some(vid) = network.vid {
            let at = network.spec.field_or_self("vid");
            if let Some(first) = ids.insert(vid, at.clone()) {
                duplicate(&at, first, format!("vid {vid}"), "a unique id");
            }
        }
    }
    if let Some(beyond) = networks.get(limits::NETWORKS_MAX) {
        let found = format!("{} networks", networks.len());
        beyond.at.fault(found, format!("at most {}", limits::NETWORKS_MAX), None);
    }
}

fn virtual_ports(network: &NetworkDraft<'_>) {
    let mut seen = Seen::new();
    for (port, at) in present(&network.ports) {
        let at = at.field_or_self("name");
        if let Some(first) = seen.insert(port.name.as_str(), at.clone()) {
            duplicate(&at, first, format!("virtual port \"{}\"", port.name), "a unique name");
        }
    }
}

/// Selection by inner destination reads IPv4 headers.
fn select_of_kind(network: &NetworkDraft<'_>) {
    let Some(kind) = network.plane.as_ref().map(|plane| plane.kind) else { return };
    let takes_all =
        matches!(kind.limits().keys, Keys::Mac | Keys::Bits | Keys::Label) && has_whole_ports(kind);
    if takes_all && !matches!(network.select, None | Some(Select::Port)) {
        let at = network.spec.field_or_self("select").field_or_self("by");
        let what = if kind == Kind::L2 { "a switch" } else { "such a network" };
        let hint = format!("{what} takes frames to all destinations, so each of its ports is its own");
        let hint = Some(hint);
        at.fault(
            format!("{} with kind {}", at.description(), kind.name()),
            "port, which is the default of this kind",
            hint,
        );
    } else if kind != Kind::Ipv4 && matches!(network.select, Some(Select::Inner(_))) {
        let at = network.spec.field_or_self("select").field_or_self("by");
        let hint = Some("inner is the IPv4 destination of a packet".to_owned());
        at.fault(format!("inner with kind {}", kind.name()), "mac or port", hint);
    }
}

/// Each prefix is the link of only one virtual port.
fn links(network: &NetworkDraft<'_>) {
    let mut seen: HashMap<AnyPrefix, (&str, Cursor<'_>)> = HashMap::new();
    for (port, at) in present(&network.ports) {
        let list = at.field_or_self("addresses");
        for (index, own) in port.addresses.iter().enumerate() {
            let at = list.entry_or_self(index);
            let here = (port.name.as_str(), at.clone());
            let (other, first) = seen.entry(own.link()).or_insert(here);
            if *other != port.name.as_str() {
                let found = format!("{own}, whose link {} is already the link of \"{other}\"", own.link());
                at.fault(found, "a unique prefix", Some(format!("first in {}", first.location_for(&at))));
            }
        }
    }
}

/// A network's ports and links, if all its ports are valid.
struct Known {
    ports: Vec<NetworkPort>,
    links: Links,
    /// Index of each virtual port.
    index: HashMap<Name, usize>,
    /// Prefixes that always belong to the network itself, whatever its routes, with a description.
    own: HashMap<AnyPrefix, String>,
}

impl Known {
    fn new(network: &NetworkDraft<'_>) -> Option<Self> {
        if !network.ports.complete {
            return None;
        }
        let ports: Vec<NetworkPort> = present(&network.ports).map(|(port, _)| port.clone()).collect();
        let links = Links::new(&ports, present(&network.routes).map(|(route, _)| route));
        let index = ports.iter().zip(0..).map(|(port, index)| (port.name.clone(), index)).collect();
        let mut own = HashMap::new();
        for port in &ports {
            for address in &port.addresses {
                let mut add = |prefix, what: &str| {
                    own.entry(prefix).or_insert_with(|| format!("{what} of \"{}\"", port.name));
                };
                add(AnyPrefix::host(address.address), "the address");
                if let Some(last) = address.broadcast() {
                    add(AnyPrefix::host(last), "the broadcast address");
                }
                if let Some(first) = address.anycast() {
                    add(AnyPrefix::host(first), "the subnet-router anycast address");
                }
                if address.network().is_some() {
                    add(address.link(), "the link");
                }
            }
        }
        Some(Self { ports, links, index, own })
    }

    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.ports.iter().map(|port| port.name.as_str())
    }

    /// Index of the virtual port with this name; reports it if it does not exist.
    fn port(&self, name: &Name, at: &Cursor<'_>) -> Option<usize> {
        let index = self.index.get(name).copied();
        if index.is_none() {
            let names: BTreeSet<&str> = self.names().collect();
            let found = format!("unknown virtual port \"{name}\"");
            at.fault(found, one_of(names), did_you_mean(name.as_str(), self.names()));
        }
        index
    }

    /// Description of an address on a link: of one virtual port, or of any.
    fn expected(&self, vport: Option<usize>) -> String {
        let wanted = |index: &usize| vport.is_none_or(|vport| vport == *index);
        let mut links = Vec::new();
        for (_, port) in self.ports.iter().enumerate().filter(|(index, _)| wanted(index)) {
            for own in port.addresses.iter().filter(|own| own.has_link()) {
                links.push(format!("{} ({})", own.link(), port.name));
            }
        }
        links.dedup();
        let whose = match vport.and_then(|vport| self.ports.get(vport)) {
            Some(port) => format!("\"{}\"", port.name),
            None => "the network".to_owned(),
        };
        match links.as_slice() {
            [] => format!("an address on a link, but {whose} has no link"),
            links => format!("an address on a link of {whose}: {}", one_of(links.iter().map(String::as_str))),
        }
    }

    /// Reports an address that no host on a link (of `vport`, if given) can have.
    fn on_link(&self, address: IpAddr, vport: Option<usize>, at: &Cursor<'_>, what: &str) {
        if let Some(own) = self.own.get(&AnyPrefix::host(address)) {
            at.fault(format!("{address}, {own}"), format!("the address of {what}"), None);
            return;
        }
        let link = match (self.links.of(address), vport) {
            (Some(link), None) => link,
            (Some(link), Some(vport)) if link.vport == vport => link,
            (Some(link), _) => {
                let port = self.ports.get(link.vport).map_or("a unique port", |port| port.name.as_str());
                let found = format!("{address}, which is on link {} of \"{port}\"", link.prefix);
                at.fault(found, self.expected(vport), None);
                return;
            }
            (None, _) => {
                at.fault(format!("{address}, which is not on any link"), self.expected(vport), None);
                return;
            }
        };
        if link.own.and_then(InterfaceAddress::network) == Some(address) {
            let found = format!("{address}, the first address of {}", link.prefix);
            at.fault(found, format!("the address of {what}"), None);
        }
    }
}

fn neighbours(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let mut seen = Seen::new();
    for (neighbour, at) in present(&network.neighbours) {
        let address = at.field_or_self("address");
        let key = (neighbour.port.as_str(), neighbour.address);
        if let Some(first) = seen.insert(key, address.clone()) {
            let found = format!("neighbour {} of \"{}\"", neighbour.address, neighbour.port);
            duplicate(&address, first, found, "a unique address");
            continue;
        }
        let Some(known) = known else { continue };
        let field = at.field_or_self("port");
        if let Some(vport) = known.port(&neighbour.port, &field) {
            if known.ports.get(vport).and_then(NetworkPort::tunnel).is_some_and(Tunnel::is_ip) {
                let found = format!("a neighbour at \"{}\", a tunnel of type ipip", neighbour.port);
                let hint = "an IP tunnel leads to one router only, and has no MAC addresses".to_owned();
                field.fault(found, "a port with MAC addresses", Some(hint));
            }
            known.on_link(neighbour.address, Some(vport), &address, "a neighbour");
        }
    }
}

fn routes(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let mut seen = Seen::new();
    let by = network.plane.as_ref().map(|plane| plane.route_by);
    for (route, at) in present(&network.routes) {
        let to = at.field_or_self("to");
        if let Some(first) = seen.insert((route.from, route.to, route.slice), to.clone()) {
            match route.from {
                None => duplicate(&to, first, format!("route to {}", route.to), "a unique destination"),
                Some(from) => {
                    let found = format!("route from {from} to {}", route.to);
                    duplicate(
                        &at.field_or_self("from"),
                        first,
                        found,
                        "a unique pair of source and destination",
                    );
                }
            }
        }
        if let (Some(plane), Some(field)) = (&network.plane, at.field("slice")) {
            of_slice(route.slice, plane, &field);
        }
        if let (Some(from), Some(by)) = (route.from, by) {
            by_source(from, by, at);
        }
        if let Some(reserved) = reserved_prefix(route.to) {
            let hint = Some(format!("{reserved} are reserved for the router itself"));
            to.fault(route.to.to_string(), "a unicast prefix", hint);
        }
        let mut members = Seen::new();
        let is_several = matches!(route.target, Target::Vias(_));
        for (via, field) in gateways(&route.target, at).into_iter().filter(|_| is_several) {
            if let Some(first) = members.insert(via, field.clone()) {
                duplicate(
                    &field,
                    first,
                    format!("gateway {via}"),
                    "each gateway once; weights say how much it takes",
                );
            }
        }
        let Some(known) = known else { continue };
        // The route would never be used: the network's own addresses and links have priority.
        if let Some(own) = known.own.get(&route.to).filter(|_| route.to.len() > 0) {
            to.fault(
                format!("{}, {own}", route.to),
                "a destination outside the network's own addresses and links",
                None,
            );
        }
        match &route.target {
            Target::Via(_) | Target::Vias(_) => {
                for (via, field) in gateways(&route.target, at) {
                    known.on_link(via, None, &field, "another router");
                }
            }
            Target::Port(name) => drop(known.port(name, &at.field_or_self("port"))),
        }
    }
}

/// A route of a slice is for a network that has this slice.
fn of_slice(slice: u8, plane: &Plane, field: &Cursor<'_>) {
    let slices = plane.slices.unwrap_or(splice::SLICES.default);
    if plane.kind != Kind::Splice {
        field.fault(
            format!("slice with kind {}", plane.kind.name()),
            "none: only kind splice has several tables",
            None,
        );
    } else if slice >= slices {
        let hint = format!("plane.slices is {slices}, and the first slice is 0");
        field.fault(format!("slice {slice}"), format!("a number from 0 to {}", slices - 1), Some(hint));
    }
}

/// A route by source is for a network that routes by source, and says no more than that uses.
fn by_source(from: AnyPrefix, by: RouteBy, at: &Cursor<'_>) {
    let field = at.field_or_self("from");
    if by.is_default() {
        let hint = "set route_by of the plane to source or source_destination".to_owned();
        field.fault(
            "\"from\" with route_by destination",
            "none: routes are chosen by destination",
            Some(hint),
        );
    } else if from.len() == 0 {
        let hint = "a route for all sources has \"to\" only".to_owned();
        field.fault(format!("{from}, all sources"), "a longer prefix", Some(hint));
    } else if let (RouteBy::Source, Some(to)) = (by, at.field("to")) {
        let hint = "route_by source_destination uses both".to_owned();
        to.fault("both \"from\" and \"to\" with route_by source", "one of them", Some(hint));
    }
}

/// What the plane has room for; other faults of routes by source are found one by one.
fn policies_fit(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let (Some(plane), Some(known)) = (&network.plane, known) else { return };
    if plane.route_by.is_default() || !network.routes.complete {
        return;
    }
    let policies =
        crate::policies(plane.route_by, &known.ports, present(&network.routes).map(|(route, _)| route));
    let fault = match plane.kind.limits().keys {
        Keys::V4 => policies.table::<u32>().err(),
        Keys::V6 => policies.table::<u128>().err(),
        Keys::Dual | Keys::Slices | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => None,
    };
    if let Some(fault @ (PolicyError::Count(_) | PolicyError::Pairs { .. })) = fault {
        network.spec.field_or_self("routes").fault(fault.to_string(), "fewer routes by source", None);
    }
}

/// What a route cannot lead to, because the plane passes it to the router itself.
fn reserved_prefix(to: AnyPrefix) -> Option<&'static str> {
    match to.addr() {
        IpAddr::V4(first) if first.is_broadcast() || first.is_multicast() && to.len() >= 4 => {
            Some("224.0.0.0/4 and 255.255.255.255")
        }
        IpAddr::V6(first)
            if first.is_multicast() && to.len() >= 8 || first.is_unicast_link_local() && to.len() >= 10 =>
        {
            Some("ff00::/8 and fe80::/10")
        }
        _ => None,
    }
}

/// Static MAC addresses are different, and at ports of the network; with the learnt ones they fit the table.
fn static_macs(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let mut seen = Seen::new();
    for (one, at) in present(&network.static_macs) {
        let mac = at.field_or_self("mac");
        if let Some(first) = seen.insert(one.mac.0, mac.clone()) {
            duplicate(&mac, first, format!("MAC {}", one.mac), "a unique MAC");
        }
        if let Some(known) = known {
            known.port(&one.port, &at.field_or_self("port"));
        }
    }
}

/// A switch sends a frame to all ports or to none, so all of its ports carry the same packets.
fn same_mtu(network: &NetworkDraft<'_>, mtus: &Mtus<'_>) {
    if network.plane.as_ref().is_none_or(|plane| plane.kind != Kind::L2) {
        return;
    }
    let mut ports = present(&network.ports).filter_map(|(port, at)| Some((port, at, mtus.of(port)?)));
    let Some((first, _, mtu)) = ports.next() else { return };
    if let Some((port, at, other)) = ports.find(|(.., other)| *other != mtu) {
        let field = at.field_or_self(mtu_field(port));
        let hint = format!("port \"{}\" has {mtu}; set the mtu of both", first.name);
        field.fault(format!("an MTU of {other}"), "the same MTU at all ports of a switch", Some(hint));
    }
}

/// The field of a virtual port that its MTU comes from.
fn mtu_field(port: &NetworkPort) -> &'static str {
    match &port.on {
        _ if port.mtu.is_some() => "mtu",
        On::Port(_) => "port",
        On::Tunnel(_) => "over",
    }
}

/// A bucket of bits must hold a frame of the largest MTU; otherwise such frames would never pass.
fn burst_bits(network: &NetworkDraft<'_>) {
    let Some(bits) = network.rate_limit.and_then(|limit| limit.bits) else { return };
    let mtus = present(&network.ports).map(|(port, _)| port.mtu.unwrap_or(limits::MTU_DEFAULT));
    let Some(mtu) = mtus.max() else { return };
    const ETHERNET_BYTES: u64 = 14;
    let least = (u64::from(mtu) + ETHERNET_BYTES) * 8;
    if bits.burst < least {
        let at = network.spec.field_or_self("rate_limit").field_or_self("burst_bits");
        let hint = Some(format!("a frame with {mtu} bytes of IP packet"));
        at.fault(at.description(), format!("at least {least}bit"), hint);
    }
}

fn physical_ports(nodes: &[NodeDraft<'_>], networks: &[NetworkDraft<'_>]) {
    let known: Vec<NodePort> = nodes.first().into_iter().flat_map(all_ports).map(|(port, _)| port).collect();
    let (mut implied, mut on_ends) = (BTreeSet::new(), Seen::new());
    let by_name = known.iter().map(|port| (port.name.as_str(), port.mtu)).collect();
    let physical = match nodes.first() {
        Some(_) => by_name,
        None => networks
            .iter()
            .flat_map(|network| on_ports(network))
            .map(|(_, name, _)| (name.as_str(), limits::MTU_DEFAULT))
            .collect(),
    };
    let complete = networks.iter().filter(|network| network.ports.complete).filter_map(|network| {
        let ports = present(&network.ports).map(|(port, _)| port).collect();
        Some((network.name.as_ref()?.as_str(), ports))
    });
    let mtus = Mtus::new(physical, complete);
    for network in networks {
        same_mtu(network, &mtus);
        let kind = network.plane.as_ref().map(|plane| plane.kind);
        for (port, at) in present(&network.ports) {
            if port.tunnel().is_some() {
                mtu_fits(port, &mtus, kind, at);
            }
        }
    }
    let all = networks.iter().flat_map(|network| {
        let kind = network.plane.as_ref().map(|plane| plane.kind);
        on_ports(network).map(move |(port, physical, at)| (kind, port, physical, at))
    });
    for (kind, port, name, at) in all {
        let field = at.field_or_self("port");
        match nodes.first() {
            None => {
                reserved(name, &field);
                if implied.insert(name.as_str()) && implied.len() == limits::NODE_PORTS_MAX + 1 {
                    field.fault("another physical port", format!("at most {}", limits::NODE_PORTS_MAX), None);
                }
                mtu_fits(port, &mtus, kind, at);
            }
            Some(node) if !knows_ports(node) => {}
            Some(_) => {
                let Some(physical) = known_port(&known, name, &field) else { continue };
                mtu_fits(port, &mtus, kind, at);
                if physical.peer.is_some()
                    && let Some(first) = on_ends.insert(physical.name, field.clone())
                {
                    let found = format!("virtual port on \"{name}\", an end of a link inside the node");
                    duplicate(&field, first, found, "at most one virtual port on each end of a link");
                }
            }
        }
    }
}

/// The MTU of a virtual port is not below that of its kind, and not above what it is on.
fn mtu_fits(port: &NetworkPort, mtus: &Mtus<'_>, kind: Option<Kind>, at: &Cursor<'_>) {
    let Some(room) = mtus.room(port) else { return };
    let (own, least) = (port.mtu.unwrap_or(room), kind.map_or(0, |kind| kind.limits().mtu_bytes_min));
    if own < least {
        let what = kind.map_or("", Kind::name);
        let hint = Some(format!("every link of a network of kind {what} carries packets of {least} bytes"));
        at.field_or_self(mtu_field(port)).fault(
            format!("an MTU of {own}"),
            format!("at least {least}"),
            hint,
        );
    }
    if let Some(own) = port.mtu.filter(|own| *own > room) {
        let hint = match &port.on {
            On::Port(name) => format!("the MTU of port \"{name}\""),
            On::Tunnel(tunnel) => {
                let (over, extra) = (&tunnel.over, tunnel.overhead_bytes());
                format!("the ports of network \"{over}\" carry {}, and the tunnel adds {extra}", room + extra)
            }
        };
        at.field_or_self("mtu").fault(own.to_string(), format!("at most {room}"), Some(hint));
    }
}

/// Properties that must differ between virtual ports, of any networks, on one physical port:
///
/// - The MAC address, because it selects the network.
/// - The addresses, because the ports share one broadcast domain. Two routers with the same address would
///   both answer ARP requests, and neighbours would send to either.
/// - The claim on frames (`select`).
fn shared_ports(networks: &[NetworkDraft<'_>]) {
    let (mut macs, mut addresses, mut all, mut inner) = (Seen::new(), Seen::new(), Seen::new(), Seen::new());
    for network in networks {
        for (port, physical, at) in on_ports(network) {
            let physical = physical.as_str();
            let mac = at.field_or_self("mac");
            if let Some(first) = macs.insert((physical, port.mac.0), mac.clone()) {
                duplicate(&mac, first, format!("MAC {} on port \"{physical}\"", port.mac), "a unique MAC");
            }
            let list = at.field_or_self("addresses");
            for (index, own) in port.addresses.iter().enumerate() {
                let at = list.entry_or_self(index);
                if let Some(first) = addresses.insert((physical, own.address), at.clone()) {
                    duplicate(
                        &at,
                        first,
                        format!("address {} on port \"{physical}\"", own.address),
                        "a unique address",
                    );
                }
            }
            let by = network.spec.field_or_self("select");
            match &network.select {
                Some(Select::Port) => {
                    if let Some(first) = all.insert(physical, at.clone()) {
                        let field = at.field_or_self("port");
                        let found = format!("claim on all frames of port \"{physical}\"");
                        duplicate(&field, first, found, "only one virtual port that selects by port");
                    }
                }
                Some(Select::Inner(prefixes)) => {
                    let list = by.field_or_self("prefixes");
                    for (index, prefix) in prefixes.iter().enumerate() {
                        let at = list.entry_or_self(index);
                        if let Some(first) = inner.insert((physical, *prefix), at.clone()) {
                            duplicate(
                                &at,
                                first,
                                format!("claim on {prefix} on port \"{physical}\""),
                                "a unique prefix",
                            );
                        }
                    }
                }
                Some(Select::Mac) | None => {}
            }
        }
    }
}
