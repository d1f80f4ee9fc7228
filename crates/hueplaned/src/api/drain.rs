//! Draining of the card, for maintenance.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Migration, MigrationStep};

/// Whether the card is drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// `true`: all networks move to software, and none runs on the card from then on. `false` ends that.
    pub drained: bool,
    /// Drain the card even if software cannot forward the bandwidth that networks need according to their documents.
    #[serde(default)]
    pub force: bool,
    /// A step of every move that is made to fail, for tests. The networks must then stay on the card and lose no packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<MigrationStep>,
}

/// Whether the card is drained now, and where networks are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DrainResult {
    /// Whether the card is drained.
    pub drained: bool,
    /// Whether the call changed that.
    pub changed: bool,
    /// Generation of the desired state.
    pub generation: u64,
    /// In the order of names: of a drained card, the networks that were on it; else the networks that are on it, and those
    /// whose documents say `card`.
    pub networks: Vec<NetworkDrained>,
}

/// A network after the card was drained, or is no longer drained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NetworkDrained {
    /// The network.
    pub network: String,
    /// Where it runs: `card` or `soft`.
    pub substrate: String,
    /// Why it is still on a drained card, or why it has not returned to the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The report of its move to software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<Migration>,
}
