//! Network namespaces of nodes and hosts, and the settings of a host.

use std::net::IpAddr;

use hue_host::links::Links;
use hue_host::netns::Namespace;
use hue_host::routes::{MAIN, Wanted};
use hue_host::{HostError, addresses, neighbours, routes, sysctl};
use hue_tables::AnyPrefix;
use hue_wire::Mac;

use crate::failure::Failure;

/// The interface of a host.
pub const HOST_INTERFACE: &str = "eth0";
/// Settings of every namespace.
const SETTINGS: [(&str, &str); 3] = [
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // Every answer counts, however many there are.
    ("net/ipv4/icmp_ratelimit", "0"),
];
/// Settings of the interface of a host with IPv6. It asks no router for addresses: its own are set.
const SETTINGS6: [(&str, &str); 4] =
    [("router_solicitations", "0"), ("accept_ra", "0"), ("accept_dad", "0"), ("disable_ipv6", "0")];

/// Addresses and routes of a host on its only link.
#[derive(Clone, Default, Debug)]
pub struct Settings {
    /// MAC address; by default the interface's own.
    pub mac: Option<Mac>,
    /// Largest IP packet in bytes; by default the interface's own.
    pub mtu: Option<u16>,
    /// Addresses with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Default routers, at most one of each family.
    pub routers: Vec<IpAddr>,
    /// Destinations that are on the link.
    pub on_link: Vec<AnyPrefix>,
    /// Hosts on the link whose MAC addresses are known, because no network carries ARP between them.
    pub neighbours: Vec<(IpAddr, Mac)>,
}

/// Creates a namespace without IPv6.
pub fn create(name: &str) -> Result<Namespace, Failure> {
    let (namespace, is_new) = Namespace::create_with(name, || {
        SETTINGS.iter().try_for_each(|(key, value)| {
            // A setting that this kernel does not have is not needed.
            sysctl::get_here(key)?.map_or(Ok(()), |_| sysctl::set_here(key, value).map(drop))
        })
    })?;
    if is_new { Ok(namespace) } else { Err(Failure::Broken(format!("namespace {name} already exists"))) }
}

/// Configures a host, whose interface exists.
pub fn configure(inside: &Namespace, settings: &Settings) -> Result<(), HostError> {
    if settings.addresses.iter().any(|(address, _)| address.is_ipv6()) {
        // Those of the interface itself: it was made while its namespace had no IPv6.
        inside.run(|| {
            SETTINGS6.iter().try_for_each(|(key, value)| {
                sysctl::set_here(&format!("net/ipv6/conf/{HOST_INTERFACE}/{key}"), value).map(drop)
            })
        })??;
    }
    let mut links = Links::inside(inside)?;
    if let Some(mac) = settings.mac {
        links.set_mac(HOST_INTERFACE, mac)?;
    }
    if let Some(mtu) = settings.mtu {
        links.set_mtu(HOST_INTERFACE, mtu.into())?;
    }
    links.set_up("lo", true)?;
    links.set_up(HOST_INTERFACE, true)?;
    let link = links.index_of(HOST_INTERFACE)?;
    let socket = links.socket();
    for (address, len) in &settings.addresses {
        addresses::add(socket, link, *address, *len)?;
    }
    let default = |router: &IpAddr| Wanted {
        table: MAIN,
        prefix: AnyPrefix::containing(*router, 0),
        via: Some(*router),
        link,
    };
    let on_link =
        settings.on_link.iter().map(|prefix| Wanted { table: MAIN, prefix: *prefix, via: None, link });
    let wanted: Vec<Wanted> = settings.routers.iter().map(default).chain(on_link).collect();
    let failures = routes::add(socket, &wanted)?;
    let neighbours: Vec<_> =
        settings.neighbours.iter().map(|(address, mac)| (link, *address, *mac)).collect();
    match failures.into_iter().chain(neighbours::set(socket, &neighbours)?).next() {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}
