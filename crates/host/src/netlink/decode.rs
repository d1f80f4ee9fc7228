//! Decodes netlink messages to plain values: links, IPv4 addresses, routes, neighbours.
//!
//! Fixed headers: `ifinfomsg`, `ifaddrmsg`, `rtmsg`, `ndmsg`, from `linux/if_link.h`, `if_addr.h`,
//! `rtnetlink.h`, `neighbour.h`.

use std::net::Ipv4Addr;

use hue_tables::Prefix4;
use hue_wire::Mac;

/// Origin of a route, address or neighbour (`RTPROT_…`).
pub mod protocol {
    /// Items that hueplane installs from documents: `H`. It changes and removes no others.
    pub const OURS: u8 = 0x48;

    /// Names from iproute2's `rt_protos`, and FRR's additions.
    const NAMES: [(u8, &str); 28] = [
        (0, "unspec"),
        (1, "redirect"),
        (2, "kernel"),
        (3, "boot"),
        (4, "static"),
        (8, "gated"),
        (9, "ra"),
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
    /// Whether it is the loopback.
    pub loopback: bool,
}

/// An IPv4 address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// Index of the interface.
    pub link: u32,
    /// The address.
    pub address: Ipv4Addr,
    /// Prefix length of the link in bits.
    pub len: u8,
    /// Address of the other end of a point-to-point link; otherwise the address itself.
    pub peer: Ipv4Addr,
    /// Broadcast address, if any.
    pub broadcast: Option<Ipv4Addr>,
    /// Origin ([`protocol`]); 0 if unknown.
    pub protocol: u8,
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
    /// Index of the interface; 0 if there is none, or if the gateway belongs to another address family.
    pub link: u32,
    /// The gateway; `None` if destinations are on the link.
    pub via: Option<Ipv4Addr>,
    /// Weight in a multipath route, at least 1.
    pub weight: u16,
    /// Whether it is unusable now: its link is down or has no carrier (`RTNH_F_DEAD`, `RTNH_F_LINKDOWN`).
    pub dead: bool,
    /// Whether the gateway is considered on the link, whatever the addresses.
    pub onlink: bool,
}

/// An IPv4 route.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// Destination.
    pub prefix: Prefix4,
    /// Table: 254 main, 255 local.
    pub table: u32,
    /// Type of service; 0 means any.
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

/// An IPv4 neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Neighbour {
    /// Index of the interface.
    pub link: u32,
    /// IPv4 address.
    pub address: Ipv4Addr,
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
    /// An IPv4 address.
    Address(Address),
    /// An IPv4 route.
    Route(Route),
    /// An IPv4 neighbour.
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

impl Notice {
    /// Decodes the payload of a message of type `kind` (`RTM_…`).
    pub(crate) fn read(kind: u16, payload: &[u8]) -> Option<Self> {
        let (gone, object) = match kind {
            libc::RTM_NEWLINK => (false, Object::Link(link(payload)?)),
            libc::RTM_DELLINK => (true, Object::Link(link(payload)?)),
            libc::RTM_NEWADDR => (false, Object::Address(address(payload)?)),
            libc::RTM_DELADDR => (true, Object::Address(address(payload)?)),
            libc::RTM_NEWROUTE => (false, Object::Route(route(payload)?)),
            libc::RTM_DELROUTE => (true, Object::Route(route(payload)?)),
            libc::RTM_NEWNEIGH => (false, Object::Neighbour(neighbour(payload)?)),
            libc::RTM_DELNEIGH => (true, Object::Neighbour(neighbour(payload)?)),
            _ => return None,
        };
        Some(Self { gone, object })
    }
}

/// Iterates over attributes: type without flags, and value.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        /// Flags in an attribute's type: nested, network byte order.
        const FLAGS: u16 = 0xc000;
        let [l0, l1, k0, k1] = *self.0.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & !FLAGS, value))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn ipv4(bytes: &[u8]) -> Option<Ipv4Addr> {
    <[u8; 4]>::try_from(bytes).ok().map(Ipv4Addr::from)
}

fn mac(bytes: &[u8]) -> Option<Mac> {
    <[u8; 6]>::try_from(bytes).ok().map(Mac)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
}

/// `ifinfomsg`: family u8, pad u8, type u16, index i32, flags u32, change u32.
fn link(payload: &[u8]) -> Option<Link> {
    const CARRIER: u32 = libc::IFF_LOWER_UP as u32;
    const LINK_KIND: u16 = 1;
    // Messages of the bridge family describe bridge ports, not the links themselves.
    if i32::from(*payload.first()?) != libc::AF_UNSPEC {
        return None;
    }
    let flags = u32_at(payload, 8)?;
    let mut link = Link {
        index: u32_at(payload, 4)?,
        up: flags & libc::IFF_UP as u32 != 0,
        carrier: flags & CARRIER != 0,
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        ..Link::default()
    };
    for (kind, value) in Attributes(payload.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_ADDRESS => link.mac = mac(value),
            libc::IFLA_MTU => link.mtu = u32_at(value, 0)?,
            libc::IFLA_MASTER => link.master = u32_at(value, 0).filter(|index| *index != 0),
            libc::IFLA_LINK => link.peer = u32_at(value, 0).filter(|index| *index != 0),
            libc::IFLA_IFALIAS => link.alias = Some(text(value)).filter(|alias| !alias.is_empty()),
            libc::IFLA_LINKINFO => {
                link.kind =
                    Attributes(value).find(|(kind, _)| *kind == LINK_KIND).map(|(_, value)| text(value));
            }
            _ => {}
        }
    }
    Some(link)
}

/// `ifaddrmsg`: family, prefix length, flags, scope u8, index u32.
fn address(payload: &[u8]) -> Option<Address> {
    /// `IFA_PROTO`, since Linux 5.18.
    const PROTOCOL: u16 = 11;
    if i32::from(*payload.first()?) != libc::AF_INET {
        return None;
    }
    let (mut local, mut peer, mut broadcast, mut protocol) = (None, None, None, 0);
    for (kind, value) in Attributes(payload.get(8..)?) {
        match kind {
            libc::IFA_LOCAL => local = ipv4(value),
            libc::IFA_ADDRESS => peer = ipv4(value),
            libc::IFA_BROADCAST => broadcast = ipv4(value),
            PROTOCOL => protocol = *value.first()?,
            _ => {}
        }
    }
    let address = local.or(peer)?;
    Some(Address {
        link: u32_at(payload, 4)?,
        address,
        len: *payload.get(1)?,
        peer: peer.unwrap_or(address),
        broadcast,
        protocol,
    })
}

/// `RTNH_F_DEAD` and `RTNH_F_LINKDOWN`.
const DEAD: u32 = 1 | 16;
/// `RTNH_F_ONLINK`.
const ONLINK: u32 = 4;

/// `rtmsg`: family, destination length, source length, tos, table, protocol, scope, type u8, flags u32.
fn route(payload: &[u8]) -> Option<Route> {
    const CLONED: u32 = 0x200;
    let [family, len, _, tos, table, protocol, scope, kind] = *payload.first_chunk()?;
    let flags = u32_at(payload, 8)?;
    if i32::from(family) != libc::AF_INET || len > 32 {
        return None;
    }
    let mut route = Route {
        prefix: Prefix4::containing(0, len),
        table: table.into(),
        tos,
        metric: 0,
        protocol,
        scope: match scope {
            libc::RT_SCOPE_UNIVERSE => Scope::Universe,
            libc::RT_SCOPE_LINK => Scope::Link,
            libc::RT_SCOPE_HOST => Scope::Host,
            other => Scope::Other(other),
        },
        kind: route_kind(kind),
        hops: Vec::new(),
        cloned: flags & CLONED != 0,
    };
    let (mut link, mut via, mut foreign) = (None, None, false);
    for (kind, value) in Attributes(payload.get(12..)?) {
        match kind {
            libc::RTA_DST => route.prefix = Prefix4::containing(ipv4(value)?.to_bits(), len),
            libc::RTA_OIF => link = u32_at(value, 0),
            libc::RTA_GATEWAY => via = ipv4(value),
            libc::RTA_VIA => foreign = true,
            libc::RTA_PRIORITY => route.metric = u32_at(value, 0)?,
            libc::RTA_TABLE => route.table = u32_at(value, 0)?,
            libc::RTA_MULTIPATH => route.hops = hops(value),
            _ => {}
        }
    }
    if route.hops.is_empty() && (link.is_some() || via.is_some()) {
        let (dead, onlink) = (flags & DEAD != 0, flags & ONLINK != 0);
        let link = link.filter(|_| !foreign).unwrap_or(0);
        route.hops = vec![NextHop { link, via, weight: 1, dead, onlink }];
    }
    Some(route)
}

fn route_kind(kind: u8) -> RouteKind {
    match kind {
        libc::RTN_UNICAST => RouteKind::Unicast,
        libc::RTN_LOCAL => RouteKind::Local,
        libc::RTN_BROADCAST => RouteKind::Broadcast,
        libc::RTN_MULTICAST => RouteKind::Multicast,
        libc::RTN_BLACKHOLE => RouteKind::Blackhole,
        libc::RTN_UNREACHABLE => RouteKind::Unreachable,
        libc::RTN_PROHIBIT => RouteKind::Prohibit,
        libc::RTN_THROW => RouteKind::Throw,
        other => RouteKind::Other(other),
    }
}

/// `rtnexthop`s: length u16, flags u8, hops u8 (weight - 1), interface i32, attributes.
fn hops(mut bytes: &[u8]) -> Vec<NextHop> {
    let mut hops = Vec::new();
    while let (Some(length), Some(link)) = (u16_at(bytes, 0), u32_at(bytes, 4)) {
        let Some(entry) = bytes.get(..usize::from(length)) else { break };
        let ([_, _, flags, weight, ..], Some(attributes)) = (entry, entry.get(8..)) else { break };
        let via = Attributes(attributes)
            .find(|(kind, _)| *kind == libc::RTA_GATEWAY)
            .and_then(|(_, value)| ipv4(value));
        let foreign = Attributes(attributes).any(|(kind, _)| kind == libc::RTA_VIA);
        let link = if foreign { 0 } else { link };
        let flags = u32::from(*flags);
        let (dead, onlink) = (flags & DEAD != 0, flags & ONLINK != 0);
        hops.push(NextHop { link, via, weight: u16::from(*weight) + 1, dead, onlink });
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    hops
}

/// `ndmsg`: family u8, pads, index i32, state u16, flags u8, type u8.
fn neighbour(payload: &[u8]) -> Option<Neighbour> {
    /// `NDA_PROTOCOL`, since Linux 5.2.
    const PROTOCOL: u16 = 12;
    if i32::from(*payload.first()?) != libc::AF_INET {
        return None;
    }
    let (mut destination, mut station, mut protocol) = (None, None, 0);
    for (kind, value) in Attributes(payload.get(12..)?) {
        match kind {
            libc::NDA_DST => destination = ipv4(value),
            libc::NDA_LLADDR => station = mac(value),
            PROTOCOL => protocol = *value.first()?,
            _ => {}
        }
    }
    Some(Neighbour {
        link: u32_at(payload, 4)?,
        address: destination?,
        mac: station,
        state: u16_at(payload, 8)?,
        flags: *payload.get(10)?,
        protocol,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::Request;

    const KINDS: [u16; 8] = [
        libc::RTM_NEWLINK,
        libc::RTM_DELLINK,
        libc::RTM_NEWADDR,
        libc::RTM_DELADDR,
        libc::RTM_NEWROUTE,
        libc::RTM_DELROUTE,
        libc::RTM_NEWNEIGH,
        libc::RTM_DELNEIGH,
    ];

    /// The payload of a request, as its receiver sees it.
    fn payload(request: &Request) -> &[u8] {
        &request.bytes[16..]
    }

    #[test]
    fn routes_round_trip() {
        let hop = |link: u8, weight: u8, via: [u8; 4]| {
            let mut hop = vec![16, 0, 0, weight - 1, link, 0, 0, 0, 8, 0, 5, 0];
            hop.extend(via);
            hop
        };
        let hops = [hop(3, 1, [10, 0, 0, 1]), hop(4, 7, [10, 0, 1, 1])].concat();
        let header = [2, 16, 0, 0, 254, 188, 0, 1, 0, 0, 0, 0];
        let request = Request::new("", libc::RTM_NEWROUTE, 0, &header)
            .bytes(99, b"an attribute of the future")
            .address(libc::RTA_DST, Ipv4Addr::new(10, 9, 0, 0))
            .u32(libc::RTA_PRIORITY, 20)
            .u32(libc::RTA_TABLE, 1000)
            .bytes(libc::RTA_MULTIPATH, &hops);
        let notice = Notice::read(libc::RTM_DELROUTE, payload(&request)).unwrap();
        assert!(notice.gone);
        let Object::Route(route) = notice.object else { panic!("{notice:?}") };
        assert_eq!((route.prefix.to_string().as_str(), route.metric, route.table), ("10.9.0.0/16", 20, 1000));
        assert_eq!(protocol::name(route.protocol), "ospf");
        let hops: Vec<_> =
            route.hops.iter().map(|hop| (hop.link, hop.weight, hop.via.unwrap().to_string())).collect();
        assert_eq!(hops, [(3, 1, "10.0.0.1".to_owned()), (4, 7, "10.0.1.1".to_owned())]);
    }

    #[test]
    fn nested_attributes_have_their_length() {
        let request = Request::new("", libc::RTM_NEWLINK, 0, &[0; 16]).text(libc::IFLA_IFNAME, "a").nested(
            libc::IFLA_LINKINFO,
            |info| {
                info.text(1, "veth").nested(2, |data| data.nested_after(1, &[0; 16], |peer| peer.u8(7, 1)))
            },
        );
        let attributes: Vec<_> = Attributes(&payload(&request)[16..]).collect();
        assert_eq!(attributes.len(), 2);
        assert_eq!(attributes[0], (libc::IFLA_IFNAME, b"a\0".as_slice()));
        let info: Vec<_> = Attributes(attributes[1].1).collect();
        assert_eq!(info[0], (1, b"veth\0".as_slice()));
        let peer = Attributes(info[1].1).next().unwrap().1;
        assert_eq!(Attributes(&peer[16..]).collect::<Vec<_>>(), [(7, [1].as_slice())]);
    }

    #[test]
    fn protocols_have_names() {
        assert_eq!(protocol::name(protocol::OURS), "hueplane");
        assert_eq!(protocol::name(2), "kernel");
        assert_eq!(protocol::name(77), "77");
    }

    proptest! {
        /// Whatever the bytes: no panic, no endless loop, no read beyond an attribute.
        #[test]
        fn any_bytes_are_decoded(kind in 0..KINDS.len(), mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let kind = KINDS[kind];
            Notice::read(kind, &bytes);
            if let Some(family) = bytes.first_mut() {
                *family = if kind < libc::RTM_NEWADDR { 0 } else { 2 };
            }
            Notice::read(kind, &bytes);
            // Attributes with valid lengths and any type.
            for at in (12..bytes.len().saturating_sub(12)).step_by(12) {
                bytes[at..at + 2].copy_from_slice(&12u16.to_ne_bytes());
                bytes[at + 2] %= 64;
                bytes[at + 3] = 0;
            }
            Notice::read(kind, &bytes);
            prop_assert!(Attributes(&bytes).count() <= bytes.len() / 4);
            prop_assert!(hops(&bytes).len() <= bytes.len() / 8);
        }
    }
}
