//! Fifteen networks on a card share two ports, and one of them floods: the others lose almost nothing.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_e2e::frame::{self, BROADCAST, Ends, Mac};
use hue_e2e::traffic::{Flow, Report};
use hue_e2e::{Daemon, Flood, Lab, Pair, can_run, until};
use hue_testdata::full;

use crate::card::{node, runs_on, start};

/// Number of networks; the last one floods.
const NETWORKS: u8 = 15;
/// Packets a second of each other network, one way.
const VICTIM: u32 = 50;
/// Packets a second that the hostile host tries to send.
const FLOOD: u32 = 400_000;

struct World {
    bad: Pair,
    victims: Vec<Pair>,
    daemon: Daemon,
    _lab: Lab,
}

fn world() -> World {
    let lab = Lab::new(2);
    let pair = |n: u8| lab.pair(&format!("n{n}"), n, n, [0, 1]).with_fixed_neighbours();
    let bad = pair(NETWORKS);
    let victims: Vec<Pair> = (1..NETWORKS).map(pair).collect();
    let mut documents = vec![node(&lab, "default"), bad.document.yaml()];
    documents.extend(victims.iter().map(|pair| pair.document.yaml()));
    let daemon = start(&lab, &["default"], &documents);
    for pair in victims.iter().chain([&bad]) {
        runs_on(&daemon, pair.name(), "card");
        pair.warm_up();
    }
    World { bad, victims, daemon, _lab: lab }
}

/// Losses of networks and ports, by name and reason.
fn losses(daemon: &Daemon) -> BTreeMap<String, u64> {
    let stats = daemon.cli.json(&["stats"]);
    let mut all = BTreeMap::new();
    for (list, name) in [("networks", "network"), ("ports", "port")] {
        for one in stats[list].as_array().into_iter().flatten() {
            for (reason, count) in one["losses"].as_object().into_iter().flatten() {
                let key = format!("{} {reason}", one[name].as_str().unwrap_or_default());
                all.insert(key, count.as_u64().unwrap_or(0));
            }
        }
    }
    all
}

impl World {
    fn udp(&self, destination: Mac, to: Ipv4Addr, ttl: u8, bytes: usize) -> Vec<u8> {
        let ends =
            Ends { macs: [destination, self.bad.left.mac], addresses: [self.bad.left.address, to], ttl };
        frame::udp(ends, [9, 9], &vec![0; bytes])
    }

    fn floods(&self) -> Vec<(&'static str, Vec<Vec<u8>>)> {
        let (router, right) = ([2, 0x72, NETWORKS, 0, NETWORKS, 1], self.bad.right.address);
        let mac = self.bad.left.mac;
        let arp = |host| {
            let to = Ipv4Addr::new(10, NETWORKS, 1, host);
            frame::arp([BROADCAST, mac], 1, (mac, self.bad.left.address), ([0; 6], to))
        };
        let mut all = vec![
            ("valid packets", vec![self.udp(router, right, 64, 18)]),
            ("long broadcasts", vec![self.udp(BROADCAST, [255; 4].into(), 64, 1400)]),
        ];
        if full() {
            all.extend([
                ("long packets", vec![self.udp(router, right, 64, 1400)]),
                ("packets that expire", vec![self.udp(router, right, 1, 18)]),
                ("packets for the router", vec![self.udp(router, self.bad.left.router, 64, 18)]),
                ("ARP requests", (1..=254).map(arp).collect()),
                ("multicasts", vec![self.udp([1, 0, 0x5e, 0, 0, 5], [224, 0, 0, 5].into(), 1, 18)]),
                ("packets for nobody", vec![self.udp([2, 0xde, 0xad, 0, 0, 1], right, 64, 18)]),
            ]);
        }
        all
    }

    /// Sends from the fourteen others while the hostile one floods.
    fn flood(&self, name: &str, frames: Vec<Vec<u8>>) {
        let before = losses(&self.daemon);
        let start = |pair: &Pair| Flow::start(&pair.left, &pair.right, VICTIM, 200);
        let flows: Vec<Flow> = self.victims.iter().map(start).collect();
        let flood = Flood::start(&self.bad.left.space, frames, FLOOD);
        std::thread::sleep(Duration::from_secs(2));
        until("a flood", 60, || flood.sent() > 10_000);
        let flooded = flood.stop();
        let reports: Vec<Report> = flows.into_iter().map(Flow::stop).collect();
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
        let (sent, lost) = (sum(|report| report.sent), sum(Report::lost));
        let after = losses(&self.daemon);
        let grown = after.iter().filter(|(key, count)| before.get(*key) != Some(count)).collect::<Vec<_>>();
        let text = format!("{name}: {flooded} frames; the others lost {lost} of {sent}; {grown:?}");
        eprintln!("{text}");
        // If a host waits for a processor, its frames may meet a full ring.
        assert!(sent > 1_000 && lost * 200 <= sent, "{text}");
        assert_eq!((sum(|report| report.foreign), sum(|report| report.duplicated)), (0, 0), "{text}");
    }
}

#[test]
fn a_flood_on_a_card_costs_the_fourteen_others_nothing() {
    if !can_run(&[]) {
        return;
    }
    let world = world();
    for (name, frames) in world.floods() {
        world.flood(name, frames);
    }
}
