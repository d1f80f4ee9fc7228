//! A process that reads one damaged input after the other, and the one that watches it.
//!
//! Before each input the worker stores it, and sets its limits: the kernel ends the process when it has used its processor
//! time (`RLIMIT_CPU`), the allocator refuses memory above the limit, which ends it too. So the stored input is the find.

use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cap::Cap;
use hue_testdata::Random;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::signal::Signal;

use crate::mutate::mutate;
use crate::readers::{Read, Reader};

/// Allocator of a worker.
pub type Allocator = Cap<std::alloc::System>;

/// Exit codes of a worker that found something itself.
const PANICKED: i32 = 81;
const LEAKED: i32 = 82;
/// The same input is read this often to see whether it takes more memory each time.
const AGAIN: usize = 4;

/// Limits of one input.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Processor time of all threads, in whole seconds. Each reader has its own limit of memory.
    pub cpu_seconds: u64,
}

impl Default for Limits {
    /// For inputs of at most 64 KiB, read by a program without optimisation.
    fn default() -> Self {
        Self { cpu_seconds: 4 }
    }
}

/// A run without finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Inputs read.
    pub inputs: u64,
    /// Bytes of these inputs.
    pub bytes: u64,
    /// Inputs with which nothing was wrong.
    pub accepted: u64,
}

/// What was found, and with which input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Find {
    /// `panic`, `time`, `memory`, `leak`, or what else ended the process.
    pub kind: String,
    /// The input, for `hue-readers replay`.
    pub input: PathBuf,
    /// End of what the worker said.
    pub said: String,
}

impl fmt::Display for Find {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}; the input is {}\n{}", self.kind, self.input.display(), self.said)
    }
}

/// Reads `inputs` inputs in a worker, which `program` is, and keeps the input of a find in `finds`.
///
/// # Errors
/// The first find.
///
/// # Panics
/// When the worker cannot be started, or a file not be written.
pub fn fuzz(
    program: &Path,
    reader: &Reader,
    (seed, inputs): (u64, u64),
    limits: Limits,
    finds: &Path,
) -> Result<Summary, Find> {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path().join("current");
    let mut command = Command::new(program);
    command.args(["work", reader.name, "--seed", &seed.to_string(), "--inputs", &inputs.to_string()]);
    command.args(["--cpu-seconds", &limits.cpu_seconds.to_string()]);
    command.arg("--current").arg(&current);
    let output = command.env("TMPDIR", folder.path()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |at: usize| text.split_whitespace().nth(at).and_then(|word| word.parse().ok()).unwrap();
        return Ok(Summary { inputs: number(0), bytes: number(1), accepted: number(2) });
    }
    let kind = match (output.status.code(), output.status.signal()) {
        (Some(PANICKED), _) => "panic".to_owned(),
        (Some(LEAKED), _) => "leak".to_owned(),
        (_, Some(signal)) if signal == Signal::SIGXCPU as i32 => "time".to_owned(),
        (_, Some(signal)) if signal == Signal::SIGABRT as i32 && said.contains("memory allocation of") => {
            "memory".to_owned()
        }
        _ => output.status.to_string(),
    };
    fs::create_dir_all(finds).unwrap();
    let input = finds.join(format!("{}-{kind}-{seed}", reader.name));
    let _ = fs::copy(&current, &input);
    let tail = said.len().saturating_sub(2_000);
    let said = said.get(tail..).unwrap_or(&said).to_owned();
    Err(Find { kind, input, said })
}

/// The worker: reads inputs until there is a find, which ends the process.
///
/// # Panics
/// When a file cannot be written.
pub fn work(
    reader: &Reader,
    (seed, inputs): (u64, u64),
    limits: Limits,
    allocator: &Allocator,
    current: &Path,
) -> Summary {
    let samples = (reader.samples)();
    let mut read = (reader.start)();
    // What is made once, at the first use, is no leak.
    samples.iter().for_each(|sample| _ = read(sample));
    let mut random = Random::new(seed);
    let current = Some(current);
    let (mut bytes, mut accepted) = (0, 0);
    for number in 0..inputs {
        let input = mutate(&samples, reader.words, &mut random);
        bytes += input.len() as u64;
        accepted += u64::from(one(reader, &mut read, &input, limits, allocator, current, number));
    }
    Summary { inputs, bytes, accepted }
}

/// Reads one input again, with the same limits. Returns whether it was accepted; a find ends the process.
///
/// # Panics
/// When the limits cannot be set.
pub fn replay(reader: &Reader, input: &[u8], limits: Limits, allocator: &Allocator) -> bool {
    let mut read = (reader.start)();
    (reader.samples)().iter().for_each(|sample| _ = read(sample));
    one(reader, &mut read, input, limits, allocator, None, 0)
}

fn one(
    reader: &Reader,
    read: &mut Read,
    input: &[u8],
    limits: Limits,
    allocator: &Allocator,
    current: Option<&Path>,
    number: u64,
) -> bool {
    if let Some(current) = current {
        fs::write(current, input).unwrap();
    }
    let before = allocator.allocated();
    allocator.set_limit(before + (reader.memory_mib << 20)).unwrap();
    let (_, hard) = getrlimit(Resource::RLIMIT_CPU).unwrap();
    // The limit is of the whole process, in whole seconds.
    setrlimit(Resource::RLIMIT_CPU, cpu_ms() / 1_000 + 1 + limits.cpu_seconds, hard).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| read(input)));
    let panicked = outcome.is_err();
    let after = allocator.allocated();
    // Memory may have gone to something that lives on, such as a larger buffer: only what grows each time is lost.
    let leaks = !panicked && reader.returns_memory && after > before && {
        let mut held = after;
        (0..AGAIN).all(|_| {
            read(input);
            let more = allocator.allocated() > held;
            held = allocator.allocated();
            more
        })
    };
    setrlimit(Resource::RLIMIT_CPU, hard, hard).unwrap();
    allocator.set_limit(usize::MAX).unwrap();
    if panicked {
        eprintln!("{}: panic at input {number}", reader.name);
        std::process::exit(PANICKED);
    }
    if leaks {
        eprintln!("{}: input {number} takes more memory each time", reader.name);
        std::process::exit(LEAKED);
    }
    outcome.unwrap_or(false)
}

/// Processor time of this process so far, in milliseconds.
///
/// # Panics
/// Never: the system always knows it.
#[must_use]
pub fn cpu_ms() -> u64 {
    cpu_us() / 1_000
}

/// The same in microseconds.
pub(crate) fn cpu_us() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let us = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    us(usage.user_time()) + us(usage.system_time())
}
