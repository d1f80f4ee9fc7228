//! Packets of PW-OSPF: bytes of other implementations, each reason to drop one, and properties.

use std::net::Ipv4Addr;

use hue_routing::pwospf::packet::{
    ADVERTISEMENT_BYTES, ADVERTISEMENTS_MAX, Advertisement, Body, HEADER_BYTES, Hello, Lsu, Packet, RouterId,
    datagram, mask,
};
use hue_routing::pwospf::{Drop, Drops};
use hue_tables::{Prefix, Prefix4};
use proptest::prelude::*;

fn id(text: &str) -> RouterId {
    RouterId::new(text.parse().unwrap()).unwrap()
}

fn prefix(text: &str) -> Prefix4 {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse::<Ipv4Addr>().unwrap().to_bits(), len.parse().unwrap()).unwrap()
}

fn link(text: &str, router: Option<&str>) -> Advertisement {
    Advertisement { prefix: prefix(text), router: router.map(id) }
}

fn hello() -> Packet {
    let body = Body::Hello(Hello { mask: mask(24), interval_s: 5 });
    Packet { router: id("10.1.1.1"), area: Ipv4Addr::UNSPECIFIED, body }
}

fn lsu() -> Packet {
    let links =
        vec![link("10.1.1.0/24", Some("10.1.1.2")), link("10.9.0.0/16", None), link("0.0.0.0/0", None)];
    let body = Body::Lsu(Lsu { sequence: 0x1234, ttl: 64, links });
    Packet { router: id("10.1.1.1"), area: Ipv4Addr::UNSPECIFIED, body }
}

/// The bytes with a correct length and checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[12..14].fill(0);
    // Written separately from the code: 16-bit words without the authentication, carries added at the end.
    let covered = bytes[..16].iter().chain(&bytes[HEADER_BYTES..]).copied().collect::<Vec<u8>>();
    let mut sum: u64 =
        covered.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes[12..14].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    bytes
}

/// A packet after a change of its bytes.
fn with(packet: &Packet, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = packet.bytes();
    change(&mut bytes);
    sealed(bytes)
}

#[test]
fn fields_are_where_the_specification_puts_them() {
    let bytes = lsu().bytes();
    assert_eq!(bytes.len(), 32 + 3 * ADVERTISEMENT_BYTES);
    assert_eq!(bytes[..12], [2, 4, 0, 68, 10, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(bytes[14..24], [0; 10]);
    assert_eq!(bytes[24..32], [0x12, 0x34, 0, 64, 0, 0, 0, 3]);
    assert_eq!(bytes[32..44], [10, 1, 1, 0, 255, 255, 255, 0, 10, 1, 1, 2]);
    assert_eq!(bytes[44..56], [10, 9, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[56..68], [0; 12]);
    assert_eq!(bytes, sealed(bytes.clone()));
    let bytes = hello().bytes();
    assert_eq!(bytes[..4], [2, 1, 0, 32]);
    assert_eq!(bytes[24..], [255, 255, 255, 0, 0, 5, 0, 0]);
    // What is in the authentication does not matter, if its kind is 0.
    let mut marked = bytes.clone();
    marked[16..24].copy_from_slice(b"anything");
    assert_eq!(Packet::read(&marked), Ok(hello()));
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

/// Packets that two public implementations built, in Python with scapy: NukeWolf/PWOSPF-Router and fno2010/pwospf-p4. The
/// last one is router A's LSU in the specification's example.
#[test]
fn packets_of_other_implementations_are_read_and_written_as_they_are() {
    let packet = |router: &str, area: u8, body| Packet {
        router: id(router),
        area: Ipv4Addr::new(0, 0, 0, area),
        body,
    };
    let lsu =
        |sequence, ttl, links: &[Advertisement]| Body::Lsu(Lsu { sequence, ttl, links: links.to_vec() });
    let cases = [
        (
            "020100200a01010100000001f3d500000000000000000000ffffff0000050000",
            packet("10.1.1.1", 1, Body::Hello(Hello { mask: mask(24), interval_s: 5 })),
        ),
        (
            "020400380a01010100000001c26f0000000000000000000000070040000000020a010200ffffff000a0102010a010300\
             ffffff000a010301",
            packet(
                "10.1.1.1",
                1,
                lsu(7, 64, &[link("10.1.2.0/24", Some("10.1.2.1")), link("10.1.3.0/24", Some("10.1.3.1"))]),
            ),
        ),
        (
            "020100200101010100000000fbd300000000000000000000fffffffe000a0000",
            packet("1.1.1.1", 0, Body::Hello(Hello { mask: mask(31), interval_s: 10 })),
        ),
        (
            "02040044c0a8800400000000fae600000000000000000000ffff002000000003c0a88000fffffffc0000000000000000\
             0000000000000000c0a88004fffffffec0a88005",
            packet(
                "192.168.128.4",
                0,
                lsu(
                    0xffff,
                    32,
                    &[
                        link("192.168.128.0/30", None),
                        link("0.0.0.0/0", None),
                        link("192.168.128.4/31", Some("192.168.128.5")),
                    ],
                ),
            ),
        ),
    ];
    for (theirs, ours) in cases {
        let theirs = bytes(theirs);
        assert_eq!(Packet::read(&theirs), Ok(ours.clone()));
        assert_eq!(ours.bytes(), theirs);
    }
}

#[test]
fn each_malformed_packet_has_its_reason() {
    let (hello, lsu) = (hello(), lsu());
    let mut broken = lsu.bytes();
    broken[40] ^= 1;
    let mut long = hello.bytes();
    long.push(0);
    let cases: Vec<(Vec<u8>, Drop)> = vec![
        (Vec::new(), Drop::Short),
        (hello.bytes()[..23].to_vec(), Drop::Short),
        (with(&hello, |bytes| bytes[0] = 3), Drop::Version),
        (long, Drop::Length),
        (lsu.bytes()[..60].to_vec(), Drop::Length),
        (with(&hello, |bytes| bytes.truncate(24)), Drop::Length),
        (with(&hello, |bytes| bytes.extend([0; 12])), Drop::Length),
        (with(&lsu, |bytes| bytes.truncate(31)), Drop::Length),
        (with(&hello, |bytes| bytes[15] = 1), Drop::Authentication),
        (broken, Drop::Checksum),
        (with(&hello, |bytes| bytes[1] = 2), Drop::Type),
        (with(&hello, |bytes| bytes[1] = 5), Drop::Type),
        (with(&lsu, |bytes| bytes[31] = 2), Drop::Count),
        (with(&lsu, |bytes| bytes[28] = 0x80), Drop::Count),
        (with(&lsu, |bytes| bytes.truncate(67)), Drop::Count),
        (with(&lsu, |bytes| bytes[38] = 1), Drop::Subnet),
        (with(&lsu, |bytes| bytes[32] = 127), Drop::Subnet),
        (with(&lsu, |bytes| bytes[32] = 224), Drop::Subnet),
        (with(&lsu, |bytes| bytes[32] = 0), Drop::Subnet),
        (with(&lsu, |bytes| bytes[59] = 1), Drop::Subnet),
        (with(&lsu, |bytes| bytes[40..44].fill(0xff)), Drop::RouterId),
        (with(&hello, |bytes| bytes[4..8].fill(0)), Drop::RouterId),
        (with(&lsu, |bytes| bytes[4..8].fill(0xff)), Drop::RouterId),
    ];
    for (at, (bytes, reason)) in cases.into_iter().enumerate() {
        assert_eq!(Packet::read(&bytes), Err(reason), "case {at}");
    }
}

#[test]
fn bits_of_hosts_in_a_subnet_are_ignored() {
    let read = Packet::read(&with(&lsu(), |bytes| bytes[35] = 77)).unwrap();
    assert_eq!(read, lsu());
}

#[test]
fn an_lsu_has_at_most_so_many_advertisements() {
    let many = |count: usize| {
        let links = (0..count).map(|at| Advertisement {
            prefix: Prefix4::containing(0x0a00_0000 + ((at as u32) << 8), 24),
            router: None,
        });
        let body = Body::Lsu(Lsu { sequence: 1, ttl: 2, links: links.collect() });
        Packet { router: id("10.1.1.1"), area: Ipv4Addr::UNSPECIFIED, body }
    };
    let most = many(ADVERTISEMENTS_MAX);
    assert_eq!(Packet::read(&most.bytes()), Ok(most.clone()));
    assert_eq!(many(ADVERTISEMENTS_MAX + 1).bytes(), most.bytes());
    let over = with(&most, |bytes| {
        bytes.extend([10, 200, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0]);
        bytes[28..32].copy_from_slice(&(ADVERTISEMENTS_MAX as u32 + 1).to_be_bytes());
    });
    assert_eq!(Packet::read(&over), Err(Drop::TooMany));
}

#[test]
fn a_raw_sockets_packet_has_a_header_before_it() {
    let mut bytes = vec![0x46, 0, 0, 0, 0, 0, 0, 0, 1, 89, 0, 0, 10, 1, 1, 7, 224, 0, 0, 5, 1, 1, 1, 1];
    bytes.extend(hello().bytes());
    let (source, payload) = datagram(&bytes).unwrap();
    assert_eq!((source, Packet::read(payload)), (Ipv4Addr::new(10, 1, 1, 7), Ok(hello())));
    for wrong in [&[][..], &bytes[..19], &bytes[..23], &[0x65; 40], &[0x44; 40]] {
        assert_eq!(datagram(wrong), Err(Drop::Short));
    }
}

#[test]
fn reasons_have_different_names_and_are_counted() {
    let mut drops = Drops::default();
    for (times, reason) in Drop::ALL.into_iter().enumerate() {
        (0..=times).for_each(|_| drops.count(reason));
        assert_eq!(drops.get(reason), times as u64 + 1);
    }
    let names: std::collections::BTreeSet<_> = drops.iter().map(|(reason, _)| reason.name()).collect();
    assert_eq!(names.len(), Drop::ALL.len());
    assert_eq!(drops.sum(), (1..=Drop::ALL.len() as u64).sum());
}

fn any_id() -> impl Strategy<Value = RouterId> {
    (1..u32::MAX).prop_map(|id| RouterId::new(Ipv4Addr::from_bits(id)).unwrap())
}

fn any_link() -> impl Strategy<Value = Advertisement> {
    let prefix = prop_oneof![
        9 => (0x0100_0000..0x7f00_0000u32, 8..=32u8).prop_map(|(address, len)| Prefix4::containing(address, len)),
        1 => Just(Prefix4::containing(0, 0)),
    ];
    (prefix, proptest::option::of(any_id())).prop_map(|(prefix, router)| Advertisement { prefix, router })
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let hello =
        (any::<u32>(), any::<u16>()).prop_map(|(mask, interval_s)| Body::Hello(Hello { mask, interval_s }));
    let lsu = (any::<u16>(), any::<u16>(), proptest::collection::vec(any_link(), 0..40));
    let lsu = lsu.prop_map(|(sequence, ttl, links)| Body::Lsu(Lsu { sequence, ttl, links }));
    (any_id(), any::<u32>(), prop_oneof![hello, lsu]).prop_map(|(router, area, body)| Packet {
        router,
        area: Ipv4Addr::from_bits(area),
        body,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(packet in any_packet()) {
        let bytes = packet.bytes();
        prop_assert_eq!(sealed(bytes.clone()), bytes.clone());
        prop_assert_eq!(Packet::read(&bytes), Ok(packet));
    }

    #[test]
    fn a_flipped_bit_outside_the_authentication_is_noticed(packet in any_packet(), at in any::<proptest::sample::Index>(), bit in 0..8u8) {
        let mut bytes = packet.bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        prop_assert_eq!(Packet::read(&bytes).is_err(), !(16..24).contains(&at));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..6u8) {
        let _ = datagram(&bytes).map(|(_, payload)| Packet::read(payload));
        let mut bytes = bytes;
        if bytes.len() >= 24 {
            bytes[0] = 2;
            bytes[1] = kind;
            bytes[14..16].fill(0);
            let bytes = sealed(bytes);
            // What is read says the same when it is written, but for bits of hosts, padding and authentication.
            if let Ok(packet) = Packet::read(&bytes) {
                prop_assert_eq!(Packet::read(&packet.bytes()), Ok(packet));
            }
        }
    }
}
