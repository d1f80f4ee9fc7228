//! Execution of the node and its parts: in separate threads, or step by step by a caller ([`super::by_hand`]).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hue_card::{CardError, CardEvent, Images, LiveCard, Seats};
use hue_demux::PortId;
use hue_substrate::clock::Clock;
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::Scheduling;
use hue_substrate::wake::Wake;

use super::apart::{Apart, CardSite};
use super::image;
use super::running_card::RunningCard;

/// See the head of this file.
#[derive(Clone)]
pub enum Drive {
    /// Each part has a thread, as in the daemon; threads that forward packets have this scheduling. A card has a process of its
    /// own, which is found in this state directory, if there is one.
    Threads(Scheduling, Option<PathBuf>),
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
            Self::Threads(..) => std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop),
            Self::Hand(_) => {
                work();
                Ok(())
            }
        }
    }

    /// Starts a card with an image and without networks, or takes over the one that the daemon before has left. It is in a
    /// process of its own, unless it must be in this one. `ports` are its ports: number, id, interface; `is_alone` says whether
    /// no other daemon is about to end.
    ///
    /// # Errors
    /// Why it does not run, as a text.
    pub fn card(
        &self,
        (images, image): (&Images, &str),
        (wake, peers): (Arc<Wake>, Vec<Peer>),
        memory: (u32, u32),
        (is_here, is_alone, ports): (bool, bool, Vec<(u8, PortId, String)>),
        events: impl Fn(CardEvent) + Send + 'static,
    ) -> Result<RunningCard, String> {
        let text = |error: CardError| error.to_string();
        let (scheduling, clock) = match self {
            Self::Threads(scheduling, Some(state_dir)) if !is_here => {
                let site = CardSite { state_dir: state_dir.clone(), ports, is_alone };
                let apart =
                    Apart::start((images, image), (&wake, &peers), memory, *scheduling, &site, events);
                return apart.map(Box::new).map(RunningCard::Apart);
            }
            Self::Threads(scheduling, _) => (*scheduling, None),
            Self::Hand(clock) => (Scheduling::Fair, Some(clock.clone())),
        };
        let card = *image::start(images, image, &[], true)?;
        let seats = Arc::new(Seats::new().map_err(|error| error.to_string())?);
        let live = match clock {
            None => LiveCard::start(card, wake, peers, memory, seats, scheduling, events),
            Some(clock) => LiveCard::by_hand(card, wake, peers, memory, seats, clock, events),
        };
        live.map(Box::new).map(RunningCard::Here).map_err(text)
    }

    /// Ends the card that the daemon before has left: this one has none that could be in a process of its own.
    pub fn end_left_card(&self, is_alone: bool) {
        if let Self::Threads(_, Some(state_dir)) = self {
            CardSite { state_dir: state_dir.clone(), ports: Vec::new(), is_alone }.end_left();
        }
    }
}
