//! The core, for moves of networks between card and software: gives them their inputs, and applies their effects.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hue_card::{
    CardCommand, ComingTable, Fail, Mishap, MoveCommand, OnFailure, Phase, SeatId, Side, TableWork,
};
use hue_control::schedule::DRAINED;
use hue_demux::PortId;
use hue_substrate::Program;
use hue_substrate::planted::{Bug, planted};
use tokio::sync::oneshot;

use super::Node;
use crate::api::{
    EventKind, MigrateRequest, Migration, MigrationSteering, MigrationStep, NetworkState, Problem,
    ProblemKind, SubstrateName, Timestamp,
};
use crate::node::card::CardSide;
use crate::node::events::About;
use crate::node::moves::{
    Around, Arrived, Asked, Card, Coming, Effect, ImageLoad, Input, LIMIT, Network, Order, Stage, answered,
};
use crate::node::networks::{self, Entry};
use crate::node::routes::Table;
use crate::node::wires;

impl Node {
    /// Gives moves an input. Its effects are applied before this returns, each with all that follows from it before the
    /// next one.
    pub(super) fn give_moves(&mut self, input: Input) {
        self.apply_all(input, Self::take_moves, Self::apply_to_moves);
    }

    fn take_moves(&mut self, input: Input) -> Vec<Effect> {
        // They are taken out while they look at the others.
        let mut moves = std::mem::take(&mut self.moves);
        let (returns, had) = (|name: &str| self.loading.returns(name), |name: &str| self.loading.had(name));
        let load = ImageLoad { settles: self.loading.settles(), returns: &returns, had: &had };
        let around = Around {
            card: self.card.as_ref().map(|card| Card { is_stale: card.is_stale, keeps: card.keeps() }),
            network: &|name| {
                let entry = self.networks.get(name)?;
                let have = entry.have()?.clone();
                let (is_running, is_torn) =
                    (entry.state() == NetworkState::Running, self.routes.is_torn(have.program.vid));
                Some(Network { have, is_running, is_torn, why_soft: entry.why_soft().cloned() })
            },
            name_of: &|vid| self.networks.name_of(vid).cloned(),
            order: &|| self.in_order(None),
            elsewhere: &|name| self.elsewhere(name),
            scheduled: &|name| self.scheduling.place(name).cloned(),
            schedules: self.desired.intent.node.spec.scheduler.is_some(),
            is_drained: self.is_drained(),
            load: Some(load).filter(|_| self.loading.is_under_way()),
            now: Instant::now(),
        };
        let effects = moves.take(input, &around);
        self.moves = moves;
        effects
    }

    /// Returns the input that follows, if there is one.
    fn apply_to_moves(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Then(input) => return Some(input),
            Effect::Tell(kind, name, text) => self.shared.events.add(kind, About::Network(&name), text),
            Effect::Changed => self.changed = true,
            Effect::Placed(name, on_card, why) => {
                self.give_networks(networks::Input::Placed(name, on_card, why));
            }
            Effect::WhySoft(name, why) => self.give_networks(networks::Input::WhySoft(name, why)),
            Effect::Pinned(name, place) => self.give_networks(networks::Input::Pinned(name, place)),
            Effect::Lost(name) => {
                if let Some(entry) = self.networks.get(&name) {
                    entry.counts().card_lost_us.store(Timestamp::now().us(), Ordering::Relaxed);
                }
            }
            Effect::TakeSeat(vid) => {
                let id = self.card.as_ref()?.live.take_seat(vid);
                return Some(Input::SeatTaken(vid, id));
            }
            Effect::SeatAnew(names) => self.seat_anew(&names),
            Effect::LoadOnCard(vids) => self.load_on_card(&vids),
            Effect::EndSeat(vid) => {
                let card = self.card.as_ref()?;
                card.live.end_seat(vid);
                card.live.tell(CardCommand::Unload(vid));
            }
            Effect::Police => self.police_card(),
            Effect::Write(id) => self.write_table(id, OnFailure::IsNotKept),
            Effect::WriteChanges(id, hops, routes, on_failure) => {
                let card = self.card.as_ref()?;
                // Tables that do not follow the store have keys of 32 bits only.
                let routes = if card.follows() { &[] } else { &routes.v4[..] };
                card.write(id, &hops, routes, on_failure);
            }
            Effect::Forward => self.forward(),
            Effect::Strip(vid) => {
                let program = self.networks.with_vid(vid).and_then(Entry::program)?;
                let card = self.card.as_ref()?;
                card.live.tell(CardCommand::Strip(Box::new(card.on_card(program))));
            }
            Effect::Rewire(name, id, then) => self.give_wires(wires::Input::Rewire(name, Some(id), then)),
            Effect::Order(order) => self.order(*order),
            // The caller may have gone.
            Effect::Refuse(reply, problem) => drop(reply.send(Err(problem))),
            Effect::Moved => self.tend_loading(),
        }
        None
    }

    /// Reserves the card for the move of this network. The node moves no network until [`Node::end_reservation`].
    fn reserve(&mut self, name: &str) {
        if !planted(Bug::NotReserved) {
            self.give_moves(Input::Reserve(name.to_owned()));
        }
    }

    /// Begins a requested move of a network. The receiver gets the result. With `load_image` the card is reserved for
    /// the network until [`Node::end_reservation`].
    ///
    /// # Errors
    /// `not_found`; `conflict` if it is there already, is moving, is not in the desired state, or there is no card;
    /// `full` if the card can never hold it, or cannot provide the rates that networks need according to their documents.
    pub(super) fn migrate(
        &mut self,
        name: &str,
        request: &MigrateRequest,
    ) -> Result<oneshot::Receiver<Result<Migration, Problem>>, Problem> {
        if request.load_image {
            self.reserve(name);
        }
        let no = |detail: String| Err(Problem::new(ProblemKind::Conflict, detail));
        let Some(entry) = self.networks.get(name).filter(|entry| entry.want().is_some()) else {
            return Err(Problem::no_network(name));
        };
        let to = request.to.name();
        if self.card.is_none() {
            let why = self.card_state.problem().cloned();
            let why = why.unwrap_or_else(|| "add `card` to the node's document".to_owned());
            return no(format!("this node has no card: {why}"));
        }
        let is_torn = self.table_of(entry).is_some_and(Table::is_torn);
        let Some(have) = entry.have().filter(|_| entry.state() == NetworkState::Running && !is_torn) else {
            let why = entry.reason().cloned().unwrap_or_else(|| "it is being set up".to_owned());
            return no(format!("the network is {}: {why}", entry.state().name()));
        };
        if self.loading.is_under_way() {
            return no("the card's image is being changed: try again afterwards".to_owned());
        }
        if self.is_drained() && request.to == SubstrateName::Card {
            return no(DRAINED.to_owned());
        }
        match self.moves.seats().stage(have.program.vid) {
            Some(Stage::Coming | Stage::Leaving) => {
                return no("the network is already moving: try again afterwards".to_owned());
            }
            Some(Stage::Card) if request.to == SubstrateName::Card => {
                return no(format!("the network is on {to} already"));
            }
            Some(Stage::Software) | None if request.to == SubstrateName::Soft => {
                return no(format!("the network is on {to} already"));
            }
            None => {
                return Err(Problem::new(
                    ProblemKind::Full,
                    "none of its ports is a port of the card".to_owned(),
                ));
            }
            Some(_) => {}
        }
        if let Some(why) = self.elsewhere(name).filter(|_| request.to == SubstrateName::Card) {
            return Err(Problem::new(ProblemKind::Full, why));
        }
        let side = match request.to {
            SubstrateName::Card => hue_control::schedule::Side::Card,
            SubstrateName::Soft => hue_control::schedule::Side::Soft,
        };
        if let Some(why) = self.question(false).lacks_bandwidth(name, side) {
            return Err(Problem::new(ProblemKind::Full, why));
        }
        let text = format!("the network begins to move to {to}");
        self.shared.events.add(EventKind::MigrationStarted, About::Network(name), text);
        let (reply, answer) = oneshot::channel();
        let asked =
            Asked { name: name.to_owned(), request: request.clone(), pin: true, steering: None, reply };
        let name = name.to_owned();
        self.give_moves(match request.to {
            SubstrateName::Card => Input::Come(name, Some(asked)),
            SubstrateName::Soft => Input::Leave(name, Some(asked)),
        });
        Ok(answer)
    }

    /// Moves a network of a drained card to software. Its document stays, so that the network returns to the card later.
    pub(super) fn leave_drained(
        &mut self,
        name: &str,
        request: &MigrateRequest,
    ) -> oneshot::Receiver<Result<Migration, Problem>> {
        let (reply, answer) = oneshot::channel();
        let asked =
            Asked { name: name.to_owned(), request: request.clone(), pin: false, steering: None, reply };
        self.give_moves(Input::Leave(name.to_owned(), Some(asked)));
        answer
    }

    /// Why a network in its present form can never run on the card.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let (card, entry) = (self.card.as_ref()?, self.networks.get(name)?);
        let have = entry.have()?;
        if let Some(why) = have.bound() {
            return Some(why.to_owned());
        }
        let program = &have.program;
        let is_missing = |port: PortId| !port.is_tunnel() && !card.numbers.contains_key(&port);
        let port = program.ports.iter().find(|port| is_missing(port.port))?;
        Some(format!("its port '{}' is not a port of the card", port.name))
    }

    /// Tells the card to move a network: there with its table, otherwise to software.
    fn order(&mut self, order: Order) {
        let Order { seat, coming, request, counts } = order;
        let table = coming.and_then(|coming| self.write_coming(seat, coming));
        let Some(card) = &self.card else { return };
        let ms = |ms: u32| Duration::from_millis(ms.into());
        let programs = request.as_ref().map(|_| self.programs_on(card));
        let request = request.as_ref();
        let wanted = MoveCommand {
            seat,
            to: if table.is_some() { Side::Card } else { Side::Software },
            watch: request.map(|request| ms(request.watch_ms)).zip(programs),
            limit: request.map_or(LIMIT, |request| ms(request.limit_ms)),
            drain: request.map_or(Duration::ZERO, |request| ms(request.drain_ms)),
            fail: request.and_then(|request| request.fail).and_then(failure),
            table,
            counts,
        };
        card.live.tell(CardCommand::Move(Box::new(wanted)));
    }

    /// Writes a network's table to the card, before the network moves there. A kept table already has everything that is
    /// written here, or its commands are queued.
    fn write_coming(&self, seat: SeatId, coming: Coming) -> Option<ComingTable> {
        let card = self.card.as_ref()?;
        let program = self.networks.with_vid(seat.vid).and_then(Entry::program)?;
        let began_ns = card.live.now_ns();
        card.work(seat, TableWork::TakePlane, OnFailure::EndsMove);
        if planted(Bug::RowFirst) {
            card.work(seat, TableWork::Decide, OnFailure::EndsMove);
        }
        if !coming.kept {
            self.write_table(seat, OnFailure::EndsMove);
        }
        Some(ComingTable { bare: card.on_card(program), began_ns, fails: coming.fails })
    }

    fn write_table(&self, seat: SeatId, on_failure: OnFailure) {
        if let (Some(card), Some(table)) = (&self.card, self.routes.table(seat.vid)) {
            card.write_table(seat, table, &self.live, on_failure);
        }
    }

    /// All networks, with the card's port numbers.
    fn programs_on(&self, card: &CardSide) -> Vec<Program> {
        let programs = self.networks.iter().filter_map(|(_, entry)| entry.program());
        programs.map(|program| card.on_card(program)).collect()
    }

    /// Sends the result to the caller, who then sees the network where the result says.
    pub(super) fn answer(&mut self, arrived: Arrived, steering: Option<MigrationSteering>) {
        self.publish_changes();
        let bytes_max = self.card.as_ref().map(|card| u64::from(card.description().out_bytes) / 2);
        if let Some((kind, text, asked, result)) = answered(arrived, steering, bytes_max) {
            self.shared.events.add(kind, About::Network(&asked.name), text);
            let _ = asked.reply.send(result); // it may have gone
        }
    }
}

/// The failure of the card's thread for a step.
const fn failure(step: MigrationStep) -> Option<Fail> {
    Some(match step {
        MigrationStep::Prepare => return None,
        MigrationStep::Aside => Fail::Step(Phase::Aside),
        MigrationStep::Switch => Fail::Step(Phase::Switch),
        MigrationStep::Drain => Fail::Step(Phase::Drain),
        MigrationStep::Card => Fail::Card,
        MigrationStep::Packets => Fail::Frames(Mishap::Lost),
        MigrationStep::Doubled => Fail::Frames(Mishap::Doubled),
        MigrationStep::Reordered => Fail::Frames(Mishap::Reordered),
    })
}
