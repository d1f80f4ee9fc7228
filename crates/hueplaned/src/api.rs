//! Types of the API: every request and response, for the daemon and its clients.
//!
//! Flow: client → JSON → `http` → [`crate::backend::Backend`], and back the same way. `docs/reference/openapi.json`
//! is derived from these types, so their doc comments are the reference documentation.
//! Rules: fields may be added, but not removed; a list is a JSON array in the order of names, or of prefixes; names
//! of verdicts, reasons and metrics are those of `spec/kinds.toml` and `spec/kinds/`. A field that a tenant may not see is optional,
//! and left out for a tenant.
//! Units: bytes, seconds and packets unless the name says otherwise; times are UTC, RFC 3339.

mod change;
mod drain;
mod events;
mod history;
mod image;
mod migration;
mod network;
mod node;
mod packet;
mod plan;
mod problem;
mod routes;
mod stats;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

pub use change::{
    Action, ApplyRequest, ApplyResult, DiffRequest, DiffResult, DownOptions, DownResult, FieldChange,
    NetworkResult, ObjectKind, SourceText, TurnQuery, Verb,
};
pub use drain::{DrainRequest, DrainResult, NetworkDrained};
pub use events::{Event, EventKind, EventPage};
pub use history::{
    Author, CONFIRM_SECONDS_MAX, ConfirmRequest, ConfirmResult, DocumentChange, History, Pending, Revision,
    RevisionKind, RollbackRequest, RollbackResult,
};
pub use image::{ImageInfo, ImageLoaded, LoadImageRequest, NetworkPlaced};
pub use migration::{
    GateRequest, MigrateRequest, Migration, MigrationHold, MigrationPhase, MigrationSteering, MigrationStep,
    PacketsSeen, SubstrateName,
};
pub use network::{
    Bucket, ExecInfo, Limits, Network, NetworkState, Program, Resources, Tunnel, Usage, VirtualPort,
};
pub use node::{
    Capacity, CardInfo, CardState, CardStatus, Config, Health, LogPlace, LogTarget, Node, Part, Port,
    PortState, Status, StoreStatus, Summary, Trouble,
};
pub use packet::{
    CaptureFilter, CapturedFrame, Change, Direction, InNetwork, NetworkVerdict, Step, Trace, TraceRequest,
};
pub use plan::{CapacityUse, Placement, Plan, PlanQuery, PlannedMove, PlannedNetwork, SchedulerName};
pub use problem::{Finding, Problem, ProblemKind};
pub use routes::{
    CardMemory, CardShare, CardTables, EntryAction, MacAddress, Neighbour, NetworkFilter, Route, RouteFilter,
    RouteKind, RouteWay, TableEntry, TableShare, Tables,
};
pub use stats::{FamilyStats, MacStats, NetworkStats, PortStats, Stats, VirtualPortStats, WorkerStats};

/// A moment, UTC; as text RFC 3339 with microseconds, such as `2026-01-31T12:00:00.000000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub struct Timestamp(
    /// Microseconds since the start of 1970.
    u64,
);

impl Timestamp {
    /// The last moment that RFC 3339 can express: the end of the year 9999.
    const US_MAX: u64 = 253_402_300_799_999_999;

    /// Now, by the system's clock.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// The moment that is this many microseconds after the start of 1970.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(if us < Self::US_MAX { us } else { Self::US_MAX })
    }

    /// Microseconds since the start of 1970.
    #[must_use]
    pub const fn us(self) -> u64 {
        self.0
    }

    /// Seconds since `earlier`; 0 if `earlier` is later.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        Duration::from_micros(self.0.saturating_sub(earlier.0)).as_secs_f64()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_us(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(self.0)).fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_rfc3339(text)
            .map(Self::from)
            .map_err(|_| format!("found {text:?}, expected a time such as 2026-01-31T12:00:00Z"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_text_and_come_back() {
        for us in [0, 1, 1_767_225_600_123_456, Timestamp::US_MAX, u64::MAX] {
            let time = Timestamp::from_us(us);
            let text = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time, "{text}");
        }
        assert_eq!(Timestamp::from_us(1_767_225_600_123_456).to_string(), "2026-01-01T00:00:00.123456Z");
        assert!("yesterday".parse::<Timestamp>().is_err());
    }
}
