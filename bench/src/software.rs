//! Whole packets of each kind of plane in software: networks of one kind, and of all kinds, beside networks of `ipv4`. 64-byte
//! packets in a flat buffer, one core.
//!
//! The kinds `kernel` and `process` are not here: programs outside the engine forward for them (`live-kinds`).

#[path = "../../crates/soft/examples/throughput/worlds.rs"]
mod worlds;

use hue_planes::Kind;
use hue_soft::Soft;
use hue_tables::{Key, Limits, Prefix};
use serde_json::json;

use crate::dpdk::Dpdk;
use crate::measure::{interleave, seconds};
use crate::report::{Report, Section, millions, round};
use crate::rib;
use crate::rng::Rng;
use crate::{Failure, Settings};
use worlds::{PACKETS, Routes, World};

/// The kinds, the one to compare with first.
const KINDS: [Kind; 8] =
    [Kind::Ipv4, Kind::Ipv6, Kind::Dual, Kind::L2, Kind::Extract, Kind::Rofl, Kind::Splice, Kind::Mpls];
/// Networks of a mixture.
const MANY: usize = 15;
/// Routes of each of many networks, of IPv4 and of IPv6.
const PART: [usize; 2] = [100_000, 25_000];
const COLUMNS: [&str; 6] = ["networks", "ns a packet", "Mpps median", "min", "max", "of ipv4"];

/// One network of each kind on full tables, and many of one kind or of all on parts of them.
///
/// # Errors
/// When the engine refuses a network, or does not forward a packet.
pub fn all(_: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let (Some(ipv4), Some(ipv6)) = (rib::prefixes::<u32>(rib::V4_2026), rib::prefixes::<u128>(rib::V6_2026))
    else {
        return Ok(());
    };
    let mut rng = Rng::new(6);
    let part = Routes { ipv4: some(&ipv4, PART[0], &mut rng), ipv6: some(&ipv6, PART[1], &mut rng) };
    let alone: Vec<&[Kind]> = KINDS.chunks(1).collect();
    report.push(compare(settings, "one network", 1, &alone, &Routes { ipv4, ipv6 })?);
    let mixed: Vec<&[Kind]> = alone.into_iter().chain([&KINDS[..2], &KINDS[..]]).collect();
    report.push(compare(settings, &format!("{MANY} networks"), MANY, &mixed, &part)?);
    Ok(())
}

/// A random part.
fn some<K: Key>(all: &[Prefix<K>], count: usize, rng: &mut Rng) -> Vec<Prefix<K>> {
    let every = (all.len() / count.max(1)).max(1);
    all.iter().filter(|_| rng.one_in(every)).copied().collect()
}

fn compare(
    settings: &Settings,
    title: &str,
    networks: usize,
    turns: &[&[Kind]],
    routes: &Routes,
) -> Result<Section, Failure> {
    let mut worlds = Vec::new();
    for turn in turns {
        worlds.push(World::new(Soft::new(Limits::default())?, networks, turn, routes)?);
    }
    let passes = settings.packets().div_ceil(PACKETS);
    let spreads = interleave(worlds.len(), settings.rounds(), |at| {
        let world = &mut worlds[at];
        let mut took = 0.0;
        for _ in 0..passes {
            world.restore();
            took += seconds(|| world.pass());
        }
        ((passes * PACKETS) as f64, took)
    });
    let (four, six) = (routes.ipv4.len(), routes.ipv6.len());
    let mut section = Section::new(format!("{title}: {four} IPv4 and {six} IPv6 routes each"), &COLUMNS);
    let sent = ((settings.rounds() + 1) * passes * PACKETS) as u64;
    let reference = spreads[0].median();
    for ((world, turn), spread) in worlds.iter().zip(turns).zip(&spreads) {
        let of = turn.iter().map(|kind| format!("{} {}", world.networks_of(*kind), kind.name()));
        let forwarded = world.forwarded();
        if forwarded != sent {
            let names: Vec<&str> = turn.iter().map(|kind| kind.name()).collect();
            let text = format!("{}: {forwarded} of {sent} packets were forwarded", names.join(", "));
            return Err(Failure::Disagree(text));
        }
        let [median, min, max] = millions(spread);
        section.row(vec![
            json!(of.collect::<Vec<_>>().join(", ")),
            round(1e9 / spread.median(), 1),
            median,
            min,
            max,
            round(spread.median() / reference, 2),
        ]);
    }
    section.note(
        "`l2` has 64 hosts behind each of four ports, `extract` 16,384 exact entries of 64 bits, `rofl` 16,384 labels of 128 \
         bits, `splice` the routes of `ipv4` in each of four slices, `mpls` 4,096 labels, which it swaps. \
         Packets draw destinations, entries and splicing bits at random; all are forwarded.",
    );
    Ok(section)
}
