//! What the examples that measure a running worker share: networks, packets, ports that never end, and its processor time.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hue_demux::{Match, Row};
use hue_planes::{Adjacency, Kind, Settings};
use hue_ports::{Driver, DriverCounters, Packet, Pool, Port, PortError};
use hue_soft::live::{Live, LiveConfig};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::Mac;

pub type Error = Box<dyn std::error::Error>;

/// xorshift64*: the same packets in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

/// MAC address of a network's virtual port.
pub fn router_mac(vid: u16, port: u8) -> Mac {
    let [high, low] = vid.to_be_bytes();
    Mac([2, 0, port, 0, high, low])
}

/// A network of kind `ipv4` that is selected by the MAC addresses of its ports. Routes name next hops by their index.
pub fn program(
    id: u16,
    ports: Vec<VirtualPort>,
    next_hops: Vec<Adjacency>,
    routes: Vec<(Prefix4, u16)>,
) -> Result<Program, Error> {
    let vid = Vid::new(id).ok_or("network id")?;
    let row = |(port, vport): (&VirtualPort, u16)| Row {
        vid,
        vport,
        select: Match::Mac { port: port.port, mac: port.mac },
    };
    let rows = ports.iter().zip(0..).map(row).collect();
    let routes = routes.into_iter().map(|(prefix, hop)| Some((prefix, NextHop::new(hop)?)));
    Ok(Program {
        vid,
        name: format!("net{id}"),
        settings: Settings::of(Kind::Ipv4),
        ports,
        rows,
        next_hops,
        groups: Vec::new(),
        entries: Entries::Lpm32(routes.collect::<Option<_>>().ok_or("next hop")?),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    })
}

/// A UDP packet in a frame of at most 65,535 `bytes`, from 172.16.0.1 to `top`.0.0.`low`.
pub fn packet(bytes: usize, to: Mac, (top, low): (u8, u8)) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
    frame[12..26].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame[16..18].copy_from_slice(&(bytes as u16 - 14).to_be_bytes());
    frame[26..30].copy_from_slice(&[172, 16, 0, 1]); // routers drop packets from 0.0.0.0
    frame[30] = top;
    frame[33] = low;
    let checksum = hue_wire::checksum::full(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Frames of ports that share a [`Flow`] and are in the system at the same time, at most: fewer than fit into a network's queue, so
/// that none is lost and each costs its whole way.
const INSIDE_MAX: u64 = 256;

/// Frames that came by ports and left by them.
#[derive(Clone, Default)]
pub struct Flow {
    came: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
}

impl Flow {
    /// Frames that left.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Frames that came and did not leave.
    pub fn inside(&self) -> u64 {
        self.came.load(Ordering::Relaxed).saturating_sub(self.left())
    }
}

/// Has frames to receive while it is on and not too many are inside, and accepts all frames to send.
pub struct Null {
    /// Different frames of one length, one behind the other.
    frames: Vec<u8>,
    frame_bytes: usize,
    /// Where the next one begins.
    next: usize,
    on: Arc<AtomicBool>,
    flow: Flow,
    counters: DriverCounters,
    sent: Vec<Packet>,
}

impl Null {
    /// Without frames it receives nothing.
    pub fn new(frames: &[Vec<u8>], on: &Arc<AtomicBool>, flow: &Flow) -> Self {
        Self {
            frames: frames.concat(),
            frame_bytes: frames.first().map_or(0, Vec::len),
            next: 0,
            on: on.clone(),
            flow: flow.clone(),
            counters: DriverCounters::default(),
            sent: Vec::with_capacity(1024),
        }
    }
}

impl Port for Null {
    fn driver(&self) -> Driver {
        Driver::Memory
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        if self.frames.is_empty() || !self.on.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let most = INSIDE_MAX.saturating_sub(self.flow.inside()).min(limit as u64) as usize;
        for count in 0..most {
            let Some(slot) = pool.take() else { return Ok(count) };
            self.flow.came.fetch_add(1, Ordering::Relaxed);
            self.counters.received_packets += 1;
            let start = pool.start(&slot);
            let (at, end) = (start as usize, start as usize + self.frame_bytes);
            let frame = &self.frames[self.next..self.next + self.frame_bytes];
            pool.bytes_mut()[at..end].copy_from_slice(frame);
            self.next += self.frame_bytes;
            if self.next == self.frames.len() {
                self.next = 0;
            }
            into.push(Packet { slot, start, len: self.frame_bytes as u32, time_ns: now_ns, class: 0 });
        }
        Ok(most)
    }

    fn send(&mut self, _pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        self.sent.push(packet);
        Ok(())
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        self.counters.sent_packets += self.sent.len() as u64;
        self.flow.left.fetch_add(self.sent.len() as u64, Ordering::Relaxed);
        self.sent.drain(..).for_each(|packet| pool.give(packet.slot));
        Ok(())
    }

    fn close(&mut self, pool: &mut Pool) {
        let _ = self.flush(pool);
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> DriverCounters {
        self.counters
    }
}

/// Threads of this process.
fn threads() -> Result<HashSet<String>, Error> {
    let tasks = std::fs::read_dir("/proc/self/task")?;
    Ok(tasks.filter_map(|task| task.ok()?.file_name().into_string().ok()).collect())
}

/// Starts an engine of one worker; returns the worker's directory below `/proc` too.
pub fn one_worker() -> Result<(Live, String), Error> {
    let before = threads()?;
    let live = Live::start(LiveConfig { workers: 1, slots: 8192, ..LiveConfig::default() })?;
    let worker = threads()?.difference(&before).next().cloned().ok_or("no worker")?;
    Ok((live, format!("self/task/{worker}")))
}

/// Processor time of a thread, nanoseconds. The kernel updates it when the thread sleeps.
pub fn processor_ns(thread: &str) -> Result<u64, Error> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat"))?;
    Ok(text.split_whitespace().next().ok_or("no processor time")?.parse()?)
}

/// Median, and a text with the tenth and ninetieth percentile too.
pub fn spread(values: &mut [f64]) -> (f64, String) {
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return (f64::NAN, "nothing measured: the machine is too busy".to_owned());
    }
    let at = |tenth: usize| values[(values.len() - 1) * tenth / 10];
    (at(5), format!("{:6.1} ns ({:.1} to {:.1})", at(5), at(1), at(9)))
}
