//! The demo's daemon: this program again, as `hueplane up`, in the node's namespace and with directories of its own.
//!
//! Its standard input is a pipe of ours: when the demo is killed, the pipe ends, and the daemon goes down by itself and takes
//! its networks with it.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hue_host::netns::Namespace;
use hueplaned::client::{Client, ClientError, socket_in};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::place::Place;
use super::stop;
use crate::failure::Failure;

/// Longest time until it answers.
const START_MAX: Duration = Duration::from_secs(60);
/// Longest time that it takes to end.
const END_MAX: Duration = Duration::from_secs(60);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of its log that an error shows.
const LOG_LINES: usize = 10;

/// A daemon that runs.
pub struct Daemon {
    child: Child,
    /// To talk to it.
    pub client: Client,
}

impl Daemon {
    /// Starts it and waits until it answers. One that is to be kept outlives us.
    pub fn start(node: &Namespace, place: &Place, kept: bool) -> Result<Self, Failure> {
        let broken = |what: &str, error: std::io::Error| Failure::Broken(format!("{what}: {error}"));
        let program = std::env::current_exe().map_err(|error| broken("the program's own file", error))?;
        let log =
            File::create(place.log()).map_err(|source| Failure::Output { path: place.log(), source })?;
        let errors = log.try_clone().map_err(|error| broken("the daemon's log", error))?;
        let mut command = Command::new(program);
        command.arg("up").arg("--run-dir").arg(place.run_dir()).arg("--state-dir").arg(place.state_dir());
        command.arg("--namespace-prefix").arg(place.network_prefix());
        if kept {
            command.stdin(Stdio::null());
        } else {
            command.arg("--until-eof").stdin(Stdio::piped());
        }
        command.stdout(log).stderr(errors).process_group(0);
        // It is in the node's network, and else sees what we see: the namespaces it makes are there for everybody.
        let started = node.run(move || command.spawn())?;
        let child = started.map_err(|error| broken("the daemon cannot be started", error))?;
        let mut daemon = Self { child, client: Client::unix(socket_in(&place.run_dir()))? };
        match daemon.wait_ready(place) {
            Ok(()) => Ok(daemon),
            Err(failure) => {
                daemon.stop()?;
                Err(failure)
            }
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, gently if it listens.
    pub fn stop(mut self) -> Result<(), Failure> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().map(Pid::from_raw) {
            // An error says that it is gone already.
            let _ = kill(pid, Signal::SIGTERM);
        }
        let deadline = Instant::now() + END_MAX;
        let waits = |error: std::io::Error| Failure::Broken(format!("the daemon is lost: {error}"));
        while self.child.try_wait().map_err(waits)?.is_none() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return Err(Failure::Broken(format!("the daemon did not end in {} s", END_MAX.as_secs())));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn wait_ready(&mut self, place: &Place) -> Result<(), Failure> {
        let deadline = Instant::now() + START_MAX;
        loop {
            stop::check()?;
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::Broken(format!("the daemon ended ({status}):\n{}", tail(place))));
            }
            match self.client.status() {
                Ok(_) => return Ok(()),
                Err(ClientError::NotRunning { .. }) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The last words of the daemon.
fn tail(place: &Place) -> String {
    let log = std::fs::read_to_string(place.log()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n")
}
