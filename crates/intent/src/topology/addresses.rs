//! Addresses of a network across nodes, from its prefixes.
//!
//! A prefix is divided into blocks of 2^8 IPv4 or 2^64 IPv6 addresses. The first blocks are hosts' links: the router has address
//! 1, the host address 2. The last blocks are divided into links of two addresses between nodes (RFC 3021, RFC 6164). So a host or
//! link that is added at the end of its list changes no other address. In a network of kind `l2` hosts have addresses of the prefix
//! itself, from 1 up. Pure functions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_tables::AnyPrefix;

use crate::address::InterfaceAddress;

/// Links between nodes in one block.
const LINKS_PER_BLOCK: u128 = 128;

/// Length of the prefix of a host's link.
#[must_use]
pub fn host_len(prefix: AnyPrefix) -> u8 {
    match prefix.addr() {
        IpAddr::V4(_) => 24,
        IpAddr::V6(_) => 64,
    }
}

/// Length of the prefix of a link between nodes.
fn link_len(prefix: AnyPrefix) -> u8 {
    prefix.bits() - 1
}

/// The longest prefix in which this many hosts and links have addresses; `None` if none has room.
#[must_use]
pub fn longest(v4: bool, hosts: usize, links: usize) -> Option<u8> {
    let len = if v4 { 24 } else { 64 };
    let blocks = hosts as u128 + (links as u128).div_ceil(LINKS_PER_BLOCK);
    (0..=len).rev().find(|shorter| 1_u128 << (len - shorter) >= blocks)
}

/// The longest prefix of a network of kind `l2` with this many hosts.
#[must_use]
pub fn longest_flat(v4: bool, hosts: usize) -> Option<u8> {
    let bits: u8 = if v4 { 32 } else { 128 };
    // The first address and the last one are not those of hosts.
    (0..=bits - 2).rev().find(|len| bits - len > 64 || (1_u128 << (bits - len)) - 2 >= hosts as u128)
}

/// The router's address on the link of the host with this number, counted from 0, and the host's.
#[must_use]
pub fn host(prefix: AnyPrefix, number: usize) -> (InterfaceAddress, InterfaceAddress) {
    let len = host_len(prefix);
    let base = (number as u128) << (prefix.bits() - len);
    let at = |offset| InterfaceAddress { address: plus(prefix.addr(), base + offset), len };
    (at(1), at(2))
}

/// The address of the host with this number in a network of kind `l2`.
#[must_use]
pub fn flat_host(prefix: AnyPrefix, number: usize) -> InterfaceAddress {
    InterfaceAddress { address: plus(prefix.addr(), number as u128 + 1), len: prefix.len() }
}

/// The addresses of the two ends of the link with this number, counted from 0.
#[must_use]
pub fn link(prefix: AnyPrefix, number: usize) -> [InterfaceAddress; 2] {
    let number = number as u128;
    let len = host_len(prefix);
    let blocks = 1_u128 << (len - prefix.len().min(len));
    let block = blocks - 1 - number / LINKS_PER_BLOCK;
    let base = (block << (prefix.bits() - len)) + 2 * (number % LINKS_PER_BLOCK);
    [0, 1].map(|end| InterfaceAddress { address: plus(prefix.addr(), base + end), len: link_len(prefix) })
}

fn plus(address: IpAddr, offset: u128) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits().wrapping_add(offset as u32))),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits().wrapping_add(offset))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn prefix(text: &str) -> AnyPrefix {
        AnyPrefix::parse(text).unwrap()
    }

    #[test]
    fn hosts_are_at_the_start_and_links_at_the_end() {
        let four = prefix("10.1.0.0/16");
        let (router, own) = host(four, 3);
        assert_eq!((router.to_string(), own.to_string()), ("10.1.3.1/24".into(), "10.1.3.2/24".into()));
        let ends = |number| link(four, number).map(|end| end.to_string());
        assert_eq!(ends(0), ["10.1.255.0/31", "10.1.255.1/31"]);
        assert_eq!(ends(127), ["10.1.255.254/31", "10.1.255.255/31"]);
        assert_eq!(ends(128), ["10.1.254.0/31", "10.1.254.1/31"]);
        let six = prefix("2001:db8::/48");
        assert_eq!(host(six, 2).0.to_string(), "2001:db8:0:2::1/64");
        assert_eq!(
            link(six, 1).map(|end| end.to_string()),
            ["2001:db8:0:ffff::2/127", "2001:db8:0:ffff::3/127"]
        );
        assert_eq!(flat_host(prefix("192.0.2.0/24"), 0).to_string(), "192.0.2.1/24");
    }

    #[test]
    fn the_longest_prefix_has_room_and_the_next_has_not() {
        for (hosts, links) in [(0, 1), (1, 0), (3, 128), (3, 129), (60, 75), (255, 1), (256, 1)] {
            let len = longest(true, hosts, links).unwrap();
            let pool = AnyPrefix::containing("10.0.0.0".parse().unwrap(), len);
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..hosts {
                let (router, own) = host(pool, number);
                assert!(pool.contains(router.address) && pool.contains(own.address));
                assert!(seen.insert(router.address) && seen.insert(own.address));
            }
            for number in 0..links {
                for end in link(pool, number) {
                    assert!(pool.contains(end.address) && seen.insert(end.address), "{end}");
                }
            }
            let blocks = hosts + links.div_ceil(128);
            assert!(len == 24 || blocks > 1 << (23 - len), "{hosts} {links} {len}");
        }
        assert_eq!(longest(true, 1 << 24, 1), None);
        assert_eq!(
            (longest_flat(true, 2), longest_flat(true, 3), longest_flat(false, 9)),
            (Some(30), Some(29), Some(124))
        );
    }
}
