//! Networks of kind `ipv6` in the running system, beside one of kind `ipv4` on the same ports.

use std::net::{IpAddr, Ipv6Addr};

use crate::common::{hop, mac, packet as ipv4_packet, program as ipv4_program, vid};
use crate::world::{PATIENCE, World, until, world};
use hue_demux::PortId;
use hue_planes::ipv6::Outcome;
use hue_planes::{Kind, Loss, Reason, Settings, ipv4};
use hue_substrate::{Entries, Program, Substrate, Update};
use hue_tables::Prefix6;
use hue_wire::{Mac, icmpv6, ipv6, ndp};

const GROUP: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);
const ALL_NODES: &str = "ff02::1";
const HOST: Mac = Mac([2, 9, 9, 9, 9, 1]);
const EVIL: Mac = Mac([2, 9, 9, 9, 9, 2]);

/// Network `id` of kind `ipv6`, without routes.
fn program(id: u16) -> Program {
    Program { settings: Settings::of(Kind::Ipv6), entries: Entries::none(Kind::Ipv6), ..ipv4_program(id) }
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A packet of this next header and payload.
fn packet(macs: (Mac, Mac), addresses: (&str, &str), hop_limit: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [macs.0.octets(), macs.1.octets()].concat();
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend([next, hop_limit]);
    frame.extend(address(addresses.0).octets());
    frame.extend(address(addresses.1).octets());
    frame.extend(payload);
    frame
}

/// A neighbour solicitation or advertisement about `target`, with the option that it has.
fn message(kind: u8, target: &str, claimed: Mac) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    message.extend(address(target).octets());
    message.extend([if kind == 135 { ndp::OPTION_SOURCE } else { ndp::OPTION_TARGET }, 1]);
    message.extend(claimed.octets());
    message
}

/// Routes of a network: one to each of its neighbours, its own address, and a subnet whose hosts are not known.
fn add_routes(world: &mut World, id: u16) {
    let route = |prefix: &str, index| (prefix.parse::<Prefix6>().unwrap(), Some(hop(index)));
    let routes = [
        route("2001:db8::/64", 1),
        route("2001:db8::1/128", 0),
        route("2001:db8:a::/48", 2),
        route("2001:db8:b::/48", 3),
        route("2001:db8:c::/48", 4),
    ];
    world.live.update(vid(id), &Update::of_routes(&routes)).unwrap();
}

/// Its counters and the frames that wait are those of its kind.
#[test]
fn a_running_network_refuses_to_become_one_of_another_kind() {
    let mut world = world(1, &[ipv4_program(1)]);
    world.feed(0, &ipv4_packet(mac(1, 0), [10, 9, 9, 9]));
    world.settled(1, 1);
    let error = world.live.load(&[program(2), program(1)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "network 'net1' runs as kind ipv4: unload it before it is loaded as kind ipv6"
    );
    assert_eq!((world.live.counters(vid(2)), world.live.capacity().networks), (None, 1));
    world.feed(0, &ipv4_packet(mac(1, 0), [10, 9, 9, 9]));
    assert_eq!(world.settled(1, 2).outcomes.get(ipv4::Outcome::Forward), 2);
    world.live.unload(&[vid(1)]).unwrap();
    world.live.load(&[program(1)]).unwrap();
}

#[test]
fn networks_of_both_kinds_forward_through_the_same_batches() {
    for workers in [1, 2] {
        let mut world = world(workers, &[ipv4_program(1), program(2), program(3)]);
        add_routes(&mut world, 2);
        add_routes(&mut world, 3);
        for n in 0..300u16 {
            let (id, host) = (2 + n % 2, HOST);
            world.feed(0, &packet((mac(id, 0), host), ("2001:db8:9::9", "2001:db8:b::7"), 64, 17, &[7; 12]));
            world.feed(0, &ipv4_packet(mac(1, 0), [10, 9, 9, 9]));
        }
        let one = world.settled(1, 300);
        assert_eq!(one.outcomes.get(ipv4::Outcome::Forward), 300);
        for id in [2, 3] {
            let totals = world.settled(id, 150);
            assert_eq!(totals.outcomes.get(Outcome::Forward), 150, "{workers} workers, network {id}");
            assert_eq!(totals.ports[1].sent_packets, 150);
        }
        until("all sent", || world.wires[1].wait_sent(600, PATIENCE));
        let sent = world.wires[1].collect();
        let ours = |frame: &&Vec<u8>| frame[12..14] == [0x86, 0xdd];
        assert_eq!(sent.iter().filter(ours).count(), 300);
        assert!(sent.iter().filter(ours).all(|frame| frame[21] == 63 && frame[..2] == [2, 0xaa]));
    }
}

#[test]
fn group_frames_reach_the_kinds_that_handle_them() {
    let mut world = world(2, &[ipv4_program(1), program(2)]);
    let _taps = [world.tap(1, 0), world.tap(2, 0)];
    world.live.set_addresses(vid(2), &[(0, address("2001:db8::1"), 64)]);
    world.live.set_addresses(vid(1), &[(0, std::net::Ipv4Addr::new(192, 0, 2, 9), 24)]);
    let from = |source, next, payload: &[u8]| packet((GROUP, HOST), (source, ALL_NODES), 255, next, payload);
    // OSPF from a neighbour, a query for multicast listeners with its option, a solicitation for the network's address,
    // one for another host's, and multicast of another link.
    world.feed(0, &from("fe80::9", 89, &[3; 20]));
    world.feed(0, &from("fe80::9", 0, &[58, 0, 5, 2, 0, 0, 1, 0, 130, 0, 0, 0]));
    world.feed(0, &from("2001:db8::7", 58, &message(135, "2001:db8::1", HOST)));
    world.feed(0, &from("2001:db8::7", 58, &message(135, "2001:db8::8", HOST)));
    world.feed(0, &from("2001:db8:5::7", 89, &[3; 20]));
    let mut ipv4 = ipv4_packet(Mac::BROADCAST, [255; 4]);
    let mut arp = ipv4.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    ipv4[29] = 7;
    let checksum = {
        ipv4[24..26].fill(0);
        hue_wire::checksum::full(&ipv4[14..34])
    };
    ipv4[24..26].copy_from_slice(&checksum.to_be_bytes());
    world.feed(0, &arp);
    world.feed(0, &ipv4);
    let two = world.settled(2, 7);
    assert_eq!((two.outcomes.get(Outcome::Local), two.to_control_packets), (3, 3));
    assert_eq!(two.outcomes.get(Outcome::Ethertype), 2, "ARP and IPv4");
    assert_eq!((two.losses.get(Loss::ArpForeign), two.losses.get(Loss::GroupForeign)), (1, 1));
    let one = world.settled(1, 7);
    assert_eq!(one.outcomes.get(ipv4::Outcome::Ethertype), 5, "all of IPv6");
    assert_eq!(one.outcomes.get(ipv4::Outcome::Local), 1);
    for frame in [from("fe80::9", 89, &[3; 20]), arp.clone()] {
        let trace = world.live.explain(PortId::new(0), &frame, 0);
        let outcome = |id| trace.networks.iter().find(|one| one.vid == vid(id)).map(|one| one.outcome);
        let is_arp = frame == arp;
        let wanted: Reason = if is_arp { Outcome::Ethertype.into() } else { Outcome::Local.into() };
        assert_eq!(outcome(2), Some(wanted));
        assert!(is_arp || outcome(1).is_some_and(|found| found == ipv4::Outcome::Ethertype));
    }
}

#[test]
fn forged_discovery_is_dropped_while_the_neighbour_is_known() {
    let mut world = world(2, &[program(1), program(2)]);
    add_routes(&mut world, 1);
    add_routes(&mut world, 2);
    let _taps = [world.tap(1, 0), world.tap(2, 0)];
    let claim = |id: u16, claimed: Mac| {
        let to = (mac(id, 0), claimed);
        packet(to, ("2001:db8::7", "2001:db8::1"), 255, 58, &message(135, "2001:db8::1", claimed))
    };
    let behind = |headers: &[u8], first| {
        let payload = [headers, &message(135, "2001:db8::1", EVIL)].concat();
        packet((mac(1, 0), EVIL), ("2001:db8::7", "2001:db8::1"), 255, first, &payload)
    };
    for id in [1, 2] {
        world.live.set_addresses(vid(id), &[(0, address("2001:db8::1"), 64)]);
        world.live.neighbours(vid(id), &[(0, address("2001:db8::7"), HOST)]);
        world.feed(0, &claim(id, HOST));
        world.feed(0, &claim(id, EVIL));
        let totals = world.settled(id, 2);
        assert_eq!((totals.to_control_packets, totals.losses.get(Loss::ArpForged)), (1, 1));
    }
    // Behind options, in a fragment, and behind more headers than the guard follows.
    world.feed(0, &behind(&[58, 0, 1, 4, 0, 0, 0, 0], 60));
    world.feed(0, &behind(&[58, 0, 0, 0, 0, 0, 0, 9], 44));
    let mut deep = [60, 0, 1, 4, 0, 0, 0, 0].repeat(ipv6::EXTENSIONS_MAX + 1);
    let last = deep.len() - 8;
    deep[last] = 58;
    world.feed(0, &behind(&deep, 60));
    assert_eq!(world.settled(1, 5).losses.get(Loss::ArpForged), 4);
    // A kernel may have an address for which the plane has no route: the claim is in a packet that is not local then.
    let elsewhere = packet(
        (mac(1, 0), EVIL),
        ("2001:db8::7", "2001:db8:f::1"),
        255,
        58,
        &message(136, "2001:db8::1", EVIL),
    );
    world.feed(0, &elsewhere);
    let totals = world.settled(1, 6);
    assert_eq!((totals.outcomes.get(Outcome::NoRoute), totals.losses.get(Loss::ArpForged)), (1, 5));
    world.live.neighbours::<IpAddr>(vid(1), &[]);
    world.feed(0, &claim(1, EVIL));
    assert_eq!(world.settled(1, 7).to_control_packets, 2, "it no longer answered");
}

#[test]
fn discovery_may_use_the_whole_punt_limit() {
    let mut world = world(1, &[program(1)]);
    add_routes(&mut world, 1);
    let _tap = world.tap(1, 0);
    world.live.set_punt_limit(vid(1), 1, 10);
    let unknown = packet((mac(1, 0), HOST), ("2001:db8:9::9", "2001:db8::5"), 64, 17, &[7; 12]);
    for _ in 0..20 {
        world.feed(0, &unknown);
    }
    let totals = world.settled(1, 20);
    assert_eq!((totals.to_control_packets, totals.losses.get(Loss::PuntLimited)), (5, 15));
    let ask =
        packet((mac(1, 0), HOST), ("fe80::7", "2001:db8::1"), 255, 58, &message(135, "2001:db8::1", HOST));
    for _ in 0..20 {
        world.feed(0, &ask);
    }
    assert!(world.settled(1, 40).to_control_packets >= 10);
}

#[test]
fn a_control_plane_sends_ipv6_and_neighbours_hear_of_its_addresses() {
    let mut world = world(1, &[program(1)]);
    let tap = world.tap(1, 0);
    let own =
        packet((GROUP, mac(1, 0)), ("fe80::1", ALL_NODES), 255, 58, &message(136, "fe80::1", mac(1, 0)));
    let forged = packet((GROUP, EVIL), ("fe80::1", ALL_NODES), 255, 58, &message(136, "fe80::1", EVIL));
    for frame in [&own, &forged] {
        until("room", || tap.feed(frame));
    }
    assert!(world.wires[0].wait_sent(1, PATIENCE));
    assert_eq!(world.wires[0].collect(), [own]);
    until("the forged frame counted", || world.totals(1).losses.get(Loss::ForgedSource) == 1);
    let addresses = [(0, address("2001:db8::1"), 64), (0, address("fe80::1"), 64)];
    world.live.set_addresses(vid(1), &addresses);
    world.live.neighbours(vid(1), &[(0, address("2001:db8::7"), HOST), (0, address("fe80::7"), HOST)]);
    assert_eq!(world.live.announce(vid(1)), 2);
    assert!(world.wires[0].wait_sent(2, PATIENCE));
    let sent = world.wires[0].collect();
    assert_eq!(sent.len(), 2);
    for (frame, (_, own, _)) in sent.iter().zip(addresses) {
        assert_eq!((&frame[..6], &frame[6..12]), (&HOST.octets()[..], &mac(1, 0).octets()[..]));
        let view = ipv6::View::parse(&frame[14..]).unwrap();
        assert_eq!((view.header().source(), view.header().hop_limit), (own, 255));
        let message = icmpv6::View::parse(view.payload()).unwrap();
        assert!(message.checksum_ok(view.header().source(), view.header().destination()));
        let found = ndp::View::parse(view.payload()).unwrap();
        assert_eq!((found.header().target(), found.mac()), (own, Some(mac(1, 0))));
    }
}
