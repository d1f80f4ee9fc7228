//! The `splice` kind: an IPv4 router with several tables, its slices; splicing bits of each packet choose the table at each
//! hop (path splicing).
//!
//! Flow: demux → meter → the checks of [`ipv4`] → `read`: the splicing bits → one lookup in the slice's table → the decision
//! of [`ipv4`] → `write`: the bits of this hop are consumed → port. Here are only the bits, and the names of
//! outcomes in this kind (`spec/kinds/splice.toml`). The bits of the next hop are the lowest ones. The highest ones stay when
//! the others move down, so a packet whose bits are used up stays in its last slice. Source: Motiwala et al. (SIGCOMM 2008)
//! §3, ADR 0072.

mod explain;

use std::ops::Range;

use hue_tables::slice;
use hue_wire::checksum;
use hue_wire::{ethernet, ipv4 as header};
use serde::{Deserialize, Serialize};

use crate::generated::Kind;
pub use crate::generated::splice::{
    FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome, SLICES,
};
use crate::ipv4;
use crate::plane::{Answer, BySlice, Explanation, Looked};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// Protocol number of the header with splicing bits, one for experiments (RFC 3692 §2.1).
pub const SHIM_PROTOCOL: u8 = 253;
/// Length of that header: next protocol, version and reserved bits, splicing bits.
pub const SHIM_BYTES: usize = 8;
/// Its version, in the upper half of its second byte.
pub const SHIM_VERSION: u8 = 1;

/// Where the splicing bits of a packet are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bits {
    /// In the identification of its header: 16 bits.
    #[default]
    IpId,
    /// In a header behind that: 48 bits.
    Shim,
}

impl Bits {
    /// All places.
    pub const ALL: [Self; 2] = [Self::IpId, Self::Shim];

    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpId => "ip_id",
            Self::Shim => "shim",
        }
    }

    /// How many bits there are.
    #[must_use]
    pub const fn width(self) -> u32 {
        match self {
            Self::IpId => 16,
            Self::Shim => 48,
        }
    }
}

/// What a network says about its plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// See [`ipv4::Settings::forward_martians`].
    pub forward_martians: bool,
    /// How many slices it has: one of [`SLICES`].
    pub slices: u8,
    /// Where the splicing bits of its packets are.
    pub bits: Bits,
}

impl Default for Settings {
    fn default() -> Self {
        Self { forward_martians: false, slices: SLICES.default, bits: Bits::default() }
    }
}

impl Settings {
    /// The splicing bits of a hop: log2 of the number of slices, rounded up.
    #[inline(always)]
    #[must_use]
    pub const fn hop_bits(self) -> u32 {
        u8::BITS - self.slices.saturating_sub(1).leading_zeros()
    }

    /// For how many hops a packet has bits; with one slice, for any number.
    #[must_use]
    pub const fn hops(self) -> u32 {
        match self.bits.width().checked_div(self.hop_bits()) {
            Some(hops) => hops,
            None => u32::MAX,
        }
    }

    /// The slice that splicing bits name at this hop.
    #[inline(always)]
    #[must_use]
    pub const fn slice(self, field: u64) -> u8 {
        field as u8 & ((1 << self.hop_bits()) - 1)
    }

    /// The splicing bits for the next hop: shifted right by those of this one. The highest bits that a hop can have stay, so
    /// that the last slice is repeated.
    #[inline(always)]
    #[must_use]
    pub const fn consumed(self, field: u64) -> u64 {
        let bits = self.hop_bits();
        if bits == 0 {
            return field;
        }
        // 16 bits are five slices of 3 bits, and one bit more, which has no meaning.
        let used = self.bits.width() / bits * bits;
        let low = field & ((1 << used) - 1);
        (field ^ low) | low >> bits | (low >> (used - bits)) << (used - bits)
    }
}

/// The properties of a packet with a valid header that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    ipv4: ipv4::Checked,
    slice: u8,
    edit: Edit,
}

/// What forwarding does to the splicing bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edit {
    /// The packet has none.
    None,
    /// Sets the identification.
    Id(u16),
    /// Sets those of the header behind that of IPv4.
    Shim(u64),
}

/// Where the identification is in a packet.
const ID_FIELD: Range<usize> = 4..6;
/// Where splicing bits behind the header are in a packet.
const SHIM_FIELD: Range<usize> = header::HEADER_BYTES + 2..header::HEADER_BYTES + SHIM_BYTES;

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Splice;
    const NOTHING: Checked = Checked { ipv4: ipv4::Checked::EMPTY, slice: 0, edit: Edit::None };
    type Match = BySlice;
    type Key = u128;
    type Carried = Checked;
    type Settings = Settings;

    fn samples() -> Vec<Settings> {
        let settings = |(slices, bits)| Settings { slices, bits, forward_martians: slices == 5 };
        [(1, Bits::IpId), (4, Bits::IpId), (5, Bits::IpId), (16, Bits::Shim), (3, Bits::Shim)]
            .map(settings)
            .to_vec()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Splice(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        let ipv4 = ipv4::check(frame).map_err(of_ipv4)?.with_martians(settings.forward_martians);
        Ok(read(frame, ipv4, settings)?)
    }

    fn edited(frame: &[u8]) -> [Range<usize>; 2] {
        let place = |bits, at: Range<usize>| match field(frame, bits) {
            Ok(Some(_)) => ethernet::HEADER_BYTES + at.start..ethernet::HEADER_BYTES + at.end,
            _ => 0..0,
        };
        [place(Bits::IpId, ID_FIELD), place(Bits::Shim, SHIM_FIELD)]
    }

    #[inline(always)]
    fn key(checked: Checked) -> u128 {
        slice::key(checked.slice, checked.ipv4.key)
    }

    fn flow(frame: &[u8]) -> u32 {
        <ipv4::Plane as crate::Plane>::flow(frame)
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        of_ipv4(ipv4::decide(checked.ipv4, answer.hop)).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        let outcome = of_ipv4(ipv4::finish(frame, checked.ipv4, answer.hop));
        if outcome == Outcome::Forward {
            checked.write(frame);
        }
        outcome.into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, settings, look)
    }
}

/// Reads the splicing bits of a packet that passed the checks of IPv4.
///
/// # Errors
/// The packet's outcome, if its bits are malformed or name no slice.
#[inline(always)]
fn read(frame: &[u8], ipv4: ipv4::Checked, settings: Settings) -> Result<Checked, Outcome> {
    let (field, edit): (u64, fn(u64) -> Edit) = match (field(frame, settings.bits)?, settings.bits) {
        (None, _) => (0, |_| Edit::None),
        (Some(field), Bits::IpId) => (field, |next| Edit::Id(next as u16)),
        (Some(field), Bits::Shim) => (field, Edit::Shim),
    };
    let slice = settings.slice(field);
    if slice >= settings.slices {
        return Err(Outcome::NoSlice);
    }
    Ok(Checked { ipv4, slice, edit: edit(settings.consumed(field)) })
}

/// The splicing bits of a packet that passed the checks of IPv4; `None` if it has none.
///
/// # Errors
/// If they are malformed.
#[inline(always)]
fn field(frame: &[u8], bits: Bits) -> Result<Option<u64>, Outcome> {
    let Some(packet) = frame.get(ethernet::HEADER_BYTES..) else { return Ok(None) };
    let Some((header, rest)) = header::Header::over(packet) else { return Ok(None) };
    // Of fragments, the identification says to which datagram they belong (RFC 6864); packets with options go to the kernel.
    if header.is_fragment() || header.version_ihl != header::VERSION_IHL_PLAIN {
        return Ok(None);
    }
    match bits {
        Bits::IpId => Ok(header.dont_fragment().then(|| header.identification.get().into())),
        Bits::Shim if header.protocol.0 != SHIM_PROTOCOL => Ok(None),
        Bits::Shim => {
            let is_whole = usize::from(header.total_length.get()) >= header::HEADER_BYTES + SHIM_BYTES;
            match rest.first_chunk::<SHIM_BYTES>() {
                Some(shim @ [_, version, ..]) if is_whole && version >> 4 == SHIM_VERSION => {
                    Ok(Some(u64::from_be_bytes(*shim) & ((1 << Bits::Shim.width()) - 1)))
                }
                _ => Err(Outcome::Shim),
            }
        }
    }
}

impl Checked {
    /// Writes the splicing bits for the next hop into the packet.
    #[inline(always)]
    fn write(self, frame: &mut [u8]) {
        let Some((_, packet)) = ethernet::Header::over_mut(frame) else { return };
        match self.edit {
            Edit::None => {}
            Edit::Id(next) => {
                if let Some((header, _)) = header::Header::over_mut(packet) {
                    let now = header.identification.get();
                    header.checksum = checksum::updated_u16(header.checksum.get(), now, next).into();
                    header.identification = next.into();
                }
            }
            Edit::Shim(next) => {
                if let Some(field) = packet.get_mut(SHIM_FIELD) {
                    field.copy_from_slice(&next.to_be_bytes()[2..]);
                }
            }
        }
    }
}

/// The outcome of an IPv4 packet, with its name in this kind.
#[inline(always)]
const fn of_ipv4(outcome: ipv4::Outcome) -> Outcome {
    OF_IPV4[outcome.code() as usize - 1]
}

/// For each outcome of kind `ipv4`, in order, which one of this kind it is.
const OF_IPV4: [Outcome; ipv4::Outcome::COUNT] = [
    Outcome::Gated,
    Outcome::RateLimited,
    Outcome::Arp,
    Outcome::Ethertype,
    Outcome::Truncated,
    Outcome::Version,
    Outcome::HeaderLength,
    Outcome::TotalLength,
    Outcome::Checksum,
    Outcome::Local,
    Outcome::L2Group,
    Outcome::MartianSource,
    Outcome::MartianDestination,
    Outcome::Ttl,
    Outcome::Options,
    Outcome::NoRoute,
    Outcome::NoNeighbour,
    Outcome::Mtu,
    Outcome::Forward,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adjacency::Adjacency;
    use crate::plane::Plane as _;

    fn settings() -> impl Strategy<Value = Settings> {
        (SLICES.min..=SLICES.max, prop::sample::select(Bits::ALL.to_vec()))
            .prop_map(|(slices, bits)| Settings { slices, bits, forward_martians: false })
    }

    /// The slices that a field names, hop by hop, without a shift: the meaning of a field.
    fn named(settings: Settings, field: u64, hop: u32) -> u8 {
        let bits = settings.hop_bits();
        let last = settings.hops().saturating_sub(1);
        (field >> (bits * hop.min(last))) as u8 & ((1 << bits) - 1)
    }

    #[test]
    fn outcomes_keep_their_names() {
        for (one, other) in OF_IPV4.iter().zip(ipv4::Outcome::ALL) {
            let (one, other) = (Reason::from(*one), Reason::from(other));
            assert_eq!(
                (one.name(), one.verdict(), one.class(), one.row().stage),
                (other.name(), other.verdict(), other.class(), other.row().stage)
            );
        }
    }

    #[test]
    fn slices_need_the_bits_of_their_highest_number() {
        let bits = |slices| Settings { slices, ..Settings::default() }.hop_bits();
        assert_eq!([1, 2, 3, 4, 5, 8, 9, 16].map(bits), [0, 1, 2, 2, 3, 3, 4, 4]);
        let hops = |slices, bits| Settings { slices, bits, ..Settings::default() }.hops();
        assert_eq!([2, 4, 8, 16].map(|slices| hops(slices, Bits::IpId)), [16, 8, 5, 4]);
        assert_eq!([2, 4, 8, 16].map(|slices| hops(slices, Bits::Shim)), [48, 24, 16, 12]);
    }

    proptest! {
        /// Each hop finds the bits meant for it; behind the last ones, the slice stays. What has no meaning stays, too.
        #[test]
        fn each_hop_finds_its_bits(settings in settings(), field: u64) {
            let start = field & ((1 << settings.bits.width()) - 1);
            let mut now = start;
            for hop in 0..60 {
                prop_assert_eq!(settings.slice(now), named(settings, start, hop), "hop {}", hop);
                now = settings.consumed(now);
                prop_assert!(now >> settings.bits.width() == 0);
            }
            prop_assert_eq!(settings.consumed(now), now);
            if settings.hop_bits() == 3 && settings.bits == Bits::IpId {
                prop_assert_eq!(now >> 15, start >> 15);
            }
        }

        /// A packet without splicing bits is treated as by kind `ipv4`, and one with bits but for them; the checksum of
        /// what is forwarded is right.
        #[test]
        fn the_rest_is_ipv4(settings in settings(), id: u16, flags in 0..8u16, ttl in 0..3u8, shim in any::<[u8; 8]>(), protocol in prop::sample::select(vec![17, SHIM_PROTOCOL])) {
            let mut packet = vec![0x45, 0, 0, 40];
            packet.extend(id.to_be_bytes());
            packet.extend((flags << 13).to_be_bytes());
            packet.extend([ttl, protocol, 0, 0, 192, 0, 2, 1, 10, 9, 0, 1]);
            let sum = checksum::full(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet.extend(shim);
            packet.extend([7; 12]);
            let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0][..], &packet].concat();
            let hop = Adjacency::forward(hue_demux::PortId::new(1), hue_wire::Mac([2; 6]), hue_wire::Mac([4; 6]), 1500);
            let mut plain = frame.clone();
            let of_ipv4 = ipv4::check(&frame).map(|checked| ipv4::finish(&mut plain, checked, &hop));
            let of_ipv4 = of_ipv4.unwrap_or_else(|outcome| outcome);
            let mut own = frame.clone();
            let outcome = match Plane::front(&frame, settings) {
                Ok(checked) => Plane::back(&mut own, checked, Answer::of(&hop)),
                Err(outcome) => {
                    prop_assert!(["shim", "no_slice"].contains(&outcome.name()));
                    return Ok(());
                }
            };
            prop_assert_eq!(outcome.name(), Reason::from(of_ipv4).name());
            if outcome.is_forward() {
                prop_assert!(checksum::verify(&own[14..34]));
            }
            // But for the bits and the checksum, all is as there.
            let spliced = match settings.bits {
                Bits::IpId => { own[18..20].copy_from_slice(&plain[18..20]); flags & 3 == 2 }
                Bits::Shim => { own[36..42].copy_from_slice(&plain[36..42]); flags & 1 == 0 && protocol == SHIM_PROTOCOL }
            };
            own[24..26].copy_from_slice(&plain[24..26]);
            prop_assert_eq!(&own, &plain);
            if !spliced {
                let key = Plane::key(Plane::front(&frame, settings).unwrap());
                prop_assert_eq!(key, slice::key(0, 0x0a09_0001));
            }
        }
    }
}
