//! Measurements for decision 0007: an XDP program with a share of one ring for each network, compared with a socket for each
//! network on the same queue. One network floods: how much do the others lose, and what does a packet cost the worker?
//!
//! Both ways end in the same worker, in this process: it serves networks in turn, rewrites MACs, TTL and checksum, and sends with
//! AF_XDP. The first way uses the product's port, the second its own sockets. A third way, with one socket and no shares, shows the
//! difference between the two implementations, and the effect of a flood without protection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use hue_e2e::frame::Mac;
use hue_ports::{AfXdp, AfXdpOptions, ClassRule, Packet, Pool, Port};
use serde_json::json;

use crate::Settings;
use crate::bpf::{self, Steering};
use crate::contestant::Contestant;
use crate::load::{self, Offer};
use crate::machine::{self, FORWARDER_CORE};
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};
use crate::wires::{self, SINK, Wires};
use crate::xsk::{Memory, Receivers, Sender};

/// Number of networks; the last one floods.
const SIZES: [u16; 2] = [15, 64];
/// The victims' load together, as a share of what the worker can carry.
const VICTIMS: f64 = 0.7;
/// Frames of a network in one turn.
const TURN: u32 = 32;
/// Frames of all networks in one round.
const ROUND: usize = 256;
/// Entries of the product's rings.
const RING: u32 = 2048;

/// How frames get from the queue to the worker.
#[derive(Clone, Copy)]
enum Way {
    /// The product: one socket, a share of its ring for each network.
    Shares,
    /// One socket without shares.
    Together,
    /// A socket for each network, with rings and one fill ring of these sizes.
    Sockets { ring: u32, fill: u32 },
}

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    for networks in SIZES {
        let count = u32::from(networks);
        let part = (RING / count.next_power_of_two()).max(16);
        let ways = [
            ("one ring with shares (the product)".to_owned(), Way::Shares),
            ("one ring without shares".to_owned(), Way::Together),
            (
                format!("{networks} sockets, rings of {part}, fill {RING}: the memory of one ring"),
                Way::Sockets { ring: part, fill: RING },
            ),
            (
                format!("{networks} sockets, rings of {RING}, fill {RING}"),
                Way::Sockets { ring: RING, fill: RING },
            ),
            (
                format!("{networks} sockets, rings of {RING}, fill {}", RING * count.next_power_of_two()),
                Way::Sockets { ring: RING, fill: RING * count.next_power_of_two() },
            ),
        ];
        let workers: Vec<(Contestant, Worker)> =
            ways.into_iter().map(|(name, way)| Worker::start(name, way, networks)).collect();
        report.push(measure(settings, networks, &workers));
    }
    Ok(())
}

fn measure(settings: &Settings, networks: u16, workers: &[(Contestant, Worker)]) -> Section {
    let names: Vec<&str> = workers.iter().map(|(contestant, _)| contestant.name.as_str()).collect();
    let what = format!("{networks} networks");
    let full = interleave(&format!("{what}, capacity"), &names, settings.rounds, |i| {
        let (contestant, worker) = &workers[i];
        let full = Offer::full(64, networks, settings.seconds);
        let outcome = worker.awake(|| load::offer_watched(contestant, &full, || worker.look()));
        vec![outcome.arrived, outcome.watched_ns]
    });
    // The same rate for all, so that costs compare.
    let capacity = full.iter().map(|figures| figures[0].median()).fold(f64::INFINITY, f64::min);
    let rate = capacity * VICTIMS;
    let calm = Offer::steady(64, networks - 1, rate, settings.seconds);
    let valid = vec![wires::frame(networks, 64, wires::router(networks, 0))];
    let flooded = Offer { flood: valid, ..calm.clone() };
    let figures = interleave(&format!("{what}, calm and flood"), &names, settings.rounds, |i| {
        let (contestant, worker) = &workers[i];
        worker.awake(|| {
            let mut all = Vec::new();
            for offer in [&calm, &flooded] {
                let outcome = load::offer_watched(contestant, offer, || worker.look());
                all.extend([
                    outcome.loss * 100.0,
                    outcome.latency_us(0.99),
                    outcome.watched_ns,
                    outcome.flood / 1e3,
                ]);
            }
            all
        })
    });
    let mut section = Section::new(
        format!(
            "{} victims with {:.0} k packets/s together, one flood of valid packets",
            networks - 1,
            rate / 1e3
        ),
        &[
            "way",
            "capacity k/s median",
            "min",
            "max",
            "worker ns a packet median",
            "min",
            "max",
            "calm: lost % median",
            "p99 us median",
            "flood k/s",
            "flood: lost % median",
            "min",
            "max",
            "p99 us median",
            "worker ns a packet median",
        ],
    );
    for (i, name) in names.iter().enumerate() {
        let [loss, p99, _, _, flood_loss, flood_p99, flood_cost, flood] = &figures[i][..] else { continue };
        let mut row = vec![json!(name)];
        row.extend(three(&full[i][0], 1e-3, 1));
        row.extend(three(&full[i][1], 1.0, 0));
        row.extend([round(loss.median(), 3), round(p99.median(), 1), round(flood.median(), 0)]);
        row.extend(three(flood_loss, 1.0, 3));
        row.extend([round(flood_p99.median(), 1), round(flood_cost.median(), 0)]);
        section.row(row);
    }
    section.note(
        "Capacity and the first cost: all networks in turn, as much as the generator's core can make. Worker: processor time of its \
         thread for each packet it sent, while it had more than it could take; what the XDP program takes is the generator's core's. \
         Victims' rate: 70 % of the least capacity, the same for all ways.",
    );
    section
}

/// A worker's figures while it runs: packets sent, nanoseconds of processor time.
#[derive(Default)]
struct Figures {
    packets: AtomicU64,
    cpu_ns: AtomicU64,
}

struct Worker {
    stop: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    figures: Arc<Figures>,
    thread: Option<JoinHandle<()>>,
}

/// Shared with the worker's loop: its inputs and results.
struct Loop {
    stop: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    figures: Arc<Figures>,
}

impl Loop {
    /// Runs rounds until it is stopped; each returns how many packets it sent.
    fn run(&self, mut round: impl FnMut() -> usize) {
        let mut rounds = 0u32;
        while !self.stop.load(Ordering::Relaxed) {
            if self.paused.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            self.figures.packets.fetch_add(round() as u64, Ordering::Relaxed);
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(64) {
                self.figures.cpu_ns.store((machine::thread_seconds() * 1e9) as u64, Ordering::Relaxed);
            }
        }
    }
}

impl Worker {
    fn start(name: String, way: Way, networks: u16) -> (Contestant, Self) {
        eprintln!("  set up: {name}");
        let contestant = Contestant::own(name, Wires::veth(networks));
        let node = contestant.wires.lab.node();
        let interfaces = [bpf::index_of(node, "p0"), bpf::index_of(node, "p1")];
        let mut worker = Self {
            stop: Arc::new(AtomicBool::new(false)),
            paused: Arc::new(AtomicBool::new(true)),
            figures: Arc::new(Figures::default()),
            thread: None,
        };
        let told = Loop {
            stop: worker.stop.clone(),
            paused: worker.paused.clone(),
            figures: worker.figures.clone(),
        };
        worker.thread = Some(node.thread(move || {
            machine::pin(0, FORWARDER_CORE);
            match way {
                Way::Shares => shares(&told, networks),
                Way::Together => sockets(&told, networks, interfaces, 1, RING, RING),
                Way::Sockets { ring, fill } => {
                    sockets(&told, networks, interfaces, usize::from(networks), ring, fill);
                }
            }
        }));
        (contestant, worker)
    }

    /// Lets it poll, while others sleep.
    fn awake<T>(&self, work: impl FnOnce() -> T) -> T {
        self.paused.store(false, Ordering::Relaxed);
        let result = work();
        self.paused.store(true, Ordering::Relaxed);
        result
    }

    fn look(&self) -> (u64, u64) {
        (self.figures.packets.load(Ordering::Relaxed), self.figures.cpu_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic was printed.
            let _ = thread.join();
        }
    }
}

/// Changes a frame like a router: MACs, TTL, checksum (RFC 1624).
fn rewrite(frame: &mut [u8], own: Mac) {
    let Some(head) = frame.first_chunk_mut::<34>() else { return };
    head[..6].copy_from_slice(&SINK);
    head[6..12].copy_from_slice(&own);
    head[22] -= 1;
    let sum = u32::from(u16::from_be_bytes([head[24], head[25]])) + 0x100;
    head[24..26].copy_from_slice(&((sum + (sum >> 16)) as u16).to_be_bytes());
}

fn port(interface: &str, pool: &Pool) -> AfXdp {
    let opened =
        AfXdp::open(interface, &AfXdpOptions { ring: RING, ..AfXdpOptions::default() }, &pool.region());
    opened.unwrap_or_else(|error| panic!("{interface}: {error}")).0
}

/// The product's port, and a queue for each network behind it.
fn shares(told: &Loop, networks: u16) {
    let mut pool = Pool::new(RING * 6, 2048).unwrap_or_else(|error| panic!("memory for frames: {error}"));
    let (mut from, mut to) = (port("p0", &pool), port("p1", &pool));
    let rules: Vec<ClassRule> =
        (1..=networks).map(|n| ClassRule::Mac { mac: wires::router(n, 0), class: n }).collect();
    // Divided like the product's ring: whichever few shares are full at once, there is room for the others.
    let share = (RING / u32::from(networks)).max(128);
    let quotas: Vec<(u16, u32)> = (1..=networks).map(|n| (n, share)).collect();
    from.set_classes(&rules, &quotas).unwrap_or_else(|error| panic!("set the classes: {error}"));
    let mut queues: Vec<VecDeque<Packet>> = (0..=networks).map(|_| VecDeque::new()).collect();
    let mut received = Vec::with_capacity(ROUND);
    let mut first = 1;
    told.run(|| {
        // If the interface is removed, the measurement ends, and not this loop.
        let _ = from.receive(&mut pool, 0, &mut received, ROUND);
        for packet in received.drain(..) {
            queues[usize::from(packet.class.min(networks))].push_back(packet);
        }
        let mut sent = 0;
        for turn in 0..networks {
            let n = 1 + (first + turn) % networks;
            let count = queues[usize::from(n)].len().min(TURN as usize).min(ROUND - sent);
            for packet in queues[usize::from(n)].drain(..count) {
                rewrite(packet.bytes_mut(&mut pool), wires::router(n, 1));
                if let Err(packet) = to.send(&mut pool, packet) {
                    pool.give(packet.slot);
                }
            }
            if count > 0 {
                from.consumed(n, count as u32);
            }
            sent += count;
        }
        first = (first + 1) % networks;
        if sent > 0 || to.pending() > 0 {
            let _ = to.flush(&mut pool);
        }
        sent
    });
    from.close(&mut pool);
    to.close(&mut pool);
}

/// Own sockets: one for each network, or one for all.
fn sockets(told: &Loop, networks: u16, interfaces: [u32; 2], count: usize, ring: u32, fill: u32) {
    let mut memory = Memory::new((fill + RING * 4) as usize);
    let mut from = Receivers::open(&mut memory, interfaces[0], count, ring, fill);
    let mut to = Sender::open(&memory, interfaces[1], RING);
    let socket_of = |n: u16| if count == 1 { 0 } else { u32::from(n) - 1 };
    let macs: Vec<(Mac, u32)> = (1..=networks).map(|n| (wires::router(n, 0), socket_of(n))).collect();
    let mut steering = Steering::new(&macs);
    for number in 0..count {
        steering.set(number as u32, from.socket(number));
    }
    steering.attach(interfaces[0]);
    let own = wires::router(1, 1);
    let mut first = 0;
    let limit = if count == 1 { ROUND as u32 } else { TURN };
    told.run(|| {
        let mut sent = 0;
        for turn in 0..count {
            let room = (ROUND - sent) as u32;
            let number = (first + turn) % count;
            sent += from.receive(number, limit.min(room), |address, length| {
                rewrite(memory.frame(address, length), own);
                if !to.send(address, length) {
                    memory.give(address);
                }
            }) as usize;
        }
        first = (first + 1) % count;
        if sent > 0 {
            to.flush(&mut memory);
            from.refill(&mut memory);
        }
        sent
    });
}
