//! What a network's control plane knows and the data plane holds: routes, neighbours, tables.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What a route does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RouteKind {
    /// Sends it to a neighbour whose MAC address is known.
    Forward,
    /// Hands it to the control plane, which asks for the neighbour's MAC address.
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
    /// Destinations.
    pub prefix: String,
    /// What it does.
    pub kind: RouteKind,
    /// The next router.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Ipv4)]
    pub via: Option<Ipv4Addr>,
    /// Virtual port it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// MAC address of the next hop, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Who gave it: `kernel`, `static`, `ospf`, `bgp`, `bird`, … or the number.
    pub protocol: String,
    /// Of several routes to one prefix, the one of the least metric counts.
    pub metric: u32,
    /// The data plane does not have it: there is no room in the network's table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// Which routes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RouteFilter {
    /// Of this network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Those that hold this address only, the longest last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>, format = Ipv4)]
    pub address: Option<Ipv4Addr>,
    /// So many at most.
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
    #[schema(value_type = String, format = Ipv4)]
    pub address: Ipv4Addr,
    /// Its MAC address, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// As the kernel calls it: `reachable`, `stale`, `permanent`, `failed`, …
    pub state: String,
}

/// Which neighbours.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NeighbourFilter {
    /// Of this network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// So many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The route tables of the data plane: of software, where every network has its table, and of the card.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Tables {
    /// Layout of the table memory.
    pub layout: String,
    /// Bytes in use by all networks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<u64>,
    /// Bytes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// Bytes that are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_free: Option<u64>,
    /// What each network has in them, those with the largest tables first.
    pub networks: Vec<TableShare>,
    /// The tables of the card, while one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardTables>,
}

/// What a network has in the tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TableShare {
    /// The network.
    pub network: String,
    /// Routes.
    pub routes: u64,
    /// Rows of its next-hop table in use.
    pub next_hops: u64,
    /// Bytes that its lookups can reach: the size of its table without the others. This is what a quota is about.
    pub bytes_own: u64,
    /// Those of them that other networks reach too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_shared: Option<u64>,
    /// Bytes that would be freed if it were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_marginal: Option<u64>,
    /// Its quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_quota: Option<u64>,
    /// Routes that its namespace has and its table has no room for.
    #[serde(default)]
    pub routes_refused: u64,
    /// Announcements that were refused since it was loaded.
    #[serde(default)]
    pub refusals: u64,
}

/// The tables of the card.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CardTables {
    /// The image it runs.
    pub image: String,
    /// How it keeps routes: `tcam` or `dag36`.
    pub layout: String,
    /// What networks' tables are counted in: `words` of 36 bits, or `rows`.
    pub unit: String,
    /// Its memories; a tenant sees none.
    pub memories: Vec<CardMemory>,
    /// What each network that runs there has, those with the largest tables first.
    pub networks: Vec<CardShare>,
}

/// A memory of the card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardMemory {
    /// What it holds: `level0` to `level3` and `next hops`, or `routes`, `local addresses` and `next hops`.
    pub name: String,
    /// Words or rows in use.
    pub used: u64,
    /// Words or rows that there are.
    pub max: u64,
    /// Those that are left.
    pub free: u64,
    /// What one network can have of them, where that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_max: Option<u64>,
}

/// What a network has in the tables of the card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardShare {
    /// The network.
    pub network: String,
    /// Its routes there.
    pub routes: u64,
    /// Words or rows that its lookups can reach.
    pub own: u64,
    /// Those of them that other networks reach too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<u64>,
    /// Words or rows that would be free without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marginal: Option<u64>,
}
