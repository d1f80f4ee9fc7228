//! Confirms changes that wait for it, or undoes them at their deadline.

use std::time::Instant;

use super::NodeHandle;
use super::backend::Step;
use crate::api::{self, ConfirmRequest, ConfirmResult, EventKind, Problem, ProblemKind, RevisionKind};
use crate::backend::Turn;
use crate::history::Origin;
use crate::node::change;
use crate::node::events::About;
use crate::node::pending::{RETRY, daemon, went_back};
use crate::store::Desired;

impl NodeHandle {
    /// The change that waits for its confirmation.
    pub(super) fn pending(&self) -> Option<api::Pending> {
        let pending = self.shared.desired().pending.clone()?;
        let left = self.shared.deadline.borrow().map(|at| at.saturating_duration_since(Instant::now()));
        Some(pending.view(left.unwrap_or_default()))
    }

    /// Fails while a change waits for its confirmation.
    pub(super) fn none_waits(&self) -> Result<(), Problem> {
        match self.pending() {
            None => Ok(()),
            Some(pending) => {
                let (revision, by, seconds) = (pending.revision, &pending.by, pending.remaining_s);
                let detail = format!(
                    "revision {revision} by {by} waits for its confirmation for another {seconds} s, and nothing else changes until \
                     then: `hueplane confirm` keeps it, `hueplane rollback` undoes it"
                );
                Err(Problem::new(ProblemKind::Conflict, detail))
            }
        }
    }

    pub(super) async fn confirm_now(
        &self,
        request: ConfirmRequest,
        turn: Turn,
    ) -> Result<ConfirmResult, Problem> {
        let confirm = move |node: Self, _| async move {
            let now = node.shared.desired();
            let none = || match request.revision {
                Some(revision) => change::none_pending(revision),
                None => Problem::new(ProblemKind::Conflict, "no change waits for a confirmation"),
            };
            let pending = now.pending.clone().ok_or_else(none)?;
            if request.revision.is_some_and(|revision| revision != pending.revision) {
                return Err(none());
            }
            let revision = pending.revision;
            if node.shared.deadline.borrow().is_some_and(|at| at <= Instant::now()) {
                let detail = format!("revision {revision}: too late, it is being undone");
                return Err(Problem::new(ProblemKind::Conflict, detail));
            }
            let confirmed = Desired { pending: None, ..(*now).clone() };
            node.keep(Some(confirmed), Origin::default()).await?;
            let text = format!("revision {revision} is confirmed");
            node.shared.events.add(EventKind::Confirmed, About::Node, text);
            Ok(ConfirmResult { revision })
        };
        self.in_turn(turn, "a change is confirmed".to_owned(), confirm).await
    }

    /// Undoes changes that are not confirmed in time, for as long as the daemon runs.
    pub async fn tend_pending(&self) {
        let mut deadline = self.shared.deadline.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            let over = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = deadline.changed() => if changed.is_err() { return },
                () = over => {
                    if let Err(problem) = self.undo_pending().await {
                        tracing::error!(%problem, "a change that was not confirmed cannot be undone; trying again");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            }
        }
    }

    async fn undo_pending(&self) -> Result<(), Problem> {
        let Some(pending) = self.shared.desired().pending.clone() else { return Ok(()) };
        let turn = Turn { by: daemon(), ..Turn::default() };
        let step = Step::restore(turn, RevisionKind::AutoRollback, went_back(&pending), pending.restores);
        let revision = pending.revision;
        let undo = move |node: &Self, now: &Desired| change::prepare_undo(now, revision, &node.shared.owner);
        match self.change(Some(step), undo).await {
            // It was confirmed while this waited for its turn.
            Err(_) if self.shared.desired().pending.is_none() => Ok(()),
            done => done.map(|_| ()),
        }
    }
}
