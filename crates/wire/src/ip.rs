//! Items shared by the IP protocols: protocol numbers (IANA "Assigned Internet Protocol Numbers"), the
//! addresses that a transport checksum covers, and the option format that IPv4 and TCP share.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{self, Sum};
use crate::error::{Layer, WireError};

/// Protocol number: the protocol field of IPv4 (RFC 791 §3.1), the next header field of IPv6 (RFC 8200 §3).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 hop-by-hop options (RFC 8200 §4.3).
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4 (RFC 792).
    pub const ICMP: Self = Self(1);
    /// Internet group management for IPv4 (RFC 3376).
    pub const IGMP: Self = Self(2);
    /// IPv4 in IP (RFC 2003).
    pub const IPV4: Self = Self(4);
    /// TCP (RFC 9293).
    pub const TCP: Self = Self(6);
    /// UDP (RFC 768).
    pub const UDP: Self = Self(17);
    /// IPv6 in IP (RFC 4213, RFC 2473).
    pub const IPV6: Self = Self(41);
    /// IPv6 routing header (RFC 8200 §4.4).
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header (RFC 8200 §4.5).
    pub const FRAGMENT: Self = Self(44);
    /// Generic routing encapsulation (RFC 2784).
    pub const GRE: Self = Self(47);
    /// Encapsulating security payload (RFC 4303).
    pub const ESP: Self = Self(50);
    /// Authentication header (RFC 4302).
    pub const AUTHENTICATION: Self = Self(51);
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: Self = Self(58);
    /// No next header: nothing follows (RFC 8200 §4.7).
    pub const NO_NEXT_HEADER: Self = Self(59);
    /// IPv6 destination options (RFC 8200 §4.6).
    pub const DESTINATION_OPTIONS: Self = Self(60);
    /// OSPF (RFC 2328 §A.1).
    pub const OSPF: Self = Self(89);
    /// PIM (RFC 7761).
    pub const PIM: Self = Self(103);
    /// VRRP (RFC 9568).
    pub const VRRP: Self = Self(112);
    /// SCTP (RFC 9260).
    pub const SCTP: Self = Self(132);
    /// IPv6 mobility header (RFC 6275 §6.1).
    pub const MOBILITY: Self = Self(135);
    /// Host identity protocol (RFC 7401).
    pub const HIP: Self = Self(139);
    /// Shim6 (RFC 5533).
    pub const SHIM6: Self = Self(140);

    /// The name, or `None` if this crate does not know one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::HOP_BY_HOP => "hop-by-hop",
            Self::ICMP => "icmp",
            Self::IGMP => "igmp",
            Self::IPV4 => "ipv4",
            Self::TCP => "tcp",
            Self::UDP => "udp",
            Self::IPV6 => "ipv6",
            Self::ROUTING => "routing",
            Self::FRAGMENT => "fragment",
            Self::GRE => "gre",
            Self::ESP => "esp",
            Self::AUTHENTICATION => "authentication",
            Self::ICMPV6 => "icmpv6",
            Self::NO_NEXT_HEADER => "no-next-header",
            Self::DESTINATION_OPTIONS => "destination-options",
            Self::OSPF => "ospf",
            Self::PIM => "pim",
            Self::VRRP => "vrrp",
            Self::SCTP => "sctp",
            Self::MOBILITY => "mobility",
            Self::HIP => "hip",
            Self::SHIM6 => "shim6",
            _ => return None,
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "protocol {}", self.0),
        }
    }
}

/// Source and destination address, as covered by a transport checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Addresses of an IPv4 packet.
    V4(Ipv4Addr, Ipv4Addr),
    /// Addresses of an IPv6 packet.
    V6(Ipv6Addr, Ipv6Addr),
}

impl Addresses {
    /// Starts the checksum with the pseudo header of `protocol`. `length` is the length of transport header
    /// and data in bytes (an IP payload, below 2^16).
    #[must_use]
    pub fn pseudo(self, protocol: Protocol, length: usize) -> Sum {
        match self {
            Self::V4(source, destination) => Sum::pseudo_v4(source, destination, protocol, length as u16),
            Self::V6(source, destination) => Sum::pseudo_v6(source, destination, protocol, length as u32),
        }
    }
}

/// Updates a checksum after one address of the pseudo header changed. If the two addresses differ in family,
/// the checksum stays unchanged.
#[must_use]
pub(crate) fn with_address(checksum: u16, old: IpAddr, new: IpAddr) -> u16 {
    match (old, new) {
        (IpAddr::V4(old), IpAddr::V4(new)) => checksum::updated_u32(checksum, old.to_bits(), new.to_bits()),
        (IpAddr::V6(old), IpAddr::V6(new)) => checksum::updated_u128(checksum, old.to_bits(), new.to_bits()),
        _ => checksum,
    }
}

/// Kind and data of one option, and the bytes after it.
type Taken<'a> = (u8, &'a [u8], &'a [u8]);

/// Reads the first option (RFC 791 §3.1, RFC 9293 §3.1). Kind 0 ends the list and kind 1 is a single byte;
/// all others have a length that counts kind, length and data.
pub(crate) fn next_option(options: &[u8], layer: Layer) -> Option<Result<Taken<'_>, WireError>> {
    let have = options.len();
    match options {
        [] | [0, ..] => None,
        [1, rest @ ..] => Some(Ok((1, &[], rest))),
        [_] => Some(Err(WireError::Truncated { layer, needed: 2, have })),
        [kind, length, body @ ..] => {
            let found = usize::from(*length);
            let split = found.checked_sub(2).and_then(|data| body.split_at_checked(data));
            Some(match split {
                Some((data, rest)) => Ok((*kind, data, rest)),
                None => Err(WireError::HeaderLength { layer, found, min: 2, max: have }),
            })
        }
    }
}
