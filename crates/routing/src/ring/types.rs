//! What a router is given, what it causes, and what it says of itself.

use std::fmt;
use std::time::Duration;

use hue_wire::Mac;
use hue_wire::rofl::Label;

use super::drops::Drops;
use super::links::Hop;

/// What is fixed for the life of a router.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its own label, by which others know it.
    pub router: Label,
    /// Bytes of all labels.
    pub label_bytes: usize,
    /// Time between two hellos; everything else is a multiple. All routers need the same.
    pub interval_ms: u16,
    /// Larger than in any earlier life of this router, for example of a clock.
    pub sequence: u64,
}

/// A port that takes part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its number.
    pub id: u16,
    /// Its name, for events.
    pub name: String,
    /// Its own MAC address.
    pub mac: Mac,
}

/// A frame's payload to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Number of the port.
    pub port: u16,
    /// To which MAC address.
    pub to: Mac,
    /// The packet with flat labels, behind the Ethernet header.
    pub packet: Vec<u8>,
}

/// Where packets for a label go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// To this router.
    Own,
    /// To a host that has the label.
    Resident(Hop),
    /// To a neighbour that knows more.
    Via(Hop),
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A neighbour hears this router, and is heard.
    NeighbourUp {
        /// Name of the port.
        port: String,
        /// Its label.
        router: String,
    },
    /// Not any more.
    NeighbourDown {
        /// Name of the port.
        port: String,
        /// Its label.
        router: String,
        /// Why.
        reason: &'static str,
    },
    /// A label of this router has its place in the ring.
    Joined(String),
    /// It left.
    Left(String),
    /// Another router has it: it waits.
    Taken(String),
    /// The smallest label of all routers that can be reached: it grows when the ring falls apart, and shrinks when parts
    /// meet.
    Zero(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeighbourUp { port, router } => write!(f, "neighbour {router} on {port} is up"),
            Self::NeighbourDown { port, router, reason } => {
                write!(f, "neighbour {router} on {port} is down: {reason}")
            }
            Self::Joined(label) => write!(f, "label {label} has joined"),
            Self::Left(label) => write!(f, "label {label} has left"),
            Self::Taken(label) => write!(f, "label {label} waits: another router has it"),
            Self::Zero(label) => write!(f, "the ring's smallest router is {label}"),
        }
    }
}

/// What inputs have caused.
#[derive(Clone, Default, Debug)]
pub struct Output {
    /// To send.
    pub packets: Vec<Sent>,
    /// To report.
    pub events: Vec<Event>,
    /// Whether [`super::Router::entries`] may have changed.
    pub changed: bool,
}

/// What has happened.
#[derive(Clone, Default, Debug)]
pub struct Counters {
    /// Packets received.
    pub received: u64,
    /// Of these, accepted.
    pub accepted: u64,
    /// Packets sent.
    pub sent: u64,
    /// Own links said.
    pub originated: u64,
    /// Computations of ways.
    pub computations: u64,
    /// Received, but not accepted.
    pub drops: Drops,
}

/// A router on a link.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its label.
    pub router: Label,
    /// When its last hello came.
    pub heard: Duration,
    /// Whether it hears this router.
    pub hears: bool,
    /// When it was last sent everything.
    pub(super) dumped: Option<Duration>,
}
