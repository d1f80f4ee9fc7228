//! Several tables of IPv4 routes in one: a key begins with the number of a slice, followed by the address.
//!
//! Flow: routes of a slice → [`SlicedPrefix::wide`] → the network's table of 128-bit keys; a packet's slice and address →
//! [`key`]. The rest of the key is 0. So each slice is a subtree of one root: a lookup takes one step more than one of
//! IPv4, slices share equal subtrees, and quota and updates know nothing of them. Source: ADR 0072.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::prefix::AnyPrefix;
use crate::types::{Prefix, Prefix4, Prefix6};

/// Bits of a key that name the slice.
const SLICE_BITS: u8 = 8;
/// Bits of a key behind the address.
const REST_BITS: u32 = 128 - SLICE_BITS as u32 - 32;

/// The key of an address in a slice.
#[inline(always)]
#[must_use]
pub const fn key(slice: u8, address: u32) -> u128 {
    ((slice as u128) << 32 | address as u128) << REST_BITS
}

/// The slice and the address of a key, in the form of an address.
#[must_use]
pub const fn address_of(key: IpAddr) -> Option<(u8, Ipv4Addr)> {
    let IpAddr::V6(key) = key else { return None };
    let key = key.to_bits() >> REST_BITS;
    Some(((key >> 32) as u8, Ipv4Addr::from_bits(key as u32)))
}

/// A prefix in a slice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlicedPrefix {
    /// The slice.
    pub slice: u8,
    /// The prefix of addresses.
    pub prefix: Prefix4,
}

impl SlicedPrefix {
    /// As a prefix of keys.
    #[must_use]
    pub fn wide(self) -> Prefix6 {
        Prefix::containing(key(self.slice, self.prefix.addr()), SLICE_BITS + self.prefix.len())
    }

    /// What a prefix of keys stands for; `None` if it stands for no prefix of one slice.
    #[must_use]
    pub fn of(wide: Prefix6) -> Option<Self> {
        let len = wide.len().checked_sub(SLICE_BITS).filter(|len| *len <= 32)?;
        let bits = wide.addr() >> REST_BITS;
        Some(Self { slice: (bits >> 32) as u8, prefix: Prefix::containing(bits as u32, len) })
    }

    /// The same for a prefix of either family.
    #[must_use]
    pub fn of_any(wide: AnyPrefix) -> Option<Self> {
        wide.of::<u128>().and_then(Self::of)
    }
}

impl fmt::Display for SlicedPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slice {}", self.prefix, self.slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_a_slice_is_one_of_keys_and_back() {
        for (slice, text) in
            [(0, "0.0.0.0/0"), (2, "10.9.0.0/16"), (15, "10.9.0.1/32"), (255, "192.0.2.0/24")]
        {
            let one = SlicedPrefix { slice, prefix: text.parse().unwrap() };
            assert_eq!(SlicedPrefix::of(one.wide()), Some(one));
            assert_eq!(SlicedPrefix::of_any(one.wide().into()), Some(one));
            assert!(one.wide().contains(key(slice, one.prefix.last())));
            assert!(!one.wide().contains(key(slice ^ 1, one.prefix.addr())));
            assert_eq!(one.to_string(), format!("{text} slice {slice}"));
        }
        let key = IpAddr::from(Ipv4Addr::new(10, 9, 0, 1));
        assert_eq!(address_of(key), None);
        let key = IpAddr::from(std::net::Ipv6Addr::from_bits(super::key(3, 0x0a09_0001)));
        assert_eq!(address_of(key), Some((3, Ipv4Addr::new(10, 9, 0, 1))));
        for (addr, len) in [(0, 7), (0, 41)] {
            assert_eq!(SlicedPrefix::of(Prefix::containing(addr, len)), None);
        }
    }
}
