//! Networks of kind `mpls` between real hosts: the three routers of `labs/mpls`, and a fourth network on the first port with
//! the same label. The kernel of the test machine need not have MPLS: the hosts push and pop by `labs/mpls/edge.py`, a program
//! with a raw socket, except where a router pops the last label, so that the host's own kernel gets the packet.

use std::process::{Child, Command, Stdio};

use hue_e2e::document::all;
use hue_e2e::lab::{Host, text};
use hue_e2e::raw::{Flood, Raw, Sniffer, until_seen};
use hue_e2e::{Daemon, Lab, can_run, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::card::{node, runs_on, start};
use crate::migrate::move_to;

const LAB: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/mpls/hueplane.yaml"));
const EDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/mpls/edge.py");
const LINKS: &str = "  links: [{ends: [west-middle, middle-west]}, {ends: [middle-east, east-middle]}]\n";
pub const WEST: [u8; 6] = [2, 0, 0, 0, 0x0a, 1];
pub const EAST: [u8; 6] = [2, 0, 0, 0, 0x0c, 1];
/// The address of the other network on the first port.
const OTHER: [u8; 6] = [2, 0, 0, 0, 0x0d, 1];

/// The documents of the lab's networks, on the test's ports.
fn networks(lab: &Lab) -> Vec<String> {
    let ports = lab.ports();
    let other = format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: other}}\nspec:\n  plane: {{kind: mpls, ttl: pipe}}\n  ports:\n    \
         - {{name: in, port: p0, mac: \"{}\"}}\n    - {{name: out, port: p2, mac: \"02:00:00:00:0d:02\"}}\n  labels:\n    \
         - {{label: 100, pop: true, port: out, neighbour: \"02:00:00:00:00:c1\"}}\n",
        text(OTHER)
    );
    let documents = LAB.split("---\n").skip(1).chain([other.as_str()]);
    let here = |document: &str| {
        let mut document = document.to_owned();
        for name in ["west", "middle", "east", "other"] {
            document =
                document.replace(&format!("{{name: {name}}}"), &format!("{{name: {}}}", lab.name(name)));
        }
        for (at, port) in ports.iter().enumerate() {
            document = document.replace(&format!("port: p{at},"), &format!("port: {port},"));
        }
        document
    };
    documents.map(here).collect()
}

/// The program that puts a host's packets onto a path.
pub struct Edge(Child);

impl Edge {
    /// What `host` sends to `peer` leaves with `label`. Its own address is that of the lab.
    pub fn start(host: &Host, router: [u8; 6], label: u32, peer: &str) -> Self {
        let mut command = Command::new("python3");
        command.args([EDGE, "eth0", "lsp0", &text(router), &label.to_string()]).stdout(Stdio::piped());
        let edge = Self(host.space.spawn(&mut command));
        let is_up = || host.space.run("ip", &["link", "set", "lsp0", "up"]).ok();
        until("the program has made its interface", 20, is_up);
        host.space.ip(&["route", "add", peer, "dev", "lsp0", "src", &host.address.to_string()]);
        edge
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// A frame with labels above an IPv4 packet with TTL 64, whose last bytes are `number`.
fn frame(to: [u8; 6], from: [u8; 6], labels: &[u32], ttl: u8, number: u8) -> Vec<u8> {
    let mut bytes = [&to[..], &from, &[0x88, 0x47]].concat();
    for (at, label) in labels.iter().enumerate() {
        let bottom = u32::from(at + 1 == labels.len());
        bytes.extend((label << 12 | bottom << 8 | u32::from(ttl)).to_be_bytes());
    }
    bytes.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 253, 0, 0, 192, 0, 2, 1, 198, 51, 100, 9]);
    bytes.extend([number; 26]);
    bytes
}

/// Whether a frame is an IPv4 packet of [`frame`].
fn is_ours(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&253)
}

#[test]
fn labels_lead_through_three_routers_and_apart() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = Lab::new(3);
    let host = |name: &str, port: usize, last: u8| {
        lab.bare_host(name, port, [2, 0, 0, 0, 0, last], &format!("10.10.{port}.1/32"))
    };
    let (a, b, c) = (host("a", 0, 0xa1), host("b", 1, 0xb1), host("c", 2, 0xc1));
    let names = ["west", "middle", "east", "other"].map(|name| lab.name(name));
    let [west, middle, east, other] = &names;
    let documents = |change: &dyn Fn(String) -> String| {
        let networks = networks(&lab).into_iter().map(change);
        all(&[lab.node_document("") + LINKS].into_iter().chain(networks).collect::<Vec<_>>())
    };
    let mut daemon = Daemon::start(&lab, &documents(&|document| document));
    names.iter().for_each(|name| runs_on(&daemon, name, "soft"));

    // Hosts reach each other over the path: 100, then 200 below 300, 200, no label; and back.
    let edges = [Edge::start(&a, WEST, 100, "10.10.1.1"), Edge::start(&b, EAST, 101, "10.10.0.1")];
    until("a reaches b", 20, || a.ping(b.address, 1) == 1);
    assert_eq!(a.ping(b.address, 10), 10);
    let out = a.ping_with(b.address, 2, &["-s", "1400", "-t", "9"]);
    assert!(out.stdout.contains(" 0% packet loss") && out.stdout.contains("ttl=61"), "{out}");
    // The third router would send it with TTL 0.
    assert!(a.ping_with(b.address, 1, &["-t", "3", "-W", "1"]).stdout.contains("100% packet loss"));
    let count = |name: &str, of: &str, why: &str| daemon.cli.stats(name)[of][why].as_u64().unwrap_or(0);
    until("the last router passes it to its namespace", 20, || count(east, "punts", "ttl") >= 1);
    drop(edges);

    // The same label at the same port, but to the other network: only c gets it, and west sees nothing.
    let watch = |host: &Host| Sniffer::start(&host.space, "eth0", is_ours);
    let forwarded = |name: &str| daemon.cli.stats(name)["forwarded"].as_u64().unwrap_or(0);
    let (mut socket, before) = (Raw::open(&a.space, "eth0"), forwarded(west));
    let (at_b, at_c) = (watch(&b), watch(&c));
    let sent: Vec<Vec<u8>> = (0..50).map(|number| frame(OTHER, a.mac, &[100], 9, number)).collect();
    assert_eq!(socket.send(sent.iter().map(Vec::as_slice)), 50);
    until("all are forwarded", 20, || forwarded(other) == 50);
    let (at_b, at_c) = (at_b.stop(), at_c.stop());
    assert_eq!((at_b.wanted, at_c.wanted, forwarded(west)), (0, 50, before));
    // Without the label, for the neighbour; with kind of TTL pipe, the packet is as it was.
    let popped = [&c.mac[..], &[2, 0, 0, 0, 0x0d, 2], &[8, 0], &sent[0][18..]].concat();
    assert_eq!(at_c.frames[0], popped);

    // Each of the others is counted where it ends.
    let deep = [100; 17];
    let bad = [
        frame(WEST, a.mac, &[999], 64, 0),
        frame(WEST, a.mac, &[100], 1, 0),
        frame(WEST, a.mac, &deep, 64, 0),
        frame(WEST, a.mac, &[3], 64, 0),
        frame(WEST, a.mac, &[1, 100], 64, 0),
        frame(WEST, a.mac, &[100], 64, 0)[..17].to_vec(),
    ];
    assert_eq!(socket.send(bad.iter().map(Vec::as_slice)), 6);
    let wanted = [("drops", "no_entry"), ("punts", "ttl"), ("drops", "too_deep"), ("drops", "reserved")];
    until("each is counted", 20, || {
        wanted.iter().all(|(of, why)| count(west, of, why) == 1)
            && count(west, "punts", "router_alert") == 1
            && count(west, "drops", "short") == 1
    });

    // What the user sees.
    let listed = daemon.cli.json(&["get", "entries", "-n", west]);
    let first = json!({"network": west, "index": 0, "match": "100", "action": "forward", "port": "core",
        "destination": "02:00:00:00:0b:01", "source": "02:00:00:00:0a:02", "labels": [300, 200]});
    assert_eq!(listed[0], first);
    assert_eq!(listed[1]["labels"], json!([]));
    let table = daemon.cli.run(&["get", "entries", "-n", west]).expect_ok();
    assert!(table.stdout.contains("300 200") && table.stdout.contains("pop"), "{table}");
    let hex: String = frame(WEST, a.mac, &[100], 64, 0).iter().map(|byte| format!("{byte:02x}")).collect();
    let port = &lab.ports()[0];
    let trace = daemon.cli.run(&["trace", "--live", "--in-port", port, "--hex", &hex]).expect_ok();
    assert!(trace.stdout.contains("labels 300 (TTL 63), 200 (TTL 63)"), "{trace}");

    // Middle's label changes under traffic, from popping to swapping for a label that east pops: none is lost.
    let changed = |document: String| {
        let pop = "{label: 300, pop: true,";
        let swap = "{label: 300, swap: 16,";
        let last = "  labels:\n    - {label: 200,";
        let more = "  labels:\n    - {label: 16, pop: true, port: hosts, neighbour: \"02:00:00:00:00:b1\"}\n    - {label: 200,";
        document.replace(pop, swap).replace(last, more)
    };
    let start = [west, middle, east].map(|name| forwarded(name));
    let at_b =
        Sniffer::start(&b.space, "eth0", |frame| frame.get(35) == Some(&9) || frame.get(39) == Some(&9));
    let flood = Flood::start(&a.space, vec![frame(WEST, a.mac, &[100], 64, 9)], 2_000);
    until("frames flow", 20, || flood.sent() > 300);
    let _ = daemon.cli.apply(&documents(&changed), &[]);
    let at = flood.sent();
    until("more frames flow", 20, || flood.sent() > at + 300);
    // A document with an error changes nothing.
    let wrong = documents(&changed).replace("swap: 202", "swap: 3");
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &wrong);
    assert!(refused.code != 0 && refused.stderr.contains("implicit null means pop: true"), "{refused}");
    let sent = flood.stop();
    for (name, start) in [west, middle, east].into_iter().zip(start) {
        until("all are forwarded", 20, || forwarded(name) == start + sent);
    }
    assert_eq!(at_b.stop().wanted, sent);

    // A daemon that comes back has them.
    daemon.kill();
    daemon.respawn(&lab);
    names.iter().for_each(|name| runs_on(&daemon, name, "soft"));
    until_seen(&mut socket, &frame(OTHER, a.mac, &[100], 9, 1), || watch(&c));
    until("it is counted", 20, || daemon.cli.stats(other)["forwarded"].as_u64() >= Some(1));
}

/// The document of network `core` on the first two ports, with addresses WEST and EAST there, and these labels.
pub fn core(lab: &Lab, labels: &str) -> String {
    let (name, ports) = (lab.name("core"), lab.ports());
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: mpls}}\n  ports:\n    \
         - {{name: in, port: {}, mac: \"{}\"}}\n    - {{name: out, port: {}, mac: \"{}\"}}\n  labels:\n{labels}",
        ports[0],
        text(WEST),
        ports[1],
        text(EAST)
    )
}

/// A network that only swaps labels moves between card and software; one that pushes some stays in software.
#[test]
fn a_network_that_swaps_labels_moves_between_card_and_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let hosts = crate::l2::hosts_on(&lab, 0..2);
    let name = lab.name("core");
    let documents = |label: &str| {
        let label =
            format!("    - {{label: 100, {label}, port: out, neighbour: \"{}\"}}\n", text(hosts[1].mac));
        [node(&lab, "kinds"), core(&lab, &label)]
    };
    let daemon = start(&lab, &["kinds"], &documents("swap: 200"));
    let moves = |to: &str| move_to(&daemon, &name, to);
    runs_on(&daemon, &name, "card");
    let with = |label: u32| {
        let swapped = frame(hosts[1].mac, EAST, &[label], 8, 9);
        Sniffer::start(&hosts[1].space, "eth0", move |frame| frame.get(..60) == swapped.get(..60))
    };
    let (before, after) = (with(200), with(201));
    let flood = Flood::start(&hosts[0].space, vec![frame(WEST, hosts[0].mac, &[100], 9, 9)], 500);
    until("frames flow", 20, || flood.sent() > 100);
    moves("soft");
    moves("card");
    let _ = daemon.cli.apply(&all(&documents("swap: 201")), &[]);
    let at = flood.sent();
    until("more frames flow", 20, || flood.sent() > at + 100);
    runs_on(&daemon, &name, "card");
    let _ = daemon.cli.apply(&all(&documents("swap: 201, push: [300]")), &[]);
    runs_on(&daemon, &name, "soft");
    let sent = flood.stop();
    until("all are forwarded", 20, || daemon.cli.stats(&name)["forwarded"].as_u64() == Some(sent));
    let (before, after) = (before.stop().wanted, after.stop().wanted);
    assert!(before > 50 && after > 50 && before + after <= sent, "{before} and {after} of {sent}");
    let why = daemon.cli.json(&["get", "placements", &name]).to_string();
    assert!(why.contains("push or pop"), "{why}");
    let refused = daemon.cli.run(&["migrate", &name, "--to", "card"]);
    assert!(refused.code != 0 && refused.stderr.contains("push or pop"), "{refused}");
}
