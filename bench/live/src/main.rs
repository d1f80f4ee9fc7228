//! Measures the live system between namespaces, beside Linux's own forwarding and Open vSwitch in user space, rounds
//! interleaved in one run, and writes what it found to `results/` as JSON and markdown.
//!
//! Flow: [`wires`] (a generator, a node, a sink) → [`contestant`] in the node → [`load`] → a command's rounds → `report`.
//! Needs root. The binary under test is the one that `HUEPLANE` names, or a release build of this project.

mod contestant;
mod isolation;
mod load;
mod machine;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/measure.rs"]
mod measure;
mod ports;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/report.rs"]
mod report;
mod scale;
mod soak;
mod wires;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::report::Report;

const HELP: &str = "\
Measures the live system beside Linux and Open vSwitch.

Usage: hue-bench-live COMMAND [--quick] [--peers] [--seconds N] [--out DIR]

Commands:
  ports      veth to veth: throughput, cost and latency, 64 and 1,500 bytes, 1 and 15 networks
  scale      1, 15, 50 and 200 networks: set-up, memory, a change, throughput
  isolation  one network floods the ports it shares with 14 others
  soak       minutes under faults (not among `all`)
  all        the first three

Options:
  --quick      fewer and shorter rounds
  --peers      ports: the others alone, without hueplane
  --seconds N  how long soak takes (default: 600)
  --out DIR    where results go (default: results in the folder above)

Exit codes: 0 measured, 1 failed, 2 usage. A peer that is not installed is left out and said so.";

/// What the command line asked for.
pub struct Settings {
    command: String,
    /// Fewer and shorter rounds.
    pub quick: bool,
    /// Others are measured alone.
    pub peers: bool,
    /// How long the soak takes, seconds.
    pub seconds: u64,
    out: PathBuf,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
        let mut settings = Self { command: String::new(), quick: false, peers: false, seconds: 600, out };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => settings.quick = true,
                "--peers" => settings.peers = true,
                "--out" => settings.out = value()?.into(),
                "--seconds" => {
                    let text = value()?;
                    settings.seconds =
                        text.parse().map_err(|_| format!("--seconds: '{text}' is no number"))?;
                }
                "--help" | "-h" => settings.command = "help".into(),
                _ if settings.command.is_empty() && !arg.starts_with('-') => settings.command = arg,
                _ => return Err(format!("unexpected '{arg}'")),
            }
        }
        Ok(settings)
    }

    /// Interleaved rounds.
    pub fn rounds(&self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// Seconds of one measurement.
    pub fn round_seconds(&self) -> f64 {
        if self.quick { 0.7 } else { 2.0 }
    }
}

/// One command: fills its report.
type Run = fn(&Settings, &mut Report);

const COMMANDS: [(&str, Run, bool); 4] = [
    ("ports", ports::run, true),
    ("scale", scale::run, true),
    ("isolation", isolation::run, true),
    ("soak", soak::run, false),
];

fn run(settings: &Settings) -> Result<(), String> {
    let chosen = |name: &str, in_all: bool| settings.command == name || settings.command == "all" && in_all;
    if !COMMANDS.iter().any(|(name, _, in_all)| chosen(name, *in_all)) {
        return Err(format!("unknown command '{}'\n\n{HELP}", settings.command));
    }
    if !hue_e2e::can_run(&[]) {
        return Err("root, iproute2, ethtool and ping are needed".into());
    }
    hue_e2e::daemon::use_release();
    for (name, command, in_all) in COMMANDS {
        if chosen(name, in_all) {
            eprintln!("{name}");
            let mut report = Report::new(report_name(name), machine::facts(settings.quick));
            command(settings, &mut report);
            report.finish(&settings.out).map_err(|error| format!("results: {error}"))?;
        }
    }
    Ok(())
}

/// The file a command's results are in.
fn report_name(command: &str) -> &'static str {
    match command {
        "ports" => "live-ports",
        "scale" => "live-scale",
        "isolation" => "live-isolation",
        _ => "live-soak",
    }
}

fn main() -> ExitCode {
    match Settings::parse(std::env::args().skip(1)) {
        Ok(settings) if settings.command == "help" => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(settings) => match run(&settings) {
            Ok(()) => ExitCode::SUCCESS,
            Err(what) => {
                eprintln!("hue-bench-live: {what}");
                ExitCode::FAILURE
            }
        },
        Err(what) => {
            eprintln!("hue-bench-live: {what}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}
