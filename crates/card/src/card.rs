//! A card as a substrate: programs in, rows of its tables out.
//!
//! Flow: control → program → **card** → plan → device. Loading checks everything first, against the image and together
//! with what is loaded; only then are rows written, in an order in which frames meet the old state or the new one: what
//! a network needs comes first (next hops, route words), then its row, which switches all of that at once, then who gets
//! its frames. What was replaced is used again only when the records that could hold it have left (the card counts
//! them). With ternary tables a network that runs is moved to a free plane for that; without one its rows are changed in
//! place, each at once but not all together.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use hue_demux::{Attachment, Demux, DemuxError, Row as Claim};
use hue_planes::{Counters, Kind, Unclaimed, UnclaimedCounters, ipv4::Outcome};
use hue_substrate::{Capacity, Program, Substrate, SubstrateError};
use hue_tables::Vid;

use crate::device::{Description, Device, Layout};
use crate::error::CardError;
use crate::generated::{
    self as regs, AttachHeadRow, AttachRow, BytesRow, CountRow, HopRow, LocalRow, NetworkRow, OutDropsRow,
    PortRow, RouteRow, SelectRow, UnclaimedRow,
};
use crate::plan::{self, Place};
use crate::registers::Registers;
use crate::routes::{Held, Shared, Switch};
use crate::rows::Row;

/// Name of the substrate in `spec/kinds.toml`, intent and output.
pub const NAME: &str = "card";

/// COUNT rows of a network.
const COUNT_ROWS: u32 = 32;
/// BYTES rows of a network: received, sent.
const BYTES_ROWS: u32 = 2;
/// PORT rows of a port.
const PORT_ROWS: u32 = 8;
/// OUT_DROPS rows of a port.
const OUT_DROPS_ROWS: u32 = 64;

/// A card with networks on it.
pub struct Card<R> {
    device: RefCell<Device<R>>,
    networks: BTreeMap<Vid, Loaded>,
    /// What design select holds, and each port's run with its head.
    select: Vec<SelectRow>,
    attach: Vec<(AttachHeadRow, Vec<AttachRow>)>,
    /// Routes and next hops of all networks, where the image shares them.
    shared: Option<Shared>,
}

/// A network on the card.
struct Loaded {
    place: Place,
    program: Program,
    /// What it has of the shared tables.
    held: Option<Held>,
}

/// What is to be written for one program, once everything is known to be sound.
struct Change {
    place: Place,
    before: Option<Place>,
    program: Program,
    switch: Option<Switch>,
}

impl<R: Registers> Card<R> {
    /// Takes over a card: whatever it held of networks is taken off, its counters start at 0.
    ///
    /// # Errors
    /// Any of discovery; `Access`, `Table`.
    pub fn new(registers: R) -> Result<Self, CardError> {
        let mut device = Device::discover(registers)?;
        let description = device.description().clone();
        let ports = description.mac_ports + description.cpu_queues;
        for row in 0..description.select_rows {
            device.write_row(row, &SelectRow::default())?;
        }
        for row in 0..ports {
            device.write_row(row, &AttachHeadRow::default())?;
        }
        for row in 0..description.nets {
            device.write_row(row, &NetworkRow::default())?;
        }
        for row in 0..description.rows(UnclaimedRow::TABLE) {
            device.take_row::<UnclaimedRow>(row)?;
        }
        for port in 0..ports {
            for counter in 0..PORT_ROWS - 2 {
                device.take_row::<PortRow>(port * PORT_ROWS + counter)?;
            }
        }
        let shared = match description.layout {
            Layout::Tcam => None,
            Layout::Dag36 => Some(Shared::new(description.level_words, description.hop_rows)?),
        };
        let attach = vec![(AttachHeadRow::default(), Vec::new()); ports as usize];
        Ok(Self {
            device: RefCell::new(device),
            networks: BTreeMap::new(),
            select: Vec::new(),
            attach,
            shared,
        })
    }

    /// What the image is.
    pub fn description(&mut self) -> &Description {
        self.device.get_mut().description()
    }

    /// The card itself, below networks.
    pub fn device(&mut self) -> &mut Device<R> {
        self.device.get_mut()
    }

    /// The networks that are loaded, by id.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.networks.values().map(|loaded| &loaded.program)
    }

    /// Which planes stand still, as bits, and whether their packets go to the control plane or are dropped.
    ///
    /// # Errors
    /// `Access`.
    pub fn set_gates(&mut self, planes: u32, to_control: bool) -> Result<(), CardError> {
        let device = self.device.get_mut();
        device.write(regs::GATED, u32::from(to_control))?;
        device.write(regs::GATES, planes)
    }

    /// Packets that a network's plane did not see because it stood still; `None` when the network is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_gated(&self, vid: Vid) -> Result<Option<u64>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let row = u32::from(loaded.place.net) * COUNT_ROWS;
        Ok(Some(self.device.borrow_mut().read_row::<CountRow>(row)?.value))
    }

    /// The plane, and clock gate, of a network.
    pub fn plane(&self, vid: Vid) -> Option<u8> {
        self.networks.get(&vid).map(|loaded| loaded.place.plane)
    }

    /// The card's index of a network, which rows of counters begin with.
    pub fn net(&self, vid: Vid) -> Option<u8> {
        self.networks.get(&vid).map(|loaded| loaded.place.net)
    }

    /// Counters of a network, `None` when it is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_counters(&self, vid: Vid) -> Result<Option<Counters>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let mut device = self.device.borrow_mut();
        let mut counters = Counters::default();
        for outcome in Outcome::ALL {
            let row = u32::from(loaded.place.net) * COUNT_ROWS + u32::from(outcome.code());
            counters.add(outcome, device.read_row::<CountRow>(row)?.value);
        }
        Ok(Some(counters))
    }

    /// Counters of frames that were nobody's.
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

    /// Bytes of a network's frames: received, sent; `None` when it is not loaded.
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

    /// Checks programs and finds a place for each; nothing is changed.
    fn prepare(&mut self, programs: &[Program]) -> Result<Vec<Change>, SubstrateError> {
        let description = self.device.get_mut().description().clone();
        check_programs(programs, &description)?;
        let kept = |vid: &Vid| !programs.iter().any(|program| program.vid == *vid);
        let others: Vec<&Loaded> =
            self.networks.values().filter(|loaded| kept(&loaded.program.vid)).collect();
        let count = others.len() + programs.len();
        let max = match description.layout {
            Layout::Tcam => description.nets.min(description.planes),
            Layout::Dag36 => description.nets,
        };
        if count > max as usize {
            return Err(SubstrateError::Networks { count, max: max as usize });
        }
        check_claims(&others, programs)?;
        let mut nets = vec![false; description.nets as usize];
        let mut planes = vec![false; description.planes as usize];
        for loaded in self.networks.values() {
            take(&mut nets, loaded.place.net);
            take(&mut planes, loaded.place.plane);
        }
        let mut changes = Vec::with_capacity(programs.len());
        for program in programs {
            let before = self.networks.get(&program.vid).map(|loaded| loaded.place);
            let net = before.map(|place| place.net).or_else(|| free(&mut nets));
            let plane = match description.layout {
                Layout::Tcam => free(&mut planes).or(before.map(|place| place.plane)),
                // Shared tables need none; a network's clock gate is that of its index.
                Layout::Dag36 => net.map(|net| net % planes.len() as u8),
            };
            let (Some(net), Some(plane)) = (net, plane) else {
                return Err(SubstrateError::Networks { count, max: max as usize });
            };
            let place = Place { net, plane };
            changes.push(Change { place, before, program: program.clone(), switch: None });
        }
        Ok(changes)
    }

    /// Everything that still can be refused: room for rows of all networks together, for routes and next hops.
    fn reserve(&mut self, changes: &mut [Change]) -> Result<(), SubstrateError> {
        let description = self.device.get_mut().description().clone();
        let all = self.with_changes(changes);
        let name = changes.first().map(|change| change.program.name.clone()).unwrap_or_default();
        let counts = [
            ("rows of design select", plan::select(all.iter().copied()).len(), description.select_rows),
            (
                "rows for group frames",
                all.iter().map(|(program, _)| program.ports.len()).sum(),
                description.attach_rows,
            ),
        ];
        for (what, needed, max) in counts {
            room(&description, &name, what, needed, max)?;
        }
        let Some(shared) = &mut self.shared else { return Ok(()) };
        shared.reclaim(self.device.get_mut()).map_err(broken)?;
        let mut done = 0;
        let mut result = Ok(());
        for change in changes.iter_mut() {
            let before = self.networks.get(&change.program.vid);
            let before = before.and_then(|loaded| Some((&loaded.program, loaded.held.as_ref()?)));
            match shared.change(&change.program, before, &description.name) {
                Ok(switch) => change.switch = Some(switch),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            done += 1;
        }
        if result.is_err() {
            for change in changes.iter_mut().take(done).rev() {
                if let Some(switch) = change.switch.take() {
                    shared.undo(switch);
                }
            }
        }
        result
    }

    /// The networks that will be loaded after a change.
    fn with_changes<'a>(&'a self, changes: &'a [Change]) -> Vec<(&'a Program, Place)> {
        let changed: HashMap<Vid, &Change> =
            changes.iter().map(|change| (change.program.vid, change)).collect();
        let kept = self.networks.values().filter(|loaded| !changed.contains_key(&loaded.program.vid));
        let kept = kept.map(|loaded| (&loaded.program, loaded.place));
        kept.chain(changes.iter().map(|change| (&change.program, change.place))).collect()
    }

    fn write(&mut self, changes: Vec<Change>) -> Result<(), CardError> {
        let all = self.with_changes(&changes);
        let ports = self.attach.len();
        let select = plan::select(all.iter().copied());
        let attach = plan::attach(all.iter().copied(), ports);
        for change in changes {
            self.write_network(change)?;
        }
        self.write_attach(attach)?;
        self.write_select(select)
    }

    fn write_network(&mut self, change: Change) -> Result<(), CardError> {
        let Change { place, before, program, switch } = change;
        let device = self.device.get_mut();
        let net = u32::from(place.net);
        if before.is_none() {
            forget_counters(device, net)?;
        }
        let limit = |vid: &Vid| self.networks.get(vid).map(|loaded| loaded.program.rate_limit);
        if before.is_none() || limit(&program.vid) != Some(program.rate_limit) {
            device.write_row(net, &plan::meter(program.rate_limit))?;
        }
        let mut row =
            NetworkRow { valid: true, vid: program.vid.get(), plane: place.plane, ..NetworkRow::default() };
        row.hop_count = program.next_hops.len() as u16;
        let held = match (switch, &mut self.shared) {
            (Some(switch), Some(shared)) => {
                let hops = switch.hops();
                for (index, hop) in hops.clone().zip(&program.next_hops) {
                    device.write_row(index, &plan::hop(hop))?;
                }
                switch.write_words(device)?;
                (row.root, row.hop_base) = (switch.root(), hops.start as u16);
                device.write_row(net, &row)?;
                Some(shared.switched(switch, device)?)
            }
            _ => {
                write_plane(device, place.plane, &program)?;
                device.write_row(net, &row)?;
                None
            }
        };
        self.networks.insert(program.vid, Loaded { place, program, held });
        Ok(())
    }

    fn write_attach(&mut self, runs: Vec<Vec<AttachRow>>) -> Result<(), CardError> {
        let device = self.device.get_mut();
        let rows = device.description().attach_rows;
        let (heads, apart) = match plan::lay_out(&self.attach, &runs, rows) {
            Some(heads) => (heads, true),
            None => (plan::lay_out_anew(&runs).unwrap_or_default(), false),
        };
        if !apart {
            // In place: nobody gets group frames for the moment, rather than somebody who should not.
            for port in 0..self.attach.len() as u32 {
                device.write_row(port, &AttachHeadRow::default())?;
            }
        }
        for (port, (head, run)) in (0u32..).zip(heads.into_iter().zip(runs)) {
            let Some(before) = self.attach.get_mut(port as usize) else { continue };
            if apart && before.0 == head && before.1 == run {
                continue;
            }
            for (index, row) in (u32::from(head.start)..).zip(&run) {
                device.write_row(index, row)?;
            }
            device.write_row(port, &head)?;
            *before = (head, run);
        }
        Ok(())
    }

    fn write_select(&mut self, rows: Vec<SelectRow>) -> Result<(), CardError> {
        let device = self.device.get_mut();
        for (index, row) in plan::steps(&self.select, &rows) {
            device.write_row(index, &row.unwrap_or_default())?;
        }
        self.select = rows;
        Ok(())
    }

    fn take_off(&mut self, vids: &[Vid]) -> Result<(), CardError> {
        let kept: Vec<_> =
            self.networks.values().filter(|loaded| !vids.contains(&loaded.program.vid)).collect();
        let kept = kept.iter().map(|loaded| (&loaded.program, loaded.place));
        let select = plan::select(kept.clone());
        let attach = plan::attach(kept, self.attach.len());
        self.write_select(select)?;
        self.write_attach(attach)?;
        for vid in vids {
            let Some(loaded) = self.networks.remove(vid) else { continue };
            let device = self.device.get_mut();
            device.write_row(u32::from(loaded.place.net), &NetworkRow::default())?;
            if let (Some(shared), Some(held)) = (&mut self.shared, loaded.held) {
                shared.remove(held, device)?;
            }
        }
        Ok(())
    }
}

impl<R: Registers> Substrate for Card<R> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn load(&mut self, programs: &[Program]) -> Result<(), SubstrateError> {
        let mut changes = self.prepare(programs)?;
        self.reserve(&mut changes)?;
        self.write(changes).map_err(broken)
    }

    fn unload(&mut self, vids: &[Vid]) -> Result<(), SubstrateError> {
        if let Some(vid) = vids.iter().find(|vid| !self.networks.contains_key(vid)) {
            return Err(SubstrateError::Unknown(*vid));
        }
        self.take_off(vids).map_err(broken)
    }

    fn counters(&self, vid: Vid) -> Option<Counters> {
        self.read_counters(vid).ok().flatten()
    }

    fn unclaimed(&self) -> UnclaimedCounters {
        self.read_unclaimed().unwrap_or_default()
    }

    fn capacity(&self) -> Capacity {
        let device = self.device.borrow();
        let description = device.description();
        let networks_max = match description.layout {
            Layout::Tcam => description.nets.min(description.planes),
            Layout::Dag36 => description.nets,
        };
        let (table_bytes, table_bytes_max) = match &self.shared {
            Some(shared) => shared.bytes(description.level_words),
            None => {
                let rows =
                    self.networks.values().map(|loaded| loaded.program.routes.len() as u64).sum::<u64>();
                let row = RouteRow::TABLE.bits.div_ceil(8) as u64;
                (rows * row, u64::from(description.planes * description.route_rows) * row)
            }
        };
        Capacity {
            networks: self.networks.len(),
            networks_max: networks_max as usize,
            table_bytes,
            table_bytes_max,
        }
    }
}

/// A plane's own tables.
fn write_plane<R: Registers>(device: &mut Device<R>, plane: u8, program: &Program) -> Result<(), CardError> {
    let description = device.description();
    let base = |rows: u32| u32::from(plane) * rows;
    let (hop_base, hop_rows) = (base(description.hop_rows), description.hop_rows);
    let (route_base, route_rows) = (base(description.route_rows), description.route_rows);
    let (local_base, local_rows) = (base(description.local_rows), description.local_rows);
    let (routes, locals) = plan::ternary(program);
    // Rows of before that are not written now are emptied: a route of another network must not show through.
    let hops = program.next_hops.iter().map(plan::hop);
    fill::<R, HopRow>(device, hop_base, hop_rows, hops)?;
    fill::<R, LocalRow>(device, local_base, local_rows, locals.into_iter())?;
    fill::<R, RouteRow>(device, route_base, route_rows, routes.into_iter())
}

fn fill<R: Registers, T: Row + Default>(
    device: &mut Device<R>,
    base: u32,
    rows: u32,
    with: impl Iterator<Item = T>,
) -> Result<(), CardError> {
    let mut with = with.fuse();
    for row in base..base + rows {
        device.write_row(row, &with.next().unwrap_or_default())?;
    }
    Ok(())
}

/// A network's index was another's before: its counters begin at 0.
fn forget_counters<R: Registers>(device: &mut Device<R>, net: u32) -> Result<(), CardError> {
    for row in 0..COUNT_ROWS {
        device.take_row::<CountRow>(net * COUNT_ROWS + row)?;
    }
    for row in 0..BYTES_ROWS {
        device.take_row::<BytesRow>(net * BYTES_ROWS + row)?;
    }
    let ports = device.description().mac_ports + device.description().cpu_queues;
    for port in 0..ports {
        device.take_row::<OutDropsRow>(port * OUT_DROPS_ROWS + net)?;
    }
    Ok(())
}

fn take(places: &mut [bool], index: u8) {
    if let Some(place) = places.get_mut(usize::from(index)) {
        *place = true;
    }
}

fn free(places: &mut [bool]) -> Option<u8> {
    let index = places.iter().position(|taken| !taken)?;
    *places.get_mut(index)? = true;
    u8::try_from(index).ok()
}

/// What the card said, as a substrate's error: it does not work any more.
fn broken(error: CardError) -> SubstrateError {
    SubstrateError::Broken { substrate: NAME, reason: error.to_string() }
}

fn room(
    description: &Description,
    name: &str,
    what: &'static str,
    needed: usize,
    max: u32,
) -> Result<(), SubstrateError> {
    if needed > max as usize {
        let substrate = format!("image {}", description.name);
        return Err(SubstrateError::Room {
            name: name.to_owned(),
            substrate,
            what,
            needed,
            max: max as usize,
        });
    }
    Ok(())
}

/// Whether each program is sound and the image can hold it by itself.
fn check_programs(programs: &[Program], description: &Description) -> Result<(), SubstrateError> {
    let mut vids: HashMap<Vid, &Program> = HashMap::new();
    for program in programs {
        let name = &program.name;
        if !program.kind.runs_on().contains(&NAME) || !description.kinds.contains(&program.kind) {
            let (name, kind) = (name.clone(), program.kind);
            return Err(SubstrateError::Kind { name, kind, substrate: NAME });
        }
        match program.kind {
            Kind::Ipv4 => {}
        }
        program.check().map_err(|error| SubstrateError::Program { name: name.clone(), error })?;
        if let Some(first) = vids.insert(program.vid, program) {
            return Err(same(&first.name, name, "id"));
        }
        if let Some(port) =
            program.ports.iter().find(|port| u32::from(port.port.get()) >= description.mac_ports)
        {
            return Err(SubstrateError::Port {
                name: name.clone(),
                substrate: format!("image {}", description.name),
                port: port.port,
                count: description.mac_ports as usize,
            });
        }
        room(description, name, "next hops", program.next_hops.len(), description.hop_rows)?;
        if description.layout == Layout::Tcam {
            let (routes, locals) = plan::ternary(program);
            room(description, name, "route rows", routes.len(), description.route_rows)?;
            room(description, name, "local address rows", locals.len(), description.local_rows)?;
        }
    }
    Ok(())
}

fn same(first: &str, second: &str, what: &'static str) -> SubstrateError {
    SubstrateError::Same { first: first.to_owned(), second: second.to_owned(), what }
}

/// Whether networks that stay and those to come go together: names, and who claims which frames.
fn check_claims(kept: &[&Loaded], programs: &[Program]) -> Result<(), SubstrateError> {
    let all = || kept.iter().map(|loaded| &loaded.program).chain(programs);
    let mut names: HashMap<&str, Vid> = HashMap::new();
    for program in all() {
        if names.insert(&program.name, program.vid).is_some() {
            return Err(same(&program.name, &program.name, "name"));
        }
    }
    let rows: Vec<Claim> = all().flat_map(|program| program.rows.iter().copied()).collect();
    let attached: Vec<Attachment> = all().flat_map(Program::attachments).collect();
    let name = |vid: Vid| all().find(|program| program.vid == vid).map(|program| program.name.clone());
    let name = |vid: Vid| name(vid).unwrap_or_default();
    match Demux::new(&rows, &attached) {
        Ok(_) => Ok(()),
        Err(error @ DemuxError::Twice { first, second, .. }) => {
            Err(SubstrateError::Claim { first: name(first), second: name(second), error })
        }
        Err(error) => Err(SubstrateError::Demux(error)),
    }
}

const _: () =
    assert!(Outcome::COUNT < COUNT_ROWS as usize && regs::TABLE_DATA.len() == crate::rows::ROW_WORDS);
