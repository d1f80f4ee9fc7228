//! Hosts of networks that forward another protocol than IP: programs give them IP, as `hueplane rofl-host` does. Each knows the labels of
//! all other hosts.

use std::net::IpAddr;

use hue_control::topology::{HostEntry, HostPlan, Plan};
use hue_host::netns::Namespace;
use hue_host::sysctl;
use hue_intent::topology::{Routing, Topology};
use hue_planes::Kind;
use hue_wire::Mac;

use super::place::host_space;
use super::routing;
use crate::failure::Failure;
use crate::local::endpoint::{self, EDGE, Endpoint};
use crate::local::probe::all;
use crate::local::space::HOST_INTERFACE;

/// The program of Python with which hosts put packets on label switched paths.
const PYTHON: &str = "python3";
/// With IPv6: the interface that a program makes in a host's namespace, and the host's own, at which packets without labels arrive. Addresses
/// are there at once, and no router is asked for more.
const INTERFACES6: [&str; 2] = ["default", HOST_INTERFACE];
const SETTINGS6: [&str; 4] = ["router_solicitations", "accept_ra", "accept_dad", "disable_ipv6"];

/// Whether the programs exist that the hosts need.
pub fn check(topology: &Topology) -> Result<(), Failure> {
    let needs = |kind, hosts: usize| kind == Kind::Mpls && hosts > 0;
    let network = topology.spec.networks.iter().find(|one| needs(one.kind, one.hosts.len()));
    match network {
        Some(network) if routing::program(PYTHON).is_none() => Err(Failure::Broken(format!(
            "network {}: hosts of kind mpls: program {PYTHON} is missing: apt-get install {PYTHON}",
            network.name
        ))),
        _ => Ok(()),
    }
}

/// Whether a program has the addresses of a host.
pub fn has_endpoint(topology: &Topology, host: &HostPlan) -> bool {
    matches!(topology.spec.networks[host.network].kind, Kind::Rofl | Kind::Mpls)
}

/// The hosts that a host cannot ask for their MAC addresses, because no entry of its network is for ARP: kind `extract`.
pub fn neighbours(topology: &Topology, plan: &Plan, host: &HostPlan) -> Vec<(IpAddr, Mac)> {
    if topology.spec.networks[host.network].kind != Kind::Extract {
        return Vec::new();
    }
    let others =
        others(plan, host).flat_map(|(other, entry)| other.addresses.iter().map(|one| (one, entry.mac)));
    others.map(|(one, mac)| (one.address, mac)).collect()
}

/// Starts the programs of all hosts that need one.
pub fn start(topology: &Topology, plan: &Plan) -> Result<(), Failure> {
    let hosts: Vec<&HostPlan> = plan.hosts.iter().filter(|host| has_endpoint(topology, host)).collect();
    all(&hosts, |host| {
        let Some(endpoint) = endpoint(topology, plan, host) else { return Ok(()) };
        let space = Namespace::open(&host_space(topology.name(), &host.name))?;
        if host.addresses.iter().any(|one| one.address.is_ipv6()) {
            space.run(|| {
                let all = INTERFACES6
                    .iter()
                    .flat_map(|one| SETTINGS6.map(|key| format!("net/ipv6/conf/{one}/{key}")));
                all.into_iter().try_for_each(|key| sysctl::set_here(&key, "0").map(drop))
            })??;
        }
        endpoint::start(&space, &endpoint, host.addresses.iter().map(|one| (one.address, one.len)))
    })?;
    Ok(())
}

/// The other hosts of a network, with what entries say about them.
fn others<'p>(plan: &'p Plan, host: &HostPlan) -> impl Iterator<Item = (&'p HostPlan, &'p HostEntry)> {
    let (network, own) = (host.network, host.name.clone());
    let others = plan.hosts.iter().filter(move |other| other.network == network && other.name != own);
    others.filter_map(|other| Some((other, other.entry.as_ref()?)))
}

/// The program of a host. Alone in its network it has nobody to talk to.
fn endpoint(topology: &Topology, plan: &Plan, host: &HostPlan) -> Option<Endpoint> {
    let network = &topology.spec.networks[host.network];
    let (own, router) = (host.entry.as_ref()?, host.entry.as_ref()?.router.to_string());
    let labels: Vec<String> = others(plan, host)
        .flat_map(|(other, entry)| {
            other.addresses.iter().map(|one| format!("{}={}", one.address, entry.label))
        })
        .collect();
    if labels.is_empty() {
        return None;
    }
    if network.kind == Kind::Mpls {
        let first = ["-c", EDGE, HOST_INTERFACE, "lsp0", &router].map(str::to_owned);
        let command = first.into_iter().chain(labels).collect();
        return Some(Endpoint { program: Some(PYTHON), command, interface: "lsp0", configures: false });
    }
    let first = ["rofl-host", "--interface", HOST_INTERFACE, "--router", &router, "--label", &own.label];
    let mut command: Vec<String> = first.map(str::to_owned).to_vec();
    for address in &host.addresses {
        command.extend(["--address".to_owned(), address.to_string()]);
    }
    for label in labels {
        command.extend(["--to".to_owned(), label]);
    }
    command.extend((network.routing == Routing::Ring).then(|| "--join".to_owned()));
    Some(Endpoint { program: None, command, interface: "rofl0", configures: true })
}
