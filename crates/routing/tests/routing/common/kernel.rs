//! A minimal model of a kernel: links, addresses, neighbours and ordered routes, with its notifications and
//! listings. Also computes the table that a plane should have, in the simplest way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hue_demux::PortId;
use hue_host::netlink::{Address, Link, Neighbour, NextHop as Way, Route, RouteKind, Scope, neighbour_state};
use hue_planes::Adjacency;
use hue_routing::{Change, Event, RibPort};
use hue_tables::Prefix4;
use hue_wire::Mac;
use proptest::prelude::*;

const MAIN: u32 = 254;
const LOCAL: u32 = 255;

pub fn ports() -> Vec<RibPort> {
    let port = |interface: &str, port: u8| RibPort {
        interface: interface.to_owned(),
        port: PortId::new(port),
        mac: Mac([2, 0, 0, 0, 1, port]),
        mtu_bytes: 1500,
    };
    vec![port("v0", 5), port("v1", 3)]
}

pub fn link(index: u32, name: &str) -> Event {
    Event::Link(Change::Added, Box::new(a_link(index, name, 1500)))
}

fn a_link(index: u32, name: &str, mtu: u32) -> Link {
    Link { index, name: name.to_owned(), mtu, up: true, carrier: true, ..Link::default() }
}

pub fn via(address: u32, len: u8, link: u32, via: Ipv4Addr) -> Route {
    let way = Way { link, via: Some(via), weight: 1, dead: false, onlink: false };
    route(Prefix4::containing(address, len), MAIN, RouteKind::Unicast, 0, 0, vec![way])
}

fn route(prefix: Prefix4, table: u32, kind: RouteKind, metric: u32, tos: u8, hops: Vec<Way>) -> Route {
    let scope = Scope::Universe;
    Route { prefix, table, tos, metric, protocol: 4, scope, kind, hops, cloned: false }
}

/// `last` is the last byte of the MAC address; `None` means that the neighbour does not answer.
pub fn neighbour(link: u32, address: Ipv4Addr, last: Option<u8>) -> Neighbour {
    let state = if last.is_some() { neighbour_state::STALE } else { neighbour_state::FAILED };
    let mac = last.map(|last| Mac([2, 0, 0, 0, 9, last]));
    Neighbour { link, address, mac, state, flags: 0, protocol: 0 }
}

/// A change in the kernel.
#[derive(Clone, Debug)]
pub enum Op {
    /// Add, append or replace a route.
    Route(Change, Route),
    /// Delete the route at this position, if any.
    Delete(usize),
    /// Delete it without a notification, as when a link goes down.
    Vanish(usize),
    /// Make its first next hop dead, or usable again, without a notification.
    Die(usize),
    Neighbour(u32, Ipv4Addr, Option<u8>),
    NeighbourGone(u32, Ipv4Addr),
    Address(u32, Ipv4Addr, u8),
    AddressGone(u32, Ipv4Addr, u8),
    Link(u32, String, u32),
    LinkGone(u32),
}

/// Few addresses, so that collisions occur: 10.0.0.0 to 10.0.3.3, with a last byte of 0 to 3.
fn address() -> impl Strategy<Value = Ipv4Addr> {
    (0..4u8, 0..4u8).prop_map(|(c, d)| Ipv4Addr::new(10, 0, c, d))
}

fn prefix() -> impl Strategy<Value = Prefix4> {
    let len = prop::sample::select(vec![0, 8, 16, 22, 23, 24, 30, 31, 32, 32]);
    (address(), len).prop_map(|(address, len)| Prefix4::containing(address.to_bits(), len))
}

fn index() -> impl Strategy<Value = u32> {
    1..5u32
}

fn way() -> impl Strategy<Value = Way> {
    (index(), prop::option::of(address()), prop::bool::weighted(0.1)).prop_map(|(link, via, dead)| Way {
        link,
        via,
        weight: 1,
        dead,
        onlink: false,
    })
}

fn ways() -> impl Strategy<Value = Vec<Way>> {
    prop_oneof![4 => prop::collection::vec(way(), 1..2), 1 => prop::collection::vec(way(), 2..4)]
}

fn a_route() -> impl Strategy<Value = Route> {
    use RouteKind::{Blackhole, Broadcast, Local, Prohibit, Throw, Unreachable};
    let unicast = ways().prop_map(|ways| (MAIN, RouteKind::Unicast, ways));
    let other = prop::sample::select(vec![Unreachable, Prohibit, Blackhole, Throw])
        .prop_map(|kind| (MAIN, kind, Vec::new()));
    let own = (prop::sample::select(vec![Local, Broadcast]), index()).prop_map(|(kind, link)| {
        (LOCAL, kind, vec![Way { link, via: None, weight: 1, dead: false, onlink: false }])
    });
    let elsewhere = ways().prop_map(|ways| (77, RouteKind::Unicast, ways));
    let what = prop_oneof![8 => unicast, 1 => other, 2 => own, 1 => elsewhere];
    let tos = prop_oneof![20 => Just(0u8), 1 => Just(8u8)];
    (prefix(), 0..3u32, tos, what)
        .prop_map(|(prefix, metric, tos, (table, kind, hops))| route(prefix, table, kind, metric, tos, hops))
}

pub fn op() -> impl Strategy<Value = Op> {
    let last = prop::option::weighted(0.7, 1..4u8);
    let name = prop::sample::select(vec!["v0", "v1", "lo", "other"]);
    let mtu = prop::sample::select(vec![1500u32, 1500, 900, 9000, 60]);
    let how = prop::sample::select(vec![Change::Added, Change::Added, Change::Appended, Change::Replaced]);
    prop_oneof![
        8 => (how, a_route()).prop_map(|(change, route)| Op::Route(change, route)),
        4 => any::<usize>().prop_map(Op::Delete),
        1 => any::<usize>().prop_map(Op::Vanish),
        1 => any::<usize>().prop_map(Op::Die),
        5 => (index(), address(), last).prop_map(|(link, to, last)| Op::Neighbour(link, to, last)),
        2 => (index(), address()).prop_map(|(link, to)| Op::NeighbourGone(link, to)),
        1 => (index(), address(), 24..31u8).prop_map(|(link, own, len)| Op::Address(link, own, len)),
        1 => (index(), address(), 24..31u8).prop_map(|(link, own, len)| Op::AddressGone(link, own, len)),
        1 => (index(), name, mtu).prop_map(|(link, name, mtu)| Op::Link(link, name.to_owned(), mtu)),
        1 => index().prop_map(Op::LinkGone),
    ]
}

/// The position of a listing.
pub struct Cursor {
    fixed: std::vec::IntoIter<Event>,
    prefix: Option<Prefix4>,
    at: usize,
}

#[derive(Debug, Default)]
pub struct Kernel {
    links: BTreeMap<u32, Link>,
    addresses: BTreeSet<(u32, Ipv4Addr, u8)>,
    neighbours: BTreeMap<(Ipv4Addr, u32), Neighbour>,
    /// By prefix, in the kernel's order.
    routes: BTreeMap<Prefix4, Vec<Route>>,
}

impl Kernel {
    pub fn new() -> Self {
        let names = [(1, "lo"), (2, "v0"), (3, "v1"), (4, "other")];
        let links = names.map(|(index, name)| (index, a_link(index, name, 1500)));
        Self { links: links.into(), ..Self::default() }
    }

    /// Makes a change. Returns its notifications, and whether anything changed without a notification.
    pub fn change(&mut self, op: &Op) -> (Vec<Event>, bool) {
        match op {
            Op::Route(change, route) => (self.set(*change, route), false),
            Op::Delete(at) => {
                let gone = self.pick(*at, |routes, at| routes.remove(at));
                (gone.map(|route| Event::Route(Change::Removed, route)).into_iter().collect(), false)
            }
            Op::Vanish(at) => (Vec::new(), self.pick(*at, |routes, at| routes.remove(at)).is_some()),
            Op::Die(at) => (Vec::new(), self.pick(*at, |routes, at| die(&mut routes[at])).unwrap_or(false)),
            Op::Neighbour(link, address, last) => {
                let neighbour = neighbour(*link, *address, *last);
                self.neighbours.insert((*address, *link), neighbour);
                (vec![Event::Neighbour(Change::Added, neighbour)], false)
            }
            Op::NeighbourGone(link, address) => {
                let gone = self.neighbours.remove(&(*address, *link));
                (gone.map(|gone| Event::Neighbour(Change::Removed, gone)).into_iter().collect(), false)
            }
            Op::Address(link, address, len) => {
                self.addresses.insert((*link, *address, *len));
                (vec![Event::Address(Change::Added, an_address(*link, *address, *len))], false)
            }
            Op::AddressGone(link, address, len) => {
                let there = self.addresses.remove(&(*link, *address, *len));
                let gone = there.then(|| Event::Address(Change::Removed, an_address(*link, *address, *len)));
                (gone.into_iter().collect(), false)
            }
            Op::Link(index, name, mtu) => {
                // Names are unique.
                if self.links.values().any(|link| link.name == *name && link.index != *index) {
                    return (Vec::new(), false);
                }
                let link = a_link(*index, name, *mtu);
                self.links.insert(*index, link.clone());
                (vec![Event::Link(Change::Added, Box::new(link))], false)
            }
            Op::LinkGone(index) => {
                let gone = self.links.remove(index);
                (gone.map(|gone| Event::Link(Change::Removed, Box::new(gone))).into_iter().collect(), false)
            }
        }
    }

    /// As `fib_table_insert` of Linux.
    fn set(&mut self, change: Change, route: &Route) -> Vec<Event> {
        let list = self.routes.entry(route.prefix).or_default();
        let key =
            |route: &Route| (route.table != LOCAL, route.table != MAIN, u8::MAX - route.tos, route.metric);
        let equal: Vec<usize> = (0..list.len()).filter(|at| key(&list[*at]) == key(route)).collect();
        let alive = |route: &Route| {
            let mut route = route.clone();
            route.hops.iter_mut().for_each(|way| way.dead = false);
            route
        };
        if list.iter().any(|other| alive(other) == alive(route)) {
            return Vec::new(); // EEXIST
        }
        let place = list.iter().position(|other| key(other) >= key(route)).unwrap_or(list.len());
        match (change, equal.first(), equal.last()) {
            (Change::Replaced, Some(first), _) => list[*first] = route.clone(),
            (Change::Appended, _, Some(last)) => list.insert(last + 1, route.clone()),
            _ => list.insert(place, route.clone()),
        }
        vec![Event::Route(change, route.clone())]
    }

    fn pick<T>(&mut self, at: usize, work: impl FnOnce(&mut Vec<Route>, usize) -> T) -> Option<T> {
        let count: usize = self.routes.values().map(Vec::len).sum();
        let mut at = at.checked_rem(count)?;
        for routes in self.routes.values_mut() {
            if at < routes.len() {
                return Some(work(routes, at));
            }
            at -= routes.len();
        }
        None
    }

    /// The start of a listing. Links, addresses and neighbours are copied at once.
    pub fn cursor(&self) -> Cursor {
        let links = self.links.values().map(|link| Event::Link(Change::Listed, Box::new(link.clone())));
        let addresses = self
            .addresses
            .iter()
            .map(|(link, address, len)| Event::Address(Change::Listed, an_address(*link, *address, *len)));
        let neighbours = self.neighbours.values().map(|at| Event::Neighbour(Change::Listed, *at));
        let fixed: Vec<Event> = links.chain(addresses).chain(neighbours).collect();
        Cursor { fixed: fixed.into_iter(), prefix: None, at: 0 }
    }

    /// The next item. As Linux does: by prefix, then by position among the routes of the prefix.
    pub fn list(&self, cursor: &mut Cursor) -> Option<Event> {
        if let Some(event) = cursor.fixed.next() {
            // Linux reads these under the same lock as changes: an outdated item is not listed.
            return self.still(event).or_else(|| self.list(cursor));
        }
        loop {
            let from = cursor.prefix.unwrap_or(Prefix4::containing(0, 0));
            let (prefix, routes) = self.routes.range(from..).next()?;
            if cursor.prefix != Some(*prefix) {
                cursor.prefix = Some(*prefix);
                cursor.at = 0;
            }
            if let Some(route) = routes.get(cursor.at) {
                cursor.at += 1;
                return Some(Event::Route(Change::Listed, route.clone()));
            }
            let (next, _) = self.routes.range(from..).find(|(next, _)| *next > prefix)?;
            cursor.prefix = Some(*next);
            cursor.at = 0;
        }
    }

    fn still(&self, event: Event) -> Option<Event> {
        match event {
            Event::Link(_, link) => {
                let link = self.links.get(&link.index)?.clone();
                Some(Event::Link(Change::Listed, Box::new(link)))
            }
            Event::Address(_, address) => self
                .addresses
                .contains(&(address.link, address.address, address.len))
                .then_some(Event::Address(Change::Listed, address)),
            Event::Neighbour(_, at) => {
                Some(Event::Neighbour(Change::Listed, *self.neighbours.get(&(at.address, at.link))?))
            }
            event => Some(event),
        }
    }

    fn vport(&self, link: u32) -> Option<u16> {
        match self.links.get(&link)?.name.as_str() {
            "v0" => Some(0),
            "v1" => Some(1),
            _ => None,
        }
    }

    pub fn neighbours(&self) -> Vec<(u16, Ipv4Addr, Mac)> {
        let known =
            self.neighbours.values().filter_map(|at| Some((self.vport(at.link)?, at.address, at.mac?)));
        known.collect()
    }

    pub fn addresses(&self) -> Vec<(u16, Ipv4Addr, u8)> {
        let own = self.addresses.iter().filter_map(|(link, own, len)| Some((self.vport(*link)?, *own, *len)));
        own.collect()
    }

    /// The table by the rules, computed in the simplest way.
    pub fn table(&self) -> BTreeMap<Prefix4, Adjacency> {
        let mut table: BTreeMap<Prefix4, Means> =
            self.routes.iter().filter_map(|(prefix, routes)| Some((*prefix, self.means(routes)?))).collect();
        let mut found = Vec::new();
        for (vport, address, mac) in self.neighbours() {
            let longest = table.iter().filter(|(prefix, _)| prefix.contains(address.to_bits()));
            let longest = longest.max_by_key(|(prefix, _)| prefix.len()).map(|(_, means)| means);
            let link = matches!(longest, Some(Means::Link(on)) if *on == vport);
            if link {
                found.push((Prefix4::containing(address.to_bits(), 32), vport, mac, address));
            }
        }
        for (prefix, vport, _, address) in found {
            let link =
                self.neighbours.keys().find(|(to, link)| *to == address && self.vport(*link) == Some(vport));
            table.insert(prefix, Means::Does(self.forward(vport, address, link.unwrap().1)));
        }
        let does = |means: &Means| match means {
            Means::Link(vport) => Adjacency::glean(ports()[usize::from(*vport)].port),
            Means::Does(adjacency) => *adjacency,
        };
        table.iter().map(|(prefix, means)| (*prefix, does(means))).collect()
    }

    fn forward(&self, vport: u16, address: Ipv4Addr, link: u32) -> Adjacency {
        let port = &ports()[usize::from(vport)];
        let mtu = self.links[&link].mtu.min(u32::from(port.mtu_bytes)) as u16;
        let mtu = if mtu < 68 { port.mtu_bytes } else { mtu };
        Adjacency::forward(port.port, port.mac, self.neighbours[&(address, link)].mac.unwrap(), mtu)
    }

    fn means(&self, routes: &[Route]) -> Option<Means> {
        let routes: Vec<&Route> =
            routes.iter().filter(|route| [MAIN, LOCAL].contains(&route.table)).collect();
        if routes.iter().any(|route| route.tos != 0) {
            return Some(Means::Does(Adjacency::local()));
        }
        let dead = |route: &&&Route| !route.hops.is_empty() && route.hops.iter().all(|way| way.dead);
        let route =
            routes.iter().find(|route| route.kind != RouteKind::Unicast || !dead(route)).or(routes.first())?;
        if route.kind != RouteKind::Unicast || route.hops.is_empty() {
            return Some(Means::Does(Adjacency::local()));
        }
        let mut ways: Vec<&Way> = route.hops.iter().filter(|way| !way.dead).collect();
        if ways.is_empty() {
            ways = route.hops.iter().collect();
        }
        if let [way] = route.hops.as_slice()
            && let (Some(vport), None) = (self.vport(way.link), way.via)
        {
            return Some(Means::Link(vport));
        }
        let does: Vec<Adjacency> = ways.iter().map(|way| self.way(way)).collect();
        let forward = does.iter().find(|does| does.kind() == hue_planes::AdjacencyKind::Forward);
        forward.or(does.first()).map(|does| Means::Does(*does))
    }

    fn way(&self, way: &Way) -> Adjacency {
        let Some(vport) = self.vport(way.link) else { return Adjacency::local() };
        let known =
            way.via.filter(|via| self.neighbours.get(&(*via, way.link)).is_some_and(|at| at.mac.is_some()));
        match known {
            Some(via) => self.forward(vport, via, way.link),
            None => Adjacency::glean(ports()[usize::from(vport)].port),
        }
    }
}

/// The meaning of a route.
enum Means {
    /// The link of a virtual port.
    Link(u16),
    Does(Adjacency),
}

fn an_address(link: u32, address: Ipv4Addr, len: u8) -> Address {
    Address { link, address, len, peer: address, broadcast: None, protocol: 0 }
}

fn die(route: &mut Route) -> bool {
    let Some(way) = route.hops.first_mut() else { return false };
    way.dead = !way.dead;
    true
}
