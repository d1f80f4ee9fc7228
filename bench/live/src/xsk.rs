//! The measurements' own AF_XDP sockets, several on one queue, which the product does not use. A fence: rings and packet memory
//! are shared with the kernel.
//!
//! Invariants: each ring has one producer and one consumer; our index is published by a release store, the kernel's read by an
//! acquire load. A slot is in one place at a time: the free list, the fill ring, a receive ring, the transmit ring, or our hand.
//! Source: Linux `Documentation/networking/af_xdp.rst`, `include/uapi/linux/if_xdp.h`.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 2048;
/// `XDP_MAX_TX_SKB_BUDGET`, and what the product sets it to.
const TX_BUDGET: (i32, u32) = (9, 1024);
/// The product's send buffer, bytes.
const SEND_BUFFER_BYTES: i32 = 64 << 20;

fn check(what: &str, result: libc::c_int) -> libc::c_int {
    assert!(result >= 0, "{what}: {}", io::Error::last_os_error());
    result
}

fn map(fd: i32, offset: i64, bytes: usize) -> NonNull<u8> {
    let flags = if fd < 0 {
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE
    } else {
        libc::MAP_SHARED | libc::MAP_POPULATE
    };
    // SAFETY: a new mapping; no address is asked for. It stays until the process ends, which is soon.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, offset)
    };
    let mapped = NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED);
    mapped.unwrap_or_else(|| panic!("map {bytes} bytes: {}", io::Error::last_os_error()))
}

/// Packet memory, and its free slots.
pub struct Memory {
    base: NonNull<u8>,
    slots: usize,
    free: Vec<u64>,
}

impl Memory {
    /// So many slots.
    pub fn new(slots: usize) -> Self {
        let base = map(-1, 0, slots * SLOT_BYTES);
        Self { base, slots, free: (0..slots as u64).map(|slot| slot * SLOT_BYTES as u64).collect() }
    }

    /// The frame at an address that a ring gave, to change.
    pub fn frame(&mut self, address: u64, length: u32) -> &mut [u8] {
        let (at, length) = (address as usize, length as usize);
        assert!(at + length <= self.slots * SLOT_BYTES, "an address outside of the packet memory");
        // SAFETY: inside the mapping (just checked), which lives as long as the process; the borrow keeps others off.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), length) }
    }

    /// Gives the slot of an address back.
    pub fn give(&mut self, address: u64) {
        self.free.push(address & !(SLOT_BYTES as u64 - 1));
    }
}

struct Ring<T> {
    base: NonNull<u8>,
    offsets: libc::xdp_ring_offset,
    size: u32,
    ours: u32,
    theirs: u32,
    entry: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, page: i64, offsets: libc::xdp_ring_offset, size: u32) -> Self {
        let bytes = offsets.desc as usize + size as usize * size_of::<T>();
        let base = map(fd.as_raw_fd(), page, bytes);
        Self { base, offsets, size, ours: 0, theirs: 0, entry: std::marker::PhantomData }
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel laid the ring out with aligned 32-bit words at these offsets, inside the mapping.
        unsafe { &*self.base.as_ptr().add(offset as usize).cast::<AtomicU32>() }
    }

    fn entry(&self, index: u32) -> *mut T {
        let at = (index & (self.size - 1)) as usize;
        // SAFETY: `at` is below the ring's size, so the entry lies inside the mapping.
        unsafe { self.base.as_ptr().add(self.offsets.desc as usize).cast::<T>().add(at) }
    }

    fn room(&mut self, wanted: u32) -> u32 {
        if self.size - self.ours.wrapping_sub(self.theirs) < wanted {
            self.theirs = self.word(self.offsets.consumer).load(Ordering::Acquire);
        }
        (self.size - self.ours.wrapping_sub(self.theirs)).min(wanted)
    }

    fn write(&mut self, entry: T) {
        // SAFETY: inside the ring; `room` has found it free, so the kernel does not read it.
        unsafe { self.entry(self.ours).write(entry) };
        self.ours = self.ours.wrapping_add(1);
    }

    fn publish(&self) {
        self.word(self.offsets.producer).store(self.ours, Ordering::Release);
    }

    fn waiting(&self) -> u32 {
        self.ours.wrapping_sub(self.word(self.offsets.consumer).load(Ordering::Acquire))
    }

    fn ready(&mut self, wanted: u32) -> u32 {
        if self.theirs.wrapping_sub(self.ours) < wanted {
            self.theirs = self.word(self.offsets.producer).load(Ordering::Acquire);
        }
        self.theirs.wrapping_sub(self.ours).min(wanted)
    }

    fn read(&self, ahead: u32) -> T {
        // SAFETY: inside the ring; `ready` has found it there, and the kernel does not write it before it is released.
        unsafe { self.entry(self.ours.wrapping_add(ahead)).read() }
    }

    fn release(&mut self, count: u32) {
        self.ours = self.ours.wrapping_add(count);
        self.word(self.offsets.consumer).store(self.ours, Ordering::Release);
    }
}

fn set<T>(fd: &OwnedFd, level: i32, name: i32, value: &T, what: &str) {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a `T` of `size` bytes, which the kernel reads only.
    check(what, unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)
    });
}

fn open() -> OwnedFd {
    // SAFETY: takes numbers only.
    let fd = check("open an AF_XDP socket", unsafe {
        libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
    });
    // SAFETY: the kernel has just given us this descriptor; nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn offsets(fd: &OwnedFd) -> libc::xdp_mmap_offsets {
    let mut offsets = std::mem::MaybeUninit::<libc::xdp_mmap_offsets>::zeroed();
    let mut size = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: the pointer is to `size` writable bytes; the kernel writes no more.
    let got = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            offsets.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    check("ask for the rings", got);
    // SAFETY: zeroed or written by the kernel; integers only.
    unsafe { offsets.assume_init() }
}

fn bind(fd: &OwnedFd, interface: u32, shared: Option<&OwnedFd>) {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: if shared.is_some() { libc::XDP_SHARED_UMEM } else { libc::XDP_USE_NEED_WAKEUP },
        sxdp_ifindex: interface,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd() as u32),
    };
    let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: `address` is a socket address of `size` bytes.
    check("bind an AF_XDP socket", unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) });
}

/// Registers the memory with a socket, and makes its fill and completion ring.
fn register(fd: &OwnedFd, memory: &Memory, fill: u32, completions: u32) -> (Ring<u64>, Ring<u64>) {
    let umem = libc::xdp_umem_reg {
        addr: memory.base.as_ptr() as u64,
        len: (memory.slots * SLOT_BYTES) as u64,
        chunk_size: SLOT_BYTES as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem, "register the packet memory");
    set(fd, libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &fill, "size the fill ring");
    set(fd, libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &completions, "size the completion ring");
    let offsets = offsets(fd);
    (
        Ring::map(fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, offsets.fr, fill),
        Ring::map(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, offsets.cr, completions),
    )
}

/// Sockets of one queue that share its fill ring.
pub struct Receivers {
    sockets: Vec<(OwnedFd, Ring<libc::xdp_desc>)>,
    fill: Ring<u64>,
    _completed: Ring<u64>,
}

impl Receivers {
    /// So many sockets on queue 0 of an interface, with receive rings and one fill ring of these sizes (powers of two).
    pub fn open(memory: &mut Memory, interface: u32, count: usize, ring: u32, fill: u32) -> Self {
        let first = open();
        let (fill, completed) = register(&first, memory, fill, 64);
        let mut sockets: Vec<(OwnedFd, Ring<libc::xdp_desc>)> = Vec::new();
        for number in 0..count {
            let fd =
                if number == 0 { first.try_clone().unwrap_or_else(|e| panic!("clone: {e}")) } else { open() };
            set(&fd, libc::SOL_XDP, libc::XDP_RX_RING, &ring, "size a receive ring");
            let received = Ring::map(&fd, libc::XDP_PGOFF_RX_RING, offsets(&fd).rx, ring);
            bind(&fd, interface, sockets.first().map(|(fd, _)| fd));
            sockets.push((fd, received));
        }
        let mut receivers = Self { sockets, fill, _completed: completed };
        receivers.refill(memory);
        receivers
    }

    /// A socket, for the XDP program's map.
    pub fn socket(&self, number: usize) -> &OwnedFd {
        &self.sockets[number].0
    }

    /// Gives each of at most `limit` frames of a socket to `each`, as address and length; how many.
    pub fn receive(&mut self, number: usize, limit: u32, mut each: impl FnMut(u64, u32)) -> u32 {
        let ring = &mut self.sockets[number].1;
        let ready = ring.ready(limit);
        for ahead in 0..ready {
            let entry = ring.read(ahead);
            each(entry.addr, entry.len);
        }
        if ready > 0 {
            ring.release(ready);
        }
        ready
    }

    /// Fills the fill ring from the free slots.
    pub fn refill(&mut self, memory: &mut Memory) {
        let room = self.fill.room(self.fill.size);
        for _ in 0..room {
            let Some(slot) = memory.free.pop() else { break };
            self.fill.write(slot);
        }
        if room > 0 {
            self.fill.publish();
        }
    }
}

/// A socket that sends.
pub struct Sender {
    fd: OwnedFd,
    transmit: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    _fill: Ring<u64>,
}

impl Sender {
    /// On queue 0 of an interface, with a ring of this size.
    pub fn open(memory: &Memory, interface: u32, ring: u32) -> Self {
        let fd = open();
        let (fill, completed) = register(&fd, memory, 64, ring);
        set(&fd, libc::SOL_XDP, libc::XDP_TX_RING, &ring, "size the transmit ring");
        set(&fd, libc::SOL_XDP, TX_BUDGET.0, &TX_BUDGET.1.min(ring), "raise the transmit budget");
        set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER_BYTES, "raise the send buffer");
        let transmit = Ring::map(&fd, libc::XDP_PGOFF_TX_RING, offsets(&fd).tx, ring);
        bind(&fd, interface, None);
        Self { fd, transmit, completed, _fill: fill }
    }

    /// Queues a frame; false when there is no room.
    pub fn send(&mut self, address: u64, length: u32) -> bool {
        let room = self.transmit.room(1) > 0;
        if room {
            self.transmit.write(libc::xdp_desc { addr: address, len: length, options: 0 });
        }
        room
    }

    /// Makes the kernel send what is queued, and takes back the slots of what was sent.
    pub fn flush(&mut self, memory: &mut Memory) {
        self.transmit.publish();
        let mut waiting = self.transmit.waiting();
        while waiting > 0 {
            // SAFETY: no buffer and no address are given. What is not taken now is tried again with the next batch.
            unsafe {
                libc::sendto(
                    self.fd.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                );
            }
            let left = self.transmit.waiting();
            if left == waiting {
                break;
            }
            waiting = left;
        }
        let done = self.completed.ready(u32::MAX);
        for ahead in 0..done {
            let address = self.completed.read(ahead);
            memory.give(address);
        }
        if done > 0 {
            self.completed.release(done);
        }
    }
}
