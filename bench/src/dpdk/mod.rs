//! DPDK's side: start of its environment on 2 MB pages, and safe owners of its tables and ports.
//!
//! The only unsafe code of the bench lives in this folder. DPDK's structures are used from the one thread that
//! started it; [`Dpdk`] is the proof that it was started, and every owner borrows it.
#![allow(unsafe_code)]

mod ffi;
pub mod fib;
pub mod lpm;
pub mod ring;
pub mod v6;

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::fs;

use thiserror::Error;

const NR_HUGEPAGES: &str = "/proc/sys/vm/nr_hugepages";

/// A request that DPDK refused; the machine's fault, or the caller's if it requested too much memory.
#[derive(Debug, Error)]
pub enum DpdkError {
    /// The environment did not start.
    #[error("DPDK's EAL did not start: errno {0}; is there enough free memory?")]
    Start(i32),
    /// A table or port could not be made.
    #[error("DPDK could not make {0}: more memory is needed than was reserved")]
    Create(&'static str),
    /// A route was refused.
    #[error("{0} refused route {1}: error {2}")]
    Insert(&'static str, String, i32),
    /// More tbl8 groups are needed than were asked for.
    #[error("rte_lpm needs more than {0} tbl8 groups")]
    Tbl8(u32),
}

/// A started environment; one a process.
pub struct Dpdk {
    page_bytes: u64,
    names: Cell<u32>,
}

impl Dpdk {
    /// Starts it on `core` with `megabytes` of memory: 2 MB pages where the kernel grants them (the pool is grown for the
    /// start only, so the pages go back to the system when this process ends), else 4 KB pages.
    ///
    /// # Errors
    /// `Start` when DPDK does not come up.
    pub fn start(core: usize, megabytes: u64) -> Result<Self, DpdkError> {
        let pool = Pool::grow(megabytes.div_ceil(2));
        // DPDK 22.11 refuses both options together.
        let memory = if pool.is_some() { "--in-memory" } else { "--no-huge" };
        let (core, megabytes) = (core.to_string(), megabytes.to_string());
        let mut args = vec!["hue-bench", "-l", &core, "-m", &megabytes];
        args.extend(["--no-pci", "--no-telemetry", "--no-shconf", "--iova-mode=va", "--log-level=3"]);
        args.push("--force-max-simd-bitwidth=512");
        args.push(memory);
        let owned: Vec<CString> = args.iter().filter_map(|arg| CString::new(*arg).ok()).collect();
        let mut argv: Vec<_> = owned.iter().map(|arg| arg.as_ptr().cast_mut()).collect();
        // SAFETY: argv holds argc pointers to NUL-terminated strings that outlive the call; the EAL permutes the array and
        // copies what it keeps.
        let rc = unsafe { ffi::hb_eal_init(argv.len() as c_int, argv.as_mut_ptr()) };
        drop(pool);
        if rc != 0 {
            return Err(DpdkError::Start(-rc));
        }
        // SAFETY: the EAL has started.
        let page_bytes = unsafe { ffi::hb_page_bytes() };
        Ok(Self { page_bytes, names: Cell::new(0) })
    }

    /// Size of the pages its memory really has.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Bytes allocated from its heap now.
    pub fn heap_bytes(&self) -> u64 {
        // SAFETY: the EAL has started.
        unsafe { ffi::hb_heap_bytes() }
    }

    /// A name no other object has.
    fn name(&self) -> CString {
        self.names.set(self.names.get() + 1);
        CString::new(format!("hb{}", self.names.get())).unwrap_or_default()
    }
}

/// The kernel's pool of 2 MB pages, grown while this lives.
struct Pool {
    before: u64,
}

impl Pool {
    /// Adds `pages` to the pool, or restores it and returns `None` if the kernel grants fewer.
    fn grow(pages: u64) -> Option<Self> {
        let read = || fs::read_to_string(NR_HUGEPAGES).ok()?.trim().parse::<u64>().ok();
        let pool = Self { before: read()? };
        fs::write(NR_HUGEPAGES, (pool.before + pages).to_string()).ok()?;
        (read()? >= pool.before + pages).then_some(pool)
    }
}

impl Drop for Pool {
    /// Pages in use stay with their user as surplus and leave the pool with it.
    fn drop(&mut self) {
        if fs::write(NR_HUGEPAGES, self.before.to_string()).is_err() {
            eprintln!("hue-bench: could not put {NR_HUGEPAGES} back to {}", self.before);
        }
    }
}
