//! The rows of a network's next-hop table: their targets, and which are free.
//!
//! Invariants: a row keeps its target while a published route refers to it, and until one more update has
//! been taken after the last such route was withdrawn; the slots of groups count as routes. Its action can change at any time (for example when a
//! neighbour appears or disappears). The lowest free row is used first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

use hue_planes::Adjacency;
use hue_planes::group::{Group, Member, Slots, WEIGHT_MAX};
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
    /// The usable next hops of a path with several.
    Ways(PathId),
}

/// The current action of a target.
pub(super) enum Action<A> {
    /// This row.
    Row(Adjacency),
    /// A group of the rows of these targets, with their weights; if it cannot be, this row.
    Group(Vec<(Target<A>, u16)>, Adjacency),
}

/// What is published about a row.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Sent {
    Row(Adjacency),
    Group(Slots),
}

/// The rows that a path with several next hops uses, and how its slots were assigned so far.
struct Ways<A> {
    /// Targets with their rows.
    held: Vec<(Target<A>, u16)>,
    group: Option<Group>,
}

/// Changed rows.
#[derive(Default)]
pub(super) struct ChangedRows {
    pub(super) hops: Vec<(NextHop, Adjacency)>,
    pub(super) groups: Vec<(NextHop, Slots)>,
    /// Whether a group lacks a member, because there were not enough rows.
    pub(super) exhausted: bool,
}

struct Row<A> {
    /// `None` means free.
    target: Option<Target<A>>,
    /// Routes and groups that refer to it.
    routes: u32,
    sent: Option<Sent>,
    dirty: bool,
    /// Of a path with several next hops.
    ways: Option<Box<Ways<A>>>,
}

impl Sent {
    fn adjacency(&self) -> Adjacency {
        match self {
            Self::Row(hop) => *hop,
            Self::Group(_) => Adjacency::group(0),
        }
    }
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
    /// Free rows that are still published as groups.
    ended: Vec<u16>,
    /// How many rows are published as groups.
    groups: usize,
    /// Most rows.
    max: usize,
    /// Most groups.
    groups_max: usize,
}

impl<A> Rows<A> {
    /// No rows yet, and at most this many.
    pub(super) fn new(max: usize, groups_max: usize) -> Self {
        Self {
            rows: Vec::new(),
            index: HashMap::new(),
            free: BinaryHeap::new(),
            cooling: Vec::new(),
            dirty: Vec::new(),
            ways: 0,
            ended: Vec::new(),
            groups: 0,
            max,
            groups_max,
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
                self.rows.push(Row { target: None, routes: 0, sent: None, dirty: false, ways: None });
                u16::try_from(self.rows.len() - 1).ok()?
            }
            None => return None,
        };
        self.rows.get_mut(usize::from(row))?.target = Some(target);
        self.index.insert(target, row);
        if let Target::Ways(path) = target {
            paths.hold_again(path);
            self.ways += 1;
            self.rows.get_mut(usize::from(row))?.ways =
                Some(Box::new(Ways { held: Vec::new(), group: None }));
        }
        Some(row)
    }

    /// Gives the row of a path with several next hops the slots of another one, whose first route it takes over. So the flows of
    /// next hops that both have stay. A row that was used before has slots too, but they are older.
    pub(super) fn inherit(&mut self, row: u16, from: u16) {
        let group = self.rows.get(usize::from(from)).and_then(|from| from.ways.as_ref()?.group.clone());
        let place = self.rows.get_mut(usize::from(row)).filter(|place| place.routes == 1);
        if let (Some(group), Some(ways)) = (group, place.and_then(|place| place.ways.as_mut())) {
            ways.group = Some(group);
        }
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
            let ways = place.ways.take();
            if let Some(Sent::Group(_)) = place.sent {
                self.ended.push(row);
            }
            if let Target::Ways(path) = target {
                paths.release(path);
                self.ways -= 1;
            }
            ways.into_iter().flat_map(|ways| ways.held).for_each(|(_, member)| self.release(member));
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
    pub(super) fn take(
        &mut self,
        paths: &mut Paths,
        action: impl Fn(Target<A>, &Paths) -> Action<A>,
    ) -> ChangedRows {
        let mut changed = ChangedRows::default();
        for row in std::mem::take(&mut self.ended) {
            // A row that is used again is published below.
            if self.rows.get(usize::from(row)).is_some_and(|place| place.routes == 0) {
                self.send(row, Sent::Row(Adjacency::local()), &mut changed);
            }
        }
        // Groups first, because members get rows.
        let is_ways = |row: &u16| self.rows.get(usize::from(*row)).is_some_and(|place| place.ways.is_some());
        let (mut ways, mut rest): (Vec<u16>, Vec<u16>) =
            std::mem::take(&mut self.dirty).into_iter().partition(is_ways);
        ways.sort_unstable();
        for row in ways {
            let Some(place) = self.rows.get_mut(usize::from(row)) else { continue };
            place.dirty = false;
            let Some(target) = place.target.filter(|_| place.routes > 0) else { continue };
            let now = match action(target, paths) {
                Action::Row(hop) => {
                    self.hold_members(row, &[], paths);
                    Sent::Row(hop)
                }
                Action::Group(members, instead) => {
                    self.group(row, &members, instead, paths, &mut changed.exhausted)
                }
            };
            self.send(row, now, &mut changed);
        }
        rest.append(&mut self.dirty);
        rest.sort_unstable();
        for row in rest {
            let Some(place) = self.rows.get_mut(usize::from(row)) else { continue };
            place.dirty = false;
            let Some(target) = place.target.filter(|_| place.routes > 0) else { continue };
            if let Action::Row(now) = action(target, paths) {
                self.send(row, Sent::Row(now), &mut changed);
            }
        }
        changed
    }

    /// Publishes what a row does, unless that is published already.
    fn send(&mut self, row: u16, now: Sent, changed: &mut ChangedRows) {
        let Some(place) = self.rows.get_mut(usize::from(row)) else { return };
        if place.sent.as_ref() == Some(&now) {
            return;
        }
        self.groups -= usize::from(matches!(place.sent, Some(Sent::Group(_))));
        self.groups += usize::from(matches!(now, Sent::Group(_)));
        if let Some(index) = NextHop::new(row) {
            match &now {
                Sent::Row(hop) => changed.hops.push((index, *hop)),
                Sent::Group(slots) => changed.groups.push((index, slots.clone())),
            }
        }
        place.sent = Some(now);
    }

    /// Makes a row a group of these targets. One member, or too many groups, give a single row.
    fn group(
        &mut self,
        row: u16,
        members: &[(Target<A>, u16)],
        instead: Adjacency,
        paths: &mut Paths,
        exhausted: &mut bool,
    ) -> Sent {
        let held = self.hold_members(row, members, paths);
        *exhausted |= held.len() < members.len();
        let is_group = |place: &Row<A>| matches!(place.sent, Some(Sent::Group(_)));
        let Some(place) = self.rows.get_mut(usize::from(row)) else { return Sent::Row(instead) };
        let full = self.groups >= self.groups_max && !is_group(place);
        let Some(ways) = place.ways.as_mut() else { return Sent::Row(instead) };
        let now = match &ways.group {
            Some(group) if group.members() == held => Some(group.clone()),
            Some(group) => group.changed(&held),
            None => Group::new(&held),
        };
        ways.group = now.or(ways.group.take());
        match &ways.group {
            Some(group) if held.len() > 1 && !full && group.members() == held => {
                Sent::Group(group.slots().clone())
            }
            _ => Sent::Row(instead),
        }
    }

    /// Gives each of these targets a row, as members of a row's group, instead of its former members. Those without a row
    /// are left out.
    fn hold_members(&mut self, row: u16, members: &[(Target<A>, u16)], paths: &mut Paths) -> Vec<Member> {
        let ways = self.rows.get_mut(usize::from(row)).and_then(|place| place.ways.as_mut());
        let before = ways.map(|ways| std::mem::take(&mut ways.held)).unwrap_or_default();
        let mut held = Vec::with_capacity(members.len());
        let mut all = Vec::with_capacity(members.len());
        for (target, weight) in members {
            let Some(member) = self.hold(*target, paths) else { continue };
            held.push((*target, member));
            let weight = (*weight).clamp(1, WEIGHT_MAX);
            all.extend(NextHop::new(member).map(|row| Member { row, weight }));
        }
        before.into_iter().for_each(|(_, member)| self.release(member));
        if let Some(ways) = self.rows.get_mut(usize::from(row)).and_then(|place| place.ways.as_mut()) {
            ways.held = held;
        }
        all
    }

    /// The published actions by row; free rows do nothing.
    pub(super) fn sent(&self) -> impl Iterator<Item = Adjacency> + '_ {
        self.rows.iter().map(|row| row.sent.as_ref().map_or(Adjacency::local(), Sent::adjacency))
    }

    /// The published groups.
    pub(super) fn sent_groups(&self) -> impl Iterator<Item = (NextHop, &Slots)> {
        self.rows.iter().zip(0u16..).filter_map(|(row, index)| match &row.sent {
            Some(Sent::Group(slots)) => Some((NextHop::new(index)?, slots)),
            _ => None,
        })
    }

    /// The published action of a row.
    pub(super) fn get(&self, row: u16) -> Option<Adjacency> {
        self.rows.get(usize::from(row))?.sent.as_ref().map(Sent::adjacency)
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
        let changed = rows.take(paths, |target, _| {
            Action::Row(match target {
                Target::Neighbour(port, _) => Adjacency::glean(PortId::new(port as u8)),
                _ => Adjacency::local(),
            })
        });
        changed.hops.into_iter().map(|(row, hop)| (row.get(), hop)).collect()
    }

    #[test]
    fn a_row_is_reused_one_update_after_its_last_route() {
        let (mut rows, mut paths) = (Rows::new(9, 9), Paths::default());
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
        let (mut rows, mut paths) = (Rows::new(9, 9), Paths::default());
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
