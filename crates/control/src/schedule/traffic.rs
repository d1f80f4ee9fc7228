//! Measures the traffic offered to networks, and smooths it so that schedules do not oscillate.
//!
//! Flow: counters at two times → [`Rates`] → bandwidth of [`Demand`](super::Demand)s. There are two steps: a
//! moving average, and a reported rate that stays constant while the average is within a band around it, and
//! for some time after each change. Invariant: if a rate varies by less than the band around its mean, the
//! reported rate is constant. Time is an argument, in milliseconds from an arbitrary start, and never
//! decreases.

use std::collections::BTreeMap;

/// Parameters of the smoothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Smoothing {
    /// Time constant of the average: older traffic has lost about two thirds of its weight. No rate is reported
    /// before this time.
    pub memory_ms: u64,
    /// Relative width of the band around a rate, 0 to 1.
    pub band: f64,
    /// Minimum width of the band in bits per second, so that small rates do not change.
    pub band_bps_min: u64,
    /// Minimum time between two changes of a rate.
    pub dwell_ms: u64,
}

impl Default for Smoothing {
    fn default() -> Self {
        Self { memory_ms: 10_000, band: 0.25, band_bps_min: 100_000, dwell_ms: 30_000 }
    }
}

/// A network's counters, since an arbitrary start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counted {
    /// Frames received.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// Frames lost before any decision on them. Their length is assumed to be the average.
    pub lost: u64,
}

/// The rate of a network.
#[derive(Clone, Copy, Debug)]
struct Rate {
    first_ms: u64,
    at_ms: u64,
    counted: Counted,
    /// Average in bits per second.
    average: f64,
    /// Reported rate in bits per second, and the time since it is reported.
    held: Option<(u64, u64)>,
}

/// Rates of all networks.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    smoothing: Smoothing,
    networks: BTreeMap<String, Rate>,
}

impl Rates {
    /// Starts without any measurements.
    #[must_use]
    pub fn new(smoothing: Smoothing) -> Self {
        Self { smoothing, networks: BTreeMap::new() }
    }

    /// Adds the current counters of a network. If they went back, the network has restarted.
    pub fn insert(&mut self, network: &str, at_ms: u64, counted: Counted) {
        let begun = Rate { first_ms: at_ms, at_ms, counted, average: 0.0, held: None };
        let Some(rate) = self.networks.get_mut(network) else {
            self.networks.insert(network.to_owned(), begun);
            return;
        };
        let Some(offered) = rate.offered(at_ms, counted) else {
            // The reported rate is the best estimate until then.
            *rate = Rate { held: rate.held, ..begun };
            return;
        };
        let past_ms = at_ms - rate.at_ms;
        if past_ms == 0 {
            return;
        }
        let is_first = rate.at_ms == rate.first_ms;
        let weight = 1.0 - (-(past_ms as f64) / (self.smoothing.memory_ms.max(1) as f64)).exp();
        rate.average += (offered - rate.average) * if is_first { 1.0 } else { weight };
        (rate.at_ms, rate.counted) = (at_ms, counted);
        rate.hold(&self.smoothing);
    }

    /// Removes networks for which `is_there` is false.
    pub fn retain(&mut self, mut is_there: impl FnMut(&str) -> bool) {
        self.networks.retain(|name, _| is_there(name));
    }

    /// The traffic offered to a network in bits per second; `None` until it is known.
    #[must_use]
    pub fn rate(&self, network: &str) -> Option<u64> {
        Some(self.networks.get(network)?.held?.0)
    }
}

impl Rate {
    /// Bits per second since the previous counters; `None` if counters or time went back.
    fn offered(&self, at_ms: u64, counted: Counted) -> Option<f64> {
        let past_ms = at_ms.checked_sub(self.at_ms)?;
        let frames = counted.frames.checked_sub(self.counted.frames)?;
        let bytes = counted.bytes.checked_sub(self.counted.bytes)?;
        let lost = counted.lost.checked_sub(self.counted.lost)?;
        let bits = bytes as f64 * 8.0;
        let more = if frames == 0 { 1.0 } else { 1.0 + lost as f64 / frames as f64 };
        Some(bits * more / (past_ms.max(1) as f64 / 1_000.0))
    }

    /// Reports the average if it has left the band and the last change is old enough.
    fn hold(&mut self, smoothing: &Smoothing) {
        let known = self.at_ms.saturating_sub(self.first_ms) >= smoothing.memory_ms;
        let average = self.average.max(0.0).round() as u64;
        match self.held {
            None if known => self.held = Some((average, self.at_ms)),
            Some((held, since_ms)) if known && self.at_ms.saturating_sub(since_ms) >= smoothing.dwell_ms => {
                let band = (held.max(average) as f64 * smoothing.band).max(smoothing.band_bps_min as f64);
                if average.abs_diff(held) as f64 > band {
                    self.held = Some((average, self.at_ms));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds counters of a network with this traffic in each second.
    fn feed(
        rates: &mut Rates,
        from_s: u64,
        mbps: impl IntoIterator<Item = f64>,
        at: &mut Counted,
    ) -> Vec<Option<u64>> {
        let mut seen = Vec::new();
        for (second, mbps) in (from_s..).zip(mbps) {
            rates.insert("a", second * 1_000, *at);
            seen.push(rates.rate("a"));
            at.bytes += (mbps * 125_000.0) as u64;
            at.frames += (mbps * 125.0) as u64;
        }
        seen
    }

    #[test]
    fn a_rate_changes_when_it_leaves_the_band() {
        let (mut rates, mut at) = (Rates::default(), Counted::default());
        let seen = feed(&mut rates, 0, [100.0; 60], &mut at);
        assert!(seen[..10].iter().all(Option::is_none), "{seen:?}");
        assert_eq!(seen[10], Some(100_000_000));
        assert!(seen[10..].iter().all(|rate| *rate == seen[10]));
        // Within the band the rate does not change; beyond it, the rate follows once, after some time.
        let seen = feed(&mut rates, 60, [120.0; 60], &mut at);
        assert!(seen.iter().all(|rate| *rate == Some(100_000_000)), "{seen:?}");
        let seen = feed(&mut rates, 120, [400.0; 200], &mut at);
        let last = seen.last().copied().flatten().unwrap();
        assert!(last.abs_diff(400_000_000) <= 100_000_000, "{last}");
        let changes = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=3).contains(&changes), "{changes} changes");
    }

    #[test]
    fn changes_are_separated_by_the_dwell_time() {
        let (mut rates, mut at) = (Rates::default(), Counted::default());
        let jumps = (0..600).map(|second| if second / 7 % 2 == 0 { 10.0 } else { 900.0 });
        let seen = feed(&mut rates, 0, jumps, &mut at);
        let changed: Vec<usize> = (1..seen.len()).filter(|at| seen[*at] != seen[at - 1]).collect();
        assert!(changed.windows(2).all(|pair| pair[1] - pair[0] >= 30), "{changed:?}");
    }

    #[test]
    fn lost_frames_count_and_counters_may_restart() {
        let mut rates = Rates::default();
        for second in 0..=20 {
            let counted = Counted { frames: second * 1_000, bytes: second * 1_000_000, lost: second * 1_000 };
            rates.insert("a", second * 1_000, counted);
        }
        assert_eq!(rates.rate("a"), Some(16_000_000));
        rates.insert("a", 21_000, Counted::default());
        assert_eq!(rates.rate("a"), Some(16_000_000), "the last known rate");
        rates.insert("a", 21_000, Counted::default());
        rates.insert("a", 20_000, Counted::default());
        rates.retain(|name| name != "a");
        assert_eq!(rates.rate("a"), None);
    }
}
