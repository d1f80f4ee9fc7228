//! Decides when a frame may be sent: at its time, and never in a long burst that makes up for lost time.
//!
//! A machine that keeps the rate sends frames at their times or soon after, and the average rate is exact. If a
//! machine does not keep the rate, all later times are moved: the traffic then takes longer, which is measured, and
//! the receiver never gets much more than the rate and [`BURST_FRAMES`]. Times are nanoseconds since the start.

/// Frames that are sent one right after the other, to make up for lost time. The last quarter of a burst stays due,
/// so that a machine that never keeps up still sends whole batches.
pub const BURST_FRAMES: u32 = 256;

/// The times of the frames of an interface.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The time by which all times have moved.
    slip_ns: u64,
    /// Number of frames that were due since one had to wait, or since times moved.
    burst_frames: u32,
    /// When the first of them was due.
    burst_due_ns: u64,
    /// How late the latest frame was.
    late_ns_max: u64,
}

impl Pace {
    /// Whether a frame that is due at `due_ns` may be sent at `now_ns`.
    ///
    /// # Errors
    /// The nanoseconds until then.
    pub fn admit(&mut self, due_ns: u64, now_ns: u64) -> Result<(), u64> {
        let at_ns = due_ns.saturating_add(self.slip_ns);
        let Some(behind_ns) = now_ns.checked_sub(at_ns) else {
            self.burst_frames = 0;
            return Err(at_ns - now_ns);
        };
        self.late_ns_max = self.late_ns_max.max(now_ns.saturating_sub(due_ns));
        if self.burst_frames == 0 {
            self.burst_due_ns = due_ns;
        }
        self.burst_frames += 1;
        if self.burst_frames == BURST_FRAMES {
            let quarter_ns = due_ns.saturating_sub(self.burst_due_ns) / 4;
            self.slip_ns += behind_ns.saturating_sub(quarter_ns);
            self.burst_frames = 0;
        }
        Ok(())
    }

    /// The largest delay of a frame after its original time.
    pub const fn late_ns_max(&self) -> u64 {
        self.late_ns_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends frames that are due each microsecond, at the times of `clock`. Returns the number of frames sent at each
    /// time.
    fn sent(pace: &mut Pace, next: &mut u64, clock: &[u64]) -> Vec<u64> {
        let at = |now_ns: &u64| {
            let first = *next;
            while pace.admit(*next * 1000, *now_ns).is_ok() {
                *next += 1;
            }
            *next - first
        };
        clock.iter().map(at).collect()
    }

    #[test]
    fn frames_wait_for_their_time() {
        let (mut pace, mut next) = (Pace::default(), 0);
        assert_eq!(pace.admit(1000, 400), Err(600));
        assert_eq!(sent(&mut pace, &mut next, &[0, 999, 1000, 5500, 5500, 6000]), [1, 0, 1, 4, 0, 1]);
        assert_eq!(pace.late_ns_max(), 3500);
    }

    #[test]
    fn a_short_delay_is_made_up_for() {
        let (mut pace, mut next) = (Pace::default(), 0);
        let late = u64::from(BURST_FRAMES) / 2;
        assert_eq!(sent(&mut pace, &mut next, &[0, late * 1000, late * 1000 + 10_000]), [1, late, 10]);
    }

    #[test]
    fn a_long_delay_moves_all_that_follow() {
        let (mut pace, mut next) = (Pace::default(), 0);
        let hour = 3_600_000_000_000;
        let burst = u64::from(BURST_FRAMES) + u64::from(BURST_FRAMES - 1) / 4;
        assert_eq!(sent(&mut pace, &mut next, &[hour, hour + 1000, hour + 50_000]), [burst, 1, 49]);
        assert_eq!(pace.late_ns_max(), hour);
        assert_eq!(pace.admit(u64::MAX, hour), Err(u64::MAX - hour));
    }

    #[test]
    fn a_machine_that_never_keeps_up_is_not_pushed() {
        // Each frame takes twice its time, so the actual rate is half of the requested rate.
        let mut pace = Pace::default();
        let mut now_ns = 0;
        for frame in 0..100_000 {
            match pace.admit(frame * 1000, now_ns) {
                Ok(()) => now_ns += 2000,
                Err(wait_ns) => now_ns += wait_ns,
            }
        }
        assert!((200_000_000..201_000_000).contains(&now_ns), "{now_ns}");
    }
}
