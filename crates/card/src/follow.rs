//! Tables that follow a store elsewhere: the one that software reads.
//!
//! Flow: routes → the store (software forwards by it at once) → deltas → **here** → words and rows → device. The trie is
//! computed once, whatever reads it; the card's encoding of it takes room only for networks whose tables were brought here
//! ([`Card::bring_table`]), and then keeps up with each change. Who has the store tells deltas in order and waits for nothing.
//!
//! Invariants: a table that cannot follow is not here any more, and software decides its network's packets, before the store's
//! next change is looked at. Words that a lookup may still read wait for the records inside, as ever.

use hue_substrate::SubstrateError;
use hue_tables::dag36_levels::Patch;
use hue_tables::{Delta, NextHop, Vid};

use crate::card::{Card, broken};
use crate::error::CardError;
use crate::registers::Registers;
use crate::routes::{Refusal, Shared, write_words};
use crate::update::{knows_its_hops, write_change};

impl<R: Registers> Card<R> {
    /// Has the tables follow a store elsewhere from now on, if the image shares them, before networks are loaded: their
    /// programs' routes count for nothing then. The store's deltas begin with what describes it.
    ///
    /// # Errors
    /// `Networks` when networks are loaded.
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

    /// Whether tables follow a store elsewhere.
    pub fn follows(&self) -> bool {
        self.shared.as_ref().is_some_and(Shared::follows)
    }

    /// Follows changes of the store. What a table here needs is written: packets meet each network's table of before or that
    /// of after, as by [`Card::update_routes_each`]. Gives the networks whose tables could not follow, and why: software
    /// decides their packets now.
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
            if let Delta::Root(vid, top) = delta
                && shared.has(*vid)
            {
                match top {
                    Some(_) => lost.extend(self.turn(*vid)?.map(|why| (*vid, why))),
                    None => self.lose_table(*vid).map_err(broken)?,
                }
            }
        }
        Ok(lost)
    }

    /// Whether a network's table is here.
    pub fn has_table(&self, vid: Vid) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.has(vid))
    }

    /// The next hop that a table here has for an address, as the driver's copy of the words says.
    pub fn answer(&self, vid: Vid, key: u32) -> Option<NextHop> {
        NextHop::new(self.shared.as_ref()?.answer(vid, key))
    }

    /// A table that is here becomes what the store says, or is here no more: then it is said why.
    fn turn(&mut self, vid: Vid) -> Result<Option<SubstrateError>, SubstrateError> {
        let Self { device, networks, shared, .. } = self;
        let device = device.get_mut();
        let Some((shared, loaded)) = shared.as_mut().zip(networks.get_mut(&vid)) else { return Ok(None) };
        let before = shared.root(vid);
        let patch = if knows_its_hops(loaded, device).map_err(broken)? { Patch::Each } else { Patch::Never };
        match shared.turn(vid, (loaded.software, patch), device) {
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

    /// Gives places to about so many nodes of a network's table, in software as the network is; what it lacks is written in
    /// the background, or when it comes. Whether all of it is here: it then follows the store.
    ///
    /// # Errors
    /// `Unknown`; `Words`: then nothing of it is here; `Broken`.
    pub fn bring_table(&mut self, vid: Vid, nodes: usize) -> Result<bool, SubstrateError> {
        let Self { device, networks, shared, .. } = self;
        let loaded = networks.get(&vid).ok_or(SubstrateError::Unknown(vid))?;
        let Some(shared) = shared else { return Ok(true) };
        if shared.has(vid) {
            return Ok(true);
        }
        let device = device.get_mut();
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

    /// A network's table is here no more; software decides its packets.
    fn lose_table(&mut self, vid: Vid) -> Result<(), CardError> {
        let Self { device, networks, shared, .. } = self;
        let device = device.get_mut();
        let Some(shared) = shared else { return Ok(()) };
        shared.lose(vid);
        if let Some(loaded) = networks.get_mut(&vid) {
            loaded.software = true;
            device.write_row(u32::from(loaded.place.net), &loaded.row(shared.root(vid)))?;
        }
        shared.wait_from_now(device)?;
        Ok(())
    }
}
