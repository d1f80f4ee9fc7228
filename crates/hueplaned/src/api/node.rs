//! The node: how it is, what it holds, its physical ports, its desired state.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{PortStats, Timestamp};

/// The box that the daemon runs on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Name, of its document or `node`.
    pub name: String,
    /// Version of the daemon.
    pub version: String,
    /// Where its networks run when nothing else is there: `soft`.
    pub substrate: String,
    /// Its card, while one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardInfo>,
    /// Worker threads.
    pub workers: usize,
    /// How they compete for processors: `realtime`, or `fair`, as ordinary programs do.
    #[serde(default)]
    pub scheduling: String,
    /// Why that is not as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_note: Option<String>,
    /// Names of its physical ports.
    pub ports: Vec<String>,
    /// Names of its networks.
    pub networks: Vec<String>,
    /// What it holds and could hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// A card that runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CardInfo {
    /// The image it runs.
    pub image: String,
    /// Bits of its bus.
    pub bus_bits: u32,
    /// Clock of its data path, kHz.
    pub clock_khz: u32,
    /// How it keeps routes: `tcam`, `dag36` or `sram`.
    pub layout: String,
    /// Networks it can know.
    pub networks_max: u32,
    /// Names of the ports that are its own, MAC port 0 first.
    pub ports: Vec<String>,
    /// How its thread competes for processors: `realtime`, or `fair`, as ordinary programs do.
    #[serde(default)]
    pub scheduling: String,
    /// Clock cycles since it started.
    pub cycles: u64,
    /// The time that a card takes for them, seconds.
    pub simulated_seconds: f64,
    /// The time that this machine took for them, seconds.
    pub clocking_seconds: f64,
    /// Seconds since it started.
    pub wall_seconds: f64,
    /// Words of external memory that were damaged, and written again from the driver's copy.
    #[serde(default)]
    pub repaired_words: u64,
}

/// What a substrate holds and could hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Capacity {
    /// Networks loaded.
    pub networks: u64,
    /// Networks at most.
    pub networks_max: u64,
    /// Bytes of table memory in use.
    pub table_bytes: u64,
    /// Bytes of table memory at most.
    pub table_bytes_max: u64,
}

/// How a daemon is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It reads its state and sets up what should run.
    Starting,
    /// All that should run does.
    Running,
    /// Some of what should run does not; `problems` says what.
    Degraded,
    /// It is going down.
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

/// How the daemon is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// How it is, as far as the caller may see.
    pub health: Health,
    /// What is not as it should be, in words.
    pub problems: Vec<String>,
    /// Version of the daemon.
    pub version: String,
    /// Name of the node.
    pub node: String,
    /// Process id of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it started.
    pub started: Timestamp,
    /// Number of the desired state that is in force; each change of it has a number one higher.
    pub generation: u64,
    /// Networks.
    pub networks: Summary,
    /// Physical ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Summary>,
}

/// How many there are and how many do what they should.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// All of them.
    pub total: u64,
    /// Those that run, or are up.
    pub up: u64,
}

/// The desired state in force.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Config {
    /// Its number.
    pub generation: u64,
    /// When it came into force; absent when nothing was ever applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Timestamp>,
    /// Its documents, the Node first, then Networks in the order of names. Each is valid by
    /// `docs/reference/schema.json`.
    #[schema(value_type = Vec<Object>)]
    pub documents: Vec<Value>,
}

/// What a physical port does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// It receives and sends.
    Up,
    /// Its interface exists and is down, or could not be opened.
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
    /// Linux interface behind it.
    pub interface: String,
    /// What it does.
    pub state: PortState,
    /// How it is driven: `afxdp`, `afxdp-zc`, `packet` or `tap`; absent while it is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What is worth knowing, such as why it is not driven by AF_XDP.
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
    /// Networks with a virtual port on it, as far as the caller may see.
    pub networks: Vec<String>,
    /// What passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<PortStats>,
}
