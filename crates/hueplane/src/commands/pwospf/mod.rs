//! `hueplane pwospf`: a routing daemon for PW-OSPF, and what it says of itself.
//!
//! Flow: packets and the kernel's notifications → [`daemon`] → `hue_routing::pwospf::Router` → packets and the kernel's
//! routes ([`kernel`]). One thread does all of it. The state machine decides; sockets, clock and signals are here.

mod daemon;
mod kernel;
mod show;

use crate::cli::Pwospf;
use crate::failure::Failure;
use crate::local::questions;
use crate::print::result;
use show::Snapshot;

/// By which name others find it.
const NAME: &str = "pwospf";
/// Longest answer that `--show` reads, in bytes: a full database is about half of it.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Runs the command.
pub fn pwospf(args: &Pwospf) -> Result<(), Failure> {
    if !args.show {
        return daemon::run(args);
    }
    let snapshot: Snapshot = questions::ask(NAME, ANSWER_BYTES_MAX)?;
    result(args.output.format, &snapshot, || snapshot.text())
}
