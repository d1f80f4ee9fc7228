//! What waits until nothing moves by itself any more.
//!
//! Flow: [`Node::when_still`] → the node's thread looks after each message → the work is done, in the order in which it came.
//! Networks move by themselves where documents, or the scheduler, want them elsewhere, and when there is room on the card. A
//! move or an image that somebody asks for does not begin in the midst of that.
//! Invariants: nobody waits longer than it says; what is waited for is named when the time is over; who has gone is forgotten,
//! and nothing is done for him.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::card::Stage;
use super::core::Node;
use crate::api::{Problem, ProblemKind, TurnQuery};

/// How long a change waits for what moves by itself.
pub const STILL_MAX: Duration = Duration::from_secs(60);

/// What is done, or told that it cannot be.
type Work = Box<dyn FnOnce(&mut Node, Result<(), Problem>) + Send>;

/// Somebody who waits.
pub struct Patient {
    /// Until then.
    until: Instant,
    /// A network that must be set up, too.
    name: Option<String>,
    caller: Caller,
    work: Work,
}

impl Patient {
    /// Waits as a call asks for.
    pub fn new(query: TurnQuery, name: Option<String>, caller: Caller, work: Work) -> Self {
        let until = Instant::now() + if query.no_wait { Duration::ZERO } else { STILL_MAX };
        Self { until, name, caller, work }
    }
}

/// Whether who asked is still there.
#[derive(Clone, Default)]
pub struct Caller(Arc<AtomicBool>);

/// Held by who asked.
pub struct Presence(Caller);

impl Caller {
    /// Is there until this is dropped.
    pub fn presence(&self) -> Presence {
        Presence(self.clone())
    }

    fn has_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Node {
    /// Looks whether an image that is loaded is all there is to it, and whether those who wait can go on.
    pub(super) fn tend_still(&mut self, now: Instant) {
        self.tend_loading();
        self.tend_patients(now);
    }

    /// Has something done once nothing moves by itself.
    pub(super) fn when_still(&mut self, patient: Patient) {
        self.patients.push(patient);
        self.tend_patients(Instant::now());
    }

    /// Goes on with those who wait, if nothing moves or their time is over.
    pub(super) fn tend_patients(&mut self, now: Instant) {
        self.patients.retain(|patient| !patient.caller.has_gone());
        let mut at = 0;
        while let Some(patient) = self.patients.get(at) {
            let waits_for = self.moving().or_else(|| self.setting_up(patient.name.as_deref()));
            if waits_for.is_some() && patient.until > now {
                at += 1;
                continue;
            }
            let Patient { work, .. } = self.patients.remove(at);
            let still = match waits_for {
                None => Ok(()),
                Some(what) => {
                    Err(Problem::new(ProblemKind::Conflict, format!("{what}: try again when that is over")))
                }
            };
            work(self, still);
        }
    }

    /// When the next one's time is over.
    pub(super) fn patient_due(&self) -> Option<Instant> {
        self.patients.iter().map(|patient| patient.until).min()
    }

    /// What moves by itself, or is about to.
    fn moving(&self) -> Option<String> {
        self.loading_image().or_else(|| self.networks_move())
    }

    /// The same, but for an image that is being loaded.
    pub(super) fn networks_move(&self) -> Option<String> {
        let seats = self.card.iter().flat_map(|card| &card.seats);
        let moves = seats.filter_map(|(vid, seat)| {
            let to = match seat.stage {
                Stage::Coming => "the card",
                Stage::Leaving => "software",
                Stage::Card | Stage::Software => return None,
            };
            Some(format!("network '{}' is moving to {to}", self.vids.get(vid)?))
        });
        let asked = || self.asking.is_some().then(|| "the scheduler is being asked".to_owned());
        let told = || (!self.turns.is_empty()).then(|| "neighbours are being told where to send".to_owned());
        moves.into_iter().next().or_else(asked).or_else(told)
    }

    fn setting_up(&self, name: Option<&str>) -> Option<String> {
        let name =
            name.filter(|name| self.networks.get(*name).is_some_and(super::networks::Entry::is_pending))?;
        Some(format!("network '{name}' is being set up"))
    }
}
