//! Counters.
//!
//! For every network, `received = forwarded + punted + dropped`. Each of these three is the sum of its map, and of
//! its column in `ports`. Packets lost before or after the plane are in `losses` only. A map omits reasons that did
//! not occur. For every physical port, the frames that arrived are `received` and all of its `losses` except
//! `send_failed`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Timestamp;

/// All counters at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// The moment.
    pub time: Timestamp,
    /// Since when the counters of workers and `unclaimed` count: when the daemon started. Networks and ports have a
    /// `since` of their own.
    #[serde(default)]
    pub since: Timestamp,
    /// By network, in the order of names.
    pub networks: Vec<NetworkStats>,
    /// By physical port, in the order of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortStats>,
    /// Frames that belong to no network, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unclaimed: BTreeMap<String, u64>,
    /// By worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStats>,
}

/// Counters of a network since it was loaded, packets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NetworkStats {
    /// The network.
    pub network: String,
    /// Kind of its plane, which the reasons below belong to.
    #[serde(default)]
    pub kind: String,
    /// Since when they count: when the daemon started, the network was created or set up again.
    #[serde(default)]
    pub since: Timestamp,
    /// When the card was removed, exchanged or failed while the network had a place on it, if that was later. What the
    /// card had counted before is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_since: Option<Timestamp>,
    /// Packets that design select assigned to it and its plane decided.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets forwarded by the plane.
    pub forwarded: u64,
    /// Packets handed to its control plane.
    pub punted: u64,
    /// Packets dropped by the plane.
    pub dropped: u64,
    /// Packets that left by its virtual ports: forwarded packets, and packets from its control plane.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that its control plane sent.
    pub from_control: u64,
    /// Of the punted packets, those of tunnels that the network carries: they went on to the networks in the tunnels.
    #[serde(default)]
    pub to_tunnels: u64,
    /// Punts by reason.
    pub punts: BTreeMap<String, u64>,
    /// Drops by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets lost outside the plane, by reason.
    pub losses: BTreeMap<String, u64>,
    /// By address family, of networks that have several: their packets with a header of that family (ARP counts as IPv4).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub families: BTreeMap<String, FamilyStats>,
    /// Copies of frames that were sent to several ports. Each such frame counts once as forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u64,
    /// What happened to MAC addresses, if its kind learns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macs: Option<MacStats>,
    /// By virtual port, in the order of its document.
    pub ports: Vec<VirtualPortStats>,
}

/// Counters of an address family of a network, packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FamilyStats {
    /// Packets forwarded by the plane.
    pub forwarded: u64,
    /// Packets handed to the control plane.
    pub punted: u64,
    /// Packets dropped by the plane.
    pub dropped: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What happened to the MAC addresses of a network since it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MacStats {
    /// Addresses learnt.
    pub learnt: u64,
    /// Learnt addresses that moved to another port.
    pub moved: u64,
    /// Frames whose source was not learnt, because the network had reached its limit.
    pub not_learnt: u64,
}

impl NetworkStats {
    /// Packets lost outside the plane, all reasons.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.values().sum()
    }
}

/// Counters of a virtual port, packets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct VirtualPortStats {
    /// The virtual port.
    pub port: String,
    /// Packets received by it.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Received packets that the plane forwarded.
    pub forwarded: u64,
    /// Received packets that the plane handed to the control plane.
    pub punted: u64,
    /// Received packets that the plane dropped.
    pub dropped: u64,
    /// Packets sent by it.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// Counters of a physical port, frames.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PortStats {
    /// The port.
    pub port: String,
    /// Since when they count: when the port was first opened, for a port of the card when the card started. Absent for
    /// a port that was not opened yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Frames received.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames lost at the port itself, by reason (`docs/reference/outcomes.md`). Frames of one network count in its
    /// losses too, and frames of no network in `unclaimed`.
    #[serde(default)]
    pub losses: BTreeMap<String, u64>,
}

impl PortStats {
    /// Frames lost at the port itself, all reasons.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.values().sum()
    }
}

/// Counters of a worker thread.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkerStats {
    /// Its number.
    pub worker: usize,
    /// Packets that it decided.
    pub packets: u64,
    /// Batches that it decided.
    pub batches: u64,
    /// Number of times it went to sleep because it had no work.
    pub sleeps: u64,
    /// Frames it handed to other workers.
    pub handed_over: u64,
}
