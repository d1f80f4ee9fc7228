//! The tunnels of a running system: which network carries which, and whose a packet of a tunnel is.
//!
//! Flow: control → [`Tunnels`], a part of steering → workers. Workers look up a tunnel by its virtual port on the way out,
//! and by the carrying network, the two addresses, type and VNI on the way in. See ADR 0059.

use std::net::IpAddr;

use hue_demux::tunnel::{Encapsulation, Outer, Tunnel, Type};
use hue_demux::{Match, Row, Target, inner_destination};
use hue_tables::{Prefix4, Vid};
use hue_wire::{Mac, ethernet};

/// A virtual port that is the end of a tunnel, as its program has it.
pub(crate) struct End<'r> {
    pub target: Target,
    pub tunnel: Tunnel,
    /// MAC address of the virtual port.
    pub mac: Mac,
    /// The rows of its network.
    pub rows: &'r [Row],
    /// The virtual port of the carrying network that has the near address.
    pub over_vport: u16,
}

/// A way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WayOut {
    target: Target,
    pub tunnel: Tunnel,
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
    /// Those whose virtual destination address is in the prefix; longer prefixes come first.
    Inner(u8, u32),
    /// All.
    All,
}

/// A virtual port that a tunnel leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WayIn {
    accepts: Accepts,
    pub target: Target,
    /// MAC address of the virtual port.
    pub mac: Mac,
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
    /// Of these ends. Their carriers need not be loaded.
    pub fn new<'r>(ends: impl Iterator<Item = End<'r>>) -> Self {
        let mut tunnels = Self::default();
        for End { target, tunnel, mac, rows, over_vport } in ends {
            let over = tunnel.over;
            tunnels.out.push(WayOut { target, tunnel, over_vport });
            tunnels.carried.push((over, type_of(tunnel.encapsulation)));
            let Tunnel { local, remote, encapsulation, .. } = tunnel;
            let key = Key { over, remote, local, encapsulation };
            for row in rows.iter().filter(|row| row.vport == target.vport) {
                let accepts = match row.select {
                    Match::Mac { mac, .. } => Accepts::Mac(mac),
                    Match::Inner { prefix, .. } => Accepts::Inner(32 - prefix.len(), prefix.addr()),
                    Match::Port(_) => Accepts::All,
                };
                tunnels.into.push((key, WayIn { accepts, target, mac }));
            }
        }
        tunnels.out.sort_unstable_by_key(|way| way.target);
        tunnels.into.sort_unstable();
        tunnels.carried.sort_unstable_by_key(type_key);
        tunnels.carried.dedup();
        tunnels
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
    pub fn carries(&self, over: Vid, kind: Type) -> bool {
        self.carried.binary_search_by_key(&type_key(&(over, kind)), type_key).is_ok()
    }

    /// The virtual ports to which the tunnel of a packet leads. For packets of strangers there are none.
    pub fn ways_in(&self, over: Vid, outer: &Outer) -> impl Iterator<Item = &WayIn> {
        let Outer { source: remote, destination: local, encapsulation, .. } = *outer;
        let key = Key { over, remote, local, encapsulation };
        let first = self.into.partition_point(|(other, _)| *other < key);
        let rest = self.into.get(first..).unwrap_or_default();
        rest.iter().take_while(move |(other, _)| *other == key).map(|(_, way)| way)
    }
}

impl WayIn {
    /// Whether a decapsulated frame is for the virtual port.
    pub fn accepts(&self, frame: &[u8]) -> bool {
        match self.accepts {
            Accepts::All => true,
            Accepts::Mac(mac) => frame.get(..6) == Some(&mac.0) || ethernet::is_group(frame),
            Accepts::Inner(rest, addr) => {
                let prefix = |address| Prefix4::containing(address, 32 - rest);
                inner_destination(frame).is_some_and(|address| prefix(address).addr() == addr)
            }
        }
    }
}
