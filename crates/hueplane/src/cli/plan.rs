//! `hueplane plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Output;

/// Show where networks should run, and what would have to move for it
///
/// A scheduler weighs what networks need (`needs`, `placement`) against what the node has: cores, the card's places, tables
/// and bandwidth, ports. The plan says for each network where it would run, why, and why not elsewhere; nothing moves by
/// it. Without -f it is the running daemon's. With -f it is of files: all networks are new then, and the card is the
/// image that the Node names, looked for where `run --on card` looks.
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
    /// Which scheduler; without it that of the Node, or greedy
    #[arg(long, value_enum, value_name = "SCHEDULER")]
    pub scheduler: Option<Scheduler>,
    /// Measured rates stand in for the bandwidth that documents ask for
    #[arg(long, conflicts_with = "files")]
    pub from_traffic: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Ways to decide where networks run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// Networks of low throughput into software while they fit, the others onto the card
    Greedy,
    /// What serves the most bandwidth, less what moves cost, by an integer program
    Exact,
}
