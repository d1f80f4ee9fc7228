//! Frames that leave the card for wires and workers, and frames that end inside it.

use hue_planes::Loss;
use hue_ports::Pool;
use hue_substrate::handover::{Crossing, Record};
use hue_substrate::planted::{Bug, planted};
use hue_tables::Vid;

use super::{Runner, Wire};
use crate::cpu::ToCpu;
use crate::twin::{Cause, TwinEnding};

impl Runner {
    /// Passes on the frames that left the card.
    pub(super) fn deliver(&mut self) -> bool {
        let mut any = false;
        while let Some(frame) = self.card.twin().pop() {
            any = true;
            let number = usize::from(frame.port);
            let witness = self.transfer.as_mut().and_then(|transfer| transfer.witness.as_mut());
            if let Some(place) = self.wires.get_mut(number) {
                let taken = send_by(place, &mut self.pool, frame.bytes, self.now_ns);
                if let Some(witness) = witness {
                    witness.left(frame.tag, frame.port, taken, self.clock.now_ns());
                }
                if let Err(loss) = taken {
                    let source = frame.bytes.get(6..12).and_then(|mac| mac.try_into().ok());
                    self.lose_departure(number, source, loss);
                }
                continue;
            }
            if Self::is_fence(&mut self.transfer, &mut self.drains, frame.bytes, self.wires.len()) {
                continue;
            }
            let Ok((header, bytes)) = ToCpu::split(frame.bytes) else {
                self.totals.nonsense += 1;
                continue;
            };
            let ToCpu { mut vid, vport, port_in, .. } = header;
            if header.is_note {
                if let Some((vid, mac, vport)) = header.note(bytes) {
                    self.take_note(vid, mac, vport);
                }
                continue;
            }
            if planted(Bug::WrongNetwork) && bytes.len() % 8 == 5 {
                vid = Vid::new(vid.get() + 1).unwrap_or(vid);
            }
            let port = self.wires.get(usize::from(port_in)).and_then(Option::as_ref).map(|wire| wire.id);
            let ways = (&mut self.homes, &mut self.peers[..]);
            let behind = Self::is_behind_fence(&mut self.transfer, ways, vid);
            let witness = self.transfer.as_mut().and_then(|transfer| transfer.witness.as_mut());
            let witness = witness.filter(|witness| witness.vid() == vid);
            let time_ns =
                witness.as_ref().map_or(self.now_ns, |witness| witness.stamp(frame.tag, self.now_ns));
            let given = port.filter(|_| behind).is_some_and(|port| {
                let len = bytes.len() as u32;
                let generation = self.homes.generation(vid);
                let record =
                    Record { crossing: Crossing::Arrived, port, vid, generation, vport, time_ns, len };
                self.homes.give(&mut self.peers, &record, bytes)
            });
            let crossings = self.totals.crossings.entry(vid).or_default();
            if given {
                crossings.to_software += 1;
                crossings.to_software_bytes += bytes.len() as u64;
            } else {
                crossings.to_software_lost += 1;
                if let Some(witness) = witness {
                    witness.lost_between(bytes, time_ns, Loss::HandoverFull);
                }
            }
        }
        any
    }

    /// Handles the card's reports on frames that ended in it.
    pub(super) fn take_endings(&mut self) {
        let Some(transfer) = &mut self.transfer else { return };
        let net = transfer.net();
        let Some(witness) = &mut transfer.witness else { return };
        while let Some(TwinEnding { tag, net: whose, cause }) = self.card.twin().ended() {
            // These reports name no network, or a network that does not own the frame.
            let of_any = matches!(cause, Cause::Unclaimed(_) | Cause::FloodFull | Cause::Copied);
            if whose == net || of_any {
                witness.ended_in_card(tag, cause);
            }
        }
    }
}

/// Sends a frame on a wire; the error is the reason for its loss.
fn send_by(place: &mut Option<Wire>, pool: &mut Pool, bytes: &[u8], now_ns: u64) -> Result<(), Loss> {
    let wire = place.as_mut().ok_or(Loss::PortDown)?;
    let packet = pool.copy_in(bytes, now_ns).ok_or(Loss::PortFull)?;
    wire.send(pool, packet).then_some(()).ok_or(Loss::PortFull)
}
