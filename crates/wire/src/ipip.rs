//! IP in IP: an IPv4 (RFC 2003) or IPv6 packet (RFC 4213, "6in4") as the payload of another IP packet.
//!
//! There is no separate header: the outer protocol number identifies the inner packet. Design select can find
//! the network by the inner destination, as in the papers.

use core::net::Ipv4Addr;

use crate::error::{Layer, WireError};
use crate::{ip, ipv4, ipv6};

/// The inner packet.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// Outer protocol 4.
    V4(ipv4::View<'a>),
    /// Outer protocol 41.
    V6(ipv6::View<'a>),
}

/// The inner packet, mutable.
#[derive(Debug)]
pub enum ViewMut<'a> {
    /// Outer protocol 4.
    V4(ipv4::ViewMut<'a>),
    /// Outer protocol 41.
    V6(ipv6::ViewMut<'a>),
}

/// Whether this protocol number means IP in IP.
#[must_use]
#[inline]
pub const fn is_tunnel(protocol: ip::Protocol) -> bool {
    matches!(protocol, ip::Protocol::IPV4 | ip::Protocol::IPV6)
}

impl<'a> View<'a> {
    /// Reads the payload of an IP packet (whole or first fragment) as the inner packet.
    ///
    /// # Errors
    /// [`WireError::Field`] for another protocol, otherwise the errors of the inner packet.
    #[inline]
    pub fn parse(protocol: ip::Protocol, payload: &'a [u8]) -> Result<Self, WireError> {
        match protocol {
            ip::Protocol::IPV4 => ipv4::View::parse(payload).map(View::V4),
            ip::Protocol::IPV6 => ipv6::View::parse(payload).map(View::V6),
            _ => Err(no_tunnel(protocol)),
        }
    }
}

impl<'a> ViewMut<'a> {
    /// Checks as [`View::parse`] does.
    ///
    /// # Errors
    /// The same.
    pub fn parse(protocol: ip::Protocol, payload: &'a mut [u8]) -> Result<Self, WireError> {
        match protocol {
            ip::Protocol::IPV4 => ipv4::ViewMut::parse(payload).map(ViewMut::V4),
            ip::Protocol::IPV6 => ipv6::ViewMut::parse(payload).map(ViewMut::V6),
            _ => Err(no_tunnel(protocol)),
        }
    }
}

/// Builds the outer header for `inner` (RFC 2003 §3.1), with the inner type of service and "do not fragment",
/// the given TTL, and a correct checksum.
///
/// Returns `None` if outer header, inner header and payload together exceed 65,535 bytes.
#[must_use]
pub fn outer_header(
    inner: &ipv4::View<'_>,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    ttl: u8,
) -> Option<ipv4::Header> {
    let inner = inner.header();
    let total = inner.total_length.get().checked_add(ipv4::HEADER_BYTES as u16)?;
    let mut header = ipv4::Header::new(source, destination, ip::Protocol::IPV4, ttl, total);
    header.tos = inner.tos;
    header.flags_fragment = (inner.flags_fragment.get() & ipv4::FLAG_DONT_FRAGMENT).into();
    header.fill_checksum_plain();
    Some(header)
}

const fn no_tunnel(protocol: ip::Protocol) -> WireError {
    let expected = "4 (IPv4) or 41 (IPv6)";
    WireError::Field { layer: Layer::Ipip, field: "protocol", found: protocol.0 as u32, expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use zerocopy::IntoBytes;

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const B: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

    #[test]
    fn wraps_and_unwraps() {
        let mut inner = ipv4::Header::new(A, B, ip::Protocol::UDP, 9, 20).as_bytes().to_vec();
        let mut edit = ipv4::ViewMut::parse(&mut inner).expect("own header");
        edit.set_tos(0xb8);
        edit.set_dont_fragment(true);
        let view = ipv4::View::parse(&inner).expect("own header");
        let outer = outer_header(&view, B, A, 64).expect("40 bytes");
        assert!(ipv4::verify(&outer));
        assert_eq!((outer.tos, outer.dont_fragment(), outer.ttl), (0xb8, true, 64));
        let mut packet: Vec<u8> = outer.as_bytes().to_vec();
        packet.extend(&inner);
        let outer = ipv4::View::parse(&packet).expect("own packet");
        let inside = View::parse(outer.header().protocol, outer.payload());
        assert!(matches!(inside, Ok(View::V4(view)) if view.header().destination() == B));
        assert!(matches!(
            View::parse(ip::Protocol::IPV6, outer.payload()),
            Err(WireError::Truncated { layer: Layer::Ipv6, .. })
        ));
        assert_eq!(View::parse(ip::Protocol::UDP, &[]).err(), Some(no_tunnel(ip::Protocol::UDP)));
        assert_eq!(ViewMut::parse(ip::Protocol::UDP, &mut []).err(), Some(no_tunnel(ip::Protocol::UDP)));
    }

    #[test]
    fn too_long_to_wrap() {
        let mut packet = std::vec![0; 65_535];
        let header = ipv4::Header::new(A, B, ip::Protocol::UDP, 9, 65_535);
        packet[..20].copy_from_slice(header.as_bytes());
        let view = ipv4::View::parse(&packet).expect("longest packet");
        assert_eq!(outer_header(&view, B, A, 64), None);
    }
}
