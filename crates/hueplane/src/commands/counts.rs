//! Counts by name, in a given order.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A map that keeps its order.
pub struct Counts<'a, T>(pub Vec<(&'a str, T)>);

impl Counts<'_, u64> {
    /// Sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

impl<T> Counts<'_, T> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Serialize> Serialize for Counts<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
