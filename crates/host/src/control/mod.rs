//! The control namespace of a network: where the kernel owns its addresses, answers ARP and ICMP, and runs whatever routing
//! daemon its owner starts.
//!
//! Flow, in two stages: **[`ControlNamespace::ensure`]** makes namespace, settings and cgroup; the daemon creates the TAPs in it;
//! **[`ControlNamespace::configure`]** gives them MAC, MTU, addresses, and the namespace its static routes and neighbours.
//! Invariants: both are idempotent: they look at what is there and correct only differences. A namespace carries a mark before
//! it has a name, so none of somebody else's is ever touched; in it, only what has our mark is changed or removed: what its
//! owner sets by hand, or a routing daemon, stays.

mod statics;

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use hue_tables::Prefix4;
use hue_wire::Mac;
use nix::errno::Errno;

use crate::cgroup::{Cgroup, Limits, Trees};
use crate::error::HostError;
use crate::links::{Link, Links, NAME_BYTES_MAX};
use crate::netlink::protocol;
use crate::netns::{self, Namespace};
use crate::{addresses, sysctl};

/// Beginning of the marks: of a namespace, at its loopback, and of the interfaces we made in it.
const MARK: &str = "hueplane";
/// Beginning of namespaces' names unless chosen otherwise.
pub const PREFIX: &str = "hue-";

/// Settings of a router that forwards for others and answers only for what is its own. A missing one is not this kernel's.
const SETTINGS: [(&str, &str); 20] = [
    ("net/ipv4/ip_forward", "1"),
    // The plane checks where frames come from; asymmetric routes are none of the kernel's business.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // Hosts on one link with two prefixes go by the router all the same.
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/conf/all/accept_redirects", "0"),
    ("net/ipv4/conf/default/accept_redirects", "0"),
    // Unicast in a broadcast or multicast frame goes no further (RFC 1812 §5.3.4), also for the router itself.
    ("net/ipv4/conf/all/drop_unicast_in_l2_multicast", "1"),
    ("net/ipv4/conf/default/drop_unicast_in_l2_multicast", "1"),
    // ARP for an address only on the interface that has it, and only with an address of the link.
    ("net/ipv4/conf/all/arp_ignore", "1"),
    ("net/ipv4/conf/default/arp_ignore", "1"),
    ("net/ipv4/conf/all/arp_announce", "2"),
    ("net/ipv4/conf/default/arp_announce", "2"),
    // Removing the first address of a link leaves the others.
    ("net/ipv4/conf/all/promote_secondaries", "1"),
    ("net/ipv4/conf/default/promote_secondaries", "1"),
    // One ICMP error to a destination each 100 ms, bursts of 6: traceroute works, a flood stays cheap.
    ("net/ipv4/icmp_ratelimit", "100"),
    // Routing daemons join groups on every interface with one socket.
    ("net/ipv4/igmp_max_memberships", "1024"),
    ("net/ipv4/fib_multipath_hash_policy", "1"),
    // Before any interface comes up, so that none sends router solicitations.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// How the kernel follows the neighbours of each interface. One that has vanished is unknown 9 to 19 s after its last sign of
/// life: 5 to 15 s (half to one and a half of the first) until it is doubted, a second of grace, three questions a second
/// apart. Namespaces have no `default` of these, so each interface has its own. Each neighbour answers once in
/// about 10 s, and that counts as a punt.
const NEIGHBOUR_SETTINGS: [(&str, &str); 2] =
    [("base_reachable_time_ms", "10000"), ("delay_first_probe_time", "1")];

/// Whose namespaces: names of namespaces begin with `prefix`, and their marks name `node`. Daemons on one machine need different
/// ones of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Beginning of names, `hue-`.
    pub prefix: String,
    /// Who they belong to: a name that stays over restarts of the daemon.
    pub node: String,
}

impl Owner {
    /// With the usual prefix.
    #[must_use]
    pub fn new(node: impl Into<String>) -> Self {
        Self { prefix: PREFIX.to_owned(), node: node.into() }
    }

    /// Name of a network's namespace.
    #[must_use]
    pub fn namespace(&self, network: &str) -> String {
        format!("{}{network}", self.prefix)
    }

    /// Networks of which anything is left here: a namespace of ours, or a cgroup; in order.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn networks(&self) -> Result<Vec<String>, HostError> {
        let mut found = Trees::detect()?.networks(&self.node);
        for name in netns::list(&self.prefix)? {
            let mine = Namespace::open(&name).and_then(|namespace| mark_of(&namespace));
            if mine.is_ok_and(|mark| mark.as_deref() == Some(&self.mark())) {
                found.extend(name.strip_prefix(&self.prefix).map(str::to_owned));
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn mark(&self) -> String {
        format!("{MARK} node {}", self.node)
    }
}

/// A virtual port as its network's namespace has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// Name of the TAP, from [`interface_names`].
    pub interface: String,
    /// Its MAC address.
    pub mac: Mac,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u16,
    /// Its addresses with the length of their links.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

/// A static route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StaticRoute {
    /// Destination.
    pub prefix: Prefix4,
    /// Where it leads.
    pub target: StaticTarget,
}

/// Where a static route leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StaticTarget {
    /// The router with this address.
    Via(Ipv4Addr),
    /// The link of a virtual port, by its index in [`Config::ports`].
    Port(usize),
}

/// What a namespace is to look like.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Virtual ports.
    pub ports: Vec<PortConfig>,
    /// Static routes.
    pub routes: Vec<StaticRoute>,
    /// Static neighbours: index of the virtual port, address, MAC address.
    pub neighbours: Vec<(usize, Ipv4Addr, Mac)>,
}

/// What was different, and is no more.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Each interface, address and setting changed, in words; at most [`Changes::WORDS_MAX`].
    pub words: Vec<String>,
    /// Static routes added or removed.
    pub routes: usize,
    /// Static neighbours set or removed.
    pub neighbours: usize,
    /// What could not be done because something of somebody else's is in the way, or the kernel refused; in words.
    pub refused: Vec<String>,
}

impl Changes {
    /// Most changes and refusals kept in words.
    pub const WORDS_MAX: usize = 64;

    /// Whether nothing was different.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.routes == 0 && self.neighbours == 0
    }

    fn word(&mut self, word: impl Into<String>) {
        if self.words.len() < Self::WORDS_MAX {
            self.words.push(word.into());
        }
    }

    fn refused(&mut self, failures: Vec<crate::netlink::Failure>, fine: Errno) -> usize {
        let failures: Vec<_> = failures.into_iter().filter(|failure| failure.errno != fine).collect();
        for failure in failures.iter().take(Self::WORDS_MAX.saturating_sub(self.refused.len())) {
            self.refused.push(HostError::from(failure.clone()).to_string());
        }
        failures.len()
    }
}

/// The namespace and cgroup of a network.
#[derive(Debug)]
pub struct ControlNamespace {
    /// Its network namespace.
    pub namespace: Namespace,
    /// Its cgroup; `None` when the machine has none and no limits are asked for.
    pub cgroup: Option<Cgroup>,
}

/// What [`ControlNamespace::ensure`] gives.
#[derive(Debug)]
pub struct Ensured {
    /// Namespace and cgroup.
    pub control: ControlNamespace,
    /// The namespace was made now.
    pub created: bool,
    /// What was different.
    pub changes: Changes,
}

impl ControlNamespace {
    /// First stage: namespace, settings, loopback, cgroup with its limits.
    ///
    /// # Errors
    /// [`HostError::Foreign`] when a namespace of this name is not ours; when the system refuses.
    pub fn ensure(owner: &Owner, network: &str, limits: &Limits) -> Result<Ensured, HostError> {
        let name = owner.namespace(network);
        let mark = owner.mark();
        let (namespace, created) = Namespace::create_with(&name, || Links::here()?.set_alias("lo", &mark))?;
        let mut changes = Changes::default();
        if created {
            changes.word(format!("namespace {name} created"));
        } else {
            let found = mark_of(&namespace)?;
            if found.as_deref() != Some(&mark) {
                let found = found.unwrap_or_else(|| "it has no mark".to_owned());
                return Err(HostError::Foreign { name, found });
            }
        }
        namespace.run(|| settings(&mut changes))??;
        let trees = Trees::detect()?;
        // Without limits a cgroup only serves to find the network's processes again.
        let cgroup = match Cgroup::create_in(&trees, &owner.node, network, limits) {
            Err(error) if *limits == Limits::default() => {
                changes.refused.push(error.to_string());
                None
            }
            made => Some(made?),
        };
        Ok(Ensured { control: Self { namespace, cgroup }, created, changes })
    }

    /// The namespace of a network that is there.
    ///
    /// # Errors
    /// [`HostError::NoNamespace`]; [`HostError::Foreign`] when it is not ours; when the system refuses.
    pub fn open(owner: &Owner, network: &str) -> Result<Self, HostError> {
        let name = owner.namespace(network);
        let namespace = Namespace::open(&name)?;
        let found = mark_of(&namespace)?;
        if found.as_deref() != Some(&owner.mark()) {
            return Err(HostError::Foreign {
                name,
                found: found.unwrap_or_else(|| "it has no mark".to_owned()),
            });
        }
        Ok(Self { namespace, cgroup: Cgroup::open(&owner.node, network)? })
    }

    /// Second stage: interfaces, addresses, static routes and neighbours. The TAPs are there already.
    ///
    /// # Errors
    /// [`HostError::NoInterface`] when a TAP is missing; when the system refuses what it should not.
    pub fn configure(&self, config: &Config) -> Result<Changes, HostError> {
        let mut changes = Changes::default();
        let mut links = Links::inside(&self.namespace)?;
        let there = links.list()?;
        let by_name: HashMap<&str, &Link> = there.iter().map(|link| (link.name.as_str(), link)).collect();
        self.remove_others(&mut links, &there, config, &mut changes)?;
        let mut indices = Vec::with_capacity(config.ports.len());
        for port in &config.ports {
            let missing = || HostError::NoInterface {
                name: port.interface.clone(),
                namespace: Some(self.namespace.name().to_owned()),
            };
            let link = by_name.get(port.interface.as_str()).ok_or_else(missing)?;
            interface(&mut links, link, port, &mut changes)?;
            indices.push(link.index);
        }
        self.namespace.run(|| neighbour_settings(config, &mut changes))??;
        own_addresses(&mut links, config, &indices, &mut changes)?;
        // On before routes: a link that is off takes none.
        for (port, index) in config.ports.iter().zip(&indices) {
            if there.iter().any(|link| link.index == *index && !link.up) {
                links.set_up(&port.interface, true)?;
                changes.word(format!("{} switched on", port.interface));
            }
        }
        statics::routes(&mut links, config, &indices, &mut changes)?;
        statics::neighbours(&mut links, config, &indices, &mut changes)?;
        Ok(changes)
    }

    /// Removes interfaces of ours that are no longer wanted.
    fn remove_others(
        &self,
        links: &mut Links,
        there: &[Link],
        config: &Config,
        changes: &mut Changes,
    ) -> Result<(), HostError> {
        let wanted: HashSet<&str> = config.ports.iter().map(|port| port.interface.as_str()).collect();
        for link in there {
            if link.alias.as_deref() == Some(PORT_MARK) && !wanted.contains(link.name.as_str()) {
                links.delete(&link.name)?;
                changes.word(format!("{} removed", link.name));
            }
        }
        Ok(())
    }

    /// Removes everything of a network: its processes, cgroup and namespace. Says whether there was anything.
    ///
    /// # Errors
    /// [`HostError::Foreign`] when a namespace of this name is not ours; when a process does not end, or the system refuses.
    pub fn delete(owner: &Owner, network: &str) -> Result<bool, HostError> {
        let mut was = false;
        if let Some(cgroup) = Cgroup::open(&owner.node, network)? {
            was |= cgroup.delete()?;
        }
        match Self::open(owner, network) {
            Ok(control) => {
                // A process that left the cgroup keeps the namespace alive, but not the network's interfaces.
                let mut links = Links::inside(&control.namespace)?;
                let there = links.list()?;
                let ours = there.iter().filter(|link| link.alias.as_deref() == Some(PORT_MARK));
                links.delete_together(&ours.map(|link| link.name.as_str()).collect::<Vec<_>>())?;
                was |= netns::delete(&owner.namespace(network))?;
            }
            Err(HostError::NoNamespace(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(was)
    }
}

/// Mark of an interface that belongs to a virtual port.
const PORT_MARK: &str = "hueplane port";

fn mark_of(namespace: &Namespace) -> Result<Option<String>, HostError> {
    let mark = Links::inside(namespace)?.get("lo")?.alias;
    Ok(mark.filter(|mark| mark.starts_with(MARK)))
}

fn settings(changes: &mut Changes) -> Result<(), HostError> {
    for (key, value) in SETTINGS {
        if sysctl::get_here(key)?.is_some() && sysctl::set_here(key, value)? {
            changes.word(format!("{key} set to {value}"));
        }
    }
    let mut links = Links::here()?;
    if !links.get("lo")?.up {
        links.set_up("lo", true)?;
        changes.word("loopback switched on");
    }
    Ok(())
}

fn neighbour_settings(config: &Config, changes: &mut Changes) -> Result<(), HostError> {
    for port in &config.ports {
        for (key, value) in NEIGHBOUR_SETTINGS {
            let key = format!("net/ipv4/neigh/{}/{key}", port.interface);
            if sysctl::get_here(&key)?.is_some() && sysctl::set_here(&key, value)? {
                changes.word(format!("{key} set to {value}"));
            }
        }
    }
    Ok(())
}

fn interface(
    links: &mut Links,
    link: &Link,
    port: &PortConfig,
    changes: &mut Changes,
) -> Result<(), HostError> {
    let name = port.interface.as_str();
    if link.alias.as_deref() != Some(PORT_MARK) {
        links.set_alias(name, PORT_MARK)?;
    }
    if link.mac != Some(port.mac) {
        links.set_mac(name, port.mac)?;
        changes.word(format!("{name} has MAC {}", port.mac));
    }
    if link.mtu != u32::from(port.mtu_bytes) {
        links.set_mtu(name, port.mtu_bytes.into())?;
        changes.word(format!("{name} has MTU {}", port.mtu_bytes));
    }
    Ok(())
}

fn own_addresses(
    links: &mut Links,
    config: &Config,
    indices: &[u32],
    changes: &mut Changes,
) -> Result<(), HostError> {
    let there = addresses::list(links.socket())?;
    for (port, link) in config.ports.iter().zip(indices) {
        let has: Vec<_> = there.iter().filter(|address| address.link == *link).collect();
        for old in &has {
            let own = (old.address, old.len);
            if old.protocol == protocol::OURS && !port.addresses.contains(&own) {
                addresses::remove(links.socket(), *link, own.0, own.1)?;
                changes.word(format!("{} lost {}/{}", port.interface, own.0, own.1));
            }
        }
        for (address, len) in &port.addresses {
            if !has.iter().any(|old| (old.address, old.len) == (*address, *len)) {
                addresses::add(links.socket(), *link, *address, *len)?;
                changes.word(format!("{} has {address}/{len}", port.interface));
            }
        }
    }
    Ok(())
}

/// Names of the interfaces of virtual ports: the port's own name where the kernel takes it, else its beginning, a `~` and a
/// number made from the name, so that adding a port does not rename others.
#[must_use]
pub fn interface_names(ports: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::with_capacity(ports.len());
    ports
        .iter()
        .map(|port| {
            let mut hash = hash(port);
            let mut name = if fits(port) { (*port).to_owned() } else { short(port, hash) };
            while !taken.insert(name.clone()) {
                hash = hash.wrapping_add(1);
                name = short(port, hash);
            }
            name
        })
        .collect()
}

/// Whether the kernel takes it as the name of an interface, next to its own ones.
fn fits(name: &str) -> bool {
    // `all` and `default` are folders of the settings of interfaces.
    name.len() <= NAME_BYTES_MAX && !matches!(name, "lo" | "all" | "default" | "." | "..")
}

/// A name with the digits of a number at its end; `~` is in no name of a port.
fn short(name: &str, hash: u32) -> String {
    let start: String = name.chars().take(NAME_BYTES_MAX - 6).collect();
    format!("{start}~{:05x}", hash & 0xf_ffff)
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
