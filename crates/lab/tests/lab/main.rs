//! Tests of the laboratory from outside.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod schedule;
mod sorts;
