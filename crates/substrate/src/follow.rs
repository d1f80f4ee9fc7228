//! Following the frames of one network while it moves: keys that identify frames, and how each frame ended.
//!
//! Flow: the card's thread sets the followed network ([`Followed`]) → a worker that ends a frame of that network tells
//! the card's thread how ([`Ending`], in a [`super::handover::Record`]) → the card's witness, which saw the frame arrive,
//! removes it from its list. The key of a frame covers what forwarding does not change (RFC 1812 §5.2.1: all but TTL and
//! checksum of the IPv4 header, and the MAC addresses; RFC 8200 §3: all but the hop limit), nor the kind changes ([`Plane::edited`]); identical frames cannot be
//! told apart, except those from before the following began: their time of arrival is earlier, which copies keep.
//! Nothing is followed, and no frame is hashed, unless a network moves.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hue_planes::{Kind, Loss, Plane, Reason, with_plane};
use hue_ports::SharedMemory;
use hue_tables::Vid;
use hue_wire::ethernet::EtherType;

/// Ethernet and the shortest IPv4 header.
const HEADERS_BYTES: usize = 14 + 20;
const IPV6_BYTES: usize = 40;
/// No network: 0 is not a VID.
const NOBODY: u32 = 0;

/// Identifies a frame anywhere on its path, and the flow within which frames keep their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameKey {
    /// The frame.
    pub frame: u64,
    /// Its flow.
    pub flow: u64,
}

impl FrameKey {
    /// The key of a frame of a network of this kind.
    #[must_use]
    pub fn of(kind: Kind, bytes: &[u8]) -> Self {
        let edited = with_plane!(kind, P => P::edited(bytes));
        Self::of_ipv4(bytes, &edited).or_else(|| Self::of_ipv6(bytes, &edited)).unwrap_or_else(|| {
            let (header, _) = bytes.split_at(bytes.len().min(14));
            Self { frame: hash_but(bytes, &edited), flow: hash(&[header]) }
        })
    }

    /// The flow of a frame, which does not depend on the kind.
    #[must_use]
    pub fn flow_of(bytes: &[u8]) -> u64 {
        Self::of(Kind::Ipv4, bytes).flow
    }

    fn of_ipv4(bytes: &[u8], edited: &[Range<usize>; 2]) -> Option<Self> {
        if bytes.len() < HEADERS_BYTES || bytes.get(12..14)? != EtherType::IPV4.0.to_be_bytes() {
            return None;
        }
        let packet = bytes.get(14..)?;
        let total = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
        // Padding may change on the path.
        let packet = packet.get(..total).filter(|packet| packet.len() >= 20).unwrap_or(packet);
        let [first, second] = edited.clone();
        let frame = hash_but(bytes.get(..14 + packet.len())?, &[0..14, 22..23, 24..26, first, second]);
        // Fragments have no ports: those of one protocol between two addresses form one flow.
        let whole = packet.get(6..8)?.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte)) & 0x3fff == 0;
        let header = usize::from(packet.first()? & 0xf) * 4;
        let ports = match whole && matches!(packet.get(9), Some(6 | 17)) {
            true => packet.get(header..header + 4).unwrap_or_default(),
            false => &[],
        };
        Some(Self { frame, flow: hash(&[packet.get(9..10)?, packet.get(12..20)?, ports]) })
    }

    fn of_ipv6(bytes: &[u8], edited: &[Range<usize>; 2]) -> Option<Self> {
        if bytes.get(12..14)? != EtherType::IPV6.0.to_be_bytes() {
            return None;
        }
        let packet = bytes.get(14..)?;
        let payload = usize::from(u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?));
        // Padding may change on the path. A jumbogram has payload 0.
        let whole = packet.get(..IPV6_BYTES + payload).filter(|_| payload > 0);
        let packet = whole.unwrap_or(packet);
        let addresses = packet.get(8..IPV6_BYTES)?;
        // Packets with extension headers have no ports here: those between two addresses form one flow.
        let ports = match packet.get(6) {
            Some(6 | 17) => packet.get(IPV6_BYTES..IPV6_BYTES + 4).unwrap_or_default(),
            _ => &[],
        };
        let [first, second] = edited.clone();
        let frame = hash_but(bytes.get(..14 + packet.len())?, &[0..14, 21..22, first, second]);
        Some(Self { frame, flow: hash(&[packet.get(6..7)?, addresses, ports]) })
    }
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// The hash of all bytes but those in the ranges.
fn hash_but(bytes: &[u8], ranges: &[Range<usize>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut at = 0;
    while at < bytes.len() {
        // The range that this byte is in, or else the next one.
        match ranges.iter().find(|range| range.contains(&at)) {
            Some(range) => at = range.end,
            None => {
                let later = ranges.iter().filter(|range| !range.is_empty() && range.start > at);
                let end = later.map(|range| range.start).min().unwrap_or(bytes.len()).min(bytes.len());
                hasher.write(bytes.get(at..end).unwrap_or_default());
                at = end;
            }
        }
    }
    hasher.finish()
}

/// How a frame ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It left through a port that the card's thread does not observe.
    Left,
    /// It has not ended: it goes to this many ports, and each copy ends by itself.
    Copied(u16),
    /// It went to the network's namespace.
    Punted(Reason),
    /// The plane dropped it.
    Dropped(Reason),
    /// One of the network's rules dropped it ([`Loss::is_rule`]).
    Refused(Loss),
    /// It was lost for lack of room.
    Lost(Loss),
}

impl Ending {
    /// The ending of a frame that was lost for this reason.
    #[must_use]
    pub const fn of_loss(loss: Loss) -> Self {
        if loss.is_rule() { Self::Refused(loss) } else { Self::Lost(loss) }
    }

    /// Encodes the ending as a number, for a record: what ended it in the upper 2 bits, then 9 bits for the id of the
    /// plane's kind, and 5 for the code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Left => 0,
            Self::Copied(count) => {
                LEFT << WHAT_AT | if count < 1 << WHAT_AT { count } else { (1 << WHAT_AT) - 1 }
            }
            Self::Dropped(reason) => DROPPED << WHAT_AT | of_reason(reason),
            Self::Refused(loss) | Self::Lost(loss) => LOST << WHAT_AT | loss.code() as u16,
            Self::Punted(reason) => PUNTED << WHAT_AT | of_reason(reason),
        }
    }

    /// Decodes such a number.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        let low = (code % (1 << KIND_AT)) as u8;
        let id = u8::try_from((code >> KIND_AT) % (1 << (WHAT_AT - KIND_AT))).ok()?;
        let reason = || Reason::new(Kind::from_id(id)?, low);
        match code >> WHAT_AT {
            DROPPED => Some(Self::Dropped(reason()?)),
            LOST if id == 0 => Some(Self::of_loss(Loss::from_code(low)?)),
            PUNTED => Some(Self::Punted(reason()?)),
            LEFT if code == 0 => Some(Self::Left),
            LEFT => Some(Self::Copied(code)),
            _ => None,
        }
    }
}

const KIND_AT: u32 = 5;
const WHAT_AT: u32 = 14;
const LEFT: u16 = 0;
const DROPPED: u16 = 1;
const LOST: u16 = 2;
const PUNTED: u16 = 3;

const fn of_reason(reason: Reason) -> u16 {
    (reason.kind() as u16) << KIND_AT | reason.code() as u16
}

/// The network whose frames are followed, and since when. One thread sets it, another reads it. A worker that takes a frame
/// that was handed over after the setting sees the new values.
#[derive(Clone, Debug)]
pub struct Followed {
    memory: Arc<SharedMemory>,
    at: usize,
}

impl Followed {
    /// The one at this place of a memory: 16 bytes.
    pub(crate) fn new(memory: &Arc<SharedMemory>, at: usize) -> Self {
        Self { memory: Arc::clone(memory), at }
    }

    fn since_ns(&self) -> &AtomicU64 {
        self.memory.long(self.at)
    }

    /// The network's VID, and how many endings could not be reported.
    fn vid_and_untold(&self) -> &[AtomicU32; 2] {
        self.memory.words(self.at + 8)
    }

    /// Follows the frames of this network that arrive from this time on, in nanoseconds; `None` ends this.
    pub fn set(&self, following: Option<(Vid, u64)>) {
        let [vid, untold] = self.vid_and_untold();
        untold.store(0, Ordering::Relaxed);
        self.since_ns().store(following.map_or(0, |(_, since_ns)| since_ns), Ordering::Relaxed);
        vid.store(following.map_or(NOBODY, |(vid, _)| vid.get().into()), Ordering::Release);
    }

    /// The network whose frames are followed, and the time from which they are.
    #[must_use]
    #[inline]
    pub fn get(&self) -> Option<(Vid, u64)> {
        let [vid, _] = self.vid_and_untold();
        let vid = Vid::new(u16::try_from(vid.load(Ordering::Acquire)).ok()?)?;
        Some((vid, self.since_ns().load(Ordering::Relaxed)))
    }

    /// Counts a frame whose ending could not be reported for lack of room.
    pub fn count_untold(&self) {
        let [_, untold] = self.vid_and_untold();
        untold.fetch_add(1, Ordering::Relaxed);
    }

    /// Frames whose ending was not reported, since the latest [`Followed::set`].
    #[must_use]
    pub fn untold(&self) -> u32 {
        let [_, untold] = self.vid_and_untold();
        untold.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ttl: u8, checksum: u8, id: u16, dst: u8, pad: usize) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, ttl, 2, 0, 0, 0, 0, ttl, 8, 0, 0x45, 0, 0, 32];
        bytes.extend(id.to_be_bytes());
        bytes
            .extend([0, 0, ttl, 17, checksum, checksum, 10, 0, 0, 1, 10, 0, 0, dst, 0, 5, 0, 7, 0, 12, 0, 0]);
        bytes.resize(14 + 32 + pad, 0xee);
        bytes
    }

    #[test]
    fn a_frame_keeps_its_name_on_its_way() {
        let key = FrameKey::of(Kind::Ipv4, &packet(64, 1, 7, 2, 0));
        assert_eq!(key, FrameKey::of(Kind::Ipv4, &packet(63, 2, 7, 2, 14)), "MACs, TTL, checksum, padding");
        let other = FrameKey::of(Kind::Ipv4, &packet(64, 1, 8, 2, 0));
        assert!(other.frame != key.frame && other.flow == key.flow);
        assert_ne!(FrameKey::of(Kind::Ipv4, &packet(64, 1, 7, 3, 0)).flow, key.flow);
        // Frames that are not IPv4, or too short for it, get keys too.
        for bytes in [&[1; 60][..], &[1; 5], &[], &packet(64, 1, 7, 2, 0)[..30]] {
            assert_eq!(FrameKey::of(Kind::Ipv4, bytes), FrameKey::of(Kind::Ipv4, bytes));
            assert_ne!(FrameKey::of(Kind::Ipv4, bytes).frame, key.frame);
        }
        // An impossible total length does not make different frames equal.
        let mut short = packet(64, 1, 7, 2, 0);
        short[17] = 3;
        let mut shorter = short.clone();
        shorter[20] ^= 1;
        assert_ne!(FrameKey::of(Kind::Ipv4, &short).frame, FrameKey::of(Kind::Ipv4, &shorter).frame);
    }

    #[test]
    fn a_frame_that_is_not_ip_has_its_senders_unless_an_entry_may_change_them() {
        let frame = |sender: u8, rest: u8| {
            let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, sender, 0x88, 0xb5, rest];
            bytes.resize(60, 7);
            bytes
        };
        for (kind, differ) in [(Kind::L2, true), (Kind::Extract, false)] {
            let key = |sender, rest| FrameKey::of(kind, &frame(sender, rest));
            assert_eq!(key(1, 5).frame != key(2, 5).frame, differ);
            assert_ne!(key(1, 5).frame, key(1, 6).frame);
            assert!(key(1, 5).flow == key(1, 6).flow && key(1, 5).flow != key(2, 5).flow);
        }
    }

    fn packet6(hop_limit: u8, label: u8, dst: u8, pad: usize) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, hop_limit, 2, 0, 0, 0, 0, hop_limit, 0x86, 0xdd];
        bytes.extend([0x60, 0, 0, label, 0, 8, 17, hop_limit]);
        bytes.extend([0x20; 16]);
        bytes.extend([0x20; 15]);
        bytes.extend([dst, 0, 5, 0, 7, 0, 8, 0, 0]);
        bytes.resize(14 + 48 + pad, 0xee);
        bytes
    }

    #[test]
    fn an_ipv6_frame_keeps_its_name_on_its_way() {
        let key = FrameKey::of(Kind::Ipv4, &packet6(64, 1, 2, 0));
        assert_eq!(key, FrameKey::of(Kind::Ipv4, &packet6(63, 1, 2, 14)), "MACs, hop limit, padding");
        let other = FrameKey::of(Kind::Ipv4, &packet6(64, 2, 2, 0));
        assert!(other.frame != key.frame && other.flow == key.flow);
        assert_ne!(FrameKey::of(Kind::Ipv4, &packet6(64, 1, 3, 0)).flow, key.flow);
        // Each other byte of the packet counts.
        for at in (14..62).filter(|at| *at != 21) {
            let mut changed = packet6(64, 1, 2, 0);
            changed[at] ^= 1;
            assert_ne!(FrameKey::of(Kind::Ipv4, &changed).frame, key.frame, "byte {at}");
        }
        // Any bytes have a key: cut short, with an impossible length, a jumbogram.
        for len in 0..62 {
            assert_ne!(FrameKey::of(Kind::Ipv4, &packet6(64, 1, 2, 0)[..len]).frame, key.frame);
        }
        for length in [[0xff, 0xff], [0, 0]] {
            let mut odd = packet6(64, 1, 2, 0);
            odd[18..20].copy_from_slice(&length);
            let mut odder = odd.clone();
            odder[61] ^= 1;
            assert_ne!(FrameKey::of(Kind::Ipv4, &odd).frame, FrameKey::of(Kind::Ipv4, &odder).frame);
        }
    }

    #[test]
    fn endings_have_codes() {
        let reasons = Kind::ALL.into_iter().flat_map(Reason::all);
        let endings = [Ending::Left, Ending::Copied(2), Ending::Copied(500)]
            .into_iter()
            .chain(reasons.flat_map(|one| [Ending::Dropped(one), Ending::Punted(one)]))
            .chain(Loss::ALL.into_iter().map(Ending::of_loss));
        for ending in endings {
            assert_eq!(Ending::from_code(ending.code()), Some(ending));
        }
        for nonsense in [0x4000, 0x4001, 0x401f, 0x4020, 0x7fff, 0x801f, 0x8021, 0xc000, u16::MAX] {
            assert_eq!(Ending::from_code(nonsense), None);
        }
    }

    #[test]
    fn one_network_or_none_is_followed() {
        let followed = Followed::new(&SharedMemory::new(16).unwrap(), 0);
        let other = followed.clone();
        assert_eq!(other.get(), None);
        let vid = Vid::new(17).unwrap();
        followed.set(Some((vid, 5)));
        assert_eq!((other.get(), other.untold()), (Some((vid, 5)), 0));
        other.count_untold();
        assert_eq!(followed.untold(), 1);
        followed.set(None);
        assert_eq!(followed.untold(), 0);
        assert_eq!(other.get(), None);
    }
}
