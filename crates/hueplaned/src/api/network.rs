//! A running network.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkState {
    /// It is being set up.
    Pending,
    /// It runs as desired.
    Running,
    /// Part of it is not in the desired state; `reason` says which. The rest runs.
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

/// A virtual network running on this node.
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
    /// State.
    pub state: NetworkState,
    /// Why it is not in the desired state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where it runs: `card` or `soft`.
    #[serde(default)]
    pub substrate: String,
    /// Why it does not run on the card, if there is a card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_soft: Option<String>,
    /// Whether its clock gate is closed: its plane stops, and its packets are dropped.
    #[serde(default)]
    pub gated: bool,
    /// Whether its neighbours send to NICs beside the card's ports.
    #[serde(default)]
    pub on_nic: bool,
    /// How frames are assigned to it: `mac`, `port` or `inner`.
    pub select: String,
    /// Namespace of its control plane.
    pub namespace: String,
    /// Virtual ports, in document order.
    pub ports: Vec<VirtualPort>,
    /// Routes in the data plane.
    pub routes: u64,
    /// Routes refused because its quota or the memory of all tables is used up.
    #[serde(default)]
    pub routes_refused: u64,
    /// Neighbours whose MAC address is known.
    pub neighbours: u64,
    /// Its limits.
    pub limits: Limits,
    /// The program that forwards its packets, if its kind is `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Resource usage of its processes; absent where it cannot be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The program that forwards a network's packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Program {
    /// Its command line.
    pub command: Vec<String>,
    /// How often it was started since the daemon runs.
    pub starts: u64,
}

/// A network's virtual port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VirtualPort {
    /// Name.
    pub name: String,
    /// Physical port it is on; absent for the end of a tunnel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub port: String,
    /// The tunnel that it is the end of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// Its interface in the namespace.
    pub interface: String,
    /// Router MAC address.
    pub mac: String,
    /// Largest IP packet sent, bytes.
    pub mtu: u16,
    /// Router addresses, with the prefix length of their link.
    pub addresses: Vec<String>,
    /// Whether it can receive and send. A tunnel can while the network that carries it has a route to the far end.
    pub up: bool,
}

impl VirtualPort {
    /// What it is on, for people: a physical port, or a tunnel over a network.
    #[must_use]
    pub fn on(&self) -> String {
        match &self.tunnel {
            Some(Tunnel { kind, over, .. }) => format!("{kind}@{over}"),
            None => self.port.clone(),
        }
    }
}

/// A tunnel: packets that leave the virtual port are carried by another network of the node to a far end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Tunnel {
    /// Type: `ipip` or `vxlan`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Network that carries it.
    pub over: String,
    /// Near end, an address of that network.
    #[schema(value_type = String)]
    pub local: IpAddr,
    /// Far end.
    #[schema(value_type = String)]
    pub remote: IpAddr,
    /// With type `vxlan`: identifier of the virtual network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<u32>,
    /// With type `vxlan`: UDP destination port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<u16>,
    /// TTL or hop limit of the outer packets.
    pub ttl: u8,
    /// DSCP of the outer packets; absent if it is that of the inner packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
}

/// Limits of a network; an absent one is unlimited.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// Share of a core or an output port relative to other networks.
    pub weight: u16,
    /// Received packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<Bucket>,
    /// Received bits, of whole frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<Bucket>,
    /// Packets handed to its control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub punt: Option<Bucket>,
    /// Quota of table memory that its lookups can reach, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_bytes: Option<u64>,
    /// Limits of its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// Units per second.
    pub per_second: u64,
    /// Units allowed in a burst.
    pub burst: u64,
}

/// Resource limits of a network's processes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Resources {
    /// CPU cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<f64>,
    /// Memory, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// Resource usage of a network's processes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// CPU time since the network was set up, seconds.
    pub cpu_seconds: f64,
    /// Memory now, bytes.
    pub memory_bytes: u64,
    /// Processes and threads now.
    pub processes: u64,
}

/// Namespace and control groups that a command must enter to run inside a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecInfo {
    /// The network.
    pub network: String,
    /// Name of its namespace, as in `ip netns`.
    pub namespace: String,
    /// File for entering the namespace.
    pub namespace_path: String,
    /// Device number of that file. With `inode`, it identifies the namespace: if the file has other numbers, another
    /// namespace has taken the name, and must not be entered.
    pub device: u64,
    /// Inode number of that file.
    pub inode: u64,
    /// Directories of its control group: write the process id to `cgroup.procs` in each. Several with version 1.
    pub cgroups: Vec<String>,
}
