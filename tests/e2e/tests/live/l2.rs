//! Networks of kind `l2`, seen from their hosts.

use hue_e2e::document::all;
use hue_e2e::lab::{Host, text};
use hue_e2e::raw::{Flood, Raw, Sniffer};
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, can_run, http, until};
use serde_json::Value;

use crate::card::{node, runs_on, start};
use crate::forwarding::transfer;
use crate::migrate::is_whole;

/// A switch on the first `ports` ports of the node, which are its own.
pub fn document(lab: &Lab, ports: usize, plane: &str, more: &str) -> String {
    let port = |at: usize| {
        let (name, mac) = (&lab.ports()[at], text([2, 0, 0, 0, 0x70, at as u8]));
        format!("    - {{name: v{at}, port: {name}, mac: \"{mac}\"}}\n")
    };
    let ports: String = (0..ports).map(port).collect();
    let name = lab.name("lan");
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: l2{plane}}}\n  ports:\n{ports}{more}"
    )
}

/// A host behind each of the first `count` ports, all on one link.
pub fn hosts(lab: &Lab, count: usize) -> Vec<Host> {
    hosts_on(lab, 0..count)
}

/// The same behind these ports.
pub fn hosts_on(lab: &Lab, ports: std::ops::Range<usize>) -> Vec<Host> {
    let host = |at: usize| {
        let mac = [2, 0xbb, 0, 0, 0, at as u8 + 1];
        lab.bare_host(&format!("lan{at}"), at, mac, &format!("10.77.0.{}/24", at + 1))
    };
    ports.map(host).collect()
}

/// Waits until each host has reached the next one.
pub fn reach_each_other(hosts: &[Host]) {
    for (from, to) in hosts.iter().zip(hosts.iter().cycle().skip(1)) {
        until("hosts reach each other", 20, || from.ping(to.address, 1) == 1);
    }
}

/// Each host is known at its port.
fn knows(known: &[(String, String)], hosts: &[Host]) {
    for (host, at) in hosts.iter().zip(0..) {
        assert!(known.contains(&(text(host.mac), format!("v{at}"))), "{known:?}");
    }
}

/// Sees frames for the second host that reach the third one.
fn strays(hosts: &[Host]) -> Sniffer {
    let to = hosts[1].mac;
    Sniffer::start(&hosts[2].space, "eth0", move |frame| frame.starts_with(&to))
}

/// Frames for a host that is known go to its port only.
fn reaches_only_its_port(hosts: &[Host], watch: Sniffer) {
    assert_eq!(hosts[0].ping(hosts[1].address, 10), 10);
    assert_eq!(watch.stop().wanted, 0, "the third host saw frames for the second");
}

/// MAC addresses that a switch knows, with the ports that they are behind.
pub fn macs(daemon: &Daemon, name: &str) -> Vec<(String, String)> {
    let list = daemon.cli.json(&["get", "macs", "-n", name]);
    let word = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(|one| (word(one, "mac"), word(one, "port"))).collect()
}

#[test]
fn hosts_of_a_switch_are_on_one_link() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab, 3);
    let name = lab.name("lan");
    // Its router addresses are reached through the same ports: design select by MAC comes first.
    let four = lab.pair("four", 2, 2, [0, 1]);
    let daemon =
        Daemon::start(&lab, &all(&[lab.node_document(""), document(&lab, 3, "", ""), four.document.yaml()]));
    reach_each_other(&hosts);
    four.warm_up();
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        assert_eq!(hosts[from].ping(hosts[to].address, 20), 20);
    }
    assert_eq!(transfer(&hosts[0], &hosts[2], hosts[2].address, 60 << 20), 60 << 20);
    assert_eq!(four.left.ping(four.right.address, 10), 10);
    let known = macs(&daemon, &name);
    knows(&known, &hosts);
    reaches_only_its_port(&hosts, strays(&hosts));
    let stats = daemon.cli.stats(&name);
    let count = |field: &str| stats[field].as_u64().unwrap_or(0);
    assert!(count("copies") > 0 && stats["macs"]["learnt"].as_u64().unwrap() >= 3, "{stats}");
    let metrics = http::get(&daemon.cli.socket(), "/metrics").body;
    let metric = |what: &str| {
        let start = format!("hueplane_network_{what}{{network=\"{name}\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse::<u64>().ok());
        value.unwrap_or_else(|| panic!("{what}: {metrics}"))
    };
    assert_eq!((metric("macs"), metric("macs_max")), (known.len() as u64, 4_096));
    assert!(metric("copies_total") >= count("copies") && metric("macs_learnt_total") >= 3);
    assert_eq!((metric("macs_moved_total"), metric("macs_not_learnt_total")), (0, 0));
    assert!(!metrics.contains(&format!("hueplane_network_macs{{network=\"{}\"}}", four.name())));
    // A trace answers from what was learnt.
    let frame = format!("{}{}0800", hex(hosts[1].mac), hex(hosts[0].mac));
    let trace =
        daemon.cli.run(&["trace", "--live", "--in-port", &lab.ports()[0], "--hex", &frame]).expect_ok();
    assert!(trace.stdout.contains("learnt at port") && trace.stdout.contains("forward"), "{trace}");
    let counts = daemon.cli.json(&["get", "routes", "-n", &name]);
    assert_eq!(counts, Value::Array(Vec::new()), "a switch has no routes");
}

fn hex(mac: [u8; 6]) -> String {
    text(mac).replace(':', "")
}

#[test]
fn a_switch_holds_its_hosts_to_their_ports_and_limits_floods() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab, 3);
    let name = lab.name("lan");
    let fixed = format!("  static_macs: [{{mac: \"{}\", port: v1}}]\n", text(hosts[1].mac));
    let plane = ", storm_limit: {packets_per_second: 50, burst_packets: 40}";
    let text_of = document(&lab, 3, plane, &fixed);
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(""), text_of.clone()]));
    until("hosts reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    // The third host claims to be the second.
    let forged = [&hosts[0].mac[..], &hosts[1].mac, &[0x12, 0x34], &[7; 46]].concat();
    let seen = Sniffer::start(&hosts[0].space, "eth0", |frame| frame.get(12..14) == Some(&[0x12, 0x34]));
    let mut socket = Raw::open(&hosts[2].space, "eth0");
    assert_eq!(socket.send((0..20).map(|_| &forged[..])), 20);
    until("all are counted", 20, || daemon.cli.stats(&name)["drops"]["wrong_port"] == 20);
    assert_eq!(seen.stop().wanted, 0);
    assert_eq!(hosts[0].ping(hosts[1].address, 5), 5);
    // A storm: most of it ends at the switch, and hosts that are known reach each other meanwhile.
    // To a host that nobody knows: broadcasts of one sender are limited before the ring already.
    let storm = [&[2, 0xbb, 0, 0, 0, 99][..], &hosts[2].mac, &[0x12, 0x35], &[7; 46]].concat();
    let seen = Sniffer::start(&hosts[0].space, "eth0", |frame| frame.get(12..14) == Some(&[0x12, 0x35]));
    assert_eq!(socket.send((0..300).map(|_| &storm[..])), 300);
    let dropped = || daemon.cli.stats(&name)["drops"]["storm"].as_u64().unwrap_or(0);
    until("most of the storm is dropped", 20, || dropped() > 150);
    let seen = seen.stop().wanted;
    assert!((1..150).contains(&seen), "{seen} of 300");
    assert_eq!(hosts[0].ping(hosts[1].address, 5), 5);
    // A change of the settings keeps what was learnt, and no host notices.
    let before = macs(&daemon, &name);
    let _ = daemon.cli.apply(&text_of.replace(", storm_limit", ", sticky: true, storm_limit"), &[]);
    assert_eq!(macs(&daemon, &name), before);
    assert_eq!(hosts[0].ping(hosts[1].address, 5), 5);
    // A wrong document changes nothing.
    let wrong = daemon
        .cli
        .run_with(&["apply", "-f", "-"], &text_of.replace("kind: l2", "kind: l2, martians: forward"));
    assert!(wrong.code != 0 && wrong.stderr.contains("martians with kind l2"), "{wrong}");
    assert_eq!(hosts[0].ping(hosts[1].address, 5), 5);
}

#[test]
fn behind_a_card_whose_image_lacks_the_kind_a_switch_runs_in_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let hosts = hosts(&lab, 2);
    let four = lab.pair("four", 2, 2, [0, 1]);
    let name = lab.name("lan");
    let documents = [node(&lab, "default"), document(&lab, 2, "", ""), four.document.yaml()];
    let daemon = start(&lab, &["default"], &documents);
    runs_on(&daemon, four.name(), "card");
    runs_on(&daemon, &name, "soft");
    until("hosts reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    four.warm_up();
    assert_eq!(hosts[0].ping(hosts[1].address, 20), 20);
    assert_eq!(four.left.ping(four.right.address, 20), 20);
    let moved = daemon.cli.run(&["migrate", &name, "--to", "card"]);
    assert!(moved.code != 0 && moved.stderr.contains("image default has no kind l2"), "{moved}");
    for to in ["soft", "card"] {
        let _ = daemon.cli.run(&["migrate", four.name(), "--to", to]).expect_ok();
        assert_eq!(hosts[1].ping(hosts[0].address, 5), 5);
    }
}

/// Sends from more and more senders, so that the switch has something to learn all the time, and from one sender that moves
/// between two ports.
fn newcomers(hosts: &[Host]) -> [Flood; 2] {
    let from = |host: &Host, senders: &mut dyn Iterator<Item = [u8; 6]>| -> Vec<Vec<u8>> {
        senders.map(|sender| [&host.mac[..], &sender, &[0x12, 0x36], &[7; 46]].concat()).collect()
    };
    let many = from(&hosts[0], &mut (0..200u8).map(|n| [2, 0xcc, 0, 0, 0, n]));
    let one = from(&hosts[0], &mut std::iter::once([2, 0xcc, 0, 0, 1, 0]));
    [Flood::start(&hosts[2].space, many, 150), Flood::start(&hosts[1].space, one, 40)]
}

/// A switch moves between card and software while its hosts talk, while new senders appear, and while it floods. Nothing is
/// lost, and what is known stays known.
#[test]
fn a_switch_moves_while_it_learns() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab, 3);
    let four = lab.pair("four", 2, 2, [0, 1]);
    let name = lab.name("lan");
    let documents = [node(&lab, "kinds"), document(&lab, 3, "", ""), four.document.yaml()];
    let daemon = start(&lab, &["kinds"], &documents);
    runs_on(&daemon, four.name(), "card");
    runs_on(&daemon, &name, "card");
    reach_each_other(&hosts);
    daemon.cli.warm_up(&[&four]);
    let known = macs(&daemon, &name);
    knows(&known, &hosts);
    let stats = daemon.cli.stats(&name);
    assert!(stats["copies"].as_u64().unwrap() > 0, "the card flooded: {stats}");
    // To nobody: each frame is sent to two ports.
    let unknown = vec![[&[2, 0xbb, 0, 0, 0, 99][..], &hosts[0].mac, &[0x12, 0x35], &[7; 46]].concat()];
    let flood = Flood::start(&hosts[0].space, unknown, 100);
    let news = newcomers(&hosts);
    let flows = [
        Flow::start(&hosts[0], &hosts[1], 400, 64),
        Flow::start(&hosts[1], &hosts[2], 200, 1_400),
        Flow::start(&four.left, &four.right, 200, 200),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 20));
    for to in ["soft", "card", "soft", "card"] {
        let report = daemon.cli.json(&["migrate", &name, "--to", to, "--look-ms", "300"]);
        let sums = ["lost", "doubled", "reordered", "undecided"].map(|field| report[field].as_u64().unwrap());
        assert_eq!(sums, [0; 4], "{report}");
        assert_eq!(report["to"], to, "{report}");
        let now = macs(&daemon, &name);
        assert!(known.iter().all(|one| now.contains(one)), "known before the move to {to}: {now:?}");
    }
    flows.into_iter().for_each(is_whole);
    // What happens to frames of a flood is seen too.
    for (to, mishap, field) in [("soft", "doubled", "doubled"), ("card", "packets", "lost")] {
        let report = daemon.cli.json(&["migrate", &name, "--to", to, "--look-ms", "300", "--fail", mishap]);
        assert!(report[field].as_u64().unwrap() > 5, "{report}");
    }
    assert!(flood.stop() > 0 && news.map(Flood::stop).into_iter().all(|sent| sent > 0));
    reaches_only_its_port(&hosts, strays(&hosts));
    let stats = daemon.cli.stats(&name);
    assert!(
        stats["macs"]["moved"].as_u64().unwrap() == 0 && stats["macs"]["learnt"].as_u64().unwrap() >= 204,
        "{stats}"
    );
}

/// A card that is taken away leaves its networks in software: a switch knows all that it knew.
#[test]
fn a_switch_that_loses_its_card_knows_its_hosts() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab, 3);
    let name = lab.name("lan");
    let daemon = start(&lab, &["kinds"], &[node(&lab, "kinds"), document(&lab, 3, "", "")]);
    runs_on(&daemon, &name, "card");
    reach_each_other(&hosts);
    let known = macs(&daemon, &name);
    let failed = daemon.cli.run(&["migrate", &name, "--to", "soft", "--fail", "card"]);
    assert!(failed.stdout.contains("soft") || failed.stderr.contains("failed"), "{failed}");
    runs_on(&daemon, &name, "soft");
    let now = macs(&daemon, &name);
    assert!(known.iter().all(|one| now.contains(one)), "{known:?}, now {now:?}");
    let watch = strays(&hosts);
    // The ports open again first.
    until("hosts reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    reaches_only_its_port(&hosts, watch);
}
