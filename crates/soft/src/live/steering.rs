//! Where frames go before their network's worker processes them: design select, homes, and the targets of group frames.
//!
//! Flow: control builds one [`Steering`] from all loaded networks and gives the same to every worker; it is replaced as a
//! whole, between batches. Each port and each network belongs to one worker, its home.
//!
//! Rules beyond design select, for segments that several networks share:
//! - A unicast ARP message goes to the owner of its destination MAC, even if that network's other frames are selected
//!   differently. Otherwise a network selected by inner prefix or by port could not be resolved, or would answer for
//!   another network.
//! - A group frame reaches only the virtual ports that it concerns (once control has set their addresses): ports with
//!   the requested address for an ARP request or a neighbour solicitation, ports with the sender on their link for an
//!   announcement, a reply or an IP packet. Link-local addresses concern all: every link has them.
//! - With NICs beside a card's ports, a network that takes all frames of a port does not get what other networks take on the
//!   other wire, and what outside switches have flooded to this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hue_demux::{By, Demux, PortId, Selection, Target};
use hue_planes::Loss;
use hue_tables::Vid;
use hue_wire::{Mac, arp, ethernet, icmpv6, ip, ipv4, ipv6, ndp};

use super::beside::{Beside, OnNics};
use crate::tunnels::Tunnels;

/// Marks ports and networks without a home worker.
pub(crate) const NO_HOME: u8 = u8::MAX;

/// An address of a network on a virtual port, with the prefix length of its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub address: IpAddr,
    pub len: u8,
}

impl Link {
    pub fn new(address: impl Into<IpAddr>, len: u8) -> Self {
        Self { address: address.into(), len }
    }

    /// Whether an address is on it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (different, bits) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (u128::from(own.to_bits() ^ other.to_bits()), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits(), 128),
            _ => return false,
        };
        // No bit to compare is a shift by the width.
        different.checked_shr(bits - u32::from(self.len).min(bits)).unwrap_or_default() == 0
    }
}

/// See the head of this file.
pub(crate) struct Steering {
    pub demux: Arc<Demux>,
    /// Worker of each network, by VID.
    pub network_homes: Box<[u8]>,
    /// Worker of each open port, by id.
    pub port_homes: Box<[u8]>,
    pub beside: Beside,
    pub tunnels: Arc<Tunnels>,
    /// Virtual ports by port and MAC, sorted; several networks may have the same port and MAC.
    owners: Vec<(u64, Target)>,
    /// Addresses by VID and virtual port, of networks whose addresses are known.
    links: Box<[Option<VportLinks>]>,
}

/// The links of each virtual port of a network.
pub(crate) type VportLinks = Box<[Vec<Link>]>;

/// The properties of a group frame that decide which virtual ports it concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupFrame {
    Arp {
        request: bool,
        sender: Ipv4Addr,
        target: Ipv4Addr,
    },
    Ip {
        source: IpAddr,
    },
    /// A neighbour solicitation.
    Solicitation {
        source: IpAddr,
        target: Ipv6Addr,
    },
    /// A frame of another protocol.
    Other,
}

impl GroupFrame {
    pub fn of(frame: &[u8]) -> Self {
        let Some((header, rest)) = ethernet::Header::over(frame) else { return Self::Other };
        match header.ethertype() {
            ethernet::EtherType::ARP => match arp::View::parse(rest) {
                Ok(view) => Self::Arp {
                    request: view.header().operation() == arp::Operation::REQUEST,
                    sender: view.header().sender(),
                    target: view.header().target(),
                },
                Err(_) => {
                    Self::Arp { request: true, sender: Ipv4Addr::UNSPECIFIED, target: Ipv4Addr::UNSPECIFIED }
                }
            },
            ethernet::EtherType::IPV4 => {
                let source = ipv4::Header::over(rest).map(|(header, _)| header.source());
                Self::Ip { source: source.unwrap_or(Ipv4Addr::UNSPECIFIED).into() }
            }
            ethernet::EtherType::IPV6 => Self::of_ipv6(rest),
            _ => Self::Other,
        }
    }

    /// A solicitation is recognised directly behind the header, where hosts send it; behind other headers it is a packet
    /// like any other, which the guard examines.
    fn of_ipv6(packet: &[u8]) -> Self {
        let Some((header, payload)) = ipv6::Header::over(packet) else {
            return Self::Ip { source: Ipv6Addr::UNSPECIFIED.into() };
        };
        let source = header.source().into();
        let solicitation = ndp::View::parse(payload).ok().filter(|view| {
            header.next_header == ip::Protocol::ICMPV6
                && view.header().icmpv6.kind == icmpv6::Type::NEIGHBOR_SOLICITATION
        });
        match solicitation {
            Some(view) => Self::Solicitation { source, target: view.header().target() },
            None => Self::Ip { source },
        }
    }
}

fn key(port: PortId, mac: Mac) -> u64 {
    mac.to_u64() | u64::from(port.get()) << 48
}

impl Steering {
    /// Steering for these virtual ports (port, MAC, target) and these known addresses.
    pub fn new(
        demux: Arc<Demux>,
        network_homes: Box<[u8]>,
        port_homes: Box<[u8]>,
        beside: Beside,
        tunnels: Arc<Tunnels>,
        vports: impl Iterator<Item = (PortId, Mac, Target)>,
        addresses: impl Iterator<Item = (Vid, VportLinks)>,
    ) -> Self {
        let mut owners: Vec<(u64, Target)> =
            vports.map(|(port, mac, target)| (key(port, mac), target)).collect();
        owners.sort_unstable();
        let mut links: Box<[Option<VportLinks>]> = (0..=usize::from(Vid::MAX)).map(|_| None).collect();
        for (vid, ports) in addresses {
            if let Some(place) = links.get_mut(vid.index()) {
                *place = Some(ports);
            }
        }
        Self { demux, network_homes, port_homes, beside, tunnels, owners, links }
    }

    /// Steering without networks and ports.
    pub fn empty() -> Self {
        let homes = || vec![NO_HOME; usize::from(Vid::MAX) + 1].into_boxed_slice();
        let ports = vec![NO_HOME; PortId::COUNT].into_boxed_slice();
        let beside = Beside::new(&[], &[], &OnNics::default());
        let (demux, tunnels) = (Arc::new(Demux::default()), Arc::default());
        Self::new(demux, homes(), ports, beside, tunnels, std::iter::empty(), std::iter::empty())
    }

    pub fn network_home(&self, vid: Vid) -> u8 {
        self.network_homes.get(vid.index()).copied().unwrap_or(NO_HOME)
    }

    pub fn port_home(&self, port: PortId) -> u8 {
        self.port_homes.get(port.index()).copied().unwrap_or(NO_HOME)
    }

    /// The `nth` virtual port that a unicast ARP message to this MAC is for.
    pub fn owner(&self, port: PortId, frame: &[u8], nth: usize) -> Option<Target> {
        let mac = Mac(*frame.first_chunk::<6>()?);
        let key = key(port, mac);
        let first = self.owners.partition_point(|(other, _)| *other < key);
        self.owners.get(first + nth).filter(|(other, _)| *other == key).map(|(_, target)| *target)
    }

    /// The owner of a unicast ARP message that no MAC row selects, if there is exactly one.
    pub fn arp_owner(&self, port: PortId, frame: &[u8]) -> Option<Target> {
        let arp = frame.get(12..14) == Some(&ethernet::EtherType::ARP.0.to_be_bytes()[..]);
        let unicast = frame.first().is_some_and(|byte| byte & 1 == 0);
        if !arp
            || !unicast
            || self.demux.select_mac(port, frame).is_some()
            || self.owner(port, frame, 1).is_some()
        {
            return None;
        }
        self.owner(port, frame, 0)
    }

    /// Whether a unicast frame, which a network takes because it takes all frames of this port or of the NIC beside it, is another
    /// network's on the other wire.
    pub fn is_for_another(&self, whole: Target, front: PortId, by_nic: bool, frame: &[u8]) -> bool {
        if !by_nic {
            let other = self.beside.nic(front).and_then(|nic| self.beside.target(nic, frame));
            return other.is_some_and(|other| !self.beside.keeps_macs(other.vid));
        }
        let is_arp = frame.get(12..14) == Some(&ethernet::EtherType::ARP.0.to_be_bytes()[..]);
        let resolved = if is_arp { self.owner(front, frame, 0) } else { None };
        match (resolved, self.demux.select(front, frame)) {
            (Some(owner), _) => owner.vid != whole.vid,
            (None, Selection::One(_, by)) => by != By::Port,
            (None, Selection::Several(_) | Selection::Nobody) => false,
        }
    }

    /// Why a group frame does not concern a virtual port; `None` when it does.
    pub fn foreign(&self, target: Target, frame: GroupFrame) -> Option<Loss> {
        let ports = self.links.get(target.vid.index())?.as_ref()?;
        let links = ports.get(usize::from(target.vport)).map(Vec::as_slice).unwrap_or_default();
        let on_link = |address: IpAddr| links.iter().any(|link| link.contains(address));
        let has = |address: IpAddr| links.iter().any(|link| link.address == address);
        let concerns_sender = |source: IpAddr| {
            let anywhere =
                source.is_unspecified() || matches!(source, IpAddr::V6(one) if one.is_unicast_link_local());
            if anywhere || on_link(source) { None } else { Some(Loss::GroupForeign) }
        };
        match frame {
            GroupFrame::Arp { request, sender, target } => {
                let told = on_link(sender.into()) && (!request || sender == target);
                if has(target.into()) || told { None } else { Some(Loss::ArpForeign) }
            }
            GroupFrame::Solicitation { target, .. } if has(target.into()) => None,
            // Control may not know the link-local addresses of the network's control plane.
            GroupFrame::Solicitation { source, target } if target.is_unicast_link_local() => {
                concerns_sender(source)
            }
            GroupFrame::Solicitation { .. } => Some(Loss::ArpForeign),
            GroupFrame::Ip { source } => concerns_sender(source),
            GroupFrame::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P0: PortId = PortId::new(0);

    fn target(id: u16, vport: u16) -> Target {
        Target { vid: Vid::new(id).unwrap(), vport }
    }

    fn steering() -> Steering {
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let vports = [
            (P0, mac, target(1, 0)),
            (PortId::new(1), mac, target(3, 0)),
            (P0, mac, target(2, 0)),
            (P0, Mac([2, 0, 0, 0, 0, 2]), target(3, 1)),
        ];
        let link = Link::new(Ipv4Addr::new(10, 0, 0, 1), 24);
        let wide = Link::new("2001:db8::1".parse::<Ipv6Addr>().unwrap(), 64);
        let links: VportLinks = Box::new([vec![link, wide], vec![]]);
        let empty = Steering::empty();
        let (homes, ports) = (empty.network_homes, empty.port_homes);
        Steering::new(
            empty.demux,
            homes,
            ports,
            empty.beside,
            empty.tunnels,
            vports.into_iter(),
            [(target(1, 0).vid, links)].into_iter(),
        )
    }

    #[test]
    fn owners_are_found_by_port_and_mac() {
        let steering = steering();
        let owners = |port, last| -> Vec<Target> {
            let frame = [2, 0, 0, 0, 0, last];
            (0..).map_while(|nth| steering.owner(port, &frame, nth)).collect()
        };
        assert_eq!(owners(P0, 1), [target(1, 0), target(2, 0)]);
        assert_eq!(owners(PortId::new(1), 1), [target(3, 0)]);
        assert_eq!(owners(P0, 2), [target(3, 1)]);
        assert!(owners(P0, 9).is_empty() && owners(PortId::new(9), 1).is_empty());
    }

    #[test]
    fn a_group_frame_concerns_those_on_its_link() {
        let steering = steering();
        let arp = |request, sender: u32, to: u32, vport| {
            let (sender, to) = (Ipv4Addr::from_bits(sender), Ipv4Addr::from_bits(to));
            steering.foreign(target(1, vport), GroupFrame::Arp { request, sender, target: to })
        };
        let (own, host, other) = (0x0a00_0001, 0x0a00_0007, 0x0a00_0107);
        assert_eq!(arp(true, host, own, 0), None, "asked for");
        assert_eq!(arp(true, 0, own, 0), None, "a probe");
        assert_eq!(arp(true, host, host, 0), None, "an announcement");
        assert_eq!(arp(false, host, 9, 0), None, "a reply");
        assert_eq!(arp(true, host, 0x0a00_0008, 0), Some(Loss::ArpForeign), "between hosts");
        assert_eq!(arp(true, other, other, 0), Some(Loss::ArpForeign), "of another link");
        assert_eq!(arp(true, host, own, 1), Some(Loss::ArpForeign), "no address there");
        assert_eq!(arp(true, host, own, 9), Some(Loss::ArpForeign), "no such port");
        let ipv4 = |source| {
            steering.foreign(target(1, 0), GroupFrame::Ip { source: Ipv4Addr::from_bits(source).into() })
        };
        assert_eq!((ipv4(host), ipv4(0), ipv4(other)), (None, None, Some(Loss::GroupForeign)));
        let other = Ipv4Addr::from_bits(other);
        let unknown = GroupFrame::Arp { request: true, sender: other, target: other };
        assert_eq!(steering.foreign(target(2, 0), unknown), None, "addresses are not known");
    }

    /// A packet of neighbour discovery from `source`, of this ICMPv6 type about `target`.
    fn discovery(source: &str, kind: u8, target: &str) -> Vec<u8> {
        let mut frame = vec![0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, 0, 24, 58, 255]);
        frame.extend(source.parse::<Ipv6Addr>().unwrap().octets());
        frame.extend("ff02::1".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(target.parse::<Ipv6Addr>().unwrap().octets());
        frame
    }

    #[test]
    fn a_group_frame_of_ipv6_concerns_those_on_its_link() {
        let steering = steering();
        let foreign = |source: &str, kind, to: &str| {
            steering.foreign(target(1, 0), GroupFrame::of(&discovery(source, kind, to)))
        };
        let (own, host, other) = ("2001:db8::1", "2001:db8::7", "2001:db8:0:1::7");
        assert_eq!(foreign(host, 135, own), None, "asked for");
        assert_eq!(foreign("::", 135, own), None, "a probe");
        assert_eq!(foreign(other, 135, own), None, "asked for from anywhere, as by ARP");
        assert_eq!(foreign(host, 135, host), Some(Loss::ArpForeign), "between hosts");
        assert_eq!(foreign("fe80::7", 135, host), Some(Loss::ArpForeign));
        assert_eq!(foreign("fe80::7", 135, "fe80::1"), None, "perhaps the control plane's");
        assert_eq!(foreign(other, 135, "fe80::1"), Some(Loss::GroupForeign));
        assert_eq!(foreign(host, 136, host), None, "an advertisement to all nodes");
        assert_eq!(foreign(other, 136, other), Some(Loss::GroupForeign));
        assert_eq!((foreign("fe80::7", 134, own), foreign("::", 143, own)), (None, None));
        let cut = discovery(host, 135, host);
        assert_eq!(GroupFrame::of(&cut[..50]), GroupFrame::Ip { source: Ipv6Addr::UNSPECIFIED.into() });
        let source = IpAddr::V6(host.parse().unwrap());
        assert_eq!(GroupFrame::of(&cut[..60]), GroupFrame::Ip { source });
    }

    #[test]
    fn links_of_any_length_hold() {
        let link = |len| Link::new(Ipv4Addr::from_bits(0x8000_0000), len);
        let at = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
        assert!(link(0).contains(at(1)) && link(1).contains(at(u32::MAX)) && !link(1).contains(at(1)));
        assert!(link(32).contains(at(0x8000_0000)) && !link(32).contains(at(0x8000_0001)));
        assert!(!link(99).contains(at(1)));
        let wide = |len| Link::new(Ipv6Addr::from_bits(1 << 127), len);
        let at6 = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
        assert!(wide(0).contains(at6(1)) && wide(1).contains(at6(u128::MAX)) && !wide(1).contains(at6(1)));
        assert!(wide(128).contains(at6(1 << 127)) && !wide(128).contains(at6(1 << 127 | 1)));
        assert!(!wide(0).contains(at(0)) && !link(0).contains(at6(0)), "another family");
    }
}
