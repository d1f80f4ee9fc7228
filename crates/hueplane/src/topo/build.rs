//! Namespaces of nodes and hosts, and the wires between them: veth pairs, without a bridge.

use hue_control::topology::Plan;
use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_host::{ethtool, service, sysctl};

use super::place::{host_space, node_space};
use crate::failure::Failure;
use crate::local::probe::all;
use crate::local::space::{self, HOST_INTERFACE, Settings};

/// Builds everything but the daemons. Returns the namespaces of the nodes, in order. If it fails, the place's owner removes what exists.
pub fn build(topology: &str, plan: &Plan) -> Result<Vec<Namespace>, Failure> {
    service::raise_open_files()?;
    sysctl::raise_neighbour_limits()?;
    let nodes = all(&plan.nodes, |node| {
        let space = space::create(&node_space(topology, &node.name))?;
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
        let inside = space::create(&host_space(topology, &host.name))?;
        let mut links = Links::inside(&nodes[host.node])?;
        links.create_veth(&host.interface, HOST_INTERFACE, Some(&inside))?;
        links.set_up(&host.interface, true)?;
        // Nothing behind the wire completes checksums or divides large segments.
        inside.run(|| ethtool::set_tx_checksum(HOST_INTERFACE, false))??;
        let settings = Settings {
            mtu: Some(host.mtu),
            addresses: host.addresses.iter().map(|one| (one.address, one.len)).collect(),
            routers: host.routers.clone(),
            ..Settings::default()
        };
        Ok(space::configure(&inside, &settings)?)
    })?;
    Ok(nodes)
}
