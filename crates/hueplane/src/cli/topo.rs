//! `hueplane topo`: networks across several nodes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hueplaned::number::whole;

use super::{Output, time};

/// Networks across several nodes, on this machine or for real ones
///
/// A document of kind Topology describes nodes, the links between them, and virtual networks across nodes, whose links are physical
/// ones or tunnels. `up` runs all its nodes on this machine, each with a daemon and hosts in network namespaces; `render` prints the
/// documents of real nodes.
#[derive(Args, Debug)]
pub struct Topo {
    /// What to do
    #[command(subcommand)]
    pub command: TopoCommand,
}

/// Commands of `hueplane topo`.
#[derive(Subcommand, Debug)]
pub enum TopoCommand {
    Up(TopoUp),
    Down(TopoDown),
    Show(TopoShow),
    Ping(TopoPing),
    Render(TopoRender),
    Svg(TopoSvg),
    Import(TopoImport),
}

/// Run all nodes of a topology on this machine
///
/// Each node has a daemon of its own in a network namespace of its own, physical links are veth pairs, and each host is a namespace.
/// With routing `frr` or `pwospf`, the routing daemons run in the networks' namespaces. Returns when all networks run. Needs root. If
/// it fails or is interrupted, it removes everything; what a killed one leaves, `down` or the next `up` removes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo up labs/topology/topology.yaml
  hueplane topo import Abilene.graph | hueplane topo up -")]
pub struct TopoUp {
    /// File with a Topology document; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Number of worker threads of each node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=hueplaned::options::WORKERS_MAX))]
    pub workers: usize,
    /// Most packet slots of each worker, of 2 or 4 KiB
    #[arg(long, value_name = "N", default_value_t = crate::topo::PACKET_SLOTS, value_parser = whole::<u32>(hueplaned::options::PACKET_SLOTS_MIN..=hueplaned::options::PACKET_SLOTS_MAX))]
    pub packet_slots: u32,
    #[command(flatten)]
    pub output: Output,
}

/// Which running topology.
#[derive(Args, Debug)]
pub struct Named {
    /// Name of the topology; needed if several run
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Stop a topology and remove everything of it
///
/// Ends all processes in its namespaces, and removes namespaces, links, control groups and directories; also what a killed `up` left.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo down
  hueplane topo down abilene
  hueplane topo down --all")]
pub struct TopoDown {
    #[command(flatten)]
    pub named: Named,
    /// All topologies on this machine
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
}

/// Show nodes, links, networks and hosts of a running topology, and their state
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo show
  hueplane topo show abilene -o json")]
pub struct TopoShow {
    #[command(flatten)]
    pub named: Named,
    #[command(flatten)]
    pub output: Output,
}

/// Ping between all pairs of hosts of each network
///
/// Prints how many pairs reach each other, and exits with 1 unless all do. A pair gets a second and third attempt.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo ping
  hueplane topo ping abilene --network red --wait 60s")]
pub struct TopoPing {
    #[command(flatten)]
    pub named: Named,
    /// Only hosts of this network
    #[arg(short = 'n', long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Repeat pairs without an answer for this long: routing protocols need time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time, allow_hyphen_values = true)]
    pub wait: std::time::Duration,
    #[command(flatten)]
    pub output: Output,
}

/// Print the Node and Network documents of nodes
///
/// `hueplane apply` and `hueplane up` do the same with a Topology on a node.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo render figure1.yaml
  hueplane topo render figure1.yaml --node a | ssh a hueplane apply -f -")]
pub struct TopoRender {
    /// File with a Topology document; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only this node
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
}

/// Draw a topology as SVG: the physical links, and each network in its colour
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo svg figure1.yaml > figure1.svg")]
pub struct TopoSvg {
    /// File with a Topology document; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Make a Topology document from a graph
///
/// Reads GraphML, as the Internet Topology Zoo publishes it, and the .graph files of Repetita. Every node gets a host in one network
/// over all links. Of several parts without a link between them, the largest is taken.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane topo import Abilene.graphml > abilene.yaml
  hueplane topo import Garr201111.graph --kind ipv6 | hueplane topo up -")]
pub struct TopoImport {
    /// File NAME.graphml or NAME.graph
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Name of the topology; by default that of the file
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Kind of the network
    #[arg(long, value_enum, default_value_t = ImportKind::Ipv4)]
    pub kind: ImportKind,
    /// Where routes come from: static, frr, pwospf or none
    #[arg(long, value_enum, default_value_t = ImportRouting::Static)]
    pub routing: ImportRouting,
}

/// Kinds of the network of an imported topology.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportKind {
    /// IPv4
    Ipv4,
    /// IPv6
    Ipv6,
    /// Both
    Dual,
}

/// Routing of an imported topology.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportRouting {
    /// Static shortest paths
    Static,
    /// OSPF by FRR
    Frr,
    /// PW-OSPF
    Pwospf,
    /// None
    None,
}
