//! Desired state of who needs what: the needs of a network, and what the node's scheduler reckons with.
//!
//! Flow: documents → **these types** → `hue_control::schedule`. Nothing here limits a packet: `rate_limit` does that.
//! Units: bandwidth in bits a second, of frames from the destination MAC to the last byte.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::limits;
use crate::schema;

/// What a network needs. What is left out is taken from the rest of its document: its static routes, no bandwidth.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::some_need)]
pub struct Needs {
    /// Bandwidth, such as `200Mbit/s`: what it receives by all its ports together. Each of them may carry all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
    /// How soon its packets are to leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Latency>")]
    pub latency: Option<Latency>,
    /// Routes that its table is expected to hold, where it learns more than its document has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::expected_routes")]
    pub routes: Option<u32>,
}

/// How soon packets of a network are to leave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Latency {
    /// As it comes.
    #[default]
    Normal,
    /// As soon as can be: on the card, before networks that do not ask for it.
    Low,
}

impl Latency {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Normal, Self::Low];

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

/// How the node decides where networks run that leave it to the node, and what it reckons with.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Scheduler {
    /// Which one.
    #[serde(skip_serializing_if = "SchedulerKind::is_default")]
    #[schemars(default)]
    pub kind: SchedulerKind,
    /// Measured rates are what counts, where there are some, not what documents say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub from_traffic: bool,
    /// What software forwards.
    #[serde(skip_serializing_if = "SoftCapacity::is_default")]
    #[schemars(default)]
    pub soft: SoftCapacity,
    /// What the card forwards at most; without it what its bus carries. A simulated card is slower than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub card_bandwidth: Option<Bandwidth>,
    /// Bandwidth that moving a network must gain at least for it to be worth it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub move_cost: Option<Bandwidth>,
}

/// A way to decide where networks run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SchedulerKind {
    /// Networks of low throughput into software while they fit, the others onto the card.
    #[default]
    Greedy,
    /// The placement that serves the most bandwidth, less what moves cost, by an integer program.
    Exact,
}

impl SchedulerKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Greedy, Self::Exact];

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Exact => "exact",
        }
    }

    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Greedy
    }
}

/// What software forwards. A network is one core's.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SoftCapacity {
    /// Cores that forward; without it the daemon's workers, offline one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::forwarding_cores")]
    pub cores: Option<u16>,
    /// What one core forwards; without it 500 Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::of::<Bandwidth>")]
    pub bandwidth: Option<Bandwidth>,
}

impl SoftCapacity {
    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Bits of frames a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bandwidth(u64);

/// Units of a bandwidth, the largest first.
const UNITS: [(&str, u64); 3] = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000)];

impl Bandwidth {
    /// In bits a second, if that is within the limits and whole kilobits.
    #[must_use]
    pub fn from_bps(bps: u64) -> Option<Self> {
        let whole = bps.is_multiple_of(1_000);
        (whole && (limits::BANDWIDTH_BPS_MIN..=limits::RATE_MAX).contains(&bps)).then_some(Self(bps))
    }

    /// Bits a second.
    #[must_use]
    pub const fn bps(self) -> u64 {
        self.0
    }
}

/// A text is no bandwidth; the caller's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected a whole number of kbit/s, Mbit/s or Gbit/s such as 200Mbit/s, 1kbit/s to 1000Gbit/s")]
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
        // A bandwidth is whole kilobits, so that one of the units divides it.
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
    fn words_are_spelled_as_they_are_named() {
        for kind in SchedulerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for latency in Latency::ALL {
            assert_eq!(serde_json::to_value(latency).unwrap(), latency.name());
        }
    }
}
