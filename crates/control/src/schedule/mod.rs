//! The scheduler: which networks are to run on the card, which in software, and why.
//!
//! Flow: documents, what the card is, where networks run ([`Site`], [`Demand`]s) → **schedule** → [`Schedule`] → `plan`,
//! migration. Two ways: `greedy` as in the paper, `exact` by an integer program; both are pure, and the same input
//! gives the same result.
//! Invariants: every network has one place; no capacity is exceeded; a network whose document names its place has it, if
//! it can; a schedule of what runs as scheduled moves nothing. Table sizes are an estimate: the card has the last word.
//! Units: bits of frames a second, rows, words of the card's memories.
//! Source: Unnikrishnan §4.1 (greedy).

mod capacity;
mod demands;
mod exact;
mod explain;
mod greedy;
mod serve;
pub mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hue_intent::{Latency, Placement, SchedulerKind};
use hue_planes::Kind;

pub use capacity::Lack;
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
    /// Its name in documents and output: that of the substrate.
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

/// What a node has to run networks with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Software.
    pub soft: SoftSite,
    /// The card, if there is one.
    pub card: Option<CardSite>,
    /// What ports carry each way, bits a second, by name; one that is not here carries what comes.
    pub ports: BTreeMap<String, u64>,
    /// Bandwidth that a move must gain, bits a second.
    pub move_cost_bps: u64,
}

/// What software has. A network is one core's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoftSite {
    /// Cores that forward, at least one.
    pub cores: u16,
    /// What each of them forwards, bits a second.
    pub core_bps: u64,
}

/// What a card has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CardSite {
    /// Name of its image.
    pub image: String,
    /// Kinds of plane in it.
    pub kinds: Vec<Kind>,
    /// Names of the node's ports that are the card's: a network on others cannot run on it.
    pub ports: BTreeSet<String>,
    /// Networks that can run on it.
    pub networks_max: u32,
    /// Its tables.
    pub table: TableSite,
    /// What it forwards, bits a second.
    pub bps: u64,
}

/// How a card keeps tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableSite {
    /// Each network in rows of its own.
    Each {
        /// Routes of one network.
        routes: u32,
        /// Local addresses of one network.
        locals: u32,
        /// Next hops of one network.
        hops: u32,
    },
    /// All networks in the same words.
    Shared {
        /// Words of all networks together.
        words: u64,
        /// Next hops of all networks together.
        hops: u32,
    },
}

/// A network, and what it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Name, unique.
    pub name: String,
    /// Kind of its plane.
    pub kind: Kind,
    /// Physical ports that it is on.
    pub ports: BTreeSet<String>,
    /// What it needs, bits a second.
    pub bandwidth_bps: u64,
    /// How soon its packets are to leave.
    pub latency: Latency,
    /// What its document says of its place.
    pub placement: Placement,
    /// Routes in its table, local addresses among them.
    pub routes: u32,
    /// Local addresses.
    pub locals: u32,
    /// Next hops.
    pub hops: u32,
    /// Where it runs; none: it is new.
    pub now: Option<Side>,
}

/// Where all networks are to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// What made it: not what was asked for when that could not.
    pub scheduler: SchedulerKind,
    /// Why it is not what was asked for, or not proven to be the best.
    pub note: Option<String>,
    /// Networks, in the order of names.
    pub networks: Vec<Scheduled>,
    /// What has to move for it, in the order of names: first those that leave the card, which make room.
    pub moves: Vec<Move>,
    /// What is used of each capacity.
    pub uses: Vec<Use>,
    /// Bandwidth that a move had to gain, bits a second.
    pub move_cost_bps: u64,
}

impl Schedule {
    /// What all networks need, bits a second.
    #[must_use]
    pub fn needed_bps(&self) -> u64 {
        self.networks.iter().map(|network| network.needed_bps).sum()
    }

    /// What of that is served, bits a second.
    #[must_use]
    pub fn served_bps(&self) -> u64 {
        self.networks.iter().map(|network| network.served_bps).sum()
    }

    /// What it is worth: bandwidth served less the cost of its moves, bits a second.
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
    /// Its name.
    pub name: String,
    /// What its document says of its place.
    pub placement: Placement,
    /// How soon its packets are to leave.
    pub latency: Latency,
    /// Where it runs; none: it is new.
    pub now: Option<Side>,
    /// Where it is to run.
    pub side: Side,
    /// In software: the core that it was reckoned with.
    pub core: Option<u16>,
    /// What it needs, bits a second.
    pub needed_bps: u64,
    /// What of that it gets, bits a second.
    pub served_bps: u64,
    /// Why there.
    pub why: String,
    /// Why not on the other side.
    pub why_not: String,
}

/// A network that has to move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Its name.
    pub name: String,
    /// From where.
    pub from: Side,
    /// To where.
    pub to: Side,
    /// Why.
    pub why: String,
}

/// How much of a capacity is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// Of what, such as `card next hops` or `core 0 bit/s`.
    pub what: String,
    /// Used.
    pub used: u64,
    /// There is.
    pub max: u64,
}

/// Says where networks are to run.
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

/// Everything where it is, new networks in software: why each is there, and why not elsewhere. The schedule of nobody.
#[must_use]
pub fn present(site: &Site, demands: &[Demand]) -> Schedule {
    let mut demands: Vec<&Demand> = demands.iter().collect();
    demands.sort_by(|one, other| one.name.cmp(&other.name));
    let now = |demand: &&Demand| demand.now.filter(|_| site.card.is_some()).unwrap_or(Side::Soft);
    let choice = serve::serve(site, &demands, &demands.iter().map(now).collect::<Vec<_>>());
    explain::schedule(site, &demands, &choice, SchedulerKind::default(), None)
}

/// Why a network cannot have what it needs at a place, beside those that are there: somebody would get less than needed
/// who gets it now. `None` also for one that says no need.
#[must_use]
pub fn lacks_rate(site: &Site, demands: &[Demand], name: &str, to: Side) -> Option<String> {
    let needed = demands.iter().find(|demand| demand.name == name).map_or(0, |demand| demand.bandwidth_bps);
    if needed == 0 {
        return None;
    }
    let moved: Vec<Demand> = demands
        .iter()
        .map(|demand| Demand {
            now: if demand.name == name { Some(to) } else { demand.now },
            ..demand.clone()
        })
        .collect();
    let (before, after) = (present(site, demands), present(site, &moved));
    let whole = |one: &&Scheduled| one.served_bps >= one.needed_bps;
    let short = after.networks.iter().filter(|one| !whole(one));
    // What goes short anyway is no reason.
    let short = short
        .filter(|one| before.network(&one.name).as_ref().is_some_and(whole))
        .max_by_key(|one| one.name == name)?;
    let rate = |bps: u64| rate(bps.into());
    let there = match (to, &site.card) {
        (Side::Card, Some(card)) => format!("the card forwards {}", rate(card.bps)),
        (Side::Card, None) => "there is no card".to_owned(),
        (Side::Soft, _) => {
            format!("software forwards {} on each of {} cores", rate(site.soft.core_bps), site.soft.cores)
        }
    };
    let (gets, needs) = (rate(short.served_bps), rate(short.needed_bps));
    Some(match short.name == name {
        true => format!("it needs {needs} and would get {gets}: {there}, and others are there"),
        false => format!(
            "it needs {}, and network '{}' would get {gets} of {needs}: {there}",
            rate(needed),
            short.name
        ),
    })
}

#[cfg(test)]
mod tests;
