//! Routes of images with the papers' two banks (layout `dir`): entries of all networks, and the Conflict CAM.
//!
//! Flow: program, or changes of it → **banks** → words and rows → device. `Dir` computes the steps of a change and
//! their order: each packet sees the old route or the new one, with no stop of other packets. At a `Drain` the driver
//! waits until the records accepted so far have left, as for other layouts. A run of equal words is one FILL write.
//!
//! A network has entries only while the card may decide its packets. A network in software has no entries. Its next
//! hops are a run of rows, as in [`crate::routes`]. A change that does not fit is refused before anything is written.

use std::ops::Range;

use hue_planes::group::Slots;
use hue_substrate::{Program, SubstrateError};
use hue_tables::dir::words::DirWrite;
use hue_tables::dir::{Dir, DirError, DirLimits, SETS, SLOTS};
use hue_tables::{Change, Vid};

use crate::device::{Description, Device};
use crate::error::{CardError, NAME, broken};
use crate::generated::{ConflictRow, FillRow, SramRow};
use crate::groups::Groups;
use crate::records::Mark;
use crate::registers::Registers;
use crate::routes::{HopRows, Roots};
use crate::rows::{Row, Table};
use crate::runs::Rows;

/// Shortest run of equal words that is written by FILL. The accesses of a FILL cost the same for any length.
const FILL_ROWS_MIN: usize = 16;
/// Maximum number of polls of one FILL; after that the card counts as broken. Filling a whole bank takes 2^21 clocks
/// if lookups use every clock, and one poll takes several clocks.
const FILL_POLLS_MAX: usize = 1 << 20;
/// SRAM row of the second bank's first word.
const SECOND_BANK: u32 = SLOTS as u32;

/// The tables of all networks.
pub struct Banks {
    dir: Dir,
    hops: Rows,
    /// Rows of next hops that records may still refer to, each with the mark that has to pass before reuse.
    waiting: Vec<(Mark, Range<u32>)>,
}

/// What one network's new program needs, checked but not written.
pub struct Arrival {
    /// Its rows of next hops after the change.
    pub hops: Range<u32>,
    /// Whether these rows were allocated for this change.
    pub hops_new: bool,
    /// Changes of its routes.
    pub changes: Vec<Change<u32>>,
    /// Whether the change has to be written in a hold: packets may already use the network's table and its old next
    /// hops, and no packet may see a mixture.
    pub in_hold: bool,
}

impl Banks {
    /// Empty tables; the card's tables are not accessed.
    pub fn new(of: &Description) -> Self {
        let mut dir = Dir::new(DirLimits { sets: SETS, cam_rows: of.cam_rows as usize });
        dir.record_writes();
        Self { dir, hops: Rows::of_hops(of.hop_rows), waiting: Vec::new() }
    }

    /// Makes the card's tables empty. No network is on the card.
    pub fn clear<R: Registers>(device: &mut Device<R>) -> Result<(), CardError> {
        for row in 0..device.description().cam_rows {
            device.write_row(row, &ConflictRow::default())?;
        }
        // Words of the second bank are written before an entry refers to their set.
        if device.read_row::<FillRow>(0)?.written {
            fill(device, 0, SLOTS, 0)?;
        }
        Ok(())
    }

    /// The error for a change that does not fit.
    fn refuse(&self, error: &DirError, name: &str, image: &str) -> SubstrateError {
        let (what, needed, max) = match *error {
            DirError::Sets { needed, max, .. } => {
                ("sets of the second bank, with those of other networks", needed as usize, max as usize)
            }
            DirError::Cam { needed, max, .. } => {
                ("rows of the Conflict CAM, with those of other networks", needed, max)
            }
            DirError::Bank { needed, .. } => {
                ("entries of the first bank, with those of other networks", needed, SLOTS)
            }
            DirError::UnknownNetwork(_) | DirError::DuplicateNetwork(_) => {
                let substrate = NAME;
                return SubstrateError::Broken { substrate, reason: error.to_string() };
            }
        };
        SubstrateError::Room { name: name.to_owned(), substrate: format!("image {image}"), what, needed, max }
    }

    /// Rows of next hops for a program, in one run.
    pub fn allocate_hops<R: Registers>(
        &mut self,
        program: &Program,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        let needed = program.next_hops.len();
        let allocate = |hops: &mut Rows| hops.allocate(u32::try_from(needed).ok()?);
        self.find_hops((&program.name, needed), allocate, device)
    }

    /// Rows of next hops; waits for rows that are about to become free if there are none.
    fn find_hops<R: Registers>(
        &mut self,
        (name, needed): (&str, usize),
        find: impl Fn(&mut Rows) -> Option<Range<u32>>,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        self.reclaim(device).map_err(broken)?;
        let mut found = find(&mut self.hops);
        if let Some((latest, _)) = self.waiting.last().filter(|_| found.is_none()) {
            device.wait_for(*latest).map_err(broken)?;
            self.reclaim(device).map_err(broken)?;
            found = find(&mut self.hops);
        }
        found.ok_or_else(|| self.hops.lacks(name, &device.description().name, needed))
    }

    /// Returns rows that no record can refer to.
    pub fn release_hops(&mut self, hops: Range<u32>) {
        self.hops.release(hops);
    }

    /// Checks whether these changes of networks fit, one after the other.
    pub fn check(
        &mut self,
        changes: &[(Vid, Vec<Change<u32>>)],
        name_of: impl Fn(Vid) -> String,
        image: &str,
    ) -> Result<(), SubstrateError> {
        let result = self.dir.check(changes);
        result.map_err(|error| {
            let vid = match error {
                DirError::Sets { vid, .. } | DirError::Cam { vid, .. } | DirError::Bank { vid, .. } => vid,
                DirError::UnknownNetwork(vid) | DirError::DuplicateNetwork(vid) => vid,
            };
            self.refuse(&error, &name_of(vid), image)
        })
    }

    /// Changes the routes of a network, which may be new, and writes the result to the card. Each packet sees the old
    /// route or the new one.
    pub fn change<R: Registers>(
        &mut self,
        (vid, name): (Vid, &str),
        changes: &[Change<u32>],
        device: &mut Device<R>,
    ) -> Result<(), SubstrateError> {
        let new = !self.dir.has(vid);
        let added = if new { self.dir.add_network(vid) } else { Ok(()) };
        if let Err(error) = added.and_then(|()| self.dir.apply(vid, changes)) {
            if new {
                // The network's table is empty again, so its removal needs no room.
                let _ = self.dir.remove_network(vid);
            }
            return Err(self.refuse(&error, name, &device.description().name));
        }
        write(device, &self.dir.take_writes()).map_err(broken)
    }

    /// Writes the routes of a change that was checked before.
    pub fn arrive<R: Registers>(
        &mut self,
        vid: Vid,
        arrival: &Arrival,
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        if !self.dir.has(vid) {
            let added = self.dir.add_network(vid);
            assert!(added.is_ok(), "the network is not in the table yet: {added:?}");
        }
        let applied = self.dir.apply(vid, &arrival.changes);
        assert!(applied.is_ok(), "the change was checked before: {applied:?}");
        write(device, &self.dir.take_writes())
    }

    /// Removes a network's table, which no packet uses any more, and its rows of next hops.
    pub fn remove<R: Registers>(
        &mut self,
        vid: Vid,
        hops: Range<u32>,
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        let gone = self.dir.remove_network(vid);
        assert!(gone.is_ok(), "a removal needs no room: {gone:?}");
        self.hops.release(hops);
        write(device, &self.dir.take_writes())
    }

    /// The expected contents of an SRAM row.
    pub fn word(&self, row: u32) -> u64 {
        let bank = if row < SECOND_BANK { self.dir.bank1() } else { self.dir.bank2() };
        bank.get((row % SECOND_BANK) as usize).copied().unwrap_or(0)
    }

    /// Returns the entries of the first bank, sets of the second bank and rows of the CAM in use, then the rows of
    /// next hops in use.
    pub fn used(&self) -> ([u64; 3], u64) {
        let usage = self.dir.usage();
        let rows = usage.cam_rows as u64;
        ([usage.slots as u64 + rows, usage.sets.into(), rows], self.hops.used())
    }

    /// Changes so far that removed old words before the new ones had room.
    pub fn interruptions(&self) -> u64 {
        self.dir.interruptions()
    }

    /// Bytes of entries: in use, and the maximum. A set counts as a whole.
    pub fn bytes(&self) -> (u64, u64) {
        (self.dir.usage().words() * 36 / 8, 2 * SLOTS as u64 * 36 / 8)
    }

    /// Returns a network's routes, the entries that it would need if it were alone, and the entries that its removal
    /// would free.
    pub fn account(&self, vid: Vid) -> (u64, u64, u64) {
        let (own, marginal) = self.dir.words_of(vid);
        (self.dir.routes_of(vid) as u64, own, marginal)
    }

    /// Frees rows that no record can refer to any more.
    fn reclaim<R: Registers>(&mut self, device: &mut Device<R>) -> Result<(), CardError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let records = device.records()?;
        for (mark, hops) in std::mem::take(&mut self.waiting) {
            if records.have_passed(mark) { self.hops.release(hops) } else { self.waiting.push((mark, hops)) }
        }
        Ok(())
    }
}

impl HopRows for Banks {
    fn grow_hops<R: Registers>(
        &mut self,
        run: &Range<u32>,
        needed: usize,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        self.find_hops((name, needed), |hops| hops.grow(run, needed), device)
    }

    /// There are none.
    fn take_slots<R: Registers>(
        &mut self,
        slots: &Slots,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        Err(Groups::new(0).lacks(name, &device.description().name, slots.len()))
    }

    fn groups(&mut self) -> Option<&mut Groups> {
        None
    }

    fn wait(&mut self, mark: Mark, hops: Range<u32>, _: Vec<Range<u32>>) {
        if !hops.is_empty() {
            self.waiting.push((mark, hops));
        }
    }

    fn roots(&self, _table: Vid) -> Roots {
        Roots::default()
    }
}

/// Writes the steps of a change in their order.
fn write<R: Registers>(device: &mut Device<R>, writes: &[DirWrite]) -> Result<(), CardError> {
    let mut words = Vec::new();
    for write in writes {
        match *write {
            DirWrite::Bank1 { index, word } => words.push((index, word)),
            DirWrite::Bank2 { index, word } => words.push((SECOND_BANK + index, word)),
            DirWrite::Row { row, to } => {
                write_words(device, &words)?;
                words.clear();
                let to = to.map(|to| ConflictRow {
                    valid: true,
                    vid: to.vid.get(),
                    prefix: to.prefix.addr() >> (32 - hue_tables::dir::SLOT_BITS),
                    length: to.prefix.len(),
                    index: to.index,
                });
                device.write_row(row, &to.unwrap_or_default())?;
            }
            DirWrite::Drain => {
                write_words(device, &words)?;
                words.clear();
                let mark = device.mark()?;
                device.wait_for(mark)?;
            }
        }
    }
    write_words(device, &words)
}

/// Writes words in order. Runs of equal words are written by FILL.
fn write_words<R: Registers>(device: &mut Device<R>, words: &[(u32, u64)]) -> Result<(), CardError> {
    const SRAM: Table = SramRow::TABLE;
    let mut apart: Vec<(Table, u32, u64)> = Vec::new();
    // A run stops at the end of its bank, because FILL does not cross it.
    let next = |one: &(u32, u64), other: &(u32, u64)| {
        one.0 + 1 == other.0 && one.1 == other.1 && other.0 != SECOND_BANK
    };
    for run in words.chunk_by(next) {
        let Some((first, word)) = run.first().copied() else { continue };
        if run.len() < FILL_ROWS_MIN {
            apart.extend(run.iter().map(|(row, word)| (SRAM, *row, *word)));
            continue;
        }
        device.write_burst(&apart)?;
        apart.clear();
        fill(device, first, run.len(), word)?;
    }
    device.write_burst(&apart)
}

/// Sets a run of rows to one word and waits until all of them are written.
fn fill<R: Registers>(device: &mut Device<R>, first: u32, rows: usize, word: u64) -> Result<(), CardError> {
    // At most one bank: 2^19 rows.
    device.write_row(0, &FillRow { index: first, count: rows as u32, word, ..FillRow::default() })?;
    for _ in 0..FILL_POLLS_MAX {
        if !device.read_row::<FillRow>(0)?.running {
            return Ok(());
        }
    }
    Err(CardError::Table { table: FillRow::TABLE.name, row: 0, reason: "the FILL did not end" })
}
