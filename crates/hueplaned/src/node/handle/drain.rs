//! Drains the card for the API: the document first, then the networks, then the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hue_intent::Placement;

use super::NodeHandle;
use super::backend::Asking;
use crate::api::{DrainRequest, DrainResult, Migration, NetworkDrained, Problem, ProblemKind, RevisionKind};
use crate::node::change;
use crate::node::command::{Command, Query, Target};
use crate::node::drain::{Place, TRIES_MAX};
use crate::store::Desired;

impl NodeHandle {
    /// Drains the card, or ends that.
    pub(super) async fn drain_now(
        &self,
        request: &DrainRequest,
        asked: &Asking,
    ) -> Result<DrainResult, Problem> {
        self.none_waits()?;
        let now = self.shared.desired();
        let Some(card) = &now.intent.node.spec.card else {
            let detail = "this node has no card: its document does not have `card`";
            return Err(Problem::new(ProblemKind::Conflict, detail));
        };
        let check = request.drained && !card.is_drained() && !request.force;
        let begin = |reply| if check { Query::CanDrain { reply } } else { Query::Nothing { reply } };
        self.ask_when_idle(asked, None, begin).await?;
        let desired = change::with_drained(&now, request.drained).map(Arc::new);
        if let Some(desired) = &desired {
            let kind = if request.drained { RevisionKind::Drain } else { RevisionKind::Undrain };
            self.store(Arc::clone(desired), asked.origin(kind)).await?;
            self.shared.set_desired(Arc::clone(desired));
        }
        let changed = desired.is_some();
        let networks = match request.drained {
            true => self.leave_card(desired, request).await?,
            false => self.return_to_card(desired).await?,
        };
        let generation = self.shared.desired().generation;
        Ok(DrainResult { drained: request.drained, changed, generation, networks })
    }

    /// Moves the networks of the card to software. The document says already that the card is drained.
    async fn leave_card(
        &self,
        mut desired: Option<Arc<Desired>>,
        request: &DrainRequest,
    ) -> Result<Vec<NetworkDrained>, Problem> {
        let mut done: BTreeMap<String, Result<Migration, Problem>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for _ in 0..TRIES_MAX {
            let (desired, request) = (desired.take().map(Target), *request);
            for (name, answer) in self.ask(|reply| Command::Drain { desired, request, reply }).await? {
                let gone = || Problem::new(ProblemKind::Internal, "the card failed while the network moved");
                done.insert(name, answer.await.unwrap_or_else(|_| Err(gone())));
            }
            // Networks that the node itself was moving to the card leave it when they have arrived.
            places = self.settled_places().await?;
            if !places.values().any(|place| place.on_card) {
                break;
            }
        }
        let on_card = places.iter().filter(|(_, place)| place.on_card).map(|(name, _)| name.clone());
        let moved: BTreeSet<String> = done.keys().cloned().chain(on_card).collect();
        let network = |name: String| {
            let place = places.get(&name)?;
            let (migration, failed) = match done.remove(&name) {
                Some(Ok(migration)) => (Some(migration), None),
                Some(Err(problem)) => (None, Some(problem.detail)),
                None => (None, None),
            };
            let why = place.on_card.then(|| failed.unwrap_or_else(|| "it is still moving".to_owned()));
            Some(NetworkDrained { network: name, substrate: place.substrate(), why, migration })
        };
        Ok(moved.into_iter().filter_map(network).collect())
    }

    /// Networks move to where documents or the scheduler place them.
    async fn return_to_card(&self, desired: Option<Arc<Desired>>) -> Result<Vec<NetworkDrained>, Problem> {
        if let Some(desired) = desired {
            self.ask(|reply| Command::Undrain { desired: Target(desired), reply }).await?;
        }
        let places = self.settled_places().await?;
        let concerned = places.into_iter().filter(|(_, one)| one.on_card || one.placement == Placement::Card);
        let network = |(network, place): (String, Place)| {
            let substrate = place.substrate();
            NetworkDrained { network, substrate, why: place.why, migration: None }
        };
        Ok(concerned.map(network).collect())
    }

    /// Where networks are once none is moving, or after the longest wait.
    async fn settled_places(&self) -> Result<BTreeMap<String, Place>, Problem> {
        // What has been stored is done to the end, so the caller's wish not to wait does not count here.
        match self.ask_when_idle(&Asking::default(), None, |reply| Query::Places { reply }).await {
            Ok(places) => Ok(places),
            Err(problem) if problem.kind == ProblemKind::Conflict => {
                self.ask(|reply| Query::Places { reply }).await?
            }
            Err(problem) => Err(problem),
        }
    }
}
