//! Experiments on the card, with a packet generator and a capture that are exact to a clock cycle; the same
//! traffic through the software engine ([`run_soft`]) or real interfaces of a running node ([`run_live`]); switching activity of the card's blocks ([`activity`]);
//! and experiments on forwarding tables ([`tables`]).
//!
//! Flow: [`Traffic`] → generator → [`Schedule`] → twin's ports → card → capture → [`Measured`]. Time is the
//! card's clock, so the same traffic gives the same result on any machine. Rates and lengths are those of the
//! wire ([`wire_bytes`]), as for a real port of that speed.

pub mod activity;
mod capture;
mod counts;
mod error;
mod feed;
mod live;
mod mark;
mod random;
mod rate;
mod run;
mod schedule;
mod soft;
mod synthetic;
pub mod tables;
mod traffic;

pub use capture::{Captured, Latency};
pub use counts::{NetworkCounts, PortCounts};
pub use error::LabError;
pub use live::{Cable, CableMeasured, Each, LiveMeasured, Received, StreamFate, StreamSent, run_live};
pub use rate::{FCS_BYTES, GAP_BYTES, PREAMBLE_BYTES, Rate, wire_bytes};
pub use run::{Experiment, FRAMES_MAX, Measured, PortMeasured, Stream, StreamMeasured, Wave, run};
pub use schedule::{Bus, Schedule, Slot, TooFast};
pub use soft::{Engine, WIRES, run_soft};
pub use synthetic::Generator;
pub use traffic::{
    FLOWS_MAX, Offer, SIZE_BYTES_MAX, SIZE_BYTES_MIN, Sizes, Sort, Source, Synthetic, To, Traffic,
};
