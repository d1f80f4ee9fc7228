//! Lookup in a `dag64` image: one key, or a batch over many networks, level by level with prefetch.
//!
//! A lookup is a chain of dependent reads, so a single one takes the memory latency at each level. A batch
//! advances all its keys by one level at a time and prefetches the reads of the next level, so that latencies
//! overlap (measured in `bench/results`). Keys that reached a leaf leave the batch without a branch.

use crate::layout::{GRANULE_BYTES, HEADER_BYTES, Kind, MAPS_BYTES, NONE_BYTE, Ref};
use crate::mem::Image;
use crate::types::{Key, Vid};

/// Keys that walk the trie together: enough to hide memory latency with the line-fill buffers of a core, few
/// enough that their state stays in the first-level cache.
const LANES: usize = 64;

/// Instruction set used to compute ranks; detected once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Isa {
    /// Available on every processor of this architecture.
    Base,
    /// `popcnt`, BMI1 and BMI2.
    #[cfg(target_arch = "x86_64")]
    Bmi,
    /// AVX-512 F, BW, VL: 16 lanes in each instruction.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Also VPOPCNTDQ.
    #[cfg(target_arch = "x86_64")]
    Avx512Popcnt,
}

impl Isa {
    /// The best instruction set of this processor.
    pub(crate) fn detect() -> Self {
        Self::available().last().copied().unwrap_or(Self::Base)
    }

    /// All instruction sets of this processor, the best one last.
    fn available() -> Vec<Self> {
        let mut all = vec![Self::Base];
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("popcnt")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
        {
            all.push(Self::Bmi);
            if std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512vl")
            {
                all.push(Self::Avx512);
                if std::is_x86_feature_detected!("avx512vpopcntdq") {
                    all.push(Self::Avx512Popcnt);
                }
            }
        }
        all
    }
}

#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect but on caches.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl Image {
    /// Address of the part of a node that has `slot`: the first read of a step. For a leaf, the address may
    /// be outside the arena; it is only used to prefetch without a branch.
    #[inline(always)]
    fn part_at(&self, node: Ref, slot: u8) -> *const u8 {
        let part = usize::from(slot) >> (8 - node.kind().parts_log2());
        self.base().cast_const().wrapping_add((node.index() as usize + part) * GRANULE_BYTES)
    }

    /// The ref of `slot` in a node.
    #[inline(always)]
    fn step(&self, node: Ref, slot: u8) -> Ref {
        let kind = node.kind();
        let part = self.part_at(node, slot);
        // SAFETY: a node of this kind has these fields, all inside its granules (`layout`): maps at 4 m, counts
        // behind them, then items, as many as there are bits set, of which one lies at or before the slot. Items are
        // aligned to their width.
        unsafe {
            if kind == Kind::Wide {
                return Ref::from_word(load32(part.add(4 * usize::from(slot % 16))));
            }
            let log2 = kind.parts_log2();
            let slot = usize::from(slot) & (255 >> log2);
            let map = load32(part.add(4 * (slot / 32)));
            let before = usize::from(part.add((MAPS_BYTES >> log2) + slot / 32).read());
            let rank = before + (map << (31 - slot % 32)).count_ones() as usize - 1;
            let at = part.add((HEADER_BYTES >> log2) + (rank << kind.width_log2()));
            match kind.width_log2() {
                0 => {
                    let byte = at.read();
                    if byte == NONE_BYTE { Ref::NONE } else { Ref::leaf(u16::from(byte)) }
                }
                1 => Ref::leaf(u16::from_le(at.cast::<u16>().read())),
                _ => Ref::from_word(load32(at)),
            }
        }
    }

    /// The next-hop word of one key. The caller must be pinned.
    #[inline]
    pub(crate) fn lookup<K: Key>(&self, vid: Vid, key: K) -> u16 {
        let mut at = Ref::node(Kind::Wide, self.root::<K>(vid));
        let mut depth = 0;
        loop {
            at = self.step(at, key.byte_at(depth));
            depth += 8;
            // No node exists below the last bit of the key. The limit stops lookups even in a damaged image.
            if at.is_leaf() || depth >= K::BITS {
                return at.hop_word();
            }
        }
    }

    /// The next-hop words of a batch of keys, each in its own network. The slices have equal lengths (the
    /// shortest counts). The caller must be pinned.
    pub(crate) fn lookup_batch<K: Key>(&self, isa: Isa, vids: &[Vid], keys: &[K], out: &mut [u16]) {
        #[cfg(target_arch = "x86_64")]
        if self.granules < super::wide::GRANULES_MAX {
            match isa {
                // SAFETY: this is only made when the processor has the features.
                Isa::Avx512 => return unsafe { super::wide::lookup_batch_shuffled(self, vids, keys, out) },
                // SAFETY: as above.
                Isa::Avx512Popcnt => return unsafe { super::wide::lookup_batch(self, vids, keys, out) },
                Isa::Base | Isa::Bmi => {}
            }
        }
        let chunks = vids.chunks(LANES).zip(keys.chunks(LANES)).zip(out.chunks_mut(LANES));
        match isa {
            Isa::Base => chunks.for_each(|((vids, keys), out)| self.chunk(vids, keys, out)),
            #[cfg(target_arch = "x86_64")]
            Isa::Bmi | Isa::Avx512 | Isa::Avx512Popcnt => chunks.for_each(|((vids, keys), out)| {
                // SAFETY: these are only made when the processor has the features.
                unsafe { self.chunk_bmi(vids, keys, out) }
            }),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn chunk_bmi<K: Key>(&self, vids: &[Vid], keys: &[K], out: &mut [u16]) {
        self.chunk(vids, keys, out);
    }

    #[inline(always)]
    fn chunk<K: Key>(&self, vids: &[Vid], keys: &[K], out: &mut [u16]) {
        let n = vids.len().min(keys.len()).min(out.len()).min(LANES);
        let (vids, keys, out) = (&vids[..n], &keys[..n], &mut out[..n]);
        let mut refs = [Ref::NONE; LANES];
        let mut live = [0_u8; LANES];
        for (i, (vid, key)) in vids.iter().zip(keys).enumerate() {
            refs[i] = Ref::node(Kind::Wide, self.root::<K>(*vid));
            live[i] = i as u8;
            prefetch(self.part_at(refs[i], key.byte_at(0)));
        }
        let mut count = n;
        let mut depth = 0;
        while count > 0 {
            let mut rest = 0;
            for l in 0..count {
                let i = usize::from(live[l]);
                // SAFETY: lanes in `live` are below n.
                unsafe { std::hint::assert_unchecked(i < n) };
                let next = self.step(refs[i], keys[i].byte_at(depth));
                refs[i] = next;
                out[i] = next.hop_word();
                live[rest] = i as u8;
                rest += usize::from(!next.is_leaf());
                prefetch(self.part_at(next, keys[i].byte_at((depth + 8) % K::BITS)));
            }
            depth += 8;
            count = if depth < K::BITS { rest } else { 0 };
        }
    }
}

/// # Safety
/// `at` points to an aligned word of the arena.
#[inline(always)]
unsafe fn load32(at: *const u8) -> u32 {
    // SAFETY: the caller's.
    unsafe { u32::from_le(at.cast::<u32>().read()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Dag, Limits, NextHop, Oracle, Prefix};
    use proptest::prelude::*;

    /// All instruction sets of the processor give the same results as the oracle, for batches of any length.
    fn all_agree<K: Key>(routes: Vec<(u64, u8, u16)>, keys: Vec<(u16, u64)>) -> Result<(), TestCaseError> {
        let wide = |bits: u64| K::from_bits(u128::from(bits) << 64 | u128::from(bits));
        let mut dag = Dag::new(Limits { image_bytes_max: 16 << 20, ..Limits::default() }).unwrap();
        let mut oracle = Oracle::default();
        let vid = Vid::new(2).unwrap();
        dag.add_network::<K>(vid).unwrap();
        let routes: Vec<Change<K>> = routes
            .into_iter()
            .map(|(bits, len, hop)| (Prefix::containing(wide(bits), len % (K::BITS + 1)), NextHop::new(hop)))
            .collect();
        dag.apply(vid, &routes).unwrap();
        for (prefix, hop) in &routes {
            match hop {
                Some(hop) => oracle.insert(*prefix, *hop),
                None => oracle.remove(*prefix),
            };
        }
        let vids: Vec<Vid> = keys.iter().map(|(n, _)| Vid::new(2 + u16::from(n % 8 == 0)).unwrap()).collect();
        // Half of the keys match a route.
        let keys: Vec<K> = keys
            .iter()
            .map(|(n, bits)| match routes.get(usize::from(*n)) {
                Some((prefix, _)) if n % 2 == 0 => prefix.last(),
                _ => wide(*bits),
            })
            .collect();
        let mut reader = dag.reader().unwrap();
        let expected: Vec<u16> = vids
            .iter()
            .zip(&keys)
            .map(|(v, key)| {
                NextHop::word((*v == vid).then(|| oracle.lookup(*key)).flatten().map(|(_, hop)| hop))
            })
            .collect();
        let isas = Isa::available();
        for isa in isas {
            reader.set_isa(isa);
            let mut out = vec![1; keys.len()];
            reader.pin().lookup_batch(&vids, &keys, &mut out);
            prop_assert_eq!(&out, &expected, "{:?}", isa);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_instruction_set_agrees_ipv4(
            routes in proptest::collection::vec((any::<u64>(), 0_u8..=128, any::<u16>()), 0..400),
            keys in proptest::collection::vec((0_u16..500, any::<u64>()), 0..400),
        ) {
            all_agree::<u32>(routes, keys)?;
        }

        #[test]
        fn every_instruction_set_agrees_ipv6(
            routes in proptest::collection::vec((any::<u64>(), 0_u8..=128, 0_u16..300), 0..200),
            keys in proptest::collection::vec((0_u16..500, any::<u64>()), 0..400),
        ) {
            all_agree::<u128>(routes, keys)?;
        }

        /// Dense nodes of every encoding under one /16.
        #[test]
        fn every_instruction_set_agrees_dense(
            routes in proptest::collection::vec((0_u64..1 << 16, 17_u8..=32, 0_u16..260), 0..600),
            keys in proptest::collection::vec((0_u16..500, 0_u64..1 << 16), 0..300),
        ) {
            let routes = routes.into_iter().map(|(bits, len, hop)| (bits << 32, len, hop)).collect();
            let keys = keys.into_iter().map(|(n, bits)| (n, bits << 32)).collect();
            all_agree::<u32>(routes, keys)?;
        }
    }
}
