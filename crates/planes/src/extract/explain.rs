//! Explains one frame: what each stage saw, and which one decided. For `hueplane trace`.

use super::{Outcome, Settings, check, decide, rewrite};
use crate::explain::{end, ethernet, stage};
use crate::plane::{Explanation, Looked};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(
    frame: &[u8],
    settings: Settings,
    look: impl FnOnce(super::Checked) -> Looked,
) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet(frame))];
    let mut bytes = frame.to_vec();
    let checked = match check(frame, &settings) {
        Ok(checked) => checked,
        Err(outcome) => {
            stages.push(stage("key", lanes(&settings)));
            return end(stages, outcome.into(), None, bytes);
        }
    };
    stages.push(stage("key", format!("{}: {}", lanes(&settings), settings.key_text(checked.key))));
    let looked = look(checked);
    let outcome = decide(checked, &looked.hop);
    stages.push(stage("lookup", looked.text));
    match outcome {
        Outcome::Forward => {
            rewrite(&mut bytes, &looked.hop);
            stages.push(stage("egress", looked.hop.to_string()));
        }
        Outcome::Mtu => stages.push(stage("egress", looked.hop.to_string())),
        _ => {}
    }
    end(stages, outcome.into(), Some(looked.hop), bytes)
}

/// The bytes of a key: runs of whole bytes, and each byte with a mask.
fn lanes(settings: &Settings) -> String {
    let mut runs: Vec<(u8, u8, u8)> = Vec::new();
    for lane in settings.lanes() {
        match runs.last_mut() {
            Some((_, last, 0xff)) if lane.mask == 0xff && lane.offset == *last + 1 => *last = lane.offset,
            _ => runs.push((lane.offset, lane.offset, lane.mask)),
        }
    }
    let text = |(first, last, mask): &(u8, u8, u8)| match (*mask, first == last) {
        (0xff, true) => format!("{first}"),
        (0xff, false) => format!("{first} to {last}"),
        (mask, _) => format!("{first} & 0x{mask:02x}"),
    };
    format!("bytes {}", runs.iter().map(text).collect::<Vec<_>>().join(", "))
}
