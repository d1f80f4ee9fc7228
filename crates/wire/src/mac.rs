//! MAC addresses (IEEE 802, EUI-48): six bytes in transmission order.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{MacFault, WireError};

/// A MAC address. Text form: `02:00:00:00:01:01`; written in lower case, read in either case.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
    Serialize,
    Deserialize,
)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address: all ones.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// All zeros: no station; the unknown target in ARP (RFC 826).
    pub const ZERO: Self = Self([0; 6]);

    /// The six bytes in transmission order.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// The address in the low 48 bits, with the first transmitted byte most significant. Usable as a hash or
    /// comparison key.
    #[must_use]
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address in the low 48 bits of `value`; the upper 16 bits are ignored.
    #[must_use]
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// The companion address: it differs only in bit 0x40 of the first byte, which has no defined meaning
    /// (IEEE 802 §8.2 defines 0x01 and 0x02). The companion of the companion is this address. A router that
    /// its neighbours reach over two links has one address on each.
    #[must_use]
    #[inline]
    pub const fn companion(self) -> Self {
        let [a, b, c, d, e, f] = self.0;
        Self([a ^ Self::COMPANION_BIT, b, c, d, e, f])
    }

    /// Bit of the first byte in which an address and its companion differ; see [`Mac::companion`].
    pub const COMPANION_BIT: u8 = 0x40;

    /// Whether this is a group address (IEEE 802 §8.2), including broadcast.
    #[must_use]
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether this is the broadcast address.
    #[must_use]
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }

    /// Whether this is a valid address of one station: neither a group address nor all zeros.
    #[must_use]
    #[inline]
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast() && self.to_u64() != 0
    }

    /// Whether the address is locally administered (IEEE 802 §8.2).
    #[must_use]
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mac({self})")
    }
}

impl From<[u8; 6]> for Mac {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

impl From<Mac> for [u8; 6] {
    fn from(mac: Mac) -> Self {
        mac.0
    }
}

impl FromStr for Mac {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let fault = |fault, at| Err(WireError::Mac { fault, at });
        let mut octets = [0u8; 6];
        let mut characters = text.chars();
        for at in 1..=17 {
            let Some(c) = characters.next() else { return fault(MacFault::Short, at) };
            if at % 3 == 0 {
                if c != ':' {
                    return fault(MacFault::Separator, at);
                }
                continue;
            }
            let Some(digit) = c.to_digit(16) else { return fault(MacFault::Digit, at) };
            if let Some(octet) = octets.get_mut(at / 3) {
                *octet = *octet << 4 | digit as u8;
            }
        }
        if characters.next().is_some() { fault(MacFault::Long, 18) } else { Ok(Self(octets)) }
    }
}

const _: () = assert!(size_of::<Mac>() == 6 && align_of::<Mac>() == 1);

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_and_number_round_trip(octets: [u8; 6]) {
            let mac = Mac(octets);
            prop_assert_eq!(mac.to_string().parse::<Mac>(), Ok(mac));
            prop_assert_eq!(mac.to_string().to_uppercase().parse::<Mac>(), Ok(mac));
            prop_assert_eq!(Mac::from_u64(mac.to_u64()), mac);
        }

        #[test]
        fn any_text_is_answered(text: std::string::String) {
            let _ = text.parse::<Mac>();
        }
    }

    #[test]
    fn kinds_of_address() {
        assert!(
            Mac::BROADCAST.is_broadcast() && Mac::BROADCAST.is_multicast() && !Mac::BROADCAST.is_unicast()
        );
        assert!(!Mac::ZERO.is_unicast() && !Mac::ZERO.is_multicast());
        let own = Mac([2, 0, 0, 0, 1, 1]);
        assert!(own.is_unicast() && own.is_local());
        assert!(Mac([1, 0, 0x5e, 0, 0, 5]).is_multicast());
    }

    #[test]
    fn errors_say_what_and_where() {
        let cases = [
            ("", MacFault::Short, 1),
            ("02:00:00:00:01", MacFault::Short, 15),
            ("02:00:00:00:01:1", MacFault::Short, 17),
            ("02:00:00:00:01:01:", MacFault::Long, 18),
            ("02-00-00-00-01-01", MacFault::Separator, 3),
            ("02:0g:00:00:01:01", MacFault::Digit, 5),
            ("2:0:0:0:1:1", MacFault::Digit, 2),
            ("é2:00:00:00:01:01", MacFault::Digit, 1),
        ];
        for (text, fault, at) in cases {
            assert_eq!(text.parse::<Mac>(), Err(WireError::Mac { fault, at }), "{text}");
        }
        let message = "02-00-00-00-01-01".parse::<Mac>().expect_err("bad separator").to_string();
        assert_eq!(
            message,
            format!(
                "{} at character 3, expected six pairs of hexadecimal digits with colons, such as 02:00:00:00:01:01",
                MacFault::Separator
            )
        );
    }
}
