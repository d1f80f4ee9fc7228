//! The routes of one network: what its namespace says, and what of that its table does not have yet.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind, Keys};
use hue_routing::{AnyRib, RibPort, Session};
use hue_substrate::{Changes, Entries, HopChanges, each_routes};
use hue_tables::NextHop;

use super::Loaded;
use super::refused::Refused;
use crate::node::view::Counts;
use crate::node::wanted::{Form, has_routes};

/// An update in progress.
pub(super) struct Piece {
    pub(super) hops: HopChanges,
    pub(super) routes: Changes,
    pub(super) done: usize,
}

impl Piece {
    /// Only routes.
    pub(super) fn of(routes: Changes) -> Self {
        Self { hops: HopChanges::default(), routes, done: 0 }
    }
}

/// See the head of this file.
pub struct Table {
    /// The network's name.
    pub(super) name: String,
    /// What its RIB is like.
    pub(super) form: Form,
    /// Gateways of routes by source.
    pub(super) gateways: Vec<IpAddr>,
    pub(super) rib: AnyRib,
    pub(super) session: Option<Session>,
    /// Update that is not yet in its table.
    pub(super) piece: Option<Piece>,
    /// Routes that its table has no room for.
    pub(super) refused: Refused,
    /// Whether it is queued because its table has changes to catch up with.
    pub(super) is_behind: bool,
    /// Its table does not match the updates that were handed out, and must be loaded as a whole.
    pub(super) is_torn: bool,
    pub(super) counts: Arc<Counts>,
}

impl Table {
    /// A table of a loaded network, still empty.
    pub(super) fn new(loaded: &Loaded) -> Self {
        let Loaded { name, form, gateways, counts, .. } = loaded;
        Self {
            name: name.clone(),
            form: *form,
            gateways: gateways.clone(),
            rib: form.rib(Vec::new()),
            session: None,
            piece: None,
            refused: Refused::default(),
            is_behind: false,
            is_torn: false,
            counts: Arc::clone(counts),
        }
    }

    /// Whether its routes are those of its namespace. Otherwise changes there are monitored only for drift.
    pub const fn has_routes(&self) -> bool {
        has_routes(self.form.keys)
    }

    /// Whether its keys begin with the number of a slice.
    pub fn has_slices(&self) -> bool {
        self.form.keys == Keys::Slices
    }

    /// The network has these virtual ports: its table is filled from the start.
    pub(super) fn set_ports(&mut self, ports: Vec<RibPort>) {
        self.rib.set_ports(ports);
        self.piece = None;
        self.refused.forget();
        self.is_torn = false;
    }

    /// The table is empty and no longer counts.
    pub(super) fn forget_counts(&self) {
        for count in [&self.counts.refused, &self.counts.routes, &self.counts.neighbours] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// The routing information base.
    pub fn rib(&self) -> &AnyRib {
        &self.rib
    }

    /// The refused routes.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Whether its routes lead to an address that is not its network's own.
    pub fn reaches(&self, address: IpAddr) -> bool {
        let longest = self.rib.routes_holding(address).pop();
        let is_own = |kind| matches!(kind, AdjacencyKind::Local | AdjacencyKind::None);
        longest.is_some_and(|row| !is_own(row.adjacency.kind()))
    }

    /// Whether it must be loaded as a whole.
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Whether changes in its namespace are monitored.
    pub fn is_monitored(&self) -> bool {
        self.session.is_some()
    }

    /// The next hops that its routes name; none if it has no routes.
    pub fn published_rows(&self) -> Vec<Adjacency> {
        if self.has_routes() { self.rib.published_rows() } else { Vec::new() }
    }

    /// The groups among the next hops.
    pub fn published_groups(&self) -> Vec<(NextHop, Slots)> {
        if self.has_routes() { self.rib.published_groups() } else { Vec::new() }
    }

    /// Its present or future contents: next hops and routes, without the refused ones.
    pub fn published(&self) -> (Vec<Adjacency>, Entries) {
        let (hops, mut routes) = self.rib.published();
        if !self.refused.is_empty() {
            each_routes!(&mut routes, routes => {
                routes.retain(|(prefix, _)| !self.refused.contains((*prefix).into()));
            });
        }
        (hops, routes)
    }
}
