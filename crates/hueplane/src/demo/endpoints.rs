//! Programs that give IP to hosts of networks that forward another protocol. They end with the namespaces of the hosts.

use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_host::{HostError, addresses};

use super::lab::Lab;
use super::plan::{Endpoint, Plan, link_len};
use crate::failure::Failure;
use crate::local::probe::{self, Ping};
use crate::local::stop;

/// The ping with which a host is heard. Nobody answers.
const ANNOUNCE: Ping = Ping { count: 1, gap: Duration::from_millis(100), wait: Duration::from_millis(100) };
/// Longest time until a program has made its interface.
const START_MAX: Duration = Duration::from_secs(10);

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
            run(namespace, &endpoint)?;
            let link = interface(namespace, &endpoint)?;
            if !endpoint.configures {
                configure(namespace, &endpoint, link, network.hosts[side].address)?;
            }
            started += 1;
        }
    }
    Ok(started)
}

fn run(namespace: &Namespace, endpoint: &Endpoint) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Broken(format!("{}: {error}", endpoint.interface));
    let program = match endpoint.program {
        Some(program) => program.into(),
        None => std::env::current_exe().map_err(failed)?,
    };
    let mut command = Command::new(program);
    command.args(&endpoint.command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C ends the demo, which then ends them.
    command.process_group(0);
    // A process starts in the namespace of the thread that creates it.
    namespace.run(move || command.spawn())?.map(drop).map_err(failed)
}

/// Waits for the interface of a program.
fn interface(namespace: &Namespace, endpoint: &Endpoint) -> Result<u32, Failure> {
    let deadline = Instant::now() + START_MAX;
    let mut links = Links::inside(namespace)?;
    loop {
        stop::check()?;
        if let Some(link) = links.find(endpoint.interface)? {
            return Ok(link.index);
        }
        if Instant::now() > deadline {
            let (name, program) = (namespace.name(), endpoint.program.unwrap_or("hueplane"));
            let text = format!("host {name}: {program} has not made {}", endpoint.interface);
            return Err(Failure::Broken(text));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Gives the host's address to an interface, behind which is then its peer.
fn configure(namespace: &Namespace, endpoint: &Endpoint, link: u32, own: IpAddr) -> Result<(), HostError> {
    let mut links = Links::inside(namespace)?;
    links.set_up(endpoint.interface, true)?;
    addresses::add(links.socket(), link, own, link_len(own))
}
