//! UDP (RFC 768), with the checksum rules for IPv6 (RFC 8200 §8.1).

use core::net::IpAddr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::error::{Layer, WireError};
use crate::ip::{self, Addresses, with_address};

/// Header length in bytes.
pub const HEADER_BYTES: usize = 8;

/// The UDP header.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Source port.
    pub source: U16,
    /// Destination port.
    pub destination: U16,
    /// Length of header and data, in bytes.
    pub length: U16,
    /// Checksum of pseudo header, header and data; zero means no checksum.
    pub checksum: U16,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// Builds a header without checksum. `length` is in bytes and includes the header.
    #[must_use]
    pub const fn new(source: u16, destination: u16, length: u16) -> Self {
        Self {
            source: U16::new(source),
            destination: U16::new(destination),
            length: U16::new(length),
            checksum: U16::ZERO,
        }
    }
}

/// A datagram whose length is valid for its bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    /// Header and payload.
    datagram: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks header and length; bytes after the length are not part of the view. A length of zero (a
    /// jumbogram, RFC 2675 §4) is rejected as too short.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 8 bytes, [`WireError::TotalLength`] (below 8 or more than the available
    /// bytes).
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, WireError> {
        let Ok((header, rest)) = Header::ref_from_prefix(datagram) else {
            return Err(truncated(datagram.len()));
        };
        let length = payload_length(header, rest.len())?;
        let payload = rest.get(..length).unwrap_or_default();
        Ok(Self { header, datagram: datagram.get(..HEADER_BYTES + length).unwrap_or_default(), payload })
    }

    /// The header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// The data.
    #[must_use]
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the checksum is correct for these addresses. An absent checksum (zero) is valid over IPv4 and
    /// invalid over IPv6 (RFC 8200 §8.1; tunnels can be exempt, RFC 6935).
    #[must_use]
    pub fn checksum_ok(&self, addresses: Addresses) -> bool {
        if self.header.checksum.get() == 0 {
            return matches!(addresses, Addresses::V4(..));
        }
        addresses.pseudo(ip::Protocol::UDP, self.datagram.len()).bytes(self.datagram).folded() == 0xffff
    }
}

/// A datagram that can be edited. Every edit keeps a correct checksum correct and an absent one absent.
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
    pub fn parse(datagram: &'a mut [u8]) -> Result<Self, WireError> {
        let have = datagram.len();
        let Ok((header, rest)) = Header::mut_from_prefix(datagram) else { return Err(truncated(have)) };
        let length = payload_length(header, rest.len())?;
        Ok(Self { header, payload: rest.get_mut(..length).unwrap_or_default() })
    }

    /// The header in its current state.
    #[must_use]
    pub const fn header(&self) -> &Header {
        self.header
    }

    /// The data, mutable. Call [`ViewMut::fill_checksum`] or [`ViewMut::clear_checksum`] after changing it.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// The data, with the lifetime of the datagram.
    #[must_use]
    pub const fn into_payload(self) -> &'a mut [u8] {
        self.payload
    }

    /// Sets the source port.
    pub const fn set_source(&mut self, port: u16) {
        let checksum = checksum::udp_updated(self.header.checksum.get(), self.header.source.get(), port);
        self.header.checksum = U16::new(checksum);
        self.header.source = U16::new(port);
    }

    /// Sets the destination port.
    pub const fn set_destination(&mut self, port: u16) {
        let checksum = checksum::udp_updated(self.header.checksum.get(), self.header.destination.get(), port);
        self.header.checksum = U16::new(checksum);
        self.header.destination = U16::new(port);
    }

    /// Updates the checksum after an address of the IP header changed from `old` to `new` (same family).
    pub fn address_changed(&mut self, old: IpAddr, new: IpAddr) {
        let checksum = self.header.checksum.get();
        if checksum != 0 {
            self.header.checksum = U16::new(checksum::udp(with_address(checksum, old, new)));
        }
    }

    /// Computes the checksum in full.
    pub fn fill_checksum(&mut self, addresses: Addresses) {
        self.header.checksum = U16::ZERO;
        let sum = addresses.pseudo(ip::Protocol::UDP, HEADER_BYTES + self.payload.len());
        let sum = sum.bytes(self.header.as_bytes()).bytes(self.payload);
        self.header.checksum = U16::new(checksum::udp(sum.checksum()));
    }

    /// Removes the checksum, as VXLAN over IPv4 does (RFC 7348 §5).
    pub const fn clear_checksum(&mut self) {
        self.header.checksum = U16::ZERO;
    }
}

#[inline]
fn payload_length(header: &Header, rest: usize) -> Result<usize, WireError> {
    let found = usize::from(header.length.get());
    let max = HEADER_BYTES + rest;
    match found.checked_sub(HEADER_BYTES) {
        Some(length) if length <= rest => Ok(length),
        _ => Err(WireError::TotalLength { layer: Layer::Udp, found, min: HEADER_BYTES, max }),
    }
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Udp, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    fn datagram(data: &[u8]) -> Vec<u8> {
        let mut datagram = Header::new(1, 2, (HEADER_BYTES + data.len()) as u16).as_bytes().to_vec();
        datagram.extend(data);
        datagram
    }

    proptest! {
        #[test]
        fn edits_keep_the_checksum(
            data in prop::collection::vec(any::<u8>(), 0..40),
            [a, b, c] in any::<[Ipv4Addr; 3]>(),
            [d, e, f] in any::<[Ipv6Addr; 3]>(),
            ports in any::<(u16, u16)>(),
            over_v6 in any::<bool>(),
        ) {
            let (before, after, old, new) = if over_v6 {
                (Addresses::V6(d, e), Addresses::V6(f, e), d.into(), f.into())
            } else {
                (Addresses::V4(a, b), Addresses::V4(c, b), a.into(), c.into())
            };
            let mut bytes = datagram(&data);
            let mut edit = ViewMut::parse(&mut bytes).expect("own datagram");
            edit.fill_checksum(before);
            edit.set_source(ports.0);
            edit.set_destination(ports.1);
            prop_assert!(View::parse(&bytes).expect("own datagram").checksum_ok(before));
            ViewMut::parse(&mut bytes).expect("own datagram").address_changed(old, new);
            let view = View::parse(&bytes).expect("own datagram");
            prop_assert!(view.checksum_ok(after) && view.header().checksum.get() != 0);
            ViewMut::parse(&mut bytes).expect("own datagram").clear_checksum();
            ViewMut::parse(&mut bytes).expect("own datagram").set_source(ports.1);
            let view = View::parse(&bytes).expect("own datagram");
            prop_assert_eq!(view.checksum_ok(after), !over_v6);
        }
    }

    #[test]
    fn lengths() {
        let bad = |found, max| WireError::TotalLength { layer: Layer::Udp, found, min: 8, max };
        let mut bytes = datagram(&[1, 2]);
        bytes.push(9);
        assert_eq!(View::parse(&bytes).expect("padding").payload(), [1, 2]);
        for (length, ok) in [(0u16, false), (7, false), (8, true), (11, true), (12, false)] {
            bytes[4..6].copy_from_slice(&length.to_be_bytes());
            let error = View::parse(&bytes).err();
            assert_eq!(error, (!ok).then(|| bad(usize::from(length), 11)));
            assert_eq!(ViewMut::parse(&mut bytes).err(), error);
        }
        assert_eq!(View::parse(&bytes[..7]).expect_err("7 bytes"), truncated(7));
    }
}
