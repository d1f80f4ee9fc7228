//! Desired state as typed values: the contents of `Node` and `Network` documents.
//!
//! Flow: YAML → reader → decoder → **these types** (validated together) → control compiles them. Invariant: a
//! value of these types returned by [`crate::load`] has passed every check of `validate`. Units: MTU in bytes
//! of IP packet, rates per second, bursts in packets or bits. The JSON Schema is derived from these types, so
//! their doc comments are the reference documentation.

use std::borrow::Borrow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hue_planes::{Kind, extract, mpls, splice};
use hue_tables::{AnyPrefix, Prefix4, RouteBy, Vid};
use hue_wire::Mac;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::address::InterfaceAddress;
use crate::bits::{BitRate, Bits};
use crate::card::{Card, Placement};
use crate::extract::{Entry, parts};
use crate::limits;
use crate::live::{InterfaceName, PortDriver, PuntLimit, Resources};
use crate::mpls::LabelEntry;
use crate::needs::{Bandwidth, Needs, Scheduler};
use crate::rofl::FlatLabel;
use crate::schema;
use crate::table::TableLimit;
use crate::tunnel::{Tunnel, TunnelText};

/// Version of the document format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub enum ApiVersion {
    /// The first version.
    #[default]
    #[serde(rename = "hueplane/v1")]
    V1,
}

impl ApiVersion {
    /// The version in documents.
    pub const V1_TEXT: &'static str = "hueplane/v1";
}

/// Marks a document as a [`Node`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub enum NodeTag {
    /// The only value.
    #[default]
    Node,
}

/// Marks a document as a [`Network`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub enum NetworkTag {
    /// The only value.
    #[default]
    Network,
}

/// Metadata of every document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Metadata {
    /// Name, unique among the documents of its kind.
    pub name: Name,
}

/// A node: a machine that runs networks, and its physical ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Node {
    /// Format version.
    #[serde(rename = "apiVersion")]
    pub api_version: ApiVersion,
    /// Kind of document.
    pub kind: NodeTag,
    /// Name.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: NodeSpec,
}

/// Desired state of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NodeSpec {
    /// Physical ports: frames enter and leave through them.
    ///
    /// The list in memory also contains the ends of `links`; the document does not.
    #[serde(serialize_with = "without_ends")]
    #[schemars(schema_with = "schema::node_ports")]
    pub ports: Vec<NodePort>,
    /// Links inside the node. Each joins two networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::node_links")]
    pub links: Vec<NodeLink>,
    /// The card; without one, all networks run in software.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Card>")]
    pub card: Option<Card>,
    /// How the node places networks with `placement: auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Scheduler>")]
    pub scheduler: Option<Scheduler>,
}

/// A physical port of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NodePort {
    /// Name, such as `p0`. `punt` is reserved, because `hueplane run` writes `punt.pcap`.
    pub name: Name,
    /// Largest IP packet that the link carries, in bytes.
    #[schemars(default = "mtu_default", schema_with = "schema::mtu")]
    pub mtu: u16,
    /// Linux interface of a live node; by default the port's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<InterfaceName>")]
    pub interface: Option<InterfaceName>,
    /// How a live node accesses the interface.
    #[serde(skip_serializing_if = "PortDriver::is_default")]
    #[schemars(default)]
    pub driver: PortDriver,
    /// Bandwidth of the link in each direction, for the scheduler; by default unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
    /// Of an end of a link inside the node: the other end. Such a port has no interface.
    #[serde(skip)]
    #[schemars(skip)]
    pub peer: Option<Name>,
}

/// A link inside the node: two ports without an interface. What leaves through one enters through the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NodeLink {
    /// Names of the two ports. At most one virtual port can be on each.
    #[schemars(schema_with = "schema::ends")]
    pub ends: [Name; 2],
    /// Largest IP packet that the link carries, in bytes.
    #[schemars(default = "mtu_default", schema_with = "schema::mtu")]
    pub mtu: u16,
    /// Bandwidth of the link in each direction, for the scheduler; by default unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
}

impl NodeLink {
    /// Its two ports.
    pub fn ports(&self) -> impl Iterator<Item = NodePort> {
        let [one, other] = &self.ends;
        [(one, other), (other, one)].into_iter().map(|(name, peer)| NodePort {
            mtu: self.mtu,
            bandwidth: self.bandwidth,
            peer: Some(peer.clone()),
            ..NodePort::new(name.clone())
        })
    }
}

impl NodePort {
    /// A port with the default of every field except its name.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self {
            name,
            mtu: limits::MTU_DEFAULT,
            interface: None,
            driver: PortDriver::default(),
            bandwidth: None,
            peer: None,
        }
    }

    /// Name of its Linux interface. Can exceed the kernel's limit if no interface is given and the port's
    /// name is longer. Meaningless for an end of a link (`peer`).
    #[must_use]
    pub fn interface(&self) -> &str {
        self.interface.as_ref().map_or(self.name.as_str(), InterfaceName::as_str)
    }
}

/// A virtual network on one node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Network {
    /// Format version.
    #[serde(rename = "apiVersion")]
    pub api_version: ApiVersion,
    /// Kind of document.
    pub kind: NetworkTag,
    /// Name.
    pub metadata: Metadata,
    /// Desired state.
    pub spec: NetworkSpec,
}

impl Network {
    /// The network's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_str()
    }
}

/// Desired state of a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Display colour; by default the tools choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Colour>")]
    pub colour: Option<Colour>,
    /// Id on this node, 1 to 4095; by default the lowest free id, assigned in the order of names.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "vid_number")]
    #[schemars(default, schema_with = "schema::vid")]
    pub vid: Option<Vid>,
    /// What happens to the network's packets.
    pub plane: Plane,
    /// Where the network runs on a live node.
    #[serde(skip_serializing_if = "Placement::is_default")]
    #[schemars(default)]
    pub placement: Placement,
    /// Requirements for the scheduler, which places networks with `placement: auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Needs>")]
    pub needs: Option<Needs>,
    /// Which frames belong to this network.
    #[serde(skip_serializing_if = "Select::is_default")]
    #[schemars(default)]
    pub select: Select,
    /// Virtual ports: the network's interfaces.
    #[schemars(schema_with = "schema::network_ports")]
    pub ports: Vec<NetworkPort>,
    /// Static routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::routes")]
    pub routes: Vec<Route>,
    /// Static neighbours: entries for ARP or neighbour discovery.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::neighbours")]
    pub neighbours: Vec<Neighbour>,
    /// Kind `l2`: MAC addresses that are not learnt but fixed. Frames from one of them that arrive at another port are
    /// dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::static_macs")]
    pub static_macs: Vec<StaticMac>,
    /// Kind `extract`: what happens to frames, by the bits of `plane.key`. The first entry that matches counts; frames that
    /// none matches are dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::entries")]
    pub entries: Vec<Entry>,
    /// Kind `rofl`: which labels are where. A packet goes to the closest label that is not behind its destination, the clockwise
    /// way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::flat_labels")]
    pub flat_labels: Vec<FlatLabel>,
    /// Kind `mpls`: what happens to packets, by the label on top of their stack. Packets with other labels are dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::labels")]
    pub labels: Vec<LabelEntry>,
    /// Share of a core or an output port relative to other networks.
    #[schemars(default = "one", schema_with = "schema::weight")]
    pub weight: u16,
    /// Stop the network's plane: its packets are dropped, and on the card its logic stops. The network keeps its
    /// place, routes and processes.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    pub gated: bool,
    /// Limit on the packets that the network receives; by default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<RateLimit>")]
    pub rate_limit: Option<RateLimit>,
    /// Limit on the packets that the network's namespace receives.
    #[serde(skip_serializing_if = "PuntLimit::is_default")]
    #[schemars(default)]
    pub punt_limit: PuntLimit,
    /// Limit on the memory of the network's table; by default only the memory of all networks together is
    /// limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<TableLimit>")]
    pub table: Option<TableLimit>,
    /// Resource limits of the programs in the network's namespace; by default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Resources>")]
    pub resources: Option<Resources>,
}

/// The ports of the document itself.
fn without_ends<S: Serializer>(ports: &[NodePort], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ports.iter().filter(|port| port.peer.is_none()))
}

pub(crate) const fn is_false(value: &bool) -> bool {
    !*value
}

fn key_parts<S: Serializer>(key: &Option<extract::Settings>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(key.iter().flat_map(parts))
}

fn is_ip_id(bits: &splice::Bits) -> bool {
    *bits == splice::Bits::IpId
}

fn bits_name<S: Serializer>(bits: &splice::Bits, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(bits.name())
}

fn route_by_name<S: Serializer>(by: &RouteBy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(by.name())
}

fn ttl_name<S: Serializer>(ttl: &mpls::Ttl, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(ttl.name())
}

fn one() -> u16 {
    1
}

fn mtu_default() -> u16 {
    limits::MTU_DEFAULT
}

/// The virtual data plane of a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::settings)]
pub struct Plane {
    /// Kind of plane.
    #[serde(serialize_with = "kind_name")]
    #[schemars(schema_with = "schema::kind")]
    pub kind: Kind,
    /// Kinds `ipv4`, `dual` and `splice`: what to do with IPv4 packets from or to addresses that no host can have, such as 127.0.0.1
    /// (RFC 1812 §5.3.7).
    #[serde(skip_serializing_if = "Martians::is_default")]
    #[schemars(default, schema_with = "schema::setting")]
    pub martians: Martians,
    /// Kinds `ipv4` and `ipv6`: by which addresses of a packet its route is chosen. Routes that depend on the source have `from`.
    /// Packets to the network's own addresses and links are treated alike with all values.
    #[serde(skip_serializing_if = "RouteBy::is_default", serialize_with = "route_by_name")]
    #[schemars(default, schema_with = "schema::setting")]
    pub route_by: RouteBy,
    /// Kind `l2`: most MAC addresses that the network learns. Frames from further hosts are forwarded, but frames to them
    /// go to all ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::setting")]
    pub macs_max: Option<u16>,
    /// Kind `l2`: seconds for which a learnt MAC address is kept after the last frame from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::setting")]
    pub ageing_seconds: Option<u32>,
    /// Kind `l2`: whether a learnt MAC address stays at its port until it ages out. Frames from it that arrive at another port
    /// are dropped.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    pub sticky: bool,
    /// Kind `l2`: limit on the frames that are sent to all ports: broadcasts, multicasts, and frames to hosts that are not
    /// known; by default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<RateLimit>")]
    pub storm_limit: Option<RateLimit>,
    /// Kind `extract`: which bits of the first 128 bytes of a frame make the key that `entries` compare, in this order; required, at
    /// most 16 bytes in all. A frame that ends before one of them is dropped.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "key_parts")]
    #[schemars(default, schema_with = "schema::key")]
    pub key: Option<extract::Settings>,
    /// Kind `rofl`: length of the network's labels in bits, a multiple of 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::setting")]
    pub label_bits: Option<u8>,
    /// Kind `rofl`: most pointers that the network caches. Packets with a source route teach them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::setting")]
    pub pointers_max: Option<u16>,
    /// Kind `rofl`: seconds for which a pointer is kept after the last packet that teaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::setting")]
    pub pointer_seconds: Option<u32>,
    /// Kind `splice`: how many tables the network has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::setting")]
    pub slices: Option<u8>,
    /// Kind `splice`: where the splicing bits of packets are: in the identification of the IPv4 header (`ip_id`), or in a header
    /// behind it (`shim`).
    #[serde(skip_serializing_if = "is_ip_id", serialize_with = "bits_name")]
    #[schemars(default, schema_with = "schema::setting")]
    pub bits: splice::Bits,
    /// Kind `mpls`: what the TTL of a label has to do with that of what is below it (RFC 3443): one for all (`uniform`), or each
    /// its own (`pipe`).
    #[serde(skip_serializing_if = "mpls::Ttl::is_default", serialize_with = "ttl_name")]
    #[schemars(default, schema_with = "schema::setting")]
    pub ttl: mpls::Ttl,
    /// Kind `process`: the program that forwards, and its arguments. It runs in the network's namespace and is started again when
    /// it ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::command")]
    pub command: Vec<String>,
    /// Kind `process`: Linux capabilities of the program, which concern its namespace only.
    #[serde(skip_serializing_if = "Capability::is_default")]
    #[schemars(default, schema_with = "schema::setting")]
    pub capabilities: Vec<Capability>,
    /// Kind `process`: whether the interfaces pass frames to AF_XDP sockets of the program. It inherits a map for the socket of each
    /// interface.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(default)]
    pub xdp: bool,
}

/// A Linux capability of a network's program (capabilities(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Capability {
    /// Sends and receives whole frames.
    NetRaw,
    /// Changes interfaces, routes and filters.
    NetAdmin,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NetRaw, Self::NetAdmin];

    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetRaw => "net_raw",
            Self::NetAdmin => "net_admin",
        }
    }

    /// Those of a program whose document names none.
    #[must_use]
    pub fn default_list() -> Vec<Self> {
        vec![Self::NetRaw]
    }

    fn is_default(list: &[Self]) -> bool {
        list == [Self::NetRaw]
    }
}

/// How a network treats packets from or to addresses that no host can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Martians {
    /// Drop them.
    #[default]
    Drop,
    /// Forward them like all other packets.
    Forward,
}

impl Martians {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Drop, Self::Forward];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Forward => "forward",
        }
    }

    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Drop
    }
}

/// A virtual port: an interface of the network on a physical port, or at the end of a tunnel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "NetworkPortText")]
#[schemars(with = "NetworkPortText", rename = "NetworkPort")]
pub struct NetworkPort {
    /// Name, unique in the network.
    pub name: Name,
    /// What its frames leave through.
    pub on: On,
    /// Router MAC address of the network on this port, unique among the virtual ports on one physical port.
    pub mac: Mac,
    /// Router addresses with the prefix lengths of their links.
    pub addresses: Vec<InterfaceAddress>,
    /// Largest IP packet sent, in bytes; by default the largest that the physical port, or the tunnel, carries.
    pub mtu: Option<u16>,
}

/// What is under a virtual port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum On {
    /// The physical port with this name.
    Port(Name),
    /// A tunnel.
    Tunnel(Tunnel),
}

impl NetworkPort {
    /// The physical port that it is on; `None` for a tunnel.
    #[must_use]
    pub fn physical(&self) -> Option<&Name> {
        match &self.on {
            On::Port(name) => Some(name),
            On::Tunnel(_) => None,
        }
    }

    /// The tunnel that it is the end of.
    #[must_use]
    pub fn tunnel(&self) -> Option<&Tunnel> {
        match &self.on {
            On::Port(_) => None,
            On::Tunnel(tunnel) => Some(tunnel),
        }
    }
}

/// A virtual port: an interface of the network on a physical port (`port`), or at the end of a tunnel (`tunnel`).
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NetworkPort", transform = schema::port_or_tunnel)]
pub(crate) struct NetworkPortText {
    /// Name, unique in the network.
    name: Name,
    /// Physical port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    port: Option<Name>,
    /// Tunnel to another node, instead of a physical port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<TunnelText>")]
    tunnel: Option<TunnelText>,
    /// Network of the same node that carries the tunnel: its routes lead to the far end, and its limits apply to the outer
    /// packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    over: Option<Name>,
    /// Router MAC address of the network on this port, unique among the virtual ports on one physical port. A tunnel without
    /// it gets a local one that depends on its ends.
    #[serde(serialize_with = "text")]
    #[schemars(default, schema_with = "schema::mac")]
    mac: Mac,
    /// Router addresses with the prefix length of their link, such as `10.1.0.1/24`. Networks can use the
    /// same prefixes on one physical port, but not the same router address, because both would answer ARP
    /// requests (or neighbor solicitations) for it. Link-local addresses are not listed: each port has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::addresses")]
    addresses: Vec<InterfaceAddress>,
    /// Largest IP packet sent, in bytes; by default the physical port's MTU, or with a tunnel what the ports of the network
    /// `over` have room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::mtu")]
    mtu: Option<u16>,
}

impl From<NetworkPort> for NetworkPortText {
    fn from(port: NetworkPort) -> Self {
        let NetworkPort { name, on, mac, addresses, mtu } = port;
        let (port, tunnel, over) = match on {
            On::Port(name) => (Some(name), None, None),
            On::Tunnel(tunnel) => (None, Some(TunnelText::from(&tunnel)), Some(tunnel.over)),
        };
        Self { name, port, tunnel, over, mac, addresses, mtu }
    }
}

/// A static route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "RouteText")]
#[schemars(with = "RouteText", rename = "Route")]
pub struct Route {
    /// Sources, if the route depends on them.
    pub from: Option<AnyPrefix>,
    /// Destination; all addresses of the family if the document names none.
    pub to: AnyPrefix,
    /// The table that it is in, of a network with several; otherwise 0.
    pub slice: u8,
    /// Where matching packets go.
    pub target: Target,
}

/// Next hop of a static route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The router with this address on one of the network's links.
    Via(IpAddr),
    /// The link of the virtual port with this name: destinations are neighbours.
    Port(Name),
    /// Several routers, which share the flows; at least one.
    Vias(Vec<RouteMember>),
}

/// One of several routers that share the flows of a static route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RouteMember {
    /// Address of the router, on one of the network's links.
    #[schemars(schema_with = "schema::address")]
    pub via: IpAddr,
    /// Its part of the flows, relative to the others.
    #[schemars(default = "RouteMember::default_weight", schema_with = "schema::member_weight")]
    pub weight: u16,
}

impl RouteMember {
    /// The weight of a member without one.
    #[must_use]
    pub const fn default_weight() -> u16 {
        1
    }
}

/// A neighbour with a static MAC address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Neighbour {
    /// Virtual port whose link the neighbour is on.
    pub port: Name,
    /// Address of the neighbour, on the link of that port.
    #[schemars(schema_with = "schema::address")]
    pub address: IpAddr,
    /// MAC address of the neighbour.
    #[serde(serialize_with = "text")]
    #[schemars(schema_with = "schema::mac")]
    pub mac: Mac,
}

/// A MAC address with a fixed place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StaticMac {
    /// The address.
    #[serde(serialize_with = "text")]
    #[schemars(schema_with = "schema::mac")]
    pub mac: Mac,
    /// The virtual port that it is behind.
    pub port: Name,
}

/// A token bucket: a rate and a burst size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Packets, or bits of frames, per second.
    pub per_second: u64,
    /// Packets, or bits of frames, at once.
    pub burst: u64,
}

/// Limit on the packets that a network receives: a bucket of packets, of bits of frames, or both. Packets
/// that exceed either are dropped and counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "RateLimitText")]
#[schemars(with = "RateLimitText", rename = "RateLimit")]
pub struct RateLimit {
    /// Limit in packets.
    pub packets: Option<Bucket>,
    /// Limit in bits of frames, from the destination MAC address to the last byte.
    pub bits: Option<Bucket>,
}

/// Which frames belong to a network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(into = "SelectText")]
#[schemars(with = "SelectText", rename = "Select")]
pub enum Select {
    /// Frames with the router MAC address of one of its virtual ports as destination; not for kind `l2`.
    #[default]
    Mac,
    /// All frames that arrive on the network's physical ports, but for those to MAC addresses of other networks. The
    /// default of kind `l2`.
    Port,
    /// Frames by IPv4 destination; for a tunnel, that of the inner packet.
    Inner(Vec<Prefix4>),
}

impl Select {
    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        matches!(self, Self::Mac)
    }
}

/// A static route: through a router (`via`) or directly onto a link (`port`). `to`, `from` or both, as `route_by` of the plane says.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Route", transform = schema::one_target)]
pub(crate) struct RouteText {
    /// Destination prefix; by default, if there is `from`, all addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::prefix")]
    to: Option<String>,
    /// Prefix of the sources, longer than 0 bits, in a network with `route_by: source` or `source_destination`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::prefix")]
    from: Option<String>,
    /// Address of the next-hop router, on one of the network's links; or a list of routers, which share the flows according to
    /// their weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::via")]
    via: Option<ViaText>,
    /// Virtual port whose link the destinations are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    port: Option<Name>,
    /// Kind `splice`: the table that the route is in, below `plane.slices`; by default 0. Links are in all of them.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default, schema_with = "schema::slice")]
    slice: u8,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// One router or several.
#[derive(Serialize)]
#[serde(untagged)]
enum ViaText {
    One(IpAddr),
    Several(Vec<RouteMember>),
}

impl From<Route> for RouteText {
    fn from(route: Route) -> Self {
        let (via, port) = match route.target {
            Target::Via(via) => (Some(ViaText::One(via)), None),
            Target::Vias(members) => (Some(ViaText::Several(members)), None),
            Target::Port(port) => (None, Some(port)),
        };
        let to = (route.from.is_none() || route.to.len() > 0).then(|| route.to.to_string());
        Self { to, from: route.from.map(|from| from.to_string()), via, port, slice: route.slice }
    }
}

/// Limit on the packets that a network receives, in packets, in bits of frames, or both. Packets that exceed
/// it are dropped and counted.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RateLimit", transform = schema::rate_pairs)]
pub(crate) struct RateLimitText {
    /// Packets per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::rate")]
    packets_per_second: Option<u64>,
    /// Packets at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::rate")]
    burst_packets: Option<u64>,
    /// Bits of frames per second: a number, or a rate such as `10Mbit/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::bit_rate")]
    bits_per_second: Option<BitRate>,
    /// Bits of frames at once, at least one frame of the largest MTU: a number, or an amount such as `80kbit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::bits")]
    burst_bits: Option<Bits>,
}

impl From<RateLimit> for RateLimitText {
    fn from(limit: RateLimit) -> Self {
        Self {
            packets_per_second: limit.packets.map(|bucket| bucket.per_second),
            burst_packets: limit.packets.map(|bucket| bucket.burst),
            bits_per_second: limit.bits.map(|bucket| BitRate(bucket.per_second)),
            burst_bits: limit.bits.map(|bucket| Bits(bucket.burst)),
        }
    }
}

/// Which frames belong to a network: by MAC address, ingress port or inner destination.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Select", transform = schema::inner_prefixes)]
pub(crate) struct SelectText {
    /// The property of a frame that selects the network.
    by: SelectBy,
    /// With `by: inner`: the destination prefixes of this network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::select_prefixes")]
    prefixes: Option<Vec<String>>,
}

/// The property of a frame that selects its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SelectBy {
    /// Destination MAC address.
    Mac,
    /// Ingress port.
    Port,
    /// IPv4 destination; for a tunnel, that of the inner packet.
    Inner,
}

impl From<Select> for SelectText {
    fn from(select: Select) -> Self {
        match select {
            Select::Mac => Self { by: SelectBy::Mac, prefixes: None },
            Select::Port => Self { by: SelectBy::Port, prefixes: None },
            Select::Inner(prefixes) => Self {
                by: SelectBy::Inner,
                prefixes: Some(prefixes.iter().map(ToString::to_string).collect()),
            },
        }
    }
}

/// A name: 1 to 63 letters, digits, `-`, `_` or `.`, beginning with a letter or digit. Names are used in file
/// names, metrics and API paths, and need no quoting in any of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not a name (the author's fault).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected 1 to 63 letters, digits, '-', '_' or '.', beginning with a letter or digit")]
pub struct NameError;

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let rest = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if first && rest && text.len() <= limits::NAME_CHARS_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError)
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

/// A display colour: red, green, blue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Colour(pub [u8; 3]);

/// The text is not a colour (the author's fault).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected '#' and six hexadecimal digits")]
pub struct ColourError;

impl FromStr for Colour {
    type Err = ColourError;

    fn from_str(text: &str) -> Result<Self, ColourError> {
        let digits = text.strip_prefix('#').ok_or(ColourError)?;
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ColourError);
        }
        let [_, red, green, blue] = u32::from_str_radix(digits, 16).map_err(|_| ColourError)?.to_be_bytes();
        Ok(Self([red, green, blue]))
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Serialize for Colour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn text<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn kind_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

#[allow(clippy::ref_option)] // the signature that serde requires
fn vid_number<S: Serializer>(vid: &Option<Vid>, serializer: S) -> Result<S::Ok, S::Error> {
    match vid {
        Some(vid) => serializer.serialize_u16(vid.get()),
        None => serializer.serialize_none(),
    }
}
