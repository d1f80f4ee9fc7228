//! Changes routes and next hops of one network while it runs. The cost of a change depends only on its own size.
//!
//! Flow: live control → **update** → rows → device. Shared tables (`dag36`): new words, then the one word that leads
//! to them, or the network's row with the new root (ADR-0017). A plane's own tables (`tcam`): one row at a time while
//! packets pass (ADR-0029), or, if all changes must take effect at once, the rows that differ in a hold of the card.
//! Two banks (`dir`): words and rows in the order of `Dir`. A next hop is one row.

use hue_planes::Adjacency;
use hue_substrate::SubstrateError;
use hue_tables::dag36_levels::{Patch, Write};
use hue_tables::{Change, NextHop, Vid};

use crate::banks::Banks;
use crate::card::Card;
use crate::device::Device;
use crate::error::{CardError, broken};
use crate::load::{check_plane, has_kind};
use crate::network::{CardKey, Loaded, knows_its_hops, wait_for_its_hops};
use crate::plan;
use crate::registers::Registers;
use crate::routes::{Held, HopRows, Roots, Shared, write_words};

impl<R: Registers> Card<R> {
    /// Changes routes of a network, in order and all at once: each packet sees all of the changes or none of them.
    /// With layout dir, each packet sees either the old or the new route of its address. `None` withdraws a route,
    /// which need not exist.
    ///
    /// # Errors
    /// `Unknown`, `Hop` for a next hop that the network does not have, `Program` for keys of another width, `Table`,
    /// `Room` if the image is full; nothing has changed then. `Broken`.
    pub fn update_routes<K: CardKey>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
    ) -> Result<(), SubstrateError> {
        self.update_routes_by(vid, changes, Patch::One)
    }

    /// The same for independent changes, such as a routing protocol's: each packet sees the table either before or
    /// after all of them, but a packet may see the old table after an earlier packet saw the new one. A batch costs a
    /// fraction of an all-at-once change.
    ///
    /// # Errors
    /// As [`Self::update_routes`].
    pub fn update_routes_each<K: CardKey>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
    ) -> Result<(), SubstrateError> {
        self.update_routes_by(vid, changes, Patch::Each)
    }

    fn update_routes_by<K: CardKey>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
        patch: Patch,
    ) -> Result<(), SubstrateError> {
        let loaded = self.networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        loaded.check_routes(changes)?;
        let device = self.device.get_mut();
        // The card has no routes of a network of another kind: software decides its packets.
        if !loaded.differs(changes) || !has_kind(device.description(), loaded.program().kind()) {
            return Ok(());
        }
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

    /// Changes next hops of a network, or adds some, by index; indices in between that were never set become "no
    /// route". Each packet sees either the old or the new next hop as a whole. An index whose last route was removed
    /// in an earlier update may be reused.
    ///
    /// # Errors
    /// `Unknown`, `Program` for a next hop that the network cannot use, `Room`; nothing has changed then. `Broken`.
    pub fn update_hops(&mut self, vid: Vid, changes: &[(NextHop, Adjacency)]) -> Result<(), SubstrateError> {
        let loaded = self.networks.get_mut(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let count = loaded.check_hops(changes)?;
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
        && changes.iter().any(known)
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
            device.write_row(run.start + index as u32, &plan::hop(&hop))?;
        }
        if !added.is_empty() {
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
