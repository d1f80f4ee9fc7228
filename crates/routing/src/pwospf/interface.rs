//! Interfaces of a router, and the neighbours heard on them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_tables::Prefix4;

use super::packet::RouterId;

/// Most neighbours on an interface.
pub const NEIGHBOURS_MAX: usize = 64;

/// An address of an interface that takes part: one address is one interface of PW-OSPF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Index of the interface.
    pub link: u32,
    /// Its name.
    pub name: String,
    /// The address.
    pub address: Ipv4Addr,
    /// The subnet of its link.
    pub prefix: Prefix4,
    /// Whether there can be neighbours. Otherwise, the subnet is only advertised.
    pub speaks: bool,
}

/// A neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its id.
    pub router: RouterId,
    /// When its last hello was received.
    pub heard: Duration,
    /// When it became a neighbour.
    pub since: Duration,
}

/// An interface with its state.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub interface: Interface,
    /// By address.
    pub neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    /// When the next hello is sent.
    pub hello_due: Duration,
    /// When the last hello outside that schedule was sent.
    pub answered: Option<Duration>,
}

impl Port {
    pub fn new(now: Duration, interface: Interface) -> Self {
        Self { interface, neighbours: BTreeMap::new(), hello_due: now, answered: None }
    }
}
