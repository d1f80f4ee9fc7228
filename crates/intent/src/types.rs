//! Desired state as typed values: what a `Node` and a `Network` document say.
//!
//! Flow: YAML → reader → decoder → **these types** (validated as a whole) → control compiles them.
//! Invariants: a value of these types that came out of [`crate::load`] has passed every check of `validate`.
//! Units: MTU in bytes of IP packet, rates per second, bursts in packets or bits.
//! The JSON Schema is derived from these types, so their doc comments are the reference documentation.

use std::borrow::Borrow;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use hue_planes::Kind;
use hue_tables::{Prefix4, Vid};
use hue_wire::Mac;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::card::{Card, Placement};
use crate::limits;
use crate::live::{InterfaceName, PortDriver, PuntLimit, Resources};
use crate::needs::{Bandwidth, Needs, Scheduler};
use crate::schema;
use crate::table::TableLimit;

/// Version of the document format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub enum ApiVersion {
    /// The first version.
    #[default]
    #[serde(rename = "hueplane/v1")]
    V1,
}

impl ApiVersion {
    /// How documents spell it.
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

/// What every document says about itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Metadata {
    /// Name, unique among the documents of its kind.
    pub name: Name,
}

/// A box that runs networks: its physical ports.
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
    /// Physical ports: where frames come from and go to.
    #[schemars(schema_with = "schema::node_ports")]
    pub ports: Vec<NodePort>,
    /// The card; without one all networks run in software.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Card>")]
    pub card: Option<Card>,
    /// How the node decides where networks run that leave it to the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Scheduler>")]
    pub scheduler: Option<Scheduler>,
}

/// A physical port of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NodePort {
    /// Name, such as `p0`. `punt` is taken: `hueplane run` writes `punt.pcap`.
    pub name: Name,
    /// Largest IP packet the link carries, bytes.
    #[schemars(default = "mtu_default", schema_with = "schema::mtu")]
    pub mtu: u16,
    /// Linux interface of a live node; without one that of the port's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<InterfaceName>")]
    pub interface: Option<InterfaceName>,
    /// How a live node reaches the interface.
    #[serde(skip_serializing_if = "PortDriver::is_default")]
    #[schemars(default)]
    pub driver: PortDriver,
    /// What the link carries each way, for the scheduler; without it as much as comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
}

impl NodePort {
    /// A port that says nothing but its name.
    #[must_use]
    pub fn new(name: Name) -> Self {
        Self {
            name,
            mtu: limits::MTU_DEFAULT,
            interface: None,
            driver: PortDriver::default(),
            bandwidth: None,
        }
    }

    /// Name of its Linux interface. Longer than the kernel allows when the port's name is, and no interface is given.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.interface.as_ref().map_or(self.name.as_str(), InterfaceName::as_str)
    }
}

/// A virtual network as one node sees it.
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
    /// Display colour; without one the tools choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Colour>")]
    pub colour: Option<Colour>,
    /// Id on this node, 1 to 4095; without one the lowest free id, given out in the order of names.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "vid_number")]
    #[schemars(default, schema_with = "schema::vid")]
    pub vid: Option<Vid>,
    /// What happens to the network's packets.
    pub plane: Plane,
    /// Where the network runs on a live node.
    #[serde(skip_serializing_if = "Placement::is_default")]
    #[schemars(default)]
    pub placement: Placement,
    /// What the network needs; where networks leave their place to the node, it looks at that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Needs>")]
    pub needs: Option<Needs>,
    /// How frames find this network.
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
    /// Static neighbours (ARP entries).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::neighbours")]
    pub neighbours: Vec<Neighbour>,
    /// Share of a core or an output port relative to other networks.
    #[schemars(default = "one", schema_with = "schema::weight")]
    pub weight: u16,
    /// What the network may take at most; without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<RateLimit>")]
    pub rate_limit: Option<RateLimit>,
    /// What the network's namespace gets at most of its packets.
    #[serde(skip_serializing_if = "PuntLimit::is_default")]
    #[schemars(default)]
    pub punt_limit: PuntLimit,
    /// What the network's table may take; without it there is no limit but that of all networks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<TableLimit>")]
    pub table: Option<TableLimit>,
    /// What the programs in the network's namespace may take; without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Resources>")]
    pub resources: Option<Resources>,
}

fn one() -> u16 {
    1
}

fn mtu_default() -> u16 {
    limits::MTU_DEFAULT
}

/// The virtual data plane of a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Plane {
    /// Kind of plane.
    #[serde(serialize_with = "kind_name")]
    #[schemars(schema_with = "schema::kind")]
    pub kind: Kind,
    /// What to do with packets from or to addresses that no host can have, such as 127.0.0.1 (RFC 1812 §5.3.7).
    #[serde(skip_serializing_if = "Martians::is_default")]
    #[schemars(default)]
    pub martians: Martians,
}

/// What a network does with packets from or to addresses that no host can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Martians {
    /// It drops them.
    #[default]
    Drop,
    /// It forwards them like all others.
    Forward,
}

impl Martians {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Drop, Self::Forward];

    /// Its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Forward => "forward",
        }
    }

    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Drop
    }
}

/// A virtual port: an interface of the network on a physical port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NetworkPort {
    /// Name, unique in the network.
    pub name: Name,
    /// Physical port it is on.
    pub port: Name,
    /// Router MAC address of the network on this port; no two virtual ports on one physical port share one.
    #[serde(serialize_with = "text")]
    #[schemars(schema_with = "schema::mac")]
    pub mac: Mac,
    /// Router addresses with the prefix length of their link, such as `10.1.0.1/24`. Networks may use the same
    /// prefixes on one physical port, but not the same router address: both would answer ARP for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::addresses")]
    pub addresses: Vec<InterfaceAddress>,
    /// Largest IP packet sent, bytes; without it the physical port's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::mtu")]
    pub mtu: Option<u16>,
}

/// A static route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "RouteText")]
#[schemars(with = "RouteText", rename = "Route")]
pub struct Route {
    /// Destination.
    pub to: Prefix4,
    /// Where matching packets go.
    pub target: Target,
}

/// Where a static route leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The router with this address, which is on one of the network's links.
    Via(Ipv4Addr),
    /// The link of the virtual port of this name: destinations are neighbours themselves.
    Port(Name),
}

/// A neighbour whose MAC address is known beforehand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Neighbour {
    /// Virtual port whose link it is on.
    pub port: Name,
    /// Its address, on the link of that port.
    #[schemars(schema_with = "schema::address")]
    pub address: Ipv4Addr,
    /// Its MAC address.
    #[serde(serialize_with = "text")]
    #[schemars(schema_with = "schema::mac")]
    pub mac: Mac,
}

/// A token bucket: a rate and how much may come at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Packets, or bits of frames, a second.
    pub per_second: u64,
    /// Packets, or bits of frames, that may come at once.
    pub burst: u64,
}

/// Limit on what a network receives: a bucket of packets, of bits of frames, or both. What exceeds one of them is
/// dropped and counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "RateLimitText")]
#[schemars(with = "RateLimitText", rename = "RateLimit")]
pub struct RateLimit {
    /// In packets.
    pub packets: Option<Bucket>,
    /// In bits of frames, from the destination MAC to the last byte.
    pub bits: Option<Bucket>,
}

/// How frames find a network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[serde(into = "SelectText")]
#[schemars(with = "SelectText", rename = "Select")]
pub enum Select {
    /// By destination MAC address: the router MAC of the virtual port.
    #[default]
    Mac,
    /// Everything that arrives on the network's physical ports.
    Port,
    /// By IPv4 destination, of the packet inside when the frame is a tunnel.
    Inner(Vec<Prefix4>),
}

impl Select {
    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        matches!(self, Self::Mac)
    }
}

/// A static route: by a router (`via`) or straight onto a link (`port`).
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Route", transform = schema::one_target)]
pub(crate) struct RouteText {
    /// Destination prefix.
    #[schemars(schema_with = "schema::prefix")]
    to: String,
    /// Address of the next router, on one of the network's links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::address")]
    via: Option<Ipv4Addr>,
    /// Virtual port whose link the destinations are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Name>")]
    port: Option<Name>,
}

impl From<Route> for RouteText {
    fn from(route: Route) -> Self {
        let (via, port) = match route.target {
            Target::Via(via) => (Some(via), None),
            Target::Port(port) => (None, Some(port)),
        };
        Self { to: route.to.to_string(), via, port }
    }
}

/// Limit on what a network receives, in packets, in bits of frames, or both. What exceeds it is dropped and counted.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RateLimit", transform = schema::rate_pairs)]
pub(crate) struct RateLimitText {
    /// Packets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::rate")]
    packets_per_second: Option<u64>,
    /// Packets that may come at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::rate")]
    burst_packets: Option<u64>,
    /// Bits of frames a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::rate")]
    bits_per_second: Option<u64>,
    /// Bits of frames that may come at once: a frame of the largest MTU at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::rate")]
    burst_bits: Option<u64>,
}

impl From<RateLimit> for RateLimitText {
    fn from(limit: RateLimit) -> Self {
        Self {
            packets_per_second: limit.packets.map(|bucket| bucket.per_second),
            burst_packets: limit.packets.map(|bucket| bucket.burst),
            bits_per_second: limit.bits.map(|bucket| bucket.per_second),
            burst_bits: limit.bits.map(|bucket| bucket.burst),
        }
    }
}

/// How frames find a network: by MAC address, ingress port or inner destination.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Select", transform = schema::inner_prefixes)]
pub(crate) struct SelectText {
    /// What of a frame is looked at.
    by: SelectBy,
    /// With `by: inner`: the destinations that are this network's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::select_prefixes")]
    prefixes: Option<Vec<String>>,
}

/// What of a frame is looked at to find its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum SelectBy {
    /// Destination MAC address.
    Mac,
    /// Ingress port.
    Port,
    /// IPv4 destination, of the packet inside when the frame is a tunnel.
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

/// A name: 1 to 63 letters, digits, `-`, `_` or `.`, the first one a letter or digit. It is used in file
/// names, metrics and addresses of the API, so it needs no quoting in any of them.
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

/// A text is no name; the caller's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected 1 to 63 letters, digits, '-', '_' or '.', the first one a letter or digit")]
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

/// A display colour, red, green, blue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Colour(pub [u8; 3]);

/// A text is no colour; the caller's fault.
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

/// An address of a router on a link: the address and the length of the link's prefix, 1 to 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InterfaceAddress {
    /// The router's own address.
    pub address: Ipv4Addr,
    /// Length of the link's prefix, bits.
    pub len: u8,
}

impl InterfaceAddress {
    /// The prefix of the link.
    #[must_use]
    pub fn link(self) -> Prefix4 {
        Prefix4::containing(self.address.to_bits(), self.len)
    }

    /// The address that means "all hosts of the link": the last one. Links of 31 and 32 bits have none
    /// (RFC 3021 §2.1).
    #[must_use]
    pub fn broadcast(self) -> Option<Ipv4Addr> {
        (self.len <= 30).then(|| Ipv4Addr::from_bits(self.link().last()))
    }

    /// The address that names the link itself: the first one, `None` for links of 31 and 32 bits.
    #[must_use]
    pub fn network(self) -> Option<Ipv4Addr> {
        (self.len <= 30).then(|| Ipv4Addr::from_bits(self.link().addr()))
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl Serialize for InterfaceAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn text<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn kind_name<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

#[allow(clippy::ref_option)] // the signature serde asks for
fn vid_number<S: Serializer>(vid: &Option<Vid>, serializer: S) -> Result<S::Ok, S::Error> {
    match vid {
        Some(vid) => serializer.serialize_u16(vid.get()),
        None => serializer.serialize_none(),
    }
}
