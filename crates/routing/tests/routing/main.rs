//! Route files, and following a kernel's routes; with routing daemons where installed.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod daemons;
mod files;
mod full_table;
mod live;
mod live6;
mod pwospf_packet;
mod pwospf_router;
mod pwospf_world;
mod rib;
mod ring;
mod ring_world;
