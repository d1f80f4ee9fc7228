//! Changes routes and next hops of one network while it runs. The cost of a change depends only on its own size.
//!
//! Flow: live control → **update** → rows → device. Shared tables (`dag36`): new words, then the one word that leads
//! to them, or the network's row with the new root (ADR-0017). A plane's own tables (`tcam`): one row at a time while
//! packets pass (ADR-0029), or, if all changes must take effect at once, the rows that differ in a hold of the card.
//! Two banks (`dir`): words and rows in the order of `Dir`. A next hop is one row.

use std::ops::Range;

use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind, Kind};
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{HopChanges, Mode, Refusals, SubstrateError, Update};
use hue_tables::dag36_levels::{Patch, Write};
use hue_tables::{Change, NextHop, Vid, apply_fitting};

use crate::banks::Banks;
use crate::card::Card;
use crate::device::Device;
use crate::error::{CardError, NAME, broken};
use crate::groups::{GroupRun, write_slots};
use crate::load::{check_groups, check_plane, decides};
use crate::network::{CardKey, Loaded, ends_group, knows_its_hops, wait_for_its_hops};
use crate::plan::{self, NO_PLANE};
use crate::registers::Registers;
use crate::routes::{HopRows, Roots, Shared, run_of, write_words};

impl<R: Registers> Card<R> {
    /// [`Substrate::update`](hue_substrate::Substrate::update). With layout dir, each packet sees either the old or the
    /// new route of its address, whatever the mode.
    pub(crate) fn change(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError> {
        let loaded = self.networks.get(&vid).ok_or(SubstrateError::Unknown(vid))?;
        // The card has no tables of a network of another kind, or with routes by source: software decides its packets.
        if !decides(self.device.get_mut().description(), loaded.program()) {
            return Ok(Refusals::default());
        }
        let count = update.check(&loaded.checked())?;
        if matches!(loaded.program().kind(), Kind::Rofl | Kind::Mpls) {
            return self.change_all(vid, update, count);
        }
        check_groups(&loaded.program().name, update.groups, self.device.get_mut().description())?;
        let changes = final_hops(update);
        if !loaded.differs_in(&changes) {
            return self.change_routes(vid, update);
        }
        let (former, former_count) = (loaded.former_hops(&changes), loaded.checked().hops.len());
        self.set_hops(vid, &changes, count)?;
        let changed = self.change_routes(vid, update);
        // With `Fitting`, some of the routes may name them.
        if changed.is_err() && update.mode != Mode::Fitting && !planted(Bug::RowsStay) {
            self.set_hops(vid, &former, former_count)?;
        }
        changed
    }

    /// Changes next hops of a network with labels, whose rows depend on what all its labels name.
    fn change_all(
        &mut self,
        vid: Vid,
        update: &Update<'_>,
        count: usize,
    ) -> Result<Refusals, SubstrateError> {
        let Some(loaded) = self.networks.get(&vid) else { return Err(SubstrateError::Unknown(vid)) };
        let mut next = loaded.clone();
        next.set_hops(&final_hops(update).rows, count);
        let (program, software) = (next.program().clone(), loaded.software);
        self.load_as(&[program], software)?;
        Ok(Refusals::default())
    }

    /// Changes the routes of an update that was checked.
    fn change_routes(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError> {
        let patch = match update.mode {
            Mode::Whole => Patch::One,
            Mode::Each => Patch::Each,
            Mode::Fitting => {
                let first = self.set_fitting(vid, update.v4)?;
                return Ok(first.and(update.v4.len(), self.set_fitting(vid, update.v6)?));
            }
        };
        let loaded = self.networks.get(&vid).filter(|_| !update.v6.is_empty());
        let former = loaded.map(|loaded| loaded.former_routes(update.v4)).unwrap_or_default();
        self.set_routes(vid, update.v4, patch)?;
        let Err(refused) = self.set_routes(vid, update.v6, patch) else { return Ok(Refusals::default()) };
        // The former words wait for the records in flight; then there is room for them again.
        self.set_routes(vid, &former, patch).map_err(|error| SubstrateError::Broken {
            substrate: NAME,
            reason: format!("a refused change cannot be taken back ({error}): load the network again"),
        })?;
        Err(refused)
    }

    /// Changes those routes of one width that fit.
    fn set_fitting<K: CardKey>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
    ) -> Result<Refusals, SubstrateError> {
        apply_fitting(changes, SubstrateError::is_full, |part| self.set_routes(vid, part, Patch::Each))
    }

    /// Changes routes of one width, all or none.
    fn set_routes<K: CardKey>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
        patch: Patch,
    ) -> Result<(), SubstrateError> {
        let loaded = self.networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        if !loaded.differs(changes) {
            return Ok(());
        }
        let device = self.device.get_mut();
        match (&mut self.shared, &mut self.banks) {
            (Some(shared), _) => shared_routes(loaded, changes, patch, shared, device),
            (None, Some(banks)) => bank_routes(loaded, K::of_32_bits(changes), banks, device),
            (None, None) => {
                let mut next = loaded.clone();
                next.set_routes(changes);
                self.update_plane(next, patch != Patch::Each)
            }
        }
    }

    /// Changes next hops, of which there are `count` then. Each packet sees either the old or the new next hop as a
    /// whole, and of a group either the old or the new member.
    fn set_hops(&mut self, vid: Vid, changes: &HopChanges, count: usize) -> Result<(), SubstrateError> {
        let loaded = self.networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let device = self.device.get_mut();
        match (&mut self.shared, &mut self.banks) {
            (Some(shared), _) => shared_hops(loaded, (changes, count), shared, device),
            (None, Some(_)) if loaded.held.is_none() => {
                loaded.set_hops(&changes.rows, count);
                Ok(())
            }
            (None, Some(banks)) => shared_hops(loaded, (changes, count), banks, device),
            (None, None) => {
                let mut next = loaded.clone();
                next.set_hops(&changes.rows, count);
                self.update_plane(next, true)
            }
        }
    }

    /// Changes a network with tables of its own to `next`, either all at once or one change after the other.
    fn update_plane(&mut self, next: Loaded, all_at_once: bool) -> Result<(), SubstrateError> {
        // A network in software gets a plane, and its tables there, when it moves to the card.
        if next.place.plane == NO_PLANE {
            self.networks.insert(next.program().vid, next);
            return Ok(());
        }
        let device = self.device.get_mut();
        let rows = plan::plane(next.program(), device.description().neighbour_rows());
        check_plane(&rows, &next.program().name, device.description())?;
        let Some(plane) = self.planes.get_mut(usize::from(next.place.plane)) else {
            return Err(SubstrateError::Unknown(next.program().vid));
        };
        if plane.write_in_steps(device, &rows, all_at_once).map_err(broken)? {
            self.networks.insert(next.program().vid, next);
            return Ok(());
        }
        let row = (u32::from(next.place.net), next.row(Roots::default()));
        let hops_only = plane.differs_in_hops_only(&rows);
        let write = |device: &mut Device<R>| {
            plane.write(device, rows)?;
            device.write_row(row.0, &row.1)
        };
        // Only next hops change: each is one row and changes atomically.
        let done = if hops_only { write(device) } else { device.in_hold(write) };
        done.map_err(broken)?;
        self.networks.insert(next.program().vid, next);
        Ok(())
    }
}

fn shared_routes<R: Registers, K: CardKey>(
    loaded: &mut Loaded,
    changes: &[Change<K>],
    patch: Patch,
    shared: &mut Shared,
    device: &mut Device<R>,
) -> Result<(), SubstrateError> {
    let Some(table) = loaded.held.as_ref().map(|held| held.table) else { return Ok(()) };
    let before = shared.roots(table);
    let patch = if knows_its_hops(loaded, device).map_err(broken)? { patch } else { Patch::Never };
    let writes = shared
        .update(table, changes, (loaded.software, patch), device)
        .map_err(|refusal| refusal.of(&loaded.program().name, &device.description().name))?;
    loaded.set_routes(changes);
    write_change(loaded, shared, device, before, &writes).map_err(broken)
}

/// Writes the changes of a network's table. `before` are the roots that its row has so far.
pub fn write_change<R: Registers>(
    loaded: &mut Loaded,
    shared: &mut Shared,
    device: &mut Device<R>,
    before: Roots,
    writes: &[Write],
) -> Result<(), CardError> {
    let Some(table) = loaded.held.as_ref().map(|held| held.table) else { return Ok(()) };
    let roots = shared.roots(table);
    if roots == before && !writes.iter().any(|write| matches!(write, Write::Word { .. })) {
        return Ok(());
    }
    write_words(device, writes)?;
    // Nothing reads the row while the network is in software; it is written when the network moves to the card.
    if !loaded.software && roots != before {
        device.write_row(u32::from(loaded.place.net), &loaded.row(roots))?;
    }
    loaded.changed = Some(shared.wait_from_now(device)?);
    Ok(())
}

/// Changes routes in two banks. Each packet sees the old or the new route of its address; it may see some changes
/// before others.
fn bank_routes<R: Registers>(
    loaded: &mut Loaded,
    changes: &[Change<u32>],
    banks: &mut Banks,
    device: &mut Device<R>,
) -> Result<(), SubstrateError> {
    // A network in software has no table here: its routes are written when it moves to the card.
    if loaded.held.is_some() {
        wait_for_its_hops(loaded, device).map_err(broken)?;
        let program = loaded.program();
        banks.change((program.vid, &program.name), changes, device)?;
        loaded.changed = Some(device.mark().map_err(broken)?);
    }
    loaded.set_routes(changes);
    Ok(())
}

/// The next hops of an update as they are at its end: a row that it sets and then makes a group is a group.
fn final_hops(update: &Update<'_>) -> HopChanges {
    let is_group = |row: &NextHop| update.groups.iter().any(|(group, _)| group == row);
    HopChanges {
        rows: update.hops.iter().filter(|(row, _)| !is_group(row)).copied().collect(),
        groups: update.groups.to_vec(),
    }
}

/// Changes rows first and then groups, each in an order in which no packet sees a half-made one.
fn shared_hops<R: Registers>(
    loaded: &mut Loaded,
    (changes, count): (&HopChanges, usize),
    shared: &mut impl HopRows,
    device: &mut Device<R>,
) -> Result<(), SubstrateError> {
    let Some(held) = loaded.held.clone() else { return Ok(()) };
    let mut freed = Vec::new();
    // What has to be found is found before anything changes.
    let runs = slot_runs(loaded, (changes, count), &mut freed, shared, device)?;
    let hops = match count > held.hops.len() {
        false => Ok(held.hops.clone()),
        true => shared.grow_hops(&held.hops, count, &loaded.program().name, device),
    };
    let hops = hops.inspect_err(|_| {
        let new = runs.iter().filter(|run| !held.groups.contains(run)).map(|(_, run)| run.clone());
        shared.groups().into_iter().for_each(|groups| groups.release(new.clone()));
    })?;
    let moved = hops.start != held.hops.start;
    let count_before = loaded.program().next_hops.len();
    let is_known = |row: &NextHop| usize::from(row.get()) < count_before;
    // Both places of the rows name the same slots.
    let knows = changes.groups.iter().any(|(row, _)| is_known(row))
        || !moved && (count < count_before || changes.rows.iter().any(|(row, _)| is_known(row)));
    if let Some(mark) = loaded.changed.filter(|_| knows) {
        device.wait_for(mark).map_err(broken)?;
    }
    rows_of_hops(loaded, (&changes.rows, count), hops, shared, device).map_err(broken)?;
    if !changes.groups.is_empty() {
        groups_of_hops(loaded, &changes.groups, &runs, shared, device).map_err(broken)?;
    }
    if let Some(held) = &mut loaded.held {
        held.groups = runs;
    }
    let has_groups = !freed.is_empty() || !changes.groups.is_empty();
    if moved || has_groups {
        let mark = device.mark().map_err(broken)?;
        shared.wait(mark, if moved { held.hops } else { 0..0 }, freed);
        // Records that came before it may be on their way to a member that no slot names any more.
        loaded.changed = if has_groups { Some(mark) } else { loaded.changed };
    }
    Ok(())
}

/// The runs of slots after a change, new ones for groups that are new or of another size; `freed` are those that are not
/// used then. On an error nothing is taken.
fn slot_runs<R: Registers>(
    loaded: &Loaded,
    (changes, count): (&HopChanges, usize),
    freed: &mut Vec<Range<u32>>,
    shared: &mut impl HopRows,
    device: &mut Device<R>,
) -> Result<Vec<GroupRun>, SubstrateError> {
    let own = loaded.held.as_ref().map_or(&[][..], |held| &held.groups);
    let (gone, mut runs): (Vec<GroupRun>, Vec<GroupRun>) =
        own.iter().cloned().partition(|(row, _)| ends_group(*row, &changes.rows, count));
    freed.extend(gone.into_iter().map(|(_, run)| run));
    let mut taken: Vec<Range<u32>> = Vec::new();
    for (row, slots) in &changes.groups {
        let old = runs.iter().position(|(of, _)| of == row);
        if old.is_some_and(|old| runs.get(old).is_some_and(|(_, run)| run.len() == slots.len())) {
            continue;
        }
        let run = match shared.take_slots(slots, &loaded.program().name, device) {
            Ok(run) => run,
            Err(error) => {
                shared.groups().into_iter().for_each(|groups| groups.release(taken.drain(..)));
                return Err(error);
            }
        };
        taken.push(run.clone());
        if let Some(old) = old {
            freed.push(runs.swap_remove(old).1);
        }
        runs.push((*row, run));
    }
    Ok(runs)
}

/// Writes rows that change, or all of them in another place, where the groups are as before.
fn rows_of_hops<R: Registers>(
    loaded: &mut Loaded,
    (changes, count): (&[(NextHop, Adjacency)], usize),
    run: Range<u32>,
    shared: &mut impl HopRows,
    device: &mut Device<R>,
) -> Result<(), CardError> {
    let Some(held) = &mut loaded.held else { return Ok(()) };
    let (table, moved) = (held.table, held.hops.start != run.start);
    held.hops = run.clone();
    let count_before = loaded.program().next_hops.len();
    loaded.set_hops(changes, count);
    let hops = &loaded.program().next_hops;
    let added = if moved { 0 } else { count_before }..count;
    let changed =
        changes.iter().map(|(index, _)| usize::from(index.get())).filter(|index| !added.contains(index));
    for index in changed.chain(added.clone()) {
        let hop = hops.get(index).copied().unwrap_or(Adjacency::NONE);
        let row = run.start + index as u32;
        device.write_row(row, &loaded.hop(&hop))?;
        let Some(groups) = shared.groups() else { continue };
        // The row of a group that stays one has to follow it to another place.
        let own = loaded.held.as_ref().filter(|_| hop.kind() == AdjacencyKind::Group);
        let slots = own.and_then(|held| run_of(&held.groups, NextHop::new(index as u16)?));
        groups.mark(row, slots, device)?;
    }
    if count != count_before || moved {
        device.write_row(u32::from(loaded.place.net), &loaded.row(shared.roots(table)))?;
    }
    if !added.is_empty() {
        loaded.grown = Some(device.mark()?);
    }
    Ok(())
}

/// Writes groups into rows that are there. `runs` are the slots of all groups.
fn groups_of_hops<R: Registers>(
    loaded: &mut Loaded,
    groups: &[(NextHop, Slots)],
    runs: &[GroupRun],
    shared: &mut impl HopRows,
    device: &mut Device<R>,
) -> Result<(), CardError> {
    // A record with an older copy of the network's row must not see a slot with a member beyond that row's count.
    wait_for_its_hops(loaded, device)?;
    let Some(held) = loaded.held.clone() else { return Ok(()) };
    for (row, slots) in groups {
        let Some(run) = run_of(runs, *row) else { continue };
        let stays = run_of(&held.groups, *row) == Some(run);
        if !planted(Bug::SlotsStay) {
            write_slots(run, slots, loaded.slots(*row).filter(|_| stays), loaded.place.net, device)?;
        }
        if let Some(groups) = shared.groups().filter(|_| !stays) {
            groups.mark(held.hops.start + u32::from(row.get()), Some(run), device)?;
        }
    }
    loaded.set_groups(groups);
    Ok(())
}
