//! Two links (multi-receiver): NIC ports beside the card's ports. Neighbours of networks in software send to the NICs.
//!
//! Flow: places of networks, and the ports that have a link → **here** → workers receive and send on the other link,
//! and notify each neighbour (unicast ARP announcements) → shortly after, frames that still arrived on the old link are
//! counted, and work that waited for the switch continues. Neighbours of a network send to the NICs before it moves
//! to software, and to the card's ports once it has moved there: during the move, the card holds almost none of the
//! network's frames, and the path through the card to software, which carries less than either link, has none of its
//! load. Both links accept frames at any time, so none are lost. Frames may only be reordered while both links are in
//! use, and the report says how many. A switch moves between software and card on the card's link: it uses the NICs only while
//! it is in software (ADR 0066). Invariants: nobody waits; a NIC without a link is not used.

use std::time::{Duration, Instant};

use hue_card::SeatId;
use hue_demux::PortId;
use hue_tables::Vid;

use super::moves::Then;

/// How long frames of the old link are counted, and how long a move to the card waits for them.
const TURN: Duration = Duration::from_millis(20);
/// How long the old wire of a switch is watched once more after [`TURN`] without a frame from it.
const LAST_LOOK: Duration = Duration::from_millis(5);
/// As [`TURN`] while the card's thread has not answered yet: without its answer, the number of late frames is unknown. No turn
/// is longer.
pub(super) const TURN_MAX: Duration = Duration::from_secs(1);

/// NICs beside the card's ports, and neighbours that are being redirected.
#[derive(Default)]
pub struct Wires {
    /// Pairs of port and NIC.
    nics: Vec<(PortId, PortId)>,
    turns: Vec<Turn>,
}

impl Wires {
    /// These are the pairs of port and NIC.
    pub fn set_nics(&mut self, nics: Vec<(PortId, PortId)>) {
        self.nics = nics;
    }

    /// Whether there are NICs beside ports.
    pub fn has_nics(&self) -> bool {
        !self.nics.is_empty()
    }

    /// The NIC beside a port.
    pub fn nic_of(&self, port: PortId) -> Option<PortId> {
        self.nics.iter().find(|(front, _)| *front == port).map(|(_, nic)| *nic)
    }

    /// The port of the card beside which a NIC is.
    pub fn front_of(&self, nic: PortId) -> Option<PortId> {
        self.nics.iter().find(|(_, other)| *other == nic).map(|(front, _)| *front)
    }

    /// Neighbours are being redirected.
    pub fn begin(&mut self, turn: Turn) {
        self.turns.push(turn);
    }

    /// Whether neighbours are being redirected.
    pub fn is_turning(&self) -> bool {
        !self.turns.is_empty()
    }

    /// When the next turn is due.
    pub fn due(&self) -> Option<Instant> {
        self.turns.iter().map(Turn::due).min()
    }

    /// The turns that are due.
    pub fn take_due(&mut self, now: Instant) -> Vec<Turn> {
        self.turns.extract_if(.., |turn| turn.due() <= now).collect()
    }

    /// The last frame of a network with this seat has left the card: how long that took, and how many frames the card had
    /// received.
    pub fn drained(&mut self, seat: SeatId, took: Option<Duration>, received: Option<u64>) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.seat == Some(seat)) {
            turn.waits_for_card = false;
            turn.overlap = took;
            turn.by_card = received;
        }
    }
}

/// Neighbours that are being redirected, and the work that waits for this.
pub struct Turn {
    pub(super) vid: Vid,
    /// The network's seat.
    pub(super) seat: Option<SeatId>,
    pub(super) began: Instant,
    /// When it began or was put off.
    pub(super) again: Instant,
    pub(super) neighbours: usize,
    /// For a switch: frames accepted on its old wire so far, in all turns.
    pub(super) late: Option<u64>,
    /// For a switch: whether no frame came by its old wire for [`TURN`].
    pub(super) is_quiet: bool,
    /// Frames that NICs had received when the turn began.
    pub(super) by_nic: u64,
    pub(super) to_nic: bool,
    /// Whether the card's thread has not answered yet.
    pub(super) waits_for_card: bool,
    /// How long the network's frames on the card took to leave it, once known.
    pub(super) overlap: Option<Duration>,
    /// Frames of the network received by the card.
    pub(super) by_card: Option<u64>,
    /// Work that waits for the turn.
    pub(super) then: Then,
}

impl Turn {
    fn due(&self) -> Instant {
        self.again
            + match self {
                Self { waits_for_card: true, .. } => TURN_MAX,
                Self { is_quiet: true, .. } => LAST_LOOK,
                _ => TURN,
            }
    }

    /// The same turn, due later.
    pub(super) fn later(self, now: Instant) -> Self {
        Self { again: now, is_quiet: false, ..self }
    }

    /// Whether the turn of a switch goes on although it was due, if `late` frames came by the old wire in all turns so far: those
    /// that came since the last look show that outside switches still send there. What hosts send at the end of a quiet time
    /// may wait in a port for a worker that was busy, so the old wire is looked at once more.
    pub(super) fn goes_on(&mut self, late: u64, now: Instant) -> bool {
        let Some(before) = self.late else { return false };
        self.late = Some(late);
        let goes_on = before != late || !self.is_quiet;
        self.is_quiet = before == late;
        self.again = now;
        goes_on
    }

    /// The same turn, with work that waits for it.
    pub(super) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn to the card's ports, of a switch with so many late frames or of a router.
    fn turn(late: Option<u64>, began: Instant) -> Turn {
        Turn {
            vid: Vid::new(1).unwrap(),
            seat: None,
            began,
            again: began,
            neighbours: 2,
            late,
            is_quiet: false,
            by_nic: 0,
            to_nic: false,
            waits_for_card: false,
            overlap: None,
            by_card: None,
            then: Then::Nothing,
        }
    }

    #[test]
    fn a_switch_listens_until_its_old_wire_is_quiet() {
        let mut now = Instant::now();
        let mut listening = turn(Some(7), now);
        // Hosts still send there; then it is quiet, but a frame waits in a port; then it is quiet.
        for (late, due) in [(9, TURN), (10, TURN), (10, LAST_LOOK), (11, TURN), (11, LAST_LOOK)] {
            now = listening.due();
            assert!(listening.goes_on(late, now));
            assert_eq!(listening.due() - now, due, "{late}");
        }
        assert!(!listening.goes_on(11, now), "it ends");
        assert!(!turn(None, now).goes_on(3, now), "a router accepts both wires at any time");
    }
}
