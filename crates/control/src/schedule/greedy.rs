//! The greedy scheduler.
//!
//! Networks of low throughput are packed into software, the least first; one that no core can serve goes to the card, if
//! it has room. Beside that everything as it is now, with new networks fitted in, is looked at: moves must be worth their
//! cost.
//! Source: Unnikrishnan §4.1: "The scheduler attempts to greedily pack low-throughput virtual networks into OpenVZ
//! containers. If a network cannot be executed in a software plane due to bandwidth limitations, it is assigned to a
//! hardware plane."

use super::capacity::{CardRoom, fixed};
use super::serve::{Choice, Cores, by_need, serve};
use super::{Demand, Side, Site};

/// Where networks are to run.
pub fn greedy(site: &Site, demands: &[&Demand]) -> Choice {
    let (sides, room) = fixed(site, demands);
    let anew = serve(site, demands, &fill(site, demands, sides.clone(), room.clone()));
    let kept = serve(site, demands, &kept(site, demands, sides, room));
    // What is as good stays.
    if anew.value(site, demands) > kept.value(site, demands) { anew } else { kept }
}

/// Everything where it is, as far as that is possible; new networks in what is left.
pub fn kept(
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

/// Gives a place to those that have none.
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
