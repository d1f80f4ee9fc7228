//! What the tests of the live half share.
#![allow(dead_code)] // each test binary uses its part
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy takes for code

pub mod kernel;
pub mod lab;
