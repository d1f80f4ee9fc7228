//! The core, for routes: gives them their inputs, and applies their effects.

use std::time::Instant;

use hue_planes::Adjacency;
use hue_planes::group::Slots;
use hue_substrate::{Entries, Mode, Program, Substrate, SubstrateError};
use hue_tables::{NextHop, Vid};

use super::Node;
use crate::node::card::PIECE_ROWS;
use crate::node::events::About;
use crate::node::networks::{self, Entry};
use crate::node::routes::{Around, Effect, Input, Table};

impl Node {
    /// Gives routes an input. Its effects are applied before this returns, each with all that follows from it before the
    /// next one.
    pub(in crate::node) fn give_routes(&mut self, input: Input) {
        self.give_routes_at(input, Instant::now());
    }

    /// The same, at this time.
    pub(super) fn give_routes_at(&mut self, input: Input, now: Instant) {
        let (live, card, moves) = (&self.live, &self.card, &self.moves);
        let around = Around {
            account: &|vid| live.account(vid).unwrap_or_default(),
            // One command to the card follows each piece.
            follows_max: &|vid| match card {
                Some(_) if moves.seats().has_table(vid) => PIECE_ROWS,
                _ => usize::MAX,
            },
            now,
        };
        for effect in self.routes.take(input, &around) {
            self.apply_to_routes(effect);
        }
    }

    fn apply_to_routes(&mut self, effect: Effect) {
        match effect {
            Effect::Then(input) => self.give_routes(input),
            Effect::Tell(kind, vid, text) => {
                if let Some(name) = self.networks.name_of(vid) {
                    self.shared.events.add(kind, About::Network(name), text);
                }
            }
            Effect::Changed => self.changed = true,
            Effect::Suspect(vid) => self.give_networks(networks::Input::Suspect(vid)),
            Effect::LostInterface(vid, interface) => {
                self.give_networks(networks::Input::LostInterface(vid, interface));
            }
            Effect::Degrade(vid, reason) => {
                self.with_name(vid, |node, name| node.give_networks(networks::Input::Degrade(name, reason)));
            }
            Effect::Resync(vid) => self.monitor.resync(vid),
            Effect::Probe(vid, addresses) => {
                let Some(have) = self.networks.with_vid(vid).and_then(Entry::have) else { return };
                for (vport, address) in addresses {
                    if let Some(port) = have.ports.get(usize::from(vport)) {
                        self.monitor.probe(vid, &port.interface, address);
                    }
                }
            }
            Effect::SetAddresses(vid, addresses) => self.live.set_addresses(vid, &addresses),
            Effect::SetNeighbours(vid, neighbours) => self.live.neighbours(vid, &neighbours),
            Effect::Update(piece) => {
                let update = piece.routes.update().with_mode(Mode::Fitting);
                let update = update.with_hops(&piece.hops.rows).with_groups(&piece.hops.groups);
                let result = self.live.update(piece.vid, &update).map_err(|error| error.to_string());
                let vid = piece.vid;
                self.give_routes(Input::Updated(piece, result));
                self.tell_passengers(vid);
            }
            Effect::Mirror(vid, hops, routes) => self.mirror(vid, hops, routes),
            Effect::LoadWhole(vid, next_hops, groups, routes) => {
                self.load_table(vid, (next_hops, groups), routes);
                self.tell_passengers(vid);
            }
            Effect::Withdraw(vid, routes) => {
                if let Err(error) = self.live.update(vid, &routes.update()) {
                    let network = self.networks.name_of(vid);
                    tracing::error!(network, %error, "routes cannot be withdrawn");
                }
            }
            Effect::Partly(vid) => self.give_networks(networks::Input::Partly(vid)),
            Effect::Replaced(vid) => self.with_name(vid, |node, name| node.seat_anew(&[name])),
            Effect::Whole(vid) => self.give_networks(networks::Input::Whole(vid)),
            Effect::Through(vid) => self.give_networks(networks::Input::Through(vid)),
        }
    }

    /// Loads a network's table as a whole. If it does not fit, its routes are left for pieces.
    fn load_table(
        &mut self,
        vid: Vid,
        (next_hops, groups): (Vec<Adjacency>, Vec<(NextHop, Slots)>),
        routes: Entries,
    ) {
        let Some(have) = self.networks.with_vid(vid).and_then(Entry::have).cloned() else { return };
        let mut program = Program { next_hops, groups, entries: routes, ..have.program.clone() };
        let mut loaded = self.live.load(std::slice::from_ref(&program));
        let none = Entries::none(program.kind());
        let mut rest = none.clone();
        if let Err(SubstrateError::Table { .. }) = &loaded {
            // It does not fit as a whole: loads piece by piece what fits.
            rest = std::mem::replace(&mut program.entries, none);
            loaded = self.live.load(&[program]);
        }
        self.give_routes(Input::WholeLoaded(vid, rest, loaded.map_err(|error| error.to_string())));
    }

    /// The routes of a network, if it is loaded.
    pub(in crate::node) fn table_of(&self, entry: &Entry) -> Option<&Table> {
        self.routes.table(entry.vid()?)
    }

    /// Sets the table quota of a loaded network from its document.
    pub(super) fn set_quota(&mut self, name: &str) {
        let Some(have) = self.networks.get(name).and_then(Entry::have) else { return };
        let (vid, quota) = (have.program.vid, have.network.spec.table.map(|table| table.quota.bytes()));
        let before = self.live.account(vid).ok().and_then(|account| account.bytes_quota);
        if before != quota {
            if let Err(error) = self.live.set_quota(vid, quota) {
                tracing::error!(network = name, %error, "the table quota cannot be set");
            }
            self.give_routes(Input::TryAgain(vid));
        }
    }
}
