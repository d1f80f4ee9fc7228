//! The `ipv4` kind: an IPv4 router.
//!
//! Flow: demux → meter → [`check`] → one table lookup (by the caller, batched over networks) → [`finish`] → port.
//! Outcomes and their order: `spec/kinds/ipv4.toml`. Both halves check the conditions in that order; in the common case
//! every branch falls through. Offsets are bytes from the start of the frame. Source: RFC 1812 §5.2, RFC 1624 §3.

pub(crate) mod explain;

use hue_wire::{ethernet, ipv4, toeplitz};
use serde::{Deserialize, Serialize};

pub use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::generated::Kind;
pub use crate::generated::ipv4::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::plane::{Answer, Explanation, LongestPrefix, Looked};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// What a network says about its plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Whether it forwards packets from and to addresses that no host can have (RFC 1812 §5.3.7).
    pub forward_martians: bool,
}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Ipv4;
    const NOTHING: Checked = Checked::EMPTY;
    type Match = LongestPrefix;
    type Key = u32;
    type Carried = Checked;
    type Settings = Settings;

    fn samples() -> Vec<Settings> {
        [false, true].map(|forward_martians| Settings { forward_martians }).to_vec()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Ipv4(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        Ok(check(frame)?.with_martians(settings.forward_martians))
    }

    #[inline(always)]
    fn plain(frame: &[u8]) -> Option<Checked> {
        check_plain(frame)
    }

    #[inline(always)]
    fn key(checked: Checked) -> u32 {
        checked.key
    }

    fn flow(frame: &[u8]) -> u32 {
        toeplitz::ipv4(frame.get(ethernet::HEADER_BYTES..).unwrap_or_default())
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        decide(checked, answer.hop).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        finish(frame, checked, answer.hop).into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, settings, look)
    }
}

/// The properties of a packet with a valid header that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Destination address: the lookup key.
    pub key: u32,
    /// At least the header's length: never 0.
    total_bytes: u16,
    flags: u16,
}

/// Bytes of a frame up to the options.
const PLAIN_BYTES: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES;
/// 224.0.0.0, the first multicast address; all group and reserved addresses are at or above it.
const GROUP_KEY_MIN: u32 = 0xe000_0000;

/// Whether an address can belong to a host: it is not in 0.0.0.0/8 ("this network"), 127.0.0.0/8 (loopback) or
/// 224.0.0.0/3 (multicast, reserved, limited broadcast). Source: RFC 1812 §4.2.2.11, §5.3.7.
#[inline(always)]
const fn is_host(address: u32) -> bool {
    // One comparison for 0.0.0.0/8 and 224.0.0.0/3: addresses below 1.0.0.0 wrap around.
    (address.wrapping_sub(1 << 24) < GROUP_KEY_MIN - (1 << 24)) & (address >> 24 != 127)
}

impl Checked {
    /// Filler for arrays.
    pub const EMPTY: Self = Self { key: 0, total_bytes: ipv4::HEADER_BYTES as u16, flags: 0 };
    /// The destination is limited broadcast or multicast.
    const GROUP: u16 = 1;
    /// TTL 0 or 1.
    const EXPIRES: u16 = 2;
    /// The header is longer than its fixed part.
    const OPTIONS: u16 = 4;
    /// The frame's destination MAC address is a group address.
    const L2_GROUP: u16 = 8;
    /// The source address cannot belong to a host.
    const MARTIAN_SOURCE: u16 = 16;
    /// The destination can belong neither to a host nor to a group.
    const MARTIAN_DESTINATION: u16 = 32;

    #[inline(always)]
    fn new(header: &ipv4::Header, flags: u16) -> Self {
        let key = header.destination.get();
        let group = u16::from(key >> 28 == 0xe) | u16::from(key == u32::MAX);
        let expires = u16::from(header.ttl < 2);
        let source = u16::from(!is_host(header.source.get()));
        let destination = u16::from(!is_host(key) & (group == 0));
        let flags = flags
            | (group * Self::GROUP)
            | (expires * Self::EXPIRES)
            | (source * Self::MARTIAN_SOURCE)
            | (destination * Self::MARTIAN_DESTINATION);
        Self { key, total_bytes: header.total_length.get(), flags }
    }

    /// The same packet in a network that forwards between addresses that cannot belong to a host
    /// (`forward_martians`).
    #[inline(always)]
    #[must_use]
    pub fn with_martians(mut self, forward_martians: bool) -> Self {
        if forward_martians {
            self.flags &= !(Self::MARTIAN_SOURCE | Self::MARTIAN_DESTINATION);
        }
        self
    }
}

/// The checks that need no table: Ethernet and IPv4 header.
///
/// # Errors
/// The packet's outcome, if it is decided here. Ports do not admit frames below 14 bytes; here they count as
/// `ethertype`.
#[inline(always)]
pub fn check(frame: &[u8]) -> Result<Checked, Outcome> {
    match check_plain(frame) {
        Some(checked) => Ok(checked),
        None => check_rest(frame),
    }
}

/// The common case in few instructions: a valid IPv4 header without options, of a unicast packet in a unicast frame
/// that does not expire, between addresses that can belong to a host. `None` means that [`check`] must decide.
#[inline(always)]
#[must_use]
pub fn check_plain(frame: &[u8]) -> Option<Checked> {
    let head = frame.first_chunk::<PLAIN_BYTES>()?;
    let (ethernet, packet) = head.split_first_chunk::<{ ethernet::HEADER_BYTES }>()?;
    let header = ipv4::Words::of(packet.first_chunk()?);
    let ethertype = u16::from_be_bytes([ethernet[12], ethernet[13]]);
    let total_bytes = header.total_length();
    let (key, source) = (header.destination(), header.source());
    let spare_bytes = frame.len() - PLAIN_BYTES;
    // One comparison for both bounds: a length below the header's length wraps around.
    let plain = ethertype == ethernet::EtherType::IPV4.0
        && header.version_ihl() == ipv4::VERSION_IHL_PLAIN
        && usize::from(total_bytes).wrapping_sub(ipv4::HEADER_BYTES) <= spare_bytes
        && header.ttl() > 1
        && (ethernet[0] & 1 == 0) & is_host(key) & is_host(source) & header.checksum_ok();
    plain.then_some(Checked { key, total_bytes, flags: 0 })
}

/// [`check`] in the order of the specification.
#[cold]
fn check_rest(frame: &[u8]) -> Result<Checked, Outcome> {
    let Some((ethernet, present)) = ethernet::Header::over(frame) else { return Err(Outcome::Ethertype) };
    match ethernet.ethertype() {
        ethernet::EtherType::IPV4 => {}
        ethernet::EtherType::ARP => return Err(Outcome::Arp),
        _ => return Err(Outcome::Ethertype),
    }
    let Some((header, _)) = ipv4::Header::over(present) else { return Err(Outcome::Truncated) };
    if header.version() != 4 {
        return Err(Outcome::Version);
    }
    let header_bytes = header.header_bytes();
    if header_bytes < ipv4::HEADER_BYTES || header_bytes > present.len() {
        return Err(Outcome::HeaderLength);
    }
    let total_bytes = header.total_length.get();
    if usize::from(total_bytes) < header_bytes || usize::from(total_bytes) > present.len() {
        return Err(Outcome::TotalLength);
    }
    let plain = header_bytes == ipv4::HEADER_BYTES;
    let l2_group = ethernet.destination().is_multicast();
    if !(if plain { ipv4::verify(header) } else { ipv4::verify_bytes(&present[..header_bytes]) }) {
        return Err(Outcome::Checksum);
    }
    let flags = (u16::from(!plain) * Checked::OPTIONS) | (u16::from(l2_group) * Checked::L2_GROUP);
    Ok(Checked::new(header, flags))
}

/// Outcome of a valid packet whose longest matching prefix names `hop` ([`Adjacency::NONE`] without a match).
#[inline(always)]
#[must_use]
pub fn decide(checked: Checked, hop: &Adjacency) -> Outcome {
    // Rows that do not forward have an MTU of 0, and any flag is greater than any length, so one comparison covers
    // all three.
    if u32::from(checked.flags) << 16 | u32::from(checked.total_bytes) <= u32::from(hop.mtu_bytes()) {
        return Outcome::Forward;
    }
    decide_rest(checked, hop)
}

/// [`decide`] in the order of the specification; the branch in `decide` only shortens the common case.
#[cold]
fn decide_rest(checked: Checked, hop: &Adjacency) -> Outcome {
    let kind = hop.kind();
    if checked.flags & Checked::GROUP != 0 || kind == AdjacencyKind::Local {
        Outcome::Local
    } else if checked.flags & Checked::L2_GROUP != 0 {
        Outcome::L2Group
    } else if checked.flags & Checked::MARTIAN_SOURCE != 0 {
        Outcome::MartianSource
    } else if checked.flags & Checked::MARTIAN_DESTINATION != 0 {
        Outcome::MartianDestination
    } else if checked.flags & Checked::EXPIRES != 0 {
        Outcome::Ttl
    } else if checked.flags & Checked::OPTIONS != 0 {
        Outcome::Options
    } else if kind == AdjacencyKind::None {
        Outcome::NoRoute
    } else if kind == AdjacencyKind::Glean {
        Outcome::NoNeighbour
    } else if checked.total_bytes > hop.mtu_bytes() {
        Outcome::Mtu
    } else {
        Outcome::Forward
    }
}

/// Decides, and rewrites the frame if it is forwarded; otherwise leaves it unchanged.
///
/// `checked` must be the result of this frame.
#[inline(always)]
pub fn finish(frame: &mut [u8], checked: Checked, hop: &Adjacency) -> Outcome {
    let outcome = decide(checked, hop);
    if outcome == Outcome::Forward
        && let Some((ethernet, packet)) = ethernet::Header::over_mut(frame)
        && let Some((header, _)) = ipv4::Header::over_mut(packet)
    {
        ethernet::rewrite_macs(ethernet, hop.macs());
        header.decrement_ttl();
    }
    outcome
}
