//! Open vSwitch, as Debian packages it: its database and its switch in user space, in a namespace, unmodified.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lab::text;
use crate::shell::{self, Output};
use crate::space::Space;

/// What it consists of.
pub const PROGRAMS: [&str; 5] = ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl"];

/// Open vSwitch's database and switch. Bridges are in user space (`datapath_type=netdev`).
#[derive(Debug)]
pub struct Ovs {
    folder: PathBuf,
}

impl Ovs {
    /// Starts the database in a namespace, with its files in `folder`. The switch does not run yet ([`Ovs::start_switch`]).
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn new(space: &Space, folder: &Path) -> Self {
        let ovs = Self { folder: folder.to_path_buf() };
        let made = std::fs::create_dir_all(folder);
        made.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let file = ovs.file("conf.db");
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        let _ = ovs.run(space, "ovsdb-tool", &["create", &file, schema]).expect_ok();
        let remote = format!("--remote=punix:{}", ovs.file("db.sock"));
        let line = [&*file, &remote, "--pidfile", "--detach", "--log-file"];
        let _ = ovs.run(space, "ovsdb-server", &line).expect_ok();
        let _ = ovs.vsctl(space, &["--no-wait", "init"]).expect_ok();
        ovs
    }

    /// Starts the switch. `how` may change its command.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn start_switch(&self, space: &Space, how: impl FnOnce(Command) -> Command) {
        let database = self.database();
        let arguments = [&*database, "--pidfile", "--detach", "--log-file", "--disable-system"];
        let _ = space.run_command(&mut how(self.command("ovs-vswitchd", &arguments))).expect_ok();
    }

    /// Adds a bridge.
    ///
    /// # Panics
    /// When the switch refuses.
    #[track_caller]
    pub fn add_bridge(&self, space: &Space, name: &str) {
        let kind = ["datapath_type=netdev", "protocols=OpenFlow13", "fail-mode=standalone"];
        let line = [&["add-br", name, "--", "set", "bridge", name], &kind[..]].concat();
        let _ = self.vsctl(space, &line).expect_ok();
    }

    /// Adds a port, with settings of its interface.
    ///
    /// # Errors
    /// What the switch says.
    pub fn add_port(&self, space: &Space, bridge: &str, port: &str, settings: &[&str]) -> Result<(), String> {
        let mut line = vec!["add-port", bridge, port];
        if !settings.is_empty() {
            line.extend(["--", "set", "interface", port]);
            line.extend(settings);
        }
        let added = self.vsctl(space, &line);
        let error = self.vsctl(space, &["get", "interface", port, "error"]).stdout;
        match added.ok() && matches!(error.trim(), "[]" | "\"\"") {
            true => Ok(()),
            false => Err(format!("{} {}", added.stderr.trim(), error.trim())),
        }
    }

    /// Makes an interface the switch's way to the ends of tunnels: it and `address` move to a bridge, which has the MAC address
    /// `mac`.
    ///
    /// # Panics
    /// When the switch refuses.
    #[track_caller]
    pub fn reach_tunnels_by(
        &self,
        space: &Space,
        bridge: &str,
        (interface, kind): (&str, &str),
        (mac, address): ([u8; 6], Ipv4Addr),
    ) {
        self.add_bridge(space, bridge);
        let mac = format!("other-config:hwaddr=\"{}\"", text(mac));
        let _ = self.vsctl(space, &["set", "bridge", bridge, &mac]).expect_ok();
        let added = self.add_port(space, bridge, interface, &[&format!("type={kind}")]);
        added.unwrap_or_else(|error| panic!("{interface}: {error}"));
        space.ip_batch(&format!(
            "address flush dev {interface}\naddress add {address}/24 dev {bridge}\nlink set {bridge} up\n"
        ));
    }

    /// A file of its folder.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// One of its programs.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = shell::command(program);
        command.args(arguments).env("OVS_RUNDIR", &self.folder);
        command.env("OVS_LOGDIR", &self.folder).env("OVS_DBDIR", &self.folder);
        command
    }

    /// Runs one of its programs.
    #[track_caller]
    fn run(&self, space: &Space, program: &str, arguments: &[&str]) -> Output {
        space.run_command(&mut self.command(program, arguments))
    }

    fn database(&self) -> String {
        format!("unix:{}", self.file("db.sock"))
    }

    /// Runs `ovs-vsctl`.
    #[track_caller]
    pub fn vsctl(&self, space: &Space, arguments: &[&str]) -> Output {
        let database = self.database();
        self.run(space, "ovs-vsctl", &[&["--db", &database, "--timeout", "10"], arguments].concat())
    }

    /// Runs a command of `ovs-ofctl` on a bridge.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn flows(&self, space: &Space, bridge: &str, command: &str, more: &[&str]) {
        let management = format!("unix:{}", self.file(&format!("{bridge}.mgmt")));
        let arguments = [&["-O", "OpenFlow13", command, &management], more].concat();
        let _ = self.run(space, "ovs-ofctl", &arguments).expect_ok();
    }

    /// Asks the running switch something, or tells it.
    #[track_caller]
    pub fn appctl(&self, space: &Space, arguments: &[&str]) -> Output {
        self.run(space, "ovs-appctl", arguments)
    }

    /// Sends a signal to the switch.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid("ovs-vswitchd.pid") {
            // It may have ended.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    fn pid(&self, file: &str) -> Option<i32> {
        std::fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(pid) = self.pid("ovsdb-server.pid") {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
