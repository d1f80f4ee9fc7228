//! Counts losses at the wires.

use hue_planes::Loss;
use hue_tables::Vid;

use super::Runner;
use crate::live::losses::sender;

impl Runner {
    /// Counts the losses of all networks at wires since the last call.
    pub(super) fn look_at_losses(&mut self) {
        let Self { card, wires, totals, .. } = self;
        for wire in wires.iter_mut().flatten() {
            for program in card.programs() {
                let before = totals.crossings.get(&program.vid).copied().unwrap_or_default();
                let mut crossings = before;
                wire.seen.look(&*wire.port, program.vid, &mut crossings);
                if crossings != before {
                    totals.crossings.insert(program.vid, crossings);
                }
            }
        }
    }

    /// A network's losses before and in the rings of wires so far, by reason.
    pub(super) fn lost_at_rings(&mut self, vid: Vid) -> [(Loss, u64); 2] {
        self.look_at_losses();
        let crossings = self.totals.crossings.get(&vid).copied().unwrap_or_default();
        [(Loss::RingQuota, crossings.ring_quota), (Loss::RingFull, crossings.ring_full)]
    }

    /// Counts the loss of a frame that the card sent: there is no wire (`PortDown`), or the wire did not accept the
    /// frame.
    pub(super) fn lose_departure(&mut self, number: usize, source: Option<[u8; 6]>, loss: Loss) {
        match source.and_then(|source| sender(self.card.programs(), number, source)) {
            Some(vid) => {
                let crossings = self.totals.crossings.entry(vid).or_default();
                match loss {
                    Loss::PortDown => crossings.port_down += 1,
                    _ => crossings.port_full += 1,
                }
            }
            // The frame belongs to a network that was removed meanwhile.
            None => {
                if let Some(base) = self.bases.get_mut(number) {
                    base.send_failed += 1;
                }
            }
        }
    }
}
