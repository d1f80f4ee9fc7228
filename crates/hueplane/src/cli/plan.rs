//! `hueplane plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Output;

/// Show where networks should run, and which ones would have to move
///
/// A scheduler compares what networks need (`needs`, `placement`) with the resources of the node: cores,
/// bandwidth, ports, and the card's capacity. For each network, the plan shows where it should run, why, and
/// why not elsewhere; it moves nothing. By default the plan is that of the running daemon. With -f, it is a
/// plan for the files: all networks are new, and the card is the image named in the Node document, found as
/// with `run --on card`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane plan
  hueplane plan --scheduler exact --from-traffic -o json
  hueplane plan -f node.yaml -f networks.yaml")]
pub struct Plan {
    /// Configuration files (YAML, one or more documents each); - for standard input
    #[arg(short = 'f', long = "file", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Scheduler; by default that of the Node, or greedy
    #[arg(long, value_enum, value_name = "SCHEDULER")]
    pub scheduler: Option<Scheduler>,
    /// Use measured rates instead of the bandwidth in documents
    #[arg(long, conflicts_with = "files")]
    pub from_traffic: bool,
    #[command(flatten)]
    pub output: Output,
}

/// The schedulers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// Put networks of low throughput into software while they fit, and the others on the card
    Greedy,
    /// Maximize the bandwidth served, minus the cost of moves, with an integer program
    Exact,
}
