//! Wire rates, and the time that a frame occupies the wire.
//!
//! Frames here have no frame check sequence, as in captures and on the card's streams. On the wire, a frame
//! has a preamble, is padded to 60 bytes, and is followed by the check sequence and a gap (IEEE 802.3 §4.2).
//! A "64-byte frame" therefore has 60 bytes here, and takes 84 byte times.

use std::fmt;
use std::str::FromStr;

/// Length of preamble and start delimiter, in bytes.
pub const PREAMBLE_BYTES: u64 = 8;
/// Length of the frame check sequence, in bytes.
pub const FCS_BYTES: u64 = 4;
/// Minimum gap between frames, in bytes.
pub const GAP_BYTES: u64 = 12;
/// Minimum length of a frame without check sequence; shorter frames are padded on the wire.
const FRAME_BYTES_MIN: u64 = 60;

/// Byte times of a frame on the wire. `frame_bytes` excludes the check sequence.
#[must_use]
pub const fn wire_bytes(frame_bytes: usize) -> u64 {
    let bytes = frame_bytes as u64;
    let padded = if bytes < FRAME_BYTES_MIN { FRAME_BYTES_MIN } else { bytes };
    PREAMBLE_BYTES + padded + FCS_BYTES + GAP_BYTES
}

/// Bits per second on the wire, including preambles and gaps; at least 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

impl Rate {
    /// Highest rate: 10 Tbit/s.
    pub const BITS_MAX: u64 = 10_000_000_000_000;

    /// Creates a rate in bits per second; `None` for 0 or above [`Rate::BITS_MAX`].
    #[must_use]
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 || bits > Self::BITS_MAX { None } else { Some(Self(bits)) }
    }

    /// The rate in bits per second.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = String;

    /// Parses a number with up to nine decimals, followed by `k`, `M`, `G` or `T`.
    fn from_str(text: &str) -> Result<Self, String> {
        let fault =
            || format!("found rate '{text}', expected bits per second up to 10T, such as 1G, 2.5G or 800M");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: u128 = match text.get(digits.len()..) {
            Some("") => 1,
            Some("k") => 1_000,
            Some("M") => 1_000_000,
            Some("G") => 1_000_000_000,
            Some("T") => 1_000_000_000_000,
            _ => return Err(fault()),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit())
        };
        if !is_number(whole, 15) || !is_number(part, 9) {
            return Err(fault());
        }
        let scale = 10u128.pow(part.len() as u32);
        let number = |text: &str| text.parse::<u128>().map_err(|_| fault());
        let scaled = (number(whole)? * scale + number(part)?) * unit;
        if !scaled.is_multiple_of(scale) {
            return Err(fault());
        }
        u64::try_from(scaled / scale).ok().and_then(Self::new).ok_or_else(fault)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
        let (scale, name) = UNITS.into_iter().find(|(scale, _)| self.0 >= *scale).unwrap_or((1, ""));
        let rest = self.0 % scale;
        if rest == 0 {
            return write!(f, "{} {name}bit/s", self.0 / scale);
        }
        let width = scale.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        write!(f, "{}.{} {name}bit/s", self.0 / scale, decimals.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact_or_rejected() {
        for (text, bits, shown) in [
            ("1G", 1_000_000_000, "1 Gbit/s"),
            ("2.5G", 2_500_000_000, "2.5 Gbit/s"),
            ("0.000000001G", 1, "1 bit/s"),
            ("123456789", 123_456_789, "123.456789 Mbit/s"),
            ("1.05k", 1050, "1.05 kbit/s"),
            ("10T", Rate::BITS_MAX, "10 Tbit/s"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.bits(), rate.to_string().as_str()), (bits, shown), "{text}");
        }
        for text in [
            "",
            "G",
            "1g",
            "0",
            "0G",
            "-1",
            "1.G",
            ".5G",
            "1.5",
            "10.000001T",
            "1e9",
            "1 G",
            "9999999999999999",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_frame_of_64_bytes_takes_84_byte_times() {
        assert_eq!([0, 59, 60, 61, 1514].map(wire_bytes), [84, 84, 84, 85, 1538]);
    }
}
