//! What differs between the address families.

use hue_planes::{ipv4, ipv6};
use hue_tables::{Key, Prefix};

/// The address family of a network's routes: `u32` is IPv4, `u128` is IPv6.
pub trait Family: Key {
    /// Smallest MTU of a link, in bytes. The kernel reports smaller ones for links that cannot carry the family.
    const MTU_BYTES_MIN: u16;
    /// How the kernel orders routes that have the same destination and metric, and which it considers the same.
    const ORDER: Order;

    /// Whether the plane decides packets to all destinations of the prefix without a route (ADR 0047).
    fn is_never_looked_up(prefix: Prefix<Self>) -> bool;
}

/// See [`Family::ORDER`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `fib_table_insert`: a new route comes before others with the same destination and metric, unless it is appended.
    /// Next hops of different routes are never combined.
    NewestFirst,
    /// `fib6_add_rt2node`: a new route comes after the others. All routes with gateways become one route with several
    /// next hops: a message about an addition names all of them, one about a removal only those that were removed.
    Siblings,
}

impl Family for u32 {
    const MTU_BYTES_MIN: u16 = ipv4::MTU_BYTES_MIN;
    const ORDER: Order = Order::NewestFirst;

    fn is_never_looked_up(_: Prefix<Self>) -> bool {
        false
    }
}

impl Family for u128 {
    const MTU_BYTES_MIN: u16 = ipv6::MTU_BYTES_MIN;
    const ORDER: Order = Order::Siblings;

    fn is_never_looked_up(prefix: Prefix<Self>) -> bool {
        let first = prefix.addr().to_addr();
        first.is_multicast() && prefix.len() >= 8 || first.is_unicast_link_local() && prefix.len() >= 10
    }
}

#[cfg(test)]
mod tests {
    use hue_tables::{Prefix4, Prefix6};

    use super::*;

    #[test]
    fn only_ranges_within_multicast_and_link_local_have_no_routes() {
        let never = |text: &str| u128::is_never_looked_up(text.parse::<Prefix6>().unwrap());
        for text in ["ff00::/8", "ff02::5/128", "fe80::/10", "fe80::/64", "febf::1/128"] {
            assert!(never(text), "{text}");
        }
        for text in ["::/0", "fe00::/7", "fec0::/10", "fe00::/9", "f000::/4", "2001:db8::/32"] {
            assert!(!never(text), "{text}");
        }
        assert!(!u32::is_never_looked_up("224.0.0.0/4".parse::<Prefix4>().unwrap()));
    }
}
