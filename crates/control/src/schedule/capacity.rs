//! What the card can hold: why a network can never run there, and what is left when others do.

use std::fmt;

use super::{CardSite, Demand, Side, Site, TableSite};
use hue_intent::{Latency, Placement};

/// Words that a route takes in the card's shared memories, as reckoned. Tables of routers take about 2 (`labs/tables`), a few
/// routes far apart up to 12. `hueplane table size --encoding dag36` says how many a table takes (4.5 bytes each).
const WORDS_PER_ROUTE: u64 = 4;
/// Words that a network takes there apart from its routes: its first node.
const WORDS_PER_NETWORK: u64 = 32;

/// Why a network cannot run on the card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lack {
    /// There is none.
    NoCard,
    /// Its document says so.
    Document,
    /// Its kind of plane is not in the image.
    Kind {
        /// The kind.
        kind: &'static str,
        /// The image.
        image: String,
    },
    /// One of its ports is not the card's.
    Port(String),
    /// Its table is larger than the image's, whoever else is there.
    Large {
        /// Of what.
        what: &'static str,
        /// What it needs.
        needs: u64,
        /// What there is.
        max: u64,
        /// The image.
        image: String,
    },
    /// Others have taken what it needs.
    Full {
        /// Of what.
        what: &'static str,
        /// What it needs.
        needs: u64,
        /// What is left.
        free: u64,
        /// What there is.
        max: u64,
    },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCard => f.write_str("the node has no card"),
            Self::Document => f.write_str("its document says soft"),
            Self::Kind { kind, image } => write!(f, "image '{image}' has no plane of kind {kind}"),
            Self::Port(port) => write!(f, "its port '{port}' is not one of the card's"),
            Self::Large { what, needs, max, image } => {
                write!(f, "it needs {needs} {what}: image '{image}' has {max}")
            }
            Self::Full { what, needs: 1, free: 0, max } => {
                write!(f, "the card's {what} are all taken ({max})")
            }
            Self::Full { what, needs, free, max } => {
                write!(f, "it needs {needs} {what}: the card has {free} free of {max}")
            }
        }
    }
}

/// What a network takes of a card, by what.
type Needs = [(&'static str, u64); 3];

/// What it takes, and what one network alone or all together may take.
fn needs(card: &CardSite, demand: &Demand) -> (Needs, [u64; 3]) {
    match card.table {
        TableSite::Each { routes, locals, hops } => {
            let own = demand.routes.saturating_sub(demand.locals);
            let needs = [("routes", own), ("local addresses", demand.locals), ("next hops", demand.hops)];
            (needs.map(|(what, count)| (what, count.into())), [routes, locals, hops].map(u64::from))
        }
        TableSite::Shared { words, hops } => {
            let takes = WORDS_PER_NETWORK + WORDS_PER_ROUTE * u64::from(demand.routes);
            let needs = [("words", takes), ("next hops", demand.hops.into()), ("local addresses", 0)];
            (needs, [words, hops.into(), 0])
        }
    }
}

/// Why a network can never run on the card, whoever else does.
pub fn barred(site: &Site, demand: &Demand) -> Option<Lack> {
    let Some(card) = &site.card else { return Some(Lack::NoCard) };
    if demand.placement == Placement::Soft {
        return Some(Lack::Document);
    }
    let image = || card.image.clone();
    if !card.kinds.contains(&demand.kind) {
        return Some(Lack::Kind { kind: demand.kind.name(), image: image() });
    }
    if let Some(port) = demand.ports.iter().find(|port| !card.ports.contains(*port)) {
        return Some(Lack::Port(port.clone()));
    }
    let (needs, max) = needs(card, demand);
    let large = needs.into_iter().zip(max).find(|((_, needs), max)| needs > max);
    large.map(|((what, needs), max)| Lack::Large { what, needs, max, image: image() })
}

/// What is taken of a card.
#[derive(Clone)]
pub struct CardRoom<'s> {
    card: Option<&'s CardSite>,
    networks: u64,
    /// Of tables that networks share.
    taken: [u64; 3],
}

impl<'s> CardRoom<'s> {
    /// Of an empty card.
    pub fn new(site: &'s Site) -> Self {
        Self { card: site.card.as_ref(), networks: 0, taken: [0; 3] }
    }

    /// Of the card with the networks that are on it.
    pub fn of(site: &'s Site, demands: &[&Demand], sides: &[Side]) -> Self {
        let mut room = Self::new(site);
        let on = demands.iter().zip(sides).filter(|(_, side)| **side == Side::Card);
        on.for_each(|(demand, _)| room.take(demand));
        room
    }

    /// Why a network that is not barred does not fit beside those that are there.
    pub fn lacks(&self, demand: &Demand) -> Option<Lack> {
        let Some(card) = self.card else { return Some(Lack::NoCard) };
        let max = u64::from(card.networks_max);
        if self.networks >= max {
            return Some(Lack::Full { what: "places for networks", needs: 1, free: 0, max });
        }
        let TableSite::Shared { .. } = card.table else { return None };
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

    /// Puts a network there.
    pub fn take(&mut self, demand: &Demand) {
        let Some(card) = self.card else { return };
        self.networks += 1;
        if let TableSite::Shared { .. } = card.table {
            let (needs, _) = needs(card, demand);
            self.taken.iter_mut().zip(needs).for_each(|(taken, (_, needs))| *taken += needs);
        }
    }

    /// Puts it there if it fits; whether it did.
    pub fn take_if(&mut self, demand: &Demand) -> bool {
        let fits = self.lacks(demand).is_none();
        if fits {
            self.take(demand);
        }
        fits
    }

    /// What is used of what there is.
    pub fn uses(&self) -> Vec<(&'static str, u64, u64)> {
        let Some(card) = self.card else { return Vec::new() };
        let mut uses = vec![("networks", self.networks, u64::from(card.networks_max))];
        if let TableSite::Shared { words, hops } = card.table {
            let [words_used, hops_used, _] = self.taken;
            uses.extend([("words", words_used, words), ("next hops", hops_used, hops.into())]);
        }
        uses
    }
}

/// Rows of capacities that all networks on the card share: how much each takes, and how much there is. For the exact
/// scheduler.
pub fn shared_rows(card: &CardSite, demands: &[&Demand]) -> Vec<(Vec<u64>, u64)> {
    let mut rows = vec![(vec![1; demands.len()], u64::from(card.networks_max))];
    if let TableSite::Shared { words, hops } = card.table {
        let takes = |which: usize| demands.iter().map(|demand| needs(card, demand).0[which].1).collect();
        rows.extend([(takes(0), words), (takes(1), hops.into())]);
    }
    rows
}

/// Places that are not the scheduler's to choose: those that documents name, those of networks that the card cannot
/// have, and on the card, while there is room, those of networks that ask for low latency. Who is there already comes
/// first, then who takes less.
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
