//! Moving a network between the card and software, and the proof of what became of its packets.

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

/// A step of a move that can be made to fail; after these it can only go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrationStep {
    /// The network's table is written to the card.
    Prepare,
    /// Frames from software are put aside.
    Aside,
    /// The other side decides from here on.
    Switch,
    /// The old way runs empty.
    Drain,
    /// No step, but every tenth packet that software sends: it is lost, and the report must say so.
    Packets,
    /// The same, but it is sent twice.
    Doubled,
    /// The same, but it is sent behind the next one.
    Reordered,
    /// No step, but the card itself, in the midst of it: all its networks then run in software.
    Card,
}

/// Where to move a network, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrateRequest {
    /// To where.
    pub to: SubstrateName,
    /// If the card's image cannot hold the network and another can, load that one first. No other network moves to the
    /// card before this one.
    #[serde(default)]
    pub load_image: bool,
    /// How long packets are looked at before and after, milliseconds, 10,000 at most.
    #[serde(default = "watch_ms")]
    pub watch_ms: u32,
    /// How long the steps may take together, milliseconds, 10,000 at most.
    #[serde(default = "limit_ms")]
    pub limit_ms: u32,
    /// A step that is to fail. For tests, and only for administrators: the network must stay where it is and lose nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<MigrationStep>,
    /// How long software is made to take at least to give back what it has, while the card holds the network's packets,
    /// milliseconds, 10,000 at most. For tests of that, and only for administrators.
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
    /// A move as the command line asks for it by default.
    #[must_use]
    pub const fn new(to: SubstrateName) -> Self {
        Self { to, load_image: false, watch_ms: watch_ms(), limit_ms: limit_ms(), fail: None, drain_ms: 0 }
    }
}

/// What a network's clock gate is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GateRequest {
    /// Whether it is closed: the network's plane stands still, and its packets are dropped.
    pub gated: bool,
}

/// How long a step took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MigrationPhase {
    /// Its name: `prepare`, `aside`, `switch`, `drain`, `join`, `after`.
    pub name: String,
    /// Microseconds.
    pub us: u64,
}

/// Packets of the network in a stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PacketsSeen {
    /// Packets that arrived for the network by ports of the card.
    pub received: u64,
    /// Of all these, those that left.
    pub sent: u64,
    /// How long it was, microseconds.
    pub us: u64,
    /// Longest time between two that left, microseconds.
    pub gap_us_max: u64,
}

/// Where packets of a network that comes to the card waited for those still in software.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct MigrationHold {
    /// Bytes that one port's queue may take at most: half of the card's output memory.
    pub bytes_max: u64,
    /// Packets that found no room; they are among the lost.
    pub dropped: u64,
}

/// A move, and what became of packets: each one that arrived by a port of the card while it was looked, and each one that the
/// network's control plane sent by one, is followed until it leaves, is dropped by the network, or is lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Migration {
    /// The network.
    pub network: String,
    /// Where it was.
    pub from: SubstrateName,
    /// Where it is.
    pub to: SubstrateName,
    /// Packets that were lost: that found no room somewhere, or did not come out again.
    pub lost: u64,
    /// Of these, how many for which reason: a loss of `stats`, `output_full` (the card's output memory), `flood_full` (the
    /// card's memory for broadcasts and multicasts), `no_network` (the card took it for nobody's) or `vanished` (it did not
    /// come out). Those lost before the card's ports received them (`ring_quota`, `ring_full`) are not among the received.
    #[serde(default)]
    pub lost_by: BTreeMap<String, u64>,
    /// Packets of which it is not known how they ended: they were still inside after five seconds, or the network was changed
    /// meanwhile.
    #[serde(default)]
    pub undecided: u64,
    /// Packets that left more than once.
    pub doubled: u64,
    /// Packets that left behind a later one of their flow (RFC 4737 §3.3).
    pub reordered: u64,
    /// Microseconds from the first step to the last, without the looking before and after.
    pub duration_us: u64,
    /// Longest time between two packets that left while it moved, microseconds.
    pub gap_us_max: u64,
    /// The same before and after: what it is without a move.
    pub gap_us_max_control: u64,
    /// The steps.
    pub phases: Vec<MigrationPhase>,
    /// Before.
    pub before: PacketsSeen,
    /// While it moved.
    pub during: PacketsSeen,
    /// After.
    pub after: PacketsSeen,
    /// Packets that the network itself dropped or took meanwhile, by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// The card's queues for packets that wait; of a move to the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<MigrationHold>,
    /// Clock cycles of the card from the switch on.
    pub cycles: u64,
    /// More packets came than are looked at; the others are in no number here.
    #[serde(default)]
    pub cut: bool,
    /// What was not as it should be, although the network has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What neighbours were told, where NICs stand beside the card's ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<MigrationSteering>,
    /// The image that was loaded for this move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

impl Migration {
    /// Whether packets are known to have gone through it as if there had been no move.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.reordered == 0 && self.undecided == 0 && !self.cut
    }

    /// What became of packets, in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        let undecided = match self.undecided {
            0 => String::new(),
            count => format!(", {count} undecided"),
        };
        format!("{} lost, {} doubled, {} reordered{undecided}", self.lost, self.doubled, self.reordered)
    }
}

/// Neighbours were told to send to NICs, before a move to software, or to the card's ports, after a move to the card.
/// Both ways are outside the node: frames on one may overtake those on the other until the old one is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MigrationSteering {
    /// Neighbours that were told: all whose MAC addresses the network knows, each by ARP messages of its own.
    pub neighbours: u64,
    /// How long it was looked whether frames come the old way, microseconds.
    pub watched_us: u64,
    /// Frames that still did: no more than these have been overtaken on their way to the node.
    pub late: u64,
    /// Microseconds until all that the card had of the network had left: frames that came by the NICs have overtaken others
    /// that had come before by no more than this. Of moves to software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_us: Option<u64>,
}
