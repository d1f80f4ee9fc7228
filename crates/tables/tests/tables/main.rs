//! Tests of the lookup structures against their oracles, with generated and real tables.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod dir;
mod real;
mod store;
mod stress;
