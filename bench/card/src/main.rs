//! Measures the card as its simulated twin: cycles a packet, line rates without loss, latency, and how fast the twin itself
//! is. Writes what it found to `results/` as JSON and markdown.
//!
//! Flow: [`networks`] on a fresh card of an image → traffic (`hue_lab`) → a command's tables → `report`. Everything but the
//! twin's speed is counted in clock cycles of the card and the same on any machine.

mod clocks;
#[allow(dead_code)] // the live benches use all of it
#[path = "../../live/src/machine.rs"]
mod machine;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/measure.rs"]
mod measure;
mod networks;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/report.rs"]
mod report;
mod speed;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use hue_card::Images;

use crate::report::{Report, Section};

const HELP: &str = "\
Measures the card, as its simulated twin.

Usage: hue-bench-card card [--quick] [--rounds N] [--only TEXT] [--image NAME] [--out DIR]

Options:
  --quick     fewer lengths, three rounds
  --rounds N  rounds of the twin's speed, after one that warms up (default: 9)
  --only TEXT tables whose titles have one of these texts, split by |
  --image NAME  only this one of tcam1, default and wide
  --out DIR   where results go (default: results in the folder above)

The images are those in the folder that HUEPLANE_IMAGES names; without it they are made anew when they are stale, which needs
Verilator. Exit codes: 0 measured, 1 failed, 2 usage.";

/// The images that are measured.
const IMAGES: [&str; 3] = ["tcam1", "default", "wide"];

/// Measures one table, under its title.
type Table = fn(&Images, &Settings, &str) -> Result<Section, String>;

const TABLES: [(&str, Table); 5] = [
    ("Cycles a packet, all four ports busy", clocks::busy),
    ("Line rate, four ports at 1 Gbit/s each way", clocks::line_rate),
    ("Highest rate without loss, all four ports", clocks::sustained),
    ("Latency", clocks::latency),
    ("Speed of the twin", speed::twin),
];

/// What the command line asked for.
pub struct Settings {
    /// Fewer lengths.
    pub quick: bool,
    /// Rounds of what is timed.
    pub rounds: usize,
    /// Which images.
    pub images: Vec<&'static str>,
    only: Vec<String>,
    out: PathBuf,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
        let mut settings = Self { quick: false, rounds: 9, images: IMAGES.to_vec(), only: Vec::new(), out };
        let mut command = None;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => (settings.quick, settings.rounds) = (true, 3),
                "--rounds" => {
                    let rounds = value()?.parse().ok().filter(|rounds| *rounds > 0);
                    settings.rounds = rounds.ok_or("--rounds: expected a number above 0")?;
                }
                "--only" => settings.only = value()?.split('|').map(str::to_owned).collect(),
                "--image" => {
                    let name = value()?;
                    let known = IMAGES.into_iter().find(|image| *image == name);
                    settings.images =
                        vec![known.ok_or_else(|| format!("--image: no image '{name}' is measured"))?];
                }
                "--out" => settings.out = value()?.into(),
                "--help" | "-h" => return Ok(None),
                "card" if command.is_none() => command = Some(arg),
                _ => return Err(format!("unexpected '{arg}'")),
            }
        }
        if command.is_none() { Err("expected the command 'card'".to_owned()) } else { Ok(Some(settings)) }
    }

    fn line(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let only =
            if self.only.is_empty() { String::new() } else { format!(" --only '{}'", self.only.join("|")) };
        format!("make bench ARGS=\"card{quick} --rounds {}{only}\"", self.rounds)
    }
}

/// The images, made when they are missing or stale.
fn images() -> Result<Images, String> {
    if let Some(folder) = std::env::var_os("HUEPLANE_IMAGES") {
        return Ok(Images::in_folders(vec![folder.into()]));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("scripts/images");
    let folder = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => PathBuf::from(target).join("images"),
        None => root.join("target/images"),
    };
    // Messages go where ours go.
    let out = Command::new(&script).arg("--out").arg(&folder).args(IMAGES).output();
    let out = out.map_err(|error| format!("scripts/images: {error}"))?;
    if !out.status.success() {
        return Err(format!("scripts/images: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(Images::in_folders(vec![folder]))
}

fn run(settings: &Settings) -> Result<(), String> {
    let images = images()?;
    let mut report = Report::new("card", machine::facts(&settings.line()));
    for (title, table) in TABLES {
        if settings.only.is_empty() || settings.only.iter().any(|part| title.contains(part)) {
            report.push(table(&images, settings, title)?);
        }
    }
    report.finish(&settings.out).map_err(|error| format!("results: {error}"))
}

fn main() -> ExitCode {
    match Settings::parse(std::env::args().skip(1)) {
        Ok(None) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Some(settings)) => match run(&settings) {
            Ok(()) => ExitCode::SUCCESS,
            Err(what) => {
                eprintln!("hue-bench-card: {what}");
                ExitCode::FAILURE
            }
        },
        Err(what) => {
            eprintln!("hue-bench-card: {what}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}
