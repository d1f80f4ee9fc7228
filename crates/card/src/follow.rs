//! Tables that follow an external store: the store that software reads.
//!
//! Flow: routes → store (software uses it at once) → deltas → **follow** → words and rows → device. The trie is
//! computed once for all readers. The card's encoding takes room only for tables that were brought to the card
//! ([`Card::bring_table`]); from then on it follows each change. The store's owner sends deltas in order and never
//! waits.
//!
//! Invariants: a table that cannot follow is removed from the card before the store's next change is processed, and
//! software decides its network's packets from then on. Words that a lookup may still read wait until the records in
//! flight have left.

use hue_planes::Kind;
use hue_substrate::SubstrateError;
use hue_tables::dag36_levels::Patch;
use hue_tables::{Delta, Key, NextHop, TableId, Vid};

use crate::card::Card;
use crate::error::{CardError, broken};
use crate::network::knows_its_hops;
use crate::registers::Registers;
use crate::room::room;
use crate::routes::{HopRows, Refusal, Shared, write_words};
use crate::update::write_change;

impl<R: Registers> Card<R> {
    /// Makes the tables follow an external store from now on, if the image shares tables. Call it before networks are
    /// loaded; the routes in their programs are then ignored. The store's first deltas describe its current state.
    ///
    /// # Errors
    /// `Networks` if networks are loaded.
    pub fn follow_store(&mut self) -> Result<(), SubstrateError> {
        let count = self.networks.len();
        if count > 0 {
            return Err(SubstrateError::Networks { count, max: 0 });
        }
        if let Some(shared) = &mut self.shared {
            shared.follow_store();
        }
        Ok(())
    }

    /// Whether tables follow an external store.
    pub fn follows(&self) -> bool {
        self.shared.as_ref().is_some_and(Shared::follows)
    }

    /// Applies changes of the store and writes them to the card's tables. Each packet sees either the old or the new
    /// table of its network, as with [`Mode::Each`](hue_substrate::Mode::Each). Returns the networks whose tables could not
    /// follow, and why; software decides their packets now.
    ///
    /// # Errors
    /// `Broken`.
    pub fn follow(&mut self, deltas: &[Delta]) -> Result<Vec<(Vid, SubstrateError)>, SubstrateError> {
        let mut lost = Vec::new();
        if let Some(shared) = &mut self.shared
            && shared.before_retired(deltas)
        {
            shared.wait_from_now(self.device.get_mut()).map_err(broken)?;
        }
        for delta in deltas {
            let Some(shared) = &mut self.shared else { break };
            let image = &self.device.get_mut().description().name;
            shared.apply_delta(delta).map_err(|refusal| refusal.of("", image))?;
            if let Delta::Root(table, top) = delta
                && shared.has_table(*table)
            {
                // A network that is still arriving begins again.
                let vid = table.vid();
                let is_whole = shared.has(vid);
                match top {
                    Some(_) => lost.extend(self.turn(*table)?.filter(|_| is_whole).map(|why| (vid, why))),
                    None => self.lose_table(vid).map_err(broken)?,
                }
            }
        }
        Ok(lost)
    }

    /// Whether all tables of a network are on the card.
    pub fn has_table(&self, vid: Vid) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.has(vid))
    }

    /// The next hop of an address in a table on the card, looked up in the driver's copy of the words.
    pub fn answer<K: Key>(&self, vid: Vid, key: K) -> Option<NextHop> {
        NextHop::new(self.shared.as_ref()?.answer(vid, key))
    }

    /// Updates a table on the card to the store's version. If that fails, removes the network's tables and returns the
    /// reason.
    fn turn(&mut self, table: TableId) -> Result<Option<SubstrateError>, SubstrateError> {
        let Self { device, networks, shared, .. } = self;
        let (device, vid) = (device.get_mut(), table.vid());
        let Some((shared, loaded)) = shared.as_mut().zip(networks.get_mut(&vid)) else { return Ok(None) };
        let before = shared.roots(vid);
        let patch = if knows_its_hops(loaded, device).map_err(broken)? { Patch::Each } else { Patch::Never };
        match shared.turn(table, (loaded.software, patch), device) {
            Ok(writes) => {
                write_change(loaded, shared, device, before, &writes).map_err(broken)?;
                Ok(None)
            }
            Err(refusal) => {
                let why = refusal.of(&loaded.program().name, &device.description().name);
                self.lose_table(vid).map_err(broken)?;
                Ok(Some(why))
            }
        }
    }

    /// Places about `nodes` more nodes of the tables of a network in software; deferred words are written in the
    /// background, or when the network moves to the card. Returns whether all of them have their place; they follow
    /// the store from then on.
    ///
    /// # Errors
    /// `Unknown`; `Words`: then nothing of the tables is on the card; `Broken`.
    pub fn bring_table(&mut self, vid: Vid, nodes: usize) -> Result<bool, SubstrateError> {
        let Self { device, networks, shared, .. } = self;
        let loaded = networks.get(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let Some(shared) = shared else { return Ok(true) };
        if shared.has(vid) {
            return Ok(true);
        }
        let device = device.get_mut();
        if loaded.program().kind() == Kind::Rofl && !shared.offers(TableId::of::<u128>(vid)) {
            let what = "tables of flat labels in software's store";
            room(device.description(), &loaded.program().name, what, 1, 0)?;
        }
        let brought = shared.bring(vid, nodes, device);
        if brought.is_err() {
            shared.wait_from_now(device).map_err(broken)?;
        }
        let of = |refusal: Refusal| refusal.of(&loaded.program().name, &device.description().name);
        let (there, writes) = brought.map_err(of)?;
        write_words(device, &writes).map_err(broken)?;
        shared.wait_from_now(device).map_err(broken)?;
        Ok(there)
    }

    /// Removes a network's tables from the card; software decides its packets.
    fn lose_table(&mut self, vid: Vid) -> Result<(), CardError> {
        let Self { device, networks, shared, .. } = self;
        let device = device.get_mut();
        let Some(shared) = shared else { return Ok(()) };
        shared.lose(vid);
        if let Some(loaded) = networks.get_mut(&vid) {
            loaded.software = true;
            device.write_row(u32::from(loaded.place.net), &loaded.row(shared.roots(vid)))?;
        }
        shared.wait_from_now(device)?;
        self.leave_runs(vid)?;
        self.settle_tunnels(None)
    }
}
