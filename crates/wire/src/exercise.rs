//! Runs every view and every edit over arbitrary bytes, for the fuzz target and the random tests. Not for
//! other use.
//!
//! A finding is a panic: in the code under test, or in an `assert!` here on what an edit must preserve.

use core::fmt::{self, Write};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::IntoBytes;

use crate::ip::Addresses;
use crate::walk::{Content, STEPS_MAX, walk};
use crate::{Mac, arp, checksum, ethernet, icmp, icmpv6, ip, ipip, ipv4, ipv6, ndp, rofl, tcp, udp, vxlan};

/// Collects everything that was read, so that no read is optimised away.
#[derive(Debug, Default)]
struct Digest(u64);

impl Digest {
    fn mix(&mut self, value: impl Into<u64>) {
        self.0 = (self.0 ^ value.into()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(*byte));
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// Reads `bytes` as a frame and as each protocol, then edits them as a frame and as each protocol. The result
/// depends only on the values read.
///
/// # Panics
/// If this crate has a bug.
pub fn exercise(bytes: &mut [u8]) -> u64 {
    let mut digest = Digest::default();
    read_walk(bytes, &mut digest);
    read_raw(bytes, &mut digest);
    edit_frame(bytes, 0, &mut digest);
    read_walk(bytes, &mut digest);
    edit_raw(bytes, &mut digest);
    digest.0
}

fn read_walk(frame: &[u8], digest: &mut Digest) {
    let mut end = 0;
    for (at, step) in walk(frame).enumerate() {
        assert!(at <= STEPS_MAX);
        match step {
            Ok(step) => {
                assert_eq!(step.offset, end);
                end = step.offset + step.bytes;
                assert!(end <= frame.len());
                let _ = write!(digest, "{}", step.content);
                read_content(&step.content, digest);
            }
            Err(broken) => {
                assert!(broken.offset <= frame.len());
                let _ = write!(digest, "{broken}");
            }
        }
    }
}

fn read_content(content: &Content<'_>, digest: &mut Digest) {
    match content {
        Content::Ethernet(view) => read_ethernet(view, digest),
        Content::Arp(view) => read_arp(view, digest),
        Content::Ipv4(view) => read_ipv4(view, digest),
        Content::Ipv6(view) => read_ipv6(view, digest),
        Content::Ipv6Extension(extension) => digest.bytes(extension.bytes),
        Content::Icmp(view) => read_icmp(view, digest),
        Content::Icmpv6(view) => read_icmpv6(view, digest),
        Content::Udp(view) => read_udp(view, digest),
        Content::Tcp(view) => read_tcp(view, digest),
        Content::Vxlan(view) => digest.mix(view.header().vni().get()),
        Content::Payload(_, bytes) => digest.bytes(bytes),
    }
}

/// Reads the bytes as each protocol, independent of what the frame's headers say.
fn read_raw(bytes: &[u8], digest: &mut Digest) {
    fn each<T>(parsed: Result<T, crate::WireError>, digest: &mut Digest, read: impl Fn(&T, &mut Digest)) {
        match parsed {
            Ok(view) => read(&view, digest),
            Err(error) => drop(write!(digest, "{error}")),
        }
    }
    each(ethernet::View::parse(bytes), digest, read_ethernet);
    each(arp::View::parse(bytes), digest, read_arp);
    each(ipv4::View::parse(bytes), digest, read_ipv4);
    each(ipv6::View::parse(bytes), digest, read_ipv6);
    each(icmp::View::parse(bytes), digest, read_icmp);
    each(icmpv6::View::parse(bytes), digest, read_icmpv6);
    each(ndp::View::parse(bytes), digest, read_ndp);
    each(udp::View::parse(bytes), digest, read_udp);
    each(tcp::View::parse(bytes), digest, read_tcp);
    each(vxlan::View::parse(bytes), digest, |view, digest| digest.bytes(view.payload()));
    if let Some(packet) = rofl::Packet::parse(bytes) {
        let mut again = [0; 256];
        if let Some(len) = packet.write(&mut again) {
            assert_eq!(again.get(..len).and_then(rofl::Packet::parse), Some(packet));
        }
        digest.bytes(packet.payload);
    }
    let protocol = ip::Protocol(bytes.first().copied().unwrap_or_default());
    each(ipip::View::parse(protocol, bytes), digest, |_, _| ());
    each(ipip::View::parse(ip::Protocol::IPV4, bytes), digest, |inner, digest| {
        let ipip::View::V4(inner) = inner else { return };
        if let Some(outer) = ipip::outer_header(inner, Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST, 64) {
            assert!(ipv4::verify(&outer));
            digest.bytes(outer.as_bytes());
        }
    });
    if let Ok(text) = core::str::from_utf8(bytes) {
        match text.parse::<Mac>() {
            Ok(mac) => digest.mix(mac.to_u64()),
            Err(error) => drop(write!(digest, "{error}")),
        }
    }
    let (left, right) = bytes.split_at(bytes.len() / 3);
    let sum = checksum::Sum::new().bytes(left).bytes(right);
    assert_eq!(sum.checksum(), checksum::full(bytes));
    digest.mix(sum.folded());
}

fn read_ethernet(view: &ethernet::View<'_>, digest: &mut Digest) {
    digest.mix(view.header().destination().to_u64());
    digest.mix(view.header().source().to_u64());
    digest.mix(view.header().ethertype().0);
    digest.bytes(view.payload());
}

fn read_arp(view: &arp::View<'_>, digest: &mut Digest) {
    let header = view.header();
    assert_eq!(header.reply(Mac::ZERO).reply(header.sender_mac).sender(), header.sender());
    digest.mix(header.operation().0);
    digest.mix(u64::from(header.is_announcement()));
    digest.mix(header.sender().to_bits() ^ header.target().to_bits());
}

fn read_ipv4(view: &ipv4::View<'_>, digest: &mut Digest) {
    let header = view.header();
    assert_eq!(view.header_bytes().len(), header.header_bytes());
    assert_eq!(view.header_bytes().len() + view.payload().len(), usize::from(header.total_length.get()));
    if view.options_bytes().is_empty() {
        assert_eq!(ipv4::verify(header), view.checksum_ok());
    }
    assert!(view.options().count() <= view.options_bytes().len());
    for option in view.options().map_while(Result::ok) {
        digest.mix(option.kind);
        digest.bytes(option.data);
    }
    digest.mix(header.source().to_bits() ^ header.destination().to_bits());
    digest.mix(header.fragment_offset_bytes());
    digest.mix(u16::from_be_bytes([header.dscp(), header.ecn()]));
    digest.bytes(view.payload());
}

fn read_ipv6(view: &ipv6::View<'_>, digest: &mut Digest) {
    let header = view.header();
    assert!(view.extensions().count() <= ipv6::EXTENSIONS_MAX + 1);
    match view.upper() {
        Ok(upper) => {
            assert_eq!(upper.offset + upper.payload.len(), view.payload().len());
            digest.mix(upper.protocol.0);
            digest.mix(u64::from(upper.starts_transport()));
            digest.bytes(upper.payload);
        }
        Err(error) => drop(write!(digest, "{error}")),
    }
    let _ = write!(digest, "{} {}", header.source(), header.destination());
    digest.mix(header.flow_label() ^ u32::from(header.traffic_class()));
}

fn read_icmp(view: &icmp::View<'_>, digest: &mut Digest) {
    let header = view.header();
    digest.mix(u64::from(view.checksum_ok()));
    let (identifier, sequence) = header.echo().unwrap_or_default();
    digest.mix(identifier ^ sequence ^ header.next_hop_mtu().unwrap_or_default());
    digest.bytes(view.payload());
}

fn read_icmpv6(view: &icmpv6::View<'_>, digest: &mut Digest) {
    let header = view.header();
    digest.mix(u64::from(view.checksum_ok(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED)));
    let (identifier, sequence) = header.echo().unwrap_or_default();
    digest.mix(u32::from(identifier ^ sequence) ^ header.next_hop_mtu().unwrap_or_default());
    digest.bytes(view.payload());
}

fn read_ndp(view: &ndp::View<'_>, digest: &mut Digest) {
    for option in view.options().map_while(Result::ok) {
        digest.mix(option.kind);
        digest.bytes(option.data);
    }
    digest.mix(view.mac().unwrap_or_default().to_u64());
    let _ = write!(digest, "{} {}", view.header().target(), view.header().flags());
}

fn read_udp(view: &udp::View<'_>, digest: &mut Digest) {
    digest.mix(u64::from(view.checksum_ok(ADDRESSES_V4)) << 1 | u64::from(view.checksum_ok(ADDRESSES_V6)));
    assert_eq!(usize::from(view.header().length.get()), udp::HEADER_BYTES + view.payload().len());
    digest.bytes(view.payload());
}

fn read_tcp(view: &tcp::View<'_>, digest: &mut Digest) {
    digest.mix(u64::from(view.checksum_ok(ADDRESSES_V4)) << 1 | u64::from(view.checksum_ok(ADDRESSES_V6)));
    assert!(view.options().count() <= view.options_bytes().len());
    for option in view.options().map_while(Result::ok) {
        digest.mix(option.kind);
        digest.mix(option.maximum_segment_bytes().unwrap_or_default());
        digest.bytes(option.data);
    }
    digest.mix(view.header().flags().0);
    digest.bytes(view.payload());
}

const ADDRESSES_V4: Addresses = Addresses::V4(Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST);
const ADDRESSES_V6: Addresses = Addresses::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);

/// Edits as a router would, from the outermost header inwards; `depth` limits nested tunnels.
fn edit_frame(frame: &mut [u8], depth: usize, digest: &mut Digest) {
    let Ok(mut view) = ethernet::ViewMut::parse(frame) else { return };
    let macs = ethernet::Macs { destination: Mac([2, 0, 0, 0, 0, 1]), source: Mac([2, 0, 0, 0, 0, 2]) };
    ethernet::rewrite_macs(view.header_mut(), &macs);
    assert_eq!(view.header_mut().macs, macs);
    let ethertype = view.header_mut().ethertype();
    let payload = view.into_payload();
    match ethertype {
        ethernet::EtherType::ARP => edit_arp(payload),
        ethernet::EtherType::IPV4 => edit_packet(ip::Protocol::IPV4, payload, depth, digest),
        ethernet::EtherType::IPV6 => edit_packet(ip::Protocol::IPV6, payload, depth, digest),
        _ => (),
    }
}

fn edit_packet(protocol: ip::Protocol, packet: &mut [u8], depth: usize, digest: &mut Digest) {
    if depth > crate::walk::TUNNELS_MAX {
        return;
    }
    let (protocol, payload, addresses) = match ipip::ViewMut::parse(protocol, packet) {
        Ok(ipip::ViewMut::V4(mut view)) => {
            edit_ipv4(&mut view, digest);
            let header = *view.header();
            if !header.starts_transport() {
                return;
            }
            let addresses = Addresses::V4(header.source(), header.destination());
            (header.protocol, view.into_payload(), addresses)
        }
        Ok(ipip::ViewMut::V6(mut view)) => {
            edit_ipv6(&mut view);
            let header = *view.header();
            (header.next_header, view.into_payload(), Addresses::V6(header.source(), header.destination()))
        }
        Err(_) => return,
    };
    match protocol {
        ip::Protocol::IPV4 | ip::Protocol::IPV6 => edit_packet(protocol, payload, depth + 1, digest),
        ip::Protocol::ICMP => edit_icmp(payload),
        ip::Protocol::ICMPV6 => edit_icmpv6(payload),
        ip::Protocol::TCP => edit_tcp(payload, addresses),
        ip::Protocol::UDP => {
            edit_udp(payload, addresses);
            let Ok(udp) = udp::ViewMut::parse(payload) else { return };
            if let Ok(mut vxlan) = vxlan::ViewMut::parse(udp.into_payload()) {
                vxlan.set_vni(vxlan::Vni::MAX);
                assert_eq!(vxlan.header_mut().vni(), vxlan::Vni::MAX);
                edit_frame(vxlan.into_payload(), depth + 1, digest);
            }
        }
        _ => (),
    }
}

/// Edits the bytes as each protocol, independent of what the frame's headers say. Each edit changes the bytes
/// that the next one sees.
fn edit_raw(bytes: &mut [u8], digest: &mut Digest) {
    edit_arp(bytes);
    edit_icmp(bytes);
    edit_icmpv6(bytes);
    for addresses in [ADDRESSES_V4, ADDRESSES_V6] {
        edit_udp(bytes, addresses);
        edit_tcp(bytes, addresses);
    }
    edit_packet(ip::Protocol::IPV4, bytes, 0, digest);
    edit_packet(ip::Protocol::IPV6, bytes, 0, digest);
}

fn edit_arp(message: &mut [u8]) {
    let Ok(mut view) = arp::ViewMut::parse(message) else { return };
    let asked = *view.header_mut();
    view.make_reply(Mac::BROADCAST);
    assert_eq!(view.header_mut().target(), asked.sender());
    assert!(arp::View::parse(message).is_ok());
}

fn edit_ipv4(view: &mut ipv4::ViewMut<'_>, digest: &mut Digest) {
    // First with the checksum as received, right or wrong: an update must preserve either.
    view.decrement_ttl();
    digest.mix(view.header().checksum.get());
    // Then with a correct checksum: after every edit it must equal a full computation.
    view.fill_checksum();
    let ttl = view.header().ttl;
    assert_eq!(view.decrement_ttl(), ttl != 0);
    view.set_tos(!view.header().tos);
    view.set_identification(!view.header().identification.get());
    view.set_dont_fragment(!view.header().dont_fragment());
    view.set_source(Ipv4Addr::from_bits(!view.header().source.get()));
    view.set_destination(Ipv4Addr::from_bits(view.header().destination.get().rotate_left(9)));
    let (updated, ttl) = (view.header().checksum, view.header().ttl);
    view.set_ttl(!ttl);
    view.set_ttl(ttl);
    assert_eq!(updated, view.header().checksum);
    view.fill_checksum();
    assert_eq!(updated, view.header().checksum);
}

fn edit_ipv6(view: &mut ipv6::ViewMut<'_>) {
    let before = *view.header();
    assert_eq!(view.decrement_hop_limit(), before.hop_limit != 0);
    view.set_hop_limit(before.hop_limit);
    view.set_traffic_class(!before.traffic_class());
    view.set_flow_label(!before.flow_label());
    assert_eq!((view.header().version(), view.header().traffic_class()), (6, !before.traffic_class()));
    view.set_traffic_class(before.traffic_class());
    view.set_flow_label(before.flow_label());
    view.set_source(before.destination());
    view.set_destination(before.source());
    view.set_source(before.source());
    view.set_destination(before.destination());
    assert_eq!(*view.header(), before);
}

fn edit_icmp(message: &mut [u8]) {
    let Ok(mut view) = icmp::ViewMut::parse(message) else { return };
    view.fill_checksum();
    view.set_kind(icmp::Type::ECHO_REPLY, 0);
    assert!(icmp::View::parse(message).is_ok_and(|view| view.checksum_ok()));
}

fn edit_icmpv6(message: &mut [u8]) {
    let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
    let Ok(mut view) = icmpv6::ViewMut::parse(message) else { return };
    view.fill_checksum(a, b);
    view.set_kind(icmpv6::Type::ECHO_REPLY, 0);
    assert!(icmpv6::View::parse(message).is_ok_and(|view| view.checksum_ok(a, b)));
}

/// The addresses after the source changed, and the old and new source.
fn readdressed(addresses: Addresses) -> (Addresses, IpAddr, IpAddr) {
    match addresses {
        Addresses::V4(a, b) => {
            let c = Ipv4Addr::from_bits(!a.to_bits());
            (Addresses::V4(c, b), a.into(), c.into())
        }
        Addresses::V6(a, b) => {
            let c = Ipv6Addr::from_bits(!a.to_bits());
            (Addresses::V6(c, b), a.into(), c.into())
        }
    }
}

fn edit_udp(datagram: &mut [u8], addresses: Addresses) {
    let Ok(mut view) = udp::ViewMut::parse(datagram) else { return };
    let (after, old, new) = readdressed(addresses);
    view.fill_checksum(addresses);
    view.set_source(!view.header().source.get());
    view.set_destination(view.header().destination.get().rotate_left(3));
    view.address_changed(old, new);
    assert!(udp::View::parse(datagram).is_ok_and(|view| view.checksum_ok(after)));
}

fn edit_tcp(segment: &mut [u8], addresses: Addresses) {
    let Ok(mut view) = tcp::ViewMut::parse(segment) else { return };
    let (after, old, new) = readdressed(addresses);
    view.fill_checksum(addresses);
    view.set_source(!view.header().source.get());
    view.set_destination(view.header().destination.get().rotate_left(3));
    view.address_changed(old, new);
    assert!(tcp::View::parse(segment).is_ok_and(|view| view.checksum_ok(after)));
}
