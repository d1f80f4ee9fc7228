//! Damaged inputs for every reader, and its work on long ones. `HUEPLANE_FULL=1` reads a hundred times as many,
//! and measures longer ones.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::{Path, PathBuf};
use std::process::Command;

use hue_readers::{Limits, PLANTED, READERS, fuzz, reader};

/// The worker's program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_hue-readers");
/// Inputs of each reader in a short run, and of one that takes milliseconds for an input.
const INPUTS: u64 = 400;
const INPUTS_SLOW: u64 = 100;
/// A long run has so many seeds.
const SEEDS: u64 = 100;

fn finds() -> PathBuf {
    hue_testdata::target().join("finds")
}

#[test]
fn damaged_inputs_are_refused_in_bounded_time_and_memory() {
    let seeds = if hue_testdata::full() { SEEDS } else { 1 };
    for reader in READERS {
        let inputs = if ["copy", "requests"].contains(&reader.name) { INPUTS_SLOW } else { INPUTS };
        for seed in 1..=seeds {
            let done = fuzz(Path::new(PROGRAM), reader, (seed, inputs), Limits::default(), &finds());
            let done = done.unwrap_or_else(|find| panic!("{}, seed {seed}: {find}", reader.name));
            assert_eq!(done.inputs, inputs, "{}", reader.name);
        }
    }
}

#[test]
fn a_fault_of_each_kind_is_found_and_its_input_shows_it_again() {
    for kind in ["panic", "time", "memory", "leak"] {
        let planted = reader(&format!("planted-{kind}")).unwrap();
        let limits = Limits { cpu_seconds: 1 };
        let folder = tempfile::tempdir().unwrap();
        let find = fuzz(Path::new(PROGRAM), planted, (1, 500), limits, folder.path()).unwrap_err();
        assert_eq!(find.kind, kind, "{find}");
        assert!(std::fs::read(&find.input).unwrap().contains(&b'!'), "{find}");
        let again = Command::new(PROGRAM)
            .args(["replay", "--cpu-seconds", "1", planted.name])
            .arg(&find.input)
            .output()
            .unwrap();
        assert!(!again.status.success(), "{again:?}");
    }
    assert_eq!(PLANTED.len(), 5);
}

#[test]
fn work_grows_with_the_input_only_and_a_planted_quadratic_reader_is_found() {
    // In a process without other tests, whose processor time would count too.
    let grown = |names: &[&str]| {
        let least_ms = if hue_testdata::full() { "250" } else { "4" };
        Command::new(PROGRAM).args(["growth", "--least-ms", least_ms]).args(names).output().unwrap()
    };
    let found = grown(&["planted-quadratic"]);
    assert!(!found.status.success(), "{found:?}");
    // A busy machine may disturb a measurement; work that grows too fast does so each time.
    let all = (0..3).map(|_| grown(&[])).find(|all| all.status.success()).unwrap_or_else(|| grown(&[]));
    assert!(
        all.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&all.stdout),
        String::from_utf8_lossy(&all.stderr)
    );
}

#[test]
fn whole_samples_are_accepted() {
    for reader in READERS {
        let mut read = (reader.start)();
        let samples = (reader.samples)();
        for (number, sample) in samples.iter().enumerate() {
            // Some requests have nothing to act on.
            let unfit = reader.name == "requests" && number >= 7;
            assert!(read(sample) || unfit, "{}: sample {number}", reader.name);
        }
    }
}
