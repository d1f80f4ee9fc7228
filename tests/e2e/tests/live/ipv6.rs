//! Networks of kind `ipv6`, seen from their hosts.

use std::thread::sleep;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::frr::{Frr, bgp6, ospf6};
use hue_e2e::lab::address6;
use hue_e2e::raw::Sniffer;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, Space, can_run, until};

use crate::card::{network, node, runs_on, start};
use crate::forwarding::transfer;
use crate::migrate::{is_clean, is_whole};
use crate::routing::routes;

#[test]
fn an_ipv6_network_is_a_router_between_its_hosts() {
    if !can_run(&["traceroute"]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let four = lab.pair("four", 2, 2, [0, 1]);
    let routes = "[{to: \"2001:db8:77::/48\", via: \"2001:db8:1:2::2\"}]";
    let document = six.document.clone().with("routes", routes);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), document.yaml(), four.document.yaml()]));
    let (left, right) = (&six.left, &six.right);
    six.warm_up();
    four.warm_up();
    assert_eq!(left.ping(address6(1, 2, 2), 20), 20);
    // The router itself, by each of its addresses, and by the link-local one.
    for side in [1, 2] {
        assert_eq!(left.ping(address6(1, side, 1), 3), 3, "the router's address on side {side}");
    }
    let hops = left.space.run("traceroute", &["-6", "-n", "-q", "1", "2001:db8:1:2::2"]).expect_ok().stdout;
    let hops: Vec<&str> = hops.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(hops, ["2001:db8:1:1::1", "2001:db8:1:2::2"]);

    let unreachable = left.ping_with(address6(0x99, 9, 9), 2, &[]).stdout;
    assert!(
        unreachable.contains("From 2001:db8:1:1::1") && unreachable.contains("No route"),
        "{unreachable}"
    );
    let nobody = left.ping_with(address6(1, 2, 0x99), 2, &["-W", "8"]).stdout;
    assert!(nobody.contains("From 2001:db8:1:1::1") && nobody.contains("Address unreachable"), "{nobody}");

    // A static route of the document, to an address that the right host has.
    right.space.ip(&["-6", "address", "add", "2001:db8:77::1/128", "dev", "lo"]);
    right.space.ip(&["link", "set", "lo", "up"]);
    let behind: std::net::Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    // The kernel adds the route of a new address a moment later.
    until("the right host answers for its new address", 20, || right.ping(behind, 1) == 1);
    assert_eq!(left.ping(behind, 3), 3);

    for (from, to, side) in [(left, right, 2), (right, left, 1)] {
        assert_eq!(transfer(from, to, address6(1, side, 2), 60 << 20), 60 << 20);
    }

    let stats = daemon.cli.stats(six.name());
    assert!(stats["punts"]["hop_limit"].as_u64().unwrap_or(0) >= 1, "{stats}");
    assert!(stats["punts"]["no_route"].as_u64().unwrap_or(0) >= 2, "{stats}");
    let routes = daemon.cli.json(&["get", "routes", "-n", six.name()]).to_string();
    for route in ["2001:db8:77::/48", "2001:db8:1:1::/64", "2001:db8:1:2::2/128"] {
        assert!(routes.contains(&format!("\"{route}\"")), "{route}: {routes}");
    }
    let neighbours = daemon.cli.json(&["get", "neighbours", "-n", six.name()]).to_string();
    assert!(neighbours.contains("\"2001:db8:1:2::2\""), "{neighbours}");
    // Neither network has the other's family.
    assert!(!daemon.cli.json(&["get", "routes", "-n", four.name()]).to_string().contains("::"));
}

#[test]
fn ipv6_packets_above_the_mtu_get_packet_too_big() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let text = six.document.yaml().replacen("{name: right, ", "{name: right, mtu: 1400, ", 1);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), text]));
    six.warm_up();
    // Until the plane knows the host, the namespace forwards, and the plane sees nothing too large.
    until("the plane knows the host", 20, || {
        let forwarded = || daemon.cli.stats(six.name())["ports"][0]["forwarded"].as_u64();
        let before = forwarded();
        six.left.ping(address6(1, 2, 2), 1) == 1 && forwarded() > before
    });
    let large = six.left.ping_with(address6(1, 2, 2), 3, &["-M", "do", "-s", "1400"]).stdout;
    assert!(
        large.contains("mtu=1400") || large.contains("mtu: 1400") || large.contains("Packet too big"),
        "{large}"
    );
    // The host remembers, so that it sends fragments.
    assert_eq!(six.left.ping_with(address6(1, 2, 2), 3, &["-M", "want", "-s", "1400"]).code, 0);
    let stats = daemon.cli.stats(six.name());
    assert!(stats["punts"]["mtu"].as_u64().unwrap_or(0) >= 1, "{stats}");
}

#[test]
fn beside_a_card_without_the_kind_the_network_runs_in_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let four = lab.pair("four", 2, 2, [0, 1]);
    let daemon =
        start(&lab, &["default"], &[node(&lab, "default"), six.document.yaml(), four.document.yaml()]);
    runs_on(&daemon, four.name(), "card");
    runs_on(&daemon, six.name(), "soft");
    six.warm_up();
    four.warm_up();
    let placements = daemon.cli.json(&["get", "placements"]);
    let six_at = placements.as_array().unwrap().iter().find(|one| one["network"] == six.name()).unwrap();
    assert!(six_at["why_not"].as_str().unwrap().contains("kind ipv6"), "{six_at}");
    let moved = daemon.cli.run(&["migrate", six.name(), "--to", "card"]);
    assert!(moved.code != 0 && moved.stderr.contains("image default has no kind ipv6"), "{moved}");
    assert_eq!(network(&daemon, six.name())["substrate"], "soft");
    for to in ["soft", "card"] {
        let _ = daemon.cli.run(&["migrate", four.name(), "--to", to]).expect_ok();
        assert_eq!(six.left.ping(address6(1, 2, 2), 5), 5);
        assert_eq!(four.left.ping(four.right.address, 5), 5);
    }
}

/// A network with 10,000 routes moves between the card and software, and the image is changed beneath it, while its hosts and those of
/// a network of the other kind communicate.
#[test]
fn a_network_moves_to_the_card_and_back_and_its_hosts_see_nothing() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let four = lab.pair("four", 2, 2, [0, 1]);
    let routes: Vec<String> = (0..10_000u32)
        .map(|n| {
            format!("{{to: \"2001:db8:{:x}:{:x}::/64\", via: \"2001:db8:1:2::2\"}}", 0x100 + n / 256, n % 256)
        })
        .collect();
    let document = six.document.clone().with("routes", &format!("[{}]", routes.join(", ")));
    let daemon =
        start(&lab, &["default", "sram"], &[node(&lab, "sram"), document.yaml(), four.document.yaml()]);
    runs_on(&daemon, six.name(), "card");
    runs_on(&daemon, four.name(), "card");
    daemon.cli.warm_up(&[&six, &four]);
    assert_eq!(six.left.ping(six.right.ip(), 20), 20);
    // The router answers on the card as in software, and punted packets reach the kernel.
    for side in [1, 2] {
        assert_eq!(six.left.ping(address6(1, side, 1), 3), 3, "the router's address on side {side}");
    }
    let unreachable = six.left.ping_with(address6(0x99, 9, 9), 2, &[]).stdout;
    assert!(unreachable.contains("No route"), "{unreachable}");

    let before = daemon.cli.stats(six.name());
    let flows = [
        Flow::start(&six.left, &six.right, 400, 64),
        Flow::start(&six.right, &six.left, 100, 1_300),
        Flow::start(&four.left, &four.right, 200, 200),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 100));
    for to in ["soft", "card"].repeat(4) {
        is_clean(&daemon.cli.json(&["migrate", six.name(), "--to", to]));
    }
    // Its image is replaced by one without the kind, and comes back.
    let on = |name: &str| network(&daemon, name)["substrate"].clone();
    let _ = daemon.cli.json(&["image", "load", "default"]);
    assert_eq!((on(six.name()), on(four.name())), ("soft".into(), "card".into()));
    // The refusal names an image that has it (which one depends on those there are), and it is loaded if asked.
    let refused = daemon.cli.run(&["migrate", six.name(), "--to", "card"]);
    assert!(refused.code != 0 && refused.stderr.contains("it would fit image '"), "{refused}");
    is_clean(&daemon.cli.json(&["migrate", six.name(), "--to", "card", "--load-image"]));
    runs_on(&daemon, four.name(), "card");
    flows.into_iter().for_each(is_whole);
    let after = daemon.cli.stats(six.name());
    assert!(after["forwarded"].as_u64() > before["forwarded"].as_u64().map(|count| count + 500), "{after}");
    assert!(after["punts"]["no_route"].as_u64().unwrap_or(0) >= 2, "{after}");

    // A route that comes while the network is on the card reaches it.
    six.right.space.ip(&["-6", "address", "add", "2001:db8:77::1/128", "dev", "lo"]);
    six.right.space.ip(&["link", "set", "lo", "up"]);
    let behind: std::net::Ipv6Addr = "2001:db8:77::1".parse().unwrap();
    assert_eq!(six.left.ping(behind, 1), 0);
    let more = "[{to: \"2001:db8:77::/48\", via: \"2001:db8:1:2::2\"}]";
    let less = six.document.clone().with("routes", more);
    daemon.cli.apply(&all(&[node(&lab, "sram"), less.yaml(), four.document.yaml()]), &[]);
    until("the new route works", 20, || six.left.ping(behind, 1) == 1);
    runs_on(&daemon, six.name(), "card");
    assert_eq!(six.left.ping(behind, 20), 20);
}

#[test]
fn a_network_that_changes_its_kind_starts_anew() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let four = lab.pair_document("six", 7, 1, [0, 1]);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), six.document.yaml()]));
    six.warm_up();
    assert_eq!(six.left.ping(address6(1, 2, 2), 5), 5);
    let names = |kind: &str| {
        let stats = daemon.cli.stats(six.name());
        let punts =
            stats["punts"].as_object().unwrap().keys().chain(stats["drops"].as_object().unwrap().keys());
        let foreign = if kind == "ipv4" { ["hop_limit", "scope"] } else { ["ttl", "arp"] };
        (stats["forwarded"].as_u64().unwrap(), punts.filter(|name| foreign.contains(&name.as_str())).count())
    };
    assert!(names("ipv6").0 >= 5);
    let before = daemon.cli.json(&["get", "networks", six.name()]);
    daemon.cli.apply(&all(&[lab.node_document(""), four.yaml()]), &[]);
    until("the network is of the other kind", 20, || {
        let now = daemon.cli.json(&["get", "networks", six.name()]);
        now["kind"] == "ipv4" && now["state"] == "running"
    });
    assert_eq!(daemon.cli.json(&["get", "networks", six.name()])["namespace"], before["namespace"]);
    assert_eq!(names("ipv4"), (0, 0), "nothing of the former plane is left");
    let routes = daemon.cli.json(&["get", "routes", "-n", six.name()]).to_string();
    assert!(!routes.contains("::") && routes.contains("\"10.7.1.0/24\""), "{routes}");
    assert_eq!(six.left.ping(address6(1, 2, 2), 1), 0, "it has no IPv6 any more");

    // And back: the hosts reach each other as before.
    daemon.cli.apply(&all(&[lab.node_document(""), six.document.yaml()]), &[]);
    six.warm_up();
    assert!(names("ipv6").0 < 5);
}

#[test]
fn frr_runs_ospf_version_3_unmodified() {
    let outer = |side: usize| ospf6(&format!("10.9.9.{side}"), &["eth0", "lo"]);
    frr_runs("ospf6d", "ospf", &ospf6("10.1.1.1", &["left", "right"]), outer);
}

#[test]
fn frr_runs_bgp_for_ipv6_unmodified() {
    let asn = |side: usize| 65_001 + side as u32;
    let neighbours = [0, 1].map(|side| (address6(1, 1 + side as u16, 2), asn(side)));
    let outer = |side: usize| {
        let router = [(address6(1, 1 + side as u16, 1), 65_000)];
        bgp6(&format!("10.9.9.{side}"), asn(side), &router, &[format!("{}/128", loopback(side))])
    };
    let links = [1, 2].map(|side| format!("{}/64", address6(1, side, 0)));
    frr_runs("bgpd", "bgp", &bgp6("10.1.1.1", 65_000, &neighbours, &links), outer);
}

/// Neighbour discovery is the namespace's affair: zebra there advertises the router and a prefix, a host configures itself by it
/// (RFC 4861, 4862), and the namespace hears which groups the host listens to (RFC 3810).
#[test]
fn a_host_configures_itself_by_router_advertisements() {
    if !can_run(&["zebra", "ospf6d", "vtysh"]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), six.document.yaml()]));
    six.warm_up();
    let host = &six.left;
    host.space.ip(&["-6", "route", "flush", "default"]);
    host.space.ip(&["-6", "address", "flush", "dev", "eth0", "scope", "global"]);
    assert_eq!(host.ping(address6(1, 2, 2), 1), 0, "it has no address");
    for (setting, value) in [("accept_ra", "1"), ("autoconf", "1")] {
        let path = format!("/proc/sys/net/ipv6/conf/eth0/{setting}");
        host.space.inside(|| std::fs::write(&path, value)).unwrap();
    }
    let exec = |line: &[&str]| daemon.cli.exec(six.name(), line);
    let config = "interface left\n no ipv6 nd suppress-ra\n ipv6 nd ra-interval 3\n ipv6 nd prefix 2001:db8:1:1::/64\n!\n";
    let router = Frr::start_with(lab.folder(), &format!("{}-r", six.name()), config, "ospf6d", exec);
    until("the host reaches the other side by its own address and route", 60, || {
        host.ping(address6(1, 2, 2), 1) == 1
    });
    let shown = host.space.run("ip", &["-6", "route", "show", "default"]).expect_ok().stdout;
    assert!(shown.contains("proto ra") && shown.contains("via fe80::"), "{shown}");
    // A further address has a further group. Linux itself takes no reports, but programs in the namespace see them.
    let name = daemon.cli.json(&["get", "networks", six.name()])["namespace"].as_str().unwrap().to_owned();
    let is_report = |frame: &[u8]| frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.get(62) == Some(&143);
    let namespace = Space::of(name);
    let mut number = 0x70;
    until("a program in the namespace hears a report of the host", 20, || {
        let reports = Sniffer::start(&namespace, "left", is_report);
        number += 1;
        host.space.ip(&[
            "-6",
            "address",
            "add",
            &format!("2001:db8:1:1::{number:x}/64"),
            "dev",
            "eth0",
            "nodad",
        ]);
        sleep(Duration::from_millis(500));
        reports.stop().wanted > 0
    });
    assert_eq!(transfer(host, &six.right, address6(1, 2, 2), 10 << 20), 10 << 20);
    drop(router);
}

/// FRR with this routing daemon runs in the network's namespace and on the hosts at both sides, which announce their loopbacks.
fn frr_runs(routing: &'static str, protocol: &str, inner: &str, outer: impl Fn(usize) -> String) {
    if !can_run(&["zebra", routing, "vtysh"]) {
        return;
    }
    let lab = Lab::new(2);
    let six = lab.pair6("six", 1, 1, [0, 1]);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), six.document.yaml()]));
    six.warm_up();
    let name = |end: &str| format!("{}{end}", six.name());
    let exec = |line: &[&str]| daemon.cli.exec(six.name(), line);
    let mut routers = vec![Frr::start_with(lab.folder(), &name("-r"), inner, routing, exec)];
    for (side, host) in [&six.left, &six.right].into_iter().enumerate() {
        // The routing daemon must find the route.
        host.space.ip(&["-6", "route", "del", "default"]);
        host.space.ip(&["-6", "address", "add", &format!("{}/128", loopback(side)), "dev", "lo"]);
        let run = |line: &[&str]| host.space.run(line[0], &line[1..]);
        routers.push(Frr::start_with(lab.folder(), &name(["-a", "-b"][side]), &outer(side), routing, run));
    }
    let learnt = || routes(&daemon, six.name(), protocol);
    until("learnt routes are in the data plane", 60, || learnt().len() >= 2);
    // Their gateways are link-local (RFC 5340 §3.8.1, RFC 2545 §3).
    let gateways = learnt();
    assert!(
        gateways.iter().all(|one| one["via"].as_str().is_some_and(|via| via.starts_with("fe80:"))),
        "{gateways:?}"
    );
    let ends = [(&six.left, &six.right, 1), (&six.right, &six.left, 0)];
    for (from, _, side) in ends {
        until("a loopback is reached by its learnt route", 30, || {
            from.ping_with(loopback(side), 1, &["-I", &loopback(1 - side).to_string()]).ok()
        });
    }
    let before = daemon.cli.stats(six.name())["forwarded"].as_u64().unwrap();
    for (from, to, side) in ends {
        assert_eq!(transfer(from, to, loopback(side), 30 << 20), 30 << 20);
    }
    let packets = daemon.cli.stats(six.name())["forwarded"].as_u64().unwrap() - before;
    assert!(packets > (60 << 20) / 1500, "the plane carried it, not the kernel: {packets}");
    // A router outside ends: its routes leave.
    drop(routers.remove(1));
    let gone = format!("{}/128", loopback(0));
    until("the ended router's route leaves the data plane", 40, || {
        !learnt().iter().any(|route| route["prefix"] == gone.as_str())
    });
}

fn loopback(side: usize) -> std::net::Ipv6Addr {
    address6(0xff, side as u16, 1)
}
