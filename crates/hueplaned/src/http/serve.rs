//! Accepts connections: who may connect, how many at once, and how long they may be silent.
//!
//! Invariants: each listener has its own budget of connections, so that nobody on TCP can lock out the Unix socket;
//! on TCP, `door` admits connections, and no connection waits for another; a peer that does not read, write or finish its handshake
//! in time is disconnected.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::LazyConfigAcceptor;
use tower::ServiceExt;

use super::access::{Caller, Role, RoleError, Stranger};
use super::door::{Authenticated, Seat, Ticket, Unauthenticated};
use super::places::{Quota, Share, busy};
use super::refusal::Refusals;
use super::timed_stream::TimedStream;
use super::{HEAD_BYTES_MAX, HEADERS_MAX, ServeLimits, router};
use crate::backend::Backend;

/// Pause after a connection could not be accepted, for example with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The sockets to serve, and limits.
#[derive(Default)]
pub struct Listeners {
    /// The Unix socket. Its file mode controls who may use it.
    pub unix: Option<UnixListener>,
    /// TCP, with mutual TLS.
    pub tls: Option<TlsListener>,
    /// Threads that answer the callers on TCP that are no administrators; none: the threads that accept connections. With
    /// threads of their own, these callers take processor time from administrators, but no place in a queue.
    pub guests: Option<Handle>,
    /// Limits on connections and on time.
    pub limits: ServeLimits,
}

/// A TCP socket and its TLS configuration.
pub struct TlsListener {
    /// The socket.
    pub listener: TcpListener,
    /// TLS configuration, from [`crate::tls::server_config`].
    pub config: Arc<ServerConfig>,
}

/// Answers requests until `closing` is true. Streams then end, and answers that have begun get a few seconds.
pub async fn serve(backend: Arc<dyn Backend>, listeners: Listeners, closing: watch::Receiver<bool>) {
    let limits = listeners.limits;
    let guests = listeners.guests;
    let site = Site { router: router(backend, limits, closing.clone()), limits, closing, guests };
    let unix = async {
        if let Some(listener) = listeners.unix {
            let serve = |stream: UnixStream| {
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                site.clone().connection(stream, Ok(Caller::local(user)))
            };
            accept(listener, &site, limits.connections, serve).await;
        }
    };
    let tls = async {
        if let Some(TlsListener { listener, config }) = listeners.tls {
            let door = Arc::new(Door {
                config,
                waiting: Arc::new(Unauthenticated::new(limits.handshakes)),
                inside: Arc::new(Authenticated::new(limits.connections)),
                tenants: Arc::new(Quota::new(limits.tenant_connections)),
                tenant_connections: limits.tenant_connections,
            });
            let serve = |(stream, from): (TcpStream, SocketAddr)| {
                // Before the task runs, so that the order of arrival is known.
                let ticket = door.waiting.enter(from.ip());
                site.clone().tls_connection(stream, Arc::clone(&door), ticket)
            };
            // Admission limits their number. Connections that were told to close will do so soon.
            accept(listener, &site, limits.connections + 2 * limits.handshakes, serve).await;
        }
    };
    tokio::join!(unix, tls);
}

/// State shared by connections.
#[derive(Clone)]
struct Site {
    router: Router,
    limits: ServeLimits,
    closing: watch::Receiver<bool>,
    guests: Option<Handle>,
}

/// A socket that accepts connections.
trait Listener: Send + Sync {
    type Stream: Send;

    fn take(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn take(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

impl Listener for TcpListener {
    type Stream = (TcpStream, SocketAddr);

    async fn take(&self) -> io::Result<Self::Stream> {
        let (stream, from) = self.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, from))
    }
}

/// Accepts connections up to the limit, and serves each in its own task.
async fn accept<L: Listener, F: Future<Output = ()> + Send + 'static>(
    listener: L,
    site: &Site,
    connections: usize,
    serve: impl Fn(L::Stream) -> F,
) {
    let places = Arc::new(Semaphore::new(connections));
    let mut closing = site.closing.clone();
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((listener.take().await, place))
        };
        let taken = tokio::select! {
            taken = next => taken,
            _ = closing.wait_for(|closing| *closing) => break,
        };
        match taken {
            Some((Ok(stream), place)) => {
                let served = serve(stream);
                tasks.spawn(async move {
                    served.await;
                    drop(place);
                });
            }
            Some((Err(error), _)) => {
                tracing::warn!(%error, "a connection to the API could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
            None => break,
        }
    }
    drop(listener);
    let rest = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(site.limits.last, rest).await;
}

/// Checks that a TCP connection has to pass.
struct Door {
    config: Arc<ServerConfig>,
    waiting: Arc<Unauthenticated>,
    inside: Arc<Authenticated>,
    /// Connections of each tenant.
    tenants: Arc<Quota>,
    tenant_connections: usize,
}

/// The places that a caller holds while it is connected.
type Held = (Seat, Option<Share>);

impl Door {
    /// Gives a caller a place, and a tenant one of its own share.
    fn enter(&self, caller: Result<Caller, Stranger>) -> Result<(Caller, Held), Stranger> {
        let caller = caller?;
        let share = match caller.only() {
            Some(tenant) => {
                let share = self.tenants.take(tenant);
                Some(
                    share
                        .ok_or_else(|| Stranger(busy("connections of a tenant", self.tenant_connections)))?,
                )
            }
            None => None,
        };
        match self.inside.enter(&caller) {
            Some(seat) => Ok((caller, (seat, share))),
            None => Err(Stranger(busy("connections of callers with this role", self.inside.max_of(&caller)))),
        }
    }
}

impl Site {
    /// Does the TLS handshake, identifies the caller, and answers its requests.
    async fn tls_connection(self, stream: TcpStream, door: Arc<Door>, ticket: Ticket) {
        let shake = async {
            let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await.ok()?;
            ticket.has_spoken();
            begun.into_stream(Arc::clone(&door.config)).await.ok()
        };
        let shaken = tokio::select! {
            shaken = tokio::time::timeout(self.limits.handshake, shake) => shaken,
            () = ticket.must_leave() => return,
        };
        let Ok(Some(stream)) = shaken else { return };
        let certificates = stream.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(<[_]>::first).ok_or(RoleError::Unreadable);
        let caller = certificate.and_then(|certificate| Caller::of_certificate(certificate));
        match door.enter(caller.map_err(Stranger::from)) {
            Ok((caller, _held)) => {
                drop(ticket);
                let guests = self.guests.clone().filter(|_| caller.role != Role::Admin);
                let answers = self.connection(stream, Ok(caller));
                match guests {
                    None => answers.await,
                    Some(guests) => {
                        // Ends with this task.
                        let mut task = JoinSet::new();
                        task.spawn_on(answers, &guests);
                        task.join_next().await;
                    }
                }
            }
            // It gets one answer, and still counts as unauthenticated.
            Err(stranger) => tokio::select! {
                () = self.connection(stream, Err(stranger)) => {}
                () = ticket.must_leave() => {}
            },
        }
    }

    /// Answers the requests of one connection.
    async fn connection(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        caller: Result<Caller, Stranger>,
    ) {
        let Self { router, limits, mut closing, .. } = self;
        // A refused caller gets one answer.
        let keep_alive = caller.is_ok();
        let service = service_fn(move |request| answer(router.clone(), caller.clone(), request));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .keep_alive(keep_alive)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(Refusals::new(TimedStream::new(stream, limits.write))), service);
        tokio::pin!(connection);
        // An error is the peer's fault: it disconnected, was too slow, or did not speak HTTP, and got an answer that says so.
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = closing.wait_for(|closing| *closing) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

async fn answer(
    router: Router,
    caller: Result<Caller, Stranger>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let mut request = request.map(Body::new);
    match caller {
        Ok(caller) => drop(request.extensions_mut().insert(caller)),
        Err(stranger) => drop(request.extensions_mut().insert(stranger)),
    }
    router.oneshot(request).await
}
