//! Desired state of scheduling: the needs of a network, and the capacities that the node's scheduler assumes.
//!
//! Flow: documents → **these types** → `hue_control::schedule`. Nothing here limits traffic; `rate_limit`
//! does. Bandwidths are in bits per second and count the bytes of a frame from the destination MAC address to
//! the last byte.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::limits;
use crate::schema;

/// What a network needs. Defaults: the number of its static routes, and no bandwidth.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::some_need)]
pub struct Needs {
    /// Bandwidth, such as `200Mbit/s`: what it receives on all its ports together. Any of them may carry all
    /// of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
    /// Latency requirement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Latency>")]
    pub latency: Option<Latency>,
    /// Routes that its table is expected to hold, if it learns more than its document has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::expected_routes")]
    pub routes: Option<u32>,
}

/// Latency requirement of a network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Latency {
    /// No requirement.
    #[default]
    Normal,
    /// As low as possible: on the card, with priority over networks that do not require it.
    Low,
}

impl Latency {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Normal, Self::Low];

    /// The name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

/// How the node places networks with `placement: auto`, and the capacities that it assumes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Scheduler {
    /// The scheduler.
    #[serde(skip_serializing_if = "SchedulerKind::is_default")]
    #[schemars(default)]
    pub kind: SchedulerKind,
    /// Use measured rates where they exist, instead of the rates in documents.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub from_traffic: bool,
    /// Capacity of software.
    #[serde(skip_serializing_if = "SoftCapacity::is_default")]
    #[schemars(default)]
    pub soft: SoftCapacity,
    /// Bandwidth of the card; by default that of its bus. A simulated card is slower than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub card_bandwidth: Option<Bandwidth>,
    /// Bandwidth that moving a network must gain at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub move_cost: Option<Bandwidth>,
}

/// A scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SchedulerKind {
    /// Places networks of low throughput in software while they fit, and the others on the card.
    #[default]
    Greedy,
    /// Finds the placement that serves the most bandwidth, minus the cost of moves, with an integer program.
    Exact,
}

impl SchedulerKind {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Greedy, Self::Exact];

    /// The name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Exact => "exact",
        }
    }

    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Greedy
    }
}

/// Capacity of software. One core forwards all packets of a network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SoftCapacity {
    /// Number of forwarding cores; by default the daemon's workers, or one for offline commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::forwarding_cores")]
    pub cores: Option<u16>,
    /// Bandwidth of one core; by default 500 Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
}

impl SoftCapacity {
    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A bandwidth, in bits of frames per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bandwidth(u64);

/// Units of a bandwidth, largest first.
const UNITS: [(&str, u64); 3] = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000)];

impl Bandwidth {
    /// Converts from bits per second; `None` if that is outside the limits or not a whole number of kilobits.
    #[must_use]
    pub fn from_bps(bps: u64) -> Option<Self> {
        let whole = bps.is_multiple_of(1_000);
        (whole && (limits::BANDWIDTH_BPS_MIN..=limits::RATE_MAX).contains(&bps)).then_some(Self(bps))
    }

    /// The bandwidth in bits per second.
    #[must_use]
    pub const fn bps(self) -> u64 {
        self.0
    }
}

/// The text is not a bandwidth (the author's fault).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected a bandwidth from 1kbit/s to 1000Gbit/s, such as 200Mbit/s")]
pub struct BandwidthError;

impl FromStr for Bandwidth {
    type Err = BandwidthError;

    fn from_str(text: &str) -> Result<Self, BandwidthError> {
        let parts = UNITS.iter().find_map(|(unit, bps)| Some((text.strip_suffix(unit)?, bps)));
        let (digits, unit) = parts.ok_or(BandwidthError)?;
        let decimal = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let amount = digits.parse::<u64>().ok().filter(|_| decimal);
        amount.and_then(|amount| amount.checked_mul(*unit)).and_then(Self::from_bps).ok_or(BandwidthError)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A bandwidth is a whole number of kilobits, so one of the units divides it.
        let (unit, bps) = UNITS.into_iter().find(|(_, bps)| self.0.is_multiple_of(*bps)).unwrap_or(UNITS[2]);
        write!(f, "{}{unit}", self.0 / bps)
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_has_one_spelling() {
        for (text, bps, shown) in [
            ("1kbit/s", 1_000, "1kbit/s"),
            ("200Mbit/s", 200_000_000, "200Mbit/s"),
            ("1000Mbit/s", 1_000_000_000, "1Gbit/s"),
            ("2500Mbit/s", 2_500_000_000, "2500Mbit/s"),
            ("1000Gbit/s", 1_000_000_000_000, "1000Gbit/s"),
        ] {
            let bandwidth: Bandwidth = text.parse().unwrap();
            assert_eq!((bandwidth.bps(), bandwidth.to_string().as_str()), (bps, shown));
        }
        for text in [
            "",
            "Mbit/s",
            "0Mbit/s",
            "01Mbit/s",
            "1.5Gbit/s",
            "1001Gbit/s",
            "200",
            "200M",
            "200Mbps",
            "200 Mbit/s",
            "200mbit/s",
            "+5Mbit/s",
            "99999999999999999999Gbit/s",
        ] {
            assert_eq!(text.parse::<Bandwidth>(), Err(BandwidthError), "{text:?}");
        }
        for bps in [0, 999, 1_001, 1_000_000_001_000] {
            assert_eq!(Bandwidth::from_bps(bps), None);
        }
    }

    #[test]
    fn names_round_trip() {
        for kind in SchedulerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for latency in Latency::ALL {
            assert_eq!(serde_json::to_value(latency).unwrap(), latency.name());
        }
    }
}
