//! Networks that keep their MAC addresses and have NICs beside their ports: what they accept from which wire, and telling the outside
//! switches that addresses have moved to the other one.
//!
//! An outside switch knows an address by the port at which a frame from it arrived last. So a frame in the name of each of a network's
//! own addresses, on the new wire of its port, makes the outside switches send there; for a switch, one in the name of each host,
//! on the new wire of all ports but the host's own. See ADR 0066.

use hue_demux::{PortId, Target};
use hue_planes::Loss;
use hue_ports::Packet;
use hue_tables::Vid;
use hue_wire::{Mac, ethernet};

use super::super::announce;
use super::super::network::LiveNetwork;
use super::Worker;
use crate::engine::{place, slot_of};

/// Addresses of a network that are announced in one round of the loop.
const MACS_MAX: usize = 8;
/// Frames of a network's queue above which its announcements wait.
const QUEUE_MAX: usize = 256;

impl Worker {
    /// A unicast frame for a network that keeps its MAC addresses, from the port on which it arrived, or from another worker.
    #[cold]
    #[inline(never)]
    pub(super) fn arrive_by_wire(&mut self, at: Option<usize>, wire: PortId, target: Target, packet: Packet) {
        let slot = place(slot_of(&self.engine.slots, target.vid));
        let front = self.steering.beside.front(wire);
        let (port, by_nic) = (front.unwrap_or(wire), front.is_some());
        let is_remote = self.networks.get(slot).is_some_and(|network| network.remote);
        let turns = self.steering.beside.turns(target.vid);
        let refused = match self.steering.beside.is_other_wire(target.vid, port, by_nic) {
            true if !turns => true,
            // Only the home of a switch knows its hosts.
            _ if is_remote => false,
            true => !self.accepts_late(slot, target.vport, &packet),
            false => self.is_echo(slot, target, &packet),
        };
        if refused {
            return self.refuse(at, slot, (port, by_nic), target.vport, packet);
        }
        let Some(at) = at else { return self.enqueue_from(slot, port, by_nic, target.vport, None, packet) };
        if is_remote {
            return self.hand_arrival_over(at, slot, wire, target.vport, packet);
        }
        self.enqueue_from(slot, port, by_nic, target.vport, Some(at), packet);
    }

    /// Loses a frame of the other wire.
    pub(super) fn refuse(
        &mut self,
        at: Option<usize>,
        slot: usize,
        (port, by_nic): (PortId, bool),
        vport: u16,
        mut packet: Packet,
    ) {
        if let Some(at) = at {
            self.consumed(at, &mut packet);
        }
        self.lose_other_wire(slot, port, by_nic, vport, &packet);
        self.pool.give(packet.slot);
    }

    /// Counts a frame of the other wire as received and lost. What the NIC received is nothing that the guest has seen arrive:
    /// it must not take it for the copy that the card received.
    pub(super) fn lose_other_wire(
        &mut self,
        slot: usize,
        port: PortId,
        by_nic: bool,
        vport: u16,
        packet: &Packet,
    ) {
        let followed = self.followed.take_if(|_| by_nic);
        self.lose_arrival(slot, port, vport, Loss::OtherWire, packet);
        self.followed = self.followed.or(followed);
    }

    fn enqueue_from(
        &mut self,
        slot: usize,
        port: PortId,
        by_nic: bool,
        vport: u16,
        at: Option<usize>,
        mut packet: Packet,
    ) {
        if by_nic {
            if let Some(at) = at {
                // It no longer counts at the NIC, because it is treated as a frame of the other port.
                self.consumed(at, &mut packet);
            }
            Self::touch(&mut self.networks, &mut self.dirty, slot);
            if let Some(network) = self.networks.get_mut(slot) {
                network.ledger.nic_packets += 1;
            }
        }
        self.enqueue(at, slot, port, vport, packet);
    }

    /// Whether a network accepts a unicast frame that arrived on its old wire; counts those that it does.
    fn accepts_late(&mut self, slot: usize, vport: u16, packet: &Packet) -> bool {
        let accepts = match self.is_switch(slot) {
            true => self.is_between_hosts(slot, vport, packet),
            false => !self.is_from_itself(slot, packet),
        };
        if let Some(network) = self.networks.get_mut(slot).filter(|_| accepts) {
            network.late_frames += 1;
        }
        accepts
    }

    /// Whether a frame is from a host that the switch knows behind this virtual port, to one that it knows behind another. A
    /// frame that the switch itself has sent, and that returns by its other wire, is not.
    fn is_between_hosts(&self, slot: usize, vport: u16, packet: &Packet) -> bool {
        let [source, destination] = self.hosts_of(slot, packet);
        source == Some(vport) && destination.is_some_and(|destination| destination != vport)
    }

    /// Whether a frame in a turn is taken for one that the network itself has sent by the wire that it used before, and that outside
    /// switches have flooded to the other one. For a switch: one from a host that it knows behind another virtual port. If the host
    /// has moved, its frames after the turn say so.
    pub(super) fn is_echo(&self, slot: usize, Target { vid, vport }: Target, packet: &Packet) -> bool {
        if !self.steering.beside.turns(vid) {
            return false;
        }
        match self.is_switch(slot) {
            true => self.hosts_of(slot, packet)[0].is_some_and(|source| source != vport),
            false => self.is_from_itself(slot, packet),
        }
    }

    fn is_switch(&self, slot: usize) -> bool {
        self.engine.networks.get(slot).is_some_and(|network| network.switch.is_some())
    }

    /// Whether a frame's source is an address of the network itself.
    fn is_from_itself(&self, slot: usize, packet: &Packet) -> bool {
        let source = ethernet::Header::over(packet.bytes(&self.pool)).map(|(header, _)| header.source());
        let vports = self.networks.get(slot).map(|network| &*network.vports).unwrap_or_default();
        vports.iter().any(|vport| Some(vport.mac) == source)
    }

    /// The virtual ports behind which the switch knows a frame's source and destination.
    fn hosts_of(&self, slot: usize, packet: &Packet) -> [Option<u16>; 2] {
        let switch = self.engine.networks.get(slot).and_then(|network| network.switch.as_deref());
        let header = ethernet::Header::over(packet.bytes(&self.pool));
        let Some((switch, (header, _))) = switch.zip(header) else { return [None; 2] };
        let host = |mac: Mac| switch.addresses.macs.get(mac.to_u64(), self.now_ns).map(|found| found.hop);
        [header.source(), header.destination()].map(host)
    }

    /// Begins to tell the outside switches which wire a network's MAC addresses are behind: its own, or those of a switch's hosts. Returns
    /// their number.
    pub fn announce_macs(&mut self, vid: Vid) -> usize {
        let Some(slot) = self.slot(vid) else { return 0 };
        let hosts = self.is_switch(slot).then(|| self.macs(vid));
        let Some(network) = self.networks.get_mut(slot) else { return 0 };
        network.moved_macs = match hosts {
            Some(hosts) => hosts.iter().map(|row| (row.mac, row.vport)).collect(),
            None => {
                let beside = &self.steering.beside;
                let own = network.vports.iter().zip(0..).filter(|(own, _)| beside.nic(own.port).is_some());
                own.map(|(own, at)| (own.mac, at)).collect()
            }
        };
        self.announces = true;
        network.moved_macs.len()
    }

    /// Whether there are addresses of a network that are still to be announced.
    pub fn is_announcing(&self, vid: Vid) -> bool {
        let network = self.slot(vid).and_then(|slot| self.networks.get(slot));
        network.is_some_and(|network| !network.moved_macs.is_empty())
    }

    /// Frames that a network has accepted on its old wire, in all turns so far.
    pub fn late_frames(&self, vid: Vid) -> u64 {
        let network = self.slot(vid).and_then(|slot| self.networks.get(slot));
        network.map_or(0, |network| network.late_frames)
    }

    /// Announces some addresses of each network that has room in its queue. Returns whether it announced any.
    #[cold]
    #[inline(never)]
    pub(super) fn announce_some(&mut self) -> bool {
        let mut any = false;
        for slot in 0..self.networks.len() {
            for _ in 0..MACS_MAX {
                let free = self.pool.free();
                let has_room =
                    |network: &LiveNetwork| network.has_room(free) && network.queue.len() < QUEUE_MAX;
                let network = self.networks.get_mut(slot).filter(|network| has_room(network));
                let Some((mac, at)) = network.and_then(|network| network.moved_macs.pop()) else { break };
                any = true;
                self.announce_mac(slot, mac, at);
            }
        }
        self.announces = self.networks.iter().any(|network| !network.moved_macs.is_empty());
        any
    }

    /// Queues the announcement of an address, which is behind a virtual port: of a network itself at this port, of a host at all others;
    /// only at ports with two wires.
    fn announce_mac(&mut self, slot: usize, mac: Mac, at: u16) {
        let (frame, is_host) = (announce::of_mac(mac), self.is_switch(slot));
        Self::touch(&mut self.networks, &mut self.dirty, slot);
        for vport in 0.. {
            let network = self.networks.get(slot);
            let Some(own) = network.and_then(|network| network.vports.get(usize::from(vport))) else {
                return;
            };
            let port = own.port;
            let has_two_wires = self.steering.beside.nic(port).is_some();
            if (vport != at) == is_host && has_two_wires && !self.queue_own(slot, vport, port, &frame) {
                return;
            }
        }
    }
}
