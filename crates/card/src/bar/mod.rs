//! Registers of a physical card: a memory region (BAR) of its PCI function, mapped from the kernel's file for it
//! (`/sys/bus/pci/devices/…/resourceN`). Any file that can be mapped works, and tests use this.
//!
//! Contains `unsafe` code: register accesses are volatile reads and writes of mapped memory.

#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use memmap2::{MmapOptions, MmapRaw};
use thiserror::Error;

use crate::registers::{AccessError, Registers, SPACE_BYTES, check};

/// Why a file cannot serve as a register space.
#[derive(Debug, Error)]
pub enum BarError {
    /// The file cannot be opened or mapped.
    #[error("{path}: {source}")]
    Map {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is too short for the registers of a card.
    #[error("{path}: {bytes} bytes: expected at least {min}")]
    Short {
        /// The file.
        path: PathBuf,
        /// Its length, bytes.
        bytes: u64,
        /// The minimum, bytes.
        min: u32,
    },
}

/// Shortest space: one page holds all registers.
pub const BAR_BYTES_MIN: u32 = 4096;
/// A mapping begins at a multiple of this.
const PAGE_BYTES: u32 = 4096;

/// A mapped register space.
pub struct Bar {
    map: MmapRaw,
    bytes: u32,
}

impl Bar {
    /// Maps a file that holds the card's registers from its first byte.
    ///
    /// # Errors
    /// `Map`, `Short`.
    pub fn open(path: &Path) -> Result<Self, BarError> {
        Self::open_at(path, 0)
    }

    /// Maps a file that holds the card's registers from byte `offset` on. `offset` is a multiple of the page size:
    /// the registers of a board's shell come first (docs/guide/boards.md).
    ///
    /// # Errors
    /// `Map`, `Short`.
    pub fn open_at(path: &Path, offset: u32) -> Result<Self, BarError> {
        let fault = |source| BarError::Map { path: path.to_owned(), source };
        if !offset.is_multiple_of(PAGE_BYTES) {
            return Err(fault(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the offset is not a multiple of the page size",
            )));
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(fault)?;
        let length = file.metadata().map_err(fault)?.len();
        let behind = length.saturating_sub(u64::from(offset));
        if behind < u64::from(BAR_BYTES_MIN) {
            let min = offset.saturating_add(BAR_BYTES_MIN);
            return Err(BarError::Short { path: path.to_owned(), bytes: length, min });
        }
        let bytes = u32::try_from(behind).unwrap_or(u32::MAX).min(SPACE_BYTES);
        let map =
            MmapOptions::new().offset(offset.into()).len(bytes as usize).map_raw(&file).map_err(fault)?;
        Ok(Self { map, bytes })
    }

    fn at(&self, address: u32) -> Result<*mut u32, AccessError> {
        check(address, self.bytes)?;
        Ok(self.map.as_mut_ptr().wrapping_add(address as usize).cast())
    }
}

impl Registers for Bar {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        let at = self.at(address)?;
        // SAFETY: `at` is a multiple of 4 inside the mapping, which begins at a page boundary and lives as long as
        // `self`. The card may change the value at any time, so the access is volatile.
        let value = unsafe { at.read_volatile() };
        Ok(u32::from_le(value))
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        let at = self.at(address)?;
        // SAFETY: as above; the mapping is writable, as the file was opened for writing.
        unsafe { at.write_volatile(value.to_le()) };
        Ok(())
    }
}
