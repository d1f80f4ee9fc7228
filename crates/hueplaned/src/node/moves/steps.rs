//! The steps of a move, in order.
//!
//! Flow: `come` or `leave` → neighbours are redirected → `come_on` or `leave_on` → `order` → the card's thread → `ended` →
//! room and tables on the card are settled → `arrive`.

use hue_card::{SeatId, Side};
use hue_control::schedule::DRAINED;
use hue_intent::Placement;

use super::{
    Around, Arrived, Asked, Coming, Effect, Ended, Input, Moves, Network, Order, Stage, Then, planned,
};
use crate::api::{EventKind, MigrationSteering, MigrationStep, Problem, ProblemKind};

impl Moves {
    pub(super) fn come(
        &mut self,
        name: &str,
        asked: Option<Asked>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        if around.card.is_none() {
            return;
        }
        let Some(vid) = (around.network)(name).map(|network| network.have.program.vid) else { return };
        if let Some(id) = self.seats.comes(vid) {
            out.push(Effect::Rewire(name.to_owned(), id, Then::Come(Box::new(asked))));
        }
    }

    pub(super) fn come_on(
        &mut self,
        id: Option<SeatId>,
        asked: Option<Asked>,
        steering: Option<MigrationSteering>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(id) = id else { return };
        let is_loaded = (around.name_of)(id.vid).and_then(|name| (around.network)(&name)).is_some();
        let seat = self.seats.with_id(id).filter(|seat| is_loaded && seat.stage == Stage::Coming);
        let Some(kept) = seat.map(|seat| seat.kept) else {
            return self.ended(changed_meanwhile(id, asked), around, out);
        };
        let asked = match steering {
            Some(steering) => asked.map(|asked| asked.steered(steering, None)),
            None => asked,
        };
        let fails = asked.as_ref().is_some_and(|asked| asked.request.fail == Some(MigrationStep::Prepare));
        self.order(id, Some(Coming { kept, fails }), asked, around, out);
    }

    pub(super) fn leave(
        &mut self,
        name: &str,
        asked: Option<Asked>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let network = (around.network)(name).filter(|_| around.card.is_some());
        let Some(vid) = network.map(|network| network.have.program.vid) else { return };
        let Some(seat) = self.seats.all.get_mut(&vid) else { return };
        seat.stage = Stage::Leaving;
        out.push(Effect::Rewire(name.to_owned(), seat.id, Then::Leave(Box::new(asked))));
    }

    pub(super) fn leave_on(
        &mut self,
        id: Option<SeatId>,
        asked: Option<Asked>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(id) = id else { return };
        if self.seats.with_id(id).is_none_or(|seat| seat.stage != Stage::Leaving) {
            return self.ended(changed_meanwhile(id, asked), around, out);
        }
        // Software has its table.
        self.order(id, None, asked, around, out);
    }

    fn order(
        &mut self,
        seat: SeatId,
        coming: Option<Coming>,
        asked: Option<Asked>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        if around.card.is_none()
            || (around.name_of)(seat.vid).and_then(|name| (around.network)(&name)).is_none()
        {
            return;
        }
        let request = asked.as_ref().map(|asked| asked.request.clone());
        let counts = asked.as_ref().is_some_and(|asked| matches!(asked.steering, Some((_, Some(_)))));
        self.asked.extend(asked.map(|asked| (seat, asked)));
        out.push(Effect::Order(Box::new(Order { seat, coming, request, counts })));
    }

    /// A move has ended.
    pub(super) fn ended(&mut self, ended: Ended, around: &Around<'_>, out: &mut Vec<Effect>) {
        let vid = ended.seat.vid;
        let name = (around.name_of)(vid);
        let (at, failed, is_ok) = (ended.at(), ended.failed(), ended.outcome.is_ok());
        let keeps = around.card.is_some_and(|card| card.keeps);
        let seat = self.seats.with_id(ended.seat).filter(|_| around.card.is_some());
        let Some((name, seat)) = name.zip(seat) else {
            if let Some(asked) = ended.asked {
                let text = "the network or the card has changed meanwhile".to_owned();
                let problem = Problem::new(ProblemKind::Conflict, text.clone());
                out.push(Effect::Tell(EventKind::MigrationFailed, asked.name, text));
                out.push(Effect::Refuse(asked.reply, problem));
            }
            return out.push(Effect::Moved);
        };
        // The new place is stored with the answer. Until then, nothing may move the network back.
        out.extend(ended.pinned().map(|place| Effect::Pinned(name.clone(), place)));
        seat.stage = if at == Side::Card { Stage::Card } else { Stage::Software };
        // Other networks that were moving may have held the room that it lacked.
        seat.again = at == Side::Software && failed.is_some();
        seat.kept = keeps && is_ok;
        if at == Side::Software && !seat.kept {
            // Commands about its table that are still in the queue become void, and the table is removed from the card.
            out.push(Effect::TakeSeat(vid));
            if is_ok {
                out.push(Effect::Strip(vid));
            } else if keeps && self.let_all_go(out) {
                // Tables kept for other networks in software may have taken the room that it lacked.
                out.push(Effect::Then(Input::MakeRoom));
            }
        }
        if at == Side::Card {
            self.seats.fits();
        }
        out.push(Effect::Then(Input::Arrive(name, Box::new(ended))));
    }

    /// A network is where its move has ended.
    pub(super) fn arrive(&mut self, name: String, ended: Ended, around: &Around<'_>, out: &mut Vec<Effect>) {
        let vid = ended.seat.vid;
        let (at, failed, arrived) = (ended.at(), ended.failed(), ended.has_arrived());
        let Some(Network { have, why_soft: before, .. }) = (around.network)(&name) else { return };
        let Some(id) = self.seats.id(vid) else { return };
        let why_soft = match (at, &failed) {
            (Side::Card, _) => None,
            (Side::Software, _) if have.network.spec.placement == Placement::Soft => {
                Some("its document says so".to_owned())
            }
            (Side::Software, _) if around.is_drained => Some(DRAINED.to_owned()),
            (Side::Software, None) => (around.scheduled)(&name).map(|(_, why)| planned(&why)),
            (Side::Software, why) => why.clone(),
        };
        let text = match (at, &failed) {
            (Side::Card, None) => "the network runs on the card".to_owned(),
            (Side::Software, None) => "the network runs in software".to_owned(),
            (Side::Card, Some(why)) => format!("the network runs on the card: {why}"),
            (Side::Software, Some(why)) => {
                format!("the network runs in software: the card cannot run it: {why}")
            }
        };
        // One that could not leave the card is always told: nobody waits for its answer.
        let is_news = failed.is_none() || before != why_soft || at == Side::Card;
        out.push(Effect::Placed(name.clone(), at == Side::Card, why_soft));
        if ended.asked.is_none() && is_news {
            out.push(Effect::Tell(EventKind::Placed, name.clone(), text));
        }
        out.push(Effect::Changed);
        let has_left = at == Side::Software && failed.is_none();
        let Ended { outcome, prepare_ns, asked, .. } = ended;
        let is_settled = asked.is_none() && failed.is_none();
        let then = match asked {
            Some(asked) => Then::Answer(Box::new(Arrived { asked, outcome, prepare_ns, arrived, failed })),
            None => Then::Nothing,
        };
        out.push(Effect::Rewire(name.clone(), id, then));
        if is_settled {
            out.push(Effect::Then(Input::Place(name)));
        }
        let then = if has_left { Input::MakeRoom } else { Input::Done(vid) };
        out.extend([Effect::Then(then), Effect::Moved]);
    }
}

fn changed_meanwhile(seat: SeatId, asked: Option<Asked>) -> Ended {
    let outcome = Err("the network has changed meanwhile".to_owned());
    Ended { seat, outcome, prepare_ns: 0, asked }
}
