//! The running system: workers that carry the traffic of real ports, and the control side that changes them.
//!
//! Flow: port → worker (design select, a queue a network, deficit round robin, meter, plane, tables) → port; what a
//! plane punts goes to the network's control plane through a TAP, what that sends goes out by its virtual port.
//! [`Live`] is owned by one control thread. Workers are changed by jobs in their mailboxes, done between batches;
//! control waits for them, packets never wait for control.

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
pub use totals::{NetworkTotals, PortState, PortTotals, TotalsReader, VportTotals, WorkerTotals};
pub use worker::Inside;
