//! Shared by the live tests.
#![allow(dead_code)] // each test binary uses its part
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy treats as code

pub mod answers;
pub mod kernel;
pub mod lab;
