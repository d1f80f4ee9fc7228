//! The traffic of a port as text: `rate:1G,size:64,to:p1` or `left.pcap@1G`.
//!
//! Flow: command line → **traffic** → feed → schedule. Lengths are those of the wire, from destination MAC to
//! frame check sequence, as in RFC 2544; the shortest is 64.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use hue_tables::AnyPrefix;

use crate::random::Random;
use crate::rate::{FCS_BYTES, Rate};

/// Shortest length of generated frames, in bytes.
pub const SIZE_BYTES_MIN: u16 = 64;
/// Longest length of generated frames, in bytes: the card does not accept longer ones.
pub const SIZE_BYTES_MAX: u16 = 9220;
/// Most flows of a port.
pub const FLOWS_MAX: u32 = 65_536;
/// Most entries in a list of lengths, and the highest weight of an entry.
const SIZES_MAX: usize = 64;
const WEIGHT_MAX: u64 = 1000;
const FLOWS: u32 = 64;

/// How fast frames are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// At exactly this rate.
    Rate(Rate),
    /// As fast as the card accepts them. No frame is lost, because ports wait.
    Max,
}

/// The traffic offered to a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// How fast it is offered.
    pub offer: Offer,
    /// Where the frames come from.
    pub source: Source,
}

/// A source of frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The frames of a capture in order, repeatedly.
    Capture(PathBuf),
    /// Generated frames.
    Synthetic(Synthetic),
}

/// Kind of generated frames, by what happens to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// UDP that a network forwards.
    #[default]
    Forward,
    /// As `Forward`, but with a TTL (hop limit) of 1, so that the control plane answers.
    Ttl1,
    /// UDP to an address of the router itself, which goes to the control plane.
    Own,
    /// ARP requests, broadcast.
    Broadcast,
    /// UDP to a multicast group, of the families of the networks on the port.
    Multicast,
    /// Frames too short for an Ethernet header.
    Runt,
    /// UDP to a MAC address that no network has.
    Nobody,
}

impl Sort {
    /// All sorts, with their names.
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

/// Generated frames: UDP between random addresses, over IPv6 for networks of kind `ipv6`, unless the sort says otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synthetic {
    /// Kind of frames.
    pub sort: Sort,
    /// Frame lengths.
    pub sizes: Sizes,
    /// Names of networks; if empty, all networks on the port.
    pub networks: Vec<String>,
    /// Destinations; if empty, known neighbours of the network, preferably on another port. Those of a switch are hosts.
    pub to: Vec<To>,
    /// Number of pairs of addresses.
    pub flows: u32,
    /// Seed: the same seed gives the same frames.
    pub seed: u64,
}

/// A destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum To {
    /// Addresses that the network forwards to this port.
    Port(String),
    /// Any address in this prefix, however the network treats it.
    Prefix(AnyPrefix),
}

/// Frame lengths on the wire, and the weight of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes(Vec<(RangeInclusive<u16>, u64)>);

impl Sizes {
    /// A single length; `None` if it is not valid.
    #[must_use]
    pub fn one(bytes: u16) -> Option<Self> {
        let range = SIZE_BYTES_MIN..=SIZE_BYTES_MAX;
        range.contains(&bytes).then(|| Self(vec![(bytes..=bytes, 1)]))
    }

    /// The shortest frame without check sequence, in bytes.
    pub(crate) fn frame_bytes_min(&self) -> usize {
        let shortest = self.0.iter().map(|(range, _)| *range.start()).min().unwrap_or(SIZE_BYTES_MIN);
        usize::from(shortest) - FCS_BYTES as usize
    }

    /// A random length of a frame without check sequence.
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
        // IP packets of 40, 576 and 1,500 bytes at 7 : 4 : 1, as frames.
        if text == "imix" {
            return Ok(Self(vec![(64..=64, 7), (594..=594, 4), (1518..=1518, 1)]));
        }
        let fault = || {
            format!(
                "found size '{text}', expected bytes with check sequence from {SIZE_BYTES_MIN} to \
                 {SIZE_BYTES_MAX}, such as 64, 64-1518 or 64*7+1518, or imix"
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
                return Err(format!("'{key}' occurs twice"));
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
        let offer = offer.ok_or_else(|| "no rate: add rate:1G or rate:max".to_owned())?;
        Ok(Self { offer, source: Source::Synthetic(made) })
    }
}

fn to(text: &str) -> Result<To, String> {
    if text.contains('/') {
        return AnyPrefix::parse(text).map(To::Prefix).map_err(|error| error.to_string());
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
    fn traffic_is_parsed_or_rejected() {
        let traffic: Traffic =
            "rate:2.5G,size:64-65+1518*3,networks:red+blue,to:p1+10.0.0.0/8+2001:db8::/32,flows:9,seed:7"
                .parse()
                .unwrap();
        let Source::Synthetic(made) = traffic.source else { panic!("it is made") };
        assert_eq!(traffic.offer, Offer::Rate(Rate::new(2_500_000_000).unwrap()));
        assert_eq!(made.sizes, Sizes(vec![(64..=65, 1), (1518..=1518, 3)]));
        assert_eq!((made.networks.len(), made.flows, made.seed), (2, 9, 7));
        assert_eq!(made.sort, Sort::Forward);
        let prefix = |text| To::Prefix(AnyPrefix::parse(text).unwrap());
        assert_eq!(made.to, [To::Port("p1".into()), prefix("10.0.0.0/8"), prefix("2001:db8::/32")]);
        let file: Traffic = "a@b:c.pcap@max".parse().unwrap();
        assert_eq!(file, Traffic { offer: Offer::Max, source: Source::Capture("a@b:c.pcap".into()) });
        for (text, says) in [
            ("size:64", "no rate: add"),
            ("rate:1G,rate:2G", "'rate' occurs twice"),
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
            ("left.pcap@fast", "found rate 'fast'"),
            ("@1G", "expected FILE@RATE"),
        ] {
            let fault = text.parse::<Traffic>().unwrap_err();
            assert!(fault.contains(says), "{text}: {fault}");
        }
    }

    #[test]
    fn lengths_follow_their_weights() {
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
