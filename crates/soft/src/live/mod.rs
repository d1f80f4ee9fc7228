//! The running system: workers that carry the traffic of real ports, and the control side that changes them.
//!
//! Flow: port → worker (design select, one queue per network, deficit round robin, meter, plane, tables) → port; punted
//! packets go to the network's control plane through a TAP, and its packets leave by its virtual port. One control
//! thread owns [`Live`]. It changes workers by jobs in their mailboxes, which they run between batches; control waits
//! for them, packets never wait for control.

mod announce;
mod beside;
mod block;
mod by_hand;
mod capture;
mod classes;
mod config;
mod control;
mod guard;
mod load;
mod network;
mod steering;
mod totals;
mod worker;

pub use capture::{CAPTURE_FRAMES_MAX, CaptureFilter, CaptureStream, Captured, CapturedFrame, Direction};
pub use classes::Classes;
pub use config::{LiveConfig, LiveError, WORKERS_MAX};
pub use control::{Live, PortEvent};
pub use totals::{
    NetworkTotals, PortState, PortTotals, TotalsReader, VportTotals, WorkerTotals, add_unclaimed,
};
pub use worker::Inside;
