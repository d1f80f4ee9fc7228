//! The way back: which documents a rollback restores, and which stay.
//!
//! Flow: request → documents of the revision (store) → [`change::prepare_rollback`] → the same path as an apply.
//! Invariants: the revision is found when the change is made, in its turn; a document that the revision did not have
//! stays, unless the request says otherwise, or a change is undone that still waits for its confirmation.

use std::sync::{Arc, OnceLock, PoisonError};

use super::NodeHandle;
use super::backend::Step;
use crate::api::{History, Problem, ProblemKind, RevisionKind, RollbackRequest, RollbackResult};
use crate::backend::Turn;
use crate::history::{Documents, HistoryError};
use crate::node::change;
use crate::store::{Desired, Store, network_key};

impl NodeHandle {
    /// The revisions that are kept.
    pub(super) async fn history_now(&self) -> Result<History, Problem> {
        let (revisions, problem) = self.with_store(|store| store.history()).await?;
        let generation = self.shared.desired().generation;
        Ok(History { generation, revisions, pending: self.pending(), problem })
    }

    /// Restores the documents of a revision; without a number, of the one before the latest change.
    pub(super) async fn rollback_now(
        &self,
        request: RollbackRequest,
        only: Option<String>,
        turn: Turn,
    ) -> Result<RollbackResult, Problem> {
        let current = self.shared.desired();
        let now = current.generation;
        // Back from a change that waits for its confirmation: it is undone whole, as at its deadline, without the history.
        let waits = current.pending.as_ref().filter(|pending| {
            only.is_none() && request.revision.is_none_or(|revision| revision == pending.restores)
        });
        let undoes = waits.map(|pending| pending.revision);
        let revision = match waits.map(|pending| pending.restores).or(request.revision) {
            Some(revision) => revision,
            None => self
                .with_store({
                    let only = only.clone();
                    move |store| store.previous(only.as_deref())
                })
                .await?
                .ok_or_else(no_earlier)?,
        };
        // "The revision before the latest change" is about the changes so far, not about one that comes meanwhile.
        let if_generation = request.if_generation.or(request.revision.is_none().then_some(now));
        let step = (!request.dry_run).then(|| {
            let what = format!("the documents of revision {revision} are restored");
            Step::restore(turn, RevisionKind::Rollback, what, revision)
        });
        let kept = Arc::new(OnceLock::new());
        let stays = Arc::clone(&kept);
        let prune = request.prune;
        let prepare =
            move |node: &Self, now: &Desired| {
                change::expect(now, if_generation)?;
                if let Some(undoes) = undoes {
                    return change::prepare_undo(now, undoes, &node.shared.owner);
                }
                let documents = {
                    let mut store = node.shared.store.lock().unwrap_or_else(PoisonError::into_inner);
                    documents(&mut store, revision, only.as_deref())?
                };
                // Only a network's own documents are about it.
                let networks =
                    now.intent.networks.iter().map(hue_intent::Network::name).filter(|name| {
                        !prune && only.is_none() && !documents.contains_key(&network_key(name))
                    });
                let _ = stays.set(networks.map(str::to_owned).collect::<Vec<String>>());
                change::prepare_rollback(now, (revision, &documents), prune, &node.shared.owner)
            };
        let result = self.change(step, prepare).await?;
        Ok(RollbackResult {
            revision,
            generation: result.generation,
            dry_run: result.dry_run,
            actions: result.actions,
            networks: result.networks,
            kept: kept.get().cloned().unwrap_or_default(),
        })
    }
}

/// The documents of a revision, or that of one network.
fn documents(store: &mut Store, revision: u64, only: Option<&str>) -> Result<Documents, Problem> {
    let mut documents = store.documents(revision).map_err(|error| match error {
        HistoryError::NotKept { .. } => Problem::new(ProblemKind::NotFound, error.to_string()),
        HistoryError::Damaged(_) => Problem::internal(error),
    })?;
    if let Some(only) = only {
        documents.retain(|key, _| *key == network_key(only));
        if documents.is_empty() {
            let detail = format!("revision {revision} has no network {only:?}");
            return Err(Problem::new(ProblemKind::NotFound, detail));
        }
    }
    Ok(documents)
}

fn no_earlier() -> Problem {
    Problem::new(ProblemKind::NotFound, "no earlier revision is kept: see `hueplane history`")
}
