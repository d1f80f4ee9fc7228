//! Types of design select: ports, rows, targets, and errors.

use std::fmt;

use hue_tables::{Prefix4, Vid};
use hue_wire::Mac;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Most rows, and most attachments, of one [`Demux`](crate::Demux): 4,095 networks on 16 ports.
pub const ROWS_MAX: usize = 65_520;

/// Index of a physical port of the node. Documents refer to ports by name (`p0`, `n1` …). The last [`PortId::TUNNELS`] ids
/// name no physical port: a network gives them to its tunnels. Such an id means something only together with its network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct PortId(u8);

impl PortId {
    /// Number of ids.
    pub const COUNT: usize = 256;
    /// Most tunnels of a network.
    pub const TUNNELS: usize = 64;
    /// Number of physical ports that a node can have.
    pub const PHYSICAL: usize = Self::COUNT - Self::TUNNELS;

    /// The port with an index.
    #[inline]
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }

    /// The id of a network's `nth` tunnel; `None` beyond [`PortId::TUNNELS`].
    #[must_use]
    pub const fn tunnel(nth: u8) -> Option<Self> {
        if (nth as usize) < Self::TUNNELS { Some(Self(u8::MAX - nth)) } else { None }
    }

    /// Whether it names a tunnel of a network, and no physical port.
    #[inline]
    #[must_use]
    pub const fn is_tunnel(self) -> bool {
        self.index() >= Self::PHYSICAL
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

/// The frames that a row selects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Match {
    /// Frames that arrive on a port with this destination MAC, which must not be a group address.
    Mac {
        /// Port the frame arrives on.
        port: PortId,
        /// The network's router MAC on that port.
        mac: Mac,
    },
    /// Frames whose virtual destination address ([`inner_destination`](crate::inner_destination)) is in a
    /// prefix.
    Inner {
        /// Port the frame arrives on; `None` means any port.
        port: Option<PortId>,
        /// The prefix that contains the virtual destination address.
        prefix: Prefix4,
    },
    /// All frames that arrive on a port.
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

/// One claim of a network on frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The network.
    pub vid: Vid,
    /// Index of the network's virtual port that receives the frame.
    pub vport: u16,
    /// The claimed frames.
    pub select: Match,
}

impl Row {
    /// Whether it selects frames that come by a tunnel.
    #[must_use]
    pub const fn is_of_tunnel(&self) -> bool {
        match self.select {
            Match::Mac { port, .. } | Match::Inner { port: Some(port), .. } | Match::Port(port) => {
                port.is_tunnel()
            }
            Match::Inner { port: None, .. } => false,
        }
    }
}

/// Attaches a network's virtual port to a physical port, whose group frames then reach it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attachment {
    /// Physical port.
    pub port: PortId,
    /// Network.
    pub vid: Vid,
    /// Index of its virtual port.
    pub vport: u16,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// Network.
    pub vid: Vid,
    /// Index of its virtual port that receives the frame.
    pub vport: u16,
}

/// The type of row that selected a target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Group destination MAC, and attachment to the port.
    Group,
    /// [`Match::Mac`].
    Mac,
    /// [`Match::Inner`].
    Inner,
    /// [`Match::Port`].
    Port,
}

impl By {
    /// Name in traces.
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

/// Why rows are invalid (the caller's fault).
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DemuxError {
    /// Two rows claim the same frames.
    #[error("networks {first} and {second} both claim {claim}")]
    Conflict {
        /// Network of the earlier row.
        first: Vid,
        /// Network of the later row; may be the same.
        second: Vid,
        /// The frames that both claim.
        claim: Match,
    },
    /// A MAC row has a broadcast or multicast address.
    #[error("network {vid} claims group MAC {mac} on port {port}: expected a unicast address")]
    GroupMac {
        /// Network of the row.
        vid: Vid,
        /// Port of the row.
        port: PortId,
        /// The address.
        mac: Mac,
    },
    /// There are more rows or attachments than [`ROWS_MAX`].
    #[error("design select has {count} {what}, more than its limit of {ROWS_MAX}")]
    Full {
        /// `rows` or `attachments`.
        what: &'static str,
        /// Their number.
        count: usize,
    },
}
