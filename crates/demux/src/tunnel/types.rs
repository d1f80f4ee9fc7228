//! A tunnel as a substrate knows it: where its packets go, and what they look like.

use std::fmt;
use std::net::IpAddr;

use hue_tables::Vid;
use hue_wire::vxlan::Vni;
use hue_wire::{Mac, ethernet, ipv4, ipv6, udp, vxlan};
use serde::{Deserialize, Serialize};

/// Most tunnels through one another: a packet is encapsulated at most this many times before it leaves the node. The headers
/// must fit into the room before a received frame.
pub const NESTED_MAX: usize = 3;
/// MAC address of the other end of every IPIP tunnel. Packets lose their Ethernet header in the tunnel, so it is seen only
/// inside the node: it is the source of decapsulated packets, and the next hop of packets that enter the tunnel.
pub const IPIP_PEER: Mac = Mac([0x02, 0, 0, 0, 0, 1]);

/// A tunnel: packets that leave its virtual port become the payload of packets from `local` to `remote`, which the network
/// `over` routes. Packets from `remote` to `local` that `over` receives arrive at its virtual port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Tunnel {
    /// The network of the same node that carries the tunnel's packets. While it is not loaded, they are lost.
    pub over: Vid,
    /// How packets are encapsulated.
    pub encapsulation: Encapsulation,
    /// The near end, an address of `over`.
    pub local: IpAddr,
    /// The far end, of the same family.
    pub remote: IpAddr,
    /// TTL or hop limit of the outer packets when they leave the node; 255 leaves as 254.
    pub ttl: u8,
    /// DSCP of the outer packets.
    pub dscp: Dscp,
}

/// How a tunnel encapsulates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Encapsulation {
    /// IPv4 and IPv6 packets in IP packets (RFC 2003, 4213, 2473).
    Ipip,
    /// Ethernet frames in UDP datagrams (RFC 7348).
    Vxlan {
        /// Identifier of the virtual network, the same at both ends.
        vni: Vni,
        /// UDP destination port, not 0.
        port: u16,
    },
}

/// DSCP of a tunnel's outer packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Dscp {
    /// That of the inner packet; 0 if that is no IP packet.
    #[default]
    Inherit,
    /// Always this one, at most 63.
    Fixed(u8),
}

impl Tunnel {
    /// Bytes of the headers between the outer Ethernet header and the packet, or frame, in the tunnel.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        let outer = if self.local.is_ipv4() { ipv4::HEADER_BYTES } else { ipv6::HEADER_BYTES };
        match self.encapsulation {
            Encapsulation::Ipip => outer,
            Encapsulation::Vxlan { .. } => outer + udp::HEADER_BYTES + vxlan::HEADER_BYTES,
        }
    }

    /// How much longer the outer IP packet is than the inner one, bytes.
    #[must_use]
    pub const fn overhead_bytes(&self) -> usize {
        match self.encapsulation {
            Encapsulation::Ipip => self.header_bytes(),
            Encapsulation::Vxlan { .. } => self.header_bytes() + ethernet::HEADER_BYTES,
        }
    }

    /// Checks that the tunnel makes sense by itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.local.is_ipv4() != self.remote.is_ipv4() {
            return Err("its ends have addresses of different families");
        }
        if self.local == self.remote {
            return Err("both ends have the same address");
        }
        for address in [self.local, self.remote] {
            let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast {
                return Err("an end is not a unicast address");
            }
        }
        if self.ttl == 0 {
            return Err("TTL 0: expected at least 1");
        }
        if matches!(self.dscp, Dscp::Fixed(64..)) {
            return Err("the DSCP exceeds 63");
        }
        match self.encapsulation {
            Encapsulation::Vxlan { port: 0, .. } => Err("UDP port 0"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { encapsulation, local, remote, .. } = self;
        match encapsulation {
            Encapsulation::Ipip => write!(f, "ipip {local} to {remote}"),
            Encapsulation::Vxlan { vni, port: vxlan::PORT } => {
                write!(f, "vxlan {local} to {remote} vni {vni}")
            }
            Encapsulation::Vxlan { vni, port } => {
                write!(f, "vxlan {local} to {remote} vni {vni} port {port}")
            }
        }
    }
}
