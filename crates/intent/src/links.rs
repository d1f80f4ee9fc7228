//! The links of a network: which addresses are on the wire of which virtual port.
//!
//! Flow: validated ports and routes → **links** → the validator checks gateways and neighbours against them, control
//! resolves gateways with them. A link is the prefix of an interface address, or a route straight onto a port.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use hue_tables::Prefix4;

use crate::types::{InterfaceAddress, NetworkPort, Route, Target};

/// A prefix whose addresses are reached without a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Index of the virtual port.
    pub vport: usize,
    /// The prefix.
    pub prefix: Prefix4,
    /// The network's own address there; `None` for a route straight onto the port.
    pub own: Option<InterfaceAddress>,
}

/// All links of a network, found by address in at most 33 steps however many there are.
#[derive(Clone, Debug)]
pub struct Links {
    by_len: Vec<HashMap<u32, Link>>,
}

impl Links {
    /// The links that ports and routes make. The prefix of an address wins over a route to the same prefix.
    #[must_use]
    pub fn new<'r>(ports: &[NetworkPort], routes: impl IntoIterator<Item = &'r Route>) -> Self {
        let mut links = Self { by_len: vec![HashMap::new(); 33] };
        for (vport, port) in ports.iter().enumerate() {
            for own in port.addresses.iter().filter(|own| own.len < 32) {
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
        if let Some(links) = self.by_len.get_mut(usize::from(link.prefix.len())) {
            links.entry(link.prefix.addr()).or_insert(link);
        }
    }

    /// The link that `address` is on: the longest one that has it.
    #[must_use]
    pub fn of(&self, address: Ipv4Addr) -> Option<&Link> {
        (0..=32u8).rev().find_map(|len| {
            let links = self.by_len.get(usize::from(len)).filter(|links| !links.is_empty())?;
            links.get(&Prefix4::containing(address.to_bits(), len).addr())
        })
    }
}
