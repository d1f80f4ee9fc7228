//! Tests of the software engine from outside.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "../common/mod.rs"]
mod common;
mod dual;
mod flat;
mod groups;
mod isolation;
mod l2;
mod live;
mod live_change;
mod live_ipv6;
mod live_l2;
mod live_tunnels;
mod load;
#[path = "../../../planes/tests/oracle/mod.rs"]
mod oracle;
mod policies;
mod vectors;
mod veth;
mod world;
