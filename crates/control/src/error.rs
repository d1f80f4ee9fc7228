//! Errors of compiling an intent.

use std::net::IpAddr;

use hue_intent::limits::NODE_PORTS_MAX;
use hue_planes::{MeterError, ipv4};
use hue_substrate::ProgramError;
use hue_tables::Vid;
use thiserror::Error;

/// Why an intent cannot be compiled. For an intent from `hue_intent::load`, only `NextHops` is possible.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CompileError {
    /// Two networks request the same id (the caller's fault: intent rejects such documents).
    #[error("network '{network}': id {vid} already belongs to another network")]
    IdTaken {
        /// The second of the two networks.
        network: String,
        /// The id.
        vid: Vid,
    },
    /// There are more networks than ids.
    #[error("{0} networks, more than the limit of {max}", max = Vid::MAX)]
    IdsFull(usize),
    /// The node has more ports than there are port ids.
    #[error("{0} physical ports, more than the limit of {NODE_PORTS_MAX}")]
    Ports(usize),
    /// A virtual port names a physical port, or a network that carries its tunnel, that the node does not have.
    #[error("network '{network}': the node has no physical port '{port}'")]
    Port {
        /// Name of the network.
        network: String,
        /// The unknown port.
        port: String,
    },
    /// A gateway is not on any link of its network.
    #[error("network '{network}': gateway {via} is not on any link of the network")]
    Via {
        /// Name of the network.
        network: String,
        /// The gateway.
        via: IpAddr,
    },
    /// A route or a neighbour names an unknown virtual port.
    #[error("network '{network}': a route or neighbour names an unknown virtual port")]
    VirtualPort {
        /// Name of the network.
        network: String,
    },
    /// The network has more next hops than there are indices.
    #[error("network '{network}': more than {max} next hops", max = ipv4::NEXT_HOPS_MAX)]
    NextHops {
        /// Name of the network.
        network: String,
    },
    /// A rate limit is out of range.
    #[error("network '{network}': rate limit: {error}")]
    RateLimit {
        /// Name of the network.
        network: String,
        /// The cause.
        error: MeterError,
    },
    /// The compiled program is invalid.
    #[error("network '{network}': {error}")]
    Program {
        /// Name of the network.
        network: String,
        /// The cause.
        error: ProgramError,
    },
}
