//! The core, for routes: from the namespaces' kernels to the tables of the data plane.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hue_routing::{Batch, Change as How, Event, RibUpdate};
use hue_substrate::{Program, Substrate, SubstrateError};
use hue_tables::Vid;

use super::Node;
use crate::api::NetworkState;
use crate::node::card::PIECE_ROWS;
use crate::node::drift;
use crate::node::refused::RETRY_ROUTES;
use crate::node::tables::{PIECE_ROUTES, PROBES_MAX, Piece, own_bytes};

impl Node {
    /// Takes a batch of events into the routing information base of its network.
    pub(super) fn feed(&mut self, batch: Batch) {
        let vid = batch.vid;
        let Some(name) = self.vids.get(&vid).cloned() else { return };
        let Some(entry) = self.networks.get_mut(&name) else { return };
        if entry.session != Some(batch.session) {
            return;
        }
        let mut lost = Vec::new();
        for event in batch.events {
            match &event {
                Event::Link(How::Removed, link) => lost.push(link.name.clone()),
                Event::Closed(reason) => {
                    let reason = format!("changes of its routes cannot be monitored: {reason}");
                    entry.session = None;
                    return self.degrade(&name, reason);
                }
                _ => {}
            }
            entry.drift.look |= drift::is_suspect(&event);
            entry.rib.apply(event);
        }
        if entry.rib.take_resync_needed() {
            self.monitor.resync(vid);
        }
        self.fall_behind(vid);
        lost.iter().for_each(|interface| self.lost_interface(&name, interface));
    }

    /// A network's table has changes to catch up with.
    pub(in crate::node) fn fall_behind(&mut self, vid: Vid) {
        let Some(entry) = self.vids.get(&vid).and_then(|name| self.networks.get_mut(name)) else { return };
        if !std::mem::replace(&mut entry.behind, true) {
            self.behind.push_back(vid);
        }
    }

    /// Applies one piece of a network's routes. Returns whether there is more.
    pub(super) fn catch_up(&mut self, vid: Vid) -> bool {
        let Some(name) = self.vids.get(&vid).cloned() else { return false };
        let on_card = self.has_table_on_card(vid);
        let Some(entry) = self.networks.get_mut(&name) else { return false };
        if entry.torn {
            entry.behind = false;
            // Load the routes known so far; if there are none yet, keep the table.
            if entry.rib.is_synchronized() {
                self.load_whole(&name);
            }
            return false;
        }
        if entry.piece.is_none() {
            if let Some(update) = entry.rib.take_update() {
                let RibUpdate { hops, routes, neighbours, addresses, .. } = update;
                if let Some(addresses) = addresses {
                    self.live.set_addresses(vid, &addresses);
                }
                if let Some(neighbours) = neighbours {
                    self.live.neighbours(vid, &neighbours);
                    entry.counts.neighbours.store(neighbours.len() as u64, Ordering::Relaxed);
                }
                entry.piece = Some(Piece { hops, routes, done: 0 });
            } else if let Some(routes) = entry.refused.next(&entry.rib, own_bytes(&self.live, vid)) {
                entry.piece = Some(Piece { hops: Vec::new(), routes, done: 0 });
            } else {
                entry.behind = false;
                if entry.rib.is_synchronized() {
                    self.say_refused(&name, Instant::now());
                    self.is_through(&name);
                }
                return false;
            }
        }
        let mut size = if entry.refused.is_empty() { PIECE_ROUTES } else { RETRY_ROUTES };
        if on_card {
            // One job of the card's thread follows each piece.
            size = size.min(PIECE_ROWS);
        }
        let Some(piece) = &mut entry.piece else { return false };
        let end = piece.routes.len().min(piece.done + size);
        let hops = std::mem::take(&mut piece.hops);
        let mut routes = piece.routes.get(piece.done..end).unwrap_or_default().to_vec();
        match self.live.update_fitting(vid, &hops, &routes) {
            Ok(refusals) => {
                piece.done = end;
                let through = end == piece.routes.len();
                if through {
                    entry.piece = None;
                }
                let refused = !refusals.at.is_empty();
                entry.refused.take(&mut routes, refusals, own_bytes(&self.live, vid));
                if through || refused {
                    self.look_at_refused(&name, Instant::now());
                }
                self.mirror(vid, &hops, &routes);
                true
            }
            Err(error) => {
                entry.piece = None;
                entry.torn = true;
                entry.behind = false;
                self.degrade(&name, format!("its routes do not fit: {error}"));
                false
            }
        }
    }

    /// A network's table matches its namespace.
    fn is_through(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(have) = &entry.have else { return };
        let vid = have.program.vid;
        for (vport, address) in entry.rib.unresolved().into_iter().take(PROBES_MAX) {
            if let Some(port) = have.ports.get(usize::from(vport)) {
                self.monitor.probe(vid, &port.interface, address);
            }
        }
        if entry.state == NetworkState::Pending && entry.have == entry.want {
            self.announce(name);
        }
    }

    /// Loads a network's table as a whole, when updates no longer suffice.
    pub(super) fn load_whole(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(have) = entry.have.clone() else { return };
        let vid = have.program.vid;
        // The whole table includes changes made meanwhile.
        while entry.rib.take_update().is_some() {}
        entry.piece = None;
        entry.refused.forget();
        let (next_hops, routes) = entry.rib.published();
        let addresses: Vec<_> = entry.rib.addresses().collect();
        let neighbours: Vec<_> = entry.rib.neighbours().collect();
        let mut program = Program { next_hops, routes, ..have.program.clone() };
        let mut loaded = self.live.load(std::slice::from_ref(&program));
        let mut rest = Vec::new();
        if let Err(SubstrateError::Table { .. }) = &loaded {
            // It does not fit as a whole: loads piece by piece what fits.
            rest = std::mem::take(&mut program.routes);
            loaded = self.live.load(&[program]);
        }
        match loaded {
            Ok(()) => {
                entry.torn = false;
                entry.counts.neighbours.store(neighbours.len() as u64, Ordering::Relaxed);
                self.live.set_addresses(vid, &addresses);
                self.live.neighbours(vid, &neighbours);
                let as_wanted = entry.have == entry.want;
                let whole = rest.is_empty();
                if !whole {
                    let routes = rest.into_iter().map(|(prefix, hop)| (prefix, Some(hop))).collect();
                    entry.piece = Some(Piece { hops: Vec::new(), routes, done: 0 });
                    if as_wanted {
                        entry.state = NetworkState::Pending;
                    }
                    self.fall_behind(vid);
                }
                self.look_at_refused(name, Instant::now());
                // Its table on the card may be outdated.
                self.seat_anew(&[name]);
                if whole && as_wanted {
                    self.announce(name);
                }
            }
            Err(error) => self.degrade(name, format!("its routes do not fit: {error}")),
        }
    }
}
