//! A router of the ring of flat labels over arbitrary messages and times; a find is a panic, or a counter that does not add up.
//!
//! Run: `cargo +nightly fuzz run ring -- -max_len=2048 -max_total_time=60` in this folder's parent. The same function runs over
//! damaged messages in `cargo test --workspace --test readers`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    hue_routing::ring::exercise(bytes);
});
