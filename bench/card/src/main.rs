//! Measures the card as its simulated twin: cycles per packet, line rates without loss, latency, and the speed of the twin
//! itself; and updates of routes, to the card and to software. Writes the results to `results/` as JSON and Markdown.
//!
//! Flow: [`networks`] on a fresh card of an image → traffic (`hue_lab`) → a command's tables → `report`. All figures except
//! the speed of the twin and of software are in clock cycles of the card, and so are the same on any machine.

mod clocks;
mod floods;
mod kinds;
mod labels;
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
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/rib.rs"]
mod rib;
#[allow(dead_code)] // the other benches use all of it
#[path = "../../src/rng.rs"]
mod rng;
mod speed;
mod stacks;
mod tunnels;
mod updates;

use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode};

use hue_card::Images;

use crate::report::{Report, Section};

const HELP: &str = "\
Measures the card, as its simulated twin.

Usage: hue-bench-card card|card-kinds|updates [--quick] [--rounds N] [--only TEXT] [--image NAME] [--out DIR]

Commands:
  card        cycles a packet, line rates, latency, floods, speed of the twin
  card-kinds  cycles a frame and line rate of each kind of plane, and through tunnels
  updates     a day of route updates, to software and to the card

Options:
  --quick     fewer lengths, shorter slices, three rounds
  --rounds N  rounds of the twin's speed, after one that warms up, and of software's (default: 9)
  --only TEXT tables whose titles have one of these texts, split by |
  --image NAME  only this one of tcam1, default, wide and sram, which is measured when named only
  --out DIR   where results go (default: results in the folder above)

The images are those in the folder that HUEPLANE_IMAGES names; without it they are made anew when they are stale, which needs
Verilator. Exit codes: 0 measured, 1 failed, 2 usage.";

/// The images that are measured.
const IMAGES: [&str; 3] = ["tcam1", "default", "wide"];
/// An image that is measured only if it is named.
const NAMED: &str = "sram";

/// Measures one table, under its title.
type Table = fn(&Images, &Settings, &str) -> Result<Section, String>;

const TABLES: [(&str, Table); 6] = [
    ("Cycles a packet, all four ports busy", clocks::busy),
    ("Line rate, four ports at 1 Gbit/s each way", clocks::line_rate),
    ("Highest rate without loss, all four ports", clocks::sustained),
    ("Latency", clocks::latency),
    ("Floods", floods::floods),
    ("Speed of the twin", speed::twin),
];

const KINDS: [(&str, Table); 4] = [
    ("Kinds, all four ports busy", kinds::kinds),
    ("Any bits and label stacks, all four ports busy", kinds::bits),
    ("Flat labels, all four ports busy", kinds::labels),
    ("Tunnels, all four ports busy", tunnels::tunnels),
];

/// The tables of a command, and the images that it needs.
type Command = (&'static str, &'static [(&'static str, Table)], &'static [&'static str]);

const COMMANDS: [Command; 3] = [
    ("card", &TABLES, &IMAGES),
    ("card-kinds", &KINDS, &kinds::IMAGES),
    ("updates", &updates::TABLES, &["sram"]),
];

/// The command line's options.
pub struct Settings {
    command: Command,
    /// Fewer lengths.
    pub quick: bool,
    /// Rounds of timed measurements.
    pub rounds: usize,
    /// The images to measure.
    pub images: Vec<&'static str>,
    only: Vec<String>,
    out: PathBuf,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
        let command = COMMANDS[0];
        let mut settings =
            Self { command, quick: false, rounds: 9, images: IMAGES.to_vec(), only: Vec::new(), out };
        let mut commanded = false;
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
                    let known = IMAGES.into_iter().chain([NAMED]).find(|image| *image == name);
                    settings.images =
                        vec![known.ok_or_else(|| format!("--image: no image '{name}' is measured"))?];
                }
                "--out" => settings.out = value()?.into(),
                "--help" | "-h" => return Ok(None),
                _ => match COMMANDS.into_iter().find(|(name, ..)| *name == arg) {
                    Some(command) if !commanded => (settings.command, commanded) = (command, true),
                    _ => return Err(format!("unexpected '{arg}'")),
                },
            }
        }
        if commanded { Ok(Some(settings)) } else { Err("expected a command".to_owned()) }
    }

    fn line(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        let only =
            if self.only.is_empty() { String::new() } else { format!(" --only '{}'", self.only.join("|")) };
        let command = self.command.0;
        format!("make bench ARGS=\"{command}{quick} --rounds {}{only}\"", self.rounds)
    }
}

/// The images. They are made if they are missing or stale.
fn images(names: &[&str]) -> Result<Images, String> {
    if let Some(folder) = std::env::var_os("HUEPLANE_IMAGES") {
        return Ok(Images::in_folders(vec![folder.into()]));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("scripts/images");
    let folder = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => PathBuf::from(target).join("images"),
        None => root.join("target/images"),
    };
    // Its messages go to our standard error.
    let out = Process::new(&script).arg("--out").arg(&folder).args(names).output();
    let out = out.map_err(|error| format!("scripts/images: {error}"))?;
    if !out.status.success() {
        return Err(format!("scripts/images: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(Images::in_folders(vec![folder]))
}

fn run(settings: &Settings) -> Result<(), String> {
    let (name, tables, names) = settings.command;
    let mut made = names.to_vec();
    made.extend(settings.images.iter().filter(|image| !names.contains(image)));
    let images = images(&made)?;
    let mut report = Report::new(name, machine::facts(&settings.line()));
    for (title, table) in tables {
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
