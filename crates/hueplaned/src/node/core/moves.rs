//! The core, for moves of networks between card and software.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hue_card::{
    CardCommand, ComingTable, Fail, Mishap, MoveCommand, OnFailure, Phase, SeatId, Side, TableWork,
};
use hue_control::schedule::DRAINED;
use hue_demux::PortId;
use hue_intent::Placement;
use hue_substrate::Program;
use hue_substrate::planted::{Bug, planted};
use hue_tables::Vid;
use tokio::sync::oneshot;

use super::Node;
use crate::api::{
    EventKind, MigrateRequest, Migration, MigrationSteering, MigrationStep, NetworkState, Problem,
    ProblemKind, SubstrateName,
};
use crate::node::card::{CardSide, RETRY_MIN, Seat, Stage};
use crate::node::events::About;
use crate::node::moves::{Arrived, Asked, Ended, LIMIT, migration, placement};
use crate::node::networks::{Entry, Input};
use crate::node::routes::Table;
use crate::node::wires::Then;

impl Node {
    /// Whether a network must stay where it is for now, because an image is being loaded or the card is reserved.
    fn must_stay(&self, name: &str) -> bool {
        if self.loading.returns(name) {
            return self.hold.is_reserved_for(name);
        }
        self.hold.is_reserved() || self.loading.is_under_way() && !self.loading.settles()
    }

    /// Reserves the card for the move of this network. The node moves no network until [`Node::end_reservation`].
    fn reserve(&mut self, name: &str) {
        if !planted(Bug::NotReserved) {
            self.hold.reserve(name);
        }
    }

    /// Ends the reservation. Networks move to where their documents or the scheduler place them.
    pub(super) fn end_reservation(&mut self) {
        self.hold.end_reservation();
        if !self.loading.is_under_way() {
            self.resume_moves();
        }
    }

    /// Makes deferred moves, except those of networks that the image load has just placed.
    pub(super) fn resume_moves(&mut self) {
        if !self.hold.take_deferred() {
            return;
        }
        if let Some(card) = self.card.as_mut().filter(|_| !self.loading.is_under_way()) {
            card.has_room();
        }
        for name in self.in_order(None) {
            if !self.loading.had(&name) {
                self.place(&name);
            }
        }
    }

    /// Moves a network to the place that its document requires, if possible.
    pub(super) fn place(&mut self, name: &str) {
        if self.must_stay(name) {
            self.hold.defer();
            return;
        }
        let drained = self.is_drained() && !planted(Bug::DrainForgotten);
        let Some(card) = &self.card else { return };
        let Some(entry) = self.networks.get(name) else { return };
        let Some(have) = entry.have().cloned() else { return };
        let Some(stage) = card.seats.get(&have.program.vid).map(|seat| seat.stage) else { return };
        if entry.state() != NetworkState::Running || self.routes.is_torn(have.program.vid) {
            return;
        }
        // Without a scheduler, every network that fits is placed on the card.
        let schedule = self.desired.intent.node.spec.scheduler.is_some();
        let (wanted, why) = match have.network.spec.placement {
            _ if have.bound_by_tunnels().is_some() => (Placement::Soft, String::new()),
            Placement::Auto | Placement::Card if drained => (Placement::Soft, DRAINED.to_owned()),
            Placement::Auto if schedule => match self.scheduling.place(name) {
                None => return, // the scheduler has not answered yet
                Some((hue_control::schedule::Side::Soft, why)) => {
                    (Placement::Soft, format!("the scheduler: {why}"))
                }
                Some((hue_control::schedule::Side::Card, _)) => (Placement::Card, String::new()),
            },
            wanted => (wanted, "its document says so".to_owned()),
        };
        if stage == Stage::Card && wanted == Placement::Soft {
            return self.leave(name, None);
        }
        if stage != Stage::Software {
            return;
        }
        self.changed = true;
        let why = match wanted {
            // The other reason remains when the card is no longer drained.
            _ if have.bound_by_tunnels().is_some() => self.elsewhere(name),
            Placement::Soft if why == DRAINED => self.elsewhere(name).or(Some(why)),
            Placement::Soft => Some(why),
            Placement::Auto | Placement::Card => self.elsewhere(name),
        };
        match why {
            Some(_) => self.give_networks(Input::WhySoft(name.to_owned(), why)),
            // The reason of the last failure is kept until the network has arrived, so that another failure is no news.
            None => self.come(name, None),
        }
    }

    /// The card may have gained room: networks that did not fit must be tried again.
    pub(super) fn make_room(&mut self) {
        if let Some(card) = &mut self.card {
            card.has_room();
        }
        self.try_again();
    }

    /// Retries networks that did not fit, once nothing is moving: moving networks take room that they may not keep.
    pub(super) fn try_again(&mut self) {
        let Some(card) = &mut self.card else { return };
        if card.seats.values().any(|seat| matches!(seat.stage, Stage::Coming | Stage::Leaving)) {
            return;
        }
        let taken = |seat: &mut Seat| std::mem::take(&mut seat.again);
        let again = card.seats.iter_mut().filter_map(|(vid, seat)| taken(seat).then_some(vid));
        let again: BTreeSet<String> = again.filter_map(|vid| self.networks.name_of(*vid).cloned()).collect();
        if !again.is_empty() {
            self.in_order(None).iter().filter(|name| again.contains(*name)).for_each(|name| self.place(name));
        }
    }

    /// Why a network in its present form can never run on the card.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let (card, entry) = (self.card.as_ref()?, self.networks.get(name)?);
        let have = entry.have()?;
        if let Some(why) = have.bound_by_tunnels() {
            return Some(why.to_owned());
        }
        let program = &have.program;
        let is_missing = |port: PortId| !port.is_tunnel() && !card.numbers.contains_key(&port);
        let port = program.ports.iter().find(|port| is_missing(port.port))?;
        Some(format!("its port '{}' is not a port of the card", port.name))
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
        let Some(card) = &self.card else {
            let why = self.card_problem.clone();
            let why = why.unwrap_or_else(|| "add `card` to the node's document".to_owned());
            return no(format!("this node has no card: {why}"));
        };
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
        let seat = card.seats.get(&have.program.vid);
        match seat.map(|seat| seat.stage) {
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
        let (name_asked, request) = (name.to_owned(), request.clone());
        let asked = Asked { name: name_asked, request, pin: true, steering: None, reply };
        match asked.request.to {
            SubstrateName::Card => self.come(name, Some(asked)),
            SubstrateName::Soft => self.leave(name, Some(asked)),
        }
        Ok(answer)
    }

    /// Moves a network of a drained card to software. Its document stays, so that the network returns to the card later.
    pub(super) fn leave_drained(
        &mut self,
        name: &str,
        request: &MigrateRequest,
    ) -> oneshot::Receiver<Result<Migration, Problem>> {
        let (reply, answer) = oneshot::channel();
        let (asked, request) = (name.to_owned(), request.clone());
        self.leave(name, Some(Asked { name: asked, request, pin: false, steering: None, reply }));
        answer
    }

    /// Moves a network to the card. A switch on the NICs beside the card's ports returns to these first.
    fn come(&mut self, name: &str, asked: Option<Asked>) {
        let Some(card) = &mut self.card else { return };
        let Some(vid) = self.networks.get(name).and_then(Entry::vid) else { return };
        let room = card.room;
        let Some(seat) = card.seats.get_mut(&vid) else { return };
        (seat.stage, seat.tried) = (Stage::Coming, room);
        let id = seat.id;
        match self.rewire(name) {
            Some(turn) => self.wires.begin(turn.then(Then::Come(Box::new(asked)))),
            None => self.come_on(vid, Some(id), asked, None),
        }
    }

    /// Writes a network's table to the card, and moves the network there.
    pub(super) fn come_on(
        &mut self,
        vid: Vid,
        id: Option<SeatId>,
        asked: Option<Asked>,
        steering: Option<MigrationSteering>,
    ) {
        let have = self.networks.with_vid(vid).and_then(Entry::have).cloned();
        let card = self.card.as_mut();
        let seat = card.and_then(|card| card.seats.get_mut(&vid)).filter(|seat| Some(seat.id) == id);
        let Some((have, seat)) = have.zip(seat).filter(|(_, seat)| seat.stage == Stage::Coming) else {
            let outcome = Err("the network has changed meanwhile".to_owned());
            let Some(seat) = id else { return };
            return self.moved(Ended { seat, outcome, prepare_ns: 0, asked });
        };
        let asked = match steering {
            Some(steering) => asked.map(|asked| asked.steered(steering, None)),
            None => asked,
        };
        // A kept table already has everything that is written below, or its commands are queued.
        let (id, kept) = (seat.id, seat.kept);
        let Some(card) = &mut self.card else { return };
        let began_ns = card.live.now_ns();
        card.work(id, TableWork::TakePlane, OnFailure::EndsMove);
        if planted(Bug::RowFirst) {
            card.work(id, TableWork::Decide, OnFailure::EndsMove);
        }
        if let Some(table) = self.routes.table(vid).filter(|_| !kept) {
            card.write_table(id, table, &self.live, OnFailure::EndsMove);
        }
        let fails = asked.as_ref().is_some_and(|asked| asked.request.fail == Some(MigrationStep::Prepare));
        let table = ComingTable { bare: card.on_card(&have.program), began_ns, fails };
        self.order(id, Some(table), asked);
    }

    /// Moves a network to software. If there are NICs beside the card's ports, its neighbours are redirected to them first.
    pub(super) fn leave(&mut self, name: &str, asked: Option<Asked>) {
        let Some(card) = &mut self.card else { return };
        let Some(vid) = self.networks.get(name).and_then(Entry::vid) else { return };
        let Some(seat) = card.seats.get_mut(&vid) else { return };
        seat.stage = Stage::Leaving;
        let id = seat.id;
        match self.rewire(name) {
            Some(turn) => self.wires.begin(turn.then(Then::Leave(Box::new(asked)))),
            None => self.leave_on(Some(id), asked),
        }
    }

    /// Moves a network to software, which has its table.
    pub(super) fn leave_on(&mut self, seat: Option<SeatId>, asked: Option<Asked>) {
        let Some(seat) = seat else { return };
        if self.seat_of(seat).is_none_or(|seat| seat.stage != Stage::Leaving) {
            let outcome = Err("the network has changed meanwhile".to_owned());
            return self.moved(Ended { seat, outcome, prepare_ns: 0, asked });
        }
        self.order(seat, None, asked);
    }

    /// Tells the card to move a network: there with `table`, otherwise to software.
    fn order(&mut self, seat: SeatId, table: Option<ComingTable>, asked: Option<Asked>) {
        let Some(card) = &self.card else { return };
        if self.networks.with_vid(seat.vid).and_then(Entry::have).is_none() {
            return;
        }
        let programs = asked.as_ref().map(|_| self.programs_on(card));
        let ms = |ms: u32| Duration::from_millis(ms.into());
        let request = asked.as_ref().map(|asked| &asked.request);
        let fail = request.and_then(|request| request.fail);
        let counts = asked.as_ref().is_some_and(|asked| matches!(asked.steering, Some((_, Some(_)))));
        let Some(card) = &mut self.card else { return };
        let wanted = MoveCommand {
            seat,
            to: if table.is_some() { Side::Card } else { Side::Software },
            watch: request.map(|request| ms(request.watch_ms)).zip(programs),
            limit: request.map_or(LIMIT, |request| ms(request.limit_ms)),
            drain: request.map_or(Duration::ZERO, |request| ms(request.drain_ms)),
            fail: fail.and_then(|step| match step {
                MigrationStep::Prepare => None,
                MigrationStep::Aside => Some(Fail::Step(Phase::Aside)),
                MigrationStep::Switch => Some(Fail::Step(Phase::Switch)),
                MigrationStep::Drain => Some(Fail::Step(Phase::Drain)),
                MigrationStep::Card => Some(Fail::Card),
                MigrationStep::Packets => Some(Fail::Frames(Mishap::Lost)),
                MigrationStep::Doubled => Some(Fail::Frames(Mishap::Doubled)),
                MigrationStep::Reordered => Some(Fail::Frames(Mishap::Reordered)),
            }),
            table,
            counts,
        };
        card.asked.extend(asked.map(|asked| (seat, asked)));
        card.live.tell(CardCommand::Move(Box::new(wanted)));
    }

    /// All networks, with the card's port numbers.
    fn programs_on(&self, card: &CardSide) -> Vec<Program> {
        let programs = self.networks.iter().filter_map(|(_, entry)| entry.program());
        programs.map(|program| card.on_card(program)).collect()
    }

    /// A move has ended.
    pub(super) fn moved(&mut self, ended: Ended) {
        let Ended { seat: id, outcome, prepare_ns, asked } = ended;
        let vid = id.vid;
        let Some(name) = self.networks.name_of(vid).cloned().filter(|_| self.seat_of(id).is_some()) else {
            if let Some(asked) = asked {
                let text = "the network or the card has changed meanwhile";
                self.shared.events.add(
                    EventKind::MigrationFailed,
                    About::Network(&asked.name),
                    text.to_owned(),
                );
                let _ = asked.reply.send(Err(Problem::new(ProblemKind::Conflict, text.to_owned())));
            }
            return self.tend_loading();
        };
        let at = outcome.as_ref().map_or(Side::Software, |report| report.at);
        let failed = match &outcome {
            Err(why) => Some(why.clone()),
            Ok(report) => report.failed.clone(),
        };
        let to = asked.as_ref().map(|asked| asked.request.to);
        let arrived = match to {
            Some(SubstrateName::Card) => at == Side::Card,
            Some(SubstrateName::Soft) => at == Side::Software,
            None => failed.is_none(),
        };
        let pins = asked.as_ref().is_some_and(|asked| asked.pin);
        if let (Some(to), true) = (to, arrived && pins) {
            // The new place is stored with the answer. Until then, nothing may move the network back.
            self.give_networks(Input::Pinned(name.clone(), placement(to)));
        }
        let Some(seat) = self.seat_of(id) else { return };
        seat.stage = if at == Side::Card { Stage::Card } else { Stage::Software };
        // Other networks that were moving may have held the room that it lacked.
        seat.again = at == Side::Software && failed.is_some();
        let keeps = self.card.as_ref().is_some_and(CardSide::keeps);
        let Some(seat) = self.seat_of(id) else { return };
        seat.kept = keeps && outcome.is_ok();
        if at == Side::Software && !seat.kept {
            // Commands about its table that are still in the queue become void, and the table is removed from the card.
            self.renew_seat(vid);
            if outcome.is_ok() {
                self.strip(vid);
            } else if keeps && self.let_all_go() {
                // Tables kept for other networks in software may have taken the room that it lacked.
                self.make_room();
            }
        }
        if let Some(card) = self.card.as_mut().filter(|_| at == Side::Card) {
            card.pause = RETRY_MIN;
        }
        let planned = self.scheduling.place(&name).map(|(_, why)| format!("the scheduler: {why}"));
        let drained = self.is_drained();
        let Some(entry) = self.networks.get(&name) else { return };
        let soft = entry.have().is_some_and(|have| have.network.spec.placement == Placement::Soft);
        let why_soft = match (at, &failed) {
            (Side::Card, _) => None,
            (Side::Software, _) if soft => Some("its document says so".to_owned()),
            (Side::Software, _) if drained => Some(DRAINED.to_owned()),
            (Side::Software, None) => planned,
            (Side::Software, why) => why.clone(),
        };
        let is_news = entry.why_soft() != why_soft.as_ref();
        self.give_networks(Input::Placed(name.clone(), at == Side::Card, why_soft));
        let text = match (at, &failed) {
            (Side::Card, None) => "the network runs on the card".to_owned(),
            (Side::Software, None) => "the network runs in software".to_owned(),
            (Side::Card, Some(why)) => format!("the network runs on the card: {why}"),
            (Side::Software, Some(why)) => {
                format!("the network runs in software: the card cannot run it: {why}")
            }
        };
        // One that could not leave the card is always told: nobody waits for its answer.
        if asked.is_none() && (failed.is_none() || is_news || at == Side::Card) {
            self.shared.events.add(EventKind::Placed, About::Network(&name), text);
        }
        self.changed = true;
        let turn = self.rewire(&name);
        let departed = at == Side::Software && failed.is_none();
        if let Some(asked) = asked {
            let arrived = Arrived { asked, outcome, prepare_ns, arrived, failed };
            match turn {
                Some(turn) => self.wires.begin(turn.then(Then::Answer(Box::new(arrived)))),
                None => self.answer(arrived, None),
            }
        } else {
            turn.into_iter().for_each(|turn| self.wires.begin(turn));
            if failed.is_none() {
                self.place(&name);
            }
        }
        if departed {
            self.make_room();
        } else {
            self.others_try_again(vid);
        }
        self.tend_loading();
    }

    /// A network has arrived, or did not fit. The last of several that did not fit had all available room.
    fn others_try_again(&mut self, vid: Vid) {
        let Some(card) = &mut self.card else { return };
        let moves = |seat: &Seat| matches!(seat.stage, Stage::Coming | Stage::Leaving);
        if !card.seats.values().any(moves)
            && let Some(seat) = card.seats.get_mut(&vid)
        {
            // Keep `again` only if the card has gained room since the try.
            seat.again &= seat.tried != card.room;
        }
        self.try_again();
    }

    /// Sends the result to the caller, who then sees the network where the result says.
    pub(super) fn answer(&mut self, arrived: Arrived, steering: Option<MigrationSteering>) {
        self.publish_changes();
        let Arrived { asked, outcome, prepare_ns, arrived, failed } = arrived;
        let (shared, name) = (Arc::clone(&self.shared), asked.name.clone());
        let refuse = |kind, detail: String| {
            shared.events.add(EventKind::MigrationFailed, About::Network(&name), detail.clone());
            Problem::new(kind, format!("the network did not move: {detail}"))
        };
        let report = match outcome {
            Err(why) => {
                let problem = refuse(ProblemKind::Full, format!("the card cannot run it: {why}"));
                let _ = asked.reply.send(Err(problem));
                return;
            }
            Ok(report) => report,
        };
        if !arrived {
            let why = failed.unwrap_or_default();
            let seen = report.proof.as_ref().map(|proof| {
                let (lost, doubled, reordered) = (proof.lost(), proof.doubled, proof.reordered);
                format!(
                    " ({lost} lost, {doubled} doubled, {reordered} reordered, {} undecided)",
                    proof.undecided
                )
            });
            let problem = refuse(ProblemKind::Internal, format!("{why}{}", seen.unwrap_or_default()));
            let _ = asked.reply.send(Err(problem));
            return;
        }
        let Some(card) = &self.card else { return };
        let bytes_max = u64::from(card.live.description().out_bytes) / 2;
        let mut migration = migration(&asked, &report, prepare_ns, bytes_max, failed);
        migration.steering = steering.or_else(|| asked.steering.clone().map(|(steering, _)| steering));
        let text = format!(
            "the network has moved to {} in {} us: {}",
            migration.to.name(),
            migration.duration_us,
            migration.verdict()
        );
        shared.events.add(EventKind::Migrated, About::Network(&asked.name), text);
        let _ = asked.reply.send(Ok(migration));
    }

    /// Removes a network's table from the card; software decides its packets.
    pub(super) fn strip(&mut self, vid: Vid) {
        let Some(card) = &self.card else { return };
        let Some(program) = self.networks.with_vid(vid).and_then(Entry::program) else { return };
        let bare = card.on_card(program);
        card.live.tell(CardCommand::Strip(Box::new(bare)));
    }
}
