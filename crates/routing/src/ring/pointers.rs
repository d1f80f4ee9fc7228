//! Pointers: labels of hosts elsewhere that this router, or a neighbour of it, sends packets to.
//!
//! Who wants to send packets for a label says so to the next router on the way to the label's router, which wants it from the
//! one behind it, and so on; the label's router has it. [`Body::Have`] comes back the same way. Invariants: a router has an entry
//! for a label only while the next router has one, so a packet never meets a router that knows less than the one before. All
//! of it is forgotten if it is not repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use hue_wire::rofl::Label;

use super::body::{Body, ITEMS_MAX, Located};
use super::drops::Drop;
use super::links::{Hop, Route};

/// Most labels that a neighbour may want.
pub const WANTS_MAX: usize = 8192;
/// Labels in a message, so that it fits 1,280 bytes with the longest labels.
const BATCH: usize = 32;

const _: () = assert!(BATCH <= ITEMS_MAX);

/// A label that a neighbour wants.
#[derive(Clone, Copy, Debug)]
struct Want {
    router: Label,
    ends: Duration,
    /// Whether the neighbour knows that it has it.
    told: bool,
}

/// See the head of this file.
#[derive(Clone, Default, Debug)]
pub struct Pointers {
    /// By neighbour, what it wants.
    wants: BTreeMap<Hop, BTreeMap<Label, Want>>,
    /// By neighbour, what it has, and until when that is true unless it repeats it.
    has: BTreeMap<Hop, BTreeMap<Label, Duration>>,
    /// From which neighbour each was wanted.
    asked: BTreeMap<Label, (Label, Hop)>,
    /// Those that are entries.
    up: BTreeMap<Label, Hop>,
}

impl Pointers {
    /// Those that packets can take.
    #[must_use]
    pub fn up(&self) -> &BTreeMap<Label, Hop> {
        &self.up
    }

    /// How many are wanted from neighbours.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    /// A neighbour wants labels.
    ///
    /// # Errors
    /// If it wants too many.
    pub fn want(&mut self, from: Hop, labels: &[Located], ends: Duration) -> Result<(), Drop> {
        let wants = self.wants.entry(from).or_default();
        for (label, router) in labels {
            if wants.len() >= WANTS_MAX && !wants.contains_key(label) {
                return Err(Drop::LabelsFull);
            }
            // It may have missed what it was told.
            wants.insert(*label, Want { router: *router, ends, told: false });
        }
        Ok(())
    }

    /// A neighbour has labels.
    pub fn have(&mut self, from: Hop, labels: &[Label], ends: Duration) {
        let asked = &self.asked;
        let wanted = labels.iter().filter(|label| asked.get(*label).is_some_and(|(_, hop)| *hop == from));
        self.has.entry(from).or_default().extend(wanted.map(|label| (*label, ends)));
    }

    /// A neighbour does not have labels any more.
    pub fn gone(&mut self, from: Hop, labels: &[Label]) {
        if let Some(has) = self.has.get_mut(&from) {
            has.retain(|label, _| !labels.contains(label));
        }
    }

    /// A neighbour is gone.
    pub fn forget(&mut self, hop: Hop) {
        self.wants.remove(&hop);
        self.has.remove(&hop);
    }

    /// Forgets what was not repeated in time.
    pub fn expire(&mut self, now: Duration) {
        for wants in self.wants.values_mut() {
            wants.retain(|_, want| want.ends > now);
        }
        for has in self.has.values_mut() {
            has.retain(|_, ends| *ends > now);
        }
    }

    /// Wants everything again from neighbours, so that they do not forget it.
    pub fn repeat(&self) -> Vec<(Hop, Body)> {
        let mut by_hop: BTreeMap<Hop, Vec<Located>> = BTreeMap::new();
        for (label, (router, hop)) in &self.asked {
            by_hop.entry(*hop).or_default().push((*label, *router));
        }
        batches(by_hop, Body::Want)
    }

    /// Brings everything in line with what this router wants for its own labels (`mine`: label, and its router), with the ways
    /// to routers, and with the labels that are here. Returns messages to neighbours.
    pub fn settle(
        &mut self,
        mine: &BTreeMap<Label, Label>,
        routes: &BTreeMap<Label, Route>,
        is_here: impl Fn(Label) -> bool,
    ) -> Vec<(Hop, Body)> {
        let mut wanted = mine.clone();
        for (from, wants) in &self.wants {
            for (label, want) in wants {
                // A neighbour on whose side the label is does not want it from here for long.
                let returns = routes.get(&want.router).is_none_or(|route| route.hop == *from);
                if !returns && !is_here(*label) {
                    wanted.entry(*label).or_insert(want.router);
                }
            }
        }
        let mut asks: BTreeMap<Hop, Vec<Located>> = BTreeMap::new();
        let mut asked = BTreeMap::new();
        self.up.clear();
        for (label, router) in wanted {
            let Some(route) = routes.get(&router) else { continue };
            let ask = (router, route.hop);
            if self.asked.get(&label) != Some(&ask) {
                asks.entry(route.hop).or_default().push((label, router));
            }
            asked.insert(label, ask);
            if self.has.get(&route.hop).is_some_and(|has| has.contains_key(&label)) {
                self.up.insert(label, route.hop);
            }
        }
        self.asked = asked;
        let (mut have, mut gone) = (BTreeMap::new(), BTreeMap::new());
        for (from, wants) in &mut self.wants {
            for (label, want) in wants {
                let has = is_here(*label) || self.up.get(label).is_some_and(|hop| hop != from);
                if has != want.told {
                    want.told = has;
                    let list: &mut BTreeMap<Hop, Vec<Label>> = if has { &mut have } else { &mut gone };
                    list.entry(*from).or_default().push(*label);
                }
            }
        }
        let mut out = batches(gone, Body::Gone);
        out.extend(batches(asks, Body::Want));
        out.extend(batches(have, Body::Have));
        out
    }
}

fn batches<T: Clone>(by_hop: BTreeMap<Hop, Vec<T>>, body: impl Fn(Vec<T>) -> Body) -> Vec<(Hop, Body)> {
    let all = by_hop.iter().flat_map(|(hop, list)| list.chunks(BATCH).map(|some| (*hop, some.to_vec())));
    all.map(|(hop, some)| (hop, body(some))).collect()
}
