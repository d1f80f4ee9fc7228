//! Bugs that tests plant, to see that what checks finds them.
//!
//! With the feature `planted` a test's thread chooses one; without it every question is `false` before the compiler is
//! done, and no release has anything of this.

/// A bug of the moves between card and software, or of the ways of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// The old way does not run empty: no fence goes behind the last frame of it.
    NoFence,
    /// The card's hold of a network's frames is not ended.
    HoldStays,
    /// The index that frames of software took meanwhile stays lent.
    NetStays,
    /// The row says that the card decides before the network's table is there.
    RowFirst,
    /// Now and then a frame goes to the worker as the next network's.
    WrongNetwork,
    /// A change of routes goes to software alone.
    NoMirror,
    /// What a new program finds on the card stays there: the seat is forgotten, not the row.
    SeatForgotten,
    /// Frames go past the card before it is empty.
    BypassEarly,
    /// Rate limits begin anew on the other side.
    DebtsStay,
    /// Who has an image loaded is answered while networks still move.
    AnswerEarly,
    /// Networks come back to another image in the order of their names.
    ByName,
    /// What an image is loaded for comes by itself, too.
    NotReserved,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::NoFence,
        Self::HoldStays,
        Self::NetStays,
        Self::RowFirst,
        Self::WrongNetwork,
        Self::NoMirror,
        Self::SeatForgotten,
        Self::BypassEarly,
        Self::DebtsStay,
        Self::AnswerEarly,
        Self::ByName,
        Self::NotReserved,
    ];
}

#[cfg(feature = "planted")]
mod chosen {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug in all that this thread does; `None`: none.
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

/// Whether this bug is planted here: never.
#[cfg(not(feature = "planted"))]
#[must_use]
#[inline(always)]
pub const fn planted(_: Bug) -> bool {
    false
}
