//! Two links (multi-receiver): NIC ports beside the card's ports. Neighbours of networks in software send to the NICs.
//!
//! Flow: places of networks, and the ports that have a link → **here** → workers receive and send on the other link,
//! and notify each neighbour (unicast ARP announcements) → shortly after, frames that still arrived on the old link are
//! counted, and work that waited for the switch continues. Neighbours of a network send to the NICs before it moves
//! to software, and to the card's ports once it has moved there: during the move, the card holds almost none of the
//! network's frames, and the path through the card to software, which carries less than either link, has none of its
//! load. Both links accept frames at any time, so none are lost. Frames may only be reordered while both links are in
//! use, and the report says how many. A network that keeps its MAC addresses, as a switch does, moves between software and card on
//! the card's link: it uses the NICs only while it is in software (ADR 0066). Invariants: nobody waits; a NIC without a link is not
//! used. This part knows no other part: it takes [`Input`]s with what it must know of others ([`Around`]), and returns [`Effect`]s,
//! which the core applies in order.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use hue_card::SeatId;
use hue_demux::PortId;
use hue_tables::Vid;

use super::moves::{Stage, Then};
use crate::api::{EventKind, MigrationSteering};

/// How long frames of the old link are counted, and how long a move to the card waits for them. The old wire of a network
/// that keeps its MAC addresses must be quiet for so long twice: before and after the card's thread has moved on what it has.
const TURN: Duration = Duration::from_millis(20);
/// As [`TURN`] while the card's thread has not answered yet: without its answer, the number of late frames is unknown. No turn
/// is longer.
const TURN_MAX: Duration = Duration::from_secs(1);

/// NICs beside the card's ports, and neighbours that are being redirected.
#[derive(Default)]
pub struct Wires {
    /// Pairs of port and NIC.
    nics: Vec<(PortId, PortId)>,
    turns: Vec<Turn>,
}

/// What wires must know of other parts.
pub struct Around<'a> {
    /// Names of all networks, or only of those whose neighbours send to NICs.
    pub names: &'a dyn Fn(bool) -> Vec<String>,
    /// The network of this name.
    pub network: &'a dyn Fn(&str) -> Option<Network>,
    /// Whether frames can pass a port.
    pub has_wire: &'a dyn Fn(PortId) -> bool,
    /// Whether the neighbours of a network are still being told.
    pub is_announcing: &'a dyn Fn(Vid) -> bool,
    /// Frames of a network accepted on its old wire so far, in all turns.
    pub late_frames: &'a dyn Fn(Vid) -> u64,
    /// Frames of a network received by NICs so far.
    pub by_nic: &'a dyn Fn(Vid) -> u64,
    /// Whether the neighbours of the network with this id send to NICs.
    pub on_nic: &'a dyn Fn(Vid) -> Option<bool>,
    /// The time.
    pub now: Instant,
}

/// A network.
pub struct Network {
    /// Whether its neighbours send to NICs.
    pub on_nic: bool,
    /// What is loaded of it.
    pub loaded: Option<Loaded>,
}

/// A loaded network.
pub struct Loaded {
    /// Its id.
    pub vid: Vid,
    /// Whether it has reached its target state.
    pub is_running: bool,
    /// Where it is, if it has a seat on the card.
    pub stage: Option<Stage>,
    /// Whether its MAC addresses are the same on both wires.
    pub keeps_macs: bool,
    /// Whether its frames are found by their MAC addresses.
    pub by_mac: bool,
    /// Its physical ports.
    pub ports: Vec<PortId>,
}

/// Something that concerns wires.
pub enum Input {
    /// These are the pairs of port and NIC.
    SetNics(Vec<(PortId, PortId)>),
    /// Make the neighbours of all networks send to where these run.
    RewireAll,
    /// The same for one network, with this seat. Work that waits for it goes on afterwards.
    Rewire(String, Option<SeatId>, Then),
    /// Its neighbours are being told; `None` if it cannot be switched.
    Begun(Box<Begin>, Option<Begun>),
    /// The last frame of a network with this seat has left the card: how long that took, and how many frames the card had
    /// received.
    Drained(SeatId, Option<Duration>, Option<u64>),
    /// Continue what is due at this time.
    Tend(Instant),
    /// This turn is due at this time.
    Due(Box<Turn>, Instant),
}

/// A network whose neighbours are to be redirected.
pub struct Begin {
    /// Its name.
    pub name: String,
    /// Its id.
    pub vid: Vid,
    /// Whether they shall send to NICs.
    pub to_nic: bool,
    /// Whether its MAC addresses are the same on both wires.
    pub keeps_macs: bool,
    seat: Option<SeatId>,
    then: Then,
}

/// Neighbours are being told.
pub struct Begun {
    /// Its seat on the card, if it has one.
    pub seat: Option<SeatId>,
    /// When that began.
    pub began: Instant,
    /// How many they are.
    pub neighbours: usize,
    /// Frames that NICs had received then.
    pub by_nic: u64,
    /// Whether the card's thread has been asked when the network's last frame leaves it.
    pub waits_for_card: bool,
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// The neighbours of a network shall send to NICs, or to the card's ports.
    Steered(String, bool),
    /// Switch a network to its other wires, and tell its neighbours; the answer is [`Input::Begun`].
    Begin(Box<Begin>),
    /// Report an event about a network.
    Tell(EventKind, String, String),
    /// The view of a network has changed.
    Changed,
    /// Its virtual ports have other wires: tell its kernel which have a link.
    TellCarriers(String),
    /// Ask the card's thread when the frames that a network with this seat has on the card have left it; the answer is
    /// [`Input::Drained`].
    AskCard(SeatId),
    /// Tell its neighbours again, in case a frame was lost. Of a network that keeps its MAC addresses, the old wire is no longer
    /// accepted.
    End(Vid),
    /// Go on with what has waited, of the network with this seat; with how neighbours were redirected, if they were, and how
    /// many frames the card had received.
    GoOn(Option<SeatId>, Then, Option<(MigrationSteering, Option<u64>)>),
}

/// Neighbours that are being redirected, and the work that waits for this.
pub struct Turn {
    vid: Vid,
    /// The network's seat.
    seat: Option<SeatId>,
    began: Instant,
    /// When it began or was put off.
    again: Instant,
    neighbours: usize,
    /// For a network that keeps its MAC addresses: frames accepted on its old wire so far, in all turns.
    late: Option<u64>,
    /// The same: whether no frame came by its old wire for [`TURN`].
    is_quiet: bool,
    /// Frames that NICs had received when the turn began.
    by_nic: u64,
    to_nic: bool,
    /// Whether the card's thread has not answered yet.
    waits_for_card: bool,
    /// How long the network's frames on the card took to leave it, once known.
    overlap: Option<Duration>,
    /// Frames of the network received by the card.
    by_card: Option<u64>,
    /// Work that waits for the turn.
    then: Then,
}

impl Wires {
    /// Takes an input.
    pub fn take(&mut self, input: Input, around: &Around<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::SetNics(nics) => self.nics = nics,
            Input::RewireAll => {
                let names = (around.names)(!self.nics.is_empty());
                let rewire = |name| Effect::Then(Input::Rewire(name, None, Then::Nothing));
                out.extend(names.into_iter().map(rewire));
            }
            Input::Rewire(name, seat, then) => self.rewire(name, seat, then, around, &mut out),
            Input::Begun(begin, begun) => self.begun(*begin, begun, around, &mut out),
            Input::Drained(seat, took, received) => {
                let waits = |turn: &&mut Turn| turn.waits_for_card && turn.seat == Some(seat);
                if let Some(turn) = self.turns.iter_mut().find(waits) {
                    turn.waits_for_card = false;
                    match turn.late {
                        Some(_) => turn.again = around.now,
                        None => (turn.overlap, turn.by_card) = (took, received),
                    }
                }
            }
            Input::Tend(now) => {
                let due = self.turns.extract_if(.., |turn| turn.due() <= now);
                out.extend(due.map(|turn| Effect::Then(Input::Due(Box::new(turn), now))));
            }
            Input::Due(turn, now) => self.tend(*turn, now, around, &mut out),
        }
        out
    }

    /// Whether a network's neighbours should send to NICs.
    fn wants_nic(&self, network: &Network, around: &Around<'_>) -> bool {
        let Some(loaded) = network.loaded.as_ref().filter(|loaded| loaded.is_running) else {
            return network.on_nic; // unchanged until its state is clear
        };
        match loaded.stage {
            Some(Stage::Card) => return false,
            // While it moves, such a network has the card's wire: its addresses have one place, and it forwards from one wire only.
            Some(Stage::Coming | Stage::Leaving) if loaded.keeps_macs => return false,
            Some(Stage::Coming) => return network.on_nic, // until it has arrived
            Some(Stage::Software | Stage::Leaving) | None => {}
        }
        if !loaded.by_mac && !loaded.keeps_macs {
            return false;
        }
        let mut nics = loaded.ports.iter().filter_map(|port| self.nic_of(*port)).peekable();
        nics.peek().is_some() && nics.all(|nic| (around.has_wire)(nic))
    }

    fn rewire(
        &self,
        name: String,
        seat: Option<SeatId>,
        then: Then,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(network) = (around.network)(&name) else { return out.push(Effect::GoOn(seat, then, None)) };
        let to_nic = self.wants_nic(&network, around);
        if network.on_nic == to_nic {
            return out.push(Effect::GoOn(seat, then, None));
        }
        out.push(Effect::Steered(name.clone(), to_nic));
        out.push(match network.loaded {
            None => Effect::GoOn(seat, then, None),
            Some(Loaded { vid, keeps_macs, .. }) => {
                Effect::Begin(Box::new(Begin { name, vid, to_nic, keeps_macs, seat, then }))
            }
        });
    }

    fn begun(&mut self, begin: Begin, begun: Option<Begun>, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Begin { name, vid, to_nic, keeps_macs, seat, then } = begin;
        let Some(begun) = begun else { return out.push(Effect::GoOn(seat, then, None)) };
        let Begun { seat, began, neighbours, by_nic, waits_for_card } = begun;
        let wire = if to_nic { "the NICs" } else { "the card's ports" };
        let text = if keeps_macs {
            format!("announcements of {neighbours} MAC addresses make outside switches send to {wire}")
        } else {
            format!("ARP announcements redirect {neighbours} neighbours to {wire}")
        };
        out.extend([
            Effect::Tell(EventKind::Steered, name.clone(), text),
            Effect::Changed,
            Effect::TellCarriers(name),
        ]);
        let late = keeps_macs.then(|| (around.late_frames)(vid));
        let (overlap, by_card, is_quiet, again) = (None, None, false, began);
        self.turns.push(Turn {
            vid,
            seat,
            began,
            again,
            neighbours,
            late,
            is_quiet,
            by_nic,
            to_nic,
            waits_for_card,
            overlap,
            by_card,
            then,
        });
    }

    fn tend(&mut self, mut turn: Turn, now: Instant, around: &Around<'_>, out: &mut Vec<Effect>) {
        let watched = around.now.saturating_duration_since(turn.began);
        if watched < TURN_MAX {
            // Many addresses are told one after another.
            if (around.is_announcing)(turn.vid) {
                return self.turns.push(turn.later(now));
            }
            let late = turn.late.map_or(0, |_| (around.late_frames)(turn.vid));
            if turn.goes_on(late, now) {
                // Perhaps it is quiet because the card's thread has not run: announcements, or frames of the old wire, wait there.
                if let Some(seat) = turn.seat.filter(|_| turn.is_quiet) {
                    turn.waits_for_card = true;
                    out.push(Effect::AskCard(seat));
                }
                return self.turns.push(turn);
            }
        }
        if (around.on_nic)(turn.vid) == Some(turn.to_nic) {
            out.push(Effect::End(turn.vid));
        }
        // If the old link is the card's, its late frames are counted from the numbers that the card's thread reports.
        let late = if turn.to_nic { 0 } else { (around.by_nic)(turn.vid).saturating_sub(turn.by_nic) };
        let steering = MigrationSteering {
            neighbours: turn.neighbours as u64,
            watched_us: micros(watched),
            late,
            overlap_us: turn.overlap.map(micros),
        };
        out.push(Effect::GoOn(turn.seat, turn.then, Some((steering, turn.by_card))));
    }
}

/// What other parts may know.
impl Wires {
    /// The NIC beside a port.
    pub fn nic_of(&self, port: PortId) -> Option<PortId> {
        self.nics.iter().find(|(front, _)| *front == port).map(|(_, nic)| *nic)
    }

    /// The port of the card beside which a NIC is.
    pub fn front_of(&self, nic: PortId) -> Option<PortId> {
        self.nics.iter().find(|(_, other)| *other == nic).map(|(front, _)| *front)
    }

    /// Whether neighbours are being redirected.
    pub fn is_turning(&self) -> bool {
        !self.turns.is_empty()
    }

    /// When the next turn is due.
    pub fn due(&self) -> Option<Instant> {
        self.turns.iter().map(Turn::due).min()
    }
}

impl Turn {
    fn due(&self) -> Instant {
        self.again + if self.waits_for_card { TURN_MAX } else { TURN }
    }

    /// The same turn, due later.
    fn later(self, now: Instant) -> Self {
        Self { again: now, is_quiet: false, ..self }
    }

    /// Whether the turn of a network that keeps its MAC addresses goes on although it was due, if `late` frames came by the old wire in
    /// all turns so far: those that came since the last look show that outside switches still send there. What hosts send at the
    /// end of a quiet time may wait in a port for a thread that was busy, so the old wire is watched once more.
    fn goes_on(&mut self, late: u64, now: Instant) -> bool {
        let Some(before) = self.late else { return false };
        self.late = Some(late);
        let goes_on = before != late || !self.is_quiet;
        self.is_quiet = before == late;
        self.again = now;
        goes_on
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
