//! Documents: what is read, what is refused and how, and their schema.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod errors;
mod evaluate;
mod fuzz;
mod load;
mod schema;
