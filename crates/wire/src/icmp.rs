//! ICMP for IPv4 (RFC 792): type, code, checksum, four bytes that depend on the type, and data.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::error::{Layer, WireError};

/// Header length in bytes.
pub const HEADER_BYTES: usize = 8;

/// Message type (IANA "ICMP Type Numbers").
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
    /// Echo reply.
    pub const ECHO_REPLY: Self = Self(0);
    /// A packet could not be delivered; the code says why.
    pub const DESTINATION_UNREACHABLE: Self = Self(3);
    /// A better gateway exists.
    pub const REDIRECT: Self = Self(5);
    /// Echo request.
    pub const ECHO_REQUEST: Self = Self(8);
    /// The TTL or the reassembly timer expired.
    pub const TIME_EXCEEDED: Self = Self(11);
    /// A header field is invalid; the message gives its byte offset.
    pub const PARAMETER_PROBLEM: Self = Self(12);

    /// Whether this type reports an error about a quoted packet. Such messages never cause another error
    /// message (RFC 1122 §3.2.2).
    #[must_use]
    pub const fn is_error(self) -> bool {
        matches!(self.0, 3 | 4 | 5 | 11 | 12)
    }
}

/// Code of [`Type::DESTINATION_UNREACHABLE`]: the packet exceeds the next link's MTU and must not be
/// fragmented (RFC 1191 §4).
pub const CODE_FRAGMENTATION_NEEDED: u8 = 4;

/// The ICMP header (RFC 792).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Message type.
    pub kind: Type,
    /// Message code.
    pub code: u8,
    /// Checksum of the entire message.
    pub checksum: U16,
    /// Depends on the type: identifier and sequence number, MTU, gateway, or unused.
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

    /// MTU of the next link in bytes, from a "fragmentation needed" message (RFC 1191 §4).
    #[must_use]
    pub const fn next_hop_mtu(&self) -> Option<u16> {
        let [_, _, a, b] = self.rest;
        match (self.kind, self.code) {
            (Type::DESTINATION_UNREACHABLE, CODE_FRAGMENTATION_NEEDED) => Some(u16::from_be_bytes([a, b])),
            _ => None,
        }
    }
}

/// An ICMP message: the payload of an IPv4 packet.
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

    /// Everything after the header: echo data, or the start of the packet that an error is about (often
    /// truncated).
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the checksum of the message is correct.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        checksum::verify(self.message)
    }
}

/// An ICMP message that can be edited.
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
    pub fn set_kind(&mut self, kind: Type, code: u8) {
        let old = u16::from_be_bytes([self.header.kind.0, self.header.code]);
        let new = u16::from_be_bytes([kind.0, code]);
        let mut checksum = checksum::updated_u16(self.header.checksum.get(), old, new);
        // Only a message of all zeros, such as an echo reply, has the checksum 0xffff. An incremental update
        // cannot detect this case.
        if checksum == 0
            && new == 0
            && self.header.rest == [0; 4]
            && self.payload.iter().all(|byte| *byte == 0)
        {
            checksum = 0xffff;
        }
        self.header.checksum = U16::new(checksum);
        self.header.kind = kind;
        self.header.code = code;
    }

    /// Computes the checksum in full.
    pub fn fill_checksum(&mut self) {
        self.header.checksum = U16::ZERO;
        let sum = checksum::Sum::new().bytes(self.header.as_bytes()).bytes(self.payload);
        self.header.checksum = U16::new(sum.checksum());
    }
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Icmp, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_becomes_reply() {
        let mut message = [8, 0, 0, 0, 0x12, 0x34, 0, 9, b'h', b'u', b'e'];
        let mut edit = ViewMut::parse(&mut message).expect("11 bytes");
        edit.fill_checksum();
        let view = View::parse(&message).expect("11 bytes");
        assert!(view.checksum_ok());
        assert_eq!(view.header().echo(), Some((0x1234, 9)));
        ViewMut::parse(&mut message).expect("11 bytes").set_kind(Type::ECHO_REPLY, 0);
        let view = View::parse(&message).expect("11 bytes");
        assert!(view.checksum_ok() && view.header().kind == Type::ECHO_REPLY);
        assert_eq!(view.payload(), b"hue");
        assert_eq!(view.header().next_hop_mtu(), None);
    }

    #[test]
    fn reply_of_zeros_has_a_right_checksum() {
        for length in [8, 9, 64] {
            let mut message = std::vec![0; length];
            message[0] = Type::ECHO_REQUEST.0;
            ViewMut::parse(&mut message).expect("8 bytes or more").fill_checksum();
            ViewMut::parse(&mut message).expect("8 bytes or more").set_kind(Type::ECHO_REPLY, 0);
            assert_eq!(message[..4], [0, 0, 0xff, 0xff]);
            assert!(View::parse(&message).is_ok_and(|view| view.checksum_ok()));
        }
    }

    #[test]
    fn fragmentation_needed_has_an_mtu() {
        let view = View::parse(&[3, 4, 0, 0, 0, 0, 0x05, 0xdc]).expect("8 bytes").header();
        assert_eq!((view.next_hop_mtu(), view.echo()), (Some(1500), None));
        assert!(view.kind.is_error() && !Type::ECHO_REPLY.is_error());
        assert_eq!(View::parse(&[3; 7]).expect_err("7 bytes"), truncated(7));
    }
}
