//! What design select speaks: ports, rows, targets and the ways rows can clash.

use std::fmt;

use hue_tables::{Prefix4, Vid};
use hue_wire::Mac;
use thiserror::Error;

/// Rows, and attachments, of one [`Demux`](crate::Demux) at most: 4,095 networks on 16 ports.
pub const ROWS_MAX: usize = 65_520;

/// Index of a physical port of the node. Names (`p0`, `n1` …) live in programs and intent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(u8);

impl PortId {
    /// Ports a node may have.
    pub const COUNT: usize = 256;

    /// The port of an index.
    #[inline]
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }

    /// The index as a number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The index as an array index, below [`PortId::COUNT`].
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What frames a row selects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Match {
    /// Frames that arrive on a port for this destination MAC, which must not be a group address.
    Mac {
        /// Port the frame arrives on.
        port: PortId,
        /// The network's router MAC on that port.
        mac: Mac,
    },
    /// Frames whose virtual destination address ([`inner_destination`](crate::inner_destination)) is inside a prefix.
    Inner {
        /// Port the frame arrives on; `None` is any.
        port: Option<PortId>,
        /// Where the virtual destination address must lie.
        prefix: Prefix4,
    },
    /// Everything that arrives on a port.
    Port(PortId),
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac { port, mac } => write!(f, "MAC {mac} on port {port}"),
            Self::Inner { port: Some(port), prefix } => write!(f, "inner prefix {prefix} on port {port}"),
            Self::Inner { port: None, prefix } => write!(f, "inner prefix {prefix} on any port"),
            Self::Port(port) => write!(f, "everything on port {port}"),
        }
    }
}

/// One claim of a network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    /// Network that claims.
    pub vid: Vid,
    /// Index of the network's virtual port that the frame then arrives on.
    pub vport: u16,
    /// What it claims.
    pub select: Match,
}

/// A network's virtual port is on a physical port: group frames of that port reach it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attachment {
    /// Physical port.
    pub port: PortId,
    /// Network.
    pub vid: Vid,
    /// Index of its virtual port.
    pub vport: u16,
}

/// Whose a frame is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// Network.
    pub vid: Vid,
    /// Index of its virtual port that the frame arrives on.
    pub vport: u16,
}

/// Which sort of row found a target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Group destination MAC and attachment to the port.
    Group,
    /// [`Match::Mac`].
    Mac,
    /// [`Match::Inner`].
    Inner,
    /// [`Match::Port`].
    Port,
}

impl By {
    /// Word in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Group => "group MAC",
            Self::Mac => "destination MAC",
            Self::Inner => "inner destination",
            Self::Port => "ingress port",
        }
    }
}

/// Why rows make no demultiplexer; the caller's fault.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DemuxError {
    /// Two rows claim the same frames.
    #[error("networks {first} and {second} both claim {claim}")]
    Twice {
        /// Network of the earlier row.
        first: Vid,
        /// Network of the later row; may be the same.
        second: Vid,
        /// What both claim.
        claim: Match,
    },
    /// A MAC row holds a broadcast or multicast address.
    #[error("network {vid} claims group MAC {mac} on port {port}: expected a unicast address")]
    GroupMac {
        /// Network of the row.
        vid: Vid,
        /// Its port.
        port: PortId,
        /// The address.
        mac: Mac,
    },
    /// More rows or attachments than [`ROWS_MAX`].
    #[error("{count} {what}: at most {ROWS_MAX}")]
    Full {
        /// Rows or attachments.
        what: &'static str,
        /// How many were given.
        count: usize,
    },
}
