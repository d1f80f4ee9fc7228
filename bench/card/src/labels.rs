//! A network of kind `rofl` with random labels behind all ports, and its packets.

use hue_demux::{Match, PortId};
use hue_planes::rofl::Settings;
use hue_planes::{Adjacency, Kind, Settings as PlaneSettings};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::NextHop;
use hue_wire::ethernet;
use hue_wire::rofl::{ETHERTYPE, Packet, ROUTE_MAX};
use zerocopy::IntoBytes;

use crate::kinds::{MTU_BYTES, TTL, host, mac, program};
use crate::networks::PORTS;
use crate::rng::Rng;

/// A network with so many labels of so many bits, behind a router at each port.
pub fn network(bits: u8, labels: usize, rng: &mut Rng) -> Option<Program> {
    let settings = Settings::new(bits, 0, 60).ok()?;
    let ports: Vec<u8> = (0..PORTS).collect();
    let select = |port| Match::Port(PortId::new(port));
    let plain = program(1, Kind::Rofl, &ports, select, Vec::new(), Entries::None)?;
    let routers = plain
        .ports
        .iter()
        .map(|port| Adjacency::forward(port.port, port.mac, host(port.port.get(), 0), MTU_BYTES));
    let next_hops: Vec<Adjacency> = plain.ports.iter().map(VirtualPort::arrival).chain(routers).collect();
    let entry = |number: usize| {
        let row = ports.len() + number % ports.len();
        Some((random(bits, rng), NextHop::new(u16::try_from(row).ok()?)?))
    };
    let mut entries: Vec<_> = (0..labels).map(entry).collect::<Option<_>>()?;
    entries.sort_by_key(|(label, _)| *label);
    entries.dedup_by_key(|(label, _)| *label);
    Some(Program {
        settings: PlaneSettings::Rofl(settings),
        next_hops,
        entries: Entries::Nearest(entries),
        ..plain
    })
}

fn random(bits: u8, rng: &mut Rng) -> u128 {
    let label = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
    label & u128::MAX << (u128::BITS - u32::from(bits))
}

/// A packet to one of the labels, or (not `exact`) to any; from a host that is nobody's next hop.
pub fn frame(of: &Program, port: u8, exact: bool, bytes: usize, rng: &mut Rng) -> Vec<u8> {
    let PlaneSettings::Rofl(settings) = of.settings else { return Vec::new() };
    let labels = of.entries.labels();
    let destination = match exact {
        true => labels[rng.below(labels.len())].0,
        false => random(settings.label_bits(), rng),
    };
    let packet = Packet {
        flags: 0,
        label_bytes: settings.label_bytes(),
        budget: TTL,
        destination,
        source: 0,
        route: [0; ROUTE_MAX],
        route_len: 0,
        payload_type: 0x0800,
        payload: &[],
    };
    let header = ethernet::Header::new(mac(of.vid.get(), port), host(port, 1), ETHERTYPE);
    let mut frame = header.as_bytes().to_vec();
    frame.resize(bytes, 0);
    // The shortest frame has room for two labels of any length.
    let _ = frame.get_mut(ethernet::HEADER_BYTES..).and_then(|rest| packet.write(rest));
    frame
}
