//! Frames of a moving network: the card's thread follows them, and a worker reports the fate of frames that end here.
//!
//! Flow: a frame leaves by a port of the worker's, goes to a namespace, is dropped or lost → **follow** → a record to the
//! guest. While no network is followed, which is nearly always, this costs one comparison per frame.

use hue_ports::Packet;
use hue_substrate::follow::{Ending, FrameKey};
use hue_substrate::handover::Record;
use hue_tables::Vid;

use super::Worker;

impl Worker {
    /// Reads which network the guest follows, and since when.
    pub(super) fn ask_followed(&mut self) {
        let guest = self.peers.last().and_then(Option::as_ref);
        self.followed = guest.and_then(|guest| guest.followed.get());
    }

    /// The key of a frame of the network in `slot`, if that network is followed.
    #[inline(always)]
    pub(super) fn followed_key(&self, slot: usize, packet: &Packet) -> Option<FrameKey> {
        self.followed.and_then(|followed| self.key_of(followed, slot, packet))
    }

    /// Frames from before the following began have no key: the guest has not seen them arrive.
    #[cold]
    fn key_of(&self, (vid, since_ns): (Vid, u64), slot: usize, packet: &Packet) -> Option<FrameKey> {
        let network = self.networks.get(slot).filter(|network| network.vid == vid);
        network.filter(|_| packet.time_ns >= since_ns)?;
        Some(FrameKey::of(self.engine.networks.get(slot)?.kind(), packet.bytes(&self.pool)))
    }

    /// Reports the end of a frame, if it was followed.
    #[inline(always)]
    pub(super) fn ended(&mut self, slot: usize, key: Option<FrameKey>, ending: Ending) {
        if let Some(key) = key {
            self.tell_ending(slot, key, ending);
        }
    }

    #[cold]
    fn tell_ending(&mut self, slot: usize, key: FrameKey, ending: Ending) {
        let at = self.guest();
        let (Some(network), Some(Some(guest))) = (self.networks.get(slot), self.peers.get_mut(at)) else {
            return;
        };
        if guest.out.push(&Record::of_ending(network.vid, network.generation, key, ending), &[]) {
            self.notify[at] = true;
        } else {
            guest.followed.count_untold();
        }
    }
}
