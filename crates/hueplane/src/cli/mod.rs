//! Definition of the command line: the single source of help, completions, man pages and
//! `docs/reference/cli.md`.
//!
//! Flow: arguments → these types → `commands`. Every command that prints a result accepts `-o
//! table|json|yaml`.

mod attach;
mod certs;
#[cfg(test)]
mod guide;
mod history;
mod lab;
mod live;
mod new;
mod parse;
mod plan;
mod pwospf;
mod rofl;
mod splice;
mod status;
mod topo;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, builder::styling};
use clap_complete::{ArgValueCandidates, Shell};
use hueplaned::number::whole;

pub use attach::*;
pub use certs::*;
pub use history::*;
pub use lab::*;
pub use live::*;
pub use new::*;
pub use parse::parse;
pub use plan::*;
pub use pwospf::*;
pub use rofl::*;
pub use splice::*;
pub use status::*;
pub use topo::*;

use crate::complete;
use crate::named::{Bytes, NamedFile};

/// Exit codes, shown by `--help` and in the reference.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure: an output cannot be written, or a check failed (also `demo`, `doctor` and `topo ping`)
  2  usage: the command line is wrong, or names a network or port that does not exist
  3  bad input: a configuration, capture, route, update or query file is wrong
  4  full: a named limit of a table or of the node is reached
  5  no daemon: it does not answer, denies access, or is already running (`up`, `pwospf`, `rofl-ring`, `splice-host`)
  6  differences: found by `diff --exit-code`
  7  not well: `status` found something that is not as desired
  130  interrupted: `demo` and `topo up`, after they have removed everything, and `lab run --live`, after its report
`exec` returns the code of its command, 126 if it cannot be run, 127 if it does not exist.";

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default().bold())
    .placeholder(styling::AnsiColor::Cyan.on_default());

/// Run many virtual networks on one machine
///
/// hueplane gives every virtual network its own addresses, routes and kind of data plane. `up` starts the
/// daemon, which runs networks between real ports; `get`, `stats`, `capture` and other commands show what it
/// does. `validate`, `run`, `trace` and `table` work offline and without privileges: they check
/// configurations, run captures through networks, explain what happens to a packet, and measure forwarding
/// tables. `demo` shows everything.
#[derive(Parser, Debug)]
#[command(name = "hueplane", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub connection: Connection,
}

/// Commands of hueplane.
#[derive(Subcommand, Debug)]
pub enum Command {
    Demo(Demo),
    Doctor(Doctor),
    Up(Up),
    Down(Down),
    Upgrade(Upgrade),
    Diff(Diff),
    Apply(Apply),
    History(History),
    Rollback(Rollback),
    Confirm(Confirm),
    Status(Status),
    Logs(Logs),
    Get(Get),
    Delete(Delete),
    Migrate(Migrate),
    Image(Image),
    Card(Card),
    Drain(Drain),
    Undrain(Undrain),
    Plan(Plan),
    Stats(Stats),
    Events(Events),
    Exec(Exec),
    Pwospf(Pwospf),
    RoflHost(RoflHost),
    RoflRing(RoflRing),
    SpliceHost(SpliceHost),
    Attach(Attach),
    Detach(Detach),
    Capture(Capture),
    Trace(Trace),
    Validate(Validate),
    Schema(Schema),
    Run(Run),
    Lab(Lab),
    Topo(Topo),
    Table(Table),
    Certs(Certs),
    New(New),
    Completions(Completions),
    Man(Man),
    /// Print this reference as Markdown
    #[command(hide = true)]
    Reference,
}

/// Output format of a result.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Aligned columns, coloured on a terminal
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// The `-o` option.
#[derive(Args, Debug)]
pub struct Output {
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// Check configuration files
///
/// Reads Node and Network documents, checks them individually and together, and prints a summary. Each error
/// has file, line, column, field, the value found and the value expected. A Topology document is checked with the documents that
/// follow from it for every node.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane validate -f red.yaml -f blue.yaml
  hueplane validate -f networks/*.yaml -o json
  hueplane validate -f labs/topology/topology.yaml")]
pub struct Validate {
    #[command(flatten)]
    pub files: Files,
    /// Of a Topology, check the part of this node, together with the other files
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// The `-f` option.
#[derive(Args, Debug)]
pub struct Files {
    /// Configuration files (YAML, one or more documents each)
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
}

/// The `--node` option.
#[derive(Args, Clone, Debug, Default)]
pub struct AsNode {
    /// Of a Topology, take the part of this node; default: the name in the node's document, or the machine's host name
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
}

/// Print the JSON Schema of the configuration
///
/// Editors use it to complete and check Node and Network documents. The table format lists every field.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane schema > hueplane.schema.json
  hueplane schema -o table")]
pub struct Schema {
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t = Format::Json)]
    pub format: Format,
}

/// Run captures through networks
///
/// Merges the captures by time (packets with equal times: in the order of --in, then in the order of the
/// file). Finds the network of each frame and runs its data plane. Frames that leave a port are written to
/// DIR/PORT.pcap; punted frames are written unchanged to DIR/punt.pcap. Times are those of the input, and the
/// same input gives the same output, byte for byte. The files appear only when all of them are complete.
///
/// Captures are pcap (microseconds or nanoseconds, either byte order) or pcapng, with link type Ethernet.
/// Packets truncated in the capture are processed as they are, with a note on standard error.
///
/// With --on card, the frames run through the card's own logic, simulated cycle by cycle. The output bytes
/// and counters are the same, and the number of clock cycles is reported. Frames keep their order, full
/// queues cause back-pressure, and idle cycles are skipped. Images of the card are files NAME.so in a folder
/// `images`, beside the binary or in a parent folder, or where they are installed (../lib/hueplane/images), or in the
/// folder given by HUEPLANE_IMAGES (`make images`).
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane run -f red.yaml --in p0=left.pcap --out out
  hueplane run --on card --image tcam1 -f red.yaml --in p0=left.pcap --out out --wave first.fst --wave-packet 1
  hueplane run -f red.yaml -f blue.yaml --in p0=a.pcap --in p1=b.pcapng --out out -o json")]
pub struct Run {
    #[command(flatten)]
    pub files: Files,
    /// Port and capture of the frames that it receives (repeatable)
    #[arg(long = "in", value_name = "PORT=FILE", required = true, num_args = 1..)]
    pub inputs: Vec<NamedFile>,
    /// Directory for the output files; created if absent
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Substrate that runs the networks
    #[arg(long, value_enum, default_value_t = On::Soft)]
    pub on: On,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "default", add = ArgValueCandidates::new(complete::local_images))]
    pub image: String,
    /// Write a waveform of the card's signals (FST, for GTKWave or Surfer)
    #[arg(long, value_name = "FILE", value_parser = wave_file)]
    pub wave: Option<PathBuf>,
    /// Clock cycles in the waveform, counted from reset; they include loading the networks
    #[arg(long, value_name = "FROM-TO", value_parser = cycles, allow_hyphen_values = true, requires = "wave", conflicts_with = "wave_packet")]
    pub wave_cycles: Option<(u64, u64)>,
    /// Record only this packet, counted from 1 over all inputs by time, alone in the card
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..), requires = "wave")]
    pub wave_packet: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}

/// A file that readers of waveforms recognise.
fn wave_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    if file.extension().is_some_and(|extension| extension == "fst") {
        return Ok(file);
    }
    Err("expected a name that ends in .fst, the format of the waveform (`fst2vcd` of GTKWave converts it)"
        .to_owned())
}

/// A time with a unit.
fn time(text: &str) -> Result<std::time::Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a time such as 500ms, 30s, 5m or 1h 30m".to_owned())
}

/// A range of clock cycles; the end is exclusive.
fn cycles(text: &str) -> Result<(u64, u64), String> {
    let range = text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    range
        .filter(|(from, to)| from < to)
        .ok_or_else(|| "expected two numbers as FROM-TO, FROM below TO".to_owned())
}

/// The substrates.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// The software substrate
    Soft,
    /// The card, simulated
    Card,
}

/// Explain what happens to a packet
///
/// Shows each stage that the packet passes: the port, design select and the matching row, the meter, the
/// checks, the table lookup, the next hop, the changes, and the verdict with its reason. Each packet is
/// treated independently, with full token buckets. With -f, the networks are those of the files. With --live,
/// they are those of the running daemon, with their current routes and neighbours.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("packet_source").required(true).args(["hex", "pcap"]),
          group = clap::ArgGroup::new("networks_of").required(true).args(["files", "live"]), after_help = "\
Examples:
  hueplane trace -f red.yaml --in-port p0 --pcap left.pcap --packet 3
  hueplane trace --live --in-port p0 --pcap left.pcap
  hueplane trace -f red.yaml --in-port p0 --hex '02 00 00 00 01 01 02 00 00 00 0a 01 08 00 45 00 …' -o json")]
pub struct Trace {
    /// Configuration files (YAML, one or more documents each)
    #[arg(short = 'f', long = "file", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Use the running daemon
    #[arg(long)]
    pub live: bool,
    /// Port on which the packet arrives
    #[arg(long, value_name = "PORT")]
    pub in_port: String,
    /// Packet in hexadecimal, from its destination MAC; blanks, ':' and '-' between bytes are ignored
    #[arg(long, value_name = "BYTES")]
    pub hex: Option<String>,
    /// Capture with the packet
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Number of the packet in the capture, from 1; by default all packets
    #[arg(long, value_name = "N", requires = "pcap", value_parser = whole::<u64>(1..))]
    pub packet: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}

/// Measure forwarding tables and look up addresses in them
#[derive(Args, Debug)]
pub struct Table {
    /// What to do with the tables
    #[command(subcommand)]
    pub command: TableCommand,
}

/// Commands of `hueplane table`.
#[derive(Subcommand, Debug)]
pub enum TableCommand {
    Size(Size),
    Lookup(Lookup),
    Replay(Replay),
}

/// Layouts of tables in memory.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One multibit trie for all networks, with equal parts stored once
    Dag,
    /// The papers' two SRAM banks with Conflict CAM; IPv4 only
    Dir,
    /// The papers' ternary rows, a separate set for each network; IPv4 only
    Tcam,
}

impl Layout {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dag => "dag",
            Self::Dir => "dir",
            Self::Tcam => "tcam",
        }
    }
}

/// Encodings of a table image.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Cache lines, for software
    Dag64,
    /// 36-bit words, for the card's memories
    Dag36,
}

impl Encoding {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dag64 => "dag64",
            Self::Dag36 => "dag36",
        }
    }
}

/// Options of all table commands.
#[derive(Args, Debug)]
pub struct Tables {
    /// Layout of the tables
    #[arg(long, value_enum, default_value_t = Layout::Dag)]
    pub layout: Layout,
    /// Encoding of the table image, for layout dag
    #[arg(long, value_enum, default_value_t = Encoding::Dag64)]
    pub encoding: Encoding,
    /// Number of sets of 2^13 entries in the second bank, for layout dir
    #[arg(long, value_name = "N", default_value_t = hue_tables::dir::SETS, value_parser = whole::<u32>(0..=hue_tables::dir::SETS_MAX))]
    pub sets: u32,
    /// Number of rows of the Conflict CAM, for layout dir
    #[arg(long, value_name = "N", default_value_t = hue_tables::dir::CAM_ROWS, value_parser = whole::<usize>(0..))]
    pub cam_rows: usize,
    /// Number of rows of a network's plane, for layout tcam
    #[arg(long, value_name = "N", default_value_t = hue_tables::tcam::PLANE_ROWS, value_parser = whole::<usize>(0..))]
    pub plane_rows: usize,
    /// Where the tables are. With --on card, the image determines layout and encoding; the tables are written
    /// through the card's registers, and packets look up addresses
    #[arg(long, value_enum, default_value_t = On::Soft, conflicts_with_all = ["layout", "encoding", "sets", "cam_rows", "plane_rows", "limit"])]
    pub on: On,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "sram", add = ArgValueCandidates::new(complete::local_images))]
    pub image: String,
    /// Network and route file (repeatable): lines `PREFIX [NEXTHOP]`, or an MRT TABLE_DUMP_V2 dump; plain,
    /// .gz or .xz. If a prefix occurs several times, the last line wins; further columns and lines that begin
    /// with # are ignored
    #[arg(long, value_name = "NAME=FILE", required = true)]
    pub routes: Vec<NamedFile>,
    /// Skip invalid lines and count them
    #[arg(long)]
    pub skip_bad: bool,
    /// Derive next hops for routes that have none, from the first 20 bits of the prefix (FNV-1a modulo N)
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    pub derive_hops: Option<u16>,
    /// Size limit of the table image for each address family: bytes, or with KiB, MiB or GiB; default: 3 GiB
    /// for dag64, the card's two banks of 2^19 words for dag36
    #[arg(long, value_name = "SIZE")]
    pub limit: Option<Bytes>,
    #[command(flatten)]
    pub output: Output,
}

impl Tables {
    /// Whether the tables are on the card.
    pub const fn on_card(&self) -> bool {
        matches!(self.on, On::Card)
    }

    /// The name of the layout in results.
    pub const fn layout_name(&self) -> &'static str {
        if self.on_card() { "card" } else { self.layout.name() }
    }

    /// The name of the encoding in results.
    pub const fn words(&self) -> &'static str {
        if self.on_card() {
            return "dag36";
        }
        match self.layout {
            Layout::Dag => self.encoding.name(),
            other => other.name(),
        }
    }
}

/// Show the memory of tables, in total and by network
///
/// bytes_own is the size of a network's table on its own. bytes_marginal is the memory that it adds to the other
/// tables, and that would be freed without it. If a limit is reached, the result says so and covers the routes
/// that fit.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane table size --layout dag --routes red=red.txt --routes blue=blue.txt.xz
  hueplane table size --layout dag --encoding dag36 --routes full=rib.mrt.gz -o json
  hueplane table size --layout dir --sets 65536 --cam-rows 100000 --routes a=a.txt --routes b=b.txt")]
pub struct Size {
    #[command(flatten)]
    pub tables: Tables,
}

/// Look up addresses in the table image by longest-prefix match
///
/// The next hop comes from the table image, the prefix from a linear search of the routes. A route without a
/// next hop gives an empty string, no route gives null.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane table lookup --layout dag --routes red=red.txt --queries queries.txt
  echo 'red 10.9.1.2' | hueplane table lookup --layout dag --routes red=red.txt --queries - -o json")]
pub struct Lookup {
    #[command(flatten)]
    pub tables: Tables,
    /// File with lines `NAME ADDRESS`; plain, .gz or .xz; - for standard input
    #[arg(long, value_name = "FILE")]
    pub queries: PathBuf,
}

/// Apply route changes and measure their effect
///
/// Applies the lines `A PREFIX [NEXTHOP]` and `W PREFIX` of an update file in order. Speed goes to standard
/// error; the result depends only on the input.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane table replay --layout dag --routes full=rib.txt.xz --updates day.txt.xz --derive-hops 8
  hueplane table replay --layout dag --routes a=a.txt --routes b=b.txt --updates b=changes.txt --verify -o json")]
pub struct Replay {
    #[command(flatten)]
    pub tables: Tables,
    /// File with changes; plain, .gz or .xz. They apply to the first network, or to the named network
    #[arg(long, value_name = "[NAME=]FILE")]
    pub updates: String,
    /// Number of changes that become visible together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..))]
    pub batch: u32,
    /// Compare the table with a linear search at this many random moments
    #[arg(long, value_name = "MOMENTS", num_args = 0..=1, default_missing_value = "16", value_parser = whole::<u32>(0..))]
    pub verify: Option<u32>,
    /// Seed of the random moments, as printed by an earlier run
    #[arg(long, value_name = "SEED", requires = "verify", value_parser = whole::<u64>(0..))]
    pub seed: Option<u64>,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane completions bash > /etc/bash_completion.d/hueplane
  hueplane completions zsh > ~/.zfunc/_hueplane")]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Print the manual page, or write one for every command
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane man | man -l -
  hueplane man --out /usr/local/share/man/man1")]
pub struct Man {
    /// Directory for one page per command
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
