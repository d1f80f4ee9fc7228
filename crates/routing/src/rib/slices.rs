//! The RIBs of a network with several slices: one of IPv4 for each.
//!
//! Flow: [`Event`]s → the RIB of each slice that they concern → updates with the rows and prefixes of all slices as one table.
//! Slice 0 has the routes of the main table, slice *i* those of table [`table_of`]`(i)`. What belongs to the network itself is
//! in each: its addresses (the local table), and its links (routes of the main table without a gateway). The RIBs number their
//! rows independently: row *n* of slice *i* is row *n* · count + *i* of the table of next hops. Prefixes begin with the number
//! of the slice ([`SlicedPrefix`]). Source: ADR 0072.

use std::net::IpAddr;

use hue_host::netlink::{Route, RouteKind};
use hue_host::routes::{MAIN, table_of};
use hue_planes::Adjacency;
use hue_planes::group::{GROUPS_MAX, Slots};
use hue_substrate::{Changes, Entries};
use hue_tables::slice::{SlicedPrefix, address_of};
use hue_tables::{AnyPrefix, Change, Key, NextHop, Prefix, Prefix4};

use super::any::AnyUpdate;
use super::{Counts, Rib, RibPort, RibUpdate, RouteRow};
use crate::event::Event;

/// The table for the host's own addresses.
const LOCAL: u32 = 255;

/// See the head of this file.
pub(super) struct Slices {
    /// That of slice 0, which speaks for all about links, addresses and neighbours.
    pub(super) first: Rib<u32>,
    /// Those of the others, in order.
    pub(super) rest: Vec<Rib<u32>>,
}

impl Slices {
    pub(super) fn new(count: u8, ports: &[RibPort]) -> Self {
        let count = usize::from(count.max(1));
        let (rows, groups) = (usize::from(NextHop::MAX) / count, GROUPS_MAX / count);
        let rib = || Rib::with_rows(ports.to_vec(), rows, groups);
        Self { first: rib(), rest: (1..count).map(|_| rib()).collect() }
    }

    /// Each RIB with the number of its slice.
    pub(super) fn each(&self) -> impl Iterator<Item = (u8, &Rib<u32>)> {
        (0..).zip(std::iter::once(&self.first).chain(&self.rest))
    }

    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = (u8, &mut Rib<u32>)> {
        (0..).zip(std::iter::once(&mut self.first).chain(&mut self.rest))
    }

    fn get(&self, slice: u8) -> Option<&Rib<u32>> {
        self.each().nth(slice.into()).map(|(_, rib)| rib)
    }

    const fn count(&self) -> u16 {
        self.rest.len() as u16 + 1
    }

    const fn numbering(&self, slice: u8) -> Numbering {
        Numbering { slice, count: self.count() }
    }

    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Route(change, route) => {
                for (slice, rib) in self.each_mut().filter(|(slice, _)| concerns(&route, *slice)) {
                    let table = if route.table == table_of(slice) { MAIN } else { route.table };
                    rib.apply(Event::Route(change, Route { table, ..route.clone() }));
                }
            }
            other => self.each_mut().for_each(|(_, rib)| rib.apply(other.clone())),
        }
    }

    pub(super) fn take_update(&mut self) -> Option<AnyUpdate> {
        if !self.each().all(|(_, rib)| rib.is_synchronized()) {
            return None;
        }
        let count = self.count();
        let (mut all, mut routes, mut is_empty) = (RibUpdate::<u32>::default(), Vec::new(), true);
        for (slice, rib) in self.each_mut() {
            let Some(update) = rib.take_update() else { continue };
            let numbering = Numbering { slice, count };
            is_empty = false;
            let RibUpdate { complete, hops, groups, routes: own, neighbours, addresses } = update;
            all.complete |= complete;
            all.hops.extend(hops.into_iter().filter_map(|(row, hop)| Some((numbering.hop(row)?, hop))));
            all.groups.extend(numbering.groups(groups));
            routes.extend(numbering.changes(own));
            if slice == 0 {
                (all.neighbours, all.addresses) = (neighbours, addresses);
            }
        }
        let routes = Changes { v4: Vec::new(), v6: routes };
        (!is_empty).then(|| AnyUpdate { routes, ..all.into() })
    }

    pub(super) fn published(&self) -> (Vec<Adjacency>, Entries) {
        let mut routes = Vec::new();
        for (slice, rib) in self.each() {
            let numbering = self.numbering(slice);
            let own = rib.published().1;
            let wide =
                |(prefix, hop): (Prefix4, NextHop)| Some((numbering.prefix(prefix), numbering.hop(hop)?));
            routes.extend(own.into_iter().filter_map(wide));
        }
        (self.rows(), Entries::Sliced(routes))
    }

    /// All rows as one table. Rows that only some slices have yet do nothing in the others.
    pub(super) fn rows(&self) -> Vec<Adjacency> {
        let each: Vec<Vec<Adjacency>> = self.each().map(|(_, rib)| rib.published_rows()).collect();
        let count = each.iter().map(Vec::len).max().unwrap_or_default();
        let row =
            |at: usize| each.iter().map(move |rows| rows.get(at).copied().unwrap_or_else(Adjacency::local));
        (0..count).flat_map(row).collect()
    }

    pub(super) fn published_groups(&self) -> Vec<(NextHop, Slots)> {
        self.each().flat_map(|(slice, rib)| self.numbering(slice).groups(rib.published_groups())).collect()
    }

    pub(super) fn published_changes(&self, prefixes: &[AnyPrefix]) -> Changes {
        let change = |prefix: &AnyPrefix| {
            let SlicedPrefix { slice, prefix } = SlicedPrefix::of_any(*prefix)?;
            let hop = self.get(slice)?.published_hop(prefix);
            let numbering = self.numbering(slice);
            Some((numbering.prefix(prefix), hop.and_then(|own| numbering.hop(own))))
        };
        Changes { v4: Vec::new(), v6: prefixes.iter().filter_map(change).collect() }
    }

    /// At most `count` routes after `after`, those of slice 0 first. Their prefixes are of keys.
    pub(super) fn routes(&self, after: Option<AnyPrefix>, count: usize) -> Vec<RouteRow> {
        let after = after.and_then(SlicedPrefix::of_any);
        let first = after.map_or(0, |after| after.slice);
        let from = |slice| after.filter(|after| after.slice == slice).map(|after| after.prefix);
        let ribs = self.each().skip(first.into());
        let rows = ribs.flat_map(|(slice, rib)| rib.routes(from(slice)).map(move |row| self.row(slice, row)));
        rows.take(count).collect()
    }

    /// The routes that contain an address, the longest last: those of the slice in a key, or those of all slices to an IPv4
    /// address, slice 0 last.
    pub(super) fn routes_holding(&self, address: IpAddr) -> Vec<RouteRow> {
        let (only, address) = match (address, address_of(address)) {
            (IpAddr::V4(address), _) => (None, address),
            (_, Some((slice, address))) => (Some(slice), address),
            _ => return Vec::new(),
        };
        let mut rows = Vec::new();
        let mut each: Vec<_> =
            self.each().filter(|(slice, _)| only.is_none_or(|only| only == *slice)).collect();
        each.reverse();
        for (slice, rib) in each {
            let prefixes = (0..=<u32 as Key>::BITS).map(|len| Prefix::containing(address.to_bits(), len));
            rows.extend(prefixes.filter_map(|prefix| rib.route(prefix)).map(|row| self.row(slice, row)));
        }
        rows
    }

    fn row(&self, slice: u8, row: RouteRow) -> RouteRow {
        let numbering = self.numbering(slice);
        let prefix = row.prefix.of().map_or(row.prefix, |prefix| numbering.prefix(prefix).into());
        RouteRow { prefix, hop: numbering.hop(row.hop).unwrap_or(row.hop), ..row }
    }

    /// Sizes: sums, but for neighbours, which all slices have in common.
    pub(super) fn counts(&self) -> Counts {
        let all = self.each().map(|(_, rib)| rib.counts()).fold(Counts::default(), |all, one| all + one);
        Counts { neighbours: self.first.counts().neighbours, ..all }
    }
}

/// Whether a slice has a route of the kernel.
fn concerns(route: &Route, slice: u8) -> bool {
    let is_link = || {
        let on_link = |hop: &hue_host::netlink::NextHop| hop.via.is_none();
        route.kind == RouteKind::Unicast && !route.hops.is_empty() && route.hops.iter().all(on_link)
    };
    route.table == table_of(slice) || route.table == LOCAL || route.table == MAIN && is_link()
}

/// How the rows and prefixes of a slice are named in the network's table.
#[derive(Clone, Copy)]
struct Numbering {
    slice: u8,
    /// How many slices there are.
    count: u16,
}

impl Numbering {
    fn hop(self, own: NextHop) -> Option<NextHop> {
        own.get().checked_mul(self.count)?.checked_add(self.slice.into()).and_then(NextHop::new)
    }

    fn prefix(self, own: Prefix4) -> Prefix<u128> {
        SlicedPrefix { slice: self.slice, prefix: own }.wide()
    }

    fn changes(self, changes: Vec<Change<u32>>) -> impl Iterator<Item = Change<u128>> {
        changes.into_iter().map(move |(prefix, hop)| (self.prefix(prefix), hop.and_then(|own| self.hop(own))))
    }

    fn groups(self, groups: Vec<(NextHop, Slots)>) -> impl Iterator<Item = (NextHop, Slots)> {
        let renumbered = move |(own, slots): (NextHop, Slots)| {
            Some((self.hop(own)?, slots.renumbered(|member| self.hop(member))?))
        };
        groups.into_iter().filter_map(renumbered)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hue_host::netlink::{Link, Neighbour, NextHop as Way, Scope, neighbour_state};
    use hue_wire::Mac;

    use super::super::samples::ports;
    use super::*;
    use crate::event::Change as How;

    /// A route of a table to a prefix, through 10.0.0.`via`, or of a link.
    fn route(how: How, table: u32, to: &str, via: Option<u8>) -> Event {
        let via = via.map(|via| IpAddr::from([10, 0, 0, via]));
        let route = Route {
            prefix: to.parse().unwrap(),
            source: None,
            object: 0,
            table,
            tos: 0,
            metric: 0,
            protocol: 0,
            scope: Scope::Universe,
            kind: RouteKind::Unicast,
            hops: vec![Way { link: 2, via, weight: 1, dead: false, onlink: false }],
            cloned: false,
        };
        Event::Route(how, route)
    }

    fn neighbour(number: u8) -> Event {
        let mac = Some(Mac([2, 1, 0, 0, 0, number]));
        let (address, state) = ([10, 0, 0, number].into(), neighbour_state::REACHABLE);
        Event::Neighbour(How::Added, Neighbour { link: 2, address, mac, state, flags: 0, protocol: 0 })
    }

    /// Where the routes of a slice lead: the last byte of the neighbour's MAC address.
    fn ways(slices: &Slices, slice: u8) -> BTreeMap<String, u8> {
        let (rows, entries) = slices.published();
        let own = entries.sliced().filter(|(one, _)| one.slice == slice);
        own.map(|(one, hop)| (one.prefix.to_string(), rows[usize::from(hop.get())].dst().0[5])).collect()
    }

    fn all(list: &[(&str, u8)]) -> BTreeMap<String, u8> {
        list.iter().map(|(prefix, to)| ((*prefix).to_owned(), *to)).collect()
    }

    #[test]
    fn each_slice_has_the_routes_of_its_table_and_all_have_links_and_neighbours() {
        let mut slices = Slices::new(3, &ports());
        let link =
            Link { index: 2, name: "v0".to_owned(), mtu: 1500, up: true, carrier: true, ..Link::default() };
        let steps = [
            vec![
                Event::Begin,
                Event::Link(How::Listed, Box::new(link)),
                route(How::Listed, MAIN, "10.0.0.0/24", None),
                Event::End,
            ],
            vec![neighbour(1), neighbour(2), neighbour(3)],
            vec![
                route(How::Added, MAIN, "10.9.0.0/16", Some(1)),
                route(How::Added, 101, "10.9.0.0/16", Some(2)),
                route(How::Added, 101, "10.8.0.0/16", Some(1)),
                route(How::Added, 102, "10.9.0.0/16", Some(3)),
                // Of a slice that the network does not have, and of a table of somebody else.
                route(How::Added, 103, "10.7.0.0/16", Some(3)),
                route(How::Added, 100, "10.7.0.0/16", Some(3)),
            ],
            vec![
                route(How::Removed, 101, "10.9.0.0/16", Some(2)),
                route(How::Replaced, 102, "10.9.0.0/16", Some(1)),
            ],
        ];
        let mut stepwise: (Vec<Adjacency>, BTreeMap<AnyPrefix, NextHop>) = Default::default();
        let mut seen = Vec::new();
        for step in steps {
            step.into_iter().for_each(|event| slices.apply(event));
            let mut update = slices.take_update().unwrap();
            for (row, hop) in update.hops {
                let row = usize::from(row.get());
                stepwise.0.resize(stepwise.0.len().max(row + 1), Adjacency::local());
                stepwise.0[row] = hop;
            }
            update.routes.for_each(|prefix, hop| match *hop {
                Some(hop) => drop(stepwise.1.insert(prefix, hop)),
                None => drop(stepwise.1.remove(&prefix)),
            });
            // The sum of all updates is the whole.
            let (rows, entries) = slices.published();
            let whole: BTreeMap<AnyPrefix, Adjacency> = entries
                .sliced()
                .map(|(one, hop)| (one.wide().into(), rows[usize::from(hop.get())]))
                .collect();
            let step: BTreeMap<AnyPrefix, Adjacency> = stepwise
                .1
                .iter()
                .map(|(prefix, hop)| (*prefix, stepwise.0[usize::from(hop.get())]))
                .collect();
            assert_eq!(step, whole);
            assert_eq!(slices.counts().routes, whole.len());
            assert_eq!(slices.take_update(), None);
            seen.push([0, 1, 2].map(|slice| ways(&slices, slice)));
        }
        let known = [("10.0.0.0/24", 0), ("10.0.0.1/32", 1), ("10.0.0.2/32", 2), ("10.0.0.3/32", 3)];
        let with = |more: &[(&str, u8)]| all(&[&known[..], more].concat());
        assert_eq!(seen[1], [with(&[]), with(&[]), with(&[])]);
        let eight = ("10.8.0.0/16", 1);
        assert_eq!(
            seen[2],
            [with(&[("10.9.0.0/16", 1)]), with(&[("10.9.0.0/16", 2), eight]), with(&[("10.9.0.0/16", 3)])]
        );
        assert_eq!(seen[3], [with(&[("10.9.0.0/16", 1)]), with(&[eight]), with(&[("10.9.0.0/16", 1)])]);

        // Lists, page by page, and by address.
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = slices.routes(after, 2);
            let Some(last) = page.last() else { break };
            after = Some(last.prefix);
            pages.extend(page.into_iter().map(|row| (row.prefix, row.hop)));
        }
        assert_eq!(pages.into_iter().collect::<BTreeMap<_, _>>(), stepwise.1);
        let holding = |address: IpAddr| -> Vec<String> {
            let rows = slices.routes_holding(address).into_iter();
            rows.map(|row| SlicedPrefix::of_any(row.prefix).unwrap().to_string()).collect()
        };
        assert_eq!(holding([10, 9, 0, 1].into()), ["10.9.0.0/16 slice 2", "10.9.0.0/16 slice 0"]);
        let key = hue_tables::slice::key(1, 0x0a08_0001);
        assert_eq!(holding(std::net::Ipv6Addr::from_bits(key).into()), ["10.8.0.0/16 slice 1"]);
        let prefixes: Vec<AnyPrefix> = stepwise.1.keys().copied().collect();
        let again: BTreeMap<AnyPrefix, NextHop> = slices
            .published_changes(&prefixes)
            .v6
            .into_iter()
            .filter_map(|(prefix, hop)| Some((prefix.into(), hop?)))
            .collect();
        assert_eq!(again, stepwise.1);
    }

    /// Rows of slices never meet, and each slice has the same number of them.
    #[test]
    fn rows_of_slices_differ() {
        let slices = Slices::new(16, &ports());
        let row = |slice, own| slices.numbering(slice).hop(NextHop::new(own).unwrap());
        assert_eq!(row(3, 2).unwrap().get(), 35);
        assert_eq!(row(15, 4094).unwrap().get(), 65_519);
        assert_eq!(row(15, 4096), None);
    }
}
