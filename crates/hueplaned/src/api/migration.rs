//! Moves of a network between card and software, with a report on every packet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a network runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubstrateName {
    /// The card.
    Card,
    /// Software.
    Soft,
}

impl SubstrateName {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Card => hue_card::NAME,
            Self::Soft => hue_soft::NAME,
        }
    }
}

/// A step of a move that can be made to fail. After these steps a move always completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrationStep {
    /// The network's table is written to the card.
    Prepare,
    /// Frames from software are diverted.
    Aside,
    /// The destination begins to decide.
    Switch,
    /// The old path drains.
    Drain,
    /// Not a step: every tenth packet from software is lost, and the report must show it.
    Packets,
    /// The same, but the packet is sent twice.
    Doubled,
    /// The same, but the packet is sent after the next one.
    Reordered,
    /// Not a step: the card itself fails during the move; all its networks then run in software.
    Card,
}

/// Where to move a network, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrateRequest {
    /// The destination.
    pub to: SubstrateName,
    /// If another image can hold the network, but the card's cannot, load that image first. No other network moves to
    /// the card before this one.
    #[serde(default)]
    pub load_image: bool,
    /// Time for which packets are observed before and after the move, milliseconds, at most 10,000.
    #[serde(default = "watch_ms")]
    pub watch_ms: u32,
    /// Time limit of all steps together, milliseconds, at most 10,000.
    #[serde(default = "limit_ms")]
    pub limit_ms: u32,
    /// A step that is made to fail; for tests, and only for administrators. The network must then stay where it is and
    /// lose no packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<MigrationStep>,
    /// Least time that software takes to drain, while the card holds the network's packets, milliseconds, at most
    /// 10,000. For tests, and only for administrators.
    #[serde(default)]
    pub drain_ms: u32,
}

const fn watch_ms() -> u32 {
    20
}

const fn limit_ms() -> u32 {
    1000
}

impl MigrateRequest {
    /// A move with the defaults of the command line.
    #[must_use]
    pub const fn new(to: SubstrateName) -> Self {
        Self { to, load_image: false, watch_ms: watch_ms(), limit_ms: limit_ms(), fail: None, drain_ms: 0 }
    }
}

/// Desired state of a network's clock gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GateRequest {
    /// Whether it is closed: the network's plane stops, and its packets are dropped.
    pub gated: bool,
}

/// Duration of a step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MigrationPhase {
    /// Name of the step: `prepare`, `aside`, `switch`, `drain`, `join`, `after`.
    pub name: String,
    /// Duration, microseconds.
    pub us: u64,
}

/// Packets of the network in a period.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PacketsSeen {
    /// Packets that arrived for the network by ports of the card.
    pub received: u64,
    /// How many of these left.
    pub sent: u64,
    /// Length of the period, microseconds.
    pub us: u64,
    /// Longest time between two packets that left, microseconds.
    pub gap_us_max: u64,
}

/// The card's queues in which packets wait during a move to the card, until software has drained.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct MigrationHold {
    /// Largest size of one port's queue, bytes: half of the card's output memory.
    pub bytes_max: u64,
    /// Packets that found no room; `lost` includes them.
    pub dropped: u64,
}

/// The report of a move. It follows each packet that arrives on a port of the card during the observation, and each
/// packet that the network's control plane sends by a port of the card, until the packet leaves, is dropped by the
/// network, or is lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Migration {
    /// The network.
    pub network: String,
    /// Where it ran.
    pub from: SubstrateName,
    /// Where it runs now.
    pub to: SubstrateName,
    /// Packets that were lost: they found no room in a queue, or never left.
    pub lost: u64,
    /// Lost packets by reason: a loss of `stats`, `output_full` (the card's output memory), `flood_full` (the card's
    /// memory for broadcasts and multicasts), `no_network` (the card found no network for it) or `vanished` (it never
    /// left). Packets lost before the card's ports received them (`ring_quota`, `ring_full`) do not count as
    /// received.
    #[serde(default)]
    pub lost_by: BTreeMap<String, u64>,
    /// Packets whose fate is unknown: they were still inside after five seconds, or the network was changed
    /// meanwhile.
    #[serde(default)]
    pub undecided: u64,
    /// Packets that left more than once.
    pub doubled: u64,
    /// Packets that left after a later packet of their flow (RFC 4737 §3.3).
    pub reordered: u64,
    /// Time from the first step to the last, without the observation before and after, microseconds.
    pub duration_us: u64,
    /// Longest time between two packets that left during the move, microseconds.
    pub gap_us_max: u64,
    /// The same before and after the move, for comparison.
    pub gap_us_max_control: u64,
    /// The steps.
    pub phases: Vec<MigrationPhase>,
    /// Before the move.
    pub before: PacketsSeen,
    /// During the move.
    pub during: PacketsSeen,
    /// After the move.
    pub after: PacketsSeen,
    /// Packets that the network itself dropped or punted during the observation, by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// The card's queues for waiting packets; only for moves to the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<MigrationHold>,
    /// Clock cycles of the card since the switch.
    pub cycles: u64,
    /// Whether more packets arrived than the report can follow; the others are in none of its numbers.
    #[serde(default)]
    pub cut: bool,
    /// Problems that did not prevent the move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How neighbours were redirected, if there are NICs beside the card's ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<MigrationSteering>,
    /// The image that was loaded for this move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

impl Migration {
    /// Whether it is certain that the move affected no packets.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.reordered == 0 && self.undecided == 0 && !self.cut
    }

    /// The result for packets, as text.
    #[must_use]
    pub fn verdict(&self) -> String {
        let undecided = match self.undecided {
            0 => String::new(),
            count => format!(", {count} undecided"),
        };
        format!("{} lost, {} doubled, {} reordered{undecided}", self.lost, self.doubled, self.reordered)
    }
}

/// Redirection of neighbours: to NICs before a move to software, or to the card's ports after a move to the card.
/// Both paths are outside the node: frames on one path may overtake frames on the other until the old path is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MigrationSteering {
    /// Number of neighbours that were notified by unicast ARP messages: all whose MAC addresses the network knows.
    pub neighbours: u64,
    /// Time for which the old path was observed, microseconds.
    pub watched_us: u64,
    /// Frames that still arrived on the old path: at most this many were overtaken on their way to the node.
    pub late: u64,
    /// Only for moves to software: time until the network's last frame had left the card, microseconds. Frames from
    /// the NICs have overtaken earlier frames by at most this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_us: Option<u64>,
}
