//! The scheduler on a live node: its questions and answers, and since when networks are in their places.
//!
//! Flow: desired state, card, tables, counters → [`Question`] (the node's thread, quick) → schedule (any thread; the
//! solver may take long) → API. This module moves nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hue_control::schedule::traffic::{Counted, Rates, Smoothing};
use hue_control::schedule::{
    Demand, Schedule, Side, Site, TableSite, current, lacks_bandwidth, lacks_without_card, schedule,
};
use hue_intent::SchedulerKind;
use hue_planes::Loss;
use hue_substrate::Program;

use super::NodeHandle;
use super::card::CardNews;
use super::command::Command;
use super::core::{Message, Node};
use super::view::View;
use crate::api::{Placement, Plan, Timestamp};
use crate::backend::Backend;
use crate::plan::{card_site, plan};

/// How often counters are read to compute rates.
const MEASURE: Duration = Duration::from_secs(5);
/// Reasons of losses that count as traffic offered to a network.
const OFFERED: [Loss; 3] = [Loss::RingQuota, Loss::HandoverFull, Loss::QueueFull];

/// Inputs of the scheduler besides documents and tables.
pub struct Planning {
    started: Instant,
    rates: Mutex<Rates>,
    /// Where networks are, and since when.
    since: Mutex<BTreeMap<String, (String, Timestamp)>>,
}

impl Default for Planning {
    fn default() -> Self {
        let (rates, since) = (Rates::new(Smoothing::default()), BTreeMap::new());
        Self { started: Instant::now(), rates: Mutex::new(rates), since: Mutex::new(since) }
    }
}

impl Planning {
    /// Records where networks are now.
    pub fn follow(&self, view: &View) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|name, _| view.network(name).is_some());
        for network in &view.networks {
            let api = &network.api;
            let stays = since.get(&api.name).is_some_and(|(substrate, _)| *substrate == api.substrate);
            if !stays {
                since.insert(api.name.clone(), (api.substrate.clone(), Timestamp::now()));
            }
        }
    }

    /// Where networks are, since when, and why.
    pub fn placements(&self, view: &View, question: &Question) -> Vec<Placement> {
        let reasons = current(&question.site, &question.demands);
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let placement = |network: &super::view::NetworkView| {
            let api = &network.api;
            // A network that moved meanwhile has no reasons yet.
            let reason = reasons.network(&api.name).filter(|one| one.side.name() == api.substrate);
            Placement {
                network: api.name.clone(),
                placement: reason.map_or("auto", |one| one.placement.name()).to_owned(),
                substrate: api.substrate.clone(),
                since: since.get(&api.name).map_or_else(Timestamp::now, |(_, since)| *since),
                why: reason.map(|one| one.why.clone()),
                // The card's own reason is more accurate than the estimate.
                why_not: api.why_soft.clone().or_else(|| reason.map(|one| one.why_not.clone())),
            }
        };
        view.networks.iter().map(|network| placement(network)).collect()
    }
}

/// A question to a scheduler.
pub struct Question {
    site: Site,
    demands: Vec<Demand>,
    /// The scheduler of the node's document.
    kind: SchedulerKind,
    /// With measured rates: how many of the networks have one.
    measured: Option<usize>,
}

impl Question {
    /// Where networks shall run. The solver may take seconds (`hue_control::schedule` has its limits).
    pub fn schedule(&self, kind: Option<SchedulerKind>) -> Schedule {
        schedule(&self.site, &self.demands, kind.unwrap_or(self.kind))
    }

    /// Why a network cannot have the rate that it needs there.
    pub fn lacks_bandwidth(&self, name: &str, to: Side) -> Option<String> {
        lacks_bandwidth(&self.site, &self.demands, name, to)
    }

    /// The networks that cannot have the rates that they need in software alone, and why.
    pub fn lacks_without_card(&self) -> Vec<(String, String)> {
        lacks_without_card(&self.site, &self.demands)
    }

    /// A schedule for the API.
    pub fn plan(&self, kind: Option<SchedulerKind>) -> Plan {
        let mut plan = plan(&self.schedule(kind), self.measured.is_some());
        let unknown = self.measured.map_or(0, |measured| self.demands.len() - measured);
        if unknown > 0 {
            let text =
                format!("{unknown} of the networks are not measured yet; their documents give the rates");
            plan.note = Some(plan.note.map_or_else(|| text.clone(), |note| format!("{note}; {text}")));
        }
        plan
    }
}

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
        for (name, entry) in &self.networks {
            let Some(want) = &entry.want else { continue };
            let program = programs.get(name.as_str()).copied().unwrap_or(&want.program);
            let mut demand = Demand::of(&want.network, program);
            if entry.have.is_some() {
                let counts = entry.rib.counts();
                // While an image is loaded, networks that were on the card count as being there.
                let had = self.loading.as_ref().is_some_and(|loading| loading.chooses() && loading.had(name));
                let now = if entry.on_card || had { Side::Card } else { Side::Soft };
                demand = demand.at(now, counts.routes, counts.neighbours, counts.rows);
            }
            // Routes of other layouts are only counted.
            if card.as_ref().is_some_and(|card| matches!(card.table, TableSite::Banks { .. })) {
                demand = match entry.have {
                    Some(_) => demand.in_banks(&entry.published().1),
                    None => demand.in_banks(&program.routes),
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
            if self.scheduled.take().is_some() {
                let names: Vec<String> = self.networks.keys().cloned().collect();
                names.iter().for_each(|name| self.place(name));
            }
            return;
        }
        let from_traffic =
            self.desired.intent.node.spec.scheduler.as_ref().is_some_and(|one| one.from_traffic);
        if self.asking.is_some() {
            self.asking = Some(true);
            return;
        }
        self.asking = Some(false);
        let (question, sender) = (self.question(from_traffic), self.sender.clone());
        let answer = move || {
            let schedule = question.schedule(None);
            let _ = sender.send(Message::Card(CardNews::Scheduled(Box::new(schedule))));
        };
        if let Err(error) = self.drive.aside("hue-plan", answer) {
            tracing::warn!(%error, "the scheduler cannot run: networks stay where they are");
            self.asking = None;
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
        let chooses = self.loading.as_ref().is_some_and(super::image::Loading::chooses);
        if self.desired.intent.node.spec.scheduler.is_none() {
            self.asking = None;
            if chooses {
                self.chosen(Some(schedule));
            }
            return; // otherwise, the answer is too late
        }
        let sides = schedule.networks.iter().map(|one| (one.name.clone(), (one.side, one.why.clone())));
        self.scheduled = Some(sides.collect());
        if self.asking.take() == Some(true) {
            self.ask_scheduler();
        }
        if chooses && self.asking.is_none() {
            return self.chosen(Some(schedule));
        }
        let names: Vec<String> = schedule.networks.iter().map(|one| one.name.clone()).collect();
        names.iter().for_each(|name| self.place(name));
    }
}

impl NodeHandle {
    /// Measures the traffic offered to networks, for as long as the daemon runs.
    pub async fn measure(&self) {
        loop {
            tokio::time::sleep(MEASURE).await;
            // On an error, the node is stopping or about to, and there is nothing to measure.
            let Ok(stats) = self.stats(None).await else { continue };
            let planning = &self.shared.planning;
            let now_ms = u64::try_from(planning.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            {
                let mut rates = planning.rates.lock().unwrap_or_else(PoisonError::into_inner);
                for network in &stats.networks {
                    let lost = OFFERED.iter().filter_map(|loss| network.losses.get(loss.name())).sum();
                    let counted = Counted { frames: network.received, bytes: network.received_bytes, lost };
                    rates.insert(&network.network, now_ms, counted);
                }
                rates.retain(|name| stats.networks.iter().any(|network| network.network == name));
            }
            // On an error, the node is stopping or about to.
            let _ = self.ask(|reply| Command::Measured { reply }).await;
        }
    }
}
