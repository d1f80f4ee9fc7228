//! Who waits for answers of a running card: shared by control and the card's thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::command::CardReply;

/// Called with an answer.
pub type Reply = Box<dyn FnOnce(CardReply) + Send>;

/// Who waits for answers.
#[derive(Default)]
pub struct Answers {
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

    /// Removes and returns the reply to a question that nobody will answer.
    pub fn take(&self, number: u64) -> Option<Reply> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }

    /// Answers a question.
    pub fn give(&self, number: u64, answer: CardReply) {
        if let Some(reply) = self.take(number) {
            reply(answer);
        }
    }
}
