//! Networks of each kind, and packets for them, whose rates the example `throughput` and the benchmark `software` measure.

use std::hint::black_box;

use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Settings, mpls, splice};
use hue_soft::{BATCH_MAX, Frame, Soft};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, VirtualPort};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{Key, NextHop, Pattern, Prefix, Prefix4, Prefix6, Vid};
use hue_wire::Mac;

/// Packets of a pass.
pub const PACKETS: usize = 8192;
const PACKET_BYTES: usize = 64;
const HOPS: u16 = 256;
/// Entries of an `extract` network for each port: as many as there can be, each of the first 64 bits of a frame.
const ENTRIES: u16 = 4096;
/// Labels of a `rofl` network: as many as there can be.
const LABELS: u16 = 16_384;
/// Labels of an `mpls` network.
const SWAPS: u16 = 4096;
/// Hosts behind each port of an `l2` network.
const HOSTS: usize = 64;

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
pub struct Routes {
    /// Of IPv4.
    pub ipv4: Vec<Prefix4>,
    /// Of IPv6.
    pub ipv6: Vec<Prefix6>,
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

fn program(id: Vid, kind: Kind, routes: &Routes) -> Program {
    let vid = id.get();
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
        .map(|(port, vport)| Row { vid: id, vport, select: Match::Mac { port: port.port, mac: port.mac } })
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
            (0..splice::SLICES.default)
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
        // Each label is swapped.
        Entries::Ternary(_) if kind == Kind::Mpls => Entries::Ternary(
            (0..SWAPS)
                .filter_map(|number| Some((mpls::pattern_of(swapped(number)), NextHop::new(number % HOPS)?)))
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
        // Labels all over the ring; the rows of the ports come first.
        Entries::Nearest(_) => {
            let hop = |number: u16| NextHop::new(ports.len() as u16 + number % HOPS);
            Entries::Nearest((0..LABELS).filter_map(|number| Some((label(number), hop(number)?))).collect())
        }
    };
    let outs = |rows: &[Adjacency]| -> Vec<Adjacency> {
        rows.iter()
            .map(|row| Adjacency::out_with(row.port(), 1500, Some(row.dst()), Some(row.src())))
            .collect()
    };
    let next_hops = match kind {
        Kind::L2 => ports.iter().map(|port| Adjacency::out(port.port, port.mtu_bytes)).collect(),
        Kind::Extract => outs(&routers),
        Kind::Rofl => ports.iter().map(VirtualPort::arrival).chain(routers).collect(),
        // The rows of labels first, each with the row by which packets leave.
        Kind::Mpls => {
            let swaps = (0..HOPS).filter_map(|hop| Adjacency::labels(&[swapped(hop)], HOPS + hop));
            swaps.chain(outs(&routers)).collect()
        }
        _ => routers,
    };
    let name = format!("net{vid}");
    Program {
        vid: id,
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
    }
}

/// A label of every network of kind `rofl`, by its number: anywhere on the ring, as hashes are.
fn label(number: u16) -> u128 {
    let mut random = Random((u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    u128::from(random.next()) << 64 | u128::from(random.next())
}

/// A label of every network of kind `mpls`, by its number.
fn swapped(number: u16) -> u32 {
    100 + u32::from(number)
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
        Kind::Rofl => {
            bytes[12..22].copy_from_slice(&[0x88, 0xb5, 0x10, 16, 64, 0, 8, 0, 0, 10]);
            for place in bytes[22..38].chunks_exact_mut(8) {
                place.copy_from_slice(&random.next().to_be_bytes());
            }
        }
        Kind::Mpls => {
            let label = swapped(random.below(SWAPS.into()) as u16);
            bytes[12..14].copy_from_slice(&[0x88, 0x47]);
            bytes[14..18].copy_from_slice(&(label << 12 | 1 << 8 | 64).to_be_bytes());
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

/// An engine with networks, and packets for them.
pub struct World {
    /// The kind of each network.
    pub kinds: Vec<Kind>,
    /// The engine.
    pub soft: Soft,
    fresh: Vec<u8>,
    buffer: Vec<u8>,
    frames: Vec<Frame>,
}

impl World {
    /// An empty engine gets networks of these kinds in turn. Packets take turns over networks at random.
    ///
    /// # Errors
    /// If the engine refuses a network.
    pub fn new(
        mut soft: Soft,
        networks: usize,
        turn: &[Kind],
        routes: &Routes,
    ) -> Result<Self, SubstrateError> {
        let kinds: Vec<Kind> = turn.iter().copied().cycle().take(networks).collect();
        for (vid, kind) in (1..).map_while(Vid::new).zip(&kinds) {
            soft.load(&[program(vid, *kind, routes)])?;
        }
        let mut random = Random(88_172_645_463_325_252);
        let (mut fresh, mut frames) = (Vec::new(), Vec::new());
        for index in 0..PACKETS {
            let at = random.below(networks);
            let (port, bytes) = packet(&mut random, at as u16 + 1, kinds[at], routes);
            frames.push(Frame::new(port, 0, (index * PACKET_BYTES) as u32, PACKET_BYTES as u32));
            fresh.extend(bytes);
        }
        Ok(Self { kinds, soft, buffer: fresh.clone(), fresh, frames })
    }

    /// Restores the packets, which the engine has rewritten. Before each pass, and not measured.
    pub fn restore(&mut self) {
        self.buffer.copy_from_slice(&self.fresh);
    }

    /// The engine processes all packets, [`PACKETS`].
    pub fn pass(&mut self) {
        for batch in self.frames.chunks_mut(BATCH_MAX) {
            black_box(self.soft.process(&mut self.buffer, batch));
        }
    }

    /// Packets that were forwarded since the start.
    pub fn forwarded(&self) -> u64 {
        let counted = |vid| Some(self.soft.counters(vid)?.forwarded());
        (1..).map_while(Vid::new).take(self.kinds.len()).filter_map(counted).sum()
    }

    /// Networks of a kind.
    pub fn networks_of(&self, kind: Kind) -> usize {
        self.kinds.iter().filter(|one| **one == kind).count()
    }
}
