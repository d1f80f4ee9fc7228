//! One router of PW-OSPF: what each input causes.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_routing::pwospf::packet::{ALL_ROUTERS, Advertisement, Body, Hello, Lsu, Packet, RouterId, mask};
use hue_routing::pwospf::{
    Config, Drop, Event, Interface, NEIGHBOURS_MAX, NextHop, ROUTERS_MAX, RouteChange, Router, Sent,
};
use hue_tables::{Prefix, Prefix4};

const OWN: Ipv4Addr = Ipv4Addr::new(9, 9, 9, 9);
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

fn id(n: u8) -> RouterId {
    RouterId::new(Ipv4Addr::new(9, 9, 9, n)).unwrap()
}

fn prefix(text: &str) -> Prefix4 {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse::<Ipv4Addr>().unwrap().to_bits(), len.parse().unwrap()).unwrap()
}

fn interface(link: u32, network: &str) -> Interface {
    let prefix = prefix(network);
    let address = Ipv4Addr::from_bits(prefix.addr() + u32::from(prefix.len() < 32));
    Interface { link, name: format!("i{link}"), address, prefix, speaks: prefix.len() < 32 }
}

/// A router with two links, 10.0.1.0/24 and 10.0.2.0/24, which has sent its first LSU.
struct One {
    router: Router,
    now: Duration,
}

impl One {
    fn with(config: Config) -> Self {
        let now = Duration::from_secs(1000);
        let mut router = Router::new(now, config);
        router.set_interfaces(now, vec![interface(1, "10.0.1.0/24"), interface(2, "10.0.2.0/24")]);
        Self { router, now }
    }

    fn new() -> Self {
        let mut one = Self::with(config());
        one.wait(6_000);
        one.router.take();
        one
    }

    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while self.router.due() <= end {
            self.now = self.now.max(self.router.due());
            self.router.tick(self.now);
        }
        self.now = end;
    }

    fn receive(&mut self, link: u32, source: Ipv4Addr, bytes: &[u8]) -> Option<Drop> {
        let before = self.router.counters().drops.clone();
        let mut whole = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, 89, 0, 0];
        whole.extend(source.octets());
        whole.extend([0; 4]);
        whole.extend(bytes);
        self.router.receive(self.now, link, &whole);
        let after = &self.router.counters().drops;
        Drop::ALL.into_iter().find(|reason| after.get(*reason) > before.get(*reason))
    }

    fn hello(&mut self, link: u32, n: u8) -> Option<Drop> {
        self.receive(link, on(link, n), &hello(n, 24, 5))
    }

    fn lsu(&mut self, from: (u32, u8), n: u8, sequence: u16, links: &[(&str, u8)]) -> Option<Drop> {
        self.receive(from.0, on(from.0, from.1), &lsu(n, sequence, 30, links))
    }

    /// LSUs among what was sent, by destination.
    fn lsus(&mut self) -> Vec<(Ipv4Addr, RouterId, Lsu)> {
        self.router.take().packets.iter().filter_map(read_lsu).collect()
    }
}

fn read_lsu(sent: &Sent) -> Option<(Ipv4Addr, RouterId, Lsu)> {
    let packet = Packet::read(&sent.bytes).unwrap();
    let Body::Lsu(lsu) = packet.body else { return None };
    Some((sent.destination, packet.router, lsu))
}

fn config() -> Config {
    Config {
        router: RouterId::new(OWN).unwrap(),
        area: Ipv4Addr::UNSPECIFIED,
        hello_interval_s: 5,
        lsu_interval_s: 30,
        advertised: Vec::new(),
        any_source: false,
        sequence: 10,
    }
}

fn on(link: u32, n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8, n)
}

fn hello(n: u8, len: u8, interval_s: u16) -> Vec<u8> {
    let body = Body::Hello(Hello { mask: mask(len), interval_s });
    Packet { router: id(n), area: Ipv4Addr::UNSPECIFIED, body }.bytes()
}

fn lsu(n: u8, sequence: u16, ttl: u16, links: &[(&str, u8)]) -> Vec<u8> {
    let links = links
        .iter()
        .map(|(network, n)| Advertisement { prefix: prefix(network), router: (*n > 0).then(|| id(*n)) });
    let body = Body::Lsu(Lsu { sequence, ttl, links: links.collect() });
    Packet { router: id(n), area: Ipv4Addr::UNSPECIFIED, body }.bytes()
}

#[test]
fn hellos_go_to_all_routers_of_each_link_in_their_interval() {
    let mut one = One::with(config());
    let first = one.router.take().packets;
    assert_eq!(first.len(), 2);
    assert_eq!((first[0].link, first[0].source, first[0].destination), (1, LEFT, ALL_ROUTERS));
    assert_eq!(first[0].bytes, hello(9, 24, 5));
    one.wait(4_999);
    assert_eq!(one.router.take().packets, []);
    one.wait(1);
    assert_eq!(one.router.take().packets, first);
}

#[test]
fn a_new_neighbour_is_answered_and_told_everything() {
    let mut one = One::new();
    assert_eq!(one.hello(1, 2), None);
    one.wait(2_000);
    assert_eq!(one.lsu((1, 2), 2, 7, &[("10.0.1.0/24", 9), ("10.8.0.0/16", 0)]), None);
    one.router.take();
    assert_eq!(one.hello(2, 3), None);
    let output = one.router.take();
    let up = Event::NeighbourUp { interface: "i2".into(), address: on(2, 3), router: id(3) };
    assert_eq!(output.events, [up]);
    // First the hello, so that the neighbour takes the rest.
    assert_eq!((output.packets[0].link, output.packets[0].destination), (2, ALL_ROUTERS));
    let told: Vec<_> = output.packets[1..].iter().filter_map(read_lsu).collect();
    let [(to, router, known), own @ ..] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*to, *router, known.sequence, known.ttl), (on(2, 3), id(2), 7, 29));
    let to: BTreeSet<_> = own.iter().map(|(to, ..)| *to).collect();
    assert_eq!(to, BTreeSet::from([on(1, 2), on(2, 3)]));
    assert!(own.iter().all(|(_, router, lsu)| *router == id(9) && lsu.links == one.router.own_links()));
    // Known already: nothing happens.
    assert_eq!(one.hello(2, 3), None);
    assert_eq!(one.router.take(), hue_routing::pwospf::Output::default());
}

#[test]
fn hellos_that_do_not_fit_are_dropped_by_reason() {
    let mut one = One::new();
    let other_area = Packet {
        router: id(2),
        area: Ipv4Addr::new(0, 0, 0, 1),
        body: Body::Hello(Hello { mask: mask(24), interval_s: 5 }),
    };
    let cases = [
        (1, on(1, 2), hello(2, 25, 5), Drop::Mask),
        (1, on(1, 2), hello(2, 24, 6), Drop::Interval),
        (1, on(1, 2), other_area.bytes(), Drop::Area),
        (1, on(2, 2), hello(2, 24, 5), Drop::Stranger),
        (3, on(1, 2), hello(2, 24, 5), Drop::Stranger),
        (1, on(1, 2), hello(9, 24, 5), Drop::Own),
        (1, LEFT, hello(2, 24, 5), Drop::Own),
        (1, on(1, 2), b"nonsense".to_vec(), Drop::Short),
    ];
    for (link, source, bytes, reason) in cases {
        assert_eq!(one.receive(link, source, &bytes), Some(reason));
    }
    assert_eq!(one.router.take(), hue_routing::pwospf::Output::default());
    assert!(one.router.interfaces().all(|(_, neighbours)| neighbours.is_empty()));
}

#[test]
fn a_neighbour_is_lost_three_intervals_after_its_last_hello() {
    let mut one = One::new();
    one.hello(1, 2);
    one.lsu((1, 2), 2, 7, &[("10.0.1.0/24", 9), ("10.8.0.0/16", 0)]);
    one.wait(100);
    let route = one.router.routes()[&prefix("10.8.0.0/16")];
    assert_eq!((route.next, route.hops, route.router), (NextHop { link: 1, via: on(1, 2) }, 1, id(2)));
    one.wait(9_900);
    one.hello(1, 2);
    one.wait(14_999);
    one.router.take();
    assert_eq!(one.router.own_links()[0].router, Some(id(2)));
    one.wait(1);
    let output = one.router.take();
    assert_eq!(output.changes, [RouteChange::Remove(prefix("10.8.0.0/16"))]);
    assert!(matches!(output.events[..], [Event::NeighbourDown { .. }]), "{output:?}");
    assert_eq!(one.router.own_links()[0].router, None);
}

#[test]
fn lsus_are_passed_on_to_all_but_their_sender() {
    let mut one = One::new();
    for (link, n) in [(1, 2), (1, 3), (2, 4)] {
        one.hello(link, n);
    }
    one.wait(2_000);
    one.router.take();
    assert_eq!(one.lsu((1, 2), 5, 1, &[("10.5.0.0/16", 0)]), None);
    let lsus = one.lsus();
    let to: Vec<_> = lsus.iter().map(|(to, ..)| *to).collect();
    assert_eq!(to, [on(1, 3), on(2, 4)]);
    assert!(lsus.iter().all(|(_, router, lsu)| (*router, lsu.sequence, lsu.ttl) == (id(5), 1, 29)));
    // A hop less than one is none; the router itself takes the LSU all the same.
    let last = lsu(5, 2, 1, &[("10.5.0.0/16", 0)]);
    assert_eq!(one.receive(1, on(1, 2), &last), None);
    assert_eq!(one.lsus(), []);
    assert_eq!(one.receive(1, on(1, 2), &lsu(5, 3, 0, &[])), None);
    assert_eq!((one.lsus(), one.router.counters().ttl_ended), (Vec::new(), 2));
}

#[test]
fn old_known_own_and_strange_lsus_are_dropped_by_reason() {
    let mut one = One::new();
    one.hello(1, 2);
    one.hello(2, 3);
    one.wait(2_000);
    assert_eq!(one.lsu((1, 2), 5, 0xffff, &[("10.5.0.0/16", 0)]), None);
    one.router.take();
    assert_eq!(one.lsu((2, 3), 5, 0xffff, &[("10.5.0.0/16", 0)]), Some(Drop::Duplicate));
    assert_eq!(one.lsu((2, 3), 5, 0xfffe, &[]), Some(Drop::Old));
    assert_eq!(one.lsu((2, 3), 5, 0x7fff, &[]), Some(Drop::Old), "neither is newer");
    assert_eq!(one.lsu((2, 4), 5, 0, &[]), Some(Drop::NotNeighbour));
    let sequence = one.router.sequence();
    let own: Vec<_> = [("10.0.1.0/24", 2), ("10.0.2.0/24", 3)].into();
    assert_eq!(one.lsu((2, 3), 9, sequence, &own), Some(Drop::OwnLsu));
    assert_eq!((one.lsus(), one.router.sequence()), (Vec::new(), sequence));
    // Numbers wrap.
    assert_eq!(one.lsu((2, 3), 5, 3, &[("10.6.0.0/16", 0)]), None);
    assert_eq!(one.lsus().len(), 1);
}

/// As routers send them that pass LSUs on without their own address.
#[test]
fn lsus_of_any_source_are_taken_if_asked_for() {
    let mut one = One::with(Config { any_source: true, ..config() });
    one.wait(6_000);
    let far = Ipv4Addr::new(10, 77, 0, 1);
    let said = lsu(5, 1, 30, &[("10.5.0.0/16", 0)]);
    assert_eq!(one.receive(1, far, &said), Some(Drop::Stranger), "no neighbours there");
    assert_eq!(one.receive(1, on(1, 7), &said), Some(Drop::NotNeighbour));
    one.hello(1, 2);
    one.hello(2, 3);
    one.wait(2_000);
    one.router.take();
    assert_eq!(one.receive(1, far, &hello(8, 24, 5)), Some(Drop::Stranger), "only LSUs");
    assert_eq!(one.receive(1, far, &said), None);
    // The only neighbour of the link must be its sender.
    assert_eq!(one.lsus().iter().map(|(to, ..)| *to).collect::<Vec<_>>(), [on(2, 3)]);
    assert_eq!(one.receive(1, on(1, 7), &lsu(5, 2, 30, &[])), None);
    assert_eq!(one.receive(3, far, &lsu(5, 3, 30, &[])), Some(Drop::Stranger));
}

#[test]
fn an_own_lsu_of_an_earlier_life_is_overtaken() {
    let mut one = One::new();
    one.hello(1, 2);
    one.wait(2_000);
    one.router.take();
    assert_eq!(one.lsu((1, 2), 9, 5_000, &[("10.77.0.0/16", 0)]), Some(Drop::OwnLsu));
    let lsus = one.lsus();
    assert!(matches!(&lsus[..], [(_, router, lsu)] if *router == id(9) && lsu.sequence == 5_001), "{lsus:?}");
    // One with the number of the last own LSU and other contents.
    one.wait(2_000);
    assert_eq!(one.lsu((1, 2), 9, 5_001, &[("10.77.0.0/16", 0)]), Some(Drop::OwnLsu));
    assert_eq!(one.lsus().len(), 1);
    // Again and again: at most one a second.
    for n in 0..100 {
        one.lsu((1, 2), 9, 6_000 + n, &[]);
        one.wait(10);
    }
    assert!(one.lsus().len() <= 2);
}

#[test]
fn a_neighbour_that_lost_its_number_is_believed_after_an_interval() {
    let mut one = One::new();
    one.hello(1, 2);
    one.hello(2, 3);
    one.wait(2_000);
    assert_eq!(one.lsu((1, 2), 2, 500, &[("10.0.1.0/24", 9)]), None);
    one.wait(4_999);
    assert_eq!(one.lsu((1, 2), 2, 1, &[("10.0.1.0/24", 9), ("10.8.0.0/16", 0)]), Some(Drop::Old));
    one.wait(1);
    assert_eq!(one.lsu((2, 3), 2, 1, &[]), Some(Drop::Old), "not from itself");
    one.router.take();
    assert_eq!(one.lsu((1, 2), 2, 1, &[("10.0.1.0/24", 9), ("10.8.0.0/16", 0)]), None);
    assert!(one.router.routes().contains_key(&prefix("10.8.0.0/16")));
    let lsus = one.lsus();
    let numbers: Vec<_> = lsus.iter().map(|(to, _, lsu)| (*to, lsu.sequence)).collect();
    assert_eq!(numbers, [(on(1, 2), 500), (on(2, 3), 1)], "its old one is returned, the new one passed on");
}

#[test]
fn only_links_that_both_ends_claim_are_used() {
    let mut one = One::new();
    one.hello(1, 2);
    // 2 does not claim the link to this router.
    one.lsu((1, 2), 2, 1, &[("10.0.1.0/24", 0), ("10.2.0.0/24", 3)]);
    assert_eq!(one.router.routes().len(), 0);
    one.wait(1_000);
    one.lsu((1, 2), 2, 2, &[("10.0.1.0/24", 9), ("10.2.0.0/24", 3), ("10.3.0.0/24", 4)]);
    let routes =
        |one: &One| one.router.routes().iter().map(|(p, r)| (p.to_string(), r.hops)).collect::<Vec<_>>();
    // Its subnets are there all the same, but what is behind 3 is not.
    assert_eq!(routes(&one), [("10.2.0.0/24".to_owned(), 1), ("10.3.0.0/24".to_owned(), 1)]);
    one.wait(1_000);
    // 3 claims another mask, 4 another subnet.
    one.lsu((1, 2), 3, 1, &[("10.2.0.0/25", 2), ("10.33.0.0/16", 0)]);
    one.lsu((1, 2), 4, 1, &[("10.4.0.0/24", 2), ("10.44.0.0/16", 0)]);
    one.wait(1_000);
    assert_eq!(routes(&one).len(), 2);
    one.lsu((1, 2), 3, 2, &[("10.2.0.0/24", 2), ("10.33.0.0/16", 0)]);
    one.wait(1_000);
    assert_eq!(one.router.routes()[&prefix("10.33.0.0/16")].hops, 2);
    assert_eq!(one.router.routes()[&prefix("10.33.0.0/16")].next.via, on(1, 2));
}

#[test]
fn own_subnets_have_no_route_and_the_nearest_router_wins() {
    let mut one = One::with(Config { advertised: vec![prefix("10.99.0.0/16")], ..config() });
    one.wait(6_000);
    one.hello(1, 2);
    one.hello(2, 3);
    one.lsu(
        (1, 2),
        2,
        1,
        &[
            ("10.0.1.0/24", 9),
            ("10.0.2.0/24", 0),
            ("10.99.0.0/16", 0),
            ("10.7.0.0/16", 0),
            ("10.22.0.0/30", 4),
        ],
    );
    one.lsu((2, 3), 3, 1, &[("10.0.2.0/24", 9), ("10.7.0.0/16", 0), ("0.0.0.0/0", 0)]);
    one.lsu((1, 2), 4, 1, &[("10.22.0.0/30", 2), ("0.0.0.0/0", 0)]);
    one.wait(1_000);
    let got: Vec<_> =
        one.router.routes().iter().map(|(p, r)| (p.to_string(), r.next.via, r.router, r.hops)).collect();
    let expected = [
        ("0.0.0.0/0", on(2, 3), id(3), 1),
        ("10.7.0.0/16", on(1, 2), id(2), 1),
        ("10.22.0.0/30", on(1, 2), id(2), 1),
    ];
    assert_eq!(got, expected.map(|(p, via, router, hops)| (p.to_owned(), via, router, hops)));
    let own: Vec<_> = one.router.own_links().iter().map(|link| link.prefix.to_string()).collect();
    assert_eq!(own, ["10.0.1.0/24", "10.0.2.0/24", "10.99.0.0/16"]);
}

#[test]
fn a_change_of_interfaces_counts_once() {
    let mut one = One::new();
    one.hello(1, 2);
    one.hello(2, 3);
    one.wait(3_000);
    one.router.take();
    let both = vec![interface(1, "10.0.1.0/24"), interface(2, "10.0.2.0/24")];
    one.router.set_interfaces(one.now, both.clone());
    assert_eq!(one.router.take(), hue_routing::pwospf::Output::default(), "nothing has changed");
    let counters = one.router.counters().clone();
    // One goes, one comes, one stays: one LSU for all.
    one.router.set_interfaces(one.now, vec![interface(1, "10.0.1.0/24"), interface(4, "10.0.4.0/24")]);
    let output = one.router.take();
    assert_eq!(output.events.len(), 1);
    let to: Vec<_> = output.packets.iter().map(|sent| (sent.link, sent.destination)).collect();
    assert_eq!(to, [(4, ALL_ROUTERS), (1, on(1, 2))]);
    assert_eq!(one.router.counters().originated, counters.originated + 1);
    assert_eq!(one.router.counters().computations, counters.computations + 1);
    // Another mask is another interface; one that cannot have neighbours is only advertised.
    one.wait(2_000);
    one.router.take();
    one.router.set_interfaces(one.now, vec![interface(1, "10.0.1.0/25"), interface(5, "10.5.5.5/32")]);
    assert!(one.router.interfaces().all(|(_, neighbours)| neighbours.is_empty()));
    assert!(one.router.take().packets.iter().all(|sent| sent.link == 1));
    assert_eq!(one.router.own_links().len(), 2);
}

#[test]
fn lsus_come_in_their_interval_and_after_changes() {
    let mut one = One::new();
    one.hello(1, 2);
    one.wait(1_000);
    one.router.take();
    for second in 1..120 {
        one.hello(1, 2);
        one.wait(1_000);
        let count = one.lsus().len();
        assert_eq!(count, usize::from(second % 30 == 0), "second {second}");
    }
    // Links that flap: at most one LSU a second.
    let before = one.router.counters().originated;
    for n in 0..40 {
        one.router
            .set_interfaces(one.now, vec![interface(1, "10.0.1.0/24"), interface(3 + n % 2, "10.0.3.0/24")]);
        one.wait(100);
        one.hello(1, 2);
    }
    assert!((4..=5).contains(&(one.router.counters().originated - before)));
}

#[test]
fn the_first_lsu_waits_for_the_neighbours_hellos() {
    let mut one = One::with(config());
    one.hello(1, 2);
    one.wait(5_999);
    assert_eq!(one.lsus(), []);
    one.wait(1);
    let lsus = one.lsus();
    assert!(matches!(&lsus[..], [(_, _, lsu)] if lsu.sequence == 11 && lsu.ttl == 64), "{lsus:?}");
}

#[test]
fn neighbours_and_routers_have_limits() {
    let mut one = One::new();
    let crowd = |n: usize| Ipv4Addr::new(10, 0, 1, 2 + n as u8);
    let from = |n: usize| {
        let body = Body::Hello(Hello { mask: mask(24), interval_s: 5 });
        let router = RouterId::new(Ipv4Addr::new(8, 8, 8, n as u8)).unwrap();
        Packet { router, area: Ipv4Addr::UNSPECIFIED, body }.bytes()
    };
    for n in 0..NEIGHBOURS_MAX {
        assert_eq!(one.receive(1, crowd(n), &from(n)), None, "{n}");
    }
    assert_eq!(one.receive(1, crowd(NEIGHBOURS_MAX), &from(NEIGHBOURS_MAX)), Some(Drop::NeighboursFull));
    let hellos = one.router.take().packets.iter().filter(|sent| sent.destination == ALL_ROUTERS).count();
    assert_eq!(hellos, 1, "one answer a second");
    let said = |n: usize| {
        let body = Body::Lsu(Lsu { sequence: 1, ttl: 1, links: Vec::new() });
        let router = RouterId::new(Ipv4Addr::from_bits(0x0700_0000 + n as u32)).unwrap();
        Packet { router, area: Ipv4Addr::UNSPECIFIED, body }.bytes()
    };
    for n in 0..ROUTERS_MAX {
        assert_eq!(one.receive(1, crowd(0), &said(n)), None, "{n}");
    }
    assert_eq!(one.receive(1, crowd(0), &said(ROUTERS_MAX)), Some(Drop::DatabaseFull));
    assert!(one.router.counters().computations < 5, "not one for each LSU");
    // They expire.
    one.wait(90_000);
    assert_eq!(one.router.database().count(), 0);
}

#[test]
fn a_neighbours_address_can_get_another_router() {
    let mut one = One::new();
    one.hello(1, 2);
    one.router.take();
    assert_eq!(one.receive(1, on(1, 2), &hello(7, 24, 5)), None);
    let events = one.router.take().events;
    assert!(
        matches!(&events[..], [Event::NeighbourDown { router: a, .. }, Event::NeighbourUp { router: b, .. }] if (*a, *b) == (id(2), id(7))),
        "{events:?}"
    );
}
