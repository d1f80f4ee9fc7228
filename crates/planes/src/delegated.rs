//! What kinds without tables have in common: every frame is handed to the network's namespace, where the kernel or a program
//! forwards it.
//!
//! Flow: demux → meter → outcome `delegated` → virtual port in the namespace. Nothing is looked up, and no frame is edited. What the
//! namespace sends leaves by the port of its virtual port, as with all kinds. Source: ADR 0069.

/// The plane and the settings of such a kind, from its variant and its module.
macro_rules! delegated {
    ($variant:ident $kind:ident) => {
        use serde::{Deserialize, Serialize};

        use crate::explain::{end, ethernet, stage};
        use crate::generated::Kind;
        pub use crate::generated::$kind::{
            FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome,
        };
        use crate::plane::{Answer, Explanation, Looked, NoTable};
        use crate::reason::Reason;

        /// The plane of this kind.
        pub struct Plane;

        /// What a network says about its plane: nothing. What forwards its packets is no matter of the data plane.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
        pub struct Settings;

        /// The outcome of every frame.
        pub const OUTCOME: Outcome = Outcome::Delegated;

        impl crate::Plane for Plane {
            const KIND: Kind = Kind::$variant;
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
    };
}
pub(crate) use delegated;
