//! A plane's own tables (`tcam`) and a copy of their contents, so that only rows that differ are written.
//!
//! Routes change one row at a time while packets pass. At each step a packet gets either its old or its new route:
//! new routes are written before old ones are removed; the longest new prefixes are written first, and the longest
//! old prefixes are removed last; a row that makes room for another is written at its new place before it is
//! overwritten.

use crate::device::Device;
use crate::error::CardError;
use crate::generated::{LocalRow, RouteRow};
use crate::plan::PlaneRows;
use crate::registers::Registers;
use crate::rows::Row;

/// A plane.
pub struct Plane {
    index: u32,
    /// Contents; `None` means unknown, as on a card that has just been taken over.
    rows: Option<PlaneRows>,
}

impl Plane {
    /// A plane whose contents are unknown.
    pub fn new(index: u32) -> Self {
        Self { index, rows: None }
    }

    /// Whether `rows` differ from the plane's contents only in next hops.
    pub fn differs_in_hops_only(&self, rows: &PlaneRows) -> bool {
        self.rows.as_ref().is_some_and(|held| held.routes == rows.routes && held.locals == rows.locals)
    }

    /// Changes routes of the plane to `rows` one row at a time, while packets pass. Returns `false`, and does
    /// nothing, if this is not possible: because next hops change too, because old and new routes do not fit
    /// together, because `all_at_once` is set and there is more than one change, or because packets do not leave the
    /// stages.
    ///
    /// Before the next row is written, all packets that saw the previous row's old state have to leave. A table waits
    /// for them itself, but an access gives up after 100 clocks.
    pub fn write_in_steps<R: Registers>(
        &mut self,
        device: &mut Device<R>,
        rows: &PlaneRows,
        all_at_once: bool,
    ) -> Result<bool, CardError> {
        let description = device.description();
        let (local_rows, route_rows) = (description.local_rows, description.route_rows);
        let Some(held) = self.rows.as_ref().filter(|held| held.hops == rows.hops) else { return Ok(false) };
        let steps = Steps::between(held, rows);
        let fits = steps.locals_most <= local_rows as usize && steps.routes_most <= route_rows as usize;
        if !fits || (all_at_once && steps.changes > 1) {
            return Ok(false);
        }
        let leave = |device: &mut Device<R>| device.mark().and_then(|mark| device.wait_for(mark));
        match leave(device) {
            Err(CardError::Busy) => return Ok(false),
            other => other?,
        }
        // If a write fails, the contents stay unknown.
        self.rows = None;
        for step in &steps.writes {
            match step {
                Step::Local(at, row) => device.write_row(self.index * local_rows + at, row)?,
                Step::Route(at, row) => device.write_row(self.index * route_rows + at, row)?,
            }
            leave(device)?;
        }
        self.rows = Some(rows.clone());
        Ok(true)
    }

    /// Makes the plane hold `rows`.
    pub fn write<R: Registers>(&mut self, device: &mut Device<R>, rows: PlaneRows) -> Result<(), CardError> {
        // If a write fails, the contents stay unknown.
        let held = self.rows.take();
        let held = held.as_ref();
        let description = device.description();
        let (hops, locals, routes) = (description.hop_rows, description.local_rows, description.route_rows);
        self.fill(device, hops, held.map(|held| &held.hops[..]), &rows.hops)?;
        self.fill(device, locals, held.map(|held| &held.locals[..]), &rows.locals)?;
        self.fill(device, routes, held.map(|held| &held.routes[..]), &rows.routes)?;
        self.rows = Some(rows);
        Ok(())
    }

    /// Writes the rows that differ among the first `count`; rows beyond the list are empty.
    fn fill<R: Registers, T: Row + Copy + Default + PartialEq>(
        &self,
        device: &mut Device<R>,
        count: u32,
        held: Option<&[T]>,
        rows: &[T],
    ) -> Result<(), CardError> {
        for index in 0..count {
            let row = rows.get(index as usize).copied().unwrap_or_default();
            let same = held.is_some_and(|held| held.get(index as usize).copied().unwrap_or_default() == row);
            if !same {
                device.write_row(self.index * count + index, &row)?;
            }
        }
        Ok(())
    }
}

/// A row to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Local(u32, LocalRow),
    Route(u32, RouteRow),
}

/// Steps that change the routes one row at a time.
#[derive(Default)]
struct Steps {
    writes: Vec<Step>,
    /// Number of routes that are added, changed or removed.
    changes: usize,
    /// Maximum number of address rows in use during the change.
    locals_most: usize,
    routes_most: usize,
}

impl Steps {
    /// Single addresses take precedence over routes, so they are added first and removed last.
    fn between(from: &PlaneRows, to: &PlaneRows) -> Self {
        let mut steps = Self::default();
        let (mut locals, mut routes) = (from.locals.clone(), from.routes.clone());
        let local = |row: &LocalRow| row.addr;
        let come = missing(&to.locals, &from.locals, local);
        let go = missing(&from.locals, &to.locals, local);
        steps.changes += come.len() + go.len();
        for row in come {
            insert(&mut locals, row, local, |at, row| steps.writes.push(Step::Local(at, row)));
        }
        steps.locals_most = locals.len();
        steps.changes += change(&mut locals, &to.locals, local, |at, row| {
            steps.writes.push(Step::Local(at, row));
        });
        steps.routes(&mut routes, to);
        for row in go {
            remove(&mut locals, row, local, |at, row| steps.writes.push(Step::Local(at, row)));
        }
        debug_assert!(locals == to.locals && routes == to.routes, "steps lead to other rows");
        steps
    }

    fn routes(&mut self, routes: &mut Vec<RouteRow>, to: &PlaneRows) {
        let come = missing(&to.routes, routes, order);
        let go = missing(routes, &to.routes, order);
        self.changes += come.len() + go.len();
        // The longest first, which is their order in the table.
        for row in come {
            insert(routes, row, order, |at, row| self.writes.push(Step::Route(at, row)));
        }
        self.routes_most = routes.len();
        self.changes += change(routes, &to.routes, order, |at, row| self.writes.push(Step::Route(at, row)));
        for row in go.into_iter().rev() {
            remove(routes, row, order, |at, row| self.writes.push(Step::Route(at, row)));
        }
    }
}

/// Order of routes: the longest prefix first.
fn order(row: &RouteRow) -> (u32, u32) {
    (row.mask.count_zeros(), row.value)
}

/// Rows of a sorted list whose key is missing from another list.
fn missing<T: Copy, K: Ord>(of: &[T], there: &[T], key: impl Fn(&T) -> K + Copy) -> Vec<T> {
    of.iter().copied().filter(|row| there.binary_search_by_key(&key(row), key).is_err()).collect()
}

/// Changes the values of rows to those in another list with the same keys; returns how many changed.
fn change<T: Copy + PartialEq, K: Ord>(
    rows: &mut [T],
    to: &[T],
    key: impl Fn(&T) -> K + Copy,
    mut write: impl FnMut(u32, T),
) -> usize {
    let mut changes = 0;
    for (at, row) in (0..).zip(rows.iter_mut()) {
        let other = to.binary_search_by_key(&key(row), key).ok();
        if let Some(other) = other.and_then(|other| to.get(other)).filter(|other| *other != row) {
            *row = *other;
            changes += 1;
            write(at, *row);
        }
    }
    changes
}

/// Inserts a row in its place. The rows after it move, the last one first.
fn insert<T: Copy, K: Ord>(rows: &mut Vec<T>, row: T, key: impl Fn(&T) -> K, mut write: impl FnMut(u32, T)) {
    let at = rows.partition_point(|other| key(other) < key(&row));
    for (behind, other) in rows.iter().enumerate().skip(at).rev() {
        write(behind as u32 + 1, *other); // a table has far fewer rows than 2^32
    }
    write(at as u32, row);
    rows.insert(at, row);
}

/// Removes a row. The rows after it move, the first one first.
fn remove<T: Copy + Default, K: Ord>(
    rows: &mut Vec<T>,
    row: T,
    key: impl Fn(&T) -> K,
    mut write: impl FnMut(u32, T),
) {
    let at = rows.partition_point(|other| key(other) < key(&row));
    if at >= rows.len() {
        return;
    }
    rows.remove(at);
    for (place, other) in (0..).zip(rows.iter()).skip(at) {
        write(place, *other);
    }
    write(rows.len() as u32, T::default());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Routes of nested prefixes of a byte, and single addresses. Each has a next hop; `None` means the router
    /// itself.
    type Want = (BTreeMap<(u8, u32), u16>, BTreeMap<u32, Option<u16>>);

    fn rows((routes, locals): &Want) -> PlaneRows {
        let row = |(&(len, value), &hop): (&(u8, u32), &u16)| {
            let mask = u32::MAX << (32 - u32::from(len));
            RouteRow { valid: true, value: value & mask, mask, hop }
        };
        let mut routes: Vec<RouteRow> = routes.iter().map(row).collect();
        routes.sort_by_key(order);
        routes.dedup_by_key(|row| order(row));
        let address = |(&addr, &hop): (&u32, &Option<u16>)| LocalRow {
            valid: true,
            addr,
            neighbour: hop.is_some(),
            hop: hop.unwrap_or_default(),
        };
        let locals = locals.iter().map(address).collect();
        PlaneRows { hops: Vec::new(), routes, locals }
    }

    fn want() -> impl Strategy<Value = Want> {
        let key = || (0u32..4).prop_map(|key| key << 30);
        let routes =
            prop::collection::btree_map((1u8..=3, (0u32..8).prop_map(|key| key << 29)), 0u16..3, 0..12);
        (routes, prop::collection::btree_map(key(), prop::option::of(0u16..3), 0..4))
    }

    /// A packet's result: `None` means no route, `Some(None)` the router itself.
    fn find(locals: &[LocalRow], routes: &[RouteRow], key: u32) -> Option<Option<u16>> {
        if let Some(row) = locals.iter().find(|row| row.valid && row.addr == key) {
            return Some(row.neighbour.then_some(row.hop));
        }
        let first = routes.iter().find(|row| row.valid && (key ^ row.value) & row.mask == 0)?;
        Some(Some(first.hop))
    }

    proptest! {
        #[test]
        fn each_step_leaves_every_packet_the_old_or_the_new_route(from in want(), to in want()) {
            let (from, to) = (rows(&from), rows(&to));
            let steps = Steps::between(&from, &to);
            let (mut locals, mut routes) = (from.locals.clone(), from.routes.clone());
            locals.resize(steps.locals_most, LocalRow::default());
            routes.resize(steps.routes_most, RouteRow::default());
            let keys: Vec<u32> = (0..8).map(|key| key << 29).collect();
            let all = |locals: &[LocalRow], routes: &[RouteRow]| -> Vec<_> {
                keys.iter().map(|key| find(locals, routes, *key)).collect()
            };
            let (before, after) = (all(&from.locals, &from.routes), all(&to.locals, &to.routes));
            let mut seen = before.clone();
            for step in &steps.writes {
                match *step {
                    Step::Local(at, row) => locals[at as usize] = row,
                    Step::Route(at, row) => routes[at as usize] = row,
                }
                for (key, now) in all(&locals, &routes).into_iter().enumerate() {
                    prop_assert!(now == before[key] || now == after[key], "{step:?}: {key}: {now:?}");
                    // No packet gets the old result after one got the new result.
                    prop_assert!(now == seen[key] || now == after[key], "{step:?}: {key}: {now:?}");
                    seen[key] = now;
                }
            }
            prop_assert_eq!(seen, after);
            prop_assert_eq!((&locals[..to.locals.len()], &routes[..to.routes.len()]), (&to.locals[..], &to.routes[..]));
            let beyond = routes[to.routes.len()..].iter().all(|row| !row.valid);
            prop_assert!(beyond && locals[to.locals.len()..].iter().all(|row| !row.valid));
        }
    }
}
