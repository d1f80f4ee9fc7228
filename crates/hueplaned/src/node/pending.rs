//! Changes that go back by themselves unless they are confirmed.
//!
//! Flow: apply with a time → the change is stored with what undoes it → [`NodeHandle::confirm`](crate::backend::Backend::confirm), or
//! [`NodeHandle::tend_pending`] at the deadline; at start, [`undo_overdue`], before anything of the change runs. Invariants: while a change
//! waits, no other one is made, except the rollback to the documents before it.

use std::time::{Duration, Instant};

use hue_host::control::Owner;

use super::change;
use crate::api::{Author, EventKind, RevisionKind, Timestamp};
use crate::history::Origin;
use crate::pending::Pending;
use crate::store::{Desired, Store};

/// Pause after a change could not be undone, for example because the disk fails.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// Until when the change that waits must be confirmed.
pub(super) fn deadline(desired: &Desired) -> Option<Instant> {
    desired.pending.as_ref().map(|pending| Instant::now() + pending.left(Timestamp::now()))
}

/// The daemon as the author of a change.
pub(super) fn daemon() -> Author {
    Author { role: "daemon".to_owned(), name: None }
}

pub(super) fn went_back(pending: &Pending) -> String {
    let Pending { revision, restores, .. } = pending;
    format!("revision {revision} was not confirmed in time: back to revision {restores}")
}

/// Undoes a change whose deadline has passed while no daemon ran, and says so. If it cannot be undone now, it stays for
/// the moment.
pub(super) fn undo_overdue(
    store: &mut Store,
    desired: Desired,
    owner: &Owner,
) -> (Desired, Option<(EventKind, String)>) {
    let Some(pending) = desired.pending.clone().filter(|one| one.left(Timestamp::now()).is_zero()) else {
        return (desired, None);
    };
    let by = daemon();
    let origin = Origin { by, kind: RevisionKind::AutoRollback, restored: Some(pending.restores) };
    let undone =
        change::prepare_undo(&desired, pending.revision, owner).map_err(|problem| problem.to_string());
    let undone = undone.and_then(|prepared| {
        store.save(&prepared.desired, &origin).map_err(|error| error.to_string()).map(|_| prepared)
    });
    let text = went_back(&pending);
    match undone {
        Ok(prepared) => {
            let desired = (*prepared.desired).clone();
            (desired, Some((EventKind::AutoRolledBack, text)))
        }
        Err(why) => {
            (desired, Some((EventKind::Trouble, format!("{text} failed, and is tried again: {why}"))))
        }
    }
}
