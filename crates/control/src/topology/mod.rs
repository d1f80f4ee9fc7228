//! Topologies: the documents of each node, from one document about all of them.
//!
//! Flow: [`hue_intent::topology::Topology`] → **[`expand`]** → `Node` and `Network` documents of each node, as text, and what a
//! machine that imitates all nodes needs: wires, hosts, routers. Pure: the same document gives the same texts, on every node.
//! MAC addresses are hashes of names, and addresses depend on the order of lists only, so an entry that is added at the end of a list
//! changes nothing that exists.

mod drawing;
mod entries;
mod render;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use hue_intent::InterfaceAddress;
use hue_intent::topology::{
    ResolvedLink, Routing, Topology, TopologyHost, TopologyNetwork, TopologySpec, TunnelType, Under,
};
use hue_intent::topology::{addresses, labels};
use hue_planes::Kind;
use hue_wire::Mac;

pub use drawing::svg;

/// A topology, worked out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The nodes, in the order of the document.
    pub nodes: Vec<NodePlan>,
    /// One for each physical link, in the order of the document.
    pub wires: Vec<Wire>,
    /// The hosts of all networks, in the order of the document.
    pub hosts: Vec<HostPlan>,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodePlan {
    /// Name.
    pub name: String,
    /// Its `Node` document and its `Network` documents.
    pub documents: String,
    /// Its part of each network.
    pub routers: Vec<Router>,
}

/// A network's part on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Router {
    /// The network, as place in the document.
    pub network: usize,
    /// Its virtual ports.
    pub ports: Vec<RouterPort>,
}

/// A virtual port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterPort {
    /// Name.
    pub name: String,
    /// Router MAC address.
    pub mac: Mac,
    /// Addresses, one for each of the network's prefixes; none of a switch.
    pub addresses: Vec<InterfaceAddress>,
    /// What it is on.
    pub on: On,
}

/// What a virtual port is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum On {
    /// The physical port with this name, with a host behind it.
    Host(String),
    /// A link to another node.
    Link {
        /// Place of the link in the network's list.
        link: usize,
        /// Which of its ends this is.
        end: usize,
        /// What carries it.
        by: By,
    },
}

/// What carries a link to another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The physical port with this name.
    Port(String),
    /// A tunnel through another network.
    Tunnel {
        /// Kind.
        kind: TunnelType,
        /// Own address and that of the other end, of the network that carries it.
        ends: [IpAddr; 2],
        /// Network that carries it, as place in the document.
        over: usize,
        /// VXLAN network identifier.
        vni: u32,
    },
}

/// A physical link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wire {
    /// Its two ends.
    pub ends: [WireEnd; 2],
    /// Largest IP packet, in bytes.
    pub mtu: u16,
}

/// An end of a physical link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireEnd {
    /// Node, as place in the document.
    pub node: usize,
    /// Linux interface.
    pub interface: String,
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlan {
    /// Name.
    pub name: String,
    /// Network, as place in the document.
    pub network: usize,
    /// Node, as place in the document.
    pub node: usize,
    /// Linux interface of the node on the host's link.
    pub interface: String,
    /// Addresses, one for each of the network's prefixes.
    pub addresses: Vec<InterfaceAddress>,
    /// Default routers, one for each address; none behind a switch.
    pub routers: Vec<IpAddr>,
    /// Largest IP packet that hosts of its network can send each other without a router between them, in bytes.
    pub mtu: u16,
    /// What entries say about it, with kinds whose entries name hosts.
    pub entry: Option<HostEntry>,
}

/// What entries say about a host: kinds `rofl`, `mpls` and `extract`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostEntry {
    /// Its MAC address.
    pub mac: Mac,
    /// That of its port on the node.
    pub router: Mac,
    /// Its label, or the key of frames to it.
    pub label: String,
}

/// Works out a checked topology.
#[must_use]
pub fn expand(topology: &Topology) -> Plan {
    Maker::new(topology).plan()
}

/// The documents of the node with this name; `None` if the topology does not have it.
#[must_use]
pub fn documents_of(topology: &Topology, node: &str) -> Option<String> {
    expand(topology).nodes.into_iter().find(|one| one.name == node).map(|one| one.documents)
}

/// A router id for routing protocols: the first IPv4 address, or one that the place of the node gives.
#[must_use]
pub fn router_id(router: &Router, node: usize) -> Ipv4Addr {
    let own = router.ports.iter().flat_map(|port| &port.addresses).find_map(|one| match one.address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    own.unwrap_or_else(|| {
        let [_, _, high, low] = (u32::try_from(node).unwrap_or_default() + 1).to_be_bytes();
        Ipv4Addr::new(10, 255, high, low)
    })
}

/// A physical port of a node.
#[derive(Clone, Debug)]
struct Port {
    name: String,
    interface: String,
    mtu: u16,
}

struct Maker<'t> {
    topology: &'t Topology,
    spec: &'t TopologySpec,
    /// Links of each network.
    links: Vec<Vec<ResolvedLink>>,
    /// Largest IP packet that all links of each network carry, bytes.
    mtus: Vec<u16>,
    /// Ports of each node.
    ports: Vec<Vec<Port>>,
    /// Of each physical link: its port at each end, as place in `ports`.
    link_ports: Vec<[(usize, usize); 2]>,
    /// Of each network and host: node and port.
    host_ports: Vec<Vec<(usize, usize)>>,
}

impl<'t> Maker<'t> {
    fn new(topology: &'t Topology) -> Self {
        let spec = &topology.spec;
        let links = (0..spec.networks.len()).map(|network| spec.links_of(network)).collect();
        let mut maker = Self {
            topology,
            spec,
            links,
            mtus: spec.mtus(),
            ports: vec![Vec::new(); spec.nodes.len()],
            link_ports: Vec::new(),
            host_ports: Vec::new(),
        };
        maker.add_ports();
        maker
    }

    /// Names all physical ports and their interfaces.
    fn add_ports(&mut self) {
        let spec = self.spec;
        // Interfaces that the document names are not given to other ports.
        let mut taken: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); spec.nodes.len()];
        let place = |name: &hue_intent::Name| spec.node(name.as_str()).unwrap_or_default();
        for link in &spec.links {
            for (end, interface) in link.ends.iter().zip(link.interfaces.iter().flatten()) {
                taken[place(end)].insert(interface.as_str());
            }
        }
        for host in spec.networks.iter().flat_map(|network| &network.hosts) {
            taken[place(&host.node)].extend(host.interface.as_ref().map(|one| one.as_str()));
        }
        for link in &spec.links {
            let ends = [0, 1].map(|end| {
                let (node, peer) = (place(&link.ends[end]), &link.ends[1 - end]);
                let given = link.interfaces.as_ref().map(|both| both[end].as_str());
                (node, self.add_port(node, &format!("to-{peer}"), given, link.mtu, &taken[node]))
            });
            self.link_ports.push(ends);
        }
        for network in &spec.networks {
            let ports = network.hosts.iter().map(|host| {
                let node = place(&host.node);
                let given = host.interface.as_ref().map(|one| one.as_str());
                let mtu = hue_intent::limits::MTU_DEFAULT;
                (node, self.add_port(node, &format!("h-{}", host.name), given, mtu, &taken[node]))
            });
            let ports = ports.collect();
            self.host_ports.push(ports);
        }
    }

    fn add_port(
        &mut self,
        node: usize,
        wanted: &str,
        given: Option<&str>,
        mtu: u16,
        taken: &BTreeSet<&str>,
    ) -> usize {
        let ports = &mut self.ports[node];
        let name = free(wanted, |name| ports.iter().any(|port| port.name == name));
        let is_used = |one: &str| taken.contains(one) || ports.iter().any(|port| port.interface == one);
        let interface = match given {
            Some(given) => given.to_owned(),
            None if name.len() <= hue_intent::limits::INTERFACE_CHARS_MAX && !is_used(&name) => name.clone(),
            None => {
                let mut numbers = ports.len() + 1..;
                numbers
                    .find_map(|number| Some(format!("e{number}")).filter(|one| !is_used(one)))
                    .unwrap_or_default()
            }
        };
        ports.push(Port { name, interface, mtu });
        ports.len() - 1
    }

    fn plan(&self) -> Plan {
        let routers: Vec<Vec<Router>> = (0..self.spec.nodes.len()).map(|node| self.routers(node)).collect();
        let hops = render::all_hops(self.topology, &self.links);
        let nodes = routers.iter().enumerate().map(|(node, own)| {
            let documents =
                render::documents(render::Source { maker: self, node, routers: &routers, hops: &hops });
            NodePlan { name: self.spec.nodes[node].name.to_string(), documents, routers: own.clone() }
        });
        let wires = self.link_ports.iter().zip(&self.spec.links).map(|(ends, link)| Wire {
            ends: ends
                .map(|(node, port)| WireEnd { node, interface: self.ports[node][port].interface.clone() }),
            mtu: link.mtu,
        });
        Plan { nodes: nodes.collect(), wires: wires.collect(), hosts: self.hosts() }
    }

    fn hosts(&self) -> Vec<HostPlan> {
        let networks = self.spec.networks.iter().enumerate();
        let hosts = networks.flat_map(|(at, network)| {
            network.hosts.iter().enumerate().map(move |(number, host)| {
                let (node, port) = self.host_ports[at][number];
                let pairs = network.prefixes.iter().map(|prefix| host_addresses(network, *prefix, number));
                let pairs: Vec<_> = pairs.collect();
                HostPlan {
                    name: host.name.to_string(),
                    network: at,
                    node,
                    interface: self.ports[node][port].interface.clone(),
                    addresses: pairs.iter().map(|(_, own)| *own).collect(),
                    routers: pairs.iter().filter_map(|(router, _)| Some((*router)?.address)).collect(),
                    mtu: self.mtus[at],
                    entry: self.host_label(network, number).map(|label| HostEntry {
                        mac: self.host_mac(network, host),
                        router: self.mac(network, node, &self.ports[node][port].name),
                        label,
                    }),
                }
            })
        });
        hosts.collect()
    }

    /// The parts of all networks on a node.
    fn routers(&self, node: usize) -> Vec<Router> {
        let networks = self.spec.networks.iter().enumerate();
        let here = networks.filter(|(_, network)| self.is_on(network, node));
        here.map(|(at, network)| Router { network: at, ports: self.router_ports(node, at, network) })
            .collect()
    }

    fn is_on(&self, network: &TopologyNetwork, node: usize) -> bool {
        network.nodes.as_ref().is_none_or(|nodes| nodes.contains(&self.spec.nodes[node].name))
    }

    fn router_ports(&self, node: usize, at: usize, network: &TopologyNetwork) -> Vec<RouterPort> {
        let mut ports: Vec<RouterPort> = Vec::new();
        let hosts = self.host_ports[at].iter().enumerate().filter(|(_, (on, _))| *on == node);
        for (number, (_, port)) in hosts {
            let name = self.ports[node][*port].name.clone();
            let routers = network.prefixes.iter().filter_map(|one| host_addresses(network, *one, number).0);
            let (mac, addresses) = (self.mac(network, node, &name), routers.collect());
            ports.push(RouterPort { on: On::Host(name.clone()), name, mac, addresses });
        }
        for (link, resolved) in self.links[at].iter().enumerate() {
            let Some(end) = resolved.ends.iter().position(|one| *one == node) else { continue };
            let (name, by) = match resolved.on {
                Under::Link(physical) => {
                    let name = self.ports[node][self.link_ports_at(physical, node)].name.clone();
                    (name.clone(), By::Port(name))
                }
                Under::Tunnel { kind, over, vni } => {
                    let peer = &self.spec.nodes[resolved.ends[1 - end]].name;
                    let ends = [end, 1 - end].map(|end| self.tunnel_end(over, resolved.ends[end]));
                    (format!("to-{peer}"), By::Tunnel { kind, ends, over, vni })
                }
            };
            let name = free(&name, |name| ports.iter().any(|port| port.name == name));
            let links = network.prefixes.iter().filter(|_| network.has_routers());
            let addresses = links.map(|prefix| addresses::link(*prefix, link)[end]).collect();
            let mac = self.mac(network, node, &name);
            ports.push(RouterPort { name, mac, addresses, on: On::Link { link, end, by } });
        }
        ports
    }

    /// The port of a physical link at a node.
    fn link_ports_at(&self, link: usize, node: usize) -> usize {
        self.link_ports[link].iter().find(|(on, _)| *on == node).map(|(_, port)| *port).unwrap_or_default()
    }

    /// The address of a node in the network `over`, at which tunnels end: that on a host's link, which stays when a link fails, or else
    /// that on its first link.
    fn tunnel_end(&self, over: usize, node: usize) -> IpAddr {
        let network = &self.spec.networks[over];
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let Some(prefix) = network.prefixes.first() else { return unknown };
        if let Some(host) = self.host_ports[over].iter().position(|(on, _)| *on == node) {
            return addresses::host(*prefix, host).0.address;
        }
        let links = self.links[over].iter().enumerate();
        let mut ends = links.filter_map(|(number, link)| {
            let end = link.ends.iter().position(|one| *one == node)?;
            Some(addresses::link(*prefix, number)[end].address)
        });
        ends.next().unwrap_or(unknown)
    }

    /// The label of a host, or the key of frames to it; `None` if the kind's entries name no hosts.
    fn host_label(&self, network: &TopologyNetwork, number: usize) -> Option<String> {
        let host = network.hosts.get(number)?;
        match network.kind {
            Kind::Rofl => Some(labels::host(self.topology, network, host.name.as_str()).to_string()),
            Kind::Mpls => Some(labels::of_path(number).to_string()),
            Kind::Extract => host.matching.map(|digits| digits.to_string()),
            _ => None,
        }
    }

    /// The MAC address of a host, wherever it is.
    fn host_mac(&self, network: &TopologyNetwork, host: &TopologyHost) -> Mac {
        host.mac.unwrap_or_else(|| self.mac_of(network, "", host.name.as_str()))
    }

    /// The MAC address of a virtual port.
    fn mac(&self, network: &TopologyNetwork, node: usize, port: &str) -> Mac {
        self.mac_of(network, self.spec.nodes[node].name.as_str(), port)
    }

    /// A MAC address that follows from names: local, and the same whatever else the document has.
    fn mac_of(&self, network: &TopologyNetwork, node: &str, port: &str) -> Mac {
        let names = [self.topology.name(), network.name.as_str(), node, port];
        let hash = hash_of(&names);
        let [_, _, first, b, c, d, e, f] = (hash ^ (hash >> 48)).to_be_bytes();
        // Local, no group, and without the bit in which the address of a NIC beside the card's port differs.
        let local = Mac([first & 0b1011_1100 | 2, b, c, d, e, f]);
        debug_assert!(local.companion() != local);
        local
    }
}

/// The addresses on the link of a network's host with this number: the router's, if it has one, and the host's.
fn host_addresses(
    network: &TopologyNetwork,
    prefix: hue_tables::AnyPrefix,
    number: usize,
) -> (Option<InterfaceAddress>, InterfaceAddress) {
    if !network.has_routers() {
        return (None, addresses::flat_host(prefix, number));
    }
    let (router, own) = addresses::host(prefix, number);
    (Some(router), own)
}

/// A hash of names (FNV-1a).
fn hash_of(names: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

/// `wanted`, or with the first number from 2 that makes it free.
fn free(wanted: &str, is_used: impl Fn(&str) -> bool) -> String {
    if !is_used(wanted) {
        return wanted.to_owned();
    }
    let mut more = (2_u32..).map(|number| format!("{wanted}.{number}"));
    more.find(|name| !is_used(name)).unwrap_or_default()
}

/// Whether the topology's tool computes the routes, labels or entries of a network.
fn is_static(network: &TopologyNetwork) -> bool {
    network.routing == Routing::Static
}
