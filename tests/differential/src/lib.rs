//! Compares the card's logic, simulated cycle by cycle, with the software engine: the same networks and frames must give
//! the same bytes, verdicts and counters. See `tests/`.
//!
//! Everything random comes from a seed that a failure prints.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may panic: that is how it fails

mod compare;
mod golden;
mod groups;
mod images;
mod policies;
mod together;
mod updates;
mod world;
mod world10;
mod world2;
mod world5;
mod world6;
mod world7;
mod world9;

pub use compare::{Difference, Tally, card, compare, compare_on, offered};
pub use golden::{Golden, golden, golden_for_cards, is_for_cards};
pub use groups::group;
pub use hue_testdata::Random;
pub use hue_testdata::{ALL_IMAGES, IMAGES, TARGET_IMAGES, first_seed, full};
pub use images::{fails_with, image, images, images_alone, mutated};
pub use policies::{changed, decided, route_by};
pub use together::{Case, Together, cases, pieces};
pub use updates::{Seen, Step, compare_updates};
pub use world::{Frame, fit_banks, fits_banks, frames, mixed, programs};
