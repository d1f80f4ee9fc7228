//! A card in a process of its own. A fault of its model, or of the code that drives it, ends no other part of the daemon; and
//! the card goes on when the daemon ends, as a card of hardware does.
//!
//! Flow: [`Apart::start`] → process ([`run_if_asked`]) → a running card ([`hue_card::LiveCard`]) in it. Commands, questions
//! and reports cross a socket as messages ([`protocol`]); frames, wake-ups and the validity of seats are in memory that both
//! processes map, so a frame costs as much as between two threads. The process opens the card's ports, and its frames never
//! pass the daemon.
//!
//! A daemon that ends and leaves its networks ([`Apart::leave`]), or that is killed, leaves the process, if networks are on the
//! card. The next daemon connects to it ([`door`]), and gets the card once the daemon before has ended. Networks stay on the
//! card meanwhile, with the tables that it has.
//!
//! Invariants: the daemon's node never waits for the process, except when it starts and ends it; a process serves one daemon
//! at a time; it ends when it is told to, when it serves no daemon and no network is on its card, or when its socket's file is
//! gone, so none is left behind; if it ends while it serves a daemon, that is a failed card
//! ([`hue_card::CardEvent::Failed`]).

mod body;
mod door;
mod link;
mod lock;
mod process;
mod protocol;
mod reports;
mod wired;

pub use body::CardSite;
pub use link::{Apart, Opener};
pub use process::run_if_asked;
