//! Events: a ring of numbered events, with a notification for each.
//!
//! Flow: node, change, daemon → **[`EventLog`]** → API, log on standard error. Invariants: numbers rise by one; the ring
//! keeps [`EVENTS_MAX`]; adding one never waits for a reader.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::api::{Event, EventKind, EventPage, Timestamp};

/// Number of events that are kept.
pub const EVENTS_MAX: usize = 10_000;

/// The events of a daemon's life.
pub struct EventLog {
    ring: Mutex<VecDeque<Event>>,
    newest: watch::Sender<u64>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self { ring: Mutex::default(), newest: watch::channel(0).0 }
    }
}

/// Subject of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About<'a> {
    /// The node or the daemon.
    Node,
    /// A network.
    Network(&'a str),
    /// A physical port.
    Port(&'a str),
}

impl EventLog {
    /// Adds an event.
    pub fn add(&self, kind: EventKind, about: About<'_>, message: impl Into<String>) {
        let message = message.into();
        let (network, port) = match about {
            About::Node => (None, None),
            About::Network(name) => (Some(name.to_owned()), None),
            About::Port(name) => (None, Some(name.to_owned())),
        };
        log(kind, network.as_deref(), port.as_deref(), &message);
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = ring.back().map_or(1, |last| last.sequence + 1);
        if ring.len() == EVENTS_MAX {
            ring.pop_front();
        }
        ring.push_back(Event { sequence, time: Timestamp::now(), kind, network, port, message });
        // Under the lock, so that numbers are announced in order.
        self.newest.send_replace(sequence);
    }

    /// Events after number `since`, oldest first, at most `limit`.
    #[must_use]
    pub fn since(&self, since: u64, limit: usize) -> EventPage {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = (ring.front(), ring.back());
        let (first, last) = (first.map_or(0, |event| event.sequence), last.map_or(0, |event| event.sequence));
        let skip = usize::try_from(since.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
        EventPage { first, last, events: ring.iter().skip(skip).take(limit).cloned().collect() }
    }

    /// The number of the newest event, as it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

fn log(kind: EventKind, network: Option<&str>, port: Option<&str>, message: &str) {
    let bad = matches!(
        kind,
        EventKind::Refused
            | EventKind::NetworkDegraded
            | EventKind::Drifted
            | EventKind::PortDown
            | EventKind::PortFallback
            | EventKind::SchedulingFallback
            | EventKind::Trouble
            | EventKind::Gap
    );
    let event = kind.name();
    if bad {
        tracing::warn!(event, network, port, "{message}");
    } else {
        tracing::info!(event, network, port, "{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_newest_and_numbers_them() {
        let log = EventLog::default();
        let watch = log.watch();
        assert_eq!(log.since(0, 10), EventPage::default());
        for number in 0..EVENTS_MAX + 5 {
            log.add(EventKind::Applied, About::Node, number.to_string());
        }
        let page = log.since(0, 3);
        assert_eq!((page.first, page.last), (6, EVENTS_MAX as u64 + 5));
        assert_eq!(page.events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [6, 7, 8]);
        assert_eq!(*watch.borrow(), page.last);
        let end = log.since(page.last - 2, 10);
        assert_eq!(
            end.events.iter().map(|event| event.sequence).collect::<Vec<_>>(),
            [page.last - 1, page.last]
        );
        assert!(log.since(page.last, 10).events.is_empty());
        assert!(log.since(u64::MAX, 10).events.is_empty());
    }
}
