//! Where routes lead, each way once: a full table has a few dozen of them.
//!
//! Invariant: a path lives as long as routes or next-hop rows hold it; its number is reused only after that.

use std::collections::HashMap;

use hue_host::netlink::{NextHop, Route, RouteKind, Scope};

/// Number of a path.
pub(super) type PathId = u32;

/// All of a kernel route but its destination and metric.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Path {
    /// From the local table, which goes before the main one.
    pub(super) local: bool,
    pub(super) tos: u8,
    pub(super) protocol: u8,
    pub(super) scope: Scope,
    pub(super) kind: RouteKind,
    pub(super) hops: Vec<NextHop>,
}

/// Table of the routes that users and routing daemons install.
const TABLE_MAIN: u32 = 254;
/// Table of what the host itself is.
const TABLE_LOCAL: u32 = 255;

impl Path {
    /// The path of a route; `None` when the route is in no table that the plane follows.
    pub(super) fn of(route: Route) -> Option<Self> {
        let local = match route.table {
            TABLE_LOCAL => true,
            TABLE_MAIN => false,
            _ => return None,
        };
        let Route { tos, protocol, scope, kind, hops, cloned, .. } = route;
        (!cloned).then_some(Self { local, tos, protocol, scope, kind, hops })
    }

    /// Whether the kernel takes both for the same: whether a way is dead now says nothing about that.
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

    /// Whether the kernel passes over it: it leads somewhere, but no way is usable now.
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
    /// The one asked for last: routes often come in runs of one path.
    last: Option<PathId>,
}

impl Paths {
    /// The path's number, held once more.
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

    /// Holds a path that is held already once more.
    pub(super) fn hold_again(&mut self, id: PathId) {
        if let Some(slot) = self.slots.get_mut(id as usize) {
            slot.holders += 1;
        }
    }

    /// Lets go of a path.
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

    /// A path that is held.
    pub(super) fn get(&self, id: PathId) -> Option<&Path> {
        self.slots.get(id as usize).filter(|slot| slot.holders > 0).map(|slot| &slot.path)
    }

    /// Where the kernel has a route of this path and metric among those of its prefix: the least goes first.
    pub(super) fn order(&self, id: PathId, metric: u32) -> Option<(bool, u8, u32)> {
        self.get(id).map(|path| (!path.local, u8::MAX - path.tos, metric))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }
}
