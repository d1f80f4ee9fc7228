//! ICMP for IPv4 (RFC 792): type, code, checksum, four bytes by type, and data.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::error::{Layer, WireError};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;

/// What a message says (IANA "ICMP Type Numbers").
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
    /// Answer to an echo request.
    pub const ECHO_REPLY: Self = Self(0);
    /// A packet did not arrive; the code says why.
    pub const DESTINATION_UNREACHABLE: Self = Self(3);
    /// There is a better gateway.
    pub const REDIRECT: Self = Self(5);
    /// Answer me.
    pub const ECHO_REQUEST: Self = Self(8);
    /// The TTL or the reassembly time ran out.
    pub const TIME_EXCEEDED: Self = Self(11);
    /// The header is wrong at a given byte.
    pub const PARAMETER_PROBLEM: Self = Self(12);

    /// It reports an error about a quoted packet, and so is never answered by another (RFC 1122 §3.2.2).
    #[must_use]
    pub const fn is_error(self) -> bool {
        matches!(self.0, 3 | 4 | 5 | 11 | 12)
    }
}

/// Code of [`Type::DESTINATION_UNREACHABLE`]: larger than the next link takes, and may not be fragmented (RFC
/// 1191 §4).
pub const CODE_FRAGMENTATION_NEEDED: u8 = 4;

/// The header (RFC 792).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// What it says.
    pub kind: Type,
    /// Detail of the type.
    pub code: u8,
    /// Checksum of the whole message.
    pub checksum: U16,
    /// By type: identifier and sequence number, an MTU, a gateway, unused.
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

    /// The next link's MTU in bytes, in "fragmentation needed" (RFC 1191 §4).
    #[must_use]
    pub const fn next_hop_mtu(&self) -> Option<u16> {
        let [_, _, a, b] = self.rest;
        match (self.kind, self.code) {
            (Type::DESTINATION_UNREACHABLE, CODE_FRAGMENTATION_NEEDED) => Some(u16::from_be_bytes([a, b])),
            _ => None,
        }
    }
}

/// A message: the payload of an IPv4 packet.
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

    /// What follows: echo data, or the start of the packet an error is about (often cut short).
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the checksum of the message is right.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        checksum::verify(self.message)
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
    pub fn set_kind(&mut self, kind: Type, code: u8) {
        let old = u16::from_be_bytes([self.header.kind.0, self.header.code]);
        let new = u16::from_be_bytes([kind.0, code]);
        let mut checksum = checksum::updated_u16(self.header.checksum.get(), old, new);
        // An echo reply may be all zeros, the one message whose checksum is 0xffff, and an update cannot
        // tell.
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
