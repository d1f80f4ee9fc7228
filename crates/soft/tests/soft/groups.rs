//! Groups of next hops: each packet takes the slot of its hash, changes are seen at once, and unsound ones change nothing.

use std::collections::BTreeMap;

use crate::common::{PORTS, hop, mac, packet, prefix, program, soft, vid};
use crate::world::world;
use hue_demux::PortId;
use hue_planes::group::{Group, Member, Slots};
use hue_planes::ipv4::Outcome;
use hue_planes::{Adjacency, Kind, Settings};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::{Entries, Program, Substrate, Update};
use hue_wire::{Mac, checksum, toeplitz};

/// The row of the group.
const ROW: u16 = 9;

fn members(rows: &[u16]) -> Vec<Member> {
    rows.iter().map(|row| Member { row: hop(*row), weight: 1 }).collect()
}

fn slots(rows: &[u16]) -> Slots {
    Group::new(&members(rows)).unwrap().slots().clone()
}

/// [`program`] with a route to 10.0.0.0/8 by a group of all its neighbours.
fn grouped(id: u16) -> Program {
    let mut program = program(id);
    program.next_hops.resize(usize::from(ROW), Adjacency::local());
    program.next_hops.push(Adjacency::group(0));
    program.groups.push((hop(ROW), slots(&[2, 3, 4])));
    program.entries = Entries::Lpm32(vec![(prefix("10.0.0.0/8"), hop(ROW))]);
    program
}

/// A UDP packet of network `id` whose flow is a number.
fn flow(id: u16, number: u16) -> Vec<u8> {
    let mut bytes = packet(mac(id, 0), [10, 9, 9, 9]);
    bytes[34..36].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The fragment of the same packet at this place (in units of 8 bytes), with others behind it.
fn fragment(id: u16, number: u16, place: u16) -> Vec<u8> {
    let mut bytes = flow(id, number);
    bytes[20..22].copy_from_slice(&(0x2000 | place).to_be_bytes());
    bytes[24..26].fill(0);
    let sum = checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The fates of frames, with the destination MAC addresses afterwards.
fn send(soft: &mut Soft, frames: &[Vec<u8>]) -> Vec<(Fate, Mac)> {
    let mut batch = Batch::new();
    frames.iter().for_each(|frame| assert!(batch.push(PortId::new(0), 0, frame)));
    let mut fates = Vec::new();
    soft.run(&mut batch, |output| fates.push((output.fate, Mac(output.bytes[..6].try_into().unwrap()))));
    fates
}

fn egress(fate: &(Fate, Mac)) -> u8 {
    match fate.0 {
        Fate::Network { outcome, egress, .. } if outcome == Outcome::Forward => egress.get(),
        fate => panic!("{fate:?}"),
    }
}

fn flows(id: u16) -> Vec<Vec<u8>> {
    (0..3000).map(|number| flow(id, number)).collect()
}

fn ways(soft: &mut Soft, id: u16) -> Vec<u8> {
    send(soft, &flows(id)).iter().map(egress).collect()
}

#[test]
fn a_packet_takes_the_slot_of_its_hash() {
    let mut soft = soft();
    soft.load(&[grouped(1), program(2)]).unwrap();
    let slots = slots(&[2, 3, 4]);
    let mut counts = [0; PORTS as usize];
    for (frame, fate) in flows(1).iter().zip(send(&mut soft, &flows(1))) {
        let row = slots.row(toeplitz::ipv4(&frame[14..])).unwrap();
        assert_eq!(egress(&fate), row.get() as u8 - 2);
        assert_eq!(fate.1, Mac([2, 0xaa, 0, 0, 1, row.get() as u8 - 2]), "the member's MAC address");
        counts[usize::from(egress(&fate))] += 1;
    }
    assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    // The other network has no group.
    assert!(ways(&mut soft, 2).iter().all(|port| *port == 2));
}

#[test]
fn all_fragments_of_a_packet_take_one_way() {
    let mut soft = soft();
    soft.load(&[grouped(1)]).unwrap();
    let fragments: Vec<_> = (0..300).map(|number| fragment(1, number, number % 3)).collect();
    let ways: Vec<u8> = send(&mut soft, &fragments).iter().map(egress).collect();
    assert!(ways.iter().all(|way| *way == ways[0]));
}

#[test]
fn when_a_member_goes_only_its_flows_move() {
    let mut soft = soft();
    soft.load(&[grouped(1)]).unwrap();
    let before = ways(&mut soft, 1);
    let group = Group::new(&members(&[2, 3, 4])).unwrap();
    let less = [(hop(ROW), group.changed(&members(&[2, 4])).unwrap().slots().clone())];
    soft.update(vid(1), &Update::default().with_groups(&less)).unwrap();
    let after = ways(&mut soft, 1);
    assert!(before.iter().zip(&after).all(|(one, other)| one == other || *one == 1), "only those of port 1");
    assert!(!after.contains(&1));
    // The row becomes a single next hop, and a group again.
    let single = [(hop(ROW), program(1).next_hops[3])];
    soft.update(vid(1), &Update::of_hops(&single)).unwrap();
    assert!(ways(&mut soft, 1).iter().all(|port| *port == 1));
    let again = [(hop(ROW), group.slots().clone())];
    soft.update(vid(1), &Update::default().with_groups(&again)).unwrap();
    assert_eq!(ways(&mut soft, 1), before);
}

#[test]
fn each_member_has_its_own_mtu_and_neighbour() {
    let mut program = grouped(1);
    program.next_hops[3] = Adjacency::forward(PortId::new(1), mac(1, 1), Mac([2, 0xaa, 0, 0, 1, 1]), 31);
    program.next_hops[4] = Adjacency::glean(PortId::new(2));
    let mut soft = soft();
    soft.load(&[program]).unwrap();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (frame, (fate, _)) in flows(1).iter().zip(send(&mut soft, &flows(1))) {
        let Fate::Network { outcome, .. } = fate else { panic!("{fate:?}") };
        let row = slots(&[2, 3, 4]).row(toeplitz::ipv4(&frame[14..])).unwrap();
        let expected = ["forward", "mtu", "no_neighbour"][usize::from(row.get()) - 2];
        assert_eq!(outcome.name(), expected);
        *seen.entry(outcome.name()).or_default() += 1;
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn unsound_groups_are_refused_and_change_nothing() {
    let mut soft = soft();
    soft.load(&[grouped(1)]).unwrap();
    let before = ways(&mut soft, 1);
    let group = |row: u16, rows: &[u16]| vec![(hop(row), slots(rows))];
    for (groups, hops, expected) in [
        (group(ROW, &[2, 77]), vec![], "group in row 9: a slot names a next hop that does not exist"),
        (group(20, &[2, 10]), vec![(hop(10), Adjacency::NONE)], "group in row 20: a slot names no route"),
        (group(20, &[2, ROW]), vec![], "group in row 20: a slot names a group"),
        (group(3, &[2, 4]), vec![], "group in row 9: a slot names a group"),
        (vec![], vec![(hop(3), Adjacency::group(0))], "a group is given by its slots"),
    ] {
        let update = Update::of_hops(&hops).with_groups(&groups);
        let error = soft.update(vid(1), &update).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(ways(&mut soft, 1), before, "{expected}");
    }
    // A refused route takes the groups of its update with it.
    let other = group(ROW, &[2, 3]);
    let routes = [(prefix("11.0.0.0/8"), Some(hop(500)))];
    assert!(soft.update(vid(1), &Update::of_routes(&routes).with_groups(&other)).is_err());
    assert_eq!(ways(&mut soft, 1), before);
    // A network that learns has its ports only.
    let mut switch = program(2);
    switch.settings = Settings::of(Kind::L2);
    switch.next_hops = switch.ports.iter().map(|port| Adjacency::out(port.port, 1500)).collect();
    switch.entries = Entries::none(Kind::L2);
    soft.load(&[switch]).unwrap();
    let error =
        soft.update(vid(2), &Update::default().with_groups(&group(1, &[0, 2]))).unwrap_err().to_string();
    assert!(error.contains("the next hops of a network that learns are its ports"), "{error}");
}

#[test]
fn many_changes_of_groups_leave_the_others_as_they_are() {
    let mut program = grouped(1);
    program.entries = Entries::Lpm32(vec![(prefix("10.0.0.0/8"), hop(ROW)), (prefix("11.0.0.0/8"), hop(12))]);
    program.next_hops.resize(12, Adjacency::local());
    program.next_hops.push(Adjacency::group(0));
    program.groups.push((hop(12), slots(&[2, 4])));
    let mut soft = soft();
    soft.load(&[program]).unwrap();
    let before = ways(&mut soft, 1);
    for round in 0..40u16 {
        let row = hop(12 + round % 5);
        if round % 3 == 0 {
            soft.update(vid(1), &Update::of_hops(&[(row, Adjacency::local())])).unwrap();
        } else {
            let groups = [(row, slots(&[2, 3 + round % 2]))];
            soft.update(vid(1), &Update::default().with_groups(&groups)).unwrap();
        }
        assert_eq!(ways(&mut soft, 1), before, "round {round}");
    }
}

#[test]
fn an_explanation_names_hash_slot_and_member() {
    let mut soft = soft();
    soft.load(&[grouped(1)]).unwrap();
    for number in 0..20 {
        let frame = flow(1, number);
        let (hash, slots) = (toeplitz::ipv4(&frame[14..]), slots(&[2, 3, 4]));
        let trace = soft.explain(PortId::new(0), 0, &frame);
        let network = &trace.networks[0];
        let lookup = network.stages.iter().find(|stage| stage.name == "lookup").unwrap();
        let expected = format!(
            "next hop 9: group of 3 members, hash 0x{hash:08x}, slot {} of 256, next hop {}",
            slots.slot(hash),
            slots.row(hash).unwrap().get()
        );
        assert!(lookup.detail.contains(&expected), "{}", lookup.detail);
        let fate = send(&mut soft, &[frame])[0];
        assert_eq!(network.egress.map(PortId::get), Some(egress(&fate)));
    }
}

#[test]
fn workers_have_the_groups_of_their_networks() {
    let mut bare = program(1);
    (bare.entries, bare.next_hops) = (Entries::Lpm32(Vec::new()), Vec::new());
    let mut world = world(2, &[bare]);
    let next_hops = program(1).next_hops;
    let hops: Vec<_> = (0..5).map(|row| (hop(row), next_hops[usize::from(row)])).collect();
    let groups = [(hop(ROW), slots(&[2, 3, 4]))];
    let routes = [(prefix("10.0.0.0/8"), Some(hop(ROW)))];
    world.live.update(vid(1), &Update::of_routes(&routes).with_hops(&hops).with_groups(&groups)).unwrap();
    let count = |world: &crate::world::World| -> Vec<usize> {
        world.wires.iter().map(|wire| wire.collect().len()).collect()
    };
    (0..90).for_each(|number| world.feed(0, &flow(1, number)));
    world.settled(1, 90);
    assert!(count(&world).iter().all(|count| *count > 10));
    let groups = [(hop(ROW), slots(&[2, 4]))];
    world.live.update(vid(1), &Update::default().with_groups(&groups)).unwrap();
    (0..90).for_each(|number| world.feed(0, &flow(1, number)));
    world.settled(1, 180);
    let counts = count(&world);
    assert!(counts[1] == 0 && counts[0] > 20 && counts[2] > 20, "{counts:?}");
}
