//! Kernel settings of a router's namespace and its interfaces.
//!
//! Flow: [`Families`] → `/proc/sys` of the namespace. A setting is written only if it differs, and skipped if this
//! kernel does not have it.

use super::{Changes, Config, Families};
use crate::error::HostError;
use crate::links::Links;
use crate::sysctl;

type Setting = (&'static str, &'static str);

/// Settings of IPv4. They do no harm in a network without IPv4, which has no address for them to concern.
const SETTINGS4: [Setting; 17] = [
    // The plane checks source addresses; the kernel must accept asymmetric routes.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // Hosts on one link with two prefixes use the router in any case.
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv4/conf/all/accept_redirects", "0"),
    ("net/ipv4/conf/default/accept_redirects", "0"),
    // Unicast packets in broadcast or multicast frames are dropped (RFC 1812 §5.3.4), even if addressed to
    // the router itself.
    ("net/ipv4/conf/all/drop_unicast_in_l2_multicast", "1"),
    ("net/ipv4/conf/default/drop_unicast_in_l2_multicast", "1"),
    // Answer ARP for an address only on the interface that has it, and use only addresses of the link as
    // sender.
    ("net/ipv4/conf/all/arp_ignore", "1"),
    ("net/ipv4/conf/default/arp_ignore", "1"),
    ("net/ipv4/conf/all/arp_announce", "2"),
    ("net/ipv4/conf/default/arp_announce", "2"),
    // Removing the first address of a link keeps the others.
    ("net/ipv4/conf/all/promote_secondaries", "1"),
    ("net/ipv4/conf/default/promote_secondaries", "1"),
    // One ICMP error per destination every 100 ms, with bursts of 6: traceroute works, and floods stay cheap.
    ("net/ipv4/icmp_ratelimit", "100"),
    // Routing daemons join groups on every interface with one socket.
    ("net/ipv4/igmp_max_memberships", "1024"),
    ("net/ipv4/fib_multipath_hash_policy", "1"),
];

/// Settings of a namespace with IPv6, beside those of each interface. The kernel has no limit of groups for a socket
/// in IPv6 as it has in IPv4, only one of memory (`optmem_max`), which suffices for thousands.
const SETTINGS6: [Setting; 4] = [
    // For `all`, the kernel changes every interface and `default` too.
    ("net/ipv6/conf/all/forwarding", "1"),
    // Detection of duplicates is on if `all` or the interface says so.
    ("net/ipv6/conf/all/accept_dad", "0"),
    // As for IPv4: an error every 100 ms.
    ("net/ipv6/icmp/ratelimit", "100"),
    ("net/ipv6/fib_multipath_hash_policy", "1"),
];

/// Settings of `default` and of each interface with IPv6.
const INTERFACE6: [Setting; 8] = [
    ("forwarding", "1"),
    // The routes of a router are those of its documents and daemons.
    ("accept_ra", "0"),
    ("accept_redirects", "0"),
    // No duplicate address detection, also for the link-local address, which the kernel makes itself; see
    // [`addresses::add`](crate::addresses::add).
    ("accept_dad", "0"),
    // The link-local address is derived from the MAC address (EUI-64), which documents determine.
    ("addr_gen_mode", "0"),
    // As in IPv4, addresses stay while an interface is down.
    ("keep_addr_on_down", "1"),
    // RFC 4861 §7.2.5 does not require it, but a unicast packet in a multicast frame can only be an attack or a fault.
    ("drop_unicast_in_l2_multicast", "1"),
    // Last: an interface gets no address before all other settings are right.
    ("disable_ipv6", "0"),
];

/// Settings of a namespace without IPv6. They are made before any interface is up, so that none sends router
/// solicitations.
const NO_IPV6: [Setting; 2] =
    [("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")];

/// Neighbour settings of each interface. A neighbour that disappears is detected after 9 to 19 s: 5 to 15 s
/// until it becomes stale (half to one and a half of the first value), one second of delay, and three probes
/// one second apart. Namespaces have no `default` for these settings, so each interface needs its own. Each
/// neighbour answers about once in 10 s, and each answer is a punted packet.
const NEIGHBOUR_SETTINGS: [Setting; 2] =
    [("base_reachable_time_ms", "10000"), ("delay_first_probe_time", "1")];

/// Settings of the calling thread's namespace, and its loopback.
pub(super) fn namespace(families: Families, changes: &mut Changes) -> Result<(), HostError> {
    set("net/ipv4/ip_forward", if families.v4 { "1" } else { "0" }, changes)?;
    for (key, value) in SETTINGS4 {
        set(key, value, changes)?;
    }
    if families.v6 {
        for (key, value) in SETTINGS6 {
            set(key, value, changes)?;
        }
        for (key, value) in INTERFACE6 {
            set(&format!("net/ipv6/conf/default/{key}"), value, changes)?;
        }
        set("net/ipv6/conf/all/disable_ipv6", "0", changes)?;
    } else {
        for (key, value) in NO_IPV6 {
            set(key, value, changes)?;
        }
    }
    let mut links = Links::here()?;
    if !links.get("lo")?.up {
        links.set_up("lo", true)?;
        changes.word("loopback brought up");
    }
    Ok(())
}

/// Settings of the virtual ports in the calling thread's namespace.
pub(super) fn ports(config: &Config, changes: &mut Changes) -> Result<(), HostError> {
    if config.families.v4 {
        set("net/ipv4/conf/all/accept_local", if config.carries { "1" } else { "0" }, changes)?;
    }
    for port in &config.ports {
        let interface = &port.interface;
        let families = [("ipv4", config.families.v4), ("ipv6", config.families.v6)];
        for (family, _) in families.into_iter().filter(|(_, has)| *has) {
            for (key, value) in NEIGHBOUR_SETTINGS {
                set(&format!("net/{family}/neigh/{interface}/{key}"), value, changes)?;
            }
        }
        if config.families.v6 {
            for (key, value) in INTERFACE6 {
                set(&format!("net/ipv6/conf/{interface}/{key}"), value, changes)?;
            }
        }
    }
    Ok(())
}

fn set(key: &str, value: &str, changes: &mut Changes) -> Result<(), HostError> {
    if sysctl::get_here(key)?.is_some() && sysctl::set_here(key, value)? {
        changes.word(format!("{key} set to {value}"));
    }
    Ok(())
}
