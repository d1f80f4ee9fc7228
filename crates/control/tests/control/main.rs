//! Compiled programs, and routes that follow a kernel.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod compile;
mod extract;
mod live_rib;
mod mpls;
mod rofl;
mod splice;
mod topology;
mod tunnels;
