//! The greedy scheduler.
//!
//! Packs networks into software, those of the lowest throughput first. A network that no core can serve goes
//! to the card if there is room. The result is compared with the current placement plus the new networks,
//! because moves must be worth their cost: all together, and each of them.
//! Source: Unnikrishnan §4.1: "The scheduler attempts to greedily pack low-throughput virtual networks into OpenVZ
//! containers. If a network cannot be executed in a software plane due to bandwidth limitations, it is assigned to a
//! hardware plane."

use super::capacity::{CardRoom, fixed};
use super::serve::{Choice, Cores, by_need, serve};
use super::{Demand, Side, Site};

/// Computes the schedule.
pub fn greedy(site: &Site, demands: &[&Demand]) -> Choice {
    let (sides, room) = fixed(site, demands);
    let anew = serve(site, demands, &fill(site, demands, sides.clone(), room.clone()));
    let kept = serve(site, demands, &keep_places(site, demands, sides, room));
    // If both are equally good, nothing moves.
    if anew.value(site, demands) > kept.value(site, demands) { stay(site, demands, anew) } else { kept }
}

/// Cancels moves that gain nothing: a network stays in place if its move makes no room for another.
fn stay(site: &Site, demands: &[&Demand], mut best: Choice) -> Choice {
    let (given, room) = fixed(site, demands);
    for at in by_need(demands) {
        let Some(now) = demands[at].now.filter(|now| given[at].is_none() && *now != best.sides[at]) else {
            continue;
        };
        let mut sides = best.sides.clone();
        sides[at] = now;
        let mut room = room.clone();
        let free = (0..demands.len()).filter(|one| given[*one].is_none() && sides[*one] == Side::Card);
        if !free.into_iter().all(|one| room.take_if(demands[one])) {
            continue;
        }
        let choice = serve(site, demands, &sides);
        if choice.value(site, demands) >= best.value(site, demands) {
            best = choice;
        }
    }
    best
}

/// Leaves networks in place as far as possible, and puts new networks into the remaining capacity.
pub fn keep_places(
    site: &Site,
    demands: &[&Demand],
    mut sides: Vec<Option<Side>>,
    mut room: CardRoom<'_>,
) -> Vec<Side> {
    for at in by_need(demands) {
        if sides[at].is_none() {
            sides[at] = match demands[at].now {
                Some(Side::Card) if room.take_if(demands[at]) => Some(Side::Card),
                Some(_) => Some(Side::Soft),
                None => None,
            };
        }
    }
    fill(site, demands, sides, room)
}

/// Assigns a place to the networks without one.
fn fill(site: &Site, demands: &[&Demand], mut sides: Vec<Option<Side>>, mut room: CardRoom<'_>) -> Vec<Side> {
    let order = by_need(demands);
    let mut cores = Cores::new(site);
    let mut card_left = site.card.as_ref().map_or(0, |card| card.bps);
    for at in order.iter().copied() {
        match sides[at] {
            Some(Side::Card) => card_left = card_left.saturating_sub(demands[at].bandwidth_bps),
            Some(Side::Soft) => {
                let bps = demands[at].bandwidth_bps;
                cores.take(cores.fitting(bps).unwrap_or_else(|| cores.emptiest()), bps);
            }
            None => {}
        }
    }
    for at in order {
        if sides[at].is_some() {
            continue;
        }
        let bps = demands[at].bandwidth_bps;
        let side = match cores.fitting(bps) {
            Some(_) => Side::Soft,
            None if bps.min(card_left) > cores.most() && room.take_if(demands[at]) => Side::Card,
            None => Side::Soft,
        };
        match side {
            Side::Card => card_left = card_left.saturating_sub(bps),
            Side::Soft => cores.take(cores.fitting(bps).unwrap_or_else(|| cores.emptiest()), bps),
        }
        sides[at] = Some(side);
    }
    sides.into_iter().map(|side| side.unwrap_or(Side::Soft)).collect()
}
