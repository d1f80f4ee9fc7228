//! Ports over captures, and over interfaces of this machine (root).

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod captures;
#[path = "../common/mod.rs"]
mod common;
mod drivers;
mod quota;
