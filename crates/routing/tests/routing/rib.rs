//! Compares the RIB with a model of a kernel, from whose state the table is computed in the simplest way:
//! random changes with and without notifications, and snapshots during changes, with events in order or out
//! of order.

use std::collections::BTreeMap;

use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind};
use hue_routing::{Change, Event, Family, Rib, RibUpdate};
use hue_tables::{NextHop, Prefix};
use hue_wire::Mac;
use proptest::prelude::*;

use crate::common::kernel::{Kernel, Modelled, Op, host, neighbour, op, ports, sorted, via};

/// The state of a plane after all updates.
#[derive(Default)]
struct Plane<K> {
    rows: Vec<Adjacency>,
    groups: BTreeMap<NextHop, Slots>,
    routes: BTreeMap<Prefix<K>, u16>,
}

impl<K: Family> Plane<K> {
    /// What may happen to packets of each route.
    fn table(&self) -> BTreeMap<Prefix<K>, Vec<Adjacency>> {
        self.routes.iter().map(|(prefix, row)| (*prefix, self.does(*row))).collect()
    }

    fn does(&self, row: u16) -> Vec<Adjacency> {
        match self.groups.get(&NextHop::new(row).unwrap()) {
            None => vec![self.rows[usize::from(row)]],
            Some(slots) => sorted(
                slots.members().into_iter().map(|(row, _)| self.rows[usize::from(row.get())]).collect(),
            ),
        }
    }

    /// Applies an update, which must be minimal.
    fn take(&mut self, update: &RibUpdate<K>) {
        if update.complete {
            *self = Self::default();
        }
        for (row, adjacency) in &update.hops {
            let row = usize::from(row.get());
            if row >= self.rows.len() {
                self.rows.resize(row + 1, Adjacency::NONE);
            }
            assert_ne!(self.rows[row], *adjacency, "row {row} is as before");
            assert_ne!(adjacency.kind(), AdjacencyKind::Group);
            self.rows[row] = *adjacency;
        }
        for (row, _) in &update.hops {
            self.groups.remove(row);
        }
        for (row, slots) in &update.groups {
            if usize::from(row.get()) >= self.rows.len() {
                self.rows.resize(usize::from(row.get()) + 1, Adjacency::NONE);
            }
            self.rows[usize::from(row.get())] = Adjacency::group(0);
            assert_ne!(
                self.groups.insert(*row, slots.clone()).as_ref(),
                Some(slots),
                "group {row:?} is as before"
            );
        }
        for (row, slots) in &self.groups {
            let members = slots.members();
            assert!(members.len() > 1, "a group of one");
            // Two gateways that share a MAC address are two members with the same action.
            let is_forward = |(member, _): &(NextHop, usize)| {
                self.rows[usize::from(member.get())].kind() == AdjacencyKind::Forward
            };
            assert!(members.iter().all(is_forward), "group {row:?}: {members:?}");
        }
        for (prefix, hop) in &update.routes {
            let old = match hop {
                Some(hop) => self.routes.insert(*prefix, hop.get()),
                None => self.routes.remove(prefix),
            };
            assert_ne!(old, hop.map(|hop| hop.get()), "route {prefix} is as before");
        }
        let after = self.table();
        assert!(
            after.values().flatten().all(|adjacency| *adjacency != Adjacency::NONE),
            "a route names a row never set"
        );
    }
}

struct Run<K: Family> {
    kernel: Kernel<K>,
    rib: Rib<K>,
    plane: Plane<K>,
    /// The kernel has changed without a notification since the last snapshot.
    blind: bool,
}

impl<K: Modelled> Run<K> {
    fn new() -> Self {
        Self { kernel: Kernel::new(), rib: Rib::new(ports()), plane: Plane::default(), blind: true }
    }

    fn change(&mut self, op: &Op<K>) {
        let (events, silent) = self.kernel.change(op);
        self.rib.apply_all(events);
        self.blind |= silent || self.rib.take_resync_needed();
    }

    fn take(&mut self) {
        if let Some(update) = self.rib.take_update() {
            self.plane.take(&update);
            if let Some(neighbours) = &update.neighbours {
                assert_eq!(*neighbours, self.rib.neighbours().collect::<Vec<_>>());
            }
        }
        // A row that was a group, and that no route names any more, is published as free one update later.
        if let Some(late) = self.rib.take_update() {
            let expected = RibUpdate { hops: late.hops.clone(), ..RibUpdate::default() };
            assert_eq!(late, expected, "an update was left behind");
            let was_group = |(row, hop): &(NextHop, Adjacency)| {
                *hop == Adjacency::local() && self.plane.groups.contains_key(row)
            };
            assert!(late.hops.iter().all(was_group), "an update was left behind: {:?}", late.hops);
            self.plane.take(&late);
        }
        assert_eq!(self.rib.take_update(), None, "an update was left behind");
        let (rows, routes) = self.rib.published();
        let groups = self.rib.published_groups().into_iter().collect();
        let routes_of = routes.iter().map(|(prefix, row)| (*prefix, row.get())).collect();
        let whole = Plane { rows, groups, routes: routes_of };
        assert_eq!(whole.table(), self.plane.table());
        assert_eq!(whole.groups, self.plane.groups);
        assert_eq!(self.rib.counts().routes, routes.len());
    }

    fn compare(&mut self) {
        self.take();
        if !self.blind && self.rib.is_synchronized() {
            assert_eq!(self.plane.table(), self.kernel.table(), "kernel: {:#?}", self.kernel);
            assert_eq!(self.rib.neighbours().collect::<Vec<_>>(), self.kernel.neighbours());
            assert_eq!(self.rib.addresses().collect::<Vec<_>>(), self.kernel.addresses());
        }
    }

    /// A snapshot with changes during it: one of `meanwhile` after each item. With `overtaking`, the
    /// notification of a change arrives before the item that was read before the change.
    fn snapshot(&mut self, meanwhile: &[Op<K>], overtaking: bool) {
        self.rib.apply(Event::Begin);
        let mut silent = false;
        let mut meanwhile = meanwhile.iter();
        let mut cursor = self.kernel.cursor();
        while let Some(item) = self.kernel.list(&mut cursor) {
            let (mut events, mut quiet) = (Vec::new(), false);
            if let Some(op) = meanwhile.next() {
                (events, quiet) = self.kernel.change(op);
            }
            silent |= quiet;
            if overtaking {
                self.rib.apply_all(events);
                self.rib.apply(item);
            } else {
                self.rib.apply(item);
                self.rib.apply_all(events);
            }
        }
        self.rib.apply(Event::End);
        self.blind = self.rib.take_resync_needed() || silent;
    }
}

#[derive(Clone, Debug)]
enum Step<K: Family> {
    Change(Op<K>),
    Take,
    Snapshot(Vec<Op<K>>, bool),
    /// Started but never completed.
    Abandoned,
    Ports,
}

fn step<K: Modelled>() -> impl Strategy<Value = Step<K>> {
    prop_oneof![
        12 => op::<K>().prop_map(Step::Change),
        4 => Just(Step::Take),
        2 => (prop::collection::vec(op::<K>(), 0..12), any::<bool>()).prop_map(|(ops, early)| Step::Snapshot(ops, early)),
        1 => Just(Step::Abandoned),
        1 => Just(Step::Ports),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_table_matches_the_kernel(steps in prop::collection::vec(step::<u32>(), 1..60)) {
        run(&steps);
    }

}

proptest! {
    // More, because siblings need several routes with the same destination and metric.
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn the_ipv6_table_matches_the_kernel(steps in prop::collection::vec(step::<u128>(), 1..60)) {
        run(&steps);
    }
}

fn run<K: Modelled>(steps: &[Step<K>]) {
    let mut run = Run::new();
    for step in steps {
        match step {
            Step::Change(op) => run.change(op),
            Step::Take => run.compare(),
            Step::Snapshot(meanwhile, overtaking) => run.snapshot(meanwhile, *overtaking),
            Step::Abandoned => run.rib.apply(Event::Begin),
            Step::Ports => run.rib.set_ports(ports()),
        }
    }
    // As a monitor does after missing or contradictory notifications.
    run.snapshot(&[], false);
    assert!(!run.blind, "a quiet snapshot settles everything");
    run.compare();
}

#[test]
fn nothing_is_published_before_a_snapshot_is_complete() {
    let mut rib = Rib::<u32>::new(ports());
    rib.apply(Event::Begin);
    assert_eq!(rib.take_update(), None);
    rib.apply(Event::Begin);
    rib.apply(Event::End);
    let update = rib.take_update().unwrap();
    assert!(update.complete && update.routes.is_empty());
    assert_eq!(update.hops.len(), 1 + ports().len(), "the kernel's row and one a link are always there");
    assert!(!rib.is_closed());
    rib.apply(Event::Closed("gone".to_owned()));
    assert!(rib.is_closed());
}

#[test]
fn a_neighbour_changes_one_row_and_no_route() {
    changes_one_row::<u32>(host::<u32>(0, 2));
    changes_one_row::<u128>(host::<u128>(0, 2));
    changes_one_row::<u128>("fe80::2".parse().unwrap());
}

fn changes_one_row<K: Modelled>(gateway: K::Addr) {
    let mut rib = Rib::<K>::new(ports());
    let kernel = Kernel::<K>::new();
    rib.apply(Event::Begin);
    let mut cursor = kernel.cursor();
    while let Some(item) = kernel.list(&mut cursor) {
        rib.apply(item);
    }
    rib.apply(Event::End);
    for i in 0..1000u32 {
        rib.apply(Event::Route(Change::Added, via::<K>(0x1400_0000 + (i << 8), 24, 2, gateway)));
    }
    let update = rib.take_update().unwrap();
    assert_eq!(update.routes.len(), 1000);
    assert_eq!(rib.unresolved(), [(0, gateway)]);
    for (last, rows) in [(7, 1), (8, 1), (8, 0)] {
        rib.apply(Event::Neighbour(Change::Added, neighbour(2, gateway, Some(last))));
        let update = rib.take_update();
        assert_eq!(update.as_ref().map_or(0, |update| update.hops.len()), rows);
        // The neighbour's link does not exist, so it has no route of its own.
        assert!(update.is_none_or(|update| update.routes.is_empty()));
    }
    assert!(rib.unresolved().is_empty());
}

#[test]
fn without_rows_the_kernel_forwards() {
    let mut rib = Rib::<u32>::new(ports());
    rib.apply_all([Event::Begin, crate::common::kernel::link(2, "v0"), Event::End]);
    let route = |i: u32| via::<u32>(0x1400_0000 + i, 32, 2, std::net::Ipv4Addr::from_bits(0x0a00_0000 + i));
    let count = 66_000;
    rib.apply_all((0..count).map(|i| Event::Route(Change::Added, route(i))));
    let mut plane = Plane::default();
    plane.take(&rib.take_update().unwrap());
    assert_eq!(plane.routes.len(), count as usize);
    assert_eq!(plane.rows.len(), hue_planes::ipv4::NEXT_HOPS_MAX);
    let shared = |plane: &Plane<u32>, row: u16| plane.routes.values().filter(|to| **to == row).count();
    let spare = count as usize - (hue_planes::ipv4::NEXT_HOPS_MAX - 3);
    assert_eq!(shared(&plane, 1), spare, "those without a row of their own go by that of the link");
    rib.apply_all((0..1000).map(|i| Event::Route(Change::Removed, route(i))));
    for _ in 0..2 {
        if let Some(update) = rib.take_update() {
            plane.take(&update);
        }
    }
    assert_eq!(plane.routes.len(), count as usize - 1000);
    assert_eq!(shared(&plane, 1), 0, "rows that were freed are used");
}

#[test]
fn new_ports_equal_a_fresh_rib() {
    new_ports::<u32>();
    new_ports::<u128>();
}

fn new_ports<K: Modelled>() {
    let mut kernel = Kernel::<K>::new();
    let gateway = |last| host::<K>(last, 2);
    let routes = [
        via::<K>(0x0b00_0000, 8, 2, gateway(0)),
        via::<K>(0x0c00_0000, 8, 3, gateway(1)),
        via::<K>(0x0d00_0000, 8, 4, gateway(1)),
    ];
    for op in routes.map(|route| Op::Route(Change::Added, route)) {
        kernel.change(&op);
    }
    for (link, last) in [(2, 0), (3, 1), (4, 1)] {
        kernel.change(&Op::Neighbour(link, gateway(last), Some(7)));
        kernel.change(&Op::Address(link, host::<K>(last, 1), K::len(24)));
    }
    let other = {
        let [zero, one] = <[_; 2]>::try_from(ports()).unwrap();
        let third = hue_routing::RibPort { interface: "other".to_owned(), ..zero.clone() };
        vec![one, third]
    };
    let table = |ports: Vec<_>, then: Option<Vec<_>>| {
        let mut rib = Rib::<K>::new(ports);
        rib.apply(Event::Begin);
        let mut cursor = kernel.cursor();
        while let Some(item) = kernel.list(&mut cursor) {
            rib.apply(item);
        }
        rib.apply(Event::End);
        let mut plane = Plane::default();
        if let Some(ports) = then {
            plane.take(&rib.take_update().unwrap());
            rib.set_ports(ports);
        }
        let update = rib.take_update().unwrap();
        assert!(update.complete);
        plane.take(&update);
        (plane.table(), update.neighbours, update.addresses)
    };
    assert_eq!(table(ports(), Some(other.clone())), table(other, None));
}

/// A route to 20.0.0.0/8 via these gateways in 10.0.0.0/24.
fn several(gateways: &[u8], dead: &[u8]) -> hue_host::netlink::Route {
    let mut route = via::<u32>(0x1400_0000, 8, 2, host::<u32>(0, 2));
    let one = route.hops[0];
    let way = |last: &u8| hue_host::netlink::NextHop {
        via: Some(host::<u32>(0, *last).into()),
        dead: dead.contains(last),
        ..one
    };
    route.hops = gateways.iter().map(way).collect();
    route
}

/// By slot, the last byte of the member's MAC address.
fn ways(plane: &Plane<u32>) -> Vec<u8> {
    let row = *plane
        .routes
        .values()
        .find(|row| plane.rows[usize::from(**row)].kind() == AdjacencyKind::Group)
        .unwrap();
    let slots = plane.groups[&NextHop::new(row).unwrap()].rows();
    slots.iter().map(|row| plane.rows[usize::from(row.get())].dst().0[5]).collect()
}

/// The members whose slots have another one now.
fn losers(before: &[u8], after: &[u8]) -> Vec<u8> {
    assert_eq!(before.len(), after.len());
    let mut lost: Vec<u8> =
        before.iter().zip(after).filter(|(one, other)| one != other).map(|(one, _)| *one).collect();
    lost.sort_unstable();
    lost.dedup();
    lost
}

#[test]
fn only_flows_of_a_lost_gateway_move() {
    let mut rib = Rib::<u32>::new(ports());
    rib.apply_all([Event::Begin, crate::common::kernel::link(2, "v0"), Event::End]);
    rib.apply(Event::Route(Change::Added, several(&[2, 3, 4, 5], &[])));
    let mut plane = Plane::default();
    let take = |rib: &mut Rib, plane: &mut Plane<u32>| {
        while let Some(update) = rib.take_update() {
            plane.take(&update);
        }
    };
    take(&mut rib, &mut plane);
    assert!(plane.groups.is_empty(), "no gateway is known");
    assert_eq!(rib.unresolved().len(), 4);
    for last in 2..=5 {
        rib.apply(Event::Neighbour(Change::Added, neighbour(2, host::<u32>(0, last), Some(last))));
    }
    take(&mut rib, &mut plane);
    let four = ways(&plane);
    assert!((2..=5).all(|last| four.iter().filter(|way| **way == last).count() == four.len() / 4));
    assert_eq!(rib.counts().slots, four.len());

    // A gateway no longer answers, and does again.
    rib.apply(Event::Neighbour(Change::Removed, neighbour(2, host::<u32>(0, 3), Some(3))));
    take(&mut rib, &mut plane);
    let three = ways(&plane);
    assert_eq!(losers(&four, &three), [3]);
    rib.apply(Event::Neighbour(Change::Added, neighbour(2, host::<u32>(0, 3), Some(3))));
    take(&mut rib, &mut plane);
    let again = ways(&plane);
    let came = again.iter().zip(&three).filter(|(now, before)| now != before);
    assert!(came.clone().all(|(now, _)| *now == 3) && came.count() == four.len() / 4);

    // A routing daemon replaces the route: a way less, then one more. A link that fails is the same.
    rib.apply(Event::Route(Change::Replaced, several(&[5, 3, 2], &[])));
    take(&mut rib, &mut plane);
    let less = ways(&plane);
    assert_eq!(losers(&again, &less), [4]);
    rib.apply(Event::Route(Change::Replaced, several(&[2, 3, 4, 5], &[])));
    take(&mut rib, &mut plane);
    let more = ways(&plane);
    assert!(more.iter().zip(&less).all(|(now, before)| now == before || *now == 4));
    rib.apply(Event::Route(Change::Replaced, several(&[2, 3, 4, 5], &[2, 5])));
    take(&mut rib, &mut plane);
    let two = ways(&plane);
    assert_eq!(losers(&more, &two), [2, 5]);

    // A path that was in use a moment ago does not bring its former slots back.
    rib.apply(Event::Route(Change::Replaced, several(&[2, 3, 4, 5], &[2])));
    take(&mut rib, &mut plane);
    let three = ways(&plane);
    assert!(three.iter().zip(&two).all(|(now, before)| now == before || *now == 5));
    rib.apply(Event::Route(Change::Replaced, several(&[2, 3, 4, 5], &[2, 5])));
    take(&mut rib, &mut plane);
    assert_eq!(losers(&three, &ways(&plane)), [5]);

    // One way is a single next hop, and the former group's row is used again only when nothing names it.
    rib.apply(Event::Route(Change::Replaced, several(&[2, 3, 4, 5], &[2, 3, 5])));
    take(&mut rib, &mut plane);
    assert!(plane.groups.is_empty());
    rib.apply(Event::Route(Change::Removed, several(&[2, 3, 4, 5], &[2, 3, 5])));
    take(&mut rib, &mut plane);
    take(&mut rib, &mut plane);
    assert_eq!(rib.counts().slots, 0);
}

#[test]
fn weights_are_those_of_the_kernel() {
    let mut rib = Rib::<u32>::new(ports());
    rib.apply_all([Event::Begin, crate::common::kernel::link(2, "v0"), Event::End]);
    let mut route = several(&[2, 3], &[]);
    route.hops[0].weight = 3;
    rib.apply(Event::Route(Change::Added, route));
    for last in 2..=3 {
        rib.apply(Event::Neighbour(Change::Added, neighbour(2, host::<u32>(0, last), Some(last))));
    }
    let mut plane = Plane::default();
    plane.take(&rib.take_update().unwrap());
    let ways = ways(&plane);
    assert_eq!(ways.iter().filter(|way| **way == 2).count() * 4, ways.len() * 3);
}

/// The kernel of a port without ARP has neighbours with the port's own MAC address: they mean nothing.
#[test]
fn all_routes_of_a_port_with_one_router_lead_to_it() {
    const PEER: Mac = Mac([2, 0, 0, 0, 0xff, 1]);
    let ports = || {
        let mut ports = ports();
        ports[1].peer = Some(PEER);
        ports
    };
    let mut rib = Rib::<u32>::new(ports());
    let link = crate::common::kernel::link;
    rib.apply_all([Event::Begin, link(2, "v0"), link(3, "v1"), Event::End]);
    let gateway = host::<u32>(1, 2);
    let on_link = |low: u32, len: u8| {
        let mut route = via::<u32>(low, len, 3, gateway);
        route.hops.iter_mut().for_each(|hop| hop.via = None);
        route
    };
    rib.apply_all([
        Event::Route(Change::Added, via::<u32>(0x0b00_0000, 8, 3, gateway)),
        Event::Route(Change::Added, on_link(0x0a00_0100, 24)),
        Event::Route(Change::Added, via::<u32>(0x0c00_0000, 8, 2, host::<u32>(0, 2))),
    ]);
    let (mut plane, mut mtu_bytes) = (Plane::default(), 1500);
    let port = &ports()[1];
    for step in 0..3 {
        match step {
            1 => rib.apply(Event::Neighbour(Change::Added, neighbour(3, gateway, Some(7)))),
            2 => {
                let event = link(3, "v1");
                let Event::Link(_, mut smaller) = event else { unreachable!() };
                (smaller.mtu, mtu_bytes) = (1480, 1480);
                rib.apply(Event::Link(Change::Added, smaller));
            }
            _ => {}
        }
        if let Some(update) = rib.take_update() {
            plane.take(&update);
        }
        let table = plane.table();
        let to = |text: &str| table[&text.parse::<Prefix<u32>>().unwrap()].as_slice();
        let expected = Adjacency::forward(port.port, port.mac, PEER, mtu_bytes);
        assert_eq!((to("11.0.0.0/8"), to("10.0.1.0/24")), (&[expected][..], &[expected][..]), "step {step}");
        assert_eq!(
            to("12.0.0.0/8"),
            [Adjacency::glean(ports()[0].port)],
            "the other port resolves as always"
        );
        assert_eq!(table.len(), 3, "no route of a neighbour's own");
        assert_eq!(rib.unresolved(), [(0, host::<u32>(0, 2))]);
        assert_eq!(rib.neighbours().count(), 0);
    }
}
