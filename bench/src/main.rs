//! Compares hueplane's tables and planes with DPDK's in one run, with interleaved rounds, and writes the results to
//! `results/` as JSON and Markdown.
//!
//! Commands that begin with `live-` are in the package `live/`, and `card` is in `card/`. They need no DPDK; this program
//! runs them.
//!
//! Flow: real tables (`rib`) → engines (`ours`, `dpdk`) → answers compared → timed rounds (`measure`) → `report`.

mod capacity;
mod ceiling;
mod dpdk;
mod engine;
mod insert;
mod lookup;
mod machine;
mod measure;
mod memory;
mod oracle;
mod ours;
mod packets;
mod planes;
mod report;
mod rib;
mod rng;
mod rtl;
mod software;

use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode};

use thiserror::Error;

use crate::dpdk::{Dpdk, DpdkError};
use crate::report::Report;

const HELP: &str = "\
Measures hueplane beside DPDK on real tables.

Usage: hue-bench COMMAND [--quick] [--core N] [--out DIR]

Commands:
  lookup    IPv4 lookups: 1, 16 and 64 networks beside rte_lpm and rte_fib
  lookup6   IPv6 lookups beside rte_lpm6 and rte_fib6
  ceiling   cache lines a core can read a second, from as much memory as tables take
  insert    insertion and removal, one by one and in batches
  memory    what real tables weigh
  capacity  what fits the card's two SRAM banks, and still does after a day of updates
  planes    whole packets beside a DPDK loop over net_ring
  software  whole packets of each kind of plane in software, and of mixtures, beside ipv4
  tables    all of these
  live-…    the live system: live-forwarding, live-kinds, live-tunnels, live-row, live-shares, live-scale, live-isolation, live-migration, live-table, live-contention, live-soak, live-all (root);
            their options: cargo run --release -p hue-bench-live -- --help
  card      the card as its simulated twin: cycles a packet, line rates, latency, speed of the twin
  card-kinds  each kind of plane on the card: cycles a frame, line rate
  updates   a day of route updates to software and to the card, which forwards meanwhile
  all       live-all, card, card-kinds, updates, then tables

Options, not of live-…, card… and updates:
  --quick   fewer networks, lookups and rounds; with `all` also shorter live measurements
  --core N  the core to run on (default: the last)
  --out DIR where results go (default: results beside this package)

Exit codes: 0 measured (a table whose data is absent is skipped and said so), 1 failed or engines disagree, 2 usage.";

/// Why a run ends early.
#[derive(Debug, Error)]
enum Failure {
    /// DPDK's side failed.
    #[error(transparent)]
    Dpdk(#[from] DpdkError),
    /// Our table refused something.
    #[error(transparent)]
    Table(#[from] hue_tables::TableError),
    /// The card's image refused a change.
    #[error(transparent)]
    Card(#[from] hue_tables::dag36::Dag36Error),
    /// Our engine refused a network.
    #[error(transparent)]
    Substrate(#[from] hue_substrate::SubstrateError),
    /// Two engines, or an engine and the oracle, gave different answers.
    #[error("answers differ: {0}")]
    Disagree(String),
    /// Results could not be written.
    #[error("results: {0}")]
    Write(#[from] std::io::Error),
    /// A package of measurements failed; it has reported why.
    #[error("{0}: {1}")]
    Apart(&'static str, String),
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
}

/// The command line's options.
struct Settings {
    command: String,
    quick: bool,
    core: usize,
    out: PathBuf,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        let mut settings = Self { command: String::new(), quick: false, core: machine::last_core(), out };
        while let Some(arg) = args.next() {
            let mut value =
                |name: &str| args.next().ok_or_else(|| Failure::Usage(format!("{name} needs a value")));
            match arg.as_str() {
                "--quick" => settings.quick = true,
                "--core" => {
                    let text = value("--core")?;
                    settings.core =
                        text.parse().map_err(|_| Failure::Usage(format!("--core: '{text}' is no number")))?;
                }
                "--out" => settings.out = value("--out")?.into(),
                "--help" | "-h" => settings.command = "help".into(),
                _ if settings.command.is_empty() && !arg.starts_with('-') => settings.command = arg,
                _ => return Err(Failure::Usage(format!("unexpected '{arg}'"))),
            }
        }
        Ok(settings)
    }

    /// Interleaved rounds.
    fn rounds(&self) -> usize {
        if self.quick { 3 } else { 9 }
    }

    /// Lookups a round.
    fn lookups(&self) -> usize {
        if self.quick { 1 << 20 } else { 1 << 22 }
    }

    /// Packets a round.
    fn packets(&self) -> usize {
        if self.quick { 1 << 18 } else { 1 << 20 }
    }

    /// Memory to reserve for DPDK, MiB: an `rte_lpm` of the 2026 table takes 75, an `rte_lpm6` at most 500.
    fn dpdk_mib(&self) -> u64 {
        let (lookup, lookup6, rest) = if self.quick { (2_200, 1_500, 1_500) } else { (6_000, 7_000, 2_000) };
        match self.command.as_str() {
            "lookup" => lookup,
            "lookup6" => lookup6,
            "all" | "tables" => lookup6.max(lookup),
            _ => rest,
        }
    }
}

/// One command: fills its report.
type Command = fn(&Dpdk, &Settings, &mut Report) -> Result<(), Failure>;

const COMMANDS: [(&str, Command); 8] = [
    ("lookup", lookup::v4),
    ("lookup6", lookup::v6),
    ("ceiling", ceiling::lines),
    ("insert", insert::all),
    ("memory", memory::all),
    ("capacity", capacity::all),
    ("planes", planes::all),
    ("software", software::all),
];

/// Packages of their own, by the commands that they have.
const APART: [(&str, &str); 3] =
    [("live-", "hue-bench-live"), ("card", "hue-bench-card"), ("updates", "hue-bench-card")];

/// The package that a command is of.
fn package(command: &str) -> Option<&'static str> {
    APART.into_iter().find(|(begin, _)| command.starts_with(begin)).map(|(_, package)| package)
}

/// Runs the measurements of a package with these arguments.
fn apart(package: &'static str, arguments: &[String]) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Process::new(cargo);
    command.args(["run", "--release", "--locked", "-j2", "-p", package, "--"]).args(arguments);
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status()?;
    if status.success() { Ok(()) } else { Err(Failure::Apart(package, status.to_string())) }
}

/// All measurements of the packages, into the folder of the others; the first failure, after all of them.
fn all_apart(settings: &Settings) -> Result<(), Failure> {
    let out = std::path::absolute(&settings.out)?.to_string_lossy().into_owned();
    let mut result = Ok(());
    for command in ["live-all", "card", "card-kinds", "updates"] {
        let Some(package) = package(command) else { continue };
        let mut arguments = vec![command.to_owned(), "--out".to_owned(), out.clone()];
        if settings.quick {
            arguments.push("--quick".to_owned());
        }
        result = result.and(apart(package, &arguments));
    }
    result
}

/// Measures tables and planes.
fn tables(settings: &Settings) -> Result<(), Failure> {
    let every = matches!(settings.command.as_str(), "all" | "tables");
    let known = COMMANDS.iter().any(|(name, _)| *name == settings.command) || every;
    if !known {
        return Err(Failure::Usage(format!("unknown command '{}'", settings.command)));
    }
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let dpdk = Dpdk::start(settings.core, settings.dpdk_mib())?;
    if !machine::pin(settings.core) {
        eprintln!("hue-bench: could not pin to core {}", settings.core);
    }
    if dpdk.page_bytes() < 1 << 21 {
        eprintln!(
            "hue-bench: no 2 MB pages for DPDK (not root, or too little memory): its figures are handicapped"
        );
    }
    for (name, command) in COMMANDS {
        if settings.command == name || every {
            let mut report = Report::new(name, machine::facts(cores, dpdk.page_bytes(), settings.quick));
            command(&dpdk, settings, &mut report)?;
            report.finish(&settings.out)?;
        }
    }
    Ok(())
}

fn run(settings: &Settings) -> Result<(), Failure> {
    // These first: DPDK takes memory, and this process is pinned to one core from then on.
    let apart = if settings.command == "all" { all_apart(settings) } else { Ok(()) };
    tables(settings)?;
    apart
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(package) = arguments.first().and_then(|first| package(first)) {
        return match apart(package, &arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("hue-bench: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    let settings = match Settings::parse(std::env::args().skip(1)) {
        Ok(settings) if settings.command == "help" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => other,
    };
    match settings.and_then(|settings| run(&settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(what)) => {
            eprintln!("hue-bench: {what}\n\n{HELP}");
            ExitCode::from(2)
        }
        Err(failure) => {
            eprintln!("hue-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
