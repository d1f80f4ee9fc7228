//! Networks and frames of kind `extract` in a random world.

use hue_planes::extract::{LANES_MAX, Lane, OFFSET_MAX};
use hue_planes::{Adjacency, Settings, extract};
use hue_substrate::{Entries, Program};
use hue_tables::{NextHop, Pattern};
use hue_wire::Mac;

use crate::Random;
use crate::world2::{limit, take_ports};

/// How many entries networks have: up to those that one on a card may have.
const ENTRIES: [usize; 6] = [0, 1, 5, 17, 63, 64];

/// Makes a network one of this kind on these ports, each of them whole.
pub(crate) fn turn(program: &mut Program, ports: &[usize], random: &mut Random) {
    let mtu_bytes = random.pick(&[1500, 1500, 68, 600, 9202]);
    take_ports(program, ports, 0xcd, mtu_bytes);
    let mut hops = vec![Adjacency::drop(), Adjacency::local()];
    for port in &program.ports {
        let mac = |random: &mut Random, last| random.chance(50).then_some(Mac([2, 0xce, 0, 0, 0, last]));
        for _ in 0..2 {
            hops.push(Adjacency::out_with(port.port, mtu_bytes, mac(random, 1), mac(random, 2)));
        }
    }
    let lanes = lanes(random);
    let settings = extract::Settings::new(&lanes).unwrap();
    let count = random.pick(&ENTRIES);
    let masks: Vec<u128> = (0..1 + random.below(6)).map(|_| mask(&settings, random)).collect();
    // Few values, so that entries contain each other and frames meet several.
    let entry = |random: &mut Random| {
        let value = (0..16).fold(0u128, |value, _| value << 8 | u128::from(random.pick(&[0u8, 1, 8, 0xa5])));
        let hop = NextHop::new(random.below(hops.len()) as u16).unwrap();
        (Pattern::new(value, random.pick(&masks)), hop)
    };
    let mut entries: Vec<(Pattern, NextHop)> = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = entry(random);
        if entries.iter().all(|(pattern, _)| *pattern != entry.0) {
            entries.push(entry);
        }
    }
    program.entries = Entries::Ternary(entries);
    program.next_hops = hops;
    program.settings = Settings::Extract(settings);
    limit(program, 40, random);
}

fn lanes(random: &mut Random) -> Vec<Lane> {
    let count = random.pick(&[1, 2, 4, 8, LANES_MAX]);
    let mut lanes: Vec<Lane> = Vec::with_capacity(count);
    while lanes.len() < count {
        let offset = match random.below(3) {
            0 => random.below(14) as u8,
            1 => 60 + random.below(8) as u8,
            _ => random.below(usize::from(OFFSET_MAX) + 1) as u8,
        };
        // Most frames are short.
        let offset = if random.chance(70) { offset % 64 } else { offset };
        if lanes.iter().all(|lane| lane.offset != offset) {
            lanes.push(Lane { offset, mask: random.pick(&[0xff, 0xff, 0x0f, 0xf0, 0x81, 0x01]) });
        }
    }
    lanes
}

/// Some bits of the key: whole lanes, a prefix, or any.
fn mask(settings: &extract::Settings, random: &mut Random) -> u128 {
    match random.below(4) {
        0 => settings.mask(),
        1 => settings.prefix_mask(random.below(129) as u32),
        2 => settings.mask() & (u128::MAX << (8 * random.below(16))),
        _ => settings.mask() & (u128::from(random.word()) << 64 | u128::from(random.word())),
    }
}

/// A frame with the bits of one of the network's entries, or any frame; some end within the key.
pub(crate) fn frame(random: &mut Random, program: &Program, filler: &[u8]) -> Vec<u8> {
    let Settings::Extract(settings) = &program.settings else { return filler.to_vec() };
    let ethertype = random.pick(&[[8, 0], [8, 6], [0x86, 0xdd], [0x81, 0], [0x88, 0xa8], [0, 60]]);
    let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, random.below(3) as u8]].concat();
    let mut frame = [&macs[..], &ethertype, filler].concat();
    if random.chance(25) {
        // About as long as the MTU, with a tag or without.
        let mtu = random.pick(&[68, 600, 1500]);
        frame.resize(14 + mtu - 1 + random.below(7), 0x5a);
    }
    if random.chance(30) {
        frame.resize(60 + random.below(72), 0);
    }
    let patterns = program.entries.patterns();
    if !patterns.is_empty() && random.chance(85) {
        let (pattern, _) = patterns[random.below(patterns.len())];
        let (value, mask) = (pattern.value().to_be_bytes(), pattern.mask().to_be_bytes());
        for ((lane, value), mask) in settings.lanes().zip(value).zip(mask) {
            if let Some(byte) = frame.get_mut(usize::from(lane.offset)) {
                *byte = *byte & !mask | value;
            }
        }
        // Almost.
        if random.chance(15) {
            let lane = settings.lanes().nth(random.below(settings.bytes())).unwrap();
            if let Some(byte) = frame.get_mut(usize::from(lane.offset)) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
    if random.chance(12) {
        let reach = settings.lanes().map(|lane| usize::from(lane.offset) + 1).max().unwrap_or(1);
        frame.truncate((reach + 1 - random.below(3)).max(14));
    }
    frame
}
