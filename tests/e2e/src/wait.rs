//! Waiting for a condition. A deadline is the time at which a test gives up; tests never measure it.

use std::time::{Duration, Instant};

/// When to give up; generous, because the machine may be busy.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline `seconds` from now.
    #[must_use]
    pub fn seconds(seconds: u64) -> Self {
        Self(Instant::now() + Duration::from_secs(seconds))
    }

    /// Whether it has passed.
    #[must_use]
    pub fn over(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// How many times as long a step may take on a busy machine.
pub const PATIENCE: u64 = 3;

/// Checks every 50 ms until the result is `true`.
///
/// # Panics
/// When it is not `true` within [`PATIENCE`] times `seconds`.
#[track_caller]
pub fn until(what: &str, seconds: u64, mut ask: impl FnMut() -> bool) {
    until_some(what, seconds, || ask().then_some(()));
}

/// Checks every 50 ms until there is a result.
///
/// # Panics
/// When there is none within [`PATIENCE`] times `seconds`.
#[track_caller]
pub fn until_some<T>(what: &str, seconds: u64, mut ask: impl FnMut() -> Option<T>) -> T {
    let seconds = seconds * PATIENCE;
    let deadline = Deadline::seconds(seconds);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!deadline.over(), "waited {seconds} s in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
