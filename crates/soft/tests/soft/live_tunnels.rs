//! Networks with tunnels over another network: on one worker, on two, and offline.

use hue_demux::tunnel::{Dscp, Encapsulation, IPIP_PEER, Tunnel};
use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Loss, l2};
use hue_soft::{After, Batch, Fate, PASSAGES_MAX, Soft};
use hue_substrate::{Entries, Program, Substrate};
use hue_tables::Prefix4;
use hue_wire::{Mac, checksum, vxlan::Vni};

use crate::common::{hop, mac, packet, program, soft, vid};
use crate::l2::{frame, host, switch};
use crate::world::{World, until, world};

const CARRIER: u16 = 3;
const LOCAL: [u8; 4] = [10, 0, 0, 1];
/// By port 1, through a neighbour of the carrier.
const REMOTE: [u8; 4] = [10, 2, 0, 9];

/// A network that has a tunnel instead of its third port; 10.2.0.0/16 (network 1) leaves by it.
fn passenger(id: u16, encapsulation: Encapsulation) -> Program {
    let mut program = program(id);
    let port = PortId::tunnel(0).unwrap();
    program.ports[2].port = port;
    program.ports[2].tunnel = Some(Tunnel {
        over: vid(CARRIER),
        encapsulation,
        local: LOCAL.into(),
        remote: REMOTE.into(),
        ttl: 64,
        dscp: Dscp::Inherit,
    });
    program.ports[2].mtu_bytes = 1400;
    program.rows[2] = Row { select: Match::Mac { port, mac: mac(id, 2) }, ..program.rows[2] };
    program.next_hops[4] = Adjacency::forward(port, mac(id, 2), IPIP_PEER, 1400);
    program
}

fn vxlan(vni: u32) -> Encapsulation {
    Encapsulation::Vxlan { vni: Vni::new(vni).unwrap(), port: 4789 }
}

/// An IPv4 packet in a frame to the carrier's port 1, as the far end sends it.
fn outer(from: [u8; 4], protocol: u8, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = mac(CARRIER, 1).0.to_vec();
    let total = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    bytes.extend([2, 9, 9, 9, 9, 9, 8, 0, 0x45, ecn, total[0], total[1], 0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend(from);
    bytes.extend(LOCAL);
    let sum = checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn datagram(flags: u8, vni: u8, frame: &[u8]) -> Vec<u8> {
    let length = u16::try_from(16 + frame.len()).unwrap().to_be_bytes();
    let mut bytes = vec![0xc0, 1, 0x12, 0xb5, length[0], length[1], 0, 0, flags, 0, 0, 0, 0, 0, vni, 0];
    bytes.extend(frame);
    bytes
}

fn taken(world: &World, port: usize) -> Vec<u8> {
    let mut frame = None;
    until("a frame", || {
        frame = world.wires[port].take();
        frame.is_some()
    });
    frame.unwrap()
}

/// All numbers hold: nothing is lost without a reason.
fn sums(world: &World) {
    for id in [1, 2, CARRIER] {
        until("the sums", || {
            let totals = world.totals(id);
            totals.waiting_packets + totals.crossing_packets == 0 && totals.check().is_ok()
        });
    }
}

fn both(workers: usize) -> World {
    world(workers, &[passenger(1, Encapsulation::Ipip), passenger(2, vxlan(7)), program(CARRIER)])
}

#[test]
fn packets_of_ip_in_ip_go_out_and_come_in() {
    for workers in [1, 2] {
        let world = both(workers);
        world.feed(0, &packet(mac(1, 0), [10, 2, 0, 5]));
        let sent = taken(&world, 1);
        // The neighbour of the carrier, RFC 2003: TTL 64, do not fragment, protocol 4.
        assert_eq!(sent[..12], [[2, 0xaa, 0, 0, 3, 1], mac(CARRIER, 1).0].concat());
        assert_eq!(sent[12..24], [8, 0, 0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 4]);
        assert_eq!(checksum::full(&sent[14..34]), 0);
        assert_eq!(sent[26..34], [LOCAL, REMOTE].concat());
        assert_eq!((sent.len(), sent[34], sent[42], &sent[50..54]), (66, 0x45, 63, &[10, 2, 0, 5][..]));

        let inner = packet(mac(9, 9), [10, 9, 9, 9])[14..].to_vec();
        world.feed(1, &outer(REMOTE, 4, 0, &inner));
        let arrived = taken(&world, 1);
        assert_eq!(arrived[..6], [2, 0xaa, 0, 0, 1, 1], "the neighbour of the network with the tunnel");
        assert_eq!((arrived.len(), arrived[22], &arrived[30..34]), (46, 63, &[10, 9, 9, 9][..]));
        sums(&world);
        let (passenger, carrier) = (world.totals(1), world.totals(CARRIER));
        assert_eq!((passenger.ports[2].received_packets, passenger.ports[2].sent_packets), (1, 1));
        assert_eq!((carrier.to_tunnel_packets, carrier.to_control_packets), (1, 0));
        assert_eq!(world.totals(2).received_packets(), 0);
    }
}

#[test]
fn frames_of_vxlan_go_out_and_come_in() {
    for workers in [1, 2] {
        let world = both(workers);
        // Network 2 has 10.0.0.0/8 by its third port.
        world.feed(0, &packet(mac(2, 0), [10, 7, 0, 5]));
        let sent = taken(&world, 1);
        assert_eq!(sent[14..24], [0x45, 0, 0, 82, 0, 0, 0x40, 0, 64, 17]);
        assert!(u16::from_be_bytes([sent[34], sent[35]]) >= 49_152);
        assert_eq!(sent[36..50], [0x12, 0xb5, 0, 62, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
        assert_eq!(sent[50..62], [IPIP_PEER.0, mac(2, 2).0].concat());
        assert_eq!((sent.len(), sent[62 + 2 + 8]), (96, 63));

        let inner = packet(mac(2, 2), [10, 2, 9, 9]);
        world.feed(1, &outer(REMOTE, 17, 0, &datagram(8, 7, &inner)));
        // 10.2.0.0/16 leaves network 2 by port 0.
        let arrived = taken(&world, 0);
        assert_eq!((&arrived[..6], arrived.len()), (&[2, 0xaa, 0, 0, 2, 0][..], 46));
        sums(&world);
        assert_eq!(world.totals(1).received_packets(), 0);
    }
}

/// Packets to the carrier's port 1 that belong to no tunnel, and why.
fn hostile() -> Vec<(Vec<u8>, Loss)> {
    let inner = packet(mac(2, 2), [10, 2, 9, 9]);
    let ip = &inner[14..];
    let mut fragment = outer(REMOTE, 4, 0, ip);
    fragment[20] = 0x20;
    let sum = [24, 25].map(|at| std::mem::take(&mut fragment[at]));
    assert_ne!(sum, [0, 0]);
    let sum = checksum::full(&fragment[14..34]).to_be_bytes();
    fragment[24..26].copy_from_slice(&sum);
    // Three options of no operation and the end of options.
    let mut options = outer(REMOTE, 4, 0, &[&[1, 1, 1, 0], ip].concat());
    options[14] = 0x46;
    options[24..26].fill(0);
    let sum = checksum::full(&options[14..38]).to_be_bytes();
    options[24..26].copy_from_slice(&sum);
    let mut wrong_sum = datagram(8, 7, &inner);
    wrong_sum[6..8].copy_from_slice(&[1, 2]);
    let mut long = ip.to_vec();
    long[2..4].copy_from_slice(&[0, 33]);
    vec![
        (outer([10, 2, 0, 8], 4, 0, ip), Loss::TunnelStranger),
        (outer([10, 2, 0, 8], 17, 0, &datagram(8, 7, &inner)), Loss::TunnelStranger),
        (outer(REMOTE, 17, 0, &datagram(8, 6, &inner)), Loss::TunnelStranger),
        (outer(REMOTE, 17, 0, &datagram(8, 7, &packet(mac(2, 1), [10, 2, 9, 9]))), Loss::TunnelStranger),
        (outer(REMOTE, 17, 0, &datagram(0, 7, &inner)), Loss::TunnelHeader),
        (outer(REMOTE, 17, 0, &datagram(8, 7, &inner[..13])), Loss::TunnelHeader),
        (outer(REMOTE, 4, 0, &long), Loss::TunnelHeader),
        (outer(REMOTE, 41, 0, ip), Loss::TunnelHeader),
        (outer(REMOTE, 4, 0, &[]), Loss::TunnelHeader),
        (outer(REMOTE, 4, 3, ip), Loss::TunnelEcn),
        (outer(REMOTE, 17, 0, &wrong_sum), Loss::TunnelChecksum),
        (fragment, Loss::TunnelFragment),
        (options, Loss::TunnelOptions),
    ]
}

#[test]
fn what_belongs_to_no_tunnel_is_counted_and_reaches_nobody() {
    let mut world = both(2);
    let control = world.tap(CARRIER, 1);
    let hostile = hostile();
    for (frame, loss) in &hostile {
        let before = world.totals(CARRIER).losses.get(*loss);
        world.feed(1, frame);
        until(loss.name(), || world.totals(CARRIER).losses.get(*loss) == before + 1);
    }
    // Reserved bits are ignored (RFC 7348), and other packets for the router itself go to its control plane.
    let inner = packet(mac(2, 2), [10, 2, 9, 9]);
    world.feed(1, &outer(REMOTE, 17, 0, &datagram(0xff, 7, &inner)));
    taken(&world, 0);
    world.feed(1, &outer(REMOTE, 17, 0, &[0xc0, 1, 0, 53, 0, 8, 0, 0]));
    until("a punt", || control.take().is_some());
    sums(&world);
    assert_eq!((world.totals(1).received_packets(), world.totals(2).received_packets()), (0, 1));
    assert_eq!(world.totals(CARRIER).received_packets(), hostile.len() as u64 + 2);
}

/// Two networks share a tunnel by the addresses inside. The destination of the packet that comes out says whose it is, whatever that
/// packet carries: otherwise a host of one could send into the other.
#[test]
fn a_shared_tunnel_leads_to_the_network_of_the_inner_destination() {
    const PREFIXES: [&str; 2] = ["10.1.0.0/16", "10.2.0.0/16"];
    let sharing = |id: u16| {
        let mut program = passenger(id, Encapsulation::Ipip);
        let prefix = PREFIXES[usize::from(id - 1)].parse().unwrap();
        program.rows[2].select = Match::Inner { port: Some(program.ports[2].port), prefix };
        program
    };
    let ip = |to: [u8; 4], protocol: u8, payload: &[u8]| {
        let mut packet = outer(REMOTE, protocol, 0, payload)[14..].to_vec();
        packet[16..20].copy_from_slice(&to);
        packet[10..12].fill(0);
        let sum = checksum::full(&packet[..20]).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        packet
    };
    let (red, blue, neither) = ([10, 1, 0, 5], [10, 2, 0, 5], [10, 9, 0, 5]);
    let to_blue = ip(blue, 17, &[0, 7, 0, 9, 0, 8, 0, 0]);
    let nested = datagram(8, 7, &[&[2; 12][..], &[8, 0], &to_blue].concat());
    for workers in [1, 2] {
        let world = world(workers, &[sharing(1), sharing(2), program(CARRIER)]);
        let mut received = [0, 0];
        for (packet, to) in [
            (to_blue.clone(), Some(1)),
            (ip(red, 17, &[0, 7, 0, 9, 0, 8, 0, 0]), Some(0)),
            (ip(red, 4, &to_blue), Some(0)),
            (ip(red, 17, &nested), Some(0)),
            (ip(neither, 4, &to_blue), None),
            (ip(neither, 17, &nested), None),
        ] {
            let strangers = world.totals(CARRIER).losses.get(Loss::TunnelStranger);
            world.feed(1, &outer(REMOTE, 4, 0, &packet));
            match to {
                Some(network) => received[network] += 1,
                None => until("a stranger", || {
                    world.totals(CARRIER).losses.get(Loss::TunnelStranger) == strangers + 1
                }),
            }
            sums(&world);
            until("the packet", || [1, 2].map(|id| world.totals(id).received_packets()) == received);
        }
    }
}

#[test]
fn a_tunnel_without_its_carrier_is_down() {
    let mut world = both(2);
    world.live.unload(&[vid(CARRIER)]).unwrap();
    world.feed(0, &packet(mac(1, 0), [10, 2, 0, 5]));
    until("the loss", || world.totals(1).losses.get(Loss::PortDown) == 1);
    world.live.load(&[program(CARRIER)]).unwrap();
    world.feed(0, &packet(mac(1, 0), [10, 2, 0, 5]));
    assert_eq!(taken(&world, 1).len(), 66);
    // What is no IP packet does not enter a tunnel for those.
    let mut arp = packet(mac(1, 2), [10, 2, 0, 5]);
    arp[6..14].copy_from_slice(&[mac(1, 2).0.as_slice(), &[8, 6]].concat());
    let control = world.tap(1, 2);
    assert!(control.feed(&arp));
    until("the loss", || world.totals(1).losses.get(Loss::TunnelNotIp) == 1);
    sums_of(&world, &[1, CARRIER]);
}

/// Packets enter the carrier at the virtual port that has the near address, and stay there when ports change.
#[test]
fn the_near_end_follows_its_address() {
    let mut world = both(1);
    let sends = |world: &World, expected: [u64; 3]| {
        world.feed(0, &packet(mac(1, 0), [10, 2, 0, 5]));
        taken(world, 1);
        until("the packet to be counted", || {
            let ports = world.totals(CARRIER).ports;
            ports.iter().map(|port| port.received_packets).eq(expected)
        });
    };
    sends(&world, [1, 0, 0]);
    world.live.set_addresses(vid(CARRIER), &[(0, [10, 9, 0, 1], 16), (2, LOCAL, 8)]);
    sends(&world, [1, 0, 1]);
    world.live.remove_port(PortId::new(2));
    sends(&world, [1, 0, 2]);
    world.live.set_addresses(vid(CARRIER), &[(1, LOCAL, 8)]);
    sends(&world, [1, 1, 2]);
    // A carrier that is loaded again has no addresses until they are set.
    world.live.unload(&[vid(CARRIER)]).unwrap();
    world.live.load(&[program(CARRIER)]).unwrap();
    sends(&world, [1, 0, 0]);
}

fn sums_of(world: &World, ids: &[u16]) {
    for id in ids {
        until("the sums", || world.totals(*id).check().is_ok());
    }
}

/// What left by ports offline.
fn run_offline(soft: &mut Soft, port: u8, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let (mut batch, mut left) = (Batch::new(), Vec::new());
    assert!(batch.push(PortId::new(port), 0, frame));
    soft.run(&mut batch, |output| {
        if let Fate::Network { outcome, egress, .. } = output.fate
            && outcome.is_forward()
            && output.after == After::Verdict
        {
            left.push((egress.index(), output.bytes.to_vec()));
        }
    });
    left
}

#[test]
fn offline_has_the_bytes_outcomes_and_losses_of_a_running_system() {
    let world = both(1);
    let mut soft = soft();
    soft.load(&[passenger(1, Encapsulation::Ipip), passenger(2, vxlan(7)), program(CARRIER)]).unwrap();
    soft.join_tunnels(|_, _| None);
    let mut frames = vec![
        (0, packet(mac(1, 0), [10, 2, 0, 5])),
        (0, packet(mac(2, 0), [10, 7, 0, 5])),
        (1, outer(REMOTE, 4, 0, &packet(mac(9, 9), [10, 9, 9, 9])[14..])),
        // It comes by the tunnel and leaves by it.
        (1, outer(REMOTE, 4, 0, &packet(mac(9, 9), [10, 2, 9, 9])[14..])),
        (1, outer(REMOTE, 17, 0, &datagram(8, 7, &packet(mac(2, 2), [10, 2, 9, 9])))),
        (1, outer(REMOTE, 17, 0, &[0xc0, 1, 0, 53, 0, 8, 0, 0])),
    ];
    frames.extend(hostile().into_iter().map(|(frame, _)| (1, frame)));
    let mut forwarded = 0;
    for (port, frame) in frames {
        world.feed(port, &frame);
        for (port, bytes) in run_offline(&mut soft, port, &frame) {
            assert_eq!(taken(&world, port), bytes);
            forwarded += 1;
        }
        for id in [1, 2, CARRIER] {
            let counts = soft.tunnel_counts(vid(id));
            until("the same counters", || {
                let totals = world.totals(id);
                Some(totals.outcomes) == soft.counters(vid(id))
                    && totals.to_tunnel_packets == counts.to_tunnels
                    && Loss::ALL.iter().all(|loss| {
                        *loss == Loss::ControlAbsent || totals.losses.get(*loss) == counts.losses.get(*loss)
                    })
            });
        }
    }
    assert_eq!(forwarded, 5);
}

/// A switch with a port of the node and two tunnels, which lead to the other one.
fn in_a_circle(id: u16, first: u8, [local, remote]: [[u8; 4]; 2]) -> Program {
    let mut program = switch(id, first, 3, l2::Settings::default(), &[]);
    for at in 1..3 {
        let port = PortId::tunnel(at as u8 - 1).unwrap();
        let tunnel = Tunnel {
            over: vid(CARRIER),
            encapsulation: vxlan(at as u32),
            local: local.into(),
            remote: remote.into(),
            ttl: 64,
            dscp: Dscp::Inherit,
        };
        program.ports[at].port = port;
        program.ports[at].tunnel = Some(tunnel);
        program.rows[at].select = Match::Port(port);
        program.next_hops[at] = Adjacency::out(port, 1500);
    }
    program
}

/// Documents cannot say this, programs can.
#[test]
fn a_flood_in_a_circle_ends_offline() {
    let ends = [LOCAL, [10, 0, 0, 2]];
    let mut carrier = program(CARRIER);
    let Entries::Lpm32(routes) = &mut carrier.entries else { unreachable!("a network of IPv4") };
    routes.retain(|(prefix, _)| prefix.len() < 32);
    routes.extend(ends.map(|end| (Prefix4::containing(u32::from_be_bytes(end), 32), hop(0))));
    let mut soft = soft();
    soft.load(&[in_a_circle(1, 10, ends), in_a_circle(2, 20, [ends[1], ends[0]]), carrier]).unwrap();
    soft.join_tunnels(|_, _| None);
    let frame = frame(Mac([0xff; 6]), host(1), 60);
    let left = run_offline(&mut soft, 10, &frame);
    assert!(!left.is_empty() && left.iter().all(|(_, bytes)| *bytes == frame), "{}", left.len());
    let counts = [1, 2, CARRIER].map(|id| soft.tunnel_counts(vid(id)));
    let lost: u64 = counts.iter().map(|counts| counts.losses.get(Loss::QueueFull)).sum();
    let carried = soft.counters(vid(CARRIER)).unwrap();
    // Every passage is one of the carrier's packets, or a packet that it gave to a network, or lost.
    assert_eq!((carried.received() + counts[2].to_tunnels) as usize, PASSAGES_MAX);
    assert_eq!(lost, 2, "both ways around");
}
