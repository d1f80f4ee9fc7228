//! Packet memory follows the ports: frames that are longer than a small slot, and the report for a port that comes too late.

use hue_e2e::document::all;
use hue_e2e::{Daemon, Lab, can_run, until};

/// An MTU between the sizes of small and large slots.
const MTU: &str = "3000";

/// Sets this MTU on everything between a port and its hosts.
fn widen(lab: &Lab, port: usize) {
    lab.node().ip(&["link", "set", &lab.ports()[port], "mtu", MTU]);
    let switch = lab.switch().run("ip", &["-o", "link", "show", "type", "veth"]).expect_ok();
    for line in switch.stdout.lines() {
        let name = line.split(": ").nth(1).and_then(|name| name.split('@').next()).unwrap();
        lab.switch().ip(&["link", "set", name, "mtu", MTU]);
    }
}

fn port(daemon: &Daemon, name: &str) -> serde_json::Value {
    let ports = daemon.cli.json(&["get", "ports"]);
    ports.as_array().unwrap().iter().find(|port| port["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn long_packets_pass_when_ports_are_for_them() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 1]);
    (0..2).for_each(|port| widen(&lab, port));
    for host in [&pair.left, &pair.right] {
        host.space.ip(&["link", "set", "eth0", "mtu", MTU]);
    }
    let more = format!("mtu: {MTU}");
    let network = pair.document.yaml().replace(", addresses:", &format!(", {more}, addresses:"));
    let daemon = Daemon::start(&lab, &all(&[lab.node_document(&more), network]));
    for name in lab.ports() {
        let port = port(&daemon, name);
        assert!(port["state"] == "up" && port["driver"] == "afxdp", "{port}");
    }
    pair.warm_up();
    // 2,972 bytes and the headers of ICMP and IP: the largest packet, unfragmented.
    let output = pair.left.ping_with(pair.right.address, 10, &["-s", "2972", "-M", "do"]);
    assert!(output.stdout.contains(" 0% packet loss"), "{output}");
    assert_eq!(daemon.cli.stats(pair.name())["outcomes"]["mtu"].as_u64().unwrap_or(0), 0);
}

#[test]
fn a_port_that_comes_too_late_for_long_packets_says_what_helps() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let pair = lab.pair("red", 1, 1, [0, 0]);
    let [first, late] = [&lab.ports()[0], &lab.ports()[1]];
    let node = |ports: &[String]| hue_e2e::document::node(&lab.name("node"), ports, "");
    let mut daemon = Daemon::start(&lab, &all(&[node(std::slice::from_ref(first)), pair.document.yaml()]));
    widen(&lab, 1);
    daemon.cli.apply(&node(lab.ports()), &[]);
    let refused = port(&daemon, late);
    let error = refused["error"].as_str().unwrap_or_default();
    assert!(error.contains("do not fit") && error.contains("restart the daemon"), "{refused}");
    assert_eq!(port(&daemon, first)["state"], "up", "the others go on");
    daemon.down(&["--keep"]);
    daemon.replace(&lab);
    until("the late port is up", 20, || port(&daemon, late)["state"] == "up");
    assert_eq!(port(&daemon, first)["state"], "up");
}
