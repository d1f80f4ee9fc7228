//! The software substrate: one engine that takes batches of frames through design select, meters, planes and tables.
//!
//! Flow: port → **soft** (wire, demux, planes, tables) → port. [`Soft`] is one worker's engine: it takes no locks and,
//! once warm, allocates nothing per packet. Time comes with the frames; nothing here reads a clock or a random number,
//! so the same frames give the same bytes.

mod batch;
mod carry;
mod engine;
mod explain;
mod flood;
mod frame;
mod lines;
pub mod live;
mod load;
mod matching;
mod network;
mod policies;
mod switch;
mod tunnels;

pub use batch::{After, Batch, Output};
pub use carry::{PASSAGES_MAX, Passage, TunnelCounts};
pub use engine::{BATCH_MAX, NETWORKS_MAX, Soft};
pub use explain::{NetworkTrace, Trace};
pub use flood::{COPIES_MAX, FloodCopy};
pub use frame::{Fate, Frame};
pub use hue_substrate::SwitchCounts;
pub use live::{
    CaptureFilter, CaptureStream, Captured, CapturedFrame, Direction, Inside, Live, LiveConfig, LiveError,
    NetworkTotals, PortEvent, PortState, PortTotals, TotalsReader, VportTotals, WorkerTotals, add_unclaimed,
};
pub use load::NAME;
pub use switch::MacRow;
