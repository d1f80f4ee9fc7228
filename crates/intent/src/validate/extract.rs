//! Entries of networks of kind `extract`: they fit the key, their ports exist, each can match a frame, and the table has room
//! for them.

use hue_planes::extract::Settings;
use hue_tables::{Pattern, unreachable};

use super::{Known, NetworkDraft, present};
use crate::decode::Cursor;
use crate::extract::{Digits, Entry, EntryAction, Matching};
use crate::limits::ENTRY_MASKS_MAX;

/// Checks the entries of a network.
pub(super) fn entries(network: &NetworkDraft<'_>, known: Option<&Known>) {
    let mut sound = network.entries.complete;
    if let Some(known) = known {
        for (entry, at) in present(&network.entries) {
            if let EntryAction::Forward { port, .. } = &entry.action {
                known.port(port, &at.field_or_self("port"));
            }
        }
    }
    let Some(key) = network.plane.as_ref().and_then(|plane| plane.key) else { return };
    for (entry, at) in present(&network.entries) {
        sound &= fits(entry, &key, at).is_some();
    }
    if !sound {
        return;
    }
    let all: Vec<(Pattern, &Cursor<'_>)> =
        present(&network.entries).map(|(entry, at)| (entry.pattern(&key), at)).collect();
    room(&all);
    let patterns: Vec<Pattern> = all.iter().map(|(pattern, _)| *pattern).collect();
    for (index, earlier) in unreachable(&patterns) {
        let (Some((pattern, at)), Some((_, first))) = (all.get(index), all.get(earlier)) else { continue };
        let at = at.field_or_self("match");
        let hint = format!(
            "entries[{earlier}] in {} takes all of its frames; the first match counts",
            first.location_for(&at)
        );
        let found = format!("{}, which no frame reaches", key.pattern_text(pattern));
        at.fault(found, "an entry before those that contain it, or none", Some(hint));
    }
}

/// Whether the digits of an entry are those of the key; reports others.
fn fits(entry: &Entry, key: &Settings, at: &Cursor<'_>) -> Option<()> {
    let (at_value, at_mask) = (at.field_or_self("match"), at.field_or_self("mask"));
    let value = match entry.matching {
        Matching::Any => return Some(()),
        Matching::Value(value) | Matching::First(value, _) | Matching::Masked(value, _) => value,
    };
    if value.bytes != key.bytes() {
        let (found, wanted) = (2 * value.bytes, 2 * key.bytes());
        let hint = "two for each byte of plane.key".to_owned();
        at_value.fault(format!("{found} digits"), format!("{wanted}, as the key has"), Some(hint));
        return None;
    }
    let text = |bits| Digits { bits, bytes: value.bytes };
    if let Matching::Masked(_, mask) = entry.matching {
        let beyond = mask.bits & !key.mask();
        if mask.bits == 0 {
            at_mask.fault(mask.to_string(), "a mask with a bit, or match: any", None);
            return None;
        }
        if beyond != 0 {
            let expected = format!("bits of the key: {}", text(key.mask()));
            at_mask.fault(mask.to_string(), expected, Some(format!("{} are not in it", text(beyond))));
            return None;
        }
    }
    let pattern = entry.pattern(key);
    if pattern.mask() == 0 {
        let hint = format!("the bits of the key are {}", text(key.mask()));
        at_value.fault("a length without a bit of the key", "a longer one, or any", Some(hint));
        return None;
    }
    if value.bits != pattern.value() {
        let hint = format!("the bits that are compared are {}", text(pattern.mask()));
        let wanted = match entry.matching {
            Matching::First(_, len) => format!("{}/{len}", text(pattern.value())),
            _ => text(pattern.value()).to_string(),
        };
        let found = at_value.spelling().unwrap_or_default();
        at_value.fault(found, format!("zeros in the other bits, as in {wanted}"), Some(hint));
        return None;
    }
    Some(())
}

/// The entries have no more masks than the table takes.
fn room(entries: &[(Pattern, &Cursor<'_>)]) {
    let mut masks: Vec<u128> = Vec::new();
    for (pattern, at) in entries {
        if masks.contains(&pattern.mask()) {
            continue;
        }
        if masks.len() == ENTRY_MASKS_MAX {
            let hint = "each costs every packet a search; a length such as /16 is a mask too".to_owned();
            let found = format!("a mask beyond the {ENTRY_MASKS_MAX} different ones before it");
            at.field_or_self("match").fault(found, format!("at most {ENTRY_MASKS_MAX}"), Some(hint));
            return;
        }
        masks.push(pattern.mask());
    }
}
