//! Memory that processes can share, and rings of bytes in it, each with one writer and one reader.
//!
//! Flow: one process makes the memory ([`SharedMemory::new`]) and passes its descriptor on; another maps it
//! ([`SharedMemory::open`]). Each makes its end of a ring at the same place. Within one process the ends share the mapping.
//!
//! Invariants: both ends know the place and size of a ring from elsewhere, never from the memory itself, and every access is
//! inside the ring: a process that fails, or writes nonsense, can garble what crosses, but not the other's memory. What is
//! written in one call becomes visible at once, so a reader never sees half of it, even if the writer dies.
//!
//! Our own ring, because those of libraries (rtrb, ringbuf) keep addresses, which differ between processes.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sys;

/// Distance between what the writer changes and what the reader changes, so that they are in different cache lines, which
/// processors may fetch in pairs.
const LINE_BYTES: usize = 128;
/// Where a ring's bytes begin, from the ring's place.
const HEAD_BYTES: usize = 2 * LINE_BYTES;

/// Memory that several processes can map; zero at first.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    bytes: usize,
    fd: OwnedFd,
}

// SAFETY: the mapping is plain memory. It is accessed as atomic numbers, or by the two ends of a ring, of which each owns its
// part of the bytes at any time.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes memory of this many bytes.
    ///
    /// # Errors
    /// If the system has no memory or descriptor left.
    pub fn new(bytes: usize) -> io::Result<Arc<Self>> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = sys::own(unsafe { libc::memfd_create(c"hueplane".as_ptr(), flags) })?;
        let size = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: takes numbers only.
        sys::check(unsafe { libc::ftruncate(fd.as_raw_fd(), size) })?;
        // Nobody can make it shorter, which would turn an access into a signal.
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: takes numbers only.
        sys::check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        Self::map(fd, bytes)
    }

    /// Maps memory that another process has made.
    ///
    /// # Errors
    /// If it is not memory of [`SharedMemory::new`] with this many bytes; the kernel's error.
    pub fn open(fd: OwnedFd, bytes: usize) -> io::Result<Arc<Self>> {
        // SAFETY: takes numbers only.
        let seals = sys::check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) })?;
        let found = std::fs::File::from(fd.try_clone()?).metadata()?.len();
        if seals & libc::F_SEAL_SHRINK == 0 || found != bytes as u64 {
            let text =
                format!("{found} bytes with seals {seals:#x}: expected {bytes} bytes that cannot shrink");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Self::map(fd, bytes)
    }

    fn map(fd: OwnedFd, bytes: usize) -> io::Result<Arc<Self>> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of our own descriptor; no address is requested.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Arc::new(Self { base, bytes, fd })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of `T` at `at` bytes.
    ///
    /// # Panics
    /// If it is outside, or not aligned: places come from constants.
    fn place<T>(&self, at: usize) -> NonNull<T> {
        assert!(at.is_multiple_of(align_of::<T>()) && at + size_of::<T>() <= self.bytes, "outside: {at}");
        // SAFETY: inside the mapping, by the assertion above.
        unsafe { self.base.add(at) }.cast()
    }

    /// The number of 64 bits at `at` bytes.
    ///
    /// # Panics
    /// If it is outside, or not aligned.
    #[must_use]
    pub fn long(&self, at: usize) -> &AtomicU64 {
        // SAFETY: aligned and inside the mapping, which lives as long as `self`; any bytes are a valid number; all access to
        // this place is atomic.
        unsafe { self.place::<AtomicU64>(at).as_ref() }
    }

    /// The numbers of 32 bits from `at` bytes.
    ///
    /// # Panics
    /// If they are outside, or not aligned.
    #[must_use]
    pub fn words<const COUNT: usize>(&self, at: usize) -> &[AtomicU32; COUNT] {
        // SAFETY: as for `long`.
        unsafe { self.place::<[AtomicU32; COUNT]>(at).as_ref() }
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made; nothing uses it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Place and size of a ring.
#[derive(Clone, Debug)]
struct Ring {
    memory: Arc<SharedMemory>,
    at: usize,
    capacity: usize,
}

impl Ring {
    /// # Panics
    /// If `capacity` is not a power of two, or the ring is not inside.
    fn new(memory: Arc<SharedMemory>, at: usize, capacity: usize) -> Self {
        assert!(capacity.is_power_of_two() && at.is_multiple_of(LINE_BYTES));
        assert!(at + ring_bytes(capacity) <= memory.bytes, "outside: {at}");
        Self { memory, at, capacity }
    }

    /// Bytes written so far; wraps.
    fn written(&self) -> &AtomicU64 {
        self.memory.long(self.at)
    }

    /// Bytes read so far; wraps.
    fn read(&self) -> &AtomicU64 {
        self.memory.long(self.at + LINE_BYTES)
    }

    /// The two parts of the ring's memory for `len` bytes from position `from`: address and length of each.
    fn parts(&self, from: u64, len: usize) -> [(*mut u8, usize); 2] {
        assert!(len <= self.capacity);
        let start = from as usize & (self.capacity - 1);
        let first = len.min(self.capacity - start);
        let base = self.at + HEAD_BYTES;
        // SAFETY: `start + first <= capacity` and `len - first <= start`: both are inside the ring, which is inside the
        // mapping.
        unsafe {
            let base = self.memory.base.as_ptr().add(base);
            [(base.add(start), first), (base, len - first)]
        }
    }
}

/// Bytes of memory that a ring of this capacity takes.
#[must_use]
pub const fn ring_bytes(capacity: usize) -> usize {
    HEAD_BYTES + capacity
}

/// The writing end of a ring.
#[derive(Debug)]
pub struct RingWriter {
    ring: Ring,
    written: u64,
}

impl RingWriter {
    /// The writing end of the ring at this place. There must be no other one.
    ///
    /// # Panics
    /// If the ring is not inside the memory, or `capacity` is not a power of two.
    #[must_use]
    pub fn new(memory: Arc<SharedMemory>, at: usize, capacity: usize) -> Self {
        let ring = Ring::new(memory, at, capacity);
        let written = ring.written().load(Ordering::Relaxed);
        Self { ring, written }
    }

    /// Bytes for which there is room.
    #[must_use]
    pub fn room(&self) -> usize {
        let held = self.written.wrapping_sub(self.ring.read().load(Ordering::Acquire));
        // More than the capacity is nonsense of the other process, and counts as full.
        self.ring.capacity - usize::try_from(held).unwrap_or(usize::MAX).min(self.ring.capacity)
    }

    /// Writes parts one after the other, all or nothing; returns `false` if there is no room.
    #[must_use]
    pub fn write(&mut self, parts: &[&[u8]]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > self.room() {
            return false;
        }
        let mut at = self.written;
        for part in parts {
            let mut from = part.as_ptr();
            for (to, len) in self.ring.parts(at, part.len()) {
                // SAFETY: the target is inside the ring, in the part that the writer owns; the source has as many bytes.
                unsafe {
                    std::ptr::copy_nonoverlapping(from, to, len);
                    from = from.add(len);
                }
            }
            at = at.wrapping_add(part.len() as u64);
        }
        self.written = at;
        self.ring.written().store(at, Ordering::Release);
        true
    }
}

/// The reading end of a ring.
#[derive(Debug)]
pub struct RingReader {
    ring: Ring,
    read: u64,
    /// Bytes written, as last seen.
    written: u64,
}

impl RingReader {
    /// The reading end of the ring at this place. There must be no other one.
    ///
    /// # Panics
    /// If the ring is not inside the memory, or `capacity` is not a power of two.
    #[must_use]
    pub fn new(memory: Arc<SharedMemory>, at: usize, capacity: usize) -> Self {
        let ring = Ring::new(memory, at, capacity);
        let read = ring.read().load(Ordering::Relaxed);
        Self { ring, read, written: read }
    }

    fn seen(&self) -> usize {
        let held = self.written.wrapping_sub(self.read);
        // More than the capacity is nonsense of the other process, and counts as empty.
        usize::try_from(held).ok().filter(|held| *held <= self.ring.capacity).unwrap_or(0)
    }

    /// Whether nothing has been written that was not consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen() == 0 && self.ring.written().load(Ordering::Acquire) == self.read
    }

    /// Copies the bytes from `skip` bytes behind the next one; `false` if there are not as many. They stay in the ring.
    #[must_use]
    pub fn copy(&mut self, skip: usize, to: &mut [u8]) -> bool {
        let Some(end) = skip.checked_add(to.len()) else { return false };
        if self.seen() < end {
            self.written = self.ring.written().load(Ordering::Acquire);
            if self.seen() < end {
                return false;
            }
        }
        let mut place = to.as_mut_ptr();
        for (from, len) in self.ring.parts(self.read.wrapping_add(skip as u64), to.len()) {
            // SAFETY: the source is inside the ring, in the part that the reader owns; the target has as many bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(from, place, len);
                place = place.add(len);
            }
        }
        true
    }

    /// Consumes bytes that [`RingReader::copy`] has returned.
    pub fn consume(&mut self, bytes: usize) {
        self.read = self.read.wrapping_add(bytes as u64);
        self.ring.read().store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const CAPACITY: usize = 1 << 12;

    fn ring(memory: &Arc<SharedMemory>, at: usize) -> (RingWriter, RingReader) {
        (RingWriter::new(memory.clone(), at, CAPACITY), RingReader::new(memory.clone(), at, CAPACITY))
    }

    fn memory() -> Arc<SharedMemory> {
        SharedMemory::new(LINE_BYTES + ring_bytes(CAPACITY)).unwrap()
    }

    /// Numbers that look random, below `max`.
    fn random(state: &mut u64, max: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % max
    }

    #[test]
    fn a_ring_is_a_queue_of_bytes() {
        let memory = memory();
        let (mut out, mut into) = ring(&memory, LINE_BYTES);
        let (mut model, mut state, mut full) = (VecDeque::<u8>::new(), 7, 0);
        for round in 0..20_000u32 {
            let bytes: Vec<u8> = (0..random(&mut state, 900)).map(|n| n as u8 ^ round as u8).collect();
            let (head, tail) = bytes.split_at(bytes.len() / 3);
            assert_eq!(out.room(), CAPACITY - model.len());
            if out.write(&[head, tail]) {
                model.extend(&bytes);
            } else {
                assert!(bytes.len() > CAPACITY - model.len());
                full += 1;
            }
            let mut found = vec![0; random(&mut state, 900)];
            let skip = random(&mut state, 40);
            let there = into.copy(skip, &mut found);
            assert_eq!(there, skip + found.len() <= model.len());
            if there {
                assert!(model.iter().skip(skip).zip(&found).all(|(a, b)| a == b));
                into.consume(skip + found.len());
                model.drain(..skip + found.len());
            }
            assert_eq!(into.is_empty(), model.is_empty());
        }
        assert!(full > 100, "{full}");
    }

    #[test]
    fn what_is_written_at_once_is_seen_at_once() {
        let memory = memory();
        let (mut out, mut into) = ring(&memory, 0);
        let writer = std::thread::spawn(move || {
            for round in 0..50_000u32 {
                let record = [round; 6].map(u32::to_ne_bytes).concat();
                while !out.write(&[&record[..4], &record[4..]]) {
                    std::thread::yield_now();
                }
            }
        });
        for round in 0..50_000u32 {
            let (mut first, mut all) = ([0; 1], [0; 24]);
            while !into.copy(0, &mut first) {
                std::thread::yield_now();
            }
            assert!(into.copy(0, &mut all), "half of a record");
            assert_eq!(all.to_vec(), [round; 6].map(u32::to_ne_bytes).concat());
            into.consume(24);
        }
        writer.join().unwrap();
    }

    /// Where the child of the next test finds the memory.
    const FROM_PARENT: &str = "HUEPLANE_TEST_MEMORY";

    #[test]
    fn two_processes_exchange_bytes() {
        const ROUNDS: u64 = 20_000;
        let bytes = 2 * ring_bytes(CAPACITY);
        if let Some(path) = std::env::var_os(FROM_PARENT) {
            // The other process: returns what it gets.
            let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
            let memory = SharedMemory::open(file.into(), bytes).unwrap();
            let (_, mut into) = ring(&memory, 0);
            let (mut out, _) = ring(&memory, ring_bytes(CAPACITY));
            let parent = std::os::unix::process::parent_id();
            let wait = || {
                assert_eq!(std::os::unix::process::parent_id(), parent, "the parent has ended");
                std::thread::yield_now();
            };
            for _ in 0..ROUNDS {
                let mut number = [0; 8];
                while !into.copy(0, &mut number) {
                    wait();
                }
                into.consume(8);
                while !out.write(&[&number]) {
                    wait();
                }
            }
            return;
        }
        let memory = SharedMemory::new(bytes).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_fd().as_raw_fd());
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "shared::tests::two_processes_exchange_bytes"])
            .env(FROM_PARENT, path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let (mut out, _) = ring(&memory, 0);
        let (_, mut into) = ring(&memory, ring_bytes(CAPACITY));
        let (mut sent, mut found) = (0, 0);
        while found < ROUNDS {
            if sent < ROUNDS && out.write(&[&u64::to_ne_bytes(sent)]) {
                sent += 1;
            }
            let mut number = [0; 8];
            if into.copy(0, &mut number) {
                into.consume(8);
                assert_eq!(u64::from_ne_bytes(number), found);
                found += 1;
            } else {
                assert!(
                    child.try_wait().unwrap().is_none_or(|status| status.success()),
                    "the child has failed"
                );
                std::thread::yield_now();
            }
        }
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn nonsense_of_the_other_process_garbles_the_ring_and_nothing_else() {
        let memory = memory();
        let (mut out, mut into) = ring(&memory, 0);
        let mut state = 3;
        for _ in 0..10_000 {
            let nonsense = random(&mut state, usize::MAX) as u64 * random(&mut state, 1 << 30) as u64;
            memory.long(0).store(nonsense, Ordering::Relaxed);
            let _ = into.is_empty();
            let mut bytes = vec![0; random(&mut state, CAPACITY)];
            if into.copy(random(&mut state, CAPACITY), &mut bytes) {
                into.consume(bytes.len());
            }
            memory.long(LINE_BYTES).store(nonsense, Ordering::Relaxed);
            assert!(out.room() <= CAPACITY);
            let _ = out.write(&[&bytes]);
        }
        // Behind the ring nothing was written.
        let behind: &[AtomicU32; LINE_BYTES / 4] = memory.words(ring_bytes(CAPACITY));
        assert!(behind.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn memory_that_could_shrink_is_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        assert!(SharedMemory::open(file.into(), 4096).is_err(), "not sealed");
        let memory = SharedMemory::new(4096).unwrap();
        let fd = || memory.as_fd().try_clone_to_owned().unwrap();
        let error = SharedMemory::open(fd(), 8192).unwrap_err().to_string();
        assert_eq!(error, "4096 bytes with seals 0x7: expected 8192 bytes that cannot shrink");
        // SAFETY: takes numbers only.
        assert_eq!(unsafe { libc::ftruncate(memory.as_fd().as_raw_fd(), 0) }, -1);
        let other = SharedMemory::open(fd(), 4096).unwrap();
        memory.long(8).store(5, Ordering::Relaxed);
        other.words::<1>(4092)[0].store(9, Ordering::Relaxed);
        assert_eq!(other.long(8).load(Ordering::Relaxed), 5);
        assert_eq!(memory.words::<2>(4088)[1].load(Ordering::Relaxed), 9);
    }

    #[test]
    #[should_panic(expected = "outside: 4096")]
    fn a_place_outside_is_refused() {
        let _ = SharedMemory::new(4096).unwrap().long(4096);
    }
}
