//! The virtual destination address of a frame, and longest-prefix match over the rows that select by it.
//!
//! The rows of a port are flattened into disjoint ranges, stored as sorted first addresses with their target.
//! A lookup is one binary search without unpredictable branches. The set is small and changes only with a new
//! [`Demux`].
//!
//! [`Demux`]: crate::Demux

use hue_tables::Prefix4;
use hue_wire::{ethernet, ip::Protocol, ipv4, udp, vxlan};
use zerocopy::FromBytes;

use crate::types::Target;

/// The address that selects the network of a frame. For a tunnel (IPIP, or VXLAN on UDP port 4789 with an
/// IPv4 frame inside), it is the destination of the inner IPv4 packet; otherwise the frame's own IPv4
/// destination.
///
/// Returns `None` if the frame is not IPv4, ends before that address, or is a tunnel whose inner packet
/// cannot be read: a VXLAN header without a valid VNI, an inner packet that is not IPv4, or an IPIP packet
/// that is not the first fragment. UDP fragments after the first have no port, so they count as plain
/// packets.
#[must_use]
pub fn inner_destination(frame: &[u8]) -> Option<u32> {
    let (outer, payload) = ipv4_of_frame(frame)?;
    let inner = match outer.protocol {
        Protocol::IPV4 if !outer.starts_transport() => return None,
        Protocol::IPV4 => ipv4_of_packet(payload?)?.0,
        Protocol::UDP if outer.starts_transport() => {
            let (datagram, data) = udp_of(payload?)?;
            if datagram.destination.get() != vxlan::PORT {
                return Some(outer.destination.get());
            }
            ipv4_of_frame(vxlan::View::parse(data).ok()?.payload())?.0
        }
        _ => outer,
    };
    Some(inner.destination.get())
}

/// The IPv4 destination of a frame itself, whatever its packet carries; `None` if it is not IPv4 or ends before that address.
/// Of a frame that came out of a tunnel, it is the virtual destination address.
#[must_use]
pub fn own_destination(frame: &[u8]) -> Option<u32> {
    Some(ipv4_of_frame(frame)?.0.destination.get())
}

/// The IPv4 header of a frame, and the bytes after header and options.
fn ipv4_of_frame(frame: &[u8]) -> Option<(&ipv4::Header, Option<&[u8]>)> {
    let (header, packet) = ethernet::Header::over(frame)?;
    if header.ethertype() == ethernet::EtherType::IPV4 { ipv4_of_packet(packet) } else { None }
}

/// The IPv4 header of a packet and the bytes after it. No payload if the header length is invalid.
fn ipv4_of_packet(packet: &[u8]) -> Option<(&ipv4::Header, Option<&[u8]>)> {
    let (header, _) = ipv4::Header::over(packet)?;
    let header_bytes = header.header_bytes();
    let payload = if header_bytes < ipv4::HEADER_BYTES { None } else { packet.get(header_bytes..) };
    (header.version() == 4).then_some((header, payload))
}

/// The UDP header and the bytes after it. The length field is ignored: only the port matters here.
fn udp_of(payload: &[u8]) -> Option<(&udp::Header, &[u8])> {
    udp::Header::ref_from_prefix(payload).ok()
}

/// Longest-prefix match over disjoint ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// First address of each range, ascending. The first range starts at 0 unless there are none.
    starts: Vec<u32>,
    targets: Vec<Option<Target>>,
}

impl Ranges {
    /// Builds the ranges of distinct prefixes.
    pub fn new(rows: &[(Prefix4, Target)]) -> Self {
        let mut sorted = rows.to_vec();
        // Outer prefixes sort before the prefixes inside them.
        sorted.sort_by_key(|(prefix, _)| (prefix.addr(), prefix.len()));
        let mut ranges = Self::default();
        if !sorted.is_empty() {
            ranges.start(0, None);
        }
        let mut open: Vec<(Prefix4, Target)> = Vec::new();
        for (prefix, target) in sorted {
            ranges.close(&mut open, |outer| outer.last() < prefix.addr());
            ranges.start(prefix.addr(), Some(target));
            open.push((prefix, target));
        }
        ranges.close(&mut open, |_| true);
        ranges
    }

    /// Ends the open prefixes for which `ended` is true, innermost first.
    fn close(&mut self, open: &mut Vec<(Prefix4, Target)>, ended: impl Fn(Prefix4) -> bool) {
        while let Some((prefix, _)) = open.last().copied()
            && ended(prefix)
        {
            open.pop();
            if let Some(after) = prefix.last().checked_add(1) {
                self.start(after, open.last().map(|(_, target)| *target));
            }
        }
    }

    fn start(&mut self, start: u32, target: Option<Target>) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.targets.pop();
        }
        self.starts.push(start);
        self.targets.push(target);
    }

    /// The target of the longest prefix that contains an address.
    #[inline]
    pub fn get(&self, address: u32) -> Option<Target> {
        let after = self.starts.partition_point(|start| *start <= address);
        self.targets.get(after.wrapping_sub(1)).copied().flatten()
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hue_tables::Vid;
    use proptest::prelude::*;

    use super::*;

    /// Ethernet and IPv4 headers before `payload`, addresses 1.1.1.1 and 2.2.2.2.
    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        bytes.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        bytes.extend(payload);
        bytes
    }

    fn vxlan(flags: u8) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x12, 0xb5, 0, 0, 0, 0, flags, 0, 0, 0, 0, 0, 7, 0];
        bytes.extend(packet(1, &[]));
        let last = bytes.len() - 1;
        bytes[last] = 9;
        packet(UDP, &bytes)
    }

    const IPIP: u8 = 4;
    const UDP: u8 = 17;
    const OWN: u32 = 0x0202_0202;
    const INNER: u32 = 0x0202_0209;

    #[test]
    fn plain_packets_use_their_own_destination() {
        assert_eq!(inner_destination(&packet(6, &[])), Some(OWN));
        assert_eq!(inner_destination(&packet(UDP, &[0, 1, 0, 2, 0, 0, 0, 0])), Some(OWN));
        let mut later_fragment = packet(UDP, &[]);
        later_fragment[21] = 1;
        assert_eq!(inner_destination(&later_fragment), Some(OWN));
    }

    #[test]
    fn tunnels_use_the_inner_destination() {
        let mut inside = packet(1, &[])[14..].to_vec();
        inside[19] = 9;
        assert_eq!(inner_destination(&packet(IPIP, &inside)), Some(INNER));
        assert_eq!(inner_destination(&vxlan(vxlan::FLAG_VNI)), Some(INNER));
    }

    #[test]
    fn unreadable_inner_packets_match_nothing() {
        assert_eq!(inner_destination(&vxlan(0)), None);
        for end in 14 + 20 + 4..14 + 20 + 16 + 14 + 20 {
            assert_eq!(inner_destination(&vxlan(vxlan::FLAG_VNI)[..end]), None, "cut at {end}");
        }
        assert_eq!(inner_destination(&packet(IPIP, &[0x65; 20])), None);
        assert_eq!(inner_destination(&packet(IPIP, &[0x45; 19])), None);
        let mut later_fragment = packet(IPIP, &[0x45; 20]);
        later_fragment[21] = 1;
        assert_eq!(inner_destination(&later_fragment), None);
        let mut short_header = packet(IPIP, &[0x45; 20]);
        short_header[14] = 0x44;
        assert_eq!(inner_destination(&short_header), None);
    }

    fn prefixes() -> impl Strategy<Value = Vec<(Prefix4, Target)>> {
        // Few distinct high bits, so that prefixes nest.
        let one = (0u32..64, 0u8..=32, any::<bool>()).prop_map(|(top, len, ones)| {
            let low = if ones { 0x03ff_ffff } else { 0 };
            Prefix4::containing(top << 26 | low, len)
        });
        prop::collection::btree_set(one, 0..40).prop_map(|set| {
            let target = |n: usize| Target { vid: Vid::new(n as u16 + 1).unwrap(), vport: 0 };
            set.into_iter().enumerate().map(|(n, prefix)| (prefix, target(n))).collect()
        })
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_scan(rows in prefixes(), random in prop::collection::vec(any::<u32>(), 20)) {
            let ranges = Ranges::new(&rows);
            let edges = rows.iter().flat_map(|(p, _)| [p.addr(), p.last(), p.addr().wrapping_sub(1), p.last().wrapping_add(1)]);
            for address in edges.chain(random) {
                let longest = rows.iter().filter(|(p, _)| p.contains(address)).max_by_key(|(p, _)| p.len());
                prop_assert_eq!(ranges.get(address), longest.map(|(_, target)| *target), "{}", address);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), protocol in prop::sample::select(vec![4u8, 17])) {
            let _ = inner_destination(&bytes);
            let _ = inner_destination(&packet(protocol, &bytes));
        }
    }
}
