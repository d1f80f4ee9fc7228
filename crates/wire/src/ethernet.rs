//! Ethernet II frames (RFC 894; IEEE 802.3 §3): destination, source, type, payload; without preamble and FCS.
//!
//! The outermost header of every frame. The payload includes padding: only the payload's own length field
//! tells where padding begins.

use core::fmt;

use serde::{Deserialize, Serialize};
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};
use crate::mac::Mac;

/// Header length in bytes.
pub const HEADER_BYTES: usize = 14;

/// Whether a frame has a group address: the lowest bit of its first byte (IEEE 802 §8.2). An empty frame has none.
#[must_use]
#[inline]
pub const fn is_group(frame: &[u8]) -> bool {
    matches!(frame, [first, ..] if *first & 1 != 0)
}

/// Protocol of the payload (IANA "IEEE 802 Numbers"). Values below `0x0600` are lengths (IEEE 802.3 §3.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: Self = Self(0x0800);
    /// ARP (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// RARP (RFC 903).
    pub const RARP: Self = Self(0x8035);
    /// IEEE 802.1Q tag.
    pub const VLAN: Self = Self(0x8100);
    /// IPv6 (RFC 2464 §3).
    pub const IPV6: Self = Self(0x86dd);
    /// MPLS unicast (RFC 5332).
    pub const MPLS: Self = Self(0x8847);
    /// IEEE 802.1ad service tag.
    pub const QINQ: Self = Self(0x88a8);
    /// LLDP (IEEE 802.1AB).
    pub const LLDP: Self = Self(0x88cc);

    /// The name, or `None` if this crate does not know one.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::IPV4 => "ipv4",
            Self::ARP => "arp",
            Self::VLAN => "vlan",
            Self::IPV6 => "ipv6",
            Self::MPLS => "mpls",
            Self::QINQ => "qinq",
            Self::LLDP => "lldp",
            _ => return None,
        })
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "ethertype {:#06x}", self.0),
        }
    }
}

/// Destination and source address, in frame order. Next hops store them like this, ready to be copied.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
    Serialize,
    Deserialize,
)]
#[repr(C)]
pub struct Macs {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
}

/// The Ethernet header: the first 14 bytes of a frame.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Destination and source address.
    pub macs: Macs,
    /// EtherType, in network byte order; see [`Header::ethertype`].
    pub ethertype: U16,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);
const _: () = assert!(size_of::<Macs>() == 12);

impl Header {
    /// Builds a header.
    #[must_use]
    pub const fn new(destination: Mac, source: Mac, ethertype: EtherType) -> Self {
        Self { macs: Macs { destination, source }, ethertype: U16::new(ethertype.0) }
    }

    /// Reads the header at the start of a frame; `None` if the frame has fewer than 14 bytes.
    #[must_use]
    #[inline]
    pub fn over(frame: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(frame).ok()
    }

    /// As [`Header::over`], mutable.
    #[must_use]
    #[inline]
    pub fn over_mut(frame: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
        Self::mut_from_prefix(frame).ok()
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub const fn destination(&self) -> Mac {
        self.macs.destination
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> Mac {
        self.macs.source
    }

    /// EtherType of the payload.
    #[must_use]
    #[inline]
    pub const fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }
}

/// Overwrites both addresses of a frame (the rewrite by a router, RFC 1812 §5.2.1.2 (8)), as one 12-byte
/// copy.
#[inline]
pub const fn rewrite_macs(header: &mut Header, macs: &Macs) {
    header.macs = *macs;
}

/// A frame with a complete Ethernet header.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks that the header is complete.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 14 bytes.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        match Header::over(frame) {
            Some((header, payload)) => Ok(Self { header, payload }),
            None => Err(truncated(frame.len())),
        }
    }

    /// The header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// Everything after the header, including padding.
    #[must_use]
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A frame that can be edited.
#[derive(Debug)]
pub struct ViewMut<'a> {
    header: &'a mut Header,
    payload: &'a mut [u8],
}

impl<'a> ViewMut<'a> {
    /// Checks that the header is complete.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 14 bytes.
    #[inline]
    pub fn parse(frame: &'a mut [u8]) -> Result<Self, WireError> {
        let have = frame.len();
        match Header::over_mut(frame) {
            Some((header, payload)) => Ok(Self { header, payload }),
            None => Err(truncated(have)),
        }
    }

    /// The header, mutable.
    #[inline]
    pub const fn header_mut(&mut self) -> &mut Header {
        self.header
    }

    /// Everything after the header, mutable.
    #[inline]
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// The payload, with the lifetime of the frame.
    #[must_use]
    #[inline]
    pub const fn into_payload(self) -> &'a mut [u8] {
        self.payload
    }

    /// Sets the destination.
    pub const fn set_destination(&mut self, mac: Mac) {
        self.header.macs.destination = mac;
    }

    /// Sets the source.
    pub const fn set_source(&mut self, mac: Mac) {
        self.header.macs.source = mac;
    }

    /// Sets the EtherType.
    pub const fn set_ethertype(&mut self, ethertype: EtherType) {
        self.header.ethertype = U16::new(ethertype.0);
    }
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Ethernet, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_rewrites() {
        let mut frame = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, 99];
        let view = View::parse(&frame).expect("15 bytes");
        assert_eq!(view.header().destination(), Mac([1, 2, 3, 4, 5, 6]));
        assert_eq!(view.header().source(), Mac([7, 8, 9, 10, 11, 12]));
        assert_eq!(view.header().ethertype(), EtherType::IPV6);
        assert_eq!(view.payload(), [99]);
        let macs = Macs { destination: Mac([2; 6]), source: Mac([4; 6]) };
        rewrite_macs(ViewMut::parse(&mut frame).expect("15 bytes").header_mut(), &macs);
        assert_eq!(frame, [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 0x86, 0xdd, 99]);
    }

    #[test]
    fn thirteen_bytes_are_truncated() {
        let error = WireError::Truncated { layer: Layer::Ethernet, needed: 14, have: 13 };
        assert_eq!(View::parse(&[0; 13]).expect_err("13 bytes"), error);
        assert_eq!(ViewMut::parse(&mut [0; 13]).expect_err("13 bytes"), error);
        assert!(View::parse(&[0; 14]).is_ok_and(|view| view.payload().is_empty()));
    }
}
