//! Queries of a routing information base: routes with names, neighbours, addresses, counts.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Bound;

use hue_host::netlink::{AddressState, RouteKind, protocol};
use hue_planes::Adjacency;
use hue_planes::group::Slots;
use hue_tables::{AnyPrefix, NextHop, Prefix};
use hue_wire::Mac;

use super::rows::Target;
use super::{Entry, Kept, Rib};
use crate::family::Family;

/// One next hop of a kernel route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteWay {
    /// Name of the interface in the namespace; empty if there is none.
    pub interface: String,
    /// The gateway; `None` if destinations are on the link.
    pub via: Option<IpAddr>,
    /// Its part of the flows, relative to the others.
    pub weight: u16,
    /// Whether it is unusable now.
    pub dead: bool,
}

/// A route in the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteRow {
    /// Destination.
    pub prefix: AnyPrefix,
    /// Origin: `kernel`, `static`, `ospf`, `bgp`, `bird`, `hueplane`, …, or `neighbour`.
    pub protocol: String,
    /// How the kernel treats matching packets.
    pub kind: RouteKind,
    /// Priority: the lowest metric of a prefix wins.
    pub metric: u32,
    /// Next hops.
    pub ways: Vec<RouteWay>,
    /// Row of the next-hop table, as published.
    pub hop: NextHop,
    /// Action of the row.
    pub adjacency: Adjacency,
}

/// Sizes of a network's routing information base.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Published prefixes.
    pub routes: usize,
    /// Different paths of the kernel's routes.
    pub paths: usize,
    /// Next-hop rows, including free ones.
    pub rows: usize,
    /// Slots of groups of next hops.
    pub slots: usize,
    /// Known neighbours.
    pub neighbours: usize,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            routes: self.routes + other.routes,
            paths: self.paths + other.paths,
            rows: self.rows + other.rows,
            slots: self.slots + other.slots,
            neighbours: self.neighbours + other.neighbours,
        }
    }
}

impl<K: Family> Rib<K> {
    /// The published routes, sorted by prefix; only those after `after`, if given.
    pub fn routes(&self, after: Option<Prefix<K>>) -> impl Iterator<Item = RouteRow> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.table
            .range((from, Bound::Unbounded))
            .filter_map(|(prefix, entry)| self.route_row(*prefix, entry))
    }

    /// The published route for exactly this prefix.
    #[must_use]
    pub fn route(&self, prefix: Prefix<K>) -> Option<RouteRow> {
        self.route_row(prefix, self.table.get(&prefix)?)
    }

    /// The published row for exactly this prefix.
    #[must_use]
    pub fn published_hop(&self, prefix: Prefix<K>) -> Option<NextHop> {
        self.table.get(&prefix).and_then(|entry| NextHop::new(entry.sent))
    }

    fn route_row(&self, prefix: Prefix<K>, entry: &Entry) -> Option<RouteRow> {
        let hop = NextHop::new(entry.sent)?;
        let adjacency = self.rows.get(entry.sent)?;
        let path = |kept: &Kept| self.paths.get(kept.path);
        let routes = entry.routes.list();
        let alive = routes.iter().find(|kept| path(kept).is_some_and(|path| !path.dead()));
        let Some((kept, path)) = alive.or(routes.first()).and_then(|kept| Some((kept, path(kept)?))) else {
            return Some(RouteRow {
                prefix: prefix.into(),
                protocol: "neighbour".to_owned(),
                kind: RouteKind::Unicast,
                metric: 0,
                ways: Vec::new(),
                hop,
                adjacency,
            });
        };
        let name =
            |link: u32| self.interfaces.get(&link).map_or("", |interface| interface.link.name.as_str());
        let ways = path.hops.iter().map(|way| RouteWay {
            interface: name(way.link).to_owned(),
            via: way.via,
            weight: way.weight,
            dead: way.dead,
        });
        Some(RouteRow {
            prefix: prefix.into(),
            protocol: protocol::name(path.protocol),
            kind: path.kind,
            metric: kept.metric,
            ways: ways.collect(),
            hop,
            adjacency,
        })
    }

    /// Everything published: all rows, and the routes sorted by prefix. A plane can be rebuilt from it.
    #[must_use]
    pub fn published(&self) -> (Vec<Adjacency>, Vec<(Prefix<K>, NextHop)>) {
        let routes =
            self.table.iter().filter_map(|(prefix, entry)| Some((*prefix, NextHop::new(entry.sent)?)));
        (self.published_rows(), routes.collect())
    }

    /// The published groups, by row.
    #[must_use]
    pub fn published_groups(&self) -> Vec<(NextHop, Slots)> {
        self.rows.sent_groups().map(|(row, slots)| (row, slots.clone())).collect()
    }

    /// All published rows.
    #[must_use]
    pub fn published_rows(&self) -> Vec<Adjacency> {
        self.rows.sent().collect()
    }

    /// Known neighbours on virtual ports: index of the port, address, MAC address.
    pub fn neighbours(&self) -> impl Iterator<Item = (u16, K::Addr, Mac)> + '_ {
        self.neighbours.iter().filter_map(|((address, link), (mac, _))| {
            let vport = self.interfaces.get(link)?.vport.filter(|vport| !self.has_peer(*vport))?;
            Some((vport, *address, *mac))
        })
    }

    /// Usable addresses of virtual ports: index of the port, address, prefix length of the link.
    pub fn addresses(&self) -> impl Iterator<Item = (u16, K::Addr, u8)> + '_ {
        let usable = self.addresses.iter().filter(|(_, (state, _))| *state == AddressState::Usable);
        usable
            .filter_map(|((link, address, len), _)| Some((self.interfaces.get(link)?.vport?, *address, *len)))
    }

    /// Gateways of routes whose MAC address is unknown, so that `Monitor::probe` can resolve them. Index of
    /// the port, and address.
    #[must_use]
    pub fn unresolved(&self) -> Vec<(u16, K::Addr)> {
        let mut stations = BTreeSet::new();
        for target in self.rows.targets() {
            match target {
                Target::Neighbour(vport, address) => drop(stations.insert((vport, address))),
                Target::Ways(path) => {
                    let ways = self.paths.get(path).into_iter().flat_map(|path| &path.hops);
                    stations.extend(ways.filter_map(|way| match self.way_target(way) {
                        Target::Neighbour(vport, address) => Some((vport, address)),
                        _ => None,
                    }));
                }
                Target::Local | Target::Link(_) => {}
            }
        }
        stations
            .retain(|(vport, address)| !self.has_peer(*vport) && self.station(*vport, *address).is_none());
        stations.into_iter().collect()
    }

    /// The virtual port of the link that an address is on, if the address is no known neighbour there.
    pub(super) fn unresolved_at(&self, address: K) -> Option<u16> {
        let address = address.to_addr();
        match self.route_target(super::host(address)).or_else(|| self.covering(address)) {
            Some(Target::Link(vport)) if self.station(vport, address).is_none() => Some(vport),
            _ => None,
        }
    }

    /// The sizes.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            routes: self.published_count,
            paths: self.paths.len(),
            rows: self.rows.len(),
            slots: self.rows.sent_groups().map(|(_, slots)| slots.len()).sum(),
            neighbours: self.neighbours().count(),
        }
    }
}
