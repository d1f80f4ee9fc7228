//! The node whose every step a caller makes: its changes, requests, steps and frames.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use hue_card::Images;
use hue_host::control::{Config, Owner};
use hue_host::links::LinkEvent;
use hue_host::netlink::Link;
use hue_ports::{MemoryHandle, MemoryPort, Opened, PortError};
use hue_routing::{Event, Monitor};
use hue_soft::{Live, LiveConfig};
use hue_substrate::clock::{Clock, Hand};
use hue_substrate::scheduling::Granted;
use hue_tables::AnyPrefix;
use tokio::sync::{oneshot, watch};

use super::journal::{Input, Journal};
use super::kernel;
use crate::api::{
    ApplyRequest, ImageLoaded, LogPlace, MigrateRequest, Migration, NetworkState, Problem, ProblemKind,
    SourceText, Tables, Timestamp, TurnQuery,
};
use crate::error::DaemonError;
use crate::node::change::{self, Prepared};
use crate::node::command::{Answering, Command, Deferred, Frame, Reply, Request, Target};
use crate::node::core::Node;
use crate::node::drive::Drive;
use crate::node::events::EventLog;
use crate::node::idle::Caller;
use crate::node::jobs::{Done, Job, Jobs, OpenPort};
use crate::node::message::{Inbox, Message};
use crate::node::moves;
use crate::node::networks::{self, Entry};
use crate::node::plan::Planning;
use crate::node::queue::Queue;
use crate::node::routes;
use crate::node::shared::Shared;
use crate::store::{Desired, Store};

/// Capacity of a port's queues, in frames in each direction.
const ROOM_FRAMES: usize = 256;
/// Failed work is retried after less than this time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A request that waits for its result.
struct Pending<T> {
    name: String,
    /// The result, once the work has begun; it begins when nothing is moving.
    begun: oneshot::Receiver<Result<Answering<T>, Problem>>,
    answer: Option<Answering<T>>,
}

/// A requested move.
struct Moving {
    request: MigrateRequest,
    /// The image that is being loaded or was loaded for it.
    image: Option<String>,
}

/// Result of a request.
#[derive(Debug)]
pub enum Answer {
    /// Result of a move of this network.
    Moved(String, Box<Result<Migration, Problem>>),
    /// Result of loading this image.
    Loaded(String, Result<ImageLoaded, Problem>),
}

/// See the head of this file.
pub struct ByHand {
    pub(super) node: Node,
    inbox: Inbox,
    jobs: Receiver<Job>,
    pub(super) time: Hand,
    /// By interface.
    wires: BTreeMap<String, MemoryHandle>,
    /// By network, in the order of virtual ports.
    taps: BTreeMap<String, Vec<MemoryHandle>>,
    /// Contents of namespaces.
    kernels: BTreeMap<String, Config>,
    /// Next-hop routers that routing daemons have given to kernels, by network.
    learned: BTreeMap<(String, AnyPrefix), IpAddr>,
    /// Networks whose kernel has something to report.
    telling: VecDeque<String>,
    moves: Option<Moving>,
    moving: Option<Pending<Migration>>,
    loading: Option<Pending<ImageLoaded>>,
    /// Whether the view may be older than the node.
    behind: bool,
    /// What the node was given, if it is recorded.
    pub(super) journal: Option<Journal>,
}

impl ByHand {
    /// An empty node with interfaces of these names. The configuration's `workers` is the number of workers.
    ///
    /// # Errors
    /// If no memory or descriptor is left.
    pub fn start(config: LiveConfig, images: Images, interfaces: &[&str]) -> Result<Self, DaemonError> {
        let (clock, time) = Clock::by_hand(1_000_000_000);
        let live = Live::by_hand(config, &clock)?;
        let (sender, messages) = mpsc::channel();
        let (job_sender, jobs) = mpsc::channel();
        let shared = Arc::new(Shared {
            sender,
            view: RwLock::default(),
            desired: RwLock::default(),
            totals: live.totals_reader(),
            events: EventLog::default(),
            store: Mutex::new(Store::nowhere()),
            queue: Queue::default(),
            down: watch::channel(None).0,
            owner: Owner::new("by-hand"),
            started: Timestamp::now(),
            took_over_ms: OnceLock::new(),
            log: LogPlace::none(),
            workers: live.workers(),
            scheduling: Granted::default(),
            planning: Planning::default(),
            deadline: watch::channel(None).0,
        });
        let around = (Monitor::without_thread()?, Jobs::to(job_sender));
        let mut node = Node::new(shared, live, images, around, config, Drive::Hand(clock));
        let link = |(index, name): (u32, &&str)| {
            let mac = None;
            let (name, mtu) = ((*name).to_owned(), 1500);
            LinkEvent::Present(Link { index, name, mac, mtu, up: true, carrier: true, ..Link::default() })
        };
        node.links_changed((2..).zip(interfaces).map(link).collect());
        node.started();
        let (_, batches) = mpsc::channel();
        Ok(Self {
            node,
            inbox: Inbox { messages, batches, woken: Arc::new(AtomicBool::new(false)) },
            jobs,
            time,
            wires: BTreeMap::new(),
            taps: BTreeMap::new(),
            kernels: BTreeMap::new(),
            learned: BTreeMap::new(),
            telling: VecDeque::new(),
            moves: None,
            moving: None,
            loading: None,
            behind: false,
            journal: None,
        })
    }

    /// Sets the clock.
    #[must_use]
    pub fn time(&self) -> &Hand {
        &self.time
    }

    /// Whether a change is under way for which others wait.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.moving.is_some() || self.loading.is_some()
    }

    /// Applies documents; with `prune`, all other networks are deleted.
    ///
    /// # Errors
    /// As the API; `conflict` while a change is under way.
    pub fn apply(&mut self, text: &str, prune: bool) -> Result<(), Problem> {
        let source = SourceText { name: "documents".to_owned(), text: text.to_owned() };
        let request = ApplyRequest { sources: vec![source], prune, ..ApplyRequest::default() };
        self.change(|now, owner| change::prepare(now, &request, owner))
    }

    /// Deletes a network.
    ///
    /// # Errors
    /// As the API; `conflict` while a change is under way.
    pub fn delete(&mut self, name: &str) -> Result<(), Problem> {
        self.change(|now, owner| change::prepare_delete(now, name, owner))
    }

    fn change(
        &mut self,
        prepare: impl FnOnce(&Desired, &Owner) -> Result<Prepared, Problem>,
    ) -> Result<(), Problem> {
        self.turn_to_change()?;
        let prepared = prepare(&self.node.shared.desired(), &self.node.shared.owner)?;
        self.node.shared.set_desired(Arc::clone(&prepared.desired));
        self.request(Command::Reconcile { prepared: Box::new(prepared), reply: Reply::to_nobody() });
        Ok(())
    }

    /// Gives the node a request, as the API does.
    fn request(&mut self, request: impl Into<Request>) {
        let request = request.into();
        self.note(|| Input::Request(request.clone()));
        self.node.take_request(request);
    }

    fn turn_to_change(&self) -> Result<(), Problem> {
        let detail = "another change is under way";
        if self.is_busy() { Err(Problem::new(ProblemKind::Conflict, detail)) } else { Ok(()) }
    }

    /// Begins to move a network, once nothing is moving.
    ///
    /// # Errors
    /// `conflict` while a change is under way.
    pub fn migrate(&mut self, name: &str, request: &MigrateRequest) -> Result<(), Problem> {
        self.turn_to_change()?;
        self.moves = Some(Moving { request: request.clone(), image: None });
        self.begin_move(name, request.clone());
        Ok(())
    }

    fn begin_move(&mut self, name: &str, request: MigrateRequest) {
        let network = name.to_owned();
        let begun = self.begin(Some(name), |reply| Command::Migrate { name: network, request, reply });
        self.moving = Some(Pending { name: name.to_owned(), begun, answer: None });
    }

    /// Begins to load an image, once nothing is moving.
    ///
    /// # Errors
    /// `conflict` while a change is under way.
    pub fn load_image(&mut self, name: &str) -> Result<(), Problem> {
        self.turn_to_change()?;
        self.begin_load(name);
        Ok(())
    }

    fn begin_load(&mut self, name: &str) {
        let (image, away) = (name.to_owned(), Duration::ZERO);
        let begun = self.begin(None, |reply| Command::LoadImage { name: image, away, reply });
        self.loading = Some(Pending { name: name.to_owned(), begun, answer: None });
    }

    fn begin<T>(
        &mut self,
        name: Option<&str>,
        command: impl FnOnce(Reply<Result<Answering<T>, Problem>>) -> Command,
    ) -> oneshot::Receiver<Result<Answering<T>, Problem>> {
        let (reply, begun) = Reply::channel();
        let (name, command) = (name.map(str::to_owned), command(reply).into());
        let deferred = Deferred::new(TurnQuery::default(), name, Caller::default(), command);
        self.request(Request::WhenIdle(Box::new(deferred)));
        begun
    }

    /// The result of the request, once it is complete. The documents then contain it.
    pub fn answer(&mut self) -> Option<Answer> {
        if let Some(pending) = &mut self.loading {
            let result = taken(pending)?;
            let name = std::mem::take(&mut pending.name);
            self.loading = None;
            if result.is_ok() {
                self.keep(change::with_image(&self.node.shared.desired(), &name));
            }
            return match self.moves.is_some() {
                false => Some(Answer::Loaded(name, result)),
                true => self.go_on_moving(result),
            };
        }
        let pending = self.moving.as_mut()?;
        let result = taken(pending)?;
        // A request that was refused before the move was tried does not count.
        let tried = pending.answer.is_some();
        let full = tried && result.as_ref().is_err_and(|problem| problem.kind == ProblemKind::Full);
        let Moving { request, image } = self.moves.as_ref()?;
        if full && request.load_image && image.is_none() {
            let other = self.node.trial(&pending.name).and_then(|trial| trial.find());
            if let Some(other) = other {
                self.moves.as_mut()?.image = Some(other.clone());
                self.begin_load(&other);
                return None;
            }
        }
        self.moved(result)
    }

    /// An image was loaded for a move, or could not be.
    fn go_on_moving(&mut self, loaded: Result<ImageLoaded, Problem>) -> Option<Answer> {
        match loaded {
            Ok(_) => {
                let (name, request) =
                    (self.moving.as_ref()?.name.clone(), self.moves.as_ref()?.request.clone());
                self.begin_move(&name, request);
                None
            }
            Err(problem) => self.moved(Err(problem)),
        }
    }

    fn moved(&mut self, result: Result<Migration, Problem>) -> Option<Answer> {
        let (Pending { name, .. }, Moving { request, image }) = (self.moving.take()?, self.moves.take()?);
        if request.load_image {
            self.request(Command::EndReservation { reply: Reply::to_nobody() });
        }
        if result.is_ok() {
            let view = self.node.shared.view();
            let shown = view.network(&name).map(|network| network.api.substrate.as_str());
            assert_eq!(shown, Some(request.to.name()), "an answer before what it reports can be seen");
            let now = self.node.shared.desired();
            self.keep(change::placed(&now, &name, moves::placement(request.to)));
        }
        let result = result.map(|migration| Migration { image, ..migration });
        Some(Answer::Moved(name, Box::new(result)))
    }

    fn keep(&mut self, desired: Option<Desired>) {
        if let Some(desired) = desired.map(Arc::new) {
            self.node.shared.set_desired(Arc::clone(&desired));
            self.request(Command::Keep { desired: Target(desired), reply: Reply::to_nobody() });
        }
    }

    /// The node takes a message and applies a piece of a table. Returns whether there was any.
    pub fn step_node(&mut self) -> bool {
        self.note(|| Input::StepNode);
        let message = self.inbox.messages.try_recv().ok();
        let any = message.is_some();
        if let Some(message) = message {
            self.node.handle(message, &self.inbox);
        }
        let more = self.node.routing(&self.inbox);
        self.node.tend_idle(Instant::now());
        self.attach_taps();
        // The daemon's thread takes several messages before it publishes, so one is enough to leave the view behind.
        self.behind = any && !self.behind;
        if !self.behind {
            self.node.publish_changes();
        }
        any || more
    }

    /// The operating system does a job. Returns whether there was one.
    pub fn step_job(&mut self) -> bool {
        self.note(|| Input::StepJob);
        let Ok(job) = self.jobs.try_recv() else { return false };
        let done = match job {
            Job::Setup(name, setup) => {
                // Its kernel reports what is in the document, and nothing else.
                self.learned.retain(|(network, _), _| *network != name);
                self.kernels.insert(name.clone(), setup.config);
                self.telling.push_back(name.clone());
                Done::Setup(name, Ok(None))
            }
            // There are no namespaces to check.
            Job::Look(_) => Done::Look(Vec::new()),
            Job::Delete(name, _) => {
                self.taps.remove(&name);
                Done::Delete(name.clone(), Ok(self.kernels.remove(&name).is_some()))
            }
            Job::Open(opening) => {
                let index = self.node.ports.link(&opening.interface).map(|link| link.index);
                if let Some(plug) = &opening.plug {
                    let end = plug.open().map(|end| OpenPort::end_of_link(end, opening.site.clone()));
                    let done = Done::Open(opening.tag, end.map_err(|error| error.to_string()));
                    let _ = self.node.sender.send(Message::Done(done));
                    return true;
                }
                let opened = MemoryPort::pair(&opening.interface, ROOM_FRAMES).map(|(port, handle)| {
                    self.wires.insert(opening.interface.clone(), handle);
                    let opened = Opened { port: Box::new(port), note: None };
                    OpenPort { opened, index: index.unwrap_or_default(), site: opening.site.clone() }
                });
                Done::Open(opening.tag, opened.map_err(|error: PortError| error.to_string()))
            }
            Job::Close(interface, port) => {
                drop(port);
                Done::Close(interface)
            }
        };
        // The node has the receiver, and this value owns the node.
        let _ = self.node.sender.send(Message::Done(done));
        true
    }

    /// The kernel of a namespace reports all its state. Returns whether any kernel had to.
    pub fn step_kernel(&mut self) -> bool {
        self.note(|| Input::StepKernel);
        let Some(name) = self.telling.pop_front() else { return false };
        if let Some(config) = self.kernels.get(&name) {
            let events = kernel::snapshot(config);
            if !self.feed(&name, events) {
                // The network's monitor does not exist yet.
                self.telling.push_back(name);
                return false;
            }
        }
        true
    }

    /// A routing daemon of a network announces or withdraws a route. Returns whether anything receives it.
    pub fn route(&mut self, name: &str, prefix: AnyPrefix, via: Option<IpAddr>) -> bool {
        self.note(|| Input::Route(name.to_owned(), prefix, via));
        let Some(config) = self.kernels.get(name) else { return false };
        let key = (name.to_owned(), prefix);
        let Some(known) = via.or_else(|| self.learned.get(&key).copied()) else { return true };
        let Some(event) = kernel::route_change(config, prefix, known, via.is_some()) else { return false };
        match via {
            Some(via) => self.learned.insert(key, via),
            None => self.learned.remove(&key),
        };
        self.feed(name, vec![event])
    }

    fn feed(&mut self, name: &str, events: Vec<Event>) -> bool {
        let Some(entry) = self.node.networks.get(name) else { return true };
        let Some(vid) = entry.vid() else { return entry.want().is_none() };
        self.node.give_routes(routes::Input::Events(vid, events));
        true
    }

    /// The card does one round. Returns whether it had anything to do.
    pub fn step_card(&mut self) -> bool {
        self.note(|| Input::StepCard);
        self.node.card.as_ref().is_some_and(|card| card.live.here().is_some_and(hue_card::LiveCard::round))
    }

    /// A worker does one round. Returns whether it had anything to do.
    pub fn step_worker(&mut self, worker: usize) -> bool {
        self.note(|| Input::StepWorker(worker));
        let worked = self.node.live.round(worker);
        // A worker without packets also reports that a port is broken.
        self.forward_failures();
        worked
    }

    /// Passes the workers' reports on ports to the node as messages, as a thread of the daemon does.
    fn forward_failures(&mut self) {
        while let Some(event) = self.node.live.take_port_event() {
            let _ = self.node.sender.send(Message::Port(event));
        }
    }

    /// Ends all pauses before retries.
    pub fn retry(&mut self) {
        self.note(|| Input::Retry);
        self.node.tend(Instant::now() + PATIENCE);
    }

    /// Gives TAPs to networks whose namespaces are ready.
    fn attach_taps(&mut self) {
        let Self { node, taps, .. } = self;
        for (name, have) in node.networks.without_taps() {
            node.give_networks(networks::Input::HasTaps(name.clone()));
            let handles = taps.entry(name.clone()).or_default();
            handles.clear();
            for (port, vport) in have.program.ports.iter().zip(0u16..) {
                let Ok((tap, handle)) = MemoryPort::pair(&port.name, ROOM_FRAMES) else { continue };
                // A worker that has ended has no TAPs.
                let _ = node.live.add_tap(have.program.vid, vport, Box::new(tap));
                handles.push(handle);
            }
        }
    }

    /// Puts a frame onto the wire of an interface; `false` if no port is open on it, or its queue is full.
    #[must_use]
    pub fn send(&self, interface: &str, frame: &[u8]) -> bool {
        self.note(|| Input::Send(interface.to_owned(), Frame(frame.to_vec())));
        self.wires.get(interface).is_some_and(|wire| wire.feed(frame))
    }

    /// The oldest frame that left by an interface and has not been taken yet.
    #[must_use]
    pub fn receive(&self, interface: &str) -> Option<Vec<u8>> {
        let frame = self.wires.get(interface)?.take()?;
        self.note(|| Input::Received(interface.to_owned(), Frame(frame.clone())));
        Some(frame)
    }

    /// The oldest frame that a network's control plane received on a virtual port and that has not been taken yet.
    #[must_use]
    pub fn receive_control(&self, network: &str, vport: usize) -> Option<Vec<u8>> {
        let frame = self.taps.get(network)?.get(vport)?.take()?;
        self.note(|| Input::ReceivedControl(network.to_owned(), vport, Frame(frame.clone())));
        Some(frame)
    }

    /// A network's control plane sends a frame on a virtual port; `false` when it cannot.
    #[must_use]
    pub fn send_control(&self, network: &str, vport: usize, frame: &[u8]) -> bool {
        self.note(|| Input::SendControl(network.to_owned(), vport, Frame(frame.to_vec())));
        self.taps.get(network).and_then(|taps| taps.get(vport)).is_some_and(|tap| tap.feed(frame))
    }

    /// Breaks the wire of an interface: every call on its port fails until the port is opened again.
    pub fn cut(&self, interface: &str) {
        self.note(|| Input::Cut(interface.to_owned()));
        if let Some(wire) = self.wires.get(interface) {
            wire.fail(Some(nix::errno::Errno::ENODEV as i32));
        }
    }

    /// The networks' shares of software's tables.
    #[must_use]
    pub fn tables(&self) -> Tables {
        self.node.tables().0
    }

    /// Whether there is a card that works.
    #[must_use]
    pub fn has_card(&self) -> bool {
        self.node.card.is_some()
    }

    /// Whether frames are inside the card.
    #[must_use]
    pub fn has_frames_on_card(&self) -> bool {
        let idle = self
            .node
            .card
            .as_ref()
            .and_then(|card| card.live.here()?.look(|runner| runner.card().twin().idle()));
        idle == Some(false)
    }

    /// Whether control places a network on the card.
    #[must_use]
    pub fn is_on_card(&self, network: &str) -> bool {
        self.node.networks.get(network).is_some_and(Entry::is_on_card)
    }

    /// Whether a network is set up and accepts frames.
    #[must_use]
    pub fn runs(&self, network: &str) -> bool {
        self.node.networks.get(network).is_some_and(|entry| {
            entry.state() == NetworkState::Running && entry.have().is_some() && entry.is_as_wanted()
        })
    }
}

/// The answer, if it has arrived.
fn taken<T>(pending: &mut Pending<T>) -> Option<Result<T, Problem>> {
    if pending.answer.is_none() {
        match received(&mut pending.begun)? {
            Ok(answer) => pending.answer = Some(answer),
            Err(problem) => return Some(Err(problem)),
        }
    }
    received(pending.answer.as_mut()?)
}

/// The value that was sent, if any; the sender may have gone.
fn received<T>(receiver: &mut oneshot::Receiver<Result<T, Problem>>) -> Option<Result<T, Problem>> {
    match receiver.try_recv() {
        Ok(result) => Some(result),
        Err(oneshot::error::TryRecvError::Empty) => None,
        Err(oneshot::error::TryRecvError::Closed) => {
            Some(Err(Problem::new(ProblemKind::Internal, "the card failed while the network moved")))
        }
    }
}
