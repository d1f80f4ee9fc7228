//! Labels of networks of kind `rofl`: as long as the network's, each once, at ports that exist.

use super::{Known, NetworkDraft, Seen, duplicate, present};
use crate::rofl::LabelPlace;

/// Checks the labels of a network.
pub(super) fn flat_labels(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let default = hue_planes::rofl::Settings::default().label_bits();
    let bits = network.plane.as_ref().map(|plane| plane.label_bits.unwrap_or(default));
    let mut seen = Seen::new();
    for (entry, at) in present(&network.flat_labels) {
        if let (Some(known), LabelPlace::At { port, .. }) = (known, &entry.place) {
            known.port(port, &at.field_or_self("port"));
        }
        let at = at.field_or_self("label");
        let Some(bits) = bits else { continue };
        let (found, wanted) = (2 * entry.label.bytes, usize::from(bits) / 4);
        if found != wanted {
            let hint = format!("plane.label_bits is {bits}");
            at.fault(format!("{found} digits"), format!("{wanted}, as all labels have"), Some(hint));
        } else if let Some(first) = seen.insert(entry.label.to_string(), at.clone()) {
            duplicate(&at, first, format!("label {}", entry.label), "each label once");
        }
    }
}
