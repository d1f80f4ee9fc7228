//! The batch lookup of `lookup.rs` with AVX-512: 16 lanes in each instruction, without branches that depend
//! on a key.
//!
//! The walk and the reads are the same. Gathers read the image as 32-bit words, `vpopcntd` counts runs (byte
//! shuffles on processors without it), and lanes that reached a leaf are removed by compression. Addresses
//! are indices of 32-bit words, which limits images to 8 GiB.
//!
//! Everything is generic over `POPCNT` (whether `vpopcntd` is available) and inlined into one of two entry
//! points.

use std::arch::x86_64::*;

use crate::layout::{GRANULE_BYTES, Ref};
use crate::mem::{Image, ROOTS};
use crate::types::{Key, Vid};

/// Lanes that walk together: a multiple of 16.
const LANES: usize = 256;
/// Vectors that take a step together: gathers are slow, and each waits for the one before it, so the gathers of one
/// vector run while those of the other wait.
const GROUP: usize = 2;
const _: () = assert!(LANES.is_multiple_of(16 * GROUP));
/// For images with fewer granules, word indices fit into the signed 32-bit indices of a gather.
pub(super) const GRANULES_MAX: u32 = (1 << 31) / GRANULE_WORDS;
const GRANULE_WORDS: u32 = (GRANULE_BYTES / 4) as u32;

#[repr(align(64))]
struct Lanes([u32; LANES]);

impl Lanes {
    #[inline(always)]
    fn vector(&self, v: usize) -> __m512i {
        // SAFETY: v is below LANES / 16 at every call (loops over that many or fewer, in whole groups); the array is
        // aligned to 64.
        unsafe { _mm512_load_si512(self.0.as_ptr().add(16 * v).cast()) }
    }

    #[inline(always)]
    fn set_vector(&mut self, v: usize, value: __m512i) {
        // SAFETY: as in `vector`.
        unsafe { _mm512_store_si512(self.0.as_mut_ptr().add(16 * v).cast(), value) }
    }
}

/// See `Image::lookup_batch`. Requires AVX-512 VPOPCNTDQ.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt,bmi1,bmi2")]
pub(super) fn lookup_batch<K: Key>(image: &Image, vids: &[Vid], keys: &[K], out: &mut [u16]) {
    chunks::<K, true>(image, vids, keys, out);
}

/// As [`lookup_batch`], without VPOPCNTDQ.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1,bmi2")]
pub(super) fn lookup_batch_shuffled<K: Key>(image: &Image, vids: &[Vid], keys: &[K], out: &mut [u16]) {
    chunks::<K, false>(image, vids, keys, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1,bmi2")]
#[inline]
fn chunks<K: Key, const POPCNT: bool>(image: &Image, vids: &[Vid], keys: &[K], out: &mut [u16]) {
    let chunks = vids.chunks(LANES).zip(keys.chunks(LANES)).zip(out.chunks_mut(LANES));
    for ((vids, keys), out) in chunks {
        let n = vids.len().min(keys.len()).min(out.len());
        chunk::<K, POPCNT>(image, &vids[..n], &keys[..n], &mut out[..n]);
    }
}

/// Mask of the lanes of vector `v` that are below `n`.
#[inline(always)]
fn tail(v: usize, n: usize) -> __mmask16 {
    ((1_u32 << n.saturating_sub(16 * v).min(16)) - 1) as u16
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1,bmi2")]
#[inline]
fn chunk<K: Key, const POPCNT: bool>(image: &Image, vids: &[Vid], keys: &[K], out: &mut [u16]) {
    let n = vids.len();
    let mut walk = Walk {
        nodes: Lanes([0; LANES]),
        lanes: Lanes([0; LANES]),
        words: Lanes([0; LANES]),
        live: 0,
        fetched: 0,
    };
    let mut found = Lanes([0; LANES]);
    let base = image.base().cast_const().cast::<i32>();
    let iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for v in 0..n.div_ceil(16) {
        let mask = tail(v, n);
        let lane = _mm512_add_epi32(iota, _mm512_set1_epi32(16 * v as i32));
        let word = first_words(keys, lane, mask, v);
        // SAFETY: `Vid` is a transparent 16-bit word below ROOTS; masked lanes are not read. Roots are granules of
        // wide nodes, 256 words each.
        let next = unsafe {
            let ids = _mm256_maskz_loadu_epi16(mask, vids.as_ptr().add(16 * v).cast());
            let ids = _mm512_and_si512(_mm512_cvtepu16_epi32(ids), _mm512_set1_epi32(ROOTS as i32 - 1));
            let zero = _mm512_setzero_si512();
            let roots = _mm512_mask_i32gather_epi32::<4>(zero, mask, ids, image.roots::<K>().as_ptr().cast());
            let at = _mm512_add_epi32(_mm512_slli_epi32::<4>(roots), slot_in(word, 0));
            _mm512_mask_i32gather_epi32::<4>(zero, mask, at, base)
        };
        found.set_vector(v, next);
        walk.keep::<K>(image, mask, next, lane, word, 8);
    }
    let mut depth = 8;
    while walk.live > 0 && depth < K::BITS {
        let count = walk.next_level(image, depth);
        for first in (0..count.div_ceil(16)).step_by(GROUP) {
            let vectors: [usize; GROUP] = std::array::from_fn(|i| first + i);
            let masks = vectors.map(|v| tail(v, count));
            let nodes = vectors.map(|v| walk.nodes.vector(v));
            let words = vectors.map(|v| walk.words.vector(v));
            let lanes = vectors.map(|v| walk.lanes.vector(v));
            let next = step::<POPCNT>(base, nodes, words.map(|word| slot_in(word, depth)), masks);
            for i in 0..GROUP {
                let (mask, next, lane) = (masks[i], next[i], lanes[i]);
                let leaf = _mm512_mask_testn_epi32_mask(mask, next, _mm512_set1_epi32(!Ref::INDEX as i32));
                if leaf != 0 {
                    // SAFETY: lanes are below LANES.
                    unsafe {
                        _mm512_mask_i32scatter_epi32::<4>(found.0.as_mut_ptr().cast(), leaf, lane, next)
                    };
                }
                let word = words[i];
                let word = if (depth + 8) % 32 == 0 { key_words(keys, lane, mask, depth + 8) } else { word };
                walk.keep::<K>(image, mask, next, lane, word, depth + 8);
            }
        }
        depth += 8;
    }
    for (v, out) in out.chunks_mut(16).enumerate() {
        let words = _mm512_cvtepi32_epi16(found.vector(v));
        // SAFETY: masked to the length of `out`.
        unsafe { _mm256_mask_storeu_epi16(out.as_mut_ptr().cast(), tail(0, out.len()), words) };
    }
}

/// As [`key_words`], for the 16 lanes from `16 * v` at depth 0, where one-word keys can be loaded without a
/// gather.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn first_words<K: Key>(keys: &[K], lane: __m512i, mask: __mmask16, v: usize) -> __m512i {
    if K::BITS == 32 {
        // SAFETY: lanes under the mask are below the number of keys, which are one word each; others are not read.
        return unsafe { _mm512_maskz_loadu_epi32(mask, keys.as_ptr().add(16 * v).cast()) };
    }
    key_words(keys, lane, mask, 0)
}

/// The 32 bits of each lane's key that start at `depth` (a multiple of 32); zeros beyond the key.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn key_words<K: Key>(keys: &[K], lane: __m512i, mask: __mmask16, depth: u8) -> __m512i {
    let words = i32::from(K::BITS / 32);
    let word = words - 1 - i32::from(depth / 32);
    let mask = if word < 0 { 0 } else { mask };
    let at = _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(words)), _mm512_set1_epi32(word));
    // SAFETY: lanes under the mask are below the number of keys, and a key is `words` little-endian 32-bit words.
    unsafe { _mm512_mask_i32gather_epi32::<4>(_mm512_setzero_si512(), mask, at, keys.as_ptr().cast()) }
}

/// The 8 bits at `depth` of keys, given the word that contains them.
#[target_feature(enable = "avx512f")]
#[inline]
fn slot_in(word: __m512i, depth: u8) -> __m512i {
    let shift = _mm_cvtsi32_si128(24 - i32::from(depth % 32));
    _mm512_and_si512(_mm512_srl_epi32(word, shift), _mm512_set1_epi32(255))
}

/// The lanes that are at a node, packed at the front.
struct Walk {
    nodes: Lanes,
    lanes: Lanes,
    /// The 32 bits of their keys that contain the 8 bits of this level.
    words: Lanes,
    /// Number of these lanes.
    live: usize,
    /// How many of them have their next read prefetched.
    fetched: usize,
}

impl Walk {
    /// Appends those of 16 lanes that are at a node. Prefetches the reads of earlier lanes at `depth`, so that memory
    /// accesses overlap with the computation of other lanes. A vector later than it could: one that was stored just
    /// now, in two parts, cannot be loaded before both are in the cache.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
    #[inline]
    fn keep<K: Key>(
        &mut self,
        image: &Image,
        mask: __mmask16,
        next: __m512i,
        lane: __m512i,
        word: __m512i,
        depth: u8,
    ) {
        let at_node = _mm512_mask_test_epi32_mask(mask, next, _mm512_set1_epi32(!Ref::INDEX as i32));
        let node = _mm512_maskz_compress_epi32(at_node, next);
        let lane = _mm512_maskz_compress_epi32(at_node, lane);
        let word = _mm512_maskz_compress_epi32(at_node, word);
        // SAFETY: lanes are kept after the whole group of vectors that they come from was read, one vector after the
        // other, so `live` is at most LANES - 16 here.
        unsafe {
            _mm512_storeu_si512(self.nodes.0.as_mut_ptr().add(self.live).cast(), node);
            _mm512_storeu_si512(self.lanes.0.as_mut_ptr().add(self.live).cast(), lane);
            _mm512_storeu_si512(self.words.0.as_mut_ptr().add(self.live).cast(), word);
        }
        self.live += at_node.count_ones() as usize;
        if self.fetched + 32 <= self.live && depth < K::BITS {
            self.fetch(image, depth);
        }
    }

    /// Prefetches the remaining reads and begins a new level. Returns its number of lanes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    fn next_level(&mut self, image: &Image, depth: u8) -> usize {
        let count = self.live;
        while self.fetched < count {
            self.fetch(image, depth);
        }
        self.live = 0;
        self.fetched = 0;
        count
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    fn fetch(&mut self, image: &Image, depth: u8) {
        let v = self.fetched / 16;
        let (node, word) = (self.nodes.vector(v), self.words.vector(v));
        let kind = _mm512_srli_epi32::<{ Ref::SHIFT }>(node);
        let mut words = Lines([0; 16]);
        let first = first_word(node, kind, slot_in(word, depth));
        // SAFETY: 16 aligned words.
        unsafe { _mm512_store_si512(words.0.as_mut_ptr().cast(), first) };
        let base = image.base().cast_const().cast::<u32>();
        for word in words.0 {
            _mm_prefetch::<_MM_HINT_T0>(base.wrapping_add(word as usize).cast());
        }
        self.fetched += 16;
    }
}

#[repr(align(64))]
struct Lines([u32; 16]);

/// Looks up a table of 16 words by kind (`layout::Kind`), for 16 lanes at once.
#[target_feature(enable = "avx512f")]
#[inline]
fn by_kind(kind: __m512i, table: [i32; 9]) -> __m512i {
    let [a, b, c, d, e, f, g, h, i] = table;
    _mm512_permutexvar_epi32(kind, _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, i, h, g, f, e, d, c, b, a))
}

/// Word index of the part of a node that contains a slot.
#[target_feature(enable = "avx512f")]
#[inline]
fn first_word(node: __m512i, kind: __m512i, slot: __m512i) -> __m512i {
    let index = _mm512_and_si512(node, _mm512_set1_epi32(Ref::INDEX as i32));
    let part = _mm512_srlv_epi32(slot, by_kind(kind, [8, 8, 7, 6, 8, 7, 6, 8, 4]));
    _mm512_slli_epi32::<4>(_mm512_add_epi32(index, part))
}

/// Number of bits set in each lane.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn ones<const POPCNT: bool>(lanes: __m512i) -> __m512i {
    if POPCNT {
        // SAFETY: `POPCNT` is only set below the entry that needs VPOPCNTDQ.
        return unsafe { _mm512_popcnt_epi32(lanes) };
    }
    // Count the bits of each half byte by table lookup, then add up the bytes of each lane.
    let half = _mm512_set1_epi8(0x0f);
    let table = _mm512_broadcast_i32x4(_mm_set_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0));
    let low = _mm512_shuffle_epi8(table, _mm512_and_si512(lanes, half));
    let high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16::<4>(lanes), half));
    let pairs = _mm512_maddubs_epi16(_mm512_add_epi8(low, high), _mm512_set1_epi8(1));
    _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))
}

/// One step of a group of vectors: the refs of `slot` in `node`, for 16 lanes each.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn step<const POPCNT: bool>(
    base: *const i32,
    node: [__m512i; GROUP],
    slot: [__m512i; GROUP],
    mask: [__mmask16; GROUP],
) -> [__m512i; GROUP] {
    let zero = _mm512_setzero_si512();
    let three = _mm512_set1_epi32(3);
    let kind = node.map(|node| _mm512_srli_epi32::<{ Ref::SHIFT }>(node));
    let (mut first, mut map_index, mut map, mut byte, mut word) =
        ([zero; GROUP], [zero; GROUP], [zero; GROUP], [zero; GROUP], [zero; GROUP]);
    let mut packed = [0; GROUP];
    // Of a wide node the ref, of others the map: one gather.
    for i in 0..GROUP {
        first[i] = first_word(node[i], kind[i], slot[i]);
        let wide = _mm512_cmplt_epi32_mask(node[i], zero);
        packed[i] = mask[i] & !wide;
        let index = _mm512_srli_epi32::<5>(slot[i]);
        map_index[i] = _mm512_and_si512(index, by_kind(kind[i], [7, 7, 3, 1, 7, 3, 1, 7, 7]));
        let ref_index = _mm512_and_si512(slot[i], _mm512_set1_epi32(15));
        let at = _mm512_add_epi32(first[i], _mm512_mask_mov_epi32(map_index[i], wide, ref_index));
        // SAFETY: gathers read words of live nodes (module invariant of `mem`, fields as in `layout`): of a wide node
        // its refs; of others the maps, and below the aligned words that hold the count and the item.
        map[i] = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, mask[i], at, base) };
    }
    if packed == [0; GROUP] {
        return map;
    }
    for i in 0..GROUP {
        byte[i] = _mm512_add_epi32(map_index[i], by_kind(kind[i], [0, 32, 16, 8, 32, 16, 8, 32, 0]));
        let at = _mm512_add_epi32(first[i], _mm512_srli_epi32::<2>(byte[i]));
        // SAFETY: as above.
        word[i] = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, packed[i], at, base) };
    }
    for i in 0..GROUP {
        let shift = _mm512_slli_epi32::<3>(_mm512_and_si512(byte[i], three));
        let before = _mm512_and_si512(_mm512_srlv_epi32(word[i], shift), _mm512_set1_epi32(255));
        // map << (31 - slot % 32) keeps the runs that begin at or before the slot.
        let up_to = _mm512_sllv_epi32(map[i], _mm512_andnot_si512(slot[i], _mm512_set1_epi32(31)));
        let ranks = _mm512_add_epi32(before, ones::<POPCNT>(up_to));
        let rank = _mm512_sub_epi32(ranks, _mm512_set1_epi32(1));
        let offset = _mm512_sllv_epi32(rank, by_kind(kind[i], [0, 0, 0, 0, 1, 1, 1, 2, 2]));
        byte[i] = _mm512_add_epi32(offset, by_kind(kind[i], [0, 40, 20, 10, 40, 20, 10, 40, 0]));
        let at = _mm512_add_epi32(first[i], _mm512_srli_epi32::<2>(byte[i]));
        // SAFETY: as above.
        word[i] = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, packed[i], at, base) };
    }
    for i in 0..GROUP {
        let shift = _mm512_slli_epi32::<3>(_mm512_and_si512(byte[i], three));
        let used = by_kind(kind[i], [0, 0xff, 0xff, 0xff, 0xffff, 0xffff, 0xffff, -1, -1]);
        let item = _mm512_and_si512(_mm512_srlv_epi32(word[i], shift), used);
        let byte_none = _mm512_cmpeq_epi32_mask(used, _mm512_set1_epi32(0xff))
            & _mm512_cmpeq_epi32_mask(item, _mm512_set1_epi32(0xff));
        let item = _mm512_mask_mov_epi32(item, byte_none, _mm512_set1_epi32(Ref::NONE.word() as i32));
        map[i] = _mm512_mask_mov_epi32(map[i], packed[i], item);
    }
    map
}
