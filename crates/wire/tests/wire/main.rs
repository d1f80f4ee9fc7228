//! Header views against another decoder, and over arbitrary bytes.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;
mod differential;
mod exercise;
