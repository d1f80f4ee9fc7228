//! A blocking client of the API, over the Unix socket or over TCP with mutual TLS.
//!
//! Flow: command line → **client** → socket → `http`. Each call opens its own connection, so a client can be used
//! from several threads and survives a restart of the daemon. A client contains a small runtime, so it must not be
//! used on a thread that runs asynchronous code.
//! Limits: [`CALL_SECONDS_MAX`] for a call, [`CHANGE_SECONDS_MAX`] for a change,
//! [`IDLE_SECONDS_MAX`] between two pieces of an event stream.

mod connection;
mod list;
mod sse;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::api::{
    ApplyRequest, ApplyResult, CaptureFilter, Config, ConfirmRequest, ConfirmResult, DiffRequest, DiffResult,
    DownOptions, DownResult, DrainRequest, DrainResult, EventPage, ExecInfo, GateRequest, History, ImageInfo,
    ImageLoaded, LoadImageRequest, MacAddress, MigrateRequest, Migration, Neighbour, Network, NetworkFilter,
    Node, Placement, Plan, PlanQuery, Port, Problem, ProblemKind, RollbackRequest, RollbackResult, Route,
    RouteFilter, Stats, Status, TableEntry, Tables, Trace, TraceRequest, TurnQuery,
};
use crate::tls::{TlsError, TlsFiles};

use connection::{Connector, Reply};

pub use connection::ByteStream;
pub use sse::EventStream;

/// Longest time of a call, in seconds.
pub const CALL_SECONDS_MAX: u64 = 60;
/// Longest time of a call that changes the node or its networks, in seconds.
pub const CHANGE_SECONDS_MAX: u64 = 660;
/// Longest silence of an event stream, in seconds; the daemon sends keep-alives more often.
pub const IDLE_SECONDS_MAX: u64 = 60;

/// Why a call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nothing listens at the address: the daemon does not run, or runs elsewhere.
    #[error("{target}: no daemon answers ({source}): start one with `hueplane up`, or name its socket")]
    NotRunning {
        /// The address.
        target: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// Access to the socket is denied.
    #[error("{target}: access denied: become root, or join the socket's group")]
    Permission {
        /// The address.
        target: String,
    },
    /// The address is invalid.
    #[error("{address:?}: expected https://HOST:PORT")]
    Address {
        /// The address as given.
        address: String,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The client's runtime cannot be started; the operating system's fault.
    #[error("cannot start: {0}")]
    Start(io::Error),
    /// The connection failed, or ended too early.
    #[error("{target}: the connection failed: {reason}")]
    Connection {
        /// The address.
        target: String,
        /// The error.
        reason: String,
    },
    /// There was no answer in time.
    #[error("{target}: no answer in {seconds} seconds")]
    Timeout {
        /// The address.
        target: String,
        /// How long the client waited.
        seconds: u64,
    },
    /// The daemon answered with an error.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// The answer does not conform to the API: it is from another version, or not from our daemon.
    #[error("{target}: the answer is not as expected: {reason}")]
    Answer {
        /// The address.
        target: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl ClientError {
    /// The daemon's error, if it answered.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }
}

/// A client of one daemon.
pub struct Client {
    connector: Connector,
}

impl Client {
    /// The daemon behind a Unix socket. Does not connect yet.
    ///
    /// # Errors
    /// `Start`.
    pub fn unix(socket: impl AsRef<Path>) -> Result<Self, ClientError> {
        Ok(Self { connector: Connector::unix(socket.as_ref().to_owned())? })
    }

    /// The daemon at `https://HOST:PORT`. Does not connect yet.
    ///
    /// # Errors
    /// `Start`, `Address` or `Tls`.
    pub fn tls(url: &str, files: &TlsFiles) -> Result<Self, ClientError> {
        Ok(Self { connector: Connector::tls(url, files)? })
    }

    /// The daemon's socket or address.
    #[must_use]
    pub fn target(&self) -> &str {
        self.connector.target()
    }

    /// Status of the daemon.
    ///
    /// # Errors
    /// Any [`ClientError`] except those of creating a client. The same holds for all calls.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.get("/v1/status", &())
    }

    /// The node.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn node(&self) -> Result<Node, ClientError> {
        self.get("/v1/node", &())
    }

    /// The desired state in force.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn config(&self) -> Result<Config, ClientError> {
        self.get("/v1/config", &())
    }

    /// All networks.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn networks(&self) -> Result<Vec<Network>, ClientError> {
        self.get("/v1/networks", &())
    }

    /// One network.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn network(&self, name: &str) -> Result<Network, ClientError> {
        self.get(&of_network(name, "")?, &())
    }

    /// Physical ports.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn ports(&self) -> Result<Vec<Port>, ClientError> {
        self.get("/v1/ports", &())
    }

    /// Routes, one at a time as they arrive; there may be many.
    ///
    /// # Errors
    /// See [`Self::status`]. Routes may have arrived before the error.
    pub fn routes_each(&self, filter: &RouteFilter, each: impl FnMut(Route)) -> Result<(), ClientError> {
        self.each("/v1/routes", filter, each)
    }

    /// Routes.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn routes(&self, filter: &RouteFilter) -> Result<Vec<Route>, ClientError> {
        let mut list = Vec::new();
        self.routes_each(filter, |route| list.push(route))?;
        Ok(list)
    }

    /// Neighbours.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn neighbours(&self, filter: &NetworkFilter) -> Result<Vec<Neighbour>, ClientError> {
        let mut list = Vec::new();
        self.each("/v1/neighbours", filter, |neighbour| list.push(neighbour))?;
        Ok(list)
    }

    /// MAC addresses of networks whose kind learns them.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn macs(&self, filter: &NetworkFilter) -> Result<Vec<MacAddress>, ClientError> {
        let mut list = Vec::new();
        self.each("/v1/macs", filter, |mac| list.push(mac))?;
        Ok(list)
    }

    /// Entries of networks whose kind compares bits of frames.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn entries(&self, filter: &NetworkFilter) -> Result<Vec<TableEntry>, ClientError> {
        let mut list = Vec::new();
        self.each("/v1/entries", filter, |entry| list.push(entry))?;
        Ok(list)
    }

    /// Route tables.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn tables(&self) -> Result<Tables, ClientError> {
        self.get("/v1/tables", &())
    }

    /// Where networks run, and why.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn placements(&self) -> Result<Vec<Placement>, ClientError> {
        self.get("/v1/placements", &())
    }

    /// Where a scheduler would place networks.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn plan(&self, query: &PlanQuery) -> Result<Plan, ClientError> {
        self.get("/v1/plan", query)
    }

    /// Counters of everything or of one network.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn stats(&self, network: Option<&str>) -> Result<Stats, ClientError> {
        self.get("/v1/stats", &[("network", network)])
    }

    /// Metrics in Prometheus's text format.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn metrics(&self) -> Result<String, ClientError> {
        self.text("/metrics")
    }

    /// The daemon's OpenAPI description.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn openapi(&self) -> Result<String, ClientError> {
        self.text("/openapi.json")
    }

    /// The events after number `since` that the daemon keeps.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn events(&self, since: u64) -> Result<EventPage, ClientError> {
        self.get("/v1/events", &[("since", since)])
    }

    /// Events after number `since`, and then new events as they happen.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn follow_events(&self, since: u64) -> Result<EventStream, ClientError> {
        let path = path("/v1/events", &[("since", since.to_string()), ("follow", "true".to_owned())])?;
        let reply = self.connector.call(Method::GET, &path, None, CALL_SECONDS_MAX)?;
        Ok(EventStream::new(reply.into_bytes(IDLE_SECONDS_MAX), since))
    }

    /// Frames as pcapng, from now on. The stream ends after `filter.count` frames, or when it is dropped.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn capture(&self, filter: &CaptureFilter) -> Result<ByteStream, ClientError> {
        let path = path("/v1/capture", filter)?;
        let reply = self.connector.call(Method::GET, &path, None, CALL_SECONDS_MAX)?;
        Ok(reply.into_bytes(0))
    }

    /// Applies documents.
    ///
    /// # Errors
    /// See [`Self::status`]; a problem has findings if documents have errors.
    pub fn apply(&self, request: &ApplyRequest, turn: TurnQuery) -> Result<ApplyResult, ClientError> {
        self.change(Method::POST, &path("/v1/apply", &turn)?, Some(request))
    }

    /// Compares documents with the desired state.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn diff(&self, request: &DiffRequest) -> Result<DiffResult, ClientError> {
        self.change(Method::POST, "/v1/diff", Some(request))
    }

    /// The revisions of the documents that are kept.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn history(&self) -> Result<History, ClientError> {
        self.get("/v1/history", &())
    }

    /// Restores the documents of a revision.
    ///
    /// # Errors
    /// See [`Self::status`]; nothing has changed then.
    pub fn rollback(
        &self,
        request: &RollbackRequest,
        turn: TurnQuery,
    ) -> Result<RollbackResult, ClientError> {
        self.change(Method::POST, &path("/v1/rollback", &turn)?, Some(request))
    }

    /// Confirms the change that waits for it.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn confirm(&self, request: &ConfirmRequest, turn: TurnQuery) -> Result<ConfirmResult, ClientError> {
        self.change(Method::POST, &path("/v1/confirm", &turn)?, Some(request))
    }

    /// Deletes a network.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn delete_network(&self, name: &str, turn: TurnQuery) -> Result<ApplyResult, ClientError> {
        self.change(Method::DELETE, &path(&of_network(name, "")?, &turn)?, None::<&()>)
    }

    /// Closes or opens a network's clock gate.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn gate_network(
        &self,
        name: &str,
        request: GateRequest,
        turn: TurnQuery,
    ) -> Result<ApplyResult, ClientError> {
        self.change(Method::POST, &path(&of_network(name, "/gate")?, &turn)?, Some(&request))
    }

    /// Moves a network between card and software.
    ///
    /// # Errors
    /// See [`Self::status`]; the network then stays where it was.
    pub fn migrate(
        &self,
        name: &str,
        request: &MigrateRequest,
        turn: TurnQuery,
    ) -> Result<Migration, ClientError> {
        self.change(Method::POST, &path(&of_network(name, "/migrate")?, &turn)?, Some(request))
    }

    /// The card's images.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn images(&self) -> Result<Vec<ImageInfo>, ClientError> {
        self.get("/v1/images", &())
    }

    /// Loads an image into the card.
    ///
    /// # Errors
    /// See [`Self::status`]; the card then continues with the previous image.
    pub fn load_image(
        &self,
        name: &str,
        request: LoadImageRequest,
        turn: TurnQuery,
    ) -> Result<ImageLoaded, ClientError> {
        match name.parse::<hue_intent::Name>() {
            Ok(name) => {
                self.change(Method::POST, &path(&format!("/v1/images/{name}/load"), &turn)?, Some(&request))
            }
            Err(_) => {
                let problem = Problem::new(ProblemKind::NotFound, format!("no image {name:?}"));
                Err(ClientError::Problem(Box::new(problem)))
            }
        }
    }

    /// Drains the card, or ends that.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn drain(&self, request: &DrainRequest, turn: TurnQuery) -> Result<DrainResult, ClientError> {
        self.change(Method::POST, &path("/v1/card/drain", &turn)?, Some(request))
    }

    /// Explains a frame on the running state.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn trace(&self, request: &TraceRequest) -> Result<Trace, ClientError> {
        self.change(Method::POST, "/v1/trace", Some(request))
    }

    /// Namespace and control groups of a network, to run a command in it.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn exec_info(&self, name: &str) -> Result<ExecInfo, ClientError> {
        self.get(&of_network(name, "/exec")?, &())
    }

    /// Tells the daemon to stop; it answers before it stops.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub fn down(&self, options: &DownOptions) -> Result<DownResult, ClientError> {
        self.change(Method::POST, "/v1/down", Some(options))
    }

    /// Waits until the daemon answers and is ready, at most for this time.
    ///
    /// # Errors
    /// The last error, if the time is over.
    pub fn wait_ready(&self, at_most: Duration) -> Result<Status, ClientError> {
        self.connector.wait_ready(at_most, || self.status())
    }

    fn get<T: DeserializeOwned>(&self, at: &str, query: &impl Serialize) -> Result<T, ClientError> {
        self.connector.call(Method::GET, &path(at, query)?, None, CALL_SECONDS_MAX)?.json(CALL_SECONDS_MAX)
    }

    fn text(&self, at: &str) -> Result<String, ClientError> {
        self.connector.call(Method::GET, at, None, CALL_SECONDS_MAX)?.text(CALL_SECONDS_MAX)
    }

    fn each<T: DeserializeOwned>(
        &self,
        at: &str,
        query: &impl Serialize,
        each: impl FnMut(T),
    ) -> Result<(), ClientError> {
        let reply = self.connector.call(Method::GET, &path(at, query)?, None, CALL_SECONDS_MAX)?;
        let target = self.target().to_owned();
        list::each(reply.into_bytes(CALL_SECONDS_MAX), each)
            .map_err(|error| ClientError::Answer { target, reason: error.to_string() })
    }

    fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        at: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let body = match body {
            Some(body) => Some(serde_json::to_vec(body).map_err(|error| self.broken(&error))?),
            None => None,
        };
        let reply: Reply = self.connector.call(method, at, body, CHANGE_SECONDS_MAX)?;
        reply.json(CHANGE_SECONDS_MAX)
    }

    fn broken(&self, error: &serde_json::Error) -> ClientError {
        ClientError::Answer { target: self.target().to_owned(), reason: error.to_string() }
    }
}

/// The path of a network, or of a part of it; names need no quoting.
fn of_network(name: &str, rest: &str) -> Result<String, ClientError> {
    match name.parse::<hue_intent::Name>() {
        Ok(name) => Ok(format!("/v1/networks/{name}{rest}")),
        Err(_) => Err(ClientError::Problem(Box::new(Problem::no_network(name)))),
    }
}

/// A path with its query.
fn path(at: &str, query: &impl Serialize) -> Result<String, ClientError> {
    match serde_urlencoded::to_string(query) {
        Ok(query) if query.is_empty() => Ok(at.to_owned()),
        Ok(query) => Ok(format!("{at}?{query}")),
        Err(error) => Err(ClientError::Address { address: format!("{at}: {error}") }),
    }
}

/// Path of the daemon's socket in its run directory.
#[must_use]
pub fn socket_in(run_dir: &Path) -> PathBuf {
    run_dir.join("hueplane.sock")
}
