//! Programs and frames for the tests of the engine.

#![allow(dead_code)] // each test binary uses its part

use hue_demux::{Match, PortId, Row};
use hue_planes::ipv4::Adjacency;
use hue_planes::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, Kind, Settings};
use hue_soft::Soft;
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::{Limits, NextHop, Prefix4, Vid};
use hue_wire::Mac;

pub const PORTS: u8 = 3;

pub fn vid(id: u16) -> Vid {
    Vid::new(id).unwrap()
}

pub fn soft() -> Soft {
    Soft::new(Limits::default()).unwrap()
}

pub fn hop(index: u16) -> NextHop {
    NextHop::new(index).unwrap()
}

pub fn prefix(text: &str) -> Prefix4 {
    text.parse().unwrap()
}

/// The router MAC of network `id` on a port.
pub fn mac(id: u16, port: u8) -> Mac {
    let [high, low] = id.to_be_bytes();
    Mac([2, 0, 0, high, low, port])
}

/// A network on ports 0 to 2. Next hops: 0 local, 1 glean on port 1, then one neighbour on each port. Routes use them
/// differently in each network: every network has 10.0.0.0/8, to port `id % 3`.
pub fn program(id: u16) -> Program {
    let ports: Vec<_> = (0..PORTS)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: mac(id, port),
            mtu_bytes: 1500,
            tunnel: None,
        })
        .collect();
    let rows = ports
        .iter()
        .zip(0u16..)
        .map(|(port, vport)| Row {
            vid: vid(id),
            vport,
            select: Match::Mac { port: port.port, mac: port.mac },
        })
        .collect();
    let [high, low] = id.to_be_bytes();
    let neighbours = (0..PORTS).map(|port| {
        Adjacency::forward(PortId::new(port), mac(id, port), Mac([2, 0xaa, 0, high, low, port]), 1500)
    });
    let next_hops =
        [Adjacency::local(), Adjacency::glean(PortId::new(1))].into_iter().chain(neighbours).collect();
    let routes = vec![
        (prefix("10.0.0.0/8"), hop(2 + id % 3)),
        (prefix("10.0.0.1/32"), hop(0)),
        (prefix("10.1.0.0/16"), hop(1)),
        (prefix("10.2.0.0/16"), hop(2 + (id + 1) % 3)),
    ];
    Program {
        vid: vid(id),
        name: format!("net{id}"),
        settings: Settings::of(Kind::Ipv4),
        ports,
        rows,
        next_hops,
        groups: Vec::new(),
        entries: Entries::Lpm32(routes),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// A valid UDP packet of 46 bytes to `address`.
pub fn packet(dst: Mac, address: [u8; 4]) -> Vec<u8> {
    let mut bytes = dst.0.to_vec();
    bytes.extend([2, 9, 9, 9, 9, 9, 8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1]);
    bytes.extend(address);
    bytes.extend([7; 12]);
    let checksum = hue_wire::checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

pub fn is_frame(bytes: &[u8]) -> bool {
    (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes.len())
}
