//! `hueplane rofl-ring`: the routing daemon of a network of kind `rofl`, and what it says of itself.
//!
//! Flow: frames of the network's interfaces, and the network as hueplane has it ([`owner`]) → [`daemon`] →
//! `hue_routing::ring::Router` → frames, and labels for hueplane. One thread does all of it. The state machine decides; sockets,
//! clock and signals are here.

mod daemon;
mod owner;
mod ports;
mod show;

use crate::cli::RoflRing;
use crate::failure::Failure;
use crate::local::questions;
use crate::print::{self, result};
use show::Snapshot;

/// By which name others find it.
const NAME: &str = "rofl-ring";
/// Longest answer that `--show` reads, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Runs the command.
pub fn rofl_ring(args: &RoflRing) -> Result<(), Failure> {
    if !args.show {
        return daemon::run(args);
    }
    let snapshot: Snapshot = questions::ask(NAME, ANSWER_BYTES_MAX)?;
    result(args.output.format, &snapshot, || snapshot.text())
}

/// Says something to the operator.
fn note(text: &str) {
    print::note(NAME, text);
}

fn broken(error: impl ToString) -> Failure {
    Failure::Broken(error.to_string())
}
