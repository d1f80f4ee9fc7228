//! Converts documents to the scheduler's input.
//!
//! Flow: node and network documents, compiled programs → [`Site`] and [`Demand`]s. A daemon then adds, for
//! each network, where it runs and the size of its table.

use std::sync::Arc;

use hue_intent::{Network, Node};
use hue_planes::{AdjacencyKind, Settings};
use hue_substrate::{Program, each_routes, flat};
use hue_tables::dir::DirShape;
use hue_tables::{Key, NextHop, Prefix, Prefix4};

use crate::tunnels::bound_to_software;

use super::{CardSite, Demand, Side, Site, SoftSite};

/// Default bandwidth of a core in bits per second: a million packets of 64 bytes
/// (`bench/results/live-forwarding.md`).
pub const CORE_BPS_DEFAULT: u64 = 500_000_000;
/// Default gain that a move requires, in bits per second.
pub const MOVE_COST_BPS_DEFAULT: u64 = 1_000_000;

impl Site {
    /// The resources of a node with this number of workers, and this card.
    #[must_use]
    pub fn of(node: &Node, workers: u16, card: Option<CardSite>) -> Self {
        let scheduler = node.spec.scheduler.clone().unwrap_or_default();
        let bps = |bandwidth: Option<hue_intent::Bandwidth>| bandwidth.map(hue_intent::Bandwidth::bps);
        let drained = node.spec.card.as_ref().is_some_and(hue_intent::Card::is_drained);
        let card = card.map(|card| CardSite {
            bps: bps(scheduler.card_bandwidth).unwrap_or(card.bps),
            drained: card.drained || drained,
            ..card
        });
        let ports = node.spec.ports.iter();
        Self {
            soft: SoftSite {
                cores: scheduler.soft.cores.unwrap_or(workers).max(1),
                core_bps: bps(scheduler.soft.bandwidth).unwrap_or(CORE_BPS_DEFAULT),
            },
            card,
            ports: ports.filter_map(|port| Some((port.name.to_string(), bps(port.bandwidth)?))).collect(),
            move_cost_bps: bps(scheduler.move_cost).unwrap_or(MOVE_COST_BPS_DEFAULT),
        }
    }
}

/// How many routes to single addresses lead to the router itself, and how many elsewhere.
fn addresses<K: Key>(routes: &[(Prefix<K>, NextHop)], is_local: impl Fn(&NextHop) -> bool) -> (usize, usize) {
    let addresses = routes.iter().filter(|(prefix, _)| prefix.len() == K::BITS);
    let locals = addresses.clone().filter(|(_, hop)| is_local(hop)).count();
    (locals, addresses.count() - locals)
}

impl Demand {
    /// The needs of a network, from its document and the routes of its program. The network is new. `carries`: it carries tunnels of others.
    #[must_use]
    pub fn of(network: &Network, program: &Program, carries: bool) -> Self {
        let spec = &network.spec;
        let needs = spec.needs.clone().unwrap_or_default();
        // Traffic that a rate limit drops needs no capacity.
        let limit = spec.rate_limit.and_then(|limit| limit.bits).map_or(u64::MAX, |bits| bits.per_second);
        let is_local = |hop: &NextHop| {
            let row = program.next_hops.get(usize::from(hop.get()));
            row.is_some_and(|row| row.kind() == AdjacencyKind::Local)
        };
        let (mut locals, mut neighbours) = (0, 0);
        each_routes!(&program.entries, routes => {
            let (own, others) = addresses(routes, is_local);
            locals += own;
            neighbours += others;
        });
        Self {
            name: network.name().to_owned(),
            kind: spec.plane.kind,
            route_by: spec.plane.route_by,
            ports: spec.ports.iter().filter_map(|port| Some(port.physical()?.to_string())).collect(),
            bound: bound_to_software(network, carries),
            bandwidth_bps: needs.bandwidth.map_or(0, hue_intent::Bandwidth::bps).min(limit),
            latency: needs.latency.unwrap_or_default(),
            placement: spec.placement,
            routes: needs.routes.unwrap_or(0).max(count(routes_of(program))),
            locals: count(locals),
            neighbours: count(neighbours),
            hops: count(hops_of(program)),
            slots: count(program.groups.iter().map(|(_, slots)| slots.len()).sum::<usize>()),
            entries: count(program.entries.patterns().len()),
            policies: program.policy_rows(),
            macs: count(program.addresses_max()),
            shape: None,
            now: None,
        }
    }

    /// The same network with its routes, for a card with [`super::TableSite::Banks`] (a few milliseconds).
    #[must_use]
    pub fn in_banks(self, routes: &[(Prefix4, NextHop)]) -> Self {
        Self { shape: Some(Arc::new(DirShape::of(routes.iter().copied()))), ..self }
    }

    /// The same network at its current place, with a table of at least this size.
    #[must_use]
    pub fn at(self, now: Side, routes: usize, neighbours: usize, hops: usize, slots: usize) -> Self {
        Self {
            now: Some(now),
            routes: self.routes.max(count(routes)),
            neighbours: self.neighbours.max(count(neighbours)),
            hops: self.hops.max(count(hops)),
            slots: self.slots.max(count(slots)),
            ..self
        }
    }
}

/// How many rows of next hops it has on a card.
fn hops_of(program: &Program) -> usize {
    match program.settings {
        Settings::Rofl(_) => flat::hop_count(&program.next_hops),
        _ => program.next_hops.len(),
    }
}

/// About as many routes as these would take the room of the entries on a card. A flat label takes up to three words for each of its bytes, a
/// route four (bench/results/flat-labels.md).
fn routes_of(program: &Program) -> usize {
    match program.settings {
        Settings::Rofl(settings) => (flat::bytes_of(program.entries.len(), settings) * 3).div_ceil(4),
        _ => program.entries.len(),
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
