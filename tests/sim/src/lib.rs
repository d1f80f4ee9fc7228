//! Random histories of a node, in one thread, from a seed: networks are added, changed and removed, move between card and
//! software, images are loaded, steps are made to fail, cards and ports break, workers stall, and frames flow throughout.
//!
//! Flow: seed → [`history`] (documents from [`world`], frames from [`frame`]) → the daemon's node, the software's
//! workers, the card's thread and the card's own logic, each stepped by [`hand`]
//! ([`ByHand`](hueplaned::node::by_hand::ByHand)) → [`ledger`], [`limits`] and [`check`]. All of the product's code is real; only the
//! operating system is simulated. Time is simulated; a seed gives the same history on every machine.

pub mod check;
pub mod frame;
pub mod hand;
pub mod history;
pub mod ledger;
pub mod limits;
pub mod world;

pub use history::{DRAINED_SEEDS, Failure, LIMITED_SEEDS, Outcome, play, play_recorded};

/// The images that histories use: ternary tables for three networks at a time, and the trie for many.
pub const IMAGES: [&str; 2] = ["tcam3", "default"];
