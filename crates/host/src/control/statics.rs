//! Compares the static routes and neighbours of a namespace with the target state, and corrects the
//! differences.
//!
//! Flow: [`Config`] and a dump of hueplane's own items → **difference** → removals, then additions. As in
//! documents, a gateway is on the longest link that contains its address, and the route is installed with
//! that link. The order of additions and other routes therefore do not matter.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use hue_tables::{AnyPrefix, PrefixMap};
use hue_wire::Mac;
use nix::errno::Errno;

use super::{Changes, Config, StaticTarget};
use crate::error::HostError;
use crate::links::Links;
use crate::neighbours as known;
use crate::netlink::protocol;
use crate::routes::{self as installed, Multipath, Wanted, Way, table_of};

pub(super) fn routes(
    links: &mut Links,
    config: &Config,
    indices: &[u32],
    changes: &mut Changes,
) -> Result<(), HostError> {
    let on_link = links_of(config, indices);
    let wanted: HashSet<Wanted> = config
        .routes
        .iter()
        .filter_map(|route| match &route.target {
            StaticTarget::Via(via) => {
                let via = *via;
                // Not on any link: the kernel rejects it with a reason.
                let link = on_link.longest(via).copied().unwrap_or(0);
                Some(Wanted { table: table_of(route.slice), prefix: route.prefix, via: Some(via), link })
            }
            StaticTarget::ViaPort(via, port) => Some(Wanted {
                table: table_of(route.slice),
                prefix: route.prefix,
                via: Some(*via),
                link: *indices.get(*port)?,
            }),
            StaticTarget::Port(port) => Some(Wanted {
                table: table_of(route.slice),
                prefix: route.prefix,
                via: None,
                link: *indices.get(*port)?,
            }),
            StaticTarget::Vias(_) => None,
        })
        .collect();
    let several: HashSet<Multipath> = config
        .routes
        .iter()
        .filter_map(|route| {
            let StaticTarget::Vias(vias) = &route.target else { return None };
            // As above, if one is not on any link.
            let link = |via| on_link.longest(via).copied().unwrap_or(0);
            let mut ways: Vec<Way> = vias
                .iter()
                .map(|(via, weight)| Way { via: *via, link: link(*via), weight: *weight })
                .collect();
            ways.sort_unstable();
            Some(Multipath { table: table_of(route.slice), prefix: route.prefix, ways })
        })
        .collect();
    let (mut kept, mut old) = (HashSet::with_capacity(wanted.len()), Vec::new());
    let (mut several_kept, mut several_old) = (HashSet::new(), Vec::new());
    for route in installed::ours(links.socket())? {
        if let Some(now) = Multipath::of(&route) {
            if !(several.contains(&now) && several_kept.insert(now.clone())) {
                several_old.push(now);
            }
            continue;
        }
        let hop = route.hops.first();
        let (via, link) = hop.map_or((None, 0), |hop| (hop.via, hop.link));
        let now = Wanted { table: route.table, prefix: route.prefix, via, link };
        if !(wanted.contains(&now) && kept.insert(now)) {
            old.push(now);
        }
    }
    let mut new: Vec<_> = wanted.difference(&kept).collect();
    // For a reproducible order.
    new.sort_unstable();
    let mut several_new: Vec<_> = several.difference(&several_kept).collect();
    several_new.sort_unstable();
    changes.routes = old.len() + new.len() + several_old.len() + several_new.len();
    let failures = installed::remove(links.socket(), &old)?;
    changes.routes -= changes.refused(failures, Errno::ESRCH);
    let failures = installed::remove_multipath(links.socket(), &several_old)?;
    changes.routes -= changes.refused(failures, Errno::ESRCH);
    let failures = installed::add_multipath(links.socket(), several_new.iter().copied())?;
    changes.routes -= changes.refused(failures, Errno::UnknownErrno);
    let failures = installed::add(links.socket(), new.iter().copied())?;
    changes.routes -= changes.refused(failures, Errno::UnknownErrno);
    Ok(())
}

pub(super) fn neighbours(
    links: &mut Links,
    config: &Config,
    indices: &[u32],
    changes: &mut Changes,
) -> Result<(), HostError> {
    let wanted: HashMap<(u32, IpAddr), Mac> = config
        .neighbours
        .iter()
        .filter_map(|(port, address, mac)| Some(((*indices.get(*port)?, *address), *mac)))
        .collect();
    let (mut kept, mut old) = (HashSet::with_capacity(wanted.len()), Vec::new());
    for neighbour in known::list(links.socket())? {
        let key = (neighbour.link, neighbour.address);
        if neighbour.protocol != protocol::OURS {
            continue;
        }
        match wanted.get(&key) {
            Some(mac) if neighbour.mac == Some(*mac) => drop(kept.insert(key)),
            Some(_) => {}
            None => old.push(key),
        }
    }
    let mut new: Vec<_> = wanted
        .iter()
        .filter(|(key, _)| !kept.contains(key))
        .map(|((link, address), mac)| (*link, *address, *mac))
        .collect();
    new.sort_unstable_by_key(|(link, address, _)| (*link, *address));
    changes.neighbours = old.len() + new.len();
    let failures = known::remove(links.socket(), &old)?;
    changes.neighbours -= changes.refused(failures, Errno::ENOENT);
    let failures = known::set(links.socket(), &new)?;
    changes.neighbours -= changes.refused(failures, Errno::UnknownErrno);
    Ok(())
}

/// The interface of each link. Links are the prefixes of addresses, and routes directly onto a port; the former have
/// priority.
fn links_of(config: &Config, indices: &[u32]) -> PrefixMap<u32> {
    let mut links = PrefixMap::default();
    for (port, link) in config.ports.iter().zip(indices) {
        for (address, len) in &port.addresses {
            let prefix = AnyPrefix::containing(*address, *len);
            if prefix != AnyPrefix::host(*address) {
                links.insert_first(prefix, *link);
            }
        }
    }
    for route in &config.routes {
        if let StaticTarget::Port(port) = &route.target
            && let Some(link) = indices.get(*port)
        {
            links.insert_first(route.prefix, *link);
        }
    }
    links
}
