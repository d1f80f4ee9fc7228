//! Images of the card: which there are, whether one meets requirements, and a card with one.
//!
//! Flow: folder of images → catalogue for the API; networks with their tables → [`Trial`] → an image that holds them;
//! [`loading`](super::loading) → [`start`] → a card with another image. All of it is slow: not for the node's thread.

use hue_card::{Card, Images, Twin, make_live};
use hue_substrate::{Program, Substrate};

use crate::api::ImageInfo;

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
