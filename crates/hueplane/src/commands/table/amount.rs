//! Amounts of table memory, exact for 36-bit words.

use std::ops::Add;

use serde::{Serialize, Serializer};

use crate::print::grouped;

/// An amount of memory, stored in half bytes: a 36-bit word has nine. Serialized in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount(u64);

impl Amount {
    /// An amount in bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self(bytes * 2)
    }

    /// An amount in 36-bit words.
    pub fn words(words: u64) -> Self {
        Self(words * 9)
    }

    /// The amount in bytes, as text.
    pub fn text(self) -> String {
        grouped(self.0 / 2) + if self.0.is_multiple_of(2) { "" } else { ".5" }
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(2) {
            serializer.serialize_u64(self.0 / 2)
        } else {
            serializer.serialize_f64(self.0 as f64 / 2.0)
        }
    }
}
