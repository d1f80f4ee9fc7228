//! The core, for draining the card.

use std::collections::BTreeMap;
use std::sync::Arc;

use hue_intent::Card;

use super::Node;
use crate::api::{DrainRequest, EventKind, MigrateRequest, Problem, ProblemKind, SubstrateName};
use crate::node::command::Leaving;
use crate::node::drain::Place;
use crate::node::events::About;
use crate::node::moves::{Input, Stage};
use crate::node::networks::Entry;
use crate::store::Desired;

impl Node {
    /// Whether the card is drained.
    pub(super) fn is_drained(&self) -> bool {
        self.desired.intent.node.spec.card.as_ref().is_some_and(Card::is_drained)
    }

    /// Checks that software can serve the networks of the card.
    ///
    /// # Errors
    /// `full`, with each network that would get less bandwidth than its document needs.
    pub(super) fn can_drain(&self) -> Result<(), Problem> {
        let lacks = if self.card.is_some() { self.question(false).lacks_without_card() } else { Vec::new() };
        if lacks.is_empty() {
            return Ok(());
        }
        let why: Vec<String> = lacks.iter().map(|(name, why)| format!("network '{name}': {why}")).collect();
        let detail = format!(
            "the card is not drained, and no network has moved, because software cannot serve all of them: {}; lower \
             `needs` in the documents, or use --force: then networks move and get less",
            why.join("; ")
        );
        Err(Problem::new(ProblemKind::Full, detail))
    }

    /// Whether the card is drained has changed: says so, and moves networks accordingly.
    pub(super) fn follow_drained(&mut self) {
        if self.desired.intent.node.spec.card.is_none() {
            return self.ask_scheduler(); // it was drained, and is gone
        }
        self.tell_drained();
        if self.is_drained() {
            for name in self.on_card() {
                self.give_moves(Input::Leave(name, None));
            }
        } else {
            // The scheduler's last answer was about a drained card.
            self.scheduling.forget();
            self.give_moves(Input::HasRoom);
        }
        self.ask_scheduler();
        self.place_all();
        self.changed = true;
    }

    fn tell_drained(&self) {
        let on_card = self.networks.iter().filter(|(_, entry)| entry.is_on_card()).count();
        let drained = "the card is drained: no network runs on it until `hueplane undrain card`";
        let (kind, text) = match (self.is_drained(), on_card) {
            (true, 0) => (EventKind::CardDrained, drained.to_owned()),
            (true, _) => {
                (EventKind::CardDrained, format!("{drained}; networks that move to software: {on_card}"))
            }
            (false, _) => {
                (EventKind::CardUndrained, "the card is no longer drained: networks return to it".to_owned())
            }
        };
        self.shared.events.add(kind, About::Node, text);
    }

    /// Puts documents in force that say that the card is no longer drained.
    pub(super) fn undrain(&mut self, desired: Arc<Desired>) {
        self.desired = desired;
        self.follow_drained();
    }

    /// Puts the drained state in force and moves the networks of the card to software.
    pub(super) fn drain(&mut self, desired: Option<Arc<Desired>>, request: &DrainRequest) -> Leaving {
        if let Some(desired) = desired {
            self.desired = desired;
            // The scheduler places no network while the card is drained, so it is not asked.
            self.tell_drained();
            self.changed = true;
        }
        let mut move_to = MigrateRequest::new(SubstrateName::Soft);
        move_to.fail = request.fail;
        let mut leaving = Vec::new();
        for name in self.on_card() {
            let answer = self.leave_drained(&name, &move_to);
            leaving.push((name, answer));
        }
        // Networks that are in software already learn why they stay there.
        self.place_all();
        leaving
    }

    fn place_all(&mut self) {
        for name in self.in_order(None) {
            self.give_moves(Input::Place(name));
        }
    }

    /// The networks that are on the card and not moving, in the order of names.
    fn on_card(&self) -> Vec<String> {
        let is_there =
            |entry: &Entry| entry.vid().and_then(|vid| self.moves.seats().stage(vid)) == Some(Stage::Card);
        self.networks.iter().filter(|(_, entry)| is_there(entry)).map(|(name, _)| name.clone()).collect()
    }

    /// The networks that are on the card, and why networks that could be there are not.
    pub(super) fn places(&self) -> BTreeMap<String, Place> {
        let place = |(name, entry): (&String, &Entry)| {
            let placement = entry.want()?.network.spec.placement;
            let why = entry.why_soft().cloned().filter(|_| !entry.is_on_card());
            Some((name.clone(), Place { on_card: entry.is_on_card(), placement, why }))
        };
        self.networks.iter().filter_map(place).collect()
    }
}
