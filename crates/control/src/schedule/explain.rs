//! Explains why each network has its place, and why it is not at the other.
//!
//! Flow: choice → **explain** → [`Schedule`]. Reasons are computed after the choice: each network is moved to
//! the other side, with everything else unchanged, and the effect of that is the reason.

use std::collections::BTreeMap;

use hue_intent::{Latency, Placement, SchedulerKind};

use super::capacity::{CardRoom, barred};
use super::serve::{Choice, serve};
use super::{Demand, Move, Schedule, Scheduled, Side, Site, Use};

/// Adds reasons to a choice.
pub fn schedule(
    site: &Site,
    demands: &[&Demand],
    choice: &Choice,
    scheduler: SchedulerKind,
    note: Option<String>,
) -> Schedule {
    let room = CardRoom::of(site, demands, &choice.sides);
    let networks: Vec<Scheduled> = (0..demands.len())
        .map(|at| {
            let demand = demands[at];
            let (why, why_not) = match choice.sides[at] {
                Side::Card => on_card(site, demands, choice, at),
                Side::Soft => in_software(site, demands, choice, &room, at),
            };
            Scheduled {
                name: demand.name.clone(),
                placement: demand.placement,
                latency: demand.latency,
                now: demand.now,
                side: choice.sides[at],
                core: choice.cores[at],
                needed_bps: demand.bandwidth_bps,
                served_bps: choice.served[at],
                why,
                why_not,
            }
        })
        .collect();
    let mut moves: Vec<Move> = networks.iter().filter_map(moved).collect();
    moves.sort_by_key(|one| one.from != Side::Card);
    let uses = uses(site, demands, choice, &room);
    Schedule { scheduler, note, networks, moves, uses, move_cost_bps: site.move_cost_bps }
}

fn moved(network: &Scheduled) -> Option<Move> {
    let from = network.now.filter(|now| *now != network.side)?;
    Some(Move { name: network.name.clone(), from, to: network.side, why: network.why.clone() })
}

/// The change of the served bandwidth if one network were on the other side.
fn gain(site: &Site, demands: &[&Demand], choice: &Choice, at: usize, side: Side) -> i128 {
    let mut sides = choice.sides.clone();
    sides[at] = side;
    i128::from(serve(site, demands, &sides).total()) - i128::from(choice.total())
}

fn on_card(site: &Site, demands: &[&Demand], choice: &Choice, at: usize) -> (String, String) {
    let demand = demands[at];
    let other = gain(site, demands, choice, at, Side::Soft);
    let why_not = match (demand.placement, demand.latency) {
        (Placement::Card, _) => "its document says card".to_owned(),
        (_, Latency::Low) => "it needs low latency".to_owned(),
        _ if other < 0 => format!("software would serve {} less", rate(other.unsigned_abs())),
        _ if demand.now == Some(Side::Card) => not_worth(site, other, "software"),
        _ => "software would serve no more".to_owned(),
    };
    let why = match (demand.placement, demand.latency) {
        (Placement::Card, _) => "its document says card".to_owned(),
        (_, Latency::Low) => "it needs low latency, and the card has room".to_owned(),
        _ if other < 0 => {
            let core = rate(site.soft.core_bps.into());
            format!(
                "its {} do not fit in software beside the other networks: a core has {core}",
                rate(demand.bandwidth_bps.into())
            )
        }
        _ if demand.now == Some(Side::Card) => "it already runs there, and no move is worthwhile".to_owned(),
        _ => format!("the card serves its {}", rate(demand.bandwidth_bps.into())),
    };
    (why, why_not)
}

fn in_software(
    site: &Site,
    demands: &[&Demand],
    choice: &Choice,
    room: &CardRoom<'_>,
    at: usize,
) -> (String, String) {
    let demand = demands[at];
    let (needed, served) = (demand.bandwidth_bps, choice.served[at]);
    let core = choice.cores[at].map_or_else(String::new, |core| format!("core {core} "));
    let why = match (barred(site, demand), needed) {
        (Some(super::Lack::Document), _) => "its document says soft".to_owned(),
        (_, 0) => "it needs no bandwidth".to_owned(),
        (_, _) if served == needed => format!("{core}serves its {}", rate(needed.into())),
        (_, _) => format!("{core}serves {} of its {}", rate(served.into()), rate(needed.into())),
    };
    if let Some(lack) = barred(site, demand).or_else(|| room.lacks(demand)) {
        return (why, lack.to_string());
    }
    let other = gain(site, demands, choice, at, Side::Card);
    let why_not = match demand.now {
        _ if other <= 0 => "the card would serve no more".to_owned(),
        Some(Side::Soft) => not_worth(site, other, "the card"),
        _ => format!("the card would serve {} more", rate(other.unsigned_abs())),
    };
    (why, why_not)
}

/// Why a network stays although the other side would serve more.
fn not_worth(site: &Site, gain: i128, other: &str) -> String {
    if gain <= 0 {
        return format!("{other} would serve no more");
    }
    let (gain, cost) = (rate(gain.unsigned_abs()), rate(site.move_cost_bps.into()));
    format!("{other} would serve {gain} more, but a move costs {cost}")
}

/// Usage of each capacity.
fn uses(site: &Site, demands: &[&Demand], choice: &Choice, room: &CardRoom<'_>) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut add = |what: String, used: u64, max: u64| uses.push(Use { what, used, max });
    for (what, used, max) in room.uses() {
        add(format!("card {what}"), used, max);
    }
    let of = |side: Side, core: Option<u16>| -> u64 {
        let there = (0..demands.len()).filter(|at| choice.sides[*at] == side && choice.cores[*at] == core);
        there.map(|at| choice.served[at]).sum()
    };
    if let Some(card) = &site.card {
        add("card bit/s".to_owned(), of(Side::Card, None), card.bps);
    }
    for core in 0..site.soft.cores.max(1) {
        add(format!("core {core} bit/s"), of(Side::Soft, Some(core)), site.soft.core_bps);
    }
    let mut ports: BTreeMap<&str, u64> = BTreeMap::new();
    for (demand, served) in demands.iter().zip(&choice.served) {
        demand.ports.iter().for_each(|port| *ports.entry(port).or_default() += served);
    }
    for (port, max) in &site.ports {
        add(format!("port {port} bit/s"), ports.get(port.as_str()).copied().unwrap_or(0), *max);
    }
    uses
}

/// A bandwidth as text, with at most three digits and a unit.
pub fn rate(bps: u128) -> String {
    let (unit, per) = match bps {
        1_000_000_000.. => ("Gbit/s", 1e9),
        1_000_000.. => ("Mbit/s", 1e6),
        1_000.. => ("kbit/s", 1e3),
        _ => ("bit/s", 1.0),
    };
    let amount = bps as f64 / per;
    let decimals = if amount >= 100.0 {
        0
    } else if amount >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{amount:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}
