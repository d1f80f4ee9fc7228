//! Errors of a card.

use std::io;
use std::path::PathBuf;

use hue_substrate::SubstrateError;
use hue_tables::TableError;
use thiserror::Error;

use crate::bar::BarError;
use crate::registers::AccessError;
use crate::rows::FieldError;

/// Name of the substrate in `spec/kinds.toml`, intent and output.
pub const NAME: &str = "card";
/// Name of the substrate that decides the packets of all networks that the card does not decide.
pub(crate) const SOFTWARE: &str = "soft";

/// Why a card cannot be used, or can no longer be used.
#[derive(Debug, Error)]
pub enum CardError {
    /// No image has this name (the caller's fault).
    #[error("no image '{name}' in {places}: {have}", have = list(.known))]
    Image {
        /// The name.
        name: String,
        /// Folders that were searched.
        places: String,
        /// Images found there.
        known: Vec<String>,
    },
    /// The file is not an image, or is damaged.
    #[error("image {path}: {reason}")]
    ImageFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A register does not accept this value.
    #[error(
        "register 0x{address:03x} does not take 0x{value:08x}: bits that can be written are 0x{bits:08x}"
    )]
    Write {
        /// Its address.
        address: u32,
        /// The value.
        value: u32,
        /// The bits that can be written, if any.
        bits: u32,
    },
    /// A register space cannot be mapped.
    #[error(transparent)]
    Bar(#[from] BarError),
    /// The device is not a card, or its version is not supported.
    #[error("not a card that this driver supports: {what} is {found}, expected {expected}")]
    Unknown {
        /// The register or field.
        what: &'static str,
        /// The value found.
        found: String,
        /// The value expected.
        expected: String,
    },
    /// A register access failed.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A value does not fit its field (a bug of the driver).
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A table access failed.
    #[error("table {table}, row {row}: {reason}")]
    Table {
        /// Name of the table.
        table: &'static str,
        /// Index of the row.
        row: u32,
        /// The error that the card reported, or that it did not answer.
        reason: &'static str,
    },
    /// A frame names a port that does not exist (the caller's fault).
    #[error("port {port}: the card has ports 0 to {last}", last = ports - 1)]
    Port {
        /// The port.
        port: u8,
        /// Number of ports.
        ports: u32,
    },
    /// Frames are in the card, but no beat moves.
    #[error("the card is stuck: nothing moved for {cycles} cycles with {waiting} frames inside")]
    Stuck {
        /// Number of cycles without movement.
        cycles: u64,
        /// Frames that had not left when this was noticed, including dropped ones.
        waiting: usize,
    },
    /// Records do not leave the stages, so data that they may refer to cannot be changed. Nothing was changed.
    #[error(
        "packets do not leave the card's stages: a port accepts none, and full queues apply back-pressure"
    )]
    Busy,
    /// A change took longer than the longest hold.
    #[error("the card's hold ended while its tables were changed: packets may have seen part of the change")]
    Late,
    /// The card sent a malformed frame.
    #[error("the card sent a malformed frame: {0}")]
    Nonsense(String),
    /// An assertion of the RTL failed.
    #[error("an assertion of the card failed: {0}")]
    Assertion(String),
    /// The card's thread cannot be started (the machine's fault).
    #[error("the card's thread cannot start: {reason}")]
    Start {
        /// Why.
        reason: String,
    },
    /// There is no memory for the driver's own tables.
    #[error(transparent)]
    Memory(TableError),
    /// A waveform file cannot be written.
    #[error("{path}: the waveform cannot be written: {source}")]
    Wave {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The image has no waveforms.
    #[error(
        "{0}: an image without waveforms; `scripts/images --out DIR` makes images that have them, for HUEPLANE_IMAGES=DIR"
    )]
    NoWaves(PathBuf),
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "no image is installed; build them with `make images`".to_owned()
    } else {
        format!("available: {}", names.join(", "))
    }
}

/// Converts a card error to a substrate error that says that the card no longer works.
pub fn broken(error: CardError) -> SubstrateError {
    SubstrateError::Broken { substrate: NAME, reason: error.to_string() }
}
