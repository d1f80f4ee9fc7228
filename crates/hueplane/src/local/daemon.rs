//! The daemon of a node: this program, started again as `hueplane up` in the node's namespace, with its own
//! directories.
//!
//! Unless it is to stay, its standard input is a pipe from this process. If this process is killed, the pipe ends, and the daemon
//! stops and removes its networks.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hue_host::netns::Namespace;
use hueplaned::client::{Client, ClientError, socket_in};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::stop;
use crate::failure::Failure;

/// Longest time until it answers.
const START_MAX: Duration = Duration::from_secs(60);
/// Longest time until it stops.
const END_MAX: Duration = Duration::from_secs(60);
/// Interval of checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Log lines shown in an error.
const LOG_LINES: usize = 10;

/// Directories and names of a daemon.
#[derive(Clone, Debug)]
pub struct Places {
    /// Run directory.
    pub run_dir: PathBuf,
    /// State directory.
    pub state_dir: PathBuf,
    /// Log file.
    pub log: PathBuf,
    /// Prefix of the names of the networks' namespaces.
    pub network_prefix: String,
}

/// A running daemon.
pub struct Daemon {
    child: Child,
    /// A client of the daemon.
    pub client: Client,
}

impl Daemon {
    /// Starts the daemon with more options of `hueplane up`, and waits until it answers. If `kept` is set, it continues after
    /// this process.
    pub fn start(node: &Namespace, places: &Places, kept: bool, more: &[&OsStr]) -> Result<Self, Failure> {
        let broken = |what: &str, error: std::io::Error| Failure::Broken(format!("{what}: {error}"));
        let program = std::env::current_exe().map_err(|error| broken("the program's own file", error))?;
        let log = File::create(&places.log)
            .map_err(|source| Failure::Output { path: places.log.clone(), source })?;
        let errors = log.try_clone().map_err(|error| broken("the daemon's log", error))?;
        let mut command = Command::new(program);
        command.arg("up").arg("--run-dir").arg(&places.run_dir).arg("--state-dir").arg(&places.state_dir);
        command.arg("--namespace-prefix").arg(&places.network_prefix).args(more);
        if kept {
            command.stdin(Stdio::null());
        } else {
            command.arg("--until-eof").stdin(Stdio::piped());
        }
        command.stdout(log).stderr(errors).process_group(0);
        // It is in the node's network namespace, but shares everything else: the namespaces that it creates
        // are visible to all.
        let started = node.run(move || command.spawn())?;
        let child = started.map_err(|error| broken("the daemon cannot be started", error))?;
        let mut daemon = Self { child, client: Client::unix(socket_in(&places.run_dir))? };
        match daemon.wait_ready(places) {
            Ok(()) => Ok(daemon),
            Err(failure) => {
                daemon.stop()?;
                Err(failure)
            }
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops the daemon, with SIGTERM if possible.
    pub fn stop(mut self) -> Result<(), Failure> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().map(Pid::from_raw) {
            // An error means that it has stopped already.
            let _ = kill(pid, Signal::SIGTERM);
        }
        let deadline = Instant::now() + END_MAX;
        let waits = |error: std::io::Error| Failure::Broken(format!("the daemon is lost: {error}"));
        while self.child.try_wait().map_err(waits)?.is_none() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return Err(Failure::Broken(format!(
                    "the daemon did not stop within {} s",
                    END_MAX.as_secs()
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn wait_ready(&mut self, places: &Places) -> Result<(), Failure> {
        let deadline = Instant::now() + START_MAX;
        loop {
            stop::check()?;
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::Broken(format!("the daemon stopped ({status}):\n{}", tail(places))));
            }
            match self.client.status() {
                Ok(_) => return Ok(()),
                Err(ClientError::NotRunning { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(POLL_INTERVAL)
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The last lines of the daemon's log.
fn tail(places: &Places) -> String {
    let log = std::fs::read_to_string(&places.log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n")
}
