//! The fuzz target's function on stable Rust: random bytes, captured frames (whole, cut at each length,
//! mutated), and all findings of the fuzzer. Nothing may panic; a panic prints the seed of the mutations.

use crate::common::{Random, captures, config};
use hue_wire::exercise::exercise;
use proptest::prelude::*;

/// The first frames of a capture, cut at each of their lengths. Other frames are cut only within
/// [`HEAD_BYTES`].
const CUT_WHOLE: usize = 5;
const HEAD_BYTES: usize = 120;

/// EtherType and first bytes of IPv4, IPv4 with options, IPv6, IPv6 with a fragment header, and ARP.
const STARTS: &[&[u8]] = &[
    &[0x08, 0x00, 0x45, 0, 0, 60],
    &[0x08, 0x00, 0x46, 0, 0, 40],
    &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 0],
    &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 64, 44],
    &[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1],
];

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn random_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&mut bytes);
    }

    /// Random bytes after a valid start, to reach inner headers.
    #[test]
    fn random_bytes_after_a_likely_start(
        start in prop::sample::select(STARTS),
        rest in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(4), Just(17), Just(0x45)], 0..200),
    ) {
        let mut bytes = [&[2; 12][..], start, &rest].concat();
        exercise(&mut bytes);
    }
}

#[test]
fn captures_whole_and_cut_at_each_length() {
    let mut frames = 0u64;
    for capture in captures() {
        for (at, frame) in capture.frames.iter().enumerate() {
            exercise(&mut frame.clone());
            let cuts = if at < CUT_WHOLE { frame.len() } else { frame.len().min(HEAD_BYTES) };
            // One frame in eight: adjacent frames of a capture have similar headers.
            if at < CUT_WHOLE || at % 8 == 0 {
                for cut in 0..cuts {
                    exercise(&mut frame[..cut].to_vec());
                }
            }
            frames += 1;
        }
    }
    println!("{frames} frames");
}

#[test]
fn captures_mutated() {
    for capture in captures() {
        for (at, frame) in capture.frames.iter().enumerate() {
            let seed = 0x9e37_79b9_7f4a_7c15 ^ at as u64;
            let mut random = Random(seed);
            for round in 0..4 {
                let mut bytes = frame.clone();
                random.mutate(&mut bytes);
                let mut copy = bytes.clone();
                let outcome = std::panic::catch_unwind(move || exercise(&mut copy));
                assert!(
                    outcome.is_ok(),
                    "{} frame {at}, seed {seed}, round {round}: {bytes:02x?}",
                    capture.name
                );
            }
        }
    }
}

/// Findings of the fuzzer: `spec/vectors/wire/*`, raw bytes.
#[test]
fn fuzzer_findings_stay_fixed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/wire");
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        exercise(&mut std::fs::read(&path).expect("a readable file"));
    }
}

/// The same bytes give the same digest, and every byte of a payload changes it: reads are not optimised away.
#[test]
fn the_exercise_is_itself_checked() {
    let frame = [&[2; 12][..], &[0x12, 0x34], &[7; 40]].concat();
    let digest = |frame: &[u8]| exercise(&mut frame.to_vec());
    assert_eq!(digest(&frame), digest(&frame));
    for at in 0..frame.len() {
        let mut other = frame.clone();
        other[at] ^= 1;
        assert_ne!(digest(&frame), digest(&other), "byte {at}");
    }
}
