//! Splicing bits in a host's packets: puts them in, and takes the header with them out again. Bytes in, bytes out.

use std::net::Ipv4Addr;

use hue_planes::splice::{Bits, SHIM_BYTES, SHIM_PROTOCOL, SHIM_VERSION};
use hue_wire::ip::Protocol;
use hue_wire::ipv4::{FLAG_DONT_FRAGMENT, HEADER_BYTES, Header, VERSION_IHL_PLAIN};
use zerocopy::IntoBytes;

/// Protocol number of keepalives, the other one for experiments (RFC 3692 §2.1).
pub const KEEPALIVE_PROTOCOL: u8 = 254;
const TTL: u8 = 64;

/// The IPv4 packet that a packet of the host becomes. It stays as it is if it can have no bits: a fragment, or one with options.
pub fn with_bits(packet: &[u8], place: Bits, bits: u64) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let Some((header, _)) = Header::over_mut(&mut packet) else { return packet };
    if header.is_fragment() || header.version_ihl != VERSION_IHL_PLAIN {
        return packet;
    }
    match place {
        Bits::IpId => {
            header.identification = (bits as u16).into();
            // Only then nobody else needs the identification (RFC 6864).
            header.flags_fragment = (header.flags_fragment.get() | FLAG_DONT_FRAGMENT).into();
            header.fill_checksum_plain();
        }
        Bits::Shim => {
            let next = std::mem::replace(&mut header.protocol, Protocol(SHIM_PROTOCOL));
            let Some(total) = header.total_length.get().checked_add(SHIM_BYTES as u16) else { return packet };
            header.total_length = total.into();
            header.fill_checksum_plain();
            let mut shim = (bits & ((1 << Bits::Shim.width()) - 1)).to_be_bytes();
            (shim[0], shim[1]) = (next.0, SHIM_VERSION << 4);
            packet.splice(HEADER_BYTES..HEADER_BYTES, shim);
        }
    }
    packet
}

/// A keepalive as a packet, without bits yet.
pub fn keepalive(source: Ipv4Addr, destination: Ipv4Addr, content: &[u8]) -> Vec<u8> {
    let total = (HEADER_BYTES + content.len()) as u16;
    let header = Header::new(source, destination, Protocol(KEEPALIVE_PROTOCOL), TTL, total);
    [header.as_bytes(), content].concat()
}

/// The packet in one with the header for splicing bits, without that; `None` if there is no sound one.
pub fn without_shim(packet: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = Header::over(packet)?;
    let (shim, _) = rest.split_first_chunk::<SHIM_BYTES>()?;
    let total = usize::from(header.total_length.get());
    let is_sound = header.version_ihl == VERSION_IHL_PLAIN
        && header.protocol.0 == SHIM_PROTOCOL
        && !header.is_fragment()
        && shim[1] >> 4 == SHIM_VERSION
        && (HEADER_BYTES + SHIM_BYTES..=packet.len()).contains(&total);
    if !is_sound {
        return None;
    }
    let mut inner = *header;
    inner.protocol = Protocol(shim[0]);
    inner.total_length = ((total - SHIM_BYTES) as u16).into();
    inner.fill_checksum_plain();
    Some([inner.as_bytes(), packet.get(HEADER_BYTES + SHIM_BYTES..total)?].concat())
}

/// Source, protocol and content of a packet without options.
pub fn content(packet: &[u8]) -> Option<(Ipv4Addr, u8, &[u8])> {
    let (header, rest) = Header::over(packet)?;
    let total = usize::from(header.total_length.get());
    let bytes = rest.get(..total.checked_sub(HEADER_BYTES)?)?;
    (header.version_ihl == VERSION_IHL_PLAIN).then_some((header.source(), header.protocol.0, bytes))
}

#[cfg(test)]
mod tests {
    use hue_planes::Plane as _;
    use hue_planes::splice::{Plane, Settings};
    use hue_wire::checksum;

    use super::*;

    fn sample() -> Vec<u8> {
        keepalive(Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 2, 0, 2), b"content!")
    }

    /// The slice in which a router looks the packet up.
    fn slice(packet: &[u8], bits: Bits) -> u8 {
        let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0][..], packet].concat();
        let settings = Settings { slices: 4, bits, forward_martians: false };
        (Plane::key(Plane::front(&frame, settings).unwrap()) >> 120) as u8
    }

    #[test]
    fn a_router_finds_the_bits() {
        for place in Bits::ALL {
            for bits in [0u64, 1, 2, 3] {
                let packet = with_bits(&sample(), place, bits);
                assert!(checksum::verify(&packet[..20]));
                assert_eq!(u64::from(slice(&packet, place)), bits);
            }
        }
    }

    #[test]
    fn the_other_end_gets_the_packet_that_was_sent() {
        let packet = with_bits(&sample(), Bits::Shim, 0x1234_5678_9abc);
        assert_eq!(without_shim(&packet), Some(sample()));
        // Padding of the link is no part of the packet.
        assert_eq!(without_shim(&[&packet[..], &[0; 6]].concat()), Some(sample()));
        for (at, value) in [(0, 0x46), (9, 17), (21, 0x20), (6, 0x20), (3, 27), (3, 37)] {
            let mut bad = packet.clone();
            bad[at] = value;
            assert_eq!(without_shim(&bad), None, "{at}");
        }
        assert_eq!(content(&sample()), Some((Ipv4Addr::new(10, 1, 0, 2), 254, &b"content!"[..])));
    }

    #[test]
    fn what_can_have_no_bits_stays() {
        for place in Bits::ALL {
            let mut fragment = sample();
            fragment[6] = 0x20;
            assert_eq!(with_bits(&fragment, place, 3), fragment);
            let mut options = sample();
            options[0] = 0x46;
            assert_eq!(with_bits(&options, place, 3), options);
            assert_eq!(with_bits(&[1, 2, 3], place, 3), [1, 2, 3]);
        }
    }
}
