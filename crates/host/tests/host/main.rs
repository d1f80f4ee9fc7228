//! The services of the operating system, tested with the real system. Needs root.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod cgroup;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod inet;
mod links;
mod netns;
