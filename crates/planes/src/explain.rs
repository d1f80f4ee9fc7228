//! What explanations of all kinds have in common: stages, the sentence of the one that decided, the Ethernet header.

use std::fmt;

use hue_wire::ethernet;

use crate::adjacency::Adjacency;
use crate::plane::{Answer, Explanation, Looked, Plane};
use crate::reason::Reason;
use crate::spec::{Stage, Verdict};

/// A stage that did not decide.
pub(crate) fn stage(name: &'static str, detail: String) -> Stage {
    Stage { name, detail, outcome: None }
}

/// The explanation of a packet whose last stage decided.
pub(crate) fn end(
    mut stages: Vec<Stage>,
    outcome: Reason,
    hop: Option<Adjacency>,
    bytes: Vec<u8>,
) -> Explanation {
    if let Some(last) = stages.last_mut() {
        last.outcome = Some(outcome.name());
        // `forward` is the outcome of all remaining packets, so it has no condition to describe.
        if outcome.verdict() != Verdict::Forward {
            last.detail.push_str(&sentence(outcome));
        }
    }
    Explanation { stages, outcome, hop, bytes }
}

/// What is added to the stage that decided.
pub(crate) fn sentence(outcome: Reason) -> String {
    format!("; {}: {}", outcome.name(), outcome.row().when)
}

/// The stages from the lookup on, of a packet that passed the first half of its plane. `asked` is what is looked up; `changes`
/// describes what the rewrite changed.
pub(crate) fn after_front<P: Plane>(
    frame: &[u8],
    mut stages: Vec<Stage>,
    (carried, asked): (P::Carried, impl fmt::Display),
    look: impl FnOnce(P::Carried) -> Looked,
    changes: impl FnOnce(&[u8], &[u8]) -> String,
) -> Explanation {
    let mut bytes = frame.to_vec();
    let Looked { hop, text, .. } = look(carried);
    stages.push(stage("lookup", format!("{asked}: {text}")));
    let outcome = P::back(&mut bytes, carried, Answer::of(&hop));
    if outcome.row().stage != "lookup" {
        stages.push(stage("next_hop", hop.to_string()));
    }
    if outcome.is_forward() {
        stages.push(stage("rewrite", changes(frame, &bytes)));
    }
    end(stages, outcome, Some(hop), bytes)
}

/// The Ethernet header of a frame.
pub(crate) fn ethernet(frame: &[u8]) -> String {
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

/// What the rewrite changed in the Ethernet header, field by field.
pub(crate) fn ethernet_changes(before: &[u8], after: &[u8]) -> Vec<String> {
    match (ethernet::Header::over(before), ethernet::Header::over(after)) {
        (Some((old, _)), Some((new, _))) => vec![
            format!("destination {} -> {}", old.destination(), new.destination()),
            format!("source {} -> {}", old.source(), new.source()),
        ],
        _ => Vec::new(),
    }
}
