//! Connections of the client: one per call, HTTP/1.1 over a Unix socket or TLS.

use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

use super::ClientError;
use crate::api::{Health, Problem, Status};
use crate::tls::{TlsFiles, client_config};

/// Maximum seconds to connect, TLS handshake included.
const CONNECT_SECONDS_MAX: u64 = 10;
/// Maximum bytes of a problem's text.
const PROBLEM_BYTES_MAX: usize = 4 << 20;
/// Milliseconds between two polls for readiness.
const READY_POLL_MS: u64 = 50;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

enum Place {
    Unix(PathBuf),
    Tls { address: String, host: ServerName<'static>, connector: TlsConnector },
}

/// Opens connections to one daemon.
pub(super) struct Connector {
    shared: Arc<Shared>,
    place: Place,
}

/// Resources that a reply needs after its call.
struct Shared {
    runtime: Runtime,
    target: String,
}

impl Connector {
    pub(super) fn unix(socket: PathBuf) -> Result<Self, ClientError> {
        let target = socket.display().to_string();
        Self::new(target, Place::Unix(socket))
    }

    pub(super) fn tls(url: &str, files: &TlsFiles) -> Result<Self, ClientError> {
        let address = || ClientError::Address { address: url.to_owned() };
        let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| address())?;
        let (Some("https"), Some(host), Some(port)) = (uri.scheme_str(), uri.host(), uri.port_u16()) else {
            return Err(address());
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| address())?;
        let connector = TlsConnector::from(client_config(files)?);
        let place = Place::Tls { address: format!("{host}:{port}"), host: name, connector };
        Self::new(url.to_owned(), place)
    }

    fn new(target: String, place: Place) -> Result<Self, ClientError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClientError::Start)?;
        Ok(Self { shared: Arc::new(Shared { runtime, target }), place })
    }

    pub(super) fn target(&self) -> &str {
        &self.shared.target
    }

    /// Sends a request and returns when the head of the reply has arrived. A reply with an error status is an error.
    pub(super) fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        seconds_max: u64,
    ) -> Result<Reply, ClientError> {
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, "*/*");
        request = match &self.place {
            Place::Unix(_) => request.header(HOST, "hueplane"),
            Place::Tls { address, .. } => request.header(HOST, address.as_str()),
        };
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|error| self.shared.failed(error))?;
        let response = self.shared.within(seconds_max, self.send(request))??;
        let reply = Reply { shared: Arc::clone(&self.shared), response };
        if reply.response.status().is_success() { Ok(reply) } else { Err(reply.into_problem(seconds_max)) }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError> {
        let stream = tokio::time::timeout(Duration::from_secs(CONNECT_SECONDS_MAX), self.connect())
            .await
            .map_err(|_| self.shared.late(CONNECT_SECONDS_MAX))??;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.shared.failed(error))?;
        // The task ends with the reply, and the reply also reports its errors.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|error| self.shared.failed(error))
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, ClientError> {
        match &self.place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| self.shared.absent(error))?;
                Ok(Box::new(stream))
            }
            Place::Tls { address, host, connector } => {
                let stream =
                    TcpStream::connect(address.as_str()).await.map_err(|error| self.shared.absent(error))?;
                stream.set_nodelay(true).map_err(|error| self.shared.failed(error))?;
                let stream = connector.connect(host.clone(), stream).await;
                Ok(Box::new(stream.map_err(|error| self.shared.failed(error))?))
            }
        }
    }

    /// Polls the status until the daemon is ready.
    pub(super) fn wait_ready(
        &self,
        at_most: Duration,
        status: impl Fn() -> Result<Status, ClientError>,
    ) -> Result<Status, ClientError> {
        let end = Instant::now() + at_most;
        loop {
            let last = status();
            match &last {
                Ok(status) if status.health != Health::Starting => return last,
                Ok(_) if Instant::now() >= end => return Err(self.shared.late(at_most.as_secs())),
                Ok(_) | Err(ClientError::NotRunning { .. } | ClientError::Connection { .. }) => {}
                Err(_) => return last,
            }
            if Instant::now() >= end {
                return last;
            }
            std::thread::sleep(Duration::from_millis(READY_POLL_MS));
        }
    }
}

impl Shared {
    fn within<T>(&self, seconds: u64, work: impl Future<Output = T>) -> Result<T, ClientError> {
        self.runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(seconds), work).await })
            .map_err(|_| self.late(seconds))
    }

    fn late(&self, seconds: u64) -> ClientError {
        ClientError::Timeout { target: self.target.clone(), seconds }
    }

    fn failed(&self, error: impl fmt::Display) -> ClientError {
        ClientError::Connection { target: self.target.clone(), reason: error.to_string() }
    }

    fn absent(&self, source: io::Error) -> ClientError {
        let target = self.target.clone();
        match source.kind() {
            io::ErrorKind::PermissionDenied => ClientError::Permission { target },
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning { target, source }
            }
            _ => ClientError::Connection { target, reason: source.to_string() },
        }
    }

    fn unexpected(&self, error: impl fmt::Display) -> ClientError {
        ClientError::Answer { target: self.target.clone(), reason: error.to_string() }
    }
}

/// An answer whose body has not been read yet.
pub(super) struct Reply {
    shared: Arc<Shared>,
    response: Response<Incoming>,
}

impl Reply {
    pub(super) fn json<T: DeserializeOwned>(self, seconds_max: u64) -> Result<T, ClientError> {
        let shared = Arc::clone(&self.shared);
        serde_json::from_slice(&self.bytes(seconds_max)?).map_err(|error| shared.unexpected(error))
    }

    pub(super) fn text(self, seconds_max: u64) -> Result<String, ClientError> {
        let shared = Arc::clone(&self.shared);
        String::from_utf8(self.bytes(seconds_max)?.to_vec()).map_err(|error| shared.unexpected(error))
    }

    /// The body as it arrives; it fails after `idle_seconds_max` of silence, never if 0.
    pub(super) fn into_bytes(self, idle_seconds_max: u64) -> ByteStream {
        ByteStream {
            shared: self.shared,
            body: self.response.into_body(),
            rest: Bytes::new(),
            idle_seconds_max,
        }
    }

    fn bytes(self, seconds_max: u64) -> Result<Bytes, ClientError> {
        let body = self.shared.within(seconds_max, self.response.into_body().collect())?;
        Ok(body.map_err(|error| self.shared.failed(error))?.to_bytes())
    }

    fn into_problem(self, seconds_max: u64) -> ClientError {
        let (shared, status) = (Arc::clone(&self.shared), self.response.status());
        let limited = http_body_util::Limited::new(self.response.into_body(), PROBLEM_BYTES_MAX);
        let body = match shared.within(seconds_max, limited.collect()) {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return shared.failed(error),
            Err(late) => return late,
        };
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => ClientError::Problem(Box::new(problem)),
            Err(_) => shared.unexpected(plain(status)),
        }
    }
}

fn plain(status: StatusCode) -> String {
    format!("status {status} without a problem description")
}

/// The bytes of an answer as they arrive. Reading blocks; dropping it ends the call.
pub struct ByteStream {
    shared: Arc<Shared>,
    body: Incoming,
    rest: Bytes,
    idle_seconds_max: u64,
}

impl ByteStream {
    /// The next piece, or `None` if none came within `wait`. An empty piece is the end.
    ///
    /// # Errors
    /// `Connection` or `Timeout`.
    pub fn piece(&mut self, wait: Option<Duration>) -> Result<Option<Bytes>, ClientError> {
        if self.rest.has_remaining() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        loop {
            let idle = (self.idle_seconds_max > 0).then(|| Duration::from_secs(self.idle_seconds_max));
            let limit = wait.or(idle);
            let body = &mut self.body;
            let frame = self.shared.runtime.block_on(async {
                match limit {
                    Some(limit) => tokio::time::timeout(limit, body.frame()).await.ok(),
                    None => Some(body.frame().await),
                }
            });
            match frame {
                None if wait.is_some() => return Ok(None),
                None => return Err(self.shared.late(self.idle_seconds_max)),
                Some(None) => return Ok(Some(Bytes::new())),
                Some(Some(Err(error))) => return Err(self.shared.failed(error)),
                Some(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data()
                        && data.has_remaining()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    pub(super) fn unexpected(&self, error: impl fmt::Display) -> ClientError {
        self.shared.unexpected(error)
    }
}

impl Read for ByteStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            match self.piece(None) {
                Ok(piece) => self.rest = piece.unwrap_or_default(),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        let taken = self.rest.len().min(into.len());
        self.rest.split_to(taken).copy_to_slice(&mut into[..taken]);
        Ok(taken)
    }
}
