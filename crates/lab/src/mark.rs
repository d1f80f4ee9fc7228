//! The identity that generated frames carry at the beginning of their payload, so that they can be recognised
//! wherever they arrive.
//!
//! It has the same place in a UDP datagram and in an ARP message, and fits the shortest frame: 42 bytes of headers
//! and 18 of mark; over IPv6 the headers have 62 bytes. Routers change the headers before the mark, but not the mark.

use hue_demux::PortId;
use hue_wire::ethernet::{self, EtherType};
use hue_wire::{arp, ip, ipv4, ipv6, udp};
use zerocopy::byteorder::big_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::random::Random;

/// The identity of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Mark {
    /// Number of the frame in its stream, from 0.
    pub number: U64,
    /// Its flow.
    pub flow: U16,
    /// Its stream.
    pub stream: U16,
    /// Distinguishes streams of different seeds and ports, and frames that the generator did not send.
    pub tag: [u8; 6],
}

const _: () = assert!(size_of::<Mark>() == 18);

impl Mark {
    /// The mark of the first frame of stream 0.
    pub const fn new(tag: [u8; 6]) -> Self {
        Self { number: U64::ZERO, flow: U16::ZERO, stream: U16::ZERO, tag }
    }

    /// The mark of a frame, even if its headers were changed; `None` if the frame is too short for a mark.
    pub fn of(frame: &[u8]) -> Option<&Self> {
        let (link, rest) = ethernet::Header::over(frame)?;
        let payload = match link.ethertype() {
            EtherType::IPV4 => {
                let packet = ipv4::View::parse(rest).ok()?;
                let header = packet.header();
                if header.protocol != ip::Protocol::UDP || header.is_fragment() {
                    return None;
                }
                packet.payload().get(udp::HEADER_BYTES..)?
            }
            EtherType::IPV6 => {
                let upper = ipv6::View::parse(rest).ok()?.upper().ok()?;
                if upper.protocol != ip::Protocol::UDP || upper.fragment.is_some() {
                    return None;
                }
                upper.payload.get(udp::HEADER_BYTES..)?
            }
            EtherType::ARP => rest.get(arp::MESSAGE_BYTES..)?,
            _ => return None,
        };
        Self::ref_from_prefix(payload).ok().map(|(mark, _)| mark)
    }
}

/// The tag of the streams of a seed and a port.
pub const fn tag(seed: u64, port: PortId) -> [u8; 6] {
    // Uses other random numbers than the stream itself.
    let mut random = Random::new(!(seed ^ (port.get() as u64) << 56));
    let [_, _, tag @ ..] = random.next().to_be_bytes();
    tag
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use hue_planes::{Kind, Settings};
    use hue_substrate::{Entries, Program, VirtualPort};
    use hue_tables::Vid;
    use hue_wire::Mac;

    use super::*;
    use crate::synthetic::Generator;
    use crate::traffic::{Source, Traffic};

    fn frame(traffic: &str) -> Vec<u8> {
        let traffic = Traffic::from_str(traffic).unwrap();
        let Source::Synthetic(spec) = traffic.source else { panic!("it is made") };
        let mut generator = Generator::new(&spec, PortId::new(2), &[], &[]).unwrap().of_stream(3);
        let mut frame = Vec::new();
        (0..7).for_each(|_| generator.next(&mut frame));
        frame
    }

    #[test]
    fn the_shortest_frames_carry_it() {
        for sort in ["nobody", "multicast", "broadcast"] {
            let mut frame = frame(&format!("rate:1G,size:64,flows:1,seed:5,sort:{sort}"));
            assert_eq!(frame.len(), 60);
            let mark = *Mark::of(&frame).unwrap();
            assert_eq!((mark.number.get(), mark.flow.get(), mark.stream.get()), (6, 0, 3), "{sort}");
            assert_eq!(mark.tag, tag(5, PortId::new(2)), "{sort}");
            // As after forwarding: other MAC addresses, a lower TTL, and padding.
            frame[..12].fill(9);
            if sort != "broadcast" {
                frame[22] -= 1;
            }
            frame.resize(64, 0);
            assert_eq!(Mark::of(&frame), Some(&mark), "{sort}");
        }
        assert_ne!(tag(5, PortId::new(2)), tag(5, PortId::new(1)));
        assert_ne!(tag(5, PortId::new(2)), tag(6, PortId::new(2)));
    }

    /// A network of kind `ipv6` on the port.
    fn ipv6_network() -> Program {
        let port = PortId::new(2);
        Program {
            vid: Vid::new(6).unwrap(),
            name: "six".to_owned(),
            settings: Settings::of(Kind::Ipv6),
            ports: vec![VirtualPort {
                name: "v".to_owned(),
                port,
                mac: Mac([2, 0, 0, 0, 6, 1]),
                mtu_bytes: 1500,
                tunnel: None,
            }],
            rows: Vec::new(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::none(Kind::Ipv6),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        }
    }

    #[test]
    fn ipv6_frames_are_long_enough_for_it() {
        let traffic = Traffic::from_str("rate:1G,size:64,flows:1,seed:5,sort:multicast").unwrap();
        let Source::Synthetic(spec) = traffic.source else { panic!("it is made") };
        let six = ipv6_network();
        let mut generator = Generator::new(&spec, PortId::new(2), &[&six], &[]).unwrap().of_stream(3);
        let mut frame = Vec::new();
        (0..7).for_each(|_| generator.next(&mut frame));
        assert_eq!((frame.len(), &frame[12..14]), (80, &[0x86, 0xdd][..]));
        let mark = *Mark::of(&frame).unwrap();
        assert_eq!((mark.number.get(), mark.stream.get(), mark.tag), (6, 3, tag(5, PortId::new(2))));
        frame[..12].fill(9);
        frame[21] -= 1;
        assert_eq!(Mark::of(&frame), Some(&mark));
        for length in 0..frame.len() {
            assert_eq!(Mark::of(&frame[..length]), None, "{length}");
        }
        // TCP, and a fragment.
        for next_header in [6, 44] {
            frame[20] = next_header;
            assert_eq!(Mark::of(&frame), None, "{next_header}");
        }
    }

    #[test]
    fn other_frames_have_none() {
        assert_eq!(Mark::of(&frame("rate:1G,sort:runt")), None);
        let whole = frame("rate:1G,sort:nobody");
        for length in 0..whole.len() {
            assert_eq!(Mark::of(&whole[..length]), None, "{length}");
        }
        let changed = |at: usize, to: u8| {
            let mut frame = whole.clone();
            frame[at] = to;
            Mark::of(&frame).copied()
        };
        let (ipv6, more_fragments, tcp) = (changed(12, 0x86), changed(20, 0x20), changed(23, 6));
        assert_eq!([ipv6, more_fragments, tcp], [None; 3]);
    }
}
