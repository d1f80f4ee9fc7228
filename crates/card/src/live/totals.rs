//! Totals of a running card, in addition to its own counters.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hue_demux::PortId;
use hue_planes::Counters;
use hue_ports::{Driver, DriverCounters};
use hue_tables::Vid;

/// Totals of a running card.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CardTotals {
    /// Clock cycles since it started. A real card needs this many periods of the image's clock.
    pub cycles: u64,
    /// Time that the host took for them, in nanoseconds: the time in which the twin was clocked.
    pub clocking_ns: u64,
    /// Number of times it went to sleep because it had no work.
    pub sleeps: u64,
    /// Its open ports, by the card's own numbers.
    pub ports: BTreeMap<u8, LivePortTotals>,
    /// Frames between the card and software, by network.
    pub crossings: BTreeMap<Vid, Crossings>,
    /// Malformed frames on CPU queues.
    pub nonsense: u64,
    /// Frames that belong to no network and bypassed the card.
    pub unclaimed: u64,
    /// Damaged words of external memory that were repaired.
    pub repaired: u64,
}

/// The card's counters of a network.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CardCounts {
    /// By outcome, since it was loaded.
    pub outcomes: Counters,
    /// Bytes of frames received.
    pub received_bytes: u64,
    /// Bytes of frames sent, including those that software sends by the card.
    pub sent_bytes: u64,
    /// Frames that found no room in the output queues of ports.
    pub port_full: u64,
    /// Frames for software that found no room in the output queues of the CPU.
    pub handover_full: u64,
}

/// Frames of a network between the card and software.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Crossings {
    /// Frames for software to decide.
    pub to_software: u64,
    /// Their bytes.
    pub to_software_bytes: u64,
    /// Frames that software sends by a port of the card.
    pub from_software: u64,
    /// Their bytes that the card counts as the network's; frames that are diverted during a move do not count.
    pub from_software_bytes: u64,
    /// Frames for software for which there was no room.
    pub to_software_lost: u64,
    /// Frames from software for which there was no room, or no port any more.
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

/// A wire of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LivePortTotals {
    /// The port, as networks name it.
    pub id: PortId,
    /// Its driver.
    pub driver: Driver,
    /// Its counters, including those of earlier ports with this number.
    pub counters: DriverCounters,
    /// Received broadcast and multicast frames that the card had no room to copy.
    pub flood_full: u64,
}

/// A copy of the totals that were published last.
pub fn read(totals: &Mutex<CardTotals>) -> CardTotals {
    // Published as a whole, so that a panic elsewhere leaves it sound.
    totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
