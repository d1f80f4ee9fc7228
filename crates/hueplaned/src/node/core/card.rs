//! The core, for the card: starts and drops it, seats networks, and passes changes of tables on.

use std::sync::Arc;
use std::time::Instant;

use hue_card::{CardCommand, CardEvent, CardQuestion, CardReply};
use hue_demux::PortId;
use hue_ports::{Driver, Port};
use hue_substrate::wake::Wake;
use hue_substrate::{Changes, HopChanges};
use hue_tables::{Delta, Vid};
use tokio::sync::oneshot;

use super::Node;
use crate::api::{EventKind, Health, Timestamp};
use crate::node::card::{CardAnswer, CardNews, CardSide, PIECE_NODES, SLOTS, plugged_in, words};
use crate::node::card_state::{self, Effect};
use crate::node::events::About;
use crate::node::loading;
use crate::node::message::Message;
use crate::node::moves::{self, NewSeat};
use crate::node::networks::{self, Entry};
use crate::node::ports::Input;
use crate::node::site::Site;
use crate::node::wires;

impl Node {
    /// Gives the card's state an input. Its effects are applied before this returns, each with all that follows from it
    /// before the next one.
    pub(super) fn give_card(&mut self, input: card_state::Input) {
        self.apply_all(input, |node, input| node.card_state.take(input), Self::apply_to_card);
    }

    /// Returns the input that follows, if there is one.
    fn apply_to_card(&mut self, effect: Effect) -> Option<card_state::Input> {
        match effect {
            Effect::Then(input) => return Some(input),
            Effect::Tell(kind, text) => self.shared.events.add(kind, About::Node, text),
            Effect::Changed => self.changed = true,
            Effect::ClosePort(name, why) => self.close_port(&name, &why),
            Effect::TendPort(name) => self.tend_port(&name),
            Effect::Drop(why) => self.drop_card(why),
            Effect::Start(want, ports) => {
                let started = self.start_card(&want).map(|card| self.take_card(card));
                return Some(card_state::Input::Started(want, started, ports));
            }
            Effect::Reconcile => self.reconcile_card(),
            Effect::Lead => self.lead_card(),
            Effect::WaitToRenew => self.wait_to_renew(),
            Effect::SeatAll => {
                let names = self.in_order(None);
                self.seat(&names);
                for name in names {
                    self.give_moves(moves::Input::Place(name));
                }
            }
        }
        None
    }

    /// Brings the card to its desired state. Ports are handled after that.
    pub(super) fn reconcile_card(&mut self) {
        self.pair_ports();
        let want = self.desired.intent.node.spec.card.clone();
        self.give_card(card_state::Input::Want(want));
    }

    /// A card has started. Returns whether it was taken over and cannot go on.
    fn take_card(&mut self, card: CardSide) -> bool {
        let description = card.description();
        let runs = if card.is_stale { "the card has gone on and" } else { "the card" };
        let text = format!("{runs} runs image '{}': {}", description.name, words(description));
        self.shared.events.add(EventKind::CardUp, About::Node, text);
        self.shared.tell_scheduling("the card's thread", card.live.scheduling());
        let is_stale = card.is_stale;
        self.card = Some(card);
        is_stale
    }

    fn start_card(&mut self, want: &hue_intent::Card) -> Result<CardSide, String> {
        self.give_ports(Input::FitMemory);
        let Some(twin) = &want.twin else {
            return Err(want
                .pci
                .map_or_else(String::new, |address| plugged_in(address).unwrap_or_else(|why| why)));
        };
        let ids = &self.desired.ids.ports;
        let numbers = want
            .ports
            .iter()
            .zip(0u8..)
            .filter_map(|(name, number)| Some((*ids.get(name.as_str())?, number)));
        let numbers = numbers.collect();
        let wake = Arc::new(Wake::new().map_err(|error| error.to_string())?);
        let peers = self.live.invite(&wake).map_err(|error| error.to_string())?;
        let sender = self.sender.clone();
        // The node ends the card before it ends itself.
        let events = move |event| drop(sender.send(Message::Card(CardNews::Event(event))));
        let memory = (SLOTS, self.ports.memory().slot_bytes);
        // The cables of links are in this process.
        let ports_of_node = &self.desired.intent.node.spec.ports;
        let is_here = ports_of_node.iter().any(|port| port.peer.is_some() && want.ports.contains(&port.name));
        let interface = |name: &str| {
            let port = ports_of_node.iter().find(|port| port.name.as_str() == name)?;
            Some(port.interface().to_owned())
        };
        let named =
            want.ports.iter().zip(0u8..).filter_map(|(name, number)| {
                Some((number, *ids.get(name.as_str())?, interface(name.as_str())?))
            });
        let place = (is_here, self.take_over.is_none(), named.collect());
        let image = (&self.images, twin.image.as_str());
        let live = self.drive.card(image, (wake, peers), memory, place, events)?;
        let ports = live.description().mac_ports as usize;
        if want.ports.len() > ports {
            drop(live);
            self.live.dismiss();
            return Err(format!("{} ports: image '{}' has {ports}", want.ports.len(), twin.image));
        }
        let (is_stale, age) = (live.ran_for().is_some(), live.ran_for().unwrap_or_default());
        let now = Instant::now();
        let us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        Ok(CardSide {
            live,
            started: now.checked_sub(age).unwrap_or(now),
            since: Timestamp::from_us(Timestamp::now().us().saturating_sub(us)),
            is_stale,
            numbers,
        })
    }

    /// Ends the card: its networks run in software.
    fn drop_card(&mut self, why: String) {
        let Some(CardSide { live, .. }) = self.card.take() else { return };
        self.live.disable_deltas();
        self.give_loading(loading::Input::GiveUp(why));
        drop(live);
        self.live.dismiss();
        self.give_moves(moves::Input::CardGone);
    }

    /// The card's number of one of its ports, and where the port is opened.
    pub(super) fn card_port(&self, name: &str) -> Option<(u8, Site)> {
        let card = self.card.as_ref()?;
        Some((self.card_state.number(name)?, card.live.site()))
    }

    /// Gives an open port to the card.
    pub(super) fn give_to_card(
        &mut self,
        number: u8,
        id: PortId,
        port: Box<dyn Port>,
    ) -> Result<Driver, String> {
        let gone = || "the card's thread has ended".to_owned();
        let driver = port.driver();
        let card = self.card.as_ref().ok_or_else(gone)?;
        if !card.live.set_port(number, id, port) {
            return Err(gone());
        }
        self.live.lend_port(id, driver).map_err(|error| error.to_string())?;
        self.police_card();
        Ok(driver)
    }

    /// Sets the limits before the rings of the card's ports, so that a flood of one network does not take the card
    /// from others.
    pub(super) fn police_card(&mut self) {
        let Some(card) = &self.card else { return };
        // The limits of the daemon before are for all its networks. Until this one has them all, they stay.
        if card.is_stale && self.health == Health::Starting {
            return;
        }
        for (id, (rules, quotas)) in self.live.lent_classes() {
            card.live.tell(CardCommand::SetClasses { id, rules, quotas });
        }
    }

    /// Closes a port of the card.
    pub(super) fn take_from_card(&self, name: &str) {
        if let (Some((number, _)), Some(card)) = (self.card_port(name), &self.card) {
            card.live.tell(CardCommand::TakePort(number));
        }
    }

    /// Tells the card how to recognize the frames of loaded networks; software then decides them. Networks that have
    /// not changed are not affected.
    pub(super) fn seat(&mut self, names: &[String]) {
        let known = |name: &&String| {
            let program = self.networks.get(name).and_then(Entry::program);
            program.is_some_and(|program| self.moves.seats().knows(program))
        };
        let new: Vec<String> = names.iter().filter(|name| !known(name)).cloned().collect();
        self.seat_anew(&new);
    }

    /// The same; the networks' tables on the card are no longer valid.
    pub(super) fn seat_anew(&mut self, names: &[String]) {
        let Some(card) = &self.card else { return };
        let mut seats = Vec::new();
        for name in names {
            let Some(program) = self.networks.get(name).and_then(Entry::program) else { continue };
            if program.ports.iter().any(|port| card.numbers.contains_key(&port.port)) {
                let (program, id) = (program.clone(), card.live.take_seat(program.vid));
                seats.push(NewSeat { name: name.clone(), program, id });
            }
        }
        for seat in &seats {
            self.give_networks(networks::Input::Placed(seat.name.clone(), false, None));
        }
        self.give_moves(moves::Input::Seat(seats));
    }

    /// Tells the card how to recognize the frames of these networks.
    pub(super) fn load_on_card(&self, vids: &[Vid]) {
        let Some(card) = &self.card else { return };
        let programs = vids.iter().filter_map(|vid| self.networks.with_vid(*vid)?.program());
        let programs = programs.map(|program| card.on_card(program)).collect();
        let homes = vids.iter().map(|vid| (*vid, self.live.home(*vid))).collect();
        card.live.tell(CardCommand::Load { homes, programs });
    }

    /// The card or its image has changed: decides whether its tables follow software's.
    pub(super) fn lead_card(&mut self) {
        let Some(card) = &self.card else { return };
        match card.description().words_of_node().filter(|_| card.follows()) {
            Some(weigh) => self.live.enable_weighed_deltas(weigh),
            None => self.live.disable_deltas(),
        }
        self.forward();
    }

    /// Sends changes of software's tables to the card. Their prerequisites were sent before: the next hops that a
    /// change names, or that its network is in software.
    pub(super) fn forward(&mut self) {
        let Some(card) = self.card.as_ref().filter(|card| card.follows()) else { return };
        let mut deltas = self.live.take_deltas();
        // Nodes are retired in one command: the card's driver checks all of them before it retires the first one.
        let first = deltas.iter().position(|delta| matches!(delta, Delta::Retire(_))).unwrap_or(deltas.len());
        let last = deltas.split_off(first);
        let mut pieces: Vec<Vec<Delta>> = Vec::with_capacity(deltas.len() / PIECE_NODES + 2);
        while deltas.len() > PIECE_NODES {
            let rest = deltas.split_off(PIECE_NODES);
            pieces.push(std::mem::replace(&mut deltas, rest));
        }
        deltas.extend(last);
        pieces.push(deltas);
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            card.tell_deltas(piece, |vid| self.moves.seats().follower(vid));
        }
    }

    /// A network's table has changed in software: the card follows.
    pub(super) fn mirror(&mut self, vid: Vid, hops: HopChanges, routes: Changes) {
        self.give_moves(moves::Input::Follow(vid, hops, routes));
    }

    /// Handles a message about the card.
    pub(super) fn card_news(&mut self, news: CardNews) {
        match news {
            CardNews::Event(event) => self.card_event(event),
            CardNews::Left => self.renew_card(),
            CardNews::Scheduled(schedule) => self.scheduled(&schedule),
            CardNews::Image(result) => self.give_loading(loading::Input::Made(result)),
        }
    }

    /// Handles a report of the card's thread.
    fn card_event(&mut self, event: CardEvent) {
        match event {
            CardEvent::Port { id, error } => {
                if let Some(name) = self.ports.with_id(id).map(|(name, _)| name.clone()) {
                    self.give_ports(Input::Broke(name, error));
                }
            }
            CardEvent::Failed(why) => self.give_card(card_state::Input::Failed(why)),
            CardEvent::NotLimited(id, error) => {
                tracing::warn!(%id, %error, "the card cannot limit floods before its receive ring");
            }
            CardEvent::Refused(vids, why) => {
                for vid in vids {
                    let Some(name) = self.networks.name_of(vid).cloned() else { continue };
                    self.give_moves(moves::Input::Refused(vid));
                    let why = format!("the card cannot find its frames: {why}");
                    self.give_networks(networks::Input::Degrade(name, why));
                }
            }
            CardEvent::Moved(moved) => {
                self.give_moves(moves::Input::Moved(moved));
            }
            CardEvent::Stays(vid) => self.give_moves(moves::Input::Stays(vid)),
            CardEvent::Bypassed(result) => self.give_loading(loading::Input::Bypassed(result)),
            CardEvent::Drained { seat, took, received } => {
                self.give_wires(wires::Input::Drained(seat, took, received));
            }
            CardEvent::Fell(seat, why) => self.give_moves(moves::Input::Fell(seat, why)),
            CardEvent::NotKept(seat) => self.give_moves(moves::Input::NotKept(seat)),
        }
    }

    /// Asks the card for its counters of networks. The answer comes when the card's thread has read them.
    pub(super) fn ask_card(&self, only: Option<Vid>) -> Option<oneshot::Receiver<CardAnswer>> {
        let card = self.card.as_ref()?;
        let vids: Vec<Vid> =
            self.moves.seats().vids().filter(|vid| only.is_none_or(|only| only == *vid)).collect();
        let (reply, answer) = oneshot::channel();
        card.live.ask(CardQuestion::Counts(vids), move |answer| {
            if let CardReply::Counts(counts, unclaimed) = answer {
                drop(reply.send((counts, unclaimed))); // the receiver may be gone
            }
        });
        Some(answer)
    }
}
