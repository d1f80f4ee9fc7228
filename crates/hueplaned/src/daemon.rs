//! The daemon, from start to stop.
//!
//! Flow: [`Options`] → rights, run directory, store, node, API → signals or `down` → the same in reverse. Invariants:
//! the socket exists before the node reports that it is ready; the API stops before the node, so that it accepts no
//! change that the node would not make.

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hue_host::holder::Holder;
use hue_host::process::{self, Process};
use hue_host::service;
use hue_soft::LiveConfig;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::api::{DownOptions, EventKind, LogPlace};
use crate::client::{Client, ClientError, socket_in};
use crate::error::DaemonError;
use crate::http::{Listeners, TlsListener, serve};
use crate::log::{self, LogFile};
use crate::node::{self, About, NodeHandle, Predecessor, Running, learnt_in};
use crate::options::{Options, images};
use crate::place::Place;
use crate::store::{Store, StoreError};
use crate::tls;

/// Threads that answer administrators, and as many that answer all others on TCP. There are few, because packets need the processors.
const API_THREADS: usize = 2;
/// Nice value of the threads that answer callers who are no administrators: about a third of the weight of others.
const GUESTS_NICE: i32 = 5;
/// How often the daemon checks that the node is alive.
const LOOK: Duration = Duration::from_secs(1);
/// Longest time that a daemon that is replaced may take to stop.
const STOP_MAX: Duration = Duration::from_secs(120);
/// How often the next daemon checks whether it has.
const TAKE_OVER_POLL: Duration = Duration::from_millis(1);
/// Longest time that a daemon that is replaced forwards after it has given up its place, and how often it checks that the next
/// one has not ended.
const HAND_OVER_MAX: Duration = Duration::from_secs(60);
const HAND_OVER_POLL: Duration = Duration::from_millis(50);
/// Rights that the daemon cannot work without.
const REQUIRED: [hue_host::Capability; 3] = [
    hue_host::Capability::CAP_NET_ADMIN,
    hue_host::Capability::CAP_NET_RAW,
    hue_host::Capability::CAP_SYS_ADMIN,
];

/// Runs the daemon until it has stopped.
///
/// # Errors
/// Why it does not start, or why it stopped.
pub fn run(options: Options) -> Result<(), DaemonError> {
    if options.log {
        start_log(options.log_file.as_deref())?;
    }
    let log = if options.log { log::place(options.log_file.as_deref()) } else { LogPlace::none() };
    let missing = service::missing(&REQUIRED)?;
    if !missing.is_empty() {
        return Err(DaemonError::Rights(service::names(&missing)));
    }
    // Before rights are dropped, because this may need one of them.
    if let Err(error) = service::raise_open_files() {
        tracing::warn!(%error, "the limit on open files cannot be raised");
    }
    if options.least_rights {
        service::drop_capabilities(&service::NEEDED)?;
    }
    let tls = options.listen.as_ref();
    let tls = tls.map(|listen| Ok::<_, DaemonError>((listen.address, tls::server_config(&listen.tls)?)));
    let tls = tls.transpose()?;
    // Meanwhile, the rest starts. Without it, the first port takes as long.
    let preparing =
        std::thread::Builder::new().name("hue-prepare".to_owned()).spawn(hue_ports::prepare_afxdp);
    let (place, predecessor) = match options.take_over {
        false => (Place::take(&options.run_dir)?, None),
        true => {
            let _ = preparing.map(std::thread::JoinHandle::join);
            take_over(&options.run_dir)?
        }
    };
    let tls = tls.map(|(address, config)| listen(address, config)).transpose()?;
    let deadline = Instant::now() + if options.take_over { STOP_MAX } else { Duration::ZERO };
    let opened = loop {
        let opened = match options.empty {
            false => Store::open(&options.state_dir),
            true => Store::open_empty(&options.state_dir),
        };
        match opened {
            // The daemon before closes its store last.
            Err(StoreError::Open { .. }) if Instant::now() < deadline => std::thread::sleep(TAKE_OVER_POLL),
            opened => break opened?,
        }
    };
    // The kernel's default allows too few neighbours for a machine with many networks.
    if let Err(error) = hue_host::sysctl::raise_neighbour_limits() {
        tracing::warn!(%error, "the kernel's limits on neighbours cannot be raised");
    }
    let threads = |name: &str| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(API_THREADS).thread_name(name).enable_all();
        builder
    };
    let runtime = threads("hue-api").build().map_err(DaemonError::Thread)?;
    let guests = threads("hue-guests").on_thread_start(yield_to_others).build();
    let guests = guests.map_err(DaemonError::Thread)?;
    let predecessor = predecessor
        .map(|process| Predecessor { process: Arc::new(process), learnt: learnt_in(&options.run_dir) });
    let (workers, pin, scheduling) = (options.workers, options.pin, options.scheduling);
    let usual = LiveConfig::default();
    let slots_max = options.packet_slots.unwrap_or(usual.slots_max);
    let slots = usual.slots.min(slots_max);
    let config = LiveConfig { workers, pin, scheduling, slots, slots_max, ..usual };
    // Before the node reports that it is ready. Callers that connect earlier wait until the API answers.
    let unix = place.listen()?;
    let holder = Arc::new(if options.hold {
        holder(&options.state_dir)
    } else {
        Holder::end_left(&options.state_dir);
        Holder::default()
    });
    // Not in the run directory, which service managers remove when the daemon ends.
    let cards = Some(options.state_dir.clone());
    let (handle, running) = node::start(
        config,
        images(),
        options.owner(),
        opened,
        Arc::clone(&holder),
        log,
        (predecessor, cards),
    )?;
    let ended = runtime.block_on(serving(&handle, &running, unix, tls, guests.handle()));
    service::stopping();
    let (keep, hand_over) = match &ended {
        Ok(options) => (options.keep, options.keep && options.hand_over),
        // The fault may be temporary: the next daemon adopts the namespaces.
        Err(_) => (true, false),
    };
    let text = if keep { "the daemon is stopping; namespaces stay" } else { "the daemon is stopping" };
    handle.events().add(EventKind::Stopping, About::Node, text);
    let mut place = Some(place);
    if hand_over {
        runtime.block_on(async {
            // Before the next daemon can send it.
            let terminate = signal(SignalKind::terminate()).map_err(DaemonError::Thread)?;
            handle.close_store();
            holder.leave();
            drop(place.take());
            relieved(terminate, &options.run_dir).await;
            Ok::<_, DaemonError>(())
        })?;
    }
    let learnt = hand_over.then(|| learnt_in(&options.run_dir));
    let stopped = running.end(keep, learnt.as_deref());
    if !keep {
        holder.end();
    }
    guests.shutdown_timeout(LOOK);
    runtime.shutdown_timeout(LOOK);
    // The next daemon needs the store as soon as it has the place.
    drop(handle);
    drop(place);
    ended?;
    stopped
}

/// Gives way to the daemon's other threads when processors are scarce.
fn yield_to_others() {
    if let Err(error) = process::lower_priority(GUESTS_NICE) {
        tracing::warn!(%error, "threads for callers that are no administrators keep the priority of others");
    }
}

/// Waits until the next daemon wants the ports, or has ended.
async fn relieved(mut terminate: Signal, run_dir: &Path) {
    let deadline = tokio::time::sleep(HAND_OVER_MAX);
    tokio::pin!(deadline);
    let mut taken = false;
    loop {
        tokio::select! {
            _ = terminate.recv() => return,
            () = &mut deadline => return,
            () = tokio::time::sleep(HAND_OVER_POLL) => match Place::is_free(run_dir) {
                false => taken = true,
                true if taken => return,
                true => {}
            },
        }
    }
}

/// Makes the daemon that runs give up its place. It forwards until it is asked to end, if it can.
fn take_over(run_dir: &Path) -> Result<(Place, Option<Process>), DaemonError> {
    let failed = |error: ClientError| DaemonError::TakeOver(error.to_string());
    let client = Client::unix(socket_in(run_dir)).map_err(failed)?;
    let pid = client.status().ok().and_then(|status| status.pid);
    let mut predecessor = pid.and_then(|pid| Process::of(pid).ok());
    let ask = |hand_over| client.down(&DownOptions { keep: true, hand_over });
    let mut asked = ask(predecessor.is_some());
    if predecessor.is_some() && matches!(asked, Err(ClientError::Problem(_))) {
        // An earlier version does not know how to hand over.
        predecessor = None;
        asked = ask(false);
    }
    match asked {
        // One that has just stopped is no obstacle.
        Ok(_) | Err(ClientError::NotRunning { .. }) => {}
        Err(error) => return Err(failed(error)),
    }
    let deadline = Instant::now() + STOP_MAX;
    loop {
        match Place::take(run_dir) {
            Err(DaemonError::Running { .. }) if Instant::now() < deadline => {
                std::thread::sleep(TAKE_OVER_POLL)
            }
            taken => return Ok((taken?, predecessor)),
        }
    }
}

/// The holder of descriptors in the state directory.
fn holder(state_dir: &Path) -> Holder {
    Holder::start(state_dir).unwrap_or_else(|error| {
        tracing::warn!(%error, "without a holder of descriptors, virtual ports lose their carrier when the daemon restarts");
        Holder::default()
    })
}

/// A TCP socket for these certificates.
fn listen(
    address: SocketAddr,
    config: Arc<rustls::ServerConfig>,
) -> Result<(StdTcpListener, Arc<rustls::ServerConfig>), DaemonError> {
    let socket = StdTcpListener::bind(address)
        .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
        .map_err(|source| DaemonError::Listen { address, source })?;
    Ok((socket, config))
}

/// Answers the API until the daemon must stop. Returns the options for stopping.
async fn serving(
    handle: &NodeHandle,
    running: &Running,
    unix: StdUnixListener,
    tls: Option<(StdTcpListener, Arc<rustls::ServerConfig>)>,
    guests: &Handle,
) -> Result<DownOptions, DaemonError> {
    let unix = UnixListener::from_std(unix).map_err(DaemonError::Thread)?;
    let tls = match tls {
        Some((socket, config)) => {
            let listener = TcpListener::from_std(socket).map_err(DaemonError::Thread)?;
            Some(TlsListener { listener, config })
        }
        None => None,
    };
    let (close, closing) = watch::channel(false);
    let listeners = Listeners { unix: Some(unix), tls, guests: Some(guests.clone()), ..Listeners::default() };
    let api = tokio::spawn(serve(Arc::new(handle.clone()), listeners, closing));
    let measured = handle.clone();
    let measuring = tokio::spawn(async move { measured.measure().await });
    let stored = handle.clone();
    let tending = tokio::spawn(async move { stored.tend_store().await });
    let changed = handle.clone();
    let confirming = tokio::spawn(async move { changed.tend_pending().await });
    let ended = wait(handle, running).await;
    measuring.abort();
    confirming.abort();
    tending.abort();
    close.send_replace(true);
    // The API itself limits the time for answers that have begun.
    if let Err(error) = api.await {
        tracing::error!(%error, "the API has failed");
    }
    ended
}

/// Waits for a signal, for a `down` request, or for a failure of the node.
async fn wait(handle: &NodeHandle, running: &Running) -> Result<DownOptions, DaemonError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Thread)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Thread)?;
    let mut down = handle.down_watch();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(DownOptions::default()),
            _ = interrupt.recv() => return Ok(DownOptions::default()),
            asked = down.wait_for(Option::is_some) => {
                return Ok(asked.ok().and_then(|options| *options).unwrap_or_default());
            }
            () = tokio::time::sleep(LOOK) => {
                if running.has_ended() {
                    return Err(DaemonError::Ended);
                }
            }
        }
    }
}

/// Writes the log to standard error, or to a file that already is standard error. `HUEPLANE_LOG` sets its level: `error`, `warn`,
/// `info`, `debug` or `trace`.
fn start_log(file: Option<&Path>) -> Result<(), DaemonError> {
    let level = std::env::var("HUEPLANE_LOG").ok().and_then(|level| level.parse().ok());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level.unwrap_or(tracing::Level::INFO))
        .with_target(false)
        .with_ansi(false);
    // A program that runs a daemon inside itself may have a subscriber already.
    let _ = match file {
        None => subscriber.with_writer(std::io::stderr).try_init(),
        Some(path) => {
            let file = LogFile::standard(path.to_owned()).map_err(DaemonError::file(path, "opened"))?;
            subscriber.with_writer(Mutex::new(file)).try_init()
        }
    };
    Ok(())
}
