//! Records in flight: what they may still hold, and how the stages are emptied of them for a change of several writes.
//!
//! Flow: change → **records** → device. A row is written in one clock, but a record that was accepted before may have
//! looked at the old one already. What was replaced is used again only when the records accepted before a [`Mark`]
//! have left. A change that takes several rows at once is made in a hold: no record enters, those inside leave, then
//! rows are written. A hold ends by itself, so that a driver that dies does not stop the card.

use crate::device::Device;
use crate::error::CardError;
use crate::generated as regs;
use crate::registers::Registers;

/// Clocks that a hold lasts at most: 67 ms at 250 MHz, while all rows of an image take less than one.
const HOLD_CLOCKS: u32 = (1 << 24) - 1;
/// Looks at the record counters before records count as stuck; the stages hold one for some hundred clocks unless a
/// port takes nothing and nothing is dropped.
const POLLS_MAX: usize = 10_000;

/// A moment: records accepted before it may hold what was replaced then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(u32);

/// What the counters of records say.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    accepted: u32,
    retired: u32,
}

impl Records {
    /// Whether all records that were accepted before the mark have left.
    pub fn have_passed(self, mark: Mark) -> bool {
        // Modulo 2^32, however long ago the mark was: at most as many records follow it as are inside.
        self.accepted.wrapping_sub(mark.0) >= self.accepted.wrapping_sub(self.retired)
    }
}

impl<R: Registers> Device<R> {
    /// Marks this moment.
    pub(crate) fn mark(&mut self) -> Result<Mark, CardError> {
        Ok(Mark(self.read(regs::ACCEPTED)?))
    }

    /// Looks at the counters.
    pub(crate) fn records(&mut self) -> Result<Records, CardError> {
        // In this order more seem to be inside than are, never fewer.
        let retired = self.read(regs::RETIRED)?;
        Ok(Records { accepted: self.read(regs::ACCEPTED)?, retired })
    }

    /// Waits until all records that were accepted before the mark have left.
    ///
    /// # Errors
    /// `Busy` when they do not, `Access`.
    pub(crate) fn wait_for(&mut self, mark: Mark) -> Result<(), CardError> {
        for _ in 0..POLLS_MAX {
            if self.records()?.have_passed(mark) {
                return Ok(());
            }
        }
        Err(CardError::Busy)
    }

    /// Makes a change that frames meet as a whole or not at all, whatever it writes.
    ///
    /// # Errors
    /// `Busy` when records do not leave the stages; then `change` was not called. `Late` when it took longer than a
    /// hold lasts: frames may have met a part of it. What `change` says; `Access`.
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

    /// Lets no record enter the stages and waits until they are empty.
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
        // Long ago: more than half of the range.
        assert!(passed(5, 0x9000_0000, 0x9000_0010) && passed(5, 3, 4));
    }
}
