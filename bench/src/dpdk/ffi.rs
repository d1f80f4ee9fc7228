//! The C side (`csrc/`), as declared there. Handles are opaque; every function is called from one thread only.

use std::ffi::{c_char, c_int, c_uint, c_void};

unsafe extern "C" {
    pub fn hb_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub fn hb_heap_bytes() -> u64;
    pub fn hb_page_bytes() -> u64;

    pub fn hb_lpm_new(name: *const c_char, rules: u32, tbl8s: u32) -> *mut c_void;
    pub fn hb_lpm_free(lpm: *mut c_void);
    pub fn hb_lpm_clear(lpm: *mut c_void, tbl8s: u32);
    pub fn hb_lpm_add(lpm: *mut c_void, addr: u32, len: u8, hop: u32) -> c_int;
    pub fn hb_lpm_fill(
        lpm: *mut c_void,
        tbl8s: u32,
        addr: *const u32,
        len: *const u8,
        hop: *const u16,
        n: usize,
    ) -> c_int;
    pub fn hb_lpm_same(a: *const c_void, b: *const c_void) -> c_int;
    pub fn hb_lpm_single(
        l: *const *mut c_void,
        nets: *const u16,
        k: *const u32,
        n: usize,
        o: *mut u32,
        s: usize,
    );
    pub fn hb_lpm_x4(l: *const *mut c_void, nets: *const u16, k: *const u32, n: usize, o: *mut u32, s: usize);
    pub fn hb_lpm_bulk32(
        l: *const *mut c_void,
        nets: *const u16,
        k: *const u32,
        n: usize,
        o: *mut u32,
        s: usize,
    );
    pub fn hb_lpm_prefetch32(
        l: *const *mut c_void,
        nets: *const u16,
        k: *const u32,
        n: usize,
        o: *mut u32,
        s: usize,
    );
    pub fn hb_lpm_prefetch64(
        l: *const *mut c_void,
        nets: *const u16,
        k: *const u32,
        n: usize,
        o: *mut u32,
        s: usize,
    );
    pub fn hb_lpm_pipelined(
        l: *const *mut c_void,
        nets: *const u16,
        k: *const u32,
        n: usize,
        o: *mut u32,
        s: usize,
    );

    pub fn hb_fib_new(name: *const c_char, routes: c_int, tbl8s: u32, wide: c_int, miss: u64) -> *mut c_void;
    pub fn hb_fib_free(fib: *mut c_void);
    pub fn hb_fib_vector(fib: *mut c_void, vector: c_int) -> c_int;
    pub fn hb_fib_add(fib: *mut c_void, addr: u32, len: u8, hop: u64) -> c_int;
    pub fn hb_fib_bulk(fib: *mut c_void, keys: *mut u32, n: usize, out: *mut u64, step: usize, batch: c_uint);
    pub fn hb_fib6_new(name: *const c_char, routes: c_int, tbl8s: u32, wide: c_int, miss: u64)
    -> *mut c_void;
    pub fn hb_fib6_free(fib: *mut c_void);
    pub fn hb_fib6_vector(fib: *mut c_void, vector: c_int) -> c_int;
    pub fn hb_fib6_add(fib: *mut c_void, addr: *const u8, len: u8, hop: u64) -> c_int;
    pub fn hb_fib6_bulk(
        fib: *mut c_void,
        keys: *mut [u8; 16],
        n: usize,
        out: *mut u64,
        step: usize,
        batch: c_uint,
    );

    pub fn hb_lpm6_new(name: *const c_char, rules: u32, tbl8s: u32) -> *mut c_void;
    pub fn hb_lpm6_free(lpm: *mut c_void);
    pub fn hb_lpm6_add(lpm: *mut c_void, addr: *const u8, len: u8, hop: u32) -> c_int;
    pub fn hb_lpm6_bulk(
        lpm: *mut c_void,
        keys: *mut [u8; 16],
        n: usize,
        out: *mut i32,
        step: usize,
        batch: c_uint,
    );
    pub fn hb_lpm6_single(
        lpms: *const *mut c_void,
        nets: *const u16,
        keys: *mut [u8; 16],
        n: usize,
        out: *mut i32,
        step: usize,
    );

    pub fn hb_ring_new(packets: u32) -> *mut c_void;
    pub fn hb_ring_adjacency(ring: *mut c_void, hop: u8, macs: *const u8, mtu: u16);
    pub fn hb_ring_load(ring: *mut c_void, frames: *const u8, size: usize, n: usize) -> usize;
    pub fn hb_ring_unload(ring: *mut c_void, frames: *mut u8, size: usize, n: usize) -> usize;
    pub fn hb_ring_run(ring: *mut c_void, lpm: *const c_void, burst: u16) -> usize;
    pub fn hb_ring_idle(ring: *mut c_void, burst: u16) -> usize;
    pub fn hb_ring_counters(ring: *const c_void, out: *mut u64, n: usize);
    pub fn hb_ring_arena(ring: *mut c_void, base: *mut *mut u8, len: *mut usize) -> c_int;
    pub fn hb_ring_receive(
        ring: *mut c_void,
        base: *const u8,
        pkts: *mut *mut c_void,
        starts: *mut u32,
        lens: *mut u32,
        burst: u16,
    ) -> c_uint;
    pub fn hb_ring_send(ring: *mut c_void, pkts: *mut *mut c_void, forward: *const u8, n: c_uint);
}
