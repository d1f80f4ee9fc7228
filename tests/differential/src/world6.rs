//! Networks and frames of kind `ipv6` in a random world, and networks of kind `dual`.

use std::collections::BTreeMap;

use hue_demux::PortId;
use hue_planes::{Adjacency, AdjacencyKind, Kind, Settings};
use hue_substrate::{Entries, Program, RouteKey};
use hue_tables::{Key, NextHop, Prefix, Prefix6};
use hue_wire::Mac;

use crate::Random;

/// 2001:db8::/32.
const DOCUMENTATION: u128 = 0x2001_0db8 << 96;

/// Makes a network without routes one of kind `ipv6`, with at most `count` routes of all lengths.
pub(crate) fn turn(program: &mut Program, k: usize, count: usize, random: &mut Random) {
    program.settings = Settings::of(Kind::Ipv6);
    let min = Kind::Ipv6.limits().mtu_bytes_min;
    program.ports.iter_mut().for_each(|port| port.mtu_bytes = port.mtu_bytes.max(min));
    let mut hops = vec![Adjacency::local()];
    for port in &program.ports {
        hops.push(Adjacency::glean(port.port));
        for host in 0..1 + random.below(3) {
            let neighbour = Mac([2, 0xbb, host as u8, 0, k as u8, port.port.get()]);
            hops.push(Adjacency::forward(port.port, port.mac, neighbour, port.mtu_bytes));
        }
    }
    let hop = |index: usize| NextHop::new(index as u16).unwrap();
    let mut routes: BTreeMap<Prefix6, NextHop> = BTreeMap::new();
    for port in &program.ports {
        routes.insert(Prefix6::containing(subnet(port.port) | 1, 128), hop(0));
    }
    let least = program.ports.len();
    while routes.len() < count.max(least) {
        let len = random
            .pick(&[0, 3, 16, 29, 32, 40, 47, 48, 48, 52, 56, 60, 64, 64, 64, 65, 96, 120, 127, 128, 128]);
        if random.chance(3) && routes.len() > least {
            break;
        }
        routes.insert(Prefix6::containing(destination(random), len), hop(random.below(hops.len())));
    }
    program.next_hops = hops;
    program.entries = Entries::Lpm128(routes.into_iter().collect());
}

/// Makes a network of kind `ipv4` one of kind `dual`, with as many IPv6 routes again. As in the product, row *n* of IPv4 becomes row
/// 2*n*, and that of IPv6 row 2*n* + 1 (ADR 0052).
pub(crate) fn add(program: &mut Program, k: usize, count: usize, random: &mut Random) {
    let Settings::Ipv4(settings) = program.settings else { return };
    let mut six = program.clone();
    turn(&mut six, k, count, random);
    let hops4 = std::mem::take(&mut program.next_hops);
    program.next_hops = vec![Adjacency::local(); 2 * hops4.len().max(six.next_hops.len())];
    let min = Kind::Dual.limits().mtu_bytes_min;
    for (n, hop) in hops4.into_iter().enumerate() {
        program.next_hops[2 * n] = match hop.kind() {
            AdjacencyKind::Forward => {
                Adjacency::forward(hop.port(), hop.src(), hop.dst(), hop.mtu_bytes().max(min))
            }
            _ => hop,
        };
    }
    for (n, hop) in six.next_hops.into_iter().enumerate() {
        program.next_hops[2 * n + 1] = hop;
    }
    fn renamed<K: Key>(routes: &[(Prefix<K>, NextHop)], odd: u16) -> Vec<(Prefix<K>, NextHop)> {
        let renamed = |hop: NextHop| NextHop::new(2 * hop.get() + odd).unwrap();
        routes.iter().map(|(prefix, hop)| (*prefix, renamed(*hop))).collect()
    }
    program.entries =
        Entries::Dual(renamed(program.entries.lpm32(), 0), renamed(u128::routes(&six.entries), 1));
    program.ports = six.ports;
    program.settings = Settings::Dual(settings);
}

fn subnet(port: PortId) -> u128 {
    DOCUMENTATION | u128::from(port.get()) << 64
}

/// An address that routes may be to.
pub(crate) fn destination(random: &mut Random) -> u128 {
    let host = random.pick(&[0, 1, 2, 3, 50, 0xff, 0xffff, 1 << 32, 1 << 63, u128::from(u64::MAX)]);
    let net = random.below(4) as u128;
    match random.below(10) {
        0..=3 => DOCUMENTATION | net << 64 | host,
        4 => DOCUMENTATION | net << 80 | (random.below(3) as u128) << 72 | host,
        5 => 0xfd00 << 112 | net << 104 | host,
        6 => random.pick(&[
            0xff02 << 112 | 5,
            0xff0e << 112 | 1,
            0xfe80 << 112 | 7,
            0xfebf << 112,
            0xfec0 << 112,
        ]),
        7 => random.pick(&[0, 1, 2, u128::MAX, 0xffff << 32 | 0x0a00_0001]),
        8 => net << 125 | host,
        _ => u128::from(random.word()) << 64 | u128::from(random.word()),
    }
}

/// An IPv6 packet with a valid header.
pub(crate) fn packet(random: &mut Random, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x60, random.below(256) as u8, 0, random.below(256) as u8];
    out.extend((payload.len() as u16).to_be_bytes());
    // Hop-by-hop, TCP, UDP, DCCP, SCTP, UDP-Lite, routing, fragment, ICMPv6, destination options, no next header.
    let next_header = random.pick(&[0, 6, 6, 17, 17, 33, 132, 136, 43, 44, 58, 60, 59]);
    out.extend([next_header, random.pick(&[64, 64, 64, 255, 2, 1, 0])]);
    let source = match random.below(20) {
        0 => random.pick(&[0, 1, 2, 0xff02 << 112 | 1, 0xff00 << 112, u128::MAX]),
        1 => random.pick(&[0xfe80 << 112 | 9, 0xfebf << 112 | 9, 0xfec0 << 112 | 9]),
        _ => DOCUMENTATION | (random.below(3) as u128) << 64 | random.below(256) as u128,
    };
    out.extend(source.to_be_bytes());
    out.extend(destination(random).to_be_bytes());
    out.extend(payload);
    out
}

/// Adds faults of each kind of the IPv6 header sometimes.
pub(crate) fn damage(random: &mut Random, frame: &mut Vec<u8>) {
    match random.below(28) {
        0 => frame.truncate(14 + random.below(41)),
        1 => frame[14] = random.pick(&[0x40, 0x50, 0x70, 0xe0]) | random.below(16) as u8,
        2 => frame[19] = frame[19].wrapping_add(1 + random.below(3) as u8),
        3 => frame[18] = random.word() as u8,
        4 => {
            // A jumbogram's length (RFC 2675), with and without its header.
            (frame[18], frame[19]) = (0, 0);
            frame[20] = random.pick(&[0, 0, 17]);
        }
        _ => {}
    }
}
