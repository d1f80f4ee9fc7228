//! The daemon's API: HTTP/1.1 and JSON over a Unix socket, and over TCP with mutual TLS.
//!
//! Flow: socket → [`serve`] (authenticates the [`Caller`]) → [`router`] (checks its rights: `access`) → handler (limits
//! the answer to what it may see: `scope`) → [`Backend`]. The API reaches the node only through the backend, and never
//! blocks it: readers pull long lists and streams at their own pace, and a reader that is too slow loses events without
//! delaying others.
//! Invariants: a path that is not in `access::OPERATIONS` is refused to every caller; every error is a [`Problem`];
//! whatever bytes arrive, the daemon answers the next caller. The limits are the constants of this file; a test covers
//! each.

mod access;
mod change;
mod door;
mod events;
mod history;
mod input;
mod openapi;
mod pcapng;
mod places;
mod plain;
mod read;
mod refusal;
mod scope;
mod serve;
mod stream;
mod timed_stream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use tokio::sync::watch;

use crate::api::{Problem, ProblemKind};
use crate::backend::Backend;

use places::Places;

pub use access::{Called, Caller, OPERATIONS, Operation, Right, Role, RoleError};
pub use openapi::{openapi, openapi_text};
pub use places::PLACE_SECONDS_MAX;
pub use serve::{Listeners, TlsListener, serve};

/// Maximum bytes of a request head; slightly more may be taken if it arrives at once.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum header fields of a request.
pub const HEADERS_MAX: usize = 64;
/// Maximum bytes of a body with documents.
pub const DOCUMENTS_BYTES_MAX: usize = 32 << 20;
/// Maximum bytes of a tenant's body with documents. Documents take many times their bytes in memory while they are checked.
pub const TENANT_DOCUMENTS_BYTES_MAX: usize = 2 << 20;
/// Maximum bytes of any other body.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Concurrent event and capture streams; all tenants together have as many again.
pub const STREAMS_MAX: usize = 64;
/// Concurrent event and capture streams of one tenant.
pub const TENANT_STREAMS_MAX: usize = 8;
/// Concurrent bodies with documents, without those of tenants. Others wait.
pub const CHANGES_MAX: usize = 4;
/// Concurrent bodies with documents of all tenants together. Others wait.
pub const TENANT_CHANGES_MAX: usize = 2;

/// Limits on connections and on time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServeLimits {
    /// Concurrent connections over the Unix socket, and the same number of authenticated callers over TCP. Of these,
    /// the last eighth is reserved for administrators, and tenants cannot use the eighth before it either.
    pub connections: usize,
    /// Concurrent connections of one tenant.
    pub tenant_connections: usize,
    /// Connections whose peer is not authenticated yet; if there are more, silent ones are disconnected.
    pub handshakes: usize,
    /// Time for a TLS handshake.
    pub handshake: Duration,
    /// Time for the head of a request, after connecting or after the previous answer.
    pub head: Duration,
    /// Time for the body of a request.
    pub body: Duration,
    /// Time until the answer to a query begins.
    pub answer: Duration,
    /// Time until a change is answered.
    pub change: Duration,
    /// Time a peer may take without accepting any data.
    pub write: Duration,
    /// Time between keep-alives on a stream.
    pub alive: Duration,
    /// Time for answers that have begun when the daemon stops.
    pub last: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            tenant_connections: 32,
            handshakes: 64,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            change: Duration::from_secs(600),
            write: Duration::from_secs(60),
            alive: Duration::from_secs(15),
            last: Duration::from_secs(5),
        }
    }
}

/// State shared by handlers.
#[derive(Clone)]
struct App {
    backend: Arc<dyn Backend>,
    places: Arc<Places>,
    limits: ServeLimits,
    /// True when the daemon stops and streams end.
    closing: watch::Receiver<bool>,
}

/// The API over a backend. Requests need a [`Caller`] extension; others are unauthenticated.
pub fn router(backend: Arc<dyn Backend>, limits: ServeLimits, closing: watch::Receiver<bool>) -> Router {
    let app = App { backend, places: Arc::default(), limits, closing };
    Router::new()
        .route("/healthz", get(read::healthz))
        .route("/openapi.json", get(openapi::get))
        .route("/metrics", get(read::metrics))
        .route("/v1/status", get(read::status))
        .route("/v1/node", get(read::node))
        .route("/v1/config", get(read::config))
        .route("/v1/history", get(history::history))
        .route("/v1/networks", get(read::networks))
        .route("/v1/networks/{name}", get(read::network))
        .route("/v1/networks/{name}", delete(change::delete_network))
        .route("/v1/networks/{name}/exec", get(read::exec_info))
        .route("/v1/networks/{name}/migrate", post(change::migrate))
        .route("/v1/networks/{name}/gate", post(change::gate_network))
        .route("/v1/images", get(read::images))
        .route("/v1/images/{name}/load", post(change::load_image))
        .route("/v1/card/drain", post(change::drain))
        .route("/v1/ports", get(read::ports))
        .route("/v1/routes", get(read::routes))
        .route("/v1/neighbours", get(read::neighbours))
        .route("/v1/macs", get(read::macs))
        .route("/v1/entries", get(read::entries))
        .route("/v1/tables", get(read::tables))
        .route("/v1/stats", get(read::stats))
        .route("/v1/placements", get(read::placements))
        .route("/v1/plan", get(read::plan))
        .route("/v1/events", get(events::events))
        .route("/v1/capture", get(stream::capture))
        .route("/v1/apply", post(change::apply))
        .route("/v1/diff", post(change::diff))
        .route("/v1/rollback", post(history::rollback))
        .route("/v1/confirm", post(history::confirm))
        .route("/v1/trace", post(change::trace))
        .route("/v1/down", post(change::down))
        .layer(from_fn_with_state(app.clone(), guard))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .with_state(app)
}

/// Passes a request to its handler if the caller may do that, and limits its time.
async fn guard(
    State(app): State<App>,
    caller: Caller,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let Some(operation) = OPERATIONS.iter().find(|one| one.path == path.as_str() && one.method == method)
    else {
        return not_so().await;
    };
    if let Err(problem) = caller.may(operation.right) {
        return problem.into_response();
    }
    if operation.needs_networks() && !app.backend.is_ready() {
        return Problem::unavailable("the daemon is starting: try again").into_response();
    }
    let at_most = if operation.right.is_change() { app.limits.change } else { app.limits.answer };
    match tokio::time::timeout(at_most, next.run(request)).await {
        Ok(response) => response,
        Err(_) => late(at_most).into_response(),
    }
}

fn late(after: Duration) -> Problem {
    let detail = format!("no answer in {} seconds; the operation may still complete", after.as_secs());
    Problem::new(ProblemKind::Timeout, detail)
}

async fn nowhere() -> Response {
    Problem::new(ProblemKind::NotFound, "no such path; /openapi.json lists all paths").into_response()
}

async fn not_so() -> Response {
    let detail = "the path does not support this method; /openapi.json lists those it supports";
    Problem::new(ProblemKind::MethodNotAllowed, detail).into_response()
}
