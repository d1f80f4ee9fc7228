//! The internal state of a node that a caller drives, part by part, for checkers.

use std::collections::{BTreeMap, BTreeSet};

use hue_card::Runner;
use hue_card::generated::{self as regs, NetworkRow};
use hue_planes::Adjacency;
use hue_planes::group::Slots;
use hue_soft::NetworkTotals;
use hue_substrate::{Entries, RouteKey};
use hue_tables::{NextHop, Prefix, Vid};

use super::hand::ByHand;
use super::journal::Input;
use crate::api::{NetworkState, Stats};
use crate::node::card::CardSide;
use crate::node::core::Node;
use crate::node::moves::Stage;
use crate::node::networks::Entry;
use crate::node::stats;
use crate::node::view::CardView;

/// Place of a network according to control, if the card knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seated {
    /// In software.
    Software,
    /// In software, moving to the card.
    Coming,
    /// On the card.
    Card,
    /// On the card, moving to software.
    Leaving,
}

/// A network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkLook {
    /// Name.
    pub name: String,
    /// Id, once it is loaded.
    pub vid: Option<Vid>,
    /// Whether it is in the state of its document.
    pub as_wanted: bool,
    /// State.
    pub state: NetworkState,
    /// What is not in the desired state.
    pub reason: Option<String>,
    /// Whether the API says that it is on the card.
    pub on_card: bool,
    /// Why it is not on the card.
    pub why_soft: Option<String>,
    /// Placement in its document.
    pub placement: hue_intent::Placement,
    /// Where the scheduler puts it.
    pub scheduled: Option<hue_control::schedule::Side>,
    /// Whether all of its ports belong to the card.
    pub fits_ports: bool,
    /// Its place according to control, if the card knows it.
    pub seated: Option<Seated>,
    /// State in the card's driver and in the network's row, if the driver knows the network.
    pub card: Option<OnCard>,
    /// Software's counters of it.
    pub totals: Option<NetworkTotals>,
}

/// A network on the card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnCard {
    /// Whether software decides, according to the driver.
    pub software: bool,
    /// VID and software flag of its row, if valid.
    pub row: Option<(u16, bool)>,
    /// Routes on the card.
    pub routes: usize,
    /// Whether the card's table agrees with the namespace.
    pub same_table: bool,
    /// Whether the groups of next hops in the card's tables are those of the namespace, slot by slot.
    pub same_groups: bool,
}

/// The card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CardLook {
    /// Its image.
    pub image: String,
    /// State of its thread; `None` if it has failed.
    pub inside: Option<hue_card::Inside>,
    /// Networks known to its driver.
    pub networks: Vec<Vid>,
    /// Whether an index is lent for a move.
    pub lent: bool,
    /// Clocks left of a hold of frames.
    pub hold_clocks: u32,
    /// Networks with frames in output queues of MAC ports.
    pub waits: u32,
    /// Maximum networks with a table at the same time.
    pub planes: u32,
}

/// Everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// Networks, sorted by name.
    pub networks: Vec<NetworkLook>,
    /// The card, if there is one.
    pub card: Option<CardLook>,
    /// Why there is no card although one is desired.
    pub card_problem: Option<String>,
    /// Workers.
    pub workers: Vec<hue_soft::Inside>,
    /// Number of networks in software.
    pub in_software: usize,
    /// Whether an image is being loaded or the scheduler is running.
    pub unsettled: bool,
    /// Ports that are not open.
    pub closed: BTreeSet<String>,
    /// Networks in the documents.
    pub desired: BTreeSet<String>,
}

impl ByHand {
    /// Reads everything. This only advances the card's clock, by the cycles that reading its registers takes.
    #[must_use]
    pub fn look(&self) -> Look {
        self.note(|| Input::Look);
        let node = &self.node;
        let networks = node.networks.iter().map(|(name, entry)| network(node, name, entry)).collect();
        let inside = |worker| node.live.inside(worker).ok();
        Look {
            networks,
            card: node.card.as_ref().map(card),
            card_problem: node.card_state.problem().cloned(),
            workers: (0..node.live.workers()).filter_map(inside).collect(),
            in_software: hue_substrate::Substrate::capacity(&node.live).networks,
            unsettled: node.loading.is_under_way() || node.scheduling.is_running(),
            closed: node
                .ports
                .iter()
                .filter(|(_, port)| !port.is_open())
                .map(|(name, _)| name.clone())
                .collect(),
            desired: node.desired.intent.networks.iter().map(|one| one.name().to_owned()).collect(),
        }
    }

    /// Counters, as in the API.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.note(|| Input::Stats);
        let shared = &self.node.shared;
        let view = shared.view();
        let counts = self.node.card.as_ref().and_then(|card| {
            let counts = |runner: &mut Runner| {
                let vids = self.node.moves.seats().vids();
                let counts = vids.filter_map(|vid| Some((vid, runner.counts(vid)?)));
                (counts.collect(), runner.unclaimed())
            };
            card.live.here()?.look(counts)
        });
        let (counts, unclaimed) = counts.unwrap_or_default();
        let totals = view.card.as_ref().map(CardView::totals);
        let on_card = stats::OnCard {
            counts,
            unclaimed,
            totals: totals.unwrap_or_default(),
            since: view.card.as_ref().map(|card| card.since),
        };
        stats::stats(&view, &shared.totals, &on_card, shared.started, None).unwrap_or_default()
    }

    /// Events as text, the latest last.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        let page = self.node.shared.events.since(0, usize::MAX);
        page.events
            .iter()
            .map(|event| format!("{:?} {:?}{:?}: {}", event.kind, event.network, event.port, event.message))
            .collect()
    }
}

fn network(node: &Node, name: &str, entry: &Entry) -> NetworkLook {
    let vid = entry.vid();
    let routes = node.table_of(entry);
    let seated = vid.and_then(|vid| node.moves.seats().stage(vid)).map(|stage| match stage {
        Stage::Software => Seated::Software,
        Stage::Coming => Seated::Coming,
        Stage::Card => Seated::Card,
        Stage::Leaving => Seated::Leaving,
    });
    let on_card = vid.zip(node.card.as_ref()).and_then(|(vid, card)| {
        let table = routes?;
        let (groups, (hops, routes)) = (table.published_groups(), table.published());
        let (hops, groups) = (hops.as_slice(), groups.as_slice());
        match &routes {
            Entries::Lpm32(routes) => seen_on_card(card, vid, (hops, groups), routes),
            Entries::Lpm128(routes) | Entries::Sliced(routes) => {
                seen_on_card(card, vid, (hops, groups), routes)
            }
            Entries::Dual(narrow, wide) => {
                let one = seen_on_card(card, vid, (hops, groups), narrow)?;
                let other = seen_on_card(card, vid, (hops, groups), wide)?;
                let (routes, same_table) = (one.routes + other.routes, one.same_table && other.same_table);
                Some(OnCard { routes, same_table, ..one })
            }
            // No card has networks of these in a table of routes.
            Entries::Exact(_) | Entries::Ternary(_) | Entries::Nearest(_) | Entries::None => None,
        }
    });
    let fits = |card: &CardSide| {
        let mut ports = entry.program().into_iter().flat_map(|program| &program.ports);
        ports.all(|port| card.numbers.contains_key(&port.port))
    };
    NetworkLook {
        name: name.to_owned(),
        vid,
        as_wanted: entry.want().is_some() && entry.is_as_wanted(),
        state: node.condition(entry).0,
        reason: node.condition(entry).1.cloned(),
        on_card: entry.is_on_card(),
        why_soft: entry.why_soft().cloned(),
        placement: entry.have().map(|have| have.network.spec.placement).unwrap_or_default(),
        scheduled: node.scheduling.place(name).map(|(side, _)| *side),
        fits_ports: node.card.as_ref().is_some_and(fits),
        seated,
        card: on_card,
        totals: vid.and_then(|vid| node.live.totals(vid)),
    }
}

/// A network on the card, compared with the table that the card should have.
fn seen_on_card<K: RouteKey>(
    card: &CardSide,
    vid: Vid,
    (hops, groups): (&[Adjacency], &[(NextHop, Slots)]),
    routes: &[(Prefix<K>, NextHop)],
) -> Option<OnCard> {
    let table = table(card, hops, routes);
    card.live.here()?.look(|runner| on_card(runner, vid, &table, groups)).flatten()
}

/// The table that the card should have.
fn table<K: RouteKey>(
    card: &CardSide,
    hops: &[Adjacency],
    routes: &[(Prefix<K>, NextHop)],
) -> BTreeMap<Prefix<K>, Adjacency> {
    let hop = |hop: NextHop| {
        let hop = hops.get(usize::from(hop.get())).copied().unwrap_or(Adjacency::NONE);
        hop.on_port(card.number(hop.port()))
    };
    routes.iter().map(|(prefix, row)| (*prefix, hop(*row))).collect()
}

fn on_card<K: RouteKey>(
    runner: &mut Runner,
    vid: Vid,
    table: &BTreeMap<Prefix<K>, Adjacency>,
    groups: &[(NextHop, Slots)],
) -> Option<OnCard> {
    let card = runner.card();
    let software = card.is_in_software(vid)?;
    let net = card.net(vid)?;
    let program = card.programs().find(|program| program.vid == vid)?;
    let hop =
        |hop: NextHop| program.next_hops.get(usize::from(hop.get())).copied().unwrap_or(Adjacency::NONE);
    let (routes, same_table) = if card.follows() {
        let answer = |key| card.answer(vid, key).map(hop);
        let behind = |prefix: &Prefix<K>| prefix.last().next().unwrap_or_default();
        let keys = table.keys().flat_map(|prefix| [prefix.addr(), prefix.last(), behind(prefix)]);
        let same = keys.into_iter().all(|key| answer(key) == longest(table, key));
        (if card.has_table(vid) { table.len() } else { 0 }, same)
    } else {
        let routes = K::routes(&program.entries).iter().map(|(prefix, row)| (*prefix, hop(*row)));
        let has: BTreeMap<Prefix<K>, Adjacency> = routes.collect();
        (has.len(), has == *table)
    };
    let row = card.device().read_row::<NetworkRow>(u32::from(net)).ok();
    let slots = |slots: &Slots| slots.rows().iter().map(|row| row.get()).collect();
    let mut wanted: Vec<(u16, Vec<u16>)> = groups.iter().map(|(row, of)| (row.get(), slots(of))).collect();
    wanted.sort_unstable();
    let same_groups = card.read_groups(vid).is_ok_and(|groups| groups == wanted);
    Some(OnCard {
        software,
        row: row.filter(|row| row.valid).map(|row| (row.vid, row.software)),
        routes,
        same_table,
        same_groups,
    })
}

/// The longest match for an address in a table.
fn longest<K: RouteKey>(table: &BTreeMap<Prefix<K>, Adjacency>, key: K) -> Option<Adjacency> {
    (0..=K::BITS).rev().find_map(|len| table.get(&Prefix::containing(key, len)).copied())
}

fn card(card: &CardSide) -> CardLook {
    let read = |runner: &mut Runner| {
        let networks: Vec<Vid> = runner.card().programs().map(|program| program.vid).collect();
        let device = runner.card().device();
        let mut register = |address| device.read(address).unwrap_or(u32::MAX);
        let hold_clocks = register(regs::OUT_HOLD) & regs::OUT_HOLD_CLOCKS;
        let waits = regs::OUT_WAITS.map(&mut register).iter().map(|word| word.count_ones()).sum();
        (networks, hold_clocks, waits, runner.card().is_lending(), runner.inside())
    };
    let seen = card.live.here().and_then(|live| live.look(read));
    let image = card.description().name.clone();
    let planes = match card.description().layout {
        hue_card::Layout::Tcam => card.description().planes,
        hue_card::Layout::Dag36 | hue_card::Layout::Sram | hue_card::Layout::Dir => {
            card.description().indices(true)
        }
    };
    match seen {
        None => CardLook {
            image,
            inside: None,
            networks: Vec::new(),
            lent: false,
            hold_clocks: 0,
            waits: 0,
            planes,
        },
        Some((networks, hold_clocks, waits, lent, inside)) => {
            CardLook { image, inside: Some(inside), networks, lent, hold_clocks, waits, planes }
        }
    }
}
