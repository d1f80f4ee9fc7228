//! Explains one packet: what each stage saw, which one decided, what changed. For `hueplane trace`.
//!
//! The decision comes from both halves of the plane themselves; this file only describes it, stage by stage of
//! the specification, up to the one that the outcome belongs to.

use hue_tables::Key;
use hue_wire::{ethernet, ipv4};

use super::{Checked, Plane, Settings, check};
use crate::explain::{after_front, end, ethernet, ethernet_changes, stage};
use crate::plane::{Explanation, Looked};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet(frame))];
    let checked = match check(frame) {
        Ok(checked) => checked.with_martians(settings.forward_martians),
        Err(outcome) => {
            if outcome.row().stage == "header" {
                stages.push(stage("header", header(frame)));
            }
            return end(stages, outcome.into(), None, frame.to_vec());
        }
    };
    stages.push(stage("header", header(frame)));
    after_front::<Plane>(frame, stages, (checked, checked.key.to_ip()), look, changes)
}

fn header_of(frame: &[u8]) -> Option<&ipv4::Header> {
    ipv4::Header::over(frame.get(ethernet::HEADER_BYTES..)?).map(|(header, _)| header)
}

/// The header of a frame, field by field.
pub(crate) fn header(frame: &[u8]) -> String {
    let present_bytes = frame.len().saturating_sub(ethernet::HEADER_BYTES);
    match header_of(frame) {
        Some(header) => format!(
            "version {}, header {} bytes, total {} bytes of {present_bytes} present, TTL {}, protocol {}, \
             checksum 0x{:04x}, {} to {}",
            header.version(),
            header.header_bytes(),
            header.total_length.get(),
            header.ttl,
            header.protocol.0,
            header.checksum.get(),
            header.source(),
            header.destination()
        ),
        None => format!("{present_bytes} bytes present of {}", ipv4::HEADER_BYTES),
    }
}

/// What the rewrite changed, field by field.
pub(crate) fn changes(before: &[u8], after: &[u8]) -> String {
    let mut text = ethernet_changes(before, after);
    if let (Some(old), Some(new)) = (header_of(before), header_of(after)) {
        text.push(format!("TTL {} -> {}", old.ttl, new.ttl));
        text.push(format!("checksum 0x{:04x} -> 0x{:04x}", old.checksum.get(), new.checksum.get()));
    }
    text.join(", ")
}
