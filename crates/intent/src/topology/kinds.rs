//! What networks of a topology may have, by their kind: families of addresses, sources of routes, fields of hosts, ports.

use std::collections::{BTreeSet, HashMap};

use hue_planes::{Keys, Kind};

use super::{Routing, Topology, TopologyHost, TopologyNetwork, TopologySpec, Under, labels};
use crate::decode::Cursor;
use crate::document::has_whole_ports;
use crate::error::one_of;
use crate::types::Name;

/// Whether a kind's nodes are routers with IP addresses.
pub(super) fn has_routers(kind: Kind) -> bool {
    let families = kind.limits().families;
    families.v4 || families.v6
}

/// Where routes, labels or entries of a kind can come from; the first is the default.
pub(super) fn routings(kind: Kind) -> &'static [Routing] {
    use Routing::{Frr, None, Pwospf, Ring, Static};
    match kind {
        Kind::L2 | Kind::Process => &[None],
        Kind::Ipv4 => &[Static, Frr, Pwospf, None],
        Kind::Rofl => &[Static, Ring, None],
        Kind::Splice | Kind::Mpls | Kind::Extract => &[Static, None],
        kind if has_routers(kind) => &[Static, Frr, None],
        _ => &[None],
    }
}

/// Why routes of a kind cannot come from there.
fn why_not(kind: Kind, routing: Routing) -> &'static str {
    match (kind, routing) {
        (Kind::L2, _) => "a switch has no routes",
        (Kind::Process, _) => "its program forwards",
        (_, Routing::Pwospf) => "PW-OSPF is for IPv4: kind ipv4",
        (_, Routing::Ring) => "the ring of flat labels is for kind rofl",
        (Kind::Splice, _) => "one routing daemon fills one slice, and labs/splice has a daemon for each",
        (_, Routing::Frr) => "FRR routes IP",
        _ => "what its planes forward by is in Network documents",
    }
}

/// Sources of routes, prefixes and settings of a network.
pub(super) fn of_network(at: &Cursor<'_>, network: &TopologyNetwork) {
    let possible = routings(network.kind);
    if !possible.contains(&network.routing) {
        let found = format!("{} with kind {}", network.routing.name(), network.kind.name());
        let hint = Some(why_not(network.kind, network.routing).to_owned());
        at.field_or_self("routing").fault(found, one_of(possible.iter().map(|one| one.name())), hint);
    }
    let is_v4 = |prefix: &hue_tables::AnyPrefix| prefix.addr().is_ipv4();
    let v4 = network.prefixes.iter().filter(|prefix| is_v4(prefix)).count();
    let v6 = network.prefixes.len() - v4;
    let (good, expected) = match network.kind {
        kind if kind.limits().keys == Keys::Dual => ((v4, v6) == (1, 1), "one IPv4 and one IPv6 prefix"),
        Kind::Kernel => (v4 <= 1 && v6 <= 1 && v4 + v6 > 0, "one prefix, or one of each family,"),
        _ => (v4 + v6 == 1, "one prefix"),
    };
    if !good {
        let found = format!("{v4} of IPv4 and {v6} of IPv6");
        let expected = format!("{expected} with kind {}", network.kind.name());
        at.field_or_self("prefixes").fault(found, expected, None);
    }
    let by = network.settings.as_ref().map(|plane| plane.route_by);
    if by.is_some_and(|by| !by.is_default()) {
        let hint = Some("routes by source are in Network documents".to_owned());
        let found = "routes by source";
        at.field_or_self("settings").field_or_self("route_by").fault(found, "destination, or no field", hint);
    }
}

/// Fields of hosts that only some kinds have.
pub(super) fn of_hosts(at: &Cursor<'_>, network: &TopologyNetwork) {
    let kind = network.kind;
    let mut keys: HashMap<u128, Cursor<'_>> = HashMap::new();
    for (number, host) in network.hosts.iter().enumerate() {
        let at = at.field_or_self("hosts").entry_or_self(number);
        if host.mac.is_some() && !matches!(kind, Kind::Rofl | Kind::Mpls | Kind::Extract) {
            let found = format!("mac with kind {}", kind.name());
            let expected = "none: only entries of kinds rofl, mpls and extract name hosts' MAC addresses";
            at.field_or_self("mac").fault(found, expected, None);
        }
        let matching = at.field_or_self("match");
        match (kind, host.matching) {
            (Kind::Extract, None) => {
                matching.fault("nothing", "match: the key of frames to the host", None);
            }
            (Kind::Extract, Some(_)) => of_key(&at, network, host, &mut keys),
            (_, Some(_)) => {
                let found = format!("match with kind {}", kind.name());
                matching.fault(found, "none: only kind extract has keys", None);
            }
            (_, None) => {}
        }
    }
}

/// The key of frames to a host: of the network's length, with the bits that it has, and no other host's.
fn of_key<'t>(
    at: &Cursor<'t>,
    network: &TopologyNetwork,
    host: &TopologyHost,
    keys: &mut HashMap<u128, Cursor<'t>>,
) {
    let at = at.field_or_self("match");
    let (Some(wanted), Some(key)) = (host.matching, network.settings.as_ref().and_then(|plane| plane.key))
    else {
        return;
    };
    if wanted.bytes != key.bytes() {
        let (found, digits) = (2 * wanted.bytes, 2 * key.bytes());
        let hint = "two for each byte of settings.key".to_owned();
        at.fault(format!("{found} digits"), format!("{digits}, as the key has"), Some(hint));
    } else if wanted.bits & !key.mask() != 0 {
        let hint = "the masks of settings.key leave these bits out, so they are 0 in all keys".to_owned();
        at.fault(format!("{wanted}, with bits that no frame has"), "bits of the key", Some(hint));
    } else if let Some(first) = keys.get(&wanted.bits) {
        let hint = Some(format!("first used in {}", first.location_for(&at)));
        at.fault(format!("duplicate match {wanted}"), "a key of its own", hint);
    } else {
        keys.insert(wanted.bits, at);
    }
}

/// Flat labels are hashes of names: those of a network must be different.
pub(super) fn labels_differ(spec: &Cursor<'_>, topology: &Topology) {
    let networks = topology.spec.networks.iter().enumerate();
    for (place, network) in networks.filter(|(_, network)| network.kind == Kind::Rofl) {
        let at = spec.field_or_self("networks").entry_or_self(place);
        let nodes = topology.spec.nodes_of(network).into_iter().map(|node| {
            let name = &topology.spec.nodes[node].name;
            (labels::router(topology, network, name.as_str()), format!("node \"{name}\""), at.clone())
        });
        let hosts = network.hosts.iter().enumerate().map(|(number, host)| {
            let at = at.field_or_self("hosts").entry_or_self(number).field_or_self("name");
            let label = labels::host(topology, network, host.name.as_str());
            (label, format!("host \"{}\"", host.name), at)
        });
        let mut seen: HashMap<u128, String> = HashMap::new();
        for (label, who, at) in nodes.chain(hosts) {
            if let Some(first) = seen.get(&label.bits) {
                let hint =
                    Some("labels follow from names; longer ones differ: settings.label_bits".to_owned());
                let found = format!("{who} with label {label}, as {first} has");
                at.fault(found, "another name, or longer labels", hint);
            } else {
                seen.insert(label.bits, who);
            }
        }
    }
}

/// At most one of the networks on a physical link takes all frames of its ports.
pub(super) fn whole_ports(spec: &Cursor<'_>, topology: &TopologySpec) {
    let mut taken: HashMap<usize, &Name> = HashMap::new();
    let networks = topology.networks.iter().enumerate();
    for (place, network) in networks.filter(|(_, network)| has_whole_ports(network.kind)) {
        let own: BTreeSet<usize> = topology
            .links_of(place)
            .iter()
            .filter_map(|link| match link.on {
                Under::Link(link) => Some(link),
                Under::Tunnel { .. } => None,
            })
            .collect();
        let shared = own.iter().find_map(|link| Some((*link, *taken.get(link)?)));
        if let Some((link, other)) = shared {
            let at = spec.field_or_self("networks").entry_or_self(place).field_or_self("kind");
            let [one, two] = &topology.links[link].ends;
            let found = format!(
                "kind {}, which takes all frames of ports, on the physical link \"{one}\" to \"{two}\", as network \"{other}\" does",
                network.kind.name()
            );
            let hint = "a tunnel has a port of its own: links: [{ends: …, tunnel: vxlan, over: NETWORK}]";
            at.fault(found, "one such network on a physical link", Some(hint.to_owned()));
        }
        for link in own {
            taken.entry(link).or_insert(&network.name);
        }
    }
}
