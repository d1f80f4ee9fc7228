//! The lowest possible cost of a lookup on this machine: reads of one cache line each, from as much memory as tables take.
//!
//! A lookup reads at least one line of its network's own memory. This measures how many lines a core can read a second if it
//! does nothing else, at known places, with prefetches in batches: no table of that size can be faster.

use serde_json::json;

use crate::dpdk::Dpdk;
use crate::measure::{interleave, seconds};
use crate::report::{Report, Section, millions};
use crate::rng::{Rng, mix};
use crate::{Failure, Settings};

/// MiB of memory: a table, 16 and 64 networks' tables, and as many of `rte_lpm`.
const SIZES_MIB: [usize; 6] = [2, 10, 32, 121, 1024, 4096];
/// Lines that are prefetched before the first is read.
const BATCHES: [usize; 3] = [16, 64, 256];
/// Words in a line.
const LINE: usize = 8;

/// Memory that begins at a line, in huge pages where the kernel has them, as the tables' is.
struct Region {
    words: Vec<u64>,
    from: usize,
}

impl Region {
    fn new(mib: usize) -> Self {
        const HUGE: usize = 1 << 21;
        let bytes = mib << 20;
        let mut words: Vec<u64> = Vec::with_capacity((bytes + HUGE) / 8);
        let address = words.as_ptr().addr();
        let from = (address.next_multiple_of(HUGE) - address) / 8;
        advise(words.as_ptr().wrapping_add(from).cast(), bytes);
        words.resize((bytes + HUGE) / 8, 0);
        let mut rng = Rng::new(mib as u64);
        words.iter_mut().for_each(|word| *word = rng.bits());
        Self { words, from }
    }

    fn lines(&self, mib: usize) -> &[[u64; LINE]] {
        let words = self.words.get(self.from..self.from + (mib << 17)).unwrap_or_default();
        words.as_chunks().0
    }
}

/// Requests huge pages; a kernel without them refuses, which has no effect.
fn advise(at: *const u8, bytes: usize) {
    // SAFETY: the range is inside of an allocation of this size; the advice changes no contents.
    #[allow(unsafe_code)]
    unsafe {
        libc::madvise(at.cast_mut().cast(), bytes, libc::MADV_HUGEPAGE);
    }
}

#[inline(always)]
fn prefetch(line: &[u64; LINE]) {
    // SAFETY: a prefetch reads nothing that could be seen, and the address is a reference's.
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Reads `count` lines in batches: the lines of the next batch are prefetched before those of this one are read.
fn read(lines: &[[u64; LINE]], batch: usize, count: usize) -> u64 {
    let place = |number: usize| ((u128::from(mix(number as u64)) * lines.len() as u128) >> 64) as usize;
    let mut sum = 0u64;
    let (mut places, mut next) = (vec![0; batch], vec![0; batch]);
    for first in (0..count).step_by(batch) {
        for (at, slot) in next.iter_mut().enumerate() {
            *slot = place(first + at);
            if let Some(line) = lines.get(*slot) {
                prefetch(line);
            }
        }
        for slot in &places {
            sum = sum.wrapping_add(lines.get(*slot).map_or(0, |line| line[*slot % LINE]));
        }
        std::mem::swap(&mut places, &mut next);
    }
    sum
}

/// Measures.
///
/// # Errors
/// None.
pub fn lines(_: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let largest = if settings.quick { 1024 } else { 4096 };
    let sizes: Vec<usize> = SIZES_MIB.into_iter().filter(|mib| *mib <= largest).collect();
    let region = Region::new(largest);
    let contestants: Vec<(usize, usize)> =
        sizes.iter().flat_map(|mib| BATCHES.map(|batch| (*mib, batch))).collect();
    let mut seen = 0u64;
    let spreads = interleave(contestants.len(), settings.rounds(), |i| {
        let (mib, batch) = contestants[i];
        let count = settings.lookups();
        (count as f64, seconds(|| seen ^= read(region.lines(mib), batch, count)))
    });
    std::hint::black_box(seen);
    let title = "reads of one cache line at random, asked for in batches";
    let mut section = Section::new(title, &["MiB", "batch", "M/s median", "min", "max"]);
    for ((mib, batch), spread) in contestants.into_iter().zip(&spreads) {
        let [median, min, max] = millions(spread);
        section.row(vec![json!(mib), json!(batch), median, min, max]);
    }
    section.note(
        "A hash makes each place, so that nothing waits for a line before; a line is asked for a batch before it is read. A lookup \
         does more than this with what it reads, and reads more than one line: 64 networks' tables take 121 MiB here, 64 of \
         `rte_lpm` 4,096.",
    );
    report.push(section);
    Ok(())
}
