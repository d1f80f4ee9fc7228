//! Routes, neighbours and tables of networks.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Action of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RouteKind {
    /// Sends it to a neighbour whose MAC address is known.
    Forward,
    /// Hands it to the control plane, which resolves the neighbour's MAC address.
    Glean,
    /// Hands it to the control plane: it is for the router itself, or only the kernel knows what to do.
    Local,
}

impl RouteKind {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Glean => "glean",
            Self::Local => "local",
        }
    }
}

/// A route of a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Route {
    /// The network.
    pub network: String,
    /// Destination prefix.
    pub prefix: String,
    /// The table that it is in, of a network with slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<u8>,
    /// Its action on packets.
    pub kind: RouteKind,
    /// Next-hop router; the first usable one, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub via: Option<IpAddr>,
    /// Virtual port it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// MAC address of the next hop, if known and the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Next hops, if there are several: those that can be used share the flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<RouteWay>,
    /// Origin: `kernel`, `static`, `ospf`, `bgp`, `bird`, … or the protocol number.
    pub protocol: String,
    /// Metric; the lowest wins among routes to the same prefix.
    pub metric: u32,
    /// Whether the data plane lacks it because the network's table has no room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// One of several next hops of a route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RouteWay {
    /// Next-hop router.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub via: Option<IpAddr>,
    /// Virtual port it is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Its part of the flows, relative to the others.
    pub weight: u16,
    /// Whether the kernel cannot use it now: its link is down or has no carrier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
}

/// Which routes to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RouteFilter {
    /// Only routes of this network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Only routes whose prefix contains this address, the longest last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Maximum number of routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A neighbour of a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Neighbour {
    /// The network.
    pub network: String,
    /// Virtual port whose link it is on.
    pub port: String,
    /// Its address.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// Its MAC address, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// State as the kernel names it: `reachable`, `stale`, `permanent`, `failed`, …
    pub state: String,
}

/// A MAC address that a network of a kind that learns knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MacAddress {
    /// The network.
    pub network: String,
    /// The address.
    pub mac: String,
    /// Virtual port that it is behind.
    pub port: String,
    /// Whether it is static; otherwise it is learnt.
    #[serde(rename = "static")]
    pub fixed: bool,
    /// Seconds since it was last seen, with a precision of a second; absent if it is static.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
}

/// An entry of a network whose kind compares bits of frames (`extract`) or labels (`rofl`, `mpls`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TableEntry {
    /// The network.
    pub network: String,
    /// Its place among the network's entries, from 0. Of kind `extract` the first one that matches counts; of kind `rofl` the
    /// closest one, and cached pointers follow the entries.
    pub index: u64,
    /// Which keys match: `any`, a value, a value with the number of its first bits that are compared, or a value and a mask; of
    /// kinds `rofl` and `mpls` a label.
    #[serde(rename = "match")]
    pub matches: String,
    /// What happens to the frames.
    pub action: EntryAction,
    /// Virtual port by which they are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Destination MAC address that they get; absent if they keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Source MAC address that they get; absent if they keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Kind `rofl`: whether the destination is the host that has the label; otherwise it is a router.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resident: bool,
    /// Of a cached pointer: seconds since a packet last taught it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// Of kind `mpls`: the labels that replace the one that matches, the top first; none if it is popped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<u32>>,
}

/// What happens to the frames of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryAction {
    /// They are sent.
    Forward,
    /// They go to the network's namespace.
    Punt,
    /// They are dropped.
    Drop,
}

impl EntryAction {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Punt => "punt",
            Self::Drop => "drop",
        }
    }
}

/// Which neighbours, MAC addresses or entries to list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NetworkFilter {
    /// Only those of this network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Maximum number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Route tables of the data plane: in software, where every network has its own, and on the card.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Tables {
    /// Layout of the table memory.
    pub layout: String,
    /// Bytes used by all networks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<u64>,
    /// Maximum bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// Free bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_free: Option<u64>,
    /// Share of each network, the largest tables first.
    pub networks: Vec<TableShare>,
    /// Tables of the card, while one is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardTables>,
}

/// A network's share of the tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TableShare {
    /// The network.
    pub network: String,
    /// Routes.
    pub routes: u64,
    /// Rows used in its next-hop table.
    pub next_hops: u64,
    /// Bytes that its lookups can reach: the size of its table on its own. The quota limits this number.
    pub bytes_own: u64,
    /// Part of these that other networks reach too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_shared: Option<u64>,
    /// Bytes that removing the network would free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_marginal: Option<u64>,
    /// Its quota, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_quota: Option<u64>,
    /// Routes of its namespace that its table has no room for.
    #[serde(default)]
    pub routes_refused: u64,
    /// Announcements refused since it was loaded.
    #[serde(default)]
    pub refusals: u64,
    /// MAC addresses that it has learnt and not forgotten, if its kind learns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macs_learnt: Option<u64>,
    /// Most MAC addresses that it learns, if its kind learns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macs_max: Option<u64>,
}

/// The tables of the card.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CardTables {
    /// Image that it runs.
    pub image: String,
    /// Layout of its routes: `tcam`, `dag36`, `sram` or `dir`.
    pub layout: String,
    /// Unit of the networks' tables: `words` of 36 bits, or `rows`.
    pub unit: String,
    /// Its memories; none for a tenant.
    pub memories: Vec<CardMemory>,
    /// Share of each network on the card, the largest tables first.
    pub networks: Vec<CardShare>,
}

/// A memory of the card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardMemory {
    /// Its content: `level0` to `level3` or `sram`, and `next hops`; or `routes`, `addresses` and `next hops`; or, with layout `dir`, entries
    /// of the first bank, sets of the second, rows of the Conflict CAM, and `next hops`.
    pub name: String,
    /// Words or rows used.
    pub used: u64,
    /// Words or rows in total.
    pub max: u64,
    /// Words or rows free.
    pub free: u64,
    /// Maximum for one network, if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_max: Option<u64>,
}

/// A network's share of the card's tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardShare {
    /// The network.
    pub network: String,
    /// Its routes on the card.
    pub routes: u64,
    /// Words or rows that its lookups can reach.
    pub own: u64,
    /// Part of these that other networks reach too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<u64>,
    /// Words or rows that removing the network would free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marginal: Option<u64>,
}
