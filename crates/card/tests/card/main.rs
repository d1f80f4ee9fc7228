//! The card as its users have it: twins of images, the wire in front, changes while it runs.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod bar;
mod common;
mod line;
mod twin;
mod update;
