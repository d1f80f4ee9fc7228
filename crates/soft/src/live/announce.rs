//! ARP messages that make a network's neighbours send to another wire.
//!
//! Each neighbour that the network knows gets its own ARP messages, because a broadcast would also reach the hosts of
//! other networks on the segment. An unknown neighbour gets no message. It uses the old wire until its next ARP
//! request; each wire accepts the network's frames at any time.

use std::net::Ipv4Addr;

use hue_wire::Mac;

use super::steering::Link;

/// One message: the MAC address of `address` on a virtual port, to a neighbour there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Announcement {
    pub vport: u16,
    pub to: Mac,
    pub address: Ipv4Addr,
}

/// The messages for these neighbours. A neighbour gets one message for each address whose link it is on. A neighbour
/// that is on no link gets one for each address of the port. Neighbours with the same MAC address share messages.
pub(crate) fn announcements(
    addresses: &[(u16, Ipv4Addr, u8)],
    neighbours: &[(u16, Ipv4Addr, Mac)],
) -> Vec<Announcement> {
    let mut messages = Vec::new();
    for (vport, neighbour, to) in neighbours {
        let of_port = || addresses.iter().filter(|(of, _, _)| of == vport);
        let is_on_link = |(_, address, len): &&(u16, Ipv4Addr, u8)| {
            Link::new(*address, *len).contains(neighbour.to_bits())
        };
        let message = |(_, address, _): &(u16, Ipv4Addr, u8)| Announcement {
            vport: *vport,
            to: *to,
            address: *address,
        };
        let before = messages.len();
        messages.extend(of_port().filter(is_on_link).map(message));
        if messages.len() == before {
            messages.extend(of_port().map(message));
        }
    }
    messages.sort_unstable();
    messages.dedup();
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const TWO: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn told(neighbours: &[(u16, [u8; 4], Mac)]) -> Vec<(u16, Mac, [u8; 4])> {
        let addresses = [(0, [10, 0, 0, 1], 24), (0, [10, 9, 0, 1], 16), (1, [10, 0, 1, 1], 24)];
        let addresses = addresses.map(|(vport, address, len)| (vport, address.into(), len));
        let neighbours: Vec<_> =
            neighbours.iter().map(|(vport, address, mac)| (*vport, (*address).into(), *mac)).collect();
        let messages = announcements(&addresses, &neighbours);
        messages.iter().map(|one| (one.vport, one.to, one.address.octets())).collect()
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
}
