//! The node: its status, capacity, physical ports and desired state.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Pending, PortStats, Timestamp};

/// The machine on which the daemon runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Name from its document, or `node`.
    pub name: String,
    /// Version of the daemon.
    pub version: String,
    /// Where its networks run without a card: `soft`.
    pub substrate: String,
    /// Its card, if one is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardInfo>,
    /// Worker threads.
    pub workers: usize,
    /// Their scheduling: `realtime`, or `fair`, like ordinary programs.
    #[serde(default)]
    pub scheduling: String,
    /// Why it is not the desired scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_note: Option<String>,
    /// Names of its physical ports.
    pub ports: Vec<String>,
    /// Names of its networks.
    pub networks: Vec<String>,
    /// Its use and capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// A running card.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardInfo {
    /// The image it runs.
    pub image: String,
    /// Width of its bus, bits.
    pub bus_bits: u32,
    /// Clock of its data path, kHz.
    pub clock_khz: u32,
    /// Layout of its routes: `tcam`, `dag36`, `sram` or `dir`.
    pub layout: String,
    /// Largest number of networks.
    pub networks_max: u32,
    /// Names of the ports that belong to it, MAC port 0 first.
    pub ports: Vec<String>,
    /// Whether it is drained: no network runs on it.
    #[serde(default)]
    pub drained: bool,
    /// Scheduling of its thread: `realtime`, or `fair`, like ordinary programs.
    #[serde(default)]
    pub scheduling: String,
    /// Clock cycles since it started.
    pub cycles: u64,
    /// Time that a real card needs for these cycles, seconds.
    pub simulated_seconds: f64,
    /// Time that this machine needed to simulate these cycles, seconds.
    pub clocking_seconds: f64,
    /// Seconds since it started.
    pub wall_seconds: f64,
    /// Damaged words of the card's route memory that the driver wrote again from its copy.
    #[serde(default)]
    pub repaired_words: u64,
}

/// Use and capacity of a substrate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Capacity {
    /// Networks loaded.
    pub networks: u64,
    /// Largest number of networks.
    pub networks_max: u64,
    /// Table memory in use, bytes.
    pub table_bytes: u64,
    /// Size of the table memory, bytes.
    pub table_bytes_max: u64,
}

/// State of a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It reads its stored state and sets up networks and ports.
    Starting,
    /// Everything runs as desired.
    Running,
    /// Something does not run as desired; `problems` says what.
    Degraded,
    /// It is stopping.
    Stopping,
}

impl Health {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Degraded => "degraded",
            Self::Stopping => "stopping",
        }
    }
}

/// Status of the daemon.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Its state, limited to what the caller may see.
    pub health: Health,
    /// Problems, as text.
    pub problems: Vec<String>,
    /// The same problems by part, each with what to do.
    #[serde(default)]
    pub troubles: Vec<Trouble>,
    /// Version of the daemon.
    pub version: String,
    /// Name of the node.
    pub node: String,
    /// Process id of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it started.
    pub started: Timestamp,
    /// If it took another daemon's place: milliseconds in which neither had the ports open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_over_ms: Option<u64>,
    /// Now, by its clock.
    #[serde(default)]
    pub time: Timestamp,
    /// Generation of the desired state; each change increases it by one.
    pub generation: u64,
    /// When it was applied; absent if nothing was ever applied, and for a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Timestamp>,
    /// The store of the desired state; absent for a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
    /// The card that the node's document names, if it names one; absent for a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardStatus>,
    /// Where the daemon writes its log; absent for a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPlace>,
    /// Networks.
    pub networks: Summary,
    /// Physical ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Summary>,
    /// The change that waits for its confirmation, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
}

/// Part of the node that has a problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The store of the desired state.
    Store,
    /// The card.
    Card,
    /// A physical port.
    Port,
    /// A network.
    Network,
}

impl Part {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Card => "card",
            Self::Port => "port",
            Self::Network => "network",
        }
    }
}

/// A problem, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Trouble {
    /// The part concerned.
    pub part: Part,
    /// Name of the port or network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub remedy: String,
}

/// The problem as one line: `port p0: its interface does not exist`.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.part) {
            (Some(name), part) => write!(f, "{} {name}: {}", part.name(), self.text),
            // These texts begin with the directory of the store.
            (None, Part::Store) => f.write_str(&self.text),
            (None, part) => write!(f, "{}: {}", part.name(), self.text),
        }
    }
}

/// State of the store of the desired state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoreStatus {
    /// Whether it stores every change, and its copy too.
    pub healthy: bool,
    /// Why it is not healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// State of a desired card.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    /// It runs.
    Running,
    /// Another image is being loaded.
    Loading,
    /// It does not run; all networks run in software.
    Down,
}

impl CardState {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Loading => "loading",
            Self::Down => "down",
        }
    }
}

/// A desired card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardStatus {
    /// Its state.
    pub state: CardState,
    /// The image that it runs, or that its document names; absent for a real card that does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// PCI address of a real card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
    /// Networks that run on it.
    pub networks: u64,
    /// Whether it is drained: no network runs on it.
    #[serde(default)]
    pub drained: bool,
}

/// Destination of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogTarget {
    /// A file whose size the daemon limits (`hueplane up --detach`).
    File,
    /// The journal of systemd.
    Journal,
    /// A terminal.
    Terminal,
    /// Standard error, which is none of these.
    Stderr,
    /// There is no log, or it goes to `/dev/null`.
    None,
}

/// Where the daemon writes its log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogPlace {
    /// Its destination.
    pub to: LogTarget,
    /// The file or terminal, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The systemd unit of the daemon, if the log goes to the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl LogPlace {
    /// No log.
    #[must_use]
    pub const fn none() -> Self {
        Self { to: LogTarget::None, path: None, unit: None }
    }
}

/// Number of objects, and of those that run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// All objects.
    pub total: u64,
    /// Objects that run or are up.
    pub up: u64,
    /// Objects by `state`; a state without objects is left out.
    #[serde(default)]
    pub states: BTreeMap<String, u64>,
}

impl Summary {
    /// Counts objects by their states, of which `up` is the desired one.
    #[must_use]
    pub fn of(states: impl IntoIterator<Item = &'static str>, up: &str) -> Self {
        let mut summary = Self::default();
        for state in states {
            summary.total += 1;
            *summary.states.entry(state.to_owned()).or_default() += 1;
        }
        summary.up = summary.states.get(up).copied().unwrap_or(0);
        summary
    }
}

/// The desired state.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Config {
    /// Its generation.
    pub generation: u64,
    /// When it was applied; absent if nothing was ever applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Timestamp>,
    /// Its documents, the Node first, then Networks in the order of names. Each is valid by
    /// `docs/reference/schema.json`.
    #[schema(value_type = Vec<Object>)]
    pub documents: Vec<Value>,
}

/// State of a physical port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// It receives and sends.
    Up,
    /// Its interface exists, but is down or could not be opened.
    Down,
    /// Its interface does not exist; the port comes up when it appears.
    Missing,
}

impl PortState {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Missing => "missing",
        }
    }
}

/// A physical port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Name.
    pub name: String,
    /// Linux interface behind it; empty for an end of a link.
    pub interface: String,
    /// Of an end of a link inside the node: the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Its state.
    pub state: PortState,
    /// Its driver: `afxdp`, `afxdp-zc`, `packet`, `tap` or `link`; absent while it is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// A remark, such as why its driver is not AF_XDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why it is not up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Largest IP packet it carries, bytes.
    pub mtu: u16,
    /// MAC address of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Number of the worker that serves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
    /// Networks with a virtual port on it that the caller may see.
    pub networks: Vec<String>,
    /// Its counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<PortStats>,
}
