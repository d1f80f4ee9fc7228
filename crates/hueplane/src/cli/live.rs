//! The commands that use a running daemon, or start one.
//!
//! Flow: arguments → these types → `commands::live` or `demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;
use hueplaned::api::TurnQuery;
use hueplaned::number::{address_and_port, whole, whole_or_automatic};
use hueplaned::options::{PACKET_SLOTS_MAX, PACKET_SLOTS_MIN, SchedulingName, WORKERS_MAX};

use super::{Output, time};
use crate::complete;

/// How to reach the daemon.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Socket of the daemon; default: hueplane.sock in $HUEPLANE_RUN_DIR, or in /run/hueplane
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "server")]
    pub socket: Option<PathBuf>,
    /// URL of a remote daemon, https://HOST:PORT; requires --cert, --key and --ca
    #[arg(long, value_name = "URL", global = true, requires_all = ["cert", "key", "ca"])]
    pub server: Option<String>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    pub cert: Option<PathBuf>,
    /// Private key of the client (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    pub key: Option<PathBuf>,
    /// Certificate of the CA that signed the daemon's certificate (PEM)
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    pub ca: Option<PathBuf>,
}

/// Start the daemon
///
/// Runs in the foreground until it is stopped (`hueplane down`, Ctrl-C, SIGTERM). Stopping removes the
/// networks; the configuration stays in the state directory. With -f, the files replace the configuration as
/// soon as the daemon runs, as with `apply --prune`. Needs root.
///
/// With --detach, the log is hueplaned.log in the run directory. At 8 MiB a new file begins, and the older one is kept as
/// hueplaned.log.1.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  hueplane up -f labs/live/hueplane.yaml --detach
  hueplane up --workers 2 --pin
  hueplane up --listen 0.0.0.0:7443 --tls-cert node.pem --tls-key node.key --tls-ca ca.pem")]
pub struct Up {
    /// Configuration files (YAML, one or more documents each); - for standard input
    #[arg(short = 'f', long = "file", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub node: super::AsNode,
    /// Return when the daemon runs and the configuration is applied
    #[arg(long)]
    pub detach: bool,
    /// Number of worker threads; 0 selects it automatically
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_or_automatic(0..=WORKERS_MAX))]
    pub workers: usize,
    /// Pin each worker thread to a core
    #[arg(long)]
    pub pin: bool,
    /// How threads that forward packets compete for processors
    #[arg(long, value_enum, default_value_t)]
    pub scheduling: SchedulingName,
    /// Most packet slots of each worker, of 2 or 4 KiB; default: as many as the ports need
    #[arg(long, value_name = "N", value_parser = whole::<u32>(PACKET_SLOTS_MIN..=PACKET_SLOTS_MAX))]
    pub packet_slots: Option<u32>,
    /// Start with nothing: the stored state is kept under another name, and running networks are removed
    #[arg(long)]
    pub empty: bool,
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub listen: Listen,
    /// Stop at the end of standard input, for a parent program that may be killed
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub until_eof: bool,
    /// Stop the daemon that runs, and adopt its networks; from `hueplane upgrade`
    #[arg(long, hide = true, conflicts_with_all = ["empty", "files"])]
    pub take_over: bool,
    /// The file that is standard error, to begin a new one when it is full; from `--detach`
    #[arg(long, hide = true, value_name = "FILE", conflicts_with = "detach")]
    pub log_file: Option<PathBuf>,
}

/// Directories of the daemon.
#[derive(Args, Clone, Debug, Default)]
pub struct Places {
    /// Directory of the socket and the lock; default: $HUEPLANE_RUN_DIR, or /run/hueplane
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Directory of the stored configuration; default: $HUEPLANE_STATE_DIR, or /var/lib/hueplane
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Prefix of the networks' namespace names [default: hue-]
    #[arg(long, value_name = "PREFIX")]
    pub namespace_prefix: Option<String>,
}

/// The API over TCP.
#[derive(Args, Clone, Debug, Default)]
pub struct Listen {
    /// Also offer the API over TCP, with mutual TLS
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port, requires_all = ["tls_cert", "tls_key", "tls_ca"])]
    pub listen: Option<SocketAddr>,
    /// Certificate of the daemon (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the daemon (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_key: Option<PathBuf>,
    /// Certificate of the CA that signs client certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub tls_ca: Option<PathBuf>,
}

/// Stop the daemon
///
/// Removes the namespaces and virtual ports of its networks, unless --keep leaves them for the next daemon.
/// The configuration stays stored in both cases.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane down
  hueplane down --keep")]
pub struct Down {
    /// Keep namespaces and virtual ports, and the programs in them
    #[arg(long)]
    pub keep: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Replace the daemon's program without ending networks
///
/// Starts the program that is installed now in place of the running daemon, with the same options. Namespaces, virtual
/// ports, the programs in networks and their routing neighbours stay. While no daemon runs, software forwards nothing;
/// the command says how long this took. If the new program does not start, the old one is started again.
///
/// A daemon that a service manager started is restarted by the service manager.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane upgrade
  hueplane upgrade --program ./target/release/hueplane")]
pub struct Upgrade {
    /// The new program; default: the file from which the running daemon was started, which may have been replaced
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
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
    #[command(flatten)]
    pub node: super::AsNode,
    /// Also show the deletion of networks that the files do not describe
    #[arg(long)]
    pub prune: bool,
    /// Exit with code 6 if there are differences
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Behaviour while another change is under way.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Turn {
    /// Fail at once if another change is under way, instead of waiting for it
    #[arg(long)]
    pub no_wait: bool,
}

impl Turn {
    /// As a query of the API.
    pub const fn query(self) -> TurnQuery {
        TurnQuery { no_wait: self.no_wait }
    }
}

/// Apply files to the daemon's configuration
///
/// Changes only networks that differ; applying the same files again changes nothing. Networks that the files
/// do not describe stay, unless --prune deletes them. If a document is invalid, nothing changes. Of a Topology document, the
/// node takes its own part.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane apply -f red.yaml
  hueplane apply -f all.yaml --prune --dry-run
  hueplane apply -f red.yaml --confirm-within 60s
  sed s/10.1.0.1/10.1.0.9/ red.yaml | hueplane apply -f -")]
pub struct Apply {
    #[command(flatten)]
    pub files: super::Files,
    #[command(flatten)]
    pub node: super::AsNode,
    /// Check the files and show the changes, but change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete networks that the files do not describe
    #[arg(long)]
    pub prune: bool,
    /// Undo the change unless it is confirmed (`hueplane confirm`) within this time, such as 60s or 10m; at most a day
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, conflicts_with = "dry_run")]
    pub confirm_within: Option<std::time::Duration>,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Objects that `hueplane get` shows.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The node: version, uptime, workers, memory
    #[value(alias = "node")]
    Nodes,
    /// Networks and their state
    #[value(alias = "network")]
    Networks,
    /// Physical ports and their drivers
    #[value(alias = "port")]
    Ports,
    /// Routes of the networks' own control planes
    #[value(alias = "route")]
    Routes,
    /// Hosts and routers known to networks
    #[value(aliases = ["neighbour", "neighbor", "neighbors"])]
    Neighbours,
    /// MAC addresses that switches (kind l2) have learnt, and static ones
    #[value(alias = "mac")]
    Macs,
    /// Entries of networks that compare bits of frames (kind extract) or labels (kinds rofl, with cached pointers, and mpls)
    #[value(alias = "entry")]
    Entries,
    /// Forwarding tables and their memory
    #[value(alias = "table")]
    Tables,
    /// Where networks run, since when, and why
    #[value(alias = "placement")]
    Placements,
    /// The configuration in force, as documents for `apply`
    Config,
    /// Nodes, links, networks and hosts of a topology that runs on this machine; the same as `topo show`
    #[value(alias = "topologies")]
    Topology,
}

/// Show networks, ports, routes and other objects
///
/// `config` prints documents as YAML, also without -o: applied again, they change nothing. With -o json it prints an
/// object with the documents, their generation and when they were applied, or with a NAME the document alone.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane get networks
  hueplane get ports p0 -o yaml
  hueplane get routes -n red -o json
  hueplane get placements
  hueplane get config > all.yaml
  hueplane get config red | hueplane diff -f -")]
pub struct Get {
    /// Objects to show
    #[arg(value_enum)]
    pub kind: Kind,
    /// Only the object with this name; for routes and neighbours, this prefix or address
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Only objects of this network
    #[arg(short = 'n', long, value_name = "NETWORK", add = ArgValueCandidates::new(complete::networks))]
    pub network: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Delete an object from the daemon's configuration
#[derive(Args, Debug)]
pub struct Delete {
    /// What to delete
    #[command(subcommand)]
    pub what: DeleteWhat,
}

/// Objects that can be deleted.
#[derive(Subcommand, Debug)]
pub enum DeleteWhat {
    Network(DeleteNetwork),
    /// The node's document cannot be deleted; the error says what can be done instead
    #[command(hide = true)]
    Node {
        /// Name of the node
        name: Option<String>,
    },
}

/// Delete a network
///
/// Deletes its configuration and its namespace, with everything that runs there. Other networks are not
/// affected.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane delete network red")]
pub struct DeleteNetwork {
    /// Name of the network
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(complete::networks))]
    pub name: String,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Move a network between card and software
///
/// Packets flow during the move. The command reports how many packets were lost, doubled or reordered,
/// measured where packets enter and leave. If the move fails, the network stays where it is. After a move,
/// the network's document names its new place.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane migrate red --to soft
  hueplane migrate red --to card --watch
  hueplane migrate red --to card -o json")]
pub struct Migrate {
    /// Name of the network
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(complete::networks))]
    pub name: String,
    /// Destination
    #[arg(long, value_name = "SUBSTRATE")]
    pub to: MigrateTo,
    /// Load another image if the network fits that image, but not the current one
    #[arg(long)]
    pub load_image: bool,
    /// Show the network's events during the move
    #[arg(short = 'w', long)]
    pub watch: bool,
    /// Milliseconds for which packets are observed before and after the move
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = whole::<u32>(0..=10_000))]
    pub look_ms: u32,
    /// Time limit of the move in milliseconds; then the move is cancelled
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = whole::<u32>(1..=10_000))]
    pub limit_ms: u32,
    /// A step that fails, for tests
    #[arg(long, value_name = "STEP", hide = true)]
    pub fail: Option<FailStep>,
    /// Least time in milliseconds that software takes to drain, for tests
    #[arg(long, value_name = "MS", hide = true, default_value_t = 0, value_parser = whole::<u32>(0..=10_000))]
    pub drain_ms: u32,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// A step of a move that can be made to fail.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailStep {
    /// Writing the table.
    Prepare,
    /// Diverting frames from software.
    Aside,
    /// Switching to the other side.
    Switch,
    /// Draining the old side.
    Drain,
    /// The card itself.
    Card,
    /// Sending: every tenth packet from software is lost.
    Packets,
    /// Sending: every tenth packet from software is sent twice.
    Doubled,
    /// Sending: every tenth packet from software is sent after the next one.
    Reordered,
}

/// Destination of a move.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateTo {
    /// The card
    Card,
    /// Software
    Soft,
}

/// List and load the card's images
#[derive(Args, Debug)]
pub struct Image {
    /// What to do
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// Commands of `hueplane image`.
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
/// The card's networks run in software meanwhile. Networks that fit the new image return to the card. No packets are
/// lost at loads that software can carry.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane image load wide
  hueplane image load tcam4 --reconfigure-time 5s")]
pub struct ImageLoad {
    /// Name of the image
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(complete::images))]
    pub name: String,
    /// Least time that the card is unavailable, to model the configuration of an FPGA, such as 500ms or 5s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time, allow_hyphen_values = true)]
    pub reconfigure_time: std::time::Duration,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Show the card, and open or close clock gates of networks
#[derive(Args, Debug)]
pub struct Card {
    /// What to do
    #[command(subcommand)]
    pub command: CardCommand,
}

/// Commands of `hueplane card`.
#[derive(Subcommand, Debug)]
pub enum CardCommand {
    Show(CardShow),
    #[command(about = "Close the clock gates of networks")]
    Gate(CardGate),
    #[command(about = "Open the clock gates of networks")]
    Ungate(CardGate),
}

/// Show the networks on the card and their clock gates
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane card show
  hueplane card show -o json")]
pub struct CardShow {
    #[command(flatten)]
    pub output: Output,
}

/// Close or open the clock gates of networks
///
/// `gate` stops the planes of networks: their packets are dropped and counted (`gated`), and on the card their
/// logic stops, which saves power. `ungate` starts them again. The networks keep their place, routes, neighbours
/// and processes. Other networks are not affected. `gate` sets `gated: true` in the networks' documents, so the
/// gates stay closed when networks move, an image is loaded, or the daemon restarts.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane card gate red
  hueplane card gate red blue -o json
  hueplane card ungate red")]
pub struct CardGate {
    /// Names of the networks
    #[arg(value_name = "NETWORK", required = true, add = ArgValueCandidates::new(complete::networks))]
    pub networks: Vec<String>,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Part of the node that can be drained.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DrainWhat {
    /// The card
    Card,
}

/// Move all networks off the card, and keep them off it, for maintenance
///
/// The card's networks move to software while their packets flow; the command reports the packets that each move lost,
/// doubled or reordered. From then on no network runs on the card, until `hueplane undrain card`: also after a restart or
/// an upgrade of the daemon, and after another image is loaded. If software cannot forward the bandwidth that networks
/// need according to their documents, the command says so for each, and moves nothing.
///
/// The card still passes the frames of its ports to software. Exits with code 1 if a network could not leave; it then runs
/// on, and the same command tries again.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane drain card
  hueplane drain card --force -o json
  hueplane drain card && hueplane image load wide && hueplane undrain card")]
pub struct Drain {
    /// What to drain
    #[arg(value_enum)]
    pub what: DrainWhat,
    /// Drain the card also if networks then get less bandwidth than they need
    #[arg(long)]
    pub force: bool,
    /// A step that fails, for tests
    #[arg(long, value_name = "STEP", hide = true)]
    pub fail: Option<FailStep>,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Let networks run on the card again
///
/// Ends `hueplane drain card`. Networks return to the card as their documents and the scheduler say. Returns when no
/// network is moving, and lists the networks that are on the card, and those whose documents say `card` but that are not.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane undrain card")]
pub struct Undrain {
    /// What is no longer drained
    #[arg(value_enum)]
    pub what: DrainWhat,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Show packet counters
///
/// For each network: packets received, forwarded, punted and dropped, and packets lost before the plane.
/// Drops by reason add up to the total. SINCE says since when they count: a restart of the daemon begins at 0.
/// --watch shows rates until you press q or Ctrl-C.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane stats
  hueplane stats red -o json
  hueplane stats --watch")]
pub struct Stats {
    /// Only this network
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(complete::networks))]
    pub name: Option<String>,
    /// Show rates until q is pressed; needs a terminal
    #[arg(short = 'w', long)]
    pub watch: bool,
    /// Time between two updates in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, requires = "watch",
          value_parser = whole::<u64>(100..=60_000))]
    pub interval_ms: u64,
    #[command(flatten)]
    pub output: Output,
}

/// Show events
///
/// Every event has a sequence number; the daemon keeps the last 10,000.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane events
  hueplane events --since 120 --follow -o json")]
pub struct Events {
    /// Only events after this sequence number
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    pub since: Option<u64>,
    /// Wait for new events until Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Only events of this network
    #[arg(short = 'n', long, value_name = "NETWORK", add = ArgValueCandidates::new(complete::networks))]
    pub network: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Run a command in a network's namespace
///
/// The network's virtual ports are interfaces with the same names there: you can show addresses and routes,
/// ping, or run a routing daemon. The network's limits on CPU, memory and processes apply. Needs root on the
/// daemon's machine. The exit code is that of the command, 126 if it cannot be run, or 127 if it does not
/// exist.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane exec red -- ip route
  hueplane exec red -- ping -c 3 10.1.0.2")]
pub struct Exec {
    /// Name of the network
    #[arg(value_name = "NETWORK", add = ArgValueCandidates::new(complete::networks))]
    pub network: String,
    /// Command and arguments
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub command: Vec<String>,
}

/// Capture packets of networks to a file
///
/// Captures both directions. Interfaces are named network/port, and the comment of a packet is its verdict.
/// Without --network and --port, captures everything. The daemon never waits for a capture: if the reader is too
/// slow, the capture lacks packets and reports how many.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane capture --network red --count 100 -w red.pcapng
  hueplane capture --port p0 -w - | wireshark -k -i -")]
pub struct Capture {
    /// Only packets of this network
    #[arg(short = 'n', long, value_name = "NETWORK", add = ArgValueCandidates::new(complete::networks))]
    pub network: Option<String>,
    /// Only packets of this port: a virtual port of --network, or a physical port
    #[arg(short = 'p', long, value_name = "PORT", add = ArgValueCandidates::new(complete::ports))]
    pub port: Option<String>,
    /// Stop after this many packets
    #[arg(short = 'c', long, value_name = "N", value_parser = whole::<u64>(1..))]
    pub count: Option<u64>,
    /// Bytes to keep of each packet
    #[arg(short = 's', long, value_name = "BYTES", value_parser = whole::<u32>(14..=65_535))]
    pub snap: Option<u32>,
    /// Output file (pcapng); - for standard output
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    pub file: PathBuf,
}

/// Check what this machine lacks, and show the commands to fix it
///
/// Needs no daemon. Exits with code 1 if a required item is missing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane doctor
  hueplane doctor -o json")]
pub struct Doctor {
    #[command(flatten)]
    pub output: Output,
}

/// Run many networks between real hosts on this machine, and test them
///
/// Builds a lab in its own namespaces: a node with ports p0 to p3 on Linux bridges, and two hosts for each
/// network on different ports. The first two networks have identical addresses. The fifth is a switch between
/// three hosts, on ports p4 to p6, and some networks have IPv6. The demo starts a daemon,
/// pings between all peers, and measures three networks at once with iperf3. While hosts communicate, it
/// moves a network from the card to software and back, and changes the card's image. It also lets hosts try
/// to reach other networks, and checks that no host receives frames of another network. At the end, also
/// after Ctrl-C, everything is removed. The exit code is 0 only if all checks passed. Progress goes to
/// standard error, the result to standard output. Needs root, iproute2, ping and iperf3.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane demo
  hueplane demo --networks 200 -o json
  hueplane demo --keep")]
pub struct Demo {
    /// Number of networks
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = whole::<u16>(1..=200))]
    pub networks: u16,
    /// Keep the lab and its daemon running, and print how to use and remove them
    #[arg(long)]
    pub keep: bool,
    /// Only remove labs left by --keep or by a killed demo
    #[arg(long, conflicts_with_all = ["keep", "networks"])]
    pub clean: bool,
    /// Image of the simulated card, which runs the first four networks; the others run in software
    #[arg(long, value_name = "NAME", default_value = "default", add = ArgValueCandidates::new(complete::local_images))]
    pub image: String,
    /// Do not use a card: all networks run in software
    #[arg(long, conflicts_with = "image")]
    pub no_card: bool,
    /// Put NICs beside the card's ports; neighbours of networks in software send to them
    #[arg(long, conflicts_with = "no_card")]
    pub nics: bool,
    /// Duration of the iperf3 measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = whole::<u16>(1..=60))]
    pub seconds: u16,
    #[command(flatten)]
    pub output: Output,
}
