//! The `l2` kind: a learning Ethernet switch.
//!
//! Flow: demux → meter → [`check`] → table lookup of both addresses → [`decide`] → ports. The table belongs to the substrate,
//! which enters what frames teach: the sender's address, at the port of arrival. Outcomes and their order:
//! `spec/kinds/l2.toml`. Source: ADR 0050, IEEE 802.1Q §8.6 to §8.8. No frame is edited.

mod explain;

use hue_tables::MacKey;
use hue_wire::{Mac, ethernet};
use serde::{Deserialize, Serialize};

pub use crate::adjacency::{Adjacency, AdjacencyKind};
use crate::generated::Kind;
pub use crate::generated::l2::{
    AGEING_SECONDS, FAMILIES, KEYS, MACS_MAX, MTU_BYTES_MAX, MTU_BYTES_MIN, NEXT_HOPS_MAX, Outcome,
};
use crate::meter::RateLimit;
use crate::plane::{Answer, Exact, Explanation, Learning, Looked};
use crate::reason::Reason;

/// The plane of this kind.
pub struct Plane;

/// Width of a key, bits.
const KEY_BITS: u32 = u8::BITS * size_of::<Mac>() as u32;

/// What a network says about its plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Most addresses that it learns: one of [`MACS_MAX`].
    pub macs_max: u16,
    /// Seconds for which a learnt address is kept after the last frame from it: one of [`AGEING_SECONDS`].
    pub ageing_s: u32,
    /// Whether a learnt address stays at its port until it ages out.
    pub sticky: bool,
    /// Limit on frames that are sent to all ports.
    pub storm_limit: Option<RateLimit>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            macs_max: MACS_MAX.default,
            ageing_s: AGEING_SECONDS.default,
            sticky: false,
            storm_limit: None,
        }
    }
}

impl crate::Plane for Plane {
    const KIND: Kind = Kind::L2;
    const NOTHING: Checked = Checked { key: 0, source: 0, payload_bytes: 0, sticky: false };
    type Key = MacKey;
    type Carried = Checked;
    type Settings = Settings;
    type Match = Exact;

    fn samples() -> Vec<Settings> {
        [false, true].map(|sticky| Settings { sticky, ..Settings::default() }).to_vec()
    }

    #[inline(always)]
    fn settings(of: &crate::Settings) -> Settings {
        match of {
            crate::Settings::L2(settings) => *settings,
            _ => Settings::default(),
        }
    }

    #[inline(always)]
    fn front(frame: &[u8], settings: Settings) -> Result<Checked, Reason> {
        Ok(check(frame, settings)?)
    }

    #[inline(always)]
    fn key(checked: Checked) -> MacKey {
        checked.key
    }

    #[inline(always)]
    fn source(checked: Checked) -> Option<MacKey> {
        Some(checked.source)
    }

    #[inline(always)]
    fn teaches(outcome: Reason) -> bool {
        outcome != Reason::from(Outcome::WrongPort)
    }

    fn learning(settings: Settings) -> Option<Learning> {
        Some(Learning {
            entries_max: usize::from(settings.macs_max),
            ageing_ns: u64::from(settings.ageing_s) * 1_000_000_000,
            storm_limit: settings.storm_limit,
        })
    }

    #[inline(always)]
    fn decide(checked: Checked, answer: Answer<'_>) -> Reason {
        decide(checked, answer).into()
    }

    #[inline(always)]
    fn back(_: &mut [u8], checked: Checked, answer: Answer<'_>) -> Reason {
        decide(checked, answer).into()
    }

    fn explain(frame: &[u8], settings: Settings, look: impl FnOnce(Checked) -> Looked) -> Explanation {
        explain::explain(frame, settings, look)
    }
}

/// The properties of a frame with valid addresses that the second half needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Destination address.
    pub key: MacKey,
    /// Source address.
    pub source: MacKey,
    /// Bytes behind the header and the first VLAN tag.
    payload_bytes: u32,
    sticky: bool,
}

/// The first address that no switch forwards, and how many bits of it all have in common.
const RESERVED: (MacKey, u32) = (0x0180_c200_0000, 44);

/// The checks that need no table.
///
/// # Errors
/// The frame's outcome, if it is decided here. Ports do not admit frames below 14 bytes; here they count as `bad_source`.
#[inline(always)]
pub fn check(frame: &[u8], settings: Settings) -> Result<Checked, Outcome> {
    let Some((header, payload)) = ethernet::Header::over(frame) else { return Err(Outcome::BadSource) };
    let (key, source) = (header.destination().to_u64(), header.source().to_u64());
    if is_group(source) || source == 0 {
        return Err(Outcome::BadSource);
    }
    if key == 0 {
        return Err(Outcome::BadDestination);
    }
    let (reserved, bits) = RESERVED;
    if key >> (KEY_BITS - bits) == reserved >> (KEY_BITS - bits) {
        return Err(Outcome::Reserved);
    }
    let tagged = matches!(header.ethertype().0, 0x8100 | 0x88a8);
    let payload_bytes = (payload.len() as u32).saturating_sub(if tagged { 4 } else { 0 });
    Ok(Checked { key, source, payload_bytes, sticky: settings.sticky })
}

/// Outcome of a frame with valid addresses, but for the storm limit, which is the substrate's.
#[inline(always)]
#[must_use]
pub fn decide(checked: Checked, answer: Answer<'_>) -> Outcome {
    let Answer { hop, arrival, source, .. } = answer;
    let may_be_here = source.is_none_or(|source| source.port == arrival.port());
    let goes_on = hop.kind() == AdjacencyKind::Port && hop.port() != arrival.port();
    let fits = checked.payload_bytes <= u32::from(hop.mtu_bytes());
    if goes_on && fits && may_be_here && !is_group(checked.key) {
        return Outcome::Forward;
    }
    decide_rest(checked, answer)
}

/// Whether it is a group address (IEEE 802 §8.2).
#[inline(always)]
const fn is_group(mac: MacKey) -> bool {
    mac >> (KEY_BITS - 8) & 1 != 0
}

/// [`decide`] in the order of the specification; the branch in `decide` only shortens the common case.
#[cold]
fn decide_rest(checked: Checked, answer: Answer<'_>) -> Outcome {
    let Answer { hop, arrival, source, .. } = answer;
    if let Some(source) = source
        && source.port != arrival.port()
        && (source.fixed || checked.sticky)
    {
        return Outcome::WrongPort;
    }
    let known = hop.kind() == AdjacencyKind::Port && !is_group(checked.key);
    let egress = if known { hop } else { arrival };
    if known && hop.port() == arrival.port() {
        Outcome::SamePort
    } else if checked.payload_bytes > u32::from(egress.mtu_bytes()) {
        Outcome::Mtu
    } else if known {
        Outcome::Forward
    } else {
        Outcome::Flood
    }
}
