//! A prefix of either family, and how text becomes one.

use std::fmt;
use std::net::IpAddr;

use hue_tables::{Prefix, Prefix4, Prefix6, PrefixError};

/// A prefix of either family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AnyPrefix {
    /// IPv4.
    V4(Prefix4),
    /// IPv6.
    V6(Prefix6),
}

impl AnyPrefix {
    /// Reads `ADDRESS/LENGTH`; the address's form says which family.
    ///
    /// # Errors
    /// [`PrefixError`] as [`Prefix`]'s own parser.
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
            Err(_) => Err(PrefixError::Address(addr.to_owned())),
        }
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

/// The common case of a million lines: `a.b.c.d/len` without host bits. Anything else, right or wrong, is `None`
/// and left to the careful parser.
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
                // Leading zeros are refused by the careful parser too.
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
    fn wrong_prefixes_are_refused() {
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
            // "/008" reads as 8: harmless, and what the standard parser of numbers says.
            assert_eq!(AnyPrefix::parse(text).is_ok(), text == "10.0.0.0/008", "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(bits in any::<u128>(), len in 0u8..=128, four in any::<bool>()) {
            let prefix = if four {
                AnyPrefix::V4(Prefix::containing(bits as u32, len % 33))
            } else {
                AnyPrefix::V6(Prefix::containing(bits, len))
            };
            prop_assert_eq!(AnyPrefix::parse(&prefix.to_string()), Ok(prefix));
        }

        #[test]
        fn the_fast_path_never_says_more_than_the_careful_one(text in "[0-9./:a-f]{0,20}") {
            if let Some(prefix) = parse4(text.as_bytes()) {
                prop_assert_eq!(text.parse::<Prefix4>(), Ok(prefix));
            }
        }
    }
}
