//! The core, for images: gives the image load its inputs, and applies its effects.

use std::time::{Duration, Instant};

use hue_card::{CardCommand, CardQuestion, Images};
use hue_control::schedule::{Schedule, Side};
use hue_intent::Placement;
use hue_planes::Adjacency;
use hue_substrate::Program;
use hue_substrate::planted::{Bug, planted};
use tokio::sync::oneshot;

use super::Node;
use crate::api::{ImageLoaded, NetworkPlaced, Problem, ProblemKind};
use crate::node::card::CardNews;
use crate::node::card_state;
use crate::node::events::About;
use crate::node::image::Trial;
use crate::node::loading::{Around, Begin, Effect, Input, Running};
use crate::node::message::Message;
use crate::node::moves::{self, Stage};
use crate::node::networks::Entry;
use crate::node::running_card::Made;

impl Node {
    /// Gives the image load an input. Its effects are applied before this returns, each with all that follows from it
    /// before the next one.
    pub(super) fn give_loading(&mut self, input: Input) {
        // It is taken out while it looks at the others.
        let mut loading = std::mem::take(&mut self.loading);
        let around = Around {
            card: self.card.as_ref().map(|card| Running {
                moves: self.moves.any(),
                is_stale: card.is_stale,
                ports: card.description().mac_ports,
            }),
            on_card: &|| self.seated_on_card(),
            moves: &|| self.networks_move().is_some(),
            is_reserved: self.moves.is_reserved(),
            places: &|| self.networks_placed(),
            now: Instant::now(),
        };
        let effects = loading.take(input, &around);
        self.loading = loading;
        for effect in effects {
            self.apply_to_loading(effect);
        }
    }

    fn apply_to_loading(&mut self, effect: Effect) {
        match effect {
            Effect::Then(input) => self.give_loading(input),
            Effect::Tell(kind, text) => self.shared.events.add(kind, About::Node, text),
            Effect::Changed => self.changed = true,
            Effect::DeferMoves => self.give_moves(moves::Input::Defer),
            Effect::ResumeMoves => self.give_moves(moves::Input::Resume),
            Effect::Police => self.police_card(),
            Effect::Leave(name) => self.give_moves(moves::Input::Leave(name, None)),
            Effect::Place(name) => self.give_moves(moves::Input::Place(name)),
            Effect::SeatAnew(names) => self.seat_anew(&names),
            Effect::Bypass => {
                let programs = self.seated();
                let Some(card) = &self.card else { return };
                card.live.tell(CardCommand::Bypass(programs));
            }
            Effect::Make(name, away) => self.make_card(&name, away),
            Effect::EndBypass(new) => self.end_bypass(new),
            Effect::Renewed => {
                if let Some(card) = &mut self.card {
                    card.is_stale = false;
                }
                self.give_moves(moves::Input::Renewed);
                self.lead_card();
            }
            Effect::Choose => self.choose(),
            Effect::Keep(order) => self.give_moves(moves::Input::Keep(order)),
            Effect::StartAnew(why) => {
                let why = format!("the card of the daemon before cannot be used: {why}");
                tracing::warn!("{why}");
                self.give_card(card_state::Input::Anew(why));
            }
            // It may have gone.
            Effect::Answer(reply, result) => drop(reply.send(result)),
        }
    }

    /// Networks have moved: continues to load an image.
    pub(super) fn tend_loading(&mut self) {
        if self.loading.is_under_way() {
            self.give_loading(Input::Tend);
        }
    }

    /// Names of the networks on the card.
    fn seated_on_card(&self) -> Vec<String> {
        let there = self.moves.seats().stages().filter(|(_, stage)| *stage == Stage::Card);
        there.filter_map(|(vid, _)| self.networks.name_of(vid).cloned()).collect()
    }

    /// Where all networks are, in the order of names.
    fn networks_placed(&self) -> Vec<NetworkPlaced> {
        let placed = |(name, entry): (&String, &Entry)| {
            let substrate = if entry.is_on_card() { hue_card::NAME } else { hue_soft::NAME };
            let (network, why_soft) = (name.clone(), entry.why_soft().cloned());
            NetworkPlaced { network, substrate: substrate.to_owned(), why_soft }
        };
        self.networks.iter().map(placed).collect()
    }

    /// Folder of the images, and the image that runs.
    pub(super) fn images(&self) -> (Images, Option<String>) {
        let running = self.card.as_ref().map(|card| card.live.description().name.clone());
        (self.images.clone(), running)
    }

    /// What an image must hold so that a network can join those on the card; `None` if the card does not know the
    /// network.
    pub(in crate::node) fn trial(&self, name: &str) -> Option<Trial> {
        let card = self.card.as_ref()?;
        let vid = self.networks.get(name)?.vid()?;
        self.moves.seats().stage(vid)?;
        let (mut bare, mut full) = (Vec::new(), Vec::new());
        for (other, entry) in self.networks.iter() {
            let Some(have) = entry.have().filter(|have| self.moves.seats().stage(have.program.vid).is_some())
            else {
                continue;
            };
            let program = card.on_card(&have.program);
            if entry.is_on_card() || other == name {
                let (hops, routes) = self.routes.table(have.program.vid)?.published();
                let hops: Vec<Adjacency> =
                    hops.iter().map(|hop| hop.on_port(card.number(hop.port()))).collect();
                let groups = self.routes.table(have.program.vid)?.published_groups();
                full.push(Program { next_hops: hops, groups, entries: routes, ..program.clone() });
            }
            bare.push(program);
        }
        let running = card.live.description().name.clone();
        Some(Trial { images: self.images.clone(), running, bare, full })
    }

    /// Begins to load an image. The receiver gets the result.
    ///
    /// # Errors
    /// `conflict` if there is no card, or something is moving; `not_found` if there is no such image.
    pub(super) fn load_image(
        &mut self,
        name: &str,
        away: Duration,
    ) -> Result<oneshot::Receiver<Result<ImageLoaded, Problem>>, Problem> {
        let no = |kind, detail: String| Err(Problem::new(kind, detail));
        let Some(card) = &self.card else {
            return no(ProblemKind::Conflict, "this node has no card".to_owned());
        };
        if let Some(what) = self.loading.words() {
            return no(ProblemKind::Conflict, format!("{what}: try again afterwards"));
        }
        if let Some(what) = self.networks_move() {
            return no(ProblemKind::Conflict, format!("{what}: try again afterwards"));
        }
        let known = self.images.names();
        if !known.iter().any(|one| one == name) {
            let have = known.join(", ");
            return no(ProblemKind::NotFound, format!("no image '{name}'; available: {have}"));
        }
        if let Err(error) = self.images.check(name) {
            return no(ProblemKind::InvalidDocuments, error.to_string());
        }
        let before = card.description().name.clone();
        let (reply, answer) = oneshot::channel();
        let (name, networks) = (name.to_owned(), self.names_on_card());
        self.give_loading(Input::Begin(Begin { name, before, networks, away, reply }));
        Ok(answer)
    }

    /// The networks that run on the card, in the order of names.
    fn names_on_card(&self) -> Vec<String> {
        let on_card = self.networks.iter().filter(|(_, entry)| entry.is_on_card());
        on_card.map(|(name, _)| name.clone()).collect()
    }

    /// The card was taken over from the daemon before. It will be replaced by a fresh one with the same image, once all
    /// networks are set up.
    pub(super) fn wait_to_renew(&mut self) {
        let Some(card) = &self.card else { return };
        let image = card.description().name.clone();
        self.give_loading(Input::TakenOver(image));
    }

    /// All networks are set up. A card that was taken over from the daemon before says which of them are on it, once it has
    /// taken all commands so far.
    pub(super) fn ask_to_renew(&self) {
        if let (Some(card), true) = (&self.card, self.loading.waits()) {
            let sender = self.sender.clone();
            card.live.ask(CardQuestion::OnCard, move |_| drop(sender.send(Message::Card(CardNews::Left))));
        }
    }

    /// It has said so.
    pub(super) fn renew_card(&mut self) {
        let names = self.names_on_card();
        self.give_loading(Input::Left(names));
    }

    /// The networks that the card knows, in its own numbers, without tables.
    fn seated(&self) -> Vec<Program> {
        let Some(card) = &self.card else { return Vec::new() };
        let programs = self.networks.iter().filter_map(|(_, entry)| entry.program());
        let seated = programs.filter(|program| self.moves.seats().stage(program.vid).is_some());
        seated.map(|program| card.on_card(program)).collect()
    }

    /// Makes the new card, at least for a time.
    fn make_card(&mut self, name: &str, away: Duration) {
        let Some(card) = &self.card else { return };
        let (make_card, sender) = (card.live.make(&self.images, name, self.seated()), self.sender.clone());
        let make = move || {
            let began = Instant::now();
            let card = make_card();
            std::thread::sleep(away.saturating_sub(began.elapsed()));
            let _ = sender.send(Message::Card(CardNews::Image(card)));
        };
        if let Err(error) = self.drive.aside("hue-image", make) {
            self.give_loading(Input::Made(Err(error.to_string())));
        }
    }

    fn end_bypass(&mut self, new: Option<(String, Made)>) {
        let made = new.map(|(name, made)| {
            self.give_card(card_state::Input::Image(name));
            made
        });
        if let Some(card) = &mut self.card {
            card.live.end_bypass(made);
        }
    }

    /// Asks the scheduler which networks get the card: the greedy one if the node's document names none.
    fn choose(&mut self) {
        if self.desired.intent.node.spec.scheduler.is_some() {
            self.ask_scheduler();
            if !self.scheduling.is_running() {
                self.chosen(None);
            }
            return;
        }
        let (question, sender) = (self.question(false), self.sender.clone());
        let answer = move || {
            let schedule = question.schedule(None);
            let _ = sender.send(Message::Card(CardNews::Scheduled(Box::new(schedule))));
        };
        if self.drive.aside("hue-plan", answer).is_err() {
            self.chosen(None);
        }
    }

    /// Networks return to the card: first those that the scheduler places there, among them first those whose documents
    /// say `card`.
    pub(super) fn chosen(&mut self, schedule: Option<&Schedule>) {
        let order = match planted(Bug::ByName) {
            true => self.networks.names(),
            false => self.in_order(schedule),
        };
        self.give_loading(Input::Chosen(order));
    }

    /// All networks; those selected for the card come first.
    pub(super) fn in_order(&self, schedule: Option<&Schedule>) -> Vec<String> {
        let rank = |name: &String| {
            let side = schedule.and_then(|schedule| schedule.network(name)).map(|one| one.side);
            let have = self.networks.get(name).and_then(Entry::have);
            let named = have.is_some_and(|have| have.network.spec.placement == Placement::Card);
            (side != Some(Side::Card), !named)
        };
        let mut names = self.networks.names();
        names.sort_by_key(rank);
        names
    }
}
