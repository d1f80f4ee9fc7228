//! The `rofl` kind: routes to the closest flat label in a circular name space.
//!
//! Flow: demux → meter → [`check`] → the network's labels and its cached pointers, searched for the one that is closest before
//! the destination → [`decide`] → port. The pointers belong to the substrate, which enters what packets teach: the labels of a
//! source route are behind the neighbour that sent the packet. Outcomes and their order: `spec/kinds/rofl.toml`. Source: ADR
//! 0070; M. Caesar et al., ROFL: Routing on Flat Labels (SIGCOMM 2006); Unnikrishnan (FPGA 2010) §3.2.2.
//!
//! Rows of next hops: the virtual ports in their order, each with its MAC address (kind `port`); then those of entries: the
//! router itself (`local`), a resident host (`port` with both MAC addresses), another router (`forward`).

mod explain;

use std::ops::Range;

use hue_wire::rofl::{self, Label, ROUTE_MAX};
use hue_wire::{Mac, ethernet};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::generated::Kind;
pub use crate::generated::rofl::{
    FAMILIES, KEYS, LABEL_BITS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome, POINTER_SECONDS,
    POINTERS_MAX,
};
use crate::plane::{Answer, Caching, Explanation, HEARD_MAX, Heard, Looked, Nearest};
use crate::reason::Reason;

const _: () = assert!(ROUTE_MAX <= HEARD_MAX);

/// The plane of this kind.
pub struct Plane;

// The packet's format has labels of these lengths.
const _: () = assert!(
    LABEL_BITS.min as usize == 8 * rofl::LABEL_BYTES_MIN
        && LABEL_BITS.max as usize == 8 * rofl::LABEL_BYTES_MAX
        && LABEL_BITS.multiple_of == 8
);

/// What a network says about its plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", into = "Unchecked")]
pub struct Settings {
    label_bytes: u8,
    pointers_max: u16,
    pointer_seconds: u32,
}

/// [`Settings`] as they are written.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Unchecked {
    label_bits: u8,
    pointers_max: u16,
    pointer_seconds: u32,
}

/// Why a network cannot have some settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SettingsError {
    /// Labels are too short, too long or no whole bytes.
    #[error(
        "labels of {bits} bits: expected a multiple of {}, {} to {}",
        LABEL_BITS.multiple_of,
        LABEL_BITS.min,
        LABEL_BITS.max,
        bits = .0
    )]
    LabelBits(u8),
    /// Too many pointers.
    #[error("{pointers} pointers: at most {}", POINTERS_MAX.max, pointers = .0)]
    Pointers(u16),
    /// A time out of range.
    #[error(
        "pointers of {seconds} seconds: expected {} to {}",
        POINTER_SECONDS.min,
        POINTER_SECONDS.max,
        seconds = .0
    )]
    Seconds(u32),
}

impl Settings {
    /// Settings for labels of so many bits, with so many pointers, each kept for so many seconds.
    ///
    /// # Errors
    /// What is out of range.
    pub const fn new(label_bits: u8, pointers_max: u16, pointer_seconds: u32) -> Result<Self, SettingsError> {
        let bits = LABEL_BITS;
        if !label_bits.is_multiple_of(bits.multiple_of) || label_bits < bits.min || label_bits > bits.max {
            return Err(SettingsError::LabelBits(label_bits));
        }
        if pointers_max > POINTERS_MAX.max {
            return Err(SettingsError::Pointers(pointers_max));
        }
        if pointer_seconds < POINTER_SECONDS.min || pointer_seconds > POINTER_SECONDS.max {
            return Err(SettingsError::Seconds(pointer_seconds));
        }
        Ok(Self { label_bytes: label_bits / 8, pointers_max, pointer_seconds })
    }

    /// Length of the network's labels, bytes.
    #[must_use]
    pub const fn label_bytes(&self) -> usize {
        self.label_bytes as usize
    }

    /// Length of the network's labels, bits.
    #[must_use]
    pub const fn label_bits(&self) -> u8 {
        self.label_bytes * 8
    }

    /// Most pointers that the network caches.
    #[must_use]
    pub const fn pointers_max(&self) -> u16 {
        self.pointers_max
    }

    /// How long a pointer is kept.
    #[must_use]
    pub const fn pointer_seconds(&self) -> u32 {
        self.pointer_seconds
    }

    /// A label as documents have it.
    #[must_use]
    pub fn label_text(&self, label: Label) -> String {
        label_text(label, self.label_bytes())
    }
}

/// A label of so many bytes as documents have it.
#[must_use]
pub fn label_text(label: Label, bytes: usize) -> String {
    crate::extract::digits(label, bytes)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            label_bytes: LABEL_BITS.default / 8,
            pointers_max: POINTERS_MAX.default,
            pointer_seconds: POINTER_SECONDS.default,
        }
    }
}

impl TryFrom<Unchecked> for Settings {
    type Error = SettingsError;

    fn try_from(of: Unchecked) -> Result<Self, SettingsError> {
        Self::new(of.label_bits, of.pointers_max, of.pointer_seconds)
    }
}

impl From<Settings> for Unchecked {
    fn from(of: Settings) -> Self {
        let Settings { pointers_max, pointer_seconds, .. } = of;
        Self { label_bits: of.label_bits(), pointers_max, pointer_seconds }
    }
}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Rofl;
    const NOTHING: Checked = Checked {
        key: 0,
        label_bytes: 0,
        route_len: 0,
        budget: 0,
        to_closest: false,
        packet_bytes: 0,
        macs: ethernet::Macs { destination: Mac::ZERO, source: Mac::ZERO },
    };
    type Key = u128;
    type Carried = Checked;
    type Settings = Settings;
    type Match = Nearest;

    /// Labels of all kinds of lengths: the shortest, an odd one, the longest.
    fn samples() -> Vec<Settings> {
        [4, 7, 16].map(|label_bytes| Settings { label_bytes, ..Settings::default() }).to_vec()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Rofl(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        Ok(check(frame, settings)?)
    }

    fn edited(_: &[u8]) -> [Range<usize>; 2] {
        [0..2 * size_of::<Mac>(), BUDGET_AT..BUDGET_AT + 1]
    }

    #[inline(always)]
    fn key(checked: Checked) -> u128 {
        checked.key
    }

    #[inline(always)]
    fn heard(frame: &[u8], checked: Checked) -> Option<Heard> {
        if checked.route_len == 0 || !checked.macs.source.is_unicast() {
            return None;
        }
        let labels = frame.get(ethernet::HEADER_BYTES + rofl::HEADER_BYTES..)?;
        let size = usize::from(checked.label_bytes);
        // Behind those of destination and sender.
        let route = labels.chunks_exact(size.max(1)).skip(2).take(checked.route_len.into());
        Some(Heard::new(route.filter_map(|bytes| rofl::label(bytes, size)), checked.macs.source))
    }

    fn caching(settings: Settings) -> Option<Caching> {
        Some(Caching {
            pointers_max: usize::from(settings.pointers_max),
            ageing_ns: u64::from(settings.pointer_seconds) * 1_000_000_000,
        })
    }

    /// What reached nobody, or was not for this router, says nothing about a way.
    #[inline(always)]
    fn teaches(outcome: Reason) -> bool {
        outcome.is_forward()
            || outcome == Reason::from(Outcome::ForUs)
            || outcome == Reason::from(Outcome::ForClosest)
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        decide(&checked, answer).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        let outcome = decide(&checked, answer);
        if outcome == Outcome::Forward {
            rewrite(frame, answer.hop, checked.budget);
        }
        outcome.into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, settings, look)
    }
}

/// The properties of a sound packet that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The destination's label.
    pub key: Label,
    label_bytes: u8,
    /// How many labels the source route has.
    route_len: u8,
    budget: u8,
    /// Whether the router with the closest label takes it, if nobody has the destination's.
    to_closest: bool,
    /// Header and payload.
    packet_bytes: u32,
    macs: ethernet::Macs,
}

/// The checks that need no table.
///
/// # Errors
/// The frame's outcome, if it is decided here. Ports do not admit frames below 14 bytes; here they count as `not_rofl`.
#[inline(always)]
pub fn check(frame: &[u8], settings: Settings) -> Result<Checked, Outcome> {
    let Some((outer, bytes)) = ethernet::Header::over(frame) else { return Err(Outcome::NotRofl) };
    if outer.ethertype() != rofl::ETHERTYPE {
        return Err(Outcome::NotRofl);
    }
    let Some((header, labels)) = rofl::Header::over(bytes) else { return Err(Outcome::Short) };
    if header.version() != rofl::VERSION {
        return Err(Outcome::BadVersion);
    }
    if header.label_bytes != settings.label_bytes {
        return Err(Outcome::LabelLength);
    }
    if usize::from(header.route) > ROUTE_MAX {
        return Err(Outcome::BadRoute);
    }
    let packet_bytes = header.bytes() + header.payload_bytes();
    if bytes.len() < packet_bytes {
        return Err(Outcome::BadLength);
    }
    if header.has(rofl::FLAG_LINK) {
        return Err(Outcome::Link);
    }
    let Some(key) = rofl::label(labels, settings.label_bytes()) else { return Err(Outcome::BadLength) };
    Ok(Checked {
        key,
        label_bytes: settings.label_bytes,
        route_len: header.route,
        budget: header.budget,
        to_closest: header.has(rofl::FLAG_CLOSEST),
        packet_bytes: packet_bytes as u32,
        macs: outer.macs,
    })
}

/// Outcome of a sound packet.
#[inline(always)]
#[must_use]
pub fn decide(checked: &Checked, answer: Answer<'_>) -> Outcome {
    let Answer { hop, arrival, exact, .. } = answer;
    if checked.macs.destination != arrival.src() {
        return Outcome::OtherMac;
    }
    match hop.kind() {
        // All but the first are no rows of such a network; a packet that meets one has no way.
        AdjacencyKind::None | AdjacencyKind::Drop | AdjacencyKind::Group | AdjacencyKind::Labels => {
            return Outcome::NoEntry;
        }
        AdjacencyKind::Local | AdjacencyKind::Glean if exact => return Outcome::ForUs,
        AdjacencyKind::Local | AdjacencyKind::Glean | AdjacencyKind::Port if !exact => {
            return if checked.to_closest { Outcome::ForClosest } else { Outcome::UnknownLabel };
        }
        AdjacencyKind::Local | AdjacencyKind::Glean | AdjacencyKind::Port | AdjacencyKind::Forward => {}
    }
    if checked.budget < 2 {
        return Outcome::HopBudget;
    }
    let returns = hop.kind() == AdjacencyKind::Forward
        && hop.port() == arrival.port()
        && hop.dst() == checked.macs.source;
    if returns {
        Outcome::Loop
    } else if checked.packet_bytes > u32::from(hop.mtu_bytes()) {
        Outcome::Mtu
    } else {
        Outcome::Forward
    }
}

/// Where the hop budget is.
const BUDGET_AT: usize = ethernet::HEADER_BYTES + 2;

/// Replaces the MAC addresses, and takes one hop from the budget.
#[inline(always)]
fn rewrite(frame: &mut [u8], hop: &Adjacency, budget: u8) {
    if let Some((header, _)) = ethernet::Header::over_mut(frame) {
        header.macs = *hop.macs();
    }
    if let Some(place) = frame.get_mut(BUDGET_AT) {
        *place = budget.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        for bits in [0, 8, 24, 31, 33, 36, 127, 129, 136, 255] {
            assert_eq!(Settings::new(bits, 0, 1), Err(SettingsError::LabelBits(bits)));
        }
        assert_eq!(Settings::new(32, 1025, 1), Err(SettingsError::Pointers(1025)));
        assert_eq!(Settings::new(32, 0, 0), Err(SettingsError::Seconds(0)));
        assert_eq!(Settings::new(32, 0, 86_401), Err(SettingsError::Seconds(86_401)));
        let whole = Settings::new(128, 1024, 86_400).unwrap();
        assert_eq!((whole.label_bytes(), whole.pointers_max(), whole.pointer_seconds()), (16, 1024, 86_400));
        assert_eq!(Settings::new(128, 256, 60), Ok(Settings::default()));
        assert_eq!(Settings::new(40, 0, 1).unwrap().label_text(0x01_0203_0405 << 88), "0x0102030405");
    }

    #[test]
    fn only_packets_with_a_route_teach() {
        let mut frame = vec![0; 14];
        frame.extend([0x10, 16, 9, 2, 0, 0, 0, 0]);
        frame.extend([1, 2, 7, 8].map(u128::to_be_bytes).concat());
        let of = |route_len, source| Checked {
            label_bytes: 16,
            route_len,
            macs: ethernet::Macs { destination: Mac::ZERO, source: Mac(source) },
            ..<Plane as crate::Plane>::NOTHING
        };
        let heard = |checked: Checked| {
            <Plane as crate::Plane>::heard(&frame, checked).map(|one| one.labels().to_vec())
        };
        assert_eq!(heard(of(2, [2, 0, 0, 0, 0, 1])), Some(vec![7, 8]));
        assert_eq!(heard(of(1, [2, 0, 0, 0, 0, 1])), Some(vec![7]));
        assert_eq!(heard(of(0, [2, 0, 0, 0, 0, 1])), None);
        assert_eq!(heard(of(1, [3, 0, 0, 0, 0, 1])), None, "a group sends nothing");
    }
}
