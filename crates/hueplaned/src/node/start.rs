//! Starts the node, and ends it.
//!
//! Flow: stored desired state → **[`start`]** → node thread, and the threads that send it messages → [`Running::end`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hue_card::Images;
use hue_host::control::Owner;
use hue_host::holder::Holder;
use hue_host::links::{LinkEvent, Watch};
use hue_host::netns;
use hue_routing::Monitor;
use hue_soft::{Live, LiveConfig};
use hue_substrate::scheduling::Granted;
use tokio::sync::watch;

use crate::api::{EventKind, Health, LogPlace, Timestamp};
use crate::error::DaemonError;
use crate::node::change;
use crate::node::core::Node;
use crate::node::drive::Drive;
use crate::node::events::{About, EventLog};
use crate::node::handle::NodeHandle;
use crate::node::jobs::{Done, Job, Jobs, PortTag};
use crate::node::message::{Inbox, Message};
use crate::node::pending;
use crate::node::plan::Planning;
use crate::node::queue::Queue;
use crate::node::shared::Shared;
use crate::node::take_over::{Predecessor, TakeOver, leave_learnt};
use crate::store::Opened;

/// Batches of routing events that may wait for the node's thread; later events wait in the kernel.
const BATCHES_MAX: usize = 8;
/// Longest time to remove all networks when the daemon stops.
const END_MAX: Duration = Duration::from_secs(60);
/// Pause after an attempt to watch interfaces failed.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// The node's thread, to stop it.
pub struct Running {
    thread: JoinHandle<(Node, Inbox)>,
    shared: Arc<Shared>,
}

/// Starts the node, which then applies its stored desired state. `cards` is the state directory in which processes of cards are
/// found; without it, cards are in this process.
///
/// # Errors
/// If the data plane or a thread cannot be started, or the stored desired state does not compile.
pub fn start(
    config: LiveConfig,
    images: Images,
    owner: Owner,
    opened: Opened,
    holder: Arc<Holder>,
    log: LogPlace,
    (predecessor, cards): (Option<Predecessor>, Option<PathBuf>),
) -> Result<(NodeHandle, Running), DaemonError> {
    let Opened { mut store, desired, trouble, emptied } = opened;
    match netns::sweep(&owner.prefix) {
        Ok(swept) if swept.is_empty() => {}
        Ok(swept) => tracing::info!(?swept, "removed namespaces that a killed daemon left behind"),
        Err(error) => tracing::warn!(%error, "namespaces that a killed daemon left behind cannot be removed"),
    }
    let left = owner.networks()?;
    // An empty store says nothing about the networks that run. They must not be removed because of it.
    if desired.generation == 0 && !left.is_empty() && !emptied {
        return Err(DaemonError::Unknown { networks: left, directory: store.directory().to_owned() });
    }
    let (desired, overdue) = pending::undo_overdue(&mut store, desired, &owner);
    let mut live = Live::start(config)?;
    let (sender, messages) = mpsc::channel();
    let (batch_sender, batches) = mpsc::sync_channel(BATCHES_MAX);
    let woken = Arc::new(AtomicBool::new(false));
    let (wake, woken_there) = (sender.clone(), Arc::clone(&woken));
    let monitor = Monitor::start(move |batch| {
        let sent = batch_sender.send(batch).is_ok();
        if !woken_there.swap(true, Ordering::SeqCst) {
            // The node ends before this thread does.
            let _ = wake.send(Message::Wake);
        }
        sent
    })?;
    let done = sender.clone();
    let jobs = Jobs::start(owner.clone(), holder, move |job| drop(done.send(Message::Done(job))))
        .map_err(DaemonError::Thread)?;
    forward_failures(&mut live, sender.clone())?;
    watch_links(sender.clone())?;
    let prepared =
        change::prepare_start(desired, &owner).map_err(|problem| DaemonError::Stored(problem.to_string()))?;
    let store_problem = store.problem();
    let shared = Arc::new(Shared {
        sender: sender.clone(),
        view: RwLock::default(),
        desired: RwLock::new(Arc::clone(&prepared.desired)),
        totals: live.totals_reader(),
        events: EventLog::default(),
        store: Mutex::new(store),
        queue: Queue::default(),
        down: watch::channel(None).0,
        owner,
        started: Timestamp::now(),
        took_over_ms: OnceLock::new(),
        log,
        workers: live.workers(),
        scheduling: least(live.scheduling()),
        planning: Planning::default(),
        deadline: watch::channel(pending::deadline(&prepared.desired)).0,
    });
    if let Some((kind, text)) = overdue {
        shared.events.add(kind, About::Node, text);
    }
    shared.tell_scheduling("workers", &shared.scheduling);
    if let Some(trouble) = &trouble {
        shared.events.add(EventKind::Trouble, About::Node, trouble.clone());
    }
    let mut node = Node::new(
        Arc::clone(&shared),
        live,
        images,
        (monitor, jobs),
        config,
        Drive::Threads(config.scheduling, cards),
    );
    node.take_over = predecessor.map(TakeOver::of);
    node.troubles.extend(trouble);
    node.set_store_problem(store_problem);
    let inbox = Inbox { messages, batches, woken };
    let thread = std::thread::Builder::new().name("hue-node".to_owned()).spawn(move || {
        node.bring_up(prepared, left);
        (node.run(&inbox), inbox)
    });
    let thread = thread.map_err(DaemonError::Thread)?;
    Ok((NodeHandle { shared: Arc::clone(&shared) }, Running { thread, shared }))
}

/// The lowest scheduling of any worker; the desired one if there are no workers.
fn least(workers: &[Granted]) -> Granted {
    workers.iter().find(|granted| granted.why_not.is_some()).or(workers.first()).cloned().unwrap_or_default()
}

/// Passes on the data plane's reports on its ports.
fn forward_failures(live: &mut Live, sender: Sender<Message>) -> Result<(), DaemonError> {
    let events = live.port_events();
    let forward = move || {
        while let Ok(event) = events.recv() {
            if sender.send(Message::Port(event)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("hue-failures".to_owned())
        .spawn(forward)
        .map_err(DaemonError::Thread)?;
    Ok(())
}

/// Watches the interfaces of the daemon's namespace, on a thread that lives as long as the node.
fn watch_links(sender: Sender<Message>) -> Result<(), DaemonError> {
    let (mut watch, there) = Watch::here()?;
    // The receiver exists, although the node's thread has not started, and the channel is unbounded.
    let _ = sender.send(Message::Links(there.into_iter().map(LinkEvent::Present).collect()));
    let follow = move || {
        loop {
            let events = match watch.next(Duration::from_secs(1)) {
                Ok(events) => events,
                Err(error) => {
                    tracing::warn!(%error, "changes of interfaces cannot be monitored; trying again");
                    std::thread::sleep(WATCH_PAUSE);
                    vec![LinkEvent::Lost]
                }
            };
            // An empty message tests whether the receiver still exists.
            if sender.send(Message::Links(events)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("hue-links".to_owned()).spawn(follow).map_err(DaemonError::Thread)?;
    Ok(())
}

impl Running {
    /// Whether the thread has ended unexpectedly.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the node: its workers and, unless `keep` is set, all its namespaces. Blocks until that is done. `learnt` names the
    /// file for what networks have learnt, if another daemon takes the place.
    ///
    /// # Errors
    /// If the thread had ended before.
    pub fn end(self, keep: bool, learnt: Option<&Path>) -> Result<(), DaemonError> {
        // An error says that the thread has ended.
        let _ = self.shared.sender.send(Message::Stop);
        let (node, inbox) = self.thread.join().map_err(|_| DaemonError::Ended)?;
        node.end(&inbox, keep, learnt);
        Ok(())
    }
}

impl Node {
    /// Stops everything.
    fn end(mut self, inbox: &Inbox, keep: bool, learnt: Option<&Path>) {
        self.health = Health::Stopping;
        self.publish();
        // Before ports are closed: the next daemon reads it when it has them.
        if let Some(file) = learnt
            && let Err(error) = leave_learnt(file, self.learnt(), &self.labels.all())
        {
            tracing::warn!(%error, "what networks have learnt cannot be handed over");
        }
        let Self { live, mut card, monitor, jobs, networks, taps, shared, ports, .. } = self;
        if let Some(card) = card.as_mut().filter(|_| keep) {
            card.live.leave();
        }
        let mut opening = ports.opening().clone();
        let deadline = Instant::now() + END_MAX;
        let mut under_way: BTreeSet<String> =
            networks.iter().filter(|(_, entry)| entry.is_busy()).map(|(name, _)| name.clone()).collect();
        let names = networks.names();
        // First the ports, which the next daemon may be waiting for.
        drop(card);
        live.stop();
        // Sockets and TAPs keep a namespace alive.
        drop((networks, taps));
        drop(monitor);
        wait(inbox, &mut under_way, &mut opening, deadline, &shared.events);
        if !keep {
            under_way.extend(names.iter().cloned());
            names.into_iter().for_each(|name| jobs.add(Job::Delete(name, None)));
            wait(inbox, &mut under_way, &mut opening, deadline, &shared.events);
        }
        for name in under_way {
            let text =
                format!("network {name}: its namespace is not removed yet; the next daemon will remove it");
            shared.events.add(EventKind::Trouble, About::Node, text);
        }
    }
}

/// Waits until the jobs of these networks and interfaces are done.
fn wait(
    inbox: &Inbox,
    under_way: &mut BTreeSet<String>,
    opening: &mut BTreeSet<String>,
    deadline: Instant,
    events: &EventLog,
) {
    while !(under_way.is_empty() && opening.is_empty()) {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(message) = inbox.messages.recv_timeout(left) else { return };
        let Message::Done(done) = message else { continue };
        match done {
            Done::Setup(name, _) | Done::Delete(name, Ok(_)) => drop(under_way.remove(&name)),
            Done::Delete(name, Err(error)) => {
                under_way.remove(&name);
                let text = format!("network {name} cannot be removed: {error}");
                events.add(EventKind::Trouble, About::Node, text);
            }
            // A port that was opened meanwhile is closed here.
            Done::Open(PortTag { want, .. }, _) => drop(opening.remove(want.interface())),
            Done::Close(interface) => drop(opening.remove(&interface)),
            Done::Look(_) => {}
        }
    }
}
