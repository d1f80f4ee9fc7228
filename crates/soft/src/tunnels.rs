//! The tunnels of loaded networks: which network carries which, whose a packet of a tunnel is, and how packets get in and out.
//!
//! Flow: programs → [`Tunnels`] → the engine, offline, and workers, as a part of steering. A tunnel is looked up by its
//! virtual port on the way out, and by the carrying network, the two addresses, type and VNI on the way in. Where packets
//! wait in between is the caller's affair. See ADR 0059.

use std::net::IpAddr;
use std::ops::Range;

use hue_demux::tunnel::{Encapsulation, Fault, Outer, Tunnel, Type};
use hue_demux::{Match, PortId, Target, own_destination};
use hue_planes::Loss;
use hue_tables::{Prefix4, Vid};
use hue_wire::{Mac, ethernet};

use crate::network::Network;

/// The port of packets in the network that carries their tunnel. It is no physical port.
pub(crate) const FROM_TUNNEL: PortId = PortId::new(u8::MAX);
const _: () = assert!(FROM_TUNNEL.is_tunnel());

/// A way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WayOut {
    target: Target,
    pub tunnel: Tunnel,
    /// The virtual port of the carrying network that has the near address.
    pub over_vport: u16,
}

/// What identifies a tunnel on the way in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    over: Vid,
    remote: IpAddr,
    local: IpAddr,
    encapsulation: Encapsulation,
}

/// The frames of a tunnel that are for a virtual port, in the order in which they are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Accepts {
    /// Those to this MAC address, and group frames.
    Mac(Mac),
    /// Those whose virtual destination address, which is their own one behind the tunnel, is in the prefix; longer prefixes
    /// come first. What their packets carry in turn has no say in it: its sender could choose another network.
    Inner(u8, u32),
    /// All.
    All,
}

/// A virtual port that a tunnel leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct WayIn {
    accepts: Accepts,
    target: Target,
    /// MAC address of the virtual port.
    mac: Mac,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Tunnels {
    /// By target.
    out: Vec<WayOut>,
    /// Sorted.
    into: Vec<(Key, WayIn)>,
    /// The types of tunnel that each network carries, sorted.
    carried: Vec<(Vid, Type)>,
}

/// Type of an encapsulation on the wire.
const fn type_of(encapsulation: Encapsulation) -> Type {
    match encapsulation {
        Encapsulation::Ipip => Type::Ipip,
        Encapsulation::Vxlan { port, .. } => Type::Udp(port),
    }
}

const fn type_key((vid, kind): &(Vid, Type)) -> (u16, u32) {
    match kind {
        Type::Ipip => (vid.get(), 0),
        Type::Udp(port) => (vid.get(), 1 + *port as u32),
    }
}

impl Tunnels {
    /// Those of these networks, whose carriers need not be loaded. `near` finds the virtual port of a network that has an
    /// address.
    pub fn of(networks: &[Network], near: impl Fn(Vid, IpAddr) -> Option<u16>) -> Self {
        let mut tunnels = Self::default();
        for network in networks {
            for (port, vport) in network.shape.ports.iter().zip(0u16..) {
                let Some(tunnel) = port.tunnel else { continue };
                let Tunnel { over, local, remote, encapsulation, .. } = tunnel;
                let target = Target { vid: network.vid, vport };
                let over_vport = near(over, local).unwrap_or(0);
                tunnels.out.push(WayOut { target, tunnel, over_vport });
                tunnels.carried.push((over, type_of(encapsulation)));
                let key = Key { over, remote, local, encapsulation };
                for row in network.shape.rows.iter().filter(|row| row.vport == vport) {
                    let accepts = match row.select {
                        Match::Mac { mac, .. } => Accepts::Mac(mac),
                        Match::Inner { prefix, .. } => Accepts::Inner(32 - prefix.len(), prefix.addr()),
                        Match::Port(_) => Accepts::All,
                    };
                    tunnels.into.push((key, WayIn { accepts, target, mac: port.mac }));
                }
            }
        }
        tunnels.out.sort_unstable_by_key(|way| way.target);
        tunnels.into.sort_unstable();
        tunnels.carried.sort_unstable_by_key(type_key);
        tunnels.carried.dedup();
        tunnels
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The tunnel of a virtual port.
    pub fn out(&self, vid: Vid, vport: u16) -> Option<&WayOut> {
        let target = Target { vid, vport };
        let at = self.out.binary_search_by_key(&target, |way| way.target).ok()?;
        self.out.get(at)
    }

    /// Whether a network carries tunnels.
    pub fn has(&self, over: Vid) -> bool {
        let at = self.carried.partition_point(|(vid, _)| *vid < over);
        self.carried.get(at).is_some_and(|(vid, _)| *vid == over)
    }

    /// Whether a network carries tunnels of a type.
    fn carries(&self, over: Vid, kind: Type) -> bool {
        self.carried.binary_search_by_key(&type_key(&(over, kind)), type_key).is_ok()
    }

    /// The virtual ports to which the tunnel of a packet leads. For packets of strangers there are none.
    fn ways_in(&self, over: Vid, outer: &Outer) -> &[(Key, WayIn)] {
        let Outer { source: remote, destination: local, encapsulation, .. } = *outer;
        let key = Key { over, remote, local, encapsulation };
        let first = self.into.partition_point(|(other, _)| *other < key);
        let rest = self.into.get(first..).unwrap_or_default();
        let count = rest.iter().take_while(|(other, _)| *other == key).count();
        rest.get(..count).unwrap_or_default()
    }

    /// Takes a packet that the plane of `over` accepted as its own out of its tunnel: returns the virtual port at which it
    /// arrives, and where its frame is. `None`, and the packet as it was, if it came by no tunnel.
    pub fn take_out(&self, over: Vid, packet: &mut [u8]) -> Option<Result<(Target, Range<usize>), Loss>> {
        let outer = Outer::parse(packet, |kind| self.carries(over, kind))?;
        Some(outer.map_err(loss_of).and_then(|outer| self.enter(over, &outer, packet)))
    }

    fn enter(&self, over: Vid, outer: &Outer, packet: &mut [u8]) -> Result<(Target, Range<usize>), Loss> {
        let ways = self.ways_in(over, outer);
        let (_, first) = ways.first().ok_or(Loss::TunnelStranger)?;
        let place = outer.decapsulate(packet, first.mac).map_err(loss_of)?;
        let frame = packet.get_mut(place.clone()).unwrap_or_default();
        let way = ways.iter().map(|(_, way)| way).find(|way| way.accepts(frame));
        let way = way.ok_or(Loss::TunnelStranger)?;
        if let Some(mac) = frame.get_mut(..6)
            && outer.encapsulation == Encapsulation::Ipip
        {
            mac.copy_from_slice(&way.mac.0);
        }
        Ok((way.target, place))
    }
}

impl WayOut {
    /// Puts a frame of `buffer` into the tunnel: its outer headers are written in front of it, from `floor` on. `mac` is that
    /// of the carrier's virtual port, because a namespace takes frames for its own address only: it resolves the neighbour of
    /// a punted packet. Returns where the carrier's packet is.
    pub fn put_in(
        &self,
        buffer: &mut [u8],
        frame: Range<usize>,
        floor: usize,
        mac: Mac,
    ) -> Result<Range<usize>, Loss> {
        let made = self.tunnel.encapsulate(buffer.get(frame.clone()).unwrap_or_default());
        let made = made.map_err(|_| Loss::TunnelNotIp)?;
        let headers = made.headers();
        let (begin, end) = (frame.start + made.payload.start, frame.start + made.payload.end);
        let start = begin.checked_sub(headers.len()).filter(|start| *start >= floor);
        let start = start.ok_or(Loss::TunnelNested)?;
        if let Some(place) = buffer.get_mut(start..begin) {
            place.copy_from_slice(headers);
            if let Some(destination) = place.first_chunk_mut::<6>() {
                *destination = mac.0;
            }
        }
        Ok(start..end)
    }
}

const fn loss_of(fault: Fault) -> Loss {
    match fault {
        Fault::Fragment => Loss::TunnelFragment,
        Fault::Header => Loss::TunnelHeader,
        Fault::Options => Loss::TunnelOptions,
        Fault::Ecn => Loss::TunnelEcn,
        Fault::Checksum => Loss::TunnelChecksum,
    }
}

impl WayIn {
    /// Whether a decapsulated frame is for the virtual port.
    fn accepts(&self, frame: &[u8]) -> bool {
        match self.accepts {
            Accepts::All => true,
            Accepts::Mac(mac) => frame.get(..6) == Some(&mac.0) || ethernet::is_group(frame),
            Accepts::Inner(rest, addr) => {
                let prefix = |address| Prefix4::containing(address, 32 - rest);
                own_destination(frame).is_some_and(|address| prefix(address).addr() == addr)
            }
        }
    }
}
