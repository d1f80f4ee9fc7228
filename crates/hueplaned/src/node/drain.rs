//! Drains the card: its networks run in software, and no network runs on the card until that ends.
//!
//! Flow: request → software can serve all networks, or the request is refused → the node's document says `drained`
//! (store) → networks move to software, one after the other, each with a report → answer. The end: the document no
//! longer says it → networks move to where documents or the scheduler place them → answer. An applied document that
//! says `drained` has the same effect, without reports. Invariants: the document is stored before the first move, so a
//! daemon that is killed continues; only the node's own document says whether the card is drained
//! (`Node::is_drained`); a network that could not move stays where it is, and the answer names it.

use hue_intent::Placement;

/// How often networks are told to leave a drained card until the answer says that they have not.
pub(super) const TRIES_MAX: usize = 3;

/// Where a network is.
pub struct Place {
    pub(super) on_card: bool,
    pub(super) placement: Placement,
    /// Why it is not on the card.
    pub(super) why: Option<String>,
}

impl Place {
    pub(super) fn substrate(&self) -> String {
        (if self.on_card { hue_card::NAME } else { hue_soft::NAME }).to_owned()
    }
}
