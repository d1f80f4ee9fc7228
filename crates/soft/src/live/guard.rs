//! The guard: which ARP messages, and which messages of neighbour discovery, may reach a network's control plane.
//!
//! First come, first served (as RFC 6620 for IPv6): while the control plane knows a neighbour, a message that claims its
//! address for another MAC is dropped, so that a host cannot take over another's traffic on a shared segment. Control
//! removes a neighbour from the list when it no longer answers; then any host may claim the address. A claim to the
//! router's own address is always dropped. Linux trusts the message alone, so the Ethernet header matters only for a
//! message that Linux believes without a MAC address in it.
//!
//! Claims of neighbour discovery are the source address with its link-layer option (solicitations, router advertisements),
//! and the target with its own (advertisements, redirects): RFC 4861 §4, RFC 3756 §4. The kernel finds a message behind
//! extension headers too, so the guard walks them. What it cannot follow to the end is [`Judgement::Unclear`]. Messages
//! with another hop limit than 255 come from other links (RFC 4861 §6.1, §7.1, §8.1), and those in fragments must be
//! ignored (RFC 6980): both count as forged.

use std::net::{IpAddr, Ipv6Addr};

use hue_wire::{Mac, arp, ethernet, icmpv6, ip, ipv6, ndp};

/// The addresses that a network's guard knows.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Guard {
    /// By virtual port and address, sorted.
    neighbours: Vec<((u16, IpAddr), Mac)>,
    /// The network's own, sorted.
    own: Vec<(u16, IpAddr)>,
}

/// What the guard says about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Judgement {
    /// It claims nothing, or what is its sender's.
    Fine,
    /// It claims what is another's.
    Forged,
    /// It may contain a message: its headers cannot be followed to the end.
    Unclear,
}

impl Judgement {
    const fn forged(forged: bool) -> Self {
        if forged { Self::Forged } else { Self::Fine }
    }
}

impl Guard {
    /// Replaces the known neighbours.
    pub fn set_neighbours(&mut self, known: &[(u16, IpAddr, Mac)]) {
        self.neighbours = known.iter().map(|(vport, address, mac)| ((*vport, *address), *mac)).collect();
        self.neighbours.sort_unstable_by_key(|(key, _)| *key);
    }

    /// Replaces the network's own addresses.
    pub fn set_own(&mut self, own: &[(u16, IpAddr, u8)]) {
        self.own = own.iter().map(|(vport, address, _)| (*vport, *address)).collect();
        self.own.sort_unstable();
    }

    /// Judges a frame that arrived on a virtual port.
    pub fn judge(&self, vport: u16, frame: &[u8]) -> Judgement {
        let Some((header, packet)) = ethernet::Header::over(frame) else { return Judgement::Fine };
        match header.ethertype() {
            ethernet::EtherType::ARP => self.judge_arp(vport, packet),
            ethernet::EtherType::IPV6 => self.judge_ipv6(vport, header.source(), packet),
            _ => Judgement::Fine,
        }
    }

    fn judge_arp(&self, vport: u16, message: &[u8]) -> Judgement {
        let Ok(message) = arp::View::parse(message) else { return Judgement::Fine };
        let sender = message.header().sender();
        // A probe claims nothing (RFC 5227 §1.1).
        Judgement::forged(
            !sender.is_unspecified() && self.is_anothers(vport, sender, [message.header().sender_mac]),
        )
    }

    fn judge_ipv6(&self, vport: u16, from: Mac, packet: &[u8]) -> Judgement {
        let Ok(view) = ipv6::View::parse(packet) else { return Judgement::Fine };
        let Ok(upper) = view.upper() else { return Judgement::Unclear };
        if view.extensions().flatten().filter(|one| one.fragment().is_some()).count() > 1 {
            return Judgement::Unclear;
        }
        // Without its first fragment a packet is not put together.
        if upper.protocol != ip::Protocol::ICMPV6 || !upper.starts_transport() {
            return Judgement::Fine;
        }
        match upper.payload.first() {
            Some(kind) if !icmpv6::Type(*kind).is_neighbor_discovery() => Judgement::Fine,
            // The type may be in the next fragment.
            None if upper.fragment.is_some() => Judgement::Unclear,
            None => Judgement::Fine,
            Some(_) if upper.fragment.is_some() || view.header().hop_limit != 255 => Judgement::Forged,
            Some(_) => Judgement::forged(self.is_forged(vport, from, view.header().source(), upper.payload)),
        }
    }

    /// Whether a message of neighbour discovery claims what is another's. One that is not valid is forged too.
    fn is_forged(&self, vport: u16, from: Mac, source: Ipv6Addr, message: &[u8]) -> bool {
        let Ok(message) = ndp::Message::parse(message) else { return true };
        let is_wrong = |option: Result<ndp::Opt<'_>, _>| {
            let claims = |one: &ndp::Opt<'_>| matches!(one.kind, ndp::OPTION_SOURCE | ndp::OPTION_TARGET);
            option.map_or(true, |option| claims(&option) && option.mac().is_none())
        };
        if message.options().any(is_wrong) {
            return true;
        }
        // Linux believes the first option of a type; a message with several is judged by all of them.
        let macs = |kind| {
            message.options().flatten().filter(move |one| one.kind == kind).filter_map(|one| one.mac())
        };
        let of_source = || macs(ndp::OPTION_SOURCE);
        let of_target = || macs(ndp::OPTION_TARGET);
        let target = message.target().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let kind = message.kind();
        // Without an option these change what the kernel thinks of a neighbour whose address they name: the state of an
        // entry, the role of a router, a route.
        let speaks_for = match kind {
            icmpv6::Type::NEIGHBOR_ADVERTISEMENT => Some((target, of_target().next().is_none())),
            icmpv6::Type::ROUTER_ADVERTISEMENT => Some((source, of_source().next().is_none())),
            icmpv6::Type::REDIRECT => Some((source, true)),
            _ => None,
        };
        if speaks_for.is_some_and(|(address, alone)| alone && self.is_anothers(vport, address, [from])) {
            return true;
        }
        let claims_target = matches!(kind, icmpv6::Type::NEIGHBOR_ADVERTISEMENT | icmpv6::Type::REDIRECT);
        // A probe claims nothing (RFC 4862 §5.4).
        !source.is_unspecified() && self.is_anothers(vport, source, of_source())
            || claims_target && self.is_anothers(vport, target, of_target())
    }

    /// Whether an address belongs to the network itself, or to a neighbour that is known under another MAC than one of
    /// these.
    fn is_anothers(
        &self,
        vport: u16,
        address: impl Into<IpAddr>,
        macs: impl IntoIterator<Item = Mac>,
    ) -> bool {
        let key = (vport, address.into());
        let known = self.neighbours.binary_search_by_key(&key, |(key, _)| *key);
        let known = known.ok().and_then(|at| self.neighbours.get(at));
        known.is_some_and(|(_, mac)| macs.into_iter().any(|other| other != *mac))
            || self.own.binary_search(&key).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

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
            guard.judge(vport, &frame(arp::Header::request(mac, address, OWN))) == Judgement::Forged
        };
        assert!(!claim(EVIL, HOST, 0, &guard), "nobody holds it yet");
        guard.set_neighbours(&[(0, HOST.into(), GOOD)]);
        guard.set_own(&[(0, OWN.into(), 24)]);
        assert!(!claim(GOOD, HOST, 0, &guard));
        assert!(claim(EVIL, HOST, 0, &guard));
        assert!(!claim(EVIL, HOST, 1, &guard), "another port, another link");
        assert!(!claim(EVIL, Ipv4Addr::new(10, 0, 0, 3), 0, &guard));
        assert!(claim(EVIL, OWN, 0, &guard), "the router's own");
        assert!(!claim(EVIL, Ipv4Addr::UNSPECIFIED, 0, &guard), "a probe");
        guard.set_neighbours(&[]);
        assert!(!claim(EVIL, HOST, 0, &guard), "let go");
        assert_eq!(guard.judge(0, &[0; 20]), Judgement::Fine);
    }

    const OWN6: &str = "2001:db8::1";
    const HOST6: &str = "2001:db8::2";
    const FREE6: &str = "2001:db8::3";

    fn guard() -> Guard {
        let mut guard = Guard::default();
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        guard.set_neighbours(&[(0, at(HOST6), GOOD), (0, at("fe80::2"), GOOD), (0, HOST.into(), GOOD)]);
        guard.set_own(&[(0, at(OWN6), 64), (0, at("fe80::1"), 64)]);
        guard
    }

    /// A message of neighbour discovery: type, target, options as (type, MAC).
    fn message(kind: u8, target: &str, options: &[(u8, Mac)]) -> Vec<u8> {
        let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        let target = target.parse::<Ipv6Addr>().unwrap().octets();
        match kind {
            134 => bytes.extend([0; 8]),
            135 | 136 => bytes.extend(target),
            137 => bytes.extend([target, target].concat()),
            _ => {}
        }
        for (kind, mac) in options {
            bytes.extend([*kind, 1]);
            bytes.extend(mac.0);
        }
        bytes
    }

    fn packet(eth: Mac, source: &str, hop_limit: u8, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x33, 0x33, 0, 0, 0, 1];
        bytes.extend(eth.0);
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend([next, hop_limit]);
        bytes.extend(source.parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend("ff02::1".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend(payload);
        bytes
    }

    fn judged(eth: Mac, source: &str, message: &[u8]) -> Judgement {
        guard().judge(0, &packet(eth, source, 255, 58, message))
    }

    /// Source, type, target, option, and the result for the neighbour and for another host.
    type Case = (&'static str, u8, &'static str, Option<u8>, Judgement, Judgement);

    #[test]
    fn discovery_may_claim_what_is_free_or_its_own() {
        use Judgement::{Fine, Forged};
        let (s, t) = (ndp::OPTION_SOURCE, ndp::OPTION_TARGET);
        let cases: [Case; 26] = [
            (HOST6, 135, OWN6, Some(s), Fine, Forged),
            (HOST6, 135, OWN6, None, Fine, Fine),
            ("fe80::2", 135, OWN6, Some(s), Fine, Forged),
            (FREE6, 135, OWN6, Some(s), Fine, Fine),
            ("::", 135, OWN6, None, Fine, Fine),
            ("::", 135, HOST6, None, Fine, Fine),
            (OWN6, 135, HOST6, Some(s), Forged, Forged),
            (OWN6, 135, HOST6, None, Forged, Forged),
            ("fe80::1", 133, "::", None, Forged, Forged),
            (HOST6, 136, HOST6, Some(t), Fine, Forged),
            (HOST6, 136, HOST6, None, Fine, Forged),
            ("fe80::9", 136, HOST6, Some(t), Fine, Forged),
            ("fe80::9", 136, FREE6, Some(t), Fine, Fine),
            ("fe80::9", 136, OWN6, Some(t), Forged, Forged),
            ("fe80::9", 136, OWN6, None, Forged, Forged),
            ("::", 136, OWN6, Some(t), Forged, Forged),
            ("fe80::2", 133, "::", Some(s), Fine, Forged),
            ("fe80::9", 133, "::", Some(s), Fine, Fine),
            ("fe80::2", 134, "::", Some(s), Fine, Forged),
            ("fe80::2", 134, "::", None, Fine, Forged),
            ("fe80::9", 134, "::", None, Fine, Fine),
            ("fe80::1", 134, "::", Some(s), Forged, Forged),
            ("fe80::2", 137, FREE6, Some(t), Fine, Forged),
            ("fe80::9", 137, HOST6, Some(t), Fine, Forged),
            ("fe80::9", 137, OWN6, Some(t), Forged, Forged),
            ("fe80::9", 137, FREE6, None, Fine, Fine),
        ];
        for (source, kind, target, option, good, evil) in cases {
            for (mac, wanted) in [(GOOD, good), (EVIL, evil)] {
                let options: Vec<_> = option.into_iter().map(|kind| (kind, mac)).collect();
                let found = judged(mac, source, &message(kind, target, &options));
                assert_eq!(found, wanted, "{kind} from {source} about {target}, {option:?}, {mac}");
            }
        }
        let other_port = packet(EVIL, HOST6, 255, 58, &message(135, OWN6, &[(s, EVIL)]));
        assert_eq!(guard().judge(1, &other_port), Fine, "another port, another link");
    }

    #[test]
    fn a_claim_cannot_hide_in_options() {
        let (s, t) = (ndp::OPTION_SOURCE, ndp::OPTION_TARGET);
        let judge = |options: &[(u8, Mac)]| judged(GOOD, HOST6, &message(135, OWN6, options));
        assert_eq!(judge(&[(s, GOOD), (s, EVIL)]), Judgement::Forged, "two options");
        assert_eq!(judge(&[(s, EVIL), (s, GOOD)]), Judgement::Forged);
        assert_eq!(judge(&[(14, EVIL), (s, EVIL)]), Judgement::Forged, "behind a nonce");
        assert_eq!(judge(&[(t, EVIL)]), Judgement::Fine, "an option that the message does not have");
        let mut message = message(135, OWN6, &[(s, GOOD)]);
        message[25] = 0;
        assert_eq!(judged(GOOD, HOST6, &message), Judgement::Forged, "of length 0");
        message[25] = 2;
        message.extend([0; 8]);
        assert_eq!(judged(GOOD, HOST6, &message), Judgement::Forged, "not of Ethernet");
        for cut in 1..24 {
            assert_eq!(judged(GOOD, FREE6, &message[..cut]), Judgement::Forged, "{cut} bytes");
        }
    }

    #[test]
    fn a_message_of_another_link_is_forged() {
        let message = message(135, OWN6, &[(ndp::OPTION_SOURCE, GOOD)]);
        for hop_limit in [0, 1, 64, 254] {
            let frame = packet(GOOD, HOST6, hop_limit, 58, &message);
            assert_eq!(guard().judge(0, &frame), Judgement::Forged);
        }
        let echo = [128, 0, 0, 0, 0, 1, 0, 1];
        assert_eq!(guard().judge(0, &packet(GOOD, HOST6, 64, 58, &echo)), Judgement::Fine);
        assert_eq!(guard().judge(0, &packet(GOOD, HOST6, 64, 58, &[])), Judgement::Fine);
        assert_eq!(guard().judge(0, &packet(GOOD, HOST6, 1, 17, &message)), Judgement::Fine, "UDP");
    }

    #[test]
    fn a_claim_cannot_hide_behind_extension_headers() {
        let behind = |first: u8, headers: &[u8], message: &[u8]| {
            guard().judge(0, &packet(EVIL, HOST6, 255, first, &[headers, message].concat()))
        };
        let evil = message(135, OWN6, &[(ndp::OPTION_SOURCE, EVIL)]);
        let fine = message(135, OWN6, &[(ndp::OPTION_SOURCE, GOOD)]);
        let chain = |count: usize| {
            let mut chain = [60, 0, 1, 4, 0, 0, 0, 0].repeat(count);
            let last = chain.len() - 8;
            chain[last] = 58;
            chain
        };
        for count in 1..=ipv6::EXTENSIONS_MAX {
            assert_eq!(behind(60, &chain(count), &evil), Judgement::Forged, "{count} headers");
            assert_eq!(behind(60, &chain(count), &fine), Judgement::Fine, "{count} headers");
        }
        for count in [ipv6::EXTENSIONS_MAX + 1, 100] {
            assert_eq!(behind(60, &chain(count), &fine), Judgement::Unclear, "{count} headers");
        }
        assert_eq!(behind(60, &[58, 200, 0, 0, 0, 0, 0, 0], &evil), Judgement::Unclear, "beyond the end");
        assert_eq!(behind(0, &[58, 0, 5, 2, 0, 0, 1, 0], &evil), Judgement::Forged, "hop-by-hop options");
        assert_eq!(behind(60, &[0, 0, 1, 4, 0, 0, 0, 0], &evil), Judgement::Unclear, "out of place");
        assert_eq!(behind(51, &[58, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], &[]), Judgement::Unclear);
        // Fragments: whole messages, the first part of one, a first part without its type, and a part that is not first.
        assert_eq!(behind(44, &[58, 0, 0, 0, 0, 0, 0, 7], &fine), Judgement::Forged, "atomic");
        assert_eq!(behind(44, &[58, 0, 0, 1, 0, 0, 0, 7], &fine[..8]), Judgement::Forged, "the first part");
        let split = [60, 0, 0, 1, 0, 0, 0, 7, 58, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!(behind(44, &split, &[]), Judgement::Unclear);
        assert_eq!(behind(44, &[58, 0, 0, 8, 0, 0, 0, 7], &evil), Judgement::Fine, "alone it is nothing");
        let nested = [44, 0, 0, 0, 0, 0, 0, 7, 58, 0, 0, 8, 0, 0, 0, 9];
        assert_eq!(behind(44, &nested, &[128; 8]), Judgement::Unclear, "a fragment in a fragment");
    }

    #[test]
    fn bytes_of_any_kind_are_judged() {
        let full = packet(EVIL, HOST6, 255, 58, &message(137, HOST6, &[(ndp::OPTION_TARGET, EVIL)]));
        for cut in 0..full.len() {
            let mut frame = full[..cut].to_vec();
            assert_eq!(guard().judge(0, &frame), Judgement::Fine, "the plane drops {cut} bytes");
            frame.resize(full.len(), 0);
            guard().judge(0, &frame);
        }
        assert_eq!(guard().judge(0, &full), Judgement::Forged);
        let mut random = 1u64;
        let mut frame = full.clone();
        for _ in 0..50_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 33) as usize % full.len();
            frame[at] = (random >> 56) as u8;
            guard().judge(0, &frame);
            if at.is_multiple_of(7) {
                frame.clone_from(&full);
            }
        }
    }
}
