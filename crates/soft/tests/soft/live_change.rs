//! Changes of a running system under traffic: programs, routes, ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{PORTS, hop, mac, packet, prefix, program, vid};
use crate::world::{PATIENCE, World, config, until, wire, world};
use hue_demux::{Match, PortId};
use hue_planes::ipv4::{Adjacency, Outcome};
use hue_planes::{Loss, Rate, RateLimit};
use hue_ports::{MemoryHandle, MemoryPort};
use hue_soft::live::{Live, LiveError};
use hue_substrate::{Entries, Substrate, SubstrateError, Update};
use hue_tables::Change;
use hue_wire::Mac;

/// Sends to network `id` until stopped, as fast as frames are processed. Fewer frames are under way than a queue
/// holds, even if the network is held for a long time. Returns how many were sent.
fn traffic(world: &World, id: u16, port: u8, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<u64> {
    let (wire, totals, stop) =
        (world.wires[usize::from(port)].clone(), world.live.totals_reader(), stop.clone());
    let frame = packet(mac(id, port), [10, 9, 9, 9]);
    std::thread::spawn(move || {
        let (mut fed, mut decided) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            if fed - decided < 400 && wire.feed(&frame) {
                fed += 1;
            } else {
                std::thread::sleep(Duration::from_micros(100));
                // Frames between workers are still under way: the ring between them is limited too.
                let totals = totals.network(vid(id)).unwrap();
                decided = totals.outcomes.received().saturating_sub(totals.crossing_packets);
            }
        }
        fed
    })
}

#[test]
fn an_unloaded_network_is_gone_and_others_go_on() {
    let mut world = world(2, &[program(1), program(2)]);
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.settled(1, 1);
    world.live.unload(&[vid(1)]).unwrap();
    assert!(world.live.totals(vid(1)).is_none());
    assert!(matches!(world.live.unload(&[vid(1)]), Err(SubstrateError::Unknown(_))));
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.feed(0, &packet(mac(2, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(2, 1).outcomes.forwarded(), 1);
    until("nobody's", || world.live.unclaimed().total() == 1);
    world.live.load(&[program(1)]).unwrap();
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 1).outcomes.forwarded(), 1, "counters begin anew");
    let mut other = program(3);
    other.rows[0].select = Match::Mac { port: PortId::new(0), mac: mac(1, 0) };
    assert!(matches!(world.live.load(&[other]), Err(SubstrateError::Claim { .. })));
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 2).outcomes.forwarded(), 2, "a refused load changes nothing");
}

#[test]
fn a_reload_under_traffic_loses_nothing_and_touches_nobody_else() {
    for workers in [1, 2] {
        let mut world = world(workers, &[program(1), program(2)]);
        world.wires.iter().for_each(MemoryHandle::discard_sent);
        let stop = Arc::new(AtomicBool::new(false));
        let one = traffic(&world, 1, 0, &stop);
        let two = traffic(&world, 2, 1, &stop);
        until("traffic", || world.totals(1).received_packets() > 100);
        for round in 0..40u16 {
            let mut changed = program(1);
            changed.weight = 1 + round % 5;
            changed.entries.lpm32_mut()[0].1 = hop(2 + round % 3);
            if round % 4 == 0 {
                (changed.entries, changed.next_hops) = (Entries::Lpm32(Vec::new()), Vec::new()); // keeps what it has
            }
            world.live.load(&[changed]).unwrap();
            if workers == 1 {
                world.totals(2).check().unwrap(); // at any moment
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (one, two) = (one.join().unwrap(), two.join().unwrap());
        let (first, second) = (world.settled(1, one), world.settled(2, two));
        assert_eq!(first.losses.total() + second.losses.total(), 0, "{first:?} {second:?}");
        assert_eq!(first.outcomes.forwarded(), one, "with {workers} workers: {first:?}");
        assert_eq!(second.outcomes.forwarded(), two);
    }
}

#[test]
fn routes_change_under_traffic_and_never_mix() {
    // Two next hops that differ in both port and MAC: a mixture would show as a frame with the MAC of one on the port
    // of the other. Rows are reused all the time, as the contract allows.
    let mut bare = program(1);
    (bare.entries, bare.next_hops) = (Entries::Lpm32(Vec::new()), Vec::new());
    let mut world = world(1, &[bare]);
    let neighbour = |port: u8, generation: u8| {
        Adjacency::forward(PortId::new(port), mac(1, port), Mac([2, 0xbb, 0, 0, generation, port]), 1500)
    };
    let everything = prefix("10.0.0.0/8");
    let to = |row| [(everything, Some(hop(row)))];
    let first = [(hop(5), neighbour(1, 0))];
    world.live.update(vid(1), &Update::of_routes(&to(5)).with_hops(&first)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let sender = traffic(&world, 1, 0, &stop);
    let mut seen = [0u64; PORTS as usize];
    let mut drain = |world: &World| {
        for (port, wire) in world.wires.iter().enumerate() {
            for frame in wire.collect() {
                assert_eq!(frame[5], port as u8, "a next hop's MAC on another one's port");
                assert_eq!(frame[6..12], mac(1, port as u8).0);
                seen[port] += 1;
            }
        }
    };
    for round in 1..400u16 {
        if round % 13 == 1 {
            let before = world.totals(1).received_packets();
            until("more traffic", || world.totals(1).received_packets() > before);
        }
        let (row, port) = (5 + round % 3, 1 + (round % 2) as u8);
        let hops = [(hop(row), neighbour(port, round as u8))];
        world.live.update(vid(1), &Update::of_routes(&to(row)).with_hops(&hops)).unwrap();
        drain(&world);
    }
    stop.store(true, Ordering::Relaxed);
    let fed = sender.join().unwrap();
    let totals = world.settled(1, fed);
    assert_eq!(totals.outcomes.forwarded(), fed, "never without a route");
    drain(&world);
    assert!(seen[1] > 0 && seen[2] > 0 && seen[0] == 0, "{seen:?}");
}

#[test]
fn wrong_updates_change_nothing() {
    let mut world = world(1, &[program(1)]);
    let elsewhere = Adjacency::forward(PortId::new(1), mac(2, 1), Mac([2, 0, 0, 0, 0, 1]), 1500);
    let to = |address: &str, index| vec![(prefix(address), Some(hop(index)))];
    let mut update = |vid, hops: &[_], routes: &[Change<u32>]| {
        world.live.update(vid, &Update::of_routes(routes).with_hops(hops))
    };
    let refused = update(vid(1), &[(hop(2), elsewhere)], &to("11.0.0.0/8", 2));
    assert!(refused.unwrap_err().to_string().contains("does not have this address"));
    assert!(matches!(update(vid(1), &[], &to("11.0.0.0/8", 99)), Err(SubstrateError::Hop { .. })));
    assert!(matches!(update(vid(9), &[], &[]), Err(SubstrateError::Unknown(_))));
    let glean = (2u16..5).map(|row| (hop(row), Adjacency::glean(PortId::new(0)))).collect::<Vec<_>>();
    assert!(update(vid(1), &glean, &to("11.0.0.0/8", 1000)).is_err());
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.feed(0, &packet(mac(1, 0), [11, 9, 9, 9]));
    let totals = world.settled(1, 2);
    assert_eq!(totals.outcomes.get(Outcome::Forward), 1, "next hops are as they were");
    assert_eq!(totals.outcomes.get(Outcome::NoRoute), 1);
    let grown = [(hop(700), Adjacency::local())];
    let update = to("11.0.0.0/8", 700);
    world.live.update(vid(1), &Update::of_routes(&update).with_hops(&grown)).unwrap();
    world.feed(0, &packet(mac(1, 0), [11, 9, 9, 9]));
    assert_eq!(world.settled(1, 3).outcomes.get(Outcome::Local), 1, "the table grew");
}

#[test]
fn a_port_that_fails_is_told_closed_and_comes_back() {
    const ENODEV: i32 = 19;
    let mut world = world(2, &[program(1), program(2)]);
    let events = world.live.port_events();
    let p1 = PortId::new(1);
    assert!(matches!(world.live.add_port(p1, |_| unreachable!()), Err(LiveError::PortOpen(_))));
    world.wires[1].fail(Some(ENODEV));
    let event = events.recv_timeout(PATIENCE).unwrap();
    assert!((event.id, event.gone) == (p1, true) && event.error.contains("p1"), "{event:?}");
    let state = world.live.port_state(p1).unwrap();
    assert!(!state.up && state.error.is_some());
    // Network 1 sends on port 1, network 2 on port 2.
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.feed(0, &packet(mac(2, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 1).losses.get(Loss::PortDown), 1);
    assert_eq!(world.settled(2, 1).sent_packets(), 1);
    world.wires[1] = wire(&mut world.live, 1);
    assert!(world.live.port_state(p1).unwrap().up);
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 2).sent_packets(), 1);
    world.live.remove_port(p1);
    assert!(!world.live.port_state(p1).unwrap().up);
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 3).losses.get(Loss::PortDown), 2);
    let totals = world.live.port_totals(p1).unwrap();
    assert_eq!(totals.sent_packets, 1, "counters outlive the port");
}

#[test]
fn a_bare_program_keeps_routes_and_updates_next_hops() {
    let mut world = world(2, &[program(1)]);
    let bare = |port_1: Mac| {
        let mut bare = program(1);
        (bare.entries, bare.next_hops) = (Entries::Lpm32(Vec::new()), Vec::new());
        bare.ports[1].mac = port_1;
        bare.rows[1].select = Match::Mac { port: PortId::new(1), mac: port_1 };
        bare
    };
    world.live.load(&[bare(mac(1, 1))]).unwrap();
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 1).outcomes.forwarded(), 1, "routes and next hops stay");
    // Port 1 gets another address: a next hop with the old address must no longer send.
    world.live.load(&[bare(Mac([2, 0, 0, 0, 9, 9]))]).unwrap();
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    world.feed(0, &packet(mac(1, 0), [10, 2, 9, 9]));
    let totals = world.settled(1, 3);
    assert_eq!((totals.outcomes.get(Outcome::Local), totals.outcomes.forwarded()), (1, 2));
    let now = Adjacency::forward(PortId::new(1), Mac([2, 0, 0, 0, 9, 9]), Mac([2, 1, 1, 1, 1, 1]), 1500);
    world.live.update(vid(1), &Update::of_hops(&[(hop(3), now)])).unwrap();
    world.feed(0, &packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 4).outcomes.forwarded(), 3);
}

#[test]
fn a_trace_is_of_the_running_state() {
    let mut limited = program(1);
    let packets = Some(Rate::new(1, 3).unwrap());
    limited.rate_limit = Some(RateLimit { packets, bits: None });
    let mut world = world(1, &[limited, program(2)]);
    let frame = packet(mac(1, 0), [10, 9, 9, 9]);
    let explain = |world: &World, frame: &[u8]| {
        let trace = world.live.explain(PortId::new(0), frame, 0);
        trace.networks.iter().map(|network| (network.vid.get(), network.outcome)).collect::<Vec<_>>()
    };
    assert_eq!(explain(&world, &frame), [(1, Outcome::Forward.into())]);
    (0..4).for_each(|_| world.feed(0, &frame));
    assert_eq!(world.settled(1, 4).outcomes.get(Outcome::RateLimited), 1);
    assert_eq!(explain(&world, &frame), [(1, Outcome::RateLimited.into())], "its meter is empty now");
    assert_eq!(world.totals(1).received_packets(), 4, "a trace is not counted");
    let mut hello = packet(Mac([1, 0, 0x5e, 0, 0, 5]), [224, 0, 0, 5]);
    hello[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(explain(&world, &hello).len(), 2);
    world.live.set_addresses(vid(2), &[(0, std::net::Ipv4Addr::new(10, 0, 0, 1), 8)]);
    assert_eq!(explain(&world, &hello).len(), 1, "not the other one's business");
    let (hops, routes) = ([(hop(9), Adjacency::local())], [(prefix("11.0.0.0/8"), Some(hop(9)))]);
    world.live.update(vid(2), &Update::of_routes(&routes).with_hops(&hops)).unwrap();
    assert_eq!(explain(&world, &packet(mac(2, 0), [11, 0, 0, 1])), [(2, Outcome::Local.into())]);
}

#[test]
fn settings_may_come_before_the_network() {
    let mut world = world(2, &[]);
    world.live.set_punt_limit(vid(1), 1, 2);
    world.live.load(&[program(1)]).unwrap();
    let _tap = world.tap(1, 0);
    (0..5).for_each(|_| world.feed(0, &packet(mac(1, 0), [10, 0, 0, 1])));
    assert_eq!(world.settled(1, 5).losses.get(Loss::PuntLimited), 3);
    assert_eq!(world.totals(1).to_control_packets, 2);
}

#[test]
fn a_port_that_is_opened_elsewhere_has_its_place_from_the_start() {
    let mut live = Live::start(config(2)).unwrap();
    let open = |name: &str| MemoryPort::pair(name, 16).unwrap();
    let (p0, p1) = (PortId::new(0), PortId::new(1));
    // Both are under way at the same time: each has its own worker.
    let (first, second) = (live.reserve_port(p0).unwrap(), live.reserve_port(p1).unwrap());
    assert!(!first.is(&second), "two ports, two workers");
    assert!(live.reserve_port(p0).unwrap().is(&first), "it keeps its place");
    assert!(live.port_state(p0).is_none(), "it is not open yet");
    let wrong = live.adopt_port(p0, &second, Box::new(open("p0").0));
    assert!(matches!(wrong, Err(LiveError::Memory { worker: 0, .. })), "{wrong:?}");
    live.adopt_port(p0, &first, Box::new(open("p0").0)).unwrap();
    assert!(live.port_state(p0).unwrap().up);
    assert!(matches!(live.reserve_port(p0), Err(LiveError::PortOpen(_))));
    assert!(matches!(live.adopt_port(p0, &first, Box::new(open("p0").0)), Err(LiveError::PortOpen(_))));
}

#[test]
fn packet_memory_is_replaced_while_no_port_is_open() {
    let mut live = Live::start(config(1)).unwrap();
    let slots = |live: &Live| live.worker_totals()[0].slots;
    let (p0, frame) = (PortId::new(0), packet(mac(1, 0), [10, 9, 9, 9]));
    let before = live.reserve_port(p0).unwrap();
    live.set_memory(16_384, 4096).unwrap();
    until("the worker has it", || slots(&live) == 16_384);
    let after = live.reserve_port(p0).unwrap();
    assert_eq!((after.slots(), after.slot_bytes()), (16_384, 4096));
    // A port that was opened with the former memory is refused.
    let (late, _wire) = MemoryPort::pair("p0", 16).unwrap();
    assert!(matches!(live.adopt_port(p0, &before, Box::new(late)), Err(LiveError::Memory { .. })));
    let wires: Vec<_> = (0..PORTS).map(|port| wire(&mut live, port)).collect();
    live.load(&[program(1)]).unwrap();
    let refused = live.set_memory(32_768, 4096).unwrap_err();
    assert!(refused.to_string().contains("a port uses the current memory"), "{refused}");
    for (slots, bytes) in [(1024, 3000), (u32::MAX, 4096)] {
        assert!(matches!(live.set_memory(slots, bytes), Err(LiveError::Memory { .. })), "{slots} x {bytes}");
    }
    assert_eq!(slots(&live), 16_384);
    let world = World { live, wires };
    world.feed(0, &frame);
    assert_eq!(world.settled(1, 1).sent_packets(), 1);
}
