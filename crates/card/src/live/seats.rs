//! Seats of networks on a card, and which of them are valid: shared by control and the card's thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use hue_ports::SharedMemory;
use hue_tables::Vid;
use serde::{Deserialize, Serialize};

/// The number that was given last, on any card of this process: what a former card has reported about a seat is never
/// taken for a report about a seat on its successor. It begins with the time, nanoseconds, so that another process, which
/// takes the card over, gives other numbers.
static LAST: LazyLock<AtomicU64> = LazyLock::new(|| {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    AtomicU64::new(u64::try_from(time.as_nanos()).unwrap_or_default())
});

/// A network's seat on a card. It gets another one when it is loaded again and when its table is to be written anew
/// ([`Seats::take`]). Commands about a seat that is no longer the network's do nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SeatId {
    /// The network.
    pub vid: Vid,
    /// Distinguishes it from all other seats.
    number: u64,
}

/// Bytes of the memory: a number for each VID.
const SEATS_BYTES: usize = (Vid::MAX as usize + 1) * 8;

/// The valid seat of each network: its number, by VID; 0 if there is none. In memory that the card's process can share with
/// control's.
pub struct Seats(Arc<SharedMemory>);

impl Seats {
    /// No network has a seat.
    ///
    /// # Errors
    /// If the system has no memory or descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(SharedMemory::new(SEATS_BYTES)?))
    }

    /// The descriptor with which the card's process gets the same ([`Seats::open`]).
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The seats that another process gives, to look at.
    ///
    /// # Errors
    /// If it is not the memory of seats.
    pub fn open(memory: OwnedFd) -> io::Result<Self> {
        Ok(Self(SharedMemory::open(memory, SEATS_BYTES)?))
    }

    fn number(&self, vid: Vid) -> &AtomicU64 {
        self.0.long(vid.index() * 8)
    }

    /// Gives the network a new seat. The former one is no longer valid.
    #[must_use]
    pub fn take(&self, vid: Vid) -> SeatId {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_valid_until_its_network_has_another_one_or_none_and_on_its_own_card_only() {
        let (card, other) = (Seats::new().unwrap(), Seats::new().unwrap());
        let there = Seats::open(card.descriptor().try_clone_to_owned().unwrap()).unwrap();
        let [red, blue] = [1, 4095].map(|id| Vid::new(id).unwrap());
        let first = card.take(red);
        assert!(there.is_valid(first) && there.is_valid(card.take(blue)));
        let second = card.take(red);
        assert!(!there.is_valid(first) && there.is_valid(second));
        assert!(![first, second].contains(&other.take(red)) && !other.is_valid(second));
        card.end(red);
        assert!(!there.is_valid(second) && !card.is_valid(second));
    }
}
