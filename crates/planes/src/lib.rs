//! Kinds of data plane: (frame, tables, time) → outcome.
//!
//! Flow: demux → **planes** → port. A kind is one module with the name of its file in `spec/kinds/`, from which
//! its outcomes are generated; it keeps no state, takes no locks and never panics on a packet. All kinds share
//! next-hop rows ([`Adjacency`]) and their groups ([`group`]), token buckets ([`Meter`]) and counters ([`Counters`]).

mod adjacency;
mod counters;
mod delegated;
pub mod dual;
#[cfg(feature = "test-kinds")]
pub mod echo;
mod explain;
pub mod extract;
mod generated;
pub mod group;
pub mod ipv4;
pub mod ipv6;
pub mod kernel;
pub mod l2;
mod meter;
pub mod mpls;
mod plane;
pub mod process;
mod reason;
pub mod rofl;
mod spec;
pub mod splice;

pub use adjacency::{Adjacency, AdjacencyKind, LABELS_MAX};
pub use counters::{Counters, Losses, OUTCOMES_MAX, UnclaimedCounters};
pub use generated::{
    FRAME_BYTES_MAX, FRAME_BYTES_MIN, Kind, Loss, METRIC_DROPS, METRIC_LOSSES, METRIC_NETWORK_BYTES,
    METRIC_NETWORK_FAMILY_VERDICTS, METRIC_NETWORK_PORT_VERDICTS, METRIC_PORT_BYTES, METRIC_PORT_LOSSES,
    METRIC_PORT_PACKETS, METRIC_PUNTS, METRIC_UNCLAIMED, METRIC_VERDICTS, PortLoss, Unclaimed,
};
pub use meter::{Debts, Meter, MeterError, Rate, RateLimit};
pub use plane::{
    Answer, ByFamily, BySlice, Caching, Exact, Explanation, Families, Heard, IpKey, Keys, Learning, Limits,
    LongestPrefix, Looked, Nearest, NoTable, Plane, Settings, Source, Ternary, TwoFamilies, finish,
};
pub use reason::Reason;
pub use spec::{Class, Metric, OutcomeRow, SettingRange, SettingRow, SettingValues, Stage, Verdict};

// The frame limits are in the specification and in `wire`, which cannot read the specification.
const _: () = assert!(FRAME_BYTES_MAX == hue_wire::FRAME_MAX && FRAME_BYTES_MIN == hue_wire::FRAME_MIN);
