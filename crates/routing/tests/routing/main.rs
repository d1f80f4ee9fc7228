//! Route files, and a kernel's routes followed; with routing daemons where they are installed.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod daemons;
mod files;
mod full_table;
mod live;
mod rib;
