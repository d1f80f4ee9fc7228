//! The core, for requests that wait until no network is moving.

use std::time::Instant;

use super::Node;
use crate::api::{Problem, ProblemKind};
use crate::node::command::Deferred;
use crate::node::moves::Stage;

impl Node {
    /// Continues an image load and work that waits, if they can go on.
    pub(in crate::node) fn tend_idle(&mut self, now: Instant) {
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
        self.loading.words().or_else(|| self.networks_move())
    }

    /// The same without image loads.
    pub(super) fn networks_move(&self) -> Option<String> {
        let mut moves = self.moves.seats().stages().filter_map(|(vid, stage)| {
            let to = match stage {
                Stage::Coming => "the card",
                Stage::Leaving => "software",
                Stage::Card | Stage::Software => return None,
            };
            Some(format!("network '{}' is moving to {to}", self.networks.name_of(vid)?))
        });
        let asked = || self.scheduling.is_running().then(|| "the scheduler is running".to_owned());
        let told = || self.wires.is_turning().then(|| "neighbours are being redirected".to_owned());
        moves.next().or_else(asked).or_else(told)
    }

    fn setting_up(&self, name: Option<&str>) -> Option<String> {
        let name = name
            .filter(|name| self.networks.get(name).is_some_and(crate::node::networks::Entry::is_pending))?;
        Some(format!("network '{name}' is being set up"))
    }
}
