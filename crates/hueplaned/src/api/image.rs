//! Images of the card: what there is, and loading another one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::MigrationPhase;

/// An image in the catalogue.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ImageInfo {
    /// Name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Kinds of plane.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// How it keeps routes: `tcam` or `dag36`.
    #[serde(default)]
    pub layout: String,
    /// Bits of its bus.
    #[serde(default)]
    pub bus_bits: u32,
    /// Clock of its data path, kHz.
    #[serde(default)]
    pub clock_khz: u32,
    /// Planes, each with a clock gate.
    #[serde(default)]
    pub planes: u32,
    /// Networks that can run on it at once.
    #[serde(default)]
    pub networks_max: u32,
    /// Rows, or words, of its tables.
    #[serde(default)]
    pub tables: BTreeMap<String, u64>,
    /// CRC-32 of the file's content, eight hexadecimal digits.
    #[serde(default)]
    pub checksum: String,
    /// What it takes in FPGAs, by technology, as far as measured (`make synth`).
    #[serde(default)]
    #[schema(value_type = Object)]
    pub resources: BTreeMap<String, Value>,
    /// The card runs it.
    #[serde(default)]
    pub running: bool,
    /// Why it cannot be loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How to load an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadImageRequest {
    /// The card is away at least so long, milliseconds, 600,000 at most: an FPGA takes seconds to be configured.
    #[serde(default)]
    pub reconfigure_ms: u32,
}

/// A network after an image was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NetworkPlaced {
    /// The network.
    pub network: String,
    /// Where it runs: `card` or `soft`.
    pub substrate: String,
    /// Why it does not run on the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_soft: Option<String>,
}

/// An image was loaded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ImageLoaded {
    /// The image that the card runs.
    pub image: String,
    /// The one before.
    pub before: String,
    /// The steps: `leave`, `swap`, `choose` (the networks that get the card), `return`, `settle` (moves of other networks).
    pub phases: Vec<MigrationPhase>,
    /// Microseconds of all steps.
    pub duration_us: u64,
    /// The networks that are or were on the card, in the order of names. None of them is moving.
    pub networks: Vec<NetworkPlaced>,
}
