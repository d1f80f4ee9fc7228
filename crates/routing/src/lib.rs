//! Where routes come from: files (routes as text or MRT, updates, queries, plain or compressed), and the kernels of the
//! networks' namespaces.
//!
//! Live flow: netlink in each namespace → [`Monitor`] (one thread) → [`Batch`]es of [`Event`]s → one [`Rib`] a network →
//! [`RibUpdate`]s → tables.
//!
//! Flow: file → `source` (decompress, bound) → `text`/`mrt` (lines, records) → [`Routes`], [`Update`]s, queries →
//! tables. Next-hop tokens become indices here ([`HopNames`]), one set a network.
//! Invariants: every input is bounded by a named limit; a bad line is an error that names file and line, or is
//! skipped and counted when [`Options::skip_bad`] says so.

mod error;
mod event;
mod hops;
pub mod monitor;
mod mrt;
mod prefix;
mod queries;
pub mod rib;
mod routes;
mod source;
mod text;
mod updates;

pub use error::RoutingError;
pub use event::{Batch, Change, Event, Session};
pub use hops::{HOPS_MAX, HopNames};
pub use monitor::{BATCH_EVENTS_MAX, Monitor, MonitorError};
pub use prefix::AnyPrefix;
pub use queries::{Query, load_queries};
pub use rib::{Rib, RibPort, RibUpdate, RouteRow};
pub use routes::{ROUTES_MAX, Routes, load_routes};
pub use source::{DECOMPRESSED_BYTES_MAX, XZ_MEMORY_KIB_MAX};
pub use text::LINE_BYTES_MAX;
pub use updates::{Update, Updates, load_updates};

/// How a file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Go on after a bad line or record, and count it.
    pub skip_bad: bool,
    /// Give a route without a next hop one of this many derived ones; see [`HopNames::derived`].
    pub derive_hops: Option<u16>,
}
