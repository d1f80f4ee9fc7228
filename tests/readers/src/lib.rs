//! Every reader of bytes from outside, over real inputs that were damaged at random. A find is a panic, an input that
//! takes too much processor time or memory, or memory that is not given back.
//!
//! Flow: samples ([`readers`]) → damage → a worker process, one input after the other ([`worker`]) → [`fuzz`], which
//! keeps the input of a find. Invariants: a seed determines all inputs; limits count processor time and allocated bytes,
//! never wall time, so a busy machine finds the same. [`growth()`] compares the time of an input with that of one four times
//! as long: work that grows faster than the input is a find too.

#![allow(clippy::unwrap_used)] // a test helper may panic

mod growth;
mod mutate;
mod planted;
pub mod readers;
mod topologies;
pub mod worker;

pub use growth::{Growth, LEAST_MS, growth};
pub use planted::PLANTED;
pub use readers::{READERS, Reader};
pub use worker::{Find, Limits, Summary, fuzz};

/// A reader by name, planted ones included.
#[must_use]
pub fn reader(name: &str) -> Option<&'static Reader> {
    READERS.iter().chain(PLANTED).find(|reader| reader.name == name)
}
