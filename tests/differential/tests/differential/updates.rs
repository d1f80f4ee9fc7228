//! Networks that change while frames flow through the twin.

use hue_card::{Card, Layout};
use hue_differential::{
    Random, card, compare_updates, first_seed, fit_banks, frames, full, group, image, mixed, mutated,
};
use hue_planes::Settings;
use hue_tables::dir::DirLimits;

/// Frames of an experiment.
const FRAMES: usize = 1000;

/// One experiment on an image; a difference is an error.
fn experiment(image: &hue_card::Image, seed: u64) -> Result<hue_differential::Seen, String> {
    const ROUTES: usize = 28;
    let mut random = Random::new(seed);
    let of = Card::new(image.start().unwrap()).unwrap().description().clone();
    // Networks that learn have no routes, and which frames they flood depends on when they have learnt.
    let kinds: Vec<_> =
        of.kinds.iter().copied().filter(|kind| Settings::of(*kind).learning().is_none()).collect();
    let mut programs = mixed(&mut random, &kinds, 3, ROUTES);
    if of.group_slots > 0 {
        group(&mut random, &mut programs);
    }
    if of.layout == Layout::Dir {
        // With spare room: if there is no room beside the old words, packets may find no route for a while.
        fit_banks(&mut programs, false, DirLimits { sets: 40, cam_rows: 12 });
    }
    // A meter's state would depend on when a change was made.
    programs.iter_mut().for_each(|program| program.rate_limit = None);
    let frames = frames(&mut random, &programs, FRAMES);
    let mut card = card(image, &programs);
    // Frames are spread over all changes, with a little back-pressure.
    assert!(card.twin().set_stress(seed, 200, 40));
    compare_updates(&mut card, &mut programs, &frames, &mut random, ROUTES)
}

#[test]
fn frames_meet_the_old_network_or_the_new_one() {
    for name in ["tcam3", "default", "sram", "dir"] {
        let image = image(name);
        let seeds = match name {
            _ if full() => 60,
            _ => 1,
        };
        let (mut changes, mut changed) = (0, 0);
        for seed in (first_seed()..).take(seeds) {
            match experiment(&image, seed) {
                Ok(seen) => {
                    println!("{name}, seed {seed}: {seen:?}");
                    (changes, changed) = (changes + seen.changes, changed + seen.changed);
                    // The other networks wait for a part of this time, during holds. With layout dir they wait only for a new
                    // program with other next hops.
                    assert!(seen.clocks_max < if name == "dir" { 600_000 } else { 30_000 });
                }
                Err(difference) => panic!("image {name}, seed {seed}: {difference}"),
            }
        }
        // Some networks have little that changes: this is about all of them.
        assert!(
            changes > 5 * seeds && changed > seeds * FRAMES / 20,
            "{name}: {changes} changes, {changed} frames"
        );
    }
}

/// A card that ignores holds: some frames see half of a change.
#[test]
#[ignore = "a planted bug: make test-full"]
fn a_hold_that_does_not_hold_is_found() {
    let image = mutated("updates", "tcam3", "card/hue_regs.sv", "hold_d.clocks != '0", "1'b0");
    assert!((0..20).any(|seed| experiment(&image, seed).is_err()));
}
