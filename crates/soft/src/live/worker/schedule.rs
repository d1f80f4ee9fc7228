//! The middle of a round: chooses the networks whose frames come next, and takes the frames through the plane.
//!
//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): networks with frames take turns; a turn allows a
//! number of bytes in proportion to the weight. A frame's fixed cost counts too, because the networks share the time
//! of a core. A network whose queue is empty gives up its deficit, but keeps its debts. A batch may end in the middle of a turn; the next
//! batch continues it.

use hue_substrate::handover::RECORD_BYTES;

use super::super::network::{Queued, Waiting, cost};
use super::Worker;
use crate::engine::{BATCH_MAX, Claimed};
use crate::frame::Frame;

/// Packets of one port and class that left the queues and were not reported to the port yet.
#[derive(Default)]
struct Consumed {
    at: u16,
    class: u16,
    count: u32,
}

impl Worker {
    /// Takes a batch from the queues through the plane and sends it on; returns whether there was anything to do.
    pub(super) fn dispatch(&mut self) -> bool {
        let any = self.collect();
        if self.batch.packets.is_empty() {
            return any;
        }
        self.totals.packets += self.batch.packets.len() as u64;
        if self.watch.is_on() {
            self.watch_before();
        }
        self.engine.process_claimed(self.pool.bytes_mut(), &mut self.batch.frames, &self.batch.claims);
        self.tell_learnt();
        if self.watch.is_on() {
            self.watch_after();
        }
        let mut batch = std::mem::take(&mut self.batch);
        let decided = batch.frames.iter().zip(&batch.claims);
        for (mut packet, (frame, claim)) in batch.packets.drain(..).zip(decided) {
            // A plane may have made it longer or shorter.
            (packet.start, packet.len) = (frame.start, frame.len);
            self.depart(usize::from(claim.slot), packet, frame);
        }
        batch.frames.clear();
        batch.claims.clear();
        self.batch = batch;
        true
    }

    /// Fills the batch. Control planes' frames are sent at once, fences are returned. Returns whether there was any of these, or a
    /// network waits for room on its way out.
    fn collect(&mut self) -> bool {
        self.batches += 1;
        let mut consumed = Consumed::default();
        let (mut taken, mut controls, mut waits) = (0, 0, 0);
        'batch: while taken < BATCH_MAX && waits < self.schedule.len() {
            let Some(slot) = self.schedule.front().copied() else { break };
            let Some(network) = self.networks.get_mut(usize::from(slot)) else {
                self.schedule.pop_front();
                continue;
            };
            // What a carrier sends through ports of the card waits in its queue until there is room, instead of being lost: of the
            // queue, each network with a tunnel has a share, but not of the way behind it.
            if network.carries_tunnels && network.way_at != self.batches {
                let ways = self.peers.iter().flatten().filter_map(|peer| peer.out.free(network.vid));
                (network.way, network.way_at) = (ways.min().unwrap_or(usize::MAX), self.batches);
            }
            if !network.has_way() {
                waits += 1;
                self.schedule.rotate_left(1);
                continue;
            }
            waits = 0;
            if !network.served {
                network.served = true;
                network.deficit += network.quantum;
            }
            Self::touch(&mut self.networks, &mut self.dirty, usize::from(slot));
            while taken < BATCH_MAX {
                let Some(network) = self.networks.get_mut(usize::from(slot)) else { break };
                let Some(next) = network.queue.front() else {
                    network.queue.clear(); // restarts at the beginning of its memory, which is in the cache
                    network.deficit = network.deficit.min(0);
                    (network.served, network.scheduled) = (false, false);
                    self.schedule.pop_front();
                    break;
                };
                if next.what == Waiting::Fence {
                    controls += 1;
                    // The frames in the batch have not left yet.
                    if !self.batch.packets.is_empty() || !self.return_fence(usize::from(slot)) {
                        break 'batch;
                    }
                    continue;
                }
                let cost = cost(next.packet.len);
                if cost > network.deficit || !network.has_way() {
                    network.served = cost <= network.deficit;
                    self.schedule.rotate_left(1);
                    break;
                }
                network.deficit -= cost;
                if network.carries_tunnels {
                    network.way = network.way.saturating_sub(RECORD_BYTES + next.packet.len as usize);
                }
                let Some(queued) = network.queue.pop_front() else { break };
                taken += 1;
                if queued.what == Waiting::Control {
                    controls += 1;
                    self.depart_control(usize::from(slot), queued);
                } else {
                    self.line_up(slot, queued, &mut consumed);
                }
            }
        }
        self.tell(&consumed);
        controls > 0 || waits > 0
    }

    #[inline(always)]
    fn line_up(&mut self, slot: u16, queued: Queued, consumed: &mut Consumed) {
        let Queued { mut packet, port, vport, .. } = queued;
        if packet.class != 0 {
            let class = std::mem::take(&mut packet.class);
            let at = self.port_at[port.index()];
            if (at, class) != (consumed.at, consumed.class) {
                self.tell(consumed);
                *consumed = Consumed { at, class, count: 0 };
            }
            consumed.count += 1;
        }
        let room = packet.start - self.pool.floor(&packet.slot);
        self.batch.frames.push(Frame::new(port, packet.time_ns, packet.start, packet.len).with_room(room));
        self.batch.claims.push(Claimed { slot, vport });
        self.batch.packets.push(packet);
    }

    fn tell(&mut self, consumed: &Consumed) {
        if consumed.count == 0 {
            return;
        }
        match self.ports.get_mut(usize::from(consumed.at)) {
            Some(live) => live.port.consumed(consumed.class, consumed.count),
            // No port has such packets: they are those of tunnels.
            None => self.left_carrier(consumed.class, consumed.count),
        }
    }
}
