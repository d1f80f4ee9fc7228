//! Random histories of a node.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod again;
mod bits;
mod crowded;
mod families;
mod fates;
mod floods;
mod histories;
mod kinds;
mod labels;
mod planted;
mod replay;
mod slices;
mod swaps;
mod switches;
