//! Capacity of the card: why a network can never run there, and the capacity that other networks leave free.

use std::fmt;

use super::{CardSite, Demand, Side, Site, TableSite};
use hue_intent::{Latency, Placement};
use hue_tables::dir::{DirNeeds, DirUsage, SLOTS};
use hue_tables::{PolicyRows, RouteBy};

/// Estimated words of a route in the card's shared memories. Routes in large tables need about 2
/// (`labs/tables`), a few scattered routes up to 12 each. `hueplane table size --encoding dag36` shows the
/// exact size of a table (4.5 bytes for each word).
const WORDS_PER_ROUTE: u64 = 4;
/// Words of a network without routes: its first node.
const WORDS_PER_NETWORK: u64 = 32;

/// Why no network can run on a drained card.
pub const DRAINED: &str = "the card is drained: `hueplane undrain card` ends that";

/// Why a network cannot run on the card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The node has no card.
    NoCard,
    /// Its document requests software.
    Document,
    /// The card is drained.
    Drained,
    /// The image does not support its kind of plane.
    Kind {
        /// The kind.
        kind: &'static str,
        /// The image.
        image: String,
    },
    /// The image chooses routes by destination only.
    RouteBy {
        /// By what the network chooses them.
        by: RouteBy,
        /// The image.
        image: String,
    },
    /// It has more entries than a network on the card may have.
    Entries {
        /// How many it has.
        has: u32,
        /// How many it may have.
        max: u32,
        /// The image.
        image: String,
    },
    /// Its document binds it to software, for this reason.
    Bound(&'static str),
    /// One of its ports does not belong to the card.
    Port(String),
    /// Its table exceeds the image's limit, even without other networks.
    Large {
        /// The resource.
        what: &'static str,
        /// Amount needed.
        needs: u64,
        /// Amount in the image.
        max: u64,
        /// The image.
        image: String,
    },
    /// Other networks use too much of a resource.
    Full {
        /// The resource.
        what: &'static str,
        /// Amount needed.
        needs: u64,
        /// Free amount.
        free: u64,
        /// Total amount.
        max: u64,
    },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCard => f.write_str("the node has no card"),
            Self::Document => f.write_str("its document says soft"),
            Self::Drained => f.write_str(DRAINED),
            Self::Kind { kind, image } => write!(f, "image '{image}' has no plane of kind {kind}"),
            Self::RouteBy { by, image } => {
                write!(f, "image '{image}' has no routes by source (route_by {})", by.name())
            }
            Self::Entries { has, max, image } => {
                write!(f, "it has {has} entries, but a network on image '{image}' has at most {max}")
            }
            Self::Bound(why) => f.write_str(why),
            Self::Port(port) => write!(f, "its port '{port}' is not a port of the card"),
            Self::Large { what, needs, max, image } => {
                write!(f, "it needs {needs} {what}, but image '{image}' has {max}")
            }
            Self::Full { what, needs: 1, free: 0, max } => {
                write!(f, "the card has no {what} left ({max} in total)")
            }
            Self::Full { what, needs, free, max } => {
                write!(f, "it needs {needs} {what}, but the card has {free} of {max} left")
            }
        }
    }
}

/// The resources that a network needs, by name.
type Needs = [(&'static str, u64); RESOURCES];

/// How many there are.
const RESOURCES: usize = 9;

/// The resources that a network needs, and the limits for one network or for all together.
fn needs(card: &CardSite, demand: &Demand) -> (Needs, [u64; RESOURCES]) {
    let (needs, [a_max, b_max, c_max]) = needs_of_routes(card, demand);
    // A network that learns has no routes, and its next hops are its ports.
    let [a, b, c] = needs.map(|(what, count)| (what, if demand.macs == 0 { count } else { 0 }));
    // One with entries has next hops, but no routes.
    let a = if demand.entries == 0 { a } else { (a.0, 0) };
    let entries = (ENTRY_ROWS, demand.entries.next_multiple_of(ENTRIES_TOGETHER).into());
    let [ranges, pairs, rules] = rows_of_policies(demand.policies);
    let (macs, slots) = ((MACS, demand.macs.into()), (GROUP_SLOTS, demand.slots.into()));
    let needs = [a, b, c, macs, slots, ranges, pairs, rules, entries];
    let [ranges, pairs, rules] = rows_of_policies(card.policies).map(|(_, max)| max);
    (
        needs,
        [a_max, b_max, c_max, card.macs.into(), card.slots.into(), ranges, pairs, rules, card.entries.into()],
    )
}

/// The same without those of networks that learn.
fn needs_of_routes(card: &CardSite, demand: &Demand) -> ([(&'static str, u64); 3], [u64; 3]) {
    match card.table {
        TableSite::Each { routes, locals, neighbours, hops } => {
            let room = if neighbours { locals.saturating_sub(demand.locals) } else { 0 };
            let addresses = demand.locals + demand.neighbours.min(room);
            let own = demand.routes.saturating_sub(addresses);
            let needs = [("routes", own), ("addresses", addresses), ("next hops", demand.hops)];
            (needs.map(|(what, count)| (what, count.into())), [routes, locals, hops].map(u64::from))
        }
        TableSite::Shared { words, hops } => {
            let takes = WORDS_PER_NETWORK + WORDS_PER_ROUTE * u64::from(demand.routes);
            let needs = [("words", takes), ("next hops", demand.hops.into()), ("addresses", 0)];
            (needs, [words, hops.into(), 0])
        }
        TableSite::Banks { sets, hops, .. } => {
            // Alone, no network needs rows of the CAM.
            let own = demand.shape.as_ref().map_or(0, |shape| shape.sets());
            let needs = [(SETS, own.into()), ("next hops", demand.hops.into()), ("addresses", 0)];
            (needs, [sets, hops, 0].map(u64::from))
        }
    }
}

/// The resource of networks that learn.
const MACS: &str = "MAC addresses";
/// The resource of networks with groups of next hops.
const GROUP_SLOTS: &str = "slots of groups of next hops";
/// The resource of networks with entries (kind `extract`).
const ENTRY_ROWS: &str = "rows of entries";
/// Its place among the others.
const ENTRY_ROWS_AT: usize = 8;
/// Entries that a card compares together. A network has whole groups of them.
const ENTRIES_TOGETHER: u32 = 4;
/// Place of the resources of networks that route by source among the others.
const POLICIES_AT: usize = 5;

/// The resources of networks that route by source.
fn rows_of_policies(rows: PolicyRows) -> [(&'static str, u64); 3] {
    rows.named().map(|(what, count)| (what, count.into()))
}

/// Resources of two banks.
const SETS: &str = "sets of the second bank";
const ROWS: &str = "rows of the Conflict CAM";
const ENTRIES: &str = "entries of the first bank";

/// Usage of two banks, with the limits of a card: each resource, amount used and total amount.
fn in_banks(usage: &DirUsage, sets: u32, cam_rows: u32) -> [(&'static str, u64, u64); 3] {
    let rows = usage.cam_rows as u64;
    [
        (SETS, usage.sets.into(), sets.into()),
        (ROWS, rows, cam_rows.into()),
        (ENTRIES, usage.slots as u64 + rows, SLOTS as u64),
    ]
}

/// Why a network cannot run on the card, even without other networks.
pub fn barred(site: &Site, demand: &Demand) -> Option<Lack> {
    let Some(card) = &site.card else { return Some(Lack::NoCard) };
    if demand.placement == Placement::Soft {
        return Some(Lack::Document);
    }
    if let Some(why) = demand.bound {
        return Some(Lack::Bound(why));
    }
    let image = || card.image.clone();
    if !card.kinds.contains(&demand.kind) {
        return Some(Lack::Kind { kind: demand.kind.name(), image: image() });
    }
    if !demand.route_by.is_default() && card.policies.is_none() {
        return Some(Lack::RouteBy { by: demand.route_by, image: image() });
    }
    if demand.entries > card.entries_each {
        return Some(Lack::Entries { has: demand.entries, max: card.entries_each, image: image() });
    }
    if let Some(port) = demand.ports.iter().find(|port| !card.ports.contains(*port)) {
        return Some(Lack::Port(port.clone()));
    }
    let (needs, max) = needs(card, demand);
    let large = needs.into_iter().zip(max).find(|((_, needs), max)| needs > max);
    let large = large.map(|((what, needs), max)| Lack::Large { what, needs, max, image: image() });
    // The last reason, because the others remain when the card is no longer drained.
    large.or(card.drained.then_some(Lack::Drained))
}

/// The used capacity of a card.
#[derive(Clone)]
pub struct CardRoom<'s> {
    card: Option<&'s CardSite>,
    networks: u64,
    /// Used parts of the tables that networks share.
    taken: [u64; RESOURCES],
    /// The networks in two banks, in their order.
    banks: Option<DirNeeds>,
}

impl<'s> CardRoom<'s> {
    /// The capacity of an empty card.
    pub fn new(site: &'s Site) -> Self {
        let card = site.card.as_ref();
        let has_banks = card.is_some_and(|card| matches!(card.table, TableSite::Banks { .. }));
        Self { card, networks: 0, taken: [0; RESOURCES], banks: has_banks.then(DirNeeds::default) }
    }

    /// The capacity of the card with the networks that are on it.
    pub fn of(site: &'s Site, demands: &[&Demand], sides: &[Side]) -> Self {
        let mut room = Self::new(site);
        let on = demands.iter().zip(sides).filter(|(_, side)| **side == Side::Card);
        // Networks that are on the card now were added before the others.
        let (there, coming): (Vec<_>, Vec<_>) = on.partition(|(demand, _)| demand.now == Some(Side::Card));
        there.into_iter().chain(coming).for_each(|(demand, _)| room.take(demand));
        room
    }

    /// Why a network that is not barred does not fit beside the networks on the card.
    pub fn lacks(&self, demand: &Demand) -> Option<Lack> {
        let Some(card) = self.card else { return Some(Lack::NoCard) };
        let max = u64::from(card.networks_max);
        if self.networks >= max {
            return Some(Lack::Full { what: "places for networks", needs: 1, free: 0, max });
        }
        if let TableSite::Each { .. } = card.table {
            return None;
        }
        if let Some(lack) = self.lacks_in_banks(card, demand) {
            return Some(lack);
        }
        let (needs, max) = needs(card, demand);
        let full = needs
            .into_iter()
            .zip(max)
            .zip(self.taken)
            .find(|(((_, needs), max), taken)| needs + taken > *max);
        full.map(|(((what, needs), max), taken)| Lack::Full {
            what,
            needs,
            free: max.saturating_sub(taken),
            max,
        })
    }

    /// Why a network's routes do not fit into the two banks beside the others'.
    fn lacks_in_banks(&self, card: &CardSite, demand: &Demand) -> Option<Lack> {
        let TableSite::Banks { sets, cam_rows, .. } = card.table else { return None };
        let (banks, shape) = self.banks.as_ref().zip(demand.shape.as_ref())?;
        let before = in_banks(&banks.usage(), sets, cam_rows);
        let after = in_banks(&banks.clone().add(shape), sets, cam_rows);
        let full = before.into_iter().zip(after).find(|(_, (_, used, max))| used > max);
        full.map(|((what, before, max), (_, after, _))| Lack::Full {
            what,
            needs: after - before,
            free: max.saturating_sub(before),
            max,
        })
    }

    /// Adds a network.
    pub fn take(&mut self, demand: &Demand) {
        let Some(card) = self.card else { return };
        self.networks += 1;
        if let Some((banks, shape)) = self.banks.as_mut().zip(demand.shape.as_ref()) {
            banks.add(shape);
        }
        if let TableSite::Shared { .. } | TableSite::Banks { .. } = card.table {
            let (needs, _) = needs(card, demand);
            self.taken.iter_mut().zip(needs).for_each(|(taken, (_, needs))| *taken += needs);
        }
    }

    /// Adds a network if it fits. Returns whether it does.
    pub fn take_if(&mut self, demand: &Demand) -> bool {
        let fits = self.lacks(demand).is_none();
        if fits {
            self.take(demand);
        }
        fits
    }

    /// Used and total amount of each resource.
    pub fn uses(&self) -> Vec<(&'static str, u64, u64)> {
        let Some(card) = self.card else { return Vec::new() };
        let mut uses = vec![("networks", self.networks, u64::from(card.networks_max))];
        if let TableSite::Shared { words, hops } = card.table {
            let [words_used, hops_used, ..] = self.taken;
            uses.extend([("words", words_used, words), ("next hops", hops_used, hops.into())]);
        }
        if let (TableSite::Banks { sets, cam_rows, hops }, Some(banks)) = (card.table, &self.banks) {
            uses.extend(in_banks(&banks.usage(), sets, cam_rows));
            uses.push(("next hops", self.taken[1], hops.into()));
        }
        if card.macs > 0 {
            uses.push((MACS, self.taken[3], card.macs.into()));
        }
        if card.slots > 0 {
            uses.push((GROUP_SLOTS, self.taken[4], card.slots.into()));
        }
        if card.entries > 0 {
            uses.push((ENTRY_ROWS, self.taken[ENTRY_ROWS_AT], card.entries.into()));
        }
        let policies = self.taken.into_iter().skip(POLICIES_AT).zip(rows_of_policies(card.policies));
        uses.extend(policies.filter(|(_, (_, max))| *max > 0).map(|(used, (what, max))| (what, used, max)));
        uses
    }
}

/// For each resource that all networks on the card share: the amount that each network needs, and the total.
/// For the exact scheduler.
pub fn shared_rows(card: &CardSite, demands: &[&Demand]) -> Vec<(Vec<u64>, u64)> {
    let mut rows = vec![(vec![1; demands.len()], u64::from(card.networks_max))];
    if let TableSite::Shared { words, hops } = card.table {
        let takes = |which: usize| demands.iter().map(|demand| needs(card, demand).0[which].1).collect();
        rows.extend([
            (takes(0), words),
            (takes(1), hops.into()),
            (takes(3), card.macs.into()),
            (takes(4), card.slots.into()),
            (takes(ENTRY_ROWS_AT), card.entries.into()),
        ]);
        let policies = rows_of_policies(card.policies).into_iter().enumerate();
        rows.extend(policies.map(|(which, (_, max))| (takes(POLICIES_AT + which), max)));
    }
    rows
}

/// Networks whose place is not the scheduler's decision: networks whose document names it, networks that
/// cannot run on the card, and (on the card, while there is room) networks that ask for low latency. Of
/// these, networks that are already on the card come first, then smaller ones.
pub fn fixed<'s>(site: &'s Site, demands: &[&Demand]) -> (Vec<Option<Side>>, CardRoom<'s>) {
    let mut sides: Vec<Option<Side>> =
        demands.iter().map(|demand| barred(site, demand).map(|_| Side::Soft)).collect();
    let mut room = CardRoom::new(site);
    for named in [true, false] {
        let first = |demand: &Demand| match named {
            true => demand.placement == Placement::Card,
            false => demand.placement == Placement::Auto && demand.latency == Latency::Low,
        };
        let mut turn: Vec<usize> =
            (0..demands.len()).filter(|at| sides[*at].is_none() && first(demands[*at])).collect();
        turn.sort_by_key(|at| (demands[*at].now != Some(Side::Card), demands[*at].routes, *at));
        for at in turn {
            let fits = room.take_if(demands[at]);
            sides[at] = Some(if fits { Side::Card } else { Side::Soft });
        }
    }
    (sides, room)
}
