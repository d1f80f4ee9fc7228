//! What the operating system gives, against the system itself. Needs root.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod cgroup;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod inet;
mod links;
mod netns;
