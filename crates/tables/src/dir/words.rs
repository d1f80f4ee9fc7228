//! Words of the papers' two banks, rows of the Conflict CAM, and the order in which a card gets changes of them.
//!
//! Flow: [`Dir`](super::Dir) → **writes** → the card's SRAM ports and CAM (rtl/tables/hue_dir.sv). The drawing of an
//! entry is at the head of [`crate::dir`]; this is the one place that knows its bits. Bit 35 is the memory controller's
//! parity, and 0 here. Source: Unnikrishnan §5.1.

use crate::types::{Prefix4, Vid};

const FLAG: u64 = 1 << 34;
const BY_CAM: u64 = 1 << 30;
const VID_SHIFT: u32 = 16;
const VID_MASK: u64 = 0xfff;

/// An entry of either bank; all 0 is nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DirEntry {
    /// `value` is a set of bank 2, not a next hop; in bank 2 never.
    pub set: bool,
    /// It is reached by a row of the CAM, not by its own slot; in bank 2 never.
    pub by_cam: bool,
    /// The network it is of.
    pub vid: Option<Vid>,
    /// Next-hop word, or set.
    pub value: u16,
}

impl DirEntry {
    /// Its word, of 35 bits.
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

    /// What a word says.
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
    /// Whose.
    pub vid: Vid,
    /// Of at most 19 bits.
    pub prefix: Prefix4,
    /// Where in bank 1 its entry is.
    pub index: u32,
}

/// A step of a change. In this order every lookup gets the old answer for its address or the new one, wherever it is on
/// its way, and never another network's; see [`Dir::take_writes`](super::Dir::take_writes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirWrite {
    /// A word of bank 1.
    Bank1 {
        /// Which.
        index: u32,
        /// What it is now.
        word: u64,
    },
    /// A word of bank 2.
    Bank2 {
        /// Which.
        index: u32,
        /// What it is now.
        word: u64,
    },
    /// A row of the CAM, written at once; of several rows that match a lookup, any may answer.
    Row {
        /// Which.
        row: u32,
        /// What it is now; none: it matches nothing.
        to: Option<DirRow>,
    },
    /// Go on when the lookups that were accepted before have been answered.
    Drain,
}
