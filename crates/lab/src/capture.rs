//! What left the card, with the cycles of its first and last beat, and how long it was inside.
//!
//! Latency is the difference of two time stamps, as measured with NetFPGA's packet generator (Unnikrishnan, §7.1.2), where a
//! looped port stamps a frame's twin when it goes into the router. Here the generator knows that cycle itself.

use std::collections::BTreeMap;

use hue_card::Way;

/// A frame that left the card. Cycles count from the start of the experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'a> {
    /// Where it went.
    pub way: Way,
    /// Its bytes, without the header of CPU queues.
    pub bytes: &'a [u8],
    /// Cycle of its first beat.
    pub first_cycle: u64,
    /// Cycle of its last beat.
    pub last_cycle: u64,
}

/// Cycles between two time stamps of many frames: exact, every frame counts.
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

    /// How many frames.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Cycles that so many thousandths of the frames do not exceed (the least such number); `None` without frames.
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
    fn quantiles_are_those_of_the_sorted_list() {
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
