//! Changes: apply, diff, delete, down; and trace, which also has a body.
//!
//! An admin may change everything. An operator may change networks, but not the node or its ports. A tenant may
//! change the routes, neighbours, static MAC addresses, entries, labels and colour of its network; all other fields are limits or
//! affect others. The check of a request is based on one generation of desired state, and the change is bound to that generation, so that it
//! cannot undo the changes that others make meanwhile. The backend makes changes one at a time. The documents of a
//! waiting change take a place, so that a tenant cannot fill the memory or the queue.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use hue_intent::{Intent, Network, Source};
use serde_json::Value;

use super::access::{Caller, Right, Role};
use super::history::none_waits;
use super::input::{Ask, Named, answer, bad, json};
use super::{App, BODY_BYTES_MAX, DOCUMENTS_BYTES_MAX, TENANT_DOCUMENTS_BYTES_MAX, scope};
use crate::api::{
    Action, ApplyRequest, ApplyResult, CONFIRM_SECONDS_MAX, DiffRequest, DiffResult, DownOptions, DownResult,
    DrainRequest, DrainResult, GateRequest, ImageLoaded, LoadImageRequest, MigrateRequest, Migration,
    ObjectKind, Problem, ProblemKind, SourceText, Trace, TraceRequest, TurnQuery,
};
use crate::backend::Turn;

/// Number of times that a change is checked again because desired state has changed meanwhile.
const TRIES_MAX: usize = 4;
/// Longest frame to trace, in bytes: longer than any that a port accepts, so that `too_long` can be explained.
const FRAME_BYTES_MAX: usize = 16_384;
/// Largest observation time before and after a move, and largest time limit of a move, in milliseconds.
const MIGRATE_MS_MAX: u32 = 10_000;
/// Longest time that a card may be unavailable, in milliseconds.
const RECONFIGURE_MS_MAX: u32 = 600_000;
/// Parts of a network's `spec` that its tenant may change.
pub(super) const TENANTS_OWN: [&str; 7] =
    ["routes", "neighbours", "static_macs", "entries", "flat_labels", "labels", "colour"];

/// Applies documents. Objects that are already in the desired state are not touched; a network that fails does not
/// affect others. An operator may not change the node; a tenant may change routes, neighbours, static MAC
/// addresses, entries, labels and colour of its network.
#[utoipa::path(post, path = "/v1/apply", tag = "desired state", request_body = ApplyRequest, params(TurnQuery), responses(
    (status = 200, description = "Changes that were made.", body = ApplyResult),
    (status = 409, description = "Desired state has another generation; with `no_wait`: another change is under way.", body = Problem,
        content_type = "application/problem+json"),
    (status = 422, description = "Documents have errors; `findings` lists them.", body = Problem,
        content_type = "application/problem+json"),
    (status = 507, description = "A limit is reached.", body = Problem, content_type = "application/problem+json"),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn apply(
    State(app): State<App>,
    caller: Caller,
    Ask(turn): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        let _place = app.places.change(&caller, turn).await?;
        let request: ApplyRequest = json(&app, &headers, body, documents_max(&caller)).await?;
        let mut result = applied(&app, &caller, request, self::turn(&caller, turn).await?).await?;
        result.actions.retain(|action| action.object != ObjectKind::Network || caller.sees(&action.name));
        result.networks.retain(|network| caller.sees(&network.name));
        Ok(result)
    };
    answer::<ApplyResult>(work().await)
}

/// The changes that an apply of these documents would make.
#[utoipa::path(post, path = "/v1/diff", tag = "desired state", request_body = DiffRequest, responses(
    (status = 200, description = "Changes that would be made.", body = DiffResult),
    (status = 422, description = "Documents have errors; `findings` lists them.", body = Problem,
        content_type = "application/problem+json"),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn diff(State(app): State<App>, caller: Caller, headers: HeaderMap, body: Body) -> Response {
    let work = async || {
        let _place = app.places.change(&caller, TurnQuery::default()).await?;
        let request: DiffRequest = json(&app, &headers, body, documents_max(&caller)).await?;
        let request = ApplyRequest::from(request);
        if let Some(only) = caller.only() {
            tenant_may(&app, &caller, only, &request).await?;
        }
        let mut result = app.backend.diff(request).await?;
        if caller.only().is_some() {
            result.actions.retain(|action| action.object == ObjectKind::Network && caller.sees(&action.name));
        }
        Ok(result)
    };
    answer::<DiffResult>(work().await)
}

/// Deletes a network.
#[utoipa::path(delete, path = "/v1/networks/{name}", tag = "desired state",
    params(("name" = String, Path, description = "Name of the network."), TurnQuery),
    responses(
        (status = 200, description = "Changes that were made.", body = ApplyResult),
        (status = 404, description = "There is no such network.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "With `no_wait`: another change is under way.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn delete_network(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    Ask(turn): Ask<TurnQuery>,
) -> Response {
    let work = async || {
        scope::named(&caller, &name)?;
        app.backend.delete_network(&name, self::turn(&caller, turn).await?).await
    };
    answer::<ApplyResult>(work().await)
}

/// Closes or opens a network's clock gate, and records it in the network's document. While the gate is closed, the
/// network's plane stops, on the card and in software, and its packets are dropped (`gated`). Routes, neighbours and
/// processes stay.
#[utoipa::path(post, path = "/v1/networks/{name}/gate", tag = "desired state", request_body = GateRequest,
    params(("name" = String, Path, description = "Name of the network."), TurnQuery),
    responses(
        (status = 200, description = "Changes that were made.", body = ApplyResult),
        (status = 404, description = "There is no such network.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "With `no_wait`: another change is under way.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn gate_network(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    Ask(turn): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        scope::named(&caller, &name)?;
        let request: GateRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        app.backend.gate_network(&name, request, self::turn(&caller, turn).await?).await
    };
    answer::<ApplyResult>(work().await)
}

/// Moves a network between card and software while its packets flow, and reports what happened to them. The network's
/// document then names its new place, so the network stays there. The call waits for earlier changes, and until no
/// other network is moving.
#[utoipa::path(post, path = "/v1/networks/{name}/migrate", tag = "desired state", request_body = MigrateRequest,
    params(("name" = String, Path, description = "Name of the network."), TurnQuery),
    responses(
        (status = 200, description = "The network has moved.", body = Migration),
        (status = 404, description = "There is no such network.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Impossible now: the network is there already, or there is no card; with `no_wait`: it would have to wait.",
            body = Problem,
            content_type = "application/problem+json"),
        (status = 507, description = "The destination has no room for it.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "The error; the network has not moved.", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn migrate(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    Ask(turn): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        scope::named(&caller, &name)?;
        let request: MigrateRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        let MigrateRequest { watch_ms, limit_ms, drain_ms, .. } = request;
        if request.fail.is_some() || drain_ms > 0 {
            // They are for tests: a card that is made to fail takes all its networks to software.
            caller.may(Right::Rule).map_err(|_| caller.forbidden("a move with `fail` or `drain_ms`"))?;
        }
        for (field, found) in [("watch_ms", watch_ms), ("limit_ms", limit_ms), ("drain_ms", drain_ms)] {
            if found > MIGRATE_MS_MAX {
                return Err(bad(format!("{field}: found {found}, expected {MIGRATE_MS_MAX} at most")));
            }
        }
        app.backend.migrate(&name, request, self::turn(&caller, turn).await?).await
    };
    answer::<Migration>(work().await)
}

/// Loads an image into the card. The card's networks run in software meanwhile. If the image cannot hold all of them,
/// the scheduler selects the networks that return; networks whose documents say `card` come first. The node's
/// document then names the image. The call waits for earlier changes, and until no network is moving; none is moving
/// when it returns.
#[utoipa::path(post, path = "/v1/images/{name}/load", tag = "desired state", request_body = LoadImageRequest,
    params(("name" = String, Path, description = "Name of the image."), TurnQuery),
    responses(
        (status = 200, description = "The card runs the image.", body = ImageLoaded),
        (status = 404, description = "There is no such image.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "There is no card; with `no_wait`: it would have to wait.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "The error; the card continues with the previous image.", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn load_image(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    Ask(turn): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        let request: LoadImageRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        if request.reconfigure_ms > RECONFIGURE_MS_MAX {
            let found = request.reconfigure_ms;
            return Err(bad(format!("reconfigure_ms: found {found}, expected {RECONFIGURE_MS_MAX} at most")));
        }
        app.backend.load_image(&name, request, self::turn(&caller, turn).await?).await
    };
    answer::<ImageLoaded>(work().await)
}

/// Drains the card, or ends that, and records it in the node's document (`card.drained`). While the card is drained, no
/// network runs on it: its networks move to software while their packets flow, and the answer has the report of each
/// move. When that ends, networks move to where their documents or the scheduler place them. The call waits for earlier
/// changes, and until no network is moving; none is moving when it returns. To drain a drained card is no error: networks
/// that could not move before are moved again.
#[utoipa::path(post, path = "/v1/card/drain", tag = "desired state", request_body = DrainRequest, params(TurnQuery),
    responses(
        (status = 200, description = "The card is drained, or is no longer drained. `networks` says where networks run.",
            body = DrainResult),
        (status = 409, description = "There is no card; with `no_wait`: it would have to wait.", body = Problem,
            content_type = "application/problem+json"),
        (status = 507, description = "Software cannot forward the bandwidth that networks need; nothing has changed.",
            body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn drain(
    State(app): State<App>,
    caller: Caller,
    Ask(turn): Ask<TurnQuery>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        let request: DrainRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        app.backend.drain(request, self::turn(&caller, turn).await?).await
    };
    answer::<DrainResult>(work().await)
}

/// Stops the daemon.
#[utoipa::path(post, path = "/v1/down", tag = "daemon", request_body = DownOptions, responses(
    (status = 200, description = "The daemon is stopping.", body = DownResult),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn down(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let work = async || {
        let options: DownOptions = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        app.backend.down(options).await
    };
    answer::<DownResult>(work().await)
}

/// Explains what would happen to a frame now, stage by stage. Nothing is sent or counted.
#[utoipa::path(post, path = "/v1/trace", tag = "packets", request_body = TraceRequest, responses(
    (status = 200, description = "The frame, explained.", body = Trace),
    (status = 404, description = "There is no such port.", body = Problem, content_type = "application/problem+json"),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn trace(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let work = async || {
        let request: TraceRequest = json(&app, &headers, body, BODY_BYTES_MAX).await?;
        let frame = request.bytes().map_err(|fault| bad(format!("frame: {fault}")))?;
        if frame.len() > FRAME_BYTES_MAX {
            let found = frame.len();
            return Err(bad(format!("frame: found {found} bytes, expected {FRAME_BYTES_MAX} at most")));
        }
        if caller.only().is_some() {
            let networks = scope::networks(&caller, app.backend.networks().await?);
            if !scope::uses(&networks, &request.port) {
                return Err(Problem::no_port(&request.port));
            }
        }
        Ok(scope::trace(&caller, app.backend.trace(&request.port, frame).await?))
    };
    answer::<Trace>(work().await)
}

/// The turn of a caller's change. Its name is looked up on a thread that may wait.
pub(super) async fn turn(caller: &Caller, query: TurnQuery) -> Result<Turn, Problem> {
    let caller = caller.clone();
    let by = tokio::task::spawn_blocking(move || caller.author()).await.map_err(Problem::internal)?;
    Ok(Turn { query, by })
}

/// Applies a request if the caller may make all of its changes.
async fn applied(
    app: &App,
    caller: &Caller,
    request: ApplyRequest,
    turn: Turn,
) -> Result<ApplyResult, Problem> {
    if let Some(seconds) = request.confirm_within_s {
        if !(1..=CONFIRM_SECONDS_MAX).contains(&seconds) {
            return Err(bad(format!(
                "confirm_within_s: found {seconds}, expected 1 to {CONFIRM_SECONDS_MAX}"
            )));
        }
        if caller.only().is_some() {
            // Others could change nothing meanwhile.
            return Err(caller.forbidden("a change that waits for a confirmation"));
        }
    }
    if !request.dry_run {
        none_waits(app, caller).await?;
    }
    if caller.role == Role::Admin {
        return app.backend.apply(request, turn).await;
    }
    let (named, request) = (request.if_generation, &request);
    again(named, || {
        let turn = turn.clone();
        async move {
            let judged = match caller.only() {
                Some(only) => tenant_may(app, caller, only, request).await?,
                None => operator_may(app, caller, request).await?,
            };
            let bound = ApplyRequest { if_generation: named.or(Some(judged)), ..request.clone() };
            app.backend.apply(bound, turn).await
        }
    })
    .await
}

/// Judges and makes a change, and does both again if desired state has changed in between, unless the request names its
/// generation.
pub(super) async fn again<T, F: Future<Output = Result<T, Problem>>>(
    named: Option<u64>,
    attempt: impl Fn() -> F,
) -> Result<T, Problem> {
    let mut tries = 0;
    loop {
        tries += 1;
        match attempt().await {
            Err(problem) if problem.kind == ProblemKind::Conflict && named.is_none() && tries < TRIES_MAX => {
            }
            result => return result,
        }
    }
}

/// Checks that an operator may apply this. Returns the generation that was checked.
async fn operator_may(app: &App, caller: &Caller, request: &ApplyRequest) -> Result<u64, Problem> {
    let diff = app.backend.diff(ApplyRequest { dry_run: true, ..request.clone() }).await?;
    match diff.actions.iter().find_map(refused_to_operator) {
        Some(refused) => Err(caller.forbidden(&refused)),
        None => Ok(diff.generation),
    }
}

/// What of an action an operator may not do, if anything: it changes networks, but not the node.
pub(super) fn refused_to_operator(action: &Action) -> Option<String> {
    (action.object != ObjectKind::Network).then(|| this(action))
}

/// An action that is refused as a whole, for [`Caller::forbidden`].
pub(super) fn this(action: &Action) -> String {
    format!("this: {} {} {}", action.verb.name(), action.object.name(), action.name)
}

/// Maximum bytes of a caller's body with documents: a tenant has one network, and is trusted least.
fn documents_max(caller: &Caller) -> usize {
    if caller.only().is_some() { TENANT_DOCUMENTS_BYTES_MAX } else { DOCUMENTS_BYTES_MAX }
}

/// Checks that a tenant may apply this. Returns the generation that was checked.
async fn tenant_may(app: &App, caller: &Caller, only: &str, request: &ApplyRequest) -> Result<u64, Problem> {
    if request.prune {
        return Err(caller.forbidden("a prune of all networks"));
    }
    let (config, intent) = (app.backend.config().await?, parsed(&request.sources).await?);
    let [network] = intent.networks.as_slice() else {
        return Err(caller.forbidden("changes outside its own network"));
    };
    if intent.node_given || network.name() != only {
        return Err(caller.forbidden("changes outside its own network"));
    }
    let current = config.documents.iter().find(|document| scope::is_network(document, only));
    let current = current.ok_or_else(|| Problem::no_network(only))?;
    match other_difference(current, network)? {
        Some(field) => Err(caller.forbidden(&format!("a change of {field}"))),
        None => Ok(config.generation),
    }
}

/// The first field that differs and that a tenant may not change.
fn other_difference(current: &Value, desired: &Network) -> Result<Option<String>, Problem> {
    let mut desired = serde_json::to_value(desired).map_err(Problem::internal)?;
    let mut current = current.clone();
    for document in [&mut current, &mut desired] {
        let Some(spec) = document.get_mut("spec").and_then(Value::as_object_mut) else { continue };
        TENANTS_OWN.iter().for_each(|field| drop(spec.remove(*field)));
    }
    if current == desired {
        return Ok(None);
    }
    let (old, new) = (current["spec"].as_object(), desired["spec"].as_object());
    let mut fields = old.into_iter().chain(new).flat_map(serde_json::Map::keys);
    let differs = |field: &&String| old.map(|spec| spec.get(*field)) != new.map(|spec| spec.get(*field));
    Ok(Some(fields.find(differs).map_or_else(|| "the document".to_owned(), |field| format!("spec.{field}"))))
}

/// The documents, read and checked on a thread that may block.
async fn parsed(sources: &[SourceText]) -> Result<Intent, Problem> {
    let source =
        |source: &SourceText| Source { name: source.name.clone(), bytes: source.text.clone().into() };
    let sources = sources.iter().map(source).collect();
    let parse = move || hue_intent::parse_part(sources).map_err(|errors| Problem::from(&errors));
    tokio::task::spawn_blocking(parse).await.map_err(Problem::internal)?
}
