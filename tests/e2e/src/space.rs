//! Network namespaces of a lab, removed with everything in them when dropped.
//!
//! Names are `hte-PID-LAB-NAME`: if that process no longer runs, a killed test left the namespace behind.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::shell::{self, Output};

const PREFIX: &str = "hte-";

/// A network namespace.
#[derive(Debug)]
pub struct Space {
    name: String,
    /// Whether it is removed when dropped.
    owned: bool,
}

impl Space {
    /// Creates the namespace `hte-PID-LAB-NAME`, without IPv6, loopback up.
    ///
    /// # Panics
    /// When the system refuses.
    #[track_caller]
    #[must_use]
    pub fn new(lab: &str, name: &str) -> Self {
        let space = Self { name: format!("{PREFIX}{}-{lab}-{name}", std::process::id()), owned: true };
        let _ = shell::run(shell::command("ip").args(["netns", "add", &space.name])).expect_ok();
        // Fails where the kernel has no IPv6; then there is nothing to disable.
        let _ = space.disable_ipv6("1");
        space.ip(&["link", "set", "lo", "up"]);
        space
    }

    /// A namespace that something else has made, and removes.
    #[must_use]
    pub fn of(name: String) -> Self {
        Self { name, owned: false }
    }

    fn disable_ipv6(&self, value: &str) -> std::io::Result<()> {
        self.inside(|| {
            ["all", "default"].iter().try_for_each(|scope| {
                std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), value)
            })
        })
    }

    /// Lets its interfaces have IPv6 addresses, which they do not have otherwise.
    ///
    /// # Panics
    /// When the kernel has no IPv6.
    pub fn enable_ipv6(&self) {
        self.disable_ipv6("0").unwrap_or_else(|error| panic!("{}: enable IPv6: {error}", self.name));
    }

    /// Its name, as `ip netns` knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    /// Runs `work` inside, on a thread of its own: sockets that it opens and processes that it starts stay inside. Unlike
    /// `ip netns exec`, this keeps the mounts, so that a daemon that is started here can create named namespaces.
    ///
    /// # Panics
    /// When the namespace is gone, or the work panics.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(self.path()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                setns(file, CloneFlags::CLONE_NEWNET)
                    .unwrap_or_else(|error| panic!("enter a namespace: {error}"));
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a thread inside.
    ///
    /// # Panics
    /// When the namespace is gone.
    pub fn thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let file = File::open(self.path()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        std::thread::spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET)
                .unwrap_or_else(|error| panic!("enter a namespace: {error}"));
            work()
        })
    }

    /// Runs a command inside to its end.
    #[track_caller]
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = shell::command(program);
        command.args(arguments);
        self.run_command(&mut command)
    }

    /// Runs a command inside to its end.
    #[track_caller]
    pub fn run_command(&self, command: &mut Command) -> Output {
        self.inside(|| shell::run(command))
    }

    /// Starts a command inside.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn spawn(&self, command: &mut Command) -> std::process::Child {
        let line = shell::line(command);
        self.inside(|| command.spawn()).unwrap_or_else(|error| panic!("$ {line}: {error}"))
    }

    /// Runs a line of `ip` inside.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn ip(&self, arguments: &[&str]) {
        let _ = shell::run(shell::command("ip").args(["-n", &self.name]).args(arguments)).expect_ok();
    }

    /// Runs lines of `ip` inside.
    ///
    /// # Panics
    /// When one fails.
    #[track_caller]
    pub fn ip_batch(&self, lines: &str) {
        let mut command = shell::command("ip");
        let _ =
            shell::run_with(command.args(["-n", &self.name, "-batch", "-"]), lines.as_bytes()).expect_ok();
    }

    /// A counter of an interface inside, such as `rx_packets`.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    #[must_use]
    pub fn counter(&self, interface: &str, name: &str) -> u64 {
        let json = self.run("ip", &["-j", "-s", "link", "show", interface]).expect_ok().json();
        let (direction, field) = name.split_once('_').unwrap_or(("rx", name));
        let value = json[0]["stats64"][direction][field].as_u64();
        value.unwrap_or_else(|| panic!("{interface}: no counter {name}: {json}"))
    }

    /// Processes inside.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        let output = shell::run(shell::command("ip").args(["netns", "pids", &self.name]));
        output.stdout.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.owned {
            remove(&self.name);
        }
    }
}

/// Kills the processes in a namespace of a lab, and removes it.
fn remove(name: &str) {
    let pids = shell::run(shell::command("ip").args(["netns", "pids", name])).stdout;
    let own = std::process::id().to_string();
    for pid in pids.split_whitespace().filter(|pid| *pid != own).filter_map(|pid| pid.parse().ok()) {
        // The process may have ended meanwhile.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let _ = shell::run(shell::command("ip").args(["netns", "del", name]));
}

/// Removes namespaces that killed tests left behind.
pub fn sweep() {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists()) {
            remove(&name);
        }
    }
}
