//! Packets with flat labels (ADR 0070): a header of eight bytes, the labels of destination and source, those of a source
//! route, and the payload. They follow an Ethernet header with EtherType [`ETHERTYPE`].
//!
//! Units: bytes on the wire, bits where a name says so. A [`Label`] is left-aligned: shorter ones are the highest bits of 128.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ethernet::EtherType;

/// EtherType of the packets: IEEE 802 local experimental EtherType 1 (IEEE 802 §9.2.4).
pub const ETHERTYPE: EtherType = EtherType(0x88b5);
/// Length of the header without labels, bytes.
pub const HEADER_BYTES: usize = 8;
/// The version, in the high bits of the first byte.
pub const VERSION: u8 = 1;
/// Flag: between neighbours, never forwarded.
pub const FLAG_LINK: u8 = 0x01;
/// Flag: for the router that has the closest label, if nobody has the destination's.
pub const FLAG_CLOSEST: u8 = 0x02;
/// Most labels of a source route: with the longest labels, all of a packet's labels are in the first 128 bytes of its frame.
pub const ROUTE_MAX: usize = 4;
/// Shortest label, bytes.
pub const LABEL_BYTES_MIN: usize = 4;
/// Longest label, bytes.
pub const LABEL_BYTES_MAX: usize = 16;

/// A label: a place in the circular name space, left-aligned.
pub type Label = u128;

/// The header.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// [`VERSION`], then flags: [`FLAG_LINK`], [`FLAG_CLOSEST`]; the others are sent as 0 and ignored on receipt.
    pub version_flags: u8,
    /// Length of each label.
    pub label_bytes: u8,
    /// How many routers may still forward the packet, the next one included, plus one.
    pub budget: u8,
    /// How many labels the source route has, at most [`ROUTE_MAX`].
    pub route: u8,
    /// EtherType of the payload, most significant byte first.
    pub payload_type: [u8; 2],
    /// Length of the payload, most significant byte first: Ethernet padding is no part of it.
    pub payload_bytes: [u8; 2],
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// The header at the beginning of an Ethernet payload, and what follows it.
    #[must_use]
    #[inline(always)]
    pub fn over(bytes: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(bytes).ok()
    }

    /// The version.
    #[must_use]
    #[inline(always)]
    pub const fn version(&self) -> u8 {
        self.version_flags >> 4
    }

    /// Whether a flag is set.
    #[must_use]
    #[inline(always)]
    pub const fn has(&self, flag: u8) -> bool {
        self.version_flags & flag != 0
    }

    /// Length of the header with all labels, bytes.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(&self) -> usize {
        HEADER_BYTES + (2 + self.route as usize) * self.label_bytes as usize
    }

    /// Length of the payload, bytes.
    #[must_use]
    #[inline(always)]
    pub const fn payload_bytes(&self) -> usize {
        u16::from_be_bytes(self.payload_bytes) as usize
    }
}

/// A sound packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// [`FLAG_LINK`] and [`FLAG_CLOSEST`], as they are set.
    pub flags: u8,
    /// Length of its labels, bytes.
    pub label_bytes: usize,
    /// See [`Header::budget`].
    pub budget: u8,
    /// The destination.
    pub destination: Label,
    /// The sender.
    pub source: Label,
    /// The source route, of [`Packet::route_len`] labels; 0 behind them.
    pub route: [Label; ROUTE_MAX],
    /// How many labels the source route has; more than [`ROUTE_MAX`] count as that.
    pub route_len: usize,
    /// EtherType of the payload.
    pub payload_type: u16,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the payload of an Ethernet frame with [`ETHERTYPE`]; padding is ignored.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, labels) = Header::over(bytes)?;
        let size = usize::from(header.label_bytes);
        let route_len = usize::from(header.route);
        let sound = header.version() == VERSION
            && (LABEL_BYTES_MIN..=LABEL_BYTES_MAX).contains(&size)
            && route_len <= ROUTE_MAX;
        let payload = bytes.get(header.bytes()..)?.get(..header.payload_bytes()).filter(|_| sound)?;
        let at = |place: usize| label(labels.get(place * size..)?, size);
        let mut route = [0; ROUTE_MAX];
        for (place, one) in route.iter_mut().enumerate().take(route_len) {
            *one = at(2 + place)?;
        }
        Some(Self {
            flags: header.version_flags & (FLAG_LINK | FLAG_CLOSEST),
            label_bytes: size,
            budget: header.budget,
            destination: at(0)?,
            source: at(1)?,
            route,
            route_len,
            payload_type: u16::from_be_bytes(header.payload_type),
            payload,
        })
    }

    /// Length on the wire behind the Ethernet header, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + (2 + self.route_len.min(ROUTE_MAX)) * self.label_bytes + self.payload.len()
    }

    /// Writes the packet to the beginning of `out`, and returns its length; `None` if it does not fit there, its payload
    /// exceeds 65,535 bytes, or labels cannot have its length.
    #[must_use]
    pub fn write(&self, out: &mut [u8]) -> Option<usize> {
        let size = self.label_bytes;
        let payload_bytes = u16::try_from(self.payload.len()).ok()?;
        if !(LABEL_BYTES_MIN..=LABEL_BYTES_MAX).contains(&size) {
            return None;
        }
        let out = out.get_mut(..self.bytes())?;
        let route = self.route.get(..self.route_len.min(ROUTE_MAX))?;
        let header = Header {
            version_flags: VERSION << 4 | self.flags,
            label_bytes: size as u8,
            budget: self.budget,
            route: route.len() as u8,
            payload_type: self.payload_type.to_be_bytes(),
            payload_bytes: payload_bytes.to_be_bytes(),
        };
        let (head, rest) = out.split_at_mut_checked(HEADER_BYTES)?;
        head.copy_from_slice(header.as_bytes());
        let (labels, payload) = rest.split_at_mut_checked((2 + route.len()) * size)?;
        let all = [self.destination, self.source];
        for (place, label) in labels.chunks_exact_mut(size).zip(all.iter().chain(route)) {
            place.copy_from_slice(label.to_be_bytes().get(..size)?);
        }
        payload.copy_from_slice(self.payload);
        Some(out.len())
    }
}

/// The label at the beginning of some bytes, of `size` bytes, at most [`LABEL_BYTES_MAX`].
#[must_use]
#[inline(always)]
pub fn label(bytes: &[u8], size: usize) -> Option<Label> {
    if let (LABEL_BYTES_MAX, Some(whole)) = (size, bytes.first_chunk()) {
        return Some(Label::from_be_bytes(*whole));
    }
    let mut all = [0; LABEL_BYTES_MAX];
    all.get_mut(..size)?.copy_from_slice(bytes.get(..size)?);
    Some(Label::from_be_bytes(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        for (size, route_len) in [(4, 0), (7, 1), (16, 4)] {
            let mask = Label::MAX << (128 - 8 * size);
            let mut route = [0; ROUTE_MAX];
            route.iter_mut().zip(1_u128..).take(route_len).for_each(|(one, n)| *one = (n << 97 | n) & mask);
            let packet = Packet {
                flags: FLAG_CLOSEST,
                label_bytes: size,
                budget: 9,
                destination: (0xfedc << 112 | 7) & mask,
                source: (0x0123 << 100) & mask,
                route,
                route_len,
                payload_type: 0x0800,
                payload: &[1, 2, 3],
            };
            let mut out = [0xff; 128];
            let len = packet.write(&mut out).unwrap();
            assert_eq!(len, 8 + (2 + route_len) * size + 3);
            assert_eq!(out[len], 0xff, "nothing behind it");
            assert_eq!(Packet::parse(&out), Some(packet), "padding is ignored");
            assert_eq!(Packet::parse(&out[..len - 1]), None);
            assert_eq!(packet.write(&mut out[..len - 1]), None);
        }
    }

    #[test]
    fn unsound_packets_are_refused() {
        let sound = [0x10, 4, 9, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let read = Packet::parse(&sound).unwrap();
        assert_eq!((read.destination, read.source), (0x0102_0304 << 96, 0x0506_0708 << 96));
        for (at, value) in [(0, 0x20), (1, 3), (1, 17), (3, 5), (3, 1), (7, 1)] {
            let mut wrong = sound;
            wrong[at] = value;
            assert_eq!(Packet::parse(&wrong), None, "byte {at}: {value}");
        }
        assert_eq!(Packet { label_bytes: 3, ..read }.write(&mut [0; 99]), None);
    }
}
