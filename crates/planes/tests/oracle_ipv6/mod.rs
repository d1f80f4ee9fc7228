//! The `ipv6` kind, written directly from the conditions of `spec/kinds/ipv6.toml` and as simple as possible, and random
//! packets to compare planes with it. It reads bytes and knows no header types.
//!
//! A condition is found by the name of its outcome, and the order is that of the table, so that a change of either is
//! detected.

use hue_demux::PortId;
use hue_planes::ipv6::{Adjacency, AdjacencyKind, Outcome};
use hue_wire::Mac;
use proptest::prelude::*;

/// `::1`.
const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

fn be16(f: &[u8], i: usize) -> usize {
    usize::from(f[i]) * 256 + usize::from(f[i + 1])
}

/// Whether the condition of an outcome holds, given that all earlier ones are false. The oracle does not include the
/// meter.
fn holds(outcome: Outcome, f: &[u8], hop: &Adjacency) -> bool {
    let present = f.len() - 14;
    let total = || 40 + be16(f, 18);
    let is_nobody = |at: usize| f[at..at + 16] == [0; 16] || f[at..at + 16] == LOOPBACK;
    // fe80::/10: 8 bits of the first byte, 2 of the second.
    let is_link_local = |at: usize| f[at] == 0xfe && f[at + 1] / 64 == 2;
    let (src, dst) = (22, 38);
    match outcome.name() {
        // Decided before the plane.
        "gated" | "rate_limited" => false,
        "ethertype" => be16(f, 12) != 0x86dd,
        "truncated" => present < 40,
        "version" => f[14] / 16 != 6,
        "payload_length" => total() > present,
        "local" => f[dst] == 0xff || is_link_local(dst) || hop.kind() == AdjacencyKind::Local,
        "l2_group" => f[0] % 2 == 1,
        "martian_source" => is_nobody(src) || f[src] == 0xff,
        "martian_destination" => is_nobody(dst),
        "hop_limit" => f[21] < 2,
        "scope" => is_link_local(src),
        "options" => f[20] == 0,
        "no_route" => hop.kind() == AdjacencyKind::None,
        "no_neighbour" => hop.kind() == AdjacencyKind::Glean,
        "mtu" => total() > usize::from(hop.mtu_bytes()),
        "forward" => true,
        name => panic!("the oracle does not know '{name}'"),
    }
}

/// The outcome of a frame of 14 bytes or more, and its bytes afterwards.
pub fn expected(frame: &[u8], hop: &Adjacency) -> (Outcome, Vec<u8>) {
    let outcome = Outcome::ALL.into_iter().find(|outcome| holds(*outcome, frame, hop)).unwrap();
    let mut bytes = frame.to_vec();
    if outcome == Outcome::Forward {
        bytes[..6].copy_from_slice(&hop.dst().0);
        bytes[6..12].copy_from_slice(&hop.src().0);
        bytes[21] -= 1;
    }
    (outcome, bytes)
}

/// Any next-hop row; its MTU is often close to the lengths of the packets below.
pub fn hop() -> impl Strategy<Value = Adjacency> {
    let mtu = prop_oneof![4 => Just(1500u16), 1 => 39u16..120, 1 => any::<u16>()];
    let forward = (any::<[u8; 6]>(), any::<[u8; 6]>(), any::<u8>(), mtu)
        .prop_map(|(src, dst, port, mtu)| Adjacency::forward(PortId::new(port), Mac(src), Mac(dst), mtu));
    prop_oneof![
        8 => forward,
        1 => Just(Adjacency::NONE),
        1 => Just(Adjacency::local()),
        1 => any::<u8>().prop_map(|port| Adjacency::glean(PortId::new(port))),
    ]
}

/// An address: mostly global, else one that is special or differs from one in a bit.
fn address() -> impl Strategy<Value = [u8; 16]> {
    let bits = |bits: u128| bits.to_be_bytes();
    let special = prop::sample::select(vec![
        0u128,
        1,
        2,
        0xff00 << 112,
        0xff02_u128 << 112 | 1,
        0xfeff << 112,
        0xfe80 << 112,
        0xfebf_u128 << 112 | 7,
        0xfec0 << 112,
        0xfe7f << 112,
        0xfd12 << 112,
        0xffff_7f00_0001,
    ]);
    prop_oneof![
        6 => any::<u128>().prop_map(move |one| bits(one >> 3 | 1 << 125)),
        2 => special.clone().prop_map(bits),
        1 => (special, 0u32..128).prop_map(move |(one, bit)| bits(one ^ 1 << bit)),
    ]
}

/// Extension headers, each of 8 bytes, up to the end of the payload: the plane must not look at them.
fn chain() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let kinds = prop::sample::select(vec![0u8, 43, 44, 51, 60, 135, 139, 140, 50, 59, 58, 17]);
    prop::collection::vec((kinds.clone(), any::<u8>()), 0..10).prop_flat_map(move |chain| {
        kinds.clone().prop_map(move |last| {
            let first = chain.first().map_or(last, |(kind, _)| *kind);
            let nexts = chain.iter().skip(1).map(|(kind, _)| *kind).chain([last]);
            let bytes = chain.iter().zip(nexts).flat_map(|((_, length), next)| {
                // A length that is right, or says more than there is.
                let length = if length % 4 == 0 { *length } else { 0 };
                [next, length, 0, 0, 0, 0, 0, 0]
            });
            (first, bytes.collect())
        })
    })
}

/// A frame that is often valid, often wrong in one field, sometimes truncated, and rarely noise.
pub fn frame() -> impl Strategy<Value = Vec<u8>> {
    let near = prop_oneof![6 => Just(0i32), 1 => -3i32..4, 1 => any::<i16>().prop_map(i32::from)];
    let fields = (
        any::<[u8; 12]>(),
        prop_oneof![12 => Just(0x86ddu16), 1 => Just(0x0806), 1 => Just(0x0800), 1 => any::<u16>()],
        prop_oneof![12 => Just(6u8), 1 => 0u8..16],
        prop_oneof![6 => Just(64u8), 1 => 0u8..4, 1 => any::<u8>()],
        near,
        (address(), address()),
    );
    let payload = prop_oneof![
        3 => (prop_oneof![6 => Just(17u8), 1 => Just(0), 2 => any::<u8>()],
            prop::collection::vec(any::<u8>(), 0..60)),
        2 => chain(),
    ];
    let rest = (any::<[u8; 4]>(), any::<u8>(), payload, any::<u8>(), any::<u16>());
    let sound = (fields, rest).prop_map(|((macs, ethertype, version, hop_limit, near, addresses), rest)| {
        let (random, group, (next_header, payload), cut, padding) = rest;
        let mut f = macs.to_vec();
        // Seldom a group frame.
        if group % 8 != 0 {
            f[0] &= !1;
        }
        f.extend(ethertype.to_be_bytes());
        f.extend([version << 4 | random[0] & 15, random[1], random[2], random[3]]);
        f.extend(((payload.len() as i32 + near) as u16).to_be_bytes());
        f.extend([next_header, hop_limit]);
        f.extend(addresses.0);
        f.extend(addresses.1);
        f.extend(payload);
        if padding % 4 == 0 {
            f.resize(f.len() + usize::from(padding >> 10), 0xee);
        }
        if cut % 8 == 0 {
            f.truncate(14 + usize::from(cut >> 2));
        }
        f
    });
    prop_oneof![20 => sound, 1 => prop::collection::vec(any::<u8>(), 14..100)]
}
