//! The routing information base (RIB) of one network: turns the state of its kernel into the contents of its
//! table.
//!
//! Flow: [`Event`](crate::Event)s of a namespace → **[`Rib`]** → [`RibUpdate`]s → next-hop rows and routes of
//! the plane. No clock, no sockets.
//!
//! Rules. The RIB uses the kernel's local and main table. The local table has priority over the main table,
//! then the lowest metric wins, then the kernel's order. A route without a usable next hop is ignored if the
//! prefix has another one. Packets of a route go
//!
//! 1. to the kernel, if the route is not unicast (local, broadcast, unreachable, blackhole, prohibit, throw),
//!    if its interface is not a virtual port, or if the prefix has a route for a type of service or for some
//!    sources only: the kernel handles everything that the plane cannot;
//! 2. directly to the destination, if the route has no gateway: a known neighbour, or one to be resolved;
//! 3. to the gateway: it is used if it is a known neighbour, and resolved otherwise. Of several next hops,
//!    those with a known gateway are a group ([`hue_planes::group`]), in which each keeps its flows; if no gateway is
//!    known, the first next hop is used.
//!
//! IPv6 has two exceptions (ADR 0047): the plane decides multicast and link-local destinations without a route, so
//! the RIB has none for them; a link-local neighbour is still a gateway, on the interface of the route. Of IPv6 routes
//! with the same destination and metric, those with gateways are one route ([`Order::Siblings`](crate::Order)).
//!
//! Of a port that leads to one router only ([`RibPort::peer`]), every route is resolved, and neighbours have no meaning.
//!
//! A known neighbour also gets its own host route, if the longest matching route is a link of the neighbour's
//! port; a longer route to another place takes precedence. Control compiles documents by the same rules.
//!
//! Invariants: an update is minimal: it contains nothing that equals the published state. Its rows come
//! before its routes, and the meaning of rows with routes does not change. Nothing is published before the
//! first snapshot is complete.
//!
//! The owner must also act on requests: for another snapshot ([`Rib::take_resync_needed`]), and for gateways
//! to resolve ([`Rib::unresolved`]).
//!
//! Of a network with slices, there is a RIB for each, and the main table is that of slice 0 (`slices.rs`).
//!
//! Ignored: other tables, rules (`ip rule`), MTUs and other metrics of routes. Differences from the kernel:
//! the kernel normally still uses a next hop whose link has no carrier; here it is dead. If a gateway is the
//! network's own address (an old way to tell the kernel that destinations are on the link), it is an unknown
//! neighbour here, and the kernel forwards the packets.

mod any;
mod apply;
mod list;
mod paths;
mod rows;
#[cfg(test)]
mod samples;
mod slices;

use std::collections::{BTreeMap, HashMap, HashSet};

use hue_demux::PortId;
use hue_host::netlink::{AddressState, Link, NextHop as Way, RouteKind};
use hue_planes::group::{GROUPS_MAX, MEMBERS_MAX, Slots};
use hue_planes::{Adjacency, AdjacencyKind, ipv4::NEXT_HOPS_MAX};
use hue_tables::{Change, NextHop, Prefix};
use hue_wire::Mac;

pub use any::{AnyRib, AnyUpdate};
pub use list::{Counts, RouteRow, RouteWay};

use crate::family::Family;

use paths::{Path, PathId, Paths};
use rows::{Action, Rows, Target};

/// A virtual port in the namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RibPort {
    /// Name of the interface in the namespace.
    pub interface: String,
    /// The physical port behind it.
    pub port: PortId,
    /// The network's own address there.
    pub mac: Mac,
    /// Largest IP packet of the port, in bytes.
    pub mtu_bytes: u16,
    /// Of a port that leads to one router only (an IP tunnel): the destination of all its frames. Nothing is resolved there.
    pub peer: Option<Mac>,
}

/// Changes since the last update.
#[derive(Clone, PartialEq, Debug)]
pub struct RibUpdate<K: Family = u32> {
    /// Whether this is the complete state instead of a change: everything published before is invalid.
    pub complete: bool,
    /// Rows to set before the routes, in order.
    pub hops: Vec<(NextHop, Adjacency)>,
    /// Rows to set as groups, after the others.
    pub groups: Vec<(NextHop, Slots)>,
    /// Routes to set or remove.
    pub routes: Vec<Change<K>>,
    /// All known neighbours (with the index of their virtual port), if they changed.
    pub neighbours: Option<Vec<(u16, K::Addr, Mac)>>,
    /// All addresses with their prefix lengths, if they changed.
    pub addresses: Option<Vec<(u16, K::Addr, u8)>>,
}

impl<K: Family> Default for RibUpdate<K> {
    fn default() -> Self {
        Self {
            complete: false,
            hops: Vec::new(),
            groups: Vec::new(),
            routes: Vec::new(),
            neighbours: None,
            addresses: None,
        }
    }
}

impl<K: Family> RibUpdate<K> {
    fn is_empty(&self) -> bool {
        !self.complete
            && self.hops.is_empty()
            && self.groups.is_empty()
            && self.routes.is_empty()
            && self.neighbours.is_none()
            && self.addresses.is_none()
    }
}

/// Number of the snapshot that last listed an item.
type Age = u32;

/// A route of the kernel, without its prefix.
#[derive(Clone, Copy, Debug)]
struct Kept {
    path: PathId,
    metric: u32,
    age: Age,
}

/// The kernel's routes for one prefix, best first.
#[derive(Debug)]
enum Routes {
    None,
    One(Kept),
    // Boxed to save memory: prefixes with several routes are rare.
    #[allow(clippy::box_collection)]
    Many(Box<Vec<Kept>>),
}

impl Routes {
    fn list(&self) -> &[Kept] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// The state of one prefix. Kept at 24 bytes, because there are many.
#[derive(Debug)]
struct Entry {
    routes: Routes,
    /// The last snapshot during which it changed.
    touched: Age,
    /// Published row, or [`NextHop::NONE_WORD`].
    sent: u16,
    /// Whether it is in the list of prefixes to update.
    dirty: bool,
}

const _: () = assert!(size_of::<Entry>() == 24);

impl Entry {
    const EMPTY: Self = Self { routes: Routes::None, touched: 0, sent: NextHop::NONE_WORD, dirty: false };
}

/// An item that events refer to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Item<A> {
    Link(u32),
    Address((u32, A, u8)),
    Neighbour((A, u32)),
}

struct Interface {
    link: Link,
    vport: Option<u16>,
    age: Age,
}

/// The routing information base of one network.
pub struct Rib<K: Family = u32> {
    ports: Vec<RibPort>,
    interfaces: HashMap<u32, Interface>,
    addresses: BTreeMap<(u32, K::Addr, u8), (AddressState, Age)>,
    /// Only neighbours with a valid MAC address.
    neighbours: BTreeMap<(K::Addr, u32), (Mac, Age)>,
    /// Items removed during the current snapshot, which may still list them.
    removed_meanwhile: HashSet<Item<K::Addr>>,
    table: BTreeMap<Prefix<K>, Entry>,
    /// Lengths below that of an address that entries of the table have or had, one bit each.
    lens: u128,
    paths: Paths,
    rows: Rows<K::Addr>,
    rows_max: usize,
    groups_max: usize,
    /// The row of each virtual port.
    link_rows: Vec<u16>,

    age: Age,
    in_snapshot: bool,
    synchronized: bool,
    closed: bool,
    resync_needed: bool,

    dirty: Vec<Prefix<K>>,
    all_dirty: bool,
    /// Whether nothing has been published yet.
    first_update: bool,
    /// Whether some routes have no row of their own, because there were not enough.
    rows_exhausted: bool,
    neighbours_changed: bool,
    addresses_changed: bool,
    /// Number of published routes.
    published_count: usize,
}

impl<K: Family> Rib<K> {
    /// Creates an empty RIB for a network with these virtual ports.
    #[must_use]
    pub fn new(ports: Vec<RibPort>) -> Self {
        Self::with_rows(ports, NEXT_HOPS_MAX, GROUPS_MAX)
    }

    /// The same, with at most this many rows of next hops and groups.
    #[must_use]
    pub(super) fn with_rows(ports: Vec<RibPort>, rows_max: usize, groups_max: usize) -> Self {
        let mut rib = Self {
            rows_max,
            groups_max,
            ports: Vec::new(),
            interfaces: HashMap::new(),
            addresses: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            removed_meanwhile: HashSet::new(),
            table: BTreeMap::new(),
            lens: 0,
            paths: Paths::default(),
            rows: Rows::new(rows_max, groups_max),
            link_rows: Vec::new(),
            age: 1,
            in_snapshot: false,
            synchronized: false,
            closed: false,
            resync_needed: false,
            dirty: Vec::new(),
            all_dirty: false,
            first_update: true,
            rows_exhausted: false,
            neighbours_changed: true,
            addresses_changed: true,
            published_count: 0,
        };
        rib.set_ports(ports);
        rib
    }

    /// Changes the virtual ports. Everything is published again: the next update is complete.
    pub fn set_ports(&mut self, ports: Vec<RibPort>) {
        self.ports = ports;
        self.rows = Rows::new(self.rows_max, self.groups_max);
        // The old rows held paths. Count all holders again, from the routes.
        self.rebuild_paths();
        self.rows.hold(Target::Local, &mut self.paths);
        let links = (0..self.ports.len()).filter_map(|vport| u16::try_from(vport).ok());
        self.link_rows =
            links.filter_map(|vport| self.rows.hold(Target::Link(vport), &mut self.paths)).collect();
        for interface in self.interfaces.values_mut() {
            interface.vport = vport_of(&self.ports, &interface.link.name);
        }
        for entry in self.table.values_mut() {
            entry.sent = NextHop::NONE_WORD;
        }
        self.published_count = 0;
        self.all_dirty = true;
        self.first_update = true;
        self.neighbours_changed = true;
        self.addresses_changed = true;
    }

    /// Counts the holders of paths, from the routes only.
    fn rebuild_paths(&mut self) {
        let mut paths = Paths::default();
        let kept = self.table.values_mut().flat_map(|entry| match &mut entry.routes {
            Routes::None => [].iter_mut(),
            Routes::One(one) => std::slice::from_mut(one).iter_mut(),
            Routes::Many(many) => many.iter_mut(),
        });
        for route in kept {
            if let Some(path) = self.paths.get(route.path) {
                route.path = paths.hold(path.clone());
            }
        }
        self.paths = paths;
    }

    /// The virtual ports.
    #[must_use]
    pub fn ports(&self) -> &[RibPort] {
        &self.ports
    }

    /// Whether a snapshot has been completed, so that updates are published.
    #[must_use]
    pub const fn is_synchronized(&self) -> bool {
        self.synchronized
    }

    /// Whether the namespace can no longer be monitored.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether contradictory events require another snapshot (`Monitor::resync`). Resets the flag.
    pub const fn take_resync_needed(&mut self) -> bool {
        std::mem::replace(&mut self.resync_needed, false)
    }

    /// The changes since the last call; `None` if there are none.
    pub fn take_update(&mut self) -> Option<RibUpdate<K>> {
        if !self.synchronized {
            return None;
        }
        if self.rows.free(&mut self.paths) && self.rows_exhausted {
            self.rows_exhausted = false;
            self.all_dirty = true;
        }
        let mut update =
            RibUpdate { complete: std::mem::replace(&mut self.first_update, false), ..RibUpdate::default() };
        if std::mem::replace(&mut self.all_dirty, false) {
            self.mark_all_dirty();
        }
        let dirty = std::mem::take(&mut self.dirty);
        for prefix in &dirty {
            update.routes.extend(self.update_entry(*prefix));
        }
        let mut rows = std::mem::replace(&mut self.rows, Rows::new(0, 0));
        let mut paths = std::mem::take(&mut self.paths);
        let changed = rows.take(&mut paths, |target, paths| self.action(target, paths));
        (self.rows, self.paths) = (rows, paths);
        (update.hops, update.groups) = (changed.hops, changed.groups);
        self.rows_exhausted |= changed.exhausted;
        if std::mem::replace(&mut self.neighbours_changed, false) {
            update.neighbours = Some(self.neighbours().collect());
        }
        if std::mem::replace(&mut self.addresses_changed, false) {
            update.addresses = Some(self.addresses().collect());
        }
        (!update.is_empty()).then_some(update)
    }

    fn mark_all_dirty(&mut self) {
        let hosts: Vec<K::Addr> = self.neighbours.keys().map(|(address, _)| *address).collect();
        hosts.into_iter().for_each(|address| self.mark_host_dirty(address));
        self.dirty.clear();
        for (prefix, entry) in &mut self.table {
            entry.dirty = true;
            self.dirty.push(*prefix);
        }
    }

    /// Marks the route of this prefix for an update.
    fn mark_dirty(&mut self, prefix: Prefix<K>) {
        let entry = self.table.entry(prefix).or_insert(Entry::EMPTY);
        if !std::mem::replace(&mut entry.dirty, true) {
            self.dirty.push(prefix);
        }
    }

    /// Marks a neighbour's own route for an update, if it can have one.
    fn mark_host_dirty(&mut self, address: K::Addr) {
        let prefix = host(address);
        if !K::is_never_looked_up(prefix) {
            self.mark_dirty(prefix);
        }
    }

    /// Updates the published route of a prefix.
    fn update_entry(&mut self, prefix: Prefix<K>) -> Option<Change<K>> {
        let target = self.target(prefix);
        let row = target.map(|target| self.row(target));
        let entry = self.table.get_mut(&prefix)?;
        entry.dirty = false;
        let before = entry.sent;
        if let Some(row) = row.filter(|row| *row != before) {
            self.rows.inherit(row, before);
        }
        entry.sent = row.unwrap_or(NextHop::NONE_WORD);
        if entry.sent == NextHop::NONE_WORD && matches!(entry.routes, Routes::None) {
            self.table.remove(&prefix);
        }
        if before != NextHop::NONE_WORD {
            self.rows.release(before);
            self.published_count -= 1;
        }
        let now = row.unwrap_or(NextHop::NONE_WORD);
        self.published_count += usize::from(now != NextHop::NONE_WORD);
        (before != now).then_some((prefix, row.and_then(NextHop::new)))
    }

    /// Gets a row for a route to `target`.
    fn row(&mut self, target: Target<K::Addr>) -> u16 {
        if let Some(row) = self.rows.hold(target, &mut self.paths) {
            return row;
        }
        // No rows are left: the kernel forwards, through the rows that always exist.
        self.rows_exhausted = true;
        let fallback = match target {
            Target::Neighbour(vport, _) => Target::Link(vport),
            Target::Local | Target::Link(_) | Target::Ways(_) => Target::Local,
        };
        self.rows.hold(fallback, &mut self.paths).unwrap_or_default()
    }

    /// The target of packets to this prefix; `None` if it is not a route.
    fn target(&self, prefix: Prefix<K>) -> Option<Target<K::Addr>> {
        let route = self.route_target(prefix);
        if prefix.len() < K::BITS {
            return route;
        }
        let address = prefix.addr().to_addr();
        match route.or_else(|| self.covering(address)) {
            Some(Target::Link(vport)) if self.station(vport, address).is_some() => {
                Some(Target::Neighbour(vport, address))
            }
            _ => route,
        }
    }

    /// The target of the longest route shorter than an address.
    fn covering(&self, address: K::Addr) -> Option<Target<K::Addr>> {
        let key = K::from_addr(address);
        let lens = (0..K::BITS).rev().filter(|len| self.lens & 1 << len != 0);
        let mut prefixes = lens.map(|len| Prefix::containing(key, len));
        prefixes.find_map(|prefix| self.route_target(prefix))
    }

    /// The target of the kernel's route for exactly this prefix.
    fn route_target(&self, prefix: Prefix<K>) -> Option<Target<K::Addr>> {
        let routes = self.table.get(&prefix)?.routes.list();
        let path = |kept: &Kept| self.paths.get(kept.path);
        if let [_, _, ..] = routes
            && routes.iter().filter_map(path).any(Path::is_conditional)
        {
            return Some(Target::Local);
        }
        let alive = routes.iter().find(|kept| path(kept).is_some_and(|path| !path.dead()));
        let best = alive.or(routes.first())?;
        path(best).map(|path| self.path_target(best.path, path))
    }

    fn path_target(&self, id: PathId, path: &Path) -> Target<K::Addr> {
        if path.kind != RouteKind::Unicast || path.is_conditional() {
            return Target::Local;
        }
        match path.hops.as_slice() {
            [] => Target::Local,
            [way] => self.way_target(way),
            _ => Target::Ways(id),
        }
    }

    fn way_target(&self, way: &Way) -> Target<K::Addr> {
        match (self.interfaces.get(&way.link).and_then(|interface| interface.vport), way.via) {
            (Some(vport), Some(via)) => {
                K::from_ip(via).map_or(Target::Local, |via| Target::Neighbour(vport, via.to_addr()))
            }
            (Some(vport), None) => Target::Link(vport),
            (None, _) => Target::Local,
        }
    }

    /// The link and MAC address of a known neighbour.
    fn station(&self, vport: u16, address: K::Addr) -> Option<(u32, Mac)> {
        if self.has_peer(vport) {
            return None;
        }
        let mut there = self.neighbours.range((address, 0)..=(address, u32::MAX));
        there.find_map(|((_, link), (mac, _))| {
            (self.interfaces.get(link)?.vport == Some(vport)).then_some((*link, *mac))
        })
    }

    /// The current action of a row.
    fn adjacency(&self, target: Target<K::Addr>) -> Adjacency {
        let port = |vport: u16| self.ports.get(usize::from(vport));
        match target {
            Target::Local => Adjacency::local(),
            Target::Link(vport) => port(vport).map_or(Adjacency::local(), |port| self.link_row(vport, port)),
            Target::Neighbour(vport, address) => {
                let Some(port) = port(vport) else { return Adjacency::local() };
                if port.peer.is_some() {
                    return self.link_row(vport, port);
                }
                match self.station(vport, address) {
                    Some((link, mac)) => {
                        Adjacency::forward(port.port, port.mac, mac, self.mtu_bytes(port, link))
                    }
                    None => Adjacency::glean(port.port),
                }
            }
            // Members are no paths.
            Target::Ways(_) => Adjacency::local(),
        }
    }

    /// The same for any row.
    fn action(&self, target: Target<K::Addr>, paths: &Paths) -> Action<K::Addr> {
        match target {
            Target::Ways(path) => self.group(paths.get(path).map_or(&[], |path| &path.hops)),
            _ => Action::Row(self.adjacency(target)),
        }
    }

    /// The action for packets to a link: to the router at its other end, if there is only one.
    fn link_row(&self, vport: u16, port: &RibPort) -> Adjacency {
        let Some(peer) = port.peer else { return Adjacency::glean(port.port) };
        let here = self.interfaces.iter().find(|(_, interface)| interface.vport == Some(vport));
        let mtu_bytes = here.map_or(port.mtu_bytes, |(index, _)| self.mtu_bytes(port, *index));
        Adjacency::forward(port.port, port.mac, peer, mtu_bytes)
    }

    /// Whether a virtual port leads to one router only.
    fn has_peer(&self, vport: u16) -> bool {
        self.ports.get(usize::from(vport)).is_some_and(|port| port.peer.is_some())
    }

    /// The largest packet, in bytes, that both the port and its interface accept.
    fn mtu_bytes(&self, port: &RibPort, link: u32) -> u16 {
        let mtu = self.interfaces.get(&link).map_or(0, |interface| interface.link.mtu);
        u16::try_from(mtu)
            .ok()
            .filter(|mtu| *mtu >= K::MTU_BYTES_MIN)
            .map_or(port.mtu_bytes, |mtu| mtu.min(port.mtu_bytes))
    }

    /// The action of several next hops: those that forward, otherwise the first one.
    fn group(&self, ways: &[Way]) -> Action<K::Addr> {
        let all_dead = ways.iter().all(|way| way.dead);
        let mut members: Vec<(Target<K::Addr>, u16)> = Vec::new();
        let mut first = None;
        let mut forwards = None;
        for way in ways.iter().filter(|way| !way.dead || all_dead) {
            let target = self.way_target(way);
            let adjacency = self.adjacency(target);
            first = first.or(Some(adjacency));
            if adjacency.kind() != AdjacencyKind::Forward {
                continue;
            }
            forwards = forwards.or(Some(adjacency));
            if let Some((_, weight)) = members.iter_mut().find(|(member, _)| *member == target) {
                *weight = weight.saturating_add(way.weight);
            } else if members.len() < MEMBERS_MAX {
                members.push((target, way.weight));
            }
        }
        let single = forwards.or(first).unwrap_or(Adjacency::local());
        if members.is_empty() { Action::Row(single) } else { Action::Group(members, single) }
    }
}

fn vport_of(ports: &[RibPort], name: &str) -> Option<u16> {
    let at = ports.iter().position(|port| port.interface == name)?;
    u16::try_from(at).ok()
}

fn host<K: Family>(address: K::Addr) -> Prefix<K> {
    Prefix::containing(K::from_addr(address), K::BITS)
}
