//! Why an experiment cannot be made.

use hue_card::CardError;
use hue_ports::PortError;
use thiserror::Error;

use crate::run::FRAMES_MAX;
use crate::schedule::TooFast;

/// What is wrong with an experiment, or with what it found.
#[derive(Debug, Error)]
pub enum LabError {
    /// The card failed, or is none.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A capture cannot be read (the caller's fault).
    #[error(transparent)]
    Capture(#[from] PortError),
    /// The traffic of a port makes no sense with these networks (the caller's fault).
    #[error("traffic of {port}: {what}")]
    Traffic {
        /// Name of the port.
        port: String,
        /// What is wrong.
        what: String,
    },
    /// More is offered than the port's bus can carry (the caller's fault).
    #[error("traffic of {port}: {fault}")]
    TooFast {
        /// Name of the port.
        port: String,
        /// By how much.
        fault: TooFast,
    },
    /// The experiment itself makes no sense (the caller's fault).
    #[error("{0}")]
    Plan(&'static str),
    /// Too many frames to remember (the caller's fault).
    #[error("more than {FRAMES_MAX} frames: make it shorter")]
    Frames,
    /// What the card counted is not what went in and came out (a bug of the card or the lab).
    #[error("the card's counters do not add up: {0}")]
    Unbalanced(String),
}
