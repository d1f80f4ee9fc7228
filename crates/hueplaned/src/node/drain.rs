//! Drains the card: its networks run in software, and no network runs on the card until that ends.
//!
//! Flow: request → software can serve all networks, or the request is refused → the node's document says `drained`
//! (store) → networks move to software, one after the other, each with a report → answer. The end: the document no
//! longer says it → networks move to where documents or the scheduler place them → answer. An applied document that
//! says `drained` has the same effect, without reports. Invariants: the document is stored before the first move, so a
//! daemon that is killed continues; only the node's own document says whether the card is drained
//! ([`Node::is_drained`]); a network that could not move stays where it is, and the answer names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::backend::Asking;
use super::card::Stage;
use super::command::{Answering, Command, Query, Target};
use super::core::Node;
use super::networks::Entry;
use super::{About, NodeHandle, change};
use crate::api::{
    DrainRequest, DrainResult, EventKind, MigrateRequest, Migration, NetworkDrained, Problem, ProblemKind,
    RevisionKind, SubstrateName,
};
use crate::store::Desired;
use hue_intent::{Card, Placement};

/// How often networks are told to leave a drained card until the answer says that they have not.
const TRIES_MAX: usize = 3;

/// Networks that leave the card, and the results of their moves.
pub type Leaving = Vec<(String, Answering<Migration>)>;

impl Node {
    /// Whether the card is drained.
    pub(super) fn is_drained(&self) -> bool {
        self.desired.intent.node.spec.card.as_ref().is_some_and(Card::is_drained)
    }

    /// Checks that software can serve the networks of the card.
    ///
    /// # Errors
    /// `full`, with each network that would get less bandwidth than its document needs.
    pub(super) fn can_drain(&self) -> Result<(), Problem> {
        let lacks = if self.card.is_some() { self.question(false).lacks_without_card() } else { Vec::new() };
        if lacks.is_empty() {
            return Ok(());
        }
        let why: Vec<String> = lacks.iter().map(|(name, why)| format!("network '{name}': {why}")).collect();
        let detail = format!(
            "the card is not drained, and no network has moved, because software cannot serve all of them: {}; lower \
             `needs` in the documents, or use --force: then networks move and get less",
            why.join("; ")
        );
        Err(Problem::new(ProblemKind::Full, detail))
    }

    /// Whether the card is drained has changed: says so, and moves networks accordingly.
    pub(super) fn follow_drained(&mut self) {
        if self.desired.intent.node.spec.card.is_none() {
            return self.ask_scheduler(); // it was drained, and is gone
        }
        self.tell_drained();
        if self.is_drained() {
            self.on_card().iter().for_each(|name| self.leave(name, None));
        } else {
            // The scheduler's last answer was about a drained card.
            self.scheduled = None;
            if let Some(card) = &mut self.card {
                card.has_room();
            }
        }
        self.ask_scheduler();
        self.in_order(None).iter().for_each(|name| self.place(name));
        self.changed = true;
    }

    fn tell_drained(&self) {
        let on_card = self.networks.values().filter(|entry| entry.on_card).count();
        let drained = "the card is drained: no network runs on it until `hueplane undrain card`";
        let (kind, text) = match (self.is_drained(), on_card) {
            (true, 0) => (EventKind::CardDrained, drained.to_owned()),
            (true, _) => {
                (EventKind::CardDrained, format!("{drained}; networks that move to software: {on_card}"))
            }
            (false, _) => {
                (EventKind::CardUndrained, "the card is no longer drained: networks return to it".to_owned())
            }
        };
        self.shared.events.add(kind, About::Node, text);
    }

    /// Puts documents in force that say that the card is no longer drained.
    pub(super) fn undrain(&mut self, desired: Arc<Desired>) {
        self.desired = desired;
        self.follow_drained();
    }

    /// Puts the drained state in force and moves the networks of the card to software.
    pub(super) fn drain(&mut self, desired: Option<Arc<Desired>>, request: &DrainRequest) -> Leaving {
        if let Some(desired) = desired {
            self.desired = desired;
            self.tell_drained();
            self.ask_scheduler();
            self.changed = true;
        }
        let mut move_to = MigrateRequest::new(SubstrateName::Soft);
        move_to.fail = request.fail;
        let mut leaving = Vec::new();
        for name in self.on_card() {
            let answer = self.leave_drained(&name, &move_to);
            leaving.push((name, answer));
        }
        // Networks that are in software already learn why they stay there.
        self.in_order(None).iter().for_each(|name| self.place(name));
        leaving
    }

    /// The networks that are on the card and not moving, in the order of names.
    fn on_card(&self) -> Vec<String> {
        let Some(card) = &self.card else { return Vec::new() };
        let is_there = |entry: &Entry| {
            let seat = entry.have.as_ref().and_then(|have| card.seats.get(&have.program.vid));
            seat.is_some_and(|seat| seat.stage == Stage::Card)
        };
        self.networks.iter().filter(|(_, entry)| is_there(entry)).map(|(name, _)| name.clone()).collect()
    }

    /// The networks that are on the card, and why networks that could be there are not.
    pub(super) fn places(&self) -> BTreeMap<String, Place> {
        let place = |(name, entry): (&String, &Entry)| {
            let placement = entry.want.as_ref()?.network.spec.placement;
            let why = entry.why_soft.clone().filter(|_| !entry.on_card);
            Some((name.clone(), Place { on_card: entry.on_card, placement, why }))
        };
        self.networks.iter().filter_map(place).collect()
    }
}

/// Where a network is.
pub struct Place {
    on_card: bool,
    placement: Placement,
    /// Why it is not on the card.
    why: Option<String>,
}

impl Place {
    fn substrate(&self) -> String {
        (if self.on_card { hue_card::NAME } else { hue_soft::NAME }).to_owned()
    }
}

impl NodeHandle {
    /// Drains the card, or ends that.
    pub(super) async fn drain_now(
        &self,
        request: &DrainRequest,
        asked: &Asking,
    ) -> Result<DrainResult, Problem> {
        self.none_waits()?;
        let now = self.shared.desired();
        let Some(card) = &now.intent.node.spec.card else {
            let detail = "this node has no card: its document does not have `card`";
            return Err(Problem::new(ProblemKind::Conflict, detail));
        };
        let check = request.drained && !card.is_drained() && !request.force;
        let begin = |reply| if check { Query::CanDrain { reply } } else { Query::Nothing { reply } };
        self.ask_when_idle(asked, None, begin).await?;
        let desired = change::with_drained(&now, request.drained).map(Arc::new);
        if let Some(desired) = &desired {
            let kind = if request.drained { RevisionKind::Drain } else { RevisionKind::Undrain };
            self.store(Arc::clone(desired), asked.origin(kind)).await?;
            self.shared.set_desired(Arc::clone(desired));
        }
        let changed = desired.is_some();
        let networks = match request.drained {
            true => self.leave_card(desired, request).await?,
            false => self.return_to_card(desired).await?,
        };
        let generation = self.shared.desired().generation;
        Ok(DrainResult { drained: request.drained, changed, generation, networks })
    }

    /// Moves the networks of the card to software. The document says already that the card is drained.
    async fn leave_card(
        &self,
        mut desired: Option<Arc<Desired>>,
        request: &DrainRequest,
    ) -> Result<Vec<NetworkDrained>, Problem> {
        let mut done: BTreeMap<String, Result<Migration, Problem>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for _ in 0..TRIES_MAX {
            let (desired, request) = (desired.take().map(Target), *request);
            for (name, answer) in self.ask(|reply| Command::Drain { desired, request, reply }).await? {
                let gone = || Problem::new(ProblemKind::Internal, "the card failed while the network moved");
                done.insert(name, answer.await.unwrap_or_else(|_| Err(gone())));
            }
            // Networks that the node itself was moving to the card leave it when they have arrived.
            places = self.settled_places().await?;
            if !places.values().any(|place| place.on_card) {
                break;
            }
        }
        let on_card = places.iter().filter(|(_, place)| place.on_card).map(|(name, _)| name.clone());
        let moved: BTreeSet<String> = done.keys().cloned().chain(on_card).collect();
        let network = |name: String| {
            let place = places.get(&name)?;
            let (migration, failed) = match done.remove(&name) {
                Some(Ok(migration)) => (Some(migration), None),
                Some(Err(problem)) => (None, Some(problem.detail)),
                None => (None, None),
            };
            let why = place.on_card.then(|| failed.unwrap_or_else(|| "it is still moving".to_owned()));
            Some(NetworkDrained { network: name, substrate: place.substrate(), why, migration })
        };
        Ok(moved.into_iter().filter_map(network).collect())
    }

    /// Networks move to where documents or the scheduler place them.
    async fn return_to_card(&self, desired: Option<Arc<Desired>>) -> Result<Vec<NetworkDrained>, Problem> {
        if let Some(desired) = desired {
            self.ask(|reply| Command::Undrain { desired: Target(desired), reply }).await?;
        }
        let places = self.settled_places().await?;
        let concerned = places.into_iter().filter(|(_, one)| one.on_card || one.placement == Placement::Card);
        let network = |(network, place): (String, Place)| {
            let substrate = place.substrate();
            NetworkDrained { network, substrate, why: place.why, migration: None }
        };
        Ok(concerned.map(network).collect())
    }

    /// Where networks are once none is moving, or after the longest wait.
    async fn settled_places(&self) -> Result<BTreeMap<String, Place>, Problem> {
        // What has been stored is done to the end, so the caller's wish not to wait does not count here.
        match self.ask_when_idle(&Asking::default(), None, |reply| Query::Places { reply }).await {
            Ok(places) => Ok(places),
            Err(problem) if problem.kind == ProblemKind::Conflict => {
                self.ask(|reply| Query::Places { reply }).await?
            }
            Err(problem) => Err(problem),
        }
    }
}
