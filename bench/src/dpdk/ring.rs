//! The DPDK router loop over `net_ring` ports, and the same ports for another plane.

use std::ffi::c_void;
use std::ptr;

use super::lpm::Lpm;
use super::{Dpdk, DpdkError, ffi};

/// Largest burst.
pub const BURST_MAX: usize = 256;

/// Outcomes the loop counts, in the order of its counters.
pub const OUTCOMES: [&str; 11] = [
    "ethertype",
    "truncated",
    "version",
    "header_length",
    "total_length",
    "checksum",
    "ttl",
    "options",
    "no_route",
    "mtu",
    "forward",
];

/// Two started ports: one receives the frames of [`Ring::load`], and [`Ring::unload`] takes the frames that the other sends.
pub struct Ring<'a> {
    raw: *mut c_void,
    _dpdk: &'a Dpdk,
}

impl<'a> Ring<'a> {
    /// The ports; once a process. At most `packets` (below 32,768) are in flight.
    ///
    /// # Errors
    /// `Create` when memory does not suffice.
    pub fn new(dpdk: &'a Dpdk, packets: u32) -> Result<Self, DpdkError> {
        // SAFETY: the EAL has started (`dpdk`).
        let raw = unsafe { ffi::hb_ring_new(packets) };
        if raw.is_null() { Err(DpdkError::Create("net_ring ports")) } else { Ok(Self { raw, _dpdk: dpdk }) }
    }

    /// What next hop `hop` writes: destination and source MAC, and its MTU in bytes.
    pub fn adjacency(&mut self, hop: u8, macs: [u8; 12], mtu: u16) {
        // SAFETY: `raw` is live, the array has 256 adjacencies, `macs` 12 bytes.
        unsafe { ffi::hb_ring_adjacency(self.raw, hop, macs.as_ptr(), mtu) }
    }

    /// Puts frames of `size` bytes (at most 1,024) into the receive ring.
    pub fn load(&mut self, frames: &[u8], size: usize) {
        assert!(size <= 1024);
        let n = frames.len() / size;
        // SAFETY: `raw` is live, `frames` holds n frames of `size` bytes, an mbuf has room for 2,048.
        let loaded = unsafe { ffi::hb_ring_load(self.raw, frames.as_ptr(), size, n) };
        assert_eq!(loaded, n, "the pool holds every packet");
    }

    /// Takes all sent frames out, keeping their first `size` bytes when `keep` says where; returns how many there were.
    pub fn unload(&mut self, keep: Option<&mut [u8]>, size: usize) -> usize {
        let (at, n) = keep.map_or((ptr::null_mut(), 0), |keep| (keep.as_mut_ptr(), keep.len() / size));
        // SAFETY: `raw` is live; at most n frames of `size` bytes are written; `size` is at most an mbuf's room.
        unsafe { ffi::hb_ring_unload(self.raw, at, size, n) }
    }

    /// DPDK's loop until nothing is left to receive; packets received.
    pub fn run(&mut self, lpm: &Lpm<'_>, burst: usize) -> usize {
        // SAFETY: both are live; the burst is within the loop's arrays; next hops of the table are below 256 adjacencies.
        unsafe { ffi::hb_ring_run(self.raw, lpm.raw(), burst.min(BURST_MAX) as u16) }
    }

    /// Receives and sends without processing: the cost of the ports themselves.
    pub fn idle(&mut self, burst: usize) -> usize {
        // SAFETY: `raw` is live; the burst is within the loop's arrays.
        unsafe { ffi::hb_ring_idle(self.raw, burst.min(BURST_MAX) as u16) }
    }

    /// Totals by outcome since the start, in the order of [`OUTCOMES`].
    pub fn counters(&self) -> [u64; OUTCOMES.len()] {
        let mut out = [0; OUTCOMES.len()];
        // SAFETY: `raw` is live, `out` has as many counters as are asked for.
        unsafe { ffi::hb_ring_counters(self.raw, out.as_mut_ptr(), out.len()) };
        out
    }

    /// Receives bursts and hands each to `plane`: the memory all frames lie in, where each begins in it, how long each is,
    /// and a word for each that the plane sets to 1 to send the packet on, else 0. Until nothing is left; packets received.
    pub fn drive(
        &mut self,
        burst: usize,
        mut plane: impl FnMut(&mut [u8], &[u32], &[u32], &mut [u8]),
    ) -> Result<usize, DpdkError> {
        let burst = burst.min(BURST_MAX) as u16;
        let (mut base, mut len) = (ptr::null_mut(), 0);
        // SAFETY: `raw` is live, both addresses are of locals.
        if unsafe { ffi::hb_ring_arena(self.raw, &raw mut base, &raw mut len) } != 0 {
            return Err(DpdkError::Create("a packet pool in one piece"));
        }
        let mut packets = [ptr::null_mut::<c_void>(); BURST_MAX];
        let (mut starts, mut lens) = ([0; BURST_MAX], [0; BURST_MAX]);
        let mut forward = [0; BURST_MAX];
        let mut received = 0;
        loop {
            // SAFETY: `raw` is live, the arrays hold BURST_MAX, the frames lie in the arena at `base`.
            let n = unsafe {
                let (starts, lens) = (starts.as_mut_ptr(), lens.as_mut_ptr());
                ffi::hb_ring_receive(self.raw, base, packets.as_mut_ptr(), starts, lens, burst)
            } as usize;
            if n == 0 {
                return Ok(received);
            }
            received += n;
            // SAFETY: the arena stays mapped while the ring lives; DPDK does not run, and so touches none of it, while
            // this slice lives.
            let arena = unsafe { std::slice::from_raw_parts_mut(base, len) };
            plane(arena, &starts[..n], &lens[..n], &mut forward[..n]);
            // SAFETY: the n packets came from hb_ring_receive and are handed back once.
            unsafe { ffi::hb_ring_send(self.raw, packets.as_mut_ptr(), forward.as_ptr(), n as u32) };
        }
    }
}
