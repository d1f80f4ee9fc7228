//! Random histories of a node, in one thread, from a seed: networks are added, changed and removed, move between card and
//! software, images are loaded, steps are made to fail, cards and ports break, workers stall, and frames flow throughout. Beside
//! routers, some histories have a switch.
//!
//! Flow: seed → [`history`] (documents from [`world`], frames from [`frame`]) → the daemon's node, the software's
//! workers, the card's thread and the card's own logic, each stepped by [`hand`]
//! ([`ByHand`](hueplaned::node::by_hand::ByHand)) → [`ledger`], [`hosts`], [`limits`] and [`check`]. All of the product's code is real; only the
//! operating system is simulated. Time is simulated; a seed gives the same history on every machine.

pub mod check;
pub mod frame;
pub mod hand;
pub mod history;
pub mod hosts;
pub mod ledger;
pub mod limits;
pub mod world;

pub use history::{
    DRAINED_SEEDS, Failure, LIMITED_SEEDS, Outcome, is_mixed, is_shared, is_sourced, is_switched, play,
    play_recorded,
};

use hue_card::Images;
use hue_differential::images_alone;

/// The images that histories use: ternary tables for three networks at a time, and the trie for many.
pub const IMAGES: [&str; 2] = ["tcam3", "default"];
/// Those of histories with both address families: one without IPv6, and one with it.
pub const IMAGES_MIXED: [&str; 2] = ["default", "kinds"];

/// The images of histories, by their seeds.
pub struct Sets {
    /// [`IMAGES`].
    pub plain: Images,
    /// [`IMAGES_MIXED`].
    pub mixed: Images,
}

impl Default for Sets {
    fn default() -> Self {
        Self { plain: images_alone(&IMAGES), mixed: images_alone(&IMAGES_MIXED) }
    }
}

impl Sets {
    /// The images of a seed's history, and their names.
    #[must_use]
    pub fn of(&self, seed: u64) -> (&Images, Vec<&'static str>) {
        match is_mixed(seed) {
            true => (&self.mixed, IMAGES_MIXED.to_vec()),
            false => (&self.plain, IMAGES.to_vec()),
        }
    }
}
