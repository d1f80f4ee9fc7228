//! How the threads that forward packets compete for processors, and what they leave to others.
//!
//! Flow: a thread that forwards → [`enter`] at its start → [`Bound::keep`] after each round. A real-time thread comes
//! before every ordinary one, so that packets do not wait for the time slices of a busy machine; it has to leave them
//! something by itself. What it leaves is a little more than the kernel would take: the kernel takes it in one piece
//! of 50 ms each second, in which rings overflow; pauses of 50 us are shorter than any ring.
//! Invariants: a real-time thread has at most fifteen sixteenths of a processor; there are no more of them in a process than
//! processors it may use, as the pauses of one would be filled by another.
//! Measured in `docs/decisions/0025-scheduling.md`. Times are nanoseconds.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hue_host::scheduling::{hurry, real_time, thread_time_ns};

/// How a thread competes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Scheduling {
    /// As ordinary threads do, before others of its session or control group.
    #[default]
    Fair,
    /// Before all ordinary threads, within a bound.
    RealTime,
}

impl Scheduling {
    /// Its name in options and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::RealTime => "realtime",
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a thread competes that asked for something.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Granted {
    /// As it does.
    pub scheduling: Scheduling,
    /// Why it is not as it was asked for.
    pub why_not: Option<String>,
}

/// How long a real-time thread runs, at least, before it looks whether it is to pause.
const RUN_NS: u64 = 750_000;
/// It pauses for one part in so many of the time it ran: it has fifteen sixteenths of its processor at most.
const PARTS: u64 = 15;
/// The longest pause, after something that took long.
const PAUSE_NS_MAX: u64 = 1_000_000;

/// Real-time threads of this process.
static REAL_TIME: AtomicUsize = AtomicUsize::new(0);

/// Has the calling thread compete as `wanted`, or as ordinary threads do where that is not possible. What it gets is kept
/// by the thread until it ends.
#[must_use]
pub fn enter(wanted: Scheduling) -> (Bound, Granted) {
    let why_not = match wanted {
        Scheduling::Fair => None,
        Scheduling::RealTime => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let place = Place::take(processors);
            match place.ok_or_else(|| full(processors)).and_then(|place| {
                real_time().map_err(|refused| refused.to_string())?;
                Ok(place)
            }) {
                Ok(place) => {
                    let granted = Granted { scheduling: Scheduling::RealTime, why_not: None };
                    return (Bound { place: Some(place), since_ns: 0, had_ns: 0 }, granted);
                }
                Err(why) => Some(why),
            }
        }
    };
    // Without the right to it the thread is as others are.
    let _ = hurry();
    (Bound::default(), Granted { scheduling: Scheduling::Fair, why_not })
}

fn full(processors: usize) -> String {
    let plural = if processors == 1 { "" } else { "s" };
    format!(
        "there are as many real-time threads as processors ({processors} processor{plural}): use fewer workers"
    )
}

/// One of the real-time threads that there may be.
#[derive(Debug)]
struct Place;

impl Place {
    fn take(most: usize) -> Option<Self> {
        let add = |count: usize| (count < most).then_some(count + 1);
        REAL_TIME.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        REAL_TIME.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps a real-time thread within its bound; does nothing for others.
#[derive(Default, Debug)]
pub struct Bound {
    place: Option<Place>,
    /// When it looked last.
    since_ns: u64,
    /// Processor time that the thread had had by then.
    had_ns: u64,
}

impl Bound {
    /// Pauses when the thread has used its processor for so long that it is time to; `now_ns` rises.
    #[inline]
    pub fn keep(&mut self, now_ns: u64) {
        if self.place.is_some() && now_ns.wrapping_sub(self.since_ns) >= RUN_NS {
            self.look(now_ns);
        }
    }

    #[cold]
    fn look(&mut self, now_ns: u64) {
        if let Some(pause) = self.decide(now_ns, thread_time_ns()) {
            std::thread::sleep(pause);
        }
    }

    /// The pause that is due, if the thread has had `had_ns` of its processor by now.
    fn decide(&mut self, now_ns: u64, had_ns: u64) -> Option<Duration> {
        let ran_ns = now_ns.wrapping_sub(self.since_ns);
        let used_ns = had_ns.wrapping_sub(self.had_ns);
        (self.since_ns, self.had_ns) = (now_ns, had_ns);
        // It slept, or others had their part.
        if u128::from(used_ns) * u128::from(PARTS + 1) <= u128::from(ran_ns) * u128::from(PARTS) {
            return None;
        }
        let pause_ns = (ran_ns / PARTS).min(PAUSE_NS_MAX);
        // The pause is none of what the next look is about.
        self.since_ns = now_ns.saturating_add(pause_ns);
        Some(Duration::from_nanos(pause_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that works for `work_ns` and sleeps for `sleep_ns` in turn, for a second: its processor time and its
    /// pauses, nanoseconds each, and the longest of these.
    fn second(work_ns: u64, sleep_ns: u64) -> (u64, u64, u64) {
        let mut bound = Bound::default();
        let (mut now_ns, mut had_ns, mut paused_ns, mut longest_ns) = (1 << 60, 0, 0, 0);
        let _ = bound.decide(now_ns, had_ns);
        let end_ns = now_ns + 1_000_000_000;
        while now_ns < end_ns {
            now_ns += work_ns + sleep_ns;
            had_ns += work_ns;
            if now_ns - bound.since_ns >= RUN_NS
                && let Some(pause) = bound.decide(now_ns, had_ns)
            {
                let pause_ns = pause.as_nanos() as u64;
                now_ns += pause_ns;
                paused_ns += pause_ns;
                longest_ns = longest_ns.max(pause_ns);
            }
        }
        (had_ns, paused_ns, longest_ns)
    }

    #[test]
    fn a_thread_that_never_sleeps_leaves_a_sixteenth() {
        // Short rounds as a worker's, long ones as a card's.
        for work_ns in [2_000, 40_000, 400_000, 1_500_000, 14_000_000] {
            let (had_ns, paused_ns, longest_ns) = second(work_ns, 0);
            // The last pause was not due yet, and each is whole nanoseconds.
            let open_ns = RUN_NS + work_ns + 100_000;
            assert!(had_ns <= paused_ns * PARTS + open_ns, "{work_ns}: {had_ns} {paused_ns}");
            assert!(
                longest_ns <= PAUSE_NS_MAX && longest_ns <= RUN_NS.max(work_ns) / 10,
                "{work_ns}: {longest_ns}"
            );
        }
        // The kernel takes a twentieth in one piece.
        let (had_ns, paused_ns, _) = second(1_000, 0);
        assert!(paused_ns * 20 > had_ns + paused_ns, "{had_ns} {paused_ns}");
    }

    #[test]
    fn a_thread_that_sleeps_enough_does_not_pause() {
        assert_eq!(second(1_500, 100).1, 0);
        assert!(second(1_600, 100).1 > 0, "it does not sleep enough");
    }

    #[test]
    fn no_more_real_time_threads_than_processors() {
        let before = REAL_TIME.load(Ordering::Relaxed);
        let first = Place::take(before + 2).unwrap();
        let second = Place::take(before + 2).unwrap();
        assert!(Place::take(before + 2).is_none());
        drop(first);
        assert!(Place::take(before + 2).is_some());
        drop(second);
        assert_eq!(REAL_TIME.load(Ordering::Relaxed), before);
        assert!(full(1).contains("(1 processor)"), "{}", full(1));
    }

    #[test]
    fn who_asks_for_nothing_is_granted_it() {
        let granted = std::thread::spawn(|| enter(Scheduling::Fair).1).join().unwrap();
        assert_eq!(granted, Granted::default());
    }

    #[test]
    fn what_is_not_granted_has_a_reason() {
        let granted = std::thread::spawn(|| enter(Scheduling::RealTime).1).join().unwrap();
        assert_eq!(granted.scheduling == Scheduling::RealTime, granted.why_not.is_none(), "{granted:?}");
    }
}
