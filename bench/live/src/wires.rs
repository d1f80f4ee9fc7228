//! The wires of every contestant: from a generator to the node's `p0`, and from its `p1` to the sink.
//!
//! Network *n* (from 1): left link 10.*n*.1.0/24 with the generator's host .2, right link 10.*n*.2.0/24 with the sink's host
//! .2. With TAP ports there are no wires: the node's kernel is at the other end of each.

use std::net::Ipv4Addr;

use hue_e2e::frame::{self, Ends, Mac};
use hue_e2e::lab::text;
use hue_e2e::{Document, Lab, Space, VirtualPort};

use crate::{bpf, load};

/// MAC address of the generator.
pub const GENERATOR: Mac = [2, 0x67, 0, 0, 0, 1];
/// MAC address of the sink.
pub const SINK: Mac = [2, 0x73, 0, 0, 0, 1];
/// Ethernet, IPv4 and UDP headers and the FCS, bytes.
const AROUND_BYTES: usize = 14 + 20 + 8 + 4;
/// UDP port of all traffic.
const PORT: u16 = 9;

/// The wires of one contestant.
pub struct Wires {
    /// The node, without bridges.
    pub lab: Lab,
    /// Number of networks with hosts.
    pub networks: u16,
    /// Namespaces of generator and sink; `None`: the node's own.
    hosts: Option<[Space; 2]>,
}

impl Wires {
    fn new(networks: u16) -> Self {
        let lab = Lab::new(0);
        let id = lab.name("b");
        let hosts = [Space::new(&id, "gen"), Space::new(&id, "sink")];
        Self { lab, networks, hosts: Some(hosts) }
    }

    /// veth pairs between generator, node and sink, for `networks` networks.
    pub fn veth(networks: u16) -> Self {
        let wires = Self::new(networks);
        let node = wires.lab.node();
        for (space, mac, port) in [(wires.generator(), GENERATOR, "p0"), (wires.sink(), SINK, "p1")] {
            space.ip_batch(&format!(
                "link add eth0 address {} type veth peer name {port} netns {}\nlink set eth0 up\n",
                text(mac),
                node.name()
            ));
            node.ip(&["link", "set", port, "up"]);
            plain(space, "eth0");
            plain(node, port);
        }
        wires
    }

    /// A wire from the generator to the sink.
    pub fn straight() -> Self {
        let wires = Self::new(1);
        wires.sink().ip_batch(&format!(
            "link add eth0 address {} type veth peer name eth0 address {} netns {}\nlink set eth0 up\n",
            text(SINK),
            text(GENERATOR),
            wires.generator().name(),
        ));
        wires.generator().ip(&["link", "set", "eth0", "up"]);
        plain(wires.sink(), "eth0");
        plain(wires.generator(), "eth0");
        wires
    }

    /// No wires: the contestant makes its ports, and the node's kernel is their other end.
    pub fn none(networks: u16) -> Self {
        Self { lab: Lab::new(0), networks, hosts: None }
    }

    /// Where the generator is.
    pub fn generator(&self) -> &Space {
        self.hosts.as_ref().map_or(self.lab.node(), |hosts| &hosts[0])
    }

    /// Where the sink is.
    pub fn sink(&self) -> &Space {
        self.hosts.as_ref().map_or(self.lab.node(), |hosts| &hosts[1])
    }

    /// Number of the generator's interface.
    pub fn generator_index(&self) -> u32 {
        bpf::index_of(self.generator(), if self.hosts.is_some() { "eth0" } else { "p0" })
    }

    /// The sink's interface receives like that of any host: nothing is merged before the network stack.
    pub fn receive_as_a_host(&self) {
        if self.hosts.is_some() {
            let arguments = ["-K", self.sink_interface(), "gro", "off"];
            let _ = self.sink().run("ethtool", &arguments).expect_ok();
        }
    }

    /// Name of the sink's interface.
    pub fn sink_interface(&self) -> &'static str {
        if self.hosts.is_some() { "eth0" } else { "p1" }
    }

    /// The document of network `n`.
    pub fn document(&self, n: u16) -> Document {
        let port = |name: &str, port: &str, side: u8, address: Ipv4Addr| VirtualPort {
            name: name.into(),
            port: port.into(),
            mac: text(router(n, side)),
            addresses: vec![format!("{address}/24")],
        };
        let document = Document {
            kind: "ipv4",
            name: self.lab.name(&format!("n{n}")),
            ports: vec![port("left", "p0", 0, left(n, 1)), port("right", "p1", 1, right(n, 1))],
            more: Vec::new(),
        };
        let neighbour = |side: &str, address: Ipv4Addr, mac: Mac| {
            format!("{{port: {side}, address: {address}, mac: \"{}\"}}", text(mac))
        };
        let neighbours = [neighbour("left", left(n, 2), GENERATOR), neighbour("right", right(n, 2), SINK)];
        document.with("neighbours", &format!("[{}]", neighbours.join(", ")))
    }
}

/// Frames are not segmented later and have checksums, as on a real wire, and the kernel polls the interface like that of a NIC.
fn plain(space: &Space, interface: &str) {
    let _ = space.run("ethtool", &["-K", interface, "tx", "off", "gro", "on"]).expect_ok();
}

/// A frame of `bytes` on the wire (with FCS) from the generator to the sink's host of network `n`.
pub fn frame(n: u16, bytes: usize, router: Mac) -> Vec<u8> {
    let ends = Ends { macs: [router, GENERATOR], addresses: [left(n, 2), right(n, 2)], ttl: 64 };
    frame::udp(ends, [PORT, PORT], &load::payload(n, bytes.saturating_sub(AROUND_BYTES)))
}

/// The router's MAC address in network `n`.
pub fn router(n: u16, side: u8) -> Mac {
    let [high, low] = n.to_be_bytes();
    [2, 0x72, 0, side, high, low]
}

/// An address on the left link of network `n`.
pub fn left(n: u16, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, n as u8, 1, host)
}

/// An address on the right link of network `n`.
pub fn right(n: u16, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, n as u8, 2, host)
}
