//! Bugs that are planted are found: what checks histories is itself checked.

use hue_differential::images_alone;
use hue_sim::{IMAGES, play};
use hue_substrate::planted::{Bug, plant};

/// Bugs that show within the first histories, and those that only rare histories show.
const EARLY: [Bug; 5] = [Bug::NoFence, Bug::HoldStays, Bug::NetStays, Bug::WrongNetwork, Bug::NoMirror];
// Software forwards what a card without the table hands on, so that `RowFirst` shows by order only.
const LATE: [Bug; 6] =
    [Bug::SeatForgotten, Bug::BypassEarly, Bug::RowFirst, Bug::AnswerEarly, Bug::ByName, Bug::NotReserved];

fn found_within(bugs: &[Bug], seeds_max: u64) {
    let images = images_alone(&IMAGES);
    let mut missed = Vec::new();
    for &bug in bugs {
        plant(Some(bug));
        let found = (1..=seeds_max).find_map(|seed| play(&images, seed).err());
        plant(None);
        match found {
            Some(failure) => {
                let what: String = failure.what.lines().flat_map(str::chars).take(100).collect();
                println!("{bug:?} is found in history {}: {what}", failure.seed);
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found in {seeds_max} histories: {missed:?}");
}

#[test]
fn a_planted_bug_is_found() {
    assert_eq!(EARLY.len() + LATE.len(), Bug::ALL.len(), "every bug is in a list");
    found_within(&EARLY, 10);
}

#[test]
#[ignore = "long: make test-full"]
fn a_planted_bug_that_shows_late_is_found() {
    found_within(&LATE, 150);
}
