//! Images of the card: the catalogue, and loading an image.

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
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// Kinds of plane.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Layout of its routes: `tcam`, `dag36`, `sram` or `dir`.
    #[serde(default)]
    pub layout: String,
    /// Width of its bus, bits.
    #[serde(default)]
    pub bus_bits: u32,
    /// Clock of its data path, kHz.
    #[serde(default)]
    pub clock_khz: u32,
    /// Planes, each with a clock gate.
    #[serde(default)]
    pub planes: u32,
    /// Largest number of networks that can run on it.
    #[serde(default)]
    pub networks_max: u32,
    /// Rows, or words, of its tables.
    #[serde(default)]
    pub tables: BTreeMap<String, u64>,
    /// CRC-32 of the file's content, eight hexadecimal digits.
    #[serde(default)]
    pub checksum: String,
    /// FPGA resources that it uses, by technology, if measured (`make synth`).
    #[serde(default)]
    #[schema(value_type = Object)]
    pub resources: BTreeMap<String, Value>,
    /// Whether the card runs this image.
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
    /// Least time that the card is unavailable, milliseconds, at most 600,000: an FPGA takes seconds to be
    /// configured.
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
    /// The previous image.
    pub before: String,
    /// The steps: `leave`, `swap`, `choose` (networks for the card), `return`, `settle` (moves of other networks).
    pub phases: Vec<MigrationPhase>,
    /// Duration of all steps, microseconds.
    pub duration_us: u64,
    /// The networks that are or were on the card, in the order of names. None of them is moving.
    pub networks: Vec<NetworkPlaced>,
}
