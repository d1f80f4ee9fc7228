//! What the node's thread shares with all other threads.
//!
//! Flow: node thread → views, events → **[`Shared`]** → API; API → messages, queue, store → node thread.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use hue_host::control::Owner;
use hue_soft::TotalsReader;
use hue_substrate::scheduling::Granted;
use tokio::sync::watch;

use crate::api::{DownOptions, EventKind, LogPlace, Timestamp};
use crate::node::events::{About, EventLog};
use crate::node::message::Message;
use crate::node::pending;
use crate::node::plan::Planning;
use crate::node::queue::Queue;
use crate::node::view::View;
use crate::store::{Desired, Store};

/// Shared state.
pub struct Shared {
    pub(super) sender: Sender<Message>,
    pub(super) view: RwLock<Arc<View>>,
    pub(super) desired: RwLock<Arc<Desired>>,
    pub(super) totals: TotalsReader,
    pub(super) events: EventLog,
    pub(super) store: Mutex<Store>,
    /// The queue of changes.
    pub(super) queue: Queue,
    pub(super) down: watch::Sender<Option<DownOptions>>,
    pub(super) owner: Owner,
    pub(super) started: Timestamp,
    /// If it took another daemon's place: milliseconds in which neither had the ports open.
    pub(super) took_over_ms: OnceLock<u64>,
    /// Where the daemon writes its log.
    pub(super) log: LogPlace,
    pub(super) workers: usize,
    /// Scheduling of the workers.
    pub(super) scheduling: Granted,
    /// Inputs of the scheduler.
    pub(super) planning: Planning,
    /// Until when the change that waits for its confirmation must have it. A monotonic clock, so that setting the
    /// system's clock does not undo a change.
    pub(super) deadline: watch::Sender<Option<Instant>>,
}

impl Shared {
    /// Reports threads that forward packets without the desired scheduling.
    pub(super) fn tell_scheduling(&self, whose: &str, granted: &Granted) {
        if let Some(why) = &granted.why_not {
            let name = granted.scheduling;
            let text = format!(
                "scheduling of {whose} is {name}, so packets wait for other programs when the machine is busy: {why}"
            );
            self.events.add(EventKind::SchedulingFallback, About::Node, text);
        }
    }

    pub(super) fn set_view(&self, view: View) {
        self.planning.follow(&view);
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    pub(super) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn desired(&self) -> Arc<Desired> {
        Arc::clone(&self.desired.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_desired(&self, desired: Arc<Desired>) {
        self.deadline.send_replace(pending::deadline(&desired));
        *self.desired.write().unwrap_or_else(PoisonError::into_inner) = desired;
    }
}
