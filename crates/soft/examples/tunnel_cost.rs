//! The cost of tunnels per packet: packets that leave by a tunnel, come by one, or both, beside the same packets forwarded
//! between two ports.
//!
//! `cargo run --release --example tunnel_cost -- [BYTES[,BYTES…]]` (inner frames, default `64,1400`). One worker with four
//! ports, which generate frames (two of them) and discard those sent. `red` has ports 0 and 1 and the tunnels; `wan`, which
//! carries them, has ports 2 and 3. What passes a tunnel passes both networks' queues and planes. The cases take turns.
//! Prints the median, tenth and ninetieth percentile of nanoseconds of processor time per packet that left, as `live_cost`
//! does, and of plain forwarding. Time that lost packets took counts too. Between tunnels many are lost, because arrivals fill
//! the queue of `wan` into which they must go again: that figure is one of overload. Compare within one run only.

mod common;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hue_demux::PortId;
use hue_demux::tunnel::{Dscp, Encapsulation, IPIP_PEER, Tunnel};
use hue_planes::Adjacency;
use hue_soft::live::Live;
use hue_substrate::{Program, Substrate, VirtualPort};
use hue_tables::{Prefix4, Vid};
use hue_wire::vxlan::Vni;
use hue_wire::{Mac, vxlan};

use common::{Error, Flow, Null, Random, one_worker, packet, processor_ns, program, router_mac, spread};

/// Different frames of a port.
const FRAMES: usize = 512;
const ROUNDS: usize = 30;
const ROUND: Duration = Duration::from_millis(60);
const RED: u16 = 1;
const WAN: u16 = 2;
const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The far ends of the two tunnels.
const REMOTES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 100, 2)];

/// Where packets come from, and where they go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Out,
    In,
    Through,
}

impl Way {
    const ALL: [Self; 4] = [Self::Plain, Self::Out, Self::In, Self::Through];

    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "port to port",
            Self::Out => "port to tunnel",
            Self::In => "tunnel to port",
            Self::Through => "tunnel to tunnel",
        }
    }

    const fn comes_by_tunnel(self) -> bool {
        matches!(self, Self::In | Self::Through)
    }

    /// First octets of the destinations: `red` has 1 to 8 by its ports and 9 to 16 by its tunnels.
    const fn destinations(self) -> u8 {
        if matches!(self, Self::Plain | Self::In) { 1 } else { 9 }
    }
}

fn tunnel(remote: usize, encapsulation: Encapsulation) -> Result<Tunnel, Error> {
    Ok(Tunnel {
        over: Vid::new(WAN).ok_or("network id")?,
        encapsulation,
        local: LOCAL.into(),
        remote: IpAddr::V4(REMOTES[remote]),
        ttl: 64,
        dscp: Dscp::Inherit,
    })
}

fn vport(id: u16, at: u8, port: PortId, tunnel: Option<Tunnel>) -> VirtualPort {
    VirtualPort { name: format!("v{at}"), port, mac: router_mac(id, at), mtu_bytes: 9000, tunnel }
}

/// `red` and `wan`.
fn programs(encapsulation: Encapsulation) -> Result<[Program; 2], Error> {
    let mut ports: Vec<_> = (0..2).map(|at| vport(RED, at, PortId::new(at), None)).collect();
    for at in 0..2 {
        let port = PortId::tunnel(at).ok_or("port of a tunnel")?;
        ports.push(vport(RED, 2 + at, port, Some(tunnel(at.into(), encapsulation)?)));
    }
    let hop = |port: &VirtualPort| {
        let neighbour = if port.tunnel.is_some() { IPIP_PEER } else { Mac([2, 1, 0, 0, 0, 1]) };
        Adjacency::forward(port.port, port.mac, neighbour, 9000)
    };
    let hops = ports.iter().map(hop).collect();
    let routes = (1..=16u8).map(|top| {
        let first = if top < Way::Out.destinations() { 0 } else { 2 };
        (Prefix4::containing(u32::from(top) << 24, 8), first + u16::from(top % 2))
    });
    let red = program(RED, ports, hops, routes.collect())?;
    let ports: Vec<_> = (2..4).map(|at| vport(WAN, at, PortId::new(at), None)).collect();
    let routers =
        ports.iter().map(|port| Adjacency::forward(port.port, port.mac, Mac([2, 1, 0, 0, 0, 2]), 9000));
    let hops = routers.chain([Adjacency::local()]).collect();
    let host = |address: Ipv4Addr| Prefix4::containing(address.to_bits(), 32);
    let routes = vec![(host(REMOTES[0]), 0), (host(REMOTES[1]), 1), (host(LOCAL), 2)];
    Ok([red, program(WAN, ports, hops, routes)?])
}

/// Frames that arrive at a port, with inner frames of `bytes`.
fn frames(way: Way, encapsulation: Encapsulation, side: u8, bytes: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut random = Random(88_172_645_463_325_252 + u64::from(side));
    let mut frame = |_| {
        let arrives = if way.comes_by_tunnel() { 2 + side } else { side };
        let (top, low) = (way.destinations() + random.below(8) as u8, random.below(256) as u8);
        let frame = packet(bytes, router_mac(RED, arrives), (top, low));
        if !way.comes_by_tunnel() {
            return Ok(frame);
        }
        let there = tunnel(side.into(), encapsulation)?;
        let far = Tunnel { local: there.remote, remote: there.local, ..there };
        let made = far.encapsulate(&frame).map_err(|_| "no IP packet")?;
        let mut outer = [made.headers(), &frame[made.payload.clone()]].concat();
        outer[..6].copy_from_slice(&router_mac(WAN, 2 + side).0);
        Ok(outer)
    };
    (0..FRAMES).map(&mut frame).collect()
}

struct Case {
    name: String,
    way: Way,
    live: Live,
    thread: String,
    on: Arc<AtomicBool>,
    flow: Flow,
    ns: Vec<f64>,
}

impl Case {
    fn new(way: Way, encapsulation: Encapsulation, bytes: usize) -> Result<Self, Error> {
        let (mut live, thread) = one_worker()?;
        live.load(&programs(encapsulation)?)?;
        let (on, flow) = (Arc::new(AtomicBool::new(false)), Flow::default());
        let first: u8 = if way.comes_by_tunnel() { 2 } else { 0 };
        for port in 0..4u8 {
            let frames = match port.checked_sub(first) {
                Some(side @ (0 | 1)) => frames(way, encapsulation, side, bytes)?,
                _ => Vec::new(),
            };
            let null = Null::new(&frames, &on, &flow);
            live.add_port(PortId::new(port), |_| Ok(Box::new(null)))?;
        }
        let tunnel = match encapsulation {
            _ if way == Way::Plain => "",
            Encapsulation::Ipip => ", ipip",
            Encapsulation::Vxlan { .. } => ", vxlan",
        };
        let name = format!("{bytes:4} bytes, {}{tunnel}", way.name());
        Ok(Self { name, way, live, thread, on, flow, ns: Vec::new() })
    }

    fn round(&mut self) -> Result<(), Error> {
        // The worker sleeps before both readings.
        let (before, start) = (self.flow.left(), processor_ns(&self.thread)?);
        self.on.store(true, Ordering::Relaxed);
        std::thread::sleep(ROUND);
        self.on.store(false, Ordering::Relaxed);
        std::thread::sleep(ROUND / 4);
        let (after, end) = (self.flow.left(), processor_ns(&self.thread)?);
        if after > before {
            self.ns.push((end - start) as f64 / (after - before) as f64);
        }
        Ok(())
    }

    /// Packets that arrived at ports and did not leave.
    fn lost(&self) -> i64 {
        let totals = (0..4).filter_map(|port| self.live.port_totals(PortId::new(port)));
        totals.map(|port| port.received_packets as i64 - port.sent_packets as i64).sum()
    }
}

fn main() -> Result<(), Error> {
    let lengths = std::env::args().nth(1).unwrap_or_else(|| "64,1400".to_owned());
    let vxlan = Encapsulation::Vxlan { vni: Vni::new(7).ok_or("VNI")?, port: vxlan::PORT };
    let mut cases = Vec::new();
    for bytes in lengths.split(',') {
        let bytes = bytes.parse()?;
        for way in Way::ALL {
            for encapsulation in [Encapsulation::Ipip, vxlan] {
                // Without a tunnel both are the same.
                if way != Way::Plain || encapsulation == Encapsulation::Ipip {
                    cases.push(Case::new(way, encapsulation, bytes)?);
                }
            }
        }
    }
    for _ in 0..ROUNDS {
        for case in &mut cases {
            case.round()?;
        }
    }
    let mut plain = f64::NAN;
    for case in &mut cases {
        let (median, text) = spread(&mut case.ns);
        if case.way == Way::Plain {
            plain = median;
        }
        println!("{:36} {text}, {:.2} of port to port; {} lost", case.name, median / plain, case.lost());
    }
    Ok(())
}
