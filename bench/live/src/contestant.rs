//! Who forwards: hueplane by each of its drivers, Linux, and Open vSwitch in user space. Each has wires of its own and is set up
//! before anything is measured.

use std::path::PathBuf;

use hue_e2e::document::{self, all};
use hue_e2e::frame::Mac;
use hue_e2e::lab::text;
use hue_e2e::shell::{self, Output};
use hue_e2e::{Cli, Daemon};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::machine::{FORWARDER_CORE, pin_process};
use crate::wires::{self, GENERATOR, NOBODY, SINK, Wires};

/// A forwarder between its wires.
pub struct Contestant {
    /// Its name in results.
    pub name: String,
    /// Its wires.
    pub wires: Wires,
    /// What runs.
    pub kind: Kind,
}

/// What runs.
pub enum Kind {
    /// The node's kernel; nothing to hold.
    Linux,
    /// hueplane's daemon.
    Hueplane(Box<Daemon>),
    /// Open vSwitch's daemons.
    Ovs(Ovs),
    /// Nothing: a wire from the generator to the sink.
    Wire,
}

impl Contestant {
    /// hueplane with a driver, for the networks of its wires.
    pub fn hueplane(driver: &str, networks: u16) -> Self {
        let wires = Wires::new(networks);
        let daemon = hueplane(&wires, driver);
        let s = if networks == 1 { "" } else { "s" };
        Self {
            name: format!("hueplane {driver}, {networks} network{s}"),
            wires,
            kind: Kind::Hueplane(Box::new(daemon)),
        }
    }

    /// Linux, one table for all networks.
    pub fn linux(networks: u16) -> Self {
        let wires = Wires::new(networks);
        let mut lines = String::new();
        for n in 1..=networks {
            lines += &format!(
                "address add {}/24 dev p0\naddress add {}/24 dev p1\n",
                wires::left(n, 1),
                wires::right(n, 1)
            );
            for (address, mac, port) in [
                (wires::left(n, 2), GENERATOR, "p0"),
                (wires::right(n, 2), SINK, "p1"),
                (wires::right(n, 3), NOBODY, "p1"),
            ] {
                lines +=
                    &format!("neighbour replace {address} lladdr {} dev {port} nud permanent\n", text(mac));
            }
        }
        wires.lab.node().ip_batch(&lines);
        wires.lab.node().ip(&["link", "set", "p0", "address", &text(wires::router(1, 0))]);
        wires.lab.node().inside(|| {
            // A kernel without one of these forwards the same.
            let _ = std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
            let _ = std::fs::write("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
        });
        // Received packets go to the forwarder's core, so that generator and forwarder have one each, as with the others.
        let mask = format!("echo {:x} > /sys/class/net/p0/queues/rx-0/rps_cpus", 1 << FORWARDER_CORE);
        let _ = shell::run(shell::command("ip").args([
            "netns",
            "exec",
            wires.lab.node().name(),
            "sh",
            "-c",
            &mask,
        ]));
        let s = if networks == 1 { "" } else { "es" };
        Self { name: format!("Linux forwarding, {networks} prefix{s}"), wires, kind: Kind::Linux }
    }

    /// Open vSwitch in user space with ports of a type, `afxdp` or `system`; `None` when it is not installed or lacks it.
    pub fn ovs(port_type: &str, networks: u16) -> Option<Self> {
        let wires = Wires::new(networks);
        let ovs = Ovs::start(&wires, port_type)?;
        Some(Self {
            name: format!("Open vSwitch user space, {port_type} ports"),
            wires,
            kind: Kind::Ovs(ovs),
        })
    }

    /// The generator's wire leads to the sink: what everything but forwarding costs.
    pub fn wire() -> Self {
        let wires = Wires::new(1);
        wires.sink.ip(&["link", "del", "eth0"]);
        wires.generator.ip(&["link", "del", "eth0"]);
        wires.sink.ip_batch(&format!(
            "link add eth0 address {} type veth peer name eth0 address {} netns {}\nlink set eth0 up\naddress add {}/24 dev eth0\n",
            text(SINK),
            text(GENERATOR),
            wires.generator.name(),
            wires::right(1, 2)
        ));
        wires.generator.ip(&["link", "set", "eth0", "up"]);
        Self { name: "wire (no forwarder)".into(), wires, kind: Kind::Wire }
    }

    /// Frames of so many bytes, one a network, to host `host`.
    pub fn frames(&self, host: u8, bytes: usize) -> Vec<Vec<u8>> {
        (1..=self.wires.networks).map(|n| Wires::frame(n, host, bytes, self.router(n))).collect()
    }

    /// Where the generator sends frames of network `n` to.
    pub fn router(&self, n: u16) -> Mac {
        match self.kind {
            Kind::Linux => wires::router(1, 0),
            Kind::Wire => SINK,
            Kind::Hueplane(_) | Kind::Ovs(_) => wires::router(n, 0),
        }
    }

    /// Lets it run, or stops it where it would take processor time while others are measured.
    pub fn run(&self, on: bool) {
        if let Kind::Ovs(ovs) = &self.kind {
            ovs.signal(if on { Signal::SIGCONT } else { Signal::SIGSTOP });
        }
    }
}

/// A daemon for the networks of wires, all of it on the forwarder's core.
pub fn hueplane(wires: &Wires, driver: &str) -> Daemon {
    let node =
        document::node(&wires.lab.name("node"), &["p0".into(), "p1".into()], &format!("driver: {driver}"));
    let mut documents = vec![node];
    documents.extend((1..=wires.networks).map(|n| wires.document(n).yaml()));
    let file = wires.lab.folder().join("hueplane.yaml");
    hue_e2e::daemon::write(&file, &all(&documents));
    let arguments = ["-f", &file.to_string_lossy(), "--workers", "1"];
    let daemon = Daemon::start_with(&wires.lab, &Cli::new(&wires.lab), &arguments);
    pin_process(daemon.pid(), FORWARDER_CORE);
    daemon
}

/// Open vSwitch's database and switch.
pub struct Ovs {
    folder: PathBuf,
}

impl Ovs {
    fn start(wires: &Wires, port_type: &str) -> Option<Self> {
        for program in ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl"] {
            if shell::find(program).is_none() {
                eprintln!("skipped: {program} missing");
                return None;
            }
        }
        let ovs = Self { folder: wires.lab.folder().join("ovs") };
        std::fs::create_dir_all(&ovs.folder).ok()?;
        let file = |name: &str| ovs.folder.join(name).to_string_lossy().into_owned();
        let database = format!("unix:{}", file("db.sock"));
        let run = |program: &str, arguments: &[&str]| -> Output {
            let mut command = shell::command(program);
            command.args(arguments).env("OVS_RUNDIR", &ovs.folder);
            command.env("OVS_LOGDIR", &ovs.folder).env("OVS_DBDIR", &ovs.folder);
            wires.lab.node().run_command(&mut command)
        };
        let vsctl = |arguments: &[&str]| {
            run("ovs-vsctl", &[&["--db", &database, "--timeout", "10"], arguments].concat())
        };
        let _ = run("ovsdb-tool", &["create", &file("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema"])
            .expect_ok();
        let remote = format!("--remote=punix:{}", file("db.sock"));
        let _ = run("ovsdb-server", &[&file("conf.db"), &remote, "--pidfile", "--detach", "--log-file"])
            .expect_ok();
        let _ = vsctl(&["--no-wait", "init"]).expect_ok();
        let mask = format!("other_config:pmd-cpu-mask={:x}", 1 << FORWARDER_CORE);
        let _ = vsctl(&["--no-wait", "set", "Open_vSwitch", ".", &mask]).expect_ok();
        let _ = run("ovs-vswitchd", &[&database, "--pidfile", "--detach", "--log-file", "--disable-system"])
            .expect_ok();
        let bridge =
            ["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "protocols=OpenFlow13"];
        let _ = vsctl(&bridge).expect_ok();
        let kind = format!("type={port_type}");
        for (number, port) in ["p0", "p1"].iter().enumerate() {
            let mut line = vec!["add-port", "br0", port, "--", "set", "interface", port];
            let request = format!("ofport_request={}", number + 1);
            line.push(&request);
            if port_type != "system" {
                line.push(&kind);
            }
            let added = vsctl(&line);
            let error = vsctl(&["get", "interface", port, "error"]).stdout;
            if !added.ok() || !matches!(error.trim(), "[]" | "\"\"") {
                eprintln!(
                    "skipped: Open vSwitch with {port_type} ports missing ({} {})",
                    added.stderr.trim(),
                    error.trim()
                );
                return None;
            }
        }
        let mut flows = String::new();
        for n in 1..=wires.networks {
            for (host, mac) in [(2, SINK), (3, NOBODY)] {
                flows += &format!(
                    "in_port=1,dl_dst={},ip,nw_dst={},actions=mod_dl_src:{},mod_dl_dst:{},dec_ttl,output:2\n",
                    text(wires::router(n, 0)),
                    wires::right(n, host),
                    text(wires::router(n, 1)),
                    text(mac)
                );
            }
        }
        let flow_file = file("flows");
        hue_e2e::daemon::write(&ovs.folder.join("flows"), &flows);
        let management = format!("unix:{}", file("br0.mgmt"));
        let _ = run("ovs-ofctl", &["-O", "OpenFlow13", "del-flows", &management]).expect_ok();
        let _ = run("ovs-ofctl", &["-O", "OpenFlow13", "add-flows", &management, &flow_file]).expect_ok();
        if let Some(pid) = ovs.pid("ovs-vswitchd.pid") {
            pin_process(pid, FORWARDER_CORE);
        }
        Some(ovs)
    }

    fn pid(&self, file: &str) -> Option<u32> {
        std::fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid("ovs-vswitchd.pid") {
            // It may have ended.
            let _ = kill(Pid::from_raw(pid as i32), signal);
        }
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(pid) = self.pid("ovsdb-server.pid") {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
    }
}
