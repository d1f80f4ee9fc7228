//! Queries: what exists, its state, its counters.
#![allow(unused_qualifications)] // written by the macros of utoipa

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::access::Caller;
use super::input::{Ask, Named, answer};
use super::{App, scope};
use crate::api::{
    Config, ExecInfo, Health, ImageInfo, MacAddress, Neighbour, Network, NetworkFilter, Node, Placement,
    Plan, PlanQuery, Port, Problem, Route, RouteFilter, Stats, Status, TableEntry, Tables,
};
use crate::backend::Pieces;
use crate::metrics;

/// Whether the daemon answers and networks run.
#[utoipa::path(get, path = "/healthz", tag = "daemon", responses(
    (status = 200, description = "The daemon answers and networks run.", body = String, content_type = "text/plain"),
    (status = 503, description = "The daemon is starting or stopping.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn healthz(State(app): State<App>) -> Response {
    match app.backend.status().await {
        Ok(status) if matches!(status.health, Health::Running | Health::Degraded) => {
            (StatusCode::OK, "ok\n").into_response()
        }
        Ok(status) => Problem::unavailable(format!("the daemon is {}", status.health.name())).into_response(),
        Err(problem) => Problem::unavailable(problem.detail).into_response(),
    }
}

/// Metrics in Prometheus text format; for a tenant, those of its network.
#[utoipa::path(get, path = "/metrics", tag = "daemon", responses(
    (status = 200, description = "Metrics.", body = String, content_type = "text/plain; version=0.0.4"),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn metrics(State(app): State<App>, caller: Caller) -> Response {
    match app.backend.metrics().await {
        Ok(snapshot) => {
            let text = metrics::text(&scope::metrics(&caller, snapshot));
            ([(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE))], text).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// State of the daemon.
#[utoipa::path(get, path = "/v1/status", tag = "node", responses(
    (status = 200, description = "The status.", body = Status),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn status(State(app): State<App>, caller: Caller) -> Response {
    let find = async || {
        let status = app.backend.status().await?;
        Ok(scope::status(&caller, status, all_for_tenant(&app, &caller).await?))
    };
    answer(find().await)
}

/// All networks, if needed to decide what a tenant may see.
async fn all_for_tenant(app: &App, caller: &Caller) -> Result<Vec<Network>, Problem> {
    if caller.only().is_some() { app.backend.networks().await } else { Ok(Vec::new()) }
}

/// The node.
#[utoipa::path(get, path = "/v1/node", tag = "node", responses(
    (status = 200, description = "The node.", body = Node),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn node(State(app): State<App>, caller: Caller) -> Response {
    let find = async || {
        let node = app.backend.node().await?;
        Ok(scope::node(&caller, node, all_for_tenant(&app, &caller).await?))
    };
    answer(find().await)
}

/// The desired state, as documents.
#[utoipa::path(get, path = "/v1/config", tag = "node", responses(
    (status = 200, description = "Documents.", body = Config),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn config(State(app): State<App>, caller: Caller) -> Response {
    answer(app.backend.config().await.map(|config| scope::config(&caller, config)))
}

/// Physical ports.
#[utoipa::path(get, path = "/v1/ports", tag = "node", responses(
    (status = 200, description = "Ports, in the order of names.", body = Vec<Port>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn ports(State(app): State<App>, caller: Caller) -> Response {
    let find = async || {
        let ports = app.backend.ports().await?;
        Ok(scope::ports(&caller, ports, &all_for_tenant(&app, &caller).await?))
    };
    answer(find().await)
}

/// Networks.
#[utoipa::path(get, path = "/v1/networks", tag = "networks", responses(
    (status = 200, description = "Networks, in the order of names.", body = Vec<Network>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn networks(State(app): State<App>, caller: Caller) -> Response {
    answer(app.backend.networks().await.map(|networks| scope::networks(&caller, networks)))
}

/// One network.
#[utoipa::path(get, path = "/v1/networks/{name}", tag = "networks",
    params(("name" = String, Path, description = "Name of the network.")),
    responses(
        (status = 200, description = "The network.", body = Network),
        (status = 404, description = "There is no such network.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn network(State(app): State<App>, caller: Caller, Named(name): Named) -> Response {
    let find = async || {
        scope::named(&caller, &name)?;
        app.backend.network(&name).await
    };
    answer(find().await)
}

/// Namespace and control groups that a command must enter to run inside a network.
#[utoipa::path(get, path = "/v1/networks/{name}/exec", tag = "networks",
    params(("name" = String, Path, description = "Name of the network.")),
    responses(
        (status = 200, description = "Namespace and control groups.", body = ExecInfo),
        (status = 404, description = "There is no such network.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn exec_info(State(app): State<App>, caller: Caller, Named(name): Named) -> Response {
    let find = async || {
        scope::named(&caller, &name)?;
        app.backend.exec_info(&name).await
    };
    answer(find().await)
}

/// Answers with a list, of the network that a caller asked for and may see.
async fn listed<T, F>(
    caller: &Caller,
    asked: Option<String>,
    limit: Option<u64>,
    find: impl FnOnce(Option<String>) -> F,
) -> Response
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<Pieces<T>, Problem>>,
{
    let found = match scope::network(caller, asked) {
        Ok(network) => find(network).await,
        Err(problem) => Err(problem),
    };
    match found {
        Ok(pieces) => list(pieces, limit),
        Err(problem) => problem.into_response(),
    }
}

/// Routes of the data plane. There may be hundreds of thousands, so the list is streamed.
#[utoipa::path(get, path = "/v1/routes", tag = "routes", params(RouteFilter), responses(
    (status = 200, description = "Routes, by network, then prefix.", body = Vec<Route>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn routes(
    State(app): State<App>,
    caller: Caller,
    Ask(mut filter): Ask<RouteFilter>,
) -> Response {
    let (asked, limit) = (filter.network.take(), filter.limit);
    listed(&caller, asked, limit, |network| app.backend.routes(RouteFilter { network, ..filter })).await
}

/// Neighbours of networks.
#[utoipa::path(get, path = "/v1/neighbours", tag = "routes", params(NetworkFilter), responses(
    (status = 200, description = "Neighbours, by network, then port and address.", body = Vec<Neighbour>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn neighbours(
    State(app): State<App>,
    caller: Caller,
    Ask(mut filter): Ask<NetworkFilter>,
) -> Response {
    let (asked, limit) = (filter.network.take(), filter.limit);
    listed(&caller, asked, limit, |network| app.backend.neighbours(NetworkFilter { network, ..filter })).await
}

/// MAC addresses of networks whose kind learns them.
#[utoipa::path(get, path = "/v1/macs", tag = "routes", params(NetworkFilter), responses(
    (status = 200, description = "MAC addresses, by network, then address.", body = Vec<MacAddress>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn macs(
    State(app): State<App>,
    caller: Caller,
    Ask(mut filter): Ask<NetworkFilter>,
) -> Response {
    let (asked, limit) = (filter.network.take(), filter.limit);
    listed(&caller, asked, limit, |network| app.backend.macs(NetworkFilter { network, ..filter })).await
}

/// Entries of networks whose kind compares bits of frames or flat labels.
#[utoipa::path(get, path = "/v1/entries", tag = "routes", params(NetworkFilter), responses(
    (status = 200, description = "Entries, by network, then in the order in which they are compared, or of their labels; cached pointers follow.", body = Vec<TableEntry>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn entries(
    State(app): State<App>,
    caller: Caller,
    Ask(mut filter): Ask<NetworkFilter>,
) -> Response {
    let (asked, limit) = (filter.network.take(), filter.limit);
    listed(&caller, asked, limit, |network| app.backend.entries(NetworkFilter { network, ..filter })).await
}

/// Route tables of the data plane.
#[utoipa::path(get, path = "/v1/tables", tag = "routes", responses(
    (status = 200, description = "Tables, and the share of each network.", body = Tables),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn tables(State(app): State<App>, caller: Caller) -> Response {
    answer(app.backend.tables().await.map(|tables| scope::tables(&caller, tables)))
}

/// Images that the card can run.
#[utoipa::path(get, path = "/v1/images", tag = "daemon", responses(
    (status = 200, description = "All images, including those that cannot be loaded.", body = [ImageInfo]),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn images(State(app): State<App>) -> Response {
    answer(app.backend.images().await)
}

/// Which counters to return.
#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OfNetwork {
    /// Only counters of this network.
    network: Option<String>,
}

/// Counters.
#[utoipa::path(get, path = "/v1/stats", tag = "networks", params(OfNetwork), responses(
    (status = 200, description = "Counters, all read at one moment.", body = Stats),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn stats(State(app): State<App>, caller: Caller, Ask(asked): Ask<OfNetwork>) -> Response {
    let find = async || {
        let network = scope::network(&caller, asked.network)?;
        let stats = app.backend.stats(network.as_deref()).await?;
        Ok(scope::stats(&caller, stats))
    };
    answer(find().await)
}

/// Where networks run, since when, and why not elsewhere. A tenant gets no reasons, because they concern other
/// networks too.
#[utoipa::path(get, path = "/v1/placements", tag = "networks", responses(
    (status = 200, description = "Placements, in the order of networks' names.", body = Vec<Placement>),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn placements(State(app): State<App>, caller: Caller) -> Response {
    answer(app.backend.placements().await.map(|placements| scope::placements(&caller, placements)))
}

/// Where a scheduler would place networks, which would move, and why. Nothing is moved.
#[utoipa::path(get, path = "/v1/plan", tag = "networks", params(PlanQuery), responses(
    (status = 200, description = "The plan.", body = Plan),
    (status = "default", description = "The error.", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn plan(State(app): State<App>, Ask(query): Ask<PlanQuery>) -> Response {
    answer(app.backend.plan(query).await)
}

/// A list as a JSON array, sent as its pieces arrive, with at most `limit` elements. If a piece fails, the connection
/// is aborted, so that a partial list is not mistaken for the whole.
fn list<T: Serialize + Send + 'static>(pieces: Pieces<T>, limit: Option<u64>) -> Response {
    struct State<T> {
        pieces: Pieces<T>,
        /// Elements that may still be sent.
        left: u64,
        is_first: bool,
        is_over: bool,
    }
    let state = State { pieces, left: limit.unwrap_or(u64::MAX), is_first: true, is_over: false };
    let body = stream::unfold(state, |mut state| async move {
        if state.is_over {
            return None;
        }
        let piece = if state.left > 0 { state.pieces.next().await } else { None };
        let text = match piece {
            None => {
                state.is_over = true;
                Ok(Bytes::from_static(if state.is_first { b"[]\n" } else { b"]\n" }))
            }
            Some(Ok(items)) => {
                let mut text = Vec::new();
                let sent = usize::try_from(state.left).unwrap_or(usize::MAX).min(items.len());
                let written = items[..sent].iter().try_for_each(|item| {
                    text.push(if std::mem::take(&mut state.is_first) { b'[' } else { b',' });
                    serde_json::to_writer(&mut text, item)
                });
                state.left -= sent as u64;
                state.is_over = written.is_err();
                written.map(|()| Bytes::from(text)).map_err(Problem::internal)
            }
            Some(Err(problem)) => {
                state.is_over = true;
                Err(problem)
            }
        };
        Some((text, state))
    });
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], Body::from_stream(body)).into_response()
}
