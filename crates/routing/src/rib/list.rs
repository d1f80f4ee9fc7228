//! Looking at a routing information base: routes with their names, neighbours, addresses, counts.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::Bound;

use hue_host::netlink::{RouteKind, protocol};
use hue_planes::Adjacency;
use hue_tables::{NextHop, Prefix4};
use hue_wire::Mac;

use super::rows::Target;
use super::{Entry, Kept, Rib};

/// One way of a route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteWay {
    /// Name of the interface in the namespace; empty when there is none.
    pub interface: String,
    /// The router; none: destinations are on the link.
    pub via: Option<Ipv4Addr>,
    /// Cannot be used now.
    pub dead: bool,
}

/// A route as it stands in the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteRow {
    /// Destination.
    pub prefix: Prefix4,
    /// Where it comes from: `kernel`, `static`, `ospf`, `bgp`, `bird`, `hueplane`, …, `neighbour`.
    pub protocol: String,
    /// What the kernel does with it.
    pub kind: RouteKind,
    /// Priority: the lowest of a prefix wins.
    pub metric: u32,
    /// Where it leads.
    pub ways: Vec<RouteWay>,
    /// Row of the next-hop table, as handed out.
    pub hop: NextHop,
    /// What the row does.
    pub adjacency: Adjacency,
}

/// How much a network has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Prefixes in the table, as handed out.
    pub routes: usize,
    /// Different ways that the kernel's routes lead.
    pub paths: usize,
    /// Next-hop rows, free ones among them.
    pub rows: usize,
    /// Known neighbours.
    pub neighbours: usize,
}

impl Rib {
    /// The routes that were handed out, by prefix, from the one after `after` on.
    pub fn routes(&self, after: Option<Prefix4>) -> impl Iterator<Item = RouteRow> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.table
            .range((from, Bound::Unbounded))
            .filter_map(|(prefix, entry)| self.route_row(*prefix, entry))
    }

    /// The route of exactly this prefix that was handed out.
    #[must_use]
    pub fn route(&self, prefix: Prefix4) -> Option<RouteRow> {
        self.route_row(prefix, self.table.get(&prefix)?)
    }

    /// The row that was handed out for exactly this prefix.
    #[must_use]
    pub fn handed(&self, prefix: Prefix4) -> Option<NextHop> {
        self.table.get(&prefix).and_then(|entry| NextHop::new(entry.sent))
    }

    fn route_row(&self, prefix: Prefix4, entry: &Entry) -> Option<RouteRow> {
        let hop = NextHop::new(entry.sent)?;
        let adjacency = self.rows.get(entry.sent)?;
        let path = |kept: &Kept| self.paths.get(kept.path);
        let routes = entry.routes.list();
        let alive = routes.iter().find(|kept| path(kept).is_some_and(|path| !path.dead()));
        let Some((kept, path)) = alive.or(routes.first()).and_then(|kept| Some((kept, path(kept)?))) else {
            return Some(RouteRow {
                prefix,
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
            dead: way.dead,
        });
        Some(RouteRow {
            prefix,
            protocol: protocol::name(path.protocol),
            kind: path.kind,
            metric: kept.metric,
            ways: ways.collect(),
            hop,
            adjacency,
        })
    }

    /// Everything that was handed out: all rows, and the routes by prefix. What a plane needs to begin anew.
    #[must_use]
    pub fn handed_out(&self) -> (Vec<Adjacency>, Vec<(Prefix4, NextHop)>) {
        let routes =
            self.table.iter().filter_map(|(prefix, entry)| Some((*prefix, NextHop::new(entry.sent)?)));
        (self.rows_handed_out(), routes.collect())
    }

    /// The rows of it alone.
    #[must_use]
    pub fn rows_handed_out(&self) -> Vec<Adjacency> {
        self.rows.sent().collect()
    }

    /// Known neighbours on virtual ports: index of the port, address, MAC address.
    pub fn neighbours(&self) -> impl Iterator<Item = (u16, Ipv4Addr, Mac)> + '_ {
        self.neighbours.iter().filter_map(|((address, link), (mac, _))| {
            Some((self.interfaces.get(link)?.vport?, *address, *mac))
        })
    }

    /// Addresses of virtual ports: index of the port, address, length of the link's prefix.
    pub fn addresses(&self) -> impl Iterator<Item = (u16, Ipv4Addr, u8)> + '_ {
        self.addresses
            .keys()
            .filter_map(|(link, address, len)| Some((self.interfaces.get(link)?.vport?, *address, *len)))
    }

    /// Routers that routes lead to and whose MAC address is not known: worth asking for (`Monitor::probe`). Index of the
    /// port and address.
    #[must_use]
    pub fn unresolved(&self) -> Vec<(u16, Ipv4Addr)> {
        let mut stations = BTreeSet::new();
        for target in self.rows.targets() {
            match target {
                Target::Station(vport, address) => drop(stations.insert((vport, address))),
                Target::Ways(path) => {
                    let ways = self.paths.get(path).into_iter().flat_map(|path| &path.hops);
                    stations.extend(ways.filter_map(|way| match self.way_target(way) {
                        Target::Station(vport, address) => Some((vport, address)),
                        _ => None,
                    }));
                }
                Target::Local | Target::Link(_) => {}
            }
        }
        stations.retain(|(vport, address)| self.station(*vport, *address).is_none());
        stations.into_iter().collect()
    }

    /// How much there is.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            routes: self.handed,
            paths: self.paths.len(),
            rows: self.rows.len(),
            neighbours: self.neighbours().count(),
        }
    }
}
