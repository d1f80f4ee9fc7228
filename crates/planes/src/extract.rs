//! The `extract` kind: forwards by any bits of the first 128 bytes of a frame.
//!
//! Flow: demux → meter → [`check`] gathers the key → the network's table of ternary entries → [`decide`] → port. Outcomes and
//! their order: `spec/kinds/extract.toml`. Source: Anwer et al. (SIGCOMM 2010) §6, ADR 0068.
//!
//! Invariants: a key has 128 bits, the first lane highest; bits that the network does not extract are 0. A frame that ends
//! before one of its bytes has no key.

mod explain;

use std::ops::Range;

use hue_tables::Pattern;
use hue_wire::{Mac, ethernet};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::generated::Kind;
pub use crate::generated::extract::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::plane::{Answer, Explanation, Looked, Ternary};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// Most lanes: bytes of a key.
pub const LANES_MAX: usize = 16;
/// Largest offset of a lane.
pub const OFFSET_MAX: u8 = 127;

/// A byte of a frame that is part of the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// Which byte of the frame, at most [`OFFSET_MAX`].
    pub offset: u8,
    /// Which of its bits, at least one.
    pub mask: u8,
}

/// What a network says about its plane: the lanes of its key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<Lane>", into = "Vec<Lane>")]
pub struct Settings {
    /// Those of the lanes; 0 behind them.
    offsets: [u8; LANES_MAX],
    /// Those of the lanes, the first one's highest; 0 behind them.
    mask: u128,
    lanes: u8,
    /// Bytes that a frame must have.
    reach: u8,
    /// Whether each lane's byte follows that of the lane before.
    is_contiguous: bool,
}

/// Why lanes make no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum KeyError {
    /// There are none, or more than [`LANES_MAX`].
    #[error("a key of {0} bytes: expected 1 to {LANES_MAX}")]
    Lanes(usize),
    /// An offset is beyond [`OFFSET_MAX`].
    #[error("offset {0}: at most {OFFSET_MAX}")]
    Offset(u8),
    /// A mask selects no bit.
    #[error("offset {0}: the mask is 0")]
    Mask(u8),
    /// Two lanes have the same offset.
    #[error("offset {0} twice")]
    Twice(u8),
}

impl Settings {
    /// The settings with these lanes.
    ///
    /// # Errors
    /// The first fault found.
    pub fn new(lanes: &[Lane]) -> Result<Self, KeyError> {
        if !(1..=LANES_MAX).contains(&lanes.len()) {
            return Err(KeyError::Lanes(lanes.len()));
        }
        let (mut offsets, mut masks, mut reach) = ([0; LANES_MAX], [0; LANES_MAX], 0);
        for (at, Lane { offset, mask }) in lanes.iter().copied().enumerate() {
            if offset > OFFSET_MAX {
                return Err(KeyError::Offset(offset));
            }
            if mask == 0 {
                return Err(KeyError::Mask(offset));
            }
            if offsets[..at].contains(&offset) {
                return Err(KeyError::Twice(offset));
            }
            (offsets[at], masks[at]) = (offset, mask);
            reach = reach.max(offset + 1);
        }
        let is_contiguous = lanes.windows(2).all(|pair| pair[0].offset + 1 == pair[1].offset);
        Ok(Self { offsets, mask: u128::from_be_bytes(masks), lanes: lanes.len() as u8, reach, is_contiguous })
    }

    /// The lanes, in order.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> + '_ {
        let all = self.offsets.iter().zip(self.mask.to_be_bytes());
        all.map(|(offset, mask)| Lane { offset: *offset, mask }).take(self.bytes())
    }

    /// Bytes of the key.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.lanes as usize
    }

    /// The bits of the key that come from frames.
    #[must_use]
    pub const fn mask(&self) -> u128 {
        self.mask
    }

    /// A key in hexadecimal digits, two for each lane.
    #[must_use]
    pub fn key_text(&self, key: u128) -> String {
        digits(key, self.bytes())
    }

    /// A pattern as documents have it: `any`, a value, a value with a length, or a value and a mask.
    #[must_use]
    pub fn pattern_text(&self, pattern: &Pattern) -> String {
        let (value, mask) = (pattern.value(), pattern.mask());
        if mask == 0 {
            "any".to_owned()
        } else if mask == self.mask() {
            self.key_text(value)
        } else if self.is_prefix(mask) {
            format!("{}/{}", self.key_text(value), self.prefix_bits(mask))
        } else {
            format!("{} mask {}", self.key_text(value), self.key_text(mask))
        }
    }

    /// The bits of the key among the first `len`.
    #[must_use]
    pub const fn prefix_mask(&self, len: u32) -> u128 {
        match u128::MAX.checked_shr(len) {
            Some(rest) => !rest & self.mask(),
            None => self.mask(),
        }
    }

    /// The least length of a prefix with these bits.
    const fn prefix_bits(&self, mask: u128) -> u32 {
        u128::BITS - mask.trailing_zeros()
    }

    /// Whether a mask has all bits of the key up to its last one.
    const fn is_prefix(&self, mask: u128) -> bool {
        self.prefix_mask(self.prefix_bits(mask)) == mask
    }
}

/// The first bytes of a key in hexadecimal digits.
#[must_use]
pub fn digits(key: u128, bytes: usize) -> String {
    let digits = format!("{key:032x}");
    format!("0x{}", digits.get(..2 * bytes).unwrap_or(&digits))
}

/// The first 64 bits of a frame, as in the experiment of the paper.
impl Default for Settings {
    fn default() -> Self {
        const LANES: u8 = 8;
        let mut offsets = [0; LANES_MAX];
        for at in 0..LANES {
            offsets[usize::from(at)] = at;
        }
        Self { offsets, mask: !(u128::MAX >> (8 * LANES)), lanes: LANES, reach: LANES, is_contiguous: true }
    }
}

impl TryFrom<Vec<Lane>> for Settings {
    type Error = KeyError;

    fn try_from(lanes: Vec<Lane>) -> Result<Self, KeyError> {
        Self::new(&lanes)
    }
}

impl From<Settings> for Vec<Lane> {
    fn from(settings: Settings) -> Self {
        settings.lanes().collect()
    }
}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Extract;
    const NOTHING: Checked = Checked { key: 0, payload_bytes: 0 };
    type Key = u128;
    type Carried = Checked;
    type Settings = Settings;
    type Match = Ternary;

    /// The first 64 bits; the EtherType; the last bytes that a key can have; bits here and there, in no order.
    fn samples() -> Vec<Settings> {
        let whole = |offset| Lane { offset, mask: 0xff };
        let lanes: [Vec<Lane>; 3] = [
            vec![whole(12), whole(13)],
            (0..16).map(|at| whole(OFFSET_MAX - at)).collect(),
            vec![Lane { offset: 23, mask: 0x0f }, whole(0), Lane { offset: 14, mask: 0xf0 }],
        ];
        let more = lanes.iter().filter_map(|lanes| Settings::new(lanes).ok());
        [Settings::default()].into_iter().chain(more).collect()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Extract(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        Ok(check(frame, &settings)?)
    }

    fn edited(_: &[u8]) -> [Range<usize>; 2] {
        // The MAC addresses of a frame of any protocol.
        [0..2 * size_of::<Mac>(), 0..0]
    }

    #[inline(always)]
    fn key(checked: Checked) -> u128 {
        checked.key
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        decide(checked, answer.hop).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        let outcome = decide(checked, answer.hop);
        if outcome == Outcome::Forward {
            rewrite(frame, answer.hop);
        }
        outcome.into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, settings, look)
    }
}

/// The properties of a frame with a key that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Its key.
    pub key: u128,
    /// Bytes behind the header and the first VLAN tag.
    payload_bytes: u32,
}

/// Gathers the key of a frame.
///
/// # Errors
/// `short`, if the frame ends before a byte of it.
#[inline(always)]
pub fn check(frame: &[u8], settings: &Settings) -> Result<Checked, Outcome> {
    if frame.len() < usize::from(settings.reach) {
        return Err(Outcome::Short);
    }
    let byte = |offset: &u8| frame.get(usize::from(*offset)).copied().unwrap_or_default();
    let first = usize::from(settings.offsets[0]);
    let key = match frame.get(first..).and_then(|bytes| bytes.first_chunk::<LANES_MAX>()) {
        // One load in place of one for each lane. The mask has no bits behind the last lane.
        Some(bytes) if settings.is_contiguous => *bytes,
        // Lanes that do not exist have mask 0.
        _ => settings.offsets.each_ref().map(byte),
    };
    let tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    let header = ethernet::HEADER_BYTES + if tagged { 4 } else { 0 };
    let payload_bytes = frame.len().saturating_sub(header) as u32;
    Ok(Checked { key: u128::from_be_bytes(key) & settings.mask(), payload_bytes })
}

/// Outcome of a frame with a key.
#[inline(always)]
#[must_use]
pub fn decide(checked: Checked, hop: &Adjacency) -> Outcome {
    match hop.kind() {
        AdjacencyKind::None => Outcome::NoEntry,
        AdjacencyKind::Drop => Outcome::DropEntry,
        AdjacencyKind::Port if checked.payload_bytes > u32::from(hop.mtu_bytes()) => Outcome::Mtu,
        AdjacencyKind::Port => Outcome::Forward,
        // The other kinds are no rows of such a network, and its control plane is where nothing is lost in silence.
        AdjacencyKind::Local
        | AdjacencyKind::Glean
        | AdjacencyKind::Forward
        | AdjacencyKind::Group
        | AdjacencyKind::Labels => Outcome::PuntEntry,
    }
}

/// Replaces the MAC addresses that the row has.
#[inline(always)]
fn rewrite(frame: &mut [u8], hop: &Adjacency) {
    let Some((destination, rest)) = frame.split_first_chunk_mut::<6>() else { return };
    if hop.dst() != Mac::ZERO {
        *destination = hop.dst().0;
    }
    if let Some(source) = rest.first_chunk_mut::<6>()
        && hop.src() != Mac::ZERO
    {
        *source = hop.src().0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulty_keys_are_refused() {
        let lane = |offset, mask| Lane { offset, mask };
        let many = |count: u8| -> Vec<Lane> { (0..count).map(|at| lane(at, 1)).collect() };
        assert_eq!(Settings::new(&[]), Err(KeyError::Lanes(0)));
        assert_eq!(Settings::new(&many(17)), Err(KeyError::Lanes(17)));
        assert!(Settings::new(&many(16)).is_ok());
        assert_eq!(Settings::new(&[lane(128, 1)]), Err(KeyError::Offset(128)));
        assert_eq!(Settings::new(&[lane(127, 1)]).map(|settings| settings.reach), Ok(128));
        assert_eq!(Settings::new(&[lane(5, 0)]), Err(KeyError::Mask(5)));
        assert_eq!(Settings::new(&[lane(0, 0xf0), lane(0, 0x0f)]), Err(KeyError::Twice(0)));
        let eight: Vec<Lane> = (0..8).map(|at| lane(at, 0xff)).collect();
        assert_eq!(Settings::new(&eight), Ok(Settings::default()));
        assert_eq!(Vec::<Lane>::from(Settings::default()), eight);
    }

    #[test]
    fn a_key_has_the_bytes_in_the_order_of_the_lanes() {
        let lanes = [(3, 0xff), (0, 0xf0), (127, 0x01)].map(|(offset, mask)| Lane { offset, mask });
        let settings = Settings::new(&lanes).unwrap();
        let frame: Vec<u8> = (0..128).map(|at| 0xff - at).collect();
        assert_eq!(check(&frame, &settings).map(|checked| checked.key), Ok(0xfcf000 << 104));
        assert_eq!(check(&frame[..127], &settings), Err(Outcome::Short));
        assert_eq!(settings.key_text(0xfcf000 << 104), "0xfcf000");
        // Successive bytes are gathered at once, unless the frame ends within 16 bytes.
        let lanes = [(120, 0xff), (121, 0x0f), (122, 0xff)].map(|(offset, mask)| Lane { offset, mask });
        let settings = Settings::new(&lanes).unwrap();
        assert!(settings.is_contiguous);
        for length in [123, 136] {
            let frame: Vec<u8> = (0..length).map(|at| 0xff - at).collect();
            assert_eq!(check(&frame, &settings).map(|checked| checked.key), Ok(0x870685 << 104));
        }
    }

    #[test]
    fn patterns_read_as_in_documents() {
        let settings = Settings::default();
        let text = |value: u64, mask: u64| {
            settings.pattern_text(&Pattern::new(u128::from(value) << 64, u128::from(mask) << 64))
        };
        assert_eq!(text(7, u64::MAX), "0x0000000000000007");
        assert_eq!(text(0x02 << 56, 0xff << 56), "0x0200000000000000/8");
        assert_eq!(text(1, 1), "0x0000000000000001 mask 0x0000000000000001");
        assert_eq!(text(0, 0), "any");
        let sparse =
            Settings::new(&[Lane { offset: 0, mask: 0x0f }, Lane { offset: 9, mask: 0xf0 }]).unwrap();
        let text = |mask: u16| sparse.pattern_text(&Pattern::new(u128::MAX, u128::from(mask) << 112));
        assert_eq!((text(0x0ff0), text(0x0f00)), ("0x0ff0".to_owned(), "0x0f00/8".to_owned()));
        assert_eq!((sparse.prefix_mask(8), sparse.prefix_mask(128)), (0x0f << 120, sparse.mask()));
    }
}
