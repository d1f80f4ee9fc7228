//! Links inside the node: two networks that are joined without a wire outside.

use std::net::Ipv4Addr;

use hue_e2e::document::{Document, VirtualPort, all};
use hue_e2e::frr::{Frr, ospf};
use hue_e2e::lab::{Host, text};
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, can_run, until, until_some};

use crate::card;
use crate::migrate::{is_clean, is_whole};

const LINK: &str = "  links: [{ends: [red-blue, blue-red]}]\n";

/// Red with a host on port 0 and blue with a host on port 1, and their documents. Red and blue are joined by a link.
fn joined(lab: &Lab) -> [(Host, Document); 2] {
    let one = |n: u8| {
        let (name, end) = [("red", "red-blue"), ("blue", "blue-red")][usize::from(n)];
        let port = |name: &str, port: &str, at: u8, address: String| VirtualPort {
            name: name.to_owned(),
            port: port.to_owned(),
            mac: text([2, 0x72, n, at, 0, 1]),
            addresses: vec![address],
        };
        let ports = vec![
            port("hosts", &lab.ports()[usize::from(n)], 0, format!("10.{n}.1.1/24")),
            port("peer", end, 1, format!("10.255.0.{}/30", n + 1)),
        ];
        let router = Ipv4Addr::new(10, n, 1, 1);
        let address = format!("10.{n}.1.2/24");
        let host = lab.host(name, usize::from(n), [2, 0x68, n, 0, 0, 2], &address, router);
        (host, Document { name: lab.name(name), kind: "ipv4", ports, more: Vec::new() })
    };
    [one(0), one(1)]
}

/// The same, with a static route to the other network's hosts.
fn routed(lab: &Lab) -> [(Host, Document); 2] {
    let [red, blue] = joined(lab);
    let to = |document: Document, n: u8| {
        document.with("routes", &format!("[{{to: 10.{n}.1.0/24, via: 10.255.0.{}}}]", n + 1))
    };
    [(red.0, to(red.1, 1)), (blue.0, to(blue.1, 0))]
}

#[test]
fn a_link_joins_two_networks_and_no_third() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let [(red, red_document), (blue, blue_document)] = routed(&lab);
    let node = lab.node_document("") + LINK;
    let documents = [node, red_document.yaml(), blue_document.yaml()];
    let mut daemon = Daemon::start(&lab, &all(&documents));
    daemon.cli.settle(&[&red_document.name, &blue_document.name], || {
        red.ping(blue.address, 1) == 1 && blue.ping(red.address, 1) == 1
    });
    let flows = [Flow::start(&red, &blue, 500, 200), Flow::start(&blue, &red, 500, 1400)];
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 300));
    flows.into_iter().for_each(is_whole);

    // Both ends from one answer, once nothing is on the way: the kernels still send ARP.
    let ends = || {
        let ports = daemon.cli.json(&["get", "ports"]);
        let end =
            |name: &str| ports.as_array().unwrap().iter().find(|port| port["name"] == name).unwrap().clone();
        let (one, other) = (end("red-blue"), end("blue-red"));
        (one["stats"]["sent"] == other["stats"]["received"]).then_some((one, other))
    };
    let (one, _) = until_some("both ends have counted the same packets", 10, ends);
    assert_eq!((&one["driver"], &one["peer"]), (&"link".into(), &"blue-red".into()), "{one}");
    assert!(one["stats"]["sent"].as_u64() > Some(250), "{one}");
    let shown = daemon.cli.run(&["get", "ports"]).expect_ok().stdout;
    assert!(shown.contains("link to blue-red"), "{shown}");

    // A trace follows the packet over the link.
    let frame = hue_e2e::frame::udp(
        hue_e2e::frame::Ends {
            macs: [[2, 0x72, 0, 0, 0, 1], red.mac],
            addresses: [red.address, blue.address],
            ttl: 64,
        },
        [1, 2],
        b"x",
    );
    let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = daemon.cli.json(&["trace", "--live", "--in-port", &lab.ports()[0], "--hex", &digits]);
    assert_eq!(trace["networks"][0]["out_port"], "red-blue", "{trace}");
    let second = &trace["crossed"][0];
    assert_eq!((&second["in_port"], &second["verdict"]), (&"blue-red".into(), &"forward".into()), "{trace}");
    assert_eq!(second["networks"][0]["network"], blue_document.name.as_str());

    // No other network can be on an end; the node's document stays as it was.
    let mut green = lab.pair_document("green", 9, 9, [0, 1]);
    green.ports[0].port = "red-blue".to_owned();
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &green.yaml()).expect_code(3);
    assert!(refused.stderr.contains("at most one virtual port on each end of a link"), "{}", refused.stderr);
    let attached = daemon.cli.run(&["attach", &format!("{}/peer", red_document.name), "--host", "h"]);
    assert!(
        attached.code != 0 && attached.stderr.contains("is an end of the link to blue-red"),
        "{}",
        attached.stderr
    );

    // Without its peer, red goes on; what it sends to blue is lost. With blue it works again.
    let _ = daemon.cli.run(&["delete", "network", &blue_document.name]).expect_ok();
    assert_eq!((red.ping(blue.address, 1), red.ping(red.router, 1)), (0, 1));
    daemon.cli.apply(&blue_document.yaml(), &[]);
    until("red's host reaches blue's again", 20, || red.ping(blue.address, 1) == 1);

    daemon.kill();
    daemon.respawn(&lab);
    until("the link works after a restart", 20, || red.ping(blue.address, 1) == 1);

    // Without the link its ends are unknown ports.
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &lab.node_document("")).expect_code(3);
    assert!(refused.stderr.contains("unknown port \"blue-red\""), "{}", refused.stderr);
}

/// Red forwards on the card, whose ports include the ends, while it moves.
#[test]
fn networks_on_the_card_are_linked_too_and_move_without_loss() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let [(red, red_document), (blue, blue_document)] = routed(&lab);
    let node = format!(
        "{}{LINK}  card: {{twin: {{image: default}}, ports: [{}, red-blue, blue-red]}}\n",
        lab.node_document(""),
        lab.ports().join(", ")
    );
    let cli = Cli { images: Some(hue_testdata::images(&["default"])), ..Cli::new(&lab) };
    let daemon = Daemon::start_with(&lab, &cli, &[]);
    let documents = [node, red_document.yaml(), blue_document.yaml()];
    daemon.cli.apply(&all(&documents), &[]);
    card::runs_on(&daemon, &red_document.name, "card");
    card::runs_on(&daemon, &blue_document.name, "card");
    daemon.cli.settle(&[&red_document.name, &blue_document.name], || {
        red.ping(blue.address, 1) == 1 && blue.ping(red.address, 1) == 1
    });
    let flows = [Flow::start(&red, &blue, 300, 200), Flow::start(&blue, &red, 300, 200)];
    for to in ["soft", "card"] {
        is_clean(&daemon.cli.json(&["migrate", &red_document.name, "--to", to]));
        assert!(red.ping(blue.address, 2) == 2, "red on {to}, blue on the card");
    }
    flows.into_iter().for_each(is_whole);
}

#[test]
fn ospf_runs_over_a_link() {
    if !can_run(&["zebra", "ospfd", "vtysh"]) {
        return;
    }
    let lab = Lab::new(2);
    let [(red, red_document), (blue, blue_document)] = joined(&lab);
    let node = lab.node_document("") + LINK;
    let daemon = Daemon::start(&lab, &all(&[node, red_document.yaml(), blue_document.yaml()]));
    let routers: Vec<Frr> = [&red_document, &blue_document]
        .into_iter()
        .zip(1..)
        .map(|(document, n)| {
            let name = document.name.as_str();
            let config = ospf(&format!("10.255.0.{n}"), &["hosts", "peer"]);
            Frr::start(lab.folder(), name, &config, |line| daemon.cli.exec(name, line))
        })
        .collect();
    until("the two routers are neighbours", 60, || {
        routers.iter().all(|router| router.full_neighbours() == 1)
    });
    until("red's host reaches blue's over routes of OSPF", 30, || red.ping(blue.address, 1) == 1);
}
