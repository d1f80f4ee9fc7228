//! The control namespace of a network. Its kernel owns the network's addresses, answers ARP and ICMP, and
//! runs any routing daemon that the owner starts.
//!
//! Flow, in two stages. **[`ControlNamespace::ensure`]** creates namespace, settings and cgroup. The daemon
//! then creates the TAPs in it. **[`ControlNamespace::configure`]** sets MAC, MTU and addresses of the TAPs,
//! static routes and static neighbours. Invariants: both stages are idempotent: they compare with the current
//! state and correct only differences. A namespace gets a mark before it gets a name, so no foreign namespace
//! is ever modified. Inside it, only items with hueplane's mark are changed or removed; everything that its
//! owner or a routing daemon sets stays.

mod drift;
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

pub use drift::{Difference, Drift};

/// Prefix of the marks: of a namespace (at its loopback), and of the interfaces created in it.
const MARK: &str = "hueplane";
/// Default prefix of namespace names.
pub const PREFIX: &str = "hue-";

/// Kernel settings of a router. Settings that this kernel does not have are skipped.
const SETTINGS: [(&str, &str); 20] = [
    ("net/ipv4/ip_forward", "1"),
    // The plane checks source addresses; the kernel must accept asymmetric routes.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // Hosts on one link with two prefixes use the router in any case.
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/conf/all/accept_redirects", "0"),
    ("net/ipv4/conf/default/accept_redirects", "0"),
    // Unicast packets in broadcast or multicast frames are dropped (RFC 1812 §5.3.4), even if addressed to
    // the router itself.
    ("net/ipv4/conf/all/drop_unicast_in_l2_multicast", "1"),
    ("net/ipv4/conf/default/drop_unicast_in_l2_multicast", "1"),
    // Answer ARP for an address only on the interface that has it, and use only addresses of the link as
    // sender.
    ("net/ipv4/conf/all/arp_ignore", "1"),
    ("net/ipv4/conf/default/arp_ignore", "1"),
    ("net/ipv4/conf/all/arp_announce", "2"),
    ("net/ipv4/conf/default/arp_announce", "2"),
    // Removing the first address of a link keeps the others.
    ("net/ipv4/conf/all/promote_secondaries", "1"),
    ("net/ipv4/conf/default/promote_secondaries", "1"),
    // One ICMP error per destination every 100 ms, with bursts of 6: traceroute works, and floods stay cheap.
    ("net/ipv4/icmp_ratelimit", "100"),
    // Routing daemons join groups on every interface with one socket.
    ("net/ipv4/igmp_max_memberships", "1024"),
    ("net/ipv4/fib_multipath_hash_policy", "1"),
    // Before any interface is up, so that none sends router solicitations.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// Neighbour settings of each interface. A neighbour that disappears is detected after 9 to 19 s: 5 to 15 s
/// until it becomes stale (half to one and a half of the first value), one second of delay, and three probes
/// one second apart. Namespaces have no `default` for these settings, so each interface needs its own. Each
/// neighbour answers about once in 10 s, and each answer is a punted packet.
const NEIGHBOUR_SETTINGS: [(&str, &str); 2] =
    [("base_reachable_time_ms", "10000"), ("delay_first_probe_time", "1")];

/// Identifies the namespaces of one daemon: their names begin with `prefix`, and their marks name `node`.
/// Several daemons on one machine need different values of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Prefix of namespace names, such as `hue-`.
    pub prefix: String,
    /// Name of the owner; it must not change when the daemon restarts.
    pub node: String,
}

impl Owner {
    /// Creates an owner with the default prefix.
    #[must_use]
    pub fn new(node: impl Into<String>) -> Self {
        Self { prefix: PREFIX.to_owned(), node: node.into() }
    }

    /// Name of a network's namespace.
    #[must_use]
    pub fn namespace(&self, network: &str) -> String {
        format!("{}{network}", self.prefix)
    }

    /// Networks of this owner that have a namespace or a cgroup, sorted.
    ///
    /// # Errors
    /// If the system call fails.
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

/// Configuration of a virtual port in its network's namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// Name of the TAP, from [`interface_names`].
    pub interface: String,
    /// MAC address.
    pub mac: Mac,
    /// Largest IP packet in bytes.
    pub mtu_bytes: u16,
    /// Addresses with the prefix lengths of their links.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

/// A static route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StaticRoute {
    /// Destination.
    pub prefix: Prefix4,
    /// Next hop.
    pub target: StaticTarget,
}

/// Next hop of a static route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StaticTarget {
    /// The gateway with this address.
    Via(Ipv4Addr),
    /// The link of a virtual port, by its index in [`Config::ports`].
    Port(usize),
}

/// Target state of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Virtual ports.
    pub ports: Vec<PortConfig>,
    /// Static routes.
    pub routes: Vec<StaticRoute>,
    /// Static neighbours: index of the virtual port, address, MAC address.
    pub neighbours: Vec<(usize, Ipv4Addr, Mac)>,
}

/// Differences that were corrected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Descriptions of changed interfaces, addresses and settings; at most [`Changes::WORDS_MAX`].
    pub words: Vec<String>,
    /// Number of static routes added or removed.
    pub routes: usize,
    /// Number of static neighbours set or removed.
    pub neighbours: usize,
    /// Descriptions of changes that were not possible, because of a foreign item or an error of the kernel.
    pub refused: Vec<String>,
}

impl Changes {
    /// Most descriptions of changes, and of failures.
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
    /// The network namespace.
    pub namespace: Namespace,
    /// The cgroup; `None` if the machine has no cgroups and no limits are set.
    pub cgroup: Option<Cgroup>,
}

/// Result of [`ControlNamespace::ensure`].
#[derive(Debug)]
pub struct Ensured {
    /// Namespace and cgroup.
    pub control: ControlNamespace,
    /// Whether the namespace was created now.
    pub created: bool,
    /// Differences that were corrected.
    pub changes: Changes,
}

impl ControlNamespace {
    /// First stage: creates or corrects namespace, settings, loopback, and cgroup with its limits.
    ///
    /// # Errors
    /// [`HostError::Foreign`] if a foreign namespace has this name, or if a system call fails.
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
                let found = found.unwrap_or_else(|| "no mark".to_owned());
                return Err(HostError::Foreign { name, found });
            }
        }
        Self::complete(owner, network, limits, namespace, created, changes)
    }

    /// First stage for a namespace that is already open: also gives it its name back if that was deleted.
    ///
    /// # Errors
    /// [`HostError::Replaced`] if another namespace has its name, or if a system call fails.
    pub fn ensure_again(&self, owner: &Owner, network: &str, limits: &Limits) -> Result<Ensured, HostError> {
        let mut changes = Changes::default();
        if self.namespace.restore_name()? {
            changes.word(format!("namespace {} named again", self.namespace.name()));
        }
        Self::complete(owner, network, limits, self.namespace.try_clone()?, false, changes)
    }

    fn complete(
        owner: &Owner,
        network: &str,
        limits: &Limits,
        namespace: Namespace,
        created: bool,
        mut changes: Changes,
    ) -> Result<Ensured, HostError> {
        namespace.run(|| settings(&mut changes))??;
        let trees = Trees::detect()?;
        // Without limits, the cgroup serves only to find the network's processes.
        let cgroup = match Cgroup::create_in(&trees, &owner.node, network, limits) {
            Err(error) if *limits == Limits::default() => {
                changes.refused.push(error.to_string());
                None
            }
            made => Some(made?),
        };
        Ok(Ensured { control: Self { namespace, cgroup }, created, changes })
    }

    /// The existing namespace of a network.
    ///
    /// # Errors
    /// [`HostError::NoNamespace`], [`HostError::Foreign`] for a foreign namespace, or if a system call fails.
    pub fn open(owner: &Owner, network: &str) -> Result<Self, HostError> {
        let name = owner.namespace(network);
        let namespace = Namespace::open(&name)?;
        let found = mark_of(&namespace)?;
        if found.as_deref() != Some(&owner.mark()) {
            return Err(HostError::Foreign { name, found: found.unwrap_or_else(|| "no mark".to_owned()) });
        }
        Ok(Self { namespace, cgroup: Cgroup::open(&owner.node, network)? })
    }

    /// Second stage: sets interfaces, addresses, static routes and neighbours. The TAPs must exist.
    ///
    /// # Errors
    /// [`HostError::NoInterface`] if a TAP does not exist, or if a system call fails unexpectedly.
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
        // Bring links up before adding routes: a link that is down accepts none.
        for (port, index) in config.ports.iter().zip(&indices) {
            if there.iter().any(|link| link.index == *index && !link.up) {
                links.set_up(&port.interface, true)?;
                changes.word(format!("{} brought up", port.interface));
            }
        }
        statics::routes(&mut links, config, &indices, &mut changes)?;
        statics::neighbours(&mut links, config, &indices, &mut changes)?;
        Ok(changes)
    }

    /// Removes hueplane's interfaces that are no longer needed.
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

    /// Removes everything of a network: processes, cgroup and namespace. Returns whether anything existed.
    ///
    /// # Errors
    /// [`HostError::Foreign`] if a foreign namespace has this name, or if a process does not end or a system
    /// call fails.
    pub fn delete(owner: &Owner, network: &str) -> Result<bool, HostError> {
        let mut was = false;
        if let Some(cgroup) = Cgroup::open(&owner.node, network)? {
            was |= cgroup.delete()?;
        }
        match Self::open(owner, network) {
            Ok(control) => {
                // A process that left the cgroup keeps the namespace alive, but not the network's interfaces.
                control.remove_ports()?;
                was |= netns::delete(&owner.namespace(network))?;
            }
            Err(HostError::NoNamespace(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(was)
    }

    /// Removes the interfaces of virtual ports, also if the namespace has lost its name.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn remove_ports(&self) -> Result<(), HostError> {
        let mut links = Links::inside(&self.namespace)?;
        let there = links.list()?;
        let ours = there.iter().filter(|link| link.alias.as_deref() == Some(PORT_MARK));
        links.delete_together(&ours.map(|link| link.name.as_str()).collect::<Vec<_>>())
    }
}

/// Mark of the interface of a virtual port.
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
        changes.word("loopback brought up");
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
        changes.word(format!("{name}: MAC set to {}", port.mac));
    }
    if link.mtu != u32::from(port.mtu_bytes) {
        links.set_mtu(name, port.mtu_bytes.into())?;
        changes.word(format!("{name}: MTU set to {}", port.mtu_bytes));
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
                changes.word(format!("{}: {}/{} removed", port.interface, own.0, own.1));
            }
        }
        for (address, len) in &port.addresses {
            if !has.iter().any(|old| (old.address, old.len) == (*address, *len)) {
                addresses::add(links.socket(), *link, *address, *len)?;
                changes.word(format!("{}: {address}/{len} added", port.interface));
            }
        }
    }
    Ok(())
}

/// Interface names of virtual ports: the port's name if the kernel accepts it, otherwise its beginning, a `~`
/// and a number derived from the name, so that adding a port does not rename others.
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

/// Whether the kernel accepts the interface name, and it does not conflict with names of the kernel.
fn fits(name: &str) -> bool {
    // `all` and `default` are directories of interface settings.
    name.len() <= NAME_BYTES_MAX && !matches!(name, "lo" | "all" | "default" | "." | "..")
}

/// The beginning of a name with digits of a hash at its end. Port names never contain `~`.
fn short(name: &str, hash: u32) -> String {
    let start: String = name.chars().take(NAME_BYTES_MAX - 6).collect();
    format!("{start}~{:05x}", hash & 0xf_ffff)
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
