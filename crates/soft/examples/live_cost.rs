//! The cost per packet of a running system beyond the plane itself: queues, shares, counters, ports.
//!
//! `cargo run --release -p hue-soft --example live_cost -- [NETWORKS[,NETWORKS…]]` (default `1,15,200`). Compares one
//! worker and four ports, which generate 64-byte frames and discard sent frames, with the plane alone over frames
//! copied the same way, in turns. Prints the median, tenth and ninetieth percentile of nanoseconds of processor time
//! per packet that left. The kernel counts this time for each thread, so other load on the machine is not included. Compare
//! within one run only.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_planes::Adjacency;
use hue_soft::live::Live;
use hue_soft::{BATCH_MAX, Frame, Soft};
use hue_substrate::{Program, Substrate, VirtualPort};
use hue_tables::{Limits, Prefix4};
use hue_wire::Mac;

use common::{Error, Flow, Null, Random, one_worker, packet, processor_ns, program, router_mac, spread};

const PORTS: u8 = 4;
const PACKET_BYTES: usize = 64;
/// Different frames of a port.
const FRAMES: usize = 4096;
const ROUNDS: usize = 20;
const ROUND: Duration = Duration::from_millis(100);

fn network(id: u16) -> Result<Program, Error> {
    let ports: Vec<_> = (0..PORTS)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: router_mac(id, port),
            mtu_bytes: 1500,
            tunnel: None,
        })
        .collect();
    let hop = |port: u8| {
        Adjacency::forward(PortId::new(port), router_mac(id, port), Mac([2, 1, 0, 0, 0, port]), 1500)
    };
    let route = |top: u8| (Prefix4::containing(u32::from(top) << 24, 8), u16::from(top) % u16::from(PORTS));
    program(id, ports, (0..PORTS).map(hop).collect(), (1..=16).map(route).collect())
}

fn packets(port: u8, networks: u16) -> Vec<Vec<u8>> {
    let mut random = Random(88_172_645_463_325_252 + u64::from(port));
    let one = |_| {
        let to = router_mac(random.below(u64::from(networks)) as u16 + 1, port);
        let (top, low) = (random.below(16) as u8 + 1, random.below(256) as u8);
        packet(PACKET_BYTES, to, (top, low))
    };
    (0..FRAMES).map(one).collect()
}

struct Bench {
    networks: u16,
    live: Live,
    /// The worker's directory below `/proc`.
    thread: String,
    on: Arc<AtomicBool>,
    /// Packets that were sent.
    flow: Flow,
    soft: Soft,
    templates: Vec<Vec<Vec<u8>>>,
    buffer: Vec<u8>,
    live_ns: Vec<f64>,
    soft_ns: Vec<f64>,
}

impl Bench {
    fn new(networks: u16) -> Result<Self, Error> {
        let programs = (1..=networks).map(network).collect::<Result<Vec<_>, _>>()?;
        let (mut live, thread) = one_worker()?;
        live.load(&programs)?;
        let (on, flow) = (Arc::new(AtomicBool::new(false)), Flow::default());
        let templates: Vec<_> = (0..PORTS).map(|port| packets(port, networks)).collect();
        for port in 0..PORTS {
            let null = Null::new(&templates[usize::from(port)], &on, &flow);
            live.add_port(PortId::new(port), |_| Ok(Box::new(null)))?;
        }
        let mut soft = Soft::new(Limits::default())?;
        soft.load(&programs)?;
        let buffer = vec![0; BATCH_MAX * 4096];
        Ok(Self {
            networks,
            live,
            thread,
            on,
            flow,
            soft,
            templates,
            buffer,
            live_ns: Vec::new(),
            soft_ns: Vec::new(),
        })
    }

    fn live(&mut self) -> Result<(), Error> {
        // The kernel updates the time of a thread when it sleeps, so both are read when there is no work.
        let (before, start) = (self.flow.left(), processor_ns(&self.thread)?);
        self.on.store(true, Ordering::Relaxed);
        std::thread::sleep(ROUND);
        self.on.store(false, Ordering::Relaxed);
        std::thread::sleep(ROUND / 5);
        let (after, end) = (self.flow.left(), processor_ns(&self.thread)?);
        if after > before {
            self.live_ns.push((end - start) as f64 / (after - before) as f64);
        }
        Ok(())
    }

    /// Packets that arrived at ports and did not leave.
    fn lost(&self) -> i64 {
        let totals = (0..PORTS).filter_map(|port| self.live.port_totals(PortId::new(port)));
        totals.map(|port| port.received_packets as i64 - port.sent_packets as i64).sum()
    }

    /// The plane alone, with frames copied in as ports do: 64 of each port, each into its own slot.
    fn soft(&mut self) -> Result<(), Error> {
        let (mut count, start, begin) = (0, Instant::now(), processor_ns("thread-self")?);
        let mut frames = Vec::with_capacity(BATCH_MAX);
        while start.elapsed() < ROUND {
            for pass in 0..FRAMES / 64 {
                frames.clear();
                for (template, port) in self.templates.iter().zip(0u8..) {
                    for frame in &template[pass * 64..pass * 64 + 64] {
                        let at = frames.len() * 4096 + 256;
                        self.buffer[at..at + PACKET_BYTES].copy_from_slice(frame);
                        frames.push(Frame::new(PortId::new(port), 0, at as u32, PACKET_BYTES as u32));
                    }
                }
                count += self.soft.process(&mut self.buffer, &mut frames);
            }
        }
        self.soft_ns.push((processor_ns("thread-self")? - begin) as f64 / count as f64);
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let counts = std::env::args().nth(1).unwrap_or_else(|| "1,15,200".to_owned());
    let mut benches = Vec::new();
    for count in counts.split(',') {
        benches.push(Bench::new(count.parse()?)?);
    }
    for _ in 0..ROUNDS {
        for bench in &mut benches {
            bench.live()?;
            bench.soft()?;
        }
    }
    for bench in &mut benches {
        let (live, live_text) = spread(&mut bench.live_ns);
        let (soft, soft_text) = spread(&mut bench.soft_ns);
        println!(
            "{:4} networks: live {live_text}, plane alone {soft_text}, difference {:.1} ns; {} lost",
            bench.networks,
            live - soft,
            bench.lost()
        );
    }
    Ok(())
}
