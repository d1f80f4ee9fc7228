//! How many 64-byte packets per second one engine processes, from parsing to rewritten bytes and counters.
//!
//! `cargo run --release -p hue-soft --example throughput -- [NETWORKS[,NETWORKS…]] [ROUTES-FILE [ROUTES-FILE]]`: networks
//! (default `1,15`), and text files with a prefix at the start of each line (default: 16 IPv4 routes of /8). With IPv6 routes
//! too, each number of networks runs with networks of one kind, and of several in turn. Each network has
//! its own next hop for each route; packets take turns over networks at random, destinations are drawn from the table. The
//! runs are interleaved; median, tenth and ninetieth percentile of short passes are printed. Compare within one run only.

mod worlds;

use std::time::Instant;

use hue_planes::Kind;
use hue_soft::Soft;
use hue_substrate::Substrate;
use hue_tables::{AnyPrefix, Limits, Prefix4};
use worlds::{PACKETS, Routes, World};

const ROUNDS: usize = 15;
const ROUND_PACKETS: usize = 4 << 20;

type Error = Box<dyn std::error::Error>;

struct Bench {
    world: World,
    /// Packets per second of each pass, in millions.
    rates: Vec<f64>,
}

impl Bench {
    /// Measures passes over all packets. A pass is short (a fraction of a millisecond), so that most of them are not
    /// interrupted, and the median is one of those.
    fn round(&mut self) {
        for _ in 0..ROUND_PACKETS / PACKETS {
            self.world.restore();
            let start = Instant::now();
            self.world.pass();
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
        (false, true) => {
            &[&[Kind::Ipv4], &[Kind::L2], &[Kind::Extract], &[Kind::Rofl], &[Kind::Splice], &[Kind::Mpls]]
        }
        (true, _) => &[&[Kind::Ipv6]],
        (false, false) => &[
            &[Kind::Ipv4],
            &[Kind::Ipv6],
            &[Kind::L2],
            &[Kind::Dual],
            &[Kind::Extract],
            &[Kind::Rofl],
            &[Kind::Splice],
            &[Kind::Mpls],
            &[Kind::Ipv4, Kind::Ipv6],
            &[Kind::Ipv4, Kind::Ipv6, Kind::L2],
        ],
    };
    let mut benches = Vec::new();
    for count in counts.split(',') {
        let count = count.parse()?;
        // One network is of one kind.
        for turn in turns.iter().filter(|turn| turn.len() <= count) {
            benches.push(Bench {
                world: World::new(Soft::new(Limits::default())?, count, turn, &routes)?,
                rates: Vec::new(),
            });
        }
    }
    for _ in 0..ROUNDS {
        benches.iter_mut().for_each(Bench::round);
    }
    println!("{} IPv4 and {} IPv6 routes a network", routes.ipv4.len(), routes.ipv6.len());
    for bench in &mut benches {
        bench.rates.sort_by(f64::total_cmp);
        let (world, forwarded) = (&bench.world, bench.world.forwarded());
        println!(
            "{:4} ipv4, {:4} ipv6, {:4} l2, {:4} dual, {:4} extract, {:4} rofl, {:4} splice, {:4} mpls: median {:6.2} Mpps, {:6.2} to {:6.2}; {forwarded} forwarded, table {:.1} MB",
            world.networks_of(Kind::Ipv4),
            world.networks_of(Kind::Ipv6),
            world.networks_of(Kind::L2),
            world.networks_of(Kind::Dual),
            world.networks_of(Kind::Extract),
            world.networks_of(Kind::Rofl),
            world.networks_of(Kind::Splice),
            world.networks_of(Kind::Mpls),
            bench.rates[bench.rates.len() / 2],
            bench.rates[bench.rates.len() / 10],
            bench.rates[bench.rates.len() * 9 / 10],
            world.soft.capacity().table_bytes as f64 / 1e6,
        );
    }
    Ok(())
}
