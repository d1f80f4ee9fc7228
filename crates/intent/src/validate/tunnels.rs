//! Checks of tunnels: their ends, the networks that carry them, and tunnels that could be confused.
//!
//! Flow: drafts of all networks → **these checks** → typed state. Invariant of valid documents: a packet that arrives for a
//! tunnel belongs to at most one virtual port, and no network is carried by itself.

use std::collections::HashMap;
use std::net::IpAddr;

use hue_demux::tunnel::Encapsulation;
use hue_planes::Kind;
use hue_tables::Prefix4;

use super::{Rules, duplicate, present};
use crate::card::Placement;
use crate::decode::Cursor;
use crate::document::NetworkDraft;
use crate::error::{did_you_mean, one_of};
use crate::limits;
use crate::tunnel::Tunnel;
use crate::types::Select;

/// The end of a tunnel.
struct End<'a, 't> {
    /// Index of its network.
    network: usize,
    tunnel: &'a Tunnel,
    at: &'a Cursor<'t>,
}

impl<'t> End<'_, 't> {
    /// The place of a field of its tunnel.
    fn field(&self, name: &str) -> Cursor<'t> {
        self.at.field_or_self("tunnel").field_or_self(name)
    }

    /// The place of its carrier's name.
    fn over(&self) -> Cursor<'t> {
        self.at.field_or_self("over")
    }
}

/// Runs all checks.
pub(super) fn all(networks: &[NetworkDraft<'_>], rules: Rules) {
    let ends: Vec<End<'_, '_>> = networks
        .iter()
        .enumerate()
        .flat_map(|(network, draft)| {
            present(&draft.ports)
                .filter_map(move |(port, at)| Some(End { network, tunnel: port.tunnel()?, at }))
        })
        .collect();
    if ends.is_empty() {
        return;
    }
    for beyond in
        ends.chunk_by(|one, next| one.network == next.network).filter_map(|own| own.get(limits::TUNNELS_MAX))
    {
        let found = format!("tunnel {} of the network", limits::TUNNELS_MAX + 1);
        beyond.at.field_or_self("tunnel").fault(found, format!("at most {}", limits::TUNNELS_MAX), None);
    }
    let mut by_name = HashMap::new();
    for (index, draft) in networks.iter().enumerate() {
        if let Some(name) = &draft.name {
            by_name.entry(name.as_str()).or_insert(index);
        }
    }
    // Index of the carrier of each end.
    let mut carriers = Vec::with_capacity(ends.len());
    for end in &ends {
        own_ends(end, &networks[end.network]);
        let carrier = carrier(end, networks, &by_name, rules);
        if let Some(index) = carrier {
            at_carrier(end, &networks[index]);
        }
        carriers.push(carrier);
    }
    unique(&ends, networks);
    nesting(&ends, &carriers, networks);
    on_card(&ends, networks);
}

/// The kind of a network, if networks of it have no addresses.
fn without_ip(network: &NetworkDraft<'_>) -> Option<Kind> {
    network.plane.as_ref().map(|plane| plane.kind).filter(|kind| !kind.limits().keys.has_routes())
}

/// What an end says about itself and its network.
fn own_ends(end: &End<'_, '_>, network: &NetworkDraft<'_>) {
    let Tunnel { local, remote, .. } = end.tunnel;
    let remote_at = end.field("remote");
    if local == remote {
        remote_at.fault(
            format!("{remote}, which is also the local end"),
            "the address of another node",
            None,
        );
    } else if local.is_ipv4() != remote.is_ipv4() {
        remote_at.fault(remote.to_string(), format!("an address of the family of {local}"), None);
    }
    if let Some(kind) = without_ip(network).filter(|_| end.tunnel.is_ip()) {
        let what = if kind == Kind::L2 { "a switch" } else { "it" };
        let hint = format!("{what} forwards frames, and type ipip carries only IP packets");
        end.field("type").fault(format!("ipip with kind {}", kind.name()), "vxlan", Some(hint));
    }
    for (name, address) in [("local", *local), ("remote", *remote)] {
        let own = present(&network.ports)
            .find(|(port, _)| port.addresses.iter().any(|own| own.address == address))
            .filter(|_| local != remote);
        if let Some((port, at)) = own {
            let at_end = end.field(name);
            let hint = format!("that address is in {}", at.location_for(&at_end));
            let found = format!("{address}, the network's own address at \"{}\"", port.name);
            at_end.fault(found, "an address outside the network in the tunnel", Some(hint));
        }
    }
}

/// The carrier of a tunnel; reports one that cannot be.
fn carrier(
    end: &End<'_, '_>,
    networks: &[NetworkDraft<'_>],
    by_name: &HashMap<&str, usize>,
    rules: Rules,
) -> Option<usize> {
    let (name, at) = (end.tunnel.over.as_str(), end.over());
    let Some(index) = by_name.get(name).copied() else {
        // A network whose name is wrong may be the one.
        if rules != Rules::Some && networks.iter().all(|draft| draft.name.is_some()) {
            let own = networks[end.network].name.as_ref();
            let mut others: Vec<&str> = by_name
                .keys()
                .copied()
                .filter(|other| own.is_none_or(|own| own.as_str() != *other))
                .collect();
            others.sort_unstable();
            let hint = did_you_mean(name, others.iter().copied());
            at.fault(
                format!("unknown network \"{name}\""),
                format!("another network: {}", one_of(others)),
                hint,
            );
        }
        return None;
    };
    if index == end.network {
        at.fault("the network itself", "another network, which carries the tunnel", None);
        return None;
    }
    if let Some(kind) = without_ip(&networks[index]) {
        let hint = format!("network \"{name}\" is in {}", networks[index].at.location_for(&at));
        at.fault(
            format!("network \"{name}\" of kind {}", kind.name()),
            "a network that routes IP packets: kind ipv4, ipv6 or dual",
            Some(hint),
        );
        return None;
    }
    Some(index)
}

/// The local end is an address of the carrier, and the remote one is not.
fn at_carrier(end: &End<'_, '_>, carrier: &NetworkDraft<'_>) {
    let Tunnel { local, remote, over, .. } = end.tunnel;
    let own = |address: &IpAddr| {
        present(&carrier.ports)
            .find(|(port, _)| port.addresses.iter().any(|own| own.address == *address))
            .map(|(_, at)| at)
    };
    if own(local).is_none() && carrier.ports.complete {
        let at = end.field("local");
        let addresses = present(&carrier.ports).flat_map(|(port, _)| &port.addresses);
        let same = addresses.filter(|own| own.address.is_ipv4() == local.is_ipv4());
        let same: Vec<String> = same.map(|own| own.address.to_string()).collect();
        let expected = match same.is_empty() {
            true => format!("an address of network \"{over}\", but it has none of this family"),
            false => format!("an address of network \"{over}\": {}", one_of(same.iter().map(String::as_str))),
        };
        let hint = format!("network \"{over}\" is in {}", carrier.at.location_for(&at));
        at.fault(local.to_string(), expected, Some(hint));
    }
    if let Some(place) = own(remote).filter(|_| local != remote) {
        let at = end.field("remote");
        let hint = format!("that address is in {}", place.location_for(&at));
        at.fault(
            format!("{remote}, an address of network \"{over}\""),
            "the address of another node",
            Some(hint),
        );
    }
}

/// A packet that arrives for a tunnel belongs to one virtual port: the two ends are those of one tunnel only, or the VXLAN
/// identifiers differ, or both networks select by prefixes that do not overlap.
fn unique(ends: &[End<'_, '_>], networks: &[NetworkDraft<'_>]) {
    type Key<'a> = (&'a str, IpAddr, IpAddr, Encapsulation);
    let mut groups: HashMap<Key<'_>, Vec<&End<'_, '_>>> = HashMap::new();
    for end in ends {
        let Tunnel { over, local, remote, encapsulation, .. } = end.tunnel;
        groups.entry((over.as_str(), *local, *remote, *encapsulation)).or_default().push(end);
    }
    for ((over, local, remote, encapsulation), group) in groups {
        let [first, others @ ..] = group.as_slice() else { continue };
        if others.is_empty() {
            continue;
        }
        let pair = format!("from {local} to {remote} over network \"{over}\"");
        if let Encapsulation::Vxlan { vni, .. } = encapsulation {
            for other in others {
                let found = format!("VNI {vni} {pair}");
                duplicate(&other.field("vni"), &first.field("vni"), found, "a unique VNI");
            }
            continue;
        }
        let (mut inner, mut first_alone, mut of_network) = (Vec::new(), None, HashMap::new());
        for end in &group {
            let conflict = match networks[end.network].select {
                None => continue, // an invalid one, which may be an inner one
                Some(Select::Inner(_)) => {
                    if !of_network.contains_key(&end.network) {
                        inner.push(*end);
                    }
                    first_alone.or_else(|| of_network.get(&end.network).copied())
                }
                Some(_) => {
                    first_alone = first_alone.or(Some(*end));
                    Some(*first).filter(|first| !std::ptr::eq(*first, *end))
                }
            };
            of_network.entry(end.network).or_insert(*end);
            if let Some(other) = conflict {
                let expected =
                    "a pair of addresses of its own, or two networks that select by inner prefixes";
                duplicate(&end.field("remote"), &other.field("remote"), format!("tunnel {pair}"), expected);
            }
        }
        disjoint(&inner, networks, &pair);
    }
}

/// Reports prefixes that contain those of another end on the same pair.
fn disjoint(ends: &[&End<'_, '_>], networks: &[NetworkDraft<'_>], pair: &str) {
    let mut all: Vec<(Prefix4, usize, usize)> = Vec::new();
    for (at, end) in ends.iter().enumerate() {
        if let Some(Select::Inner(prefixes)) = &networks[end.network].select {
            all.extend(prefixes.iter().enumerate().map(|(index, prefix)| (*prefix, at, index)));
        }
    }
    all.sort_by_key(|(prefix, at, index)| (prefix.addr(), prefix.len(), *at, *index));
    let place = |(_, at, index): (Prefix4, usize, usize)| {
        let select = networks[ends[at].network].spec.field_or_self("select");
        select.field_or_self("prefixes").entry_or_self(index)
    };
    // The prefixes that contain the next one: each contains the following ones.
    let mut open: Vec<(Prefix4, usize, usize)> = Vec::new();
    for one in all {
        while open.last().is_some_and(|last| !last.0.contains(one.0.addr())) {
            open.pop();
        }
        if let Some(outer) = open.iter().rev().find(|outer| outer.1 != one.1) {
            // The later one in the documents is at fault.
            let (fault, first) = if outer.1 < one.1 { (one, *outer) } else { (*outer, one) };
            let at = place(fault);
            let found = format!("{}, which overlaps {} of another network", fault.0, first.0);
            let hint = format!("first used in {}", place(first).location_for(&at));
            at.fault(found, format!("a prefix of its own in the tunnel {pair}"), Some(hint));
        }
        open.push(one);
    }
}

/// No network is carried by itself, and tunnels are nested only so deep.
fn nesting(ends: &[End<'_, '_>], carriers: &[Option<usize>], networks: &[NetworkDraft<'_>]) {
    // For each network: the carriers of its tunnels, and the networks that it carries, by end.
    let (mut over, mut under) = (vec![Vec::new(); networks.len()], vec![Vec::new(); networks.len()]);
    for (end, carrier) in carriers.iter().enumerate() {
        if let Some(carrier) = carrier {
            over[ends[end].network].push((end, *carrier));
            under[*carrier].push(ends[end].network);
        }
    }
    // From the networks without tunnels upwards: what remains is in a circle, or carried by one.
    let mut missing: Vec<usize> = over.iter().map(Vec::len).collect();
    let mut depth = vec![0usize; networks.len()];
    let mut ready: Vec<usize> = (0..networks.len()).filter(|network| missing[*network] == 0).collect();
    while let Some(carrier) = ready.pop() {
        for network in &under[carrier] {
            depth[*network] = depth[*network].max(depth[carrier] + 1);
            missing[*network] -= 1;
            if missing[*network] == 0 {
                ready.push(*network);
            }
        }
    }
    const MAX: usize = limits::TUNNELS_NESTED_MAX;
    let too_deep = (0..networks.len()).filter(|network| missing[*network] == 0 && depth[*network] == MAX + 1);
    for network in too_deep {
        if let Some((end, _)) = over[network].iter().find(|(_, carrier)| depth[*carrier] == MAX) {
            ends[*end].over().fault(
                format!("{} tunnels in each other", MAX + 1),
                format!("at most {MAX}"),
                None,
            );
        }
    }
    let in_circles = missing.iter().map(|missing| *missing > 0).collect();
    circles(ends, &over, in_circles, networks);
}

/// Reports each circle once. `rest` are the networks in circles, and those whose tunnels lead into one.
fn circles(
    ends: &[End<'_, '_>],
    over: &[Vec<(usize, usize)>],
    mut rest: Vec<bool>,
    networks: &[NetworkDraft<'_>],
) {
    let name = |network: usize| networks[network].name.as_ref().map_or("?", |name| name.as_str());
    // When each network was visited, and on which walk.
    let mut seen: Vec<Option<(usize, usize)>> = vec![None; networks.len()];
    for start in 0..networks.len() {
        // From carrier to carrier, until a network comes again, or one that another walk has seen.
        let (mut way, mut network) = (Vec::new(), start);
        while rest[network] && seen[network].is_none() {
            seen[network] = Some((start, way.len()));
            let Some((end, carrier)) = over[network].iter().find(|(_, carrier)| rest[*carrier]) else {
                break;
            };
            way.push((network, *end));
            network = *carrier;
        }
        let circle = match seen[network] {
            Some((walk, first)) if walk == start && rest[network] => way.get(first..).unwrap_or_default(),
            _ => continue,
        };
        let Some(((last, end), others)) = circle.split_last() else { continue };
        let at = ends[*end].over();
        let names: Vec<&str> = circle.iter().map(|(network, _)| name(*network)).collect();
        let places: Vec<String> = others
            .iter()
            .map(|(network, end)| {
                format!(
                    "\"{}\" is over \"{}\" in {}",
                    name(*network),
                    ends[*end].tunnel.over,
                    ends[*end].over().location_for(&at)
                )
            })
            .collect();
        let found = format!("a circle: network \"{}\" would carry itself", name(*last));
        let expected = format!("a network that is not carried by {}", one_of(names));
        at.fault(found, expected, Some(places.join(", ")));
        rest.iter_mut().zip(&seen).for_each(|(rest, seen)| *rest &= seen.is_none());
    }
}

/// The card copies frames to its own ports only, so switches with tunnels cannot be placed there; nor can networks with a rate limit that
/// have tunnels or carry some, because the limit also counts what comes by tunnels, in software.
fn on_card(ends: &[End<'_, '_>], networks: &[NetworkDraft<'_>]) {
    let mut reported = vec![false; networks.len()];
    let mut refuse = |network: usize, found: &str, why: &str, end: &End<'_, '_>| {
        let on_card = networks[network].placement == Some(Placement::Card);
        if on_card && !std::mem::replace(&mut reported[network], true) {
            let at = networks[network].spec.field_or_self("placement");
            let hint = format!("{why}: see the one in {}", end.at.location_for(&at));
            at.fault(found, "soft or auto", Some(hint));
        }
    };
    for end in ends {
        if networks[end.network].plane.as_ref().is_some_and(|plane| plane.kind == Kind::L2) {
            let why = "the card cannot flood into tunnels";
            refuse(end.network, "card for a switch with tunnels", why, end);
        }
        let carrier = networks.iter().position(|draft| draft.name.as_ref() == Some(&end.tunnel.over));
        for network in [Some(end.network), carrier].into_iter().flatten() {
            if networks[network].rate_limit.is_some() {
                let why = "the limit also counts what comes by tunnels, which the card does not see";
                refuse(network, "card for a network with a rate limit and tunnels", why, end);
            }
        }
    }
}
