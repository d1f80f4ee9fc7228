//! Header views against other decoders, and over whatever bytes.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod differential;
mod exercise;
