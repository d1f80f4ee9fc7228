//! What networks are offered, from counters, steadied so that a schedule made from it does not flap.
//!
//! Flow: counters now and then → [`Rates`] → bandwidth of [`Demand`](super::Demand)s. Two steps: an average that forgets with
//! time, and a rate that is held while the average stays within a band around it, and for a while after each change.
//! Invariant: a rate that swings by less than the band about its mean is held still. Time is an argument, in milliseconds
//! from any start, and only rises.

use std::collections::BTreeMap;

/// How rates are steadied.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Steady {
    /// Time after which what was has lost two thirds of its weight; nothing is known before so much time has passed.
    pub memory_ms: u64,
    /// Part of a rate that the average may be away from it, 0 to 1.
    pub band: f64,
    /// Bits a second that the average may be away in any case: small rates are all alike.
    pub band_bps_min: u64,
    /// Shortest time that a rate is held.
    pub dwell_ms: u64,
}

impl Default for Steady {
    fn default() -> Self {
        Self { memory_ms: 10_000, band: 0.25, band_bps_min: 100_000, dwell_ms: 30_000 }
    }
}

/// What a network's counters say, since any start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counted {
    /// Frames received.
    pub frames: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Frames that were lost before anything decided on them; they are taken to be as long as the others.
    pub lost: u64,
}

/// A network's rate.
#[derive(Clone, Copy, Debug)]
struct Rate {
    first_ms: u64,
    at_ms: u64,
    counted: Counted,
    /// Bits a second.
    average: f64,
    /// Bits a second that are held, and since when.
    held: Option<(u64, u64)>,
}

/// Rates of networks.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    steady: Steady,
    networks: BTreeMap<String, Rate>,
}

impl Rates {
    /// None yet.
    #[must_use]
    pub fn new(steady: Steady) -> Self {
        Self { steady, networks: BTreeMap::new() }
    }

    /// Takes what was counted of a network until now. One whose counters went back has begun anew.
    pub fn insert(&mut self, network: &str, at_ms: u64, counted: Counted) {
        let begun = Rate { first_ms: at_ms, at_ms, counted, average: 0.0, held: None };
        let Some(rate) = self.networks.get_mut(network) else {
            self.networks.insert(network.to_owned(), begun);
            return;
        };
        let Some(offered) = rate.offered(at_ms, counted) else {
            // The rate that was held still is the best that is known.
            *rate = Rate { held: rate.held, ..begun };
            return;
        };
        let past_ms = at_ms - rate.at_ms;
        if past_ms == 0 {
            return;
        }
        let is_first = rate.at_ms == rate.first_ms;
        let weight = 1.0 - (-(past_ms as f64) / (self.steady.memory_ms.max(1) as f64)).exp();
        rate.average += (offered - rate.average) * if is_first { 1.0 } else { weight };
        (rate.at_ms, rate.counted) = (at_ms, counted);
        rate.hold(&self.steady);
    }

    /// Forgets networks that are not among these.
    pub fn retain(&mut self, mut is_there: impl FnMut(&str) -> bool) {
        self.networks.retain(|name, _| is_there(name));
    }

    /// What a network is offered, bits a second, once that is known.
    #[must_use]
    pub fn rate(&self, network: &str) -> Option<u64> {
        Some(self.networks.get(network)?.held?.0)
    }
}

impl Rate {
    /// Bits a second since the last look; none when counters or time went back.
    fn offered(&self, at_ms: u64, counted: Counted) -> Option<f64> {
        let past_ms = at_ms.checked_sub(self.at_ms)?;
        let frames = counted.frames.checked_sub(self.counted.frames)?;
        let bytes = counted.bytes.checked_sub(self.counted.bytes)?;
        let lost = counted.lost.checked_sub(self.counted.lost)?;
        let bits = bytes as f64 * 8.0;
        let more = if frames == 0 { 1.0 } else { 1.0 + lost as f64 / frames as f64 };
        Some(bits * more / (past_ms.max(1) as f64 / 1_000.0))
    }

    /// Takes the average over when it has left the band, and the rate was held long enough.
    fn hold(&mut self, steady: &Steady) {
        let known = self.at_ms.saturating_sub(self.first_ms) >= steady.memory_ms;
        let average = self.average.max(0.0).round() as u64;
        match self.held {
            None if known => self.held = Some((average, self.at_ms)),
            Some((held, since_ms)) if known && self.at_ms.saturating_sub(since_ms) >= steady.dwell_ms => {
                let band = (held.max(average) as f64 * steady.band).max(steady.band_bps_min as f64);
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

    /// Counters of a network that is offered so much in each second.
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
    fn a_rate_is_known_after_a_while_and_followed_when_it_leaves_the_band() {
        let (mut rates, mut at) = (Rates::default(), Counted::default());
        let seen = feed(&mut rates, 0, [100.0; 60], &mut at);
        assert!(seen[..10].iter().all(Option::is_none), "{seen:?}");
        assert_eq!(seen[10], Some(100_000_000));
        assert!(seen[10..].iter().all(|rate| *rate == seen[10]));
        // Within the band nothing changes; beyond it the rate follows once, after some time.
        let seen = feed(&mut rates, 60, [120.0; 60], &mut at);
        assert!(seen.iter().all(|rate| *rate == Some(100_000_000)), "{seen:?}");
        let seen = feed(&mut rates, 120, [400.0; 200], &mut at);
        let last = seen.last().copied().flatten().unwrap();
        assert!(last.abs_diff(400_000_000) <= 100_000_000, "{last}");
        let changes = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=3).contains(&changes), "{changes} changes");
    }

    #[test]
    fn changes_are_apart_by_the_dwell_time() {
        let (mut rates, mut at) = (Rates::default(), Counted::default());
        let jumps = (0..600).map(|second| if second / 7 % 2 == 0 { 10.0 } else { 900.0 });
        let seen = feed(&mut rates, 0, jumps, &mut at);
        let changed: Vec<usize> = (1..seen.len()).filter(|at| seen[*at] != seen[at - 1]).collect();
        assert!(changed.windows(2).all(|pair| pair[1] - pair[0] >= 30), "{changed:?}");
    }

    #[test]
    fn what_was_lost_was_offered_too_and_counters_may_begin_anew() {
        let mut rates = Rates::default();
        for second in 0..=20 {
            let counted = Counted { frames: second * 1_000, bytes: second * 1_000_000, lost: second * 1_000 };
            rates.insert("a", second * 1_000, counted);
        }
        assert_eq!(rates.rate("a"), Some(16_000_000));
        rates.insert("a", 21_000, Counted::default());
        assert_eq!(rates.rate("a"), Some(16_000_000), "the last that is known");
        rates.insert("a", 21_000, Counted::default());
        rates.insert("a", 20_000, Counted::default());
        rates.retain(|name| name != "a");
        assert_eq!(rates.rate("a"), None);
    }
}
