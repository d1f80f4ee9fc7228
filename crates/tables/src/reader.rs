//! Readers: lock-free lookups in the image that the updater keeps changing.
//!
//! A reader pins, looks up as much as it likes, and unpins by dropping the guard. Every lookup sees one whole table
//! of its network: the one before a change or the one after it.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::epoch::SlotId;
use crate::mem::{Image, Isa};
use crate::types::{Key, NextHop, Vid};

/// A registered reader of a [`crate::Dag`]; one a thread.
pub struct Reader<K: Key> {
    image: Arc<Image>,
    slot: SlotId,
    isa: Isa,
    key: PhantomData<K>,
}

impl<K: Key> Reader<K> {
    pub(crate) fn new(image: Arc<Image>) -> Option<Self> {
        let slot = image.epochs.register()?;
        Some(Self { image, slot, isa: Isa::detect(), key: PhantomData })
    }

    /// Holds the words of the current tables until the guard is dropped.
    #[inline]
    pub fn pin(&mut self) -> Guard<'_, K> {
        self.image.epochs.pin(&self.slot);
        Guard { reader: self }
    }
}

#[cfg(test)]
impl<K: Key> Reader<K> {
    /// Makes batches run on these instructions, which the processor must have.
    pub(crate) fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
    }
}

impl<K: Key> Drop for Reader<K> {
    fn drop(&mut self) {
        self.image.epochs.unregister(&self.slot);
    }
}

/// Permission to look up; see [`Reader::pin`].
pub struct Guard<'a, K: Key> {
    reader: &'a Reader<K>,
}

impl<K: Key> Guard<'_, K> {
    /// Longest-prefix match in one network; `None` when no route covers the key or the network has no table.
    #[must_use]
    #[inline]
    pub fn lookup(&self, vid: Vid, key: K) -> Option<NextHop> {
        NextHop::new(self.reader.image.lookup(vid, key))
    }

    /// Longest-prefix match of `keys[i]` in network `vids[i]` for each i; `out[i]` becomes the next-hop word,
    /// [`NextHop::NONE_WORD`] for no route. Of slices of unequal length the shortest counts.
    #[inline]
    pub fn lookup_batch(&self, vids: &[Vid], keys: &[K], out: &mut [u16]) {
        self.reader.image.lookup_batch(self.reader.isa, vids, keys, out);
    }
}

impl<K: Key> Drop for Guard<'_, K> {
    fn drop(&mut self) {
        self.reader.image.epochs.unpin(&self.reader.slot);
    }
}
