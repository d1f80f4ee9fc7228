//! The router: hellos, neighbours, own LSUs, flooding, expiry.
//!
//! Flow: an input ([`Router::set_interfaces`], [`Router::receive`], [`Router::tick`]) → state → [`Output`], which the caller
//! takes. Whatever an input changes, it causes at most one own LSU and one computation of paths.
//!
//! Own LSUs are at least [`LSU_GAP`] apart, so a link that flaps costs the area at most one flood a second. The first one
//! waits until every neighbour had the time to send a hello: a router that starts again would otherwise withdraw the links
//! that it had before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_tables::Prefix4;

use super::database::{Accepted, Database, Entry, LIFETIME_INTERVALS, is_newer};
use super::drops::{Drop, Drops};
use super::interface::{Interface, NEIGHBOURS_MAX, Neighbour, Port};
use super::packet::{ADVERTISEMENTS_MAX, Advertisement, Body, Hello, Lsu, Packet, RouterId, mask};
use super::packet::{ALL_ROUTERS, datagram};
use super::paths::{self, Adjacency, NextHop, Route};

/// A neighbour is lost this many hello intervals after its last hello.
pub const NEIGHBOUR_INTERVALS: u32 = 3;
/// Least time between two own LSUs, and between two hellos that answer new neighbours.
pub const LSU_GAP: Duration = Duration::from_secs(1);
/// Least time between two computations of paths.
pub const PATHS_GAP: Duration = Duration::from_millis(100);
/// Hops that an own LSU may take. At most 255, because other implementations have 8 bits for it.
pub const TTL: u16 = 64;
/// Added to a hello interval where hellos of all neighbours are awaited.
const SLACK: Duration = Duration::from_secs(1);

/// What the operator chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Unique in the area.
    pub router: RouterId,
    /// The area.
    pub area: Ipv4Addr,
    /// Time between hellos in seconds, the same for all routers of a link; at least 1.
    pub hello_interval_s: u16,
    /// Time between own LSUs without a change, in seconds; at least 1.
    pub lsu_interval_s: u16,
    /// Subnets to advertise beside those of the interfaces, such as 0.0.0.0/0.
    pub advertised: Vec<Prefix4>,
    /// Whether LSUs are also taken from addresses that are no neighbours, on links that have neighbours: some routers pass LSUs
    /// on with the originator's address. Then whoever reaches this router can send some, also from afar.
    pub any_source: bool,
    /// The sequence number before the first LSU. It should be newer than all of an earlier life, such as seconds of a clock.
    pub sequence: u16,
}

/// A packet to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Index of the interface.
    pub link: u32,
    /// Address of the interface from which it is sent.
    pub source: Ipv4Addr,
    /// [`ALL_ROUTERS`], or a neighbour.
    pub destination: Ipv4Addr,
    /// The payload of the IP packet.
    pub bytes: Vec<u8>,
}

/// A change of routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteChange {
    /// The subnet has this route now.
    Set(Prefix4, Route),
    /// The subnet has no route any more.
    Remove(Prefix4),
}

/// What an operator wants to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A router is heard.
    NeighbourUp {
        /// Name of the interface.
        interface: String,
        /// Its address.
        address: Ipv4Addr,
        /// Its id.
        router: RouterId,
    },
    /// A router is not heard any more.
    NeighbourDown {
        /// Name of the interface.
        interface: String,
        /// Its address.
        address: Ipv4Addr,
        /// Its id.
        router: RouterId,
        /// Why.
        reason: &'static str,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeighbourUp { interface, address, router } => {
                write!(f, "neighbour {address} on {interface} is up: router {router}")
            }
            Self::NeighbourDown { interface, address, router, reason } => {
                write!(f, "neighbour {address} on {interface} is down: router {router}: {reason}")
            }
        }
    }
}

/// What inputs have caused.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Output {
    /// Packets to send, in this order.
    pub packets: Vec<Sent>,
    /// Changes of routes, in this order.
    pub changes: Vec<RouteChange>,
    /// Events.
    pub events: Vec<Event>,
}

/// What has happened since the start. `received = hellos + lsus + drops`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Hellos accepted.
    pub hellos: u64,
    /// LSUs accepted.
    pub lsus: u64,
    /// Packets dropped.
    pub drops: Drops,
    /// Hellos sent.
    pub hellos_sent: u64,
    /// LSUs sent, own ones and those of others.
    pub lsus_sent: u64,
    /// Own LSUs, each sent to all neighbours.
    pub originated: u64,
    /// LSUs of others not passed on, because they may take no further hop.
    pub ttl_ended: u64,
    /// Computations of paths.
    pub computations: u64,
    /// Own links left out of an LSU, because it was full.
    pub links_left_out: u64,
}

/// An interface and a neighbour's address on it.
type To = ((u32, Ipv4Addr), Ipv4Addr);

/// A router.
#[derive(Clone, Debug)]
pub struct Router {
    config: Config,
    /// By index of the interface and address.
    ports: BTreeMap<(u32, Ipv4Addr), Port>,
    database: Database,
    routes: BTreeMap<Prefix4, Route>,
    /// Sequence number of the last own LSU.
    sequence: u16,
    last_lsu: Option<(Duration, Vec<Advertisement>)>,
    lsu_due: Duration,
    /// No own LSU is sent before.
    silent_until: Duration,
    last_paths: Option<Duration>,
    paths_due: Option<Duration>,
    counters: Counters,
    output: Output,
}

impl Router {
    /// A router without interfaces, which starts now.
    #[must_use]
    pub fn new(now: Duration, config: Config) -> Self {
        let silent_until = now + seconds(config.hello_interval_s) + SLACK;
        Self {
            sequence: config.sequence,
            config,
            ports: BTreeMap::new(),
            database: Database::default(),
            routes: BTreeMap::new(),
            last_lsu: None,
            lsu_due: silent_until,
            silent_until,
            last_paths: None,
            paths_due: None,
            counters: Counters::default(),
            output: Output::default(),
        }
    }

    /// What the operator has chosen.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// When every other router has sent an LSU since the start, so that routes that are still missing do not exist.
    #[must_use]
    pub fn complete_at(&self) -> Duration {
        self.silent_until + seconds(self.config.lsu_interval_s)
    }

    /// The interfaces with their neighbours by address.
    pub fn interfaces(&self) -> impl Iterator<Item = (&Interface, &BTreeMap<Ipv4Addr, Neighbour>)> {
        self.ports.values().map(|port| (&port.interface, &port.neighbours))
    }

    /// What is known of the other routers.
    pub fn database(&self) -> impl Iterator<Item = (RouterId, &Entry)> {
        self.database.iter()
    }

    /// The routes by subnet.
    #[must_use]
    pub fn routes(&self) -> &BTreeMap<Prefix4, Route> {
        &self.routes
    }

    /// What has happened.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sequence number of the last own LSU.
    #[must_use]
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// The own links, as the next LSU advertises them.
    #[must_use]
    pub fn own_links(&self) -> Vec<Advertisement> {
        let mut links = BTreeSet::new();
        for port in self.ports.values() {
            let prefix = port.interface.prefix;
            links.extend(port.neighbours.values().map(|neighbour| (prefix, Some(neighbour.router))));
            if port.neighbours.is_empty() {
                links.insert((prefix, None));
            }
        }
        links.extend(self.config.advertised.iter().map(|prefix| (*prefix, None)));
        links.into_iter().map(|(prefix, router)| Advertisement { prefix, router }).collect()
    }

    /// What inputs have caused since the last call.
    pub fn take(&mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    /// When [`Router::tick`] has something to do.
    #[must_use]
    pub fn due(&self) -> Duration {
        let hellos = self.ports.values().filter(|port| port.interface.speaks).map(|port| port.hello_due);
        let heard =
            self.ports.values().flat_map(|port| port.neighbours.values()).map(|neighbour| neighbour.heard);
        let lost = heard.min().map(|heard| heard + self.neighbour_lifetime());
        let expired = self.database.oldest().map(|oldest| oldest + self.entry_lifetime());
        hellos.chain(lost).chain(expired).chain(self.paths_due).fold(self.lsu_due, Duration::min)
    }

    /// Does what time demands.
    pub fn tick(&mut self, now: Duration) {
        self.lose_neighbours(now);
        if now.checked_sub(self.entry_lifetime()).is_some_and(|before| self.database.expire(before)) {
            self.compute_soon(now);
        }
        let due = self.ports.iter().filter(|(_, port)| port.interface.speaks && port.hello_due <= now);
        for key in due.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.send_hello(now, key);
        }
        self.settle(now);
    }

    /// Replaces the interfaces. Those that stay as they were keep their neighbours.
    pub fn set_interfaces(&mut self, now: Duration, interfaces: Vec<Interface>) {
        let wanted: BTreeMap<_, _> = interfaces
            .into_iter()
            .map(|interface| ((interface.link, interface.address), interface))
            .collect();
        let gone = self.ports.iter().filter(|(key, port)| wanted.get(*key) != Some(&port.interface));
        let gone: Vec<_> = gone.map(|(key, _)| *key).collect();
        let mut changed = !gone.is_empty();
        for port in gone.iter().filter_map(|key| self.ports.remove(key)) {
            for (address, neighbour) in &port.neighbours {
                self.output.events.push(down(
                    &port.interface,
                    *address,
                    neighbour,
                    "the interface has changed",
                ));
            }
        }
        for (key, interface) in wanted {
            self.ports.entry(key).or_insert_with(|| {
                changed = true;
                Port::new(now, interface)
            });
        }
        if changed {
            self.links_changed(now);
        }
        self.tick(now);
    }

    /// Takes an IPv4 packet with its header, as it was received on an interface.
    pub fn receive(&mut self, now: Duration, link: u32, bytes: &[u8]) {
        self.counters.received += 1;
        let done = datagram(bytes).and_then(|(source, payload)| self.accept(now, link, source, payload));
        if let Err(reason) = done {
            self.counters.drops.count(reason);
        }
        self.settle(now);
    }

    /// Tells the neighbours that this router ends: it has no neighbours any more, so no path leads through it.
    pub fn end(&mut self, now: Duration) {
        let to = self.neighbours();
        self.ports.values_mut().for_each(|port| port.neighbours.clear());
        if self.last_lsu.is_some() {
            self.originate(now, &to);
        }
    }

    fn accept(&mut self, now: Duration, link: u32, source: Ipv4Addr, payload: &[u8]) -> Result<(), Drop> {
        let packet = Packet::read(payload)?;
        if packet.area != self.config.area {
            return Err(Drop::Area);
        }
        let on_link = || {
            let all = self.ports.values();
            all.filter(|port| port.interface.link == link && port.interface.speaks)
        };
        let any = self.config.any_source && matches!(packet.body, Body::Lsu(_));
        let port = on_link()
            .find(|port| port.interface.prefix.contains(source.to_bits()))
            .or_else(|| on_link().find(|port| any && !port.neighbours.is_empty()))
            .ok_or(Drop::Stranger)?;
        let key = (link, port.interface.address);
        match packet.body {
            Body::Hello(hello) => {
                self.hello(now, key, (source, packet.router), hello)?;
                self.counters.hellos += 1;
            }
            Body::Lsu(lsu) => {
                self.lsu(now, (key, source), packet.router, &lsu)?;
                self.counters.lsus += 1;
            }
        }
        Ok(())
    }

    fn hello(
        &mut self,
        now: Duration,
        key: (u32, Ipv4Addr),
        (source, router): (Ipv4Addr, RouterId),
        hello: Hello,
    ) -> Result<(), Drop> {
        let config_s = self.config.hello_interval_s;
        let Some(port) = self.ports.get_mut(&key) else { return Err(Drop::Stranger) };
        if router == self.config.router || source == port.interface.address {
            return Err(Drop::Own);
        }
        if hello.mask != mask(port.interface.prefix.len()) {
            return Err(Drop::Mask);
        }
        if hello.interval_s != config_s {
            return Err(Drop::Interval);
        }
        let count = port.neighbours.len();
        match port.neighbours.get_mut(&source) {
            Some(known) if known.router == router => {
                known.heard = now;
                return Ok(());
            }
            None if count >= NEIGHBOURS_MAX => return Err(Drop::NeighboursFull),
            Some(other) => {
                self.output.events.push(down(
                    &port.interface,
                    source,
                    other,
                    "another router has its address",
                ));
            }
            None => {}
        }
        port.neighbours.insert(source, Neighbour { router, heard: now, since: now });
        let interface = port.interface.name.clone();
        self.output.events.push(Event::NeighbourUp { interface, address: source, router });
        // The neighbour must know this router before it takes LSUs from it.
        if port.answered.is_none_or(|answered| now >= answered + LSU_GAP) {
            port.answered = Some(now);
            self.send_hello(now, key);
        }
        self.tell_all((key, source));
        self.links_changed(now);
        Ok(())
    }

    /// Sends all of the database to a new neighbour, which would have to wait for the next LSU of each router otherwise.
    fn tell_all(&mut self, to: To) {
        let all: Vec<_> = self.database.iter().map(|(router, entry)| (router, entry.lsu())).collect();
        for (router, lsu) in all {
            self.flood(router, lsu, &[to]);
        }
    }

    fn lsu(&mut self, now: Duration, from: To, router: RouterId, lsu: &Lsu) -> Result<(), Drop> {
        let (key, source) = from;
        let port = self.ports.get(&key).ok_or(Drop::NotNeighbour)?;
        let sender = port.neighbours.get(&source).map(|neighbour| neighbour.router);
        let from = match (sender, port.neighbours.first_key_value()) {
            (Some(_), _) => from,
            // The only neighbour must have sent it.
            (None, Some((only, _))) if self.config.any_source && port.neighbours.len() == 1 => (key, *only),
            (None, Some(_)) if self.config.any_source => from,
            _ => return Err(Drop::NotNeighbour),
        };
        if router == self.config.router {
            self.own_returned(now, lsu);
            return Err(Drop::OwnLsu);
        }
        let restart =
            now.checked_sub(seconds(self.config.hello_interval_s)).filter(|_| sender == Some(router));
        match self.database.accept(now, router, lsu, restart)? {
            Accepted::Same => {}
            Accepted::Changed => self.compute_soon(now),
            Accepted::Restarted(old) => {
                self.flood(router, old, &[from]);
                self.compute_soon(now);
            }
        }
        let passed_on = Lsu { ttl: lsu.ttl.saturating_sub(1), ..lsu.clone() };
        let others: Vec<To> = self.neighbours().into_iter().filter(|to| *to != from).collect();
        self.flood(router, passed_on, &others);
        Ok(())
    }

    /// An own LSU came back. One that is not known is of an earlier life, with a number that is not older: continue there.
    fn own_returned(&mut self, now: Duration, lsu: &Lsu) {
        let is_echo = self
            .last_lsu
            .as_ref()
            .is_some_and(|(_, links)| lsu.sequence == self.sequence && lsu.links == *links);
        if !is_echo && (lsu.sequence == self.sequence || is_newer(lsu.sequence, self.sequence)) {
            self.sequence = lsu.sequence;
            self.lsu_soon(now);
        }
    }

    fn lose_neighbours(&mut self, now: Duration) {
        let lifetime = self.neighbour_lifetime();
        let mut changed = false;
        for port in self.ports.values_mut() {
            let interface = &port.interface;
            port.neighbours.retain(|address, neighbour| {
                let lost = now >= neighbour.heard + lifetime;
                if lost {
                    self.output.events.push(down(interface, *address, neighbour, "no hello came in time"));
                }
                changed |= lost;
                !lost
            });
        }
        if changed {
            self.links_changed(now);
        }
    }

    fn links_changed(&mut self, now: Duration) {
        self.lsu_soon(now);
        self.compute_soon(now);
    }

    fn lsu_soon(&mut self, now: Duration) {
        let earliest = self.last_lsu.as_ref().map_or(now, |(last, _)| now.max(*last + LSU_GAP));
        self.lsu_due = self.lsu_due.min(earliest).max(self.silent_until);
    }

    fn compute_soon(&mut self, now: Duration) {
        let earliest = self.last_paths.map_or(now, |last| now.max(last + PATHS_GAP));
        self.paths_due = Some(self.paths_due.map_or(earliest, |due| due.min(earliest)));
    }

    /// Sends the own LSU and computes paths, if they are due.
    fn settle(&mut self, now: Duration) {
        if self.lsu_due <= now {
            self.lsu_due = now + seconds(self.config.lsu_interval_s);
            let to = self.neighbours();
            self.originate(now, &to);
        }
        if self.paths_due.is_some_and(|due| due <= now) {
            self.paths_due = None;
            self.last_paths = Some(now);
            self.compute();
        }
    }

    fn originate(&mut self, now: Duration, to: &[To]) {
        let mut links = self.own_links();
        self.counters.links_left_out += links.len().saturating_sub(ADVERTISEMENTS_MAX) as u64;
        links.truncate(ADVERTISEMENTS_MAX);
        self.sequence = self.sequence.wrapping_add(1);
        self.counters.originated += 1;
        self.last_lsu = Some((now, links.clone()));
        self.flood(self.config.router, Lsu { sequence: self.sequence, ttl: TTL, links }, to);
    }

    /// Sends an LSU to neighbours.
    fn flood(&mut self, router: RouterId, lsu: Lsu, to: &[To]) {
        if lsu.ttl == 0 {
            self.counters.ttl_ended += 1;
            return;
        }
        let bytes = Packet { router, area: self.config.area, body: Body::Lsu(lsu) }.bytes();
        for ((link, source), destination) in to {
            self.counters.lsus_sent += 1;
            let sent = Sent { link: *link, source: *source, destination: *destination, bytes: bytes.clone() };
            self.output.packets.push(sent);
        }
    }

    fn send_hello(&mut self, now: Duration, key: (u32, Ipv4Addr)) {
        let interval_s = self.config.hello_interval_s;
        let Some(port) = self.ports.get_mut(&key) else { return };
        port.hello_due = now + seconds(interval_s);
        let hello = Hello { mask: mask(port.interface.prefix.len()), interval_s };
        let packet = Packet { router: self.config.router, area: self.config.area, body: Body::Hello(hello) };
        self.counters.hellos_sent += 1;
        let (link, source) = key;
        self.output.packets.push(Sent { link, source, destination: ALL_ROUTERS, bytes: packet.bytes() });
    }

    fn compute(&mut self) {
        self.counters.computations += 1;
        let mut adjacent = Vec::new();
        for ((link, _), port) in &self.ports {
            let prefix = port.interface.prefix;
            adjacent.extend(port.neighbours.iter().map(|(via, neighbour)| Adjacency {
                router: neighbour.router,
                prefix,
                next: NextHop { link: *link, via: *via },
            }));
        }
        let own = self.ports.values().map(|port| port.interface.prefix);
        let attached: BTreeSet<Prefix4> = own.chain(self.config.advertised.iter().copied()).collect();
        let routes = paths::routes(self.config.router, &adjacent, &attached, &self.database);
        let gone = self.routes.keys().filter(|prefix| !routes.contains_key(*prefix));
        self.output.changes.extend(gone.map(|prefix| RouteChange::Remove(*prefix)));
        let set = routes.iter().filter(|(prefix, route)| self.routes.get(*prefix) != Some(*route));
        self.output.changes.extend(set.map(|(prefix, route)| RouteChange::Set(*prefix, *route)));
        self.routes = routes;
    }

    fn neighbours(&self) -> Vec<To> {
        let all = self.ports.iter();
        all.flat_map(|(key, port)| port.neighbours.keys().map(|address| (*key, *address))).collect()
    }

    fn neighbour_lifetime(&self) -> Duration {
        seconds(self.config.hello_interval_s) * NEIGHBOUR_INTERVALS
    }

    fn entry_lifetime(&self) -> Duration {
        seconds(self.config.lsu_interval_s) * LIFETIME_INTERVALS
    }
}

fn down(interface: &Interface, address: Ipv4Addr, neighbour: &Neighbour, reason: &'static str) -> Event {
    Event::NeighbourDown { interface: interface.name.clone(), address, router: neighbour.router, reason }
}

fn seconds(seconds: u16) -> Duration {
    Duration::from_secs(seconds.into())
}
