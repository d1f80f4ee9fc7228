//! Moves of networks between card and software.
//!
//! Flow: a document's `placement`, the scheduler or a request ([`Input`]) → **[`Moves`]** → neighbours are redirected →
//! table to the card, piece by piece → the card's thread moves the frames ([`Effect`]s, which the core applies in their
//! order) → [`Ended`] → here. A network's table is on both sides from before the first step until after the last: route
//! changes go to both. A failed move leaves the network where it was, and is reported. Invariants: one move of a network at
//! a time; nobody waits for the card; a network that does not fit the card is tried again once there may be room. This part
//! knows no other part: it gets what it must know of them as [`Around`].

mod asked;
mod hold;
mod report;
mod seats;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use hue_card::{Moved, OnFailure, SeatId};
use hue_control::schedule::{self, DRAINED};
use hue_intent::Placement;
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{Changes, HopChanges, Program};
use hue_tables::Vid;
use tokio::sync::oneshot;

pub use self::asked::{Arrived, Asked, Ended, placement};
use self::hold::Hold;
pub use self::report::{LIMIT, answered};
use self::seats::Seat;
pub use self::seats::{Seats, Stage};
use super::wanted::Wanted;
use crate::api::{EventKind, MigrateRequest, Migration, MigrationSteering, Problem};

/// The networks that the card knows, and their moves.
#[derive(Default)]
pub struct Moves {
    seats: Seats,
    hold: Hold,
    /// Who waits for ordered moves. On each seat, there is at most one at a time.
    asked: BTreeMap<SeatId, Asked>,
}

/// What moves must know of other parts.
pub struct Around<'a> {
    /// The running card; there may be none.
    pub card: Option<Card>,
    /// The loaded network of this name.
    pub network: &'a dyn Fn(&str) -> Option<Network>,
    /// The name of the network with this id.
    pub name_of: &'a dyn Fn(Vid) -> Option<String>,
    /// Names of all networks; those with a document that says `card` come first.
    pub order: &'a dyn Fn() -> Vec<String>,
    /// Why a network in its present form can never run on the card.
    pub elsewhere: &'a dyn Fn(&str) -> Option<String>,
    /// Where the scheduler places a network, and why.
    pub scheduled: &'a dyn Fn(&str) -> Option<(schedule::Side, String)>,
    /// Whether the node has a scheduler.
    pub schedules: bool,
    /// Whether the card is drained.
    pub is_drained: bool,
    /// The image load, if there is one.
    pub load: Option<ImageLoad<'a>>,
    /// The time.
    pub now: Instant,
}

/// A running card.
#[derive(Clone, Copy)]
pub struct Card {
    /// Whether it was taken over, and cannot go on.
    pub is_stale: bool,
    /// Whether tables of networks in software stay on it.
    pub keeps: bool,
}

/// A loaded network.
pub struct Network {
    /// What is loaded.
    pub have: Arc<Wanted>,
    /// Whether it has reached its target state.
    pub is_running: bool,
    /// Whether its table must be loaded as a whole.
    pub is_torn: bool,
    /// Why it does not run on the card, as was told.
    pub why_soft: Option<String>,
}

/// An image that is being loaded.
#[derive(Clone, Copy)]
pub struct ImageLoad<'a> {
    /// Whether networks are moving to their desired places.
    pub settles: bool,
    /// Whether a network is returning now.
    pub returns: &'a dyn Fn(&str) -> bool,
    /// Whether the card had a network when the load began.
    pub had: &'a dyn Fn(&str) -> bool,
}

/// Something that concerns moves.
pub enum Input {
    /// The card is gone.
    CardGone,
    /// It has another image, and no tables of networks.
    Renewed,
    /// Reserve the card for the move of this network. No other one moves until that ends.
    Reserve(String),
    /// End the reservation: networks move to where their documents or the scheduler place them.
    EndReservation,
    /// Moves are deferred.
    Defer,
    /// Make deferred moves, except those of networks that the image load has just placed.
    Resume,
    /// Make this one.
    ResumeOne(String),
    /// Move a network to the place that its document requires, if possible.
    Place(String),
    /// The card may have gained room.
    HasRoom,
    /// The same: networks that did not fit must be tried again.
    MakeRoom,
    /// The same, because tables have become smaller and it is time.
    Retry,
    /// Try networks again that did not fit.
    TryAgain,
    /// These networks have new seats, in software.
    Seat(Vec<NewSeat>),
    /// A network has another seat. Commands that were queued for the former one are void.
    SeatTaken(Vid, SeatId),
    /// A network is removed from the card.
    Unseat(Vid),
    /// The card cannot recognize it.
    Refused(Vid),
    /// The card keeps tables of these networks in software, if it has memory for many: in the background, so that a network
    /// that moves to the card finds its table there.
    Keep(Vec<String>),
    /// Move a network to the card. One that keeps its MAC addresses, and is on the NICs, returns to the card's ports
    /// first.
    Come(String, Option<Asked>),
    /// Neighbours send there: write its table to the card, and move it.
    ComeOn(Option<SeatId>, Option<Asked>, Option<MigrationSteering>),
    /// Move a network to software. If there are NICs beside the card's ports, its neighbours are redirected to them first.
    Leave(String, Option<Asked>),
    /// They are: move it.
    LeaveOn(Option<SeatId>, Option<Asked>),
    /// The card's thread has ended a move.
    Moved(Box<Moved>),
    /// Room and tables on the card are settled: say where the network is.
    Arrive(String, Box<Ended>),
    /// A network has arrived, or did not fit.
    Done(Vid),
    /// The routes of a network no longer fit the card.
    Fell(SeatId, String),
    /// There is no room to keep the table of a network in software.
    NotKept(SeatId),
    /// A network is on the card that was taken over from the daemon before.
    Stays(Vid),
    /// A network's table has changed in software.
    Follow(Vid, HopChanges, Changes),
}

/// A network with a new seat.
pub struct NewSeat {
    /// Its name.
    pub name: String,
    /// The rows by which the card recognizes it.
    pub program: Program,
    /// The number of the seat.
    pub id: SeatId,
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// Report an event about a network.
    Tell(EventKind, String, String),
    /// The view of a network has changed.
    Changed,
    /// A network runs on the card, or not and why.
    Placed(String, bool, Option<String>),
    /// Why a network does not run on the card.
    WhySoft(String, Option<String>),
    /// Its document names this place from now on.
    Pinned(String, Placement),
    /// The numbers that the card had counted of it are lost.
    Lost(String),
    /// Give a network another seat; the answer is [`Input::SeatTaken`].
    TakeSeat(Vid),
    /// Give these networks new seats, because their tables on the card are no longer valid; the answer is [`Input::Seat`].
    SeatAnew(Vec<String>),
    /// Tell the card how to recognize the frames of networks; software decides them.
    LoadOnCard(Vec<Vid>),
    /// A network's seat has ended: remove the network from the card.
    EndSeat(Vid),
    /// Set the card's limits before its rings.
    Police,
    /// Write a network's whole table to the card, to be kept.
    Write(SeatId),
    /// Write changes to it.
    WriteChanges(SeatId, HopChanges, Changes, OnFailure),
    /// Send changes of software's tables to the card.
    Forward,
    /// Remove a network's table from the card.
    Strip(Vid),
    /// Make a network's neighbours send to where it runs, and go on once they do.
    Rewire(String, SeatId, Then),
    /// Have the card's thread move a network.
    Order(Box<Order>),
    /// Refuse a request.
    Refuse(oneshot::Sender<Result<Migration, Problem>>, Problem),
    /// Networks have moved: an image load may continue.
    Moved,
}

/// Work that waits until neighbours are redirected.
pub enum Then {
    /// Nothing.
    Nothing,
    /// The answer to a request for a move to the card.
    Answer(Box<Arrived>),
    /// The network's move to software, requested or not.
    Leave(Box<Option<Asked>>),
    /// The move to the card of a network that keeps its MAC addresses, requested or not.
    Come(Box<Option<Asked>>),
}

/// A move for the card's thread.
pub struct Order {
    /// The network.
    pub seat: SeatId,
    /// For a move to the card.
    pub coming: Option<Coming>,
    /// The request, if there is one. Then frames are observed.
    pub request: Option<MigrateRequest>,
    /// Whether to report how many frames of the network the card had received when the move began.
    pub counts: bool,
}

/// A network that moves to the card.
pub struct Coming {
    /// Whether its table is there already.
    pub kept: bool,
    /// Failure for tests: the table counts as not written.
    pub fails: bool,
}

impl Moves {
    /// Takes an input.
    pub fn take(&mut self, input: Input, around: &Around<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::CardGone => {
                let seats = std::mem::take(&mut self.seats);
                self.asked.clear();
                for name in seats.vids().filter_map(|vid| (around.name_of)(vid)) {
                    out.extend([Effect::Placed(name.clone(), false, None), Effect::Lost(name)]);
                }
            }
            Input::Renewed => self.seats.all.values_mut().for_each(|seat| seat.kept = false),
            Input::Reserve(name) => self.hold.reserve(name),
            Input::EndReservation => {
                self.hold.end_reservation();
                if around.load.is_none() {
                    self.resume(around, &mut out);
                }
            }
            Input::Defer => self.hold.defer(),
            Input::Resume => self.resume(around, &mut out),
            Input::ResumeOne(name) => {
                if !around.load.is_some_and(|load| (load.had)(&name)) {
                    self.place(&name, around, &mut out);
                }
            }
            Input::Place(name) => self.place(&name, around, &mut out),
            Input::HasRoom => self.seats.has_room(),
            Input::MakeRoom => self.make_room(around, &mut out),
            Input::Retry => {
                self.seats.retry();
                self.make_room(around, &mut out);
            }
            Input::TryAgain => self.try_again(around, &mut out),
            Input::Seat(seats) => self.seat(seats, &mut out),
            Input::SeatTaken(vid, id) => {
                if let Some(seat) = self.seats.all.get_mut(&vid) {
                    seat.id = id;
                }
            }
            Input::Unseat(vid) => {
                if self.seats.all.remove(&vid).is_some() {
                    out.extend([Effect::EndSeat(vid), Effect::Police]);
                }
            }
            Input::Refused(vid) => drop(self.seats.all.remove(&vid)),
            Input::Keep(names) => self.keep(&names, around, &mut out),
            Input::Come(name, asked) => self.come(&name, asked, around, &mut out),
            Input::ComeOn(id, asked, steering) => {
                self.come_on(id, asked, steering, around, &mut out);
            }
            Input::Leave(name, asked) => self.leave(&name, asked, around, &mut out),
            Input::LeaveOn(seat, asked) => self.leave_on(seat, asked, around, &mut out),
            Input::Moved(moved) => {
                let Moved { seat, outcome, prepared_ns, received } = *moved;
                let asked = self.asked.remove(&seat).map(|asked| asked.counted(received));
                self.ended(Ended { seat, outcome, prepare_ns: prepared_ns, asked }, around, &mut out);
            }
            Input::Arrive(name, ended) => self.arrive(name, *ended, around, &mut out),
            Input::Done(vid) => {
                self.seats.is_done(vid);
                self.try_again(around, &mut out);
            }
            Input::Fell(seat, why) => self.fell(seat, why, around, &mut out),
            Input::NotKept(id) => {
                if self.seats.with_id(id).is_some_and(|seat| seat.stage == Stage::Software) {
                    self.let_go(id.vid, &mut out);
                }
            }
            Input::Stays(vid) => self.stays(vid, around, &mut out),
            Input::Follow(vid, hops, routes) => self.follow(vid, hops, routes, around, &mut out),
        }
        out
    }

    /// Whether a network must stay where it is for now, because an image is being loaded or the card is reserved.
    fn must_stay(&self, name: &str, around: &Around<'_>) -> bool {
        match around.load {
            Some(load) if (load.returns)(name) => self.hold.is_reserved_for(name),
            load => self.hold.is_reserved() || load.is_some_and(|load| !load.settles),
        }
    }

    fn resume(&mut self, around: &Around<'_>, out: &mut Vec<Effect>) {
        if !self.hold.take_deferred() {
            return;
        }
        if around.card.is_some() && around.load.is_none() {
            self.seats.has_room();
        }
        out.extend((around.order)().into_iter().map(|name| Effect::Then(Input::ResumeOne(name))));
    }

    fn place(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
        if self.must_stay(name, around) {
            return self.hold.defer();
        }
        let is_drained = around.is_drained && !planted(Bug::DrainForgotten);
        if around.card.is_none() {
            return;
        }
        let Some(Network { have, is_running, is_torn, .. }) = (around.network)(name) else { return };
        let Some(stage) = self.seats.stage(have.program.vid) else { return };
        if !is_running || is_torn {
            return;
        }
        let is_bound = have.bound().is_some();
        // Without a scheduler, every network that fits is placed on the card.
        let (wanted, why) = match have.network.spec.placement {
            _ if is_bound => (Placement::Soft, String::new()),
            Placement::Auto | Placement::Card if is_drained => (Placement::Soft, DRAINED.to_owned()),
            Placement::Auto if around.schedules => match (around.scheduled)(name) {
                None => return, // the scheduler has not answered yet
                Some((schedule::Side::Soft, why)) => (Placement::Soft, planned(&why)),
                Some((schedule::Side::Card, _)) => (Placement::Card, String::new()),
            },
            wanted => (wanted, "its document says so".to_owned()),
        };
        if stage == Stage::Card && wanted == Placement::Soft {
            return self.leave(name, None, around, out);
        }
        if stage != Stage::Software {
            return;
        }
        out.push(Effect::Changed);
        let elsewhere = || (around.elsewhere)(name);
        let why = match wanted {
            // The other reason remains when the card is no longer drained.
            _ if is_bound => elsewhere(),
            Placement::Soft if why == DRAINED => elsewhere().or(Some(why)),
            Placement::Soft => Some(why),
            Placement::Auto | Placement::Card => elsewhere(),
        };
        match why {
            Some(_) => out.push(Effect::WhySoft(name.to_owned(), why)),
            // The reason of the last failure is kept until the network has arrived, so that another failure is no news.
            None => self.come(name, None, around, out),
        }
    }

    fn make_room(&mut self, around: &Around<'_>, out: &mut Vec<Effect>) {
        self.seats.has_room();
        self.try_again(around, out);
    }

    fn try_again(&mut self, around: &Around<'_>, out: &mut Vec<Effect>) {
        let again = self.seats.take_again();
        if around.card.is_none() || again.is_empty() {
            return;
        }
        let again: BTreeSet<String> = again.into_iter().filter_map(|vid| (around.name_of)(vid)).collect();
        let order = (around.order)().into_iter().filter(|name| again.contains(name));
        out.extend(order.map(|name| Effect::Then(Input::Place(name))));
    }

    fn seat(&mut self, seats: Vec<NewSeat>, out: &mut Vec<Effect>) {
        let (mut known, mut room) = (false, false);
        let (mut vids, mut names) = (Vec::new(), Vec::new());
        for NewSeat { name, program, id } in seats {
            let vid = program.vid;
            if let Some(before) = self.seats.all.insert(vid, Seat::new(program, id)) {
                (known, room) = (true, room || before.stage != Stage::Software);
            }
            vids.push(vid);
            names.push(name);
        }
        if room {
            // They release their room on the card, and may not return to it.
            self.seats.has_room();
        }
        if vids.is_empty() || planted(Bug::SeatForgotten) && known {
            return;
        }
        // The networks' previous tables are removed from the card before those of software are sent.
        let keep = Effect::Then(Input::Keep(names));
        out.extend([Effect::LoadOnCard(vids), Effect::Forward, keep, Effect::Police]);
    }

    fn keep(&mut self, names: &[String], around: &Around<'_>, out: &mut Vec<Effect>) {
        if !around.card.is_some_and(|card| card.keeps) {
            return;
        }
        for name in names {
            let Some(network) = (around.network)(name) else { continue };
            let seat = self.seats.all.get_mut(&network.have.program.vid);
            if let Some(seat) = seat.filter(|seat| seat.stage == Stage::Software && !seat.kept) {
                seat.kept = true;
                out.push(Effect::Write(seat.id));
            }
        }
    }

    /// Removes the table of a network in software from the card. Commands about it that are still in the queue become void.
    fn let_go(&mut self, vid: Vid, out: &mut Vec<Effect>) {
        if let Some(seat) = self.seats.all.get_mut(&vid) {
            seat.kept = false;
            out.extend([Effect::TakeSeat(vid), Effect::Strip(vid)]);
        }
    }

    /// The card keeps no table of a network in software any longer. Returns whether there were any.
    fn let_all_go(&mut self, out: &mut Vec<Effect>) -> bool {
        let kept = self.seats.all.iter().filter(|(_, seat)| seat.is_kept());
        let kept: Vec<Vid> = kept.map(|(vid, _)| *vid).collect();
        kept.iter().for_each(|vid| self.let_go(*vid, out));
        !kept.is_empty()
    }

    fn fell(&mut self, id: SeatId, why: String, around: &Around<'_>, out: &mut Vec<Effect>) {
        if self.seats.with_id(id).is_none() {
            return;
        }
        let Some(name) = (around.name_of)(id.vid) else { return };
        let text = format!("the network runs in software: its routes no longer fit the card: {why}");
        out.extend([
            Effect::SeatAnew(vec![name.clone()]),
            Effect::Tell(EventKind::Placed, name.clone(), text),
            Effect::WhySoft(name, Some(why)),
            Effect::Changed,
            Effect::Then(Input::MakeRoom),
        ]);
    }

    fn stays(&mut self, vid: Vid, around: &Around<'_>, out: &mut Vec<Effect>) {
        let seat = self.seats.all.get_mut(&vid).filter(|_| around.card.is_some_and(|card| card.is_stale));
        let Some(seat) = seat.filter(|seat| seat.stage == Stage::Software) else { return };
        seat.stage = Stage::Card;
        if let Some(name) = (around.name_of)(vid) {
            out.extend([Effect::Placed(name, true, None), Effect::Changed]);
        }
    }

    fn follow(
        &mut self,
        vid: Vid,
        hops: HopChanges,
        routes: Changes,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        if planted(Bug::NoMirror) {
            return;
        }
        if around.card.is_some_and(|card| !card.is_stale)
            && let Some((id, on_failure)) = self.seats.follower(vid)
        {
            let withdrawn = routes.v4.iter().any(|(_, hop)| hop.is_none())
                || routes.v6.iter().any(|(_, hop)| hop.is_none());
            if withdrawn {
                self.seats.is_smaller(around.now);
            }
            if self.seats.has_table(vid) {
                out.push(Effect::WriteChanges(id, hops, routes, on_failure));
            }
        }
        out.push(Effect::Forward);
    }
}

/// What other parts may know.
impl Moves {
    /// The seats of networks.
    pub fn seats(&self) -> &Seats {
        &self.seats
    }

    /// Whether a network is on its way.
    pub fn any(&self) -> bool {
        self.seats.any_moves()
    }

    /// Whether the card is reserved.
    pub fn is_reserved(&self) -> bool {
        self.hold.is_reserved()
    }
}

fn planned(why: &str) -> String {
    format!("the scheduler: {why}")
}
