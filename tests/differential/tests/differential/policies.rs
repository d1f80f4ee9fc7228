//! Networks that route by source on the card, in images that have tables for it: each frame must get what the software engine
//! gives it, also after changes of policies, routes, groups and next hops, while they are made, and after moves.

use hue_card::{Card, Image, Twin};
use hue_differential::{
    Random, Step, card, changed, compare, compare_on, compare_updates, decided, first_seed, frames, full,
    group, image, mixed, mutated, route_by,
};
use hue_planes::Kind;
use hue_substrate::planted::{Bug, plant};
use hue_substrate::{Program, Substrate, SubstrateError};

/// The image with tables of policies.
const IMAGE: &str = "kinds";
/// Frames of an experiment.
const FRAMES: usize = 400;
/// Routes of a network.
const ROUTES: usize = 28;
/// Rows of next hops that networks use, so that some are left for changes.
const ROWS: usize = 3000;

/// Networks of all kinds in `kinds`, of which some route by source.
fn world(random: &mut Random, kinds: &[Kind], count: usize) -> Vec<Program> {
    let mut programs = mixed(random, kinds, count, ROUTES);
    group(random, &mut programs);
    route_by(random, &mut programs, ROWS);
    programs
}

const ROUTED: [Kind; 3] = [Kind::Ipv4, Kind::Ipv6, Kind::Dual];

/// Fresh cards, with all kinds of networks beside each other.
#[test]
fn random_policies_agree() {
    let image = image(IMAGE);
    let (mut all, mut by_policy) = (0, 0);
    let seeds = if full() { 300 } else { 12 };
    for seed in (first_seed()..).take(seeds) {
        let mut random = Random::new(seed);
        let kinds = if random.chance(30) { &Kind::ALL[..] } else { &ROUTED[..2] };
        let count = 1 + random.below(4);
        let programs = world(&mut random, kinds, count);
        let frames = frames(&mut random, &programs, FRAMES);
        if let Err(difference) = compare(&image, &programs, &frames, seed) {
            panic!("seed {seed}: {difference}");
        }
        (all, by_policy) = (all + frames.len(), by_policy + decided(&programs, &frames));
    }
    // Otherwise this says nothing.
    assert!(first_seed() != 0 || by_policy > all / 40, "{by_policy} of {all} frames");
}

/// Changes networks on a card in as many steps, without frames. Those for which there is no room change nothing.
fn change(random: &mut Random, card: &mut Card<Twin>, programs: &mut [Program], steps: usize) {
    for _ in 0..steps {
        let step = Step::random(random, programs, ROUTES);
        match step.apply(card) {
            Err(SubstrateError::Room { .. }) => continue,
            done => done.unwrap(),
        }
        step.follow(programs);
    }
}

/// Policies, routes, groups and next hops change, networks go to software and back, and all leave and come again.
#[test]
fn changed_and_moved_networks_agree() {
    let image = image(IMAGE);
    let (seeds, mut ended) = (if full() { 200 } else { 10 }, 0);
    'seeds: for seed in (first_seed()..).take(seeds) {
        let mut random = Random::new(seed);
        let mut programs = world(&mut random, &ROUTED, 3);
        let mut card = card(&image, &programs);
        change(&mut random, &mut card, &mut programs, 12);
        for program in &mut programs {
            if program.policies.is_some() && random.chance(60) {
                let policies = changed(&mut random, program);
                let before = program.policies.replace(policies);
                match card.load(std::slice::from_ref(program)) {
                    // Its rows of next hops find no room beside those that it has: nothing changes.
                    Err(SubstrateError::Room { .. }) => program.policies = before,
                    done => done.unwrap(),
                }
            }
            let vid = program.vid;
            let mut back = Ok(());
            match random.below(4) {
                0 => {
                    card.steer(vid, true).unwrap();
                    card.steer(vid, false).unwrap();
                }
                1 => {
                    let software = card.load_in_software(std::slice::from_ref(program));
                    back = software.and_then(|()| card.steer(vid, false));
                }
                2 => {
                    card.unload(&[vid]).unwrap();
                    back = card.load(std::slice::from_ref(program));
                }
                _ => {}
            }
            match back {
                // Too few free rows of next hops are together.
                Err(SubstrateError::Room { .. }) => {
                    ended += 1;
                    continue 'seeds;
                }
                done => done.unwrap(),
            }
        }
        change(&mut random, &mut card, &mut programs, 4);
        let frames = frames(&mut random, &programs, FRAMES);
        if let Err(difference) = compare_on(&mut card, &programs, &frames) {
            panic!("seed {seed}: {difference}");
        }
    }
    assert!(10 * ended <= seeds, "{ended} of {seeds} worlds ended for lack of room");
}

/// Each frame meets a network before a change or after it.
#[test]
fn frames_meet_the_old_policies_or_the_new_ones() {
    let image = image(IMAGE);
    let seeds = if full() { 100 } else { 3 };
    let (mut changes, mut seen) = (0, 0);
    for seed in (first_seed()..).take(seeds) {
        let mut random = Random::new(seed);
        let mut programs = world(&mut random, &ROUTED, 3);
        // A meter's state would depend on when a change was made.
        programs.iter_mut().for_each(|program| program.rate_limit = None);
        let frames = frames(&mut random, &programs, 1000);
        let mut card = card(&image, &programs);
        assert!(card.twin().set_stress(seed, 200, 40));
        match compare_updates(&mut card, &mut programs, &frames, &mut random, ROUTES) {
            Ok(found) => (changes, seen) = (changes + found.changes, seen + found.changed),
            Err(difference) => panic!("seed {seed}: {difference}"),
        }
    }
    assert!(changes > 5 * seeds && seen > 20 * seeds, "{changes} changes, {seen} frames");
}

/// Whether some world shows a difference.
fn is_found(image: &Image, seeds: u64) -> bool {
    (0..seeds).any(|seed| {
        let mut random = Random::new(seed);
        let mut programs = world(&mut random, &ROUTED[..2], 3);
        let mut card = card(image, &programs);
        for program in programs.iter_mut().filter(|program| program.policies.is_some()) {
            program.policies = Some(changed(&mut random, program));
            card.load(std::slice::from_ref(program)).unwrap();
        }
        let frames = frames(&mut random, &programs, FRAMES);
        compare_on(&mut card, &programs, &frames).is_err()
    })
}

#[test]
fn planted_bugs_of_policies_are_found() {
    let sound = image(IMAGE);
    assert!(!is_found(&sound, 2));
    plant(Some(Bug::PoliciesStay));
    let found = is_found(&sound, 20);
    plant(None);
    assert!(found, "{:?}", Bug::PoliciesStay);
    // The check that a place among the pairs is the network's own (PAIRS) makes no difference here, because the driver's tables name no
    // other. Its bench, whose tables are random, finds it.
    let bugs: &[&str] = match full() {
        true => &["FAMILY", "HALF", "LOCAL", "EQUAL"],
        false => &[],
    };
    for bug in bugs {
        let (from, to) =
            (format!("`ifdef HUE_PLANT_POLICIES_{bug}"), format!("`ifndef HUE_PLANT_POLICIES_{bug}"));
        let wrong = mutated("policies", IMAGE, "planes/hue_policies.sv", &from, &to);
        assert!(is_found(&wrong, 60), "{bug}");
    }
}
