//! Input from workers: frames that networks in software send through ports of the card, returned fences, and ends of
//! followed frames.

use hue_planes::Loss;
use hue_ports::Packet;
use hue_substrate::follow::{Ending, FrameKey};
use hue_substrate::handover::{Crossing, Peer, Record};

use super::super::transfer::{Late, Mishap};
use super::{CPU_QUEUES, NONE, Runner, WAITING_MAX};
use crate::cpu::{self, HEADER_BYTES};

impl Runner {
    /// Takes everything that workers have handed over. Returns whether there was anything.
    pub(super) fn receive_from_workers(&mut self) -> bool {
        let mut any = false;
        let ports = self.wires.len() as u8;
        for peer in 0..self.peers.len() {
            for _ in 0..WAITING_MAX {
                let twin = self.card.twin();
                if (ports..ports + CPU_QUEUES).any(|queue| twin.waiting(queue) as usize >= WAITING_MAX) {
                    return true;
                }
                let Some(Peer { into, .. }) = self.peers.get_mut(peer) else { break };
                let (record, packet) = match into.pop(&mut self.pool) {
                    Ok(None) => break,
                    Ok(Some((record, packet))) => (record, Some(packet)),
                    Err(record) => (record, None),
                };
                any = true;
                if record.crossing == Crossing::Debts {
                    let debts = into.take_debts();
                    self.debts_answered(&record, debts);
                    continue;
                }
                if record.crossing == Crossing::Learnt {
                    self.take_learnt(&record, peer);
                    continue;
                }
                match (record.crossing, packet) {
                    (Crossing::Fence | Crossing::Ended | Crossing::Debts | Crossing::Learnt, packet) => {
                        self.take_mark(&record);
                        if let Some(packet) = packet {
                            self.pool.give(packet.slot);
                        }
                    }
                    (Crossing::Arrived | Crossing::Leaves | Crossing::FromControl, Some(packet)) => {
                        self.take_frame(&record, packet);
                    }
                    // There was no free slot for the frame.
                    (Crossing::Arrived | Crossing::Leaves | Crossing::FromControl, None) => {
                        self.totals.crossings.entry(record.vid).or_default().from_software_lost += 1;
                    }
                }
            }
        }
        any
    }

    /// Handles a record that is not a frame.
    fn take_mark(&mut self, record: &Record) {
        if record.crossing == Crossing::Fence {
            return self.fence_back(record.time_ns);
        }
        let witness = self.transfer.as_mut().and_then(|transfer| transfer.witness.as_mut());
        if let Some(witness) = witness.filter(|witness| witness.vid() == record.vid)
            && let Some(ending) = Ending::from_code(record.vport)
        {
            witness.ended_in_software(record.time_ns, ending);
        }
    }

    fn take_frame(&mut self, record: &Record, packet: Packet) {
        if record.generation != self.homes.generation(record.vid) {
            return self.pool.give(packet.slot); // its network was removed, and another one has its VID
        }
        let number = self.numbers.get(record.port.index()).copied().unwrap_or(NONE);
        if self.bypass.is_some() {
            if !self.send_past(number, packet) {
                self.totals.crossings.entry(record.vid).or_default().port_full += 1;
            }
            return;
        }
        let net = self.card.net(record.vid).filter(|_| number != NONE);
        let aside = self.aside.get(record.vid.index()).copied().flatten();
        let sent = net.is_some_and(|net| self.send_followed(record, (net, aside), number, &packet));
        let crossings = self.totals.crossings.entry(record.vid).or_default();
        if sent {
            crossings.from_software += 1;
            // The card counts diverted frames for another index.
            let own = aside.is_none();
            crossings.from_software_bytes += if own { u64::from(packet.len) } else { 0 };
        } else {
            crossings.from_software_lost += 1;
        }
        self.pool.give(packet.slot);
    }

    /// Sends a frame into the card, with a tag if the frame is followed; returns `false` if it is lost.
    fn send_followed(
        &mut self,
        record: &Record,
        nets: (u8, Option<u8>),
        number: u8,
        packet: &Packet,
    ) -> bool {
        let from_control = record.crossing == Crossing::FromControl;
        let tag = self.next_tag();
        let followed = self.transfer.as_mut().is_some_and(|transfer| {
            let witness = transfer.witness.as_mut().filter(|witness| witness.vid() == record.vid);
            witness.is_some_and(|witness| {
                witness.handed_over(from_control, tag, packet.bytes(&self.pool), record.time_ns)
            })
        });
        if !followed {
            return self.send(nets, number, 0, packet);
        }
        let sent = match self.transfer.as_mut().and_then(|transfer| transfer.mishap()) {
            None => {
                let sent = self.send(nets, number, tag, packet);
                let late = self.transfer.as_ref().and_then(|transfer| transfer.late.as_ref());
                if late.is_some_and(|late| late.flow == FrameKey::flow_of(packet.bytes(&self.pool))) {
                    self.send_late();
                }
                sent
            }
            Some(Mishap::Lost) => return false, // without any report
            Some(Mishap::Doubled) => {
                let again = self.next_tag();
                let witness = self.transfer.as_mut().and_then(|transfer| transfer.witness.as_mut());
                witness.map(|witness| {
                    witness.handed_over(false, again, packet.bytes(&self.pool), record.time_ns)
                });
                self.send(nets, number, tag, packet) && self.send(nets, number, again, packet)
            }
            Some(Mishap::Reordered) => {
                self.send_late();
                let (queue, header) = self.way(nets, number);
                if let Some(transfer) = &mut self.transfer {
                    let flow = FrameKey::flow_of(packet.bytes(&self.pool));
                    let bytes = [&header, packet.bytes(&self.pool)].concat();
                    transfer.late = Some(Late { queue, tag, flow, bytes });
                }
                true
            }
        };
        if !sent && let Some(witness) = self.transfer.as_mut().and_then(|transfer| transfer.witness.as_mut())
        {
            // A frame of the control plane has arrived here, whatever its time.
            witness.lost_between(packet.bytes(&self.pool), u64::MAX, Loss::HandoverFull);
            witness.not_sent(tag);
        }
        sent
    }

    /// Sends a frame that was delayed.
    fn send_late(&mut self) {
        let late = self.transfer.as_mut().and_then(|transfer| transfer.late.take());
        if let Some(Late { queue, tag, bytes, .. }) = late {
            self.card.twin().push(queue, self.now_ns, tag, 0, &bytes);
        }
    }

    /// Returns a tag that no other frame in the card has.
    pub(super) fn next_tag(&mut self) -> u32 {
        self.tag = self.tag.wrapping_add(1).max(1);
        self.tag
    }

    /// Returns the CPU queue of a frame from software and the frame's header. A network always uses the same queue,
    /// so that its frames keep their order.
    fn way(&self, (net, aside): (u8, Option<u8>), number: u8) -> (u8, [u8; HEADER_BYTES]) {
        (self.cpu_queue(net), cpu::from_plane(aside.unwrap_or(net), number))
    }

    /// Puts a frame from software into a CPU queue.
    fn send(&mut self, nets: (u8, Option<u8>), number: u8, tag: u32, packet: &Packet) -> bool {
        let (queue, header) = self.way(nets, number);
        let start = packet.start as usize;
        // Every frame of a pool has headroom before it.
        let Some(at) = start.checked_sub(HEADER_BYTES) else { return false };
        let bytes = self.pool.bytes_mut();
        let Some(place) = bytes.get_mut(at..start) else { return false };
        place.copy_from_slice(&header);
        let Some(whole) = bytes.get(at..start + packet.len as usize) else { return false };
        self.card.twin().push(queue, self.now_ns, tag, 0, whole)
    }
}
