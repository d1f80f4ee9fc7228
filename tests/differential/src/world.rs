//! Random networks and frames: valid frames, frames that violate one rule each, and noise.

use std::collections::BTreeMap;

use hue_demux::{Match, PortId, Row};
use hue_planes::ipv4::Adjacency;
use hue_planes::splice::SHIM_PROTOCOL;
use hue_planes::{Kind, Rate, RateLimit, Settings, ipv4};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::dir::{Dir, DirLimits};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::{Mac, checksum};

use crate::{Random, world2, world5, world6, world7, world9, world10};

/// A frame to be offered.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Port on which it arrives.
    pub port: PortId,
    /// Time of its arrival, nanoseconds; rises from frame to frame.
    pub time_ns: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

const PORTS: usize = 4;

fn mac(network: usize, port: usize) -> Mac {
    Mac([2, 0, 0, 0, network as u8, port as u8])
}

fn ip(a: u32, b: u32, c: u32, d: u32) -> u32 {
    a << 24 | b << 16 | c << 8 | d
}

/// `count` networks whose addresses overlap on purpose, with at most `routes` routes each.
pub fn programs(random: &mut Random, count: usize, routes: usize) -> Vec<Program> {
    // One network may have whole ports, and each inner prefix belongs to one network.
    let with_port = random.below(count * 2);
    let with_inner = random.below(count * 2);
    (0..count)
        .map(|k| {
            let on: Vec<usize> = (0..PORTS).filter(|port| random.chance(70) || *port == k % PORTS).collect();
            let mut program = bare(k, &on, random);
            if k == with_port {
                // In addition to its MAC rows: frames for other addresses on its ports belong to it.
                let all = on.iter().zip(0u16..).filter(|_| random.chance(60));
                program.rows.extend(all.map(|(port, vport)| Row {
                    vid: program.vid,
                    vport,
                    select: Match::Port(PortId::new(*port as u8)),
                }));
            }
            if k == with_inner {
                inner_rows(&mut program, &on, random);
            }
            fill_routes(&mut program, k, &on, routes, random);
            program
        })
        .collect()
}

/// The same for an image with these kinds: each network has one of them.
pub fn mixed(random: &mut Random, kinds: &[Kind], count: usize, routes: usize) -> Vec<Program> {
    let mut programs = programs(random, count, routes);
    if kinds.contains(&Kind::Ipv6) {
        for (k, program) in programs.iter_mut().enumerate() {
            if kinds.contains(&Kind::Dual) && random.chance(40) {
                world6::add(program, k, routes, random);
            } else if random.chance(50) {
                world6::turn(program, k, routes, random);
            }
        }
    }
    if kinds.contains(&Kind::Splice) {
        for program in programs.iter_mut().filter(|program| program.kind() == Kind::Ipv4) {
            if random.chance(50) {
                world9::turn(program, random);
            }
        }
    }
    if kinds.contains(&Kind::L2) && random.chance(70) {
        whole_ports(random, kinds, &mut programs);
    }
    programs
}

/// Makes some networks switches, or networks that forward by any bits, by labels or to the closest label. They have whole ports, which no other
/// network has.
fn whole_ports(random: &mut Random, kinds: &[Kind], programs: &mut [Program]) {
    let mut ports: Vec<usize> = (0..PORTS).filter(|_| random.chance(85)).collect();
    let mut count = 1 + random.below(2);
    for program in programs.iter_mut() {
        program.rows.retain(|row| !matches!(row.select, Match::Port(port) if ports.contains(&port.index())));
    }
    let all = programs.len();
    for program in programs.iter_mut() {
        let size = if count > 1 { ports.len() / 2 } else { ports.len() };
        // A flood by a single port leaves nothing that the two sides could compare.
        if size < 2 || count == 0 || !(random.chance(60) || all == 1) {
            continue;
        }
        let own: Vec<usize> = ports.drain(..size).collect();
        match one_with_whole_ports(random, kinds) {
            Kind::Extract => world5::turn(program, &own, random),
            Kind::Rofl => world7::turn(program, &own, random),
            Kind::Mpls => world10::turn(program, &own, random),
            _ => world2::turn(program, &own, random),
        }
        count -= 1;
    }
}

/// A kind whose networks have whole ports: `l2`, or another one of these. One other is there for its own sake, so it is chosen more often.
fn one_with_whole_ports(random: &mut Random, kinds: &[Kind]) -> Kind {
    let others = [Kind::Extract, Kind::Rofl, Kind::Mpls].into_iter().filter(|kind| kinds.contains(kind));
    match others.collect::<Vec<_>>()[..] {
        [] => Kind::L2,
        [other] if random.chance(75) => other,
        [_] => Kind::L2,
        ref others => others.get(random.below(others.len() + 1)).copied().unwrap_or(Kind::L2),
    }
}

fn bare(k: usize, on: &[usize], random: &mut Random) -> Program {
    // Ids that differ from the indices.
    let vid = Vid::new((k as u16 * 37) % 4000 + 3).unwrap();
    let ports: Vec<VirtualPort> = on
        .iter()
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(*port as u8),
            mac: mac(k, *port),
            mtu_bytes: random.pick(&[1500, 1500, 1500, 600, 68, 9202]),
            tunnel: None,
        })
        .collect();
    let row = |(port, vport): (&VirtualPort, u16)| Row {
        vid,
        vport,
        select: Match::Mac { port: port.port, mac: port.mac },
    };
    let rows = ports.iter().zip(0u16..).map(row).collect();
    let rate_limit = random.chance(30).then(|| {
        let rate = |per: usize, burst: usize| Rate::new(1 + per as u64, 1 + burst as u64).unwrap();
        let both = random.below(3);
        RateLimit {
            packets: (both != 1).then(|| rate(random.below(2_000_000), random.below(6))),
            bits: (both != 0).then(|| rate(random.below(2_000_000_000), random.below(100_000))),
        }
    });
    Program {
        vid,
        name: format!("net{k}"),
        settings: Settings::Ipv4(ipv4::Settings { forward_martians: random.chance(25) }),
        ports,
        rows,
        next_hops: Vec::new(),
        groups: Vec::new(),
        entries: Entries::Lpm32(Vec::new()),
        rate_limit,
        weight: 1,
        policies: None,
        gated: random.chance(12),
    }
}

fn inner_rows(program: &mut Program, on: &[usize], random: &mut Random) {
    let prefixes = ["10.9.0.0/16", "10.9.1.0/24", "10.20.0.0/15", "0.0.0.0/0", "192.168.16.0/20"];
    for prefix in prefixes {
        if !random.chance(60) {
            continue;
        }
        let vport = random.below(on.len());
        // For one port only, or for all.
        let port = random.chance(40).then(|| PortId::new(on[vport] as u8));
        let select = Match::Inner { port, prefix: prefix.parse().unwrap() };
        program.rows.push(Row { vid: program.vid, vport: vport as u16, select });
    }
}

/// Adds next hops (the router itself, and for each port one glean and up to three neighbours) and routes of all lengths to
/// them.
fn fill_routes(program: &mut Program, k: usize, on: &[usize], count: usize, random: &mut Random) {
    let mut hops = vec![Adjacency::local()];
    for (port, virtual_port) in on.iter().zip(&program.ports) {
        let id = PortId::new(*port as u8);
        hops.push(Adjacency::glean(id));
        for host in 0..1 + random.below(3) {
            let neighbour = Mac([2, 0xaa, host as u8, 0, k as u8, *port as u8]);
            hops.push(Adjacency::forward(id, virtual_port.mac, neighbour, virtual_port.mtu_bytes));
        }
    }
    let mut routes: BTreeMap<Prefix4, NextHop> = BTreeMap::new();
    for port in on {
        routes.insert(Prefix4::containing(ip(10, *port as u32, 0, 1), 32), hop(0));
        routes.insert(Prefix4::containing(ip(10, *port as u32, 0, 255), 32), hop(0));
    }
    while routes.len() < count.max(2 * on.len()) {
        let len = random.pick(&[0, 8, 14, 15, 16, 16, 20, 23, 24, 24, 24, 25, 28, 30, 31, 32, 32]);
        let prefix = Prefix4::containing(destination(random), len);
        if random.chance(3) && routes.len() > 2 * on.len() {
            break;
        }
        routes.insert(prefix, hop(random.below(hops.len())));
    }
    program.next_hops = hops;
    program.entries = Entries::Lpm32(routes.into_iter().collect());
}

/// The row of next hops with this number.
pub(crate) fn hop(index: usize) -> NextHop {
    NextHop::new(index as u16).unwrap()
}

/// Removes routes for which the papers' two banks have no room after the earlier ones. Unless `short`, it also removes those
/// with prefixes below 8 bits: one default route takes the whole first bank, and leaves no room for other networks.
pub fn fit_banks(programs: &mut [Program], short: bool, limits: DirLimits) {
    let mut dir = Dir::new(limits);
    for program in programs {
        dir.add_network(program.vid).unwrap();
        program.entries.lpm32_mut().retain(|(prefix, hop)| {
            (short || prefix.len() >= 8) && dir.apply(program.vid, &[(*prefix, Some(*hop))]).is_ok()
        });
    }
}

/// Whether the two banks hold all routes of networks.
#[must_use]
pub fn fits_banks(programs: &[Program]) -> bool {
    let routes = |program: &Program| {
        program.entries.lpm32().iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect()
    };
    let changes: Vec<_> = programs.iter().map(|program| (program.vid, routes(program))).collect();
    Dir::new(DirLimits::default()).check(&changes).is_ok()
}

/// An address that routes may be to.
pub(crate) fn destination(random: &mut Random) -> u32 {
    let host = random.pick(&[0, 1, 2, 3, 50, 51, 60, 77, 128, 200, 255]);
    match random.below(10) {
        0..=3 => ip(10, random.below(PORTS) as u32, 0, host),
        4 => ip(10, 9 + random.below(3) as u32, random.below(3) as u32, host),
        5 => ip(10, 20 + random.below(2) as u32, random.below(256) as u32, 9),
        6 => ip(192, 168, random.below(256) as u32, host),
        7 => random.pick(&[ip(224, 0, 0, 5), ip(239, 255, 255, 255), u32::MAX, ip(240, 0, 0, 1), 0]),
        8 => ip(random.below(8) as u32, random.below(4) as u32, random.below(4) as u32, host),
        _ => random.word() as u32,
    }
}

/// Frames for these networks, in the order of their times.
pub fn frames(random: &mut Random, programs: &[Program], count: usize) -> Vec<Frame> {
    let mut time_ns = 1_700_000_000_000_000_000;
    let learn = programs.iter().any(|program| program.kind() == Kind::L2);
    // Sometimes a run of frames of one network back to back, like a flood.
    let mut flood: Option<(usize, usize)> = None;
    (0..count)
        .map(|_| {
            time_ns += match random.below(4) {
                0 => 0,
                1 => random.below(700) as u64,
                2 => random.below(100_000) as u64,
                _ => random.below(3_000_000) as u64,
            };
            // Sometimes addresses grow old.
            if learn && random.chance(3) {
                time_ns += random.below(6_000_000_000) as u64;
            }
            // Sometimes the clock is set back. The driver of the card marks old addresses by the latest time.
            let now =
                if !learn && random.chance(2) { time_ns - random.below(5_000_000) as u64 } else { time_ns };
            if random.chance(5) {
                flood = random.chance(60).then(|| (random.below(programs.len()), random.below(PORTS)));
            }
            let (network, port) =
                flood.unwrap_or_else(|| (random.below(programs.len()), random.below(PORTS)));
            let bytes = frame(random, programs, network, port);
            Frame { port: PortId::new(port as u8), time_ns: now, bytes }
        })
        .collect()
}

fn frame(random: &mut Random, programs: &[Program], network: usize, port: usize) -> Vec<u8> {
    let is_ipv6 = match programs[network].kind() {
        Kind::Ipv6 => random.chance(85),
        Kind::Dual => random.chance(55),
        _ => false,
    };
    let is_l2 = programs[network].kind() == Kind::L2 && random.chance(95);
    let is_rofl = programs[network].kind() == Kind::Rofl && random.chance(95);
    let is_mpls = programs[network].kind() == Kind::Mpls && random.chance(95);
    let has_entries = programs[network].kind() == Kind::Extract && random.chance(95);
    let dst = match random.below(24) {
        0 => Mac::BROADCAST,
        1 => Mac(if is_ipv6 { [0x33, 0x33, 0, 0, 0, 5] } else { [1, 0, 0x5e, 0, 0, 5] }),
        2 => Mac([2, 0xde, 0xad, 0, 0, random.below(3) as u8]),
        _ => {
            let own = programs[network].ports.iter().find(|own| own.port.index() == port);
            own.map_or(mac(random.below(programs.len()), port), |own| own.mac)
        }
    };
    let options = if random.chance(6) { 4 * (1 + random.below(10)) } else { 0 };
    let lengths = [0, 6, 8, 20, 26, 26, 26, 40, 60, 61, 62, 63, 64, 65, 100, 600, 1460, 1480, 1481];
    let length = if random.chance(2) { 8000 + random.below(1190) } else { random.pick(&lengths) };
    let filler: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
    if is_l2 {
        return world2::frame(random, port, &filler);
    }
    if is_rofl {
        let mut frame = world7::frame(random, &programs[network], port, &filler);
        if random.chance(15) {
            damage(random, &mut frame);
        }
        return frame;
    }
    if is_mpls {
        let mut frame = world10::frame(random, &programs[network], &filler);
        if random.chance(15) {
            damage(random, &mut frame);
        }
        return frame;
    }
    if has_entries {
        let mut frame = world5::frame(random, &programs[network], &filler);
        if random.chance(20) {
            damage(random, &mut frame);
        }
        return frame;
    }
    if is_ipv6 {
        let mut frame = ethernet(dst, [0x86, 0xdd], &world6::packet(random, &filler));
        world6::damage(random, &mut frame);
        damage(random, &mut frame);
        return frame;
    }
    let is_spliced = programs[network].kind() == Kind::Splice && random.chance(85);
    let mut packet = match random.below(10) {
        0..=3 if is_spliced => {
            let payload = world9::shim(random, &filler);
            packet(random, SHIM_PROTOCOL, options, &payload)
        }
        0 => {
            let inside = packet(random, 17, 0, &filler);
            packet(random, 4, options, &inside)
        }
        1 => vxlan(random, options, &filler),
        2..=4 => packet(random, 17, options, &[&[0, 7, 0, 9, 0, 8, 0, 0], &filler[..]].concat()),
        _ => {
            let protocol = random.pick(&[1, 6, 6, 17, 33, 47, 132, 136]);
            packet(random, protocol, options, &filler)
        }
    };
    if is_spliced {
        world9::identify(random, &mut packet);
    }
    let others = [[8, 6], [0x86, 0xdd], [0x81, 0], [0, 60]];
    let ethertype = if random.chance(12) { random.pick(&others) } else { [8, 0] };
    let mut frame = ethernet(dst, ethertype, &packet);
    damage(random, &mut frame);
    frame
}

fn vxlan(random: &mut Random, options: usize, filler: &[u8]) -> Vec<u8> {
    let flags = random.pick(&[8, 8, 8, 0, 0xff]);
    let mut payload = vec![0x12, 0x34, 0x12, 0xb5, 0, 0, 0, 0, flags, 0, 0, 0, 0, 0, 5, 0];
    let ethertype = random.pick(&[[8, 0], [8, 0], [8, 0], [0x86, 0xdd]]);
    let options_inside = if random.chance(20) { 4 } else { 0 };
    let inside = packet(random, 6, options_inside, filler);
    payload.extend(ethernet(Mac([2, 0, 0, 0, 7, 7]), ethertype, &inside));
    packet(random, 17, options, &payload)
}

/// An IPv4 packet with a valid header.
fn packet(random: &mut Random, protocol: u8, options: usize, payload: &[u8]) -> Vec<u8> {
    let ihl = 20 + options;
    let total = (ihl + payload.len()) as u16;
    let ttl = random.pick(&[64, 64, 64, 64, 255, 2, 1, 0]);
    let mut out = vec![0x40 | (ihl / 4) as u8, random.below(256) as u8];
    out.extend(total.to_be_bytes());
    let flags = random.pick(&[0, 0, 0, 0x40, 0x20]);
    out.extend([0, 7, flags, if random.chance(8) { 9 } else { 0 }, ttl, protocol, 0, 0]);
    let source = match random.below(20) {
        0 => random.pick(&[0, 127, 224, 239, 240, 255]) << 24 | random.below(1 << 24) as u32,
        1 => random.pick(&[1, 126, 128, 223]) << 24 | random.below(1 << 24) as u32,
        _ => ip(10, random.below(3) as u32, 0, random.below(256) as u32),
    };
    out.extend(source.to_be_bytes());
    out.extend(destination(random).to_be_bytes());
    out.extend((20..ihl).map(|_| random.word() as u8));
    let sum = checksum::full(&out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(payload);
    out
}

fn ethernet(dst: Mac, ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&dst.0[..], &[2, 0, 0, 0, 0xee, 1], &ethertype, payload].concat()
}

/// Adds faults of each kind sometimes, and padding often.
fn damage(random: &mut Random, frame: &mut Vec<u8>) {
    if frame.len() < 34 {
        return;
    }
    match random.below(32) {
        0 => frame.truncate(random.below(15)),
        1 => frame.truncate(14 + random.below(21)),
        2 => frame.resize(9210 + random.below(12), 0),
        3 => frame[14] = random.pick(&[0x65, 0x05, 0x55]),
        4 => frame[14] = 0x40 | random.below(16) as u8,
        5 => frame[16] = frame[16].wrapping_add(1 + random.below(3) as u8),
        6 => {
            frame[16] = 0;
            frame[17] = random.below(30) as u8;
        }
        7 => frame[24] ^= 1 << random.below(8),
        8 => frame.truncate(frame.len() - 1),
        9 => frame.truncate(random.below(frame.len()).max(34)),
        10 => {
            // A random bit in the part of the frame that is parsed.
            let at = random.below(frame.len().min(90));
            frame[at] ^= 1 << random.below(8);
        }
        11 => {
            let noise: Vec<u8> = (0..random.below(200)).map(|_| random.word() as u8).collect();
            *frame = noise;
        }
        12 if random.chance(10) => frame.resize(10_000 + random.below(6000), 0x55),
        13..=18 => frame.resize(frame.len() + random.below(20), 0xaa),
        _ => {}
    }
}
