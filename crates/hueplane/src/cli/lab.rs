//! The commands that measure the card and tables.
//!
//! Flow: arguments → these types → `commands::lab`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use hue_lab::{Rate, Traffic};
use hueplaned::number::whole;

use super::{Files, On, Output, cycles, wave_file};
use crate::complete;
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
    Power(LabPower),
    Sweep(LabSweep),
    Tables(LabTables),
}

/// Send traffic to the card at an exact rate, and measure the result
#[derive(Args, Debug)]
#[command(
    // Not a doc comment: clap would join the lines of the list of fields.
    long_about = "\
Send traffic to the card at an exact rate, and measure the result

The networks are loaded into an image of the card, which is simulated clock by clock. Traffic arrives on the card's ports \
at exactly the given rates, and starts on all ports at once. Frames that leave are captured with the clock cycles of their \
first and last beat. The card behaves as in live operation: a frame that finds no room in a queue is dropped and counted \
by reason. Rate limits use the card's clock.

TRAFFIC is `FILE@RATE`, which sends the frames of a capture in order, or a comma-separated list of fields KEY:VALUE:
  rate      bits per second on the wire (1G, 2.5G, 800M), or `max`: as fast as
            the card accepts frames, without drops
  sort      forward, ttl1, own (addresses of routers), broadcast (ARP),
            multicast, runt, nobody [default: forward]
  size      bytes with check sequence, 64 to 9220: 64, 64-1518,
            64*7+1518 (weights), imix [default: 64]; frames of IPv6
            have at least 84
  networks  names, separated by + [default: all on the port]
  to        ports or prefixes, separated by + [default: destinations that
            the network forwards to other ports]; of a switch, ports
  flows     number of address pairs, distributed over the networks
            [default: 64]
  seed      the same seed gives the same frames [default: 1]

Frames are UDP over IPv4, and over IPv6 to networks of kind ipv6. On a switch, 8 hosts behind each port send to those behind \
the others; static MAC addresses are hosts too. Frames to a host that has not sent go to all ports, as everywhere.

Lengths and rates are those of Ethernet: a frame is padded to 64 bytes, which include 4 bytes of check sequence; 8 bytes \
of preamble precede it, and a gap of 12 bytes follows. The shortest frame takes 84 byte times, so 1 Gbit/s is 1,488,095 \
frames per second. In captures, and on the card's own buses, frames have no check sequence: a 64-byte frame has 60 bytes.

With `--on soft`, the same frames pass through the software engine, with the arrival times that they would have on the \
wires. The report then has the engine's speed on one core of this machine, and no clock cycles, latencies or queues.

With `--live PORT=INTERFACE`, the same frames leave through real interfaces of this machine, each cabled to a port of a \
running node (a veth peer, or a NIC at the other end of a cable). Frames that come back are captured and counted: for each \
traffic, frames sent, received, lost, doubled and reordered, and their latency, which begins before the system call that \
sends a frame and ends with the kernel's time stamp of its reception. `-f` names the documents that the node runs; the \
node is not asked for anything. All frames are sent: if this machine cannot keep the rate, the traffic takes longer, and \
the report has the rate that was reached; `max` is as fast as the system takes frames. Runts and frames of captures carry \
no number, so what comes back of them counts as other frames. An interface has an MTU of at most 3826, which bounds its \
frames, and is in promiscuous mode meanwhile. `--live` needs root or CAP_NET_RAW. After Ctrl-C, the report covers what was \
sent until then.

A frame enters the card when the port has received its last byte and the gap. Latency is the difference of two time \
stamps: from a frame's first beat in to its first beat out (first word), and from its last beat in to its last beat out.",
    after_help = "\
Examples:
  hueplane lab run -f labs/basic/hueplane.yaml --traffic p0=rate:1G,size:64 --traffic p2=rate:500M,size:imix --duration-us 1000
  hueplane lab run -f red.yaml --on soft --traffic p0=rate:10G,size:imix --duration-us 10000
  hueplane lab run -f red.yaml --live p0=eth1 p1=eth2 --traffic p0=rate:100M,size:imix --duration-us 1000000
  hueplane lab run -f red.yaml --image tcam1 --traffic p0=rate:max --duration-us 200 -o json
  hueplane lab run -f red.yaml --traffic p0=left.pcap@10G --line 10G --out out"
)]
pub struct LabRun {
    #[command(flatten)]
    pub files: Files,
    /// Traffic of a port (repeatable; several for one port share its wire)
    #[arg(long, value_name = "PORT=TRAFFIC", required = true, num_args = 1..)]
    pub traffic: Vec<NamedTraffic>,
    /// Substrate to run the networks on
    #[arg(long, value_name = "SUBSTRATE", value_enum, default_value_t = On::Card)]
    pub on: On,
    /// Send on real interfaces instead: the one that is cabled to this port of a running node (repeatable)
    #[arg(long, value_name = "PORT=INTERFACE", num_args = 1.., conflicts_with_all = ["on", "image", "line", "wave"])]
    pub live: Vec<NamedInterface>,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "default", add = ArgValueCandidates::new(complete::local_images))]
    pub image: String,
    /// Duration of the traffic in microseconds of the card's time, of the wires' time in software, or of real time on
    /// interfaces; by default, captures are sent once
    #[arg(long, value_name = "US", value_parser = whole::<u64>(1..=60_000_000))]
    pub duration_us: Option<u64>,
    /// Speed of the lines that the ports send to; by default one beat in each clock cycle
    #[arg(long, value_name = "RATE")]
    pub line: Option<Rate>,
    /// Directory for the frames that left, with the card's time: DIR/PORT.pcap and DIR/punt.pcap; created if
    /// absent. With `--live`, for all frames received, with the kernel's time: DIR/PORT.pcap
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a waveform of the card's signals (FST, for GTKWave or Surfer)
    #[arg(long, value_name = "FILE", value_parser = wave_file)]
    pub wave: Option<PathBuf>,
    /// Clock cycles in the waveform, counted from the start of the traffic
    #[arg(long, value_name = "FROM-TO", value_parser = cycles, allow_hyphen_values = true, requires = "wave")]
    pub wave_cycles: Option<(u64, u64)>,
    #[command(flatten)]
    pub output: Output,
}

/// Compare the switching activity of the card's blocks: idle, at work, and with each network gated
///
/// Runs the traffic through the simulated card several times: without packets, with all networks at work, and with
/// the clock gate of each network closed. Counts how often signals change, by block. All figures are percent of
/// the changes of the whole card with all networks at work. Dynamic power follows this activity, but the table is
/// not a power estimate: the power of a change depends on the part, and neither the clock tree nor the inside of
/// memories is counted.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane lab power -f labs/basic/hueplane.yaml --image tcam3 --traffic p0=rate:1G p1=rate:1G p2=rate:1G
  hueplane lab power -f red.yaml --traffic p0=rate:500M,size:imix --cycles 20000 -o json")]
pub struct LabPower {
    #[command(flatten)]
    pub files: Files,
    /// Traffic of a port, as for `lab run` (repeatable)
    #[arg(long, value_name = "PORT=TRAFFIC", required = true, num_args = 1..)]
    pub traffic: Vec<NamedTraffic>,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "default", add = ArgValueCandidates::new(complete::local_images))]
    pub image: String,
    /// Clock cycles to count
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = whole::<u64>(100..=1_000_000))]
    pub cycles: u64,
    #[command(flatten)]
    pub output: Output,
}

/// Measure throughput as networks are added: the papers' experiment with 1 to 15 networks
///
/// First, up to four networks run on the card and the others in software. Each network on the card has ternary tables and
/// a line of 1 Gbit/s of its own (images tcam1 to tcam4). Then all networks run in software. For each number of networks
/// and each frame size, the report has the throughput and latency of the card's networks, in the card's time, and the
/// speed of the software engine on one core of this machine, without ports. The two are never added up.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane lab sweep
  hueplane lab sweep --networks 1 4 15 --sizes 64 1518 -o json")]
pub struct LabSweep {
    /// Numbers of networks
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = 1..=15, value_parser = whole::<u8>(1..=15))]
    pub networks: Vec<u8>,
    /// Frame sizes in bytes, with check sequence
    #[arg(long, value_name = "BYTES", num_args = 1.., default_values_t = [64, 256, 512, 1024, 1518],
          value_parser = whole::<u16>(64..=1518))]
    pub sizes: Vec<u16>,
    /// Largest number of networks on the card
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u8>(1..=4))]
    pub on_card: u8,
    /// Duration of the traffic on the card in microseconds of its time
    #[arg(long, value_name = "US", default_value_t = 500, value_parser = whole::<u64>(50..=100_000))]
    pub duration_us: u64,
    /// Frames for each measurement in software
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = whole::<u32>(1_000..=4_000_000))]
    pub frames: u32,
    #[command(flatten)]
    pub output: Output,
}

/// Compare the memory of real tables in the papers' two banks and in hueplane's layout
///
/// Reports how many prefixes tables share, and how many conflict in the papers' layout; one table distributed
/// to several networks, as in the papers; Conflict CAM rows as networks are added; the sets that tables need,
/// and where the papers' banks overflow; and the bytes per route of every layout. IPv4 only. Nothing is
/// timed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane lab tables --set labs=labs/tables/red.txt --set labs=labs/tables/green.txt --sample 400
  hueplane lab tables --set views=2010/ --set full=rib.mrt.gz --seed 7 --out results")]
pub struct LabTables {
    /// Tables of one node (repeatable; equal names form one set): a route file as for `table --routes`, or a
    /// directory with one file for each network
    #[arg(long = "set", value_name = "NAME=PATH", required = true)]
    pub sets: Vec<NamedFile>,
    /// Skip invalid lines and count them
    #[arg(long)]
    pub skip_bad: bool,
    /// Derive next hops for routes that have none, from the first 20 bits of the prefix (FNV-1a modulo N)
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<u16>(1..))]
    pub derive_hops: u16,
    /// Number of a table's prefixes to distribute; also used as the number for each network, if the table has
    /// enough
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole::<usize>(0..))]
    pub sample: usize,
    /// Number of networks to distribute a table to
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole::<u16>(2..=4095))]
    pub parts: u16,
    /// Seed of the random choice of prefixes
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = whole::<u64>(0..))]
    pub seed: u64,
    /// Directory for lab-tables.json and lab-tables.md; created if absent
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// An argument `PORT=INTERFACE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedInterface {
    /// Name of the port.
    pub port: String,
    /// Name of the interface.
    pub interface: String,
}

impl FromStr for NamedInterface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((port, interface)) if !port.is_empty() && !interface.is_empty() => {
                Ok(Self { port: port.to_owned(), interface: interface.to_owned() })
            }
            _ => Err("expected PORT=INTERFACE".to_owned()),
        }
    }
}

/// An argument `PORT=TRAFFIC`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedTraffic {
    /// Name of the port.
    pub port: String,
    /// Its traffic.
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
