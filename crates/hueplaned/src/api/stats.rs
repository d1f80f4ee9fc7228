//! What was counted.
//!
//! Identities, for every network: `received = forwarded + punted + dropped`; each of the three is the sum of its map,
//! and of its column of `ports`. What was lost before the plane, or after it, is in `losses` and none of these.
//! A reason that did not occur is left out of a map. For every physical port, what arrived is `received` and all of its
//! `losses` but `send_failed`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Timestamp;

/// What was counted, at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// The moment.
    pub time: Timestamp,
    /// By network, in the order of names.
    pub networks: Vec<NetworkStats>,
    /// By physical port, in the order of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortStats>,
    /// Frames that became no network's packet, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unclaimed: BTreeMap<String, u64>,
    /// By worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStats>,
}

/// What was counted of a network since it was loaded, packets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NetworkStats {
    /// The network.
    pub network: String,
    /// Packets that design select gave to it and its plane decided on.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
    /// Packets sent on by the plane.
    pub forwarded: u64,
    /// Packets handed to its control plane.
    pub punted: u64,
    /// Packets dropped by the plane.
    pub dropped: u64,
    /// Packets that left by its virtual ports: those forwarded and those of its control plane.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Packets that its control plane sent.
    pub from_control: u64,
    /// Punts by reason.
    pub punts: BTreeMap<String, u64>,
    /// Drops by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets lost outside the plane, by reason.
    pub losses: BTreeMap<String, u64>,
    /// By virtual port, in the order of its document.
    pub ports: Vec<VirtualPortStats>,
}

impl NetworkStats {
    /// Packets lost outside the plane, all reasons.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.values().sum()
    }
}

/// What was counted of a virtual port, packets.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct VirtualPortStats {
    /// The virtual port.
    pub port: String,
    /// Packets received by it.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
    /// Of those received by it: sent on by the plane.
    pub forwarded: u64,
    /// Of those received by it: handed to the control plane.
    pub punted: u64,
    /// Of those received by it: dropped by the plane.
    pub dropped: u64,
    /// Packets sent by it.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
}

/// What was counted of a physical port, frames.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PortStats {
    /// The port.
    pub port: String,
    /// Frames received.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Frames lost at the port itself, by reason (`docs/reference/outcomes.md`). Those of one network are in its losses,
    /// too; those of nobody in `unclaimed`.
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

/// What a worker thread did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkerStats {
    /// Its number.
    pub worker: usize,
    /// Packets it decided on.
    pub packets: u64,
    /// Batches it took them in.
    pub batches: u64,
    /// Times it went to sleep as there was nothing to do.
    pub sleeps: u64,
    /// Frames it handed to other workers.
    pub handed_over: u64,
}
