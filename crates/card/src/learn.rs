//! What networks on the card learn: notes come in, rows of STATION go out.
//!
//! Flow: notes of the card, time → **learn** → stations → device.

use hue_substrate::handover::Sighting;
use hue_substrate::{Program, SwitchCounts};
use hue_tables::{MacEntry, MacKey, Vid};

use crate::card::Card;
use crate::error::CardError;
use crate::registers::Registers;
use crate::stations::{Learner, StationWrites, Stations};

impl<R: Registers> Card<R> {
    /// Enters what a note says: a frame from an address arrived at a virtual port of a network. Does nothing if the network is gone,
    /// or runs in software and does not come to the card.
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

    /// Takes over what a network has learnt in software, before it comes to the card. Its rows are written by
    /// [`Card::write_stations`]; until the network is on the card, no frame uses them. What it learns meanwhile is entered by
    /// [`Card::learn`]. Does nothing for a network on the card, or of a kind that does not learn.
    pub fn adopt(&mut self, vid: Vid, known: &[Sighting], now_ns: u64) {
        self.forget_learnt(vid);
        let Some(loaded) = self.networks.get_mut(&vid).filter(|loaded| loaded.software) else { return };
        loaded.learner = Learner::adopted(loaded.program(), known, now_ns);
        let macs = loaded.learner.iter().flat_map(Learner::macs);
        self.unwritten.extend(macs.map(|mac| (vid, mac)));
    }

    /// Forgets what a network in software has learnt: it has left the card, or does not come after [`Card::adopt`].
    pub fn forget_learnt(&mut self, vid: Vid) {
        let Self { networks, stations, unwritten, .. } = self;
        if let Some(loaded) = networks.get_mut(&vid).filter(|loaded| loaded.software) {
            loaded.learner = None;
            unwritten.extend(stations.macs(loaded.place.net).map(|mac| (vid, mac)));
        }
    }

    /// Writes at most `most` rows of addresses of networks that come to the card or have left it. Returns whether any may be
    /// left.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn write_stations(&mut self, most: usize, now_ns: u64) -> Result<bool, CardError> {
        let Self { device, networks, stations, unwritten, .. } = self;
        let mut writes = Vec::new();
        for _ in 0..most {
            let Some((vid, mac)) = unwritten.pop_front() else { break };
            // The rows of a network that was removed are gone.
            let Some(loaded) = networks.get(&vid) else { continue };
            let learner = loaded.learner.as_ref();
            let net = loaded.place.net;
            match learner.and_then(|learner| learner.row(loaded.program(), net, mac, now_ns)) {
                Some(row) => stations.set(row, &mut writes),
                None => stations.remove(net, mac, &mut writes),
            }
        }
        writes.iter().try_for_each(|(place, row)| device.get_mut().write_row(*place, row))?;
        Ok(!unwritten.is_empty())
    }

    /// Whether rows of addresses have to be written, see [`Card::write_stations`].
    pub fn has_unwritten_stations(&self) -> bool {
        !self.unwritten.is_empty()
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
