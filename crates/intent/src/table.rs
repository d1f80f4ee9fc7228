//! Desired state of table memory: the quota of a network's table. Only a live node uses it; offline commands
//! check it, and then ignore it.
//!
//! Units: bytes of the table that software reads (`dag64`), in whole kibibytes.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::limits;
use crate::schema;

/// Limit on the table memory of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TableLimit {
    /// Table memory that the network's lookups can reach, such as `512Ki` or `2Mi`, including memory shared
    /// with other networks. Routes beyond it are rejected.
    #[schemars(schema_with = "schema::table_bytes")]
    pub quota: TableBytes,
}

/// An amount of table memory in whole kibibytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableBytes(u64);

/// Units with their size in kibibytes, largest first.
const UNITS: [(&str, u64); 3] = [("Gi", 1 << 20), ("Mi", 1 << 10), ("Ki", 1)];

impl TableBytes {
    /// The amount in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0 << 10
    }
}

/// The text is not an amount of table memory (the author's fault).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected an amount of table memory from 4Ki to 64Gi, such as 512Ki or 2Mi")]
pub struct TableBytesError;

impl FromStr for TableBytes {
    type Err = TableBytesError;

    fn from_str(text: &str) -> Result<Self, TableBytesError> {
        let parts = UNITS.iter().find_map(|(unit, kib)| Some((text.strip_suffix(unit)?, kib)));
        let (digits, unit) = parts.ok_or(TableBytesError)?;
        let decimal = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let amount = digits.parse::<u64>().ok().filter(|_| decimal);
        amount
            .and_then(|amount| amount.checked_mul(*unit))
            .filter(|amount| (limits::TABLE_KIB_MIN..=limits::TABLE_KIB_MAX).contains(amount))
            .map(Self)
            .ok_or(TableBytesError)
    }
}

impl fmt::Display for TableBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, kib) = UNITS.into_iter().find(|(_, kib)| self.0.is_multiple_of(*kib)).unwrap_or(UNITS[2]);
        write!(f, "{}{unit}", self.0 / kib)
    }
}

impl Serialize for TableBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_memory_has_one_spelling() {
        for (text, bytes, shown) in [
            ("4Ki", 4 << 10, "4Ki"),
            ("2048Ki", 2 << 20, "2Mi"),
            ("1536Ki", 1536 << 10, "1536Ki"),
            ("1024Mi", 1 << 30, "1Gi"),
            ("64Gi", 64 << 30, "64Gi"),
        ] {
            let memory: TableBytes = text.parse().unwrap();
            assert_eq!((memory.bytes(), memory.to_string().as_str()), (bytes, shown));
        }
        for text in [
            "",
            "Ki",
            "3Ki",
            "65Gi",
            "04Ki",
            "1.5Mi",
            "4096",
            "4K",
            "2MiB",
            "2mi",
            "+5Mi",
            "99999999999999999999Gi",
        ] {
            assert_eq!(text.parse::<TableBytes>(), Err(TableBytesError), "{text:?}");
        }
    }
}
