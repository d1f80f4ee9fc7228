//! The `dag64` table image, field by field: the only description of its words.
//!
//! Flow: `Dag` (the updater) writes these words, `mem::lookup` (software) reads them. ADR-0002 gives the
//! reasons.
//!
//! An image is a flat array of 64-byte *granules* (one cache line each). It contains no pointers: a *ref*
//! names a granule by its index. All networks share the image; `roots[vid]` is the granule of a network's top
//! node, which is always `wide`.
//!
//! A node covers 8 bits of the key (256 slots). Adjacent slots with equal content form a *run*; a run has one
//! *item*.
//!
//! ```text
//! ref, 32 bits   31..28 kind   0 leaf, 1 n8, 2 n8x2, 3 n8x4, 4 n16, 5 n16x2, 6 n16x4, 7 n32, 8 wide
//!                27..0  leaf: next-hop word in 15..0 (65535 = no route); node: granule index
//!
//! A compressed node is split into L = 1, 2 or 4 parts (x1, x2, x4) of 256/L slots, so that one lookup
//! touches one cache line. Part p begins at byte 64 p and at slot 256/L * p; a run that crosses a part
//! boundary begins anew in the next part.
//!
//! part           bytes 0..32/L       8/L little-endian 32-bit maps; bit s of map m set: slot 32 m + s of the part
//!                                    begins a run
//!                bytes 32/L..40/L    before[m]: number of runs that begin before slot 32 m of the part
//!                bytes 40/L..        items in slot order, little endian:
//!                                    n8:  1 byte, a next hop below 255, or 255 = no route
//!                                    n16: 2 bytes, a next-hop word
//!                                    n32: 4 bytes, a ref
//!                Items of an unsplit node that fits no split run on into the granules behind it.
//! wide           bytes 0..1024       256 refs, one a slot
//! ```
//!
//! Lookup of slot b of a part: `rank = before[b/32] + popcount(map[b/32] << (31 - b%32)) - 1`, then `item[rank]`.
//! Slot 0 of a part always begins a run, so the rank is never negative. Unused bytes are zero, so equal nodes are
//! equal bytes.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Size of a granule in bytes; the unit of allocation and of references.
pub const GRANULE_BYTES: usize = 64;
/// Bytes before the first item of an unsplit node; a part of a node split in L parts has 1/L of them.
pub const HEADER_BYTES: usize = 40;
/// Bytes of an unsplit node's maps.
pub const MAPS_BYTES: usize = 32;
/// Slots of a node: a node covers 8 bits of the key.
pub const SLOTS: usize = 256;
/// Bytes of a wide node.
pub const WIDE_BYTES: usize = SLOTS * 4;
/// Granules of the largest node.
pub const NODE_GRANULES_MAX: usize = WIDE_BYTES / GRANULE_BYTES;
/// Number of children from which a node is written wide: one read instead of two, for at most 1 KiB.
pub const WIDE_CHILDREN_MIN: usize = 24;
/// Number of granules that a ref can address.
pub const GRANULES_MAX: u64 = 1 << 28;
/// The byte for "no route" in an `n8` node.
pub const NONE_BYTE: u8 = u8::MAX;

/// The target of a slot: a next hop or a node. The module documentation has the layout.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[repr(transparent)]
pub struct Ref(u32);

/// The type of a [`Ref`]'s target; the discriminants are those of the image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A next-hop word.
    Leaf = 0,
    /// 1-byte next hops, one part.
    N8 = 1,
    /// 1-byte next hops, two parts.
    N8x2 = 2,
    /// 1-byte next hops, four parts.
    N8x4 = 3,
    /// 2-byte next hops, one part.
    N16 = 4,
    /// 2-byte next hops, two parts.
    N16x2 = 5,
    /// 2-byte next hops, four parts.
    N16x4 = 6,
    /// Refs, one part.
    N32 = 7,
    /// Refs, one for each slot.
    Wide = 8,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Leaf,
        Self::N8,
        Self::N8x2,
        Self::N8x4,
        Self::N16,
        Self::N16x2,
        Self::N16x4,
        Self::N32,
        Self::Wide,
    ];

    /// Number of parts of a node, as a power of two. Each granule of a wide node is a part.
    #[must_use]
    #[inline(always)]
    pub const fn parts_log2(self) -> u32 {
        const TABLE: [u8; 16] = [0, 0, 1, 2, 0, 1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0];
        TABLE[self as usize] as u32
    }

    /// Size of an item in bytes, as a power of two.
    #[must_use]
    #[inline(always)]
    pub const fn width_log2(self) -> u32 {
        const TABLE: [u8; 16] = [0, 0, 0, 0, 1, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0];
        TABLE[self as usize] as u32
    }
}

impl Ref {
    pub(crate) const SHIFT: u32 = 28;
    pub(crate) const INDEX: u32 = (1 << Self::SHIFT) - 1;
    /// "No route".
    pub const NONE: Self = Self::leaf(u16::MAX);

    /// A leaf with a next-hop word.
    #[must_use]
    pub const fn leaf(word: u16) -> Self {
        Self(word as u32)
    }

    /// A ref to a node; `index` is below [`GRANULES_MAX`] because the arena is no larger.
    #[must_use]
    pub(crate) const fn node(kind: Kind, index: u32) -> Self {
        Self(((kind as u32) << Self::SHIFT) | (index & Self::INDEX))
    }

    /// The raw word.
    #[must_use]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Converts a raw word of an image.
    #[must_use]
    pub const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// The type of the target.
    #[must_use]
    #[inline(always)]
    pub const fn kind(self) -> Kind {
        let kind = (self.0 >> Self::SHIFT) as usize;
        if kind < Kind::ALL.len() { Kind::ALL[kind] } else { Kind::Wide }
    }

    /// Whether the target is a next-hop word.
    #[must_use]
    #[inline(always)]
    pub const fn is_leaf(self) -> bool {
        self.0 >> Self::SHIFT == 0
    }

    /// The next-hop word of a leaf.
    #[must_use]
    #[inline(always)]
    pub const fn hop_word(self) -> u16 {
        self.0 as u16
    }

    /// The granule index of a node.
    #[must_use]
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.0 & Self::INDEX
    }
}

/// A node as the updater processes it: its runs, independent of any encoding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "([u32; 8], Vec<Ref>)", into = "([u32; 8], Vec<Ref>)")]
pub struct Runs {
    /// Bit `s % 32` of `starts[s / 32]` is set if slot s begins a run.
    pub starts: [u32; 8],
    /// Items of the runs in slot order; the first `len` are valid.
    items: [Ref; SLOTS],
    len: usize,
}

impl From<Runs> for ([u32; 8], Vec<Ref>) {
    fn from(runs: Runs) -> Self {
        (runs.starts, runs.items().to_vec())
    }
}

impl TryFrom<([u32; 8], Vec<Ref>)> for Runs {
    type Error = &'static str;

    fn try_from((starts, found): ([u32; 8], Vec<Ref>)) -> Result<Self, &'static str> {
        let len: usize = starts.iter().map(|map| map.count_ones() as usize).sum();
        let mut items = [Ref::NONE; SLOTS];
        let place = items.get_mut(..found.len()).filter(|_| len == found.len() && starts[0] & 1 == 1);
        place.ok_or("a node whose runs are not those that begin in it")?.copy_from_slice(&found);
        Ok(Self { starts, items, len })
    }
}

impl Runs {
    /// Computes the runs of 256 slots.
    #[must_use]
    pub fn of(slots: &[Ref; SLOTS]) -> Self {
        let mut runs = Self { starts: [0; 8], items: [Ref::NONE; SLOTS], len: 0 };
        let mut before = None;
        for (m, part) in slots.chunks_exact(32).enumerate() {
            // Find differences first, without branches; then visit only the runs, which are few.
            let mut map = u32::from(before != Some(part[0]));
            for bit in 1..32 {
                map |= u32::from(part[bit] != part[bit - 1]) << bit;
            }
            runs.starts[m] = map;
            before = Some(part[31]);
            while map != 0 {
                runs.items[runs.len] = part[map.trailing_zeros() as usize];
                runs.len += 1;
                map &= map - 1;
            }
        }
        runs
    }

    /// Items of the runs, in slot order.
    #[must_use]
    pub fn items(&self) -> &[Ref] {
        &self.items[..self.len]
    }

    /// The first slot and the item of each run.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Ref)> + '_ {
        let starts = (0..SLOTS).filter(|s| self.starts[s / 32] >> (s % 32) & 1 == 1).map(|s| s as u8);
        starts.zip(self.items().iter().copied())
    }

    /// The slots of a run.
    ///
    /// # Panics
    /// If `run` does not exist.
    #[must_use]
    pub fn slots_of(&self, run: usize) -> Range<usize> {
        assert!(run < self.len, "run {run} of {}", self.len);
        let begin = |run: usize| {
            let mut before = 0;
            for (m, map) in self.starts.iter().enumerate() {
                let here = map.count_ones() as usize;
                if run < before + here {
                    let mut left = *map;
                    (before..run).for_each(|_| left &= left - 1);
                    return 32 * m + left.trailing_zeros() as usize;
                }
                before += here;
            }
            SLOTS
        };
        begin(run)..begin(run + 1)
    }

    /// The 256 slots.
    #[must_use]
    pub fn slots(&self) -> [Ref; SLOTS] {
        let mut slots = [Ref::NONE; SLOTS];
        let mut rank = 0;
        for (s, slot) in slots.iter_mut().enumerate() {
            rank += (self.starts[s / 32] >> (s % 32) & 1) as usize;
            *slot = self.items[rank - 1];
        }
        slots
    }

    /// The kind of this node when written; `top` nodes are always wide.
    #[must_use]
    pub fn kind(&self, top: bool) -> Kind {
        let children = self.items().iter().filter(|item| !item.is_leaf()).count();
        let narrow = || self.items().iter().all(|i| i.hop_word() < u16::from(NONE_BYTE) || *i == Ref::NONE);
        let choices = if top
            || children >= WIDE_CHILDREN_MIN
            || (children > 0 && HEADER_BYTES + 4 * self.len >= WIDE_BYTES)
        {
            return Kind::Wide;
        } else if children > 0 {
            return Kind::N32;
        } else if narrow() {
            [Kind::N8, Kind::N8x2, Kind::N8x4]
        } else {
            [Kind::N16, Kind::N16x2, Kind::N16x4]
        };
        choices.into_iter().find(|kind| self.parts_fit(*kind)).unwrap_or(choices[0])
    }

    /// Whether each part of a node of `kind` fits its cache line.
    fn parts_fit(&self, kind: Kind) -> bool {
        let parts = 1 << kind.parts_log2();
        let fit = (GRANULE_BYTES - HEADER_BYTES / parts) >> kind.width_log2();
        self.starts.chunks_exact(8 / parts).all(|maps| {
            let begun_before = usize::from(maps[0] & 1 == 0);
            maps.iter().map(|map| map.count_ones() as usize).sum::<usize>() + begun_before <= fit
        })
    }

    /// Writes the node into `bytes` (which must be zeroed) and returns the number of granules.
    pub(crate) fn encode(&self, kind: Kind, bytes: &mut [u8; WIDE_BYTES]) -> usize {
        if kind == Kind::Wide {
            encode_wide(&self.slots(), bytes);
            return NODE_GRANULES_MAX;
        }
        let parts = 1 << kind.parts_log2();
        let (width, maps_len) = (1 << kind.width_log2(), 8 / parts);
        let mut done = 0;
        for (p, maps) in self.starts.chunks_exact(maps_len).enumerate() {
            let bytes = &mut bytes[p * GRANULE_BYTES..];
            // If a run continues into this part, the previous item began it.
            done -= usize::from(maps[0] & 1 == 0);
            let mut before = 0;
            for (m, map) in maps.iter().enumerate() {
                let map = map | u32::from(m == 0);
                bytes[4 * m..4 * m + 4].copy_from_slice(&map.to_le_bytes());
                bytes[MAPS_BYTES / parts + m] = before as u8; // at most 224
                before += map.count_ones() as usize;
            }
            let items = &self.items()[done..done + before];
            for (item, to) in items.iter().zip(bytes[HEADER_BYTES / parts..].chunks_exact_mut(width)) {
                // The low byte of 65535 is 255, so "no route" stays "no route" when narrowed.
                to.copy_from_slice(&item.0.to_le_bytes()[..width]);
            }
            done += before;
        }
        if parts > 1 { parts } else { (HEADER_BYTES + width * self.len).div_ceil(GRANULE_BYTES) }
    }
}

/// Whether a node with these slots is wide for certain, without computing its runs.
pub(crate) fn is_certainly_wide(slots: &[Ref; SLOTS], top: bool) -> bool {
    top || {
        let (first, rest) = (slots[0], slots.windows(2));
        let begun = |pair: &[Ref]| usize::from(pair[0] != pair[1] && !pair[1].is_leaf());
        usize::from(!first.is_leaf()) + rest.map(begun).sum::<usize>() >= WIDE_CHILDREN_MIN
    }
}

/// Writes a wide node.
pub(crate) fn encode_wide(slots: &[Ref; SLOTS], bytes: &mut [u8; WIDE_BYTES]) {
    for (slot, word) in slots.iter().zip(bytes.chunks_exact_mut(4)) {
        word.copy_from_slice(&slot.0.to_le_bytes());
    }
}

/// Number of granules of a node of `kind` whose first granule is `head`.
#[must_use]
pub(crate) fn granules(kind: Kind, head: &[u8]) -> usize {
    match kind {
        Kind::Leaf => 0,
        Kind::N8 | Kind::N16 | Kind::N32 => {
            (HEADER_BYTES + (run_count(head) << kind.width_log2())).div_ceil(GRANULE_BYTES)
        }
        _ => 1 << kind.parts_log2(),
    }
}

/// Number of runs of an unsplit node.
fn run_count(head: &[u8]) -> usize {
    usize::from(head[39]) + map(head, 7).count_ones() as usize
}

fn map(head: &[u8], m: usize) -> u32 {
    ref_at(&head[4 * m..]).0
}

fn ref_at(bytes: &[u8]) -> Ref {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[..4]);
    Ref(u32::from_le_bytes(word))
}

/// Calls `each` for every run of a node that leads to another node.
pub(crate) fn for_each_child(kind: Kind, bytes: &[u8], mut each: impl FnMut(Ref)) {
    let items = match kind {
        Kind::N32 => &bytes[HEADER_BYTES..HEADER_BYTES + 4 * run_count(bytes)],
        Kind::Wide => &bytes[..WIDE_BYTES],
        _ => return,
    };
    let mut before = Ref::NONE;
    for item in items.chunks_exact(4).map(ref_at) {
        if !item.is_leaf() && item != before {
            each(item);
        }
        before = item;
    }
}

/// Decodes the runs of a node, slot by slot, as a lookup reads them.
pub(crate) fn decode(kind: Kind, bytes: &[u8]) -> Runs {
    if kind == Kind::Wide {
        let mut slots = [Ref::NONE; SLOTS];
        for (slot, word) in slots.iter_mut().zip(bytes.chunks_exact(4)) {
            *slot = ref_at(word);
        }
        return Runs::of(&slots);
    }
    let (parts, width) = (1 << kind.parts_log2(), 1 << kind.width_log2());
    let maps_len = 8 / parts;
    let item = |bytes: &[u8]| match width {
        1 if bytes[0] == NONE_BYTE => Ref::NONE,
        1 => Ref::leaf(u16::from(bytes[0])),
        2 => Ref::leaf(u16::from_le_bytes([bytes[0], bytes[1]])),
        _ => ref_at(bytes),
    };
    let mut runs = Runs { starts: [0; 8], items: [Ref::NONE; SLOTS], len: 0 };
    for (p, maps) in runs.starts.chunks_exact_mut(maps_len).enumerate() {
        let bytes = &bytes[p * GRANULE_BYTES..];
        let mut count = 0;
        for (m, to) in maps.iter_mut().enumerate() {
            *to = map(bytes, m);
            count += to.count_ones() as usize;
        }
        let mut items = bytes[HEADER_BYTES / parts..].chunks_exact(width).take(count).map(item);
        // A part begins with its own item, which can be that of a run that continues into it.
        let first = items.next();
        if p > 0 && runs.items[..runs.len].last().copied() == first {
            maps[0] &= !1;
        } else if let Some(first) = first {
            runs.items[runs.len] = first;
            runs.len += 1;
        }
        for item in items {
            runs.items[runs.len] = item;
            runs.len += 1;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Slots with few different values, so that runs of all lengths occur.
    fn slots() -> impl Strategy<Value = [Ref; SLOTS]> {
        let value = prop_oneof![
            4 => (0_u16..5).prop_map(Ref::leaf),
            1 => any::<u16>().prop_map(Ref::leaf),
            1 => Just(Ref::NONE),
        ];
        let child = (0_u32..3).prop_map(|i| Ref::node(Kind::N8, i));
        let runs = |value| proptest::collection::vec((value, 1_usize..80), 1..200);
        prop_oneof![runs(value.clone().boxed()), runs(prop_oneof![value, child].boxed())].prop_map(|runs| {
            let all = runs.into_iter().flat_map(|(value, len)| std::iter::repeat_n(value, len));
            let all: Vec<_> = all.chain(std::iter::repeat_n(Ref::NONE, SLOTS)).take(SLOTS).collect();
            all.try_into().unwrap()
        })
    }

    proptest! {
        #[test]
        fn every_kind_preserves_every_slot(slots in slots(), top: bool) {
            let runs = Runs::of(&slots);
            let of_runs = (0..runs.items().len()).map(|run| runs.slots_of(run));
            let by_slot: Vec<_> = of_runs.clone().zip(runs.items()).flat_map(|(slots, item)| slots.map(|_| *item)).collect();
            prop_assert_eq!(&by_slot[..], &slots[..]);
            let fits = [Kind::N8, Kind::N8x2, Kind::N8x4, Kind::N16, Kind::N16x2, Kind::N16x4];
            let leaves = slots.iter().all(|s| s.is_leaf());
            let narrow = slots.iter().all(|s| s.hop_word() < 255 || *s == Ref::NONE);
            let mut kinds = vec![runs.kind(top), Kind::Wide];
            kinds.extend(fits.into_iter().filter(|k| {
                leaves && (narrow || k.width_log2() == 1) && (k.parts_log2() == 0 || runs.parts_fit(*k))
            }));
            for kind in kinds {
                let mut bytes = [0; WIDE_BYTES];
                let len = runs.encode(kind, &mut bytes);
                prop_assert_eq!(len, granules(kind, &bytes[..GRANULE_BYTES]));
                prop_assert!(bytes[len * GRANULE_BYTES..].iter().all(|b| *b == 0));
                prop_assert_eq!(&decode(kind, &bytes[..len * GRANULE_BYTES]), &runs);
                let mut children = Vec::new();
                for_each_child(kind, &bytes, |child| children.push(child));
                let expected: Vec<_> = runs.items().iter().copied().filter(|i| !i.is_leaf()).collect();
                prop_assert_eq!(children, expected);
            }
        }
    }

    #[test]
    fn a_node_that_fits_one_line_uses_one() {
        let mut slots = [Ref::leaf(1); SLOTS];
        slots[..23].iter_mut().enumerate().for_each(|(i, slot)| *slot = Ref::leaf(i as u16 + 2));
        let runs = Runs::of(&slots);
        assert_eq!((runs.items().len(), runs.kind(false)), (24, Kind::N8));
        slots[255] = Ref::NONE;
        assert_eq!(Runs::of(&slots).kind(false), Kind::N8x2);
        slots[0] = Ref::leaf(255);
        assert_eq!(Runs::of(&slots).kind(false), Kind::N16x4);
    }
}
