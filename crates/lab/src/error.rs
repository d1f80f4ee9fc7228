//! Errors of experiments.

use hue_card::CardError;
use hue_ports::PortError;
use thiserror::Error;

use crate::run::FRAMES_MAX;
use crate::schedule::TooFast;

/// Why an experiment, or its result, is invalid.
#[derive(Debug, Error)]
pub enum LabError {
    /// The card failed or does not exist.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A capture cannot be read (the caller's fault), or an interface fails.
    #[error(transparent)]
    Capture(#[from] PortError),
    /// The traffic of a port is not possible with these networks (the caller's fault).
    #[error("traffic of {port}: {what}")]
    Traffic {
        /// Name of the port.
        port: String,
        /// The cause.
        what: String,
    },
    /// An interface cannot be used (the caller's fault).
    #[error("{interface}: {what}")]
    Interface {
        /// Its name.
        interface: String,
        /// The cause, and what to do.
        what: String,
    },
    /// The traffic exceeds the rate of the port's bus (the caller's fault).
    #[error("traffic of {port}: {fault}")]
    TooFast {
        /// Name of the port.
        port: String,
        /// The difference.
        fault: TooFast,
    },
    /// The experiment itself is invalid (the caller's fault).
    #[error("{0}")]
    Plan(&'static str),
    /// There are too many frames to record (the caller's fault).
    #[error("more than {FRAMES_MAX} frames: use a shorter duration")]
    Frames,
    /// The networks do not load into the software engine (the caller's fault).
    #[error("{0}")]
    Engine(String),
    /// A waveform of the card's signals cannot be read back.
    #[error("waveform of the card's signals: {0}")]
    Wave(String),
    /// The card's counters differ from the offered and captured frames (a bug of the card or the lab).
    #[error("the card's counters do not add up: {0}")]
    Unbalanced(String),
}
