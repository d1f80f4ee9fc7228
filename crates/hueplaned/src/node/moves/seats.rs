//! Seats of networks on the card: in which stage each is, whether its table is there, and when one that did not fit is tried
//! again.
//!
//! Flow: [`super::Moves`] → **[`Seats`]** → questions of others. Invariants: a network is tried again only if the card may
//! have gained room since the last try, or once none is moving that held the room it lacked; the pause between tries for
//! smaller tables grows until a network fits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hue_card::{OnFailure, SeatId};
use hue_substrate::Program;
use hue_tables::Vid;

/// First and longest pause before networks that did not fit are tried again, after tables became smaller. A try
/// writes as much of a table as fits.
const RETRY_MIN: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// See the head of this file.
pub struct Seats {
    pub(super) all: BTreeMap<Vid, Seat>,
    /// Increases each time that the card may have gained room.
    room: u64,
    /// When networks that did not fit are tried again because tables have become smaller.
    retry: Option<Instant>,
    /// The next pause: longer each time, until a network fits.
    pause: Duration,
}

/// A network that the card knows.
pub struct Seat {
    /// The rows by which the card recognizes it.
    pub(super) program: Program,
    pub(super) stage: Stage,
    /// The card had no room for it, but may have room now.
    pub(super) again: bool,
    /// [`Seats::room`] at the last try.
    tried: u64,
    /// Its table stays on the card and follows changes while it runs in software, so it need not be written when the
    /// network moves to the card.
    pub(super) kept: bool,
    /// Identifies it to the card. If work on its table fails, the card ignores later commands for this seat.
    pub(super) id: SeatId,
}

/// Where a network runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// In software.
    Software,
    /// In software; its table is being written to the card, or is there and the network is moving.
    Coming,
    /// On the card.
    Card,
    /// On the card, and moving to software.
    Leaving,
}

impl Stage {
    /// Whether the network is on its way.
    pub const fn is_moving(self) -> bool {
        matches!(self, Self::Coming | Self::Leaving)
    }
}

impl Seat {
    /// In software, without a table on the card.
    pub(super) fn new(program: Program, id: SeatId) -> Self {
        Self { program, stage: Stage::Software, again: false, tried: 0, kept: false, id }
    }

    /// Whether a network in software has its table on the card.
    pub(super) fn is_kept(&self) -> bool {
        self.kept && self.stage == Stage::Software
    }
}

impl Default for Seats {
    fn default() -> Self {
        Self { all: BTreeMap::new(), room: 0, retry: None, pause: RETRY_MIN }
    }
}

impl Seats {
    /// The seat with this number, if the network still has it.
    pub(super) fn with_id(&mut self, id: SeatId) -> Option<&mut Seat> {
        self.all.get_mut(&id.vid).filter(|seat| seat.id == id)
    }

    /// Whether any network is on its way.
    pub(super) fn any_moves(&self) -> bool {
        self.all.values().any(|seat| seat.stage.is_moving())
    }

    /// The card may have gained room: networks that did not fit must be tried again, even if a try is under way.
    pub(super) fn has_room(&mut self) {
        self.room += 1;
        self.all.values_mut().for_each(|seat| seat.again |= seat.stage == Stage::Software);
    }

    /// A network is tried.
    pub(super) fn comes(&mut self, vid: Vid) -> Option<SeatId> {
        let seat = self.all.get_mut(&vid)?;
        (seat.stage, seat.tried) = (Stage::Coming, self.room);
        Some(seat.id)
    }

    /// A network fits.
    pub(super) fn fits(&mut self) {
        self.pause = RETRY_MIN;
    }

    /// A network has arrived, or did not fit. The last of several that did not fit had all available room.
    pub(super) fn is_done(&mut self, vid: Vid) {
        if !self.any_moves()
            && let Some(seat) = self.all.get_mut(&vid)
        {
            // Keep `again` only if the card has gained room since the try.
            seat.again &= seat.tried != self.room;
        }
    }

    /// Networks that did not fit and must be tried again, once nothing is moving: moving networks take room that they may
    /// not keep.
    pub(super) fn take_again(&mut self) -> BTreeSet<Vid> {
        if self.any_moves() {
            return BTreeSet::new();
        }
        let taken = |seat: &mut Seat| std::mem::take(&mut seat.again);
        self.all.iter_mut().filter_map(|(vid, seat)| taken(seat).then_some(*vid)).collect()
    }

    /// A table has become smaller: its network, or its destination, may have room now.
    pub(super) fn is_smaller(&mut self, now: Instant) {
        self.retry.get_or_insert(now + self.pause);
    }

    /// It is time to try again.
    pub(super) fn retry(&mut self) {
        self.retry = None;
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }

    /// When networks that did not fit are tried again.
    pub fn due(&self) -> Option<Instant> {
        self.retry
    }

    /// Networks with a seat.
    pub fn vids(&self) -> impl Iterator<Item = Vid> + '_ {
        self.all.keys().copied()
    }

    /// Stages of networks with a seat.
    pub fn stages(&self) -> impl Iterator<Item = (Vid, Stage)> + '_ {
        self.all.iter().map(|(vid, seat)| (*vid, seat.stage))
    }

    /// Where a network is, if it has a seat.
    pub fn stage(&self, vid: Vid) -> Option<Stage> {
        self.all.get(&vid).map(|seat| seat.stage)
    }

    /// The number of a network's seat.
    pub fn id(&self, vid: Vid) -> Option<SeatId> {
        self.all.get(&vid).map(|seat| seat.id)
    }

    /// Whether the card recognizes a network by this program.
    pub fn knows(&self, program: &Program) -> bool {
        self.all.get(&program.vid).is_some_and(|seat| seat.program == *program)
    }

    /// Whether a network's table is on the card, or on its way there.
    pub fn has_table(&self, vid: Vid) -> bool {
        self.all.get(&vid).is_some_and(|seat| seat.kept || seat.stage != Stage::Software)
    }

    /// The seat whose table follows that of software, and what happens when it cannot.
    pub fn follower(&self, vid: Vid) -> Option<(SeatId, OnFailure)> {
        let seat = self.all.get(&vid)?;
        let in_software = seat.stage == Stage::Software;
        Some((seat.id, if in_software { OnFailure::IsNotKept } else { OnFailure::Falls }))
    }
}
