//! Groups of next hops in the card's tables: runs of slots, and which rows of HOP are groups.
//!
//! Flow: program, or changes of it → **groups** → rows of SLOT, then of GROUP → device. A group is a row of GROUP that
//! names a run of SLOT; each slot has the index of the network that owns it and a row of that network. A run has a power
//! of two of slots, and its place is a multiple of their number, so that the card needs no adder (`hue_groups.sv`).
//!
//! Order of writes: the rows of members, then slots that no group names yet, then the row of GROUP. A group that keeps its
//! number of slots changes slot by slot: each packet sees the old member or the new one. One that gets more slots gets a
//! new run, and one write changes it.
//! Invariant: `marked` are the rows of HOP that the card takes for groups, whoever used them last.

use std::collections::BTreeSet;
use std::ops::Range;

use hue_planes::group::Slots;
use hue_substrate::SubstrateError;
use hue_tables::NextHop;

use crate::device::Device;
use crate::error::CardError;
use crate::generated::{GroupRow, SlotRow};
use crate::registers::Registers;
use crate::rows::Row;
use crate::runs::Rows;

/// A group's run of slots, with its row among the network's next hops.
pub type GroupRun = (NextHop, Range<u32>);

/// The slots of all networks.
pub struct Groups {
    slots: Rows,
    marked: BTreeSet<u32>,
}

impl Groups {
    /// No groups in an image with this many slots; the card's rows of GROUP are zero.
    pub fn new(slots: u32) -> Self {
        let slots = Rows::new(slots, "slots of groups of next hops in one run, beside other groups' runs");
        Self { slots, marked: BTreeSet::new() }
    }

    /// Slots in use.
    pub fn used(&self) -> u64 {
        self.slots.used()
    }

    /// A run for slots.
    pub fn allocate(&mut self, slots: &Slots) -> Option<Range<u32>> {
        self.slots.allocate_aligned(u32::try_from(slots.len()).ok()?)
    }

    /// Frees runs.
    pub fn release(&mut self, runs: impl IntoIterator<Item = Range<u32>>) {
        runs.into_iter().for_each(|run| self.slots.release(run));
    }

    /// The error when there is no run of this length.
    pub fn lacks(&self, name: &str, image: &str, needed: usize) -> SubstrateError {
        self.slots.lacks(name, image, needed)
    }

    /// Makes a row of HOP a group with this run, or no group.
    pub fn mark<R: Registers>(
        &mut self,
        row: u32,
        run: Option<&Range<u32>>,
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        match run {
            Some(run) => {
                // An image has at most 65,536 slots, and a group at most 4,096.
                let bits = run.len().trailing_zeros() as u8;
                device.write_row(row, &GroupRow { valid: true, first: run.start as u16, bits })?;
                self.marked.insert(row);
            }
            None if self.marked.contains(&row) => {
                device.write_row(row, &GroupRow::default())?;
                self.marked.remove(&row);
            }
            None => {}
        }
        Ok(())
    }

    /// Makes those rows of a network's run groups that are, and the others not.
    pub fn mark_all<R: Registers>(
        &mut self,
        hops: &Range<u32>,
        runs: &[GroupRun],
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        let old: Vec<u32> = self.marked.range(hops.clone()).copied().collect();
        let of = |row: &NextHop| hops.start + u32::from(row.get());
        for row in old.into_iter().filter(|old| !runs.iter().any(|(row, _)| of(row) == *old)) {
            self.mark(row, None, device)?;
        }
        runs.iter().try_for_each(|(row, run)| self.mark(of(row), Some(run), device))
    }
}

/// Writes the slots of a run that differ from `before`, all of them if they are new.
pub fn write_slots<R: Registers>(
    run: &Range<u32>,
    slots: &Slots,
    before: Option<&Slots>,
    net: u8,
    device: &mut Device<R>,
) -> Result<(), CardError> {
    let before = before.map(Slots::rows).unwrap_or_default();
    let differs = |(at, (_, row)): &(usize, (u32, &NextHop))| before.get(*at) != Some(*row);
    let words = run.clone().zip(slots.rows()).enumerate().filter(differs).map(|(_, (place, row))| {
        let words = SlotRow { net, hop: row.get() }.pack()?;
        Ok((SlotRow::TABLE, place, u64::from(words[0])))
    });
    device.write_burst(&words.collect::<Result<Vec<_>, CardError>>()?)
}
