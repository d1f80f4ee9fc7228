//! What the kernel of a network's namespace would report, derived from the network's document.
//!
//! Flow: configuration → **events** → routing information base. Includes the routes that a kernel makes for
//! addresses, but no other actions of a kernel (routes for broadcasts, removals together with a link).

use std::net::IpAddr;

use hue_host::control::{Config, StaticTarget};
use hue_host::netlink::{
    Address, AddressState, Link, Neighbour, NextHop, Route, RouteKind, Scope, neighbour_state,
};
use hue_host::routes::table_of;
use hue_routing::{Change, Event};
use hue_tables::AnyPrefix;

const LOCAL: u32 = 255;
const MAIN: u32 = 254;
/// Metric of routes from a routing daemon: routes in documents win.
const DAEMON_METRIC: u32 = 20;

fn index(port: usize) -> u32 {
    port as u32 + 2 // below PORTS_MAX
}

/// The whole state, from `Begin` to `End`.
pub fn snapshot(config: &Config) -> Vec<Event> {
    let mut events = vec![Event::Begin];
    for (port, at) in config.ports.iter().zip(0..) {
        let link = Link {
            index: index(at),
            name: port.interface.clone(),
            mac: Some(port.mac),
            mtu: u32::from(port.mtu_bytes),
            up: true,
            carrier: true,
            ..Link::default()
        };
        events.push(Event::Link(Change::Listed, Box::new(link)));
    }
    for (port, at) in config.ports.iter().zip(0..) {
        for (address, len) in port.addresses.iter().copied() {
            let link = index(at);
            let (peer, broadcast, protocol) = (address, None, 0);
            let state = AddressState::Usable;
            let told = Address { link, address, len, peer, broadcast, protocol, state };
            events.push(Event::Address(Change::Listed, told));
            let own = AnyPrefix::host(address);
            let local = Route {
                kind: RouteKind::Local,
                table: LOCAL,
                scope: Scope::Host,
                ..route(own, link, None, 0)
            };
            events.push(Event::Route(Change::Listed, local));
            let on_link = AnyPrefix::containing(address, len);
            let connected = Route { scope: Scope::Link, ..route(on_link, link, None, 0) };
            events.push(Event::Route(Change::Listed, connected));
        }
    }
    for known in &config.routes {
        let via = |address: IpAddr, weight| {
            let link = link_of(config, address)?;
            Some(NextHop { link, via: Some(address), weight, dead: false, onlink: false })
        };
        let on = |port: usize, via| NextHop { link: index(port), via, weight: 1, dead: false, onlink: false };
        let hops: Vec<NextHop> = match &known.target {
            StaticTarget::Port(port) => vec![on(*port, None)],
            StaticTarget::ViaPort(via, port) => vec![on(*port, Some(*via))],
            StaticTarget::Via(address) => via(*address, 1).into_iter().collect(),
            StaticTarget::Vias(vias) => {
                vias.iter().filter_map(|(address, weight)| via(*address, *weight)).collect()
            }
        };
        if !hops.is_empty() {
            let listed = Route { hops, table: table_of(known.slice), ..route(known.prefix, 0, None, 0) };
            events.push(Event::Route(Change::Listed, listed));
        }
    }
    for (port, address, mac) in config.neighbours.iter().copied() {
        let (link, state) = (index(port), neighbour_state::PERMANENT);
        let told = Neighbour { link, address, mac: Some(mac), state, flags: 0, protocol: 0 };
        events.push(Event::Neighbour(Change::Listed, told));
    }
    events.push(Event::End);
    events
}

/// A routing daemon adds or withdraws a route via a router. `None` if the router is on no link.
pub fn route_change(config: &Config, prefix: AnyPrefix, via: IpAddr, there: bool) -> Option<Event> {
    let change = if there { Change::Replaced } else { Change::Removed };
    Some(Event::Route(change, route(prefix, link_of(config, via)?, Some(via), DAEMON_METRIC)))
}

fn link_of(config: &Config, address: IpAddr) -> Option<u32> {
    let on =
        |(own, len): &(IpAddr, u8)| AnyPrefix::containing(*own, *len) == AnyPrefix::containing(address, *len);
    config.ports.iter().position(|port| port.addresses.iter().any(on)).map(index)
}

fn route(prefix: AnyPrefix, link: u32, via: Option<IpAddr>, metric: u32) -> Route {
    Route {
        prefix,
        source: None,
        object: 0,
        table: MAIN,
        tos: 0,
        metric,
        protocol: 0,
        scope: Scope::Universe,
        kind: RouteKind::Unicast,
        hops: vec![NextHop { link, via, weight: 1, dead: false, onlink: false }],
        cloned: false,
    }
}
