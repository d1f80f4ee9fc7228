//! What is offered to a port, as text: `rate:1G,size:64,to:p1` or `left.pcap@1G`.
//!
//! Flow: command line → **traffic** → feed → schedule. Lengths are those of the wire, destination MAC to frame check sequence,
//! as in RFC 2544: 64 is the shortest.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use hue_tables::Prefix4;

use crate::random::Random;
use crate::rate::{FCS_BYTES, Rate};

/// Shortest length that is made.
pub const SIZE_BYTES_MIN: u16 = 64;
/// Longest length that is made: the card takes no more.
pub const SIZE_BYTES_MAX: u16 = 9220;
/// Flows of a port at most.
pub const FLOWS_MAX: u32 = 65_536;
/// Kinds of length at most, and the weight of each.
const SIZES_MAX: usize = 64;
const WEIGHT_MAX: u64 = 1000;
const FLOWS: u32 = 64;

/// How fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// At exactly this rate.
    Rate(Rate),
    /// As fast as the card takes it; nothing is lost, ports wait.
    Max,
}

/// What is offered to a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// How fast.
    pub offer: Offer,
    /// Which frames.
    pub source: Source,
}

/// Where frames come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Frames of a capture in its order, again and again.
    Capture(PathBuf),
    /// Made.
    Synthetic(Synthetic),
}

/// What becomes of frames that are made, by what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// UDP over IPv4 that a network forwards.
    #[default]
    Forward,
    /// The same with a TTL of 1, which the control plane answers.
    Ttl1,
    /// UDP to an address of the router itself, which the control plane gets.
    Own,
    /// ARP requests to everybody.
    Broadcast,
    /// UDP to a multicast group.
    Multicast,
    /// Frames too short for an Ethernet header.
    Runt,
    /// UDP to a MAC address that no network has.
    Nobody,
}

impl Sort {
    /// Every sort, and its name.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Forward, "forward"),
        (Self::Ttl1, "ttl1"),
        (Self::Own, "own"),
        (Self::Broadcast, "broadcast"),
        (Self::Multicast, "multicast"),
        (Self::Runt, "runt"),
        (Self::Nobody, "nobody"),
    ];
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == text);
        let names = Self::ALL.map(|(_, name)| name).join(", ");
        found
            .map(|(sort, _)| sort)
            .ok_or_else(|| format!("found the sort '{text}', expected one of: {names}"))
    }
}

/// Frames that are made, from random addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synthetic {
    /// What they are.
    pub sort: Sort,
    /// Lengths.
    pub sizes: Sizes,
    /// Names of networks; none: all that are on the port.
    pub networks: Vec<String>,
    /// Where to; nowhere: to what the network has a neighbour for, by another port if there is one.
    pub to: Vec<To>,
    /// Pairs of addresses.
    pub flows: u32,
    /// The same seed gives the same frames.
    pub seed: u64,
}

/// A destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum To {
    /// What the network forwards by this port.
    Port(String),
    /// Any address in here, whatever the network makes of it.
    Prefix(Prefix4),
}

/// Lengths on the wire and how often each comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes(Vec<(RangeInclusive<u16>, u64)>);

impl Sizes {
    /// One length; `None` when there is no such frame.
    #[must_use]
    pub fn one(bytes: u16) -> Option<Self> {
        let range = SIZE_BYTES_MIN..=SIZE_BYTES_MAX;
        range.contains(&bytes).then(|| Self(vec![(bytes..=bytes, 1)]))
    }

    /// A random one, as a frame without its check sequence.
    pub(crate) fn frame_bytes(&self, random: &mut Random) -> usize {
        let mut at = random.below(self.0.iter().map(|(_, weight)| weight).sum());
        let chosen = self.0.iter().find(|(_, weight)| match at.checked_sub(*weight) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
        let Some((range, _)) = chosen else { return usize::from(SIZE_BYTES_MIN) };
        let (low, high) = (u64::from(*range.start()), u64::from(*range.end()));
        (low + random.below(high - low + 1) - FCS_BYTES) as usize
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Of the lengths of IP packets 40, 576 and 1,500, as 7 : 4 : 1, made frames.
        if text == "imix" {
            return Ok(Self(vec![(64..=64, 7), (594..=594, 4), (1518..=1518, 1)]));
        }
        let fault = || {
            format!(
                "found the size '{text}', expected bytes with check sequence from {SIZE_BYTES_MIN} to \
                 {SIZE_BYTES_MAX}, as 64, 64-1518 or 64*7+1518, or imix"
            )
        };
        let one = |part: &str| {
            let (range, weight) = part.split_once('*').unwrap_or((part, "1"));
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let weight = weight.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight))?;
            let (low, high): (u16, u16) = (low.parse().ok()?, high.parse().ok()?);
            (SIZE_BYTES_MIN <= low && low <= high && high <= SIZE_BYTES_MAX).then_some((low..=high, weight))
        };
        let sizes: Option<Vec<_>> = text.split('+').map(one).collect();
        sizes.filter(|sizes| sizes.len() <= SIZES_MAX).map(Self).ok_or_else(fault)
    }
}

impl FromStr for Offer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" { Ok(Self::Max) } else { text.parse().map(Self::Rate) }
    }
}

impl FromStr for Traffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((file, rate)) = text.rsplit_once('@').filter(|_| !text.starts_with("rate:")) {
            if file.is_empty() {
                return Err("expected FILE@RATE".to_owned());
            }
            return Ok(Self { offer: rate.parse()?, source: Source::Capture(file.into()) });
        }
        let mut offer = None;
        let mut made = Synthetic {
            sort: Sort::default(),
            sizes: Sizes(vec![(SIZE_BYTES_MIN..=SIZE_BYTES_MIN, 1)]),
            networks: Vec::new(),
            to: Vec::new(),
            flows: FLOWS,
            seed: 1,
        };
        let mut told = Vec::new();
        for field in text.split(',') {
            let Some((key, value)) = field.split_once(':').filter(|(_, value)| !value.is_empty()) else {
                return Err(format!("found '{field}', expected KEY:VALUE, or FILE@RATE for a capture"));
            };
            if told.contains(&key) {
                return Err(format!("'{key}' is given twice"));
            }
            told.push(key);
            match key {
                "rate" => offer = Some(value.parse()?),
                "sort" => made.sort = value.parse()?,
                "size" => made.sizes = value.parse()?,
                "networks" => made.networks = value.split('+').map(str::to_owned).collect(),
                "to" => made.to = value.split('+').map(to).collect::<Result<_, _>>()?,
                "flows" => made.flows = number(value, 1, u64::from(FLOWS_MAX))? as u32,
                "seed" => made.seed = number(value, 0, u64::MAX)?,
                _ => {
                    return Err(format!(
                        "found '{key}', expected rate, sort, size, networks, to, flows or seed"
                    ));
                }
            }
        }
        let offer = offer.ok_or_else(|| "it has no rate: rate:1G, or rate:max".to_owned())?;
        Ok(Self { offer, source: Source::Synthetic(made) })
    }
}

fn to(text: &str) -> Result<To, String> {
    if text.contains('/') {
        return text.parse().map(To::Prefix).map_err(|error: hue_tables::PrefixError| error.to_string());
    }
    Ok(To::Port(text.to_owned()))
}

fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("found '{text}', expected a number from {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_read_or_refused() {
        let traffic: Traffic =
            "rate:2.5G,size:64-65+1518*3,networks:red+blue,to:p1+10.0.0.0/8,flows:9,seed:7".parse().unwrap();
        let Source::Synthetic(made) = traffic.source else { panic!("it is made") };
        assert_eq!(traffic.offer, Offer::Rate(Rate::new(2_500_000_000).unwrap()));
        assert_eq!(made.sizes, Sizes(vec![(64..=65, 1), (1518..=1518, 3)]));
        assert_eq!((made.networks.len(), made.flows, made.seed), (2, 9, 7));
        assert_eq!(made.sort, Sort::Forward);
        assert_eq!(made.to, [To::Port("p1".into()), To::Prefix("10.0.0.0/8".parse().unwrap())]);
        let file: Traffic = "a@b:c.pcap@max".parse().unwrap();
        assert_eq!(file, Traffic { offer: Offer::Max, source: Source::Capture("a@b:c.pcap".into()) });
        for (text, says) in [
            ("size:64", "it has no rate"),
            ("rate:1G,rate:2G", "'rate' is given twice"),
            ("rate:1G,size:63", "from 64 to 9220"),
            ("rate:1G,size:9221", "from 64 to 9220"),
            ("rate:1G,size:99-98", "from 64 to 9220"),
            ("rate:1G,size:64*0", "from 64 to 9220"),
            ("rate:1G,flows:0", "from 1 to 65536"),
            ("rate:1G,sort:unicast", "found the sort 'unicast', expected one of: forward, ttl1, own, "),
            ("rate:1G,seed:-1", "expected a number"),
            ("rate:1G,to:10.0.0.1/8", "bits set beyond"),
            ("rate:1G,colour:red", "found 'colour'"),
            ("rate:", "found 'rate:'"),
            ("left.pcap", "or FILE@RATE"),
            ("left.pcap@fast", "found the rate 'fast'"),
            ("@1G", "expected FILE@RATE"),
        ] {
            let fault = text.parse::<Traffic>().unwrap_err();
            assert!(fault.contains(says), "{text}: {fault}");
        }
    }

    #[test]
    fn lengths_come_as_often_as_their_weights_say() {
        let sizes: Sizes = "imix".parse().unwrap();
        let mut random = Random::new(5);
        let mut counts = [0; 3];
        for _ in 0..12_000 {
            let bytes = sizes.frame_bytes(&mut random);
            counts[[60, 590, 1514].iter().position(|one| *one == bytes).unwrap()] += 1;
        }
        let near = |count: i32, expected: i32| (count - expected).abs() < 300;
        assert!(near(counts[0], 7000) && near(counts[1], 4000) && near(counts[2], 1000), "{counts:?}");
        let range: Sizes = "64-66".parse().unwrap();
        let seen: std::collections::BTreeSet<_> = (0..100).map(|_| range.frame_bytes(&mut random)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [60, 61, 62]);
    }
}
