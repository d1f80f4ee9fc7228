//! Checks networks for drift, and has it repaired.
//!
//! Flow: a suspicion or the clock → [`Look`] → job, or a thread of the API → [`Seen`] → **here** → the network is degraded
//! with the reason, and set up again. Source: see [`crate::node::drift`].

use std::sync::Arc;
use std::time::Instant;

use hue_host::control::{Difference, Drift};

use super::{Around, Effect, Networks};
use crate::node::drift::{LOOK_EACH, Look, NAMES_EACH, Seen, words};
use crate::node::jobs::Job;

impl Networks {
    /// The check of a network: whether its name still belongs to its namespace, and with `inside`, or if a notification
    /// concerns it or it has drifted, also what is in there. It counts as made. `None` while the network is not set up.
    pub fn look_at(&mut self, name: &str, inside: bool) -> Option<Look> {
        let entry = self.entries.get_mut(name)?;
        let (control, want) = entry.settled_control()?;
        let (control, want) = (Arc::clone(control), Arc::clone(want));
        let inside = inside || entry.drift.look || entry.drift.reason.is_some();
        entry.drift.look = false;
        Some(Look { name: name.to_owned(), control, want, indices: entry.drift.indices.clone(), inside })
    }

    pub(super) fn tend_drift(&mut self, now: Instant, out: &mut Vec<Effect>) {
        if self.looks.busy || now.saturating_duration_since(self.looks.last) < LOOK_EACH {
            return;
        }
        let names = now.saturating_duration_since(self.looks.names) >= NAMES_EACH;
        let chosen = self.entries.iter().filter(|(_, entry)| names || entry.drift.look);
        let chosen: Vec<String> = chosen.map(|(name, _)| name.clone()).collect();
        let looks: Vec<Look> = chosen.iter().filter_map(|name| self.look_at(name, false)).collect();
        if names {
            self.looks.names = now;
        }
        if !looks.is_empty() {
            (self.looks.busy, self.looks.last) = (true, now);
            out.push(Effect::Start(Job::Look(looks)));
        }
    }

    /// Processes the result of a check.
    pub(super) fn saw(&mut self, seen: Seen, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Seen { name, control, standing, inside } = seen;
        let Some(entry) = self.entries.get_mut(&name) else { return };
        // Results about an earlier setup no longer count.
        let Some((_, want)) = entry.settled_control().filter(|(own, _)| Arc::ptr_eq(own, &control)) else {
            return;
        };
        let want = Arc::clone(want);
        let whole = inside.is_some();
        let Drift { ports, indices } = inside.unwrap_or_default();
        let gone = ports.iter().find(|(_, what)| matches!(what, Difference::Missing | Difference::Replaced));
        if let Some(port) = gone.and_then(|(at, _)| want.ports.get(*at)) {
            entry.drift.reason = None;
            return self.lost_interface(&name, &port.interface, around, out);
        }
        if entry.drift.indices.is_empty() {
            entry.drift.indices = indices;
        }
        match words(&control, &want, standing, &ports) {
            Some(words) => self.drifted(&name, words, around, out),
            // Somebody else has repaired it.
            None if whole && entry.drift.reason.is_some() => self.advance(&name, out),
            None => {}
        }
    }

    /// A network has drifted: it is degraded, and repaired after a pause.
    pub(super) fn drifted(&mut self, name: &str, reason: String, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let before = entry.drift.reason.replace(reason.clone());
        if before.as_ref() == Some(&reason) {
            return; // its repair is already scheduled
        }
        let due = around.now + entry.drift.pause(around.now);
        let due = entry.retry.filter(|_| before.is_some()).map_or(due, |earlier| earlier.min(due));
        self.degrade(name, reason, around, out);
        self.with(name, |entry| entry.retry = Some(due));
    }
}
