//! The running system from outside: real threads, ports in memory, and every change under traffic.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{PORTS, hop, mac, packet, prefix, program, vid};
use crate::world::{PATIENCE, World, until, wire, world};
use hue_demux::{Match, PortId, Row};
use hue_planes::ipv4::{Adjacency, Outcome};
use hue_planes::{Debts, Loss, Rate, RateLimit, Settings, Unclaimed, l2};
use hue_ports::{Driver, MemoryHandle, MemoryPort, Pool};
use hue_soft::live::{CaptureFilter, Captured, Direction, Live, LiveError};
use hue_substrate::handover::{AllDebts, Crossing, Peer, Record, Sighting};
use hue_substrate::wake::Wake;
use hue_substrate::{Entries, Program, Substrate};
use hue_wire::{Mac, arp};
use proptest::prelude::*;
use zerocopy::IntoBytes;

fn arp_frame(dst: Mac, message: arp::Header) -> Vec<u8> {
    let mut bytes = dst.0.to_vec();
    bytes.extend(message.sender_mac.0);
    bytes.extend([8, 6]);
    bytes.extend(message.as_bytes());
    bytes.resize(60, 0);
    bytes
}

#[test]
fn frames_reach_their_ports_with_one_worker_and_with_several() {
    for workers in [1, 2, 3] {
        let world = world(workers, &[program(1), program(2), program(3)]);
        for n in 0..300u16 {
            let id = 1 + n % 3;
            world.feed((n % 3) as u8, &packet(mac(id, (n % 3) as u8), [10, 9, 9, 9]));
        }
        for id in 1..=3u16 {
            let totals = world.settled(id, 100);
            assert_eq!(totals.outcomes.get(Outcome::Forward), 100, "{workers} workers, network {id}");
            let port = usize::from(id % 3);
            assert_eq!((totals.ports[port].sent_packets, totals.sent_bytes()), (100, 4600));
            assert!(world.wires[port].wait_sent(100, PATIENCE));
            let sent = world.wires[port].collect();
            assert!(sent.iter().all(|frame| frame[6..12] == mac(id, port as u8).0 && frame[22] == 63));
        }
        let handed: u64 = world.live.worker_totals().iter().map(|worker| worker.handed_over).sum();
        assert_eq!(handed > 0, workers > 1);
        let port = PortId::new(0);
        until("port counters", || world.live.port_totals(port).unwrap().received_packets == 100);
        world.live.stop();
    }
}

/// A frame for a network that arrived on a guest's port.
fn arrived(world: &World, id: u16, port: PortId) -> Record {
    let generation = world.live.home(vid(id)).unwrap().generation;
    Record { crossing: Crossing::Arrived, port, vid: vid(id), generation, vport: 2, time_ns: 0, len: 0 }
}

/// Frames that were under way for a network when it was removed belong to no network, even if another network has its
/// VID by then.
#[test]
fn frames_of_a_network_that_is_gone_do_not_reach_its_successor() {
    let mut world = world(2, &[program(1), program(2)]);
    let (wake, port) = (Arc::new(Wake::new().unwrap()), PortId::new(2));
    let mut peers = world.live.invite(&wake).unwrap();
    world.live.remove_port(port);
    world.live.lend_port(port, Driver::Memory).unwrap();
    let old = arrived(&world, 1, port);
    world.live.unload(&[vid(1)]).unwrap();
    world.live.load(&[program(1)]).unwrap();
    let new = arrived(&world, 1, port);
    let home = world.live.home(vid(1)).unwrap().worker;
    let frame = packet(mac(1, 2), [10, 9, 9, 9]);
    let counted = world.totals(1);
    for crossing in [Crossing::Arrived, Crossing::Leaves] {
        // Frames of the old network at both workers, and behind them one of the new network.
        for peer in &mut peers {
            for _ in 0..3 {
                assert!(peer.out.push(&Record { crossing, port: PortId::new(1), ..old }, &frame));
            }
            peer.wake.notify();
        }
    }
    assert!(peers[home].out.push(&new, &frame));
    peers[home].wake.notify();
    let totals = world.settled(1, counted.received_packets() + 1);
    assert_eq!(totals.outcomes.forwarded(), counted.outcomes.forwarded() + 1);
    assert_eq!(totals.sent_packets(), counted.sent_packets() + 1);
    assert_eq!((totals.losses.at("queue"), totals.losses.at("departure")), (0, 0));
    world.live.stop();
}

#[test]
fn a_guest_hands_frames_over_and_has_ports() {
    for workers in [1, 2] {
        let mut world = world(workers, &[program(1), program(2)]);
        let (wake, port) = (Arc::new(Wake::new().unwrap()), PortId::new(2));
        let mut peers = world.live.invite(&wake).unwrap();
        assert!(matches!(world.live.lend_port(port, Driver::Memory), Err(LiveError::PortOpen(_))));
        world.live.remove_port(port);
        world.live.lend_port(port, Driver::Memory).unwrap();
        assert!(world.live.port_state(port).unwrap().up);

        // Network 2 forwards through the guest's port; network 1 forwards to port 1, which belongs to a worker.
        let mut give = |world: &World, id: u16, bytes: &[u8]| {
            let record = arrived(world, id, port);
            let peer = &mut peers[world.live.home(vid(id)).unwrap().worker];
            assert!(peer.out.push(&record, bytes));
            peer.wake.notify();
        };
        let frame = packet(mac(1, 2), [10, 9, 9, 9]);
        give(&world, 1, &frame);
        assert!(world.wires[1].wait_sent(1, PATIENCE));
        give(&world, 2, &packet(mac(2, 2), [10, 9, 9, 9]));
        let mut pool = Pool::new(8, 2048).unwrap();
        let mut taken = None;
        until("a frame for the guest", || {
            taken = peers.iter_mut().find_map(|peer| peer.into.pop(&mut pool).unwrap());
            taken.is_some()
        });
        let (record, sent) = taken.unwrap();
        assert_eq!((record.crossing, record.port, record.vid), (Crossing::Leaves, port, vid(2)));
        assert_eq!(sent.bytes(&pool)[6..12], mac(2, 2).0);
        pool.give(sent.slot);
        let totals = world.settled(2, 1);
        assert_eq!(
            (totals.sent_packets(), totals.crossing_packets),
            (1, 0),
            "the guest's to count from there on"
        );

        // A fence returns behind all frames that were handed over before it.
        let home = world.live.home(vid(2)).unwrap().worker;
        for fence in [7, 9] {
            let record = |crossing| Record { crossing, time_ns: fence, ..arrived(&world, 2, port) };
            let (arrived, mark) = (record(Crossing::Arrived), record(Crossing::Fence));
            for _ in 0..300 {
                assert!(peers[home].out.push(&arrived, &packet(mac(2, 2), [10, 9, 9, 9])));
            }
            assert!(peers[home].out.push(&mark, &[]));
            peers[home].wake.notify();
            let mut before = 0;
            until("the fence", || match peers[home].into.pop(&mut pool).unwrap() {
                None => false,
                Some((record, packet)) => {
                    pool.give(packet.slot);
                    before += usize::from(record.crossing == Crossing::Leaves);
                    assert!(record.crossing == Crossing::Leaves || record.time_ns == fence);
                    record.crossing == Crossing::Fence
                }
            });
            assert_eq!(before, 300);
        }
        assert_eq!(world.settled(2, 601).waiting_packets, 0);

        // A group frame that the guest copied for a network that it does not concern.
        world.live.set_addresses(vid(1), &[(2, Ipv4Addr::new(10, 1, 0, 1), 24)]);
        let message = arp::Header::request(mac(9, 9), Ipv4Addr::new(10, 7, 0, 2), Ipv4Addr::new(10, 7, 0, 1));
        let record = arrived(&world, 1, port);
        let peer = &mut peers[world.live.home(vid(1)).unwrap().worker];
        assert!(peer.out.push(&record, &arp_frame(Mac::BROADCAST, message)));
        peer.wake.notify();
        until("the foreign frame", || world.totals(1).losses.get(Loss::ArpForeign) == 1);

        world.live.dismiss();
        assert!(!world.live.port_state(port).unwrap().up);
        world.feed(0, &packet(mac(2, 0), [10, 9, 9, 9]));
        until("a frame without a port", || world.totals(2).losses.get(Loss::PortDown) == 1);
    }
}

/// The debts of a network's meter, as its home reports them; `None` if it has none.
fn debts(world: &World, peers: &mut [Peer], id: u16, name: u64) -> Option<Debts> {
    let home = world.live.home(vid(id)).unwrap();
    let question = Record::of_debts(vid(id), home.generation, name);
    let peer = &mut peers[home.worker];
    assert!(peer.out.push(&question, &[]));
    peer.wake.notify();
    let mut pool = Pool::new(8, 2048).unwrap();
    let mut answer = None;
    until("an answer", || {
        answer = peer.into.pop(&mut pool).err();
        answer.is_some()
    });
    let answer = answer.unwrap();
    assert_eq!((answer.crossing, answer.vid, answer.time_ns), (Crossing::Debts, vid(id), name));
    peer.into.take_debts().unwrap().rate
}

/// The debts of a network's meter move with it, from a card and to a card.
#[test]
fn a_guest_says_and_hears_what_a_meter_lacks() {
    let rate = RateLimit { packets: Some(Rate::new(1, 10).unwrap()), bits: None };
    let limited = Program { rate_limit: Some(rate), ..program(1) };
    let mut world = world(2, &[limited, program(2)]);
    let mut peers = world.live.invite(&Arc::new(Wake::new().unwrap())).unwrap();
    assert_eq!(debts(&world, &mut peers, 2, 7), None, "it has no meter");
    let frame = packet(mac(1, 0), [10, 9, 9, 9]);
    (0..4).for_each(|_| world.feed(0, &frame));
    assert_eq!(world.settled(1, 4).outcomes.forwarded(), 4);
    let before = debts(&world, &mut peers, 1, 8).unwrap();
    assert!((1..=4_000_000_000).contains(&before.packets) && before.bits == 0, "{before:?}");

    // The card passed the rest of the burst. A debt cannot exceed the burst. The time is an hour later, so that
    // nothing is earned.
    let of_rate = |debts| AllDebts { rate: Some(debts), storm: None };
    let there = Debts { packets: Debts::MAX, bits: 5, last_ns: before.last_ns + 3_600_000_000_000 };
    let home = world.live.home(vid(1)).unwrap();
    let told = Record::of_debts(vid(1), home.generation, 0);
    let gone = Record { generation: home.generation.wrapping_sub(1), ..told };
    let peer = &mut peers[home.worker];
    assert!(
        peer.out.push_debts(&told, &of_rate(there)) && peer.out.push_debts(&gone, &of_rate(Debts::default()))
    );
    peer.wake.notify();
    let most = Debts { packets: 10_000_000_000, bits: 0, ..there };
    assert_eq!(debts(&world, &mut peers, 1, 9), Some(most));
    (0..4).for_each(|_| world.feed(0, &frame));
    assert_eq!(world.settled(1, 8).outcomes.get(Outcome::RateLimited), 4);
    assert_eq!(debts(&world, &mut peers, 1, 10), Some(most));
    world.live.stop();
}

/// A switch that has ports 0 to 2 to itself, and a storm limit.
fn switch(id: u16) -> Program {
    let storm_limit = Some(RateLimit { packets: Some(Rate::new(1, 10).unwrap()), bits: None });
    let ports = [0, 1, 2].map(PortId::new);
    let select = |(port, vport): (PortId, u16)| Row { vid: vid(id), vport, select: Match::Port(port) };
    Program {
        settings: Settings::L2(l2::Settings { storm_limit, ..l2::Settings::default() }),
        rows: ports.into_iter().zip(0..).map(select).collect(),
        next_hops: ports.map(|port| Adjacency::out(port, 1500)).to_vec(),
        groups: Vec::new(),
        entries: Entries::Exact(Vec::new()),
        ..program(id)
    }
}

/// What a network's home tells its guest next that is not a frame; frames are discarded.
fn told(peer: &mut Peer, pool: &mut Pool) -> Record {
    let mut found = None;
    until("a record", || {
        match peer.into.pop(pool) {
            Ok(None) => {}
            Ok(Some((_, packet))) => pool.give(packet.slot),
            Err(record) => found = Some(record),
        }
        found.is_some()
    });
    found.unwrap()
}

/// Before a switch moves to a card, its home tells what it has learnt, then its debts, then what it still learns; and it learns
/// what the card has seen.
#[test]
fn a_guest_says_and_hears_what_a_switch_learns() {
    let mut world = world(2, &[switch(1)]);
    let mut peers = world.live.invite(&Arc::new(Wake::new().unwrap())).unwrap();
    let mut pool = Pool::new(8, 2048).unwrap();
    let host = |n: u8| Mac([2, 0xaa, 0, 0, 0, n]);
    let frame = |from: u8| [&host(0).0[..], &host(from).0, &[0x12, 0x34], &[7; 46]].concat();
    world.feed(0, &frame(1));
    world.feed(1, &frame(2));
    assert_eq!(world.settled(1, 2).outcomes.forwarded(), 2);
    let home = world.live.home(vid(1)).unwrap();
    let peer = &mut peers[home.worker];
    let question = Record::of_learnt(vid(1), home.generation, 77);
    assert!(peer.out.push(&question, &[]));
    peer.wake.notify();
    let answer = told(peer, &mut pool);
    assert_eq!((answer.crossing, answer.vid, answer.time_ns), (Crossing::Learnt, vid(1), 77));
    let mut known: Vec<_> = peer.into.sightings().iter().map(|seen| (seen.mac, seen.vport)).collect();
    known.sort_unstable();
    assert_eq!(known, [(host(1).to_u64(), 0), (host(2).to_u64(), 1)]);
    let end = told(peer, &mut pool);
    assert_eq!((end.crossing, end.time_ns), (Crossing::Debts, 77));
    let debts = peer.into.take_debts().unwrap();
    assert!(debts.rate.is_none() && debts.storm.unwrap().packets > 0, "{debts:?}");

    world.feed(2, &frame(3));
    let news = told(peer, &mut pool);
    assert_eq!((news.crossing, news.time_ns), (Crossing::Learnt, 0));
    let [seen] = peer.into.sightings() else { panic!("{:?}", peer.into.sightings()) };
    assert_eq!((seen.mac, seen.vport), (host(3).to_u64(), 2));
    let seen_ns = seen.seen_ns;

    // Behind a fence, it tells nothing more.
    let fence = Record { crossing: Crossing::Fence, time_ns: 5, ..question };
    assert!(peer.out.push(&fence, &[]));
    peer.wake.notify();
    until("the fence", || match peer.into.pop(&mut pool) {
        Ok(Some((record, packet))) => {
            pool.give(packet.slot);
            record.crossing == Crossing::Fence
        }
        other => other.unwrap().is_some(),
    });
    let seen = Sighting { mac: host(4).to_u64(), vport: 1, seen_ns };
    let gone = Record { generation: home.generation.wrapping_sub(1), ..question };
    let stray = Sighting { mac: host(5).to_u64(), ..seen };
    assert!(peer.out.push_sightings(&question, &[seen]) && peer.out.push_sightings(&gone, &[stray]));
    peer.wake.notify();
    let row = |n: u8| world.live.macs(vid(1)).unwrap().into_iter().find(|row| row.mac == host(n));
    until("it is learnt", || row(4).is_some());
    assert_eq!(row(4).unwrap().vport, 1);
    world.feed(0, &frame(6));
    until("the last is learnt", || row(6).is_some());
    assert!(row(5).is_none(), "of a network that is gone");
    while let Some((_, packet)) = peer.into.pop(&mut pool).expect("no record but frames") {
        pool.give(packet.slot);
    }
    world.live.stop();
}

#[test]
fn unclaimed_frames_are_counted_and_dropped() {
    let world = world(2, &[program(1)]);
    world.feed(0, &packet(mac(77, 0), [10, 0, 0, 9]));
    world.feed(1, &[1; 5]);
    until("unclaimed frames", || world.live.unclaimed().total() == 2);
    assert_eq!(world.live.unclaimed().get(Unclaimed::Runt), 1);
    assert_eq!(world.totals(1).received_packets(), 0);
}

#[test]
fn control_planes_get_and_send_frames_wherever_their_network_lives() {
    for workers in [1, 2] {
        let mut world = world(workers, &[program(1), program(2)]);
        for id in [1, 2] {
            let taps: Vec<_> = (0..3).map(|vport| world.tap(id, vport)).collect();
            // Packets to the router, with an expired TTL, and without a route.
            world.feed(1, &packet(mac(id, 1), [10, 0, 0, 1]));
            world.feed(1, &packet(mac(id, 1), [99, 0, 0, 1]));
            assert!(taps[1].wait_sent(2, PATIENCE));
            let totals = world.settled(id, 2);
            assert_eq!((totals.to_control_packets, totals.outcomes.get(Outcome::NoRoute)), (2, 1));
            assert_eq!(taps[1].collect()[0], packet(mac(id, 1), [10, 0, 0, 1]), "unchanged");
            let before: Vec<u64> = world.wires.iter().map(MemoryHandle::sent).collect();
            for (vport, tap) in taps.iter().enumerate() {
                let mut frame = packet(Mac::BROADCAST, [224, 0, 0, 5]);
                frame[6..12].copy_from_slice(&mac(id, vport as u8).0);
                assert!(tap.feed(&frame));
                frame[11] ^= 0x80;
                assert!(tap.feed(&frame), "a forged one");
            }
            for (wire, before) in world.wires.iter().zip(&before) {
                assert!(wire.wait_sent(before + 1, PATIENCE));
            }
            until("forged frames", || world.totals(id).losses.get(Loss::ForgedSource) == 3);
            let totals = world.settled(id, 2);
            assert_eq!(
                (totals.from_control_packets, totals.control_packets, totals.sent_packets()),
                (6, 3, 3)
            );
        }
        let (sent, fed) = (world.totals(1).to_control_packets, packet(mac(1, 1), [10, 0, 0, 1]));
        world.live.remove_taps(vid(1));
        world.feed(1, &fed);
        let totals = world.settled(1, 3);
        assert_eq!((totals.to_control_packets, totals.losses.get(Loss::ControlAbsent)), (sent, 1));
        assert!(matches!(
            world.live.add_tap(vid(1), 3, Box::new(MemoryPort::pair("tap", 1).unwrap().0)),
            Err(LiveError::Vport { vport: 3, .. })
        ));
    }
}

#[test]
fn group_frames_reach_the_networks_that_they_concern() {
    let mut world = world(2, &[program(1), program(2)]);
    let taps = [world.tap(1, 0), world.tap(2, 0)];
    let host = (Mac([2, 9, 9, 9, 9, 9]), Ipv4Addr::new(192, 168, 1, 7));
    let ask =
        |target: [u8; 4]| arp_frame(Mac::BROADCAST, arp::Header::request(host.0, host.1, target.into()));
    world.feed(0, &ask([192, 168, 1, 1]));
    assert!(taps[0].wait_sent(1, PATIENCE) && taps[1].wait_sent(1, PATIENCE), "addresses are not known yet");
    world.live.set_addresses(vid(1), &[(0, Ipv4Addr::new(192, 168, 1, 1), 24)]);
    world.live.set_addresses(
        vid(2),
        &[(0, Ipv4Addr::new(192, 168, 2, 1), 24), (1, Ipv4Addr::new(192, 168, 1, 1), 24)],
    );
    world.feed(0, &ask([192, 168, 1, 1]));
    world.feed(0, &ask([192, 168, 1, 8]));
    world.feed(0, &arp_frame(Mac::BROADCAST, arp::Header::announcement(host.0, host.1)));
    let mut hello = packet(Mac([1, 0, 0x5e, 0, 0, 5]), [224, 0, 0, 5]);
    hello[26..30].copy_from_slice(&host.1.octets());
    hello[24..26].fill(0);
    let checksum = hue_wire::checksum::full(&hello[14..34]);
    hello[24..26].copy_from_slice(&checksum.to_be_bytes());
    world.feed(0, &hello);
    let mut ipv6 = hello.clone();
    ipv6[12..14].copy_from_slice(&[0x86, 0xdd]);
    world.feed(0, &ipv6);
    let one = world.settled(1, 6);
    assert_eq!((one.to_control_packets, one.losses.get(Loss::ArpForeign)), (4, 1));
    assert_eq!(one.outcomes.get(Outcome::Ethertype), 1);
    let two = world.settled(2, 6);
    assert_eq!((two.to_control_packets, two.losses.get(Loss::ArpForeign)), (1, 3));
    assert_eq!(two.losses.get(Loss::GroupForeign), 1);
}

#[test]
fn forged_arp_is_dropped_while_the_neighbour_is_known() {
    let mut world = world(2, &[program(1), program(2)]);
    let _taps = [world.tap(1, 0), world.tap(2, 0)];
    let (good, evil) = (Mac([2, 9, 9, 9, 9, 1]), Mac([2, 9, 9, 9, 9, 2]));
    let address = Ipv4Addr::new(192, 168, 1, 7);
    let claim = |mac_: Mac, id| {
        let request = arp::Header::request(mac_, address, [192, 168, 1, 1].into());
        arp_frame(mac(id, 0), request)
    };
    for id in [1, 2] {
        world.live.neighbours(vid(id), &[(0, address, good)]);
        world.feed(0, &claim(good, id));
        world.feed(0, &claim(evil, id));
        let totals = world.settled(id, 2);
        assert_eq!((totals.to_control_packets, totals.losses.get(Loss::ArpForged)), (1, 1));
    }
    world.live.neighbours::<Ipv4Addr>(vid(1), &[]);
    world.feed(0, &claim(evil, 1));
    assert_eq!(world.settled(1, 3).to_control_packets, 2, "it no longer answered");
}

#[test]
fn arp_reaches_networks_that_are_not_selected_by_mac() {
    let mut inner = program(1);
    inner.rows = vec![Row {
        vid: vid(1),
        vport: 0,
        select: Match::Inner { port: None, prefix: prefix("10.0.0.0/8") },
    }];
    let mut all = program(2);
    all.rows = vec![Row { vid: vid(2), vport: 0, select: Match::Port(PortId::new(0)) }];
    let mut world = world(1, &[inner, all]);
    let (one, two) = (world.tap(1, 0), world.tap(2, 0));
    let reply = arp::Header::request(Mac([2, 9, 9, 9, 9, 9]), [10, 0, 0, 9].into(), [10, 0, 0, 1].into());
    world.feed(0, &arp_frame(mac(1, 0), reply));
    assert!(one.wait_sent(1, PATIENCE));
    world.feed(0, &arp_frame(mac(2, 0), reply));
    assert!(two.wait_sent(1, PATIENCE));
    world.settled(1, 1);
    world.settled(2, 1);
    let trace = world.live.explain(PortId::new(0), &arp_frame(mac(1, 0), reply), 0);
    assert_eq!((trace.networks[0].vid, trace.networks[0].outcome), (vid(1), Outcome::Arp.into()));
}

#[test]
fn captures_show_both_directions_and_verdicts() {
    for workers in [1, 2] {
        let mut world = world(workers, &[program(1), program(2)]);
        let tap = world.tap(2, 0);
        let all = world.live.capture(CaptureFilter::default());
        let only =
            world.live.capture(CaptureFilter { vid: Some(vid(2)), snap: 20, ..CaptureFilter::default() });
        let frame = packet(mac(1, 0), [10, 9, 9, 9]);
        world.feed(0, &frame);
        let arrived = all.next(PATIENCE).unwrap();
        let left = all.next(PATIENCE).unwrap();
        assert_eq!(
            (arrived.direction, arrived.fate),
            (Direction::In, Captured::Outcome(Outcome::Forward.into()))
        );
        assert_eq!((arrived.vid, arrived.vport, arrived.bytes), (Some(vid(1)), Some(0), frame.clone()));
        assert_eq!((left.direction, left.port, left.vport), (Direction::Out, PortId::new(1), Some(1)));
        assert_eq!((left.bytes[22], left.len as usize), (63, frame.len()));
        assert!(left.time_ns > 1_600_000_000_000_000_000, "nanoseconds since the Unix epoch");
        world.feed(0, &packet(mac(99, 0), [10, 9, 9, 9]));
        assert_eq!(all.next(PATIENCE).unwrap().fate.text(), "drop no_network");
        world.feed(0, &packet(mac(2, 0), [10, 0, 0, 1]));
        let punted = only.next(PATIENCE).unwrap();
        assert_eq!((punted.fate.text().as_str(), punted.bytes.len(), punted.len), ("punt local", 20, 46));
        let mut own = frame.clone();
        own[6..12].copy_from_slice(&mac(2, 0).0);
        assert!(tap.feed(&own));
        assert_eq!(only.next(PATIENCE).unwrap().direction, Direction::FromControl);
        assert_eq!(only.next(PATIENCE).unwrap().direction, Direction::Out);
        assert!(only.try_next().is_none());
        assert_eq!((all.lost(), only.lost()), (0, 0));
    }
}

#[test]
fn an_unread_capture_slows_no_packets() {
    let mut world = world(1, &[program(1)]);
    world.wires[1].discard_sent();
    let stream = world.live.capture(CaptureFilter::default());
    for _ in 0..5000 {
        world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    }
    assert_eq!(world.settled(1, 5000).sent_packets(), 5000);
    until("lost frames of the capture", || stream.lost() == 2 * 5000 - 4096);
    drop(stream);
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.settled(1, 5001);
}

#[test]
fn an_idle_system_sleeps() {
    let world = world(2, &[program(1)]);
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.settled(1, 1);
    std::thread::sleep(Duration::from_millis(400));
    let before: Vec<_> = world.live.worker_totals();
    std::thread::sleep(Duration::from_millis(1000));
    for (before, after) in before.iter().zip(world.live.worker_totals()) {
        assert_eq!(before.rounds, after.rounds);
        assert!(after.sleeps - before.sleeps < 20, "{before:?} {after:?}");
    }
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.settled(1, 2);
}

#[test]
fn a_flood_costs_its_own_network_only() {
    // One network floods six ports. The worker accepts more than it can process, so queues fill. The victim on the
    // seventh port, and on one of the six, loses nothing: its frames never find a full queue.
    const FLOODED: u8 = 6;
    let port = |id: u16, port: u8| hue_substrate::VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: mac(id, port),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let wide = |id: u16| {
        let mut wide = program(id);
        wide.ports = (0..=FLOODED).map(|n| port(id, n)).collect();
        let select = |n: u8| Match::Mac { port: PortId::new(n), mac: mac(id, n) };
        wide.rows =
            (0..=FLOODED).map(|n| Row { vid: vid(id), vport: u16::from(n), select: select(n) }).collect();
        let out = Adjacency::forward(PortId::new(FLOODED), mac(id, FLOODED), Mac([2, 0, 0, 0, 1, 1]), 1500);
        (wide.next_hops, wide.entries) = (vec![out], Entries::Lpm32(vec![(prefix("10.0.0.0/8"), hop(0))]));
        wide
    };
    let mut live = Live::start(crate::world::config(1)).unwrap();
    let wires: Vec<_> = (0..=FLOODED).map(|n| wire(&mut live, n)).collect();
    wires[usize::from(FLOODED)].discard_sent();
    live.load(&[wide(1), wide(2)]).unwrap();
    let world = World { live, wires };
    let stop = Arc::new(AtomicBool::new(false));
    let flood: Vec<_> = (0..FLOODED)
        .map(|n| {
            let (wire, stop, frame) =
                (world.wires[usize::from(n)].clone(), stop.clone(), packet(mac(1, n), [10, 9, 9, 9]));
            std::thread::spawn(move || {
                let mut fed = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    // Leaves room in the shared port, because limiting floods before the ring is the port's task.
                    fed += u64::from(wire.waiting() < 512 && wire.feed(&frame));
                }
                fed
            })
        })
        .collect();
    let mut victims = 0;
    until("an overload", || {
        for n in [0, FLOODED] {
            victims += u64::from(world.wires[usize::from(n)].feed(&packet(mac(2, n), [10, 9, 9, 9])));
        }
        world.totals(1).losses.get(Loss::QueueFull) > 10_000 && victims > 500
    });
    stop.store(true, Ordering::Relaxed);
    let flooded: u64 = flood.into_iter().map(|thread| thread.join().unwrap()).sum();
    let (flooder, victim) = (world.settled(1, flooded), world.settled(2, victims));
    assert_eq!((victim.losses.total(), victim.sent_packets()), (0, victims));
    assert!(flooder.losses.get(Loss::QueueFull) > 10_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever arrives on wires and from control planes, every packet is counted once and no slot is lost.
    #[test]
    fn every_packet_is_accounted_for(
        workers in 1usize..4,
        frames in prop::collection::vec(
            (0..PORTS, 0u16..5, prop::collection::vec(any::<u8>(), 0..120), 0u8..8, any::<[u8; 3]>()), 200..800),
    ) {
        let programs: Vec<_> = (1..=4).map(program).collect();
        let mut world = world(workers, &programs);
        let taps: Vec<_> = (1..=4).map(|id| world.tap(id, id % 3)).collect();
        world.live.set_punt_limit(vid(2), 10, 3);
        world.live.set_addresses(vid(3), &[(0, Ipv4Addr::new(10, 0, 0, 1), 8)]);
        let mut fed = 0;
        for (port, id, noise, kind, address) in frames {
            let to = mac(id, port);
            let frame = match kind {
                0 => noise,
                1 => [&to.0[..], &noise].concat(),
                2 => [&Mac::BROADCAST.0[..], &noise].concat(),
                3 => arp_frame(if id == 0 { Mac::BROADCAST } else { to },
                    arp::Header::request(Mac([2; 6]), address.map(u32::from).iter().sum::<u32>().into(), [10, 0, 0, 1].into())),
                4 if id > 0 => {
                    let mut own = packet(to, [10, address[0], 0, 1]);
                    own[6..12].copy_from_slice(&mac(id, (id % 3) as u8 + u8::from(noise.len() < 20)).0);
                    let _ = taps[usize::from(id) - 1].feed(&own);
                    continue;
                }
                _ => packet(to, [10, address[0] % 4, address[1] % 2, address[2] % 3]),
            };
            world.feed(port, &frame);
            fed += 1;
        }
        let received = |world: &World| (0..PORTS).map(|n| world.live.port_totals(PortId::new(n)).unwrap().received_packets).sum::<u64>();
        until("all received", || received(&world) == fed);
        let still = |world: &World| (1..=4).all(|id| {
            let totals = world.totals(id);
            totals.waiting_packets + totals.crossing_packets == 0 && totals.check().is_ok()
        });
        until("sums that hold", || still(&world));
        for id in 1..=4 {
            prop_assert_eq!(world.totals(id).check(), Ok(()));
        }
        // Slots of sent frames are free after the wires are read.
        until("all slots free", || {
            world.wires.iter().chain(&taps).for_each(|wire| drop(wire.collect()));
            world.live.worker_totals().iter().all(|worker| worker.slots == worker.slots_free)
        });
    }
}
