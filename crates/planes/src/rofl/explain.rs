//! Explains one packet with flat labels: what each stage saw, and which one decided. For `hueplane trace`.

use hue_wire::{ethernet, rofl};

use super::{Outcome, Settings, check, decide, rewrite};
use crate::explain::{end, ethernet as ethernet_text, stage};
use crate::plane::{Explanation, Looked};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(
    frame: &[u8],
    settings: Settings,
    look: impl FnOnce(super::Checked) -> Looked,
) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet_text(frame))];
    let mut bytes = frame.to_vec();
    let checked = match check(frame, settings) {
        Ok(checked) => checked,
        Err(outcome) => {
            if outcome != Outcome::NotRofl {
                stages.push(stage("header", header(frame)));
            }
            return end(stages, outcome.into(), None, bytes);
        }
    };
    stages.push(stage("header", header(frame)));
    let looked = look(checked);
    let outcome = decide(&checked, looked.answer());
    stages.push(stage("lookup", format!("{}: {}", settings.label_text(checked.key), looked.text)));
    match outcome {
        Outcome::Forward => {
            rewrite(&mut bytes, &looked.hop, checked.budget);
            let budget = format!("hop budget {} -> {}", checked.budget, checked.budget.saturating_sub(1));
            stages.push(stage("egress", format!("{}, {budget}", looked.hop)));
        }
        Outcome::HopBudget | Outcome::Loop | Outcome::Mtu => {
            stages.push(stage("egress", looked.hop.to_string()));
        }
        _ => {}
    }
    end(stages, outcome.into(), Some(looked.hop), bytes)
}

/// The header as far as the frame has it.
fn header(frame: &[u8]) -> String {
    let bytes = frame.get(ethernet::HEADER_BYTES..).unwrap_or_default();
    let Some((header, _)) = rofl::Header::over(bytes) else { return "too short".to_owned() };
    let mut text = format!(
        "version {}, labels of {} bits, hop budget {}, route of {}, payload of {} bytes",
        header.version(),
        8 * u16::from(header.label_bytes),
        header.budget,
        header.route,
        header.payload_bytes()
    );
    if let Some(packet) = rofl::Packet::parse(bytes) {
        let label = |one| super::label_text(one, packet.label_bytes);
        text += &format!(", {} -> {}", label(packet.source), label(packet.destination));
    }
    for (flag, name) in [(rofl::FLAG_LINK, "link"), (rofl::FLAG_CLOSEST, "closest")] {
        if header.has(flag) {
            text += &format!(", flag {name}");
        }
    }
    text
}
