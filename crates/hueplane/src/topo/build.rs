//! Namespaces of nodes and hosts, and the wires between them: veth pairs, without a bridge.

use hue_control::topology::Plan;
use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_host::{ethtool, service, sysctl};
use hue_intent::topology::Topology;

use super::hosts;
use super::place::{host_space, node_space};
use crate::failure::Failure;
use crate::local::probe::all;
use crate::local::space::{self, HOST_INTERFACE, Settings};

/// Builds everything but the daemons. Returns the namespaces of the nodes, in order. If it fails, the place's owner removes what exists.
pub fn build(topology: &Topology, plan: &Plan) -> Result<Vec<Namespace>, Failure> {
    let name = topology.name();
    service::raise_open_files()?;
    sysctl::raise_neighbour_limits()?;
    let nodes = all(&plan.nodes, |node| {
        let space = space::create(&node_space(name, &node.name))?;
        Links::inside(&space)?.set_up("lo", true)?;
        Ok(space)
    })?;
    all(&plan.wires, |wire| {
        let [one, other] = &wire.ends;
        let mut links = Links::inside(&nodes[one.node])?;
        links.create_veth(&one.interface, &other.interface, Some(&nodes[other.node]))?;
        for end in &wire.ends {
            let mut links = Links::inside(&nodes[end.node])?;
            links.set_mtu(&end.interface, wire.mtu.into())?;
            links.set_up(&end.interface, true)?;
        }
        Ok(())
    })?;
    all(&plan.hosts, |host| {
        let inside = space::create(&host_space(name, &host.name))?;
        let mut links = Links::inside(&nodes[host.node])?;
        links.create_veth(&host.interface, HOST_INTERFACE, Some(&inside))?;
        links.set_up(&host.interface, true)?;
        // Nothing behind the wire completes checksums or divides large segments.
        inside.run(|| ethtool::set_tx_checksum(HOST_INTERFACE, false))??;
        // A program has the addresses of a host that speaks no IP.
        let addresses = if hosts::has_endpoint(topology, host) { &[][..] } else { &host.addresses };
        let settings = Settings {
            mac: host.entry.as_ref().map(|entry| entry.mac),
            mtu: Some(host.mtu),
            addresses: addresses.iter().map(|one| (one.address, one.len)).collect(),
            routers: host.routers.clone(),
            neighbours: hosts::neighbours(topology, plan, host),
            ..Settings::default()
        };
        Ok(space::configure(&inside, &settings)?)
    })?;
    Ok(nodes)
}
