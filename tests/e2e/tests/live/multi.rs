//! Two wires to each segment (multi-receiver): the neighbours of networks in software send to NICs beside the card's ports.
//! Real hosts are behind a switch that learns addresses; the tests check what the hosts receive.

use std::thread::sleep;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::lab::{Host, Pair, address6, text};
use hue_e2e::traffic::{Flow, Report};
use hue_e2e::{Daemon, Flood, Lab, Sniffer, can_run, until};
use serde_json::Value;

use crate::card::{network, node, runs_on, start};
use crate::migrate::is_clean;
use crate::{l2, mpls, rofl};

/// A lab of two segments with two wires each.
fn two_wires() -> Lab {
    let mut lab = Lab::new(2);
    lab.plug_nics();
    lab
}

/// The MAC address of its router in a host's neighbour table.
fn router_mac(host: &Host) -> String {
    let output = host.space.run("ip", &["neighbour", "show", &host.router.to_string()]);
    let mac = output.stdout.split_whitespace().skip_while(|word| *word != "lladdr").nth(1);
    mac.unwrap_or_default().to_owned()
}

/// The router's own MAC address on a host's segment, and the one beside it on the NIC.
fn macs(pair: &Pair, side: usize) -> [String; 2] {
    let own = &pair.document.ports[side].mac;
    let mut bytes = [0; 6];
    for (byte, digits) in bytes.iter_mut().zip(own.split(':')) {
        *byte = u8::from_str_radix(digits, 16).unwrap();
    }
    bytes[0] ^= 0x40;
    [own.clone(), text(bytes)]
}

/// The bridges learn none of the node's wires from now on: every frame for a network comes by both.
fn learn_no_wires(lab: &Lab) {
    for wire in ["w0", "w1", "x0", "x1"] {
        lab.switch().ip(&["link", "set", wire, "type", "bridge_slave", "learning", "off", "fdb_flush"]);
    }
}

/// Waits until hosts of a network send to the NICs, or to the card's ports.
fn neighbours_send_to(pair: &Pair, nic: bool) {
    for (side, host) in [&pair.left, &pair.right].into_iter().enumerate() {
        let expected = &macs(pair, side)[usize::from(nic)];
        until(&format!("{} sends to {expected}", host.space.name()), 10, || router_mac(host) == *expected);
    }
}

/// Frames that a port of the node has received.
fn received(daemon: &Daemon, port: &str) -> u64 {
    let stats = daemon.cli.json(&["stats"]);
    let found = stats["ports"].as_array().into_iter().flatten().find(|found| found["port"] == port);
    found.and_then(|found| found["received"].as_u64()).unwrap_or_else(|| panic!("{port}: {stats}"))
}

/// Checks that no packet was lost or duplicated, and at most `reordered_max` were reordered.
fn is_complete(report: &Report, reordered_max: u64) {
    assert!(
        report.lost() == 0 && report.duplicated == 0 && report.reordered <= reordered_max,
        "{report}; at most {reordered_max} reordered"
    );
}

#[test]
fn a_network_in_software_has_its_own_wire_and_moves_without_loss() {
    if !can_run(&["iperf3"]) {
        return;
    }
    let lab = two_wires();
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let soft = blue.document.clone().with("placement", "soft");
    let documents = [node(&lab, "default"), red.document.yaml(), soft.yaml()];
    let daemon = start(&lab, &["default"], &documents);
    runs_on(&daemon, red.name(), "card");
    runs_on(&daemon, blue.name(), "soft");
    daemon.cli.warm_up(&[&red, &blue]);
    neighbours_send_to(&red, false);
    neighbours_send_to(&blue, true);
    assert_eq!(
        (&network(&daemon, red.name())["on_nic"], &network(&daemon, blue.name())["on_nic"]),
        (&false.into(), &true.into())
    );

    // Frames of the network in software do not touch the card's ports, and the other way round.
    let before: Vec<u64> = ["p0", "n0"].into_iter().map(|port| received(&daemon, port)).collect();
    assert_eq!(blue.left.ping(blue.right.address, 20), 20);
    sleep(Duration::from_millis(300));
    let after: Vec<u64> = ["p0", "n0"].into_iter().map(|port| received(&daemon, port)).collect();
    assert!(after[0] < before[0] + 10 && after[1] >= before[1] + 20, "{before:?} {after:?}");

    // It moves both ways under traffic, and another network beside it is not affected.
    let flows =
        [Flow::start(&red.left, &red.right, 2_000, 64), Flow::start(&red.right, &red.left, 300, 1_400)];
    let beside = Flow::start(&blue.left, &blue.right, 500, 200);
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 100) && beside.received() > 50);
    let mut late = 0;
    for round in 0..6 {
        for to in ["soft", "card"] {
            let proof = daemon.cli.json(&["migrate", red.name(), "--to", to]);
            for field in ["lost", "doubled", "reordered"] {
                assert_eq!(proof[field], 0, "{proof}");
            }
            let steering = &proof["steering"];
            assert_eq!(steering["neighbours"], 2, "{proof}");
            late += steering["late"].as_u64().unwrap();
            if to == "soft" {
                // Packets can overtake others only in this time.
                let overlap_us = steering["overlap_us"].as_u64().unwrap_or_else(|| panic!("{proof}"));
                late += overlap_us * 2_300 / 1_000_000 + 1;
            }
            neighbours_send_to(&red, to == "soft");
            if round == 0 {
                eprintln!("{proof}");
            }
        }
    }
    let sum = flows.into_iter().map(Flow::stop).map(|report| {
        eprintln!("{report}; at most {late} reordered");
        is_complete(&report, late);
        report.reordered
    });
    assert!(sum.sum::<u64>() <= late, "no more are reordered than was reported: {late}");
    is_complete(&beside.stop(), 0);
    let kinds = daemon.cli.events();
    let steered = kinds.iter().filter(|event| event["kind"] == "steered" && event["network"] == red.name());
    assert_eq!(steered.count(), 12);

    // TCP continues.
    let mut server = hue_e2e::shell::command("iperf3");
    let server = red.right.space.spawn(server.args(["-s", "-1"]).stdout(std::process::Stdio::null()));
    until("iperf3 listens", 10, || {
        red.right.space.run("ss", &["-Hltn", "sport = :5201"]).stdout.contains("5201")
    });
    let json: Value = std::thread::scope(|scope| {
        let (space, address) = (&red.left.space, red.right.address.to_string());
        let client =
            scope.spawn(move || space.run("iperf3", &["-c", &address, "-t", "3", "-b", "10M", "-J"]));
        sleep(Duration::from_millis(500));
        for to in ["soft", "card", "soft", "card"] {
            let _ = daemon.cli.json(&["migrate", red.name(), "--to", to]);
            sleep(Duration::from_millis(200));
        }
        client.join().unwrap().expect_ok().json()
    });
    drop(server.wait_with_output());
    let received = json["end"]["sum_received"]["bytes"].as_u64();
    assert!(received > Some(2_000_000), "{received:?}");
}

#[test]
fn a_switch_that_floods_doubles_nothing_and_a_nic_that_goes_is_done_without() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let documents =
        [node(&lab, "default"), red.document.yaml(), blue.document.clone().with("placement", "soft").yaml()];
    let daemon = start(&lab, &["default"], &documents);
    runs_on(&daemon, red.name(), "card");
    runs_on(&daemon, blue.name(), "soft");
    daemon.cli.warm_up(&[&red, &blue]);
    learn_no_wires(&lab);
    let before = received(&daemon, "n0");
    let flows = [Flow::start(&red.left, &red.right, 500, 64), Flow::start(&blue.left, &blue.right, 500, 64)];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 300));
    for to in ["soft", "card"] {
        let _ = daemon.cli.json(&["migrate", red.name(), "--to", to]);
    }
    for flow in flows {
        let report = flow.stop();
        assert!(report.lost() == 0 && report.duplicated == 0 && report.foreign == 0, "{report}");
    }
    assert!(received(&daemon, "n0") > before + 600, "both networks' frames came by it");
    // Broadcasts came by both wires, and were accepted from one.
    for pair in [&red, &blue] {
        pair.left.space.ip(&["neighbour", "flush", "dev", "eth0"]);
        let output = pair.left.ping_with(pair.right.address, 5, &[]);
        assert!(
            !output.stdout.contains("DUP!") && output.stdout.contains(" 0% packet loss"),
            "{}",
            output.stdout
        );
        let losses = &daemon.cli.stats(pair.name())["losses"];
        assert!(losses["other_wire"].as_u64() > Some(0), "{losses}");
    }

    // Without its wire, the network's neighbours send to the card's ports again.
    neighbours_send_to(&blue, true);
    lab.switch().ip(&["link", "set", "x1", "down"]);
    neighbours_send_to(&blue, false);
    assert_eq!(blue.left.ping(blue.right.address, 10), 10);
    lab.switch().ip(&["link", "set", "x1", "up"]);
    neighbours_send_to(&blue, true);
    assert_eq!(blue.left.ping(blue.right.address, 10), 10);

    // Single-receiver again, only by a change of the document; the card keeps running.
    let alone = format!(
        "{}  card: {{twin: {{image: default}}, ports: [{}]}}\n",
        lab.node_document(""),
        lab.ports().join(", ")
    );
    daemon.cli.apply(&all(&[alone]), &[]);
    neighbours_send_to(&blue, false);
    assert_eq!(blue.left.ping(blue.right.address, 10), 10);
    runs_on(&daemon, red.name(), "card");
    let cards = daemon.cli.events().iter().filter(|event| event["kind"] == "card_up").count();
    assert_eq!(cards, 1, "the card is the same");
}

#[test]
fn an_image_is_loaded_while_neighbours_send_to_nics() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let red = lab.pair("red", 1, 1, [0, 1]);
    let documents = [node(&lab, "default"), red.document.yaml()];
    let daemon = start(&lab, &["default", "tcam3"], &documents);
    runs_on(&daemon, red.name(), "card");
    red.warm_up();
    let flow = Flow::start(&red.left, &red.right, 500, 200);
    until("traffic", 20, || flow.received() > 100);
    let loaded = daemon.cli.json(&["image", "load", "tcam3", "--reconfigure-time", "500ms"]);
    assert_eq!(loaded["image"], "tcam3", "{loaded}");
    runs_on(&daemon, red.name(), "card");
    neighbours_send_to(&red, false);
    let report = flow.stop();
    assert!(report.lost() == 0 && report.duplicated == 0, "{report}");
    let steered = daemon.cli.events();
    let steered: Vec<&str> = steered
        .iter()
        .filter(|event| event["kind"] == "steered")
        .filter_map(|event| event["message"].as_str())
        .collect();
    assert!(
        matches!(steered[..], [there, back] if there.contains("NICs") && back.contains("card's ports")),
        "{steered:?}"
    );
}

/// Frames of a network's router that hosts of other networks on the segments receive while `work` runs.
fn seen_beside(pair: &Pair, others: &[&Host], work: impl FnOnce()) -> Vec<Vec<u8>> {
    let routers: Vec<String> = (0..2).flat_map(|side| macs(pair, side)).collect();
    let sniffers: Vec<Sniffer> = others
        .iter()
        .map(|host| {
            let routers = routers.clone();
            let is_routers = move |frame: &[u8]| {
                let source = frame.get(6..12).and_then(|mac| mac.try_into().ok()).map(text);
                source.is_some_and(|source| routers.contains(&source))
            };
            Sniffer::start(&host.space, "eth0", is_routers)
        })
        .collect();
    work();
    // Wait for frames in flight.
    sleep(Duration::from_millis(300));
    sniffers.into_iter().flat_map(|sniffer| sniffer.stop().frames).collect()
}

#[test]
fn only_neighbours_are_redirected() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let document = blue.document.clone().with("placement", "soft");
    let documents = [node(&lab, "default"), red.document.yaml(), document.yaml()];
    let daemon = start(&lab, &["default", "tcam3"], &documents);
    runs_on(&daemon, red.name(), "card");
    runs_on(&daemon, blue.name(), "soft");
    daemon.cli.warm_up(&[&red, &blue]);
    neighbours_send_to(&red, false);
    let others = [&blue.left, &blue.right];

    let seen = seen_beside(&red, &others, || {
        for to in ["soft", "card"] {
            let proof = daemon.cli.json(&["migrate", red.name(), "--to", to]);
            assert_eq!(proof["steering"]["neighbours"], 2, "{proof}");
            neighbours_send_to(&red, to == "soft");
        }
        let loaded = daemon.cli.json(&["image", "load", "tcam3", "--reconfigure-time", "500ms"]);
        assert_eq!(loaded["image"], "tcam3", "{loaded}");
        runs_on(&daemon, red.name(), "card");
        neighbours_send_to(&red, false);
    });
    let steered = daemon.cli.events();
    let steered = steered.iter().filter(|event| event["kind"] == "steered" && event["network"] == red.name());
    assert_eq!(steered.count(), 4, "there and back, twice");
    assert!(seen.is_empty(), "another network's hosts saw {} frames: {seen:02x?}", seen.len());

    // A neighbour that the router does not know is not redirected: it sends by the other wire, and is received there.
    let forget = ["exec", red.name(), "--", "ip", "neighbour", "flush", "dev", "right"];
    let _ = daemon.cli.run(&forget).expect_ok();
    until("its router has forgotten it", 10, || network(&daemon, red.name())["neighbours"] == 1);
    let proof = daemon.cli.json(&["migrate", red.name(), "--to", "soft"]);
    assert_eq!(proof["steering"]["neighbours"], 1, "{proof}");
    assert_eq!(router_mac(&red.right), macs(&red, 1)[0], "not told");
    assert_eq!(red.right.ping(red.left.address, 5), 5);

    // Check of the watch itself: it sees a router's broadcast, an ARP request for a host that does not exist.
    let nobody = red.document.ports[1].addresses[0].replace(".1/24", ".99");
    let asked = seen_beside(&red, &others, || {
        let _ = red.left.ping_with(nobody.parse::<std::net::Ipv4Addr>().unwrap(), 1, &["-W", "1"]);
    });
    assert!(!asked.is_empty(), "a segment is one broadcast domain: its hosts see each other's broadcasts");
}

/// The wire of the node at which a bridge knows a MAC address.
fn wire_to(lab: &Lab, mac: [u8; 6], segment: usize) -> String {
    let shown =
        lab.switch().run("bridge", &["fdb", "show", "br", &format!("br{segment}")]).expect_ok().stdout;
    let mac = text(mac);
    let line = shown.lines().find(|line| line.starts_with(&mac)).unwrap_or_default();
    line.split_whitespace().skip_while(|word| *word != "dev").nth(1).unwrap_or_default().to_owned()
}

/// A switch has no ARP: frames in its hosts' names make the outside bridges send to the other wire, also to hosts that are
/// quiet. Nothing between hosts is lost or doubled, and broadcasts do not circle.
#[test]
fn a_switch_takes_its_hosts_to_the_other_wire() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let hosts = l2::hosts(&lab, 2);
    let quiet = lab.bare_host("quiet", 1, [2, 0xbb, 0, 0, 0, 9], "10.77.0.9/24");
    let four = lab.pair("four", 2, 2, [0, 1]);
    let name = lab.name("lan");
    let documents = [node(&lab, "kinds"), l2::document(&lab, 2, "", ""), four.document.yaml()];
    let daemon = start(&lab, &["kinds"], &documents);
    runs_on(&daemon, &name, "card");
    runs_on(&daemon, four.name(), "card");
    daemon.cli.warm_up(&[&four]);
    for (from, to) in [(&hosts[0], &hosts[1]), (&hosts[1], &hosts[0]), (&quiet, &hosts[0])] {
        until("hosts reach each other", 20, || from.ping(to.address, 1) == 1);
    }
    let known = l2::macs(&daemon, &name);
    assert_eq!(wire_to(&lab, quiet.mac, 0), "w0");

    let flows = [
        Flow::start(&hosts[0], &hosts[1], 300, 64),
        Flow::start(&hosts[1], &hosts[0], 200, 1_400),
        Flow::start(&four.left, &four.right, 200, 200),
    ];
    let everyone = vec![[&[0xff; 6][..], &hosts[1].mac, &[0x12, 0x35], &[7; 46]].concat()];
    let heard = Sniffer::start(&hosts[0].space, "eth0", |frame| frame.get(12..14) == Some(&[0x12, 0x35]));
    let calls = Flood::start(&hosts[1].space, everyone, 50);
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50) && calls.sent() > 20);
    const MOVES: u64 = 4;
    for round in 0..MOVES {
        let (to, wire) = [("soft", "x"), ("card", "w")][round as usize % 2];
        let report = daemon.cli.json(&["migrate", &name, "--to", to]);
        for field in ["lost", "doubled", "reordered"] {
            assert_eq!(report[field], 0, "{report}");
        }
        assert!(report["steering"]["neighbours"].as_u64() >= Some(3), "{report}");
        assert_eq!(network(&daemon, &name)["on_nic"], to == "soft");
        // Without a frame from it.
        assert_eq!(wire_to(&lab, quiet.mac, 0), format!("{wire}0"), "after the move to {to}");
        assert_eq!(wire_to(&lab, hosts[0].mac, 1), format!("{wire}1"), "after the move to {to}");
        let now = l2::macs(&daemon, &name);
        assert!(known.iter().all(|one| now.contains(one)), "known before the move to {to}: {now:?}");
        if to == "soft" {
            let before = received(&daemon, "n0");
            assert_eq!(hosts[0].ping(quiet.address, 20), 20);
            until("the NIC has received the pings", 10, || received(&daemon, "n0") >= before + 20);
        }
    }
    for flow in flows {
        let report = flow.stop();
        assert!(report.lost() == 0 && report.duplicated == 0, "{report}");
    }
    let sent = calls.stop();
    let heard = heard.stop().wanted;
    // At the moment of a turn one may be lost, or arrive by both wires.
    assert!(heard.abs_diff(sent) <= 2 * MOVES, "{heard} of {sent} broadcasts");
    let stats = daemon.cli.stats(&name);
    assert_eq!(stats["macs"]["moved"], 0, "no host seemed to be elsewhere: {stats}");
    assert!(stats["losses"]["other_wire"].as_u64() > Some(0), "{stats}");
}

/// The image is loaded again beneath a switch, which goes to the NICs for that time, and comes back.
#[test]
fn a_switch_takes_its_hosts_to_the_other_wire_while_an_image_is_loaded() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let hosts = l2::hosts(&lab, 2);
    let name = lab.name("lan");
    let documents = [node(&lab, "kinds"), l2::document(&lab, 2, "", "")];
    let daemon = start(&lab, &["kinds"], &documents);
    runs_on(&daemon, &name, "card");
    for (from, to) in [(&hosts[0], &hosts[1]), (&hosts[1], &hosts[0])] {
        until("hosts reach each other", 20, || from.ping(to.address, 1) == 1);
    }
    let flows = [Flow::start(&hosts[0], &hosts[1], 400, 64), Flow::start(&hosts[1], &hosts[0], 400, 64)];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    for _ in 0..5 {
        let loaded = daemon.cli.json(&["image", "load", "kinds"]);
        assert_eq!(loaded["networks"][0]["substrate"], "card", "{loaded}");
        sleep(Duration::from_millis(300));
        assert_eq!(network(&daemon, &name)["on_nic"], false);
    }
    let stats = daemon.cli.stats(&name);
    for flow in flows {
        let report = flow.stop();
        assert!(report.lost() == 0 && report.duplicated == 0, "{report}: {stats}, {:?}", daemon.cli.events());
    }
}

/// Moves a network whose kind has no ARP, and checks that the segments' bridges know its addresses at the wire of its plane, and that at
/// least 20 frames use it: those of `pings`, which come by the first segment.
fn move_with_addresses(
    lab: &Lab,
    daemon: &Daemon,
    name: &str,
    macs: [[u8; 6]; 2],
    to: &str,
    pings: impl Fn(),
) {
    move_quietly(lab, daemon, name, macs, to);
    let used = |port| received(daemon, port);
    let port = if to == "soft" { "n0" } else { "p0" };
    let before = used(port);
    pings();
    until("pings use the wire", 10, || used(port) >= before + 20);
}

/// The same without frames.
fn move_quietly(lab: &Lab, daemon: &Daemon, name: &str, macs: [[u8; 6]; 2], to: &str) {
    let report = daemon.cli.json(&["migrate", name, "--to", to]);
    is_clean(&report);
    assert_eq!(report["steering"]["neighbours"], 2, "its own addresses: {report}");
    assert_eq!(network(daemon, name)["on_nic"], to == "soft");
    let wire = if to == "soft" { "x" } else { "w" };
    for (segment, mac) in macs.into_iter().enumerate() {
        assert_eq!(wire_to(lab, mac, segment), format!("{wire}{segment}"), "after the move to {to}");
    }
}

/// Labels are switched at the same MAC addresses on both wires: the network tells the bridges where these are, and nothing between
/// hosts is lost or doubled.
#[test]
fn a_network_of_labels_takes_its_addresses_to_the_other_wire() {
    if !can_run(&["python3"]) {
        return;
    }
    let lab = two_wires();
    let host = |at: usize| {
        lab.bare_host(&format!("h{at}"), at, [2, 0, 0, 0, 0, 0xa1 + at as u8], &format!("10.10.{at}.1/32"))
    };
    let (a, b) = (host(0), host(1));
    let label = |label: u32, swap: u32, port: &str, to: &Host| {
        format!("    - {{label: {label}, swap: {swap}, port: {port}, neighbour: \"{}\"}}\n", text(to.mac))
    };
    let labels = label(100, 200, "out", &b) + &label(101, 201, "in", &a);
    let four = lab.pair("four", 2, 2, [0, 1]);
    // A network at other addresses, to which and from which nobody sends.
    let (name, quiet) = (lab.name("core"), lab.name("quiet"));
    let quiet_macs = [mpls::WEST, mpls::EAST].map(|mac| [2, 0, 0, 1, mac[4], mac[5]]);
    let mut silent = mpls::core(&lab, &labels).replace(&name, &quiet);
    for (mac, other) in [mpls::WEST, mpls::EAST].into_iter().zip(quiet_macs) {
        silent = silent.replace(&text(mac), &text(other));
    }
    let documents = [node(&lab, "kinds"), mpls::core(&lab, &labels), silent, four.document.yaml()];
    let daemon = start(&lab, &["kinds"], &documents);
    [&name, &quiet].into_iter().for_each(|name| runs_on(&daemon, name, "card"));
    daemon.cli.warm_up(&[&four]);
    let edges = [
        mpls::Edge::start(&a, mpls::WEST, 100, "10.10.1.1"),
        mpls::Edge::start(&b, mpls::EAST, 101, "10.10.0.1"),
    ];
    until("a reaches b", 20, || a.ping(b.address, 1) == 1);
    let flows = [
        Flow::start(&a, &b, 200, 64),
        Flow::start(&b, &a, 100, 1_300),
        Flow::start(&four.left, &four.right, 100, 200),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    for to in ["soft", "card"].repeat(3) {
        move_with_addresses(&lab, &daemon, &name, [mpls::WEST, mpls::EAST], to, || {
            assert_eq!(a.ping(b.address, 20), 20, "{}", daemon.cli.stats(&name))
        });
    }
    ["soft", "card"].into_iter().for_each(|to| move_quietly(&lab, &daemon, &quiet, quiet_macs, to));
    // An image is loaded beneath it, and the NICs are its wire for that time.
    let loaded = daemon.cli.json(&["image", "load", "kinds"]);
    assert_eq!(loaded["networks"].as_array().map(Vec::len), Some(3), "{loaded}");
    runs_on(&daemon, &name, "card");
    assert_eq!(network(&daemon, &name)["on_nic"], false);
    for flow in flows {
        let report = flow.stop();
        assert!(report.lost() == 0 && report.duplicated == 0, "{report}: {}", daemon.cli.stats(&name));
    }
    let told = daemon.cli.events();
    let told = told.iter().find(|event| event["kind"] == "steered" && event["network"] == name.as_str());
    let text = told.map(|event| event["message"].to_string()).unwrap_or_default();
    assert!(
        text.contains("announcements of 2 MAC addresses make outside switches send to the NICs"),
        "{text}"
    );

    // What comes by both wires is taken from one.
    learn_no_wires(&lab);
    for to in ["soft", "card"] {
        is_clean(&daemon.cli.json(&["migrate", &name, "--to", to]));
        let lost = || daemon.cli.stats(&name)["losses"]["other_wire"].as_u64().unwrap_or(0);
        let before = lost();
        let output = a.ping_with(b.address, 20, &[]);
        assert!(output.stdout.contains(" 0% packet loss") && !output.stdout.contains("DUP!"), "{output}");
        until("the other wire's frames are counted", 10, || lost() >= before + 40);
    }
    drop(edges);
}

/// A switch takes all frames of its ports that no other network takes there. What outside switches flood to the wrong wire is another
/// network's all the same: the switch does not carry it to the other segment.
#[test]
fn a_switch_gets_no_frames_for_the_other_wire() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let hosts = l2::hosts(&lab, 2);
    let (name, red) = (lab.name("lan"), lab.pair("red", 2, 2, [0, 1]));
    let documents = [node(&lab, "kinds"), l2::document(&lab, 2, "", ""), red.document.yaml()];
    let daemon = start(&lab, &["kinds"], &documents);
    [name.as_str(), red.name()].into_iter().for_each(|name| runs_on(&daemon, name, "card"));
    daemon.cli.warm_up(&[&red]);
    until("hosts reach each other", 20, || hosts[0].ping(hosts[1].address, 1) == 1);
    learn_no_wires(&lab);
    for (lan, to) in [("card", "soft"), ("soft", "card"), ("card", "card"), ("soft", "soft")] {
        for (name, to) in [(name.as_str(), lan), (red.name(), to)] {
            if network(&daemon, name)["substrate"] != to {
                is_clean(&daemon.cli.json(&["migrate", name, "--to", to]));
            }
        }
        neighbours_send_to(&red, to == "soft");
        // Broadcasts are for all on the segment, so for the switch too.
        let from = red.left.mac;
        let is_leaked = move |frame: &[u8]| frame[0] & 1 == 0 && frame.get(6..12) == Some(&from[..]);
        let leaked = Sniffer::start(&hosts[1].space, "eth0", is_leaked);
        assert_eq!(red.left.ping(red.right.address, 20), 20);
        assert_eq!(hosts[0].ping(hosts[1].address, 5), 5, "the switch works");
        let leaked = leaked.stop();
        assert_eq!(leaked.wanted, 0, "switch {lan}, router {to}: {:02x?}", leaked.frames.first());
    }
}

/// Flat labels come by whole ports, as a switch's frames do, but at the network's own addresses.
#[test]
fn a_network_of_flat_labels_takes_its_addresses_to_the_other_wire() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let (hosts, name) = (rofl::flat_hosts(&lab), lab.name("flat"));
    let daemon = start(&lab, &["kinds"], &[node(&lab, "kinds"), rofl::flat(&lab, &hosts, 0, "")]);
    runs_on(&daemon, &name, "card");
    let endpoints = rofl::flat_endpoints(&hosts);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| rofl::ping(&hosts[0], "10.8.0.2", 1_000, &["-i", "0.004"]));
        for to in ["soft", "card"].repeat(2) {
            let macs = [rofl::flat_mac(0), rofl::flat_mac(1)];
            move_with_addresses(&lab, &daemon, &name, macs, to, || {
                assert!(rofl::ping(&hosts[0], "10.8.0.2", 20, &[]))
            });
        }
        assert!(pings.join().unwrap(), "no ping is lost");
    });
    drop(endpoints);
}

/// The neighbours of a network with both families are told by ARP and by neighbour discovery.
#[test]
fn both_families_of_a_network_go_to_the_other_wire() {
    if !can_run(&[]) {
        return;
    }
    let lab = two_wires();
    let both = lab.pair_dual("both", 1, 1, [0, 1]);
    let daemon = start(&lab, &["kinds"], &[node(&lab, "kinds"), both.document.yaml()]);
    runs_on(&daemon, both.name(), "card");
    daemon.cli.warm_up(&[&both]);
    let right = address6(1, 2, 2);
    until("IPv6 hosts reach each other", 20, || both.left.ping(right, 1) == 1);
    let router_mac6 = || {
        let shown =
            both.left.space.run("ip", &["-6", "neighbour", "show", &address6(1, 1, 1).to_string()]).stdout;
        shown.split_whitespace().skip_while(|word| *word != "lladdr").nth(1).unwrap_or_default().to_owned()
    };
    let flows = [
        Flow::start(&both.left, &both.right, 200, 64),
        Flow::start_to(&both.left, &both.right, right, 200, 200),
    ];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    for to in ["soft", "card"].repeat(2) {
        is_clean(&daemon.cli.json(&["migrate", both.name(), "--to", to]));
        neighbours_send_to(&both, to == "soft");
        let expected = &macs(&both, 0)[usize::from(to == "soft")];
        until("IPv6 hosts send there too", 10, || router_mac6() == *expected);
        let before = received(&daemon, "n0");
        assert_eq!(both.left.ping(right, 20), 20);
        sleep(Duration::from_millis(300));
        assert_eq!(received(&daemon, "n0") >= before + 20, to == "soft");
    }
    for flow in flows {
        let report = flow.stop();
        assert!(report.lost() == 0 && report.duplicated == 0, "{report}");
    }
}
