//! The card as its users see it: twins of images, the wires before them, changes while it runs.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod bar;
mod common;
mod line;
mod twin;
mod update;
