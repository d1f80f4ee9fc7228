//! Work that takes its time: namespaces, control groups and what is in them, and opening ports, done by threads of their own.
//!
//! Flow: node thread → [`Job`] → thread → [`Done`] → node thread. Invariants: at most one job of a network, and one of an
//! interface, is under way, which the node sees to; a job leaves its network so that doing it again is right, whatever
//! happened. Ports have threads of their own: one that comes back does not wait until hundreds of networks are set up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use hue_demux::PortId;
use hue_host::cgroup::Limits;
use hue_host::control::{Changes, Config, ControlNamespace, Owner};
use hue_host::links::Links;
use hue_intent::NodePort;
use hue_ports::{OpenOptions, Opened, Port, Region, Tap, open_on};

/// Threads for networks. They do little and wait much: for the kernel, which makes interfaces one after the other.
const THREADS: usize = 4;
/// Threads for ports. An AF_XDP socket takes the kernel up to a third of a second, most of which it waits.
const PORT_THREADS: usize = 2;

/// What a network's namespace is to be.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Limits of its processes.
    pub limits: Limits,
    /// What is in it.
    pub config: Config,
    /// Whether the TAPs are to be opened: they are not open yet.
    pub taps: bool,
}

/// A port to open.
pub struct Opening {
    /// Its interface.
    pub interface: String,
    /// How.
    pub options: OpenOptions,
    /// Of a device that we make: its MTU. It is switched on, too.
    pub make: Option<u32>,
    /// Packet memory of the worker that it is for.
    pub region: Region,
    /// For whom, as the node knows it.
    pub tag: PortTag,
}

/// For which port an interface is opened.
#[derive(Clone, PartialEq, Debug)]
pub struct PortTag {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: PortId,
    /// What it is to be.
    pub want: NodePort,
}

/// Something to do.
pub enum Job {
    /// Make its namespace what it is to be.
    Setup(String, Box<Setup>),
    /// Remove everything of it.
    Delete(String),
    /// Open a port.
    Open(Box<Opening>),
    /// Close a port that nobody wants any more: its interface, and it.
    Close(String, Box<dyn Port>),
}

/// What came of a setup.
pub struct Made {
    /// The namespace and control group.
    pub control: ControlNamespace,
    /// The namespace was made now.
    pub created: bool,
    /// What was different.
    pub changes: Changes,
    /// The TAPs, in the order of the virtual ports, if they were to be opened. They stay when the daemon goes: routing
    /// daemons keep their interfaces.
    pub taps: Option<Vec<Tap>>,
}

/// A port that was opened.
pub struct OpenPort {
    /// It.
    pub opened: Opened,
    /// Index of its interface.
    pub index: u32,
    /// The memory it was opened over.
    pub region: Region,
}

/// What came of a job.
pub enum Done {
    /// Of a setup; nothing where there is no operating system to set up.
    Setup(String, Result<Option<Box<Made>>, String>),
    /// Of a removal: whether there was anything.
    Delete(String, Result<bool, String>),
    /// Of opening a port.
    Open(PortTag, Result<OpenPort, String>),
    /// Of closing a port of this interface.
    Close(String),
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
    /// When the system has no thread left.
    pub fn start(owner: Owner, done: impl Fn(Done) + Send + Sync + 'static) -> Result<Self, std::io::Error> {
        let (done, owner) = (Arc::new(done), Arc::new(owner));
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

    /// No threads: jobs go to who does them otherwise.
    pub fn to(queue: Sender<Job>) -> Self {
        Self { networks: queue.clone(), ports: queue }
    }

    /// Has a job done.
    pub fn add(&self, job: Job) {
        let queue = match &job {
            Job::Setup(..) | Job::Delete(_) => &self.networks,
            Job::Open(_) | Job::Close(..) => &self.ports,
        };
        // The threads live as long as the queue.
        let _ = queue.send(job);
    }
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn work(owner: &Owner, job: Job) -> Done {
    match job {
        Job::Setup(name, setup) => {
            let made = guarded(|| set_up(owner, &name, &setup));
            Done::Setup(name, made.map(|made| Some(Box::new(made))))
        }
        Job::Delete(name) => {
            let gone = guarded(|| ControlNamespace::delete(owner, &name).map_err(|error| error.to_string()));
            Done::Delete(name, gone)
        }
        Job::Open(opening) => {
            let opened = guarded(|| open_port(&opening));
            Done::Open(opening.tag, opened)
        }
        Job::Close(interface, port) => {
            // It holds no slot of the pool yet: it was never asked for packets.
            let _ = guarded(|| {
                drop(port);
                Ok(())
            });
            Done::Close(interface)
        }
    }
}

/// One job that panics shall not end the thread: its network is degraded or its port down, the others go on.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("a bug of hueplane stopped this; see the log, and report it".to_owned()))
}

/// Opens a port. Its index is that of the interface that was opened, not of one that took the name meanwhile.
fn open_port(opening: &Opening) -> Result<OpenPort, String> {
    let Opening { interface, options, make, region, .. } = opening;
    let text = |error: hue_host::HostError| error.to_string();
    let mut links = Links::here().map_err(text)?;
    let before = match make {
        Some(_) => None, // opening makes it
        None => Some(links.index_of(interface).map_err(text)?),
    };
    let opened = open_on(interface, options, region).map_err(|error| error.to_string())?;
    if let Some(mtu) = make {
        links.set_mtu(interface, *mtu).map_err(text)?;
        links.set_up(interface, true).map_err(text)?;
    }
    let index = links.index_of(interface).map_err(text)?;
    if before.is_some_and(|before| before != index) {
        return Err("its interface was made anew while it was opened".to_owned());
    }
    Ok(OpenPort { opened, index, region: region.clone() })
}

fn set_up(owner: &Owner, name: &str, setup: &Setup) -> Result<Made, String> {
    let text = |error: hue_host::HostError| error.to_string();
    let ensured = ControlNamespace::ensure(owner, name, &setup.limits).map_err(text)?;
    let control = ensured.control;
    let interfaces: Vec<&str> = setup.config.ports.iter().map(|port| port.interface.as_str()).collect();
    let taps = if setup.taps {
        let open = || interfaces.iter().map(|name| Tap::open(name, true)).collect();
        let taps: Result<Vec<Tap>, _> = control.namespace.run(open).map_err(text)?;
        Some(taps.map_err(|error| error.to_string())?)
    } else {
        None
    };
    let mut changes = ensured.changes;
    let more = control.configure(&setup.config).map_err(text)?;
    changes.words.extend(more.words);
    changes.routes += more.routes;
    changes.neighbours += more.neighbours;
    changes.refused.extend(more.refused);
    Ok(Made { control, created: ensured.created, changes, taps })
}
