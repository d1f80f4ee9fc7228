//! The core, for routes that tables have no room for.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hue_tables::Vid;

use super::Node;
use crate::api::EventKind;
use crate::node::events::About;
use crate::node::networks::Entry;
use crate::node::refused::RETRY_EACH;

impl Node {
    /// Sets the table quota of a loaded network from its document.
    pub(super) fn set_quota(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(have) = &entry.have else { return };
        let (vid, quota) = (have.program.vid, have.network.spec.table.map(|table| table.quota.bytes()));
        let before = self.live.account(vid).ok().and_then(|account| account.bytes_quota);
        if before != quota {
            if let Err(error) = self.live.set_quota(vid, quota) {
                tracing::error!(network = name, %error, "the table quota cannot be set");
            }
            entry.refused.try_again();
        }
    }

    /// Updates a network's route counts, and reports when the first route is refused, and when no route is refused any more.
    pub(super) fn look_at_refused(&mut self, name: &str, now: Instant) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let counts = (entry.refused.len() as u64, entry.refused.count());
        let routes = (entry.rib.counts().routes as u64).saturating_sub(counts.0);
        entry.counts.routes.store(routes, Ordering::Relaxed);
        entry.counts.refused.store(counts.0, Ordering::Relaxed);
        if (counts.0 > 0) != entry.refused.reason.is_some() {
            self.say_refused(name, now);
        }
    }

    /// Updates the message about a network's refused routes.
    pub(super) fn say_refused(&mut self, name: &str, now: Instant) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(have) = entry.have.as_ref().filter(|_| !entry.refused.is_quiet()) else { return };
        let account = self.live.account(have.program.vid).unwrap_or_default();
        let words = entry.refused.words(entry.rib.counts().routes, &account);
        if words == entry.refused.reason {
            return;
        }
        entry.refused.reason = words;
        self.changed = true;
        if let Some(reason) = &entry.refused.reason
            && entry.refused.due.is_none()
        {
            entry.refused.due = Some(now + RETRY_EACH);
            self.shared.events.add(EventKind::NetworkDegraded, About::Network(name), reason.clone());
        }
    }

    /// Retries refused routes that are due, and reports networks that have none any more.
    pub(super) fn tend_refused(&mut self, now: Instant) {
        let due = |entry: &Entry| entry.refused.due.is_some_and(|due| due <= now);
        let due: Vec<String> =
            self.networks.iter().filter(|(_, entry)| due(entry)).map(|(name, _)| name.clone()).collect();
        for name in due {
            let Some(entry) = self.networks.get_mut(&name) else { continue };
            let vid: Option<Vid> = entry.have.as_ref().map(|have| have.program.vid);
            if entry.refused.is_empty() {
                entry.refused.due = None;
                if vid.is_some() {
                    let text = "all of its routes are in its table again";
                    self.shared.events.add(EventKind::NetworkRecovered, About::Network(&name), text);
                }
                self.changed = true;
                continue;
            }
            entry.refused.due = Some(now + RETRY_EACH);
            entry.refused.try_again();
            if let Some(vid) = vid {
                self.fall_behind(vid);
            }
        }
    }
}
