//! Computes what networks get at their places: cores for networks in software, and bandwidth for all, in
//! whole bits per second.
//!
//! Both schedulers are evaluated by this, so that their results can be compared. Invariant: no core, card or
//! port exceeds its bandwidth, and no network gets more than it needs.

use super::{Demand, Side, Site};

/// Places of networks, and the bandwidth that they get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Where each network runs.
    pub sides: Vec<Side>,
    /// The core of each network in software.
    pub cores: Vec<Option<u16>>,
    /// The bandwidth of each network, in bits per second.
    pub served: Vec<u64>,
}

impl Choice {
    /// Total served bandwidth, in bits per second.
    pub fn total(&self) -> u64 {
        self.served.iter().sum()
    }

    /// Number of networks that must move.
    pub fn moves(&self, demands: &[&Demand]) -> usize {
        moves(demands, &self.sides)
    }

    /// Served bandwidth minus the cost of moves, in bits per second.
    pub fn value(&self, site: &Site, demands: &[&Demand]) -> i128 {
        i128::from(self.total()) - i128::from(site.move_cost_bps) * self.moves(demands) as i128
    }
}

/// Number of networks that run elsewhere now.
pub fn moves(demands: &[&Demand], sides: &[Side]) -> usize {
    demands.iter().zip(sides).filter(|(demand, side)| demand.now.is_some_and(|now| now != **side)).count()
}

/// Networks sorted by their needs, smallest first, then by name.
pub fn by_need(demands: &[&Demand]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by_key(|at| (demands[*at].bandwidth_bps, *at));
    order
}

/// Remaining capacity of cores.
pub struct Cores {
    /// Bandwidth left on each core.
    pub left: Vec<u64>,
}

impl Cores {
    /// All cores empty.
    pub fn new(site: &Site) -> Self {
        Self { left: vec![site.soft.core_bps; usize::from(site.soft.cores.max(1))] }
    }

    /// The core with the least remaining bandwidth that still has `bps`.
    pub fn fitting(&self, bps: u64) -> Option<usize> {
        let fits = self.left.iter().enumerate().filter(|(_, left)| **left >= bps);
        fits.min_by_key(|(at, left)| (**left, *at)).map(|(at, _)| at)
    }

    /// The core with the most remaining bandwidth.
    pub fn emptiest(&self) -> usize {
        let all = self.left.iter().enumerate();
        all.max_by_key(|(at, left)| (**left, std::cmp::Reverse(*at))).map_or(0, |(at, _)| at)
    }

    /// The most bandwidth left on any core.
    pub fn most(&self) -> u64 {
        self.left.iter().copied().max().unwrap_or(0)
    }

    /// Uses bandwidth of a core, as far as available.
    pub fn take(&mut self, core: usize, bps: u64) {
        if let Some(left) = self.left.get_mut(core) {
            *left = left.saturating_sub(bps);
        }
    }
}

/// Serves networks at these places: tries two orders of assigning cores, and uses the better result.
pub fn serve(site: &Site, demands: &[&Demand], sides: &[Side]) -> Choice {
    let mut order = by_need(demands);
    let upwards = serve_at(site, demands, sides, &pack(site, demands, sides, &order), None);
    order.reverse();
    let downwards = serve_at(site, demands, sides, &pack(site, demands, sides, &order), None);
    if downwards.total() > upwards.total() { downwards } else { upwards }
}

/// Assigns a core to each network in software: one where it fits completely, otherwise the one with the most
/// left.
pub fn pack(site: &Site, demands: &[&Demand], sides: &[Side], order: &[usize]) -> Vec<Option<u16>> {
    let mut cores = Cores::new(site);
    let mut placed = vec![None; demands.len()];
    let mut rest = Vec::new();
    for at in order.iter().copied().filter(|at| sides[*at] == Side::Soft) {
        match cores.fitting(demands[at].bandwidth_bps) {
            Some(core) => {
                cores.take(core, demands[at].bandwidth_bps);
                placed[at] = Some(core);
            }
            None => rest.push(at),
        }
    }
    for at in rest {
        let core = cores.emptiest();
        cores.take(core, demands[at].bandwidth_bps);
        placed[at] = Some(core);
    }
    // Core numbers have 16 bits.
    placed.into_iter().map(|core| core.and_then(|core| u16::try_from(core).ok())).collect()
}

/// Computes the bandwidth of networks on these cores: first the hinted amounts as far as available, then
/// smallest needs first.
pub fn serve_at(
    site: &Site,
    demands: &[&Demand],
    sides: &[Side],
    cores: &[Option<u16>],
    hints: Option<&[u64]>,
) -> Choice {
    let mut left = Cores::new(site).left;
    let mut card = site.card.as_ref().map_or(0, |card| card.bps);
    let mut ports = site.ports.clone();
    let mut served = vec![0; demands.len()];
    let order = by_need(demands);
    let hinted = hints.into_iter().flat_map(|hints| order.iter().map(|at| (*at, hints[*at])));
    let rounds = hinted.chain(order.iter().map(|at| (*at, u64::MAX)));
    for (at, most) in rounds {
        let demand = demands[at];
        let place = match (sides[at], cores[at]) {
            (Side::Card, _) => &mut card,
            (Side::Soft, Some(core)) => match left.get_mut(usize::from(core)) {
                Some(left) => left,
                None => continue,
            },
            (Side::Soft, None) => continue,
        };
        let by_ports = demand.ports.iter().filter_map(|port| ports.get(port)).copied().min();
        let want = demand.bandwidth_bps.saturating_sub(served[at]).min(most.saturating_sub(served[at]));
        let gets = want.min(*place).min(by_ports.unwrap_or(u64::MAX));
        *place -= gets;
        served[at] += gets;
        for port in &demand.ports {
            if let Some(left) = ports.get_mut(port) {
                *left -= gets;
            }
        }
    }
    Choice { sides: sides.to_vec(), cores: cores.to_vec(), served }
}
