//! ICMP for IPv6 (RFC 4443): type, code, checksum over the pseudo header too, four bytes by type, and a body.
//!
//! Neighbour discovery's messages are ICMPv6 messages with options: [`crate::ndp`].

use core::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{self, Sum};
use crate::error::{Layer, WireError};
use crate::ip;

/// Bytes of the header with the four bytes that every message of RFC 4443 and RFC 4861 has after it.
pub const HEADER_BYTES: usize = 8;

/// What a message says (IANA "ICMPv6 Parameters").
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
    /// A packet did not arrive; the code says why (RFC 4443 §3.1).
    pub const DESTINATION_UNREACHABLE: Self = Self(1);
    /// Larger than the next link takes (RFC 4443 §3.2).
    pub const PACKET_TOO_BIG: Self = Self(2);
    /// The hop limit or the reassembly time ran out (RFC 4443 §3.3).
    pub const TIME_EXCEEDED: Self = Self(3);
    /// A header is wrong at a given byte (RFC 4443 §3.4).
    pub const PARAMETER_PROBLEM: Self = Self(4);
    /// Answer me (RFC 4443 §4.1).
    pub const ECHO_REQUEST: Self = Self(128);
    /// Answer to an echo request (RFC 4443 §4.2).
    pub const ECHO_REPLY: Self = Self(129);
    /// Are there routers? (RFC 4861 §4.1)
    pub const ROUTER_SOLICITATION: Self = Self(133);
    /// I am a router (RFC 4861 §4.2).
    pub const ROUTER_ADVERTISEMENT: Self = Self(134);
    /// Who has the target address? (RFC 4861 §4.3)
    pub const NEIGHBOR_SOLICITATION: Self = Self(135);
    /// I have the target address (RFC 4861 §4.4).
    pub const NEIGHBOR_ADVERTISEMENT: Self = Self(136);

    /// It reports an error, and so is never answered by another (RFC 4443 §2.1, §2.4 e.1).
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 < 128
    }
}

/// The header (RFC 4443 §2.1) with the four bytes after it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// What it says.
    pub kind: Type,
    /// Detail of the type.
    pub code: u8,
    /// Checksum of pseudo header and message.
    pub checksum: U16,
    /// By type: identifier and sequence number, an MTU, flags, unused.
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

    /// The next link's MTU in bytes, in "packet too big".
    #[must_use]
    pub const fn next_hop_mtu(&self) -> Option<u32> {
        match self.kind {
            Type::PACKET_TOO_BIG => Some(u32::from_be_bytes(self.rest)),
            _ => None,
        }
    }
}

/// A message: the upper payload of an IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    message: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks that the header is whole.
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

    /// What follows: echo data, the start of the packet an error is about, a neighbour discovery body.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the checksum is right between these addresses.
    #[must_use]
    pub fn checksum_ok(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        pseudo(source, destination, self.message.len()).bytes(self.message).folded() == 0xffff
    }
}

/// A message to edit.
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

    /// The header, to edit; [`ViewMut::fill_checksum`] afterwards.
    pub const fn header_mut(&mut self) -> &mut Header {
        self.header
    }

    /// The payload, to edit; [`ViewMut::fill_checksum`] afterwards.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// Sets type and code, and updates the checksum (RFC 1624): a request becomes its reply.
    pub const fn set_kind(&mut self, kind: Type, code: u8) {
        let old = u16::from_be_bytes([self.header.kind.0, self.header.code]);
        let new = u16::from_be_bytes([kind.0, code]);
        self.header.checksum = U16::new(checksum::updated_u16(self.header.checksum.get(), old, new));
        self.header.kind = kind;
        self.header.code = code;
    }

    /// Computes the checksum in full, between these addresses.
    pub fn fill_checksum(&mut self, source: Ipv6Addr, destination: Ipv6Addr) {
        self.header.checksum = U16::ZERO;
        let sum = pseudo(source, destination, HEADER_BYTES + self.payload.len());
        self.header.checksum = U16::new(sum.bytes(self.header.as_bytes()).bytes(self.payload).checksum());
    }
}

fn pseudo(source: Ipv6Addr, destination: Ipv6Addr, length: usize) -> Sum {
    // A message is an IPv6 payload, so below 2^16 bytes; a longer slice is not one and sums to nothing of
    // meaning.
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
