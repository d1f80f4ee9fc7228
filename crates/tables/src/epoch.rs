//! Epochs: when may the words of a replaced node be written again?
//!
//! Flow: readers `pin` before they load a root and unpin when done; the updater stores new roots, then retires the
//! old nodes under `advance()`'s epoch, and frees them once `quiescent()` lies beyond it. Readers never wait and
//! never fail; a reader that stays pinned only delays reuse.
//!
//! Invariant: a reader that can still see words retired in epoch e holds a slot value at most e. It loads the epoch,
//! stores it in its slot, fences, then loads roots; the updater stores roots, fences, then scans the slots. So either
//! the scan sees the slot, or the reader's root load sees the new root. `tests/loom.rs` checks this exhaustively.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Readers that may be registered at once.
#[cfg(not(loom))]
pub const READERS_MAX: usize = 128;
/// Readers that may be registered at once (model).
#[cfg(loom)]
pub const READERS_MAX: usize = 2;

const FREE: u64 = u64::MAX;
const IDLE: u64 = u64::MAX - 1;

/// One slot a reader, on a cache line of its own so that readers do not disturb each other.
#[repr(align(128))]
struct Slot(AtomicU64);

/// The epoch counter and the readers' slots.
pub struct Epochs {
    now: AtomicU64,
    slots: Vec<Slot>,
}

/// A registered reader's slot number.
#[derive(Debug)]
pub struct SlotId(usize);

impl Default for Epochs {
    fn default() -> Self {
        Self::new()
    }
}

impl Epochs {
    /// Epoch 0, no readers.
    #[must_use]
    pub fn new() -> Self {
        Self { now: AtomicU64::new(0), slots: (0..READERS_MAX).map(|_| Slot(AtomicU64::new(FREE))).collect() }
    }

    /// Registers a reader; `None` when [`READERS_MAX`] are registered.
    #[must_use]
    pub fn register(&self) -> Option<SlotId> {
        let claim =
            |slot: &Slot| slot.0.compare_exchange(FREE, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        self.slots.iter().position(claim).map(SlotId)
    }

    /// Gives a slot back.
    pub fn unregister(&self, slot: &SlotId) {
        self.slots[slot.0].0.store(FREE, Ordering::Release);
    }

    /// Announces that the reader may hold words of the current epoch. Root loads come after it.
    #[inline]
    pub fn pin(&self, slot: &SlotId) {
        let now = self.now.load(Ordering::Acquire);
        self.slots[slot.0].0.store(now, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Announces that the reader holds nothing.
    #[inline]
    pub fn unpin(&self, slot: &SlotId) {
        self.slots[slot.0].0.store(IDLE, Ordering::Release);
    }

    /// Ends the current epoch, after the new roots are stored, and returns it: retire old words under it.
    pub fn advance(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    /// Words retired in an epoch below this one are seen by no reader.
    #[must_use]
    pub fn quiescent(&self) -> u64 {
        fence(Ordering::SeqCst);
        let pinned = self.slots.iter().map(|slot| slot.0.load(Ordering::Acquire)).filter(|e| *e < IDLE);
        pinned.min().unwrap_or(u64::MAX)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_reader_holds_its_epoch() {
        let epochs = Epochs::new();
        let reader = epochs.register().unwrap();
        epochs.pin(&reader);
        let retired = epochs.advance();
        assert!(epochs.quiescent() <= retired);
        epochs.unpin(&reader);
        assert!(epochs.quiescent() > retired);
        epochs.pin(&reader);
        assert!(epochs.quiescent() > retired, "a reader pinned later does not hold it");
    }

    #[test]
    fn slots_run_out_and_come_back() {
        let epochs = Epochs::new();
        let all: Vec<_> = (0..READERS_MAX).map(|_| epochs.register().unwrap()).collect();
        assert!(epochs.register().is_none());
        epochs.unregister(&all[5]);
        assert!(epochs.register().is_some());
    }
}
