//! Explains one packet: what each stage saw, which one decided, what changed. For `hueplane trace`.
//!
//! The decision comes from [`check`] and [`finish`] themselves; this file only describes it, stage by stage of
//! the specification, up to the one that the outcome belongs to.

use std::fmt::Write;
use std::net::Ipv4Addr;

use hue_wire::{ethernet, ipv4};

use super::{Adjacency, Outcome, Settings, check, finish};
use crate::plane::Explanation;
use crate::spec::{Stage, Verdict};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(
    frame: &[u8],
    settings: Settings,
    lookup: impl FnOnce(u32) -> (Adjacency, String),
) -> Explanation {
    let mut bytes = frame.to_vec();
    let mut stages = vec![stage("ethernet", ethernet(frame))];
    let checked = match check(frame) {
        Ok(checked) => checked.with_martians(settings.forward_martians),
        Err(outcome) => {
            if outcome.row().stage == "header" {
                stages.push(stage("header", header(frame)));
            }
            return end(stages, outcome, None, bytes);
        }
    };
    stages.push(stage("header", header(frame)));
    let (hop, matched) = lookup(checked.key);
    stages.push(stage("lookup", format!("{}: {matched}", Ipv4Addr::from_bits(checked.key))));
    let outcome = finish(&mut bytes, checked, &hop);
    if outcome.row().stage != "lookup" {
        stages.push(stage("next_hop", hop.to_string()));
    }
    if outcome.verdict() == Verdict::Forward {
        stages.push(stage("rewrite", changes(frame, &bytes)));
    }
    end(stages, outcome, Some(hop), bytes)
}

fn stage(name: &'static str, detail: String) -> Stage {
    Stage { name, detail, outcome: None }
}

fn end(mut stages: Vec<Stage>, outcome: Outcome, hop: Option<Adjacency>, bytes: Vec<u8>) -> Explanation {
    if let Some(last) = stages.last_mut() {
        last.outcome = Some(outcome.name());
        // `forward` is the outcome of all remaining packets, so it has no condition to describe.
        if outcome != Outcome::Forward {
            let _ = write!(last.detail, "; {}: {}", outcome.name(), outcome.row().when);
        }
    }
    Explanation { stages, outcome: outcome.into(), hop, bytes }
}

fn ethernet(frame: &[u8]) -> String {
    match ethernet::Header::over(frame) {
        Some((header, _)) => format!(
            "{} bytes, destination {}, source {}, ethertype 0x{:04x}",
            frame.len(),
            header.destination(),
            header.source(),
            header.ethertype().0
        ),
        None => format!("{} bytes", frame.len()),
    }
}

fn header_of(frame: &[u8]) -> Option<&ipv4::Header> {
    ipv4::Header::over(frame.get(ethernet::HEADER_BYTES..)?).map(|(header, _)| header)
}

fn header(frame: &[u8]) -> String {
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
fn changes(before: &[u8], after: &[u8]) -> String {
    let mut text = Vec::new();
    if let (Some((old, _)), Some((new, _))) = (ethernet::Header::over(before), ethernet::Header::over(after))
    {
        text.push(format!("destination {} -> {}", old.destination(), new.destination()));
        text.push(format!("source {} -> {}", old.source(), new.source()));
    }
    if let (Some(old), Some(new)) = (header_of(before), header_of(after)) {
        text.push(format!("TTL {} -> {}", old.ttl, new.ttl));
        text.push(format!("checksum 0x{:04x} -> 0x{:04x}", old.checksum.get(), new.checksum.get()));
    }
    text.join(", ")
}
