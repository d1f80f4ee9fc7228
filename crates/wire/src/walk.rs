//! Walks the headers of a frame from the outermost inwards, through tunnels. `hueplane trace` shows the
//! result, and the fuzzer drives it.
//!
//! Not used on the packet path, where a plane reads only the headers that it needs. The walk stops at the
//! first header that it cannot read, and reports where and why. [`STEPS_MAX`] limits its length and
//! [`TUNNELS_MAX`] its depth of tunnels.
//!
//! Offsets are in bytes from the start of the frame. Bytes after the end given by length fields (Ethernet
//! padding) belong to no step.

use core::fmt;

use crate::error::{Layer, WireError};
use crate::ethernet::EtherType;
use crate::{arp, ethernet, icmp, icmpv6, ip, ipv4, ipv6, tcp, udp, vxlan};

/// Most steps of one walk. The outer frame and [`TUNNELS_MAX`] tunnels can use all of them with extension
/// headers.
pub const STEPS_MAX: usize = 32;
/// Most nested tunnels (IP in IP, VXLAN) that a walk enters.
pub const TUNNELS_MAX: usize = 4;

/// One header, or the bytes after the last header.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// An Ethernet header: the outermost one, or one inside VXLAN.
    Ethernet(ethernet::View<'a>),
    /// An ARP message.
    Arp(arp::View<'a>),
    /// An IPv4 header: the outermost one, or one inside a tunnel.
    Ipv4(ipv4::View<'a>),
    /// An IPv6 header.
    Ipv6(ipv6::View<'a>),
    /// An IPv6 extension header.
    Ipv6Extension(ipv6::Extension<'a>),
    /// An ICMP message.
    Icmp(icmp::View<'a>),
    /// An ICMPv6 message.
    Icmpv6(icmpv6::View<'a>),
    /// A UDP header.
    Udp(udp::View<'a>),
    /// A TCP header.
    Tcp(tcp::View<'a>),
    /// A VXLAN header.
    Vxlan(vxlan::View<'a>),
    /// Bytes that are not parsed further.
    Payload(Payload, &'a [u8]),
}

/// Why bytes are not parsed further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// The Ethernet payload has an unsupported type.
    EtherType(EtherType),
    /// The IP payload has an unsupported protocol.
    Protocol(ip::Protocol),
    /// The bytes are a fragment other than the first.
    Fragment(ip::Protocol),
    /// The bytes are the data of a transport or of ICMP.
    Data,
}

/// One step of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Offset in the frame, in bytes.
    pub offset: usize,
    /// Length of header and options in bytes, without the payload.
    pub bytes: usize,
    /// The header, or the remaining bytes.
    pub content: Content<'a>,
}

/// Where and why a walk ended at an unreadable header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {error}")]
pub struct Broken {
    /// Offset of the unreadable header in the frame, in bytes.
    pub offset: usize,
    /// Why it is unreadable.
    pub error: WireError,
}

/// Walks the headers of a frame.
#[must_use]
pub const fn walk(frame: &[u8]) -> Walk<'_> {
    Walk { next: Next::Frame(frame), offset: 0, steps: 0, tunnels: 0 }
}

/// The iterator of [`walk`]. Ends after bytes that are not parsed further, or after the first error.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    next: Next<'a>,
    offset: usize,
    steps: usize,
    tunnels: usize,
}

/// How to parse the next bytes.
#[derive(Clone, Debug)]
enum Next<'a> {
    Frame(&'a [u8]),
    EtherType(EtherType, &'a [u8]),
    Protocol(ip::Protocol, &'a [u8]),
    Extensions(ipv6::Extensions<'a>),
    Vxlan(&'a [u8]),
    Payload(Payload, &'a [u8]),
    Nothing,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Step<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        let next = core::mem::replace(&mut self.next, Next::Nothing);
        if matches!(next, Next::Nothing | Next::Payload(_, [])) {
            return None;
        }
        if self.steps == STEPS_MAX {
            let error = WireError::TooDeep { layer: Layer::Ethernet, max: STEPS_MAX };
            return Some(Err(Broken { offset, error }));
        }
        self.steps += 1;
        Some(match self.step(next) {
            Ok((content, bytes, next)) => {
                self.next = next;
                self.offset += bytes;
                Ok(Step { offset, bytes, content })
            }
            Err(error) => Err(Broken { offset, error }),
        })
    }
}

/// The content of a step, its length in bytes, and what follows.
type Read<'a> = Result<(Content<'a>, usize, Next<'a>), WireError>;

impl<'a> Walk<'a> {
    fn step(&mut self, next: Next<'a>) -> Read<'a> {
        match next {
            Next::Frame(frame) => {
                let view = ethernet::View::parse(frame)?;
                let after = Next::EtherType(view.header().ethertype(), view.payload());
                Ok((Content::Ethernet(view), ethernet::HEADER_BYTES, after))
            }
            Next::EtherType(EtherType::ARP, message) => {
                Ok((Content::Arp(arp::View::parse(message)?), arp::MESSAGE_BYTES, Next::Nothing))
            }
            Next::EtherType(EtherType::IPV4, packet) => ipv4(packet),
            Next::EtherType(EtherType::IPV6, packet) => ipv6(packet),
            Next::EtherType(other, payload) => self.payload(Payload::EtherType(other), payload),
            Next::Protocol(protocol, payload) => self.protocol(protocol, payload),
            Next::Extensions(mut extensions) => match extensions.next() {
                Some(extension) => {
                    let extension = extension?;
                    let after = if extension.hides_rest() {
                        Next::Payload(Payload::Fragment(extension.next_header), extensions.rest())
                    } else {
                        Next::Extensions(extensions)
                    };
                    Ok((Content::Ipv6Extension(extension), extension.bytes.len(), after))
                }
                None => self.protocol(extensions.next_header(), extensions.rest()),
            },
            Next::Vxlan(payload) => {
                let view = vxlan::View::parse(payload)?;
                self.enter_tunnel(Layer::Vxlan)?;
                Ok((Content::Vxlan(view), vxlan::HEADER_BYTES, Next::Frame(view.payload())))
            }
            Next::Payload(why, bytes) => self.payload(why, bytes),
            // Not reached: `next` has ended the walk.
            Next::Nothing => self.payload(Payload::Data, &[]),
        }
    }

    fn protocol(&mut self, protocol: ip::Protocol, payload: &'a [u8]) -> Read<'a> {
        match protocol {
            ip::Protocol::IPV4 | ip::Protocol::IPV6 => {
                let read = if protocol == ip::Protocol::IPV4 { ipv4(payload)? } else { ipv6(payload)? };
                self.enter_tunnel(Layer::Ipip)?;
                Ok(read)
            }
            ip::Protocol::ICMP => {
                let view = icmp::View::parse(payload)?;
                Ok((Content::Icmp(view), icmp::HEADER_BYTES, Next::Payload(Payload::Data, view.payload())))
            }
            ip::Protocol::ICMPV6 => {
                let view = icmpv6::View::parse(payload)?;
                Ok((
                    Content::Icmpv6(view),
                    icmpv6::HEADER_BYTES,
                    Next::Payload(Payload::Data, view.payload()),
                ))
            }
            ip::Protocol::UDP => {
                let view = udp::View::parse(payload)?;
                let after = if view.header().destination.get() == vxlan::PORT {
                    Next::Vxlan(view.payload())
                } else {
                    Next::Payload(Payload::Data, view.payload())
                };
                Ok((Content::Udp(view), udp::HEADER_BYTES, after))
            }
            ip::Protocol::TCP => {
                let view = tcp::View::parse(payload)?;
                let after = Next::Payload(Payload::Data, view.payload());
                Ok((Content::Tcp(view), view.header().header_bytes(), after))
            }
            other => self.payload(Payload::Protocol(other), payload),
        }
    }

    fn payload(&self, why: Payload, bytes: &'a [u8]) -> Read<'a> {
        Ok((Content::Payload(why, bytes), bytes.len(), Next::Nothing))
    }

    const fn enter_tunnel(&mut self, layer: Layer) -> Result<(), WireError> {
        if self.tunnels == TUNNELS_MAX {
            return Err(WireError::TooDeep { layer, max: TUNNELS_MAX });
        }
        self.tunnels += 1;
        Ok(())
    }
}

fn ipv4(packet: &[u8]) -> Read<'_> {
    let view = ipv4::View::parse(packet)?;
    let protocol = view.header().protocol;
    let after = if view.header().starts_transport() {
        Next::Protocol(protocol, view.payload())
    } else {
        Next::Payload(Payload::Fragment(protocol), view.payload())
    };
    Ok((Content::Ipv4(view), view.header_bytes().len(), after))
}

fn ipv6(packet: &[u8]) -> Read<'_> {
    let view = ipv6::View::parse(packet)?;
    Ok((Content::Ipv6(view), ipv6::HEADER_BYTES, Next::Extensions(view.extensions())))
}

impl Content<'_> {
    /// The protocol of a header; `None` for payload.
    #[must_use]
    pub const fn layer(&self) -> Option<Layer> {
        Some(match self {
            Self::Ethernet(_) => Layer::Ethernet,
            Self::Arp(_) => Layer::Arp,
            Self::Ipv4(_) => Layer::Ipv4,
            Self::Ipv6(_) => Layer::Ipv6,
            Self::Ipv6Extension(_) => Layer::Ipv6Extension,
            Self::Icmp(_) => Layer::Icmp,
            Self::Icmpv6(_) => Layer::Icmpv6,
            Self::Udp(_) => Layer::Udp,
            Self::Tcp(_) => Layer::Tcp,
            Self::Vxlan(_) => Layer::Vxlan,
            Self::Payload(..) => return None,
        })
    }
}

/// One line for users: the fields that decide what happens to the frame.
impl fmt::Display for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(layer) = self.layer() {
            write!(f, "{layer}: ")?;
        }
        match self {
            Self::Ethernet(view) => {
                let header = view.header();
                write!(f, "{} > {}, {}", header.source(), header.destination(), header.ethertype())
            }
            Self::Arp(view) => describe_arp(view, f),
            Self::Ipv4(view) => describe_ipv4(view, f),
            Self::Ipv6(view) => {
                let header = view.header();
                write!(f, "{} > {}, {}, ", header.source(), header.destination(), header.next_header)?;
                write!(f, "hop limit {}, payload {} bytes", header.hop_limit, view.payload().len())
            }
            Self::Ipv6Extension(extension) => {
                write!(
                    f,
                    "{}, {} bytes, then {}",
                    extension.kind,
                    extension.bytes.len(),
                    extension.next_header
                )?;
                match extension.fragment() {
                    Some(fragment) => {
                        let more = if fragment.more_fragments() { ", more follow" } else { "" };
                        write!(f, ", fragment at {}{more}", fragment.offset_bytes())
                    }
                    None => Ok(()),
                }
            }
            Self::Icmp(view) => write!(f, "type {}, code {}", view.header().kind.0, view.header().code),
            Self::Icmpv6(view) => write!(f, "type {}, code {}", view.header().kind.0, view.header().code),
            Self::Udp(view) => {
                let header = view.header();
                write!(f, "{} > {}, data {} bytes", header.source, header.destination, view.payload().len())
            }
            Self::Tcp(view) => {
                let header = view.header();
                write!(f, "{} > {}, {}, ", header.source, header.destination, header.flags())?;
                write!(f, "data {} bytes", view.payload().len())
            }
            Self::Vxlan(view) => write!(f, "network {}", view.header().vni()),
            Self::Payload(why, bytes) => write!(f, "{why}, {} bytes", bytes.len()),
        }
    }
}

fn describe_arp(view: &arp::View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let header = view.header();
    match header.operation() {
        arp::Operation::REQUEST => write!(f, "who has {}? asks {}", header.target(), header.sender())?,
        arp::Operation::REPLY => return write!(f, "{} is at {}", header.sender(), header.sender_mac),
        arp::Operation(other) => write!(f, "operation {other}, from {}", header.sender())?,
    }
    write!(f, " ({})", header.sender_mac)
}

fn describe_ipv4(view: &ipv4::View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let header = view.header();
    write!(f, "{} > {}, {}, ttl {}, ", header.source(), header.destination(), header.protocol, header.ttl)?;
    write!(f, "length {} bytes", header.total_length)?;
    if header.is_fragment() {
        let more = if header.more_fragments() { ", more follow" } else { "" };
        write!(f, ", fragment at {}{more}", header.fragment_offset_bytes())?;
    }
    if !view.options_bytes().is_empty() {
        write!(f, ", options {} bytes", view.options_bytes().len())?;
    }
    if view.checksum_ok() { Ok(()) } else { f.write_str(", checksum wrong") }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EtherType(ethertype) => write!(f, "payload ({ethertype})"),
            Self::Protocol(protocol) => write!(f, "payload ({protocol})"),
            Self::Fragment(protocol) => write!(f, "rest of a fragmented {protocol}"),
            Self::Data => f.write_str("data"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ethernet::Header;
    use crate::mac::Mac;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use std::string::{String, ToString};
    use std::vec::Vec;
    use zerocopy::IntoBytes;

    const A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

    fn in_ethernet(ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
        let header = Header::new(Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 1]), ethertype);
        [header.as_bytes(), payload].concat()
    }

    fn in_ipv4(protocol: ip::Protocol, payload: &[u8]) -> Vec<u8> {
        let header = ipv4::Header::new(A, B, protocol, 64, (20 + payload.len()) as u16);
        [header.as_bytes(), payload].concat()
    }

    fn in_udp(port: u16, payload: &[u8]) -> Vec<u8> {
        [udp::Header::new(49_152, port, (8 + payload.len()) as u16).as_bytes(), payload].concat()
    }

    fn in_vxlan(frame: &[u8]) -> Vec<u8> {
        let header = vxlan::Header::new(vxlan::Vni::new(7).expect("24 bits"));
        let datagram = in_udp(vxlan::PORT, &[header.as_bytes(), frame].concat());
        in_ethernet(EtherType::IPV4, &in_ipv4(ip::Protocol::UDP, &datagram))
    }

    fn lines(frame: &[u8]) -> Vec<String> {
        walk(frame)
            .map(|step| match step {
                Ok(step) => std::format!("{}+{} {}", step.offset, step.bytes, step.content),
                Err(broken) => broken.to_string(),
            })
            .collect()
    }

    #[test]
    fn through_both_tunnels() {
        let inside = in_ipv4(ip::Protocol::IPV4, &in_ipv4(ip::Protocol::UDP, &in_udp(53, b"hue")));
        let frame = in_vxlan(&in_ethernet(EtherType::IPV4, &inside));
        let expected = [
            "0+14 ethernet: 02:00:00:00:00:01 > 02:00:00:00:00:02, ipv4",
            "14+20 ipv4: 10.1.0.1 > 10.2.0.2, udp, ttl 64, length 101 bytes",
            "34+8 udp: 49152 > 4789, data 73 bytes",
            "42+8 vxlan: network 7",
            "50+14 ethernet: 02:00:00:00:00:01 > 02:00:00:00:00:02, ipv4",
            "64+20 ipv4: 10.1.0.1 > 10.2.0.2, ipv4, ttl 64, length 51 bytes",
            "84+20 ipv4: 10.1.0.1 > 10.2.0.2, udp, ttl 64, length 31 bytes",
            "104+8 udp: 49152 > 53, data 3 bytes",
            "112+3 data, 3 bytes",
        ];
        assert_eq!(lines(&frame), expected);
    }

    #[test]
    fn stops_where_it_cannot_read() {
        let mut frame = in_ethernet(EtherType::IPV4, &in_ipv4(ip::Protocol::TCP, &[0; 19]));
        let last = |frame: &[u8]| lines(frame).last().cloned().unwrap_or_default();
        assert_eq!(last(&frame), "at byte 34: tcp: truncated: 19 bytes, expected at least 20");
        frame[20] = 0x20;
        frame[21] = 1;
        assert_eq!(last(&frame), "34+19 rest of a fragmented tcp, 19 bytes");
        frame[14] = 0x65;
        assert_eq!(last(&frame), "at byte 14: ipv4: version 6, expected 4");
        assert_eq!(last(&frame[..13]), "at byte 0: ethernet: truncated: 13 bytes, expected at least 14");
        let request = arp::Header::request(Mac([2, 0, 0, 0, 0, 1]), A, B);
        let frame = in_ethernet(EtherType::ARP, request.as_bytes());
        assert_eq!(last(&frame), "14+28 arp: who has 10.2.0.2? asks 10.1.0.1 (02:00:00:00:00:01)");
        assert_eq!(last(&in_ethernet(EtherType::VLAN, &[0; 4])), "14+4 payload (vlan), 4 bytes");
    }

    #[test]
    fn tunnels_to_the_limit_and_one_more() {
        for count in 0..=TUNNELS_MAX + 1 {
            let mut packet = in_ipv4(ip::Protocol::NO_NEXT_HEADER, &[]);
            let mut frame = in_ethernet(EtherType::LLDP, &[]);
            for _ in 0..count {
                packet = in_ipv4(ip::Protocol::IPV4, &packet);
                frame = in_vxlan(&frame);
            }
            for frame in [in_ethernet(EtherType::IPV4, &packet), frame] {
                match walk(&frame).last().expect("a step") {
                    Ok(_) => assert!(count <= TUNNELS_MAX),
                    Err(Broken { error: WireError::TooDeep { max, .. }, .. }) => {
                        assert_eq!((count, max), (TUNNELS_MAX + 1, TUNNELS_MAX));
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }

    #[test]
    fn steps_to_the_limit() {
        // IPv6 in IPv6 with all the extension headers that one packet may have: 9 steps a packet.
        let mut packet = Vec::new();
        for level in 0..=TUNNELS_MAX {
            let inside = if level == 0 { ip::Protocol::NO_NEXT_HEADER } else { ip::Protocol::IPV6 };
            let options = ip::Protocol::DESTINATION_OPTIONS;
            let mut chain = [options.0, 0, 0, 0, 0, 0, 0, 0].repeat(ipv6::EXTENSIONS_MAX - 1);
            chain.extend([inside.0, 0, 0, 0, 0, 0, 0, 0]);
            chain.extend(&packet);
            let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
            let header = ipv6::Header::new(a, b, options, 64, chain.len() as u16);
            packet = [header.as_bytes(), &chain[..]].concat();
        }
        let frame = in_ethernet(EtherType::IPV6, &packet);
        let steps: Vec<_> = walk(&frame).collect();
        assert_eq!(steps.len(), STEPS_MAX + 1);
        assert!(matches!(steps.last(), Some(Err(Broken { error: WireError::TooDeep { .. }, .. }))));
    }
}
