//! Routes of one network: computes next hops from addresses, links, static routes and neighbours.
//!
//! Flow: a `NetworkSpec` → **route set** → `Program`. The rules below apply in order; for each prefix, the
//! first route wins.
//!
//! 1. Each address of the network, each broadcast address of an IPv4 link, and each subnet-router anycast address of an
//!    IPv6 link (RFC 4291 §2.6.1) belongs to the router itself.
//! 2. The prefix of each address is a link: a known neighbour there is reached directly, others must be
//!    resolved.
//! 3. A static route through a gateway (`via`) leads to that gateway, a neighbour on the longest link that
//!    contains it. Of several gateways, those that are known neighbours are a group; if none is, the first is used. A static
//!    route onto a port is a link.
//! 4. A neighbour gets its own host route if the longest route to it is a link of its port; a longer route to
//!    another place takes precedence.
//!
//! A network with slices has such a table for each. Rules 1, 2 and 4, and routes onto a port, are the same in all of them.
//!
//! All links and gateways of a port at the end of an IP tunnel lead to the router at its other end.
//!
//! Multicast, 255.255.255.255 and fe80::/10 need no routes, because the plane treats them specially.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::IpAddr;

use hue_intent::{Links, NetworkSpec, Route, RouteMember, Target};
use hue_planes::group::{Group, Member, Slots, WEIGHT_MAX};
use hue_planes::splice::SLICES;
use hue_planes::{Adjacency, Kind};
use hue_substrate::VirtualPort;
use hue_tables::{AnyPrefix, Key, NextHop, RowsByLength};
use hue_wire::Mac;

use crate::names::{Origin, RouteName};
use crate::tunnels::peer;

/// Why a network's routes cannot be compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RouteFault {
    /// A gateway is not on any link.
    Via(IpAddr),
    /// A route or neighbour names an unknown virtual port.
    Port,
    /// There are more next hops than indices.
    NextHops,
}

/// Routes of a network and their next hops.
#[derive(Default)]
pub(crate) struct RouteSet {
    pub(crate) next_hops: Vec<Adjacency>,
    /// The slots of those that are groups.
    pub(crate) groups: Vec<(NextHop, Slots)>,
    /// Sorted by slice and prefix.
    pub(crate) routes: Vec<RouteName>,
}

impl RouteSet {
    /// The same with rows by the length of the route; `None` if there are too many.
    pub(crate) fn by_length<K: Key>(mut self) -> Option<Self> {
        for route in &mut self.routes {
            route.hop = RowsByLength::<K>::row(route.hop.get(), route.prefix.len())?;
        }
        if self.next_hops.len() > RowsByLength::<K>::ROWS_MAX {
            return None;
        }
        let mut groups = Vec::new();
        for (own, slots) in &self.groups {
            for len in 0..=K::BITS {
                let row = |own: NextHop| RowsByLength::<K>::row(own.get(), len);
                groups.push((row(*own)?, slots.renumbered(row)?));
            }
        }
        self.groups = groups;
        let each = usize::from(RowsByLength::<K>::EACH);
        self.next_hops = self.next_hops.into_iter().flat_map(|hop| std::iter::repeat_n(hop, each)).collect();
        Some(self)
    }
}

/// Builds the routes of a network with the virtual ports `ports`, which are in the order of its document.
pub(crate) fn build(spec: &NetworkSpec, ports: &[VirtualPort]) -> Result<RouteSet, RouteFault> {
    let peers = spec.ports.iter().map(peer).collect();
    let mut builder = Builder { ports, peers, hops: Hops::default(), slice: 0, routes: BTreeMap::new() };
    let index: HashMap<&str, usize> =
        ports.iter().zip(0..).map(|(port, vport)| (port.name.as_str(), vport)).collect();
    let mut macs = HashMap::with_capacity(spec.neighbours.len());
    for neighbour in &spec.neighbours {
        let vport = *index.get(neighbour.port.as_str()).ok_or(RouteFault::Port)?;
        macs.insert((vport, neighbour.address), neighbour.mac);
    }
    let links = Links::new(&spec.ports, &spec.routes);
    let slices =
        if spec.plane.kind == Kind::Splice { spec.plane.slices.unwrap_or(SLICES.default) } else { 1 };
    let mut routes = Vec::new();
    for slice in 0..slices {
        builder.slice = slice;
        builder.own(spec)?;
        // Routes by source are no routes of the table. Links are in all slices.
        let is_here = |route: &&Route| {
            route.from.is_none() && (route.slice == slice || matches!(route.target, Target::Port(_)))
        };
        for route in spec.routes.iter().filter(is_here) {
            builder.route(route, &links, &index, &macs)?;
        }
        builder.neighbours(spec, &index)?;
        routes.extend(std::mem::take(&mut builder.routes).into_values());
    }
    Ok(RouteSet { next_hops: builder.hops.list, groups: builder.hops.groups, routes })
}

/// What the entries of a network with a table of its own become.
pub(crate) struct Rows<K> {
    pub next_hops: Vec<Adjacency>,
    /// In the order of the document.
    pub entries: Vec<(K, NextHop)>,
}

/// The next hops so far, without duplicates.
#[derive(Default)]
pub(crate) struct Hops {
    pub(crate) list: Vec<Adjacency>,
    index: HashMap<Adjacency, NextHop>,
    groups: Vec<(NextHop, Slots)>,
    group_index: HashMap<Vec<Member>, NextHop>,
}

impl Hops {
    /// The row of an adjacency.
    pub(crate) fn add(&mut self, adjacency: Adjacency) -> Result<NextHop, RouteFault> {
        match self.index.entry(adjacency) {
            std::collections::hash_map::Entry::Occupied(hop) => Ok(*hop.get()),
            std::collections::hash_map::Entry::Vacant(free) => {
                let hop = next(&self.list)?;
                self.list.push(adjacency);
                Ok(*free.insert(hop))
            }
        }
    }

    /// The row of a group of these members, with their weights.
    fn add_group(&mut self, members: &[(Adjacency, u16)]) -> Result<NextHop, RouteFault> {
        let rows = members
            .iter()
            .map(|(adjacency, weight)| Ok(Member { row: self.add(*adjacency)?, weight: *weight }));
        let mut rows = rows.collect::<Result<Vec<Member>, _>>()?;
        // Two addresses of one neighbour are one member.
        rows.sort_by_key(|member| member.row);
        rows.dedup_by(|other, one| {
            let is_same = other.row == one.row;
            if is_same {
                one.weight = one.weight.saturating_add(other.weight).min(WEIGHT_MAX);
            }
            is_same
        });
        if let Some(hop) = self.group_index.get(&rows) {
            return Ok(*hop);
        }
        let Some(group) = Group::new(&rows).filter(|_| rows.len() > 1) else {
            return rows.first().map(|member| member.row).ok_or(RouteFault::NextHops);
        };
        let hop = next(&self.list)?;
        self.list.push(Adjacency::group(0));
        self.groups.push((hop, group.slots().clone()));
        self.group_index.insert(rows, hop);
        Ok(hop)
    }
}

/// The row after these.
fn next(list: &[Adjacency]) -> Result<NextHop, RouteFault> {
    let number = u16::try_from(list.len()).map_err(|_| RouteFault::NextHops)?;
    NextHop::new(number).ok_or(RouteFault::NextHops)
}

struct Builder<'p> {
    ports: &'p [VirtualPort],
    /// Of ports that lead to one router only: its MAC address.
    peers: Vec<Option<Mac>>,
    hops: Hops,
    /// The slice whose routes these are.
    slice: u8,
    routes: BTreeMap<AnyPrefix, RouteName>,
}

impl Builder<'_> {
    /// Adds a route unless its prefix already has one.
    fn add(
        &mut self,
        prefix: AnyPrefix,
        adjacency: Adjacency,
        vport: usize,
        origin: Origin,
    ) -> Result<(), RouteFault> {
        self.add_by(prefix, |hops| hops.add(adjacency), vport, origin)
    }

    /// The same with the next hop that `hop` adds.
    fn add_by(
        &mut self,
        prefix: AnyPrefix,
        hop: impl FnOnce(&mut Hops) -> Result<NextHop, RouteFault>,
        vport: usize,
        origin: Origin,
    ) -> Result<(), RouteFault> {
        if let Entry::Vacant(free) = self.routes.entry(prefix) {
            let hop = hop(&mut self.hops)?;
            let vport = u16::try_from(vport).map_err(|_| RouteFault::Port)?;
            free.insert(RouteName { slice: self.slice, prefix, hop, vport, origin });
        }
        Ok(())
    }

    fn port(&self, vport: usize) -> Result<&VirtualPort, RouteFault> {
        self.ports.get(vport).ok_or(RouteFault::Port)
    }

    /// The link of a port: its neighbours must be resolved, unless there is only one router.
    fn glean(&self, vport: usize) -> Result<Adjacency, RouteFault> {
        if let Some(Some(peer)) = self.peers.get(vport) {
            return self.forward(vport, *peer);
        }
        self.port(vport).map(|port| Adjacency::glean(port.port))
    }

    fn forward(&self, vport: usize, mac: Mac) -> Result<Adjacency, RouteFault> {
        self.port(vport).map(|port| Adjacency::forward(port.port, port.mac, mac, port.mtu_bytes))
    }

    /// Rules 1 and 2.
    fn own(&mut self, spec: &NetworkSpec) -> Result<(), RouteFault> {
        for (vport, port) in spec.ports.iter().enumerate() {
            for own in &port.addresses {
                self.add(AnyPrefix::host(own.address), Adjacency::local(), vport, Origin::Address)?;
            }
        }
        for (vport, port) in spec.ports.iter().enumerate() {
            for own in &port.addresses {
                if let Some(last) = own.broadcast() {
                    self.add(AnyPrefix::host(last), Adjacency::local(), vport, Origin::Broadcast)?;
                }
                if let Some(first) = own.anycast() {
                    self.add(AnyPrefix::host(first), Adjacency::local(), vport, Origin::Anycast)?;
                }
                self.add(own.link(), self.glean(vport)?, vport, Origin::Connected)?;
            }
        }
        Ok(())
    }

    /// Rule 3.
    fn route(
        &mut self,
        route: &Route,
        links: &Links,
        index: &HashMap<&str, usize>,
        macs: &HashMap<(usize, IpAddr), Mac>,
    ) -> Result<(), RouteFault> {
        let (adjacency, vport, origin) = match &route.target {
            Target::Via(via) => {
                let vport = links.of(*via).ok_or(RouteFault::Via(*via))?.vport;
                let mac = macs.get(&(vport, *via)).copied();
                let adjacency = match mac {
                    Some(mac) => self.forward(vport, mac)?,
                    None => self.glean(vport)?,
                };
                (adjacency, vport, Origin::Via(*via, mac))
            }
            Target::Port(name) => {
                let vport = *index.get(name.as_str()).ok_or(RouteFault::Port)?;
                (self.glean(vport)?, vport, Origin::OnLink)
            }
            Target::Vias(members) => return self.group(route.to, members, links, macs),
        };
        self.add(route.to, adjacency, vport, origin)
    }

    /// Rule 3, several gateways.
    fn group(
        &mut self,
        to: AnyPrefix,
        members: &[RouteMember],
        links: &Links,
        macs: &HashMap<(usize, IpAddr), Mac>,
    ) -> Result<(), RouteFault> {
        let (mut known, mut vias) = (Vec::new(), Vec::new());
        for RouteMember { via, weight } in members {
            let vport = links.of(*via).ok_or(RouteFault::Via(*via))?.vport;
            vias.push((*via, *weight, u16::try_from(vport).map_err(|_| RouteFault::Port)?));
            if let Some(mac) = macs.get(&(vport, *via)) {
                known.push((self.forward(vport, *mac)?, *weight));
            }
        }
        let first = vias.first().map_or(0, |(_, _, vport)| usize::from(*vport));
        let unknown = self.glean(first)?;
        let hop = |hops: &mut Hops| if known.is_empty() { hops.add(unknown) } else { hops.add_group(&known) };
        self.add_by(to, hop, first, Origin::Vias(vias))
    }

    /// Rule 4. All neighbours are looked up before the first one is added, so their order does not matter.
    fn neighbours(&mut self, spec: &NetworkSpec, index: &HashMap<&str, usize>) -> Result<(), RouteFault> {
        let mut found = Vec::with_capacity(spec.neighbours.len());
        for neighbour in &spec.neighbours {
            let vport = *index.get(neighbour.port.as_str()).ok_or(RouteFault::Port)?;
            let link = self.longest(neighbour.address).is_some_and(|route| {
                usize::from(route.vport) == vport
                    && matches!(route.origin, Origin::Connected | Origin::OnLink)
            });
            if link {
                found.push((neighbour, vport));
            }
        }
        for (neighbour, vport) in found {
            let prefix = AnyPrefix::host(neighbour.address);
            // A route of a whole address onto a port is the neighbour itself: the neighbour's route replaces it.
            self.routes.remove(&prefix);
            let adjacency = self.forward(vport, neighbour.mac)?;
            self.add(prefix, adjacency, vport, Origin::Neighbour(neighbour.mac))?;
        }
        Ok(())
    }

    fn longest(&self, address: IpAddr) -> Option<&RouteName> {
        (0..=AnyPrefix::host(address).len())
            .rev()
            .find_map(|len| self.routes.get(&AnyPrefix::containing(address, len)))
    }
}
