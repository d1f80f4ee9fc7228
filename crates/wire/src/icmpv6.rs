//! ICMP for IPv6 (RFC 4443): type, code, checksum with pseudo header, four bytes that depend on the type, and
//! data.
//!
//! Neighbour discovery messages are ICMPv6 messages with options: [`crate::ndp`].

use core::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{self, Sum};
use crate::error::{Layer, WireError};
use crate::ip;

/// Length in bytes of the header and of the four bytes that follow it in every message of RFC 4443 and RFC
/// 4861.
pub const HEADER_BYTES: usize = 8;

/// Message type (IANA "ICMPv6 Parameters").
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
pub struct Type(pub u8);

impl Type {
    /// A packet could not be delivered; the code says why (RFC 4443 §3.1).
    pub const DESTINATION_UNREACHABLE: Self = Self(1);
    /// The packet exceeds the next link's MTU (RFC 4443 §3.2).
    pub const PACKET_TOO_BIG: Self = Self(2);
    /// The hop limit or the reassembly timer expired (RFC 4443 §3.3).
    pub const TIME_EXCEEDED: Self = Self(3);
    /// A header field is invalid; the message gives its byte offset (RFC 4443 §3.4).
    pub const PARAMETER_PROBLEM: Self = Self(4);
    /// Echo request (RFC 4443 §4.1).
    pub const ECHO_REQUEST: Self = Self(128);
    /// Echo reply (RFC 4443 §4.2).
    pub const ECHO_REPLY: Self = Self(129);
    /// Asks routers to advertise themselves (RFC 4861 §4.1).
    pub const ROUTER_SOLICITATION: Self = Self(133);
    /// Sent by routers to advertise themselves (RFC 4861 §4.2).
    pub const ROUTER_ADVERTISEMENT: Self = Self(134);
    /// Asks for the link-layer address of the target (RFC 4861 §4.3).
    pub const NEIGHBOR_SOLICITATION: Self = Self(135);
    /// Gives the link-layer address of the target (RFC 4861 §4.4).
    pub const NEIGHBOR_ADVERTISEMENT: Self = Self(136);
    /// Names a better first hop for a destination (RFC 4861 §4.5).
    pub const REDIRECT: Self = Self(137);

    /// Whether messages of this type are neighbour discovery (RFC 4861 §4).
    #[must_use]
    pub const fn is_neighbor_discovery(self) -> bool {
        Self::ROUTER_SOLICITATION.0 <= self.0 && self.0 <= Self::REDIRECT.0
    }

    /// Whether this type reports an error. Such messages never cause another error message (RFC 4443 §2.1,
    /// §2.4 e.1).
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 < 128
    }
}

/// The ICMPv6 header (RFC 4443 §2.1) with the four bytes after it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Message type.
    pub kind: Type,
    /// Message code.
    pub code: u8,
    /// Checksum of pseudo header and message.
    pub checksum: U16,
    /// Depends on the type: identifier and sequence number, MTU, flags, or unused.
    pub rest: [u8; 4],
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// Identifier and sequence number of an echo request or reply.
    #[must_use]
    pub const fn echo(&self) -> Option<(u16, u16)> {
        let [a, b, c, d] = self.rest;
        match self.kind {
            Type::ECHO_REQUEST | Type::ECHO_REPLY => {
                Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            _ => None,
        }
    }

    /// MTU of the next link in bytes, from a "packet too big" message.
    #[must_use]
    pub const fn next_hop_mtu(&self) -> Option<u32> {
        match self.kind {
            Type::PACKET_TOO_BIG => Some(u32::from_be_bytes(self.rest)),
            _ => None,
        }
    }
}

/// An ICMPv6 message: the upper-layer payload of an IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    message: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks that the header is complete.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 8 bytes.
    pub fn parse(message: &'a [u8]) -> Result<Self, WireError> {
        match Header::ref_from_prefix(message) {
            Ok((header, payload)) => Ok(Self { header, message, payload }),
            Err(_) => Err(truncated(message.len())),
        }
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// Everything after the header: echo data, the start of the packet that an error is about, or a neighbour
    /// discovery body.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the checksum is correct for these addresses.
    #[must_use]
    pub fn checksum_ok(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        pseudo(source, destination, self.message.len()).bytes(self.message).folded() == 0xffff
    }
}

/// An ICMPv6 message that can be edited.
#[derive(Debug)]
pub struct ViewMut<'a> {
    header: &'a mut Header,
    payload: &'a mut [u8],
}

impl<'a> ViewMut<'a> {
    /// Checks as [`View::parse`] does.
    ///
    /// # Errors
    /// The same.
    pub fn parse(message: &'a mut [u8]) -> Result<Self, WireError> {
        let have = message.len();
        match Header::mut_from_prefix(message) {
            Ok((header, payload)) => Ok(Self { header, payload }),
            Err(_) => Err(truncated(have)),
        }
    }

    /// The header, mutable. Call [`ViewMut::fill_checksum`] after changing it.
    pub const fn header_mut(&mut self) -> &mut Header {
        self.header
    }

    /// The payload, mutable. Call [`ViewMut::fill_checksum`] after changing it.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// Sets type and code and updates the checksum (RFC 1624), for example to turn a request into its reply.
    pub const fn set_kind(&mut self, kind: Type, code: u8) {
        let old = u16::from_be_bytes([self.header.kind.0, self.header.code]);
        let new = u16::from_be_bytes([kind.0, code]);
        self.header.checksum = U16::new(checksum::updated_u16(self.header.checksum.get(), old, new));
        self.header.kind = kind;
        self.header.code = code;
    }

    /// Computes the checksum in full, for these addresses.
    pub fn fill_checksum(&mut self, source: Ipv6Addr, destination: Ipv6Addr) {
        self.header.checksum = U16::ZERO;
        let sum = pseudo(source, destination, HEADER_BYTES + self.payload.len());
        self.header.checksum = U16::new(sum.bytes(self.header.as_bytes()).bytes(self.payload).checksum());
    }
}

fn pseudo(source: Ipv6Addr, destination: Ipv6Addr, length: usize) -> Sum {
    // A message is an IPv6 payload and so shorter than 2^16 bytes. A longer slice is not a message; its
    // checksum has no meaning.
    Sum::pseudo_v6(source, destination, ip::Protocol::ICMPV6, length as u32)
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Icmpv6, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_becomes_reply() {
        let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        let mut message = [128, 0, 0, 0, 0x12, 0x34, 0, 9, b'h', b'u', b'e'];
        ViewMut::parse(&mut message).expect("11 bytes").fill_checksum(a, b);
        let view = View::parse(&message).expect("11 bytes");
        assert!(view.checksum_ok(a, b) && view.checksum_ok(b, a) && !view.checksum_ok(a, a));
        assert_eq!(view.header().echo(), Some((0x1234, 9)));
        ViewMut::parse(&mut message).expect("11 bytes").set_kind(Type::ECHO_REPLY, 0);
        let view = View::parse(&message).expect("11 bytes");
        assert!(view.checksum_ok(b, a) && view.header().kind == Type::ECHO_REPLY);
        assert_eq!(View::parse(&[1; 7]).expect_err("7 bytes"), truncated(7));
    }

    #[test]
    fn packet_too_big_has_an_mtu() {
        let view = View::parse(&[2, 0, 0, 0, 0, 0, 0x05, 0x00]).expect("8 bytes").header();
        assert_eq!((view.next_hop_mtu(), view.echo()), (Some(1280), None));
        assert!(view.kind.is_error() && !Type::ECHO_REPLY.is_error());
    }
}
