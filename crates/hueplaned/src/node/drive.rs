//! Execution of the node and its parts: in separate threads, or step by step by a caller ([`super::by_hand`]).

use std::io;
use std::sync::Arc;

use hue_card::{Card, CardError, CardEvent, LiveCard, Twin};
use hue_substrate::clock::Clock;
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::Scheduling;
use hue_substrate::wake::Wake;

/// See the head of this file.
#[derive(Clone)]
pub enum Drive {
    /// Each part has a thread, as in the daemon; threads that forward packets have this scheduling.
    Threads(Scheduling),
    /// Nothing has a thread; this is the clock.
    Hand(Clock),
}

impl Drive {
    /// Does slow work: in a thread, or at once.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub fn aside(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        match self {
            Self::Threads(_) => std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop),
            Self::Hand(_) => {
                work();
                Ok(())
            }
        }
    }

    /// Starts a card.
    ///
    /// # Errors
    /// As [`LiveCard::start`].
    pub fn card(
        &self,
        card: Card<Twin>,
        wake: Arc<Wake>,
        peers: Vec<Peer>,
        memory: (u32, u32),
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> Result<LiveCard, CardError> {
        match self {
            Self::Threads(scheduling) => LiveCard::start(card, wake, peers, memory, *scheduling, events),
            Self::Hand(clock) => LiveCard::by_hand(card, wake, peers, memory, clock.clone(), events),
        }
    }
}
