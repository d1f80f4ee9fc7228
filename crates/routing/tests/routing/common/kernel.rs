//! A minimal model of a kernel: links, addresses, neighbours and ordered routes, with its notifications and
//! listings. Also computes the table that a plane should have, in the simplest way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hue_demux::PortId;
use hue_host::netlink::{
    Address, AddressState, Link, Neighbour, NextHop as Way, Route, RouteKind, Scope, neighbour_state,
};
use hue_planes::Adjacency;
use hue_routing::{Change, Event, Family, Order, RibPort};
use hue_tables::Prefix;
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
        peer: None,
    };
    vec![port("v0", 5), port("v1", 3)]
}

pub fn link(index: u32, name: &str) -> Event {
    Event::Link(Change::Added, Box::new(a_link(index, name, 1500)))
}

fn a_link(index: u32, name: &str, mtu: u32) -> Link {
    Link { index, name: name.to_owned(), mtu, up: true, carrier: true, ..Link::default() }
}

/// An address family of the model.
pub trait Modelled: Family {
    /// An address whose last 32 bits are these. `range` is 0 for global addresses, 1 for link-local ones and 2 for
    /// multicast.
    fn near(range: u8, low: u32) -> Self;
    /// The prefix length that leaves as many bits as `len` leaves in IPv4; none for 0.
    fn len(len: u8) -> u8;
}

impl Modelled for u32 {
    fn near(_: u8, low: u32) -> Self {
        low
    }

    fn len(len: u8) -> u8 {
        len
    }
}

impl Modelled for u128 {
    fn near(range: u8, low: u32) -> Self {
        let start: u128 = match range {
            0 => 0x2001_0db8 << 96,
            1 => 0xfe80 << 112,
            _ => 0xff02 << 112,
        };
        start | u128::from(low)
    }

    fn len(len: u8) -> u8 {
        if len == 0 { 0 } else { 96 + len }
    }
}

/// The host 10.0.`c`.`d`, or its counterpart in IPv6.
pub fn host<K: Modelled>(c: u8, d: u8) -> K::Addr {
    K::near(0, u32::from_be_bytes([10, 0, c, d])).to_addr()
}

/// A route to a prefix of few or many addresses, via a gateway.
pub fn via<K: Modelled>(low: u32, len: u8, link: u32, via: K::Addr) -> Route {
    let way = Way { link, via: Some(via.into()), weight: 1, dead: false, onlink: false };
    let prefix = Prefix::containing(K::near(0, low), K::len(len));
    route(prefix, MAIN, RouteKind::Unicast, 0, 0, vec![way])
}

fn route<K: Family>(
    prefix: Prefix<K>,
    table: u32,
    kind: RouteKind,
    metric: u32,
    tos: u8,
    hops: Vec<Way>,
) -> Route {
    let (prefix, scope) = (prefix.into(), Scope::Universe);
    let (source, object) = (None, 0);
    Route { prefix, source, object, table, tos, metric, protocol: 4, scope, kind, hops, cloned: false }
}

/// `last` is the last byte of the MAC address; `None` means that the neighbour does not answer.
pub fn neighbour<A: Into<IpAddr>>(link: u32, address: A, last: Option<u8>) -> Neighbour {
    let state = if last.is_some() { neighbour_state::STALE } else { neighbour_state::FAILED };
    let mac = last.map(|last| Mac([2, 0, 0, 0, 9, last]));
    Neighbour { link, address: address.into(), mac, state, flags: 0, protocol: 0 }
}

/// A change in the kernel.
#[derive(Clone, Debug)]
pub enum Op<K: Family> {
    /// Add, append or replace a route.
    Route(Change, Route),
    /// Delete the route at this position, if any.
    Delete(usize),
    /// Delete it without a notification, as when a link goes down.
    Vanish(usize),
    /// Make its first next hop dead, or usable again, without a notification.
    Die(usize),
    Neighbour(u32, K::Addr, Option<u8>),
    NeighbourGone(u32, K::Addr),
    Address(u32, K::Addr, u8),
    AddressGone(u32, K::Addr, u8),
    Link(u32, String, u32),
    LinkGone(u32),
}

/// Few addresses, so that collisions occur: 10.0.0.0 to 10.0.3.3, with a last byte of 0 to 3. In IPv6, some of them
/// are link-local.
fn address<K: Modelled>() -> impl Strategy<Value = K::Addr> {
    let range = prop_oneof![5 => Just(0u8), 2 => Just(1)];
    (range, 0..4u8, 0..4u8)
        .prop_map(|(range, c, d)| K::near(range, u32::from_be_bytes([10, 0, c, d])).to_addr())
}

fn prefix<K: Modelled>() -> impl Strategy<Value = Prefix<K>> {
    let len = prop::sample::select(vec![0, 8, 16, 22, 23, 24, 30, 31, 32, 32]);
    let range = prop_oneof![16 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    (range, 0..4u8, 0..4u8, len).prop_map(|(range, c, d, len)| {
        Prefix::containing(K::near(range, u32::from_be_bytes([10, 0, c, d])), K::len(len))
    })
}

fn index() -> impl Strategy<Value = u32> {
    1..5u32
}

fn way<K: Modelled>() -> impl Strategy<Value = Way> {
    (index(), prop::option::of(address::<K>()), prop::bool::weighted(0.1)).prop_map(|(link, via, dead)| Way {
        link,
        via: via.map(Into::into),
        weight: 1,
        dead,
        onlink: false,
    })
}

fn ways<K: Modelled>() -> impl Strategy<Value = Vec<Way>> {
    prop_oneof![4 => prop::collection::vec(way::<K>(), 1..2), 1 => prop::collection::vec(way::<K>(), 2..4)]
}

fn a_route<K: Modelled>() -> impl Strategy<Value = Route> {
    use RouteKind::{Anycast, Blackhole, Broadcast, Local, Prohibit, Throw, Unreachable};
    let unicast = ways::<K>().prop_map(|ways| (MAIN, RouteKind::Unicast, ways));
    let other = prop::sample::select(vec![Unreachable, Prohibit, Blackhole, Throw])
        .prop_map(|kind| (MAIN, kind, Vec::new()));
    let own = match K::ORDER {
        Order::NewestFirst => vec![Local, Broadcast],
        Order::Siblings => vec![Local, Anycast],
    };
    let own = (prop::sample::select(own), index()).prop_map(|(kind, link)| {
        (LOCAL, kind, vec![Way { link, via: None, weight: 1, dead: false, onlink: false }])
    });
    let elsewhere = ways::<K>().prop_map(|ways| (77, RouteKind::Unicast, ways));
    let what = prop_oneof![8 => unicast, 1 => other, 2 => own, 1 => elsewhere];
    let some = prop_oneof![20 => Just(false), 1 => Just(true)];
    let object = prop::bool::weighted(0.3);
    (prefix::<K>(), 0..3u32, some, object, what).prop_map(
        |(prefix, metric, some, object, (table, kind, hops))| {
            let v6 = K::ORDER == Order::Siblings;
            let mut route = route(prefix, table, kind, metric, if some && !v6 { 8 } else { 0 }, hops);
            if some && v6 {
                route.source = Some(Box::new(Prefix::containing(K::near(0, 0), 64).into()));
            }
            // Only an object has next hops with and without gateways.
            let mixed = route.hops.len() > 1 && route.hops.iter().any(|hop| hop.via.is_none());
            route.object = u32::from(v6 && !route.hops.is_empty() && table != LOCAL && (object || mixed));
            route
        },
    )
}

pub fn op<K: Modelled>() -> impl Strategy<Value = Op<K>> {
    let last = prop::option::weighted(0.7, 1..4u8);
    let name = prop::sample::select(vec!["v0", "v1", "lo", "other"]);
    let mtu = prop::sample::select(vec![1500u32, 1500, 900, 1300, 9000, 60]);
    let how = prop::sample::select(vec![Change::Added, Change::Added, Change::Appended, Change::Replaced]);
    let len = || (24..31u8).prop_map(K::len);
    prop_oneof![
        8 => (how, a_route::<K>()).prop_map(|(change, route)| Op::Route(change, route)),
        4 => any::<usize>().prop_map(Op::Delete),
        1 => any::<usize>().prop_map(Op::Vanish),
        1 => any::<usize>().prop_map(Op::Die),
        5 => (index(), address::<K>(), last).prop_map(|(link, to, last)| Op::Neighbour(link, to, last)),
        2 => (index(), address::<K>()).prop_map(|(link, to)| Op::NeighbourGone(link, to)),
        1 => (index(), address::<K>(), len()).prop_map(|(link, own, len)| Op::Address(link, own, len)),
        1 => (index(), address::<K>(), len()).prop_map(|(link, own, len)| Op::AddressGone(link, own, len)),
        1 => (index(), name, mtu).prop_map(|(link, name, mtu)| Op::Link(link, name.to_owned(), mtu)),
        1 => index().prop_map(Op::LinkGone),
    ]
}

/// The position of a listing.
pub struct Cursor<K> {
    fixed: std::vec::IntoIter<Event>,
    prefix: Option<Prefix<K>>,
    at: usize,
}

#[derive(Debug)]
pub struct Kernel<K: Family> {
    links: BTreeMap<u32, Link>,
    addresses: BTreeSet<(u32, K::Addr, u8)>,
    neighbours: BTreeMap<(K::Addr, u32), Neighbour>,
    /// By prefix, in the kernel's order. Each of [siblings](Order::Siblings) is a route of its own.
    routes: BTreeMap<Prefix<K>, Vec<Route>>,
}

impl<K: Modelled> Kernel<K> {
    pub fn new() -> Self {
        let names = [(1, "lo"), (2, "v0"), (3, "v1"), (4, "other")];
        let links = names.map(|(index, name)| (index, a_link(index, name, 1500)));
        Self {
            links: links.into(),
            addresses: BTreeSet::new(),
            neighbours: BTreeMap::new(),
            routes: BTreeMap::new(),
        }
    }

    /// Makes a change. Returns its notifications, and whether anything changed without a notification.
    pub fn change(&mut self, op: &Op<K>) -> (Vec<Event>, bool) {
        match op {
            Op::Route(change, route) => (self.set(*change, route), false),
            Op::Delete(at) => {
                // `ip -6 route del PREFIX` removes all siblings with one notification.
                let together = at & 4 != 0;
                let gone = self.pick(*at, |routes, at| {
                    let gone = routes.remove(at);
                    if !(together && is_sibling::<K>(&gone)) {
                        return gone;
                    }
                    let mut all = vec![gone.clone()];
                    all.extend(routes.extract_if(.., |other| are_siblings::<K>(other, &gone)));
                    combined(&all)
                });
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

    fn set(&mut self, change: Change, route: &Route) -> Vec<Event> {
        match K::ORDER {
            Order::NewestFirst => self.set_newest_first(change, route),
            Order::Siblings => self.set_siblings(change, route),
        }
    }

    /// As `fib6_add_rt2node` of Linux for each next hop, and one notification as by `ip6_route_multipath_add`.
    fn set_siblings(&mut self, change: Change, route: &Route) -> Vec<Event> {
        let list = self.routes.entry(route.prefix.of().unwrap()).or_default();
        let parts: Vec<Route> = if is_sibling::<K>(route) {
            route.hops.iter().map(|hop| Route { hops: vec![*hop], ..route.clone() }).collect()
        } else {
            vec![route.clone()]
        };
        let repeated =
            (1..parts.len()).any(|at| parts[..at].iter().any(|part| alive(part) == alive(&parts[at])));
        let equal = |other: &Route| equal_key(other) == equal_key(route);
        let alike = |other: &Route| equal(other) && is_sibling::<K>(other) == is_sibling::<K>(route);
        let replaced = list.iter().position(alike).or_else(|| list.iter().position(equal));
        let replaced = replaced.filter(|_| change == Change::Replaced);
        let stays = |at: usize, other: &Route| match replaced {
            Some(replaced) => at != replaced && !are_siblings::<K>(other, &list[replaced]),
            None => true,
        };
        let known = |part: &Route| {
            list.iter().enumerate().any(|(at, other)| stays(at, other) && alive(other) == alive(part))
        };
        if repeated || parts.iter().any(known) {
            return Vec::new(); // EEXIST
        }
        let first = parts[0].clone();
        let mut parts = parts.into_iter();
        if let Some(at) = replaced {
            let old = std::mem::replace(&mut list[at], parts.next().unwrap());
            let mut index = 0;
            list.retain(|other| {
                index += 1;
                index - 1 == at || !are_siblings::<K>(other, &old)
            });
        }
        for part in parts {
            let end = list.iter().rposition(|other| order(other) <= order(&part)).map_or(0, |at| at + 1);
            list.insert(end, part);
        }
        let change = if replaced.is_none() && change == Change::Replaced && route.hops.len() < 2 {
            Change::Added
        } else {
            change
        };
        let mut told: Vec<Route> =
            list.iter().filter(|other| are_siblings::<K>(other, &first)).cloned().collect();
        if told.is_empty() {
            told.push(first);
        } else if change != Change::Appended {
            // The kernel begins with the new one, and continues around the ring.
            let start = told.iter().position(|other| *other == first).unwrap();
            told.rotate_left(start);
        }
        vec![Event::Route(change, combined(&told))]
    }

    /// As `fib_table_insert` of Linux.
    fn set_newest_first(&mut self, change: Change, route: &Route) -> Vec<Event> {
        let list = self.routes.entry(route.prefix.of().unwrap()).or_default();
        let key = order;
        let equal: Vec<usize> = (0..list.len()).filter(|at| key(&list[*at]) == key(route)).collect();
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

    /// The start of a listing. Links, addresses, neighbours and the routes of other tables are copied at once.
    pub fn cursor(&self) -> Cursor<K> {
        let links = self.links.values().map(|link| Event::Link(Change::Listed, Box::new(link.clone())));
        let addresses = self
            .addresses
            .iter()
            .map(|(link, address, len)| Event::Address(Change::Listed, an_address(*link, *address, *len)));
        let neighbours = self.neighbours.values().map(|at| Event::Neighbour(Change::Listed, *at));
        let elsewhere = self.routes.values().flatten().filter(|route| !is_looked_up(route));
        let elsewhere = elsewhere.map(|route| Event::Route(Change::Listed, route.clone()));
        let fixed: Vec<Event> = links.chain(addresses).chain(neighbours).chain(elsewhere).collect();
        Cursor { fixed: fixed.into_iter(), prefix: None, at: 0 }
    }

    /// The next item. As Linux does: by prefix, then by position among the routes of the prefix. Linux lists each table
    /// by itself, so a change of another table does not move the position in this one.
    pub fn list(&self, cursor: &mut Cursor<K>) -> Option<Event> {
        if let Some(event) = cursor.fixed.next() {
            // Linux reads these under the same lock as changes: an outdated item is not listed.
            return self.still(event).or_else(|| self.list(cursor));
        }
        loop {
            let from = cursor.prefix.unwrap_or(Prefix::containing(K::default(), 0));
            let (prefix, routes) = self.routes.range(from..).next()?;
            if cursor.prefix != Some(*prefix) {
                cursor.prefix = Some(*prefix);
                cursor.at = 0;
            }
            let own: Vec<Route> = routes.iter().filter(|route| is_looked_up(route)).cloned().collect();
            if let Some(route) = together::<K>(&own).get(cursor.at) {
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
                .contains(&(address.link, key::<K>(address.address), address.len))
                .then_some(Event::Address(Change::Listed, address)),
            Event::Neighbour(_, at) => Some(Event::Neighbour(
                Change::Listed,
                *self.neighbours.get(&(key::<K>(at.address), at.link))?,
            )),
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

    pub fn neighbours(&self) -> Vec<(u16, K::Addr, Mac)> {
        let known = self
            .neighbours
            .iter()
            .filter_map(|((address, link), at)| Some((self.vport(*link)?, *address, at.mac?)));
        known.collect()
    }

    pub fn addresses(&self) -> Vec<(u16, K::Addr, u8)> {
        let own = self.addresses.iter().filter_map(|(link, own, len)| Some((self.vport(*link)?, *own, *len)));
        own.collect()
    }

    /// The table by the rules, computed in the simplest way.
    pub fn table(&self) -> BTreeMap<Prefix<K>, Vec<Adjacency>> {
        let mut table: BTreeMap<Prefix<K>, Means> =
            self.routes.iter().filter_map(|(prefix, routes)| Some((*prefix, self.means(routes)?))).collect();
        // The plane decides these without a route.
        let decided = |key: K| {
            let bits = key.to_bits();
            K::BITS == 128 && (bits >> 120 == 0xff || bits >> 118 == 0xfe80 >> 6)
        };
        table.retain(|prefix, _| !(decided(prefix.addr()) && prefix.len() >= 10));
        let mut found = Vec::new();
        for (vport, address, mac) in self.neighbours() {
            let longest = table.iter().filter(|(prefix, _)| prefix.contains(K::from_addr(address)));
            let longest = longest.max_by_key(|(prefix, _)| prefix.len()).map(|(_, means)| means);
            let link = matches!(longest, Some(Means::Link(on)) if *on == vport);
            if link && !decided(K::from_addr(address)) {
                found.push((Prefix::containing(K::from_addr(address), K::BITS), vport, mac, address));
            }
        }
        for (prefix, vport, _, address) in found {
            let link =
                self.neighbours.keys().find(|(to, link)| *to == address && self.vport(*link) == Some(vport));
            table.insert(prefix, Means::Does(vec![self.forward(vport, address, link.unwrap().1)]));
        }
        let does = |means: &Means| match means {
            Means::Link(vport) => vec![Adjacency::glean(ports()[usize::from(*vport)].port)],
            Means::Does(adjacencies) => sorted(adjacencies.clone()),
        };
        table.iter().map(|(prefix, means)| (*prefix, does(means))).collect()
    }

    fn forward(&self, vport: u16, address: K::Addr, link: u32) -> Adjacency {
        let port = &ports()[usize::from(vport)];
        let mtu = self.links[&link].mtu.min(u32::from(port.mtu_bytes)) as u16;
        let mtu = if mtu < if K::BITS == 32 { 68 } else { 1280 } { port.mtu_bytes } else { mtu };
        Adjacency::forward(port.port, port.mac, self.neighbours[&(address, link)].mac.unwrap(), mtu)
    }

    fn means(&self, routes: &[Route]) -> Option<Means> {
        let routes = together::<K>(routes);
        let routes: Vec<&Route> = routes.iter().filter(|route| is_looked_up(route)).collect();
        if routes.iter().any(|route| route.tos != 0 || route.source.is_some()) {
            return Some(Means::Does(vec![Adjacency::local()]));
        }
        let dead = |route: &&&Route| !route.hops.is_empty() && route.hops.iter().all(|way| way.dead);
        let route =
            routes.iter().find(|route| route.kind != RouteKind::Unicast || !dead(route)).or(routes.first())?;
        if route.kind != RouteKind::Unicast || route.hops.is_empty() {
            return Some(Means::Does(vec![Adjacency::local()]));
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
        let is_forward = |does: &&Adjacency| does.kind() == hue_planes::AdjacencyKind::Forward;
        let forward: Vec<Adjacency> = does.iter().filter(is_forward).copied().collect();
        Some(Means::Does(if forward.is_empty() { vec![*does.first()?] } else { forward }))
    }

    fn way(&self, way: &Way) -> Adjacency {
        let Some(vport) = self.vport(way.link) else { return Adjacency::local() };
        let known = way.via.map(key::<K>);
        let known =
            known.filter(|via| self.neighbours.get(&(*via, way.link)).is_some_and(|at| at.mac.is_some()));
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
    /// One of these.
    Does(Vec<Adjacency>),
}

/// Different actions in a fixed order.
pub fn sorted(mut all: Vec<Adjacency>) -> Vec<Adjacency> {
    all.sort_by_key(ToString::to_string);
    all.dedup();
    all
}

fn an_address<A: Into<IpAddr>>(link: u32, address: A, len: u8) -> Address {
    let address = address.into();
    Address { link, address, len, peer: address, broadcast: None, protocol: 0, state: AddressState::Usable }
}

fn key<K: Family>(address: IpAddr) -> K::Addr {
    K::from_ip(address).unwrap().to_addr()
}

/// Whether a route is in a table that a namespace without policy rules looks up.
fn is_looked_up(route: &Route) -> bool {
    [MAIN, LOCAL].contains(&route.table)
}

/// The kernel's order of the routes of a prefix.
fn order(route: &Route) -> (bool, bool, u8, u32) {
    (route.table != LOCAL, route.table != MAIN, u8::MAX - route.tos, route.metric)
}

/// Routes with equal keys can be siblings, and replace each other.
fn equal_key(route: &Route) -> (u32, u32, bool) {
    (route.table, route.metric, route.source.is_some())
}

fn is_sibling<K: Family>(route: &Route) -> bool {
    K::ORDER == Order::Siblings
        && route.kind == RouteKind::Unicast
        && route.object == 0
        && !route.hops.is_empty()
        && route.hops.iter().all(|hop| hop.via.is_some())
}

fn are_siblings<K: Family>(one: &Route, other: &Route) -> bool {
    is_sibling::<K>(one) && is_sibling::<K>(other) && equal_key(one) == equal_key(other)
}

/// The message about siblings.
fn combined(siblings: &[Route]) -> Route {
    let hops = siblings.iter().flat_map(|one| one.hops.clone()).collect();
    Route { hops, ..siblings[0].clone() }
}

/// The routes of a prefix as the kernel lists them: siblings at the place of the first one.
fn together<K: Family>(routes: &[Route]) -> Vec<Route> {
    let mut listed: Vec<Route> = Vec::new();
    for route in routes {
        match listed.iter_mut().find(|other| are_siblings::<K>(other, route)) {
            Some(first) => first.hops.extend_from_slice(&route.hops),
            None => listed.push(route.clone()),
        }
    }
    listed
}

fn alive(route: &Route) -> Route {
    let mut route = route.clone();
    route.hops.iter_mut().for_each(|way| way.dead = false);
    route
}

fn die(route: &mut Route) -> bool {
    let Some(way) = route.hops.first_mut() else { return false };
    way.dead = !way.dead;
    true
}
