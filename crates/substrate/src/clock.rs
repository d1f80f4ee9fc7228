//! Time as frames carry it: nanoseconds since 1970 that only rise.
//!
//! Flow: host, or whoever drives by hand → **[`Clock`]** → rounds of workers and of a card's thread. Threads that read one
//! clock agree. By hand a whole data plane runs in one thread, and the same steps give the same frames at the same times.

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

/// Sets a clock that stands still otherwise.
#[derive(Clone, Debug)]
pub struct Hand(Arc<AtomicU64>);

impl Clock {
    /// The host's time as of now; later changes of the host's clock are not seen.
    #[must_use]
    pub fn host() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let epoch_ns = u64::try_from(epoch.as_nanos()).unwrap_or_default();
        Self(Source::Host { start: Instant::now(), epoch_ns })
    }

    /// A clock that stands at `now_ns` until its hand is moved.
    #[must_use]
    pub fn by_hand(now_ns: u64) -> (Self, Hand) {
        let time = Arc::new(AtomicU64::new(now_ns));
        (Self(Source::Hand(Arc::clone(&time))), Hand(time))
    }

    /// What time it is.
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
    /// So much time passes.
    pub fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }

    /// Where it stands.
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
