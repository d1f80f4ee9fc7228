//! The scheduler on a live node: its questions and answers, and since when networks are in their places.
//!
//! Flow: desired state, card, tables, counters → [`Question`] (the node's thread, quick) → schedule (any thread; the
//! solver may take long) → API. This module moves nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hue_control::schedule::traffic::{Rates, Smoothing};
use hue_control::schedule::{
    Demand, Schedule, Side, Site, current, lacks_bandwidth, lacks_without_card, schedule,
};
use hue_intent::SchedulerKind;
use hue_planes::Loss;

use super::view::View;
use crate::api::{Placement, Plan, Timestamp};
use crate::plan::plan;

/// How often counters are read to compute rates.
pub(super) const MEASURE: Duration = Duration::from_secs(5);
/// Reasons of losses that count as traffic offered to a network.
pub(super) const OFFERED: [Loss; 3] = [Loss::RingQuota, Loss::HandoverFull, Loss::QueueFull];

/// Inputs of the scheduler besides documents and tables.
pub struct Planning {
    pub(super) started: Instant,
    pub(super) rates: Mutex<Rates>,
    /// Where networks are, and since when.
    pub(super) since: Mutex<BTreeMap<String, (String, Timestamp)>>,
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

/// What the scheduler was asked, and what it answered.
#[derive(Default)]
pub struct Scheduling {
    /// Where it places networks with `placement: auto`, and why; `None` without a scheduler.
    sides: Option<BTreeMap<String, (Side, String)>>,
    /// Whether it is running, and whether it must run again.
    asking: Option<bool>,
}

impl Scheduling {
    /// Where it places a network, and why.
    pub fn place(&self, name: &str) -> Option<&(Side, String)> {
        self.sides.as_ref()?.get(name)
    }

    /// Whether it is running.
    pub fn is_running(&self) -> bool {
        self.asking.is_some()
    }

    /// Its last answer no longer counts. Returns whether there was one.
    pub fn forget(&mut self) -> bool {
        self.sides.take().is_some()
    }

    /// Returns whether it must be run now. Otherwise it is running, and runs again afterwards.
    pub fn begin(&mut self) -> bool {
        let is_first = self.asking.is_none();
        self.asking = Some(!is_first);
        is_first
    }

    /// It is no longer running, and what it was asked no longer counts.
    pub fn give_up(&mut self) {
        self.asking = None;
    }

    /// It has answered. Returns whether it must run again.
    pub fn answered(&mut self, schedule: &Schedule) -> bool {
        let sides = schedule.networks.iter().map(|one| (one.name.clone(), (one.side, one.why.clone())));
        self.sides = Some(sides.collect());
        self.asking.take() == Some(true)
    }
}

/// A question to a scheduler.
pub struct Question {
    pub(super) site: Site,
    pub(super) demands: Vec<Demand>,
    /// The scheduler of the node's document.
    pub(super) kind: SchedulerKind,
    /// With measured rates: how many of the networks have one.
    pub(super) measured: Option<usize>,
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
