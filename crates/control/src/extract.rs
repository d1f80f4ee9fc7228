//! Entries of networks of kind `extract`: patterns, and the rows of next hops that they name.
//!
//! Flow: entries of a document → **rows** → program. Entries that do the same share a row.

use std::collections::HashMap;

use hue_intent::{EntryAction, NetworkSpec};
use hue_planes::Adjacency;
use hue_substrate::VirtualPort;
use hue_tables::{NextHop, Pattern};

/// What the entries of a network become.
pub(crate) struct Rows {
    pub next_hops: Vec<Adjacency>,
    /// In the order of the document.
    pub entries: Vec<(Pattern, NextHop)>,
}

/// The rows of a network's entries; `None` if one is for a port that does not exist, or if there are too many.
pub(crate) fn rows(spec: &NetworkSpec, ports: &[VirtualPort]) -> Option<Rows> {
    let mut rows = Rows { next_hops: Vec::new(), entries: Vec::with_capacity(spec.entries.len()) };
    let Some(key) = &spec.plane.key else { return Some(rows) };
    let mut known: HashMap<Adjacency, NextHop> = HashMap::new();
    for entry in &spec.entries {
        let row = match &entry.action {
            EntryAction::Drop => Adjacency::drop(),
            EntryAction::Punt => Adjacency::local(),
            EntryAction::Forward { port, destination, source } => {
                let port = ports.iter().find(|one| one.name == port.as_str())?;
                Adjacency::out_with(port.port, port.mtu_bytes, *destination, *source)
            }
        };
        let hop = match known.get(&row) {
            Some(hop) => *hop,
            None => {
                let hop = NextHop::new(u16::try_from(rows.next_hops.len()).ok()?)?;
                rows.next_hops.push(row);
                known.insert(row, hop);
                hop
            }
        };
        rows.entries.push((entry.pattern(key), hop));
    }
    Some(rows)
}
