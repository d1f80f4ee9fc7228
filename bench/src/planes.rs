//! Whole packets: parse, checksum, lookup, rewrite, counters. Ours for 1, 15 and 200 networks beside a DPDK loop with one
//! table; 64-byte packets in memory, one core.
//!
//! A pass is [`PASS`] packets, about what the rings of a network card hold. Before each pass, outside the clock, fresh
//! frames are written for the contestant, with destinations that go on through a long random stream, so that tables are
//! as cold as they would be. Then the clock runs until all frames are rewritten and sent. Ours runs over the very same
//! ports and packet buffers as DPDK's loop, and once more without ports, on frames in one flat buffer.

use std::cell::RefCell;
use std::rc::Rc;

use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Verdict};
use hue_soft::{BATCH_MAX, Fate, Frame, Soft};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{Limits, Prefix};
use hue_wire::Mac;
use serde_json::json;

use crate::dpdk::Dpdk;
use crate::dpdk::lpm::{Lpm, tbl8s};
use crate::dpdk::ring::{OUTCOMES, Ring};
use crate::engine::{Destinations, Queries, vid};
use crate::measure::{interleave, seconds};
use crate::packets::{self, FRAME, MTU};
use crate::report::{Report, Section, millions, round};
use crate::rib::{self, DERIVED_HOPS, Relation, Table, derive, derived_hop};
use crate::rng::Rng;
use crate::{Failure, Settings};

/// Packets a pass.
pub const PASS: usize = 4096;
/// Networks that ours is measured with.
const NETWORKS: [usize; 3] = [1, 15, 200];
/// Routes of a small table: what the reference router of NetFPGA holds.
const SMALL: u32 = 32;
const IN: PortId = PortId::new(0);
const OUT: PortId = PortId::new(1);
const COLUMNS: [&str; 6] = ["plane", "networks", "ns a packet", "Mpps median", "min", "max"];

/// A contestant.
trait PlaneEngine {
    /// Its name in results.
    fn name(&self) -> String;
    /// Takes a pass of frames. Not timed.
    fn load(&mut self, frames: &[u8]);
    /// Handles all of them; how many. Timed.
    fn run(&mut self) -> Result<usize, Failure>;
    /// Gives forwarded frames in order of arrival into `keep`; how many. Not timed.
    fn unload(&mut self, keep: Option<&mut [u8]>) -> usize;
}

/// What runs between the ports.
enum Between<'r, 'a> {
    /// DPDK's loop.
    Lpm(&'r Lpm<'a>),
    /// Nothing.
    Idle,
    /// Ours.
    Soft(Rc<RefCell<Soft>>),
}

/// A plane over the `net_ring` ports.
struct OverRing<'r, 'a> {
    ring: &'r RefCell<Ring<'a>>,
    burst: usize,
    between: Between<'r, 'a>,
}

impl PlaneEngine for OverRing<'_, '_> {
    fn name(&self) -> String {
        let what = match &self.between {
            Between::Lpm(_) => "DPDK: net_ring, rte_lpm x4",
            Between::Idle => "net_ring alone, no work",
            Between::Soft(_) => "hueplane over net_ring",
        };
        format!("{what}, burst {}", self.burst)
    }

    fn load(&mut self, frames: &[u8]) {
        self.ring.borrow_mut().load(frames, FRAME);
    }

    fn run(&mut self) -> Result<usize, Failure> {
        let mut ring = self.ring.borrow_mut();
        let soft = match &self.between {
            Between::Lpm(lpm) => return Ok(ring.run(lpm, self.burst)),
            Between::Idle => return Ok(ring.idle(self.burst)),
            Between::Soft(soft) => soft,
        };
        let mut soft = soft.borrow_mut();
        let mut frames = [Frame::new(IN, 0, 0, 0); BATCH_MAX];
        Ok(ring.drive(self.burst.min(BATCH_MAX), |arena, starts, lens, forward| {
            for ((frame, start), len) in frames.iter_mut().zip(starts).zip(lens) {
                *frame = Frame::new(IN, 0, *start, *len);
            }
            let mut done = 0;
            while done < starts.len() {
                done += soft.process(arena, &mut frames[done..starts.len()]).max(1);
            }
            for (forward, frame) in forward.iter_mut().zip(&frames) {
                *forward =
                    u8::from(matches!(frame.fate, Fate::Network { outcome, .. } if outcome.is_forward()));
            }
        })?)
    }

    fn unload(&mut self, keep: Option<&mut [u8]>) -> usize {
        self.ring.borrow_mut().unload(keep, FRAME)
    }
}

/// Our plane on frames in a flat buffer, without ports.
struct Flat {
    soft: Rc<RefCell<Soft>>,
    buffer: Vec<u8>,
    frames: Vec<Frame>,
}

impl PlaneEngine for Flat {
    fn name(&self) -> String {
        format!("hueplane, frames in a flat buffer, batch {BATCH_MAX}")
    }

    fn load(&mut self, frames: &[u8]) {
        self.buffer.clear();
        self.buffer.extend_from_slice(frames);
        self.frames.clear();
        let starts = (0..frames.len() as u32).step_by(FRAME);
        self.frames.extend(starts.map(|start| Frame::new(IN, 0, start, FRAME as u32)));
    }

    fn run(&mut self) -> Result<usize, Failure> {
        let mut soft = self.soft.borrow_mut();
        let mut done = 0;
        while done < self.frames.len() {
            done += soft.process(&mut self.buffer, &mut self.frames[done..]).max(1);
        }
        Ok(done)
    }

    fn unload(&mut self, keep: Option<&mut [u8]>) -> usize {
        let forward = |frame: &&Frame| frame.fate.verdict() == Some(Verdict::Forward);
        let mut count = 0;
        let mut keep = keep.unwrap_or_default().chunks_exact_mut(FRAME);
        for frame in self.frames.iter().filter(forward) {
            if let (Some(keep), Some(bytes)) = (keep.next(), frame.bytes(&self.buffer)) {
                keep.copy_from_slice(bytes);
            }
            count += 1;
        }
        count
    }
}

/// A contestant with its packets.
struct Contest<'r> {
    engine: Box<dyn PlaneEngine + 'r>,
    networks: usize,
    queries: Rc<Queries<u32>>,
    /// Whether frames come out rewritten.
    works: bool,
}

/// Planes on small and on full tables.
///
/// # Errors
/// When DPDK fails, or a frame comes out different from what it must be.
pub fn all(dpdk: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let ring = RefCell::new(Ring::new(dpdk, 2 * PASS as u32)?);
    for hop in 0..DERIVED_HOPS as u16 {
        ring.borrow_mut().adjacency(hop as u8, packets::macs(0, hop), MTU);
    }
    report.push(compare(dpdk, settings, &ring, "small", &NETWORKS, small)?);
    if let Some(base) = rib::prefixes::<u32>(rib::V4_2026) {
        let counts = if settings.quick { &NETWORKS[..2] } else { &NETWORKS[..] };
        let full = |net| derive(&base, Relation::Overlap, net);
        report.push(compare(dpdk, settings, &ring, "full", counts, full)?);
    }
    let counters = ring.borrow().counters();
    for (outcome, count) in OUTCOMES.iter().zip(counters).filter(|(outcome, _)| **outcome != "forward") {
        if count > 0 {
            return Err(Failure::Disagree(format!("the DPDK loop counted {count} packets as {outcome}")));
        }
    }
    Ok(())
}

/// Routes of lengths 8 to 24, none within another.
fn small(net: u16) -> Table<u32> {
    let mut rng = Rng::new(u64::from(net) + 32);
    Table::from_routes((0..SMALL).map(|i| {
        let bits = 0x4000_0000 | i << 25 | rng.bits() as u32 & 0x01FF_FFFF;
        let prefix = Prefix::containing(bits, 8 + rng.below(17) as u8);
        (prefix, derived_hop(prefix, net))
    }))
}

fn compare<'a>(
    dpdk: &'a Dpdk,
    settings: &Settings,
    ring: &RefCell<Ring<'a>>,
    title: &str,
    counts: &[usize],
    table: impl Fn(u16) -> Table<u32>,
) -> Result<Section, Failure> {
    let first = table(0);
    let title = format!("{title} tables ({} routes a network), destinations from the table", first.len());
    eprintln!("{title}");
    let mut lpm = Lpm::new(dpdk, first.len() + 1, tbl8s(&first) + 1)?;
    lpm.fill(&first)?;
    let mut contests = Vec::new();
    for &networks in counts {
        let tables: Vec<_> = (0..networks as u16).map(&table).collect();
        let queries = Queries::draw(&tables, Destinations::Table, settings.packets(), 0xF00D);
        let engines = engines(ring, &lpm, networks, soft(&tables)?);
        let mut added: Vec<Contest<'_>> = with(engines, networks, queries);
        for contest in &mut added {
            verify(contest, &tables)?;
        }
        contests.extend(added);
    }
    let mut buffer = vec![0; PASS * FRAME];
    let mut failure = None;
    let spreads = interleave(contests.len(), settings.rounds(), |i| {
        let Contest { engine, queries, .. } = &mut contests[i];
        let (mut done, mut time) = (0, 0.0);
        for first in (0..queries.len()).step_by(PASS) {
            packets::write(&mut buffer, queries, first);
            engine.load(&buffer);
            time += seconds(|| match engine.run() {
                Ok(packets) => done += packets,
                Err(error) => failure = Some(error),
            });
            engine.unload(None);
        }
        (done as f64, time)
    });
    failure.map_or(Ok(()), Err)?;
    let mut section = Section::new(title, &COLUMNS);
    for (contest, spread) in contests.iter().zip(&spreads) {
        let [median, min, max] = millions(spread);
        let (name, ns) = (json!(contest.engine.name()), round(1e9 / spread.median(), 1));
        section.row(vec![name, json!(contest.networks), ns, median, min, max]);
    }
    section.note(format!(
        "64-byte packets, {} a round in passes of {PASS}, {} rounds; the first pass of each plane was compared byte for byte.",
        settings.packets(),
        settings.rounds()
    ));
    Ok(section)
}

type Engines<'r> = Vec<(Box<dyn PlaneEngine + 'r>, bool)>;

/// Contestants for this many networks; DPDK's loop has one table and so only enters with one.
fn engines<'r, 'a>(
    ring: &'r RefCell<Ring<'a>>,
    lpm: &'r Lpm<'a>,
    networks: usize,
    soft: Rc<RefCell<Soft>>,
) -> Engines<'r> {
    let over = |burst, between| Box::new(OverRing { ring, burst, between }) as Box<dyn PlaneEngine + 'r>;
    let mut out: Engines<'r> = Vec::new();
    if networks == 1 {
        out.extend([32, 64, 256].map(|burst| (over(burst, Between::Lpm(lpm)), true)));
        out.push((over(64, Between::Idle), false));
    }
    for burst in [64, 256] {
        out.push((over(burst, Between::Soft(Rc::clone(&soft))), true));
    }
    out.push((Box::new(Flat { soft, buffer: Vec::new(), frames: Vec::new() }), true));
    out
}

fn with(engines: Engines<'_>, networks: usize, queries: Queries<u32>) -> Vec<Contest<'_>> {
    let queries = Rc::new(queries);
    let contest = |(engine, works)| Contest { engine, networks, queries: Rc::clone(&queries), works };
    engines.into_iter().map(contest).collect()
}

/// Our engine with a network for each table.
fn soft(tables: &[Table<u32>]) -> Result<Rc<RefCell<Soft>>, Failure> {
    let mut soft = Soft::new(Limits::default())?;
    for (net, table) in tables.iter().enumerate() {
        soft.load(&[program(net as u16, table)])?;
    }
    Ok(Rc::new(RefCell::new(soft)))
}

/// Network `net`: found by its router MAC on the receiving port, its neighbours on the sending one.
fn program(net: u16, table: &Table<u32>) -> Program {
    let port = |name: &str, port, mac| VirtualPort {
        name: name.into(),
        port,
        mac: Mac(mac),
        mtu_bytes: MTU,
        tunnel: None,
    };
    let vid = vid(net);
    let egress = Mac(packets::egress_mac(net));
    let hop = |hop| Adjacency::forward(OUT, egress, Mac(packets::neighbour_mac(net, hop)), MTU);
    let ports = vec![port("in", IN, packets::router_mac(net)), port("out", OUT, packets::egress_mac(net))];
    Program {
        vid,
        name: format!("n{net}"),
        settings: hue_planes::Settings::of(Kind::Ipv4),
        rows: vec![
            Row { vid, vport: 0, select: Match::Mac { port: IN, mac: Mac(packets::router_mac(net)) } },
            Row { vid, vport: 1, select: Match::Mac { port: OUT, mac: egress } },
        ],
        ports,
        next_hops: (0..DERIVED_HOPS as u16).map(hop).collect(),
        groups: Vec::new(),
        entries: Entries::Lpm32(table.routes().collect()),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// A first pass, byte for byte against what each frame must become.
fn verify(contest: &mut Contest<'_>, tables: &[Table<u32>]) -> Result<(), Failure> {
    let name = contest.engine.name();
    let (mut sent, mut got) = (vec![0; PASS * FRAME], vec![0; PASS * FRAME]);
    packets::write(&mut sent, &contest.queries, 0);
    contest.engine.load(&sent);
    contest.engine.run()?;
    let count = contest.engine.unload(Some(&mut got));
    if count != PASS {
        return Err(Failure::Disagree(format!("{name} forwarded {count} of {PASS} packets")));
    }
    if contest.works {
        packets::forward(&mut sent, &contest.queries, tables).map_err(Failure::Disagree)?;
    }
    match sent.chunks_exact(FRAME).zip(got.chunks_exact(FRAME)).position(|(right, got)| right != got) {
        None => Ok(()),
        Some(i) => {
            let (right, got) = (&sent[i * FRAME..][..34], &got[i * FRAME..][..34]);
            Err(Failure::Disagree(format!("{name} made packet {i} {got:02x?}, not {right:02x?}")))
        }
    }
}
