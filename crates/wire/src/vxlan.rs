//! VXLAN (RFC 7348 §5): an eight-byte header with a network identifier, followed by an Ethernet frame, as UDP
//! payload.

use core::fmt;

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};

/// Header length in bytes.
pub const HEADER_BYTES: usize = 8;
/// UDP destination port (RFC 7348 §8.1, IANA).
pub const PORT: u16 = 4789;
/// The I flag: the network identifier is valid.
pub const FLAG_VNI: u8 = 0x08;

/// A VXLAN network identifier (VNI): 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Vni(u32);

impl Vni {
    /// The largest identifier.
    pub const MAX: Self = Self(0x00ff_ffff);

    /// Returns `None` if `value` exceeds 24 bits.
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The identifier as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Vni {
    type Error = &'static str;

    fn try_from(value: u32) -> Result<Self, Self::Error> {
        Self::new(value).ok_or("a VNI has 24 bits")
    }
}

impl From<Vni> for u32 {
    fn from(vni: Vni) -> Self {
        vni.0
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The VXLAN header.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// [`FLAG_VNI`] and reserved bits.
    pub flags: u8,
    /// Reserved: sent as zero, ignored on receipt.
    pub reserved: [u8; 3],
    /// The network identifier, most significant byte first; see [`Header::vni`].
    pub vni: [u8; 3],
    /// Reserved: sent as zero, ignored on receipt.
    pub reserved_last: u8,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// Builds a header.
    #[must_use]
    pub const fn new(vni: Vni) -> Self {
        let [_, a, b, c] = vni.0.to_be_bytes();
        Self { flags: FLAG_VNI, reserved: [0; 3], vni: [a, b, c], reserved_last: 0 }
    }

    /// The network identifier.
    #[must_use]
    #[inline]
    pub const fn vni(&self) -> Vni {
        let [a, b, c] = self.vni;
        Vni(u32::from_be_bytes([0, a, b, c]))
    }

    const fn check(&self) -> Result<(), WireError> {
        if self.flags & FLAG_VNI != 0 {
            return Ok(());
        }
        let expected = "the I flag (8) set";
        Err(WireError::Field { layer: Layer::Vxlan, field: "flags", found: self.flags as u32, expected })
    }
}

/// The UDP source port of a flow (RFC 7348 §5): a hash of the inner addresses, mapped to the dynamic range
/// 49,152 to 65,535, so that equal-cost paths share the load.
#[must_use]
pub const fn source_port(flow_hash: u32) -> u16 {
    0xc000 | (flow_hash ^ flow_hash >> 16) as u16 & 0x3fff
}

/// A VXLAN header and the inner frame.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads the payload of a UDP datagram to [`PORT`]. Reserved bits are ignored (RFC 7348 §5).
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 8 bytes, [`WireError::Field`] without the I flag.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let Ok((header, rest)) = Header::ref_from_prefix(payload) else {
            return Err(truncated(payload.len()));
        };
        header.check()?;
        Ok(Self { header, payload: rest })
    }

    /// The header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// The inner Ethernet frame.
    #[must_use]
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A VXLAN header and the inner frame, mutable.
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
    pub fn parse(payload: &'a mut [u8]) -> Result<Self, WireError> {
        let have = payload.len();
        let Ok((header, rest)) = Header::mut_from_prefix(payload) else { return Err(truncated(have)) };
        header.check()?;
        Ok(Self { header, payload: rest })
    }

    /// The header, mutable.
    pub const fn header_mut(&mut self) -> &mut Header {
        self.header
    }

    /// Sets the network identifier. The UDP checksum, if any, is not updated: VXLAN sends none (RFC 7348 §5).
    pub const fn set_vni(&mut self, vni: Vni) {
        self.header.vni = Header::new(vni).vni;
    }

    /// The inner Ethernet frame, mutable.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// The inner Ethernet frame, with the lifetime of the datagram.
    #[must_use]
    pub const fn into_payload(self) -> &'a mut [u8] {
        self.payload
    }
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Vxlan, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        assert_eq!(Vni::new(0x0100_0000), None);
        let vni = Vni::new(0x0012_3456).expect("24 bits");
        let mut header = Header::new(vni);
        assert_eq!(header.as_bytes(), [8, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        assert_eq!(header.vni(), vni);
        ViewMut::parse(header.as_mut_bytes()).expect("own header").set_vni(Vni::MAX);
        let view = View::parse(header.as_bytes()).expect("own header");
        assert_eq!((view.header().vni(), view.payload()), (Vni::MAX, &[][..]));
    }

    #[test]
    fn rejects_a_header_without_the_flag() {
        assert!(matches!(View::parse(&[0xf7; 8]), Err(WireError::Field { found: 0xf7, .. })));
        assert!(View::parse(&[0xff; 8]).is_ok());
        assert_eq!(View::parse(&[8; 7]).expect_err("7 bytes"), truncated(7));
    }

    #[test]
    fn source_ports_are_dynamic() {
        for hash in [0, 1, 0xffff, 0x1_0000, u32::MAX, 0xdead_beef] {
            assert!(source_port(hash) >= 49_152);
        }
        assert_ne!(source_port(1), source_port(2));
    }
}
