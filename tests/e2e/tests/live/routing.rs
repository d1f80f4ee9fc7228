//! Unmodified third-party routing daemons, in networks' namespaces by `hueplane exec`, and in hosts.

use std::net::Ipv4Addr;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::frr::{Frr, ospf, ospf_with};
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, Pair, bird, can_run, until};
use serde_json::Value;

/// Routes of a network by a protocol.
pub fn routes(daemon: &Daemon, network: &str, protocol: &str) -> Vec<Value> {
    let json = daemon.cli.json(&["get", "routes", "-n", network]);
    let all = json.as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|route| route["protocol"] == protocol).collect()
}

#[test]
fn frr_runs_ospf_in_two_networks_at_once() {
    if !can_run(&["zebra", "ospfd", "vtysh"]) {
        return;
    }
    let lab = Lab::new(4);
    // The same addresses in both: the daemons must not meet.
    let pairs = [lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 1, 2, [2, 3])];
    let documents = [lab.node_document(""), pairs[0].document.yaml(), pairs[1].document.yaml()];
    let daemon = Daemon::start(&lab, &all(&documents));
    let mut daemons = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let name = |end: &str| format!("{}{end}", pair.name());
        let inner = ospf("10.1.1.1", &["left", "right"]);
        daemons
            .push(Frr::start(lab.folder(), &name("-r"), &inner, |line| daemon.cli.exec(pair.name(), line)));
        for (side, host) in [&pair.left, &pair.right].into_iter().enumerate() {
            // OSPF must find the route.
            host.space.ip(&["route", "del", "default"]);
            host.space.ip(&["address", "add", &format!("{}/32", loopback(number, side)), "dev", "lo"]);
            let outer = ospf(&host.address.to_string(), &["eth0", "lo"]);
            let run = |line: &[&str]| host.space.run(line[0], &line[1..]);
            daemons.push(Frr::start(lab.folder(), &name(["-a", "-b"][side]), &outer, run));
        }
    }
    for (number, pair) in pairs.iter().enumerate() {
        until("the network's FRR has two full neighbours", 60, || daemons[number * 3].full_neighbours() == 2);
        until("routes of OSPF are in the data plane", 30, || routes(&daemon, pair.name(), "ospf").len() >= 2);
        for (from, side) in [(&pair.left, 1), (&pair.right, 0)] {
            let to = loopback(number, side);
            until("a loopback is reached by its OSPF route", 30, || {
                let from_own = loopback(number, 1 - side).to_string();
                from.ping_with(to, 1, &["-I", &from_own]).ok()
            });
            // The other network's address does not answer.
            assert_eq!(from.ping(loopback(1 - number, side), 1), 0);
        }
        let flow = Flow::start_to(&pair.left, &pair.right, loopback(number, 1), 500, 100);
        std::thread::sleep(Duration::from_secs(1));
        let report = flow.stop();
        assert!(report.sent > 0 && report.lost() == 0, "{report}");
        let stats = daemon.cli.stats(pair.name());
        assert!(
            stats["forwarded"].as_u64() >= Some(report.sent),
            "the plane carried it, not the kernel: {stats}"
        );
    }
    // A router outside ends: its routes leave, those of the other network stay.
    drop(daemons.remove(1));
    let gone = format!("{}/32", loopback(0, 0));
    until("the ended router's route leaves the data plane", 40, || {
        !routes(&daemon, pairs[0].name(), "ospf").iter().any(|route| route["prefix"] == gone.as_str())
    });
    assert!(routes(&daemon, pairs[1].name(), "ospf").len() >= 2);
}

/// The virtual ports keep their carrier, and the packets that the kernels send meanwhile, so no neighbour is lost.
#[test]
fn a_restart_of_the_daemon_costs_no_routing_neighbour() {
    if !can_run(&["zebra", "ospfd", "vtysh", "pgrep"]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 1]);
    let mut daemon = Daemon::start(&lab, &all(&[lab.node_document(""), pair.document.yaml()]));
    let cli = daemon.cli.clone();
    pair.warm_up();
    // Longer than any start of the daemon. A lost carrier ends a neighbour at once, so that would still be noticed.
    let dead = Duration::from_secs(120);
    let options = ["network point-to-point", "dead-interval 120"];
    let inner = ospf_with("10.1.1.1", &["left", "right"], &options);
    let inside = Frr::start(lab.folder(), "red-r", &inner, |line| cli.exec(pair.name(), line));
    let outer = ospf_with("10.1.1.2", &["eth0"], &options);
    let outside = Frr::start(lab.folder(), "red-a", &outer, |line| pair.left.space.run(line[0], &line[1..]));
    until("they are full neighbours", 60, || inside.full_neighbours() == 1 && outside.full_neighbours() == 1);
    let carriers = || -> Vec<u64> {
        let changes = |interface: &str| {
            let link = cli.exec(pair.name(), &["ip", "-j", "-s", "-s", "link", "show", interface]).json();
            link[0]["stats64"]["tx"]["carrier_changes"].as_u64().unwrap_or_else(|| panic!("{link}"))
        };
        ["left", "right"].map(changes).into()
    };
    // How often the neighbours' states have changed, on both sides.
    let changes = || [&inside, &outside].map(Frr::state_changes);
    let holders = || {
        let path = lab.folder().join("state/holder.sock");
        let found = lab.node().run("pgrep", &["-f", &format!("hold-descriptors {}", path.display())]).stdout;
        found.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = (carriers(), changes(), holders());
    assert_eq!(before.2.len(), 1);
    for keep in [false, true] {
        if keep {
            daemon.down(&["--keep"]);
        } else {
            daemon.kill();
        }
        daemon.replace(&lab);
        // Longer than the age of the last hello can be.
        std::thread::sleep(Duration::from_secs(4));
        until("they hear each other again", 60, || {
            [&inside, &outside].iter().all(|one| dead - one.dead_in() < Duration::from_secs(3))
        });
        assert_eq!((carriers(), changes(), holders()), before, "keep: {keep}");
        assert_eq!((inside.full_neighbours(), outside.full_neighbours()), (1, 1));
        pair.warm_up();
    }
    // Other ports get other descriptors; the ports that stay keep theirs.
    let more = pair.document.clone().with("weight", "3");
    cli.apply(&more.yaml(), &[]);
    assert_eq!(carriers(), before.0);
    // Without the holder, the daemon continues, and a new network works.
    let _ = lab.node().run("kill", &["-9", &before.2[0]]).expect_ok();
    let blue = lab.pair("blue", 2, 2, [0, 1]);
    cli.apply(&blue.document.yaml(), &[]);
    blue.warm_up();
    pair.warm_up();
    drop((inside, outside));
    daemon.down(&[]);
    assert_eq!(holders(), Vec::<String>::new());
}

/// A host's loopback address, which OSPF announces.
fn loopback(network: usize, side: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, network as u8, 1 + side as u8)
}

#[test]
fn bird_installs_a_full_table() {
    if !can_run(&["bird", "birdc", "xzcat"]) {
        return;
    }
    let lab = Lab::new(2);
    let pair: Pair = lab.pair("full", 1, 1, [0, 1]);
    let document =
        pair.document.clone().with("punt_limit", "{packets_per_second: 20000, burst_packets: 2000}");
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), document.yaml()]));
    pair.warm_up();
    // Not the lab's own addresses.
    let prefixes: Vec<String> =
        bird::full_table(20_000).into_iter().filter(|p| !p.starts_with("10.")).collect();
    let count = prefixes.len();
    let source = bird::source("10.1.2.2", "10.1.2.1", prefixes.iter().cloned());
    let run = |line: &[&str]| pair.right.space.run(line[0], &line[1..]);
    let source = bird::Bird::start(lab.folder(), "source", &source, run);
    let sink = bird::sink("10.1.2.1", "10.1.2.2");
    let sink = bird::Bird::start(lab.folder(), "sink", &sink, |line| daemon.cli.exec(pair.name(), line));
    until("BIRD in the network has all routes", 180, || sink.routes() == count);
    until("the data plane has all routes", 180, || {
        let network = daemon.cli.json(&["get", "networks", pair.name()]);
        network["routes"].as_u64() >= Some(count as u64)
    });
    // Destinations throughout the table are routed to the right host; it answers from each.
    let sample = prefixes.iter().step_by(count / 40 + 1).filter_map(|prefix| first_host(prefix));
    let sample: Vec<Ipv4Addr> = sample.collect();
    let local = sample.iter().map(|address| format!("address add {address}/32 dev lo\n"));
    pair.right.space.ip_batch(&local.collect::<String>());
    for address in sample {
        assert_eq!(pair.left.ping(address, 1), 1, "{address}");
    }
    // The source withdraws all routes: the data plane removes them.
    drop(source);
    until("the routes are gone", 300, || {
        let network = daemon.cli.json(&["get", "networks", pair.name()]);
        network["routes"].as_u64().is_some_and(|routes| routes < 100)
    });
    assert_eq!(pair.left.ping(pair.right.address, 3), 3);
}

/// The first address of a prefix after the network's own.
fn first_host(prefix: &str) -> Option<Ipv4Addr> {
    let base: Ipv4Addr = prefix.split('/').next()?.parse().ok()?;
    Some(Ipv4Addr::from(u32::from(base) + 1))
}

#[test]
fn owners_changes_in_the_namespace_are_followed() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let red = lab.pair("red", 1, 1, [0, 1]);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), red.document.yaml()]));
    red.warm_up();
    let far = Ipv4Addr::new(10, 50, 0, 1);
    red.right.space.ip(&["address", "add", "10.50.0.1/32", "dev", "lo"]);
    assert_eq!(red.left.ping(far, 1), 0);
    let ip = |line: &str| {
        let mut words = vec!["ip"];
        words.extend(line.split(' '));
        let _ = daemon.cli.exec(red.name(), &words).expect_ok();
    };
    let reach = |wanted: bool| until("the plane follows", 20, || (red.left.ping(far, 1) == 1) == wanted);
    ip("route add 10.50.0.0/16 via 10.1.2.2");
    reach(true);
    ip("route replace blackhole 10.50.0.0/16");
    reach(false);
    ip("route replace 10.50.0.0/16 via 10.1.2.2");
    reach(true);
    // The kernel removes the routes of an interface that goes down, without an event for each.
    ip("link set right down");
    reach(false);
    ip("link set right up");
    ip("route replace 10.50.0.0/16 via 10.1.2.2");
    reach(true);
    // A second address of the router, and a host in its prefix.
    ip("address add 10.60.0.1/24 dev right");
    red.right.space.ip(&["address", "add", "10.60.0.2/24", "dev", "eth0"]);
    until("a new link is reached", 20, || red.left.ping(Ipv4Addr::new(10, 60, 0, 2), 1) == 1);
    // The host's MAC address changes: the network learns the new one.
    red.right.space.ip(&["link", "set", "eth0", "address", "02:68:99:99:99:99"]);
    red.right.space.ip(&["route", "replace", "default", "via", &red.right.router.to_string()]);
    until("the new MAC address is learned", 60, || red.left.ping(red.right.address, 1) == 1);
}
