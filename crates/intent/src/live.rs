//! Desired state that only a live node acts on: Linux interfaces, and what a network's own programs may take. Offline commands
//! check it and do nothing with it.
//!
//! Units: memory in bytes, processor time in thousandths of a core.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::limits;
use crate::schema;

/// How a physical port reaches its interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PortDriver {
    /// AF_XDP, and where that cannot be had a packet socket.
    #[default]
    Auto,
    /// AF_XDP only.
    AfXdp,
    /// A packet socket.
    Packet,
    /// A TAP interface, which is created.
    Tap,
}

impl PortDriver {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::AfXdp, Self::Packet, Self::Tap];

    /// Its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AfXdp => "afxdp",
            Self::Packet => "packet",
            Self::Tap => "tap",
        }
    }

    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Auto
    }
}

impl fmt::Display for PortDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Name of a Linux interface: 1 to 15 visible ASCII characters, none of them `/` or `:`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct InterfaceName(String);

impl InterfaceName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text is no name of an interface; the caller's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected 1 to 15 visible ASCII characters without '/' and ':', not \".\" or \"..\"")]
pub struct InterfaceNameError;

impl FromStr for InterfaceName {
    type Err = InterfaceNameError;

    fn from_str(text: &str) -> Result<Self, InterfaceNameError> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:".contains(&byte));
        let length = (1..=limits::INTERFACE_CHARS_MAX).contains(&text.len());
        if visible && length && !matches!(text, "." | "..") {
            Ok(Self(text.to_owned()))
        } else {
            Err(InterfaceNameError)
        }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How many of a network's packets its namespace gets at most: those for the router itself, and those the plane cannot
/// forward. What exceeds it is lost and counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PuntLimit {
    /// Packets a second.
    #[schemars(schema_with = "schema::punt_rate")]
    pub packets_per_second: u64,
    /// Packets that may come at once.
    #[schemars(schema_with = "schema::punt_rate")]
    pub burst_packets: u64,
}

impl Default for PuntLimit {
    fn default() -> Self {
        Self {
            packets_per_second: limits::PUNT_PACKETS_PER_SECOND_DEFAULT,
            burst_packets: limits::PUNT_BURST_PACKETS_DEFAULT,
        }
    }
}

impl PuntLimit {
    /// Whether this is what a document that does not say gets.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What the programs in a network's namespace may take together; what is left out has no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::some_resource)]
pub struct Resources {
    /// Processor time, cores: 0.5 is half of one. At most three decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::cores")]
    pub cpu: Option<Cores>,
    /// Memory, such as `256Mi` or `2Gi`. Beyond it the kernel ends one of the programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::memory")]
    pub memory: Option<Memory>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::processes")]
    pub processes: Option<u32>,
}

/// Processor time, in thousandths of a core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cores(pub(crate) u32);

impl Cores {
    /// In thousandths of a core, if that is within the limits.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Self> {
        (limits::CPU_THOUSANDTHS_MIN..=limits::CPU_THOUSANDTHS_MAX)
            .contains(&thousandths)
            .then_some(Self(thousandths))
    }

    /// Thousandths of a core.
    #[must_use]
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// Cores.
    #[must_use]
    pub fn cores(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cores())
    }
}

impl Serialize for Cores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A whole number has no decimals in a document either.
        if self.0.is_multiple_of(1000) {
            serializer.serialize_u32(self.0 / 1000)
        } else {
            serializer.serialize_f64(self.cores())
        }
    }
}

/// An amount of memory, in whole mebibytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Memory(u64);

impl Memory {
    /// Bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0 << 20
    }
}

/// A text is no amount of memory; the caller's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected mebibytes or gibibytes such as 256Mi or 2Gi, 4Mi to 1024Gi")]
pub struct MemoryError;

impl FromStr for Memory {
    type Err = MemoryError;

    fn from_str(text: &str) -> Result<Self, MemoryError> {
        let (digits, mebibytes) = match (text.strip_suffix("Mi"), text.strip_suffix("Gi")) {
            (Some(digits), _) => (digits, 1),
            (_, Some(digits)) => (digits, 1024),
            _ => return Err(MemoryError),
        };
        let decimal = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let amount = digits.parse::<u64>().ok().filter(|_| decimal);
        amount
            .and_then(|amount| amount.checked_mul(mebibytes))
            .filter(|amount| (limits::MEMORY_MIB_MIN..=limits::MEMORY_MIB_MAX).contains(amount))
            .map(Self)
            .ok_or(MemoryError)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1024) { write!(f, "{}Gi", self.0 / 1024) } else { write!(f, "{}Mi", self.0) }
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_one_spelling() {
        for (text, mebibytes, shown) in [
            ("4Mi", 4, "4Mi"),
            ("1024Mi", 1024, "1Gi"),
            ("1024Gi", 1 << 20, "1024Gi"),
            ("300Mi", 300, "300Mi"),
        ] {
            let memory: Memory = text.parse().unwrap();
            assert_eq!((memory.bytes(), memory.to_string().as_str()), (mebibytes << 20, shown));
        }
        for text in [
            "",
            "Mi",
            "3Mi",
            "1025Gi",
            "04Mi",
            "1.5Gi",
            "256",
            "256M",
            "256mi",
            "+5Mi",
            "99999999999999999999Gi",
        ] {
            assert_eq!(text.parse::<Memory>(), Err(MemoryError), "{text:?}");
        }
    }

    #[test]
    fn interface_names_are_those_of_the_kernel() {
        for text in ["p0", "enp3s0f0np0", "br-lan", "eth0.100", "a@b", "123456789012345"] {
            assert_eq!(text.parse::<InterfaceName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in ["", ".", "..", "a/b", "a:1", "a b", "1234567890123456", "ä", "a\t"] {
            assert_eq!(text.parse::<InterfaceName>(), Err(InterfaceNameError), "{text:?}");
        }
    }

    #[test]
    fn drivers_are_spelled_as_they_are_named() {
        for driver in PortDriver::ALL {
            assert_eq!(serde_json::to_value(driver).unwrap(), driver.name());
        }
    }
}
