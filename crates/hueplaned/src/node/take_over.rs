//! Taking a running daemon's place: everything is set up while it forwards, then it closes its ports.
//!
//! Flow: networks are set up, without ports and TAPs → SIGTERM to the predecessor → its ports are opened → TAPs are read →
//! started. Invariants: at no time do both daemons have a port or read a TAP; a predecessor that does not end is not waited
//! for longer than [`PATIENCE`], and its ports are then reported as taken. Source: ADR 0041.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_host::process::Process;

/// How long networks may take to be set up before ports are opened anyway.
const SET_UP_MAX: Duration = Duration::from_secs(30);
/// How long the predecessor may take to close a port.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A daemon whose place this one takes.
pub enum TakeOver {
    /// It forwards. Until when networks may be set up.
    Preparing(Arc<Process>, Instant),
    /// It was asked to end, at this time; its ports are being opened.
    Opening(Arc<Process>, Instant),
}

impl TakeOver {
    pub(super) fn of(predecessor: Process) -> Self {
        Self::Preparing(Arc::new(predecessor), Instant::now() + SET_UP_MAX)
    }
}
