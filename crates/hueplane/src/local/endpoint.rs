//! Programs that give IP to hosts of networks that forward another protocol. They end with the namespaces of the hosts.

use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_host::{HostError, addresses};

use super::stop;
use crate::failure::Failure;

/// The program that gives IP to hosts of networks of kind `mpls`.
pub const EDGE: &str = include_str!("../../../../labs/mpls/edge.py");
/// Longest time until a program has made its interface.
const START_MAX: Duration = Duration::from_secs(10);

/// A program that gives IP to a host.
#[derive(Debug)]
pub struct Endpoint {
    /// The program; `None` is this one.
    pub program: Option<&'static str>,
    /// Its arguments.
    pub command: Vec<String>,
    /// The interface that it makes.
    pub interface: &'static str,
    /// Whether it gives the interface its address.
    pub configures: bool,
}

/// Starts a program in a host's namespace, and waits for its interface, which gets the addresses unless the program gives them.
pub fn start(
    namespace: &Namespace,
    endpoint: &Endpoint,
    addresses: impl IntoIterator<Item = (IpAddr, u8)>,
) -> Result<(), Failure> {
    run(namespace, endpoint)?;
    let link = interface(namespace, endpoint)?;
    if !endpoint.configures {
        configure(namespace, endpoint, link, addresses)?;
    }
    Ok(())
}

fn run(namespace: &Namespace, endpoint: &Endpoint) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Broken(format!("{}: {error}", endpoint.interface));
    let program = match endpoint.program {
        Some(program) => program.into(),
        None => std::env::current_exe().map_err(failed)?,
    };
    let mut command = Command::new(program);
    command.args(&endpoint.command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C ends the command, which then ends them, or lets them run.
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

/// Gives the host's addresses to an interface, behind which its peers are then.
fn configure(
    namespace: &Namespace,
    endpoint: &Endpoint,
    link: u32,
    own: impl IntoIterator<Item = (IpAddr, u8)>,
) -> Result<(), HostError> {
    let mut links = Links::inside(namespace)?;
    links.set_up(endpoint.interface, true)?;
    own.into_iter().try_for_each(|(address, len)| addresses::add(links.socket(), link, address, len))
}
