//! The node as the backend of the API: distributes requests to the thread or store that answers them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::watch;

use super::NodeHandle;
use crate::api::{
    self, ApplyRequest, ApplyResult, CaptureFilter, CapturedFrame, Config, DiffResult, DownOptions,
    DownResult, DrainRequest, DrainResult, EventKind, EventPage, ExecInfo, GateRequest, History, ImageInfo,
    ImageLoaded, LoadImageRequest, MacAddress, MigrateRequest, Migration, Neighbour, Network, NetworkFilter,
    NetworkState, Placement, Plan, PlanQuery, Port, PortState, Problem, ProblemKind, RevisionKind, Route,
    RouteFilter, Stats, Status, StoreStatus, Summary, TableEntry, Tables, Timestamp, Trace, TurnQuery, Usage,
};
use crate::backend::{Backend, MetricsSnapshot, Pieces, Turn};
use crate::history::Origin;
use crate::node::change::{self, Prepared};
use crate::node::command::Deferred;
use crate::node::command::{Command, Frame, Query, Reply, Request, Target};
use crate::node::events::About;
use crate::node::idle::Caller;
use crate::node::lists::RoutesAt;
use crate::node::message::Message;
use crate::node::queue::InTurn;
use crate::node::stats::OnCard;
use crate::node::view::{CardView, NetworkView, View};
use crate::node::{capture, files, image, moves, stats};
use crate::pending::Pending;
use crate::store::{Desired, Store, StoreError};

/// How often a full disk is tried again.
const TEND_STORE: Duration = Duration::from_secs(10);

#[async_trait]
impl Backend for NodeHandle {
    fn is_ready(&self) -> bool {
        self.shared.view().is_published()
    }

    async fn status(&self) -> Result<Status, Problem> {
        Ok(self.status_of(&self.shared.view()))
    }

    async fn node(&self) -> Result<api::Node, Problem> {
        let view = self.shared.view();
        Ok(api::Node {
            name: view.node.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            substrate: hue_soft::NAME.to_owned(),
            card: view.card.as_ref().map(CardView::info),
            workers: self.shared.workers,
            scheduling: self.shared.scheduling.scheduling.name().to_owned(),
            scheduling_note: self.shared.scheduling.why_not.clone(),
            ports: view.ports.iter().map(|port| port.api.name.clone()).collect(),
            networks: view.networks.iter().map(|network| network.api.name.clone()).collect(),
            capacity: view.capacity,
        })
    }

    async fn config(&self) -> Result<Config, Problem> {
        let desired = self.shared.desired();
        let (generation, applied) = (desired.generation, desired.applied);
        let documents = aside(move || change::documents(&desired.intent)).await?;
        Ok(Config { generation, applied, documents })
    }

    async fn networks(&self) -> Result<Vec<Network>, Problem> {
        let view = self.shared.view();
        aside(move || networks(&view)).await
    }

    async fn network(&self, name: &str) -> Result<Network, Problem> {
        let view = self.shared.view();
        let found = view.network(name).cloned().ok_or_else(|| Problem::no_network(name))?;
        aside(move || network(&view, &found)).await
    }

    async fn ports(&self) -> Result<Vec<Port>, Problem> {
        Ok(self.ports_of(&self.shared.view()))
    }

    async fn routes(&self, filter: RouteFilter) -> Result<Pieces<Route>, Problem> {
        let only = filter.network.clone();
        let names = self.ask(|reply| Query::Names { only, reply }).await??;
        let left = filter.limit.unwrap_or(u64::MAX);
        Ok(match filter.address {
            None => self.all_routes(names, left),
            Some(address) => {
                let next = move |node: Self, name: String| async move {
                    node.ask(|reply| Query::RoutesHolding { name, address, reply }).await
                };
                limited(self.each(names, next), left)
            }
        })
    }

    async fn neighbours(&self, filter: NetworkFilter) -> Result<Pieces<Neighbour>, Problem> {
        let only = filter.network.clone();
        let names = self.ask(|reply| Query::Names { only, reply }).await??;
        let next = |node: Self, name: String| async move {
            match node.ask(|reply| Query::Neighbours { name, reply }).await? {
                Some(list) => aside(move || list.read()).await?.map_err(Problem::internal),
                None => Ok(Vec::new()),
            }
        };
        Ok(limited(self.each(names, next), filter.limit.unwrap_or(u64::MAX)))
    }

    async fn macs(&self, filter: NetworkFilter) -> Result<Pieces<MacAddress>, Problem> {
        let only = filter.network.clone();
        let names = self.ask(|reply| Query::Names { only, reply }).await??;
        let next =
            |node: Self, name: String| async move { node.ask(|reply| Query::Macs { name, reply }).await };
        Ok(limited(self.each(names, next), filter.limit.unwrap_or(u64::MAX)))
    }

    async fn entries(&self, filter: NetworkFilter) -> Result<Pieces<TableEntry>, Problem> {
        let only = filter.network.clone();
        let names = self.ask(|reply| Query::Names { only, reply }).await??;
        let next =
            |node: Self, name: String| async move { node.ask(|reply| Query::Entries { name, reply }).await };
        Ok(limited(self.each(names, next), filter.limit.unwrap_or(u64::MAX)))
    }

    async fn tables(&self) -> Result<Tables, Problem> {
        let (mut tables, card) = self.ask(|reply| Query::Tables { reply }).await?;
        if let Some(card) = card {
            // No answer: the card has just ended.
            tables.card = card.await.ok();
        }
        Ok(tables)
    }

    async fn stats(&self, network: Option<&str>) -> Result<Stats, Problem> {
        let view = self.shared.view();
        let card = self.on_card(&view, network).await?;
        stats::stats(&view, &self.shared.totals, &card, self.shared.started, network)
            .ok_or_else(|| Problem::no_network(network.unwrap_or_default()))
    }

    async fn placements(&self) -> Result<Vec<Placement>, Problem> {
        let question = self.ask(|reply| Query::Question { from_traffic: false, reply }).await?;
        let view = self.shared.view();
        let planning = Arc::clone(&self.shared);
        aside(move || planning.planning.placements(&view, &question)).await
    }

    async fn plan(&self, query: PlanQuery) -> Result<Plan, Problem> {
        let from_traffic = query.from_traffic;
        let question = self.ask(|reply| Query::Question { from_traffic, reply }).await?;
        let kind = query.scheduler.map(Into::into);
        // Not on the node's thread, because the solver can take long.
        aside(move || question.plan(kind)).await
    }

    async fn metrics(&self) -> Result<MetricsSnapshot, Problem> {
        let tables = self.tables().await?;
        let view = self.shared.view();
        let card = self.on_card(&view, None).await?;
        let stats = stats::stats(&view, &self.shared.totals, &card, self.shared.started, None);
        let stats = stats.unwrap_or_default();
        let (status, ports) = (self.status_of(&view), self.ports_of(&view));
        let networks = aside(move || networks(&view)).await?;
        Ok(MetricsSnapshot { stats, status, networks, ports, tables })
    }

    async fn apply(&self, request: ApplyRequest, turn: Turn) -> Result<ApplyResult, Problem> {
        let what = (!request.dry_run)
            .then(|| Step::new(turn, RevisionKind::Apply, "documents are being applied".to_owned()));
        let within = request.confirm_within_s.map(|seconds| Duration::from_secs(seconds.into()));
        let what = what.map(|step| Step { within, ..step });
        self.change(what, move |node, now| change::prepare(now, &request, &node.shared.owner)).await
    }

    async fn diff(&self, request: ApplyRequest) -> Result<DiffResult, Problem> {
        let request = ApplyRequest { dry_run: true, ..request };
        let result = self.apply(request, Turn::default()).await?;
        Ok(DiffResult { generation: result.generation, actions: result.actions })
    }

    async fn history(&self) -> Result<History, Problem> {
        self.history_now().await
    }

    async fn rollback(
        &self,
        request: api::RollbackRequest,
        only: Option<String>,
        turn: Turn,
    ) -> Result<api::RollbackResult, Problem> {
        self.rollback_now(request, only, turn).await
    }

    async fn confirm(&self, request: api::ConfirmRequest, turn: Turn) -> Result<api::ConfirmResult, Problem> {
        self.confirm_now(request, turn).await
    }

    async fn delete_network(&self, name: &str, turn: Turn) -> Result<ApplyResult, Problem> {
        let name = name.to_owned();
        let what = Some(Step::new(turn, RevisionKind::Delete, format!("network '{name}' is deleted")));
        self.change(what, move |node, now| change::prepare_delete(now, &name, &node.shared.owner)).await
    }

    async fn gate_network(
        &self,
        name: &str,
        request: GateRequest,
        turn: Turn,
    ) -> Result<ApplyResult, Problem> {
        let (name, gated) = (name.to_owned(), request.gated);
        let what =
            format!("the clock gate of network '{name}' is {}", if gated { "closed" } else { "opened" });
        let prepare =
            move |node: &Self, now: &Desired| change::prepare_gate(now, &name, gated, &node.shared.owner);
        self.change(Some(Step::new(turn, RevisionKind::Gate, what)), prepare).await
    }

    async fn migrate(&self, name: &str, request: MigrateRequest, turn: Turn) -> Result<Migration, Problem> {
        let name = name.to_owned();
        let what = format!("network '{name}' is moved to {}", request.to.name());
        self.in_turn(turn, what, move |node, asked| async move {
            let migration = node.migrate_now(&name, &request, &asked).await;
            if request.load_image {
                node.end_reservation().await?;
            }
            migration
        })
        .await
    }

    async fn images(&self) -> Result<Vec<ImageInfo>, Problem> {
        let (images, running) = self.ask(|reply| Query::Images { reply }).await?;
        aside(move || image::catalogue(&images, running.as_deref())).await
    }

    async fn load_image(
        &self,
        name: &str,
        request: LoadImageRequest,
        turn: Turn,
    ) -> Result<ImageLoaded, Problem> {
        let name = name.to_owned();
        let what = format!("image '{name}' is loaded");
        self.in_turn(turn, what, move |node, asked| async move {
            let away = Duration::from_millis(request.reconfigure_ms.into());
            node.load_image_now(&name, away, &asked).await
        })
        .await
    }

    async fn drain(&self, request: DrainRequest, turn: Turn) -> Result<DrainResult, Problem> {
        let what = if request.drained { "the card is drained" } else { "the card is undrained" };
        self.in_turn(turn, what.to_owned(), move |node, asked| async move {
            node.drain_now(&request, &asked).await
        })
        .await
    }

    async fn down(&self, options: DownOptions) -> Result<DownResult, Problem> {
        let networks = self.shared.view().networks.len() as u64;
        self.go_down(options);
        Ok(DownResult { pid: std::process::id(), networks })
    }

    fn events_since(&self, since: u64, limit: usize) -> EventPage {
        self.shared.events.since(since, limit)
    }

    fn events_watch(&self) -> watch::Receiver<u64> {
        self.shared.events.watch()
    }

    async fn capture(&self, filter: CaptureFilter) -> Result<BoxStream<'static, CapturedFrame>, Problem> {
        let capture = self.ask(|reply| Command::Capture { filter, reply }).await??;
        let shared = Arc::clone(&self.shared);
        capture::frames(capture, move || shared.view())
    }

    async fn trace(&self, port: &str, frame: Vec<u8>) -> Result<Trace, Problem> {
        let (port, frame) = (port.to_owned(), Frame(frame));
        self.ask(|reply| Query::Trace { port, frame, reply }).await?
    }

    async fn exec_info(&self, name: &str) -> Result<ExecInfo, Problem> {
        self.exec_info_now(name.to_owned()).await
    }
}

impl NodeHandle {
    fn status_of(&self, view: &View) -> Status {
        let networks = view.networks.iter().map(|network| network.api.state.name());
        let ports = view.ports.iter().map(|port| port.api.state.name());
        let desired = self.shared.desired();
        let problem = view.store_problem.clone();
        Status {
            health: view.health,
            problems: view.troubles.iter().map(ToString::to_string).collect(),
            troubles: view.troubles.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: view.node.clone(),
            pid: Some(std::process::id()),
            started: self.shared.started,
            took_over_ms: self.shared.took_over_ms.get().copied(),
            time: Timestamp::now(),
            generation: desired.generation,
            applied: desired.applied,
            store: Some(StoreStatus { healthy: problem.is_none(), problem }),
            card: view.card_status.clone(),
            log: Some(self.shared.log.clone()),
            networks: Summary::of(networks, NetworkState::Running.name()),
            ports: Some(Summary::of(ports, PortState::Up.name())),
            pending: self.pending(),
        }
    }

    /// The card's counters of everything, or of one network.
    async fn on_card(&self, view: &View, only: Option<&str>) -> Result<OnCard, Problem> {
        let Some(card) = &view.card else { return Ok(OnCard::default()) };
        let vid = only.and_then(|name| view.network(name)).map(|network| network.vid);
        let (counts, unclaimed) = match self.ask(|reply| Query::CardCounts { only: vid, reply }).await? {
            // No answer: the card has just ended.
            Some(answer) => answer.await.unwrap_or_default(),
            None => Default::default(),
        };
        // Read after the card's counters, so that these totals include every crossing that those have counted.
        Ok(OnCard { counts, unclaimed, totals: card.totals(), since: Some(card.since) })
    }

    fn ports_of(&self, view: &View) -> Vec<Port> {
        let card = OnCard {
            totals: view.card.as_ref().map(CardView::totals).unwrap_or_default(),
            since: view.card.as_ref().map(|card| card.since),
            ..OnCard::default()
        };
        let port = |port: &crate::node::view::PortView| Port {
            stats: Some(stats::port(&self.shared.totals, &card, port.id, port.api.name.clone())),
            ..port.api.clone()
        };
        view.ports.iter().map(port).collect()
    }

    /// All routes of networks, a piece at a time.
    fn all_routes(&self, names: Vec<String>, left: u64) -> Pieces<Route> {
        let node = self.clone();
        let start: Option<RoutesAt> = Some((names, None));
        let pieces = stream::unfold(start, move |at| {
            let node = node.clone();
            async move {
                let at = at?;
                match node.ask(|reply| Query::Routes { at, reply }).await {
                    Ok((piece, next)) => Some((Ok(piece), next)),
                    Err(problem) => Some((Err(problem), None)),
                }
            }
        });
        limited(pieces.boxed(), left)
    }

    /// One piece for each of these networks.
    fn each<T, F>(
        &self,
        names: Vec<String>,
        next: impl Fn(Self, String) -> F + Send + Sync + 'static,
    ) -> Pieces<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Vec<T>, Problem>> + Send + 'static,
    {
        let (node, names) = (self.clone(), VecDeque::from(names));
        let next = Arc::new(next);
        stream::unfold(names, move |mut names| {
            let (node, next) = (node.clone(), Arc::clone(&next));
            async move {
                let name = names.pop_front()?;
                let piece = next(node, name).await;
                if piece.is_err() {
                    names.clear();
                }
                Some((piece, names))
            }
        })
        .boxed()
    }

    /// Makes a change, or only reports it (this needs no turn).
    pub(super) async fn change(
        &self,
        step: Option<Step>,
        prepare: impl FnOnce(&Self, &Desired) -> Result<Prepared, Problem> + Send + 'static,
    ) -> Result<ApplyResult, Problem> {
        let turn = match step {
            Some(Step { query, what, origin, within }) => {
                Some((self.shared.queue.turn(query, what).await?, origin, within))
            }
            None => None,
        };
        let node = self.clone();
        // In a separate task: the caller may disconnect, but a change that has begun is completed.
        let change = tokio::spawn(async move { node.change_now(turn, prepare).await });
        change.await.map_err(Problem::internal)?
    }

    async fn change_now(
        &self,
        turn: Option<(InTurn, Origin, Option<Duration>)>,
        prepare: impl FnOnce(&Self, &Desired) -> Result<Prepared, Problem> + Send + 'static,
    ) -> Result<ApplyResult, Problem> {
        let dry_run = turn.is_none();
        let now = self.shared.desired();
        let generation = now.generation;
        let node = self.clone();
        let was_drained = change::is_drained(&now.intent);
        let waits = turn.as_ref().and_then(|(_, origin, within)| Some((origin.by.clone(), (*within)?)));
        // What undoes a change that waits may be made; else one change could hide another.
        let settles = now.pending.as_ref().is_none_or(|pending| {
            turn.as_ref().is_some_and(|(_, origin, _)| origin.restored == Some(pending.restores))
        });
        let prepared = aside(move || {
            let mut prepared = prepare(&node, &now)?;
            if prepared.desired.generation != now.generation {
                if !dry_run && !settles {
                    node.none_waits()?;
                }
                if let Some((by, within)) = waits {
                    let new = Arc::make_mut(&mut prepared.desired);
                    let node = new.intent.node.metadata.name.to_string();
                    let (old, documents) = ((now.generation, &now.documents()), new.documents());
                    let time = (new.applied.unwrap_or_default(), within);
                    let pending = Pending::new(old, (new.generation, &documents), &node, by, time);
                    new.pending = Some(Arc::new(pending));
                }
            }
            let files_max = hue_host::service::open_files_max().unwrap_or(u64::MAX);
            files::check(&now.intent, &prepared.desired.intent, files_max).map(|()| prepared)
        })
        .await?;
        let prepared = prepared.inspect_err(|problem| {
            if !dry_run {
                self.shared.events.add(EventKind::Refused, About::Node, problem.to_string());
            }
        })?;
        let actions = change::actions(&prepared.plan);
        let Some((turn, origin, _)) = turn else {
            return Ok(ApplyResult { generation, dry_run, actions, networks: Vec::new(), pending: None });
        };
        let desired = Arc::clone(&prepared.desired);
        if desired.generation != generation {
            if !was_drained && origin.kind == RevisionKind::Apply && change::is_drained(&desired.intent) {
                // What undoes a change is never refused.
                self.ask(|reply| Query::CanDrain { reply }).await??;
            }
            let (generation, restored, auto) =
                (desired.generation, origin.restored, origin.kind == RevisionKind::AutoRollback);
            self.store(Arc::clone(&desired), origin).await?;
            self.shared.set_desired(Arc::clone(&desired));
            let text = format!("desired state {generation} is now in force: {} changes", actions.len());
            let (kind, text) = match restored {
                Some(revision) if auto => (
                    EventKind::AutoRolledBack,
                    format!("not confirmed in time, so back to revision {revision}: {text}"),
                ),
                Some(revision) => (EventKind::RolledBack, format!("back to revision {revision}: {text}")),
                None if desired.pending.is_some() => {
                    (EventKind::Applied, text + ", until it is confirmed or undone")
                }
                None => (EventKind::Applied, text),
            };
            self.shared.events.add(kind, About::Node, text);
        }
        self.look_now(prepared.named.clone()).await?;
        let prepared = Box::new(prepared);
        let settled = self.ask(|reply| Command::Reconcile { prepared, reply }).await?;
        // The next change may begin while the networks of this one are set up.
        drop(turn);
        let networks = settled.await.map_err(|_| Problem::unavailable("the daemon is stopping"))?;
        let pending = self.pending().filter(|pending| pending.revision == desired.generation);
        Ok(ApplyResult { generation: desired.generation, dry_run, actions, networks, pending })
    }

    /// Makes a change in its turn. If the caller disconnects, a change that has not begun is dropped, and one that has begun is
    /// completed.
    pub(super) async fn in_turn<T, F>(
        &self,
        Turn { query, by }: Turn,
        what: String,
        work: impl FnOnce(Self, Asking) -> F,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let turn = self.shared.queue.turn(query, what).await?;
        let caller = Caller::default();
        let _guard = caller.guard();
        let work = work(self.clone(), Asking { query, by, caller });
        let task = tokio::spawn(async move {
            let _turn = turn;
            work.await
        });
        task.await.map_err(Problem::internal)?
    }

    /// Passes a request to the node's thread, which does it once no network is moving and network `name`, if given, is
    /// set up.
    pub(super) async fn ask_when_idle<T, R: Into<Request>>(
        &self,
        asked: &Asking,
        name: Option<String>,
        request: impl FnOnce(Reply<Result<T, Problem>>) -> R,
    ) -> Result<T, Problem> {
        let (query, caller) = (asked.query, asked.caller.clone());
        let deferred = |reply| Deferred::new(query, name, caller, request(reply).into());
        self.ask(|reply| Request::WhenIdle(Box::new(deferred(reply)))).await?
    }

    async fn migrate_now(
        &self,
        name: &str,
        request: &MigrateRequest,
        asked: &Asking,
    ) -> Result<Migration, Problem> {
        self.none_waits()?;
        let migrate = |reply| Command::Migrate { name: name.to_owned(), request: request.clone(), reply };
        let answer = self.ask_when_idle(asked, Some(name.to_owned()), migrate).await?;
        let mut moved = answer.await.map_err(|_| lost_card())?;
        if let Err(problem) = &mut moved
            && problem.kind == ProblemKind::Full
        {
            // Check whether the network would fit another image.
            let trial = self.ask(|reply| Query::Trial { name: name.to_owned(), reply }).await?;
            let other = match trial {
                Some(trial) => aside(move || trial.find()).await?,
                None => None,
            };
            match other {
                Some(image) if request.load_image => {
                    self.load_image_now(&image, Duration::ZERO, asked).await?;
                    let answer = self.ask(migrate).await??;
                    moved = answer.await.map_err(|_| lost_card())?;
                    if let Ok(migration) = &mut moved {
                        migration.image = Some(image);
                    }
                }
                Some(image) => {
                    let hint = format!("; it would fit image '{image}': --load-image loads that image");
                    problem.detail.push_str(&hint);
                }
                None => {}
            }
        }
        let migration = moved?;
        // The documents name the new place, so that the network also runs there after a restart of the daemon.
        let desired = change::placed(&self.shared.desired(), name, moves::placement(request.to));
        self.keep(desired, asked.origin(RevisionKind::Migrate)).await?;
        Ok(migration)
    }

    /// Ends the reservation of the card after the move or its failure, and waits until other networks have moved.
    async fn end_reservation(&self) -> Result<(), Problem> {
        self.ask(|reply| Command::EndReservation { reply }).await?;
        // If another network takes too long, the requested move is still a success.
        let _ = self.ask_when_idle(&Asking::default(), None, |reply| Query::Nothing { reply }).await;
        Ok(())
    }

    async fn load_image_now(
        &self,
        name: &str,
        away: Duration,
        asked: &Asking,
    ) -> Result<ImageLoaded, Problem> {
        self.none_waits()?;
        let load = |reply| Command::LoadImage { name: name.to_owned(), away, reply };
        let answer = self.ask_when_idle(asked, None, load).await?;
        let loaded = answer.await.map_err(|_| Problem::unavailable("the daemon is stopping"))??;
        let desired = change::with_image(&self.shared.desired(), name);
        self.keep(desired, asked.origin(RevisionKind::Image)).await?;
        Ok(loaded)
    }

    /// Stores new desired state.
    pub(super) async fn keep(&self, desired: Option<Desired>, origin: Origin) -> Result<(), Problem> {
        let Some(desired) = desired.map(Arc::new) else { return Ok(()) };
        self.store(Arc::clone(&desired), origin).await?;
        self.shared.set_desired(Arc::clone(&desired));
        self.ask(|reply| Command::Keep { desired: Target(desired), reply }).await
    }

    /// Checks every few seconds whether a full disk has room again, for as long as the daemon runs.
    pub async fn tend_store(&self) {
        loop {
            tokio::time::sleep(TEND_STORE).await;
            let troubled = self.with_store(|store| store.problem().is_some()).await;
            if matches!(troubled, Ok(true)) {
                let _ = self.with_store(Store::mend).await;
            }
        }
    }

    /// Uses the store on a thread that may wait for the disk, and reports the store's state to the node.
    pub(super) async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let shared = Arc::clone(&self.shared);
        let (result, problem) = aside(move || {
            let mut store = shared.store.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work(&mut store);
            (result, store.problem())
        })
        .await?;
        // A node that is stopping does not need this.
        let _ = self.shared.sender.send(Message::Ask(Command::StoreProblem { problem }.into()));
        Ok(result)
    }

    /// Writes desired state to the disk.
    pub(super) async fn store(&self, desired: Arc<Desired>, origin: Origin) -> Result<(), Problem> {
        match self.with_store(move |store| store.save(&desired, &origin)).await? {
            // A failure of the copy counts as a problem of the store, and `with_store` has reported it.
            Ok(_) => Ok(()),
            Err(error) => {
                self.shared.events.add(EventKind::Refused, About::Node, error.to_string());
                let kind = match &error {
                    StoreError::Write { full: true, .. } => ProblemKind::Full,
                    _ => ProblemKind::Internal,
                };
                Err(Problem::new(kind, error.to_string()))
            }
        }
    }
}

/// How a change was requested, and whether its caller is still connected.
#[derive(Default)]
pub(super) struct Asking {
    query: TurnQuery,
    by: api::Author,
    caller: Caller,
}

impl Asking {
    /// Its origin, for the history.
    pub(super) fn origin(&self, kind: RevisionKind) -> Origin {
        Origin { by: self.by.clone(), kind, restored: None }
    }
}

/// A change that takes its turn.
pub(super) struct Step {
    query: TurnQuery,
    /// Description of the change.
    what: String,
    origin: Origin,
    /// Time in which it must be confirmed.
    within: Option<Duration>,
}

impl Step {
    fn new(Turn { query, by }: Turn, kind: RevisionKind, what: String) -> Self {
        Self { query, what, origin: Origin { by, kind, restored: None }, within: None }
    }

    /// A change that restores the documents of a revision.
    pub(super) fn restore(turn: Turn, kind: RevisionKind, what: String, revision: u64) -> Self {
        let mut step = Self::new(turn, kind, what);
        step.origin.restored = Some(revision);
        step
    }
}

fn lost_card() -> Problem {
    Problem::new(ProblemKind::Internal, "the card failed while the network moved")
}

/// Does work that waits for files on a thread that may block.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
}

/// At most this many elements of a list.
fn limited<T: Send + 'static>(pieces: Pieces<T>, left: u64) -> Pieces<T> {
    if left == u64::MAX {
        return pieces;
    }
    let cut = pieces.scan(left, |left, piece| {
        let piece = (*left > 0).then(|| {
            piece.map(|mut list| {
                list.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= list.len() as u64;
                list
            })
        });
        std::future::ready(piece)
    });
    cut.boxed()
}

fn networks(view: &View) -> Vec<Network> {
    view.networks.iter().map(|one| network(view, one)).collect()
}

/// A network with the numbers that change continually.
fn network(view: &View, one: &NetworkView) -> Network {
    let mut network = one.api.clone();
    network.routes = one.counts.routes.load(Ordering::Relaxed);
    network.routes_refused = one.counts.refused.load(Ordering::Relaxed);
    network.neighbours = one.counts.neighbours.load(Ordering::Relaxed);
    // Of a tunnel, the node knows.
    for port in network.ports.iter_mut().filter(|port| port.tunnel.is_none()) {
        let on = view.ports.iter().find(|physical| physical.api.name == port.port);
        port.up = on.is_some_and(|physical| physical.api.state == PortState::Up);
    }
    network.usage = one.cgroup.as_ref().map(|cgroup| {
        let usage = cgroup.usage();
        Usage {
            cpu_seconds: usage.cpu_ns as f64 / 1e9,
            memory_bytes: usage.memory_bytes,
            processes: usage.processes,
        }
    });
    network
}
