//! Runs of rows of a table that networks share: of next hops, or of slots of groups.
//!
//! Flow: routes, groups, banks → **runs** → indices of rows.

use std::ops::Range;

use hue_substrate::SubstrateError;

/// Allocates runs of rows, first fit.
pub struct Rows {
    free: Vec<Range<u32>>,
    max: u32,
    /// What they are, for errors.
    what: &'static str,
}

impl Rows {
    /// Rows for next hops.
    pub fn of_hops(max: u32) -> Self {
        Self::new(max, "next hops in one run, beside other networks' runs")
    }

    pub fn new(max: u32, what: &'static str) -> Self {
        Self { free: Vec::from([Range { start: 0, end: max }]), max, what }
    }

    /// Rows in use.
    pub fn used(&self) -> u64 {
        let free: usize = self.free.iter().map(ExactSizeIterator::len).sum();
        u64::from(self.max) - free as u64
    }

    /// The error when there is no run of this length.
    pub fn lacks(&self, name: &str, image: &str, needed: usize) -> SubstrateError {
        SubstrateError::Room {
            name: name.to_owned(),
            substrate: format!("image {image}"),
            what: self.what,
            needed,
            max: self.max as usize,
        }
    }

    pub fn allocate(&mut self, count: u32) -> Option<Range<u32>> {
        let index = self.free.iter().position(|run| run.len() >= count as usize)?;
        let run = self.free.get_mut(index)?;
        let given = run.start..run.start + count;
        run.start = given.end;
        self.free.retain(|run| !run.is_empty());
        Some(given)
    }

    /// A run whose start is a multiple of its length.
    pub fn allocate_aligned(&mut self, count: u32) -> Option<Range<u32>> {
        let fits = |run: &Range<u32>| {
            let start = run.start.checked_next_multiple_of(count)?;
            (start.checked_add(count)? <= run.end).then_some(start)
        };
        let (index, start) =
            self.free.iter().enumerate().find_map(|(index, run)| Some((index, fits(run)?)))?;
        let run = self.free.remove(index);
        let given = start..start + count;
        let rest = [given.end..run.end, run.start..start].into_iter().filter(|rest| !rest.is_empty());
        rest.for_each(|rest| self.free.insert(index, rest));
        Some(given)
    }

    /// Extends a run in place; `None` if the rows behind it are not free.
    fn extend(&mut self, rows: &Range<u32>, count: u32) -> Option<Range<u32>> {
        let end = rows.start.checked_add(count)?;
        let next = self.free.iter_mut().find(|run| run.start == rows.end && run.end >= end)?;
        next.start = end;
        self.free.retain(|run| !run.is_empty());
        Some(rows.start..end)
    }

    /// Makes room for a longer run: extends this one or finds another one, with rows to spare.
    pub fn grow(&mut self, run: &Range<u32>, needed: usize) -> Option<Range<u32>> {
        let count = u32::try_from(needed).ok()?;
        let spare = count.saturating_add(count / 2).saturating_add(4);
        let longer = self.extend(run, spare).or_else(|| self.extend(run, count));
        longer.or_else(|| self.allocate(spare)).or_else(|| self.allocate(count))
    }

    pub fn release(&mut self, rows: Range<u32>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_together() {
        let mut rows = Rows::of_hops(10);
        let (a, b) = (rows.allocate(4).unwrap(), rows.allocate(6).unwrap());
        assert_eq!((a.clone(), b.clone(), rows.allocate(1)), (0..4, 4..10, None));
        rows.release(a);
        assert_eq!((rows.allocate(5), rows.extend(&(4..10), 7)), (None, None));
        rows.release(b);
        assert_eq!(rows.free.len(), 1);
        let run = rows.allocate(3).unwrap();
        assert_eq!((rows.extend(&run, 11), rows.extend(&run, 5)), (None, Some(0..5)));
        rows.release(0..5);
        assert_eq!(rows.allocate(10), Some(0..10));
    }

    #[test]
    fn aligned_runs_start_at_multiples_of_their_length() {
        let mut rows = Rows::of_hops(64);
        let one = rows.allocate_aligned(1).unwrap();
        let (many, few) = (rows.allocate_aligned(32).unwrap(), rows.allocate_aligned(16).unwrap());
        assert_eq!((one.clone(), many.clone(), few), (0..1, 32..64, 16..32));
        assert_eq!((rows.allocate_aligned(16), rows.allocate_aligned(8)), (None, Some(8..16)));
        rows.release(many);
        rows.release(one);
        assert_eq!(rows.used(), 24);
        assert_eq!((rows.allocate_aligned(8), rows.allocate_aligned(64)), (Some(0..8), None));
    }
}
