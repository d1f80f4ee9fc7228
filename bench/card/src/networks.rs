//! Networks for measurements: each on all four ports, with a neighbour and a route behind each port.

use hue_card::{Card, Images, Twin};
use hue_demux::{Match, PortId, Row};
use hue_lab::{
    Experiment, Generator, Measured, Offer, Rate, Sizes, Sort, Source, Stream, Synthetic, To, Traffic,
};
use hue_planes::{Adjacency, Kind, Settings};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::Mac;

/// Ports of the card.
pub const PORTS: u8 = 4;
const MTU_BYTES: u16 = 9202;
const FLOWS: u32 = 256;

/// A card of an image with `count` networks on it.
pub fn card(images: &Images, image: &str, networks: u16) -> Result<Card<Twin>, String> {
    let all = |net| program(net, &[0, 1, 2, 3]);
    let programs: Vec<Program> = (1..=networks).map(all).collect::<Option<_>>().ok_or("too many networks")?;
    loaded(images, image, &programs)
}

/// A card that runs an image, with these networks.
pub fn loaded(images: &Images, image: &str, programs: &[Program]) -> Result<Card<Twin>, String> {
    let twin = images.load(image).and_then(|image| image.start());
    let mut card = twin.and_then(Card::new).map_err(|error| format!("{image}: {error}"))?;
    card.load(programs).map_err(|error| format!("{image}: {error}"))?;
    Ok(card)
}

/// Network `net` on some ports: 10.PORT.0.0/16 is behind each of them.
pub fn program(net: u16, on: &[u8]) -> Option<Program> {
    let vid = Vid::new(net)?;
    let [high, low] = net.to_be_bytes();
    let router = |port: u8| Mac([0x02, 0, 0, high, low, port]);
    let neighbour = |port: u8| Mac([0x02, 0, 1, high, low, port]);
    let ports = on.iter().map(|&port| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: router(port),
        mtu_bytes: MTU_BYTES,
        tunnel: None,
    });
    let row = |(vport, &port): (u16, &u8)| {
        let select = Match::Mac { port: PortId::new(port), mac: router(port) };
        Row { vid, vport, select }
    };
    let hop = |&port: &u8| Adjacency::forward(PortId::new(port), router(port), neighbour(port), MTU_BYTES);
    let route = |(hop, &port): (u16, &u8)| {
        let prefix = Prefix4::containing(10 << 24 | u32::from(port) << 16, 16);
        Some((prefix, NextHop::new(hop)?))
    };
    Some(Program {
        vid,
        name: format!("n{net}"),
        settings: Settings::of(Kind::Ipv4),
        ports: ports.collect(),
        rows: (0..).zip(on).map(row).collect(),
        next_hops: on.iter().map(hop).collect(),
        groups: Vec::new(),
        entries: Entries::Lpm32((0..).zip(on).map(route).collect::<Option<_>>()?),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    })
}

/// The load that all four ports are offered, each for the next port.
pub struct Load {
    /// Lengths with FCS.
    pub sizes: Sizes,
    /// The rate.
    pub offer: Offer,
    /// Lines behind the ports.
    pub line: Option<Rate>,
    /// Microseconds.
    pub duration_us: u64,
}

impl Load {
    /// Frames of one length.
    pub fn of(size: u16, offer: Offer, line: Option<Rate>, duration_us: u64) -> Result<Self, String> {
        let sizes = Sizes::one(size).ok_or_else(|| format!("no frame has {size} bytes"))?;
        Ok(Self { sizes, offer, line, duration_us })
    }

    /// Offers it to the first ports of a card that has had no frames.
    pub fn run(&self, card: Card<Twin>, ports: u8) -> Result<Measured, String> {
        let stream = |port: u8| Stream {
            port: PortId::new(port),
            traffic: Traffic { offer: self.offer, source: Source::Synthetic(made(&self.sizes, port)) },
        };
        let streams = (0..ports).map(stream).collect();
        let experiment =
            Experiment { streams, duration_us: Some(self.duration_us), line: self.line, wave: None };
        hue_lab::run(card, &names(), &experiment, |_| {}).map_err(|error| error.to_string())
    }
}

/// Names of the ports.
pub fn names() -> Vec<String> {
    (0..PORTS).map(|port| format!("p{port}")).collect()
}

fn made(sizes: &Sizes, port: u8) -> Synthetic {
    let to = vec![To::Port(format!("p{}", (port + 1) % PORTS))];
    Synthetic { sort: Sort::Forward, sizes: sizes.clone(), networks: Vec::new(), to, flows: FLOWS, seed: 1 }
}

/// Frames of network 1, of all ports in turn.
pub fn frames(size: u16, count: usize) -> Result<Vec<(PortId, Vec<u8>)>, String> {
    let program = program(1, &[0, 1, 2, 3]).ok_or("no network")?;
    let sizes = Sizes::one(size).ok_or_else(|| format!("no frame has {size} bytes"))?;
    let mut generators = Vec::new();
    for port in 0..PORTS {
        let port = PortId::new(port);
        generators.push((port, Generator::new(&made(&sizes, port.get()), port, &[&program], &names())?));
    }
    let ports = generators.len();
    let mut frames = Vec::with_capacity(count);
    for index in 0..count {
        if let Some((port, generator)) = generators.get_mut(index % ports) {
            let mut frame = Vec::new();
            generator.next(&mut frame);
            frames.push((*port, frame));
        }
    }
    Ok(frames)
}
