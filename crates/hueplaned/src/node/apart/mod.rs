//! A card in a process of its own, so that a fault of its model, or of the code that drives it, ends no other part of the
//! daemon.
//!
//! Flow: [`Apart::start`] → process ([`run_if_asked`]) → a running card ([`hue_card::LiveCard`]) in it. Commands, questions
//! and reports cross a socket as messages ([`protocol`]); frames, wake-ups and the validity of seats are in memory that both
//! processes map, so a frame costs as much as between two threads. The process opens the card's ports, and its frames never
//! pass the daemon. Invariants: the daemon's node never waits for the process, except when it starts and ends it; the
//! process ends when the daemon does; if it ends before, that is a failed card ([`hue_card::CardEvent::Failed`]).

mod link;
mod process;
mod protocol;

pub use link::{Apart, Opener};
pub use process::run_if_asked;
