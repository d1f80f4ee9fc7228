//! Seats of networks on a card, and which of them are valid: shared by control and the card's thread.

use std::sync::atomic::{AtomicU64, Ordering};

use hue_tables::Vid;

/// The number that was given last, on any card of this process: what a former card has reported about a seat is never
/// taken for a report about a seat on its successor.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A network's seat on a card. It gets another one when it is loaded again and when its table is to be written anew
/// ([`super::LiveCard::take_seat`]). Commands about a seat that is no longer the network's do nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SeatId {
    /// The network.
    pub vid: Vid,
    /// Distinguishes it from all other seats.
    number: u64,
}

/// The valid seat of each network: its number, by VID; 0 if there is none.
pub(super) struct Seats(Box<[AtomicU64]>);

impl Default for Seats {
    fn default() -> Self {
        Self((0..=Vid::MAX).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Seats {
    /// Gives the network a new seat. The former one is no longer valid.
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
        if let Some(place) = self.0.get(vid.index()) {
            // The commands that it concerns are in a queue, which orders memory.
            place.store(number, Ordering::Relaxed);
        }
    }

    pub fn is_valid(&self, seat: SeatId) -> bool {
        self.0.get(seat.vid.index()).is_some_and(|number| number.load(Ordering::Relaxed) == seat.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_valid_until_its_network_has_another_one_or_none_and_on_its_own_card_only() {
        let (card, other) = (Seats::default(), Seats::default());
        let [red, blue] = [1, 4095].map(|id| Vid::new(id).unwrap());
        let first = card.take(red);
        assert!(card.is_valid(first) && card.is_valid(card.take(blue)));
        let second = card.take(red);
        assert!(!card.is_valid(first) && card.is_valid(second));
        assert!(![first, second].contains(&other.take(red)) && !other.is_valid(second));
        card.end(red);
        assert!(!card.is_valid(second));
    }
}
