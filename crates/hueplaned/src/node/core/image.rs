//! The core, for images: changes the card's image while its networks run.

use std::time::{Duration, Instant};

use hue_card::{CardCommand, CardQuestion, Images};
use hue_control::schedule::{Schedule, Side};
use hue_intent::Placement;
use hue_planes::Adjacency;
use hue_substrate::Program;
use hue_substrate::planted::{Bug, planted};
use tokio::sync::oneshot;

use super::Node;
use crate::api::{EventKind, ImageLoaded, NetworkPlaced, Problem, ProblemKind};
use crate::node::card::{CardNews, Stage};
use crate::node::events::About;
use crate::node::image::{Loading, SETTLE_MAX, Step, Trial};
use crate::node::message::Message;
use crate::node::networks::Entry;
use crate::node::running_card::Made;

impl Node {
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
        card.seats.get(&vid)?;
        let (mut bare, mut full) = (Vec::new(), Vec::new());
        for (other, entry) in self.networks.iter() {
            let Some(have) = entry.have().filter(|have| card.seats.contains_key(&have.program.vid)) else {
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
        if let Some(what) = self.loading_image() {
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
        let before = card.live.description().name.clone();
        let on_card = self.networks.iter().filter(|(_, entry)| entry.is_on_card());
        let networks: Vec<String> = on_card.map(|(name, _)| name.clone()).collect();
        let (reply, answer) = oneshot::channel();
        self.shared.events.add(
            EventKind::ImageLoading,
            About::Node,
            format!("image '{name}' will replace '{before}': {} networks move to software", networks.len()),
        );
        self.loading = Some(Loading {
            name: name.to_owned(),
            before,
            step: Step::Leave,
            began: Instant::now(),
            phases: Vec::new(),
            networks: networks.clone(),
            away,
            failed: None,
            reply: Some(reply),
        });
        self.hold.defer();
        networks.iter().for_each(|name| self.leave(name, None));
        self.tend_loading();
        Ok(answer)
    }

    /// The card was taken over from the daemon before. It will be replaced by a fresh one with the same image, once all
    /// networks are set up: until then no network moves.
    pub(super) fn wait_to_renew(&mut self) {
        let Some(card) = &self.card else { return };
        let image = card.live.description().name.clone();
        self.loading = Some(Loading {
            name: image.clone(),
            before: image,
            step: Step::Wait,
            began: Instant::now(),
            phases: Vec::new(),
            networks: Vec::new(),
            away: Duration::ZERO,
            failed: None,
            reply: None,
        });
        self.hold.defer();
    }

    /// All networks are set up. A card that was taken over from the daemon before says which of them are on it, once it has
    /// taken all commands so far.
    pub(super) fn ask_to_renew(&self) {
        let waits = self.loading.as_ref().is_some_and(|loading| loading.step == Step::Wait);
        if let (Some(card), true) = (&self.card, waits) {
            let sender = self.sender.clone();
            card.live.ask(CardQuestion::OnCard, move |_| drop(sender.send(Message::Card(CardNews::Left))));
        }
    }

    /// It has said so: replaces it.
    pub(super) fn renew_card(&mut self) {
        let Some(loading) = self.loading.as_mut().filter(|loading| loading.step == Step::Wait) else {
            return;
        };
        let on_card = self.networks.iter().filter(|(_, entry)| entry.is_on_card());
        let networks: Vec<String> = on_card.map(|(name, _)| name.clone()).collect();
        loading.networks.clone_from(&networks);
        loading.next(Step::Leave);
        self.police_card();
        networks.iter().for_each(|name| self.leave(name, None));
        self.tend_loading();
    }

    /// Continues to load an image after networks have moved.
    pub(super) fn tend_loading(&mut self) {
        if self.loading.as_ref().is_some_and(Loading::settles) && self.networks_move().is_some() {
            let late = self.loading.as_ref().is_some_and(|loading| loading.began.elapsed() >= SETTLE_MAX);
            return if late {
                self.loaded_image()
            };
        }
        let (Some(loading), Some(card)) = (&mut self.loading, &self.card) else { return };
        let moving = |stage: Stage| matches!(stage, Stage::Coming | Stage::Leaving);
        if card.seats.values().any(|seat| moving(seat.stage)) {
            return;
        }
        match loading.step {
            Step::Wait => {}
            Step::Leave if card.is_stale && card.seats.values().any(|seat| seat.stage == Stage::Card) => {
                // It cannot stay on this card. Software has its table.
                let stays = card.seats.iter().filter(|(_, seat)| seat.stage == Stage::Card);
                let stays: Vec<String> =
                    stays.filter_map(|(vid, _)| self.networks.name_of(*vid).cloned()).collect();
                self.seat_anew(&stays.iter().map(String::as_str).collect::<Vec<_>>());
                self.tend_loading();
            }
            Step::Leave if card.seats.values().any(|seat| seat.stage == Stage::Card) => {
                let why = "a network could not leave the card".to_owned();
                self.turn_back(why);
            }
            Step::Leave => {
                loading.next(Step::Swap);
                let programs = self.seated();
                let Some(card) = &self.card else { return };
                card.live.tell(CardCommand::Bypass(programs));
            }
            Step::Swap | Step::Choose => {}
            // If the card is reserved for a network, that network moves first, and the others after it.
            Step::Return if self.hold.is_reserved() => self.loaded_image(),
            Step::Return => {
                loading.next(Step::Settle);
                self.resume_moves();
                if planted(Bug::AnswerEarly) {
                    return self.loaded_image();
                }
                self.tend_loading();
            }
            Step::Settle => self.loaded_image(),
        }
    }

    /// The image load in progress.
    pub(super) fn loading_image(&self) -> Option<String> {
        self.loading.as_ref().map(|loading| match loading.reply {
            Some(_) => format!("image '{}' is being loaded", loading.name),
            None => "the card is being taken over from the daemon before".to_owned(),
        })
    }

    /// The networks that the card knows, in its own numbers, without tables.
    fn seated(&self) -> Vec<Program> {
        let Some(card) = &self.card else { return Vec::new() };
        let programs = self.networks.iter().filter_map(|(_, entry)| entry.program());
        let seated = programs.filter(|program| card.seats.contains_key(&program.vid));
        seated.map(|program| card.on_card(program)).collect()
    }

    /// Frames bypass the card: creates the new card.
    pub(super) fn bypassed(&mut self, result: Result<(), String>) {
        let Some(loading) = self.loading.as_ref().filter(|loading| loading.step == Step::Swap) else {
            return;
        };
        if let Err(why) = result {
            return self.turn_back(why);
        }
        let (name, away) = (loading.name.clone(), loading.away);
        let Some(card) = &self.card else { return };
        let (make_card, sender) = (card.live.make(&self.images, &name, self.seated()), self.sender.clone());
        let make = move || {
            let began = Instant::now();
            let card = make_card();
            std::thread::sleep(away.saturating_sub(began.elapsed()));
            let _ = sender.send(Message::Card(CardNews::Image(card)));
        };
        if let Err(error) = self.drive.aside("hue-image", make) {
            self.image_made(Err(error.to_string()));
        }
    }

    /// The new card exists or could not be created: frames pass through it, or through the previous one.
    pub(super) fn image_made(&mut self, result: Result<Made, String>) {
        let (Some(loading), Some(card)) = (&mut self.loading, &mut self.card) else { return };
        if loading.step != Step::Swap {
            return;
        }
        let (new, failed) = match result {
            Ok(new) => {
                let ports = card.live.description().mac_ports;
                if new.description.mac_ports == ports {
                    if let (Ok(image), Some(twin)) = (loading.name.parse(), &mut card.want.twin) {
                        twin.image = image;
                    }
                    (Some(new), None)
                } else {
                    (None, Some(format!("it does not have {ports} ports like the running card")))
                }
            }
            Err(why) => (None, Some(why)),
        };
        card.live.end_bypass(new);
        match failed {
            Some(why) => self.turn_back(why),
            None => {
                loading.next(Step::Choose);
                // It is another card: it has no tables of networks yet.
                card.is_stale = false;
                card.seats.values_mut().for_each(|seat| seat.kept = false);
                self.lead_card();
                self.choose();
            }
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
        let Some(loading) = &mut self.loading else { return };
        loading.networks = order.iter().filter(|name| loading.had(name)).cloned().collect();
        loading.next(Step::Return);
        self.keep(&order);
        self.go_back();
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

    /// A step failed: networks return to the unchanged card.
    fn turn_back(&mut self, why: String) {
        if self.card.as_ref().is_some_and(|card| card.is_stale) {
            return self.start_card_anew(&why);
        }
        let Some(loading) = &mut self.loading else { return };
        loading.failed = Some(why);
        loading.next(Step::Return);
        self.go_back();
    }

    fn go_back(&mut self) {
        let names = self.loading.as_ref().map(|loading| loading.networks.clone()).unwrap_or_default();
        names.iter().for_each(|name| self.place(name));
        self.changed = true;
        self.tend_loading();
    }

    /// All networks are where they can be.
    fn loaded_image(&mut self) {
        let Some(mut loading) = self.loading.take() else { return };
        loading.next(Step::Return);
        if loading.reply.is_none() && loading.failed.is_none() {
            let back = self.networks.iter().filter(|(_, entry)| entry.is_on_card()).count();
            let text = format!("the card of the daemon before was taken over; {back} networks are on it");
            self.shared.events.add(EventKind::Adopted, About::Node, text);
            return;
        }
        if let Some(why) = loading.failed.take() {
            let text =
                format!("image '{}' was not loaded, '{}' continues: {why}", loading.name, loading.before);
            self.shared.events.add(EventKind::ImageFailed, About::Node, text.clone());
            loading.answer(Err(Problem::new(ProblemKind::Full, text)));
            return;
        }
        let placed = |(name, entry): (&String, &Entry)| {
            let substrate = if entry.is_on_card() { hue_card::NAME } else { hue_soft::NAME };
            let (network, why_soft) = (name.clone(), entry.why_soft().cloned());
            NetworkPlaced { network, substrate: substrate.to_owned(), why_soft }
        };
        let concerned = self.networks.iter().filter(|(name, entry)| entry.is_on_card() || loading.had(name));
        let networks: Vec<NetworkPlaced> = concerned.map(placed).collect();
        let us: u64 = loading.phases.iter().map(|phase| phase.us).sum();
        let back = networks.iter().filter(|network| network.substrate == hue_card::NAME).count();
        let text = format!("the card runs image '{}' after {us} us; {back} networks are on it", loading.name);
        self.shared.events.add(EventKind::ImageLoaded, About::Node, text);
        let phases = std::mem::take(&mut loading.phases);
        let (image, before) = (loading.name.clone(), loading.before.clone());
        loading.answer(Ok(ImageLoaded { image, before, phases, duration_us: us, networks }));
    }

    /// The card was removed or has failed: ends the image load.
    pub(super) fn give_up_loading(&mut self, why: &str) {
        if let Some(loading) = self.loading.take().filter(|loading| loading.reply.is_some()) {
            let text = format!("image '{}' was not loaded: {why}", loading.name);
            self.shared.events.add(EventKind::ImageFailed, About::Node, text.clone());
            loading.answer(Err(Problem::new(ProblemKind::Internal, text)));
        }
    }
}
