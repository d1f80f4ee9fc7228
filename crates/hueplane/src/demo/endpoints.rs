//! Programs that give IP to hosts of networks that forward another protocol. They end with the namespaces of the hosts.

use std::time::Duration;

use super::lab::Lab;
use super::plan::{Plan, link_len};
use crate::failure::Failure;
use crate::local::endpoint;
use crate::local::probe::{self, Ping};

/// The ping with which a host is heard. Nobody answers.
const ANNOUNCE: Ping = Ping { count: 1, gap: Duration::from_millis(100), wait: Duration::from_millis(100) };

/// Starts the programs of all hosts that need one. Returns how many.
pub fn start(lab: &Lab, plan: &Plan) -> Result<usize, Failure> {
    let mut started = 0;
    for (inside, network) in lab.hosts.iter().zip(&plan.networks) {
        for (side, namespace) in inside.iter().enumerate() {
            let Some(endpoint) = network.endpoint(side) else { continue };
            // Any frame of the host: its bridge learns where it is. A frame to an address that it does not know goes to everybody.
            if let Some(target) = network.hosts[side].bridge_target {
                probe::ping(namespace, target, ANNOUNCE)?;
            }
            let own = network.hosts[side].address;
            endpoint::start(namespace, &endpoint, [(own, link_len(own))])?;
            started += 1;
        }
    }
    Ok(started)
}
