//! A network has reached its target state, or has failed.
//!
//! Flow: routes complete, late or refused; what failed → **here** → events, the scheduler, callers that wait. A failed network
//! is retried after a pause, which grows until it has reached its target state.

use hue_tables::Vid;

use super::{Around, Effect, Entry, Input, Networks, RETRY_MAX, RETRY_MIN};
use crate::api::{EventKind, NetworkState};

impl Networks {
    pub(super) fn announce_if(&mut self, vid: Vid, is_due: impl Fn(&Entry) -> bool, out: &mut Vec<Effect>) {
        if self.loaded_as(vid).is_some_and(|entry| is_due(entry))
            && let Some(name) = self.vids.get(&vid).cloned()
        {
            self.announce(&name, out);
        }
    }

    /// A network has reached its target state.
    pub(super) fn announce(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let was = std::mem::replace(&mut entry.state, NetworkState::Running);
        let is_new = was != NetworkState::Running;
        entry.retry = None;
        entry.pause = RETRY_MIN;
        let recovered = std::mem::take(&mut entry.reported_bad);
        let quiet = std::mem::take(&mut entry.quiet) && !recovered;
        entry.reason = None;
        let name = name.to_owned();
        if let Some(drift) = entry.drift.reason.take().filter(|_| recovered) {
            let text = format!("the network is as desired again, after: {drift}");
            out.extend([Effect::Tell(EventKind::Repaired, name.clone(), text), Effect::Changed]);
        } else if is_new && !quiet {
            let first = !std::mem::replace(&mut entry.announced, true);
            let (kind, text) = match (first, entry.found, recovered) {
                (true, true, _) => {
                    (EventKind::Adopted, "the network continues in the namespace of an earlier daemon")
                }
                (true, false, _) => (EventKind::NetworkCreated, "the network is set up"),
                (false, _, true) => (EventKind::NetworkRecovered, "the network is as desired again"),
                (false, _, false) => (EventKind::NetworkChanged, "the network is as desired"),
            };
            out.extend([Effect::Tell(kind, name.clone(), text.to_owned()), Effect::Changed]);
        }
        self.leftovers.remove(&name);
        if is_new {
            out.push(Effect::AskScheduler);
        }
        out.extend([
            Effect::Run(name.clone()),
            Effect::Place(name.clone()),
            Effect::Then(Input::TellPassengers(name.clone())),
            Effect::TryAgain,
            Effect::Settled(name),
            Effect::Started,
        ]);
    }

    /// A network has not reached its target state; it is retried later.
    pub(super) fn degrade(&mut self, name: &str, reason: String, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.ready = None;
        entry.retry = Some(around.now + entry.pause);
        entry.pause = (entry.pause * 2).min(RETRY_MAX);
        entry.state = NetworkState::Degraded;
        entry.announced = true;
        entry.reported_bad = true;
        if entry.reason.as_ref() != Some(&reason) {
            let kind =
                if entry.drift.reason.is_some() { EventKind::Drifted } else { EventKind::NetworkDegraded };
            out.push(Effect::Tell(kind, name.to_owned(), reason.clone()));
            entry.reason = Some(reason);
        }
        self.leftovers.remove(name);
        out.extend([Effect::Changed, Effect::Settled(name.to_owned()), Effect::Started]);
    }

    /// An interface of a network's namespace is gone: creates it again.
    pub(super) fn lost_interface(
        &mut self,
        name: &str,
        interface: &str,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let ours =
            entry.have.as_ref().is_some_and(|have| have.ports.iter().any(|port| port.interface == interface));
        if ours && entry.taps && entry.job.is_none() {
            Self::remove_taps(name, entry, out);
            let reason = format!("interface {interface} of its namespace was removed; it is created again");
            self.degrade(name, reason, around, out);
        }
    }
}
