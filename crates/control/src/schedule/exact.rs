//! The exact scheduler: an integer program, solved by branch and bound.
//!
//! It maximises the served bandwidth minus the cost of moves, within the capacities of card memory, cores,
//! card and ports. A network has one place, may be served in part there, and uses one core in software. There
//! are up to two programs. The first treats all of software as one large core, which gives an upper bound.
//! The second has separate cores, and is used only if the first does not settle the optimum. The result of
//! either is recomputed in whole bits ([`super::serve`]). It must be better than the greedy schedule, and
//! better than leaving every network in place.
//! Limits: [`NETWORKS_MAX`], [`BINARIES_MAX`], [`NODES_MAX`]. They are counts instead of durations, so that
//! the same input gives the same result on every machine.

use hue_intent::SchedulerKind;
use microlp::{
    ComparisonOp, OptimizationDirection, Problem, Solution, SolutionStatus, SolveOptions, SolveOutcome,
    Variable,
};

use super::capacity::{CardRoom, barred, fixed, shared_rows};
use super::explain::rate;
use super::greedy::keep_places;
use super::serve::{Choice, pack, serve, serve_at};
use super::{Demand, Side, Site, TableSite};

/// Most networks for the solver; with more, the greedy scheduler decides.
pub const NETWORKS_MAX: usize = 512;
/// Most binary variables (network on core) of the second program.
pub const BINARIES_MAX: usize = 512;
/// Most branch-and-bound steps in each program; after that, the best solution so far is used.
pub const NODES_MAX: u64 = 500;

/// Value of the largest need in the program: the solver is most accurate around this magnitude.
const SCALE: f64 = 1_000.0;
/// Relative difference from the bound that is ignored: the solver's own tolerance.
const TOLERANCE: f64 = 1e-6;

/// Input of both programs.
struct Task<'a> {
    site: &'a Site,
    demands: &'a [&'a Demand],
    /// The most bandwidth that each network can get at any single place, in bits per second.
    needs: Vec<u64>,
    /// Bits per second in one unit of the program.
    unit: f64,
}

/// Result of the solver.
struct Answer {
    choice: Choice,
    /// Upper bound of the value in bits per second; `None` if unknown.
    bound: Option<f64>,
}

/// Computes the schedule, starting from the greedy one. Returns the choice, the scheduler that made it, and a
/// note.
pub fn exact(site: &Site, demands: &[&Demand], greedy: Choice) -> (Choice, SchedulerKind, Option<String>) {
    if demands.len() > NETWORKS_MAX {
        let count = demands.len();
        let note = format!(
            "{count} networks exceed the solver's limit of {NETWORKS_MAX}; this is the greedy schedule"
        );
        return (greedy, SchedulerKind::Greedy, Some(note));
    }
    if site.card.as_ref().is_some_and(|card| matches!(card.table, TableSite::Banks { .. })) {
        let note = "with two banks and a Conflict CAM, the needs of networks depend on each other, which the \
                    solver cannot model; this is the greedy schedule";
        return (greedy, SchedulerKind::Greedy, Some(note.to_owned()));
    }
    let task = Task::new(site, demands);
    let (sides, room) = fixed(site, demands);
    let free: Vec<Option<Side>> =
        sides.iter().zip(demands).map(|(side, demand)| side.or_else(|| trivial_side(demand))).collect();
    let found = match task.best(&free, &greedy) {
        Ok(found) => found,
        Err(why) => {
            let note = format!("the solver failed ({why}); this is the greedy schedule");
            return (greedy, SchedulerKind::Greedy, Some(note));
        }
    };
    let value = |choice: &Choice| choice.value(site, demands);
    let mut best = found.choice;
    if value(&greedy) >= value(&best) && greedy.moves(demands) <= best.moves(demands) {
        best = greedy;
    }
    if best.moves(demands) > 0 {
        // If an equally good schedule leaves networks in place, use that one; cores are reassigned there too.
        let stay = keep_places(site, demands, sides, room);
        let places: Vec<Option<Side>> = stay.iter().copied().map(Some).collect();
        let mut stay = serve(site, demands, &stay);
        if let Ok(found) = task.best(&places, &stay) {
            stay = found.choice;
        }
        if value(&stay) >= value(&best) {
            best = stay;
        }
    }
    let note = match found.bound {
        Some(bound) if is_reached(value(&best), bound) => None,
        Some(bound) => {
            let more = rate((bound - value(&best) as f64).max(0.0) as u128);
            Some(format!("not proven optimal: the solver reached its limits, {more} more may be possible"))
        }
        None => Some("not proven optimal: the solver reached its limits".to_owned()),
    };
    (best, SchedulerKind::Exact, note)
}

/// Whether a value reaches a bound, within the solver's tolerance.
fn is_reached(value: i128, bound: f64) -> bool {
    value as f64 >= bound - TOLERANCE * bound.abs() - 1.0
}

/// A new network that needs no bandwidth gains nothing on the card.
fn trivial_side(demand: &Demand) -> Option<Side> {
    (demand.bandwidth_bps == 0 && demand.now.is_none()).then_some(Side::Soft)
}

impl<'a> Task<'a> {
    fn new(site: &'a Site, demands: &'a [&'a Demand]) -> Self {
        let most = |demand: &Demand| {
            let card =
                site.card.as_ref().filter(|_| barred(site, demand).is_none()).map_or(0, |card| card.bps);
            let ports = demand.ports.iter().filter_map(|port| site.ports.get(port)).min();
            demand.bandwidth_bps.min(site.soft.core_bps.max(card)).min(ports.copied().unwrap_or(u64::MAX))
        };
        let needs: Vec<u64> = demands.iter().map(|demand| most(demand)).collect();
        let largest = needs.iter().copied().max().unwrap_or(0).max(1);
        Self { site, demands, needs, unit: largest as f64 / SCALE }
    }

    /// The best schedule with these fixed places; `known` is a choice that respects them.
    fn best(&self, fixed: &[Option<Side>], known: &Choice) -> Result<Answer, String> {
        let together = Program::new(self, fixed, None);
        let solution = together.solve(known)?;
        let Some(solution) = solution else {
            return Ok(Answer { choice: known.clone(), bound: None });
        };
        let value = |choice: &Choice| choice.value(self.site, self.demands);
        let better = |one: Choice, other: Choice| if value(&other) > value(&one) { other } else { one };
        let choice = better(together.choice(self, &solution), known.clone());
        let bound = together.bound(self, &solution);
        let cores = usize::from(self.site.soft.cores.max(1));
        let soft = fixed.iter().filter(|side| **side != Some(Side::Card)).count();
        // With one core, the first program is exact.
        let is_done = bound.is_some_and(|bound| is_reached(value(&choice), bound));
        if is_done || cores == 1 || soft * cores > BINARIES_MAX {
            return Ok(Answer { choice, bound });
        }
        let apart = Program::new(self, fixed, Some(cores));
        match apart.solve(&choice) {
            Ok(Some(solution)) => {
                let lower = apart.bound(self, &solution);
                let bound = bound.into_iter().chain(lower).min_by(f64::total_cmp);
                Ok(Answer { choice: better(choice, apart.choice(self, &solution)), bound })
            }
            // The result of the first program is still valid.
            Ok(None) | Err(_) => Ok(Answer { choice, bound }),
        }
    }
}

/// The variables of a network in a program.
struct Terms {
    /// Whether it is on the card, if that is not fixed.
    on_card: Option<Variable>,
    /// Its place, if fixed.
    fixed: Option<Side>,
    /// Whether it is on each core, if cores are separate.
    on_core: Vec<Variable>,
    /// Fractions of its need that the card and each core serve.
    by_card: Option<Variable>,
    by_core: Vec<Variable>,
}

/// A program for the solver.
struct Program {
    problem: Problem,
    networks: Vec<Terms>,
    /// Constant part of the objective: unavoidable moves, and moves avoided by staying on the card.
    constant: f64,
}

impl Program {
    /// Builds the program with this many separate cores, or with one core for all of software.
    fn new(task: &Task<'_>, fixed: &[Option<Side>], cores: Option<usize>) -> Self {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let cost = task.site.move_cost_bps as f64 / task.unit;
        let mut constant = 0.0;
        let mut networks = Vec::with_capacity(task.demands.len());
        for (at, demand) in task.demands.iter().enumerate() {
            let value = task.value(at);
            let side = fixed[at];
            let on_card = match (side, demand.now) {
                (None, Some(Side::Card)) => {
                    constant -= cost;
                    Some(problem.add_binary_var(cost))
                }
                (None, Some(Side::Soft)) => Some(problem.add_binary_var(-cost)),
                (None, None) => Some(problem.add_binary_var(0.0)),
                (Some(side), now) => {
                    constant -= if now.is_some_and(|now| now != side) { cost } else { 0.0 };
                    None
                }
            };
            let part = |most: u64| (0.0, (most as f64 / task.needs[at].max(1) as f64).min(1.0));
            let core = part(task.site.soft.core_bps);
            let card = part(task.site.card.as_ref().map_or(0, |card| card.bps));
            let by_card = (side != Some(Side::Soft)).then(|| problem.add_var(value, card));
            let count = if side == Some(Side::Card) { 0 } else { cores.unwrap_or(1) };
            let by_core: Vec<Variable> = (0..count).map(|_| problem.add_var(value, core)).collect();
            let on_core: Vec<Variable> = match cores {
                Some(_) => by_core.iter().map(|_| problem.add_binary_var(0.0)).collect(),
                None => Vec::new(),
            };
            if let (Some(by_card), Some(on_card)) = (by_card, on_card) {
                // The card can serve a network only if the network is on the card.
                problem.add_constraint([(by_card, 1.0), (on_card, -card.1)], ComparisonOp::Le, 0.0);
            }
            if cores.is_some() && count > 0 {
                for (by, on) in by_core.iter().zip(&on_core) {
                    problem.add_constraint([(*by, 1.0), (*on, -core.1)], ComparisonOp::Le, 0.0);
                }
                let one = on_core.iter().copied().chain(on_card).map(|variable| (variable, 1.0));
                problem.add_constraint(one.collect::<Vec<_>>(), ComparisonOp::Eq, 1.0);
            } else if let (Some(by), Some(on_card)) = (by_core.first(), on_card) {
                problem.add_constraint([(*by, 1.0), (on_card, core.1)], ComparisonOp::Le, core.1);
            }
            networks.push(Terms { on_card, fixed: side, on_core, by_card, by_core });
        }
        let mut program = Self { problem, networks, constant };
        program.bound_bandwidth(task, cores);
        program.bound_card(task);
        program
    }

    /// Adds the constraints that no core, card or port exceeds its bandwidth.
    fn bound_bandwidth(&mut self, task: &Task<'_>, cores: Option<usize>) {
        let scaled = |bps: u64| bps as f64 / task.unit;
        let all = |by: &dyn Fn(&Terms) -> Option<Variable>| -> Vec<(Variable, f64)> {
            let networks = self.networks.iter().enumerate();
            networks.filter_map(|(at, terms)| Some((by(terms)?, task.value(at)))).collect()
        };
        let mut rows = Vec::new();
        if let Some(card) = &task.site.card {
            rows.push((all(&|terms| terms.by_card), scaled(card.bps)));
        }
        let (count, factor) = match cores {
            Some(cores) => (cores, 1.0),
            None => (1, f64::from(task.site.soft.cores.max(1))),
        };
        for core in 0..count {
            rows.push((
                all(&|terms| terms.by_core.get(core).copied()),
                factor * scaled(task.site.soft.core_bps),
            ));
        }
        for (port, bps) in &task.site.ports {
            let on =
                self.networks.iter().enumerate().filter(|(at, _)| task.demands[*at].ports.contains(port));
            let terms = on.flat_map(|(at, terms)| {
                terms.by_card.iter().chain(&terms.by_core).map(move |variable| (*variable, task.value(at)))
            });
            rows.push((terms.collect(), scaled(*bps)));
        }
        for (terms, most) in rows.into_iter().filter(|(terms, _)| !terms.is_empty()) {
            self.problem.add_constraint(terms, ComparisonOp::Le, most);
        }
    }

    /// Adds the constraints of the card's capacity.
    fn bound_card(&mut self, task: &Task<'_>) {
        let Some(card) = &task.site.card else { return };
        for (takes, most) in shared_rows(card, task.demands) {
            let there: u64 = (self.networks.iter().zip(&takes))
                .filter(|(terms, _)| terms.fixed == Some(Side::Card))
                .map(|(_, takes)| *takes)
                .sum();
            let open = self.networks.iter().zip(&takes);
            let terms: Vec<(Variable, f64)> =
                open.filter_map(|(terms, takes)| Some((terms.on_card?, *takes as f64))).collect();
            // The fixed networks fit; that has been checked.
            let left = most.saturating_sub(there) as f64;
            let largest = terms.iter().map(|(_, takes)| *takes).fold(1.0, f64::max);
            let terms: Vec<_> =
                terms.into_iter().map(|(variable, takes)| (variable, takes / largest)).collect();
            if !terms.is_empty() {
                self.problem.add_constraint(terms, ComparisonOp::Le, left / largest);
            }
        }
    }

    /// Solves the program, starting from a known choice. Returns `None` if it stops without a solution.
    fn solve(&self, known: &Choice) -> Result<Option<Solution>, String> {
        let mut options = SolveOptions::default();
        options.node_limit = Some(NODES_MAX);
        options.warm_start = Some(self.hints(known));
        match self.problem.solve_with(options) {
            Ok(SolveOutcome::Solution(solution)) => Ok(Some(solution)),
            Ok(SolveOutcome::Interrupted(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The solver's upper bound of the value, in bits per second.
    fn bound(&self, task: &Task<'_>, solution: &Solution) -> Option<f64> {
        let bound = match solution.status() {
            SolutionStatus::Optimal => Some(solution.objective()),
            SolutionStatus::Feasible => solution.stats().best_bound,
        };
        bound.map(|bound| (bound + self.constant) * task.unit)
    }

    /// A choice as values of the program's variables.
    fn hints(&self, known: &Choice) -> Vec<(Variable, f64)> {
        let is = |yes: bool| if yes { 1.0 } else { 0.0 };
        let mut hints = Vec::new();
        for ((terms, side), at) in self.networks.iter().zip(&known.sides).zip(&known.cores) {
            hints.extend(terms.on_card.map(|variable| (variable, is(*side == Side::Card))));
            let cores = terms.on_core.iter().zip(0u16..);
            hints.extend(cores.map(|(variable, core)| (*variable, is(*at == Some(core)))));
        }
        hints
    }

    /// The solver's solution in whole bits.
    fn choice(&self, task: &Task<'_>, solution: &Solution) -> Choice {
        let is = |variable: &Variable| solution.var_value(*variable) > 0.5;
        let mut sides: Vec<Side> = Vec::with_capacity(self.networks.len());
        let mut hints = Vec::with_capacity(self.networks.len());
        for (at, terms) in self.networks.iter().enumerate() {
            let open = terms.on_card.as_ref().map(|on| if is(on) { Side::Card } else { Side::Soft });
            sides.push(terms.fixed.or(open).unwrap_or(Side::Soft));
            let parts = terms.by_card.iter().chain(&terms.by_core);
            let part: f64 = parts.map(|variable| solution.var_value(*variable)).sum();
            hints.push((part.clamp(0.0, 1.0) * task.needs[at] as f64).round() as u64);
        }
        let sides = task.feasible(sides);
        let from = |cores: &[Option<u16>]| serve_at(task.site, task.demands, &sides, cores, Some(&hints));
        let apart = self.networks.iter().any(|terms| !terms.on_core.is_empty());
        let mut best = serve(task.site, task.demands, &sides);
        let cores: Vec<Option<u16>> = if apart {
            let networks = self.networks.iter().zip(&sides);
            let core =
                |terms: &Terms| (0u16..).zip(&terms.on_core).find(|(_, on)| is(on)).map(|(core, _)| core);
            networks.map(|(terms, side)| (*side == Side::Soft).then(|| core(terms).unwrap_or(0))).collect()
        } else {
            let mut order: Vec<usize> = (0..hints.len()).collect();
            order.sort_by_key(|at| (std::cmp::Reverse(hints[*at]), *at));
            pack(task.site, task.demands, &sides, &order)
        };
        let hinted = from(&cores);
        if hinted.total() > best.total() {
            best = hinted;
        }
        best
    }
}

impl Task<'_> {
    /// The value of fully serving a network.
    fn value(&self, at: usize) -> f64 {
        self.needs[at] as f64 / self.unit
    }

    /// Makes a placement feasible for the card. The solver works with tolerances; if they allow too many
    /// networks, the last ones go to software.
    fn feasible(&self, mut sides: Vec<Side>) -> Vec<Side> {
        let mut room = CardRoom::new(self.site);
        for (demand, side) in self.demands.iter().zip(&mut sides) {
            if *side == Side::Card && !room.take_if(demand) {
                *side = Side::Soft;
            }
        }
        sides
    }
}
