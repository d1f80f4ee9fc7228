//! The first half of a round: frames from ports, namespaces and other workers to the queues of their networks.

use hue_demux::{By, PortId, Selection, Target};
use hue_planes::{Class, FRAME_BYTES_MAX, FRAME_BYTES_MIN, Loss, Reason, Unclaimed};
use hue_ports::{Packet, Pool};
use hue_substrate::follow::Ending;
use hue_substrate::handover::{AllDebts, Crossing, Record};
use hue_tables::Vid;
use hue_wire::ethernet;

use super::super::beside;
use super::super::capture::{Captured, Direction};
use super::super::network::{LiveNetwork, Queued, Waiting};
use super::super::steering::GroupFrame;
use super::{RECEIVE_MAX, Worker};
use crate::engine::{place, slot_of};

/// Frames from namespaces in one round, all TAPs together: each costs a system call.
const TAPS_RECEIVE_MAX: usize = 64;
/// Frames from one TAP in one round.
const TAP_RECEIVE_MAX: usize = 16;
/// If a network has this many frames waiting, further frames stay in its namespace.
const TAP_BACKLOG_MAX: usize = 256;

/// A second packet with the same bytes.
fn duplicate(pool: &mut Pool, packet: &Packet) -> Option<Packet> {
    let slot = pool.take()?;
    let start = pool.start(&slot);
    let (from, len) = (packet.start as usize, packet.len as usize);
    let bytes = pool.bytes_mut();
    if from + len <= bytes.len() && start as usize + len <= bytes.len() {
        bytes.copy_within(from..from + len, start as usize);
    }
    Some(Packet { slot, start, len: packet.len, time_ns: packet.time_ns, class: 0 })
}

impl Worker {
    /// Takes arrived frames. Returns whether there were any.
    pub(super) fn receive(&mut self) -> bool {
        let mut any = false;
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for at in 0..self.ports.len() {
            let Some(live) = self.ports.get_mut(at) else { break };
            if !live.polled && !live.ready {
                continue;
            }
            let (id, limit) = (live.id, live.limit);
            match live.port.receive(&mut self.pool, self.now_ns, &mut arrivals, limit) {
                Ok(count) => live.ready = count == limit,
                Err(error) => self.broken.push((id, error)),
            }
            any |= !arrivals.is_empty();
            match self.steering.beside.front(id) {
                None => arrivals.drain(..).for_each(|packet| self.arrive(at, id, packet)),
                Some(front) => {
                    arrivals.drain(..).for_each(|packet| self.arrive_beside(at, id, front, packet));
                }
            }
        }
        if !self.ready_taps.is_empty() {
            any |= self.receive_control(&mut arrivals);
        }
        self.arrivals = arrivals;
        any | self.receive_crossing()
    }

    /// A frame from a port. In the common case its destination MAC determines its network.
    #[inline(always)]
    fn arrive(&mut self, at: usize, port: PortId, packet: Packet) {
        let bytes = packet.bytes(&self.pool);
        if (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes.len())
            && let Some(target) = self.engine.demux.select_mac(port, bytes)
        {
            self.claim(at, port, target, packet);
        } else {
            self.arrive_rare(at, port, packet);
        }
    }

    /// Takes a frame from a NIC beside the port `front`.
    #[inline(never)]
    fn arrive_beside(&mut self, at: usize, nic: PortId, front: PortId, mut packet: Packet) {
        let bytes = packet.bytes(&self.pool);
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes.len()) {
            return self.arrive_rare(at, nic, packet);
        }
        if ethernet::is_group(bytes) {
            return self.arrive_group(at, front, true, packet, |worker, _, nth| {
                worker.engine.demux.attached(front).get(nth).copied()
            });
        }
        let whole = || {
            let whole = self.steering.beside.whole(nic)?;
            (!self.steering.is_for_another(whole, front, true, bytes)).then_some(whole)
        };
        let Some(target) = self.steering.beside.target(nic, bytes).or_else(whole) else {
            return self.unclaimed(at, nic, Unclaimed::NoNetwork, packet);
        };
        if self.steering.beside.keeps_macs(target.vid) {
            return self.arrive_by_wire(Some(at), nic, target, packet);
        }
        // The frame no longer counts at the NIC, because the plane treats it as a frame of the other port.
        self.consumed(at, &mut packet);
        beside::inwards(packet.bytes_mut(&mut self.pool));
        let slot = place(slot_of(&self.engine.slots, target.vid));
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.nic_packets += 1;
        }
        self.claim(at, front, target, packet);
    }

    #[cold]
    #[inline(never)]
    fn arrive_rare(&mut self, at: usize, port: PortId, packet: Packet) {
        let bytes = packet.bytes(&self.pool);
        if bytes.len() < FRAME_BYTES_MIN {
            return self.unclaimed(at, port, Unclaimed::Runt, packet);
        }
        if bytes.len() > FRAME_BYTES_MAX {
            return self.unclaimed(at, port, Unclaimed::TooLong, packet);
        }
        if !ethernet::is_group(bytes)
            && bytes[12..14] == ethernet::EtherType::ARP.0.to_be_bytes()
            && let Some(first) = self.steering.owner(port, bytes, 0)
        {
            return match self.steering.owner(port, bytes, 1) {
                None => self.claim(at, port, first, packet),
                Some(_) => self.arrive_group(at, port, false, packet, |worker, bytes, nth| {
                    worker.steering.owner(port, bytes, nth)
                }),
            };
        }
        match self.engine.demux.select(port, bytes) {
            Selection::One(target, By::Port) if self.steering.is_for_another(target, port, false, bytes) => {
                self.unclaimed(at, port, Unclaimed::NoNetwork, packet);
            }
            Selection::One(target, By::Mac | By::Inner | By::Port) => self.claim(at, port, target, packet),
            Selection::One(_, By::Group) | Selection::Several(_) => {
                self.arrive_group(at, port, false, packet, |worker, _, nth| {
                    worker.engine.demux.attached(port).get(nth).copied()
                });
            }
            Selection::Nobody => self.unclaimed(at, port, Unclaimed::NoNetwork, packet),
        }
    }

    /// A frame for several virtual ports: makes one copy for each port that it concerns.
    fn arrive_group(
        &mut self,
        at: usize,
        port: PortId,
        by_nic: bool,
        mut packet: Packet,
        nth_target: impl Fn(&Self, &[u8], usize) -> Option<Target>,
    ) {
        self.consumed(at, &mut packet);
        let kind = GroupFrame::of(packet.bytes(&self.pool));
        let mut last: Option<Target> = None;
        for nth in 0.. {
            let Some(target) = nth_target(self, packet.bytes(&self.pool), nth) else { break };
            let slot = place(slot_of(&self.engine.slots, target.vid));
            if slot >= self.networks.len() {
                continue;
            }
            if !self.concerns(slot, port, by_nic, target, kind, &packet) {
                continue;
            }
            if let Some(earlier) = last.replace(target) {
                match duplicate(&mut self.pool, &packet) {
                    Some(copy) => self.claim_checked(at, port, earlier, copy),
                    None => {
                        let slot = place(slot_of(&self.engine.slots, earlier.vid));
                        self.lose_arrival(slot, port, earlier.vport, Loss::QueueFull, &packet);
                    }
                }
            }
        }
        match last {
            Some(target) => self.claim_checked(at, port, target, packet),
            None => {
                // It belongs to no network only if it was counted for none.
                if nth_target(self, packet.bytes(&self.pool), 0).is_none() {
                    return self.unclaimed(at, port, Unclaimed::NoNetwork, packet);
                }
                self.pool.give(packet.slot);
            }
        }
    }

    /// Whether a group frame is for a virtual port; if not, it is counted.
    pub(super) fn concerns(
        &mut self,
        slot: usize,
        port: PortId,
        by_nic: bool,
        target: Target,
        kind: GroupFrame,
        packet: &Packet,
    ) -> bool {
        let bytes = packet.bytes(&self.pool);
        let knows = |network: &LiveNetwork| network.on_two_wires && !network.remote;
        if self.steering.beside.is_other_wire(target.vid, port, by_nic)
            || self.networks.get(slot).is_some_and(knows) && self.is_echo(slot, target, packet)
        {
            self.lose_other_wire(slot, port, by_nic, target.vport, packet);
        } else if self.engine.networks.get(slot).is_some_and(|network| network.is_foreign(bytes)) {
            self.drop_foreign(slot, port, target.vport, packet);
        } else if let Some(loss) = self.steering.foreign(target, kind) {
            self.lose_arrival(slot, port, target.vport, loss, packet);
        } else {
            return true;
        }
        false
    }

    /// A unicast frame of a network that arrived on a port which is no NIC.
    #[inline(always)]
    fn claim(&mut self, at: usize, port: PortId, target: Target, packet: Packet) {
        let slot = place(slot_of(&self.engine.slots, target.vid));
        match self.networks.get(slot) {
            Some(network) if network.direct => self.enqueue(Some(at), slot, port, target.vport, packet),
            Some(network) if network.on_two_wires => self.arrive_by_wire(Some(at), port, target, packet),
            _ => self.claim_checked(at, port, target, packet),
        }
    }

    /// A frame of a network, by a wire from which the network takes it: queued here, or handed to the network's home.
    #[inline]
    pub(super) fn claim_checked(
        &mut self,
        at: usize,
        port: PortId,
        Target { vid, vport }: Target,
        packet: Packet,
    ) {
        let slot = place(slot_of(&self.engine.slots, vid));
        match self.networks.get(slot) {
            Some(network) if !network.remote => self.enqueue(Some(at), slot, port, vport, packet),
            Some(_) => self.hand_arrival_over(at, slot, port, vport, packet),
            None => self.unclaimed(at, port, Unclaimed::NoNetwork, packet),
        }
    }

    /// Counts a frame as received and queues it.
    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        at: Option<usize>,
        slot: usize,
        port: PortId,
        vport: u16,
        packet: Packet,
    ) {
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        let slots_free = self.pool.free();
        let Some(network) = self.networks.get_mut(slot) else { return self.pool.give(packet.slot) };
        if let Some(count) = network.ledger.vport(vport) {
            count.received_packets += 1;
            count.received_bytes += u64::from(packet.len);
        }
        if !network.has_room(slots_free) {
            return self.overflow(at, slot, port, vport, packet);
        }
        network.line_up(Queued { packet, port, what: Waiting::Frame, vport }, slot, &mut self.schedule);
    }

    #[cold]
    #[inline(never)]
    fn overflow(&mut self, at: Option<usize>, slot: usize, port: PortId, vport: u16, mut packet: Packet) {
        if let Some(at) = at {
            self.consumed(at, &mut packet);
        }
        self.lose_queued(slot, port, vport, Loss::QueueFull, Direction::In, packet);
    }

    /// Loses a frame before the plane that was already counted as received.
    fn lose_queued(
        &mut self,
        slot: usize,
        port: PortId,
        vport: u16,
        loss: Loss,
        direction: Direction,
        packet: Packet,
    ) {
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.lose(loss, vport);
            let (vid, bytes) = (network.vid, packet.bytes(&self.pool));
            self.watch.see(Some((vid, vport)), port, direction, Captured::Lost(loss), packet.time_ns, bytes);
        }
        let key = self.followed_key(slot, &packet);
        self.ended(slot, key, Ending::of_loss(loss));
        self.pool.give(packet.slot);
    }

    /// Counts a copy that is lost before it is made as received and lost.
    pub(super) fn lose_arrival(
        &mut self,
        slot: usize,
        port: PortId,
        vport: u16,
        loss: Loss,
        packet: &Packet,
    ) {
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        let Some(network) = self.networks.get_mut(slot) else { return };
        if let Some(count) = network.ledger.vport(vport) {
            count.received_packets += 1;
            count.received_bytes += u64::from(packet.len);
        }
        network.ledger.lose(loss, vport);
        let (vid, bytes) = (network.vid, packet.bytes(&self.pool));
        let fate = Captured::Lost(loss);
        self.watch.see(Some((vid, vport)), port, Direction::In, fate, packet.time_ns, bytes);
        let key = self.followed_key(slot, packet);
        self.ended(slot, key, Ending::of_loss(loss));
    }

    /// Counts a copy that the plane would drop anyway as dropped, without making it and whatever the network's
    /// limits.
    fn drop_foreign(&mut self, slot: usize, port: PortId, vport: u16, packet: &Packet) {
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        let Some((network, plane)) = self.networks.get_mut(slot).zip(self.engine.networks.get_mut(slot))
        else {
            return;
        };
        if let Some(count) = network.ledger.vport(vport) {
            count.received_packets += 1;
            count.received_bytes += u64::from(packet.len);
            count.dropped += 1;
        }
        let Some(foreign) = Reason::of_class(plane.kind(), Class::Foreign) else { return };
        plane.counters.count(foreign);
        let fate = Captured::Outcome(foreign);
        let bytes = packet.bytes(&self.pool);
        self.watch.see(Some((network.vid, vport)), port, Direction::In, fate, packet.time_ns, bytes);
        let key = self.followed_key(slot, packet);
        self.ended(slot, key, Ending::Dropped(foreign));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn hand_arrival_over(
        &mut self,
        at: usize,
        slot: usize,
        port: PortId,
        vport: u16,
        mut packet: Packet,
    ) {
        self.consumed(at, &mut packet);
        let Some(network) = self.networks.get(slot) else { return self.pool.give(packet.slot) };
        let (vid, generation) = (network.vid, network.generation);
        let home = usize::from(self.steering.network_home(vid));
        let record = Record {
            crossing: Crossing::Arrived,
            port,
            vid,
            generation,
            vport,
            time_ns: packet.time_ns,
            len: packet.len,
        };
        if !self.hand_over(home, &record, &packet) {
            Self::touch(&mut self.networks, &mut self.dirty, slot);
            if let Some(network) = self.networks.get_mut(slot) {
                network.ledger.losses.add(Loss::HandoverFull, 1);
            }
            let fate = Captured::Lost(Loss::HandoverFull);
            let bytes = packet.bytes(&self.pool);
            self.watch.see(Some((vid, vport)), port, Direction::In, fate, packet.time_ns, bytes);
            let key = self.followed_key(slot, &packet);
            self.ended(slot, key, Ending::Lost(Loss::HandoverFull));
        }
        self.pool.give(packet.slot);
    }

    /// Copies a frame to another worker; `false` if there is no room, or no such worker.
    pub(super) fn hand_over(&mut self, peer: usize, record: &Record, packet: &Packet) -> bool {
        let Some(Some(other)) = self.peers.get_mut(peer) else { return false };
        let given = other.out.push(record, packet.bytes(&self.pool));
        if given {
            self.totals.handed_over += 1;
            self.notify[peer] = true;
        }
        given
    }

    /// Frames that other workers and the guest handed over.
    fn receive_crossing(&mut self) -> bool {
        let mut any = false;
        for peer in 0..self.peers.len() {
            any |= self.receive_from(peer, RECEIVE_MAX);
        }
        any
    }

    /// Takes at most `most` records that a peer handed over. Returns whether there were any.
    pub fn receive_from(&mut self, peer: usize, most: usize) -> bool {
        let guest = peer == self.guest();
        for taken in 0..most {
            let Some(Some(other)) = self.peers.get_mut(peer) else { return taken > 0 };
            let popped = other.into.pop(&mut self.pool);
            match popped {
                Ok(None) => return taken > 0,
                Ok(Some((record, packet))) => {
                    if guest {
                        self.ask_followed();
                    }
                    self.arrive_crossing(guest, &record, packet);
                }
                Err(record) if record.crossing == Crossing::Debts => {
                    let debts = other.into.take_debts();
                    self.take_debts(&record, debts);
                }
                Err(record) if record.crossing == Crossing::Learnt => self.take_learnt(peer, &record),
                Err(record) => self.lose_crossing(&record),
            }
        }
        most > 0
    }

    /// The place of a network, if its generation is the one in a record.
    pub(super) fn slot_of_generation(&self, vid: Vid, generation: u16) -> Option<usize> {
        let slot = self.slot(vid)?;
        self.networks.get(slot).is_some_and(|network| network.generation == generation).then_some(slot)
    }

    fn arrive_crossing(&mut self, guest: bool, record: &Record, packet: Packet) {
        let Record { crossing, port, vid, vport, .. } = *record;
        // A frame of a removed network belongs to no network, even if another network has the VID now.
        let Some(slot) = self.slot_of_generation(vid, record.generation) else {
            self.count_gone(crossing);
            return self.pool.give(packet.slot);
        };
        match crossing {
            Crossing::Arrived => {
                // A guest copies group frames for all networks on the port.
                let bytes = packet.bytes(&self.pool);
                let group = ethernet::is_group(bytes);
                let two_wires = self.networks.get(slot).is_some_and(|network| network.on_two_wires);
                if two_wires && group && self.is_echo(slot, Target { vid, vport }, &packet) {
                    return self.refuse(None, slot, (port, false), vport, packet);
                }
                if guest && group {
                    let kind = GroupFrame::of(packet.bytes(&self.pool));
                    if !self.concerns(slot, port, false, Target { vid, vport }, kind, &packet) {
                        return self.pool.give(packet.slot);
                    }
                } else if two_wires && !group {
                    return self.arrive_by_wire(None, port, Target { vid, vport }, packet);
                }
                self.enqueue(None, slot, port, vport, packet);
            }
            Crossing::Leaves | Crossing::FromControl => {
                Self::touch(&mut self.networks, &mut self.dirty, slot);
                self.networks[slot].ledger.taken_packets += 1;
                self.send_here(slot, vport, port, packet);
            }
            Crossing::Fence => self.line_up_fence(slot, port, vport, packet),
            Crossing::Ended | Crossing::Debts | Crossing::Learnt => self.pool.give(packet.slot), // no frames
        }
    }

    /// Handles a record of a removed network: an arrived frame then belongs to no network.
    fn count_gone(&mut self, crossing: Crossing) {
        if crossing == Crossing::Arrived {
            self.engine.unclaimed.count(Unclaimed::NoNetwork);
        }
    }

    /// Queues a mark behind the network's frames. If there is no room, the mark is lost and its sender sends another.
    fn line_up_fence(&mut self, slot: usize, port: PortId, vport: u16, packet: Packet) {
        let Some(network) = self.networks.get_mut(slot).filter(|network| network.has_room_for_fence()) else {
            return self.pool.give(packet.slot);
        };
        network.line_up(Queued { packet, port, what: Waiting::Fence, vport }, slot, &mut self.schedule);
        network.fences += 1;
    }

    /// The guest sets the debts of a network's meters, or asks for them. An answer for which there is no room is lost;
    /// the guest asks again.
    #[cold]
    fn take_debts(&mut self, record: &Record, debts: Option<AllDebts>) {
        let Some(slot) = self.slot_of_generation(record.vid, record.generation) else { return };
        let Some(network) = self.engine.networks.get_mut(slot) else { return };
        let Some(AllDebts { rate, storm }) = debts else { return self.answer_debts(slot, record) };
        if let Some((meter, debts)) = network.meter.as_mut().zip(rate) {
            meter.set_debts(debts.within(meter.limit()));
        }
        if let Some((switch, debts)) = network.switch.as_mut().zip(storm) {
            switch.set_debts(debts);
        }
    }

    /// Tells the guest the debts of a network, in an answer to `record`.
    pub(super) fn answer_debts(&mut self, slot: usize, record: &Record) {
        let guest = self.guest();
        let Some(network) = self.engine.networks.get(slot) else { return };
        let rate = network.meter.as_ref().map(|meter| meter.debts());
        let storm = network.switch.as_ref().and_then(|switch| switch.debts());
        let record = Record { crossing: Crossing::Debts, ..*record };
        if let Some(Some(other)) = self.peers.get_mut(guest)
            && other.out.push_debts(&record, &AllDebts { rate, storm })
        {
            self.notify[guest] = true;
        }
    }

    /// There was no slot for the frame.
    fn lose_crossing(&mut self, record: &Record) {
        let Some(slot) = self.slot_of_generation(record.vid, record.generation) else {
            return self.count_gone(record.crossing);
        };
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        let ledger = &mut self.networks[slot].ledger;
        match record.crossing {
            Crossing::Arrived => {
                if let Some(count) = ledger.vport(record.vport) {
                    count.received_packets += 1;
                    count.received_bytes += u64::from(record.len);
                }
                ledger.lose(Loss::QueueFull, record.vport);
            }
            Crossing::Leaves | Crossing::FromControl => {
                ledger.taken_packets += 1;
                ledger.losses.add(Loss::PortFull, 1);
            }
            // The sender of a fence sends another.
            Crossing::Fence | Crossing::Ended | Crossing::Debts | Crossing::Learnt => {}
        }
    }

    /// Frames that namespaces send.
    fn receive_control(&mut self, arrivals: &mut Vec<Packet>) -> bool {
        let mut budget = TAPS_RECEIVE_MAX;
        for _ in 0..self.ready_taps.len() {
            let Some(at) = self.ready_taps.pop_front() else { break };
            let Some(Some(live)) = self.taps.get_mut(at as usize) else { continue };
            let (vid, vport) = (live.vid, live.vport);
            let slot = place(slot_of(&self.engine.slots, vid));
            let waiting = self.networks.get(slot).map_or(0, |network| network.queue.len());
            if budget == 0 || waiting >= TAP_BACKLOG_MAX {
                self.ready_taps.push_back(at);
                continue;
            }
            let limit = budget.min(TAP_RECEIVE_MAX);
            match live.port.receive(&mut self.pool, self.now_ns, arrivals, limit) {
                Ok(count) if count == limit => self.ready_taps.push_back(at),
                Ok(_) => live.ready = false,
                Err(_) => {
                    // The device was removed. Control watches the namespace and provides another one.
                    live.ready = false;
                    if let Some(fd) = live.port.readiness() {
                        self.poller.remove(fd);
                    }
                }
            }
            budget -= arrivals.len().min(budget);
            for packet in arrivals.drain(..) {
                self.arrive_control(slot, vport, packet);
            }
        }
        budget < TAPS_RECEIVE_MAX
    }

    /// A frame that a namespace sends on a virtual port: its source must be the port's own MAC address, unless the namespace
    /// forwards the frames of hosts.
    fn arrive_control(&mut self, slot: usize, vport: u16, packet: Packet) {
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        let slots_free = self.pool.free();
        let Some(network) = self.networks.get_mut(slot) else { return self.pool.give(packet.slot) };
        let Some(own) = network.vports.get(usize::from(vport)) else { return self.pool.give(packet.slot) };
        let port = own.port;
        network.ledger.from_control_packets += 1;
        network.ledger.from_control_bytes += u64::from(packet.len);
        let bytes = packet.bytes(&self.pool);
        let source = bytes.get(6..12).unwrap_or_default();
        let may_send = source == own.mac.0
            || network.speaks_for_hosts && source.first().is_some_and(|first| first & 1 == 0);
        if !may_send {
            return self.lose_queued(slot, port, vport, Loss::ForgedSource, Direction::FromControl, packet);
        }
        if !network.has_room(slots_free) {
            return self.lose_queued(slot, port, vport, Loss::QueueFull, Direction::FromControl, packet);
        }
        let vid = network.vid;
        self.watch.see(
            Some((vid, vport)),
            port,
            Direction::FromControl,
            Captured::Control,
            packet.time_ns,
            bytes,
        );
        network.line_up(Queued { packet, port, what: Waiting::Control, vport }, slot, &mut self.schedule);
    }

    #[cold]
    fn unclaimed(&mut self, at: usize, port: PortId, reason: Unclaimed, mut packet: Packet) {
        self.consumed(at, &mut packet);
        self.engine.unclaimed.count(reason);
        let bytes = packet.bytes(&self.pool);
        self.watch.see(None, port, Direction::In, Captured::Unclaimed(reason), packet.time_ns, bytes);
        self.pool.give(packet.slot);
    }

    /// A packet has left the part between wire and plane: returns its share of the port's ring.
    pub(super) fn consumed(&mut self, at: usize, packet: &mut Packet) {
        let class = std::mem::take(&mut packet.class);
        if class != 0
            && let Some(live) = self.ports.get_mut(at)
        {
            live.port.consumed(class, 1);
        }
    }
}
