//! The links of a network: the addresses that are directly reachable through each virtual port.
//!
//! Flow: validated ports and routes → **links**. The validator checks gateways and neighbours with them, and
//! control resolves gateways. A link is the prefix of an interface address, or a route directly onto a port.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use hue_tables::AnyPrefix;

use crate::address::InterfaceAddress;
use crate::types::{NetworkPort, Route, Target};

/// A prefix whose addresses are directly reachable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Index of the virtual port.
    pub vport: usize,
    /// The prefix.
    pub prefix: AnyPrefix,
    /// The network's own address on the link; `None` for a route onto the port.
    pub own: Option<InterfaceAddress>,
}

/// All links of a network. Finding the link of an address takes at most as many steps as an
/// address has bits.
#[derive(Clone, Debug)]
pub struct Links {
    by_len: BTreeMap<u8, HashMap<AnyPrefix, Link>>,
}

impl Links {
    /// Builds the links of ports and routes. The prefix of an address has priority over a route to the same
    /// prefix.
    #[must_use]
    pub fn new<'r>(ports: &[NetworkPort], routes: impl IntoIterator<Item = &'r Route>) -> Self {
        let mut links = Self { by_len: BTreeMap::new() };
        for (vport, port) in ports.iter().enumerate() {
            for own in port.addresses.iter().filter(|own| own.has_link()) {
                links.add(Link { vport, prefix: own.link(), own: Some(*own) });
            }
        }
        let names: HashMap<&str, usize> =
            ports.iter().enumerate().map(|(vport, port)| (port.name.as_str(), vport)).collect();
        for route in routes {
            let Target::Port(name) = &route.target else { continue };
            if let Some(vport) = names.get(name.as_str()) {
                links.add(Link { vport: *vport, prefix: route.to, own: None });
            }
        }
        links
    }

    fn add(&mut self, link: Link) {
        self.by_len.entry(link.prefix.len()).or_default().entry(link.prefix).or_insert(link);
    }

    /// The link of `address`: the longest prefix that contains it.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> Option<&Link> {
        self.by_len.iter().rev().find_map(|(len, links)| links.get(&AnyPrefix::containing(address, *len)))
    }
}
