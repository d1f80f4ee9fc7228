//! Fills every queue and every meter of each image completely, using only registers and frames.

use hue_card::generated::{OutDropsRow, PortRow};
use hue_card::{Card, Description, Image, Layout, Twin, from_plane, out_drops_row};
use hue_demux::{Match, PortId, Row};
use hue_differential::{ALL_IMAGES, IMAGES, Random, full, image};
use hue_planes::ipv4::{Adjacency, Outcome};
use hue_planes::{Debts, Kind, Meter, Rate, RateLimit, Settings};
use hue_substrate::handover::AllDebts;
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::{Mac, checksum};

const MAC_PORTS: u8 = 4;
const PORTS: u8 = 8;
/// Bytes of a frame of these tests: a cell of the output queues.
const FRAME_BYTES: usize = 64;
/// Burst size of a meter, in packets.
const BURST: u64 = 5;
/// The same number of frames, in bits.
const BURST_BITS: u64 = BURST * FRAME_BYTES as u64 * 8;

fn images() -> &'static [&'static str] {
    if full() { &ALL_IMAGES } else { &IMAGES[..2] }
}

fn own(network: usize, port: u8) -> Mac {
    Mac([2, 0, 0, 0, network as u8, port])
}

/// How many of the image's networks run on the card. The others run in software and use its queues.
fn on_card(of: &Description) -> usize {
    if of.layout == Layout::Tcam { of.planes as usize } else { of.nets as usize }
}

/// The port of a network in software.
fn software_port(network: usize) -> u8 {
    network as u8 % MAC_PORTS
}

/// First byte of a network's destinations. No two of 64 networks share a prefix, because image `dir` has few rows for these.
fn first_byte(network: usize) -> u8 {
    10 + (network % 64) as u8
}

/// As many networks as the image holds. Those on the card are on all ports: B.P.0.0/16 leaves by port P, B.4.0.0/16 is the
/// router itself. Those in software, for which there are fewer rows, are on one port and have no routes here.
fn programs(of: &Description, limit: impl Fn(usize) -> Option<RateLimit>) -> Vec<Program> {
    let one = |k: usize| {
        let vid = Vid::new(k as u16 + 100).unwrap();
        let places = if k < on_card(of) { 0..MAC_PORTS } else { software_port(k)..software_port(k) + 1 };
        let ports = places.clone().map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: own(k, port),
            mtu_bytes: 1500,
            tunnel: None,
        });
        let row = |port| Row {
            vid,
            vport: u16::from(port - places.start),
            select: Match::Mac { port: PortId::new(port), mac: own(k, port) },
        };
        let forward =
            |port| Adjacency::forward(PortId::new(port), own(k, port), Mac([2, 9, 0, 0, 0, port]), 1500);
        let route = |to: u8| {
            let prefix = Prefix4::containing(u32::from(first_byte(k)) << 24 | u32::from(to) << 16, 16);
            (prefix, NextHop::new(u16::from(to)).unwrap())
        };
        let mut program = Program {
            vid,
            name: format!("net{k}"),
            settings: Settings::of(Kind::Ipv4),
            ports: ports.collect(),
            rows: places.clone().map(row).collect(),
            next_hops: (0..MAC_PORTS).map(forward).chain([Adjacency::local()]).collect(),
            groups: Vec::new(),
            entries: Entries::Lpm32((0..=MAC_PORTS).map(route).collect()),
            rate_limit: limit(k),
            weight: 1,
            policies: None,
            gated: false,
        };
        if k >= on_card(of) {
            program.next_hops.clear();
            program.entries.lpm32_mut().clear();
        }
        program
    };
    (0..of.nets as usize).map(one).collect()
}

/// A frame of a network, arriving on a port, for B.TO.0.1.
fn frame(network: usize, port: u8, to: u8) -> Vec<u8> {
    let mut header =
        vec![0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, first_byte(network), to, 0, 1];
    let sum = checksum::full(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&own(network, port).0[..], &[2, 0, 0, 0, 0xee, 1, 8, 0], &header].concat();
    frame.resize(FRAME_BYTES, 0);
    frame
}

fn start(image: &Image, limit: impl Fn(usize) -> Option<RateLimit>) -> (Card<Twin>, Vec<Program>) {
    let mut card = Card::new(image.start().unwrap()).unwrap();
    let of = card.description().clone();
    let programs = programs(&of, limit);
    let (on_card, in_software) = programs.split_at(on_card(&of));
    card.load(on_card).unwrap();
    card.load_in_software(in_software).unwrap();
    card.set_live().unwrap();
    (card, programs)
}

fn finish(card: &mut Card<Twin>) -> u64 {
    while !card.twin().idle() {
        assert!(card.twin().run(100_000) > 0 && card.twin().still_cycles() < 100_000, "it stands still");
    }
    assert_eq!(card.twin().failure(), None);
    std::iter::from_fn(|| card.twin().pop().map(drop)).count() as u64
}

fn port_counter(card: &mut Card<Twin>, port: u8, counter: u32) -> u64 {
    card.device().read_row::<PortRow>(u32::from(port) * 8 + counter).unwrap().value
}

#[test]
fn every_meter_passes_exactly_its_burst() {
    for name in images() {
        let rate = |per_second, burst| Some(Rate::new(per_second, burst).unwrap());
        // Networks use one bucket, the other one, or both, in turn.
        let limit = |k: usize| match k % 3 {
            0 => RateLimit { packets: rate(1, BURST), bits: None },
            1 => RateLimit { packets: None, bits: rate(1, BURST_BITS) },
            _ => RateLimit { packets: rate(1, BURST), bits: rate(1, 2 * BURST_BITS) },
        };
        let (mut card, mut programs) = start(&image(name), |k| Some(limit(k)));
        programs.truncate(on_card(card.description()));
        let mut tag = 0;
        for turn in 0..4 * BURST {
            for k in 0..programs.len() {
                let port = (turn % u64::from(MAC_PORTS)) as u8;
                assert!(card.twin().push(port, 1_000_000_000, tag, 0, &frame(k, port, port)));
                tag += 1;
            }
            finish(&mut card);
        }
        for program in &programs {
            let counters = card.read_counters(program.vid).unwrap().unwrap();
            assert_eq!(counters.forwarded(), BURST, "{name}: {}", program.name);
            assert_eq!(counters.get(Outcome::RateLimited), 3 * BURST, "{name}: {}", program.name);
        }
    }
}

/// The debts of the card's meter equal those of the software's, bit for bit, and each side can continue with the other's.
#[test]
fn a_meter_goes_on_with_what_another_lacks() {
    for name in images() {
        let rate = |per_second, burst| Some(Rate::new(per_second, burst).unwrap());
        let limit = RateLimit { packets: rate(1_000, 20), bits: rate(3_000_000, 50_000) };
        let (mut card, programs) = start(&image(name), |_| Some(limit));
        let vid = programs[0].vid;
        let mut meter = Meter::new(limit);
        let mut random = Random::new(1);
        let (mut now_ns, mut passed, mut given) = (1_000_000_000, [0; 2], 0);
        for tag in 0..600 {
            match random.below(10) {
                0 => assert_eq!(card.debts(vid).unwrap().rate, Some(meter.debts()), "{name}, {tag}"),
                1 => {
                    let debt = |random: &mut Random, most: u128| u128::from(random.word()) % (most + 1);
                    let packets = debt(&mut random, 20_000_000_000);
                    let bits = debt(&mut random, 50_000_000_000_000);
                    let debts = Debts { packets, bits, last_ns: now_ns - random.below(100_000) as u64 };
                    meter.set_debts(debts);
                    card.set_debts(vid, AllDebts { rate: Some(debts), storm: None }).unwrap();
                    given += 1;
                }
                _ => {
                    now_ns += random.below(2_000_000) as u64;
                    let mut frame = frame(0, 0, 1);
                    frame.resize(FRAME_BYTES + random.below(1_400), 0);
                    assert!(card.twin().push(0, now_ns, tag, 0, &frame));
                    let passes = finish(&mut card) == 1;
                    assert_eq!(passes, meter.conforms(now_ns, frame.len()), "{name}, {tag}");
                    passed[usize::from(passes)] += 1;
                }
            }
        }
        assert!(passed.iter().all(|count| *count > 100) && given > 30, "{passed:?}, {given}");
    }
}

#[test]
fn every_output_queue_is_filled_and_drops_alone() {
    // More than the share of any queue when all queues are full.
    const TURNS: usize = 24;
    for name in images() {
        let (mut card, programs) = start(&image(name), |_| None);
        assert!(card.twin().set_stress(0, 0, 256));
        let beats = FRAME_BYTES as u64 / u64::from(card.description().bus_bytes);
        let on_card = on_card(card.description());
        let nets: Vec<u8> = programs.iter().map(|program| card.net(program.vid).unwrap()).collect();
        // With few networks, or a large memory, a queue holds more: until it has half of the free cells. A frame of this length
        // takes one cell, of at least 64 bytes.
        let cells = card.description().out_bytes as usize / 64;
        let turns = TURNS.max(2 * cells / programs.len() / 5);
        let mut tag = 0;
        for _ in 0..turns {
            for (k, net) in nets.iter().enumerate() {
                for to in 0..=MAC_PORTS {
                    let (port, bytes) = if k < on_card {
                        let port = (tag % u32::from(MAC_PORTS)) as u8;
                        (port, frame(k, port, to))
                    } else if to < MAC_PORTS {
                        (MAC_PORTS + net % 4, [&from_plane(*net, to)[..], &frame(k, 0, to)].concat())
                    } else {
                        (software_port(k), frame(k, software_port(k), to))
                    };
                    assert!(card.twin().push(port, 0, tag, 0, &bytes));
                    tag += 1;
                }
            }
            // Until the frames are in the queues, or lost.
            card.twin().run(2 * beats * (programs.len() * 5) as u64 + 500);
        }
        card.twin().run(10_000);
        let mut lost = 0;
        for net in &nets {
            for to in 0..=MAC_PORTS {
                // Frames for a network itself leave by one of the CPU queues.
                let port = if to < MAC_PORTS { to } else { MAC_PORTS + net % 4 };
                let row = out_drops_row(u32::from(port), *net);
                let drops = card.device().read_row::<OutDropsRow>(row).unwrap().value;
                assert!(
                    drops > 0 && drops < turns as u64,
                    "{name}: port {port}, net {net}: {drops} of {turns}"
                );
                lost += drops;
            }
        }
        // Registers answer while nothing moves. Then all frames in the queues come out.
        assert!(card.twin().set_stress(0, 0, 0));
        let left = finish(&mut card);
        assert_eq!(left + lost, u64::from(tag), "{name}");
    }
}

/// MAC ports drop frames, each its own; frames of the CPU queues wait, and all of them are taken.
#[test]
fn every_input_queue_is_filled_and_drops_alone() {
    const FRAMES: u32 = 800;
    for name in images() {
        let (mut card, programs) = start(&image(name), |_| None);
        for tag in 0..FRAMES * u32::from(PORTS) {
            let port = (tag % u32::from(PORTS)) as u8;
            let k = tag as usize % programs.len();
            let bytes = if port < MAC_PORTS {
                frame(k, port, port)
            } else {
                // From a software plane of network 0, for an output port.
                let mut bytes = vec![0; 16];
                (bytes[6], bytes[7]) = (port % MAC_PORTS, 1);
                bytes.extend(frame(k, 0, 0));
                bytes
            };
            assert!(card.twin().push(port, 0, tag, 0, &bytes));
        }
        let left = finish(&mut card);
        let (mut taken, mut dropped, mut lost) = (0, 0, 0);
        for port in 0..PORTS {
            let drops = port_counter(&mut card, port, 2);
            let came = port_counter(&mut card, port, 0);
            if port < MAC_PORTS {
                assert!(drops > 0, "{name}: the queue of port {port} was not full");
            } else {
                assert_eq!((came, drops), (u64::from(FRAMES), 0), "{name}: CPU queue {port}");
            }
            taken += came;
            dropped += drops;
            lost += port_counter(&mut card, port, 5);
        }
        assert_eq!(taken + dropped, u64::from(FRAMES * u32::from(PORTS)), "{name}");
        assert_eq!(left + lost + card.read_unclaimed().unwrap().total(), taken, "{name}");
    }
}

/// Bytes of a broadcast: the longest that fits the MTU.
const LONG_BYTES: usize = 1514;

fn broadcast(number: u32) -> Vec<u8> {
    let head = [&Mac::BROADCAST.0[..], &[2, 0xaa, 0, 0, 0, 0, 0x12, 0x34], &number.to_be_bytes()];
    let mut frame = head.concat();
    frame.resize(LONG_BYTES, number as u8);
    frame
}

/// Adds the numbers of the broadcasts that left to those that left before, by port.
fn take(card: &mut Card<Twin>, left: &mut [Vec<u32>]) {
    while let Some(frame) = card.twin().pop() {
        // Others are notes of what the switch may learn.
        if let Some(left) = left.get_mut(usize::from(frame.port)) {
            assert_eq!(frame.bytes, broadcast(frame.tag));
            left.push(frame.tag);
        }
    }
}

/// A switch on all ports, of which one has a slow line. That port drops copies of broadcasts; the others send all of theirs, in
/// order, at the rate at which they come.
#[test]
fn a_slow_port_of_a_switch_holds_up_no_other() {
    const SLOW: u8 = 1;
    for name in ["kinds", "sram"].into_iter().take(if full() { 2 } else { 1 }) {
        let switch = switch();
        let mut card = Card::new(image(name).start().unwrap()).unwrap();
        card.load(std::slice::from_ref(&switch)).unwrap();
        card.set_live().unwrap();
        let of = card.description().clone();
        // A queue that alone is full has half of the memory.
        let count = 2 * of.out_bytes / LONG_BYTES as u32;
        // A frame's copies leave the stages one after the other.
        let step_cycles = 4 * (LONG_BYTES as u64).div_ceil(of.bus_bytes.into());
        assert!(card.twin().set_line(SLOW, Some((1 << 20, 1))));
        let begin = card.twin().cycles();
        for number in 0..count {
            let cycle = begin + u64::from(number) * step_cycles;
            assert!(card.twin().push(0, 0, number, cycle, &broadcast(number)));
        }
        card.twin().run_exactly(u64::from(count) * step_cycles + 20_000);
        let mut left = vec![Vec::new(); usize::from(MAC_PORTS)];
        take(&mut card, &mut left);
        let every: Vec<u32> = (0..count).collect();
        assert!(left[0].is_empty() && left[2] == every && left[3] == every, "{name}: while a port is full");
        assert!(card.twin().set_line(SLOW, None));
        while !card.twin().idle() {
            assert!(card.twin().run(100_000) > 0 && card.twin().still_cycles() < 100_000, "{name}");
        }
        assert_eq!(card.twin().failure(), None);
        take(&mut card, &mut left);
        let slow = left.remove(usize::from(SLOW));
        assert!(left[0].is_empty() && left[1] == every && left[2] == every, "{name}: afterwards");
        let lost = u64::from(count) - slow.len() as u64;
        assert!(slow.is_sorted() && lost > 0 && slow.len() > 100, "{name}: {lost} of {count}");
        let own = card.net(switch.vid).unwrap();
        for port in 0..MAC_PORTS {
            let wanted = if port == SLOW { lost } else { 0 };
            let drops = [2, 5, 6].map(|counter| port_counter(&mut card, port, counter));
            assert_eq!(drops, [0, wanted, 0], "{name}: port {port}");
            for net in (0..of.nets).map(|net| net as u8) {
                let row = out_drops_row(port.into(), net);
                let found = card.device().read_row::<OutDropsRow>(row).unwrap().value;
                assert_eq!(found, if net == own { wanted } else { 0 }, "{name}: port {port}, net {net}");
            }
        }
        let counters = card.read_counters(switch.vid).unwrap().unwrap();
        assert_eq!((counters.flooded(), counters.received()), (count.into(), count.into()), "{name}");
        assert_eq!(card.read_copies(switch.vid).unwrap(), Some(3 * u64::from(count)), "{name}");
    }
}

/// A network of kind `l2` that has all ports.
fn switch() -> Program {
    let vid = Vid::new(9).unwrap();
    let port = |port| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: own(0, port),
        mtu_bytes: 1500,
        tunnel: None,
    };
    Program {
        vid,
        name: "lan".to_owned(),
        settings: Settings::of(Kind::L2),
        ports: (0..MAC_PORTS).map(port).collect(),
        rows: (0..MAC_PORTS)
            .map(|port| Row { vid, vport: port.into(), select: Match::Port(PortId::new(port)) })
            .collect(),
        next_hops: (0..MAC_PORTS).map(|port| Adjacency::out(PortId::new(port), 1500)).collect(),
        groups: Vec::new(),
        entries: Entries::none(Kind::L2),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}
