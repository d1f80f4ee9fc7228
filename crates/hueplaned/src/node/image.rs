//! Changes the card's image while its networks run.
//!
//! Flow (Unnikrishnan §4.1): networks of the card move to software → frames bypass the card → a card with the other
//! image and all networks in software replaces it → if the image cannot hold all networks, the scheduler selects some
//! (`choose`) → networks move back, and their tables are written from the state of their namespaces → other networks
//! move to the card if they can → answer. Ports stay open, so neighbours notice nothing: there is one receiver, and
//! it stays. Invariants: an image that cannot be loaded, or cannot hold the networks' frames, changes nothing; no
//! other change is under way meanwhile; when the caller gets the answer, networks are where the answer says, and none
//! is moving.

use std::time::{Duration, Instant};

use hue_card::{Card, Images, Twin, make_live};
use hue_substrate::{Program, Substrate};
use tokio::sync::oneshot;

use crate::api::{ImageInfo, ImageLoaded, MigrationPhase, Problem};

/// An image that is being loaded.
pub struct Loading {
    pub(super) name: String,
    pub(super) before: String,
    pub(super) step: Step,
    pub(super) began: Instant,
    pub(super) phases: Vec<MigrationPhase>,
    /// Networks that were on the card, in the order in which they come back.
    pub(super) networks: Vec<String>,
    /// Least time that the card is unavailable.
    pub(super) away: Duration,
    pub(super) failed: Option<String>,
    /// Who waits for it: nobody if the card was taken over from the daemon before, and is replaced by one with the same image.
    pub(super) reply: Option<oneshot::Sender<Result<ImageLoaded, Problem>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Networks of a card that was taken over are being set up.
    Wait,
    /// Networks move to software.
    Leave,
    /// The card is replaced.
    Swap,
    /// The scheduler selects the networks for the card.
    Choose,
    /// Networks return.
    Return,
    /// Other networks move to their desired places.
    Settle,
}

/// How long the answer waits for other networks to move to their desired places, once networks are back.
pub(super) const SETTLE_MAX: Duration = Duration::from_secs(30);

impl Loading {
    /// Whether a network is returning now.
    pub(super) fn returns(&self, name: &str) -> bool {
        self.step == Step::Return && self.had(name)
    }

    /// Whether networks are moving to their desired places.
    pub(super) fn settles(&self) -> bool {
        self.step == Step::Settle
    }

    /// Whether the scheduler must select the networks for the card.
    pub(super) fn chooses(&self) -> bool {
        self.step == Step::Choose
    }

    /// Whether it had a network on the card.
    pub(super) fn had(&self, name: &str) -> bool {
        self.networks.iter().any(|one| one == name)
    }

    /// Answers whoever waits.
    pub(super) fn answer(self, result: Result<ImageLoaded, Problem>) {
        if let Some(reply) = self.reply {
            let _ = reply.send(result); // it may have gone
        }
    }

    pub(super) fn next(&mut self, step: Step) {
        let name = match self.step {
            Step::Wait => "wait",
            Step::Leave => "leave",
            Step::Swap => "swap",
            Step::Choose => "choose",
            Step::Return => "return",
            Step::Settle => "settle",
        };
        let us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.phases.push(MigrationPhase { name: name.to_owned(), us });
        (self.step, self.began) = (step, Instant::now());
    }
}

/// Requirements to test images against: networks that the card knows, and networks that shall run on it, with their
/// tables.
pub struct Trial {
    /// Folder of the images.
    pub images: Images,
    /// The image that runs.
    pub running: String,
    pub(super) bare: Vec<Program>,
    pub(super) full: Vec<Program>,
}

impl Trial {
    /// Another image that meets the requirements.
    pub fn find(&self) -> Option<String> {
        self.images
            .names()
            .into_iter()
            .filter(|name| *name != self.running)
            .find(|name| self.holds(name).is_ok())
    }

    fn holds(&self, name: &str) -> Result<(), String> {
        let mut card = start(&self.images, name, &self.bare, false)?;
        card.load(&self.full).map_err(|error| error.to_string())
    }
}

/// Creates a card with an image and with all networks in software; its tables follow software's, or are separate.
pub(super) fn start(
    images: &Images,
    name: &str,
    programs: &[Program],
    follows: bool,
) -> Result<Box<Card<Twin>>, String> {
    let text = |error: hue_card::CardError| error.to_string();
    let mut card = Card::new(images.load(name).map_err(text)?.start().map_err(text)?).map_err(text)?;
    make_live(&mut card).map_err(text)?;
    if follows {
        card.follow_store().map_err(|error| error.to_string())?;
    }
    card.load_in_software(programs).map_err(|error| error.to_string())?;
    Ok(Box::new(card))
}

/// The catalogue: the descriptions beside the images.
pub fn catalogue(images: &Images, running: Option<&str>) -> Vec<ImageInfo> {
    let info = |name: String| {
        let known = images.describe(&name).map_err(|error| error.to_string());
        let read = known.and_then(|text| {
            serde_json::from_str::<ImageInfo>(&text).map_err(|error| format!("its description: {error}"))
        });
        let whole = images.check(&name).map_err(|error| error.to_string());
        let problem = whole.err().or_else(|| read.as_ref().err().cloned());
        let info = read.unwrap_or_default();
        let running = running == Some(name.as_str());
        ImageInfo { name, running, problem, ..info }
    };
    images.names().into_iter().map(info).collect()
}
