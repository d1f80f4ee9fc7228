//! Labels of networks of kind `rofl`: the labels of entries, and the rows of next hops that they name.
//!
//! Flow: labels of a document, and those that the network's routing daemon learnt → **rows** → program. The rows of the virtual ports come first (see `hue_planes::rofl`); labels
//! that are at the same place share a row.

use std::collections::HashSet;

use hue_intent::{FlatLabel, LabelPlace, NetworkSpec};
use hue_planes::Adjacency;
use hue_substrate::{Entries, Program, VirtualPort};

use crate::routes::{Hops, Rows};

/// The program of a network with these labels besides those of its document, which count where both have one; `None` if one
/// is at a port that does not exist, or if there are too many.
#[must_use]
pub fn with_labels(program: &Program, spec: &NetworkSpec, learnt: &[FlatLabel]) -> Option<Program> {
    let rows = rows(spec, &program.ports, learnt)?;
    let program =
        Program { next_hops: rows.next_hops, entries: Entries::Nearest(rows.entries), ..program.clone() };
    program.check().ok().map(|()| program)
}

/// The rows of a network's labels, and of those that were learnt; `None` if one is at a port that does not exist, or if there
/// are too many.
pub(crate) fn rows(spec: &NetworkSpec, ports: &[VirtualPort], learnt: &[FlatLabel]) -> Option<Rows<u128>> {
    let (mut hops, mut entries) =
        (Hops::default(), Vec::with_capacity(spec.flat_labels.len() + learnt.len()));
    let known: HashSet<u128> = spec.flat_labels.iter().map(|entry| entry.label.bits).collect();
    let learnt = learnt.iter().filter(|entry| !known.contains(&entry.label.bits));
    for port in ports {
        hops.add(port.arrival()).ok()?;
    }
    for entry in spec.flat_labels.iter().chain(learnt) {
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
