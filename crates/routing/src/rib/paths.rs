//! The different paths of routes, stored once each: a full table has a few dozen.
//!
//! Invariant: a path exists as long as routes or next-hop rows hold it; its id is reused only after that.

use std::collections::HashMap;

use hue_host::netlink::{NextHop, Route, RouteKind, Scope};

/// Id of a path.
pub(super) type PathId = u32;

/// A kernel route without its destination and metric.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Path {
    /// Whether it is from the local table, which has priority over the main table.
    pub(super) local: bool,
    pub(super) tos: u8,
    pub(super) protocol: u8,
    pub(super) scope: Scope,
    pub(super) kind: RouteKind,
    pub(super) hops: Vec<NextHop>,
}

/// The table for routes of users and routing daemons.
const TABLE_MAIN: u32 = 254;
/// The table for the host's own addresses.
const TABLE_LOCAL: u32 = 255;

impl Path {
    /// The path of a route; `None` if the route is in a table that the plane ignores.
    pub(super) fn of(route: Route) -> Option<Self> {
        let local = match route.table {
            TABLE_LOCAL => true,
            TABLE_MAIN => false,
            _ => return None,
        };
        let Route { tos, protocol, scope, kind, hops, cloned, .. } = route;
        (!cloned).then_some(Self { local, tos, protocol, scope, kind, hops })
    }

    /// Whether the kernel considers both the same route, whatever the state of their next hops.
    pub(super) fn is(&self, other: &Self) -> bool {
        let same = |(one, other): (&NextHop, &NextHop)| NextHop { dead: other.dead, ..*one } == *other;
        self.local == other.local
            && self.tos == other.tos
            && self.protocol == other.protocol
            && self.scope == other.scope
            && self.kind == other.kind
            && self.hops.len() == other.hops.len()
            && self.hops.iter().zip(&other.hops).all(same)
    }

    /// Whether the kernel ignores the route: it has next hops, but none is usable now.
    pub(super) fn dead(&self) -> bool {
        self.kind == RouteKind::Unicast && !self.hops.is_empty() && self.hops.iter().all(|hop| hop.dead)
    }
}

struct Slot {
    path: Path,
    holders: u32,
}

/// All paths of a network.
#[derive(Default)]
pub(super) struct Paths {
    slots: Vec<Slot>,
    index: HashMap<Path, PathId>,
    free: Vec<PathId>,
    /// The previous result: consecutive routes often have the same path.
    last: Option<PathId>,
}

impl Paths {
    /// Returns the id of a path, and adds a holder.
    pub(super) fn hold(&mut self, path: Path) -> PathId {
        if let Some(last) = self.last
            && self.get(last) == Some(&path)
        {
            self.hold_again(last);
            return last;
        }
        let id = match self.index.get(&path) {
            Some(id) => *id,
            None => self.add(path),
        };
        self.hold_again(id);
        self.last = Some(id);
        id
    }

    fn add(&mut self, path: Path) -> PathId {
        let slot = Slot { path: path.clone(), holders: 0 };
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.slots.len() as PathId,
        };
        match self.slots.get_mut(id as usize) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        self.index.insert(path, id);
        id
    }

    /// Adds a holder to an existing path.
    pub(super) fn hold_again(&mut self, id: PathId) {
        if let Some(slot) = self.slots.get_mut(id as usize) {
            slot.holders += 1;
        }
    }

    /// Removes a holder from a path.
    pub(super) fn release(&mut self, id: PathId) {
        let Some(slot) = self.slots.get_mut(id as usize) else { return };
        slot.holders -= 1;
        if slot.holders == 0 {
            self.index.remove(&slot.path);
            slot.path.hops = Vec::new();
            self.free.push(id);
            self.last = self.last.filter(|last| *last != id);
        }
    }

    /// An existing path.
    pub(super) fn get(&self, id: PathId) -> Option<&Path> {
        self.slots.get(id as usize).filter(|slot| slot.holders > 0).map(|slot| &slot.path)
    }

    /// Sort key of a route with this path and metric among the routes of its prefix: the smallest has
    /// priority.
    pub(super) fn order(&self, id: PathId, metric: u32) -> Option<(bool, u8, u32)> {
        self.get(id).map(|path| (!path.local, u8::MAX - path.tos, metric))
    }

    /// Number of paths.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}
