//! Words of the papers' two banks, rows of the Conflict CAM, and the order in which a card gets their
//! changes.
//!
//! Flow: [`Dir`](super::Dir) → **writes** → the card's SRAM ports and CAM (rtl/tables/hue_dir.sv). The module
//! documentation of [`crate::dir`] shows an entry; only this file knows its bits. Bit 35 is the parity of the
//! memory controller, and 0 here. Source: Unnikrishnan §5.1.

use crate::types::{Prefix4, Vid};

const FLAG: u64 = 1 << 34;
const BY_CAM: u64 = 1 << 30;
const VID_SHIFT: u32 = 16;
const VID_MASK: u64 = 0xfff;

/// An entry of either bank; all 0 means that it has no owner.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DirEntry {
    /// Whether `value` is a set of bank 2 instead of a next hop; never in bank 2.
    pub set: bool,
    /// Whether it is reached by a row of the CAM instead of its own slot; never in bank 2.
    pub by_cam: bool,
    /// The network that owns it.
    pub vid: Option<Vid>,
    /// Next-hop word or set.
    pub value: u16,
}

impl DirEntry {
    /// Encodes the entry as a word of 35 bits.
    #[must_use]
    pub const fn encode(self) -> u64 {
        let flag = if self.set { FLAG } else { 0 };
        let by_cam = if self.by_cam { BY_CAM } else { 0 };
        let vid = match self.vid {
            Some(vid) => (vid.get() as u64) << VID_SHIFT,
            None => 0,
        };
        flag | by_cam | vid | self.value as u64
    }

    /// Decodes a word.
    #[must_use]
    pub fn decode(word: u64) -> Self {
        Self {
            set: word & FLAG != 0,
            by_cam: word & BY_CAM != 0,
            vid: Vid::new((word >> VID_SHIFT & VID_MASK) as u16),
            value: word as u16,
        }
    }
}

/// A row of the Conflict CAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirRow {
    /// The network.
    pub vid: Vid,
    /// The prefix, of at most 19 bits.
    pub prefix: Prefix4,
    /// Index of its entry in bank 1.
    pub index: u32,
}

/// A step of a change. If the steps are executed in this order, every lookup gets either the old or the new
/// answer for its address, at whatever stage it is, and never another network's; see
/// [`Dir::take_writes`](super::Dir::take_writes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirWrite {
    /// A word of bank 1.
    Bank1 {
        /// Index of the word.
        index: u32,
        /// The new value.
        word: u64,
    },
    /// A word of bank 2.
    Bank2 {
        /// Index of the word.
        index: u32,
        /// The new value.
        word: u64,
    },
    /// A row of the CAM, written atomically. If several rows match a lookup, any of them may answer.
    Row {
        /// Index of the row.
        row: u32,
        /// The new content; `None` means that the row matches nothing.
        to: Option<DirRow>,
    },
    /// Wait until all lookups accepted so far have been answered.
    Drain,
}
