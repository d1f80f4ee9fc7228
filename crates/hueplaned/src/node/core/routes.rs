//! The core, for routes: gives them their inputs, and applies their effects.

use std::time::Instant;

use hue_planes::Adjacency;
use hue_planes::group::Slots;
use hue_substrate::{Entries, Mode, Program, Substrate, SubstrateError};
use hue_tables::{NextHop, Vid};

use super::Node;
use crate::api::NetworkState;
use crate::node::card::PIECE_ROWS;
use crate::node::events::About;
use crate::node::networks::Entry;
use crate::node::routes::{Around, Effect, Input, Table};

impl Node {
    /// Gives routes an input. Its effects are applied before this returns, each with all that follows from it before the
    /// next one.
    pub(in crate::node) fn give_routes(&mut self, input: Input) {
        self.give_routes_at(input, Instant::now());
    }

    /// The same, at this time.
    pub(super) fn give_routes_at(&mut self, input: Input, now: Instant) {
        let (live, card) = (&self.live, &self.card);
        let around = Around {
            account: &|vid| live.account(vid).unwrap_or_default(),
            // One command to the card follows each piece.
            follows_max: &|vid| match card {
                Some(card) if card.has_table(vid) => PIECE_ROWS,
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
                if let Some(name) = self.vids.get(&vid) {
                    self.shared.events.add(kind, About::Network(name), text);
                }
            }
            Effect::Changed => self.changed = true,
            Effect::Suspect(vid) => {
                if let Some(entry) = self.loaded_as(vid) {
                    entry.drift.look = true;
                }
            }
            Effect::LostInterface(vid, interface) => {
                self.with_name(vid, |node, name| node.lost_interface(name, &interface));
            }
            Effect::Degrade(vid, reason) => self.with_name(vid, |node, name| node.degrade(name, reason)),
            Effect::Resync(vid) => self.monitor.resync(vid),
            Effect::Probe(vid, addresses) => {
                let entry = self.vids.get(&vid).and_then(|name| self.networks.get(name));
                let Some(have) = entry.and_then(|entry| entry.have.as_ref()) else { return };
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
                self.with_name(vid, Self::tell_passengers);
            }
            Effect::Mirror(vid, hops, routes) => self.mirror(vid, &hops, &routes),
            Effect::LoadWhole(vid, next_hops, groups, routes) => {
                self.load_table(vid, (next_hops, groups), routes);
                self.with_name(vid, Self::tell_passengers);
            }
            Effect::Withdraw(vid, routes) => {
                if let Err(error) = self.live.update(vid, &routes.update()) {
                    let network = self.vids.get(&vid);
                    tracing::error!(network, %error, "routes cannot be withdrawn");
                }
            }
            Effect::Partly(vid) => {
                if let Some(entry) = self.loaded_as(vid).filter(|entry| entry.have == entry.want) {
                    entry.state = NetworkState::Pending;
                }
            }
            Effect::Replaced(vid) => self.with_name(vid, |node, name| node.seat_anew(&[name])),
            Effect::Whole(vid) => {
                if self.loaded_as(vid).is_some_and(|entry| entry.have == entry.want) {
                    self.with_name(vid, Self::announce);
                }
            }
            Effect::Through(vid) => {
                let is_new =
                    |entry: &mut Entry| entry.state == NetworkState::Pending && entry.have == entry.want;
                if self.loaded_as(vid).is_some_and(is_new) {
                    self.with_name(vid, Self::announce);
                }
            }
        }
    }

    /// The network that has this id in the data plane.
    fn loaded_as(&mut self, vid: Vid) -> Option<&mut Entry> {
        self.networks.get_mut(self.vids.get(&vid)?)
    }

    fn with_name(&mut self, vid: Vid, work: impl FnOnce(&mut Self, &str)) {
        if let Some(name) = self.vids.get(&vid).cloned() {
            work(self, &name);
        }
    }

    /// Loads a network's table as a whole. If it does not fit, its routes are left for pieces.
    fn load_table(
        &mut self,
        vid: Vid,
        (next_hops, groups): (Vec<Adjacency>, Vec<(NextHop, Slots)>),
        routes: Entries,
    ) {
        let Some(have) = self.loaded_as(vid).and_then(|entry| entry.have.clone()) else { return };
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
        self.routes.table(entry.have.as_ref()?.program.vid)
    }

    /// Sets the table quota of a loaded network from its document.
    pub(super) fn set_quota(&mut self, name: &str) {
        let Some(have) = self.networks.get(name).and_then(|entry| entry.have.as_ref()) else { return };
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
