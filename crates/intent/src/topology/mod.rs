//! `Topology` documents: nodes, the links between them, and networks that span nodes.
//!
//! Flow: YAML → tree → `decode` (fields) → `check` (across fields) → **these types** → `hue_control::topology`, which makes
//! the `Node` and `Network` documents of each node. Invariant: a value returned by [`parse_topology`] has passed all
//! checks: every name exists, every network is connected, and [`addresses`] has room for every link and host.
//! Units: costs have no unit, places of nodes are in thousandths, MTU in bytes of IP packet.

pub mod addresses;
mod check;
mod decode;
mod kinds;
pub mod labels;
pub mod paths;

use hue_planes::{Kind, splice};
use hue_tables::AnyPrefix;
use hue_wire::Mac;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::decode::{Cursor, File};
use crate::error::{Error, Errors, Report};
use crate::extract::Digits;
use crate::limits;
use crate::live::InterfaceName;
use crate::load::Source;
use crate::schema;
use crate::types::{ApiVersion, Colour, Metadata, Name, Plane};
use crate::yaml;

/// Name of the kind in documents.
pub const KIND: &str = "Topology";

/// Bytes around the inner IP packet: outer IPv4 header (RFC 2003), and with VXLAN also UDP, VXLAN and Ethernet (RFC 7348).
const IPIP_BYTES: u16 = 20;
const VXLAN_BYTES: u16 = 50;
/// How much longer an IPv6 header is.
const IPV6_MORE_BYTES: u16 = 20;

/// Marks a document as a [`Topology`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub enum TopologyTag {
    /// The only value.
    #[default]
    Topology,
}

/// Nodes, the links between them, and networks that span nodes. Each node takes its own part of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Topology {
    /// Format version.
    #[serde(rename = "apiVersion")]
    pub api_version: ApiVersion,
    /// Kind of document.
    pub kind: TopologyTag,
    /// Name.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: TopologySpec,
}

/// Desired state of several nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "TopologySpec")]
pub struct TopologySpec {
    /// Nodes.
    #[schemars(schema_with = "schema::topology_nodes")]
    pub nodes: Vec<TopologyNode>,
    /// Physical links: each joins a port of one node and a port of another. A second link between the same nodes has ports of its
    /// own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::topology_links")]
    pub links: Vec<TopologyLink>,
    /// Virtual networks across nodes.
    #[schemars(schema_with = "schema::topology_networks")]
    pub networks: Vec<TopologyNetwork>,
}

/// A node of a topology.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopologyNode {
    /// Name; also that of the node's own document.
    #[schemars(schema_with = "schema::topology_name")]
    pub name: Name,
    /// Place in drawings: to the right, and up; by default the tool chooses. Only proportions count.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "place")]
    #[schemars(default, schema_with = "schema::topology_place")]
    pub at: Option<[i32; 2]>,
}

/// A physical link between two nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopologyLink {
    /// Names of the two nodes.
    #[schemars(schema_with = "schema::topology_ends")]
    pub ends: [Name; 2],
    /// Linux interfaces of the two ends, in the same order; by default those of the ports' names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::topology_interfaces")]
    pub interfaces: Option<[InterfaceName; 2]>,
    /// Largest IP packet that the link carries, in bytes.
    #[schemars(default = "mtu_default", schema_with = "schema::mtu")]
    pub mtu: u16,
    /// Cost of the link in shortest paths, for networks whose own links are the physical ones.
    #[schemars(default = "one", schema_with = "schema::topology_cost")]
    pub cost: u32,
}

/// A virtual network across nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopologyNetwork {
    /// Name, also on each node.
    #[schemars(schema_with = "schema::topology_name")]
    pub name: Name,
    /// Display colour; by default the tools choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Colour>")]
    pub colour: Option<Colour>,
    /// Kind of plane on all nodes.
    #[serde(serialize_with = "kind_name")]
    #[schemars(schema_with = "schema::kind")]
    pub kind: Kind,
    /// Settings of the kind on all nodes: those of a network's `plane`. Kinds `extract` and `process` need some.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "settings")]
    #[schemars(default, schema_with = "schema::topology_settings")]
    pub settings: Option<Plane>,
    /// Prefixes from which links and hosts get their addresses: one, or one of each family with kind `dual` and perhaps with
    /// `kernel`. IPv4: at most 24 bits long; IPv6: at most 64. With kinds whose links have no addresses, `l2` and others, two
    /// bits less than an address.
    #[serde(serialize_with = "prefix_texts")]
    #[schemars(schema_with = "schema::topology_prefixes")]
    pub prefixes: Vec<AnyPrefix>,
    /// Nodes that the network is on; by default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::topology_names")]
    pub nodes: Option<Vec<Name>>,
    /// Links of the network; by default all physical links between its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::virtual_links")]
    pub links: Option<Vec<VirtualLink>>,
    /// Where the network's routes, labels or entries come from; by default `static`, with kinds `l2` and `process` `none`.
    #[serde(skip_serializing_if = "Routing::is_default")]
    #[schemars(default)]
    pub routing: Routing,
    /// Hosts, each on a port of its own of a node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::topology_hosts")]
    pub hosts: Vec<TopologyHost>,
}

/// A link of a virtual network: on a physical link, or a tunnel through another network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::tunnel_over)]
pub struct VirtualLink {
    /// Names of the two nodes.
    #[schemars(schema_with = "schema::topology_ends")]
    pub ends: [Name; 2],
    /// Kind of tunnel; by default the link is on the physical link between the nodes. The second of several links between the
    /// same nodes is on the second physical link.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<TunnelType>")]
    pub tunnel: Option<TunnelType>,
    /// The network that carries the tunnel, on both nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    pub over: Option<Name>,
    /// VXLAN network identifier; by default the place of the network in the list, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::topology_vni")]
    pub vni: Option<u32>,
    /// Cost of the link in shortest paths; by default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::topology_cost")]
    pub cost: Option<u32>,
}

/// Kinds of tunnels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum TunnelType {
    /// IP in IP (RFC 2003, RFC 2473, RFC 4213).
    Ipip,
    /// VXLAN (RFC 7348).
    Vxlan,
}

impl TunnelType {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Ipip, Self::Vxlan];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipip => "ipip",
            Self::Vxlan => "vxlan",
        }
    }
}

/// Where routes, labels or entries of a network across nodes come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Routing {
    /// Shortest paths, computed from the document.
    #[default]
    Static,
    /// OSPF by FRR. `hueplane topo up` starts it in the network's namespaces; elsewhere you do.
    Frr,
    /// PW-OSPF, in the same way. Kind `ipv4` only.
    Pwospf,
    /// Labels join a ring by `hueplane rofl-ring`, in the same way. Kind `rofl` only.
    Ring,
    /// None: only links are known.
    None,
}

impl Routing {
    /// All values.
    pub const ALL: [Self; 5] = [Self::Static, Self::Frr, Self::Pwospf, Self::Ring, Self::None];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Frr => "frr",
            Self::Pwospf => "pwospf",
            Self::Ring => "ring",
            Self::None => "none",
        }
    }

    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Static
    }
}

/// A host of a network across nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopologyHost {
    /// Name, unique in the topology.
    #[schemars(schema_with = "schema::topology_name")]
    pub name: Name,
    /// Node that it is attached to.
    pub node: Name,
    /// Linux interface of the node on the host's link; by default that of the port's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<InterfaceName>")]
    pub interface: Option<InterfaceName>,
    /// Kinds `rofl`, `mpls` and `extract`: MAC address of the host, which entries name; by default one that follows from names,
    /// which `hueplane topo up` gives it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "mac")]
    #[schemars(default, schema_with = "schema::mac")]
    pub mac: Option<Mac>,
    /// Kind `extract`, required: the key of frames to the host, in hexadecimal digits.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none", serialize_with = "digits")]
    #[schemars(default, schema_with = "schema::topology_match")]
    pub matching: Option<Digits>,
}

/// A link of a network, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedLink {
    /// The two nodes, as places in [`TopologySpec::nodes`].
    pub ends: [usize; 2],
    /// What carries it.
    pub on: Under,
    /// Cost in shortest paths.
    pub cost: u32,
}

/// What carries a link of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Under {
    /// A physical link, as place in [`TopologySpec::links`].
    Link(usize),
    /// A tunnel.
    Tunnel {
        /// Kind.
        kind: TunnelType,
        /// The network that carries it, as place in [`TopologySpec::networks`].
        over: usize,
        /// VXLAN network identifier.
        vni: u32,
    },
}

impl Topology {
    /// The topology's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_str()
    }
}

impl TopologyNetwork {
    /// Whether its nodes are routers with IP addresses. Otherwise all hosts are on one prefix, and links have no addresses.
    #[must_use]
    pub fn has_routers(&self) -> bool {
        kinds::has_routers(self.kind)
    }

    /// The plane, as documents of nodes have it.
    #[must_use]
    pub fn plane_text(&self) -> String {
        let mut out = format!("{{kind: {}", self.kind.name());
        for (name, value) in self.settings.iter().flat_map(of_plane) {
            out.push_str(&format!(", {name}: {value}"));
        }
        out.push('}');
        out
    }

    /// How many tables of routes it has.
    #[must_use]
    pub fn slices(&self) -> u8 {
        let given = self.settings.as_ref().and_then(|plane| plane.slices);
        if self.kind == Kind::Splice { given.unwrap_or(splice::SLICES.default) } else { 1 }
    }
}

impl TopologySpec {
    /// The place of the node with this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name.as_str() == name)
    }

    /// The place of the network with this name.
    #[must_use]
    pub fn network(&self, name: &str) -> Option<usize> {
        self.networks.iter().position(|network| network.name.as_str() == name)
    }

    /// The nodes that a network is on, in the order of `nodes`.
    #[must_use]
    pub fn nodes_of(&self, network: &TopologyNetwork) -> Vec<usize> {
        let is_on =
            |name: &Name| network.nodes.as_ref().is_none_or(|nodes| nodes.iter().any(|one| one == name));
        self.nodes.iter().enumerate().filter(|(_, node)| is_on(&node.name)).map(|(at, _)| at).collect()
    }

    /// The links of the network at a place, in the order of the document. Links whose ends do not exist, or that nothing
    /// carries, are missing; a checked topology has none.
    #[must_use]
    pub fn links_of(&self, at: usize) -> Vec<ResolvedLink> {
        let Some(network) = self.networks.get(at) else { return Vec::new() };
        match &network.links {
            None => self.physical_links_of(network),
            Some(links) => (0..links.len()).filter_map(|link| self.resolve(at, links, link)).collect(),
        }
    }

    /// All physical links between a network's nodes.
    fn physical_links_of(&self, network: &TopologyNetwork) -> Vec<ResolvedLink> {
        let mut on = vec![false; self.nodes.len()];
        self.nodes_of(network).into_iter().for_each(|node| on[node] = true);
        let resolved = self.links.iter().enumerate().filter_map(|(place, link)| {
            let ends = self.ends(&link.ends)?;
            Some(ResolvedLink { ends, on: Under::Link(place), cost: link.cost })
        });
        resolved.filter(|link| link.ends.iter().all(|end| on[*end])).collect()
    }

    /// Largest IP packet that all links of each network carry, in bytes.
    #[must_use]
    pub fn mtus(&self) -> Vec<u16> {
        let links: Vec<_> = (0..self.networks.len()).map(|network| self.links_of(network)).collect();
        let mut mtus = vec![limits::MTU_DEFAULT; links.len()];
        // What a carrier has is known a round before what it carries, and a checked topology has no circles.
        for _ in 0..links.len() {
            let rooms = |links: &Vec<ResolvedLink>| links.iter().map(|link| self.room(link, &mtus)).min();
            let next: Vec<u16> = links
                .iter()
                .map(|links| rooms(links).unwrap_or(limits::MTU_DEFAULT).min(limits::MTU_DEFAULT))
                .collect();
            if next == mtus {
                break;
            }
            mtus = next;
        }
        mtus
    }

    /// Largest IP packet that a link carries, in bytes; `mtus` are those of all networks.
    pub(crate) fn room(&self, link: &ResolvedLink, mtus: &[u16]) -> u16 {
        match link.on {
            Under::Link(link) => self.links.get(link).map_or(limits::MTU_DEFAULT, |link| link.mtu),
            Under::Tunnel { kind, over, .. } => {
                let carrier = self.networks.get(over).and_then(|network| network.prefixes.first());
                let more = if carrier.is_some_and(|one| one.addr().is_ipv6()) { IPV6_MORE_BYTES } else { 0 };
                let own = match kind {
                    TunnelType::Ipip => IPIP_BYTES,
                    TunnelType::Vxlan => VXLAN_BYTES,
                };
                mtus.get(over).map_or(limits::MTU_DEFAULT, |mtu| mtu.saturating_sub(own + more))
            }
        }
    }

    fn ends(&self, names: &[Name; 2]) -> Option<[usize; 2]> {
        let [one, other] = names;
        Some([self.node(one.as_str())?, self.node(other.as_str())?])
    }

    /// The link at place `link` of the list of the network at place `network`.
    fn resolve(&self, network: usize, links: &[VirtualLink], link: usize) -> Option<ResolvedLink> {
        let wanted = links.get(link)?;
        let ends = self.ends(&wanted.ends)?;
        if let Some(kind) = wanted.tunnel {
            let over = self.network(wanted.over.as_ref()?.as_str())?;
            let vni = wanted.vni.or_else(|| u32::try_from(network + 1).ok())?;
            let on = Under::Tunnel { kind, over, vni };
            return Some(ResolvedLink { ends, on, cost: wanted.cost.unwrap_or(1) });
        }
        let before = links[..link].iter().filter(|one| one.tunnel.is_none() && same(&one.ends, &wanted.ends));
        let mut between = self.links.iter().enumerate().filter(|(_, one)| same(&one.ends, &wanted.ends));
        let (place, physical) = between.nth(before.count())?;
        Some(ResolvedLink { ends, on: Under::Link(place), cost: wanted.cost.unwrap_or(physical.cost) })
    }
}

/// Whether two pairs of ends are the same nodes, in any order.
fn same(one: &[Name; 2], other: &[Name; 2]) -> bool {
    one == other || (one[0] == other[1] && one[1] == other[0])
}

/// Whether a text has a document of kind `Topology`. Errors of the text do not matter: the reader reports them.
#[must_use]
pub fn is_topology(bytes: &[u8]) -> bool {
    // Large files are route tables; a topology is small.
    if bytes.len() > limits::TOPOLOGY_BYTES_MAX {
        return false;
    }
    let report = Report::default();
    let tree = yaml::read("", 0, bytes, &report);
    let file = File { name: "", index: 0, tree: &tree, report: &report };
    tree.documents.iter().any(|value| {
        let kind = Cursor::root(&file, *value).field("kind");
        kind.is_some_and(|kind| kind.text("").is_some_and(|kind| kind == KIND))
    })
}

/// Reads and checks a topology: a file with one document of this kind, and no other.
///
/// # Errors
/// All errors of the file.
pub fn parse_topology(source: &Source) -> Result<Topology, Errors> {
    let report = Report::default();
    let tree = yaml::read(&source.name, 0, &source.bytes, &report);
    let file = File { name: &source.name, index: 0, tree: &tree, report: &report };
    let documents: Vec<Cursor<'_>> = tree
        .documents
        .iter()
        .map(|value| Cursor::root(&file, *value))
        .filter(|document| !document.is_null())
        .collect();
    if let [_, second, ..] = documents.as_slice() {
        second.fault("a second document", "a Topology alone in its file", None);
    }
    let topology = match documents.into_iter().next() {
        Some(document) => decode::topology(&document),
        None if report.count() == 0 => {
            crate::load::empty(&report, Some(source), "a Topology");
            None
        }
        None => None,
    };
    report.finish()?;
    topology.ok_or_else(|| Errors { list: vec![Error::Incomplete], more: 0 })
}

fn one() -> u32 {
    1
}

fn mtu_default() -> u16 {
    limits::MTU_DEFAULT
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn kind_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// The settings of a plane, without its kind.
fn of_plane(plane: &Plane) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(plane) {
        Ok(serde_json::Value::Object(mut fields)) => {
            fields.remove("kind");
            fields
        }
        _ => serde_json::Map::new(),
    }
}

#[allow(clippy::ref_option)] // the signature that serde requires
fn settings<S: Serializer>(plane: &Option<Plane>, serializer: S) -> Result<S::Ok, S::Error> {
    plane.as_ref().map(of_plane).serialize(serializer)
}

#[allow(clippy::ref_option)] // the signature that serde requires
fn mac<S: Serializer>(mac: &Option<Mac>, serializer: S) -> Result<S::Ok, S::Error> {
    mac.map(|mac| mac.to_string()).serialize(serializer)
}

#[allow(clippy::ref_option)] // the signature that serde requires
fn digits<S: Serializer>(digits: &Option<Digits>, serializer: S) -> Result<S::Ok, S::Error> {
    digits.map(|digits| digits.to_string()).serialize(serializer)
}

#[allow(clippy::ref_option)] // the signature that serde requires
fn place<S: Serializer>(place: &Option<[i32; 2]>, serializer: S) -> Result<S::Ok, S::Error> {
    place.map(|place| place.map(|value| f64::from(value) / 1000.0)).serialize(serializer)
}

fn prefix_texts<S: Serializer>(prefixes: &[AnyPrefix], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(prefixes.iter().map(ToString::to_string))
}
