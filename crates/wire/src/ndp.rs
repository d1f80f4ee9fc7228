//! Neighbour discovery for IPv6 (RFC 4861): ICMPv6 messages with options that map addresses to link-layer
//! addresses.
//!
//! Supports only what a router's neighbour table needs: solicitations, advertisements, and their link-layer
//! address options; of the other messages, what they claim ([`Message`]).

use core::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::U128;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};
use crate::icmpv6::{self, Type};
use crate::mac::Mac;

/// Length of a solicitation or advertisement without options, in bytes, including the ICMPv6 header.
pub const MESSAGE_BYTES: usize = 24;
/// Flag of an advertisement: the sender is a router (RFC 4861 §4.4). All flags are in the first byte after
/// the checksum.
pub const FLAG_ROUTER: u8 = 0x80;
/// Flag of an advertisement: it answers a solicitation.
pub const FLAG_SOLICITED: u8 = 0x40;
/// Flag of an advertisement: it replaces a cached link-layer address.
pub const FLAG_OVERRIDE: u8 = 0x20;
/// Option type: link-layer address of the sender (RFC 4861 §4.6.1).
pub const OPTION_SOURCE: u8 = 1;
/// Option type: link-layer address of the target.
pub const OPTION_TARGET: u8 = 2;

/// A neighbour solicitation or advertisement (RFC 4861 §4.3, §4.4): ICMPv6 header and target address.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Type, code, checksum, flags.
    pub icmpv6: icmpv6::Header,
    /// The requested or advertised address; see [`Header::target`].
    pub target: U128,
}

const _: () = assert!(size_of::<Header>() == MESSAGE_BYTES && align_of::<Header>() == 1);

impl Header {
    /// An advertisement of an address, with these flags. Its checksum is still missing.
    #[must_use]
    pub fn advertisement(target: Ipv6Addr, flags: u8) -> Self {
        let kind = Type::NEIGHBOR_ADVERTISEMENT;
        let icmpv6 = icmpv6::Header { kind, rest: [flags, 0, 0, 0], ..icmpv6::Header::default() };
        Self { icmpv6, target: U128::new(target.to_bits()) }
    }

    /// The requested or advertised address.
    #[must_use]
    pub const fn target(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.target.get())
    }

    /// The flags byte of an advertisement: [`FLAG_ROUTER`], [`FLAG_SOLICITED`], [`FLAG_OVERRIDE`].
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.icmpv6.rest[0]
    }
}

/// A parsed solicitation or advertisement.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    options: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads an ICMPv6 message as a solicitation or advertisement.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 24 bytes, [`WireError::Field`] for other types or a code other than
    /// zero.
    pub fn parse(message: &'a [u8]) -> Result<Self, WireError> {
        let Ok((header, options)) = Header::ref_from_prefix(message) else {
            return Err(WireError::Truncated {
                layer: Layer::Ndp,
                needed: MESSAGE_BYTES,
                have: message.len(),
            });
        };
        let icmpv6::Header { kind, code, .. } = header.icmpv6;
        if !matches!(kind, Type::NEIGHBOR_SOLICITATION | Type::NEIGHBOR_ADVERTISEMENT) {
            return Err(field("type", kind.0, "135 (solicitation) or 136 (advertisement)"));
        }
        if code != 0 {
            return Err(field("code", code, "0"));
        }
        Ok(Self { header, options })
    }

    /// The message without its options.
    #[must_use]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// An iterator over the options.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options { rest: self.options }
    }

    /// The link-layer address in the message: the first option of the type that belongs to this message.
    #[must_use]
    pub fn mac(&self) -> Option<Mac> {
        let solicitation = self.header.icmpv6.kind == Type::NEIGHBOR_SOLICITATION;
        let wanted = if solicitation { OPTION_SOURCE } else { OPTION_TARGET };
        self.options()
            .map_while(Result::ok)
            .find(|option| option.kind == wanted)
            .and_then(|option| option.mac())
    }
}

/// A message of any type of neighbour discovery (RFC 4861 §4), as far as all types have the same parts.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    kind: Type,
    target: Option<Ipv6Addr>,
    options: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads an ICMPv6 message.
    ///
    /// # Errors
    /// [`WireError::Field`] for types other than 133 to 137, [`WireError::Truncated`] if the part before the options is
    /// incomplete.
    pub fn parse(message: &'a [u8]) -> Result<Self, WireError> {
        let have = message.len();
        let truncated = |needed| WireError::Truncated { layer: Layer::Ndp, needed, have };
        let kind = Type(*message.first().ok_or_else(|| truncated(1))?);
        let fixed_bytes = match kind {
            Type::ROUTER_SOLICITATION => icmpv6::HEADER_BYTES,
            Type::ROUTER_ADVERTISEMENT => icmpv6::HEADER_BYTES + 8,
            Type::NEIGHBOR_SOLICITATION | Type::NEIGHBOR_ADVERTISEMENT => MESSAGE_BYTES,
            Type::REDIRECT => MESSAGE_BYTES + 16,
            _ => return Err(field("type", kind.0, "133 to 137")),
        };
        let (fixed, options) = message.split_at_checked(fixed_bytes).ok_or_else(|| truncated(fixed_bytes))?;
        let target = Header::ref_from_prefix(fixed).ok().map(|(header, _)| header.target());
        Ok(Self { kind, target, options })
    }

    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// The address that a neighbour message asks for or claims, or a redirect names; none in router messages.
    #[must_use]
    pub const fn target(&self) -> Option<Ipv6Addr> {
        self.target
    }

    /// An iterator over the options.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options { rest: self.options }
    }
}

/// One option (RFC 4861 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// Option type.
    pub kind: u8,
    /// The bytes after type and length.
    pub data: &'a [u8],
}

impl Opt<'_> {
    /// The MAC address, if this is a link-layer address option for Ethernet (RFC 2464 §6).
    #[must_use]
    pub fn mac(&self) -> Option<Mac> {
        match self.kind {
            OPTION_SOURCE | OPTION_TARGET => Mac::read_from_bytes(self.data).ok(),
            _ => None,
        }
    }
}

/// Iterates over the options of a message, up to the last byte or the first error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// The bytes that were not read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Opt<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = core::mem::take(&mut self.rest);
        let have = rest.len();
        match rest {
            [] => None,
            [kind, eights, body @ ..] => {
                // A length of zero is invalid (RFC 4861 §4.6): the walk would not end.
                let found = usize::from(*eights) * 8;
                let Some((data, rest)) = found.checked_sub(2).and_then(|data| body.split_at_checked(data))
                else {
                    return Some(Err(WireError::HeaderLength {
                        layer: Layer::Ndp,
                        found,
                        min: 8,
                        max: have,
                    }));
                };
                self.rest = rest;
                Some(Ok(Opt { kind: *kind, data }))
            }
            _ => Some(Err(WireError::Truncated { layer: Layer::Ndp, needed: 8, have })),
        }
    }
}

const fn field(field: &'static str, found: u8, expected: &'static str) -> WireError {
    WireError::Field { layer: Layer::Ndp, field, found: found as u32, expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn message(kind: Type, options: &[u8]) -> Vec<u8> {
        let mut header = Header { target: U128::new(1), ..Header::default() };
        header.icmpv6.kind = kind;
        header.icmpv6.rest[0] = FLAG_ROUTER | FLAG_OVERRIDE;
        let mut message = header.as_bytes().to_vec();
        message.extend(options);
        message
    }

    #[test]
    fn mac_of_each_message_type() {
        let options = [1, 1, 2, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 2];
        let ask = message(Type::NEIGHBOR_SOLICITATION, &options);
        let tell = message(Type::NEIGHBOR_ADVERTISEMENT, &options);
        let mac = |message: &[u8]| View::parse(message).expect("own message").mac();
        assert_eq!(mac(&ask), Some(Mac([2, 0, 0, 0, 0, 1])));
        assert_eq!(mac(&tell), Some(Mac([2, 0, 0, 0, 0, 2])));
        let header = *View::parse(&tell).expect("own message").header();
        assert_eq!((header.target(), header.flags()), (Ipv6Addr::LOCALHOST, FLAG_ROUTER | FLAG_OVERRIDE));
    }

    #[test]
    fn options_follow_the_part_that_each_type_has() {
        let option = [OPTION_SOURCE, 1, 2, 0, 0, 0, 0, 1];
        for (kind, fixed_bytes, has_target) in
            [(133, 8, false), (134, 16, false), (135, 24, true), (136, 24, true), (137, 40, true)]
        {
            let mut message = std::vec![0; fixed_bytes];
            message[0] = kind;
            message[fixed_bytes - 1] = 1;
            if kind == 137 {
                message[23] = 1;
            }
            assert!(Message::parse(&message[..fixed_bytes - 1]).is_err());
            message.extend(option);
            let found = Message::parse(&message).expect("complete");
            assert_eq!((found.kind(), found.target().is_some()), (Type(kind), has_target));
            assert!(found.target().is_none_or(|target| target == Ipv6Addr::LOCALHOST));
            let macs: Vec<_> = found.options().map(|one| one.expect("8 bytes").mac()).collect();
            assert_eq!(macs, [Some(Mac([2, 0, 0, 0, 0, 1]))]);
            assert!(Type(kind).is_neighbor_discovery());
        }
        for other in [0, 132, 138, 255] {
            assert!(Message::parse(&[other; 60]).is_err() && !Type(other).is_neighbor_discovery());
        }
        assert!(Message::parse(&[]).is_err());
    }

    #[test]
    fn bad_options_end_the_walk() {
        for (options, good) in [(&[1, 0, 0, 0][..], 0), (&[1], 0), (&[14, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0], 1)] {
            let message = message(Type::NEIGHBOR_ADVERTISEMENT, options);
            let seen: Vec<_> = View::parse(&message).expect("own message").options().collect();
            assert_eq!(seen.len(), good + 1);
            assert!(seen.last().is_some_and(Result::is_err));
        }
        assert!(View::parse(&message(Type::ECHO_REQUEST, &[])).is_err());
        assert!(View::parse(&[135; 23]).is_err());
    }
}
