//! Frames that leave by tunnels, and packets that come by them.
//!
//! Flow out: plane or namespace of the network with the tunnel → `tunnel_out` → queue of the network that carries it.
//! Flow in: plane of that network, which punts the packet → `tunnel_in` → queue of the network with the tunnel. So both
//! networks' limits, weights and counters apply, each to its own packets, and a queue that is full loses only packets
//! of its own network. See ADR 0059.

use hue_demux::tunnel::{Encapsulation, Fault, Outer};
use hue_demux::{PortId, Target};
use hue_planes::Loss;
use hue_ports::Packet;
use hue_substrate::follow::Ending;
use hue_wire::ethernet;

use super::super::steering::GroupFrame;
use super::Worker;
use crate::engine::{place, slot_of};

/// The packets of a tunnel have passed the port at which they arrived: they count at none.
const NO_PLACE: usize = usize::MAX;

impl Worker {
    /// Encapsulates a frame that leaves by a tunnel, and queues it in the network that carries the tunnel. Gives the frame
    /// back if the virtual port is no tunnel.
    #[inline(never)]
    pub(super) fn tunnel_out(&mut self, slot: usize, vport: u16, mut packet: Packet) -> Result<(), Packet> {
        let steering = self.steering.clone();
        let Some(network) = self.networks.get(slot) else { return Err(packet) };
        let Some(way) = steering.tunnels.out(network.vid, vport) else { return Err(packet) };
        let over = place(slot_of(&self.engine.slots, way.tunnel.over));
        let Some(carrier) = self.networks.get(over) else { return Err(packet) };
        let vport_of_carrier = carrier.vports.get(usize::from(way.over_vport)).filter(|_| over != slot);
        let Some((port, mac)) = vport_of_carrier.map(|vport| (vport.port, vport.mac)) else {
            return Err(packet);
        };
        let len = packet.len;
        let Ok(made) = way.tunnel.encapsulate(packet.bytes(&self.pool)) else {
            self.lose(slot, Loss::TunnelNotIp, Some(packet));
            return Ok(());
        };
        let (headers, payload) = (made.headers(), made.payload.clone());
        let begin = packet.start as usize + payload.start;
        let room = begin.saturating_sub(self.pool.floor(&packet.slot) as usize);
        if room < headers.len() {
            self.lose(slot, Loss::TunnelNested, Some(packet));
            return Ok(());
        }
        let key = self.followed_key(slot, &packet);
        let start = begin - headers.len();
        if let Some(place) = self.pool.bytes_mut().get_mut(start..begin) {
            place.copy_from_slice(headers);
            // The namespace takes frames for its own address only: it resolves the neighbour of a punted packet.
            if let Some(destination) = place.first_chunk_mut::<6>() {
                *destination = mac.0;
            }
        }
        packet.start = start as u32; // within the pool, as before
        packet.len = (headers.len() + payload.len()) as u32;
        self.count_sent(slot, vport, len);
        self.ended(slot, key, Ending::Left);
        let target = Target { vid: way.tunnel.over, vport: way.over_vport };
        self.claim(NO_PLACE, port, target, packet);
        Ok(())
    }

    /// Takes a packet for the router itself out of its tunnel. Gives the packet back if it came by no tunnel.
    #[inline(never)]
    pub(super) fn tunnel_in(&mut self, slot: usize, mut packet: Packet) -> Result<(), Packet> {
        let steering = self.steering.clone();
        let Some(network) = self.networks.get(slot) else { return Err(packet) };
        let over = network.vid;
        let tunnels = &steering.tunnels;
        let Some(outer) = Outer::parse(packet.bytes(&self.pool), |kind| tunnels.carries(over, kind)) else {
            return Err(packet);
        };
        let outer = match outer {
            Ok(outer) => outer,
            Err(fault) => {
                self.lose(slot, loss_of(fault), Some(packet));
                return Ok(());
            }
        };
        let Some(first) = tunnels.ways_in(over, &outer).next() else {
            self.lose(slot, Loss::TunnelStranger, Some(packet));
            return Ok(());
        };
        let key = self.followed_key(slot, &packet);
        let inner = match outer.decapsulate(packet.bytes_mut(&mut self.pool), first.mac) {
            Ok(inner) => inner,
            Err(fault) => {
                self.lose(slot, loss_of(fault), Some(packet));
                return Ok(());
            }
        };
        packet.start += inner.start as u32; // within the frame
        packet.len = inner.len() as u32;
        let Some(way) = tunnels.ways_in(over, &outer).find(|way| way.accepts(packet.bytes(&self.pool)))
        else {
            self.lose(slot, Loss::TunnelStranger, None);
            self.ended(slot, key, Ending::Lost(Loss::TunnelStranger));
            self.pool.give(packet.slot);
            return Ok(());
        };
        if let Some(place) = packet.bytes_mut(&mut self.pool).get_mut(..6)
            && outer.encapsulation == Encapsulation::Ipip
        {
            place.copy_from_slice(&way.mac.0);
        }
        if let Some(network) = self.networks.get_mut(slot) {
            network.ledger.to_tunnel_packets += 1;
        }
        self.ended(slot, key, Ending::Left);
        self.arrive_by_tunnel(way.target, packet);
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
        self.claim(NO_PLACE, port, target, packet);
    }
}

const fn loss_of(fault: Fault) -> Loss {
    match fault {
        Fault::Fragment => Loss::TunnelFragment,
        Fault::Header => Loss::TunnelHeader,
        Fault::Ecn => Loss::TunnelEcn,
        Fault::Checksum => Loss::TunnelChecksum,
    }
}
