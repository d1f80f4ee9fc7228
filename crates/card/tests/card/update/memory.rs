//! A model of a card's registers and memories. It stores what is written, reports which rows were written, and looks
//! up destinations as the card's stages do, using only the words. The test decides how long records stay inside.

use std::collections::BTreeMap;

use hue_card::generated as regs;
use hue_card::generated::{HopRow, LocalRow, NetworkRow, RouteRow};
use hue_card::{AccessError, Registers, Row, Words};

/// Rows by table and index.
pub type Rows = BTreeMap<(u32, u32), Words>;

/// The result of a packet: the index of its next hop, and that row.
pub type Found = Option<(u16, HopRow)>;

/// How a card obeys HOLD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It holds records.
    Sound,
    /// It ignores HOLD.
    Deaf,
    /// It reports that it holds, but records enter: a bug that the tests must find.
    Leaky,
}

/// A row that was written.
pub struct Written {
    /// Table and index.
    pub row: (u32, u32),
    /// Its contents.
    pub words: Words,
    /// Whether it was written in a hold, when no packet enters.
    pub held: bool,
    /// Records that had left at that time.
    pub left: u64,
}

/// See the head of this file.
pub struct Memory {
    registers: BTreeMap<u32, u32>,
    rows: Rows,
    data: Words,
    journal: Vec<Written>,
    /// Register writes.
    pub writes: u64,
    accepted: u32,
    retired: u32,
    /// Number of records inside, and of all records that left.
    inside: u64,
    left: u64,
    /// How it obeys HOLD.
    pub hold: Hold,
    /// A record leaves at every n-th read of RETIRED; `None` means that none ever leaves.
    pub slow: Option<u32>,
    looks: u32,
}

impl Memory {
    /// An image whose levels have this many words (dag36), or with this many rows in each table of a plane (tcam).
    pub fn new(layout: u32, planes: u32, level_words: [u32; 4], hop_rows: u32) -> Self {
        let tcam = layout == regs::LAYOUT_TCAM;
        let mut registers = BTreeMap::from([
            (regs::IDENT, regs::IDENT_RESET),
            (regs::VERSION, regs::VERSION_RESET),
            (regs::CLOCK, 125_000),
            (regs::BUS, 0x0004_0420),
            (regs::KINDS, 2),
            (regs::LAYOUT, layout),
            (regs::PLANES, planes),
            (regs::NETS, 8),
            (regs::SELECT_ROWS, 32),
            (regs::MAC_ROWS, if tcam { 0 } else { 1024 }),
            (regs::ATTACH_ROWS, 32),
            (regs::ROUTE_ROWS, if tcam { hop_rows } else { 0 }),
            (regs::LOCAL_ROWS, if tcam { hop_rows } else { 0 }),
            (regs::HOP_ROWS, hop_rows),
            (regs::OUT_BYTES, 1 << 17),
            (regs::IMAGE_NAME[0], u32::from_le_bytes(*b"memo")),
        ]);
        registers.extend(regs::LEVEL_WORDS.into_iter().zip(level_words));
        Self {
            registers,
            rows: Rows::new(),
            data: Words::default(),
            journal: Vec::new(),
            writes: 0,
            accepted: u32::MAX - 20, // wraps early
            retired: u32::MAX - 20,
            inside: 0,
            left: 0,
            slow: Some(1),
            looks: 0,
            hold: Hold::Sound,
        }
    }

    /// The same with another value in a register.
    pub fn with(mut self, address: u32, value: u32) -> Self {
        self.registers.insert(address, value);
        self
    }

    /// The contents of the tables.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The row writes since the last call.
    pub fn take_journal(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.journal)
    }

    /// Lets a record enter.
    pub fn enter(&mut self) {
        self.accepted = self.accepted.wrapping_add(1);
        self.inside += 1;
    }

    fn leave(&mut self) {
        self.looks += 1;
        if self.inside > 0 && self.slow.is_some_and(|slow| self.looks.is_multiple_of(slow)) {
            (self.inside, self.left) = (self.inside - 1, self.left + 1);
            self.retired = self.retired.wrapping_add(1);
        }
    }

    fn command(&mut self, command: u32) {
        let key = (self.register(regs::TABLE_ID), self.register(regs::TABLE_INDEX));
        if command != regs::TABLE_COMMAND_WRITE {
            self.data = self.rows.get(&key).copied().unwrap_or_default();
            return;
        }
        self.put(key, self.data);
    }

    fn put(&mut self, key: (u32, u32), words: Words) {
        let held = self.hold == Hold::Sound && self.register(regs::HOLD) > 0;
        assert!(!held || self.inside == 0, "rows are written in a hold before the stages are empty");
        self.rows.insert(key, words);
        self.journal.push(Written { row: key, words, held, left: self.left });
    }

    fn register(&self, address: u32) -> u32 {
        self.registers.get(&address).copied().unwrap_or_default()
    }
}

impl Registers for Memory {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        if let Some(at) = regs::TABLE_DATA.iter().position(|data| *data == address) {
            return Ok(self.data[at]);
        }
        Ok(match address {
            regs::ACCEPTED => self.accepted,
            regs::RETIRED => {
                self.leave();
                self.retired
            }
            address => self.register(address),
        })
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        self.writes += 1;
        if let Some(at) = regs::TABLE_DATA.iter().position(|data| *data == address) {
            self.data[at] = value;
            return Ok(());
        }
        if let Some(high) = (0u32..).zip(regs::BURST_WORD).find(|(_, word)| *word == address) {
            let place = self.register(regs::BURST_PLACE);
            let key = (place >> regs::BURST_PLACE_ID.trailing_zeros(), place & regs::BURST_PLACE_INDEX);
            let mut words = Words::default();
            (words[0], words[1]) = (value, high.0);
            self.put(key, words);
            self.registers.insert(regs::BURST_PLACE, place + 1);
            return Ok(());
        }
        if address == regs::TABLE_COMMAND {
            self.command(value);
            return Ok(());
        }
        if self.hold != Hold::Deaf || address != regs::HOLD {
            self.registers.insert(address, value);
        }
        Ok(())
    }
}

/// A row of a table.
pub fn get<T: Row>(rows: &Rows, index: u32) -> T {
    T::unpack(&rows.get(&(T::TABLE.id, index)).copied().unwrap_or_default())
}

/// The result of a packet of a network that read this row of the network; `None` means no route.
pub fn lookup(rows: &Rows, network: &NetworkRow, key: u32) -> Found {
    let word = walk(rows, network.root, key);
    (word < network.hop_count).then(|| (word, get(rows, u32::from(network.hop_base) + u32::from(word))))
}

/// Rows of each table of a plane with tables of its own.
pub const PLANE_ROWS: u32 = 12;

/// The same in a plane with tables of its own.
pub fn match_rows(rows: &Rows, network: &NetworkRow, key: u32) -> Found {
    let plane = u32::from(network.plane) * PLANE_ROWS;
    let mut locals = (plane..plane + PLANE_ROWS).map(|index| get::<LocalRow>(rows, index));
    if let Some(row) = locals.find(|row| row.valid && row.addr == key) {
        return Some(match row.neighbour {
            false => (u16::MAX, HopRow { kind: 1, ..HopRow::default() }),
            true => (row.hop, get(rows, plane + u32::from(row.hop))),
        });
    }
    let route = (plane..plane + PLANE_ROWS)
        .map(|index| get::<RouteRow>(rows, index))
        .find(|row| row.valid && (row.value ^ key) & row.mask == 0)?;
    Some((route.hop, get(rows, plane + u32::from(route.hop))))
}

/// Looks up an address in the words of the levels, as crates/tables/src/dag36/words.rs describes them.
fn walk(rows: &Rows, root: u64, key: u32) -> u16 {
    let tables = [regs::LEVEL0.id, regs::LEVEL1.id, regs::LEVEL2.id, regs::LEVEL3.id];
    let mut item = root;
    for (table, slot) in tables.into_iter().zip(key.to_be_bytes()) {
        if item >> 34 & 1 == 0 {
            break;
        }
        let at = (item & 0xf_ffff) as u32;
        let read = |offset: u32| {
            let words = rows.get(&(table, at + offset)).copied().unwrap_or_default();
            u64::from(words[1]) << 32 | u64::from(words[0])
        };
        let (header, size) = (item >> 32 & 3, item >> 30 & 3);
        let (rank, items) = match header {
            _ if size == 3 => (u32::from(slot), 0),
            0 | 1 => {
                let headers = header as u32 + 1;
                let starts = (0..headers).flat_map(|header| (read(header) as u32).to_le_bytes());
                (starts.filter(|start| *start != 0 && *start <= slot).count() as u32, headers)
            }
            2 => panic!("pivots in a memory of a level"),
            _ => {
                let (word, bit) = (read(u32::from(slot) / 27), u32::from(slot) % 27);
                let begun = (word as u32 & ((1 << (bit + 1)) - 1)).count_ones();
                ((word >> 27 & 0xff) as u32 + begun - 1, 10)
            }
        };
        item = match size {
            0 => match read(items + rank / 4) >> (8 * (rank % 4)) & 0xff {
                0xff => 0xffff,
                hop => hop,
            },
            1 => read(items + rank / 2) >> (16 * (rank % 2)) & 0xffff,
            _ => read(items + rank),
        };
    }
    item as u16
}
