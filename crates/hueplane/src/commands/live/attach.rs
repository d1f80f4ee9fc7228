//! `hueplane attach` and `hueplane detach`: hosts of the user's own on a network.
//!
//! Flow: the daemon's networks and ports → the interface that a port waits for, as one end of a veth pair whose other end
//! is in the host's namespace → the daemon opens the port, as for every interface that appears (ADR 0039). The
//! configuration does not change. Invariants: what failed or was interrupted leaves nothing; only interfaces and
//! namespaces with attach's mark are ever deleted.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hue_host::links::{Link, Links};
use hue_host::netns::{self, Standing};
use hue_host::{HostError, Namespace, addresses, ethtool, routes};
use hue_tables::Prefix4;
use hueplaned::api::{NeighbourFilter, Network, Port, PortState, VirtualPort};
use hueplaned::client::Client;
use serde::Serialize;

use super::client;
use crate::cli::{Attach, Connection, Detach};
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::print::{self, Align};

/// Alias of the loopback of a namespace that attach created; the first words of the alias of a wire.
const MARK: &str = "hueplane attach";
/// Longest time until the daemon has opened the port.
const OPEN_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Highest number of an interface `ethN` in a host.
const ETH_MAX: u32 = 64;
/// Interfaces that the kernel puts into new namespaces when it has these modules.
const KERNELS: [&str; 9] =
    ["tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0"];

/// An attached host, as the mark on its wire says.
#[derive(Clone, Serialize, Debug)]
struct Host {
    /// Name or file of its namespace.
    host: String,
    network: String,
    /// Virtual port.
    port: String,
    /// The node's interface.
    wire: String,
    /// The host's interface.
    interface: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl Host {
    fn mark(&self) -> String {
        let address = self.address.as_deref().unwrap_or("-");
        format!("{MARK} {}/{} {} {} {address}", self.network, self.port, self.host, self.interface)
    }

    /// The host at the other end of a wire; `None` if attach did not make the interface.
    fn of(link: &Link) -> Option<Self> {
        let rest = link.alias.as_deref()?.strip_prefix(MARK)?.strip_prefix(' ')?;
        let words: Vec<&str> = rest.split(' ').collect();
        let [place, host, interface, address] = words[..] else { return None };
        let (network, port) = place.split_once('/')?;
        Some(Self {
            host: host.to_owned(),
            network: network.to_owned(),
            port: port.to_owned(),
            wire: link.name.clone(),
            interface: interface.to_owned(),
            address: (address != "-").then(|| address.to_owned()),
        })
    }

    fn row(&self) -> Vec<String> {
        let address = self.address.clone().unwrap_or_else(|| "-".to_owned());
        let place = format!("{}/{}", self.network, self.port);
        vec![self.host.clone(), place, self.wire.clone(), self.interface.clone(), address]
    }
}

/// The result of attach.
#[derive(Serialize)]
struct Attached {
    #[serde(flatten)]
    host: Host,
    #[serde(skip_serializing_if = "Option::is_none")]
    router: Option<Ipv4Addr>,
    created_namespace: bool,
    default_route: bool,
}

/// The result of detach.
#[derive(Serialize)]
struct Detached {
    #[serde(flatten)]
    host: Host,
    deleted_namespace: bool,
    /// Why a namespace that attach created stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

/// Undoes what was made so far when it is dropped before `done` is set.
struct Undo {
    created: Option<Namespace>,
    wire: Option<(String, u32)>,
    done: bool,
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let Some((name, index)) = &self.wire {
            let gone = Links::here().and_then(|mut links| match links.find(name)? {
                Some(link) if link.index == *index => links.delete(name).map(|_| ()),
                _ => Ok(()),
            });
            if let Err(error) = gone {
                anstream::eprintln!("hueplane: interface {name} stays: {error}; `ip link delete {name}`");
            }
        }
        if let Some(namespace) = &self.created {
            let gone = namespace.standing().and_then(|standing| match standing {
                Standing::Own => netns::delete(namespace.name()).map(|_| ()),
                Standing::Nothing | Standing::Other => Ok(()),
            });
            if let Err(error) = gone {
                let name = namespace.name();
                anstream::eprintln!("hueplane: namespace {name} stays: {error}; `ip netns delete {name}`");
            }
        }
    }
}

/// Runs `attach`.
pub fn attach(args: &Attach, connection: &Connection) -> Result<(), Failure> {
    local("attach", connection)?;
    if args.list {
        let hosts = hosts()?;
        return print::result(args.output.format, &hosts, || table(&hosts));
    }
    let stop = interrupted()?;
    let client = client(connection)?;
    let place = args.network.as_deref().unwrap_or_default();
    let (network, port, wire) = find(&client, place)?;
    let address = address(&client, &network, &port)?;
    let mut undo = Undo { created: None, wire: None, done: false };
    let (namespace, created) = open(args)?;
    if created {
        undo.created = Some(namespace.try_clone().map_err(failed)?);
    }
    check(&client, &namespace)?;
    let router = address.map(|(_, router, _)| router);
    let mut attached = Attached {
        host: Host {
            host: namespace.name().to_owned(),
            network: network.name,
            port: port.name,
            wire: wire.interface.clone(),
            interface: String::new(),
            address: address.map(|(address, _, len)| format!("{address}/{len}")),
        },
        router,
        created_namespace: created,
        default_route: false,
    };
    connect(&mut attached, &namespace, &wire, address, &mut undo).map_err(failed)?;
    wait(&client, &wire, &stop)?;
    undo.done = true;
    print::result(args.output.format, &attached, || told(&attached))
}

/// Runs `detach`.
pub fn detach(args: &Detach, connection: &Connection) -> Result<(), Failure> {
    local("detach", connection)?;
    let wanted = |host: &Host| {
        args.host.as_ref().is_none_or(|name| *name == host.host)
            && args.network.as_ref().is_none_or(|place| match place.split_once('/') {
                Some((network, port)) => network == host.network && port == host.port,
                None => *place == host.network,
            })
    };
    let chosen: Vec<Host> = hosts()?.into_iter().filter(wanted).collect();
    if chosen.is_empty() && !args.all {
        return Err(Failure::Usage("detach: no such host; `hueplane attach --list` lists them".to_owned()));
    }
    let mut done = Vec::new();
    for host in chosen {
        Links::here().and_then(|mut links| links.delete(&host.wire)).map_err(failed)?;
        let (deleted_namespace, kept) = release(&host.host).map_err(failed)?;
        done.push(Detached { host, deleted_namespace, kept });
    }
    print::result(args.output.format, &done, || {
        let mut text = String::new();
        for item in &done {
            let host = &item.host;
            let _ = write!(text, "detached {} from {}/{}", host.host, host.network, host.port);
            let _ = match (&item.kept, item.deleted_namespace) {
                (Some(why), _) => writeln!(text, "; its namespace stays: {why}"),
                (None, true) => writeln!(text, " and deleted its namespace"),
                (None, false) => writeln!(text),
            };
        }
        text
    })
}

/// Refuses a daemon on another machine.
fn local(command: &str, connection: &Connection) -> Result<(), Failure> {
    match connection.server {
        Some(_) => {
            let why = "works only on the daemon's machine, not with --server";
            Err(Failure::Usage(format!("{command}: {why}: run it there")))
        }
        None => Ok(()),
    }
}

fn failed(error: HostError) -> Failure {
    let help = if error.is_denied() { "; needs root" } else { "" };
    Failure::Broken(format!("{error}{help}"))
}

/// Hosts whose wires are in this namespace.
fn hosts() -> Result<Vec<Host>, Failure> {
    let links = Links::here().and_then(|mut links| links.list()).map_err(failed)?;
    Ok(links.iter().filter_map(Host::of).collect())
}

fn table(hosts: &[Host]) -> String {
    let names = ["HOST", "NETWORK", "WIRE", "INTERFACE", "ADDRESS"].map(|name| (name, Align::Left));
    print::columns(&names, &hosts.iter().map(Host::row).collect::<Vec<_>>())
}

/// The virtual port, and the port that it is on, which has no interface.
fn find(client: &Client, place: &str) -> Result<(Network, VirtualPort, Port), Failure> {
    let (name, wanted) = place.split_once('/').map_or((place, None), |(name, port)| (name, Some(port)));
    let network = client.network(name)?;
    let ports = client.ports()?;
    let mut links = Links::here().map_err(failed)?;
    let mut taken = Vec::new();
    for port in &network.ports {
        if wanted.is_some_and(|wanted| wanted != port.name) {
            continue;
        }
        let Some(wire) = ports.iter().find(|wire| wire.name == port.port) else { continue };
        if let Some(peer) = &wire.peer {
            taken.push(format!("{}: {} is an end of the link to {peer}", port.name, wire.name));
            continue;
        }
        match links.find(&wire.interface).map_err(failed)? {
            None if wire.state == PortState::Missing => {
                let (port, wire) = (port.clone(), wire.clone());
                return Ok((network, port, wire));
            }
            None => {
                return Err(Failure::Usage(format!(
                    "attach {place}: port {} has an interface {} that this network namespace does not have; run the command in \
                     the daemon's",
                    wire.name, wire.interface
                )));
            }
            Some(link) => taken.push(match Host::of(&link) {
                Some(host) => format!("{}: {} is the wire of host {}", port.name, link.name, host.host),
                None => format!("{}: interface {} exists already, not made by attach", port.name, link.name),
            }),
        }
    }
    if taken.is_empty() {
        let names: Vec<&str> = network.ports.iter().map(|port| port.name.as_str()).collect();
        let names = names.join(", ");
        return Err(Failure::Usage(format!("attach {place}: no such virtual port; {name} has: {names}")));
    }
    let taken = taken.join("; ");
    Err(Failure::Usage(format!("attach {place}: no port without an interface ({taken}); one host per port")))
}

/// A free address for a host, the router's, and the prefix length; `None` if the virtual port has no IPv4 address.
fn address(
    client: &Client,
    network: &Network,
    port: &VirtualPort,
) -> Result<Option<(Ipv4Addr, Ipv4Addr, u8)>, Failure> {
    let own: Vec<(Ipv4Addr, u8)> = port.addresses.iter().filter_map(|text| parse(text)).collect();
    let Some(&(router, len)) = own.first() else { return Ok(None) };
    let mut used: BTreeSet<Ipv4Addr> = own.iter().map(|(address, _)| *address).collect();
    let filter = NeighbourFilter { network: Some(network.name.clone()), ..NeighbourFilter::default() };
    used.extend(client.neighbours(&filter)?.iter().filter(|n| n.port == port.name).map(|n| n.address));
    match free(router, len, &used) {
        Some(address) => Ok(Some((address, router, len))),
        None => Err(Failure::Full(format!(
            "attach {}/{}: no free address in the subnet of {router}/{len}",
            network.name, port.name
        ))),
    }
}

fn parse(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, len) = text.split_once('/')?;
    Some((address.parse().ok()?, len.parse().ok().filter(|len| *len <= 32)?))
}

/// The lowest address of a subnet that is not used; of subnets with 31 bits, both addresses are hosts (RFC 3021).
fn free(router: Ipv4Addr, len: u8, used: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
    let host_bits = u32::MAX.checked_shr(len.into()).unwrap_or(0);
    let (first, last) = (router.to_bits() & !host_bits, router.to_bits() | host_bits);
    let hosts = if len >= 31 { first..=last } else { first + 1..=last - 1 };
    hosts.map(Ipv4Addr::from_bits).find(|address| !used.contains(address))
}

/// The host's namespace, and whether it was created.
fn open(args: &Attach) -> Result<(Namespace, bool), Failure> {
    let usage = |error: HostError| match error {
        error if error.is_denied() => failed(error),
        other => Failure::Usage(format!("attach: {other}")),
    };
    if let Some(name) = &args.host {
        let prepare = || {
            let mut links = Links::here()?;
            links.set_alias("lo", MARK)?;
            links.set_up("lo", true)
        };
        return Namespace::create_with(name, prepare).map_err(usage);
    }
    let path = match (args.pid, &args.netns) {
        (Some(pid), _) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        (None, Some(path)) => path.clone(),
        (None, None) => return Err(Failure::Usage("attach: expected --host, --netns or --pid".to_owned())),
    };
    let text = path.to_string_lossy();
    if text.contains(char::is_whitespace) {
        return Err(Failure::Usage(format!("attach: {text:?}: expected a path without white space")));
    }
    let opened = if path.is_absolute() { Namespace::at(&path) } else { Namespace::open(&text) };
    Ok((opened.map_err(usage)?, false))
}

/// Refuses the node's own namespace and those of networks.
fn check(client: &Client, namespace: &Namespace) -> Result<(), Failure> {
    let identity = namespace.identity().map_err(failed)?;
    let refused = |what: &str| {
        let name = namespace.name();
        Err(Failure::Usage(format!("attach: {name} is {what}, which cannot be a host; use another one")))
    };
    if Namespace::own().and_then(|own| own.identity()).map_err(failed)? == identity {
        return refused("the network namespace of the node");
    }
    for network in client.networks()? {
        let there = fs::metadata(Path::new(netns::FOLDER).join(&network.namespace));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == identity) {
            return refused(&format!("the namespace of network {}", network.name));
        }
    }
    Ok(())
}

/// Makes the wire and sets the host up; the wire comes up last, so the daemon never opens half of it.
fn connect(
    attached: &mut Attached,
    namespace: &Namespace,
    wire: &Port,
    address: Option<(Ipv4Addr, Ipv4Addr, u8)>,
    undo: &mut Undo,
) -> Result<(), HostError> {
    let mut here = Links::here()?;
    let mut inside = Links::inside(namespace)?;
    let names: BTreeSet<String> = inside.list()?.into_iter().map(|link| link.name).collect();
    let eth = (0..ETH_MAX).map(|n| format!("eth{n}")).find(|name| !names.contains(name));
    let eth = eth.unwrap_or_else(|| format!("eth{ETH_MAX}"));
    here.create_veth(&wire.interface, &eth, Some(namespace))?;
    undo.wire = Some((wire.interface.clone(), here.index_of(&wire.interface)?));
    attached.host.interface.clone_from(&eth);
    here.set_alias(&wire.interface, &attached.host.mark())?;
    here.set_mtu(&wire.interface, wire.mtu.into())?;
    inside.set_mtu(&eth, wire.mtu.into())?;
    // The port hands frames on as they are: the host must complete checksums and segments itself.
    namespace.run(|| ethtool::set_tx_checksum(&eth, false))??;
    inside.set_up(&eth, true)?;
    if let Some((address, router, len)) = address {
        let link = inside.index_of(&eth)?;
        addresses::add(inside.socket(), link, address, len)?;
        let has = |route: &routes::Route| route.table == routes::MAIN && route.prefix.len() == 0;
        if !routes::list(inside.socket())?.iter().any(has) {
            let default = routes::Wanted { prefix: Prefix4::containing(0, 0), via: Some(router), link };
            if let Some(failure) = routes::add(inside.socket(), [&default])?.into_iter().next() {
                return Err(failure.into());
            }
            attached.default_route = true;
        }
    }
    here.set_up(&wire.interface, true)
}

/// Waits until the daemon has opened the port.
fn wait(client: &Client, wire: &Port, stop: &AtomicBool) -> Result<(), Failure> {
    let end = Instant::now() + OPEN_MAX;
    loop {
        let port = client.ports()?.into_iter().find(|port| port.name == wire.name);
        if port.as_ref().is_some_and(|port| port.state == PortState::Up) {
            return Ok(());
        }
        if stop.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted);
        }
        if Instant::now() > end {
            let why = port.and_then(|port| port.error).unwrap_or_else(|| "no reason".to_owned());
            return Err(Failure::Broken(format!(
                "port {}: the daemon did not open interface {} ({why}); run the command in the daemon's network namespace",
                wire.name, wire.interface
            )));
        }
        sleep(LOOK_EVERY);
    }
}

/// Deletes a namespace that attach created, if nothing else is in it. Returns whether, and why it stays.
fn release(name: &str) -> Result<(bool, Option<String>), HostError> {
    let namespace = match Namespace::open(name) {
        Ok(namespace) => namespace,
        // A path, or gone.
        Err(HostError::NoNamespace(_) | HostError::NamespaceName(_)) => return Ok((false, None)),
        Err(error) => return Err(error),
    };
    let links = Links::inside(&namespace)?.list()?;
    if !links.iter().any(|link| link.loopback && link.alias.as_deref() == Some(MARK)) {
        return Ok((false, None));
    }
    let foreign = |link: &&Link| !link.loopback && !KERNELS.contains(&link.name.as_str());
    if let Some(link) = links.iter().find(foreign) {
        return Ok((false, Some(format!("it has interface {}", link.name))));
    }
    let identity = namespace.identity()?;
    if let Some((pid, _)) = netns::processes().find(|(_, place)| *place == identity) {
        return Ok((false, Some(format!("process {pid} runs in it"))));
    }
    Ok((netns::delete(name)?, None))
}

/// What was done, and how to use it.
fn told(attached: &Attached) -> String {
    let Host { host, network, port, wire, interface, address } = &attached.host;
    let new = if attached.created_namespace { "new " } else { "" };
    let mut text = format!("{new}host {host}: {interface} is connected to {network}/{port} by {wire}\n");
    let Some(address) = address else {
        text.push_str(
            "the virtual port has no IPv4 address, so the host got only the wire: set it up yourself\n",
        );
        return text;
    };
    let _ = write!(text, "address {address}");
    let _ = match (attached.router, attached.default_route) {
        (Some(router), true) => writeln!(text, ", default route over {router}"),
        _ => writeln!(text, "; the host keeps its own default route"),
    };
    if let Some(router) = attached.router {
        let enter = if host.starts_with('/') {
            format!("nsenter --net={host}")
        } else {
            format!("ip netns exec {host}")
        };
        let _ = writeln!(text, "try: {enter} ping {router}");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn free_of(router: &str, len: u8, used: &[&str]) -> Option<String> {
        let used = used.iter().map(|text| text.parse().unwrap()).collect();
        free(router.parse().unwrap(), len, &used).map(|address| address.to_string())
    }

    #[test]
    fn the_lowest_free_address_is_taken() {
        assert_eq!(free_of("10.1.1.1", 24, &["10.1.1.1"]).as_deref(), Some("10.1.1.2"));
        assert_eq!(free_of("10.1.1.254", 24, &["10.1.1.254"]).as_deref(), Some("10.1.1.1"));
        assert_eq!(free_of("10.0.0.1", 30, &["10.0.0.1", "10.0.0.2"]), None);
        assert_eq!(free_of("10.0.0.0", 31, &["10.0.0.0"]).as_deref(), Some("10.0.0.1"));
        assert_eq!(free_of("10.0.0.1", 32, &["10.0.0.1"]), None);
        assert_eq!(free_of("255.255.255.1", 24, &["255.255.255.1"]).as_deref(), Some("255.255.255.2"));
    }
}
