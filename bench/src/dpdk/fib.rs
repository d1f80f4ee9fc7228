//! `rte_fib` (dir24_8).

use std::ffi::c_void;

use hue_tables::{NextHop, Prefix4};

use super::{Dpdk, DpdkError, ffi};
use crate::engine::{LookupEngine, Memory, Queries};
use crate::rib::Table;

/// Lookups a call.
const BATCH: usize = 32;
/// The answer without a route: the largest next hop that two bytes (one bit is the library's) hold.
pub(super) const MISS: u64 = 0x7FFF;

/// The word of a 64-bit answer.
pub(super) fn word(answer: u64) -> u16 {
    if answer == MISS { NextHop::NONE_WORD } else { answer as u16 }
}

/// One `rte_fib`.
pub struct Fib<'a> {
    raw: *mut c_void,
    wide: bool,
    lookup_bytes: u64,
    heap_bytes: u64,
    _dpdk: &'a Dpdk,
}

impl<'a> Fib<'a> {
    /// An empty table; `wide`: 4-byte next hops, else 2-byte.
    ///
    /// # Errors
    /// `Create` when memory does not suffice.
    pub fn new(dpdk: &'a Dpdk, routes: usize, tbl8s: u32, wide: bool) -> Result<Self, DpdkError> {
        let (name, heap_before, tbl8s) = (dpdk.name(), dpdk.heap_bytes(), tbl8s.max(1));
        // SAFETY: the EAL has started (`dpdk`), the name ends in NUL.
        let raw = unsafe { ffi::hb_fib_new(name.as_ptr(), routes as i32, tbl8s, i32::from(wide), MISS) };
        if raw.is_null() {
            return Err(DpdkError::Create("rte_fib"));
        }
        // RIB nodes and groups are pools made at once: the table does not grow with its routes.
        let heap_bytes = dpdk.heap_bytes().saturating_sub(heap_before);
        let entry = if wide { 4 } else { 2 };
        let lookup_bytes = entry * ((1 << 24) + (u64::from(tbl8s) << 8));
        Ok(Self { raw, wide, lookup_bytes, heap_bytes, _dpdk: dpdk })
    }

    /// The library's insertion.
    ///
    /// # Errors
    /// `Insert` with the library's error.
    pub fn add(&mut self, prefix: Prefix4, hop: NextHop) -> Result<(), DpdkError> {
        // SAFETY: `raw` is a live rte_fib.
        let rc = unsafe { ffi::hb_fib_add(self.raw, prefix.addr(), prefix.len(), u64::from(hop.get())) };
        if rc < 0 { Err(DpdkError::Insert("rte_fib", prefix.to_string(), rc)) } else { Ok(()) }
    }

    /// Inserts a whole table.
    ///
    /// # Errors
    /// As [`Fib::add`].
    pub fn fill(&mut self, table: &Table<u32>) -> Result<(), DpdkError> {
        table.routes().try_for_each(|(prefix, hop)| self.add(prefix, hop))
    }
}

impl Drop for Fib<'_> {
    fn drop(&mut self) {
        // SAFETY: made by hb_fib_new, freed once.
        unsafe { ffi::hb_fib_free(self.raw) }
    }
}

/// Bulk lookups of one `rte_fib`.
pub struct FibEngine<'a> {
    fib: &'a Fib<'a>,
    vector: bool,
    memory: Memory,
}

impl<'a> FibEngine<'a> {
    /// `vector`: its AVX-512 lookup; `None` when the library or the processor has none.
    pub fn new(fib: &'a Fib<'a>, vector: bool) -> Option<Self> {
        // SAFETY: `raw` is a live rte_fib; the call only chooses a function pointer.
        if unsafe { ffi::hb_fib_vector(fib.raw, i32::from(vector)) } != 0 {
            return None;
        }
        let memory = Memory { lookup_bytes: fib.lookup_bytes, total_bytes: fib.heap_bytes };
        Some(Self { fib, vector, memory })
    }

    fn call(&self, queries: &Queries<u32>, out: &mut [u64], step: usize) {
        assert!(out.len() >= if step == 0 { BATCH } else { queries.len() }, "buffers fit the stream");
        let keys = queries.keys.as_ptr().cast_mut();
        // SAFETY: the table is live; the library only reads the keys (its prototype lacks const); `len` is a multiple of the
        // batch; `out` was checked. The lookup function was chosen by `new` or by the last engine: both are valid.
        unsafe {
            ffi::hb_fib_vector(self.fib.raw, i32::from(self.vector));
            ffi::hb_fib_bulk(self.fib.raw, keys, queries.len(), out.as_mut_ptr(), step, BATCH as u32);
        }
    }
}

impl LookupEngine<u32> for FibEngine<'_> {
    fn name(&self) -> String {
        let (bytes, how) = (if self.fib.wide { 4 } else { 2 }, if self.vector { " AVX-512" } else { "" });
        format!("rte_fib dir24_8 {bytes} B bulk 32{how}")
    }

    fn memory(&self) -> Memory {
        self.memory
    }

    fn run(&self, queries: &Queries<u32>) {
        self.call(queries, &mut [0; BATCH], 0);
    }

    fn answers(&self, queries: &Queries<u32>) -> Vec<u16> {
        let mut out = vec![0; queries.len()];
        self.call(queries, &mut out, BATCH);
        out.into_iter().map(word).collect()
    }
}
