//! Epochs decide when the words of a replaced node can be reused.
//!
//! Flow: readers `pin` before they load a root, and unpin when done. The updater stores new roots, retires
//! the old nodes under the epoch from `advance()`, and frees them once `quiescent()` exceeds that epoch.
//! Readers never wait and never fail; a reader that stays pinned only delays reuse.
//!
//! Invariant: a reader that can still access words retired in epoch e has a slot value of at most e. A reader
//! loads the epoch, stores it in its slot, executes a fence, then loads roots. The updater stores roots,
//! executes a fence, then scans the slots. So either the scan sees the slot value, or the reader loads the
//! new root. `tests/loom.rs` checks this exhaustively.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Most readers registered at once.
#[cfg(not(loom))]
pub const READERS_MAX: usize = 128;
/// Most readers registered at once, in the model.
#[cfg(loom)]
pub const READERS_MAX: usize = 2;

const FREE: u64 = u64::MAX;
const IDLE: u64 = u64::MAX - 1;

/// A reader's slot, on its own cache line, so that readers do not slow each other down.
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
    /// Starts at epoch 0 without readers.
    #[must_use]
    pub fn new() -> Self {
        Self { now: AtomicU64::new(0), slots: (0..READERS_MAX).map(|_| Slot(AtomicU64::new(FREE))).collect() }
    }

    /// Registers a reader. Returns `None` if [`READERS_MAX`] readers are registered.
    #[must_use]
    pub fn register(&self) -> Option<SlotId> {
        let claim =
            |slot: &Slot| slot.0.compare_exchange(FREE, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        self.slots.iter().position(claim).map(SlotId)
    }

    /// Unregisters a reader and frees its slot.
    pub fn unregister(&self, slot: &SlotId) {
        self.slots[slot.0].0.store(FREE, Ordering::Release);
    }

    /// Marks that the reader may access words of the current epoch. Call it before loading roots.
    #[inline]
    pub fn pin(&self, slot: &SlotId) {
        let now = self.now.load(Ordering::Acquire);
        self.slots[slot.0].0.store(now, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Marks that the reader accesses nothing.
    #[inline]
    pub fn unpin(&self, slot: &SlotId) {
        self.slots[slot.0].0.store(IDLE, Ordering::Release);
    }

    /// Ends the current epoch and returns it. Call it after storing the new roots, and retire the old words
    /// under it.
    pub fn advance(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    /// The first epoch whose words readers may still access: words retired in an earlier epoch can be reused.
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
    fn a_pinned_reader_holds_back_its_epoch() {
        let epochs = Epochs::new();
        let reader = epochs.register().unwrap();
        epochs.pin(&reader);
        let retired = epochs.advance();
        assert!(epochs.quiescent() <= retired);
        epochs.unpin(&reader);
        assert!(epochs.quiescent() > retired);
        epochs.pin(&reader);
        assert!(epochs.quiescent() > retired, "a reader pinned later does not hold back the epoch");
    }

    #[test]
    fn slots_run_out_and_are_reused() {
        let epochs = Epochs::new();
        let all: Vec<_> = (0..READERS_MAX).map(|_| epochs.register().unwrap()).collect();
        assert!(epochs.register().is_none());
        epochs.unregister(&all[5]);
        assert!(epochs.register().is_some());
    }
}
