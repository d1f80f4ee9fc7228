//! The scheduler: decides which networks run on the card and which in software, with reasons.
//!
//! Flow: documents, properties of the card, current places ([`Site`], [`Demand`]s) → **schedule** → [`Schedule`] →
//! `plan`, migration. There are two schedulers: `greedy`, as in the paper, and `exact`, an integer program. Both are
//! pure: the same input gives the same result. Invariants: every network has one place, and no capacity is exceeded.
//! A network whose document names its place is there if possible. If networks already run as scheduled, nothing
//! moves. Table sizes are estimates: only the card itself knows whether a table fits. With two banks (layout `dir`)
//! they are exact, if networks came to the card in the scheduler's order: if two networks conflict, the later one
//! needs rows of the Conflict CAM. Units: bits of frames per second, rows, words of the card's memories. Source:
//! Unnikrishnan §4.1 (greedy).

mod capacity;
mod demands;
mod exact;
mod explain;
mod greedy;
mod serve;
pub mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hue_intent::{Latency, Placement, SchedulerKind};
use hue_planes::Kind;
use hue_tables::dir::DirShape;
use hue_tables::{PolicyRows, RouteBy};

pub use capacity::{DRAINED, Lack};
pub use demands::{CORE_BPS_DEFAULT, MOVE_COST_BPS_DEFAULT};
pub use exact::{BINARIES_MAX, NETWORKS_MAX, NODES_MAX};
pub use explain::rate;

/// Where a network runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// On the card.
    Card,
    /// In software.
    Soft,
}

impl Side {
    /// Name in documents and output: the name of the substrate.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Soft => "soft",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The resources of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Software.
    pub soft: SoftSite,
    /// The card, if there is one.
    pub card: Option<CardSite>,
    /// Bandwidth of ports in each direction, by name, in bits per second; a port that is not listed is
    /// unlimited.
    pub ports: BTreeMap<String, u64>,
    /// Bandwidth that a move must gain, in bits per second.
    pub move_cost_bps: u64,
}

/// The resources of software. One core forwards all packets of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoftSite {
    /// Number of forwarding cores, at least one.
    pub cores: u16,
    /// Bandwidth of each core, in bits per second.
    pub core_bps: u64,
}

/// The resources of a card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CardSite {
    /// Name of the image.
    pub image: String,
    /// Kinds of plane in the image.
    pub kinds: Vec<Kind>,
    /// Names of the node's ports that belong to the card. A network with other ports cannot run on it.
    pub ports: BTreeSet<String>,
    /// Most networks.
    pub networks_max: u32,
    /// Table capacity.
    pub table: TableSite,
    /// MAC addresses of all networks that learn.
    pub macs: u32,
    /// Slots of groups of next hops, of all networks together.
    pub slots: u32,
    /// Rows for entries of networks of kind `extract`, of all networks together.
    pub entries: u32,
    /// How many entries one of them may have.
    pub entries_each: u32,
    /// Rows for routes by source, of all networks together; all 0 if the image has none.
    pub policies: PolicyRows,
    /// Bandwidth in bits per second.
    pub bps: u64,
    /// Whether no network may run on it, for maintenance.
    pub drained: bool,
}

/// The organisation of a card's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableSite {
    /// Each network has its own rows.
    Each {
        /// Routes of one network.
        routes: u32,
        /// Single addresses of one network, its own or of its neighbours.
        locals: u32,
        /// Whether neighbours may take such rows; else they take routes.
        neighbours: bool,
        /// Next hops of one network.
        hops: u32,
    },
    /// All networks share the same memory.
    Shared {
        /// Words of all networks together.
        words: u64,
        /// Next hops of all networks together.
        hops: u32,
    },
    /// All networks share two banks with a Conflict CAM (layout `dir`). What a network needs depends on the
    /// routes of the others: a [`Demand`] needs a shape.
    Banks {
        /// Sets of the second bank.
        sets: u32,
        /// Rows of the Conflict CAM.
        cam_rows: u32,
        /// Next hops of all networks together.
        hops: u32,
    },
}

/// A network and its needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Unique name.
    pub name: String,
    /// Kind of plane.
    pub kind: Kind,
    /// By which addresses of a packet it chooses a route.
    pub route_by: RouteBy,
    /// Its physical ports.
    pub ports: BTreeSet<String>,
    /// Why its document binds it to software, if it does.
    pub bound: Option<&'static str>,
    /// Bandwidth needed, in bits per second.
    pub bandwidth_bps: u64,
    /// Latency requirement.
    pub latency: Latency,
    /// Placement in its document.
    pub placement: Placement,
    /// Routes in its table, including local addresses.
    pub routes: u32,
    /// Local addresses.
    pub locals: u32,
    /// Routes to single addresses that are not local: neighbours.
    pub neighbours: u32,
    /// Next hops.
    pub hops: u32,
    /// Slots of groups of next hops.
    pub slots: u32,
    /// Entries of a network of kind `extract`; 0 for others.
    pub entries: u32,
    /// Rows for its routes by source.
    pub policies: PolicyRows,
    /// Most MAC addresses, static and learnt ones, of a network that learns; it has no routes. 0 for others.
    pub macs: u32,
    /// The shape of its routes in two banks, for a card with [`TableSite::Banks`]; `None` counts as no routes.
    pub shape: Option<Arc<DirShape>>,
    /// Where it runs now; `None` if it is new.
    pub now: Option<Side>,
}

/// A schedule: the place of every network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The scheduler that made it. Differs from the requested one if that one could not.
    pub scheduler: SchedulerKind,
    /// Why another scheduler made it, or that it is not proven optimal.
    pub note: Option<String>,
    /// Networks, sorted by name.
    pub networks: Vec<Scheduled>,
    /// Networks that must move, sorted by name: first those that leave the card, which makes room.
    pub moves: Vec<Move>,
    /// Usage of each capacity.
    pub uses: Vec<Use>,
    /// Gain that a move required, in bits per second.
    pub move_cost_bps: u64,
}

impl Schedule {
    /// Bandwidth that all networks need, in bits per second.
    #[must_use]
    pub fn needed_bps(&self) -> u64 {
        self.networks.iter().map(|network| network.needed_bps).sum()
    }

    /// Bandwidth served, in bits per second.
    #[must_use]
    pub fn served_bps(&self) -> u64 {
        self.networks.iter().map(|network| network.served_bps).sum()
    }

    /// Value of the schedule: served bandwidth minus the cost of its moves, in bits per second.
    #[must_use]
    pub fn value_bps(&self) -> i128 {
        i128::from(self.served_bps()) - i128::from(self.move_cost_bps) * self.moves.len() as i128
    }

    /// The place of a network.
    #[must_use]
    pub fn network(&self, name: &str) -> Option<&Scheduled> {
        let at = self.networks.binary_search_by(|network| network.name.as_str().cmp(name)).ok()?;
        self.networks.get(at)
    }
}

/// The place of one network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// Name of the network.
    pub name: String,
    /// Placement in its document.
    pub placement: Placement,
    /// Latency requirement.
    pub latency: Latency,
    /// Where it runs now; `None` if it is new.
    pub now: Option<Side>,
    /// Scheduled place.
    pub side: Side,
    /// In software: the core assumed for it.
    pub core: Option<u16>,
    /// Bandwidth needed, in bits per second.
    pub needed_bps: u64,
    /// Bandwidth served, in bits per second.
    pub served_bps: u64,
    /// Why it has this place.
    pub why: String,
    /// Why it is not on the other side.
    pub why_not: String,
}

/// A network that has to move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Name of the network.
    pub name: String,
    /// Current place.
    pub from: Side,
    /// Scheduled place.
    pub to: Side,
    /// Reason.
    pub why: String,
}

/// Usage of a capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// Name of the capacity, such as `card next hops` or `core 0 bit/s`.
    pub what: String,
    /// Amount used.
    pub used: u64,
    /// Total amount.
    pub max: u64,
}

/// Computes a schedule.
#[must_use]
pub fn schedule(site: &Site, demands: &[Demand], kind: SchedulerKind) -> Schedule {
    let mut demands: Vec<&Demand> = demands.iter().collect();
    demands.sort_by(|one, other| one.name.cmp(&other.name));
    let greedy = greedy::greedy(site, &demands);
    let (choice, scheduler, note) = match kind {
        SchedulerKind::Greedy => (greedy, SchedulerKind::Greedy, None),
        SchedulerKind::Exact => exact::exact(site, &demands, greedy),
    };
    explain::schedule(site, &demands, &choice, scheduler, note)
}

/// Describes the current placement (new networks in software) with reasons, without scheduling.
#[must_use]
pub fn current(site: &Site, demands: &[Demand]) -> Schedule {
    let mut demands: Vec<&Demand> = demands.iter().collect();
    demands.sort_by(|one, other| one.name.cmp(&other.name));
    let now = |demand: &&Demand| demand.now.filter(|_| site.card.is_some()).unwrap_or(Side::Soft);
    let choice = serve::serve(site, &demands, &demands.iter().map(now).collect::<Vec<_>>());
    explain::schedule(site, &demands, &choice, SchedulerKind::default(), None)
}

/// Why a network cannot get its bandwidth at a place: it, or a network that is fully served now, would get
/// less than it needs. Returns `None` if everything fits, and for a network that needs no bandwidth.
#[must_use]
pub fn lacks_bandwidth(site: &Site, demands: &[Demand], name: &str, to: Side) -> Option<String> {
    let needed = demands.iter().find(|demand| demand.name == name).map_or(0, |demand| demand.bandwidth_bps);
    if needed == 0 {
        return None;
    }
    let short = short_after(site, demands, to, |demand| demand.name == name);
    let short = short.into_iter().max_by_key(|one| one.name == name)?;
    Some(if short.name == name {
        gets_less(site, &short, to)
    } else {
        let (gets, needs) = (rate(short.served_bps.into()), rate(short.needed_bps.into()));
        format!(
            "it needs {}, but then network '{}' would get {gets} of {needs}: {}",
            rate(needed.into()),
            short.name,
            forwards(site, to)
        )
    })
}

/// The networks that would get less bandwidth than they need if no network ran on the card, although they get all of it
/// now, sorted by name, and why.
#[must_use]
pub fn lacks_without_card(site: &Site, demands: &[Demand]) -> Vec<(String, String)> {
    let short = short_after(site, demands, Side::Soft, |_| true);
    short.into_iter().map(|one| (one.name.clone(), gets_less(site, &one, Side::Soft))).collect()
}

/// The networks that are fully served now, and would not be if these networks moved there.
fn short_after(site: &Site, demands: &[Demand], to: Side, moves: impl Fn(&Demand) -> bool) -> Vec<Scheduled> {
    let moved =
        |demand: &Demand| Demand { now: if moves(demand) { Some(to) } else { demand.now }, ..demand.clone() };
    let moved: Vec<Demand> = demands.iter().map(moved).collect();
    let (before, after) = (current(site, demands), current(site, &moved));
    let whole = |one: &Scheduled| one.served_bps >= one.needed_bps;
    // Networks that are not fully served now do not count.
    let was_whole = |one: &Scheduled| before.network(&one.name).is_some_and(whole);
    after.networks.into_iter().filter(|one| !whole(one) && was_whole(one)).collect()
}

fn gets_less(site: &Site, network: &Scheduled, to: Side) -> String {
    let (gets, needs) = (rate(network.served_bps.into()), rate(network.needed_bps.into()));
    format!("it needs {needs} but would get {gets}: {}, shared with other networks", forwards(site, to))
}

/// What a place can forward, as text.
fn forwards(site: &Site, at: Side) -> String {
    let rate = |bps: u64| rate(bps.into());
    match (at, &site.card) {
        (Side::Card, Some(card)) => format!("the card forwards {}", rate(card.bps)),
        (Side::Card, None) => "there is no card".to_owned(),
        (Side::Soft, _) => {
            format!("software forwards {} on each of {} cores", rate(site.soft.core_bps), site.soft.cores)
        }
    }
}

#[cfg(test)]
mod tests;
