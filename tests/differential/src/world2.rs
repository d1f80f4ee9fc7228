//! Networks and frames of kind `l2` in a random world.

use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Rate, RateLimit, Settings, l2};
use hue_substrate::{Entries, Program};
use hue_tables::NextHop;
use hue_wire::Mac;

use crate::Random;

/// Makes a network a switch on these ports, each of them whole.
pub(crate) fn turn(program: &mut Program, ports: &[usize], random: &mut Random) {
    let mtu_bytes = random.pick(&[1500, 1500, 68, 600, 9202]);
    take_ports(program, ports, 0xcc, mtu_bytes);
    program.next_hops = program.ports.iter().map(|port| Adjacency::out(port.port, mtu_bytes)).collect();
    let fixed =
        (0..random.below(3)).map(|n| (host(7 - n), NextHop::new(random.below(ports.len()) as u16).unwrap()));
    program.entries = Entries::Exact(fixed.collect());
    let storm_limit = random.chance(60).then(|| packets(random));
    // A world has few switches.
    program.gated |= random.chance(20);
    program.settings = Settings::L2(l2::Settings {
        macs_max: random.pick(&[0, 3, 6, 100, 100, 100]),
        ageing_s: l2::AGEING_SECONDS.min,
        sticky: random.chance(25),
        storm_limit,
    });
}

/// One of eight hosts that all switches have.
fn host(n: usize) -> Mac {
    Mac([2, 0xcc, 0, 0, 0, n as u8])
}

/// A frame from one of the hosts to another one, to a group, or with addresses that no switch forwards. Most hosts stay at their port.
pub(crate) fn frame(random: &mut Random, port: usize, filler: &[u8]) -> Vec<u8> {
    let there = |random: &mut Random| 4 * random.below(2) + port;
    let source = match random.below(24) {
        0 => random.pick(&[Mac([0; 6]), Mac([1, 0, 0, 0, 0, 1]), Mac::BROADCAST]),
        1 | 2 => host(random.below(8)),
        _ => host(there(random)),
    };
    let destination = match random.below(24) {
        0 => Mac::BROADCAST,
        1 => Mac([0x33, 0x33, 0, 0, 0, 1]),
        2 => Mac([1, 0x80, 0xc2, 0, 0, random.below(18) as u8]),
        3 => random.pick(&[Mac([0; 6]), Mac([2, 0xcc, 1, 0, 0, 0]), Mac([0, 0x80, 0xc2, 0, 0, 0])]),
        _ => host(random.below(8)),
    };
    let ethertype = random.pick(&[[8, 0], [8, 6], [0x86, 0xdd], [0x81, 0], [0x88, 0xa8], [0, 60]]);
    let mut frame = [&destination.0[..], &source.0, &ethertype, filler].concat();
    if random.chance(25) {
        // About as long as the MTU, with a tag or without.
        let mtu = random.pick(&[68, 600, 1500]);
        frame.resize(14 + mtu - 1 + random.below(7), 0x5a);
    }
    frame
}

/// A limit of packets.
fn packets(random: &mut Random) -> RateLimit {
    let rate = Rate::new(1 + random.below(20_000) as u64, 1 + random.below(4) as u64).unwrap();
    RateLimit { packets: Some(rate), bits: None }
}

/// Closes the gates of some networks, and limits the rate of so many in a hundred.
pub(crate) fn limit(program: &mut Program, percent: usize, random: &mut Random) {
    program.gated |= random.chance(10);
    if random.chance(percent) {
        program.rate_limit = Some(packets(random));
    }
}

/// Gives a network these ports, each of them whole. `mark` is in their MAC addresses.
pub(crate) fn take_ports(program: &mut Program, ports: &[usize], mark: u8, mtu_bytes: u16) {
    let tag = program.ports[0].mac.0[4];
    let port = |port: &usize| hue_substrate::VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(*port as u8),
        mac: Mac([2, 0, 0, mark, tag, *port as u8]),
        mtu_bytes,
        tunnel: None,
    };
    let row = |(port, vport): (&usize, u16)| Row {
        vid: program.vid,
        vport,
        select: Match::Port(PortId::new(*port as u8)),
    };
    program.rows = ports.iter().zip(0u16..).map(row).collect();
    program.ports = ports.iter().map(port).collect();
}
