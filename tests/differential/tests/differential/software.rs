//! A card with networks in software: it selects their frames, passes them to CPU queues, and sends the frames that come
//! back. One network moves to the card and back.

use std::collections::BTreeMap;

use hue_card::{Card, Layout, ToCpu, Twin, from_plane};
use hue_demux::{Match, PortId, Row};
use hue_differential::{IMAGES, Random, full, image};
use hue_planes::ipv4::Outcome;
use hue_planes::{Adjacency, Kind, Settings};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, Update, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::Mac;

const HOST: Mac = Mac([2, 9, 9, 9, 9, 9]);

fn own(id: u16, port: u8) -> Mac {
    Mac([2, 0, 0, 0, id as u8, port])
}

/// A network on ports 0 and 1 without routes, selected by MAC or by inner destination.
fn program(id: u16, inner: bool) -> Program {
    let vid = Vid::new(id).unwrap();
    let ports: Vec<_> = (0..2u8)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: own(id, port),
            mtu_bytes: 1500,
            tunnel: None,
        })
        .collect();
    let select = |port: &VirtualPort| match inner {
        true => Match::Inner { port: Some(port.port), prefix: Prefix4::containing(u32::from(id) << 24, 8) },
        false => Match::Mac { port: port.port, mac: port.mac },
    };
    let rows =
        ports.iter().zip(0u16..).map(|(port, vport)| Row { vid, vport, select: select(port) }).collect();
    Program {
        vid,
        name: format!("net{id}"),
        settings: Settings::of(Kind::Ipv4),
        ports,
        rows,
        next_hops: vec![],
        groups: Vec::new(),
        entries: Entries::Lpm32(vec![]),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// A valid packet to 10.0.0.9.
fn packet(to: Mac) -> Vec<u8> {
    let mut bytes = to.0.to_vec();
    bytes.extend(HOST.0);
    bytes.extend([8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 10, 0, 0, 9]);
    bytes.extend([7; 12]);
    let checksum = hue_wire::checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn arp(to: Mac) -> Vec<u8> {
    let mut bytes = to.0.to_vec();
    bytes.extend(HOST.0);
    bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    bytes.resize(60, 0);
    bytes
}

/// Sends a frame in. Returns the frames that come out, with their ports.
fn through(card: &mut Card<Twin>, port: u8, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    assert!(card.twin().push(port, 0, 0, 0, bytes));
    while !card.twin().idle() {
        assert!(card.twin().run(100_000) > 0 && card.twin().still_cycles() < 10_000);
    }
    assert_eq!(card.twin().failure(), None);
    let mut out = Vec::new();
    while let Some(frame) = card.twin().pop() {
        out.push((frame.port, frame.bytes.to_vec()));
    }
    out
}

/// The one frame that came to a CPU queue.
fn to_cpu(out: &[(u8, Vec<u8>)]) -> (ToCpu, &[u8]) {
    let [(port, bytes)] = out else { panic!("{out:?}") };
    assert!((4..8).contains(port));
    ToCpu::split(bytes).unwrap()
}

#[test]
fn networks_in_software_get_their_frames_and_go_to_the_card_and_back() {
    for name in ["tcam3", "default", "dir"] {
        let mut card = Card::new(image(name).start().unwrap()).unwrap();
        card.set_live().unwrap();
        let (red, green) = (program(1, false), program(2, true));
        card.load_in_software(&[red.clone(), green.clone()]).unwrap();
        assert_eq!(card.is_in_software(red.vid), Some(true));

        let frame = packet(own(1, 0));
        let out = through(&mut card, 0, &frame);
        let software = ToCpu { vid: red.vid, vport: 0, code: 0, port_in: 0, is_note: false };
        assert_eq!(to_cpu(&out), (software, &frame[..]), "{name}");
        // Frames from software leave unchanged, by the port in their header.
        let net = card.net(red.vid).unwrap();
        let sent = [&from_plane(net, 1)[..], &frame[..]].concat();
        assert_eq!(through(&mut card, 4 + net % 4, &sent), [(1, frame.clone())], "{name}");

        // With selection by inner destination, ARP to the router's own MAC address is also for it; nothing else is.
        let out = through(&mut card, 1, &arp(own(2, 1)));
        let answer = ToCpu { vid: green.vid, vport: 1, code: 0, port_in: 1, is_note: false };
        assert_eq!(to_cpu(&out), (answer, &arp(own(2, 1))[..]), "{name}");
        assert_eq!(
            through(&mut card, 0, &arp(own(2, 1))),
            [],
            "{name}: it has that address on the other port"
        );
        assert_eq!(through(&mut card, 1, &packet(own(2, 1))), [], "{name}");

        // Its table is written first and has no effect yet; then one row makes the card decide.
        card.take_plane(red.vid).unwrap();
        let hop = NextHop::new(0).unwrap();
        let next = Adjacency::forward(PortId::new(1), own(1, 1), HOST, 1500);
        card.update(red.vid, &Update::of_hops(&[(hop, next)])).unwrap();
        card.update(red.vid, &Update::of_routes(&[("10.0.0.0/8".parse::<Prefix4>().unwrap(), Some(hop))]))
            .unwrap();
        assert_eq!(to_cpu(&through(&mut card, 0, &frame)).0, software, "{name}");
        card.steer(red.vid, false).unwrap();
        let out = through(&mut card, 0, &frame);
        let [(1, forwarded)] = &out[..] else { panic!("{name}: {out:?}") };
        assert_eq!((&forwarded[..6], &forwarded[6..12], forwarded[22]), (&HOST.0[..], &own(1, 1).0[..], 63));
        // Packets that its plane punts carry the reason.
        assert_eq!(to_cpu(&through(&mut card, 0, &arp(own(1, 0)))).0.code, Outcome::Arp.code());
        card.steer(red.vid, true).unwrap();
        assert_eq!(to_cpu(&through(&mut card, 0, &frame)), (software, &frame[..]), "{name}");
        let counters = card.counters(red.vid).unwrap();
        assert_eq!(
            (counters.forwarded(), counters.received()),
            (1, 2),
            "{name}: what software decides is its to count"
        );

        // If planes have tables of their own, each network that runs on the card needs a plane.
        let more: Vec<Program> = (3..6).map(|id| program(id, false)).collect();
        card.load_in_software(&more).unwrap();
        let taken: Vec<_> = more.iter().map(|program| card.take_plane(program.vid)).collect();
        let refused = taken.iter().filter(|taken| taken.is_err()).count();
        assert_eq!(refused, usize::from(card.description().layout == Layout::Tcam), "{name}: {taken:?}");
        // A network that leaves makes room.
        card.unload(&[red.vid]).unwrap();
        for program in &more {
            card.take_plane(program.vid).unwrap();
            card.steer(program.vid, false).unwrap();
        }
        assert_eq!(card.steer(red.vid, false), Err(SubstrateError::Unknown(red.vid)));
        assert_eq!(through(&mut card, 0, &frame), [], "{name}: nobody's");
    }
}

/// A numbered frame: it contains its number, its source and its destination; the other bytes follow from the number.
fn numbered(random: &mut Random, number: u32, network: u16, port: u8) -> Vec<u8> {
    let len = match random.below(8) {
        0 => 22,
        1 => 9216,
        2 => 22 + random.below(100),
        _ => 22 + random.below(1500),
    };
    let mut bytes = own(network, port).0.to_vec();
    bytes.extend(HOST.0);
    bytes.extend([0x88, 0xb5]);
    bytes.extend(number.to_be_bytes());
    bytes.extend([network as u8, port, random.below(4) as u8, 0]);
    bytes.extend((bytes.len()..len).map(|at| ((at as u32 * 7) ^ number ^ (number << 3)) as u8));
    bytes
}

/// Returns frames from CPU queues into the queue from which they came.
#[derive(Default)]
struct Bounced {
    /// Numbers of the frames that came to software, by network and port in, and of those that left, by network, port in and port out.
    to_cpu: BTreeMap<(u8, u8), Vec<u32>>,
    left: BTreeMap<(u8, u8, u8), Vec<u32>>,
    /// Frames without a complete header and frame.
    stumps: u64,
}

impl Bounced {
    fn take(&mut self, card: &mut Card<Twin>, random: &mut Random, sent: &[Vec<u8>]) {
        let mut back = Vec::new();
        while let Some(out) = card.twin().pop() {
            let bytes = out.bytes.to_vec();
            let (header, frame) = match out.port {
                4.. => ToCpu::split(&bytes).map(|(header, frame)| (Some(header), frame)).unwrap(),
                _ => (None, &bytes[..]),
            };
            let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
            assert!(frame == sent[number as usize], "frame {number} at port {}", out.port);
            let [network, port_in, port_out] = [frame[18], frame[19], frame[20]];
            if let Some(header) = header {
                let vid = Vid::new(u16::from(network)).unwrap();
                assert_eq!(
                    header,
                    ToCpu { vid, vport: u16::from(port_in), code: 0, port_in, is_note: false }
                );
                self.to_cpu.entry((network, port_in)).or_default().push(number);
                back.push((
                    out.port,
                    number,
                    [&from_plane(card.net(vid).unwrap(), port_out)[..], frame].concat(),
                ));
            } else {
                assert_eq!(out.port, port_out);
                self.left.entry((network, port_in, port_out)).or_default().push(number);
            }
        }
        for (port, number, bytes) in back {
            if random.chance(20) {
                assert!(card.twin().push(port, 0, 0, 0, &bytes[..random.below(17)]));
                self.stumps += 1;
            }
            assert!(card.twin().push(port, 0, number, 0, &bytes));
        }
    }
}

/// All streams at once, MAC ports and CPU queues, both ways, with random pauses: frames that software returns leave whole,
/// once and in order. Incomplete frames on the CPU queues are counted and affect no network.
#[test]
fn frames_through_software_are_whole_and_in_order_under_stress() {
    const FRAMES: u32 = 250;
    for (at, name) in (0..).zip(IMAGES) {
        for (seed, (idle, stall)) in (0..).zip([(0, 0), (120, 0), (0, 120), (160, 160), (30, 230)]) {
            // Every pause on some image, and every image with some of the pauses; in long runs all of them.
            if !full() && (seed + at) % 3 != 0 {
                continue;
            }
            let mut random = Random::new(seed);
            let mut card = Card::new(image(name).start().unwrap()).unwrap();
            card.set_offline().unwrap();
            let programs: Vec<_> = (1..6).map(|id| program(id, false)).collect();
            card.load_in_software(&programs).unwrap();
            assert!(card.twin().set_stress(seed, idle, stall));
            let mut expected = BTreeMap::<_, Vec<u32>>::new();
            let sent: Vec<_> = (0..FRAMES)
                .map(|number| {
                    let (network, port) = (1 + random.below(5) as u16, random.below(2) as u8);
                    expected.entry((network as u8, port)).or_default().push(number);
                    let bytes = numbered(&mut random, number, network, port);
                    assert!(card.twin().push(port, 0, number, 0, &bytes));
                    bytes
                })
                .collect();
            let mut bounced = Bounced::default();
            while !card.twin().idle() {
                assert!(
                    card.twin().run(700) > 0 && card.twin().still_cycles() < 20_000,
                    "{name}, seed {seed}"
                );
                bounced.take(&mut card, &mut random, &sent);
            }
            assert_eq!(card.twin().failure(), None);
            assert_eq!(bounced.to_cpu, expected, "{name}, seed {seed}");
            let in_order = bounced.left.values().all(|numbers| numbers.is_sorted());
            let left: usize = bounced.left.values().map(Vec::len).sum();
            assert!(in_order && left == FRAMES as usize, "{name}, seed {seed}: {left} frames");
            assert!(bounced.stumps > 0);
            assert_eq!(card.read_unclaimed().unwrap().total(), bounced.stumps, "{name}, seed {seed}");
        }
    }
}
