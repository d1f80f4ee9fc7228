//! The `ipv6` kind: an IPv6 router.
//!
//! Flow: demux → meter → [`check`] → one table lookup (by the caller, batched over networks) → [`finish`] → port.
//! Outcomes and their order: `spec/kinds/ipv6.toml`. Both halves check the conditions in that order; in the common case
//! every branch falls through. Offsets are bytes from the start of the frame. Source: ADR 0047, RFC 8200 §3,
//! RFC 4291 §2.5 and §2.7.

mod explain;

use hue_wire::{ethernet, ipv6, toeplitz};
use serde::{Deserialize, Serialize};

pub use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::generated::Kind;
pub use crate::generated::ipv6::{FAMILIES, KEYS, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome};
use crate::plane::{Answer, Explanation, LongestPrefix, Looked};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// What a network says about its plane: nothing yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Settings {}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::Ipv6;
    const NOTHING: Checked = Checked::EMPTY;
    type Match = LongestPrefix;
    type Key = u128;
    type Carried = Checked;
    type Settings = Settings;

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::Ipv6(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], _: Settings) -> Result<Checked, Reason> {
        Ok(check(frame)?)
    }

    #[inline(always)]
    fn plain(frame: &[u8]) -> Option<Checked> {
        check_plain(frame)
    }

    #[inline(always)]
    fn key(checked: Checked) -> u128 {
        checked.key
    }

    fn flow(frame: &[u8]) -> u32 {
        toeplitz::ipv6(frame.get(ethernet::HEADER_BYTES..).unwrap_or_default())
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        decide(checked, answer.hop).into()
    }

    #[inline(always)]
    fn back(frame: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        finish(frame, checked, answer.hop).into()
    }

    fn explain(frame: &[u8], _: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, look)
    }
}

/// The properties of a packet with a valid header that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Destination address: the lookup key.
    pub key: u128,
    /// Length of the packet, at least the header's: never 0.
    total_bytes: u32,
    /// Reasons not to forward it, whatever its route. Each is greater than any length.
    flags: u32,
}

/// Bytes of a frame up to the end of the fixed header.
const HEADERS_BYTES: usize = ethernet::HEADER_BYTES + ipv6::HEADER_BYTES;
/// Offsets of the addresses in the header.
const AT_SOURCE: usize = 8;
const AT_DESTINATION: usize = 24;
/// The next header of hop-by-hop options.
const HOP_BY_HOP: u8 = hue_wire::ip::Protocol::HOP_BY_HOP.0;

/// Whether an address is `::` (unspecified) or `::1` (loopback).
#[inline(always)]
const fn is_no_host(address: u128) -> bool {
    address >> 1 == 0
}

/// Whether an address is in ff00::/8.
#[inline(always)]
const fn is_multicast(address: u128) -> bool {
    address >> 120 == 0xff
}

/// Whether an address is in fe80::/10.
#[inline(always)]
const fn is_link_local(address: u128) -> bool {
    address >> 118 == 0xfe80 >> 6
}

impl Checked {
    /// Filler for arrays.
    pub const EMPTY: Self = Self { key: 0, total_bytes: ipv6::HEADER_BYTES as u32, flags: 0 };
    /// The frame's destination MAC address is a group address.
    const L2_GROUP: u32 = 1 << 20;
    /// The source address cannot belong to a host on another link.
    const MARTIAN_SOURCE: u32 = 1 << 21;
    /// Nor can the destination.
    const MARTIAN_DESTINATION: u32 = 1 << 22;
    /// Hop limit 0 or 1.
    const EXPIRES: u32 = 1 << 23;
    /// The source address is link-local.
    const SCOPE: u32 = 1 << 24;
    /// The packet has hop-by-hop options.
    const OPTIONS: u32 = 1 << 25;

    /// Of a packet that may be forwarded.
    #[inline(always)]
    fn new(header: &ipv6::Header, key: u128, l2_group: bool) -> Self {
        let source = header.source.get();
        let flags = (u32::from(l2_group) * Self::L2_GROUP)
            | (u32::from(is_no_host(source) | is_multicast(source)) * Self::MARTIAN_SOURCE)
            | (u32::from(is_no_host(key)) * Self::MARTIAN_DESTINATION)
            | (u32::from(header.hop_limit < 2) * Self::EXPIRES)
            | (u32::from(is_link_local(source)) * Self::SCOPE)
            | (u32::from(header.next_header.0 == HOP_BY_HOP) * Self::OPTIONS);
        let total_bytes = ipv6::HEADER_BYTES as u32 + u32::from(header.payload_length.get());
        Self { key, total_bytes, flags }
    }
}

/// The checks that need no table: Ethernet and IPv6 header.
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

/// Whether an address that begins with this byte is neither in ::/8 nor in fe00::/7: so it can belong to a host, and
/// is not link-local.
#[inline(always)]
const fn is_plain(first: u8) -> bool {
    first.wrapping_sub(1) < 0xfd
}

/// The common case in few instructions: a valid IPv6 header without hop-by-hop options, of a packet in a unicast
/// frame that does not expire, between addresses of which the first byte says that they are ordinary. `None` means
/// that [`check`] must decide.
#[inline(always)]
fn check_plain(frame: &[u8]) -> Option<Checked> {
    let head = frame.first_chunk::<HEADERS_BYTES>()?;
    let (ethernet, packet) = ethernet::Header::over(head)?;
    let (header, _) = ipv6::Header::over(packet)?;
    let payload_bytes = header.payload_length.get();
    let plain = ethernet.ethertype() == ethernet::EtherType::IPV6
        && header.version() == 6
        && usize::from(payload_bytes) <= frame.len() - HEADERS_BYTES
        && header.hop_limit > 1
        && header.next_header.0 != HOP_BY_HOP
        && !ethernet.destination().is_multicast()
        && is_plain(packet[AT_SOURCE])
        && is_plain(packet[AT_DESTINATION]);
    let total_bytes = ipv6::HEADER_BYTES as u32 + u32::from(payload_bytes);
    plain.then(|| Checked { key: header.destination.get(), total_bytes, flags: 0 })
}

/// [`check`] in the order of the specification.
#[cold]
fn check_rest(frame: &[u8]) -> Result<Checked, Outcome> {
    let Some(head) = frame.first_chunk::<HEADERS_BYTES>() else { return Err(check_short(frame)) };
    let Some((ethernet, packet)) = ethernet::Header::over(head) else { return Err(Outcome::Ethertype) };
    if ethernet.ethertype() != ethernet::EtherType::IPV6 {
        return Err(Outcome::Ethertype);
    }
    let Some((header, _)) = ipv6::Header::over(packet) else { return Err(Outcome::Truncated) };
    if header.version() != 6 {
        return Err(Outcome::Version);
    }
    if usize::from(header.payload_length.get()) > frame.len() - HEADERS_BYTES {
        return Err(Outcome::PayloadLength);
    }
    let key = header.destination.get();
    if is_multicast(key) | is_link_local(key) {
        return Err(Outcome::Local);
    }
    Ok(Checked::new(header, key, ethernet.destination().is_multicast()))
}

/// The outcome of a frame that ends within its headers.
#[cold]
fn check_short(frame: &[u8]) -> Outcome {
    match ethernet::Header::over(frame) {
        Some((header, _)) if header.ethertype() == ethernet::EtherType::IPV6 => Outcome::Truncated,
        _ => Outcome::Ethertype,
    }
}

/// Outcome of a valid packet whose longest matching prefix names `hop` ([`Adjacency::NONE`] without a match).
#[inline(always)]
#[must_use]
pub fn decide(checked: Checked, hop: &Adjacency) -> Outcome {
    // Rows that do not forward have an MTU of 0, and any flag is greater than any length, so one comparison covers
    // all three.
    if checked.flags | checked.total_bytes <= u32::from(hop.mtu_bytes()) {
        return Outcome::Forward;
    }
    decide_rest(checked, hop)
}

/// [`decide`] in the order of the specification; the branch in `decide` only shortens the common case.
#[cold]
fn decide_rest(checked: Checked, hop: &Adjacency) -> Outcome {
    let kind = hop.kind();
    if kind == AdjacencyKind::Local {
        Outcome::Local
    } else if checked.flags & Checked::L2_GROUP != 0 {
        Outcome::L2Group
    } else if checked.flags & Checked::MARTIAN_SOURCE != 0 {
        Outcome::MartianSource
    } else if checked.flags & Checked::MARTIAN_DESTINATION != 0 {
        Outcome::MartianDestination
    } else if checked.flags & Checked::EXPIRES != 0 {
        Outcome::HopLimit
    } else if checked.flags & Checked::SCOPE != 0 {
        Outcome::Scope
    } else if checked.flags & Checked::OPTIONS != 0 {
        Outcome::Options
    } else if kind == AdjacencyKind::None {
        Outcome::NoRoute
    } else if kind == AdjacencyKind::Glean {
        Outcome::NoNeighbour
    } else if checked.total_bytes > u32::from(hop.mtu_bytes()) {
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
        && let Some((header, _)) = ipv6::Header::over_mut(packet)
    {
        ethernet::rewrite_macs(ethernet, hop.macs());
        header.decrement_hop_limit();
    }
    outcome
}
