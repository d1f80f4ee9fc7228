//! Labels of networks of kind `rofl`: the labels of entries, and the rows of next hops that they name.
//!
//! Flow: labels of a document → **rows** → program. The rows of the virtual ports come first (see `hue_planes::rofl`); labels
//! that are at the same place share a row.

use hue_intent::{LabelPlace, NetworkSpec};
use hue_planes::Adjacency;
use hue_substrate::VirtualPort;

use crate::routes::{Hops, Rows};

/// The rows of a network's labels; `None` if one is at a port that does not exist, or if there are too many.
pub(crate) fn rows(spec: &NetworkSpec, ports: &[VirtualPort]) -> Option<Rows<u128>> {
    let (mut hops, mut entries) = (Hops::default(), Vec::with_capacity(spec.flat_labels.len()));
    for port in ports {
        hops.add(port.arrival()).ok()?;
    }
    for entry in &spec.flat_labels {
        let row = match &entry.place {
            LabelPlace::Own => Adjacency::local(),
            LabelPlace::At { port, neighbour, resident } => {
                let port = ports.iter().find(|one| one.name == port.as_str())?;
                if *resident {
                    Adjacency::out_with(port.port, port.mtu_bytes, Some(*neighbour), Some(port.mac))
                } else {
                    Adjacency::forward(port.port, port.mac, *neighbour, port.mtu_bytes)
                }
            }
        };
        entries.push((entry.label.bits, hops.add(row).ok()?));
    }
    Some(Rows { next_hops: hops.list, entries })
}
