//! Tunnels on the card: packets enter and leave tunnels of every type, also tunnels through one another, as in software.
//!
//! The model passes each frame through the software engine once for each network that it visits. In the engine's programs, every end of
//! a tunnel is on a port of its own. What leaves by such a port is encapsulated and enters at the port of the carrier; a punted packet
//! of a carrier that comes out of a tunnel enters at the tunnel's port.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_card::{Card, Image, Offered, Twin, Way};
use hue_demux::tunnel::{Dscp, Encapsulation, IPIP_PEER, Outer, Tunnel};
use hue_demux::{Match, PortId, Row};
use hue_differential::{card, first_seed, full, image, mutated};
use hue_planes::{Adjacency, Kind, Reason, Settings, Verdict};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{Limits, NextHop, Prefix4, Prefix6, Vid};
use hue_testdata::Random;
use hue_wire::vxlan::{self, Vni};
use hue_wire::{Mac, checksum, ethernet};

/// The first port of the model that is the end of a tunnel.
const ENDS: u8 = 64;
/// Ports of the model for the ends of a network's tunnels.
const ENDS_OF_NETWORK: u8 = 16;

fn vid(net: u16) -> Vid {
    Vid::new(net).unwrap()
}

fn own(net: u16, vport: u8) -> Mac {
    Mac([2, 0, 0, net as u8, 1, vport])
}

fn v4(net: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, net, 0, host)
}

fn v6(net: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, net.into(), 0, 0, 0, 0, host.into())
}

/// A network of kind `dual` with a link on a physical port, and tunnels over others. Network `n` has 10.n.0.1 and 2001:db8:n::1
/// itself, and the neighbour 2 at its link. Behind tunnel `t` are 10.n.t.0/24 and 2001:db8:n:t::/64.
fn network(net: u16, port: u8, tunnels: &[Tunnel]) -> Program {
    let mut program = Program {
        vid: vid(net),
        name: format!("n{net}"),
        settings: Settings::of(Kind::Dual),
        ports: Vec::new(),
        rows: Vec::new(),
        next_hops: Vec::new(),
        groups: Vec::new(),
        entries: Entries::Lpm32(Vec::new()),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    };
    let number = net as u8;
    let (mut fours, mut sixes) = (Vec::new(), Vec::new());
    let mut hops = vec![Adjacency::local()];
    let mut four =
        |address: Ipv4Addr, len, hop| fours.push((Prefix4::containing(address.to_bits(), len), hop));
    let mut six =
        |address: Ipv6Addr, len, hop| sixes.push((Prefix6::containing(address.to_bits(), len), hop));
    let ends = tunnels.iter().zip(0u8..).map(|(tunnel, nth)| (PortId::tunnel(nth).unwrap(), Some(*tunnel)));
    for ((id, tunnel), vport) in [(PortId::new(port), None)].into_iter().chain(ends).zip(0u8..) {
        let mtu_bytes = 1500;
        program.ports.push(VirtualPort {
            name: format!("v{vport}"),
            port: id,
            mac: own(net, vport),
            mtu_bytes,
            tunnel,
        });
        let select = Match::Mac { port: id, mac: own(net, vport) };
        program.rows.push(Row { vid: vid(net), vport: vport.into(), select });
        let peer = match tunnel {
            Some(Tunnel { encapsulation: Encapsulation::Ipip, .. }) => IPIP_PEER,
            _ => Mac([2, 0xbb, 0, number, 0, vport]),
        };
        hops.push(Adjacency::glean(id));
        hops.push(Adjacency::forward(id, own(net, vport), peer, mtu_bytes));
        let hop = |n: usize| hops.len() - n;
        if vport == 0 {
            four(v4(number, 1), 32, 0);
            six(v6(number, 1), 128, 0);
            four(v4(number, 0), 24, hop(2));
            six(v6(number, 0), 64, hop(2));
            four(v4(number, 2), 32, hop(1));
            six(v6(number, 2), 128, hop(1));
            // All other far ends are behind the neighbour.
            four(Ipv4Addr::new(192, 0, 2, 0), 24, hop(1));
            six(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 0), 48, hop(1));
        } else {
            four(Ipv4Addr::new(10, number, vport, 0), 24, hop(1));
            six(Ipv6Addr::new(0x2001, 0xdb8, number.into(), vport.into(), 0, 0, 0, 0), 64, hop(1));
        }
    }
    let entry = |hop: usize, odd: usize| NextHop::new((2 * hop + odd) as u16).unwrap();
    program.entries = Entries::Dual(
        fours.into_iter().map(|(prefix, hop)| (prefix, entry(hop, 0))).collect(),
        sixes.into_iter().map(|(prefix, hop)| (prefix, entry(hop, 1))).collect(),
    );
    program.next_hops = hops.into_iter().flat_map(|hop| [hop, hop]).collect();
    program
}

/// The far end of tunnel `nth` of a network.
fn far(wide: bool, net: u16, nth: u8) -> IpAddr {
    match wide {
        true => Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, net, nth.into()).into(),
        false => Ipv4Addr::new(192, 0, 2, 16 * net as u8 + nth).into(),
    }
}

fn tunnel(net: u16, over: u16, nth: u8, wide: bool, encapsulation: Encapsulation) -> Tunnel {
    let local = if wide { v6(over as u8, 1).into() } else { v4(over as u8, 1).into() };
    let dscp = if nth.is_multiple_of(2) { Dscp::Inherit } else { Dscp::Fixed(10 + nth) };
    Tunnel {
        over: vid(over),
        encapsulation,
        local,
        remote: far(wide, net, nth),
        ttl: [64, 255, 1][usize::from(nth) % 3],
        dscp,
    }
}

fn vxlan(vni: u32) -> Encapsulation {
    Encapsulation::Vxlan { vni: Vni::new(vni).unwrap(), port: vxlan::PORT }
}

/// A carrier, two networks with tunnels over it, and one with a tunnel over one of these.
fn networks() -> Vec<Program> {
    let all = |net, over| {
        [
            tunnel(net, over, 1, false, Encapsulation::Ipip),
            tunnel(net, over, 2, true, Encapsulation::Ipip),
            tunnel(net, over, 3, false, vxlan(u32::from(net) << 16 | 77)),
            tunnel(net, over, 4, true, vxlan(u32::from(net))),
        ]
    };
    // Far ends of the inner carrier are behind its own tunnels.
    let nested =
        network(4, 3, &[tunnel(4, 2, 1, false, Encapsulation::Ipip), tunnel(4, 2, 2, true, vxlan(9))]);
    let mut carrier = network(2, 1, &all(2, 1));
    if let Entries::Dual(fours, sixes) = &mut carrier.entries {
        let through = |prefix_hop: usize, odd: usize| NextHop::new((2 * prefix_hop + odd) as u16).unwrap();
        // Forward rows: 2 + 2 * vport.
        fours.push((Prefix4::containing(u32::from(Ipv4Addr::new(192, 0, 2, 65)), 32), through(8, 0)));
        let IpAddr::V6(six) = far(true, 4, 2) else { unreachable!() };
        sixes.push((Prefix6::containing(six.to_bits(), 128), through(4, 1)));
    }
    vec![network(1, 0, &[]), carrier, network(3, 2, &all(3, 1)), nested]
}

/// The port of the model at the end of a tunnel.
fn end(net: usize, port: PortId) -> PortId {
    match port.is_tunnel() {
        true => PortId::new(ENDS + ENDS_OF_NETWORK * net as u8 + (u8::MAX - port.get())),
        false => port,
    }
}

/// Programs of the model: ends of tunnels are ports.
fn flat(programs: &[Program]) -> Vec<Program> {
    let flat = |(net, program): (usize, &Program)| {
        let mut program = program.clone();
        for port in &mut program.ports {
            (port.port, port.tunnel) = (end(net, port.port), None);
        }
        for row in &mut program.rows {
            if let Match::Mac { port, mac } = row.select {
                row.select = Match::Mac { port: end(net, port), mac };
            }
        }
        for hop in &mut program.next_hops {
            *hop = hop.on_port(end(net, hop.port()));
        }
        program
    };
    programs.iter().enumerate().map(flat).collect()
}

/// What left: frame, port or network with virtual port, bytes.
type Left = (usize, Result<u8, (u16, u16)>, Vec<u8>);

struct Model {
    left: Vec<Left>,
    /// Packets of each network by name of the outcome.
    counts: BTreeMap<(u16, &'static str), u64>,
    /// By network: bytes received, bytes sent, packets out of and into tunnels.
    sums: BTreeMap<u16, [u64; 4]>,
}

/// Whether the card leaves a packet to software although it is of a tunnel.
fn needs_software(frame: &[u8]) -> bool {
    let word = |at: usize| frame.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    if word(12) == 0x86dd {
        return !matches!(frame[20], 4 | 41 | 17) || frame[20] == 17 && word(60) != 0;
    }
    frame[14] != 0x45 || frame[23] == 17 && word(40) != 0
}

/// The port and the frame that comes out of a tunnel over `over`.
fn taken_out(programs: &[Program], over: Vid, frame: &[u8]) -> Option<(PortId, Vec<u8>)> {
    let outer = Outer::parse(frame, |_| true)?.ok()?;
    let ends = programs.iter().enumerate().flat_map(|(net, program)| {
        program.tunnels().map(move |(vport, tunnel)| (net, program.ports[usize::from(vport)].clone(), tunnel))
    });
    let (net, port, _) = ends.into_iter().find(|(_, _, tunnel)| {
        tunnel.over == over
            && (tunnel.encapsulation, tunnel.local, tunnel.remote)
                == (outer.encapsulation, outer.destination, outer.source)
    })?;
    let mut bytes = frame.to_vec();
    let place = outer.decapsulate(&mut bytes, port.mac).ok()?;
    let inside = bytes[place].to_vec();
    let is_for_it = inside[..6] == port.mac.0 || ethernet::is_group(&inside);
    (is_for_it && !needs_software(frame)).then(|| (end(net, port.port), inside))
}

fn model(programs: &[Program], frames: &[(PortId, Vec<u8>)]) -> Model {
    let flat = flat(programs);
    let mut soft = Soft::new(Limits { image_bytes_max: 64 << 20, ..Limits::default() }).unwrap();
    soft.load(&flat).unwrap();
    let mut model = Model { left: Vec::new(), counts: BTreeMap::new(), sums: BTreeMap::new() };
    let mut waiting: VecDeque<(usize, PortId, Vec<u8>)> =
        frames.iter().enumerate().map(|(tag, (port, bytes))| (tag, *port, bytes.clone())).collect();
    let mut batch = Batch::new();
    while let Some((tag, port, bytes)) = waiting.pop_front() {
        batch.clear();
        assert!(batch.push(port, 1 + tag as u64, &bytes));
        let mut passes = Vec::new();
        soft.run(&mut batch, |output| {
            if let Fate::Network { vid, vport, outcome, egress } = output.fate {
                passes.push((vid, vport, outcome, egress, output.bytes.to_vec()));
            }
        });
        for (vid, vport, outcome, egress, bytes) in passes {
            *model.counts.entry((vid.get(), outcome.name())).or_default() += 1;
            let sums = model.sums.entry(vid.get()).or_default();
            sums[0] += bytes.len() as u64;
            match outcome.verdict() {
                Verdict::Drop => {}
                Verdict::Forward if egress.get() < ENDS => {
                    sums[1] += bytes.len() as u64;
                    model.left.push((tag, Ok(egress.get()), bytes));
                }
                Verdict::Forward => {
                    sums[1] += bytes.len() as u64;
                    sums[2] += 1;
                    let at = programs.iter().position(|program| program.vid == vid).unwrap();
                    let by = programs[at].ports.iter().find(|vport| end(at, vport.port) == egress).unwrap();
                    let tunnel = by.tunnel.unwrap();
                    let made = tunnel.encapsulate(&bytes).unwrap();
                    let mut outer = [made.headers(), &bytes[made.payload.clone()]].concat();
                    let carrier = programs.iter().find(|program| program.vid == tunnel.over).unwrap();
                    outer[..6].copy_from_slice(&carrier.ports[0].mac.0);
                    waiting.push_back((tag, carrier.ports[0].port, outer));
                }
                Verdict::Punt => match taken_out(programs, vid, &bytes).filter(|_| outcome.is_own()) {
                    Some((port, inside)) => {
                        sums[3] += 1;
                        waiting.push_back((tag, port, inside));
                    }
                    None => model.left.push((tag, Err((vid.get(), vport)), bytes)),
                },
            }
        }
    }
    model
}

/// An IP packet with `payload` bytes in a frame.
fn packet(
    random: &mut Random,
    to: Mac,
    wide: bool,
    ends: [IpAddr; 2],
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let ttl = random.pick(&[64, 64, 64, 2, 1]);
    let tos = random.below(256) as u8;
    let mut frame = [&to.0[..], &[2, 0xcc, 0, 0, 0, 1]].concat();
    let _ = wide;
    match ends {
        [IpAddr::V4(from), IpAddr::V4(to)] => {
            frame.extend([8, 0, 0x45, tos]);
            frame.extend(((20 + payload.len()) as u16).to_be_bytes());
            frame.extend([0, 7, 0, 0, ttl, protocol, 0, 0]);
            frame.extend(from.octets());
            frame.extend(to.octets());
            let sum = checksum::full(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        [IpAddr::V6(from), IpAddr::V6(to)] => {
            frame.extend([0x86, 0xdd, 0x60 | tos >> 4, tos << 4, 1, 2]);
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend([protocol, ttl]);
            frame.extend(from.octets());
            frame.extend(to.octets());
        }
        _ => unreachable!("one family"),
    }
    frame.extend(payload);
    frame
}

/// A frame that arrives in network `at`, for one of its destinations: its link, a tunnel, itself, nowhere.
fn plain(random: &mut Random, programs: &[Program], at: usize, mac: Mac) -> Vec<u8> {
    let net = programs[at].vid.get() as u8;
    let wide = random.chance(50);
    let t = random.below(programs[at].ports.len() + 1) as u8;
    let host = random.pick(&[1, 2, 3, 9]);
    let (from, to) = if wide {
        let to = Ipv6Addr::new(0x2001, 0xdb8, net.into(), t.into(), 0, 0, 0, host);
        (v6(200, 9).into(), to.into())
    } else {
        (Ipv4Addr::new(172, 16, 0, 9).into(), Ipv4Addr::new(10, net, t, host as u8).into())
    };
    let len = if random.chance(60) { random.below(80) } else { random.below(1400) };
    let payload: Vec<u8> = (0..len).map(|_| random.word() as u8).collect();
    let protocol = random.pick(&[6, 17, 17, 1]);
    packet(random, mac, wide, [from, to], protocol, &payload)
}

/// A packet of a tunnel, as its far end sends it to the carrier, sometimes with faults.
fn tunnelled(random: &mut Random, programs: &[Program]) -> (PortId, Vec<u8>) {
    let at = 1 + random.below(programs.len() - 1);
    let program = &programs[at];
    let tunnels: Vec<_> = program.tunnels().collect();
    let (vport, tunnel) = random.pick(&tunnels);
    let mac = if random.chance(5) { Mac([2, 9, 9, 9, 9, 9]) } else { program.ports[usize::from(vport)].mac };
    let inner = match random.below(12) {
        0 => [&[0xff; 6][..], &mac.0, &[8, 6, 0, 1], &[7; 26]].concat(),
        _ => plain(random, programs, at, mac),
    };
    let carrier = programs.iter().find(|program| program.vid == tunnel.over).unwrap();
    let back = Tunnel { local: tunnel.remote, remote: tunnel.local, ..*tunnel };
    let Ok(made) = back.encapsulate(&inner) else { return (carrier.ports[0].port, inner) };
    let mut frame = [made.headers(), &inner[made.payload.clone()]].concat();
    frame[..6].copy_from_slice(&carrier.ports[0].mac.0);
    if random.chance(30) {
        let at = 15 + random.below(60);
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
        if frame[12] == 8 {
            frame[24..26].fill(0);
            let sum = checksum::full(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
    }
    // A carrier that is itself in a tunnel gets it through its own carrier.
    if carrier.ports[0].port.get() == 1 && random.chance(50) {
        let (vport, tunnel) = random.pick(&carrier.tunnels().collect::<Vec<_>>());
        let back = Tunnel { local: tunnel.remote, remote: tunnel.local, ..*tunnel };
        frame[..6].copy_from_slice(&carrier.ports[usize::from(vport)].mac.0);
        let made = back.encapsulate(&frame);
        if let Ok(made) = made {
            let over = programs.iter().find(|program| program.vid == tunnel.over).unwrap();
            let mut outer = [made.headers(), &frame[made.payload.clone()]].concat();
            outer[..6].copy_from_slice(&over.ports[0].mac.0);
            return (over.ports[0].port, outer);
        }
    }
    (carrier.ports[0].port, frame)
}

fn frames(random: &mut Random, programs: &[Program], count: usize) -> Vec<(PortId, Vec<u8>)> {
    let one = |random: &mut Random| match random.chance(50) {
        true => {
            let at = random.below(programs.len());
            let port = &programs[at].ports[0];
            (port.port, plain(random, programs, at, port.mac))
        }
        false => tunnelled(random, programs),
    };
    (0..count).map(|_| one(random)).collect()
}

/// What the card made of frames; outcomes of punted packets for a network itself are left out, because those that came by no tunnel
/// pass the stages twice.
fn on_card(card: &mut Card<Twin>, frames: &[(PortId, Vec<u8>)]) -> Vec<Left> {
    let offered: Vec<Offered<'_>> = frames
        .iter()
        .zip(1u64..)
        .map(|((port, bytes), time_ns)| Offered { port: *port, time_ns, bytes })
        .collect();
    let mut left = Vec::new();
    let result = card.run(&offered, |sent| {
        let to = match sent.way {
            Way::Port(port) => Ok(port.get()),
            Way::Control { vid, vport, .. } => Err((vid.get(), vport)),
        };
        left.push((sent.frame, to, sent.bytes.to_vec()));
    });
    result.unwrap();
    left
}

/// The first difference between card and model.
fn difference(card: &mut Card<Twin>, programs: &[Program], frames: &[(PortId, Vec<u8>)]) -> Option<String> {
    let mut want = model(programs, frames);
    let mut have = on_card(card, frames);
    have.sort();
    want.left.sort();
    if let Some((have, want)) = have.iter().zip(&want.left).find(|(have, want)| have != want) {
        let bytes = &frames[want.0.min(have.0)];
        return Some(format!("card: {have:02x?}\nmodel: {want:02x?}\nframe: {bytes:02x?}"));
    }
    if have.len() != want.left.len() {
        return Some(format!("{} frames left the card, expected {}", have.len(), want.left.len()));
    }
    for program in programs {
        let (net, name) = (program.vid.get(), &program.name);
        let counters = card.counters(program.vid).unwrap();
        for outcome in Reason::all(program.kind()) {
            let want = want.counts.get(&(net, outcome.name())).copied().unwrap_or_default();
            let have = counters.get(outcome);
            if have != want {
                return Some(format!("{name}, {}: {have} on the card, expected {want}", outcome.name()));
            }
        }
        let [received, sent, left, entered] = want.sums.get(&net).copied().unwrap_or_default();
        let bytes = card.read_bytes(program.vid).unwrap().unwrap();
        let tunnels = card.read_tunnel_counts(program.vid).unwrap().unwrap();
        let have = (bytes, tunnels.left, tunnels.entered, tunnels.full, tunnels.lost);
        if have != ((received, sent), left, entered, 0, 0) {
            return Some(format!("{name}: {have:?}, expected {:?}", (received, sent, left, entered)));
        }
    }
    None
}

fn run(image: &Image, seed: u64, count: usize) -> Option<String> {
    let programs = networks();
    let mut random = Random::new(seed);
    let frames = frames(&mut random, &programs, count);
    let mut card = card(image, &programs);
    let stress = random.pick(&[(0, 0), (100, 0), (0, 100), (160, 160), (30, 230)]);
    assert!(card.twin().set_stress(seed, stress.0, stress.1));
    difference(&mut card, &programs, &frames)
}

/// Every type of tunnel, both ways, through one another, with faults and pauses: the same frames, counters and bytes.
#[test]
fn tunnels_on_the_card_do_what_they_do_in_software() {
    let image = image("kinds");
    let (first, rounds) = (first_seed(), if full() { 30 } else { 3 });
    for seed in first..first + rounds {
        let found = run(&image, seed, 700);
        assert!(found.is_none(), "seed {seed}: {}", found.unwrap());
    }
}

/// A network whose carrier leaves the card, and the other way round: its packets go to software, and to the tunnel again once both are
/// back. Nothing of a former tunnel is left.
#[test]
fn a_tunnel_is_on_the_card_while_both_its_networks_are() {
    let image = image("kinds");
    let programs = networks();
    let mut random = Random::new(7);
    let mut card = card(&image, &programs);
    let frames = frames(&mut random, &programs, 100);
    let tunnels = |card: &Card<Twin>| {
        let counts = programs.iter().map(|program| card.read_tunnel_counts(program.vid).unwrap().unwrap());
        counts.fold((0, 0), |sum, one| (sum.0 + one.left, sum.1 + one.entered))
    };
    on_card(&mut card, &frames);
    let all = tunnels(&card);
    assert!(all.0 > 10 && all.1 > 10, "{all:?}");
    // Without the outermost carrier only the tunnels of the nested network are left.
    card.steer(vid(1), true).unwrap();
    on_card(&mut card, &frames);
    let nested = tunnels(&card);
    assert!(nested.0 - all.0 < all.0 && nested.1 - all.1 < all.1, "{all:?}, {nested:?}");
    card.steer(vid(2), true).unwrap();
    on_card(&mut card, &frames);
    assert_eq!(tunnels(&card), nested);
    card.unload(&[vid(4)]).unwrap();
    card.steer(vid(2), false).unwrap();
    card.steer(vid(1), false).unwrap();
    card.load(&[programs[3].clone()]).unwrap();
    on_card(&mut card, &frames);
    let again = tunnels(&card);
    // The counters of the network that was loaded again began again.
    assert!(again.0 + again.1 > nested.0 + nested.1, "{again:?}");
    let first = on_card(&mut card, &frames);
    let want = model(&programs, &frames).left;
    assert_eq!(first.len(), want.len());
}

/// Bugs of the loop must be found.
#[test]
fn planted_bugs_of_tunnels_are_found() {
    if !full() {
        return println!("skipped: part of make test-full");
    }
    for (number, (file, from, to)) in [
        (
            "card/hue_tunnel.sv",
            "m_arrival_o.net = out ? far_q.over : near_q.net;",
            "m_arrival_o.net = far_q.over;",
        ),
        (
            "card/hue_tunnel.sv",
            "16'h4000, near_q.ttl, protocol, ~sum,",
            "16'h0000, near_q.ttl, protocol, ~sum,",
        ),
        (
            "planes/hue_routes.sv",
            "if (outcome == outcomes.is_local && found.tunnel) verdict_o.tunnel <= TunnelIn;",
            "",
        ),
        ("planes/hue_stages.sv", "assign returned = back || (sent", "assign returned = (sent"),
        ("demux/hue_select.sv", "!head_i.dst_mac[40] && !head_i.copy", "!head_i.dst_mac[40]"),
    ]
    .into_iter()
    .enumerate()
    {
        let image = mutated(&format!("tunnels{number}"), "kinds", file, from, to);
        assert!(run(&image, 1, 700).is_some(), "{file}: {to}");
    }
}
