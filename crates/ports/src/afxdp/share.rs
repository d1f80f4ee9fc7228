//! Use of the receive rings by class: the user-space half of the quota in spec/xdp/hueplane.c.
//!
//! The program admits a frame of a class while `admitted - consumed` is below the class's quota, and numbers what it
//! admits. `consumed` is kept here: a frame is consumed when the engine reports it ([`Share::consume`]), or when its
//! number is missing because it was lost after admission ([`Share::arrived`]). Numbers rise in each queue. If a
//! driver reorders frames, a late frame was already counted as lost, and this count is taken back.

use super::program::{CLASSES, Words};

/// State of each class of each queue.
pub(super) struct Share {
    /// Number of the last frame that arrived or is known to be lost.
    accounted: Vec<u32>,
    /// Frames that arrived and were not consumed yet.
    outstanding: Vec<u32>,
    /// Frames of each class that were admitted and lost, all queues.
    lost: Vec<u64>,
    queues: usize,
}

impl Share {
    pub(super) fn new(queues: usize) -> Self {
        Self {
            accounted: vec![0; queues * CLASSES],
            outstanding: vec![0; queues * CLASSES],
            lost: vec![0; CLASSES],
            queues,
        }
    }

    /// Records the arrival of frame number `number` of a class.
    #[inline]
    pub(super) fn arrived(&mut self, consumed: &Words, queue: usize, index: usize, number: u32) {
        let at = queue * CLASSES + index;
        self.outstanding[at] += 1;
        let ahead = number.wrapping_sub(self.accounted[at]) as i32;
        if ahead == 1 {
            self.accounted[at] = number;
        } else if ahead > 1 {
            self.accounted[at] = number;
            consumed.set(at, consumed.get(at).wrapping_add(ahead as u64 - 1));
            self.lost[index] += ahead as u64 - 1;
        } else {
            consumed.set(at, consumed.get(at).wrapping_sub(1));
            self.lost[index] = self.lost[index].saturating_sub(1);
        }
    }

    /// Frames of a class that were admitted and are known to be lost, because later frames of the class have arrived.
    pub(super) fn lost(&self, index: usize) -> u64 {
        self.lost.get(index).copied().unwrap_or_default()
    }

    /// Records that the engine has finished with `count` frames of a class, from any queue.
    #[inline]
    pub(super) fn consume(&mut self, consumed: &Words, index: usize, count: u32) {
        let mut left = count;
        for queue in 0..self.queues {
            let at = queue * CLASSES + index;
            let here = left.min(self.outstanding[at]);
            if here > 0 {
                self.outstanding[at] -= here;
                consumed.set(at, consumed.get(at).wrapping_add(u64::from(here)));
                left -= here;
            }
            if left == 0 {
                break;
            }
        }
    }
}
