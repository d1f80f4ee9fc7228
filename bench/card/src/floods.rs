//! The effect of a flood on networks that stay within their share: frames lost, and latency in cycles.

use hue_card::Images;
use hue_demux::PortId;
use hue_lab::{
    Experiment, Measured, Offer, Rate, Sizes, Sort, Source, Stream, StreamMeasured, Synthetic, To, Traffic,
};
use hue_planes::Adjacency;
use hue_substrate::Program;
use hue_tables::{NextHop, Prefix4};
use serde_json::{Value, json};

use crate::Settings;
use crate::networks::{loaded, names, program};
use crate::report::Section;

/// A flood: the sort, and the bytes of a frame with FCS.
const FLOODS: [(Sort, &str, u16); 11] = [
    (Sort::Forward, "forwarded by another network", 64),
    (Sort::Forward, "forwarded by another network", 2040),
    (Sort::Forward, "forwarded by another network", 9220),
    (Sort::Broadcast, "broadcasts", 64),
    (Sort::Broadcast, "broadcasts", 9220),
    (Sort::Multicast, "multicasts", 64),
    (Sort::Runt, "runts", 64),
    (Sort::Nobody, "for nobody", 64),
    (Sort::Nobody, "for nobody", 9220),
    (Sort::Ttl1, "TTL 1, punted", 64),
    (Sort::Own, "for the router, punted", 64),
];
/// Networks, by number: they forward from p1 to p2, from p0 to p2, and from p0 to p3 and back.
const VICTIM: u16 = 1;
const BESIDE: u16 = 2;
const FLOODER: u16 = 3;
const FLOWS: u32 = 64;
/// Load that each offers, in percent of its line.
const VICTIM_SHARE: u64 = 80;
const BESIDE_SHARE: u64 = 10;

/// An image's lines, bits a second; networks on p0 in all; microseconds.
fn setting(image: &str) -> Option<(u64, u16, u64)> {
    match image {
        "default" => Some((10_000_000_000, 100, 300)),
        "wide" => Some((25_000_000_000, 30, 120)),
        "sram" => Some((1_000_000_000, 30, 1000)),
        // A plane has room for one network.
        _ => None,
    }
}

/// Lost frames and the 99th percentile of the latency, alone and under each flood.
pub fn floods(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "image",
        "flood on p0 and p3",
        "bytes",
        "flood frames",
        "with nothing left of them",
        "p1 to p2: frames",
        "lost",
        "p99 cycles",
        "p0 to p2: frames",
        "lost",
        "p99 cycles",
    ];
    let mut section = Section::new(title, &columns);
    let wanted = settings.images.iter().copied().filter(|image| setting(image).is_some());
    for image in wanted {
        let row = |flood: &str, bytes: Value, measured: &Measured| {
            let (own, of_flood) = measured.streams.split_at(2);
            let sum = |of: fn(&StreamMeasured) -> u64| of_flood.iter().map(of).sum::<u64>();
            let mut row = vec![json!(image), json!(flood), bytes, json!(sum(|one| one.offered))];
            row.push(json!(sum(|one| one.dropped)));
            for one in own {
                let p99 = one.first_word.quantile(990);
                row.extend([json!(one.offered), json!(one.offered - one.forwarded), json!(p99)]);
            }
            row
        };
        section.row(row("none", Value::Null, &run(images, image, None)?));
        for (sort, name, bytes) in FLOODS {
            section.row(row(name, json!(bytes), &run(images, image, Some((sort, bytes)))?));
        }
    }
    section.note(
        "Frames of 64 bytes from p1 to p2 at 80 % of the line and from p0 to p2 at 10 %, each of its own network; the flood fills \
         the rest of p0, and p3. Lines have 10 Gbit/s (default), 25 Gbit/s (wide) and 1 Gbit/s (sram); 100 networks are on p0 of \
         default, 30 on the others. First beat in to first beat out. A frame of the greatest length takes 288, 144 and 1,152 \
         cycles.",
    );
    Ok(section)
}

fn run(images: &Images, image: &str, flood: Option<(Sort, u16)>) -> Result<Measured, String> {
    let (bits, networks, us) = setting(image).ok_or("this image has too few networks")?;
    let mut programs = vec![(VICTIM, [1, 2]), (BESIDE, [0, 2])];
    programs.extend((FLOODER..=networks).map(|net| (net, [0, 3])));
    let programs: Option<Vec<Program>> = programs.iter().map(|(net, ports)| reachable(*net, ports)).collect();
    let card = loaded(images, image, &programs.ok_or("too many networks")?)?;
    let part = |percent: u64| Rate::new(bits * percent / 100).ok_or("no rate");
    let mut streams = vec![
        stream(1, part(VICTIM_SHARE)?, Sort::Forward, 64, VICTIM, Some(2))?,
        stream(0, part(BESIDE_SHARE)?, Sort::Forward, 64, BESIDE, Some(2))?,
    ];
    if let Some((sort, bytes)) = flood {
        let to = |port| (sort == Sort::Forward).then_some(port);
        streams.push(stream(0, part(100 - BESIDE_SHARE)?, sort, bytes, FLOODER, to(3))?);
        streams.push(stream(3, part(100)?, sort, bytes, FLOODER, to(0))?);
    }
    let experiment = Experiment { streams, duration_us: Some(us), line: Some(part(100)?), wave: None };
    hue_lab::run(card, &names(), &experiment, |_| {}).map_err(|error| error.to_string())
}

/// A network that also has an address of its own: 192.0.2.1.
fn reachable(net: u16, ports: &[u8]) -> Option<Program> {
    let mut program = program(net, ports)?;
    let own = NextHop::new(u16::try_from(program.next_hops.len()).ok()?)?;
    program.next_hops.push(Adjacency::local());
    program.entries.lpm32_mut().push((Prefix4::containing(0xc000_0201, 32), own));
    Some(program)
}

fn stream(port: u8, rate: Rate, sort: Sort, bytes: u16, net: u16, to: Option<u8>) -> Result<Stream, String> {
    let sizes = Sizes::one(bytes).ok_or_else(|| format!("no frame has {bytes} bytes"))?;
    let to = to.map(|port| To::Port(format!("p{port}"))).into_iter().collect();
    let made = Synthetic { sort, sizes, networks: vec![format!("n{net}")], to, flows: FLOWS, seed: 1 };
    let traffic = Traffic { offer: Offer::Rate(rate), source: Source::Synthetic(made) };
    Ok(Stream { port: PortId::new(port), traffic })
}
