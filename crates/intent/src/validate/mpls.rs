//! Entries of networks of kind `mpls`: each label has one, and their ports exist.

use super::{Known, NetworkDraft, Seen, duplicate, present};
use crate::mpls::LabelAction;

/// Checks the entries of a network.
pub(super) fn entries(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let mut seen = Seen::new();
    for (entry, at) in present(&network.labels) {
        let label = at.field_or_self("label");
        if let Some(first) = seen.insert(entry.label, label.clone()) {
            duplicate(&label, first, format!("label {}", entry.label), "a unique label");
        }
        if let (LabelAction::Forward { port, .. }, Some(known)) = (&entry.action, known) {
            known.port(port, &at.field_or_self("port"));
        }
    }
}
