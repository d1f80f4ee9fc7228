//! The routing information base of one network: from what its kernel says to what its table holds.
//!
//! Flow: [`Event`](crate::Event)s of a namespace → **[`Rib`]** → [`RibUpdate`]s → next-hop rows and routes of the plane. No
//! clock, no sockets.
//!
//! Rules. The kernel's local and main table count, the local one before the main one, then the least metric, then the
//! kernel's own order; a route all of whose ways are dead is passed over unless there is no other. A route leads to
//!
//! 1. the kernel, if it is not a unicast route (local, broadcast, unreachable, blackhole, prohibit, throw), if its interface
//!    is no virtual port, or if the prefix has a route for a type of service: what the plane cannot do, the kernel does;
//! 2. a link, if it has no router: a neighbour there must be known, else it is asked for;
//! 3. its router: forward when that is a known neighbour, else ask. Of many ways, the first with a known router.
//!
//! And a known neighbour is a route of its own where the longest route to it is a link of its port: a longer route to
//! elsewhere is meant to win. These are the rules by which control compiles a document, found again from the outside.
//!
//! Invariants: an update is minimal: nothing in it equals what was handed out before. Its rows come before its routes, and
//! rows that routes name do not change their meaning. Nothing is handed out before the first snapshot is complete.
//!
//! Whoever has one also asks for what it lacks: another snapshot ([`Rib::take_unclear`]), routers that no packet has asked for
//! yet ([`Rib::unresolved`]).
//!
//! Not looked at: other tables, rules (`ip rule`), MTUs and other metrics of routes. Different from the kernel: it goes on using
//! a way whose link has no carrier, unless told otherwise; here such a way is dead. A router that is the network's own address
//! (to the kernel an old way to say that destinations are on the link) is a neighbour that nobody knows: the kernel forwards.

mod apply;
mod list;
mod paths;
mod rows;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;

use hue_demux::PortId;
use hue_host::netlink::{Address, Link, NextHop as Way, RouteKind};
use hue_planes::{Adjacency, ipv4::MTU_BYTES_MIN};
use hue_tables::{Change, NextHop, Prefix4};
use hue_wire::Mac;

pub use list::{Counts, RouteRow, RouteWay};

use paths::{Path, PathId, Paths};
use rows::{Rows, Target};

/// A virtual port as the namespace sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RibPort {
    /// Name of the interface in the namespace.
    pub interface: String,
    /// The physical port behind it.
    pub port: PortId,
    /// The network's own address there.
    pub mac: Mac,
    /// Longest IP packet the port takes, bytes.
    pub mtu_bytes: u16,
}

/// What has changed since the last update.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct RibUpdate {
    /// It is everything, not a change: what was handed out before is void.
    pub complete: bool,
    /// Rows to set before the routes, in their order.
    pub hops: Vec<(u16, Adjacency)>,
    /// Routes to set and to remove.
    pub routes: Vec<Change<u32>>,
    /// All known neighbours (index of the virtual port), if they changed.
    pub neighbours: Option<Vec<(u16, Ipv4Addr, Mac)>>,
    /// All addresses with their prefix lengths, if they changed.
    pub addresses: Option<Vec<(u16, Ipv4Addr, u8)>>,
}

impl RibUpdate {
    fn is_empty(&self) -> bool {
        !self.complete
            && self.hops.is_empty()
            && self.routes.is_empty()
            && self.neighbours.is_none()
            && self.addresses.is_none()
    }
}

/// Which snapshot last said that a thing is there.
type Age = u32;

/// A route of the kernel, less its prefix.
#[derive(Clone, Copy, Debug)]
struct Kept {
    path: PathId,
    metric: u32,
    age: Age,
}

/// The kernel's routes of one prefix, best first.
#[derive(Debug)]
enum Routes {
    None,
    One(Kept),
    // Boxed for the size: prefixes with many routes are rare.
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

/// One prefix: 24 bytes, as there are many.
#[derive(Debug)]
struct Entry {
    routes: Routes,
    /// The snapshot during which a change came.
    touched: Age,
    /// Row handed out, or [`NextHop::NONE_WORD`].
    sent: u16,
    /// Is in the list of what to look at.
    dirty: bool,
}

const _: () = assert!(size_of::<Entry>() == 24);

impl Entry {
    const EMPTY: Self = Self { routes: Routes::None, touched: 0, sent: NextHop::NONE_WORD, dirty: false };
}

/// Something that is there or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Thing {
    Link(u32),
    Address((u32, Ipv4Addr, u8)),
    Neighbour((Ipv4Addr, u32)),
}

struct Interface {
    link: Link,
    vport: Option<u16>,
    age: Age,
}

/// The routing information base of one network.
pub struct Rib {
    ports: Vec<RibPort>,
    interfaces: HashMap<u32, Interface>,
    addresses: BTreeMap<(u32, Ipv4Addr, u8), (Address, Age)>,
    /// Only those whose MAC address holds.
    neighbours: BTreeMap<(Ipv4Addr, u32), (Mac, Age)>,
    /// What went while a snapshot runs: it may still list it.
    lost: HashSet<Thing>,
    table: BTreeMap<Prefix4, Entry>,
    paths: Paths,
    rows: Rows,
    /// Of each virtual port.
    link_rows: Vec<u16>,

    age: Age,
    running: bool,
    synchronous: bool,
    closed: bool,
    unclear: bool,

    dirty: Vec<Prefix4>,
    all_dirty: bool,
    /// Nothing was handed out yet.
    fresh: bool,
    /// Routes had to do without a row of their own.
    crowded: bool,
    neighbours_changed: bool,
    addresses_changed: bool,
    /// Routes handed out.
    handed: usize,
}

impl Rib {
    /// An empty one of a network with these virtual ports.
    #[must_use]
    pub fn new(ports: Vec<RibPort>) -> Self {
        let mut rib = Self {
            ports: Vec::new(),
            interfaces: HashMap::new(),
            addresses: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            lost: HashSet::new(),
            table: BTreeMap::new(),
            paths: Paths::default(),
            rows: Rows::default(),
            link_rows: Vec::new(),
            age: 1,
            running: false,
            synchronous: false,
            closed: false,
            unclear: false,
            dirty: Vec::new(),
            all_dirty: false,
            fresh: true,
            crowded: false,
            neighbours_changed: true,
            addresses_changed: true,
            handed: 0,
        };
        rib.set_ports(ports);
        rib
    }

    /// Other virtual ports from now on. Everything is handed out anew: the next update is complete.
    pub fn set_ports(&mut self, ports: Vec<RibPort>) {
        self.ports = ports;
        self.rows = Rows::default();
        // The rows held paths; all are held anew with the routes.
        self.rehold();
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
        self.handed = 0;
        self.all_dirty = true;
        self.fresh = true;
        self.neighbours_changed = true;
        self.addresses_changed = true;
    }

    /// Counts the holders of paths from the routes alone.
    fn rehold(&mut self) {
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

    /// Whether a snapshot was complete, so that updates are handed out.
    #[must_use]
    pub const fn is_synchronous(&self) -> bool {
        self.synchronous
    }

    /// Whether the namespace can no longer be listened to.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether what came was contradictory, so that another snapshot is needed (`Monitor::resync`). True once.
    pub const fn take_unclear(&mut self) -> bool {
        std::mem::replace(&mut self.unclear, false)
    }

    /// What has changed since the last call; `None` when nothing has.
    pub fn take_update(&mut self) -> Option<RibUpdate> {
        if !self.synchronous {
            return None;
        }
        if self.rows.free(&mut self.paths) && self.crowded {
            self.crowded = false;
            self.all_dirty = true;
        }
        let mut update =
            RibUpdate { complete: std::mem::replace(&mut self.fresh, false), ..RibUpdate::default() };
        if std::mem::replace(&mut self.all_dirty, false) {
            self.mark_all_dirty();
        }
        let dirty = std::mem::take(&mut self.dirty);
        for prefix in &dirty {
            update.routes.extend(self.settle(*prefix));
        }
        let mut rows = std::mem::take(&mut self.rows);
        update.hops = rows.take(|target| self.adjacency(target));
        self.rows = rows;
        if std::mem::replace(&mut self.neighbours_changed, false) {
            update.neighbours = Some(self.neighbours().collect());
        }
        if std::mem::replace(&mut self.addresses_changed, false) {
            update.addresses = Some(self.addresses().collect());
        }
        (!update.is_empty()).then_some(update)
    }

    fn mark_all_dirty(&mut self) {
        let hosts: Vec<Prefix4> = self.neighbours.keys().map(|(address, _)| host(*address)).collect();
        hosts.into_iter().for_each(|prefix| self.mark_dirty(prefix));
        self.dirty.clear();
        for (prefix, entry) in &mut self.table {
            entry.dirty = true;
            self.dirty.push(*prefix);
        }
    }

    /// The route of this prefix is to be looked at.
    fn mark_dirty(&mut self, prefix: Prefix4) {
        let entry = self.table.entry(prefix).or_insert(Entry::EMPTY);
        if !std::mem::replace(&mut entry.dirty, true) {
            self.dirty.push(prefix);
        }
    }

    /// Brings what is handed out for a prefix up to date.
    fn settle(&mut self, prefix: Prefix4) -> Option<Change<u32>> {
        let target = self.target(prefix);
        let row = target.map(|target| self.row(target));
        let entry = self.table.get_mut(&prefix)?;
        entry.dirty = false;
        let before = entry.sent;
        entry.sent = row.unwrap_or(NextHop::NONE_WORD);
        if entry.sent == NextHop::NONE_WORD && matches!(entry.routes, Routes::None) {
            self.table.remove(&prefix);
        }
        if before != NextHop::NONE_WORD {
            self.rows.release(before);
            self.handed -= 1;
        }
        let now = row.unwrap_or(NextHop::NONE_WORD);
        self.handed += usize::from(now != NextHop::NONE_WORD);
        (before != now).then_some((prefix, row.and_then(NextHop::new)))
    }

    /// Holds a row for a route to `target`.
    fn row(&mut self, target: Target) -> u16 {
        if let Some(row) = self.rows.hold(target, &mut self.paths) {
            return row;
        }
        // No rows left: the kernel does it, by way of the rows that are always there.
        self.crowded = true;
        let fallback = match target {
            Target::Station(vport, _) => Target::Link(vport),
            Target::Local | Target::Link(_) | Target::Ways(_) => Target::Local,
        };
        self.rows.hold(fallback, &mut self.paths).unwrap_or_default()
    }

    /// Where packets to this prefix go; `None` when it is no route.
    fn target(&self, prefix: Prefix4) -> Option<Target> {
        let route = self.route_target(prefix);
        if prefix.len() < 32 {
            return route;
        }
        let address = Ipv4Addr::from_bits(prefix.addr());
        match route.or_else(|| self.covering(address)) {
            Some(Target::Link(vport)) if self.station(vport, address).is_some() => {
                Some(Target::Station(vport, address))
            }
            _ => route,
        }
    }

    /// Where the longest route shorter than 32 bits leads.
    fn covering(&self, address: Ipv4Addr) -> Option<Target> {
        (0..32u8).rev().find_map(|len| self.route_target(Prefix4::containing(address.to_bits(), len)))
    }

    /// Where the kernel's route of exactly this prefix leads.
    fn route_target(&self, prefix: Prefix4) -> Option<Target> {
        let routes = self.table.get(&prefix)?.routes.list();
        let path = |kept: &Kept| self.paths.get(kept.path);
        if let [_, _, ..] = routes
            && routes.iter().filter_map(path).any(|path| path.tos != 0)
        {
            return Some(Target::Local);
        }
        let alive = routes.iter().find(|kept| path(kept).is_some_and(|path| !path.dead()));
        let best = alive.or(routes.first())?;
        path(best).map(|path| self.path_target(best.path, path))
    }

    fn path_target(&self, id: PathId, path: &Path) -> Target {
        if path.kind != RouteKind::Unicast || path.tos != 0 {
            return Target::Local;
        }
        match path.hops.as_slice() {
            [] => Target::Local,
            [way] => self.way_target(way),
            _ => Target::Ways(id),
        }
    }

    fn way_target(&self, way: &Way) -> Target {
        match (self.interfaces.get(&way.link).and_then(|interface| interface.vport), way.via) {
            (Some(vport), Some(via)) => Target::Station(vport, via),
            (Some(vport), None) => Target::Link(vport),
            (None, _) => Target::Local,
        }
    }

    /// The MAC address of a known neighbour.
    fn station(&self, vport: u16, address: Ipv4Addr) -> Option<(u32, Mac)> {
        let mut there = self.neighbours.range((address, 0)..=(address, u32::MAX));
        there.find_map(|((_, link), (mac, _))| {
            (self.interfaces.get(link)?.vport == Some(vport)).then_some((*link, *mac))
        })
    }

    /// What a row does now.
    fn adjacency(&self, target: Target) -> Adjacency {
        let port = |vport: u16| self.ports.get(usize::from(vport));
        match target {
            Target::Local => Adjacency::local(),
            Target::Link(vport) => port(vport).map_or(Adjacency::local(), |port| Adjacency::glean(port.port)),
            Target::Station(vport, address) => {
                let Some(port) = port(vport) else { return Adjacency::local() };
                match self.station(vport, address) {
                    Some((link, mac)) => {
                        Adjacency::forward(port.port, port.mac, mac, self.mtu_bytes(port, link))
                    }
                    None => Adjacency::glean(port.port),
                }
            }
            Target::Ways(path) => self.first_way(path),
        }
    }

    /// The longest packet that both the port and its interface take, bytes.
    fn mtu_bytes(&self, port: &RibPort, link: u32) -> u16 {
        let mtu = self.interfaces.get(&link).map_or(0, |interface| interface.link.mtu);
        u16::try_from(mtu)
            .ok()
            .filter(|mtu| *mtu >= MTU_BYTES_MIN)
            .map_or(port.mtu_bytes, |mtu| mtu.min(port.mtu_bytes))
    }

    /// Of many ways the first that forwards, else the first.
    fn first_way(&self, path: PathId) -> Adjacency {
        let ways = self.paths.get(path).map_or(&[] as &[Way], |path| &path.hops);
        let all_dead = ways.iter().all(|way| way.dead);
        let mut usable =
            ways.iter().filter(|way| !way.dead || all_dead).map(|way| self.adjacency(self.way_target(way)));
        let Some(first) = usable.next() else { return Adjacency::local() };
        let forwards = |way: &Adjacency| way.kind() == hue_planes::AdjacencyKind::Forward;
        if forwards(&first) { first } else { usable.find(forwards).unwrap_or(first) }
    }
}

fn vport_of(ports: &[RibPort], name: &str) -> Option<u16> {
    let at = ports.iter().position(|port| port.interface == name)?;
    u16::try_from(at).ok()
}

fn host(address: Ipv4Addr) -> Prefix4 {
    Prefix4::containing(address.to_bits(), 32)
}
