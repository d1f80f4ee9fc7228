//! A running card: in a process of its own, or in this one.
//!
//! Flow: node → **here** → the card's thread. A card whose ports include ends of links, whose cables are in this process,
//! and a simulated one, run in this process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hue_card::{
    Card, CardCommand, CardQuestion, CardReply, CardTotals, Description, Images, LiveCard, SeatId, Twin,
};
use hue_demux::PortId;
use hue_ports::Port;
use hue_substrate::Program;
use hue_substrate::scheduling::Granted;
use hue_tables::Vid;

use super::apart::Apart;
use super::image;
use super::site::Site;

/// See the head of this file.
pub enum RunningCard {
    /// In this process.
    Here(Box<LiveCard>),
    /// In its own.
    Apart(Box<Apart>),
}

/// Another card that was made to replace the running one.
pub struct Made {
    /// Description of its image.
    pub description: Description,
    /// The card, if it is in this process.
    card: Option<Box<Card<Twin>>>,
}

/// Makes another card, in any thread.
pub type Make = Box<dyn FnOnce() -> Result<Made, String> + Send>;

impl Made {
    /// A card with this description, in its own process.
    pub const fn apart(description: Description) -> Self {
        Self { description, card: None }
    }
}

impl RunningCard {
    /// Queues a command. Returns `false` if the card has ended.
    pub fn tell(&self, command: CardCommand) -> bool {
        match self {
            Self::Here(card) => card.tell(command),
            Self::Apart(card) => card.tell(command),
        }
    }

    /// Asks the card; see [`LiveCard::ask`].
    pub fn ask(&self, question: CardQuestion, reply: impl FnOnce(CardReply) + Send + 'static) {
        match self {
            Self::Here(card) => card.ask(question, reply),
            Self::Apart(card) => card.ask(question, reply),
        }
    }

    /// Gives the card a port that was opened at its site. Returns `false` if the card has ended.
    pub fn set_port(&self, number: u8, id: PortId, port: Box<dyn Port>) -> bool {
        match self {
            Self::Here(card) => card.set_port(number, id, port),
            Self::Apart(card) => card.set_port(number, id, port),
        }
    }

    /// How to make a card with another image and these networks in software.
    pub fn make(&self, images: &Images, name: &str, programs: Vec<Program>) -> Make {
        match self {
            Self::Here(_) => {
                let (images, name) = (images.clone(), name.to_owned());
                Box::new(move || {
                    let mut card = image::start(&images, &name, &programs, true)?;
                    Ok(Made { description: card.description().clone(), card: Some(card) })
                })
            }
            Self::Apart(card) => {
                let made = card.make(name, programs);
                Box::new(move || Ok(Made::apart(made()?)))
            }
        }
    }

    /// Ends the bypass: with another card, or with the same one.
    pub fn end_bypass(&mut self, made: Option<Made>) {
        let Some(Made { description, card: new }) = made else {
            self.tell(CardCommand::EndBypass);
            return;
        };
        match (self, new) {
            (Self::Here(card), Some(new)) => {
                card.set_description(description);
                card.replace(new);
            }
            (Self::Apart(card), _) => {
                card.set_description(description);
                card.replace();
            }
            (Self::Here(_), None) => {} // cards are made where they run
        }
    }

    /// Gives a network a seat; see [`LiveCard::take_seat`].
    pub fn take_seat(&self, vid: Vid) -> SeatId {
        match self {
            Self::Here(card) => card.take_seat(vid),
            Self::Apart(card) => card.seats().take(vid),
        }
    }

    /// Takes a network's seat.
    pub fn end_seat(&self, vid: Vid) {
        match self {
            Self::Here(card) => card.end_seat(vid),
            Self::Apart(card) => card.seats().end(vid),
        }
    }

    /// How long it had run when it was taken over from the daemon before, if it was.
    pub fn ran_for(&self) -> Option<Duration> {
        match self {
            Self::Here(_) => None,
            Self::Apart(card) => card.ran_for(),
        }
    }

    /// Leaves the card to the next daemon when this is dropped, if it has a process of its own.
    pub fn leave(&mut self) {
        if let Self::Apart(card) = self {
            card.leave();
        }
    }

    /// Where its ports are opened.
    pub fn site(&self) -> Site {
        match self {
            Self::Here(card) => Site::Memory(card.region().clone()),
            Self::Apart(card) => Site::Card(card.opener()),
        }
    }

    /// Description of its image.
    pub fn description(&self) -> &Description {
        match self {
            Self::Here(card) => card.description(),
            Self::Apart(card) => card.description(),
        }
    }

    /// Scheduling of its thread.
    pub fn scheduling(&self) -> &Granted {
        match self {
            Self::Here(card) => card.scheduling(),
            Self::Apart(card) => card.scheduling(),
        }
    }

    /// Reads its totals from any thread.
    pub fn totals_reader(&self) -> Arc<Mutex<CardTotals>> {
        match self {
            Self::Here(card) => card.totals_reader(),
            Self::Apart(card) => card.totals_reader(),
        }
    }

    /// The time by its clock, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::Here(card) => card.now_ns(),
            Self::Apart(card) => card.now_ns(),
        }
    }

    /// The card, if it is in this process.
    pub fn here(&self) -> Option<&LiveCard> {
        match self {
            Self::Here(card) => Some(card),
            Self::Apart(_) => None,
        }
    }
}
