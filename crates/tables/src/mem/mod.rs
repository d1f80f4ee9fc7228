//! The only unsafe code of this crate: an arena of granules that one updater writes and many readers read,
//! and the lookup in it with prefetch.
//!
//! Invariants that make the raw reads sound:
//! - the mapping never moves and is never unmapped while a reader holds the `Image`;
//! - the updater writes only granules that no root reaches (never used, or retired with a past epoch), and
//!   publishes them with a release store of a root word, which readers load with acquire;
//! - every ref in a reachable node names a granule of the arena with a node of the ref's kind: only
//!   `Image::write_node` writes nodes, and only the updater passes refs to it.

#![allow(unsafe_code)]

pub(crate) mod lookup;
#[cfg(target_arch = "x86_64")]
mod wide;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::epoch::Epochs;
use crate::layout::{GRANULE_BYTES, Kind, NODE_GRANULES_MAX, Ref, WIDE_BYTES};
use crate::types::{Key, Vid};
pub(crate) use lookup::Isa;

/// Root words for keys of one width.
const ROOTS: usize = Vid::MAX as usize + 1;
/// Widths of keys, each with root words of its own.
const WIDTHS: usize = 2;
const HUGE_BYTES: usize = 2 << 20;

/// The memory of a `dag64` image: granules, and a root word for each network and width of keys. Readers share it;
/// only the [`Writer`] changes it.
pub(crate) struct Image {
    pub(crate) epochs: Epochs,
    map: MmapRaw,
    base: usize,
    granules: u32,
    /// By [`Key::TABLE`], then by network.
    roots: Box<[AtomicU32; WIDTHS * ROOTS]>,
}

/// Exclusive write access to an image; there is one for each.
pub(crate) struct Writer(Arc<Image>);

impl Deref for Writer {
    type Target = Image;

    fn deref(&self) -> &Image {
        &self.0
    }
}

impl Writer {
    /// Reserves address space for `granules`; the system allocates pages when they are first written. Granule
    /// 0 is a wide node of "no route", the root of every network without a table.
    pub(crate) fn reserve(granules: u32) -> std::io::Result<Self> {
        let granules = granules.max(2 * NODE_GRANULES_MAX as u32);
        let bytes = granules as usize * GRANULE_BYTES;
        let map = MmapOptions::new().len(bytes + HUGE_BYTES).no_reserve_swap().map_anon()?;
        let map = MmapRaw::from(map);
        let base = (map.as_mut_ptr() as usize).next_multiple_of(HUGE_BYTES) - map.as_mut_ptr() as usize;
        if bytes >= HUGE_BYTES {
            // Fewer TLB misses. A kernel without huge pages returns an error that can be ignored.
            let _ = map.advise(Advice::HugePage);
        }
        let roots = (0..WIDTHS * ROOTS).map(|_| AtomicU32::new(0)).collect::<Vec<_>>().into_boxed_slice();
        let Ok(roots) = roots.try_into() else { unreachable!("as many words were made") };
        let mut image = Self(Arc::new(Image { epochs: Epochs::new(), map, base, granules, roots }));
        let mut empty = [0; WIDE_BYTES];
        for word in empty.chunks_exact_mut(4) {
            word.copy_from_slice(&Ref::NONE.word().to_le_bytes());
        }
        image.write_node(0, &empty);
        Ok(image)
    }

    /// The image, for a reader.
    pub(crate) fn share(&self) -> Arc<Image> {
        Arc::clone(&self.0)
    }

    /// Copies a whole number of granules to `index`. No reader may reach these granules.
    pub(crate) fn write_node(&mut self, index: u32, bytes: &[u8]) {
        let end = index as usize * GRANULE_BYTES + bytes.len();
        assert!(end <= self.granules as usize * GRANULE_BYTES, "node beyond the arena");
        // SAFETY: in bounds by the assertion; `bytes` is not of the arena since the arena is never lent mutably; no
        // reader reads these granules (the updater allocates them only when unreachable and quiescent).
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.base().add(index as usize * GRANULE_BYTES),
                bytes.len(),
            );
        }
    }

    /// Publishes the top node (a wide node) of a network's table to all readers with one store.
    pub(crate) fn set_root<K: Key>(&mut self, vid: Vid, top: Ref) {
        assert!(top.kind() == Kind::Wide, "top nodes are wide");
        self.roots[place::<K>(vid)].store(top.index(), Ordering::Release);
    }

    /// Publishes that a network has no tables.
    pub(crate) fn clear_roots(&mut self, vid: Vid) {
        for place in [place::<u32>(vid), place::<u128>(vid)] {
            self.roots[place].store(0, Ordering::Release);
        }
    }
}

impl Image {
    #[inline(always)]
    fn base(&self) -> *mut u8 {
        // SAFETY: `base` is at most HUGE_BYTES, and the mapping is that much longer than the granules.
        unsafe { self.map.as_mut_ptr().add(self.base) }
    }

    /// The granules of a node. The caller must pass a live node.
    pub(crate) fn node(&self, index: u32, granules: usize) -> &[u8] {
        let start = index as usize * GRANULE_BYTES;
        assert!(start + granules * GRANULE_BYTES <= self.granules as usize * GRANULE_BYTES);
        // SAFETY: in bounds by the assertion; live nodes are not written, and only the updater frees and reuses them,
        // which needs `&mut` to the owner of this image.
        unsafe { std::slice::from_raw_parts(self.base().add(start), granules * GRANULE_BYTES) }
    }

    #[inline(always)]
    fn root<K: Key>(&self, vid: Vid) -> u32 {
        self.roots[place::<K>(vid)].load(Ordering::Acquire)
    }

    /// The root words of tables with keys of this width.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn roots<K: Key>(&self) -> &[AtomicU32; ROOTS] {
        let (narrow, wide) = self.roots.split_at(ROOTS);
        let half = if K::TABLE == 0 { narrow } else { wide };
        let Some(half) = half.first_chunk() else { unreachable!("each half has ROOTS words") };
        half
    }
}

/// The place of a root word.
#[inline(always)]
const fn place<K: Key>(vid: Vid) -> usize {
    K::TABLE % WIDTHS * ROOTS + (vid.index() & (ROOTS - 1))
}
