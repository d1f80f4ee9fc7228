//! Every lost frame has an owner and a reason: the number of frames that a port's interface has received, as counted by
//! the kernel, is the sum of the frames received and lost there, by networks or by no network. The names are the same with
//! and without a card.
//!
//! Bursts arrive while the daemon is stopped, so that the number of drops does not depend on speed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::frame::{self, BROADCAST, Ends, Mac};
use hue_e2e::{Daemon, Flood, Lab, Pair, Raw, can_run, http, until};
use serde_json::Value;

use crate::card::{node, runs_on, start};

/// Longer than counters take to be published: a frame that is dropped before the ring wakes no worker, which sleeps for two
/// seconds at most and then asks its ports.
const PUBLISHED: Duration = Duration::from_millis(2_200);
/// Frames of a burst: more than all shares of a ring together.
const BURST: usize = 3_000;
/// Losses of a network before its plane, which `docs/reference/outcomes.md` calls stages `arrival` and `queue`.
const BEFORE_THE_PLANE: [&str; 8] = [
    "ring_quota",
    "ring_full",
    "handover_full",
    "queue_full",
    "arp_foreign",
    "group_foreign",
    "forged_source",
    "other_wire",
];

/// Where the networks' planes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Software,
    Card,
    BehindCard,
}

/// Two networks on two ports, of which one misbehaves.
struct World {
    lab: Lab,
    bad: Pair,
    good: Pair,
    daemon: Daemon,
}

fn world(place: Place) -> World {
    let lab = Lab::new(2);
    let (bad, good) = (lab.pair("bad", 1, 1, [0, 1]), lab.pair("good", 2, 2, [0, 1]));
    let on = if place == Place::Card { "card" } else { "soft" };
    let mut documents = vec![lab.node_document("")];
    documents.extend([&bad, &good].map(|pair| pair.document.clone().with("placement", on).yaml()));
    let daemon = if place == Place::Software {
        Daemon::start(&lab, &all(&documents))
    } else {
        documents[0] = node(&lab, "default");
        start(&lab, &["default"], &documents)
    };
    for pair in [&bad, &good] {
        runs_on(&daemon, pair.name(), on);
        pair.warm_up();
        // No host or router sends ARP any more, so only the test's own frames arrive from now on.
        for (host, side) in [(&pair.left, 0), (&pair.right, 1)] {
            let (router, mac) = (host.router.to_string(), &pair.document.ports[side].mac);
            let entry = ["neighbour", "replace", &router, "lladdr", mac, "dev", "eth0", "nud", "permanent"];
            host.space.ip(&entry);
        }
    }
    World { lab, bad, good, daemon }
}

/// All counters at one moment.
#[derive(Clone, Debug)]
struct Books {
    /// Frames that each interface has received, as counted by the kernel.
    arrived: Vec<u64>,
    stats: Value,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn sum(map: &Value) -> u64 {
    map.as_object().into_iter().flat_map(|map| map.values()).map(number).sum()
}

fn named<'v>(list: &'v Value, key: &str, name: &str) -> &'v Value {
    let found = list.as_array().into_iter().flatten().find(|one| one[key] == name);
    found.unwrap_or_else(|| panic!("no {key} {name} in {list}"))
}

impl Books {
    fn of(world: &World) -> Self {
        let arrived = world.lab.ports().iter().map(|port| world.lab.node().counter(port, "rx_packets"));
        Self { arrived: arrived.collect(), stats: world.daemon.cli.json(&["stats"]) }
    }

    fn port(&self, port: usize) -> &Value {
        named(&self.stats["ports"], "port", &format!("p{port}"))
    }

    fn network(&self, pair: &Pair) -> &Value {
        named(&self.stats["networks"], "network", pair.name())
    }

    /// Frames that a port received, and those it lost before that. Frames that the card had no room to copy count as received.
    fn received_or_lost(&self, port: usize) -> u64 {
        let counts = self.port(port);
        let later = ["send_failed", "flood_full"].map(|reason| number(&counts["losses"][reason]));
        number(&counts["received"]) + sum(&counts["losses"]) - later.iter().sum::<u64>()
    }

    /// Frames that came for a network: those its plane received, and those lost before.
    fn came_for(&self, pair: &Pair) -> u64 {
        let counts = self.network(pair);
        let lost = BEFORE_THE_PLANE.iter().map(|reason| number(&counts["losses"][reason]));
        number(&counts["received"]) + lost.sum::<u64>()
    }
}

/// Whether all that has changed between two books adds up; `groups` of the frames were group frames.
fn difference(world: &World, before: &Books, after: &Books, groups: u64) -> Result<(), String> {
    for port in 0..world.lab.ports().len() {
        let arrived = after.arrived[port] - before.arrived[port];
        let counted = after.received_or_lost(port) - before.received_or_lost(port);
        if arrived != counted {
            let port = after.port(port);
            return Err(format!("{arrived} arrived, {counted} were counted: {port}"));
        }
    }
    let came: Vec<u64> =
        [&world.bad, &world.good].map(|pair| after.came_for(pair) - before.came_for(pair)).to_vec();
    let of_ports = |field: &dyn Fn(&Value) -> u64| -> u64 {
        let all = |books: &Books| (0..2).map(|port| field(books.port(port))).sum::<u64>();
        all(after) - all(before)
    };
    let of_reason = |reason: &'static str| of_ports(&move |port| number(&port["losses"][reason]));
    // Each network got a copy of a group frame; group frames that were refused belong to no particular network.
    let refused = of_reason("shared_quota") + of_reason("flood_full");
    let copies = groups.saturating_sub(refused);
    let arrived: u64 = after.arrived.iter().sum::<u64>() - before.arrived.iter().sum::<u64>();
    let unclaimed = sum(&after.stats["unclaimed"]) - sum(&before.stats["unclaimed"]);
    if came.iter().sum::<u64>() + unclaimed + refused == arrived + copies {
        return Ok(());
    }
    let (before, after) = (&before.stats, &after.stats);
    Err(format!(
        "{arrived} arrived, {copies} of them copied; {came:?} came for networks, {unclaimed} for nobody: {before} {after}"
    ))
}

impl World {
    /// Frames of the misbehaving network's left host.
    fn kinds(&self) -> BTreeMap<&'static str, Vec<u8>> {
        let ends = |mac: Mac, to| Ends {
            macs: [mac, self.bad.left.mac],
            addresses: [self.bad.left.address, to],
            ttl: 64,
        };
        let (router, right) = ([2, 0x72, 1, 0, 1, 1], self.bad.right.address);
        BTreeMap::from([
            ("own", frame::udp(ends(router, right), [9, 9], &[0; 18])),
            ("long", frame::udp(ends(router, right), [9, 9], &[0; 1_472])),
            // Only an Ethernet header: the shortest frame that the kernel sends.
            ("runt", frame::ethernet(router, self.bad.left.mac, 0x0800)),
            ("no route", frame::udp(ends(router, Ipv4Addr::new(203, 0, 113, 1)), [9, 9], &[0; 18])),
            ("nobody", frame::udp(ends([2, 0xde, 0xad, 0, 0, 1], right), [9, 9], &[0; 18])),
            ("broadcast", frame::udp(ends(BROADCAST, Ipv4Addr::BROADCAST), [9, 9], &[0; 18])),
        ])
    }

    /// Sends a burst to a stopped daemon, and waits until all of it is counted.
    fn burst(&self, what: &str, frame: &[u8]) -> (Books, Books) {
        let mut raw = Raw::open(&self.bad.left.space, "eth0");
        let before = self.quiet();
        self.daemon.pause();
        let sent = raw.send(vec![frame; BURST]);
        self.daemon.resume();
        let after = self.balanced(what, &before);
        // Neighbours' answers may arrive meanwhile.
        let arrived = after.arrived[0] - before.arrived[0];
        assert!(sent == BURST as u64 && arrived >= sent, "{what}: {sent} sent, {arrived} arrived");
        (before, after)
    }

    /// The counters, once they have not changed for longer than counters take to be published.
    fn quiet(&self) -> Books {
        let mut last = Books::of(self);
        for _ in 0..100 {
            std::thread::sleep(PUBLISHED);
            let next = Books::of(self);
            let counts = |books: &Books| {
                let stats = &books.stats;
                (
                    books.arrived.clone(),
                    [&stats["networks"], &stats["ports"], &stats["unclaimed"]].map(Value::clone),
                )
            };
            if counts(&last) == counts(&next) {
                return next;
            }
            last = next;
        }
        panic!("something is always on the wires: {last:?}");
    }

    /// The counters, as soon as they balance.
    fn balanced(&self, what: &str, before: &Books) -> Books {
        let groups = if what.contains("broadcast") { BURST as u64 } else { 0 };
        let mut why = String::new();
        for _ in 0..200 {
            let after = Books::of(self);
            match difference(self, before, &after, groups) {
                Ok(()) => return after,
                Err(error) => why = error,
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{what}: the books do not balance: {why}");
    }
}

fn books_balance(place: Place) {
    if !can_run(&[]) {
        return;
    }
    let world = world(place);
    let kinds = world.kinds();
    for (kind, frame) in &kinds {
        let what = format!("{place:?}: a burst of {kind}");
        let (before, after) = world.burst(&what, frame);
        let grew = |of: &dyn Fn(&Books) -> u64| of(&after) - of(&before);
        let of_bad =
            |reason: &'static str| grew(&|books| number(&books.network(&world.bad)["losses"][reason]));
        let of_port = |reason: &'static str| grew(&|books| number(&books.port(0)["losses"][reason]));
        let nobodys = grew(&|books| number(&books.stats["unclaimed"]["no_network"]));
        let quotas = (of_bad("ring_quota"), of_port("ring_quota"), of_port("shared_quota"));
        eprintln!("{what}: {quotas:?}, {nobodys} of nobody");
        match *kind {
            "nobody" => {
                assert_eq!(quotas, (0, 0, 0), "{what}");
                assert_eq!((nobodys, of_port("no_network")), (BURST as u64, BURST as u64), "{what}");
            }
            "broadcast" => {
                assert!(quotas.2 > BURST as u64 / 2 && (quotas.0, quotas.1) == (0, 0), "{what}: {quotas:?}");
            }
            // More than half of the frames were lost because the network's share of the ring was full: its own counters say so.
            _ => {
                assert!(
                    quotas.0 > BURST as u64 / 2 && quotas.1 == quotas.0 && quotas.2 == 0,
                    "{what}: {quotas:?}"
                );
                assert_eq!(nobodys, 0, "{what}");
            }
        }
        let good = grew(&|books| {
            let losses = &books.network(&world.good)["losses"];
            sum(losses) - number(&losses["group_foreign"])
        });
        assert_eq!(good, 0, "{what}: the other network lost something");
    }

    // The same without a stop, with all kinds at once except those that are copied.
    let frames: Vec<Vec<u8>> =
        kinds.iter().filter(|(kind, _)| **kind != "broadcast").map(|(_, frame)| frame.clone()).collect();
    let before = world.quiet();
    let flood = Flood::start(&world.bad.left.space, frames, 400_000);
    until("a flood", 60, || flood.sent() > 20_000);
    let sent = flood.stop();
    let after = world.balanced("a flood", &before);
    eprintln!("{place:?}: a flood of {sent}: {}", after.network(&world.bad)["losses"]);
    assert!(after.arrived[0] - before.arrived[0] > 20_000);

    metrics_say_the_same(&world, &after);
}

/// The metrics have the same names and numbers.
fn metrics_say_the_same(world: &World, books: &Books) {
    let text = http::get(&world.daemon.cli.socket(), "/metrics").body;
    let value = |sample: &str| {
        let line = text.lines().find(|line| line.starts_with(sample));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("{sample}: {text}"))
    };
    let mut seen = 0;
    for reason in
        ["ring_full", "ring_quota", "shared_quota", "no_network", "runt", "send_failed", "flood_full"]
    {
        let sample = format!("hueplane_port_losses_total{{port=\"p0\",reason=\"{reason}\"}}");
        assert_eq!(value(&sample), number(&books.port(0)["losses"][reason]), "{reason}");
        seen += value(&sample);
    }
    assert_eq!(seen, sum(&books.port(0)["losses"]), "no other reason");
    let bad =
        format!("hueplane_network_losses_total{{network=\"{}\",reason=\"ring_quota\"}}", world.bad.name());
    assert_eq!(value(&bad), number(&books.network(&world.bad)["losses"]["ring_quota"]));
    let nobody = value("hueplane_unclaimed_frames_total{reason=\"no_network\"}");
    assert!(nobody >= BURST as u64 && nobody == number(&books.stats["unclaimed"]["no_network"]), "{nobody}");
}

#[test]
fn books_balance_in_software() {
    books_balance(Place::Software);
}

#[test]
fn books_balance_on_the_card() {
    books_balance(Place::Card);
}

#[test]
fn books_balance_behind_the_card() {
    books_balance(Place::BehindCard);
}

#[test]
fn the_report_of_a_move_lists_losses_before_the_rings() {
    if !can_run(&[]) {
        return;
    }
    let world = world(Place::Card);
    let frame = world.kinds().remove("own").unwrap();
    for to in ["soft", "card"] {
        let (before, report, after) = std::thread::scope(|scope| {
            let before = world.quiet();
            let words = ["migrate", world.bad.name(), "--to", to, "--look-ms", "3000"];
            let cli = &world.daemon.cli;
            let moves = scope.spawn(move || cli.json(&words));
            // The move first observes the network (--look-ms): the burst comes during this time.
            std::thread::sleep(Duration::from_millis(500));
            let mut raw = Raw::open(&world.bad.left.space, "eth0");
            world.daemon.pause();
            let sent = raw.send(vec![frame.as_slice(); BURST]);
            world.daemon.resume();
            assert_eq!(sent, BURST as u64);
            (before, moves.join().unwrap(), world.quiet())
        });
        let counted = |books: &Books| number(&books.network(&world.bad)["losses"]["ring_quota"]);
        let lost = counted(&after) - counted(&before);
        assert!(lost > BURST as u64 / 2, "{lost}: {report}");
        assert_eq!(report["lost_by"]["ring_quota"], lost, "{report}");
        assert!(report["lost"].as_u64() >= Some(lost), "{report}");
        // Move it back without a flood.
        let _ = world.daemon.cli.json(&["migrate", world.good.name(), "--to", to]);
    }
    let quiet = world.daemon.cli.json(&["migrate", world.good.name(), "--to", "soft"]);
    assert!(quiet["lost"] == 0 && quiet["lost_by"].get("ring_quota").is_none(), "{quiet}");
}
