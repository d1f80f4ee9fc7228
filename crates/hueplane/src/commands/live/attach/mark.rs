//! Marks: the aliases by which attach knows what it made.
//!
//! Flow: interfaces of the node → **hosts and segments** → attach, detach. A segment is what connects the hosts of one port: the port's
//! interface, the other end of that wire, and the bridge that this end is on. Its three parts carry the same mark. Each host has a
//! mark of its own, on the interface by which it is on the bridge. Invariant: an interface without a mark is never changed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hue_host::links::Link;
use hue_wire::Mac;
use serde::Serialize;

/// Alias of the loopback of a namespace that attach created; the first words of the alias of an interface.
pub const MARK: &str = "hueplane attach";

/// What a host is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A network namespace.
    Namespace,
    /// A TAP device for a virtual machine.
    Tap,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Tap => "tap",
        }
    }
}

/// An attached host, as its mark says.
#[derive(Clone, Serialize, Debug)]
pub struct Host {
    /// Name or file of its namespace; name of the TAP device.
    pub host: String,
    pub kind: Kind,
    pub network: String,
    /// Virtual port.
    pub port: String,
    /// The node's interface that leads to it.
    pub wire: String,
    /// The bridge that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// The host's interface; what a virtual machine calls it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its addresses with their prefix lengths: at most one of each family.
    pub addresses: Vec<String>,
}

impl Host {
    /// The alias of its interface.
    pub fn mark(&self) -> String {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let (kind, interface) = (self.kind.word(), or(&self.interface));
        let addresses = if self.addresses.is_empty() { "-".to_owned() } else { self.addresses.join(",") };
        format!("{MARK} {kind} {}/{} {} {interface} {addresses}", self.network, self.port, self.host)
    }

    /// The host that this interface leads to; `None` if attach did not make it.
    fn of(link: &Link, links: &[Link]) -> Option<Self> {
        let rest = link.alias.as_deref()?.strip_prefix(MARK)?.strip_prefix(' ')?;
        let words: Vec<&str> = rest.split(' ').collect();
        let [kind, place, host, interface, addresses] = words[..] else { return None };
        let kind = [Kind::Namespace, Kind::Tap].into_iter().find(|one| one.word() == kind)?;
        let (network, port) = place.split_once('/')?;
        let given = |text: &str| (text != "-").then(|| text.to_owned());
        let bridge = links.iter().find(|bridge| link.master == Some(bridge.index));
        Some(Self {
            host: host.to_owned(),
            kind,
            network: network.to_owned(),
            port: port.to_owned(),
            wire: link.name.clone(),
            bridge: bridge.map(|bridge| bridge.name.clone()),
            interface: given(interface),
            addresses: given(addresses).iter().flat_map(|list| list.split(',')).map(str::to_owned).collect(),
        })
    }

    /// All hosts.
    pub fn all(links: &[Link]) -> Vec<Self> {
        links.iter().filter_map(|link| Self::of(link, links)).collect()
    }
}

/// The hosts of one port, and what connects them.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its bridge; `None` if an attach was killed or the bridge was deleted.
    pub bridge: Option<String>,
    /// What has its mark, the port's interface first: so no frame comes from a bridge that is half removed.
    pub parts: Vec<String>,
    pub hosts: Vec<Host>,
    /// Interfaces on the bridge that attach did not make.
    pub strangers: Vec<String>,
    /// Whether frames can pass from the bridge to the port.
    pub whole: bool,
}

impl Segment {
    /// The alias of its parts.
    pub fn mark(wire: &str) -> String {
        format!("{MARK} segment {wire}")
    }

    /// The segment behind the port with this interface.
    pub fn of(links: &[Link], wire: &str) -> Option<Self> {
        let mark = Self::mark(wire);
        let parts: Vec<&Link> = links.iter().filter(|link| link.alias.as_deref() == Some(&mark)).collect();
        if parts.is_empty() {
            return None;
        }
        let (bridges, ends): (Vec<&Link>, Vec<&Link>) = parts
            .iter()
            .filter(|link| link.name != wire)
            .partition(|link| link.kind.as_deref() == Some("bridge"));
        let inside = |link: &Link| bridges.iter().any(|bridge| link.master == Some(bridge.index));
        let members = links.iter().filter(|link| inside(link) && link.alias.as_deref() != Some(&mark));
        let (hosts, strangers): (Vec<&Link>, Vec<&Link>) =
            members.partition(|link| Host::of(link, links).is_some());
        let near = parts.iter().find(|link| link.name == wire);
        let whole = match (near, &bridges[..], &ends[..]) {
            (Some(near), [bridge], [end]) => {
                near.up
                    && bridge.up
                    && end.up
                    && near.peer == Some(end.index)
                    && end.master == Some(bridge.index)
            }
            _ => false,
        };
        Some(Self {
            bridge: bridges.first().map(|link| link.name.clone()),
            parts: near.into_iter().chain(&ends).chain(&bridges).map(|link| link.name.clone()).collect(),
            hosts: hosts.into_iter().filter_map(|link| Host::of(link, links)).collect(),
            strangers: strangers.into_iter().map(|link| link.name.clone()).collect(),
            whole,
        })
    }

    /// All segments.
    pub fn all(links: &[Link]) -> Vec<Self> {
        let prefix = Self::mark("");
        let marks = links.iter().filter_map(|link| link.alias.as_deref()?.strip_prefix(&prefix));
        let wires: BTreeSet<&str> = marks.collect();
        wires.into_iter().filter_map(|wire| Self::of(links, wire)).collect()
    }

    /// Whether only attach's own parts are left.
    pub fn is_unused(&self) -> bool {
        self.hosts.is_empty() && self.strangers.is_empty()
    }
}

/// A MAC address for a virtual machine. All machines of a hypervisor have the same one unless it is set, which does not work on one
/// segment. It follows from the end of the address, which is unique there, or else from the index of the TAP device. `52:54:00` is the prefix
/// that QEMU uses.
pub fn mac_of(address: Option<IpAddr>, index: u32) -> Mac {
    let (third, [_, a, b, c]) = match address {
        Some(IpAddr::V4(address)) => (0x00, address.octets()),
        Some(IpAddr::V6(address)) => (0x02, (address.to_bits() as u32).to_be_bytes()),
        None => (0x01, index.to_be_bytes()),
    };
    Mac([0x52, 0x54, third, a, b, c])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: &str, alias: &str, master: Option<u32>, peer: Option<u32>) -> Link {
        Link {
            index,
            name: name.into(),
            kind: Some(kind.into()),
            mac: None,
            mtu: 1500,
            up: true,
            carrier: true,
            master,
            alias: Some(alias.into()),
            peer,
            ..Link::default()
        }
    }

    fn segment() -> Vec<Link> {
        let mark = Segment::mark("a0");
        let host = Host {
            host: "alice".into(),
            kind: Kind::Namespace,
            network: "red".into(),
            port: "left".into(),
            wire: "attach0h1".into(),
            bridge: Some("attach0".into()),
            interface: Some("eth0".into()),
            addresses: vec!["10.1.1.2/24".into(), "2001:db8::2/64".into()],
        };
        vec![
            link(1, "attach0", "bridge", &mark, None, None),
            link(2, "a0", "veth", &mark, None, Some(3)),
            link(3, "attach0w", "veth", &mark, Some(1), Some(2)),
            link(4, "attach0h1", "veth", &host.mark(), Some(1), Some(9)),
        ]
    }

    #[test]
    fn a_segment_is_whole_only_with_all_its_parts() {
        let links = segment();
        let found = Segment::of(&links, "a0").unwrap();
        assert!(found.whole && found.strangers.is_empty() && !found.is_unused());
        assert_eq!((found.bridge.as_deref(), found.hosts[0].host.as_str()), (Some("attach0"), "alice"));
        assert_eq!(found.hosts[0].mark(), links[3].alias.clone().unwrap());
        assert_eq!(found.hosts[0].addresses, ["10.1.1.2/24", "2001:db8::2/64"]);
        assert_eq!(found.parts, ["a0", "attach0w", "attach0"]);
        for missing in 0..3 {
            let mut links = segment();
            links.remove(missing);
            assert!(!Segment::of(&links, "a0").unwrap().whole, "{missing}");
            let mut links = segment();
            links[missing].up = false;
            assert!(!Segment::of(&links, "a0").unwrap().whole, "{missing}");
        }
        assert!(Segment::of(&links, "a1").is_none());
    }

    #[test]
    fn interfaces_without_a_mark_are_strangers() {
        let mut links = segment();
        links[3].alias = Some("hueplane attach namespace red".into());
        links.push(link(5, "eth7", "veth", "", Some(1), None));
        let found = Segment::of(&links, "a0").unwrap();
        assert_eq!(found.strangers, ["attach0h1", "eth7"]);
        assert!(Host::all(&links).is_empty());
    }

    #[test]
    fn machines_with_different_addresses_have_different_macs() {
        let of = |text: &str| mac_of(Some(text.parse().unwrap()), 7).to_string();
        assert_eq!(of("10.1.1.3"), "52:54:00:01:01:03");
        assert_eq!(mac_of(None, 0x0102).to_string(), "52:54:01:00:01:02");
    }
}
