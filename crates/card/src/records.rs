//! Records in flight: the old data that they may still refer to, and how the stages are emptied for a change of
//! several writes.
//!
//! Flow: change → **records** → device. A row is written in one clock, but a record that was accepted earlier may
//! already have read the old row. Replaced rows and words are reused only when the records accepted before a [`Mark`]
//! have left. A change of several rows at once is made in a hold: no record enters, the records inside leave, then
//! the rows are written. A hold ends by itself, so that a driver that dies does not stop the card.

use crate::device::Device;
use crate::error::CardError;
use crate::generated as regs;
use crate::registers::Registers;

/// Longest hold, clocks: 67 ms at 250 MHz; writing all rows of an image takes less.
const HOLD_CLOCKS: u32 = (1 << 24) - 1;
/// Polls of the record counters before records count as stuck. A record stays in the stages for some hundred clocks,
/// unless a port accepts no frames and nothing is dropped.
const POLLS_MAX: usize = 10_000;

/// Polls of the loop's counters before its frames count as stuck: a full loop takes some ten thousand clocks.
const LOOP_POLLS_MAX: usize = 100_000;

/// Frames that entered the loop, and that left it.
const fn loop_frames(word: u32) -> (u16, u16) {
    (word as u16, (word >> 16) as u16)
}

/// A point in time. Records accepted before it may refer to data that was replaced at that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(u32);

/// Values of the record counters.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    accepted: u32,
    retired: u32,
}

impl Records {
    /// Whether all records that were accepted before the mark have left.
    pub fn have_passed(self, mark: Mark) -> bool {
        // Modulo 2^32, for a mark of any age: the mark has passed if at least as many records were accepted since
        // then as are inside.
        self.accepted.wrapping_sub(mark.0) >= self.accepted.wrapping_sub(self.retired)
    }
}

impl<R: Registers> Device<R> {
    /// Marks the current time.
    pub(crate) fn mark(&mut self) -> Result<Mark, CardError> {
        Ok(Mark(self.read(regs::ACCEPTED)?))
    }

    /// Reads the counters.
    pub(crate) fn records(&mut self) -> Result<Records, CardError> {
        // Read in this order, the number of records inside can be too high, but never too low.
        let retired = self.read(regs::RETIRED)?;
        Ok(Records { accepted: self.read(regs::ACCEPTED)?, retired })
    }

    /// Waits until all records that were accepted before the mark have left.
    ///
    /// # Errors
    /// `Busy` if they do not leave; `Access`.
    pub(crate) fn wait_for(&mut self, mark: Mark) -> Result<(), CardError> {
        for _ in 0..POLLS_MAX {
            if self.records()?.have_passed(mark) {
                return Ok(());
            }
        }
        Err(CardError::Busy)
    }

    /// Waits until the frames that are in the loop of tunnels have left it.
    ///
    /// # Errors
    /// `Busy` if they do not leave; `Access`.
    pub(crate) fn wait_for_loop(&mut self) -> Result<(), CardError> {
        let (came, _) = loop_frames(self.read(regs::LOOP_FRAMES)?);
        for _ in 0..LOOP_POLLS_MAX {
            let (_, left) = loop_frames(self.read(regs::LOOP_FRAMES)?);
            if left.wrapping_sub(came) as i16 >= 0 {
                return Ok(());
            }
        }
        Err(CardError::Busy)
    }

    /// Makes a change of any number of writes that each frame sees completely or not at all.
    ///
    /// # Errors
    /// `Busy` if records do not leave the stages; `change` was not called then. `Late` if the change took longer than
    /// a hold lasts: frames may have seen part of it. Errors of `change`; `Access`.
    pub(crate) fn in_hold<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T, CardError>,
    ) -> Result<T, CardError> {
        self.hold()?;
        let result = change(self);
        let left = self.read(regs::HOLD)?;
        self.write(regs::HOLD, 0)?;
        if left == 0 && result.is_ok() { Err(CardError::Late) } else { result }
    }

    /// Stops records from entering the stages and waits until the stages are empty.
    fn hold(&mut self) -> Result<(), CardError> {
        self.write(regs::HOLD, HOLD_CLOCKS)?;
        let mark = self.mark()?;
        let waited = self.wait_for(mark);
        if waited.is_err() {
            self.write(regs::HOLD, 0)?;
        }
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_pass_whatever_the_counters_wrapped() {
        let passed = |mark, retired, accepted| Records { accepted, retired }.have_passed(Mark(mark));
        assert!(passed(5, 5, 5) && passed(5, 5, 9) && passed(5, 8, 9));
        assert!(!passed(5, 4, 5) && !passed(5, 4, 60));
        assert!(passed(u32::MAX - 1, 0, 3) && !passed(u32::MAX, u32::MAX - 1, 3));
        // A mark counts as old even after more than half of the range.
        assert!(passed(5, 0x9000_0000, 0x9000_0010) && passed(5, 3, 4));
    }
}
