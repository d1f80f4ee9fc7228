//! Several routers for flat labels in one thread and simulated time. Messages that are no neighbours' business cross the planes of
//! the routers between, which have the entries of that moment: the plane of the kind itself decides. Links lose frames, are
//! cut, routers die and come back, hosts come and go. In the end nothing is lost for a while; then the plane carries a packet from
//! each router to each label.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use hue_demux::PortId;
use hue_planes::Answer;
use hue_planes::rofl::{Adjacency, AdjacencyKind, Outcome, Settings, check, decide};
use hue_routing::ring::{Body, Config, PAYLOAD_TYPE, Place, Port, Router};
use hue_tables::{LabelTable, NextHop};
use hue_wire::Mac;
use hue_wire::rofl::{FLAG_LINK, Label, Packet, ROUTE_MAX};

use crate::pwospf_world::Random;

pub const INTERVAL_MS: u16 = 1000;
/// The port at which a router's hosts are.
const STUB: u16 = 60;
/// Bytes of labels.
const SIZE: usize = 4;

pub fn label(number: u32) -> Label {
    Label::from(number) << 96
}

fn mac(router: usize, port: u16) -> Mac {
    Mac([2, 0, 0, port as u8, 0, router as u8])
}

fn host_mac(label: Label) -> Mac {
    let [a, b, c, d, ..] = label.to_be_bytes();
    Mac([2, 1, a, b, c, d])
}

/// A router's entries, as its plane has them.
#[derive(Default)]
struct Table {
    labels: LabelTable,
    rows: Vec<Adjacency>,
}

impl Table {
    fn of(router: usize, entries: &BTreeMap<Label, Place>) -> Self {
        let port = |port: u16| PortId::new(port as u8);
        let mut rows = Vec::new();
        let mut labels = Vec::new();
        for (label, place) in entries {
            labels.push((*label, NextHop::new(rows.len() as u16).unwrap()));
            rows.push(match place {
                Place::Own => Adjacency::local(),
                Place::Resident(hop) => {
                    Adjacency::out_with(port(hop.port), 1500, Some(hop.mac), Some(mac(router, hop.port)))
                }
                Place::Via(hop) => Adjacency::forward(port(hop.port), mac(router, hop.port), hop.mac, 1500),
            });
        }
        Self { labels: LabelTable::new(&labels), rows }
    }

    /// What the plane does with a frame that arrived at a port.
    fn pass(&self, router: usize, port: u16, frame: &[u8]) -> (Outcome, Adjacency) {
        let settings = Settings::new(8 * SIZE as u8, 0, 60).unwrap();
        let checked = match check(frame, settings) {
            Ok(checked) => checked,
            Err(outcome) => return (outcome, Adjacency::NONE),
        };
        let found = self.labels.closest(checked.key);
        let hop = found.map_or(Adjacency::NONE, |(_, row)| self.rows[usize::from(row)]);
        let exact = found.is_some_and(|(label, _)| label == checked.key);
        let arrival = Adjacency::out_with(PortId::new(port as u8), 1500, None, Some(mac(router, port)));
        (decide(&checked, Answer { arrival: &arrival, exact, ..Answer::of(&hop) }), hop)
    }
}

struct Node {
    router: Option<Router>,
    table: Table,
    label: Label,
    lives: u64,
}

/// A frame on its way: when it arrives, its number, the router, the port, and its bytes.
type Arrival = (Duration, u64, usize, u16, Vec<u8>);

pub struct World {
    pub now: Duration,
    nodes: Vec<Node>,
    /// The routers on each link, and whether it carries frames.
    pub links: Vec<(Vec<usize>, bool)>,
    /// Labels of hosts, their router, and whether they still say so.
    pub hosts: BTreeMap<Label, usize>,
    queue: BinaryHeap<Reverse<Arrival>>,
    sent: u64,
    hosts_due: Duration,
    pub loss_percent: u64,
    pub random: Random,
}

impl World {
    /// Routers with these labels, on these links. They start at once.
    pub fn new(seed: u64, labels: &[Label], links: &[Vec<usize>]) -> Self {
        let node = |label: &Label| Node { router: None, table: Table::default(), label: *label, lives: 0 };
        let mut world = Self {
            now: Duration::from_secs(1),
            nodes: labels.iter().map(node).collect(),
            links: links.iter().map(|link| (link.clone(), true)).collect(),
            hosts: BTreeMap::new(),
            queue: BinaryHeap::new(),
            sent: 0,
            hosts_due: Duration::ZERO,
            loss_percent: 0,
            random: Random(seed),
        };
        (0..labels.len()).for_each(|router| world.start(router));
        world
    }

    pub fn start(&mut self, router: usize) {
        let (now, node) = (self.now, &mut self.nodes[router]);
        node.lives += 1;
        let config = Config {
            router: node.label,
            label_bytes: SIZE,
            interval_ms: INTERVAL_MS,
            sequence: node.lives << 32,
        };
        let ports = self.links.iter().enumerate().filter(|(_, (on, _))| on.contains(&router));
        let ports = ports.map(|(link, _)| link as u16).chain([STUB]);
        let ports = ports.map(|id| Port { id, name: format!("l{id}"), mac: mac(router, id) }).collect();
        let mut new = Router::new(now, config);
        new.set_ports(now, ports);
        node.router = Some(new);
        self.act(router);
    }

    pub fn kill(&mut self, router: usize) {
        self.nodes[router].router = None;
        self.nodes[router].table = Table::default();
    }

    pub fn end(&mut self, router: usize) {
        let now = self.now;
        if let Some(router) = &mut self.nodes[router].router {
            router.end(now);
        }
        self.act(router);
        self.kill(router);
    }

    pub fn is_alive(&self, router: usize) -> bool {
        self.nodes[router].router.is_some()
    }

    pub fn router(&self, router: usize) -> &Router {
        self.nodes[router].router.as_ref().unwrap()
    }

    /// A host leaves, and says so.
    pub fn leave(&mut self, host: Label) {
        if let Some(router) = self.hosts.remove(&host) {
            self.say(router, host, 0);
        }
    }

    fn say(&mut self, router: usize, host: Label, hold_ds: u16) {
        let payload = Body::Host { hold_ds }.bytes(SIZE);
        let frame = frame(
            mac(router, STUB),
            host_mac(host),
            FLAG_LINK,
            (self.nodes[router].label, host),
            PAYLOAD_TYPE,
            &payload,
        );
        self.receive(router, STUB, &frame);
    }

    fn receive(&mut self, router: usize, port: u16, frame: &[u8]) {
        let now = self.now;
        if let Some(router) = &mut self.nodes[router].router {
            router.receive(now, port, frame);
        }
        self.act(router);
    }

    /// Sends what a router wants to be sent, and gives its plane the entries.
    fn act(&mut self, router: usize) {
        let Some(one) = &mut self.nodes[router].router else { return };
        let output = one.take();
        if output.changed {
            let entries = one.entries();
            self.nodes[router].table = Table::of(router, &entries);
        }
        for sent in output.packets {
            let mut frame = [&sent.to.0[..], &mac(router, sent.port).0, &[0x88, 0xb5]].concat();
            frame.extend(sent.packet);
            self.send(router, sent.port, frame);
        }
    }

    fn send(&mut self, from: usize, port: u16, frame: Vec<u8>) {
        let Some((on, true)) = self.links.get(usize::from(port)).cloned() else { return };
        for to in on.into_iter().filter(|to| *to != from) {
            let is_for = frame[0] & 1 == 1 || frame[..6] == mac(to, port).0;
            if !is_for || self.random.below(100) < self.loss_percent {
                continue;
            }
            self.sent += 1;
            let delay = Duration::from_micros(100 + self.random.below(20_000));
            self.queue.push(Reverse((self.now + delay, self.sent, to, port, frame.clone())));
        }
    }

    /// A frame reaches a router: its plane, and its daemon if the plane says so.
    fn arrive(&mut self, router: usize, port: u16, mut frame: Vec<u8>) {
        if !self.is_alive(router) {
            return;
        }
        let (outcome, hop) = self.nodes[router].table.pass(router, port, &frame);
        match outcome {
            Outcome::Link | Outcome::ForUs | Outcome::ForClosest => self.receive(router, port, &frame),
            Outcome::Forward if hop.kind() == AdjacencyKind::Forward => {
                frame[..6].copy_from_slice(&hop.dst().0);
                frame[6..12].copy_from_slice(&hop.src().0);
                frame[16] -= 1;
                self.send(router, hop.port().index() as u16, frame);
            }
            _ => {}
        }
    }

    pub fn run(&mut self, intervals: u64) {
        let end = self.now + Duration::from_millis(intervals * u64::from(INTERVAL_MS));
        loop {
            let arrival = self.queue.peek().map(|Reverse((at, ..))| *at);
            let due = self.nodes.iter().filter_map(|node| node.router.as_ref()).map(Router::due).min();
            let next = arrival.into_iter().chain(due).chain([self.hosts_due]).min().unwrap();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if self.hosts_due <= self.now {
                self.hosts_due = self.now + Duration::from_secs(1);
                for (host, router) in self.hosts.clone() {
                    self.say(router, host, 35);
                }
            }
            if arrival == Some(next)
                && let Some(Reverse((_, _, to, port, frame))) = self.queue.pop()
            {
                self.arrive(to, port, frame);
            }
            for router in 0..self.nodes.len() {
                let now = self.now;
                if let Some(one) = self.nodes[router].router.as_mut().filter(|one| one.due() <= now) {
                    one.tick(now);
                    assert!(one.due() > now, "a router that is always due");
                    self.act(router);
                }
            }
        }
        self.now = end;
    }

    /// Where a packet from a router's host ends up, on the planes' entries alone.
    pub fn walk(&self, from: usize, to: Label) -> Result<usize, String> {
        let (mut at, mut port) = (from, STUB);
        let mut frame = frame(mac(from, STUB), Mac([2, 9, 0, 0, 0, 1]), 0, (to, 0), 0x0800, &[0; 20]);
        let mut way = Vec::new();
        loop {
            way.push(at);
            let (outcome, hop) = self.nodes[at].table.pass(at, port, &frame);
            match (outcome, hop.kind()) {
                (Outcome::ForUs, _) => return Ok(at),
                (Outcome::Forward, AdjacencyKind::Port) if hop.dst() == host_mac(to) => return Ok(at),
                (Outcome::Forward, AdjacencyKind::Forward) => {
                    port = hop.port().index() as u16;
                    let (on, up) = &self.links[usize::from(port)];
                    let next = on.iter().find(|next| mac(**next, port) == hop.dst() && self.is_alive(**next));
                    let Some(next) = next.filter(|_| *up) else {
                        return Err(format!("{way:?}: nobody is there"));
                    };
                    at = *next;
                    frame[..6].copy_from_slice(&hop.dst().0);
                    frame[6..12].copy_from_slice(&hop.src().0);
                    frame[16] -= 1;
                }
                _ => return Err(format!("{way:?}: {outcome:?}")),
            }
        }
    }

    /// The routers that can reach each other, by the lowest of them.
    fn parts(&self) -> Vec<usize> {
        let mut part: Vec<usize> = (0..self.nodes.len()).collect();
        for _ in 0..part.len() {
            for (on, _) in self.links.iter().filter(|(_, up)| *up) {
                let alive = || on.iter().copied().filter(|router| self.is_alive(*router));
                if let Some(lowest) = alive().map(|router| part[router]).min() {
                    alive().collect::<Vec<_>>().into_iter().for_each(|router| part[router] = lowest);
                }
            }
        }
        part
    }

    /// All pairs of a router and a label in the same part: whether the packet arrives. Labels of hosts with a dead router, and
    /// in other parts, are not reached, and their packets end.
    pub fn faults(&self) -> Vec<String> {
        let part = self.parts();
        let alive: BTreeSet<usize> = (0..self.nodes.len()).filter(|router| self.is_alive(*router)).collect();
        let routers = alive.iter().map(|router| (self.nodes[*router].label, *router));
        let hosts = self.hosts.iter().map(|(label, router)| (*label, *router));
        let mut faults = Vec::new();
        for (to, home) in routers.chain(hosts) {
            for from in &alive {
                let is_near = alive.contains(&home) && part[home] == part[*from];
                let walked = self.walk(*from, to);
                if is_near != (walked == Ok(home)) {
                    faults.push(format!("{:#010x} of {home} from {from}: {walked:?}", to >> 96));
                }
            }
        }
        faults
    }
}

fn frame(
    to: Mac,
    from: Mac,
    flags: u8,
    labels: (Label, Label),
    payload_type: u16,
    payload: &[u8],
) -> Vec<u8> {
    let packet = Packet {
        flags,
        label_bytes: SIZE,
        budget: 64,
        destination: labels.0,
        source: labels.1,
        route: [0; ROUTE_MAX],
        route_len: 0,
        payload_type,
        payload,
    };
    let mut out = vec![0; 14 + packet.bytes()];
    out[..6].copy_from_slice(&to.0);
    out[6..12].copy_from_slice(&from.0);
    out[12..14].copy_from_slice(&[0x88, 0xb5]);
    packet.write(&mut out[14..]).unwrap();
    out
}
