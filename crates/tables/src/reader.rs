//! Readers: lock-free lookups in an image while the updater changes it.
//!
//! A reader pins the current tables, looks up as much as it needs, and unpins by dropping the guard. Each
//! lookup sees either the complete old table or the complete new table of its network.

use std::sync::Arc;

use crate::epoch::SlotId;
use crate::mem::{Image, Isa};
use crate::types::{Key, NextHop, Vid};

/// A registered reader of a [`crate::Dag`]; each thread needs its own.
pub struct Reader {
    image: Arc<Image>,
    slot: SlotId,
    isa: Isa,
}

impl Reader {
    pub(crate) fn new(image: Arc<Image>) -> Option<Self> {
        let slot = image.epochs.register()?;
        Some(Self { image, slot, isa: Isa::detect() })
    }

    /// Keeps the words of the current tables valid until the guard is dropped.
    #[inline]
    pub fn pin(&mut self) -> Guard<'_> {
        self.image.epochs.pin(&self.slot);
        Guard { reader: self }
    }
}

#[cfg(test)]
impl Reader {
    /// Sets the instruction set for batches; the processor must support it.
    pub(crate) fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.image.epochs.unregister(&self.slot);
    }
}

/// A pinned reader, which can look up keys; see [`Reader::pin`].
pub struct Guard<'a> {
    reader: &'a Reader,
}

impl Guard<'_> {
    /// Longest-prefix match in one network. Returns `None` if no route covers the key or the network has no
    /// table with keys of this width.
    #[must_use]
    #[inline]
    pub fn lookup<K: Key>(&self, vid: Vid, key: K) -> Option<NextHop> {
        NextHop::new(self.reader.image.lookup(vid, key))
    }

    /// Longest-prefix match of `keys[i]` in network `vids[i]` for each i. Writes the next-hop word to
    /// `out[i]`, or [`NextHop::NONE_WORD`] if there is no route. If the slices differ in length, the shortest
    /// determines the count.
    #[inline]
    pub fn lookup_batch<K: Key>(&self, vids: &[Vid], keys: &[K], out: &mut [u16]) {
        self.reader.image.lookup_batch(self.reader.isa, vids, keys, out);
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.reader.image.epochs.unpin(&self.reader.slot);
    }
}
