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

/// The route tables of the data plane.
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
    /// What each network has in them.
    pub networks: Vec<TableShare>,
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
    /// Bytes that its lookups can reach: the size of its table without the others.
    pub bytes_own: u64,
    /// Bytes that would be freed if it were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_marginal: Option<u64>,
}
