//! Entries of networks of kind `mpls`: a pattern for each label, and the rows of next hops that they name.
//!
//! Flow: labels of a document → **rows** → program. A row with labels names the row of the neighbour; entries that do the
//! same share rows.

use hue_intent::{LabelAction, NetworkSpec};
use hue_planes::{Adjacency, mpls};
use hue_substrate::VirtualPort;
use hue_tables::Pattern;

use crate::routes::{Hops, Rows};

/// The rows of a network's labels; `None` if one is for a port that does not exist, or if there are too many.
pub(crate) fn rows(spec: &NetworkSpec, ports: &[VirtualPort]) -> Option<Rows<Pattern>> {
    let (mut hops, mut entries) = (Hops::default(), Vec::with_capacity(spec.labels.len()));
    for entry in &spec.labels {
        let row = match &entry.action {
            LabelAction::Drop => Adjacency::drop(),
            LabelAction::Punt => Adjacency::local(),
            LabelAction::Forward { port, neighbour, labels } => {
                let port = ports.iter().find(|one| one.name == port.as_str())?;
                let (to, from) = (Some(*neighbour), Some(port.mac));
                let way = hops.add(Adjacency::out_with(port.port, port.mtu_bytes, to, from)).ok()?;
                Adjacency::labels(labels, way.get())?
            }
        };
        entries.push((mpls::pattern_of(entry.label), hops.add(row).ok()?));
    }
    Some(Rows { next_hops: hops.list, entries })
}
