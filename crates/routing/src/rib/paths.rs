//! The different paths of routes, stored once each: a full table has a few dozen.
//!
//! Invariant: a path exists as long as routes or next-hop rows hold it; its id is reused only after that.

use std::collections::HashMap;

use hue_host::netlink::{NextHop, Route, RouteKind, Scope, protocol};
use hue_tables::AnyPrefix;

use crate::family::{Family, Order};

/// Id of a path.
pub(super) type PathId = u32;

/// A kernel route without its destination and metric.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Path {
    /// Whether it is from the local table, which has priority over the main table.
    pub(super) local: bool,
    pub(super) tos: u8,
    /// Sources to which it is limited; boxed, because that is rare.
    pub(super) source: Option<Box<AnyPrefix>>,
    /// Whether the kernel combines it with others of the same destination and metric; see [`Order::Siblings`].
    pub(super) has_siblings: bool,
    /// The next-hop object of an IPv6 route. It makes routes different whose next hops are equal.
    pub(super) object: u32,
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
    pub(super) fn of<K: Family>(route: Route) -> Option<Self> {
        let local = match route.table {
            TABLE_LOCAL => true,
            TABLE_MAIN => false,
            _ => return None,
        };
        let Route { tos, source, object, protocol, scope, kind, hops, cloned, .. } = route;
        // As `rt6_qualify_for_ecmp`.
        let has_siblings = K::ORDER == Order::Siblings
            && kind == RouteKind::Unicast
            && object == 0
            && protocol != protocol::ROUTER_ADVERTISEMENT
            && !hops.is_empty()
            && hops.iter().all(|hop| hop.via.is_some());
        let object = if K::ORDER == Order::Siblings { object } else { 0 };
        (!cloned).then_some(Self { local, tos, source, has_siblings, object, protocol, scope, kind, hops })
    }

    /// Whether only some packets to the destination take it.
    pub(super) fn is_conditional(&self) -> bool {
        self.tos != 0 || self.source.is_some()
    }

    /// Whether the kernel combines both, if they have the same destination and metric.
    pub(super) fn is_sibling(&self, other: &Self) -> bool {
        self.has_siblings && other.has_siblings && self.local == other.local && self.source == other.source
    }

    /// Sorts the next hops as in an earlier message, new ones last. A message about an addition begins with the new next
    /// hop, whatever the order in the kernel.
    pub(super) fn keep_order_of(&mut self, earlier: &Self) {
        if self.has_siblings {
            let is_same = |one: &NextHop, other: &NextHop| (one.link, one.via) == (other.link, other.via);
            let place = |hop: &NextHop| earlier.hops.iter().position(|other| is_same(hop, other));
            self.hops.sort_by_key(|hop| place(hop).unwrap_or(usize::MAX));
        }
    }

    /// The path without some of its next hops; `None` if none is left.
    pub(super) fn without(&self, gone: &[NextHop]) -> Option<Self> {
        let is_gone = |hop: &NextHop| gone.iter().any(|gone| (gone.link, gone.via) == (hop.link, hop.via));
        let hops: Vec<NextHop> = self.hops.iter().filter(|hop| !is_gone(hop)).copied().collect();
        (!hops.is_empty()).then(|| Self { hops, ..self.clone() })
    }

    /// Whether the kernel considers both the same route, whatever the state of their next hops.
    pub(super) fn is(&self, other: &Self) -> bool {
        let same = |(one, other): (&NextHop, &NextHop)| NextHop { dead: other.dead, ..*one } == *other;
        self.local == other.local
            && self.tos == other.tos
            && self.source == other.source
            && self.object == other.object
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
