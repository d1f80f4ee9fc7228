//! Checks every interleaving of one reader and the updater over the epochs and a root word.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p hue-tables --test loom` (`make test` does).
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use hue_tables::epoch::Epochs;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

/// Two nodes; the root refers to one. The updater publishes the other and reuses the first, after quiescence
/// if it `waits`. A pinned reader must never see reused words.
fn reuse(waits: bool) {
    loom::model(move || {
        let epochs = Arc::new(Epochs::new());
        let root = Arc::new(AtomicUsize::new(0));
        let words = Arc::new([AtomicUsize::new(10), AtomicUsize::new(20)]);
        let reader = {
            let (epochs, root, words) = (epochs.clone(), root.clone(), words.clone());
            let slot = epochs.register().unwrap();
            loom::thread::spawn(move || {
                epochs.pin(&slot);
                let node = root.load(Ordering::Acquire);
                let seen = words[node].load(Ordering::Relaxed);
                epochs.unpin(&slot);
                assert_eq!(seen, [10, 20][node], "reused under a reader");
            })
        };
        root.store(1, Ordering::Release);
        let retired = epochs.advance();
        if !waits || retired < epochs.quiescent() {
            words[0].store(99, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
}

#[test]
fn words_in_use_are_not_reused() {
    reuse(true);
}

/// Checks the model: if the updater does not wait for the reader, loom must detect the misuse.
#[test]
#[should_panic(expected = "reused under a reader")]
fn reuse_without_waiting_is_detected() {
    reuse(false);
}
