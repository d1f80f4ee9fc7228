//! The core, for the scheduler: its questions, and its answers.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use hue_control::schedule::{Demand, Schedule, Side, Site, TableSite};
use hue_substrate::Program;

use super::Node;
use crate::node::card::CardNews;
use crate::node::message::Message;
use crate::node::moves::Input;
use crate::node::plan::Question;
use crate::plan::card_site;

impl Node {
    /// The question to a scheduler at this moment.
    pub(super) fn question(&self, from_traffic: bool) -> Question {
        let node = &self.desired.intent.node;
        let ports = node.spec.card.as_ref().map_or(&[][..], |card| &card.ports);
        let card = self.card.as_ref().map(|card| card_site(card.description(), ports));
        let workers = u16::try_from(self.shared.workers).unwrap_or(u16::MAX);
        let programs: BTreeMap<&str, &Program> =
            self.compiled.programs.iter().map(|program| (program.name.as_str(), program)).collect();
        let rates = self.shared.planning.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let mut demands = Vec::with_capacity(self.networks.len());
        let mut measured = 0;
        for (name, entry) in self.networks.iter() {
            let Some(want) = entry.want() else { continue };
            let program = programs.get(name.as_str()).copied().unwrap_or(&want.program);
            let mut demand = Demand::of(&want.network, program, want.config.carries);
            if let Some(table) = self.table_of(entry) {
                let (counts, each) = (table.rib().counts(), table.rib().rows_of_each());
                // While an image is loaded, networks that were on the card count as being there.
                let had = self.loading.chooses() && self.loading.had(name);
                let now = if entry.is_on_card() || had { Side::Card } else { Side::Soft };
                demand =
                    demand.at(now, counts.routes, counts.neighbours, each * counts.rows, each * counts.slots);
            }
            // Routes of other layouts are only counted.
            if card.as_ref().is_some_and(|card| matches!(card.table, TableSite::Banks { .. })) {
                demand = match self.table_of(entry) {
                    Some(table) => demand.in_banks(table.published().1.lpm32()),
                    None => demand.in_banks(program.entries.lpm32()),
                };
            }
            if let Some(bps) = rates.rate(name).filter(|_| from_traffic) {
                demand.bandwidth_bps = bps;
                measured += 1;
            }
            demands.push(demand);
        }
        Question {
            site: Site::of(node, workers, card),
            demands,
            kind: node.spec.scheduler.as_ref().map(|scheduler| scheduler.kind).unwrap_or_default(),
            measured: from_traffic.then_some(measured),
        }
    }

    /// Asks the scheduler, if the node's document names one, where networks with `placement: auto` shall run. The
    /// answer comes as [`CardNews::Scheduled`], because the solver may take long.
    pub(super) fn ask_scheduler(&mut self) {
        if self.card.is_none() || self.desired.intent.node.spec.scheduler.is_none() {
            if self.scheduling.forget() {
                for name in self.networks.names() {
                    self.give_moves(Input::Place(name));
                }
            }
            return;
        }
        let from_traffic =
            self.desired.intent.node.spec.scheduler.as_ref().is_some_and(|one| one.from_traffic);
        if !self.scheduling.begin() {
            return;
        }
        let (question, sender) = (self.question(from_traffic), self.sender.clone());
        let answer = move || {
            let schedule = question.schedule(None);
            let _ = sender.send(Message::Card(CardNews::Scheduled(Box::new(schedule))));
        };
        if let Err(error) = self.drive.aside("hue-plan", answer) {
            tracing::warn!(%error, "the scheduler cannot run: networks stay where they are");
            self.scheduling.give_up();
        }
    }

    /// The same when new measured rates are available and the scheduler uses them.
    pub(super) fn ask_scheduler_of_traffic(&mut self) {
        if self.desired.intent.node.spec.scheduler.as_ref().is_some_and(|one| one.from_traffic) {
            self.ask_scheduler();
        }
    }

    /// The scheduler has answered: moves networks with `placement: auto` accordingly.
    pub(super) fn scheduled(&mut self, schedule: &Schedule) {
        let chooses = self.loading.chooses();
        if self.desired.intent.node.spec.scheduler.is_none() {
            self.scheduling.give_up();
            if chooses {
                self.chosen(Some(schedule));
            }
            return; // otherwise, the answer is too late
        }
        if self.scheduling.answered(schedule) {
            self.ask_scheduler();
        }
        if chooses && !self.scheduling.is_running() {
            return self.chosen(Some(schedule));
        }
        let names: Vec<String> = schedule.networks.iter().map(|one| one.name.clone()).collect();
        for name in names {
            self.give_moves(Input::Place(name));
        }
    }
}
