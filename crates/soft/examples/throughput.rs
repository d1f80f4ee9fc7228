//! How many 64-byte packets per second one engine processes, from parsing to rewritten bytes and counters.
//!
//! `cargo run --release -p hue-soft --example throughput -- [NETWORKS[,NETWORKS…]] [ROUTES-FILE [ROUTES-FILE]]`: networks
//! (default `1,15`), and text files with a prefix at the start of each line (default: 16 IPv4 routes of /8). With IPv6 routes
//! too, each number of networks runs with networks of one kind, and of several in turn. Each network has
//! its own next hop for each route; packets take turns over networks at random, destinations are drawn from the table. The
//! runs are interleaved; median, tenth and ninetieth percentile of short passes are printed. Compare within one run only.

use std::hint::black_box;
use std::time::Instant;

use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Settings, splice};
use hue_soft::{BATCH_MAX, Frame, Soft};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{AnyPrefix, Key, Limits, NextHop, Pattern, Prefix, Prefix4, Prefix6, Vid};
use hue_wire::Mac;

const PACKETS: usize = 8192;
const PACKET_BYTES: usize = 64;
const HOPS: u16 = 256;
/// Entries of an `extract` network for each port: as many as there can be, each of the first 64 bits of a frame.
const ENTRIES: u16 = 4096;
/// Hosts behind each port of an `l2` network.
const HOSTS: usize = 64;
const ROUNDS: usize = 15;
const ROUND_PACKETS: usize = 4 << 20;

type Error = Box<dyn std::error::Error>;

/// xorshift64*: the same packets in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn router_mac(vid: u16, port: u8) -> Mac {
    let [high, low] = vid.to_be_bytes();
    Mac([2, 0, port, 0, high, low])
}

/// The routes that all networks of a family have.
struct Routes {
    ipv4: Vec<Prefix4>,
    ipv6: Vec<Prefix6>,
}

/// A next hop for each route, which differs between networks.
fn with_hops<K: Key>(prefixes: &[Prefix<K>], vid: u16) -> Vec<(Prefix<K>, NextHop)> {
    let hop_of = |prefix: &Prefix<K>| {
        // Of the first bits only, as in real tables: neighbouring routes often have the same next hop.
        let top = (prefix.addr().to_bits() >> 108) as u64;
        let mix = (top << 12 | u64::from(vid)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        NextHop::new((mix >> 40) as u16 % HOPS)
    };
    prefixes.iter().filter_map(|prefix| Some((*prefix, hop_of(prefix)?))).collect()
}

fn program(vid: u16, kind: Kind, routes: &Routes) -> Result<Program, Error> {
    let vid_ = Vid::new(vid).ok_or("network id")?;
    let ports: Vec<_> = (0..4u8)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: router_mac(vid, port),
            mtu_bytes: 1500,
            tunnel: None,
        })
        .collect();
    let rows = ports
        .iter()
        .zip(0u16..)
        .map(|(port, vport)| Row { vid: vid_, vport, select: Match::Mac { port: port.port, mac: port.mac } })
        .collect();
    let routers: Vec<Adjacency> = (0..HOPS)
        .map(|hop| {
            let port = (hop % 4) as u8;
            let [high, low] = hop.to_be_bytes();
            Adjacency::forward(
                PortId::new(port),
                router_mac(vid, port),
                Mac([2, 1, vid as u8, port, high, low]),
                1500,
            )
        })
        .collect();
    let entries = match Entries::none(kind) {
        Entries::Lpm32(_) => Entries::Lpm32(with_hops(&routes.ipv4, vid)),
        Entries::Lpm128(_) => Entries::Lpm128(with_hops(&routes.ipv6, vid)),
        Entries::Dual(..) => Entries::Dual(with_hops(&routes.ipv4, vid), with_hops(&routes.ipv6, vid)),
        // The same routes in each slice; frames without splicing bits use slice 0.
        Entries::Sliced(_) => Entries::Sliced(
            (0..splice::SLICES_DEFAULT)
                .flat_map(|slice| {
                    let routes = with_hops(&routes.ipv4, vid).into_iter();
                    routes.map(move |(prefix, hop)| (SlicedPrefix { slice, prefix }.wide(), hop))
                })
                .collect(),
        ),
        Entries::None => Entries::None,
        // The destinations are static entries, because design select finds frames by them; senders are learnt.
        Entries::Exact(_) => Entries::Exact(
            (0..4u8)
                .filter_map(|port| Some((router_mac(vid, port), NextHop::new((u16::from(port) + 1) % 4)?)))
                .collect(),
        ),
        Entries::Ternary(_) => {
            let entry = |port: u8, number: u16| {
                let Mac(mac) = router_mac(vid, port);
                let key = [&mac[..], &number.to_be_bytes(), &[0; 8]].concat();
                let value = key.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
                Some((Pattern::new(value, u128::MAX << 64), NextHop::new((number + 1) % HOPS)?))
            };
            let all = (0..4u8).flat_map(|port| (0..ENTRIES).map(move |number| (port, number)));
            Entries::Ternary(all.filter_map(|(port, number)| entry(port, number)).collect())
        }
    };
    let next_hops = match kind {
        Kind::L2 => ports.iter().map(|port| Adjacency::out(port.port, port.mtu_bytes)).collect(),
        Kind::Extract => routers
            .iter()
            .map(|row| Adjacency::out_with(row.port(), 1500, Some(row.dst()), Some(row.src())))
            .collect(),
        _ => routers,
    };
    let name = format!("net{vid}");
    Ok(Program {
        vid: vid_,
        name,
        settings: Settings::of(kind),
        ports,
        rows,
        next_hops,
        groups: Vec::new(),
        entries,
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    })
}

/// An address of a route that is drawn at random.
fn destination<K: Key>(random: &mut Random, prefixes: &[Prefix<K>]) -> K {
    let prefix = prefixes[random.below(prefixes.len())];
    let host = u128::from(random.next()) << 64 | u128::from(random.next());
    let (first, last) = (prefix.addr().to_bits(), prefix.last().to_bits());
    K::from_bits(first | host & (last ^ first))
}

fn packet(random: &mut Random, vid: u16, kind: Kind, routes: &Routes) -> (PortId, [u8; PACKET_BYTES]) {
    let port = random.below(4) as u8;
    // A network of both families gets as many packets of one as of the other.
    let kind = match kind {
        Kind::Dual => [Kind::Ipv4, Kind::Ipv6][random.below(2)],
        kind => kind,
    };
    let mut bytes = [0; PACKET_BYTES];
    bytes[..6].copy_from_slice(&router_mac(vid, port).0);
    bytes[6..12].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
    // Source addresses that hosts can have, because packets from others are dropped.
    match kind {
        Kind::Ipv4 | Kind::Splice => {
            bytes[12..26].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0]);
            if kind == Kind::Splice {
                // Each in another slice, with bits for all hops.
                bytes[18..20].copy_from_slice(&(random.next() as u16).to_be_bytes());
                bytes[20] = 0x40;
            }
            bytes[30..34].copy_from_slice(&destination(random, &routes.ipv4).to_be_bytes());
            bytes[26..30].copy_from_slice(&(0x0a00_0000 | random.below(1 << 24) as u32).to_be_bytes());
            let checksum = hue_wire::checksum::full(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
        Kind::Ipv6 => {
            bytes[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 10, 17, 64]);
            bytes[38..54].copy_from_slice(&destination(random, &routes.ipv6).to_be_bytes());
            let source = 0x2001_0db8_u128 << 96 | u128::from(random.next());
            bytes[22..38].copy_from_slice(&source.to_be_bytes());
        }
        Kind::Extract => bytes[6..8].copy_from_slice(&(random.below(ENTRIES.into()) as u16).to_be_bytes()),
        _ => {
            // Frames are selected by MAC address here, as those of the other kinds are, so the destination is the network's
            // own, and a static entry: a port of another number than that of arrival.
            let [high, low] = vid.to_be_bytes();
            let host = random.below(HOSTS) as u16;
            bytes[6..12].copy_from_slice(&[2, 9, high, low, port, host as u8]);
        }
    }
    (PortId::new(port), bytes)
}

struct Bench {
    /// The kind of each network.
    kinds: Vec<Kind>,
    soft: Soft,
    buffer: Vec<u8>,
    frames: Vec<Frame>,
    /// Packets per second of each pass, in millions.
    rates: Vec<f64>,
}

impl Bench {
    /// Networks of these kinds in turn.
    fn new(networks: usize, turn: &[Kind], routes: &Routes) -> Result<Self, Error> {
        let mut soft = Soft::new(Limits::default())?;
        let kinds: Vec<Kind> = turn.iter().copied().cycle().take(networks).collect();
        for (vid, kind) in (1..).zip(&kinds) {
            soft.load(&[program(vid, *kind, routes)?])?;
        }
        let mut random = Random(88_172_645_463_325_252);
        let (mut buffer, mut frames) = (Vec::new(), Vec::new());
        for index in 0..PACKETS {
            let at = random.below(networks);
            let (port, bytes) = packet(&mut random, at as u16 + 1, kinds[at], routes);
            frames.push(Frame::new(port, 0, (index * PACKET_BYTES) as u32, PACKET_BYTES as u32));
            buffer.extend(bytes);
        }
        Ok(Self { kinds, soft, buffer, frames, rates: Vec::new() })
    }

    /// The engine has rewritten all packets; restore them so that they can be received again.
    fn restore(&mut self, fresh: &[u8]) {
        self.buffer.copy_from_slice(fresh);
    }

    /// Measures passes over all packets. A pass is short (a fraction of a millisecond), so that most of them are not
    /// interrupted, and the median is one of those.
    fn round(&mut self, fresh: &[u8]) {
        for _ in 0..ROUND_PACKETS / PACKETS {
            self.restore(fresh);
            let start = Instant::now();
            let (buffer, frames) = (&mut self.buffer, &mut self.frames);
            for batch in frames.chunks_mut(BATCH_MAX) {
                black_box(self.soft.process(buffer, batch));
            }
            self.rates.push(PACKETS as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
    }
}

/// The prefixes of files; without files 16 of IPv4.
fn read(files: impl Iterator<Item = String>) -> Result<Routes, Error> {
    let mut routes = Routes { ipv4: Vec::new(), ipv6: Vec::new() };
    for path in files {
        let text = std::fs::read_to_string(path)?;
        for prefix in text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()) {
            match prefix {
                AnyPrefix::V4(prefix) => routes.ipv4.push(prefix),
                AnyPrefix::V6(prefix) => routes.ipv6.push(prefix),
            }
        }
    }
    if routes.ipv4.is_empty() && routes.ipv6.is_empty() {
        routes.ipv4 = (1..17u32).map(|top| Prefix4::containing(top << 24, 8)).collect();
    }
    Ok(routes)
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let counts = args.next().unwrap_or_else(|| "1,15".to_owned());
    let routes = read(args)?;
    let turns: &[&[Kind]] = match (routes.ipv4.is_empty(), routes.ipv6.is_empty()) {
        (false, true) => &[&[Kind::Ipv4], &[Kind::L2], &[Kind::Extract]],
        (true, _) => &[&[Kind::Ipv6]],
        (false, false) => &[
            &[Kind::Ipv4],
            &[Kind::Ipv6],
            &[Kind::L2],
            &[Kind::Dual],
            &[Kind::Extract],
            &[Kind::Ipv4, Kind::Ipv6],
            &[Kind::Ipv4, Kind::Ipv6, Kind::L2],
        ],
    };
    let mut benches = Vec::new();
    for count in counts.split(',') {
        let count = count.parse()?;
        // One network is of one kind.
        for turn in turns.iter().filter(|turn| turn.len() <= count) {
            benches.push(Bench::new(count, turn, &routes)?);
        }
    }
    let fresh: Vec<_> = benches.iter().map(|bench| bench.buffer.clone()).collect();
    for _ in 0..ROUNDS {
        for (bench, fresh) in benches.iter_mut().zip(&fresh) {
            bench.round(fresh);
        }
    }
    println!("{} IPv4 and {} IPv6 routes a network", routes.ipv4.len(), routes.ipv6.len());
    for bench in &mut benches {
        bench.rates.sort_by(f64::total_cmp);
        let counted = |(vid, _)| Some(bench.soft.counters(Vid::new(vid)?)?.forwarded());
        let forwarded: u64 = (1..).zip(&bench.kinds).filter_map(counted).sum();
        let of = |kind: Kind| bench.kinds.iter().filter(|one| **one == kind).count();
        println!(
            "{:4} ipv4, {:4} ipv6, {:4} l2, {:4} dual, {:4} extract: median {:6.2} Mpps, {:6.2} to {:6.2}; {forwarded} forwarded, table {:.1} MB",
            of(Kind::Ipv4),
            of(Kind::Ipv6),
            of(Kind::L2),
            of(Kind::Dual),
            of(Kind::Extract),
            bench.rates[bench.rates.len() / 2],
            bench.rates[bench.rates.len() / 10],
            bench.rates[bench.rates.len() * 9 / 10],
            bench.soft.capacity().table_bytes as f64 / 1e6,
        );
    }
    Ok(())
}
