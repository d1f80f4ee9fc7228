//! Scheduling of the threads that forward packets, and the processor time that they leave to others.
//!
//! Flow: a thread that forwards → [`enter`] at its start → [`Bound::keep`] after each round. A real-time thread has
//! priority over every ordinary one, so that packets do not wait for the time slices of a busy machine; it must leave
//! time to ordinary threads by itself. It leaves slightly more than the kernel would take. The kernel takes its part
//! in one piece of 50 ms per second, in which rings overflow; pauses of 50 us are shorter than any ring.
//! Invariants: a real-time thread has at most fifteen sixteenths of a processor; a process has no more of them than
//! processors it may use, because otherwise one would run in the pauses of another.
//! Measured in `docs/decisions/0025-scheduling.md`. Times are nanoseconds.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hue_host::scheduling::{hurry, real_time, thread_time_ns};

/// Scheduling of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Scheduling {
    /// Like ordinary threads, but before others of its session or control group.
    #[default]
    Fair,
    /// With priority over all ordinary threads, within a bound.
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

/// The scheduling that a thread got.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Granted {
    /// Its scheduling.
    pub scheduling: Scheduling,
    /// Why it is not the requested one.
    pub why_not: Option<String>,
}

/// Least time that a real-time thread runs before it checks whether to pause.
const RUN_NS: u64 = 750_000;
/// It pauses for the time it ran divided by this: it has at most fifteen sixteenths of its processor.
const PARTS: u64 = 15;
/// The longest pause, after a long run.
const PAUSE_NS_MAX: u64 = 1_000_000;

/// Real-time threads of this process.
static REAL_TIME: AtomicUsize = AtomicUsize::new(0);

/// Gives the calling thread the scheduling `wanted` or, if that is not possible, that of ordinary threads. The thread
/// keeps it until it ends.
#[must_use]
pub fn enter(wanted: Scheduling) -> (Bound, Granted) {
    let why_not = match wanted {
        Scheduling::Fair => None,
        Scheduling::RealTime => {
            match Place::reserve().and_then(|place| {
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
    // Without the permission, the thread is scheduled like others.
    let _ = hurry();
    (Bound::default(), Granted { scheduling: Scheduling::Fair, why_not })
}

fn full(processors: usize) -> String {
    let plural = if processors == 1 { "" } else { "s" };
    format!(
        "there are as many real-time threads as processors ({processors} processor{plural}): use fewer workers"
    )
}

/// One of the permitted real-time threads.
#[derive(Debug)]
pub struct Place(());

impl Place {
    /// Takes a place, for a thread of this process or of another one that serves it.
    ///
    /// # Errors
    /// Why there is none, as a text.
    pub fn reserve() -> Result<Self, String> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::take(processors).ok_or_else(|| full(processors))
    }

    fn take(most: usize) -> Option<Self> {
        let add = |count: usize| (count < most).then_some(count + 1);
        REAL_TIME.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| Self(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        REAL_TIME.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps a real-time thread within its bound. Does nothing for other threads.
#[derive(Default, Debug)]
pub struct Bound {
    place: Option<Place>,
    /// When it last checked.
    since_ns: u64,
    /// Processor time that the thread had used at that time.
    had_ns: u64,
}

impl Bound {
    /// Pauses if the thread has used its processor for too long; `now_ns` never decreases.
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

    /// The pause that is due, if the thread has used `had_ns` of its processor so far.
    fn decide(&mut self, now_ns: u64, had_ns: u64) -> Option<Duration> {
        let ran_ns = now_ns.wrapping_sub(self.since_ns);
        let used_ns = had_ns.wrapping_sub(self.had_ns);
        (self.since_ns, self.had_ns) = (now_ns, had_ns);
        // It slept, or others used their part.
        if u128::from(used_ns) * u128::from(PARTS + 1) <= u128::from(ran_ns) * u128::from(PARTS) {
            return None;
        }
        let pause_ns = (ran_ns / PARTS).min(PAUSE_NS_MAX);
        // The next check does not count the pause.
        self.since_ns = now_ns.saturating_add(pause_ns);
        Some(Duration::from_nanos(pause_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a thread for a second that works for `work_ns` and sleeps for `sleep_ns` in turn. Returns its processor
    /// time, the sum of its pauses and the longest pause, in nanoseconds.
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
        // Short rounds as a worker's, and long rounds as a card's.
        for work_ns in [2_000, 40_000, 400_000, 1_500_000, 14_000_000] {
            let (had_ns, paused_ns, longest_ns) = second(work_ns, 0);
            // The last pause was not due yet, and pauses are rounded to nanoseconds.
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
    fn fair_scheduling_is_always_granted() {
        let granted = std::thread::spawn(|| enter(Scheduling::Fair).1).join().unwrap();
        assert_eq!(granted, Granted::default());
    }

    #[test]
    fn refused_scheduling_has_a_reason() {
        let granted = std::thread::spawn(|| enter(Scheduling::RealTime).1).join().unwrap();
        assert_eq!(granted.scheduling == Scheduling::RealTime, granted.why_not.is_none(), "{granted:?}");
    }
}
