//! The `ipv4` kind, written directly from the conditions of `spec/kinds/ipv4.toml` and as simple as possible, and random
//! packets to compare planes with it.
//!
//! A condition is found by the name of its outcome, and the order is that of the table, so that a change of either is
//! detected.

#![allow(dead_code)] // shared by several test binaries

use hue_demux::PortId;
use hue_planes::ipv4::{Adjacency, AdjacencyKind, Outcome};
use hue_wire::Mac;
use proptest::prelude::*;

fn be16(f: &[u8], i: usize) -> usize {
    usize::from(f[i]) * 256 + usize::from(f[i + 1])
}

/// Whether the condition of an outcome holds, given that all earlier ones are false. The oracle does not include the
/// meter.
fn holds(outcome: Outcome, f: &[u8], hop: &Adjacency) -> bool {
    let present = f.len() - 14;
    let ihl = || 4 * usize::from(f[14] & 15);
    let total = || be16(f, 16);
    let dst = || [f[30], f[31], f[32], f[33]];
    match outcome.name() {
        // Decided before the plane.
        "gated" | "rate_limited" => false,
        "arp" => be16(f, 12) == 0x0806,
        "ethertype" => be16(f, 12) != 0x0800,
        "truncated" => present < 20,
        "version" => f[14] >> 4 != 4,
        "header_length" => ihl() < 20 || ihl() > present,
        "total_length" => total() < ihl() || total() > present,
        "checksum" => ones_sum(&f[14..14 + ihl()]) != 0xffff,
        "local" => {
            dst() == [255, 255, 255, 255]
                || (224..240).contains(&dst()[0])
                || hop.kind() == AdjacencyKind::Local
        }
        "l2_group" => f[0] % 2 == 1,
        "martian_source" => matches!(f[26], 0 | 127 | 224..),
        "martian_destination" => matches!(f[30], 0 | 127 | 240..),
        "ttl" => f[22] < 2,
        "options" => ihl() > 20,
        "no_route" => hop.kind() == AdjacencyKind::None,
        "no_neighbour" => hop.kind() == AdjacencyKind::Glean,
        "mtu" => total() > usize::from(hop.mtu_bytes()),
        "forward" => true,
        name => panic!("the oracle does not know '{name}'"),
    }
}

fn ones_sum(header: &[u8]) -> u32 {
    let mut sum: u32 = 0;
    for i in (0..header.len()).step_by(2) {
        sum += be16(header, i) as u32;
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    sum
}

/// Writes the correct checksum of a header.
pub fn fix_checksum(header: &mut [u8]) {
    header[10] = 0;
    header[11] = 0;
    let sum = !(ones_sum(header) as u16);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The outcome of a frame of 14 bytes or more, and its bytes afterwards.
pub fn expected(frame: &[u8], hop: &Adjacency) -> (Outcome, Vec<u8>) {
    let outcome = Outcome::ALL.into_iter().find(|outcome| holds(*outcome, frame, hop)).unwrap();
    let mut bytes = frame.to_vec();
    if outcome == Outcome::Forward {
        bytes[..6].copy_from_slice(&hop.dst().0);
        bytes[6..12].copy_from_slice(&hop.src().0);
        bytes[22] -= 1;
        fix_checksum(&mut bytes[14..34]);
    }
    (outcome, bytes)
}

/// Any next-hop row; its MTU is often close to the lengths of the packets below.
pub fn hop() -> impl Strategy<Value = Adjacency> {
    let mtu = prop_oneof![4 => Just(1500u16), 1 => 19u16..60, 1 => any::<u16>()];
    let forward = (any::<[u8; 6]>(), any::<[u8; 6]>(), any::<u8>(), mtu)
        .prop_map(|(src, dst, port, mtu)| Adjacency::forward(PortId::new(port), Mac(src), Mac(dst), mtu));
    prop_oneof![
        8 => forward,
        1 => Just(Adjacency::NONE),
        1 => Just(Adjacency::local()),
        1 => any::<u8>().prop_map(|port| Adjacency::glean(PortId::new(port))),
    ]
}

/// A frame that is often valid, often wrong in one field, sometimes truncated, and rarely noise.
pub fn frame() -> impl Strategy<Value = Vec<u8>> {
    let near = prop_oneof![6 => Just(0i32), 1 => -3i32..4, 1 => any::<i16>().prop_map(i32::from)];
    let fields = (
        any::<[u8; 12]>(),
        prop_oneof![12 => Just(0x0800u16), 1 => Just(0x0806), 1 => Just(0x8100), 1 => any::<u16>()],
        prop_oneof![12 => Just(4u8), 1 => 0u8..16],
        prop_oneof![8 => Just(5u8), 2 => 6u8..16, 1 => 0u8..5],
        prop_oneof![6 => Just(64u8), 1 => 0u8..4, 1 => any::<u8>()],
        near,
        prop_oneof![8 => any::<u32>(), 1 => Just(u32::MAX), 1 => 0u32..0x0100_0002, 1 => 0x7eff_fffeu32..0x8000_0002,
            1 => 0xdfff_fffeu32..0xe000_0002, 1 => 0xefff_fffeu32..0xf000_0002],
    );
    let rest = (
        any::<[u8; 8]>(),
        any::<u8>(),
        prop::collection::vec(any::<u8>(), 0..60),
        any::<u8>(),
        any::<u16>(),
        any::<u16>(),
    );
    let sound = (fields, rest).prop_map(|((macs, ethertype, version, ihl, ttl, near, dst), rest)| {
        let (random, group, payload, cut, flip, padding) = rest;
        let header_bytes = usize::from(ihl) * 4;
        let mut f = macs.to_vec();
        // Seldom a group frame, seldom from an address that no host has; what `random` says.
        if group % 8 != 0 {
            f[0] &= !1;
        }
        f.extend(ethertype.to_be_bytes());
        f.push(version << 4 | ihl);
        f.resize(14 + header_bytes.max(20), 0);
        let total = (header_bytes + payload.len()) as i32 + near;
        f[16..18].copy_from_slice(&(total as u16).to_be_bytes());
        f[18..22].copy_from_slice(&random[..4]);
        f[22] = ttl;
        f[23] = random[4];
        f[26..30].copy_from_slice(&random[4..]);
        if group >> 3 < 28 {
            f[26] = 10;
        }
        f[30..34].copy_from_slice(&dst.to_be_bytes());
        for (byte, random) in f[34..].iter_mut().zip(&payload) {
            *byte = *random;
        }
        let end = f.len();
        fix_checksum(&mut f[14..end]);
        if flip % 16 == 0 {
            let at = usize::from(flip >> 4) % 20;
            f[14 + at] ^= 1 << (flip >> 13);
        }
        f.extend(payload);
        if padding % 4 == 0 {
            f.resize(f.len() + usize::from(padding >> 10), 0xee);
        }
        if cut % 8 == 0 {
            f.truncate(14 + usize::from(cut >> 3));
        }
        f
    });
    prop_oneof![20 => sound, 1 => prop::collection::vec(any::<u8>(), 14..100)]
}
