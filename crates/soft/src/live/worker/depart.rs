//! The last part of a round: decided packets go to their port, namespace or another worker, or are discarded.

use hue_demux::PortId;
use hue_planes::{Class, Loss, Reason, Verdict};
use hue_ports::Packet;
use hue_substrate::follow::Ending;
use hue_substrate::handover::{Crossing, Record};

use super::super::beside;
use super::super::capture::{Captured, Direction};
use super::super::guard::Judgement;
use super::super::network::{NO_TAP, Queued, cost, cost_of_time};
use super::super::steering::NO_HOME;
use super::Worker;
use super::tunnels::Out;
use crate::frame::{Fate, Frame};

impl Worker {
    /// Carries out the plane's decisions.
    #[inline(always)]
    pub(super) fn depart(&mut self, slot: usize, packet: Packet, frame: &Frame) {
        let Fate::Network { vport, outcome, egress, .. } = frame.fate else {
            return self.pool.give(packet.slot); // its network was removed
        };
        let Some(network) = self.networks.get_mut(slot) else { return self.pool.give(packet.slot) };
        let count = network.ledger.vport(vport);
        if outcome.is_forward() {
            if let Some(count) = count {
                count.forwarded += 1;
            }
            if outcome.is_flood() {
                return self.flood(slot, vport, outcome, packet);
            }
            let leaves = network.egress(egress, packet.bytes(&self.pool));
            self.leave(slot, leaves, egress, outcome, packet);
        } else if outcome.verdict() == Verdict::Punt {
            if let Some(count) = count {
                count.punted += 1;
            }
            self.punt(slot, vport, outcome, packet);
        } else {
            if let Some(count) = count {
                count.dropped += 1;
            }
            let key = self.followed_key(slot, &packet);
            self.ended(slot, key, Ending::Dropped(outcome));
            self.pool.give(packet.slot);
        }
    }

    /// Sends a forwarded packet on a port.
    #[inline(always)]
    fn leave(&mut self, slot: usize, vport: u16, port: PortId, outcome: Reason, packet: Packet) {
        if self.watch.is_on() {
            self.watch_out(slot, vport, port, Captured::Outcome(outcome), &packet);
        }
        if self.networks.get(slot).is_some_and(|network| network.on_nic) {
            self.send_beside(slot, vport, port, packet, Crossing::Leaves);
        } else {
            self.send(slot, vport, port, packet, Crossing::Leaves);
        }
    }

    /// Sends a packet to all ports of its network but the one at which it arrived. A port that cannot take its copy loses it,
    /// and delays no other.
    #[inline(never)]
    fn flood(&mut self, slot: usize, arrival: u16, outcome: Reason, packet: Packet) {
        let vports = self.networks.get(slot).map_or(0, |network| network.vports.len() as u16);
        let others = (0..vports).filter(|vport| *vport != arrival);
        let key = self.followed_key(slot, &packet);
        let Some(last) = others.clone().next_back() else {
            self.ended(slot, key, Ending::Dropped(outcome));
            return self.pool.give(packet.slot);
        };
        if vports > 2 {
            self.ended(slot, key, Ending::Copied(vports - 1));
        }
        let mut copies: u64 = 0;
        for vport in others.take_while(|vport| *vport != last) {
            copies += 1;
            match self.pool.duplicate(&packet) {
                Some(copy) => self.leave_by(slot, vport, outcome, copy),
                None => {
                    self.lose(slot, Loss::CopyFull, None);
                    self.ended(slot, key, Ending::of_loss(Loss::CopyFull));
                }
            }
        }
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.copies += copies + 1;
            network.deficit -= cost(packet.len) * copies as i64;
        }
        self.leave_by(slot, last, outcome, packet);
    }

    fn leave_by(&mut self, slot: usize, vport: u16, outcome: Reason, packet: Packet) {
        let port = self.networks.get(slot).and_then(|network| network.vports.get(usize::from(vport)));
        match port.map(|vport| vport.port) {
            Some(port) => self.leave(slot, vport, port, outcome, packet),
            None => self.pool.give(packet.slot),
        }
    }

    /// Sends a frame of the network's control plane.
    pub(super) fn depart_control(&mut self, slot: usize, queued: Queued) {
        let Queued { packet, port, vport, .. } = queued;
        let mut on_nic = false;
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.control_packets += 1;
            on_nic = network.on_nic;
        }
        if self.watch.is_on() {
            self.watch_out(slot, vport, port, Captured::Control, &packet);
        }
        if on_nic {
            self.send_beside(slot, vport, port, packet, Crossing::FromControl);
        } else {
            self.send(slot, vport, port, packet, Crossing::FromControl);
        }
    }

    /// Sends through the NIC beside a port or, if there is none, through the port.
    #[inline(never)]
    fn send_beside(&mut self, slot: usize, vport: u16, port: PortId, packet: Packet, crossing: Crossing) {
        let Some(nic) = self.steering.beside.nic(port) else {
            return self.send(slot, vport, port, packet, crossing);
        };
        if self.networks.get(slot).is_some_and(|network| !network.on_two_wires) {
            beside::outwards(packet.bytes_mut(&mut self.pool));
        }
        self.send(slot, vport, nic, packet, crossing);
    }

    /// Sends on a port: here, or at the port's home, to which the frame crosses as `crossing`.
    #[inline(always)]
    fn send(&mut self, slot: usize, vport: u16, port: PortId, packet: Packet, crossing: Crossing) {
        let at = usize::from(self.port_at[port.index()]);
        let key = self.followed_key(slot, &packet);
        let Some(live) = self.ports.get_mut(at) else {
            return self.send_elsewhere(slot, vport, port, packet, crossing);
        };
        let len = packet.len;
        match live.port.send(&mut self.pool, packet) {
            Ok(()) => {
                live.unflushed = true;
                self.count_sent(slot, vport, len);
                self.ended(slot, key, Ending::Left);
            }
            Err(packet) => self.send_again(slot, vport, at, packet),
        }
    }

    #[inline(always)]
    pub(super) fn count_sent(&mut self, slot: usize, vport: u16, len: u32) {
        if let Some(count) = self.networks.get_mut(slot).and_then(|network| network.ledger.vport(vport)) {
            count.sent_packets += 1;
            count.sent_bytes += u64::from(len);
        }
    }

    /// The transmit ring is full: flushes it, at most once per round, because the kernel may have sent its frames.
    #[cold]
    #[inline(never)]
    fn send_again(&mut self, slot: usize, vport: u16, at: usize, packet: Packet) {
        let len = packet.len;
        let key = self.followed_key(slot, &packet);
        let Some(live) = self.ports.get_mut(at) else { return self.pool.give(packet.slot) };
        let mut refused = Some(packet);
        if !live.full {
            live.full = true;
            if let Err(error) = live.port.flush(&mut self.pool) {
                self.broken.push((live.id, error));
            } else if let Some(packet) = refused.take() {
                match live.port.send(&mut self.pool, packet) {
                    Ok(()) => {
                        (live.unflushed, live.full) = (true, false);
                        self.count_sent(slot, vport, len);
                        return self.ended(slot, key, Ending::Left);
                    }
                    Err(packet) => refused = Some(packet),
                }
            }
        }
        self.lose(slot, Loss::PortFull, refused);
    }

    #[cold]
    #[inline(never)]
    fn send_elsewhere(&mut self, slot: usize, vport: u16, port: PortId, packet: Packet, crossing: Crossing) {
        let (mut home, mut packet) = (self.steering.port_home(port), packet);
        if port.is_tunnel() {
            match self.tunnel_out(slot, vport, packet) {
                Out::Done => return,
                Out::Elsewhere(other, back) => (home, packet) = (other, back),
                Out::Down(back) => packet = back,
            }
        }
        if home == NO_HOME || usize::from(home) == self.index {
            return self.lose(slot, Loss::PortDown, Some(packet));
        }
        let Some(network) = self.networks.get(slot) else { return self.pool.give(packet.slot) };
        let (vid, generation) = (network.vid, network.generation);
        let (time_ns, len) = (packet.time_ns, packet.len);
        let record = Record { crossing, port, vid, generation, vport, time_ns, len };
        if !self.hand_over(usize::from(home), &record, &packet) {
            return self.lose(slot, Loss::HandoverSendFull, Some(packet));
        }
        if usize::from(home) == self.guest() {
            // A frame that leaves through a guest's port is counted by the guest from here on.
            self.count_sent(slot, vport, len);
        } else if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.handed_packets += 1;
            // Fences do not take this path.
            let key = self.followed_key(slot, &packet);
            self.ended(slot, key, Ending::Left);
        }
        self.pool.give(packet.slot);
    }

    /// Returns the fence at the head of a network's queue to the guest. Returns `false` while there is no room on the
    /// path.
    #[cold]
    pub(super) fn return_fence(&mut self, slot: usize) -> bool {
        let guest = self.guest();
        let Some(network) = self.networks.get_mut(slot) else { return true };
        let Some(Queued { packet, port, vport, .. }) = network.queue.front() else { return true };
        let (vid, generation, time_ns) = (network.vid, network.generation, packet.time_ns);
        let (port, vport) = (*port, *vport);
        let record = Record { crossing: Crossing::Fence, port, vid, generation, vport, time_ns, len: 0 };
        // Without a guest, the fence is dropped.
        if let Some(Some(other)) = self.peers.get_mut(guest) {
            if !other.out.push(&record, &[]) {
                return false;
            }
            self.notify[guest] = true;
        }
        if let Some(queued) = network.queue.pop_front() {
            network.fences -= 1;
            self.pool.give(queued.packet.slot);
        }
        self.stop_telling(slot);
        true
    }

    /// Sends a frame from another worker on a port of this one, and nowhere else.
    pub(super) fn send_here(&mut self, slot: usize, vport: u16, port: PortId, packet: Packet) {
        if self.port_at[port.index()] == super::NO_PORT {
            // A tunnel whose carrier has its home here.
            let packet = match port.is_tunnel() {
                true => match self.tunnel_out(slot, vport, packet) {
                    Out::Done => return,
                    Out::Elsewhere(_, packet) | Out::Down(packet) => packet,
                },
                false => packet,
            };
            return self.lose(slot, Loss::PortDown, Some(packet));
        }
        self.send(slot, vport, port, packet, Crossing::Leaves);
    }

    /// Counts a packet that is lost on its way out.
    #[cold]
    pub(super) fn lose(&mut self, slot: usize, loss: Loss, packet: Option<Packet>) {
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.losses.add(loss, 1);
        }
        if let Some(packet) = packet {
            let key = self.followed_key(slot, &packet);
            self.ended(slot, key, Ending::of_loss(loss));
            self.pool.give(packet.slot);
        }
    }

    /// Hands a packet to the network's control plane, within its limit.
    #[inline(never)]
    fn punt(&mut self, slot: usize, vport: u16, outcome: Reason, packet: Packet) {
        if outcome.class() == Some(Class::Delegated) {
            return self.delegate(slot, vport, outcome, packet);
        }
        let mut packet = packet;
        if outcome.is_own() && self.networks.get(slot).is_some_and(|network| network.carries_tunnels) {
            match self.tunnel_in(slot, packet) {
                Ok(()) => return,
                Err(back) => packet = back,
            }
        }
        let Some(network) = self.networks.get_mut(slot) else { return self.pool.give(packet.slot) };
        // The control plane may have an address for which the plane has no route yet, so every punt is judged. Only of
        // packets that are for the router itself, what may be a message counts as one.
        let guarded = matches!(outcome.class(), Some(Class::GuardArp | Class::GuardNd));
        let passes = match network.guard.judge(vport, packet.bytes(&self.pool)) {
            Judgement::Fine => true,
            Judgement::Unclear => !guarded,
            Judgement::Forged => false,
        };
        if !passes {
            return self.lose(slot, Loss::ArpForged, Some(packet));
        }
        if !network.punt.conforms(outcome.is_own(), self.now_ns, packet.len as usize) {
            return self.lose(slot, Loss::PuntLimited, Some(packet));
        }
        self.give_to_control(slot, vport, outcome, packet);
    }

    /// Hands a packet to the namespace that forwards the network's packets. Linux handles it during the call, with all rules that
    /// the owner has made, so the network pays for the time with its share of this thread.
    fn delegate(&mut self, slot: usize, vport: u16, outcome: Reason, packet: Packet) {
        let begun = self.clock.now_ns();
        self.give_to_control(slot, vport, outcome, packet);
        if let Some(network) = self.networks.get_mut(slot) {
            network.deficit -= cost_of_time(self.clock.now_ns().saturating_sub(begun));
        }
    }

    fn give_to_control(&mut self, slot: usize, vport: u16, outcome: Reason, packet: Packet) {
        let key = self.followed_key(slot, &packet);
        let Some(network) = self.networks.get_mut(slot) else { return self.pool.give(packet.slot) };
        let at = network.taps.get(usize::from(vport)).copied().unwrap_or(NO_TAP);
        let Some(Some(tap)) = self.taps.get_mut(at as usize) else {
            return self.lose(slot, Loss::ControlAbsent, Some(packet));
        };
        let len = packet.len;
        match tap.port.send(&mut self.pool, packet) {
            // A TAP whose device is down accepts a frame and reports the error afterwards.
            Ok(()) if tap.port.flush(&mut self.pool).is_ok() => {
                network.ledger.to_control_packets += 1;
                network.ledger.to_control_bytes += u64::from(len);
                self.ended(slot, key, Ending::Punted(outcome));
            }
            Ok(()) => {
                self.lose(slot, Loss::ControlFull, None);
                self.ended(slot, key, Ending::Lost(Loss::ControlFull));
            }
            Err(packet) => self.lose(slot, Loss::ControlFull, Some(packet)),
        }
    }

    #[cold]
    fn watch_out(&self, slot: usize, vport: u16, port: PortId, fate: Captured, packet: &Packet) {
        let Some(network) = self.networks.get(slot) else { return };
        let bytes = packet.bytes(&self.pool);
        self.watch.see(Some((network.vid, vport)), port, Direction::Out, fate, packet.time_ns, bytes);
    }
}
