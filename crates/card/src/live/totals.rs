//! Totals of a running card, in addition to its own counters.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hue_demux::PortId;
use hue_planes::{Counters, Kind};
use hue_ports::{Driver, DriverCounters};
use hue_tables::Vid;
use serde::{Deserialize, Serialize};

/// Totals of a running card.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CardTotals {
    /// Clock cycles since it started. A real card needs this many periods of the image's clock.
    pub cycles: u64,
    /// Host time in which the twin was clocked, in nanoseconds.
    pub clocking_ns: u64,
    /// Number of times it went to sleep because it had no work.
    pub sleeps: u64,
    /// Its open ports, by the card's port number.
    pub ports: BTreeMap<u8, LivePortTotals>,
    /// Frames between the card and software, by network.
    pub crossings: BTreeMap<Vid, Crossings>,
    /// Malformed frames on CPU queues.
    pub nonsense: u64,
    /// Frames that belong to no network and bypassed the card.
    pub unclaimed: u64,
    /// Damaged words of the banks that were repaired.
    pub repaired: u64,
}

/// The card's counters of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CardCounts {
    /// By outcome, since it was loaded.
    pub outcomes: Counters,
    /// Bytes of frames received.
    pub received_bytes: u64,
    /// Bytes of frames sent, including frames that software sends through the card.
    pub sent_bytes: u64,
    /// Frames that left because of a flood, a copy for each port.
    pub copies: u64,
    /// Frames that found no room in the output queues of ports.
    pub port_full: u64,
    /// Frames for software that found no room in the output queues of the CPU.
    pub handover_full: u64,
}

impl CardCounts {
    /// Those of a network of this kind that has not had a frame.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            outcomes: Counters::new(kind),
            received_bytes: 0,
            sent_bytes: 0,
            copies: 0,
            port_full: 0,
            handover_full: 0,
        }
    }

    /// What was counted since `before`; all of it if that was of a network of another kind.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.outcomes.kind() != before.outcomes.kind() {
            return *self;
        }
        let mut counts = Self::new(self.outcomes.kind());
        for (outcome, count) in self.outcomes.iter() {
            counts.outcomes.add(outcome, count.saturating_sub(before.outcomes.get(outcome)));
        }
        counts.received_bytes = self.received_bytes.saturating_sub(before.received_bytes);
        counts.sent_bytes = self.sent_bytes.saturating_sub(before.sent_bytes);
        counts.copies = self.copies.saturating_sub(before.copies);
        counts.port_full = self.port_full.saturating_sub(before.port_full);
        counts.handover_full = self.handover_full.saturating_sub(before.handover_full);
        counts
    }
}

/// Frames of a network between the card and software.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Crossings {
    /// Frames for software to decide.
    pub to_software: u64,
    /// Their bytes.
    pub to_software_bytes: u64,
    /// Frames that software sends through a port of the card.
    pub from_software: u64,
    /// Those bytes that the card counts for the network. Frames that are diverted during a move do not count.
    pub from_software_bytes: u64,
    /// Frames for software that were lost for lack of room.
    pub to_software_lost: u64,
    /// Frames from software that were lost for lack of room, or because their port no longer exists.
    pub from_software_lost: u64,
    /// Frames dropped before the rings of the card's wires, because the network's share of a ring was used up.
    pub ring_quota: u64,
    /// Frames that were admitted to such a ring and lost there.
    pub ring_full: u64,
    /// Frames that a wire did not accept.
    pub port_full: u64,
    /// Frames for a port that has no wire.
    pub port_down: u64,
}

/// Totals of a wire of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LivePortTotals {
    /// The port, as networks name it.
    pub id: PortId,
    /// Its driver.
    pub driver: Driver,
    /// Its counters, including those of earlier ports with this number.
    pub counters: DriverCounters,
    /// Received broadcast and multicast frames that the card dropped because there was no room for copies.
    pub flood_full: u64,
}

/// A copy of the totals that were published last.
pub fn read(totals: &Mutex<CardTotals>) -> CardTotals {
    // Totals are replaced as a whole, so they are consistent even after a panic elsewhere.
    totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
