//! Random histories of a node.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod crowded;
mod histories;
mod planted;
