//! Addresses and prefixes of a network's family: reading them, and saying what is wrong with them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use hue_planes::{Keys, Kind};
use hue_tables::{AnyPrefix, Key, PrefixError};
use serde::{Serialize, Serializer};

use crate::decode::Cursor;
use crate::error::quoted;

/// A router's address on a link, with the length of the link's prefix, 1 to 32 or 128.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InterfaceAddress {
    /// The router's own address.
    pub address: IpAddr,
    /// Length of the link's prefix in bits.
    pub len: u8,
}

impl InterfaceAddress {
    /// The prefix of the link.
    #[must_use]
    pub fn link(self) -> AnyPrefix {
        AnyPrefix::containing(self.address, self.len)
    }

    /// Whether other hosts can be on its link.
    #[must_use]
    pub fn has_link(self) -> bool {
        self.len < self.link().bits()
    }

    /// The broadcast address of the link: the last one. `None` for prefixes of 31 and 32 bits (RFC 3021
    /// §2.1), and for IPv6, which has none.
    #[must_use]
    pub fn broadcast(self) -> Option<IpAddr> {
        (self.address.is_ipv4() && self.len <= 30).then(|| self.link().last())
    }

    /// The first address of the link, which no host has: the network address, or the subnet-router anycast address (RFC
    /// 4291 §2.6.1). `None` for prefixes that are one or two bits shorter than an address (RFC 3021 §2.1, RFC 6164 §6).
    #[must_use]
    pub fn network(self) -> Option<IpAddr> {
        (self.len + 2 <= self.link().bits()).then(|| self.link().addr())
    }

    /// The address that all routers of an IPv6 link have besides their own: its first one (RFC 4291 §2.6.1).
    #[must_use]
    pub fn anycast(self) -> Option<IpAddr> {
        self.network().filter(IpAddr::is_ipv6)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl Serialize for InterfaceAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The address family of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
    /// Both.
    Both,
    /// None: the kind does not look at IP.
    None,
    /// Either: the network's kind is not known, because its document is wrong.
    Any,
}

impl Family {
    /// The family of a kind's addresses.
    pub fn of(kind: Kind) -> Self {
        match kind.limits().keys {
            Keys::V4 => Self::V4,
            Keys::V6 => Self::V6,
            Keys::Dual => Self::Both,
            Keys::Mac | Keys::Bits => Self::None,
        }
    }

    /// The family of an address.
    pub const fn of_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    pub const fn address(self) -> &'static str {
        match self {
            Self::V4 | Self::None | Self::Any => "an IPv4 address such as 10.2.0.2",
            Self::V6 => "an IPv6 address such as 2001:db8:2::2",
            Self::Both => "an IPv4 or IPv6 address such as 10.2.0.2 or 2001:db8:2::2",
        }
    }

    pub const fn interface(self) -> &'static str {
        match self {
            Self::V4 | Self::None | Self::Any => "an IPv4 address with prefix length, such as 10.1.0.1/24",
            Self::V6 => "an IPv6 address with prefix length, such as 2001:db8:1::1/64",
            Self::Both => {
                "an IPv4 or IPv6 address with prefix length, such as 10.1.0.1/24 or 2001:db8:1::1/64"
            }
        }
    }

    pub const fn prefix(self) -> &'static str {
        match self {
            Self::V4 | Self::None | Self::Any => "an IPv4 prefix such as 10.9.0.0/16",
            Self::V6 => "an IPv6 prefix such as 2001:db8:9::/48",
            Self::Both => "an IPv4 or IPv6 prefix such as 10.9.0.0/16 or 2001:db8:9::/48",
        }
    }

    fn has(self, address: IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
            Self::Both | Self::None | Self::Any => true,
        }
    }

    fn parse(self, text: &str) -> Option<IpAddr> {
        text.parse().ok().filter(|address| self.has(*address))
    }
}

/// Length of an address, bits.
const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => <u32 as Key>::BITS,
        IpAddr::V6(_) => <u128 as Key>::BITS,
    }
}

/// An address that a host or router can have.
pub(crate) fn host(at: &Cursor<'_>, family: Family) -> Option<IpAddr> {
    let text = at.text(family.address())?;
    if let Some(address) = family.parse(text) {
        return possible(at, address, address.to_string());
    }
    at.fault(at.description(), family.address(), address_hint(text, family));
    None
}

/// Reports an address that no host or router can have in a document (RFC 1122 §3.2.1.3, RFC 6890 §2.2.2 and §2.2.3).
pub(crate) fn possible(at: &Cursor<'_>, address: IpAddr, found: String) -> Option<IpAddr> {
    let hint = match address {
        IpAddr::V4(address) => match address.octets() {
            [0, ..] => "0.0.0.0/8 means \"this network\"",
            [127, ..] => "127.0.0.0/8 is reserved for loopback",
            [224..=239, ..] => "224.0.0.0/4 is reserved for multicast",
            [240..=255, ..] => "240.0.0.0/4 is reserved",
            _ => return Some(address.into()),
        },
        IpAddr::V6(address) => match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0] => ":: means \"no address\"",
            [0, 0, 0, 0, 0, 0, 0, 1] => "::1 is the loopback address",
            [0, 0, 0, 0, 0, 0xffff, ..] => "::ffff:0:0/96 is reserved for IPv4 addresses in programs",
            [0xff00..=0xffff, ..] => "ff00::/8 is reserved for multicast",
            [0xfe80..=0xfebf, ..] => {
                "fe80::/10 is link-local: each port gets such an address from its MAC address by itself"
            }
            _ => return Some(address.into()),
        },
    };
    at.fault(found, "the address of a host or router", Some(hint.to_owned()));
    None
}

/// Why a text is not an address of the family.
fn address_hint(text: &str, family: Family) -> Option<String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) if family == Family::V4 => {
            return Some("this kind of plane has no IPv6".to_owned());
        }
        Ok(IpAddr::V4(_)) if family == Family::V6 => {
            return Some("this kind of plane has no IPv4".to_owned());
        }
        _ => {}
    }
    if let Some((address, _)) = text.split_once('/')
        && family.parse(address).is_some()
    {
        return Some("without a prefix length".to_owned());
    }
    if family == Family::V6 || family == Family::Both && text.contains(':') {
        return None;
    }
    let parts: Vec<&str> = text.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(is_number) {
        return None;
    }
    if parts.len() != 4 {
        return Some(format!("an IPv4 address has 4 numbers, this one has {}", parts.len()));
    }
    let large = parts.iter().find(|part| part.parse::<u8>().is_err());
    Some(match large {
        Some(part) => format!("{part} is not from 0 to 255"),
        None => "its numbers are written without leading zeros".to_owned(),
    })
}

/// Why a text is not an address of the family with a prefix length of at least `least`.
fn prefix_hint(text: &str, least: u8, family: Family) -> Option<String> {
    let Some((address, len)) = text.split_once('/').filter(|(_, len)| !len.is_empty()) else {
        let address = text.strip_suffix('/').unwrap_or(text);
        return match family.parse(address) {
            Some(_) => Some("the prefix length is missing".to_owned()),
            None => address_hint(address, family),
        };
    };
    let Some(address) = family.parse(address) else { return address_hint(address, family) };
    let bits = bits(address);
    Some(format!("a prefix length is a number from {least} to {bits}, not {}", quoted(len)))
}

/// A router's address on a link.
pub(crate) fn interface(at: &Cursor<'_>, family: Family) -> Option<InterfaceAddress> {
    let text = at.text(family.interface())?;
    let parts = text.split_once('/').and_then(|(address, len)| {
        let address = family.parse(address)?;
        let len = len.parse::<u8>().ok().filter(|len| (1..=bits(address)).contains(len))?;
        Some(InterfaceAddress { address, len })
    });
    let Some(own) = parts else {
        at.fault(at.description(), family.interface(), prefix_hint(text, 1, family));
        return None;
    };
    possible(at, own.address, own.to_string())?;
    let what = match Some(own.address) {
        address if address == own.network() => match own.address {
            IpAddr::V4(_) => "the network address of the link",
            IpAddr::V6(_) => "the address of all routers of the link (subnet-router anycast)",
        },
        address if address == own.broadcast() => "the broadcast address of the link",
        _ => return Some(own),
    };
    let second = own.network().map(|first| match first {
        IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + 1)),
        IpAddr::V6(first) => IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() + 1)),
    });
    let hint = second.map(|second| format!("such as {second}/{}", own.len));
    at.fault(format!("{own}, {what}"), format!("the address of a router in {}", own.link()), hint);
    None
}

/// The destination of a route.
pub(crate) fn prefix(at: &Cursor<'_>, family: Family) -> Option<AnyPrefix> {
    let text = at.text(family.prefix())?;
    match AnyPrefix::from_str(text) {
        Ok(prefix) if family.has(prefix.addr()) => return Some(prefix),
        Err(PrefixError::HostBits(_, expected))
            if text.split_once('/').is_some_and(|(address, _)| family.parse(address).is_some()) =>
        {
            at.fault(at.description(), expected, Some("bits beyond the length must be zero".to_owned()));
        }
        _ => at.fault(at.description(), family.prefix(), prefix_hint(text, 0, family)),
    }
    None
}
