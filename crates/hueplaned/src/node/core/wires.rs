//! The core, for links beside the card's ports.

use std::time::Instant;

use hue_card::CardCommand;
use hue_demux::PortId;
use hue_intent::Select;
use hue_tables::Vid;

use super::Node;
use crate::api::{EventKind, MigrationSteering, NetworkState};
use crate::node::events::About;
use crate::node::moves::{self, Stage, Then};
use crate::node::networks::{Entry, Input};
use crate::node::wires::{TURN_MAX, Turn, micros};

impl Node {
    /// Tells workers which NICs are beside which ports.
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
        self.wires.set_nics(pairs);
    }

    /// Whether a network's neighbours should send to NICs.
    fn wants_nic(&self, name: &str) -> bool {
        let Some(entry) = self.networks.get(name) else { return false };
        let Some(have) = entry.have().filter(|_| entry.state() == NetworkState::Running) else {
            return entry.is_on_nic(); // unchanged until its state is clear
        };
        let learns = have.program.settings.learning().is_some();
        match self.moves.seats().stage(have.program.vid) {
            Some(Stage::Card) => return false,
            // While it moves, a switch has the card's wire: its hosts have one place, and it forwards from one wire only.
            Some(Stage::Coming | Stage::Leaving) if learns => return false,
            Some(Stage::Coming) => return entry.is_on_nic(), // until it has arrived
            Some(Stage::Software | Stage::Leaving) | None => {}
        }
        if have.network.spec.select != Select::Mac && !learns {
            return false;
        }
        let mut nics = have.program.ports.iter().filter_map(|port| self.wires.nic_of(port.port)).peekable();
        nics.peek().is_some() && nics.all(|nic| self.ports.has_wire(nic))
    }

    /// Makes neighbours of all networks send to where the network runs.
    pub(super) fn rewire_all(&mut self) {
        let names: Vec<String> = self
            .networks
            .iter()
            .filter(|(_, entry)| entry.is_on_nic() || self.wires.has_nics())
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            if let Some(turn) = self.rewire(&name) {
                self.wires.begin(turn);
            }
        }
    }

    /// Makes a network's neighbours send to where it runs, if they do not.
    pub(super) fn rewire(&mut self, name: &str) -> Option<Turn> {
        let to_nic = self.wants_nic(name);
        let entry = self.networks.get(name).filter(|entry| entry.is_on_nic() != to_nic)?;
        let program = entry.program().map(|program| (program.vid, program.settings.learning().is_some()));
        self.give_networks(Input::Steered(name.to_owned(), to_nic));
        let (vid, learns) = program?;
        if let Err(error) = self.live.use_nic(vid, to_nic) {
            tracing::error!(network = name, %error, "the network cannot be switched between NICs and card ports");
            return None;
        }
        // Start before the neighbours are redirected, so that frames in between count as late and are not missed.
        let (began, by_nic) = (Instant::now(), self.by_nic(vid));
        let seat = self.moves.seats().id(vid);
        let mut waits_for_card = false;
        // A switch has left the card before it changes to the NICs.
        if to_nic
            && !learns
            && let (Some(card), Some(seat)) = (&self.card, seat)
        {
            let began_ns = card.live.now_ns();
            waits_for_card = card.live.tell(CardCommand::Drain { seat, began_ns });
        }
        let neighbours = self.live.announce(vid);
        let wire = if to_nic { "the NICs" } else { "the card's ports" };
        let text = if learns {
            format!("announcements in the names of {neighbours} hosts make outside switches send to {wire}")
        } else {
            format!("ARP announcements redirect {neighbours} neighbours to {wire}")
        };
        self.shared.events.add(EventKind::Steered, About::Network(name), text);
        self.changed = true;
        self.give_networks(Input::TellCarriers(name.to_owned()));
        let late = learns.then(|| self.live.late_frames(vid));
        let (overlap, by_card, then) = (None, None, Then::Nothing);
        Some(Turn {
            vid,
            seat,
            began,
            again: began,
            neighbours,
            late,
            is_quiet: false,
            by_nic,
            to_nic,
            waits_for_card,
            overlap,
            by_card,
            then,
        })
    }

    /// Frames of a network received by NICs so far.
    fn by_nic(&self, vid: Vid) -> u64 {
        self.live.totals(vid).map_or(0, |totals| totals.nic_packets)
    }

    /// Continues work that waits for turns that are due.
    pub(super) fn tend_turns(&mut self, now: Instant) {
        for mut turn in self.wires.take_due(now) {
            if turn.began.elapsed() < TURN_MAX {
                // A switch with many hosts tells them one after another.
                if self.live.is_announcing(turn.vid) {
                    self.wires.begin(turn.later(now));
                    continue;
                }
                let late = turn.late.map_or(0, |_| self.live.late_frames(turn.vid));
                if turn.goes_on(late, now) {
                    self.wires.begin(turn);
                    continue;
                }
            }
            let on_nic = self.networks.with_vid(turn.vid).map(Entry::is_on_nic);
            if on_nic == Some(turn.to_nic) {
                // Announces again, in case a frame was lost.
                self.live.announce(turn.vid);
                if let Err(error) = self.live.end_turn(turn.vid) {
                    tracing::error!(vid = turn.vid.get(), %error, "the old wire of a switch stays open");
                }
            }
            // If the old link is the card's, its late frames are counted from the numbers that the card's thread reports.
            let late = if turn.to_nic { 0 } else { self.by_nic(turn.vid).saturating_sub(turn.by_nic) };
            let steering = MigrationSteering {
                neighbours: turn.neighbours as u64,
                watched_us: micros(turn.began.elapsed()),
                late,
                overlap_us: turn.overlap.map(micros),
            };
            match turn.then {
                Then::Nothing => {}
                Then::Answer(arrived) => self.answer(*arrived, Some(steering)),
                Then::Come(asked) => {
                    self.give_moves(moves::Input::ComeOn(turn.vid, turn.seat, *asked, Some(steering)));
                }
                Then::Leave(asked) => {
                    let asked = asked.map(|asked| asked.steered(steering, turn.by_card));
                    self.give_moves(moves::Input::LeaveOn(turn.seat, asked));
                }
            }
        }
    }
}
