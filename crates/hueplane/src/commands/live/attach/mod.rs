//! `hueplane attach` and `hueplane detach`: hosts of the user's own on a network.
//!
//! Flow: the daemon's networks and ports → the interface that a port waits for, wired to a bridge with the port's hosts on it → the daemon
//! opens the port, as for every interface that appears (ADR 0039). The configuration does not change. Invariants: what failed or was
//! interrupted leaves nothing; only interfaces and namespaces with attach's mark are ever deleted; one attach or detach at a time in a
//! network namespace.

mod make;
mod mark;
mod told;
mod unmake;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hue_host::links::{self, Link, Links};
use hue_host::{HostError, Namespace, netns, sysctl};
use hue_tables::{AnyPrefix, Key, Prefix};
use hueplaned::api::{Network, NetworkFilter, Port, PortState, VirtualPort};
use hueplaned::client::Client;
use nix::unistd::{Uid, User, geteuid};
use serde::Serialize;

use self::make::{Address, HOST_MAX, Undo};
use self::mark::{Host, Kind, MARK, Segment, mac_of};
use self::told::{Attached, told};
use super::client;
use crate::cli::{Attach, Connection, Detach};
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::print::{self, Align};

/// Longest time until the daemon has opened the port.
const OPEN_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest time to wait for other runs of attach and detach.
const TURN_MAX: Duration = Duration::from_secs(60);
/// The network namespace of this thread, as a file.
const OWN: &str = "/proc/thread-self/ns/net";

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

/// Where a host goes.
struct Place {
    network: Network,
    port: VirtualPort,
    wire: Port,
    /// What attach made there already.
    segment: Option<Segment>,
}

/// Runs `attach`.
pub fn attach(args: &Attach, connection: &Connection) -> Result<(), Failure> {
    local("attach", connection)?;
    if args.list {
        let hosts = Host::all(&links()?);
        return print::result(args.output.format, &hosts, || table(&hosts));
    }
    let stop = interrupted()?;
    let client = client(connection)?;
    let _turn = turn("attach", Some(&stop))?;
    let (links, ports) = (links()?, client.ports()?);
    let place = find(&client, args.network.as_deref().unwrap_or_default(), &links, &ports)?;
    let addresses = addresses(&client, &place, &Host::all(&links))?;
    let taken = links.iter().map(|link| &link.name).chain(ports.iter().map(|port| &port.interface));
    let taken: BTreeSet<String> = taken.cloned().collect();
    let mut undo = Undo::default();
    let attached = match &args.tap {
        Some(name) => {
            let owner = owner(args)?;
            let name = tap_name(name, &links, &ports)?;
            connect_tap(place, name, owner, &addresses, &taken, &mut undo)?
        }
        None => {
            let (namespace, created) = open(args)?;
            if created {
                undo.created = Some(namespace.try_clone().map_err(failed)?);
            }
            check(&client, &namespace)?;
            connect_namespace(place, &namespace, &addresses, &taken, &mut undo)?
        }
    };
    wait(&client, &attached, &stop)?;
    undo.done = true;
    print::result(args.output.format, &attached, || told(&attached))
}

/// Runs `detach`.
pub fn detach(args: &Detach, connection: &Connection) -> Result<(), Failure> {
    local("detach", connection)?;
    let is = |name: &Option<String>, kind: Kind, host: &Host| {
        name.as_ref().is_none_or(|name| *name == host.host && host.kind == kind)
    };
    let wanted = |host: &Host| {
        is(&args.host, Kind::Namespace, host)
            && is(&args.tap, Kind::Tap, host)
            && args.network.as_ref().is_none_or(|place| match place.split_once('/') {
                Some((network, port)) => network == host.network && port == host.port,
                None => *place == host.network,
            })
    };
    let _turn = turn("detach", None)?;
    let chosen: Vec<Host> = Host::all(&links()?).into_iter().filter(wanted).collect();
    if chosen.is_empty() && !args.all {
        return Err(Failure::Usage("detach: no such host; `hueplane attach --list` lists them".to_owned()));
    }
    let mut here = Links::here().map_err(failed)?;
    let mut done = Vec::new();
    for host in chosen {
        here.delete(&host.wire).map_err(failed)?;
        let (deleted_namespace, kept) = match host.kind {
            Kind::Namespace => unmake::release(&host.host).map_err(failed)?,
            Kind::Tap => (false, None),
        };
        done.push(Detached { host, deleted_namespace, kept });
    }
    for segment in unmake::sweep(&mut here).map_err(failed)? {
        let (bridge, strangers) = (segment.bridge.unwrap_or_default(), segment.strangers.join(", "));
        anstream::eprintln!(
            "hueplane: bridge {bridge} stays: attach did not make {strangers} on it; remove that, then `hueplane detach --all`"
        );
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

/// Waits for other runs of attach and detach in this network namespace. The lock ends with the process, and is on the namespace
/// itself: a file in `/run` would depend on mounts.
fn turn(command: &str, stop: Option<&AtomicBool>) -> Result<File, Failure> {
    let broken = |error: std::io::Error| Failure::Broken(format!("{command}: lock {OWN}: {error}"));
    let file = File::open(OWN).map_err(broken)?;
    let end = Instant::now() + TURN_MAX;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(broken(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if stop.is_some_and(|stop| stop.load(Ordering::SeqCst)) {
            return Err(Failure::Interrupted);
        }
        if Instant::now() > end {
            return Err(Failure::Broken(format!(
                "{command}: another process has locked this network namespace for {} s; `lslocks` lists locks",
                TURN_MAX.as_secs()
            )));
        }
        sleep(LOOK_EVERY);
    }
}

/// Interfaces of this namespace.
fn links() -> Result<Vec<Link>, Failure> {
    Links::here().and_then(|mut links| links.list()).map_err(failed)
}

fn table(hosts: &[Host]) -> String {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let row = |host: &Host| {
        let place = format!("{}/{}", host.network, host.port);
        let (bridge, interface) = (or(&host.bridge), or(&host.interface));
        let addresses = if host.addresses.is_empty() { "-".to_owned() } else { host.addresses.join(", ") };
        vec![host.host.clone(), place, bridge, host.wire.clone(), interface, addresses]
    };
    let names =
        ["HOST", "NETWORK", "BRIDGE", "WIRE", "INTERFACE", "ADDRESSES"].map(|name| (name, Align::Left));
    print::columns(&names, &hosts.iter().map(row).collect::<Vec<_>>())
}

/// The virtual port that was asked for, or else the one with the fewest hosts on its port.
fn find(client: &Client, asked: &str, links: &[Link], ports: &[Port]) -> Result<Place, Failure> {
    let (name, wanted) = asked.split_once('/').map_or((asked, None), |(name, port)| (name, Some(port)));
    let network = client.network(name)?;
    let mut best: Option<(usize, Place)> = None;
    let mut unfit = Vec::new();
    for port in &network.ports {
        if wanted.is_some_and(|wanted| wanted != port.name) {
            continue;
        }
        if let Some(tunnel) = &port.tunnel {
            unfit.push(format!("{}: a tunnel to {}", port.name, tunnel.remote));
            continue;
        }
        let Some(wire) = ports.iter().find(|wire| wire.name == port.port) else { continue };
        let segment = match usable(wire, links) {
            Ok(segment) => segment,
            Err(why) => {
                unfit.push(format!("{}: {why}", port.name));
                continue;
            }
        };
        let hosts = segment.as_ref().map_or(0, |segment| segment.hosts.len());
        if best.as_ref().is_none_or(|(least, _)| hosts < *least) {
            best = Some((
                hosts,
                Place { network: network.clone(), port: port.clone(), wire: wire.clone(), segment },
            ));
        }
    }
    if let Some((_, place)) = best {
        return Ok(place);
    }
    if unfit.is_empty() {
        let names: Vec<&str> = network.ports.iter().map(|port| port.name.as_str()).collect();
        let names = names.join(", ");
        return Err(Failure::Usage(format!("attach {asked}: no such virtual port; {name} has: {names}")));
    }
    Err(Failure::Usage(format!("attach {asked}: no port for a host ({})", unfit.join("; "))))
}

/// What attach made behind a port; an error says why a host cannot be there.
fn usable(wire: &Port, links: &[Link]) -> Result<Option<Segment>, String> {
    if let Some(peer) = &wire.peer {
        return Err(format!("{} is an end of the link to {peer}", wire.name));
    }
    let name = &wire.interface;
    let link = links.iter().find(|link| link.name == *name);
    if link.is_some_and(|link| link.alias.as_deref() != Some(&Segment::mark(name))) {
        return Err(format!("interface {name} exists already, not made by attach"));
    }
    let segment = Segment::of(links, name);
    let elsewhere = || {
        format!(
            "port {} has an interface {name} that this network namespace does not have; run the command in the daemon's",
            wire.name
        )
    };
    // Another daemon's port may have the same name.
    let mac = link.and_then(|link| link.mac).map(|mac| mac.to_string());
    if wire.state == PortState::Up && mac.is_some() && wire.mac.is_some() && wire.mac != mac {
        return Err(elsewhere());
    }
    match &segment {
        Some(segment) if !segment.whole && !segment.is_unused() => {
            let hosts = segment.hosts.iter().map(|host| &host.host);
            let on: Vec<&str> = hosts.chain(&segment.strangers).map(String::as_str).collect();
            Err(format!(
                "a part of what connects {name} with {} is missing or down; `hueplane detach` them and attach them again",
                on.join(", ")
            ))
        }
        None if wire.state != PortState::Missing => Err(elsewhere()),
        _ => Ok(segment),
    }
}

/// Free addresses for a host: one of each family that the virtual port has, in the order of the port's addresses.
fn addresses(client: &Client, place: &Place, hosts: &[Host]) -> Result<Vec<Address>, Failure> {
    let Place { network, port, wire, segment } = place;
    let mut subnets: Vec<(IpAddr, u8)> = Vec::with_capacity(2);
    for (router, len) in port.addresses.iter().filter_map(|text| parse(text)) {
        if subnets.iter().all(|(other, _)| other.is_ipv4() != router.is_ipv4()) {
            subnets.push((router, len));
        }
    }
    if subnets.is_empty() {
        return Ok(Vec::new());
    }
    // Whoever is on the same segment must have another address, also routers and hosts of other networks.
    let networks = client.networks()?;
    let routers = networks.iter().flat_map(|network| &network.ports).filter(|port| port.port == wire.name);
    let mut used: BTreeSet<IpAddr> =
        routers.flat_map(|port| &port.addresses).filter_map(|text| Some(parse(text)?.0)).collect();
    let bridge = segment.as_ref().and_then(|segment| segment.bridge.as_ref());
    let near = |host: &&Host| {
        (host.network == network.name && host.port == port.name)
            || (bridge.is_some() && host.bridge.as_ref() == bridge)
    };
    let addresses = hosts.iter().filter(near).flat_map(|host| &host.addresses);
    used.extend(addresses.filter_map(|text| Some(parse(text)?.0)));
    let filter = NetworkFilter { network: Some(network.name.clone()), ..NetworkFilter::default() };
    let neighbours = client.neighbours(&filter)?;
    used.extend(neighbours.iter().filter(|known| known.port == port.name).map(|known| known.address));
    let address = |(router, len): (IpAddr, u8)| match free(router, len, &used) {
        Some(own) => Ok(Address { own, router, len }),
        None => Err(Failure::Full(format!(
            "attach {}/{}: no free address in the subnet of {router}/{len}",
            network.name, port.name
        ))),
    };
    subnets.into_iter().map(address).collect()
}

fn parse(text: &str) -> Option<(IpAddr, u8)> {
    let (address, len) = text.split_once('/')?;
    let (address, len) = (address.parse().ok()?, len.parse().ok()?);
    (len <= AnyPrefix::host(address).len()).then_some((address, len))
}

/// The lowest address of a subnet that is not used.
fn free(router: IpAddr, len: u8, used: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    match AnyPrefix::containing(router, len) {
        AnyPrefix::V4(subnet) => free_in(subnet, subnet.last() - u32::from(len < 31), used),
        AnyPrefix::V6(subnet) => free_in(subnet, subnet.last(), used), // there is no broadcast address
    }
}

/// The lowest free address up to `last`. If the subnet has more than two addresses, the first one is no host's; of two, both
/// are hosts' (RFC 3021, RFC 6164).
fn free_in<K: Key>(subnet: Prefix<K>, last: K, used: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let first = Some(subnet.addr());
    let first = if subnet.len() + 2 <= K::BITS { first.and_then(Key::next) } else { first };
    let hosts = std::iter::successors(first, |one| one.next()).take_while(|one| *one <= last);
    hosts.map(Key::to_ip).find(|address| !used.contains(address))
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

/// The name for a TAP device, which nothing has.
fn tap_name<'a>(name: &'a str, links: &[Link], ports: &[Port]) -> Result<&'a str, Failure> {
    let usage = |why: String| Err(Failure::Usage(format!("attach --tap {name}: {why}; use another name")));
    if let Err(error) = links::checked(name) {
        return Err(Failure::Usage(format!("attach --tap: {error}")));
    }
    if let Some(port) = ports.iter().find(|port| port.interface == name) {
        return usage(format!("the name is that of the interface of port {}", port.name));
    }
    match links.iter().find(|link| link.name == name) {
        Some(link) if link.alias.as_deref().is_some_and(|alias| alias.starts_with(MARK)) => {
            usage("an interface of this name exists already, made by attach".to_owned())
        }
        Some(_) => usage("an interface of this name exists already, not made by attach".to_owned()),
        None => Ok(name),
    }
}

/// The user who may open the TAP device: `--user`, or the caller.
fn owner(args: &Attach) -> Result<u32, Failure> {
    let Some(user) = &args.user else { return Ok(geteuid().as_raw()) };
    if let Ok(number) = user.parse() {
        return Ok(Uid::from_raw(number).as_raw());
    }
    match User::from_name(user) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err(Failure::Usage(format!(
            "attach --user {user}: no such user on this machine; give an existing name or a number"
        ))),
        Err(errno) => Err(Failure::Broken(format!("attach --user {user}: look up: {errno}"))),
    }
}

/// The bridge of a place, made if it does not exist.
fn bridge(
    here: &mut Links,
    place: &mut Place,
    taken: &BTreeSet<String>,
    undo: &mut Undo,
) -> Result<String, Failure> {
    match place.segment.take() {
        Some(Segment { whole: true, bridge: Some(bridge), .. }) => return Ok(bridge),
        // What an attach that was killed left behind.
        Some(rest) => unmake::remove(here, &rest).map_err(failed)?,
        None => {}
    }
    make::segment(here, &place.wire, taken, undo)
}

/// What attach will report of a host.
fn begun(
    place: Place,
    host: &str,
    kind: Kind,
    bridge: String,
    wire: String,
    addresses: &[Address],
) -> Attached {
    // Source: kernel Documentation/networking/ip-sysctl.rst, "/proc/sys/net/bridge/*".
    let filtered = sysctl::get_here("net/bridge/bridge-nf-call-iptables").ok().flatten();
    let note = (filtered.as_deref() == Some("1")).then(|| {
        format!(
            "this machine's packet filter also sees the frames of bridges; if it drops those of the host: iptables -I FORWARD -i \
             {bridge} -o {bridge} -j ACCEPT"
        )
    });
    Attached {
        host: Host {
            host: host.to_owned(),
            kind,
            network: place.network.name,
            port: place.port.name,
            wire,
            bridge: Some(bridge),
            interface: None,
            addresses: addresses.iter().map(|address| format!("{}/{}", address.own, address.len)).collect(),
        },
        port_interface: place.wire.interface,
        routers: addresses.iter().map(|address| address.router).collect(),
        created_namespace: false,
        default_routes: Vec::new(),
        mac: None,
        mtu: place.wire.mtu,
        note,
    }
}

fn connect_namespace(
    mut place: Place,
    namespace: &Namespace,
    addresses: &[Address],
    taken: &BTreeSet<String>,
    undo: &mut Undo,
) -> Result<Attached, Failure> {
    let mut here = Links::here().map_err(failed)?;
    let bridge = bridge(&mut here, &mut place, taken, undo)?;
    let wire = (1..=HOST_MAX).map(|n| format!("{bridge}h{n}")).find(|name| !taken.contains(name));
    let wire = wire.ok_or_else(|| {
        let asked = format!("{}/{}", place.network.name, place.port.name);
        Failure::Full(format!("attach {asked}: bridge {bridge} has {HOST_MAX} hosts already; detach some"))
    })?;
    let mut attached = begun(place, namespace.name(), Kind::Namespace, bridge, wire, addresses);
    attached.created_namespace = undo.created.is_some();
    attached.default_routes =
        make::namespace(&mut here, &mut attached.host, namespace, attached.mtu, addresses, undo)
            .map_err(failed)?;
    here.set_up(&attached.port_interface, true).map_err(failed)?;
    Ok(attached)
}

fn connect_tap(
    mut place: Place,
    name: &str,
    owner: u32,
    addresses: &[Address],
    taken: &BTreeSet<String>,
    undo: &mut Undo,
) -> Result<Attached, Failure> {
    let mut here = Links::here().map_err(failed)?;
    let bridge = bridge(&mut here, &mut place, taken, undo)?;
    let mut attached = begun(place, name, Kind::Tap, bridge, name.to_owned(), addresses);
    let index = make::tap(&mut here, &attached.host, attached.mtu, owner, undo)?;
    attached.mac = Some(mac_of(addresses.first().map(|address| address.own), index).to_string());
    here.set_up(&attached.port_interface, true).map_err(failed)?;
    Ok(attached)
}

/// Waits until the daemon has opened the port.
fn wait(client: &Client, attached: &Attached, stop: &AtomicBool) -> Result<(), Failure> {
    let interface = &attached.port_interface;
    let end = Instant::now() + OPEN_MAX;
    loop {
        let port = client.ports()?.into_iter().find(|port| port.interface == *interface);
        if port.as_ref().is_some_and(|port| port.state == PortState::Up) {
            return Ok(());
        }
        if stop.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted);
        }
        if Instant::now() > end {
            let unseen = port.as_ref().is_none_or(|port| port.state == PortState::Missing);
            let why = port.and_then(|port| port.error).unwrap_or_else(|| "no reason".to_owned());
            let help = if unseen { "; run the command in the daemon's network namespace" } else { "" };
            return Err(Failure::Broken(format!(
                "the daemon did not open interface {interface} ({why}){help}"
            )));
        }
        sleep(LOOK_EVERY);
    }
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
        assert_eq!(free_of("2001:db8::1", 64, &["2001:db8::1"]).as_deref(), Some("2001:db8::2"));
        assert_eq!(free_of("2001:db8::9", 64, &["2001:db8::9"]).as_deref(), Some("2001:db8::1"));
        let last = free_of("2001:db8::1", 126, &["2001:db8::1", "2001:db8::2"]);
        assert_eq!(last.as_deref(), Some("2001:db8::3"));
        assert_eq!(free_of("2001:db8::", 127, &["2001:db8::"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(free_of("ffff::1", 128, &["ffff::1"]), None);
    }
}
