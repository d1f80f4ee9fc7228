//! Where networks run, where they should run, and why.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Timestamp;

/// Which plan to make.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlanQuery {
    /// Scheduler to use; by default that of the node's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub scheduler: Option<SchedulerName>,
    /// Whether to use measured rates instead of the bandwidth in documents.
    #[serde(default)]
    pub from_traffic: bool,
}

/// A scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerName {
    /// Networks of low throughput run in software while they fit, the others on the card.
    Greedy,
    /// The placement that serves the most bandwidth, minus the cost of moves.
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

/// Where a scheduler would place networks, and the moves this takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Scheduler that made the plan. If it is not the requested one, `note` says why.
    pub scheduler: SchedulerName,
    /// Remarks on the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether measured rates were used instead of the bandwidth in documents.
    pub from_traffic: bool,
    /// Bandwidth that a move has to gain, bits per second.
    pub move_cost_bps: u64,
    /// Bandwidth that networks need, bits per second.
    pub needed_bps: u64,
    /// Part of that which would be served, bits per second.
    pub served_bps: u64,
    /// Networks, sorted by name.
    pub networks: Vec<PlannedNetwork>,
    /// Networks that would move, those that free room on the card first.
    pub moves: Vec<PlannedMove>,
    /// Use of each capacity.
    pub uses: Vec<CapacityUse>,
}

/// Where a network would run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedNetwork {
    /// The network.
    pub network: String,
    /// Placement in its document: `auto`, `card` or `soft`.
    pub placement: String,
    /// Latency in its document: `normal` or `low`.
    pub latency: String,
    /// Where it runs now: `card` or `soft`; absent for a new network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// Where it would run.
    pub substrate: String,
    /// Core assumed for it, if in software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u16>,
    /// Bandwidth that it needs, bits per second.
    pub needed_bps: u64,
    /// Part of that which would be served, bits per second.
    pub served_bps: u64,
    /// Why it would run there.
    pub why: String,
    /// Why not on the other substrate.
    pub why_not: String,
}

/// A network that would move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedMove {
    /// The network.
    pub network: String,
    /// Substrate it would leave.
    pub from: String,
    /// Substrate it would move to.
    pub to: String,
    /// Why it would move.
    pub why: String,
}

/// How much of a capacity would be used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CapacityUse {
    /// Name of the capacity, such as `card next hops` or `core 0 bit/s`.
    pub what: String,
    /// Amount used.
    pub used: u64,
    /// Amount available in total.
    pub max: u64,
}

/// Where a network runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// The network.
    pub network: String,
    /// Placement in its document: `auto`, `card` or `soft`.
    pub placement: String,
    /// Where it runs: `card` or `soft`.
    pub substrate: String,
    /// Since when.
    pub since: Timestamp,
    /// Why it runs there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why not on the other substrate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}
