//! The four rings that a process shares with the kernel through an AF_XDP socket, and the socket itself.
//!
//! Invariants: each ring has one producer and one consumer: one is this process, the other the kernel. Our index is kept
//! here and published by a release store; the other's is read by an acquire load. Entries between the two belong to the
//! consumer.
//! Source: Linux `Documentation/networking/af_xdp.rst`, `include/uapi/linux/if_xdp.h`.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::pool::Region;
use crate::sys;

/// `XDP_MAX_TX_SKB_BUDGET`: how many packets one `sendto` may send in copy mode.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;
/// Value of that option, unless the ring is smaller; the kernel's default, 32, would cost a system call per 32 packets.
const TX_BUDGET: u32 = 1024;
/// Kernel memory that packets being sent may use, bytes; the kernel's default suffices for some 270 packets.
const SEND_BUFFER_BYTES: i32 = 64 << 20;

/// How long to retry if a queue is busy: the kernel frees a queue some time after its last socket was closed.
const BUSY: Duration = Duration::from_millis(500);
/// Interval between two tries.
pub(super) const BUSY_STEP: Duration = Duration::from_millis(1);

/// A ring's memory, mapped from the socket.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is shared with the kernel, and only the thread that has the ring uses it.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `Ring::map`, used by nobody else.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// One ring of entries `T`.
pub(super) struct Ring<T> {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
    size: u32,
    /// Our index: where we write or read next.
    ours: u32,
    /// The kernel's index when last read.
    theirs: u32,
    entry: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, page_offset: i64, offsets: libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let bytes = offsets.desc as usize + size as usize * size_of::<T>();
        // SAFETY: a new mapping of the socket's ring at the offset that the ABI names.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                page_offset,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Self {
                mapping: Mapping { base, bytes },
                offsets,
                size,
                ours: 0,
                theirs: 0,
                entry: std::marker::PhantomData,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel laid the ring out with aligned 32-bit words at these offsets, inside the mapping.
        unsafe { &*self.mapping.base.as_ptr().add(offset as usize).cast::<AtomicU32>() }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn entry(&self, index: u32) -> *mut T {
        let at = (index & (self.size - 1)) as usize;
        // SAFETY: `at` is below the ring's size, so the entry lies inside the mapping.
        unsafe { self.mapping.base.as_ptr().add(self.offsets.desc as usize).cast::<T>().add(at) }
    }

    /// Whether the kernel needs a system call to continue.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// As producer: how many entries can be written, at most `wanted`.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let mut free = self.size - self.ours.wrapping_sub(self.theirs);
        if free < wanted {
            self.theirs = self.consumer().load(Ordering::Acquire);
            free = self.size - self.ours.wrapping_sub(self.theirs);
        }
        free.min(wanted)
    }

    /// As producer: writes the next entry, which [`Ring::room`] found free.
    #[inline]
    pub(super) fn write(&mut self, entry: T) {
        // SAFETY: inside the ring (see `entry`); between `theirs` and our index plus the size the kernel does not read.
        unsafe { self.entry(self.ours).write(entry) };
        self.ours = self.ours.wrapping_add(1);
    }

    /// As producer: publishes the written entries to the kernel.
    #[inline]
    pub(super) fn publish(&self) {
        self.producer().store(self.ours, Ordering::Release);
    }

    /// As producer: entries that the kernel has not taken yet.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.ours.wrapping_sub(self.consumer().load(Ordering::Acquire))
    }

    /// As consumer: how many entries can be read, at most `wanted`.
    #[inline]
    pub(super) fn ready(&mut self, wanted: u32) -> u32 {
        let mut ready = self.theirs.wrapping_sub(self.ours);
        if ready < wanted {
            self.theirs = self.producer().load(Ordering::Acquire);
            ready = self.theirs.wrapping_sub(self.ours);
        }
        ready.min(wanted)
    }

    /// As consumer: the entry `ahead` places after the next one; [`Ring::ready`] must have counted it.
    #[inline]
    pub(super) fn read(&self, ahead: u32) -> T {
        // SAFETY: inside the ring (see `entry`); the kernel has published it and does not write it before we release it.
        unsafe { self.entry(self.ours.wrapping_add(ahead)).read() }
    }

    /// As consumer: hands `count` entries back to the kernel.
    #[inline]
    pub(super) fn release(&mut self, count: u32) {
        self.ours = self.ours.wrapping_add(count);
        self.consumer().store(self.ours, Ordering::Release);
    }
}

/// A socket with its rings, bound to one queue of an interface.
pub(super) struct Socket {
    pub(super) fd: OwnedFd,
    pub(super) received: Ring<libc::xdp_desc>,
    pub(super) fill: Ring<u64>,
    /// Present if requested: only one socket of a port sends.
    pub(super) transmit: Option<Ring<libc::xdp_desc>>,
    pub(super) completed: Ring<u64>,
    pub(super) zero_copy: bool,
}

/// The result of one step of opening. An error carries the step's description.
pub(super) type Step<T> = Result<T, (&'static str, io::Error)>;

fn step<T>(action: &'static str, result: io::Result<T>) -> Step<T> {
    result.map_err(|source| (action, source))
}

impl Socket {
    /// Opens a socket over `region`, each ring with `size` entries. It is not bound to a queue yet.
    pub(super) fn open(region: &Region, size: u32, sends: bool) -> Step<Self> {
        let fd = step("open an AF_XDP socket", sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0))?;
        let umem = libc::xdp_umem_reg {
            addr: region.base(),
            len: region.bytes() as u64,
            chunk_size: region.slot_bytes(),
            headroom: 0, // the kernel's own 256 bytes are the headroom that a packet has
            flags: 0,
            tx_metadata_len: 0,
        };
        let set = |name: i32, entries: u32| sys::set_option(&fd, libc::SOL_XDP, name, &entries);
        step(
            "register the packet memory (it counts as locked memory)",
            sys::set_option(&fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem),
        )?;
        step("size the AF_XDP rings (a power of two)", set(libc::XDP_UMEM_FILL_RING, size))?;
        let completions = if sends { size } else { 64 };
        step("size the AF_XDP rings", set(libc::XDP_UMEM_COMPLETION_RING, completions))?;
        step("size the AF_XDP rings", set(libc::XDP_RX_RING, size))?;
        if sends {
            step("size the AF_XDP rings", set(libc::XDP_TX_RING, size))?;
            // Older kernels do not have this option and send in smaller portions.
            let _ = set(XDP_MAX_TX_SKB_BUDGET, TX_BUDGET.min(size));
            sys::grow_buffer(&fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER_BYTES);
        }
        let offsets: libc::xdp_mmap_offsets = step(
            "read the layout of the AF_XDP rings",
            sys::option(&fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS),
        )?;
        let map = "map the AF_XDP rings";
        let received = step(map, Ring::map(&fd, libc::XDP_PGOFF_RX_RING, offsets.rx, size))?;
        let fill = step(map, Ring::map(&fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, offsets.fr, size))?;
        let completed =
            step(map, Ring::map(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, offsets.cr, completions))?;
        let transmit = match sends {
            true => Some(step(map, Ring::map(&fd, libc::XDP_PGOFF_TX_RING, offsets.tx, size))?),
            false => None,
        };
        Ok(Self { fd, received, fill, transmit, completed, zero_copy: false })
    }

    /// Binds the socket to a queue; one that another process has is waited for.
    pub(super) fn bind(&mut self, interface: u32, queue: u32, busy_for: Duration) -> Step<()> {
        step("bind the AF_XDP socket to a queue", bind(&self.fd, interface, queue, busy_for.max(BUSY)))?;
        let options: libc::xdp_options =
            step("read the AF_XDP mode", sys::option(&self.fd, libc::SOL_XDP, libc::XDP_OPTIONS))?;
        self.zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(())
    }

    /// Packets that the kernel dropped between our program and the ring, and packets that it refused to send.
    pub(super) fn dropped(&self) -> (u64, u64) {
        let statistics = sys::option::<libc::xdp_statistics>(&self.fd, libc::SOL_XDP, libc::XDP_STATISTICS);
        // A socket that was unbound has no statistics.
        statistics.map_or((0, 0), |s| (s.rx_dropped + s.rx_ring_full, s.tx_invalid_descs))
    }

    /// The socket's pending error, which means that the interface was removed.
    pub(super) fn error(&self) -> Option<io::Error> {
        match sys::option::<i32>(&self.fd, libc::SOL_SOCKET, libc::SO_ERROR) {
            Ok(0) => None,
            Ok(code) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    /// Makes the kernel send the packets in the transmit ring.
    pub(super) fn kick(&self) -> io::Result<()> {
        // SAFETY: no buffer and no address are given.
        let sent = unsafe {
            libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
        };
        sys::check_size(sent).map(|_| ())
    }
}

/// Binds the socket to a queue. The kernel uses zero-copy if the driver supports it, and copies otherwise. A busy
/// queue may be one that we have just closed, so binding is retried for a short time.
fn bind(fd: &OwnedFd, interface: u32, queue: u32, busy_for: Duration) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    let begin = Instant::now();
    loop {
        // SAFETY: `address` is a socket address of `size` bytes.
        match sys::check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) }) {
            Ok(_) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < busy_for => {
                std::thread::sleep(BUSY_STEP);
            }
            Err(error) => return Err(error),
        }
    }
}
