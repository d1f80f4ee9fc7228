//! A test lab: a node with ports `p0`…, a bridge behind each, and hosts on the bridges.
//!
//! The node's ports are in a namespace of their own, with the other ends on bridges `br0`… of a switch namespace. Hosts'
//! bridge ports are isolated: the only path from one host to another is through the node. The bridges have a static entry
//! for each host and do not learn, so a host that spoofs another does not deceive them; tests check the node for this.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::document::{self, Document, VirtualPort};
use crate::shell::Output;
use crate::space::{self, Space};

static LABS: AtomicU32 = AtomicU32::new(0);

/// A node, its switch, and a folder for files.
#[derive(Debug)]
pub struct Lab {
    id: String,
    node: Space,
    switch: Space,
    ports: Vec<String>,
    nics: Vec<String>,
    folder: tempfile::TempDir,
    wires: Mutex<u32>,
}

impl Lab {
    /// A node with `ports` ports, each on a bridge.
    ///
    /// # Panics
    /// When the system refuses.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        space::sweep();
        let id = LABS.fetch_add(1, Ordering::Relaxed).to_string();
        let lab = Self {
            node: Space::new(&id, "node"),
            switch: Space::new(&id, "switch"),
            ports: (0..ports).map(|port| format!("p{port}")).collect(),
            nics: Vec::new(),
            folder: tempfile::tempdir().unwrap_or_else(|error| panic!("a temporary folder: {error}")),
            wires: Mutex::new(0),
            id,
        };
        lab.switch.inside(|| {
            // A switch does not filter by packet contents; the kernel's bridges may.
            for family in ["ip", "ip6", "arp"] {
                let _ = std::fs::write(format!("/proc/sys/net/bridge/bridge-nf-call-{family}tables"), "0");
            }
        });
        for port in 0..ports {
            lab.switch.ip(&["link", "add", &format!("br{port}"), "type", "bridge", "mcast_snooping", "0"]);
            lab.switch.ip(&["link", "set", &format!("br{port}"), "up"]);
            lab.plug(port);
        }
        lab
    }

    /// Creates port `port` of the node, with its other end on its bridge.
    ///
    /// # Panics
    /// When it exists already.
    pub fn plug(&self, port: usize) {
        let name = self.ports.get(port).cloned().unwrap_or_else(|| panic!("no port {port}"));
        let outer = format!("w{port}");
        self.switch.ip(&[
            "link",
            "add",
            &outer,
            "type",
            "veth",
            "peer",
            "name",
            &name,
            "netns",
            self.node.name(),
        ]);
        // Frames of hosts may lack a checksum and exceed the MTU: the switch must send real packets.
        let _ = self.switch.run("ethtool", &["-K", &outer, "tx", "off"]);
        self.switch.ip(&["link", "set", &outer, "master", &format!("br{port}"), "up"]);
        self.node.ip(&["link", "set", &name, "up"]);
    }

    /// Adds NICs `n0`… to the node, one beside each port, on the same bridges: two wires to each segment.
    pub fn plug_nics(&mut self) {
        for port in 0..self.ports.len() {
            let (name, outer) = (format!("n{port}"), format!("x{port}"));
            let node = self.node.name();
            self.switch.ip(&["link", "add", &outer, "type", "veth", "peer", "name", &name, "netns", node]);
            let _ = self.switch.run("ethtool", &["-K", &outer, "tx", "off"]);
            self.switch.ip(&["link", "set", &outer, "master", &format!("br{port}"), "up"]);
            self.node.ip(&["link", "set", &name, "up"]);
            self.nics.push(name);
        }
    }

    /// Takes the ports' wires off their bridges: the interfaces `w0`… of the switch are at the other ends of cables.
    pub fn unbridge(&self) {
        for port in 0..self.ports.len() {
            self.switch.ip(&["link", "set", &format!("w{port}"), "nomaster"]);
        }
    }

    /// Deletes port `port` of the node.
    ///
    /// # Panics
    /// When it does not exist.
    pub fn unplug(&self, port: usize) {
        self.node.ip(&["link", "del", &self.ports[port]]);
    }

    /// A name for something of this lab, unique on the machine.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("e{}-{}-{name}", std::process::id(), self.id)
    }

    /// The namespace in which the daemon runs.
    #[must_use]
    pub fn node(&self) -> &Space {
        &self.node
    }

    /// The namespace of the bridges.
    #[must_use]
    pub fn switch(&self) -> &Space {
        &self.switch
    }

    /// Names of the node's ports.
    #[must_use]
    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// Names of the NICs beside them ([`Lab::plug_nics`]).
    #[must_use]
    pub fn nics(&self) -> &[String] {
        &self.nics
    }

    /// A folder for files, removed with the lab.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The node's document.
    #[must_use]
    pub fn node_document(&self, more: &str) -> String {
        let all: Vec<String> = self.ports.iter().chain(&self.nics).cloned().collect();
        document::node(&self.name("node"), &all, more)
    }

    /// A host behind port `port`, with an address `10.1.0.2/24` and the router it sends to.
    ///
    /// # Panics
    /// When the system refuses.
    #[must_use]
    pub fn host(&self, name: &str, port: usize, mac: [u8; 6], address: &str, router: Ipv4Addr) -> Host {
        let host = self.bare_host(name, port, mac, address);
        host.space.ip(&["route", "add", "default", "via", &router.to_string()]);
        Host { router, ..host }
    }

    /// A host behind port `port` without a default route.
    ///
    /// # Panics
    /// When the system refuses, or the address is invalid.
    #[must_use]
    pub fn bare_host(&self, name: &str, port: usize, mac: [u8; 6], address: &str) -> Host {
        let space = Space::new(&self.id, name);
        let wire = {
            let mut wires = self.wires.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *wires += 1;
            format!("h{wires}")
        };
        self.switch.ip_batch(&format!(
            "link add {wire} type veth peer name eth0 address {mac} netns {host}\n\
             link set {wire} master br{port} up\n\
             link set {wire} type bridge_slave isolated on learning off\n",
            mac = text(mac),
            host = space.name(),
        ));
        let fdb = ["fdb", "add", &text(mac), "dev", &wire, "master", "static"];
        let _ = self.switch.run("bridge", &fdb).expect_ok();
        space.ip_batch(&format!("address add {address} dev eth0\nlink set eth0 up\n"));
        let plain = address.split('/').next().and_then(|plain| plain.parse().ok());
        let address = plain.unwrap_or_else(|| panic!("{address}: expected an address such as 10.1.0.2/24"));
        Host { space, port, wire, mac, address, address6: None, router: Ipv4Addr::UNSPECIFIED }
    }

    /// A network of two hosts with a router between: left 10.`n`.1.2, right 10.`n`.2.2, the router .1 on both links. `tag`
    /// distinguishes networks with the same `n`.
    ///
    /// # Panics
    /// When the system refuses.
    #[must_use]
    pub fn pair(&self, name: &str, n: u8, tag: u8, on: [usize; 2]) -> Pair {
        let document = self.pair_document(name, n, tag, on);
        let host = |side: u8| {
            let router = Ipv4Addr::new(10, n, side + 1, 1);
            let address = format!("10.{n}.{}.2/24", side + 1);
            let port = on[usize::from(side)];
            self.host(&format!("{name}{side}"), port, [2, 0x68, tag, side, n, 2], &address, router)
        };
        Pair { left: host(0), right: host(1), document }
    }

    /// The same for a network of kind `ipv6`: left 2001:db8:`n`:1::2, right 2001:db8:`n`:2::2, the router ::1 on both links.
    /// The hosts have no IPv4 address.
    ///
    /// # Panics
    /// When the system refuses.
    #[must_use]
    pub fn pair6(&self, name: &str, n: u8, tag: u8, on: [usize; 2]) -> Pair {
        let mut pair = self.pair(name, n, tag, on);
        for (side, host) in [(1, &mut pair.left), (2, &mut pair.right)] {
            host.enable_ipv6(n, side);
            host.address6 = Some(address6(n, side, 2));
            host.space.ip(&["-4", "address", "flush", "dev", "eth0"]);
        }
        pair.document.kind = "ipv6";
        for (side, port) in (1..).zip(&mut pair.document.ports) {
            port.addresses = vec![format!("{}/64", address6(n, side, 1))];
        }
        pair
    }

    /// The same for a network of kind `dual`: the hosts have the addresses of [`Lab::pair`] and of [`Lab::pair6`].
    ///
    /// # Panics
    /// When the system refuses.
    #[must_use]
    pub fn pair_dual(&self, name: &str, n: u8, tag: u8, on: [usize; 2]) -> Pair {
        let pair = self.pair(name, n, tag, on);
        for (side, host) in [(1, &pair.left), (2, &pair.right)] {
            host.enable_ipv6(n, side);
        }
        Pair { document: self.pair_dual_document(name, n, tag, on), ..pair }
    }

    /// The document of [`Lab::pair_dual`], without hosts.
    #[must_use]
    pub fn pair_dual_document(&self, name: &str, n: u8, tag: u8, on: [usize; 2]) -> Document {
        let mut document = self.pair_document(name, n, tag, on);
        document.kind = "dual";
        for (side, port) in (1..).zip(&mut document.ports) {
            port.addresses.push(format!("{}/64", address6(n, side, 1)));
        }
        document
    }

    /// The document of [`Lab::pair`], without hosts.
    #[must_use]
    pub fn pair_document(&self, name: &str, n: u8, tag: u8, on: [usize; 2]) -> Document {
        let port = |side: u8| VirtualPort {
            name: if side == 0 { "left".into() } else { "right".into() },
            port: self.ports[on[usize::from(side)]].clone(),
            mac: text([2, 0x72, tag, side, n, 1]),
            addresses: vec![format!("10.{n}.{}.1/24", side + 1)],
        };
        Document { name: self.name(name), kind: "ipv4", ports: vec![port(0), port(1)], more: Vec::new() }
    }
}

/// An address of [`Lab::pair6`]: a host of side 1 (left) or 2 (right).
#[must_use]
pub fn address6(n: u8, side: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, n.into(), side, 0, 0, 0, host)
}

/// Two hosts of a network.
#[derive(Debug)]
pub struct Pair {
    /// The one on the network's port `left`.
    pub left: Host,
    /// The one on the network's port `right`.
    pub right: Host,
    /// The network's document.
    pub document: Document,
}

impl Pair {
    /// The network's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.document.name
    }

    /// Fixes the MAC addresses of both hosts and of the network, so that no kernel sends ARP: in the network's document, and at
    /// the hosts.
    #[must_use]
    pub fn with_fixed_neighbours(self) -> Self {
        let entries: Vec<String> = [("left", &self.left), ("right", &self.right)]
            .iter()
            .map(|(port, host)| {
                format!("{{port: {port}, address: {}, mac: \"{}\"}}", host.address, text(host.mac))
            })
            .collect();
        for (host, port) in [&self.left, &self.right].into_iter().zip(&self.document.ports) {
            host.space.ip_batch(&format!(
                "neigh replace {} lladdr {} dev eth0 nud permanent\n",
                host.router, port.mac
            ));
        }
        Self { document: self.document.with("neighbours", &format!("[{}]", entries.join(", "))), ..self }
    }

    /// Pings both ways until both answer; then the neighbours are known.
    ///
    /// # Panics
    /// When they do not answer within 20 s.
    #[track_caller]
    pub fn warm_up(&self) {
        for (from, to) in [(&self.left, &self.right), (&self.right, &self.left)] {
            crate::until(&format!("{} reaches {}", from.space.name(), to.ip()), 20, || {
                from.ping(to.ip(), 1) == 1
            });
        }
    }
}

/// A host: a namespace with the interface `eth0`.
#[derive(Debug)]
pub struct Host {
    /// Its namespace.
    pub space: Space,
    /// The port of the node that it is behind.
    pub port: usize,
    /// The other end of its wire, in the switch.
    pub wire: String,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its address.
    pub address: Ipv4Addr,
    /// Its only address, if its network is of kind `ipv6`.
    pub address6: Option<Ipv6Addr>,
    /// Its router.
    pub router: Ipv4Addr,
}

impl Host {
    /// The address at which it is reached.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.address6.map_or(self.address.into(), IpAddr::V6)
    }

    /// Gives it the address of a host on a side of [`Lab::pair6`], and the router there.
    fn enable_ipv6(&self, n: u8, side: u16) {
        self.space.enable_ipv6();
        let (own, router) = (format!("{}/64", address6(n, side, 2)), address6(n, side, 1).to_string());
        self.space.ip(&["-6", "address", "add", &own, "dev", "eth0", "nodad"]);
        self.space.ip(&["-6", "route", "add", "default", "via", &router]);
    }

    /// How many of `count` pings are answered. They are sent 50 ms apart, and each answer may take a second.
    #[track_caller]
    #[must_use]
    pub fn ping(&self, to: impl Into<IpAddr>, count: u32) -> u32 {
        let output = self.ping_with(to, count, &[]);
        let words = output.stdout.lines().find(|line| line.contains("packets transmitted"));
        let received = words.and_then(|line| line.split(", ").nth(1)?.split(' ').next()?.parse().ok());
        received.unwrap_or(0)
    }

    /// Runs `ping` with further arguments.
    #[track_caller]
    pub fn ping_with(&self, to: impl Into<IpAddr>, count: u32, more: &[&str]) -> Output {
        let (count, to) = (count.to_string(), to.into().to_string());
        let mut arguments = vec!["-n", "-i", "0.05", "-W", "1", "-c", &count];
        arguments.extend_from_slice(more);
        arguments.push(&to);
        self.space.run("ping", &arguments)
    }
}

/// A MAC address as text.
#[must_use]
pub fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
