//! The ARP guard: which ARP messages may reach a network's control plane.
//!
//! First come, first served: while the control plane knows a neighbour, a message that claims its address for another
//! MAC is dropped, so that a host cannot take over another's traffic on a shared segment. Control removes a neighbour
//! from the list when it no longer answers; then any host may claim the address. A claim to the router's own address is
//! always dropped. The Ethernet header does not matter: Linux trusts the message alone.

use std::net::Ipv4Addr;

use hue_wire::{Mac, arp, ethernet};

/// The addresses that a network's guard knows.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Guard {
    /// By virtual port and address, sorted.
    neighbours: Vec<((u16, u32), Mac)>,
    /// The network's own, sorted.
    own: Vec<(u16, u32)>,
}

impl Guard {
    /// Replaces the known neighbours.
    pub fn set_neighbours(&mut self, known: &[(u16, Ipv4Addr, Mac)]) {
        self.neighbours =
            known.iter().map(|(vport, address, mac)| ((*vport, address.to_bits()), *mac)).collect();
        self.neighbours.sort_unstable_by_key(|(key, _)| *key);
    }

    /// Replaces the network's own addresses.
    pub fn set_own(&mut self, own: &[(u16, Ipv4Addr, u8)]) {
        self.own = own.iter().map(|(vport, address, _)| (*vport, address.to_bits())).collect();
        self.own.sort_unstable();
    }

    /// Whether an ARP frame that arrived on a virtual port claims an address that is not its sender's.
    pub fn is_forged(&self, vport: u16, frame: &[u8]) -> bool {
        let Some((_, message)) = ethernet::Header::over(frame) else { return false };
        let Ok(message) = arp::View::parse(message) else { return false };
        let sender = (vport, message.header().sender().to_bits());
        if sender.1 == 0 {
            return false; // a probe claims nothing (RFC 5227 §1.1)
        }
        let known = self.neighbours.binary_search_by_key(&sender, |(key, _)| *key);
        let other = known.ok().and_then(|at| self.neighbours.get(at));
        other.is_some_and(|(_, mac)| *mac != message.header().sender_mac)
            || self.own.binary_search(&sender).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const GOOD: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const EVIL: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn frame(message: arp::Header) -> Vec<u8> {
        let mut bytes = Mac::BROADCAST.0.to_vec();
        bytes.extend(GOOD.0);
        bytes.extend([8, 6]);
        bytes.extend(message.as_bytes());
        bytes
    }

    #[test]
    fn a_known_neighbour_keeps_its_address() {
        let mut guard = Guard::default();
        let claim = |mac, address, vport, guard: &Guard| {
            guard.is_forged(vport, &frame(arp::Header::request(mac, address, OWN)))
        };
        assert!(!claim(EVIL, HOST, 0, &guard), "nobody holds it yet");
        guard.set_neighbours(&[(0, HOST, GOOD)]);
        guard.set_own(&[(0, OWN, 24)]);
        assert!(!claim(GOOD, HOST, 0, &guard));
        assert!(claim(EVIL, HOST, 0, &guard));
        assert!(!claim(EVIL, HOST, 1, &guard), "another port, another link");
        assert!(!claim(EVIL, Ipv4Addr::new(10, 0, 0, 3), 0, &guard));
        assert!(claim(EVIL, OWN, 0, &guard), "the router's own");
        assert!(!claim(EVIL, Ipv4Addr::UNSPECIFIED, 0, &guard), "a probe");
        guard.set_neighbours(&[]);
        assert!(!claim(EVIL, HOST, 0, &guard), "let go");
        assert!(!guard.is_forged(0, &[0; 20]));
    }
}
