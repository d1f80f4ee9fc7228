//! The commands that measure the card, and tables.
//!
//! Flow: arguments → these types → `commands::lab`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use hue_lab::{Rate, Traffic};

use super::{Files, Output, cycles};
use crate::named::NamedFile;

/// Experiments on the simulated card and on tables
#[derive(Args, Debug)]
pub struct Lab {
    /// What to do
    #[command(subcommand)]
    pub command: LabCommand,
}

/// Commands of `hueplane lab`.
#[derive(Subcommand, Debug)]
pub enum LabCommand {
    Run(LabRun),
    Tables(LabTables),
}

/// Offer traffic to the card at an exact rate, and measure what it does
///
/// The networks are loaded into an image of the card, which runs as its simulated twin, clock by clock. Traffic comes to its
/// ports exactly as fast as told, all ports beginning at once; what leaves is captured with the cycles of its first and last
/// beat. The card is as it is live: what finds no room in a queue is dropped, and shown by reason. Rate limits run on the
/// card's clock.
///
/// TRAFFIC is `FILE@RATE`, the frames of a capture in their order, or fields KEY:VALUE with commas between:
///   rate      bits a second on the wire (1G, 2.5G, 800M), or `max`: as fast as the card takes it, nothing dropped
///   sort      forward, ttl1, own (addresses of routers), broadcast (ARP), multicast, runt, nobody [default: forward]
///   size      bytes with check sequence, 64 to 9220: 64, 64-1518, 64*7+1518 (weights), imix [default: 64]
///   networks  names with + between [default: all on the port]
///   to        ports or prefixes with + between [default: what the network forwards by other ports]
///   flows     pairs of addresses, in turn of each network [default: 64]
///   seed      the same seed gives the same frames [default: 1]
///
/// Lengths and rates are those of Ethernet: a frame has 8 bytes of preamble before it, 4 of check sequence at its end and a gap
/// of 12 after it, and is padded to 64. The shortest frame so takes 84 byte times; 1 Gbit/s is 1,488,095 of them a second.
/// Frames in captures, and on the card's own buses, have no check sequence: 60 bytes there are a frame of 64.
///
/// A port takes a frame's last byte in, and its gap, before the frame goes into the card. Latency is the difference of two
/// time stamps: from a frame's first beat in to its first beat out (first word), and the same of its last beats.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  hueplane lab run -f labs/basic/hueplane.yaml --traffic p0=rate:1G,size:64 --traffic p2=rate:500M,size:imix --duration-us 1000
  hueplane lab run -f red.yaml --image tcam1 --traffic p0=rate:max --duration-us 200 -o json
  hueplane lab run -f red.yaml --traffic p0=left.pcap@10G --line 10G --out out"
)]
pub struct LabRun {
    #[command(flatten)]
    pub files: Files,
    /// What is offered to a port (repeatable; several for one port share its wire)
    #[arg(long, value_name = "PORT=TRAFFIC", required = true, num_args = 1..)]
    pub traffic: Vec<NamedTraffic>,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub image: String,
    /// For how long frames are offered, in time of the card; without it captures are offered once
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    pub duration_us: Option<u64>,
    /// Speed of the lines that ports send to; without it they send a beat a clock
    #[arg(long, value_name = "RATE")]
    pub line: Option<Rate>,
    /// Directory for what left, DIR/PORT.pcap and DIR/punt.pcap, with times of the card; made when absent
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a wave of the card's signals (FST, which GTKWave and Surfer show)
    #[arg(long, value_name = "FILE")]
    pub wave: Option<PathBuf>,
    /// The wave is of these clock cycles, counted from when ports begin
    #[arg(long, value_name = "FROM-TO", value_parser = cycles, requires = "wave")]
    pub wave_cycles: Option<(u64, u64)>,
    #[command(flatten)]
    pub output: Output,
}

/// What real tables need in the papers' two banks and in ours
///
/// How many prefixes tables have in common, and how many of them conflict in the papers' layout; one table dealt to several
/// networks, as the papers have it; rows of the Conflict CAM as networks are added; how many sets tables need, and where the
/// papers' banks overflow; bytes a route of every layout. IPv4 only. Nothing is timed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane lab tables --set labs=labs/tables/red.txt --set labs=labs/tables/green.txt --sample 400
  hueplane lab tables --set views=2010/ --set full=rib.mrt.gz --seed 7 --out results")]
pub struct LabTables {
    /// Tables that one node would hold together (repeatable, equal names make one set): a route file as `table --routes` takes
    /// it, or a folder with one for each network
    #[arg(long = "set", value_name = "NAME=PATH", required = true)]
    pub sets: Vec<NamedFile>,
    /// Go on after bad lines and count them
    #[arg(long)]
    pub skip_bad: bool,
    /// Give routes without a next hop one of N derived from their first 20 bits (FNV-1a modulo N)
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub derive_hops: u16,
    /// Prefixes of a table that are dealt to networks; the same again for each of them, when the table has as many
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub sample: usize,
    /// Networks that a table is dealt to
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=4095))]
    pub parts: u16,
    /// The same seed deals the same prefixes
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Directory for the result as lab-tables.json and lab-tables.md; made when absent
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// An argument `PORT=TRAFFIC`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTraffic {
    /// Name of the port.
    pub port: String,
    /// What is offered to it.
    pub traffic: Traffic,
}

impl FromStr for NamedTraffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((port, traffic)) if !port.is_empty() => {
                Ok(Self { port: port.to_owned(), traffic: traffic.parse()? })
            }
            _ => Err("expected PORT=TRAFFIC".to_owned()),
        }
    }
}
