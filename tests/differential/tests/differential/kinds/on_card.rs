//! On the card: what left, and the counters, as for each case alone in the engine.

use std::collections::BTreeSet;

use hue_card::{Card, CardError, Image, Way};
use hue_differential::{Case, Random, Together, card, first_seed, image, is_for_cards, offered, pieces};
use hue_planes::Reason;

use super::engine::{Deeds, Departure, To, alone};
use super::{difference, let_in, of_case};

/// Ports of a card.
const CARD_PORTS: u8 = 4;

/// Compares what cases do on a card with this world with what each does alone in the engine.
fn compare_card(image: &Image, cases: &[&Case], alone: &[&Deeds], world: &Together) -> Result<(), String> {
    let mut card = card(image, &world.programs);
    let mut left: Vec<Vec<Departure>> = vec![Vec::new(); cases.len()];
    let mut strays = Vec::new();
    let sent = card.run(&offered(&world.frames), |sent| match world.of[sent.frame] {
        Some((case, frame)) => {
            let to = match sent.way {
                Way::Port(port) => To::Port(world.port(case, port)),
                Way::Control { vid, vport, outcome } => {
                    To::Control(world.network(case, vid), vport, outcome.map_or(0, Reason::code))
                }
            };
            left[case].push((frame, to, sent.bytes.to_vec()));
        }
        None => strays.push(format!("at a free port: {:?}", sent.way)),
    });
    sent.map_err(|error| error.to_string())?;
    if let Some(stray) = strays.into_iter().next() {
        return Err(stray);
    }
    for (at, ((case, alone), mut left)) in cases.iter().zip(alone).zip(left).enumerate() {
        left.sort();
        if let Some(found) = difference(&alone.departures(), &left) {
            return Err(of_case(case, &found));
        }
        for (network, vid) in world.vids(at).iter().enumerate() {
            let text = |error: CardError| error.to_string();
            let wanted = (alone.counters[network], alone.bytes(network));
            let found = (card.read_counters(*vid).map_err(text)?, card.read_bytes(*vid).map_err(text)?);
            if found != (Some(wanted.0), Some(wanted.1)) {
                return Err(of_case(case, &format!("alone {wanted:?}\namong others {found:?}")));
            }
            // Of kinds that flood.
            let copies = card.read_copies(*vid).map_err(text)?;
            let wanted = alone.copies(case, network);
            if copies.unwrap_or(0) != wanted {
                return Err(of_case(case, &format!("alone {wanted} copies, among others {copies:?}")));
            }
        }
    }
    let free = world.of.iter().filter(|of| of.is_none()).count();
    let wanted = free + alone.iter().map(|deeds| deeds.unclaimed.len()).sum::<usize>();
    let counted = card.read_unclaimed().map_err(|error| error.to_string())?;
    match counted.total() == wanted as u64 {
        true => Ok(()),
        false => Err(format!("{wanted} frames belong to nobody, counted {counted:?}")),
    }
}

/// Pieces for the ports of a card, several kinds beside each other.
fn worlds<'a>(random: &mut Random, pieces: &'a [Case]) -> Vec<Vec<&'a Case>> {
    let mut left: Vec<&Case> = pieces.iter().collect();
    let mut worlds: Vec<Vec<&Case>> = Vec::new();
    while !left.is_empty() {
        let (mut world, mut ports): (Vec<&Case>, u8) = (Vec::new(), 0);
        loop {
            let fit = (0..left.len()).filter(|at| ports + left[*at].ports <= CARD_PORTS);
            let fit: Vec<usize> = fit.collect();
            let new = fit.iter().filter(|at| world.iter().all(|other| other.kind != left[**at].kind));
            let new: Vec<usize> = new.copied().collect();
            let choice = if new.is_empty() { fit } else { new };
            if choice.is_empty() {
                break;
            }
            let case = left.swap_remove(random.pick(&choice));
            ports += case.ports;
            world.push(case);
        }
        worlds.push(world);
    }
    worlds
}

fn on_card(name: &str, seeds: u64) {
    let image = image(name);
    let kinds = Card::new(image.start().unwrap()).unwrap().description().kinds.clone();
    let for_cards = |case: &Case| case.programs.iter().all(is_for_cards);
    let pieces: Vec<Case> = kinds.iter().copied().flat_map(pieces).filter(for_cards).collect();
    let alone: Vec<Deeds> = pieces.iter().map(alone).collect();
    let of = |case: &Case| {
        let at = pieces.iter().position(|piece| std::ptr::eq(piece, case)).unwrap();
        &alone[at]
    };
    for seed in first_seed()..first_seed() + seeds {
        let mut random = Random::new(seed);
        let mut beside_others = BTreeSet::new();
        for cases in worlds(&mut random, &pieces) {
            let free = CARD_PORTS - cases.iter().map(|case| case.ports).sum::<u8>();
            let world = Together::new(&mut random, &cases, free);
            let alone: Vec<&Deeds> = cases.iter().map(|case| of(case)).collect();
            let same = compare_card(&image, &cases, &alone, &world);
            same.unwrap_or_else(|why| panic!("image {name}, seed {seed}: {why}"));
            if cases.iter().any(|case| case.kind != cases[0].kind) {
                beside_others.extend(cases.iter().map(|case| case.kind.name()));
            }
        }
        assert_eq!(beside_others.len(), kinds.len(), "{name}: {beside_others:?}");
    }
    // It must find frames that reach other networks.
    let two: Vec<&Case> = worlds(&mut Random::new(1), &pieces).swap_remove(0);
    let mut world = Together::new(&mut Random::new(1), &two, 0);
    let_in(&mut world, 0, 1);
    let alone: Vec<&Deeds> = two.iter().map(|case| of(case)).collect();
    let found = compare_card(&image, &two, &alone, &world);
    assert!(found.is_err(), "{name}: not found: a network on another's port");
}

/// One test for each image, so that they run in parallel.
mod a_network_does_the_same_among_others {
    fn seeds() -> u64 {
        if hue_differential::full() { 20 } else { 1 }
    }

    #[test]
    fn with_external_memories() {
        super::on_card("sram", seeds());
    }

    #[test]
    fn with_on_chip_memories() {
        super::on_card("kinds", seeds());
    }
}
