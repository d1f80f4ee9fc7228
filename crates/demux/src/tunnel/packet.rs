//! Encapsulation of the frames of a network in packets of its carrier, and the way back. Nothing here allocates.
//!
//! Sources: RFC 2003, RFC 4213 and RFC 2473 (IP in IP), RFC 7348 (VXLAN), RFC 6040 (ECN), RFC 6935 (no UDP
//! checksum over IPv6), ADR 0059. Units: bytes.

use std::net::IpAddr;
use std::ops::Range;

use hue_wire::{Mac, ethernet, ip, ipv4, ipv6, toeplitz, udp, vxlan};
use zerocopy::{FromBytes, IntoBytes};

use super::types::{Dscp, Encapsulation, IPIP_PEER, Tunnel};

/// Most bytes that encapsulation puts in front of a frame: Ethernet, IPv6, UDP and VXLAN.
pub const OVERHEAD_BYTES_MAX: usize =
    ethernet::HEADER_BYTES + ipv6::HEADER_BYTES + udp::HEADER_BYTES + vxlan::HEADER_BYTES;

/// Congestion experienced, in the ECN field (RFC 3168).
const CE: u8 = 3;
/// ECN-capable transport, ECT(1).
const ECT_1: u8 = 1;
const NOT_ECT: u8 = 0;

/// What a packet is encapsulated in: bytes that replace those of the frame before [`Encapsulated::payload`].
#[derive(Clone, Debug)]
pub struct Encapsulated {
    bytes: [u8; OVERHEAD_BYTES_MAX],
    len: usize,
    /// The part of the frame that stays.
    pub payload: Range<usize>,
}

impl Encapsulated {
    /// The outer headers, from an Ethernet header on.
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// The IP packet in a frame without VLAN tags.
#[derive(Clone, Copy)]
struct Inner {
    is_ipv6: bool,
    tos: u8,
    /// Length by its header.
    bytes: usize,
    hash: u32,
}

impl Inner {
    /// Reads what stands in an IPv4 or IPv6 header; `None` if `packet` is neither, or shorter than it says.
    fn of(ethertype: ethernet::EtherType, packet: &[u8]) -> Option<Self> {
        let inner = match ethertype {
            ethernet::EtherType::IPV4 => {
                let (header, _) = ipv4::Header::over(packet).filter(|(header, _)| header.version() == 4)?;
                let bytes = usize::from(header.total_length.get());
                if header.header_bytes() < ipv4::HEADER_BYTES || bytes < header.header_bytes() {
                    return None;
                }
                Self { is_ipv6: false, tos: header.tos, bytes, hash: toeplitz::ipv4(packet) }
            }
            ethernet::EtherType::IPV6 => {
                let (header, _) = ipv6::Header::over(packet).filter(|(header, _)| header.version() == 6)?;
                let bytes = ipv6::HEADER_BYTES + usize::from(header.payload_length.get());
                let tos = header.traffic_class();
                Self { is_ipv6: true, tos, bytes, hash: toeplitz::ipv6(packet) }
            }
            _ => return None,
        };
        (inner.bytes <= packet.len()).then_some(inner)
    }
}

/// Why a frame cannot enter a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotIp;

impl Tunnel {
    /// The outer headers for a frame, which begins with its destination MAC. TTL is one more than it will be on the
    /// wire, because the plane of the carrying network decrements it. Outer IPv4 packets are not to be fragmented
    /// (RFC 2003 section 3.1), ECN is copied (RFC 6040 section 4.1, normal mode).
    ///
    /// # Errors
    /// [`NotIp`] if the tunnel carries only IP packets and the frame is none, or a malformed one.
    pub fn encapsulate(&self, frame: &[u8]) -> Result<Encapsulated, NotIp> {
        let inner =
            ethernet::Header::over(frame).and_then(|(header, packet)| Inner::of(header.ethertype(), packet));
        let (protocol, payload) = match self.encapsulation {
            Encapsulation::Ipip => {
                let inner = inner.ok_or(NotIp)?;
                let protocol = if inner.is_ipv6 { ip::Protocol::IPV6 } else { ip::Protocol::IPV4 };
                // Without the frame's padding.
                (protocol, ethernet::HEADER_BYTES..ethernet::HEADER_BYTES + inner.bytes)
            }
            Encapsulation::Vxlan { .. } => (ip::Protocol::UDP, 0..frame.len()),
        };
        let hash = inner.map_or_else(
            // Addresses and EtherType.
            || toeplitz::hash(frame.get(..ethernet::HEADER_BYTES).unwrap_or_default()),
            |inner| inner.hash,
        );
        let inner_tos = inner.map_or(0, |inner| inner.tos);
        let tos = match self.dscp {
            Dscp::Inherit => inner_tos,
            Dscp::Fixed(value) => value << 2 | inner_tos & 3,
        };
        let above = match self.encapsulation {
            Encapsulation::Ipip => 0,
            Encapsulation::Vxlan { .. } => udp::HEADER_BYTES + vxlan::HEADER_BYTES,
        };
        let bytes = above + payload.len();
        let ttl = self.ttl.saturating_add(1);
        let mut made = Encapsulated { bytes: [0; OVERHEAD_BYTES_MAX], len: 0, payload };
        match (self.local, self.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let total = u16::try_from(ipv4::HEADER_BYTES + bytes).map_err(|_| NotIp)?;
                made.push(ethernet::Header::new(IPIP_PEER, IPIP_PEER, ethernet::EtherType::IPV4).as_bytes());
                let mut header = ipv4::Header::new(local, remote, protocol, ttl, total);
                header.tos = tos;
                header.flags_fragment = ipv4::FLAG_DONT_FRAGMENT.into();
                header.fill_checksum_plain();
                made.push(header.as_bytes());
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                let length = u16::try_from(bytes).map_err(|_| NotIp)?;
                made.push(ethernet::Header::new(IPIP_PEER, IPIP_PEER, ethernet::EtherType::IPV6).as_bytes());
                let mut header = ipv6::Header::new(local, remote, protocol, ttl, length);
                // The flow label spreads the tunnel's flows over equal paths (RFC 6438).
                header.version_class_flow =
                    (6 << 28 | u32::from(tos) << 20 | (hash ^ hash >> 20) & 0x000f_ffff).into();
                made.push(header.as_bytes());
            }
            _ => return Err(NotIp),
        }
        if let Encapsulation::Vxlan { port, vni } = self.encapsulation {
            let length = u16::try_from(bytes).map_err(|_| NotIp)?;
            made.push(udp::Header::new(vxlan::source_port(hash), port, length).as_bytes());
            made.push(vxlan::Header::new(vni).as_bytes());
        }
        Ok(made)
    }
}

/// Why a packet that came by a tunnel is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A fragment: tunnels do not reassemble.
    Fragment,
    /// The header of the tunnel or of the inner packet is malformed, or the inner packet is longer than the outer one.
    Header,
    /// The outer packet has congestion experienced, which the inner one cannot say (RFC 6040 section 4.2).
    Ecn,
    /// The outer header has IPv4 options, or IPv6 extension headers that cannot be skipped.
    Options,
    /// The UDP checksum is wrong.
    Checksum,
}

/// A packet for an address of the carrying network, that may belong to a tunnel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outer {
    /// The far end, by the packet.
    pub source: IpAddr,
    /// The near end.
    pub destination: IpAddr,
    /// How it is encapsulated.
    pub encapsulation: Encapsulation,
    /// Where the inner packet (IP in IP) or frame is in the frame.
    inner: Range<usize>,
    /// Whether the inner packet is IPv6.
    is_ipv6: bool,
    ecn: u8,
}

/// The protocol by which a packet may belong to a tunnel, found before the rest of it is examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// IP in IP.
    Ipip,
    /// UDP to this port.
    Udp(u16),
}

impl Outer {
    /// Reads a frame with a packet that the plane accepted as one for the router itself. `carries` says whether the network
    /// carries tunnels of a type. Returns `None` if it is no packet of such a tunnel.
    ///
    /// # Errors
    /// `Fragment`, `Options`, `Header`, `Checksum`.
    pub fn parse(frame: &[u8], carries: impl Fn(Type) -> bool) -> Option<Result<Self, Fault>> {
        let (header, packet) = ethernet::Header::over(frame)?;
        let (source, destination, protocol, payload, offset, ecn, is_fragment, starts, is_plain);
        match header.ethertype() {
            ethernet::EtherType::IPV4 => {
                let view = ipv4::View::parse(packet).ok()?;
                let header = view.header();
                (source, destination) = (header.source().into(), header.destination().into());
                (protocol, payload, offset) = (header.protocol, view.payload(), header.header_bytes());
                (ecn, is_fragment, starts) = (header.ecn(), header.is_fragment(), header.starts_transport());
                is_plain = offset == ipv4::HEADER_BYTES;
            }
            ethernet::EtherType::IPV6 => {
                let view = ipv6::View::parse(packet).ok()?;
                let upper = view.upper().ok()?;
                let header = view.header();
                (source, destination) = (header.source().into(), header.destination().into());
                (protocol, payload) = (upper.protocol, upper.payload);
                offset = ipv6::HEADER_BYTES + upper.offset;
                ecn = header.traffic_class() & 3;
                is_fragment = upper.fragment.is_some_and(|fragment| !fragment.is_atomic());
                starts = upper.starts_transport();
                is_plain = view.extensions().flatten().all(|one| can_be_skipped(&one));
            }
            _ => return None,
        }
        let fault = match (is_fragment, is_plain) {
            (true, _) => Some(Fault::Fragment),
            (false, false) => Some(Fault::Options),
            (false, true) => None,
        };
        let at = ethernet::HEADER_BYTES + offset;
        let outer =
            |encapsulation, inner, is_ipv6| Self { source, destination, encapsulation, inner, is_ipv6, ecn };
        if matches!(protocol, ip::Protocol::IPV4 | ip::Protocol::IPV6) {
            if !carries(Type::Ipip) {
                return None;
            }
            if let Some(fault) = fault {
                return Some(Err(fault));
            }
            let is_ipv6 = protocol == ip::Protocol::IPV6;
            let ethertype = if is_ipv6 { ethernet::EtherType::IPV6 } else { ethernet::EtherType::IPV4 };
            let Some(inner) = Inner::of(ethertype, payload) else { return Some(Err(Fault::Header)) };
            return Some(Ok(outer(Encapsulation::Ipip, at..at + inner.bytes, is_ipv6)));
        }
        if protocol != ip::Protocol::UDP || !starts {
            return None; // only the first fragment has a port
        }
        let (datagram, _) = udp::Header::ref_from_prefix(payload).ok()?;
        let port = datagram.destination.get();
        if !carries(Type::Udp(port)) {
            return None;
        }
        if let Some(fault) = fault {
            return Some(Err(fault));
        }
        let Ok(view) = udp::View::parse(payload) else { return Some(Err(Fault::Header)) };
        if datagram.checksum.get() != 0 {
            let addresses = match (source, destination) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => ip::Addresses::V4(source, destination),
                (IpAddr::V6(source), IpAddr::V6(destination)) => ip::Addresses::V6(source, destination),
                _ => return None,
            };
            if !view.checksum_ok(addresses) {
                return Some(Err(Fault::Checksum));
            }
        }
        let Ok(vxlan) = vxlan::View::parse(view.payload()) else { return Some(Err(Fault::Header)) };
        let begin = at + udp::HEADER_BYTES + vxlan::HEADER_BYTES;
        let inner = begin..begin + vxlan.payload().len();
        if inner.len() < ethernet::HEADER_BYTES {
            return Some(Err(Fault::Header));
        }
        Some(Ok(outer(Encapsulation::Vxlan { port, vni: vxlan.header().vni() }, inner, false)))
    }

    /// Turns the frame into that of the network with the tunnel, and returns where it is. A packet of IP in IP gets an
    /// Ethernet header to `mac`, the port of the tunnel. Congestion experienced is handed on to the inner packet.
    ///
    /// # Errors
    /// `Ecn`; then the frame is unchanged.
    pub fn decapsulate(&self, frame: &mut [u8], mac: Mac) -> Result<Range<usize>, Fault> {
        let mut begin = self.inner.start;
        if self.encapsulation == Encapsulation::Ipip {
            let ethertype = if self.is_ipv6 { ethernet::EtherType::IPV6 } else { ethernet::EtherType::IPV4 };
            let packet = frame.get_mut(self.inner.clone()).ok_or(Fault::Header)?;
            hand_ecn_on(self.ecn, ethertype, packet)?;
            begin -= ethernet::HEADER_BYTES; // the outer headers are longer
            let place = frame.get_mut(begin..self.inner.start).ok_or(Fault::Header)?;
            place.copy_from_slice(ethernet::Header::new(mac, IPIP_PEER, ethertype).as_bytes());
        } else {
            let inner = frame.get_mut(self.inner.clone()).ok_or(Fault::Header)?;
            if let Some((header, packet)) = ethernet::Header::over_mut(inner) {
                hand_ecn_on(self.ecn, header.ethertype(), packet)?;
            }
        }
        Ok(begin..self.inner.end)
    }
}

/// Whether the end of a tunnel may ignore what an extension header of the outer packet says: destination options that a
/// receiver skips if it does not know them (RFC 8200 section 4.2). Linux sends such a one by default, the limit of nested tunnels
/// (RFC 2473 section 4.1.1). Fragments have a fault of their own.
fn can_be_skipped(extension: &ipv6::Extension<'_>) -> bool {
    const PAD1: u8 = 0;
    const NOT_SKIPPED: u8 = 0xc0;
    match extension.kind {
        ip::Protocol::FRAGMENT => return true,
        ip::Protocol::DESTINATION_OPTIONS => {}
        _ => return false,
    }
    let mut options = extension.bytes.get(2..).unwrap_or_default();
    loop {
        options = match options {
            [] => return true,
            [PAD1, rest @ ..] => rest,
            [kind, bytes, rest @ ..] if kind & NOT_SKIPPED == 0 && usize::from(*bytes) <= rest.len() => {
                &rest[usize::from(*bytes)..]
            }
            _ => return false,
        }
    }
}

/// Combines the ECN of the outer packet with that of the inner one (RFC 6040 section 4.2, figure 4). Packets that are not IP
/// stay as they are.
fn hand_ecn_on(outer: u8, ethertype: ethernet::EtherType, packet: &mut [u8]) -> Result<(), Fault> {
    let combine = |inner: u8| match (inner, outer) {
        (NOT_ECT, CE) => Err(Fault::Ecn),
        (NOT_ECT | CE, _) => Ok(inner),
        (_, CE) => Ok(CE),
        (_, ECT_1) => Ok(ECT_1),
        _ => Ok(inner),
    };
    match ethertype {
        ethernet::EtherType::IPV4 => {
            let Some((header, _)) = ipv4::Header::over_mut(packet) else { return Ok(()) };
            let tos = header.tos & !3 | combine(header.ecn())?;
            if tos != header.tos {
                let word = |tos| u16::from_be_bytes([header.version_ihl, tos]);
                let sum = hue_wire::checksum::updated_u16(header.checksum.get(), word(header.tos), word(tos));
                header.checksum = sum.into();
                header.tos = tos;
            }
        }
        ethernet::EtherType::IPV6 => {
            let Some((header, _)) = ipv6::Header::over_mut(packet) else { return Ok(()) };
            let ecn = combine(header.traffic_class() & 3)?;
            header.version_class_flow =
                (header.version_class_flow.get() & !(3 << 20) | u32::from(ecn) << 20).into();
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hue_tables::Vid;
    use hue_wire::checksum;
    use hue_wire::vxlan::Vni;
    use proptest::prelude::*;

    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn tunnel(wide: bool, encapsulation: Encapsulation, dscp: Dscp) -> Tunnel {
        let end = |last: u8| match wide {
            true => IpAddr::V6(std::net::Ipv6Addr::from([
                0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last,
            ])),
            false => IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, last)),
        };
        let over = Vid::new(1).unwrap();
        Tunnel { over, encapsulation, local: end(1), remote: end(2), ttl: 64, dscp }
    }

    fn vxlan() -> Encapsulation {
        Encapsulation::Vxlan { vni: Vni::new(0x01_0203).unwrap(), port: 4789 }
    }

    /// A frame with an IPv4 packet (or IPv6, `wide`) of this type of service.
    fn frame(wide: bool, tos: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
        let len = payload.len() as u16;
        if wide {
            let ends = [1, 2].map(|last| std::net::Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, last));
            let mut header = ipv6::Header::new(ends[0], ends[1], ip::Protocol::UDP, 9, len);
            header.version_class_flow = (6 << 28 | u32::from(tos) << 20).into();
            frame.extend([0x86, 0xdd]);
            frame.extend(header.as_bytes());
        } else {
            let ends = [1, 2].map(|last| std::net::Ipv4Addr::new(10, 0, 0, last));
            let mut header = ipv4::Header::new(ends[0], ends[1], ip::Protocol::UDP, 9, 20 + len);
            header.tos = tos;
            header.fill_checksum_plain();
            frame.extend([8, 0]);
            frame.extend(header.as_bytes());
        }
        frame.extend(payload);
        frame
    }

    /// The frame on the wire.
    fn encapsulated(tunnel: &Tunnel, frame: &[u8]) -> Vec<u8> {
        let made = tunnel.encapsulate(frame).unwrap();
        [made.headers(), &frame[made.payload.clone()]].concat()
    }

    fn all_types(_: Type) -> bool {
        true
    }

    /// Where the ECN field of a packet is, as its value.
    fn ecn(frame: &[u8]) -> u8 {
        if frame[12] == 8 { frame[15] & 3 } else { frame[15] >> 4 & 3 }
    }

    #[test]
    fn headers_are_those_of_the_standards() {
        let bytes =
            encapsulated(&tunnel(false, Encapsulation::Ipip, Dscp::Inherit), &frame(false, 0xb9, &[7; 4]));
        let expected = [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0][..],
            // RFC 2003 section 3.1: type of service copied, do not fragment, protocol 4.
            &[0x45, 0xb9, 0, 44, 0, 0, 0x40, 0, 65, 4],
        ];
        assert_eq!(bytes[..24], expected.concat());
        assert_eq!((checksum::full(&bytes[14..34]), bytes.len()), (0, 58));
        assert_eq!(bytes[26..34], [192, 0, 2, 1, 192, 0, 2, 2]);
        // RFC 4213: protocol 41. RFC 2473: next header 4.
        assert_eq!(
            encapsulated(&tunnel(false, Encapsulation::Ipip, Dscp::Inherit), &frame(true, 0, &[]))[23],
            41
        );
        let bytes = encapsulated(&tunnel(true, Encapsulation::Ipip, Dscp::Fixed(46)), &frame(false, 1, &[]));
        assert_eq!((bytes[14], bytes[15] >> 4, &bytes[18..22]), (0x6b, 9, &[0, 20, 4, 65][..]));
        let bytes = encapsulated(&tunnel(true, vxlan(), Dscp::Inherit), &frame(false, 0, &[7; 4]));
        assert_eq!(bytes[18..22], [0, 54, 17, 65]);
        // RFC 7348 section 5: the port, no checksum (RFC 6935), the I flag, the VNI.
        assert_eq!(bytes[56..70], [0x12, 0xb5, 0, 54, 0, 0, 8, 0, 0, 0, 1, 2, 3, 0]);
        // A frame's padding stays outside an IP tunnel.
        let mut padded = frame(false, 0, &[]);
        padded.resize(60, 0);
        assert_eq!(encapsulated(&tunnel(false, Encapsulation::Ipip, Dscp::Inherit), &padded).len(), 54);
        let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 6], &[0; 28]].concat();
        assert!(tunnel(false, Encapsulation::Ipip, Dscp::Inherit).encapsulate(&arp).is_err());
        assert!(tunnel(false, vxlan(), Dscp::Inherit).encapsulate(&arp).is_ok());
    }

    /// The papers' virtual hop (001 section 3.3): a router with tunnels on both sides rewrites outer source and destination.
    #[test]
    fn a_virtual_hop_rewrites_outer_source_and_destination() {
        let tunnel = |local: &str, remote: &str| Tunnel {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            ..tunnel(false, Encapsulation::Ipip, Dscp::Inherit)
        };
        let inner = frame(false, 0, &[0x30, 0x39, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        let mut arrived = encapsulated(&tunnel("192.0.2.1", "198.51.100.2"), &inner);
        let outer = Outer::parse(&arrived, all_types).unwrap().unwrap();
        let place = outer.decapsulate(&mut arrived, MAC).unwrap();
        let mut inside = arrived[place].to_vec();
        // What the plane of the router does.
        ipv4::Header::over_mut(&mut inside[14..]).unwrap().0.decrement_ttl();
        let leaves = encapsulated(&tunnel("198.51.100.2", "203.0.113.3"), &inside);
        #[rustfmt::skip]
        assert_eq!(leaves[14..], [
            0x45, 0, 0, 52, 0, 0, 0x40, 0, 65, 4, 0xd3, 0x8c, 198, 51, 100, 2, 203, 0, 113, 3,
            0x45, 0, 0, 32, 0, 0, 0, 0, 8, 17, 0x9e, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2,
            0x30, 0x39, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4,
        ]);
    }

    #[test]
    fn congestion_is_handed_on_as_rfc_6040_says() {
        // Figure 4: rows are the inner field, columns the outer one; 4 is "drop".
        let table = [[0, 0, 0, 4], [1, 1, 1, 3], [2, 1, 2, 3], [3, 3, 3, 3]];
        for wide in [false, true] {
            for encapsulation in [Encapsulation::Ipip, vxlan()] {
                for (inner, row) in (0u8..).zip(table) {
                    for (outer, expected) in (0u8..).zip(row) {
                        let tunnel = tunnel(wide, encapsulation, Dscp::Inherit);
                        let mut bytes = encapsulated(&tunnel, &frame(!wide, 0xb8 | inner, &[5; 9]));
                        assert_eq!(ecn(&bytes), inner, "RFC 6040 section 4.1");
                        if wide {
                            bytes[15] = bytes[15] & !0x30 | outer << 4;
                        } else {
                            bytes[15] = bytes[15] & !3 | outer;
                        }
                        let found = Outer::parse(&bytes, all_types).unwrap().unwrap();
                        let made = found.decapsulate(&mut bytes, MAC);
                        if expected == 4 {
                            assert_eq!(made, Err(Fault::Ecn), "{inner}, {outer}");
                            continue;
                        }
                        let inner_frame = &bytes[made.unwrap()];
                        assert_eq!(ecn(inner_frame), expected, "{inner}, {outer}");
                        assert!(!wide || checksum::verify(&inner_frame[14..34]), "the checksum follows");
                    }
                }
            }
        }
    }

    /// The frame with an extension header of this type, or IPv4 options, behind the outer IP header.
    fn extended(mut bytes: Vec<u8>, kind: u8, header: &[u8]) -> Vec<u8> {
        let mut header = header.to_vec();
        if bytes[12] == 8 {
            bytes[14] += (header.len() / 4) as u8;
            let total = u16::from_be_bytes([bytes[16], bytes[17]]) + header.len() as u16;
            bytes[16..18].copy_from_slice(&total.to_be_bytes());
            bytes.splice(34..34, header);
            bytes[24..26].fill(0);
            let end = 14 + usize::from(bytes[14] & 15) * 4;
            let sum = checksum::full(&bytes[14..end]);
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        } else {
            let length = u16::from_be_bytes([bytes[18], bytes[19]]) + header.len() as u16;
            bytes[18..20].copy_from_slice(&length.to_be_bytes());
            header[0] = std::mem::replace(&mut bytes[20], kind);
            bytes.splice(54..54, header);
        }
        bytes
    }

    #[test]
    fn outer_options_are_a_fault_unless_they_can_be_skipped() {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const DESTINATION: u8 = 60;
        for encapsulation in [Encapsulation::Ipip, vxlan()] {
            let sent =
                |wide| encapsulated(&tunnel(wide, encapsulation, Dscp::Inherit), &frame(false, 0, &[7; 4]));
            let found = |wide, kind, header: &[u8]| {
                Outer::parse(&extended(sent(wide), kind, header), all_types).unwrap().map(drop)
            };
            // End of options, a loose source route (RFC 791).
            assert_eq!(found(false, 0, &[0; 4]), Err(Fault::Options));
            assert_eq!(found(false, 0, &[131, 7, 4, 192, 0, 2, 1, 0]), Err(Fault::Options));
            // RFC 2473 section 4.1.1, as Linux sends it; padding alone.
            assert_eq!(found(true, DESTINATION, &[0, 0, 4, 1, 4, 1, 1, 0]), Ok(()));
            assert_eq!(found(true, DESTINATION, &[0; 8]), Ok(()));
            // To be discarded if it is not known; longer than its header.
            assert_eq!(found(true, DESTINATION, &[0, 0, 0x44, 1, 4, 1, 1, 0]), Err(Fault::Options));
            assert_eq!(found(true, DESTINATION, &[0, 0, 4, 5, 4, 1, 1, 0]), Err(Fault::Options));
            assert_eq!(found(true, HOP_BY_HOP, &[0; 8]), Err(Fault::Options));
            assert_eq!(found(true, ROUTING, &[0, 0, 253, 1, 0, 0, 0, 0]), Err(Fault::Options));
            // A first fragment; an atomic one is whole (RFC 6946).
            assert_eq!(found(true, FRAGMENT, &[0, 0, 0, 1, 0, 0, 0, 9]), Err(Fault::Fragment));
            assert_eq!(found(true, FRAGMENT, &[0, 0, 0, 0, 0, 0, 0, 9]), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            wide: bool,
            wide_inner: bool,
            plain: bool,
            tos in 0u8..64,
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let encapsulation = if plain { Encapsulation::Ipip } else { vxlan() };
            let tunnel = tunnel(wide, encapsulation, Dscp::Inherit);
            let sent = frame(wide_inner, tos << 2, &payload);
            let mut bytes = encapsulated(&tunnel, &sent);
            let outer_bytes = bytes.len() - 14;
            let inner_bytes = sent.len() - 14;
            prop_assert_eq!(outer_bytes - inner_bytes, tunnel.overhead_bytes());
            let outer = Outer::parse(&bytes, all_types).unwrap().unwrap();
            prop_assert_eq!((outer.source, outer.destination), (tunnel.local, tunnel.remote));
            prop_assert_eq!(outer.encapsulation, encapsulation);
            let inner = outer.decapsulate(&mut bytes, MAC).unwrap();
            // IP in IP has the tunnel's MAC addresses.
            prop_assert_eq!(&bytes[inner.clone()][14..], &sent[14..]);
            prop_assert_eq!(&bytes[inner][..6], &sent[..6]);
        }

        #[test]
        fn no_bytes_lead_outside_the_frame(
            wide: bool,
            plain: bool,
            changes in proptest::collection::vec((0usize..110, any::<u8>()), 0..6),
            cut in 0usize..120,
        ) {
            let encapsulation = if plain { Encapsulation::Ipip } else { vxlan() };
            let mut bytes = encapsulated(&tunnel(wide, encapsulation, Dscp::Inherit), &frame(!wide, 0, &[3; 20]));
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.truncate(cut);
            let whole = bytes.len();
            if let Some(Ok(outer)) = Outer::parse(&bytes, all_types)
                && let Ok(inner) = outer.decapsulate(&mut bytes, MAC)
            {
                prop_assert!(inner.start <= inner.end && inner.end <= whole);
                prop_assert!(inner.len() >= ethernet::HEADER_BYTES);
            }
            let _ = tunnel(wide, encapsulation, Dscp::Inherit).encapsulate(&bytes);
        }
    }
}
