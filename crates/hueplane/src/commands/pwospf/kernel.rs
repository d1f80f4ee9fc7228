//! The kernel's side of the routing daemon: interfaces that it has, routes that it gets.
//!
//! Invariants: only routes with the daemon's protocol number are changed. A route that the daemon finds at its start, from an
//! earlier life, stays until it is confirmed, replaced, or known to be wrong.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use hue_host::addresses;
use hue_host::links::Links;
use hue_host::netlink::Failure as Refused;
use hue_host::routes::{self, Origin, Wanted};
use hue_routing::pwospf::{Interface, RouteChange};
use hue_tables::{AnyPrefix, Prefix4};

use crate::failure::Failure;

/// Error number of the kernel: the object does not exist, here a route that went with its interface.
const MISSING: i32 = 3;

/// The namespace's interfaces and routes.
pub struct Kernel {
    links: Links,
    /// Routes that are wanted, whether the kernel took them or not.
    installed: BTreeMap<Prefix4, Wanted>,
    /// Routes of an earlier life that are not confirmed yet.
    inherited: BTreeMap<Prefix4, Wanted>,
    /// Routes that the kernel did not take.
    pub refused: u64,
}

impl Kernel {
    /// Finds the routes of an earlier life.
    pub fn open() -> Result<Self, Failure> {
        let mut links = Links::here()?;
        let inherited = own(&mut links)?;
        Ok(Self { links, installed: BTreeMap::new(), inherited, refused: 0 })
    }

    /// Number of routes of an earlier life that are not confirmed yet.
    pub fn inherited(&self) -> usize {
        self.inherited.len()
    }

    /// The addresses that take part, of interfaces that are up and have carrier. With names: only these interfaces, of which
    /// loopbacks are only advertised.
    pub fn interfaces(&mut self, names: &[String]) -> Result<Vec<Interface>, Failure> {
        let links = self.links.list()?;
        let addresses = addresses::list(self.links.socket())?;
        let mut out = Vec::new();
        for link in links.into_iter().filter(|link| link.up && link.carrier) {
            let is_used = if names.is_empty() { !link.loopback } else { names.contains(&link.name) };
            if !is_used {
                continue;
            }
            for address in addresses.iter().filter(|address| address.link == link.index) {
                let (IpAddr::V4(own), IpAddr::V4(peer)) = (address.address, address.peer) else { continue };
                let prefix = Prefix4::containing(peer.to_bits(), address.len);
                if !hue_routing::pwospf::packet::is_routed(prefix) {
                    continue;
                }
                out.push(Interface {
                    link: link.index,
                    name: link.name.clone(),
                    address: own,
                    prefix,
                    speaks: !link.loopback && address.len < 32,
                });
            }
        }
        Ok(out)
    }

    /// Makes these changes.
    pub fn change(&mut self, changes: &[RouteChange]) -> Result<(), Failure> {
        let (mut added, mut replaced, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            match change {
                RouteChange::Set(prefix, route) => {
                    let wanted = Wanted {
                        table: routes::MAIN,
                        prefix: (*prefix).into(),
                        via: Some(route.next.via.into()),
                        link: route.next.link,
                    };
                    let before = self.inherited.remove(prefix).or(self.installed.get(prefix).copied());
                    self.installed.insert(*prefix, wanted);
                    match before {
                        Some(before) if before == wanted => {}
                        Some(_) => replaced.push(wanted),
                        None => added.push(wanted),
                    }
                }
                RouteChange::Remove(prefix) => removed.extend(self.installed.remove(prefix)),
            }
        }
        let socket = self.links.socket();
        let gone = routes::remove_of(socket, Origin::PWOSPF, &removed)?;
        let mut refused = routes::replace_of(socket, Origin::PWOSPF, &replaced)?;
        refused.extend(routes::add_of(socket, Origin::PWOSPF, &added)?);
        refused.extend(gone.into_iter().filter(|failure| failure.errno as i32 != MISSING));
        self.report(refused);
        Ok(())
    }

    /// Makes the kernel's routes those that are wanted, after the kernel may have removed some with an interface.
    pub fn restore(&mut self) -> Result<(), Failure> {
        let found = own(&mut self.links)?;
        self.inherited.retain(|prefix, wanted| found.get(prefix) == Some(wanted));
        let is_known =
            |prefix: &Prefix4| self.installed.contains_key(prefix) || self.inherited.contains_key(prefix);
        let extra: Vec<Wanted> =
            found.iter().filter(|(prefix, _)| !is_known(prefix)).map(|(_, wanted)| *wanted).collect();
        let other =
            |prefix: &Prefix4, wanted: &Wanted| found.get(prefix).is_some_and(|found| found != wanted);
        let wrong: Vec<Wanted> = self
            .installed
            .iter()
            .filter(|(prefix, wanted)| other(prefix, wanted))
            .map(|(_, wanted)| *wanted)
            .collect();
        let missing: Vec<Wanted> = self
            .installed
            .iter()
            .filter(|(prefix, _)| !found.contains_key(*prefix))
            .map(|(_, wanted)| *wanted)
            .collect();
        let socket = self.links.socket();
        let mut refused = routes::remove_of(socket, Origin::PWOSPF, &extra)?;
        refused.retain(|failure| failure.errno as i32 != MISSING);
        refused.extend(routes::replace_of(socket, Origin::PWOSPF, &wrong)?);
        refused.extend(routes::add_of(socket, Origin::PWOSPF, &missing)?);
        self.report(refused);
        Ok(())
    }

    /// Removes the routes of an earlier life that were not confirmed.
    pub fn forget_inherited(&mut self) -> Result<(), Failure> {
        self.inherited.clear();
        self.restore()
    }

    /// Removes all routes.
    pub fn remove_all(&mut self) -> Result<(), Failure> {
        self.installed.clear();
        self.forget_inherited()
    }

    fn report(&mut self, refused: Vec<Refused>) {
        self.refused += refused.len() as u64;
        // A few say what is wrong; the counter says how often.
        for failure in refused.into_iter().take(3) {
            super::daemon::note(&hue_host::HostError::from(failure).to_string());
        }
    }
}

/// The daemon's routes in the kernel.
fn own(links: &mut Links) -> Result<BTreeMap<Prefix4, Wanted>, Failure> {
    let found = routes::of(links.socket(), Origin::PWOSPF)?;
    let ours = found.into_iter().filter(|route| route.metric == Origin::PWOSPF.metric);
    Ok(ours
        .filter_map(|route| {
            let AnyPrefix::V4(prefix) = route.prefix else { return None };
            let hop = route.hops.first();
            let via = hop.and_then(|hop| hop.via);
            Some((
                prefix,
                Wanted {
                    table: routes::MAIN,
                    prefix: route.prefix,
                    via,
                    link: hop.map_or(0, |hop| hop.link),
                },
            ))
        })
        .collect())
}

/// The highest address, which is the id of a router by default.
pub fn highest(interfaces: &[Interface]) -> Option<Ipv4Addr> {
    interfaces.iter().map(|interface| interface.address).max()
}
