//! Changes the card's image while its networks run.
//!
//! Flow (Unnikrishnan §4.1): networks of the card move to software → frames bypass the card → a card with the other
//! image and all networks in software replaces it → if the image cannot hold all networks, the scheduler selects some
//! (`Choose`) → networks move back, and their tables are written from the state of their namespaces → other networks
//! move to the card if they can → answer. Ports stay open, so neighbours notice nothing: there is one receiver, and
//! it stays. Invariants: an image that cannot be loaded, or cannot hold the networks' frames, changes nothing; no
//! other change is under way meanwhile; when the caller gets the answer, networks are where the answer says, and none
//! is moving. This part knows no other part: it takes [`Input`]s with what it must know of others ([`Around`]), and
//! returns [`Effect`]s, which the core applies in their order.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use hue_substrate::planted::{Bug, planted};
use tokio::sync::oneshot;

use super::running_card::Made;
use crate::api::{EventKind, ImageLoaded, MigrationPhase, NetworkPlaced, Problem, ProblemKind};

/// How long the answer waits for other networks to move to their desired places, once networks are back.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// The image that is being loaded, if there is one.
#[derive(Default)]
pub struct Loading(Option<Load>);

/// What an image load must know of other parts.
pub struct Around<'a> {
    /// The running card; there may be none.
    pub card: Option<Running>,
    /// Names of the networks on the card.
    pub on_card: &'a dyn Fn() -> Vec<String>,
    /// Whether anything moves, or is about to, besides the image.
    pub moves: &'a dyn Fn() -> bool,
    /// Whether the card is reserved for the move of one network.
    pub is_reserved: bool,
    /// Where all networks are, in the order of names.
    pub places: &'a dyn Fn() -> Vec<NetworkPlaced>,
    /// The time.
    pub now: Instant,
}

/// A running card.
#[derive(Clone, Copy)]
pub struct Running {
    /// Whether a network is on its way to it or from it.
    pub moves: bool,
    /// Whether it was taken over, and cannot go on.
    pub is_stale: bool,
    /// Number of its ports.
    pub ports: u32,
}

/// Something that concerns the image load.
pub enum Input {
    /// Load an image.
    Begin(Begin),
    /// The card was taken over from the daemon before, with this image. It will be replaced by a fresh one with the same
    /// image, once all networks are set up: until then no network moves.
    TakenOver(String),
    /// All networks are set up, and these are on that card.
    Left(Vec<String>),
    /// Networks have moved: continue.
    Tend,
    /// Frames bypass the card; or why they cannot.
    Bypassed(Result<(), String>),
    /// The new card exists; or why not.
    Made(Result<Made, String>),
    /// All networks, those selected for the card first.
    Chosen(Vec<String>),
    /// All networks are where they can be.
    Finish,
    /// The card was removed or has failed.
    GiveUp(String),
}

/// An image to load.
pub struct Begin {
    /// Its name.
    pub name: String,
    /// The image that runs.
    pub before: String,
    /// Networks that are on the card.
    pub networks: Vec<String>,
    /// Least time that the card is unavailable.
    pub away: Duration,
    /// Who waits for it.
    pub reply: oneshot::Sender<Result<ImageLoaded, Problem>>,
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// Report an event about the node.
    Tell(EventKind, String),
    /// The view of the node has changed.
    Changed,
    /// Moves are deferred until [`Effect::ResumeMoves`].
    DeferMoves,
    /// Make deferred moves.
    ResumeMoves,
    /// Set the card's limits before its rings.
    Police,
    /// Move a network to software.
    Leave(String),
    /// Move a network to where it shall run.
    Place(String),
    /// Have software decide the frames of these networks: they cannot leave the card in order.
    SeatAnew(Vec<String>),
    /// Have frames bypass the card; the answer is [`Input::Bypassed`].
    Bypass,
    /// Make a card with this image, at least for this time; the answer is [`Input::Made`].
    Make(String, Duration),
    /// Frames pass through the card again: this one, with this image, or the previous one.
    EndBypass(Option<(String, Made)>),
    /// It is another card: it has no tables of networks yet.
    Renewed,
    /// Have the scheduler select networks for the card; the answer is [`Input::Chosen`].
    Choose,
    /// Have the card keep tables of networks, in this order.
    Keep(Vec<String>),
    /// The card that was taken over cannot be used: start another one.
    StartAnew(String),
    /// Answer whoever waits.
    Answer(oneshot::Sender<Result<ImageLoaded, Problem>>, Result<ImageLoaded, Problem>),
}

struct Load {
    name: String,
    before: String,
    step: Step,
    began: Instant,
    phases: Vec<MigrationPhase>,
    /// Networks that were on the card, in the order in which they come back.
    networks: Vec<String>,
    away: Duration,
    failed: Option<String>,
    /// Who waits for it: nobody if the card was taken over from the daemon before, and is replaced by one with the same image.
    reply: Option<oneshot::Sender<Result<ImageLoaded, Problem>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Networks of a card that was taken over are being set up.
    Wait,
    /// Networks move to software.
    Leave,
    /// The card is replaced.
    Swap,
    /// The scheduler selects the networks for the card.
    Choose,
    /// Networks return.
    Return,
    /// Other networks move to their desired places.
    Settle,
}

impl Step {
    const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Leave => "leave",
            Self::Swap => "swap",
            Self::Choose => "choose",
            Self::Return => "return",
            Self::Settle => "settle",
        }
    }
}

impl Load {
    fn next(&mut self, step: Step, now: Instant) {
        let us = now.saturating_duration_since(self.began).as_micros();
        let us = u64::try_from(us).unwrap_or(u64::MAX);
        self.phases.push(MigrationPhase { name: self.step.name().to_owned(), us });
        (self.step, self.began) = (step, now);
    }

    fn had(&self, name: &str) -> bool {
        self.networks.iter().any(|one| one == name)
    }
}

impl Loading {
    /// Takes an input.
    pub fn take(&mut self, input: Input, around: &Around<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Begin(begin) => self.begin(begin, around.now, &mut out),
            Input::TakenOver(image) => {
                self.0 = Some(Load {
                    name: image.clone(),
                    before: image,
                    step: Step::Wait,
                    began: around.now,
                    phases: Vec::new(),
                    networks: Vec::new(),
                    away: Duration::ZERO,
                    failed: None,
                    reply: None,
                });
                out.push(Effect::DeferMoves);
            }
            Input::Left(networks) => {
                if let Some(load) = self.at(Step::Wait) {
                    load.networks.clone_from(&networks);
                    load.next(Step::Leave, around.now);
                    out.push(Effect::Police);
                    out.extend(networks.into_iter().map(Effect::Leave));
                    out.push(Effect::Then(Input::Tend));
                }
            }
            Input::Tend => self.tend(around, &mut out),
            Input::Bypassed(result) => {
                let Some(load) = self.at(Step::Swap) else { return out };
                match result {
                    Ok(()) => out.push(Effect::Make(load.name.clone(), load.away)),
                    Err(why) => self.turn_back(why, around, &mut out),
                }
            }
            Input::Made(made) => self.made(made, around, &mut out),
            Input::Chosen(order) => {
                let Some(load) = &mut self.0 else { return out };
                load.networks = order.iter().filter(|name| load.had(name)).cloned().collect();
                load.next(Step::Return, around.now);
                out.push(Effect::Keep(order));
                self.go_back(&mut out);
            }
            Input::Finish => self.finish(around, &mut out),
            Input::GiveUp(why) => {
                if let Some(Load { name, reply: Some(reply), .. }) = self.0.take() {
                    let text = format!("image '{name}' was not loaded: {why}");
                    out.push(Effect::Tell(EventKind::ImageFailed, text.clone()));
                    out.push(Effect::Answer(reply, Err(Problem::new(ProblemKind::Internal, text))));
                }
            }
        }
        out
    }

    fn at(&mut self, step: Step) -> Option<&mut Load> {
        self.0.as_mut().filter(|load| load.step == step)
    }

    fn begin(&mut self, begin: Begin, now: Instant, out: &mut Vec<Effect>) {
        let Begin { name, before, networks, away, reply } = begin;
        let leaving = networks.len();
        let text = format!("image '{name}' will replace '{before}': {leaving} networks move to software");
        out.extend([Effect::Tell(EventKind::ImageLoading, text), Effect::DeferMoves]);
        out.extend(networks.iter().cloned().map(Effect::Leave));
        out.push(Effect::Then(Input::Tend));
        let (phases, failed, reply) = (Vec::new(), None, Some(reply));
        self.0 =
            Some(Load { name, before, step: Step::Leave, began: now, phases, networks, away, failed, reply });
    }

    fn tend(&mut self, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(load) = &mut self.0 else { return };
        if load.step == Step::Settle && (around.moves)() {
            let late = around.now.saturating_duration_since(load.began) >= SETTLE_MAX;
            return if late {
                self.finish(around, out);
            };
        }
        let Some(card) = around.card.filter(|card| !card.moves) else { return };
        match load.step {
            Step::Wait | Step::Swap | Step::Choose => {}
            Step::Leave => {
                let stay = (around.on_card)();
                if stay.is_empty() {
                    load.next(Step::Swap, around.now);
                    out.push(Effect::Bypass);
                } else if card.is_stale {
                    // They cannot stay on this card. Software has their tables.
                    out.extend([Effect::SeatAnew(stay), Effect::Then(Input::Tend)]);
                } else {
                    self.turn_back("a network could not leave the card".to_owned(), around, out);
                }
            }
            // If the card is reserved for a network, that network moves first, and the others after it.
            Step::Return if around.is_reserved => self.finish(around, out),
            Step::Return => {
                load.next(Step::Settle, around.now);
                let then = if planted(Bug::AnswerEarly) { Input::Finish } else { Input::Tend };
                out.extend([Effect::ResumeMoves, Effect::Then(then)]);
            }
            Step::Settle => self.finish(around, out),
        }
    }

    /// The new card exists or could not be created: frames pass through it, or through the previous one.
    fn made(&mut self, made: Result<Made, String>, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(card) = around.card else { return };
        let Some(load) = self.at(Step::Swap) else { return };
        let fits = |made: Made| match made.description.mac_ports == card.ports {
            true => Ok(made),
            false => Err(format!("it does not have {} ports like the running card", card.ports)),
        };
        match made.and_then(fits) {
            Err(why) => {
                out.push(Effect::EndBypass(None));
                self.turn_back(why, around, out);
            }
            Ok(made) => {
                load.next(Step::Choose, around.now);
                let name = load.name.clone();
                out.extend([Effect::EndBypass(Some((name, made))), Effect::Renewed, Effect::Choose]);
            }
        }
    }

    /// A step failed: networks return to the unchanged card.
    fn turn_back(&mut self, why: String, around: &Around<'_>, out: &mut Vec<Effect>) {
        if around.card.is_some_and(|card| card.is_stale) {
            return out.push(Effect::StartAnew(why));
        }
        let Some(load) = &mut self.0 else { return };
        load.failed = Some(why);
        load.next(Step::Return, around.now);
        self.go_back(out);
    }

    fn go_back(&self, out: &mut Vec<Effect>) {
        let names = self.0.iter().flat_map(|load| &load.networks);
        out.extend(names.cloned().map(Effect::Place));
        out.extend([Effect::Changed, Effect::Then(Input::Tend)]);
    }

    /// All networks are where they can be.
    fn finish(&mut self, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(mut load) = self.0.take() else { return };
        load.next(Step::Return, around.now);
        let had = |place: &NetworkPlaced| load.had(&place.network);
        let is_there = |place: &NetworkPlaced| place.substrate == hue_card::NAME;
        let mut networks = (around.places)();
        networks.retain(|place| is_there(place) || had(place));
        let back = networks.iter().filter(|place| is_there(place)).count();
        let Load { name, before, phases, failed, reply, .. } = load;
        let (kind, text, result) = match (failed, &reply) {
            (None, None) => {
                let text = format!("the card of the daemon before was taken over; {back} networks are on it");
                (EventKind::Adopted, text, None)
            }
            (Some(why), _) => {
                let text = format!("image '{name}' was not loaded, '{before}' continues: {why}");
                let problem = Problem::new(ProblemKind::Full, text.clone());
                (EventKind::ImageFailed, text, Some(Err(problem)))
            }
            (None, Some(_)) => {
                let us = phases.iter().map(|phase| phase.us).sum();
                let text = format!("the card runs image '{name}' after {us} us; {back} networks are on it");
                let loaded = ImageLoaded { image: name, before, phases, duration_us: us, networks };
                (EventKind::ImageLoaded, text, Some(Ok(loaded)))
            }
        };
        out.push(Effect::Tell(kind, text));
        out.extend(reply.zip(result).map(|(reply, result)| Effect::Answer(reply, result)));
    }
}

/// What other parts may know.
impl Loading {
    /// Whether an image is being loaded.
    pub fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// Description of it.
    pub fn words(&self) -> Option<String> {
        self.0.as_ref().map(|load| match load.reply {
            Some(_) => format!("image '{}' is being loaded", load.name),
            None => "the card is being taken over from the daemon before".to_owned(),
        })
    }

    fn is_at(&self, step: Step) -> bool {
        self.0.as_ref().is_some_and(|load| load.step == step)
    }

    /// Whether a card that was taken over waits until all networks are set up.
    pub fn waits(&self) -> bool {
        self.is_at(Step::Wait)
    }

    /// Whether a network is returning now.
    pub fn returns(&self, name: &str) -> bool {
        self.is_at(Step::Return) && self.had(name)
    }

    /// Whether networks are moving to their desired places.
    pub fn settles(&self) -> bool {
        self.is_at(Step::Settle)
    }

    /// Whether the scheduler must select the networks for the card.
    pub fn chooses(&self) -> bool {
        self.is_at(Step::Choose)
    }

    /// Whether the card had a network when the load began.
    pub fn had(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|load| load.had(name))
    }
}
