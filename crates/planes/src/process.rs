//! The `process` kind: a program of the owner's forwards, in the network's namespace.
//!
//! Flow: demux → meter → [`OUTCOME`] → virtual port in the namespace. Nothing is looked up, and no frame is edited. What the
//! namespace sends leaves by the port of its virtual port, as with all kinds. Source: ADR 0069.

use serde::{Deserialize, Serialize};

use crate::explain::{end, ethernet, stage};
use crate::generated::Kind;
pub use crate::generated::process::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::plane::{Answer, Explanation, Looked, NoTable};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// What a network says about its plane: nothing. Its program and the program's rights are no matter of the data plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Settings;

/// The outcome of every frame.
pub const OUTCOME: Outcome = Outcome::Delegated;

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Process;
    const NOTHING: () = ();
    type Match = NoTable;
    type Key = ();
    type Carried = ();
    type Settings = Settings;

    fn settings(_: &crate::Settings) -> Settings {
        Settings
    }

    #[inline(always)]
    fn front(_: &[u8], _: Settings) -> Result<(), Reason> {
        Err(OUTCOME.into())
    }

    fn key((): ()) {}

    fn decide((): (), _: Answer<'_>) -> Reason {
        OUTCOME.into()
    }

    fn back(_: &mut [u8], (): (), _: Answer<'_>) -> Reason {
        OUTCOME.into()
    }

    fn explain(frame: &[u8], _: Settings, _: impl FnOnce(()) -> Looked) -> Explanation {
        end(vec![stage("ethernet", ethernet(frame))], OUTCOME.into(), None, frame.to_vec())
    }
}
