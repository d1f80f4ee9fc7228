//! What a running card did, beside what its own counters say.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hue_demux::PortId;
use hue_planes::Counters;
use hue_ports::{Driver, DriverCounters};
use hue_tables::Vid;

/// What a running card did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CardTotals {
    /// Clock cycles since it started. At the image's clock they last as long as a card would have taken.
    pub cycles: u64,
    /// Nanoseconds that the host took for them: the time in which the twin was clocked.
    pub clocking_ns: u64,
    /// Times it went to sleep as there was nothing to do.
    pub sleeps: u64,
    /// Its ports that are open, by the card's own numbers.
    pub ports: BTreeMap<u8, LivePortTotals>,
    /// What went between the card and software, by network.
    pub crossings: BTreeMap<Vid, Crossings>,
    /// Frames on CPU queues that made no sense.
    pub nonsense: u64,
    /// Frames of nobody that went past the card.
    pub unclaimed: u64,
    /// Damaged words of external memory that were written again.
    pub repaired: u64,
}

/// What the card counted of a network.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CardCounts {
    /// By outcome, since it came.
    pub outcomes: Counters,
    /// Bytes of frames received.
    pub received_bytes: u64,
    /// Bytes of frames sent, those that software sends by the card among them.
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
    /// Bytes of them.
    pub to_software_bytes: u64,
    /// Frames that software sends by a port of the card.
    pub from_software: u64,
    /// Bytes of them that the card counts as the network's: not those put aside while it moves.
    pub from_software_bytes: u64,
    /// Frames for software that there was no room for.
    pub to_software_lost: u64,
    /// Frames from software that there was no room for, or no port any more.
    pub from_software_lost: u64,
    /// Frames cut before the rings of the card's wires, as its share of one was used up.
    pub ring_quota: u64,
    /// Frames that were let into such a ring and lost there.
    pub ring_full: u64,
    /// Frames that a wire did not take.
    pub port_full: u64,
    /// Frames for a port that has no wire.
    pub port_down: u64,
}

/// A wire of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LivePortTotals {
    /// The port, as networks name it.
    pub id: PortId,
    /// How it reaches its wire.
    pub driver: Driver,
    /// What it counted, earlier ports of this number included.
    pub counters: DriverCounters,
    /// Broadcast and multicast frames, of those received, that the card lost: no room to copy them.
    pub flood_full: u64,
}

/// A copy of what was published last.
pub fn read(totals: &Mutex<CardTotals>) -> CardTotals {
    // Published as a whole, so that a panic elsewhere leaves it sound.
    totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
