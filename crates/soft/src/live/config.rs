//! Options of a running system, and its errors.

use hue_demux::PortId;
use hue_ports::PortError;
use hue_substrate::SubstrateError;
use hue_substrate::scheduling::Scheduling;
use hue_tables::{Limits, TableError, Vid};
use thiserror::Error;

/// Largest number of workers.
pub const WORKERS_MAX: usize = 64;

/// Options for starting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveConfig {
    /// Number of worker threads, at most [`WORKERS_MAX`]; 0 means half of the processors, but 1 to 4.
    pub workers: usize,
    /// Whether each worker is pinned to a processor.
    pub pin: bool,
    /// Scheduling of the workers.
    pub scheduling: Scheduling,
    /// Packet slots of each worker.
    pub slots: u32,
    /// Most packet slots that a node with many ports gives each worker.
    pub slots_max: u32,
    /// Bytes of a slot: 2048 or 4096. Frames are up to 256 bytes shorter: MTUs up to 1,774 or 3,822 with a VLAN tag.
    pub slot_bytes: u32,
    /// Limits of the tables.
    pub limits: Limits,
}

impl Default for LiveConfig {
    fn default() -> Self {
        Self {
            workers: 0,
            pin: false,
            scheduling: Scheduling::Fair,
            slots: 32_768,
            slots_max: 262_144,
            slot_bytes: 2048,
            limits: Limits::default(),
        }
    }
}

/// Why a running system refused a request; everything continues as before.
#[derive(Debug, Error)]
pub enum LiveError {
    /// A worker cannot be started (the machine's fault).
    #[error("worker {worker} cannot start: {reason}")]
    Start {
        /// Which one.
        worker: usize,
        /// Why.
        reason: String,
    },
    /// A worker has ended unexpectedly: a bug of hueplane. Restart the daemon.
    #[error("worker {worker} has ended: restart the daemon and report this")]
    Ended {
        /// Which one.
        worker: usize,
    },
    /// More workers than [`WORKERS_MAX`]; the caller's fault.
    #[error("{0} workers: expected at most {WORKERS_MAX}")]
    Workers(usize),
    /// The tables cannot be created.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The port was added before; remove it first.
    #[error("port {0} is already open")]
    PortOpen(PortId),
    /// The port cannot be opened.
    #[error("port {id}: {error}")]
    Port {
        /// The port.
        id: PortId,
        /// Why.
        error: PortError,
    },
    /// A worker's packet memory cannot be created; the machine's fault, or the caller's if a pool cannot have this
    /// size.
    #[error("worker {worker} cannot have {slots} packet slots of {slot_bytes} bytes: {reason}")]
    Memory {
        /// Which one.
        worker: usize,
        /// Slots.
        slots: u32,
        /// Bytes of each.
        slot_bytes: u32,
        /// Why.
        reason: String,
    },
    /// The network is not loaded (the caller's fault).
    #[error("network {0} is not loaded")]
    Unknown(Vid),
    /// The network does not have this virtual port (the caller's fault).
    #[error("network {vid} has no virtual port {vport}")]
    Vport {
        /// The network.
        vid: Vid,
        /// Index of the virtual port.
        vport: u16,
    },
    /// The substrate's error.
    #[error(transparent)]
    Substrate(#[from] SubstrateError),
}
