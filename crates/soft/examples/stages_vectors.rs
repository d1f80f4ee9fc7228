//! Vectors for the test bench of `rtl/planes/hue_stages.sv`: random networks and frames, and the results of [`Soft`].
//!
//! `cargo run -p hue-soft --example stages_vectors -- SEED SCENARIOS tcam|dag36|dir PLANES NETS SELECT MACS ROUTES LOCALS
//! HOPS [WORDS WORDS WORDS WORDS]` prints a line a step, numbers hexadecimal:
//!
//! ```text
//! R                     reset
//! w TABLE ROW DATA      write a row
//! r TABLE ROW DATA      read a row (the driver's own way), must be DATA
//! c TABLE ROW VALUE     read and clear a counter, must be VALUE
//! e TABLE ROW WRITE ERR an access that must be refused with ERR
//! g GATES TO_CPU        gate planes
//! f                     wait until every frame so far has left
//! b                     the writes up to the line `.` happen while the frames after it run
//! p TABLE ROW BITS      read the row until these bits of it are 0
//! d                     of these writes, those that follow wait until the frames that entered before have left
//! h HEAD                the record of a frame, or of its copy for a network
//! v VERDICT OUTCOME NET VID VPORT IN OUT LEN EDIT DST SRC TTL CHECKSUM [| what it is before the writes of `b`]
//! ```
//!
//! The stages get no frames, only records of them. The records are made here by reading the frame's bytes with
//! `hue_wire`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::process::ExitCode;

use hue_demux::{Attachment, Demux, Match, PortId, Row, Selection, Target, inner_destination};
use hue_planes::{
    Adjacency, AdjacencyKind, Counters, Kind, Rate, RateLimit, Settings, Unclaimed, Verdict, ipv4,
};
use hue_soft::{Fate, Frame, Soft};
use hue_substrate::{Entries, Program, Substrate, Update, VirtualPort};
use hue_tables::cuckoo::{BANKS, Cuckoo, Placed, index_of};
use hue_tables::dag36_levels::{Dag36Levels, Retired, Write};
use hue_tables::dir::words::DirWrite;
use hue_tables::dir::{CAM_ROWS, Dir, DirLimits, SLOT_BITS, SLOTS};
use hue_tables::{Change, Dag, Limits, NextHop, Prefix4, TableId, Vid};
use hue_wire::Mac;

type Failure = Box<dyn std::error::Error>;

const PORTS: u8 = 8;
const FRAME_BYTES_MAX: usize = 9216;
/// Frames of a scenario; a few of them make several records.
const FRAMES: u32 = 600;
/// Rounds of a scenario; routes change between them.
const ROUNDS: u32 = 6;
const TCAM: u8 = 1;
const DAG36: u8 = 2;
const DIR: u8 = 4;

// Numbers of spec/regs/tables.rdl.
const SELECT: u8 = 1;
const NETWORK: u8 = 4;
const METER: u8 = 5;
const ROUTE: u8 = 6;
const HOP: u8 = 7;
const LEVEL0: u8 = 8;
const COUNT: u8 = 12;
const BYTES: u8 = 13;
const UNCLAIMED: u8 = 15;
const LOCAL: u8 = 18;
const SRAM: u8 = 19;
const MAC: u8 = 20;
const CONFLICT: u8 = 23;
const FILL: u8 = 24;

/// The sizes of the image.
struct Image {
    layout: u8,
    planes: u32,
    nets: u32,
    select: u32,
    macs: u32,
    routes: u32,
    locals: u32,
    hops: u32,
    words: Vec<u32>,
}

struct Random(u64);

impl Random {
    /// xorshift64*.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u32) -> u32 {
        ((self.next() >> 32) % u64::from(end.max(1))) as u32
    }

    fn percent(&mut self, share: u32) -> bool {
        self.below(100) < share
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
}

/// Bits of a row or record, first named field lowest.
#[derive(Default)]
struct Bits {
    limbs: [u64; 5],
    width: usize,
}

impl Bits {
    fn push(&mut self, value: u64, width: usize) -> &mut Self {
        for bit in 0..width {
            let at = self.width + bit;
            self.limbs[at / 64] |= (value >> bit & 1) << (at % 64);
        }
        self.width += width;
        self
    }

    fn hex(&self) -> String {
        let text = self.limbs.iter().rev().fold(String::new(), |mut text, limb| {
            let _ = write!(text, "{limb:016x}");
            text
        });
        let text = text.trim_start_matches('0');
        if text.is_empty() { "0".to_owned() } else { text.to_owned() }
    }
}

fn mac_bits(mac: Mac) -> u64 {
    mac.0.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// One scenario: the networks, their reference, and the results of the frames so far.
struct Scenario<'a> {
    image: &'a Image,
    random: &'a mut Random,
    out: String,
    soft: Soft,
    /// The reference before the change whose writes run beside the frames.
    before: Soft,
    /// That change.
    beside: Option<(Vid, Vec<Change<u32>>)>,
    retired: Retired,
    dag: Dag,
    levels: Dag36Levels,
    banks: Dir,
    /// The routes of the networks so far that fit into the banks.
    fitted: Option<Dir>,
    programs: Vec<Program>,
    /// Index on the card, plane and first hop row, by network.
    places: HashMap<Vid, Place>,
    demux: Demux,
    addresses: Vec<u32>,
    macs: Vec<(PortId, Mac)>,
    /// Rows of the table of exact rows, by place, and the place of each key.
    exact: HashMap<u32, Bits>,
    homes: BTreeMap<u64, u32>,
    bytes: HashMap<(u32, bool), u64>,
    /// Packets that a gated plane did not process, by network and outcome.
    gated: HashMap<(u32, u32), u64>,
    unclaimed: [u64; 4],
    gates: u32,
    to_cpu: bool,
    now_ns: u64,
}

#[derive(Clone, Copy)]
struct Place {
    net: u32,
    plane: u32,
    hop_base: u32,
}

fn main() -> ExitCode {
    let texts: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u32> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    let is = |name: &str| texts.iter().any(|text| text == name);
    let layout = if is("tcam") {
        TCAM
    } else if is("dir") {
        DIR
    } else {
        DAG36
    };
    let [seed, scenarios, planes, nets, select, macs, routes, locals, hops, words @ ..] = &numbers[..] else {
        eprintln!(
            "usage: stages_vectors SEED SCENARIOS tcam|dag36|dir PLANES NETS SELECT MACS ROUTES LOCALS HOPS [WORDS…]"
        );
        return ExitCode::from(2);
    };
    let image = Image {
        layout,
        planes: *planes,
        nets: *nets,
        select: *select,
        macs: *macs,
        routes: *routes,
        locals: *locals,
        hops: *hops,
        words: words.to_vec(),
    };
    let mut random = Random(u64::from(*seed) << 1 | 1);
    for _ in 0..20 {
        random.next();
    }
    for number in 0..*scenarios {
        match scenario(&image, &mut random, number == 0) {
            Ok(text) => print!("{text}"),
            Err(error) => {
                eprintln!("stages_vectors: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn scenario(image: &Image, random: &mut Random, first: bool) -> Result<String, Failure> {
    let mut dag = Dag::new(Limits::default())?;
    dag.enable_deltas();
    let mut banks = Dir::new(DirLimits::default());
    banks.record_writes();
    let mut one = Scenario {
        image,
        random,
        out: "R\n".to_owned(),
        soft: Soft::new(Limits::default())?,
        before: Soft::new(Limits::default())?,
        beside: None,
        retired: Retired::default(),
        dag,
        levels: Dag36Levels::new(if image.layout == DAG36 { &image.words } else { &[64; 4] }),
        banks,
        fitted: None,
        programs: Vec::new(),
        places: HashMap::new(),
        demux: Demux::default(),
        addresses: vec![0xffff_ffff, 0xe000_0005, 0xefff_ffff, 0xf000_0000, 0],
        macs: Vec::new(),
        exact: HashMap::new(),
        homes: BTreeMap::new(),
        bytes: HashMap::new(),
        gated: HashMap::new(),
        unclaimed: [0; 4],
        gates: 0,
        to_cpu: false,
        now_ns: 0,
    };
    one.refusals();
    if image.layout == DIR && first {
        // Clears the banks, whatever they contain.
        let mut bits = Bits::default();
        bits.push(0, 22).push(SLOTS as u64, 20);
        let data = bits.hex();
        one.line(&format!("w {FILL:x} 0 {data}"));
        one.line(&format!("p {FILL:x} 0 1"));
        // The FILL has ended, and no word was written since.
        one.line(&format!("r {FILL:x} 0 0"));
    }
    one.networks()?;
    one.tables()?;
    for round in 0..ROUNDS {
        if round > 0 {
            one.gate();
            one.change()?;
        }
        for _ in 0..FRAMES / ROUNDS {
            one.frame();
        }
    }
    one.counters();
    Ok(one.out)
}

impl Scenario<'_> {
    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn row(&mut self, table: u8, index: u32, bits: &Bits) {
        let data = bits.hex();
        self.line(&format!("w {table:x} {index:x} {data}"));
        if self.beside.is_none() && self.random.percent(5) {
            self.line(&format!("r {table:x} {index:x} {data}"));
        }
    }

    /// Accesses that must be refused, and a table that does not exist.
    fn refusals(&mut self) {
        let Image { nets, select, macs, .. } = *self.image;
        for (table, index, write, error) in [
            (SELECT, select, 1, 2),
            (SELECT, select, 0, 2),
            (NETWORK, nets, 1, 2),
            (METER, nets, 1, 2),
            (METER, 0xff_ffff, 0, 2),
            (COUNT, 0, 1, 3),
            (COUNT, nets * 32, 0, 2),
            (BYTES, nets * 2, 0, 2),
            (BYTES, nets * 2 + 1, 1, 2),
            (BYTES, 1, 1, 3),
            (UNCLAIMED, 4, 0, 2),
            (METER, 0, 2, 3),
        ] {
            self.line(&format!("e {table:x} {index:x} {write:x} {error:x}"));
        }
        if macs > 0 {
            self.line(&format!("e {MAC:x} {macs:x} 1 2"));
            self.line(&format!("e {MAC:x} {:x} 2 3", macs - 1));
        }
        let (table, rows) = match self.image.layout {
            TCAM => (ROUTE, self.image.planes * self.image.routes),
            DIR => (CONFLICT, CAM_ROWS as u32),
            _ => (LEVEL0 + 2, self.image.words[2]),
        };
        self.line(&format!("e {table:x} {rows:x} 1 2"));
        if self.image.layout == DIR {
            self.line(&format!("e {SRAM:x} {:x} 0 2", 2 * SLOTS));
            self.line(&format!("e {FILL:x} 1 1 2"));
            self.line(&format!("e {FILL:x} 0 2 3"));
        }
    }

    fn networks(&mut self) -> Result<(), Failure> {
        let count = match self.image.layout {
            TCAM => 1 + self.random.below(self.image.planes),
            _ => 1 + self.random.below(self.image.nets.min(12)),
        };
        let mut nets: Vec<u32> = (0..self.image.nets).collect();
        let mut vids = HashSet::new();
        let mut claims = HashSet::new();
        let mut hop_base = 0;
        let mut rows_left = self.image.select;
        for index in 0..count {
            let net = nets.remove(self.random.below(nets.len() as u32) as usize);
            let vid = loop {
                let vid = Vid::new(1 + self.random.below(4095) as u16).ok_or("no such id")?;
                if vids.insert(vid) {
                    break vid;
                }
            };
            let mut program = self.program(vid, index, &mut claims);
            program.rows.retain(|row| usize::from(row.vport) < program.ports.len());
            program.rows.truncate(rows_left as usize);
            rows_left -= program.rows.len() as u32;
            let ports = program.ports.clone();
            program.next_hops.retain(|hop| {
                let at = ports.iter().any(|port| port.port == hop.port());
                hop.kind() == AdjacencyKind::Local || (at && hop.kind() == AdjacencyKind::Glean) || {
                    ports.iter().any(|port| {
                        port.port == hop.port() && port.mac == hop.src() && port.mtu_bytes >= hop.mtu_bytes()
                    })
                }
            });
            let hops = program.next_hops.len();
            program.entries.lpm32_mut().retain(|(_, hop)| usize::from(hop.get()) < hops);
            if self.image.layout == DIR {
                self.fit(&mut program);
            }
            let place = match self.image.layout {
                TCAM => Place { net, plane: index, hop_base: 0 },
                _ => Place { net, plane: self.random.below(self.image.planes), hop_base },
            };
            hop_base += hops as u32;
            self.places.insert(vid, place);
            self.programs.push(program);
        }
        let rows: Vec<Row> = self.programs.iter().flat_map(|one| one.rows.clone()).collect();
        let attached: Vec<Attachment> = self.programs.iter().flat_map(Program::attachments).collect();
        self.demux = Demux::new(&rows, &attached)?;
        self.soft.load(&self.programs)?;
        self.before.load(&self.programs)?;
        Ok(())
    }

    /// Omits routes for which the two banks have no room beside the earlier ones, and most routes with short
    /// prefixes, because one default route takes a whole bank.
    fn fit(&mut self, program: &mut Program) {
        let mut others = self.fitted.take().unwrap_or_else(|| Dir::new(DirLimits::default()));
        let _ = others.add_network(program.vid); // new
        program.entries.lpm32_mut().retain(|(prefix, hop)| {
            (prefix.len() >= 6 || self.random.percent(4))
                && others.apply(program.vid, &[(*prefix, Some(*hop))]).is_ok()
        });
        self.fitted = Some(others);
    }

    fn program(&mut self, vid: Vid, index: u32, claims: &mut HashSet<Match>) -> Program {
        let ports = 1 + self.random.below(4);
        let ports: Vec<VirtualPort> = (0..ports)
            .map(|n| VirtualPort {
                name: format!("v{n}"),
                port: PortId::new(self.random.below(u32::from(PORTS)) as u8),
                mac: Mac([2, 0, 0, 0, index as u8, n as u8]),
                mtu_bytes: self.random.of(&[68, 576, 1500, 9202]),
                tunnel: None,
            })
            .collect();
        let mut rows = Vec::new();
        for (port, vport) in ports.iter().zip(0u16..) {
            self.macs.push((port.port, port.mac));
            let prefix = Prefix4::containing(self.random.below(16) << 28, self.random.below(6) as u8);
            let wanted = [
                (90, Match::Mac { port: port.port, mac: port.mac }),
                (40, Match::Inner { port: Some(port.port), prefix }),
                (
                    15,
                    Match::Inner { port: None, prefix: Prefix4::containing(prefix.addr(), prefix.len() | 8) },
                ),
                (20, Match::Port(port.port)),
            ];
            for (share, select) in wanted {
                if self.random.percent(share) && claims.insert(select) {
                    rows.push(Row { vid, vport, select });
                }
            }
        }
        let next_hops = self.next_hops(&ports);
        let routes = self.routes(next_hops.len());
        let rate_limit = self.random.percent(40).then(|| self.rate_limit());
        Program {
            vid,
            name: format!("n{}", vid.get()),
            settings: Settings::Ipv4(ipv4::Settings { forward_martians: self.random.percent(25) }),
            ports,
            rows,
            next_hops,
            groups: Vec::new(),
            entries: Entries::Lpm32(routes),
            rate_limit,
            weight: 1,
            policies: None,
            gated: self.random.percent(8),
        }
    }

    fn next_hops(&mut self, ports: &[VirtualPort]) -> Vec<Adjacency> {
        let count = 1 + self.random.below(self.image.hops.min(24));
        (0..count)
            .map(|_| {
                let port = &ports[self.random.below(ports.len() as u32) as usize];
                match self.random.below(8) {
                    0 => Adjacency::local(),
                    1 => Adjacency::glean(port.port),
                    _ => {
                        let dst =
                            Mac([6, 1, 2, 3, self.random.below(256) as u8, self.random.below(256) as u8]);
                        let mtu = port.mtu_bytes.min(self.random.of(&[68, 100, 576, 1500, 9202]));
                        Adjacency::forward(port.port, port.mac, dst, mtu)
                    }
                }
            })
            .collect()
    }

    /// An address in one of few places, so that prefixes nest.
    fn address(&mut self) -> u32 {
        let byte = |random: &mut Random| match random.below(3) {
            0 => random.below(4),
            1 => 10 * random.below(8),
            _ => random.below(256),
        };
        let random = &mut *self.random;
        (0..4).fold(0, |address, _| address << 8 | byte(random))
    }

    fn routes(&mut self, hops: usize) -> Vec<(Prefix4, NextHop)> {
        let count = match self.image.layout {
            TCAM => self.random.below(self.image.routes + 1),
            DIR => self.random.below(30),
            _ => self.random.below(150),
        };
        let mut seen = HashSet::new();
        let mut routes = Vec::new();
        for _ in 0..count {
            // On a plane with tables of its own, single addresses use other rows.
            let single = self.image.layout == TCAM && self.random.percent(25);
            let len = if single { 32 } else { self.random.below(33) as u8 };
            let prefix = match self.addresses.is_empty() || self.random.percent(60) {
                true => Prefix4::containing(self.address(), len),
                false => {
                    let near = self.random.below(self.addresses.len() as u32) as usize;
                    Prefix4::containing(self.addresses[near], len)
                }
            };
            let Some(hop) = NextHop::new(self.random.below(hops as u32) as u16) else { continue };
            if seen.insert(prefix) {
                routes.push((prefix, hop));
                self.addresses.extend([prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]);
            }
        }
        routes
    }

    fn rate_limit(&mut self) -> RateLimit {
        let mut rate = |share: u32, bits: bool| {
            if !self.random.percent(share) {
                return None;
            }
            let per_second =
                self.random.of(&[1, 1_000, 300_000, 1_000_000, 800_000_000, 999_999_999_999, Rate::MAX]);
            let burst = match bits {
                false => self.random.of(&[1, 2, 3, 10, 50, Rate::MAX]),
                true => self.random.of(&[511, 512, 20_000, 73_728, 100_000, 500_000, Rate::MAX]),
            };
            Rate::new(per_second, burst).ok()
        };
        RateLimit { packets: rate(70, false), bits: rate(60, true) }
    }

    fn tables(&mut self) -> Result<(), Failure> {
        self.select_rows();
        for program in self.programs.clone() {
            let vid = program.vid;
            let place = self.places[&vid];
            for (hop, index) in program.next_hops.iter().zip(0u32..) {
                let base = match self.image.layout {
                    TCAM => place.plane * self.image.hops,
                    _ => place.hop_base,
                };
                self.hop_row(base + index, hop);
            }
            self.meter_row(place.net, program.rate_limit.unwrap_or_default());
            self.dag.add_network::<u32>(vid)?;
            self.banks.add_network(vid)?;
            let changes: Vec<Change<u32>> =
                program.entries.lpm32().iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
            self.route_changes(vid, &changes)?;
        }
        Ok(())
    }

    fn select_rows(&mut self) {
        let mut rows: Vec<Row> = self.programs.iter().flat_map(|program| program.rows.clone()).collect();
        rows.sort_by_key(|row| match row.select {
            Match::Mac { .. } => 0,
            Match::Inner { prefix, .. } => 40 - u32::from(prefix.len()),
            Match::Port(_) => 100,
        });
        self.mac_rows(&mut rows);
        // Leaves unused rows between used ones.
        let step =
            if self.random.percent(50) { (self.image.select / (rows.len() as u32 + 1)).max(1) } else { 1 };
        for (row, index) in rows.iter().zip(0u32..) {
            let place = self.places[&row.vid];
            let junk = self.random.next();
            let mut bits = Bits::default();
            bits.push(1, 1);
            let port = |port: Option<PortId>, bits: &mut Bits| match port {
                Some(port) => _ = bits.push(1, 1).push(u64::from(port.get()), 3),
                None => _ = bits.push(0, 1).push(junk & 7, 3),
            };
            match row.select {
                Match::Mac { port: at, mac } => {
                    port(Some(at), &mut bits);
                    bits.push(1, 1).push(mac_bits(mac), 48).push(junk, 32).push(junk, 32).push(0, 1);
                }
                Match::Inner { port: at, prefix } => {
                    port(at, &mut bits);
                    bits.push(0, 1).push(junk, 48);
                    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.len())).unwrap_or(0);
                    bits.push(u64::from(mask), 32).push(u64::from(prefix.addr()), 32).push(1, 1);
                }
                Match::Port(at) => {
                    port(Some(at), &mut bits);
                    bits.push(0, 1).push(junk, 48).push(junk, 32).push(junk, 32).push(0, 1);
                }
            }
            // The row does not only match ARP: that is a rule of live networks.
            bits.push(0, 1).push(u64::from(place.net), 8).push(u64::from(row.vport), 8);
            self.row(SELECT, index * step, &bits);
        }
    }

    /// Most of the rows with MAC addresses go to the table of exact rows; they are removed from `rows`.
    fn mac_rows(&mut self, rows: &mut Vec<Row>) {
        let Some(mut table) = Cuckoo::new(self.image.macs).filter(|table| table.rows() > 0) else { return };
        // The table keeps its rows during a reset.
        for place in 0..self.image.macs {
            self.row(MAC, place, &Bits::default());
        }
        let mut says = HashMap::new();
        let mut moves = Vec::new();
        rows.retain(|row| {
            let Match::Mac { port, mac } = row.select else { return true };
            let key = mac_bits(mac) << 3 | u64::from(port.get());
            let stays = self.random.percent(10) || !table.insert(key, &mut moves);
            if !stays {
                says.insert(key, (self.places[&row.vid].net, row.vport));
            }
            stays
        });
        self.homes.extend(moves.into_iter().map(|Placed { place, key }| (key, place)));
        for (key, place) in self.homes.clone() {
            // Any free place of a key may be used.
            let other = self.places_of(key)[self.random.below(BANKS) as usize];
            let home = if self.homes.values().any(|taken| *taken == other) { place } else { other };
            self.homes.insert(key, home);
            let (net, vport) = says[&key];
            self.exact_row(home, key, net, vport);
        }
        // Adds rows of keys that differ in one bit to places where lookups of a key read. They must not match.
        for (key, place) in self.homes.clone() {
            for other in self.places_of(key).into_iter().filter(|other| *other != place) {
                let near = key ^ 1 << self.random.below(51);
                if !self.exact.contains_key(&other) && !self.places_of(near).contains(&other) {
                    let net = self.random.below(self.image.nets);
                    self.exact_row(other, near, net, 0);
                }
            }
        }
    }

    fn places_of(&self, key: u64) -> Vec<u32> {
        let bits = (self.image.macs / BANKS).ilog2();
        (0..BANKS).filter_map(|bank| Some(bank << bits | index_of(bits, bank, key)?)).collect()
    }

    fn exact_row(&mut self, place: u32, key: u64, net: u32, vport: u16) {
        let mut bits = Bits::default();
        bits.push(1, 1).push(key, 51).push(u64::from(net), 8).push(u64::from(vport), 8);
        self.row(MAC, place, &bits);
        self.exact.insert(place, bits);
    }

    /// Moves some keys to another of their places; this must not affect any frame.
    fn move_macs(&mut self) {
        let homes: Vec<(u64, u32)> = self.homes.iter().map(|(key, place)| (*key, *place)).collect();
        for (key, from) in homes {
            let taken: HashSet<u32> = self.homes.values().copied().collect();
            let Some(to) = self.places_of(key).into_iter().find(|place| !taken.contains(place)) else {
                continue;
            };
            if self.random.percent(70) {
                continue;
            }
            let Some(bits) = self.exact.remove(&from) else { continue };
            self.row(MAC, to, &bits);
            self.row(MAC, from, &Bits::default());
            self.exact.insert(to, bits);
            self.homes.insert(key, to);
        }
    }

    fn hop_row(&mut self, index: u32, hop: &Adjacency) {
        let mut bits = Bits::default();
        bits.push(hop.kind() as u64, 2)
            .push(u64::from(hop.port().get()), 3)
            .push(u64::from(hop.mtu_bytes()), 16);
        bits.push(mac_bits(hop.dst()), 48).push(mac_bits(hop.src()), 48);
        self.row(HOP, index, &bits);
    }

    fn meter_row(&mut self, net: u32, limit: RateLimit) {
        let mut bits = Bits::default();
        for rate in [limit.packets, limit.bits] {
            let (on, per_second, burst) = rate.map_or((0, 5, 5), |rate| (1, rate.per_second(), rate.burst()));
            bits.push(on, 1).push(per_second, 40).push(burst, 40);
        }
        self.row(METER, net, &bits);
    }

    fn network_row(&mut self, vid: Vid, root: u64) {
        let place = self.places[&vid];
        let program = self.programs.iter().find(|one| one.vid == vid);
        let hops = program.map_or(0, |one| one.next_hops.len());
        let forward_martians = program
            .is_some_and(|one| matches!(one.settings, Settings::Ipv4(settings) if settings.forward_martians));
        let mut bits = Bits::default();
        bits.push(1, 1).push(u64::from(vid.get()), 12).push(u64::from(place.plane), 4).push(root, 36);
        bits.push(u64::from(place.hop_base), 16).push(hops as u64, 16);
        // The network is never in software.
        bits.push(0, 1).push(u64::from(forward_martians), 1);
        bits.push(u64::from(program.is_some_and(|one| one.gated)), 1);
        bits.push(Kind::Ipv4 as u64, 5);
        self.row(NETWORK, place.net, &bits);
    }

    /// Applies `changes` to the reference's tables and writes the result to the card's.
    fn route_changes(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), Failure> {
        // All frames that entered before the previous change have left.
        self.levels.reclaim(std::mem::take(&mut self.retired));
        self.dag.apply(vid, changes)?;
        let deltas = self.dag.take_deltas();
        if self.image.layout == TCAM {
            self.tcam_rows(vid);
            self.network_row(vid, 0);
            return Ok(());
        }
        if self.image.layout == DIR {
            return self.bank_changes(vid, changes);
        }
        let mut writes = Vec::new();
        for delta in &deltas {
            self.levels.apply(delta, &mut writes)?;
        }
        for write in writes {
            match write {
                Write::Word { level, index, word } => {
                    let mut bits = Bits::default();
                    bits.push(word, 36);
                    self.row(LEVEL0 + level as u8, index, &bits);
                }
                Write::Root { table, item: Some(item) } => self.network_row(table.vid(), item),
                Write::Root { item: None, .. } => {}
            }
        }
        if changes.is_empty() {
            let root = self.levels.root(TableId::of::<u32>(vid)).unwrap_or(0xffff);
            self.network_row(vid, root);
        }
        self.retired = self.levels.take_retired();
        Ok(())
    }

    /// Changes routes in the two banks, in the steps that `Dir` computes.
    fn bank_changes(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), Failure> {
        self.banks.apply(vid, changes)?;
        let writes = self.banks.take_writes();
        let mut words: Vec<(u32, u64)> = Vec::new();
        for write in writes {
            match write {
                DirWrite::Bank1 { index, word } => words.push((index, word)),
                DirWrite::Bank2 { index, word } => words.push((SLOTS as u32 + index, word)),
                DirWrite::Row { row, to } => {
                    self.bank_words(&mut words);
                    let mut bits = Bits::default();
                    if let Some(to) = to {
                        let prefix = to.prefix.addr() >> (32 - SLOT_BITS);
                        bits.push(1, 1).push(u64::from(to.vid.get()), 12).push(u64::from(prefix), 19);
                        bits.push(u64::from(to.prefix.len()), 5).push(u64::from(to.index), 19);
                    }
                    self.row(CONFLICT, row, &bits);
                }
                DirWrite::Drain => {
                    self.bank_words(&mut words);
                    self.line(if self.beside.is_some() { "d" } else { "f" });
                }
            }
        }
        self.bank_words(&mut words);
        // The network's row selects its frames from the first change on.
        if self.beside.is_none() {
            self.network_row(vid, 0);
        }
        Ok(())
    }

    /// Writes words; long runs of equal words by FILL.
    fn bank_words(&mut self, words: &mut Vec<(u32, u64)>) {
        let next = |one: &(u32, u64), other: &(u32, u64)| {
            one.0 + 1 == other.0 && one.1 == other.1 && other.0 != SLOTS as u32
        };
        for run in std::mem::take(words).chunk_by(next) {
            let (first, word) = run[0];
            let mut bits = Bits::default();
            if run.len() >= 8 {
                bits.push(0, 2).push(u64::from(first), 20).push(run.len() as u64, 20).push(word, 36);
                let data = bits.hex();
                self.line(&format!("w {FILL:x} 0 {data}"));
                // Waits until the FILL has ended; `written` is in the bit above `running`.
                self.line(&format!("p {FILL:x} 0 1"));
                continue;
            }
            for (row, word) in run {
                let mut bits = Bits::default();
                // A word is read back with its parity.
                bits.push(*word, 35).push(u64::from(word.count_ones() & 1), 1);
                self.row(SRAM, *row, &bits);
            }
        }
    }

    fn tcam_rows(&mut self, vid: Vid) {
        let place = self.places[&vid];
        let Some(program) = self.programs.iter().find(|one| one.vid == vid) else { return };
        let mut routes: Vec<_> = self.dag.routes(vid).collect();
        routes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let is_local =
            |hop: NextHop| program.next_hops[usize::from(hop.get())].kind() == AdjacencyKind::Local;
        // Single addresses, and whether each belongs to a neighbour.
        let singles = routes.iter().filter(|(prefix, _)| prefix.len() == 32);
        let mut addresses: Vec<_> = singles.map(|route| (*route, !is_local(route.1))).collect();
        addresses.sort_by_key(|(_, neighbour)| *neighbour);
        // Addresses that do not fit become ordinary routes.
        addresses.truncate(self.image.locals as usize);
        let has_row = |route: &(Prefix4, NextHop)| addresses.iter().any(|(other, _)| other == route);
        let others: Vec<_> = routes.iter().copied().filter(|route| !has_row(route)).collect();
        for row in 0..self.image.locals {
            let mut bits = Bits::default();
            match addresses.get(row as usize) {
                Some(((prefix, hop), neighbour)) => {
                    bits.push(1, 1).push(u64::from(prefix.addr()), 32);
                    bits.push(u64::from(*neighbour), 1).push(u64::from(hop.get()), 16);
                }
                None => _ = bits.push(0, 1),
            }
            self.row(LOCAL, place.plane * self.image.locals + row, &bits);
        }
        for row in 0..self.image.routes {
            let mut bits = Bits::default();
            match others.get(row as usize) {
                Some((prefix, hop)) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.len())).unwrap_or(0);
                    bits.push(1, 1).push(u64::from(prefix.addr()), 32);
                    bits.push(u64::from(mask), 32).push(u64::from(hop.get()), 16);
                }
                None => _ = bits.push(0, 1),
            }
            self.row(ROUTE, place.plane * self.image.routes + row, &bits);
        }
    }

    /// Changes routes of one network: when no frame is inside or, if a change is atomic for packets, beside frames.
    fn change(&mut self) -> Result<(), Failure> {
        if let Some((vid, changes)) = self.beside.take() {
            self.before.update(vid, &Update::of_routes(&changes))?;
        }
        let beside = self.image.layout != TCAM && self.random.percent(80);
        self.line(if beside { "b" } else { "f" });
        let index = self.random.below(self.programs.len() as u32) as usize;
        let (vid, hops) = (self.programs[index].vid, self.programs[index].next_hops.len());
        let before: HashMap<Prefix4, NextHop> = self.dag.routes(vid).collect();
        let mut after = before.clone();
        let mut changes = Vec::new();
        for (prefix, hop) in self.routes(hops) {
            let room = match self.image.layout {
                TCAM => after.len() < self.image.routes as usize,
                DIR => changes.is_empty() && prefix.len() >= 6,
                _ => true,
            };
            if self.image.layout == DIR && !changes.is_empty() {
                // With several changes, a packet could see one but not another.
                break;
            }
            if before.contains_key(&prefix) && self.random.percent(50) {
                after.remove(&prefix);
                changes.push((prefix, None));
            } else if room {
                after.insert(prefix, hop);
                changes.push((prefix, Some(hop)));
            }
        }
        if self.image.layout == DIR && self.banks.check(&[(vid, changes.clone())]).is_err() {
            changes.clear();
        }
        self.soft.update(vid, &Update::of_routes(&changes))?;
        if beside {
            self.beside = Some((vid, changes.clone()));
        } else {
            self.before.update(vid, &Update::of_routes(&changes))?;
        }
        self.move_macs();
        self.route_changes(vid, &changes)?;
        if beside {
            self.line(".");
        }
        Ok(())
    }

    fn gate(&mut self) {
        if self.random.percent(60) {
            return;
        }
        self.gates = if self.random.percent(50) {
            self.random.next() as u32 & ((1 << self.image.planes) - 1)
        } else {
            0
        };
        self.to_cpu = self.random.percent(50);
        let line = format!("g {:x} {:x}", self.gates, u8::from(self.to_cpu));
        self.line(&line);
    }

    fn frame(&mut self) {
        let (port, bytes) = loop {
            let (port, bytes) = self.frame_bytes();
            // For a group frame, either all targets or none are gated, because the reference cannot mix them.
            let targets = self.gated_targets(port, &bytes);
            if targets.iter().all(|(_, gated)| *gated) || targets.iter().all(|(_, gated)| !gated) {
                break (port, bytes);
            }
        };
        self.now_ns = match self.random.below(6) {
            0 => self.now_ns,
            1 => self.now_ns.wrapping_add(self.random.next() >> self.random.below(64)),
            2 => self.now_ns.saturating_sub(u64::from(self.random.below(5_000))),
            _ => self.now_ns + u64::from(self.random.below(3_000)),
        };
        let from_cpu =
            self.random.percent(4).then(|| (self.random.below(256), self.random.below(u32::from(PORTS))));
        let verdicts = match from_cpu {
            Some((net, out)) => vec![(None, self.returned(port, bytes.len(), net, out))],
            None => self.process(port, &bytes),
        };
        // The record of a group frame comes once for each network, and names the network.
        let group = hue_wire::ethernet::is_group(&bytes);
        for (target, verdict) in verdicts {
            let head = self.head(port, &bytes, from_cpu, target.filter(|_| group));
            self.line(&format!("h {head}"));
            self.line(&verdict);
        }
    }

    /// A frame: usually a valid packet for one of the networks, sometimes damaged.
    fn frame_bytes(&mut self) -> (PortId, Vec<u8>) {
        let (mut port, mut dst) = self.macs[self.random.below(self.macs.len() as u32) as usize];
        if self.random.percent(10) {
            port = PortId::new(self.random.below(u32::from(PORTS)) as u8);
        }
        match self.random.below(12) {
            0 => dst = Mac::BROADCAST,
            1 => dst = Mac([1, 0, 0x5e, 0, 0, 5]),
            2 => dst = Mac([2, 9, 9, 9, 9, 9]),
            _ => {}
        }
        let mut bytes = dst.0.to_vec();
        bytes.extend([2, 7, 7, 7, 7, 7, 8, 0]);
        let address = match self.random.below(4) {
            0 => self.address(),
            _ => self.addresses[self.random.below(self.addresses.len() as u32) as usize],
        };
        let payload = match self.random.below(6) {
            0 => self.random.below(9_200),
            1 => 1_480,
            _ => self.random.below(120),
        } as usize;
        let options = if self.random.percent(8) { 4 * self.random.below(11) as usize } else { 0 };
        self.packet(&mut bytes, address, options, payload);
        if self.random.percent(20) {
            self.spoil(&mut bytes);
        }
        (port, bytes)
    }

    /// An IPv4 packet with a correct checksum, sometimes a tunnel.
    fn packet(&mut self, bytes: &mut Vec<u8>, address: u32, options: usize, payload: usize) {
        let at = bytes.len();
        let total = 20 + options + payload;
        let ttl = if self.random.percent(8) { self.random.below(3) as u8 } else { 64 };
        let protocol = self.random.of(&[6u8, 6, 6, 17, 4]);
        bytes.push(0x45 + (options / 4) as u8);
        bytes.push(0);
        bytes.extend((total as u16).to_be_bytes());
        bytes.extend([self.random.below(256) as u8, self.random.below(256) as u8, 0, 0, ttl, protocol, 0, 0]);
        let source = match self.random.below(8) {
            0 => self.random.next() as u32,
            _ => 0x0a00_0000 | self.random.below(1 << 24),
        };
        bytes.extend(source.to_be_bytes());
        bytes.extend(address.to_be_bytes());
        bytes.extend((0..options + payload).map(|n| n as u8));
        self.inside(&mut bytes[at + 20 + options..], protocol);
        let header = &mut bytes[at..at + 20 + options];
        let sum =
            header.chunks(2).fold(0u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        // Sometimes uses the other representation of zero, or of all ones.
        if sum == 0 && self.random.percent(50) {
            header[10..12].copy_from_slice(&[0xff, 0xff]);
        }
        if self.random.percent(30) {
            bytes.extend(std::iter::repeat_n(0u8, self.random.below(20) as usize));
        }
    }

    fn inside(&mut self, payload: &mut [u8], protocol: u8) {
        let address = self.addresses[self.random.below(self.addresses.len() as u32) as usize].to_be_bytes();
        let header_at = match protocol {
            4 => 0,
            17 if payload.len() >= 30 => {
                payload[2..4].copy_from_slice(&4789u16.to_be_bytes());
                payload[8] = 8;
                payload[28..30].copy_from_slice(&[8, 0]);
                30
            }
            _ => return,
        };
        if let Some(header) = payload.get_mut(header_at..header_at + 20) {
            header[0] = 0x45;
            header[16..].copy_from_slice(&address);
        }
    }

    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        match self.random.below(10) {
            0 => bytes.truncate(self.random.below(14) as usize),
            1 => bytes.truncate(self.random.below(60) as usize),
            2 => bytes.resize(9_210 + self.random.below(20) as usize, 0),
            3 => bytes[12..14].copy_from_slice(&[8, 6]),
            4 => bytes[12] = self.random.below(256) as u8,
            5 => bytes[14] = self.random.below(256) as u8,
            6 => bytes[16..18].copy_from_slice(&(self.random.below(65_536) as u16).to_be_bytes()),
            7 => bytes[24] ^= 1 << self.random.below(8),
            8 => {
                let at = self.random.below(bytes.len().min(80) as u32) as usize;
                bytes[at] ^= 1 << self.random.below(8);
            }
            _ => bytes.truncate(bytes.len() - self.random.below(10).min(bytes.len() as u32) as usize),
        }
    }

    /// The record, `hue_pkg::hue_head_t`, with its last field pushed first. Fields of a header that the frame does
    /// not contain are zero.
    fn head(&self, port: PortId, bytes: &[u8], from_cpu: Option<(u32, u32)>, copy: Option<Target>) -> String {
        let copy = copy.map(|target| (self.places[&target.vid].net, u32::from(target.vport)));
        let len = bytes.len().min(FRAME_BYTES_MAX + 1);
        let header = |bytes_min: usize| {
            if (bytes_min..=FRAME_BYTES_MAX).contains(&bytes.len()) { bytes } else { &[0; 34] }
        };
        let (ethernet, ipv4) = (header(14), header(34));
        let number = |bytes: &[u8], at: usize| u64::from(bytes[at]) << 8 | u64::from(bytes[at + 1]);
        let header_bytes = 4 * usize::from(ipv4[14] & 15);
        let sum_ok =
            header_bytes >= 20 && ipv4.get(14..14 + header_bytes).is_some_and(hue_wire::ipv4::verify_bytes);
        let inner = inner_destination(&bytes[..if len > FRAME_BYTES_MAX { 0 } else { len }]);
        let (cpu_net, cpu_out) = from_cpu.unwrap_or_default();
        let (net, vport) = copy.unwrap_or((cpu_net, 0));
        let mut head = Bits::default();
        head.push(u64::from(cpu_out), 3).push(u64::from(vport), 8).push(u64::from(net), 8);
        head.push(u64::from(copy.is_some()), 1).push(u64::from(from_cpu.is_some()), 1);
        head.push(u64::from(inner.unwrap_or_default()), 32).push(u64::from(inner.is_some()), 1);
        head.push(u64::from(sum_ok), 1).push(number(ipv4, 30) << 16 | number(ipv4, 32), 32);
        head.push(u64::from(ipv4[26]), 8).push(number(ipv4, 24), 16).push(u64::from(ipv4[22]), 8);
        head.push(number(ipv4, 16), 16).push(u64::from(ipv4[14] & 15), 4).push(u64::from(ipv4[14] >> 4), 4);
        head.push(number(ethernet, 12), 16);
        head.push(mac_bits(Mac(ethernet[..6].try_into().expect("14 bytes"))), 48);
        head.push(len as u64, 14).push(u64::from(port.get()), 3).push(self.now_ns, 64);
        head.hex()
    }

    fn count_bytes(&mut self, net: u32, sent: bool, len: usize) {
        *self.bytes.entry((net, sent)).or_default() += len as u64;
    }

    fn unclaimed(&mut self, reason: Unclaimed, port: PortId, len: usize) -> String {
        self.count(Fate::Unclaimed(reason), len);
        format!("v {}", nobodys(reason, port, len))
    }

    /// The result for a frame that a software plane returned: it leaves unchanged.
    fn returned(&mut self, port: PortId, len: usize, net: u32, out: u32) -> String {
        match len {
            0..14 => return self.unclaimed(Unclaimed::Runt, port, len),
            14..=FRAME_BYTES_MAX => {}
            _ => return self.unclaimed(Unclaimed::TooLong, port, len),
        }
        if net >= self.image.nets {
            return self.unclaimed(Unclaimed::NoNetwork, port, len);
        }
        self.count_bytes(net, true, len);
        let vid = self.places.iter().find(|(_, place)| place.net == net).map_or(0, |(vid, _)| vid.get());
        // No MAC, TTL or checksum is written.
        format!("v 1 0 {net:x} {vid:x} 0 {:x} {out:x} {len:x} 0 0 0 0 0", port.get())
    }

    fn process(&mut self, port: PortId, bytes: &[u8]) -> Vec<(Option<Target>, String)> {
        if let Some(verdict) = self.process_gated(port, bytes) {
            return verdict;
        }
        let after = fates(&mut self.soft, port, self.now_ns, bytes);
        let before = fates(&mut self.before, port, self.now_ns, bytes);
        let mut verdicts = Vec::new();
        for ((fate, new), (fate_before, old)) in after.into_iter().zip(before) {
            self.count(fate, bytes.len());
            let mut text = format!("v {}", self.verdict(port, bytes.len(), fate, &new));
            let before = self.verdict(port, bytes.len(), fate_before, &old);
            if !text.ends_with(&before) {
                let _ = write!(text, " | {before}");
            }
            let target = match fate {
                Fate::Network { vid, vport, .. } => Some(Target { vid, vport }),
                _ => None,
            };
            verdicts.push((target, text));
        }
        verdicts
    }

    fn count(&mut self, fate: Fate, len: usize) {
        match fate {
            Fate::Network { vid, outcome, .. } => {
                let net = self.places[&vid].net;
                self.count_bytes(net, false, len);
                if outcome == ipv4::Outcome::Forward {
                    self.count_bytes(net, true, len);
                }
            }
            Fate::Unclaimed(reason) => self.unclaimed[usize::from(reason.code())] += 1,
            Fate::Pending | Fate::Flooded => {}
        }
    }

    /// The text of a verdict's line.
    fn verdict(&self, port: PortId, len: usize, fate: Fate, after: &[u8]) -> String {
        let (vid, vport, outcome, egress) = match fate {
            Fate::Network { vid, vport, outcome, egress } => (vid, vport, outcome, egress),
            Fate::Unclaimed(reason) => return nobodys(reason, port, len),
            Fate::Pending | Fate::Flooded => return "a frame without a fate".to_owned(),
        };
        let net = self.places[&vid].net;
        let mut macs = [0; 2];
        let (mut ttl, mut checksum) = (0, 0);
        let (verdict, out) = match outcome.verdict() {
            Verdict::Drop => (0, port.get()),
            Verdict::Punt => (2, 4 + (net % 4) as u8),
            Verdict::Forward => {
                macs = [0, 6].map(|at| after[at..].first_chunk().map_or(0, |bytes| mac_bits(Mac(*bytes))));
                (ttl, checksum) = (after[22], be16(after, 24).unwrap_or_default());
                (1, egress.get())
            }
        };
        // EditIpv4 of hue_pkg.
        let edit = u8::from(outcome == ipv4::Outcome::Forward);
        format!(
            "{verdict:x} {:x} {net:x} {:x} {vport:x} {:x} {out:x} {len:x} {edit} {:x} {:x} {ttl:x} {checksum:x}",
            outcome.code(),
            vid.get(),
            port.get(),
            macs[0],
            macs[1]
        )
    }

    /// The targets of a frame according to the reference, while planes are gated; empty if no plane is gated.
    fn gated_targets(&self, port: PortId, bytes: &[u8]) -> Vec<(Target, bool)> {
        let targets = match self.demux.select(port, bytes) {
            _ if self.gates == 0 || !(14..=FRAME_BYTES_MAX).contains(&bytes.len()) => return Vec::new(),
            Selection::Nobody => return Vec::new(),
            Selection::One(target, _) => vec![target],
            Selection::Several(targets) => targets.to_vec(),
        };
        let gated = |target: &Target| self.gates >> self.places[&target.vid].plane & 1 == 1;
        targets.into_iter().map(|target| (target, gated(&target))).collect()
    }

    /// Packets of gated planes, which access neither meter nor tables. The reference does not know gates and never
    /// processes them.
    fn process_gated(&mut self, port: PortId, bytes: &[u8]) -> Option<Vec<(Option<Target>, String)>> {
        let targets = self.gated_targets(port, bytes);
        if !targets.iter().any(|(_, gated)| *gated) {
            return None;
        }
        let mut verdicts = Vec::new();
        for (target, _) in targets {
            let place = self.places[&target.vid];
            // Packets of a gated network are dropped, whatever happens to other packets of its plane.
            let to_cpu = self.to_cpu && !self.programs.iter().any(|one| one.vid == target.vid && one.gated);
            let outcome = if to_cpu { 0 } else { ipv4::Outcome::Gated.code() };
            *self.gated.entry((place.net, u32::from(outcome))).or_default() += 1;
            self.count_bytes(place.net, false, bytes.len());
            let (verdict, out) = if to_cpu { (2, 4 + place.net % 4) } else { (0, u32::from(port.get())) };
            let text = format!(
                "v {verdict:x} {outcome:x} {:x} {:x} {:x} {:x} {out:x} {:x} 0 0 0 0 0",
                place.net,
                target.vid.get(),
                target.vport,
                port.get(),
                bytes.len()
            );
            verdicts.push((Some(target), text));
        }
        Some(verdicts)
    }

    fn counters(&mut self) {
        self.line("f");
        for program in self.programs.clone() {
            let place = self.places[&program.vid];
            let counters = self.soft.counters(program.vid).unwrap_or(Counters::new(program.kind()));
            let passed_by = |code: u32| self.gated.get(&(place.net, code)).copied().unwrap_or_default();
            let mut lines: Vec<(u32, u64)> = counters
                .iter()
                .map(|(outcome, count)| (u32::from(outcome.code()), count))
                .map(|(code, count)| (code, count + passed_by(code)))
                .collect();
            lines.push((0, passed_by(0)));
            lines.push((31, 0));
            for (code, count) in lines {
                self.line(&format!("c {COUNT:x} {:x} {count:x}", place.net * 32 + code));
            }
        }
        for net in 0..self.image.nets {
            for sent in [false, true] {
                let bytes = self.bytes.get(&(net, sent)).copied().unwrap_or_default();
                self.line(&format!("c {BYTES:x} {:x} {bytes:x}", net * 2 + u32::from(sent)));
            }
        }
        for (code, count) in self.unclaimed.into_iter().enumerate() {
            self.line(&format!("c {UNCLAIMED:x} {code:x} {count:x}"));
        }
    }
}

fn nobodys(reason: Unclaimed, port: PortId, len: usize) -> String {
    let len = len.min(FRAME_BYTES_MAX + 1);
    format!("3 {:x} 0 0 0 {:x} {:x} {len:x} 0 0 0 0 0", reason.code(), port.get(), port.get())
}

/// The fates of a frame, or of its copies, and their bytes.
fn fates(soft: &mut Soft, port: PortId, now_ns: u64, bytes: &[u8]) -> Vec<(Fate, Vec<u8>)> {
    let mut buffer = bytes.to_vec();
    let mut frame = [Frame::new(port, now_ns, 0, bytes.len() as u32)];
    soft.process(&mut buffer, &mut frame);
    match frame[0].fate {
        Fate::Flooded => {
            let copies = soft.copies();
            copies
                .map(|copy| (copy.fate, copy.bytes.map_or_else(|| bytes.to_vec(), <[u8]>::to_vec)))
                .collect()
        }
        fate => vec![(fate, buffer)],
    }
}
