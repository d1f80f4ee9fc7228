//! The `dual` kind: a router for IPv4 and IPv6.
//!
//! Flow: demux → meter → the checks of the packet's family → one lookup in that family's table → the family's decision →
//! port. The EtherType chooses the family, and the planes of [`ipv4`] and [`ipv6`] do the rest;
//! here are only the names of their outcomes in this kind (`spec/kinds/dual.toml`). The packets of each family have a
//! plane ([`Ipv4Side`], [`Ipv6Side`]), so that a batch can be processed one family after the other. Both tables name rows of the network's
//! one table of next hops. Source: ADR 0052.

mod explain;

use hue_wire::ethernet;

use crate::generated::Kind;
pub use crate::generated::dual::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::generated::dual::{OF_IPV4, OF_IPV6};
use crate::plane::{Answer, ByFamily, Explanation, IpKey, LongestPrefix, Looked, TwoFamilies};
use crate::reason::Reason;
use crate::{ipv4, ipv6};

/// The plane of this kind.
pub struct Plane;

/// The plane of its IPv4 packets: that of [`ipv4`], with this kind's names of outcomes.
pub struct Ipv4Side;

/// The plane of its IPv6 packets: that of [`ipv6`], with this kind's names of outcomes.
pub struct Ipv6Side;

/// What a network says about its plane: that of its IPv4. IPv6 has no settings.
pub type Settings = ipv4::Settings;

/// The properties of a packet with a valid header that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// Of IPv4.
    V4(ipv4::Checked),
    /// Of IPv6.
    V6(ipv6::Checked),
}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Dual;
    const NOTHING: Checked = Checked::V4(ipv4::Checked::EMPTY);
    type Match = ByFamily;
    type Key = IpKey;
    type Carried = Checked;
    type Settings = Settings;

    fn samples() -> Vec<Settings> {
        [false, true].map(|forward_martians| Settings { forward_martians }).to_vec()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Dual(settings) => *settings,
            _ => Settings::default(),
        }
    }

    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        if Self::is_ipv6(frame) {
            Ipv6Side::front(frame, settings).map(Checked::V6)
        } else {
            Ipv4Side::front(frame, settings).map(Checked::V4)
        }
    }

    fn key(checked: Checked) -> IpKey {
        match checked {
            Checked::V4(checked) => IpKey::V4(Ipv4Side::key(checked)),
            Checked::V6(checked) => IpKey::V6(Ipv6Side::key(checked)),
        }
    }

    fn flow(frame: &[u8]) -> u32 {
        if Self::is_ipv6(frame) { Ipv6Side::flow(frame) } else { Ipv4Side::flow(frame) }
    }

    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        match checked {
            Checked::V4(checked) => Ipv4Side::decide(checked, answer),
            Checked::V6(checked) => Ipv6Side::decide(checked, answer),
        }
    }

    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        match checked {
            Checked::V4(checked) => Ipv4Side::back(frame, checked, answer),
            Checked::V6(checked) => Ipv6Side::back(frame, checked, answer),
        }
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        if Self::is_ipv6(frame) {
            Ipv6Side::explain(frame, settings, |checked| look(Checked::V6(checked)))
        } else {
            Ipv4Side::explain(frame, settings, |checked| look(Checked::V4(checked)))
        }
    }
}

impl TwoFamilies for Plane {
    type Ipv4 = Ipv4Side;
    type Ipv6 = Ipv6Side;

    /// The checks of IPv4 have all other frames, ARP and foreign protocols too.
    #[inline(always)]
    fn is_ipv6(frame: &[u8]) -> bool {
        frame.get(12..14) == Some(&ethernet::EtherType::IPV6.0.to_be_bytes())
    }
}

impl crate::Plane for Ipv4Side {
    const KIND: Kind = Kind::Dual;
    const NOTHING: ipv4::Checked = ipv4::Checked::EMPTY;
    type Match = LongestPrefix;
    type Key = u32;
    type Carried = ipv4::Checked;
    type Settings = Settings;

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        Plane::settings(of)
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<ipv4::Checked, Reason> {
        let checked = ipv4::check(frame).map_err(of_ipv4)?;
        Ok(checked.with_martians(settings.forward_martians))
    }

    #[inline(always)]
    fn plain(frame: &[u8]) -> Option<ipv4::Checked> {
        ipv4::Plane::plain(frame)
    }

    #[inline(always)]
    fn key(checked: ipv4::Checked) -> u32 {
        ipv4::Plane::key(checked)
    }

    fn flow(frame: &[u8]) -> u32 {
        ipv4::Plane::flow(frame)
    }

    #[inline(always)]
    fn decide(checked: ipv4::Checked, answer: Answer<'_>) -> Reason {
        of_ipv4(ipv4::decide(checked, answer.hop)).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: ipv4::Checked, answer: Answer<'_>) -> Reason {
        of_ipv4(ipv4::finish(frame, checked, answer.hop)).into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(ipv4::Checked) -> Looked) -> Explanation {
        explain::ipv4(frame, settings, look)
    }
}

impl crate::Plane for Ipv6Side {
    const KIND: Kind = Kind::Dual;
    const NOTHING: ipv6::Checked = ipv6::Checked::EMPTY;
    type Match = LongestPrefix;
    type Key = u128;
    type Carried = ipv6::Checked;
    type Settings = Settings;

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        Plane::settings(of)
    }

    #[inline(always)]
    fn front(frame: &[u8], _: Settings) -> Result<ipv6::Checked, Reason> {
        Ok(ipv6::check(frame).map_err(of_ipv6)?)
    }

    #[inline(always)]
    fn plain(frame: &[u8]) -> Option<ipv6::Checked> {
        ipv6::Plane::plain(frame)
    }

    #[inline(always)]
    fn key(checked: ipv6::Checked) -> u128 {
        ipv6::Plane::key(checked)
    }

    fn flow(frame: &[u8]) -> u32 {
        ipv6::Plane::flow(frame)
    }

    #[inline(always)]
    fn decide(checked: ipv6::Checked, answer: Answer<'_>) -> Reason {
        of_ipv6(ipv6::decide(checked, answer.hop)).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: ipv6::Checked, answer: Answer<'_>) -> Reason {
        of_ipv6(ipv6::finish(frame, checked, answer.hop)).into()
    }

    fn explain(frame: &[u8], _: Settings, look: impl FnOnce(ipv6::Checked) -> Looked) -> Explanation {
        explain::ipv6(frame, look)
    }
}

/// The outcome of an IPv4 packet.
#[inline(always)]
const fn of_ipv4(outcome: ipv4::Outcome) -> Outcome {
    OF_IPV4[outcome.code() as usize - 1]
}

/// The outcome of an IPv6 packet.
#[inline(always)]
const fn of_ipv6(outcome: ipv6::Outcome) -> Outcome {
    OF_IPV6[outcome.code() as usize - 1]
}

#[cfg(test)]
mod tests {
    use hue_demux::PortId;
    use hue_wire::Mac;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::adjacency::Adjacency;
    use crate::plane::Plane as _;

    /// What a plane does with a frame: its outcome, and the bytes afterwards.
    fn run<P: crate::Plane>(frame: &[u8], settings: P::Settings, hop: &Adjacency) -> (Reason, Vec<u8>) {
        let mut bytes = frame.to_vec();
        let front = P::front(frame, settings);
        let outcome = front.map_or_else(|outcome| outcome, |one| P::back(&mut bytes, one, Answer::of(hop)));
        (outcome, bytes)
    }

    /// The name of a family's outcome in this kind.
    fn renamed(outcome: Reason) -> String {
        let name = format!("{}_{}", outcome.kind().name(), outcome.name());
        let is_here = Reason::all(Kind::Dual).any(|one| one.name() == name);
        if is_here { name } else { outcome.name().to_owned() }
    }

    /// A packet whose every field may be wrong or at a limit, and is often right.
    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let sources = select(vec![0x0a00_0001u32, 0x7f00_0001, 0xe000_0001, 0]);
        let four = (select(vec![0u8, 1, 2, 64]), sources).prop_map(|(ttl, source)| {
            let mut packet = vec![0x45, 0, 0, 24, 0, 0, 0, 0, ttl, 17, 0, 0];
            packet.extend(source.to_be_bytes());
            packet.extend([10, 9, 0, 1, 0, 0, 0, 0]);
            let checksum = hue_wire::checksum::full(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            packet
        });
        let addresses = select(vec![1u128, 0xfe80 << 112 | 1, 0xff02 << 112 | 1, 0x2001_0db8 << 96 | 1]);
        let six = (select(vec![0u8, 1, 64]), select(vec![0u8, 17]), addresses.clone(), addresses).prop_map(
            |(hop_limit, next_header, source, destination)| {
                let mut packet = vec![0x60, 0, 0, 0, 0, 4, next_header, hop_limit];
                packet.extend(source.to_be_bytes());
                packet.extend(destination.to_be_bytes());
                packet.extend([0; 4]);
                packet
            },
        );
        let ethertype = select(vec![0x0800u16, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x8100]);
        let packet = prop_oneof![four, six, prop::collection::vec(any::<u8>(), 0..64)];
        (ethertype, packet, select(vec![2u8, 2, 2, 1]), 0usize..80).prop_map(
            |(ethertype, packet, first, len)| {
                let mut frame = vec![first, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];
                frame.extend(ethertype.to_be_bytes());
                frame.extend(packet);
                // Some end early.
                frame.truncate(if len < 60 { len + 12 } else { usize::MAX });
                frame
            },
        )
    }

    proptest! {
        /// A packet of a family has the outcome, and the bytes, that it has in a network of that family alone.
        #[test]
        fn a_packet_is_treated_as_by_its_family(frame in frame(), row in 0..4u8, forward_martians: bool) {
            let port = PortId::new(1);
            let hop = match row {
                0 => Adjacency::NONE,
                1 => Adjacency::local(),
                2 => Adjacency::glean(port),
                _ => Adjacency::forward(port, Mac([2; 6]), Mac([4; 6]), 1280),
            };
            let settings = Settings { forward_martians };
            let (outcome, bytes) = run::<Plane>(&frame, settings, &hop);
            let (expected, expected_bytes) = if Plane::is_ipv6(&frame) {
                run::<ipv6::Plane>(&frame, ipv6::Settings::default(), &hop)
            } else {
                run::<ipv4::Plane>(&frame, settings, &hop)
            };
            prop_assert_eq!((outcome.name(), bytes), (&*renamed(expected), expected_bytes));
            prop_assert_eq!((outcome.verdict(), outcome.class()), (expected.verdict(), expected.class()));
            let is_decided_before = ["ethertype", "truncated", "version"].contains(&outcome.name());
            prop_assert_eq!(outcome.family(), (!is_decided_before).then_some(expected.kind().name()));
        }
    }

    #[test]
    fn the_key_is_of_the_packets_family() {
        let (four, six) = (ipv4::Checked::EMPTY, ipv6::Checked::EMPTY);
        assert_eq!(Plane::key(Checked::V4(four)), IpKey::V4(four.key));
        assert_eq!(Plane::key(Checked::V6(six)), IpKey::V6(six.key));
    }
}
