//! Which seats of networks are valid, and who waits for answers: shared by control and the card's thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hue_tables::Vid;

use super::command::CardReply;
use super::seat::SeatId;

/// The valid seat of each network.
pub(super) struct Seats {
    /// Its number, by VID; 0 if there is none.
    numbers: Box<[AtomicU64]>,
    last: AtomicU64,
}

impl Default for Seats {
    fn default() -> Self {
        let numbers = (0..=Vid::MAX).map(|_| AtomicU64::new(0)).collect();
        Self { numbers, last: AtomicU64::new(0) }
    }
}

impl Seats {
    /// Gives the network a new seat. The former one is no longer valid.
    pub fn take(&self, vid: Vid) -> SeatId {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.set(vid, number);
        SeatId { vid, number }
    }

    /// The network has no valid seat from now on.
    pub fn end(&self, vid: Vid) {
        self.set(vid, 0);
    }

    fn set(&self, vid: Vid, number: u64) {
        if let Some(place) = self.numbers.get(vid.index()) {
            // The commands that it concerns are in a queue, which orders memory.
            place.store(number, Ordering::Relaxed);
        }
    }

    pub fn is_valid(&self, seat: SeatId) -> bool {
        self.numbers.get(seat.vid.index()).is_some_and(|number| number.load(Ordering::Relaxed) == seat.number)
    }
}

/// Called with an answer.
pub(super) type Reply = Box<dyn FnOnce(CardReply) + Send>;

/// Who waits for answers.
#[derive(Default)]
pub(super) struct Answers {
    waiting: Mutex<HashMap<u64, Reply>>,
    last: AtomicU64,
}

impl Answers {
    /// Registers a reply; returns the number of the question.
    pub fn wait(&self, reply: Reply) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, reply);
        number
    }

    /// Nobody will answer this question.
    pub fn forget(&self, number: u64) {
        self.take(number);
    }

    /// Answers a question.
    pub fn give(&self, number: u64, answer: CardReply) {
        if let Some(reply) = self.take(number) {
            reply(answer);
        }
    }

    fn take(&self, number: u64) -> Option<Reply> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }
}
