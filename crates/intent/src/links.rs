//! The links of a network: the addresses that are directly reachable through each virtual port.
//!
//! Flow: validated ports and routes → **links**. The validator checks gateways and neighbours with them, and
//! control resolves gateways. A link is the prefix of an interface address, or a route directly onto a port.

use std::collections::HashMap;
use std::net::IpAddr;

use hue_tables::{AnyPrefix, PrefixMap};

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

/// All links of a network.
#[derive(Clone, Debug)]
pub struct Links(PrefixMap<Link>);

impl Links {
    /// Builds the links of ports and routes. The prefix of an address has priority over a route to the same
    /// prefix.
    #[must_use]
    pub fn new<'r>(ports: &[NetworkPort], routes: impl IntoIterator<Item = &'r Route>) -> Self {
        let mut links = PrefixMap::default();
        let mut add = |link: Link| links.insert_first(link.prefix, link);
        for (vport, port) in ports.iter().enumerate() {
            for own in port.addresses.iter().filter(|own| own.has_link()) {
                add(Link { vport, prefix: own.link(), own: Some(*own) });
            }
        }
        let names: HashMap<&str, usize> =
            ports.iter().enumerate().map(|(vport, port)| (port.name.as_str(), vport)).collect();
        for route in routes {
            let Target::Port(name) = &route.target else { continue };
            if let Some(vport) = names.get(name.as_str()) {
                add(Link { vport: *vport, prefix: route.to, own: None });
            }
        }
        Self(links)
    }

    /// The link of `address`: the longest prefix that contains it.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> Option<&Link> {
        self.0.longest(address)
    }
}
