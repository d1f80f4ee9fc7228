//! The lab: a node with ports on bridges, and two hosts for each network, all in their own namespaces. Networks whose hosts
//! are on one link have two ports of their own.
//!
//! ```text
//! namespace of the node                                        namespace of a host
//! daemon ── p0 ══ u0 ── br0 ── h1l ═══════════════════════════ eth0  10.1.1.2, router 10.1.1.1
//!       (── n0 ══ v0 ────┤)
//!                        └──── h3l ═══════ …
//! ```
//!
//! `n0` to `n3` exist if networks in software have NICs of their own.
//!
//! Invariants: the bridge ports of hosts are isolated, so that frames pass only between a host and the node.
//! There is no spanning tree, and no IPv6 but in hosts with such an address, so that hosts send all frames. `u0`… and `v0`… have no
//! offloads, so that large segments from hosts arrive at the node as packets with checksums.

use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_host::{HostError, ethtool, service, sysctl};
use hue_tables::AnyPrefix;

use super::place::Place;
use super::plan::{CARD_PORTS, Host, Network, Plan, SIDES, link_len};
use super::watch::Watcher;
use crate::failure::Failure;
use crate::local::space::{self, HOST_INTERFACE, Settings};
use crate::local::{probe, stop};

/// A lab that has been built.
pub struct Lab {
    /// The namespace of the daemon.
    pub node: Namespace,
    /// Hosts of each network, in the order of the plan.
    pub hosts: Vec<Vec<Namespace>>,
}

impl Lab {
    /// Builds the lab. If this fails, the place removes what exists.
    pub fn build(plan: &Plan, place: &Place, nics: bool) -> Result<Self, Failure> {
        service::raise_open_files()?;
        sysctl::raise_neighbour_limits()?;
        let node = space::create(&place.node_namespace())?;
        let mut links = Links::inside(&node)?;
        links.set_up("lo", true)?;
        for port in 0..plan.ports() {
            bridge_of_port(&mut links, port)?;
            for (outside, inside) in wires(port, nics) {
                wire_of_node(&mut links, port, &outside, &inside)?;
            }
        }
        let outsides = (0..plan.ports()).flat_map(|port| wires(port, nics)).map(|(outside, _)| outside);
        node.run(|| outsides.into_iter().try_for_each(|name| ethtool::set_tx_checksum(&name, false)))??;
        let numbered: Vec<(usize, &Network)> = plan.networks.iter().enumerate().collect();
        let hosts = probe::all(&numbered, |(index, network)| {
            let hosts = network.hosts.iter().zip(SIDES).map(|(host, side)| {
                let inside = space::create(&place.host_namespace(&network.name, side))?;
                stop::check()?;
                let port = format!("h{}{}", index + 1, &side[..1]);
                attach(&node, &inside, host, &port, network.has_endpoints())?;
                Ok(inside)
            });
            hosts.collect::<Result<Vec<_>, Failure>>()
        })?;
        Ok(Self { node, hosts })
    }

    /// Creates a watcher in each host, in the order of the plan. Call it before hosts send.
    pub fn watchers(&self, plan: &Plan) -> Result<Vec<Watcher>, Failure> {
        let pairs = self.hosts.iter().zip(&plan.networks);
        let watched = pairs.flat_map(|(inside, network)| {
            inside.iter().zip(&network.hosts).map(|(inside, host)| (inside, network.macs_at(host)))
        });
        watched.map(|(inside, macs)| Watcher::new(inside, &macs)).collect()
    }
}

fn bridge_of_port(links: &mut Links, port: usize) -> Result<(), HostError> {
    links.create_bridge(&bridge(port))?;
    links.set_up(&bridge(port), true)
}

/// A link from a bridge to the node.
fn wire_of_node(links: &mut Links, port: usize, outside: &str, inside: &str) -> Result<(), HostError> {
    links.create_veth(inside, outside, None)?;
    links.set_master(outside, Some(&bridge(port)))?;
    [outside, inside].into_iter().try_for_each(|name| links.set_up(name, true))
}

/// The links from a bridge to the node, by the names of their ends: on the bridge, and at the node.
fn wires(port: usize, nics: bool) -> Vec<(String, String)> {
    let of_card = (format!("u{port}"), format!("p{port}"));
    let of_nic = (nics && port < CARD_PORTS).then(|| (format!("v{port}"), format!("n{port}")));
    [of_card].into_iter().chain(of_nic).collect()
}

/// Connects a host to its bridge and configures it.
fn attach(
    node: &Namespace,
    inside: &Namespace,
    host: &Host,
    port: &str,
    has_endpoint: bool,
) -> Result<(), HostError> {
    let mut links = Links::inside(node)?;
    links.create_veth(port, HOST_INTERFACE, Some(inside))?;
    links.set_master(port, Some(&bridge(host.port)))?;
    links.set_isolated(port, true)?;
    links.set_up(port, true)?;
    // A program that gives IP to a host has an interface of its own, with the address.
    let links = host.links().filter(|_| !has_endpoint);
    let settings = Settings {
        mac: Some(host.mac),
        mtu: None,
        addresses: links.map(|(address, _)| (address, link_len(address))).collect(),
        routers: host.links().filter_map(|(_, router)| router).collect(),
        // The foreign host, as if it were on the link.
        on_link: host.bridge_target.map(AnyPrefix::host).into_iter().collect(),
        neighbours: Vec::new(),
    };
    space::configure(inside, &settings)
}

fn bridge(port: usize) -> String {
    format!("br{port}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use hue_wire::Mac;
    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;
    use crate::demo::place::tests::place;
    use crate::demo::watch::Watch;
    use crate::local::probe::Ping;

    const QUICK: Ping = Ping { count: 1, gap: Duration::from_millis(100), wait: Duration::from_millis(300) };

    /// Opens a socket that receives every frame of an interface from now on.
    fn listen(namespace: &Namespace) -> Socket {
        let open = || Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0x0300)));
        let socket = namespace.run(open).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket
    }

    #[test]
    fn hosts_reach_the_node_but_not_each_other() {
        let Some(place) = place(3) else { return };
        let plan = Plan::new(5);
        assert!(plan.switch().is_some());
        let lab = Lab::build(&plan, &place, true).unwrap();
        let watch = Watch::start(lab.watchers(&plan).unwrap());
        let mut node = listen(&lab.node);
        let mut bridge_target = 0;
        for (inside, network) in lab.hosts.iter().zip(&plan.networks) {
            for (inside, host) in inside.iter().zip(&network.hosts) {
                let to = host.bridge_target.or(host.router).unwrap();
                bridge_target += u32::from(host.bridge_target.is_some());
                assert_eq!(probe::ping(inside, to, QUICK).unwrap().received, 0, "no host has this address");
            }
        }
        assert!(bridge_target > 0);
        let (mut frame, mut sources) = ([0; 2048], Vec::new());
        while let Ok(length) = node.read(&mut frame) {
            assert!(length >= 14);
            sources.push(Mac(*frame[6..].first_chunk().unwrap()));
        }
        for host in plan.networks.iter().flat_map(|network| &network.hosts) {
            assert!(sources.contains(&host.mac), "what {} sends arrives at the node", host.mac);
        }
        for seen in watch.end().unwrap() {
            assert!(seen.is_empty(), "{seen:?}");
        }
        place.clear();
    }

    /// Checks the checker: without isolation, it detects the neighbour's frames.
    #[test]
    fn a_planted_leak_is_detected() {
        let Some(place) = place(4) else { return };
        let plan = Plan::new(3);
        let lab = Lab::build(&plan, &place, false).unwrap();
        let watch = Watch::start(lab.watchers(&plan).unwrap());
        let leaking = plan.networks[0].hosts[0].port;
        assert_eq!(plan.networks[2].hosts[0].port, leaking, "the first and the third share a bridge");
        let mut links = Links::inside(&lab.node).unwrap();
        for port in ["h1l", "h3l"] {
            links.set_isolated(port, false).unwrap();
        }
        let sender = &plan.networks[0].hosts[0];
        let tried = probe::ping(&lab.hosts[0][0], sender.bridge_target.unwrap(), QUICK).unwrap();
        assert_eq!(tried.sent, 1);
        std::thread::sleep(Duration::from_millis(200));
        let seen = watch.end().unwrap();
        let leaked: u64 = seen[4].get(&sender.mac).copied().unwrap_or(0);
        assert!(leaked > 0, "{seen:?}");
        assert_eq!(plan.owner(sender.mac), Some("red"));
        place.clear();
    }
}
