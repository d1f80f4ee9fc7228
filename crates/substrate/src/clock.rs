//! Timestamps of frames: nanoseconds since the Unix epoch that never decrease.
//!
//! Flow: host, or a [`Hand`] → **[`Clock`]** → rounds of workers and of a card's thread. Threads that read one clock
//! agree. With a hand, a whole data plane runs in one thread, and the same steps give the same frames at the same times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Host { start: Instant, epoch_ns: u64 },
    Hand(Arc<AtomicU64>),
}

/// Advances a clock that otherwise does not move.
#[derive(Clone, Debug)]
pub struct Hand(Arc<AtomicU64>);

impl Clock {
    /// A clock that starts at the host's time and ignores later changes of the host's clock.
    #[must_use]
    pub fn host() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let epoch_ns = u64::try_from(epoch.as_nanos()).unwrap_or_default();
        Self(Source::Host { start: Instant::now(), epoch_ns })
    }

    /// A clock that shows `now_ns` until its hand advances it.
    #[must_use]
    pub fn by_hand(now_ns: u64) -> (Self, Hand) {
        let time = Arc::new(AtomicU64::new(now_ns));
        (Self(Source::Hand(Arc::clone(&time))), Hand(time))
    }

    /// The current time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Source::Host { start, epoch_ns } => {
                epoch_ns.saturating_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
            }
            Source::Hand(time) => time.load(Ordering::Relaxed),
        }
    }
}

impl Hand {
    /// Advances the clock by `ns`.
    pub fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }

    /// The clock's time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stands_until_its_hand_moves_and_the_host_s_does_not() {
        let (clock, hand) = Clock::by_hand(7);
        let other = clock.clone();
        hand.pass(5);
        assert_eq!((clock.now_ns(), other.now_ns(), hand.now_ns()), (12, 12, 12));
        let host = Clock::host();
        let (first, second) = (host.now_ns(), host.now_ns());
        assert!(first > 1_700_000_000_000_000_000 && second >= first);
    }
}
