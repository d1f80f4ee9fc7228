//! Why intent does not compile.

use std::net::Ipv4Addr;

use hue_demux::PortId;
use hue_planes::{MeterError, ipv4};
use hue_substrate::ProgramError;
use hue_tables::Vid;
use thiserror::Error;

/// Why intent cannot be compiled. Of the intent that `hue_intent::load` gives only `Routes` is possible.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CompileError {
    /// Two networks ask for the same id; the caller's fault, as intent refuses such documents.
    #[error("network '{network}': id {vid} is another network's")]
    IdTaken {
        /// The later of the two.
        network: String,
        /// The id.
        vid: Vid,
    },
    /// More networks than ids.
    #[error("{0} networks: at most {max}", max = Vid::MAX)]
    IdsFull(usize),
    /// The node has more ports than port ids.
    #[error("{0} physical ports: at most {max}", max = PortId::COUNT)]
    Ports(usize),
    /// A virtual port is on a physical port that the node does not have.
    #[error("network '{network}': no physical port '{port}'")]
    Port {
        /// Name of the network.
        network: String,
        /// Name that is no port's.
        port: String,
    },
    /// A gateway is on no link of its network.
    #[error("network '{network}': gateway {via} is on no link")]
    Via {
        /// Name of the network.
        network: String,
        /// The gateway.
        via: Ipv4Addr,
    },
    /// A route or a neighbour names no virtual port of its network.
    #[error("network '{network}': a route or neighbour names an unknown virtual port")]
    VirtualPort {
        /// Name of the network.
        network: String,
    },
    /// More next hops than indices.
    #[error("network '{network}': more next hops than {max}", max = ipv4::NEXT_HOPS_MAX)]
    Routes {
        /// Name of the network.
        network: String,
    },
    /// A rate limit is out of range.
    #[error("network '{network}': rate limit: {error}")]
    RateLimit {
        /// Name of the network.
        network: String,
        /// What is wrong with it.
        error: MeterError,
    },
    /// The program that came out is not sound.
    #[error("network '{network}': {error}")]
    Program {
        /// Name of the network.
        network: String,
        /// What is wrong with it.
        error: ProgramError,
    },
}
