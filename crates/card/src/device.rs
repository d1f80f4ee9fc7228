//! A card as seen through its registers: its image, rows of its tables, its counters.
//!
//! Flow: card → rows → **device** → registers. Nothing is trusted: the card's description of itself must be
//! consistent, a table access must end, and a row is checked against the image before a register is accessed. Route
//! words and slots are written in bursts, with one register write each, and the result is read once at the end (ADR-0017); rows
//! of other tables are written one by one.

use hue_planes::{Kind, extract};
use hue_tables::PolicyRows;
use hue_tables::cuckoo;
use hue_tables::dag36::CARD_WORDS;
use serde::{Deserialize, Serialize};

use crate::error::CardError;
use crate::generated as regs;
use crate::registers::Registers;
use crate::rows::{FieldError, ROW_WORDS, Row, Table, Words};

/// Reads of a table access's result before the card counts as broken. The card itself gives up after 100 clocks.
const POLLS_MAX: usize = 1000;
/// Register writes of a burst that are prepared at once.
const BURST_WRITES: usize = 4096;
/// Tables that support bursts.
const OF_BURSTS: [Table; 6] = [
    regs::Level0Row::TABLE,
    regs::Level1Row::TABLE,
    regs::Level2Row::TABLE,
    regs::Level3Row::TABLE,
    regs::SramRow::TABLE,
    regs::SlotRow::TABLE,
];
/// Bits of a word of a burst.
const BURST_BITS: u32 = 36;
/// Most planes an image can have.
const PLANES_MAX: u32 = 16;
/// Most networks an image can have.
const NETS_MAX: u32 = 256;
/// Codes of unclaimed frames, and one unused code.
const UNCLAIMED_ROWS: u32 = hue_planes::Unclaimed::COUNT as u32 + 1;
/// Most rows that a Conflict CAM can have.
const CAM_ROWS_MAX: u32 = 1 << 12;
/// Most tunnels: a next hop has a byte for the row.
const TUNNEL_ROWS_MAX: u32 = 256;
/// Most rows a table can have.
const ROWS_MAX: u32 = 1 << 24;
/// Most slots of groups that an image can have.
const SLOT_ROWS_MAX: u32 = 1 << 16;
/// Rows of PORT_MAC of a network: MAC ports.
pub const PORT_MACS: u32 = 4;
/// Rows of LANE of a network.
pub const LANES: u32 = extract::LANES_MAX as u32;
/// Most entries of a network on a card: with more, small frames would not pass at line rate, whatever the card's other networks do.
const ENTRIES_MAX: u32 = 64;
/// Largest table of entries (`hue_extract`).
const PATTERN_ROWS_MAX: u32 = 4096;
/// Largest tables of policies, as a power of two (`hue_policies`).
const POLICY_BITS_MAX: u32 = 15;
/// Most bytes that output queues can have.
const OUT_BYTES_MAX: u32 = 1 << 30;

/// A network's row in table OUT_DROPS for frames to a port.
#[must_use]
pub fn out_drops_row(port: u32, net: u8) -> u32 {
    port * NETS_MAX + u32::from(net)
}

/// Layout of an image's routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Layout {
    /// Ternary rows, separate for each plane.
    Tcam,
    /// One trie in 36-bit words for all networks, with one memory per level.
    Dag36,
    /// The same trie in two banks, in external memory or on chip.
    Sram,
    /// The papers' two banks in external memory, with a Conflict CAM.
    Dir,
}

impl Layout {
    /// Its name in `rtl/images`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcam => "tcam",
            Self::Dag36 => "dag36",
            Self::Sram => "sram",
            Self::Dir => "dir",
        }
    }
}

/// Description of an image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Version of the registers: major, minor.
    pub version: (u16, u16),
    /// Clock of the data path, kHz.
    pub clock_khz: u32,
    /// Bytes per beat.
    pub bus_bytes: u32,
    /// MAC ports; the first are numbered 0 and up.
    pub mac_ports: u32,
    /// CPU queues; numbered after the MAC ports.
    pub cpu_queues: u32,
    /// Kinds of plane.
    pub kinds: Vec<Kind>,
    /// Layout of routes.
    pub layout: Layout,
    /// Planes, each with a clock gate.
    pub planes: u32,
    /// Largest number of networks.
    pub nets: u32,
    /// Ternary rows of design select.
    pub select_rows: u32,
    /// Rows of design select by port and MAC address.
    pub mac_rows: u32,
    /// Virtual ports that group frames can reach, all ports together.
    pub attach_rows: u32,
    /// Routes of a plane (tcam).
    pub route_rows: u32,
    /// Local addresses of a plane (tcam).
    pub local_rows: u32,
    /// Next hops: of a plane (tcam), of all networks together (dag36, sram, dir).
    pub hop_rows: u32,
    /// Slots of groups of next hops of all networks together.
    pub group_slots: u32,
    /// Words of each level (dag36).
    pub level_words: [u32; 4],
    /// Words of the two banks (sram, dir).
    pub sram_words: u32,
    /// Rows of the Conflict CAM (dir).
    pub cam_rows: u32,
    /// MAC addresses of all networks that learn (kind `l2`).
    pub station_rows: u32,
    /// Entries of all networks of kind `extract`.
    #[serde(default)]
    pub pattern_rows: u32,
    /// Tunnels of all networks.
    #[serde(default)]
    pub tunnel_rows: u32,
    /// Rows for routes by source of all networks together; all 0 without.
    #[serde(default)]
    pub policy_rows: PolicyRows,
    /// Memory of the output queues, in bytes. One queue takes at most half of the space that the others leave free.
    pub out_bytes: u32,
}

/// Of a hundred rows of STATION, those that networks can set aside.
const STATIONS_USABLE_PERCENT: u64 = 90;
/// Rows of TUNNEL_COUNT of a network.
pub const TUNNEL_COUNTED_ROWS: u32 = 4;

impl Description {
    /// Single-address rows of each network that neighbours may use too. An image of an earlier version reserves these
    /// rows for the router's own addresses.
    #[must_use]
    pub const fn neighbour_rows(&self) -> u32 {
        if self.version.1 >= 3 { self.local_rows } else { 0 }
    }

    /// How many MAC addresses networks can set aside, all networks together. In the rest of the rows, new addresses find places.
    #[must_use]
    pub const fn stations_max(&self) -> u32 {
        (self.station_rows as u64 * STATIONS_USABLE_PERCENT / 100) as u32
    }

    /// Indices for networks. In live use, rows of design select need one more that they can name, [`Self::nobody`].
    #[must_use]
    pub const fn indices(&self, live: bool) -> u32 {
        if live && self.nets == NETS_MAX { NETS_MAX - 1 } else { self.nets }
    }

    /// Most networks that the card decides.
    #[must_use]
    pub fn networks_max(&self, live: bool) -> u32 {
        match self.layout {
            Layout::Tcam => self.indices(live).min(self.planes),
            Layout::Dag36 | Layout::Sram | Layout::Dir => self.indices(live),
        }
    }

    /// An index that no network has in live use: frames that rows of design select give to it belong to no network.
    #[must_use]
    pub const fn nobody(&self) -> u8 {
        self.indices(true) as u8 // below NETS_MAX
    }

    /// Streams of frames: MAC ports, then CPU queues.
    #[must_use]
    pub const fn ports(&self) -> u32 {
        self.mac_ports + self.cpu_queues
    }

    /// How many entries a network of kind `extract` may have.
    #[must_use]
    pub const fn entries_max(&self) -> u32 {
        if self.pattern_rows < ENTRIES_MAX { self.pattern_rows } else { ENTRIES_MAX }
    }

    /// Rows of a table of this image; 0 if the image does not have the table.
    #[must_use]
    pub fn rows(&self, table: Table) -> u32 {
        let [level0, level1, level2, level3] = self.level_words;
        let ports = self.ports();
        match table {
            regs::SELECT => self.select_rows,
            regs::MAC => self.mac_rows,
            regs::ATTACH => self.attach_rows,
            regs::ATTACH_HEAD => ports,
            regs::NETWORK | regs::METER | regs::DEBT => self.nets,
            regs::QUANTUM if self.version.1 >= 1 => self.nets,
            regs::ROUTE => self.planes * self.route_rows,
            regs::LOCAL => self.planes * self.local_rows,
            regs::HOP => match self.layout {
                Layout::Tcam => self.planes * self.hop_rows,
                Layout::Dag36 | Layout::Sram | Layout::Dir => self.hop_rows,
            },
            regs::LEVEL0 => level0,
            regs::LEVEL1 => level1,
            regs::LEVEL2 => level2,
            regs::LEVEL3 => level3,
            regs::SRAM => self.sram_words,
            regs::CONFLICT => self.cam_rows,
            regs::FILL => u32::from(self.layout == Layout::Dir),
            regs::STATION => self.station_rows,
            regs::LANE if self.pattern_rows > 0 => self.nets * LANES,
            regs::PATTERN | regs::PATTERN_HOP => self.pattern_rows,
            regs::PORT_MAC if self.kinds.contains(&Kind::Rofl) => self.nets * PORT_MACS,
            regs::GROUP if self.group_slots > 0 => self.hop_rows,
            regs::SLOT => self.group_slots,
            regs::POLICY if !self.policy_rows.is_none() => self.nets,
            regs::RANGE => self.policy_rows.ranges,
            regs::PAIR => self.policy_rows.pairs,
            regs::RULE => self.policy_rows.rules,
            regs::STORM | regs::STORM_DEBT | regs::COPIES if self.station_rows > 0 => self.nets,
            regs::TUNNEL | regs::TUNNEL_NEAR => self.tunnel_rows,
            regs::TUNNEL_COUNT if self.tunnel_rows > 0 => self.nets * TUNNEL_COUNTED_ROWS,
            regs::COUNT => self.nets * 32,
            regs::BYTES => self.nets * 2,
            regs::PORT => ports * 8,
            regs::UNCLAIMED => UNCLAIMED_ROWS,
            regs::OUT_DROPS => out_drops_row(ports - 1, 0) + self.nets,
            _ => 0,
        }
    }
}

/// A card whose image was identified.
pub struct Device<R> {
    registers: R,
    description: Description,
    /// Table and row that were last written to the access unit.
    selected: Option<(u32, u32)>,
}

impl<R: Registers> Device<R> {
    /// Identifies the device.
    ///
    /// # Errors
    /// `Unknown` if it is not a card, has another major version, or contradicts itself; `Access`.
    pub fn discover(mut registers: R) -> Result<Self, CardError> {
        let description = describe(&mut registers)?;
        Ok(Self { registers, description, selected: None })
    }

    /// Description of the image.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The registers themselves.
    pub fn registers(&mut self) -> &mut R {
        &mut self.registers
    }

    /// The registers themselves, read only.
    pub fn registers_ref(&self) -> &R {
        &self.registers
    }

    /// Reads a register.
    ///
    /// # Errors
    /// `Access`.
    pub fn read(&mut self, address: u32) -> Result<u32, CardError> {
        Ok(self.registers.read(address)?)
    }

    /// Writes a register.
    ///
    /// # Errors
    /// `Write` if there is no such register or it does not accept the value; nothing was written then. `Access`.
    pub fn write(&mut self, address: u32, value: u32) -> Result<(), CardError> {
        let at = regs::WRITABLE.binary_search_by_key(&address, |(known, _)| *known);
        let bits = at.ok().and_then(|at| regs::WRITABLE.get(at)).map_or(0, |(_, bits)| *bits);
        if bits == 0 || value & !bits != 0 {
            return Err(CardError::Write { address, value, bits });
        }
        Ok(self.registers.write(address, value)?)
    }

    /// Writes a row; each packet sees either the old one or the new one.
    ///
    /// # Errors
    /// `Field`, `Table` for a row that the image does not have; then nothing was written. `Access`, `Table`.
    pub fn write_row<T: Row>(&mut self, row: u32, value: &T) -> Result<(), CardError> {
        let words = value.pack()?;
        self.check(T::TABLE, row)?;
        self.command(
            T::TABLE,
            row,
            words.get(..T::TABLE.words()).unwrap_or(&words),
            regs::TABLE_COMMAND_WRITE,
        )
    }

    /// Writes route words or slots of groups, given as table, row, word, in this order. Later accesses come after all of them. A packet
    /// may see any of these words before or after its change.
    ///
    /// # Errors
    /// `Field`, `Table` for an impossible word or row; then nothing was written. `Access`, `Table` for the first word
    /// that the card refused.
    pub fn write_burst(&mut self, words: &[(Table, u32, u64)]) -> Result<(), CardError> {
        for (table, row, word) in words {
            if !OF_BURSTS.contains(table) {
                let reason = "the table does not take bursts";
                return Err(CardError::Table { table: table.name, row: *row, reason });
            }
            self.check(*table, *row)?;
            if word >> BURST_BITS != 0 {
                let max = (1 << BURST_BITS) - 1;
                return Err(FieldError { field: table.name, value: *word, max }.into());
            }
        }
        let mut place = None;
        let mut writes = Vec::with_capacity(BURST_WRITES.min(2 * words.len()));
        for (table, row, word) in words {
            if place != Some((table.id, *row)) {
                writes.push((regs::BURST_PLACE, table.id << regs::BURST_PLACE_ID.trailing_zeros() | row));
            }
            let high = (word >> 32) as usize; // below 16
            if let Some(address) = regs::BURST_WORD.get(high) {
                writes.push((*address, *word as u32));
            }
            place = Some((table.id, row + 1));
            if writes.len() + 2 > BURST_WRITES {
                self.registers.write_all(&writes)?;
                writes.clear();
            }
        }
        self.registers.write_all(&writes)?;
        if words.is_empty() { Ok(()) } else { self.burst_result(words) }
    }

    /// Result of a burst.
    fn burst_result(&mut self, words: &[(Table, u32, u64)]) -> Result<(), CardError> {
        let named = |row: Option<u32>| words.iter().find(|word| row.is_none_or(|row| word.1 == row));
        let fault = |row: Option<u32>, reason| {
            let (table, row) = named(row).or(words.first()).map_or(("?", 0), |word| (word.0.name, word.1));
            Err(CardError::Table { table, row, reason })
        };
        const KNOWN: u32 = regs::BURST_STATUS_BUSY | regs::BURST_STATUS_ERROR | regs::BURST_STATUS_INDEX;
        for _ in 0..POLLS_MAX {
            let status = self.registers.read(regs::BURST_STATUS)?;
            if status & !KNOWN != 0 {
                return fault(None, "the result of a burst has undefined bits set");
            }
            if status & regs::BURST_STATUS_BUSY != 0 {
                continue;
            }
            let error = (status & regs::BURST_STATUS_ERROR) >> regs::BURST_STATUS_ERROR.trailing_zeros();
            if error == regs::TABLE_ERROR_NONE {
                return Ok(());
            }
            // Clear the error, so that the next burst reports only its own.
            self.registers.write(regs::BURST_STATUS, regs::BURST_STATUS_ERROR)?;
            let row = status & regs::BURST_STATUS_INDEX;
            if named(Some(row)).is_none() {
                return fault(None, "the card reports an error in a row that was not written");
            }
            return fault(
                Some(row),
                match error {
                    regs::TABLE_ERROR_NO_TABLE => "the card does not have this table",
                    regs::TABLE_ERROR_RANGE => "the card does not have this row",
                    _ => "the card refused",
                },
            );
        }
        fault(None, "the burst did not end")
    }

    /// Reads a row.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_row<T: Row>(&mut self, row: u32) -> Result<T, CardError> {
        self.fetch(row, regs::TABLE_COMMAND_READ)
    }

    /// Reads a counter and sets it to 0.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn take_row<T: Row>(&mut self, row: u32) -> Result<T, CardError> {
        self.fetch(row, regs::TABLE_COMMAND_CLEAR)
    }

    fn fetch<T: Row>(&mut self, row: u32, command: u32) -> Result<T, CardError> {
        self.check(T::TABLE, row)?;
        self.command(T::TABLE, row, &[], command)?;
        let mut words: Words = [0; ROW_WORDS];
        for (address, word) in regs::TABLE_DATA.into_iter().zip(&mut words).take(T::TABLE.words()) {
            *word = self.registers.read(address)?;
        }
        Ok(T::unpack(&words))
    }

    fn check(&self, table: Table, row: u32) -> Result<(), CardError> {
        if row >= self.description.rows(table) {
            let reason = "the image does not have this row";
            return Err(CardError::Table { table: table.name, row, reason });
        }
        Ok(())
    }

    /// Gives the access unit a command for a row, with the data to write, and waits for its end.
    fn command(&mut self, table: Table, row: u32, data: &[u32], command: u32) -> Result<(), CardError> {
        // In one go, so that no write waits for the answer of the one before.
        let mut writes = Vec::with_capacity(ROW_WORDS + 3);
        writes.extend(regs::TABLE_DATA.into_iter().zip(data.iter().copied()));
        let selected = self.selected.take();
        if selected.is_none_or(|(id, _)| id != table.id) {
            writes.push((regs::TABLE_ID, table.id));
        }
        if selected.is_none_or(|(_, index)| index != row) {
            writes.push((regs::TABLE_INDEX, row));
        }
        writes.push((regs::TABLE_COMMAND, command));
        self.registers.write_all(&writes)?;
        let fault = |reason| Err(CardError::Table { table: table.name, row, reason });
        for _ in 0..POLLS_MAX {
            let status = self.registers.read(regs::TABLE_STATUS)?;
            if status & !(regs::TABLE_STATUS_BUSY | regs::TABLE_STATUS_ERROR) != 0 {
                return fault("the result has undefined bits set");
            }
            if status & regs::TABLE_STATUS_BUSY != 0 {
                continue;
            }
            self.selected = Some((table.id, row));
            return match status >> regs::TABLE_STATUS_ERROR.trailing_zeros() {
                regs::TABLE_ERROR_NONE => Ok(()),
                regs::TABLE_ERROR_NO_TABLE => fault("the card does not have this table"),
                regs::TABLE_ERROR_RANGE => fault("the card does not have this row"),
                _ => fault("the card refused"),
            };
        }
        fault("the access did not end")
    }
}

fn describe(registers: &mut impl Registers) -> Result<Description, CardError> {
    let unknown = |what, found: String, expected: &str| CardError::Unknown {
        what,
        found,
        expected: expected.to_owned(),
    };
    let ident = registers.read(regs::IDENT)?;
    if ident != regs::IDENT_RESET {
        return Err(unknown("the identification", format!("0x{ident:08x}"), "0x48554543"));
    }
    let version = registers.read(regs::VERSION)?;
    let version = ((version >> 16) as u16, version as u16);
    let major = (regs::VERSION_RESET >> 16) as u16;
    if version.0 != major {
        return Err(unknown("the version", format!("{}.{}", version.0, version.1), &format!("{major}.x")));
    }
    // Detects a path to the card that changes bits.
    for pattern in [0xffff_ffff, 0x5a5a_0ff1, 0] {
        registers.write(regs::SCRATCH, pattern)?;
        let found = registers.read(regs::SCRATCH)?;
        if found != pattern {
            let expected = format!("0x{pattern:08x}, which was written");
            return Err(unknown("the scratch register", format!("0x{found:08x}"), &expected));
        }
    }
    let mut number = |what, address, min, max| {
        let found = registers.read(address)?;
        if (min..=max).contains(&found) {
            return Ok(found);
        }
        Err(unknown(what, found.to_string(), &format!("{min} to {max}")))
    };
    let clock_khz = number("the clock in kHz", regs::CLOCK, 1, 10_000_000)?;
    let planes = number("the number of planes", regs::PLANES, 1, PLANES_MAX)?;
    let nets = number("the number of networks", regs::NETS, 1, NETS_MAX)?;
    let select_rows = number("rows of design select", regs::SELECT_ROWS, 1, ROWS_MAX)?;
    let mac_rows = number("rows of design select by MAC address", regs::MAC_ROWS, 0, ROWS_MAX)?;
    let attach_rows = number("rows of ATTACH", regs::ATTACH_ROWS, 1, ROWS_MAX)?;
    let hop_rows = number("next-hop rows", regs::HOP_ROWS, 1, ROWS_MAX / PLANES_MAX)?;
    let layout = match number("the layout", regs::LAYOUT, regs::LAYOUT_TCAM, regs::LAYOUT_DIR)? {
        regs::LAYOUT_TCAM => Layout::Tcam,
        regs::LAYOUT_DAG36 => Layout::Dag36,
        regs::LAYOUT_SRAM => Layout::Sram,
        _ => Layout::Dir,
    };
    let only = |of: Layout, max| if layout == of { (1, max) } else { (0, 0) };
    let (ternary, words) = (only(Layout::Tcam, ROWS_MAX / PLANES_MAX), only(Layout::Dag36, ROWS_MAX));
    // The two banks of the papers have a fixed size.
    let external = match layout {
        Layout::Dir => (CARD_WORDS, CARD_WORDS),
        _ => only(Layout::Sram, CARD_WORDS),
    };
    // Images of earlier versions do not have this register.
    let cam_rows = match layout {
        Layout::Dir => number("rows of the Conflict CAM", regs::CAM_ROWS, 1, CAM_ROWS_MAX)?,
        _ => 0,
    };
    let station_rows = match version.1 {
        ..5 => 0,
        _ => number("rows of STATION", regs::STATION_ROWS, 0, ROWS_MAX)?,
    };
    let group_slots = match version.1 {
        ..7 => 0,
        _ => number("rows of SLOT", regs::SLOT_ROWS, 0, SLOT_ROWS_MAX)?,
    };
    let tunnel_rows = match version.1 {
        ..8 => 0,
        _ => number("rows of TUNNEL", regs::TUNNEL_ROWS, 0, TUNNEL_ROWS_MAX)?,
    };
    let pattern_rows = match version.1 {
        ..10 => 0,
        _ => number("rows of PATTERN", regs::PATTERN_ROWS, 0, PATTERN_ROWS_MAX)?,
    };
    let route_rows = number("route rows", regs::ROUTE_ROWS, ternary.0, ternary.1)?;
    let local_rows = number("local rows", regs::LOCAL_ROWS, ternary.0, ternary.1)?;
    let mut level_words = [0; 4];
    for (address, count) in regs::LEVEL_WORDS.into_iter().zip(&mut level_words) {
        *count = number("words of a level", address, words.0, words.1)?;
    }
    let sram_words = number("words of the banks", regs::SRAM_WORDS, external.0, external.1)?;
    let out_bytes = number("bytes of the output queues", regs::OUT_BYTES, 1, OUT_BYTES_MAX)?;
    for (what, rows) in
        [("rows of design select by MAC address", mac_rows), ("rows of STATION", station_rows)]
    {
        if !cuckoo::is_size(rows) {
            return Err(unknown(what, rows.to_string(), "0, or 1024 to 16384 by powers of two"));
        }
    }
    if pattern_rows > 0 && !(pattern_rows.is_power_of_two() && pattern_rows >= 8 && layout == Layout::Sram) {
        let expected = "0, or a power of two from 8 with layout sram";
        return Err(unknown("rows of PATTERN", pattern_rows.to_string(), expected));
    }
    if group_slots > 0 && !(group_slots.is_power_of_two() && layout == Layout::Sram) {
        let expected = "0, or a power of two with layout sram";
        return Err(unknown("rows of SLOT", group_slots.to_string(), expected));
    }
    let policy_rows = match version.1 {
        ..9 => PolicyRows::default(),
        _ => policy_rows(registers.read(regs::POLICY_ROWS)?, layout)?,
    };
    let bus = registers.read(regs::BUS)?;
    let [bus_bytes, mac_ports, cpu_queues, _] = bus.to_le_bytes().map(u32::from);
    if ![8, 32, 64].contains(&bus_bytes) || mac_ports + cpu_queues > 8 || mac_ports == 0 || cpu_queues == 0 {
        return Err(unknown("the bus", format!("0x{bus:08x}"), "8, 32 or 64 bytes and at most 8 streams"));
    }
    let bitmap = registers.read(regs::KINDS)?;
    let kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(|kind| bitmap.checked_shr(*kind as u32).unwrap_or(0) & 1 != 0).collect();
    let name = image_name(registers)?;
    Ok(Description {
        name,
        version,
        clock_khz,
        bus_bytes,
        mac_ports,
        cpu_queues,
        kinds,
        layout,
        planes,
        nets,
        select_rows,
        mac_rows,
        attach_rows,
        route_rows,
        local_rows,
        hop_rows,
        group_slots,
        level_words,
        sram_words,
        cam_rows,
        station_rows,
        pattern_rows,
        tunnel_rows,
        policy_rows,
        out_bytes,
    })
}

/// Rows for policies, as POLICY_ROWS says.
fn policy_rows(word: u32, layout: Layout) -> Result<PolicyRows, CardError> {
    const KNOWN: u32 = regs::POLICY_ROWS_RANGES | regs::POLICY_ROWS_PAIRS | regs::POLICY_ROWS_RULES;
    let field = |mask: u32| (word & mask) >> mask.trailing_zeros();
    let bits = [regs::POLICY_ROWS_RANGES, regs::POLICY_ROWS_PAIRS, regs::POLICY_ROWS_RULES].map(field);
    if word == 0 {
        return Ok(PolicyRows::default());
    }
    if word & !KNOWN != 0
        || !bits.iter().all(|bits| (1..=POLICY_BITS_MAX).contains(bits))
        || layout != Layout::Sram
    {
        let expected = format!("0, or three powers of two up to {POLICY_BITS_MAX} with layout sram");
        return Err(CardError::Unknown {
            what: "rows for policies",
            found: format!("0x{word:08x}"),
            expected,
        });
    }
    let [ranges, pairs, rules] = bits.map(|bits| 1 << bits);
    Ok(PolicyRows { ranges, pairs, rules })
}

fn image_name(registers: &mut impl Registers) -> Result<String, CardError> {
    let mut bytes = Vec::with_capacity(4 * regs::IMAGE_NAME.len());
    for address in regs::IMAGE_NAME {
        bytes.extend(registers.read(address)?.to_le_bytes());
    }
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let name = bytes.get(..end).unwrap_or_default();
    if !name.iter().all(u8::is_ascii_graphic) {
        let what = "the name of the image";
        let expected = "printable ASCII".to_owned();
        return Err(CardError::Unknown { what, found: format!("{name:02x?}"), expected });
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}
