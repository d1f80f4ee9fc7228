//! The card's twin against the software engine, and what only a whole card shows.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod beside;
mod burst;
mod differential;
mod full;
mod generator;
mod many;
mod software;
mod updates;
mod watchdog;
mod weights;
