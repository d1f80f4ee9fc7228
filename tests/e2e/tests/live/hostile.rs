//! A hostile network misuses ports that it shares with others: they keep at least nine tenths of their traffic.
//!
//! Victims send at a constant low rate, so that the tests measure loss and not this machine's speed.

use std::net::Ipv4Addr;
use std::time::Duration;

use hue_e2e::document::all;
use hue_e2e::frame::{self, BROADCAST, Ends, Mac};
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Flood, Lab, Pair, Raw, Sniffer, can_run, until};

/// Packets a second of a victim.
const VICTIM: u32 = 500;
/// Packets a second that the hostile host tries to send: more than this machine can.
const FLOOD: u32 = 400_000;

/// A hostile network and three others on the same two ports.
struct World {
    lab: Lab,
    bad: Pair,
    victims: Vec<Pair>,
    daemon: Daemon,
}

fn world() -> World {
    let lab = Lab::new(2);
    let bad = lab.pair("bad", 9, 9, [0, 1]);
    let victims: Vec<Pair> = (1..=3).map(|n| lab.pair(&format!("v{n}"), n, n, [0, 1])).collect();
    let mut documents = vec![lab.node_document(""), bad.document.yaml()];
    documents.extend(victims.iter().map(|pair| pair.document.yaml()));
    let daemon = Daemon::start(&lab, &all(&documents));
    bad.warm_up();
    victims.iter().for_each(Pair::warm_up);
    World { lab, bad, victims, daemon }
}

impl World {
    /// The router's MAC address on the hostile host's side.
    fn router(&self) -> Mac {
        [2, 0x72, 9, 0, 9, 1]
    }

    /// Runs `work` while the victims send both ways; they must keep nine tenths.
    fn while_victims_send(&mut self, what: &str, work: impl FnOnce(&Self)) {
        let flows: Vec<Flow> = self
            .victims
            .iter()
            .flat_map(|pair| {
                [
                    Flow::start(&pair.left, &pair.right, VICTIM, 200),
                    Flow::start(&pair.right, &pair.left, VICTIM, 200),
                ]
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        work(self);
        for flow in flows {
            let report = flow.stop();
            eprintln!("{what}: {report}");
            assert!(report.sent > 0 && report.delivered() >= 0.9, "{what}: {report}");
            assert_eq!((report.foreign, report.duplicated), (0, 0), "{what}: {report}");
        }
        assert!(self.daemon.ended().is_none(), "{what}: the daemon died");
    }

    /// Floods from the hostile network's left host for two seconds, and longer if its sender gets little processor time.
    fn flood(&mut self, what: &str, frames: Vec<Vec<u8>>) {
        self.while_victims_send(what, |world| {
            let flood = Flood::start(&world.bad.left.space, frames, FLOOD);
            std::thread::sleep(Duration::from_secs(2));
            until(&format!("{what}: a flood"), 60, || flood.sent() > 10_000);
            let sent = flood.stop();
            eprintln!("{what}: {sent} frames");
        });
        // The hostile network itself recovers.
        self.bad.warm_up();
    }

    fn udp(&self, destination: Mac, to: Ipv4Addr, ttl: u8) -> Vec<u8> {
        let ends =
            Ends { macs: [destination, self.bad.left.mac], addresses: [self.bad.left.address, to], ttl };
        frame::udp(ends, [9, 9], &[0; 18])
    }
}

#[test]
fn floods_cost_only_their_senders() {
    if !can_run(&[]) {
        return;
    }
    let mut world = world();
    let (router, right) = (world.router(), world.bad.right.address);
    let valid = vec![world.udp(router, right, 64)];
    world.flood("valid packets", valid);
    let expiring = vec![world.udp(router, right, 1)];
    world.flood("packets that expire", expiring);
    let local = vec![world.udp(router, world.bad.left.router, 64)];
    world.flood("packets for the router", local);
    let nowhere = vec![world.udp(router, Ipv4Addr::new(203, 0, 113, 1), 64)];
    world.flood("packets without a route", nowhere);
    let unknown = (2..200).map(|host| world.udp(router, Ipv4Addr::new(10, 9, 2, host), 64)).collect();
    world.flood("packets for hosts that are not there", unknown);
    let nobody = vec![world.udp([2, 0xde, 0xad, 0, 0, 1], right, 64)];
    world.flood("packets for nobody", nobody);
    let stats = world.daemon.cli.stats(world.bad.name());
    let lost = stats["losses"]["punt_limited"].as_u64().unwrap_or(0);
    assert!(lost > 1000, "its punts were not limited: {stats}");
}

#[test]
fn broadcast_and_multicast_floods_cost_only_their_senders() {
    if !can_run(&[]) {
        return;
    }
    let mut world = world();
    let broadcast = vec![world.udp(BROADCAST, Ipv4Addr::BROADCAST, 64)];
    world.flood("broadcast", broadcast);
    let multicast = vec![world.udp([1, 0, 0x5e, 0, 0, 5], Ipv4Addr::new(224, 0, 0, 5), 1)];
    world.flood("multicast", multicast);
    let mac = world.bad.left.mac;
    let requests = (1..=254)
        .map(|host| {
            frame::arp(
                [BROADCAST, mac],
                1,
                (mac, world.bad.left.address),
                ([0; 6], Ipv4Addr::new(10, 9, 1, host)),
            )
        })
        .collect();
    world.flood("ARP requests", requests);
    // Others can still learn each other's addresses.
    for victim in &world.victims {
        victim.left.space.ip(&["neighbour", "flush", "all"]);
        victim.warm_up();
    }
}

#[test]
fn forged_arp_has_no_effect() {
    if !can_run(&[]) {
        return;
    }
    let mut world = world();
    let bad = world.bad.left.mac;
    let victim = (world.victims[0].left.address, world.victims[0].left.mac);
    let (router, router_mac) = (world.victims[0].left.router, [2, 0x72, 1, 0, 1, 1]);
    // A second host in the victim's own network, on the same link, tries to get the first one's traffic.
    let neighbour = world.lab.bare_host("mallory", 0, [2, 0x66, 0, 0, 0, 1], "10.1.1.66/24");
    let sniffer = Sniffer::start(&neighbour.space, "eth0", |frame| frame[..6] == [2, 0x66, 0, 0, 0, 1]);
    world.while_victims_send("forged ARP", |world| {
        let mut foreign = Raw::open(&world.bad.left.space, "eth0");
        let mut inside = Raw::open(&neighbour.space, "eth0");
        let mallory = neighbour.mac;
        for _ in 0..20 {
            // From another network: it claims the victim's address and the router's.
            foreign.send([
                frame::arp([BROADCAST, bad], 1, (bad, victim.0), ([0; 6], router)).as_slice(),
                frame::arp([router_mac, bad], 2, (bad, victim.0), (router_mac, router)).as_slice(),
                frame::arp([BROADCAST, bad], 2, (bad, victim.0), (BROADCAST, victim.0)).as_slice(),
            ]);
            // From its own network.
            inside.send([
                frame::arp([BROADCAST, mallory], 1, (mallory, victim.0), ([0; 6], router)).as_slice(),
                frame::arp([router_mac, mallory], 2, (mallory, victim.0), (router_mac, router)).as_slice(),
                frame::arp([BROADCAST, mallory], 2, (mallory, victim.0), (BROADCAST, victim.0)).as_slice(),
            ]);
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let seen = sniffer.stop();
    let stolen = seen.frames.iter().filter(|frame| frame[12..14] == [8, 0]).count();
    assert_eq!(stolen, 0, "packets for another host went to the one that claimed its address");
    let neighbours = world.daemon.cli.json(&["get", "neighbours", "-n", world.victims[0].name()]);
    let known = neighbours.as_array().into_iter().flatten().find(|n| n["address"] == victim.0.to_string());
    assert_eq!(known.map(|n| n["mac"].clone()), Some(hue_e2e::lab::text(victim.1).into()), "{neighbours}");
    let losses = world.daemon.cli.stats(world.victims[0].name())["losses"].clone();
    assert!(losses["arp_forged"].as_u64().unwrap_or(0) > 0, "{losses}");
}

#[test]
fn a_network_cannot_send_as_another() {
    if !can_run(&["python3"]) {
        return;
    }
    let mut world = world();
    let victim_router = hue_e2e::lab::text([2, 0x72, 1, 0, 1, 1]);
    let victim = world.victims[0].left.mac;
    // Root in the hostile network's namespace can do anything: it sends raw frames as another network's router.
    let script = format!(
        "import socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\ns.bind(('left', 0))\n\
         mac = lambda t: bytes.fromhex(t.replace(':', ''))\n\
         f = mac('{}') + mac('{victim_router}') + b'\\x88\\xb5' + b'forged' * 10\n\
         for i in range(500): s.send(f)",
        hue_e2e::lab::text(victim)
    );
    let sniffer = Sniffer::start(&world.victims[0].left.space, "eth0", |frame| {
        frame.windows(6).any(|w| w == b"forged")
    });
    let name = world.bad.name().to_owned();
    world.while_victims_send("forged source of a network", |world| {
        let _ = world.daemon.cli.exec(&name, &["python3", "-c", &script]).expect_ok();
        // It changes its interface's MAC address: the port sends nothing under another network's address either.
        let link = ["ip", "link", "set", "left", "address", &victim_router];
        let _ = world.daemon.cli.exec(&name, &link);
        let _ = world.daemon.cli.exec(&name, &["ping", "-c", "3", "-i", "0.1", "-W", "1", "10.9.1.2"]);
        let own = ["ip", "link", "set", "left", "address", &world.bad.document.ports[0].mac];
        let _ = world.daemon.cli.exec(&name, &own);
    });
    let seen = sniffer.stop();
    assert_eq!(seen.wanted, 0, "forged frames arrived");
    let losses = world.daemon.cli.stats(&name)["losses"].clone();
    assert!(losses["forged_source"].as_u64().unwrap_or(0) >= 500, "{losses}");
    until("the hostile network works again", 20, || world.bad.left.ping(world.bad.right.address, 1) == 1);

    // A host sends with another host's or a router's source address: no other network is affected.
    let (router, right) = (world.router(), world.bad.right.address);
    let forged: Vec<Vec<u8>> = [victim, [2, 0x72, 1, 0, 1, 1], BROADCAST, [0; 6]]
        .into_iter()
        .map(|source| {
            let ends =
                Ends { macs: [router, source], addresses: [world.victims[0].left.address, right], ttl: 64 };
            frame::udp(ends, [9, 9], &[0; 18])
        })
        .collect();
    world.while_victims_send("forged source of a host", |world| {
        let flood = Flood::start(&world.bad.left.space, forged, 2000);
        std::thread::sleep(Duration::from_secs(1));
        assert!(flood.stop() > 0);
    });
}

#[test]
fn packets_that_expire_do_not_silence_the_router_itself() {
    if !can_run(&[]) {
        return;
    }
    let world = world();
    let punts = |what: &str| {
        let stats = world.daemon.cli.stats(world.bad.name());
        (stats["losses"][what].as_u64().unwrap_or(0), stats["received"].as_u64().unwrap_or(0))
    };
    let router = world.bad.left.router;
    assert_eq!(world.bad.left.ping(router, 20), 20, "before");
    let (before, _) = punts("punt_limited");
    // Ten times the punt limit, and no more than queues and rings hold: so all losses are due to the limit.
    let expiring = vec![world.udp(world.router(), world.bad.right.address, 1)];
    let flood = Flood::start(&world.bad.left.space, expiring, 10_000);
    std::thread::sleep(Duration::from_secs(1));
    let answered = world.bad.left.ping(router, 40);
    let sent = flood.stop();
    let (limited, received) = punts("punt_limited");
    eprintln!(
        "{sent} packets that expire, {} above the limit of {received}; {answered} of 40 pings",
        limited - before
    );
    assert!(limited - before > sent / 2, "the flood was not limited: {} of {sent}", limited - before);
    assert!(answered >= 39, "{answered} of 40 pings to the router were answered");
}
