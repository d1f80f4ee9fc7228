//! Networks of kind `kernel`, seen from their hosts.

use hue_e2e::document::all;
use hue_e2e::frame::{Ends, udp};
use hue_e2e::lab::address6;
use hue_e2e::raw::Flood;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, Pair, can_run, until};
use serde_json::Value;

use crate::card::{mac, node, runs_on, start};
use crate::forwarding::transfer;

/// A network whose packets Linux forwards, between two hosts of both families.
fn linux(lab: &Lab, name: &str, n: u8, on: [usize; 2]) -> Pair {
    let mut pair = lab.pair_dual(name, n, n, on);
    pair.document.kind = "kernel";
    pair
}

/// Packets that a network handed to its namespace, and those that it received from the wire.
fn delegated(stats: &Value) -> [u64; 2] {
    let received: u64 = stats["ports"].as_array().unwrap().iter().map(|port| count(&port["received"])).sum();
    [count(&stats["punts"]["delegated"]), received]
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[test]
fn linux_forwards_for_hosts_of_both_families_and_by_its_own_rules() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    // A static route of the document, a network beside it on the same ports, and a limit of punts that it
    // would exceed if it counted.
    let red = linux(&lab, "red", 1, [0, 1]);
    let red =
        Pair { document: red.document.clone().with("routes", "[{to: 10.99.0.0/16, via: 10.1.2.2}]"), ..red };
    let blue = lab.pair("blue", 2, 2, [0, 1]);
    let daemon =
        Daemon::start(&lab, &all(&[lab.node_document(""), red.document.yaml(), blue.document.yaml()]));
    red.warm_up();
    blue.warm_up();
    let right6 = address6(1, 2, 2);
    until("IPv6 reaches the other host", 20, || red.left.ping(right6, 1) == 1);
    assert_eq!((red.left.ping(red.right.address, 10), red.left.ping(right6, 10)), (10, 10));
    red.right.space.ip(&["address", "add", "10.99.0.1/32", "dev", "lo"]);
    assert_eq!(red.left.ping([10, 99, 0, 1], 3), 3, "the static route");
    assert_eq!(transfer(&red.left, &red.right, red.right.address, 20 << 20), 20 << 20);
    // All that came was handed over, and nothing of it is limited or lost.
    let stats = daemon.cli.stats(red.name());
    let [handed, received] = delegated(&stats);
    assert!(handed == received && handed > 5_000, "{stats}");
    assert_eq!(count(&stats["losses"]["punt_limited"]), 0, "{stats}");
    assert_eq!(daemon.cli.json(&["get", "routes", "-n", red.name()]), Value::Array(Vec::new()));
    // Linux answers like any router.
    let far = red.left.ping_with([192, 0, 2, 9], 1, &["-t", "5"]);
    assert!(far.stdout.contains("Destination Net Unreachable"), "{far}");
    // Its own rules hold: policy routing here. The network beside is not touched.
    let exec = |command: &[&str]| daemon.cli.exec(red.name(), command).expect_ok();
    exec(&["ip", "rule", "add", "from", "10.1.1.2", "prohibit"]);
    let refused = red.left.ping_with(red.right.address, 1, &[]);
    assert!(refused.stdout.contains("Packet filtered"), "{refused}");
    assert_eq!(blue.left.ping(blue.right.address, 3), 3);
    exec(&["ip", "rule", "del", "from", "10.1.1.2", "prohibit"]);
    assert_eq!(red.left.ping(red.right.address, 3), 3);
    // A change of kind and back, while it runs.
    let mut routed = red.document.clone();
    routed.kind = "dual";
    daemon.cli.apply(&all(&[routed.yaml()]), &[]);
    until("the plane forwards", 20, || red.left.ping(red.right.address, 1) == 1);
    assert!(count(&daemon.cli.stats(red.name())["punts"]["delegated"]) == 0);
    daemon.cli.apply(&all(&[red.document.yaml()]), &[]);
    until("Linux forwards again", 20, || red.left.ping(red.right.address, 1) == 1);
}

/// On a node with a card, frames that arrive at its ports reach Linux and programs as those of any network in software.
#[test]
fn linux_and_programs_forward_beside_a_card() {
    if !can_run(&["socat"]) {
        return;
    }
    let lab = Lab::new(4);
    let red = linux(&lab, "red", 1, [0, 1]);
    let blue = lab.pair("blue", 2, 2, [0, 1]);
    let lan = crate::l2::hosts_on(&lab, 2..4);
    let wire = ["socat", "INTERFACE:v2", "INTERFACE:v3"].map(str::to_owned);
    let violet =
        crate::process::document(&lab, "violet", 2..4, &wire, "|, capabilities: [net_raw, net_admin]");
    let documents = [node(&lab, "default"), red.document.yaml(), blue.document.yaml(), violet];
    let daemon = start(&lab, &["default"], &documents);
    daemon.cli.warm_up(&[&red, &blue]);
    runs_on(&daemon, blue.name(), "card");
    until("the program forwards", 20, || lan[0].ping(lan[1].address, 1) == 1);
    assert_eq!((red.left.ping(red.right.address, 10), lan[1].ping(lan[0].address, 10)), (10, 10));
    for (name, kind) in [(red.name().to_owned(), "kernel"), (lab.name("violet"), "process")] {
        let placement = daemon.cli.json(&["get", "placements", &name]);
        let why = placement["why_not"].as_str().unwrap_or_default();
        assert!(why.contains(&format!("kind {kind}")), "{placement}");
        let refused = daemon.cli.run(&["migrate", &name, "--to", "card"]);
        assert!(refused.code != 0 && refused.stderr.contains(kind), "{refused}");
    }
    assert_eq!((red.left.ping(red.right.address, 5), blue.left.ping(blue.right.address, 5)), (5, 5));
}

/// Linux takes longer for a packet than a plane, the more so with rules of its owner. The network pays for that time itself.
#[test]
fn a_flood_into_a_slow_namespace_takes_nothing_from_others() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let slow = linux(&lab, "slow", 1, [0, 1]);
    let red = lab.pair("red", 2, 2, [0, 1]);
    let daemon = Daemon::start_with(&lab, &Cli::new(&lab), &["--workers", "1"]);
    daemon.cli.apply(&all(&[lab.node_document(""), slow.document.yaml(), red.document.yaml()]), &[]);
    slow.warm_up();
    red.warm_up();
    // 2,000 rules of policy routing that do not match, for each packet.
    let mut rules = String::new();
    for at in 0..2_000 {
        rules += &format!("rule add pref {} from 198.51.{}.{}/32 prohibit\n", at + 1, at / 250, at % 250);
    }
    let file = lab.folder().join("rules");
    std::fs::write(&file, rules).unwrap();
    let _ = daemon.cli.exec(slow.name(), &["ip", "-batch", file.to_str().unwrap()]).expect_ok();
    let macs = [mac(&slow.document.ports[0].mac), slow.left.mac];
    let ends = Ends { macs, addresses: [slow.left.address, slow.right.address], ttl: 64 };
    let flood = Flood::start(&slow.left.space, vec![udp(ends, [7, 9], &[0; 18])], 60_000);
    let flow = Flow::start(&red.left, &red.right, 1_000, 64);
    until("packets arrive", 60, || flow.received() >= 8_000);
    let report = flow.stop();
    let sent = flood.stop();
    let stats = daemon.cli.stats(slow.name());
    println!("beside {sent} frames, {:?} of them handed to the slow namespace: {report}", delegated(&stats));
    // Several times what the other network sent. How fast the flood is depends on the machine.
    assert!(sent > 40_000 && delegated(&stats)[0] > 10_000, "{sent} {stats}");
    assert!(report.lost() == 0 && report.duplicated == 0 && report.reordered == 0, "{report}");
}
