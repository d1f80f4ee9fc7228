//! Frames of the TAP device and packets with flat labels, each made from the other. No sockets, no clock.
//!
//! The device resolves no neighbours: the kernel sends its frames to the device's own address, and takes only those to it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hue_routing::ring::{Body, PAYLOAD_TYPE};
use hue_tables::AnyPrefix;
use hue_wire::ethernet::{EtherType, HEADER_BYTES, View};
use hue_wire::rofl::{ETHERTYPE, FLAG_LINK, HEADER_BYTES as ROFL_BYTES, Label, Packet, ROUTE_MAX};
use hue_wire::{Mac, ipv4, ipv6};
use serde::Serialize;

/// An endpoint: the host's label, and the labels that it knows.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The host's label.
    pub label: Label,
    /// Bytes of every label.
    pub label_bytes: usize,
    /// Hop budget of what it sends.
    pub budget: u8,
    /// Whether its packets teach routers the way back.
    pub teach: bool,
    /// Which label has which addresses.
    pub map: Vec<(AnyPrefix, Label)>,
    /// The address of the interface towards the router.
    pub own: Mac,
    /// The router's address.
    pub router: Mac,
    /// The address of the TAP device.
    pub tap: Mac,
    /// Longest packet with labels that the interface takes, in bytes behind the Ethernet header.
    pub mtu_bytes: usize,
}

/// What an endpoint did with the frames of both sides.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counts {
    /// Packets sent with labels.
    pub sent: u64,
    /// Packets received for the host's label.
    pub received: u64,
    /// Frames that went no further, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl Endpoint {
    /// Bytes that headers and labels add to an IP packet.
    #[must_use]
    pub fn added_bytes(&self) -> usize {
        ROFL_BYTES + (2 + usize::from(self.teach)) * self.label_bytes
    }

    /// The frame for the router that carries what the kernel sent to the TAP device.
    ///
    /// # Errors
    /// Why there is none: `not_ip`, `group` (multicast has no label), `no_label`, `too_long`.
    pub fn outwards(&self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        let (payload_type, payload) = ip(frame).ok_or("not_ip")?;
        let destination = destination(payload_type, payload).ok_or("not_ip")?;
        let is_broadcast = matches!(destination, IpAddr::V4(address) if address.is_broadcast());
        if destination.is_multicast() || is_broadcast {
            return Err("group");
        }
        let known = self.map.iter().filter(|(prefix, _)| prefix.contains(destination));
        let (_, label) = known.max_by_key(|(prefix, _)| prefix.len()).ok_or("no_label")?;
        let mut route = [0; ROUTE_MAX];
        route[0] = self.label;
        let packet = Packet {
            flags: 0,
            label_bytes: self.label_bytes,
            budget: self.budget,
            destination: *label,
            source: self.label,
            route,
            route_len: usize::from(self.teach),
            payload_type: payload_type.0,
            payload,
        };
        if packet.bytes() > self.mtu_bytes {
            return Err("too_long");
        }
        head(out, self.router, self.own, ETHERTYPE);
        out.resize(HEADER_BYTES + packet.bytes(), 0);
        let written = out.get_mut(HEADER_BYTES..).and_then(|rest| packet.write(rest));
        written.map(drop).ok_or("too_long")
    }

    /// The frame that tells the router's routing daemon for how long the label is here, tenths of a second; 0 if it leaves.
    pub fn here(&self, hold_ds: u16, out: &mut Vec<u8>) {
        let payload = Body::Host { hold_ds }.bytes(self.label_bytes);
        let packet = Packet {
            flags: FLAG_LINK,
            label_bytes: self.label_bytes,
            budget: 1,
            destination: 0,
            source: self.label,
            route: [0; ROUTE_MAX],
            route_len: 0,
            payload_type: PAYLOAD_TYPE,
            payload: &payload,
        };
        head(out, self.router, self.own, ETHERTYPE);
        out.resize(HEADER_BYTES + packet.bytes(), 0);
        // There is room for it.
        let _ = out.get_mut(HEADER_BYTES..).and_then(|rest| packet.write(rest));
    }

    /// The frame for the kernel that was in what the interface received.
    ///
    /// # Errors
    /// Why there is none: `other` (no packet with labels to this interface: nothing that an endpoint is concerned with), `malformed`,
    /// `link` (between routers), `other_label`, `not_ip`.
    pub fn inwards(&self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        let view = View::parse(frame).map_err(|_| "other")?;
        let header = view.header();
        if header.ethertype() != ETHERTYPE {
            return Err("other");
        }
        let packet = Packet::parse(view.payload()).ok_or("malformed")?;
        if packet.flags & FLAG_LINK != 0 {
            return Err("link");
        }
        if header.destination() != self.own {
            return Err("other");
        }
        if packet.label_bytes != self.label_bytes || packet.destination != self.label {
            return Err("other_label");
        }
        let payload_type = EtherType(packet.payload_type);
        destination(payload_type, packet.payload).ok_or("not_ip")?;
        head(out, self.tap, self.router, payload_type);
        out.extend_from_slice(packet.payload);
        Ok(())
    }
}

fn head(out: &mut Vec<u8>, destination: Mac, source: Mac, ethertype: EtherType) {
    out.clear();
    out.extend_from_slice(&destination.0);
    out.extend_from_slice(&source.0);
    out.extend_from_slice(&ethertype.0.to_be_bytes());
}

/// The IP packet of a frame.
fn ip(frame: &[u8]) -> Option<(EtherType, &[u8])> {
    let view = View::parse(frame).ok()?;
    Some((view.header().ethertype(), view.payload()))
}

/// The destination of a sound IP packet of the family that its EtherType says.
fn destination(payload_type: EtherType, packet: &[u8]) -> Option<IpAddr> {
    match payload_type {
        EtherType::IPV4 => ipv4::View::parse(packet).ok().map(|view| view.header().destination().into()),
        EtherType::IPV6 => ipv6::View::parse(packet).ok().map(|view| view.header().destination().into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAP: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn alice() -> Endpoint {
        let map = [("10.8.0.0/24", 0x80 << 120), ("10.8.0.2/32", 0xa0 << 120), ("fd08::/64", 0xb0 << 120)];
        Endpoint {
            label: 0x20 << 120,
            label_bytes: 4,
            budget: 65,
            teach: true,
            map: map.map(|(prefix, label)| (prefix.parse().unwrap(), label)).to_vec(),
            own: Mac([2, 0, 0, 0, 0, 0xa1]),
            router: Mac([2, 0, 0, 0, 8, 0]),
            tap: TAP,
            mtu_bytes: 60,
        }
    }

    fn frame(to: [u8; 4], more: usize) -> Vec<u8> {
        let mut frame = [TAP.0, TAP.0].concat();
        let total = 20 + more as u8;
        frame.extend([8, 0, 0x45, 0, 0, total, 0, 0, 0, 0, 64, 17, 0, 0, 10, 8, 0, 1]);
        frame.extend(to);
        frame.resize(34 + more, 7);
        let sum = hue_wire::checksum::full(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    #[test]
    fn a_packet_arrives_as_it_was_sent() {
        let alice = alice();
        let (mut wire, mut out) = (Vec::new(), Vec::new());
        let sent = frame([10, 8, 0, 2], 4);
        alice.outwards(&sent, &mut wire).unwrap();
        let packet = Packet::parse(&wire[14..]).unwrap();
        assert_eq!((packet.destination >> 120, packet.source >> 120, packet.budget), (0xa0, 0x20, 65));
        assert_eq!(
            (packet.route[0], packet.route_len, packet.bytes()),
            (alice.label, 1, 24 + alice.added_bytes())
        );
        // Bob's router sends it to him, padded.
        let bob = Endpoint { label: 0xa0 << 120, own: alice.router, ..alice.clone() };
        wire.resize(99, 0);
        bob.inwards(&wire, &mut out).unwrap();
        assert_eq!((&out[..6], &out[12..]), (&TAP.0[..], &sent[12..]));
        assert_eq!(alice.inwards(&wire, &mut out), Err("other"), "another MAC address");
        let carol = Endpoint { label: 0xa1 << 120, ..bob.clone() };
        assert_eq!(carol.inwards(&wire, &mut out), Err("other_label"));
        assert_eq!(Endpoint { label_bytes: 5, ..bob.clone() }.inwards(&wire, &mut out), Err("other_label"));
        wire[14] |= FLAG_LINK;
        assert_eq!(bob.inwards(&wire, &mut out), Err("link"));
        wire[14] = 0x20;
        assert_eq!(bob.inwards(&wire, &mut out), Err("malformed"));
        wire[12] = 8;
        assert_eq!(bob.inwards(&wire, &mut out), Err("other"));
    }

    #[test]
    fn a_label_says_that_it_is_here() {
        let (alice, mut out) = (alice(), Vec::new());
        alice.here(35, &mut out);
        let packet = Packet::parse(&out[14..]).unwrap();
        assert_eq!((&out[..6], packet.source, packet.flags), (&alice.router.0[..], alice.label, FLAG_LINK));
        assert_eq!(Body::read(packet.payload, 4), Ok(Body::Host { hold_ds: 35 }));
    }

    #[test]
    fn what_has_no_label_stays() {
        let (alice, mut out) = (alice(), Vec::new());
        let mut to = |destination| {
            let result = alice.outwards(&frame(destination, 4), &mut out);
            result.map(|()| Packet::parse(&out[14..]).unwrap().destination >> 120)
        };
        assert_eq!(to([10, 8, 0, 9]), Ok(0x80), "by the shorter prefix");
        assert_eq!(to([10, 9, 0, 2]), Err("no_label"));
        assert_eq!((to([224, 0, 0, 5]), to([255; 4])), (Err("group"), Err("group")));
        assert_eq!(alice.outwards(&frame([10, 8, 0, 2], 20), &mut out), Ok(()), "60 bytes");
        assert_eq!(alice.outwards(&frame([10, 8, 0, 2], 21), &mut out), Err("too_long"));
        let mut arp = frame([10, 8, 0, 2], 4);
        arp[13] = 6;
        assert_eq!(alice.outwards(&arp, &mut out), Err("not_ip"));
        assert_eq!(alice.outwards(&arp[..13], &mut out), Err("not_ip"));
    }
}
