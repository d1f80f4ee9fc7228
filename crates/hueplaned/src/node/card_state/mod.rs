//! Which card the node has: brings it from its desired to its running state.
//!
//! Flow: documents, reports of the card's thread ([`Input`]) → **[`CardState`]** → the card is dropped, started, and given
//! its ports and networks ([`Effect`]s, which the core applies in their order). Invariants: a port is closed before another
//! owner opens it; a change that does not concern the card leaves it alone; a card that cannot be started leaves all networks
//! in software, and the reason is known until documents name another one. This part knows no other part.

#[cfg(test)]
mod tests;

use hue_intent::Card;

use crate::api::EventKind;

/// The running card, by its document, and what is wrong.
#[derive(Default)]
pub struct CardState {
    running: Option<Card>,
    /// Why there is no card although one is desired.
    problem: Option<String>,
}

/// Something that concerns the card.
pub enum Input {
    /// Documents name this card, or none.
    Want(Option<Card>),
    /// The former card is gone, and these ports with it.
    Dropped(Next, Vec<String>),
    /// The card runs, and whether it was taken over and cannot go on; or why not. These ports must be tended.
    Started(Box<Card>, Result<bool, String>, Vec<String>),
    /// The card's thread has failed.
    Failed(String),
    /// A card that was taken over cannot be used: start another one in its place.
    Anew(String),
    /// It runs another image.
    Image(String),
}

/// What follows when the former card is gone.
pub enum Next {
    /// This card is started, if there shall be one.
    Start(Option<Box<Card>>),
    /// There is no card, for this reason.
    Down(String),
    /// The desired one is started.
    Desired,
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// Report an event about the node.
    Tell(EventKind, String),
    /// The view of the node has changed.
    Changed,
    /// Close a port, for this reason.
    ClosePort(String, String),
    /// Open or close a port as its interface and its owner require.
    TendPort(String),
    /// End the card, for this reason.
    Drop(String),
    /// Start this card; the answer is [`Input::Started`], with these ports.
    Start(Box<Card>, Vec<String>),
    /// Bring the card to what documents say now.
    Reconcile,
    /// Decide whether its tables follow those of software.
    Lead,
    /// Have it replaced once all networks are set up.
    WaitToRenew,
    /// Tell it all networks, and move those that belong there.
    SeatAll,
}

impl CardState {
    /// Takes an input.
    pub fn take(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Want(want) => self.want(want, &mut out),
            Input::Dropped(next, ports) => self.dropped(next, ports, &mut out),
            Input::Started(card, result, ports) => self.started(*card, result, ports, &mut out),
            Input::Failed(why) => {
                let why = format!("it failed, and its networks run in software: {why}");
                self.drop(&why, Next::Down(why.clone()), &mut out);
            }
            Input::Anew(why) => self.drop(&why, Next::Desired, &mut out),
            Input::Image(name) => {
                let twin = self.running.as_mut().and_then(|card| card.twin.as_mut());
                if let (Some(twin), Ok(image)) = (twin, name.parse()) {
                    twin.image = image;
                }
            }
        }
        out
    }

    fn want(&mut self, want: Option<Card>, out: &mut Vec<Effect>) {
        // A change of the NICs beside its ports does not affect the card.
        let same = |have: &Card, want: &Card| {
            (&have.twin, have.pci, &have.ports) == (&want.twin, want.pci, &want.ports)
        };
        match (&mut self.running, want) {
            (None, None) => {
                // A card that did not come up is not desired any more.
                if self.problem.take().is_some() {
                    out.push(Effect::Changed);
                }
            }
            (Some(have), Some(want)) if same(have, &want) => have.nics = want.nics,
            (_, want) => {
                self.drop("the node has a different card now", Next::Start(want.map(Box::new)), out);
            }
        }
    }

    /// Releases the card: its networks run in software.
    fn drop(&self, why: &str, next: Next, out: &mut Vec<Effect>) {
        let ports = self.ports();
        if self.running.is_some() {
            out.extend(ports.iter().map(|name| Effect::ClosePort(name.clone(), why.to_owned())));
            // Its thread closes its ports before it ends.
            out.extend([Effect::Drop(why.to_owned()), Effect::Changed]);
        }
        out.push(Effect::Then(Input::Dropped(next, ports)));
    }

    fn dropped(&mut self, next: Next, ports: Vec<String>, out: &mut Vec<Effect>) {
        self.running = None;
        match next {
            Next::Start(want) => {
                self.problem = None;
                match want {
                    Some(want) => return out.push(Effect::Start(want, ports)),
                    None => out.push(Effect::Changed),
                }
            }
            Next::Down(why) => self.is_down(why, out),
            Next::Desired => out.push(Effect::Reconcile),
        }
        out.extend(ports.into_iter().map(Effect::TendPort));
    }

    fn started(
        &mut self,
        card: Card,
        result: Result<bool, String>,
        mut ports: Vec<String>,
        out: &mut Vec<Effect>,
    ) {
        match result {
            Ok(is_stale) => {
                self.running = Some(card);
                out.push(Effect::Lead);
                if is_stale {
                    out.push(Effect::WaitToRenew);
                }
                let own = self.ports();
                let why = "it now belongs to the card";
                out.extend(own.iter().map(|name| Effect::ClosePort(name.clone(), why.to_owned())));
                ports.extend(own);
            }
            // Ports that workers use meanwhile stay open, because this also runs after unrelated changes of documents.
            Err(why) => self.is_down(why, out),
        }
        out.push(Effect::SeatAll);
        out.extend(ports.into_iter().map(Effect::TendPort));
        out.push(Effect::Changed);
    }

    fn is_down(&mut self, why: String, out: &mut Vec<Effect>) {
        self.problem = Some(format!("card: {why}"));
        out.extend([Effect::Tell(EventKind::CardDown, why), Effect::Changed]);
    }
}

/// What other parts may know.
impl CardState {
    /// Why there is no card although one is desired.
    pub fn problem(&self) -> Option<&String> {
        self.problem.as_ref()
    }

    /// Names of the card's ports, in the order of its own numbers.
    pub fn ports(&self) -> Vec<String> {
        self.running.iter().flat_map(|card| &card.ports).map(ToString::to_string).collect()
    }

    /// The card's own number of a port.
    pub fn number(&self, port: &str) -> Option<u8> {
        let ports = &self.running.as_ref()?.ports;
        u8::try_from(ports.iter().position(|one| one.as_str() == port)?).ok()
    }
}
