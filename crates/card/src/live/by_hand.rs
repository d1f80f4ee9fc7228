//! A running card without a thread of its own: its owner runs each round. For simulations.
//!
//! Flow: caller → [`LiveCard::round`] → one job and one round of the card, in the caller's thread, at the time of the
//! clock given at the start. All other code is the same as with a thread.

use std::sync::{Arc, Mutex, PoisonError};

use hue_substrate::clock::Clock;
use hue_substrate::handover::Peer;
use hue_substrate::wake::Wake;

use super::event::CardEvent;
use super::handle::{LiveCard, Running};
use super::runner::Runner;
use super::seats::Seats;
use crate::card::Card;
use crate::error::CardError;
use crate::twin::Twin;

impl LiveCard {
    /// As [`LiveCard::start`], but the card runs only in [`LiveCard::round`] and takes its time from `clock`.
    ///
    /// # Errors
    /// As [`LiveCard::start`].
    pub fn by_hand(
        card: Card<Twin>,
        wake: Arc<Wake>,
        peers: Vec<Peer>,
        memory: (u32, u32),
        seats: Arc<Seats>,
        clock: Clock,
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> Result<Self, CardError> {
        let (mut live, runner, jobs) = Self::make(card, wake, peers, memory, seats, clock)?;
        live.own = Some(Mutex::new(Some(Running { runner, jobs, events: Box::new(events) })));
        Ok(live)
    }

    /// Does one waiting job, if any, and one round; returns whether there was work. Does nothing if the card has a
    /// thread.
    pub fn round(&self) -> bool {
        let Some(own) = &self.own else { return false };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Running { runner, jobs, events }) = own.as_mut() else { return false };
        match runner.turn(jobs, events) {
            Ok(worked) => worked.unwrap_or_default(),
            Err(reason) => {
                runner.end();
                if let Some(Running { events, .. }) = own.take() {
                    events(CardEvent::Failed(reason));
                }
                true
            }
        }
    }

    /// Calls `look` on the card between two rounds; `None` when the card has failed or has a thread.
    pub fn look<T>(&self, look: impl FnOnce(&mut Runner) -> T) -> Option<T> {
        let mut own = self.own.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        own.as_mut().map(|running| look(&mut running.runner))
    }
}
