//! Lookup structures against their oracles, on made and on real tables.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod dir;
mod real;
mod store;
mod stress;
