//! Every header view and edit of hue-wire over arbitrary bytes; a find is a panic.
//!
//! Run: `cargo +nightly fuzz run wire -- -max_len=512 -max_total_time=60` in this folder's parent. The same
//! function runs over random, mutated and truncated bytes in `cargo test -p hue-wire`. A find becomes a file
//! in `spec/vectors/wire`, which those tests replay.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    hue_wire::exercise::exercise(&mut bytes);
});
