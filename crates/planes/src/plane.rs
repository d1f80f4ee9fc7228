//! The contract of a kind: what its plane does before and after the lookup. Everything between belongs to all kinds.
//!
//! Flow: frame → [`Plane::front`] → a question, answered by a table of the network → next-hop row → [`Plane::back`].
//! Both halves are pure functions: no state, no clock. Substrates take a batch through them for a kind that is known
//! when the code is compiled ([`with_plane`](crate::with_plane)), so that a kind costs no branch a packet.

use std::fmt;
use std::ops::Range;

use hue_demux::PortId;
use hue_tables::MacKey;
use hue_wire::Mac;
use serde::{Deserialize, Serialize};

use crate::adjacency::Adjacency;
use crate::generated::Kind;
use crate::meter::RateLimit;
use crate::reason::Reason;
use crate::spec::Stage;

/// A kind of plane.
pub trait Plane: 'static {
    /// Which.
    const KIND: Kind;
    /// Filler for arrays.
    const NOTHING: Self::Carried;
    /// How its questions are answered: [`LongestPrefix`], [`ByFamily`], [`BySlice`], [`Exact`], [`Ternary`], [`Nearest`] or
    /// [`NoTable`].
    type Match;
    /// The key of its question.
    type Key: Copy + Default;
    /// What the second half needs to know about a packet.
    type Carried: Copy;
    /// What a network says about its plane.
    type Settings: Copy + Default;

    /// Settings that make a difference to what it does with a packet, the defaults among them: for tests of all kinds.
    fn samples() -> Vec<Self::Settings> {
        vec![Self::Settings::default()]
    }

    /// Its settings from those of a network of this kind; its defaults from those of another.
    fn settings(of: &Settings) -> Self::Settings;

    /// The checks that need no table, of a frame of at most [`FRAME_BYTES_MAX`](crate::FRAME_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// The packet's outcome, if it is decided here.
    fn front(frame: &[u8], settings: Self::Settings) -> Result<Self::Carried, Reason>;

    /// [`Plane::front`] of the common case, whatever the settings; `None` for all other packets. Separate, so that
    /// what is carried stays in registers.
    #[inline(always)]
    fn plain(_: &[u8]) -> Option<Self::Carried> {
        None
    }

    /// The key that is looked up.
    fn key(carried: Self::Carried) -> Self::Key;

    /// Of kinds that learn: the second key, whose entry the packet teaches.
    #[inline(always)]
    fn source(_: Self::Carried) -> Option<MacKey> {
        None
    }

    /// Of kinds that learn: whether a packet with this outcome teaches its source. Of kinds that cache pointers: whether it
    /// teaches what was heard.
    #[inline(always)]
    fn teaches(_: Reason) -> bool {
        false
    }

    /// Of kinds that learn: the limits of what a network learns.
    fn learning(_: Self::Settings) -> Option<Learning> {
        None
    }

    /// Of kinds that cache pointers: what a packet, whose frame may have been rewritten for its next hop, says about the way
    /// back.
    #[inline(always)]
    fn heard(_frame: &[u8], _: Self::Carried) -> Option<Heard> {
        None
    }

    /// Of kinds that cache pointers: the limits of the cache.
    fn caching(_: Self::Settings) -> Option<Caching> {
        None
    }

    /// The hash that selects the member of a group of next hops, of a frame that passed the first half.
    fn flow(_frame: &[u8]) -> u32 {
        0
    }

    /// Bytes of a frame that forwarding may change, besides those that every router of IPv4 or IPv6 changes (MAC addresses, TTL or
    /// hop limit, checksum); the same before and after. During a move, a frame is recognised by all others.
    fn edited(_frame: &[u8]) -> [Range<usize>; 2] {
        [0..0, 0..0]
    }

    /// The outcome of a packet.
    fn decide(carried: Self::Carried, answer: Answer<'_>) -> Reason;

    /// Whether forwarded frames may become longer or shorter, by [`Plane::growth`].
    const RESIZES: bool = false;

    /// Of kinds that resize: by how many bytes a forwarded frame becomes longer, at its front; shorter, if negative.
    #[inline(always)]
    fn growth(_: Self::Carried, _: Answer<'_>) -> i32 {
        0
    }

    /// Of kinds that resize: the outcome of a packet for whose growth there is no room.
    fn no_room() -> Reason {
        Reason::gated(Self::KIND)
    }

    /// Decides, and edits the frame if it is forwarded; otherwise leaves it unchanged. `carried` must be the result of
    /// this frame. Of kinds that resize, a frame that is forwarded begins where it will begin afterwards; see [`finish`].
    fn back(frame: &mut [u8], carried: Self::Carried, answer: Answer<'_>) -> Reason;

    /// Where a forwarded packet leaves, unless it is sent to all ports: by default the port of the row that the key names.
    #[inline(always)]
    fn egress(answer: Answer<'_>) -> PortId {
        answer.hop.port()
    }

    /// Explains a frame that passed the gate and the meter. `look` answers its questions.
    fn explain(
        frame: &[u8],
        settings: Self::Settings,
        look: impl FnOnce(Self::Carried) -> Looked,
    ) -> Explanation;
}

/// The second half of a plane for a frame in memory of its own, which becomes longer or shorter if its kind resizes frames.
pub fn finish<P: Plane>(frame: &mut Vec<u8>, carried: P::Carried, answer: Answer<'_>) -> Reason {
    if P::RESIZES && P::decide(carried, answer).is_forward() {
        match usize::try_from(P::growth(carried, answer)) {
            Ok(longer) => {
                frame.splice(..0, std::iter::repeat_n(0, longer));
            }
            Err(_) => {
                let shorter = P::growth(carried, answer).unsigned_abs() as usize;
                frame.drain(..shorter.min(frame.len()));
            }
        }
    }
    P::back(frame, carried, answer)
}

/// The longest prefix of the network's table that contains the key.
pub struct LongestPrefix;

/// The longest prefix that contains the key, in the network's table of the key's address family.
pub struct ByFamily;

/// The longest prefix that contains the address of the key, in the network's table of the slice that the key names
/// ([`hue_tables::slice`]).
pub struct BySlice;

/// The entry of the network's table with the key.
pub struct Exact;

/// The first entry of the network's table whose pattern the key has.
pub struct Ternary;

/// The entry, or cached pointer, whose label is the closest one before the key, in a circular name space.
pub struct Nearest;

/// No table: the first half of the plane decides every packet.
pub struct NoTable;

/// A kind whose packets are of two families, each with a plane. It answers by [`ByFamily`].
pub trait TwoFamilies: Plane<Match = ByFamily, Key = IpKey> {
    /// The plane of IPv4 packets.
    type Ipv4: Plane<Match = LongestPrefix, Key = u32>;
    /// The plane of IPv6 packets.
    type Ipv6: Plane<Match = LongestPrefix, Key = u128>;

    /// Whether a frame is for the plane of IPv6 packets.
    fn is_ipv6(frame: &[u8]) -> bool;
}

/// A key of [`ByFamily`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpKey {
    /// An IPv4 address.
    V4(u32),
    /// An IPv6 address.
    V6(u128),
}

impl Default for IpKey {
    fn default() -> Self {
        Self::V4(0)
    }
}

/// What the tables say about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer<'a> {
    /// The row that the key names; [`Adjacency::NONE`] without a match.
    pub hop: &'a Adjacency,
    /// Of kinds with [`Exact`] and [`Nearest`] matches, else [`Adjacency::NONE`]: the row of the port at which the packet
    /// arrived.
    pub arrival: &'a Adjacency,
    /// Of kinds that learn: the entry of the packet's source, if there is one.
    pub source: Option<Source>,
    /// Of kinds with [`Nearest`] matches: whether the entry's label is the key.
    pub exact: bool,
    /// Of kinds whose entries have labels: the row with them, else [`Adjacency::NONE`].
    pub labels: &'a Adjacency,
}

impl<'a> Answer<'a> {
    /// Of a kind that does not learn.
    #[inline(always)]
    #[must_use]
    pub const fn of(hop: &'a Adjacency) -> Self {
        Self { hop, arrival: &Adjacency::NONE, source: None, exact: false, labels: &Adjacency::NONE }
    }
}

/// The entry of a packet's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// Where it is.
    pub port: PortId,
    /// Whether the entry is static, not learnt.
    pub fixed: bool,
}

/// An [`Answer`] for an explanation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Looked {
    /// See [`Answer::hop`].
    pub hop: Adjacency,
    /// See [`Answer::arrival`].
    pub arrival: Adjacency,
    /// See [`Answer::source`].
    pub source: Option<Source>,
    /// See [`Answer::exact`].
    pub exact: bool,
    /// See [`Answer::labels`].
    pub labels: Adjacency,
    /// What matched.
    pub text: String,
}

impl Looked {
    /// Of a kind that does not learn.
    #[must_use]
    pub const fn of(hop: Adjacency, text: String) -> Self {
        Self { hop, arrival: Adjacency::NONE, source: None, exact: false, labels: Adjacency::NONE, text }
    }

    /// The answer.
    #[must_use]
    pub const fn answer(&self) -> Answer<'_> {
        Answer {
            hop: &self.hop,
            arrival: &self.arrival,
            source: self.source,
            exact: self.exact,
            labels: &self.labels,
        }
    }
}

/// Limits of what a network learns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learning {
    /// Most learnt entries.
    pub entries_max: usize,
    /// How long an entry is kept after the last packet that teaches it, nanoseconds.
    pub ageing_ns: u64,
    /// Limit on packets that are sent to all ports.
    pub storm_limit: Option<RateLimit>,
}

/// Limits of the pointers that a network caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caching {
    /// Most pointers.
    pub pointers_max: usize,
    /// How long a pointer is kept after the last packet that teaches it, nanoseconds.
    pub ageing_ns: u64,
}

/// Most labels that a packet says something about: as many as a source route has.
pub const HEARD_MAX: usize = 4;

/// What a packet says about the way back: these labels are behind the neighbour that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    labels: [u128; HEARD_MAX],
    count: usize,
    /// The neighbour's MAC address, on the port at which the packet arrived.
    pub neighbour: Mac,
}

impl Heard {
    /// The first four of these labels are behind this neighbour.
    #[must_use]
    pub fn new(from: impl Iterator<Item = u128>, neighbour: Mac) -> Self {
        let mut heard = Self { labels: [0; HEARD_MAX], count: 0, neighbour };
        for (place, label) in heard.labels.iter_mut().zip(from) {
            *place = label;
            heard.count += 1;
        }
        heard
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &[u128] {
        self.labels.get(..self.count).unwrap_or_default()
    }
}

/// The outcome of one packet and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The stages it reached, in order; the last one decided.
    pub stages: Vec<Stage>,
    /// Its outcome.
    pub outcome: Reason,
    /// The row by which it leaves if it is forwarded, if it was looked up; [`Adjacency::NONE`] without a match.
    pub hop: Option<Adjacency>,
    /// The frame afterwards: edited if forwarded, else unchanged.
    pub bytes: Vec<u8>,
}

macro_rules! settings {
    ($($variant:ident $kind:ident)*) => {
        /// What a network says about its plane, which also says of what kind it is.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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

            /// The limits of what the network learns, if its kind learns.
            #[must_use]
            pub fn learning(&self) -> Option<Learning> {
                match self {
                    $(Self::$variant(settings) => crate::$kind::Plane::learning(*settings),)*
                }
            }

            /// The limits of the pointers that the network caches, if its kind caches some.
            #[must_use]
            pub fn caching(&self) -> Option<Caching> {
                match self {
                    $(Self::$variant(settings) => crate::$kind::Plane::caching(*settings),)*
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

/// The keys of a kind's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    /// IPv4 addresses.
    V4,
    /// IPv6 addresses.
    V6,
    /// Addresses of both families, each in a table of its own.
    Dual,
    /// IPv4 addresses behind the number of a slice: several tables in one, whose keys have 128 bits.
    Slices,
    /// MAC addresses.
    Mac,
    /// Bits of frames, of which each entry compares some.
    Bits,
    /// Flat labels.
    Label,
    /// Nothing: there are no tables.
    None,
}

impl Keys {
    /// Keys of one width, 32 or 128 bits.
    #[must_use]
    pub const fn of_bits(bits: u8) -> Self {
        if bits == 32 { Self::V4 } else { Self::V6 }
    }

    /// Whether there is a table of routes to IPv4 addresses.
    #[must_use]
    pub const fn has_v4(self) -> bool {
        matches!(self, Self::V4 | Self::Dual)
    }

    /// Whether there is a table of routes whose keys are as wide as IPv6 addresses.
    #[must_use]
    pub const fn has_v6(self) -> bool {
        matches!(self, Self::V6 | Self::Dual | Self::Slices)
    }

    /// Whether networks that take all frames of their ports know where the senders of these are, or send all frames in their own name.
    /// Others cannot tell a frame of their own that returns by another wire.
    #[must_use]
    pub const fn knows_senders(self) -> bool {
        matches!(self, Self::Mac | Self::Label)
    }

    /// Whether there are routes, so that the network has IP addresses.
    #[must_use]
    pub const fn has_routes(self) -> bool {
        self.has_v4() || self.has_v6()
    }

    /// Whether there is a table of routes whose keys have this many bits.
    #[must_use]
    pub const fn has_bits(self, bits: u8) -> bool {
        match bits {
            32 => self.has_v4(),
            128 => self.has_v6(),
            _ => false,
        }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "keys of 32 bits",
            Self::V6 => "keys of 128 bits",
            Self::Dual => "keys of 32 and of 128 bits",
            Self::Slices => "keys of 40 bits, the number of a slice first",
            Self::Mac => "keys of 48 bits",
            Self::Bits => "ternary keys of 128 bits",
            Self::Label => "flat labels",
            Self::None => "no keys",
        })
    }
}

/// Address families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Families {
    /// Whether IPv4 is among them.
    pub v4: bool,
    /// Whether IPv6 is among them.
    pub v6: bool,
}

impl Families {
    /// Whether there are none, so that neighbours resolve no address of a network to its MAC addresses.
    #[must_use]
    pub const fn is_none(self) -> bool {
        !self.v4 && !self.v6
    }
}

/// Limits of what a network of a kind may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// What its tables are keyed by.
    pub keys: Keys,
    /// The address families of the kernel in its namespace.
    pub families: Families,
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
                        keys: crate::$kind::KEYS,
                        families: crate::$kind::FAMILIES,
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
