//! Work that takes its time: namespaces, control groups and what is in them, done by threads of their own.
//!
//! Flow: node thread → [`Job`] → thread → [`Done`] → node thread. Invariants: at most one job of a network is under way, which
//! the node sees to; a job leaves its network so that doing it again is right, whatever happened.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use hue_host::cgroup::Limits;
use hue_host::control::{Changes, Config, ControlNamespace, Owner};
use hue_ports::Tap;

/// Threads. They do little and wait much: for the kernel, which makes interfaces one after the other.
const THREADS: usize = 4;

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

/// Something to do for a network.
pub enum Job {
    /// Make its namespace what it is to be.
    Setup(String, Box<Setup>),
    /// Remove everything of it.
    Delete(String),
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

/// What came of a job.
pub enum Done {
    /// Of a setup.
    Setup(String, Result<Box<Made>, String>),
    /// Of a removal: whether there was anything.
    Delete(String, Result<bool, String>),
}

/// The threads. They end when this is dropped and their jobs are done.
pub struct Jobs {
    queue: Sender<Job>,
}

impl Jobs {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(owner: Owner, done: impl Fn(Done) + Send + Sync + 'static) -> Result<Self, std::io::Error> {
        let (queue, jobs) = mpsc::channel();
        let (jobs, done, owner) = (Arc::new(Mutex::new(jobs)), Arc::new(done), Arc::new(owner));
        for number in 0..THREADS {
            let (jobs, done, owner) = (Arc::clone(&jobs), Arc::clone(&done), Arc::clone(&owner));
            std::thread::Builder::new().name(format!("hue-host-{number}")).spawn(move || {
                while let Some(job) = next(&jobs) {
                    done(work(&owner, job));
                }
            })?;
        }
        Ok(Self { queue })
    }

    /// Has a job done.
    pub fn add(&self, job: Job) {
        // The threads live as long as the queue.
        let _ = self.queue.send(job);
    }
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn work(owner: &Owner, job: Job) -> Done {
    match job {
        Job::Setup(name, setup) => {
            let made = guarded(|| set_up(owner, &name, &setup));
            Done::Setup(name, made.map(Box::new))
        }
        Job::Delete(name) => {
            let gone = guarded(|| ControlNamespace::delete(owner, &name).map_err(|error| error.to_string()));
            Done::Delete(name, gone)
        }
    }
}

/// One job that panics shall not end the thread: its network is degraded, the others go on.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("a bug of hueplane stopped this; see the log, and report it".to_owned()))
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
