//! Sources and destinations of frames: AF_XDP, packet sockets, TAP devices, captures and memory.
//!
//! Live flow: [`Port`] → [`Packet`] in the worker's [`Pool`] → demux/planes → [`Port`]. Offline flow: capture →
//! [`Batch`] → demux/planes → capture. Nothing here knows networks or verdicts; a class is only a number. Invariants:
//! frames keep the order in which they were received; times are passed on, never made up; a slot of a pool has one
//! owner; an output file appears under its name only when it is complete.

mod afxdp;
mod batch;
mod cable;
mod capture;
mod closing;
mod error;
mod faulty;
mod link;
mod memory;
mod merge;
mod open;
mod output;
mod packet;
mod pool;
mod port;
mod replay;
mod shared;
mod slow;
mod sys;
mod tap;

pub use afxdp::{
    AfXdp, AfXdpOptions, Attachment, GroupLimits, Prepared as PreparedAfXdp, XdpRedirect,
    prepare as prepare_afxdp,
};
pub use batch::{Batch, Frame};
pub use cable::{CableEnd, CablePlug};
pub use capture::{
    CaptureInfo, CaptureReader, INTERFACES_MAX, LINK_TYPE_ETHERNET, MAX_RECORD_BYTES, Resolution, scan,
};
pub use closing::{Closing, Then};
pub use error::PortError;
pub use faulty::{DISTANCE_MAX, FaultCounts, Faults, Faulty};
pub use link::Link;
pub use memory::{MemoryHandle, MemoryPort};
pub use merge::{MergedCaptures, MergedFrame};
pub use open::{Keep, OpenOptions, Opened, Wanted, open, open_on};
pub use output::{CaptureWriter, OutputDir};
pub use packet::{Offered, PacketSocket};
pub use pool::{HEADROOM_BYTES, Packet, Pool, Region, SLOT_BYTES, Slot};
pub use port::{
    CLASS_GROUP, CLASS_MAX, CLASS_NONE, CLASS_OTHER, ClassLosses, ClassRule, Driver, DriverCounters, Ending,
    Port, release_all,
};
pub use replay::{CapturePort, Pace};
pub use shared::{RingReader, RingWriter, SharedMemory, ring_bytes};
pub use slow::SlowEnd;
pub use tap::Tap;
