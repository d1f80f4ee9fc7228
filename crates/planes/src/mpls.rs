//! The `mpls` kind: a label switching router (RFC 3031).
//!
//! Flow: demux → meter → [`check`] reads the stack → the network's table of labels → [`decide`] → new labels → port. Outcomes
//! and their order: `spec/kinds/mpls.toml`. Source: RFC 3032 (stack), RFC 3443 (TTL), RFC 5462 (traffic class), ADR 0074.
//!
//! Invariants: a frame that passes [`check`] has a bottom of its stack among the first [`DEPTH_MAX`] entries. A label is the
//! first 20 bits of its key. Only the top of a stack is replaced, so a frame grows by at most [`GROWTH_BYTES_MAX`].

mod explain;

use std::ops::Range;

use hue_tables::Pattern;
use hue_wire::ethernet::{self, EtherType};
use hue_wire::mpls::{ENTRY_BYTES, Entry, LABEL_MIN};
use hue_wire::{Mac, checksum, mpls};
use serde::{Deserialize, Serialize};

pub use crate::adjacency::{Adjacency, AdjacencyKind, LABELS_MAX};
use crate::generated::Kind;
pub use crate::generated::mpls::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::plane::{Answer, Explanation, Looked, Ternary};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// Most entries of a stack that arrives.
pub const DEPTH_MAX: usize = 16;
/// Most bytes by which a frame grows.
pub const GROWTH_BYTES_MAX: usize = (LABELS_MAX - 1) * ENTRY_BYTES;

/// Bits of a key behind the label.
const REST_BITS: u32 = u128::BITS - 20;

/// The key of a label.
#[inline(always)]
#[must_use]
pub const fn key_of(label: u32) -> u128 {
    (label as u128) << REST_BITS
}

/// The label of a key.
#[must_use]
pub const fn label_of(key: u128) -> u32 {
    (key >> REST_BITS) as u32
}

/// The pattern of keys of one label.
#[must_use]
pub const fn pattern_of(label: u32) -> Pattern {
    Pattern::new(key_of(label), key_of(mpls::LABEL_MAX))
}

/// What the TTL of a label has to do with that of what is below it (RFC 3443).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ttl {
    /// All labels of a stack and the packet have one TTL: each router on the way lowers it by one.
    #[default]
    Uniform,
    /// What is below a label does not see the routers on its way.
    Pipe,
}

impl Ttl {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Pipe];

    /// The name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Pipe => "pipe",
        }
    }

    /// Whether it is the default.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        matches!(self, Self::Uniform)
    }
}

/// What a network says about its plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// How TTLs are related.
    pub ttl: Ttl,
}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Mpls;
    const NOTHING: Checked = Checked {
        top: Entry { label: 0, class: 0, bottom: false, ttl: 0 },
        below: Below::Other,
        payload_bytes: 0,
        ttl: Ttl::Uniform,
    };
    const RESIZES: bool = true;
    type Key = u128;
    type Carried = Checked;
    type Settings = Settings;
    type Match = Ternary;

    fn samples() -> Vec<Settings> {
        Ttl::ALL.map(|ttl| Settings { ttl }).to_vec()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Mpls(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        Ok(check(frame, settings)?)
    }

    fn edited(_: &[u8]) -> [Range<usize>; 2] {
        // The addresses, and an entry that replaces the top. Where entries push or pop labels, no byte stays in its place.
        let top = ethernet::HEADER_BYTES;
        [0..2 * size_of::<Mac>(), top..top + ENTRY_BYTES]
    }

    #[inline(always)]
    fn key(checked: Checked) -> u128 {
        key_of(checked.top.label)
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        decide(checked, answer).into()
    }

    #[inline(always)]
    fn growth(_: Checked, answer: Answer<'_>) -> i32 {
        growth(answer.labels)
    }

    fn no_room() -> Reason {
        Outcome::TooDeep.into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        let outcome = decide(checked, answer);
        if outcome == Outcome::Forward {
            rewrite(frame, checked, answer);
        }
        outcome.into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, settings, look)
    }
}

/// What is below the top of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Below {
    /// Another entry.
    Entry,
    /// A packet of IPv4 with a whole header.
    Ipv4,
    /// A packet of IPv6 with a whole header.
    Ipv6,
    /// Something else.
    Other,
}

/// The properties of a frame with a sound stack that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The top of the stack.
    pub top: Entry,
    /// What is below it.
    pub below: Below,
    /// Bytes behind the Ethernet header.
    payload_bytes: u32,
    ttl: Ttl,
}

/// The checks that need no table.
///
/// # Errors
/// The frame's outcome, if it is decided here.
#[inline(always)]
pub fn check(frame: &[u8], settings: Settings) -> Result<Checked, Outcome> {
    let Some((header, stack)) = ethernet::Header::over(frame) else { return Err(Outcome::NotMpls) };
    if header.ethertype() != EtherType::MPLS || ethernet::is_group(frame) {
        return Err(Outcome::NotMpls);
    }
    let Some(top) = Entry::first(stack) else { return Err(Outcome::Short) };
    let below = stack.get(ENTRY_BYTES..).unwrap_or_default();
    if !top.bottom {
        let (others, _) = below.as_chunks::<ENTRY_BYTES>();
        if !others.iter().take(DEPTH_MAX - 1).any(|entry| Entry::parse(*entry).bottom) {
            return Err(if others.len() < DEPTH_MAX - 1 { Outcome::Short } else { Outcome::TooDeep });
        }
    }
    match top.label {
        mpls::ROUTER_ALERT => return Err(Outcome::RouterAlert),
        mpls::IPV4_EXPLICIT_NULL | mpls::IPV6_EXPLICIT_NULL => return Err(Outcome::ExplicitNull),
        label if label < LABEL_MIN => return Err(Outcome::Reserved),
        _ => {}
    }
    if top.ttl < 2 {
        return Err(Outcome::Ttl);
    }
    let below = if top.bottom { packet(below) } else { Below::Entry };
    Ok(Checked { top, below, payload_bytes: stack.len() as u32, ttl: settings.ttl })
}

/// What the bytes below the bottom of a stack are. No field says it; the first half byte tells IP packets apart.
#[inline(always)]
fn packet(bytes: &[u8]) -> Below {
    match bytes.first() {
        Some(0x45..=0x4f) if bytes.len() >= IPV4_BYTES => Below::Ipv4,
        Some(0x60..=0x6f) if bytes.len() >= IPV6_BYTES => Below::Ipv6,
        _ => Below::Other,
    }
}

const IPV4_BYTES: usize = size_of::<hue_wire::ipv4::Header>();
const IPV6_BYTES: usize = size_of::<hue_wire::ipv6::Header>();

/// Outcome of a frame with a sound stack.
#[inline(always)]
#[must_use]
pub fn decide(checked: Checked, Answer { hop, labels, .. }: Answer<'_>) -> Outcome {
    let is_sent = labels.kind() == AdjacencyKind::Labels;
    if !is_sent || hop.kind() != AdjacencyKind::Port {
        return match hop.kind() {
            AdjacencyKind::Drop => Outcome::DropEntry,
            AdjacencyKind::None => Outcome::NoEntry,
            _ if is_sent => Outcome::NoEntry,
            // The other kinds are no rows of such a network, and its control plane is where nothing is lost in silence.
            _ => Outcome::PuntEntry,
        };
    }
    if labels.label_count() == 0 && checked.below == Below::Other {
        Outcome::NotIp
    } else if checked.payload_bytes.saturating_add_signed(growth(labels)) > u32::from(hop.mtu_bytes()) {
        Outcome::Mtu
    } else {
        Outcome::Forward
    }
}

/// By how many bytes a frame becomes longer whose top these labels replace.
#[inline(always)]
fn growth(labels: &Adjacency) -> i32 {
    (labels.label_count() as i32 - 1) * ENTRY_BYTES as i32
}

/// Writes addresses, type and labels of a forwarded frame, which begins where it will begin.
#[inline(always)]
fn rewrite(
    frame: &mut [u8],
    Checked { top, below, ttl, .. }: Checked,
    Answer { hop, labels, .. }: Answer<'_>,
) {
    let left = top.ttl.saturating_sub(1);
    let ethertype = match below {
        _ if labels.label_count() > 0 => EtherType::MPLS,
        Below::Ipv4 => EtherType::IPV4,
        Below::Ipv6 => EtherType::IPV6,
        Below::Entry | Below::Other => EtherType::MPLS,
    };
    let Some((header, rest)) = ethernet::Header::over_mut(frame) else { return };
    // One copy of both addresses: two stores of parts of a word, and a load of it, would wait for each other.
    header.macs = *hop.macs();
    header.ethertype = ethertype.0.into();
    if labels.label_count() == 0 {
        if ttl == Ttl::Uniform {
            lower(rest, below, left);
        }
        return;
    }
    let (places, _) = rest.as_chunks_mut::<ENTRY_BYTES>();
    for (place, at) in places.iter_mut().zip((0..labels.label_count()).rev()) {
        let is_lowest = at == 0;
        let entry = Entry {
            label: labels.label(at),
            class: top.class,
            bottom: is_lowest && top.bottom,
            ttl: if is_lowest || ttl == Ttl::Uniform { left } else { u8::MAX },
        };
        *place = entry.to_bytes();
    }
}

/// Lowers the TTL of what was below a popped label to `ttl`, unless it is lower.
#[inline(always)]
fn lower(bytes: &mut [u8], below: Below, ttl: u8) {
    match below {
        Below::Entry => {
            if let Some([.., old]) = bytes.first_chunk_mut::<ENTRY_BYTES>() {
                *old = ttl.min(*old);
            }
        }
        Below::Ipv4 => {
            if let Some((header, _)) = hue_wire::ipv4::Header::over_mut(bytes) {
                let word = |ttl| u16::from_be_bytes([ttl, 0]);
                let (old, new) = (header.ttl, ttl.min(header.ttl));
                let sum = checksum::updated_u16(header.checksum.get(), word(old), word(new));
                header.ttl = new;
                header.checksum = sum.into();
            }
        }
        Below::Ipv6 => {
            if let Some((header, _)) = hue_wire::ipv6::Header::over_mut(bytes) {
                header.hop_limit = ttl.min(header.hop_limit);
            }
        }
        Below::Other => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(entries: usize, bottom: bool) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x88, 0x47]);
        for at in 0..entries {
            let bottom = bottom && at + 1 == entries;
            frame.extend(Entry { label: 100, class: 0, bottom, ttl: 64 }.to_bytes());
        }
        frame
    }

    fn outcome(frame: &[u8]) -> Option<Outcome> {
        check(frame, Settings::default()).err()
    }

    #[test]
    fn the_stack_ends_within_the_frame_and_the_limit() {
        assert_eq!(outcome(&frame(0, false)), Some(Outcome::Short));
        for entries in 1..DEPTH_MAX {
            assert_eq!(outcome(&frame(entries, true)), None);
            assert_eq!(outcome(&frame(entries, false)), Some(Outcome::Short), "{entries}");
        }
        let whole = frame(DEPTH_MAX, true);
        assert_eq!(outcome(&whole), None);
        assert_eq!(outcome(&whole[..whole.len() - 1]), Some(Outcome::Short));
        assert_eq!(outcome(&frame(DEPTH_MAX, false)), Some(Outcome::TooDeep));
        assert_eq!(outcome(&frame(DEPTH_MAX + 1, true)), Some(Outcome::TooDeep));
    }

    #[test]
    fn a_key_is_a_label() {
        for label in [16, 100, mpls::LABEL_MAX] {
            assert_eq!(label_of(key_of(label)), label);
            assert!(pattern_of(label).value() & !pattern_of(label).mask() == 0);
        }
    }
}
