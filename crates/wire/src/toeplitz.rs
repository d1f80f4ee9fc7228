//! The hash that spreads flows: Toeplitz with Microsoft's published key, as network cards compute it for receive side
//! scaling.
//!
//! Flow: a packet whose next hop is a group → **hash** → slot → member. Other users: source ports of tunnels. Every
//! substrate computes the same value. The fields of a packet, in their order, big-endian:
//!
//! | bytes, IPv4 | bytes, IPv6 | field |
//! | --- | --- | --- |
//! | 0 to 3 | 0 to 15 | source address |
//! | 4 to 7 | 16 to 31 | destination address |
//! | 8, 9 | 32, 33 | source port, or 0 |
//! | 10, 11 | 34, 35 | destination port, or 0 |
//! | 12 | 36 | protocol; of IPv6, the Next Header field of the fixed header |
//!
//! Ports are those of TCP, UDP, DCCP, SCTP and UDP-Lite, where they follow the fixed IP header directly. So they are 0 in
//! fragments (the first one too, so that all fragments of a packet take one way), behind IPv4 options, behind IPv6
//! extension headers, in packets that end before them, and in other protocols. Zeros do not change the hash.
//!
//! The key is 320 bits and IPv6 needs 328, so the key repeats. Source: Microsoft, "RSS hashing types" and "Verifying the RSS
//! hash calculation".

use crate::{ip, ipv4, ipv6};

/// The published key.
pub const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];
/// Most bytes that are hashed; later ones are ignored.
pub const INPUT_BYTES_MAX: usize = KEY.len();

/// Bytes of the ports.
const PORTS_BYTES: usize = 4;

/// The hash's share for each value of each half of a byte, the upper half first.
static SHARES: [[u32; 16]; 2 * INPUT_BYTES_MAX] = shares();

/// 32 bits of the key, which repeats.
const fn window(bit: usize) -> u32 {
    let (mut window, mut at) = (0, 0);
    while at < 32 {
        let bit = (bit + at) % (8 * KEY.len());
        window = window << 1 | (KEY[bit / 8] >> (7 - bit % 8) & 1) as u32;
        at += 1;
    }
    window
}

const fn shares() -> [[u32; 16]; 2 * INPUT_BYTES_MAX] {
    let mut shares = [[0; 16]; 2 * INPUT_BYTES_MAX];
    let mut half = 0;
    while half < shares.len() {
        let mut value = 0;
        while value < 16 {
            let mut bit = 0;
            while bit < 4 {
                if value & 8 >> bit != 0 {
                    shares[half][value] ^= window(4 * half + bit);
                }
                bit += 1;
            }
            value += 1;
        }
        half += 1;
    }
    shares
}

/// The hash of bytes, at most [`INPUT_BYTES_MAX`].
#[inline]
#[must_use]
pub fn hash(input: &[u8]) -> u32 {
    let halves = input.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.zip(&SHARES).fold(0, |hash, (half, shares)| hash ^ shares[usize::from(half & 15)])
}

/// Whether packets of a protocol begin with a source and a destination port.
#[must_use]
pub const fn has_ports(protocol: ip::Protocol) -> bool {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    matches!(protocol.0, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

/// The hash of an IPv4 packet, which may have padding behind it; 0 if it is shorter than a header.
#[must_use]
pub fn ipv4(packet: &[u8]) -> u32 {
    let Some((header, rest)) = ipv4::Header::over(packet) else { return 0 };
    let mut input = [0; 13];
    input[..4].copy_from_slice(&header.source().octets());
    input[4..8].copy_from_slice(&header.destination().octets());
    let is_plain = header.version_ihl == ipv4::VERSION_IHL_PLAIN && !header.is_fragment();
    let reaches = usize::from(header.total_length.get()) >= ipv4::HEADER_BYTES + PORTS_BYTES;
    if let Some(ports) = rest.first_chunk::<PORTS_BYTES>()
        && is_plain
        && reaches
        && has_ports(header.protocol)
    {
        input[8..12].copy_from_slice(ports);
    }
    input[12] = header.protocol.0;
    hash(&input)
}

/// The hash of an IPv6 packet, which may have padding behind it; 0 if it is shorter than a header.
#[must_use]
pub fn ipv6(packet: &[u8]) -> u32 {
    let Some((header, rest)) = ipv6::Header::over(packet) else { return 0 };
    let mut input = [0; 37];
    input[..16].copy_from_slice(&header.source().octets());
    input[16..32].copy_from_slice(&header.destination().octets());
    let reaches = usize::from(header.payload_length.get()) >= PORTS_BYTES;
    if let Some(ports) = rest.first_chunk::<PORTS_BYTES>()
        && reaches
        && has_ports(header.next_header)
    {
        input[32..36].copy_from_slice(ports);
    }
    input[36] = header.next_header.0;
    hash(&input)
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Bit by bit, from the definition.
    fn by_definition(input: &[u8]) -> u32 {
        let bits = (0..8 * input.len()).filter(|bit| input[bit / 8] >> (7 - bit % 8) & 1 == 1);
        bits.fold(0, |hash, bit| hash ^ window(bit))
    }

    /// Destination, destination port, source, source port, hash of addresses and ports, hash of addresses: the examples
    /// that Microsoft published.
    #[test]
    fn the_published_examples_are_met() {
        for (to, to_port, from, from_port, with_ports, addresses) in [
            ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x51cc_c178, 0x323e_8fc2),
            ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xc626_b0ea, 0xd718_262a),
            ("12.22.207.184", 38024, "24.19.198.95", 12898, 0x5c2b_394a, 0xd2d0_a5de),
            ("209.142.163.6", 2217, "38.27.205.30", 48228, 0xafc7_327f, 0x8298_9176),
            ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x10e8_28a2, 0x5d18_09c5_u32),
        ] {
            let octets = |text: &str| text.parse::<Ipv4Addr>().unwrap().octets().to_vec();
            check(octets(from), octets(to), (from_port, to_port), (with_ports, addresses));
        }
        for (to, to_port, from, from_port, with_ports, addresses) in [
            ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x4020_7d3d, 0x2cc1_8cd5),
            ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0xdde5_1bbf, 0x0f0c_461c),
            (
                "fe80::200:f8ff:fe21:67cf",
                38024,
                "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
                44251,
                0x02d1_feef,
                0x4b61_e985_u32,
            ),
        ] {
            let octets = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets().to_vec();
            check(octets(from), octets(to), (from_port, to_port), (with_ports, addresses));
        }
    }

    fn check(from: Vec<u8>, to: Vec<u8>, ports: (u16, u16), (with_ports, addresses): (u32, u32)) {
        let mut input = from;
        input.extend(to);
        assert_eq!(hash(&input), addresses);
        input.extend(ports.0.to_be_bytes());
        input.extend(ports.1.to_be_bytes());
        assert_eq!(hash(&input), with_ports);
    }

    /// A UDP packet of IPv4 from 66.9.149.187:2794 to 161.142.100.80:1766, which the first published example describes.
    const PACKET: [u8; 28] = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 66, 9, 149, 187, 161, 142, 100, 80, 10, 234, 6, 230, 0, 8,
        0, 0,
    ];

    #[test]
    fn ports_count_only_where_they_are_readable() {
        let protocol = |number: u8| hash(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number]);
        let (with_ports, without) = (0x51cc_c178 ^ protocol(17), 0x323e_8fc2 ^ protocol(17));
        assert_eq!(ipv4(&PACKET), with_ports);
        let changed = |place: usize, value: u8| {
            let mut packet = PACKET;
            packet[place] = value;
            ipv4(&packet)
        };
        assert_eq!(changed(6, 0x40), with_ports, "don't fragment");
        assert_eq!(changed(8, 1), with_ports, "the TTL is no field");
        assert_eq!(changed(6, 0x20), without, "the first fragment");
        assert_eq!(changed(7, 1), without, "a later fragment");
        assert_eq!(changed(0, 0x46), without, "options");
        assert_eq!(changed(3, 23), without, "the packet ends within the ports");
        assert_eq!(changed(3, 24), with_ports);
        assert_eq!(changed(9, 47), 0x323e_8fc2 ^ protocol(47), "no protocol with ports");
        assert_eq!(ipv4(&PACKET[..23]), without);
        assert_eq!(ipv4(&PACKET[..19]), 0);
    }

    #[test]
    fn ports_of_ipv6_follow_the_fixed_header() {
        let mut packet = [0; 48];
        packet[..8].copy_from_slice(&[0x60, 1, 2, 3, 0, 8, 6, 64]);
        packet[23] = 1;
        packet[39] = 2;
        packet[40..44].copy_from_slice(&[1, 2, 3, 4]);
        let input = |ports: [u8; 4], protocol| {
            let mut input = [0; 37];
            (input[15], input[31], input[36]) = (1, 2, protocol);
            input[32..36].copy_from_slice(&ports);
            by_definition(&input)
        };
        assert_eq!(ipv6(&packet), input([1, 2, 3, 4], 6));
        packet[5] = 3;
        assert_eq!(ipv6(&packet), input([0; 4], 6), "the packet ends within the ports");
        packet[5] = 8;
        for extension in [0, 43, 44, 60] {
            packet[6] = extension;
            assert_eq!(ipv6(&packet), input([0; 4], extension), "extension header {extension}");
        }
        assert_eq!(ipv6(&packet[..39]), 0);
    }

    proptest! {
        #[test]
        fn the_tables_agree_with_the_definition(input in prop::collection::vec(any::<u8>(), 0..=INPUT_BYTES_MAX)) {
            prop_assert_eq!(hash(&input), by_definition(&input));
        }
    }
}
