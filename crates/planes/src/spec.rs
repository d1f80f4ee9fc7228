//! Types of the generated tables.

use std::fmt;

use crate::generated::Kind;

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

/// What an outcome means to other parts of hueplane, so that none of them tests its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// A punt that is for the router itself: it may use the whole punt limit, others half of it.
    Own,
    /// Such a punt, whose ARP message must pass the guard against forged claims.
    GuardArp,
    /// Such a punt, which must pass the same guard if it is a message of neighbour discovery.
    GuardNd,
    /// No route of the plane leads to the destination.
    Unreachable,
    /// The protocol of the frame (its EtherType) is not one that the kind handles.
    Foreign,
    /// The frame is sent to all ports of the network but the one at which it arrived.
    Flood,
    /// Such a frame, beyond the network's limit for them. The substrate decides it, not the plane.
    Storm,
    /// A punt of a kind without tables: the kernel of the network's namespace, or a program there, forwards the packet.
    Delegated,
}

/// A row of `spec/kinds.toml` or of a kind's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutcomeRow {
    /// Name in output, metrics and documentation.
    pub name: &'static str,
    /// The verdict on the packet.
    pub verdict: Verdict,
    /// What it means to other parts of hueplane, if they need to know.
    pub class: Option<Class>,
    /// Name of the kind of the family that it belongs to, in a kind with several families.
    pub family: Option<&'static str>,
    /// Stage of the plane that decides it.
    pub stage: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// Its condition, given that none before it holds; terms as in the specification.
    pub when: &'static str,
    /// Its source, such as an RFC.
    pub source: &'static str,
}

/// The values of a setting that is a whole number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingRange<T> {
    /// The least value.
    pub min: T,
    /// The largest value.
    pub max: T,
    /// What all values are multiples of.
    pub multiple_of: T,
    /// The value of a network that does not say it.
    pub default: T,
}

/// The values that a setting of a kind can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingValues {
    /// A whole number.
    Range(SettingRange<u64>),
    /// True or false.
    Flag {
        /// The value of a network that does not say it.
        default: bool,
    },
    /// One of these words; the first, if the network does not say it.
    Choice(&'static [&'static str]),
    /// A list of some words.
    List {
        /// The words.
        words: &'static [&'static str],
        /// Those of a network that does not say it.
        default: &'static [&'static str],
    },
    /// Anything else.
    Other,
}

/// What a network may say about its plane: a field of `plane` in its document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingRow {
    /// Name of the field.
    pub name: &'static str,
    /// The values that it can have.
    pub values: SettingValues,
}

impl Kind {
    /// Its setting of this name, if it has it.
    #[must_use]
    pub fn setting(self, name: &str) -> Option<&'static SettingRow> {
        self.settings().iter().find(|setting| setting.name == name)
    }
}

/// One stage that a packet reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Its name: `frame`, `demux`, or a stage of the specification.
    pub name: &'static str,
    /// Description: what it saw, what matched, what it changed.
    pub detail: String,
    /// Name of the outcome if this stage decided.
    pub outcome: Option<&'static str>,
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
