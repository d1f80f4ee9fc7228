//! Entries of networks of kind `extract`: patterns, and the rows of next hops that they name.
//!
//! Flow: entries of a document → **rows** → program. Entries that do the same share a row.

use hue_intent::{EntryAction, NetworkSpec};
use hue_planes::Adjacency;
use hue_substrate::VirtualPort;
use hue_tables::Pattern;

use crate::routes::{Hops, Rows};

/// The rows of a network's entries; `None` if one is for a port that does not exist, or if there are too many.
pub(crate) fn rows(spec: &NetworkSpec, ports: &[VirtualPort]) -> Option<Rows<Pattern>> {
    let (mut hops, mut entries) = (Hops::default(), Vec::with_capacity(spec.entries.len()));
    if let Some(key) = &spec.plane.key {
        for entry in &spec.entries {
            let row = match &entry.action {
                EntryAction::Drop => Adjacency::drop(),
                EntryAction::Punt => Adjacency::local(),
                EntryAction::Forward { port, destination, source } => {
                    let port = ports.iter().find(|one| one.name == port.as_str())?;
                    Adjacency::out_with(port.port, port.mtu_bytes, *destination, *source)
                }
            };
            entries.push((entry.pattern(key), hops.add(row).ok()?));
        }
    }
    Some(Rows { next_hops: hops.list, entries })
}
