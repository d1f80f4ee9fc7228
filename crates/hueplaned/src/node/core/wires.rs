//! The core, for links beside the card's ports: gives wires their inputs, and applies their effects.

use std::time::Instant;

use hue_card::{CardCommand, SeatId};
use hue_demux::PortId;
use hue_intent::Select;
use hue_tables::Vid;

use super::Node;
use crate::api::{MigrationSteering, NetworkState};
use crate::node::events::About;
use crate::node::moves::{self, Then};
use crate::node::networks::{self, Entry};
use crate::node::wires::{Around, Begin, Begun, Effect, Input, Loaded, Network};

impl Node {
    /// Gives wires an input. Its effects are applied before this returns, each with all that follows from it before the
    /// next one.
    pub(super) fn give_wires(&mut self, input: Input) {
        self.apply_all(input, Self::take_wires, Self::apply_to_wires);
    }

    fn take_wires(&mut self, input: Input) -> Vec<Effect> {
        let Self { wires, networks, moves, ports, live, .. } = self;
        let around = Around {
            names: &|all| {
                let some = networks.iter().filter(|(_, entry)| all || entry.is_on_nic());
                some.map(|(name, _)| name.clone()).collect()
            },
            network: &|name| {
                let entry = networks.get(name)?;
                let loaded = entry.have().map(|have| Loaded {
                    vid: have.program.vid,
                    is_running: entry.state() == NetworkState::Running,
                    stage: moves.seats().stage(have.program.vid),
                    keeps_macs: have.program.keeps_macs(),
                    by_mac: have.network.spec.select == Select::Mac,
                    ports: have.program.ports.iter().map(|port| port.port).collect(),
                });
                Some(Network { on_nic: entry.is_on_nic(), loaded })
            },
            has_wire: &|port| ports.has_wire(port),
            is_announcing: &|vid| live.is_announcing(vid),
            late_frames: &|vid| live.late_frames(vid),
            by_nic: &|vid| live.totals(vid).map_or(0, |totals| totals.nic_packets),
            on_nic: &|vid| networks.with_vid(vid).map(Entry::is_on_nic),
            now: Instant::now(),
        };
        wires.take(input, &around)
    }

    /// Returns the input that follows, if there is one.
    fn apply_to_wires(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Then(input) => return Some(input),
            Effect::Steered(name, on_nic) => self.give_networks(networks::Input::Steered(name, on_nic)),
            Effect::Begin(begin) => {
                let begun = self.begin_turn(&begin);
                return Some(Input::Begun(begin, begun));
            }
            Effect::Tell(kind, name, text) => self.shared.events.add(kind, About::Network(&name), text),
            Effect::Changed => self.changed = true,
            Effect::TellCarriers(name) => self.give_networks(networks::Input::TellCarriers(name)),
            Effect::AskCard(seat) => {
                if !self.ask_card_to_drain(seat) {
                    return Some(Input::Drained(seat, None, None));
                }
            }
            Effect::End(vid) => {
                self.live.announce(vid);
                if let Err(error) = self.live.end_turn(vid) {
                    tracing::error!(vid = vid.get(), %error, "the old wire of a network stays open");
                }
            }
            Effect::GoOn(seat, then, steering) => self.go_on(seat, then, steering),
        }
        None
    }

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
        self.give_wires(Input::SetNics(pairs));
    }

    /// Switches a network to its other wires, and tells its neighbours.
    fn begin_turn(&mut self, begin: &Begin) -> Option<Begun> {
        let Begin { name, vid, to_nic, keeps_macs, .. } = begin;
        if let Err(error) = self.live.use_nic(*vid, *to_nic) {
            tracing::error!(network = name, %error, "the network cannot be switched between NICs and card ports");
            return None;
        }
        // Start before the neighbours are redirected, so that frames in between count as late and are not missed.
        let (began, by_nic) = (Instant::now(), self.by_nic(*vid));
        let seat = self.moves.seats().id(*vid);
        // A network that keeps its MAC addresses has left the card before it changes to the NICs.
        let waits_for_card = *to_nic && !*keeps_macs && seat.is_some_and(|seat| self.ask_card_to_drain(seat));
        let neighbours = self.live.announce(*vid);
        Some(Begun { seat, began, neighbours, by_nic, waits_for_card })
    }

    /// Asks the card's thread when the frames of a network with this seat have left the card; `false` if there is no card.
    fn ask_card_to_drain(&self, seat: SeatId) -> bool {
        self.card.as_ref().is_some_and(|card| {
            let began_ns = card.live.now_ns();
            card.live.tell(CardCommand::Drain { seat, began_ns })
        })
    }

    /// Frames of a network received by NICs so far.
    fn by_nic(&self, vid: Vid) -> u64 {
        self.live.totals(vid).map_or(0, |totals| totals.nic_packets)
    }

    /// Neighbours of the network with this seat send to where it runs: what has waited for that goes on.
    fn go_on(
        &mut self,
        seat: Option<SeatId>,
        then: Then,
        steering: Option<(MigrationSteering, Option<u64>)>,
    ) {
        match then {
            Then::Nothing => {}
            Then::Answer(arrived) => self.answer(*arrived, steering.map(|(steering, _)| steering)),
            Then::Come(asked) => {
                let steering = steering.map(|(steering, _)| steering);
                self.give_moves(moves::Input::ComeOn(seat, *asked, steering));
            }
            Then::Leave(asked) => {
                let asked = match steering {
                    Some((steering, by_card)) => asked.map(|asked| asked.steered(steering, by_card)),
                    None => *asked,
                };
                self.give_moves(moves::Input::LeaveOn(seat, asked));
            }
        }
    }
}
