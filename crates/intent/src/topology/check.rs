//! Checks across the fields of a topology: names that exist and are unique, links with something that carries them, networks
//! without a gap, addresses that suffice.
//!
//! Invariant: every error has the place of the value that is wrong, and of the other one if two contradict each other.

use std::collections::{BTreeSet, HashMap};

use hue_planes::Kind;
use hue_tables::AnyPrefix;

use super::paths::Graph;
use super::{ResolvedLink, TopologyNetwork, TopologySpec, TunnelType, Under, VirtualLink, addresses, kinds};
use crate::decode::Cursor;
use crate::error::{did_you_mean, one_of};
use crate::limits;
use crate::types::Name;

/// Runs all checks; `at` is the cursor of `spec`.
pub(super) fn all(at: &Cursor<'_>, spec: &TopologySpec) {
    let before = at.faults();
    let check = Check { at, spec };
    check.unique_names();
    check.ends_exist();
    for (place, network) in spec.networks.iter().enumerate() {
        check.members(place, network);
        check.virtual_links(place, network);
        kinds::of_network(&check.network(place), network);
        kinds::of_hosts(&check.network(place), network);
    }
    check.interfaces();
    check.ports();
    // The rest walks along links.
    if at.faults() > before {
        return;
    }
    check.carriers();
    if at.faults() > before {
        return;
    }
    for (place, network) in spec.networks.iter().enumerate() {
        check.connected(place, network);
        check.room(place, network);
        check.tunnels_twice(place);
    }
    check.overlaps();
    check.mtus();
    kinds::whole_ports(at, spec);
}

struct Check<'c, 't> {
    at: &'c Cursor<'t>,
    spec: &'c TopologySpec,
}

impl<'t> Check<'_, 't> {
    /// The cursor of an entry of a list of `spec`.
    fn entry(&self, list: &str, place: usize) -> Cursor<'t> {
        self.at.field_or_self(list).entry_or_self(place)
    }

    fn network(&self, place: usize) -> Cursor<'t> {
        self.entry("networks", place)
    }

    /// The cursor of a link of a network; without a list of links, of the network.
    fn virtual_link(&self, network: usize, link: usize) -> Cursor<'t> {
        self.network(network).field_or_self("links").entry_or_self(link)
    }

    fn unique_names(&self) {
        let spec = self.spec;
        let names = |list: &str, count: usize| -> Vec<Cursor<'t>> {
            (0..count).map(|place| self.entry(list, place).field_or_self("name")).collect()
        };
        let nodes = spec.nodes.iter().map(|node| &node.name);
        unique(nodes.zip(names("nodes", spec.nodes.len())), "node");
        let networks = spec.networks.iter().map(|network| &network.name);
        unique(networks.zip(names("networks", spec.networks.len())), "network");
        let hosts = spec.networks.iter().enumerate().flat_map(|(place, network)| {
            let list = self.network(place).field_or_self("hosts");
            let at = move |host: usize| list.entry_or_self(host).field_or_self("name");
            network.hosts.iter().enumerate().map(move |(host, one)| (&one.name, at(host)))
        });
        unique(hosts, "host");
    }

    /// Reports a name that is not one of `known`.
    fn known<'n>(
        &self,
        at: &Cursor<'_>,
        name: &Name,
        known: impl Iterator<Item = &'n Name>,
        what: &str,
    ) -> bool {
        let known: Vec<&str> = known.map(Name::as_str).collect();
        let found = known.contains(&name.as_str());
        if !found {
            let hint = did_you_mean(name.as_str(), known.iter().copied());
            at.fault(format!("unknown {what} \"{name}\""), one_of(known), hint);
        }
        found
    }

    fn node_names(&self) -> impl Iterator<Item = &Name> {
        self.spec.nodes.iter().map(|node| &node.name)
    }

    fn ends_exist(&self) {
        for (place, link) in self.spec.links.iter().enumerate() {
            let ends = self.entry("links", place).field_or_self("ends");
            for (end, name) in link.ends.iter().enumerate() {
                self.known(&ends.entry_or_self(end), name, self.node_names(), "node");
            }
        }
    }

    /// Nodes and hosts of a network.
    fn members(&self, place: usize, network: &TopologyNetwork) {
        let at = self.network(place);
        let list = at.field_or_self("nodes");
        if let Some(nodes) = &network.nodes {
            if nodes.is_empty() {
                list.fault("no nodes", "at least one, or no field nodes", None);
            }
            unique(nodes.iter().enumerate().map(|(node, name)| (name, list.entry_or_self(node))), "node");
            for (node, name) in nodes.iter().enumerate() {
                self.known(&list.entry_or_self(node), name, self.node_names(), "node");
            }
        }
        for (host, one) in network.hosts.iter().enumerate() {
            let at = at.field_or_self("hosts").entry_or_self(host).field_or_self("node");
            self.member(&at, network, &one.node);
        }
    }

    /// Reports a node that is none, or that a network is not on.
    fn member(&self, at: &Cursor<'_>, network: &TopologyNetwork, node: &Name) -> bool {
        if !self.known(at, node, self.node_names(), "node") {
            return false;
        }
        match &network.nodes {
            Some(nodes) if !nodes.contains(node) => {
                let found = format!("node \"{node}\", which network \"{}\" is not on", network.name);
                at.fault(found, one_of(nodes.iter().map(Name::as_str)), None);
                false
            }
            _ => true,
        }
    }

    fn virtual_links(&self, place: usize, network: &TopologyNetwork) {
        for (number, link) in network.links.iter().flatten().enumerate() {
            let at = self.virtual_link(place, number);
            let ends = at.field_or_self("ends");
            let mut good = true;
            for (end, node) in link.ends.iter().enumerate() {
                good &= self.member(&ends.entry_or_self(end), network, node);
            }
            match (&link.tunnel, &link.over) {
                (Some(kind), Some(over)) => self.over(&at, network, link, *kind, over),
                _ if good => self.physical(&ends, network, number, link),
                _ => {}
            }
        }
    }

    /// The k-th direct link between two nodes needs a k-th physical one.
    fn physical(&self, at: &Cursor<'_>, network: &TopologyNetwork, number: usize, link: &VirtualLink) {
        let same = |ends: &[Name; 2]| super::same(ends, &link.ends);
        let own = network.links.iter().flatten().take(number + 1);
        let wanted = own.filter(|one| one.tunnel.is_none() && same(&one.ends)).count();
        let there = self.spec.links.iter().filter(|one| same(&one.ends)).count();
        if wanted > there {
            let [one, other] = &link.ends;
            let found = match there {
                0 => format!("a link of nodes without a physical one: \"{one}\" and \"{other}\""),
                _ => format!("{wanted} links between \"{one}\" and \"{other}\", with {there} physical"),
            };
            let hint = "a tunnel joins nodes without a physical link: tunnel: vxlan, over: NETWORK";
            at.fault(found, "a physical link for each link without a tunnel", Some(hint.to_owned()));
        }
    }

    fn over(
        &self,
        at: &Cursor<'_>,
        network: &TopologyNetwork,
        link: &VirtualLink,
        kind: TunnelType,
        over: &Name,
    ) {
        let at_over = at.field_or_self("over");
        let names = self.spec.networks.iter().map(|network| &network.name);
        if !self.known(&at_over, over, names, "network") {
            return;
        }
        if *over == network.name {
            at_over.fault("the network itself", "another network that carries the tunnel", None);
            return;
        }
        if kind == TunnelType::Ipip && !network.kind.limits().keys.has_routes() {
            let found = format!("ipip for a network of kind {}", network.kind.name());
            at.field_or_self("tunnel").fault(found, "vxlan: its packets contain whole frames", None);
        }
        let Some(carrier) = self.spec.networks.iter().find(|one| one.name == *over) else { return };
        if !carrier.kind.limits().keys.has_routes() {
            let found = format!("network \"{over}\" of kind {}", carrier.kind.name());
            at_over.fault(
                found,
                "a network whose routes hueplane has: kind ipv4, ipv6, dual or splice",
                None,
            );
        }
        for node in &link.ends {
            if carrier.nodes.as_ref().is_some_and(|nodes| !nodes.contains(node)) {
                let found = format!("network \"{over}\", which is not on node \"{node}\"");
                at_over.fault(found, "a network on both nodes", None);
            }
        }
    }

    /// No interface of a node is used twice.
    fn interfaces(&self) {
        let mut used: Vec<(&Name, &str, Cursor<'t>)> = Vec::new();
        for (place, link) in self.spec.links.iter().enumerate() {
            let Some(interfaces) = &link.interfaces else { continue };
            let list = self.entry("links", place).field_or_self("interfaces");
            let ends = link.ends.iter().zip(interfaces).enumerate();
            used.extend(ends.map(|(end, (node, one))| (node, one.as_str(), list.entry_or_self(end))));
        }
        for (place, network) in self.spec.networks.iter().enumerate() {
            for (number, host) in network.hosts.iter().enumerate() {
                let Some(interface) = &host.interface else { continue };
                let at = self.network(place).field_or_self("hosts").entry_or_self(number);
                used.push((&host.node, interface.as_str(), at.field_or_self("interface")));
            }
        }
        let mut seen: HashMap<(&Name, &str), Cursor<'t>> = HashMap::new();
        for (node, interface, at) in used {
            match seen.get(&(node, interface)) {
                Some(first) => {
                    let hint = Some(format!("first used in {}", first.location_for(&at)));
                    let found = format!("duplicate interface \"{interface}\" of node \"{node}\"");
                    at.fault(found, "a unique interface", hint);
                }
                None => drop(seen.insert((node, interface), at)),
            }
        }
    }

    /// A node has a limited number of ports.
    fn ports(&self) {
        let mut ports: HashMap<&Name, usize> = HashMap::new();
        let links = self.spec.links.iter().flat_map(|link| &link.ends);
        let hosts = self.spec.networks.iter().flat_map(|network| &network.hosts).map(|host| &host.node);
        for node in links.chain(hosts) {
            *ports.entry(node).or_default() += 1;
        }
        for (place, node) in self.spec.nodes.iter().enumerate() {
            let count = ports.get(&node.name).copied().unwrap_or_default();
            if count > limits::NODE_PORTS_MAX {
                let found = format!("a node with {count} links and hosts");
                let expected = format!("at most {}", limits::NODE_PORTS_MAX);
                self.entry("nodes", place).fault(found, expected, None);
            }
        }
    }

    /// No network carries itself, over any number of others.
    fn carriers(&self) {
        // Of each network: those that carry it, and the place of a link over each.
        let carriers: Vec<Vec<(usize, usize)>> = (0..self.spec.networks.len())
            .map(|network| {
                let links = self.spec.links_of(network);
                let over = links.iter().enumerate().filter_map(|(number, link)| match link.on {
                    Under::Tunnel { over, .. } => Some((over, number)),
                    Under::Link(_) => None,
                });
                over.collect()
            })
            .collect();
        let mut reported = BTreeSet::new();
        for start in 0..carriers.len() {
            let all = needed(&carriers, start);
            // One report for each circle.
            if !all.contains(&start) || !reported.is_disjoint(&all) {
                continue;
            }
            reported.insert(start);
            let back = |over: usize| over == start || needed(&carriers, over).contains(&start);
            let Some((over, link)) = carriers[start].iter().find(|(over, _)| back(*over)) else { continue };
            let names = &self.spec.networks;
            let found = format!(
                "network \"{}\", which is itself carried by \"{}\"",
                names[*over].name, names[start].name
            );
            let at = self.virtual_link(start, *link).field_or_self("over");
            at.fault(found, "a network that does not need this one", None);
        }
    }

    /// Every node of a network has a path to every other one. A switch has no second one.
    fn connected(&self, place: usize, network: &TopologyNetwork) {
        let nodes = self.spec.nodes_of(network);
        let links = self.spec.links_of(place);
        let at = self.network(place);
        let Some(first) = nodes.first() else { return };
        let hops = Graph::new(self.spec.nodes.len(), &links).hops(*first);
        let apart: Vec<&str> = nodes
            .iter()
            .filter(|node| *node != first && hops[**node].is_none())
            .map(|node| self.spec.nodes[*node].name.as_str())
            .collect();
        if !apart.is_empty() {
            let found = format!(
                "no path from node \"{}\" to {}",
                self.spec.nodes[*first].name,
                apart.iter().take(SHOWN).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
                    + if apart.len() > SHOWN { ", …" } else { "" }
            );
            let hint = "add links to the network, or take these nodes out of its nodes".to_owned();
            at.field_or_self(if network.links.is_some() { "links" } else { "nodes" }).fault(
                found,
                "links that connect all nodes of the network",
                Some(hint),
            );
        } else if network.kind == Kind::L2 && links.len() >= nodes.len() {
            let number = circle(self.spec.nodes.len(), &links).unwrap_or_default();
            self.virtual_link(place, number).fault(
                "a link that closes a circle of switches",
                "one path between any two nodes: switches have no spanning tree, and frames would circle",
                None,
            );
        }
    }

    /// The network's prefixes have an address for every host and link.
    fn room(&self, place: usize, network: &TopologyNetwork) {
        let links = self.spec.links_of(place).len();
        let list = self.network(place).field_or_self("prefixes");
        for (number, prefix) in network.prefixes.iter().enumerate() {
            let v4 = prefix.addr().is_ipv4();
            let hosts = network.hosts.len();
            let (longest, what) = if network.has_routers() {
                (addresses::longest(v4, hosts, links), format!("{hosts} hosts and {links} links"))
            } else {
                (addresses::longest_flat(v4, hosts), format!("{hosts} hosts"))
            };
            if longest.is_none_or(|longest| prefix.len() > longest) {
                let found = format!("a prefix of {} bits for {what}", prefix.len());
                let expected = match longest {
                    Some(longest) => format!("at most {longest} bits"),
                    None => "fewer hosts".to_owned(),
                };
                list.entry_or_self(number).fault(found, expected, None);
            }
        }
    }

    /// Every link of a network carries what the network's kind needs.
    fn mtus(&self) {
        let mtus = self.spec.mtus();
        for (place, network) in self.spec.networks.iter().enumerate() {
            let least = network.kind.limits().mtu_bytes_min.max(limits::MTU_MIN);
            for (number, link) in self.spec.links_of(place).iter().enumerate() {
                let room = self.spec.room(link, &mtus);
                if room >= least {
                    continue;
                }
                let at = match link.on {
                    Under::Link(physical) => self.entry("links", physical).field_or_self("mtu"),
                    Under::Tunnel { .. } => self.virtual_link(place, number).field_or_self("over"),
                };
                let name = &network.name;
                let hint = format!(
                    "every link of network \"{name}\" of kind {} carries as much",
                    network.kind.name()
                );
                at.fault(format!("an MTU of {room}"), format!("at least {least}"), Some(hint));
            }
        }
    }

    /// Two tunnels between the same addresses must differ in their VNI.
    fn tunnels_twice(&self, place: usize) {
        let mut seen: HashMap<(usize, [usize; 2], Option<u32>), Cursor<'t>> = HashMap::new();
        for network in 0..=place {
            for (number, link) in self.spec.links_of(network).iter().enumerate() {
                let Under::Tunnel { kind, over, vni } = link.on else { continue };
                let mut ends = link.ends;
                ends.sort_unstable();
                let key = (over, ends, (kind == TunnelType::Vxlan).then_some(vni));
                let at = self.virtual_link(network, number);
                let Some(first) = seen.get(&key) else {
                    seen.insert(key, at);
                    continue;
                };
                // Those of earlier networks have been reported.
                if network == place {
                    let [one, other] = ends.map(|end| &self.spec.nodes[end].name);
                    let carrier = &self.spec.networks[over].name;
                    let (found, expected) = match kind {
                        TunnelType::Vxlan => (format!("VNI {vni}"), "another VNI"),
                        TunnelType::Ipip => ("an ipip tunnel".to_owned(), "a vxlan tunnel, which has a VNI"),
                    };
                    let found =
                        format!("a second time {found} between \"{one}\" and \"{other}\" over \"{carrier}\"");
                    let hint = Some(format!("first in {}", first.location_for(&at)));
                    at.field_or_self("vni").fault(found, expected, hint);
                }
            }
        }
    }

    /// Networks on one physical link need different addresses: a port has both. So do a network and the one that carries it: the end
    /// of a tunnel is no address of the network inside.
    fn overlaps(&self) {
        let links: Vec<Vec<ResolvedLink>> =
            (0..self.spec.networks.len()).map(|network| self.spec.links_of(network)).collect();
        let on = |network: usize| -> BTreeSet<usize> {
            let physical = links[network].iter().filter_map(|link| match link.on {
                Under::Link(link) => Some(link),
                Under::Tunnel { .. } => None,
            });
            physical.collect()
        };
        let over = |network: usize, other: usize| {
            links[network].iter().any(|link| matches!(link.on, Under::Tunnel { over, .. } if over == other))
        };
        for (place, network) in self.spec.networks.iter().enumerate() {
            for (before, other) in self.spec.networks.iter().enumerate().take(place) {
                let shared = on(place).intersection(&on(before)).next().copied();
                let why = match shared {
                    Some(link) => {
                        let [one, two] = &self.spec.links[link].ends;
                        format!("on the same physical link, \"{one}\" to \"{two}\"")
                    }
                    None if over(place, before) => "which carries it".to_owned(),
                    None if over(before, place) => "which it carries".to_owned(),
                    None => continue,
                };
                for (number, prefix) in network.prefixes.iter().enumerate() {
                    let Some(overlap) = other.prefixes.iter().find(|one| overlap(**one, *prefix)) else {
                        continue;
                    };
                    let at = self.network(place).field_or_self("prefixes").entry_or_self(number);
                    let found =
                        format!("{prefix}, which overlaps {overlap} of network \"{}\" {why}", other.name);
                    let first = self.network(before).field_or_self("prefixes");
                    let hint = Some(format!("the other is in {}", first.location_for(&at)));
                    at.fault(found, "a prefix of its own", hint);
                }
            }
        }
    }
}

/// The networks that carry `network`, over any number of others.
fn needed(carriers: &[Vec<(usize, usize)>], network: usize) -> BTreeSet<usize> {
    let (mut todo, mut all) = (vec![network], BTreeSet::new());
    while let Some(network) = todo.pop() {
        todo.extend(carriers[network].iter().map(|(over, _)| *over).filter(|over| all.insert(*over)));
    }
    all
}

/// Nodes that an error names.
const SHOWN: usize = 5;

fn overlap(one: AnyPrefix, other: AnyPrefix) -> bool {
    one.bits() == other.bits() && (one.contains(other.addr()) || other.contains(one.addr()))
}

/// Reports names that occur twice.
fn unique<'n, 't>(names: impl Iterator<Item = (&'n Name, Cursor<'t>)>, what: &str) {
    let mut seen: HashMap<&Name, Cursor<'t>> = HashMap::new();
    for (name, at) in names {
        match seen.get(name) {
            Some(first) => {
                let hint = Some(format!("first used in {}", first.location_for(&at)));
                at.fault(format!("duplicate {what} \"{name}\""), "a unique name", hint);
            }
            None => drop(seen.insert(name, at)),
        }
    }
}

/// The first link that joins two nodes that are connected already.
fn circle(nodes: usize, links: &[ResolvedLink]) -> Option<usize> {
    let mut root: Vec<usize> = (0..nodes).collect();
    fn find(root: &mut [usize], mut node: usize) -> usize {
        while root[node] != node {
            root[node] = root[root[node]];
            node = root[node];
        }
        node
    }
    links.iter().position(|link| {
        let [one, other] = link.ends.map(|end| find(&mut root, end));
        root[one] = other;
        one == other
    })
}
