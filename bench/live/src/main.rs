//! Measures the live system between namespaces, compared with Linux's own forwarding and Open vSwitch in user space, in
//! interleaved rounds of one run, and writes the results to `results/` as JSON and Markdown.
//!
//! Flow: [`wires`] (a generator, a node, a sink) → [`contestant`] in the node → [`load`] → a command's rounds → `report`.
//! Needs root. The binary under test is the one that `HUEPLANE` names, or a release build of this project.

mod admin;
mod attack;
mod bpf;
mod contention;
mod contestant;
mod forwarding;
mod https;
mod isolation;
mod kinds;
mod load;
mod machine;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/measure.rs"]
mod measure;
mod migration;
mod migration_kinds;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/report.rs"]
mod report;
mod restart;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/rib.rs"]
mod rib;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/rng.rs"]
mod rng;
mod rounds;
mod row;
mod scale;
mod shares;
mod soak;
mod table;
mod tunnels;
mod wires;
mod xsk;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::report::Report;

const HELP: &str = "\
Measures the live system beside Linux and Open vSwitch.

Usage: hue-bench-live COMMAND [--quick] [--seconds N] [--rounds N] [--minutes N] [--moves N] [--only TEXT] [--out DIR]

Commands:
  live-forwarding  veth to veth: throughput and latency, 64 and 1,500 bytes, 1 and 15 networks
  live-kinds       IPv6 beside Linux, switching beside Linux's bridge and Open vSwitch: throughput at 64 bytes, TCP
  live-tunnels     VXLAN and IP in IP beside plain forwarding, Linux and Open vSwitch: into, out of and between tunnels
  live-row         1 to 3 nodes in a row, joined by VXLAN, beside Linux: throughput, latency of a hop
  live-shares      decision 0007: shares before one ring, against a socket for each network
  live-scale       1, 15, 50 and 200 networks: set-up, memory, a change, throughput
  live-isolation   one network floods the ports it shares with 14 others
  live-migration   networks move between card and software, and the card's image changes, under traffic
  live-table       a network with a full Internet table moves between card and software
  live-contention  a modest rate beside busy processes, by how threads are scheduled
  live-restart     the time without forwarding when the forwarder is restarted or upgraded
  live-admin       an administrator's waiting time while people without rights attack the API
  live-soak        minutes under faults
  live-all         all of these

Options:
  --quick      two rounds of half a second, a soak of two minutes
  --seconds N  how long one measurement takes (default: 2)
  --rounds N   interleaved rounds, after one that warms up (default: 7)
  --moves N    live-migration: round trips (default: 100); live-table: at most 20
  --minutes N  how long the soak takes (default: 10)
  --only TEXT  live-forwarding, live-kinds, live-contention: contestants whose names have one of these texts, split by |; live-admin: attacks;
               live-migration: receivers, single and multi receiver alone; kinds, other kinds than ipv4 alone
  --out DIR    where results go (default: results in the folder above)

Exit codes: 0 measured, 1 failed, 2 usage. A peer that is not installed is left out and said so.";

/// The command line's options.
pub struct Settings {
    command: String,
    /// Seconds of one measurement.
    pub seconds: f64,
    /// Interleaved rounds.
    pub rounds: usize,
    /// Duration of the soak, minutes.
    pub minutes: f64,
    /// Round trips of a network that moves.
    pub moves: usize,
    /// Contestants that are measured, by a part of their names; none: all.
    pub only: Vec<String>,
    out: PathBuf,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
        let mut settings = Self {
            command: String::new(),
            seconds: 2.0,
            rounds: 7,
            minutes: 10.0,
            moves: 100,
            only: Vec::new(),
            out,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => {
                    (settings.seconds, settings.rounds, settings.minutes) = (0.5, 2, 2.0);
                    settings.moves = 5;
                }
                "--seconds" => settings.seconds = number(&arg, &value()?)?,
                "--rounds" => settings.rounds = number(&arg, &value()?)?.ceil() as usize,
                "--moves" => settings.moves = number(&arg, &value()?)?.ceil() as usize,
                "--minutes" => settings.minutes = number(&arg, &value()?)?,
                "--only" => settings.only = value()?.split('|').map(str::to_owned).collect(),
                "--out" => settings.out = value()?.into(),
                "--help" | "-h" => settings.command = "help".into(),
                _ if settings.command.is_empty() && !arg.starts_with('-') => settings.command = arg,
                _ => return Err(format!("unexpected '{arg}'")),
            }
        }
        Ok(settings)
    }

    /// Whether a contestant is measured.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }

    /// The command line of one of the commands, for its results.
    fn line(&self, command: &str) -> String {
        let more = match command {
            "live-soak" => format!("--minutes {}", self.minutes),
            "live-table" => format!("--moves {}", self.moves),
            "live-admin" => format!("--rounds {}", self.rounds),
            "live-migration" => {
                format!("--seconds {} --rounds {} --moves {}", self.seconds, self.rounds, self.moves)
            }
            _ => format!("--seconds {} --rounds {}", self.seconds, self.rounds),
        };
        let only = match &self.only[..] {
            [] => String::new(),
            only => format!(" --only '{}'", only.join("|")),
        };
        format!("make bench ARGS=\"{command} {more}{only}\"")
    }
}

/// A number above zero.
fn number(option: &str, text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    parsed.ok_or_else(|| format!("{option}: '{text}' is no number above 0"))
}

/// A command: fills its report, and returns errors in the results.
type Run = fn(&Settings, &mut Report) -> Result<(), String>;

const COMMANDS: [(&str, Run); 13] = [
    ("live-forwarding", forwarding::run),
    ("live-kinds", kinds::run),
    ("live-tunnels", tunnels::run),
    ("live-row", row::run),
    ("live-shares", shares::run),
    ("live-migration", migration::run),
    ("live-scale", scale::run),
    ("live-isolation", isolation::run),
    ("live-table", table::run),
    ("live-contention", contention::run),
    ("live-restart", restart::run),
    ("live-admin", admin::run),
    ("live-soak", soak::run),
];

fn run(settings: &Settings) -> Result<(), String> {
    let chosen = |name: &str| settings.command == name || settings.command == "live-all";
    if !COMMANDS.iter().any(|(name, _)| chosen(name)) {
        return Err(format!("unknown command '{}'\n\n{HELP}", settings.command));
    }
    if !hue_e2e::can_run(&[]) {
        return Err("root, iproute2, ethtool and ping are needed".into());
    }
    hue_e2e::daemon::use_release();
    bpf::take_signals();
    let mut failures = Vec::new();
    for (name, command) in COMMANDS.into_iter().filter(|(name, _)| chosen(name)) {
        eprintln!("{name}");
        let mut report = Report::new(name, machine::facts(&settings.line(name)));
        if let Err(wrong) = command(settings, &mut report) {
            failures.push(format!("{name}: {wrong}"));
        }
        report.finish(&settings.out).map_err(|error| format!("results: {error}"))?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
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
