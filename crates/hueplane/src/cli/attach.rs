//! Arguments of `attach` and `detach`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCandidates;
use hueplaned::number::whole;

use super::Output;
use crate::complete;

/// Connect a host to a network
///
/// Makes the interface of the port that a virtual port is on, as one end of a veth pair. The other end goes
/// into a network namespace: the host. It gets a free IPv4 address of the virtual port's subnet, and its default
/// route unless it has one. The port must not have an interface yet. If anything fails, nothing is left. Needs
/// root, in the daemon's network namespace.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("place").args(["host", "netns", "pid", "list"]).required(true)),
    after_help = "\
Examples:
  hueplane attach red/left --host alice
  hueplane attach red --pid 4242
  hueplane attach --list"
)]
pub struct Attach {
    /// The network, and the virtual port; without it, the first whose port has no interface
    #[arg(value_name = "NETWORK[/INTERFACE]", required_unless_present = "list", add = ArgValueCandidates::new(complete::places))]
    pub network: Option<String>,
    /// Namespace of this name; created if it does not exist
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Existing namespace: its name, or the absolute path of its file
    #[arg(long, value_name = "NAME|PATH")]
    pub netns: Option<PathBuf>,
    /// Namespace of this process, for example of a container
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..))]
    pub pid: Option<u32>,
    /// List attached hosts
    #[arg(long, conflicts_with = "network")]
    pub list: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Disconnect hosts that `attach` connected
///
/// Removes their veth pairs, and with them their addresses and routes. A namespace that `attach` created is
/// deleted when no other interface and no process is in it. Nothing else is touched. Works without the daemon.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("which").args(["network", "host", "all"]).required(true).multiple(true)),
    after_help = "\
Examples:
  hueplane detach red/left
  hueplane detach --host alice
  hueplane detach --all"
)]
pub struct Detach {
    /// Only hosts of this network, or on this virtual port
    #[arg(value_name = "NETWORK[/INTERFACE]", add = ArgValueCandidates::new(complete::places))]
    pub network: Option<String>,
    /// Only this host, as `attach --list` names it
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// All hosts
    #[arg(long, conflicts_with_all = ["network", "host"])]
    pub all: bool,
    #[command(flatten)]
    pub output: Output,
}
