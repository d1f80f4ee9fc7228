//! Addresses, routes and neighbours, verified with `ip`, which also sets foreign items that must stay.

use std::net::IpAddr;

use crate::common::{Names, ip, root};
use hue_host::addresses::AddressState;
use hue_host::links::Links;
use hue_host::netlink::{Dump, Groups, Incoming, Object, Received, Socket, neighbour_state, protocol};
use hue_host::routes::{MAIN, RouteKind, Scope, Wanted};
use hue_host::{Namespace, addresses, neighbours, routes};
use hue_tables::{AnyPrefix, Prefix4};
use hue_wire::Mac;
use nix::errno::Errno;

fn prefix(text: &str) -> AnyPrefix {
    text.parse().unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A namespace with `a` (10.0.0.1/24) and `b` (10.0.1.1/24), both up.
fn place(names: &Names) -> (Namespace, Links, u32, u32) {
    let namespace = names.namespace("inet");
    let mut links = Links::inside(&namespace).unwrap();
    links.create_veth("a", "b", None).unwrap();
    for name in ["lo", "a", "b"] {
        links.set_up(name, true).unwrap();
    }
    let (a, b) = (links.index_of("a").unwrap(), links.index_of("b").unwrap());
    addresses::add(links.socket(), a, address("10.0.0.1"), 24).unwrap();
    addresses::add(links.socket(), b, address("10.0.1.1"), 24).unwrap();
    (namespace, links, a, b)
}

#[test]
fn addresses_are_set_and_removed() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, a, _) = place(&names);
    let socket = links.socket();
    addresses::add(socket, a, address("10.0.0.1"), 24).unwrap();
    addresses::add(socket, a, address("192.0.2.0"), 31).unwrap();
    addresses::add(socket, a, address("192.0.2.7"), 32).unwrap();
    ip(&namespace, "addr add 172.16.0.1/12 dev a");
    let list = addresses::list(socket).unwrap();
    let of = |text: &str| *list.iter().find(|found| found.address == address(text)).unwrap();
    assert_eq!((of("10.0.0.1").len, of("10.0.0.1").broadcast), (24, Some([10, 0, 0, 255].into())));
    assert_eq!((of("192.0.2.0").broadcast, of("192.0.2.7").broadcast), (None, None));
    assert_eq!(of("10.0.0.1").link, a);
    assert_eq!((of("10.0.0.1").protocol, of("172.16.0.1").protocol), (protocol::OURS, 0));
    assert!(ip(&namespace, "addr show dev a").contains("inet 10.0.0.1/24 brd 10.0.0.255 scope global a"));
    assert!(addresses::remove(socket, a, address("192.0.2.0"), 31).unwrap());
    assert!(
        !addresses::remove(socket, a, address("192.0.2.0"), 31).unwrap(),
        "a second remove has no effect"
    );
    assert!(addresses::add(socket, 9999, address("192.0.2.9"), 32).unwrap_err().is_missing());
}

#[test]
fn routes_are_added_listed_and_removed() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, a, b) = place(&names);
    let mut told = Socket::open_in(&namespace, Groups::ROUTE4.and(Groups::NEIGHBOUR)).unwrap();
    told.set_nonblocking(true).unwrap();
    let wanted = [
        Wanted { table: MAIN, prefix: prefix("10.9.0.0/16"), via: Some(address("10.0.1.2")), link: 0 },
        Wanted { table: MAIN, prefix: prefix("10.8.0.0/16"), via: None, link: a },
        Wanted { table: MAIN, prefix: prefix("0.0.0.0/0"), via: Some(address("10.0.0.2")), link: a },
        Wanted { table: MAIN, prefix: prefix("10.7.0.1/32"), via: Some(address("10.200.0.1")), link: 0 },
    ];
    let failures = routes::add(links.socket(), &wanted).unwrap();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!((failures[0].index, failures[0].errno), (3, Errno::ENETUNREACH));
    assert_eq!(failures[0].reason, "Nexthop has invalid gateway");
    let failures = routes::add(links.socket(), &wanted[..2]).unwrap();
    assert!(failures.iter().all(|failure| failure.errno == Errno::EEXIST) && failures.len() == 2);
    ip(&namespace, "route add 10.5.0.0/16 via 10.0.0.3 metric 5");
    ip(&namespace, "route add unreachable 10.6.0.0/16");
    ip(&namespace, "route add 10.4.0.0/16 nexthop via 10.0.0.3 weight 3 nexthop via 10.0.1.3 onlink dev b");

    let ours = routes::ours(links.socket()).unwrap();
    assert_eq!(ours.len(), 3);
    let by_router = ours.iter().find(|route| route.prefix == wanted[0].prefix).unwrap();
    assert_eq!((by_router.hops[0].via, by_router.hops[0].link), (wanted[0].via, b));
    let on_link = ours.iter().find(|route| route.prefix == wanted[1].prefix).unwrap();
    assert_eq!((on_link.scope, on_link.hops[0].via, on_link.hops[0].link), (Scope::Link, None, a));
    assert!(ip(&namespace, "route show").contains("10.9.0.0/16 via 10.0.1.2 dev b proto 72"));

    let all = routes::list(links.socket()).unwrap();
    let of = |text: &str| all.iter().find(|route| route.prefix == prefix(text)).unwrap();
    assert_eq!((of("10.5.0.0/16").metric, of("10.5.0.0/16").protocol), (5, 3));
    assert_eq!((of("10.6.0.0/16").kind, of("10.6.0.0/16").hops.len()), (RouteKind::Unreachable, 0));
    let multipath = &of("10.4.0.0/16").hops;
    assert_eq!(
        multipath.iter().map(|hop| (hop.weight, hop.onlink)).collect::<Vec<_>>(),
        [(3, false), (1, true)]
    );
    assert_eq!((of("10.0.0.1/32").kind, of("10.0.0.1/32").table), (RouteKind::Local, 255));
    assert_eq!(of("10.0.0.255/32").kind, RouteKind::Broadcast);
    assert_eq!((of("10.0.0.0/24").protocol, of("10.0.0.0/24").scope), (2, Scope::Link));

    // A foreign route is not removed.
    let theirs =
        Wanted { table: MAIN, prefix: prefix("10.5.0.0/16"), via: Some(address("10.0.0.3")), link: 0 };
    assert_eq!(routes::remove(links.socket(), [&theirs]).unwrap()[0].errno, Errno::ESRCH);
    assert!(routes::remove(links.socket(), &wanted[..3]).unwrap().is_empty());
    assert!(routes::ours(links.socket()).unwrap().is_empty());

    let (mut added, mut gone) = (Vec::new(), Vec::new());
    while told
        .receive(|incoming| {
            let Incoming::Message(message) = incoming else { panic!("{incoming:?}") };
            if let Object::Route(route) = message.notice().unwrap().object {
                let list = if message.notice().unwrap().gone { &mut gone } else { &mut added };
                list.push(route.prefix);
            }
        })
        .unwrap()
        == Received::Some
    {}
    assert!(wanted[..3].iter().all(|route| added.contains(&route.prefix) && gone.contains(&route.prefix)));
    assert_eq!(added.len(), 6);
}

#[test]
fn neighbours_are_set_probed_and_removed() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, a, b) = place(&names);
    let mac = |last| Mac([2, 0, 0, 0, 0, last]);
    let list = [(a, address("10.0.0.2"), mac(2)), (b, address("10.0.1.2"), mac(3))];
    assert!(neighbours::set(links.socket(), &list).unwrap().is_empty());
    assert!(neighbours::set(links.socket(), &[(a, address("10.0.0.2"), mac(4))]).unwrap().is_empty());
    ip(&namespace, "neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 dev a");
    let found = neighbours::list(links.socket()).unwrap();
    let of = |text: &str| *found.iter().find(|found| found.address == address(text)).unwrap();
    assert_eq!((of("10.0.0.2").usable(), of("10.0.0.2").state), (Some(mac(4)), neighbour_state::PERMANENT));
    assert_eq!((of("10.0.0.2").protocol, of("10.0.0.9").protocol), (protocol::OURS, 0));
    assert!(neighbours::remove(links.socket(), &[(a, address("10.0.0.2"))]).unwrap().is_empty());
    let failures = neighbours::remove(links.socket(), &[(a, address("10.0.0.2"))]).unwrap();
    // Some kernels keep it for a moment, as failed.
    assert!(failures.iter().all(|failure| failure.errno == Errno::ENOENT), "{failures:?}");

    // No host has that address, so the kernel tries to resolve it.
    links.socket().execute(neighbours::probe(a, address("10.0.0.77"))).unwrap();
    let found = neighbours::list(links.socket()).unwrap();
    let asked = found.iter().find(|found| found.address == address("10.0.0.77")).unwrap();
    assert!(asked.state & (neighbour_state::INCOMPLETE | neighbour_state::FAILED) != 0, "{asked:?}");
    assert_eq!(asked.usable(), None);
}

/// The maximum number of routes of a network, in batches; rejected ones are reported with their index.
#[test]
fn many_routes_at_once() {
    if !root() {
        return;
    }
    const MANY: u32 = 20_000;
    let names = Names::new();
    let (_namespace, mut links, a, _) = place(&names);
    let route = |index: u32| {
        let via = if index % 5_000 == 17 { "172.31.0.1" } else { "10.0.0.2" };
        let prefix = Prefix4::containing(0x3000_0000 + (index << 8), 24).into();
        Wanted { table: MAIN, prefix, via: Some(address(via)), link: 0 }
    };
    let wanted: Vec<Wanted> = (0..MANY).map(route).collect();
    let failures = routes::add(links.socket(), &wanted).unwrap();
    assert_eq!(failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [17, 5_017, 10_017, 15_017]);
    assert_eq!(failures[1].what, format!("add route to {} via 172.31.0.1", wanted[5_017].prefix));
    let ours = routes::ours(links.socket()).unwrap();
    assert_eq!(ours.len(), MANY as usize - 4);
    assert!(ours.iter().all(|route| route.hops[0].link == a));
    let dumped = links.socket().dump(Dump::Routes4, |message| message.notice()).unwrap();
    assert!(dumped.len() > ours.len());
    assert_eq!(routes::remove(links.socket(), &wanted).unwrap().len(), 4);
    assert!(routes::ours(links.socket()).unwrap().is_empty());
}

/// More notifications than the buffer can hold: the reader is informed, and the socket still works.
#[test]
fn an_overrun_is_reported() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, ..) = place(&names);
    let mut told = Socket::open_in(&namespace, Groups::ROUTE4).unwrap();
    told.set_receive_buffer(4096).unwrap();
    told.set_nonblocking(true).unwrap();
    let wanted: Vec<Wanted> = (0..2_000)
        .map(|index| Wanted {
            table: MAIN,
            prefix: Prefix4::containing(0x3000_0000 + (index << 8), 24).into(),
            via: Some(address("10.0.0.2")),
            link: 0,
        })
        .collect();
    routes::add(links.socket(), &wanted).unwrap();
    let mut overrun = false;
    loop {
        match told.receive(|_| {}).unwrap() {
            Received::Overrun => overrun = true,
            Received::Some => {}
            Received::Nothing => break,
        }
    }
    assert!(overrun);
    routes::remove(links.socket(), &wanted[..1]).unwrap();
    assert_eq!(told.receive(|_| {}).unwrap(), Received::Some);
}

fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..400 {
        if so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("still not: {what}");
}

#[test]
fn ipv6_addresses_have_no_detection_of_duplicates() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, a, b) = place(&names);
    let socket = links.socket();
    addresses::add(socket, a, address("2001:db8::1"), 64).unwrap();
    addresses::add(socket, a, address("2001:db8::1"), 64).unwrap();
    // With detection, an address is tentative first. The other end of the pair has it, so it stays unused.
    addresses::add(socket, b, address("2001:db8:1::1"), 64).unwrap();
    ip(&namespace, "addr add 2001:db8:1::1/64 dev a");
    let state = |links: &mut Links, link: u32, text: &str| {
        let list = addresses::list(links.socket()).unwrap();
        list.iter().find(|found| (found.link, found.address) == (link, address(text))).unwrap().state
    };
    assert_eq!(state(&mut links, a, "2001:db8::1"), AddressState::Usable);
    assert_eq!(state(&mut links, b, "2001:db8:1::1"), AddressState::Usable);
    assert_ne!(state(&mut links, a, "2001:db8:1::1"), AddressState::Usable);
    wait_until("a duplicate", || state(&mut links, a, "2001:db8:1::1") == AddressState::Duplicate);

    let socket = links.socket();
    let list = addresses::list(socket).unwrap();
    let own = list.iter().find(|found| found.address == address("2001:db8::1")).unwrap();
    assert_eq!((own.len, own.protocol, own.broadcast), (64, protocol::OURS, None));
    assert!(addresses::remove(socket, a, address("2001:db8::1"), 64).unwrap());
    assert!(!addresses::remove(socket, a, address("2001:db8::1"), 64).unwrap());
}

#[test]
fn ipv6_routes_are_added_listed_and_removed() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, a, b) = place(&names);
    addresses::add(links.socket(), a, address("2001:db8::1"), 64).unwrap();
    addresses::add(links.socket(), b, address("2001:db8:1::1"), 64).unwrap();
    let mut told = Socket::open_in(&namespace, Groups::ROUTE6).unwrap();
    told.set_nonblocking(true).unwrap();
    let wanted = [
        Wanted {
            table: MAIN,
            prefix: prefix("2001:db8:9::/48"),
            via: Some(address("2001:db8:1::2")),
            link: 0,
        },
        Wanted { table: MAIN, prefix: prefix("2001:db8:8::/48"), via: None, link: a },
        Wanted { table: MAIN, prefix: prefix("::/0"), via: Some(address("fe80::7")), link: a },
        Wanted {
            table: MAIN,
            prefix: prefix("2001:db8:7::1/128"),
            via: Some(address("2001:db8:77::1")),
            link: 0,
        },
    ];
    let failures = routes::add(links.socket(), &wanted).unwrap();
    assert_eq!(failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [3], "{failures:?}");
    let failures = routes::add(links.socket(), &wanted[..3]).unwrap();
    assert!(failures.iter().all(|failure| failure.errno == Errno::EEXIST) && failures.len() == 3);
    let shown = ip(&namespace, "-6 route show");
    assert!(shown.contains("default via fe80::7 dev a proto 72 metric 1 onlink"), "{shown}");

    ip(&namespace, "-6 route add 2001:db8:4::/48 nexthop via 2001:db8::3 weight 3 nexthop via fe80::3 dev b");
    ip(&namespace, "-6 route add 2001:db8:5::/48 from 2001:db8:2::/48 via 2001:db8::3");
    ip(&namespace, "-6 route add prohibit 2001:db8:6::/48");
    ip(&namespace, "nexthop add id 9 via 2001:db8::3 dev a");
    ip(&namespace, "-6 route add 2001:db8:3::/48 nhid 9");
    ip(&namespace, "route add 10.77.0.0/16 via inet6 fe80::3 dev a");
    ip(&namespace, "-6 route add 2001:db8:2::/48 encap seg6 mode encap segs 2001:db8::9 dev a");
    let all = routes::list(links.socket()).unwrap();
    let of = |text: &str| all.iter().find(|route| route.prefix == prefix(text)).unwrap();
    let hops = &of("2001:db8:4::/48").hops;
    assert_eq!(hops.iter().map(|hop| (hop.link, hop.weight)).collect::<Vec<_>>(), [(a, 3), (b, 1)]);
    assert_eq!((hops[1].via, of("2001:db8:4::/48").metric), (Some(address("fe80::3")), 1024));
    assert_eq!(of("2001:db8:5::/48").source.as_deref(), Some(&prefix("2001:db8:2::/48")));
    assert_eq!(of("2001:db8:6::/48").kind, RouteKind::Prohibit);
    assert_eq!((of("2001:db8:3::/48").object, of("2001:db8:3::/48").hops[0].link), (9, a));
    assert_eq!((of("2001:db8::1/128").kind, of("2001:db8::1/128").table), (RouteKind::Local, 255));
    assert_eq!(of("2001:db8::/64").protocol, 2);
    assert_eq!(of("10.77.0.0/16").hops[0].link, 0, "a gateway of the other family");
    assert_eq!(of("2001:db8:2::/48").hops[0].link, 0, "the kernel adds a header");

    assert_eq!(routes::ours(links.socket()).unwrap().len(), 3);
    let theirs = Wanted { table: MAIN, prefix: prefix("2001:db8:6::/48"), via: None, link: a };
    assert_eq!(routes::remove(links.socket(), [&theirs]).unwrap()[0].errno, Errno::ESRCH);
    assert!(routes::remove(links.socket(), &wanted[..3]).unwrap().is_empty());
    assert!(routes::ours(links.socket()).unwrap().is_empty());
    let mut gone = Vec::new();
    while told
        .receive(|incoming| {
            let Incoming::Message(message) = incoming else { panic!("{incoming:?}") };
            if let Some((true, Object::Route(route))) =
                message.notice().map(|notice| (notice.gone, notice.object))
            {
                gone.push(route.prefix);
            }
        })
        .unwrap()
        == Received::Some
    {}
    assert!(wanted[..3].iter().all(|route| gone.contains(&route.prefix)), "{gone:?}");
}

#[test]
fn ipv6_neighbours_are_set_probed_and_removed() {
    if !root() {
        return;
    }
    let names = Names::new();
    let (namespace, mut links, a, _) = place(&names);
    addresses::add(links.socket(), a, address("2001:db8::1"), 64).unwrap();
    let mac = |last| Mac([2, 0, 0, 0, 0, last]);
    let list = [(a, address("2001:db8::2"), mac(2)), (a, address("fe80::2"), mac(3))];
    assert!(neighbours::set(links.socket(), &list).unwrap().is_empty());
    ip(&namespace, "neigh add 2001:db8::9 lladdr 02:00:00:00:00:09 router dev a");
    let found = neighbours::list(links.socket()).unwrap();
    let of = |text: &str| *found.iter().find(|found| found.address == address(text)).unwrap();
    assert_eq!((of("fe80::2").usable(), of("fe80::2").protocol), (Some(mac(3)), protocol::OURS));
    assert_eq!((of("2001:db8::2").is_router(), of("2001:db8::9").is_router()), (false, true));
    assert!(neighbours::remove(links.socket(), &[(a, address("fe80::2"))]).unwrap().is_empty());
    links.socket().execute(neighbours::probe(a, address("2001:db8::77"))).unwrap();
    let found = neighbours::list(links.socket()).unwrap();
    let asked = found.iter().find(|found| found.address == address("2001:db8::77")).unwrap();
    assert_eq!(asked.usable(), None);
}
