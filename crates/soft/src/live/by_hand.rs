//! A running system without threads: whoever has it says when a worker has its round. For simulations.
//!
//! Flow: hand → [`Live::round`] → a worker's jobs and one round of it, in the caller's thread, at the time of the clock that
//! the system was begun with. Everything else is the same code; what control asks of a worker is done at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hue_substrate::clock::Clock;

use super::config::{LiveConfig, LiveError};
use super::control::{Live, PortEvent};
use super::worker::{Inside, Worker};

impl Live {
    /// As [`Live::start`], with workers that do nothing until they get their round. Nothing sleeps and nothing is pinned.
    ///
    /// # Errors
    /// As [`Live::start`].
    pub fn by_hand(config: LiveConfig, clock: &Clock) -> Result<Self, LiveError> {
        Self::begin(config, clock, false)
    }

    /// Gives a worker one round; whether it had anything to do. A worker with a thread has its own.
    pub fn round(&self, worker: usize) -> bool {
        let own = self.workers.get(worker).and_then(|handle| handle.own.as_ref());
        own.is_some_and(|own| {
            let mut worker = lock(own);
            worker.work_off_jobs() && worker.round()
        })
    }

    /// A port that failed and was not told of yet, for who did not take [`Live::port_events`].
    pub fn take_port_event(&mut self) -> Option<PortEvent> {
        self.events.as_ref()?.try_recv().ok()
    }

    /// What a worker has inside, between two rounds.
    ///
    /// # Errors
    /// `Ended`.
    pub fn inside(&self, worker: usize) -> Result<Inside, LiveError> {
        self.ask(worker, |worker| worker.inside())
    }
}

/// The worker, which nobody else has: there are no threads.
pub(super) fn lock(own: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}
