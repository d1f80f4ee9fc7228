//! Bugs that tests plant, to verify that checkers find them.
//!
//! With the feature `planted`, a test's thread selects one. Without the feature, every query is `false` at compile
//! time, so releases contain nothing of this.

/// A bug in moves between card and software, in the paths of frames, or in the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// The old path is not drained: no fence follows its last frame.
    NoFence,
    /// The card's hold of a network's frames is not ended.
    HoldStays,
    /// The index that frames from software used during the move is not returned.
    NetStays,
    /// The card decides the network's packets before its table is complete.
    RowFirst,
    /// Occasionally a frame goes to the worker as a frame of the next network.
    WrongNetwork,
    /// A change of routes goes only to software.
    NoMirror,
    /// A new program leaves the network's rows on the card: the seat is forgotten, but the row stays.
    SeatForgotten,
    /// Frames bypass the card before it is empty.
    BypassEarly,
    /// Rate limits start with full buckets on the other side.
    DebtsStay,
    /// A network that learns comes to the card without what it has learnt.
    AddressesStay,
    /// The answer to an image load comes while networks are still moving.
    AnswerEarly,
    /// Networks return to another image in the order of their names.
    ByName,
    /// The network for which an image is loaded also moves on its own.
    NotReserved,
    /// Networks return to a drained card.
    DrainForgotten,
    /// Every network's packets go through the plane of kind `ipv4`.
    KindIgnored,
    /// An update whose routes are refused leaves its next hops.
    RowsStay,
    /// An update with routes of both widths changes those of 32 bits only.
    OneWidth,
    /// A group of next hops that changes keeps its slots on the card.
    SlotsStay,
    /// A network whose routes by source change keeps the former ones on the card.
    PoliciesStay,
}

impl Bug {
    /// All bugs.
    pub const ALL: [Self; 19] = [
        Self::NoFence,
        Self::HoldStays,
        Self::NetStays,
        Self::RowFirst,
        Self::WrongNetwork,
        Self::NoMirror,
        Self::SeatForgotten,
        Self::BypassEarly,
        Self::DebtsStay,
        Self::AddressesStay,
        Self::AnswerEarly,
        Self::ByName,
        Self::NotReserved,
        Self::DrainForgotten,
        Self::KindIgnored,
        Self::RowsStay,
        Self::OneWidth,
        Self::SlotsStay,
        Self::PoliciesStay,
    ];
}

#[cfg(feature = "planted")]
mod chosen {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug in this thread; `None` removes it.
    pub fn plant(bug: Option<Bug>) {
        CHOSEN.set(bug);
    }

    /// Whether this bug is planted here.
    #[must_use]
    pub fn planted(bug: Bug) -> bool {
        CHOSEN.get() == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub use chosen::{plant, planted};

/// No bug is ever planted here.
#[cfg(not(feature = "planted"))]
#[must_use]
#[inline(always)]
pub const fn planted(_: Bug) -> bool {
    false
}
