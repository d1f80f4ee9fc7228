//! The forwarders: hueplane with each of its drivers, Linux, an XDP program, and Open vSwitch in user space. Each has
//! wires of its own and is set up before the measurements.

use hue_e2e::document::{self, Document, all};
use hue_e2e::frame::Mac;
use hue_e2e::lab::{address6, text};
use hue_e2e::{Cli, Daemon, Lab, Ovs, Space, ovs, shell};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::bpf::{FastPath, Sink};
use crate::machine::{self, FORWARDER_CORE, on_core, pin_process};
use crate::tunnels::Type;
use crate::wires::{self, GENERATOR, SINK, Traffic, Wires};

/// A forwarder between its wires.
pub struct Contestant {
    /// Its name in results.
    pub name: String,
    /// The running forwarder. It ends before its wires.
    pub kind: Kind,
    /// At the end of its wires.
    pub sink: Sink,
    /// At a switch's third port.
    pub bystander: Option<Sink>,
    /// Its wires.
    pub wires: Wires,
}

/// The names of all, in results.
pub fn names(contestants: &[Contestant]) -> Vec<&str> {
    contestants.iter().map(|contestant| contestant.name.as_str()).collect()
}

/// A running forwarder.
pub enum Kind {
    /// The node's kernel; there is nothing to keep.
    Linux,
    /// hueplane's daemon.
    Hueplane(Box<Daemon>),
    /// A daemon of each node of a row.
    Row {
        /// They run while this value lives.
        _daemons: Vec<Daemon>,
    },
    /// Open vSwitch's daemons.
    Ovs(Ovs),
    /// An XDP program.
    FastPath {
        /// Attached while this value lives.
        _program: FastPath,
    },
    /// A part of the measurement itself.
    Own,
}

/// TTL of a frame that was forwarded once.
const FORWARDED: u8 = 63;
/// TTL of a frame that only switches forwarded.
const BRIDGED: u8 = 64;

fn networks_of(networks: u16) -> String {
    format!("{networks} network{}", if networks == 1 { "" } else { "s" })
}

/// Networks or pairs of hosts, for a name.
fn counted(traffic: Traffic, count: u16) -> String {
    match (traffic, count) {
        (Traffic::Bridged, _) => format!("{count} pairs of hosts"),
        (Traffic::Ipv4 | Traffic::Ipv6, _) => networks_of(count),
    }
}

impl Contestant {
    fn new(name: String, wires: Wires, kind: Kind, ttl: u8) -> Self {
        crate::bpf::step();
        // A devmap reaches a wire only if its other end also receives with XDP.
        let sink = match kind {
            Kind::FastPath { .. } | Kind::Own => Sink::attach(wires.sink(), wires.sink_interface(), ttl),
            _ => {
                wires.receive_as_a_host();
                let inner = wires.leaves_in.map_or(0, Type::bytes);
                Sink::attach_in_stack(wires.sink(), wires.sink_interface(), ttl, inner)
            }
        };
        let bystander = wires.bystander().map(|space| Sink::attach_in_stack(space, "eth0", ttl, 0));
        Self { name, kind, sink, bystander, wires }
    }

    /// hueplane with a driver, for `networks` networks. With driver `card` they are on a simulated card, whose ports use AF_XDP.
    pub fn hueplane(driver: &str, networks: u16) -> Self {
        let wires = if driver == "tap" { Wires::none(networks) } else { Wires::veth(networks) };
        let daemon = hueplane(&wires, driver);
        Self::running(format!("hueplane {driver}, {}", networks_of(networks)), wires, daemon)
    }

    /// A daemon that runs between these wires.
    pub fn running(name: String, wires: Wires, daemon: Daemon) -> Self {
        Self::new(name, wires, Kind::Hueplane(Box::new(daemon)), FORWARDED)
    }

    /// Daemons on the nodes of a row, each of which decrements the TTL.
    pub fn row(name: String, wires: Wires, daemons: Vec<Daemon>) -> Self {
        let ttl = FORWARDED + 1 - daemons.len() as u8; // few nodes
        Self::new(name, wires, Kind::Row { _daemons: daemons }, ttl)
    }

    /// Linux on the nodes of a row.
    pub fn linux_row(name: String, wires: Wires) -> Self {
        let ttl = FORWARDED - wires.further.len() as u8;
        Self::new(name, wires, Kind::Linux, ttl)
    }

    /// Another forwarder that runs between these wires.
    pub fn other(name: String, wires: Wires, kind: Kind) -> Self {
        Self::new(name, wires, kind, FORWARDED)
    }

    /// A part of the measurement between wires.
    pub fn own(name: String, wires: Wires) -> Self {
        Self::new(name, wires, Kind::Own, FORWARDED)
    }

    /// Linux, one table for all networks.
    pub fn linux(networks: u16) -> Self {
        let wires = Wires::veth(networks);
        let mut lines = String::new();
        for n in 1..=networks {
            lines += &format!(
                "address add {}/24 dev p0\naddress add {}/24 dev p1\n",
                wires::left(n, 1),
                wires::right(n, 1)
            );
            for (address, mac, port) in
                [(wires::left(n, 2), GENERATOR, "p0"), (wires::right(n, 2), SINK, "p1")]
            {
                lines +=
                    &format!("neighbour replace {address} lladdr {} dev {port} nud permanent\n", text(mac));
            }
        }
        become_router(&wires, &lines, &[("ipv4/ip_forward", "1"), ("ipv4/conf/all/rp_filter", "0")]);
        receive_on_forwarder(&wires);
        let s = if networks == 1 { "" } else { "es" };
        Self::new(format!("Linux forwarding, {networks} prefix{s}"), wires, Kind::Linux, FORWARDED)
    }

    /// hueplane over AF_XDP, for traffic of another kind.
    pub fn hueplane_for(traffic: Traffic, networks: u16) -> Self {
        let wires = Wires::veth_for(traffic, networks);
        let daemon = hueplane(&wires, "afxdp");
        let (kind, ttl) = match traffic {
            Traffic::Ipv4 => ("ipv4", FORWARDED),
            Traffic::Ipv6 => ("ipv6", FORWARDED),
            Traffic::Bridged => ("l2", BRIDGED),
        };
        let name = format!("hueplane afxdp {kind}, {}", counted(traffic, networks));
        Self::new(name, wires, Kind::Hueplane(Box::new(daemon)), ttl)
    }

    /// hueplane over AF_XDP with networks of kind `kernel`: Linux forwards in their namespaces.
    pub fn hueplane_kernel(networks: u16) -> Self {
        let mut wires = Wires::veth_for(Traffic::Ipv4, networks);
        wires.delegated = true;
        let daemon = hueplane(&wires, "afxdp");
        let name = format!("hueplane afxdp kernel, {}", counted(Traffic::Ipv4, networks));
        Self::new(name, wires, Kind::Hueplane(Box::new(daemon)), FORWARDED)
    }

    /// Linux's IPv6 forwarding, one table for all networks.
    pub fn linux6(networks: u16) -> Self {
        let wires = Wires::veth_for(Traffic::Ipv6, networks);
        let mut lines = String::new();
        for n in 1..=networks {
            for (side, mac, port) in [(1, GENERATOR, "p0"), (2, SINK, "p1")] {
                let [own, host] = [1, 2].map(|host| address6(n as u8, side, host));
                lines += &format!(
                    "address add {own}/64 dev {port} nodad\nneighbour replace {host} lladdr {} dev {port} nud permanent\n",
                    text(mac)
                );
            }
        }
        become_router(&wires, &lines, &[("ipv6/conf/all/forwarding", "1")]);
        receive_on_forwarder(&wires);
        let name = format!("Linux IPv6 forwarding, {}", counted(Traffic::Ipv6, networks));
        Self::new(name, wires, Kind::Linux, FORWARDED)
    }

    /// Linux's bridge between `pairs` pairs of hosts.
    pub fn bridge(pairs: u16) -> Self {
        let wires = Wires::veth_for(Traffic::Bridged, pairs);
        let mut lines = "link add br0 type bridge\nlink set br0 up\n".to_owned();
        for port in wires.ports() {
            lines += &format!("link set {port} master br0\n");
        }
        wires.lab.node().ip_batch(&lines);
        receive_on_forwarder(&wires);
        let name = format!("Linux bridge, {}", counted(Traffic::Bridged, pairs));
        Self::new(name, wires, Kind::Linux, BRIDGED)
    }

    /// Open vSwitch in user space as a learning switch (action `NORMAL`); `None` as for [`Contestant::ovs`].
    pub fn ovs_bridge(port_type: &str, pairs: u16) -> Option<Self> {
        let wires = Wires::veth_for(Traffic::Bridged, pairs);
        let ovs = ovs(&wires, port_type)?;
        let name = format!("Open vSwitch user space {port_type}, {}", counted(Traffic::Bridged, pairs));
        Some(Self::new(name, wires, Kind::Ovs(ovs), BRIDGED))
    }

    /// An XDP program that forwards by a devmap, on the forwarder's core.
    pub fn fast_path(networks: u16) -> Self {
        let wires = Wires::veth(networks);
        let routes: Vec<([u8; 4], Mac, Mac)> =
            (1..=networks).map(|n| (wires::right(n, 2).octets(), SINK, wires::router(n, 1))).collect();
        let program = FastPath::attach(wires.lab.node(), "p0", "p1", &routes);
        // The kernel's thread that polls the wire does the forwarding.
        shell_in(wires.lab.node(), "echo 1 > /sys/class/net/p0/threaded");
        machine::pin_kernel_threads("napi/p0-", FORWARDER_CORE);
        let name = format!("XDP devmap, {}", networks_of(networks));
        Self::new(name, wires, Kind::FastPath { _program: program }, FORWARDED)
    }

    /// Open vSwitch in user space with ports of a type, `afxdp` or `system`; `None` when it is not installed or lacks
    /// it.
    pub fn ovs(port_type: &str, networks: u16) -> Option<Self> {
        let wires = Wires::veth(networks);
        let ovs = ovs(&wires, port_type)?;
        let name = format!("Open vSwitch user space {port_type}, {}", networks_of(networks));
        Some(Self::new(name, wires, Kind::Ovs(ovs), FORWARDED))
    }

    /// The generator's wire leads directly to the sink: this measures the generator's limit.
    pub fn wire() -> Self {
        Self::new("wire (no forwarder)".into(), Wires::straight(), Kind::Own, FORWARDED + 1)
    }

    /// A frame of `bytes` for network `n`.
    pub fn frame(&self, n: u16, bytes: usize) -> Vec<u8> {
        self.wires.frame(n, bytes, self.router(n))
    }

    /// Where the generator sends frames of network `n` to.
    fn router(&self, n: u16) -> Mac {
        wires::router(if matches!(self.kind, Kind::Linux) { 1 } else { n }, 0)
    }

    /// Lets it run, or stops it if it would use processor time while others are measured.
    pub fn run(&self, on: bool) {
        if let Kind::Ovs(ovs) = &self.kind {
            ovs.signal(if on { Signal::SIGCONT } else { Signal::SIGSTOP });
        }
    }

    /// Runs it while others that would use processor time are stopped.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        self.run(true);
        let result = work();
        self.run(false);
        result
    }
}

/// Makes the node's kernel a router: lines for `ip`, and settings below `/proc/sys/net`.
pub fn become_router(wires: &Wires, lines: &str, settings: &[(&str, &str)]) {
    let node = wires.lab.node();
    // First the MAC addresses: the kernel forgets a port's neighbours when its own address changes.
    for (port, side) in wires.ports().iter().zip(0..) {
        node.ip(&["link", "set", port, "address", &text(wires::router(1, side))]);
    }
    route_at(node, lines, settings);
}

/// Lets a node's kernel route: lines for `ip`, and settings below `/proc/sys/net`.
pub fn route_at(node: &Space, lines: &str, settings: &[(&str, &str)]) {
    node.ip_batch(lines);
    node.inside(|| {
        for (name, value) in settings {
            let file = format!("/proc/sys/net/{name}");
            std::fs::write(&file, value).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    });
}

/// Packets that the node's kernel receives go to the forwarder's core, so that generator and forwarder have one core
/// each, as with the other contestants.
pub fn receive_on_forwarder(wires: &Wires) {
    for (node, port) in wires.labs().flat_map(|lab| wires.ports().iter().map(|port| (lab.node(), port))) {
        let mask = 1 << FORWARDER_CORE;
        shell_in(node, &format!("echo {mask:x} > /sys/class/net/{port}/queues/rx-0/rps_cpus"));
    }
}

fn shell_in(node: &Space, line: &str) {
    let arguments = ["netns", "exec", node.name(), "sh", "-c", line];
    let _ = shell::run(shell::command("ip").args(arguments)).expect_ok();
}

/// A daemon for the networks of wires, all of it on the forwarder's core.
pub fn hueplane(wires: &Wires, driver: &str) -> Daemon {
    hueplane_with(wires, driver, wires.documents().iter().map(Document::yaml).collect())
}

/// A daemon for these networks, all of it on the forwarder's core.
pub fn hueplane_with(wires: &Wires, driver: &str, networks: Vec<String>) -> Daemon {
    hueplane_at(wires, &wires.lab, driver, networks)
}

/// The same on a node of a row.
pub fn hueplane_at(wires: &Wires, lab: &Lab, driver: &str, networks: Vec<String>) -> Daemon {
    let ports: Vec<String> = wires.ports().iter().map(|port| (*port).to_owned()).collect();
    let (driver, card) = match driver {
        "card" => ("afxdp", format!("  card: {{twin: {{image: default}}, ports: [{}]}}\n", ports.join(", "))),
        driver => (driver, String::new()),
    };
    let node = document::node(&lab.name("node"), &ports, &format!("driver: {driver}"));
    let mut documents = vec![format!("{node}{card}")];
    documents.extend(networks);
    let networks_expected = documents.len() - 1;
    let file = lab.folder().join("hueplane.yaml");
    hue_e2e::daemon::write(&file, &all(&documents));
    let arguments = ["-f", &file.to_string_lossy(), "--workers", "1"];
    let daemon = Daemon::start_with(lab, &Cli::new(lab), &arguments);
    hue_e2e::until("all networks run", 120, || {
        let networks = daemon.cli.json(&["get", "networks"]);
        let on = if card.is_empty() { "soft" } else { "card" };
        let there = |n: &&Value| n["state"] == "running" && n["substrate"] == on;
        networks.as_array().into_iter().flatten().filter(there).count() == networks_expected
    });
    [daemon.pid()].into_iter().chain(daemon.card_pid()).for_each(|pid| pin_process(pid, FORWARDER_CORE));
    daemon
}

/// Open vSwitch's daemons with a bridge `br0`; the switch runs on the forwarder's core. `None` when it is not installed.
pub fn ovs_bridge(wires: &Wires) -> Option<Ovs> {
    if let Some(program) = ovs::PROGRAMS.iter().find(|program| shell::find(program).is_none()) {
        eprintln!("skipped: {program} missing");
        return None;
    }
    let node = wires.lab.node();
    let ovs = Ovs::new(node, &wires.lab.folder().join("ovs"));
    let mask = format!("other_config:pmd-cpu-mask={:x}", 1 << FORWARDER_CORE);
    let _ = ovs.vsctl(node, &["--no-wait", "set", "Open_vSwitch", ".", &mask]).expect_ok();
    ovs.start_switch(node, |command| on_core(FORWARDER_CORE, &command));
    ovs.add_bridge(node, "br0");
    Some(ovs)
}

/// Adds a port of a type to a bridge of Open vSwitch; `None` when the type is missing.
pub fn ovs_port(wires: &Wires, ovs: &Ovs, bridge: &str, port: &str, settings: &[&str]) -> Option<()> {
    let added = ovs.add_port(wires.lab.node(), bridge, port, settings);
    added.map_err(|error| eprintln!("skipped: {port} of Open vSwitch ({}): {error}", settings.join(" "))).ok()
}

/// Open vSwitch between wires: a learning switch, or flows with the rewrites of a router.
fn ovs(wires: &Wires, port_type: &str) -> Option<Ovs> {
    let ovs = ovs_bridge(wires)?;
    for (number, port) in (1..).zip(wires.ports()) {
        let settings = [format!("type={port_type}"), format!("ofport_request={number}")];
        ovs_port(wires, &ovs, "br0", port, &settings.each_ref().map(String::as_str))?;
    }
    let mut flows = String::new();
    if wires.traffic == Traffic::Bridged {
        flows += "actions=NORMAL\n";
    }
    for n in 1..=if wires.traffic == Traffic::Bridged { 0 } else { wires.networks } {
        flows += &format!(
            "in_port=1,dl_dst={},ip,nw_dst={}/24,actions=mod_dl_src:{},mod_dl_dst:{},dec_ttl,output:2\n",
            text(wires::router(n, 0)),
            wires::right(n, 0),
            text(wires::router(n, 1)),
            text(SINK)
        );
    }
    let file = ovs.file("flows");
    hue_e2e::daemon::write(file.as_ref(), &flows);
    ovs.flows(wires.lab.node(), "br0", "del-flows", &[]);
    ovs.flows(wires.lab.node(), "br0", "add-flows", &[&file]);
    Some(ovs)
}

/// Kills the switch and starts it again, as `ovs-ctl restart` does: ports wait until the flows are there.
pub fn restart(ovs: &Ovs, wires: &Wires) {
    let node = wires.lab.node();
    let wait = "other_config:flow-restore-wait=true";
    let _ = ovs.vsctl(node, &["--no-wait", "set", "Open_vSwitch", ".", wait]).expect_ok();
    ovs.signal(Signal::SIGKILL);
    ovs.start_switch(node, |command| on_core(FORWARDER_CORE, &command));
    ovs.flows(node, "br0", "add-flows", &[&ovs.file("flows")]);
    let no_wait = ["--no-wait", "remove", "Open_vSwitch", ".", "other_config", "flow-restore-wait"];
    let _ = ovs.vsctl(node, &no_wait).expect_ok();
}
