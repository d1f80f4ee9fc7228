//! Tunnels: virtual ports without a physical port, whose packets another network of the node carries.
//!
//! Flow: `tunnel` and `over` of a virtual port → **[`Tunnel`]** → control, which compiles it for the carrier. Units: MTU
//! and overhead in bytes of IP packet. Sources: RFC 2003, 4213 and 2473 (IP in IP), RFC 7348 (VXLAN), RFC 6040 (ECN),
//! ADR 0059.

use std::collections::HashMap;
use std::net::IpAddr;

use hue_demux::tunnel::{Dscp, Encapsulation};
use hue_tables::Vid;
use hue_wire::Mac;
use hue_wire::vxlan::{self, Vni};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::address::{self, Family};
use crate::decode::Cursor;
use crate::limits;
use crate::schema;
use crate::types::{Name, NetworkPort, On};

/// A tunnel: packets that leave the virtual port become the payload of packets from `local` to `remote`, which the network
/// `over` routes. Packets from `remote` to `local` enter the virtual port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tunnel {
    /// How packets are encapsulated.
    pub encapsulation: Encapsulation,
    /// The near end, an address of the network that carries the tunnel.
    pub local: IpAddr,
    /// The far end.
    pub remote: IpAddr,
    /// TTL or hop limit of the outer packets.
    pub ttl: u8,
    /// DSCP of the outer packets.
    pub dscp: Dscp,
    /// The network of the same node that carries the tunnel.
    pub over: Name,
}

impl Tunnel {
    /// Whether the tunnel carries IP packets and no frames. Its port is a link between two routers without ARP and neighbor
    /// discovery.
    #[must_use]
    pub const fn is_ip(&self) -> bool {
        matches!(self.encapsulation, Encapsulation::Ipip)
    }

    /// How much longer the outer IP packet is than the inner one, in bytes.
    #[must_use]
    pub fn overhead_bytes(&self) -> u16 {
        // Whoever carries it.
        let bytes = Vid::new(1).map_or(0, |carrier| self.over(carrier).overhead_bytes());
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    /// The tunnel as substrates know it, over the network with this id.
    #[must_use]
    pub const fn over(&self, over: Vid) -> hue_demux::tunnel::Tunnel {
        let Self { encapsulation, local, remote, ttl, dscp, .. } = *self;
        hue_demux::tunnel::Tunnel { over, encapsulation, local, remote, ttl, dscp }
    }

    /// The MAC address of a port whose document has none: locally administered, always the same for the same tunnel, and
    /// another one at its far end.
    #[must_use]
    pub fn default_mac(&self) -> Mac {
        // FNV-1a, 64 bits.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for address in [self.local, self.remote] {
            match address {
                IpAddr::V4(address) => add(&address.octets()),
                IpAddr::V6(address) => add(&address.octets()),
            }
        }
        if let Encapsulation::Vxlan { vni, port } = self.encapsulation {
            add(&vni.get().to_be_bytes());
            add(&port.to_be_bytes());
        }
        let [_, _, first, rest @ ..] = hash.to_be_bytes();
        let [a, b, c, d, e] = rest;
        Mac([first & 0xfc | 0x02, a, b, c, d, e])
    }

    /// The name of its type in documents.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self.encapsulation {
            Encapsulation::Ipip => TunnelType::Ipip.name(),
            Encapsulation::Vxlan { .. } => TunnelType::Vxlan.name(),
        }
    }
}

/// The MTUs of virtual ports, also of those whose MTU follows from the ports of the network that carries their tunnel.
pub struct Mtus<'n> {
    /// MTU of a physical port, in bytes of IP packet.
    physical: HashMap<&'n str, u16>,
    /// Of each network: the smallest MTU of its ports.
    least: HashMap<&'n str, u16>,
}

impl<'n> Mtus<'n> {
    /// Computes them from the MTUs of the physical ports, and the networks with their ports. A network whose ports are
    /// unknown, or whose tunnels form a circle, has none.
    #[must_use]
    pub fn new(
        physical: HashMap<&'n str, u16>,
        networks: impl Iterator<Item = (&'n str, Vec<&'n NetworkPort>)>,
    ) -> Self {
        let mut mtus = Self { physical, least: HashMap::new() };
        let mut rest: Vec<_> = networks.collect();
        // Each round knows the carriers of the round before.
        for _ in 0..=limits::TUNNELS_NESTED_MAX {
            let known = rest.extract_if(.., |(_, ports)| ports.iter().all(|port| mtus.of(port).is_some()));
            let known = known.filter_map(|(name, ports)| {
                // The route to the far end of a tunnel can change: packets fit all ports.
                Some((name, ports.into_iter().filter_map(|port| mtus.of(port)).min()?))
            });
            let known: Vec<_> = known.collect();
            if known.is_empty() {
                break;
            }
            mtus.least.extend(known);
        }
        mtus
    }

    /// Largest IP packet that a port sends, in bytes; `None` if what it is on is unknown.
    #[must_use]
    pub fn of(&self, port: &NetworkPort) -> Option<u16> {
        port.mtu.or_else(|| self.room(port))
    }

    /// Largest IP packet that what the port is on carries, in bytes.
    pub(crate) fn room(&self, port: &NetworkPort) -> Option<u16> {
        match &port.on {
            On::Port(name) => self.physical.get(name.as_str()).copied(),
            On::Tunnel(tunnel) => {
                let under = self.least.get(tunnel.over.as_str())?;
                Some(under.saturating_sub(tunnel.overhead_bytes()))
            }
        }
    }
}

/// The types of tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum TunnelType {
    /// IPv4 and IPv6 packets in IPv4 or IPv6 packets (RFC 2003, 4213, 2473).
    Ipip,
    /// Ethernet frames in UDP datagrams (RFC 7348).
    Vxlan,
}

impl TunnelType {
    const ALL: [Self; 2] = [Self::Ipip, Self::Vxlan];

    const fn name(self) -> &'static str {
        match self {
            Self::Ipip => "ipip",
            Self::Vxlan => "vxlan",
        }
    }
}

/// A tunnel to another node: packets that leave the virtual port become the payload of packets from `local` to `remote`,
/// which the network `over` routes. Packets from `remote` to `local` enter the virtual port.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Tunnel", transform = schema::vxlan_fields)]
pub(crate) struct TunnelText {
    /// How packets are encapsulated.
    #[serde(rename = "type")]
    kind: TunnelType,
    /// The near end: an address of the network `over`.
    #[schemars(schema_with = "schema::address")]
    local: IpAddr,
    /// The far end, of the same family.
    #[schemars(schema_with = "schema::address")]
    remote: IpAddr,
    /// Type `vxlan`: identifier of the virtual network, the same at both ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::vni")]
    vni: Option<u32>,
    /// Type `vxlan`: UDP destination port; by default 4789.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::udp_port")]
    port: Option<u16>,
    /// TTL or hop limit of the outer packets.
    #[serde(skip_serializing_if = "is_default_ttl")]
    #[schemars(default = "ttl_default", schema_with = "schema::ttl")]
    ttl: u8,
    /// DSCP of the outer packets: `inherit`, that of the inner packet, or a number.
    #[serde(skip_serializing_if = "is_inherited", serialize_with = "dscp_text")]
    #[schemars(default, schema_with = "schema::dscp")]
    dscp: Dscp,
}

impl From<&Tunnel> for TunnelText {
    fn from(tunnel: &Tunnel) -> Self {
        let (kind, vni, port) = match tunnel.encapsulation {
            Encapsulation::Ipip => (TunnelType::Ipip, None, None),
            Encapsulation::Vxlan { vni, port } => {
                (TunnelType::Vxlan, Some(vni.get()), (port != vxlan::PORT).then_some(port))
            }
        };
        let Tunnel { local, remote, ttl, dscp, .. } = *tunnel;
        Self { kind, local, remote, vni, port, ttl, dscp }
    }
}

/// The word for the DSCP of the inner packet.
const INHERIT: &str = "inherit";

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn is_inherited(dscp: &Dscp) -> bool {
    *dscp == Dscp::Inherit
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn is_default_ttl(ttl: &u8) -> bool {
    *ttl == limits::TUNNEL_TTL_DEFAULT
}

fn ttl_default() -> u8 {
    limits::TUNNEL_TTL_DEFAULT
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde requires
fn dscp_text<S: Serializer>(dscp: &Dscp, serializer: S) -> Result<S::Ok, S::Error> {
    match dscp {
        Dscp::Inherit => serializer.serialize_str(INHERIT),
        Dscp::Fixed(value) => serializer.serialize_u8(*value),
    }
}

/// Decodes a tunnel that a network carries.
pub(crate) fn tunnel(at: &Cursor<'_>, over: Option<Name>) -> Option<Tunnel> {
    at.mapping(&["type", "local", "remote", "vni", "port", "ttl", "dscp"])?;
    let names = TunnelType::ALL.map(TunnelType::name);
    let kind = at.required("type", "ipip or vxlan").and_then(|at| at.word(&names));
    let end = |name| address::host(&at.required(name, Family::Both.address())?, Family::Both);
    let (local, remote) = (end("local"), end("remote"));
    let number = |name, min, max| match at.field(name) {
        Some(field) => field.number(min, max, "").map(Some),
        None => Some(None),
    };
    let encapsulation = match kind? {
        "ipip" => {
            let mut only = Some(Encapsulation::Ipip);
            for name in ["vni", "port"] {
                if let Some(field) = at.field(name) {
                    field.fault(format!("{name} with type ipip"), "none: only type vxlan has it", None);
                    only = None;
                }
            }
            only
        }
        _ => {
            let expected = format!("a whole number from 0 to {}", Vni::MAX);
            let vni = at.required("vni", &expected).and_then(|at| at.number(0, Vni::MAX.get(), ""));
            let port = number("port", 1, u16::MAX);
            vni.and_then(Vni::new)
                .zip(port)
                .map(|(vni, port)| Encapsulation::Vxlan { vni, port: port.unwrap_or(vxlan::PORT) })
        }
    };
    let ttl = number("ttl", 1, u8::MAX.into());
    let dscp = match at.field("dscp") {
        Some(field) => field.number_or_word(limits::DSCP_MAX.into(), INHERIT),
        None => Some(None),
    };
    let (ttl, dscp) = (u8::try_from(ttl?.unwrap_or(limits::TUNNEL_TTL_DEFAULT.into())).ok()?, dscp?);
    let dscp = match dscp {
        Some(value) => Dscp::Fixed(u8::try_from(value).ok()?),
        None => Dscp::Inherit,
    };
    Some(Tunnel { encapsulation: encapsulation?, local: local?, remote: remote?, ttl, dscp, over: over? })
}
