//! The core, for drift: looks for it, and has it repaired.

use std::sync::Arc;
use std::time::Instant;

use hue_host::control::{Difference, Drift};

use super::Node;
use crate::node::drift::{LOOK_EACH, Look, NAMES_EACH, Seen, words};
use crate::node::jobs::Job;

impl Node {
    /// The check of a network: whether its name still belongs to its namespace, and with `inside`, or if a notification
    /// concerns it or it has drifted, also what is in there. It counts as made. `None` while the network is not set up.
    pub(super) fn look_at(&mut self, name: &str, inside: bool) -> Option<Look> {
        let entry = self.networks.get_mut(name)?;
        let (control, want) = entry.settled_control()?;
        let (control, want) = (Arc::clone(control), Arc::clone(want));
        let inside = inside || entry.drift.look || entry.drift.reason.is_some();
        entry.drift.look = false;
        Some(Look { name: name.to_owned(), control, want, indices: entry.drift.indices.clone(), inside })
    }

    /// Looks for drift, if it is time to.
    pub(super) fn tend_drift(&mut self, now: Instant) {
        if self.looks.busy || now.saturating_duration_since(self.looks.last) < LOOK_EACH {
            return;
        }
        let names = now.saturating_duration_since(self.looks.names) >= NAMES_EACH;
        let chosen = self.networks.iter().filter(|(_, entry)| names || entry.drift.look);
        let chosen: Vec<String> = chosen.map(|(name, _)| name.clone()).collect();
        let looks: Vec<Look> = chosen.iter().filter_map(|name| self.look_at(name, false)).collect();
        if names {
            self.looks.names = now;
        }
        if !looks.is_empty() {
            (self.looks.busy, self.looks.last) = (true, now);
            self.jobs.add(Job::Look(looks));
        }
    }

    /// A check has ended.
    pub(super) fn look_done(&mut self, seen: Vec<Seen>) {
        self.looks.busy = false;
        self.looked(seen);
    }

    /// Processes the results of a check.
    pub(super) fn looked(&mut self, seen: Vec<Seen>) {
        for Seen { name, control, standing, inside } in seen {
            let Some(entry) = self.networks.get_mut(&name) else { continue };
            // Results about an earlier setup no longer count.
            let Some((_, want)) = entry.settled_control().filter(|(own, _)| Arc::ptr_eq(own, &control))
            else {
                continue;
            };
            let want = Arc::clone(want);
            let whole = inside.is_some();
            let Drift { ports, indices } = inside.unwrap_or_default();
            let gone =
                ports.iter().find(|(_, what)| matches!(what, Difference::Missing | Difference::Replaced));
            if let Some(port) = gone.and_then(|(at, _)| want.ports.get(*at)) {
                entry.drift.reason = None;
                self.lost_interface(&name, &port.interface);
                continue;
            }
            if entry.drift.indices.is_empty() {
                entry.drift.indices = indices;
            }
            let words = words(&control, &want, standing, &ports);
            match words {
                Some(words) => self.drifted(&name, words),
                // Somebody else has repaired it.
                None if whole && entry.drift.reason.is_some() => self.advance(&name),
                None => {}
            }
        }
    }

    /// A network has drifted: it is degraded, and repaired after a pause.
    fn drifted(&mut self, name: &str, reason: String) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let before = entry.drift.reason.replace(reason.clone());
        if before.as_ref() == Some(&reason) {
            return; // its repair is already scheduled
        }
        let now = Instant::now();
        let due = now + entry.drift.pause(now);
        let due = entry.retry.filter(|_| before.is_some()).map_or(due, |earlier| earlier.min(due));
        self.degrade(name, reason);
        if let Some(entry) = self.networks.get_mut(name) {
            entry.retry = Some(due);
        }
    }
}
