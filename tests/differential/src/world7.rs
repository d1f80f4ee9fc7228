//! Networks and frames of kind `rofl` in a random world.

use hue_planes::Adjacency;
use hue_planes::rofl::Settings;
use hue_substrate::{Entries, Program};
use hue_tables::NextHop;
use hue_wire::Mac;
use hue_wire::rofl::{FLAG_CLOSEST, FLAG_LINK};

use crate::Random;
use crate::world2::{limit, take_ports};

/// How many labels networks have.
const LABELS: [usize; 6] = [0, 1, 2, 7, 30, 60];

/// Makes a network one of this kind on these ports, each of them whole.
pub(crate) fn turn(program: &mut Program, ports: &[usize], random: &mut Random) {
    let mtu_bytes = random.pick(&[1500, 1500, 256, 600, 9202]);
    take_ports(program, ports, 0xcf, mtu_bytes);
    let mut hops: Vec<Adjacency> = program.ports.iter().map(hue_substrate::VirtualPort::arrival).collect();
    let first = hops.len();
    hops.push(Adjacency::local());
    for port in &program.ports {
        for last in 0..2 {
            hops.push(Adjacency::forward(port.port, port.mac, neighbour(last), mtu_bytes));
        }
        hops.push(Adjacency::out_with(port.port, mtu_bytes, Some(neighbour(2)), Some(port.mac)));
    }
    let settings = Settings::new(random.pick(&[32, 32, 40, 64, 128, 128]), 0, 60).unwrap();
    let mut labels: Vec<(u128, NextHop)> = Vec::new();
    for _ in 0..random.pick(&LABELS) {
        let label = label(random, settings);
        let hop = NextHop::new((first + random.below(hops.len() - first)) as u16).unwrap();
        if labels.iter().all(|(other, _)| *other != label) {
            labels.push((label, hop));
        }
    }
    program.entries = Entries::Nearest(labels);
    program.next_hops = hops;
    program.settings = hue_planes::Settings::Rofl(settings);
    limit(program, 30, random);
}

fn neighbour(last: u8) -> Mac {
    Mac([2, 0xcf, 1, 0, 0, last])
}

/// A label: anywhere, at the ends of the space, or close to others.
fn label(random: &mut Random, settings: Settings) -> u128 {
    let any = u128::from(random.word()) << 64 | u128::from(random.word());
    let low = 128 - u32::from(settings.label_bits());
    let label = match random.below(5) {
        0 => (random.below(4) as u128) << low,
        1 => !0 - ((random.below(4) as u128) << low),
        2 => 0xaa << 120 | (random.below(4) as u128) << low,
        _ => any,
    };
    label >> low << low
}

/// A packet to a label of the network, to one beside it, or to any; some with faults.
pub(crate) fn frame(random: &mut Random, program: &Program, port: usize, filler: &[u8]) -> Vec<u8> {
    let hue_planes::Settings::Rofl(settings) = program.settings else { return filler.to_vec() };
    let size = settings.label_bytes();
    let own = program.ports.iter().find(|own| own.port.index() == port).map(|own| own.mac);
    let destination = match random.below(16) {
        0 => random.pick(&[Mac::BROADCAST, Mac([1, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 9])]),
        _ => own.unwrap_or(neighbour(0)),
    };
    let labels = program.entries.labels();
    let step = 1u128 << (128 - 8 * size);
    let to = match (labels.is_empty(), random.below(8)) {
        (false, 0..=3) => labels[random.below(labels.len())].0,
        (false, 4) => labels[random.below(labels.len())].0.wrapping_add(step),
        (false, 5) => labels[random.below(labels.len())].0.wrapping_sub(step),
        _ => label(random, settings),
    };
    let flags = match random.below(12) {
        0 => FLAG_LINK,
        1 | 2 => FLAG_CLOSEST,
        3 => FLAG_LINK | FLAG_CLOSEST,
        4 => 0xc,
        _ => 0,
    };
    let version = if random.chance(3) { random.below(16) as u8 } else { 1 };
    let bytes = match random.below(24) {
        0 => random.below(20) as u8,
        1 => random.pick(&[0, 0x20 | size as u8, 0xff]),
        _ => size as u8,
    };
    let route = match random.below(24) {
        0 => random.pick(&[5, 6, 8, 12, 255]),
        1..=6 => 1 + random.below(4) as u8,
        _ => 0,
    };
    let budget = random.pick(&[64, 64, 64, 64, 255, 2, 1, 0]);
    let mut payload = filler.to_vec();
    let mtu = program.ports.first().map_or(1500, |port| usize::from(port.mtu_bytes));
    if random.chance(30) && mtu < 2000 {
        // About as long as the MTU.
        let header = 8 + (2 + usize::from(route)) * size;
        payload.resize(mtu.saturating_sub(header + 2) + random.below(5), 0x5a);
    }
    let length = match random.below(24) {
        0 => payload.len() + 1 + random.below(40),
        1 => random.pick(&[0xffff, 0x8000, 0x4000, payload.len() & 0xff]),
        _ => payload.len(),
    } as u16;
    let mut frame =
        [&destination.0[..], &neighbour(random.pick(&[0, 0, 1, 1, 2, 3])).0, &[0x88, 0xb5]].concat();
    frame.extend([version << 4 | flags, bytes, budget, route, 8, 0]);
    frame.extend(length.to_be_bytes());
    for label in [to].into_iter().chain((0..1 + usize::from(route.min(6))).map(|_| label(random, settings))) {
        frame.extend(&label.to_be_bytes()[..size]);
    }
    frame.extend(payload);
    if random.chance(6) {
        let end = if random.chance(40) { 9 } else { 12 + 6 * size };
        frame.truncate(14 + random.below(end));
    } else if random.chance(30) {
        frame.resize(frame.len().max(60), 0);
    }
    frame
}
