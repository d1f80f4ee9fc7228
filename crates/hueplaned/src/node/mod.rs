//! The node: one thread that owns all mutable state, threads for slow work, and a handle for all other threads.
//!
//! Flow: API → [`NodeHandle`] → **node thread** → namespaces (by `jobs`), ports, data plane; netlink of the
//! namespaces → monitor → node thread → tables. Views, counters and events are read without the thread. Invariants:
//! packets never wait for the node; a failure of one network does not affect others. The modules import each other in
//! one direction, which a test checks: parts (all others), `core` (the thread), `handle` (the API's side), `start`.

mod apart;
pub mod by_hand;
mod capture;
mod card;
mod card_state;
mod change;
mod command;
mod core;
mod door;
mod drain;
mod drift;
mod drive;
mod events;
mod files;
mod handle;
mod idle;
mod image;
mod jobs;
mod learnt;
mod lists;
mod loading;
mod memory;
mod message;
mod moves;
mod networks;
mod pending;
mod plan;
mod ports;
mod programs;
mod queue;
mod routes;
mod running_card;
#[cfg(test)]
mod samples;
mod shared;
mod site;
mod start;
mod stats;
mod take_over;
mod taps;
mod view;
mod waiters;
mod wanted;
mod wires;

pub use apart::run_if_asked;
pub use events::{About, EVENTS_MAX, EventLog};
pub use handle::NodeHandle;
pub use idle::IDLE_WAIT_MAX;
pub use image::catalogue;
pub use memory::{SLOTS_MAX as PACKET_SLOTS_MAX, SLOTS_MIN as PACKET_SLOTS_MIN};
pub use queue::{TURN_MAX, WAITING_MAX};
pub use start::{Running, start};
pub use take_over::{Predecessor, learnt_in};
