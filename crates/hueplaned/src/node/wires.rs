//! Two wires (multi-receiver): NIC ports that stand beside the card's, and whose neighbours send there.
//!
//! Flow: where networks run, and which ports have a wire → **here** → workers take and send by the other wire, and tell the
//! neighbours (ARP announcements) → a little later what still came the old way is counted, and what waited for it goes on.
//! A network in software has its neighbours send to the NICs; before it moves to the card they are told to send to the
//! card's ports again. Both wires take frames at any time, so that nothing is lost on the way; only their order may
//! change, while both ways are in use, and the report says how long that was.
//! Invariants: nobody waits; a NIC without a wire has no network's neighbours.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_intent::Select;
use hue_tables::Vid;

use super::About;
use super::card::{CardNews, Stage};
use super::core::{Message, Node};
use super::moves::{Arrived, Asked};
use crate::api::{EventKind, MigrationSteering, NetworkState};

/// How long frames of the old way are counted, and how long a move to the card waits for them.
const TURN: Duration = Duration::from_millis(20);

/// Neighbours that were told, and what waits until they have heard.
pub struct Turn {
    vid: Vid,
    /// The seat that is meant.
    broken: Option<Arc<OnceLock<String>>>,
    began: Instant,
    addresses: usize,
    /// Frames that the way they shall not take any more had brought.
    before: u64,
    to_nic: bool,
    /// How long frames were under way on the old one, once it is known.
    overlap: Option<Duration>,
    then: Then,
}

/// What waits.
pub enum Then {
    /// Nothing.
    Nothing,
    /// Who asked for a move to software is told.
    Answer(Box<Arrived>),
    /// The network moves to the card, as somebody asked or not.
    Come(Box<Option<Asked>>),
}

impl Node {
    /// Tells workers which NICs stand beside which ports.
    pub(super) fn pair_ports(&mut self) {
        let ids = &self.desired.ids.ports;
        let card = self.desired.intent.node.spec.card.iter();
        let pairs = card.flat_map(|card| card.ports.iter().zip(&card.nics));
        let pairs: Vec<(PortId, PortId)> = pairs
            .filter_map(|(front, nic)| Some((*ids.get(front.as_str())?, *ids.get(nic.as_str())?)))
            .collect();
        if let Err(error) = self.live.set_nics(&pairs) {
            tracing::error!(%error, "NICs cannot be used beside the card");
        }
        self.nics = pairs;
    }

    /// The NIC beside a port.
    pub(super) fn nic_of(&self, port: PortId) -> Option<PortId> {
        self.nics.iter().find(|(front, _)| *front == port).map(|(_, nic)| *nic)
    }

    /// The port that a NIC stands beside.
    pub(super) fn front_of(&self, nic: PortId) -> Option<PortId> {
        self.nics.iter().find(|(_, other)| *other == nic).map(|(front, _)| *front)
    }

    /// Whether a network's neighbours are to send to NICs.
    fn wants_nic(&self, name: &str) -> bool {
        let Some(entry) = self.networks.get(name) else { return false };
        let Some(have) = entry.have.as_ref().filter(|_| entry.state == NetworkState::Running) else {
            return entry.on_nic; // as it is, until it is clear
        };
        let seat = self.card.as_ref().and_then(|card| card.seats.get(&have.program.vid));
        if seat.is_some_and(|seat| seat.stage != Stage::Software) || have.network.spec.select != Select::Mac {
            return false;
        }
        let mut nics = have.program.ports.iter().filter_map(|port| self.nic_of(port.port)).peekable();
        let up = |nic| self.ports.values().any(|port| port.id == nic && port.has_wire(&self.links));
        nics.peek().is_some() && nics.all(up)
    }

    /// Has the neighbours of networks send where those are.
    pub(super) fn rewire_all(&mut self) {
        let names: Vec<String> = self
            .networks
            .iter()
            .filter(|(_, entry)| entry.on_nic || !self.nics.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            if let Some(turn) = self.rewire(&name) {
                self.turns.push(turn);
            }
        }
    }

    /// Has the neighbours of a network send where it is, if they do not.
    pub(super) fn rewire(&mut self, name: &str) -> Option<Turn> {
        let to_nic = self.wants_nic(name);
        let entry = self.networks.get_mut(name).filter(|entry| entry.on_nic != to_nic)?;
        entry.on_nic = to_nic;
        let vid = entry.have.as_ref()?.program.vid;
        if let Err(error) = self.live.use_nic(vid, to_nic) {
            tracing::error!(network = name, %error, "the network keeps its wire");
            return None;
        }
        let addresses = self.live.announce(vid);
        let wire = if to_nic { "the NICs" } else { "the card's ports" };
        let text = format!("neighbours are told to send to {wire} ({addresses} addresses)");
        self.shared.events.add(EventKind::Steered, About::Network(name), text);
        self.changed = true;
        self.tell_wires(name);
        let broken =
            self.card.as_ref().and_then(|card| card.seats.get(&vid)).map(|seat| Arc::clone(&seat.broken));
        if to_nic && let (Some(card), Some(broken)) = (&self.card, &broken) {
            let (sender, broken) = (self.sender.clone(), Arc::clone(broken));
            card.live.tell(move |runner| {
                let done = move |ns: Option<u64>| {
                    let _ = sender.send(Message::Card(CardNews::Drained(vid, broken, ns)));
                };
                runner.drained(vid, Box::new(done));
            });
        }
        let before = self.by_old_way(vid, to_nic);
        let (began, overlap, then) = (Instant::now(), None, Then::Nothing);
        Some(Turn { vid, broken, began, addresses, before, to_nic, overlap, then })
    }

    /// Frames that came to a network in software so far by the wire that is not its own now.
    fn by_old_way(&self, vid: Vid, to_nic: bool) -> u64 {
        let Some(totals) = self.live.totals(vid) else { return 0 };
        if to_nic { totals.received_packets().saturating_sub(totals.nic_packets) } else { totals.nic_packets }
    }

    /// What a network sent the old way has left the card.
    pub(super) fn drained(&mut self, vid: Vid, broken: &Arc<OnceLock<String>>, ns: Option<u64>) {
        let is_meant = |turn: &&mut Turn| {
            turn.vid == vid && turn.broken.as_ref().is_some_and(|other| Arc::ptr_eq(other, broken))
        };
        if let Some(turn) = self.turns.iter_mut().find(is_meant) {
            turn.overlap = ns.map(Duration::from_nanos);
        }
    }

    /// When the next of those that were told has heard.
    pub(super) fn turn_due(&self) -> Option<Instant> {
        self.turns.iter().map(Turn::due).min()
    }

    /// Goes on with what waited.
    pub(super) fn tend_turns(&mut self, now: Instant) {
        let due: Vec<Turn> = self.turns.extract_if(.., |turn| turn.due() <= now).collect();
        for turn in due {
            let name = self.vids.get(&turn.vid).cloned();
            let on_nic = name.as_ref().and_then(|name| self.networks.get(name)).map(|entry| entry.on_nic);
            if on_nic == Some(turn.to_nic) {
                // Once more, for those whose frame was lost.
                self.live.announce(turn.vid);
            }
            let late = self.by_old_way(turn.vid, turn.to_nic).saturating_sub(turn.before);
            let steering = MigrationSteering {
                addresses: turn.addresses as u64,
                watched_us: micros(turn.began.elapsed()),
                late,
                overlap_us: turn.overlap.map(micros),
            };
            match turn.then {
                Then::Nothing => {}
                Then::Answer(arrived) => self.answer(turn.vid, *arrived, Some(steering)),
                Then::Come(asked) => self.come_on(turn.vid, turn.broken, *asked, Some(steering)),
            }
        }
    }
}

impl Turn {
    fn due(&self) -> Instant {
        self.began + TURN
    }

    /// The same, and this waits for it.
    pub(super) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
