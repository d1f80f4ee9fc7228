//! Decodes a `Topology` document from its tree, and has it checked.
//!
//! Flow: cursor → **fields** → `check` → [`Topology`]. Checks across fields run only if every field is valid, so that one mistake
//! causes one error.

use hue_planes::Kind;
use hue_tables::AnyPrefix;

use super::{
    KIND, Routing, Topology, TopologyHost, TopologyLink, TopologyNetwork, TopologyNode, TopologySpec,
    TopologyTag, TunnelType, VirtualLink, check, kinds,
};
use crate::address::{self, Family};
use crate::decode::Cursor;
use crate::document;
use crate::extract::Digits;
use crate::limits;
use crate::live::InterfaceName;
use crate::types::{ApiVersion, Colour, Metadata, Name, Plane};

const NAME: &str = "a name of 1 to 32 letters, digits, '-', '_' or '.', beginning with a letter or digit";
const ENDS: &str = "a list of two different nodes, such as [a, b]";
const INTERFACES: &str = "a list of two Linux interfaces, such as [enp3s0, enp4s0]";
const INTERFACE_NAME: &str = "the name of a Linux interface: 1 to 15 visible characters, no '/' or ':'";
const PLACE: &str =
    "a list of two numbers from -1000000 to 1000000, with at most three decimals, such as [8.5, 47.4]";
const DIGITS: &str = "up to 32 hexadecimal digits, two for each byte of the key, such as 0x0a000001";
const COLOUR: &str = "a colour such as \"#d62728\"";

/// Decodes and checks one document. `None` if it has errors, which have been reported.
pub(super) fn topology(at: &Cursor<'_>) -> Option<Topology> {
    let before = at.faults();
    at.mapping(&["apiVersion", "kind", "metadata", "spec"])?;
    if let Some(version) = at.required("apiVersion", ApiVersion::V1_TEXT) {
        version.word(&[ApiVersion::V1_TEXT]);
    }
    at.required("kind", KIND)?.word(&[KIND])?;
    let metadata = at.required("metadata", "a mapping with name").and_then(|metadata| {
        metadata.mapping(&["name"])?;
        named(&metadata, "name")
    });
    let spec_at = at.required("spec", "a mapping with nodes and networks")?;
    let spec = spec(&spec_at);
    let (name, spec) = (metadata?, spec?);
    if at.faults() > before {
        return None;
    }
    check::all(&spec_at, &spec);
    let metadata = Metadata { name };
    let (api_version, kind) = (ApiVersion::V1, TopologyTag::Topology);
    let topology = Topology { api_version, kind, metadata, spec };
    kinds::labels_differ(&spec_at, &topology);
    (at.faults() == before).then_some(topology)
}

fn spec(at: &Cursor<'_>) -> Option<TopologySpec> {
    at.mapping(&["nodes", "links", "networks"])?;
    let nodes = required_list(at, "nodes", limits::TOPOLOGY_NODES_MAX, "a list of nodes", node);
    let links = list(at, "links", limits::TOPOLOGY_LINKS_MAX, "a list of links", link);
    let networks =
        required_list(at, "networks", limits::TOPOLOGY_NETWORKS_MAX, "a list of networks", network);
    Some(TopologySpec { nodes: nodes?, links: links?.unwrap_or_default(), networks: networks? })
}

/// Decodes every entry of a list; `None` if any is invalid.
fn all<'t, T>(
    at: &Cursor<'t>,
    max: usize,
    expected: &str,
    entry: impl Fn(&Cursor<'t>) -> Option<T>,
) -> Option<Vec<T>> {
    let entries: Vec<Option<T>> = at.list(max, expected)?.iter().map(entry).collect();
    entries.into_iter().collect()
}

/// Decodes a list that may be missing: `Some(None)` then.
fn list<'t, T>(
    at: &Cursor<'t>,
    name: &str,
    max: usize,
    expected: &str,
    entry: impl Fn(&Cursor<'t>) -> Option<T>,
) -> Option<Option<Vec<T>>> {
    at.field(name).map_or(Some(None), |at| all(&at, max, expected, entry).map(Some))
}

fn required_list<'t, T>(
    at: &Cursor<'t>,
    name: &'static str,
    max: usize,
    expected: &str,
    entry: impl Fn(&Cursor<'t>) -> Option<T>,
) -> Option<Vec<T>> {
    let at = at.required(name, expected)?;
    let entries = all(&at, max, expected, entry)?;
    if entries.is_empty() {
        at.fault("no entries", "at least one", None);
        return None;
    }
    Some(entries)
}

/// Decodes a field that may be missing: `Some(None)` then, `None` if it is invalid.
fn optional<'t, T>(
    at: &Cursor<'t>,
    name: &str,
    decode: impl Fn(&Cursor<'t>) -> Option<T>,
) -> Option<Option<T>> {
    at.field(name).map_or(Some(None), |at| decode(&at).map(Some))
}

fn named(at: &Cursor<'_>, field: &'static str) -> Option<Name> {
    name(&at.required(field, NAME)?)
}

fn name(at: &Cursor<'_>) -> Option<Name> {
    let name: Name = at.parse(NAME)?;
    if name.as_str().len() > limits::TOPOLOGY_NAME_CHARS_MAX {
        at.unexpected(NAME);
        return None;
    }
    Some(name)
}

fn node(at: &Cursor<'_>) -> Option<TopologyNode> {
    at.mapping(&["name", "at"])?;
    let name = named(at, "name");
    let place = optional(at, "at", |at| pair(at, PLACE, coordinate));
    Some(TopologyNode { name: name?, at: place? })
}

/// A list of exactly two values.
fn pair<'t, T>(at: &Cursor<'t>, expected: &str, entry: impl Fn(&Cursor<'t>) -> Option<T>) -> Option<[T; 2]> {
    let entries = all(at, 2, expected, entry)?;
    let count = entries.len();
    let pair = <[T; 2]>::try_from(entries).ok();
    if pair.is_none() {
        at.fault(format!("a list of {count}"), expected, None);
    }
    pair
}

/// A number with a sign, in thousandths.
fn coordinate(at: &Cursor<'_>) -> Option<i32> {
    let value = at.signed_thousandths().filter(|value| value.abs() <= limits::TOPOLOGY_PLACE_MAX * 1_000);
    if value.is_none() {
        at.unexpected(PLACE);
    }
    value
}

fn ends(at: &Cursor<'_>) -> Option<[Name; 2]> {
    let at = at.required("ends", ENDS)?;
    let ends = pair(&at, ENDS, name)?;
    if ends[0] == ends[1] {
        at.fault(format!("a link from \"{}\" to itself", ends[0]), ENDS, None);
        return None;
    }
    Some(ends)
}

fn cost(at: &Cursor<'_>) -> Option<u32> {
    at.number(1, limits::TOPOLOGY_COST_MAX, "")
}

fn interface(at: &Cursor<'_>) -> Option<InterfaceName> {
    at.parse(INTERFACE_NAME)
}

fn link(at: &Cursor<'_>) -> Option<TopologyLink> {
    at.mapping(&["ends", "interfaces", "mtu", "cost"])?;
    let ends = ends(at);
    let interfaces = optional(at, "interfaces", |at| pair(at, INTERFACES, interface));
    let mtu = optional(at, "mtu", |at| at.number(limits::MTU_MIN, limits::MTU_MAX, " bytes"));
    let cost = optional(at, "cost", cost);
    Some(TopologyLink {
        ends: ends?,
        interfaces: interfaces?,
        mtu: mtu?.unwrap_or(limits::MTU_DEFAULT),
        cost: cost?.unwrap_or(1),
    })
}

fn network(at: &Cursor<'_>) -> Option<TopologyNetwork> {
    at.mapping(&["name", "colour", "kind", "settings", "prefixes", "nodes", "links", "routing", "hosts"])?;
    let name = named(at, "name");
    let colour = optional(at, "colour", |at| at.parse::<Colour>(COLOUR));
    let kind = at.required("kind", "a kind of plane").and_then(|at| kind(&at));
    let settings = kind.and_then(|kind| settings(at, kind));
    let family = kind.map_or(Family::Any, |kind| match Family::of(kind) {
        // Hosts of a switch have addresses of either family.
        Family::None => Family::Both,
        family => family,
    });
    let prefixes = required_list(at, "prefixes", 2, "a list of prefixes", |at| {
        let prefix = address::prefix(at, family)?;
        fits(at, prefix, kind)
    });
    let nodes = list(at, "nodes", limits::TOPOLOGY_NODES_MAX, "a list of nodes", self::name);
    let links = list(at, "links", limits::TOPOLOGY_LINKS_MAX, "a list of links", virtual_link);
    let routing = optional(at, "routing", |at| at.choice(Routing::ALL, Routing::name));
    let hosts = list(at, "hosts", limits::TOPOLOGY_HOSTS_MAX, "a list of hosts", host);
    Some(TopologyNetwork {
        name: name?,
        colour: colour?,
        kind: kind?,
        settings: settings?,
        prefixes: prefixes?,
        nodes: nodes?,
        links: links?,
        routing: routing?.unwrap_or(kinds::routings(kind?)[0]),
        hosts: hosts?.unwrap_or_default(),
    })
}

/// The kind of a network.
fn kind(at: &Cursor<'_>) -> Option<Kind> {
    at.choice(Kind::OFFERED, Kind::name)
}

/// The settings of the kind, as networks have them: `Some(None)` if there are none, `None` if they are invalid.
fn settings(at: &Cursor<'_>, kind: Kind) -> Option<Option<Plane>> {
    let needed = match kind {
        Kind::Extract => Some("a mapping with key, as plane of a network of kind extract has it"),
        Kind::Process => Some("a mapping with command, as plane of a network of kind process has it"),
        _ => None,
    };
    let field = match needed {
        Some(expected) => Some(at.required("settings", expected)?),
        None => at.field("settings"),
    };
    let Some(field) = field else { return Some(None) };
    field.mapping_naming(&document::setting_names(), &document::own_settings(kind))?;
    document::settings(&field, kind).map(Some)
}

/// The prefix if blocks for hosts fit into it.
fn fits(at: &Cursor<'_>, prefix: AnyPrefix, kind: Option<Kind>) -> Option<AnyPrefix> {
    let most = match (kind, prefix.bits()) {
        (Some(kind), bits) if !kinds::has_routers(kind) => bits - 2,
        (_, 32) => 24,
        _ => 64,
    };
    if prefix.len() > most {
        at.fault(at.description(), format!("a prefix of at most {most} bits"), None);
        return None;
    }
    address::possible(at, prefix.addr(), prefix.to_string())?;
    Some(prefix)
}

fn virtual_link(at: &Cursor<'_>) -> Option<VirtualLink> {
    at.mapping(&["ends", "tunnel", "over", "vni", "cost"])?;
    let ends = ends(at);
    let tunnel = optional(at, "tunnel", |at| at.choice(TunnelType::ALL, TunnelType::name));
    let over = optional(at, "over", name);
    let vni = optional(at, "vni", |at| at.number(1, limits::TOPOLOGY_VNI_MAX, ""));
    let cost = optional(at, "cost", cost);
    let link = VirtualLink { ends: ends?, tunnel: tunnel?, over: over?, vni: vni?, cost: cost? };
    if link.tunnel.is_some() {
        at.required("over", "the name of the network that carries the tunnel")?;
    } else if let Some(over) = at.field("over") {
        let hint = "write tunnel: vxlan or tunnel: ipip".to_owned();
        over.fault("over without a tunnel", "a tunnel, or neither of both", Some(hint));
        return None;
    }
    if let (Some(vni), true) = (at.field("vni"), link.tunnel != Some(TunnelType::Vxlan)) {
        vni.fault("a VNI without vxlan", "tunnel: vxlan, or no VNI", None);
        return None;
    }
    Some(link)
}

fn host(at: &Cursor<'_>) -> Option<TopologyHost> {
    at.mapping(&["name", "node", "interface", "mac", "match"])?;
    let name = named(at, "name");
    let node = named(at, "node");
    let interface = optional(at, "interface", interface);
    let mac = optional(at, "mac", |at| document::unicast(at));
    let matching = optional(at, "match", |at| at.parse::<Digits>(DIGITS));
    Some(TopologyHost { name: name?, node: node?, interface: interface?, mac: mac?, matching: matching? })
}
