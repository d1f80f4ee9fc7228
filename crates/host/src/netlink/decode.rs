//! Decodes netlink messages to [objects](super::objects).
//!
//! Fixed headers: `ifinfomsg`, `ifaddrmsg`, `rtmsg`, `ndmsg`, from `linux/if_link.h`, `if_addr.h`,
//! `rtnetlink.h`, `neighbour.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_tables::AnyPrefix;
use hue_wire::Mac;

use super::objects::{
    Address, AddressState, Link, Neighbour, NextHop, Notice, Object, Route, RouteKind, Scope,
};

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

/// Address family of a message.
#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

impl Family {
    /// The family of a message about addresses, routes or neighbours; `None` for families that are not decoded.
    fn of(payload: &[u8]) -> Option<Self> {
        match i32::from(*payload.first()?) {
            libc::AF_INET => Some(Self::V4),
            libc::AF_INET6 => Some(Self::V6),
            _ => None,
        }
    }

    /// An address of the family.
    fn address(self, bytes: &[u8]) -> Option<IpAddr> {
        match self {
            Self::V4 => ipv4(bytes).map(IpAddr::V4),
            Self::V6 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| IpAddr::V6(bytes.into())),
        }
    }

    /// The prefix of `len` bits that contains these bytes; `None` if the family has no such prefix.
    fn prefix(self, bytes: &[u8], len: u8) -> Option<AnyPrefix> {
        (len <= self.bits()).then_some(AnyPrefix::containing(self.address(bytes)?, len))
    }

    /// The prefix of a message that names only its length, because it is zero.
    fn any(self, len: u8) -> Option<AnyPrefix> {
        let zero = match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        (len <= self.bits()).then_some(AnyPrefix::containing(zero, len))
    }

    const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
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
    const XDP: u16 = 43;
    // Messages of the bridge family describe bridge ports, not the links themselves.
    if i32::from(*payload.first()?) != libc::AF_UNSPEC {
        return None;
    }
    let flags = u32_at(payload, 8)?;
    let mut link = Link {
        index: u32_at(payload, 4)?,
        up: flags & libc::IFF_UP as u32 != 0,
        carrier: flags & CARRIER != 0,
        no_arp: flags & libc::IFF_NOARP as u32 != 0,
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
            XDP => link.native_xdp = native_xdp(value),
            libc::IFLA_LINKINFO => {
                link.kind =
                    Attributes(value).find(|(kind, _)| *kind == LINK_KIND).map(|(_, value)| text(value));
            }
            _ => {}
        }
    }
    Some(link)
}

/// The id of the program at the driver's hook, among the attributes `IFLA_XDP_…`.
fn native_xdp(attributes: &[u8]) -> Option<u32> {
    const ATTACHED: u16 = 2;
    const AT_DRIVER: u8 = 1;
    const PROGRAM: u16 = 4;
    let find = |wanted| Attributes(attributes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let at_driver = find(ATTACHED)?.first() == Some(&AT_DRIVER);
    u32_at(find(PROGRAM)?, 0).filter(|id| at_driver && *id != 0)
}

/// `ifaddrmsg`: family, prefix length, flags, scope u8, index u32.
fn address(payload: &[u8]) -> Option<Address> {
    /// `IFA_PROTO`, since Linux 5.18.
    const PROTOCOL: u16 = 11;
    let family = Family::of(payload)?;
    let (mut local, mut peer, mut broadcast, mut protocol) = (None, None, None, 0);
    let mut flags = u32::from(*payload.get(2)?);
    for (kind, value) in Attributes(payload.get(8..)?) {
        match kind {
            libc::IFA_LOCAL => local = family.address(value),
            libc::IFA_ADDRESS => peer = family.address(value),
            libc::IFA_BROADCAST => broadcast = ipv4(value),
            libc::IFA_FLAGS => flags = u32_at(value, 0)?,
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
        state: address_state(flags),
    })
}

fn address_state(flags: u32) -> AddressState {
    // An optimistic address is tentative, but the kernel already uses it.
    match flags & (libc::IFA_F_DADFAILED | libc::IFA_F_TENTATIVE | libc::IFA_F_OPTIMISTIC) {
        0 => AddressState::Usable,
        flags if flags & libc::IFA_F_DADFAILED != 0 => AddressState::Duplicate,
        flags if flags & libc::IFA_F_OPTIMISTIC != 0 => AddressState::Usable,
        _ => AddressState::Tentative,
    }
}

/// `RTNH_F_DEAD` and `RTNH_F_LINKDOWN`.
const DEAD: u32 = 1 | 16;
/// `RTNH_F_ONLINK`.
const ONLINK: u32 = 4;

/// `rtmsg`: family, destination length, source length, tos, table, protocol, scope, type u8, flags u32.
fn route(payload: &[u8]) -> Option<Route> {
    const CLONED: u32 = 0x200;
    /// `RTA_NH_ID`, since Linux 5.3.
    const OBJECT: u16 = 30;
    let [_, len, source, tos, table, protocol, scope, kind] = *payload.first_chunk()?;
    let family = Family::of(payload)?;
    let flags = u32_at(payload, 8)?;
    let mut route = Route {
        prefix: family.any(len)?,
        source: None,
        object: 0,
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
    let mut one = Hop::default();
    for (kind, value) in Attributes(payload.get(12..)?) {
        match kind {
            libc::RTA_DST => route.prefix = family.prefix(value, len)?,
            libc::RTA_SRC => route.source = Some(Box::new(family.prefix(value, source)?)),
            libc::RTA_PRIORITY => route.metric = u32_at(value, 0)?,
            libc::RTA_TABLE => route.table = u32_at(value, 0)?,
            libc::RTA_MULTIPATH => route.hops = hops(family, value),
            OBJECT => route.object = u32_at(value, 0)?,
            libc::RTA_OIF => one.link = u32_at(value, 0),
            kind => one.take(family, kind, value),
        }
    }
    if route.hops.is_empty() && (one.link.is_some() || one.via.is_some()) {
        route.hops = vec![one.next_hop(1, flags)];
    }
    Some(route)
}

/// The attributes of a next hop.
#[derive(Default)]
struct Hop {
    link: Option<u32>,
    via: Option<IpAddr>,
    /// Whether only the kernel can use it.
    foreign: bool,
}

impl Hop {
    fn take(&mut self, family: Family, kind: u16, value: &[u8]) {
        match kind {
            libc::RTA_GATEWAY => self.via = family.address(value),
            libc::RTA_VIA | libc::RTA_ENCAP => self.foreign = true,
            _ => {}
        }
    }

    fn next_hop(self, weight: u16, flags: u32) -> NextHop {
        let (dead, onlink) = (flags & DEAD != 0, flags & ONLINK != 0);
        let link = self.link.filter(|_| !self.foreign).unwrap_or(0);
        NextHop { link, via: self.via, weight, dead, onlink }
    }
}

fn route_kind(kind: u8) -> RouteKind {
    match kind {
        libc::RTN_UNICAST => RouteKind::Unicast,
        libc::RTN_LOCAL => RouteKind::Local,
        libc::RTN_BROADCAST => RouteKind::Broadcast,
        libc::RTN_ANYCAST => RouteKind::Anycast,
        libc::RTN_MULTICAST => RouteKind::Multicast,
        libc::RTN_BLACKHOLE => RouteKind::Blackhole,
        libc::RTN_UNREACHABLE => RouteKind::Unreachable,
        libc::RTN_PROHIBIT => RouteKind::Prohibit,
        libc::RTN_THROW => RouteKind::Throw,
        other => RouteKind::Other(other),
    }
}

/// `rtnexthop`s: length u16, flags u8, hops u8 (weight - 1), interface i32, attributes.
fn hops(family: Family, mut bytes: &[u8]) -> Vec<NextHop> {
    let mut hops = Vec::new();
    while let (Some(length), Some(link)) = (u16_at(bytes, 0), u32_at(bytes, 4)) {
        let Some(entry) = bytes.get(..usize::from(length)) else { break };
        let ([_, _, flags, weight, ..], Some(attributes)) = (entry, entry.get(8..)) else { break };
        let mut hop = Hop { link: Some(link), ..Hop::default() };
        for (kind, value) in Attributes(attributes) {
            hop.take(family, kind, value);
        }
        hops.push(hop.next_hop(u16::from(*weight) + 1, u32::from(*flags)));
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    hops
}

/// `ndmsg`: family u8, pads, index i32, state u16, flags u8, type u8.
fn neighbour(payload: &[u8]) -> Option<Neighbour> {
    /// `NDA_PROTOCOL`, since Linux 5.2.
    const PROTOCOL: u16 = 12;
    let family = Family::of(payload)?;
    let (mut destination, mut station, mut protocol) = (None, None, 0);
    for (kind, value) in Attributes(payload.get(12..)?) {
        match kind {
            libc::NDA_DST => destination = family.address(value),
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
    use crate::netlink::{Request, protocol};

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

    /// The fields that only IPv6 routes have, and next hops that only the kernel can use.
    #[test]
    fn ipv6_routes_are_decoded() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let new = |len: u8, source: u8, kind: u8| {
            let header = [10, len, source, 0, 254, 11, 0, kind, 0, 0, 0, 0];
            Request::new("", libc::RTM_NEWROUTE, 0, &header).u32(libc::RTA_OIF, 3)
        };
        let read = |request: &Request| match Notice::read(libc::RTM_NEWROUTE, payload(request))?.object {
            Object::Route(route) => Some(route),
            _ => None,
        };
        let one = new(48, 0, 1)
            .address(libc::RTA_DST, ip("2001:db8:7::"))
            .address(libc::RTA_GATEWAY, ip("fe80::1"))
            .u32(30, 9);
        let route = read(&one).unwrap();
        assert_eq!((route.prefix.to_string().as_str(), route.object), ("2001:db8:7::/48", 9));
        assert_eq!((route.hops[0].link, route.hops[0].via), (3, Some(ip("fe80::1"))));
        assert_eq!(route.source, None);
        let limited = new(0, 32, 1).address(libc::RTA_SRC, ip("2001:db8::"));
        let route = read(&limited).unwrap();
        assert_eq!(route.prefix.to_string(), "::/0");
        assert_eq!(route.source.unwrap().to_string(), "2001:db8::/32");
        // Segment routing: the packet leaves with another header.
        let encapsulated = new(0, 0, 1).bytes(libc::RTA_ENCAP, &[0; 8]);
        assert_eq!(read(&encapsulated).unwrap().hops[0].link, 0);
        assert_eq!(read(&new(64, 0, 4)).unwrap().kind, RouteKind::Anycast);
        assert_eq!(read(&new(129, 0, 1)), None, "longer than an address");
        assert_eq!(read(&new(48, 0, 1).bytes(libc::RTA_DST, &[10, 0, 0, 0])), None, "half an address");
    }

    #[test]
    fn addresses_have_states() {
        let state = |family: u8, flags: u32| {
            let header = [family, 64, flags as u8, 0, 3, 0, 0, 0];
            let address: IpAddr =
                if family == 2 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            let request = Request::new("", libc::RTM_NEWADDR, 0, &header).address(libc::IFA_ADDRESS, address);
            let request = request.u32(libc::IFA_FLAGS, flags);
            let notice = Notice::read(libc::RTM_NEWADDR, payload(&request)).unwrap();
            let Object::Address(found) = notice.object else { panic!("{notice:?}") };
            assert_eq!((found.address, found.peer), (address, address));
            found.state
        };
        assert_eq!(state(2, libc::IFA_F_PERMANENT), AddressState::Usable);
        assert_eq!(state(10, libc::IFA_F_PERMANENT | libc::IFA_F_NODAD), AddressState::Usable);
        assert_eq!(state(10, libc::IFA_F_TENTATIVE), AddressState::Tentative);
        assert_eq!(state(10, libc::IFA_F_TENTATIVE | libc::IFA_F_OPTIMISTIC), AddressState::Usable);
        assert_eq!(state(10, libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED), AddressState::Duplicate);
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
        fn any_bytes_are_decoded(
            kind in 0..KINDS.len(),
            family in prop::sample::select(vec![2u8, 10]),
            mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let kind = KINDS[kind];
            Notice::read(kind, &bytes);
            if let Some(first) = bytes.first_mut() {
                *first = if kind < libc::RTM_NEWADDR { 0 } else { family };
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
            prop_assert!(hops(Family::V6, &bytes).len() <= bytes.len() / 8);
        }
    }
}
