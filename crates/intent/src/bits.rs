//! Bit rates and amounts of bits of a rate limit, written with a unit: `10Mbit/s`, `80kbit`.
//!
//! Flow: documents → **these types** → `types::RateLimit`, which holds plain numbers. A number without a unit counts
//! bits. Units are decimal: 1 kbit is 1,000 bits.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::limits;

/// Multiples of a bit, largest first.
const MULTIPLES: [(&str, u64); 4] =
    [("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

/// What a rate must be, for errors.
pub(crate) const RATE: &str =
    "a rate from 1bit/s to 1000Gbit/s, such as 10Mbit/s, or a number of bits per second";
/// What an amount of bits must be, for errors.
pub(crate) const AMOUNT: &str = "an amount from 1bit to 1000Gbit, such as 80kbit, or a number of bits";

/// Bits per second, 1 to [`limits::RATE_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BitRate(pub(crate) u64);

/// A number of bits, 1 to [`limits::RATE_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bits(pub(crate) u64);

/// Reads `DIGITSbit`, with a multiple.
fn amount(text: &str) -> Option<u64> {
    let (digits, multiple) =
        MULTIPLES.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, bits)))?;
    let decimal = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let bits = digits.parse::<u64>().ok().filter(|_| decimal)?.checked_mul(*multiple)?;
    (1..=limits::RATE_MAX).contains(&bits).then_some(bits)
}

/// Writes bits with the largest multiple that divides them.
fn write_amount(f: &mut fmt::Formatter<'_>, bits: u64) -> fmt::Result {
    let whole = |(_, multiple): &(&str, u64)| bits.is_multiple_of(*multiple);
    let (unit, multiple) = MULTIPLES.into_iter().find(whole).unwrap_or(("bit", 1));
    write!(f, "{}{unit}", bits / multiple)
}

impl FromStr for BitRate {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.strip_suffix("/s").and_then(amount).map(Self).ok_or(())
    }
}

impl FromStr for Bits {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        amount(text).map(Self).ok_or(())
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_amount(f, self.0)?;
        f.write_str("/s")
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_amount(f, self.0)
    }
}

impl Serialize for BitRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_amounts_have_units() {
        for (text, bits, shown) in [
            ("1bit", 1, "1bit"),
            ("999bit", 999, "999bit"),
            ("80kbit", 80_000, "80kbit"),
            ("1000kbit", 1_000_000, "1Mbit"),
            ("12112bit", 12_112, "12112bit"),
            ("1000Gbit", limits::RATE_MAX, "1000Gbit"),
        ] {
            assert_eq!(text.parse::<Bits>().map(|bits| bits.0), Ok(bits));
            assert_eq!(Bits(bits).to_string(), shown);
            assert_eq!(format!("{text}/s").parse::<BitRate>().map(|rate| rate.0), Ok(bits));
            assert_eq!(BitRate(bits).to_string(), format!("{shown}/s"));
        }
        for text in
            ["", "bit", "0bit", "01bit", "1.5Mbit", "1 Mbit", "1Mb", "-1bit", "+1bit", "1001Gbit", "1mbit"]
        {
            assert!(text.parse::<Bits>().is_err(), "{text}");
            assert!(format!("{text}/s").parse::<BitRate>().is_err(), "{text}");
        }
        assert!("1Mbit".parse::<BitRate>().is_err() && "1Mbit/s".parse::<Bits>().is_err());
    }
}
