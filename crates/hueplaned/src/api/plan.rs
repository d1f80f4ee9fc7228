//! Where networks run, where they should, and why.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Timestamp;

/// Which plan is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlanQuery {
    /// The scheduler; without it that of the node's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub scheduler: Option<SchedulerName>,
    /// Whether measured rates stand in for the bandwidth that documents ask for.
    #[serde(default)]
    pub from_traffic: bool,
}

/// A scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerName {
    /// Networks of low throughput into software while they fit, the others onto the card.
    Greedy,
    /// The placement that serves the most bandwidth, less what moves cost.
    Exact,
}

impl SchedulerName {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Exact => "exact",
        }
    }
}

/// Where a scheduler would have networks run, and what would have to move for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// What made it: not what was asked for when that could not; `note` says why.
    pub scheduler: SchedulerName,
    /// What is to be known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether measured rates stand in for the bandwidth that documents ask for.
    pub from_traffic: bool,
    /// Bandwidth that a move had to gain, bits a second.
    pub move_cost_bps: u64,
    /// Bandwidth that networks need, bits a second.
    pub needed_bps: u64,
    /// What of that would be served, bits a second.
    pub served_bps: u64,
    /// Networks, in the order of names.
    pub networks: Vec<PlannedNetwork>,
    /// What would move: first those that make room on the card.
    pub moves: Vec<PlannedMove>,
    /// What would be used of each capacity.
    pub uses: Vec<CapacityUse>,
}

/// Where a network would run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedNetwork {
    /// The network.
    pub network: String,
    /// What its document says of its place: `auto`, `card` or `soft`.
    pub placement: String,
    /// How soon its packets are to leave: `normal` or `low`.
    pub latency: String,
    /// Where it runs: `card` or `soft`; absent for one that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// Where it would run.
    pub substrate: String,
    /// In software: the core that was reckoned with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u16>,
    /// Bandwidth that it needs, bits a second.
    pub needed_bps: u64,
    /// What of that would be served, bits a second.
    pub served_bps: u64,
    /// Why there.
    pub why: String,
    /// Why not on the other substrate.
    pub why_not: String,
}

/// A network that would move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedMove {
    /// The network.
    pub network: String,
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// Why.
    pub why: String,
}

/// How much of a capacity would be used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CapacityUse {
    /// Of what, such as `card next hops` or `core 0 bit/s`.
    pub what: String,
    /// Used.
    pub used: u64,
    /// There is.
    pub max: u64,
}

/// Where a network runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// The network.
    pub network: String,
    /// What its document says of its place: `auto`, `card` or `soft`.
    pub placement: String,
    /// Where it runs: `card` or `soft`.
    pub substrate: String,
    /// Since when.
    pub since: Timestamp,
    /// Why there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why not on the other substrate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}
