//! A change that waits for its confirmation, and what undoes it.
//!
//! Flow: `node::change` → **[`Pending`]**, stored with the documents and in their copy → confirmed, or undone at its deadline, also by a
//! daemon that starts later. Invariants: what undoes it is stored together with it, apart from the history, which may be dropped; an
//! undone change leaves exactly the documents before it. Times are of the system's clock, because they must hold over restarts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::{self, Author, DocumentChange, Timestamp};
use crate::history::{Documents, Undo, described, undo, undone};

/// See the head of this file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// The revision that it made.
    pub revision: u64,
    /// The revision before it.
    pub restores: u64,
    /// Who made it.
    pub by: Author,
    since: Timestamp,
    deadline: Timestamp,
    /// Documents that it changed.
    pub changes: Vec<DocumentChange>,
    undo: Undo,
}

impl Pending {
    /// The change from documents of one revision to those of the next, to be confirmed `within` this time of `since`.
    #[must_use]
    pub fn new(
        (restores, old): (u64, &Documents),
        (revision, new): (u64, &Documents),
        node: &str,
        by: Author,
        (since, within): (Timestamp, Duration),
    ) -> Self {
        let undo = undo(old, new);
        let changes = described(&undo, new, node);
        let within_us = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
        let deadline = Timestamp::from_us(since.us().saturating_add(within_us));
        Self { revision, restores, by, since, deadline, changes, undo }
    }

    /// Time left: never more than there was in the beginning, even if the clock was set back.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Duration {
        let us = self.deadline.us().saturating_sub(now.us().max(self.since.us()));
        Duration::from_micros(us)
    }

    /// The documents before it, from those that it made.
    #[must_use]
    pub fn documents(&self, now: Documents) -> Documents {
        undone(now, self.undo.clone())
    }

    /// Bytes of what undoes it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.undo.iter().map(|(key, text)| key.len() + text.as_ref().map_or(0, String::len)).sum()
    }

    /// The same for the API.
    #[must_use]
    pub fn view(&self, left: Duration) -> api::Pending {
        api::Pending {
            revision: self.revision,
            restores: self.restores,
            by: self.by.clone(),
            deadline: self.deadline,
            // What is left of a second is some time, too.
            remaining_s: left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX),
            changes: self.changes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_gives_no_more_time() {
        let text = |text: &str| Documents::from([("network/a".to_owned(), text.to_owned())]);
        let (since, within) = (Timestamp::from_us(10_000_000), Duration::from_secs(60));
        let one =
            Pending::new((3, &text("old")), (4, &text("new")), "box", Author::default(), (since, within));
        let left = |us| one.left(Timestamp::from_us(us));
        assert_eq!((left(10_000_000), left(40_000_000)), (within, Duration::from_secs(30)));
        assert_eq!((left(0), left(70_000_000), left(u64::MAX)), (within, Duration::ZERO, Duration::ZERO));
        assert_eq!((one.documents(text("new")), one.bytes()), (text("old"), 12));
        assert_eq!(one.view(Duration::from_millis(1_001)).remaining_s, 2);
    }
}
