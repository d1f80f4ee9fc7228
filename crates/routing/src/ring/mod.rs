//! The routing protocol of networks of kind `rofl`: how flat labels join a ring, and how their packets find them.
//!
//! Flow: frames, ports, labels and time → **[`Router`]** → frames to send, entries, events. No socket, clock or randomness is in
//! here: `hueplane rofl-ring` has them, and tests step many routers in one thread. Time is the duration since any fixed
//! moment. Invariants: every received frame is accepted or counted under one [`Drop`]; a named limit bounds everything that
//! a neighbour can make grow. Source: M. Caesar et al., ROFL: Routing on Flat Labels (SIGCOMM 2006) §3; I. Stoica et al., Chord
//! (SIGCOMM 2001) §4, for how rings are repaired; ADR 0071.

pub mod body;
mod drops;
mod exercise;
mod links;
mod locals;
mod places;
mod pointers;
mod router;
mod types;

pub use body::{Body, PAYLOAD_TYPE};
pub use drops::{Drop, Drops};
pub use exercise::exercise;
pub use links::{Database, Entry, Hop, ROUTERS_MAX, Route, derived};
pub use locals::{GROUP_MAX, Heard, Home, Local, Next};
pub use pointers::{Pointers, WANTS_MAX};
pub use router::{LINKS_MAX, LOCALS_MAX, NEIGHBOURS_MAX, Router};
pub use types::{Config, Counters, Event, Neighbour, Output, Place, Port, Sent};
