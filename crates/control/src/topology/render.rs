//! The text of a node's documents.

use std::fmt::Write;

use hue_intent::InterfaceAddress;
use hue_intent::topology::addresses;
use hue_intent::topology::paths::{Graph, Hop};
use hue_intent::topology::{ResolvedLink, Topology, TopologyNetwork, TunnelType};
use hue_planes::Kind;

use super::{By, Maker, On, Router, RouterPort, entries, hash_of, is_static};

/// Of each network, slice and node: the first hop to each other node.
pub(super) type Hops = Vec<Vec<Vec<Vec<Option<Hop>>>>>;

/// Most by which a slice of kind `splice` raises the cost of a link, as a multiple of the cost.
const RAISE_MAX: u64 = 3;
/// Costs of slices are in so many parts of a unit.
const PARTS: u32 = 64;

/// What the documents of a node are written from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    /// The topology.
    pub maker: &'a Maker<'a>,
    /// The node.
    pub node: usize,
    /// The parts of networks on all nodes.
    pub routers: &'a [Vec<Router>],
    /// Shortest paths.
    pub hops: &'a Hops,
}

/// The shortest paths of all networks whose routes are computed.
pub(super) fn all_hops(topology: &Topology, links: &[Vec<ResolvedLink>]) -> Hops {
    let spec = &topology.spec;
    let networks = spec.networks.iter().zip(links);
    let hops = networks.map(|(network, links)| {
        if !is_static(network) {
            return Vec::new();
        }
        let of_slice = |slice| {
            let raised = raised(topology, network, links, slice);
            let graph = Graph::new(spec.nodes.len(), &raised);
            (0..spec.nodes.len()).map(|from| graph.hops(from)).collect()
        };
        (0..network.slices()).map(of_slice).collect()
    });
    hops.collect()
}

/// Links with the costs of a slice. Slice 0 has those of the document. The others raise each by a random part of up to three times
/// the cost, the same on all nodes, so that their paths differ (path splicing: Motiwala et al., SIGCOMM 2008).
fn raised(
    topology: &Topology,
    network: &TopologyNetwork,
    links: &[ResolvedLink],
    slice: u8,
) -> Vec<ResolvedLink> {
    let raise = |(place, link): (usize, &ResolvedLink)| {
        let cost = link.cost.saturating_mul(PARTS);
        let names = [topology.name(), network.name.as_str(), &place.to_string(), &slice.to_string()];
        let more = if slice == 0 { 0 } else { hash_of(&names) % (RAISE_MAX * u64::from(cost) + 1) };
        ResolvedLink { cost: cost.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)), ..*link }
    };
    links.iter().enumerate().map(raise).collect()
}

/// The documents of a node.
pub(super) fn documents(from: Source<'_>) -> String {
    let Source { maker, node, routers, .. } = from;
    let name = &maker.spec.nodes[node].name;
    let mut out = format!(
        "# Node {name} of topology {}.\napiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: {}}}\nspec:\n  ports:",
        maker.topology.name(),
        quoted(name.as_str())
    );
    if maker.ports[node].is_empty() {
        out.push_str(" []");
    }
    out.push('\n');
    for port in &maker.ports[node] {
        let _ = write!(out, "    - {{name: {}", quoted(&port.name));
        if port.interface != port.name {
            let _ = write!(out, ", interface: {}", quoted(&port.interface));
        }
        if port.mtu != hue_intent::limits::MTU_DEFAULT {
            let _ = write!(out, ", mtu: {}", port.mtu);
        }
        out.push_str("}\n");
    }
    for router in &routers[node] {
        network(from, router, &mut out);
    }
    out
}

fn network(from: Source<'_>, router: &Router, out: &mut String) {
    let maker = from.maker;
    let network = &maker.spec.networks[router.network];
    let _ = write!(
        out,
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n",
        quoted(network.name.as_str())
    );
    if let Some(colour) = network.colour {
        let _ = writeln!(out, "  colour: \"{colour}\"");
    }
    let _ = writeln!(out, "  plane: {}", network.plane_text());
    out.push_str(if router.ports.is_empty() { "  ports: []\n" } else { "  ports:\n" });
    // All ports of a switch have the same MTU: that of its narrowest link.
    let mtu = (network.kind == Kind::L2).then(|| maker.mtus[router.network]);
    for port in &router.ports {
        virtual_port(maker, port, mtu, out);
    }
    if !network.has_routers() {
        entries::add(from, router, out);
        return;
    }
    let routes = routes(from, router.network);
    if !routes.is_empty() {
        out.push_str("  routes:\n");
        out.push_str(&routes);
    }
    let neighbours = neighbours(from, router);
    if !neighbours.is_empty() {
        out.push_str("  neighbours:\n");
        out.push_str(&neighbours);
    }
}

fn virtual_port(maker: &Maker<'_>, port: &RouterPort, mtu: Option<u16>, out: &mut String) {
    let _ = write!(out, "    - {{name: {}, ", quoted(&port.name));
    match &port.on {
        On::Host(physical) | On::Link { by: By::Port(physical), .. } => {
            let _ = write!(out, "port: {}", quoted(physical));
        }
        On::Link { by: By::Tunnel { kind, ends: [local, remote], over, vni }, .. } => {
            let over = &maker.spec.networks[*over].name;
            let _ = write!(out, "tunnel: {{type: {}, local: \"{local}\", remote: \"{remote}\"", kind.name());
            if *kind == TunnelType::Vxlan {
                let _ = write!(out, ", vni: {vni}");
            }
            let _ = write!(out, "}}, over: {}", quoted(over.as_str()));
        }
    }
    let _ = write!(out, ", mac: \"{}\"", port.mac);
    if !port.addresses.is_empty() {
        let _ = write!(out, ", addresses: [{}]", listed(&port.addresses));
    }
    if let Some(mtu) = mtu {
        let _ = write!(out, ", mtu: {mtu}");
    }
    out.push_str("}\n");
}

fn listed(addresses: &[InterfaceAddress]) -> String {
    addresses.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ")
}

/// Routes along shortest paths, to the links of all hosts and of all nodes that are not on this node.
fn routes(from: Source<'_>, at: usize) -> String {
    let Source { maker, node, routers, hops } = from;
    let network = &maker.spec.networks[at];
    let mut out = String::new();
    let links = &maker.links[at];
    let slices = hops[at].iter().filter_map(|slice| slice.get(node)).enumerate();
    let tables = slices.flat_map(|slice| network.prefixes.iter().enumerate().map(move |one| (slice, one)));
    for ((slice, hops), (number, prefix)) in tables {
        let mut route = |to: String, towards: usize| {
            let Some(hop) = hops[towards] else { return };
            let ends = links[hop.link].ends;
            let end = usize::from(ends[0] == node);
            let via = addresses::link(*prefix, hop.link)[end].address;
            let _ = write!(out, "    - {{to: \"{to}\", via: \"{via}\"");
            out.push_str(&if slice == 0 { "}\n".to_owned() } else { format!(", slice: {slice}}}\n") });
        };
        for (towards, of_node) in routers.iter().enumerate().filter(|(towards, _)| *towards != node) {
            let ports = of_node.iter().filter(|router| router.network == at).flat_map(|router| &router.ports);
            let hosts = ports.filter(|port| matches!(port.on, On::Host(_)));
            hosts
                .filter_map(|port| port.addresses.get(number))
                .for_each(|one| route(one.link().to_string(), towards));
        }
        for (place, link) in links.iter().enumerate().filter(|(_, link)| !link.ends.contains(&node)) {
            let cost = |end: &&usize| hops[**end].map_or(u64::MAX, |hop| hop.cost);
            let Some(nearest) = link.ends.iter().min_by_key(cost) else { continue };
            route(addresses::link(*prefix, place)[0].link().to_string(), *nearest);
        }
    }
    out
}

/// The other ends of links, whose MAC addresses the document gives. IPIP tunnels need none.
fn neighbours(from: Source<'_>, router: &Router) -> String {
    let mut out = String::new();
    for port in &router.ports {
        let On::Link { link, end, by } = &port.on else { continue };
        if matches!(by, By::Tunnel { kind: TunnelType::Ipip, .. }) {
            continue;
        }
        let Some(peer) = from.peer(router.network, *link, *end) else { continue };
        for one in &peer.addresses {
            let _ = writeln!(
                out,
                "    - {{port: {}, address: \"{}\", mac: \"{}\"}}",
                quoted(&port.name),
                one.address,
                peer.mac
            );
        }
    }
    out
}

impl<'a> Source<'a> {
    /// The port at the other end of a link.
    pub(super) fn peer(self, network: usize, link: usize, end: usize) -> Option<&'a RouterPort> {
        let other = self.maker.links[network][link].ends[1 - end];
        let there = self.routers[other].iter().filter(|one| one.network == network);
        let is_end = |one: &&RouterPort| matches!(&one.on, On::Link { link: same, .. } if *same == link);
        there.flat_map(|one| &one.ports).find(is_end)
    }
}

/// A name as it must be written: in quotes if YAML would take it for something else than text.
pub(super) fn quoted(name: &str) -> String {
    let plain = name.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&name.to_ascii_lowercase().as_str())
        // 1e5, 0x1f and the like.
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}
