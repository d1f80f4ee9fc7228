//! The command line's definition: the one source of help, completions, man pages and `docs/reference/cli.md`.
//!
//! Flow: arguments → these types → `commands`. Every command that prints a result takes `-o table|json|yaml`.

mod lab;
mod live;
mod plan;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, builder::styling};
use clap_complete::Shell;

pub use lab::*;
pub use live::*;
pub use plan::*;

use crate::named::{Bytes, NamedFile};

/// Exit codes, shown by `--help` and in the reference.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure: an output cannot be written, or a check failed (also: what `demo` and `doctor` found)
  2  usage: the command line is wrong, or names a network or port that does not exist
  3  bad input: a configuration, capture, route, update or query file is wrong
  4  full: a named limit of a table or of the node is reached
  5  no daemon: none answers, it does not let you, or one is running already (`up`)
  6  differences: what `diff --exit-code` found
  130  interrupted: `demo`, after it has removed everything
`exec` ends with the code of its command, 126 if that cannot be run, 127 if it does not exist.";

const STYLES: styling::Styles = styling::Styles::styled()
    .header(styling::AnsiColor::Green.on_default().bold())
    .usage(styling::AnsiColor::Green.on_default().bold())
    .literal(styling::AnsiColor::Cyan.on_default().bold())
    .placeholder(styling::AnsiColor::Cyan.on_default());

/// Many virtual networks on one box
///
/// hueplane gives every virtual network its own addresses, routes and kind of data plane. `up` starts the daemon that runs
/// networks between real ports; `get`, `stats`, `capture` and the like show it at work. `validate`, `run`, `trace` and `table`
/// work offline and without privileges: they check configurations, run captures through networks, explain what happens
/// to a packet, and measure forwarding tables. `demo` shows all of it.
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
    Diff(Diff),
    Apply(Apply),
    Get(Get),
    Delete(Delete),
    Migrate(Migrate),
    Image(Image),
    Plan(Plan),
    Stats(Stats),
    Events(Events),
    Exec(Exec),
    Capture(Capture),
    Trace(Trace),
    Validate(Validate),
    Schema(Schema),
    Run(Run),
    Lab(Lab),
    Table(Table),
    Completions(Completions),
    Man(Man),
    /// Print this reference as Markdown
    #[command(hide = true)]
    Reference,
}

/// How a result is printed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people: aligned columns, coloured on a terminal
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// The `-o` option.
#[derive(Args, Debug)]
pub struct Output {
    /// How to print the result
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// Check configuration files
///
/// Reads Node and Network documents, checks each and all of them together, and says what they describe. Every
/// fault is reported with file, line, column, field, what was found and what was expected.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane validate -f red.yaml -f blue.yaml
  hueplane validate -f networks/*.yaml -o json")]
pub struct Validate {
    #[command(flatten)]
    pub files: Files,
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

/// Print the JSON Schema of the configuration
///
/// Editors use it to complete and check Node and Network documents. As a table it lists every field.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane schema > hueplane.schema.json
  hueplane schema -o table")]
pub struct Schema {
    /// How to print the schema
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t = Format::Json)]
    pub format: Format,
}

/// Run captures through networks
///
/// Merges the captures by time (equal times: in the order of --in, then of the packets), selects each frame's
/// network, runs the network's data plane, and writes what leaves each port to DIR/PORT.pcap and what goes to the
/// control plane, as it was received, to DIR/punt.pcap. Times are those of the input; the same input gives the
/// same bytes. The files appear only when all of them are complete.
///
/// Captures are pcap (microseconds or nanoseconds, either byte order) or pcapng, of link type Ethernet. A packet
/// that its capture cut short is processed as the bytes there are, with a note on standard error.
///
/// With --on card the frames go through the card's own logic, simulated cycle by cycle: the same bytes and the same
/// counters, and how many clock cycles it took. Frames keep their order, full queues hold back, idle cycles are left
/// out. Images of the card are files NAME.so in the folder `images` beside the binary or above it, or in the folder
/// that HUEPLANE_IMAGES names (`make images`).
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane run -f red.yaml --in p0=left.pcap --out out
  hueplane run --on card --image tcam1 -f red.yaml --in p0=left.pcap --out out --wave first.fst --wave-packet 1
  hueplane run -f red.yaml -f blue.yaml --in p0=a.pcap --in p1=b.pcapng --out out -o json")]
pub struct Run {
    #[command(flatten)]
    pub files: Files,
    /// Frames received on a port: its name and a capture (repeatable)
    #[arg(long = "in", value_name = "PORT=FILE", required = true, num_args = 1..)]
    pub inputs: Vec<NamedFile>,
    /// Directory for the results; made when absent
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Where the networks run
    #[arg(long, value_enum, default_value_t = On::Soft)]
    pub on: On,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub image: String,
    /// Write a wave of the card's signals (FST, which GTKWave and Surfer show)
    #[arg(long, value_name = "FILE")]
    pub wave: Option<PathBuf>,
    /// The wave is of these clock cycles after reset; loading the networks is among them
    #[arg(long, value_name = "FROM-TO", value_parser = cycles, requires = "wave", conflicts_with = "wave_packet")]
    pub wave_cycles: Option<(u64, u64)>,
    /// The wave is of the life of this packet, counted from 1 over all inputs by time, alone in the card
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "wave")]
    pub wave_packet: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}

/// A range of clock cycles, the second one not in it.
fn cycles(text: &str) -> Result<(u64, u64), String> {
    let range = text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    range
        .filter(|(from, to)| from < to)
        .ok_or_else(|| "expected two numbers as FROM-TO, FROM below TO".to_owned())
}

/// Substrates the command line can drive.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// The software substrate
    Soft,
    /// The card, as its simulated twin
    Card,
}

/// Explain what happens to a packet
///
/// Shows each stage the packet passes: the port, design select and the row that matched, the meter, the checks,
/// the table lookup, the next hop, what is rewritten, and the verdict with its reason. Every packet is treated
/// alone: meters are full. With -f the networks are those of files; with --live those of the running daemon, with the
/// routes and neighbours they have at this moment.
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
    /// Ask the running daemon
    #[arg(long)]
    pub live: bool,
    /// Port the packet arrives on
    #[arg(long, value_name = "PORT")]
    pub in_port: String,
    /// The packet in hexadecimal, from its destination MAC; blanks, ':' and '-' between bytes are ignored
    #[arg(long, value_name = "BYTES")]
    pub hex: Option<String>,
    /// A capture that holds the packet
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Which packet of the capture, from 1; without it, all of them
    #[arg(long, value_name = "N", requires = "pcap", value_parser = clap::value_parser!(u64).range(1..))]
    pub packet: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}

/// Measure and question forwarding tables
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

/// How tables are laid out in memory.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One multibit trie of all networks, equal parts stored once
    Dag,
    /// The papers' two banks of SRAM with their Conflict CAM; IPv4 only
    Dir,
    /// The papers' ternary rows, a set of them for each network; IPv4 only
    Tcam,
}

impl Layout {
    /// The word in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dag => "dag",
            Self::Dir => "dir",
            Self::Tcam => "tcam",
        }
    }
}

/// How the words of a table image are made.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Cache lines, for software
    Dag64,
    /// 36-bit words, for the card's memories
    Dag36,
}

impl Encoding {
    /// The word in results.
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
    /// How the tables are laid out
    #[arg(long, value_enum, default_value_t = Layout::Dag)]
    pub layout: Layout,
    /// How the words of the table image are made; of layout dag
    #[arg(long, value_enum, default_value_t = Encoding::Dag64)]
    pub encoding: Encoding,
    /// Sets of 2^13 entries in the second bank; of layout dir
    #[arg(long, value_name = "N", default_value_t = hue_tables::dir::SETS, value_parser = clap::value_parser!(u32).range(0..=hue_tables::dir::SETS_MAX as i64))]
    pub sets: u32,
    /// Rows of the Conflict CAM; of layout dir
    #[arg(long, value_name = "N", default_value_t = hue_tables::dir::CAM_ROWS)]
    pub cam_rows: usize,
    /// Rows of a network's plane; of layout tcam
    #[arg(long, value_name = "N", default_value_t = hue_tables::tcam::PLANE_ROWS)]
    pub plane_rows: usize,
    /// Where the tables are. On the card, layout and encoding are the image's: they are written through its registers, and
    /// packets ask for addresses
    #[arg(long, value_enum, default_value_t = On::Soft, conflicts_with_all = ["layout", "encoding", "sets", "cam_rows", "plane_rows", "limit"])]
    pub on: On,
    /// Image of the card
    #[arg(long, value_name = "NAME", default_value = "sram")]
    pub image: String,
    /// A network and its routes (repeatable): lines `PREFIX [NEXTHOP]`, or an MRT TABLE_DUMP_V2 dump; plain, .gz
    /// or .xz. Of equal prefixes the last line wins; further columns and lines that begin with # are ignored
    #[arg(long, value_name = "NAME=FILE", required = true)]
    pub routes: Vec<NamedFile>,
    /// Go on after bad lines and count them
    #[arg(long)]
    pub skip_bad: bool,
    /// Give routes without a next hop one of N derived from their first 20 bits (FNV-1a modulo N)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub derive_hops: Option<u16>,
    /// Largest image of each address family: bytes, or with KiB, MiB or GiB; without it 3 GiB of dag64, or the
    /// card's two banks of 2^19 words of dag36
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

    /// What the layout is called in results.
    pub const fn layout_name(&self) -> &'static str {
        if self.on_card() { "card" } else { self.layout.name() }
    }

    /// What the words of the image are called in results.
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

/// Memory that tables take, in total and by network
///
/// bytes_own is what a network's table would take alone; bytes_marginal is what it adds to the others, that is, what
/// would be freed without it. When a limit is reached, the result says so and covers the routes that fit.
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

/// Longest-prefix matches, answered by the table image
///
/// The next hop is what the image itself answers; the prefix comes from a naive search of the routes. A route
/// without a next hop answers the empty string, no route answers null.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane table lookup --layout dag --routes red=red.txt --queries queries.txt
  echo 'red 10.9.1.2' | hueplane table lookup --layout dag --routes red=red.txt --queries - -o json")]
pub struct Lookup {
    #[command(flatten)]
    pub tables: Tables,
    /// Lines `NAME ADDRESS`; plain, .gz or .xz; - for standard input
    #[arg(long, value_name = "FILE")]
    pub queries: PathBuf,
}

/// Apply route changes and measure what they do
///
/// Applies the lines `A PREFIX [NEXTHOP]` and `W PREFIX` of an update file in order. Speed goes to standard error;
/// the result depends only on the input.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane table replay --layout dag --routes full=rib.txt.xz --updates day.txt.xz --derive-hops 8
  hueplane table replay --layout dag --routes a=a.txt --routes b=b.txt --updates b=changes.txt --verify -o json")]
pub struct Replay {
    #[command(flatten)]
    pub tables: Tables,
    /// Changes, plain, .gz or .xz; of the first network, or of the one named
    #[arg(long, value_name = "[NAME=]FILE")]
    pub updates: String,
    /// Changes made visible at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// Compare the table with a naive search at this many random moments
    #[arg(long, value_name = "MOMENTS", num_args = 0..=1, default_missing_value = "16")]
    pub verify: Option<u32>,
    /// Seed of the random moments, as a run before printed it
    #[arg(long, value_name = "SEED", requires = "verify")]
    pub seed: Option<u64>,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane completions bash > /etc/bash_completion.d/hueplane
  hueplane completions zsh > ~/.zfunc/_hueplane")]
pub struct Completions {
    /// The shell
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
    /// Directory for one page a command
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
