//! `rte_lpm`: owners, and an engine for each of its lookup modes.

use std::collections::HashSet;
use std::ffi::c_void;

use hue_tables::NextHop;

use super::{Dpdk, DpdkError, ffi};
use crate::engine::{LookupEngine, Memory, Queries};
use crate::rib::Table;

/// Bytes of tbl24, and of a tbl8 group: 4 an entry.
const TBL24_BYTES: u64 = 4 << 24;
const TBL8_BYTES: u64 = 4 << 8;
/// Bytes of a rule (address, next hop) in the library's rule list.
const RULE_BYTES: u64 = 8;
/// "Success" in a native answer.
const HIT: u32 = 0x0100_0000;

/// Groups of 256 that the routes longer than /24 of a table need.
pub fn tbl8s(table: &Table<u32>) -> u32 {
    let long: HashSet<u32> =
        table.prefixes.iter().filter(|prefix| prefix.len() > 24).map(|prefix| prefix.addr() >> 8).collect();
    long.len() as u32
}

/// Bytes that lookups of an `rte_lpm` with so many groups read.
pub fn lookup_bytes(tbl8s: u32) -> u64 {
    TBL24_BYTES + u64::from(tbl8s) * TBL8_BYTES
}

/// One `rte_lpm`.
pub struct Lpm<'a> {
    raw: *mut c_void,
    rules: u32,
    tbl8s: u32,
    _dpdk: &'a Dpdk,
}

impl<'a> Lpm<'a> {
    /// An empty table with room for `rules` rules and `tbl8s` groups.
    ///
    /// # Errors
    /// `Create` when memory does not suffice.
    pub fn new(dpdk: &'a Dpdk, rules: usize, tbl8s: u32) -> Result<Self, DpdkError> {
        let (name, rules, tbl8s) = (dpdk.name(), rules.max(1) as u32, tbl8s.max(1));
        // SAFETY: the EAL has started (`dpdk`), the name ends in NUL.
        let raw = unsafe { ffi::hb_lpm_new(name.as_ptr(), rules, tbl8s) };
        if raw.is_null() {
            return Err(DpdkError::Create("rte_lpm"));
        }
        Ok(Self { raw, rules, tbl8s, _dpdk: dpdk })
    }

    /// Replaces its routes by writing tbl24 and tbl8 directly.
    ///
    /// # Errors
    /// `Tbl8` when there are more long routes than it has groups for.
    pub fn fill(&mut self, table: &Table<u32>) -> Result<(), DpdkError> {
        let addrs: Vec<u32> = table.prefixes.iter().map(|prefix| prefix.addr()).collect();
        let lens: Vec<u8> = table.prefixes.iter().map(|prefix| prefix.len()).collect();
        let hops: Vec<u16> = table.hops.iter().map(|hop| hop.get()).collect();
        // SAFETY: `raw` is a live rte_lpm with `tbl8s` groups, the three arrays have `n` elements, sorted as asked.
        let rc = unsafe {
            ffi::hb_lpm_clear(self.raw, self.tbl8s);
            ffi::hb_lpm_fill(self.raw, self.tbl8s, addrs.as_ptr(), lens.as_ptr(), hops.as_ptr(), addrs.len())
        };
        if rc < 0 { Err(DpdkError::Tbl8(self.tbl8s)) } else { Ok(()) }
    }

    /// The library's own insertion.
    ///
    /// # Errors
    /// `Insert` with the library's error.
    pub fn add(&mut self, prefix: hue_tables::Prefix4, hop: NextHop) -> Result<(), DpdkError> {
        // SAFETY: `raw` is a live rte_lpm.
        let rc = unsafe { ffi::hb_lpm_add(self.raw, prefix.addr(), prefix.len(), u32::from(hop.get())) };
        if rc < 0 { Err(DpdkError::Insert("rte_lpm", prefix.to_string(), rc)) } else { Ok(()) }
    }

    /// Whether both hold the same entries, field by field (tbl8 group numbers apart).
    pub fn same(&self, other: &Self) -> bool {
        // SAFETY: both are live; groups that tbl24 names exist in each.
        unsafe { ffi::hb_lpm_same(self.raw, other.raw) != 0 }
    }

    /// The table for [`super::ring`].
    pub(super) fn raw(&self) -> *const c_void {
        self.raw
    }
}

impl Drop for Lpm<'_> {
    fn drop(&mut self) {
        // SAFETY: made by hb_lpm_new, freed once.
        unsafe { ffi::hb_lpm_free(self.raw) }
    }
}

/// How an `rte_lpm` engine looks up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// `rte_lpm_lookup` one after another.
    Single,
    /// `rte_lpm_lookupx4` (one table only).
    X4,
    /// `rte_lpm_lookup_bulk` of 32 (one table only).
    Bulk32,
    /// A batch of 32: prefetch all, then read all.
    Prefetch32,
    /// The same with 64.
    Prefetch64,
    /// `rte_lpm_lookup` with a prefetch for the key 24 places ahead.
    Pipelined,
}

impl Mode {
    /// Modes that take a table a key.
    pub const MANY: [Self; 4] = [Self::Single, Self::Prefetch32, Self::Prefetch64, Self::Pipelined];
    /// Modes for one table.
    pub const ONE: [Self; 6] =
        [Self::Single, Self::X4, Self::Bulk32, Self::Prefetch32, Self::Prefetch64, Self::Pipelined];
}

/// Lookups over one or several `rte_lpm`.
pub struct LpmEngine<'a> {
    raws: Vec<*mut c_void>,
    memory: Memory,
    mode: Mode,
    _lpms: &'a [Lpm<'a>],
}

impl<'a> LpmEngine<'a> {
    /// Over `lpms`, network n in the nth.
    pub fn new(lpms: &'a [Lpm<'a>], mode: Mode) -> Self {
        let lookup: u64 = lpms.iter().map(|lpm| lookup_bytes(lpm.tbl8s)).sum();
        let rules: u64 = lpms.iter().map(|lpm| u64::from(lpm.rules) * RULE_BYTES).sum();
        let memory = Memory { lookup_bytes: lookup, total_bytes: lookup + rules };
        Self { raws: lpms.iter().map(|lpm| lpm.raw).collect(), memory, mode, _lpms: lpms }
    }

    /// Keys a batch.
    fn batch(&self) -> usize {
        if matches!(self.mode, Mode::Bulk32 | Mode::Prefetch32) { 32 } else { 64 }
    }

    /// `out` holds 64 answers when `step` is 0, else one for each lookup.
    fn call(&self, queries: &Queries<u32>, out: &mut [u32], step: usize) {
        let needed = if step == 0 { 64 } else { queries.len() };
        let reachable = queries.nets.iter().max().is_none_or(|net| usize::from(*net) < self.raws.len());
        assert!(out.len() >= needed && reachable, "buffers fit the stream");
        let function = match self.mode {
            Mode::Single => ffi::hb_lpm_single,
            Mode::X4 => ffi::hb_lpm_x4,
            Mode::Bulk32 => ffi::hb_lpm_bulk32,
            Mode::Prefetch32 => ffi::hb_lpm_prefetch32,
            Mode::Prefetch64 => ffi::hb_lpm_prefetch64,
            Mode::Pipelined => ffi::hb_lpm_pipelined,
        };
        let (nets, keys) = (queries.nets.as_ptr(), queries.keys.as_ptr());
        // SAFETY: tables are live; every net indexes `raws`; the stream has `len` lookups, a multiple of 64, and 64 more to
        // read ahead; `out` was checked.
        unsafe { function(self.raws.as_ptr(), nets, keys, queries.len(), out.as_mut_ptr(), step) }
    }
}

impl LookupEngine<u32> for LpmEngine<'_> {
    fn name(&self) -> String {
        let mode = match self.mode {
            Mode::Single => "single",
            Mode::X4 => "x4",
            Mode::Bulk32 => "bulk 32",
            Mode::Prefetch32 => "prefetch 32",
            Mode::Prefetch64 => "prefetch 64",
            Mode::Pipelined => "pipelined",
        };
        format!("rte_lpm {mode}")
    }

    fn memory(&self) -> Memory {
        self.memory
    }

    fn run(&self, queries: &Queries<u32>) {
        self.call(queries, &mut [0; 64], 0);
    }

    fn answers(&self, queries: &Queries<u32>) -> Vec<u16> {
        let mut out = vec![0; queries.len()];
        self.call(queries, &mut out, self.batch());
        let native = self.mode == Mode::Bulk32;
        out.into_iter()
            .map(|word| match native {
                true if word & HIT == 0 => NextHop::NONE_WORD,
                _ => (word & 0xFFFF) as u16,
            })
            .collect()
    }
}
