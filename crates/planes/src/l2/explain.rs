//! Explains one frame: what each stage saw, and which one decided. For `hueplane trace`.

use hue_wire::Mac;

use super::{Outcome, Settings, check, decide};
use crate::explain::{end, ethernet, stage};
use crate::plane::{Explanation, Looked};

/// See [`Plane::explain`](crate::Plane::explain).
pub(super) fn explain(
    frame: &[u8],
    settings: Settings,
    look: impl FnOnce(super::Checked) -> Looked,
) -> Explanation {
    let mut stages = vec![stage("ethernet", ethernet(frame))];
    let bytes = || frame.to_vec();
    let checked = match check(frame, settings) {
        Ok(checked) => checked,
        Err(outcome) => return end(stages, outcome.into(), None, bytes()),
    };
    let looked = look(checked);
    let outcome = decide(checked, looked.answer());
    let sender = Mac::from_u64(checked.source);
    stages.push(stage(
        "source",
        match looked.source {
            Some(entry) if entry.fixed => format!("{sender}: static entry, port {}", entry.port),
            Some(entry) => format!("{sender}: learnt at port {}", entry.port),
            None => format!("{sender}: no entry"),
        },
    ));
    if outcome != Outcome::WrongPort {
        stages.push(stage("lookup", format!("{}: {}", Mac::from_u64(checked.key), looked.text)));
    }
    match outcome {
        Outcome::WrongPort | Outcome::SamePort => {}
        Outcome::Flood => {
            stages.push(stage("egress", format!("all ports but port {}", looked.arrival.port())));
        }
        _ => stages.push(stage("egress", looked.hop.to_string())),
    }
    end(stages, outcome.into(), Some(looked.hop), bytes())
}
