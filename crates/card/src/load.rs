//! Loading and unloading networks: programs in, rows of the card's tables out.
//!
//! Flow: control → program → **load** → plan → device. Everything is checked first, against the image and the loaded
//! networks, and room is reserved. Then data that no frame can use yet is written (next hops, route words), and
//! finally, in a hold of the card, the rows that refer to it: each frame sees either the old networks or the new
//! ones.

use std::collections::{BTreeMap, HashMap};

use hue_demux::PortId;
use hue_planes::group::Slots;
use hue_planes::{Counters, Keys, Kind, UnclaimedCounters};
use hue_substrate::{
    Capacity, Claims, Program, Refusals, Substrate, SubstrateError, Update, check_programs, demux_of,
};
use hue_tables::{NextHop, Vid};

use crate::banks::Arrival;
use crate::card::{BYTES_ROWS, COUNT_ROWS, Card};
use crate::device::{Description, Device, Layout, out_drops_row};
use crate::error::{CardError, NAME, SOFTWARE, broken};
use crate::flat;
use crate::generated::{
    AttachHeadRow, AttachRow, BytesRow, CopiesRow, CountRow, MacRow, NetworkRow, OutDropsRow, RouteRow,
    SelectRow,
};
use crate::macs::{MacWrites, Macs};
use crate::network::{Loaded, hop_count, routed, row, wait_for_its_hops};
use crate::patterns;
use crate::plan::{self, NO_PLANE, Place, PlaneRows};
use crate::policies::{self, Encoded};
use crate::records::Mark;
use crate::registers::Registers;
use crate::room::room;
use crate::routes::{Held, HopRows, Roots, Shared, Switch, write_words};
use crate::rows::Row;
use crate::stations::{Learner, Stations};
use crate::tunnels::forget_tunnel_counts;

/// The writes for one program, once all checks have passed.
struct Change {
    place: Place,
    before: Option<Place>,
    program: Program,
    switch: Option<Switch>,
    /// The network's part of a change of the two banks, if the image has them.
    arrival: Option<Arrival>,
}

/// Rows that assign frames to networks.
struct Claimed {
    macs: Macs,
    mac_writes: MacWrites,
    select: Vec<Option<SelectRow>>,
    heads: Vec<AttachHeadRow>,
    runs: Vec<Vec<AttachRow>>,
}

impl<R: Registers> Substrate for Card<R> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn load(&mut self, programs: &[Program]) -> Result<(), SubstrateError> {
        self.load_as(programs, false)
    }

    fn unload(&mut self, vids: &[Vid]) -> Result<(), SubstrateError> {
        if let Some(vid) = vids.iter().find(|vid| !self.networks.contains_key(vid)) {
            return Err(SubstrateError::Unknown(*vid));
        }
        self.take_off(vids)
    }

    fn update(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError> {
        self.change(vid, update)
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
        let (table_bytes, table_bytes_max) = match (&self.shared, &self.banks) {
            (Some(shared), _) => shared.bytes(),
            (None, Some(banks)) => banks.bytes(),
            (None, None) => {
                let routes =
                    self.networks.values().map(|loaded| loaded.program().entries.lpm32().len() as u64);
                let row = RouteRow::TABLE.bits.div_ceil(8) as u64;
                (routes.sum::<u64>() * row, u64::from(description.planes * description.route_rows) * row)
            }
        };
        Capacity {
            networks: self.networks.len(),
            networks_max: description.networks_max(self.live) as usize,
            table_bytes,
            table_bytes_max,
        }
    }
}

impl<R: Registers> Card<R> {
    /// Loads networks whose packets software decides: the card recognizes their frames and sends them to CPU queues.
    /// Virtual ports may be on physical ports that the card does not have. A network that ran on the card moves to
    /// software.
    ///
    /// # Errors
    /// As [`Substrate::load`].
    pub fn load_in_software(&mut self, programs: &[Program]) -> Result<(), SubstrateError> {
        self.load_as(programs, true)
    }

    /// Prepares a network in software so that its table can be written: assigns a plane, if planes have tables of
    /// their own. If the image has two banks, writes its routes to them.
    ///
    /// # Errors
    /// `Unknown`; `ImageKind`; `ImageNetworks` if no plane is free; `Room`; `Broken`.
    pub fn take_plane(&mut self, vid: Vid) -> Result<(), SubstrateError> {
        let program = self.networks.get(&vid).ok_or(SubstrateError::Unknown(vid))?.program();
        let on_card = self.networks.values().filter(|loaded| !loaded.software).map(Loaded::program);
        let others = on_card.filter(|other| other.vid != vid);
        let description = self.device.get_mut().description();
        check_kind(program, description)?;
        check_stations(description, others.chain([program]))?;
        check_floods(description, program)?;
        flat::check(program, description)?;
        if self.banks.is_some() {
            return self.take_banks(vid);
        }
        self.take_policies(vid)?;
        self.take_patterns(vid)?;
        let Self { device, networks, planes, .. } = self;
        let device = device.get_mut();
        let mut taken = vec![false; planes.len()];
        networks.values().for_each(|loaded| take(&mut taken, loaded.place.plane));
        let count = taken.iter().filter(|taken| **taken).count() + 1;
        let loaded = networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        if loaded.place.plane != NO_PLANE {
            return Ok(());
        }
        let description = device.description();
        let (image, max) = (description.name.clone(), description.planes as usize);
        let plane = free(&mut taken).ok_or(SubstrateError::ImageNetworks { count, image, max })?;
        if let Some(rows) = planes.get_mut(usize::from(plane)) {
            let addresses = device.description().neighbour_rows();
            rows.write(device, plan::plane(loaded.program(), addresses)).map_err(broken)?;
        }
        loaded.place.plane = plane;
        self.write_gates().map_err(broken)
    }

    /// Writes the routes by source of a network in software, if it has any.
    fn take_policies(&mut self, vid: Vid) -> Result<(), SubstrateError> {
        let Self { device, networks, shared, .. } = self;
        let (device, Some(shared)) = (device.get_mut(), shared) else { return Ok(()) };
        let loaded = networks.get(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let program = loaded.program();
        let has = loaded.held.as_ref().is_none_or(|held| held.policies.is_some());
        let Some(rows) = Encoded::of(program).filter(|_| !has) else { return Ok(()) };
        check_policies(program, device.description())?;
        let (name, net) = (program.name.clone(), loaded.place.net);
        let take = |shared: &mut Shared, device: &mut _| shared.take_policies(&rows, &name, device);
        let own = |held: &mut Held| held.policies.take();
        let runs = take_runs(shared, device, networks, take, own, Shared::leave_policies)?;
        let written =
            policies::write(&runs, &rows, device).and_then(|()| policies::point(net, &runs, device));
        if let Some(held) = networks.get_mut(&vid).and_then(|loaded| loaded.held.as_mut()) {
            held.policies = Some(runs);
        }
        written.map_err(broken)
    }

    /// Writes the entries of a network in software, if its kind has any.
    fn take_patterns(&mut self, vid: Vid) -> Result<(), SubstrateError> {
        let Self { device, networks, shared, .. } = self;
        let (device, Some(shared)) = (device.get_mut(), shared) else { return Ok(()) };
        let loaded = networks.get(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let program = loaded.program();
        let has = loaded.held.as_ref().is_none_or(|held| held.patterns.is_some());
        let Some(rows) = patterns::Encoded::of(program).filter(|_| !has) else { return Ok(()) };
        check_patterns(program, device.description())?;
        let (name, net) = (program.name.clone(), loaded.place.net);
        let take = |shared: &mut Shared, device: &mut _| shared.take_patterns(&rows, &name, device);
        let own = |held: &mut Held| held.patterns.take();
        let run = take_runs(shared, device, networks, take, own, Shared::leave_patterns)?;
        let written = patterns::write(&run, &rows, net, device)
            .and_then(|()| patterns::point(net, Some(&rows), device));
        if let Some(held) = networks.get_mut(&vid).and_then(|loaded| loaded.held.as_mut()) {
            held.patterns = Some(run);
        }
        written.map_err(broken)
    }

    /// Writes the routes and next hops of a network in software to the banks.
    fn take_banks(&mut self, vid: Vid) -> Result<(), SubstrateError> {
        let Self { device, networks, banks, .. } = self;
        let (device, Some(banks)) = (device.get_mut(), banks) else { return Ok(()) };
        let loaded = networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        if loaded.held.is_some() {
            return Ok(());
        }
        let program = loaded.program();
        check_image(program, device.description())?;
        let hops = banks.allocate_hops(program, device)?;
        let changes: Vec<_> =
            program.entries.lpm32().iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
        let written = banks.change((vid, &program.name), &changes, device).and_then(|()| {
            let rows = hops.clone().zip(&program.next_hops);
            rows.into_iter().try_for_each(|(row, hop)| device.write_row(row, &plan::hop(hop))).map_err(broken)
        });
        if let Err(error) = written {
            banks.release_hops(hops);
            return Err(error);
        }
        loaded.held = Some(Held { table: vid, hops, groups: Vec::new(), policies: None, patterns: None });
        Ok(())
    }

    /// Sets whether software or the card decides a network's packets. This changes one row, so exactly one of them
    /// decides each packet. A network that learns comes to the card with what [`Card::adopt`] took over, and forgets it there
    /// when it leaves.
    ///
    /// # Errors
    /// `Unknown`; `ImageKind` and `ImageNetworks` if the network has no plane; `Broken`.
    pub fn steer(&mut self, vid: Vid, software: bool) -> Result<(), SubstrateError> {
        if !software {
            self.take_plane(vid)?;
            if self.networks.get(&vid).is_some_and(|loaded| loaded.learner.is_none()) {
                self.adopt(vid, &[], 0);
            }
            self.write_stations(usize::MAX, 0).map_err(broken)?;
            self.settle_tunnels(Some(vid)).map_err(broken)?;
        }
        let Self { device, networks, shared, .. } = self;
        let loaded = networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let device = device.get_mut();
        let roots = match (shared, &loaded.held) {
            (Some(shared), Some(held)) => {
                if !software {
                    write_words(device, &shared.settle(held.table)).map_err(broken)?;
                }
                shared.roots(held.table)
            }
            _ => Roots::default(),
        };
        let before = std::mem::replace(&mut loaded.software, software);
        let written = device.write_row(u32::from(loaded.place.net), &loaded.row(roots));
        if written.is_err() {
            loaded.software = before;
        } else {
            self.forget_learnt(vid);
        }
        written.map_err(broken)?;
        if software {
            self.leave_runs(vid).map_err(broken)?;
        }
        self.settle_tunnels(None).map_err(broken)
    }

    /// Gives back the rows of routes by source, and of entries, of a network that is in software now.
    pub(crate) fn leave_runs(&mut self, vid: Vid) -> Result<(), CardError> {
        let Self { device, networks, shared, .. } = self;
        let held = networks.get_mut(&vid).and_then(|loaded| loaded.held.as_mut());
        let Some((held, shared)) = held.zip(shared.as_mut()) else { return Ok(()) };
        if let Some(runs) = held.policies.take() {
            shared.leave_policies(device.get_mut().mark()?, runs);
        }
        if let Some(run) = held.patterns.take() {
            shared.leave_patterns(device.get_mut().mark()?, run);
        }
        Ok(())
    }

    /// Writes about `words` deferred words of tables of networks in software, and returns whether any may be left.
    /// The remaining words are written when the network moves to the card.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn write_deferred(&mut self, words: usize) -> Result<bool, CardError> {
        let Some(shared) = self.shared.as_mut().filter(|shared| shared.has_deferred()) else {
            return Ok(false);
        };
        let writes = shared.deferred(words);
        write_words(self.device.get_mut(), &writes)?;
        Ok(shared.has_deferred())
    }

    /// Whether tables of networks in software may have deferred words.
    pub fn has_deferred(&self) -> bool {
        self.shared.as_ref().is_some_and(Shared::has_deferred)
    }

    /// Whether software decides a network's packets; `None` if it is not loaded.
    pub fn is_in_software(&self, vid: Vid) -> Option<bool> {
        self.networks.get(&vid).map(|loaded| loaded.software)
    }

    pub(crate) fn load_as(&mut self, programs: &[Program], software: bool) -> Result<(), SubstrateError> {
        let mut changes = self.prepare(programs, software)?;
        let claimed = self.claimed(&changes)?;
        self.reserve(&mut changes, software)?;
        if !software {
            self.reserve_banks(&mut changes)?;
        }
        if let Err(error) = self.write_apart(&changes) {
            self.undo(&mut changes);
            return Err(broken(error));
        }
        let gone = self.write(changes, software, claimed).map_err(broken)?;
        self.leave_banks(gone).map_err(broken)?;
        self.settle_tunnels(None).map_err(broken)?;
        self.write_gates().map_err(broken)?;
        self.write_quanta().map_err(broken)
    }

    /// Checks programs and finds a place for each. Nothing is changed.
    fn prepare(&mut self, programs: &[Program], software: bool) -> Result<Vec<Change>, SubstrateError> {
        let description = self.device.get_mut().description();
        check_programs(programs, if software { SOFTWARE } else { NAME })?;
        if !software {
            programs.iter().try_for_each(|program| check_image(program, description))?;
        }
        let kept = |loaded: &&Loaded| !programs.iter().any(|program| program.vid == loaded.program().vid);
        let others: Vec<&Loaded> = self.networks.values().filter(kept).collect();
        let count = others.len() + programs.len();
        let nets = description.indices(self.live);
        let max = description.networks_max(self.live) as usize;
        let full = || SubstrateError::ImageNetworks { count, image: description.name.clone(), max };
        if count + usize::from(self.lent.is_some()) > nets as usize {
            return Err(full());
        }
        demux_of(others.iter().map(|loaded| Claims::from(loaded.program())), programs)?;
        if !software {
            let on_card = others.iter().filter(|loaded| !loaded.software).map(|loaded| loaded.program());
            check_stations(description, on_card.chain(programs))?;
            programs.iter().try_for_each(|program| check_floods(description, program))?;
        }
        let mut nets = vec![false; nets as usize];
        let mut planes = vec![false; description.planes as usize];
        for loaded in self.networks.values() {
            take(&mut nets, loaded.place.net);
            take(&mut planes, loaded.place.plane);
        }
        if let Some((lent, _)) = self.lent {
            take(&mut nets, lent);
        }
        let mut changes = Vec::with_capacity(programs.len());
        for program in programs {
            let before = self.networks.get(&program.vid).map(|loaded| loaded.place);
            let net = before.map(|place| place.net).or_else(|| free(&mut nets)).ok_or_else(full)?;
            let own = before.map(|place| place.plane).filter(|plane| *plane != NO_PLANE);
            let plane = match description.layout {
                Layout::Tcam if software => NO_PLANE,
                Layout::Tcam => own.or_else(|| free(&mut planes)).ok_or_else(full)?,
                // Shared tables need no plane of their own. A network's clock gate is the one of its index.
                Layout::Dag36 | Layout::Sram | Layout::Dir => net % planes.len() as u8,
            };
            let place = Place { net, plane };
            let program = match decides(description, program) {
                true => program.clone(),
                // Its place on the card only finds its frames; software has the rest.
                false => program.without_tables(),
            };
            changes.push(Change { place, before, program, switch: None, arrival: None });
        }
        Ok(changes)
    }

    /// Assignment of frames after a change.
    fn claimed(&mut self, changes: &[Change]) -> Result<Claimed, SubstrateError> {
        let description = self.device.get_mut().description().clone();
        let all = self.with_changes(changes);
        let name = changes.first().map(|change| change.program.name.as_str()).unwrap_or_default();
        let nobody = self.live.then(|| description.nobody());
        let mut claims = plan::claims(all.iter().copied(), nobody);
        let rows = description.select_rows + description.mac_rows;
        room(&description, name, "rows of design select", claims.rows.len() + claims.hidden, rows)?;
        let mut macs = self.macs.clone();
        let mac_writes = macs.change(&mut claims);
        let ternary = claims.rows.len() + claims.hidden;
        room(&description, name, "ternary rows of design select", ternary, description.select_rows)?;
        let select = plan::select(&self.select, &claims, description.select_rows as usize);
        let attached = plan::attach(all.iter().copied(), self.attach.len());
        let needed = attached.iter().map(Vec::len).sum();
        room(&description, name, "rows for group frames", needed, description.attach_rows)?;
        let runs: Vec<_> =
            self.attach.iter().zip(&attached).map(|((_, before), all)| plan::run(before, all)).collect();
        let (heads, runs) = match plan::lay_out(&self.attach, &runs, description.attach_rows) {
            Some(heads) => (heads, runs),
            // Empty places are needed: a moved row could get two copies of a frame that is being copied, or none.
            None => {
                let heads = plan::lay_out(&[], &attached, description.attach_rows).unwrap_or_default();
                (heads, attached)
            }
        };
        Ok(Claimed { macs, mac_writes, select, heads, runs })
    }

    /// Checks that there is room for the routes and next hops of all networks together.
    fn reserve(&mut self, changes: &mut [Change], software: bool) -> Result<(), SubstrateError> {
        let device = self.device.get_mut();
        let Some(shared) = &mut self.shared else { return Ok(()) };
        shared.reclaim_all(device).map_err(broken)?;
        // Tables that follow software's have their routes from there.
        let routes = !shared.follows();
        let mut result = Ok(());
        for change in changes.iter_mut() {
            let before = self.networks.get(&change.program.vid);
            let before =
                before.and_then(|loaded| Some((routed(loaded.program(), false), loaded.held.as_ref()?)));
            let before = before.as_ref().map(|(program, held)| (program.as_ref(), *held));
            match shared.change(
                &routed(&change.program, routes),
                before,
                software,
                &device.description().name,
            ) {
                Ok(switch) => change.switch = Some(switch),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_err() {
            self.undo(changes);
        }
        result
    }

    /// The same for tables in two banks.
    fn reserve_banks(&mut self, changes: &mut [Change]) -> Result<(), SubstrateError> {
        let Self { device, networks, banks, .. } = self;
        let (device, Some(banks)) = (device.get_mut(), banks) else { return Ok(()) };
        let mut routes = Vec::with_capacity(changes.len());
        let mut result = Ok(());
        // Tables change in this order. After the first change that packets must not see early, all others wait for
        // the hold too.
        let mut in_hold = false;
        for change in changes.iter_mut() {
            let program = &change.program;
            let before = networks.get(&program.vid);
            let before = before.and_then(|loaded| Some((loaded.program(), loaded.held.as_ref()?)));
            let same_hops = before.filter(|(old, _)| old.next_hops == program.next_hops);
            in_hold |= before.is_some() && same_hops.is_none();
            let hops = match same_hops {
                Some((_, held)) => Ok(held.hops.clone()),
                None => banks.allocate_hops(program, device),
            };
            match hops {
                Ok(hops) => {
                    let changes = plan::route_changes(before.map(|(old, _)| old), program);
                    routes.push((program.vid, changes.clone()));
                    let hops_new = same_hops.is_none();
                    change.arrival = Some(Arrival { hops, hops_new, changes, in_hold });
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let image = device.description().name.clone();
        let name_of = |vid| {
            let change = changes.iter().find(|change| change.program.vid == vid);
            change.map(|change| change.program.name.clone()).unwrap_or_default()
        };
        let result = result.and_then(|()| banks.check(&routes, name_of, &image));
        if result.is_err() {
            self.undo(changes);
        }
        result
    }

    /// Returns the reservations.
    fn undo(&mut self, changes: &mut [Change]) {
        for arrival in changes.iter_mut().filter_map(|change| change.arrival.take()) {
            if let Some(banks) = self.banks.as_mut().filter(|_| arrival.hops_new) {
                banks.release_hops(arrival.hops);
            }
        }
        let Some(shared) = &mut self.shared else { return };
        for switch in changes.iter_mut().rev().filter_map(|change| change.switch.take()) {
            shared.undo(switch);
        }
    }

    /// The networks that will be loaded after a change.
    fn with_changes<'a>(&'a self, changes: &'a [Change]) -> Vec<(&'a Program, Place)> {
        let changed: HashMap<Vid, &Change> =
            changes.iter().map(|change| (change.program.vid, change)).collect();
        let kept = self.networks.values().filter(|loaded| !changed.contains_key(&loaded.program().vid));
        let kept = kept.map(|loaded| (loaded.program(), loaded.place));
        kept.chain(changes.iter().map(|change| (&change.program, change.place))).collect()
    }

    /// Writes data that no frame can use yet.
    fn write_apart(&mut self, changes: &[Change]) -> Result<(), CardError> {
        let device = self.device.get_mut();
        for change in changes {
            if change.before.is_none() {
                forget_counters(device, change.place.net)?;
            }
            if let Some((arrival, banks)) = change.arrival.as_ref().zip(self.banks.as_mut()) {
                let hops = arrival.hops.clone().zip(&change.program.next_hops);
                for (index, hop) in hops.filter(|_| arrival.hops_new) {
                    device.write_row(index, &plan::hop(hop))?;
                }
                if !arrival.in_hold {
                    if let Some(loaded) = self.networks.get_mut(&change.program.vid) {
                        wait_for_its_hops(loaded, device)?;
                    }
                    banks.arrive(change.program.vid, arrival, device)?;
                }
            }
            let Some(switch) = &change.switch else { continue };
            if let Some(shared) = self.shared.as_mut().filter(|_| switch.hops_new) {
                shared.write_hops(switch, &routed(&change.program, false), change.place.net, device)?;
            }
            if let Some(shared) = &self.shared {
                shared.write_policies(switch, &change.program, device)?;
                shared.write_patterns(switch, &change.program, change.place.net, device)?;
            }
            write_words(device, &switch.writes)?;
        }
        Ok(())
    }

    /// Writes the rows that make the changes visible, all at once. Returns what networks had in the banks before and
    /// no longer need.
    fn write(
        &mut self,
        changes: Vec<Change>,
        software: bool,
        claimed: Claimed,
    ) -> Result<Vec<(Option<Vid>, Held)>, CardError> {
        let Self {
            device, networks, macs, stations, unwritten, select, attach, shared, banks, planes, ..
        } = self;
        let mut gone = Vec::new();
        device.get_mut().in_hold(|device| {
            for Change { place, before, program, switch, arrival } in changes {
                let net = u32::from(place.net);
                let limit = networks.get(&program.vid).map(|loaded| loaded.program().rate_limit);
                if before.is_none() || limit != Some(program.rate_limit) {
                    device.write_row(net, &plan::meter(program.rate_limit))?;
                }
                let storm = program.settings.learning().map(|learning| learning.storm_limit);
                let had = networks.get(&program.vid).and_then(|loaded| loaded.program().settings.learning());
                if let Some(storm) = storm.filter(|storm| had.map(|had| had.storm_limit) != Some(*storm))
                    && device.description().station_rows > 0
                {
                    device.write_row(net, &plan::storm(storm))?;
                }
                let held = match (switch, shared.as_mut()) {
                    _ if banks.is_some() => {
                        let old = networks.get(&program.vid).and_then(|loaded| loaded.held.clone());
                        if let Some((arrival, banks)) = arrival.as_ref().zip(banks.as_mut()) {
                            if arrival.in_hold {
                                banks.arrive(program.vid, arrival, device)?;
                            }
                            gone.extend(old.filter(|_| arrival.hops_new).map(|old| (None, old)));
                        } else {
                            gone.extend(old.map(|old| (Some(program.vid), old)));
                        }
                        let held = arrival.map(|arrival| Held {
                            table: program.vid,
                            hops: arrival.hops,
                            groups: Vec::new(),
                            policies: None,
                            patterns: None,
                        });
                        let hop_base = held.as_ref().map_or(0, |held| held.hops.start);
                        let row = row(place, &program, hop_base, Roots::default());
                        device.write_row(net, &NetworkRow { software, ..row })?;
                        held
                    }
                    (Some(switch), Some(shared)) => {
                        if let Some(runs) = switch.new_policies() {
                            policies::point(place.net, runs, device)?;
                        }
                        let row = row(place, &program, switch.held.hops.start, switch.roots);
                        let policies = switch.held.policies.is_some();
                        let root = switch.held.patterns.as_ref().map_or(row.root, patterns::root);
                        let lanes =
                            patterns::Encoded::of(&program).filter(|_| switch.held.patterns.is_some());
                        patterns::point(place.net, lanes.as_ref(), device)?;
                        flat::write_macs(place.net, &program, device)?;
                        device.write_row(net, &NetworkRow { software, policies, root, ..row })?;
                        Some(shared.switched(switch))
                    }
                    _ => {
                        if let Some(plane) = planes.get_mut(usize::from(place.plane)) {
                            let addresses = device.description().neighbour_rows();
                            plane.write(device, plan::plane(&program, addresses))?;
                        }
                        let row = row(place, &program, 0, Roots::default());
                        device.write_row(net, &NetworkRow { software, ..row })?;
                        None
                    }
                };
                let old = networks.get(&program.vid);
                let learner = if software { None } else { learner(&program, old) };
                if software {
                    // No frame uses its rows any more.
                    unwritten.extend(stations.macs(place.net).map(|mac| (program.vid, mac)));
                } else {
                    replace_stations(device, stations, place.net, &program, learner.as_ref())?;
                }
                let mut loaded = Loaded::new(place, software, program, held);
                loaded.learner = learner;
                networks.insert(loaded.program().vid, loaded);
            }
            write_claimed(device, macs, select, attach, claimed)
        })?;
        Ok(gone)
    }

    /// Removes from the banks what no packet has used since a hold: a network's table with its next hops, or only its
    /// former next hops.
    fn leave_banks(&mut self, gone: Vec<(Option<Vid>, Held)>) -> Result<(), CardError> {
        let Some(banks) = &mut self.banks else { return Ok(()) };
        for (vid, held) in gone {
            match vid {
                Some(vid) => banks.remove(vid, held.hops, self.device.get_mut())?,
                None => banks.release_hops(held.hops),
            }
        }
        Ok(())
    }

    fn take_off(&mut self, vids: &[Vid]) -> Result<(), SubstrateError> {
        let gone: Vec<Loaded> = vids.iter().filter_map(|vid| self.networks.remove(vid)).collect();
        let claimed = self.claimed(&[])?;
        let Self { device, macs, stations, select, attach, shared, .. } = self;
        let taken = device.get_mut().in_hold(|device| {
            write_claimed(device, macs, select, attach, claimed)?;
            for loaded in &gone {
                device.write_row(u32::from(loaded.place.net), &NetworkRow::default())?;
                patterns::point(loaded.place.net, None, device)?;
                replace_stations(device, stations, loaded.place.net, loaded.program(), None)?;
            }
            Ok(())
        });
        if let Err(error) = taken {
            let back = gone.into_iter().map(|loaded| (loaded.program().vid, loaded));
            self.networks.extend(back);
            return Err(broken(error));
        }
        let held = gone.into_iter().filter_map(|loaded| Some((Some(loaded.program().vid), loaded.held?)));
        match shared {
            Some(shared) => held.for_each(|(_, held)| shared.remove(held)),
            None => self.leave_banks(held.collect()).map_err(broken)?,
        }
        // Before another network gets the index.
        self.settle_tunnels(None).map_err(broken)?;
        // The gate must be open when the next network uses this plane.
        self.write_gates().map_err(broken)?;
        self.write_quanta().map_err(broken)
    }
}

/// Writes the rows of design select and of ATTACH that differ from their contents. Because a row may have moved, new
/// rows are written before old ones are removed.
fn write_claimed<R: Registers>(
    device: &mut Device<R>,
    macs: &mut Macs,
    select: &mut Vec<Option<SelectRow>>,
    attach: &mut [(AttachHeadRow, Vec<AttachRow>)],
    claimed: Claimed,
) -> Result<(), CardError> {
    for (index, row) in &claimed.mac_writes.come {
        device.write_row(*index, row)?;
    }
    for (index, (before, row)) in (0u32..).zip(select.iter().zip(&claimed.select)) {
        if before != row {
            device.write_row(index, &row.unwrap_or_default())?;
        }
    }
    for index in &claimed.mac_writes.go {
        device.write_row(*index, &MacRow::default())?;
    }
    (*macs, *select) = (claimed.macs, claimed.select);
    let runs = claimed.heads.into_iter().zip(claimed.runs);
    for (port, (before, (head, run))) in (0u32..).zip(attach.iter_mut().zip(runs)) {
        if before.0 == head && before.1 == run {
            continue;
        }
        let stays = before.0.start == head.start;
        for (at, (index, row)) in (u32::from(head.start)..).zip(&run).enumerate() {
            if !stays || before.1.get(at) != Some(row) {
                device.write_row(index, row)?;
            }
        }
        device.write_row(port, &head)?;
        *before = (head, run);
    }
    Ok(())
}

/// What a network has learnt after it is loaded, or loaded again.
fn learner(program: &Program, before: Option<&Loaded>) -> Option<Learner> {
    let same_kind = before.filter(|before| before.program().kind() == program.kind());
    let known = same_kind.and_then(|before| Some((before.learner.as_ref()?, &*before.program().ports)));
    Learner::new(program, known)
}

/// Writes the rows of STATION that a network has now, and clears those that it had before.
fn replace_stations<R: Registers>(
    device: &mut Device<R>,
    stations: &mut Stations,
    net: u8,
    program: &Program,
    learner: Option<&Learner>,
) -> Result<(), CardError> {
    let mut writes = Vec::new();
    let rows = learner.into_iter().flat_map(|learner| learner.rows(program, net, 0));
    stations.replace(net, rows, &mut writes);
    writes.iter().try_for_each(|(place, row)| device.write_row(*place, row))
}

/// Resets the counters of a network index that another network may have used before.
fn forget_counters<R: Registers>(device: &mut Device<R>, net: u8) -> Result<(), CardError> {
    for row in 0..COUNT_ROWS {
        device.take_row::<CountRow>(u32::from(net) * COUNT_ROWS + row)?;
    }
    for row in 0..BYTES_ROWS {
        device.take_row::<BytesRow>(u32::from(net) * BYTES_ROWS + row)?;
    }
    if device.description().station_rows > 0 {
        device.take_row::<CopiesRow>(net.into())?;
    }
    forget_tunnel_counts(device, net)?;
    let ports = device.description().ports();
    for port in 0..ports {
        device.take_row::<OutDropsRow>(out_drops_row(port, net))?;
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

/// Whether an image has a kind, and the driver rows for its next hops and entries.
pub fn has_kind(description: &Description, kind: Kind) -> bool {
    let has_rows = match kind.limits().keys {
        Keys::V4 => true,
        // Only these tables have keys of any width.
        Keys::V6 | Keys::Dual | Keys::Slices | Keys::Label => description.layout == Layout::Sram,
        Keys::Mac => description.station_rows > 0,
        Keys::Bits => description.pattern_rows > 0,
        Keys::None => true,
    };
    has_rows && description.kinds.contains(&kind)
}

/// Whether an image can decide the packets of a program.
pub fn decides(description: &Description, program: &Program) -> bool {
    has_kind(description, program.kind())
        && !hue_substrate::flat::caches(&program.settings)
        && (program.route_by().is_default() || !description.policy_rows.is_none())
}

/// Checks whether the card can decide packets of the program's kind, and by the addresses by which it routes.
fn check_kind(program: &Program, description: &Description) -> Result<(), SubstrateError> {
    let kind = program.kind();
    if decides(description, program) {
        return Ok(());
    }
    if has_kind(description, kind) {
        flat::check(program, description)?;
        let (name, by, image) = (program.name.clone(), program.route_by(), description.name.clone());
        return Err(SubstrateError::ImageRouteBy { name, by, image });
    }
    if !kind.runs_on().contains(&NAME) {
        return Err(SubstrateError::Kind { name: program.name.clone(), kind, substrate: NAME });
    }
    Err(SubstrateError::ImageKind { name: program.name.clone(), kind, image: description.name.clone() })
}

/// Checks whether an empty image could hold the program.
fn check_image(program: &Program, description: &Description) -> Result<(), SubstrateError> {
    let name = &program.name;
    check_kind(program, description)?;
    check_groups(name, &program.groups, description)?;
    check_policies(program, description)?;
    check_patterns(program, description)?;
    flat::check(program, description)?;
    if program.gated {
        // An image of an earlier version does not know gates: it would let the network's packets pass.
        room(description, name, "clock gates of networks", 1, u32::from(description.version.1 >= 2))?;
    }
    let is_missing = |port: PortId| !port.is_tunnel() && u32::from(port.get()) >= description.mac_ports;
    if let Some(port) = program.ports.iter().find(|port| is_missing(port.port)) {
        return Err(SubstrateError::Port {
            name: name.clone(),
            substrate: format!("image {}", description.name),
            port: port.port,
            count: description.mac_ports as usize,
        });
    }
    match description.layout {
        Layout::Tcam => check_plane(&plan::plane(program, description.neighbour_rows()), name, description),
        Layout::Dag36 | Layout::Sram | Layout::Dir => {
            room(description, name, "next hops", hop_count(program), description.hop_rows)
        }
    }
}

/// Checks whether an image has as many slots of groups as these need.
pub fn check_groups(
    name: &str,
    groups: &[(NextHop, Slots)],
    description: &Description,
) -> Result<(), SubstrateError> {
    let needed = groups.iter().map(|(_, slots)| slots.len()).sum();
    room(description, name, "slots of groups of next hops", needed, description.group_slots)
}

/// Checks whether an empty image has as many rows for routes by source as a program needs.
fn check_policies(program: &Program, description: &Description) -> Result<(), SubstrateError> {
    let limits = description.policy_rows.named().into_iter();
    let mut needs = program.policy_rows().named().into_iter().zip(limits);
    needs.try_for_each(|((what, needed), (_, max))| {
        room(description, &program.name, what, needed as usize, max)
    })
}

/// Takes rows for a network that comes to the card. If there is no room, those of networks that were about to come are given back
/// first: these take others when their turn is there.
fn take_runs<R: Registers, T>(
    shared: &mut Shared,
    device: &mut Device<R>,
    networks: &mut BTreeMap<Vid, Loaded>,
    take: impl Fn(&mut Shared, &mut Device<R>) -> Result<T, SubstrateError>,
    own: impl Fn(&mut Held) -> Option<T>,
    leave: impl Fn(&mut Shared, Mark, T),
) -> Result<T, SubstrateError> {
    let taken = take(shared, device);
    if taken.is_ok() {
        return taken;
    }
    let mark = device.mark().map_err(broken)?;
    let coming = networks.values_mut().filter(|loaded| loaded.software);
    let runs = coming.filter_map(|loaded| own(loaded.held.as_mut()?));
    runs.for_each(|runs| leave(shared, mark, runs));
    take(shared, device)
}

/// Checks whether a program has as few entries as a network on a card may have, and whether the card can do what they say.
fn check_patterns(program: &Program, description: &Description) -> Result<(), SubstrateError> {
    let count = program.entries.patterns().len();
    room(description, &program.name, patterns::OF_ONE, count, description.entries_max())?;
    room(description, &program.name, patterns::RESIZING, patterns::resizing(program), 0)
}

/// Checks whether there is room for the MAC addresses that all networks on the card may have.
fn check_stations<'a>(
    description: &Description,
    programs: impl Iterator<Item = &'a Program>,
) -> Result<(), SubstrateError> {
    let max = description.stations_max();
    let mut needed = 0;
    for program in programs.filter(|program| decides(description, program)) {
        needed += program.addresses_max();
        room(description, &program.name, "MAC addresses, static and learnt ones", needed, max)?;
    }
    Ok(())
}

/// Refuses a network that learns and has tunnels, because the card copies frames to its own ports only, so its floods would not reach
/// them; and one with entries or flat labels and tunnels, because what an entry does has no place for a tunnel.
fn check_floods(description: &Description, program: &Program) -> Result<(), SubstrateError> {
    let what = match program.kind() {
        Kind::L2 => "tunnels of a network that learns",
        Kind::Extract => "tunnels of a network with entries",
        Kind::Mpls => "tunnels of a network with labels",
        Kind::Rofl => "tunnels of a network with flat labels",
        _ => return Ok(()),
    };
    room(description, &program.name, what, program.tunnels().count(), 0)
}

/// Checks whether a plane with its own tables has enough rows.
pub fn check_plane(rows: &PlaneRows, name: &str, description: &Description) -> Result<(), SubstrateError> {
    room(description, name, "next hops", rows.hops.len(), description.hop_rows)?;
    room(description, name, "route rows", rows.routes.len(), description.route_rows)?;
    room(description, name, "address rows", rows.locals.len(), description.local_rows)
}
