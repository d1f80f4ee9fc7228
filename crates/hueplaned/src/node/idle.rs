//! Requests that wait until no network is moving.
//!
//! Flow: [`Node::when_idle`] → the node's thread checks after each message → the work is done, in the order of the requests.
//! The node itself moves networks to where documents or the scheduler place them, and onto the card when there is room.
//! A move or an image load that somebody requests does not start until those moves have ended.
//! Invariants: no work waits longer than the limit, and the error then says why it waited; work whose caller has
//! disconnected is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::card::Stage;
use super::command::Request;
use super::core::Node;
use crate::api::{Problem, ProblemKind, TurnQuery};

/// How long requested work waits for moves that the node makes itself.
pub const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// End of the wait.
    until: Instant,
    /// A network that must also be set up.
    name: Option<String>,
    caller: Caller,
    /// Refused if the wait was too long.
    request: Request,
}

impl Deferred {
    /// A request, which may choose not to wait.
    pub fn new(query: TurnQuery, name: Option<String>, caller: Caller, request: Request) -> Self {
        let until = Instant::now() + if query.no_wait { Duration::ZERO } else { IDLE_WAIT_MAX };
        Self { until, name, caller, request }
    }

    /// The same request, made now.
    pub fn anew(self) -> Self {
        Self { until: Instant::now() + IDLE_WAIT_MAX, ..self }
    }
}

/// Tells whether the caller is still connected.
#[derive(Clone, Default, Debug)]
pub struct Caller(Arc<AtomicBool>);

/// Held by the caller; marks it as gone when dropped.
pub struct CallerGuard(Caller);

impl Caller {
    /// The caller counts as connected until this is dropped.
    pub fn guard(&self) -> CallerGuard {
        CallerGuard(self.clone())
    }

    fn has_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Node {
    /// Continues an image load and work that waits, if they can go on.
    pub(super) fn tend_idle(&mut self, now: Instant) {
        self.tend_loading();
        self.tend_deferred(now);
    }

    /// Does the work once no network is moving.
    pub(super) fn when_idle(&mut self, deferred: Deferred) {
        self.deferred.push(deferred);
        self.tend_deferred(Instant::now());
    }

    /// Starts work that waits if no network is moving, or fails it if its time is over.
    pub(super) fn tend_deferred(&mut self, now: Instant) {
        self.deferred.retain(|deferred| !deferred.caller.has_gone());
        let mut at = 0;
        while let Some(deferred) = self.deferred.get(at) {
            let waits_for = self.moving().or_else(|| self.setting_up(deferred.name.as_deref()));
            if waits_for.is_some() && deferred.until > now {
                at += 1;
                continue;
            }
            let Deferred { request, .. } = self.deferred.remove(at);
            match waits_for {
                None => self.take_request(request),
                Some(what) => {
                    let detail = format!("{what}: try again afterwards");
                    request.refuse(Problem::new(ProblemKind::Conflict, detail));
                }
            }
        }
    }

    /// When the next wait ends.
    pub(super) fn deferred_due(&self) -> Option<Instant> {
        self.deferred.iter().map(|deferred| deferred.until).min()
    }

    /// Description of what is moving or about to move.
    fn moving(&self) -> Option<String> {
        self.loading_image().or_else(|| self.networks_move())
    }

    /// The same without image loads.
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
        let asked = || self.asking.is_some().then(|| "the scheduler is running".to_owned());
        let told = || (!self.turns.is_empty()).then(|| "neighbours are being redirected".to_owned());
        moves.into_iter().next().or_else(asked).or_else(told)
    }

    fn setting_up(&self, name: Option<&str>) -> Option<String> {
        let name =
            name.filter(|name| self.networks.get(*name).is_some_and(super::networks::Entry::is_pending))?;
        Some(format!("network '{name}' is being set up"))
    }
}
