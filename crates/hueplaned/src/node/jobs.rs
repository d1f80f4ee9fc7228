//! Slow work, done by separate threads: setting up namespaces and control groups, and opening ports.
//!
//! Flow: node thread → [`Job`] → thread → [`Done`] → node thread. Invariants: at most one job per network and one per
//! interface is in progress, which the node ensures; whatever happens, a job leaves its network so that it can be
//! repeated. Ports have their own threads: a port that comes back does not wait for the setup of hundreds of
//! networks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::HostError;
use hue_host::cgroup::Limits;
use hue_host::claim::{Claimed, Claims};
use hue_host::control::{Changes, Config, ControlNamespace, Owner};
use hue_host::holder::Holder;
use hue_host::links::Links;
use hue_intent::NodePort;
use hue_ports::{CableEnd, CablePlug, Keep, OpenOptions, Opened, Port, PortError, Tap, Wanted as Driver};

use super::drift::{self, Look, Seen};
use super::site::Site;
use super::take_over::{Ending, PATIENCE};

/// Threads for networks. They mostly wait for the kernel, which creates interfaces one after the other.
const THREADS: usize = 4;
/// Threads for ports. The kernel takes up to a third of a second for an AF_XDP socket, and mostly waits.
const PORT_THREADS: usize = 8;

/// Pause before another attempt to open a port that the daemon before has not closed yet.
const PAUSE: Duration = Duration::from_millis(1);

/// Target state of a network's namespace.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Limits of its processes.
    pub limits: Limits,
    /// Its contents.
    pub config: Config,
    /// Whether to open the TAPs, because they are not open yet.
    pub taps: bool,
    /// The namespace that the network has already.
    pub held: Option<Arc<ControlNamespace>>,
}

/// A port to open.
pub struct Opening {
    /// Its interface.
    pub interface: String,
    /// Of an end of a link: its plug, which is opened instead of an interface.
    pub plug: Option<CablePlug>,
    /// Options for opening it.
    pub options: OpenOptions,
    /// MTU of a device that we create; the device is also switched on.
    pub make: Option<u32>,
    /// Where it will be used.
    pub site: Site,
    /// The port it is opened for.
    pub tag: PortTag,
    /// A daemon that is closing its ports, which this may be one of.
    pub predecessor: Option<Ending>,
}

/// The port that an interface is opened for.
#[derive(Clone, PartialEq, Debug)]
pub struct PortTag {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: PortId,
    /// Target state.
    pub want: NodePort,
}

/// A job.
pub enum Job {
    /// Bring a network's namespace to its target state.
    Setup(String, Box<Setup>),
    /// Remove everything of a network, whose namespace may be open.
    Delete(String, Option<Arc<ControlNamespace>>),
    /// Open a port.
    Open(Box<Opening>),
    /// Close an unwanted port: its interface, and the port.
    Close(String, Box<dyn Port>),
    /// Check networks for drift.
    Look(Vec<Look>),
}

/// Result of a setup.
pub struct Made {
    /// The namespace and control group.
    pub control: ControlNamespace,
    /// Whether the namespace was created now.
    pub created: bool,
    /// What was changed.
    pub changes: Changes,
    /// The TAPs, in the order of the virtual ports, if they were opened. They persist when the daemon stops, so that
    /// routing daemons keep their interfaces.
    pub taps: Option<Vec<Tap>>,
}

/// An opened port.
pub struct OpenPort {
    /// The port.
    pub opened: Opened,
    /// Index of its interface; 0 for an end of a link.
    pub index: u32,
    /// Where it was opened.
    pub site: Site,
}

impl OpenPort {
    /// An opened end of a link.
    pub fn end_of_link(end: CableEnd, site: Site) -> Self {
        Self { opened: Opened { port: Box::new(end), note: None }, index: 0, site }
    }
}

/// Result of a job.
pub enum Done {
    /// A setup; `None` if the operating system is simulated.
    Setup(String, Result<Option<Box<Made>>, String>),
    /// A removal: whether there was anything to remove.
    Delete(String, Result<bool, String>),
    /// Opening a port.
    Open(PortTag, Result<OpenPort, String>),
    /// Closing a port of this interface.
    Close(String),
    /// A check of networks.
    Look(Vec<Seen>),
}

/// The threads. They end when this is dropped and their jobs are done.
pub struct Jobs {
    networks: Sender<Job>,
    ports: Sender<Job>,
}

impl Jobs {
    /// Starts the threads.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        owner: Owner,
        holder: Arc<Holder>,
        done: impl Fn(Done) + Send + Sync + 'static,
    ) -> Result<Self, std::io::Error> {
        let (done, owner) = (Arc::new(done), Arc::new((owner, holder, Claims::default())));
        let start = |name: &str, threads: usize| {
            let (queue, jobs) = mpsc::channel();
            let jobs = Arc::new(Mutex::new(jobs));
            for number in 0..threads {
                let (jobs, done, owner) = (Arc::clone(&jobs), Arc::clone(&done), Arc::clone(&owner));
                std::thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
                    while let Some(job) = next(&jobs) {
                        done(work(&owner, job));
                    }
                })?;
            }
            Ok::<_, std::io::Error>(queue)
        };
        Ok(Self { networks: start("hue-host", THREADS)?, ports: start("hue-port", PORT_THREADS)? })
    }

    /// A version without threads: all jobs go to `queue`.
    pub fn to(queue: Sender<Job>) -> Self {
        Self { networks: queue.clone(), ports: queue }
    }

    /// Queues a job.
    pub fn add(&self, job: Job) {
        let queue = match &job {
            Job::Setup(..) | Job::Delete(..) | Job::Look(_) => &self.networks,
            Job::Open(_) | Job::Close(..) => &self.ports,
        };
        // The threads live as long as the queue.
        let _ = queue.send(job);
    }
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn work((owner, holder, claims): &(Owner, Arc<Holder>, Claims), job: Job) -> Done {
    match job {
        Job::Setup(name, setup) => {
            let made = guarded(|| set_up(owner, holder, &name, &setup));
            Done::Setup(name, made.map(|made| Some(Box::new(made))))
        }
        Job::Delete(name, held) => {
            // Its descriptors would keep the namespace alive.
            warn(&name, holder.forget(&name, |_| true));
            let gone = guarded(|| remove(owner, &name, held.as_deref()).map_err(|error| error.to_string()));
            Done::Delete(name, gone)
        }
        Job::Look(looks) => Done::Look(guarded(|| Ok(drift::look(looks))).unwrap_or_default()),
        Job::Open(opening) => {
            let opened = open_after(&opening, claims);
            Done::Open(opening.tag, opened)
        }
        Job::Close(interface, port) => {
            // It holds no slot of the pool yet: no packets were requested from it.
            let _ = guarded(|| {
                drop(port);
                Ok(())
            });
            Done::Close(interface)
        }
    }
}

/// A job that panics must not end its thread: its network becomes degraded or its port down, and others continue.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("a bug in hueplane stopped this; see the log, and report it".to_owned()))
}

/// Opens a port, as soon as the daemon before has closed it.
fn open_after(opening: &Opening, claims: &Claims) -> Result<OpenPort, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let waits =
            opening.predecessor.as_ref().is_some_and(|ending| !ending.predecessor.process.has_ended());
        match guarded(|| open_port(opening, claims, waits)) {
            Err(_) if waits && Instant::now() < until => std::thread::sleep(PAUSE),
            opened => return opened,
        }
    }
}

/// Opens a port. The index is that of the opened interface, not of one that took its name meanwhile.
fn open_port(opening: &Opening, claims: &Claims, waits: bool) -> Result<OpenPort, String> {
    let Opening { interface, plug, options, make, site, .. } = opening;
    if let Some(plug) = plug {
        let end = plug.open().map_err(|error| error.to_string())?;
        return Ok(OpenPort::end_of_link(end, site.clone()));
    }
    let text = |error: HostError| error.to_string();
    let mut links = Links::here().map_err(text)?;
    let before = match make {
        Some(_) => None, // created by opening
        None => Some(links.index_of(interface).map_err(text)?),
    };
    let kept = Arc::new(OnceLock::new());
    let options = OpenOptions { keep: Some(Arc::clone(&kept) as Keep), ..options.clone() };
    let mut unguarded = None;
    let mut claim = || {
        // The kernel gives a TAP device, which has no `before`, to one process only.
        let Some(index) = before else { return Ok(()) };
        match claims.take(interface, index).map_err(|taken| taken.to_string())? {
            Claimed::Ours(claim) => drop(kept.set(claim)),
            Claimed::Unguarded(why) => unguarded = Some(why),
        }
        Ok::<_, String>(())
    };
    // The daemon before gives up its claim last, but the kernel gives an AF_XDP queue to one process only. So most of the
    // work of opening was done before that daemon closes the port. Only the first attempt has the result.
    let by_afxdp = matches!(options.driver, Driver::Auto | Driver::AfXdp);
    let prepared = opening.predecessor.as_ref().and_then(|ending| ending.take_prepared(interface));
    let early = prepared
        .filter(|prepared| {
            by_afxdp
                && before.zip(site.memory()).is_some_and(|(index, memory)| prepared.is_for(index, memory))
        })
        .and_then(|prepared| prepared.open(options.keep.clone()).ok())
        .or_else(|| {
            let options = OpenOptions { driver: Driver::AfXdp, busy_for: PATIENCE, ..options.clone() };
            (waits && by_afxdp).then(|| site.open(interface, &options).ok())?
        });
    claim()?;
    let mut opened = early.map_or_else(|| site.open(interface, &options), Ok)?;
    if let Some(mtu) = make {
        links.set_mtu(interface, *mtu).map_err(text)?;
        links.set_up(interface, true).map_err(text)?;
    }
    let index = links.index_of(interface).map_err(text)?;
    if before.is_some_and(|before| before != index) {
        return Err("its interface was created again while it was opened".to_owned());
    }
    if let Some(why) = unguarded {
        opened.note = Some(opened.note.map_or_else(|| why.clone(), |note| format!("{note}; {why}")));
    }
    Ok(OpenPort { opened, index, site: site.clone() })
}

fn set_up(owner: &Owner, holder: &Holder, name: &str, setup: &Setup) -> Result<Made, String> {
    let text = |error: HostError| error.to_string();
    let ensured = match &setup.held {
        None => ControlNamespace::ensure(owner, name, &setup.limits, setup.config.families).map_err(text)?,
        Some(held) => {
            held.ensure_again(owner, name, &setup.limits, setup.config.families).map_err(|error| {
                // Even if another namespace has the name, the network's own namespace is brought to its target state.
                match held.configure(&setup.config) {
                    Err(more) => format!("{error}; {more}"),
                    Ok(_) => error.to_string(),
                }
            })?
        }
    };
    let control = ensured.control;
    let interfaces: Vec<&str> = setup.config.ports.iter().map(|port| port.interface.as_str()).collect();
    let taps = if setup.taps {
        let open = || interfaces.iter().map(|interface| open_tap(holder, name, interface)).collect();
        let taps: Result<Vec<Tap>, _> = control.namespace.run(open).map_err(text)?;
        Some(taps.map_err(|error| error.to_string())?)
    } else {
        None
    };
    if setup.taps {
        warn(name, holder.forget(name, |interface| !interfaces.contains(&interface)));
    }
    let mut changes = ensured.changes;
    let more = control.configure(&setup.config).map_err(text)?;
    changes.words.extend(more.words);
    changes.routes += more.routes;
    changes.neighbours += more.neighbours;
    changes.refused.extend(more.refused);
    Ok(Made { control, created: ensured.created, changes, taps })
}

/// Removes everything of a network. A foreign namespace that has its name is not touched.
fn remove(owner: &Owner, name: &str, held: Option<&ControlNamespace>) -> Result<bool, HostError> {
    match ControlNamespace::delete(owner, name) {
        // The network's own namespace has no name; it ends when nothing uses it any more.
        Err(HostError::Foreign { .. }) => {
            held.map_or(Ok(()), ControlNamespace::remove_ports).map(|()| held.is_some())
        }
        gone => gone,
    }
}

/// Opens the TAP of a virtual port. If the descriptor of an earlier daemon is held, the device has kept its carrier and
/// the frames that its kernel has sent since.
fn open_tap(holder: &Holder, network: &str, interface: &str) -> Result<Tap, PortError> {
    if let Some(tap) = holder.get(network, interface).and_then(|fd| Tap::adopt(interface, fd)) {
        return Ok(tap);
    }
    // What is held may be the same device under another name, which allows no second descriptor.
    warn(network, holder.forget(network, |held| held == interface));
    let tap = Tap::open(interface, true)?;
    warn(network, holder.put(network, interface, tap.fd()));
    Ok(tap)
}

/// Reports that descriptors cannot be held. The network works without.
fn warn(network: &str, held: std::io::Result<()>) {
    if let Err(error) = held {
        tracing::warn!(network, %error, "virtual ports will lose their carrier when the daemon restarts");
    }
}
