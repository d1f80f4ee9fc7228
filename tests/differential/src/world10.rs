//! Networks and frames of kind `mpls` in a random world.

use hue_planes::Adjacency;
use hue_planes::mpls::{Settings, Ttl, label_of, pattern_of};
use hue_substrate::{Entries, Program};
use hue_tables::{NextHop, Pattern};
use hue_wire::Mac;
use hue_wire::mpls::{Entry, LABEL_MAX};

use crate::Random;
use crate::world2::{limit, take_ports};

/// How many labels networks have: up to those that one on a card may have.
const ENTRIES: [usize; 6] = [0, 4, 9, 17, 63, 64];

/// Makes a network one of this kind on these ports, each of them whole. Its entries swap labels, as those on a card do.
pub(crate) fn turn(program: &mut Program, ports: &[usize], random: &mut Random) {
    let mtu_bytes = random.pick(&[1500, 1500, 68, 600, 9202]);
    take_ports(program, ports, 0xca, mtu_bytes);
    let mut hops = vec![Adjacency::drop(), Adjacency::local()];
    let first = hops.len();
    for port in &program.ports {
        for last in 0..2 {
            let neighbour = Mac([2, 0xca, 1, 0, 0, last]);
            hops.push(Adjacency::out_with(port.port, mtu_bytes, Some(neighbour), Some(port.mac)));
        }
    }
    let ways = hops.len() - first;
    let mut entries: Vec<(Pattern, NextHop)> = Vec::new();
    for _ in 0..random.pick(&ENTRIES) {
        let pattern = pattern_of(label(random).max(16));
        let row = match random.below(6) {
            row @ 0..2 => row,
            _ => {
                let way = (first + random.below(ways)) as u16;
                hops.push(Adjacency::labels(&[label(random)], way).unwrap());
                hops.len() - 1
            }
        };
        if entries.iter().all(|(other, _)| *other != pattern) {
            entries.push((pattern, NextHop::new(row as u16).unwrap()));
        }
    }
    program.entries = Entries::Ternary(entries);
    program.next_hops = hops;
    program.settings = hue_planes::Settings::Mpls(Settings { ttl: random.pick(&Ttl::ALL) });
    limit(program, 30, random);
}

/// A label: one of few, or any. Some have a special purpose.
fn label(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => random.pick(&[0, 1, 2, 3, 14, 15]),
        1 => LABEL_MAX - random.below(3) as u32,
        2 => random.word() as u32 & LABEL_MAX,
        _ => 16 + random.below(24) as u32,
    }
}

/// A frame with a stack of labels above a payload; some have no bottom within the depth that is looked at, or within the frame.
pub(crate) fn frame(random: &mut Random, program: &Program, payload: &[u8]) -> Vec<u8> {
    let own = program.entries.patterns();
    let group = u8::from(random.chance(3));
    let mut frame = vec![2 | group, 0xca, 0, 0, 0, 7, 2, 0xca, 1, 0, 0, random.below(3) as u8];
    frame.extend(random.pick(&[[0x88, 0x47], [0x88, 0x47], [0x88, 0x47], [0x88, 0x47], [0x88, 0x48]]));
    let depth = match random.below(8) {
        0 => 15 + random.below(4),
        1 => 2 + random.below(3),
        _ => 1,
    };
    let has_bottom = random.chance(90);
    for at in 0..depth {
        let bottom = has_bottom && at + 1 == depth;
        let ttl = random.pick(&[0, 1, 2, 3, 64, 64, 64, 255]);
        let label = match own.len() {
            count @ 1.. if random.chance(60) => label_of(own[random.below(count)].0.value()),
            _ => label(random),
        };
        frame.extend(Entry { label, class: random.below(8) as u8, bottom, ttl }.to_bytes());
    }
    // Without a bottom, nothing behind the stack looks like one.
    frame.extend(payload.iter().map(|byte| if has_bottom { *byte } else { byte & 0xfe }));
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The same network with the entries that swap a label, drop or punt, which are those that a card has.
pub(crate) fn swapping(program: &Program) -> Program {
    let is_plain = |hop: &NextHop| {
        let row = &program.next_hops[usize::from(hop.get())];
        *row == Adjacency::drop() || *row == Adjacency::local() || row.label_count() == 1
    };
    let entries = program.entries.patterns().iter().filter(|(_, hop)| is_plain(hop)).copied().collect();
    Program { entries: Entries::Ternary(entries), ..program.clone() }
}
