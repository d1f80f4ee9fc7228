//! A daemon without a data plane: networks `red` and `blue` on ports `p0` to `p2`, and the API in front of it on a Unix
//! socket of its own. Everything that belongs to blue contains the text `blue` or is [`BLUE`], so that a test can search
//! for it.
#![allow(dead_code)] // each test binary uses a part
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy takes for code

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use hueplaned::api::*;
use hueplaned::backend::{Backend, MetricsSnapshot, Pieces, Turn};
use hueplaned::client::Client;
use hueplaned::http::{Listeners, ServeLimits, TlsListener, serve};
use serde_json::json;
use tokio::net::UnixListener;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{broadcast, watch};

/// A number that only blue has.
pub const BLUE: u64 = 777_001;
/// Since when the counters of ports count.
const SINCE: Option<Timestamp> = Some(Timestamp::from_us(1_767_225_600_000_000));
/// Events that the ring keeps.
const EVENTS_KEPT: usize = 1_000;

/// The state behind the API.
pub struct World {
    events: Mutex<Vec<Event>>,
    newest: watch::Sender<u64>,
    frames: broadcast::Sender<CapturedFrame>,
    /// Documents in force, and their number.
    pub documents: Mutex<(u64, Vec<serde_json::Value>)>,
    /// Apply requests.
    pub applied: Mutex<Vec<ApplyRequest>>,
    /// The change that waits for its confirmation.
    pub pending: Mutex<Option<Pending>>,
    /// Rollback requests, and the only network concerned, if any.
    pub rolled_back: Mutex<Vec<(RollbackRequest, Option<String>)>>,
    /// Routes of red in addition to its two.
    pub many_routes: AtomicU64,
    /// Milliseconds that a stats call takes.
    pub slow_ms: AtomicU64,
    /// Whether captures end at once.
    pub captures_end: AtomicBool,
    /// Whether it does not know its networks yet.
    pub starting: AtomicBool,
    /// Whether nothing has a problem.
    pub well: AtomicBool,
    /// Whether its card is drained.
    pub drained: AtomicBool,
    /// Where its log is.
    pub log: Mutex<LogPlace>,
    /// Calls that reached the backend.
    pub calls: AtomicU64,
    /// Whether another change is under way and never ends.
    pub busy: AtomicBool,
    /// Changes that wait for it, and those that waited and left.
    pub waiting: AtomicU64,
    pub gone: AtomicU64,
}

/// A change that waits for its turn.
struct Waits<'w>(&'w World);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.gone.fetch_add(1, Ordering::SeqCst);
    }
}

/// A document of a network.
pub fn document(name: &str) -> String {
    let number = if name == "red" { 1 } else { 2 };
    format!(
        r#"{{"apiVersion": "hueplane/v1", "kind": "Network", "metadata": {{"name": "{name}"}},
 "spec": {{"plane": {{"kind": "ipv4"}}, "weight": 5, "ports": [
  {{"name": "left", "port": "p0", "mac": "02:00:00:00:0{number}:01", "addresses": ["10.1.0.{number}/24"]}}],
  "routes": [{{"to": "10.9.0.0/16", "port": "left"}}]}}}}"#
    )
}

fn parsed(text: &str) -> Vec<serde_json::Value> {
    let source = hue_intent::Source { name: "test".into(), bytes: text.as_bytes().to_vec() };
    let intent = hue_intent::parse(vec![source]).unwrap();
    intent.networks.iter().map(|network| serde_json::to_value(network).unwrap()).collect()
}

impl World {
    pub fn new() -> Arc<Self> {
        let node = json!({"apiVersion": "hueplane/v1", "kind": "Node", "metadata": {"name": "box"},
            "spec": {"ports": [{"name": "p0"}, {"name": "p1"}, {"name": "p2-blue"}]}});
        let mut documents = vec![node];
        documents.extend(parsed(&document("blue")));
        documents.extend(parsed(&document("red")));
        Arc::new(Self {
            events: Mutex::default(),
            newest: watch::channel(0).0,
            frames: broadcast::channel(10_000).0,
            documents: Mutex::new((7, documents)),
            applied: Mutex::default(),
            pending: Mutex::default(),
            rolled_back: Mutex::default(),
            many_routes: AtomicU64::new(0),
            slow_ms: AtomicU64::new(0),
            captures_end: AtomicBool::new(false),
            starting: AtomicBool::new(false),
            well: AtomicBool::new(false),
            drained: AtomicBool::new(false),
            log: Mutex::new(LogPlace {
                to: LogTarget::File,
                path: Some("/nowhere/blue.log".to_owned()),
                unit: None,
            }),
            calls: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            waiting: AtomicU64::new(0),
            gone: AtomicU64::new(0),
        })
    }

    /// Adds an event.
    pub fn happen(&self, kind: EventKind, network: Option<&str>) {
        let sequence = self.newest.borrow().wrapping_add(1);
        let message = format!("{} of {}", kind.name(), network.unwrap_or("the node of blue"));
        let network = network.map(str::to_owned);
        let mut events = self.events.lock().unwrap();
        events.push(Event { sequence, time: Timestamp::now(), kind, network, port: None, message });
        let surplus = events.len().saturating_sub(EVENTS_KEPT);
        events.drain(..surplus);
        drop(events);
        self.newest.send_replace(sequence);
    }

    /// The turn to change something.
    async fn in_turn(&self, turn: TurnQuery) -> Result<(), Problem> {
        if !self.busy.load(Ordering::SeqCst) {
            return Ok(());
        }
        if turn.no_wait {
            return Err(Problem::new(ProblemKind::Conflict, "another change is under way"));
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waits = Waits(self);
        std::future::pending().await
    }

    /// Passes a frame to the captures.
    pub fn pass(&self, network: Option<&str>, verdict: &'static str, reason: &'static str, bytes: Vec<u8>) {
        let frame = CapturedFrame {
            time_ns: 1_700_000_000_123_456_789,
            network: network.map(str::to_owned),
            port: "left".to_owned(),
            direction: Direction::In,
            verdict: Some(NetworkVerdict { verdict, reason }),
            length: bytes.len() as u32,
            bytes,
            lost: 0,
        };
        let _ = self.frames.send(frame);
    }

    /// Number of running captures.
    pub fn captures(&self) -> usize {
        self.frames.receiver_count()
    }

    fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn generation(&self) -> u64 {
        self.documents.lock().unwrap().0
    }
}

fn network(name: &str) -> Network {
    let is_blue = name == "blue";
    let port = if is_blue { "p2-blue" } else { "p1" };
    let virtual_port = |name: &str, port: &str, mac: &str| VirtualPort {
        name: name.to_owned(),
        port: port.to_owned(),
        tunnel: None,
        interface: name.to_owned(),
        mac: mac.to_owned(),
        mtu: 1500,
        addresses: vec!["10.1.0.1/24".to_owned()],
        up: true,
    };
    Network {
        name: name.to_owned(),
        vid: if is_blue { 2 } else { 1 },
        kind: "ipv4".to_owned(),
        colour: Some("#aa0000".to_owned()),
        state: if is_blue { NetworkState::Degraded } else { NetworkState::Running },
        reason: is_blue.then(|| "blue is unwell".to_owned()),
        substrate: "soft".to_owned(),
        why_soft: None,
        gated: false,
        on_nic: false,
        select: "mac".to_owned(),
        namespace: format!("hue-{name}"),
        ports: vec![
            virtual_port("left", "p0", "02:00:00:00:01:01"),
            virtual_port("right", port, "02:00:00:00:01:02"),
        ],
        routes: if is_blue { BLUE } else { 2 },
        routes_refused: if is_blue { BLUE } else { 1 },
        neighbours: 1,
        limits: Limits { weight: 5, ..Limits::default() },
        program: None,
        usage: Some(Usage { cpu_seconds: 0.5, memory_bytes: 4096, processes: 3 }),
    }
}

/// Counters of a network, for which the identities hold.
pub fn network_stats(name: &str) -> NetworkStats {
    let base = if name == "blue" { BLUE } else { 100 };
    let map = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        pairs.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
    };
    let port = |name: &str, forwarded: u64, punted: u64, dropped: u64| VirtualPortStats {
        port: name.to_owned(),
        received: forwarded + punted + dropped,
        received_bytes: 64 * (forwarded + punted + dropped),
        forwarded,
        punted,
        dropped,
        sent: forwarded,
        sent_bytes: 64 * forwarded,
    };
    NetworkStats {
        network: name.to_owned(),
        kind: "ipv4".to_owned(),
        since: Timestamp::from_us(1_767_225_600_000_000),
        card_since: (name == "blue").then(|| Timestamp::from_us(1_767_225_660_000_000)),
        received: base + 15,
        received_bytes: 64 * (base + 15),
        forwarded: base,
        punted: 5,
        dropped: 10,
        sent: base + 1,
        sent_bytes: 64 * (base + 1),
        from_control: 1,
        to_tunnels: 0,
        punts: map(&[("arp", 2), ("ttl", 3)]),
        drops: map(&[("no_route", 4), ("checksum", 6)]),
        losses: map(&[("queue_full", 9)]),
        families: BTreeMap::new(),
        copies: 0,
        macs: None,
        ports: vec![port("left", base - 1, 4, 3), port("right", 1, 1, 7)],
    }
}

fn route(name: &str, number: u64) -> Route {
    Route {
        slice: None,
        network: name.to_owned(),
        prefix: format!("{}/32", Ipv4Addr::from_bits(number as u32)),
        kind: RouteKind::Forward,
        via: Some(Ipv4Addr::new(10, 1, 0, 9).into()),
        port: Some("left".to_owned()),
        mac: Some("02:00:00:00:0a:09".to_owned()),
        ways: Vec::new(),
        protocol: "static".to_owned(),
        metric: 20,
        refused: number % 2 == 1,
    }
}

fn exists(name: &str) -> Result<(), Problem> {
    if ["red", "blue"].contains(&name) { Ok(()) } else { Err(Problem::no_network(name)) }
}

/// The networks that a filter names.
fn asked(filter: Option<&String>) -> Result<Vec<String>, Problem> {
    match filter {
        Some(name) => exists(name).map(|()| vec![name.clone()]),
        None => Ok(vec!["blue".to_owned(), "red".to_owned()]),
    }
}

#[async_trait]
impl Backend for World {
    fn is_ready(&self) -> bool {
        !self.starting.load(Ordering::SeqCst)
    }

    async fn status(&self) -> Result<Status, Problem> {
        self.called();
        let well = self.well.load(Ordering::SeqCst);
        let trouble = |part, name: Option<&str>, text: &str| Trouble {
            part,
            name: name.map(str::to_owned),
            text: text.to_owned(),
            remedy: "look after blue".to_owned(),
        };
        let mut troubles = vec![
            trouble(Part::Store, None, "the disk of blue is full"),
            trouble(Part::Card, None, "image blue does not exist"),
            trouble(Part::Port, Some("p2-blue"), "its interface does not exist"),
            trouble(Part::Network, Some("blue"), "blue is unwell"),
        ];
        if well {
            troubles.clear();
        }
        let (network, port) = if well { ("running", "up") } else { ("degraded", "missing") };
        let problem = (!well).then(|| "the disk of blue is full".to_owned());
        Ok(Status {
            health: if well { Health::Running } else { Health::Degraded },
            problems: troubles.iter().map(ToString::to_string).collect(),
            troubles,
            version: "1.2.3".to_owned(),
            node: "box".to_owned(),
            pid: Some(4_242),
            started: Timestamp::from_us(1_767_225_600_000_000),
            took_over_ms: None,
            time: Timestamp::from_us(1_767_225_600_000_000 + 90_061_000_000),
            generation: self.generation(),
            applied: Some(Timestamp::from_us(BLUE)),
            store: Some(StoreStatus { healthy: well, problem }),
            card: Some(CardStatus {
                state: if well { CardState::Running } else { CardState::Down },
                image: Some("blue".to_owned()),
                pci: None,
                networks: BLUE,
                drained: self.drained.load(Ordering::SeqCst),
            }),
            log: Some(self.log.lock().unwrap().clone()),
            networks: Summary::of(["running", network], "running"),
            ports: Some(Summary::of(["up", "up", port], "up")),
            pending: self.pending.lock().unwrap().clone(),
        })
    }

    async fn node(&self) -> Result<Node, Problem> {
        self.called();
        Ok(Node {
            name: "box".to_owned(),
            version: "1.2.3".to_owned(),
            substrate: "soft".to_owned(),
            card: None,
            workers: 2,
            scheduling: "realtime".to_owned(),
            scheduling_note: None,
            ports: ["p0", "p1", "p2-blue"].map(str::to_owned).to_vec(),
            networks: ["blue", "red"].map(str::to_owned).to_vec(),
            capacity: Some(Capacity {
                networks: 2,
                networks_max: 9,
                table_bytes: BLUE,
                table_bytes_max: BLUE,
            }),
        })
    }

    async fn config(&self) -> Result<Config, Problem> {
        self.called();
        let (generation, documents) = self.documents.lock().unwrap().clone();
        Ok(Config { generation, applied: Some(Timestamp::now()), documents })
    }

    async fn networks(&self) -> Result<Vec<Network>, Problem> {
        self.called();
        Ok(vec![network("blue"), network("red")])
    }

    async fn network(&self, name: &str) -> Result<Network, Problem> {
        self.called();
        exists(name).map(|()| network(name))
    }

    async fn ports(&self) -> Result<Vec<Port>, Problem> {
        self.called();
        let port = |name: &str, networks: &[&str]| Port {
            name: name.to_owned(),
            peer: None,
            interface: name.to_owned(),
            state: PortState::Up,
            driver: Some("afxdp".to_owned()),
            note: None,
            error: None,
            mtu: 1500,
            mac: None,
            worker: Some(0),
            networks: networks.iter().map(|name| (*name).to_owned()).collect(),
            stats: Some(PortStats {
                port: name.to_owned(),
                received: BLUE,
                since: SINCE,
                ..PortStats::default()
            }),
        };
        Ok(vec![port("p0", &["blue", "red"]), port("p1", &["red"]), port("p2-blue", &["blue"])])
    }

    async fn routes(&self, filter: RouteFilter) -> Result<Pieces<Route>, Problem> {
        self.called();
        let names = asked(filter.network.as_ref())?;
        let many = self.many_routes.load(Ordering::Relaxed);
        if many == u64::MAX {
            let fault = Err(Problem::internal("the list broke off"));
            return Ok(stream::iter([Ok(vec![route("red", 1)]), fault]).boxed());
        }
        let of = move |name: String| {
            let count = if name == "red" { 2 + many } else { 2 };
            let pieces = (0..count).step_by(1000).map(move |from| {
                let piece = from..count.min(from + 1000);
                Ok(piece.map(|number| route(&name, number)).collect())
            });
            stream::iter(pieces)
        };
        Ok(stream::iter(names).flat_map(of).boxed())
    }

    async fn neighbours(&self, filter: NetworkFilter) -> Result<Pieces<Neighbour>, Problem> {
        self.called();
        let names = asked(filter.network.as_ref())?;
        let neighbour = |network: String| Neighbour {
            network,
            port: "left".to_owned(),
            address: Ipv4Addr::new(10, 1, 0, 9).into(),
            mac: Some("02:00:00:00:0a:09".to_owned()),
            state: "reachable".to_owned(),
        };
        Ok(stream::iter([Ok(names.into_iter().map(neighbour).collect())]).boxed())
    }

    async fn macs(&self, filter: NetworkFilter) -> Result<Pieces<MacAddress>, Problem> {
        self.called();
        let names = asked(filter.network.as_ref())?;
        let mac = |network: String| MacAddress {
            network,
            mac: "02:00:00:00:0a:09".to_owned(),
            port: "left".to_owned(),
            fixed: false,
            age_seconds: Some(7),
        };
        Ok(stream::iter([Ok(names.into_iter().map(mac).collect())]).boxed())
    }

    async fn entries(&self, filter: NetworkFilter) -> Result<Pieces<TableEntry>, Problem> {
        self.called();
        let names = asked(filter.network.as_ref())?;
        let entry = |network: String| TableEntry {
            network,
            index: 0,
            matches: "0x0800".to_owned(),
            action: EntryAction::Forward,
            labels: None,
            port: Some("left".to_owned()),
            destination: Some("02:00:00:00:0a:09".to_owned()),
            source: None,
            resident: false,
            age_seconds: None,
        };
        Ok(stream::iter([Ok(names.into_iter().map(entry).collect())]).boxed())
    }

    async fn tables(&self) -> Result<Tables, Problem> {
        self.called();
        let share = |name: &str| TableShare {
            network: name.to_owned(),
            routes: if name == "blue" { BLUE } else { 2 },
            next_hops: 3,
            bytes_own: if name == "blue" { BLUE } else { 640 },
            bytes_shared: Some(BLUE),
            bytes_marginal: Some(BLUE),
            bytes_quota: Some(if name == "blue" { BLUE } else { 4_096 }),
            routes_refused: if name == "blue" { BLUE } else { 1 },
            refusals: if name == "blue" { BLUE } else { 3 },
            macs_learnt: None,
            macs_max: None,
        };
        let on_card = |name: &str| CardShare {
            network: name.to_owned(),
            routes: if name == "blue" { BLUE } else { 2 },
            own: if name == "blue" { BLUE } else { 40 },
            shared: Some(BLUE),
            marginal: Some(BLUE),
        };
        let memory =
            CardMemory { name: "level0".to_owned(), used: BLUE, max: BLUE, free: BLUE, network_max: None };
        Ok(Tables {
            layout: "dag".to_owned(),
            bytes_total: Some(BLUE),
            bytes_max: Some(BLUE),
            bytes_free: Some(BLUE),
            networks: vec![share("blue"), share("red")],
            card: Some(CardTables {
                image: "default".to_owned(),
                layout: "dag36".to_owned(),
                unit: "words".to_owned(),
                memories: vec![memory],
                networks: vec![on_card("blue"), on_card("red")],
            }),
        })
    }

    async fn stats(&self, network: Option<&str>) -> Result<Stats, Problem> {
        self.called();
        tokio::time::sleep(Duration::from_millis(self.slow_ms.load(Ordering::Relaxed))).await;
        if let Some(name) = network {
            exists(name)?;
            let networks = vec![network_stats(name)];
            let since = Timestamp::from_us(1_767_225_600_000_000);
            return Ok(Stats { time: Timestamp::now(), since, networks, ..Stats::default() });
        }
        Ok(Stats {
            time: Timestamp::now(),
            since: Timestamp::from_us(1_767_225_600_000_000),
            networks: vec![network_stats("blue"), network_stats("red")],
            ports: vec![PortStats {
                port: "p0".to_owned(),
                received: BLUE,
                since: SINCE,
                ..PortStats::default()
            }],
            unclaimed: BTreeMap::from([("no_network".to_owned(), BLUE)]),
            workers: vec![WorkerStats { packets: BLUE, ..WorkerStats::default() }],
        })
    }

    async fn placements(&self) -> Result<Vec<Placement>, Problem> {
        self.called();
        let placement = |name: &str, substrate: &str| Placement {
            network: name.to_owned(),
            placement: "auto".to_owned(),
            substrate: substrate.to_owned(),
            since: Timestamp::from_us(1_767_225_600_000_000),
            why: Some("beside blue".to_owned()),
            why_not: Some(format!("the card has no places for networks left ({BLUE} in total)")),
        };
        Ok(vec![placement("blue", "card"), placement("red", "soft")])
    }

    async fn plan(&self, query: PlanQuery) -> Result<Plan, Problem> {
        self.called();
        let network = |name: &str, now: &str, substrate: &str, needed_bps| PlannedNetwork {
            network: name.to_owned(),
            placement: "auto".to_owned(),
            latency: "normal".to_owned(),
            now: Some(now.to_owned()),
            substrate: substrate.to_owned(),
            core: (substrate == "soft").then_some(0),
            needed_bps,
            served_bps: needed_bps / 2,
            why: format!("{name} is best there"),
            why_not: "it would be worse".to_owned(),
        };
        let from_traffic = query.from_traffic;
        Ok(Plan {
            scheduler: query.scheduler.unwrap_or(SchedulerName::Greedy),
            note: from_traffic.then(|| "not measured yet: 1 network".to_owned()),
            from_traffic,
            move_cost_bps: 1_000_000,
            needed_bps: 3_000_000,
            served_bps: 1_500_000,
            networks: vec![
                network("blue", "soft", "card", 2_000_000),
                network("red", "soft", "soft", 1_000_000),
            ],
            moves: vec![PlannedMove {
                network: "blue".to_owned(),
                from: "soft".to_owned(),
                to: "card".to_owned(),
                why: "blue is best there".to_owned(),
            }],
            uses: vec![CapacityUse { what: "card networks".to_owned(), used: 1, max: 64 }],
        })
    }

    async fn metrics(&self) -> Result<MetricsSnapshot, Problem> {
        Ok(MetricsSnapshot {
            stats: self.stats(None).await?,
            status: self.status().await?,
            networks: self.networks().await?,
            ports: self.ports().await?,
            tables: self.tables().await?,
        })
    }

    async fn apply(&self, request: ApplyRequest, turn: Turn) -> Result<ApplyResult, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        let diff = self.diff(request.clone()).await?;
        let mut documents = self.documents.lock().unwrap();
        if request.if_generation.is_some_and(|expected| expected != documents.0) {
            return Err(Problem::new(
                ProblemKind::Conflict,
                format!("generation {} is in force", documents.0),
            ));
        }
        if !request.dry_run {
            documents.0 += 1;
            self.applied.lock().unwrap().push(request.clone());
        }
        let network =
            |name: &str| NetworkResult { name: name.to_owned(), state: NetworkState::Running, reason: None };
        let (generation, dry_run) = (documents.0, request.dry_run);
        let networks = vec![network("blue"), network("red")];
        let pending = request.confirm_within_s.map(|seconds| Pending {
            revision: generation,
            restores: generation - 1,
            remaining_s: seconds.into(),
            changes: vec![
                DocumentChange { verb: Verb::Change, object: ObjectKind::Network, name: "blue".to_owned() },
                DocumentChange { verb: Verb::Change, object: ObjectKind::Network, name: "red".to_owned() },
            ],
            by: Author { role: "operator".to_owned(), name: Some("blue's".to_owned()) },
            ..Pending::default()
        });
        self.pending.lock().unwrap().clone_from(&pending);
        Ok(ApplyResult { generation, dry_run, actions: diff.actions, networks, pending })
    }

    async fn diff(&self, request: ApplyRequest) -> Result<DiffResult, Problem> {
        self.called();
        let source = |source: SourceText| hue_intent::Source { name: source.name, bytes: source.text.into() };
        let sources = request.sources.into_iter().map(source).collect();
        let intent = hue_intent::parse(sources).map_err(|errors| Problem::from(&errors))?;
        let action =
            |object, name: &str| Action { verb: Verb::Change, object, name: name.into(), changes: vec![] };
        let mut actions = Vec::new();
        if intent.node_given {
            actions.push(action(ObjectKind::Node, intent.node.metadata.name.as_str()));
        }
        actions.extend(intent.networks.iter().map(|network| action(ObjectKind::Network, network.name())));
        actions.push(action(ObjectKind::Network, "blue"));
        Ok(DiffResult { generation: self.generation(), actions })
    }

    async fn history(&self) -> Result<History, Problem> {
        self.called();
        let change = |verb, object, name: &str| DocumentChange { verb, object, name: name.to_owned() };
        let revision = |number: u64, role: &str, name: &str, kind, changes| Revision {
            number,
            time: Timestamp::from_us(1_767_225_600_000_000),
            by: Author { role: role.to_owned(), name: Some(name.to_owned()) },
            kind,
            restored: (kind == RevisionKind::Rollback).then_some(4),
            changes,
        };
        let (red, blue) = (
            change(Verb::Change, ObjectKind::Network, "red"),
            change(Verb::Delete, ObjectKind::Network, "blue"),
        );
        let node = change(Verb::Create, ObjectKind::Node, "box");
        Ok(History {
            generation: self.generation(),
            revisions: vec![
                revision(
                    7,
                    "operator",
                    "blue's",
                    RevisionKind::Rollback,
                    vec![node, red.clone(), blue.clone()],
                ),
                revision(6, "operator", "blue's", RevisionKind::Delete, vec![blue]),
                revision(5, "tenant", "red", RevisionKind::Apply, vec![red]),
            ],
            pending: self.pending.lock().unwrap().clone(),
            problem: Some("the history of blue is damaged".to_owned()),
        })
    }

    async fn rollback(
        &self,
        request: RollbackRequest,
        only: Option<String>,
        turn: Turn,
    ) -> Result<RollbackResult, Problem> {
        self.called();
        let RollbackRequest { dry_run, prune, .. } = request;
        if !dry_run {
            self.in_turn(turn.query).await?;
        }
        let mut documents = self.documents.lock().unwrap();
        if request.if_generation.is_some_and(|expected| expected != documents.0) {
            return Err(Problem::new(ProblemKind::Conflict, "another generation is in force"));
        }
        let revision = request.revision.unwrap_or(5);
        let field = if revision == 3 { "spec.weight" } else { "spec.colour" };
        let change = FieldChange { field: field.to_owned(), before: None, after: Some(json!("#0000aa")) };
        let action = |object, name: &str| Action {
            verb: Verb::Change,
            object,
            name: name.to_owned(),
            changes: vec![change.clone()],
        };
        let mut actions = vec![action(ObjectKind::Network, "red")];
        if only.is_none() {
            actions.insert(0, action(ObjectKind::Network, "blue"));
        }
        if revision == 2 {
            actions.insert(0, action(ObjectKind::Node, "box"));
        }
        if !dry_run {
            documents.0 += 1;
            self.rolled_back.lock().unwrap().push((request, only.clone()));
        }
        let result =
            |name: &str| NetworkResult { name: name.to_owned(), state: NetworkState::Running, reason: None };
        let kept = if only.is_none() && !prune { vec!["blue-too".to_owned()] } else { Vec::new() };
        let networks = vec![result("blue"), result("red")];
        Ok(RollbackResult { revision, generation: documents.0, dry_run, actions, networks, kept })
    }

    async fn confirm(&self, request: ConfirmRequest, turn: Turn) -> Result<ConfirmResult, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        let mut pending = self.pending.lock().unwrap();
        match pending.take_if(|one| request.revision.is_none_or(|revision| revision == one.revision)) {
            Some(pending) => Ok(ConfirmResult { revision: pending.revision }),
            None => Err(Problem::new(ProblemKind::Conflict, "no change waits for a confirmation")),
        }
    }

    async fn delete_network(&self, name: &str, turn: Turn) -> Result<ApplyResult, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        exists(name).map(|()| ApplyResult::default())
    }

    async fn gate_network(&self, name: &str, _: GateRequest, turn: Turn) -> Result<ApplyResult, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        exists(name).map(|()| ApplyResult::default())
    }

    async fn migrate(&self, name: &str, request: MigrateRequest, turn: Turn) -> Result<Migration, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        exists(name)?;
        let phases = vec![MigrationPhase { name: "switch".to_owned(), us: 12 }];
        Ok(Migration {
            network: name.to_owned(),
            from: SubstrateName::Soft,
            to: request.to,
            lost: 0,
            lost_by: BTreeMap::new(),
            undecided: 0,
            doubled: 0,
            reordered: 0,
            duration_us: 12,
            gap_us_max: 5,
            gap_us_max_control: 4,
            phases,
            before: PacketsSeen::default(),
            during: PacketsSeen::default(),
            after: PacketsSeen::default(),
            outcomes: BTreeMap::new(),
            hold: None,
            cycles: 77,
            cut: false,
            trouble: None,
            steering: None,
            image: None,
        })
    }

    async fn images(&self) -> Result<Vec<ImageInfo>, Problem> {
        self.called();
        Ok(vec![ImageInfo { name: "default".to_owned(), running: true, ..ImageInfo::default() }])
    }

    async fn load_image(&self, name: &str, _: LoadImageRequest, turn: Turn) -> Result<ImageLoaded, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        let (image, before) = (name.to_owned(), "default".to_owned());
        Ok(ImageLoaded { image, before, phases: Vec::new(), duration_us: 1, networks: Vec::new() })
    }

    async fn drain(&self, request: DrainRequest, turn: Turn) -> Result<DrainResult, Problem> {
        self.called();
        self.in_turn(turn.query).await?;
        let changed = self.drained.swap(request.drained, Ordering::SeqCst) != request.drained;
        let drained = |network: &str, substrate: &str, why: Option<&str>| NetworkDrained {
            network: network.to_owned(),
            substrate: substrate.to_owned(),
            why: why.map(str::to_owned),
            migration: None,
        };
        let networks = match (request.drained, request.fail) {
            (true, Some(_)) => {
                vec![drained("blue", "card", Some("step 'aside' failed")), drained("red", "soft", None)]
            }
            (true, None) => vec![drained("red", "soft", None)],
            (false, _) => {
                vec![drained("blue", "soft", Some("it needs 9 rows")), drained("red", "card", None)]
            }
        };
        let generation = self.generation();
        Ok(DrainResult { drained: request.drained, changed, generation, networks })
    }

    async fn down(&self, _: DownOptions) -> Result<DownResult, Problem> {
        self.called();
        Ok(DownResult { pid: 4_242, networks: 2 })
    }

    fn events_since(&self, since: u64, limit: usize) -> EventPage {
        let events = self.events.lock().unwrap();
        let page = events.iter().filter(|event| event.sequence > since).take(limit).cloned().collect();
        let number = |event: Option<&Event>| event.map_or(0, |event| event.sequence);
        EventPage { first: number(events.first()), last: number(events.last()), events: page }
    }

    fn events_watch(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    async fn capture(&self, filter: CaptureFilter) -> Result<BoxStream<'static, CapturedFrame>, Problem> {
        self.called();
        asked(filter.network.as_ref())?;
        if self.captures_end.load(Ordering::Relaxed) {
            return Ok(stream::empty().boxed());
        }
        let frames = self.frames.subscribe();
        // All networks, whatever was requested: the API must remove what a tenant may not see.
        let next = |mut frames: broadcast::Receiver<CapturedFrame>| async move {
            frames.recv().await.ok().map(|frame| (frame, frames))
        };
        Ok(stream::unfold(frames, next).boxed())
    }

    async fn trace(&self, port: &str, frame: Vec<u8>) -> Result<Trace, Problem> {
        self.called();
        if port != "p0" && port != "p2-blue" {
            return Err(Problem::no_port(port));
        }
        let step =
            |stage: &str, detail: &str| Step { stage: stage.into(), detail: detail.into(), decided: None };
        let in_network = |name: &str| InNetwork {
            network: name.to_owned(),
            virtual_port: "left".to_owned(),
            row: None,
            stages: vec![step("lookup", name)],
            route: None,
            verdict: "drop".to_owned(),
            reason: "no_route".to_owned(),
            why: name.to_owned(),
            out_port: None,
            changes: vec![],
            bytes: String::new(),
        };
        // The first byte identifies the network of the frame.
        let networks: Vec<InNetwork> = match frame.first() {
            Some(1) => vec![in_network("red")],
            Some(2) => vec![in_network("blue")],
            Some(3) => vec![in_network("blue"), in_network("red")],
            _ => vec![],
        };
        let unclaimed = networks.is_empty().then(|| "no_network".to_owned());
        let stages =
            vec![step("frame", "bytes"), step("demux", if frame[0] == 2 { "row of blue" } else { "row" })];
        let (in_port, length) = (port.to_owned(), frame.len());
        let one = (networks.len() == 1).then(|| "drop".to_owned());
        let trace = Trace {
            in_port,
            length,
            bytes: "00".to_owned(),
            stages,
            unclaimed,
            verdict: one.clone(),
            reason: one,
            networks,
            passages: vec![],
        };
        // Through a tunnel of each network.
        let passage = |name: &str| Trace {
            stages: vec![step("tunnel", name)],
            networks: vec![in_network(name)],
            ..trace.clone()
        };
        let passages = if trace.networks.is_empty() { vec![] } else { ["blue", "red"].map(passage).into() };
        Ok(Trace { passages, ..trace })
    }

    async fn exec_info(&self, name: &str) -> Result<ExecInfo, Problem> {
        self.called();
        exists(name)?;
        Ok(ExecInfo {
            network: name.to_owned(),
            namespace: format!("hue-{name}"),
            namespace_path: format!("/run/netns/hue-{name}"),
            device: 4,
            inode: 4026532000,
            cgroups: vec![],
        })
    }
}

/// The API of a world, running.
pub struct Served {
    pub world: Arc<World>,
    pub folder: PathBuf,
    closing: watch::Sender<bool>,
    runtime: Option<Runtime>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Served {
    pub fn new() -> Self {
        Self::with(ServeLimits::default(), async || None)
    }

    pub fn with(limits: ServeLimits, tls: impl AsyncFnOnce() -> Option<TlsListener>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hueplaned-api-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (world, (closing, closed)) = (World::new(), watch::channel(false));
        let listeners = runtime.block_on(async {
            let unix = UnixListener::bind(folder.join("hueplane.sock")).unwrap();
            Listeners { unix: Some(unix), tls: tls().await, limits, guests: Some(Handle::current()) }
        });
        let task = runtime.spawn(serve(Arc::clone(&world) as Arc<dyn Backend>, listeners, closed));
        Self { world, folder, closing, runtime: Some(runtime), task: Some(task) }
    }

    pub fn client(&self) -> Client {
        Client::unix(hueplaned::client::socket_in(&self.folder)).unwrap()
    }

    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(hueplaned::client::socket_in(&self.folder)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(40))).unwrap();
        stream
    }

    /// Sends bytes as they are, and returns everything received until the connection is closed.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes); // a caller that is refused early may not be able to send all of it
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Stops the daemon; returns when the API has ended.
    pub fn close(&mut self) {
        self.closing.send_replace(true);
        if let (Some(task), Some(runtime)) = (self.task.take(), &self.runtime) {
            runtime.block_on(task).unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.closing.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until a condition holds; the limit is long enough for a loaded machine.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
