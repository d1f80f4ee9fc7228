//! Routes: from the namespaces' kernels to the tables of the data plane.
//!
//! Flow: monitor → batches, results of the data plane ([`Input`]) → one [`AnyRib`] per network → updates →
//! **pieces** of at most [`PIECE_ROUTES`] → [`Effect`]s, which the core applies in their order. Invariants: next hops of
//! an update are set before its first route; an update is completed before the next one is taken, because the next one
//! may reuse rows; a network with many changes gets one piece per turn, like every other. This part knows no other
//! part: it gets what it must know of them as [`Around`].

mod refused;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hue_planes::Adjacency;
use hue_planes::group::Slots;
use hue_routing::{AnyUpdate, Batch, Change as How, Event, RibPort, Session};
use hue_substrate::{Changes, Entries, HopChanges, Refusals};
use hue_tables::{Account, NextHop, Vid};
use hue_wire::Mac;

use self::refused::{RETRY_EACH, RETRY_ROUTES};
use self::table::Piece;
pub use self::table::Table;
use super::drift;
use super::view::Counts;
use super::wanted::Form;
use crate::api::EventKind;

/// Maximum routes set at once.
const PIECE_ROUTES: usize = 4096;
/// Maximum next hops without a known MAC address probed at once.
const PROBES_MAX: usize = 32;

/// The routes of all loaded networks.
#[derive(Default)]
pub struct Routes {
    tables: BTreeMap<Vid, Table>,
    /// Networks whose tables have changes to catch up with, in turn.
    behind: VecDeque<Vid>,
}

/// What routes must know of other parts.
pub struct Around<'a> {
    /// Sizes of a network's table in software.
    pub account: &'a dyn Fn(Vid) -> Account,
    /// Most routes of a network that whoever follows its table takes at once.
    pub follows_max: &'a dyn Fn(Vid) -> usize,
    /// The time.
    pub now: Instant,
}

/// Something that concerns routes.
pub enum Input {
    /// A network was loaded, with these virtual ports.
    Load(Vid, Loaded),
    /// It is no longer loaded.
    Unload(Vid),
    /// Its namespace is a new one: what was known is outdated.
    Renew(Vid),
    /// Its namespace is monitored.
    Monitored(Vid, Session),
    /// Notifications of the monitor.
    Batch(Batch),
    /// Notifications, whatever the session.
    Events(Vid, Vec<Event>),
    /// A network's table has changes to catch up with.
    Behind(Vid),
    /// Apply one piece of the network whose turn it is.
    CatchUp,
    /// A piece was applied; or why not.
    Updated(Update, Result<Refusals, String>),
    /// It is a network's turn again, after all others.
    Again(Vid),
    /// Load a network's table as a whole, because updates no longer suffice.
    LoadWhole(Vid),
    /// The whole table was loaded, but for these routes; or why not.
    WholeLoaded(Vid, Entries, Result<(), String>),
    /// Empty a network's table: its rows of next hops will mean something else.
    Clear(Vid),
    /// There may be room for refused routes.
    TryAgain(Vid),
    /// Retry refused routes that are due.
    Tend,
}

/// A loaded network.
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// What its RIB has to be like.
    pub form: Form,
    /// Gateways of its routes by source.
    pub gateways: Vec<IpAddr>,
    /// Its virtual ports.
    pub ports: Vec<RibPort>,
    /// Whether it was loaded before.
    pub is_known: bool,
    /// Its numbers for the view.
    pub counts: Arc<Counts>,
}

/// A piece of an update.
pub struct Update {
    /// The network.
    pub vid: Vid,
    /// Next hops, to be set first.
    pub hops: HopChanges,
    /// Routes.
    pub routes: Changes,
    /// How many routes of the whole update are done with this piece.
    end: usize,
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// Report an event about a network.
    Tell(EventKind, Vid, String),
    /// The view of a network has changed.
    Changed,
    /// Somebody may have changed the network's namespace.
    Suspect(Vid),
    /// An interface of the network's namespace is gone.
    LostInterface(Vid, String),
    /// The network has failed; it is retried later.
    Degrade(Vid, String),
    /// Have the monitor list everything again.
    Resync(Vid),
    /// Have the kernel find out the MAC addresses of these neighbours, by virtual port.
    Probe(Vid, Vec<(u16, IpAddr)>),
    /// The network's own addresses, by virtual port.
    SetAddresses(Vid, Vec<(u16, IpAddr, u8)>),
    /// The network's neighbours, by virtual port.
    SetNeighbours(Vid, Vec<(u16, IpAddr, Mac)>),
    /// Apply this to software's table; the answer is [`Input::Updated`].
    Update(Update),
    /// Software's table has changed: the card follows.
    Mirror(Vid, HopChanges, Changes),
    /// Load these next hops and routes into software's table, or those that fit; the answer is [`Input::WholeLoaded`].
    LoadWhole(Vid, Vec<Adjacency>, Vec<(NextHop, Slots)>, Entries),
    /// Remove these routes from software's table.
    Withdraw(Vid, Changes),
    /// Not all of a whole table fitted at once: the network is pending.
    Partly(Vid),
    /// Software's table was replaced: the card's may be outdated.
    Replaced(Vid),
    /// The network's table was loaded as a whole.
    Whole(Vid),
    /// The network's table matches its namespace.
    Through(Vid),
}

impl Routes {
    /// Takes an input.
    pub fn take(&mut self, input: Input, around: &Around<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Load(vid, loaded) => self.load(vid, loaded),
            Input::Unload(vid) => {
                if let Some(table) = self.tables.remove(&vid) {
                    table.forget_counts();
                }
            }
            Input::Renew(vid) => self.renew(vid),
            Input::Monitored(vid, session) => {
                if let Some(table) = self.tables.get_mut(&vid) {
                    table.session = Some(session);
                }
            }
            Input::Batch(batch) => self.feed(batch, &mut out),
            Input::Events(vid, events) => {
                if let Some(table) = self.tables.get_mut(&vid) {
                    table.rib.apply_all(events);
                    self.fall_behind(vid);
                }
            }
            Input::Behind(vid) => self.fall_behind(vid),
            Input::CatchUp => {
                if let Some(vid) = self.behind.pop_front() {
                    self.catch_up(vid, around, &mut out);
                }
            }
            Input::Updated(update, result) => self.updated(update, result, around, &mut out),
            Input::Again(vid) => self.behind.push_back(vid),
            Input::LoadWhole(vid) => self.load_whole(vid, &mut out),
            Input::WholeLoaded(vid, rest, result) => self.whole_loaded(vid, rest, result, around, &mut out),
            Input::Clear(vid) => self.clear(vid, &mut out),
            Input::TryAgain(vid) => {
                if let Some(table) = self.tables.get_mut(&vid) {
                    table.refused.try_again();
                }
            }
            Input::Tend => self.tend(around, &mut out),
        }
        out
    }

    fn load(&mut self, vid: Vid, loaded: Loaded) {
        // A network that becomes one of other families begins from the start.
        if self.table(vid).is_some_and(|table| table.form != loaded.form) {
            self.tables.remove(&vid);
        }
        let table = self.tables.entry(vid).or_insert_with(|| Table::new(&loaded));
        let Loaded { ports, is_known, gateways, .. } = loaded;
        table.gateways = gateways;
        if !is_known || table.rib.ports() != ports {
            table.set_ports(ports);
        }
    }

    fn renew(&mut self, vid: Vid) {
        if let Some(table) = self.tables.get_mut(&vid)
            && table.session.take().is_some()
        {
            // Someone removed the namespace: everything known about it is outdated.
            table.rib = table.form.rib(table.rib.ports().to_vec());
            table.is_torn = true;
        }
    }

    /// Takes a batch of events into the routing information base of its network.
    fn feed(&mut self, batch: Batch, out: &mut Vec<Effect>) {
        let vid = batch.vid;
        let Some(table) = self.tables.get_mut(&vid) else { return };
        if table.session != Some(batch.session) {
            return;
        }
        let (mut lost, mut suspect, mut closed) = (Vec::new(), false, None);
        for event in batch.events {
            match &event {
                Event::Link(How::Removed, link) => lost.push(link.name.clone()),
                Event::Closed(reason) => {
                    closed = Some(format!("changes of its routes cannot be monitored: {reason}"));
                    break;
                }
                _ => {}
            }
            suspect |= drift::is_suspect(&event);
            table.rib.apply(event);
        }
        if suspect {
            out.push(Effect::Suspect(vid));
        }
        if let Some(reason) = closed {
            table.session = None;
            return out.push(Effect::Degrade(vid, reason));
        }
        if table.rib.take_resync_needed() {
            out.push(Effect::Resync(vid));
        }
        self.fall_behind(vid);
        out.extend(lost.into_iter().map(|interface| Effect::LostInterface(vid, interface)));
    }

    fn fall_behind(&mut self, vid: Vid) {
        let Some(table) = self.tables.get_mut(&vid) else { return };
        if !std::mem::replace(&mut table.is_behind, true) {
            self.behind.push_back(vid);
        }
    }

    /// Takes one piece of a network's routes; see [`Self::updated`].
    fn catch_up(&mut self, vid: Vid, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(table) = self.tables.get_mut(&vid) else { return };
        if !table.has_routes() {
            while table.rib.take_update().is_some() {}
            (table.is_behind, table.is_torn) = (false, false);
            if table.rib.is_synchronized() {
                out.push(Effect::Through(vid));
            }
            return;
        }
        if table.is_torn {
            table.is_behind = false;
            // Load the routes known so far; if there are none yet, keep the table.
            if table.rib.is_synchronized() {
                out.push(Effect::Then(Input::LoadWhole(vid)));
            }
            return;
        }
        if table.piece.is_none() {
            if let Some(update) = table.rib.take_update() {
                let AnyUpdate { hops, groups, routes, neighbours, addresses, .. } = update;
                out.extend(addresses.map(|addresses| Effect::SetAddresses(vid, addresses)));
                if let Some(neighbours) = neighbours {
                    table.counts.neighbours.store(neighbours.len() as u64, Ordering::Relaxed);
                    out.push(Effect::SetNeighbours(vid, neighbours));
                }
                table.piece = Some(Piece { hops: HopChanges { rows: hops, groups }, routes, done: 0 });
            } else if let Some(routes) = table.refused.next(&table.rib, (around.account)(vid).bytes_own) {
                table.piece = Some(Piece::of(routes));
            } else {
                table.is_behind = false;
                if table.rib.is_synchronized() {
                    table.say_refused(vid, around, out);
                    let gateways = table.rib.unresolved_of(&table.gateways);
                    let probes =
                        table.rib.unresolved().into_iter().chain(gateways).take(PROBES_MAX).collect();
                    out.extend([Effect::Probe(vid, probes), Effect::Through(vid)]);
                }
                return;
            }
        }
        let size = if table.refused.is_empty() { PIECE_ROUTES } else { RETRY_ROUTES };
        let size = size.min((around.follows_max)(vid));
        let Some(piece) = &mut table.piece else { return };
        let end = piece.routes.len().min(piece.done + size);
        let hops = std::mem::take(&mut piece.hops);
        let routes = piece.routes.slice(piece.done..end);
        out.push(Effect::Update(Update { vid, hops, routes, end }));
    }

    /// Software's table has a piece, or refuses it.
    fn updated(
        &mut self,
        update: Update,
        result: Result<Refusals, String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Update { vid, hops, mut routes, end } = update;
        let Some(table) = self.tables.get_mut(&vid) else { return };
        let refusals = match result {
            Ok(refusals) => refusals,
            Err(error) => {
                table.piece = None;
                table.is_torn = true;
                table.is_behind = false;
                return out.push(Effect::Degrade(vid, format!("its routes do not fit: {error}")));
            }
        };
        let Some(piece) = &mut table.piece else { return };
        piece.done = end;
        let through = end == piece.routes.len();
        if through {
            table.piece = None;
        }
        let refused = !refusals.at.is_empty();
        table.refused.take(&mut routes, refusals, (around.account)(vid).bytes_own);
        if through || refused {
            table.look_at_refused(vid, around, out);
        }
        out.extend([Effect::Mirror(vid, hops, routes), Effect::Then(Input::Again(vid))]);
    }

    /// Loads a network's table as a whole; see [`Self::whole_loaded`].
    fn load_whole(&mut self, vid: Vid, out: &mut Vec<Effect>) {
        let Some(table) = self.tables.get_mut(&vid) else { return };
        if !table.has_routes() {
            return self.fall_behind(vid);
        }
        // The whole table includes changes made meanwhile.
        while table.rib.take_update().is_some() {}
        table.piece = None;
        table.refused.forget();
        let ((next_hops, routes), groups) = (table.rib.published(), table.rib.published_groups());
        out.push(Effect::LoadWhole(vid, next_hops, groups, routes));
    }

    fn whole_loaded(
        &mut self,
        vid: Vid,
        rest: Entries,
        result: Result<(), String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(table) = self.tables.get_mut(&vid) else { return };
        if let Err(error) = result {
            return out.push(Effect::Degrade(vid, format!("its routes do not fit: {error}")));
        }
        table.is_torn = false;
        let neighbours = table.rib.neighbours();
        table.counts.neighbours.store(neighbours.len() as u64, Ordering::Relaxed);
        out.push(Effect::SetAddresses(vid, table.rib.addresses()));
        out.push(Effect::SetNeighbours(vid, neighbours));
        let whole = rest.is_empty();
        if !whole {
            table.piece = Some(Piece::of(Changes::setting(rest)));
            out.push(Effect::Partly(vid));
            self.fall_behind(vid);
        }
        if let Some(table) = self.tables.get_mut(&vid) {
            table.look_at_refused(vid, around, out);
        }
        out.push(Effect::Replaced(vid));
        if whole {
            out.push(Effect::Whole(vid));
        }
    }

    fn clear(&mut self, vid: Vid, out: &mut Vec<Effect>) {
        let Some(table) = self.tables.get_mut(&vid).filter(|table| table.has_routes()) else { return };
        let (_, routes) = table.rib.published();
        table.piece = None;
        // If the following load fails, the table must be filled again.
        table.is_torn = true;
        out.push(Effect::Withdraw(vid, Changes::setting(routes).withdrawn()));
    }

    /// Retries refused routes that are due, and reports networks that have none any more.
    fn tend(&mut self, around: &Around<'_>, out: &mut Vec<Effect>) {
        let due =
            self.tables.iter().filter(|(_, table)| table.refused.due().is_some_and(|due| due <= around.now));
        let mut due: Vec<(String, Vid)> = due.map(|(vid, table)| (table.name.clone(), *vid)).collect();
        due.sort();
        for (_, vid) in due {
            let Some(table) = self.tables.get_mut(&vid) else { continue };
            if table.refused.is_empty() {
                table.refused.due = None;
                let text = "all of its routes are in its table again".to_owned();
                out.extend([Effect::Tell(EventKind::NetworkRecovered, vid, text), Effect::Changed]);
                continue;
            }
            table.refused.due = Some(around.now + RETRY_EACH);
            table.refused.try_again();
            self.fall_behind(vid);
        }
    }
}

impl Table {
    /// Updates the route counts, and reports when the first route is refused, and when no route is refused any more.
    fn look_at_refused(&mut self, vid: Vid, around: &Around<'_>, out: &mut Vec<Effect>) {
        let refused = self.refused.len() as u64;
        let routes = (self.rib.counts().routes as u64).saturating_sub(refused);
        self.counts.routes.store(routes, Ordering::Relaxed);
        self.counts.refused.store(refused, Ordering::Relaxed);
        if (refused > 0) != self.refused.reason().is_some() {
            self.say_refused(vid, around, out);
        }
    }

    /// Updates the message about refused routes.
    fn say_refused(&mut self, vid: Vid, around: &Around<'_>, out: &mut Vec<Effect>) {
        if self.refused.is_quiet() {
            return;
        }
        let words = self.refused.words(self.rib.counts().routes, &(around.account)(vid));
        if words.as_ref() == self.refused.reason() {
            return;
        }
        self.refused.reason = words;
        out.push(Effect::Changed);
        if let Some(reason) = &self.refused.reason
            && self.refused.due.is_none()
        {
            self.refused.due = Some(around.now + RETRY_EACH);
            out.push(Effect::Tell(EventKind::NetworkDegraded, vid, reason.clone()));
        }
    }
}

/// What other parts may know.
impl Routes {
    /// The routes of a network.
    pub fn table(&self, vid: Vid) -> Option<&Table> {
        self.tables.get(&vid)
    }

    /// Whether a network's table must be loaded as a whole.
    pub fn is_torn(&self, vid: Vid) -> bool {
        self.table(vid).is_some_and(Table::is_torn)
    }

    /// Whether a network's table has changes to catch up with.
    pub fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// When refused routes are to be retried.
    pub fn due(&self) -> Option<Instant> {
        self.tables.values().filter_map(|table| table.refused.due()).min()
    }
}
