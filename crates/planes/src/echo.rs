//! The `echo` kind, which exists only in tests: it sends each frame back to its sender.
//!
//! Flow: demux → meter → [`check`] → table lookup of the sender → [`finish`] → port. It is in the contract of kinds what no
//! other kind is: it edits frames of any protocol, matches exactly and learns nothing. Outcomes and their order:
//! `spec/kinds/echo.toml`. Source: ADR 0054.

use std::ops::Range;

use hue_demux::PortId;
use hue_tables::MacKey;
use hue_wire::{Mac, ethernet};
use serde::{Deserialize, Serialize};

use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::explain::{end, ethernet, ethernet_changes, stage};
use crate::generated::Kind;
pub use crate::generated::echo::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::plane::{Answer, Exact, Explanation, Learning, Looked};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// What a network says about its plane: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Settings;

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Echo;
    const NOTHING: MacKey = 0;
    type Match = Exact;
    type Key = MacKey;
    type Carried = MacKey;
    type Settings = Settings;

    fn settings(_: &crate::Settings) -> Settings {
        Settings
    }

    fn front(frame: &[u8], _: Settings) -> Result<MacKey, Reason> {
        Ok(check(frame)?)
    }

    fn edited(_: &[u8]) -> [Range<usize>; 2] {
        [0..2 * size_of::<Mac>(), 0..0]
    }

    fn key(sender: MacKey) -> MacKey {
        sender
    }

    /// It has a table of static entries only.
    fn learning(_: Settings) -> Option<Learning> {
        Some(Learning { entries_max: 0, ageing_ns: 0, storm_limit: None })
    }

    fn decide(_: MacKey, _: Answer<'_>) -> Reason {
        Outcome::Forward.into()
    }

    fn back(frame: &mut [u8], _: MacKey, _: Answer<'_>) -> Reason {
        finish(frame).into()
    }

    fn egress(answer: Answer<'_>) -> PortId {
        leaves_by(answer).port()
    }

    fn explain(frame: &[u8], _: Settings, look: impl FnOnce(MacKey) -> Looked) -> Explanation {
        let mut stages = vec![stage("ethernet", ethernet(frame))];
        let mut bytes = frame.to_vec();
        let sender = match check(frame) {
            Ok(sender) => sender,
            Err(outcome) => return end(stages, outcome.into(), None, bytes),
        };
        let looked = look(sender);
        stages.push(stage("lookup", format!("{}: {}", Mac::from_u64(sender), looked.text)));
        let outcome = finish(&mut bytes);
        stages.push(stage("egress", ethernet_changes(frame, &bytes).join(", ")));
        end(stages, outcome.into(), Some(*leaves_by(looked.answer())), bytes)
    }
}

/// The sender's address, which is the key.
///
/// # Errors
/// The frame's outcome, if it has no address to send it back to.
pub fn check(frame: &[u8]) -> Result<MacKey, Outcome> {
    match ethernet::Header::over(frame) {
        Some((header, _)) if header.source().is_unicast() => Ok(header.source().to_u64()),
        _ => Err(Outcome::NoSender),
    }
}

/// Exchanges the two MAC addresses.
pub fn finish(frame: &mut [u8]) -> Outcome {
    if let Some((destination, rest)) = frame.split_first_chunk_mut::<6>()
        && let Some(source) = rest.first_chunk_mut::<6>()
    {
        std::mem::swap(destination, source);
    }
    Outcome::Forward
}

/// The row of the port at which a frame leaves.
fn leaves_by<'a>(answer: Answer<'a>) -> &'a Adjacency {
    if answer.hop.kind() == AdjacencyKind::None { answer.arrival } else { answer.hop }
}
