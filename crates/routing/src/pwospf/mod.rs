//! PW-OSPF, the routing protocol of the papers' control plane, as a state machine.
//!
//! Flow: packets, interfaces and time → **[`Router`]** → packets to send, changes of routes, events. No socket, clock or
//! randomness is in here: `hueplane pwospf` has them, and tests step several routers in one thread. Time is the duration
//! since any fixed moment. Invariants: every received packet is accepted or counted under one [`Drop`]; a named limit bounds
//! everything that a neighbour can make grow. Source: Stanford CS344, "Pee-Wee OSPF Protocol Details"; where it leaves a
//! choice, ADR 0058 has it.

pub mod database;
mod drops;
mod exercise;
mod interface;
pub mod packet;
pub mod paths;
mod router;

pub use database::{Entry, ROUTERS_MAX};
pub use drops::{Drop, Drops};
pub use exercise::exercise;
pub use interface::{Interface, NEIGHBOURS_MAX, Neighbour};
pub use packet::{ADVERTISEMENTS_MAX, ALL_ROUTERS, Advertisement, IP_PROTOCOL, RouterId};
pub use paths::{NextHop, Route};
pub use router::TTL;
pub use router::{Config, Counters, Event, Output, RouteChange, Router, Sent};
