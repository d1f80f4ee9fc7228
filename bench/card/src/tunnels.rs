//! Tunnels on the card with all four ports busy: cycles a packet into a tunnel, out of one, and from one to another, and what is lost
//! when the longer side of each packet is at line rate.
//!
//! Flow: a router with tunnels and its carrier for each port, and a capture for each port → `hue_lab`. The packets inside are as short
//! as they can be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use hue_card::Images;
use hue_demux::tunnel::{Dscp, Encapsulation, IPIP_PEER, Tunnel};
use hue_demux::{Match, PortId, Row};
use hue_lab::{Experiment, Offer, Rate};
use hue_planes::{Adjacency, Kind, Settings as PlaneSettings};
use hue_ports::{Frame, OutputDir, Resolution};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::{NextHop, Prefix4, Prefix6, Vid};
use hue_wire::ethernet::{self, EtherType};
use hue_wire::vxlan::{self, Vni};
use hue_wire::{Mac, ip, ipv4};
use serde_json::json;
use zerocopy::IntoBytes;

use crate::Settings;
use crate::kinds::{sent, streams};
use crate::networks::{PORTS, loaded, names};
use crate::report::{Section, round};

/// The image with tunnels.
const IMAGE: &str = "kinds";
const FRAMES: usize = 6_000;
/// Of a plain frame.
const FRAME_BYTES: usize = 60;
const MTU_BYTES: u16 = 1500;
const TTL: u8 = 64;
const LINE_BITS: u64 = 1_000_000_000;
const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Where a packet comes from and where it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passage {
    Into,
    OutOf,
    Between,
}

/// What is between the networks of one port.
#[derive(Clone, Copy)]
struct Outer {
    encapsulation: Encapsulation,
    wide: bool,
}

/// Cycles a packet and losses of each type of tunnel and each passage.
pub fn tunnels(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "image",
        "tunnels",
        "passage",
        "bytes that come",
        "bytes that go",
        "cycles a packet",
        "cycles a packet at 4 × 1 Gbit/s",
        "packets at 4 × 1 Gbit/s",
        "lost",
    ];
    let mut section = Section::new(title, &columns);
    let folder = std::env::temp_dir().join(format!("hue-bench-tunnels-{}", std::process::id()));
    let frames = if settings.quick { FRAMES / 10 } else { FRAMES };
    let line = Rate::new(LINE_BITS).ok_or("no rate")?;
    let vni = Vni::new(7).ok_or("no VNI")?;
    for encapsulation in [Encapsulation::Ipip, Encapsulation::Vxlan { vni, port: vxlan::PORT }] {
        for wide in [false, true] {
            let outer = Outer { encapsulation, wide };
            for passage in [Passage::Into, Passage::OutOf, Passage::Between] {
                let programs: Vec<Program> =
                    (0..PORTS).filter_map(|port| outer.programs(port)).flatten().collect();
                let (comes, goes) = write(&folder, outer, passage, frames)?;
                let wire_bits = 8.0 * hue_lab::wire_bytes(comes.max(goes)) as f64;
                // The lines carry frames of different lengths on the way in and on the way out; the longer ones are at line rate.
                let share = hue_lab::wire_bytes(comes) as f64 / hue_lab::wire_bytes(comes.max(goes)) as f64;
                let rate = Rate::new((LINE_BITS as f64 * share) as u64).ok_or("no rate")?;
                let run = |offer, line| {
                    let card = loaded(images, IMAGE, &programs)?;
                    let experiment =
                        Experiment { streams: streams(&folder, offer), duration_us: None, line, wave: None };
                    hue_lab::run(card, &names(), &experiment, |_| {}).map_err(|error| error.to_string())
                };
                let busy = run(Offer::Max, None)?;
                let at_line = run(Offer::Rate(rate), Some(line))?;
                let offered: u64 = at_line.ports.iter().map(|port| port.offered).sum();
                let khz = f64::from(at_line.bus.clock_khz);
                section.row(vec![
                    json!(IMAGE),
                    json!(outer.name()),
                    json!(passage.name()),
                    json!(comes),
                    json!(goes),
                    round(busy.cycles as f64 / sent(&busy) as f64, 1),
                    round(wire_bits / (f64::from(PORTS) * LINE_BITS as f64 / (khz * 1e3)), 1),
                    json!(offered),
                    json!(offered - sent(&at_line)),
                ]);
            }
        }
    }
    let cleared = std::fs::remove_dir_all(&folder);
    cleared.map_err(|error| format!("{}: {error}", folder.display()))?;
    section.note(
        "Bytes without check sequence; IPv4 inside. On each port a router of kind `ipv4` with two tunnels over its carrier, of kind `dual`. A \
         packet comes at one port and leaves by the next. A port's packets once, as fast as the card takes them, then at the rate at which the \
         longer of what comes and what goes fills the line.",
    );
    Ok(section)
}

impl Passage {
    const fn name(self) -> &'static str {
        match self {
            Self::Into => "into a tunnel",
            Self::OutOf => "out of a tunnel",
            Self::Between => "from tunnel to tunnel",
        }
    }
}

impl Outer {
    fn name(self) -> String {
        let encapsulation = match self.encapsulation {
            Encapsulation::Ipip => "IP in IP",
            Encapsulation::Vxlan { .. } => "VXLAN",
        };
        format!("{encapsulation} over IPv{}", if self.wide { 6 } else { 4 })
    }

    /// The address of a carrier, or of the far end of tunnel `nth`.
    fn address(self, port: u8, nth: u8) -> IpAddr {
        if self.wide {
            Ipv6Addr::new(0x2001, 0xdb8, port.into(), 0, 0, 0, 0, nth.into()).into()
        } else {
            Ipv4Addr::new(192, 0, port, nth).into()
        }
    }

    fn tunnel(self, port: u8, nth: u8) -> Option<Tunnel> {
        Some(Tunnel {
            over: Vid::new(u16::from(PORTS + port) + 1)?,
            encapsulation: self.encapsulation,
            local: self.address(port, 1),
            remote: self.address(port, 2 + nth),
            ttl: TTL,
            dscp: Dscp::Inherit,
        })
    }

    /// The router at a port and its carrier. The router has 10.0.0.0/8 behind its first tunnel and 172.16.0.0/12 behind the next port.
    fn programs(self, port: u8) -> Option<[Program; 2]> {
        let next = PortId::new((port + 1) % PORTS);
        let hop = |to: PortId, from, mac| Adjacency::forward(to, from, mac, MTU_BYTES);
        let peer = match self.encapsulation {
            Encapsulation::Ipip => IPIP_PEER,
            Encapsulation::Vxlan { .. } => Mac([2, 0, 3, 0, 0, port]),
        };
        let ends = [PortId::tunnel(0)?, PortId::tunnel(1)?];
        let ports = [PortId::new(port), next, ends[0], ends[1]];
        let mut router = program(u16::from(port) + 1, Kind::Ipv4, &ports)?;
        for nth in [0, 1] {
            router.ports.get_mut(2 + usize::from(nth))?.tunnel = Some(self.tunnel(port, nth)?);
        }
        router.next_hops = vec![
            hop(next, mac(port + 1, 1), Mac([2, 0, 2, 0, 0, port])),
            hop(ends[0], mac(port + 1, 2), peer),
        ];
        let behind = |address: Ipv4Addr, len, hop| {
            Some((Prefix4::containing(address.to_bits(), len), NextHop::new(hop)?))
        };
        router.entries = Entries::Lpm32(vec![
            behind(Ipv4Addr::new(172, 16, 0, 0), 12, 0)?,
            behind(Ipv4Addr::new(10, 0, 0, 0), 8, 1)?,
        ]);

        let net = PORTS + port + 1;
        let mut carrier = program(net.into(), Kind::Dual, &[PortId::new(port), next])?;
        let out = hop(next, mac(net, 1), Mac([2, 0, 4, 0, 0, port]));
        // One row for each family, in turns.
        carrier.next_hops = vec![Adjacency::local(), Adjacency::local(), out, out];
        let four = |len, address, hop| Some((Prefix4::containing(address, len), NextHop::new(hop)?));
        let six = |len, address, hop| Some((Prefix6::containing(address, len), NextHop::new(hop)?));
        carrier.entries = match self.address(port, 1) {
            IpAddr::V4(own) => {
                Entries::Dual(vec![four(32, own.to_bits(), 0)?, four(24, own.to_bits(), 2)?], Vec::new())
            }
            IpAddr::V6(own) => {
                Entries::Dual(Vec::new(), vec![six(128, own.to_bits(), 1)?, six(48, own.to_bits(), 3)?])
            }
        };
        Some([router, carrier])
    }
}

/// A network without tunnels and routes.
fn program(net: u16, kind: Kind, on: &[PortId]) -> Option<Program> {
    let vid = Vid::new(net)?;
    let number = net as u8; // at most twice as many as ports
    let ports = (0u8..).zip(on).map(|(vport, &port)| VirtualPort {
        name: format!("v{vport}"),
        port,
        mac: mac(number, vport),
        mtu_bytes: MTU_BYTES,
        tunnel: None,
    });
    let row = |(vport, &port)| Row { vid, vport, select: Match::Mac { port, mac: mac(number, vport as u8) } };
    Some(Program {
        vid,
        name: format!("n{net}"),
        settings: PlaneSettings::of(kind),
        ports: ports.collect(),
        rows: (0u16..).zip(on).map(row).collect(),
        next_hops: Vec::new(),
        groups: Vec::new(),
        entries: Entries::Lpm32(Vec::new()),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    })
}

/// The MAC address of a virtual port.
fn mac(net: u8, vport: u8) -> Mac {
    Mac([2, 0, 0, 0, net, vport])
}

/// Writes a capture for each port. Returns the lengths of a frame that comes, and of one that goes.
fn write(folder: &Path, outer: Outer, passage: Passage, frames: usize) -> Result<(usize, usize), String> {
    let fault = |error: hue_ports::PortError| error.to_string();
    let mut out = OutputDir::open(folder).map_err(fault)?;
    let mut lengths = (0, 0);
    for (port, name) in (0..PORTS).zip(names()) {
        let file = out.add(&format!("{name}.pcap"), Resolution::Nano).map_err(fault)?;
        let capture = out.writer(file).ok_or("no capture")?;
        for number in 0..frames {
            let bytes = frame(outer, passage, port, number).ok_or("no frame")?;
            let wire_len = bytes.len() as u32; // far below 4 GiB
            capture.write(Frame { bytes: &bytes, time_ns: number as u64, wire_len }).map_err(fault)?;
            lengths.0 = bytes.len();
            let carried = outer.tunnel(port, 0).and_then(|tunnel| wrapped(&tunnel, &bytes));
            lengths.1 = match passage {
                Passage::Into => carried.ok_or("no outer header")?.len(),
                Passage::OutOf => FRAME_BYTES,
                Passage::Between => bytes.len(),
            };
        }
    }
    out.commit().map_err(fault)?;
    Ok(lengths)
}

/// A frame that arrives at a port.
fn frame(outer: Outer, passage: Passage, port: u8, number: usize) -> Option<Vec<u8>> {
    let destination = match passage {
        Passage::Into | Passage::Between => 10 << 24,
        Passage::OutOf => 172 << 24 | 16 << 16,
    };
    let to = Ipv4Addr::from_bits(destination | number as u32 & 0xffff);
    // By the virtual port of the hosts, or of the second tunnel.
    let mac_to = mac(port + 1, if passage == Passage::Into { 0 } else { 3 });
    let from = Mac([2, 0, 5, 0, 0, port]);
    let mut inner = Vec::with_capacity(FRAME_BYTES);
    inner.extend_from_slice(ethernet::Header::new(mac_to, from, EtherType::IPV4).as_bytes());
    let length = (FRAME_BYTES - ethernet::HEADER_BYTES) as u16; // 46
    inner.extend_from_slice(ipv4::Header::new(SOURCE, to, ip::Protocol::UDP, TTL, length).as_bytes());
    inner.resize(FRAME_BYTES, 0);
    if passage == Passage::Into {
        return Some(inner);
    }
    let here = outer.tunnel(port, 1)?;
    let far = Tunnel { local: here.remote, remote: here.local, ..here };
    let mut frame = wrapped(&far, &inner)?;
    let carrier = mac(PORTS + port + 1, 0);
    frame.get_mut(..6)?.copy_from_slice(&carrier.0);
    Some(frame)
}

/// A frame in a tunnel.
fn wrapped(tunnel: &Tunnel, inner: &[u8]) -> Option<Vec<u8>> {
    let made = tunnel.encapsulate(inner).ok()?;
    Some([made.headers(), inner.get(made.payload.clone())?].concat())
}
