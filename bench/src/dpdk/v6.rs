//! `rte_lpm6` and `rte_fib6` (trie).

use std::ffi::c_void;

use hue_tables::{NextHop, Prefix6};

use super::fib::{MISS, word};
use super::{Dpdk, DpdkError, ffi};
use crate::engine::{LookupEngine, Memory, Queries};
use crate::rib::Table;

/// Lookups a call.
const BATCH: usize = 32;

/// Which of the two libraries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `rte_lpm6`: tbl24, then tbl8 a byte.
    Lpm6,
    /// `rte_fib6` trie, 4-byte next hops: 2-byte ones leave room for 32,767 tbl8 groups only.
    Fib6,
}

/// One IPv6 table of either library.
pub struct Table6<'a> {
    raw: *mut c_void,
    kind: Kind,
    heap_bytes: u64,
    _dpdk: &'a Dpdk,
}

impl<'a> Table6<'a> {
    /// An empty table.
    ///
    /// # Errors
    /// `Create` when memory does not suffice.
    pub fn new(dpdk: &'a Dpdk, kind: Kind, routes: usize, tbl8s: u32) -> Result<Self, DpdkError> {
        let (name, heap_before) = (dpdk.name(), dpdk.heap_bytes());
        // SAFETY: the EAL has started (`dpdk`), the name ends in NUL.
        let raw = unsafe {
            match kind {
                Kind::Lpm6 => ffi::hb_lpm6_new(name.as_ptr(), routes as u32, tbl8s),
                Kind::Fib6 => ffi::hb_fib6_new(name.as_ptr(), routes as i32, tbl8s, 1, MISS),
            }
        };
        if raw.is_null() {
            return Err(DpdkError::Create(kind.name()));
        }
        // All memory is pools made at once: the table does not grow with its routes.
        let heap_bytes = dpdk.heap_bytes().saturating_sub(heap_before);
        Ok(Self { raw, kind, heap_bytes, _dpdk: dpdk })
    }

    /// The library's insertion.
    ///
    /// # Errors
    /// `Insert` with the library's error.
    pub fn add(&mut self, prefix: Prefix6, hop: NextHop) -> Result<(), DpdkError> {
        let addr = prefix.addr().to_be_bytes();
        // SAFETY: `raw` is a live table of this kind, the address has 16 bytes.
        let rc = unsafe {
            match self.kind {
                Kind::Lpm6 => ffi::hb_lpm6_add(self.raw, addr.as_ptr(), prefix.len(), u32::from(hop.get())),
                Kind::Fib6 => ffi::hb_fib6_add(self.raw, addr.as_ptr(), prefix.len(), u64::from(hop.get())),
            }
        };
        if rc < 0 { Err(DpdkError::Insert(self.kind.name(), prefix.to_string(), rc)) } else { Ok(()) }
    }

    /// Inserts a whole table.
    ///
    /// # Errors
    /// As [`Table6::add`].
    pub fn fill(&mut self, table: &Table<u128>) -> Result<(), DpdkError> {
        table.routes().try_for_each(|(prefix, hop)| self.add(prefix, hop))
    }
}

impl Kind {
    /// The library's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lpm6 => "rte_lpm6",
            Self::Fib6 => "rte_fib6",
        }
    }
}

impl Drop for Table6<'_> {
    fn drop(&mut self) {
        // SAFETY: made by the matching hb_*_new, freed once.
        unsafe {
            match self.kind {
                Kind::Lpm6 => ffi::hb_lpm6_free(self.raw),
                Kind::Fib6 => ffi::hb_fib6_free(self.raw),
            }
        }
    }
}

/// How an IPv6 engine looks up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode6 {
    /// Bulk of 32 in one table.
    Bulk,
    /// Bulk of 32 by AVX-512 (`rte_fib6`).
    Vector,
    /// One by one, a table a key (`rte_lpm6`).
    Single,
}

/// Lookups over IPv6 tables of one kind.
pub struct Engine6<'a> {
    tables: &'a [Table6<'a>],
    raws: Vec<*mut c_void>,
    mode: Mode6,
    memory: Memory,
}

impl<'a> Engine6<'a> {
    /// Over `tables` (the first only, unless single); `None` when the library has no such mode.
    pub fn new(tables: &'a [Table6<'a>], mode: Mode6) -> Option<Self> {
        let first = tables.first()?;
        let usable = match (first.kind, mode) {
            (Kind::Lpm6, mode) => mode != Mode6::Vector,
            (Kind::Fib6, Mode6::Single) => false,
            // SAFETY: `raw` is a live rte_fib6; the call only chooses a function pointer.
            (Kind::Fib6, mode) => unsafe {
                ffi::hb_fib6_vector(first.raw, i32::from(mode == Mode6::Vector)) == 0
            },
        };
        if !usable {
            return None;
        }
        // The libraries do not say what a lookup alone reads: the whole allocation counts.
        let total = tables.iter().map(|table| table.heap_bytes).sum();
        let memory = Memory { lookup_bytes: total, total_bytes: total };
        Some(Self { tables, raws: tables.iter().map(|table| table.raw).collect(), mode, memory })
    }

    fn kind(&self) -> Kind {
        self.tables.first().map_or(Kind::Lpm6, |table| table.kind)
    }

    /// Calls the library; answers as words. `out` has room for 64 (step 0) or all.
    fn call(&self, queries: &Queries<u128>, step: usize, out: &mut Out) {
        let needed = if step == 0 { 64 } else { queries.len() };
        let reachable = queries.nets.iter().max().is_none_or(|net| usize::from(*net) < self.raws.len());
        assert!(out.words.len() >= needed && out.longs.len() >= needed, "buffers fit the stream");
        assert!(queries.bytes.len() >= queries.len() && (self.mode != Mode6::Single || reachable));
        let (keys, n) = (queries.bytes.as_ptr().cast_mut(), queries.len());
        let (words, longs) = (out.words.as_mut_ptr(), out.longs.as_mut_ptr());
        let first = self.raws[0];
        // SAFETY: the tables are live and of this kind; the libraries only read the keys (their prototypes lack const); `n` is a
        // multiple of 64 and of the batch; the buffers and nets were checked.
        unsafe {
            match (self.kind(), self.mode) {
                (Kind::Lpm6, Mode6::Single) => {
                    ffi::hb_lpm6_single(
                        self.raws.as_ptr(),
                        queries.nets.as_ptr(),
                        keys,
                        n,
                        words,
                        step.min(1) * 64,
                    );
                }
                (Kind::Lpm6, _) => ffi::hb_lpm6_bulk(first, keys, n, words, step, BATCH as u32),
                (Kind::Fib6, mode) => {
                    ffi::hb_fib6_vector(first, i32::from(mode == Mode6::Vector));
                    ffi::hb_fib6_bulk(first, keys, n, longs, step, BATCH as u32);
                }
            }
        }
    }
}

/// Where answers go: 32-bit ones of `rte_lpm6`, 64-bit ones of `rte_fib6`.
struct Out {
    words: Vec<i32>,
    longs: Vec<u64>,
}

impl LookupEngine<u128> for Engine6<'_> {
    fn name(&self) -> String {
        let mode = match self.mode {
            Mode6::Bulk => "bulk 32",
            Mode6::Vector => "bulk 32 AVX-512",
            Mode6::Single => "single",
        };
        format!("{} {mode}", self.kind().name())
    }

    fn memory(&self) -> Memory {
        self.memory
    }

    fn run(&self, queries: &Queries<u128>) {
        self.call(queries, 0, &mut Out { words: vec![0; 64], longs: vec![0; 64] });
    }

    fn answers(&self, queries: &Queries<u128>) -> Vec<u16> {
        let n = queries.len();
        let mut out = Out { words: vec![0; n], longs: vec![0; n] };
        self.call(queries, BATCH, &mut out);
        match self.kind() {
            Kind::Lpm6 => {
                out.words.iter().map(|hop| u16::try_from(*hop).unwrap_or(NextHop::NONE_WORD)).collect()
            }
            Kind::Fib6 => out.longs.into_iter().map(word).collect(),
        }
    }
}
