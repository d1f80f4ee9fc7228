//! A router: neighbours, links and ways; what arrives, and what is due. The ring is in `places.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hue_planes::rofl::label_text;
use hue_wire::Mac;
use hue_wire::ethernet::View;
use hue_wire::rofl::{ETHERTYPE, FLAG_CLOSEST, FLAG_LINK, Label, Packet, ROUTE_MAX};

use super::body::{Body, Links, PAYLOAD_TYPE};
use super::drops::Drop;
use super::links::{Database, Hop, LIFETIME_INTERVALS, Route};
use super::locals::{Home, Local};
use super::pointers::Pointers;
use super::types::{Config, Counters, Event, Neighbour, Output, Place, Port, Sent};

/// Most neighbours on a port.
pub const NEIGHBOURS_MAX: usize = 32;
/// Most links that a router says it has.
pub const LINKS_MAX: usize = 64;
/// Most labels of this router.
pub const LOCALS_MAX: usize = 4096;
/// Routers that may forward a message, plus one.
const BUDGET: u8 = 64;
/// What is repeated every other interval is forgotten after so many.
pub(super) const HOLD_INTERVALS: u32 = 7;
/// Own links are said again after so many intervals without a change.
const LINKS_INTERVALS: u32 = 10;

#[derive(Debug)]
struct Speaker {
    port: Port,
    hello_due: Duration,
}

/// See the head of this file.
#[derive(Debug)]
pub struct Router {
    pub(super) config: Config,
    ports: BTreeMap<u16, Speaker>,
    neighbours: BTreeMap<Hop, Neighbour>,
    database: Database,
    sequence: u64,
    pub(super) routes: BTreeMap<Label, Route>,
    pub(super) locals: BTreeMap<Label, Local>,
    pub(super) pointers: Pointers,
    zero: Option<Label>,
    links_due: Duration,
    last_links: Option<Duration>,
    paths_due: Option<Duration>,
    last_paths: Option<Duration>,
    refresh_due: Duration,
    /// Whether something changed that the ring, pointers or entries depend on.
    pub(super) is_dirty: bool,
    pub(super) output: Output,
    counters: Counters,
}

impl Router {
    /// A router without ports, and with its own label only.
    #[must_use]
    pub fn new(now: Duration, config: Config) -> Self {
        let mut own = Local::new(now, Home::Own, None);
        own.joined = true;
        let locals = BTreeMap::from([(config.router, own)]);
        let mut router = Self {
            sequence: config.sequence,
            config,
            ports: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            database: Database::default(),
            routes: BTreeMap::new(),
            locals,
            pointers: Pointers::default(),
            zero: None,
            links_due: now,
            last_links: None,
            paths_due: Some(now),
            last_paths: None,
            refresh_due: now,
            is_dirty: true,
            output: Output::default(),
            counters: Counters::default(),
        };
        router.tick(now);
        router
    }

    /// Where packets for labels go: the entries of a network of kind `rofl`.
    #[must_use]
    pub fn entries(&self) -> BTreeMap<Label, Place> {
        let vias = self.pointers.up().iter().map(|(label, hop)| (*label, Place::Via(*hop)));
        let mut entries: BTreeMap<Label, Place> = vias.collect();
        entries.extend(self.routes.iter().map(|(label, route)| (*label, Place::Via(route.hop))));
        entries.extend(self.locals.iter().filter(|(_, local)| local.joined).map(|(label, local)| {
            let place = match local.home {
                Home::Own => Place::Own,
                Home::Host(hop) => Place::Resident(hop),
            };
            (*label, place)
        }));
        entries
    }

    /// What is fixed.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The ports that take part.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.values().map(|speaker| &speaker.port)
    }

    /// The neighbours.
    #[must_use]
    pub const fn neighbours(&self) -> &BTreeMap<Hop, Neighbour> {
        &self.neighbours
    }

    /// The ways to other routers.
    #[must_use]
    pub const fn routes(&self) -> &BTreeMap<Label, Route> {
        &self.routes
    }

    /// What all routers say of their links.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// The labels of this router.
    #[must_use]
    pub const fn locals(&self) -> &BTreeMap<Label, Local> {
        &self.locals
    }

    /// Labels of hosts elsewhere.
    #[must_use]
    pub const fn pointers(&self) -> &Pointers {
        &self.pointers
    }

    /// The smallest label of all routers that can be reached, this one included.
    #[must_use]
    pub fn zero(&self) -> Label {
        self.routes.first_key_value().map_or(self.config.router, |(label, _)| self.config.router.min(*label))
    }

    /// What has happened.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A label for people.
    #[must_use]
    pub fn text(&self, label: Label) -> String {
        label_text(label, self.config.label_bytes)
    }

    /// What inputs have caused since the last call.
    pub fn take(&mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    /// When [`Router::tick`] has something to do.
    #[must_use]
    pub fn due(&self) -> Duration {
        let hellos = self.ports.values().map(|speaker| speaker.hello_due);
        let heard = self.neighbours.values().map(|neighbour| neighbour.heard).min();
        let hosts = self.locals.values().filter_map(|local| local.ends);
        let lost = heard.map(|heard| heard + self.neighbour_lifetime());
        let dues = hellos.chain(lost).chain(hosts).chain(self.paths_due);
        dues.fold(self.links_due.min(self.refresh_due), Duration::min)
    }

    /// Does what time demands.
    pub fn tick(&mut self, now: Duration) {
        let lifetime = self.neighbour_lifetime();
        let silent = self.neighbours.iter().filter(|(_, one)| one.heard + lifetime <= now);
        for hop in silent.map(|(hop, _)| *hop).collect::<Vec<_>>() {
            self.lose(now, hop, "no hello came in time");
        }
        self.expire_hosts(now);
        let due = self.ports.values().filter(|speaker| speaker.hello_due <= now);
        for port in due.map(|speaker| speaker.port.id).collect::<Vec<_>>() {
            self.send_hello(now, port);
        }
        if self.refresh_due <= now {
            self.refresh_due = now + 2 * self.interval();
            if self.database.expire(now, self.interval() * LIFETIME_INTERVALS) {
                self.paths_soon(now);
            }
            self.refresh(now);
        }
        self.settle(now);
    }

    /// Replaces the ports. Those that stay as they were keep their neighbours.
    pub fn set_ports(&mut self, now: Duration, ports: Vec<Port>) {
        let gone = self.ports.values().filter(|speaker| !ports.contains(&speaker.port));
        let gone: Vec<u16> = gone.map(|speaker| speaker.port.id).collect();
        let lost = self.neighbours.keys().filter(|hop| gone.contains(&hop.port));
        for hop in lost.copied().collect::<Vec<_>>() {
            self.lose(now, hop, "the port has changed");
        }
        gone.iter().for_each(|id| drop(self.ports.remove(id)));
        for port in ports {
            self.ports.entry(port.id).or_insert(Speaker { port, hello_due: now });
        }
        self.tick(now);
    }

    /// Takes a frame that was received on a port.
    pub fn receive(&mut self, now: Duration, port: u16, frame: &[u8]) {
        self.counters.received += 1;
        match self.accept(now, port, frame) {
            Ok(()) => self.counters.accepted += 1,
            Err(reason) => self.counters.drops.count(reason),
        }
        self.settle(now);
    }

    /// Tells the others that no way leads through this router any more.
    pub fn end(&mut self, now: Duration) {
        let to = self.speaking();
        self.neighbours.clear();
        self.originate(now, &to);
    }

    fn accept(&mut self, now: Duration, port: u16, frame: &[u8]) -> Result<(), Drop> {
        let view = View::parse(frame).map_err(|_| Drop::Malformed)?;
        let (header, own) = (view.header(), self.ports.get(&port).ok_or(Drop::OtherMac)?.port.mac);
        if header.ethertype() != ETHERTYPE || !header.source().is_unicast() {
            return Err(Drop::Malformed);
        }
        if header.destination().is_unicast() && header.destination() != own {
            return Err(Drop::OtherMac);
        }
        let packet = Packet::parse(view.payload()).ok_or(Drop::Malformed)?;
        if packet.label_bytes != self.config.label_bytes {
            return Err(Drop::Malformed);
        }
        if packet.payload_type != PAYLOAD_TYPE {
            return Err(Drop::Payload);
        }
        let body = Body::read(packet.payload, packet.label_bytes)?;
        if body.is_link() != (packet.flags & FLAG_LINK != 0) {
            return Err(Drop::Kind);
        }
        let (hop, from) = (Hop { port, mac: header.source() }, packet.source);
        if let Body::Host { hold_ds } = body {
            return self.host(now, hop, from, hold_ds);
        }
        if from == self.config.router {
            return Err(Drop::Own);
        }
        match body {
            Body::Hello { interval_ms, digest, heard } => {
                self.hello(now, hop, from, interval_ms, digest, &heard)
            }
            Body::Links(links) => self.links(now, self.known(hop)?, &links),
            Body::Want(labels) => {
                let (hop, ends) = (self.known(hop)?, self.hold(now));
                self.is_dirty = true;
                self.pointers.want(hop, &labels, ends)
            }
            Body::Have(labels) => {
                let (hop, ends) = (self.known(hop)?, self.hold(now));
                self.is_dirty = true;
                self.pointers.have(hop, &labels, ends);
                Ok(())
            }
            Body::Gone(labels) => {
                let hop = self.known(hop)?;
                self.is_dirty = true;
                self.pointers.gone(hop, &labels);
                Ok(())
            }
            // Who cannot be reached gets no answer, and is of no use as a neighbour on the ring.
            _ if !self.routes.contains_key(&from) => Err(Drop::Unreachable),
            Body::Join { label, found } => self.join(now, from, label, found),
            Body::Ask { asked, asker } => self.ask(now, from, asked, asker),
            Body::Answer(answer) => self.answer(now, from, answer),
            Body::Leave { label, next } => {
                self.leave(now, from, label, next);
                Ok(())
            }
            Body::Host { .. } => Err(Drop::Kind),
        }
    }

    /// A neighbour that hears this router.
    fn known(&self, hop: Hop) -> Result<Hop, Drop> {
        self.neighbours.get(&hop).filter(|one| one.hears).map(|_| hop).ok_or(Drop::NotNeighbour)
    }

    fn hello(
        &mut self,
        now: Duration,
        hop: Hop,
        router: Label,
        interval_ms: u16,
        digest: u64,
        heard: &[Label],
    ) -> Result<(), Drop> {
        if interval_ms != self.config.interval_ms {
            return Err(Drop::Interval);
        }
        if self.neighbours.get(&hop).is_some_and(|known| known.router != router) {
            self.lose(now, hop, "another router has its address");
        }
        let is_new = !self.neighbours.contains_key(&hop);
        if is_new && self.neighbours.keys().filter(|other| other.port == hop.port).count() >= NEIGHBOURS_MAX {
            return Err(Drop::NeighboursFull);
        }
        let hears = heard.contains(&self.config.router);
        let new = Neighbour { router, heard: now, hears: false, dumped: None };
        let neighbour = self.neighbours.entry(hop).or_insert(new);
        neighbour.heard = now;
        let heard_before = std::mem::replace(&mut neighbour.hears, hears);
        if hears && !heard_before {
            self.output
                .events
                .push(Event::NeighbourUp { port: self.name(hop.port), router: self.text(router) });
            self.links_changed(now);
        } else if !hears && heard_before {
            self.went_down(now, hop, router, "it does not hear this router");
        }
        if is_new {
            // It waits for a hello that names it.
            self.send_hello(now, hop.port);
        }
        let settled = self.database.changed + self.interval() <= now;
        let is_due = |neighbour: &Neighbour| match neighbour.dumped {
            None => true,
            Some(last) => settled && last + self.interval() <= now,
        };
        if hears && digest != self.database.digest() && self.neighbours.get(&hop).is_some_and(is_due) {
            self.dump(now, hop);
        }
        Ok(())
    }

    /// Sends a neighbour all that is known.
    fn dump(&mut self, now: Duration, hop: Hop) {
        if let Some(neighbour) = self.neighbours.get_mut(&hop) {
            neighbour.dumped = Some(now);
        }
        let routers: Vec<Label> = self.database.iter().map(|(router, _)| router).collect();
        for links in
            routers.into_iter().filter_map(|router| self.database.links(now, router)).collect::<Vec<_>>()
        {
            self.send_link(hop, &Body::Links(links));
        }
    }

    fn links(&mut self, now: Duration, hop: Hop, links: &Links) -> Result<(), Drop> {
        if links.origin == self.config.router {
            // Of an earlier life, or of another router with the same label.
            if links.sequence > self.sequence {
                self.sequence = links.sequence;
                self.links_soon(now);
            }
            return Err(Drop::OwnLinks);
        }
        let lifetime = self.interval() * LIFETIME_INTERVALS;
        if self.database.accept(now, links, lifetime)? {
            self.paths_soon(now);
        }
        let to = self.speaking();
        self.flood(now, links.origin, to.into_iter().filter(|other| *other != hop));
        Ok(())
    }

    fn flood(&mut self, now: Duration, origin: Label, to: impl Iterator<Item = Hop>) {
        let Some(links) = self.database.links(now, origin) else { return };
        let body = Body::Links(links);
        to.for_each(|hop| self.send_link(hop, &body));
    }

    fn lose(&mut self, now: Duration, hop: Hop, reason: &'static str) {
        let Some(gone) = self.neighbours.remove(&hop) else { return };
        if gone.hears {
            self.went_down(now, hop, gone.router, reason);
        }
    }

    fn went_down(&mut self, now: Duration, hop: Hop, router: Label, reason: &'static str) {
        let (port, router) = (self.name(hop.port), self.text(router));
        self.output.events.push(Event::NeighbourDown { port, router, reason });
        self.pointers.forget(hop);
        self.links_changed(now);
    }

    fn links_changed(&mut self, now: Duration) {
        self.is_dirty = true;
        self.links_soon(now);
        self.paths_soon(now);
    }

    fn links_soon(&mut self, now: Duration) {
        let earliest = self.last_links.map_or(now, |last| now.max(last + self.interval() / 5));
        self.links_due = self.links_due.min(earliest);
    }

    fn paths_soon(&mut self, now: Duration) {
        let earliest = self.last_paths.map_or(now, |last| now.max(last + self.interval() / 20));
        self.paths_due = Some(self.paths_due.map_or(earliest, |due| due.min(earliest)));
    }

    fn originate(&mut self, now: Duration, to: &[Hop]) {
        self.sequence += 1;
        self.counters.originated += 1;
        self.last_links = Some(now);
        self.links_due = now + self.interval() * LINKS_INTERVALS;
        let heard: BTreeSet<Label> =
            self.neighbours.values().filter(|one| one.hears).map(|one| one.router).collect();
        let neighbours = heard.into_iter().take(LINKS_MAX).collect();
        let links = Links { age_ds: 0, sequence: self.sequence, origin: self.config.router, neighbours };
        // The database always takes newer ones of a known router; of a full one, this router is no part.
        let _ = self.database.accept(now, &links, Duration::MAX);
        self.flood(now, self.config.router, to.iter().copied());
    }

    /// Does what follows from inputs.
    fn settle(&mut self, now: Duration) {
        if self.links_due <= now {
            self.originate(now, &self.speaking());
        }
        if self.paths_due.is_some_and(|due| due <= now) {
            (self.paths_due, self.last_paths) = (None, Some(now));
            self.counters.computations += 1;
            let mut near = BTreeMap::new();
            for (hop, neighbour) in self.neighbours.iter().filter(|(_, neighbour)| neighbour.hears) {
                near.entry(neighbour.router).or_insert(*hop);
            }
            let routes = self.database.routes(self.config.router, &near);
            self.is_dirty |= routes != self.routes;
            self.routes = routes;
            let zero = self.zero();
            if self.zero.replace(zero) != Some(zero) {
                self.output.events.push(Event::Zero(self.text(zero)));
            }
        }
        // What the ring does may change it again, for example a label that has joined; it comes to rest.
        for _ in 0..4 {
            if !std::mem::take(&mut self.is_dirty) {
                return;
            }
            self.output.changed = true;
            let mine = self.settle_ring();
            let (locals, routes) = (&self.locals, &self.routes);
            let is_here = |label| locals.get(&label).is_some_and(|local| local.joined);
            for (hop, body) in self.pointers.settle(&mine, routes, is_here) {
                self.send_link(hop, &body);
            }
            self.settle_joins(now);
        }
    }

    fn send_hello(&mut self, now: Duration, port: u16) {
        let (own, interval) = (self.config.router, self.interval());
        let Some(speaker) = self.ports.get_mut(&port) else { return };
        speaker.hello_due = now + interval;
        let heard = self.neighbours.iter().filter(|(hop, _)| hop.port == port);
        let body = Body::Hello {
            interval_ms: self.config.interval_ms,
            digest: self.database.digest(),
            heard: heard.map(|(_, neighbour)| neighbour.router).collect(),
        };
        let hop = Hop { port, mac: Mac::BROADCAST };
        self.send(hop, FLAG_LINK, own, &body);
    }

    pub(super) fn send_link(&mut self, hop: Hop, body: &Body) {
        let to = self.neighbours.get(&hop).map_or(0, |neighbour| neighbour.router);
        self.send(hop, FLAG_LINK, to, body);
    }

    /// Sends a message to another router, as a packet for its label.
    pub(super) fn tell(&mut self, router: Label, body: &Body) {
        if let Some(route) = self.routes.get(&router).copied() {
            self.send(route.hop, 0, router, body);
        }
    }

    /// Sends a message to whoever has the closest label.
    pub(super) fn tell_closest(&mut self, hop: Hop, label: Label, body: &Body) {
        self.send(hop, FLAG_CLOSEST, label, body);
    }

    fn send(&mut self, hop: Hop, flags: u8, destination: Label, body: &Body) {
        let payload = body.bytes(self.config.label_bytes);
        let packet = Packet {
            flags,
            label_bytes: self.config.label_bytes,
            budget: BUDGET,
            destination,
            source: self.config.router,
            route: [0; ROUTE_MAX],
            route_len: 0,
            payload_type: PAYLOAD_TYPE,
            payload: &payload,
        };
        let mut out = vec![0; packet.bytes()];
        if packet.write(&mut out).is_some() {
            self.counters.sent += 1;
            self.output.packets.push(Sent { port: hop.port, to: hop.mac, packet: out });
        }
    }

    /// Neighbours that hear this router.
    fn speaking(&self) -> Vec<Hop> {
        self.neighbours.iter().filter(|(_, one)| one.hears).map(|(hop, _)| *hop).collect()
    }

    fn name(&self, port: u16) -> String {
        self.ports.get(&port).map(|speaker| speaker.port.name.clone()).unwrap_or_default()
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.interval_ms))
    }

    pub(super) fn hold(&self, now: Duration) -> Duration {
        now + self.interval() * HOLD_INTERVALS
    }

    fn neighbour_lifetime(&self) -> Duration {
        self.interval() * 7 / 2
    }
}
