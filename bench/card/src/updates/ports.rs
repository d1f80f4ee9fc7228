//! The card's registers with frames at its ports, which flow while the driver writes; and registers without a card.

use std::ops::Sub;

use hue_card::generated as regs;
use hue_card::{AccessError, Images, Registers, Twin};
use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Settings};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::Mac;

use super::day::Routes;
use crate::rng::Rng;

const PORTS: u8 = 4;
const HOPS: u16 = 8;
const MTU_BYTES: u16 = 1500;
/// Frames that wait outside a port when the driver continues: they last for 250,000 clocks.
const AHEAD: u64 = 8000;
/// Different frames of a port.
const FRAMES: usize = 8192;
/// Clocks between two feeds of frames.
const STEP_CLOCKS: u64 = 10_000;
/// The registers that describe a card.
const DESCRIBED: std::ops::Range<u32> = 0..0x100;

/// Register accesses so far, and how many words of the trie they wrote.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub words: u64,
    pub accesses: u64,
}

impl Sub for Counts {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { words: self.words - other.words, accesses: self.accesses - other.accesses }
    }
}

impl Counts {
    fn write(&mut self, address: u32, value: u32, table: &mut u32) {
        self.accesses += 1;
        if address == regs::TABLE_ID {
            *table = value;
        }
        let command = address == regs::TABLE_COMMAND && *table == regs::SRAM.id;
        self.words += u64::from(command || regs::BURST_WORD.contains(&address));
    }
}

/// A network's id.
pub fn vid(net: u16) -> Vid {
    Vid::new(net).unwrap_or_else(|| unreachable!("a small number"))
}

/// Routes of a program.
pub fn routes_from(table: &Routes) -> Vec<(Prefix4, NextHop)> {
    let mut routes: Vec<_> = table.iter().map(|(prefix, hop)| (*prefix, *hop)).collect();
    routes.sort_unstable_by_key(|(prefix, _)| *prefix);
    routes
}

fn router(net: u16, port: u8) -> Mac {
    let [high, low] = net.to_be_bytes();
    Mac([0x02, 0, 0, high, low, port])
}

/// A network on all ports, with two neighbours behind each.
pub fn program(net: u16, routes: Vec<(Prefix4, NextHop)>) -> Program {
    let vid = vid(net);
    let ports = (0..PORTS).map(|port| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: router(net, port),
        mtu_bytes: MTU_BYTES,
        tunnel: None,
    });
    let row = |port: u8| {
        let select = Match::Mac { port: PortId::new(port), mac: router(net, port) };
        Row { vid, vport: u16::from(port), select }
    };
    let hop = |hop: u16| {
        let port = hop as u8 % PORTS;
        let neighbour = Mac([0x02, 0, 1, 0, net as u8, hop as u8]);
        Adjacency::forward(PortId::new(port), router(net, port), neighbour, MTU_BYTES)
    };
    Program {
        vid,
        name: format!("n{net}"),
        settings: Settings::of(Kind::Ipv4),
        ports: ports.collect(),
        rows: (0..PORTS).map(row).collect(),
        next_hops: (0..HOPS).map(hop).collect(),
        groups: Vec::new(),
        entries: Entries::Lpm32(routes),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// Frames that are offered repeatedly.
pub struct Stream {
    frames: [Vec<[u8; 60]>; PORTS as usize],
    next: [usize; PORTS as usize],
}

impl Stream {
    /// To random ones of these addresses of these networks.
    pub fn of(networks: &[(u16, Vec<u32>)], seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let frames = [0, 1, 2, 3].map(|port| {
            let frame = |_| {
                let (net, keys) = &networks[rng.below(networks.len())];
                frame(router(*net, port), keys[rng.below(keys.len())])
            };
            (0..FRAMES).map(frame).collect()
        });
        Self { frames, next: [0; PORTS as usize] }
    }
}

/// The shortest frame: IPv4, TTL 64, UDP.
fn frame(to: Mac, dst: u32) -> [u8; 60] {
    let mut bytes = [0; 60];
    bytes[..6].copy_from_slice(&to.0);
    bytes[6..14].copy_from_slice(&[0x02, 0, 2, 0, 0, 1, 8, 0]);
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    bytes[26..30].copy_from_slice(&[192, 0, 2, 1]);
    bytes[30..34].copy_from_slice(&dst.to_be_bytes());
    let words = bytes[14..34].chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    bytes
}

/// A twin whose ports have frames.
pub struct Ports {
    twin: Twin,
    stream: Stream,
    /// It reports the version before bursts.
    apart: bool,
    table: u32,
    pub counts: Counts,
    /// Frames that were offered, and that were forwarded.
    offered: u64,
    pub left: u64,
}

impl Ports {
    pub fn new(twin: Twin, stream: Stream, apart: bool) -> Self {
        Self { twin, stream, apart, table: 0, counts: Counts::default(), offered: 0, left: 0 }
    }

    /// Full input queues apply back-pressure, as with MACs that pause their lines.
    pub fn hold_back(&mut self) -> Result<(), AccessError> {
        self.twin.write(regs::CONTROL, regs::CONTROL_PAUSE)
    }

    pub fn cycles(&self) -> u64 {
        self.twin.cycles()
    }

    /// Refills the frames at all ports.
    pub fn feed(&mut self) -> Result<(), String> {
        for port in 0..PORTS {
            let at = usize::from(port);
            while self.twin.waiting(port) < AHEAD {
                let frames = &self.stream.frames[at];
                let frame = &frames[self.stream.next[at] % frames.len()];
                self.stream.next[at] += 1;
                self.offered += 1;
                if !self.twin.push(port, 0, 0, 0, frame) {
                    return Err("a frame cannot be offered".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Collects the forwarded frames.
    pub fn collect(&mut self) {
        while let Some(frame) = self.twin.pop() {
            self.left += u64::from(frame.port < PORTS);
        }
    }

    /// Lets frames flow.
    pub fn warm_up(&mut self, clocks: u64) -> Result<(), String> {
        for _ in 0..clocks.div_ceil(STEP_CLOCKS) {
            self.feed()?;
            self.twin.run_exactly(STEP_CLOCKS);
            self.collect();
        }
        Ok(())
    }

    /// Frames forwarded a clock.
    pub fn rate(&mut self, clocks: u64) -> Result<f64, String> {
        let (left, begin) = (self.left, self.cycles());
        self.warm_up(clocks)?;
        Ok((self.left - left) as f64 / (self.cycles() - begin) as f64)
    }

    /// Waits until all frames inside have left. Returns how many of all offered frames did not come.
    pub fn drain(&mut self) -> Result<u64, String> {
        while !self.twin.idle() {
            if self.twin.run(STEP_CLOCKS) == STEP_CLOCKS && self.twin.still_cycles() > 10 * STEP_CLOCKS {
                return Err("nothing moves in the card".to_owned());
            }
            self.collect();
        }
        self.collect();
        Ok(self.offered - self.left)
    }
}

impl Registers for Ports {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        self.counts.accesses += 1;
        let value = self.twin.read(address)?;
        Ok(if self.apart && address == regs::VERSION { value & !0xffff | 1 } else { value })
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        self.counts.write(address, value, &mut self.table);
        self.twin.write(address, value)
    }

    fn write_all(&mut self, writes: &[(u32, u32)]) -> Result<(), AccessError> {
        for (address, value) in writes {
            self.counts.write(*address, *value, &mut self.table);
        }
        self.twin.write_all(writes)
    }
}

/// Registers of an image without a card: they keep the values written.
pub struct Recorded {
    registers: Vec<u32>,
    table: u32,
    pub counts: Counts,
}

impl Recorded {
    pub fn of(images: &Images, image: &str) -> Result<Self, String> {
        let twin = images.load(image).and_then(|image| image.start());
        let mut twin = twin.map_err(|error| error.to_string())?;
        let mut registers = vec![0; 0x100];
        for address in DESCRIBED.step_by(4) {
            // A card without this register has nothing to report.
            registers[address as usize / 4] = twin.read(address).unwrap_or(0);
        }
        // Every access ends at once, and no packet is inside.
        registers[regs::TABLE_STATUS as usize / 4] = 0;
        Ok(Self { registers, table: 0, counts: Counts::default() })
    }
}

impl Registers for Recorded {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        self.counts.accesses += 1;
        Ok(self.registers.get(address as usize / 4).copied().unwrap_or(0))
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        self.counts.write(address, value, &mut self.table);
        if let Some(register) = self.registers.get_mut(address as usize / 4) {
            *register = value;
        }
        Ok(())
    }
}
