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
mod settings;
mod statics;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use hue_tables::AnyPrefix;
use hue_wire::Mac;
use nix::errno::Errno;

use crate::addresses::{self, Address, AddressState};
use crate::cgroup::{Cgroup, Limits, Trees};
use crate::error::HostError;
use crate::links::{Link, Links, NAME_BYTES_MAX};
use crate::netlink::protocol;
use crate::netns::{self, Namespace};

pub use drift::{Difference, Drift};

/// Prefix of the marks: of a namespace (at its loopback), and of the interfaces created in it.
const MARK: &str = "hueplane";
/// Default prefix of namespace names.
pub const PREFIX: &str = "hue-";

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
    /// Whether the port leads to one router only, whose MAC address nobody needs to know: no ARP, no neighbor discovery.
    pub no_arp: bool,
    /// Addresses with the prefix lengths of their links.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl PortConfig {
    /// The addresses of the interface: those of the configuration, and its link-local address with IPv6.
    fn all_addresses(&self, families: Families) -> Vec<(IpAddr, u8)> {
        let own = families.v6.then(|| (link_local(self.mac).into(), LINK_LOCAL_LEN));
        self.addresses.iter().copied().chain(own).collect()
    }
}

/// The address families of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Families {
    /// Whether it has IPv4.
    pub v4: bool,
    /// Whether it has IPv6.
    pub v6: bool,
}

impl Families {
    /// Only IPv4.
    pub const V4: Self = Self { v4: true, v6: false };
    /// Only IPv6.
    pub const V6: Self = Self { v4: false, v6: true };
    /// Neither: a network whose kind does not look at IP.
    pub const NONE: Self = Self { v4: false, v6: false };
    /// Both.
    pub const BOTH: Self = Self { v4: true, v6: true };
}

impl Default for Families {
    fn default() -> Self {
        Self::V4
    }
}

/// A static route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticRoute {
    /// Of a network with several, the slice whose table it is in; 0 is the main table ([`routes::table_of`](crate::routes::table_of)).
    pub slice: u8,
    /// Destination.
    pub prefix: AnyPrefix,
    /// Next hop.
    pub target: StaticTarget,
}

/// Next hop of a static route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StaticTarget {
    /// The gateway with this address, on the link that contains it.
    Via(IpAddr),
    /// The gateway with this address, on the link of a virtual port, by its index in [`Config::ports`]. Link-local
    /// gateways need it, because each link has the same prefix.
    ViaPort(IpAddr, usize),
    /// The link of a virtual port, by its index in [`Config::ports`].
    Port(usize),
    /// Several gateways, each on the link that contains it, with their weights of 1 to 256.
    Vias(Vec<(IpAddr, u16)>),
}

/// Target state of a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Address families; the same as for [`ControlNamespace::ensure`].
    pub families: Families,
    /// Virtual ports.
    pub ports: Vec<PortConfig>,
    /// Static routes.
    pub routes: Vec<StaticRoute>,
    /// Whether it carries tunnels: its kernel gets packets from its own addresses, to resolve the neighbour that they go to.
    pub carries: bool,
    /// Static neighbours: index of the virtual port, address, MAC address.
    pub neighbours: Vec<(usize, IpAddr, Mac)>,
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
    pub fn ensure(
        owner: &Owner,
        network: &str,
        limits: &Limits,
        families: Families,
    ) -> Result<Ensured, HostError> {
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
        Self::complete(owner, network, limits, families, namespace, created, changes)
    }

    /// First stage for a namespace that is already open: also gives it its name back if that was deleted.
    ///
    /// # Errors
    /// [`HostError::Replaced`] if another namespace has its name, or if a system call fails.
    pub fn ensure_again(
        &self,
        owner: &Owner,
        network: &str,
        limits: &Limits,
        families: Families,
    ) -> Result<Ensured, HostError> {
        let mut changes = Changes::default();
        if self.namespace.restore_name()? {
            changes.word(format!("namespace {} named again", self.namespace.name()));
        }
        Self::complete(owner, network, limits, families, self.namespace.try_clone()?, false, changes)
    }

    fn complete(
        owner: &Owner,
        network: &str,
        limits: &Limits,
        families: Families,
        namespace: Namespace,
        created: bool,
        mut changes: Changes,
    ) -> Result<Ensured, HostError> {
        namespace.run(|| settings::namespace(families, &mut changes))??;
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
        self.namespace.run(|| settings::ports(config, &mut changes))??;
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
    if link.no_arp != port.no_arp {
        links.set_arp(name, !port.no_arp)?;
        changes.word(format!("{name}: ARP switched {}", if port.no_arp { "off" } else { "on" }));
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
        let wanted = port.all_addresses(config.families);
        let has = there.iter().filter(|address| address.link == *link);
        let (good, bad): (Vec<&Address>, Vec<&Address>) =
            has.partition(|at| wanted.contains(&(at.address, at.len)) && at.state != AddressState::Duplicate);
        for old in bad {
            let ours = old.protocol == protocol::OURS || wanted.contains(&(old.address, old.len));
            if ours || is_of_another_mac(old) {
                addresses::remove(links.socket(), *link, old.address, old.len)?;
                changes.word(format!("{}: {}/{} removed", port.interface, old.address, old.len));
            }
        }
        for (address, len) in &wanted {
            if !good.iter().any(|old| (old.address, old.len) == (*address, *len)) {
                addresses::add(links.socket(), *link, *address, *len)?;
                changes.word(format!("{}: {address}/{len} added", port.interface));
            }
        }
    }
    Ok(())
}

/// Whether the kernel derived this unwanted address from a MAC address that the interface had: it keeps such
/// addresses when the MAC address changes.
fn is_of_another_mac(address: &Address) -> bool {
    /// `IFAPROT_KERNEL_LL`, since Linux 5.18.
    const KERNEL_LINK_LOCAL: u8 = 3;
    address.protocol == KERNEL_LINK_LOCAL
}

/// Prefix length of link-local addresses (RFC 4291 §2.5.6).
const LINK_LOCAL_LEN: u8 = 64;

/// The link-local address that the kernel derives from a MAC address (RFC 2464 §5).
fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
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
