//! Changes routes and next hops of one network while it runs. The cost of a change depends only on its own size.
//!
//! Flow: live control → **update** → rows → device. Shared tables (`dag36`): new words, then the one word that leads
//! to them, or the network's row with the new root (ADR-0017). A plane's own tables (`tcam`): one row at a time while
//! packets pass (ADR-0029), or, if all changes must take effect at once, the rows that differ in a hold of the card.
//! Two banks (`dir`): words and rows in the order of `Dir`. A next hop is one row.

use hue_planes::Adjacency;
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{Mode, Refusals, SubstrateError, Update};
use hue_tables::dag36_levels::{Patch, Write};
use hue_tables::{Change, NextHop, Vid, apply_fitting};

use crate::banks::Banks;
use crate::card::Card;
use crate::device::Device;
use crate::error::{CardError, NAME, broken};
use crate::load::{check_groups, check_plane, decides};
use crate::network::{CardKey, Loaded, knows_its_hops, wait_for_its_hops};
use crate::plan::{self, NO_PLANE};
use crate::registers::Registers;
use crate::routes::{Held, HopRows, Roots, Shared, write_words};

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
        check_groups(&loaded.program().name, update.groups, self.device.get_mut().description())?;
        if !loaded.differs_in(update.hops) {
            return self.change_routes(vid, update);
        }
        let (former, former_count) = (loaded.former_hops(update.hops), loaded.checked().hops.len());
        self.set_hops(vid, update.hops, count)?;
        let changed = self.change_routes(vid, update);
        // With `Fitting`, some of the routes may name them.
        if changed.is_err() && update.mode != Mode::Fitting && !planted(Bug::RowsStay) {
            self.set_hops(vid, &former, former_count)?;
        }
        changed
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
    /// whole.
    fn set_hops(
        &mut self,
        vid: Vid,
        changes: &[(NextHop, Adjacency)],
        count: usize,
    ) -> Result<(), SubstrateError> {
        let loaded = self.networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let device = self.device.get_mut();
        match (&mut self.shared, &mut self.banks) {
            (Some(shared), _) => shared_hops(loaded, (changes, count), shared, device),
            (None, Some(_)) if loaded.held.is_none() => {
                loaded.set_hops(changes, count);
                Ok(())
            }
            (None, Some(banks)) => shared_hops(loaded, (changes, count), banks, device),
            (None, None) => {
                let mut next = loaded.clone();
                next.set_hops(changes, count);
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

fn shared_hops<R: Registers>(
    loaded: &mut Loaded,
    (changes, count): (&[(NextHop, Adjacency)], usize),
    shared: &mut impl HopRows,
    device: &mut Device<R>,
) -> Result<(), SubstrateError> {
    let Some(held) = &loaded.held else { return Ok(()) };
    let (table, before) = (held.table, held.hops.clone());
    let count_before = loaded.program().next_hops.len();
    if count > before.len() {
        let hops = shared.grow_hops(&before, count, &loaded.program().name, device)?;
        loaded.held = Some(Held { table, hops });
    }
    let run = loaded.held.as_ref().map_or(0..0, |held| held.hops.clone());
    let moved = run.start != before.start;
    let known = |(index, _): &(NextHop, Adjacency)| usize::from(index.get()) < count_before;
    if !moved
        && (count < count_before || changes.iter().any(known))
        && let Some(mark) = loaded.changed
    {
        device.wait_for(mark).map_err(broken)?;
    }
    loaded.set_hops(changes, count);
    let hops = &loaded.program().next_hops;
    let added = if moved { 0 } else { count_before }..count;
    let changed =
        changes.iter().map(|(index, _)| usize::from(index.get())).filter(|index| !added.contains(index));
    let write = || {
        for index in changed.chain(added.clone()) {
            let hop = hops.get(index).copied().unwrap_or(Adjacency::NONE);
            device.write_row(run.start + index as u32, &loaded.hop(&hop))?;
        }
        if count != count_before || moved {
            device.write_row(u32::from(loaded.place.net), &loaded.row(shared.roots(table)))?;
        }
        device.mark()
    };
    let mark = write().map_err(broken)?;
    if !added.is_empty() {
        loaded.grown = Some(mark);
    }
    if moved {
        shared.wait(mark, before);
    }
    Ok(())
}
