//! Writing of [`Dir`]: turns a change that fits into words, rows, and the steps in which a card gets them.
//!
//! Order: first new words, then what refers to them, then the old words are released. Invariant: words, rows
//! and sets that a change releases are reused only after its `Drain`.

use std::collections::{BTreeMap, BTreeSet};

use super::words::{DirEntry, DirRow, DirWrite};
use super::{Dir, EMPTY, Row, SET, SET_ENTRIES, SLOT_BITS, SLOTS, Undo, slot_of};
use crate::types::{Prefix4, Vid};

/// Rows, entries and sets that a change releases once no lookup can read them.
#[derive(Default)]
struct Released {
    rows: Vec<u32>,
    indices: Vec<u32>,
    sets: Vec<u32>,
}

impl Dir {
    /// Writes a change, for which there is room.
    pub(super) fn place(&mut self, vid: Vid, undo: &[Undo], rows: &BTreeMap<Vid, Vec<Prefix4>>) {
        let mut released = self.remove_rows(vid, undo, rows);
        if !self.fits_beside_old(vid, undo, rows) {
            // The old words must be released before the new ones have room. Lookups find no route in the
            // meantime.
            self.interruptions += 1;
            self.unlink(vid, undo, &released);
            self.release(std::mem::take(&mut released));
        }
        self.write_sets(vid, undo);
        // Slots without an owner can now hold indirect entries.
        let unowned = undo.iter().map(|change| change.slot).filter(|slot| self.owner(*slot).is_none());
        self.lowest = unowned.min().unwrap_or(self.lowest).min(self.lowest);
        // If a slot that gets an owner holds an indirect entry, that entry moves first.
        let late: Vec<u32> =
            undo.iter().map(|change| change.slot).filter(|slot| self.owner(*slot).is_some()).collect();
        let late: Vec<u32> = late.into_iter().filter(|slot| self.indirect.contains_key(slot)).collect();
        for slot in &late {
            let Some((of, prefix)) = self.indirect.get(slot).copied() else { continue };
            let moves = self.cam.get(&(of, prefix)).copied().filter(|row| row.index == *slot);
            if let Some(Row { row, .. }) = moves {
                self.assign_index(of, prefix, row);
                released.indices.push(*slot);
            }
        }
        for (owner, wanted) in rows {
            for prefix in wanted {
                match self.cam.get(&(*owner, *prefix)).copied() {
                    None => {
                        let row = self.allocate_row();
                        self.assign_index(*owner, *prefix, row);
                    }
                    Some(Row { index, .. }) => {
                        let entry = DirEntry { by_cam: true, ..self.entry(*owner, slot_of(prefix.addr())) };
                        self.write1(index, entry);
                    }
                }
            }
        }
        for Undo { slot, .. } in undo {
            if !self.indirect.contains_key(slot) {
                self.write_slot(*slot);
            }
        }
        for row in &released.rows {
            self.record(DirWrite::Row { row: *row, to: None });
        }
        self.release(released);
        late.iter().for_each(|slot| self.write_slot(*slot));
    }

    /// Removes rows that are no longer needed, and keeps the sets of slots that still have one.
    fn remove_rows(&mut self, vid: Vid, undo: &[Undo], rows: &BTreeMap<Vid, Vec<Prefix4>>) -> Released {
        let mut released = Released::default();
        for (owner, wanted) in rows {
            let wanted: BTreeSet<Prefix4> = wanted.iter().copied().collect();
            let old = self.cam.extract_if(.., |(of, prefix), _| of == owner && !wanted.contains(prefix));
            for (_, Row { row, index }) in old {
                released.rows.push(row);
                released.indices.push(index);
            }
        }
        let Some(network) = self.networks.get_mut(&vid) else { return released };
        for change in undo {
            let Some(set) = change.placed.as_ref().and_then(|placed| placed.set) else { continue };
            match network.sets.get_mut(&change.slot) {
                Some(placed) => placed.set = Some(set),
                None => released.sets.push(set),
            }
        }
        released
    }

    /// Whether the new rows, sets and entries fit beside the old ones.
    fn fits_beside_old(&self, vid: Vid, undo: &[Undo], rows: &BTreeMap<Vid, Vec<Prefix4>>) -> bool {
        let Some(network) = self.networks.get(&vid) else { return true };
        let unset =
            |change: &&Undo| network.sets.get(&change.slot).is_some_and(|placed| placed.set.is_none());
        let sets = undo.iter().filter(unset).count();
        let new = |(owner, wanted): (&Vid, &Vec<Prefix4>)| {
            wanted.iter().filter(|prefix| !self.cam.contains_key(&(*owner, **prefix))).count()
        };
        let rows_new: usize = rows.iter().map(new).sum();
        let rows_there = self.rows_free.len() + self.limits.cam_rows.saturating_sub(self.rows_used as usize);
        let owned = self.owners.iter().filter(|owner| **owner != 0).count();
        let held = self.indirect.keys().filter(|index| self.owner(**index).is_none()).count();
        let moving = self.cam.values().filter(|row| self.owner(row.index).is_some()).count();
        sets <= self.sets_free.len() && rows_new <= rows_there && rows_new + moving <= SLOTS - owned - held
    }

    /// Removes everything that refers to the released words.
    fn unlink(&mut self, vid: Vid, undo: &[Undo], released: &Released) {
        for row in &released.rows {
            self.record(DirWrite::Row { row: *row, to: None });
        }
        for change in undo.iter().filter(|change| change.placed.is_some()) {
            if self.networks.get(&vid).is_some_and(|network| network.sets.contains_key(&change.slot)) {
                continue;
            }
            let slot = Prefix4::containing(change.slot << (32 - SLOT_BITS), SLOT_BITS);
            match self.cam.get(&(vid, slot)).copied() {
                Some(Row { index, .. }) => self.write1(index, DirEntry::default()),
                None if change.owner == vid.get() => self.write1(change.slot, DirEntry::default()),
                None => {}
            }
        }
    }

    /// Releases rows, entries and sets after the lookups in flight have finished.
    fn release(&mut self, released: Released) {
        let Released { rows, indices, sets } = released;
        if rows.is_empty() && indices.is_empty() && sets.is_empty() {
            return;
        }
        self.record(DirWrite::Drain);
        for index in indices {
            self.indirect.remove(&index);
            self.lowest = self.lowest.min(index);
            self.write1(index, DirEntry::default());
        }
        self.rows_free.extend(rows);
        self.sets_free.extend(sets);
    }

    /// Writes the network's sets that are new or have changed.
    fn write_sets(&mut self, vid: Vid, undo: &[Undo]) {
        let Some(mut network) = self.networks.remove(&vid) else { return };
        for Undo { slot, .. } in undo {
            let Some(placed) = network.sets.get_mut(slot) else { continue };
            let Some(set) = placed.set.or_else(|| self.sets_free.pop_first()) else { continue };
            placed.set = Some(set);
            let from = set as usize * SET_ENTRIES;
            if self.bank2.len() < from + SET_ENTRIES {
                self.bank2.resize(from + SET_ENTRIES, 0);
            }
            for (index, value) in (from..).zip(&placed.words) {
                self.write2(index as u32, DirEntry { vid: Some(vid), value: *value, ..DirEntry::default() });
            }
        }
        self.networks.insert(vid, network);
    }

    fn allocate_row(&mut self) -> u32 {
        self.rows_free.pop_first().unwrap_or_else(|| {
            self.rows_used += 1;
            self.rows_used - 1
        })
    }

    /// Assigns a CAM row the first unused slot, and writes both.
    fn assign_index(&mut self, vid: Vid, prefix: Prefix4, row: u32) {
        let unused =
            |slot: &u32| self.owners.get(*slot as usize) == Some(&0) && !self.indirect.contains_key(slot);
        let Some(index) = (self.lowest..SLOTS as u32).find(unused) else { return };
        self.lowest = index;
        self.indirect.insert(index, (vid, prefix));
        self.cam.insert((vid, prefix), Row { row, index });
        self.write1(index, DirEntry { by_cam: true, ..self.entry(vid, slot_of(prefix.addr())) });
        self.record(DirWrite::Row { row, to: Some(DirRow { vid, prefix, index }) });
    }

    fn owner(&self, slot: u32) -> Option<Vid> {
        self.owners.get(slot as usize).copied().and_then(Vid::new)
    }

    /// The entry for a network's slot.
    fn entry(&self, vid: Vid, slot: u32) -> DirEntry {
        let Some(network) = self.networks.get(&vid) else { return DirEntry::default() };
        let own = DirEntry { vid: Some(vid), ..DirEntry::default() };
        match network.code(slot) {
            EMPTY => DirEntry::default(),
            SET => {
                let set = network.sets.get(&slot).and_then(|placed| placed.set).unwrap_or(0);
                DirEntry { set: true, value: set as u16, ..own }
            }
            hop => DirEntry { value: (hop - 1) as u16, ..own },
        }
    }

    fn write_slot(&mut self, slot: u32) {
        let entry = self.owner(slot).map(|owner| self.entry(owner, slot)).unwrap_or_default();
        self.write1(slot, entry);
    }

    fn write1(&mut self, index: u32, entry: DirEntry) {
        let Some(place) = self.bank1.get_mut(index as usize) else { return };
        let word = entry.encode();
        if std::mem::replace(place, word) != word {
            self.record(DirWrite::Bank1 { index, word });
        }
    }

    fn write2(&mut self, index: u32, entry: DirEntry) {
        let Some(place) = self.bank2.get_mut(index as usize) else { return };
        let word = entry.encode();
        if std::mem::replace(place, word) != word {
            self.record(DirWrite::Bank2 { index, word });
        }
    }

    fn record(&mut self, write: DirWrite) {
        if let Some(writes) = &mut self.writes {
            writes.push(write);
        }
    }
}
