//! IPv6 (RFC 8200): header, extension headers, fragments.
//!
//! A sender can make the chain of extension headers long, so the walk over it is limited to
//! [`EXTENSIONS_MAX`] headers. Units: lengths and fragment offsets are in bytes (the headers count them in
//! 8-byte units, the authentication header in 4-byte units).

use core::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};
use crate::ip;

/// Header length in bytes, without extension headers.
pub const HEADER_BYTES: usize = 40;
/// Length of a fragment header, in bytes.
pub const FRAGMENT_BYTES: usize = 8;
/// Most extension headers in one packet; a packet with more is rejected (RFC 8504 §5.3 allows a node to limit
/// them).
pub const EXTENSIONS_MAX: usize = 8;

/// The fixed header (RFC 8200 §3).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Version (4 bits), traffic class (8), flow label (20).
    pub version_class_flow: U32,
    /// Length of everything after this header, including extension headers, in bytes.
    pub payload_length: U16,
    /// Type of the next header.
    pub next_header: ip::Protocol,
    /// Remaining hops.
    pub hop_limit: u8,
    /// Source address; see [`Header::source`].
    pub source: U128,
    /// Destination address; see [`Header::destination`].
    pub destination: U128,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// Builds a header with traffic class and flow label zero. `payload_length` is in bytes.
    #[must_use]
    pub const fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_header: ip::Protocol,
        hop_limit: u8,
        payload_length: u16,
    ) -> Self {
        Self {
            version_class_flow: U32::new(6 << 28),
            payload_length: U16::new(payload_length),
            next_header,
            hop_limit,
            source: U128::new(source.to_bits()),
            destination: U128::new(destination.to_bits()),
        }
    }

    /// Reads the header at the start of a packet. Checks only the length; `None` if the packet has fewer than
    /// 40 bytes.
    #[must_use]
    #[inline]
    pub fn over(packet: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(packet).ok()
    }

    /// As [`Header::over`], mutable.
    #[must_use]
    #[inline]
    pub fn over_mut(packet: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
        Self::mut_from_prefix(packet).ok()
    }

    /// Version field: 6 for IPv6.
    #[must_use]
    #[inline]
    pub const fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    /// Traffic class: DSCP and ECN (RFC 8200 §7).
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }

    /// Flow label, 20 bits (RFC 8200 §6).
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0x000f_ffff
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.source.get())
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub const fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.destination.get())
    }

    /// Decrements the hop limit. Returns `false`, without a change, if it is zero. IPv6 has no header
    /// checksum.
    #[inline]
    pub const fn decrement_hop_limit(&mut self) -> bool {
        let Some(hop_limit) = self.hop_limit.checked_sub(1) else { return false };
        self.hop_limit = hop_limit;
        true
    }
}

/// The fragment header (RFC 8200 §4.5).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Fragment {
    /// Type of the next header; meaningful in the first fragment.
    pub next_header: ip::Protocol,
    /// Reserved.
    pub reserved: u8,
    /// Offset in 8-byte units (upper 13 bits), reserved (2), more fragments (1).
    pub offset_flags: U16,
    /// Identification: the same in all fragments of a packet.
    pub identification: U32,
}

const _: () = assert!(size_of::<Fragment>() == FRAGMENT_BYTES && align_of::<Fragment>() == 1);

impl Fragment {
    /// Offset of this fragment's payload in the fragmentable part, in bytes (a multiple of 8, below 65,536).
    #[must_use]
    pub const fn offset_bytes(&self) -> u32 {
        (self.offset_flags.get() & 0xfff8) as u32
    }

    /// Whether more fragments follow this one.
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.offset_flags.get() & 1 != 0
    }

    /// Whether this is an atomic fragment: offset zero and no more fragments (RFC 6946).
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        self.offset_flags.get() & 0xfff9 == 0
    }
}

/// One extension header.
#[derive(Clone, Copy, Debug)]
pub struct Extension<'a> {
    /// Type of this header.
    pub kind: ip::Protocol,
    /// Type of the next header.
    pub next_header: ip::Protocol,
    /// All bytes of this header.
    pub bytes: &'a [u8],
    /// Offset after the IPv6 header, in bytes.
    pub offset: usize,
}

impl<'a> Extension<'a> {
    /// The fragment header, if this is one.
    #[must_use]
    pub fn fragment(&self) -> Option<&'a Fragment> {
        if self.kind == ip::Protocol::FRAGMENT { Fragment::ref_from_bytes(self.bytes).ok() } else { None }
    }

    /// Whether this is a fragment header with an offset other than zero: the following bytes are then no
    /// header.
    #[must_use]
    pub fn hides_rest(&self) -> bool {
        self.fragment().is_some_and(|fragment| fragment.offset_bytes() != 0)
    }
}

/// The upper-layer payload, after all extension headers.
#[derive(Clone, Copy, Debug)]
pub struct Upper<'a> {
    /// Protocol of the payload. In a fragment other than the first: protocol of the packet's entire payload.
    pub protocol: ip::Protocol,
    /// The bytes after the last extension header.
    pub payload: &'a [u8],
    /// Offset of the payload after the IPv6 header, in bytes.
    pub offset: usize,
    /// The fragment header, if there is one.
    pub fragment: Option<&'a Fragment>,
}

impl Upper<'_> {
    /// Whether the payload begins with the transport header.
    #[must_use]
    pub fn starts_transport(&self) -> bool {
        self.fragment.is_none_or(|fragment| fragment.offset_bytes() == 0)
    }
}

/// Iterates over the extension headers. Ends before the first other header, after a fragment header that
/// hides the rest, or after an error.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    next_header: ip::Protocol,
    rest: &'a [u8],
    offset: usize,
    walked: usize,
    done: bool,
}

impl<'a> Extensions<'a> {
    /// Type of the header after those read so far.
    #[must_use]
    pub const fn next_header(&self) -> ip::Protocol {
        self.next_header
    }

    /// The bytes after the headers read so far.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Offset of those bytes after the IPv6 header.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    fn step(&mut self) -> Result<Extension<'a>, WireError> {
        const LAYER: Layer = Layer::Ipv6Extension;
        let kind = self.next_header;
        if self.walked == EXTENSIONS_MAX {
            return Err(WireError::TooDeep { layer: LAYER, max: EXTENSIONS_MAX });
        }
        if kind == ip::Protocol::HOP_BY_HOP && self.walked != 0 {
            let expected = "hop-by-hop options (0) only right after the IPv6 header";
            return Err(WireError::Field { layer: LAYER, field: "next header", found: 0, expected });
        }
        let have = self.rest.len();
        // The shortest extension header has 8 bytes, the authentication header 12 (RFC 4302 §2).
        let (min, bytes) = match (kind, self.rest) {
            (ip::Protocol::FRAGMENT, _) => (FRAGMENT_BYTES, FRAGMENT_BYTES),
            (ip::Protocol::AUTHENTICATION, [_, words, ..]) => (12, (usize::from(*words) + 2) * 4),
            (_, [_, eights, ..]) => (8, (usize::from(*eights) + 1) * 8),
            _ => (8, 8),
        };
        if have < min {
            return Err(WireError::Truncated { layer: LAYER, needed: min, have });
        }
        let length = WireError::HeaderLength { layer: LAYER, found: bytes, min, max: have };
        if bytes < min {
            return Err(length);
        }
        let (bytes, rest) = self.rest.split_at_checked(bytes).ok_or(length)?;
        let next_header = ip::Protocol(bytes.first().copied().unwrap_or_default());
        let extension = Extension { kind, next_header, bytes, offset: self.offset };
        self.next_header = next_header;
        self.rest = rest;
        self.offset += bytes.len();
        self.walked += 1;
        self.done = extension.hides_rest();
        Ok(extension)
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Extension<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || !is_extension(self.next_header) {
            return None;
        }
        let step = self.step();
        self.done |= step.is_err();
        Some(step)
    }
}

/// Whether the walk passes this header. It ends at the encapsulating security payload, whose content is
/// encrypted.
#[must_use]
pub const fn is_extension(protocol: ip::Protocol) -> bool {
    matches!(
        protocol,
        ip::Protocol::HOP_BY_HOP
            | ip::Protocol::ROUTING
            | ip::Protocol::FRAGMENT
            | ip::Protocol::AUTHENTICATION
            | ip::Protocol::DESTINATION_OPTIONS
            | ip::Protocol::MOBILITY
            | ip::Protocol::HIP
            | ip::Protocol::SHIM6
    )
}

/// A packet whose version and payload length are valid for its bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks, in this order: 40 bytes, version, payload length. Bytes after the payload (Ethernet padding)
    /// are not part of the view. Jumbograms (RFC 2675) are not supported: a payload length of zero means zero
    /// bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Version`], [`WireError::TotalLength`] (header and payload
    /// together).
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, WireError> {
        let (header, rest) = Header::over(packet).ok_or_else(|| truncated(packet.len()))?;
        let length = check(header, rest.len())?;
        Ok(Self { header, payload: rest.get(..length).unwrap_or_default() })
    }

    /// The fixed header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// The payload, as delimited by the payload length, including extension headers.
    #[must_use]
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// An iterator over the extension headers.
    #[must_use]
    pub const fn extensions(&self) -> Extensions<'a> {
        let next_header = self.header.next_header;
        Extensions { next_header, rest: self.payload, offset: 0, walked: 0, done: false }
    }

    /// Walks to the end of the extension headers.
    ///
    /// # Errors
    /// The error of the first extension header that is truncated, too long, out of place, or beyond the
    /// limit.
    pub fn upper(&self) -> Result<Upper<'a>, WireError> {
        let mut extensions = self.extensions();
        let mut fragment = None;
        for extension in extensions.by_ref() {
            // The first fragment header counts. RFC 8200 §4.5 allows only one; a second is an attack on
            // reassembly.
            fragment = fragment.or(extension?.fragment());
        }
        let Extensions { next_header: protocol, rest: payload, offset, .. } = extensions;
        Ok(Upper { protocol, payload, offset, fragment })
    }
}

/// A packet that can be edited. IPv6 has no header checksum; transport checksums cover the addresses.
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
    pub fn parse(packet: &'a mut [u8]) -> Result<Self, WireError> {
        let have = packet.len();
        let (header, rest) = Header::over_mut(packet).ok_or_else(|| truncated(have))?;
        let length = check(header, rest.len())?;
        Ok(Self { header, payload: rest.get_mut(..length).unwrap_or_default() })
    }

    /// The fixed header in its current state.
    #[must_use]
    pub const fn header(&self) -> &Header {
        self.header
    }

    /// The payload, mutable.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// The payload, with the lifetime of the packet.
    #[must_use]
    pub const fn into_payload(self) -> &'a mut [u8] {
        self.payload
    }

    /// Decrements the hop limit. Returns `false`, without a change, if it is zero.
    pub const fn decrement_hop_limit(&mut self) -> bool {
        self.header.decrement_hop_limit()
    }

    /// Sets the hop limit.
    pub const fn set_hop_limit(&mut self, hop_limit: u8) {
        self.header.hop_limit = hop_limit;
    }

    /// Sets DSCP and ECN.
    pub const fn set_traffic_class(&mut self, class: u8) {
        let word = self.header.version_class_flow.get() & 0xf00f_ffff | (class as u32) << 20;
        self.header.version_class_flow = U32::new(word);
    }

    /// Sets the flow label from the low 20 bits of `label`.
    pub const fn set_flow_label(&mut self, label: u32) {
        let word = self.header.version_class_flow.get() & 0xfff0_0000 | label & 0x000f_ffff;
        self.header.version_class_flow = U32::new(word);
    }

    /// Sets the source address.
    pub const fn set_source(&mut self, address: Ipv6Addr) {
        self.header.source = U128::new(address.to_bits());
    }

    /// Sets the destination address.
    pub const fn set_destination(&mut self, address: Ipv6Addr) {
        self.header.destination = U128::new(address.to_bits());
    }
}

fn check(header: &Header, payload: usize) -> Result<usize, WireError> {
    if header.version() != 6 {
        return Err(WireError::Version { layer: Layer::Ipv6, found: header.version(), expected: 6 });
    }
    let length = usize::from(header.payload_length.get());
    if length > payload {
        let (found, max) = (HEADER_BYTES + length, HEADER_BYTES + payload);
        return Err(WireError::TotalLength { layer: Layer::Ipv6, found, min: HEADER_BYTES, max });
    }
    Ok(length)
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Ipv6, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn packet(next_header: ip::Protocol, payload: &[u8]) -> Vec<u8> {
        let header =
            Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, next_header, 64, payload.len() as u16);
        let mut packet = header.as_bytes().to_vec();
        packet.extend(payload);
        packet
    }

    /// An extension header of 8 bytes, followed by a header of type `next`.
    fn eight(next: ip::Protocol) -> [u8; 8] {
        [next.0, 0, 0, 0, 0, 0, 0, 0]
    }

    #[test]
    fn chain_to_the_limit_and_one_more() {
        for count in 0..=EXTENSIONS_MAX + 1 {
            let mut payload = Vec::new();
            for at in 0..count {
                let last = at + 1 == count;
                payload.extend(eight(if last {
                    ip::Protocol::UDP
                } else {
                    ip::Protocol::DESTINATION_OPTIONS
                }));
            }
            payload.push(7);
            let first = if count == 0 { ip::Protocol::UDP } else { ip::Protocol::DESTINATION_OPTIONS };
            let packet = packet(first, &payload);
            let upper = View::parse(&packet).expect("lengths agree").upper();
            if count > EXTENSIONS_MAX {
                let expected = WireError::TooDeep { layer: Layer::Ipv6Extension, max: EXTENSIONS_MAX };
                assert_eq!(upper.expect_err("too many"), expected);
            } else {
                let upper = upper.expect("within the limit");
                assert_eq!((upper.protocol, upper.payload), (ip::Protocol::UDP, &[7][..]));
                assert_eq!(upper.offset, count * 8);
            }
        }
    }

    #[test]
    fn fragments() {
        let with = |offset_flags: u16| {
            let header = Fragment {
                next_header: ip::Protocol::HOP_BY_HOP,
                offset_flags: U16::new(offset_flags),
                identification: U32::new(7),
                reserved: 0,
            };
            packet(ip::Protocol::FRAGMENT, header.as_bytes())
        };
        let middle = with(0x0b9 << 3 | 1);
        let upper = View::parse(&middle).and_then(|view| view.upper()).expect("the rest is opaque");
        let fragment = upper.fragment.expect("has one");
        assert_eq!(fragment.offset_bytes(), 0x0b9 * 8);
        assert!(fragment.more_fragments() && !fragment.is_atomic() && !upper.starts_transport());
        // The chain continues in the first fragment, here with hop-by-hop options out of place.
        let first = with(1);
        let error = View::parse(&first).and_then(|view| view.upper()).expect_err("out of place");
        assert!(matches!(error, WireError::Field { field: "next header", .. }));
    }

    #[test]
    fn lengths_of_extensions() {
        let longer = packet(ip::Protocol::ROUTING, &[17, 1, 0, 0, 0, 0, 0, 0]);
        let error = View::parse(&longer).and_then(|view| view.upper()).expect_err("16 of 8 bytes");
        let layer = Layer::Ipv6Extension;
        assert_eq!(error, WireError::HeaderLength { layer, found: 16, min: 8, max: 8 });
        let short = packet(ip::Protocol::AUTHENTICATION, &[17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let error = View::parse(&short).and_then(|view| view.upper()).expect_err("8 of 12 bytes");
        assert_eq!(error, WireError::HeaderLength { layer, found: 8, min: 12, max: 12 });
    }

    #[test]
    fn edits_touch_their_field_only() {
        let mut bytes = packet(ip::Protocol::UDP, &[]);
        let before = *View::parse(&bytes).expect("own packet").header();
        let mut view = ViewMut::parse(&mut bytes).expect("own packet");
        view.set_traffic_class(0xb8);
        view.set_flow_label(0xfff_ffff);
        assert!(view.decrement_hop_limit());
        let after = *view.header();
        assert_eq!((after.version(), after.traffic_class(), after.flow_label()), (6, 0xb8, 0xf_ffff));
        assert_eq!((after.hop_limit, after.payload_length), (63, before.payload_length));
        view.set_hop_limit(0);
        assert!(!view.decrement_hop_limit());
    }
}
