//! `hueplane rofl-ring`: the routing daemon of a network of kind `rofl`, and what it says of itself.
//!
//! Flow: frames of the network's interfaces, and the network as hueplane has it ([`owner`]) → [`daemon`] →
//! `hue_routing::ring::Router` → frames, and labels for hueplane. One thread does all of it. The state machine decides; sockets,
//! clock and signals are here.

mod daemon;
mod owner;
mod ports;
mod show;

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use crate::cli::RoflRing;
use crate::failure::Failure;
use crate::print::{self, result};
use show::Snapshot;

/// Name of the abstract socket at which it answers questions.
const SOCKET: &str = "hueplane-rofl-ring";
/// Longest answer that `--show` reads, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Longest time without a part of the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn rofl_ring(args: &RoflRing) -> Result<(), Failure> {
    if !args.show {
        return daemon::run(args);
    }
    let snapshot = ask()?;
    result(args.output.format, &snapshot, || snapshot.text())
}

/// Says something to the operator.
fn note(text: &str) {
    print::note("rofl-ring", text);
}

fn broken(error: impl ToString) -> Failure {
    Failure::Broken(error.to_string())
}

fn address() -> Result<SocketAddr, Failure> {
    SocketAddr::from_abstract_name(SOCKET).map_err(broken)
}

fn ask() -> Result<Snapshot, Failure> {
    let nobody = |error| {
        Failure::NoDaemon(format!(
            "no `hueplane rofl-ring` answers in this network namespace: {error}; for that of a network: \
             `hueplane exec NETWORK -- hueplane rofl-ring --show`"
        ))
    };
    let stream = UnixStream::connect_addr(&address()?).map_err(nobody)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(nobody)?;
    let mut text = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut text).map_err(nobody)?;
    if text.is_empty() {
        return Err(Failure::NoDaemon(
            "the `hueplane rofl-ring` of this network namespace does not answer this user: ask as root"
                .to_owned(),
        ));
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::Broken(format!(
            "the answer of `hueplane rofl-ring` cannot be read: {error}; is it of another version?"
        ))
    })
}
