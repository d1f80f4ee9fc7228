//! Desired state that only a live node uses: Linux interfaces, and resource limits of a network's own
//! programs. Offline commands check it, and then ignore it.
//!
//! Units: memory in bytes, processor time in thousandths of a core.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::limits;
use crate::schema;

/// How a live node accesses the interface of a physical port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PortDriver {
    /// AF_XDP, or a packet socket if AF_XDP is not available.
    #[default]
    Auto,
    /// AF_XDP only.
    AfXdp,
    /// A packet socket.
    Packet,
    /// A TAP interface, which is created if it does not exist.
    Tap,
}

impl PortDriver {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Auto, Self::AfXdp, Self::Packet, Self::Tap];

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AfXdp => "afxdp",
            Self::Packet => "packet",
            Self::Tap => "tap",
        }
    }

    /// Whether this is the default.
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

/// The text is not an interface name (the author's fault).
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

/// Limit on the packets that the network's namespace receives: packets for the router itself, and packets
/// that the plane cannot forward. Packets above the limit are dropped and counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PuntLimit {
    /// Packets per second.
    #[schemars(schema_with = "schema::punt_rate")]
    pub packets_per_second: u64,
    /// Packets at once.
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
    /// Whether this is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Resource limits of all programs in a network's namespace together; an omitted field means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = schema::some_resource)]
pub struct Resources {
    /// Processor time in cores, such as 0.5. At most three decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::cores")]
    pub cpu: Option<Cores>,
    /// Memory, such as `256Mi` or `2Gi`. If the programs exceed it, the kernel kills one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::memory")]
    pub memory: Option<Memory>,
    /// Number of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "schema::processes")]
    pub processes: Option<u32>,
}

/// Processor time in thousandths of a core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cores(pub(crate) u32);

impl Cores {
    /// Converts from thousandths of a core; `None` if that is outside the limits.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Self> {
        (limits::CPU_THOUSANDTHS_MIN..=limits::CPU_THOUSANDTHS_MAX)
            .contains(&thousandths)
            .then_some(Self(thousandths))
    }

    /// Processor time in thousandths of a core.
    #[must_use]
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// Processor time in cores.
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
        // Write whole numbers without decimals.
        if self.0.is_multiple_of(1000) {
            serializer.serialize_u32(self.0 / 1000)
        } else {
            serializer.serialize_f64(self.cores())
        }
    }
}

/// An amount of memory in whole mebibytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Memory(u64);

impl Memory {
    /// The amount in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0 << 20
    }
}

/// The text is not an amount of memory (the author's fault).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected an amount of memory from 4Mi to 1024Gi, such as 256Mi or 2Gi")]
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
    fn interface_names_follow_the_kernel() {
        for text in ["p0", "enp3s0f0np0", "br-lan", "eth0.100", "a@b", "123456789012345"] {
            assert_eq!(text.parse::<InterfaceName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in ["", ".", "..", "a/b", "a:1", "a b", "1234567890123456", "ä", "a\t"] {
            assert_eq!(text.parse::<InterfaceName>(), Err(InterfaceNameError), "{text:?}");
        }
    }

    #[test]
    fn drivers_round_trip() {
        for driver in PortDriver::ALL {
            assert_eq!(serde_json::to_value(driver).unwrap(), driver.name());
        }
    }
}
