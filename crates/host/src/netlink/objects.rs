//! What netlink messages describe, as plain values: links, and addresses, routes and neighbours of IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr};

use hue_tables::AnyPrefix;
use hue_wire::Mac;

/// Origin of a route, address or neighbour (`RTPROT_…`).
pub mod protocol {
    /// Items that hueplane installs from documents: `H`. It changes and removes no others.
    pub const OURS: u8 = 0x48;
    /// Routes that `hueplane pwospf` installs: `P`.
    pub const PWOSPF: u8 = 0x50;
    /// IPv6 routes from router advertisements.
    pub const ROUTER_ADVERTISEMENT: u8 = 9;

    /// Names from iproute2's `rt_protos`, and FRR's additions.
    const NAMES: [(u8, &str); 29] = [
        (0, "unspec"),
        (1, "redirect"),
        (2, "kernel"),
        (3, "boot"),
        (4, "static"),
        (8, "gated"),
        (ROUTER_ADVERTISEMENT, "ra"),
        (10, "mrt"),
        (11, "zebra"),
        (12, "bird"),
        (13, "dnrouted"),
        (14, "xorp"),
        (15, "ntk"),
        (16, "dhcp"),
        (18, "keepalived"),
        (42, "babel"),
        (OURS, "hueplane"),
        (PWOSPF, "pwospf"),
        (186, "bgp"),
        (187, "isis"),
        (188, "ospf"),
        (189, "rip"),
        (191, "nhrp"),
        (192, "eigrp"),
        (193, "ldp"),
        (194, "sharp"),
        (195, "pbr"),
        (196, "static"),
        (197, "openfabric"),
    ];

    /// The name of the protocol, or its number.
    #[must_use]
    pub fn name(protocol: u8) -> String {
        let known = NAMES.iter().find(|(number, _)| *number == protocol);
        known.map_or_else(|| protocol.to_string(), |(_, name)| (*name).to_owned())
    }
}

/// States of a neighbour (`NUD_…`).
pub mod neighbour_state {
    /// Being resolved; no MAC address yet.
    pub const INCOMPLETE: u16 = 0x01;
    /// Answered recently.
    pub const REACHABLE: u16 = 0x02;
    /// Answered some time ago.
    pub const STALE: u16 = 0x04;
    /// Used while stale; will be probed.
    pub const DELAY: u16 = 0x08;
    /// Being probed again.
    pub const PROBE: u16 = 0x10;
    /// Did not answer.
    pub const FAILED: u16 = 0x20;
    /// Needs no resolution.
    pub const NOARP: u16 = 0x40;
    /// Static.
    pub const PERMANENT: u16 = 0x80;
    /// States with a usable MAC address.
    pub const USABLE: u16 = REACHABLE | STALE | DELAY | PROBE | NOARP | PERMANENT;
}

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Index in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Type (`veth`, `tun`, `bridge`, …); `None` for hardware.
    pub kind: Option<String>,
    /// MAC address, if it is an Ethernet interface.
    pub mac: Option<Mac>,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it has carrier: the other end exists and is up.
    pub carrier: bool,
    /// Index of its bridge or bond.
    pub master: Option<u32>,
    /// Alias, a free text.
    pub alias: Option<String>,
    /// Index of the other end of a veth pair.
    pub peer: Option<u32>,
    /// Whether neighbours are not resolved: packets need no MAC address of a neighbour (`IFF_NOARP`).
    pub no_arp: bool,
    /// Whether it is the loopback.
    pub loopback: bool,
    /// Id of the XDP program at the driver's hook.
    pub native_xdp: Option<u32>,
}

/// Whether an address can be used. IPv4 addresses always can.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AddressState {
    /// It can be used.
    #[default]
    Usable,
    /// Duplicate address detection (RFC 4862 §5.4) has not finished: it cannot be used yet.
    Tentative,
    /// Duplicate address detection found another host with it: it is not used.
    Duplicate,
}

/// An address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// Index of the interface.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Prefix length of the link in bits.
    pub len: u8,
    /// Address of the other end of a point-to-point link; otherwise the address itself.
    pub peer: IpAddr,
    /// Broadcast address, if any.
    pub broadcast: Option<Ipv4Addr>,
    /// Origin ([`protocol`]); 0 if unknown.
    pub protocol: u8,
    /// Whether it can be used.
    pub state: AddressState,
}

/// Scope of a route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scope {
    /// Anywhere, through a gateway.
    #[default]
    Universe,
    /// On the link.
    Link,
    /// This host only.
    Host,
    /// Any other scope.
    Other(u8),
}

/// Type of a route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RouteKind {
    /// Forwards packets.
    #[default]
    Unicast,
    /// An address of this host.
    Local,
    /// Broadcast address.
    Broadcast,
    /// An anycast address of this host, such as the subnet-router address (RFC 4291 §2.6.1).
    Anycast,
    /// Multicast.
    Multicast,
    /// Drops packets silently.
    Blackhole,
    /// Drops packets with an ICMP error.
    Unreachable,
    /// Drops packets with an ICMP "prohibited" error.
    Prohibit,
    /// Ends the lookup in this table.
    Throw,
    /// Any other type.
    Other(u8),
}

/// A next hop of a route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NextHop {
    /// Index of the interface; 0 if there is none, or if only the kernel can use the next hop: its gateway belongs to
    /// another address family, or packets are encapsulated.
    pub link: u32,
    /// The gateway, of the route's family; `None` if destinations are on the link.
    pub via: Option<IpAddr>,
    /// Weight in a multipath route, at least 1.
    pub weight: u16,
    /// Whether it is unusable now: its link is down or has no carrier (`RTNH_F_DEAD`, `RTNH_F_LINKDOWN`).
    pub dead: bool,
    /// Whether the gateway is considered on the link, whatever the addresses.
    pub onlink: bool,
}

/// A route.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// Destination.
    pub prefix: AnyPrefix,
    /// Sources to which an IPv6 route is limited; `None` means any. Boxed, because it is rare.
    pub source: Option<Box<AnyPrefix>>,
    /// The next-hop object that has its next hops; 0 if they are its own.
    pub object: u32,
    /// Table: 254 main, 255 local.
    pub table: u32,
    /// Type of service; 0 means any. IPv6 routes have none.
    pub tos: u8,
    /// Priority: the lowest metric wins.
    pub metric: u32,
    /// Origin ([`protocol`]).
    pub protocol: u8,
    /// Scope.
    pub scope: Scope,
    /// Type.
    pub kind: RouteKind,
    /// Next hops, in the kernel's order; empty if the route forwards nothing. Usually one.
    pub hops: Vec<NextHop>,
    /// Whether it is a cache entry or a copy (`RTM_F_CLONED`) instead of a route.
    pub cloned: bool,
}

/// A neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Neighbour {
    /// Index of the interface.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// MAC address, if known.
    pub mac: Option<Mac>,
    /// State, see [`neighbour_state`].
    pub state: u16,
    /// Flags (`NTF_…`).
    pub flags: u8,
    /// Origin ([`protocol`]); 0 if unknown.
    pub protocol: u8,
}

impl Neighbour {
    /// Whether it said that it is a router (`NTF_ROUTER`, only IPv6).
    #[must_use]
    pub const fn is_router(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// The MAC address, if it is known and valid.
    #[must_use]
    pub fn usable(&self) -> Option<Mac> {
        self.mac.filter(|_| self.state & neighbour_state::USABLE != 0)
    }
}

/// The object of a notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Object {
    /// An interface.
    Link(Link),
    /// An address.
    Address(Address),
    /// A route.
    Route(Route),
    /// A neighbour.
    Neighbour(Neighbour),
}

/// A notification about a link, address, route or neighbour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Whether it was removed.
    pub gone: bool,
    /// The object.
    pub object: Object,
}
