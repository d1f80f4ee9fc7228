//! Explains one frame: what each stage saw, and which one decided. For `hueplane trace`.

use hue_wire::ethernet::{self, EtherType};
use hue_wire::mpls::{ENTRY_BYTES, Entry};

use super::{Checked, DEPTH_MAX, Outcome, Plane, Settings, check, decide};
use crate::explain::{end, ethernet, stage};
use crate::plane::{Explanation, Looked, finish};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet(frame))];
    let mut bytes = frame.to_vec();
    let checked = check(frame, settings);
    if checked != Err(Outcome::NotMpls) {
        stages.push(stage("stack", stack(frame)));
    }
    let checked = match checked {
        Ok(checked) => checked,
        Err(outcome) => {
            match outcome {
                Outcome::Ttl => stages.push(stage("ttl", ttl(frame))),
                Outcome::RouterAlert | Outcome::ExplicitNull | Outcome::Reserved => {
                    stages.push(stage(
                        "label",
                        top(frame).map_or_else(String::new, |top| top.label.to_string()),
                    ));
                }
                _ => {}
            }
            return end(stages, outcome.into(), None, bytes);
        }
    };
    let looked = look(checked);
    let outcome = decide(checked, looked.answer());
    stages.push(stage("lookup", format!("label {}: {}", checked.top.label, looked.text)));
    match outcome {
        Outcome::NotIp => stages.push(stage("pop", looked.labels.to_string())),
        Outcome::Mtu => stages.push(stage("egress", looked.hop.to_string())),
        Outcome::Forward => {
            let _ = finish::<Plane>(&mut bytes, checked, looked.answer());
            stages.push(stage("egress", format!("{}; {}", stack(&bytes), looked.hop)));
        }
        _ => {}
    }
    end(stages, outcome.into(), Some(looked.hop), bytes)
}

fn top(frame: &[u8]) -> Option<Entry> {
    Entry::first(frame.get(ethernet::HEADER_BYTES..)?)
}

fn ttl(frame: &[u8]) -> String {
    top(frame).map_or_else(String::new, |top| top.ttl.to_string())
}

/// The labels of a frame, from the top to the bottom, each with its TTL, and its traffic class if it has one.
fn stack(frame: &[u8]) -> String {
    let Some((header, stack)) = ethernet::Header::over(frame) else { return String::new() };
    if header.ethertype() != EtherType::MPLS {
        return format!("no label, ethertype 0x{:04x}", header.ethertype().0);
    }
    let mut labels = Vec::new();
    for entry in stack.as_chunks::<ENTRY_BYTES>().0.iter().take(DEPTH_MAX + super::LABELS_MAX - 1) {
        let Entry { label, class, bottom, ttl } = Entry::parse(*entry);
        let class = if class == 0 { String::new() } else { format!(" class {class}") };
        labels.push(format!("{label} (TTL {ttl}{class})"));
        if bottom {
            break;
        }
    }
    if labels.is_empty() { "no label".to_owned() } else { format!("labels {}", labels.join(", ")) }
}
