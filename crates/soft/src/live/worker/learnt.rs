//! What networks that learn exchange with the card: while the card decides a network's frames, it tells the worker which
//! senders it saw where, so that the worker's table is that of the network, wherever it runs. Before the network moves to
//! the card, the worker tells the card all that it has learnt, and then what its last frames teach.

use hue_substrate::handover::{Record, SIGHTINGS_MAX, Sighting};

use super::Worker;
use crate::engine::BATCH_MAX;

impl Worker {
    /// The guest tells what the card has seen of a network that learns, or asks what the network has learnt. An answer for
    /// which there is no room is not finished; the guest asks again.
    #[cold]
    pub(super) fn take_learnt(&mut self, peer: usize, record: &Record) {
        let Some(slot) = self.slot_of_generation(record.vid, record.generation) else { return };
        let network = self.engine.networks.get_mut(slot);
        let switch = network.and_then(|network| network.switch.as_deref_mut());
        let Some((switch, Some(other))) = switch.zip(self.peers.get_mut(peer)) else { return };
        if !other.into.sightings().is_empty() {
            Self::touch(&mut self.networks, &mut self.dirty, slot);
            for Sighting { mac, vport, seen_ns } in other.into.sightings() {
                switch.learn(*mac, *vport, *seen_ns);
            }
            return;
        }
        self.notify[peer] = true;
        let known: Vec<Sighting> = switch.sightings(self.now_ns).collect();
        if !known.chunks(SIGHTINGS_MAX).all(|some| other.out.push_sightings(record, some)) {
            return;
        }
        switch.tell(Some(BATCH_MAX));
        if let Some(before) = self.telling.replace(slot).filter(|before| *before != slot) {
            self.stop_telling(before);
        }
        self.answer_debts(slot, record);
    }

    /// Tells the guest what the frames of a batch have taught, if it wants to know. What finds no room is learnt by the card
    /// when it sees a frame from the address.
    pub(super) fn tell_learnt(&mut self) {
        let Some(slot) = self.telling else { return };
        let guest = self.guest();
        let place = self.networks.get(slot).zip(self.engine.networks.get_mut(slot));
        let switch = place.and_then(|(place, network)| Some((place, network.switch.as_deref_mut()?)));
        let Some(((place, switch), Some(other))) = switch.zip(self.peers.get_mut(guest)) else { return };
        let record = Record::of_learnt(place.vid, place.generation, 0);
        let notify = &mut self.notify[guest];
        switch.take_told(|told| {
            *notify |= told.chunks(SIGHTINGS_MAX).all(|some| other.out.push_sightings(&record, some));
        });
    }

    /// Ends what a question about a network's addresses began.
    pub(super) fn stop_telling(&mut self, slot: usize) {
        if let Some(switch) = self.engine.networks.get_mut(slot).and_then(|network| network.switch.as_mut()) {
            switch.tell(None);
        }
        self.telling = self.telling.filter(|telling| *telling != slot);
    }
}
