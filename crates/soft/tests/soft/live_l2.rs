//! Networks of kind `l2` in the running system: floods, learning, and what they cost whom.

use crate::common::{mac, packet as ipv4_packet, program as ipv4_program, vid};
use crate::l2::{frame, host, switch};
use crate::world::{PATIENCE, World, config, until, wire_of, world};
use hue_demux::PortId;
use hue_planes::l2::{Outcome, Settings};
use hue_planes::{Loss, Reason, ipv4};
use hue_soft::live::Live;
use hue_substrate::Substrate;
use hue_wire::Mac;

#[test]
fn frames_are_flooded_until_the_switch_knows_better() {
    for workers in [1, 2] {
        let world = world(workers, &[switch(1, 0, 3, Settings::default(), &[(host(9), 2)])]);
        let ask = frame(Mac::BROADCAST, host(0), 60);
        world.feed(0, &ask);
        let totals = world.settled(1, 1);
        assert_eq!((totals.outcomes.get(Outcome::Flood), totals.copies), (1, 2));
        let answer = frame(host(0), host(1), 60);
        world.feed(1, &answer);
        world.settled(1, 2);
        world.feed(0, &frame(host(1), host(0), 80));
        world.feed(0, &frame(host(9), host(0), 90));
        let totals = world.settled(1, 4);
        assert_eq!(totals.outcomes.get(Outcome::Forward), 3, "{workers} workers");
        assert_eq!((totals.switch.learnt, totals.switch.moved), (2, 0));
        until("sent", || world.wires[1].wait_sent(2, PATIENCE) && world.wires[2].wait_sent(2, PATIENCE));
        assert_eq!(world.wires[0].collect(), [answer]);
        assert_eq!(world.wires[1].collect(), [ask.clone(), frame(host(1), host(0), 80)]);
        assert_eq!(world.wires[2].collect(), [ask, frame(host(9), host(0), 90)]);
        let rows = world.live.macs(vid(1)).unwrap();
        let rows: Vec<_> = rows.iter().map(|row| (row.mac, row.vport, row.fixed)).collect();
        assert_eq!(rows, [(host(0), 0, false), (host(1), 1, false), (host(9), 2, true)]);
        // A trace answers from the same table.
        let trace = world.live.explain(PortId::new(2), &frame(host(1), host(9), 60), 0);
        assert_eq!(
            (trace.networks[0].outcome, trace.networks[0].egress),
            (Reason::from(Outcome::Forward), Some(PortId::new(1)))
        );
        // The host moves.
        world.feed(2, &frame(host(0), host(1), 60));
        assert_eq!(world.settled(1, 5).switch.moved, 1);
    }
}

/// Copies for a port that is gone are lost, and the other ports get all of theirs.
#[test]
fn a_port_that_is_gone_holds_up_no_other() {
    let mut world = world(1, &[switch(1, 0, 3, Settings::default(), &[])]);
    let count = 200;
    world.live.remove_port(PortId::new(1));
    for _ in 0..count {
        world.feed(0, &frame(Mac::BROADCAST, host(0), 60));
    }
    let totals = world.settled(1, count);
    assert_eq!(totals.copies, 2 * count);
    assert_eq!((totals.losses.get(Loss::PortDown), totals.ports[2].sent_packets), (count, count));
}

/// A port without room, whose wire nobody empties, loses its own copies. The other ports get all of theirs, in order.
#[test]
fn a_full_port_holds_up_no_other() {
    const FULL: u8 = 1;
    const ROOM: usize = 4;
    const COUNT: u64 = 400;
    // With several workers, the ports are with different ones.
    for workers in [1, 2, 3] {
        let mut live = Live::start(config(workers)).unwrap();
        let room = |port| if port == FULL { ROOM } else { 1024 };
        let wires = (0..4).map(|port| wire_of(&mut live, port, room(port))).collect();
        live.load(&[switch(1, 0, 4, Settings::default(), &[])]).unwrap();
        let world = World { live, wires };
        let numbered = |number: u64| {
            let mut frame = frame(Mac::BROADCAST, host(0), 60);
            frame[14..22].copy_from_slice(&number.to_be_bytes());
            frame
        };
        let frames: Vec<_> = (0..COUNT).map(numbered).collect();
        frames.iter().for_each(|frame| world.feed(0, frame));
        let totals = world.settled(1, COUNT);
        assert_eq!((totals.outcomes.get(Outcome::Flood), totals.copies), (COUNT, 3 * COUNT));
        let lost = totals.losses.get(Loss::PortFull);
        assert_eq!(totals.losses.total(), lost, "{workers} workers: {:?}", totals.losses);
        let sent: Vec<u64> = totals.ports.iter().map(|port| port.sent_packets).collect();
        assert_eq!(sent, [0, COUNT - lost, COUNT, COUNT], "{workers} workers");
        // The port itself holds some more.
        assert!((ROOM as u64..=4 * ROOM as u64).contains(&(COUNT - lost)), "{workers} workers: {lost}");
        for wire in [&world.wires[2], &world.wires[3]] {
            assert!(wire.wait_sent(COUNT, PATIENCE));
            assert_eq!(wire.collect(), frames, "{workers} workers");
        }
        assert_eq!(world.wires[usize::from(FULL)].collect(), frames[..ROOM]);
        assert!(world.wires[0].collect().is_empty());
    }
}

/// The copies of a flood are the flooding network's to pay: another network with frames at the same time gets its share.
#[test]
fn another_network_is_not_touched() {
    let world = world(2, &[switch(1, 0, 3, Settings::default(), &[]), ipv4_program(2)]);
    for _ in 0..300 {
        world.feed(0, &frame(Mac::BROADCAST, host(0), 60));
        world.feed(0, &frame(host(7), host(0), 60));
        world.feed(0, &ipv4_packet(mac(2, 0), [10, 9, 9, 9]));
    }
    let totals = world.settled(2, 600);
    assert_eq!(totals.outcomes.get(ipv4::Outcome::Forward), 300);
    assert_eq!(
        totals.outcomes.get(ipv4::Outcome::Ethertype),
        300,
        "its copies of the broadcasts, which are no IP"
    );
    let totals = world.settled(1, 600);
    assert_eq!((totals.outcomes.get(Outcome::Flood), totals.copies), (600, 1200));
    totals.check().unwrap();
}

#[test]
fn a_change_keeps_what_was_learnt() {
    let mut world = world(1, &[switch(1, 0, 3, Settings::default(), &[])]);
    world.feed(1, &frame(Mac::BROADCAST, host(1), 60));
    world.settled(1, 1);
    world.live.load(&[switch(1, 0, 3, Settings { sticky: true, ..Settings::default() }, &[])]).unwrap();
    world.feed(0, &frame(host(1), host(0), 60));
    world.feed(2, &frame(host(0), host(1), 60));
    let totals = world.settled(1, 3);
    assert_eq!((totals.outcomes.get(Outcome::Forward), totals.outcomes.get(Outcome::WrongPort)), (1, 1));
    assert_eq!(world.live.macs(vid(1)).unwrap().len(), 2);
}
