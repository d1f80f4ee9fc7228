//! Planted bugs are found: a test of the checks of histories.

use hue_sim::{DRAINED_SEEDS, LIMITED_SEEDS, Sets, is_mixed, is_shared, is_sourced, is_switched, play};
use hue_substrate::planted::{Bug, plant};

/// Bugs that are found within the first histories, and (`LATE`) those that only rare histories find.
const EARLY: [Bug; 5] = [Bug::NoFence, Bug::HoldStays, Bug::NetStays, Bug::WrongNetwork, Bug::NoMirror];
// Software forwards frames that a card without the table passes on, so `RowFirst` is noticed only by the order of frames.
const LATE: [Bug; 4] = [Bug::SeatForgotten, Bug::BypassEarly, Bug::RowFirst, Bug::AnswerEarly];
/// Bugs that are found only if networks have rate limits.
const LIMITED: [Bug; 1] = [Bug::DebtsStay];
/// Bugs that are found only if networks have groups of next hops.
const SHARED: [Bug; 1] = [Bug::SlotsStay];
/// Bugs that are found only if the card is drained.
const DRAINED: [Bug; 1] = [Bug::DrainForgotten];
/// Bugs that are found only on a crowded card, by [`crate::crowded`].
const CROWDED: [Bug; 2] = [Bug::ByName, Bug::NotReserved];
/// Bugs that are found only if there is a switch.
const SWITCHED: [Bug; 1] = [Bug::AddressesStay];
/// Bugs of the engine, which [`crate::kinds`] finds.
const ENGINE: [Bug; 1] = [Bug::KindIgnored];

/// Bugs of updates, which the differential test of their contract finds.
const UPDATES: [Bug; 2] = [Bug::RowsStay, Bug::OneWidth];
/// Bugs that are found only if networks have routes by source.
const SOURCED: [Bug; 1] = [Bug::PoliciesStay];

fn found_within(bugs: &[Bug], seeds_max: u64) {
    found_in(bugs, &(1..=seeds_max).collect::<Vec<u64>>());
}

fn found_in(bugs: &[Bug], seeds: &[u64]) {
    let images = Sets::default();
    let mut missed = Vec::new();
    for &bug in bugs {
        plant(Some(bug));
        let found = seeds.iter().find_map(|seed| play(&images, *seed).err());
        plant(None);
        match found {
            Some(failure) => {
                let what: String = failure.what.lines().flat_map(str::chars).take(100).collect();
                println!("{bug:?} is found in history {}: {what}", failure.seed);
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found in {} histories: {missed:?}", seeds.len());
}

#[test]
fn a_planted_bug_is_found() {
    let listed: Vec<Bug> =
        [&EARLY[..], &LATE, &LIMITED, &SHARED, &DRAINED, &CROWDED, &SWITCHED, &ENGINE, &UPDATES, &SOURCED]
            .concat();
    assert!(Bug::ALL.iter().all(|bug| listed.contains(bug)), "not every bug is in a list: {listed:?}");
    found_within(&EARLY, 10);
}

#[test]
#[ignore = "long: make test-full"]
fn a_planted_bug_is_found_with_both_families() {
    found_in(&EARLY, &(1..=100).filter(|seed| is_mixed(*seed)).collect::<Vec<u64>>());
}

#[test]
fn rate_limits_that_restart_are_found() {
    found_in(&LIMITED, &(1..=40).map(|nth| nth * LIMITED_SEEDS).collect::<Vec<u64>>());
}

#[test]
fn groups_that_keep_their_slots_are_found() {
    found_in(&SHARED, &(1..=300).filter(|seed| is_shared(*seed)).collect::<Vec<u64>>());
}

#[test]
fn routes_by_source_that_stay_are_found() {
    found_in(&SOURCED, &(1..=300).filter(|seed| is_sourced(*seed)).collect::<Vec<u64>>());
}

#[test]
fn what_a_switch_knows_and_does_not_take_along_is_found() {
    found_in(&SWITCHED, &(1..=100).filter(|seed| is_switched(*seed)).collect::<Vec<u64>>());
}

#[test]
fn a_drained_card_that_networks_return_to_is_found() {
    found_in(&DRAINED, &(1..=10).map(|nth| nth * DRAINED_SEEDS).collect::<Vec<u64>>());
}

#[test]
#[ignore = "long: make test-full"]
fn a_planted_bug_that_shows_late_is_found() {
    found_within(&LATE, 150);
}
