//! A network of kind `mpls` behind all ports, and its packets.

use hue_demux::{Match, PortId};
use hue_planes::mpls::pattern_of;
use hue_planes::{Adjacency, Kind};
use hue_substrate::{Entries, Program};
use hue_tables::NextHop;
use hue_wire::ethernet::{self, EtherType};
use hue_wire::mpls::{Entry, LABEL_MIN};
use zerocopy::IntoBytes;

use crate::kinds::{MTU_BYTES, TTL, host, mac, program};
use crate::networks::PORTS;

/// A network with so many labels. Packets have the last ones, which lead to one port each; no packet has those before.
pub fn network(labels: u16) -> Option<Program> {
    let ports: Vec<u8> = (0..PORTS).collect();
    let way = |&port: &u8| {
        let (to, from) = (Some(host(port, 0)), Some(mac(1, port)));
        Adjacency::out_with(PortId::new(port), MTU_BYTES, to, from)
    };
    let swap = |port: &u8| Adjacency::labels(&[label(*port)], u16::from(*port));
    let swaps = ports.iter().map(swap).collect::<Option<Vec<_>>>()?;
    let hops: Vec<Adjacency> = ports.iter().map(way).chain(swaps).collect();
    let row = |port: u8| NextHop::new(u16::from(PORTS) + u16::from(port));
    let others = (0..labels.saturating_sub(PORTS.into()))
        .map(|number| Some((pattern_of(label(PORTS) + u32::from(number)), row(0)?)));
    let used = ports.iter().map(|&port| Some((pattern_of(label(port)), row((port + 1) % PORTS)?)));
    let entries = others.chain(used).collect::<Option<_>>()?;
    let select = |port| Match::Port(PortId::new(port));
    program(1, Kind::Mpls, &ports, select, hops, Entries::Ternary(entries))
}

/// The label of packets that arrive at a port.
const fn label(port: u8) -> u32 {
    LABEL_MIN + port as u32
}

/// A packet that arrives at a port, without padding.
pub fn frame(port: u8) -> Vec<u8> {
    let mut bytes = ethernet::Header::new(mac(1, port), host(port, 1), EtherType::MPLS).as_bytes().to_vec();
    bytes.extend(Entry { label: label(port), class: 0, bottom: true, ttl: TTL }.to_bytes());
    bytes
}
