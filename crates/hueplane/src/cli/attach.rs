//! Arguments of `attach` and `detach`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCandidates;
use hueplaned::number::whole;

use super::Output;
use crate::complete;

/// Connect a host to a network
///
/// A host is a network namespace, or a TAP device for a virtual machine. It gets a free address of the virtual
/// port's subnet, of each family that the port has; a namespace is set up, with default routes unless it has
/// them. All hosts on a port are on one bridge. The first one makes it, and the port's interface, which must not exist yet. If anything fails,
/// nothing is left. Needs root, in the daemon's network namespace.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("place").args(["host", "netns", "pid", "tap", "list"]).required(true)),
    after_help = "\
Examples:
  hueplane attach red/left --host alice
  hueplane attach red --pid 4242
  hueplane attach red/left --tap vm0 --user alice
  hueplane attach --list"
)]
pub struct Attach {
    /// The network, and the virtual port; without it, the one with the fewest hosts
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
    /// New TAP device of this name, which a virtual machine opens
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// User who may open the TAP device, besides root
    #[arg(long, value_name = "NAME|UID", conflicts_with_all = ["host", "netns", "pid", "list"])]
    pub user: Option<String>,
    /// List attached hosts
    #[arg(long, conflicts_with = "network")]
    pub list: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Disconnect hosts that `attach` connected
///
/// Removes their veth pairs, and with them their addresses and routes, and TAP devices, also from a virtual machine
/// that runs. A namespace that `attach` created is deleted when no other interface and no process is in it. The
/// last host of a port takes the bridge and the port's interface along. Nothing else is touched. Works without the
/// daemon.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("which").args(["network", "host", "tap", "all"]).required(true).multiple(true)),
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
    /// Only this namespace, as `attach --list` names it
    #[arg(long, value_name = "NAME", conflicts_with = "tap")]
    pub host: Option<String>,
    /// Only this TAP device
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// All hosts
    #[arg(long, conflicts_with_all = ["network", "host", "tap"])]
    pub all: bool,
    #[command(flatten)]
    pub output: Output,
}
