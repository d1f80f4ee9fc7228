//! A network as it runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a network does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkState {
    /// It is being set up.
    Pending,
    /// It runs as desired.
    Running,
    /// Something of it is not as desired; `reason` says what. The rest runs.
    Degraded,
}

impl NetworkState {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Degraded => "degraded",
        }
    }
}

/// A virtual network as it runs on this node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Network {
    /// Name.
    pub name: String,
    /// Id on this node.
    pub vid: u16,
    /// Kind of plane.
    pub kind: String,
    /// Display colour, `#rrggbb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour: Option<String>,
    /// What it does.
    pub state: NetworkState,
    /// Why it is not as desired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where it runs: `card` or `soft`.
    #[serde(default)]
    pub substrate: String,
    /// Why it does not run on the card, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_soft: Option<String>,
    /// Its neighbours send to NICs beside the card's ports.
    #[serde(default)]
    pub on_nic: bool,
    /// How frames find it: `mac`, `port` or `inner`.
    pub select: String,
    /// Namespace of its control plane.
    pub namespace: String,
    /// Virtual ports, in the order of its document.
    pub ports: Vec<VirtualPort>,
    /// Routes in the data plane.
    pub routes: u64,
    /// Routes that its table has no room for: its quota's, or that of all networks.
    #[serde(default)]
    pub routes_refused: u64,
    /// Neighbours whose MAC address is known.
    pub neighbours: u64,
    /// What it may take.
    pub limits: Limits,
    /// What its processes take; absent where that cannot be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A network's interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VirtualPort {
    /// Name.
    pub name: String,
    /// Physical port it is on.
    pub port: String,
    /// Interface of the namespace that stands for it.
    pub interface: String,
    /// Router MAC address.
    pub mac: String,
    /// Largest IP packet sent, bytes.
    pub mtu: u16,
    /// Router addresses, with the prefix length of their link.
    pub addresses: Vec<String>,
    /// Whether it can receive and send.
    pub up: bool,
}

/// What a network may take; what is absent is not limited.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// Share of a core or an output port relative to other networks.
    pub weight: u16,
    /// Received, packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<Bucket>,
    /// Received, bits of frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<Bucket>,
    /// Handed to its control plane, packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub punt: Option<Bucket>,
    /// Table memory that its lookups can reach, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_bytes: Option<u64>,
    /// What its processes may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// Units a second.
    pub per_second: u64,
    /// Units that may come at once.
    pub burst: u64,
}

/// What the processes of a network may take.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Resources {
    /// Cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<f64>,
    /// Bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// What the processes of a network take.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Seconds of a core since the network was set up.
    pub cpu_seconds: f64,
    /// Bytes of memory now.
    pub memory_bytes: u64,
    /// Processes and threads now.
    pub processes: u64,
}

/// Where to run a command so that it is in a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecInfo {
    /// The network.
    pub network: String,
    /// Name of its namespace, as `ip netns` knows it.
    pub namespace: String,
    /// File to enter the namespace by.
    pub namespace_path: String,
    /// Folders of its control group: the file `cgroup.procs` of each takes the process. Several with version 1.
    pub cgroups: Vec<String>,
}
