//! A card with networks on it: its description, counters and clock gates. Networks are loaded in `load`; a running
//! network is changed in `update`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;

use hue_planes::{Counters, Kind, OUTCOMES_MAX, Reason, Unclaimed, UnclaimedCounters};
use hue_substrate::Program;
use hue_tables::{MacKey, NextHop, Vid};

use crate::banks::Banks;
use crate::device::{Description, Device, Layout};
use crate::error::CardError;
use crate::generated::{
    self as regs, AttachHeadRow, AttachRow, BytesRow, CopiesRow, CountRow, GroupRow, MacRow, NetworkRow,
    PortRow, QuantumRow, SelectRow, SlotRow, SramRow, StationRow, TunnelRow, UnclaimedRow,
};
use crate::left::Left;
use crate::macs::Macs;
use crate::network::Loaded;
use crate::planes::Plane;
use crate::registers::Registers;
use crate::routes::Shared;
use crate::rows::Row;
use crate::stations::Stations;
use crate::tunnels::Tunnels;

/// COUNT rows of a network.
pub(crate) const COUNT_ROWS: u32 = 32;
/// BYTES rows of a network: received, sent.
pub(crate) const BYTES_ROWS: u32 = 2;
/// Quantum in bytes of the network with the least weight, and of every row of QUANTUM after reset.
pub(crate) const QUANTUM_USUAL: u16 = 2048;
/// PORT rows of a port.
const PORT_ROWS: u32 = 8;
/// The row that counts group frames dropped for lack of room.
const FLOOD_DROPS: u32 = 6;

/// An event that a card reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// A table access was refused or not answered.
    pub table_error: bool,
    /// A register access found no register.
    pub access_error: bool,
    /// Packets used a table row with a wrong bit: its network should be loaded again.
    pub memory_error: bool,
    /// A queue dropped a packet.
    pub queue_drop: bool,
}

/// A card with networks on it.
pub struct Card<R> {
    pub(crate) device: RefCell<Device<R>>,
    pub(crate) networks: BTreeMap<Vid, Loaded>,
    /// Contents of design select, and each port's run in ATTACH with its head.
    pub(crate) macs: Macs,
    pub(crate) select: Vec<Option<SelectRow>>,
    pub(crate) attach: Vec<(AttachHeadRow, Vec<AttachRow>)>,
    /// Contents of STATION.
    pub(crate) stations: Stations,
    /// The rows of tunnels.
    pub(crate) tunnels: Tunnels,
    /// The virtual port of a network that has an address.
    pub(crate) near: HashMap<(Vid, IpAddr), u16>,
    /// No tunnel gets a row.
    pub(crate) tunnels_in_software: bool,
    /// Frames that left during a run of captures.
    pub(crate) left: Vec<Left>,
    /// Routes and next hops of all networks, if the image shares them.
    pub(crate) shared: Option<Shared>,
    /// Routes and next hops of all networks, if they are in two banks.
    pub(crate) banks: Option<Banks>,
    /// Tables of each plane, if planes have their own.
    pub(crate) planes: Vec<Plane>,
    /// In live use: ARP goes to the owner of its destination, as in live software.
    pub(crate) live: bool,
    /// Rows of STATION that do not say what the network has learnt: of networks that come to the card, or have left it.
    pub(crate) unwritten: VecDeque<(Vid, MacKey)>,
    /// The lent index and its network; see `moving`.
    pub(crate) lent: Option<(u8, Vid)>,
    /// Contents of each row of QUANTUM; `None` before it is written.
    pub(crate) quanta: Vec<Option<u16>>,
    /// Planes whose clocks are stopped even if their networks' programs do not ask for it.
    pub(crate) forced_gates: u32,
}

impl<R: Registers> Card<R> {
    /// Takes over a card: removes all networks from it, and resets its counters. A new card is not written.
    ///
    /// # Errors
    /// Any error of discovery; `Access`, `Table`.
    pub fn new(registers: R) -> Result<Self, CardError> {
        let is_new = registers.is_new();
        let mut device = Device::discover(registers)?;
        let description = device.description().clone();
        if !is_new {
            clear(&mut device)?;
        }
        let (shared, banks) = match description.layout {
            Layout::Tcam => (None, None),
            Layout::Dag36 | Layout::Sram => (Some(Shared::new(&description)?), None),
            Layout::Dir => (None, Some(Banks::new(&description))),
        };
        let mut card = Self {
            device: RefCell::new(device),
            networks: BTreeMap::new(),
            macs: Macs::new(description.mac_rows).unwrap_or_default(),
            stations: Stations::new(description.station_rows).unwrap_or_default(),
            tunnels: Tunnels::new(description.tunnel_rows),
            near: HashMap::new(),
            tunnels_in_software: false,
            left: Vec::new(),
            select: vec![None; description.select_rows as usize],
            attach: vec![(AttachHeadRow::default(), Vec::new()); description.ports() as usize],
            shared,
            banks,
            planes: (0..description.planes).map(Plane::new).collect(),
            live: false,
            unwritten: VecDeque::new(),
            lent: None,
            forced_gates: 0,
            quanta: vec![is_new.then_some(QUANTUM_USUAL); description.rows(QuantumRow::TABLE) as usize],
        };
        card.write_quanta()?;
        Ok(card)
    }

    /// Description of the image.
    pub fn description(&mut self) -> &Description {
        self.device.get_mut().description()
    }

    /// The device, without networks.
    pub fn device(&mut self) -> &mut Device<R> {
        self.device.get_mut()
    }

    /// The networks that are loaded, by id.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.networks.values().map(Loaded::program)
    }

    /// The program of a network, with all changes.
    #[must_use]
    pub fn program(&self, vid: Vid) -> Option<&Program> {
        self.networks.get(&vid).map(Loaded::program)
    }

    /// Stops planes, given as a bit mask, and sets whether their packets go to the control plane or are dropped.
    ///
    /// # Errors
    /// `Access`.
    pub fn set_gates(&mut self, planes: u32, to_control: bool) -> Result<(), CardError> {
        self.forced_gates = planes;
        self.device.get_mut().write(regs::GATED, u32::from(to_control))?;
        self.write_gates()
    }

    /// Stops the clocks of planes whose network is gated. A plane that networks share is not stopped for one of them:
    /// only the network's own row keeps its packets out.
    pub(crate) fn write_gates(&mut self) -> Result<(), CardError> {
        let device = self.device.get_mut();
        let mut gates = self.forced_gates;
        if device.description().layout == Layout::Tcam {
            let gated = self.networks.values().filter(|loaded| loaded.program().gated);
            gates |= gated
                .fold(0, |gates, loaded| gates | 1u32.checked_shl(loaded.place.plane.into()).unwrap_or(0));
        }
        if device.read(regs::GATES)? != gates {
            device.write(regs::GATES, gates)?;
        }
        Ok(())
    }

    /// Events since the last call.
    ///
    /// # Errors
    /// `Access`.
    pub fn take_events(&mut self) -> Result<Events, CardError> {
        let device = self.device.get_mut();
        // Other events of later register versions are left for drivers that know them.
        let known = regs::INTERRUPT_STATUS_TABLE_ERROR
            | regs::INTERRUPT_STATUS_ACCESS_ERROR
            | regs::INTERRUPT_STATUS_MEMORY_ERROR
            | regs::INTERRUPT_STATUS_QUEUE_DROP;
        let status = device.read(regs::INTERRUPT_STATUS)? & known;
        device.write(regs::INTERRUPT_STATUS, status)?;
        Ok(Events {
            table_error: status & regs::INTERRUPT_STATUS_TABLE_ERROR != 0,
            access_error: status & regs::INTERRUPT_STATUS_ACCESS_ERROR != 0,
            memory_error: status & regs::INTERRUPT_STATUS_MEMORY_ERROR != 0,
            queue_drop: status & regs::INTERRUPT_STATUS_QUEUE_DROP != 0,
        })
    }

    /// Rewrites a damaged word of the banks if lookups or the driver have read one since the last call, and
    /// returns its index. If several words are damaged, they are repaired one after another, as they are read.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn repair(&mut self) -> Result<Option<u32>, CardError> {
        let device = self.device.get_mut();
        if device.description().sram_words == 0 {
            return Ok(None);
        }
        let fault = device.read(regs::SRAM_FAULT)?;
        if fault & regs::SRAM_FAULT_VALID == 0 {
            return Ok(None);
        }
        let index = fault & regs::SRAM_FAULT_INDEX;
        let word = match (&self.shared, &self.banks) {
            (Some(shared), _) => shared.word(index),
            (None, Some(banks)) => banks.word(index),
            (None, None) => return Ok(None),
        };
        device.write_row(index, &SramRow { word })?;
        // Clear the fault after the write: reads before the write then do not report it again.
        device.write(regs::SRAM_FAULT, regs::SRAM_FAULT_VALID)?;
        Ok(Some(index))
    }

    /// Changes so far during which packets may have found no route, because the new words had no room beside the old ones. Only
    /// with layout `dir`: other layouts refuse such a change.
    #[must_use]
    pub fn interruptions(&self) -> u64 {
        self.banks.as_ref().map_or(0, Banks::interruptions)
    }

    /// Words that lookups read in the banks, and lookups, since the card began; both modulo 2^32.
    ///
    /// # Errors
    /// `Access`.
    pub fn reads(&mut self) -> Result<(u32, u32), CardError> {
        let device = self.device.get_mut();
        Ok((device.read(regs::SRAM_READS)?, device.read(regs::SRAM_LOOKUPS)?))
    }

    /// Packets that went to the control plane without passing the network's plane, because the network runs in
    /// software or is stopped by [`Self::set_gates`]. `None` if the network is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_passed_by(&self, vid: Vid) -> Result<Option<u64>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let row = u32::from(loaded.place.net) * COUNT_ROWS;
        Ok(Some(self.device.borrow_mut().read_row::<CountRow>(row)?.value))
    }

    /// The plane, and clock gate, of a network.
    pub fn plane(&self, vid: Vid) -> Option<u8> {
        self.networks.get(&vid).map(|loaded| loaded.place.plane)
    }

    /// The kind of a network's plane.
    pub fn kind(&self, vid: Vid) -> Option<Kind> {
        self.networks.get(&vid).map(|loaded| loaded.program().kind())
    }

    /// The card's index of a network. Rows of its counters start at this index.
    pub fn net(&self, vid: Vid) -> Option<u8> {
        self.networks.get(&vid).map(|loaded| loaded.place.net)
    }

    /// The groups of a network with their members, as they are in the card's tables: row of next hops, and rows of the slots in
    /// order. A slot of another network counts as the row that no network has.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_groups(&mut self, vid: Vid) -> Result<Vec<(u16, Vec<u16>)>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(Vec::new()) };
        let Some(held) = loaded.held.as_ref().filter(|_| self.shared.is_some()) else {
            return Ok(Vec::new());
        };
        let (hops, net) = (held.hops.clone(), loaded.place.net);
        let device = self.device.get_mut();
        if device.description().group_slots == 0 {
            return Ok(Vec::new());
        }
        let mut groups = Vec::new();
        for (row, own) in hops.zip(0u16..).take(loaded.program().next_hops.len()) {
            let GroupRow { valid, first, bits } = device.read_row(row)?;
            if !valid {
                continue;
            }
            let mut slots = Vec::new();
            for slot in (u32::from(first)..).take(1 << bits) {
                let slot: SlotRow = device.read_row(slot)?;
                slots.push(if slot.net == net { slot.hop } else { NextHop::NONE_WORD });
            }
            groups.push((own, slots));
        }
        Ok(groups)
    }

    /// Whether a network's kind learns.
    pub fn learns(&self, vid: Vid) -> bool {
        self.networks.get(&vid).is_some_and(|loaded| loaded.program().settings.learning().is_some())
    }

    /// Counters of a network; `None` if it is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_counters(&self, vid: Vid) -> Result<Option<Counters>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let mut device = self.device.borrow_mut();
        let mut counters = Counters::new(loaded.program().kind());
        for outcome in Reason::all(counters.kind()) {
            let row = u32::from(loaded.place.net) * COUNT_ROWS + u32::from(outcome.code());
            counters.add(outcome, device.read_row::<CountRow>(row)?.value);
        }
        Ok(Some(counters))
    }

    /// Counters of frames that belong to no network.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_unclaimed(&self) -> Result<UnclaimedCounters, CardError> {
        let mut device = self.device.borrow_mut();
        let mut counters = UnclaimedCounters::default();
        for reason in Unclaimed::ALL {
            counters.add(reason, device.read_row::<UnclaimedRow>(u32::from(reason.code()))?.value);
        }
        Ok(counters)
    }

    /// Broadcast and multicast frames of a MAC port that were dropped because there was no room for copies.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_flood_drops(&mut self, port: u32) -> Result<u64, CardError> {
        Ok(self.device.get_mut().read_row::<PortRow>(port * PORT_ROWS + FLOOD_DROPS)?.value)
    }

    /// Copies made of frames that a network sent to several ports; `None` if it is not loaded, or does not send to several.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_copies(&self, vid: Vid) -> Result<Option<u64>, CardError> {
        let Some(loaded) = self.networks.get(&vid).filter(|_| self.learns(vid)) else { return Ok(None) };
        let mut device = self.device.borrow_mut();
        if device.description().station_rows == 0 {
            return Ok(None);
        }
        Ok(Some(device.read_row::<CopiesRow>(loaded.place.net.into())?.value))
    }

    /// Bytes of a network's frames: received, sent; `None` if it is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_bytes(&self, vid: Vid) -> Result<Option<(u64, u64)>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let mut device = self.device.borrow_mut();
        let row = u32::from(loaded.place.net) * BYTES_ROWS;
        let (received, sent) = (device.read_row::<BytesRow>(row)?, device.read_row::<BytesRow>(row + 1)?);
        Ok(Some((received.value, sent.value)))
    }
}

/// Removes all networks from a card that may have been used before, and resets its counters.
fn clear<R: Registers>(device: &mut Device<R>) -> Result<(), CardError> {
    let description = device.description().clone();
    // Frames may already arrive.
    device.in_hold(|device| {
        clear_rows::<SelectRow, R>(device, description.select_rows)?;
        clear_rows::<MacRow, R>(device, description.mac_rows)?;
        clear_rows::<StationRow, R>(device, description.station_rows)?;
        clear_rows::<GroupRow, R>(device, description.rows(GroupRow::TABLE))?;
        clear_rows::<TunnelRow, R>(device, description.tunnel_rows)?;
        clear_rows::<AttachHeadRow, R>(device, description.ports())?;
        clear_rows::<NetworkRow, R>(device, description.nets)
    })?;
    for row in 0..description.rows(UnclaimedRow::TABLE) {
        device.take_row::<UnclaimedRow>(row)?;
    }
    for port in 0..description.ports() {
        for counter in 0..PORT_ROWS - 1 {
            device.take_row::<PortRow>(port * PORT_ROWS + counter)?;
        }
    }
    if description.layout == Layout::Dir { Banks::clear(device) } else { Ok(()) }
}

fn clear_rows<T: Row + Default, R: Registers>(device: &mut Device<R>, rows: u32) -> Result<(), CardError> {
    (0..rows).try_for_each(|row| device.write_row(row, &T::default()))
}

const _: () = assert!(OUTCOMES_MAX < COUNT_ROWS as usize && regs::TABLE_DATA.len() == crate::rows::ROW_WORDS);
