//! What attach makes in the node and in a host, and how it is undone.
//!
//! Flow: port → **segment** (wire, bridge) → **host** (veth pair into a namespace, or TAP device) on the bridge → the wire comes up.
//! Invariants: whatever fails, [`Undo`] removes what this attach made, and nothing else. The node itself takes no part in a segment: it
//! neither answers nor sends there.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hue_host::links::Links;
use hue_host::netns::{self, Standing};
use hue_host::{HostError, Namespace, addresses, ethtool, routes, sysctl};
use hue_ports::Tap;
use hue_tables::AnyPrefix;
use hueplaned::api::Port;

use super::failed;
use super::mark::{Host, Segment};
use crate::failure::Failure;

/// Highest number in the name of a bridge.
const BRIDGE_MAX: u32 = 999;
/// Highest number of a host on a bridge; the kernel has 1,024 ports for each.
pub const HOST_MAX: u32 = 999;
/// Highest number of an interface `ethN` in a host.
const ETH_MAX: u32 = 64;

/// A host's address.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub own: IpAddr,
    pub router: IpAddr,
    pub len: u8,
}

/// Undoes what was made so far when it is dropped before `done` is set.
#[derive(Default)]
pub struct Undo {
    pub created: Option<Namespace>,
    /// Interfaces of the node, by name and index, in the order in which they were made.
    made: Vec<(String, u32)>,
    pub done: bool,
}

impl Undo {
    /// Remembers an interface that was just made.
    fn add(&mut self, here: &mut Links, name: &str) -> Result<u32, HostError> {
        let index = here.index_of(name)?;
        self.made.push((name.to_owned(), index));
        Ok(index)
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        for (name, index) in self.made.iter().rev() {
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

/// Makes the wire of a port, down, with its other end on a new bridge, and returns the bridge. `taken` are names that must not be used.
pub fn segment(
    here: &mut Links,
    wire: &Port,
    taken: &BTreeSet<String>,
    undo: &mut Undo,
) -> Result<String, Failure> {
    let near = &wire.interface;
    let free = |bridge: &String| !taken.contains(bridge) && !taken.contains(&end_of(bridge));
    let bridge = (0..=BRIDGE_MAX).map(|n| format!("attach{n}")).find(free);
    let bridge = bridge.ok_or_else(|| {
        let all = format!("attach0 to attach{BRIDGE_MAX}");
        Failure::Full(format!(
            "attach: no free name for a bridge: {all} exist; detach hosts that are not needed"
        ))
    })?;
    let mut make = || {
        let (end, mark) = (end_of(&bridge), Segment::mark(near));
        here.create_bridge(&bridge)?;
        undo.add(here, &bridge)?;
        here.set_alias(&bridge, &mark)?;
        here.create_veth(near, &end, None)?;
        undo.add(here, near)?;
        for name in [near, &end] {
            here.set_alias(name, &mark)?;
            here.set_mtu(name, wire.mtu.into())?;
            be_silent(name)?;
        }
        here.set_mtu(&bridge, wire.mtu.into())?;
        be_silent(&bridge)?;
        be_deaf(&bridge)?;
        // The port hands frames on as they are. Hosts and virtual machines may leave checksums and segmentation to the last interface
        // that can do it: this one cannot, so the kernel completes frames before it passes them to the port.
        ethtool::set_tx_checksum(&end, false)?;
        here.set_master(&end, Some(&bridge))?;
        here.set_up(&bridge, true)?;
        here.set_up(&end, true)
    };
    make().map_err(failed)?;
    Ok(bridge)
}

fn end_of(bridge: &str) -> String {
    format!("{bridge}w")
}

/// Keeps the kernel from sending packets of its own, such as router solicitations.
fn be_silent(name: &str) -> Result<(), HostError> {
    set_if_present(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1")
}

/// Keeps the node from answering on a bridge: hosts of a network must not reach the node. It has no address there, so the kernel drops
/// each packet whose source address is checked, and no ARP request is answered.
fn be_deaf(bridge: &str) -> Result<(), HostError> {
    set_if_present(&format!("net/ipv4/conf/{bridge}/rp_filter"), "1")?;
    set_if_present(&format!("net/ipv4/conf/{bridge}/arp_ignore"), "8")
}

fn set_if_present(key: &str, value: &str) -> Result<(), HostError> {
    match sysctl::get_here(key)? {
        Some(_) => sysctl::set_here(key, value).map(|_| ()),
        None => Ok(()),
    }
}

/// Connects a namespace with the bridge, and sets it up. Returns the routers that it got default routes over.
pub fn namespace(
    here: &mut Links,
    host: &mut Host,
    into: &Namespace,
    mtu: u16,
    addresses: &[Address],
    undo: &mut Undo,
) -> Result<Vec<IpAddr>, HostError> {
    let mut inside = Links::inside(into)?;
    let names: BTreeSet<String> = inside.list()?.into_iter().map(|link| link.name).collect();
    let eth = (0..ETH_MAX).map(|n| format!("eth{n}")).find(|name| !names.contains(name));
    let eth = eth.unwrap_or_else(|| format!("eth{ETH_MAX}"));
    here.create_veth(&host.wire, &eth, Some(into))?;
    undo.add(here, &host.wire)?;
    host.interface = Some(eth.clone());
    here.set_alias(&host.wire, &host.mark())?;
    here.set_mtu(&host.wire, mtu.into())?;
    inside.set_mtu(&eth, mtu.into())?;
    inside.set_up(&eth, true)?;
    let mut over = Vec::new();
    for address in addresses {
        if configure(&mut inside, &eth, *address)? {
            over.push(address.router);
        }
    }
    join(here, host)?;
    Ok(over)
}

/// Adds an address, and a default route unless there is one of its family. Returns whether it added the route.
fn configure(inside: &mut Links, eth: &str, address: Address) -> Result<bool, HostError> {
    let link = inside.index_of(eth)?;
    addresses::add(inside.socket(), link, address.own, address.len)?;
    let all = AnyPrefix::containing(address.router, 0);
    let has = |route: &routes::Route| route.table == routes::MAIN && route.prefix == all;
    if routes::list(inside.socket())?.iter().any(has) {
        return Ok(false);
    }
    let default = routes::Wanted { table: routes::MAIN, prefix: all, via: Some(address.router), link };
    match routes::add(inside.socket(), [&default])?.into_iter().next() {
        Some(failure) => Err(failure.into()),
        None => Ok(true),
    }
}

/// Makes a TAP device that only root and this user may open, on the bridge. Returns its index.
pub fn tap(here: &mut Links, host: &Host, mtu: u16, owner: u32, undo: &mut Undo) -> Result<u32, Failure> {
    let tap = Tap::create(&host.wire, owner)?;
    let mut set_up = || {
        let index = undo.add(here, &host.wire)?;
        here.set_alias(&host.wire, &host.mark())?;
        here.set_mtu(&host.wire, mtu.into())?;
        join(here, host)?;
        Ok(index)
    };
    let index = set_up().map_err(failed)?;
    // Last: until then, the kernel removes it if this process is killed.
    tap.set_persistent(true)?;
    Ok(index)
}

fn join(here: &mut Links, host: &Host) -> Result<(), HostError> {
    be_silent(&host.wire)?;
    here.set_master(&host.wire, host.bridge.as_deref())?;
    here.set_up(&host.wire, true)
}
