//! The commands that talk to a running daemon, and those that start one.
//!
//! Flow: arguments → these types → `commands::live` or `demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hueplaned::options::SchedulingName;

use super::Output;

/// Where the daemon is.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Socket of the daemon; default: hueplane.sock in $HUEPLANE_RUN_DIR, or in /run/hueplane
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "server")]
    pub socket: Option<PathBuf>,
    /// A daemon elsewhere, https://HOST:PORT; needs --cert, --key and --ca
    #[arg(long, value_name = "URL", global = true, requires_all = ["cert", "key", "ca"])]
    pub server: Option<String>,
    /// Your certificate (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    pub cert: Option<PathBuf>,
    /// Your private key (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    pub key: Option<PathBuf>,
    /// Certificate of the authority that signed the daemon's certificate (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    pub ca: Option<PathBuf>,
}

/// Start the daemon
///
/// Runs in the foreground until it is told to stop (`hueplane down`, Ctrl-C, SIGTERM); the networks go with it, the
/// configuration stays in the state directory. With -f, these documents become the configuration as soon as it runs, as by
/// `apply --prune`. Needs root.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane up -f labs/live/hueplane.yaml --detach
  hueplane up --workers 2 --pin
  hueplane up --listen 0.0.0.0:7443 --tls-cert node.pem --tls-key node.key --tls-ca ca.pem")]
pub struct Up {
    /// Configuration files (YAML, one or more documents each); - for standard input
    #[arg(short = 'f', long = "file", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Return as soon as the daemon runs and the configuration is applied
    #[arg(long)]
    pub detach: bool,
    /// Worker threads; 0 chooses
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub workers: usize,
    /// Pin each worker thread to a core
    #[arg(long)]
    pub pin: bool,
    /// How threads that forward packets compete for processors
    #[arg(long, value_enum, default_value_t)]
    pub scheduling: SchedulingName,
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub listen: Listen,
    /// Stop when standard input ends: for a program that starts the daemon and may be killed
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub until_eof: bool,
}

/// Directories of a daemon.
#[derive(Args, Clone, Debug, Default)]
pub struct Places {
    /// Directory of the socket and the lock; default: $HUEPLANE_RUN_DIR, or /run/hueplane
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Directory of the stored configuration; default: $HUEPLANE_STATE_DIR, or /var/lib/hueplane
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Beginning of the names of networks' namespaces [default: hue-]
    #[arg(long, value_name = "PREFIX")]
    pub namespace_prefix: Option<String>,
}

/// The API over TCP.
#[derive(Args, Clone, Debug, Default)]
pub struct Listen {
    /// Offer the API over TCP too, with mutual TLS
    #[arg(long, value_name = "ADDRESS:PORT", requires_all = ["tls_cert", "tls_key", "tls_ca"])]
    pub listen: Option<SocketAddr>,
    /// The daemon's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_cert: Option<PathBuf>,
    /// The daemon's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_key: Option<PathBuf>,
    /// Certificate of the authority that signs callers' certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_ca: Option<PathBuf>,
}

/// Stop the daemon
///
/// Its networks' namespaces and virtual ports go with it, unless --keep leaves them for the next daemon to adopt. The
/// configuration stays stored either way.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane down
  hueplane down --keep")]
pub struct Down {
    /// Leave namespaces and virtual ports, with what runs in them
    #[arg(long)]
    pub keep: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Show what applying files would change
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane diff -f red.yaml
  hueplane diff -f node.yaml -f networks.yaml --prune -o json")]
pub struct Diff {
    #[command(flatten)]
    pub files: super::Files,
    /// Networks that the files do not describe would be deleted
    #[arg(long)]
    pub prune: bool,
    /// Exit with code 6 when there are differences
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Make the daemon's configuration that of files
///
/// Only networks that differ are touched; applying the same files again changes nothing. Networks that the files do
/// not describe stay as they are, unless --prune deletes them. A bad document changes nothing at all.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane apply -f red.yaml
  hueplane apply -f all.yaml --prune --dry-run
  sed s/10.1.0.1/10.1.0.9/ red.yaml | hueplane apply -f -")]
pub struct Apply {
    #[command(flatten)]
    pub files: super::Files,
    /// Check and show, change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete networks that the files do not describe
    #[arg(long)]
    pub prune: bool,
    #[command(flatten)]
    pub output: Output,
}

/// What `hueplane get` shows.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The node: version, uptime, workers, memory
    #[value(alias = "node")]
    Nodes,
    /// Networks and their state
    #[value(alias = "network")]
    Networks,
    /// Physical ports, and by what driver frames come and go
    #[value(alias = "port")]
    Ports,
    /// Routes of the networks' own control planes
    #[value(alias = "route")]
    Routes,
    /// Hosts and routers that networks know
    #[value(aliases = ["neighbour", "neighbor", "neighbors"])]
    Neighbours,
    /// Forwarding tables and the memory they take
    #[value(alias = "table")]
    Tables,
    /// Where networks run, since when, why, and why not elsewhere
    #[value(alias = "placement")]
    Placements,
}

/// Show what runs
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane get networks
  hueplane get ports p0 -o yaml
  hueplane get routes -n red -o json
  hueplane get placements")]
pub struct Get {
    /// What to show
    #[arg(value_enum)]
    pub kind: Kind,
    /// Only the one of this name; of routes and neighbours: this prefix or address
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Only of this network
    #[arg(short = 'n', long, value_name = "NETWORK")]
    pub network: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Delete from the daemon's configuration
#[derive(Args, Debug)]
pub struct Delete {
    /// What to delete
    #[command(subcommand)]
    pub what: DeleteWhat,
}

/// Things that can be deleted.
#[derive(Subcommand, Debug)]
pub enum DeleteWhat {
    Network(DeleteNetwork),
}

/// Delete a network
///
/// Its namespace, with all that runs in it, and its configuration go. Other networks are not touched.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane delete network red")]
pub struct DeleteNetwork {
    /// The network
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub output: Output,
}

/// Move a network between card and software
///
/// Its packets flow meanwhile: none is lost, doubled or overtaken, which is looked at where packets come and leave and
/// printed. A move that fails leaves the network where it is. The network's document says from then on where it is to be.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane migrate red --to soft
  hueplane migrate red --to card --watch
  hueplane migrate red --to card -o json")]
pub struct Migrate {
    /// The network
    #[arg(value_name = "NAME")]
    pub name: String,
    /// To where
    #[arg(long, value_name = "SUBSTRATE")]
    pub to: MigrateTo,
    /// Load another image if the one on the card cannot hold the network and that one can
    #[arg(long)]
    pub load_image: bool,
    /// Show the network's events while it moves
    #[arg(short = 'w', long)]
    pub watch: bool,
    /// Milliseconds that packets are looked at before and after
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub look_ms: u32,
    /// Milliseconds that the move may take; it is given up then
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit_ms: u32,
    /// A step that is to fail: for tests
    #[arg(long, value_name = "STEP", hide = true)]
    pub fail: Option<FailStep>,
    /// Milliseconds that software takes at least to give back what it has: for tests
    #[arg(long, value_name = "MS", hide = true, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub drain_ms: u32,
    #[command(flatten)]
    pub output: Output,
}

/// A step of a move that can be made to fail.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailStep {
    /// The table is written.
    Prepare,
    /// Frames from software are put aside.
    Aside,
    /// The other side decides.
    Switch,
    /// The old way runs empty.
    Drain,
    /// The card itself.
    Card,
    /// Every tenth packet that software sends is lost.
    Packets,
    /// Every tenth packet that software sends is sent twice.
    Doubled,
    /// Every tenth packet that software sends is sent behind the next one.
    Reordered,
}

/// Where a network can be moved to.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateTo {
    /// The card
    Card,
    /// Software
    Soft,
}

/// The card's images: what there is, and loading another one
#[derive(Args, Debug)]
pub struct Image {
    /// What to do
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// What can be done with images.
#[derive(Subcommand, Debug)]
pub enum ImageCommand {
    List(ImageList),
    Load(ImageLoad),
}

/// List the images that can be loaded
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane image list
  hueplane image list -o json")]
pub struct ImageList {
    #[command(flatten)]
    pub output: Output,
}

/// Load an image into the card while networks run
///
/// The card's networks go to software, and come back when the other image is there, as far as it can hold them. None of
/// their packets is lost.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane image load wide
  hueplane image load tcam4 --reconfigure-time 5s")]
pub struct ImageLoad {
    /// The image
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The card is away at least so long, as an FPGA is that is configured: 500ms, 5s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pub reconfigure_time: std::time::Duration,
    #[command(flatten)]
    pub output: Output,
}

/// Count packets
///
/// What each network received, forwarded, punted and dropped, and what was lost before its plane; drops by reason add
/// up to all drops. --watch shows rates until q or Ctrl-C.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane stats
  hueplane stats red -o json
  hueplane stats --watch")]
pub struct Stats {
    /// Only this network
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Show rates, refreshed until q is pressed
    #[arg(short = 'w', long)]
    pub watch: bool,
    /// Time between two looks
    #[arg(long, value_name = "MS", default_value_t = 1000, requires = "watch",
          value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub interval_ms: u64,
    #[command(flatten)]
    pub output: Output,
}

/// Show what happened
///
/// Every event has a sequence number; the daemon keeps the last 10,000.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane events
  hueplane events --since 120 --follow -o json")]
pub struct Events {
    /// Only events after this sequence number
    #[arg(long, value_name = "N")]
    pub since: Option<u64>,
    /// Go on until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Only of this network
    #[arg(short = 'n', long, value_name = "NETWORK")]
    pub network: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Run a command in a network's namespace
///
/// In it the network's virtual ports are interfaces of the same names: look at addresses and routes, ping, run a routing
/// daemon. The command is bound by the network's limits of CPU, memory and processes. Needs root on the daemon's machine.
/// The exit code is the command's; 126 if it cannot be run, 127 if there is no such command.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane exec red -- ip route
  hueplane exec red -- ping -c 3 10.1.0.2")]
pub struct Exec {
    /// The network
    #[arg(value_name = "NETWORK")]
    pub network: String,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub command: Vec<String>,
}

/// Write the packets of networks to a capture file
///
/// Both directions; interface names are network/port, and the comment of a packet says its verdict. Without --network and --port:
/// everything. The daemon never waits for a capture: what the reader is too slow for is lost, counted and reported.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane capture --network red --count 100 -w red.pcapng
  hueplane capture --port p0 -w - | wireshark -k -i -")]
pub struct Capture {
    /// Only this network
    #[arg(short = 'n', long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Only this port: a virtual one of --network, or a physical one
    #[arg(short = 'p', long, value_name = "PORT")]
    pub port: Option<String>,
    /// Stop after this many packets
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Bytes kept of each packet
    #[arg(short = 's', long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(14..=65_535))]
    pub snap: Option<u32>,
    /// The file (pcapng); - for standard output
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    pub file: PathBuf,
}

/// Say what this machine lacks, and the command that mends it
///
/// Needs no daemon. Exits with 1 when something required is missing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane doctor
  hueplane doctor -o json")]
pub struct Doctor {
    #[command(flatten)]
    pub output: Output,
}

/// Many networks with real hosts on this machine, tried and torn down
///
/// Builds a lab in namespaces of its own: a node with ports p0 to p3 on Linux bridges, and two hosts a network on different
/// ports; the first two networks have identical addresses. Starts a daemon for it, lets every host ping its peer,
/// measures three networks with iperf3 at once, moves a network from the card to software and back and changes the card's
/// image while their hosts talk, lets hosts try to reach other networks, and watches every host for frames
/// that are not its network's. Removes everything afterwards, also after Ctrl-C; exits with 0 only if all of it held.
/// Progress goes to standard error, the result to standard output. Needs root, iproute2, ping and iperf3.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane demo
  hueplane demo --networks 200 -o json
  hueplane demo --keep")]
pub struct Demo {
    /// How many networks
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub networks: u16,
    /// Leave the lab and its daemon running, and say how to use and remove them
    #[arg(long)]
    pub keep: bool,
    /// Remove the labs that --keep or a killed demo left, and do nothing else
    #[arg(long, conflicts_with_all = ["keep", "networks"])]
    pub clean: bool,
    /// Image of the card's simulated twin, which the first four networks run on; the others run in software
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub image: String,
    /// No card: all networks run in software
    #[arg(long, conflicts_with = "image")]
    pub no_card: bool,
    /// NICs beside the card's ports: neighbours of networks in software send there
    #[arg(long, conflicts_with = "no_card")]
    pub nics: bool,
    /// How long iperf3 measures
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub seconds: u16,
    #[command(flatten)]
    pub output: Output,
}
