//! What can go wrong with a card.

use std::path::PathBuf;

use hue_tables::TableError;
use thiserror::Error;

use crate::bar::BarError;
use crate::registers::AccessError;
use crate::rows::FieldError;

/// Why a card cannot be used, or no longer.
#[derive(Debug, Error)]
pub enum CardError {
    /// There is no image of that name (the caller's fault).
    #[error("no image '{name}' in {places}: {have}", have = list(.known))]
    Image {
        /// The name.
        name: String,
        /// Where it was looked for.
        places: String,
        /// Images that are there.
        known: Vec<String>,
    },
    /// The image file is none, or a damaged one.
    #[error("image {path}: {reason}")]
    ImageFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A register does not take that.
    #[error(
        "register 0x{address:03x} does not take 0x{value:08x}: bits that can be written are 0x{bits:08x}"
    )]
    Write {
        /// Its address.
        address: u32,
        /// What was to be written.
        value: u32,
        /// Which bits of it can be written, if any.
        bits: u32,
    },
    /// A register space cannot be had.
    #[error(transparent)]
    Bar(#[from] BarError),
    /// What answers is no card, or one of another version.
    #[error("no card that this driver knows: {what} is {found}, expected {expected}")]
    Unknown {
        /// What was read.
        what: &'static str,
        /// What it was.
        found: String,
        /// What it should have been.
        expected: String,
    },
    /// A register access failed.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A value does not fit where it was to be written (a bug of the driver).
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A table refused.
    #[error("table {table}, row {row}: {reason}")]
    Table {
        /// Name of the table.
        table: &'static str,
        /// Index of the row.
        row: u32,
        /// What the card said, or did not.
        reason: &'static str,
    },
    /// A frame is for a port that is not there (the caller's fault).
    #[error("port {port}: the card has ports 0 to {last}", last = ports - 1)]
    Port {
        /// The port.
        port: u8,
        /// How many there are.
        ports: u32,
    },
    /// Frames are inside and nothing moves.
    #[error("the card stands still: nothing moved for {cycles} cycles while {waiting} frames were under way")]
    Stuck {
        /// How long.
        cycles: u64,
        /// How many frames had not left when it was noticed; those that were dropped among them.
        waiting: usize,
    },
    /// Records do not leave the stages, so that what they may hold cannot be changed; nothing was.
    #[error("packets do not leave the card's stages: a port takes none, and full queues hold back")]
    Busy,
    /// A change took longer than the card can be held.
    #[error("the card's hold ended while its tables were changed: packets may have met a part of the change")]
    Late,
    /// A frame that left makes no sense.
    #[error("the card sent nonsense: {0}")]
    Nonsense(String),
    /// An assertion of the RTL failed.
    #[error("an assertion of the card failed: {0}")]
    Assertion(String),
    /// The card's thread cannot be started; the machine's fault.
    #[error("the card's thread cannot start: {reason}")]
    Start {
        /// Why.
        reason: String,
    },
    /// There is no memory for the driver's own tables.
    #[error(transparent)]
    Memory(TableError),
    /// A wave cannot be written.
    #[error("{0}: cannot write a wave there, or the image was built without waves")]
    Wave(PathBuf),
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "there is none (make images)".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    }
}
