//! The control namespace of a network is created once, and only differences in hueplane's own items are
//! corrected.

use std::net::IpAddr;
use std::process::Command;

use crate::common::{Names, ip, root};
use hue_host::cgroup::{Limits, Trees};
use hue_host::control::{
    Changes, Config, ControlNamespace, Families, Owner, PortConfig, StaticRoute, StaticTarget,
    interface_names,
};
use hue_host::links::Links;
use hue_host::{HostError, exec, netns, sysctl};
use hue_wire::Mac;

fn owner(names: &Names) -> Owner {
    Owner { prefix: names.start.clone(), node: names.start.clone() }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn port(interface: &str, last: u8, addresses: &[&str]) -> PortConfig {
    let addresses = addresses.iter().map(|text| {
        let (address, len) = text.split_once('/').unwrap();
        (address.parse().unwrap(), len.parse().unwrap())
    });
    PortConfig {
        interface: interface.to_owned(),
        mac: Mac([2, 0, 0, 0, 1, last]),
        mtu_bytes: 1500,
        no_arp: false,
        addresses: addresses.collect(),
    }
}

fn route(prefix: &str, target: StaticTarget) -> StaticRoute {
    StaticRoute { slice: 0, prefix: prefix.parse().unwrap(), target }
}

fn config() -> Config {
    Config {
        families: Families::V4,
        carries: false,
        ports: vec![port("left", 1, &["10.1.0.1/24"]), port("right", 2, &["10.2.0.1/24", "10.2.0.9/24"])],
        // Through a gateway on the link of the second route.
        routes: vec![
            route("10.9.0.0/16", StaticTarget::Via(address("10.77.0.1"))),
            route("10.77.0.0/16", StaticTarget::Port(1)),
        ],
        neighbours: vec![(1, address("10.2.0.2"), Mac([2, 0, 0, 0, 0, 9]))],
    }
}

/// Creates the network with persistent TAPs, as the daemon does.
fn ready(names: &Names, taps: &[&str]) -> ControlNamespace {
    let limits = Limits { processes: Some(100), ..Limits::default() };
    let limits = if Trees::detect().unwrap().is_complete() { limits } else { Limits::default() };
    let ensured = ControlNamespace::ensure(&owner(names), "red", &limits, Families::V4).unwrap();
    for tap in taps {
        ip(&ensured.control.namespace, &format!("tuntap add {tap} mode tap"));
    }
    ensured.control
}

#[test]
fn a_namespace_is_created_once() {
    if !root() {
        return;
    }
    let names = Names::new();
    let first = ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).unwrap();
    assert!(first.created && !first.changes.is_empty());
    let again = ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).unwrap();
    assert!(!again.created);
    assert_eq!(again.changes, Changes::default());
    let namespace = &first.control.namespace;
    for (key, value) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/all/arp_ignore", "1"),
    ] {
        assert_eq!(sysctl::get(namespace, key).unwrap().unwrap(), value, "{key}");
    }
    assert!(ip(namespace, "-4 addr show lo").contains("127.0.0.1"));
    assert_eq!(owner(&names).networks().unwrap(), ["red"]);

    sysctl::set(namespace, "net/ipv4/ip_forward", "0").unwrap();
    let corrected =
        ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).unwrap();
    assert_eq!(corrected.changes.words, ["net/ipv4/ip_forward set to 1"]);
    assert!(ControlNamespace::delete(&owner(&names), "red").unwrap());
    assert!(!ControlNamespace::delete(&owner(&names), "red").unwrap(), "a second delete has no effect");
    assert!(owner(&names).networks().unwrap().is_empty());
}

#[test]
fn only_differences_are_corrected() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready(&names, &["left", "right"]);
    let namespace = &control.namespace;
    let first = control.configure(&config()).unwrap();
    assert_eq!((first.routes, first.neighbours, first.refused.len()), (2, 1, 0), "{first:?}");
    assert_eq!(control.configure(&config()).unwrap(), Changes::default());
    let shown = ip(namespace, "route show");
    assert!(shown.contains("10.9.0.0/16 via 10.77.0.1 dev right proto 72"), "{shown}");
    assert!(ip(namespace, "neigh show").contains("10.2.0.2 dev right lladdr 02:00:00:00:00:09 PERMANENT"));
    for port in ["left", "right"] {
        let key = format!("net/ipv4/neigh/{port}/base_reachable_time_ms");
        assert_eq!(sysctl::get(namespace, &key).unwrap().as_deref(), Some("10000"));
        assert!(sysctl::set(namespace, &key, "30000").unwrap());
        let corrected = control.configure(&config()).unwrap();
        assert_eq!(corrected.words, [format!("{key} set to 10000")]);
    }
    let ipv6 = ip(namespace, "-6 addr show dev left");
    assert!(ipv6.is_empty(), "{ipv6}");

    // Everything that the owner of the network sets manually stays.
    ip(namespace, "addr add 10.3.0.1/24 dev left");
    ip(namespace, "route add 10.8.0.0/16 via 10.1.0.2");
    ip(namespace, "neigh add 10.1.0.7 lladdr 02:00:00:00:00:07 dev left");
    ip(namespace, "tuntap add own mode tap");
    assert_eq!(control.configure(&config()).unwrap(), Changes::default());

    // hueplane's items are restored.
    ip(namespace, "addr del 10.2.0.9/24 dev right");
    ip(namespace, "route del 10.9.0.0/16");
    ip(namespace, "neigh del 10.2.0.2 dev right");
    ip(namespace, "link set left address 02:00:00:00:0f:0f");
    ip(namespace, "link set left mtu 1200");
    let changes = control.configure(&config()).unwrap();
    assert_eq!(
        changes.words,
        ["left: MAC set to 02:00:00:00:01:01", "left: MTU set to 1500", "right: 10.2.0.9/24 added"]
    );
    assert_eq!((changes.routes, changes.neighbours), (1, 1));
    // The kernel removes the routes of a link that goes down.
    ip(namespace, "link set right down");
    let changes = control.configure(&config()).unwrap();
    assert_eq!((changes.words.as_slice(), changes.routes), (["right brought up".to_owned()].as_slice(), 2));
    assert_eq!(control.configure(&config()).unwrap(), Changes::default());

    // Removing some of everything.
    let mut less = config();
    less.ports.remove(0);
    less.ports[0].addresses.remove(0);
    less.routes = vec![route("10.9.0.0/16", StaticTarget::Via(address("10.2.0.5")))];
    less.neighbours.clear();
    let changes = control.configure(&less).unwrap();
    assert_eq!(changes.words, ["left removed", "right: 10.2.0.1/24 removed"]);
    assert_eq!((changes.routes, changes.neighbours), (3, 1), "one of them leads elsewhere");
    assert_eq!(control.configure(&less).unwrap(), Changes::default());
    let mut links = Links::inside(namespace).unwrap();
    assert!(links.find("left").unwrap().is_none() && links.find("own").unwrap().is_some());
}

/// Routes with several next hops, of both families: what is as it should be stays, the rest is corrected.
#[test]
fn routes_with_several_next_hops_are_corrected() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready(&names, &["left", "right"]);
    let namespace = &control.namespace;
    let several = |weight| StaticTarget::Vias(vec![(address("10.2.0.2"), 1), (address("10.1.0.2"), weight)]);
    let mut config = config();
    config.routes = vec![route("10.9.0.0/16", several(3)), route("10.8.0.0/16", several(256))];
    let first = control.configure(&config).unwrap();
    assert_eq!((first.routes, first.refused.len()), (2, 0), "{first:?}");
    assert_eq!(control.configure(&config).unwrap(), Changes::default());
    let shown = ip(namespace, "route show 10.9.0.0/16");
    assert!(shown.contains("nexthop via 10.1.0.2 dev left weight 3"), "{shown}");
    assert!(shown.contains("nexthop via 10.2.0.2 dev right weight 1"), "{shown}");
    // Another weight, and a route that somebody removed.
    config.routes[0] = route("10.9.0.0/16", several(2));
    ip(namespace, "route del 10.8.0.0/16");
    assert_eq!(control.configure(&config).unwrap().routes, 3);
    assert_eq!(control.configure(&config).unwrap(), Changes::default());
    // One next hop instead, and several again.
    config.routes[0] = route("10.9.0.0/16", StaticTarget::Via(address("10.2.0.2")));
    assert_eq!(control.configure(&config).unwrap().routes, 2);
    config.routes[0] = route("10.9.0.0/16", several(1));
    assert_eq!(control.configure(&config).unwrap().routes, 2);
    assert_eq!(control.configure(&config).unwrap(), Changes::default());
    // A gateway that is on no link.
    config.routes[0] =
        route("10.9.0.0/16", StaticTarget::Vias(vec![(address("10.2.0.2"), 1), (address("172.16.0.1"), 1)]));
    let refused = control.configure(&config).unwrap().refused;
    assert!(refused[0].contains("add route to 10.9.0.0/16 via 10.2.0.2, 172.16.0.1"), "{refused:?}");
}

fn config6() -> Config {
    Config {
        families: Families::V6,
        carries: false,
        ports: vec![port("left", 1, &["2001:db8:1::1/64"]), port("right", 2, &["2001:db8:2::1/64"])],
        routes: vec![
            route("2001:db8:9::/48", StaticTarget::Via(address("2001:db8:77::1"))),
            route("2001:db8:77::/48", StaticTarget::Port(1)),
            route("::/0", StaticTarget::ViaPort(address("fe80::9"), 0)),
        ],
        neighbours: vec![(1, address("2001:db8:2::2"), Mac([2, 0, 0, 0, 0, 9]))],
    }
}

/// As `ready`, with IPv6 only. The interfaces have carrier, as the daemon's TAPs have.
fn ready6(names: &Names) -> ControlNamespace {
    let ensured = ControlNamespace::ensure(&owner(names), "six", &Limits::default(), Families::V6).unwrap();
    for port in ["left", "right"] {
        ip(&ensured.control.namespace, &format!("link add {port} type veth peer name {port}-far"));
        ip(&ensured.control.namespace, &format!("link set {port}-far up"));
    }
    ensured.control
}

#[test]
fn a_network_with_ipv6_is_set_up_and_corrected() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready6(&names);
    let namespace = &control.namespace;
    let again = ControlNamespace::ensure(&owner(&names), "six", &Limits::default(), Families::V6).unwrap();
    assert_eq!(again.changes, Changes::default());
    let first = control.configure(&config6()).unwrap();
    assert_eq!((first.routes, first.neighbours, first.refused.len()), (3, 1, 0), "{first:?}");
    assert_eq!(control.configure(&config6()).unwrap(), Changes::default());
    let looked = control.look(&config6(), &[]).unwrap();
    assert!(looked.ports.is_empty(), "{looked:?}");
    for (key, value) in [
        ("net/ipv6/conf/all/forwarding", "1"),
        ("net/ipv6/conf/left/forwarding", "1"),
        ("net/ipv6/conf/left/accept_ra", "0"),
        ("net/ipv6/conf/left/accept_dad", "0"),
        ("net/ipv6/neigh/left/base_reachable_time_ms", "10000"),
        ("net/ipv4/ip_forward", "0"),
    ] {
        assert_eq!(sysctl::get(namespace, key).unwrap().as_deref(), Some(value), "{key}");
    }
    // Both addresses are usable at once, and the kernel answers for the subnet-router address.
    let shown = ip(namespace, "-6 addr show dev left");
    assert!(
        shown.contains("inet6 2001:db8:1::1/64") && shown.contains("inet6 fe80::ff:fe00:101/64"),
        "{shown}"
    );
    assert!(!shown.contains("tentative"), "{shown}");
    assert!(ip(namespace, "-6 route show table local").contains("anycast 2001:db8:1:: dev left"));
    assert!(ip(namespace, "-4 addr show dev left").is_empty());
    let shown = ip(namespace, "-6 route show");
    assert!(shown.contains("2001:db8:9::/48 via 2001:db8:77::1 dev right proto 72 metric 1"), "{shown}");
    assert!(shown.contains("default via fe80::9 dev left proto 72 metric 1"), "{shown}");

    // Addresses stay while the link is down; the kernel makes the link-local one again.
    ip(namespace, "link set left down");
    let down: Vec<String> =
        control.look(&config6(), &[]).unwrap().ports.iter().map(|(_, what)| what.to_string()).collect();
    assert_eq!(down, ["is down", "lacks address fe80::ff:fe00:101/64"]);
    control.configure(&config6()).unwrap();
    assert!(control.look(&config6(), &[]).unwrap().ports.is_empty());
    assert_eq!(control.configure(&config6()).unwrap(), Changes::default());

    // Somebody deletes addresses, forbids IPv6, and changes the MAC address.
    ip(namespace, "addr del 2001:db8:1::1/64 dev left");
    ip(namespace, "addr del fe80::ff:fe00:101/64 dev left");
    let changes = control.configure(&config6()).unwrap();
    assert_eq!(changes.words, ["left: 2001:db8:1::1/64 added", "left: fe80::ff:fe00:101/64 added"]);
    sysctl::set(namespace, "net/ipv6/conf/right/disable_ipv6", "1").unwrap();
    assert_eq!(control.look(&config6(), &[]).unwrap().ports.len(), 2);
    control.configure(&config6()).unwrap();
    assert!(control.look(&config6(), &[]).unwrap().ports.is_empty());
    let mut other = config6();
    other.ports[0].mac = Mac([2, 0, 0, 0, 1, 0x33]);
    control.configure(&other).unwrap();
    let shown = ip(namespace, "-6 addr show dev left scope link");
    assert!(shown.contains("fe80::ff:fe00:133/64") && !shown.contains("fe80::ff:fe00:101"), "{shown}");
    assert_eq!(control.configure(&other).unwrap(), Changes::default());
}

#[test]
fn an_address_that_another_host_has_is_drift() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready6(&names);
    let namespace = &control.namespace;
    control.configure(&config6()).unwrap();
    // Somebody sets the address with detection of duplicates, and another host claims it.
    ip(namespace, "addr del 2001:db8:1::1/64 dev left");
    ip(namespace, "addr add 2001:db8:1::1/64 dev left-far nodad");
    sysctl::set(namespace, "net/ipv6/conf/left/accept_dad", "1").unwrap();
    ip(namespace, "addr add 2001:db8:1::1/64 dev left");
    let words = "does not use address 2001:db8:1::1/64: another host has it (dadfailed)";
    let drift = || {
        let drift = control.look(&config6(), &[]).unwrap().ports;
        drift.iter().map(|(_, what)| what.to_string()).collect::<Vec<_>>()
    };
    for _ in 0..400 {
        if drift() == [words] {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(drift(), [words]);
    control.configure(&config6()).unwrap();
    assert!(drift().is_empty());
    assert!(!ip(namespace, "-6 addr show dev left").contains("dadfailed"));
}

/// A namespace keeps nothing of a family that the network no longer has.
#[test]
fn families_can_change() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready6(&names);
    control.configure(&config6()).unwrap();
    let again = |families| {
        ControlNamespace::ensure(&owner(&names), "six", &Limits::default(), families).unwrap();
    };
    again(Families::V4);
    control.configure(&config()).unwrap();
    assert!(ip(&control.namespace, "-6 addr show").is_empty());
    assert_eq!(control.configure(&config()).unwrap(), Changes::default());
    again(Families::V6);
    control.configure(&config6()).unwrap();
    assert!(ip(&control.namespace, "-4 addr show dev left").is_empty());
    assert!(control.look(&config6(), &[]).unwrap().ports.is_empty());
    again(Families::BOTH);
    let mut both = config6();
    both.families = Families::BOTH;
    both.ports[0].addresses.push((address("10.1.0.1"), 24));
    control.configure(&both).unwrap();
    assert!(ip(&control.namespace, "addr show dev left").contains("inet 10.1.0.1/24"));
    assert!(control.look(&both, &[]).unwrap().ports.is_empty());
}

#[test]
fn conflicting_items_are_reported_and_stay() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready(&names, &["left", "right"]);
    let missing = Config { ports: vec![port("absent", 1, &[])], ..Config::default() };
    let error = control.configure(&missing).unwrap_err();
    assert!(matches!(&error, HostError::NoInterface { name, .. } if name == "absent"), "{error}");
    let mut config = config();
    config.routes.push(route("10.10.0.0/16", StaticTarget::Via(address("203.0.113.1"))));
    control.configure(&Config { routes: Vec::new(), ..config.clone() }).unwrap();
    ip(&control.namespace, "route add 10.9.0.0/16 via 10.1.0.2");
    for _ in 0..2 {
        let changes = control.configure(&config).unwrap();
        assert_eq!(changes.refused.len(), 2, "{changes:?}");
        assert!(changes.refused[0].starts_with("add route to 10.9.0.0/16 via 10.77.0.1: File exists"));
        assert!(changes.refused[1].contains("invalid gateway"), "{changes:?}");
    }
    assert!(ip(&control.namespace, "route show").contains("10.9.0.0/16 via 10.1.0.2"));
}

#[test]
fn foreign_namespaces_are_not_modified() {
    if !root() {
        return;
    }
    let names = Names::new();
    let name = owner(&names).namespace("red");
    assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
    let foreign = |result: Result<(), HostError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, HostError::Foreign { .. }), "{error}");
    };
    foreign(ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).map(drop));
    foreign(ControlNamespace::delete(&owner(&names), "red").map(drop));
    foreign(ControlNamespace::open(&owner(&names), "red").map(drop));
    assert!(netns::exists(&name));
    assert!(owner(&names).networks().unwrap().is_empty());
    netns::delete(&name).unwrap();

    // A namespace of another daemon, with the same names.
    ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).unwrap();
    let other = Owner { node: format!("{}other", names.start), ..owner(&names) };
    foreign(ControlNamespace::ensure(&other, "red", &Limits::default(), Families::V4).map(drop));
    assert!(other.networks().unwrap().is_empty());
}

/// A gateway is on the longest link, as in documents, even if a route to another place covers it.
#[test]
fn gateways_are_on_the_longest_link() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready(&names, &["left", "right"]);
    let mut config = config();
    config.routes = vec![
        route("10.2.0.128/25", StaticTarget::Via(address("10.2.0.3"))),
        route("172.16.0.0/12", StaticTarget::Via(address("10.2.0.130"))),
        // A link inside the link of `left`.
        route("10.1.0.64/26", StaticTarget::Port(1)),
        route("192.168.0.0/16", StaticTarget::Via(address("10.1.0.65"))),
        route("192.168.7.0/24", StaticTarget::Via(address("10.1.0.5"))),
    ];
    let changes = control.configure(&config).unwrap();
    assert_eq!((changes.routes, changes.refused.as_slice()), (5, [].as_slice()));
    assert_eq!(control.configure(&config).unwrap(), Changes::default());
    let shown = ip(&control.namespace, "route show");
    for line in [
        "172.16.0.0/12 via 10.2.0.130 dev right",
        "192.168.0.0/16 via 10.1.0.65 dev right",
        "192.168.7.0/24 via 10.1.0.5 dev left",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

/// The daemon is killed at any moment. A later one finds the remains and uses or removes them, including
/// processes.
#[test]
fn remains_of_a_killed_daemon_are_found_and_removed() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready(&names, &["left", "right"]);
    control.configure(&config()).unwrap();
    let argv = ["sh", "-c", "sleep 1000 & exec sleep 1001"].map(Into::into);
    let mut child = exec::spawn(&control.namespace, control.cgroup.as_ref(), &argv).unwrap();
    drop(control);

    assert_eq!(owner(&names).networks().unwrap(), ["red"]);
    let adopted = ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).unwrap();
    assert!(!adopted.created && adopted.changes.is_empty(), "{:?}", adopted.changes);
    assert_eq!(adopted.control.configure(&config()).unwrap(), Changes::default());
    let bounded = adopted.control.cgroup.is_some();
    if !bounded {
        child.kill().unwrap();
    }
    let reaper = std::thread::spawn(move || child.wait());
    assert!(ControlNamespace::delete(&owner(&names), "red").unwrap());
    assert!(!reaper.join().unwrap().unwrap().success());
    assert!(!netns::exists(&owner(&names).namespace("red")));
    assert!(owner(&names).networks().unwrap().is_empty());
}

/// As above, with a process that is killed repeatedly during its work.
#[test]
fn a_daemon_can_be_killed_at_any_time() {
    const NAMES: &str = "HUEPLANE_TEST_NAMES";
    if let Ok(start) = std::env::var(NAMES) {
        let owner = Owner { prefix: start.clone(), node: start };
        loop {
            let limits = if Trees::detect().unwrap().is_complete() {
                Limits { processes: Some(10), ..Limits::default() }
            } else {
                Limits::default()
            };
            let control = ControlNamespace::ensure(&owner, "red", &limits, Families::V4).unwrap().control;
            let mut links = Links::inside(&control.namespace).unwrap();
            // Ends of a veth pair instead of TAPs.
            if links.find("left").unwrap().is_none() {
                links.create_veth("left", "right", None).unwrap();
            }
            control.configure(&config()).unwrap();
            ControlNamespace::delete(&owner, "red").unwrap();
        }
    }
    if !root() {
        return;
    }
    let names = Names::new();
    let program = std::env::current_exe().unwrap();
    for round in 0u64..25 {
        let test = "control::a_daemon_can_be_killed_at_any_time";
        let mut child = Command::new(&program)
            .args(["--exact", test, "--nocapture"])
            .env(NAMES, &names.start)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // A different moment in each round; the exact moment does not matter.
        std::thread::sleep(std::time::Duration::from_micros(5_000 + 7_919 * round));
        assert!(child.try_wait().unwrap().is_none(), "round {round}: it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let ensured =
            ControlNamespace::ensure(&owner(&names), "red", &Limits::default(), Families::V4).unwrap();
        let mut links = Links::inside(&ensured.control.namespace).unwrap();
        if links.find("left").unwrap().is_none() {
            links.create_veth("left", "right", None).unwrap();
        }
        ensured.control.configure(&config()).unwrap();
        assert_eq!(ensured.control.configure(&config()).unwrap(), Changes::default());
        if round % 2 == 0 {
            assert!(ControlNamespace::delete(&owner(&names), "red").unwrap());
            assert!(owner(&names).networks().unwrap().is_empty());
        }
    }
}

#[test]
fn interface_names_are_stable() {
    assert_eq!(
        interface_names(&["left", "eth0.100", "123456789012345"]),
        ["left", "eth0.100", "123456789012345"]
    );
    let long = interface_names(&["customer-network-1", "customer-network-2", "lo", "all", "default"]);
    let more = interface_names(&["x", "customer-network-2", "customer-network-1"]);
    assert_eq!((&long[0], &long[1]), (&more[2], &more[1]), "whatever else is there");
    assert!(long.iter().all(|name| name.len() <= 15 && name.contains('~')), "{long:?}");
    let many: Vec<String> = (0..5_000).map(|index| format!("the-same-beginning-{index}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let names = interface_names(&many);
    let mut unique: Vec<_> = names.iter().collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    assert!(names.iter().all(|name| hue_host::links::checked(name).is_ok()));
}

/// An IP tunnel leads to one router, whose MAC address does not matter: the kernel sends at once, with both families.
#[test]
fn a_port_without_arp_resolves_nothing() {
    if !root() {
        return;
    }
    let names = Names::new();
    let ensured =
        ControlNamespace::ensure(&owner(&names), "both", &Limits::default(), Families::BOTH).unwrap();
    let control = ensured.control;
    let namespace = &control.namespace;
    ip(namespace, "link add left type veth peer name left-far");
    ip(namespace, "link set left-far up");
    let mut left = port("left", 1, &["10.1.0.1/24", "2001:db8:1::1/64"]);
    let with_arp = Config { families: Families::BOTH, ports: vec![left.clone()], ..Config::default() };
    left.no_arp = true;
    let config = Config { ports: vec![left], ..with_arp.clone() };
    let first = control.configure(&config).unwrap();
    assert!(first.words.contains(&"left: ARP switched off".to_owned()), "{first:?}");
    assert_eq!(control.configure(&config).unwrap(), Changes::default());
    assert!(control.look(&config, &[]).unwrap().ports.is_empty());
    for address in ["10.1.0.2", "2001:db8:1::2"] {
        let _ = namespace.run(|| Command::new("ping").args(["-c1", "-W0.1", address]).output()).unwrap();
        // A neighbour that needs no resolution, with the interface's own address.
        let shown = ip(namespace, &format!("neigh show {address} nud noarp"));
        assert!(shown.contains("lladdr 02:00:00:00:01:01 NOARP"), "{address}: {shown}");
    }
    // Somebody switches it on.
    ip(namespace, "link set left arp on");
    let drift = control.look(&config, &[]).unwrap().ports;
    assert_eq!(drift.iter().map(|(_, what)| what.to_string()).collect::<Vec<_>>(), ["has ARP switched on"]);
    assert_eq!(control.configure(&config).unwrap().words, ["left: ARP switched off"]);
    assert_eq!(control.configure(&with_arp).unwrap().words, ["left: ARP switched on"]);
}

/// The kernel of a network that carries tunnels resolves neighbours for packets from its own address, and no other does.
#[test]
fn only_a_carrier_takes_packets_from_itself() {
    if !root() {
        return;
    }
    let names = Names::new();
    let control = ready(&names, &["left", "right"]);
    let key = "net/ipv4/conf/all/accept_local";
    let value = || sysctl::get(&control.namespace, key).unwrap();
    control.configure(&config()).unwrap();
    assert_eq!(value().as_deref(), Some("0"));
    for (carries, expected) in [(true, "1"), (false, "0")] {
        let changes = control.configure(&Config { carries, ..config() }).unwrap();
        assert_eq!(
            (changes.words, value()),
            (vec![format!("{key} set to {expected}")], Some(expected.to_owned()))
        );
    }
}
