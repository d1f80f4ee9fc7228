//! Frames that leave by tunnels, and packets that come by them.
//!
//! Flow out: plane or namespace of the network with the tunnel → `tunnel_out` → queue of the network that carries it.
//! Flow in: plane of that network, which punts the packet → `tunnel_in` → queue of the network with the tunnel. So both
//! networks' limits, weights and counters apply, each to its own packets, and a queue that is full loses only packets
//! of its own network. See ADR 0059.

use hue_demux::{PortId, Target};
use hue_planes::Loss;
use hue_ports::Packet;
use hue_substrate::follow::Ending;
use hue_tables::Vid;
use hue_wire::ethernet;

use super::super::steering::GroupFrame;
use super::Worker;
use crate::engine::{place, slot_of};
use crate::tunnels::FROM_TUNNEL;

/// The packets of a tunnel have passed the port at which they arrived: they count at none.
const NO_PLACE: usize = usize::MAX;

/// What becomes of a frame for a virtual port without a port here.
pub(super) enum Out {
    /// It was sent, or lost and counted.
    Done,
    /// The network that carries its tunnel has its home there.
    Elsewhere(u8, Packet),
    /// Nothing can take it.
    Down(Packet),
}

impl Worker {
    /// Encapsulates a frame that leaves by a tunnel, and queues it in the network that carries the tunnel, if that has its
    /// home here. A network gets at most half of the free places of that queue, so that it takes none of the others'.
    #[inline(never)]
    pub(super) fn tunnel_out(&mut self, slot: usize, vport: u16, mut packet: Packet) -> Out {
        let Some(network) = self.networks.get(slot) else { return Out::Down(packet) };
        let (vid, aboard) = (network.vid, network.aboard);
        let Some(way) = self.steering.tunnels.out(vid, vport).copied() else { return Out::Down(packet) };
        let over = place(slot_of(&self.engine.slots, way.tunnel.over));
        let Some(carrier) = self.networks.get(over) else { return Out::Down(packet) };
        if carrier.remote {
            let home = self.steering.network_home(way.tunnel.over);
            return if usize::from(home) == self.index {
                Out::Down(packet)
            } else {
                Out::Elsewhere(home, packet)
            };
        }
        let vport_of_carrier = carrier.vports.get(usize::from(way.over_vport)).filter(|_| over != slot);
        let Some(mac) = vport_of_carrier.map(|vport| vport.mac) else { return Out::Down(packet) };
        if !carrier.has_room_aboard(aboard, self.pool.free()) {
            self.lose(slot, Loss::PortFull, Some(packet));
            return Out::Done;
        }
        let len = packet.len;
        let key = self.followed_key(slot, &packet);
        let (begin, floor) = (packet.start as usize, self.pool.floor(&packet.slot) as usize);
        let frame = begin..begin + len as usize;
        match way.put_in(self.pool.bytes_mut(), frame, floor, mac) {
            Ok(place) => {
                packet.start = place.start as u32; // within the pool, as before
                packet.len = place.len() as u32;
            }
            Err(loss) => {
                self.lose(slot, loss, Some(packet));
                return Out::Done;
            }
        }
        self.count_sent(slot, vport, len);
        self.ended(slot, key, Ending::Left);
        if let Some(network) = self.networks.get_mut(slot) {
            network.aboard += 1;
        }
        // The times of a network's packets do not decrease.
        packet.time_ns = self.now_ns;
        packet.class = vid.get(); // of the network with the tunnel, see `left_carrier`
        self.enqueue(None, over, FROM_TUNNEL, way.over_vport, packet);
        Out::Done
    }

    /// Packets of a network with a tunnel, which their class names, have left the queue of the network that carries it.
    #[cold]
    #[inline(never)]
    pub(super) fn left_carrier(&mut self, class: u16, count: u32) {
        let slot = Vid::new(class).and_then(|vid| self.slot(vid));
        if let Some(network) = slot.and_then(|slot| self.networks.get_mut(slot)) {
            // Fewer if another network has the VID by now.
            network.aboard = network.aboard.saturating_sub(count);
        }
    }

    /// Takes a packet for the router itself out of its tunnel. Gives the packet back if it came by no tunnel.
    #[inline(never)]
    pub(super) fn tunnel_in(&mut self, slot: usize, mut packet: Packet) -> Result<(), Packet> {
        let Some(network) = self.networks.get(slot) else { return Err(packet) };
        let over = network.vid;
        let key = self.followed_key(slot, &packet);
        let taken = self.steering.tunnels.take_out(over, packet.bytes_mut(&mut self.pool));
        let Some(taken) = taken else { return Err(packet) };
        let (target, inner) = match taken {
            Ok(taken) => taken,
            Err(loss) => {
                // Its bytes may be others by now, so its key is that of before.
                self.lose(slot, loss, None);
                self.ended(slot, key, Ending::of_loss(loss));
                self.pool.give(packet.slot);
                return Ok(());
            }
        };
        packet.start += inner.start as u32; // within the frame
        packet.len = inner.len() as u32;
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.to_tunnel_packets += 1;
        }
        self.ended(slot, key, Ending::Left);
        packet.time_ns = self.now_ns;
        self.arrive_by_tunnel(target, packet);
        Ok(())
    }

    /// A frame that came by a tunnel, for its network.
    fn arrive_by_tunnel(&mut self, target: Target, packet: Packet) {
        let Target { vid, vport } = target;
        let slot = place(slot_of(&self.engine.slots, vid));
        let port = self.networks.get(slot).and_then(|network| network.vports.get(usize::from(vport)));
        let Some(port): Option<PortId> = port.map(|vport| vport.port) else {
            return self.pool.give(packet.slot);
        };
        let bytes = packet.bytes(&self.pool);
        if ethernet::is_group(bytes) {
            let kind = GroupFrame::of(bytes);
            if !self.concerns(slot, port, false, target, kind, &packet) {
                return self.pool.give(packet.slot);
            }
        }
        self.claim_checked(NO_PLACE, port, target, packet);
    }
}
