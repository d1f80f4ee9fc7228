//! Networks of kind `splice`, seen from their hosts: bits of each packet choose the way.

use std::net::Ipv4Addr;

use hue_e2e::document::all;
use hue_e2e::lab::text;
use hue_e2e::raw::{Flood, Raw, Sniffer};
use hue_e2e::{Daemon, Host, Lab, can_run, until};
use serde_json::Value;

use crate::card::{node, runs_on, start};

/// An address behind the second and the third host.
const SERVER: [u8; 4] = [10, 99, 0, 1];

fn own(port: usize) -> [u8; 6] {
    [2, 0x73, 7, port as u8, 7, 1]
}

/// A router with a host on each of three ports.
fn document(lab: &Lab, settings: &str, routes: &str) -> String {
    let port = |at: usize| {
        let (name, mac) = (&lab.ports()[at], text(own(at)));
        let address = format!("10.7.{}.1/24", at + 1);
        format!("    - {{name: v{at}, port: {name}, mac: \"{mac}\", addresses: [{address}]}}\n")
    };
    let ports: String = (0..3).map(port).collect();
    let name = lab.name("r0");
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  \
         plane: {{kind: splice, {settings}}}\n  ports:\n{ports}  routes: [{routes}]\n"
    )
}

/// A host on each port.
fn hosts(lab: &Lab) -> [Host; 3] {
    [0, 1, 2].map(|at: usize| {
        let link = at as u8 + 1;
        let mac = [2, 0xbb, 7, link, 7, 2];
        lab.host(&format!("h{link}"), at, mac, &format!("10.7.{link}.2/24"), Ipv4Addr::new(10, 7, link, 1))
    })
}

/// An IPv4 packet of the first host to [`SERVER`], with DF.
fn frame(host: &Host, identification: u16) -> Vec<u8> {
    let mut bytes = [&own(0)[..], &host.mac, &[8, 0, 0x45, 0, 0, 46]].concat();
    bytes.extend(identification.to_be_bytes());
    bytes.extend([0x40, 0, 64, 17, 0, 0, 10, 7, 1, 2]);
    bytes.extend(SERVER);
    let sum: u32 = bytes[14..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend([7; 26]);
    bytes
}

/// The identifications of packets to [`SERVER`].
fn identifications(frames: &[Vec<u8>]) -> Vec<u16> {
    frames.iter().map(|frame| u16::from_be_bytes([frame[18], frame[19]])).collect()
}

fn is_ours(frame: &[u8]) -> bool {
    frame.get(30..34) == Some(&SERVER)
}

#[test]
fn bits_choose_the_way_and_slices_follow_tables_of_the_kernel() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab);
    let routes = "{to: 10.99.0.0/16, via: 10.7.2.2}, {to: 10.99.0.0/16, via: 10.7.3.2, slice: 1}";
    let documents = |settings: &str| all(&[lab.node_document(""), document(&lab, settings, routes)]);
    let daemon = Daemon::start(&lab, &documents("slices: 3"));
    let name = lab.name("r0");
    runs_on(&daemon, &name, "soft");
    for (at, host) in hosts.iter().enumerate() {
        let router = Ipv4Addr::new(10, 7, at as u8 + 1, 1);
        until("the router answers", 20, || host.ping(router, 1) == 1);
    }
    let mut socket = Raw::open(&hosts[0].space, "eth0");
    let mut send =
        |frames: &[Vec<u8>]| assert_eq!(socket.send(frames.iter().map(Vec::as_slice)), frames.len() as u64);
    let watch = |at: usize| Sniffer::start(&hosts[at].space, "eth0", is_ours);
    let count = |of: &str, why: &str| daemon.cli.stats(&name)[of][why].as_u64().unwrap_or(0);
    let forwarded = || daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
    let listed = || daemon.cli.json(&["get", "routes", "10.99.0.0/16", "-n", &name]);
    until("both slices have their route", 20, || {
        let routes = listed();
        let does = |route: &Value| route["kind"] == "forward";
        routes.as_array().is_some_and(|list| list.len() == 2 && list.iter().all(does))
    });

    // Two flows, two ways; each packet has the bits of the next hop. Slice 2 has no route, slice 3 does not exist.
    let (second, third) = (watch(1), watch(2));
    // A ping may have named slice 3 by chance: hosts that know nothing of slices set any identification.
    let (before, no_slice) = (forwarded(), count("drops", "no_slice"));
    send(&[
        frame(&hosts[0], 0x0008),
        frame(&hosts[0], 0x0009),
        frame(&hosts[0], 0x5555),
        frame(&hosts[0], 3),
    ]);
    until("each has its outcome", 20, || {
        forwarded() == before + 3 && count("drops", "no_slice") == no_slice + 1
    });
    assert_eq!(identifications(&second.stop().frames), [0x0002]);
    assert_eq!(identifications(&third.stop().frames), [0x0002, 0x5555]);
    send(&[frame(&hosts[0], 2)]);
    until("slice 2 has no route", 20, || count("punts", "no_route") >= 1);

    // A routing daemon would fill a table of the kernel; links and neighbours are there already.
    let ip =
        |arguments: &[&str]| daemon.cli.exec(&name, &[&["ip", "route"][..], arguments].concat()).expect_ok();
    let _ = ip(&["add", "10.99.0.0/16", "via", "10.7.3.2", "table", "102"]);
    until("slice 2 has a route", 20, || listed().as_array().map(Vec::len) == Some(3));
    let slices: Vec<u64> =
        listed().as_array().unwrap().iter().filter_map(|one| one["slice"].as_u64()).collect();
    assert_eq!(slices, [0, 1, 2]);
    let shown = daemon.cli.run(&["get", "routes", "10.99.0.1", "-n", &name]).expect_ok();
    assert!(shown.stdout.contains("slice 2"), "{shown}");
    let hex: String = frame(&hosts[0], 0x0e).iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = daemon.cli.run(&["trace", "--live", "--in-port", &lab.ports()[0], "--hex", &hex]).expect_ok();
    for words in [
        "splicing bits 0x000e in ip_id, 2 a hop: slice 2 of 3",
        "10.99.0.1 in slice 2: matches 10.99.0.0/16 slice 2",
        "splicing bits 0x000e -> 0x0003",
    ] {
        assert!(trace.stdout.contains(words), "{words}: {trace}");
    }

    // Its route changes while packets flow, and none is lost; other slices keep theirs.
    let (second, third) = (watch(1), watch(2));
    let before = forwarded();
    let flood = Flood::start(&hosts[0].space, vec![frame(&hosts[0], 0xaaaa), frame(&hosts[0], 0)], 2_000);
    until("packets flow", 20, || flood.sent() > 500);
    let _ = ip(&["replace", "10.99.0.0/16", "via", "10.7.2.2", "table", "102"]);
    let at = flood.sent();
    until("more packets flow", 20, || flood.sent() > at + 500);
    let sent = flood.stop();
    until("all are forwarded", 20, || forwarded() == before + sent);
    let (second, third) = (second.stop(), third.stop());
    assert_eq!(second.wanted + third.wanted, sent);
    // Half of the packets are slice 0's, which never go there.
    let moved = second.wanted.saturating_sub(sent / 2);
    assert!(third.wanted >= 200 && moved >= 200, "{} {moved}", third.wanted);
    assert!(identifications(&third.frames).iter().all(|id| *id == 0xaaaa));

    // Another number of slices: the plane starts anew, with the routes of the tables that it has now.
    let _ = daemon.cli.apply(&documents("slices: 2"), &[]);
    until("two slices are left", 20, || listed().as_array().map(Vec::len) == Some(2));
    let second = watch(1);
    until("packets are forwarded by slice 0", 20, || {
        send(&[frame(&hosts[0], 0xff00)]);
        forwarded() >= 1
    });
    until("they arrive", 20, || hosts[1].space.counter("eth0", "rx_packets") > 0);
    let seen = identifications(&second.stop().frames);
    assert!(!seen.is_empty() && seen.iter().all(|id| *id == 0xff80), "{seen:?}");

    // A slice that the network does not have is refused in a document, and nothing changes.
    let wrong = documents("slices: 2").replace("slice: 1", "slice: 2");
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &wrong);
    assert!(
        refused.code != 0 && refused.stderr.contains("found slice 2, expected a number from 0 to 1"),
        "{refused}"
    );
    assert_eq!(listed().as_array().map(Vec::len), Some(2));
}

/// Packets of two slices flow while the network moves: none is lost, each goes by its slice and has the bits of the next hop.
#[test]
fn such_a_network_moves_between_card_and_software() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(3);
    let hosts = hosts(&lab);
    let routes = "{to: 10.99.0.0/16, via: 10.7.2.2}, {to: 10.99.0.0/16, via: 10.7.3.2, slice: 1}";
    let documents = |image: &str| [node(&lab, image), document(&lab, "slices: 2", routes)];
    let daemon = start(&lab, &["kinds"], &documents("kinds"));
    let name = lab.name("r0");
    runs_on(&daemon, &name, "card");
    for (host, link) in hosts.iter().zip(1..) {
        until("the router answers", 20, || host.ping(Ipv4Addr::new(10, 7, link, 1), 1) == 1);
    }
    let routes = || daemon.cli.json(&["get", "routes", "10.99.0.0/16", "-n", &name]);
    let forwards = |route: &Value| route["kind"] == "forward";
    until("both slices have their route", 20, || {
        routes().as_array().is_some_and(|list| list.len() == 2 && list.iter().all(forwards))
    });
    let moves = |to: &str| {
        let report = daemon.cli.json(&["migrate", &name, "--to", to]);
        for fault in ["lost", "doubled", "reordered"] {
            assert_eq!(report[fault], 0, "{report}");
        }
        runs_on(&daemon, &name, to);
    };
    let forwarded = || daemon.cli.stats(&name)["forwarded"].as_u64().unwrap_or(0);
    let watches = [1, 2].map(|at: usize| Sniffer::start(&hosts[at].space, "eth0", is_ours));
    let flood = Flood::start(&hosts[0].space, vec![frame(&hosts[0], 0x8008), frame(&hosts[0], 0x0009)], 500);
    until("frames flow", 20, || flood.sent() > 100);
    moves("soft");
    moves("card");
    let at = flood.sent();
    until("more frames flow", 20, || flood.sent() > at + 100);
    let sent = flood.stop();
    until("all are forwarded", 20, || forwarded() == sent);
    let [second, third] = watches.map(Sniffer::stop);
    assert_eq!([second.wanted, third.wanted], [sent.div_ceil(2), sent / 2]);
    assert!(identifications(&second.frames).iter().all(|id| *id == 0xc004));
    assert!(identifications(&third.frames).iter().all(|id| *id == 0x0004));
}
