//! A prefix of either address family, and its parser.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::types::{Key, Prefix, Prefix4, Prefix6, PrefixError};

/// A prefix of either address family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum AnyPrefix {
    /// IPv4.
    V4(Prefix4),
    /// IPv6.
    V6(Prefix6),
}

impl AnyPrefix {
    /// Parses `ADDRESS/LENGTH`; the form of the address determines the family.
    ///
    /// # Errors
    /// [`PrefixError`], as for [`Prefix`].
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        if let Some(prefix) = parse4(text.as_bytes()) {
            return Ok(Self::V4(prefix));
        }
        let (addr, len) = text.split_once('/').ok_or_else(|| PrefixError::Form(text.to_owned()))?;
        let bits = |max: u8| {
            len.parse::<u8>()
                .ok()
                .filter(|bits| *bits <= max && len.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| PrefixError::Length(len.to_owned(), max))
        };
        match addr.parse() {
            Ok(IpAddr::V4(ip)) => Ok(Self::V4(Prefix::new(ip.to_bits(), bits(32)?)?)),
            Ok(IpAddr::V6(ip)) => Ok(Self::V6(Prefix::new(ip.to_bits(), bits(128)?)?)),
            Err(_) => Err(PrefixError::Address(addr.to_owned(), "IPv4 or IPv6")),
        }
    }
}

impl AnyPrefix {
    /// The prefix of `len` bits that contains `address`; `len` is limited to the length of the address.
    #[must_use]
    pub fn containing(address: IpAddr, len: u8) -> Self {
        match address {
            IpAddr::V4(ip) => Self::V4(Prefix::containing(ip.to_bits(), len)),
            IpAddr::V6(ip) => Self::V6(Prefix::containing(ip.to_bits(), len)),
        }
    }

    /// The prefix that contains only this address.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        Self::containing(address, u8::MAX)
    }

    /// First address.
    #[must_use]
    pub fn addr(self) -> IpAddr {
        match self {
            Self::V4(prefix) => prefix.addr().to_ip(),
            Self::V6(prefix) => prefix.addr().to_ip(),
        }
    }

    /// Length in bits.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a prefix is never empty
    pub const fn len(self) -> u8 {
        match self {
            Self::V4(prefix) => prefix.len(),
            Self::V6(prefix) => prefix.len(),
        }
    }

    /// Last address.
    #[must_use]
    pub fn last(self) -> IpAddr {
        match self {
            Self::V4(prefix) => prefix.last().to_ip(),
            Self::V6(prefix) => prefix.last().to_ip(),
        }
    }

    /// Width of an address of its family, bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::V4(_) => <u32 as Key>::BITS,
            Self::V6(_) => <u128 as Key>::BITS,
        }
    }

    /// Whether the prefix contains an address; never one of the other family.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(prefix), IpAddr::V4(address)) => prefix.contains(address.to_bits()),
            (Self::V6(prefix), IpAddr::V6(address)) => prefix.contains(address.to_bits()),
            _ => false,
        }
    }

    /// The prefix, if it belongs to this family.
    #[must_use]
    pub fn of<K: Key>(self) -> Option<Prefix<K>> {
        K::from_ip(self.addr()).map(|addr| Prefix::containing(addr, self.len()))
    }
}

impl<K: Key> From<Prefix<K>> for AnyPrefix {
    fn from(prefix: Prefix<K>) -> Self {
        Self::containing(prefix.addr().to_ip(), prefix.len())
    }
}

impl FromStr for AnyPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        Self::parse(text)
    }
}

impl fmt::Display for AnyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

/// Values by prefix of either family. A search tries each length that occurs.
#[derive(Clone, Debug)]
pub struct PrefixMap<V> {
    by_len: BTreeMap<u8, HashMap<AnyPrefix, V>>,
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self { by_len: BTreeMap::new() }
    }
}

impl<V> PrefixMap<V> {
    /// Stores a value, unless the prefix has one.
    pub fn insert_first(&mut self, prefix: AnyPrefix, value: V) {
        self.by_len.entry(prefix.len()).or_default().entry(prefix).or_insert(value);
    }

    /// The value of the longest prefix that contains an address.
    #[must_use]
    pub fn longest(&self, address: IpAddr) -> Option<&V> {
        self.by_len.iter().rev().find_map(|(len, values)| values.get(&AnyPrefix::containing(address, *len)))
    }
}

/// Parses the common case of large files: `a.b.c.d/len` without host bits. Returns `None` for everything
/// else, valid or not, for the general parser.
fn parse4(text: &[u8]) -> Option<Prefix4> {
    let mut addr = 0u32;
    let mut part = 0u32;
    let mut digits = 0;
    let mut dots = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                part = part * 10 + u32::from(byte - b'0');
                digits += 1;
                // The general parser also rejects leading zeros.
                if digits > 3 || part > 255 || (digits > 1 && part < 10) {
                    return None;
                }
            }
            b'.' | b'/' if digits > 0 => {
                addr = addr << 8 | part;
                (part, digits) = (0, 0);
                if *byte == b'.' {
                    dots += 1;
                    continue;
                }
                let len = text.get(at + 1..)?;
                let len = match len {
                    [a @ b'0'..=b'9'] => a - b'0',
                    [a @ b'1'..=b'9', b @ b'0'..=b'9'] => (a - b'0') * 10 + (b - b'0'),
                    _ => return None,
                };
                return if dots == 3 { Prefix::new(addr, len).ok() } else { None };
            }
            _ => return None,
        }
        if dots > 3 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_prefixes_are_rejected() {
        for text in [
            "",
            "/",
            "10.0.0.0",
            "10.0.0/8",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.1/8",
            "::/129",
            "256.0.0.0/8",
            "1.2.3.4.5/8",
            "10.0.0.0/8/8",
            "a/8",
            "10.0.0.0/",
            "01.0.0.0/8",
            "0000010.0.0.0/8",
            "::1/64",
            "10.0.0.0/008",
        ] {
            // "/008" is accepted as 8: harmless, and consistent with the standard number parser.
            assert_eq!(AnyPrefix::parse(text).is_ok(), text == "10.0.0.0/008", "{text}");
        }
    }

    #[test]
    fn the_first_value_of_the_longest_prefix_is_found() {
        let mut map = PrefixMap::default();
        let texts = ["10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/16", "::/0", "2001:db8::/32", "2001:db8::1/128"];
        for (value, text) in texts.into_iter().enumerate() {
            map.insert_first(text.parse().unwrap(), value);
        }
        let longest = |address: &str| map.longest(address.parse().unwrap()).copied();
        assert_eq!([longest("10.9.9.9"), longest("10.1.0.9"), longest("11.0.0.1")], [Some(0), Some(1), None]);
        assert_eq!(
            [longest("2001:db8::1"), longest("2001:db8::2"), longest("::1")],
            [Some(5), Some(4), Some(3)]
        );
    }

    proptest! {
        #[test]
        fn prefixes_round_trip(bits in any::<u128>(), len in 0u8..=128, four in any::<bool>()) {
            let prefix = if four {
                AnyPrefix::V4(Prefix::containing(bits as u32, len % 33))
            } else {
                AnyPrefix::V6(Prefix::containing(bits, len))
            };
            prop_assert_eq!(AnyPrefix::parse(&prefix.to_string()), Ok(prefix));
            prop_assert_eq!(AnyPrefix::containing(prefix.addr(), prefix.len()), prefix);
            prop_assert_eq!(prefix.of::<u32>().map(AnyPrefix::from), Some(prefix).filter(|_| four));
            prop_assert_eq!(prefix.of::<u128>().map(AnyPrefix::from), Some(prefix).filter(|_| !four));
        }

        #[test]
        fn the_fast_parser_agrees_with_the_general_one(text in "[0-9./:a-f]{0,20}") {
            if let Some(prefix) = parse4(text.as_bytes()) {
                prop_assert_eq!(text.parse::<Prefix4>(), Ok(prefix));
            }
        }
    }
}
