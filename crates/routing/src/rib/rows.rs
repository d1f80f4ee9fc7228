//! The rows of a network's next-hop table: which row leads where, and which are free.
//!
//! Invariants: a row keeps its meaning while any route that was handed out names it, and until one more update was taken
//! after the last such route was withdrawn; what it does with packets may change at any time (a neighbour comes or goes).
//! The lowest free row is taken first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::Ipv4Addr;

use hue_planes::{Adjacency, ipv4::NEXT_HOPS_MAX};

use super::paths::{PathId, Paths};

/// What a row means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Target {
    /// The kernel of the namespace.
    Local,
    /// The link of a virtual port: destinations on it.
    Link(u16),
    /// A station on the link of a virtual port.
    Station(u16, Ipv4Addr),
    /// The first usable way of a path with many.
    Ways(PathId),
}

struct Row {
    /// `None`: free.
    target: Option<Target>,
    routes: u32,
    sent: Option<Adjacency>,
    dirty: bool,
}

/// All rows of a network.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    index: HashMap<Target, u16>,
    free: BinaryHeap<Reverse<u16>>,
    /// Without routes since the update that is being made, or the one before.
    cooling: Vec<u16>,
    dirty: Vec<u16>,
    ways: usize,
}

impl Rows {
    /// The row of a target, one route more on it; `None` when there is no row left.
    pub(super) fn hold(&mut self, target: Target, paths: &mut Paths) -> Option<u16> {
        let row = match self.index.get(&target) {
            Some(row) => *row,
            None => self.add(target, paths)?,
        };
        if let Some(place) = self.rows.get_mut(usize::from(row)) {
            place.routes += 1;
            if place.routes == 1 {
                self.mark_dirty(row);
            }
        }
        Some(row)
    }

    fn add(&mut self, target: Target, paths: &mut Paths) -> Option<u16> {
        let row = match self.free.pop() {
            Some(Reverse(row)) => row,
            None if self.rows.len() < NEXT_HOPS_MAX => {
                self.rows.push(Row { target: None, routes: 0, sent: None, dirty: false });
                u16::try_from(self.rows.len() - 1).ok()?
            }
            None => return None,
        };
        self.rows.get_mut(usize::from(row))?.target = Some(target);
        self.index.insert(target, row);
        if let Target::Ways(path) = target {
            paths.hold_again(path);
            self.ways += 1;
        }
        Some(row)
    }

    /// One route less on a row.
    pub(super) fn release(&mut self, row: u16) {
        if let Some(place) = self.rows.get_mut(usize::from(row)) {
            place.routes -= 1;
            if place.routes == 0 {
                self.cooling.push(row);
            }
        }
    }

    /// Frees the rows that lost their last route before the update that was taken last. Says whether there were any.
    pub(super) fn free(&mut self, paths: &mut Paths) -> bool {
        let mut any = false;
        for row in std::mem::take(&mut self.cooling) {
            let Some(place) = self.rows.get_mut(usize::from(row)) else { continue };
            if place.routes > 0 {
                continue;
            }
            // Twice in the list when it came back and went again.
            let Some(target) = place.target.take() else { continue };
            self.index.remove(&target);
            if let Target::Ways(path) = target {
                paths.release(path);
                self.ways -= 1;
            }
            self.free.push(Reverse(row));
            any = true;
        }
        any
    }

    /// The row of a target may do something else now.
    pub(super) fn touch(&mut self, target: Target) {
        if let Some(row) = self.index.get(&target) {
            self.mark_dirty(*row);
        }
    }

    /// Rows of paths with many ways may do something else now.
    pub(super) fn touch_ways(&mut self) {
        if self.ways > 0 {
            let ways = self.index.iter().filter(|(target, _)| matches!(target, Target::Ways(_)));
            let rows: Vec<u16> = ways.map(|(_, row)| *row).collect();
            rows.into_iter().for_each(|row| self.mark_dirty(row));
        }
    }

    /// All rows may do something else now.
    pub(super) fn touch_all(&mut self) {
        let rows: Vec<u16> = self.index.values().copied().collect();
        rows.into_iter().for_each(|row| self.mark_dirty(row));
    }

    fn mark_dirty(&mut self, row: u16) {
        if let Some(place) = self.rows.get_mut(usize::from(row))
            && !place.dirty
        {
            place.dirty = true;
            self.dirty.push(row);
        }
    }

    /// The rows that routes name and that do something else than was handed out last, in their order.
    pub(super) fn take(&mut self, adjacency: impl Fn(Target) -> Adjacency) -> Vec<(u16, Adjacency)> {
        let mut changed = Vec::new();
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        for row in dirty {
            let Some(place) = self.rows.get_mut(usize::from(row)) else { continue };
            place.dirty = false;
            let Some(target) = place.target.filter(|_| place.routes > 0) else { continue };
            let now = adjacency(target);
            if place.sent != Some(now) {
                place.sent = Some(now);
                changed.push((row, now));
            }
        }
        changed
    }

    /// What was handed out last, by row; free ones do nothing.
    pub(super) fn sent(&self) -> impl Iterator<Item = Adjacency> + '_ {
        self.rows.iter().map(|row| row.sent.unwrap_or(Adjacency::local()))
    }

    /// What a row does, as handed out last.
    pub(super) fn get(&self, row: u16) -> Option<Adjacency> {
        self.rows.get(usize::from(row))?.sent
    }

    /// Targets that routes lead to.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> + '_ {
        self.rows.iter().filter(|row| row.routes > 0).filter_map(|row| row.target)
    }

    /// How many rows routes may name.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use hue_demux::PortId;

    use super::*;

    fn update(rows: &mut Rows, paths: &mut Paths) -> Vec<(u16, Adjacency)> {
        rows.free(paths);
        rows.take(|target| match target {
            Target::Station(port, _) => Adjacency::glean(PortId::new(port as u8)),
            _ => Adjacency::local(),
        })
    }

    #[test]
    fn a_row_is_used_again_one_update_after_its_last_route_went() {
        let (mut rows, mut paths) = (Rows::default(), Paths::default());
        let station = |last: u8| Target::Station(u16::from(last), Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(rows.hold(station(1), &mut paths), Some(0));
        assert_eq!(rows.hold(station(1), &mut paths), Some(0));
        assert_eq!(update(&mut rows, &mut paths), [(0, Adjacency::glean(PortId::new(1)))]);
        rows.release(0);
        rows.release(0);
        // The update that withdraws the route is being made: packets still use the row.
        assert_eq!(rows.hold(station(2), &mut paths), Some(1));
        assert_eq!(update(&mut rows, &mut paths), [(1, Adjacency::glean(PortId::new(2)))]);
        assert_eq!(rows.hold(station(3), &mut paths), Some(0));
        assert_eq!(update(&mut rows, &mut paths), [(0, Adjacency::glean(PortId::new(3)))]);
    }

    #[test]
    fn a_row_that_comes_back_in_time_stays() {
        let (mut rows, mut paths) = (Rows::default(), Paths::default());
        let target = Target::Station(1, Ipv4Addr::LOCALHOST);
        assert_eq!(rows.hold(target, &mut paths), Some(0));
        update(&mut rows, &mut paths);
        for _ in 0..2 {
            rows.release(0);
            assert_eq!(rows.hold(target, &mut paths), Some(0));
        }
        assert!(update(&mut rows, &mut paths).is_empty(), "nothing has changed");
        assert_eq!(rows.hold(Target::Local, &mut paths), Some(1), "row 0 is not free");
    }
}
