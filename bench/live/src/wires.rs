//! The wires of every contestant: from a generator to the node's `p0`, and from its `p1` to the sink.
//!
//! Network *n* (from 1): left link 10.*n*.1.0/24 with the generator's host .2, right link 10.*n*.2.0/24 with the
//! sink's host .2. With TAP ports there are no wires: the node's kernel is at the other end of each. With IPv6 the
//! links are 2001:db8:*n*:1::/64 and 2001:db8:*n*:2::/64. Bridged hosts are on one link, and *n* is a pair of them,
//! each with a MAC address of its own; a third port shows what is flooded.

use std::net::{IpAddr, Ipv4Addr};

use hue_e2e::frame::{self, Ends, Mac};
use hue_e2e::lab::{address6, text};
use hue_e2e::raw::Raw;
use hue_e2e::{Document, Lab, Space, VirtualPort};

use crate::tunnels::Type;
use crate::{bpf, load};

/// MAC address of the generator.
pub const GENERATOR: Mac = [2, 0x67, 0, 0, 0, 1];
/// MAC address of the sink.
pub const SINK: Mac = [2, 0x73, 0, 0, 0, 1];
/// MAC address behind a switch's third port.
const BYSTANDER: Mac = [2, 0x74, 0, 0, 0, 1];
/// Ethernet, IPv4 and UDP headers and the FCS, bytes.
const AROUND_BYTES: usize = 14 + 20 + 8 + 4;
/// Ethernet and IPv6 headers and the FCS, bytes.
const AROUND6_BYTES: usize = 14 + 40 + 4;
/// UDP port of all traffic.
const PORT: u16 = 9;

/// What the hosts send to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// IPv4 packets, to a router.
    Ipv4,
    /// IPv6 packets, to a router.
    Ipv6,
    /// Frames to each other's MAC addresses, through a switch.
    Bridged,
}

/// The wires of one contestant.
pub struct Wires {
    /// The node, without bridges; the first one of a row.
    pub lab: Lab,
    /// The further nodes of a row, whose `p0` is joined to the `p1` of the one before.
    pub further: Vec<Lab>,
    /// What the hosts send.
    pub traffic: Traffic,
    /// Whether Linux forwards in the networks' namespaces, in place of a plane.
    pub delegated: bool,
    /// Number of networks with hosts; of pairs of hosts if they are bridged.
    pub networks: u16,
    /// The tunnel in which the generator's frames arrive at the node.
    pub arrives_in: Option<Type>,
    /// The tunnel in which they reach the sink.
    pub leaves_in: Option<Type>,
    /// Namespaces of generator and sink; `None`: the node's own.
    hosts: Option<[Space; 2]>,
    /// Namespace behind the third port, if they are bridged.
    bystander: Option<Space>,
}

impl Wires {
    fn new(traffic: Traffic, networks: u16) -> Self {
        let lab = Lab::new(0);
        let id = lab.name("b");
        let hosts = [Space::new(&id, "gen"), Space::new(&id, "sink")];
        let bystander = (traffic == Traffic::Bridged).then(|| Space::new(&id, "third"));
        let further = Vec::new();
        Self {
            lab,
            further,
            traffic,
            delegated: false,
            networks,
            arrives_in: None,
            leaves_in: None,
            hosts: Some(hosts),
            bystander,
        }
    }

    /// veth pairs between generator, node and sink, for `networks` networks of kind `ipv4`.
    pub fn veth(networks: u16) -> Self {
        Self::veth_for(Traffic::Ipv4, networks)
    }

    /// The same for other traffic.
    pub fn veth_for(traffic: Traffic, networks: u16) -> Self {
        Self::row_for(traffic, networks, 1)
    }

    /// Nodes in a row between generator and sink, for one network.
    pub fn row(nodes: usize) -> Self {
        Self::row_for(Traffic::Ipv4, 1, nodes)
    }

    fn row_for(traffic: Traffic, networks: u16, nodes: usize) -> Self {
        let mut wires = Self::new(traffic, networks);
        wires.further = (1..nodes).map(|_| Lab::new(0)).collect();
        let (node, last) = (wires.lab.node(), wires.last());
        let mut ends = vec![(wires.generator(), GENERATOR, node, "p0"), (wires.sink(), SINK, last, "p1")];
        ends.extend(wires.bystander.iter().map(|space| (space, BYSTANDER, node, "p2")));
        if traffic == Traffic::Ipv6 {
            [wires.generator(), wires.sink(), node].into_iter().for_each(Space::enable_ipv6);
        }
        for (space, mac, node, port) in ends {
            space.ip_batch(&format!(
                "link add eth0 address {} type veth peer name {port} netns {}\nlink set eth0 up\n",
                text(mac),
                node.name()
            ));
            node.ip(&["link", "set", port, "up"]);
            plain(space, "eth0");
            plain(node, port);
        }
        for (one, next) in wires.nodes().zip(wires.nodes().skip(1)) {
            one.ip_batch(&format!(
                "link add p1 type veth peer name p0 netns {}\nlink set p1 up\n",
                next.name()
            ));
            next.ip(&["link", "set", "p0", "up"]);
            plain(one, "p1");
            plain(next, "p0");
        }
        wires
    }

    /// The nodes of a row, from the generator's.
    pub fn labs(&self) -> impl Iterator<Item = &Lab> {
        std::iter::once(&self.lab).chain(&self.further)
    }

    fn nodes(&self) -> impl Iterator<Item = &Space> {
        self.labs().map(Lab::node)
    }

    /// The node at the sink's wire.
    fn last(&self) -> &Space {
        self.further.last().unwrap_or(&self.lab).node()
    }

    /// A wire from the generator to the sink.
    pub fn straight() -> Self {
        let wires = Self::new(Traffic::Ipv4, 1);
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
        Self {
            lab: Lab::new(0),
            further: Vec::new(),
            traffic: Traffic::Ipv4,
            delegated: false,
            networks,
            arrives_in: None,
            leaves_in: None,
            hosts: None,
            bystander: None,
        }
    }

    /// Names of the node's ports.
    pub fn ports(&self) -> &'static [&'static str] {
        if self.bystander.is_some() { &["p0", "p1", "p2"] } else { &["p0", "p1"] }
    }

    /// Who sees what a switch floods.
    pub fn bystander(&self) -> Option<&Space> {
        self.bystander.as_ref()
    }

    /// Gives the kernels of generator and sink an address, and the way to each other; returns the sink's address.
    pub fn give_addresses(&self) -> IpAddr {
        let (links, sink): ([(IpAddr, IpAddr); 2], _) = match self.traffic {
            Traffic::Ipv4 => (
                [(left(1, 2).into(), left(1, 1).into()), (right(1, 2).into(), right(1, 1).into())],
                IpAddr::from(right(1, 2)),
            ),
            Traffic::Ipv6 => {
                let link = |side| (address6(1, side, 2).into(), address6(1, side, 1).into());
                ([link(1), link(2)], address6(1, 2, 2).into())
            }
            Traffic::Bridged => {
                let link = |host| (left(0, host).into(), left(0, 0).into());
                ([link(1), link(2)], left(0, 2).into())
            }
        };
        for ((space, (own, router)), side) in [self.generator(), self.sink()].into_iter().zip(links).zip(0..)
        {
            let (bits, nodad) = if own.is_ipv6() { (64, " nodad") } else { (24, "") };
            let mut lines = format!("address add {own}/{bits} dev eth0{nodad}\n");
            if self.traffic != Traffic::Bridged {
                lines += &format!(
                    "neighbour replace {router} lladdr {} dev eth0 nud permanent\nroute add default via {router}\n",
                    text(self::router(1, side))
                );
            }
            space.ip_batch(&lines);
        }
        sink
    }

    /// Lets a switch learn where the sink's hosts are.
    pub fn introduce_hosts(&self) {
        let frames: Vec<Vec<u8>> = (1..=self.networks)
            .map(|n| {
                let ends = Ends { macs: host_macs(n), addresses: [right(n, 2), left(n, 2)], ttl: 64 };
                frame::udp(ends, [PORT, PORT], &[])
            })
            .collect();
        let sent = Raw::open(self.sink(), "eth0").send(frames.iter().map(Vec::as_slice));
        assert_eq!(sent, u64::from(self.networks), "frames from the sink's hosts");
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
        let port = |name: &str, port: &str, side: u8, address: String| VirtualPort {
            name: name.into(),
            port: port.into(),
            mac: text(router(n, side)),
            addresses: vec![address],
        };
        let name = self.lab.name(&format!("n{n}"));
        let (kind, [own_left, own_right], [left, right]) = match self.traffic {
            Traffic::Ipv4 => (
                if self.delegated { "kernel" } else { "ipv4" },
                [left(n, 1), right(n, 1)].map(|address| format!("{address}/24")),
                [IpAddr::from(left(n, 2)), right(n, 2).into()],
            ),
            Traffic::Ipv6 => {
                let [left, right] = [1, 2].map(|side| IpAddr::from(address6(n as u8, side, 2)));
                let own = [1, 2].map(|side| format!("{}/64", address6(n as u8, side, 1)));
                ("ipv6", own, [left, right])
            }
            Traffic::Bridged => {
                let ports = self.ports().iter().zip(0u8..).map(|(port, side)| VirtualPort {
                    name: format!("v{side}"),
                    port: (*port).into(),
                    mac: text(router(n, side)),
                    addresses: Vec::new(),
                });
                return Document { kind: "l2", name, ports: ports.collect(), more: Vec::new() };
            }
        };
        let ports = vec![port("left", "p0", 0, own_left), port("right", "p1", 1, own_right)];
        let neighbour = |side: &str, address: IpAddr, mac: Mac| {
            format!("{{port: {side}, address: \"{address}\", mac: \"{}\"}}", text(mac))
        };
        let neighbours = [neighbour("left", left, GENERATOR), neighbour("right", right, SINK)];
        Document { kind, name, ports, more: Vec::new() }
            .with("neighbours", &format!("[{}]", neighbours.join(", ")))
    }

    /// The documents of all networks.
    pub fn documents(&self) -> Vec<Document> {
        let networks = if self.traffic == Traffic::Bridged { 1 } else { self.networks };
        (1..=networks).map(|n| self.document(n)).collect()
    }

    /// A frame of `bytes` on the wire (with FCS) from the generator to the sink's host of network `n`, by way of a
    /// router if there is one.
    pub fn frame(&self, n: u16, bytes: usize, router: Mac) -> Vec<u8> {
        match self.traffic {
            Traffic::Ipv4 if let Some(tunnel) = self.arrives_in => tunnel.around(&frame(n, bytes, router)),
            Traffic::Ipv4 => frame(n, bytes, router),
            Traffic::Ipv6 => frame6(n, bytes, router),
            Traffic::Bridged => {
                let [generator, sink] = host_macs(n);
                let mut frame = frame(n, bytes, sink);
                frame[6..12].copy_from_slice(&generator);
                frame
            }
        }
    }
}

/// Frames are not segmented later and have checksums, as on a real wire, and the kernel polls the interface like that
/// of a NIC.
fn plain(space: &Space, interface: &str) {
    let _ = space.run("ethtool", &["-K", interface, "tx", "off", "gro", "on"]).expect_ok();
}

/// A frame of `bytes` on the wire (with FCS) from the generator to the sink's host of network `n`.
pub fn frame(n: u16, bytes: usize, router: Mac) -> Vec<u8> {
    let ends = Ends { macs: [router, GENERATOR], addresses: [left(n, 2), right(n, 2)], ttl: 64 };
    frame::udp(ends, [PORT, PORT], &load::payload(n, bytes.saturating_sub(AROUND_BYTES)))
}

/// The same with IPv6. The shortest frame has no room for a UDP header, so what follows the IPv6 header has the type
/// "no next header" (RFC 8200 §4.7): routers forward it unchanged, hosts ignore it.
fn frame6(n: u16, bytes: usize, router: Mac) -> Vec<u8> {
    let payload = load::payload(n, bytes.saturating_sub(AROUND6_BYTES));
    let mut frame = frame::ethernet(router, GENERATOR, 0x86dd);
    frame.extend_from_slice(&[0x60, 0, 0, 0]);
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[59, 64]);
    for side in [1, 2] {
        frame.extend_from_slice(&address6(n as u8, side, 2).octets());
    }
    frame.extend_from_slice(&payload);
    frame
}

/// MAC addresses of pair `n` of bridged hosts: behind the generator's wire, and behind the sink's.
fn host_macs(n: u16) -> [Mac; 2] {
    let [high, low] = n.to_be_bytes();
    [[2, 0x67, 1, 0, high, low], [2, 0x73, 1, 0, high, low]]
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
