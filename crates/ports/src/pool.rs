//! One worker's packet memory: slots of equal size in one mapping, and the frames in them.
//!
//! Flow: a port takes a slot, receives into it and hands out a [`Packet`]; its last owner gives the slot back, or sends
//! the packet, and then the port gives it back. Invariants: a slot has one owner at a time (the free list, a packet, or
//! a port's ring), which the type enforces by being neither `Copy` nor `Clone`; a slot that is dropped is lost to its
//! pool for good. Units: bytes; offsets count from the start of [`Pool::bytes`].
//!
//! [`Region`] shares the mapping, so that a port keeps the memory that the kernel writes to alive.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::PortError;

/// Bytes kept free before a received frame, so that an outer header fits without a copy.
pub const HEADROOM_BYTES: u32 = 256;

/// Slot sizes a pool accepts, bytes: AF_XDP requires a power of two from half a page to a page.
pub const SLOT_BYTES: [u32; 2] = [2048, 4096];

/// The right to use one slot of a pool.
#[must_use = "a slot that is dropped is lost to its pool: give it back"]
#[derive(Debug)]
pub struct Slot(u32);

impl Slot {
    /// Its index in the pool.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0
    }

    /// Takes back a slot that the kernel or a ring held as a number.
    #[inline]
    pub(crate) fn from_index(index: u32) -> Self {
        Self(index)
    }
}

/// A frame in a pool. Bytes start at the destination MAC; the frame check sequence is absent.
#[must_use = "a packet that is dropped loses its slot: send it or give the slot back"]
#[derive(Debug)]
pub struct Packet {
    /// The slot that holds it.
    pub slot: Slot,
    /// Offset of its first byte in [`Pool::bytes`], inside the slot; when received, at least [`HEADROOM_BYTES`] after the
    /// slot's start.
    pub start: u32,
    /// Its length, bytes.
    pub len: u32,
    /// Time of reception, nanoseconds, on the clock of the caller of [`Port::receive`](crate::Port::receive).
    pub time_ns: u64,
    /// The class whose share of the receive ring it uses; 0 means none.
    pub class: u16,
}

impl Packet {
    /// Its bytes; empty when it is not in this pool.
    #[inline]
    #[must_use]
    pub fn bytes<'p>(&self, pool: &'p Pool) -> &'p [u8] {
        let start = self.start as usize;
        pool.bytes().get(start..start + self.len as usize).unwrap_or(&[])
    }

    /// Its bytes, writable; empty when it is not in this pool.
    #[inline]
    #[must_use]
    pub fn bytes_mut<'p>(&self, pool: &'p mut Pool) -> &'p mut [u8] {
        let start = self.start as usize;
        pool.bytes_mut().get_mut(start..start + self.len as usize).unwrap_or(&mut [])
    }
}

/// The mapping itself.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is plain memory that any thread may access; the pool decides who may use which slot.
unsafe impl Send for Mapping {}
// SAFETY: as above; `Mapping` itself hands out nothing but the address.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `Pool::new` created, and nothing uses it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A port's handle on a pool's memory: keeps the mapping alive, gives no access to its bytes.
#[derive(Clone)]
pub struct Region {
    mapping: Arc<Mapping>,
    slot_bytes: u32,
    slots: u32,
}

impl Region {
    pub(crate) fn base(&self) -> u64 {
        self.mapping.base.as_ptr() as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        self.mapping.bytes
    }

    /// Bytes of a slot.
    #[must_use]
    pub fn slot_bytes(&self) -> u32 {
        self.slot_bytes
    }

    /// Slots in all.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The longest frame that fits after the headroom, bytes.
    #[must_use]
    pub fn frame_bytes_max(&self) -> u32 {
        self.slot_bytes - HEADROOM_BYTES
    }

    /// Makes the kernel provide all pages now, which an AF_XDP port otherwise waits for when it is opened. Older kernels
    /// than 5.14 do not.
    pub fn populate(&self) {
        // SAFETY: advice on our own mapping; its contents do not change.
        unsafe {
            libc::madvise(self.mapping.base.as_ptr().cast(), self.mapping.bytes, libc::MADV_POPULATE_WRITE)
        };
    }

    /// Whether both are the same memory.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.mapping, &other.mapping)
    }

    pub(crate) fn is_of(&self, pool: &Pool) -> bool {
        Arc::ptr_eq(&self.mapping, &pool.region.mapping)
    }
}

/// Slots and the list of free ones. Belongs to one worker.
pub struct Pool {
    region: Region,
    /// Last in, first out: such a slot is still in the cache.
    free: Vec<u32>,
}

impl Pool {
    /// A pool of `slots` slots of `slot_bytes` each (2,048 or 4,096), all free.
    ///
    /// # Errors
    /// `Pool` when the size is not one of [`SLOT_BYTES`], there are no slots or 4 GiB of them or more, or the system is out
    /// of memory.
    pub fn new(slots: u32, slot_bytes: u32) -> Result<Self, PortError> {
        let refuse = |source| PortError::Pool { slots, slot_bytes, source };
        let bytes = u64::from(slots) * u64::from(slot_bytes);
        if !SLOT_BYTES.contains(&slot_bytes) || slots == 0 || bytes > u64::from(u32::MAX) {
            return Err(refuse(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        let bytes = bytes as usize;
        // SAFETY: a new private anonymous mapping; no address is requested.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let base = match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => base,
            _ => return Err(refuse(io::Error::last_os_error())),
        };
        let mapping = Mapping { base, bytes };
        // SAFETY: advice on our own mapping. A child between fork and exec must not share pages that the kernel writes
        // to; huge pages save TLB misses. The kernel may refuse either without harm.
        unsafe {
            libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DONTFORK);
            libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        }
        let region = Region { mapping: Arc::new(mapping), slot_bytes, slots };
        Ok(Self { region, free: (0..slots).rev().collect() })
    }

    /// The memory of all slots.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is this long and lives as long as `self`. The kernel writes only to slots whose number a
        // port has put into one of its rings; their bytes are not read before the ring gives them back.
        unsafe { std::slice::from_raw_parts(self.region.mapping.base.as_ptr(), self.region.mapping.bytes) }
    }

    /// The memory of all slots, writable.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; only the pool hands out its bytes, and `self` is borrowed mutably.
        unsafe {
            std::slice::from_raw_parts_mut(self.region.mapping.base.as_ptr(), self.region.mapping.bytes)
        }
    }

    /// The least offset that a packet in a slot can start at.
    #[must_use]
    pub fn floor(&self, slot: &Slot) -> u32 {
        slot.0 * self.region.slot_bytes
    }

    /// Copies `frame` into a free slot; `None` when no slot is free or the frame does not fit.
    pub fn copy_in(&mut self, frame: &[u8], time_ns: u64) -> Option<Packet> {
        if frame.len() > self.region.frame_bytes_max() as usize {
            return None;
        }
        let slot = self.take()?;
        let packet = Packet { start: self.start(&slot), slot, len: frame.len() as u32, time_ns, class: 0 };
        packet.bytes_mut(self).copy_from_slice(frame);
        Some(packet)
    }

    /// Copies a packet into another slot, without a class. `None` if no slot is free, or if the packet, which may
    /// extend into the headroom, does not fit after the headroom.
    pub fn duplicate(&mut self, packet: &Packet) -> Option<Packet> {
        if packet.len > self.region.frame_bytes_max() {
            return None;
        }
        let from = packet.start as usize;
        let slot = self.take()?;
        let copy =
            Packet { start: self.start(&slot), slot, len: packet.len, time_ns: packet.time_ns, class: 0 };
        self.bytes_mut().copy_within(from..from + packet.len as usize, copy.start as usize);
        Some(copy)
    }

    /// Where a received frame starts in a slot: after the headroom.
    #[inline]
    #[must_use]
    pub fn start(&self, slot: &Slot) -> u32 {
        slot.0 * self.region.slot_bytes + HEADROOM_BYTES
    }

    /// Bytes of a slot.
    #[inline]
    #[must_use]
    pub fn slot_bytes(&self) -> u32 {
        self.region.slot_bytes
    }

    /// The longest frame that fits after the headroom, bytes.
    #[inline]
    #[must_use]
    pub fn frame_bytes_max(&self) -> u32 {
        self.region.frame_bytes_max()
    }

    /// Number of free slots.
    #[inline]
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Slots in all.
    #[inline]
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.region.slots
    }

    /// Takes a free slot.
    #[inline]
    pub fn take(&mut self) -> Option<Slot> {
        self.free.pop().map(Slot)
    }

    /// Gives a slot back.
    ///
    /// # Panics
    /// If the slot belongs to another, larger pool, or more slots are returned than exist (a bug of ours).
    #[inline]
    #[allow(clippy::needless_pass_by_value)] // giving it up is the point
    pub fn give(&mut self, slot: Slot) {
        assert!(slot.0 < self.region.slots && self.free.len() < self.region.slots as usize);
        self.free.push(slot.0);
    }

    /// The memory, for ports that are opened outside the pool's worker.
    #[must_use]
    pub fn region(&self) -> Region {
        self.region.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_and_given() {
        let mut pool = Pool::new(3, 2048).unwrap();
        let slots: Vec<Slot> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((slots.len(), pool.free()), (3, 0));
        for slot in slots {
            pool.give(slot);
        }
        assert_eq!(pool.free(), 3);
    }

    #[test]
    fn a_frame_is_kept_behind_the_headroom() {
        let mut pool = Pool::new(2, 2048).unwrap();
        let first = pool.copy_in(&[1; 1792], 7).unwrap();
        let second = pool.copy_in(&[2; 60], 8).unwrap();
        assert!(pool.copy_in(&[3; 60], 9).is_none());
        assert_eq!(first.bytes(&pool), &[1; 1792]);
        assert_eq!(second.bytes(&pool), &[2; 60]);
        assert_eq!(first.start % 2048, HEADROOM_BYTES);
        pool.give(first.slot);
        assert!(pool.copy_in(&[0; 1793], 0).is_none(), "longer than a slot");
        pool.give(second.slot);
        assert_eq!(pool.free(), 2);
    }

    #[test]
    fn senseless_sizes_are_refused() {
        for (slots, bytes) in [(0, 4096), (16, 1024), (16, 8192), (16, 3000), (u32::MAX, 4096)] {
            assert!(matches!(Pool::new(slots, bytes), Err(PortError::Pool { .. })), "{slots} x {bytes}");
        }
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn a_slot_more_than_there_are_is_a_bug() {
        let mut pool = Pool::new(1, 2048).unwrap();
        pool.give(Slot::from_index(0));
    }
}
