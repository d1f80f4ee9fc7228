//! Interleaved rounds (A B C, A B C, …), so that a noisy neighbour affects all contestants, and their results.

use crate::machine;

/// Rates of one contestant over all rounds, in units a second, sorted.
#[derive(Clone, Debug)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// From rates in any order; at least one.
    pub fn new(mut rates: Vec<f64>) -> Self {
        rates.sort_by(f64::total_cmp);
        Self(rates)
    }

    /// The middle one (lower of two).
    pub fn median(&self) -> f64 {
        self.0.get((self.0.len().saturating_sub(1)) / 2).copied().unwrap_or(0.0)
    }

    /// The slowest round.
    pub fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    /// The fastest round.
    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }
}

/// Seconds of this thread's processor time that `work` takes. Time of other processes does not count, but their evictions
/// from shared caches have an effect.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let start = machine::thread_seconds();
    work();
    machine::thread_seconds() - start
}

/// `rounds` rounds over contestants 0 to `n`-1, after one warm-up round: `measure(i)` gives units and seconds of one round.
/// Odd rounds run in reverse order, so that no contestant always follows the same one.
pub fn interleave(n: usize, rounds: usize, mut measure: impl FnMut(usize) -> (f64, f64)) -> Vec<Spread> {
    let mut rates = vec![Vec::with_capacity(rounds); n];
    for round in 0..=rounds {
        for step in 0..n {
            let i = if round % 2 == 0 { step } else { n - 1 - step };
            let (units, seconds) = measure(i);
            if round > 0 {
                rates[i].push(units / seconds);
            }
        }
    }
    rates.into_iter().map(Spread::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaving_alternates_and_drops_the_warm_up() {
        let mut order = Vec::new();
        let spreads = interleave(2, 3, |i| {
            order.push(i);
            (order.len() as f64, 1.0)
        });
        assert_eq!(order, [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!((spreads[0].min(), spreads[0].median(), spreads[0].max()), (4.0, 5.0, 8.0));
        assert_eq!(spreads[1].median(), 6.0);
    }
}
