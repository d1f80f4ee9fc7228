//! The contract of a kind: what its plane does before and after the lookup. Everything between belongs to all kinds.
//!
//! Flow: frame → [`Plane::front`] → a question, answered by a table of the network → next-hop row → [`Plane::back`].
//! Both halves are pure functions: no state, no clock. Substrates take a batch through them for a kind that is known
//! when the code is compiled ([`with_plane`](crate::with_plane)), so that a kind costs no branch a packet.

use hue_tables::Key;

use crate::adjacency::Adjacency;
use crate::generated::Kind;
use crate::reason::Reason;
use crate::spec::Stage;

/// A kind of plane.
pub trait Plane: 'static {
    /// Which.
    const KIND: Kind;
    /// Filler for arrays.
    const NOTHING: Self::Carried;
    /// The key of its question.
    type Key: Key;
    /// What the second half needs to know about a packet.
    type Carried: Copy;
    /// What a network says about its plane.
    type Settings: Copy;

    /// Its settings from those of a network of this kind; its defaults from those of another.
    fn settings(of: &Settings) -> Self::Settings;

    /// The checks that need no table, of a frame of at most [`FRAME_BYTES_MAX`](crate::FRAME_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// The packet's outcome, if it is decided here.
    fn front(frame: &[u8], settings: Self::Settings) -> Result<Self::Carried, Reason>;

    /// The key that is looked up.
    fn key(carried: Self::Carried) -> Self::Key;

    /// The outcome of a packet whose key names `hop` ([`Adjacency::NONE`] without a match).
    fn decide(carried: Self::Carried, hop: &Adjacency) -> Reason;

    /// Decides, and edits the frame if it is forwarded; otherwise leaves it unchanged. `carried` must be the result of
    /// this frame.
    fn back(frame: &mut [u8], carried: Self::Carried, hop: &Adjacency) -> Reason;

    /// Explains a frame that passed the gate and the meter. `lookup` returns the row for a key
    /// ([`Adjacency::NONE`] without a match), and a text that describes the match.
    fn explain(
        frame: &[u8],
        settings: Self::Settings,
        lookup: impl FnOnce(Self::Key) -> (Adjacency, String),
    ) -> Explanation;
}

/// The outcome of one packet and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The stages it reached, in order; the last one decided.
    pub stages: Vec<Stage>,
    /// Its outcome.
    pub outcome: Reason,
    /// The row of the next-hop table that its question names, if it was looked up; [`Adjacency::NONE`] without a match.
    pub hop: Option<Adjacency>,
    /// The frame afterwards: edited if forwarded, else unchanged.
    pub bytes: Vec<u8>,
}

macro_rules! settings {
    ($($variant:ident $kind:ident)*) => {
        /// What a network says about its plane, which also says of what kind it is.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Settings {
            $(
                #[doc = concat!("Of the `", stringify!($kind), "` kind.")]
                $variant(crate::$kind::Settings),
            )*
        }

        impl Settings {
            /// The defaults of a kind.
            #[must_use]
            pub fn of(kind: Kind) -> Self {
                match kind {
                    $(Kind::$variant => Self::$variant(crate::$kind::Settings::default()),)*
                }
            }

            /// The kind.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$variant(_) => Kind::$variant,)*
                }
            }
        }
    };
}
crate::for_each_plane!(settings);

/// Limits of what a network of a kind may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Width of a lookup key, bits.
    pub key_bits: u32,
    /// Most rows of the next-hop table.
    pub next_hops_max: usize,
    /// Least MTU of a port, bytes of IP.
    pub mtu_bytes_min: u16,
    /// Largest MTU of a port, bytes of IP.
    pub mtu_bytes_max: u16,
}

macro_rules! limits {
    ($($variant:ident $kind:ident)*) => {
        impl Kind {
            /// Limits of its networks.
            #[must_use]
            pub const fn limits(self) -> Limits {
                match self {
                    $(Self::$variant => Limits {
                        key_bits: crate::$kind::KEY_BITS,
                        next_hops_max: crate::$kind::NEXT_HOPS_MAX,
                        mtu_bytes_min: crate::$kind::MTU_BYTES_MIN,
                        mtu_bytes_max: crate::$kind::MTU_BYTES_MAX,
                    },)*
                }
            }
        }
    };
}
crate::for_each_plane!(limits);
