//! Compares the card's twin with the software engine, and tests properties that only a whole card has.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod attachment;
mod beside;
mod burst;
mod contract;
mod differential;
mod full;
mod generator;
mod kinds;
mod many;
mod new_twin;
mod policies;
mod questions;
mod software;
mod tunnels;
mod updates;
mod watchdog;
mod weights;
