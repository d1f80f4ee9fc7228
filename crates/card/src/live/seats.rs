//! Which seats of networks are valid, and who waits for answers: shared by control and the card's thread.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hue_ports::SharedMemory;
use hue_tables::Vid;

use super::command::{CardReply, SeatId};

/// Bytes of the memory: a number for each VID.
const SEATS_BYTES: usize = (Vid::MAX as usize + 1) * 8;

/// The valid seat of each network, in memory that the card's process can share with control's.
pub struct Seats {
    /// By VID, the seat's number; 0 if there is none.
    memory: Arc<SharedMemory>,
    last: AtomicU64,
}

impl Seats {
    /// No network has a seat.
    ///
    /// # Errors
    /// If the system has no memory or descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::new(SEATS_BYTES)?, last: AtomicU64::new(0) })
    }

    /// The descriptor with which the card's process gets the same ([`Seats::open`]).
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// The seats that another process gives, to look at.
    ///
    /// # Errors
    /// If it is not the memory of seats.
    pub fn open(memory: OwnedFd) -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::open(memory, SEATS_BYTES)?, last: AtomicU64::new(0) })
    }

    fn number(&self, vid: Vid) -> &AtomicU64 {
        self.memory.long(vid.index() * 8)
    }

    /// Gives the network a new seat. The former one is no longer valid.
    #[must_use]
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
        // The commands that it concerns are in a queue, which orders memory.
        self.number(vid).store(number, Ordering::Relaxed);
    }

    pub(super) fn is_valid(&self, seat: SeatId) -> bool {
        self.number(seat.vid).load(Ordering::Relaxed) == seat.number
    }
}

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
