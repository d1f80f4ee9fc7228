//! Sources of routes: files (routes as text or MRT, updates, queries, plain or compressed), and the kernels
//! of the networks' namespaces.
//!
//! Live: netlink in each namespace → [`Monitor`] (one thread) → [`Batch`]es of [`Event`]s → one [`Rib`] for
//! each network → [`RibUpdate`]s → tables.
//!
//! [`pwospf`] and [`ring`] are routing protocols themselves, as state machines.
//!
//! Files: file → `source` (decompresses, limits the size) → `text`/`mrt` (lines, records) → [`Routes`],
//! [`Update`]s, queries → tables. Next-hop tokens become indices here ([`HopNames`]), separately for each
//! network. Invariants: a named limit bounds every input. An invalid line is an error with file and line;
//! with [`Options::skip_bad`] it is skipped and counted.

mod drops;
mod error;
mod event;
mod family;
mod hops;
pub mod monitor;
mod mrt;
pub mod pwospf;
mod queries;
pub mod rib;
pub mod ring;
mod routes;
mod source;
mod text;
mod updates;

pub use error::RoutingError;
pub use event::{Batch, Change, Event, Session};
pub use family::{Family, Order};
pub use hops::{HOPS_MAX, HopNames};
pub use hue_tables::AnyPrefix;
pub use monitor::{BATCH_EVENTS_MAX, Monitor, MonitorError};
pub use queries::{Query, load_queries};
pub use rib::{AnyRib, AnyUpdate, Rib, RibPort, RibUpdate, RouteRow};
pub use routes::{ROUTES_MAX, Routes, load_routes};
pub use source::{DECOMPRESSED_BYTES_MAX, XZ_MEMORY_KIB_MAX};
pub use text::LINE_BYTES_MAX;
pub use updates::{Update, Updates, load_updates};

/// Options for reading a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Skip invalid lines and records, and count them.
    pub skip_bad: bool,
    /// Assign one of this many derived next hops to routes without one; see [`HopNames::derived`].
    pub derive_hops: Option<u16>,
}
