//! Each kind of plane with all four ports busy: cycles a frame, and what is lost at line rate.
//!
//! Flow: random routes of the tables of 2026 (hosts for switches) → networks and a capture for each port → `hue_lab`. Frames of kinds
//! with routes go to random addresses of random routes, those of switches to hosts behind the other ports. All are of the
//! shortest length, 64 bytes with check sequence, also over IPv6, which the lab's generated frames cannot be.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use hue_card::{Description, Images};
use hue_demux::{Match, PortId, Row};
use hue_lab::{Experiment, Measured, Offer, Rate, Source, Stream, Traffic};
use hue_planes::extract::{self, Lane};
use hue_planes::group::{Group, Member};
use hue_planes::splice::SLICES;
use hue_planes::{Adjacency, Kind, Settings as PlaneSettings};
use hue_ports::{Frame, OutputDir, Resolution};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::slice::{self, SlicedPrefix};
use hue_tables::{AnyPrefix, Key, NextHop, Pattern, Policies, Policy, Prefix, RouteBy, RowsByLength, Vid};
use hue_wire::ethernet::{self, EtherType};
use hue_wire::{Mac, ip, ipv4, ipv6};
use serde_json::{Value, json};
use zerocopy::IntoBytes;

use crate::Settings;
use crate::labels;
use crate::networks::{PORTS, loaded, names};
use crate::report::{Section, round};
use crate::rib::{V4_2026, V6_2026, host_mask, prefixes};
use crate::rng::Rng;
use crate::stacks;

/// The images with more than one kind, and `default` and `dir`, which have `ipv4` only.
pub const IMAGES: [&str; 4] = ["default", "kinds", "sram", "dir"];
/// Routes of a network: what four networks with random ones have room for.
const ROUTES: [usize; 4] = [1_000, 4_000, 20_000, 12];
/// Frames of a port.
const FRAMES: usize = 6_000;
/// Hosts of a switch behind each port.
const HOSTS: usize = 200;
const FRAME_BYTES: usize = 60;
pub const MTU_BYTES: u16 = 1500;
pub const TTL: u8 = 64;
const LINE_BITS: u64 = 1_000_000_000;
/// Addresses of the benchmarking networks of RFC 5180 §8 and RFC 2544.
const GATEWAY6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0xffff, 0, 0, 0, 0, 1);
const GATEWAY4: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 1);
/// Next hops of a group.
const MEMBERS: u16 = 4;
/// Routes by source of a network.
const POLICIES: [u16; 2] = [8, 48];
/// Networks of kind `extract`: bytes of a key, and entries. The last has as many of both as a network on the card may have.
const BITS: [(u8, u16); 3] = [(6, 4), (6, 64), (16, 64)];
/// Labels of a network of kind `mpls`. The last has as many as a network on the card may have.
const STACKS: [u16; 2] = [4, 64];
/// Networks of kind `rofl`: bits of a label, labels, and whether packets are for one of them.
const LABELS: [(u8, usize, bool); 4] =
    [(32, 1000, true), (32, 1000, false), (128, 1000, true), (128, 1000, false)];

/// What runs on the card at the same time.
enum Mix {
    /// One kind: a network for each port, or one switch on all of them.
    Of(Kind),
    /// A network for each port, of a kind with routes, all of whose routes lead to a group of next hops.
    Grouped(Kind),
    /// A network for each port, of a kind with routes, with so many routes by source and destination.
    BySource(Kind, u16),
    /// A network of kind `rofl` on all ports, with so many labels; its packets are for some of them, or for any label.
    Labels { bits: u8, count: usize, exact: bool },
    /// A network of kind `extract` on all ports, whose keys have so many bytes, with so many entries.
    Bits(u8, u16),
    /// A network of kind `mpls` on all ports, with so many labels.
    Stack(u16),
    /// A switch on all ports; each frame comes from an address that it has not seen.
    Strangers,
    /// `ipv4` from the first port to the second, `ipv6` from the second to the first, a switch on the others.
    All,
}

/// The prefixes that routes are drawn from.
struct Tables {
    v4: Vec<Prefix<u32>>,
    v6: Vec<Prefix<u128>>,
}

/// Cycles a frame, and frames lost at 1 Gbit/s, for each kind of each image; see [`bits`] for `extract`.
pub fn kinds(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let (Some(v4), Some(v6)) = (prefixes(V4_2026), prefixes(V6_2026)) else {
        return Ok(Section::new(title, &COLUMNS));
    };
    let mixes = |has: &Description| -> Vec<Mix> {
        let plain =
            has.kinds.iter().copied().filter(|kind| !matches!(kind, Kind::Extract | Kind::Mpls)).map(Mix::Of);
        let mixed = (has.kinds.len() > 1).then_some(Mix::All);
        let by_source = [Kind::Ipv4, Kind::Ipv6]
            .into_iter()
            .flat_map(|kind| POLICIES.map(|count| Mix::BySource(kind, count)));
        let by_source = by_source.filter(|_| !has.policy_rows.is_none());
        let grouped = [Kind::Ipv4, Kind::Ipv6].into_iter().map(Mix::Grouped).filter(|_| has.group_slots > 0);
        let strangers = has.kinds.contains(&Kind::L2).then_some(Mix::Strangers);
        plain.chain(strangers).chain(grouped).chain(by_source).chain(mixed).collect()
    };
    let mut section = measured(images, settings, title, &Tables { v4, v6 }, mixes)?;
    section.note(
        "Frames of 64 bytes; a port's frames once, as fast as the card takes them, then at line rate. A network with routes is on one port and \
         forwards to the next one; it has random routes of the tables of 2026-05-11, one next hop, and gets packets for random addresses of \
         these routes; `dual` has half of them of each family, and as many packets; `splice` has a quarter of them in each slice, and its packets choose the slice by their identification. A switch has 200 hosts with static addresses behind each port; frames from new addresses go to these, and each gives a note to the driver. \
         The mixture: `ipv4`, `ipv6` and a switch. With groups, all routes of a network lead to one group of next hops at the same port. With routes by source, each network has so many policies (`source_destination`), each from a \
         /24 (`ipv6`: /48) to half of all destinations, and its packets come from all of these sources: a policy decides where the route is shorter.",
    );
    Ok(section)
}

/// The same for networks of kinds `extract` and `mpls`.
pub fn bits(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let mixes = |has: &Description| -> Vec<Mix> {
        let all = BITS.into_iter().filter(|_| has.kinds.contains(&Kind::Extract));
        let stacks = STACKS.into_iter().filter(|_| has.kinds.contains(&Kind::Mpls)).map(Mix::Stack);
        all.map(|(lanes, entries)| Mix::Bits(lanes, entries)).chain(stacks).collect()
    };
    let none = Tables { v4: Vec::new(), v6: Vec::new() };
    let mut section = measured(images, settings, title, &none, mixes)?;
    section.note(
        "Frames of 64 bytes, first as fast as the card takes them, then at line rate. The network has all ports. Its key is the first bytes of a \
         frame. The last four entries say by the destination, or the label, which port a frame leaves by; no frame matches those before.",
    );
    Ok(section)
}

/// The same for networks of kind `rofl`.
pub fn labels(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let mixes = |has: &Description| -> Vec<Mix> {
        let all = LABELS.into_iter().filter(|_| has.kinds.contains(&Kind::Rofl));
        all.map(|(bits, count, exact)| Mix::Labels { bits, count, exact }).collect()
    };
    let none = Tables { v4: Vec::new(), v6: Vec::new() };
    let mut section = measured(images, settings, title, &none, mixes)?;
    section.note(
        "Frames of 64 bytes, first as fast as the card takes them, then at line rate. The network has all ports, and random labels, each behind the \
         router at one of the ports. Packets are for one of the labels (exact), or for random ones, whose closest label has a few bits in common \
         with them.",
    );
    Ok(section)
}

const COLUMNS: [&str; 8] = [
    "image",
    "networks",
    "routes a network",
    "cycles a frame",
    "cycles a frame at 4 × 1 Gbit/s",
    "most Mpps",
    "frames at 4 × 1 Gbit/s",
    "lost",
];

/// Measures the mixes of each image.
fn measured(
    images: &Images,
    settings: &Settings,
    title: &str,
    tables: &Tables,
    mixes: impl Fn(&Description) -> Vec<Mix>,
) -> Result<Section, String> {
    let mut section = Section::new(title, &COLUMNS);
    let folder = std::env::temp_dir().join(format!("hue-bench-card-{}", std::process::id()));
    let frames = if settings.quick { FRAMES / 10 } else { FRAMES };
    let rate = Rate::new(LINE_BITS).ok_or("no rate")?;
    for (image, routes) in IMAGES.into_iter().zip(ROUTES) {
        let has = images.load(image).and_then(|image| image.start()).and_then(hue_card::Card::new);
        let has = has.map_err(|error| format!("{image}: {error}"))?.description().clone();
        for mix in mixes(&has) {
            let mut rng = Rng::new(7);
            let programs = mix.programs(tables, routes, &mut rng).ok_or("no network")?;
            write(&folder, &programs, frames, &mix, &mut rng)?;
            let run = |offer, line| -> Result<Measured, String> {
                let card = loaded(images, image, &programs)?;
                let experiment =
                    Experiment { streams: streams(&folder, offer), duration_us: None, line, wave: None };
                hue_lab::run(card, &names(), &experiment, |_| {}).map_err(|error| error.to_string())
            };
            let busy = run(Offer::Max, None)?;
            let cycles = busy.cycles as f64 / sent(&busy) as f64;
            let line = run(Offer::Rate(rate), Some(rate))?;
            let offered: u64 = line.ports.iter().map(|port| port.offered).sum();
            let khz = f64::from(line.bus.clock_khz);
            let wire_bits = 8.0 * hue_lab::wire_bytes(FRAME_BYTES) as f64;
            section.row(vec![
                json!(image),
                json!(mix.name()),
                if matches!(
                    mix,
                    Mix::Of(Kind::L2) | Mix::Strangers | Mix::Bits(..) | Mix::Stack(_) | Mix::Labels { .. }
                ) {
                    Value::Null
                } else {
                    json!(routes)
                },
                round(cycles, 2),
                round(wire_bits / (f64::from(PORTS) * LINE_BITS as f64 / (khz * 1e3)), 1),
                round(khz / 1e3 / cycles, 1),
                json!(offered),
                json!(offered - sent(&line)),
            ]);
        }
    }
    let cleared = std::fs::remove_dir_all(&folder);
    cleared.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(section)
}

/// Frames that left through ports.
pub fn sent(measured: &Measured) -> u64 {
    measured.ports.iter().map(|port| port.counts.sent).sum()
}

/// The captures in a folder, one for each port.
pub fn streams(folder: &Path, offer: Offer) -> Vec<Stream> {
    let stream = |(port, name): (u8, String)| {
        let source = Source::Capture(folder.join(format!("{name}.pcap")));
        Stream { port: PortId::new(port), traffic: Traffic { offer, source } }
    };
    (0..PORTS).zip(names()).map(stream).collect()
}

impl Mix {
    fn name(&self) -> String {
        match self {
            Self::Of(Kind::L2) => "1 `l2`".to_owned(),
            Self::Of(kind) => format!("{PORTS} `{}`", kind.name()),
            Self::Strangers => "1 `l2`, each frame from a new address".to_owned(),
            Self::Grouped(kind) => format!("{PORTS} `{}`, groups of {MEMBERS} next hops", kind.name()),
            Self::BySource(kind, count) => {
                format!("{PORTS} `{}`, {count} routes by source each", kind.name())
            }
            Self::Bits(lanes, entries) => format!("1 `extract`, {lanes} bytes, {entries} entries"),
            Self::Stack(labels) => format!("1 `mpls`, {labels} labels"),
            Self::Labels { bits, count, exact } => {
                let to = if *exact { "exact" } else { "closest" };
                format!("1 `rofl`, {count} labels of {bits} bits, {to}")
            }
            Self::All => "1 `ipv4`, 1 `ipv6`, 1 `l2`".to_owned(),
        }
    }

    fn programs(&self, tables: &Tables, routes: usize, rng: &mut Rng) -> Option<Vec<Program>> {
        match self {
            Self::Of(Kind::L2) | Self::Strangers => Some(vec![switch(1, &[0, 1, 2, 3])?]),
            Self::Of(kind) => (0..PORTS)
                .map(|port| router(*kind, [port, (port + 1) % PORTS], tables, routes, rng))
                .collect(),
            Self::Grouped(kind) => (0..PORTS)
                .map(|port| grouped(router(*kind, [port, (port + 1) % PORTS], tables, routes, rng)?))
                .collect(),
            Self::BySource(kind, count) => (0..PORTS)
                .map(|port| {
                    let plain = router(*kind, [port, (port + 1) % PORTS], tables, routes, rng)?;
                    by_source(plain, *count)
                })
                .collect(),
            Self::Bits(lanes, entries) => Some(vec![by_bits(*lanes, *entries)?]),
            Self::Stack(labels) => Some(vec![stacks::network(*labels)?]),
            Self::Labels { bits, count, .. } => Some(vec![labels::network(*bits, *count, rng)?]),
            Self::All => Some(vec![
                router(Kind::Ipv4, [0, 1], tables, routes, rng)?,
                router(Kind::Ipv6, [1, 0], tables, routes, rng)?,
                switch(3, &[2, 3])?,
            ]),
        }
    }
}

/// A network that forwards from one port to another.
fn router(kind: Kind, [from, to]: [u8; 2], tables: &Tables, routes: usize, rng: &mut Rng) -> Option<Program> {
    let net = u16::from(from) + 1;
    let (v4, v6) = match kind {
        Kind::Dual => (routes / 2, routes / 2),
        _ => (routes, routes),
    };
    let entries = match kind {
        Kind::Ipv6 => Entries::Lpm128(drawn(&tables.v6, v6, rng)?),
        Kind::Splice => Entries::Sliced(sliced(&drawn(&tables.v4, v4, rng)?)),
        Kind::Dual => Entries::Dual(drawn(&tables.v4, v4, rng)?, drawn(&tables.v6, v6, rng)?),
        _ => Entries::Lpm32(drawn(&tables.v4, v4, rng)?),
    };
    let hop = Adjacency::forward(PortId::new(to), mac(net, to), Mac([2, 0, 1, 0, net as u8, to]), MTU_BYTES);
    let select = |port| Match::Mac { port: PortId::new(port), mac: mac(net, port) };
    program(net, kind, &[from, to], select, vec![hop], entries)
}

/// The same routes, each in a slice of the default number, in turn.
fn sliced(routes: &[(Prefix<u32>, NextHop)]) -> Vec<(Prefix<u128>, NextHop)> {
    let slices = (0..SLICES.default).cycle();
    routes
        .iter()
        .zip(slices)
        .map(|((prefix, hop), slice)| (SlicedPrefix { slice, prefix: *prefix }.wide(), *hop))
        .collect()
}

/// The same network with a group in place of its only next hop. All members are at the same port, so only the neighbour differs.
fn grouped(plain: Program) -> Option<Program> {
    let [only] = plain.next_hops[..] else { return None };
    let to = |last: u16| {
        let Mac([head @ .., _]) = only.dst();
        let [a, b, c, d, e] = head;
        Adjacency::forward(only.port(), only.src(), Mac([a, b, c, d, e, 0x40 | last as u8]), MTU_BYTES)
    };
    let member = |row| Some(Member { row: NextHop::new(row)?, weight: 1 });
    let group = Group::new(&(1..=MEMBERS).map(member).collect::<Option<Vec<_>>>()?)?;
    let next_hops = std::iter::once(Adjacency::group(0)).chain((1..=MEMBERS).map(to)).collect();
    Some(Program { next_hops, groups: vec![(NextHop::new(0)?, group.slots().clone())], ..plain })
}

/// The same network with routes by source to a gateway behind its only next hop.
fn by_source(plain: Program, count: u16) -> Option<Program> {
    fn numbered<K: Key>(routes: Vec<(Prefix<K>, NextHop)>, gateway: K) -> Option<Vec<(Prefix<K>, NextHop)>> {
        let own = [Prefix::containing(gateway, K::BITS)];
        let all = routes.into_iter().map(|(prefix, _)| prefix).filter(|prefix| *prefix != own[0]).chain(own);
        all.map(|prefix| Some((prefix, RowsByLength::<K>::row(0, prefix.len())?))).collect()
    }
    let (entries, each) = match plain.entries {
        Entries::Lpm32(routes) => {
            (Entries::Lpm32(numbered(routes, GATEWAY4.to_bits())?), RowsByLength::<u32>::EACH)
        }
        Entries::Lpm128(routes) => {
            (Entries::Lpm128(numbered(routes, GATEWAY6.to_bits())?), RowsByLength::<u128>::EACH)
        }
        _ => return None,
    };
    let wide = matches!(entries, Entries::Lpm128(_));
    let policy = |number: u16| {
        let half = if number.is_multiple_of(2) { 0 } else { 0x80 };
        match wide {
            false => Policy {
                from: AnyPrefix::containing(source4(number).into(), 24),
                to: AnyPrefix::containing(Ipv4Addr::new(half, 0, 0, 0).into(), 1),
                via: GATEWAY4.into(),
            },
            true => Policy {
                from: AnyPrefix::containing(source6(number).into(), 48),
                to: AnyPrefix::containing(Ipv6Addr::new(u16::from(half) << 8, 0, 0, 0, 0, 0, 0, 0).into(), 1),
                via: GATEWAY6.into(),
            },
        }
    };
    let policies = Policies {
        by: RouteBy::SourceDestination,
        links: Vec::new(),
        list: (0..count).map(policy).collect(),
    };
    let next_hops = plain.next_hops.iter().flat_map(|hop| std::iter::repeat_n(*hop, each.into())).collect();
    Some(Program { entries, next_hops, policies: Some(policies), ..plain })
}

/// A source of packets: that of a policy.
const fn source4(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, number as u8, 1)
}

/// See [`source4`].
const fn source6(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 2, number, 0, 0, 0, 0, 1)
}

/// A switch whose hosts are known.
fn switch(net: u16, ports: &[u8]) -> Option<Program> {
    let hops = ports.iter().map(|&port| Adjacency::out(PortId::new(port), MTU_BYTES)).collect();
    let mut known = Vec::with_capacity(ports.len() * HOSTS);
    for (index, &port) in ports.iter().enumerate() {
        let out = NextHop::new(u16::try_from(index).ok()?)?;
        known.extend((0..HOSTS).map(|number| (host(port, number), out)));
    }
    let select = |port| Match::Port(PortId::new(port));
    program(net, Kind::L2, ports, select, hops, Entries::Exact(known))
}

/// A network on all ports that forwards by the first bytes of a frame.
fn by_bits(lanes: u8, entries: u16) -> Option<Program> {
    let lanes: Vec<Lane> = (0..lanes).map(|offset| Lane { offset, mask: 0xff }).collect();
    let settings = extract::Settings::new(&lanes).ok()?;
    let ports: Vec<u8> = (0..PORTS).collect();
    let hops =
        ports.iter().map(|&port| Adjacency::out_with(PortId::new(port), MTU_BYTES, None, None)).collect();
    let value = |first: [u8; 6]| first.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte)) << 80;
    let others = (0..entries.saturating_sub(PORTS.into())).map(|number| {
        let [high, low] = number.to_be_bytes();
        Some((Pattern::new(value([3, 0, 0, 0, high, low]), settings.mask()), NextHop::new(0)?))
    });
    let behind = ports.iter().map(|&port| {
        let Mac(mac) = host(port, 0);
        Some((Pattern::new(value(mac), settings.prefix_mask(40)), NextHop::new(port.into())?))
    });
    let all: Vec<_> = others.chain(behind).collect::<Option<_>>()?;
    let select = |port| Match::Port(PortId::new(port));
    let plain = program(1, Kind::Extract, &ports, select, hops, Entries::Ternary(all))?;
    Some(Program { settings: PlaneSettings::Extract(settings), ..plain })
}

pub fn program(
    net: u16,
    kind: Kind,
    on: &[u8],
    select: impl Fn(u8) -> Match,
    next_hops: Vec<Adjacency>,
    entries: Entries,
) -> Option<Program> {
    let vid = Vid::new(net)?;
    let vport = |&port: &u8| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: mac(net, port),
        mtu_bytes: MTU_BYTES,
        tunnel: None,
    };
    Some(Program {
        vid,
        name: format!("n{net}"),
        settings: PlaneSettings::of(kind),
        ports: on.iter().map(vport).collect(),
        rows: (0..).zip(on).map(|(vport, &port)| Row { vid, vport, select: select(port) }).collect(),
        next_hops,
        groups: Vec::new(),
        entries,
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    })
}

pub fn mac(net: u16, port: u8) -> Mac {
    Mac([0x02, 0, 0, 0, net as u8, port])
}

pub fn host(port: u8, number: usize) -> Mac {
    Mac([0x02, 0x6c, 0, 0, port, number as u8])
}

/// Random routes of a table, each once, to the first next hop.
fn drawn<K: Key>(from: &[Prefix<K>], count: usize, rng: &mut Rng) -> Option<Vec<(Prefix<K>, NextHop)>> {
    let mut all = from.to_vec();
    for at in 0..count.min(all.len()) {
        let other = at + rng.below(all.len() - at);
        all.swap(at, other);
    }
    all.truncate(count);
    let hop = NextHop::new(0)?;
    Some(all.into_iter().map(|prefix| (prefix, hop)).collect())
}

/// Writes a capture for each port: frames of its networks, from their hosts or each from an address of its own.
fn write(folder: &Path, programs: &[Program], frames: usize, mix: &Mix, rng: &mut Rng) -> Result<(), String> {
    let (strangers, exact) = (matches!(mix, Mix::Strangers), matches!(mix, Mix::Labels { exact: true, .. }));
    let fault = |error: hue_ports::PortError| error.to_string();
    let mut out = OutputDir::open(folder).map_err(fault)?;
    for (port, name) in (0..PORTS).zip(names()) {
        let file = out.add(&format!("{name}.pcap"), Resolution::Nano).map_err(fault)?;
        let capture = out.writer(file).ok_or("no capture")?;
        // A router gets frames at its first port only.
        let here = |program: &&Program| match program.entries {
            Entries::Exact(_) | Entries::Ternary(_) | Entries::Nearest(_) => {
                program.ports.iter().any(|vport| vport.port.get() == port)
            }
            _ => program.ports.first().is_some_and(|vport| vport.port.get() == port),
        };
        let program = programs.iter().find(here).ok_or("a port without a network")?;
        for number in 0..frames {
            let mut bytes = match program.kind() {
                Kind::Mpls => stacks::frame(port),
                Kind::Rofl => labels::frame(program, port, exact, FRAME_BYTES, rng),
                _ => frame(program, port, number, rng),
            };
            bytes.resize(FRAME_BYTES, 0);
            if strangers {
                let [high, low] = (number as u16).to_be_bytes();
                bytes[6..12].copy_from_slice(&[2, 0x6d, port, 0, high, low]);
            }
            let frame = Frame { bytes: &bytes, time_ns: number as u64, wire_len: FRAME_BYTES as u32 };
            capture.write(frame).map_err(fault)?;
        }
    }
    out.commit().map_err(fault)?;
    Ok(())
}

/// A frame of a network at a port, without padding.
fn frame(program: &Program, port: u8, number: usize, rng: &mut Rng) -> Vec<u8> {
    let net = program.vid.get();
    let from = host(port, rng.below(HOSTS));
    let ethernet = |to, kind| ethernet::Header::new(to, from, kind);
    let mut bytes = Vec::with_capacity(FRAME_BYTES);
    let payload = |header: usize| (FRAME_BYTES - ethernet::HEADER_BYTES - header) as u16;
    let (narrow, wide): (&[_], &[_]) = match &program.entries {
        Entries::Lpm32(routes) => (routes, &[]),
        Entries::Lpm128(routes) => (&[], routes),
        Entries::Sliced(routes) => {
            // Atomic, so the lowest bits of the identification name the slice of the route.
            let (prefix, _) = routes[rng.below(routes.len())];
            let (slice, to) =
                slice::address_of(Ipv6Addr::from_bits(within(prefix, rng)).into()).unwrap_or((0, GATEWAY4));
            let mut header = ipv4::Header::new(source4(0), to, ip::Protocol::UDP, TTL, payload(0));
            header.identification = (rng.bits() as u16 & !3 | u16::from(slice)).into();
            header.flags_fragment = ipv4::FLAG_DONT_FRAGMENT.into();
            header.fill_checksum_plain();
            bytes.extend_from_slice(ethernet(mac(net, port), EtherType::IPV4).as_bytes());
            bytes.extend_from_slice(header.as_bytes());
            return bytes;
        }
        Entries::Dual(narrow, _) if number.is_multiple_of(2) => (narrow, &[]),
        Entries::Dual(_, wide) => (&[], wide),
        Entries::Exact(_) | Entries::Ternary(_) | Entries::Nearest(_) | Entries::None => {
            let others: Vec<u8> =
                program.ports.iter().map(|vport| vport.port.get()).filter(|at| *at != port).collect();
            let to = host(others[rng.below(others.len())], rng.below(HOSTS));
            bytes.extend_from_slice(ethernet(to, EtherType::IPV4).as_bytes());
            return bytes;
        }
    };
    let sources = program.policies.as_ref().map_or(1, |policies| policies.list.len());
    let of = (number % sources) as u16;
    if wide.is_empty() {
        let (prefix, _) = narrow[rng.below(narrow.len())];
        let to = Ipv4Addr::from_bits((within(prefix, rng) >> 96) as u32);
        let length = payload(0);
        bytes.extend_from_slice(ethernet(mac(net, port), EtherType::IPV4).as_bytes());
        bytes
            .extend_from_slice(ipv4::Header::new(source4(of), to, ip::Protocol::UDP, TTL, length).as_bytes());
    } else {
        let (prefix, _) = wide[rng.below(wide.len())];
        let to = Ipv6Addr::from_bits(within(prefix, rng));
        let length = payload(ipv6::HEADER_BYTES);
        bytes.extend_from_slice(ethernet(mac(net, port), EtherType::IPV6).as_bytes());
        bytes
            .extend_from_slice(ipv6::Header::new(source6(of), to, ip::Protocol::UDP, TTL, length).as_bytes());
    }
    bytes
}

/// A random address of a prefix, in the upper bits.
fn within<K: Key>(prefix: Prefix<K>, rng: &mut Rng) -> u128 {
    let host = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
    prefix.addr().to_bits() | host & host_mask(prefix.len())
}
