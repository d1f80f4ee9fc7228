//! The rows of a network's next-hop table: their targets, and which are free.
//!
//! Invariants: a row keeps its target while a published route refers to it, and until one more update has
//! been taken after the last such route was withdrawn. Its action can change at any time (for example when a
//! neighbour appears or disappears). The lowest free row is used first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

use hue_planes::Adjacency;
use hue_tables::NextHop;

use super::paths::{PathId, Paths};

/// The target of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Target<A> {
    /// The kernel of the namespace.
    Local,
    /// The link of a virtual port: destinations are neighbours.
    Link(u16),
    /// A neighbour on the link of a virtual port.
    Neighbour(u16, A),
    /// The first usable next hop of a path with several.
    Ways(PathId),
}

struct Row<A> {
    /// `None` means free.
    target: Option<Target<A>>,
    routes: u32,
    sent: Option<Adjacency>,
    dirty: bool,
}

/// All rows of a network.
pub(super) struct Rows<A> {
    rows: Vec<Row<A>>,
    index: HashMap<Target<A>, u16>,
    free: BinaryHeap<Reverse<u16>>,
    /// Rows that lost their last route since the previous update.
    cooling: Vec<u16>,
    dirty: Vec<u16>,
    ways: usize,
    /// Most rows.
    max: usize,
}

impl<A> Rows<A> {
    /// No rows yet, and at most this many.
    pub(super) fn new(max: usize) -> Self {
        Self {
            rows: Vec::new(),
            index: HashMap::new(),
            free: BinaryHeap::new(),
            cooling: Vec::new(),
            dirty: Vec::new(),
            ways: 0,
            max,
        }
    }
}

impl<A: Copy + Eq + Hash> Rows<A> {
    /// Returns the row of a target, and adds a route to it. `None` if all rows are in use.
    pub(super) fn hold(&mut self, target: Target<A>, paths: &mut Paths) -> Option<u16> {
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

    fn add(&mut self, target: Target<A>, paths: &mut Paths) -> Option<u16> {
        let row = match self.free.pop() {
            Some(Reverse(row)) => row,
            None if self.rows.len() < self.max => {
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

    /// Removes a route from a row.
    pub(super) fn release(&mut self, row: u16) {
        if let Some(place) = self.rows.get_mut(usize::from(row)) {
            place.routes -= 1;
            if place.routes == 0 {
                self.cooling.push(row);
            }
        }
    }

    /// Frees the rows that lost their last route before the most recent update. Returns whether there were
    /// any.
    pub(super) fn free(&mut self, paths: &mut Paths) -> bool {
        let mut any = false;
        for row in std::mem::take(&mut self.cooling) {
            let Some(place) = self.rows.get_mut(usize::from(row)) else { continue };
            if place.routes > 0 {
                continue;
            }
            // A row is in the list twice if it was used again and released again.
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

    /// Marks the row of a target: its action may have changed.
    pub(super) fn touch(&mut self, target: Target<A>) {
        if let Some(row) = self.index.get(&target) {
            self.mark_dirty(*row);
        }
    }

    /// Marks the rows of paths with several next hops: their actions may have changed.
    pub(super) fn touch_ways(&mut self) {
        if self.ways > 0 {
            let ways = self.index.iter().filter(|(target, _)| matches!(target, Target::Ways(_)));
            let rows: Vec<u16> = ways.map(|(_, row)| *row).collect();
            rows.into_iter().for_each(|row| self.mark_dirty(row));
        }
    }

    /// Marks all rows: their actions may have changed.
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

    /// The rows with routes whose action differs from the published one, in order.
    pub(super) fn take(&mut self, adjacency: impl Fn(Target<A>) -> Adjacency) -> Vec<(NextHop, Adjacency)> {
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
                changed.extend(NextHop::new(row).map(|row| (row, now)));
            }
        }
        changed
    }

    /// The published actions by row; free rows do nothing.
    pub(super) fn sent(&self) -> impl Iterator<Item = Adjacency> + '_ {
        self.rows.iter().map(|row| row.sent.unwrap_or(Adjacency::local()))
    }

    /// The published action of a row.
    pub(super) fn get(&self, row: u16) -> Option<Adjacency> {
        self.rows.get(usize::from(row))?.sent
    }

    /// Targets of routes.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target<A>> + '_ {
        self.rows.iter().filter(|row| row.routes > 0).filter_map(|row| row.target)
    }

    /// Number of rows that routes can refer to.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hue_demux::PortId;

    use super::*;

    fn update(rows: &mut Rows<Ipv4Addr>, paths: &mut Paths) -> Vec<(u16, Adjacency)> {
        rows.free(paths);
        let changed = rows.take(|target| match target {
            Target::Neighbour(port, _) => Adjacency::glean(PortId::new(port as u8)),
            _ => Adjacency::local(),
        });
        changed.into_iter().map(|(row, hop)| (row.get(), hop)).collect()
    }

    #[test]
    fn a_row_is_reused_one_update_after_its_last_route() {
        let (mut rows, mut paths) = (Rows::new(9), Paths::default());
        let station = |last: u8| Target::Neighbour(u16::from(last), Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(rows.hold(station(1), &mut paths), Some(0));
        assert_eq!(rows.hold(station(1), &mut paths), Some(0));
        assert_eq!(update(&mut rows, &mut paths), [(0, Adjacency::glean(PortId::new(1)))]);
        rows.release(0);
        rows.release(0);
        // Before the update that withdraws the route is taken, packets still use the row.
        assert_eq!(rows.hold(station(2), &mut paths), Some(1));
        assert_eq!(update(&mut rows, &mut paths), [(1, Adjacency::glean(PortId::new(2)))]);
        assert_eq!(rows.hold(station(3), &mut paths), Some(0));
        assert_eq!(update(&mut rows, &mut paths), [(0, Adjacency::glean(PortId::new(3)))]);
    }

    #[test]
    fn a_row_reused_in_time_keeps_its_number() {
        let (mut rows, mut paths) = (Rows::new(9), Paths::default());
        let target = Target::Neighbour(1, Ipv4Addr::LOCALHOST);
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
