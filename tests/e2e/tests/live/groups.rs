//! Several next hops for one destination (ECMP): flows use all of them, and only those of a lost one move.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use hue_e2e::document::{Document, VirtualPort, all};
use hue_e2e::frame::{Ends, udp};
use hue_e2e::frr::{Frr, ospf};
use hue_e2e::lab::{Host, text};
use hue_e2e::raw::{Raw, Sniffer};
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Lab, can_run, until};

use crate::card::{network, node, runs_on, start};
use crate::migrate::{is_clean, is_whole};

/// Routers outside, each behind a port of its own.
const WAYS: u8 = 4;
/// Flows of a round.
const FLOWS: u16 = 240;
/// Source port of the first flow.
const FIRST: u16 = 20_000;

/// Destination port of all flows.
const PORT: u16 = 7;

/// By round (the first bytes of the payload) and flow (the source port), the router that got the packet.
type Arrivals = Arc<Mutex<BTreeMap<(u16, u16), u8>>>;

/// A source of flows on port 0, and routers on the others; of a card, which has four ports, the last router is on port 0 too.
struct Site {
    lab: Lab,
    document: Document,
    source: Host,
    routers: Vec<Host>,
    arrivals: Arrivals,
    sniffers: Vec<Sniffer>,
    round: u16,
}

fn gateway(way: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, way, 2)
}

/// The documents' route by all ways.
fn route(gateways: impl Iterator<Item = Ipv4Addr>) -> String {
    let vias: Vec<String> = gateways.map(|gateway| format!("{{via: {gateway}}}")).collect();
    format!("[{{to: 10.9.0.0/16, via: [{}]}}]", vias.join(", "))
}

impl Site {
    fn new() -> Self {
        Self::with_ports(1 + WAYS)
    }

    /// With so many ports; routers that have none are on port 0.
    fn with_ports(count: u8) -> Self {
        let lab = Lab::new(usize::from(count));
        let mac = |way: u8| [2, 0x72, 9, way, 0, 1];
        let ports = (0..count).map(|way| VirtualPort {
            name: format!("way{way}"),
            port: lab.ports()[usize::from(way)].clone(),
            mac: text(mac(way)),
            addresses: vec![format!("10.0.{way}.1/24")],
        });
        let document =
            Document { name: lab.name("red"), kind: "ipv4", ports: ports.collect(), more: Vec::new() };
        let host = |way: u8| {
            let port = if way < count { way } else { 0 };
            let address = if way == port { gateway(way) } else { Ipv4Addr::new(10, 0, port, 100 + way) };
            lab.host(
                &format!("h{way}"),
                usize::from(port),
                [2, 0x68, 9, way, 0, 2],
                &format!("{address}/24"),
                Ipv4Addr::new(10, 0, port, 1),
            )
        };
        let (source, routers): (Host, Vec<Host>) = (host(0), (1..=WAYS).map(host).collect());
        let arrivals = Arrivals::default();
        let sniffers = routers.iter().zip(1u8..).map(|(router, way)| {
            let arrivals = arrivals.clone();
            Sniffer::start(&router.space, "eth0", move |frame| {
                let is_ours =
                    frame.len() >= 44 && frame[23] == 17 && frame[30] == 10 && (7..10).contains(&frame[31]);
                if is_ours {
                    let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
                    arrivals.lock().unwrap().insert((port(42), port(34)), way);
                }
                is_ours
            })
        });
        let sniffers = sniffers.collect();
        Self { lab, document, source, routers, arrivals, sniffers, round: 1000 }
    }

    /// Sends one packet of each flow to an address, and returns the way of each flow, once all have arrived.
    fn ways(&mut self, to: Ipv4Addr) -> Option<Vec<u8>> {
        self.round += 1;
        let macs = [[2, 0x72, 9, 0, 0, 1], self.source.mac];
        let ends = Ends { macs, addresses: [self.source.address, to], ttl: 9 };
        let payload = [&self.round.to_be_bytes()[..], &[0; 18]].concat();
        let frames: Vec<_> = (0..FLOWS).map(|flow| udp(ends, [FIRST + flow, PORT], &payload)).collect();
        let mut raw = Raw::open(&self.source.space, "eth0");
        let _ = raw.send(frames.iter().map(Vec::as_slice));
        for _ in 0..40 {
            std::thread::sleep(std::time::Duration::from_millis(25));
            let arrivals = self.arrivals.lock().unwrap();
            let way = |flow| arrivals.get(&(self.round, FIRST + flow)).copied();
            if let Some(ways) = (0..FLOWS).map(way).collect() {
                return Some(ways);
            }
        }
        None
    }

    /// The ways of all flows, once they are exactly these.
    #[track_caller]
    fn settled(&mut self, to: Ipv4Addr, expected: &[u8]) -> Vec<u8> {
        let mut found = Vec::new();
        until(&format!("flows to {to} take the ways {expected:?}"), 60, || {
            let Some(ways) = self.ways(to) else { return false };
            found = ways;
            let mut used = found.clone();
            used.sort_unstable();
            used.dedup();
            used == expected
        });
        found
    }
}

/// Flows whose way is another one move only from `lost`.
#[track_caller]
fn only_from(lost: u8, before: &[u8], after: &[u8]) {
    let moved = before.iter().zip(after).filter(|(one, other)| one != other);
    assert!(moved.clone().all(|(one, _)| *one == lost), "{:?}", moved.collect::<Vec<_>>());
}

#[test]
fn flows_use_all_next_hops_and_stay_with_theirs() {
    if !can_run(&[]) {
        return;
    }
    let mut site = Site::new();
    let document = site.document.clone().with("routes", &route((1..=WAYS).map(gateway)));
    let daemon = Daemon::start(&site.lab, &all(&[site.lab.node_document(""), document.yaml()]));
    let to = Ipv4Addr::new(10, 9, 0, 1);
    let before = site.settled(to, &[1, 2, 3, 4]);
    for way in 1..=WAYS {
        let count = before.iter().filter(|other| **other == way).count();
        assert!((30..=90).contains(&count), "way {way}: {count} of {FLOWS} flows");
    }
    assert_eq!(site.ways(to).unwrap(), before, "a flow keeps its way");

    // A link fails, and comes back.
    site.lab.unplug(2);
    let less = site.settled(to, &[1, 3, 4]);
    only_from(2, &before, &less);
    site.lab.plug(2);
    let again = site.settled(to, &[1, 2, 3, 4]);
    assert!(
        less.iter().zip(&again).all(|(one, other)| one == other || *other == 2),
        "it takes just its share"
    );

    // A group of next-hop objects in the kernel, as FRR makes them; a member leaves it.
    let exec = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        let _ = daemon.cli.exec(&document.name, &words).expect_ok();
    };
    for way in 1..=WAYS {
        exec(
            format!("ip nexthop add id {way} via {}", gateway(way))
                + &format!(" dev {}", interface(&daemon, &document, way)),
        );
    }
    exec("ip nexthop add id 9 group 1/2/3/4".to_owned());
    exec("ip route add 10.8.0.0/16 nhid 9".to_owned());
    let to = Ipv4Addr::new(10, 8, 0, 1);
    let before = site.settled(to, &[1, 2, 3, 4]);
    exec("ip nexthop replace id 9 group 1/2/4".to_owned());
    let after = site.settled(to, &[1, 2, 4]);
    only_from(3, &before, &after);

    // What `trace` says is what happens.
    let port = document.ports[0].port.clone();
    for flow in [0u16, 1, 2, 3] {
        let ends = Ends {
            macs: [[2, 0x72, 9, 0, 0, 1], site.source.mac],
            addresses: [site.source.address, to],
            ttl: 9,
        };
        let frame: String =
            udp(ends, [FIRST + flow, PORT], &[0; 20]).iter().map(|byte| format!("{byte:02x}")).collect();
        let out = daemon.cli.run(&["trace", "--live", "--in-port", &port, "--hex", &frame]).expect_ok();
        assert!(out.stdout.contains("group of 3 members, hash 0x"), "{}", out.stdout);
        let way = document.ports[usize::from(after[usize::from(flow)])].port.clone();
        assert!(out.stdout.contains(&way), "{}", out.stdout);
    }
    drop(std::mem::take(&mut site.sniffers));
}

/// On the card, beside another network; while the network moves, every flow keeps its way.
#[test]
fn a_network_with_many_next_hops_runs_on_the_card_and_moves() {
    if !can_run(&[]) {
        return;
    }
    let mut site = Site::with_ports(WAYS);
    let blue = site.lab.pair("blue", 2, 2, [0, 1]);
    let gateways: Vec<Ipv4Addr> = site.routers.iter().map(|router| router.address).collect();
    let red = site.document.clone().with("routes", &route(gateways.into_iter()));
    let documents = [node(&site.lab, "kinds"), red.yaml(), blue.document.yaml()];
    let daemon = start(&site.lab, &["kinds", "default"], &documents);
    runs_on(&daemon, &red.name, "card");
    runs_on(&daemon, blue.name(), "card");
    daemon.cli.warm_up(&[&blue]);
    let flow = Flow::start(&blue.left, &blue.right, 100, 64);
    let to = Ipv4Addr::new(10, 9, 0, 1);
    // The round in which the last way comes may have met the slots of before.
    let _ = site.settled(to, &[1, 2, 3, 4]);
    let before = site.ways(to).unwrap();
    assert_eq!(network(&daemon, &red.name)["substrate"], "card");
    for way in 1..=WAYS {
        let count = before.iter().filter(|other| **other == way).count();
        assert!((30..=90).contains(&count), "way {way}: {count} of {FLOWS} flows");
    }
    let slots = |daemon: &Daemon| -> u64 {
        let tables = daemon.cli.json(&["get", "tables"]);
        let memories = tables["card"]["memories"].as_array().cloned().unwrap_or_default();
        let slots = memories.iter().find(|one| one["name"] == "slots of groups of next hops");
        slots.and_then(|one| one["used"].as_u64()).unwrap_or_else(|| panic!("{tables}"))
    };
    assert_eq!(slots(&daemon), 256);

    // Rounds of all flows while the network moves there and back.
    for side in ["soft", "card"] {
        let (report, rounds) = std::thread::scope(|scope| {
            let moving = scope.spawn(|| daemon.cli.json(&["migrate", &red.name, "--to", side]));
            let mut rounds = Vec::new();
            while !moving.is_finished() {
                rounds.push(site.ways(to));
            }
            (moving.join().unwrap(), rounds)
        });
        is_clean(&report);
        assert!(!rounds.is_empty() && rounds.iter().all(|ways| ways.as_ref() == Some(&before)), "to {side}");
        assert_eq!(site.ways(to).as_ref(), Some(&before), "on {side}");
    }
    // The table stays with the network in software only.
    assert_eq!(slots(&daemon), 256);

    // A link fails while the network is on the card, and comes back.
    site.lab.unplug(2);
    let less = site.settled(to, &[1, 3, 4]);
    only_from(2, &before, &less);
    site.lab.plug(2);
    let _ = site.settled(to, &[1, 2, 3, 4]);
    let again = site.ways(to).unwrap();
    assert!(
        less.iter().zip(&again).all(|(one, other)| one == other || *other == 2),
        "it takes just its share"
    );
    assert_eq!(network(&daemon, &red.name)["substrate"], "card");

    // An image without groups: the network stays in software, and the node says why.
    let _ = daemon.cli.run(&["image", "load", "default"]).expect_ok();
    runs_on(&daemon, blue.name(), "card");
    runs_on(&daemon, &red.name, "soft");
    assert_eq!(site.ways(to).as_ref(), Some(&again));
    let refused = daemon.cli.run(&["migrate", &red.name, "--to", "card"]);
    assert_ne!(refused.code, 0);
    let why = "needs 256 slots of groups of next hops: image default has 0";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    is_whole(flow);
    drop(std::mem::take(&mut site.sniffers));
}

/// Name of a virtual port's interface in the namespace.
fn interface(daemon: &Daemon, document: &Document, way: u8) -> String {
    let line = format!("ip -o -4 address show to 10.0.{way}.1");
    let words: Vec<&str> = line.split(' ').collect();
    let out = daemon.cli.exec(&document.name, &words);
    out.stdout.split_whitespace().nth(1).unwrap_or_else(|| panic!("{line}: {}", out.stdout)).to_owned()
}

#[test]
#[ignore = "long: make test-full"]
fn routes_of_frr_use_four_links() {
    if !can_run(&["zebra", "ospfd", "vtysh"]) {
        return;
    }
    let mut site = Site::new();
    let daemon = Daemon::start(&site.lab, &all(&[site.lab.node_document(""), site.document.yaml()]));
    let interfaces: Vec<String> = (1..=WAYS).map(|way| interface(&daemon, &site.document, way)).collect();
    let name = site.document.name.clone();
    let inner = ospf("10.0.0.1", &interfaces.iter().map(String::as_str).collect::<Vec<_>>());
    let mut daemons =
        vec![Frr::start(site.lab.folder(), "groups-r", &inner, |line| daemon.cli.exec(&name, line))];
    for (router, way) in site.routers.iter().zip(1..) {
        router.space.ip(&["address", "add", "10.7.0.1/32", "dev", "lo"]);
        let outer = ospf(&router.address.to_string(), &["eth0", "lo"]);
        let run = |line: &[&str]| router.space.run(line[0], &line[1..]);
        daemons.push(Frr::start(site.lab.folder(), &format!("groups-{way}"), &outer, run));
    }
    until("the network's FRR has four full neighbours", 60, || daemons[0].full_neighbours() == 4);
    let to = Ipv4Addr::new(10, 7, 0, 1);
    let before = site.settled(to, &[1, 2, 3, 4]);
    // A router ends: its route leaves.
    drop(daemons.remove(3));
    let after = site.settled(to, &[1, 2, 4]);
    only_from(3, &before, &after);
    drop(std::mem::take(&mut site.sniffers));
}
