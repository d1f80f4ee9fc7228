//! Where frames go before their network's worker processes them: design select, homes, and the targets of group frames.
//!
//! Flow: control builds one [`Steering`] from all loaded networks and gives the same to every worker; it is replaced as a
//! whole, between batches. Each port and each network belongs to one worker, its home.
//!
//! Two rules beyond design select, for segments that several networks share:
//! - A unicast ARP message goes to the owner of its destination MAC, even if that network's other frames are selected
//!   differently. Otherwise a network selected by inner prefix or by port could not be resolved, or would answer for
//!   another network.
//! - A group frame reaches only the virtual ports that it concerns (once control has set their addresses): ports with
//!   the requested address for an ARP request, ports with the sender on their link for an announcement, a reply or an
//!   IPv4 packet.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hue_demux::{Demux, PortId, Target};
use hue_planes::Loss;
use hue_tables::Vid;
use hue_wire::{Mac, arp, ethernet, ipv4};

use super::beside::Beside;

/// Marks ports and networks without a home worker.
pub(crate) const NO_HOME: u8 = u8::MAX;

/// An address of a network on a virtual port, with the prefix length of its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub address: u32,
    pub len: u8,
}

impl Link {
    pub fn new(address: Ipv4Addr, len: u8) -> Self {
        Self { address: address.to_bits(), len }
    }

    /// Whether an address is on it.
    pub fn contains(&self, address: u32) -> bool {
        let shift = 32 - u32::from(self.len.min(32));
        (u64::from(self.address ^ address) >> shift) == 0
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
        sender: u32,
        target: u32,
    },
    Ipv4 {
        source: u32,
    },
    /// A frame that neither an IPv4 plane nor its control plane accepts.
    Other,
}

impl GroupFrame {
    pub fn of(frame: &[u8]) -> Self {
        let Some((header, rest)) = ethernet::Header::over(frame) else { return Self::Other };
        match header.ethertype() {
            ethernet::EtherType::ARP => match arp::View::parse(rest) {
                Ok(view) => Self::Arp {
                    request: view.header().operation() == arp::Operation::REQUEST,
                    sender: view.header().sender().to_bits(),
                    target: view.header().target().to_bits(),
                },
                Err(_) => Self::Arp { request: true, sender: 0, target: 0 },
            },
            ethernet::EtherType::IPV4 => {
                let source = ipv4::Header::over(rest).map(|(header, _)| header.source.get());
                Self::Ipv4 { source: source.unwrap_or_default() }
            }
            _ => Self::Other,
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
        Self { demux, network_homes, port_homes, beside, owners, links }
    }

    /// Steering without networks and ports.
    pub fn empty() -> Self {
        let homes = || vec![NO_HOME; usize::from(Vid::MAX) + 1].into_boxed_slice();
        let ports = vec![NO_HOME; PortId::COUNT].into_boxed_slice();
        let beside = Beside::new(&[], &[], &BTreeSet::new());
        Self::new(Arc::new(Demux::default()), homes(), ports, beside, std::iter::empty(), std::iter::empty())
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

    /// Why a group frame does not concern a virtual port; `None` when it does.
    pub fn foreign(&self, target: Target, frame: GroupFrame) -> Option<Loss> {
        let ports = self.links.get(target.vid.index())?.as_ref()?;
        let links = ports.get(usize::from(target.vport)).map(Vec::as_slice).unwrap_or_default();
        let on_link = |address: u32| links.iter().any(|link| link.contains(address));
        match frame {
            GroupFrame::Arp { request, sender, target } => {
                let asked = links.iter().any(|link| link.address == target);
                let told = on_link(sender) && (!request || sender == target);
                if asked || told { None } else { Some(Loss::ArpForeign) }
            }
            GroupFrame::Ipv4 { source } => {
                if source == 0 || on_link(source) {
                    None
                } else {
                    Some(Loss::GroupForeign)
                }
            }
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
        let link = Link { address: 0x0a00_0001, len: 24 };
        let links: VportLinks = Box::new([vec![link], vec![]]);
        let empty = Steering::empty();
        let (homes, ports) = (empty.network_homes, empty.port_homes);
        Steering::new(
            empty.demux,
            homes,
            ports,
            empty.beside,
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
        let arp = |request, sender, to, vport| {
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
        let ipv4 = |source| steering.foreign(target(1, 0), GroupFrame::Ipv4 { source });
        assert_eq!((ipv4(host), ipv4(0), ipv4(other)), (None, None, Some(Loss::GroupForeign)));
        let unknown = GroupFrame::Arp { request: true, sender: other, target: other };
        assert_eq!(steering.foreign(target(2, 0), unknown), None, "addresses are not known");
    }

    #[test]
    fn links_of_any_length_hold() {
        let link = |len| Link { address: 0x8000_0000, len };
        assert!(link(0).contains(1) && link(1).contains(u32::MAX) && !link(1).contains(1));
        assert!(link(32).contains(0x8000_0000) && !link(32).contains(0x8000_0001) && !link(99).contains(1));
    }
}
