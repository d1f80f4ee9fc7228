//! Documents: which ones are accepted, how others are rejected, and their schema.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod errors;
mod evaluate;
mod extract;
mod fuzz;
mod load;
mod mpls;
mod rofl;
mod schema;
mod topology;
mod tunnels;
