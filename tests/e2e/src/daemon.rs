//! The daemon under test and its command line: the built `hueplane`, with directories of its own.
//!
//! `HUEPLANE` names the binary. Without it, the workspace's binary is built first, so that a test never runs an old one.
//! When a test fails, the end of the daemon's log is printed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::document::all;
use crate::lab::{Lab, Pair};
use crate::shell::{self, Output};
use crate::wait::{Deadline, until};

/// Lines of the log that a failed test shows.
const LOG_LINES: usize = 60;

static RELEASE: AtomicBool = AtomicBool::new(false);

/// From now on the binary is an optimised build, unless `HUEPLANE` names one. For measurements.
pub fn use_release() {
    RELEASE.store(true, Ordering::Relaxed);
}

/// The binary under test.
///
/// # Panics
/// When it cannot be built.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(named) = std::env::var_os("HUEPLANE") {
            let path = PathBuf::from(named);
            return path
                .canonicalize()
                .unwrap_or_else(|error| panic!("HUEPLANE={}: {error}", path.display()));
        }
        let profile = if RELEASE.load(Ordering::Relaxed) { "release" } else { "test" };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--profile", profile, "-j2", "-p", "hueplane"]);
        command.args(["--message-format", "json-render-diagnostics"]);
        let output = shell::run(command.current_dir(env!("CARGO_MANIFEST_DIR"))).expect_ok();
        let messages = output.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut built = messages.filter_map(|message| {
            let name = message["target"]["name"].as_str()? == "hueplane";
            name.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
        });
        built.next_back().unwrap_or_else(|| panic!("no binary was built: {output}"))
    })
}

/// The command line for one daemon.
#[derive(Clone, Default, Debug)]
pub struct Cli {
    /// Directory of the socket.
    pub run_dir: PathBuf,
    /// Directory of the store.
    pub state_dir: PathBuf,
    /// Folder with images of the card, if there are any.
    pub images: Option<PathBuf>,
    /// A command that starts the daemon, followed by the daemon's command line. If empty, the daemon is started directly.
    pub through: Vec<String>,
}

impl Cli {
    /// For a daemon with directories in a lab's folder.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        Self { run_dir: lab.folder().join("run"), state_dir: lab.folder().join("state"), ..Self::default() }
    }

    /// The daemon's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.run_dir.join("hueplane.sock")
    }

    /// A command, to be started by the caller.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.with_places(Command::new(binary()), arguments)
    }

    /// The command that becomes the daemon.
    fn daemon_command(&self, arguments: &[&str]) -> Command {
        let Some((program, before)) = self.through.split_first() else { return self.command(arguments) };
        let mut command = shell::command(program);
        command.args(before).arg(binary());
        self.with_places(command, arguments)
    }

    fn with_places(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments);
        command.env("HUEPLANE_RUN_DIR", &self.run_dir).env("HUEPLANE_STATE_DIR", &self.state_dir);
        if let Some(images) = &self.images {
            command.env("HUEPLANE_IMAGES", images);
        }
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        shell::run(&mut self.command(arguments))
    }

    /// Runs a command with bytes on standard input.
    #[track_caller]
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        shell::run_with(&mut self.command(arguments), input.as_bytes())
    }

    /// Runs a command that must succeed, and reads its JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.extend_from_slice(&["-o", "json"]);
        self.run(&all).expect_ok().json()
    }

    /// Applies documents, which must succeed.
    #[track_caller]
    pub fn apply(&self, documents: &str, more: &[&str]) -> Value {
        let mut arguments = vec!["apply", "-f", "-", "-o", "json"];
        arguments.extend_from_slice(more);
        self.run_with(&arguments, documents).expect_ok().json()
    }

    /// Counters of a network.
    ///
    /// # Panics
    /// When there is no such network.
    #[track_caller]
    #[must_use]
    pub fn stats(&self, network: &str) -> Value {
        let mut json = self.json(&["stats", network]);
        json["networks"]
            .as_array_mut()
            .and_then(Vec::pop)
            .unwrap_or_else(|| panic!("{network}: no counters: {json}"))
    }

    /// The events that the daemon keeps.
    #[track_caller]
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.json(&["events"]).as_array().cloned().unwrap_or_default()
    }

    /// Whether an event of a kind has happened.
    #[track_caller]
    #[must_use]
    pub fn happened(&self, kind: &str) -> bool {
        self.events().iter().any(|event| event["kind"] == kind)
    }

    /// Runs a command in a network.
    #[track_caller]
    pub fn exec(&self, network: &str, command: &[&str]) -> Output {
        let mut arguments = vec!["exec", network, "--"];
        arguments.extend_from_slice(command);
        self.run(&arguments)
    }

    /// Warms up pairs of hosts until their networks [forward every packet directly](Self::settle).
    #[track_caller]
    pub fn warm_up(&self, pairs: &[&Pair]) {
        for pair in pairs {
            pair.warm_up();
            self.settle(&[pair.name()], || {
                pair.left.ping(pair.right.ip(), 1) == 1 && pair.right.ping(pair.left.ip(), 1) == 1
            });
        }
    }

    /// Waits until `ping` succeeds and these networks forward its packets directly. Only then does a flow keep its order
    /// from its first packet on: what the plane cannot forward yet, because the neighbour is not known or the card does not
    /// have the route, goes through the control plane or through software, and what follows can overtake it.
    ///
    /// # Panics
    /// When pings are not answered, or packets still take a detour after 60 s.
    #[track_caller]
    pub fn settle(&self, networks: &[&str], mut ping: impl FnMut() -> bool) {
        // Counters can be older than the answer to a ping, so several rounds must agree.
        const ROUNDS: usize = 3;
        let (mut last, mut same) = (None, 0);
        until(&format!("{networks:?} forward directly"), 20, || {
            let answered = ping();
            let now: u64 = networks.iter().map(|network| self.detours(network)).sum();
            same = if answered && last == Some(now) { same + 1 } else { 0 };
            last = Some(now);
            same == ROUNDS
        });
    }

    /// The process of the card in the state directory, if there is one, whether a daemon runs or not.
    #[must_use]
    pub fn card_pid(&self) -> Option<u32> {
        let socket = self.state_dir.join("card.sock");
        let is_it = |folder: &Path| {
            let line = std::fs::read(folder.join("cmdline")).unwrap_or_default();
            let mut arguments = line.split(|byte| *byte == 0).skip(1);
            arguments.next() == Some(b"run-card")
                && arguments.next() == Some(socket.as_os_str().as_encoded_bytes())
        };
        let mut folders = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        folders.find(|folder| is_it(folder))?.file_name()?.to_str()?.parse().ok()
    }

    /// Packets of a network to unknown neighbours, and packets that software forwarded although the network is on the card.
    fn detours(&self, network: &str) -> u64 {
        let stats = self.stats(network);
        let punts = stats["punts"].as_object().into_iter().flatten();
        let unknown = punts.filter(|(outcome, _)| outcome.ends_with("no_neighbour")).map(|(_, count)| count);
        let ports = stats["ports"].as_array().into_iter().flatten().map(|port| &port["forwarded"]);
        let on_card = self.json(&["get", "networks", network])["substrate"] == "card";
        unknown.chain(ports.filter(|_| on_card)).filter_map(Value::as_u64).sum()
    }
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    /// Its command line.
    pub cli: Cli,
    child: Child,
    log: PathBuf,
    /// Prefix of the names of its networks.
    own: String,
}

impl Daemon {
    /// Starts a daemon in the lab's node, applies documents, and waits until it runs.
    ///
    /// # Panics
    /// When it does not run within 60 s.
    #[track_caller]
    #[must_use]
    pub fn start(lab: &Lab, documents: &str) -> Self {
        let file = lab.folder().join("hueplane.yaml");
        write(&file, documents);
        Self::start_with(lab, &Cli::new(lab), &["-f", &file.to_string_lossy()])
    }

    /// Starts a daemon with these arguments of `up`.
    ///
    /// # Panics
    /// When it does not run within 60 s.
    #[track_caller]
    #[must_use]
    pub fn start_with(lab: &Lab, cli: &Cli, arguments: &[&str]) -> Self {
        let mut daemon = Self::spawn(lab, cli, arguments);
        let deadline = Deadline::seconds(60);
        let file =
            arguments.iter().position(|argument| *argument == "-f").and_then(|at| arguments.get(at + 1));
        let documents = file.and_then(|path| std::fs::read_to_string(path).ok());
        loop {
            if let Some(code) = daemon.ended() {
                panic!("the daemon ended with {code:?}:\n{}", daemon.log());
            }
            let node = daemon.cli.run(&["get", "nodes", "-o", "json"]);
            if node.ok() && daemon.ready(&node.json()[0]["status"], documents.as_deref()) {
                return daemon;
            }
            assert!(!deadline.over(), "the daemon does not answer: {node}\n{}", daemon.log());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Starts a daemon and does not wait.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    #[must_use]
    pub fn spawn(lab: &Lab, cli: &Cli, arguments: &[&str]) -> Self {
        let log = lab.folder().join("daemon.log");
        let file = File::options().create(true).append(true).open(&log);
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let again = file.try_clone().unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let mut all = vec!["up"];
        all.extend_from_slice(arguments);
        let mut command = cli.daemon_command(&all);
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let child = lab.node().spawn(&mut command);
        Self { cli: cli.clone(), child, log, own: lab.name("") }
    }

    /// Whether the documents of the start are in force, and every network and port runs or has reported an error.
    fn ready(&self, status: &Value, documents: Option<&str>) -> bool {
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
        let wanted = documents.map(|text| text.matches("kind: Network").count());
        if wanted.is_some() && (number(&status["generation"]) == 0 || number(&status["ports"]["total"]) == 0)
        {
            return false;
        }
        let networks = self.cli.run(&["get", "networks", "-o", "json"]);
        if !networks.ok() {
            return false;
        }
        let json = networks.json();
        let list = json.as_array().or_else(|| json["networks"].as_array()).cloned().unwrap_or_default();
        let there = wanted.is_none_or(|wanted| list.len() >= wanted);
        // A port is opening until it is up or has reported an error.
        let opening = |port: &Value| port["state"] != "up" && port["error"].is_null();
        let ports = self.cli.run(&["get", "ports", "-o", "json"]);
        if !ports.ok() || ports.json().as_array().is_some_and(|ports| ports.iter().any(opening)) {
            return false;
        }
        there && list.iter().all(|network| network["state"] != "pending")
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process of its card, if it has one.
    #[must_use]
    pub fn card_pid(&self) -> Option<u32> {
        self.cli.card_pid()
    }

    /// Its exit code, if it has ended; `Some(None)`: ended by a signal.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        self.child.try_wait().ok().flatten().map(|status| status.code())
    }

    /// Kills it as `kill -9` does, and waits for its end.
    pub fn kill(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts another daemon in its place, with what this one left, and waits until it runs.
    ///
    /// # Panics
    /// When this one has not ended, or the other does not run within 60 s.
    #[track_caller]
    pub fn replace(&mut self, lab: &Lab) {
        assert!(self.ended().is_some(), "the daemon still runs");
        let mut next = Self::start_with(lab, &self.cli.clone(), &[]);
        std::mem::swap(self, &mut next);
        // The daemon that has ended must not remove networks of the new one.
        next.own = String::new();
    }

    /// Starts another daemon in its place, with what this one left, and does not wait.
    ///
    /// # Panics
    /// When this one has not ended, or the other cannot be started.
    #[track_caller]
    pub fn respawn(&mut self, lab: &Lab) {
        assert!(self.ended().is_some(), "the daemon still runs");
        let mut next = Self::spawn(lab, &self.cli.clone(), &[]);
        std::mem::swap(self, &mut next);
        // As in `replace`.
        next.own = String::new();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may have ended.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Stops all threads of it and of its card's process until [`Daemon::resume`].
    ///
    /// # Panics
    /// When they do not stop.
    #[track_caller]
    pub fn pause(&self) {
        self.signal_all(Signal::SIGSTOP);
        let stands = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        };
        until("the daemon stands still", 30, || {
            let tasks = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/task"));
            let all = [self.pid()].into_iter().chain(self.card_pid()).flat_map(tasks);
            all.flatten().flatten().all(stands)
        });
    }

    /// Lets these threads continue.
    pub fn resume(&self) {
        self.signal_all(Signal::SIGCONT);
    }

    fn signal_all(&self, signal: Signal) {
        self.signal(signal);
        if let Some(card) = self.card_pid() {
            let _ = kill(Pid::from_raw(card as i32), signal); // it may have ended
        }
    }

    /// Stops it by `hueplane down` and waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn down(&mut self, arguments: &[&str]) {
        let mut all = vec!["down"];
        all.extend_from_slice(arguments);
        let _ = self.cli.run(&all).expect_ok();
        until("the daemon ends", 30, || self.ended().is_some());
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// Memory that it uses, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    /// Processor time that it has used, seconds.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        cpu_seconds_of(self.pid())
    }
}

/// Processor time that a process has used, seconds.
#[must_use]
pub fn cpu_seconds_of(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    // User and system time, in the hundredths of a second that Linux counts for programs.
    (ticks(11) + ticks(12)) / 100.0
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- end of the daemon's log\n{}\n---", self.log());
        }
        if self.ended().is_none() {
            self.signal(Signal::SIGTERM);
            let deadline = Deadline::seconds(10);
            while self.ended().is_none() && !deadline.over() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            self.kill();
        }
        if !self.own.is_empty() {
            remove_left(&self.own);
        }
    }
}

/// Existing namespaces of a lab's networks.
#[must_use]
pub fn namespaces(lab: &Lab) -> Vec<String> {
    left(&lab.name(""))
}

fn left(own: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&format!("hue-{own}"))).collect();
    names.sort();
    names
}

/// Existing control groups of a lab's networks.
#[must_use]
pub fn cgroups(lab: &Lab) -> Vec<PathBuf> {
    cgroups_of(&lab.name(""))
}

fn cgroups_of(own: &str) -> Vec<PathBuf> {
    let output = shell::run(shell::command("find").args([
        "/sys/fs/cgroup",
        "-type",
        "d",
        "-name",
        &format!("net-{own}*"),
    ]));
    output.stdout.lines().map(PathBuf::from).collect()
}

/// Removes the namespaces and control groups that a killed daemon left.
fn remove_left(own: &str) {
    for name in left(own) {
        let pids = shell::run(shell::command("ip").args(["netns", "pids", &name])).stdout;
        for pid in pids.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = shell::run(shell::command("ip").args(["netns", "del", &name]));
    }
    let mut folders = cgroups_of(own);
    // A folder's children come after it in the list.
    folders.reverse();
    for folder in folders {
        let _ = std::fs::remove_dir(&folder);
        // The groups of the node and of all nodes, if they are empty.
        for above in folder.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(above);
        }
    }
}

/// Writes a file of a test.
///
/// # Panics
/// When it cannot be written.
#[track_caller]
pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A daemon with two networks on the same two ports, running and known to their neighbours.
#[must_use]
pub fn two_networks() -> (Lab, Pair, Pair, Daemon) {
    let lab = Lab::new(2);
    let (red, blue) = (lab.pair("red", 1, 1, [0, 1]), lab.pair("blue", 2, 2, [0, 1]));
    let documents = [lab.node_document(""), red.document.yaml(), blue.document.yaml()];
    let daemon = Daemon::start(&lab, &all(&documents));
    red.warm_up();
    blue.warm_up();
    (lab, red, blue, daemon)
}
