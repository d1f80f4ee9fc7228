//! NICs beside ports of a card: a second wire to the same segment (the papers' multi-receiver arrangement, their section
//! 3.2). Networks in software have their neighbours send to the NIC, so that their frames do not cross the card.
//!
//! A network has two MAC addresses on such a segment: its own on the card's port, and [`Mac::companion`] of it on the
//! NIC. Each port accepts unicast frames to its own address only, so that a flooding switch duplicates nothing; both
//! accept them at any time, so that nothing is lost while neighbours switch. Group frames arrive on both wires and
//! are accepted only on the network's current wire, on which the network also sends. Later stages see only the card's
//! port: MAC addresses, including those in messages of ARP and neighbour discovery, are translated as frames arrive
//! and leave, and the frames are counted at the card's port.
//!
//! Some networks *keep their MAC addresses* ([`Program::keeps_macs`]): a switch forwards frames to and from the addresses of its
//! hosts, which it cannot translate, and other kinds without IP addresses have neighbours that no ARP tells another address. Their
//! frames are the same on both wires. They use one wire at a time, and accept nothing from the other one, since what the outside
//! switch floods comes by both. While the outside switches learn that the addresses have moved to the other wire, a *turn*, such
//! a network also accepts unicast frames on the old wire, if it has not sent them itself: a switch those from hosts that it knows
//! there to hosts that it knows elsewhere, other kinds those from others' addresses (ADR 0066). Networks that are selected in other
//! ways stay on the card's port.
//!
//! [`Program::keeps_macs`]: hue_substrate::Program::keeps_macs

use std::collections::BTreeSet;

use hue_demux::{Attachment, Demux, Match, PortId, Row, Target};
use hue_ports::ClassRule;
use hue_tables::Vid;
use hue_wire::{Mac, arp, checksum, ethernet, icmpv6, ip, ipv6, ndp};

use super::classes::{self, Classes};
use crate::network::Network;

/// Marks absent ports in the tables by port.
const NONE: u8 = u8::MAX;

/// Offsets of an ARP message's MAC addresses in a frame: sender and target.
const ARP_SENDER: usize = ethernet::HEADER_BYTES + 8;
const ARP_TARGET: usize = ARP_SENDER + 10;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Beside {
    /// NIC by the port that it is beside.
    nics: Box<[u8]>,
    /// The reverse: port by NIC.
    fronts: Box<[u8]>,
    /// Virtual ports by NIC and address there.
    macs: Demux,
    /// Networks that keep their MAC addresses and take all frames of a port, by NIC.
    whole: Box<[Option<Target>]>,
    /// Whether a network's wire is the NIC, by VID.
    on: Box<[bool]>,
    /// Whether a network has NICs and keeps its MAC addresses, by VID.
    keeps_macs: Box<[bool]>,
    /// Whether such a network accepts frames on its old wire, by VID.
    turns: Box<[bool]>,
}

/// Networks that use the NICs.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnNics {
    /// Those whose neighbours send to the NIC.
    pub on: BTreeSet<Vid>,
    /// Networks that keep their MAC addresses, while these are moving to the other wire.
    pub turning: BTreeSet<Vid>,
}

impl Beside {
    /// NICs beside ports, as (port, NIC), for these networks.
    pub fn new(pairs: &[(PortId, PortId)], networks: &[Network], who: &OnNics) -> Self {
        let none = || vec![NONE; PortId::COUNT].into_boxed_slice();
        let (mut nics, mut fronts) = (none(), none());
        for (front, nic) in pairs {
            nics[front.index()] = nic.get();
            fronts[nic.index()] = front.get();
        }
        let no_network = || vec![false; usize::from(Vid::MAX) + 1].into_boxed_slice();
        let (mut on, mut keeps_macs, mut turns) = (no_network(), no_network(), no_network());
        let mut whole = vec![None; PortId::COUNT].into_boxed_slice();
        let mut rows = Vec::new();
        for network in networks {
            let (vid, keeps) = (network.vid, network.keeps_macs());
            for row in &network.shape.rows {
                let (Match::Mac { port, .. } | Match::Port(port)) = row.select else { continue };
                let Some(nic) = nics.get(port.index()).filter(|nic| **nic != NONE) else { continue };
                match row.select {
                    Match::Mac { mac, .. } => {
                        let mac = if keeps { mac } else { mac.companion() };
                        rows.push(Row { select: Match::Mac { port: PortId::new(*nic), mac }, ..*row });
                    }
                    _ if keeps => {
                        whole[usize::from(*nic)] = Some(Target { vid, vport: row.vport });
                    }
                    _ => continue,
                }
                on[vid.index()] = who.on.contains(&vid);
                keeps_macs[vid.index()] = keeps;
                turns[vid.index()] = keeps && who.turning.contains(&vid);
            }
        }
        // All rows differ: those from which they are made do, and a document in which an address is the companion of another is refused.
        let macs = Demux::new(&rows, &[] as &[Attachment]).unwrap_or_default();
        Self { nics, fronts, macs, whole, on, keeps_macs, turns }
    }

    /// The NIC beside a port.
    #[inline]
    pub fn nic(&self, port: PortId) -> Option<PortId> {
        self.nics.get(port.index()).copied().filter(|nic| *nic != NONE).map(PortId::new)
    }

    /// The port that a NIC is beside.
    #[inline]
    pub fn front(&self, nic: PortId) -> Option<PortId> {
        self.fronts.get(nic.index()).copied().filter(|front| *front != NONE).map(PortId::new)
    }

    /// The target of a unicast frame on a NIC.
    #[inline]
    pub fn target(&self, nic: PortId, frame: &[u8]) -> Option<Target> {
        self.macs.select_mac(nic, frame)
    }

    /// The network that a unicast frame on a NIC is for, if no other network has its address.
    #[inline]
    pub fn whole(&self, nic: PortId) -> Option<Target> {
        self.whole.get(nic.index()).copied().flatten()
    }

    /// Whether a network has NICs, and its frames are the same on both wires.
    #[inline]
    pub fn keeps_macs(&self, vid: Vid) -> bool {
        self.keeps_macs.get(vid.index()).copied().unwrap_or(false)
    }

    /// Whether a network that keeps its MAC addresses accepts frames of others on its old wire.
    #[inline]
    pub fn turns(&self, vid: Vid) -> bool {
        self.turns.get(vid.index()).copied().unwrap_or(false)
    }

    /// Whether a network's wire is the NIC.
    #[inline]
    pub fn is_on(&self, vid: Vid) -> bool {
        self.on.get(vid.index()).copied().unwrap_or(false)
    }

    /// Whether a group frame for a network arrived on the wrong one of this port and the NIC beside it.
    #[inline]
    pub fn is_other_wire(&self, vid: Vid, port: PortId, by_nic: bool) -> bool {
        self.nic(port).is_some() && self.is_on(vid) != by_nic
    }

    /// The limits that a NIC must enforce ([`classes::of_port`]); `None` for a port that is not a NIC.
    pub fn classes(&self, nic: PortId, networks: &[Network]) -> Option<Classes> {
        let (front, whole) = (self.front(nic)?, self.whole(nic));
        let (rules, quotas) = classes::of_port(front, networks);
        let beside = |rule: &ClassRule| match rule {
            ClassRule::Mac { class, .. } if Vid::new(*class).is_some_and(|vid| self.keeps_macs(vid)) => {
                Some(*rule)
            }
            ClassRule::Mac { mac, class } => {
                Some(ClassRule::Mac { mac: Mac(*mac).companion().octets(), class: *class })
            }
            ClassRule::Default { class } if whole.is_some_and(|whole| whole.vid.get() == *class) => {
                Some(*rule)
            }
            _ => None,
        };
        Some((rules.iter().filter_map(beside).collect(), quotas))
    }
}

/// Translates a frame that arrived on a NIC to what it would be on the port beside it.
#[inline]
pub(crate) fn inwards(frame: &mut [u8]) {
    swap(frame, 0, ARP_TARGET);
}

/// Translates a frame that a network sends on a port to what it is on the NIC beside it.
#[inline]
pub(crate) fn outwards(frame: &mut [u8]) {
    outwards_discovery(frame);
    swap(frame, 6, ARP_SENDER);
}

/// Translates the sender's MAC address in the options of a message of neighbour discovery, with the checksum. The kernel
/// puts such messages directly behind the IPv6 header.
#[inline]
fn outwards_discovery(frame: &mut [u8]) {
    const MESSAGE: usize = ethernet::HEADER_BYTES + ipv6::HEADER_BYTES;
    let Some((ethernet, packet)) = ethernet::Header::over(frame) else { return };
    if ethernet.ethertype() != ethernet::EtherType::IPV6 {
        return;
    }
    let Ok(view) = ipv6::View::parse(packet) else { return };
    if view.header().next_header != ip::Protocol::ICMPV6 {
        return;
    }
    let Ok(message) = ndp::Message::parse(view.payload()) else { return };
    let (own, end) = (ethernet.source(), MESSAGE + view.payload().len());
    let mut at = end - message.options().rest().len();
    while let Some([kind, eights]) = frame.get(at..end).and_then(<[u8]>::first_chunk::<2>).copied() {
        if eights == 0 {
            return;
        }
        let mac = at + 2..at + 8;
        let names_sender = matches!(kind, ndp::OPTION_SOURCE | ndp::OPTION_TARGET)
            && mac.end <= end
            && frame.get(mac.clone()) == Some(&own.octets()[..]);
        if names_sender
            && let Some([first, second]) = frame.get(mac).and_then(<[u8]>::first_chunk::<2>).copied()
        {
            // Options begin at even offsets of the message, so these two bytes are one word of its checksum.
            let new = first ^ Mac::COMPANION_BIT;
            let words = [first, new].map(|byte| u16::from_be_bytes([byte, second]));
            if let Some(byte) = frame.get_mut(at + 2) {
                *byte = new;
            }
            if let Some(Ok(mut message)) = frame.get_mut(MESSAGE..end).map(icmpv6::ViewMut::parse) {
                let header = message.header_mut();
                header.checksum = checksum::updated_u16(header.checksum.get(), words[0], words[1]).into();
            }
        }
        at += usize::from(eights) * 8;
    }
}

/// Translates the MAC address at `at`, and the ARP message's at `arp_at` if it is the same.
#[inline]
fn swap(frame: &mut [u8], at: usize, arp_at: usize) {
    let is_arp = frame.get(12..14) == Some(&ethernet::EtherType::ARP.0.to_be_bytes()[..])
        && frame.len() >= ethernet::HEADER_BYTES + arp::MESSAGE_BYTES
        && frame.get(at..at + 6) == frame.get(arp_at..arp_at + 6);
    for place in [Some(at), is_arp.then_some(arp_at)].into_iter().flatten() {
        if let Some(first) = frame.get_mut(place) {
            *first ^= Mac::COMPANION_BIT;
        }
    }
}

#[cfg(test)]
mod tests {
    use hue_planes::Kind;
    use hue_ports::CLASS_GROUP;

    use super::super::classes::tests::{network, network_of};
    use super::*;

    const P0: PortId = PortId::new(0);
    const N0: PortId = PortId::new(7);
    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

    #[test]
    fn each_wire_takes_its_own_address() {
        let networks = [network(1, &[Match::Mac { port: P0, mac: MAC }]), network(2, &[Match::Port(P0)])];
        let vid = |id| Vid::new(id).unwrap();
        let who = OnNics { on: [vid(1), vid(2)].into(), turning: [vid(1), vid(2)].into() };
        let beside = Beside::new(&[(P0, N0)], &networks, &who);
        let to = |mac: Mac| [&mac.octets()[..], &[2, 9, 9, 9, 9, 9, 8, 0]].concat();
        assert_eq!(beside.target(N0, &to(MAC.companion())), Some(Target { vid: vid(1), vport: 0 }));
        assert_eq!(beside.target(N0, &to(MAC)), None, "flooded");
        assert_eq!(beside.target(P0, &to(MAC.companion())), None);
        assert_eq!((beside.nic(P0), beside.front(N0), beside.nic(N0)), (Some(N0), Some(P0), None));
        // The second network is selected by its port: it stays on the card's wire.
        assert_eq!((beside.is_on(vid(1)), beside.is_on(vid(2))), (true, false));
        assert!(beside.is_other_wire(vid(1), P0, false) && !beside.is_other_wire(vid(1), P0, true));
        assert!(beside.is_other_wire(vid(2), P0, true) && !beside.is_other_wire(vid(2), P0, false));
        assert!(!beside.is_other_wire(vid(1), PortId::new(3), false), "no NIC there");
        let (rules, quotas) = beside.classes(N0, &networks).unwrap();
        assert_eq!(rules, [ClassRule::Mac { mac: MAC.companion().octets(), class: 1 }]);
        assert!(quotas.iter().any(|(class, _)| *class == CLASS_GROUP));
        assert!(beside.classes(P0, &networks).is_none());
    }

    /// A message with this option, of the sender's address and of another one.
    fn discovery_changes_as_it_leaves(kind: u8) {
        let (own, other): (std::net::Ipv6Addr, _) = ("fe80::1".parse().unwrap(), Mac([2, 9, 9, 9, 9, 9]));
        let mut message = [136, 0, 0, 0, 0, 0, 0, 0].to_vec();
        message.extend(own.octets());
        for mac in [other, MAC] {
            message.extend([kind, 1]);
            message.extend(mac.octets());
        }
        icmpv6::ViewMut::parse(&mut message).unwrap().fill_checksum(own, own);
        let header = ipv6::Header::new(own, own, ip::Protocol::ICMPV6, 255, message.len() as u16);
        let mut frame = [&other.octets()[..], &MAC.octets(), &[0x86, 0xdd]].concat();
        frame.extend(zerocopy::IntoBytes::as_bytes(&header));
        frame.extend(&message);
        frame.extend([0; 6]); // padding
        let before = frame.clone();
        outwards(&mut frame);
        let view = ipv6::View::parse(&frame[14..]).unwrap();
        assert!(icmpv6::View::parse(view.payload()).unwrap().checksum_ok(own, own));
        let options = ndp::View::parse(view.payload()).unwrap().options();
        let macs: Vec<_> = options.map(|one| one.unwrap().mac()).collect();
        assert_eq!(macs, [Some(other), Some(MAC.companion())]);
        assert_eq!(frame[6..12], MAC.companion().octets());
        outwards(&mut frame);
        assert_eq!(frame, before, "there and back");
        for cut in 0..before.len() {
            outwards(&mut before[..cut].to_vec());
        }
        let mut endless = before;
        endless[79] = 0; // length of the first option
        outwards(&mut endless);
        assert_eq!(endless[6..12], MAC.companion().octets());
    }

    #[test]
    fn a_switch_has_whole_wires() {
        let vid = |id| Vid::new(id).unwrap();
        let networks =
            [network_of(Kind::L2, 1, &[Match::Port(P0)]), network(2, &[Match::Mac { port: P0, mac: MAC }])];
        let on = |on: &[u16], turning: &[u16]| {
            let set = |ids: &[u16]| ids.iter().map(|id| vid(*id)).collect();
            Beside::new(&[(P0, N0)], &networks, &OnNics { on: set(on), turning: set(turning) })
        };
        let beside = on(&[1], &[1, 2]);
        assert_eq!(beside.whole(N0), Some(Target { vid: vid(1), vport: 0 }));
        assert_eq!(
            (beside.whole(P0), beside.keeps_macs(vid(1)), beside.keeps_macs(vid(2))),
            (None, true, false)
        );
        assert_eq!((beside.turns(vid(1)), beside.turns(vid(2))), (true, false), "a router has no turn");
        assert!(beside.is_other_wire(vid(1), P0, false) && !beside.is_other_wire(vid(1), P0, true));
        let beside = on(&[], &[]);
        assert!(beside.is_other_wire(vid(1), P0, true) && !beside.is_other_wire(vid(1), P0, false));
        assert_eq!((beside.keeps_macs(vid(1)), beside.turns(vid(1))), (true, false));
        // What no router takes is the switch's, within its share.
        let (rules, _) = beside.classes(N0, &networks).unwrap();
        let router = ClassRule::Mac { mac: MAC.companion().octets(), class: 2 };
        assert_eq!(rules, [ClassRule::Default { class: 1 }, router]);
    }

    #[test]
    fn without_arp_an_address_is_kept() {
        let vid = |id| Vid::new(id).unwrap();
        let own = |seed| Match::Mac { port: P0, mac: Mac([2, 0, 0, 0, 0, seed]) };
        let networks = [
            network_of(Kind::Mpls, 1, &[own(1)]),
            network_of(Kind::Rofl, 2, &[Match::Port(P0)]),
            network_of(Kind::Dual, 3, &[own(3)]),
            network_of(Kind::Process, 4, &[own(4)]),
            network_of(Kind::Process, 5, &[Match::Port(PortId::new(1)), own(5)]),
            network_of(Kind::Extract, 6, &[Match::Port(PortId::new(2))]),
        ];
        let all: BTreeSet<Vid> = (1..=6).map(vid).collect();
        let pairs = [(P0, N0), (PortId::new(1), PortId::new(8)), (PortId::new(2), PortId::new(9))];
        let beside = Beside::new(&pairs, &networks, &OnNics { on: all.clone(), turning: all.clone() });
        let of = |says: fn(&Beside, Vid) -> bool| -> Vec<u16> {
            all.iter().filter(|vid| says(&beside, **vid)).map(|vid| vid.get()).collect()
        };
        assert_eq!(of(Beside::keeps_macs), [1, 2, 4]);
        assert_eq!(of(Beside::turns), [1, 2, 4]);
        // Network 5 is selected by a port too, whose frames its program may send on in any name.
        assert_eq!(of(Beside::is_on), [1, 2, 3, 4, 5]);
        let to = |mac: Mac| [&mac.octets()[..], &[2, 9, 9, 9, 9, 9, 0x88, 0x47]].concat();
        let target = |mac: Mac| beside.target(N0, &to(mac)).map(|target| target.vid.get());
        let mac = |seed| Mac([2, 0, 0, 0, 0, seed]);
        assert_eq!([1, 2, 3, 4].map(|seed| target(mac(seed))), [Some(1), None, None, Some(4)]);
        assert_eq!([1, 3, 4].map(|seed| target(mac(seed).companion())), [None, Some(3), None]);
        assert_eq!(beside.whole(N0), Some(Target { vid: vid(2), vport: 0 }));
        assert_eq!((beside.whole(PortId::new(8)), beside.whole(PortId::new(9))), (None, None));
        let (rules, _) = beside.classes(N0, &networks).unwrap();
        let rule = |mac: Mac, class| ClassRule::Mac { mac: mac.octets(), class };
        let own =
            [rule(mac(1), 1), rule(mac(3).companion(), 3), rule(mac(4), 4), rule(mac(5).companion(), 5)];
        assert_eq!(rules, [&own[..1], &[ClassRule::Default { class: 2 }], &own[1..]].concat());
    }

    #[test]
    fn frames_change_as_they_come_and_go() {
        let announcement = arp::Header::announcement(MAC, std::net::Ipv4Addr::new(10, 0, 0, 1));
        let mut frame = [&Mac::BROADCAST.octets()[..], &MAC.octets(), &[8, 6]].concat();
        frame.extend(zerocopy::IntoBytes::as_bytes(&announcement));
        let before = frame.clone();
        outwards(&mut frame);
        assert_eq!(frame[6..12], MAC.companion().octets());
        assert_eq!(arp::View::parse(&frame[14..]).unwrap().header().sender_mac, MAC.companion());
        outwards(&mut frame);
        assert_eq!(frame, before, "there and back");
        // A reply to the NIC's address.
        let mut frame = [&MAC.companion().octets()[..], &[2, 9, 9, 9, 9, 9, 8, 6]].concat();
        let asked = arp::Header::request(MAC.companion(), [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        frame.extend(zerocopy::IntoBytes::as_bytes(&asked.reply(Mac([2, 9, 9, 9, 9, 9]))));
        inwards(&mut frame);
        assert_eq!(frame[..6], MAC.octets());
        assert_eq!(arp::View::parse(&frame[14..]).unwrap().header().target_mac, MAC);
        // Not an ARP message: only the Ethernet address changes. A short frame: nothing does.
        let mut frame = [&MAC.companion().octets()[..], &[2, 9, 9, 9, 9, 9, 8, 0], &[0x42; 40]].concat();
        inwards(&mut frame);
        assert!(frame[..6] == MAC.octets() && frame[14..] == [0x42; 40]);
        for kind in [ndp::OPTION_SOURCE, ndp::OPTION_TARGET] {
            discovery_changes_as_it_leaves(kind);
        }
        let mut short = [2u8];
        inwards(&mut short);
        outwards(&mut []);
    }
}
