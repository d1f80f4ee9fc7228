//! Networks that learn: notes of the card, what workers tell, and time, to rows of the card.
//!
//! Flow: a note → **learning** → the network's worker, and the card's rows. While the card decides a network's frames, its
//! worker enters the same addresses, so that the table goes nowhere when the network moves to software, also if the card
//! fails. When it moves to the card, the worker is asked for its table first, and tells what its last frames teach.

use hue_substrate::handover::{Record, Sighting};
use hue_tables::{MacKey, Vid};

use super::{ASK_NS, DEFERRED_STATIONS, Runner};
use crate::error::CardError;

/// Most notes of a network that are entered in a round. Each may write a row, which takes about a hundred cycles, in which
/// other networks' frames wait for the thread.
const NOTES_MAX: u8 = 4;

/// How many notes of each network were entered in the present round.
#[derive(Default)]
pub(super) struct Noted(Vec<(Vid, u8)>);

impl Noted {
    /// Begins a round.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a note of a network; `false` if it has had its share.
    fn take(&mut self, vid: Vid) -> bool {
        match self.0.iter_mut().find(|(other, _)| *other == vid) {
            Some((_, count)) if *count == NOTES_MAX => return false,
            Some((_, count)) => *count += 1,
            None => self.0.push((vid, 1)),
        }
        true
    }
}

impl Runner {
    /// Enters what a note says: a frame from `mac` arrived at a virtual port. A note above the network's share, or for which the
    /// worker has no room, is ignored on both sides: the next frame from the address leaves another one.
    pub(super) fn take_note(&mut self, vid: Vid, mac: MacKey, vport: u16) {
        if !self.noted.take(vid) {
            return;
        }
        let record = Record::of_learnt(vid, self.generation(vid), 0);
        let seen = Sighting { mac, vport, seen_ns: self.now_ns };
        let given = self.homes.give_by(&mut self.peers, vid, |out| out.push_sightings(&record, &[seen]));
        if given && self.card.is_in_software(vid) == Some(false) {
            let learnt = self.card.learn(vid, mac, vport, self.now_ns);
            self.give_up_if_failed(learnt);
        }
    }

    /// Takes what a worker has told.
    pub(super) fn take_learnt(&mut self, record: &Record, peer: usize) {
        let Record { vid, generation, time_ns, .. } = *record;
        let Self { peers, transfer, card, .. } = self;
        let Some(peer) = peers.get(peer).filter(|_| generation == self.homes.generation(vid)) else { return };
        let told = peer.into.sightings();
        let transfer = transfer.as_mut().filter(|transfer| transfer.order.seat.vid == vid);
        if let Some(transfer) = transfer.filter(|transfer| transfer.asked.is_answer(record)) {
            transfer.asked.known.extend_from_slice(told);
        } else if time_ns == 0 {
            let learnt = told.iter().try_for_each(|seen| card.learn(vid, seen.mac, seen.vport, seen.seen_ns));
            self.give_up_if_failed(learnt);
        } // else it is an answer to an earlier question
    }

    fn give_up_if_failed(&mut self, learnt: Result<(), CardError>) {
        if let Err(error) = learnt {
            self.give_up(error.to_string());
        }
    }

    /// Writes rows of addresses that are still to be written, and brings rows to the present. Returns whether there was
    /// anything to write.
    pub(super) fn tend_stations(&mut self) -> Result<bool, String> {
        let text = |error: CardError| error.to_string();
        if self.now_ns.saturating_sub(self.aged_ns) >= ASK_NS {
            self.aged_ns = self.now_ns;
            self.card.advance(self.now_ns).map_err(text)?;
        }
        if !self.card.has_unwritten_stations() {
            return Ok(false);
        }
        self.card.write_stations(DEFERRED_STATIONS, self.now_ns).map_err(text)?;
        Ok(true)
    }
}
