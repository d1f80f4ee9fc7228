//! How many 64-byte packets per second one engine processes, from parsing to rewritten bytes and counters.
//!
//! `cargo run --release -p hue-soft --example throughput -- [NETWORKS[,NETWORKS…]] [ROUTES-FILE]`: networks (default
//! `1,15`), and a text file with a prefix at the start of each line (default: 16 routes of /8). Each network has its own next hop
//! for each route; packets take turns over networks at random, destinations are drawn from the table. The runs are
//! interleaved; median, tenth and ninetieth percentile of short passes are printed. Compare within one run only.

use std::hint::black_box;
use std::time::Instant;

use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Settings, ipv4::Outcome};
use hue_soft::{BATCH_MAX, Frame, Soft};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{Limits, NextHop, Prefix4, Vid};
use hue_wire::Mac;

const PACKETS: usize = 8192;
const PACKET_BYTES: usize = 64;
const HOPS: u16 = 256;
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

fn program(vid: u16, prefixes: &[Prefix4]) -> Result<Program, Error> {
    let vid_ = Vid::new(vid).ok_or("network id")?;
    let ports: Vec<_> = (0..4u8)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: router_mac(vid, port),
            mtu_bytes: 1500,
        })
        .collect();
    let rows = ports
        .iter()
        .zip(0u16..)
        .map(|(port, vport)| Row { vid: vid_, vport, select: Match::Mac { port: port.port, mac: port.mac } })
        .collect();
    let next_hops = (0..HOPS)
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
    let hop_of = |prefix: &Prefix4| {
        let mix = (u64::from(prefix.addr() >> 12) << 12 | u64::from(vid)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        NextHop::new((mix >> 40) as u16 % HOPS)
    };
    let routes = prefixes.iter().filter_map(|prefix| Some((*prefix, hop_of(prefix)?))).collect();
    let name = format!("net{vid}");
    Ok(Program {
        vid: vid_,
        name,
        settings: Settings::of(Kind::Ipv4),
        ports,
        rows,
        next_hops,
        entries: Entries::Lpm32(routes),
        rate_limit: None,
        weight: 1,
        gated: false,
    })
}

fn packet(random: &mut Random, vid: u16, prefixes: &[Prefix4]) -> (PortId, [u8; PACKET_BYTES]) {
    let port = random.below(4) as u8;
    let prefix = prefixes[random.below(prefixes.len())];
    let host = random.next() as u32 & (prefix.last() ^ prefix.addr());
    let mut bytes = [0; PACKET_BYTES];
    bytes[..6].copy_from_slice(&router_mac(vid, port).0);
    bytes[6..12].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
    bytes[12..26].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0]);
    // Source addresses that hosts can have, because packets from others are dropped.
    bytes[26..30].copy_from_slice(&(0x0a00_0000 | random.below(1 << 24) as u32).to_be_bytes());
    bytes[30..34].copy_from_slice(&(prefix.addr() | host).to_be_bytes());
    let checksum = hue_wire::checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    (PortId::new(port), bytes)
}

struct Bench {
    networks: u16,
    soft: Soft,
    buffer: Vec<u8>,
    frames: Vec<Frame>,
    /// Packets per second of each pass, in millions.
    rates: Vec<f64>,
}

impl Bench {
    fn new(networks: u16, prefixes: &[Prefix4]) -> Result<Self, Error> {
        let mut soft = Soft::new(Limits::default())?;
        for vid in 1..=networks {
            soft.load(&[program(vid, prefixes)?])?;
        }
        let mut random = Random(88_172_645_463_325_252);
        let (mut buffer, mut frames) = (Vec::new(), Vec::new());
        for index in 0..PACKETS {
            let vid = random.below(usize::from(networks)) as u16 + 1;
            let (port, bytes) = packet(&mut random, vid, prefixes);
            frames.push(Frame::new(port, 0, (index * PACKET_BYTES) as u32, PACKET_BYTES as u32));
            buffer.extend(bytes);
        }
        Ok(Self { networks, soft, buffer, frames, rates: Vec::new() })
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

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let counts = args.next().unwrap_or_else(|| "1,15".to_owned());
    let prefixes: Vec<Prefix4> = match args.next() {
        Some(path) => {
            let text = std::fs::read_to_string(path)?;
            text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
        }
        None => (1..17u32).map(|top| Prefix4::containing(top << 24, 8)).collect(),
    };
    let mut benches = Vec::new();
    for count in counts.split(',') {
        benches.push(Bench::new(count.parse()?, &prefixes)?);
    }
    let fresh: Vec<_> = benches.iter().map(|bench| bench.buffer.clone()).collect();
    for _ in 0..ROUNDS {
        for (bench, fresh) in benches.iter_mut().zip(&fresh) {
            bench.round(fresh);
        }
    }
    println!(
        "{} routes a network, {} B of table image",
        prefixes.len(),
        benches[0].soft.capacity().table_bytes
    );
    for bench in &mut benches {
        bench.rates.sort_by(f64::total_cmp);
        let forwarded: u64 = (1..=bench.networks)
            .filter_map(|vid| bench.soft.counters(Vid::new(vid)?))
            .map(|counters| counters.get(Outcome::Forward))
            .sum();
        println!(
            "{:4} networks: median {:6.2} Mpps, {:6.2} to {:6.2}; {forwarded} forwarded, table {:.1} MB",
            bench.networks,
            bench.rates[bench.rates.len() / 2],
            bench.rates[bench.rates.len() / 10],
            bench.rates[bench.rates.len() * 9 / 10],
            bench.soft.capacity().table_bytes as f64 / 1e6,
        );
    }
    Ok(())
}
