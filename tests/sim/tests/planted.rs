//! Bugs that are planted are found: what checks histories is itself checked.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use hue_differential::images;
use hue_sim::{IMAGES, play};
use hue_substrate::planted::{Bug, plant};

/// Histories within which each bug must show.
const SEEDS_MAX: u64 = 150;

#[test]
fn a_planted_bug_is_found() {
    let images = images(&IMAGES);
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        plant(Some(bug));
        let found = (1..=SEEDS_MAX).find_map(|seed| play(&images, seed).err());
        plant(None);
        match found {
            Some(failure) => {
                let what: String = failure.what.lines().flat_map(str::chars).take(100).collect();
                println!("{bug:?} is found in history {}: {what}", failure.seed);
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found in {SEEDS_MAX} histories: {missed:?}");
}
