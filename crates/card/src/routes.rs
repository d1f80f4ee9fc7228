//! Routes and next hops where an image shares them: the trie in words of its levels (`dag36`), and one table of next hops.
//!
//! Flow: program → **routes** → writes → device. A change is computed whole, against models of the card's memories,
//! before a word is written: a network's new routes become a table of their own beside the old one (equal parts are stored
//! once, so that only what differs is written), the network's row switches to it, then the old one goes. Words and rows
//! that go are kept until the card has retired every record that it had accepted by then.

use std::ops::Range;

use hue_substrate::{Program, SubstrateError};
use hue_tables::dag36::Dag36Error;
use hue_tables::dag36_levels::{Retired, Write};
use hue_tables::{Dag, Dag36Levels, Limits, TableError, Vid};

use crate::device::Device;
use crate::error::CardError;
use crate::generated::{self as regs, Level0Row, Level1Row, Level2Row, Level3Row};
use crate::registers::Registers;

/// Polls of the record counters when room is needed at once; the stages hold a record for some hundred clocks at most.
const RETIRE_POLLS_MAX: usize = 10_000;
/// The item of "no route".
const NO_ROUTE: u64 = 0xffff;
/// Bytes of the store that the levels follow, beyond what any card's levels hold.
const STORE_BYTES_MAX: u64 = 256 << 20;

/// The tables of all networks.
pub struct Shared {
    dag: Dag<u32>,
    levels: Dag36Levels,
    hops: Rows,
    /// What waits, with the number of accepted records at which nothing new could meet it.
    waiting: Vec<(u32, Retired, Vec<Range<u32>>)>,
}

/// What a network has of the shared tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Its table in the store, under an id of the store alone.
    table: Vid,
    /// Rows of its next hops.
    pub hops: Range<u32>,
}

/// One network's change, computed but not written.
#[must_use = "either written and told to `switched`, or given to `undo`"]
pub struct Switch {
    writes: Vec<Write>,
    root: u64,
    held: Held,
    before: Option<Held>,
    /// Whether the rows of next hops were given out for this change.
    hops_new: bool,
}

/// Rows given out in runs, first fit.
struct Rows {
    free: Vec<Range<u32>>,
    max: u32,
}

impl Rows {
    fn new(max: u32) -> Self {
        Self { free: Vec::from([Range { start: 0, end: max }]), max }
    }

    fn allocate(&mut self, count: u32) -> Option<Range<u32>> {
        let index = self.free.iter().position(|run| run.len() >= count as usize)?;
        let run = self.free.get_mut(index)?;
        let given = run.start..run.start + count;
        run.start = given.end;
        self.free.retain(|run| !run.is_empty());
        Some(given)
    }

    fn release(&mut self, rows: Range<u32>) {
        if rows.is_empty() {
            return;
        }
        let at = self.free.partition_point(|run| run.start < rows.start);
        self.free.insert(at, rows);
        let mut joined: Vec<Range<u32>> = Vec::with_capacity(self.free.len());
        for run in self.free.drain(..) {
            match joined.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => joined.push(run),
            }
        }
        self.free = joined;
    }
}

impl Shared {
    /// Empty tables.
    pub fn new(level_words: [u32; 4], hop_rows: u32) -> Result<Self, CardError> {
        let limits = Limits { image_bytes_max: STORE_BYTES_MAX, ..Limits::default() };
        let mut dag = Dag::new(limits).map_err(CardError::Memory)?;
        dag.record_deltas();
        Ok(Self {
            dag,
            levels: Dag36Levels::new(&level_words),
            hops: Rows::new(hop_rows),
            waiting: Vec::new(),
        })
    }

    /// Bytes of route words in use, and at most.
    pub fn bytes(&self, level_words: [u32; 4]) -> (u64, u64) {
        let used: u64 = (0..level_words.len()).map(|level| self.levels.words_used(level)).sum();
        let max: u64 = level_words.into_iter().map(u64::from).sum();
        (used * 36 / 8, max * 36 / 8)
    }

    /// Computes what a program changes. On an error nothing has changed.
    pub fn change(
        &mut self,
        program: &Program,
        before: Option<(&Program, &Held)>,
        image: &str,
    ) -> Result<Switch, SubstrateError> {
        let same_hops = before.filter(|(old, _)| old.next_hops == program.next_hops);
        let (hops, hops_new) = match same_hops {
            Some((_, held)) => (held.hops.clone(), false),
            None => (self.allocate_hops(program, image)?, true),
        };
        let mut writes = Vec::new();
        match self.build(program, image, &mut writes) {
            Ok(table) => {
                let root = self.levels.root(table).unwrap_or(NO_ROUTE);
                let before = before.map(|(_, held)| held.clone());
                Ok(Switch { writes, root, held: Held { table, hops }, before, hops_new })
            }
            Err(error) => {
                if hops_new {
                    self.hops.release(hops);
                }
                Err(error)
            }
        }
    }

    fn allocate_hops(&mut self, program: &Program, image: &str) -> Result<Range<u32>, SubstrateError> {
        let needed = program.next_hops.len();
        let hops = u32::try_from(needed).ok().and_then(|count| self.hops.allocate(count));
        hops.ok_or_else(|| SubstrateError::Room {
            name: program.name.clone(),
            substrate: format!("image {image}"),
            what: "next hops in one run beside the other networks'",
            needed,
            max: self.hops.max as usize,
        })
    }

    /// A table of the program's routes under an unused id; what the card must write for it is appended.
    fn build(
        &mut self,
        program: &Program,
        image: &str,
        writes: &mut Vec<Write>,
    ) -> Result<Vid, SubstrateError> {
        let table = |error: TableError| SubstrateError::Table { name: program.name.clone(), error };
        let used: Vec<Vid> = self.dag.networks().collect();
        let unused = (1..=Vid::MAX).filter_map(Vid::new).find(|id| !used.contains(id));
        let id = unused.ok_or_else(|| {
            table(TableError::TooManyNetworks { vid: program.vid, networks_max: usize::from(Vid::MAX) })
        })?;
        self.dag.add_network(id).map_err(table)?;
        let changes: Vec<_> = program.routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
        let mut result = self.dag.apply(id, &changes).map_err(table);
        for delta in self.dag.take_deltas() {
            let applied = if result.is_ok() { self.levels.apply(&delta, writes) } else { Ok(()) };
            if let Err(error) = applied {
                result = Err(self.full(program, image, error));
            }
        }
        match result {
            Ok(()) => Ok(id),
            Err(error) => {
                self.drop_table(id);
                Err(error)
            }
        }
    }

    /// Removes a table from the store and the levels; its words wait in the levels' list of retired ones.
    fn drop_table(&mut self, table: Vid) {
        let dropped = self.dag.remove_network(table);
        assert!(dropped.is_ok(), "a table of this driver is not in its store: {dropped:?}");
        let mut roots = Vec::new();
        for delta in self.dag.take_deltas() {
            let applied = self.levels.apply(&delta, &mut roots);
            assert!(applied.is_ok(), "removing a table needs no room: {applied:?}");
        }
    }

    fn full(&self, program: &Program, image: &str, error: Dag36Error) -> SubstrateError {
        let name = program.name.clone();
        match error {
            Dag36Error::LevelFull { level, words, words_used, words_max } => SubstrateError::Room {
                name,
                substrate: format!("image {image}"),
                what: match level {
                    0 => "route words in the first level, all networks together,",
                    1 => "route words in the second level, all networks together,",
                    2 => "route words in the third level, all networks together,",
                    _ => "route words in the fourth level, all networks together,",
                },
                needed: (words_used + words) as usize,
                max: words_max as usize,
            },
            error => SubstrateError::Broken { substrate: crate::card::NAME, reason: error.to_string() },
        }
    }

    /// Takes a change back that was not written: the card has met none of its words, so they need not wait.
    pub fn undo(&mut self, switch: Switch) {
        let waiting = self.levels.take_retired();
        assert!(waiting.is_empty(), "words retired before a change must wait by themselves");
        self.drop_table(switch.held.table);
        let retired = self.levels.take_retired();
        self.levels.reclaim(retired);
        if switch.hops_new {
            self.hops.release(switch.held.hops);
        }
    }

    /// A change was written, its network's row last: what it replaced goes.
    ///
    /// # Errors
    /// `Access`.
    pub fn switched<R: Registers>(
        &mut self,
        switch: Switch,
        device: &mut Device<R>,
    ) -> Result<Held, CardError> {
        if let Some(before) = switch.before {
            self.drop_table(before.table);
            let hops = if switch.hops_new { vec![before.hops] } else { Vec::new() };
            self.wait(hops, device)?;
        }
        Ok(switch.held)
    }

    /// A network's row was emptied: its tables go.
    ///
    /// # Errors
    /// `Access`.
    pub fn remove<R: Registers>(&mut self, held: Held, device: &mut Device<R>) -> Result<(), CardError> {
        self.drop_table(held.table);
        self.wait(vec![held.hops], device)
    }

    fn wait<R: Registers>(&mut self, hops: Vec<Range<u32>>, device: &mut Device<R>) -> Result<(), CardError> {
        let retired = self.levels.take_retired();
        if retired.is_empty() && hops.iter().all(Range::is_empty) {
            return Ok(());
        }
        let accepted = device.read(regs::ACCEPTED)?;
        self.waiting.push((accepted, retired, hops));
        Ok(())
    }

    /// Gives back what no record can hold any more; waits for records to leave when something is left.
    pub fn reclaim<R: Registers>(&mut self, device: &mut Device<R>) -> Result<(), CardError> {
        for _ in 0..RETIRE_POLLS_MAX {
            if self.waiting.is_empty() {
                return Ok(());
            }
            let left = device.read(regs::RETIRED)?;
            let mut still = Vec::new();
            for (accepted, words, hops) in self.waiting.drain(..) {
                // Modulo 2^32: the counters are never half of that apart.
                if (left.wrapping_sub(accepted) as i32) < 0 {
                    still.push((accepted, words, hops));
                    continue;
                }
                self.levels.reclaim(words);
                hops.into_iter().for_each(|rows| self.hops.release(rows));
            }
            self.waiting = still;
        }
        // A port that takes nothing holds records back; what waits is used another time.
        Ok(())
    }
}

impl Switch {
    /// Rows of the network's next hops.
    pub fn hops(&self) -> Range<u32> {
        self.held.hops.clone()
    }

    /// The root item of the network.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Writes route words, in order; roots are the caller's.
    pub fn write_words<R: Registers>(&self, device: &mut Device<R>) -> Result<(), CardError> {
        for write in &self.writes {
            let Write::Word { level, index, word } = *write else { continue };
            match level {
                0 => device.write_row(index, &Level0Row { word })?,
                1 => device.write_row(index, &Level1Row { word })?,
                2 => device.write_row(index, &Level2Row { word })?,
                _ => device.write_row(index, &Level3Row { word })?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_together() {
        let mut rows = Rows::new(10);
        let (a, b) = (rows.allocate(4).unwrap(), rows.allocate(6).unwrap());
        assert_eq!((a.clone(), b.clone(), rows.allocate(1)), (0..4, 4..10, None));
        rows.release(a);
        assert_eq!(rows.allocate(5), None);
        rows.release(b);
        assert_eq!(rows.free.len(), 1);
        assert_eq!(rows.allocate(10), Some(0..10));
    }
}
