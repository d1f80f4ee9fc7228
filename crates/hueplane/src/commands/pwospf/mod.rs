//! `hueplane pwospf`: a routing daemon for PW-OSPF, and what it says of itself.
//!
//! Flow: packets and the kernel's notifications → [`daemon`] → `hue_routing::pwospf::Router` → packets and the kernel's
//! routes ([`kernel`]). One thread does all of it. The state machine decides; sockets, clock and signals are here.
//!
//! A second one in the same namespace, and `--show`, find the first one by an abstract Unix socket: those belong to a network
//! namespace, so no other network has it, and it vanishes with its process.

mod daemon;
mod kernel;
mod show;

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use crate::cli::Pwospf;
use crate::failure::Failure;
use crate::print::result;
use show::Snapshot;

/// Name of the abstract socket.
const SOCKET: &str = "hueplane-pwospf";
/// Longest answer that `--show` reads, in bytes: a full database is about half of it.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Longest time without a part of the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn pwospf(args: &Pwospf) -> Result<(), Failure> {
    if !args.show {
        return daemon::run(args);
    }
    let snapshot = ask()?;
    result(args.output.format, &snapshot, || snapshot.text())
}

fn address() -> Result<SocketAddr, Failure> {
    SocketAddr::from_abstract_name(SOCKET).map_err(|error| Failure::Broken(error.to_string()))
}

fn ask() -> Result<Snapshot, Failure> {
    let nobody = |error| {
        Failure::NoDaemon(format!(
            "no `hueplane pwospf` answers in this network namespace: {error}; for that of a network: \
             `hueplane exec NETWORK -- hueplane pwospf --show`"
        ))
    };
    let stream = UnixStream::connect_addr(&address()?).map_err(nobody)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(nobody)?;
    let mut text = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut text).map_err(nobody)?;
    if text.is_empty() {
        return Err(Failure::NoDaemon(
            "the `hueplane pwospf` of this network namespace does not answer this user: ask as root, or as the user that started it"
                .to_owned(),
        ));
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::Broken(format!(
            "the answer of `hueplane pwospf` cannot be read: {error}; is it of another version?"
        ))
    })
}
