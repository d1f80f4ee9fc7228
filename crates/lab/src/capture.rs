//! Captures the frames that leave the card, with the cycles of their first and last beat, and measures
//! latency.
//!
//! Latency is the difference of two time stamps, as with NetFPGA's packet generator (Unnikrishnan, §7.1.2),
//! where a looped port stamps a copy of each frame when it enters the router. Here, the generator knows that
//! cycle exactly.

use std::collections::BTreeMap;

use hue_card::Way;

/// A frame that left the card. Cycles count from the start of the experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'a> {
    /// The port or queue through which it left.
    pub way: Way,
    /// The bytes of the frame, without the header of CPU queues.
    pub bytes: &'a [u8],
    /// Cycle of its first beat.
    pub first_cycle: u64,
    /// Cycle of its last beat.
    pub last_cycle: u64,
}

/// Distribution of the cycles between two time stamps of frames. Exact: every frame counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latency {
    counts: BTreeMap<u64, u64>,
    frames: u64,
}

impl Latency {
    /// Adds a frame.
    pub(crate) fn add(&mut self, cycles: u64) {
        *self.counts.entry(cycles).or_default() += 1;
        self.frames += 1;
    }

    /// Number of frames.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Quantile in thousandths: the smallest number of cycles that this share of the frames does not exceed;
    /// `None` without frames.
    #[must_use]
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        let rank = (u128::from(self.frames) * u128::from(thousandths.min(1000))).div_ceil(1000).max(1);
        let mut seen = 0;
        self.counts.iter().find_map(|(cycles, count)| {
            seen += u128::from(*count);
            (seen >= rank).then_some(*cycles)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_the_sorted_list() {
        let mut latency = Latency::default();
        assert_eq!(latency.quantile(500), None);
        let mut list: Vec<u64> = (0..777).map(|n| n * n % 101).collect();
        for cycles in &list {
            latency.add(*cycles);
        }
        list.sort_unstable();
        for (thousandths, at) in [(0, 0), (500, 388), (990, 769), (1000, 776), (2000, 776)] {
            assert_eq!(latency.quantile(thousandths), Some(list[at]), "{thousandths}");
        }
    }
}
