//! Networks of kind `dual`, seen from their hosts: both address families in one network.

use std::net::{IpAddr, Ipv6Addr};

use hue_e2e::document::all;
use hue_e2e::lab::address6;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, Pair, can_run, until};

use crate::card::{network, node, runs_on, start};
use crate::migrate::{is_clean, is_whole};
use crate::upgrade::Running;

/// Pings both ways by both families until all answer.
fn warm_up(pair: &Pair, n: u8) {
    pair.warm_up();
    for (from, side) in [(&pair.left, 2), (&pair.right, 1)] {
        until("IPv6 hosts reach each other", 20, || from.ping(address6(n, side, 2), 1) == 1);
    }
}

/// Counters of a family of a network.
fn family(daemon: &Daemon, pair: &Pair, family: &str) -> [u64; 3] {
    let stats = daemon.cli.stats(pair.name());
    let of = |what: &str| stats["families"][family][what].as_u64().unwrap_or(0);
    ["forwarded", "punted", "dropped"].map(of)
}

#[test]
fn both_families_of_a_network_are_routed_apart_from_its_neighbours() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(4);
    // The same addresses of both families, on other ports: green exists only so that something can go wrong.
    let red = lab.pair_dual("red", 1, 1, [0, 1]);
    let green = lab.pair_dual("green", 1, 2, [2, 3]);
    let routes = "[{to: 10.77.0.0/24, via: 10.1.2.2}, {to: \"2001:db8:77::/48\", via: \"2001:db8:1:2::2\"}]";
    let document = red.document.clone().with("routes", routes);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), document.yaml(), green.document.yaml()]));
    warm_up(&red, 1);
    warm_up(&green, 1);
    assert_eq!(network(&daemon, red.name())["kind"], "dual");
    let right: [IpAddr; 2] = [red.right.address.into(), address6(1, 2, 2).into()];

    // Each family counts for itself.
    let count = || [family(&daemon, &red, "ipv4"), family(&daemon, &red, "ipv6")];
    let before = count();
    assert_eq!(red.left.ping(right[0], 20), 20);
    let four = count();
    assert!(four[0][0] >= before[0][0] + 40 && four[1][0] < before[1][0] + 20, "{before:?} {four:?}");
    assert_eq!(red.left.ping(right[1], 20), 20);
    let six = count();
    assert!(six[1][0] >= four[1][0] + 40 && six[0][0] < four[0][0] + 20, "{four:?} {six:?}");
    let stats = daemon.cli.stats(red.name());
    let sum: u64 = six.iter().flatten().sum();
    assert!(stats["received"].as_u64().unwrap() >= sum, "{stats}");

    // The router itself answers by both, and errors come from the family's own address.
    for side in [1u8, 2] {
        assert_eq!(red.left.ping(std::net::Ipv4Addr::new(10, 1, side, 1), 2), 2);
        assert_eq!(red.left.ping(address6(1, side.into(), 1), 2), 2);
    }
    let unreachable = red.left.ping_with(address6(0x99, 9, 9), 2, &[]).stdout;
    assert!(unreachable.contains("From 2001:db8:1:1::1"), "{unreachable}");
    let unreachable = red.left.ping_with(std::net::Ipv4Addr::new(10, 99, 9, 9), 2, &[]).stdout;
    assert!(unreachable.contains("From 10.1.1.1"), "{unreachable}");
    let punts = daemon.cli.stats(red.name())["punts"].clone();
    for reason in ["ipv4_no_route", "ipv6_no_route", "ipv4_arp", "ipv6_local"] {
        assert!(punts[reason].as_u64().unwrap_or(0) >= 1, "{reason}: {punts}");
    }

    // Static routes of both families, and one of each that the namespace gets while it runs.
    let behind: [IpAddr; 2] = ["10.77.0.1".parse().unwrap(), "2001:db8:77::1".parse().unwrap()];
    let live: [IpAddr; 2] = ["10.88.0.1".parse().unwrap(), "2001:db8:88::1".parse().unwrap()];
    red.right.space.ip(&["link", "set", "lo", "up"]);
    for address in behind.iter().chain(&live) {
        red.right.space.ip(&["address", "add", &address.to_string(), "dev", "lo"]);
    }
    for address in behind {
        until("the right host answers for its new address", 20, || red.left.ping(address, 1) == 1);
    }
    for address in live {
        assert_eq!(red.left.ping(address, 1), 0, "{address} has no route yet");
    }
    let add = |to: &str, via: &str| {
        let _ = daemon.cli.exec(red.name(), &["ip", "route", "add", to, "via", via]).expect_ok();
    };
    add("10.88.0.0/24", "10.1.2.2");
    until("the new IPv4 route works", 20, || red.left.ping(live[0], 1) == 1);
    assert_eq!(red.left.ping(live[1], 1), 0, "only IPv4 got a route");
    add("2001:db8:88::/48", "2001:db8:1:2::2");
    until("the new IPv6 route works", 20, || red.left.ping(live[1], 1) == 1);
    let before = count();
    assert_eq!(red.left.ping(live[0], 10) + red.left.ping(live[1], 10), 20);
    let after = count();
    assert!(after[0][0] >= before[0][0] + 20 && after[1][0] >= before[1][0] + 20, "the plane forwards them");

    let routes = daemon.cli.json(&["get", "routes", "-n", red.name()]).to_string();
    for route in ["10.77.0.0/24", "10.88.0.0/24", "2001:db8:77::/48", "2001:db8:88::/48", "10.1.2.2/32"] {
        assert!(routes.contains(&format!("\"{route}\"")), "{route}: {routes}");
    }
    let neighbours = daemon.cli.json(&["get", "neighbours", "-n", red.name()]).to_string();
    assert!(
        neighbours.contains("\"10.1.2.2\"") && neighbours.contains("\"2001:db8:1:2::2\""),
        "{neighbours}"
    );
    // Nothing of this is in the other network, which has the same addresses.
    let routes = daemon.cli.json(&["get", "routes", "-n", green.name()]).to_string();
    assert!(
        !routes.contains("10.88") && !routes.contains("db8:88") && !routes.contains("db8:77"),
        "{routes}"
    );
    for address in behind.into_iter().chain(live) {
        assert_eq!(green.left.ping(address, 1), 0, "{address} is red's");
    }
    assert_eq!(green.left.ping(right[0], 5) + green.left.ping(right[1], 5), 10, "its own hosts");
}

/// Another program in the daemon's place keeps both families, with what the namespace has learned, and a change of kind renews
/// the network.
#[test]
fn a_dual_network_survives_an_upgrade_and_changes_its_kind() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let both = lab.pair_dual("both", 1, 1, [0, 1]);
    let mut six = lab.pair_dual_document("both", 1, 1, [0, 1]);
    six.kind = "ipv6";
    six.ports.iter_mut().for_each(|port| port.addresses.retain(|one| one.contains(':')));
    let documents = all(&[lab.node_document(""), both.document.yaml()]);
    let file = lab.folder().join("both.yaml");
    std::fs::write(&file, &documents).unwrap();
    let cli = Cli::new(&lab);
    let run = |arguments: &[&str]| lab.node().run_command(&mut cli.command(arguments)).expect_ok();
    let _ = run(&["up", "--detach", "--empty", "-f", &file.to_string_lossy()]);
    let _running = Running(&cli);
    warm_up(&both, 1);
    let added = [("10.88.0.0/24", "10.1.2.2"), ("2001:db8:88::/48", "2001:db8:1:2::2")];
    for (to, via) in added {
        let _ = cli.exec(both.name(), &["ip", "route", "add", to, "via", via]).expect_ok();
    }
    let has_both = || {
        let routes = cli.json(&["get", "routes", "-n", both.name()]).to_string();
        added.iter().all(|(route, _)| routes.contains(&format!("\"{route}\"")))
    };
    until("both routes are there", 20, has_both);
    let pid = || cli.json(&["get", "nodes"])[0]["status"]["pid"].as_u64().unwrap();
    let first = pid();
    let _ = run(&["upgrade"]);
    assert_ne!(pid(), first);
    warm_up(&both, 1);
    until("both routes are there again", 20, has_both);
    let kind = || cli.json(&["get", "networks", both.name()]);
    assert_eq!(kind()["kind"], "dual");

    // Without IPv4 from now on, and with it again.
    cli.apply(&all(&[lab.node_document(""), six.yaml()]), &[]);
    until("the network is of the other kind", 20, || {
        kind()["kind"] == "ipv6" && kind()["state"] == "running"
    });
    until("IPv6 works", 20, || both.left.ping(address6(1, 2, 2), 1) == 1);
    assert_eq!(both.left.ping(both.right.address, 1), 0, "it has no IPv4 any more");
    cli.apply(&documents, &[]);
    warm_up(&both, 1);
}

/// A network with routes of both families moves between the card and software, and the image is changed beneath it, while its hosts and
/// those of a network of one family communicate.
#[test]
fn a_dual_network_moves_to_the_card_and_back_and_its_hosts_see_nothing() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let both = lab.pair_dual("both", 1, 1, [0, 1]);
    let six = lab.pair6("six", 2, 2, [0, 1]);
    let routes: Vec<String> = (0..2_000u32)
        .flat_map(|n| {
            let (high, low) = (n / 256, n % 256);
            [
                format!("{{to: 10.{}.{low}.0/24, via: 10.1.2.2}}", 100 + high),
                format!("{{to: \"2001:db8:{:x}:{low:x}::/64\", via: \"2001:db8:1:2::2\"}}", 0x100 + high),
            ]
        })
        .collect();
    let document = both.document.clone().with("routes", &format!("[{}]", routes.join(", ")));
    let daemon =
        start(&lab, &["default", "kinds"], &[node(&lab, "kinds"), document.yaml(), six.document.yaml()]);
    runs_on(&daemon, both.name(), "card");
    runs_on(&daemon, six.name(), "card");
    warm_up(&both, 1);
    six.warm_up();
    // The router answers on the card by both families, and errors come from the family's own address.
    for side in [1u8, 2] {
        let router: [IpAddr; 2] = [[10, 1, side, 1].into(), address6(1, side.into(), 1).into()];
        router.iter().for_each(|address| assert_eq!(both.left.ping(*address, 3), 3, "{address}"));
    }
    let unreachable = both.left.ping_with(address6(0x99, 9, 9), 2, &[]).stdout;
    assert!(unreachable.contains("From 2001:db8:1:1::1"), "{unreachable}");
    let nowhere: IpAddr = [203, 0, 113, 9].into();
    let unreachable = both.left.ping_with(nowhere, 2, &[]).stdout;
    assert!(unreachable.contains("From 10.1.1.1"), "{unreachable}");

    let right: Ipv6Addr = address6(1, 2, 2);
    daemon.cli.settle(&[both.name(), six.name()], || {
        six.left.ping(six.right.ip(), 1) == 1
            && both.left.ping(right, 1) == 1
            && both.left.ping(both.right.address, 1) == 1
    });
    let before = [family(&daemon, &both, "ipv4"), family(&daemon, &both, "ipv6")];
    let flows = [
        Flow::start_to(&both.left, &both.right, right, 300, 64),
        Flow::start(&both.left, &both.right, 300, 200),
        Flow::start(&both.right, &both.left, 100, 1_300),
        Flow::start(&six.left, &six.right, 200, 64),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    for to in ["soft", "card"].repeat(3) {
        is_clean(&daemon.cli.json(&["migrate", both.name(), "--to", to]));
    }
    // Its image is replaced by one without the kind, which says so, and comes back.
    let _ = daemon.cli.json(&["image", "load", "default"]);
    assert_eq!(network(&daemon, both.name())["substrate"], "soft");
    let refused = daemon.cli.run(&["migrate", both.name(), "--to", "card"]);
    assert!(refused.code != 0 && refused.stderr.contains("image default has no kind dual"), "{refused}");
    is_clean(&daemon.cli.json(&["migrate", both.name(), "--to", "card", "--load-image"]));
    flows.into_iter().for_each(is_whole);
    let after = [family(&daemon, &both, "ipv4"), family(&daemon, &both, "ipv6")];
    for (before, after) in before.iter().zip(after) {
        assert!(after[0] > before[0] + 200, "{before:?} {after:?}");
    }

    // Routes of both families that come while the network is on the card reach it.
    let behind: [IpAddr; 2] = ["10.77.0.1".parse().unwrap(), "2001:db8:77::1".parse().unwrap()];
    both.right.space.ip(&["link", "set", "lo", "up"]);
    for (address, length) in behind.iter().zip([32, 128]) {
        both.right.space.ip(&["address", "add", &format!("{address}/{length}"), "dev", "lo"]);
        assert_eq!(both.left.ping(*address, 1), 0);
    }
    let more = "[{to: 10.77.0.0/24, via: 10.1.2.2}, {to: \"2001:db8:77::/48\", via: \"2001:db8:1:2::2\"}]";
    let less = both.document.clone().with("routes", more);
    daemon.cli.apply(&all(&[node(&lab, "kinds"), less.yaml(), six.document.yaml()]), &[]);
    for address in behind {
        until("the new route works", 20, || both.left.ping(address, 1) == 1);
        assert_eq!(both.left.ping(address, 10), 10);
    }
    runs_on(&daemon, both.name(), "card");
}
