//! Explains one packet: what each stage saw, which one decided, what changed. For `hueplane trace`.
//!
//! The decision comes from both halves of the plane themselves; this file only describes it, stage by stage of
//! the specification, up to the one that the outcome belongs to.

use hue_tables::Key;
use hue_wire::{ethernet, ipv6};

use super::{Checked, Outcome, Plane, check};
use crate::explain::{after_front, end, ethernet, ethernet_changes, stage};
use crate::plane::{Explanation, Looked};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(frame: &[u8], look: impl FnOnce(Checked) -> Looked) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet(frame))];
    let checked = match check(frame) {
        Ok(checked) => checked,
        Err(outcome) => {
            if outcome != Outcome::Ethertype {
                stages.push(stage("header", header(frame)));
            }
            // Decided by the address alone: every link has these prefixes, so no route of the network can.
            if outcome == Outcome::Local
                && let Some(header) = header_of(frame)
            {
                stages.push(stage("lookup", format!("{}: not looked up", header.destination())));
            }
            return end(stages, outcome.into(), None, frame.to_vec());
        }
    };
    stages.push(stage("header", header(frame)));
    after_front::<Plane>(frame, stages, (checked, checked.key.to_ip()), look, changes)
}

fn header_of(frame: &[u8]) -> Option<&ipv6::Header> {
    ipv6::Header::over(frame.get(ethernet::HEADER_BYTES..)?).map(|(header, _)| header)
}

fn header(frame: &[u8]) -> String {
    let present_bytes = frame.len().saturating_sub(ethernet::HEADER_BYTES);
    match header_of(frame) {
        Some(header) => format!(
            "version {}, payload {} bytes of {} present, hop limit {}, next header {}, {} to {}",
            header.version(),
            header.payload_length.get(),
            present_bytes.saturating_sub(ipv6::HEADER_BYTES),
            header.hop_limit,
            header.next_header.0,
            header.source(),
            header.destination()
        ),
        None => format!("{present_bytes} bytes present of {}", ipv6::HEADER_BYTES),
    }
}

/// What the rewrite changed, field by field.
fn changes(before: &[u8], after: &[u8]) -> String {
    let mut text = ethernet_changes(before, after);
    if let (Some(old), Some(new)) = (header_of(before), header_of(after)) {
        text.push(format!("hop limit {} -> {}", old.hop_limit, new.hop_limit));
    }
    text.join(", ")
}
