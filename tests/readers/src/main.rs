//! Runs the readers over damaged inputs; see the library.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hue_readers::worker::{self, Allocator};
use hue_readers::{LEAST_MS, Limits, READERS, Reader, fuzz, growth, reader};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::new(std::alloc::System, usize::MAX);

#[derive(Parser)]
#[command(
    about = "Runs hueplane's readers over damaged inputs, each with limits of processor time and memory"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reads damaged inputs until the processor time is used up, with new seeds
    Fuzz {
        /// The readers; all by default
        readers: Vec<String>,
        /// First seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Inputs of each reader
        #[arg(long, default_value_t = 20_000)]
        inputs: u64,
        /// Folder for the inputs of finds
        #[arg(long, default_value = "target/finds")]
        finds: PathBuf,
    },
    /// Compares the time of inputs with that of inputs four times as long
    Growth {
        /// The readers; all by default
        readers: Vec<String>,
        /// Processor time of the shorter input, at least
        #[arg(long, default_value_t = LEAST_MS)]
        least_ms: u64,
    },
    /// Reads one input again, under the same limits
    Replay {
        /// The reader
        reader: String,
        /// The input
        input: PathBuf,
        /// Limit of processor time
        #[arg(long, default_value_t = Limits::default().cpu_seconds)]
        cpu_seconds: u64,
    },
    /// Writes the input of a shape to standard output
    Show {
        /// The reader
        reader: String,
        /// The shape, as `growth` prints it
        shape: String,
        /// Its elements
        elements: usize,
    },
    /// Is a worker
    #[command(hide = true)]
    Work {
        reader: String,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        inputs: u64,
        #[arg(long)]
        cpu_seconds: u64,
        #[arg(long)]
        current: PathBuf,
    },
}

fn named(names: &[String]) -> Result<Vec<&'static Reader>, String> {
    if names.is_empty() {
        return Ok(READERS.iter().collect());
    }
    let known = || READERS.iter().map(|reader| reader.name).collect::<Vec<_>>().join(", ");
    let one =
        |name: &String| reader(name).ok_or_else(|| format!("unknown reader '{name}': expected {}", known()));
    names.iter().map(one).collect()
}

fn run(arguments: Arguments) -> Result<(), String> {
    let mut found = Vec::new();
    match arguments.command {
        Command::Fuzz { readers, seed, inputs, finds } => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            for reader in named(&readers)? {
                match fuzz(&program, reader, (seed, inputs), Limits::default(), &finds) {
                    Ok(summary) => {
                        println!(
                            "{}: {} inputs of {} bytes, {} accepted",
                            reader.name, summary.inputs, summary.bytes, summary.accepted
                        )
                    }
                    Err(find) => found.push(format!("{}: {find}", reader.name)),
                }
            }
        }
        Command::Growth { readers, least_ms } => {
            for growth in named(&readers)?.into_iter().flat_map(|reader| growth(reader, least_ms)) {
                println!(
                    "{}: {} elements, {:?} us, {:.1} times",
                    growth.of,
                    growth.elements,
                    growth.us,
                    growth.times()
                );
                if growth.is_too_fast() {
                    found.push(format!(
                        "{}: {:.1} times the time for 4 times the input",
                        growth.of,
                        growth.times()
                    ));
                }
            }
        }
        Command::Replay { reader, input, cpu_seconds } => {
            let bytes = std::fs::read(&input).map_err(|error| format!("{}: {error}", input.display()))?;
            for one in named(&[reader])? {
                let fine = worker::replay(one, &bytes, Limits { cpu_seconds }, &ALLOCATOR);
                println!("{}: {}", one.name, if fine { "accepted" } else { "refused" });
            }
        }
        Command::Show { reader, shape, elements } => {
            for one in named(&[reader])? {
                let found = one.shapes.iter().find(|known| known.name == shape);
                let found = found.ok_or_else(|| format!("{} has no shape '{shape}'", one.name))?;
                let written = std::io::stdout().write_all(&(found.of)(elements));
                written.map_err(|error| format!("standard output: {error}"))?;
            }
        }
        Command::Work { reader, seed, inputs, cpu_seconds, current } => {
            for one in named(&[reader])? {
                let limits = Limits { cpu_seconds };
                let summary = worker::work(one, (seed, inputs), limits, &ALLOCATOR, &current);
                println!("{} {} {}", summary.inputs, summary.bytes, summary.accepted);
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("hue-readers: {why}");
            ExitCode::FAILURE
        }
    }
}
