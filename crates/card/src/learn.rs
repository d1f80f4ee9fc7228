//! What networks on the card learn: notes come in, rows of STATION go out.
//!
//! Flow: notes of the card, time → **learn** → stations → device.

use hue_substrate::{Program, SwitchCounts};
use hue_tables::{MacEntry, MacKey, Vid};

use crate::card::Card;
use crate::error::CardError;
use crate::registers::Registers;
use crate::stations::{Learner, StationWrites, Stations};

impl<R: Registers> Card<R> {
    /// Enters what a note says: a frame from an address arrived at a virtual port of a network. Does nothing if the network is gone,
    /// or runs in software.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn learn(&mut self, vid: Vid, mac: MacKey, vport: u16, now_ns: u64) -> Result<(), CardError> {
        self.with_learner(vid, |loaded, learner, stations, writes| {
            learner.learn(loaded.0, loaded.1, (mac, vport), now_ns, stations, writes);
        })
    }

    /// Brings the tables of networks that learn to this time.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn advance(&mut self, now_ns: u64) -> Result<(), CardError> {
        let learning = self.networks.iter().filter(|(_, loaded)| loaded.learner.is_some());
        let learning: Vec<Vid> = learning.map(|(vid, _)| *vid).collect();
        learning.into_iter().try_for_each(|vid| {
            self.with_learner(vid, |loaded, learner, stations, writes| {
                learner.advance(loaded.0, loaded.1, now_ns, stations, writes);
            })
        })
    }

    /// The MAC addresses that a network knows, sorted, with the index of their virtual port; none for other kinds.
    pub fn macs(&self, vid: Vid, now_ns: u64) -> Vec<MacEntry> {
        let learner = self.networks.get(&vid).and_then(|loaded| loaded.learner.as_ref());
        learner.map(|learner| learner.entries(now_ns)).unwrap_or_default()
    }

    /// What happened to the MAC addresses of a network since it was loaded; `None` if its kind does not learn.
    pub fn learnt_counts(&self, vid: Vid) -> Option<SwitchCounts> {
        self.networks.get(&vid)?.learner.as_ref().map(Learner::counts)
    }

    /// Changes what a network knows, and then the card's rows.
    fn with_learner(
        &mut self,
        vid: Vid,
        change: impl FnOnce((&Program, u8), &mut Learner, &mut Stations, &mut StationWrites),
    ) -> Result<(), CardError> {
        let Self { device, networks, stations, .. } = self;
        let Some(loaded) = networks.get_mut(&vid) else { return Ok(()) };
        let Some(mut learner) = loaded.learner.take() else { return Ok(()) };
        let mut writes = Vec::new();
        change((loaded.program(), loaded.place.net), &mut learner, stations, &mut writes);
        loaded.learner = Some(learner);
        writes.iter().try_for_each(|(place, row)| device.get_mut().write_row(*place, row))
    }
}
