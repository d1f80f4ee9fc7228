//! Networks of kind `rofl`, seen from their hosts: IP over flat labels, through two of them.

use std::process::{Child, Stdio};

use hue_e2e::daemon::binary;
use hue_e2e::document::all;
use hue_e2e::lab::{Host, text};
use hue_e2e::raw::Raw;
use hue_e2e::shell;
use hue_e2e::{Daemon, Lab, can_run, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::card::{node, runs_on, start};
use crate::forwarding::transfer;
use crate::migrate::move_to;

pub const ALICE: &str = "0x20000000";
pub const BOB: &str = "0xa0000000";

fn own(network: u8, port: u8) -> String {
    text([2, 0, 0, 0, 0x80 | network, port])
}

/// West with alice on port 0, east with bob on port 1, joined by a link; `labels` are east's.
fn documents(lab: &Lab, hosts: &[Host; 2], labels: &[String]) -> String {
    let network = |at: u8, name: &str, end: &str, plane: &str, labels: &str| {
        let (port, name) = (&lab.ports()[usize::from(at)], lab.name(name));
        let (hosts, up) = (own(at, 0), own(at, 1));
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: rofl, label_bits: 32{plane}}}\n  \
             ports:\n    - {{name: hosts, port: {port}, mac: \"{hosts}\"}}\n    - {{name: up, port: {end}, mac: \"{up}\"}}\n  flat_labels:\n{labels}"
        )
    };
    let resident = |label: &str, host: &Host| {
        format!(
            "    - {{label: \"{label}\", port: hosts, neighbour: \"{}\", resident: true}}\n",
            text(host.mac)
        )
    };
    let way = |label: &str, to: u8| {
        format!("    - {{label: \"{label}\", port: up, neighbour: \"{}\"}}\n", own(to, 1))
    };
    let west = format!(
        "    - {{label: \"0x10000000\", own: true}}\n{}{}",
        resident(ALICE, &hosts[0]),
        way("0x80000000", 1)
    );
    let bob = if labels.iter().any(|label| label == BOB) { resident(BOB, &hosts[1]) } else { String::new() };
    let east = format!("    - {{label: \"0x80000000\", own: true}}\n{}{bob}", way("0x10000000", 0));
    let node = lab.node_document("") + "  links: [{ends: [we, ew]}]\n";
    let west = network(0, "west", "we", "", &west);
    let east = network(1, "east", "ew", ", pointers_max: 0", &east);
    all(&[node, west, east])
}

/// `hueplane rofl-host` on a host.
pub struct Endpoint(Child);

impl Endpoint {
    fn start(host: &Host, at: u8, label: &str, to: &str) -> Self {
        let last = at + 1;
        let v6 = ["--teach", "--address", &format!("fd08::{last}/64"), "--to", &format!("fd08::/64={to}")];
        Self::with(host, &own(at, 0), last, label, to, &v6)
    }

    /// The same for a router with this MAC address that speaks the ring's protocol: the host is 10.8.0.`last`, of 1 and 2.
    pub fn joining(host: &Host, router: &str, last: u8, label: &str, to: &str) -> Self {
        Self::with(host, router, last, label, to, &["--join"])
    }

    /// The same, with more arguments.
    pub fn with(host: &Host, router: &str, last: u8, label: &str, to: &str, more: &[&str]) -> Self {
        let other = 3 - last;
        let mut command = shell::command(&binary().to_string_lossy());
        command.args(["rofl-host", "--interface", "eth0", "--router", router, "--label", label]);
        command.args(["--address", &format!("10.8.0.{last}/24"), "--to", &format!("10.8.0.{other}={to}")]);
        command.args(more).args(["-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(host.space.spawn(&mut command))
    }

    /// Ends it. Returns what it counted.
    pub fn end(mut self) -> Value {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM).unwrap();
        let text = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn ping(host: &Host, to: &str, count: u32, more: &[&str]) -> bool {
    let output = host.ping_with(to.parse::<std::net::IpAddr>().unwrap(), count, more);
    output.stdout.contains(&format!("{count} packets transmitted, {count} received"))
}

#[test]
fn hosts_reach_each_other_over_flat_labels() {
    if !can_run(&["tshark"]) {
        return;
    }
    let lab = Lab::new(2);
    let host = |at: usize| {
        let host = lab.bare_host(&format!("flat{at}"), at, [2, 0xbb, 0, 0, 8, at as u8], "192.0.2.1/32");
        host.space.enable_ipv6();
        host
    };
    let hosts = [host(0), host(1)];
    let names = [lab.name("west"), lab.name("east")];
    let with_bob = documents(&lab, &hosts, &[BOB.to_owned()]);
    let mut daemon = Daemon::start(&lab, &with_bob);
    names.iter().for_each(|name| runs_on(&daemon, name, "soft"));
    let [alice, bob] = [Endpoint::start(&hosts[0], 0, ALICE, BOB), Endpoint::start(&hosts[1], 1, BOB, ALICE)];
    until("the endpoints are there", 20, || ping(&hosts[0], "10.8.0.2", 1, &[]));
    // Addresses of IPv6 come a second later (RFC 4862 §5.4).
    until("IPv6 is there", 20, || ping(&hosts[1], "fd08::1", 1, &[]));
    assert!(ping(&hosts[0], "10.8.0.2", 20, &[]) && ping(&hosts[1], "fd08::1", 5, &[]));
    // 20 bytes are the header, its two labels and that of the source route; 28 those of ICMP in IP.
    assert!(ping(&hosts[0], "10.8.0.2", 2, &["-M", "do", "-s", "1452"]), "the longest packet");
    assert!(!ping(&hosts[0], "10.8.0.2", 1, &["-M", "do", "-s", "1453"]), "the kernel knows the MTU");
    let bytes = 1 << 20;
    let bob_ip: std::net::Ipv4Addr = "10.8.0.2".parse().unwrap();
    assert_eq!(transfer(&hosts[0], &hosts[1], bob_ip, bytes), bytes);

    // What the user sees: entries, and bob's label, which west caches from his packets.
    let listed = daemon.cli.json(&["get", "entries", "-n", &names[0]]);
    let entry = json!({"network": names[0], "index": 1, "match": ALICE, "action": "forward", "port": "hosts",
        "destination": text(hosts[0].mac), "source": own(0, 0), "resident": true});
    assert_eq!(listed[1], entry);
    let pointer = &listed[3];
    assert_eq!((&pointer["match"], &pointer["port"]), (&json!(BOB), &json!("up")), "{listed}");
    assert!(pointer["age_seconds"].is_u64() && listed[2]["age_seconds"].is_null(), "{listed}");
    let count = |at: usize, of: &str, why: &str| daemon.cli.stats(&names[at])[of][why].as_u64().unwrap_or(0);
    let mut socket = Raw::open(&hosts[0].space, "eth0");
    let frame = |label: u8, flags: u8| {
        let head = [2, 0, 0, 0, 0x80, 0, 2, 0xbb, 0, 0, 8, 0, 0x88, 0xb5, 0x10 | flags, 4, 9, 0, 8, 0, 0, 0];
        let mut frame = [&head[..], &[label, 0, 0, 1, 0x20, 0, 0, 0]].concat();
        frame.resize(60, 0);
        frame
    };
    let hex: String = frame(0x90, 0).iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = daemon.cli.run(&["trace", "--live", "--in-port", &lab.ports()[0], "--hex", &hex]).expect_ok();
    assert!(trace.stdout.contains("0x90000001: entry 0x80000000, the closest before it"), "{trace}");
    assert_eq!(socket.send([&frame(0x20, 0)[..], &frame(0x90, 0), &frame(0x10, 2)]), 3);
    until("each is counted", 20, || {
        let west = count(0, "drops", "unknown_label") >= 1 && count(0, "punts", "for_closest") == 1;
        west && count(1, "drops", "unknown_label") >= 1
    });

    // Labels leave and join; the others stay where they are.
    let _ = daemon.cli.apply(&documents(&lab, &hosts, &[]), &[]);
    let before = count(1, "drops", "unknown_label");
    assert!(!ping(&hosts[0], "10.8.0.2", 1, &[]), "nobody has the label");
    assert_eq!(count(1, "drops", "unknown_label"), before + 1);
    let wrong = with_bob.replace(BOB, "0xa00000");
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &wrong);
    assert!(refused.code != 0 && refused.stderr.contains("found 6 digits, expected 8"), "{refused}");
    let _ = daemon.cli.apply(&with_bob, &[]);
    assert!(ping(&hosts[0], "10.8.0.2", 10, &[]), "the label is back");

    // A daemon that comes back has them.
    daemon.kill();
    daemon.respawn(&lab);
    until("hosts reach each other again", 20, || ping(&hosts[0], "10.8.0.2", 1, &[]));
    for counts in [alice.end(), bob.end()] {
        assert!(counts["received"].as_u64() >= Some(36), "{counts}");
    }

    // The dissector reads the lab's packets: version, labels and hop budget, and the payload.
    let labs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/rofl");
    let mut tshark = shell::command("tshark");
    tshark.args([
        "-X",
        &format!("lua_script:{labs}/rofl.lua"),
        "-r",
        &format!("{labs}/p0.pcap"),
        "-T",
        "fields",
    ]);
    for field in
        ["rofl.version", "rofl.budget", "rofl.destination", "rofl.route", "icmp.type", "rofl.malformed"]
    {
        tshark.args(["-e", field]);
    }
    let lines = shell::run(&mut tshark).expect_ok().stdout;
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0], "1\t16\ta0000000\t\t8\t", "{lines:?}");
    assert_eq!(lines[4], "1\t16\ta0000000\t90000000\t\t", "{lines:?}");
    assert_eq!(lines[6], "2\t16\t\t\t\t1", "{lines:?}");
}

/// The address of network `flat` at a port.
pub fn flat_mac(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0x88, port as u8]
}

/// Two hosts of network `flat`: alice and bob.
pub fn flat_hosts(lab: &Lab) -> [Host; 2] {
    [0, 1].map(|at: usize| {
        lab.bare_host(&format!("flat{at}"), at, [2, 0xbb, 0, 0, 8, at as u8], "192.0.2.1/32")
    })
}

/// The document of network `flat` on the first two ports, with more labels than those of its hosts.
pub fn flat(lab: &Lab, hosts: &[Host; 2], pointers: u16, more: &str) -> String {
    let port = |at: usize| {
        format!("    - {{name: v{at}, port: {}, mac: \"{}\"}}\n", lab.ports()[at], text(flat_mac(at)))
    };
    let label = |(at, label): (usize, &str)| {
        format!(
            "    - {{label: \"{label}\", port: v{at}, neighbour: \"{}\", resident: true}}\n",
            text(hosts[at].mac)
        )
    };
    let labels = [(0, ALICE), (1, BOB)].map(label).concat();
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  \
         plane: {{kind: rofl, label_bits: 32, pointers_max: {pointers}}}\n  ports:\n{}  flat_labels:\n{labels}{more}",
        lab.name("flat"),
        [port(0), port(1)].concat()
    )
}

/// The endpoints of the hosts of network `flat`, once they reach each other.
pub fn flat_endpoints(hosts: &[Host; 2]) -> [Endpoint; 2] {
    let start = |(at, label, to): (usize, &str, &str)| {
        Endpoint::with(&hosts[at], &text(flat_mac(at)), at as u8 + 1, label, to, &[])
    };
    let endpoints = [(0, ALICE, BOB), (1, BOB, ALICE)].map(start);
    until("the endpoints are there", 20, || ping(&hosts[0], "10.8.0.2", 1, &[]));
    endpoints
}

/// Two hosts of one network, which moves between card and software, and gets other labels, under their pings.
#[test]
fn such_a_network_moves_between_card_and_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (hosts, name) = (flat_hosts(&lab), lab.name("flat"));
    let documents = |pointers, more| [node(&lab, "kinds"), flat(&lab, &hosts, pointers, more)];
    let daemon = start(&lab, &["kinds"], &documents(0, ""));
    runs_on(&daemon, &name, "card");
    let endpoints = flat_endpoints(&hosts);
    let moves = |to: &str| move_to(&daemon, &name, to);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| ping(&hosts[0], "10.8.0.2", 600, &["-i", "0.004"]));
        moves("soft");
        moves("card");
        let _ = daemon.cli.apply(&all(&documents(0, "    - {label: \"0x20000001\", own: true}\n")), &[]);
        runs_on(&daemon, &name, "card");
        assert!(pings.join().unwrap(), "no ping is lost");
    });
    let counts = daemon.cli.stats(&name);
    assert!(counts["forwarded"].as_u64() >= Some(1200), "{counts}");
    // 0x20000002 is nobody's: the closest label is the router's own, on the card.
    let mut socket = Raw::open(&hosts[0].space, "eth0");
    let head =
        [&[2, 0, 0, 0, 0x88, 0, 2, 0xbb, 0, 0, 8, 0, 0x88, 0xb5][..], &[0x10, 4, 9, 0, 8, 0, 0, 0]].concat();
    let frame = |last: u8| [&head[..], &[0x20, 0, 0, last, 0x20, 0, 0, 0], &[0; 30]].concat();
    assert_eq!(socket.send([&frame(1)[..], &frame(2)]), 2);
    until("each is counted", 20, || {
        let counts = daemon.cli.stats(&name);
        (&counts["punts"]["for_us"], &counts["drops"]["unknown_label"]) == (&json!(1), &json!(1))
    });

    // One that caches pointers stays in software.
    let _ = daemon.cli.apply(&all(&documents(5, "")), &[]);
    runs_on(&daemon, &name, "soft");
    let why = daemon.cli.json(&["get", "placements", &name]).to_string();
    assert!(why.contains("it caches pointers"), "{why}");
    let refused = daemon.cli.run(&["migrate", &name, "--to", "card"]);
    assert!(refused.code != 0 && refused.stderr.contains("pointers_max: 0"), "{refused}");
    assert!(ping(&hosts[0], "10.8.0.2", 3, &[]));
    drop(endpoints);
}

#[test]
fn an_endpoint_says_what_is_wrong() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(1);
    let host = lab.bare_host("flat", 0, [2, 0xbb, 0, 0, 8, 1], "192.0.2.1/32");
    let run = |more: &[&str]| {
        let mut command = shell::command(&binary().to_string_lossy());
        command.args(["rofl-host", "--router", "02:00:00:00:80:00"]).args(more);
        host.space.run_command(&mut command)
    };
    let of = |label: &str, interface: &str, to: &str| {
        run(&["--label", label, "--interface", interface, "--to", to])
    };
    for (output, code, text) in [
        (
            of("0x20000000", "eth0", "10.8.0.2=0xa000000000"),
            2,
            "found a label of 40 bits, expected 32, as --label has",
        ),
        (of("0x2000", "eth0", "10.8.0.2=0xa0000000"), 2, "expected 8 to 32 hexadecimal digits"),
        (of("0x20000000", "eth0", "10.8.0.2"), 2, "expected an address or a prefix, =, and a label"),
        (of("0x20000000", "nosuch", "10.8.0.2=0xa0000000"), 1, "nosuch"),
    ] {
        assert!(output.code == code && output.stderr.contains(text), "{output}");
    }
    host.space.ip(&["link", "set", "eth0", "mtu", "1290"]);
    let small = of("0x20000000", "eth0", "10.8.0.2=0xa0000000");
    assert!(small.code == 2 && small.stderr.contains("leaves 1274 bytes for IP packets"), "{small}");
}
