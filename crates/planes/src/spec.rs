//! Types of the generated tables.

use std::fmt;

/// Verdict on a packet of a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// Sent on, rewritten.
    Forward,
    /// Handed to the network's control plane, unchanged.
    Punt,
    /// Dropped and counted.
    Drop,
}

impl Verdict {
    /// Name in output and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Punt => "punt",
            Self::Drop => "drop",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A row of `spec/kinds.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutcomeRow {
    /// Name in output, metrics and documentation.
    pub name: &'static str,
    /// The verdict on the packet.
    pub verdict: Verdict,
    /// Stage of the plane that decides it.
    pub stage: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// Its condition, given that none before it holds; terms as in `spec/kinds.toml`.
    pub when: &'static str,
    /// Its source, such as an RFC.
    pub source: &'static str,
}

/// A metric of `spec/kinds.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Prometheus name.
    pub name: &'static str,
    /// Labels.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub doc: &'static str,
}
