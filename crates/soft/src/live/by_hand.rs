//! A running system without threads: its owner runs each round of a worker. For simulations.
//!
//! Flow: caller → [`Live::round`] → a worker's jobs and one round of it, in the caller's thread, at the time of the
//! clock given at the start. All other code is the same as with threads, except that a worker runs control's jobs at
//! once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hue_substrate::clock::Clock;

use super::config::{LiveConfig, LiveError};
use super::control::{Live, PortEvent};
use super::worker::{Inside, Worker};

impl Live {
    /// As [`Live::start`], but workers run only in [`Live::round`]. Nothing sleeps and no thread is pinned.
    ///
    /// # Errors
    /// As [`Live::start`].
    pub fn by_hand(config: LiveConfig, clock: &Clock) -> Result<Self, LiveError> {
        Self::begin(config, clock, false)
    }

    /// Runs one round of a worker; returns whether there was work. Does nothing if the worker has a thread.
    pub fn round(&self, worker: usize) -> bool {
        let own = self.workers.get(worker).and_then(|handle| handle.own.as_ref());
        own.is_some_and(|own| {
            let mut worker = lock(own);
            worker.work_off_jobs() && worker.round()
        })
    }

    /// The next port failure that was not reported yet, for callers that did not take [`Live::port_events`].
    pub fn take_port_event(&mut self) -> Option<PortEvent> {
        self.events.as_ref()?.try_recv().ok()
    }

    /// What a worker holds between two rounds.
    ///
    /// # Errors
    /// `Ended`.
    pub fn inside(&self, worker: usize) -> Result<Inside, LiveError> {
        self.ask(worker, |worker| worker.inside())
    }
}

/// Locks the worker; there is no contention, as there are no threads.
pub(super) fn lock(own: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}
