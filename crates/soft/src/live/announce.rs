//! Messages that make a network's neighbours send to another wire: ARP announcements (RFC 5227 §2.3), and unsolicited
//! neighbour advertisements (RFC 4861 §7.2.6).
//!
//! Each neighbour that the network knows gets its own messages, because a broadcast would also reach the hosts of
//! other networks on the segment. An unknown neighbour gets no message. It uses the old wire until its next
//! request; each wire accepts the network's frames at any time.

use std::net::{IpAddr, Ipv6Addr};

use hue_wire::{Mac, arp, ethernet, icmpv6, ip, ipv6, ndp};
use zerocopy::IntoBytes;

use super::steering::Link;

/// One message: the MAC address of `address` on a virtual port, to a neighbour there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Announcement {
    pub vport: u16,
    pub to: Mac,
    pub address: IpAddr,
    /// The neighbour's own address, of the same family.
    pub neighbour: IpAddr,
}

/// Shortest frame on an Ethernet wire, without its check sequence, bytes (IEEE 802.3 §4A.4.2).
pub(crate) const FRAME_BYTES_LEAST: usize = 60;
/// Bytes of the longest message.
pub(crate) const MESSAGE_BYTES_MAX: usize =
    ethernet::HEADER_BYTES + ipv6::HEADER_BYTES + ndp::MESSAGE_BYTES + OPTION_BYTES;
/// Bytes of an option with a MAC address.
const OPTION_BYTES: usize = 8;

impl Announcement {
    /// Writes the message as a frame from `own`, the MAC address of the virtual port. Returns its length.
    pub fn frame(&self, own: Mac, frame: &mut [u8; MESSAGE_BYTES_MAX]) -> usize {
        let mut end = 0;
        let mut push = |bytes: &[u8]| {
            frame.iter_mut().skip(end).zip(bytes).for_each(|(to, from)| *to = *from);
            end += bytes.len();
        };
        match (self.address, self.neighbour) {
            (IpAddr::V4(address), _) => {
                push(ethernet::Header::new(self.to, own, ethernet::EtherType::ARP).as_bytes());
                push(arp::Header::announcement(own, address).as_bytes());
                FRAME_BYTES_LEAST
            }
            (IpAddr::V6(address), neighbour) => {
                let neighbour = match neighbour {
                    IpAddr::V6(neighbour) => neighbour,
                    IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED, // addresses are of one family
                };
                let mut message = [0; ndp::MESSAGE_BYTES + OPTION_BYTES];
                let flags = ndp::FLAG_ROUTER | ndp::FLAG_OVERRIDE;
                let fixed = ndp::Header::advertisement(address, flags);
                let option = [ndp::OPTION_TARGET, 1].into_iter().chain(own.octets());
                let bytes = fixed.as_bytes().iter().copied().chain(option);
                message.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
                let payload_bytes = message.len() as u16;
                if let Ok(mut view) = icmpv6::ViewMut::parse(&mut message) {
                    view.fill_checksum(address, neighbour);
                }
                let protocol = ip::Protocol::ICMPV6;
                push(ethernet::Header::new(self.to, own, ethernet::EtherType::IPV6).as_bytes());
                push(ipv6::Header::new(address, neighbour, protocol, 255, payload_bytes).as_bytes());
                push(&message);
                MESSAGE_BYTES_MAX
            }
        }
    }
}

/// A frame in the name of a MAC address, from which switches learn where it is, as hypervisors announce guests that have moved (RARP, RFC 903).
pub(crate) fn of_mac(mac: Mac) -> [u8; FRAME_BYTES_LEAST] {
    let mut frame = [0; FRAME_BYTES_LEAST];
    let header = ethernet::Header::new(Mac::BROADCAST, mac, ethernet::EtherType::RARP);
    let message = arp::Header::reverse_request(mac);
    let bytes = header.as_bytes().iter().chain(message.as_bytes());
    frame.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    frame
}

/// The messages for these neighbours. A neighbour gets one message for each address whose link it is on. A neighbour
/// that is on no link gets one for each address of the port. Neighbours with the same MAC address share messages.
pub(crate) fn announcements(
    addresses: &[(u16, IpAddr, u8)],
    neighbours: &[(u16, IpAddr, Mac)],
) -> Vec<Announcement> {
    let mut messages = Vec::new();
    for (vport, neighbour, to) in neighbours {
        let same_family = |address: &IpAddr| address.is_ipv4() == neighbour.is_ipv4();
        let of_port = || addresses.iter().filter(|(of, address, _)| of == vport && same_family(address));
        let is_on_link =
            |(_, address, len): &&(u16, IpAddr, u8)| Link::new(*address, *len).contains(*neighbour);
        let message = |(_, address, _): &(u16, IpAddr, u8)| Announcement {
            vport: *vport,
            to: *to,
            address: *address,
            neighbour: *neighbour,
        };
        let before = messages.len();
        messages.extend(of_port().filter(is_on_link).map(message));
        if messages.len() == before {
            messages.extend(of_port().map(message));
        }
    }
    messages.sort_unstable();
    messages.dedup_by_key(|one| (one.vport, one.to, one.address));
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const TWO: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn told(neighbours: &[(u16, [u8; 4], Mac)]) -> Vec<(u16, Mac, [u8; 4])> {
        let addresses = [(0, [10, 0, 0, 1], 24), (0, [10, 9, 0, 1], 16), (1, [10, 0, 1, 1], 24)];
        let addresses = addresses.map(|(vport, address, len)| (vport, IpAddr::from(address), len));
        let neighbours: Vec<_> =
            neighbours.iter().map(|(vport, address, mac)| (*vport, IpAddr::from(*address), *mac)).collect();
        let messages = announcements(&addresses, &neighbours);
        let octets = |address| match address {
            IpAddr::V4(address) => address.octets(),
            IpAddr::V6(address) => panic!("{address}"),
        };
        messages.iter().map(|one| (one.vport, one.to, octets(one.address))).collect()
    }

    #[test]
    fn neighbours_hear_of_their_link() {
        assert_eq!(told(&[]), [], "without neighbours there are no messages");
        assert_eq!(told(&[(0, [10, 0, 0, 7], ONE)]), [(0, ONE, [10, 0, 0, 1])]);
        assert_eq!(told(&[(1, [10, 0, 1, 7], TWO)]), [(1, TWO, [10, 0, 1, 1])]);
        // The neighbour's port matters, not only its address.
        assert_eq!(told(&[(1, [10, 0, 0, 7], TWO)]), [(1, TWO, [10, 0, 1, 1])]);
        // On no link: any of the port's addresses may be its next hop.
        assert_eq!(told(&[(0, [192, 0, 2, 1], ONE)]), [(0, ONE, [10, 0, 0, 1]), (0, ONE, [10, 9, 0, 1])]);
        // A host with two addresses gets one message.
        assert_eq!(
            told(&[(0, [10, 0, 0, 8], TWO), (0, [10, 0, 0, 7], ONE), (0, [10, 0, 0, 9], ONE)]),
            [(0, ONE, [10, 0, 0, 1]), (0, TWO, [10, 0, 0, 1])]
        );
    }

    /// Each family for itself: a neighbour by both hears of both.
    #[test]
    fn a_neighbour_hears_of_its_own_family() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let addresses = [(0, at("10.0.0.1"), 24), (0, at("2001:db8::1"), 64), (0, at("fe80::1"), 64)];
        let told = |neighbour: &str| -> Vec<String> {
            let messages = announcements(&addresses, &[(0, at(neighbour), ONE)]);
            messages.iter().map(|one| one.address.to_string()).collect()
        };
        assert_eq!(told("10.0.0.7"), ["10.0.0.1"]);
        assert_eq!(told("2001:db8::7"), ["2001:db8::1"]);
        assert_eq!(told("fe80::7"), ["fe80::1"]);
        assert_eq!(told("2001:db8:1::7"), ["2001:db8::1", "fe80::1"], "on no link");
        let twice = [(0, at("2001:db8::8"), ONE), (0, at("2001:db8::7"), ONE)];
        let messages = announcements(&addresses, &twice);
        assert_eq!(messages.iter().map(|one| one.neighbour).collect::<Vec<_>>(), [at("2001:db8::7")]);
    }

    #[test]
    fn an_advertisement_is_as_rfc_4861_has_it() {
        let (address, neighbour) = ("2001:db8::1".parse().unwrap(), "2001:db8::7".parse().unwrap());
        let one = Announcement { vport: 0, to: ONE, address, neighbour };
        let mut frame = [0; MESSAGE_BYTES_MAX];
        let bytes = one.frame(TWO, &mut frame);
        let (ethernet, packet) = ethernet::Header::over(&frame[..bytes]).unwrap();
        assert_eq!((ethernet.destination(), ethernet.source()), (ONE, TWO));
        let view = ipv6::View::parse(packet).unwrap();
        let header = view.header();
        assert_eq!(
            (IpAddr::V6(header.source()), IpAddr::V6(header.destination()), header.hop_limit),
            (address, neighbour, 255)
        );
        let message = view.upper().unwrap().payload;
        let icmpv6 = icmpv6::View::parse(message).unwrap();
        assert!(icmpv6.checksum_ok(header.source(), header.destination()));
        let message = ndp::View::parse(message).unwrap();
        assert_eq!(message.header().flags(), ndp::FLAG_ROUTER | ndp::FLAG_OVERRIDE);
        assert_eq!((IpAddr::V6(message.header().target()), message.mac()), (address, Some(TWO)));
        assert_eq!(bytes, frame.len());
    }
}
